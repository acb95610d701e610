// Scans tile by tile, in one pass over memory. Blocks take tiles in the order of a counter, so that no tile waits for one that
// nobody has begun; whole lines, and lines through which a block goes tile by tile (WALK), need no counter.
// counter: of the tiles that are taken; slot: totals of tiles (both LOOK).

using OfChunks = Either<PREFIX, TileSums<Tval>, Plainly<Inexact>>::type;
using OfLines = Either<PREFIX, ExactShort<Tval>, Short<Inexact>>::type;

// Lines that a thread has whole, one after the other. Returns which results are open.
template <class Engine> __device__ __forceinline__ u32 scan_short(const Tin (&x)[EACH], int have, int length, Results& y, Tout nothing) {
  Engine engine;
  int at = 0;
  u32 opens = 0;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if (at == 0) engine.restart();
    bool open = false, start = EXCLUSIVE && at == 0;
    Tout found;
    if constexpr (EXCLUSIVE) found = start ? nothing : engine.result(open);
    engine.next(x[i]);
    if constexpr (!EXCLUSIVE) found = engine.result(open);
    y.next(i, found), opens |= static_cast<u32>(open && !start && i < have) << i;
    at = at + 1 == length ? 0 : at + 1;
  }
  return opens;
}

// A thread's elements and their results, one after the other.
struct Chunk {
  const Tin (&x)[EACH];
  Results& y;
  template <int, class F> __device__ __forceinline__ void scan(F f) const {
    y.here = y.to;
#pragma unroll
    for (int i = 0; i < EACH; ++i) y.next(i, f(x[i], i));
  }
};

// The totals of the chunks of a tile, and what is made of them.
constexpr bool RAKED = !ONE || ORDERED;
template <class Local> struct Totals {
  static constexpr int GROUPS = !RAKED ? BLOCK / 32 : LOOK ? BLOCK / 2 : BLOCK;
  Local chunk[BLOCK + BLOCK / 8], group[GROUPS];
  static __device__ __forceinline__ int at(int thread) { return thread + thread / 8; }  // without bank conflicts
};
// Makes of the totals of chunks what comes before each in its warp, and puts the totals of the last lines of warps in `group`. (A
// tile has one column, and merges have no order.)
template <class Engine> __device__ __forceinline__ typename Engine::Local scan_warp(typename Engine::Local total, int chunk, typename Engine::Local* group) {
  int lane = threadIdx.x % 32, reach = min(lane, chunk);
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    auto elder = shuffle_up(total, step);
    if (step <= reach) total = Engine::merge(elder, total);
  }
  auto before = shuffle_up(total, 1);
  if (lane == 31) group[threadIdx.x / 32] = total;
  return reach > 0 ? before : Engine::nothing();
}
// What comes before a thread's warp in its line.
template <class Engine> __device__ __forceinline__ typename Engine::Local before_warp(const typename Engine::Local* group, int chunk) {
  auto before = Engine::nothing();
  int warp = threadIdx.x / 32;
  for (int w = (static_cast<int>(threadIdx.x) - chunk) / 32; w < warp; ++w) before = Engine::merge(before, group[w]);
  return before;
}
// Makes of the totals of chunks what comes before each in its segment, and before that. A few threads do it, p.rakes for a
// line, with p.segment chunks each (ORDERED: a group), so that most instructions are those of one warp. made(line, total): of
// the whole line.
template <class Engine, class F> __device__ __forceinline__ void rake(Totals<typename Engine::Local>& totals, const Scan& p, F made) {
  using Local = typename Engine::Local;
  int wide = ONE ? 1 : static_cast<int>(p.columns.value), chunks = static_cast<int>(p.chunks.value);
  int rakes = p.rakes, all = p.units * wide * rakes, thread = threadIdx.x;
  if (thread / 32 * 32 >= all) return;
  int line = thread / rakes, rake = thread - line * rakes, unit = ONE ? line : line / wide, column = line - unit * wide;
  int begin = rake * p.segment, end = thread < all ? min(chunks, begin + p.segment) : begin;
  Local state = Engine::nothing(), before = Engine::nothing();
  for (int i = begin; i < end; ++i) {
    Local& here = totals.chunk[totals.at((unit * chunks + i) * wide + column)];
    Local next = Engine::merge(state, here);
    here = state, state = next;
  }
  if constexpr (ORDERED) {
    for (int i = 0; i + 1 < rakes; ++i) {
      Local elder = shuffle(state, thread % 32 / rakes * rakes + i);
      if (i < rake) before = Engine::merge(before, elder);
    }
  } else {
    Local sofar = state;
    for (int step = 1; step < rakes; step *= 2) {
      Local elder = shuffle(sofar, (thread - step) & 31);
      if (rake >= step) sofar = Engine::merge(elder, sofar), before = Engine::merge(elder, before);
    }
  }
  if (thread < all) totals.group[thread] = before;
  if (begin < chunks && end == chunks) made(line, Engine::merge(before, state));
}

