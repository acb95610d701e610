// NumPy's ufuncs on single elements, in NumPy's types: bool, integers, float, double and Complex of them. (Half types
// are computed in float by the caller.) Both operands have one type, but i64 and u64 may be compared.
// Every product is rounded before anything is added to it, here or by the caller: none is fused into an FMA.
namespace gpuops {
namespace ufunc {

template <class T> constexpr bool COMPLEX = ONE_OF<T, c64, c128>;
template <class T> constexpr bool WHOLE = INTEGER<T> || SAME<T, bool>;
template <class T> using wrapping_t = typename Either<sizeof(T) == 8, u64, u32>::type;  // integers wrap around in it

__device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double product(double a, double b) { return __dmul_rn(a, b); }

// A result in a half type: as `convert` makes it, except for the bits of NaN.
template <class H> __device__ __forceinline__ H rounded(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (SAME<H, bf16>) return {static_cast<u16>(pair_of<H>(x, 0.0f))};
#endif
  return convert<H>(x);
}

// ---- comparisons. Complex numbers are ordered by the real part, then by the imaginary part.
template <class A, class B> __device__ __forceinline__ bool equal(A a, B b) {
  if constexpr (SAME<A, i64> && SAME<B, u64>) return a >= 0 && static_cast<u64>(a) == b;
  else if constexpr (SAME<A, u64> && SAME<B, i64>) return b >= 0 && a == static_cast<u64>(b);
  else return gpuops::equal(a, b);
}
template <class A, class B> __device__ __forceinline__ bool less(A a, B b) {
  if constexpr (SAME<A, i64> && SAME<B, u64>) return a < 0 || static_cast<u64>(a) < b;
  else if constexpr (SAME<A, u64> && SAME<B, i64>) return b >= 0 && a < static_cast<u64>(b);
  else if constexpr (COMPLEX<A>) return gpuops::less(a, b) && !is_nan(a.im) && !is_nan(b.im);
  else return a < b;
}
template <class A, class B> __device__ __forceinline__ bool not_equal(A a, B b) { return !ufunc::equal(a, b); }
template <class A, class B> __device__ __forceinline__ bool less_equal(A a, B b) {
  return ufunc::less(a, b) || ufunc::equal(a, b);
}
template <class A, class B> __device__ __forceinline__ bool greater(A a, B b) { return ufunc::less(b, a); }
template <class A, class B> __device__ __forceinline__ bool greater_equal(A a, B b) { return less_equal(b, a); }

// The same zero of both signs may be taken for a real one. NaN propagates, or is ignored (fmin, fmax).
template <class T> __device__ __forceinline__ T minimum(T a, T b) {
  if constexpr (COMPLEX<T>) return is_nan(a) || less_equal(a, b) ? a : b;
  else return lesser_of(a, b);
}
template <class T> __device__ __forceinline__ T maximum(T a, T b) {
  if constexpr (COMPLEX<T>) return is_nan(a) || greater_equal(a, b) ? a : b;
  else return greater_of(a, b);
}
template <class T> __device__ __forceinline__ T fmin(T a, T b) {
  if constexpr (COMPLEX<T>) return is_nan(b) || less_equal(a, b) ? a : b;
  else return lesser_number(a, b);
}
template <class T> __device__ __forceinline__ T fmax(T a, T b) {
  if constexpr (COMPLEX<T>) return is_nan(b) || greater_equal(a, b) ? a : b;
  else return greater_number(a, b);
}

// ---- logic and bits
template <class T> __device__ __forceinline__ bool logical_and(T a, T b) { return nonzero(a) && nonzero(b); }
template <class T> __device__ __forceinline__ bool logical_or(T a, T b) { return nonzero(a) || nonzero(b); }
template <class T> __device__ __forceinline__ bool logical_xor(T a, T b) { return nonzero(a) != nonzero(b); }
template <class T> __device__ __forceinline__ bool logical_not(T x) { return !nonzero(x); }
template <class T> __device__ __forceinline__ T bitwise_and(T a, T b) { return static_cast<T>(a & b); }
template <class T> __device__ __forceinline__ T bitwise_or(T a, T b) { return static_cast<T>(a | b); }
template <class T> __device__ __forceinline__ T bitwise_xor(T a, T b) { return static_cast<T>(a ^ b); }
template <class T> __device__ __forceinline__ T invert(T x) {
  if constexpr (SAME<T, bool>) return !x;
  else return static_cast<T>(~x);
}
// Whether a number can be shifted by so many bits. All bits are shifted out by others, and by negative ones.
template <class T> __device__ __forceinline__ bool is_shift(T count) {
  return static_cast<bits_of<T>>(count) < 8 * sizeof(T);
}
template <class T> __device__ __forceinline__ T left_shift(T x, T count) {
  return is_shift(count) ? static_cast<T>(static_cast<wrapping_t<T>>(x) << count) : T(0);
}
template <class T> __device__ __forceinline__ T right_shift(T x, T count) {
  return is_shift(count) ? static_cast<T>(x >> count) : static_cast<T>(x < 0 ? -1 : 0);
}

// ---- kinds of floating-point numbers
template <class T> __device__ __forceinline__ bool isnan(T x) {
  if constexpr (WHOLE<T>) return false;
  else return is_nan(x);
}
template <class T> __device__ __forceinline__ bool isinf(T x) {
  if constexpr (WHOLE<T>) return false;
  else if constexpr (COMPLEX<T>) return ufunc::isinf(x.re) || ufunc::isinf(x.im);
  else return ::fabs(x) == Limits<T>::greatest();
}
template <class T> __device__ __forceinline__ bool isfinite(T x) {
  if constexpr (WHOLE<T>) return true;
  else if constexpr (COMPLEX<T>) return ufunc::isfinite(x.re) && ufunc::isfinite(x.im);
  else return ::fabs(x) < Limits<T>::greatest();
}

// ---- real functions. Those that complex numbers have, too, are below.
template <class R> __device__ __forceinline__ R hypot(R a, R b) { return ::hypot(a, b); }
template <class R> __device__ __forceinline__ R arctan2(R a, R b) { return ::atan2(a, b); }
template <class T> __device__ __forceinline__ T floor(T x) {
  if constexpr (WHOLE<T>) return x;
  else return ::floor(x);
}
template <class T> __device__ __forceinline__ T ceil(T x) {
  if constexpr (WHOLE<T>) return x;
  else return ::ceil(x);
}
template <class T> __device__ __forceinline__ T trunc(T x) {
  if constexpr (WHOLE<T>) return x;
  else return ::trunc(x);
}
template <class T> __device__ __forceinline__ T rint(T x) {
  if constexpr (COMPLEX<T>) return {::rint(x.re), ::rint(x.im)};
  else return ::rint(x);
}

// ---- arithmetic. bool: the sum is true if one of them is, the product if both are.
template <class T> __device__ __forceinline__ T add(T a, T b) {
  using W = wrapping_t<T>;
  if constexpr (WHOLE<T>) return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  else return a + b;
}
template <class T> __device__ __forceinline__ T subtract(T a, T b) {
  using W = wrapping_t<T>;
  if constexpr (WHOLE<T>) return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
  else return a - b;
}
template <class T> __device__ __forceinline__ T multiply(T a, T b) {
  using W = wrapping_t<T>;
  if constexpr (WHOLE<T>) return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  else if constexpr (COMPLEX<T>) {
    return {product(a.re, b.re) - product(a.im, b.im), product(a.re, b.im) + product(a.im, b.re)};
  } else return product(a, b);
}
template <class T> __device__ __forceinline__ T square(T x) { return multiply(x, x); }
template <class T> __device__ __forceinline__ T positive(T x) { return x; }
template <class T> __device__ __forceinline__ T negative(T x) {
  if constexpr (WHOLE<T>) return subtract(T(0), x);
  else if constexpr (COMPLEX<T>) return {-x.re, -x.im};
  else return -x;
}
template <class T> __device__ __forceinline__ T conjugate(T x) {
  if constexpr (COMPLEX<T>) return {x.re, -x.im};
  else return x;
}
template <class T> __device__ __forceinline__ real_t<T> absolute(T x) {
  if constexpr (COMPLEX<T>) return ::hypot(x.re, x.im);
  else if constexpr (SIGNED<T>) return x < 0 ? negative(x) : x;
  else if constexpr (WHOLE<T>) return x;
  else return ::fabs(x);
}
template <class T> __device__ __forceinline__ T sign(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    R size = absolute(x);
    if (size == R(0)) return {R(0), R(0)};
    if (is_nan(size) || (ufunc::isinf(x.re) && ufunc::isinf(x.im))) return {nan<R>(), nan<R>()};
    if (ufunc::isinf(x.re)) return {x.re > R(0) ? R(1) : R(-1), R(0)};
    if (ufunc::isinf(x.im)) return {R(0), x.im > R(0) ? R(1) : R(-1)};
    return {x.re / size, x.im / size};
  } else {
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : is_nan(x) ? x : T(0);
  }
}

template <class T> __device__ __forceinline__ T divide(T a, T b) {
  if constexpr (COMPLEX<T>) {  // Smith's method, as NumPy rounds it
    using R = real_t<T>;
    if (b.re == R(0) && b.im == R(0)) return {a.re / ::fabs(b.re), a.im / ::fabs(b.im)};
    if (::fabs(b.re) >= ::fabs(b.im)) {
      R ratio = b.im / b.re, scale = R(1) / (b.re + product(b.im, ratio));
      return {product(a.re + product(a.im, ratio), scale), product(a.im - product(a.re, ratio), scale)};
    }
    R ratio = b.re / b.im, scale = R(1) / (b.im + product(b.re, ratio));
    return {product(product(a.re, ratio) + a.im, scale), product(product(a.im, ratio) - a.re, scale)};
  } else {
    return a / b;
  }
}
template <class T> __device__ __forceinline__ T reciprocal(T x) {
  if constexpr (INTEGER<T>) {  // of 0: what NumPy has on x86
    if (x == 0) return sizeof(T) >= 4 && SIGNED<T> ? Limits<T>::least() : T(0);
    return x == 1 || (SIGNED<T> && x == static_cast<T>(-1)) ? x : T(0);
  } else if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    if (::fabs(x.im) <= ::fabs(x.re)) {
      R ratio = x.im / x.re, scale = x.re + product(x.im, ratio);
      return {R(1) / scale, -ratio / scale};
    }
    R ratio = x.re / x.im, scale = product(x.re, ratio) + x.im;
    return {ratio / scale, R(-1) / scale};
  } else {
    return T(1) / x;
  }
}

