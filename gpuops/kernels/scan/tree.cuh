// Blelloch's two sweeps over a tree of RADIX branches (G. E. Blelloch, "Prefix sums and their applications", 1990; there it has
// two): a thread has a chunk of RADIX elements, RADIX threads have a group, the block has RADIX groups.
constexpr int RADIX = 16;
static_assert(BLOCK == RADIX * RADIX, "a thread has a chunk");

// Makes of the states of RADIX siblings that of the elder ones of each. Returns that of all.
__device__ State elders(State* sibling) {
  State all = nothing();
  for (int i = 0; i < RADIX; ++i) {
    State next = merge(all, sibling[i]);
    sibling[i] = all, all = next;
  }
  return all;
}
// What comes before a thread's chunk, given its state and what comes before the block's. all: the state of the whole block, for
// thread 0.
__device__ State before_chunk(const State& mine, const State& block, State& all) {
  __shared__ State chunk[BLOCK], group[RADIX];
  int t = threadIdx.x;
  chunk[t] = mine;
  __syncthreads();
  if (t < RADIX) group[t] = elders(chunk + t * RADIX);  // up: from chunks to groups
  __syncthreads();
  if (t == 0) all = elders(group);  // up: from groups to the block
  __syncthreads();
  return merge(merge(block, group[t / RADIX]), chunk[t]);  // down: from the block to a group, from there to a chunk
}

// The state of a chunk, whose elements are `first` and those after it.
__device__ State of_chunk(const Line& line, i64 first) {
  State all = nothing();
  for (int i = 0; i < RADIX; ++i) all = merge(all, line.get(first + i));
  return all;
}
// The last step down: from a chunk to its elements, whose results it writes. (A block passes barriers.)
__device__ void finish(const Line& line, i64 first, State before) {
  u32 open = 0;
  for (int i = 0; i < RADIX; ++i) {
    State up_to = merge(before, line.get(first + i));
    open |= u32(line.put(first + i, before, up_to)) << i;
    before = up_to;
  }
  settle(open, line, first);
}
