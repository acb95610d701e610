// Accumulators of a thread, over packs of VEC elements of x. APART: the elements of a pack belong to neighbouring
// outputs, with a State each; otherwise one State for all. Those of words are in words.cuh, searches in search.cuh.

// Any op and any elements, one by one, in CHAINS independent accumulators.
template <bool APART, int CHAINS> struct Elements {
  static constexpr int COUNT = APART ? VEC : CHAINS < VEC ? CHAINS : VEC;
  State state[COUNT];

  __device__ __forceinline__ Elements() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) state[i] = Op::identity();
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
      auto clean = cleaned(x[n]);
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        state[v % COUNT] = joined(state[v % COUNT], clean.get(v), b[n].get(OTHER == BESIDE ? v : 0), c);
      }
    }
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const { return state[v]; }
  __device__ __forceinline__ State total(const Context<A>& c) const { return total_of<Op, COUNT>(*this, c); }
};

// Variances, around one center for all of a thread's elements (APART: for those of an output).
template <bool APART, int CHAINS, class O = Op> struct Deviations {
  using A = typename O::A;
  using R = real_t<A>;
  using Spread = typename O::Spread;
  static constexpr bool ALL = OTHER == NONE && !O::UNCONVERTED;  // every element takes part
  static constexpr int COUNT = APART ? VEC : CHAINS < VEC ? CHAINS : VEC, CENTERS = APART ? VEC : 1;
  A center[CENTERS], sum[COUNT], whole[COUNT];  // whole: of the elements themselves
  R squares[COUNT];
  u32 number[ALL ? 1 : COUNT], calls = 0;  // number: of elements in each sum
  bool begun = false;                      // whether all centers are set

  __device__ __forceinline__ Deviations() {
#pragma unroll
    for (int i = 0; i < CENTERS; ++i) center[i] = convert<A>(0);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum[i] = whole[i] = convert<A>(0), squares[i] = R(0), number[ALL ? 0 : i] = 0;
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>&) {
    if (ALL && number[0] == 0) {
      if (!ready[0]) return;  // packs after the first that is not ready are not either
      begin(cleaned(x[0]), b[0]);
    } else if ((ALL || calls > 0) && (calls & (calls - 1)) == 0) {  // whenever the number of elements has doubled
      settle();
    }
    ++calls;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
      auto clean = cleaned(x[n]);
      if (!ALL && !begun) begin(clean, b[n]);
      if constexpr (ALL) number[0] += VEC / COUNT;
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        if (!taken(clean, b[n], v)) continue;
        A value = value_of(clean, v), apart = value - center[v % CENTERS];
        sum[v % COUNT] = sum[v % COUNT] + apart;
        squares[v % COUNT] += real_product<R>(apart, apart);
        whole[v % COUNT] = whole[v % COUNT] + value;
        if constexpr (!ALL) ++number[v % COUNT];
      }
    }
  }
  template <class X> static __device__ __forceinline__ A value_of(const X& x, int v) { return convert<A>(convert<Tval>(x.get(v))); }
  // Whether element v of a pack takes part.
  template <class X, class B> static __device__ __forceinline__ bool taken(const X& x, const B& b, int v) {
    bool left_out = O::UNCONVERTED && is_nan(value_of(x, v));
    return !left_out && (OTHER == NONE || nonzero(b.get(OTHER == BESIDE ? v : 0)));
  }
  // The number of elements around a center.
  __device__ __forceinline__ u32 counted(int center) const {
    u32 all = 0;
#pragma unroll
    for (int k = center; k < COUNT; k += CENTERS) all += number[ALL ? 0 : k];
    return all;
  }
  // Sets the centers of outputs without elements, if this pack has one for them: the first element that takes part or, if a
  // pack has several of an output, a middle one.
  template <class X, class B> __device__ __forceinline__ void begin(const X& x, const B& b) {
    begun = true;
#pragma unroll
    for (int i = 0; i < CENTERS; ++i) {
      bool has = counted(i) > 0;
#pragma unroll
      for (int v = i; v < VEC; v += CENTERS) {
        bool first = !has & taken(x, b, v);
        center[i] = first ? value_of(x, v) : center[i], has |= first;
      }
      begun &= has;
    }
    if constexpr (!APART && VEC > 1) {
      auto value = [&](int v) { return taken(x, b, v) ? value_of(x, v) : center[0]; };
      if constexpr (VEC >= 4 && SAME<A, float>) center[0] = middle(value(0), value(1), value(2), value(3));
      else center[0] = halfway(value(0), value(1));
    }
  }
  // Moves centers close to the means.
  __device__ __forceinline__ void settle() {
#pragma unroll
    for (int i = 0; i < CENTERS; ++i) {
      A all = sum[i];
#pragma unroll
      for (int k = i + CENTERS; k < COUNT; k += CENTERS) all = all + sum[k];
      A next = center[i] + times(all, Spread::part_of(static_cast<R>(counted(i)))), moved = next - center[i];
#pragma unroll
      for (int k = i; k < COUNT; k += CENTERS) {
        auto part = Spread::recentered(Spread::sums(sum[k], squares[k], 0), moved, static_cast<R>(number[ALL ? 0 : k]));
        sum[k] = part.sum, squares[k] = part.squares;
      }
      center[i] = next;
    }
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    return O::state(center[v], O::sums(sum[v], squares[v], counted(v), whole[v]));
  }
  __device__ __forceinline__ State total(const Context<A>&) const {
    A all = sum[0], total = whole[0];
    R more = squares[0];
#pragma unroll
    for (int k = 1; k < COUNT; ++k) all = all + sum[k], total = total + whole[k], more += squares[k];
    return O::state(center[0], O::sums(all, more, counted(0), total));
  }
};

