// Scans of lines that lie one after the other in memory, in one pass over it, of ops whose states merge in any order.
//
// All lines together are one sequence, cut into tiles wherever a line may begin. A thread has OWN elements, a warp a segment of a
// tile. All blocks are there together, and take tiles in turn (or there are as many tiles as blocks, which take them in the
// order in which they begin, so that none waits for one that has not begun). A block has several tiles at a time:
//
//   WARPS warps, step k      add up their segments of tile k; begin to load those of tile k + AHEAD;
//                            scan those of tile k - LATER, given what comes before them, and store the results
//   LOOKING warps, in turn   publish the total of tile k as soon as those of the segments are there; add up the totals of all
//                            tiles since the block's last one
//
// So no total waits for another one, and each reaches all blocks at once; they have the time of LATER steps for that. What a tile
// publishes is the total of its last line, as far as it goes.
//
// Parameters: struct Flat (gpuops/plan/scans/flat.py).
// Prologue: Op, Tin, Tval, Tres (of results), Tout (as which they are delivered), Index, OWN, WARPS, LOOKING, AHEAD, LATER, SHORT
// (whether some line begins in each warp), X_BACK, Y_BACK (whether memory is in the opposite order), EXCLUSIVE, PREFIX (whether
// results are exact sums).

constexpr int SEGMENT = 32 * OWN, TILE = WARPS * SEGMENT, STAGES = AHEAD + LATER + 1, RING = LATER + 2;

// ---- elements in shared memory

// A warp's segment of a tile, in memory and in shared memory.
template <class T, bool BACK, class P> struct Segment : Packs<T, OWN, BACK> {
  using Base = Packs<T, OWN, BACK>;
  using typename Base::Loaded;
  using Base::VEC, Base::PACKS, Base::first_pack, Base::element;
  // Where pack `lane` + 32 n in the order of memory is, given that of pack `lane`.
  static __device__ __forceinline__ int first_in_memory(int lane) {
    int q = BACK ? 32 * PACKS - 1 - lane : lane;
    return first_pack(q / PACKS) ^ q % PACKS;
  }
  static __device__ __forceinline__ int pack_in_memory(int first, int n) {
    int on = (BACK ? -32 : 32) * n;
    return ((PACKS > 4 ? first ^ n % (PACKS / 4) * (32 / PACKS) : first) + on) * VEC;  // as turns come again
  }

  P memory;  // where the array begins, or ends
  int moved;  // of the packs that the thread loads and stores
  bool aligned;
  __device__ __forceinline__ explicit Segment(P array) : memory(array), moved(first_in_memory(threadIdx.x % 32)) {
    memory += BACK ? -(static_cast<int>(threadIdx.x / 32 + 1) * SEGMENT - 1) : static_cast<int>(threadIdx.x / 32) * SEGMENT;
    aligned = address_of(memory) % sizeof(Loaded) == 0;
  }
  // The warp's segment of a tile in the array.
  __device__ __forceinline__ P at(i64 number) const { return memory + (BACK ? -number : number) * TILE; }
  __device__ __forceinline__ bool whole(i64 number, const Flat& p) const { return aligned && number < p.full; }
  static __device__ __forceinline__ i64 end(i64 number, const Flat& p) { return p.size - number * TILE - threadIdx.x / 32 * SEGMENT; }
  static __device__ __forceinline__ int in_memory(int e) { return BACK ? SEGMENT - 1 - e : e; }

  // Elements on their way to shared memory, and zeros in the place of those that there are not.
  __device__ __forceinline__ void fetch(T* to, i64 number, const Flat& p) const {
    int lane = threadIdx.x % 32;
    auto from = at(number);
    if (whole(number, p)) {
      auto packs = packs_from<VEC>(from) + lane;
#pragma unroll
      for (int n = 0; n < PACKS; ++n) copy_pack<VEC>(to + pack_in_memory(moved, n), packs + 32 * n);
    } else {
      i64 count = end(number, p);
#pragma unroll 1
      for (int e = lane; e < SEGMENT; e += 32) {
        T* here = to + element(e);
        if (e < count) copy_pack<1>(here, from + in_memory(e));
        else *here = T{};
      }
    }
  }
  // Delivers results.
  __device__ __forceinline__ void deliver(const T* staged, i64 number, const Flat& p) const {
    int lane = threadIdx.x % 32;
    T* to = at(number);
    if (whole(number, p)) {
      to += lane * VEC;
#pragma unroll
      for (int n = 0; n < PACKS; ++n) store_past_l1(to + 32 * n * VEC, load_items<VEC>(staged + pack_in_memory(moved, n)));
    } else {
      i64 count = end(number, p);
#pragma unroll 1
      for (int e = lane; e < SEGMENT; e += 32) {
        if (e < count) to[in_memory(e)] = staged[element(e)];
      }
    }
  }
};
using In = Segment<Tin, X_BACK, From>;
using Out = Segment<Tout, Y_BACK, Tout*>;
constexpr int STAGED = TILE * static_cast<int>(sizeof(Tin));  // bytes of a tile
constexpr bool APART = sizeof(Tout) != sizeof(Tin);  // results have memory of their own; else they take the places of elements
constexpr int GROUP = In::VEC > Out::VEC ? In::VEC : Out::VEC;

