// Packs of elements, and accumulators (see accumulate.cuh) of elements of one or two bytes, which are processed in 32-bit
// words without unpacking. Prologue, besides that of reduce.cuh: VEC.

constexpr int VEC_B = ONE_EACH ? VEC : 1;  // elements of the second operand per pack of x
constexpr bool IN_WORDS = WORDY<Tin, VEC>, ALONE = OTHER == NONE, MATCHES = OTHER == BESIDE && SAME<Tin, Tb> && Op::PRODUCT;
constexpr bool PAIRED = HALF<Tin> && SAME<Tin, Tval> && IN_WORDS;  // floats of two bytes
using Pack_x = Items<Tin, VEC>;
using Pack_b = Items<Tb, VEC_B>;
// What packs of x are made from. RAW: of all packs in flight it is loaded before the first is made; else each is made at
// once, which takes fewer registers.
using Raw = decltype(load_raw<VEC>(From()));
template <class S> constexpr bool LOADS_AHEAD = S::EARLY || (Op::EXACT && !S::LINEAR);
template <class T> constexpr bool LOADS_AHEAD<const T*> = false;
constexpr bool RAW = LOADS_AHEAD<Source>;
// The offsets that a place in an expression has, besides the element's number.
template <class S> constexpr int OFFSETS = S::KEPT;
template <class T> constexpr int OFFSETS<const T*> = 0;

// The COUNT states of an accumulator, combined.
template <class O, int COUNT, class Accumulator> __device__ __forceinline__ typename O::State total_of(const Accumulator& accumulator, const Context<A>& c) {
  auto sum = accumulator.get(0, c);
#pragma unroll
  for (int i = 1; i < COUNT; ++i) sum = O::combine(sum, accumulator.get(i, c));
  return sum;
}

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
template <class T, bool GREATER> struct NumberExtremes {  // of half types, ignoring NaN
  static constexpr int PLANES = HALF<T>;
  static __device__ __forceinline__ u32 identity() { return 0x7fff7fffu; }  // NaN
  static __device__ __forceinline__ u32 gather(u32 a, u32 word) { return extreme<T, GREATER, true>(a, word); }
};
template <class T> struct Gather<NanMax<T>, T> : NumberExtremes<T, true> {};
template <class T> struct Gather<NanMin<T>, T> : NumberExtremes<T, false> {};
template <class T> struct Gather<All<T>, T> {
  using Bits = bits_of<T>;
  static constexpr int PLANES = Extremes<Bits, false>::PLANES;
  static __device__ __forceinline__ u32 identity() { return 0xffffffffu; }
  static __device__ __forceinline__ u32 gather(u32 a, u32 word) { return extreme<Bits, false>(a, truth<T>(word)); }
};
template <class T> struct Gather<Any<T>, T> {
  static constexpr int PLANES = sizeof(T) <= 2;
  static __device__ __forceinline__ u32 identity() { return 0; }
  static __device__ __forceinline__ u32 gather(u32 a, u32 word) { return a | truth<T>(word); }
};

// Whether elements equal those of the second operand: accumulates the bits in which they differ.
template <class T, bool NANS> struct Gather<Equal<T, NANS>, T> {
  static constexpr int PLANES = SMALL_INTEGER<T>;
  static __device__ __forceinline__ u32 identity() { return 0; }
  static __device__ __forceinline__ u32 gather(u32 a, u32 word) { return a | word; }
};
template <class T> __device__ __forceinline__ u32 differing(u32 word, u32 other) {
  if constexpr (SAME<T, b8>) return true_bytes(word) ^ true_bytes(other);
  else return word ^ other;
}

