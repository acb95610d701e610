// Accumulators of a thread, over packs of VEC elements of x. APART: the elements of a pack belong to neighbouring
// outputs, with a State each; otherwise one State for all. Prologue, besides that of reduce.cuh: VEC.

constexpr int VEC_B = OTHER == BESIDE ? VEC : 1;  // elements of the second operand per pack of x
using Pack_x = Items<Tin, VEC>;
using Pack_b = Items<Tb, VEC_B>;

// Any op and any elements, one by one, in CHAINS independent accumulators.
template <bool APART, int CHAINS> struct Elements {
  static constexpr int COUNT = APART ? VEC : CHAINS < VEC ? CHAINS : VEC;
  State state[COUNT];
  u32 calls = 0;

  __device__ __forceinline__ Elements() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) state[i] = Op::identity();
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    if (COUNTING<Op> && calls > 0 && (calls & (calls - 1)) == 0) {  // as often as the number of elements doubles
#pragma unroll
      for (int i = 0; i < COUNT; ++i) state[i] = settled<Op>(state[i]);
    }
    ++calls;
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
  __device__ __forceinline__ State get(int v, const Context<A>&) const { return settled<Op>(state[v]); }
  __device__ __forceinline__ State total(const Context<A>& c) const {
    State sum = get(0, c);
#pragma unroll
    for (int i = 1; i < COUNT; ++i) sum = Op::combine(sum, get(i, c));
    return sum;
  }
};

// ---- elements of one or two bytes, processed in 32-bit words without unpacking

template <class T> constexpr bool SMALL_INTEGER = ONE_OF<T, b8, i8, u8, i16, u16>;

// Minima and maxima of T on packed words, 16 bits at a time. A byte is compared as the upper byte of 16 bits: the byte
// below it cannot change the result. So bytes take PLANES = 2 accumulators: one of the words as they are, for the odd
// bytes, and one of the words shifted left by 8 bits, for the even bytes.
template <class T, bool GREATER> struct Extremes {
  static constexpr int PLANES = SMALL_INTEGER<T> || HALF<T> ? 3 - sizeof(T) : 0;
  static __device__ __forceinline__ u32 identity() {
    if constexpr (SAME<T, f16>) return GREATER ? 0xfc00fc00u : 0x7c007c00u;  // infinities
    else if constexpr (SAME<T, bf16>) return GREATER ? 0xff80ff80u : 0x7f807f80u;
    else if constexpr (!SIGNED<T>) return GREATER ? 0 : 0xffffffffu;
    else return (GREATER ? 0 : 0xffffffffu) ^ (sizeof(T) == 1 ? 0x80808080u : 0x80008000u);
  }
  static __device__ __forceinline__ u32 gather(u32 a, u32 word) { return extreme<T, GREATER>(a, word); }
};

// The bits that decide whether elements are true: for half types, all but the sign.
template <class T> __device__ __forceinline__ u32 truth(u32 word) { return HALF<T> ? word & 0x7fff7fffu : word; }

// How an op accumulates packed words of T. PLANES = 0: it does not.
template <class Op, class T> struct Gather { static constexpr int PLANES = 0; };
template <class T> struct Gather<Max<T>, T> : Extremes<T, true> {};
template <class T> struct Gather<Min<T>, T> : Extremes<T, false> {};
template <class T, bool GREATER> struct NumberExtremes {  // of half types, where NaN loses
  static constexpr int PLANES = HALF<T>;
  static __device__ __forceinline__ u32 identity() { return 0x7fff7fffu; }  // NaN
  static __device__ __forceinline__ u32 gather(u32 a, u32 word) { return extreme<T, GREATER, true>(a, word); }
};
template <class T> struct Gather<NanMax<T>, T> : NumberExtremes<T, true> {};
template <class T> struct Gather<NanMin<T>, T> : NumberExtremes<T, false> {};
template <int SIZE> struct BitsOf { using type = u32; };
template <> struct BitsOf<1> { using type = u8; };
template <> struct BitsOf<2> { using type = u16; };
template <class T> struct Gather<All<T>, T> {
  using Bits = typename BitsOf<sizeof(T)>::type;
  static constexpr int PLANES = Extremes<Bits, false>::PLANES;
  static __device__ __forceinline__ u32 identity() { return 0xffffffffu; }
  static __device__ __forceinline__ u32 gather(u32 a, u32 word) { return extreme<Bits, false>(a, truth<T>(word)); }
};
template <class T> struct Gather<Any<T>, T> {
  static constexpr int PLANES = sizeof(T) <= 2;
  static __device__ __forceinline__ u32 identity() { return 0; }
  static __device__ __forceinline__ u32 gather(u32 a, u32 word) { return a | truth<T>(word); }
};

