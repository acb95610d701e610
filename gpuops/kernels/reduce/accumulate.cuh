// Accumulators of a thread, over packs of VEC elements of x. APART: the elements of a pack belong to neighbouring
// outputs, with a State each; otherwise one State for all. Prologue, besides that of reduce.cuh: VEC.

constexpr int VEC_B = OTHER == BESIDE ? VEC : 1;  // elements of the second operand per pack of x
constexpr bool IN_WORDS = WORDY<Tin, VEC>, ALONE = OTHER == NONE;
constexpr bool PAIRED = HALF<Tin> && SAME<Tin, Tval> && IN_WORDS;  // floats of two bytes
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

// Sums of small integers and of their squares, likewise. Bytes of an output that come one after the other are brought
// together in a word, four at a time.
template <bool APART, class T = Tin> struct Moments {
  static constexpr bool BYTES = sizeof(T) == 1;
  static constexpr int COUNT = APART ? VEC : 1, IN_WORD = 4 / sizeof(T), AT_ONCE = APART && BYTES ? 4 : 1;
  static constexpr i32 MOST = (BYTES ? 60000 : 30000) * COUNT / VEC;  // packs whose sums are certain to fit 32 bits
  i32 sum[COUNT], packs = 0;
  u32 squares[BYTES ? COUNT : 1];
  i32 sums[COUNT];  // of 2^12, and
  u32 more[BYTES ? COUNT : 1];  // of 2^20, beside those above
  u64 wide[BYTES ? 1 : COUNT];  // squares of more than a byte

  __device__ __forceinline__ Moments() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      sum[i] = sums[i] = 0;
      if constexpr (BYTES) squares[i] = more[i] = 0;
      else wide[i] = 0;
    }
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&)[N], const bool (&ready)[N], const Context<A>&) {
#pragma unroll
    for (int n = 0; n < N; n += AT_ONCE) {
      if (!ready[n]) continue;
#pragma unroll
      for (int w = 0; w < VEC / IN_WORD; ++w) {
        u32 word[4] = {};
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
          int pack = n + i < N ? n + i : 0;
          word[i] = n + i < N && ready[pack] ? x[pack].word[w] : 0;
        }
        if constexpr (AT_ONCE == 4) {
          u32 low[2] = {__byte_perm(word[0], word[1], 0x5140), __byte_perm(word[2], word[3], 0x5140)};
          u32 high[2] = {__byte_perm(word[0], word[1], 0x7362), __byte_perm(word[2], word[3], 0x7362)};
          word[0] = __byte_perm(low[0], low[1], 0x5410), word[1] = __byte_perm(low[0], low[1], 0x7632);
          word[2] = __byte_perm(high[0], high[1], 0x5410), word[3] = __byte_perm(high[0], high[1], 0x7632);
        }
#pragma unroll
        for (int v = 0; v < IN_WORD; v += APART ? 1 : IN_WORD) {
          u32 some = word[AT_ONCE == 4 ? v : 0];
          int i = (w * IN_WORD + v) % COUNT;
          sum[i] = dot<T>(some, APART && AT_ONCE == 1 ? 1u << 8 * v : 0x01010101u, sum[i]);
          if constexpr (BYTES) squares[i] = dot_self(some, squares[i]);
        }
        if constexpr (!BYTES) {
#pragma unroll
          for (int v = 0; v < IN_WORD; ++v) {
            i64 value = x[n].get(w * IN_WORD + v);
            wide[(w * IN_WORD + v) % COUNT] += value * value;
          }
        }
      }
    }
    if ((packs += N) < MOST) return;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      sums[i] += sum[i] >> 12, sum[i] &= 0xfff;
      if constexpr (BYTES) more[i] += squares[i] >> 20, squares[i] &= 0xfffff;
    }
    packs = 0;
  }
  static __device__ __forceinline__ u32 dot_self(u32 word, u32 sum) {
    if constexpr (SIGNED<T>) return static_cast<u32>(__dp4a(static_cast<i32>(word), static_cast<i32>(word), static_cast<i32>(sum)));
    else return __dp4a(word, word, sum);
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    i64 all = (static_cast<i64>(sums[v]) << 12) + sum[v];
    if constexpr (BYTES) return {all, (static_cast<u64>(more[v]) << 20) + squares[v]};
    else return {all, wide[v]};
  }
  __device__ __forceinline__ State total(const Context<A>& c) const { return get(0, c); }
};

