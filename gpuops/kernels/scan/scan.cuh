// Scans: what a thread, a block and a grid have of a line, and how elements get there and results leave.
//
// A line is a tree of RADIX branches: chunks of EACH elements, groups of RADIX chunks, and so on. What comes before a
// node is what comes before its parent, merged with the node's elder siblings; results of a chunk go on from what comes
// before it, one element after the other. So results do not depend on the layout, nor on how many tiles a line has.
//
// A thread has a chunk of a line. A block has a tile: p.units units, each of p.span elements of p.columns neighbouring
// lines. Lines that are no longer than a unit are in it whole; those of at most EACH / 2 elements that are not side by side
// follow each other in a chunk (SHORT). Tiles of a longer line (LOOK) look back at the totals of earlier ones (look_back.cuh).
//
// Lines side by side that fill whole sectors of memory go straight to the registers of their threads (DIRECT). Other elements
// pass through shared memory, so that those who load them are not those who need them. What comes from memory, or goes there,
// moves in the order of memory if a tile is contiguous there (X_LINEAR, Y_LINEAR), else in the order of the scan.
//
// Parameters: struct Scan (gpuops/plan/scans/launch.py).
// Prologue: Op, Tin, Tval, Tres (of results), Tout (as which they are delivered), Index, Offset, KEPT, LINE (ranks), BLOCK, RESIDENT, X_LINEAR, Y_LINEAR, SHORT, LOOK,
// EXCLUSIVE, ONE (whether a tile has one column), SIMPLE (whether elements come in the order of threads), EVEN (whether tiles
// have columns in packs of 16), PREFIX (whether results are exact sums), SCALED (or products of floats), ORDERED (whether the order of merges matters),
// WALK (whether a block goes through all tiles of its lines), DIRECT.

// Elements of 16 bytes, and the packs of a chunk.
template <class T> constexpr int VEC_OF = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
template <class T> constexpr int PACKS = EACH / VEC_OF<T>;

// The place of element i of a thread in shared memory. SIMPLE: packs stay whole; a thread has them in an order of its own, so
// that eight neighbours read eight packs from different banks. Else a thread's elements are EACH + 1 places from its neighbour's.
template <class T> __device__ __forceinline__ int place(int thread, int i) {
  if constexpr (SIMPLE) {
    constexpr int VEC = VEC_OF<T>;
    int turn = PACKS<T> < 8 ? thread / (8 / min(8, PACKS<T>)) % PACKS<T> : thread % 8;
    return (thread * PACKS<T> + (i / VEC ^ turn)) * VEC + i % VEC;
  } else {
    return thread * (EACH + 1) + i;
  }
}
template <class T> __device__ __forceinline__ T* staging() {
  extern __shared__ __align__(16) u64 memory[];
  return reinterpret_cast<T*>(memory);
}

// A thread's part of a tile: chunk `chunk` of column `column` of unit `unit`.
struct Share {
  int column, chunk, unit;
  __device__ __forceinline__ Share(int thread, const Scan& p) {
    int rest = static_cast<int>(divide(static_cast<u32>(thread), p.columns));
    column = thread - rest * static_cast<int>(p.columns.value);
    unit = static_cast<int>(divide(static_cast<u32>(rest), p.chunks));
    chunk = rest - unit * static_cast<int>(p.chunks.value);
  }
  // The line, among those of a tile.
  __device__ __forceinline__ int line(const Scan& p) const { return unit * static_cast<int>(p.columns.value) + column; }
};

// A tile: where it is, and how much of it there is.
struct Tile {
  Index outer, strip, number;  // its first outer line, which part of the columns, and which tile of the line
  i64 first;                   // its first element of a line
  int columns, lines, length;  // columns and outer lines that there are, and elements of each: of those along a line

