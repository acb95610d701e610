// Softmax along an outer axis, a tile of it on chip: every element is read once. Neighbouring threads hold packs of VEC
// neighbouring rows, so that a warp reads whole lines. A block is WIDE packs by DEEP threads along the axis. A thread
// holds PACKS packs in registers and, if STAGED, p.staged more in shared memory.
// The sums are of PLAIN or SHORT exponentials, whose keys are the maxima themselves.
// CLUSTER blocks share a tile. They exchange their parts' maxima and sums through distributed shared memory.
// blockIdx.x / CLUSTER: WIDE packs of rows. blockIdx.x % CLUSTER: the block's rank in the cluster.
constexpr int DEEP = BLOCK / WIDE;
constexpr int LANES = WIDE < 32 ? 32 / WIDE : 1;  // lanes of a warp that hold packs of the same rows
constexpr int LEVELS = DEEP / LANES;              // partial states per row in shared memory
constexpr int ROWS = VEC * WIDE;
using Sent = Pack<u64, ROWS * sizeof(State) % 16 ? 1 : 2>;  // one store to another block
constexpr int SENT = ROWS * sizeof(State) / sizeof(Sent);

// Online softmax of neighbouring rows: their maxima and sums so far, updated as packs arrive.
struct Online {
  V max[VEC];
  Total sum[VEC];

  __device__ __forceinline__ Online() {
#pragma unroll
    for (int v = 0; v < VEC; ++v) max[v] = Limits<V>::least(), sum[v] = Total{};
  }
  template <class Packs, class... Range>
  __device__ __forceinline__ void take(Packs& packs, const Softmax& p, Range... range) {
    V before[VEC];
    Base base[VEC];
#pragma unroll
    for (int v = 0; v < VEC; ++v) before[v] = max[v];
    packs.maximum(max, p, range...);
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      base[v] = Base(max[v]);
      sum[v] = lifted(before[v], sum[v], base[v]);
    }
    packs.sum_of_powers(sum, base, p, range...);
  }
  template <int GROUP> __device__ __forceinline__ void take_staged(OnChip& packs, const Softmax& p) {
    if constexpr (GROUP < STAGED) {
      copies_there<STAGED - 1 - GROUP>();
      take(packs, p, packs.first(GROUP), packs.first(GROUP + 1));
      take_staged<GROUP + 1>(packs, p);
    }
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
softmax_columns(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  __shared__ u64 arrivals;
  if constexpr (CLUSTER > 1) cluster_begin(&arrivals);
  int rank = blockIdx.x % CLUSTER, wide = threadIdx.x % WIDE, deep = threadIdx.x / WIDE;
  Index pack = blockIdx.x / CLUSTER * static_cast<Index>(WIDE) + wide;
  bool inside = pack < static_cast<Index>(p.rows);
  Offset at[3];
  p.kept.locate(inside ? pack : 0, at);
  From from = x + at[0];
  mask += at[1], y += at[2];
  Offset step = p.kept.stride[1][KEPT - 1] / VEC;  // stride of the mask from row to row

  Index first = rank * static_cast<Index>(p.chunk), begin = first + deep, end = min(rank * p.chunk + p.chunk, p.packs);
  OnChip packs;
  auto locate = [&](int n, Offset (&at)[3]) { p.reduced.locate(begin + n * DEEP, at); };
  auto near = [&](int n, Offset (&at)[3]) { p.reduced.locate(min(begin + n * DEEP, end - 1), at); };
  packs.load(from, mask, step, p, inside && first < end, [&](int n) { return inside && begin + n * DEEP < end; }, locate, near);

  Online online;
  online.take(packs.held, p);
  online.take_staged<0>(packs, p);
  State row[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    V max = online.max[v];
#pragma unroll
    for (int lanes = 16; lanes >= WIDE; lanes /= 2) max = greater_of(max, shuffle_xor(max, lanes));
    Total sum = LANES > 1 ? lifted(online.max[v], online.sum[v], Base(max)) : online.sum[v];
#pragma unroll
    for (int lanes = 16; lanes >= WIDE; lanes /= 2) sum = sum + shuffle_xor(sum, lanes);
    row[v] = state_of(max, sum);
  }
  if constexpr (LEVELS > 1 || CLUSTER > 1) {
    __shared__ __align__(16) State part[LEVELS][ROWS], block[CLUSTER][ROWS];
    if (threadIdx.x % 32 < WIDE) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) part[deep / LANES][v * WIDE + wide] = row[v];
    }
    __syncthreads();
    State* whole = part[0];
    for (int i = threadIdx.x; i < ROWS; i += BLOCK) whole[i] = joined<LEVELS, ROWS>(&part[0][i]);
    if constexpr (CLUSTER > 1) {
      __syncthreads();
      cluster_wait();
      for (int i = threadIdx.x; i < CLUSTER * SENT; i += BLOCK) {
        int n = i % SENT;
        store_to(i / SENT, reinterpret_cast<Sent*>(block[rank]) + n, reinterpret_cast<const Sent*>(whole)[n], &arrivals);
      }
      cluster_meet(&arrivals, ROWS * CLUSTER * sizeof(State));
      whole = block[0];
      for (int i = threadIdx.x; i < ROWS; i += BLOCK) whole[i] = joined<CLUSTER, ROWS>(&block[0][i]);
    }
    __syncthreads();
#pragma unroll
    for (int v = 0; v < VEC; ++v) row[v] = whole[v * WIDE + wide];
  }
  let_next_start();

  if (!inside) return;
  Ending ending[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) ending[v] = Ending::of<true>(row[v].max, row[v], p);
  packs.store_held(y, ending, p, locate);
  if constexpr (STAGED) packs.store_staged(y, ending, p, locate, 0, packs.staged);
}