template <bool APART, class T = Tin> struct Words {
  using G = Gather<Op, T>;
  static constexpr int COUNT = APART ? VEC : 1, IN_WORD = 4 / sizeof(T), WORDS = APART ? VEC / IN_WORD : 1;
  u32 word[WORDS][G::PLANES];

  __device__ __forceinline__ Words() {
#pragma unroll
    for (int i = 0; i < WORDS * G::PLANES; ++i) word[i / G::PLANES][i % G::PLANES] = G::identity();
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&)[N], const bool (&ready)[N], const Context<A>&) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int w = 0; w < VEC / IN_WORD; ++w) {
#pragma unroll
        for (int plane = 0; plane < G::PLANES; ++plane) {
          u32& gathered = word[w % WORDS][plane];
          gathered = G::gather(gathered, plane ? x[n].word[w] << 8 : x[n].word[w]);
        }
      }
    }
  }
  __device__ __forceinline__ State get(int v, const Context<A>& c) const {
    int i = v % IN_WORD;
    bool raised = sizeof(T) == 1 && G::PLANES == 2;  // the element is the upper byte of 16 bits
    u32 gathered = word[v / IN_WORD][raised && i % 2 == 0];
    Items<T, IN_WORD> items = bit_cast<Items<T, IN_WORD>>(gathered);
    return Op::map(convert<Tval>(items.get(raised ? i / 2 * 2 + 1 : i)), c);
  }
  __device__ __forceinline__ State total(const Context<A>& c) const {
    State sum = get(0, c);
#pragma unroll
    for (int i = 1; i < IN_WORD; ++i) sum = Op::combine(sum, get(i, c));
    return sum;
  }
};

// Sums of small integers, by dot-product instructions (dp2a, dp4a) with factors 1 and 0.
template <class Op> constexpr bool MOMENTS = false;
template <class V> constexpr bool MOMENTS<IntegerVar<V>> = true;
template <class Op> constexpr bool INTEGER_SUM = false;
template <class V> constexpr bool INTEGER_SUM<Sum<V>> = ONE_OF<V, i8, u8, i16, u16, i32, u32, i64, u64>;
template <class V> constexpr bool INTEGER_SUM<IntegerMean<V>> = true;

template <class T> __device__ __forceinline__ i32 dot(u32 word, u32 factors, i32 sum) {
  if constexpr (SAME<T, b8>) word = true_bytes(word);
  if constexpr (sizeof(T) == 1 && SIGNED<T>) return __dp4a(static_cast<i32>(word), static_cast<i32>(factors), sum);
  else if constexpr (sizeof(T) == 1) return __dp4a(word, factors, static_cast<u32>(sum));
  else if constexpr (SIGNED<T>) return __dp2a_lo(static_cast<i32>(word), static_cast<i32>(factors), sum);
  else return __dp2a_lo(word, factors, static_cast<u32>(sum));
}

template <class T> __device__ __forceinline__ u32 dot_self(u32 word, u32 factors, u32 sum) {
  if constexpr (SIGNED<T>) return static_cast<u32>(__dp4a(static_cast<i32>(word), static_cast<i32>(factors), static_cast<i32>(sum)));
  else return __dp4a(word, factors, sum);
}

template <bool APART, class T = Tin> struct Dots {
  static constexpr int COUNT = APART ? VEC : 1, IN_WORD = 4 / sizeof(T);
  static constexpr i32 MOST = sizeof(T) == 1 ? 1 << 18 : 1 << 11;  // packs whose sums are certain to fit 32 bits
  State state[COUNT];
  i32 sum[COUNT], packs = 0;

  __device__ __forceinline__ Dots() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) state[i] = 0, sum[i] = 0;
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&)[N], const bool (&ready)[N], const Context<A>&) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int v = 0; v < VEC; v += APART ? 1 : IN_WORD) {
        sum[v % COUNT] = dot<T>(x[n].word[v / IN_WORD], APART ? 1u << 8 * (v % IN_WORD) : 0x01010101u, sum[v % COUNT]);
      }
    }
    if (sizeof(State) <= 4 || (packs += N) < MOST) return;  // a 32-bit State wraps around as `sum` does
#pragma unroll
    for (int i = 0; i < COUNT; ++i) state[i] = total(i), sum[i] = 0;
    packs = 0;
  }
  // (sum[i] is negative only if T is signed.)
  __device__ __forceinline__ State total(int i) const { return state[i] + static_cast<State>(sum[i]); }
  __device__ __forceinline__ State get(int v, const Context<A>&) const { return total(v); }
  __device__ __forceinline__ State total(const Context<A>&) const { return total(0); }
};

// Sums of bytes and of their squares, likewise.
template <bool APART, class T = Tin> struct Moments {
  static constexpr int COUNT = APART ? VEC : 1, IN_WORD = 4 / sizeof(T);
  static constexpr u32 MOST = 1 << 11;  // packs whose sums are certain to fit 32 bits
  State state[COUNT];
  i32 sum[COUNT];
  u32 squares[COUNT], packs = 0;

  __device__ __forceinline__ Moments() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) state[i] = Op::identity(), sum[i] = 0, squares[i] = 0;
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&)[N], const bool (&ready)[N], const Context<A>&) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
      packs += 1;
