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

// A thread's chunk: elements `first` and those after it, as many as there are, in registers.
struct Chunk {
  const Line& line;
  i64 first;
  Tin x[RADIX];

  __device__ Chunk(const Line& line, i64 first) : line(line), first(first) {
#pragma unroll
    for (int i = 0; i < RADIX; ++i) if (first + i < line.length) x[i] = line.x[line.place<0>(first + i)];
  }
  __device__ State get(int i) const { return first + i < line.length ? States::of(x[i]) : nothing(); }
  __device__ State all() const {
    State all = nothing();
#pragma unroll
    for (int i = 0; i < RADIX; ++i) all = merge(all, get(i));
    return all;
  }
  // The last step down: from a chunk to its elements, whose results it writes. (A block passes barriers.)
  __device__ void finish(State before) const {
    u32 open = 0;
#pragma unroll
    for (int i = 0; i < RADIX; ++i) {
      State up_to = merge(before, get(i));
      open |= u32(line.put(first + i, before, up_to)) << i;
      before = up_to;
    }
    settle(open, line, first);
  }
};