  __device__ __forceinline__ Tile(Index tile, const Scan& p) {
    Index rest = ONE ? tile : divide(tile, p.strips);
    strip = ONE ? 0 : tile - rest * static_cast<Index>(p.strips.value), outer = rest, number = 0, first = 0, length = static_cast<int>(p.length);
    columns = ONE ? 1 : static_cast<int>(min(static_cast<i64>(p.columns.value), p.inner - static_cast<i64>(strip) * static_cast<i64>(p.columns.value)));
    if constexpr (LOOK) {
      int span = static_cast<int>(p.span.value);
      outer = divide(rest, p.tiles), number = rest - outer * static_cast<Index>(p.tiles.value), lines = 1;
      first = static_cast<i64>(number) * span, length = static_cast<int>(max(i64(0), min(static_cast<i64>(span), p.length - first)));
    } else {
      outer *= p.units * p.batch, lines = static_cast<int>(min(static_cast<i64>(p.units * p.batch), p.outers - static_cast<i64>(outer)));
    }
  }
  // The elements that there are of a unit's part of a line.
  __device__ __forceinline__ int reach(int unit, const Scan& p) const {
    int there = lines - unit * p.batch;
    return SHORT ? max(0, min(p.batch, there)) * length : there > 0 ? length : 0;
  }
  // All elements, if the tile is contiguous.
  __device__ __forceinline__ int size() const { return lines * length * columns; }
  // Where an element lies: element i of the lines of a unit (SHORT: one after the other).
  __device__ __forceinline__ void locate(int unit, int i, int column, const Scan& p, Offset (&at)[2]) const {
    int line = unit * p.batch;
    if constexpr (SHORT) {
      int more = i / length;
      line += more, i -= more * length;
    }
    locate_in(line, first + i, column, p, at);
  }
  __device__ __forceinline__ void locate_in(int line, i64 i, int column, const Scan& p, Offset (&at)[2]) const {
    Index kept = (outer + line) * static_cast<Index>(p.inner) + strip * static_cast<Index>(p.columns.value) + column;
    Offset more[2];
    p.kept.locate(kept, at);
    p.line.locate(static_cast<Index>(i), more);
    at[0] += more[0], at[1] += more[1];
  }
  // Where a tile that is contiguous begins in an operand's memory.
  template <int OPERAND> __device__ __forceinline__ Offset lowest(const Scan& p) const {
    Offset at[2];
    locate_in(0, first + (p.backward[OPERAND] ? length - 1 : 0), 0, p, at);
    return at[OPERAND];
  }
};

// Element e of a tile, in the order of an operand's memory (LINEAR) or of the scan.
template <int OPERAND, bool LINEAR> struct Element {
  int unit, i, column;
  __device__ __forceinline__ Element(int e, const Tile& tile, const Scan& p) {
    int rest = ONE ? e : static_cast<int>(divide(static_cast<u32>(e), p.columns)), span = static_cast<int>(p.span.value);
    column = ONE ? 0 : e - rest * static_cast<int>(p.columns.value);
    unit = LOOK ? 0 : static_cast<int>(divide(static_cast<u32>(rest), p.span)), i = rest - unit * span;
    if (LINEAR && p.backward[OPERAND]) {  // each line runs backwards
      int line = SHORT ? i / tile.length : 0;
      i = 2 * line * tile.length + tile.length - 1 - i;
    }
  }
  template <class T> __device__ __forceinline__ int place(const Scan& p) const {
    int wide = ONE ? 1 : static_cast<int>(p.columns.value);
    return ::place<T>((unit * static_cast<int>(p.chunks.value) + i / EACH) * wide + column, i % EACH);
  }
  __device__ __forceinline__ bool there(const Tile& tile, const Scan& p) const {
    return unit < p.units && column < tile.columns && i < tile.reach(unit, p);
  }
};
template <class T, int OPERAND> __device__ __forceinline__ int place_of(int e, const Tile& tile, const Scan& p) {
  if constexpr (SIMPLE) return place<T>(e / EACH, e % EACH);
  else return Element<OPERAND, true>(e, tile, p).template place<T>(p);
}

// How many elements a thread has.
__device__ __forceinline__ int elements_of(const Share& mine, const Tile& tile, const Scan& p) {
  int reach = mine.unit < p.units && mine.column < tile.columns ? tile.reach(mine.unit, p) : 0;
  return min(EACH, max(0, reach - mine.chunk * EACH));
}
// Where a thread's first element lies.
template <int OPERAND> __device__ __forceinline__ Offset own(const Share& mine, const Tile& tile, const Scan& p) {
  Offset at[2];
  tile.locate_in(mine.unit, tile.first + mine.chunk * EACH, mine.column, p, at);
  return at[OPERAND];
}

