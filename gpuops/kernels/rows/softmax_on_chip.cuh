// What the kernels share that keep rows on chip: what a thread holds, and how the partial states of a row are merged.
// Prologue, besides that of softmax.cuh: RowOp (see row_ops.cuh), VEC, PACKS (of a thread in registers), STAGED (groups
// of packs in shared memory, 0 if there are none), FUNNEL (packs of x may begin at any element), APART (the elements of a
// pack belong to neighbouring rows).

using Base = RowOp::Base;
using Ending = RowOp::Ending;
constexpr bool KEEP = RowOp::KEEP;  // terms overwrite the elements

__device__ __forceinline__ Total lifted(V key, Total part, const Base& to) {
  return Of::at_max(key, to) ? part : Of::of(Of::sum(part) * lift<RowOp>(key, to), V(0));
}
__device__ __forceinline__ Total lifted(State part, const Base& to) {
  return lifted(part.max, Of::read(part.sum, part.max != Limits<V>::least()), to);
}

// Loads WIDE elements of the mask that are `step` apart.
template <int WIDE> __device__ __forceinline__ Items<u8, WIDE> gathered(const b8* mask, Offset step) {
  Items<u8, WIDE> bytes;
#pragma unroll
  for (int v = 0; v < WIDE; ++v) bytes.set(v, mask[v * step].bits);
  return bytes;
}

