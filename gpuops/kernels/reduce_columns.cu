// Reduces along an outer axis: neighbouring threads hold neighbouring outputs, so that reads are whole lines.
// A block is WIDE packs of VEC outputs by BLOCK / WIDE threads along the reduced axis, whose values meet in shared
// memory. blockIdx.x: the packs of outputs, WIDE of them; blockIdx.y: the split.
extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_columns(const In* x, const bool* mask, const void* shift, Out* y, Reduce r, i64 y_inner) {
  constexpr int DEEP = BLOCK / WIDE;
  __shared__ State cell[DEEP][WIDE * VEC];
  int wide = threadIdx.x % WIDE, deep = threadIdx.x / WIDE;
  i64 pack_index = blockIdx.x * static_cast<i64>(WIDE) + wide, split = blockIdx.y;
  bool inside = pack_index * VEC < r.outputs;
  i64 kept[3], reduced[2];
  r.kept.locate(static_cast<Index>(inside ? pack_index : 0), kept);
  Context<A> c[VEC];
  State value[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    c[v] = context(r, shift, inside ? pack_index * VEC + v : 0);
    value[v] = Op::identity();
  }
  i64 end = inside ? min(r.length, (split + 1) * r.chunk) : 0, i = split * r.chunk + deep;
  for (; i + (UNROLL - 1) * DEEP < end; i += UNROLL * DEEP) {
    Pack<In, VEC> pack[UNROLL];
    bool chosen[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      r.reduced.locate(static_cast<Index>(i + u * DEEP), reduced);
      pack[u] = load<VEC>(x + kept[0] + reduced[0]);
      if constexpr (MASKED) chosen[u] = mask[kept[1] + reduced[1]];  // a mask is read one by one: VEC is 1
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (int v = 0; v < VEC; ++v)
        if (!MASKED || chosen[u]) value[v] = Op::combine(value[v], element(pack[u].item[v], c[v]));
    }
  }
  for (; i < end; i += DEEP) {
    r.reduced.locate(static_cast<Index>(i), reduced);
    Pack<In, VEC> pack = load<VEC>(x + kept[0] + reduced[0]);
#pragma unroll
    for (int v = 0; v < VEC; ++v)
      if (!MASKED || mask[kept[1] + reduced[1]]) value[v] = Op::combine(value[v], element(pack.item[v], c[v]));
  }

  if constexpr (DEEP > 1) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) cell[deep][v * WIDE + wide] = value[v];
#pragma unroll
    for (int half = DEEP / 2; half > 0; half /= 2) {
      __syncthreads();
      if (deep < half) {
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
          value[v] = Op::combine(value[v], cell[deep + half][v * WIDE + wide]);
          cell[deep][v * WIDE + wide] = value[v];
        }
      }
    }
  }
  if (inside && deep == 0) {
#pragma unroll
    for (int v = 0; v < VEC; ++v)
      write(y, LAST ? kept[2] + v * y_inner : split * r.outputs + pack_index * VEC + v, value[v], r, c[v]);
  }
}
