// condition: `length` elements, in C order; PACKED: contiguous. bits, before, runs: as in select.cuh; total: how many are true.
// A block takes the tiles of a run one after the other. In each, a thread reads 32 elements, VEC at a time; neighbouring
// threads read neighbours. The last block to arrive adds up the runs.

constexpr int LANES = 32 / VEC;                    // that share a word of bits
constexpr int IN_FLIGHT = LANES < 8 ? LANES : 8;   // packs that a thread loads before it looks at one

// Bit v of the result: whether element v of a pack is true.
__device__ __forceinline__ u32 truths(Pack<Tin, VEC> pack) {
  u32 found = 0;
  if constexpr (SAME<Tin, u8> && VEC == 16) {
    auto items = bit_cast<Pack<u32, 4>>(pack);
#pragma unroll
    for (int w = 0; w < 4; ++w) found |= (true_bytes(items.item[w]) * 0x10204080u >> 28) << 4 * w;
  } else {
#pragma unroll
    for (int v = 0; v < VEC; ++v) found |= static_cast<u32>(nonzero(pack.item[v])) << v;
  }
  return found;
}

// Elements at, …, at + VEC - 1 of the condition, counted from `head` elements before its first; false ones beside it.
template <bool WHOLE> __device__ __forceinline__ Pack<Tin, VEC> elements(const Tin* condition, i64 at, const SelectCount& p) {
  if constexpr (PACKED) {
    const Tin* from = condition + (at - p.head);
    if constexpr (WHOLE) return load<VEC>(from);
    Pack<Tin, VEC> pack{};
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      if (at + v >= p.head && at + v < p.head + p.length) pack.item[v] = from[v];
    }
    return pack;
  } else {
    Pack<Tin, VEC> pack{};
    if (WHOLE || at < p.length) {
      Offset place[1];
      p.dims.locate(static_cast<Index>(at), place);
      pack.item[0] = condition[place[0]];
    }
    return pack;
  }
}

// Writes the bits of a tile; returns how many of those that this thread has read are set.
template <bool WHOLE> __device__ __forceinline__ u32 count_tile(const Tin* condition, u32* bits, i64 tile, const SelectCount& p) {
  u32 count = 0, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int begin = 0; begin < LANES; begin += IN_FLIGHT) {
    Pack<Tin, VEC> pack[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) {
      pack[i] = elements<WHOLE>(condition, tile * TILE + ((begin + i) * BLOCK + threadIdx.x) * VEC, p);
    }
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) {
      u32 own = truths(pack[i]), word = own << lane % LANES * VEC;
#pragma unroll
      for (int mask = 1; mask < LANES; mask *= 2) word |= __shfl_xor_sync(0xffffffffu, word, mask);
      count += __popc(own);
      if (lane % LANES == 0) bits[tile * BLOCK + ((begin + i) * BLOCK + threadIdx.x) / LANES] = word;
    }
  }
  return count;
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) select_count(
    const Tin* __restrict__ condition, u32* __restrict__ bits, u32* __restrict__ before, i64* runs, i64* total, u64* ticket,
    Launch launch, SelectCount p) {
  wait_for_previous();
  __shared__ u32 sums[2][BLOCK / 32];
  i64 first = blockIdx.x * p.span, end = first + p.span < p.tiles ? first + p.span : p.tiles, run = 0;
  for (i64 tile = first; tile < end; ++tile) {
    bool whole = tile * TILE >= p.head && (tile + 1) * TILE <= p.head + p.length;
    u32 count = whole ? count_tile<true>(condition, bits, tile, p) : count_tile<false>(condition, bits, tile, p);
    count = warp_reduce<Added<u32>>(count);
    if (threadIdx.x % 32 == 0) sums[tile % 2][threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
      before[tile] = static_cast<u32>(run);
#pragma unroll
      for (int w = 0; w < BLOCK / 32; ++w) run += sums[tile % 2][w];
    }
  }
  if (threadIdx.x == 0) runs[blockIdx.x] = run;
  if (!last_block(ticket, gridDim.x, launch)) return;
  u32 each = (gridDim.x + BLOCK - 1) / BLOCK, from = threadIdx.x * each, to = from + each < gridDim.x ? from + each : gridDim.x;
  i64 sum = 0;
  for (u32 r = from; r < to; ++r) sum += runs[r];
  auto [earlier, all] = prefix<i64>(sum);
  for (u32 r = from; r < to; ++r) {
    i64 here = runs[r];
    runs[r] = earlier;
    earlier += here;
  }
  if (threadIdx.x == 0) *total = all;
}
