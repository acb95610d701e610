// The fourth rung, for lines of any length: each block has a part of a line, and parts are nodes of the tree of the second rung.
// Three launches of this kernel:
//   1. the state of each part (reads elements);
//   2. what comes before each part, in the place of these states (not ELEMENTS: its items are states, one block has a line's);
//   3. results (RESULTS; reads elements again).
// If a line has more parts than a block has items, the first two are made for parts of parts, too.
// blockIdx.x: all parts of a line, then those of the next. item: the states of the parts that are this launch's items (not
// ELEMENTS); part: those of its own parts or, RESULTS, what comes before each, if a line has several.
// Prologue, besides that of ladder.cuh: ELEMENTS, RESULTS.
extern "C" __global__ void __launch_bounds__(BLOCK)
scan_three_pass(SOURCE x, Tout* y, State* item, State* part, const __grid_constant__ Ladder p) {
  wait_for_previous();
  i64 index = blockIdx.x / p.parts, first = (blockIdx.x - index * p.parts) * (BLOCK * RADIX) + threadIdx.x * RADIX;
  State block = RESULTS && p.parts > 1 ? part[blockIdx.x] : nothing(), all;  // what comes before the block's part
  if constexpr (ELEMENTS) {
    Line line(p, x, y, index);
    Chunk chunk(line, first);
    State before = before_chunk(chunk.all(), block, all);
    if constexpr (RESULTS) chunk.finish(before);
  } else {
    State *own = item + index * p.length + first, mine = nothing(), elder = nothing();
    int have = static_cast<int>(max(i64(0), min(i64(RADIX), p.length - first)));
    for (int i = 0; i < have; ++i) mine = merge(mine, own[i]);
    State before = before_chunk(mine, block, all);
    for (int i = 0; RESULTS && i < have; ++i) {
      State next = merge(elder, own[i]);
      own[i] = merge(before, elder), elder = next;
    }
  }
  if (!RESULTS && threadIdx.x == 0) part[blockIdx.x] = all;
}
