// Structs of reductions that are written by hand, for speed: the state of an element (map), of two states (combine), and
// the result (finish). Those of other reductions are printed (gpuops/definition/in_cuda.py). The host describes a struct
// by its name, traits and options (OpStruct in gpuops/plan/reductions/problems.py).
namespace gpuops {

// ---- arithmetic on accumulators
template <class R> __device__ __forceinline__ Complex<R> operator+(Complex<R> a, Complex<R> b) { return {a.re + b.re, a.im + b.im}; }
template <class R> __device__ __forceinline__ Complex<R> operator-(Complex<R> a, Complex<R> b) { return {a.re - b.re, a.im - b.im}; }
template <class R> __device__ __forceinline__ Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> __device__ __forceinline__ bool is_nan(T x) { return x != x; }
template <class R> __device__ __forceinline__ bool is_nan(Complex<R> x) { return is_nan(x.re) || is_nan(x.im); }
template <class R, int K> __device__ __forceinline__ bool is_nan(Several<R, K>) { return false; }  // no op asks for it
template <class T> __device__ __forceinline__ bool equal(T a, T b) { return a == b; }
template <class R> __device__ __forceinline__ bool equal(Complex<R> a, Complex<R> b) { return a.re == b.re && a.im == b.im; }
template <class T> __device__ __forceinline__ bool less(T a, T b) { return a < b; }
template <class R> __device__ __forceinline__ bool less(Complex<R> a, Complex<R> b) {  // lexicographic, as NumPy
  return a.re < b.re || (a.re == b.re && a.im < b.im);
}

// Unsigned integers of the size of T.
template <int SIZE> struct BitsOf { using type = u64; };
template <> struct BitsOf<1> { using type = u8; };
template <> struct BitsOf<2> { using type = u16; };
template <> struct BitsOf<4> { using type = u32; };
template <class T> using bits_of = typename BitsOf<sizeof(T)>::type;

// 1 / x, one approximate instruction. Subnormal results become 0.
__device__ __forceinline__ float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return 1 / x;
#endif
}

// Maximum and minimum of two numbers. NaN propagates.
template <class T> __device__ __forceinline__ T greater_of(T a, T b) { return is_nan(a) || less(b, a) ? a : b; }
template <class T> __device__ __forceinline__ T lesser_of(T a, T b) { return is_nan(a) || less(a, b) ? a : b; }
template <class R> __device__ __forceinline__ Complex<R> greater_of(Complex<R> a, Complex<R> b) {
  return is_nan(a) || (!is_nan(b) && less(b, a)) ? a : b;
}
template <class R> __device__ __forceinline__ Complex<R> lesser_of(Complex<R> a, Complex<R> b) {
  return is_nan(a) || (!is_nan(b) && less(a, b)) ? a : b;
}
// The same, but NaN is ignored.
template <class T> __device__ __forceinline__ T greater_number(T a, T b) { return is_nan(a) ? b : is_nan(b) ? a : greater_of(a, b); }
template <class T> __device__ __forceinline__ T lesser_number(T a, T b) { return is_nan(a) ? b : is_nan(b) ? a : lesser_of(a, b); }
#ifdef __CUDA_ARCH__  // in one instruction
__device__ __forceinline__ float greater_number(float a, float b) { asm("max.f32 %0, %0, %1;" : "+f"(a) : "f"(b)); return a; }
__device__ __forceinline__ float lesser_number(float a, float b) { asm("min.f32 %0, %0, %1;" : "+f"(a) : "f"(b)); return a; }
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float greater_of(float a, float b) { asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b)); return a; }
__device__ __forceinline__ float lesser_of(float a, float b) { asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b)); return a; }
#endif

template <class T> struct Limits {  // the least and greatest value of an accumulator; integers by two's complement
  static constexpr bool is_signed = T(-1) < T(0);
  static __device__ __forceinline__ T greatest() { return is_signed ? T((u64(1) << (8 * sizeof(T) - 1)) - 1) : T(-1); }
  static __device__ __forceinline__ T least() { return is_signed ? T(u64(1) << (8 * sizeof(T) - 1)) : T(0); }
};
template <> struct Limits<float> {
  static __device__ __forceinline__ float greatest() { return bit_cast<float>(0x7f800000u); }
  static __device__ __forceinline__ float least() { return bit_cast<float>(0xff800000u); }
};
template <> struct Limits<double> {
  static __device__ __forceinline__ double greatest() { return bit_cast<double>(u64(0x7ff0000000000000)); }
  static __device__ __forceinline__ double least() { return bit_cast<double>(u64(0xfff0000000000000)); }
};
template <class R> struct Limits<Complex<R>> {
  static __device__ __forceinline__ Complex<R> greatest() { return {Limits<R>::greatest(), Limits<R>::greatest()}; }
  static __device__ __forceinline__ Complex<R> least() { return {Limits<R>::least(), Limits<R>::least()}; }
};

