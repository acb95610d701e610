// Writes the elements of an expression to a dense array. A thread writes a pack of VEC elements.
extern "C" __global__ void __launch_bounds__(BLOCK)
evaluate(Tin* y, SOURCE x, Evaluate p) {
  wait_for_previous();
  Index pack = blockIdx.x * static_cast<Index>(BLOCK) + threadIdx.x;
  if (pack < static_cast<Index>(p.packs)) store_past_l1(y + pack * VEC, load_items<VEC>(x + pack * static_cast<i64>(VEC)));
  if constexpr (VEC > 1) {  // what is left of the last pack
    i64 rest = p.packs * VEC + pack;
    if (rest < p.size) y[rest] = x[rest];
  }
}
