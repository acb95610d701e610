// Writes the elements of an expression to a dense array; those of several expressions to arrays that are p.apart elements
// apart. A thread writes a pack of VEC elements.
template <int N, class Made> __device__ __forceinline__ void write(Tin* y, const Made& made, const Evaluate& p) {
  constexpr int K = SEVERAL<decltype(made.get(0))>;
  if constexpr (K > 0) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      Items<Tin, N> part;
#pragma unroll
      for (int v = 0; v < N; ++v) part.set(v, made.get(v).of[k]);
      store_past_l1(y + k * p.apart, part);
    }
  } else {
    store_past_l1(y, made);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
evaluate(Tin* y, SOURCE x, Evaluate p) {
  wait_for_previous();
  Index pack = blockIdx.x * static_cast<Index>(BLOCK) + threadIdx.x;
  if (pack < static_cast<Index>(p.packs)) write<VEC>(y + pack * VEC, load_items<VEC>(x + pack * static_cast<i64>(VEC)), p);
  if constexpr (VEC > 1) {  // what is left of the last pack
    i64 rest = p.packs * VEC + pack;
    if (rest < p.size) write<1>(y + rest, load_items<1>(x + rest), p);
  }
}
