// Very long rows on chip: every element is read once. A team of p.team blocks shares a row. The launch is cooperative:
// all blocks are resident. They exchange their parts' maxima and sums through global memory, at a grid barrier of the
// team. A thread holds PACKS packs of its row in registers and, if STAGED, p.staged more in shared memory.
// blockIdx.x: the first block of every team, then the second of every team, …. A team takes every teams-th row. If
// teams take several rows, they start staggered, so that some write while others read.
constexpr int WARPS = BLOCK / 32;
constexpr int PHASES = 4, DELAY = 4000;  // cycles

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
softmax_grid(SOURCE x, const b8* mask, Tout* y, u64* barriers, State* states, Launch launch, Softmax p) {
  wait_for_previous();
  __shared__ State warps[WARPS], row_state;
  int thread = threadIdx.x, group = BLOCK, teams = gridDim.x / p.team;
  int team = blockIdx.x % teams, member = blockIdx.x / teams, round = 0;
  if (teams < p.rows) pause(team % PHASES * DELAY);
  for (Index row = team; row < static_cast<Index>(p.rows); row += teams, ++round) {
    Part part(row, member, x, mask, y, p);
    RowOnChip held;
    held.load(part, thread, group, p);
    State mine = held.gather(p);
    if (thread % 32 == 0) warps[thread / 32] = mine;
    __syncthreads();
    if (thread < 32) {  // only one warp of each block: all blocks read the same few lines
      State block = brought_together<WARPS>(warps, WARPS);
      State* meeting = states + (round % 2 * teams + team) * p.team;  // double buffer: others may still read the last
      if (thread == 0) {
        meeting[member] = block;
        meet(barriers + team, p.team, round, launch);
      }
      __syncwarp();
      block = brought_together(meeting, p.team);
      if (thread == 0) row_state = block;
    }
    __syncthreads();
    held.store(part, row_state, thread, group, p);
  }
}