constexpr bool APART = sizeof(Tin) != sizeof(Tout) && !DIRECT;  // elements and results of a thread have other places

// Elements of a tile come to their threads, which look at them and note sizes, those of two tiles in turn. `clean`: there are none
// from an earlier tile. (A block passes barriers.)
template <class Arrived> __device__ __forceinline__ void receive(Tin (&element)[EACH], int have, const Arrived& source, Tin* given, const Tile& tile, int turn, bool clean, const Share& mine, const Scan& p) {
  using Sums = TileSums<Tval>;
  int lines = p.units * static_cast<int>(p.columns.value);
  source.deposit(given, tile, p);
  if constexpr (PREFIX && !SHORT) {
    if (!clean) Sums::clear(lines, turn);
    if (!DIRECT || !clean) __syncthreads();
  } else if constexpr (!DIRECT) {
    __syncthreads();
  }
  source.take(element, have, given);
  if constexpr (PREFIX && !SHORT) {
    Sums::look(element, mine.unit < p.units, mine.line(p), turn);
    __syncthreads();
    if (!LOOK || WALK) Sums::clear(lines, 1 - turn);
  }
}

// The first half: from elements to the totals of chunks and of lines. total(column): of a line. (A block passes a barrier.)
template <class Engine, class F> __device__ __forceinline__ void begin(const Tin (&x)[EACH], int have, int turn, Totals<typename Engine::Local>& totals, const Share& mine, const Scan& p, F total) {
  using Local = typename Engine::Local;
  Local sum;
  if constexpr (PREFIX) {
    Engine engine(Engine::found_in(mine.unit < p.units ? mine.line(p) : 0, turn));
    sum = __all_sync(0xffffffffu, engine.plain) ? engine.template total<true>(x) : engine.template total<false>(x);
  } else {
    sum = Engine::total(x, have);
  }
  auto of_line = [&](int line, const Local& all) { total(line, Engine::carried(all, line, turn)); };
  Local& chunk = totals.chunk[totals.at(threadIdx.x)];
  if constexpr (RAKED) {
    chunk = sum;
    __syncthreads();
    rake<Engine>(totals, p, of_line);
  } else {
    chunk = scan_warp<Engine>(sum, mine.chunk, totals.group);
    __syncthreads();
    if (LOOK && threadIdx.x == 0) {
      Local all = totals.group[0];
      for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w) all = Engine::merge(all, totals.group[w]);
      of_line(0, all);
    }
  }
}

