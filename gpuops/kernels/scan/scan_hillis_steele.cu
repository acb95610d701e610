// The first rung: a block per line, a thread per element. In every step each thread merges what it has with what the thread
// `step` places before it has: then it has 2 * step elements. log2(n) steps of n merges each: n log2(n) merges, where a
// single thread would need n. (W. D. Hillis and G. L. Steele, "Data parallel algorithms", 1986)
extern "C" __global__ void __launch_bounds__(BLOCK)
scan_hillis_steele(SOURCE x, Tout* y, const __grid_constant__ Ladder p) {
  wait_for_previous();
  __shared__ State cell[BLOCK];
  Line line(p, x, y, blockIdx.x);
  int t = threadIdx.x;
  State mine = cell[t] = line.get(t);
  __syncthreads();
  for (int step = 1; step < p.length; step *= 2) {
    State elder = t >= step ? cell[t - step] : nothing();
    __syncthreads();
    cell[t] = mine = merge(elder, mine);
    __syncthreads();
  }
  bool open = line.put(t, t > 0 ? cell[t - 1] : nothing(), mine);
  settle(open, line, t);
}
