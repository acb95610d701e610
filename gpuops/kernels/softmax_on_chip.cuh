// What the kernels share that keep rows on chip: what a thread holds, what becomes of it, and how a row's maximum and sum
// of powers are brought together. Prologue, beside that of softmax.cuh: VEC, PACKS, STAGED, SHIFTED (packs of x
// begin anywhere), APART (the elements of a pack belong to neighbouring rows).

constexpr bool KEEP = SAME<Tin, V> && !LOG && !APART;  // powers take the place of the elements that they are made of
constexpr int RAISED = SAME<Tout, bf16> ? 64 : 0;      // its subnormal results are below float32's normal range
constexpr bool HUGE = !SAME<Tin, f16> || SCALED;
// Halves have so few digits that quick powers will do; but next to 2^29 two of float32 differ by 64, which is not too far
// for bfloat16.
constexpr bool QUICK = HALF<Tout> && !(RAISED && SAME<Tin, V> && !LOG);
// Powers of which results are made, and those that are only added up: their errors are mostly of opposite signs.
using Result = Powers<V, LEAVES_OUT ? Taken::PLAIN : QUICK ? Taken::SHORT : LOG ? Taken::PLAIN : Taken::CLOSE, HUGE,
                      LEAVES_OUT ? 0 : RAISED>;
using Base = Powers<V, LEAVES_OUT ? Taken::PLAIN : QUICK ? Taken::SHORT : KEEP ? Taken::CLOSE : Taken::PLAIN, HUGE,
                    LEAVES_OUT ? 0 : RAISED>;

// The key of a maximum, and the sum of powers with its base; for a logarithm, without one that is 1. Where there are no
// powers, they are lifted to 0.
struct alignas(2 * sizeof(V)) State { V max, sum; };
__device__ __forceinline__ State state_of(V max, Total sum) { return {max, Of::stored(sum)}; }
template <class B> __device__ __forceinline__ V lift(V key, const B& to) {
  return key == Limits<V>::least() ? V(0) : to.lift(key);
}
__device__ __forceinline__ Total lifted(V key, Total part, const Base& to) {
  return Of::at_max(key, to) ? part : Of::of(Of::sum(part) * lift(key, to), V(0));
}
__device__ __forceinline__ Total lifted(State part, const Base& to) {
  return lifted(part.max, Of::read(part.sum, part.max != Limits<V>::least()), to);
}
template <class B> __device__ __forceinline__ V logarithm(State row, const B& base) {
  return row.max == Limits<V>::greatest() ? V(0) : Of::log(row.sum * base.rest());
}

// What becomes of a row's elements, or of the powers that were kept in their place.
struct Ending {
  Result base;
  V top, factor;

  Ending() = default;
  // From the key with which the powers were taken (WHOLE: it is the row's own), and the row's state.
  template <bool WHOLE> static __device__ __forceinline__ Ending of(V part, State row) {
    Ending end;
    end.base = Result(SAME<Result, Base> ? row.max : Result::key(row.max)), end.top = row.max;
    if constexpr (LOG) end.factor = logarithm(row, end.base);
    else if constexpr (!SAME<Result, Base>) end.factor = 1 / (row.sum * end.base.of(row.max));
    else end.factor = (KEEP && !WHOLE ? lift(part, end.base) : V(1)) / row.sum;
    return end;
  }
  __device__ __forceinline__ V operator()(V value) const {
    if constexpr (LOG) return value - top - factor;
    else if constexpr (KEEP) return value * factor;
    else return base.of(value) * factor;
  }
};

