// Scans tile by tile, in one pass over memory. Blocks take tiles in the order of a counter, so that no tile waits for one that
// nobody has begun; whole lines need no counter.
// counter: of the tiles that are taken; slot: totals of tiles (both LOOK).
using Inexact = Either<SCALED, Scaled<Op::A>, AnyOp>::type;
using OfChunks = Either<PREFIX, ExactPrefix<Tval>, Inexact>::type;
using OfLines = Either<PREFIX, ExactShort<Tval>, Short<Inexact>>::type;

// Lines that a thread has whole, one after the other. Returns which results are open.
template <class Engine> __device__ __forceinline__ u32 scan_short(const Tin (&x)[EACH], int have, int length, Tout* y, Tout nothing) {
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
    y[i] = found, opens |= static_cast<u32>(open && !start && i < have) << i;
    at = at + 1 == length ? 0 : at + 1;
  }
  return opens;
}

// Results of a chunk that comes after `before`.
// first: the chunk is the first of its line, whose first result is `nothing` if that is EXCLUSIVE.
template <class Engine> __device__ __forceinline__ void finish(const typename Engine::Carry& before, const Tin (&x)[EACH], bool first, Tout nothing, Tout* y) {
  auto state = before;
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if constexpr (EXCLUSIVE) y[i] = i == 0 && first ? nothing : Engine::finished(state);
    state = Engine::add(state, x[i]);
    if constexpr (!EXCLUSIVE) y[i] = Engine::finished(state);
  }
}
// The same of exact sums.
template <bool PLAIN, class V> __device__ __forceinline__ void finish(const ExactPrefix<V>& engine, Rounding<V>& rounding, typename ExactPrefix<V>::Local part, const Tin (&x)[EACH], bool first, Tout nothing, Tout* y) {
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    if constexpr (!EXCLUSIVE) part = engine.template add<PLAIN>(part, x[i]);
    Tout found = convert<Tout>(rounding.template operator()<PLAIN>(part));
    if constexpr (EXCLUSIVE) {
      part = engine.template add<PLAIN>(part, x[i]);
      if (i == 0 && first) found = nothing;
    }
    y[i] = found;
  }
}

// The totals of the chunks of a tile, and what is made of them.
template <class Local> struct Totals {
  static constexpr int GROUPS = LOOK ? BLOCK / 2 : BLOCK;
  Local chunk[BLOCK + BLOCK / 8], group[GROUPS];
  static __device__ __forceinline__ int at(int thread) { return thread + thread / 8; }  // without bank conflicts
};
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

// A thread's elements, and -0.0 in the place of those that there are not.
__device__ __forceinline__ void take(Tin (&x)[EACH], int have, const Tin* given) {
  const Tin* from = given + place(threadIdx.x, 0);
  if (have == EACH) {
#pragma unroll
    for (int i = 0; i < EACH; ++i) x[i] = from[i];
  } else {
#pragma unroll
    for (int i = 0; i < EACH; ++i) x[i] = i < have ? from[i] : convert<Tin>(-0.0f);
  }
}
constexpr bool APART = sizeof(Tin) != sizeof(Tout);  // elements and results of a thread have other places

// How many elements a thread has.
__device__ __forceinline__ int elements_of(const Share& mine, const Tile& tile, const Scan& p) {
  int reach = mine.unit < p.units && mine.column < tile.columns ? tile.reach(mine.unit, p) : 0;
  return min(EACH, max(0, reach - mine.chunk * EACH));
}

// The first half: from elements in shared memory to the totals of chunks and of lines. total(column): of a line.
template <class Engine, class F> __device__ __forceinline__ void begin(const Tile& tile, int piece, const Tin* given, Totals<typename Engine::Local>& totals, const Share& mine, const Scan& p, F total) {
  using Local = typename Engine::Local;
  int have = elements_of(mine, tile, p);
  Tin x[EACH];
  take(x, have, given);
  Local sum;
  if constexpr (PREFIX) {
    Engine engine;
    engine.prepare(x, mine.unit < p.units, mine.line(p), p.units * static_cast<int>(p.columns.value), ONE && LOOK, piece);
    sum = __all_sync(0xffffffffu, engine.plain) ? engine.template total<true>(x) : engine.template total<false>(x);
  } else {
    sum = Engine::total(x, have);
  }
  totals.chunk[totals.at(threadIdx.x)] = sum;
  __syncthreads();
  rake<Engine>(totals, p, [&](int line, const Local& all) {
    if constexpr (PREFIX) total(line, Engine::of_line(line, piece).carried(all));
    else total(line, all);
  });
}

// The second half: results in shared memory, given what comes before the tile. Returns which of them are open.
template <class Engine> __device__ __forceinline__ u32 end(const Tile& tile, Index number, int piece, const typename Engine::Carry& line, const Tin* x, const Tin* given, Tout* staged, const Totals<typename Engine::Local>& totals, const Share& mine, const Scan& p) {
  int have = elements_of(mine, tile, p);
  Tin element[EACH];
  take(element, have, given);
  if constexpr (APART) __syncthreads();
  auto part = totals.chunk[totals.at(threadIdx.x)], group = Engine::nothing();
  if (mine.unit < p.units) group = totals.group[mine.line(p) * p.rakes + mine.chunk / p.segment];
  Tout* y = staged + place(threadIdx.x, 0);
  bool first = mine.chunk == 0 && tile.first == 0;
  if constexpr (PREFIX) {
    auto engine = Engine::of_line(mine.unit < p.units ? mine.line(p) : 0, piece);
    part = Engine::merge(group, part);
    Rounding<typename Engine::Value> rounding(engine, line);
    if (__all_sync(0xffffffffu, engine.plain)) finish<true>(engine, rounding, part, element, first, p.nothing, y);
    else finish<false>(engine, rounding, part, element, first, p.nothing, y);
    return have == 0 || rounding.all_sure() ? 0 : closely(have, engine, line, part, x, staged, number, piece, p);
  } else {
    finish<Engine>(LOOK ? Engine::merge(Engine::merge(line, group), part) : Engine::merge(group, part), element, first, p.nothing, y);
    return 0;
  }
}
// Delivers results.
__device__ __forceinline__ void leave(u32 open, const Tile& tile, Index number, int piece, const Tin* x, Tout* y, Tout* staged, const Scan& p) {
  if constexpr (PREFIX) {
    if (__syncthreads_or(open != 0)) OpenSums<Tval>::settle(open, x, staged, number, piece, p);
  }
  __syncthreads();
  deliver<Y_LINEAR>(y, staged, tile, p);
}

