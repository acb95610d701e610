// The third rung: a warp per line, which it goes through 32 elements at a time, and keeps what comes before the next ones. The
// steps of the first rung within the warp, by shuffles: no shared memory, no barriers, and coalesced loads. Each element is
// read once; but 32 elements must be done before the next ones are asked for.
extern "C" __global__ void __launch_bounds__(BLOCK)
scan_warp(SOURCE x, Tout* y, const __grid_constant__ Ladder p) {
  wait_for_previous();
  Line line(p, x, y, blockIdx.x * static_cast<i64>(BLOCK / 32) + threadIdx.x / 32);
  int lane = threadIdx.x % 32;
  State before = nothing();
  for (i64 first = 0; first < p.length; first += 32) {
    State mine = line.get(first + lane);
    for (int step = 1; step < 32; step *= 2) {
      State elder = shuffle_up(mine, step);
      if (lane >= step) mine = merge(elder, mine);
    }
    mine = merge(before, mine);
    State elder = shuffle_up(mine, 1);
    bool open = line.put(first + lane, lane > 0 ? elder : before, mine);
    before = shuffle(mine, 31);
    settle(open, line, first + lane);
  }
}
