// What the reduction kernels have in common: accumulating an element, writing a result.
// Parameters: struct Reduce (gpuops/plan/reductions/launch.py).
// Prologue: Op, Tin, Tb (elements of x and of the second operand), Tval, Tout, Tz (of results, and of the second ones),
// TWO (whether there are second ones), Index, Offset, KEPT, REDUCED (ranks), OTHER, ORDERED (whether elements come in the
// order of their indices), RESIDENT (if blocks share an output: the threads per multiprocessor that the grid is sized
// for; else 0), STATES (whether states are read instead of elements, and written instead of results: as a struct `Fields`
// in the record's layout).

using State = typename Op::State;
using A = typename Op::A;

// The second operand: a factor of each element (y of a dot product, weights), its index, or a mask.
//   NONE      there is none
//   BESIDE    laid out as x, one element for each of x
//   REPEATED  one element for a whole pack of x
//   STEPPED   an index; those of neighbours in memory are some steps apart
enum Other { NONE, BESIDE, REPEATED, STEPPED };
constexpr bool READS = STATES & 1, WRITES = STATES & 2;

// Units: `outputs` are packs of outputs in reduce_columns.cu; `packs` are single elements in all but reduce_rows.cu.
__device__ __forceinline__ Context<A> context(const Reduce& r) { return {{r.options[0], r.options[1]}, r.root != 0}; }

template <class O = Op, class X> __device__ __forceinline__ State mapped(X x, const Context<A>& c) {
  if constexpr (O::UNCONVERTED) return O::map(x, c);
  else return O::map(convert<Tval>(x), c);
}

// Combines an element into `value`, unless a mask excludes it.
template <class O = Op, class X, class B> __device__ __forceinline__ State joined(State value, X x, B b, const Context<A>& c) {
  if constexpr (READS) {
    return O::combine(value, O::from(x));
  } else if constexpr (O::COUNTING || O::INDEXED) {
    bool left_out = O::UNCONVERTED && is_nan(convert<accumulate_t<X>>(x));
    if constexpr (O::INDEXED) return left_out ? value : O::combine(value, Plain<O>::type::map(convert<Tval>(x), c, b));
    else return left_out || (OTHER != NONE && !nonzero(b)) ? value : O::add(value, convert<Tval>(x));
  } else if constexpr (O::PRODUCT && O::UNCONVERTED) return O::combine(value, O::product(x, b, c));
  else if constexpr (O::PRODUCT) return O::combine(value, O::product(convert<Tval>(x), convert<Tval>(b), c));
  else if constexpr (OTHER == NONE) return O::combine(value, mapped<O>(x, c));
  else return nonzero(b) ? O::combine(value, mapped<O>(x, c)) : value;
}

// The same for element i of a row, after those before it.
template <class O = Op, class X> __device__ __forceinline__ typename O::State joined_next(typename O::State value, X x, i32 i, const Context<A>& c) {
  if constexpr (O::INDEXED) {
    auto element = convert<A>(convert<Tval>(x));
    bool taken = O::ahead(element, value.value) || value.index() == O::NOWHERE;
    return taken && !(O::UNCONVERTED && is_nan(element)) ? O::state(element, i) : value;
  } else return joined<O>(value, x, Tb{}, c);
}

template <class O = Op> __device__ __forceinline__ Tout finished(State state, const Reduce& r) {
  if constexpr (WRITES) {
    return O::template fields<Tout>(state);
  } else {
    Context<A> c = context(r);
    if (r.has_initial) state = O::combine(Plain<O>::type::map(r.initial, c), state);
    return O::template finish<Tout>(state, c);
  }
}

template <class O = Op> __device__ __forceinline__ Tz second_of(State state, const Reduce& r) {
  return O::template second<Tz>(state, context(r));
}

// N neighbouring results, and the second ones if TWO. y and z have the same layout.
template <int N> struct Results {
  Items<Tout, N> first;
  Items<Tz, N> second;
  __device__ __forceinline__ void set(int v, State state, const Reduce& r) {
    first.set(v, finished<>(state, r));
    if constexpr (TWO) second.set(v, second_of<>(state, r));
  }
  __device__ __forceinline__ void store(Tout* y, Tz* z, Offset at) const {
    store_past_l1(y + at, first);
    if constexpr (TWO) store_past_l1(z + at, second);
  }
  __device__ __forceinline__ void store_one(Tout* y, Tz* z, Offset at, int v) const {
    y[at] = first.get(v);
    if constexpr (TWO) z[at] = second.get(v);
  }
};

__device__ __forceinline__ void write(Tout* y, Tz* z, Offset at, State state, const Reduce& r) {
  Results<1> results;
  results.set(0, state, r);
  results.store_one(y, z, at, 0);
}