// Online softmax over several packs at a time: the sum so far is rescaled once for all of them.
template <bool APART, class O = Op> struct Exponentials {
  using A = typename O::A;
  using Base = Powers<A, HALF<Tout> ? Taken::SHORT : Taken::PLAIN>;
  static constexpr int COUNT = APART ? VEC : 1, MOST = (HALF<Tin> ? 32 : 16) / VEC;  // packs at a time
  static constexpr int AT_ONCE = MOST > 0 ? MOST : 1;
  static constexpr int WAYS = APART || VEC < 4 ? VEC : 4;  // independent chains of maxima and of sums
  // Maxima of half types are found two at a time, in PAIRS words.
  static constexpr bool IN_PAIRS = HALF<Tin> && SAME<A, float> && OTHER == NONE && !SCALED && WORDY<Tin, VEC>;
  static constexpr int PAIRS = (WAYS + 1) / 2;
  typename O::State state[COUNT];

  __device__ __forceinline__ Exponentials() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) state[i] = O::identity();
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    auto element = [&](int n, int v) {
      bool chosen = OTHER == NONE || nonzero(b[n].get(OTHER == BESIDE ? v : 0));
      A value = convert<A>(x[n].get(v));
      return !chosen ? Limits<A>::least() : SCALED ? value * static_cast<A>(c.option[O::SCALE]) : value;
    };
#pragma unroll
    for (int first = 0; first < N; first += AT_ONCE) {
      A max[WAYS], sum[WAYS] = {};
#pragma unroll
      for (int i = 0; i < WAYS; ++i) max[i] = state[i % COUNT].max;
      if constexpr (IN_PAIRS) {
        u32 words[PAIRS];
#pragma unroll
        for (int w = 0; w < PAIRS; ++w) words[w] = pair_of<Tin>(Limits<float>::least(), Limits<float>::least());
#pragma unroll
        for (int n = first; n < first + AT_ONCE; ++n) {
          if (n >= N || !ready[n]) continue;
#pragma unroll
          for (int w = 0; w < VEC / 2; ++w) words[w % PAIRS] = extreme<Tin, true>(words[w % PAIRS], x[n].word[w]);
        }
#pragma unroll
        for (int v = 0; v < 2 * PAIRS; ++v) {
          Items<Tin, 2> both = bit_cast<Items<Tin, 2>>(words[v / 2]);
          max[v % WAYS] = greater_of(max[v % WAYS], convert<A>(both.get(v % 2)));
        }
      } else {
#pragma unroll
        for (int n = first; n < first + AT_ONCE; ++n) {
          if (n >= N || !ready[n]) continue;
#pragma unroll
          for (int v = 0; v < VEC; ++v) max[v % WAYS] = greater_of(max[v % WAYS], element(n, v));
        }
      }
#pragma unroll
      for (int half = WAYS / 2; half >= COUNT; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) max[i] = greater_of(max[i], max[i + half]);
      }
      Base base[COUNT];
      A ones[COUNT] = {};