// Elements on their way to shared memory, and results on theirs from there: those of a contiguous tile in packs of 16 bytes if
// these are aligned and the tile is full, else one by one.
template <class T, class P> __device__ __forceinline__ bool in_packs(const P& from, int size) {
  return VEC_OF<T> > 1 && size == static_cast<int>(blockDim.x) * EACH && address_of(from) % 16 == 0;
}
// Calls f(n, place) for each of a thread's packs of a full tile of lines in the order of threads. (Blocks have a multiple of 64
// threads, after which the order of packs comes again.)
template <class T, class F> __device__ __forceinline__ void each_pack(F f) {
  constexpr int VEC = VEC_OF<T>;
  int begin = place<T>(threadIdx.x / PACKS<T>, threadIdx.x % PACKS<T> * VEC), step = blockDim.x * VEC;
#pragma unroll
  for (int n = 0; n < PACKS<T>; ++n) f(n, begin + n * step);
}
// Calls f(n, v, place) for each of a thread's elements of a full tile in packs: element v of pack n.
template <class T, int OPERAND, class F> __device__ __forceinline__ void each_of_packs(const Tile& tile, const Scan& p, F f) {
  constexpr int VEC = VEC_OF<T>;
  int first = threadIdx.x * VEC, step = blockDim.x * VEC;
#pragma unroll
  for (int n = 0; n < PACKS<T>; ++n) {
    int here = place_of<T, OPERAND>(first + n * step, tile, p);
#pragma unroll
    for (int v = 0; v < VEC; ++v) f(n, v, EVEN ? here + v * (EACH + 1) : v == 0 ? here : place_of<T, OPERAND>(first + n * step + v, tile, p));
  }
}
// Calls f(n, e) for each of a thread's elements of a contiguous tile, one by one.
template <class F> __device__ __forceinline__ void each_of_tile(int size, F f) {
#pragma unroll
  for (int n = 0; n < EACH; ++n) {
    int e = threadIdx.x + n * blockDim.x;
    if (e < size) f(n, e);
  }
}
// Calls f(n, element) for each of a thread's elements of a tile in the order of the scan.
template <class F> __device__ __forceinline__ void each_scattered(const Tile& tile, const Scan& p, F f) {
#pragma unroll
  for (int n = 0; n < EACH; ++n) {
    Element<0, false> element(threadIdx.x + n * blockDim.x, tile, p);
    if (element.there(tile, p)) f(n, element);
  }
}

// Elements that pass through shared memory. A thread has those that it loads.
template <bool LINEAR> struct Incoming {
  static constexpr int VEC = VEC_OF<Tin>;
  Items<Tin, VEC> pack[PACKS<Tin>];
  bool packed;

  __device__ __forceinline__ void fetch(const Source& x, const Tile& tile, const Share&, const Scan& p) {
    if constexpr (LINEAR) {
      From from = x + tile.lowest<0>(p);
      packed = in_packs<Tin>(from, tile.size());
      if (packed) {
        from += threadIdx.x * VEC;
#pragma unroll
        for (int n = 0; n < PACKS<Tin>; ++n) pack[n] = load_items<VEC>(from + n * static_cast<int>(blockDim.x) * VEC);
      } else {
        each_of_tile(tile.size(), [&](int n, int e) { pack[n / VEC].set(n % VEC, from[e]); });
      }
    } else {
      each_scattered(tile, p, [&](int n, const Element<0, false>& element) {
        Offset at[2];
        tile.locate(element.unit, element.i, element.column, p, at);
        pack[n / VEC].set(n % VEC, x[at[0]]);
      });
    }
  }
  __device__ __forceinline__ void deposit(Tin* staged, const Tile& tile, const Scan& p) const {
    if constexpr (LINEAR) {
      if (packed) {
        if constexpr (SIMPLE) each_pack<Tin>([&](int n, int place) { keep(staged + place, pack[n]); });
        else each_of_packs<Tin, 0>(tile, p, [&](int n, int v, int place) { staged[place] = pack[n].get(v); });
      } else {
        each_of_tile(tile.size(), [&](int n, int e) { staged[place_of<Tin, 0>(e, tile, p)] = pack[n / VEC].get(n % VEC); });
      }
    } else {
      each_scattered(tile, p, [&](int n, const Element<0, false>& element) { staged[element.place<Tin>(p)] = pack[n / VEC].get(n % VEC); });
    }
  }
  // Calls f(x) for each element.
  template <class F> __device__ __forceinline__ void each(F f, const Tile& tile, const Scan& p) const {
    if constexpr (LINEAR) {
      if (packed) {
#pragma unroll
        for (int n = 0; n < EACH; ++n) f(pack[n / VEC].get(n % VEC));
      } else {
        each_of_tile(tile.size(), [&](int n, int) { f(pack[n / VEC].get(n % VEC)); });
      }
    } else {
      each_scattered(tile, p, [&](int n, const Element<0, false>&) { f(pack[n / VEC].get(n % VEC)); });
    }
  }
  // A pack in shared memory.
  static __device__ __forceinline__ void keep(Tin* to, const Items<Tin, VEC>& items) {
    *reinterpret_cast<typename Items<Tin, VEC>::Loaded*>(to) = bit_cast<typename Items<Tin, VEC>::Loaded>(items);
  }
  // A thread's own elements.
  __device__ __forceinline__ void take(Tin (&element)[EACH], int have, const Tin* staged) const {
    if (have < EACH) {
#pragma unroll
      for (int i = 0; i < EACH; ++i) element[i] = i < have ? staged[place<Tin>(threadIdx.x, i)] : convert<Tin>(PADDING);
    } else if constexpr (SIMPLE) {
#pragma unroll
      for (int n = 0; n < PACKS<Tin>; ++n) {
        Items<Tin, VEC> items = load_items<VEC>(staged + place<Tin>(threadIdx.x, n * VEC));
#pragma unroll
        for (int v = 0; v < VEC; ++v) element[n * VEC + v] = items.get(v);
      }
    } else {
#pragma unroll
      for (int i = 0; i < EACH; ++i) element[i] = staged[place<Tin>(threadIdx.x, i)];
    }
  }
};
// Elements that their own thread loads.
struct Own {
  Tin x[EACH];
  __device__ __forceinline__ void fetch(const Source& x_, const Tile& tile, const Share& mine, const Scan& p) {
    int have = elements_of(mine, tile, p);
    From from = x_ + (have ? own<0>(mine, tile, p) : 0);
    Offset step = p.line.stride[0][0];
    if (have == EACH) {
#pragma unroll
      for (int i = 0; i < EACH; ++i, from += step) x[i] = from[0];
    } else {
#pragma unroll
      for (int i = 0; i < EACH; ++i) x[i] = i < have ? from[i * step] : convert<Tin>(PADDING);
    }
  }
  __device__ __forceinline__ void deposit(Tin*, const Tile&, const Scan&) const {}
  __device__ __forceinline__ void take(Tin (&element)[EACH], int, const Tin*) const {
#pragma unroll
    for (int i = 0; i < EACH; ++i) element[i] = x[i];
  }
};
using Arriving = Either<DIRECT, Own, Incoming<X_LINEAR>>::type;

