// Element types and the conversions between them. They need no CUDA headers: NVRTC has little to parse, and a host
// compiler accepts the same source.
namespace gpuops {

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
using f32 = float;
using f64 = double;
struct b8 { u8 bits; };  // any nonzero byte is true, not only 1
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
template <class R> struct Complex { R re, im; };  // aligned as R only: a view of a real array may start at any element
using c64 = Complex<float>;
using c128 = Complex<double>;
template <class R, int K> struct Several { R of[K]; };  // what several expressions give, whose results are made together
struct alignas(16) bits128 { u64 low, high; };
struct split64 { u32 low, high; };   // 8 and 16 bytes, aligned to half their size: elements of a complex view of a
struct split128 { u64 low, high; };  // real array

template <class A, class B> constexpr bool SAME = false;
template <class A> constexpr bool SAME<A, A> = true;
template <bool, class A, class B> struct Either { using type = A; };
template <class A, class B> struct Either<false, A, B> { using type = B; };
template <class T, class... Types> constexpr bool ONE_OF = (SAME<T, Types> || ...);
template <class T> constexpr bool HALF = ONE_OF<T, f16, bf16>;
template <class T> constexpr bool INTEGER = ONE_OF<T, i8, u8, i16, u16, i32, u32, i64, u64>;
template <class T> constexpr bool FLOATING = ONE_OF<T, f32, f64, c64, c128>;
template <class T> constexpr bool SIGNED = ONE_OF<T, i8, i16, i32, i64>;
template <class T> constexpr int SEVERAL = 0;
template <class R, int K> constexpr int SEVERAL<Several<R, K>> = K;

template <class To, class From> __device__ __forceinline__ To bit_cast(From value) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To out;
  memcpy(&out, &value, sizeof out);
  return out;
}

