// The second rung: a block per line, and a tree. On the way up, each node merges what its children have; on the way down, each
// child learns what comes before it: what comes before its parent, merged with what its elder siblings have. Two merges for
// an element, however long the line. But neighbouring threads read elements that lie RADIX places apart.
extern "C" __global__ void __launch_bounds__(BLOCK)
scan_blelloch(SOURCE x, Tout* y, const __grid_constant__ Ladder p) {
  wait_for_previous();
  Line line(p, x, y, blockIdx.x);
  Chunk chunk(line, threadIdx.x * RADIX);
  State all;
  chunk.finish(before_chunk(chunk.all(), nothing(), all));
}
