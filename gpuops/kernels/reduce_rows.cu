// Reduces along the contiguous axis: GROUP threads (a power of two up to 32, or the whole BLOCK) per output, BLOCK /
// GROUP outputs per block, read in packs of VEC with UNROLL packs in flight.
// blockIdx.x: the outputs, BLOCK / GROUP of them; blockIdx.y: the split of a long row.
__device__ __forceinline__ State group_reduce(State value) {
  if constexpr (GROUP == BLOCK) return block_reduce<Op, BLOCK>(value);
  else return warp_reduce<Op, GROUP>(value);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_rows(const In* x, const bool* mask, Out* y, Reduce r) {
  i64 output = blockIdx.x * static_cast<i64>(BLOCK / GROUP) + threadIdx.x / GROUP, split = blockIdx.y;
  bool inside = output < r.outputs;
  i64 kept[3];
  r.kept.locate(static_cast<Index>(inside ? output : 0), kept);
  Context<A> c = {r.count, r.scale};
  i64 begin = split * r.chunk, end = inside ? min(r.length, begin + r.chunk) : 0;

  State value[VEC];
  accumulate<GROUP, VEC, UNROLL>(value, x + kept[0], mask + kept[1], r, c, begin + threadIdx.x % GROUP, end);
#pragma unroll
  for (int v = 1; v < VEC; ++v) value[0] = Op::combine(value[0], value[v]);
  State total = group_reduce(value[0]);
  if (inside && threadIdx.x % GROUP == 0) write(y, LAST ? kept[2] : split * r.outputs + output, total, r, c);
}