// Half types accumulate in float32, everything else in its own type (a bool's is bool).
template <class V> struct Accumulate { using type = V; };
template <> struct Accumulate<b8> { using type = bool; };
template <> struct Accumulate<f16> { using type = float; };
template <> struct Accumulate<bf16> { using type = float; };
template <class R, int K> struct Accumulate<Several<R, K>> { using type = Several<typename Accumulate<R>::type, K>; };
template <class V> using accumulate_t = typename Accumulate<V>::type;

// What an op may read besides elements: its options, indexed by its enum; whether to take the root of a variance; the row's
// maximum; for exact sums, how many terms a thread and an output have (see headroom in reduce.cuh), what
// merges lose (of products of MOMENTS, too), and whether an initial value is to be added, or has a part that is -0.0.
template <class A> struct Context {
  double option[3];
  bool root;
  A shift;
  i32 headroom, room, merging, merging_products;
  i32 initial, minus_zero;
};

// What kernels need to know about an op.
struct Traits {
  static constexpr bool INDEXED = false;      // takes elements with their index
  static constexpr bool PRODUCT = false;      // takes elements with those of a second operand
  static constexpr bool UNCONVERTED = false;  // map takes elements in their own type: for their truth value, or to skip NaN
  static constexpr bool COUNTING = false;     // states count elements, which are added one by one (add)
  static constexpr bool EXPONENTIAL = false;  // takes exponentials of whole packs
  static constexpr bool EXACT = false;        // states are exact sums, which may leave the result open
  static constexpr bool DIVIDES = false;      // they are divided by the number of elements
  static constexpr bool ALIKE = false;        // exact sums that merge have an exponent, or a unit, in common
};

// States that are one number. fields: a state in the record's layout F; from: the state of one.
template <class S> struct Single : Traits {
  using State = S;
  template <class F> static __device__ __forceinline__ F fields(S s) { return {s}; }
  template <class F> static __device__ __forceinline__ S from(F f) { return bit_cast<S>(f); }
};

template <class A> __device__ __forceinline__ A nan() { return Limits<A>::greatest() - Limits<A>::greatest(); }
template <> __device__ __forceinline__ c64 nan<c64>() { return {nan<float>(), 0.0f}; }
template <> __device__ __forceinline__ c128 nan<c128>() { return {nan<double>(), 0.0}; }

template <class A> __device__ __forceinline__ A minus_zero() { return convert<A>(0); }
template <> __device__ __forceinline__ float minus_zero<float>() { return -0.0f; }
template <> __device__ __forceinline__ double minus_zero<double>() { return -0.0; }
template <> __device__ __forceinline__ c64 minus_zero<c64>() { return {-0.0f, -0.0f}; }
template <> __device__ __forceinline__ c128 minus_zero<c128>() { return {-0.0, -0.0}; }

// V is the type in which NumPy would compute. Each op: identity, map, combine, finish.
template <class V> struct Added : Single<accumulate_t<V>> {
  using A = accumulate_t<V>;
  using State = A;
  static __device__ State identity() { return minus_zero<A>(); }  // not 0: 0 + -0 is 0, but a sum of only -0 is -0
  static __device__ State map(V x, const Context<A>&) { return convert<A>(x); }
  static __device__ State combine(State a, State b) { return static_cast<State>(a + b); }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) { return convert<Out>(convert<V>(s)); }
};

// The sum of squares of integers, and of products with the elements of a second operand.
template <class V> struct Squares : Added<V> {
  using A = accumulate_t<V>;
  static __device__ A map(V x, const Context<A>&) { return static_cast<A>(convert<A>(x) * convert<A>(x)); }
};
template <class V> struct Products : Added<V> {
  static constexpr bool PRODUCT = true;
  using A = accumulate_t<V>;
  static __device__ A identity() { return convert<A>(0); }
  static __device__ A product(V x, V y, const Context<A>&) { return static_cast<A>(convert<A>(x) * convert<A>(y)); }
};

// Minima and maxima accumulate in at least 32 bits: narrower types would be truncated after every comparison.
template <class V> struct Widen { using type = accumulate_t<V>; };
template <> struct Widen<b8> { using type = i32; };
template <> struct Widen<i8> { using type = i32; };
template <> struct Widen<u8> { using type = i32; };
template <> struct Widen<i16> { using type = i32; };
template <> struct Widen<u16> { using type = i32; };

template <class V> struct Max : Single<typename Widen<V>::type> {  // NaN propagates
  using A = typename Widen<V>::type;
  using State = A;
  static __device__ State identity() { return Limits<A>::least(); }
  static __device__ State map(V x, const Context<A>&) { return convert<A>(x); }
  static __device__ State combine(State a, State b) { return greater_of(a, b); }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) { return convert<Out>(convert<V>(s)); }
};

template <class V> struct Min : Max<V> {
  using A = typename Max<V>::A;
  static __device__ A identity() { return Limits<A>::greatest(); }
  static __device__ A combine(A a, A b) { return lesser_of(a, b); }
};

template <class V> struct NanMax : Max<V> {  // NaN is ignored, so it is the identity
  using A = typename Max<V>::A;
  static __device__ A identity() { return nan<A>(); }
  static __device__ A combine(A a, A b) { return greater_number(a, b); }
};

