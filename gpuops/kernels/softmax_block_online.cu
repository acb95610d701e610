// The rung for rows that fit nowhere: maximum and sum together in one pass, by pairs that are merged element by element
// (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018). Two passes over x instead of three.
extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_block_online(const Tin* x, const bool* mask, Tout* y, Softmax p) {
  wait_for_previous();
  Row row(p, x, mask, y, blockIdx.x);
  State state = Op::identity();
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) {
    if (row.chosen(c)) state = Op::combine(state, Op::map(row.get(c), Context<V>{0, 1}));
  }
  state = block_reduce<Op, BLOCK>(state);
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) row.put(c, row.get(c), state.max, state.sum);
}
