// A short row in registers: one warp per row, each element read once. A lane holds PER_LANE packs of VEC elements.
// Wider packs move the same bytes in fewer instructions. BLOCK / 32 rows per block.
extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_warp(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  i64 index = blockIdx.x * static_cast<i64>(BLOCK / 32) + threadIdx.x / 32;
  if (index >= p.rows) return;
  int lane = threadIdx.x % 32;
  Row row(p, x, mask, y, index);
  Offset at[3], step = p.reduced.stride[1][REDUCED - 1] / VEC;
  V value[PER_LANE][VEC], max = Limits<V>::least();
  Total sum{};
  u32 chosen = 0;  // a bit for each element: whether it takes part
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    bool inside = lane + 32 * i < p.packs;
    Items<Tin, VEC> items;
    if (inside) {
      p.reduced.locate(static_cast<Index>(lane + 32 * i), at);
      items = load_items<VEC>(x + row.row[0] + at[0]);
    }
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      bool pick = inside && (MASK == NONE || nonzero(mask[row.row[1] + at[1] + v * step]));
      value[i][v] = pick ? scaled(items.get(v), p) : Limits<V>::least();
      chosen |= static_cast<u32>(pick) << (i * VEC + v);
    }
  }
#pragma unroll
  for (int i = 0; i < PER_LANE * VEC; ++i) max = greater_of(max, value[i / VEC][i % VEC]);
  max = warp_reduce<Max<V>>(max);
#pragma unroll
  for (int i = 0; i < PER_LANE * VEC; ++i) sum = sum + Row::power(value[i / VEC][i % VEC], chosen >> i & 1, max);
  sum = warp_reduce<Added<Total>>(sum);
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    if (lane + 32 * i >= p.packs) continue;
    Items<Tout, VEC> results;
#pragma unroll
    for (int v = 0; v < VEC; ++v) results.set(v, Row::result(value[i][v], chosen >> (i * VEC + v) & 1, max, sum));
    p.reduced.locate(static_cast<Index>(lane + 32 * i), at);
    store_items(y + row.row[2] + at[2], results);
  }
}