// Elements of the mask that are `step` apart.
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
  static constexpr bool HIDDEN = IN_PAIRS && MASK != NONE && !SCALED && WIDE % 4 == 0;  // elements left out are -inf
  Items<Tin, WIDE> item[COUNT];
  Items<u8, WIDE> chosen[COUNT];  // their bytes of the mask, 0xff or 0 if they are HIDDEN
  bool any;           // there are packs; beyond the last, that one is read again: so no load has a condition
  bool ready[COUNT];  // the pack exists

  Held() = default;
  // A pack that waits in shared memory, as do the bytes of its mask if it has one.
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
      for (int w = 0; w < WIDE / 2; ++w) item[n].word[w] = or_else(n, w, item[n].word[w], Limits<float>::least());
    }
  }
  // Pair w of a pack, with a number in the place of the elements that are left out.
  __device__ __forceinline__ u32 or_else(int n, int w, u32 pair, float other) const {
    u32 mask = pair_filled(chosen[n].word[w / 2], w);
    return (pair & mask) | (pair_of<Tin>(other, other) & ~mask);
  }
  __device__ __forceinline__ bool has(int n, int v) const { return MASK == NONE || chosen[n].get(v) != 0; }
  __device__ __forceinline__ V get(int n, int v, const Softmax& p) const {
    return HIDDEN || has(n, v) ? scaled(item[n].get(v), p) : Limits<V>::least();
  }
  __device__ __forceinline__ void load(int n, const Tin* x, const b8* mask, Offset step) {
    if constexpr (SHIFTED && WIDE > 1 && sizeof(Tin) >= 4) {  // fewer instructions than to shift two packs into one
#pragma unroll
      for (int v = 0; v < WIDE; ++v) item[n].set(v, x[v]);
    } else if constexpr (SHIFTED && WIDE > 1) item[n] = shifted<WIDE>(x);
    else item[n] = load_items<WIDE>(x);
    if constexpr (MASK == BESIDE) choose(n, load_items<WIDE>(reinterpret_cast<const u8*>(mask)));
    if constexpr (MASK == SCATTERED) choose(n, gathered<WIDE>(mask, step));
  }
  // What is read again beyond the last pack does no harm to a maximum; but a logarithm's is to be among what it has.
  __device__ __forceinline__ void maximum(V (&top)[ROWS], const Softmax& p) const {
    if (!any) return;
    if constexpr (IN_PAIRS && (MASK == NONE || HIDDEN) && !SCALED) {
      constexpr int WORDS = WIDE / 2, MAXIMA = APART ? WORDS : 1;
      u32 words[MAXIMA];
#pragma unroll
      for (int w = 0; w < MAXIMA; ++w) words[w] = pair_of<Tin>(Limits<float>::least(), Limits<float>::least());
#pragma unroll
      for (int n = 0; n < COUNT; ++n) {
        if (LEAVES_OUT && !ready[n]) continue;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) words[w % MAXIMA] = extreme<Tin, true>(words[w % MAXIMA], item[n].word[w]);
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
      for (int v = 0; v < WIDE; ++v) top[v % ROWS] = greater_of(top[v % ROWS], get(n, v, p));
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

// A thread's packs of a row or of neighbouring rows: PACKS in registers and, if they are STAGED, more in shared memory,
// which come in GROUPS one after the other. `exists(n)` tells whether there is an n-th (then all before it are there too),
// `locate(n, at)` finds it, and `near(n, at)` finds it or, beyond the last, that one.
struct OnChip {
  static constexpr int ROWS = APART ? VEC : 1, GROUPS = STAGED;
  using Pack_x = Items<Tin, VEC>;
  using Pack_m = Items<u8, VEC>;
  Held<VEC, PACKS> held;
  Pack_x* stage;
  Pack_m* stage_m;
  int staged, each;  // packs in shared memory, and of a group

  // The mask's elements are `step` apart; any: the block has packs.
  template <class Exists, class Locate, class Near>
  __device__ __forceinline__ void load(const Tin* x, const b8* mask, Offset step, const Softmax& p, bool any, Exists exists, Locate locate, Near near) {
    Offset at[3];
    held.any = any;
    if (any) {
#pragma unroll
      for (int n = 0; n < PACKS; ++n) {
        near(n, at);
        held.load(n, x + at[0], mask + at[1], step);
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
        for (; staged < (group + 1) * each && exists(PACKS + staged); ++staged) {
          locate(PACKS + staged, at);
          int slot = staged * blockDim.x;
          copy_async(stage + slot, reinterpret_cast<const Pack_x*>(x + at[0]));
          if constexpr (MASK == BESIDE) copy_async(stage_m + slot, reinterpret_cast<const Pack_m*>(mask + at[1]));
          if constexpr (MASK == SCATTERED) stage_m[slot] = gathered<VEC>(mask + at[1], step);
        }
        copies_sent();
      }
    }
  }
  __device__ __forceinline__ int first(int group) const { return min(group * each, staged); }
  __device__ __forceinline__ Held<VEC, 1> waiting(int n) const {
    return {stage[n * blockDim.x], stage_m + n * blockDim.x};
  }
  // One that does without its mask, as `maximum` leaves it if elements are HIDDEN.
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

// The state of a row from those of its `count` parts, MOST at most: for all lanes of a warp, which share the work.
template <int MOST> __device__ __forceinline__ State brought_together(const State* part, int count) {
  constexpr int EACH = (MOST + 31) / 32;  // of a lane
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
  return state_of(max, warp_reduce<Sum<Total>>(sum));
}

// Of many parts, in memory that other blocks have written to.
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
  return state_of(max, warp_reduce<Sum<Total>>(lifted(mine, sum, Base(max))));
}

// For a thread alone, of parts that are STEP apart.
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