// COUNT packs of WIDE elements in a thread's registers.
template <int WIDE, int COUNT> struct Held {
  static constexpr int ROWS = APART ? WIDE : 1;
  static constexpr bool IN_PAIRS = HALF<Tin> && SAME<V, float> && WORDY<Tin, WIDE>;
  static constexpr bool HIDDEN = IN_PAIRS && MASK != NONE && !SCALED && WIDE % 4 == 0;  // masked-out elements are -inf
  Items<Tin, WIDE> item[COUNT];
  Items<u8, WIDE> chosen[COUNT];  // their bytes of the mask; if HIDDEN, 0xff or 0
  bool any;           // there are packs; past the last, that one is loaded again, so no load is conditional
  bool ready[COUNT];  // the pack exists

  Held() = default;
  // A pack staged in shared memory, with its bytes of the mask if there is one.
  __device__ __forceinline__ Held(const Items<Tin, WIDE>& x, const Items<u8, WIDE>* mask) {
    item[0] = x, any = ready[0] = true;
    if constexpr (MASK != NONE) choose(0, *mask);
  }
  __device__ __forceinline__ void choose(int n, const Items<u8, WIDE>& bytes) {
    chosen[n] = bytes;
    if constexpr (HIDDEN) {
#pragma unroll
      for (int w = 0; w < WIDE / 4; ++w) chosen[n].word[w] = filled(bytes.word[w]);
#pragma unroll
      for (int w = 0; w < WIDE / 2; ++w) item[n].word[w] = or_else(n, w, item[n].word[w], RowOp::left_out());
    }
  }
  // Pair w of pack n, with `other` in the place of elements that the mask leaves out.
  __device__ __forceinline__ u32 or_else(int n, int w, u32 pair, float other) const {
    u32 mask = pair_filled(chosen[n].word[w / 2], w);
    return (pair & mask) | (pair_of<Tin>(other, other) & ~mask);
  }
  __device__ __forceinline__ bool has(int n, int v) const { return MASK == NONE || chosen[n].get(v) != 0; }
  __device__ __forceinline__ V get(int n, int v, const Softmax& p) const {
    return HIDDEN || has(n, v) ? scaled(item[n].get(v), p) : RowOp::left_out();
  }
  __device__ __forceinline__ void load(int n, From x, const b8* mask, Offset step) {
    if constexpr (FUNNEL && WIDE > 1 && sizeof(Tin) >= 4) {  // fewer instructions than a funnel shift
#pragma unroll
      for (int v = 0; v < WIDE; ++v) item[n].set(v, x[v]);
    } else if constexpr (FUNNEL && WIDE > 1) item[n] = funnel_load<WIDE>(x);
    else item[n] = load_items<WIDE>(x);
    load_mask(n, mask, step);
  }
  __device__ __forceinline__ void load_mask(int n, const b8* mask, Offset step) {
    if constexpr (MASK == BESIDE) choose(n, load_items<WIDE>(reinterpret_cast<const u8*>(mask)));
    if constexpr (MASK == SCATTERED) choose(n, gathered<WIDE>(mask, step));
  }
  // A last pack that is loaded again does not change a maximum. For a logarithm it is skipped all the same: the maximum
  // must be an element that the thread itself adds up.
  __device__ __forceinline__ void maximum(V (&top)[ROWS], const Softmax& p) const {
    if (!RowOp::MAXIMUM || !any) return;
    if constexpr (IN_PAIRS && (MASK == NONE || HIDDEN) && !SCALED) {
      constexpr int WORDS = WIDE / 2, MAXIMA = APART ? WORDS : 1;
      u32 words[MAXIMA];
#pragma unroll
      for (int w = 0; w < MAXIMA; ++w) words[w] = pair_of<Tin>(Limits<float>::least(), Limits<float>::least());
#pragma unroll
      for (int n = 0; n < COUNT; ++n) {
        if (LEAVES_OUT && !ready[n]) continue;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) words[w % MAXIMA] = extreme<Tin, true>(words[w % MAXIMA], RowOp::size(item[n].word[w]));
      }
#pragma unroll
      for (int v = 0; v < 2 * MAXIMA; ++v) {
        Items<Tin, 2> both = bit_cast<Items<Tin, 2>>(words[v / 2]);
        top[v % ROWS] = greater_of(top[v % ROWS], convert<V>(both.get(v % 2)));
      }
      return;
    }
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
      if (LEAVES_OUT && !ready[n]) continue;
#pragma unroll
      for (int v = 0; v < WIDE; ++v) top[v % ROWS] = greater_of(top[v % ROWS], RowOp::size(get(n, v, p)));
    }
  }
  __device__ __forceinline__ void sum_of_powers(Total (&sum)[ROWS], const Base (&base)[ROWS], const Softmax& p) {
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
      if (!ready[n]) continue;
      V power[WIDE];
#pragma unroll
      for (int v = 0; v < WIDE; ++v) {
        V value = get(n, v, p);
        power[v] = base[v % ROWS].of(value);
        if constexpr (LEAVES_OUT) Of::add(sum[v % ROWS], value, base[v % ROWS], power[v]);
        if constexpr (KEEP) item[n].set(v, power[v]);
      }
      if constexpr (LEAVES_OUT) continue;
#pragma unroll
      for (int half = WIDE / 2; half >= ROWS; half /= 2) {  // pairwise
#pragma unroll
        for (int v = 0; v < half; ++v) power[v] += power[v + half];
      }
#pragma unroll
      for (int v = 0; v < ROWS; ++v) sum[v] = sum[v] + Of::of(power[v], V(0));
    }
  }
  __device__ __forceinline__ void store(int n, Tout* y, const Ending (&end)[ROWS], const Softmax& p) const {
    constexpr bool PAIRS = HALF<Tout> && SAME<V, float> && WORDY<Tout, WIDE>, HIDE = PAIRS && HIDDEN && SAME<Tin, Tout>;
    Items<Tout, WIDE> out;
    V value[WIDE], left_out = LOG ? Limits<V>::least() : V(0);
#pragma unroll
    for (int v = 0; v < WIDE; ++v) {
      value[v] = end[v % ROWS](KEEP ? convert<V>(item[n].get(v)) : scaled(item[n].get(v), p));
      if (!HIDE && !has(n, v)) value[v] = left_out;
      if constexpr (!PAIRS) out.set(v, convert<Tout>(value[v]));
      else if (v % 2) out.word[v / 2] = pair_of<Tout>(value[v - 1], value[v]);
      if constexpr (HIDE) {
        if (v % 2) out.word[v / 2] = or_else(n, v / 2, out.word[v / 2], left_out);
      }
    }
    store_items(y, out);
  }
};

