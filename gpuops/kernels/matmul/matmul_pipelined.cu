// The fastest rung, float32 only. As warptile, with double buffering on two levels: while a block computes with one
// stage of shared memory, the other is filled; while a thread computes with one k, its registers are filled with the
// next.
//
// A block has WARPS_M × WARPS_N warps for its tile, SLICES times. Each slice takes DEPTH of the STEP of k that a stage
// holds, and at the end the slices add up their sums. So small tiles, too, can have 8 warps with large warp tiles,
// which do more products for each element they read.
constexpr int WARPS_M = BLOCK_M / WARP_M, WARPS_N = BLOCK_N / WARP_N, SLICE = 32 * WARPS_M * WARPS_N;
constexpr int LANES_M = WARP_M / THREAD_M, LANES_N = WARP_N / THREAD_N;
static_assert(LANES_M * LANES_N == 32 && SLICE * SLICES == THREADS, "lanes of a warp, threads of a block");
static_assert(DEPTH % 2 == 0 && THREAD_M % 4 == 0 && THREAD_N % 4 == 0, "packs of 4, k by twos");

using PanelA = Panel<WAY_A, BLOCK_M>;
using PanelB = Panel<WAY_B, BLOCK_N>;
constexpr int B_BEGINS = STEP * PanelA::PITCH, STAGE = B_BEGINS + STEP * PanelB::PITCH;

// A thread's operands for one k: its rows of a and its columns of b.
struct Fragment {
  float a[THREAD_M], b[THREAD_N];
  __device__ __forceinline__ void read(const float* from_a, const float* from_b) {
#pragma unroll
    for (int i = 0; i < THREAD_M; i += 4) take(a + i, from_a + i * LANES_M);
#pragma unroll
    for (int j = 0; j < THREAD_N; j += 4) take(b + j, from_b + j * LANES_N);
  }
  static __device__ __forceinline__ void take(float* to, const float* from) {
    Pack<float, 4> pack = load<4>(from);
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = pack.item[e];
  }
  // Down one column of sums and up the next: each product reuses b[j] or, at a turn, a[i] of the one before (register
  // reuse cache), and reads two registers, not three.
  __device__ __forceinline__ void multiply(float (&sum)[THREAD_M][THREAD_N]) const {
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
#pragma unroll
      for (int n = 0; n < THREAD_M; ++n) {
        int i = j % 2 ? THREAD_M - 1 - n : n;
        sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
      }
    }
  }
};

// Item: four neighbouring sums of a row. ITEMS: of a thread. TILE_ITEMS: of the whole tile.
constexpr int ITEMS = THREAD_M * THREAD_N / 4, TILE_ITEMS = ITEMS * SLICE;
constexpr int ROUND = ITEMS < 8 ? ITEMS : 8;  // items of a thread that the slices add up at a time

__device__ __forceinline__ float (&four_of(float (&sum)[THREAD_M][THREAD_N], int item))[4] {
  return reinterpret_cast<float(&)[4]>(sum[item / (THREAD_N / 4)][item % (THREAD_N / 4) * 4]);
}

// 0 + sum is a new value to the compiler. Without it, sums that are stored together would occupy neighbouring registers
// from the start, and the loop of products would read too many of these at a time.
__device__ __forceinline__ Pack<float, 4> fresh_four(const float (&four)[4]) {
  return {0 + four[0], 0 + four[1], 0 + four[2], 0 + four[3]};
}
__device__ __forceinline__ void add(float (&four)[4], const Pack<float, 4>& more) {
#pragma unroll
  for (int e = 0; e < 4; ++e) four[e] += more.item[e];
}