// Division rounds down, and the remainder has b's sign. Of integers by 0, both are 0.
template <class T> __device__ __forceinline__ T remainder(T a, T b) {
  if constexpr (INTEGER<T>) {
    if (b == 0 || (SIGNED<T> && b == static_cast<T>(-1))) return 0;  // the least value by -1 would overflow
    T rest = static_cast<T>(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? add(rest, b) : rest;
  } else {
    T rest = ::fmod(a, b);
    if (rest == T(0)) return ::copysign(T(0), b);
    return b != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  }
}
template <class T> __device__ __forceinline__ T floor_divide(T a, T b) {
  if constexpr (INTEGER<T>) {
    if (b == 0) return 0;
    if (SIGNED<T> && b == static_cast<T>(-1)) return negative(a);
    return static_cast<T>(a / b - ((a < 0) != (b < 0) && a % b != 0));
  } else {
    if (b == T(0)) return a / b;
    T rest = ::fmod(a, b), quotient = (a - rest) / b;
    if (nonzero(rest) && (rest < T(0)) != (b < T(0))) quotient -= T(1);
    if (quotient == T(0)) return ::copysign(T(0), a / b);
    T whole = ::floor(quotient);
    return quotient - whole > T(0.5) ? whole + T(1) : whole;
  }
}

// ---- roots, exponentials and logarithms
template <class R> struct Format;
template <> struct Format<float> {
  // exp(EXPONENT) is finite. Beyond NEAR, tanh is 1.
  static constexpr float EXPONENT = 88, NEAR = 11, LEAST_NORMAL = 0x1p-126f;
};
template <> struct Format<double> {
  static constexpr double EXPONENT = 709, NEAR = 22, LEAST_NORMAL = 0x1p-1022;
};
template <class R> constexpr R LN_2 = R(0.693147180559945309417232121458176568);
template <class R> constexpr R LOG2_OF_E = R(1.442695040888963407359924681001892137);
template <class R> constexpr R LOG10_OF_E = R(0.434294481903251827651128918916605082);

template <class T> __device__ __forceinline__ T sqrt(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    if (x.re == R(0) && x.im == R(0)) return {R(0), x.im};
    if (ufunc::isinf(x.im)) return {Limits<R>::greatest(), x.im};
    R most = ::fabs(x.re) > ::fabs(x.im) ? ::fabs(x.re) : ::fabs(x.im);
    bool large = most >= R(0.25) / Format<R>::LEAST_NORMAL, small = most < R(0x1p54) * Format<R>::LEAST_NORMAL;
    R scale = large ? R(0x1p-4) : small ? R(0x1p54) : R(1), back = large ? R(4) : small ? R(0x1p-27) : R(1);
    R re = product(x.re, scale), im = product(x.im, scale);
    R root = ::sqrt(product(::fabs(re) + ::hypot(re, im), R(0.5))), other = ::fabs(im) / (root + root);
    R real = re >= R(0) ? root : other, imaginary = ::copysign(re >= R(0) ? other : root, im);
    return {product(real, back), product(imaginary, back)};
  } else {
    return ::sqrt(x);
  }
}

