// Exact sums that are not sure at first.

// A chunk's, each with all that is known of it. Returns which of them are open still.
template <class V> __device__ __noinline__ u32 closely(int have, TileSums<V> engine, Expansion line, typename TileSums<V>::Local part, const Tin* x, Results results, Index number, int piece, const Scan& p) {
  Tile tile(number, p, piece);
  Share mine(threadIdx.x, p);
  u32 opens = 0;
#pragma unroll 1
  for (int i = 0; i < have; ++i) {
    Offset at[2];
    tile.locate(mine.unit, mine.chunk * EACH + i, mine.column, p, at);
    auto next = engine.template add<false>(part, x[at[0]]);
    bool open = false, first = EXCLUSIVE && mine.chunk == 0 && tile.first == 0 && i == 0;
    V found = TileSums<V>::closely(line, EXCLUSIVE ? part : next, engine.off, open);
    results.put(i, first ? p.nothing : convert<Tout>(found));
    opens |= static_cast<u32>(open && !first) << i;
    part = next;
  }
  return opens;
}

// Open ones: for one after the other, the whole block adds up the elements up to it in digits.
template <class V> struct OpenSums {
  using All = Digits<V, false>;
  // Adds elements begin … end - 1 of a line.
  static __device__ void add(All& all, const Tin* x, int line, i64 begin, i64 end, int column, const Tile& tile, const Scan& p) {
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
      Offset at[2];
      tile.locate_in(line, i, column, p, at);
      double value = convert<double>(convert<V>(x[at[0]]));
      if (bit_cast<u64>(value) != u64(1) << 63) atomicOr(&all.seen, All::OTHER);
      if (is_finite(value)) all.add(value);
      else all.note(value);
    }
  }
  static __device__ void clear(All& all) {
    for (u32 i = threadIdx.x; i < sizeof all / 8; i += blockDim.x) reinterpret_cast<u64*>(&all)[i] = 0;
    __syncthreads();
  }
  static __device__ V result(All& all) {
    bool negative = all.settled();
    if (!all.finite()) return convert<V>(all.special());
    if (all.is_zero()) return convert<V>(all.seen & All::OTHER ? 0.0 : -0.0);
    i32 exponent;
    u64 one = mantissa(1.0, exponent);
    return nearest<V>(all.over(1, one, exponent), negative);
  }
  // open: the results of a thread, as bits.
  static __device__ __noinline__ void settle(u32 open, const Tin* x, Results results, Index number, int piece, const Scan& p) {
    __shared__ All all, before;
    __shared__ u32 next, bit;
    Tile tile(number, p, piece);
    int known = -1;  // the column that `before` is of
    while (true) {
      if (threadIdx.x == 0) next = ~0u;
      __syncthreads();
      if (open) atomicMin(&next, threadIdx.x);
      __syncthreads();
      u32 own = next;
      if (own == ~0u) return;
      if (threadIdx.x == own) bit = __ffs(open) - 1, open &= open - 1;
      __syncthreads();
      Share share(own, p);
      int i = share.chunk * EACH + bit, line = share.unit * p.batch, skipped = SHORT ? i / tile.length : 0;
      i64 begin = tile.first, end = begin + (i - skipped * tile.length) + (EXCLUSIVE ? 0 : 1);
      if (LOOK && known != share.column) {
        clear(before);
        add(before, x, line, 0, begin, share.column, tile, p);
        known = share.column;
      }
      clear(all);
      for (u32 n = threadIdx.x; LOOK && n < sizeof all / 8; n += blockDim.x) reinterpret_cast<u64*>(&all)[n] = reinterpret_cast<u64*>(&before)[n];
      __syncthreads();
      add(all, x, line + skipped, begin, end, share.column, tile, p);
      __syncthreads();
      if (threadIdx.x == own) results.put(bit, convert<Tout>(result(all)));
    }
  }
};
