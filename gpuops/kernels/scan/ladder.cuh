// What the ladder's kernels have in common: states that merge, and lines as a list of them.
//
// A state is that of the elements of a part of a line. That of the elements up to one of them makes its result; p.exclusive:
// that of the elements before it.
//
// Parameters: struct Ladder (gpuops/plan/scans/ladder.py).
// Prologue: Op, Tin, Tval, Tres (of results), Tout (as which they are delivered), Index, Offset, KEPT, LINE (ranks), BLOCK,
// PREFIX (whether results are exact sums), SCALED (or products of floats).

__device__ __forceinline__ Context<Op::A> context() { return {{1, 1, 1}, false, Op::A{}, 0, 0, 0, 0, false, true}; }

// Any op of reductions.
template <class Op> struct AnyStates {
  using State = typename Op::State;
  static __device__ State nothing() { return Op::identity(); }
  static __device__ State of(Tin x) { return Op::map(convert<Tval>(x), context()); }
  static __device__ State merge(const State& a, const State& b) { return Op::combine(a, b); }
  static __device__ Tout result(const State& state, bool&) { return convert<Tout>(Op::template finish<Tres>(state, context())); }
};

// Products of floats.
template <class A> struct ProductStates {
  using State = Product<A>;
  static __device__ State nothing() { return State::of(convert<A>(1.0)); }
  static __device__ State of(Tin x) { return State::of(convert<A>(convert<Tval>(x))); }
  static __device__ State merge(const State& a, const State& b) { return a * b; }
  static __device__ Tout result(const State& state, bool&) { return convert<Tout>(convert<Tres>(state.value())); }
};

// Exact sums, rounded once: pairs of doubles, and a bound of what these lack. Numbers whose sums might overflow are lacking.
template <class V> struct SumStates {
  using State = Expansion;
  static __device__ State nothing() { return {-0.0, 0, 0}; }
  static __device__ State of(Tin x) {
    double value = convert<double>(convert<V>(x));
    bool huge = (high_word(value) & 0x7fffffffu) >= HUGE_WORD && is_finite(value);
    return huge ? State{0, 0, Limits<double>::greatest()} : State{value, 0, 0};
  }
  static __device__ State merge(const State& a, const State& b) {
    State both = a.plus(b);
    if (!is_finite(both.s)) return {both.s, 0, 0};
    return both.e == 0 ? both : both.normal();
  }
  // open: it may be another, since too little is known of the sum.
  static __device__ Tout result(const State& sum, bool& open) {
    bool zero = sum.s == 0 && sum.e == 0 && sum.r == 0;  // or -0.0
    return convert<Tout>(zero ? narrowed<V>(sum.s) : rounded<V>(sum, open));
  }
};

using States = Either<PREFIX, SumStates<Tval>, Either<SCALED, ProductStates<Op::A>, AnyStates<Op>>::type>::type;
using State = States::State;

__device__ __forceinline__ State nothing() { return States::nothing(); }
__device__ __forceinline__ State merge(const State& a, const State& b) { return States::merge(a, b); }

// A line: none if `index` is that of no line.
struct Line {
  const Ladder& p;
  const Source& x;
  Tout* y;
  Offset first[2];
  i64 length;

  __device__ Line(const Ladder& p, const Source& x, Tout* y, i64 index) : p(p), x(x), y(y), length(index < p.lines ? p.length : 0) {
    p.kept.locate(static_cast<Index>(length ? index : 0), first);
  }
  template <int OPERAND> __device__ Offset place(i64 i) const {
    Offset at[2];
    p.line.locate(static_cast<Index>(i), at);
    return first[OPERAND] + at[OPERAND];
  }
  // The state of an element, or of nothing after the last one.
  __device__ State get(i64 i) const { return i < length ? States::of(x[place<0>(i)]) : nothing(); }
  // Writes a result, given the states of the elements before it and up to it. Returns whether it is open.
  __device__ bool put(i64 i, const State& before, const State& up_to) const {
    if (i >= length) return false;
    bool open = false, empty = p.exclusive && i == 0;
    Tout found = States::result(p.exclusive ? before : up_to, open);
    y[place<1>(i)] = empty ? p.nothing : found;
    return open && !empty;
  }
};

// Makes the results that are open: for one after the other, the whole block adds up the line's elements up to there once more,
// in digits that hold them all. open: a thread's results `first`, `first + 1`, …, as bits. (A block passes barriers.)
template <class O = Op> __device__ void settle(u32 open, const Line& line, i64 first) {
  if constexpr (PREFIX) {
    if (!__syncthreads_or(open)) return;
    __shared__ typename O::All all[1];
    __shared__ Offset begin;
    __shared__ i64 count;
    __shared__ u32 next;
    while (true) {
      __syncthreads();
      for (u32 i = threadIdx.x; i < sizeof all / 8; i += blockDim.x) reinterpret_cast<u64*>(all)[i] = 0;
      if (threadIdx.x == 0) next = ~0u;
      __syncthreads();
      if (open) atomicMin(&next, threadIdx.x);
      __syncthreads();
      u32 own = next;
      if (own == ~0u) return;
      i64 place = first + __ffs(open) - 1;
      if (threadIdx.x == own) begin = line.first[0], count = place + !line.p.exclusive, open &= open - 1;
      __syncthreads();
      typename O::Again sum[1];
      for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
        Tval value = convert<Tval>(line.x[begin + line.place<0>(i) - line.first[0]]);
        O::again(value, value, sum, all);
      }
      sum[0].end(all[0]);
      __syncthreads();
      Tval found, none;
      if (threadIdx.x != own) continue;
      O::exactly(all, 1, context(), found, none);
      line.y[line.place<1>(place)] = convert<Tout>(found);
    }
  }
}