// exp(x) times a and b, where that does not overflow even if exp(x) does.
template <class R> __device__ __forceinline__ Complex<R> exp_times(R x, R a, R b) {
  constexpr R STEP = Format<R>::EXPONENT;
  for (int step = 0; step < 2 && x > STEP; ++step) {
    a = product(a, ::exp(STEP));
    b = product(b, ::exp(STEP));
    x -= STEP;
  }
  R power = ::exp(x);
  return {product(power, a), product(power, b)};
}
template <class T> __device__ __forceinline__ T exp(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    if (x.im == R(0)) return {::exp(x.re), x.im};
    if (!ufunc::isfinite(x.im) && x.re == Limits<R>::least()) return {R(0), ::copysign(R(0), x.im)};
    if (!ufunc::isfinite(x.im) && x.re == Limits<R>::greatest()) return {x.re, nan<R>()};
    return exp_times(x.re, ::cos(x.im), ::sin(x.im));
  } else {
    return ::exp(x);
  }
}
template <class T> __device__ __forceinline__ T exp2(T x) {
  using R = real_t<T>;
  if constexpr (COMPLEX<T>) return exp(T{product(x.re, LN_2<R>), product(x.im, LN_2<R>)});
  else return ::exp2(x);
}
template <class T> __device__ __forceinline__ T expm1(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    R half = ::sin(product(x.im, R(0.5)));
    return {product(::expm1(x.re), ::cos(x.im)) - product(half + half, half), product(::exp(x.re), ::sin(x.im))};
  } else {
    return ::expm1(x);
  }
}