#pragma unroll
      for (int v = 0; v < VEC; v += APART ? 1 : IN_WORD) {
        u32 word = x[n].word[v / IN_WORD], shift = 8 * (v % IN_WORD);
        if constexpr (SAME<T, b8>) word = true_bytes(word);
        sum[v % COUNT] = dot<T>(word, APART ? 1u << shift : 0x01010101u, sum[v % COUNT]);
        squares[v % COUNT] = dot_self<T>(word, APART ? word & 0xffu << shift : word, squares[v % COUNT]);
      }
    }
    if (packs < MOST) return;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) state[i] = get(i), sum[i] = 0, squares[i] = 0;
    packs = 0;
  }
  __device__ __forceinline__ State get(int v) const {
    return Op::combine(state[v], {sum[v], squares[v], static_cast<i64>(packs) * (VEC / COUNT)});
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const { return get(v); }
  __device__ __forceinline__ State total(const Context<A>&) const { return get(0); }
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
      return !chosen ? Limits<A>::least() : SCALED ? value * static_cast<A>(c.scale) : value;
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

// Searches, if elements come in the order of their indices: an element that changes the maximum (or minimum) is the first
// that has it. (Zeros of both signs are made the same: they are equal.)
template <class O, bool = UNCONVERTED<O>> struct TopOf { using type = typename O::Top; };
template <class O> struct TopOf<O, true> { using type = typename O::Number; };

template <bool APART, int CHAINS, class O = Op> struct Firsts {
  using Top = typename TopOf<O>::type;
  using A = typename O::A;
  using I = typename O::Place;
  static constexpr int COUNT = APART ? VEC : CHAINS < VEC ? CHAINS : VEC;
  A top[COUNT];
  I place[COUNT], begin = O::NOWHERE;  // begin: the first index, of rows of nothing but what `top` begins with

  __device__ __forceinline__ Firsts() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) top[i] = Top::identity(), place[i] = O::NOWHERE;
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    if (ready[0] && begin == O::NOWHERE) begin = b[0].get(0);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
      auto clean = cleaned(x[n]);
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        A next = Top::combine(top[v % COUNT], unsigned_zero(convert<A>(convert<Tval>(clean.get(v)))));
        bool changed = !same_bits(next, top[v % COUNT]) & !(UNCONVERTED<O> && is_nan(next));
        place[v % COUNT] = changed ? static_cast<I>(b[n].get(OTHER == BESIDE ? v : 0)) : place[v % COUNT];
        top[v % COUNT] = next;
      }
    }
  }
  static __device__ __forceinline__ A unsigned_zero(A x) {
    if constexpr (FLOATING<A>) return x + convert<A>(0);
    else return x;
  }
  static __device__ __forceinline__ bool same_bits(float a, float b) { return bit_cast<u32>(a) == bit_cast<u32>(b); }
  static __device__ __forceinline__ bool same_bits(double a, double b) { return bit_cast<u64>(a) == bit_cast<u64>(b); }
  template <class T> static __device__ __forceinline__ bool same_bits(T a, T b) { return a == b; }
  template <class R> static __device__ __forceinline__ bool same_bits(Complex<R> a, Complex<R> b) {
    return same_bits(a.re, b.re) & same_bits(a.im, b.im);
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    if (place[v] != O::NOWHERE) return O::state(top[v], place[v]);
    if (UNCONVERTED<O> || begin == O::NOWHERE) return O::identity();
    return O::state(top[v], begin + (APART && OTHER == BESIDE ? v : 0));
  }
  __device__ __forceinline__ State total(const Context<A>& c) const {
    State sum = get(0, c);
#pragma unroll
    for (int i = 1; i < COUNT; ++i) sum = O::combine(sum, get(i, c));
    return sum;
  }
};

template <bool APART, int CHAINS, int HOW> struct Choose { using type = Elements<APART, CHAINS>; };
template <bool APART, int CHAINS> struct Choose<APART, CHAINS, 1> { using type = Words<APART>; };
template <bool APART, int CHAINS> struct Choose<APART, CHAINS, 2> { using type = Dots<APART>; };
template <bool APART, int CHAINS> struct Choose<APART, CHAINS, 3> { using type = Exponentials<APART>; };
template <bool APART, int CHAINS> struct Choose<APART, CHAINS, 5> { using type = Moments<APART>; };
template <bool APART, int CHAINS> struct Choose<APART, CHAINS, 4> { using type = Firsts<APART, CHAINS>; };
constexpr bool IN_WORDS = OTHER == NONE && WORDY<Tin, VEC>;
constexpr int HOW = EXPONENTIAL<Op>                                                   ? 3
                    : INDEXED<Op> && ORDERED                                         ? 4
                    : IN_WORDS && Gather<Op, Tin>::PLANES > 0                         ? 1
                    : IN_WORDS && SMALL_INTEGER<Tin> && INTEGER_SUM<Op>               ? 2
                    : IN_WORDS && SMALL_INTEGER<Tin> && sizeof(Tin) == 1 && MOMENTS<Op> ? 5
                                                                                       : 0;
template <bool APART, int CHAINS> using Gathered = typename Choose<APART, CHAINS, HOW>::type;
