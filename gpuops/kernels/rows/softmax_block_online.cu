// Online softmax, for rows that do not fit on chip: one pass finds maximum and sum, as pairs that are merged element by
// element (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018). Two passes over x instead of
// three.
extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_block_online(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  Row row(p, x, mask, y, blockIdx.x);
  Op::State state = Op::identity();
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) {
    if (row.chosen(c)) state = Op::combine(state, Op::map(row.get(c), Context<V>{{1}}));
  }
  auto whole = Op::finish<Op::State>(block_reduce<Op, BLOCK>(state), Context<V>{});
  for (i64 c = threadIdx.x; c < p.cols; c += BLOCK) row.put(c, row.get(c), whole.max, Of::of_rest(whole.rest));
}