// Whole lines. Elements of the next tile are on their way meanwhile.
__device__ __forceinline__ void scan_lines(const Tin* x, Tout* y, const Share& mine, const Scan& p) {
  Tin* given = staging<Tin>();
  Tout* staged = staging<Tout>();
  Index number = blockIdx.x, count = static_cast<Index>(p.count);
  Incoming<X_LINEAR> incoming;
  incoming.fetch(x, Tile(number, p), p);
  for (; number < count; number += gridDim.x) {
    Tile tile(number, p);
    incoming.deposit(given, tile, p);
    if (number + gridDim.x < count) incoming.fetch(x, Tile(number + gridDim.x, p), p);
    __syncthreads();
    u32 open;
    if constexpr (SHORT) {
      int have = elements_of(mine, tile, p);
      Tin element[EACH];
      take(element, have, given);
      if constexpr (APART) __syncthreads();
      open = scan_short<OfLines>(element, have, tile.length, staged + place(threadIdx.x, 0), p.nothing);
    } else {
      __shared__ Totals<typename OfChunks::Local> totals;
      begin<OfChunks>(tile, 0, given, totals, mine, p, [](int, const OfChunks::Carry&) {});
      __syncthreads();
      open = end<OfChunks>(tile, number, 0, OfChunks::none(), x, given, staged, totals, mine, p);
    }
    leave(open, tile, number, 0, x, y, staged, p);
    __syncthreads();
  }
}

// Tiles of longer lines, in pieces. A block takes a tile when it has all that it needs for the one before: others may wait for
// a tile as soon as it is taken.
__device__ __forceinline__ void scan_parts(const Tin* x, Tout* y, u64* counter, u64* slot, const Share& mine, const Launch& launch, const Scan& p) {
  using Carry = typename OfChunks::Carry;
  __shared__ Totals<typename OfChunks::Local> totals[PIECES];
  __shared__ Carry line[PIECES + 1][ONE ? 1 : BLOCK / 2];  // the totals of lines in each piece, and what comes before the tile
  __shared__ Index taken;
  char* memory = staging<char>();
  int wide = ONE ? 1 : static_cast<int>(p.columns.value);
  if (threadIdx.x == 0) taken = arrive(counter, launch);
  __syncthreads();
  Index number;
  while ((number = taken) < static_cast<Index>(p.count)) {
    Tile first(number, p);
    Incoming<X_LINEAR> incoming;
    incoming.fetch(x, first, p);
#pragma unroll 1
    for (int piece = 0; piece < PIECES; ++piece) {
      Tile tile(number, p, piece);
      Tin* given = reinterpret_cast<Tin*>(memory + piece * p.buffer);
      incoming.deposit(given, tile, p);
      if (piece + 1 < PIECES) incoming.fetch(x, Tile(number, p, piece + 1), p);
      __syncthreads();
      begin<OfChunks>(tile, piece, given, totals[piece], mine, p, [&](int column, const Carry& all) { line[piece][column] = all; });
    }
    if constexpr (ONE) __syncwarp();
    else __syncthreads();
    if (!ONE || threadIdx.x < 32) {
      publish<OfChunks>([&](int column) {
        Carry all = line[0][column];
#pragma unroll
        for (int piece = 1; piece < PIECES; ++piece) all = OfChunks::merge(all, line[piece][column]);
        return all;
      }, slot, first, p, launch);
    }
    look_back<OfChunks>(line[PIECES], reinterpret_cast<Carry*>(memory + p.folds), slot, first, p, launch);
    u32 next = 0;
    if (threadIdx.x == 0) next = static_cast<u32>(atomicAdd(counter, u64(1)));
    for (int column = threadIdx.x; column < wide; column += blockDim.x) {
      Carry before = line[PIECES][column];
#pragma unroll
      for (int piece = 0; piece < PIECES; ++piece) {
        Carry all = line[piece][column];
        line[piece][column] = before, before = OfChunks::merge(before, all);
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int piece = 0; piece < PIECES; ++piece) {
      Tile tile(number, p, piece);
      char* here = memory + piece * p.buffer;
      Tout* staged = reinterpret_cast<Tout*>(here);
      u32 open = end<OfChunks>(tile, number, piece, line[piece][mine.column], x, reinterpret_cast<Tin*>(here), staged, totals[piece], mine, p);
      leave(open, tile, number, piece, x, y, staged, p);
    }
    if (threadIdx.x == 0) taken = next;
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
scan_tiles(const Tin* x, Tout* y, u64* counter, u64* slot, const __grid_constant__ Launch launch, const __grid_constant__ Scan p) {
  wait_for_previous();
  Share mine(threadIdx.x, p);
  if constexpr (LOOK) scan_parts(x, y, counter, slot, mine, launch, p);
  else scan_lines(x, y, mine, p);
}