// Elements and results of a thread in shared memory.
struct Segments {
  const In& in;
  const Out& out;
  const Tin* from;
  Tout* to;
  // Calls f(x, i) for each element. UNROLLED: of how many groups of whole packs there is code.
  template <int UNROLLED, class F> __device__ __forceinline__ void each(F f) const {
#pragma unroll UNROLLED
    for (int g = 0; g < OWN; g += GROUP) {
#pragma unroll
      for (int n = 0; n < GROUP; n += In::VEC) {
        auto items = in.items(from, (g + n) / In::VEC);
#pragma unroll
        for (int v = 0; v < In::VEC; ++v) f(In::get(items, v), g + n + v);
      }
    }
  }
  // Puts f(x, i) in its place for each element.
  template <int UNROLLED, class F> __device__ __forceinline__ void scan(F f) const {
#pragma unroll UNROLLED
    for (int g = 0; g < OWN; g += GROUP) {
      Tout results[Out::VEC];
#pragma unroll
      for (int n = 0; n < GROUP; n += In::VEC) {
        auto items = in.items(from, (g + n) / In::VEC);
#pragma unroll
        for (int v = 0; v < In::VEC; ++v) {
          int here = (n + v) % Out::VEC;
          results[here] = f(In::get(items, v), g + n + v);
          if (here == Out::VEC - 1) out.put(to, (g + n + v) / Out::VEC, results);
        }
      }
    }
  }
};
// Groups of which there is code of their own: all where that is what most warps do.
constexpr int ALL = OWN / GROUP;
template <bool STARTS> constexpr int MANY = STARTS == SHORT ? ALL : 1;

// ---- lines

constexpr i32 FAR = 1 << 30;

// A tile of a block.
struct Tile {
  Index number;
  i64 before;  // elements of the line that goes on in it, in earlier tiles
  __device__ __forceinline__ Tile(Index number, const Flat& p) : number(number), before(static_cast<i64>(number) * TILE % p.length) {}
  // The block's next one.
  __device__ __forceinline__ Tile next(const Flat& p) const {
    Tile tile = *this;
    tile.number += gridDim.x, tile.before += p.step;
    if (tile.before >= p.length) tile.before -= p.length;
    return tile;
  }
  __device__ __forceinline__ bool there(const Flat& p) const { return number < p.count; }
  __device__ __forceinline__ i64 first() const { return static_cast<i64>(number) * TILE; }
  // The tile in which that line begins.
  __device__ __forceinline__ Index since() const { return static_cast<Index>((first() - before) / TILE); }
  // Elements before the first line that begins here, at most FAR.
  __device__ __forceinline__ i32 ahead(const Flat& p) const { return before ? static_cast<i32>(min(static_cast<i64>(FAR), p.length - before)) : 0; }
};