// The same of bools, which are their own squares. APART: each byte of `word` counts those of an output, up to 255.
template <bool APART> struct Trues {
  static constexpr int COUNT = APART ? VEC : 1, WORDS = APART ? VEC / 4 : 1;
  u32 count[COUNT], word[WORDS], packs = 0;

  __device__ __forceinline__ Trues() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) count[i] = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) word[w] = 0;
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&)[N], const bool (&ready)[N], const Context<A>&) {
    if constexpr (APART) {
      if ((packs += N) > 255) {
#pragma unroll
        for (int v = 0; v < VEC; ++v) count[v] = counted(v);
#pragma unroll
        for (int w = 0; w < WORDS; ++w) word[w] = 0;
        packs = N;
      }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int w = 0; w < VEC / 4; ++w) {
        u32 bytes = true_bytes(x[n].word[w]);
        if constexpr (APART) word[w] += bytes;
        else count[0] = __dp4a(bytes, 0x01010101u, count[0]);
      }
    }
  }
  __device__ __forceinline__ u32 counted(int v) const { return count[v] + (word[v / 4 % WORDS] >> 8 * (v % 4) & 0xff); }
  __device__ __forceinline__ State get(int v, const Context<A>&) const { return {counted(v), counted(v)}; }
  __device__ __forceinline__ State total(const Context<A>&) const { return {count[0], count[0]}; }
};