// The second half: results, given what comes before the tile. Returns which of them are open.
template <class Engine> __device__ __forceinline__ u32 end(const Tile& tile, Index number, int turn, const typename Engine::Carry& line, const Source& x, const Tin (&element)[EACH], int have, Results& y, const Totals<typename Engine::Local>& totals, const Share& mine, const Scan& p) {
  auto part = totals.chunk[totals.at(threadIdx.x)], group = Engine::nothing();
  if constexpr (!RAKED) group = before_warp<Engine>(totals.group, mine.chunk);
  else if (mine.unit < p.units) group = totals.group[mine.line(p) * p.rakes + mine.chunk / p.segment];
  bool first = mine.chunk == 0 && tile.first == 0;
  if constexpr (PREFIX) {
    auto found = Engine::found_in(mine.unit < p.units ? mine.line(p) : 0, turn);
    auto before = Engine::ready(line, found);
    Engine engine(found);
    Chunk elements{element, y};
    bool sure = true, exact = before.way == Engine::DOUBLES;
    part = Engine::merge(group, part);
    if constexpr (Engine::DOUBLE) {
      sure = engine.template pairs<1>(before.line, part, elements, first, p.nothing);
    } else if (__all_sync(0xffffffffu, exact)) {
      engine.template chain<EXCLUSIVE, Engine::DOUBLES, 1>(before.line, {before.line.s + (is_finite(part.high) ? part.high + part.low : part.high), 0}, elements, first, 0, p.nothing);
    } else if (__all_sync(0xffffffffu, engine.plain)) {
      sure = engine.template chain<EXCLUSIVE, Engine::CLOSE, 1>(before.line, part, elements, first, before.least, p.nothing);
      sure |= exact && SAME<Tval, float>;  // also in the middle between two results
    } else {
      sure = engine.template chain<EXCLUSIVE, Engine::CUT, 1>(before.line, part, elements, first, before.least, p.nothing);
    }
    return have == 0 || sure ? 0 : closely(have, engine, before.line, part, x + 0, y, number, p);
  } else {
    Engine::finish(LOOK ? Engine::merge(Engine::merge(line, group), part) : Engine::merge(group, part), Chunk{element, y}, first, p.nothing);
    return 0;
  }
}
// Delivers results.
__device__ __forceinline__ void leave(u32 open, const Tile& tile, Index number, const Source& x, Tout* y, Tout* staged, const Results& results, const Scan& p) {
  if constexpr (PREFIX) {
    if (__any_sync(0xffffffffu, open != 0)) settle<Tval>(open, x + 0, results, number, p);
  }
  if constexpr (!DIRECT) {
    __syncthreads();
    deliver<Y_LINEAR>(y, staged, tile, p);
  }
}

// Whole lines. Elements of the next tile are on their way meanwhile.
__device__ __forceinline__ void scan_lines(const Source& x, Tout* y, const Share& mine, const Scan& p) {
  Tin* given = staging<Tin>();
  Tout* staged = staging<Tout>();
  Index number = blockIdx.x, count = static_cast<Index>(p.count);
  Arriving source;
  source.fetch(x, Tile(number, p), mine, p);
  for (int turn = 0; number < count; number += gridDim.x, turn = 1 - turn) {
    Tile tile(number, p);
    int have = elements_of(mine, tile, p);
    Tin element[EACH];
    receive(element, have, source, given, tile, turn, number != blockIdx.x, mine, p);
    if (number + gridDim.x < count) source.fetch(x, Tile(number + gridDim.x, p), mine, p);
    if constexpr (APART) __syncthreads();
    Results results(y, staged, have, mine, tile, p);
    u32 open;
    if constexpr (SHORT) {
      open = scan_short<OfLines>(element, have, tile.length, results, p.nothing);
    } else {
      __shared__ Totals<typename OfChunks::Local> totals;
      begin<OfChunks>(element, have, turn, totals, mine, p, [](int, const OfChunks::Carry&) {});
      if constexpr (RAKED) __syncthreads();
      open = end<OfChunks>(tile, number, turn, OfChunks::none(), x, element, have, results, totals, mine, p);
    }
    leave(open, tile, number, x, y, staged, results, p);
    if constexpr (!DIRECT) __syncthreads();
  }
}