// What a thread knows of lines: which of its elements begin one, and which lanes have such elements.
struct Starts {
  u32 own, lanes;
  __device__ __forceinline__ Starts() : own(0), lanes(0) {}
  __device__ __forceinline__ explicit Starts(u32 own) : own(own), lanes(__ballot_sync(0xffffffffu, own != 0)) {}
  static __device__ __forceinline__ Starts of(const Tile& tile, const Flat& p) {
    i32 to_next = tile.ahead(p);
    if (to_next >= TILE) return Starts();
    to_next -= static_cast<i32>(threadIdx.x) * OWN;
    if (to_next < 0) {
      u32 lines = divide(static_cast<u32>(static_cast<i32>(p.near.value) - 1 - to_next), p.near);
      to_next += static_cast<i32>(lines * static_cast<u32>(p.near.value));
    }
    return Starts(to_next < OWN ? static_cast<u32>(p.comb) << to_next & (0xffffffffu >> (32 - OWN)) : 0);
  }
  // The first element of the last line that begins here.
  __device__ __forceinline__ int last() const { return own ? 31 - __clz(own) : 0; }
};
// Scans over the lanes of a warp; in some of them lines begin. Returns what comes before each lane, and sets `value` to that with
// the lane's own.
template <class Engine, int WIDTH, class T> __device__ __forceinline__ T scan_lanes(T& value, u32 starts, T nothing) {
  int lane = threadIdx.x % 32;
  u32 until = starts & (0xffffffffu >> (31 - lane));
  int reach = until ? lane - (31 - __clz(until)) : lane;
#pragma unroll
  for (int step = 1; step < WIDTH; step *= 2) {
    T elder = shuffle_up(value, step);
    if (step <= reach) value = Engine::merge(elder, value);
  }
  T before = shuffle_up(value, 1);
  return lane > 0 ? before : nothing;
}
// Whether a line begins in a lane before this one.
__device__ __forceinline__ bool fresh(u32 starts) { return starts & ((1u << threadIdx.x % 32) - 1); }

// ---- engines

// Any op.
struct FlatAny : AnyOp {
  struct Found {};     // what is known of a warp's elements
  using Kept = Local;  // what a thread keeps of what comes before it in its warp
  using Ready = Carry;  // what comes before a warp

  template <bool STARTS> static __device__ __forceinline__ Local total(const Segments& elements, int from) {
    Local state = nothing();
    elements.template each<MANY<STARTS>>([&](Tin x, int i) {
      if (!STARTS || i >= from) state = add(state, x);
    });
    return state;
  }
  // The total of a warp's elements, and what comes before each thread.
  static __device__ __forceinline__ Local scan(const Segments& elements, const Starts& starts, Found&, Kept& before) {
    Local all = SHORT || starts.lanes ? total<true>(elements, starts.last()) : total<false>(elements, 0);
    before = scan_lanes<FlatAny, 32>(all, starts.lanes, nothing());
    return all;
  }
  static __device__ __forceinline__ Carry carried(const Found&, const Local& total) { return total; }
  // Totals of tiles while many of them are added up.
  using Part = Carry;
  static __device__ __forceinline__ u32 size(const Carry&) { return 0; }
  static __device__ __forceinline__ Part part(const Carry& total, u32) { return total; }
  static __device__ __forceinline__ Part no_part() { return none(); }
  static __device__ __forceinline__ Carry sum(const Part& all) { return all; }

