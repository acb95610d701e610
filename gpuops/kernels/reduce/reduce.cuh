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
//   LOOSE     a factor for each of x, which is loaded alone: they begin anywhere, and are some steps apart
enum Other { NONE, BESIDE, REPEATED, STEPPED, LOOSE };
constexpr bool ONE_EACH = OTHER == BESIDE || OTHER == LOOSE;
constexpr bool READS = STATES & 1, WRITES = STATES & 2;

// Exact sums: a chain gets less than 2^headroom(n) terms of n elements and, for each batch of them, up to two when its bias
// is raised.
template <class O> __device__ __forceinline__ i32 headroom(i64 elements) {
  if constexpr (O::EXACT) return (SINGLE ? 64 : 66) + (O::TERMS > 1) + (O::TERMS > 2) - __clzll(elements);
  else return 0;
}
// Units: `outputs` are packs of outputs in reduce_columns.cu; `packs` are single elements in all but reduce_rows.cu.
// The elements of an output that a thread adds up, at most, and all of them. steps: how many merges a term goes through.
// What merges of exact sums lose together is at most 2^merging units: in each step, 2^-53 of all that lies below a unit. Of a
// chain of less than 2^n terms, that is half a unit and, as units of chains are smaller by 2^(room - n + 4) at least (ALIKE:
// not smaller), 2^(n - 1) of these; there are less than 2^(room - n + 4) chains; and each may be moved to a greater unit.
template <class O = Op> __device__ __forceinline__ Context<A> context(const Reduce& r, i64 own, i64 all, i64 steps) {
  Context<A> c = {{r.options[0], r.options[1], r.options[2]}, r.root != 0, A{}, headroom<O>(own), headroom<O>(max(own, all)), 0, 0, false, false};
  if constexpr (O::EXACT) {
    c.merging_products = 64 - __clzll(steps) - 53 + c.room + 5;
    c.merging = c.merging_products - (O::ALIKE ? 0 : min(c.headroom, c.room - c.headroom + 4));
    if (r.has_initial) c.initial = nonzero(r.initial), c.minus_zero = O::has_minus_zero(r.initial);
    early(c.initial), early(c.minus_zero);
  }
  if constexpr (O::DIVIDES) early(c.option[O::INVERSE]);
  return c;
}

template <class O = Op, class X> __device__ __forceinline__ State mapped(X x, const Context<A>& c) {
  if constexpr (O::UNCONVERTED) return O::map(x, c);
  else return O::map(convert<Tval>(x), c);
}

// Whether an element of an exact sum takes part.
template <class O, class X, class B> __device__ __forceinline__ bool taken(X x, B b) {
  return !(O::UNCONVERTED && is_nan(convert<accumulate_t<X>>(x))) && (OTHER == NONE || O::PRODUCT || nonzero(b));
}