// Variances, around a center that all of a thread's elements have in common (APART: all of an output).
template <bool APART, int CHAINS, class O = Op> struct Deviations {
  using A = typename O::A;
  using R = real_t<A>;
  using Spread = typename O::Spread;
  static constexpr int COUNT = APART ? VEC : CHAINS < VEC ? CHAINS : VEC, CENTERS = APART ? VEC : 1;
  static constexpr u32 EACH = VEC / COUNT;  // elements of a pack in each sum
  A center[CENTERS], sum[COUNT], whole[COUNT];  // whole: of elements less nothing
  R squares[COUNT];
  u32 packs = 0, calls = 0;

  __device__ __forceinline__ Deviations() {
#pragma unroll
    for (int i = 0; i < CENTERS; ++i) center[i] = convert<A>(0);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum[i] = whole[i] = convert<A>(0), squares[i] = R(0);
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&)[N], const bool (&ready)[N], const Context<A>&) {
    if (packs == 0) {
      if (!ready[0]) return;  // packs after the first that is not ready are not either
      auto clean = cleaned(x[0]);
#pragma unroll
      for (int i = 0; i < CENTERS; ++i) center[i] = convert<A>(convert<Tval>(clean.get(i)));
      if constexpr (!APART) {  // the mean of a pack, which is exact if all are equal
        A apart = convert<A>(0);
#pragma unroll
        for (int v = 1; v < VEC; ++v) apart = apart + (convert<A>(convert<Tval>(clean.get(v))) - center[0]);
        center[0] = center[0] + times(apart, R(1) / VEC);
      }
    } else if ((calls & (calls - 1)) == 0) {  // as often as the number of elements doubles
      settle();
    }
    ++calls;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
      ++packs;
      auto clean = cleaned(x[n]);
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        A value = convert<A>(convert<Tval>(clean.get(v))), apart = value - center[v % CENTERS];
        sum[v % COUNT] = sum[v % COUNT] + apart;
        squares[v % COUNT] += real_product(apart, apart);
        whole[v % COUNT] = whole[v % COUNT] + value;
      }
    }
  }
  // Moves centers to about the means.
  __device__ __forceinline__ void settle() {
#pragma unroll
    for (int i = 0; i < CENTERS; ++i) {
      A all = sum[i];
#pragma unroll
      for (int k = i + CENTERS; k < COUNT; k += CENTERS) all = all + sum[k];
      A next = center[i] + times(all, Spread::part_of(static_cast<R>(packs * (APART ? 1 : VEC)))), moved = next - center[i];
#pragma unroll
      for (int k = i; k < COUNT; k += CENTERS) {
        auto part = Spread::recentered({sum[k], squares[k], 0, 0}, moved, static_cast<R>(packs * EACH));
        sum[k] = part.sum, squares[k] = part.squares;
      }
      center[i] = next;
    }
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    return O::settled(O::state(center[v], O::sums(sum[v], squares[v], packs, whole[v])));
  }
  __device__ __forceinline__ State total(const Context<A>&) const {
    A all = sum[0], total = whole[0];
    R more = squares[0];
#pragma unroll
    for (int k = 1; k < COUNT; ++k) all = all + sum[k], total = total + whole[k], more += squares[k];
    return O::settled(O::state(center[0], O::sums(all, more, packs * VEC, total)));
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

// Searches of rows whose elements may come in any order of their indices, and of neighbouring outputs. (Zeros of both signs
// are made the same: they are equal.)
template <class O, bool = UNCONVERTED<O>> struct TopOf { using type = typename O::Top; };
template <class O> struct TopOf<O, true> { using type = typename O::Number; };

template <class A> __device__ __forceinline__ A unsigned_zero(A x) {
  if constexpr (FLOATING<A>) return x + convert<A>(0);
  else return x;
}
__device__ __forceinline__ bool same_bits(float a, float b) { return bit_cast<u32>(a) == bit_cast<u32>(b); }
__device__ __forceinline__ bool same_bits(double a, double b) { return bit_cast<u64>(a) == bit_cast<u64>(b); }
template <class T> __device__ __forceinline__ bool same_bits(T a, T b) { return a == b; }
template <class R> __device__ __forceinline__ bool same_bits(Complex<R> a, Complex<R> b) {
  return same_bits(a.re, b.re) & same_bits(a.im, b.im);
}

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
        A value = unsigned_zero(convert<A>(convert<Tval>(clean.get(v)))), next = Top::combine(top[v % COUNT], value);
        I here = b[n].get(OTHER == BESIDE ? v : 0);
        bool taken = !same_bits(next, top[v % COUNT]);
        if constexpr (!ORDERED) taken = (taken | (here < place[v % COUNT])) & O::same(value, next);
        taken &= !(UNCONVERTED<O> && is_nan(next));
        place[v % COUNT] = taken ? here : place[v % COUNT];
        top[v % COUNT] = next;
      }
    }
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    if (place[v] != O::NOWHERE) return O::state(top[v], place[v]);
    if (UNCONVERTED<O> || !ORDERED || begin == O::NOWHERE) return O::identity();
    return O::state(top[v], begin + (APART && OTHER == BESIDE ? v : 0));
  }
  __device__ __forceinline__ State total(const Context<A>& c) const {
    State sum = get(0, c);
#pragma unroll
    for (int i = 1; i < COUNT; ++i) sum = O::combine(sum, get(i, c));
    return sum;
  }
};

// The index of element v of pack n of a call.
template <class I, class B, int N> __device__ __forceinline__ I index_of(const B (&b)[N], int n, int v) {
  I from = b[0].get(0);
  if constexpr (REDUCED == 1 && N > 1) {  // packs are equally far apart
    from += n * static_cast<I>(b[1].get(0) - b[0].get(0));
  } else {
#pragma unroll
    for (int k = 1; k < N; ++k) from = n == k ? static_cast<I>(b[k].get(0)) : from;
  }
  return from + (OTHER == BESIDE ? v : 0);
}

