// An operand that is computed where it is read. struct Expression is printed from a program: it has pointers to the
// operands, parameters, and the functions raw (loads what N elements are made from) and made (computes them).
// Elements are numbered as in a dense array; packs of N elements begin at multiples of N.
namespace gpuops {
namespace expression {

// How N elements of an operand are read:
//   SAME      it lies as the expression: one vectorised load
//   SHIFTED   likewise, but packs are not aligned: N loads
//   ONE       a single element
//   REPEATED  one element for the whole pack
//   PACKED    one vectorised load
//   STRIDED   elements of a pack are some steps apart
//   EACH      each element is located on its own
enum Way { SAME, SHIFTED, ONE, REPEATED, PACKED, STRIDED, EACH };

template <int WAY, int N, class T, class Offset>
__device__ __forceinline__ Items<T, N> fetch(const T* from, Offset at, Offset step) {
  Items<T, N> items;
  if constexpr (N == 1) {
    items.set(0, from[WAY == ONE ? 0 : at]);
  } else if constexpr (WAY == SAME || WAY == PACKED) {
    items = load_items<N>(from + at);
  } else if constexpr (WAY == ONE || WAY == REPEATED) {
    items.fill(from[WAY == ONE ? 0 : at]);
  } else {
#pragma unroll
    for (int v = 0; v < N; ++v) items.set(v, from[at + v * step]);
  }
  return items;
}

// The value of a number that is a parameter.
template <class T> __device__ __forceinline__ T constant(const u64 (&bytes)[2]) {
  T value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

// Where an element of an expression is: in the place of a pointer.
template <class Of, class Offset> struct At {
  const Of* of;
  Offset at;
  __device__ __forceinline__ At operator+(i64 more) const { return {of, static_cast<Offset>(at + more)}; }
  __device__ __forceinline__ void operator+=(i64 more) { at += static_cast<Offset>(more); }
  __device__ __forceinline__ auto operator[](i64 more) const { return of->template load<1>(at + more).get(0); }
};

}  // namespace expression

template <int N, class Of, class Offset> __device__ __forceinline__ auto load_items(expression::At<Of, Offset> from) {
  return from.of->template load<N>(from.at);
}
// N elements from any element on.
template <int N, class Of, class Offset> __device__ __forceinline__ auto funnel_load(expression::At<Of, Offset> from) {
  auto items = from.of->template load<N>(0);
#pragma unroll
  for (int v = 0; v < N; ++v) items.set(v, from[v]);
  return items;
}
template <int N, class T, class Of, class Offset>
__device__ __forceinline__ void copy_items(Items<T, N>* to, expression::At<Of, Offset> from) { *to = load_items<N>(from); }
template <class Of, class Offset> __device__ __forceinline__ u64 index_of(expression::At<Of, Offset> from) { return from.at; }

}  // namespace gpuops
