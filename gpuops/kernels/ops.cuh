// The reductions: what one element contributes (map), how two partial results merge (combine), what is written
// (finish). An op is a row: adding one is a struct here and a row in gpuops/kernels/reduce.py.
namespace gpuops {

// ---- arithmetic on accumulators
template <class R> __device__ __forceinline__ Complex<R> operator+(Complex<R> a, Complex<R> b) { return {a.re + b.re, a.im + b.im}; }
template <class R> __device__ __forceinline__ Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> __device__ __forceinline__ bool is_nan(T x) { return x != x; }
template <class R> __device__ __forceinline__ bool is_nan(Complex<R> x) { return is_nan(x.re) || is_nan(x.im); }
template <class T> __device__ __forceinline__ bool less(T a, T b) { return a < b; }
template <class R> __device__ __forceinline__ bool less(Complex<R> a, Complex<R> b) {  // lexicographic, as NumPy
  return a.re < b.re || (a.re == b.re && a.im < b.im);
}

// The greater and the lesser of two numbers; NaN wins.
template <class T> __device__ __forceinline__ T greater_of(T a, T b) { return is_nan(a) || less(b, a) ? a : b; }
template <class T> __device__ __forceinline__ T lesser_of(T a, T b) { return is_nan(a) || less(a, b) ? a : b; }
template <class R> __device__ __forceinline__ Complex<R> greater_of(Complex<R> a, Complex<R> b) {
  return is_nan(a) || (!is_nan(b) && less(b, a)) ? a : b;
}
template <class R> __device__ __forceinline__ Complex<R> lesser_of(Complex<R> a, Complex<R> b) {
  return is_nan(a) || (!is_nan(b) && less(a, b)) ? a : b;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // in one instruction
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
template <class V> using accumulate_t = typename Accumulate<V>::type;

// What an op may look at beside the element: the number of elements reduced, the factor on x, and the row's maximum.
template <class A> struct Context { double count; double scale; A shift; };

template <class A> __device__ __forceinline__ A minus_zero() { return convert<A>(0); }
template <> __device__ __forceinline__ float minus_zero<float>() { return -0.0f; }
template <> __device__ __forceinline__ double minus_zero<double>() { return -0.0; }
template <> __device__ __forceinline__ c64 minus_zero<c64>() { return {-0.0f, -0.0f}; }
template <> __device__ __forceinline__ c128 minus_zero<c128>() { return {-0.0, -0.0}; }

// V is the type in which NumPy would compute. Each op: identity, map, combine, finish.
template <class V> struct Sum {
  using A = accumulate_t<V>;
  using State = A;
  static __device__ State identity() { return minus_zero<A>(); }  // 0 + -0 is 0: it would make -0 of nothing but -0
  static __device__ State map(V x, const Context<A>&) { return convert<A>(x); }
  static __device__ State combine(State a, State b) { return static_cast<State>(a + b); }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) { return convert<Out>(convert<V>(s)); }
};

template <class V> struct Prod : Sum<V> {
  using A = accumulate_t<V>;
  static __device__ A identity() { return convert<A>(1); }
  static __device__ A combine(A a, A b) { return static_cast<A>(a * b); }
};

// The sum of products with the elements of a second operand.
template <class V> struct Dot : Sum<V> {
  using A = accumulate_t<V>;
  static __device__ A identity() { return convert<A>(0); }
  static __device__ A product(V x, V y, const Context<A>&) { return static_cast<A>(convert<A>(x) * convert<A>(y)); }
};
template <class Op> constexpr bool PRODUCT = false;
template <class V> constexpr bool PRODUCT<Dot<V>> = true;

// Extremes are kept in registers of 32 bits at least: narrow ones would be cut back after every comparison.
template <class V> struct Widen { using type = accumulate_t<V>; };
template <> struct Widen<b8> { using type = i32; };
template <> struct Widen<i8> { using type = i32; };
template <> struct Widen<u8> { using type = i32; };
template <> struct Widen<i16> { using type = i32; };
template <> struct Widen<u16> { using type = i32; };

template <class V> struct Max {  // NaN wins
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

template <class V> struct Any {
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

template <class Op> constexpr bool OF_TRUTHS = false;  // not of values: elements are mapped as they are
template <class V> constexpr bool OF_TRUTHS<Any<V>> = true;
template <class V> constexpr bool OF_TRUTHS<All<V>> = true;

template <class A> __device__ A quotient(A total, double count) { return convert<A>(convert<double>(total) / count); }
template <class R> __device__ Complex<R> quotient(Complex<R> total, double count) {
  return {quotient(total.re, count), quotient(total.im, count)};
}

template <class V> struct Mean : Sum<V> {
  using A = accumulate_t<V>;
  static __device__ A identity() { return convert<A>(0); }
  template <class Out> static __device__ Out finish(A total, const Context<A>& c) {
    return convert<Out>(convert<V>(quotient(total, c.count)));
  }
};

// The mean of integers whose sum is exact in V = i32 or i64.
template <class V> struct IntegerMean : Sum<V> {
  template <class Out> static __device__ Out finish(V total, const Context<V>& c) {
    return convert<Out>(quotient(convert<double>(total), c.count));
  }
};

template <class V> struct MaskedMean {  // counts what it adds
  using A = accumulate_t<V>;
  struct State {  // without padding: every byte of it is written
    A total;
    u32 low, high;
    __device__ i64 count() const { return static_cast<i64>(high) << 32 | low; }
  };
  static __device__ State state(A total, i64 count) { return {total, static_cast<u32>(count), static_cast<u32>(count >> 32)}; }
  static __device__ State identity() { return state(convert<A>(0), 0); }
  static __device__ State map(V x, const Context<A>&) { return state(convert<A>(x), 1); }
  static __device__ State combine(State a, State b) { return state(static_cast<A>(a.total + b.total), a.count() + b.count()); }
  template <class Out> static __device__ Out finish(State s, const Context<A>&) {
    return convert<Out>(convert<V>(quotient(s.total, static_cast<double>(s.count()))));
  }
};

// ---- softmax's reductions, over x * scale in V = float or double

template <class V> struct ScaledMax : Max<V> {
  static __device__ V map(V x, const Context<V>& c) { return x * static_cast<V>(c.scale); }
};

// Beside the 1 of a maximum, a sum of powers would lose what is small, and its logarithm with it: log(1 + 1e-20) is 0.
// So one 1 is left out: what is kept is the `rest`, and log1p(rest) is exact.
template <class V> __device__ __forceinline__ V rest_of(V smaller, V ones) { return smaller + (ones - 1); }
// Results in float16 do without: what float32 loses beside 1 is less than their least number.
template <class Out> constexpr bool LEAVES_1_OUT = !SAME<Out, f16>;
// Adds a power to those below 1 or, if it is that of the maximum itself, to the ones.
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

template <class V> struct ShiftedExpSum {  // the shift is the maximum
  using A = V;
  using State = Complex<V>;  // the sum of the powers below 1, and how many are 1
  static __device__ State identity() { return {V(0), V(0)}; }
  static __device__ State map(V x, const Context<V>& c) {
    x = x * static_cast<V>(c.scale);
    return x == c.shift ? State{V(0), V(1) + (x - x)} : State{exp(x - c.shift), V(0)};  // an infinity makes NaN
  }
  static __device__ State combine(State a, State b) { return a + b; }
  template <class Out> static __device__ Out finish(State s, const Context<V>&) { return convert<Out>(rest_of(s.re, s.im)); }
};

// An element of a log-softmax. With +inf in the row every other element is -inf and +inf itself NaN, as in SciPy.
template <class V> __device__ V log_softmax(V value, V max, V log_sum) {
  return value - max - (max == Limits<V>::greatest() ? V(0) : log_sum);
}

// 2^x and 1 / x in one instruction each; 0 below float32's normal range.
__device__ __forceinline__ float power_of_2(float x) {
#ifdef __CUDA_ARCH__
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return x < -126 ? 0.0f : exp2(x);
#endif
}
__device__ __forceinline__ float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return 1 / x;
#endif
}
constexpr float LOG2_E = 1.44269502f, LOG2_E_REST = 1.92596303e-8f;

// How powers of float32 are taken.
enum class Taken { PLAIN, CLOSE, SHORT };

// exp(z - max) for many z up to max: of(z) * rest(). They have a base that depends on the key of max, which grows with it:
// lift(key) makes powers with the base of a lesser key such with this one. Where nothing is above -inf, as if max were 0.
// PLAIN: the power of max itself is 1, which logarithms of sums ask for that are hardly more.
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

// CLOSE: as 2^(log2(e) * z - shift), with an integer for shift, so that only what is left between -1/2 and 1/2 is rounded,
// and bases differ by powers of 2; the key is shift / 2. If shift is large, log2(e) * origin is taken off both of them,
// which leaves the rest of shift: z - origin is exact where the power is not 0. From FAR on the key is max: there two
// different z are so far apart that the lesser one's power is 0.
template <bool HUGE, int RAISED> struct Powers<float, Taken::CLOSE, HUGE, RAISED> {
  static constexpr float ROUND = 12582912, LARGE = 4096, FAR = 2147483648;  // floats next to 1.5 * 2^23 are integers
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
  // The integer nearest to the power's logarithm is in the last bits of that logarithm plus ROUND.
  __device__ float of(float z) const {
    z -= large ? origin : 0;
    float integer = fmax(fma(z, LOG2_E, base), ROUND - 126);
    float fraction = fma(z, LOG2_E_REST, fma(z, LOG2_E, base - integer)) - (large ? rest : 0);
    return power_of_2(fraction) * bit_cast<float>((bit_cast<u32>(integer) << 23) + 0x3f800000u);
  }
};

// SHORT: as 2^(factor * z - shift), two instructions. The error of shift is the same in all of them: rest makes it good.
// (Its product is rounded by itself: fused with what is taken from it, it would be another in lift.)
// RAISED: they are 2^RAISED times as large, so that those of subnormal results keep their digits; rest takes it back.
// HUGE: max may be 2^29 or more, where the error of shift would become too large for a power of 2; there two different z
// are so far apart that any base will do.
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

// The maximum and the rest of the sum of exp(x - max), merged pair by pair (Milakov & Gimelshein, "Online normalizer
// calculation for softmax", 2018). Of nothing, and of -inf alone, the rest is -1: the sum is 0.
template <class V> struct MaxExpSum {
  using A = V;
  struct alignas(2 * sizeof(V)) State { V max, rest; };
  static __device__ State identity() { return {Limits<V>::least(), V(-1)}; }
  static __device__ State map(V x, const Context<V>& c) {
    x = x * static_cast<V>(c.scale);
    return {x, x == Limits<V>::least() ? V(-1) : V(0)};
  }
  static __device__ State combine(State a, State b) {
    V max = greater_of(a.max, b.max);
    bool first = a.max == max;
    return {max, (first ? a.rest : b.rest) + lifted(first ? b : a, max)};
  }
  // The sum of a part's powers with the base of the whole; its 1 is no longer left out.
  static __device__ __forceinline__ V lifted(State part, V max) {
    V power = part.max == Limits<V>::least() ? V(0) : Powers<V, Taken::PLAIN>::power(part.max - max);
    return (1 + part.rest) * power;
  }
  // +inf and NaN make the sum NaN, as they do in SciPy.
  template <class Out> static __device__ Out finish(State s, const Context<V>&) {
    return {s.max, s.rest + (s.max == Limits<V>::least() ? V(0) : s.max - s.max)};
  }
};

// The same of parts whose states, V = Complex<R>, are known.
template <class V> struct MergedMaxExpSum;
template <class R> struct MergedMaxExpSum<Complex<R>> : MaxExpSum<R> {
  static __device__ typename MaxExpSum<R>::State map(Complex<R> part, const Context<R>&) { return {part.re, part.im}; }
};

template <class V> struct LogSumExp : MaxExpSum<V> {
  using State = typename MaxExpSum<V>::State;
  template <class Out> static __device__ Out finish(State s, const Context<V>&) {
    bool infinite = s.max == Limits<V>::least() || s.max == Limits<V>::greatest();
    return convert<Out>(infinite ? s.max : s.max + log1p(s.rest));
  }
};

// log |sum(b * exp(x))| and the sum's sign, for elements b of a second operand; an element whose weight is 0 is as if it
// were not there. A result of one number is NaN if the sum is negative.
template <class V> struct WeightedLogSumExp {
  using A = V;
  struct State { V max, top, rest; };  // sums of weights times powers: of elements that are the maximum, and of all others
  static __device__ State identity() { return {Limits<V>::least(), V(0), V(0)}; }
  static __device__ __forceinline__ State weighted(V z, V b) {
    return b == V(0) || z == Limits<V>::least() ? identity() : State{z, b, V(0)};
  }
  static __device__ State map(V x, const Context<V>& c) { return weighted(x * static_cast<V>(c.scale), V(1)); }
  static __device__ __forceinline__ State product(V x, V b, const Context<V>& c) {
    return weighted(x * static_cast<V>(c.scale), b);
  }
  static __device__ State combine(State a, State b) {
    if (a.max == b.max) return {a.max, a.top + b.top, a.rest + b.rest};
    V max = greater_of(a.max, b.max);
    State more = a.max == max ? a : b, less = a.max == max ? b : a;
    return {max, more.top, more.rest + (less.top + less.rest) * Powers<V, Taken::PLAIN>::power(less.max - max)};
  }
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
template <class V> constexpr bool PRODUCT<WeightedLogSumExp<V>> = true;

template <class Op> constexpr bool EXPONENTIAL = false;
template <class V> constexpr bool EXPONENTIAL<MaxExpSum<V>> = true;
template <class V> constexpr bool EXPONENTIAL<LogSumExp<V>> = true;

}  // namespace gpuops