// Searches of a row whose elements come in the order of their indices. The greatest (or least) element of a call comes
// first; only if it is ahead of those before, its place is looked for. Floats of two bytes are compared two at a time.
template <class O = Op> struct First {
  using Top = typename TopOf<O>::type;
  using A = typename O::A;
  using I = typename O::Place;
  static constexpr int WAYS = VEC < 4 ? VEC : 4;  // independent chains of comparisons
  A top = Top::identity();
  I place = O::NOWHERE, begin = O::NOWHERE;  // begin: the first index, of rows of nothing but what `top` begins with

  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>&) {
    if (ready[0] && begin == O::NOWHERE) begin = b[0].get(0);
    A next = unsigned_zero(Top::combine(top, greatest(x, ready)));
    if (same_bits(next, top) || (UNCONVERTED<O> && is_nan(next))) return;
    top = next;
    int at;
    if constexpr (PAIRED) {
      u32 both = pair_of<Tin>(next, next);
      if (!UNCONVERTED<O> && is_nan(next)) at = first_of_pairs(x, ready, [](u32 word) { return unordered_pair<Tin>(word); });
      else at = first_of_pairs(x, ready, [=](u32 word) { return equal_pair<Tin>(word, both); });
    } else {
      if (!UNCONVERTED<O> && is_nan(next)) at = first(x, ready, [](A value) { return is_nan(value); });
      else at = first(x, ready, [=](A value) { return equal(value, next); });
    }
    place = index_of<I>(b, at / VEC, at % VEC);
  }
  template <class X, int N> static __device__ __forceinline__ A greatest(const X (&x)[N], const bool (&ready)[N]) {
    if constexpr (PAIRED) {
      using G = Gather<Top, Tin>;
      u32 most = G::identity();
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (!ready[n]) continue;
#pragma unroll
        for (int w = 0; w < VEC / 2; ++w) most = G::gather(most, x[n].word[w]);
      }
      Items<Tin, 2> both = bit_cast<Items<Tin, 2>>(most);
      return Top::combine(convert<A>(both.get(0)), convert<A>(both.get(1)));
    } else {
      A most[WAYS];
#pragma unroll
      for (int i = 0; i < WAYS; ++i) most[i] = Top::identity();
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (!ready[n]) continue;
        auto clean = cleaned(x[n]);
#pragma unroll
        for (int v = 0; v < VEC; ++v) most[v % WAYS] = Top::combine(most[v % WAYS], convert<A>(convert<Tval>(clean.get(v))));
      }
#pragma unroll
      for (int i = 1; i < WAYS; ++i) most[0] = Top::combine(most[0], most[i]);
      return most[0];
    }
  }
  template <class X, int N, class Test> static __device__ __forceinline__ int first(const X (&x)[N], const bool (&ready)[N], Test test) {
    int at[VEC];
#pragma unroll
    for (int v = 0; v < VEC; ++v) at[v] = N * VEC;
#pragma unroll
    for (int n = N - 1; n >= 0; --n) {
      if (!ready[n]) continue;
      auto clean = cleaned(x[n]);
#pragma unroll
      for (int v = 0; v < VEC; ++v) at[v] = test(convert<A>(convert<Tval>(clean.get(v)))) ? n * VEC + v : at[v];
    }
#pragma unroll
    for (int v = 1; v < VEC; ++v) at[0] = min(at[0], at[v]);
    return at[0];
  }
  // Each bit of `found` stands for an element: those of the lower halves of words are in its lower half.
  template <class X, int N, class Test> static __device__ __forceinline__ int first_of_pairs(const X (&x)[N], const bool (&ready)[N], Test test) {
    constexpr int WORDS = VEC / 2, GROUPS = (N * WORDS + 15) / 16;
    u32 at = 0;
#pragma unroll
    for (int group = GROUPS - 1; group >= 0; --group) {
      u32 found = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        int n = (group * 16 + i) / WORDS, w = (group * 16 + i) % WORDS;
        if (n < N && ready[n < N ? n : 0]) found |= test(x[n < N ? n : 0].word[w]) & 0x10001u << i;
      }
      u32 low = 2 * (__ffs(found & 0xffff) - 1), high = 2 * (__ffs(found >> 16) - 1) + 1;  // of none: huge
      at = found ? 32 * group + min(low, high) : at;
    }
    return at;
  }
  __device__ __forceinline__ State get(int, const Context<A>&) const {
    if (place != O::NOWHERE) return O::state(top, place);
    return UNCONVERTED<O> || begin == O::NOWHERE ? O::identity() : O::state(top, begin);
  }
  __device__ __forceinline__ State total(const Context<A>& c) const { return get(0, c); }
};