template <bool APART, class T = Tin, class O = Op> struct Words {
  using G = Gather<O, T>;
  static constexpr int COUNT = APART ? VEC : 1, IN_WORD = 4 / sizeof(T), WORDS = APART ? VEC / IN_WORD : 1;
  u32 word[WORDS][G::PLANES];

  __device__ __forceinline__ Words() {
#pragma unroll
    for (int i = 0; i < WORDS * G::PLANES; ++i) word[i / G::PLANES][i % G::PLANES] = G::identity();
  }
  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>&) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int w = 0; w < VEC / IN_WORD; ++w) {
        u32 own = x[n].word[w];
        if constexpr (!ALONE) own = differing<T>(own, b[n].word[w]);
#pragma unroll
        for (int plane = 0; plane < G::PLANES; ++plane) {
          u32& gathered = word[w % WORDS][plane];
          gathered = G::gather(gathered, plane ? own << 8 : own);
        }
      }
    }
  }
  __device__ __forceinline__ typename O::State get(int v, const Context<A>& c) const {
    int i = v % IN_WORD;
    bool raised = sizeof(T) == 1 && G::PLANES == 2;  // the element is the upper byte of 16 bits
    u32 gathered = word[v / IN_WORD][raised && i % 2 == 0];
    Items<T, IN_WORD> items = bit_cast<Items<T, IN_WORD>>(gathered);
    return O::map(convert<Tval>(items.get(raised ? i / 2 * 2 + 1 : i)), c);
  }
  __device__ __forceinline__ typename O::State total(const Context<A>& c) const { return total_of<O, IN_WORD>(*this, c); }
};

// Maxima and minima at once.
template <class Op> constexpr bool RANGES = false;
template <class V> constexpr bool RANGES<Range<V>> = SAME<V, Tin> && Extremes<V, true>::PLANES > 0;
template <bool APART, class O = Op> struct Ranges {
  using Most = Words<APART, Tin, typename O::Most>;
  static constexpr int COUNT = Most::COUNT;
  Most most;
  Words<APART, Tin, typename O::Least> least;

  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    most.add(x, b, ready, c), least.add(x, b, ready, c);
  }
  __device__ __forceinline__ typename O::State get(int v, const Context<A>& c) const { return {most.get(v, c), least.get(v, c)}; }
  __device__ __forceinline__ typename O::State total(const Context<A>& c) const { return {most.total(c), least.total(c)}; }
};

// Sums of small integers, by dot-product instructions (dp2a, dp4a) with factors 1 and 0.
template <class Op> constexpr bool MOMENTS = false;
template <class V> constexpr bool MOMENTS<IntegerVar<V>> = true;
template <class Op> constexpr bool INTEGER_SUM = false;
template <class V> constexpr bool INTEGER_SUM<Added<V>> = ONE_OF<V, i8, u8, i16, u16, i32, u32, i64, u64>;
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

// Sums of small integers and of their squares, likewise. APART: four bytes of an output, from successive packs, are
// gathered in a word.
template <bool APART, class T = Tin, class O = Op> struct Moments {
  using A = typename O::A;
  static constexpr bool BYTES = sizeof(T) == 1;
  static constexpr int COUNT = APART ? VEC : 1, IN_WORD = 4 / sizeof(T), AT_ONCE = APART && BYTES ? 4 : 1;
  static constexpr i32 MOST = (BYTES ? 60000 : 30000) * COUNT / VEC;  // packs whose sums are certain to fit 32 bits
  i32 sum[COUNT], packs = 0;
  u32 squares[BYTES ? COUNT : 1];
  i32 sums[COUNT];  // carries from `sum`, in units of 2^12
  u32 more[BYTES ? COUNT : 1];  // carries from `squares`, in units of 2^20
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
    if (sizeof(A) == 4 || (packs += N) < MOST) return;  // 32 bits hold all of an output
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
  __device__ __forceinline__ typename O::State get(int v, const Context<A>&) const {
    A all = (static_cast<A>(sums[v]) << 12) + sum[v];
    if constexpr (BYTES) return {all, (static_cast<bits_of<A>>(more[v]) << 20) + squares[v]};
    else return {all, static_cast<bits_of<A>>(wide[v])};
  }
  __device__ __forceinline__ typename O::State total(const Context<A>& c) const { return get(0, c); }
};

// Counts of nonzero bytes; of bools, which are their own squares, also the moments. APART: each byte of `word` counts those
// of an output, up to 255.
template <class Op> constexpr bool COUNTS = false;
template <class V> constexpr bool COUNTS<IntegerVar<V>> = SAME<Tin, b8>;
template <class V> constexpr bool COUNTS<CountNonzero<V>> = sizeof(Tin) == 1;
template <bool APART, class O = Op> struct Trues {
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
  __device__ __forceinline__ typename O::State get(int v, const Context<A>&) const { return O::of_trues(counted(v)); }
  __device__ __forceinline__ typename O::State total(const Context<A>&) const { return O::of_trues(count[0]); }
};