template <class V> struct NanMin : NanMax<V> {
  using A = typename Max<V>::A;
  static __device__ A combine(A a, A b) { return lesser_number(a, b); }
};

// An integer I beside values of type A in a state, in 32-bit words: two beside 8-byte values. So a state has no padding, and
// all of its bytes are written.
template <class A, class I> struct Beside {
  u32 word[alignof(A) == 8 ? 2 : sizeof(I) / 4];
  static __device__ __forceinline__ Beside of(I value) {
    if constexpr (sizeof word == 4) return {{static_cast<u32>(value)}};
    else return {{static_cast<u32>(value), static_cast<u32>(static_cast<u64>(value) >> 32)}};
  }
  __device__ __forceinline__ I get() const {
    if constexpr (sizeof word == 4) return static_cast<I>(word[0]);
    else return static_cast<I>(static_cast<u64>(word[1]) << 32 | word[0]);
  }
};

// The maximum and its first index, an I. NaN counts as the maximum.
template <class V, class I> struct ArgMax : Traits {
  static constexpr bool INDEXED = true;
  using A = typename Widen<V>::type;
  using Top = Max<V>;  // finds the value; Number: the same, ignoring NaN
  using Number = NanMax<V>;
  using Place = I;
  static constexpr bool FALLS = false;  // whether it searches for the minimum
  struct State {
    A value;
    Beside<A, I> place;
    __device__ __forceinline__ I index() const { return place.get(); }
  };
  static constexpr I NOWHERE = static_cast<I>(~u64(0) >> (65 - 8 * sizeof(I)));  // greater than any index
  static __device__ __forceinline__ State state(A value, I index) { return {value, Beside<A, I>::of(index)}; }
  static __device__ State identity() { return state(Top::identity(), NOWHERE); }
  static __device__ State map(V x, const Context<A>&, I index = NOWHERE) { return state(convert<A>(x), index); }
  static __device__ __forceinline__ bool ahead(A a, A b, bool greatest = true) {
    return (is_nan(a) | (greatest ? less(b, a) : less(a, b))) & !is_nan(b);
  }
  static __device__ __forceinline__ bool same(A a, A b) { return equal(a, b) | (is_nan(a) & is_nan(b)); }
  static __device__ State combine(State a, State b) { return first(a, b, true); }
  static __device__ __forceinline__ State first(State a, State b, bool greatest) {
    return ahead(b.value, a.value, greatest) | ((b.index() < a.index()) & same(a.value, b.value)) ? b : a;
  }
  template <class F> static __device__ __forceinline__ F fields(State s) {
    return {s.value, s.index() == NOWHERE ? static_cast<i64>(~u64(0) >> 1) : static_cast<i64>(s.index())};
  }
  template <class F> static __device__ __forceinline__ State from(F f) { return state(f.value, static_cast<I>(f.index)); }
  // -1: no element took part.
  static __device__ i64 found(State s) { return s.index() == NOWHERE ? -1 : static_cast<i64>(s.index()); }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) { return convert<Out>(found(s)); }
};

template <class V, class I> struct ArgMin : ArgMax<V, I> {
  using Base = ArgMax<V, I>;
  using A = typename Base::A;
  using Top = Min<V>;
  using Number = NanMin<V>;
  static constexpr bool FALLS = true;
  using State = typename Base::State;
  static __device__ State identity() { return Base::state(Top::identity(), Base::NOWHERE); }
  static __device__ __forceinline__ bool ahead(A a, A b) { return Base::ahead(a, b, false); }
  static __device__ State combine(State a, State b) { return Base::first(a, b, false); }
};

// The element and, as second result, its index.
template <class Base, class V> struct WithIndex : Base {
  using A = typename Base::A;
  using State = typename Base::State;
  template <class Out> static __device__ Out finish(State s, const Context<A>&) { return convert<Out>(convert<V>(s.value)); }
  template <class Out> static __device__ Out second(State s, const Context<A>&) { return convert<Out>(Base::found(s)); }
};
template <class V, class I> using MaxWithIndex = WithIndex<ArgMax<V, I>, V>;
template <class V, class I> using MinWithIndex = WithIndex<ArgMin<V, I>, V>;


template <class V> struct Range : Traits {  // the maximum less the minimum
  using Most = Max<V>;
  using Least = Min<V>;
  using A = typename Most::A;
  struct State { A most, least; };
  static __device__ State identity() { return {Most::identity(), Least::identity()}; }
  static __device__ State map(V x, const Context<A>&) { return {convert<A>(x), convert<A>(x)}; }
  static __device__ State combine(State a, State b) {
    return {Most::combine(a.most, b.most), Least::combine(a.least, b.least)};
  }
  template <class F> static __device__ __forceinline__ F fields(State s) { return {s.most, s.least}; }
  template <class F> static __device__ __forceinline__ State from(F f) { return {f.most, f.least}; }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) {
    return convert<Out>(convert<V>(static_cast<A>(s.most - s.least)));
  }
};