// Where a thread puts its results: in shared memory or, DIRECT, where they belong.
struct Results {
  static constexpr int VEC = VEC_OF<Tout>;
  Tout *to, *here;  // the first, and the next one
  Offset step;
  int have;
  Items<Tout, VEC> pack;
  __device__ __forceinline__ Results(Tout* y, Tout* staged, int have, const Share& mine, const Tile& tile, const Scan& p) : to(staged), step(1), have(have) {
    if constexpr (DIRECT) to = y + (have ? own<1>(mine, tile, p) : 0), step = p.line.stride[1][0];
    here = to;
  }
  // Result i, after result i - 1.
  __device__ __forceinline__ void next(int i, Tout result) {
    if constexpr (DIRECT) {
      if (i < have) *here = result;
      here += step;
    } else if constexpr (SIMPLE) {
      pack.set(i % VEC, result);
      if (i % VEC == VEC - 1) {
        *reinterpret_cast<typename Items<Tout, VEC>::Loaded*>(to + place<Tout>(threadIdx.x, i - (VEC - 1))) = bit_cast<typename Items<Tout, VEC>::Loaded>(pack);
      }
    } else {
      to[place<Tout>(threadIdx.x, i)] = result;
    }
  }
  // Another result i.
  __device__ __forceinline__ void put(int i, Tout result) const {
    if constexpr (DIRECT) to[i * step] = result;
    else to[place<Tout>(threadIdx.x, i)] = result;
  }
};
template <bool LINEAR> __device__ __forceinline__ void deliver(Tout* y, const Tout* staged, const Tile& tile, const Scan& p) {
  if constexpr (LINEAR) {
    constexpr int VEC = VEC_OF<Tout>;
    Tout* to = y + tile.lowest<1>(p);
    if (in_packs<Tout>(to, tile.size())) {
      to += threadIdx.x * VEC;
      int step = blockDim.x * VEC;
      if constexpr (SIMPLE) {
        each_pack<Tout>([&](int n, int place) { store_past_l1(to + n * step, load_items<VEC>(staged + place)); });
      } else {
        Items<Tout, VEC> pack;
        each_of_packs<Tout, 1>(tile, p, [&](int n, int v, int place) {
          pack.set(v, staged[place]);
          if (v == VEC - 1) store_past_l1(to + n * step, pack);
        });
      }
    } else {
      each_of_tile(tile.size(), [&](int, int e) { to[e] = staged[place_of<Tout, 1>(e, tile, p)]; });
    }
  } else {
    each_scattered(tile, p, [&](int, const Element<0, false>& element) {
      Offset at[2];
      tile.locate(element.unit, element.i, element.column, p, at);
      y[at[1]] = staged[element.place<Tout>(p)];
    });
  }
}
