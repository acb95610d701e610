// Copies a panel of an operand to shared memory: EXTENT rows of a, or columns of b, by STEP of k. Its layout there is
// [k][EXTENT], so that a thread reads neighbouring rows or columns in packs. Prologue: Offset (within a panel), and of
// a block: SLICES, DEPTH, THREADS.

constexpr int STEP = SLICES * DEPTH;

// How a panel is copied depends on the operand's layout:
//   PACKED  contiguous along the tile, aligned: asynchronous copies of packs of 4
//   TURNED  contiguous along k, aligned: packs of two rows wait in registers until a stage is free, and are transposed
//   ACROSS  any strides: asynchronous copies of single elements, neighbouring threads along the tile
//   DEEP    the same, neighbouring threads along k
enum Way { PACKED, TURNED, ACROSS, DEEP };

// Optimisation barrier for 32-bit values: keeps 64-bit multiplies by strides from being rematerialised.
template <class T> __device__ __forceinline__ T opaque(T value) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 4) asm("" : "+r"(value));
#endif
  return value;
}

// Rows (or columns) past the edge are clamped to the last one; their results are not stored. Elements past the end of k
// are 0. LAST: there may be some.
template <int WAY, int EXTENT> struct Panel {
  static constexpr int WIDTH = WAY == PACKED ? 4 : 1;                               // elements of a copy
  static constexpr int ALONG = WAY == DEEP ? (STEP < 16 ? STEP : 16) : EXTENT / WIDTH;  // threads along k or tile
  static constexpr int COUNT = EXTENT * STEP / WIDTH / THREADS;                     // copies of a thread
  static constexpr int ROWS = WAY == DEEP ? EXTENT * ALONG / THREADS : 1;           // different rows among them
  static constexpr int NEXT = WAY == DEEP ? ALONG : THREADS / ALONG;                // step in k between two copies
  static constexpr int PITCH = EXTENT + (WAY == DEEP ? 4 : 0);
  static_assert(COUNT * WIDTH * THREADS == EXTENT * STEP && THREADS % ALONG == 0, "threads share a panel evenly");

  const float* from;
  float* to;
  Offset row[ROWS], depth;
  int k;

  // A panel of x from row `first` of `size` on; `stride` and `along_k` are the strides from row to row and along k.
  // memory: the panel in the first stage. fetch and deliver take a stage's offset from it.
  __device__ __forceinline__ Panel(float* memory, const float* x, i64 first, i64 size, i64 stride, i64 along_k) {
    int across = threadIdx.x % ALONG, other = threadIdx.x / ALONG;
    int last = static_cast<int>(size - first < EXTENT ? size - first : EXTENT) - WIDTH;
    depth = opaque(static_cast<Offset>(along_k));
    k = WAY == DEEP ? across : other;
    int begin = WAY == DEEP ? other : across * WIDTH;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      int r = begin + i * (THREADS / ALONG);
      row[i] = static_cast<Offset>((r < last ? r : last) * stride);
    }
    from = x + first * stride + static_cast<i64>(k) * depth;
    if constexpr (ROWS == 1) from += row[0];
    to = memory + k * PITCH + begin;
  }
  template <bool LAST> __device__ __forceinline__ void fetch(int stage, int left) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      int next = i / ROWS * NEXT;
      const float* x = from + (ROWS == 1 ? 0 : row[i % ROWS]) + static_cast<i64>(next) * depth;
      float* there = to + stage + next * PITCH + i % ROWS * (THREADS / ALONG);
      if constexpr (LAST) copy_async_inside<WIDTH>(there, k + next < left ? x : from, k + next < left);
      else copy_async(reinterpret_cast<Pack<float, WIDTH>*>(there), reinterpret_cast<const Pack<float, WIDTH>*>(x));
    }
    from += static_cast<i64>(STEP) * depth;
  }
  __device__ __forceinline__ void deliver(int) {}
};

template <int EXTENT> struct Panel<TURNED, EXTENT> {
  static constexpr int PAIRS = EXTENT / 2, COUNT = PAIRS * (STEP / 4) / THREADS;
  static constexpr int PITCH = EXTENT + 4;
  static_assert(COUNT * 4 * THREADS == PAIRS * STEP && STEP % 16 == 0, "threads share a panel evenly");

  const float* from;
  Offset row[COUNT][2];
  float* to[COUNT];
  int k[COUNT];
  Pack<float, 4> held[COUNT][2];

  __device__ __forceinline__ Panel(float* memory, const float* x, i64 first, i64 size, i64 stride, i64) {
    int last = static_cast<int>(size - first < EXTENT ? size - first : EXTENT) - 1;
    from = x + first * stride;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {  // a warp takes 8 pairs of rows by 16 of k
      int unit = threadIdx.x + i * THREADS, warp = unit / 32;
      int pair = unit / 4 % 8 + warp % (PAIRS / 8) * 8;
      k[i] = unit % 4 * 4 + warp / (PAIRS / 8) * 16;
      to[i] = memory + k[i] * PITCH + 2 * pair;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        row[i][r] = static_cast<Offset>((2 * pair + r < last ? 2 * pair + r : last) * stride + k[i]);
      }
    }
  }
  template <bool LAST> __device__ __forceinline__ void fetch(int, int left) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        held[i][r] = {};
        if (!LAST || k[i] < left) held[i][r] = load<4>(from + row[i][r]);
      }
    }
    from += STEP;
  }
  __device__ __forceinline__ void deliver(int stage) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        store(to[i] + stage + e * PITCH, Pack<float, 2>{held[i][0].item[e], held[i][1].item[e]});
      }
    }
  }
};