// A thread's packs of a row or of neighbouring rows: PACKS in registers and, if STAGED, more in shared memory, copied
// asynchronously in GROUPS. exists(n): whether there is an n-th pack (if so, all before it exist). locate(n, at): its
// offsets. near(n, at): its offsets or, past the last pack, those of the last.
struct OnChip {
  using Pack_x = Items<Tin, VEC>;
  using Pack_m = Items<u8, VEC>;
  // Packs of less than four bytes cannot be copied asynchronously: several are loaded before the first is stored.
  static constexpr bool SMALL = SAME<Source, const Tin*> && sizeof(Pack_x) < 4;
  static constexpr int ROWS = APART ? VEC : 1, GROUPS = STAGED, AT_ONCE = SMALL ? 16 : 2;
  Held<VEC, PACKS> held;
  Pack_x* stage;
  Pack_m* stage_m;
  int staged, each;  // packs in shared memory; packs of a group

  // step: the stride of the mask's elements. any: there are packs to load.
  template <class Exists, class Locate, class Near>
  __device__ __forceinline__ void load(From x, const b8* mask, Offset step, const Softmax& p, bool any, Exists exists, Locate locate, Near near) {
    Offset at[3];
    held.any = any;
    // What an expression is made from is loaded of several packs before the first is made.
    constexpr bool RAW = !FUNNEL && !SAME<Source, const Tin*>, LOADED = RAW || SMALL;
    using Raw = decltype(load_raw<VEC>(x));
    if (any) {
      Raw raw[PACKS];
      if constexpr (RAW) {
#pragma unroll
        for (int n = 0; n < PACKS; ++n) near(n, at), raw[n] = load_raw<VEC>(x + at[0]);
        loads_go_first();
      }
#pragma unroll
      for (int n = 0; n < PACKS; ++n) {
        near(n, at);
        if constexpr (RAW) held.item[n] = made_of<VEC>(x + at[0], raw[n]), held.load_mask(n, mask + at[1], step);
        else held.load(n, x + at[0], mask + at[1], step);
      }
    }
#pragma unroll
    for (int n = 0; n < PACKS; ++n) held.ready[n] = exists(n);
    if constexpr (STAGED) {
      extern __shared__ __align__(128) Pack<u32, 4> memory[];
      stage = reinterpret_cast<Pack_x*>(memory) + threadIdx.x;
      stage_m = reinterpret_cast<Pack_m*>(reinterpret_cast<Pack_x*>(memory) + p.staged * blockDim.x) + threadIdx.x;
      staged = 0, each = (static_cast<int>(p.staged) + GROUPS - 1) / GROUPS;
#pragma unroll
      for (int group = 0; group < GROUPS; ++group) {
        while (LOADED && staged < (group + 1) * each && exists(PACKS + staged)) {
          Raw raw[AT_ONCE];
          int first = staged;
#pragma unroll
          for (int u = 0; u < AT_ONCE; ++u) near(PACKS + first + u, at), raw[u] = load_raw<VEC>(x + at[0]);
          loads_go_first();
#pragma unroll
          for (int u = 0; u < AT_ONCE; ++u) {
            if (u > 0 && (first + u >= (group + 1) * each || !exists(PACKS + first + u))) break;
            locate(PACKS + first + u, at);
            stage[(first + u) * blockDim.x] = made_of<VEC>(x + at[0], raw[u]);
            stage_mask(first + u, mask + at[1], step);
            staged = first + u + 1;
          }
        }
        for (; !LOADED && staged < (group + 1) * each && exists(PACKS + staged); ++staged) {
          locate(PACKS + staged, at);
          copy_items(stage + staged * blockDim.x, x + at[0]);
          stage_mask(staged, mask + at[1], step);
        }
        copies_sent();
      }
    }
  }
  __device__ __forceinline__ void stage_mask(int n, const b8* mask, Offset step) {
    if constexpr (MASK == BESIDE) copy_async(stage_m + n * blockDim.x, reinterpret_cast<const Pack_m*>(mask));
    if constexpr (MASK == SCATTERED) stage_m[n * blockDim.x] = gathered<VEC>(mask, step);
  }
  __device__ __forceinline__ int first(int group) const { return min(group * each, staged); }
  __device__ __forceinline__ Held<VEC, 1> waiting(int n) const {
    return {stage[n * blockDim.x], stage_m + n * blockDim.x};
  }
  // A staged pack without its mask: if HIDDEN, `maximum` has replaced the elements that the mask leaves out by -inf.
  __device__ __forceinline__ Held<VEC, 1> hidden(int n) const {
    Held<VEC, 1> one;
    one.item[0] = stage[n * blockDim.x], one.any = one.ready[0] = true;
    return one;
  }
  __device__ __forceinline__ void maximum(V (&max)[ROWS], const Softmax& p, int begin, int end) const {
#pragma unroll 4
    for (int n = begin; n < end; ++n) {
      auto one = waiting(n);
      one.maximum(max, p);
      if constexpr (one.HIDDEN) stage[n * blockDim.x] = one.item[0];
    }
  }
  __device__ __forceinline__ void sum_of_powers(Total (&sum)[ROWS], const Base (&base)[ROWS], const Softmax& p, int begin, int end) {
#pragma unroll 2
    for (int n = begin; n < end; ++n) {
      auto one = decltype(held)::HIDDEN ? hidden(n) : waiting(n);
      one.sum_of_powers(sum, base, p);
      if constexpr (KEEP) stage[n * blockDim.x] = one.item[0];
    }
  }
  template <class Locate>
  __device__ __forceinline__ void store_held(Tout* y, const Ending (&ending)[ROWS], const Softmax& p, Locate locate) const {
#pragma unroll
    for (int n = 0; n < PACKS; ++n) {
      Offset at[3];
      if (!held.ready[n]) continue;
      locate(n, at);
      held.store(n, y + at[2], ending, p);
    }
  }
  template <class Locate>
  __device__ __forceinline__ void store_staged(Tout* y, const Ending (&ending)[ROWS], const Softmax& p, Locate locate, int begin, int end) const {
#pragma unroll 2
    for (int n = begin; n < end; ++n) {
      Offset at[3];
      locate(PACKS + n, at);
      waiting(n).store(0, y + at[2], ending, p);
    }
  }
};

