// Scans of few lines, in parts, in one pass over memory, of ops whose states merge in any order.
//
// A block has a part of a strip of SHARE lines in shared memory: DEPTH times a chunk for each lane of each warp (chunks.cuh). Its
// warps add up their chunks, and the block publishes the total of the part; then it looks back (D. Merrill and M. Garland, "Single-pass
// parallel prefix scan with decoupled look-back", 2016): all warps at once read the totals of the parts before, up to one of which
// it is known what all parts so far add up to. Parts are taken in the order of a counter, so that none waits for one that nobody has
// begun. A block takes its next part when it has looked back, and loads it while it makes results.
//
// Parameters: struct Lanes (gpuops/plan/scans/lanes.py).
// Prologue: that of scan_chains.cu.

constexpr int BATCH = 2;  // parts that a warp looks at at once

// The sum of a line in the warp, for all lanes of the line, given those up to them.
__device__ __forceinline__ Engine::Carry of_line(const Engine::Carry& total) {
  if constexpr (!NARROW) return total;
  Place own;
  return shuffle(total, (Place::CHUNKS - 1) * SHARE + own.line);
}

struct Part {
  Index strip, number;
  __device__ __forceinline__ Part(Index part, const Lanes& p) {
    Index strips = static_cast<Index>(p.strips);
    number = part / strips, strip = part - number * strips;
  }
  // The first of a warp's chunks.
  __device__ __forceinline__ int chunk() const { return static_cast<int>((number * WARPS + threadIdx.x / 32) * DEPTH); }
};

// What numbers of warps add up to, in the form of a tree: those of the first `last` warps.
template <int COUNT = WARPS> __device__ __forceinline__ Engine::Carry all_of(const Engine::Carry (*board)[32], int last) {
  if constexpr (COUNT == 1) {
    return last > 0 ? (*board)[threadIdx.x % 32] : Engine::none();
  } else {
    constexpr int HALF = COUNT / 2;
    return Engine::merge(all_of<HALF>(board, last), all_of<COUNT - HALF>(board + HALF, last - HALF));
  }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
scan_parts(SOURCE x, Tout* y, u64* counter, u64* slot, const __grid_constant__ Launch launch, const __grid_constant__ Lanes p) {
  wait_for_previous();
  using Carry = Engine::Carry;
  extern __shared__ __align__(16) u64 memory[];
  __shared__ Carry board[WARPS][32];
  __shared__ bool known[WARPS][32];
  __shared__ Index taken;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Index count = static_cast<Index>(p.strips * p.parts);
  char* mine = reinterpret_cast<char*>(memory) + warp * STAGED;
  Tout* staged = reinterpret_cast<Tout*>(mine + DEPTH * In::BYTES);
  // What comes before a chunk in its warp, and what is known of its elements.
  auto* kept = reinterpret_cast<Carry*>(reinterpret_cast<char*>(memory) + WARPS * STAGED) + (warp * DEPTH * 32 + lane);
  auto* found = reinterpret_cast<Engine::Found*>(reinterpret_cast<char*>(memory) + WARPS * (STAGED + DEPTH * 32 * sizeof(Carry))) + (warp * DEPTH * 32 + lane);
  Published<Engine> totals(slot, launch);
  Place own;
  auto loading = [&](int d) { return Loading{reinterpret_cast<Tin*>(mine + d * In::BYTES)}; };
  auto fetch = [&](int d, const Line& line, const Part& part) {
    auto to = loading(d);
    line.chunk(part.chunk() + d, p).fetch(to, p);
  };
  auto take = [&](int d, const Line& line, const Part& part, Tin (&element)[EACH]) {
    Chunk chunk = line.chunk(part.chunk() + d, p);
    chunk.take<DEPTH>(element, loading(d), p);
    return chunk;
  };
  if (threadIdx.x == 0) taken = arrive(counter, launch);
  __syncthreads();
  Index number = taken;
  if (number >= count) return;
  {
    Part part(number, p);
    Line line(x, y, part.strip, p);
#pragma unroll 1
    for (int d = 0; d < DEPTH; ++d) fetch(d, line, part);
  }
  while (true) {
    Part part(number, p);
    Line line(x, y, part.strip, p);
    Carry all = Engine::none();
    copies_there<0>();
#pragma unroll 1
    for (int d = 0; d < DEPTH; ++d) {
      Tin element[EACH];
      Chunk chunk = take(d, line, part, element);
      Engine::Found here;
      Carry sum, before = Engine::none();
      if constexpr (NARROW) sum = Engine::sum(here, element, chunk.have, before);
      else sum = Engine::sum(here, element, chunk.have);
      kept[d * 32] = Engine::merge(all, before);
      if constexpr (PREFIX) found[d * 32] = here;
      all = Engine::merge(all, of_line(sum));
    }
    board[warp][lane] = all;
    __syncthreads();
    Carry total = all_of(board, WARPS), ahead = all_of(board, warp);
    auto place = [&](Index part_number) { return (part.strip * static_cast<Index>(p.parts) + part_number) * static_cast<Index>(SHARE) + own.line; };
    bool publishes = warp == 0 && own.chunk == 0 && line.there;
    if (publishes) totals.publish(place(part.number), total, part.number == 0 ? Published<Engine>::SO_FAR : 0);
    Carry before = Engine::none();
    bool done = !line.there;
#pragma unroll 1
    for (i64 end = static_cast<i64>(part.number); end > 0; end -= WARPS * BATCH) {
      const u64* from[BATCH];
      Carry each[BATCH], here = Engine::none();
      bool found_all = false;
#pragma unroll
      for (int n = 0; n < BATCH; ++n) {
        i64 back = end - 1 - (warp * BATCH + n);
        from[n] = back >= 0 && !done ? totals.at(place(static_cast<Index>(back))) : nullptr, each[n] = Engine::none();
      }
      u32 so_far = totals.read_either(from, each);
#pragma unroll
      for (int n = 0; n < BATCH; ++n) {
        if (!found_all) here = Engine::merge(each[n], here);
        found_all |= so_far >> n & 1;
      }
      __syncthreads();
      board[warp][lane] = here, known[warp][lane] = found_all;
      __syncthreads();
      if (!done) {
        int last = 0;  // warps that count
        while (last < WARPS && !done) done = known[last++][lane];
        before = Engine::merge(before, all_of(board, last));
      }
      if (__all_sync(0xffffffffu, done)) break;
    }
    if (publishes && part.number > 0) totals.publish(place(part.number), Engine::merge(before, total), Published<Engine>::SO_FAR);
    if (threadIdx.x == 0) taken = static_cast<u32>(atomicAdd(counter, u64(1)));
    __syncthreads();
    number = taken;
    Part later(min(number, count - 1), p);
    Line next(x, y, later.strip, p);
    before = Engine::merge(before, ahead);
#pragma unroll 1
    for (int d = 0; d < DEPTH; ++d) {
      Tin element[EACH];
      Chunk chunk = take(d, line, part, element);
      Engine::Found here;
      if constexpr (PREFIX) here = found[d * 32];
      if (number < count) fetch(d, next, later);
      Results results{chunk, staged, Chunk::to(p)};
      Engine::finish(Engine::merge(before, kept[d * 32]), here, Elements{results, element}, p);
      chunk.deliver(staged, p);
    }
    if (number >= count) return;
  }
}
