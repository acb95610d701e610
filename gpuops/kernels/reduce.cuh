// What the reduction kernels share: their parameters, what an element contributes, how a result is written.
// Prologue: Op, Tin, Tb (elements of x and of the second operand), Tval, Tout, Index, Offset, KEPT, REDUCED (ranks),
// OTHER, RESIDENT (threads of a multiprocessor, if blocks share an output; the grid is made for so many).

using State = typename Op::State;
using A = typename Op::A;

// The second operand, whose elements walk beside those of x: y of a dot product, or the mask that says which take part.
//   NONE      there is none
//   BESIDE    it lies as x does: element for element
//   REPEATED  one element for a whole pack of x
enum Other { NONE, BESIDE, REPEATED };

struct Reduce {
  i64 outputs, packs, chunk;          // packs of an output (of each run of it, if PEELED), chunk of them to a split
  i64 runs, run_chunk;                // rows, if PEELED: runs along the innermost reduced dim, run_chunk to a split
  Axes<KEPT, 3, Offset> kept;         // operands x, b, y: which output
  Axes<REDUCED, 2, Offset> reduced;   // operands x, b: which of its elements
  Divisor run_packs;                  // columns: packs that a run of neighbouring outputs touches
  i64 head;                           // columns: elements of the first of those packs that lie before the run
  i64 high;                           // staged: the end of x
  i64 y_inner;                        // columns: from one output to the next in y
  double count, scale;                // for the op's Context
  i64 has_initial;
  Tval initial;
};

__device__ __forceinline__ Context<A> context(const Reduce& r) { return {r.count, r.scale}; }

template <class O = Op, class X> __device__ __forceinline__ State mapped(X x, const Context<A>& c) {
  if constexpr (OF_TRUTHS<O>) return O::map(x, c);
  else return O::map(convert<Tval>(x), c);
}

// What an element contributes; with a mask, nothing if it is left out.
template <class O = Op, class X> __device__ __forceinline__ State joined(State value, X x, Tb b, const Context<A>& c) {
  if constexpr (PRODUCT<O>) return O::combine(value, O::product(convert<Tval>(x), convert<Tval>(b), c));
  else if constexpr (OTHER == NONE) return O::combine(value, mapped<O>(x, c));
  else return nonzero(b) ? O::combine(value, mapped<O>(x, c)) : value;
}

__device__ __forceinline__ Tout finished(State state, const Reduce& r) {
  Context<A> c = context(r);
  if (r.has_initial) state = Op::combine(Op::map(r.initial, c), state);
  return Op::template finish<Tout>(state, c);
}