// Merges the partial states of a row, `count` of them, MOST at most. A warp shares the work; all lanes get the result.
template <int MOST> __device__ __forceinline__ State brought_together(const State* part, int count) {
  constexpr int EACH = (MOST + 31) / 32;  // parts of a lane
  State mine[EACH];
  V max = Limits<V>::least();
  Total sum{};
#pragma unroll
  for (int n = 0; n < EACH; ++n) {
    int i = threadIdx.x % 32 + 32 * n;
    mine[n] = i < count ? part[i] : State{Limits<V>::least(), V(0)};
    max = greater_of(max, mine[n].max);
  }
  max = warp_reduce<Max<V>>(max);
  Base base(max);
#pragma unroll
  for (int n = 0; n < EACH; ++n) sum = sum + lifted(mine[n], base);
  return state_of(max, warp_reduce<Added<Total>>(sum));
}

// The same for any number of parts, in global memory that other blocks have written.
__device__ __forceinline__ State brought_together(const volatile State* part, int count) {
  V mine = Limits<V>::least();
  Total sum{};
  for (int i = threadIdx.x % 32; i < count; i += 32) {
    State next{part[i].max, part[i].sum};
    V max = greater_of(mine, next.max);
    Base base(max);
    sum = lifted(mine, sum, base) + lifted(next, base);
    mine = max;
  }
  V max = warp_reduce<Max<V>>(mine);
  return state_of(max, warp_reduce<Added<Total>>(lifted(mine, sum, Base(max))));
}

// The same by a single thread, for parts that are STEP apart.
template <int COUNT, int STEP> __device__ __forceinline__ State joined(const State* part) {
  V max = Limits<V>::least();
  Total sum{};
#pragma unroll
  for (int i = 0; i < COUNT; ++i) max = greater_of(max, part[i * STEP].max);
  Base base(max);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) sum = sum + lifted(part[i * STEP], base);
  return state_of(max, sum);
}

