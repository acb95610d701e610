// The maps of broadcast.cuh where operands broadcast along an outer dim. A thread writes the same pack of the output at
// many steps along that dim. It loads operands that broadcast along it only once. Rows are whole packs, or a step has as many
// of them as are (SCATTERED).
// Prologue, besides that of broadcast.cuh: RANK (of the other dims), FIXED_A, FIXED_B, FIXED_C (whether the operand
// broadcasts along the dim), UNROLL, BLOCK.
template <int K, int WAY, class T>
__device__ __forceinline__ void fetch(Items<T, VEC>& items, const T* from, const Offset* at, i32 step, const Stepped& p) {
  if constexpr (K < ARITY && WAY == SCATTERED) {
    u32 first = (blockIdx.x * BLOCK + threadIdx.x) * VEC;
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      Offset own[ARITY + 1];
      p.axes.locate(first + v, own);
      items.set(v, from[own[K]]);
    }
  } else if constexpr (K < ARITY) {
    items = read<WAY, false>(from, {at[K] + step * p.step[K], p.axes.stride[K][RANK - 1]}, p.scalar[K]);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
broadcast_stepped(Tout* y, const Ta* a, const Tb* b, const Tc* c, Stepped p) {
  wait_for_previous();
  u32 pack = blockIdx.x * BLOCK + threadIdx.x;
  if (pack >= p.packs) return;
  Offset at[ARITY + 1];
  p.axes.locate(pack * VEC, at);
  i32 start = static_cast<i32>(blockIdx.y) * p.chunk, steps = min(p.steps - start, p.chunk);
#pragma unroll
  for (int k = 0; k <= ARITY; ++k) at[k] += start * p.step[k];
  Items<Ta, VEC> pa[UNROLL];
  Items<Tb, VEC> pb[UNROLL];
  Items<Tc, VEC> pc[UNROLL];
  fetch<0, WAY_A>(pa[0], a, at, 0, p);
  fetch<1, WAY_B>(pb[0], b, at, 0, p);
  fetch<2, WAY_C>(pc[0], c, at, 0, p);
  for (i32 s = 0; s < steps; s += UNROLL) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (s + u >= steps) continue;
      if (!FIXED_A) fetch<0, WAY_A>(pa[u], a, at, s + u, p);
      if (!FIXED_B) fetch<1, WAY_B>(pb[u], b, at, s + u, p);
      if (!FIXED_C) fetch<2, WAY_C>(pc[u], c, at, s + u, p);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (s + u >= steps) continue;
      store_past_l1(y + at[ARITY] + (s + u) * p.step[ARITY],
                  mapped(pa[FIXED_A ? 0 : u], pb[FIXED_B ? 0 : u], pc[FIXED_C ? 0 : u], p.option));
    }
  }
}