// As `Firsts`, for elements of two bytes that are floats, of neighbouring outputs: two at a time, with the pack in which
// the greatest was last found. (Comparisons that are not true of NaN; which is looked for in a second step, if it is there.)
template <class O = Op> struct Pairs {
  using A = typename O::A;
  using I = typename O::Place;
  static constexpr bool GREATEST = !O::FALLS;
  static constexpr int COUNT = VEC, WORDS = (VEC + 1) / 2;
  u32 top[WORDS], unordered[WORDS];
  I place[VEC], begin = O::NOWHERE;  // begin: the first index, of rows of nothing but what `top` begins with

  __device__ __forceinline__ Pairs() {
#pragma unroll
    for (int v = 0; v < VEC; ++v) top[v / 2] = Extremes<Tin, GREATEST>::identity(), unordered[v / 2] = 0, place[v] = O::NOWHERE;
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    if (ready[0] && begin == O::NOWHERE) begin = b[0].get(0);
    u32 pack[WORDS], changed = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) pack[w] = ~0u;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int w = 0; w < WORDS; ++w) {
        u32 ahead = beyond<Tin, GREATEST>(x[n].word[w], top[w]);
        pack[w] = (pack[w] & ~ahead) | (n * 0x10001u & ahead);
        top[w] = extreme<Tin, GREATEST>(top[w], x[n].word[w]);
      }
    }
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      u32 n = v % 2 ? pack[v / 2] >> 16 : pack[v / 2] & 0xffff;
      if (n != 0xffff) place[v] = index_of<I>(b, n, v);
    }
#pragma unroll
    for (int w = 0; w < WORDS; ++w) changed |= unordered_pair<Tin>(top[w]) ^ unordered[w];
    if (changed) find_nan(x, b, ready);
  }
  template <class X, class B, int N> __device__ __forceinline__ void find_nan(const X (&x)[N], const B (&b)[N], const bool (&ready)[N]) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      if (unordered[v / 2] >> 16 * (v % 2) & 1) continue;
#pragma unroll
      for (int n = N - 1; n >= 0; --n) {
        if (ready[n] && is_nan(widen(x[n].get(v)))) place[v] = index_of<I>(b, n, v);
      }
    }
#pragma unroll
    for (int w = 0; w < WORDS; ++w) unordered[w] = unordered_pair<Tin>(top[w]);
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    A value = convert<A>(bit_cast<Items<Tin, 2>>(top[v / 2]).get(v % 2));
    if (place[v] != O::NOWHERE) return O::state(value, place[v]);
    return begin == O::NOWHERE ? O::identity() : O::state(value, begin + (OTHER == BESIDE ? v : 0));
  }
};

