// The first rung: one thread per element, which reads its whole row twice to find the row's maximum and sum.
// Every row is read 2 * cols times; only the caches help.
extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_naive(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  i64 element = blockIdx.x * static_cast<i64>(BLOCK) + threadIdx.x;
  if (element >= p.rows * p.cols) return;
  Row row(p, x, mask, y, element / p.cols);
  V max = Limits<V>::least();
  Total sum{};
  for (i64 c = 0; c < p.cols; ++c) max = Max<V>::combine(max, row.get(c));
  for (i64 c = 0; c < p.cols; ++c) sum = sum + row.power(c, max);
  row.put(element % p.cols, row.get(element % p.cols), max, sum);
}