template <class V> struct Any : Single<u32> {
  static constexpr bool UNCONVERTED = true;
  using A = bool;
  using State = u32;
  static __device__ State identity() { return 0; }
  template <class X> static __device__ State map(X x, const Context<A>&) { return convert<bool>(x); }
  static __device__ State combine(State a, State b) { return a | b; }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) { return convert<Out>(s != 0); }
};

template <class V> struct All : Any<V> {
  static __device__ u32 identity() { return 1; }
  static __device__ u32 combine(u32 a, u32 b) { return a & b; }
};


template <class A> __device__ A quotient(A total, double count) { return convert<A>(convert<double>(total) / count); }
template <class R> __device__ Complex<R> quotient(Complex<R> total, double count) {
  return {quotient(total.re, count), quotient(total.im, count)};
}

// The mean of integers that are added up as they are, as an integer; of those that a mask chooses.
template <class V> struct WholeMean : Added<V> {
  enum Options { N, INVERSE };
  using A = accumulate_t<V>;
  template <class Out> static __device__ Out finish(A total, const Context<A>& c) {
    return convert<Out>(convert<V>(quotient(convert<double>(total), c.option[N])));
  }
};
template <class V, class I> struct MaskedWholeMean : Traits {  // counts the elements that it adds, in an I
  static constexpr bool COUNTING = true;
  using A = accumulate_t<V>;
  struct State {
    A total;
    Beside<A, I> n;
    __device__ __forceinline__ I count() const { return n.get(); }
  };
  static __device__ __forceinline__ State state(A total, I count) { return {total, Beside<A, I>::of(count)}; }
  static __device__ State identity() { return state(convert<A>(0), 0); }
  static __device__ State map(V x, const Context<A>&) { return state(convert<A>(x), 1); }
  static __device__ __forceinline__ State add(State s, V x) { return state(static_cast<A>(s.total + convert<A>(x)), s.count() + 1); }
  static __device__ State combine(State a, State b) { return state(static_cast<A>(a.total + b.total), a.count() + b.count()); }
  template <class F> static __device__ __forceinline__ F fields(State s) { return {s.total, static_cast<i64>(s.count())}; }
  template <class F> static __device__ __forceinline__ State from(F f) { return state(f.total, static_cast<I>(f.n)); }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) {
    return convert<Out>(convert<V>(quotient(convert<double>(s.total), static_cast<double>(s.count()))));
  }
};

// The mean of integers whose sum is exact in V = i32 or i64.
template <class V> struct IntegerMean : Added<V> {
  enum Options { N };
  template <class Out> static __device__ Out finish(V total, const Context<V>& c) {
    return convert<Out>(quotient(convert<double>(total), c.option[N]));
  }
};

template <class A> struct RealOf { using type = A; };
template <class R> struct RealOf<Complex<R>> { using type = R; };
template <class R, int K> struct RealOf<Several<R, K>> { using type = R; };
template <class A> using real_t = typename RealOf<A>::type;
// The real part of a times b's conjugate (in an R).
template <class R, class A> __device__ __forceinline__ R real_product(A a, A b) {
  if constexpr (SAME<A, real_t<A>>) return R(a) * R(b);
  else return R(a.re) * R(b.re) + R(a.im) * R(b.im);
}
template <class A> __device__ __forceinline__ A times(A a, A factor) { return a * factor; }
template <class R> __device__ __forceinline__ Complex<R> times(Complex<R> a, R factor) { return {a.re * factor, a.im * factor}; }

// The variance of integers of at most two bytes, from their sum and the sum of their squares, which are exact in V = i32 or
// i64 (squares: unsigned).
template <class V> struct IntegerVar : Traits {
  static constexpr bool COUNTING = true;
  enum Options { N, DDOF };
  using A = V;
  using Bits = bits_of<V>;
  struct State {
    V sum;
    Bits squares;
  };
  static __device__ State identity() { return {0, 0}; }
  static __device__ State map(V x, const Context<A>&) { return add(identity(), x); }
  static __device__ __forceinline__ State of_trues(u32 count) { return {static_cast<V>(count), count}; }
  static __device__ __forceinline__ State add(State s, V x) {
    return {s.sum + x, s.squares + static_cast<Bits>(x) * static_cast<Bits>(x)};
  }
  static __device__ State combine(State a, State b) { return {a.sum + b.sum, a.squares + b.squares}; }
  template <class Out> static __device__ Out finish(State s, const Context<A>& c) {
    double all = c.option[N], freedom = all - c.option[DDOF], most = all * static_cast<double>(s.squares), apart;
    if (most < 0x1p53) {  // n * squares - sum * sum is exact
      double sum = static_cast<double>(s.sum);
      apart = most - sum * sum;
    } else {
      i64 total = s.sum;
      u64 n = static_cast<u64>(all), sum = total < 0 ? -total : total, low = n * s.squares, less = sum * sum;
      u64 high = __umul64hi(n, s.squares) - __umul64hi(sum, sum) - (low < less);
      apart = static_cast<double>(high) * 0x1p64 + static_cast<double>(low - less);
    }
    double found = apart / (all * (freedom <= 0 ? 0.0 : freedom));
    return convert<Out>(c.root ? sqrt(found) : found);
  }
};

