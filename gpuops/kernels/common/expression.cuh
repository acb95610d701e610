// An operand that is computed where it is read. struct Expression is printed from a program: it has pointers to the
// operands, parameters, and the functions raw (loads what N elements are made from, but not what repeats and so is in a
// cache) and made (loads that, too, and computes them). Elements
// are numbered as in a dense array; packs of N elements begin at multiples of N. at(i) and + give the place of element i;
// + also loads what does not move from there on (Fixed).
namespace gpuops {
namespace expression {

// How N elements of an operand are read:
//   SAME      it lies as the expression: one vectorised load
//   PASSING   likewise, but L1 is left to operands that repeat
//   SHIFTED   likewise, but packs are not aligned: N loads
//   ONE       a single element
//   REPEATED  one element for the whole pack
//   PACKED    one vectorised load
//   STRIDED   elements of a pack are some steps apart
//   EACH      each element is located on its own
enum Way { SAME, PASSING, SHIFTED, ONE, REPEATED, PACKED, STRIDED, EACH };

template <int WAY, int N, class T, class Offset>
__device__ __forceinline__ Items<T, N> fetch(const T* from, Offset at, Offset step) {
  Items<T, N> items;
  if constexpr (N == 1) {
    items.set(0, from[WAY == ONE ? 0 : at]);
  } else if constexpr (WAY == PASSING) {
    items = load_past_l1<N>(from + at);
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

// Where an element of an expression is, in the place of a pointer: its number and, if the expression is LINEAR, where it
// is in operands that are located, which move by step(k) for each element that is added. fixed: the packs of operands
// that do not move.
template <class Of> struct At {
  using Offset = typename Of::Index;
  const Of* of;
  Offset at, there[Of::KEPT > 0 ? Of::KEPT : 1];
  typename Of::Fixed fixed;

  __device__ __forceinline__ void operator+=(i64 more) {
    at += static_cast<Offset>(more);
#pragma unroll
    for (int k = 0; k < Of::KEPT; ++k) {
      if (Of::step(k) != 0) there[k] += static_cast<Offset>(more);
    }
  }
  __device__ __forceinline__ void locate(typename Of::Places& places) const {
    if constexpr (!Of::LINEAR) of->locate(at, places);
#pragma unroll
    for (int k = 0; k < Of::KEPT; ++k) places[k] = there[k];
  }
  __device__ __forceinline__ At operator-(i64 less) const { return *this + -less; }
  __device__ __forceinline__ At operator+(i64 more) const {
    At next = *this;
    next += more;
    return next;
  }
  template <int N> __device__ __forceinline__ auto load() const { return of->template made<N>(*this, of->template raw<N>(*this)); }
  __device__ __forceinline__ auto operator[](i64 more) const { return (*this + more).template load<1>().get(0); }
};

}  // namespace expression

template <int N, class Of> __device__ __forceinline__ auto load_raw(const expression::At<Of>& from) { return from.of->template raw<N>(from); }
template <int N, class Of, class Raw> __device__ __forceinline__ auto made_of(const expression::At<Of>& from, const Raw& raw) {
  return from.of->template made<N>(from, raw);
}
template <int N, class Of> __device__ __forceinline__ auto load_items(const expression::At<Of>& from) {
  return from.template load<N>();
}
// N elements from any element on.
template <int N, class Of> __device__ __forceinline__ auto funnel_load(const expression::At<Of>& from) {
  decltype(load_items<N>(from)) items;
#pragma unroll
  for (int v = 0; v < N; ++v) items.set(v, (*from.of)[from.at + v]);
  return items;
}
template <int N, class T, class Of>
__device__ __forceinline__ void copy_items(Items<T, N>* to, const expression::At<Of>& from) { *to = load_items<N>(from); }
// Packs of an expression, in the place of a pointer to packs.
template <int N, class Of> struct PacksOf {
  expression::At<Of> first;
  __device__ __forceinline__ PacksOf operator+(i64 packs) const { return {first + packs * N}; }
};
template <int N, class Of> __device__ __forceinline__ PacksOf<N, Of> packs_from(const expression::At<Of>& from) { return {from}; }
template <int N, class T, class Of> __device__ __forceinline__ void copy_pack(T* to, const expression::At<Of>& from) {
  store_items(to, load_items<N>(from));
}
template <int N, class T, class Of> __device__ __forceinline__ void copy_pack(T* to, const PacksOf<N, Of>& from) {
  copy_pack<N>(to, from.first);
}
template <class Of> __device__ __forceinline__ u64 address_of(const expression::At<Of>& from) { return from.at * Of::SIZE; }
template <class Of, class Offset> __device__ __forceinline__ auto element_at(const Of& x, Offset a, Offset b) { return (x + a)[b]; }
// Keeps a place in registers.
template <class Of> __device__ __forceinline__ void keep(expression::At<Of>& from) {
  early(from.at);
#pragma unroll
  for (int k = 0; k < Of::KEPT; ++k) early(from.there[k]);
}
// The place of another lane, of an expression whose operands are located by the element's number.
template <class Of> __device__ __forceinline__ expression::At<Of> shuffle(expression::At<Of> from, int lane) {
  static_assert(Of::KEPT == 0, "only the number is moved");
  from.at = __shfl_sync(0xffffffffu, from.at, lane);
  return from;
}
template <class Of> __device__ __forceinline__ u64 index_of(const expression::At<Of>& from) { return from.at; }

}  // namespace gpuops
