// What the reduction kernels share: their parameters, reading one element, writing one result.
// Typed prologue: Op, Tin, Tval, Tout, Index, KEPT, REDUCED (ranks), MASKED, FIRST, LAST, SHIFTED.
// FIRST kernels read elements of x, later ones the State of the pass before; LAST kernels write results, earlier ones
// State, as (splits, outputs).
namespace gpuops {

using State = typename Op::State;
using A = typename Op::A;

template <bool FROM_X> struct Input { using type = Tin; };
template <> struct Input<false> { using type = State; };
template <bool FINAL> struct Output { using type = Tout; };
template <> struct Output<false> { using type = State; };
using In = typename Input<FIRST>::type;
using Out = typename Output<LAST>::type;

struct Reduce {
  Axes<KEPT, 3> kept;         // operands x, mask, y: which output
  Axes<REDUCED, 2> reduced;   // operands x, mask: which of its elements
  i64 outputs, length, chunk; // length elements each, chunk of them to a split (all in packs, where packs are read)
  double count, scale;        // for the op's Context
  i64 has_initial;
  Tval initial;
};

__device__ __forceinline__ Context<A> context(const Reduce& r, const void* shift, i64 output) {
  A top = A();
  if constexpr (SHIFTED) top = static_cast<const A*>(shift)[2 * output];  // the first of each (max, sum) pair
  return {r.count, r.scale, top};
}

template <class T> __device__ __forceinline__ State element(T value, const Context<A>& c) {
  if constexpr (FIRST) return Op::map(convert<Tval>(value), c);
  else return value;
}

template <class T> __device__ __forceinline__ void write(T* y, i64 at, State state, const Reduce& r, const Context<A>& c) {
  if constexpr (LAST) {
    if (r.has_initial) state = Op::combine(Op::map(r.initial, c), state);
    y[at] = Op::template finish<Tout>(state, c);
  } else {
    y[at] = state;
  }
}

}  // namespace gpuops
