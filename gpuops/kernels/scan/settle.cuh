// Exact sums that are not sure at first.

// A chunk's, each with all that is known of it. Returns which of them are open still.
template <class V> __device__ __noinline__ u32 closely(int have, TileSums<V> engine, Expansion line, typename TileSums<V>::Local part, From x, Results results, Index number, const Scan& p) {
  Tile tile(number, p);
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

// Open ones: for one after the other, a warp adds up the elements of its line up to it in digits. open: the results of a
// thread, as bits.
template <class V> __device__ __noinline__ void settle(u32 open, From x, Results results, Index number, const Scan& p) {
  __shared__ Digits<V, false> sums[BLOCK / 32];
  auto& sum = sums[threadIdx.x / 32];
  int lane = threadIdx.x % 32;
  Tile tile(number, p);
  while (u32 lanes = __ballot_sync(0xffffffffu, open != 0)) {
    int owner = __ffs(lanes) - 1, bit = __shfl_sync(0xffffffffu, __ffs(open) - 1, owner);
    Share share(threadIdx.x - lane + owner, p);
    int i = share.chunk * EACH + bit, skipped = SHORT ? i / tile.length : 0;
    i64 end = tile.first + (i - skipped * tile.length) + (EXCLUSIVE ? 0 : 1);
    clear(sum);
    for (i64 e = lane; e < end; e += 32) {
      Offset at[2];
      tile.locate_in(share.unit * p.batch + skipped, e, share.column, p, at);
      note(sum, convert<double>(convert<V>(x[at[0]])));
    }
    V result = settled(sum);
    if (lane == owner) results.put(bit, convert<Tout>(result)), open &= open - 1;
  }
}
