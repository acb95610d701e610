// Writes the elements of an expression to a dense array. A thread writes UNROLL packs of VEC elements, BLOCK packs apart.
extern "C" __global__ void __launch_bounds__(BLOCK)
evaluate(Tin* y, SOURCE x, Evaluate p) {
  wait_for_previous();
  Index first = blockIdx.x * static_cast<Index>(BLOCK * UNROLL) + threadIdx.x;
  typename Source::template Raw<VEC> raw[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    Index pack = first + u * BLOCK;
    if (pack < static_cast<Index>(p.packs)) raw[u] = load_raw<VEC>(x + pack * static_cast<i64>(VEC));
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    Index pack = first + u * BLOCK;
    if (pack < static_cast<Index>(p.packs)) store_past_l1(y + pack * VEC, x.template made<VEC>(raw[u]));
  }
  if constexpr (VEC > 1) {  // what is left of the last pack
    i64 rest = p.packs * VEC + first;
    if (rest < p.size) y[rest] = x[rest];
  }
}