// Item `item` of thread `thread` of a slice: its row and column in the tile.
__device__ __forceinline__ int item_row(int item, int thread) {
  int i = item / (THREAD_N / 4), lane = thread % 32 / LANES_N;
  return thread / 32 % WARPS_M * WARP_M + i / 4 * 4 * LANES_M + lane * 4 + i % 4;
}
__device__ __forceinline__ int item_col(int item, int thread) {
  int j = item % (THREAD_N / 4), lane = thread % 32 % LANES_N;
  return thread / 32 / WARPS_M * WARP_N + j * 4 * LANES_N + lane * 4;
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
matmul_pipelined(const Ta* a, const Tb* b, const Tc* c, Tout* out, float* partials, u64* tickets, Launch launch, Matmul p) {
  wait_for_previous();
  extern __shared__ __align__(128) float memory[];
  u32 rows = ceil_div(p.m, BLOCK_M), cols = ceil_div(p.n, BLOCK_N);
  u32 place = blockIdx.x, sharing = 0, splits = 1, split = 0;
  if (SPLIT && place >= p.whole) {  // split-K: this block shares a tile
    sharing = place - p.whole;
    splits = p.splits, split = sharing % splits, place = p.whole + sharing / splits;
  }
  Tile tile(place, rows, cols, GROUP);
  Product product(p, a, b, c, out, tile.batch);
  i64 row = tile.row * i64(BLOCK_M), col = tile.col * i64(BLOCK_N);

  // This block's part of k, in steps; the last step of all may be shorter.
  u32 begin = 0, end = ceil_div(p.k, STEP);
  if (splits > 1) {
    u64 all = end;
    begin = static_cast<u32>(all * split / splits), end = static_cast<u32>(all * (split + 1) / splits);
  }
  int steps = static_cast<int>(end - begin), full = static_cast<int>(p.k / STEP - begin);
  i64 first = begin * i64(STEP);
  PanelA panel_a(memory, product.a + first * p.a.col, row, p.m, p.a.row, p.a.col);
  PanelB panel_b(memory + B_BEGINS, product.b + first * p.b.row, col, p.n, p.b.col, p.b.row);

  const int last = steps;
  int asked = 0, next = 0;  // steps fetched so far; offset of the stage that the next one fills
  auto fetch = [&] {
    if (asked < full && asked < last) {
      panel_a.template fetch<false>(next, STEP), panel_b.template fetch<false>(next, STEP);
    } else if (asked < last) {
      int left = static_cast<int>(p.k % STEP);
      panel_a.template fetch<true>(next, left), panel_b.template fetch<true>(next, left);
    }
    copies_sent();
    ++asked;
    next = STAGE - next;
  };
  auto deliver = [&] { panel_a.deliver(STAGE - next), panel_b.deliver(STAGE - next); };

  int thread = threadIdx.x % SLICE, slice = threadIdx.x / SLICE, warp = thread / 32, lane = thread % 32;
  const int own_a = opaque(slice * DEPTH * PanelA::PITCH + warp % WARPS_M * WARP_M + lane / LANES_N * 4);
  const int own_b = opaque(B_BEGINS + slice * DEPTH * PanelB::PITCH + warp / WARPS_M * WARP_N + lane % LANES_N * 4);
  float sum[THREAD_M][THREAD_N] = {};
  Fragment even, odd;

  fetch();
  deliver();
  fetch();
  copies_there<1>();
  __syncthreads();
  const float *at_a = memory + own_a, *at_b = memory + own_b;
  even.read(at_a, at_b);
  int left = DEPTH / 2, stage = 0;
  // Two k per iteration, no more: in longer code the compiler interleaves products of different k, and their order that
  // saves register reads is lost.
#pragma unroll 1
  for (bool more = steps > 0; more;) {
    odd.read(at_a + PanelA::PITCH, at_b + PanelB::PITCH);
    at_a += 2 * PanelA::PITCH, at_b += 2 * PanelB::PITCH;
    even.multiply(sum);
    if (--left == 0) {  // the stage has been read
      left = DEPTH / 2;
      deliver();
      copies_there<0>();
      __syncthreads();
      more = --steps > 0;
      if (more) stage = STAGE - stage;
      at_a = memory + (own_a + stage), at_b = memory + (own_b + stage);
      fetch();
    }
    even.read(at_a, at_b);
    odd.multiply(sum);
  }
  copies_there<0>();
  product.begin_at(row, col, BLOCK_M, BLOCK_N);

  // parts: the partial sums of all blocks that share this tile, in the order of k. part: this block's.
  auto* parts = reinterpret_cast<Pack<float, 4>*>(partials) + (sharing - split) * i64(TILE_ITEMS);
  auto* part = parts + split * i64(TILE_ITEMS);
  if constexpr (SLICES == 1) {
    if (splits == 1) {
      if (p.scaled || p.added) {
#pragma unroll
        for (int item = 0; item < ITEMS; ++item) {
          product.adjust(item_row(item, thread), item_col(item, thread), four_of(sum, item));
        }
      }
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) {
        float fresh[THREAD_N];
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) fresh[j] = 0 + sum[i][j];
#pragma unroll
        for (int j = 0; j < THREAD_N; j += 4) {
          int item = (i * THREAD_N + j) / 4;
          product.write<4, VEC_OUT>(item_row(item, thread), item_col(item, thread), reinterpret_cast<float(&)[4]>(fresh[j]));
        }
      }
      return;
    }
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) part[item * SLICE + thread] = fresh_four(four_of(sum, item));
  } else {
    // The slices' sums are added up in the order of slices, ROUND items of each thread at a time.
    auto* shared = reinterpret_cast<Pack<float, 4>*>(memory);
#pragma unroll
    for (int begin = 0; begin < ITEMS; begin += ROUND) {
      __syncthreads();
#pragma unroll
      for (int n = 0; n < ROUND; ++n) shared[(slice * ROUND + n) * SLICE + thread] = fresh_four(four_of(sum, begin + n));
      __syncthreads();
#pragma unroll
      for (int n = threadIdx.x; n < ROUND * SLICE; n += THREADS) {
        float four[4] = {};
#pragma unroll
        for (int s = 0; s < SLICES; ++s) add(four, shared[s * ROUND * SLICE + n]);
        int item = begin + n / SLICE, owner = n % SLICE;
        if (splits == 1) product.put(item_row(item, owner), item_col(item, owner), four);
        else part[begin * SLICE + n] = {four[0], four[1], four[2], four[3]};
      }
    }
  }
  // Split-K: the last block to arrive adds up the partial sums in the order of k, TOGETHER items of a thread at a time.
  if (splits == 1 || !last_block(tickets + (place - p.whole), splits, launch)) return;
  constexpr int EACH = TILE_ITEMS / THREADS, TOGETHER = EACH < 4 ? EACH : 4;
  for (int begin = threadIdx.x; begin < TILE_ITEMS; begin += TOGETHER * THREADS) {
    float four[TOGETHER][4] = {};
    for (u32 s = 0; s < splits; ++s) {
      Pack<float, 4> more[TOGETHER];
#pragma unroll
      for (int i = 0; i < TOGETHER; ++i) more[i] = parts[s * i64(TILE_ITEMS) + begin + i * THREADS];
#pragma unroll
      for (int i = 0; i < TOGETHER; ++i) add(four[i], more[i]);
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      int n = begin + i * THREADS;
      product.put(item_row(n / SLICE, n % SLICE), item_col(n / SLICE, n % SLICE), four[i]);
    }
  }
}
