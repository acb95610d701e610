// The fourth rung: the block keeps its row in shared memory, so that x is read once. Shared memory limits occupancy:
// the longer the rows, the fewer blocks a multiprocessor has, and all of them wait for memory at the same time.
extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_block_shared(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  extern __shared__ V cell[];  // c = threadIdx.x + BLOCK * i is written and read by that thread only: no barrier
  Row row(p, x, mask, y, blockIdx.x);
  V max = Limits<V>::least();
  Total sum{};
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) max = Max<V>::combine(max, cell[c] = row.get(c));
  max = block_reduce<Max<V>, BLOCK>(max);
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) sum = sum + Row::power(cell[c], row.chosen(c), max);
  sum = block_reduce<Added<Total>, BLOCK>(sum);
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) row.put(c, cell[c], max, sum);
}
