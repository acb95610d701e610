// Rows on chip: every element is read once. GROUP threads (a power of two up to 32) share a row. With GROUP = 0, a
// block has a row, or a cluster of CLUSTER blocks shares one; these exchange their parts' maxima and sums through
// distributed shared memory. A thread holds PACKS packs of its row in registers and, if STAGED, p.staged more in shared
// memory.
// RAGGED: a row may begin and end at any element. The head and tail around its aligned packs are held element by
// element.
// DENSE: rows lie one after the other, in x and in y. Those of a block, some lanes to each, come to shared memory and
// leave it as one piece, since packs of a row would be narrow.
// blockIdx.x: BLOCK / GROUP rows. With GROUP = 0, blockIdx.x / CLUSTER is the row, and blockIdx.x % CLUSTER the block's
// rank in the cluster. BLOCK: threads of a block, at most.
constexpr int LANES = GROUP ? GROUP : 32;
constexpr int STATES = BLOCK / 32 * CLUSTER;

// Blocks of a multiprocessor, at least: expressions hold what they load ahead.
constexpr int AT_LEAST = RESIDENT > 0 || SAME<Source, const Tin*> ? RESIDENT : 1024 / BLOCK;

// A block's piece of a dense array, which begins at a multiple of 16 bytes.
template <class T> struct Piece {
  static constexpr int WIDE = 16 / sizeof(T);
  __align__(16) T item[DENSE ? BLOCK * PACKS * VEC : 1];

  template <class From> __device__ __forceinline__ void read(From from, int count) {
    for (int i = threadIdx.x * WIDE; i < count; i += BLOCK * WIDE) {
      if (i + WIDE <= count) store_items(item + i, load_items<WIDE>(from + i));
      else for (int v = i; v < count; ++v) store_items(item + v, load_items<1>(from + v));
    }
  }
  __device__ __forceinline__ void write(T* to, int count) const {
    for (int i = threadIdx.x * WIDE; i < count; i += BLOCK * WIDE) {
      if (i + WIDE <= count) store_items(to + i, load_items<WIDE>(item + i));
      else for (int v = i; v < count; ++v) to[v] = item[v];
    }
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK, AT_LEAST)
softmax_rows(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  if constexpr (GROUP > 0) {
    int thread = threadIdx.x % LANES;
    Index row = blockIdx.x * static_cast<Index>(BLOCK / LANES) + threadIdx.x / LANES;
    bool inside = row < static_cast<Index>(p.rows);
    Part part(inside ? row : 0, inside ? 0 : 1, x, mask, y, p);  // past the last row, an empty part
    __shared__ Piece<Tin> source;
    __shared__ Piece<Tout> target;
    constexpr int ROWS = BLOCK / LANES;
    i64 begin = blockIdx.x * static_cast<i64>(ROWS), piece = min(p.rows - begin, static_cast<i64>(ROWS)) * p.cols;
    if constexpr (DENSE) {
      source.read(x + begin * p.cols, piece);
      __syncthreads();
      part.move(source.item + threadIdx.x / LANES * p.cols, target.item + threadIdx.x / LANES * p.cols);
    }
    OnChip packs;
    Singles<LANES> edges;
    auto locate = [&](int n, Offset (&at)[3]) { part.locate(thread + n * LANES, at, p); };
    auto exists = [&](int n) { return inside && static_cast<Index>(thread + n * LANES) < part.end; };
    auto near = [&](int n, Offset (&at)[3]) { part.locate(min(static_cast<Index>(thread + n * LANES), part.end - 1), at, p); };
    packs.load(part.x, part.mask, part.step, p, inside, exists, locate, near);
    edges.load(part, thread, LANES, p);

    V max[1] = {Limits<V>::least()};
    Total sum[1] = {};
    packs.held.maximum(max, p);
    edges.maximum(max, p);
    V key = Base::key(warp_reduce<Max<V>, LANES>(max[0]));
    Base base[1] = {Base(key)};
    packs.held.sum_of_powers(sum, base, p);
    edges.sum_of_powers(sum, base, p);
    State whole = state_of(key, warp_reduce<Added<Total>, LANES>(sum[0]));
    let_next_start();
    if (inside) {
      Ending ending[1] = {Ending::of<true>(key, whole, p)};
      packs.store_held(part.y, ending, p, locate);
      edges.store(part, ending, thread, LANES, p);
    }
    if constexpr (DENSE) {
      __syncthreads();
      target.write(y + begin * p.cols, piece);
    }
  } else {
    int thread = threadIdx.x, group = blockDim.x, rank = blockIdx.x % CLUSTER;
    Part part(blockIdx.x / CLUSTER, rank, x, mask, y, p);
    int lane = thread % 32, warp = thread / 32, warps = group / 32;
    __shared__ State states[STATES];
    __shared__ u64 arrivals;
    if constexpr (CLUSTER > 1) cluster_begin(&arrivals);
    RowOnChip held;
    held.load(part, thread, group, p);
    State mine = held.gather(p);

    if constexpr (CLUSTER == 1) {
      if (lane == 0) states[warp] = mine;
      __syncthreads();
    } else {
      cluster_wait();
      using Sent = Pack<u64, sizeof(State) / 8>;
      if (lane < CLUSTER) store_to(lane, reinterpret_cast<Sent*>(states) + rank * warps + warp, bit_cast<Sent>(mine), &arrivals);
      cluster_meet(&arrivals, warps * CLUSTER * sizeof(State));
    }
    State whole = brought_together<STATES>(states, warps * CLUSTER);
    let_next_start();
    held.store(part, whole, thread, group, p);
  }
}
