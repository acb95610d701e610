// The third rung: still one block per row and three passes over it. Neighbouring threads read neighbouring elements, so
// that a warp's 32 loads are coalesced into one line. Warp shuffles replace the tree: one barrier for each reduction,
// not log2(BLOCK).
extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_block_coalesced(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  Row row(p, x, mask, y, blockIdx.x);
  V max = Limits<V>::least();
  Total sum{};
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) max = Max<V>::combine(max, row.get(c));
  max = block_reduce<Max<V>, BLOCK>(max);
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) sum = sum + row.power(c, max);
  sum = block_reduce<Added<Total>, BLOCK>(sum);
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) row.put(c, row.get(c), max, sum);
}
