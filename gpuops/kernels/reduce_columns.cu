// Reduces along an outer axis: neighbouring threads hold neighbouring outputs, so that reads are whole lines.
// A block is WIDE packs of VEC outputs by BLOCK / WIDE threads along the reduced axis, whose values meet in shared
// memory. blockIdx.x: the packs of outputs, WIDE of them; blockIdx.y: the split.
extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_columns(const In* x, const bool* mask, Out* y, Reduce r, i64 y_inner) {
  constexpr int DEEP = BLOCK / WIDE;
  __shared__ State cell[DEEP][WIDE * VEC];
  int wide = threadIdx.x % WIDE, deep = threadIdx.x / WIDE;
  i64 pack = blockIdx.x * static_cast<i64>(WIDE) + wide, split = blockIdx.y;
  bool inside = pack * VEC < r.outputs;
  i64 kept[3];
  r.kept.locate(static_cast<Index>(inside ? pack : 0), kept);
  Context<A> c = {r.count, r.scale};
  i64 begin = split * r.chunk, end = inside ? min(r.length, begin + r.chunk) : 0;

  State value[VEC];
  accumulate<DEEP, VEC, UNROLL>(value, x + kept[0], mask + kept[1], r, c, begin + deep, end);
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
      write(y, LAST ? kept[2] + v * y_inner : split * r.outputs + pack * VEC + v, value[v], r, c);
  }
}
