// The maps of broadcast.cuh element by element, for any strides: for small arrays. A thread writes UNROLL elements that are
// BLOCK apart. Prologue, besides that of broadcast.cuh: RANK, UNROLL, BLOCK.
template <int K, class T> __device__ __forceinline__ T fetch(const T* from, const Offset* at, const Elements& p) {
  if constexpr (K < ARITY) return element(from, at[K], p.scalar[K]);
  else return T{};
}

extern "C" __global__ void __launch_bounds__(BLOCK)
broadcast_elements(Tout* y, const Ta* a, const Tb* b, const Tc* c, Elements p) {
  wait_for_previous();
  u32 first = blockIdx.x * (BLOCK * UNROLL) + threadIdx.x;
  Ta va[UNROLL];
  Tb vb[UNROLL];
  Tc vc[UNROLL];
  Offset at[UNROLL][ARITY + 1];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    if (first + u * BLOCK >= p.size) break;
    p.axes.locate(first + u * BLOCK, at[u]);
    va[u] = fetch<0>(a, at[u], p);
    vb[u] = fetch<1>(b, at[u], p);
    vc[u] = fetch<2>(c, at[u], p);
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    if (first + u * BLOCK >= p.size) break;
    y[at[u][ARITY]] = Map::apply(va[u], vb[u], vc[u], p.option);
  }
}