  static __device__ __forceinline__ Ready ready(const Carry& before, const Found&) { return before; }
  template <bool STARTS> static __device__ __forceinline__ void finish(Local state, u32 starts, const Segments& elements, Tout none_yet) {
    elements.template scan<MANY<STARTS>>([&](Tin x, int i) {
      bool start = STARTS && (starts >> i & 1);
      if (start) state = nothing();
      Tout last = start ? none_yet : finished(state);
      state = add(state, x);
      return EXCLUSIVE ? last : finished(state);
    });
  }
  static __device__ __forceinline__ void finish(const Ready& line, const Found&, const Kept& part, const Segments& elements, const Starts& starts, i64, From, const Flat& p) {
    Local state = fresh(starts.lanes) ? part : merge(line, part);
    if (SHORT || starts.lanes) finish<true>(state, starts.own, elements, p.nothing);
    else finish<false>(state, 0, elements, p.nothing);
  }
};

// Exact sums.
constexpr int LONGEST = OWN > 16 ? 10 : OWN > 8 ? 9 : 8;  // log2 of the elements of a segment, at most
template <class V> struct FlatSums : ExactPrefix<V, LONGEST> {
  using Base = ExactPrefix<V, LONGEST>;
  using typename Base::Local;
  using Carry = Expansion;
  using Found = typename Base::Extremes;
  using Kept = typename Either<Base::DOUBLE, Local, double>::type;  // elements that need not be cut have no low parts
  using typename Base::Way, typename Base::Ready;
  using Base::DOUBLES, Base::CLOSE, Base::CUT;

  using Base::merge;
  static __device__ __forceinline__ double merge(double a, double b) { return a + b; }

  template <bool STARTS, bool PLAIN> static __device__ __forceinline__ Local total(const Base& known, const Segments& elements, int from) {
    Local sum = Base::nothing();
    elements.template each<PLAIN ? MANY<STARTS> : 1>([&](Tin x, int i) {
      if (!STARTS || i >= from) sum = known.template add<PLAIN>(sum, x);
    });
    return sum;
  }
  template <bool PLAIN> static __device__ __forceinline__ Local total(const Base& known, const Segments& elements, const Starts& starts) {
    return SHORT || starts.lanes ? total<true, PLAIN>(known, elements, starts.last()) : total<false, PLAIN>(known, elements, 0);
  }
  static __device__ __forceinline__ Local whole(double sum) { return {sum, sum == 0 ? sum : 0}; }
  static __device__ __forceinline__ Local scan(const Base& known, const Segments& elements, const Starts& starts, Local& before) {
    if (known.plain) {
      double all = total<true>(known, elements, starts).high;
      before = whole(scan_lanes<FlatSums, 32>(all, starts.lanes, -0.0));
      return whole(all);
    }
    Local all = total<false>(known, elements, starts);
    before = scan_lanes<FlatSums, 32>(all, starts.lanes, Base::nothing());
    return all;
  }
  struct All {
    const Segments& elements;
    template <class F> __device__ __forceinline__ void each(F f) const {
      elements.template each<ALL>([&](Tin x, int) { f(x); });
    }
  };
  static __device__ __forceinline__ Local scan(const Segments& elements, const Starts& starts, Found& found, Kept& kept) {
    found = Found::of(All{elements}).of_warp();
    Local before, all = scan(Base(found), elements, starts, before);
    if constexpr (Base::DOUBLE) kept = before;
    else kept = before.high;
    return all;
  }
  static __device__ __forceinline__ Carry carried(const Found& found, const Local& total) { return Base(found).carried(total); }

  // Totals of tiles while up to 256 are added up: `high` is a multiple of a power of two, so that their sum is a double; `low`
  // is what is below, and `off` what that loses. (To cut `low` as well would lose far more: some results of long float64
  // vectors would then be added up from the beginning.)
  struct Part { double high, low, off; };
  static __device__ __forceinline__ u32 size(const Carry& total) { return is_finite(total.s) ? high_word(total.s) >> 20 & 0x7ff : 0; }
  static __device__ __forceinline__ Part no_part() { return {-0.0, -0.0, 0}; }
  static __device__ __forceinline__ Part part(const Carry& total, u32 most) {
    if (most >= 1983) return {total.s, total.e, Limits<double>::greatest()};  // too large for this: then nothing is known
    double up = bias(max(static_cast<i32>(most) - 1023, -900) + 10), lost;
    Part all;
    all.high = (total.s + up) - up, all.low = two_sum(total.s - all.high, total.e, lost), all.off = total.r + fabs(lost);
    return total.s == 0 && total.e == 0 ? Part{total.s, total.s, total.r} : all;
  }
  static __device__ __forceinline__ Part merge(const Part& a, const Part& b) {
    double lost, low = two_sum(a.low, b.low, lost);
    return {a.high + b.high, low, a.off + b.off + fabs(lost)};
  }
  static __device__ __forceinline__ Carry sum(const Part& all) {
    if (!is_finite(all.high)) return {all.high, 0, 0};
    if (all.high == 0 && all.low == 0) return {all.low, all.low, all.off};
    double rest, sum = two_sum(all.high, all.low, rest);
    return {sum, rest, all.off};
  }
  template <Way WAY> static __device__ __forceinline__ bool chain(const Expansion& line, const Local& part, const Found& found, const Segments& elements, const Starts& starts, float least, Tout nothing) {
    Base known(found);
    if (SHORT || starts.lanes) return known.template chain<true, WAY, WAY == CUT ? 1 : MANY<true>>(line, part, elements, starts.own, least, nothing);
    return known.template chain<false, WAY, WAY == CUT ? 1 : MANY<false>>(line, part, elements, 0, least, nothing);
  }
  static __device__ __forceinline__ void finish(const Ready& ready, const Found& found, const Kept& kept, const Segments& elements, const Starts& starts, i64 first, From from, const Flat& p) {
    Expansion line = fresh(starts.lanes) ? Base::none() : ready.line;
    Local part;
    if constexpr (Base::DOUBLE) {
      part = kept;
    } else {
      part = whole(kept);
      Base known(found);
      if (!known.plain) scan(known, elements, starts, part);
    }
    bool sure = true;
    if (ready.way == DOUBLES) chain<DOUBLES>(line, {line.s + (is_finite(part.high) ? part.high + part.low : part.high), 0}, found, elements, starts, 0, p.nothing);
    else if constexpr (Base::DOUBLE) sure = Base(found).template pairs<ALL>(line, part, elements, starts.own, p.nothing);
    else if (ready.way == CLOSE) sure = chain<CLOSE>(line, part, found, elements, starts, ready.least, p.nothing);
    else sure = chain<CUT>(line, part, found, elements, starts, ready.least, p.nothing);
    u32 open = first < p.size && !sure ? closely(found, line, part, starts.own, first, elements.to, from, p) : 0;
    while (u32 lanes = __ballot_sync(0xffffffffu, open != 0)) {
      int lane = __ffs(lanes) - 1, i = __shfl_sync(0xffffffffu, __ffs(open) - 1, lane);
      V exact = settled(__shfl_sync(0xffffffffu, first, lane) + i, from, p);
      if (threadIdx.x % 32 == lane) elements.to[Out::element(lane * OWN + i)] = convert<Tout>(exact), open &= open - 1;
    }
  }
  // Results of a thread, each with all that is known of it. Returns which of them are open still.
  static __device__ __noinline__ u32 closely(Found found, Expansion line, Local part, u32 starts, i64 first, Tout* to, From from, const Flat& p) {
    Base known(found);
    u32 opens = 0;
#pragma unroll 1
    for (int i = 0; i < OWN && first + i < p.size; ++i) {
      bool start = starts >> i & 1, open = false;
      if (start) line = Base::none(), part = Base::nothing();
      Local next = known.template add<false>(part, from[X_BACK ? -(first + i) : first + i]);
      Tout result = convert<Tout>(Base::closely(line, EXCLUSIVE ? part : next, known.off, open));
      if (EXCLUSIVE && start) result = p.nothing, open = false;
      to[Out::element(threadIdx.x % 32 * OWN + i)] = result;
      opens |= static_cast<u32>(open) << i;
      part = next;
    }
    return opens;
  }
  // A result that is open, from the digits of all elements of its line until there.
  static __device__ __noinline__ V settled(i64 element, From from, const Flat& p) {
    __shared__ Digits<V, false> sums[WARPS];
    auto& sum = sums[threadIdx.x / 32];
    clear(sum);
    i64 begin = element - element % p.length, end = element + (EXCLUSIVE ? 0 : 1);
    for (i64 e = begin + threadIdx.x % 32; e < end; e += 32) note(sum, Base::number(from[X_BACK ? -e : e]));
    return ::settled(sum);
  }
};
using Engine = Either<PREFIX, FlatSums<Tval>, FlatAny>::type;