// Combines an element into `value`, unless a mask excludes it.
template <class O = Op, class X, class B> __device__ __forceinline__ State joined(State value, X x, B b, const Context<A>& c) {
  if constexpr (READS) {
    return O::combine(value, O::from(x));
  } else if constexpr (O::EXACT) {
    if (!taken<O>(x, b)) return value;
    if constexpr (O::PRODUCT) return O::combine(value, O::product(convert<Tval>(x), convert<Tval>(b), c));
    else return O::combine(value, Plain<O>::type::map(convert<Tval>(x), c));
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
template <class O = Op, class X, class B> __device__ __forceinline__ typename O::State joined_next(typename O::State value, X x, B b, i32 i, const Context<A>& c) {
  if constexpr (O::INDEXED) {
    auto element = convert<A>(convert<Tval>(x));
    bool taken = O::ahead(element, value.value) || value.index() == O::NOWHERE;
    return taken && !(O::UNCONVERTED && is_nan(element)) ? O::state(element, i) : value;
  } else return joined<O>(value, x, b, c);
}

// The result of a state. open: an exact sum may be rounded to another.
template <class O = Op> __device__ __forceinline__ Tout finished(State state, const Reduce& r, const Context<A>& c, bool& open) {
  if constexpr (WRITES) {
    if constexpr (O::EXACT) return O::template fields<Tout>(state, c);
    else return O::template fields<Tout>(state);
  } else {
    if constexpr (!O::EXACT) {
      if (r.has_initial) state = O::combine(Plain<O>::type::map(r.initial, c), state);
    }
    if constexpr (O::EXACT) {
      Tout found = O::template finish<Tout>(state, c, c.initial, r.initial, open);
      open |= c.minus_zero && O::has_zero(found);
      return found;
    } else {
      return O::template finish<Tout>(state, c);
    }
  }
}

template <class O = Op> __device__ __forceinline__ Tz second_of(State state, const Context<A>& c, bool& open) {
  if constexpr (O::EXACT) return O::template second<Tz>(state, c, open);
  else return O::template second<Tz>(state, c);
}

// Stores a result; those of several sums apart.
template <class T> __device__ __forceinline__ void put(T* y, Offset at, T result, const Reduce& r) {
  if constexpr (SEVERAL<T> > 0) {
    auto parts = reinterpret_cast<real_t<T>*>(y) + at;
#pragma unroll
    for (int k = 0; k < SEVERAL<T>; ++k) parts[k * r.apart] = result.of[k];
  } else {
    y[at] = result;
  }
}

// N neighbouring results, and the second ones if TWO. y and z have the same layout.
template <int N> struct Results {
  Items<Tout, N> first;
  Items<Tz, N> second;
  u32 open = 0;  // bits
  __device__ __forceinline__ void set(int v, const State& state, const Reduce& r, const Context<A>& c) {
    bool unsure = false;
    first.set(v, finished<>(state, r, c, unsure));
    if constexpr (TWO) second.set(v, second_of<>(state, c, unsure));
    open |= static_cast<u32>(unsure) << v;
  }
  __device__ __forceinline__ void store(Tout* y, Tz* z, Offset at, const Reduce& r) const {
    if constexpr (SEVERAL<Tout> > 0) put(y, at, first.get(0), r);
    else store_past_l1(y + at, first);
    if constexpr (TWO) store_past_l1(z + at, second);
  }
  __device__ __forceinline__ void store_one(Tout* y, Tz* z, Offset at, int v) const {
    y[at] = first.get(v);
    if constexpr (TWO) z[at] = second.get(v);
  }
};

// Returns whether the result is open.
__device__ __forceinline__ u32 write(Tout* y, Tz* z, Offset at, const State& state, const Reduce& r, const Context<A>& c) {
  Results<1> results;
  results.set(0, state, r, c);
  put(y, at, results.first.get(0), r);
  if constexpr (TWO) z[at] = results.second.get(0);
  return results.open;
}

__device__ __forceinline__ void copy(Offset (&to)[3], const Offset (&from)[3]) {
#pragma unroll
  for (int k = 0; k < 3; ++k) to[k] = from[k];
}

// Makes the results that are open: for one after the other, the whole block adds up its `count` elements once more.
// open: those of a thread, as bits; kept(bit, offsets): where they lie; place(i, offsets): where element i lies.
template <class O = Op, class Kept, class Place>
__device__ __forceinline__ void settle(u32 open, const Source& x, const Tb* b, Tout* y, Tz* z, const Reduce& r, const Context<A>& c, i64 count, Kept kept, Place place) {
  if constexpr (O::EXACT && !WRITES) {
    if (!__syncthreads_or(open)) return;
    __shared__ typename O::All all[O::PARTS];
    __shared__ Offset from[3];
    __shared__ u64 number;
    __shared__ u32 next;
#pragma unroll 1
    while (true) {
      __syncthreads();
      for (u32 i = threadIdx.x; i < sizeof all / 8; i += blockDim.x) reinterpret_cast<u64*>(all)[i] = 0;
      if (threadIdx.x == 0) next = ~0u, number = 0;
      __syncthreads();
      if (open) atomicMin(&next, threadIdx.x);
      __syncthreads();
      u32 own = next;
      if (own == ~0u) return;
      if (threadIdx.x == own) {
        kept(__ffs(open) - 1, from);
        open &= open - 1;
      }
      __syncthreads();
      typename O::Again sum[O::PARTS];
      u64 taking = 0;
#pragma unroll 1
      for (i64 i = threadIdx.x; i < count + r.has_initial; i += blockDim.x) {  // the initial value comes last
        Tval first = r.initial, second = first;
        if (i < count) {
          Offset at[2];
          place(i, at);
          Tin value = x[from[0] + at[0]];
          auto other = OTHER == NONE ? decltype(element(b)){} : element(b + from[1] + at[1]);
          if (!taken<O>(value, other)) continue;
          first = second = convert<Tval>(value);
          if constexpr (O::PRODUCT && OTHER != NONE) second = convert<Tval>(other);
        }
        O::again(first, second, sum, all);
        ++taking;
      }
#pragma unroll
      for (int p = 0; p < O::PARTS; ++p) sum[p].end(all[p]);
      if constexpr (O::COUNTING) atomicAdd(&number, taking);
      __syncthreads();
      if (threadIdx.x == own) {
        double n = O::COUNTING ? static_cast<double>(number) : r.options[0];
        Tz more;
        Tout found;
        O::exactly(all, n, c, found, more);
        put(y, from[2], found, r);
        if constexpr (TWO) z[from[2]] = more;
      }
    }
  }
}