// ---- half types: widening to float is exact, narrowing rounds to nearest even. double to f16 is one rounding; double
// to bf16 goes through float, as in ml_dtypes. The PTX forms keep subnormals whatever -ftz says.
#ifdef __CUDA_ARCH__
__device__ __forceinline__ float widen(f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
__device__ __forceinline__ f16 to_f16(float x) { f16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y; }
__device__ __forceinline__ f16 to_f16(double x) { f16 y; asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x)); return y; }
__device__ __forceinline__ double to_f64(float x) { double y; asm("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x)); return y; }
__device__ __forceinline__ float to_f32(double x) { float y; asm("cvt.rn.f32.f64 %0, %1;" : "=f"(y) : "d"(x)); return y; }
__device__ __forceinline__ float cut_to_f32(double x) { float y; asm("cvt.rz.f32.f64 %0, %1;" : "=f"(y) : "d"(x)); return y; }
#else
__device__ __forceinline__ float widen(f16 x) { return bit_cast<_Float16>(x.bits); }
__device__ __forceinline__ f16 to_f16(float x) { return {bit_cast<u16>(static_cast<_Float16>(x))}; }
__device__ __forceinline__ f16 to_f16(double x) { return {bit_cast<u16>(static_cast<_Float16>(x))}; }
__device__ __forceinline__ double to_f64(float x) { return x; }
__device__ __forceinline__ float to_f32(double x) { return static_cast<float>(x); }
__device__ __forceinline__ float cut_to_f32(double x) {
  float y = static_cast<float>(x);
  return (x < 0 ? y < x : y > x) ? bit_cast<float>(bit_cast<u32>(y) - 1) : y;
}
#endif
__device__ __forceinline__ float widen(bf16 x) { return bit_cast<float>(static_cast<u32>(x.bits) << 16); }
__device__ __forceinline__ bf16 to_bf16(float x) {
  u32 bits = bit_cast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<u16>((bits >> 16) | 0x40u)};  // NaN stays NaN
  return {static_cast<u16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
__device__ __forceinline__ bool widen(b8 x) { return x.bits != 0; }
template <class T> __device__ __forceinline__ T widen(T x) { return x; }

// ---- nonzero(x): the truth value of x. Floats are tested by their bits, so subnormals are true even under -ftz.
__device__ __forceinline__ bool nonzero(b8 x) { return x.bits != 0; }
__device__ __forceinline__ bool nonzero(f16 x) { return (x.bits & 0x7fffu) != 0; }
__device__ __forceinline__ bool nonzero(bf16 x) { return (x.bits & 0x7fffu) != 0; }
__device__ __forceinline__ bool nonzero(float x) { return (bit_cast<u32>(x) << 1) != 0; }
__device__ __forceinline__ bool nonzero(double x) { return (bit_cast<u64>(x) << 1) != 0; }
template <class R> __device__ __forceinline__ bool nonzero(Complex<R> x) { return nonzero(x.re) || nonzero(x.im); }
template <class R, int K> __device__ __forceinline__ bool nonzero(Several<R, K> x) {
  bool any = false;
#pragma unroll
  for (int k = 0; k < K; ++k) any |= nonzero(x.of[k]);
  return any;
}
template <class T> __device__ __forceinline__ bool nonzero(T x) { return x != 0; }

// ---- convert<To>(x): NumPy's astype, for any pair of element types
template <class To> struct Convert {
  template <class From> static __device__ __forceinline__ To from(From x) { return static_cast<To>(x); }
  template <class R> static __device__ __forceinline__ To from(Complex<R> x) { return from(x.re); }
};
template <> struct Convert<float> {
  template <class From> static __device__ __forceinline__ float from(From x) { return static_cast<float>(x); }
  template <class R> static __device__ __forceinline__ float from(Complex<R> x) { return from(x.re); }
  static __device__ __forceinline__ float from(double x) { return to_f32(x); }
};
template <> struct Convert<double> {
  template <class From> static __device__ __forceinline__ double from(From x) { return static_cast<double>(x); }
  template <class R> static __device__ __forceinline__ double from(Complex<R> x) { return from(x.re); }
  static __device__ __forceinline__ double from(float x) { return to_f64(x); }
};
template <> struct Convert<bool> {
  template <class From> static __device__ __forceinline__ bool from(From x) { return nonzero(x); }
};
template <> struct Convert<b8> {
  template <class From> static __device__ __forceinline__ b8 from(From x) { return {nonzero(x)}; }
};
template <> struct Convert<f16> {
  template <class From> static __device__ __forceinline__ f16 from(From x) { return to_f16(Convert<float>::from(x)); }
  template <class R> static __device__ __forceinline__ f16 from(Complex<R> x) { return from(x.re); }
  static __device__ __forceinline__ f16 from(double x) { return to_f16(x); }
};
template <> struct Convert<bf16> {
  template <class From> static __device__ __forceinline__ bf16 from(From x) { return to_bf16(Convert<float>::from(x)); }
};
template <class R> struct Convert<Complex<R>> {
  template <class From> static __device__ __forceinline__ Complex<R> from(From x) { return {Convert<R>::from(x), R(0)}; }
  template <class S> static __device__ __forceinline__ Complex<R> from(Complex<S> x) {
    return {Convert<R>::from(x.re), Convert<R>::from(x.im)};
  }
};
template <class To, class From> __device__ __forceinline__ To convert(From x);
template <class R, int K> struct Convert<Several<R, K>> {
  template <class S> static __device__ __forceinline__ Several<R, K> from(Several<S, K> x) {
    Several<R, K> made;
#pragma unroll
    for (int k = 0; k < K; ++k) made.of[k] = convert<R>(x.of[k]);
    return made;
  }
};
template <class To, class From> struct Converter {
  static __device__ __forceinline__ To apply(From x) { return Convert<To>::from(widen(x)); }
};
template <class T> struct Converter<T, T> {
  static __device__ __forceinline__ T apply(T x) { return x; }  // bit-exact, NaN payload included
};
template <> struct Converter<bool, f16> { static __device__ __forceinline__ bool apply(f16 x) { return nonzero(x); } };
template <> struct Converter<bool, bf16> { static __device__ __forceinline__ bool apply(bf16 x) { return nonzero(x); } };
template <class To, class From> __device__ __forceinline__ To convert(From x) { return Converter<To, From>::apply(x); }

// ---- Pack<T, N>: N elements moved by one load or store (of at most 16 bytes each)
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T item[N]; };
template <class T> struct Pack<T, 1> { T item[1]; };  // a single element keeps its own alignment
template <int N, class T> __device__ __forceinline__ Pack<T, N> load(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <class T, int N> __device__ __forceinline__ void store(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

}  // namespace gpuops
