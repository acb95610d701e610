// Reduces along an outer axis: neighbouring threads hold packs of VEC neighbouring outputs, so that reads are whole
// lines, with UNROLL packs in flight. A block is WIDE packs by DEEP threads along the reduced dims.
// blockIdx.x: the packs of outputs, WIDE of them; blockIdx.y: the split of the reduced dims (RESIDENT > 0), whose partial
// results the last block adds up. EDGED: each run of neighbouring outputs has packs of its own, the first and last of
// which it may fill in part; all runs alike. STORED: outputs that one store of a thread writes.
constexpr int DEEP = BLOCK / WIDE;
constexpr int LANES = WIDE < 32 ? 32 / WIDE : 1;      // of a warp, that have the same pack
constexpr int LEVELS = DEEP / LANES;                  // of threads that meet in shared memory
constexpr int HELD = VEC > LANES ? VEC / LANES : 1;   // of their outputs, that each is left with
constexpr int ALIKE = LANES > VEC ? LANES / VEC : 1;  // or how many are left with the same
constexpr int PART = VEC * sizeof(State);             // bytes of a pack's partial results
constexpr int BATCH = PART < 128 ? 256 / PART : 2;    // how many of those are in flight
using Gathering = Gathered<true, 1>;
using Cells = State[LEVELS][VEC * WIDE];

// A pack of outputs: where their first elements are, and which of its VEC exist.
struct Spot {
  Offset at[3];
  i32 begin, end;
};

__device__ __forceinline__ Spot find(Index pack, const Reduce& r) {
  Spot spot;
  spot.begin = 0, spot.end = pack < static_cast<Index>(r.outputs) ? VEC : 0;
  if constexpr (!EDGED) {
    r.kept.locate(min(pack, static_cast<Index>(r.outputs - 1)), spot.at);
  } else {
    Index run = divide(pack, r.run_packs);
    i64 first = static_cast<i64>(pack - run * static_cast<Index>(r.run_packs.value)) * VEC - r.head;
    i64 size = spot.end ? r.kept.size[KEPT - 1].value : 0;
    r.kept.template locate<KEPT - 1>(run, spot.at);
#pragma unroll
    for (int k = 0; k < 3; ++k) spot.at[k] += first * r.kept.stride[k][KEPT - 1];
    spot.begin = first < 0 ? -first : 0;
    spot.end = max(min(size - first, static_cast<i64>(VEC)), static_cast<i64>(spot.begin));
  }
  return spot;
}

// UNROLL packs of x, DEEP elements apart along the reduced dims, all loaded before the first is used. CHECK: some lie
// beyond the end.
template <bool CHECK>
__device__ __forceinline__ void take(Gathering& gathered, const Tin* x, const Tb* b, const Spot& spot, const Reduce& r, const Context<A>& c, Index i, Index end) {
  Pack_x packs[UNROLL];
  Pack_b others[UNROLL];
  bool ready[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    ready[u] = !CHECK || i + u * DEEP < end;
    if (!ready[u]) continue;
    Offset at[2];
    r.reduced.locate(i + u * DEEP, at);
    packs[u] = load_items<VEC>(x + spot.at[0] + at[0]);
    if constexpr (OTHER != NONE) others[u] = load_items<VEC_B>(b + spot.at[1] + at[1]);
  }
  gathered.add(packs, others, ready, c);
}

// One pack of which some elements are no output's: outside the array, those are not read.
__device__ __forceinline__ void take_part(Gathering& gathered, const Tin* x, const Tb* b, const Spot& spot, const Reduce& r, const Context<A>& c, Index i) {
  Pack_x pack[1];
  Pack_b other[1];
  bool ready[1] = {true};
  Offset at[2];
  r.reduced.locate(i, at);
#pragma unroll
  for (int v = 0; v < VEC; ++v) pack[0].set(v, v >= spot.begin && v < spot.end ? x[spot.at[0] + at[0] + v] : Tin{});
  if constexpr (OTHER != NONE) other[0] = load_items<VEC_B>(b + spot.at[1] + at[1]);
  gathered.add(pack, other, ready, c);
}

