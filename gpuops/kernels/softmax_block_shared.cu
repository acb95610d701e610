// The fourth rung: the block keeps its row in shared memory, so that x is read once. What limits it is the shared memory:
// the longer the rows, the fewer blocks a multiprocessor has, and all of them wait for memory at the same time.
extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_block_shared(const Tin* x, const bool* mask, Tout* y, Softmax p) {
  wait_for_previous();
  extern __shared__ V cell[];  // a thread's own, at c = threadIdx.x + BLOCK * i: what it writes there, no other reads
  Row row(p, x, mask, y, blockIdx.x);
  V max = Limits<V>::least(), sum = 0;
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) max = Max<V>::combine(max, cell[c] = row.get(c));
  max = block_reduce<Max<V>, BLOCK>(max);
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) sum += row.chosen(c) ? exp(cell[c] - max) : V(0);
  sum = block_reduce<Sum<V>, BLOCK>(sum);
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) row.put(c, cell[c], max, sum);
}
