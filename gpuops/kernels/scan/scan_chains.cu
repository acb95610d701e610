// Scans of many lines.
//
// A warp has a chunk: EACH elements of 32 lines, one line for each lane, in registers. A team of warps takes the chunks of these
// lines in turn. Each adds up its own, waits for what comes before it from the warp that has the chunk before, hands on what comes
// after it, and only then makes its results: so the chain of warps has little to do between two chunks, and the rest is done while
// others have their turn.
//
// Elements of the next chunk are on their way to the warp's part of shared memory meanwhile. Results of lines that lie side by side
// in memory go there straight from registers, others (Y_ALONG) from shared memory.
//
// Parameters: struct Lanes (gpuops/plan/scans/lanes.py).
// Prologue: Op, Tin, Tval, Tres (of results), Tout (as which they are delivered), Index, Offset, KEPT, LINE (ranks), WARPS,
// RESIDENT, EXCLUSIVE, PREFIX (whether results are exact sums), SCALED (or products of floats), ORDERED (whether the order of
// merges matters), X_ALONG, Y_ALONG (whether lines do not lie side by side), X_BACK, Y_BACK (whether packs of elements along a
// line lie in the opposite order), SHARE (lines of a warp), DEPTH (chunks of a lane in shared memory), CHAINED (whether warps hand
// on what comes before a chunk).

// What comes before a chunk: before the group of siblings in the line's tree that it is one of, and of its elder siblings. (Merges
// without an order need no groups.)
struct Ordered {
  using Carry = Engine::Carry;
  Carry above, elders;
  static __device__ __forceinline__ Ordered none() { return {Engine::none(), Engine::none()}; }
  // What comes before chunk c + 1. fold: of each level above chunks, what the elder siblings have.
  __device__ __forceinline__ Ordered next(int c, const Carry& sum, Carry* fold, int levels) const {
    Carry all = c % RADIX == 0 ? sum : Engine::merge(elders, sum);
    if (c % RADIX != RADIX - 1) return {above, all};
    bool full = true;
    Carry before = Engine::none();
    for (int level = 1, place = c / RADIX; level < levels; ++level, place /= RADIX) {
      Carry& elder = fold[level * 32];
      if (full) {
        if (place % RADIX != 0) all = Engine::merge(elder, all);
        full = place % RADIX == RADIX - 1;
        elder = full ? Engine::none() : all;
      }
    }
    for (int level = levels - 1; level > 0; --level) before = Engine::merge(before, fold[level * 32]);
    return {before, Engine::none()};
  }
  __device__ __forceinline__ Carry before() const { return Engine::merge(above, elders); }
};
struct Unordered {
  using Carry = Engine::Carry;
  Carry all;
  static __device__ __forceinline__ Unordered none() { return {Engine::none()}; }
  __device__ __forceinline__ Unordered next(int, const Carry& sum, Carry*, int) const { return {Engine::merge(all, sum)}; }
  __device__ __forceinline__ Carry before() const { return all; }
};
using Link = Either<ORDERED, Ordered, Unordered>::type;

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
scan_chains(SOURCE x, Tout* y, const __grid_constant__ Lanes p) {
  wait_for_previous();
  extern __shared__ __align__(16) u64 memory[];
  __shared__ Link link[WARPS][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, size = p.size, team = warp / size, member = warp - team * size;
  char* mine = reinterpret_cast<char*>(memory) + warp * STAGED;
  Loading loading{reinterpret_cast<Tin*>(mine)};
  Tout* staged = reinterpret_cast<Tout*>(mine + DEPTH * In::BYTES);
  auto* fold = reinterpret_cast<Engine::Carry*>(reinterpret_cast<char*>(memory) + WARPS * STAGED) + (team * p.levels * 32 + lane);
  int after = team * size + (member + 1 < size ? member + 1 : 0), chunks = static_cast<int>((p.length + (EACH - 1)) / EACH);
  i64 strip = blockIdx.x * (WARPS / size) + team, stride = static_cast<i64>(gridDim.x) * (WARPS / size);
  if (strip >= p.strips) return;
  Line line(x, y, strip, p);
  int c = member;
  line.chunk(c, p).fetch(loading, p);
  for (bool begun = member > 0;; begun = true) {  // begun: another warp has had its turn
    Chunk chunk = line.chunk(c, p);
    Tin element[EACH];
    chunk.take<0>(element, loading, p);
    bool first = c == 0, last = c + 1 == chunks, more = strip + stride < p.strips;
    c += size;
    if (c < chunks) line.chunk(c, p).fetch(loading, p);
    else if (more) Line(x, y, strip + stride, p).chunk(c - chunks, p).fetch(loading, p);
    Engine::Found found;
    auto sum = Engine::sum(found, element, chunk.have);
    if (begun && size > 1) barrier_wait(1 + warp, 64);
    auto before = first ? Link::none() : link[warp][lane];
    if (first && ORDERED) {
      for (int level = 1; level < p.levels; ++level) fold[level * 32] = Engine::none();
    }
    if (!last) link[after][lane] = before.next(chunk.number, sum, fold, p.levels);
    if (size > 1 && (!last || more)) barrier_arrive(1 + after, 64);
    Results results{chunk, staged, Chunk::to(p)};
    Engine::finish(before.before(), found, Elements{results, element}, p);
    chunk.deliver(staged, p);
    if (c < chunks) continue;
    if (!more) break;
    c -= chunks, strip += stride, line = Line(x, y, strip, p);
  }
}