#pragma unroll
      for (int i = 0; i < COUNT; ++i) base[i] = Base(max[i]);
#pragma unroll
      for (int n = first; n < first + AT_ONCE; ++n) {
        if (n >= N || !ready[n]) continue;
#pragma unroll
        for (int v = 0; v < VEC; ++v) {
          A z = element(n, v), power = base[v % COUNT].of(z);
          if constexpr (LEAVES_1_OUT<Tout>) add_power(sum[v % WAYS], ones[v % COUNT], z, base[v % COUNT].max, power);
          else sum[v % WAYS] += power;
        }
      }
#pragma unroll
      for (int half = WAYS / 2; half >= COUNT; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
      }
#pragma unroll
      for (int i = 0; i < COUNT; ++i) {  // one 1 is left out: an earlier one, or the new maximum's
        bool earlier = state[i].max == max[i];
        A before = earlier ? state[i].rest : O::lifted(state[i], max[i]);
        state[i] = {max[i], before + sum[i] * base[i].rest() + (ones[i] - (earlier ? A(0) : A(1)))};
      }
    }
  }
  __device__ __forceinline__ typename O::State get(int v, const Context<A>&) const { return state[v]; }
  __device__ __forceinline__ typename O::State total(const Context<A>&) const { return state[0]; }
};

// Adds the elements at the edges of a row: to an exact sum of packs, or to a state of their own. FIRST: before the packs.
template <bool FIRST, class O = Op, class Packs, class X, class B, int N>
__device__ __forceinline__ void add_edges(Packs& packs, State& singles, const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
  if constexpr (O::EXACT && FIRST) {
    packs.first_edges(x, b, ready);
  } else if constexpr (O::EXACT) {
    packs.last_edges(x, b, ready, c);
  } else if constexpr (!FIRST) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (ready[n]) singles = joined<O>(singles, x[n].get(0), b[n].get(0), c);
    }
  }
}
// Adds packs of a row, of which LANES lanes have some.
template <int LANES, class O = Op, class Packs, class X, class B, int N>
__device__ __forceinline__ void add_packs(Packs& packs, const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
  if constexpr (O::EXACT) packs.template add<LANES>(x, b, ready, c);
  else packs.add(x, b, ready, c);
}

// Selects the accumulator of a problem.
template <class T> struct As { using type = T; };
template <bool APART, int CHAINS> __device__ auto chosen() {
  if constexpr (Op::EXPONENTIAL) return As<Exponentials<APART>>();
  else if constexpr (APART && Op::INDEXED && ORDERED && IN_WORDS && HALF<Tin> && !Op::UNCONVERTED) return As<Pairs<>>();
  else if constexpr (Op::INDEXED && ORDERED && IN_WORDS && SAME<Tin, Tval> && SAME<Tin, b8>) return As<FirstTrues<APART>>();
  else if constexpr (Op::INDEXED && ORDERED && IN_WORDS && SAME<Tin, Tval> && SMALL_INTEGER<Tin>) return As<Keys<APART>>();
  else if constexpr (Op::INDEXED && !APART && (!ORDERED || CHAINS > 1 || PAIRED || sizeof(Tin) > 4)) return As<First<>>();
  else if constexpr (Op::INDEXED) return As<Firsts<APART, CHAINS>>();
  else if constexpr (IN_WORDS && (ALONE || MATCHES) && Gather<Op, Tin>::PLANES > 0) return As<Words<APART>>();
  else if constexpr (ALONE && IN_WORDS && RANGES<Op>) return As<Ranges<APART>>();
  else if constexpr (ALONE && IN_WORDS && SMALL_INTEGER<Tin> && INTEGER_SUM<Op>) return As<Dots<APART>>();
  else if constexpr (ALONE && IN_WORDS && COUNTS<Op>) return As<Trues<APART>>();
  else if constexpr (ALONE && IN_WORDS && MOMENTS<Op>) return As<Moments<APART>>();
  else if constexpr (Op::EXACT) return As<Sums<APART, CHAINS>>();
  else if constexpr (Op::CENTERED) return As<Deviations<APART, CHAINS>>();
  else return As<Elements<APART, CHAINS>>();
}
template <bool APART, int CHAINS> using Gathered = typename decltype(chosen<APART, CHAINS>())::type;
