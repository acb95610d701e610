// Small arrays, whatever their strides, element by element: each element is read once. Threads share rows as p.shares
// says; a thread holds up to EACH elements of its row in registers.
// blockIdx.x: the rows. Prologue, besides that of softmax.cuh: RowOp (see row_ops.cuh), APART (0), EACH, BLOCK (the most
// threads of a block).
using Base = RowOp::Base;
using Ending = RowOp::Ending;

extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_small(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  u32 lane = p.shares.lane(), step = 1u << p.shares.lanes, rows = p.rows, cols = p.cols;
  u32 index = (blockIdx.x << p.shares.wide) + p.shares.output();
  Row row(p, x, mask, y, min(index, rows - 1));  // past the last row, the last one is read again
  V value[EACH], max = Limits<V>::least();
  bool chosen[EACH];
  Offset to[EACH];
#pragma unroll
  for (int n = 0; n < EACH; ++n) {
    if (lane + n * step >= cols) break;
    Offset at[3];
    p.reduced.locate(lane + n * step, at);
    chosen[n] = MASK == NONE || nonzero(mask[row.row[1] + at[1]]);
    value[n] = scaled(element_at(x, row.row[0], at[0]), p);
    to[n] = row.row[2] + at[2];
  }
  if constexpr (RowOp::MAXIMUM) {
#pragma unroll
    for (int n = 0; n < EACH; ++n) {
      if (lane + n * step >= cols) break;
      if (MASK == NONE || chosen[n]) max = greater_of(max, RowOp::size(value[n]));
    }
    max = shared_reduce<Max<V>, BLOCK>(max, p.shares);
  }
  V key = Base::key(max);
  Base base(key);
  Total sum{};
#pragma unroll
  for (int n = 0; n < EACH; ++n) {
    if (lane + n * step >= cols) break;
    V z = MASK == NONE || chosen[n] ? value[n] : RowOp::left_out(), power = base.of(z);
    if constexpr (LEAVES_OUT) Of::add(sum, z, base, power);
    else sum = sum + Of::of(power, V(0));
    if constexpr (RowOp::KEEP) value[n] = power;
  }
  sum = shared_reduce<Added<Total>, BLOCK>(sum, p.shares);
  let_next_start();
  if (index >= rows) return;
  Ending ending = Ending::template of<true>(key, state_of(key, sum), p);
#pragma unroll
  for (int n = 0; n < EACH; ++n) {
    if (lane + n * step >= cols) break;
    y[to[n]] = convert<Tout>(MASK == NONE || chosen[n] ? ending(value[n]) : LOG ? Limits<V>::least() : V(0));
  }
}