// a * a + b * b - 1, of a and b whose squares' sum is close to 1. What rounding takes from squares and sum is added.
template <class R> __device__ __forceinline__ R squares_less_1(R a, R b) {
  R first = product(a, a), second = product(b, b), sum = first + second, added = sum - first;
  R lost = (first - (sum - added)) + (second - added);
  return (sum - R(1)) + (lost + (::fma(a, a, -first) + ::fma(b, b, -second)));
}
template <class T> __device__ __forceinline__ T log(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    R re = ::fabs(x.re), im = ::fabs(x.im), size = ::hypot(re, im), angle = ::atan2(x.im, x.re);
    if (size > R(0.25) / Format<R>::LEAST_NORMAL) {  // it may have overflowed
      return {::log(::hypot(product(re, R(0.125)), product(im, R(0.125)))) + product(R(3), LN_2<R>), angle};
    }
    if (size < Format<R>::LEAST_NORMAL) {
      return {::log(::hypot(product(re, R(0x1p54)), product(im, R(0x1p54)))) - product(R(54), LN_2<R>), angle};
    }
    if (size > R(0.71) && size < R(1.73)) return {product(::log1p(squares_less_1(re, im)), R(0.5)), angle};
    return {::log(size), angle};
  } else {
    return ::log(x);
  }
}
template <class T> __device__ __forceinline__ T log2(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    T natural = log(x);
    return {product(natural.re, LOG2_OF_E<R>), product(natural.im, LOG2_OF_E<R>)};
  } else {
    return ::log2(x);
  }
}
template <class T> __device__ __forceinline__ T log10(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    T natural = log(x);
    return {product(natural.re, LOG10_OF_E<R>), product(natural.im, LOG10_OF_E<R>)};
  } else {
    return ::log10(x);
  }
}
template <class T> __device__ __forceinline__ T log1p(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    return {::log(::hypot(x.re + R(1), x.im)), ::atan2(x.im, x.re + R(1))};
  } else {
    return ::log1p(x);
  }
}

