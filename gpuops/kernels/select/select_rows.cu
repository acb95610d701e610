// out[…, j, …] = a[…, index[j], …]: `axes` has the dims of out, with the strides of out, of a without the selected dim, and of
// index; `step` is a's stride along that dim. A thread copies UNROLL packs of VEC elements, BLOCK packs apart.

extern "C" __global__ void __launch_bounds__(BLOCK) select_rows(
    const i64* __restrict__ index, const Tin* __restrict__ a, Tout* __restrict__ out, SelectRows p) {
  wait_for_previous();
  Index first = static_cast<Index>(blockIdx.x) * (BLOCK * UNROLL) + threadIdx.x, packs = static_cast<Index>(p.packs);
  Offset place[UNROLL][3];
  i64 from[UNROLL];
  Pack<Tin, VEC> pack[UNROLL];
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    if (first + i * BLOCK >= packs) continue;
    p.axes.locate(first + i * BLOCK, place[i]);
    from[i] = index[place[i][2]] * p.step + place[i][1];
  }
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    if (first + i * BLOCK < packs) pack[i] = load<VEC>(a + from[i]);
  }
#pragma unroll
  for (int i = 0; i < UNROLL; ++i) {
    if (first + i * BLOCK >= packs) continue;
    Pack<Tout, VEC> converted;
#pragma unroll
    for (int v = 0; v < VEC; ++v) converted.item[v] = convert<Tout>(pack[i].item[v]);
    store(out + place[i][0], converted);
  }
}
