// What the reduction kernels share: what an element contributes, how a result is written.
// Parameters: struct Reduce (gpuops/plan/reductions/launch.py).
// Prologue: Op, Tin, Tb (elements of x and of the second operand), Tval, Tout, Index, Offset, KEPT, REDUCED (ranks),
// OTHER, RESIDENT (if blocks share an output: the threads per multiprocessor that the grid is sized for; else 0).

using State = typename Op::State;
using A = typename Op::A;

// The second operand: a factor of each element (y of a dot product, weights), its index, or a mask.
//   NONE      there is none
//   BESIDE    laid out as x, one element for each of x
//   REPEATED  one element for a whole pack of x
enum Other { NONE, BESIDE, REPEATED };

// Units: `outputs` are packs of outputs in reduce_columns.cu; `packs` are single elements in all but reduce_rows.cu.
__device__ __forceinline__ Context<A> context(const Reduce& r) { return {r.count, r.scale}; }

template <class O = Op, class X> __device__ __forceinline__ State mapped(X x, const Context<A>& c) {
  if constexpr (UNCONVERTED<O>) return O::map(x, c);
  else return O::map(convert<Tval>(x), c);
}

// Combines an element into `value`. With a mask, elements that are left out contribute nothing.
template <class O = Op, class X, class B> __device__ __forceinline__ State joined(State value, X x, B b, const Context<A>& c) {
  if constexpr (COUNTING<O>) {
    bool left_out = UNCONVERTED<O> && is_nan(convert<accumulate_t<X>>(x));
    return left_out || (OTHER != NONE && !nonzero(b)) ? value : O::add(value, convert<Tval>(x));
  } else if constexpr (INDEXED<O>) return O::combine(value, O::map(convert<Tval>(x), c, b));
  else if constexpr (PRODUCT<O>) return O::combine(value, O::product(convert<Tval>(x), convert<Tval>(b), c));
  else if constexpr (OTHER == NONE) return O::combine(value, mapped<O>(x, c));
  else return nonzero(b) ? O::combine(value, mapped<O>(x, c)) : value;
}

// A thread's accumulator after some elements, which may prepare for others.
template <class O> __device__ __forceinline__ State settled(State value) {
  if constexpr (COUNTING<O>) return O::settled(value);
  else return value;
}

__device__ __forceinline__ Tout finished(State state, const Reduce& r) {
  Context<A> c = context(r);
  if (r.has_initial) state = Op::combine(Plain<Op>::type::map(r.initial, c), state);
  return Op::template finish<Tout>(state, c);
}