// ---- tiles

// The total of tiles first … last - 1, as soon as they are published. Called by a warp; all of its lanes get it.
__device__ __forceinline__ Engine::Carry total_of(Index first, Index last, const Published<Engine>& totals) {
  constexpr int BATCH = 5;  // of 32 tiles: at most those of all blocks, on most GPUs
  auto sum = Engine::none();
#pragma unroll 1
  for (Index end = last; end > first; end -= min(end - first, static_cast<Index>(32 * BATCH))) {
    const u64* from[BATCH];
    Engine::Carry total[BATCH];
    u32 most = 0;
#pragma unroll
    for (int n = 0; n < BATCH; ++n) {
      Index back = threadIdx.x % 32 + 32 * n + 1;
      from[n] = back <= end - first ? totals.at(end - back) : nullptr, total[n] = Engine::none();
    }
    totals.read(from, total);
#pragma unroll
    for (int n = 0; n < BATCH; ++n) most = max(most, Engine::size(total[n]));
    most = greatest_of_warp(most);
    auto part = Engine::no_part();
#pragma unroll
    for (int n = 0; n < BATCH; ++n) part = Engine::merge(part, Engine::part(total[n], most));
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) part = Engine::merge(part, shuffle_xor(part, mask));
    sum = Engine::merge(Engine::sum(part), sum);
  }
  return sum;
}

