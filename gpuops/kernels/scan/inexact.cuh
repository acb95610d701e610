// Engines whose results are not exact sums: of products of floats (SCALED), whose totals do not overflow, and of any other op.

// Results of a chunk, one after the other, given what comes before it. first: it is the first of its line.
template <class Engine, class Elements> __device__ __forceinline__ void finish_each(typename Engine::Local state, const Elements& elements, bool first, Tout nothing) {
  elements.template scan<1>([&](Tin x, int i) {
    Tout last = EXCLUSIVE && i == 0 && first ? nothing : Engine::finished(state);
    state = Engine::add(state, x);
    return EXCLUSIVE ? last : Engine::finished(state);
  });
}
struct Merged : AnyOp {
  template <class Elements> static __device__ __forceinline__ void finish(Local state, const Elements& elements, bool first, Tout nothing) {
    finish_each<Merged>(state, elements, first, nothing);
  }
};
template <class A> struct Scaled {
  using Local = Product<A>;
  using Carry = Local;
  static __device__ __forceinline__ Carry none() { return {convert<A>(1.0), 0}; }
  static __device__ __forceinline__ Local nothing() { return none(); }
  static __device__ __forceinline__ Carry merge(const Carry& a, const Carry& b) { return a * b; }
  static __device__ __forceinline__ A number(Tin x) { return convert<A>(convert<Tval>(x)); }
  static __device__ __forceinline__ Local add(const Local& state, Tin x) { return state * Local::of(number(x)); }
  static __device__ __forceinline__ Tout delivered(A value) { return convert<Tout>(convert<Tres>(value)); }
  static __device__ __forceinline__ Tout finished(const Carry& state) { return delivered(state.value()); }

  // Products that are numbers: they are right if all of them, and all parts of complex factors, are far from overflow and from
  // subnormal numbers.
  struct Numbers {
    A product;
    u32 most = 0, least = ~0u;
    __device__ __forceinline__ explicit Numbers(A first) : product(first) {}
    __device__ __forceinline__ void note(double x) { u32 size = high_word(x) & 0x7fffffffu; most = max(most, size), least = min(least, size); }
    __device__ __forceinline__ void note(c128 x) { note(x.re), note(x.im); }
    __device__ __forceinline__ void operator*=(A x) {
      if (sizeof(A) > sizeof(double)) note(x);
      product = product * x;
      note(product);
    }
    __device__ __forceinline__ bool right() const { return least >= (1023u - 400) << 20 && most < (1023u + 400) << 20; }
  };
  static __device__ __forceinline__ Local total(const Tin (&x)[EACH], int) {
    Numbers all(convert<A>(1.0));
#pragma unroll
    for (int i = 0; i < EACH; ++i) all *= number(x[i]);
    if (all.right()) return {all.product, 0};
    Local state = none();
#pragma unroll
    for (int i = 0; i < EACH; ++i) state = add(state, x[i]);
    return state;
  }
  template <class Elements> static __device__ __forceinline__ void finish(Local state, const Elements& elements, bool first, Tout nothing) {
    state = Local::normalized(state.number, state.exponent);
    constexpr i64 FAR = 600;  // a power of two by which numbers become neither infinite nor subnormal, if they are doubles
    double power = power_of_two(static_cast<i32>(max(-FAR, min(FAR, state.exponent))));
    constexpr bool NARROW = sizeof(Tres) < sizeof(A);
    Numbers so_far(state.number);
    elements.template scan<1>([&](Tin x, int i) {
      Tout last = EXCLUSIVE && i == 0 && first ? nothing : delivered(Local::times(so_far.product, power));
      so_far *= number(x);
      return EXCLUSIVE ? last : delivered(Local::times(so_far.product, power));
    });
    if (so_far.right() && (NARROW || (-FAR <= state.exponent && state.exponent <= FAR))) return;
    finish_each<Scaled>(state, elements, first, nothing);
  }
};
constexpr float PADDING = SCALED ? 1.0f : -0.0f;  // stands for elements that there are not, and changes no product, or no sum
using Inexact = Either<SCALED, Scaled<Op::A>, Merged>::type;
