// What the reduction kernels share: their parameters, reading one element, writing one result.
// Typed prologue: Op, Tin, Tval, Tout, Index, KEPT, REDUCED (ranks), MASKED, FIRST, LAST.
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

// What one load brings. Bytes stay four to a register until each is used: taken apart at once they crowd the others out.
template <int VEC, bool BYTES = sizeof(In) == 1 && VEC >= 4> struct Elements {
  Pack<In, VEC> pack;
  __device__ __forceinline__ void read(const In* from) { pack = load<VEC>(from); }
  __device__ __forceinline__ In operator[](int v) const { return pack.item[v]; }
};
template <int VEC> struct Elements<VEC, true> {
  Pack<u32, VEC / 4> pack;
  __device__ __forceinline__ void read(const In* from) { pack = load<VEC / 4>(reinterpret_cast<const u32*>(from)); }
  __device__ __forceinline__ In operator[](int v) const { return bit_cast<In>(static_cast<u8>(pack.item[v / 4] >> v % 4 * 8)); }
};

// UNROLL packs of VEC elements, STEP packs apart, all loaded before the first is used; CHECK: some lie beyond the end.
template <int STEP, int VEC, int UNROLL, bool CHECK>
__device__ __forceinline__ void take(State (&value)[VEC], const In* x, const bool* mask, const Reduce& r, const Context<A>& c, i64 i, i64 end) {
  Elements<VEC> pack[UNROLL];
  bool chosen[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    chosen[u] = !CHECK || i + u * STEP < end;
    if (!chosen[u]) continue;
    i64 at[2];
    r.reduced.locate(static_cast<Index>(i + u * STEP), at);
    pack[u].read(x + at[0]);
    if constexpr (MASKED) chosen[u] = mask[at[1]];  // masked elements are read one by one: VEC is 1
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    if (!chosen[u]) continue;
#pragma unroll
    for (int v = 0; v < VEC; ++v) value[v] = Op::combine(value[v], element(pack[u][v], c));
  }
}

// value[v] becomes the reduction of the v-th elements of the packs begin, begin + STEP, … below end.
template <int STEP, int VEC, int UNROLL>
__device__ __forceinline__ void accumulate(State (&value)[VEC], const In* x, const bool* mask, const Reduce& r, const Context<A>& c, i64 begin, i64 end) {
#pragma unroll
  for (int v = 0; v < VEC; ++v) value[v] = Op::identity();
  i64 i = begin;
  for (; i + (UNROLL - 1) * STEP < end; i += UNROLL * STEP) take<STEP, VEC, UNROLL, false>(value, x, mask, r, c, i, end);
  if (i < end) take<STEP, VEC, UNROLL, true>(value, x, mask, r, c, i, end);
}

}  // namespace gpuops