// The same of integers of four bytes, at most 2^31 of them: squares in 128 bits. V is i64.
template <class V> struct LongVar : Traits {
  static constexpr bool COUNTING = true;
  enum Options { N, DDOF };
  using A = V;
  struct State {
    V sum;
    u64 low, high;  // of the squares
  };
  static __device__ State identity() { return {0, 0, 0}; }
  static __device__ State map(V x, const Context<A>&) { return add(identity(), x); }
  static __device__ __forceinline__ State add(State s, V x) {
    u64 size = static_cast<u64>(x), low = s.low + size * size;  // of a negative x, too, modulo 2^64
    return {s.sum + x, low, s.high + (low < s.low)};
  }
  static __device__ State combine(State a, State b) {
    u64 low = a.low + b.low;
    return {a.sum + b.sum, low, a.high + b.high + (low < a.low)};
  }
  template <class Out> static __device__ Out finish(State s, const Context<A>& c) {
    double all = c.option[N], freedom = all - c.option[DDOF];
    u64 n = static_cast<u64>(all), sum = static_cast<u64>(s.sum < 0 ? -s.sum : s.sum), low = n * s.low, less = sum * sum;
    u64 high = __umul64hi(n, s.low) + n * s.high - __umul64hi(sum, sum) - (low < less);
    double apart = static_cast<double>(high) * 0x1p64 + static_cast<double>(low - less);
    double found = apart / (all * (freedom <= 0 ? 0.0 : freedom));
    return convert<Out>(c.root ? sqrt(found) : found);
  }
};

// ---- counts and norms

template <class V> struct CountNonzero : Traits {
  static constexpr bool COUNTING = true;
  using A = accumulate_t<V>;
  struct State {
    u32 low, high;
    __device__ i64 count() const { return static_cast<i64>(high) << 32 | low; }
  };
  static __device__ State state(i64 count) { return {static_cast<u32>(count), static_cast<u32>(count >> 32)}; }
  static __device__ __forceinline__ State of_trues(u32 count) { return {count, 0}; }
  static __device__ State identity() { return {0, 0}; }
  static __device__ State map(V x, const Context<A>&) { return {nonzero(x), 0}; }
  // Adds an element to a thread's state, which has fewer than 2^32.
  static __device__ __forceinline__ State add(State s, V x) { return {s.low + nonzero(x), s.high}; }
  static __device__ State combine(State a, State b) { return state(a.count() + b.count()); }
  template <class F> static __device__ __forceinline__ F fields(State s) { return {s.count()}; }
  template <class F> static __device__ __forceinline__ State from(F f) { return state(f.count); }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) { return convert<Out>(s.count()); }
};

