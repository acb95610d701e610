// A product of floats: a number and a power of two, so that no product of a part of a line overflows or vanishes. The elements
// before it may be so small, or so large, that the whole does not.

template <class A> struct Product {
  A number;
  i64 exponent;

  static __device__ __forceinline__ double size(double x) { return fabs(x); }
  static __device__ __forceinline__ double size(c128 x) { return fmax(fabs(x.re), fabs(x.im)); }
  static __device__ __forceinline__ double times(double x, double power) { return x * power; }
  static __device__ __forceinline__ c128 times(c128 x, double power) { return {x.re * power, x.im * power}; }
  static __device__ __forceinline__ double raised(double x, i32 exponent) { return ldexp(x, exponent); }
  static __device__ __forceinline__ c128 raised(c128 x, i32 exponent) { return {ldexp(x.re, exponent), ldexp(x.im, exponent)}; }

  // Whether products of two such numbers, and of their parts, are far from overflow and from subnormal numbers.
  static __device__ __forceinline__ bool inside(double x) { return (high_word(x) & 0x7fffffffu) - ((1023u - 400) << 20) < 800u << 20; }
  static __device__ __forceinline__ bool inside(c128 x) { return inside(x.re) && inside(x.im); }
  // The same with a number whose greater part is from 1 to 2.
  static __device__ __noinline__ Product normal(A x, i64 exponent) { return normalized(x, exponent); }
  static __device__ __forceinline__ Product normalized(A x, i64 exponent) {
    double most = size(x);
    if (most < 0x1p-1022) x = times(x, 0x1p54), most *= 0x1p54, exponent -= 54;
    i32 above = static_cast<i32>(high_word(most) >> 20) - 1023;
    if (most == 0 || !is_finite(most)) return {x, 0};
    return {times(x, power_of_two(-above)), exponent + above};
  }
  static __device__ __forceinline__ Product of(A x, i64 exponent = 0) { return inside(x) ? Product{x, exponent} : normal(x, exponent); }
  __device__ __forceinline__ Product operator*(const Product& other) const { return of(number * other.number, exponent + other.exponent); }
  __device__ __forceinline__ A value() const {
    return exponent == 0 ? number : raised(number, static_cast<i32>(max(i64(-5000), min(i64(5000), exponent))));
  }
};
