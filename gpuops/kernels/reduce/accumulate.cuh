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
        state[v % COUNT] = joined(state[v % COUNT], clean.get(v), b[n].get(ONE_EACH ? v : 0), c);
      }
    }
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const { return state[v]; }
  __device__ __forceinline__ State total(const Context<A>& c) const { return total_of<Op, COUNT>(*this, c); }
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
      bool chosen = OTHER == NONE || nonzero(b[n].get(ONE_EACH ? v : 0));
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
// Adds packs of a row, of which LANES lanes have some. QUICKLY: variances are tried in doubles first (InDoubles).
template <int LANES, bool QUICKLY = false, class O = Op, class Packs, class X, class B, int N>
__device__ __forceinline__ void add_packs(Packs& packs, const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
  if constexpr (O::EXACT) packs.template add<LANES, QUICKLY>(x, b, ready, c);
  else packs.add(x, b, ready, c);
}

// The sums of an op that makes exact ones; 0 of others. Whether they are those of a variance, and whether not divided.
template <class O, bool = O::EXACT> constexpr int SUMS = 0;
template <class O> constexpr int SUMS<O, true> = O::PARTS;
template <class O, bool = O::EXACT> constexpr bool SPREAD = false;
template <class O> constexpr bool SPREAD<O, true> = O::MOMENTS;
template <class O, bool = O::EXACT> constexpr bool UNDIVIDED = false;
template <class O> constexpr bool UNDIVIDED<O, true> = O::WHOLE;

// Whether all threads of a row know that its state needs no merging, since the first one has it.
template <class O = Op, class Packs> __device__ __forceinline__ bool is_known(const Packs& packs) {
  if constexpr (O::EXACT && RESIDENT == 0) return packs.known;
  else return false;
}

// Adds packs STEP apart, COUNT at a time: while some are added, the next ones are loaded. place(first, u): where pack
// first + u * STEP is or, past the end, another one, which is left out. second(first, u): its pack of the second operand, if
// there is one. add(x, b, ready): adds COUNT packs.
template <int COUNT, int STEP, class Place, class Second, class Add>
__device__ __forceinline__ void gather_meanwhile(Index i, Index end, Place place, Second second, Add add) {
  Raw raw[COUNT];
  Pack_b others[COUNT];
  auto load = [&](Index first) {
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      raw[u] = load_raw<VEC>(place(first, u));
      if constexpr (OTHER != NONE) others[u] = second(first, u);
    }
  };
  if (i < end) load(i);
#pragma unroll 1
  for (; i < end; i += COUNT * STEP) {
    Pack_x x[COUNT];
    Pack_b b[COUNT];
    bool ready[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      x[u] = made_of<VEC>(place(i, u), raw[u]), ready[u] = true;
      if constexpr (OTHER != NONE) b[u] = others[u];
    }
    if (i + (COUNT - 1) * STEP >= end) {
#pragma unroll
      for (int u = 1; u < COUNT; ++u) {
        if (i + u * STEP >= end) leave_out(x[u], b[u], ready[u]);
      }
    }
    if (i + COUNT * STEP < end) load(i + COUNT * STEP);
    add(x, b, ready);
  }
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
  else return As<Elements<APART, CHAINS>>();
}
template <bool APART, int CHAINS> using Gathered = typename decltype(chosen<APART, CHAINS>())::type;