// ---- blocks

// What the warps of a block tell each other, of the last RING tiles: what is in the segments, and what comes before them.
struct Board {
  Engine::Local total[RING][WARPS];  // of the last line in each segment
  bool starts[RING][WARPS];          // whether a line begins there
  Engine::Found found[RING][WARPS];
  Engine::Ready ready[RING][WARPS];
  Engine::Carry before[RING];        // and before the tile
};
// Barriers, of a tile each: the totals of its segments are there; what comes before it is; what comes before these is.
enum Barrier { TOTALS = 1, BEFORE = TOTALS + RING, READY = BEFORE + RING };
constexpr int SCANNING = 32 * WARPS;  // threads

// What the warps do that scan.
__device__ __forceinline__ void scan_segments(From x, Tout* y, char* memory, Tile tile, Board& board, const Flat& p) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  i64 step = gridDim.x;
  In in(x);
  Out out(y);
  auto stage = [&](int k) { return reinterpret_cast<Tin*>(memory) + (k % STAGES * TILE + warp * SEGMENT); };
  auto fetch = [&](int k, i64 number) {
    if (number < p.count) in.fetch(stage(k), number, p);
    copies_sent();
  };
  Engine::Kept part[LATER + 1];   // of tile k - i: what comes before a thread in its warp
  u32 starts[LATER + 1] = {};     // and which of its elements begin lines
  for (int k = 0; k < AHEAD; ++k) fetch(k, tile.number + k * step);
  for (int k = 0; k < LATER || tile.number - LATER * step < p.count; ++k, tile = tile.next(p)) {
    copies_there<AHEAD - 1>();
    __syncwarp();
#pragma unroll
    for (int i = LATER; i > 0; --i) part[i] = part[i - 1], starts[i] = starts[i - 1];
    if (tile.there(p)) {
      auto here = Starts::of(tile, p);
      Engine::Found found;
      auto total = Engine::scan(Segments{in, out, stage(k), nullptr}, here, found, part[0]);
      starts[0] = here.own;
      if (lane == 31) {
        board.total[k % RING][warp] = total, board.found[k % RING][warp] = found;
        board.starts[k % RING][warp] = here.lanes != 0;
      }
      barrier_arrive(TOTALS + k % RING, SCANNING + 32);
    }
    fetch(k + AHEAD, tile.number + AHEAD * step);  // when all warps begin a step, their last results are on the way
    if (int j = k - LATER; j >= 0) {
      i64 number = tile.number - LATER * step;
      Tout* to = APART ? reinterpret_cast<Tout*>(memory + STAGES * STAGED) + warp * SEGMENT : reinterpret_cast<Tout*>(stage(j));
      barrier_wait(READY + j % RING, SCANNING + 32);
      Engine::finish(board.ready[j % RING][warp], board.found[j % RING][warp], part[LATER], Segments{in, out, stage(j), to}, Starts(starts[LATER]), number * TILE + (warp * 32 + lane) * OWN, x, p);
      __syncwarp();
      out.deliver(to, number, p);
    }
  }
}

