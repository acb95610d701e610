// Two elements of a half type, side by side in a word, and the ufuncs that take both at once. A float holds the sum and
// the product of two halves so exactly that rounding it once more makes what rounding once makes (Figueroa, "When is
// double rounding innocuous?", 1995), so all of these are what `rounded` makes of the floats' result, NaN's bits aside.
namespace gpuops {
namespace ufunc {

template <class H> struct Pair {
  u32 word;
  Pair() = default;
  __device__ __forceinline__ Pair(u32 both) : word(both) {}
  explicit __device__ __forceinline__ Pair(H both) : word(both.bits * 0x10001u) {}
  __device__ __forceinline__ Pair(float low, float high) : word(pair_of<H>(low, high)) {}
  __device__ __forceinline__ H first() const { return {static_cast<u16>(word)}; }
  __device__ __forceinline__ H second() const { return {static_cast<u16>(word >> 16)}; }
  __device__ __forceinline__ float low() const { return widen(first()); }
  __device__ __forceinline__ float high() const { return widen(second()); }
};

// A ufunc by one instruction, if a GPU has that, or of both elements in floats.
#ifdef __CUDA_ARCH__
template <class H> constexpr bool NATIVE = SAME<H, f16> || __CUDA_ARCH__ >= 900;
#define GPUOPS_PAIRWISE(name, instruction, of_floats)                                                                 \
  template <class H> __device__ __forceinline__ Pair<H> name(Pair<H> a, Pair<H> b) {                                  \
    Pair<H> made;                                                                                                     \
    if constexpr (!NATIVE<H>) made = {of_floats(a.low(), b.low()), of_floats(a.high(), b.high())};                    \
    else if constexpr (SAME<H, f16>) asm(instruction ".rn.f16x2 %0, %1, %2;" : "=r"(made.word) : "r"(a.word), "r"(b.word)); \
    else asm(instruction ".rn.bf16x2 %0, %1, %2;" : "=r"(made.word) : "r"(a.word), "r"(b.word));                      \
    return made;                                                                                                      \
  }
#else
#define GPUOPS_PAIRWISE(name, instruction, of_floats)                                \
  template <class H> __device__ __forceinline__ Pair<H> name(Pair<H> a, Pair<H> b) { \
    return {of_floats(a.low(), b.low()), of_floats(a.high(), b.high())};             \
  }
#endif
GPUOPS_PAIRWISE(add, "add", ufunc::add)
GPUOPS_PAIRWISE(subtract, "sub", ufunc::subtract)
GPUOPS_PAIRWISE(multiply, "mul", ufunc::multiply)
#undef GPUOPS_PAIRWISE
template <class H> __device__ __forceinline__ Pair<H> square(Pair<H> x) { return multiply(x, x); }
template <class H> __device__ __forceinline__ Pair<H> absolute(Pair<H> x) { return Pair<H>(x.word & 0x7fff7fffu); }
template <class H> __device__ __forceinline__ Pair<H> negative(Pair<H> x) { return Pair<H>(x.word ^ 0x80008000u); }
template <class H> __device__ __forceinline__ Pair<H> maximum(Pair<H> a, Pair<H> b) {
  return Pair<H>(extreme<H, true>(a.word, b.word));
}
template <class H> __device__ __forceinline__ Pair<H> minimum(Pair<H> a, Pair<H> b) {
  return Pair<H>(extreme<H, false>(a.word, b.word));
}

// A quotient of numbers of f16, such that rounding it to f16 makes what rounding the exact one makes: that is 2^-23 of it
// or more away from what lies halfway between two, or is that.
__device__ __forceinline__ float quotient(float a, float b) {
#ifdef __CUDA_ARCH__
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));  // (no number of f16 is subnormal as a float)
  float near = product(a, inverse), rest = ::fma(-near, b, a);
  return ::fabs(rest) > 0 ? ::fma(rest, inverse, near) : near;  // (NaN: one of them is 0, or not finite)
#else
  return a / b;
#endif
}
template <class H> __device__ __forceinline__ Pair<H> divide(Pair<H> a, Pair<H> b) {
  if constexpr (SAME<H, f16>) return {quotient(a.low(), b.low()), quotient(a.high(), b.high())};
  else return {a.low() / b.low(), a.high() / b.high()};
}

}  // namespace ufunc

// Makes two elements of a pack those of a pair.
template <class H, int N> __device__ __forceinline__ void set_pair(Items<H, N>& items, int w, ufunc::Pair<H> made) {
  items.word[w] = made.word;
}
template <class H, int K, int N>
__device__ __forceinline__ void set_pair(Items<Several<H, K>, N>& items, int w, Several<ufunc::Pair<H>, K> made) {
  Several<H, K> first, second;
#pragma unroll
  for (int k = 0; k < K; ++k) first.of[k] = made.of[k].first(), second.of[k] = made.of[k].second();
  items.set(2 * w, first), items.set(2 * w + 1, second);
}

}  // namespace gpuops
