// Reduces small arrays of any strides, element by element. r.shares divides the threads among outputs.
// blockIdx.x: the outputs. blockIdx.y: the split of what is reduced, r.chunk elements; the last block to arrive adds up
// the splits' partial results. Prologue, besides that of reduce.cuh: UNROLL (elements of a thread in flight), BLOCK (the
// most threads of a block).
constexpr bool IN_CHAINS = Op::EXACT && !READS;

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_small(SOURCE x, const Tb* b, Tout* y, Tz* z, u64* tickets, State* partials, Launch launch, Reduce r) {
  wait_for_previous();
  Context<A> c = context(r, (r.chunk >> r.shares.lanes) + 1, r.packs, gridDim.y + 64);
  u32 lane = r.shares.lane(), step = 1u << r.shares.lanes, begin = blockIdx.y * static_cast<u32>(r.chunk);
  u32 output = (blockIdx.x << r.shares.wide) + r.shares.output(), outputs = r.outputs;
  u32 end = min(begin + static_cast<u32>(r.chunk), static_cast<u32>(r.packs));
  bool writes = lane == 0 && output < outputs;
  output = min(output, outputs - 1);  // past the last output, the last one is read again
  Offset from[3];
  r.kept.locate(output, from);
  State value = Op::identity();
  typename Either<IN_CHAINS, Sums<false, 1>, Elements<false, 1>>::type sum;
  for (u32 i = begin + lane; i < end; i += UNROLL * step) {
    Items<Tin, 1> item[UNROLL];
    Items<Tb, 1> other[UNROLL];
    bool ready[UNROLL];
#pragma unroll
    for (int n = 0; n < UNROLL; ++n) {
      ready[n] = i + n * step < end;
      if (!ready[n]) continue;
      Offset at[2];
      r.reduced.locate(i + n * step, at);
      item[n] = load_items<1>(x + from[0] + at[0]);
      if constexpr (OTHER != NONE) other[n] = load_items<1>(b + from[1] + at[1]);
    }
    if constexpr (IN_CHAINS) {
      sum.add(item, other, ready, c);
      continue;
    }
#pragma unroll
    for (int n = 0; n < UNROLL; ++n) {
      if (ready[n]) value = joined(value, item[n].get(0), other[n].get(0), c);
    }
  }
  let_next_start();
  if constexpr (IN_CHAINS) value = sum.total(c);
  bool split = gridDim.y > 1;
  u32 open = 0;
#pragma unroll 1
  while (true) {
    value = shared_reduce<Op, BLOCK>(value, r.shares);
    if (!split) {
      if (writes) open = write(y, z, from[2], value, r, c);
      break;
    }
    State* parts = partials + output * gridDim.y;
    if (writes) parts[blockIdx.y] = value;
    if (!last_block(tickets + blockIdx.x, gridDim.y, launch)) return;
    value = Op::identity();
#pragma unroll 1
    for (u32 n = lane; n < gridDim.y; n += step) value = Op::combine(value, parts[n]);
    split = false;
  }
  settle(open, x, b, y, z, r, c, r.packs, [&](int, Offset (&at)[3]) { copy(at, from); },
         [&](i64 i, Offset (&at)[2]) { r.reduced.locate(static_cast<u32>(i), at); });
}
