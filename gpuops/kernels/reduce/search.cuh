// Accumulators (see accumulate.cuh) of searches: the maximum, or the minimum, and its first index.

// Searches of rows whose elements may come in any order of their indices, and of neighbouring outputs. (-0 becomes 0, which
// it is equal to.)
template <class O, bool = O::UNCONVERTED> struct TopOf { using type = typename O::Top; };
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
  I place[COUNT], begin = O::NOWHERE;  // begin: the first index, for rows in which every element equals the initial `top`

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
        I here = b[n].get(OTHER == REPEATED ? 0 : v);
        bool taken = !same_bits(next, top[v % COUNT]);
        if constexpr (!ORDERED) taken = (taken | (here < place[v % COUNT])) & O::same(value, next);
        taken &= !(O::UNCONVERTED && is_nan(next));
        place[v % COUNT] = taken ? here : place[v % COUNT];
        top[v % COUNT] = next;
      }
    }
  }
  __device__ __forceinline__ State get(int v, const Context<A>&) const {
    if (place[v] != O::NOWHERE) return O::state(top[v], place[v]);
    if (O::UNCONVERTED || !ORDERED || begin == O::NOWHERE) return O::identity();
    return O::state(top[v], begin + (APART && OTHER == BESIDE ? v : 0));
  }
  __device__ __forceinline__ State total(const Context<A>& c) const { return total_of<O, COUNT>(*this, c); }
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

// Searches of a row. The first step finds the maximum (or minimum) of a call's elements. Only if it beats those before, or
// equals them where elements do not come in the order of their indices, a second step finds its index. Floats of two bytes
// are compared two at a time.
template <class O = Op> struct First {
  using Top = typename TopOf<O>::type;
  using A = typename O::A;
  using I = typename O::Place;
  static constexpr int WAYS = VEC < 4 ? VEC : 4;  // independent chains of comparisons
  A top = Top::identity();
  I place = O::NOWHERE, begin = O::NOWHERE;  // begin: the first index, for rows in which every element equals the initial `top`

  template <class X, class B, int N> __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>&) {
    if (ready[0] && begin == O::NOWHERE) begin = b[0].get(0);
    A most = greatest(x, ready), next = unsigned_zero(Top::combine(top, most));
    bool reached = ORDERED ? !same_bits(next, top) : O::same(most, next);
    if (!reached || (O::UNCONVERTED && is_nan(next))) return;
    if constexpr (!ORDERED) {
      place = min(same_bits(next, top) ? place : O::NOWHERE, least(x, b, ready, next));
      top = next;
      return;
    }
    top = next;
    int at;
    if constexpr (PAIRED) {
      u32 both = pair_of<Tin>(next, next);
      if (!O::UNCONVERTED && is_nan(next)) at = first_of_pairs(x, ready, [](u32 word) { return unordered_pair<Tin>(word); });
      else at = first_of_pairs(x, ready, [=](u32 word) { return equal_pair<Tin>(word, both); });
    } else {
      if (!O::UNCONVERTED && is_nan(next)) at = first(x, ready, [](A value) { return is_nan(value); });
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
  // The lowest index of an element that equals `sought`.
  template <class X, class B, int N> static __device__ __forceinline__ I least(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], A sought) {
    I found = O::NOWHERE;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
      auto again = x[n];
      if constexpr (IN_WORDS) {  // converted again: all of them would not fit into registers
#pragma unroll
        for (u32& word : again.word) asm volatile("" : "+r"(word));
      }
      auto clean = cleaned(again);
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        I here = b[n].get(v);
        found = O::same(convert<A>(convert<Tval>(clean.get(v))), sought) & (here < found) ? here : found;
      }
    }
    return found;
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
    return O::UNCONVERTED || begin == O::NOWHERE ? O::identity() : O::state(top, begin);
  }
  __device__ __forceinline__ State total(const Context<A>& c) const { return get(0, c); }
};

// As `Firsts`, for two-byte floats of neighbouring outputs: two at a time, with the pack that raised the maximum last.
// Comparisons are false for NaN; a second step finds it if there is any.
template <class O = Op> struct Pairs {
  using A = typename O::A;
  using I = typename O::Place;
  static constexpr bool GREATEST = !O::FALLS;
  static constexpr int COUNT = VEC, WORDS = (VEC + 1) / 2;
  u32 top[WORDS], unordered[WORDS];
  I place[VEC], begin = O::NOWHERE;  // begin: the first index, for rows in which every element equals the initial `top`

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

// As both, for bools: the first that is true or, for minima, false. APART: a byte of `seen` for each output, whose highest
// bit tells that there was one.
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

// As both, for integers of one or two bytes. A key has the element in its upper bits, as a signed integer, and in its lower
// bits the place among those of a call, counted downwards: so the greatest key is that of the first maximum. key[i] is one
// of 32 bits or, for bytes, two of 16. For minima, elements are complemented.
template <bool APART, class O = Op> struct Keys {
  using A = typename O::A;
  using I = typename O::Place;
  static constexpr bool SMALLEST = O::FALLS, BYTES = sizeof(Tin) == 1;
  static constexpr int COUNT = APART ? VEC : 1, IN_WORD = 4 / sizeof(Tin), KEYS = BYTES ? (VEC + 1) / 2 : VEC;
  static constexpr u32 LAST = BYTES ? 0xff : 0xffff;
  i32 top[COUNT];
  I place[COUNT], begin = O::NOWHERE;  // begin: the first index, for rows in which every element equals the initial `top`

  __device__ __forceinline__ Keys() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) top[i] = BYTES ? -128 : -32768, place[i] = O::NOWHERE;
  }
  // grown: a word's elements as signed integers of the same order (minima: of reversed order). shrunk: the inverse.
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
