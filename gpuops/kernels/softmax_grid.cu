// Rows that are too long for a cluster, or alone: p.team blocks to a row, all of which run at once, tell each other their
// part's maximum and sum through memory. A thread holds PACKS packs of its row in registers and, if they are STAGED,
// p.staged more in shared memory.
// blockIdx.x: the first block of every team, the second, …; a team goes on to the row that is as many rows further on as
// there are teams. They begin one after the other, so that some write while others read.
constexpr int WARPS = BLOCK / 32;
constexpr int PHASES = 4, DELAY = 4000;  // cycles

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
softmax_grid(const Tin* x, const b8* mask, Tout* y, u64* barriers, State* states, Launch launch, Softmax p) {
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
    if (thread < 32) {  // one warp for the block: all blocks read the same few lines
      State block = brought_together<WARPS>(warps, WARPS);
      State* meeting = states + (round % 2 * teams + team) * p.team;  // of two: the slowest may still read the other
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
