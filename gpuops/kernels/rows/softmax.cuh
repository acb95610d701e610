// What the softmax kernels share: sums of exponentials, and how the classic ones see a row.
// Parameters: struct Softmax (gpuops/plan/rows/launch.py).
// Prologue: Tin, V (float or double, for the arithmetic), Tout, Index, Offset, KEPT, REDUCED
// (ranks), MASK, SCALED, LOG.

using Op = MaxExpSum<V>;

// The sum of a row's exponentials. For a logarithm it is a pair: the sum of the terms below 1, and how many terms are
// 1. `stored` makes one number of it: the sum or, for a logarithm, the sum less one 1 (`rest_of` in ops.cuh).
constexpr bool LEAVES_OUT = LOG && LEAVES_1_OUT<Tout>;
template <bool> struct Totals {
  using Total = V;
  static __device__ __forceinline__ Total of(V sum, V) { return sum; }
  static __device__ __forceinline__ Total of_rest(V rest) { return 1 + rest; }
  static __device__ __forceinline__ Total read(V stored, bool) { return stored; }
  static __device__ __forceinline__ V sum(Total t) { return t; }
  static __device__ __forceinline__ V stored(Total t) { return t; }
  static __device__ __forceinline__ V log(V stored) { return ::log(stored); }
  template <class B> static __device__ __forceinline__ bool at_max(V, const B&) { return false; }
  template <class B> static __device__ __forceinline__ void add(Total& sum, V, const B&, V power) { sum += power; }
};
template <> struct Totals<true> {
  using Total = Complex<V>;
  static __device__ __forceinline__ Total of(V sum, V ones) { return {sum, ones}; }
  static __device__ __forceinline__ Total of_rest(V rest) { return {rest, V(1)}; }
  static __device__ __forceinline__ Total read(V stored, bool any) { return {any ? stored : V(0), V(any)}; }
  static __device__ __forceinline__ V sum(Total t) { return t.re + t.im; }
  static __device__ __forceinline__ V stored(Total t) { return rest_of(t.re, t.im); }
  static __device__ __forceinline__ V log(V stored) { return log1p(stored); }
  template <class B> static __device__ __forceinline__ bool at_max(V value, const B& base) { return value == base.max; }
  template <class B> static __device__ __forceinline__ void add(Total& sum, V value, const B& base, V power) {
    add_power(sum.re, sum.im, value, base.max, power);
  }
};
using Of = Totals<LEAVES_OUT>;
using Total = Of::Total;

// The mask: there is NONE, packs of it are loaded BESIDE those of x, or its elements are SCATTERED: loaded one by one.
enum Mask { NONE, BESIDE, SCATTERED };

__device__ __forceinline__ V scaled(Tin x, const Softmax& p) {
  return SCALED ? convert<V>(x) * static_cast<V>(p.option) : convert<V>(x);
}

// A row as the classic kernels see it: its elements as x * scale in V, or -inf where the mask leaves them out.
struct Row {
  const Softmax& p;
  const Source& x;
  const b8* mask;
  Tout* y;
  Offset row[3];

  __device__ Row(const Softmax& p, const Source& x, const b8* mask, Tout* y, i64 index) : p(p), x(x), mask(mask), y(y) {
    p.kept.locate(static_cast<Index>(index), row);
  }
  __device__ bool chosen(i64 col) const {
    if constexpr (MASK == NONE) return true;
    Offset at[3];
    p.reduced.locate(static_cast<Index>(col), at);
    return nonzero(mask[row[1] + at[1]]);
  }
  __device__ V get(i64 col) const {
    Offset at[3];
    p.reduced.locate(static_cast<Index>(col), at);
    return chosen(col) ? scaled(element_at(x, row[0], at[0]), p) : Limits<V>::least();
  }
  static __device__ Total power(V value, bool chosen, V max) {
    if (!chosen) return Total{};
    return LEAVES_OUT && value == max ? Of::of(V(0), V(1)) : Of::of(exp(value - max), V(0));
  }
  __device__ Total power(i64 col, V max) const { return power(get(col), chosen(col), max); }
  __device__ void put(i64 col, V value, V max, Total sum) const {
    Offset at[3];
    p.reduced.locate(static_cast<Index>(col), at);
    y[row[2] + at[2]] = result(value, chosen(col), max, sum);
  }
  static __device__ Tout result(V value, bool chosen, V max, Total sum) {
    V stored = Of::stored(sum);
    if constexpr (LOG) return convert<Tout>(chosen ? log_softmax(value, max, Of::log(stored)) : Limits<V>::least());
    else return convert<Tout>(chosen ? exp(value - max) / stored : V(0));
  }
};