// Tiles of longer lines. A block takes a tile when it has all that it needs for the one before: others may wait for a tile as soon
// as it is taken.
__device__ __forceinline__ void scan_parts(const Source& x, Tout* y, u64* counter, u64* slot, const Share& mine, const Launch& launch, const Scan& p) {
  using Carry = typename OfChunks::Carry;
  __shared__ Totals<typename OfChunks::Local> totals;
  __shared__ Carry line[2][ONE ? 1 : BLOCK / 2];  // the totals of lines in the tile, and what comes before it
  __shared__ Index taken;
  char* memory = staging<char>();
  if (threadIdx.x == 0) taken = arrive(counter, launch);
  __syncthreads();
  Index number;
  while ((number = taken) < static_cast<Index>(p.count)) {
    Tile tile(number, p);
    int have = elements_of(mine, tile, p);
    Arriving source;
    Tin element[EACH];
    source.fetch(x, tile, mine, p);
    receive(element, have, source, reinterpret_cast<Tin*>(memory), tile, 0, false, mine, p);
    begin<OfChunks>(element, have, 0, totals, mine, p, [&](int column, const Carry& all) { line[0][column] = all; });
    if constexpr (ONE) __syncwarp();
    else __syncthreads();
    if (!ONE || threadIdx.x < 32) publish<OfChunks>([&](int column) { return line[0][column]; }, slot, tile, p, launch);
    look_back<OfChunks>(line[1], reinterpret_cast<Carry*>(memory + p.folds), slot, tile, p, launch);
    u32 next = 0;
    if (threadIdx.x == 0) next = static_cast<u32>(atomicAdd(counter, u64(1)));
    __syncthreads();
    Tout* staged = reinterpret_cast<Tout*>(memory);
    Results results(y, staged, have, mine, tile, p);
    u32 open = end<OfChunks>(tile, number, 0, line[1][mine.column], x, element, have, results, totals, mine, p);
    leave(open, tile, number, x, y, staged, results, p);
    if (threadIdx.x == 0) taken = next;
    __syncthreads();
  }
}

// All tiles of longer lines, one after the other. (There are lines enough for all blocks.)
__device__ __forceinline__ void walk_lines(const Source& x, Tout* y, const Share& mine, const Scan& p) {
  using Carry = typename OfChunks::Carry;
  __shared__ Totals<typename OfChunks::Local> totals;
  __shared__ Carry line[ONE ? 1 : BLOCK / 2];  // what comes before the tile
  char* memory = staging<char>();
  auto* fold = reinterpret_cast<Carry*>(memory + p.folds);  // of each level and column: what the elder siblings have
  int wide = ONE ? 1 : static_cast<int>(p.columns.value), strips = ONE ? 1 : static_cast<int>(p.strips.value), tiles = static_cast<int>(p.tiles.value);
  Index outer = ONE ? blockIdx.x : divide(static_cast<Index>(blockIdx.x), p.strips), number = outer * tiles * strips + (blockIdx.x - outer * strips);
  int levels = ORDERED ? p.levels : 1;  // of which merges have an order
  for (int i = threadIdx.x; i < levels * wide; i += blockDim.x) fold[i] = OfChunks::none();
  Arriving source;
  source.fetch(x, Tile(number, p), mine, p);
  for (int t = 0; t < tiles; ++t, number += strips) {
    Tile tile(number, p);
    int have = elements_of(mine, tile, p);
    Tin element[EACH];
    receive(element, have, source, reinterpret_cast<Tin*>(memory), tile, t % 2, t > 0, mine, p);
    if (t + 1 < tiles) source.fetch(x, Tile(number + strips, p), mine, p);
    begin<OfChunks>(element, have, t % 2, totals, mine, p, [&](int column, const Carry& all) {  // always the same thread for a column
      Carry before = fold[(levels - 1) * wide + column], node = all;
      for (int level = levels - 2; level >= 0; --level) before = OfChunks::merge(before, fold[level * wide + column]);
      line[column] = before;
      int place = t;
      for (int level = 0; level < levels; ++level, place /= RADIX) {
        Carry& elders = fold[level * wide + column];
        if (place % RADIX != 0 || !ORDERED) node = OfChunks::merge(elders, node);
        bool last = ORDERED && place % RADIX == RADIX - 1;
        elders = last ? OfChunks::none() : node;
        if (!last) break;
      }
    });
    __syncthreads();
    Tout* staged = reinterpret_cast<Tout*>(memory);
    Results results(y, staged, have, mine, tile, p);
    u32 open = end<OfChunks>(tile, number, t % 2, line[mine.column], x, element, have, results, totals, mine, p);
    leave(open, tile, number, x, y, staged, results, p);
    if constexpr (!DIRECT) __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
scan_tiles(SOURCE x, Tout* y, u64* counter, u64* slot, const __grid_constant__ Launch launch, const __grid_constant__ Scan p) {
  wait_for_previous();
  Share mine(threadIdx.x, p);
  if constexpr (WALK) walk_lines(x, y, mine, p);
  else if constexpr (LOOK) scan_parts(x, y, counter, slot, mine, launch, p);
  else scan_lines(x, y, mine, p);
}