// The block's threads bring their values together: cells[0 … LEVELS)[v * WIDE + wide] are the parts of output v of pack
// `wide`.
__device__ __forceinline__ void meet(Cells& cells, State (&value)[VEC]) {
  int lane = threadIdx.x % 32 / WIDE, wide = threadIdx.x % WIDE, level = threadIdx.x / (WIDE * LANES);
  int first = share<Op, (LANES > 1 ? 16 : 0), WIDE>(value);
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    if (lane % ALIKE == 0) cells[level][(first + i) * WIDE + wide] = value[i];
  }
  __syncthreads();
}

__device__ __forceinline__ State met(const Cells& cells, int i) {
  State total = cells[0][i];
#pragma unroll
  for (int level = 1; level < LEVELS; ++level) total = Op::combine(total, cells[level][i]);
  return total;
}

// Adds a pack's partial results, read by wide loads.
__device__ __forceinline__ void add_part(State (&value)[VEC], const State* part) {
  State more[VEC];
  if constexpr (PART % 16 == 0) {
    Pack<u32, 4> piece[PART / 16 + 1];
#pragma unroll
    for (int n = 0; n < PART / 16; ++n) piece[n] = load<4>(reinterpret_cast<const u32*>(part) + 4 * n);
    memcpy(more, piece, PART);
  } else {
#pragma unroll
    for (int v = 0; v < VEC; ++v) more[v] = part[v];
  }
#pragma unroll
  for (int v = 0; v < VEC; ++v) value[v] = Op::combine(value[v], more[v]);
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
reduce_columns(const Tin* x, const Tb* b, Tout* y, u32* tickets, State* partials, Reduce r) {
  wait_for_previous();
  int wide = threadIdx.x % WIDE, deep = threadIdx.x / WIDE;
  Index begin = blockIdx.y * r.chunk, end = min(static_cast<i64>(begin) + r.chunk, r.packs);
  Context<A> c = context(r);
  Spot spot = find(blockIdx.x * static_cast<Index>(WIDE) + wide, r);

  Gathering gathered;
  if (spot.end == spot.begin) end = begin;
  if constexpr (EDGED) {
    if (spot.end > spot.begin && spot.end - spot.begin < VEC) {  // only its first and last pack may reach beyond the array
      Index last = r.packs - 1;
      if (begin == 0 && deep == 0) take_part(gathered, x, b, spot, r, c, 0);
      if (end > last && last > 0 && deep == 0) take_part(gathered, x, b, spot, r, c, last);
      begin = max(begin, static_cast<Index>(1)), end = min(end, last);
    }
  }
  Index i = begin + deep;
  for (; i + (UNROLL - 1) * DEEP < end; i += UNROLL * DEEP) take<false>(gathered, x, b, spot, r, c, i, end);
  if (i < end) take<true>(gathered, x, b, spot, r, c, i, end);
  let_next_start();
  State value[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) value[v] = gathered.get(v, c);

  if constexpr (DEEP == 1) {
    Items<Tout, STORED> results[VEC / STORED];
#pragma unroll
    for (int v = 0; v < VEC; ++v) results[v / STORED].set(v % STORED, finished(value[v], r));
#pragma unroll
    for (int s = 0; s < VEC / STORED; ++s) {
      if (s * STORED >= spot.begin && s * STORED < spot.end) store_items(y + spot.at[2] + s * STORED * r.y_inner, results[s]);
    }
  } else {
    __shared__ Cells cells;
    meet(cells, value);
    if constexpr (RESIDENT > 0) {
      State* mine = partials + static_cast<i64>(blockIdx.x) * gridDim.y * (VEC * WIDE);
      State* here = mine + blockIdx.y * (VEC * WIDE);
      for (int i = threadIdx.x; i < VEC * WIDE; i += BLOCK) here[i] = met(cells, i % VEC * WIDE + i / VEC);
      if (!last_block(tickets + blockIdx.x, gridDim.y)) return;
#pragma unroll
      for (int v = 0; v < VEC; ++v) value[v] = Op::identity();
#pragma unroll BATCH
      for (u32 split = deep; split < gridDim.y; split += DEEP) add_part(value, mine + (split * WIDE + wide) * VEC);
      meet(cells, value);
    }
    for (int i = threadIdx.x; i < VEC * WIDE; i += BLOCK) {
      Spot there = find(blockIdx.x * static_cast<Index>(WIDE) + i % WIDE, r);
      int v = i / WIDE;
      if (v >= there.begin && v < there.end) y[there.at[2] + v * r.y_inner] = finished(met(cells, i), r);
    }
  }
}