// What the warps do that look back.
__device__ __forceinline__ void look_back(const Published<Engine>& totals, Tile tile, Board& board, const Flat& p) {
  int lane = threadIdx.x % 32, turn = threadIdx.x / 32 - WARPS;
  for (int k = 0; tile.there(p); ++k, tile = tile.next(p)) {
    if (k % LOOKING != turn) continue;
    barrier_wait(TOTALS + k % RING, SCANNING + 32);
    auto total = Engine::none();
    bool start = false;
    if (lane < WARPS) total = Engine::carried(board.found[k % RING][lane], board.total[k % RING][lane]), start = board.starts[k % RING][lane];
    u32 starts = __ballot_sync(0xffffffffu, start);
    auto part = Engine::part(total, greatest_of_warp(Engine::size(total)));
    auto before = Engine::sum(scan_lanes<Engine, WARPS>(part, starts, Engine::no_part()));
    total = Engine::sum(shuffle(part, WARPS - 1));
    if (lane == 0) totals.publish(tile.number, total);

    Index since = tile.since(), last = tile.number - min(tile.number, static_cast<Index>(gridDim.x));
    auto carry = total_of(k == 0 ? since : max(since, last), tile.number, totals);
    if (k > 0) {
      barrier_wait(BEFORE + (k - 1) % RING, 64);
      if (since < last) carry = Engine::merge(board.before[(k - 1) % RING], carry);
    }
    if (lane == 0) board.before[k % RING] = carry;
    if (tile.next(p).there(p)) barrier_arrive(BEFORE + k % RING, 64);
    if (!fresh(starts)) before = Engine::merge(carry, before);
    if (lane < WARPS) board.ready[k % RING][lane] = Engine::ready(before, board.found[k % RING][lane]);
    barrier_arrive(READY + k % RING, SCANNING + 32);
  }
}

extern "C" __global__ void __launch_bounds__(SCANNING + 32 * LOOKING, 1)
scan_flat(SOURCE x, Tout* y, u64* counter, u64* slot, const __grid_constant__ Launch launch, const __grid_constant__ Flat p) {
  wait_for_previous();
  extern __shared__ __align__(16) u64 memory[];
  __shared__ Board board;
  __shared__ Index taken;
  Index number = blockIdx.x;
  if (gridDim.x == p.count) {
    if (threadIdx.x == 0) taken = arrive(counter, launch);
    __syncthreads();
    number = taken;
  }
  Tile tile(number, p);
  int warp = threadIdx.x / 32;
  if (warp < WARPS) scan_segments(x + 0, y, reinterpret_cast<char*>(memory), tile, board, p);
  else look_back(Published<Engine>(slot, launch), tile, board, p);
}