// As both, for bools: the first that is true, or of minima false. APART: a byte of `seen` for each output, of which the
// highest bit says that there was one.
template <bool APART, class O = Op> struct FirstTrues {
  using A = typename O::A;
  using I = typename O::Place;
  static constexpr int COUNT = APART ? VEC : 1, WORDS = (VEC + 3) / 4;
  static constexpr u32 HIGH = 0x80808080u;
  u32 seen[WORDS] = {};
  I place[COUNT], begin = O::NOWHERE;  // begin: the first index, of outputs without one

  __device__ __forceinline__ FirstTrues() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) place[i] = O::NOWHERE;
  }
  static __device__ __forceinline__ u32 sought(u32 word) {  // in the highest bits of bytes
    u32 high = ((word & ~HIGH) + ~HIGH) | word;
    return O::FALLS ? ~high : high;
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>&) {
    if (ready[0] && begin == O::NOWHERE) begin = b[0].get(0);
    u32 all = HIGH;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) all &= seen[w];
    if (all == HIGH) return;
    if constexpr (APART) {
      u32 now[WORDS], before[WORDS];  // bytes of `before`: packs of the call before the one sought
#pragma unroll
      for (int w = 0; w < WORDS; ++w) now[w] = seen[w], before[w] = 0;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (!ready[n]) continue;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) now[w] |= sought(x[n].word[w]), before[w] += (~now[w] & HIGH) >> 7;
      }
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        int w = v / 4, shift = 8 * (v % 4);
        if (now[w] & ~seen[w] & 0x80u << shift) place[v] = index_of<I>(b, before[w] >> shift & 0xff, v);
      }
#pragma unroll
      for (int w = 0; w < WORDS; ++w) seen[w] = now[w] & HIGH;
    } else {
      int at = -1;
#pragma unroll
      for (int n = N - 1; n >= 0; --n) {
        if (!ready[n]) continue;
        u32 bits = 0;  // a bit for each element
#pragma unroll
        for (int w = 0; w < WORDS; ++w) bits |= __dp4a((sought(x[n].word[w]) & HIGH) >> 7, 0x08040201u, 0u) << 4 * w;
        at = bits ? n * VEC + __ffs(bits) - 1 : at;
      }
      if (at < 0) return;
      place[0] = index_of<I>(b, at / VEC, at % VEC);
#pragma unroll
      for (int w = 0; w < WORDS; ++w) seen[w] = HIGH;
    }
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    if (place[v] != O::NOWHERE) return O::state(!O::FALLS, place[v]);
    return begin == O::NOWHERE ? O::identity() : O::state(O::FALLS, begin + (APART && OTHER == BESIDE ? v : 0));
  }
  __device__ __forceinline__ State total(const Context<A>& c) const { return get(0, c); }
};

