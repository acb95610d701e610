// A short row in registers: one warp per row, PER_LANE elements a lane, each element read once.
// Rows of up to 32 * PER_LANE elements; BLOCK / 32 rows a block.
extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_warp(const Tin* x, const bool* mask, Tout* y, SoftmaxRows p) {
  i64 index = blockIdx.x * static_cast<i64>(BLOCK / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  bool inside = index < p.rows;
  Row row(p, x, mask, y, inside ? index : 0);
  V value[PER_LANE], max = Limits<V>::least(), sum = 0;
  u32 chosen = 0;
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    bool pick = false;
    value[i] = inside && lane + 32 * i < p.cols ? row.get(lane + 32 * i, pick) : Limits<V>::least();
    chosen |= static_cast<u32>(pick) << i;
  }
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) max = Max<V>::combine(max, value[i]);
  max = warp_reduce<Max<V>>(max);
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) sum += chosen >> i & 1 ? exp(value[i] - max) : V(0);
  sum = warp_reduce<Sum<V>>(sum);
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    if (!inside || lane + 32 * i >= p.cols) continue;
    i64 at[3];
    p.reduced.locate(static_cast<Index>(lane + 32 * i), at);
    y[row.row[2] + at[2]] = Row::result(value[i], chosen >> i & 1, max, sum);
  }
}