template <class T> __device__ __forceinline__ T power(T x, T exponent) {
  if constexpr (INTEGER<T>) {  // of a negative exponent: 0
    using W = wrapping_t<T>;
    if (exponent < 0) return 0;
    W base = static_cast<W>(x), out = 1;
    for (W left = static_cast<W>(exponent); left != 0; left >>= 1) {
      if (left & 1) out *= base;
      base *= base;
    }
    return static_cast<T>(out);
  } else if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    if (exponent.re == R(0) && exponent.im == R(0)) return {R(1), R(0)};
    if (x.re == R(0) && x.im == R(0)) {
      R zero = exponent.re > R(0) ? R(0) : nan<R>();
      return {zero, zero};
    }
    if (exponent.im != R(0) || !(::fabs(exponent.re) < R(100)) || exponent.re != ::trunc(exponent.re)) {
      return exp(multiply(exponent, log(x)));
    }
    if (exponent.re == R(1)) return x;
    if (exponent.re == R(2)) return square(x);
    if (exponent.re == R(3)) return multiply(x, square(x));
    T out = {R(1), R(0)};
    for (int left = static_cast<int>(::fabs(exponent.re)); left != 0; left >>= 1) {
      if (left & 1) out = multiply(out, x);
      x = square(x);
    }
    return exponent.re < R(0) ? divide(T{R(1), R(0)}, out) : out;
  } else {
    return ::pow(x, exponent);
  }
}

// ---- circular and hyperbolic functions
// {a * cosh(x), b * sinh(x)}
template <class R> __device__ __forceinline__ Complex<R> hyperbolic(R x, R a, R b) {
  constexpr R STEP = Format<R>::EXPONENT;
  if (::fabs(x) > STEP) {
    R part = product(R(0.5), ::exp(STEP));
    return exp_times(::fabs(x) - STEP, product(a, part), product(b, ::copysign(part, x)));
  }
  return {product(a, ::cosh(x)), product(b, ::sinh(x))};
}
template <class T> __device__ __forceinline__ T sin(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    T out = hyperbolic(x.im, ::sin(x.re), ::cos(x.re));
    if (x.re == R(0)) out.re = x.re;
    if (!ufunc::isfinite(x.re) && (x.im == R(0) || ufunc::isinf(x.im))) out.im = x.im;
    return out;
  } else {
    return ::sin(x);
  }
}
template <class T> __device__ __forceinline__ T cos(T x) {
  if constexpr (COMPLEX<T>) {
    using R = real_t<T>;
    T out = hyperbolic(x.im, ::cos(x.re), -::sin(x.re));
    if (x.re == R(0)) out.im = product(-x.re, ::copysign(R(1), x.im));
    if (!ufunc::isfinite(x.re) && x.im == R(0)) out.im = x.im;
    if (!ufunc::isfinite(x.re) && ufunc::isinf(x.im)) out.re = ::fabs(x.im);
    return out;
  } else {
    return ::cos(x);
  }
}
// tanh(x + iy). W. Kahan, "Branch cuts for complex elementary functions", 1987.
template <class R> __device__ __forceinline__ Complex<R> hyperbolic_tangent(R x, R y) {
  if (!ufunc::isfinite(y)) {
    if (ufunc::isinf(x)) return {::copysign(R(1), x), ::copysign(R(0), y)};
    return {x == R(0) ? x : nan<R>(), nan<R>()};
  }
  if (::fabs(x) > Format<R>::NEAR) {
    R half = ::exp(-::fabs(x)), double_sine = product(R(2), product(::sin(y), ::cos(y)));
    return {::copysign(R(1), x), product(product(R(2), half), product(double_sine, half))};
  }
  R tangent = ::tan(y), sine = ::sinh(x), cosine = ::sqrt(R(1) + product(sine, sine));
  R slope = R(1) + product(tangent, tangent), steep = product(slope, sine), scale = R(1) + product(steep, sine);
  return {product(steep, cosine) / scale, is_nan(x) && y == R(0) ? y : tangent / scale};
}
template <class T> __device__ __forceinline__ T tanh(T x) {
  if constexpr (COMPLEX<T>) return hyperbolic_tangent(x.re, x.im);
  else return ::tanh(x);
}
template <class T> __device__ __forceinline__ T tan(T x) {
  if constexpr (COMPLEX<T>) {
    T turned = hyperbolic_tangent(-x.im, x.re);
    return {turned.im, -turned.re};
  } else {
    return ::tan(x);
  }
}

// x, but no less than `low` and no greater than `high`. Complex numbers are compared by their real parts, those that are
// equal by their imaginary parts, and only a NaN of the first of two numbers stays.
template <class T> __device__ __forceinline__ T clip(T x, T low, T high) { return minimum(maximum(x, low), high); }
template <class R> __device__ __forceinline__ Complex<R> clip(Complex<R> x, Complex<R> low, Complex<R> high) {
  auto before = [](Complex<R> a, Complex<R> b) { return a.re == b.re ? a.im < b.im : a.re < b.re; };
  Complex<R> raised = is_nan(x) || before(low, x) ? x : low;
  return is_nan(raised) || before(raised, high) ? raised : high;
}

}  // namespace ufunc
}  // namespace gpuops
