// Scans of few lines, in parts, in one pass over memory, of ops whose states merge in any order.
//
// A block has a part of a strip of p.share lines in shared memory: DEPTH times a chunk for each lane of each warp (chunks.cuh). Its
// warps add up their chunks, and the block publishes the total of the part; then it looks back (D. Merrill and M. Garland, "Single-pass
// parallel prefix scan with decoupled look-back", 2016): all warps at once read the totals of the parts before, up to one of which
// it is known what all parts so far add up to. Parts are taken in the order of a counter, so that none waits for one that nobody has
// begun. A block takes its next part when it has looked back, and loads it while it makes results.
//
// Parameters: struct Lanes (gpuops/plan/scans/lanes.py).
// Prologue: that of scan_chains.cu, NARROW (whether lanes share lines), DEPTH.

constexpr int BATCH = 4;  // parts that a warp looks at at once

// Makes of lanes' totals those of their lines up to there, and returns what comes before each lane in its warp.
__device__ __forceinline__ Engine::Carry before_lanes(Engine::Carry& total, const Lanes& p) {
  if constexpr (!NARROW) return Engine::none();
  int lane = threadIdx.x % 32, share = p.share;
  for (int step = share; step < 32; step *= 2) {  // lanes of a line are so far apart
    auto elder = shuffle_up(total, step);
    if (lane >= step) total = Engine::merge(elder, total);
  }
  auto before = shuffle_up(total, share);
  return lane >= share ? before : Engine::none();
}
// The same number of the last lane of a line, for all of its lanes.
__device__ __forceinline__ Engine::Carry of_line(const Engine::Carry& total, const Lanes& p) {
  if constexpr (!NARROW) return total;
  Place own(p);
  return shuffle(total, (own.chunks - 1) * p.share + own.line);
}

struct Part {
  i64 strip, number;
  __device__ __forceinline__ Part(i64 part, const Lanes& p) : strip(part % p.strips), number(part / p.strips) {}
  // The first of a warp's chunks.
  __device__ __forceinline__ int chunk() const { return static_cast<int>((number * WARPS + threadIdx.x / 32) * DEPTH); }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
scan_parts(const Tin* x, Tout* y, u64* counter, u64* slot, const __grid_constant__ Launch launch, const __grid_constant__ Lanes p) {
  wait_for_previous();
  using Carry = Engine::Carry;
  extern __shared__ __align__(16) u64 memory[];
  __shared__ Carry board[WARPS][32];
  __shared__ bool known[WARPS][32];
  __shared__ i64 taken;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  i64 count = p.strips * p.parts;
  char* mine = reinterpret_cast<char*>(memory) + warp * STAGED;
  Tout* staged = reinterpret_cast<Tout*>(mine + DEPTH * In::BYTES);
  // What comes before a chunk in its warp, and what is known of its elements.
  auto* kept = reinterpret_cast<Carry*>(reinterpret_cast<char*>(memory) + WARPS * STAGED) + (warp * DEPTH * 32 + lane);
  auto* found = reinterpret_cast<Engine::Found*>(reinterpret_cast<char*>(memory) + WARPS * (STAGED + DEPTH * 32 * sizeof(Carry))) + (warp * DEPTH * 32 + lane);
  Published<Engine> totals(slot, launch);
  Place own(p);
  auto loading = [&](int d) { return Loading{reinterpret_cast<Tin*>(mine + d * In::BYTES)}; };
  auto fetch = [&](int d, const Line& line, const Part& part) {
    auto to = loading(d);
    line.chunk(part.chunk() + d, p).fetch(to, p);
  };
  if (threadIdx.x == 0) taken = arrive(counter, launch);
  __syncthreads();
  i64 number = taken;
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
      Chunk chunk = line.chunk(part.chunk() + d, p);
      Tin element[EACH];
      chunk.take<DEPTH>(element, loading(d), p);
      Engine::Found here;
      auto sum = Engine::sum(here, element, chunk.have);
      auto before = before_lanes(sum, p);
      kept[d * 32] = Engine::merge(all, before);
      if constexpr (PREFIX) found[d * 32] = here;
      all = Engine::merge(all, of_line(sum, p));
    }
    board[warp][lane] = all;
    __syncthreads();
    Carry ahead = Engine::none(), total = Engine::none();
#pragma unroll 1
    for (int w = 0; w < WARPS; ++w) {
      if (w == warp) ahead = total;
      total = Engine::merge(total, board[w][lane]);
    }
    auto place = [&](i64 part_number) { return static_cast<Index>((part.strip * p.parts + part_number) * p.share + own.line); };
    bool publishes = warp == 0 && own.chunk == 0 && line.there;
    if (publishes) totals.publish(place(part.number), total, part.number == 0 ? Published<Engine>::SO_FAR : 0);
    Carry before = Engine::none();
    bool done = !line.there;
#pragma unroll 1
    for (i64 end = part.number; end > 0; end -= WARPS * BATCH) {
      const u64* from[BATCH];
      Carry each[BATCH], here = Engine::none();
      bool found_all = false;
#pragma unroll
      for (int n = 0; n < BATCH; ++n) {
        i64 back = end - 1 - (warp * BATCH + n);
        from[n] = back >= 0 && !done ? totals.at(place(back)) : nullptr, each[n] = Engine::none();
      }
      u32 so_far = totals.read_either(from, each);
#pragma unroll
      for (int n = 0; n < BATCH; ++n) {
        if (!found_all) here = Engine::merge(each[n], here), found_all = so_far >> n & 1;
      }
      __syncthreads();
      board[warp][lane] = here, known[warp][lane] = found_all;
      __syncthreads();
#pragma unroll 1
      for (int w = 0; w < WARPS; ++w) {
        if (!done) before = Engine::merge(board[w][lane], before), done = known[w][lane];
      }
      if (__all_sync(0xffffffffu, done)) break;
    }
    if (publishes && part.number > 0) totals.publish(place(part.number), Engine::merge(before, total), Published<Engine>::SO_FAR);
    if (threadIdx.x == 0) taken = static_cast<i64>(atomicAdd(counter, u64(1)) & 0xffffffffu);
    __syncthreads();
    number = taken;
    Part later(min(number, count - 1), p);
    Line next(x, y, later.strip, p);
    before = Engine::merge(before, ahead);
#pragma unroll 1
    for (int d = 0; d < DEPTH; ++d) {
      Chunk chunk = line.chunk(part.chunk() + d, p);
      Tin element[EACH];
      chunk.take<DEPTH>(element, loading(d), p);
      Engine::Found here;
      if constexpr (PREFIX) here = found[d * 32];
      if (number < count) fetch(d, next, later);
      Results results{chunk, staged, Chunk::to(p)};
      Engine::finish(Engine::merge(before, kept[d * 32]), here, Elements{results, element, p}, p);
      chunk.deliver(staged, p);
    }
    if (number >= count) return;
  }
}
