// What the kernels share whose threads go along rows. Prologue, besides that of softmax_on_chip.cuh: RAGGED.
// RAGGED: a row may begin and end at any element. The head and tail around its aligned packs are held element by
// element.
// FUNNEL: x and y are aligned differently. Packs are aligned in y, and the aligned packs of x around each of them must
// not reach outside the row.

// A block's part of a row: packs begin … end - 1 and, for the block of rank 0, the head and tail elements.
struct Part {
  From x;
  const b8* mask;
  Tout* y;
  Offset head, tail, step;  // elements before and after the packs; stride of the mask
  Index begin, end;
  int singles;

  __device__ __forceinline__ Part(Index row, int rank, const Source& x_, const b8* mask_, Tout* y_, const Softmax& p) {
    Offset at[3];
    p.kept.locate(row, at);
    x = x_ + at[0], mask = mask_ + at[1], y = y_ + at[2];
    step = p.reduced.stride[1][REDUCED - 1] / (RAGGED ? 1 : VEC);
    Index packs = p.packs;
    head = tail = 0;
    if constexpr (RAGGED) {
      Offset length = p.cols;
      head = min(static_cast<Offset>(-(reinterpret_cast<u64>(y) / sizeof(Tout)) % VEC), length);
      if constexpr (FUNNEL) head += VEC;
      packs = (length - head) / VEC - FUNNEL;
      tail = length - head - static_cast<Offset>(packs) * VEC;
    }
    begin = rank * static_cast<Index>(p.chunk);
    end = min(rank * p.chunk + p.chunk, static_cast<i64>(packs));
    singles = rank == 0 ? head + tail : 0;
  }
  // The row lies elsewhere. (Never called for an expression.)
  template <class X> __device__ __forceinline__ void move(const X* x_, Tout* y_) {
    if constexpr (SAME<From, const X*>) x = x_;
    y = y_;
  }
  __device__ __forceinline__ void locate(Index pack, Offset (&at)[3], const Softmax& p) const {
    // Packs of several elements along a single dim are contiguous in x and y.
    if constexpr (REDUCED == 1 && VEC > 1) at[0] = at[2] = head + static_cast<Offset>(pack) * VEC, at[1] = at[0] * step;
    else p.reduced.locate(pack, at);
  }
  __device__ __forceinline__ Offset single(int i, const Softmax& p) const {
    return i < head ? i : static_cast<Offset>(p.cols) - tail + (i - head);
  }
};

// The head and tail elements that one thread holds, of LANES threads or more.
template <int LANES> struct Singles {
  static constexpr int COUNT = RAGGED ? (2 * (VEC - 1 + FUNNEL * VEC) + LANES - 1) / LANES : 0;
  Held<1, COUNT ? COUNT : 1> held;

  __device__ __forceinline__ void load(const Part& part, int thread, int group, const Softmax& p) {
    held.any = part.singles > 0;
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
      int i = thread + n * group;
      held.ready[n] = i < part.singles;
      Offset from = held.any ? part.single(min(i, part.singles - 1), p) : 0;  // no load is conditional
      held.load(n, part.x + from, part.mask + from * part.step, part.step);
    }
  }
  __device__ __forceinline__ void maximum(V (&top)[1], const Softmax& p) const {
    if constexpr (COUNT > 0) held.maximum(top, p);
  }
  __device__ __forceinline__ void sum_of_powers(Total (&sum)[1], const Base (&base)[1], const Softmax& p) {
    if constexpr (COUNT > 0) held.sum_of_powers(sum, base, p);
  }
  __device__ __forceinline__ void store(const Part& part, const Ending (&ending)[1], int thread, int group, const Softmax& p) const {
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
      if (held.ready[n]) held.store(n, part.y + part.single(thread + n * group, p), ending, p);
    }
  }
};

// What a thread holds of a row that whole warps share. The packs in registers and each group of staged packs have a key
// of their own: their exponentials can be computed as soon as the data has arrived.
struct RowOnChip {
  static constexpr int GROUPS = OnChip::GROUPS;
  OnChip packs;
  Singles<32> edges;
  V key[GROUPS + 1];  // of the maximum of the packs in registers, and of each group's

  static __device__ __forceinline__ auto finder(const Part& part, int thread, int group, const Softmax& p) {
    return [&part, &p, thread, group](int n, Offset (&at)[3]) { part.locate(part.begin + thread + n * group, at, p); };
  }
  __device__ __forceinline__ void load(const Part& part, int thread, int group, const Softmax& p) {
    auto exists = [&](int n) { return part.begin + thread + n * group < part.end; };
    auto near = [&](int n, Offset (&at)[3]) { part.locate(min(part.begin + thread + n * group, part.end - 1), at, p); };
    packs.load(part.x, part.mask, part.step, p, part.begin < part.end, exists, finder(part, thread, group, p), near);
    edges.load(part, thread, group, p);
  }
  // The state of all that the warp holds; every lane gets it.
  __device__ __forceinline__ State gather(const Softmax& p) {
    Total sum[GROUPS + 1];
    V most;
    {
      V max[1] = {Limits<V>::least()};
      Total all[1] = {};
      packs.held.maximum(max, p);
      edges.maximum(max, p);
      most = key[0] = Base::key(max[0]);
      Base base[1] = {Base(most)};
      packs.held.sum_of_powers(all, base, p);
      edges.sum_of_powers(all, base, p);
      sum[0] = all[0];
    }
    take<0>(sum, most, p);
    V whole = warp_reduce<Max<V>>(most);
    Total total{};
    Base base(whole);
#pragma unroll
    for (int group = 0; group <= GROUPS; ++group) total = total + lifted(key[group], sum[group], base);
    return state_of(whole, warp_reduce<Added<Total>>(total));
  }
  template <int GROUP> __device__ __forceinline__ void take(Total (&sum)[GROUPS + 1], V& most, const Softmax& p) {
    if constexpr (GROUP < GROUPS) {
      V max[1] = {Limits<V>::least()};
      Total all[1] = {};
      copies_there<GROUPS - 1 - GROUP>();
      packs.maximum(max, p, packs.first(GROUP), packs.first(GROUP + 1));
      key[GROUP + 1] = Base::key(max[0]);
      Base base[1] = {Base(key[GROUP + 1])};
      packs.sum_of_powers(all, base, p, packs.first(GROUP), packs.first(GROUP + 1));
      sum[GROUP + 1] = all[0];
      most = greater_of(most, key[GROUP + 1]);
      take<GROUP + 1>(sum, most, p);
    }
  }
  __device__ __forceinline__ void store(const Part& part, State whole, int thread, int group, const Softmax& p) const {
    auto locate = finder(part, thread, group, p);
    Ending ending[1] = {Ending::of<false>(key[0], whole, p)};
    packs.store_held(part.y, ending, p, locate);
    edges.store(part, ending, thread, group, p);
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      Ending its_own[1] = {Ending::of<false>(key[g + 1], whole, p)};
      packs.store_staged(part.y, its_own, p, locate, packs.first(g), packs.first(g + 1));
    }
  }
};
