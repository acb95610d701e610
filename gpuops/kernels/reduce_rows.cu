// Reduces along the contiguous axis: GROUP threads (a power of two up to 32, or the whole BLOCK) per output, BLOCK /
// GROUP outputs per block, read in packs of VEC with UNROLL packs in flight.
// blockIdx.x: the outputs, BLOCK / GROUP of them; blockIdx.y: the split of a long row.
__device__ __forceinline__ State group_reduce(State value) {
  if constexpr (GROUP == BLOCK) return block_reduce<Op, BLOCK>(value);
  else return warp_reduce<Op, GROUP>(value);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_rows(const In* x, const bool* mask, const void* shift, Out* y, Reduce r) {
  i64 output = blockIdx.x * static_cast<i64>(BLOCK / GROUP) + threadIdx.x / GROUP, split = blockIdx.y;
  bool inside = output < r.outputs;
  i64 kept[3], reduced[2];
  r.kept.locate(static_cast<Index>(inside ? output : 0), kept);
  Context<A> c = context(r, shift, inside ? output : 0);
  i64 end = inside ? min(r.length, (split + 1) * r.chunk) : 0;

  State value[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) value[v] = Op::identity();
  i64 i = split * r.chunk + threadIdx.x % GROUP;
  for (; i + (UNROLL - 1) * GROUP < end; i += UNROLL * GROUP) {
    Pack<In, VEC> pack[UNROLL];
    Pack<bool, VEC> chosen[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      r.reduced.locate(static_cast<Index>(i + u * GROUP), reduced);
      pack[u] = load<VEC>(x + kept[0] + reduced[0]);
      if constexpr (MASKED) chosen[u].item[0] = mask[kept[1] + reduced[1]];  // a mask is read one by one: VEC is 1
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (int v = 0; v < VEC; ++v)
        if (!MASKED || chosen[u].item[v]) value[v] = Op::combine(value[v], element(pack[u].item[v], c));
    }
  }
  for (; i < end; i += GROUP) {
    r.reduced.locate(static_cast<Index>(i), reduced);
    Pack<In, VEC> pack = load<VEC>(x + kept[0] + reduced[0]);
#pragma unroll
    for (int v = 0; v < VEC; ++v)
      if (!MASKED || mask[kept[1] + reduced[1]]) value[v] = Op::combine(value[v], element(pack.item[v], c));
  }
#pragma unroll
  for (int v = 1; v < VEC; ++v) value[0] = Op::combine(value[0], value[v]);
  State total = group_reduce(value[0]);
  if (inside && threadIdx.x % GROUP == 0) write(y, LAST ? kept[2] : split * r.outputs + output, total, r, c);
}