template <class A> __device__ __forceinline__ A magnitude(A x) { return x < A(0) ? -x : x; }
__device__ __forceinline__ float magnitude(float x) { return fabs(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }
template <class R> __device__ R magnitude(Complex<R> x) {  // without overflow or underflow of squares
  R re = fabs(x.re), im = fabs(x.im), more = greater_of(re, im), less = lesser_of(re, im);
  if (re == Limits<R>::greatest() || im == Limits<R>::greatest()) return Limits<R>::greatest();
  R part = more == R(0) ? R(0) : less / more;
  return more * sqrt(R(1) + part * part);
}

// x to the power p; by products for small integral p, which are much faster than pow.
template <class R> __device__ __forceinline__ R power(R x, R p) {
  if (!(p >= R(1) && p <= R(16)) || p != floor(p)) return pow(x, p);
  int left = static_cast<int>(p);
  R out = left & 1 ? x : R(1);
  while (left >>= 1) {
    x *= x;
    if (left & 1) out *= x;
  }
  return out;
}

// ---- two operands

template <class A> __device__ __forceinline__ A ratio(A a, A b) { return a / b; }
template <class R> __device__ __forceinline__ Complex<R> ratio(Complex<R> a, Complex<R> b) {  // Smith's method: no overflow
  if (b.re == R(0) && b.im == R(0)) return {a.re / b.re, a.im / b.re};
  bool steep = fabs(b.im) > fabs(b.re);
  R part = steep ? b.re / b.im : b.im / b.re, scale = steep ? b.re * part + b.im : b.re + b.im * part;
  return {(steep ? a.re * part + a.im : a.re + a.im * part) / scale, (steep ? a.im * part - a.re : a.im - a.re * part) / scale};
}

// Whether elements equal those of the second operand. NANS: NaN equals NaN.
template <class V, bool NANS = false> struct Equal : All<V> {
  static constexpr bool PRODUCT = true;
  using A = bool;
  template <class X> static __device__ u32 map(X difference, const Context<A>&) { return !nonzero(difference); }
  template <class X, class Y> static __device__ u32 product(X x, Y y, const Context<A>&) {
    if constexpr (INTEGER<X> && INTEGER<Y>) {  // signed or unsigned
      return static_cast<i64>(x) == static_cast<i64>(y) && (x < X(0)) == (y < Y(0));
    } else {
      auto a = convert<accumulate_t<V>>(convert<V>(x)), b = convert<accumulate_t<V>>(convert<V>(y));
      return equal(a, b) || (NANS && is_nan(a) && is_nan(b));
    }
  }
};
template <class V> using EqualNans = Equal<V, true>;

// Whether |x - y| <= atol + rtol * |y|, each step rounded as NumPy's.
template <class V, bool NANS = false> struct Close : All<V> {
  static constexpr bool PRODUCT = true, UNCONVERTED = false;
  enum Options { ATOL, RTOL };
  using A = bool;
  using Wide = accumulate_t<V>;
  using R = real_t<Wide>;
  static __device__ __forceinline__ R rounded(R x) { return convert<R>(convert<real_t<V>>(x)); }
  static __device__ u32 product(V x, V y, const Context<A>& c) {
    Wide a = convert<Wide>(x), b = convert<Wide>(y);
    if (Equal<V, NANS>::product(x, y, c)) return 1;
    R size = magnitude(b), rtol = rounded(static_cast<R>(c.option[RTOL])), atol = rounded(static_cast<R>(c.option[ATOL]));
    R apart = rounded(magnitude(a - b)), most = rounded(plus(atol, rounded(multiplied(rtol, size))));
    return apart <= most && size < Limits<R>::greatest();
  }
  // (Separate steps, not fused ones.)
  static __device__ __forceinline__ float multiplied(float a, float b) { return __fmul_rn(a, b); }
  static __device__ __forceinline__ double multiplied(double a, double b) { return __dmul_rn(a, b); }
  static __device__ __forceinline__ float plus(float a, float b) { return __fadd_rn(a, b); }
  static __device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
};
template <class V> using CloseNans = Close<V, true>;

// ---- reductions that ignore NaN, but not in an initial value (Plain)

template <class Base, class V> struct WithoutNan : Base {
  static constexpr bool UNCONVERTED = true;
  template <class X> static __device__ typename Base::State map(X x, const Context<typename Base::A>& c) {
    return is_nan(convert<accumulate_t<X>>(x)) ? Base::identity() : Base::map(convert<V>(x), c);
  }
};
template <class V, class I> using NanArgMax = WithoutNan<ArgMax<V, I>, V>;
template <class V, class I> using NanArgMin = WithoutNan<ArgMin<V, I>, V>;
template <class Op> struct Plain { using type = Op; };
template <class Base, class V> struct Plain<WithoutNan<Base, V>> { using type = Base; };


// ---- softmax's reductions, over x * scale in V = float or double

template <class V> struct ScaledMax : Max<V> {
  enum Options { SCALE };
  static __device__ V map(V x, const Context<V>& c) { return x * static_cast<V>(c.option[SCALE]); }
};

// The maximum contributes exp(0) = 1 to a sum of exponentials. Beside that 1 small terms are rounded away, and the
// logarithm of the sum with them: log(1 + 1e-20) is 0. So the sum is kept without one 1, as the `rest`, and its
// logarithm is log1p(rest). smaller: the sum of the terms below 1. ones: the number of terms that are 1.
template <class V> __device__ __forceinline__ V rest_of(V smaller, V ones) { return smaller + (ones - 1); }
// float16 results do not need it: what float32 loses beside 1 is below float16's smallest number.
template <class Out> constexpr bool LEAVES_1_OUT = !SAME<Out, f16>;
// Adds power = exp(z - max) to `smaller` or, if z is the maximum, counts it in `ones`.
template <class V> __device__ __forceinline__ void add_power(V& smaller, V& ones, V z, V max, V power) {
  if (z == max) ones += 1;
  else smaller += power;
}
#ifdef __CUDA_ARCH__  // in three instructions
__device__ __forceinline__ void add_power(float& smaller, float& ones, float z, float max, float power) {
  asm("{ .reg .pred top; setp.eq.f32 top, %2, %3; @top add.f32 %1, %1, 0f3F800000; @!top add.f32 %0, %0, %4; }"
      : "+f"(smaller), "+f"(ones)
      : "f"(z), "f"(max), "f"(power));
}
#endif

template <class V> struct ShiftedExpSum : Traits {  // Context::shift is the row's maximum
  enum Options { SCALE };
  using A = V;
  using State = Complex<V>;  // the sum of the terms below 1, and how many are 1
  static __device__ State identity() { return {V(0), V(0)}; }
  static __device__ State map(V x, const Context<V>& c) {
    x = x * static_cast<V>(c.option[SCALE]);
    return x == c.shift ? State{V(0), V(1) + (x - x)} : State{exp(x - c.shift), V(0)};  // x - x: NaN if x is infinite
  }
  static __device__ State combine(State a, State b) { return a + b; }
  template <class Out> static __device__ Out finish(State s, const Context<V>&) { return convert<Out>(rest_of(s.re, s.im)); }
};

// An element of a log-softmax. With +inf in the row, +inf itself gives NaN and every other element -inf, as in SciPy.
template <class V> __device__ V log_softmax(V value, V max, V log_sum) {
  return value - max - (max == Limits<V>::greatest() ? V(0) : log_sum);
}

// 2^x, one approximate instruction. Subnormal results become 0.
__device__ __forceinline__ float power_of_2(float x) {
#ifdef __CUDA_ARCH__
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return x < -126 ? 0.0f : exp2(x);
#endif
}
constexpr float LOG2_E = 1.44269502f, LOG2_E_REST = 1.92596303e-8f;

// How float32 exponentials are computed (see Powers).
enum class Taken { PLAIN, CLOSE, SHORT };

// Exponentials relative to a maximum, for many z <= max: exp(z - max) = of(z) * rest() (CLOSE has no rest()).
// key(max): what the constructor takes; it grows with max. Values of(z) of one key have a common scale.
// lift(key): the factor that rescales a partial sum from a smaller key to this one. If max is -inf, 0 takes its place.
// PLAIN: of(max) is exactly 1, which the logarithm of a sum close to 1 needs.
template <class V, Taken, bool HUGE = true, int RAISED = 0> struct Powers {
  V max;
  Powers() = default;
  __device__ explicit Powers(V max) : max(max == Limits<V>::least() ? V(0) : max) {}
  static __device__ V key(V max) { return max; }
  __device__ V of(V z) const { return power(z - max); }
  __device__ V rest() const { return 1; }
  __device__ V lift(V key) const { return power(key - max); }
  static __device__ __forceinline__ double power(double z) { return exp(z); }
  static __device__ __forceinline__ float power(float z) { return power_of_2(LOG2_E * z); }
};

// CLOSE: of(z) = 2^(log2(e) * z - shift), with an integer shift; the key is shift / 2. The exponent is split into an
// integer and a fraction between -1/2 and 1/2, and only the fraction is rounded. The scales of two keys differ by a
// power of 2. If |shift| is LARGE or more, log2(e) * origin is first subtracted from both terms of the exponent:
// z - origin is exact where the result is not 0, and `rest` is what remains of shift.
// HUGE: |max| may be FAR or more. There the key is max: two different z are so far apart that the exponential of the
// smaller one is 0.
template <bool HUGE, int RAISED> struct Powers<float, Taken::CLOSE, HUGE, RAISED> {
  static constexpr float ROUND = 12582912, LARGE = 4096, FAR = 2147483648;  // floats near 1.5 * 2^23 are integers
  float middle, origin, base, rest;
  bool large;
  Powers() = default;
  __device__ explicit Powers(float key) : middle(key == Limits<float>::least() ? 0.0f : key) {
    float shift = 2 * middle;
    large = !(fabs(shift) < LARGE);
    origin = far(middle) ? middle : shift * 0.693147181f;
    rest = far(middle) ? 0 : fma(-origin, LOG2_E_REST, fma(-origin, LOG2_E, shift));
    base = large ? ROUND : ROUND - shift;
  }
  static __device__ __forceinline__ bool far(float max) { return HUGE && !(fabs(max) < FAR); }
  static __device__ float key(float max) { return far(max) ? max : fma(max, LOG2_E / 2, ROUND / 2) - ROUND / 2; }
  __device__ float lift(float key) const { return exp2(2 * (key - middle)); }
  // Adding ROUND to the exponent rounds it to the nearest integer, which is then in the low bits of the mantissa.
  __device__ float of(float z) const {
    z -= large ? origin : 0;
    float integer = fmax(fma(z, LOG2_E, base), ROUND - 126);
    float fraction = fma(z, LOG2_E_REST, fma(z, LOG2_E, base - integer)) - (large ? rest : 0);
    return power_of_2(fraction) * bit_cast<float>((bit_cast<u32>(integer) << 23) + 0x3f800000u);
  }
};

// SHORT: of(z) = 2^(factor * z - shift), two instructions. The rounding error of shift is the same for all z, and
// rest() corrects it. __fmul_rn keeps the product from being fused with the subtraction: lift must get the same shift.
// RAISED: of(z) is 2^RAISED times as large, so that subnormal results keep their digits; rest() takes the factor back.
// HUGE: |max| may be 2^29 or more. There the error of shift would be too large for a power of 2, and two different z
// are so far apart that any base will do: factor() is 1.
template <bool HUGE, int RAISED> struct Powers<float, Taken::SHORT, HUGE, RAISED> {
  float max, shift;
  Powers() = default;
  __device__ explicit Powers(float top)
      : max(top == Limits<float>::least() ? 0.0f : top), shift(__fmul_rn(factor(), max) - RAISED) {}
  __device__ float factor() const { return HUGE && !(fabs(max) < 536870912.0f) ? 1.0f : LOG2_E; }
  __device__ float of(float z) const { return power_of_2(fma(z, factor(), -shift)); }
  __device__ float rest() const { return power_of_2(-fma(max, factor(), -shift)); }
  static __device__ float key(float max) { return max; }
  __device__ float lift(float key) const {
    Powers from(key);
    return HUGE ? from.rest() * of(key) : power_of_2(from.shift - shift);
  }
};

// Online softmax: the maximum, and the sum of exp(x - max) less 1 (`rest`), merged pairwise (Milakov & Gimelshein,
// "Online normalizer calculation for softmax", 2018). Without elements, or with only -inf, the rest is -1: the sum is 0.
template <class V> struct MaxExpSum : Traits {
  static constexpr bool EXPONENTIAL = true;
  enum Options { SCALE };
  using A = V;
  struct alignas(2 * sizeof(V)) State { V max, rest; };
  static __device__ State identity() { return {Limits<V>::least(), V(-1)}; }
  static __device__ State map(V x, const Context<V>& c) {
    x = x * static_cast<V>(c.option[SCALE]);
    return {x, x == Limits<V>::least() ? V(-1) : V(0)};
  }
  static __device__ State combine(State a, State b) {
    V max = greater_of(a.max, b.max);
    bool first = a.max == max;
    return {max, (first ? a.rest : b.rest) + lifted(first ? b : a, max)};
  }
  // A part's sum, rescaled to the maximum of the whole. It includes the part's 1.
  static __device__ __forceinline__ V lifted(State part, V max) {
    V power = part.max == Limits<V>::least() ? V(0) : Powers<V, Taken::PLAIN>::power(part.max - max);
    return (1 + part.rest) * power;
  }
  // +inf and NaN make the sum NaN, as they do in SciPy.
  template <class Out> static __device__ Out finish(State s, const Context<V>&) {
    return {s.max, s.rest + (s.max == Limits<V>::least() ? V(0) : s.max - s.max)};
  }
};

template <class V> struct LogSumExp : MaxExpSum<V> {
  using State = typename MaxExpSum<V>::State;
  template <class F> static __device__ __forceinline__ F fields(State s) {
    State whole = MaxExpSum<V>::template finish<State>(s, Context<V>{});
    return {whole.max, whole.rest};
  }
  template <class F> static __device__ __forceinline__ State from(F f) { return {f.max, f.rest}; }
  template <class Out> static __device__ Out finish(State s, const Context<V>&) {
    bool infinite = s.max == Limits<V>::least() || s.max == Limits<V>::greatest();
    return convert<Out>(infinite ? s.max : s.max + log1p(s.rest));
  }
};

// log |sum(b * exp(x))| and the sum's sign, with weights b from the second operand. Elements of weight 0 are ignored.
// Without the sign (Out is not Complex), a negative sum gives NaN.
template <class V> struct WeightedLogSumExp : Traits {
  static constexpr bool PRODUCT = true;
  enum Options { SCALE };
  using A = V;
  struct State { V max, top, rest; };  // sums of b * exp(x - max): top of elements that are the maximum, rest of others
  static __device__ State identity() { return {Limits<V>::least(), V(0), V(0)}; }
  static __device__ __forceinline__ State weighted(V z, V b) {
    return b == V(0) || z == Limits<V>::least() ? identity() : State{z, b, V(0)};
  }
  static __device__ State map(V x, const Context<V>& c) { return weighted(x * static_cast<V>(c.option[SCALE]), V(1)); }
  static __device__ __forceinline__ State product(V x, V b, const Context<V>& c) {
    return weighted(x * static_cast<V>(c.option[SCALE]), b);
  }
  static __device__ State combine(State a, State b) {
    if (a.max == b.max) return {a.max, a.top + b.top, a.rest + b.rest};
    V max = greater_of(a.max, b.max);
    State more = a.max == max ? a : b, less = a.max == max ? b : a;
    return {max, more.top, more.rest + (less.top + less.rest) * Powers<V, Taken::PLAIN>::power(less.max - max)};
  }
  template <class F> static __device__ __forceinline__ F fields(State s) { return {s.max, s.top, s.rest}; }
  template <class F> static __device__ __forceinline__ State from(F f) { return {f.max, f.top, f.rest}; }
  template <class Out> static __device__ Out finish(State s, const Context<V>&) {
    bool infinite = s.max == Limits<V>::greatest();
    V sum = infinite ? s.top : s.top + s.rest, rest = rest_of(s.rest, s.top);
    V value = s.max + (rest > V(-0.5) && !infinite ? log1p(rest) : log(fabs(sum)));
    V sign = sum > V(0) ? V(1) : sum < V(0) ? V(-1) : sum;
    if (s.max == Limits<V>::least()) value = s.max;
    if (value != value) sign = value;
    return result<Out>(value, sign);
  }
  template <class Out> static __device__ __forceinline__ Out result(V value, V sign) {
    if constexpr (SAME<Out, Complex<V>>) return {value, sign};
    else return convert<Out>(sign < V(0) ? Limits<V>::greatest() - Limits<V>::greatest() : value);
  }
};

template <class V> struct SignedLogSumExp : WeightedLogSumExp<V> {  // the sign is the second result
  using Base = WeightedLogSumExp<V>;
  using State = typename Base::State;
  template <class Out> static __device__ Out finish(State s, const Context<V>& c) {
    return convert<Out>(Base::template finish<Complex<V>>(s, c).re);
  }
  template <class Out> static __device__ Out second(State s, const Context<V>& c) {
    return convert<Out>(Base::template finish<Complex<V>>(s, c).im);
  }
};


}  // namespace gpuops