// As both, for integers of one or two bytes. A key is an element, as an integer that grows with it, above its place
// among those of a call, which falls: so the greatest key is that of the first of the greatest elements. key[i] is one of
// 32 bits or, of bytes, two of 16. Of minima, elements are negated.
template <bool APART, class O = Op> struct Keys {
  using A = typename O::A;
  using I = typename O::Place;
  static constexpr bool SMALLEST = O::FALLS, BYTES = sizeof(Tin) == 1;
  static constexpr int COUNT = APART ? VEC : 1, IN_WORD = 4 / sizeof(Tin), KEYS = BYTES ? (VEC + 1) / 2 : VEC;
  static constexpr u32 LAST = BYTES ? 0xff : 0xffff;
  i32 top[COUNT];
  I place[COUNT], begin = O::NOWHERE;  // begin: the first index, of rows of nothing but what `top` begins with

  __device__ __forceinline__ Keys() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) top[i] = BYTES ? -128 : -32768, place[i] = O::NOWHERE;
  }
  // Signed integers of a word's elements that grow with them, and the element of one.
  static __device__ __forceinline__ u32 grown(u32 word) {
    return word ^ (SMALLEST ? ~0u : 0u) ^ (SIGNED<Tin> ? 0u : BYTES ? 0x80808080u : 0x80008000u);
  }
  static __device__ __forceinline__ A shrunk(i32 value) {
    return static_cast<A>((SMALLEST ? ~value : value) + (SIGNED<Tin> ? 0 : BYTES ? 128 : 32768));
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    static_assert((APART ? N : N * VEC) <= static_cast<int>(LAST), "places of a call");
    if (ready[0] && begin == O::NOWHERE) begin = b[0].get(0);
    u32 key[KEYS];
#pragma unroll
    for (int i = 0; i < KEYS; ++i) key[i] = BYTES ? 0x80008000u : 0x80000000u;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int v = 0; v < VEC; v += BYTES && v % 2 ? 3 : 1) {
        u32 word = grown(x[n].word[v / IN_WORD]), here = LAST - (APART ? n : n * VEC + v), next = LAST - (APART ? n : n * VEC + v + 2);
        if constexpr (BYTES) {
          u32& greatest = key[v / 4 * 2 + v % 2];
          greatest = __vmaxs2(greatest, (v % 2 ? word & 0xff00ff00u : word << 8 & 0xff00ff00u) | here | next << 16);
        } else {
          key[v] = later(key[v], (v % 2 ? word & 0xffff0000u : word << 16) | here);
        }
      }
    }
    if constexpr (APART) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        if constexpr (!BYTES) take(v, key[v], b);
        else take(v, v % 4 / 2 ? key[v / 4 * 2 + v % 2] : key[v / 4 * 2 + v % 2] << 16, b);
      }
    } else {
#pragma unroll
      for (int half = KEYS / 2; half > 0; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) key[i] = BYTES ? __vmaxs2(key[i], key[i + half]) : later(key[i], key[i + half]);
      }
      take(0, BYTES ? later(key[0], key[0] << 16) : key[0], b);
    }
  }
  static __device__ __forceinline__ u32 later(u32 a, u32 b) { return max(static_cast<i32>(a), static_cast<i32>(b)); }
  // Takes a call's greatest key, in the upper bits, if the element is greater than those before.
  template <class B, int N> __device__ __forceinline__ void take(int i, u32 key, const B (&b)[N]) {
    i32 value = static_cast<i32>(key) >> (BYTES ? 24 : 16);
    if (value <= top[i]) return;
    int at = LAST - (BYTES ? key >> 16 & LAST : key & LAST);
    top[i] = value;
    place[i] = APART ? index_of<I>(b, at, i) : index_of<I>(b, at / VEC, at % VEC);
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    if (place[v] != O::NOWHERE) return O::state(shrunk(top[v]), place[v]);
    return begin == O::NOWHERE ? O::identity() : O::state(shrunk(top[v]), begin + (APART && OTHER == BESIDE ? v : 0));
  }
  __device__ __forceinline__ State total(const Context<A>& c) const { return get(0, c); }
};

// The accumulator of a problem.
template <class T> struct As { using type = T; };
template <bool APART, int CHAINS> __device__ auto chosen() {
  if constexpr (EXPONENTIAL<Op>) return As<Exponentials<APART>>();
  else if constexpr (APART && INDEXED<Op> && ORDERED && IN_WORDS && HALF<Tin> && !UNCONVERTED<Op>) return As<Pairs<>>();
  else if constexpr (INDEXED<Op> && ORDERED && IN_WORDS && SAME<Tin, Tval> && SAME<Tin, b8>) return As<FirstTrues<APART>>();
  else if constexpr (INDEXED<Op> && ORDERED && IN_WORDS && SAME<Tin, Tval> && SMALL_INTEGER<Tin>) return As<Keys<APART>>();
  else if constexpr (INDEXED<Op> && ORDERED && !APART && (CHAINS > 1 || PAIRED || sizeof(Tin) > 4)) return As<First<>>();
  else if constexpr (INDEXED<Op>) return As<Firsts<APART, CHAINS>>();
  else if constexpr (ALONE && IN_WORDS && Gather<Op, Tin>::PLANES > 0) return As<Words<APART>>();
  else if constexpr (ALONE && IN_WORDS && SMALL_INTEGER<Tin> && INTEGER_SUM<Op>) return As<Dots<APART>>();
  else if constexpr (ALONE && IN_WORDS && MOMENTS<Op> && SAME<Tin, b8>) return As<Trues<APART>>();
  else if constexpr (ALONE && IN_WORDS && MOMENTS<Op>) return As<Moments<APART>>();
  else if constexpr (ALONE && CENTERED<Op> && !UNCONVERTED<Op>) return As<Deviations<APART, CHAINS>>();
  else return As<Elements<APART, CHAINS>>();
}
template <bool APART, int CHAINS> using Gathered = typename decltype(chosen<APART, CHAINS>())::type;
