// Scans of lines that lie side by side, of ops whose states merge in any order.
//
// A warp has a chunk: EACH elements of 32 neighbouring lines, one line for each lane, in registers. A team of warps takes the
// chunks of these lines in turn. Each adds up its own, waits for what comes before it from the warp that has the chunk before,
// hands on what comes after it, and only then makes its results: so the chain of warps has little to do between two chunks, and
// the rest is done while others have their turn.
//
// Parameters: struct Columns (gpuops/plan/scans/columns.py).
// Prologue: Op, Tin, Tval, Tres (of results), Tout (as which they are delivered), Index, Offset, KEPT, LINE (ranks), WARPS,
// RESIDENT, EXCLUSIVE, PREFIX (whether results are exact sums).

// A lane's chunk: where its elements and results are in memory, and how many there are.
struct Chunk {
  const Tin* x;
  Tout* y;
  Offset from, to;  // the next element's distance
  int have;
  bool first;  // of its line
  i64 number;  // there

  __device__ __forceinline__ void load(Tin (&element)[EACH]) const {
    const Tin* at = x;
    if (have == EACH) {
#pragma unroll
      for (int i = 0; i < EACH; ++i, at += from) element[i] = *at;
    } else {
#pragma unroll
      for (int i = 0; i < EACH; ++i) element[i] = i < have ? x[i * from] : convert<Tin>(-0.0f);
    }
  }
};
struct Elements {
  const Chunk& chunk;
  const Tin (&x)[EACH];
  // Puts f(x, i) in its place for each element.
  template <int, class F> __device__ __forceinline__ void scan(F f) const {
    Tout* at = chunk.y;
#pragma unroll
    for (int i = 0; i < EACH; ++i, at += chunk.to) {
      Tout result = f(x[i], i);
      if (i < chunk.have) *at = result;
    }
  }
};

struct ColumnsAny : AnyOp {
  struct Found {};
  static __device__ __forceinline__ Carry sum(Found&, const Tin (&x)[EACH], int have) { return total(x, have); }
  static __device__ __forceinline__ void finish(Local state, const Found&, const Elements& elements, const Columns& p) {
    elements.scan<1>([&](Tin x, int i) {
      Tout last = EXCLUSIVE && i == 0 && elements.chunk.first ? p.nothing : finished(state);
      state = add(state, x);
      return EXCLUSIVE ? last : finished(state);
    });
  }
};
template <class V> struct ColumnsSums : ExactPrefix<V, 4> {
  using Base = ExactPrefix<V, 4>;
  using typename Base::Carry, typename Base::Local, typename Base::Way;
  using Base::DOUBLES, Base::CLOSE, Base::CUT;
  using Found = typename Base::Extremes;
  static __device__ __forceinline__ Carry sum(Found& found, const Tin (&x)[EACH], int) {
    found = Found::of(x);
    Base known(found);
    return known.carried(__all_sync(0xffffffffu, known.plain) ? known.template total<true>(x) : known.template total<false>(x));
  }
  static __device__ __forceinline__ void finish(const Carry& carry, const Found& found, const Elements& elements, const Columns& p) {
    Base known(found);
    auto before = Base::ready(carry, found);
    const auto& line = before.line;
    bool sure, exact = before.way == DOUBLES, first = elements.chunk.first;
    if constexpr (Base::DOUBLE) {
      sure = known.template pairs<1>(line, Base::nothing(), elements, first, p.nothing);
    } else if (__all_sync(0xffffffffu, exact)) {
      sure = known.template chain<EXCLUSIVE, DOUBLES, 1>(line, {line.s, 0}, elements, first, 0, p.nothing);
    } else if (__all_sync(0xffffffffu, known.plain)) {
      sure = known.template chain<EXCLUSIVE, CLOSE, 1>(line, Base::nothing(), elements, first, before.least, p.nothing);
      sure |= exact && SAME<V, float>;  // also in the middle between two results
    } else {
      sure = known.template chain<EXCLUSIVE, CUT, 1>(line, Base::nothing(), elements, first, before.least, p.nothing);
    }
    u32 open = elements.chunk.have && !sure ? closely(found, line, elements.chunk, p.nothing) : 0;
    if (__any_sync(0xffffffffu, open != 0)) settle(open, elements.chunk);
  }
  // Results of a chunk, each with all that is known of it. Returns which of them are open still.
  static __device__ __noinline__ u32 closely(Found found, Expansion line, Chunk chunk, Tout empty) {
    Base known(found);
    Local part = Base::nothing();
    u32 opens = 0;
#pragma unroll 1
    for (int i = 0; i < chunk.have; ++i) {
      Local next = known.template add<false>(part, chunk.x[i * chunk.from]);
      bool open = false, none_yet = EXCLUSIVE && chunk.first && i == 0;
      V result = Base::closely(line, EXCLUSIVE ? part : next, known.off, open);
      chunk.y[i * chunk.to] = none_yet ? empty : convert<Tout>(result);
      opens |= static_cast<u32>(open && !none_yet) << i;
      part = next;
    }
    return opens;
  }
  // Open ones: for one after the other, the warp adds up the elements of its line up to it in digits.
  static __device__ __noinline__ void settle(u32 open, Chunk chunk) {
    __shared__ Digits<V, false> sums[WARPS];
    auto& sum = sums[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    while (u32 lanes = __ballot_sync(0xffffffffu, open != 0)) {
      int owner = __ffs(lanes) - 1, i = __shfl_sync(0xffffffffu, __ffs(open) - 1, owner);
      const Tin* last = reinterpret_cast<const Tin*>(__shfl_sync(0xffffffffu, reinterpret_cast<u64>(chunk.x + i * chunk.from), owner));
      i64 count = __shfl_sync(0xffffffffu, chunk.number, owner) * EACH + i + (EXCLUSIVE ? 0 : 1);
      clear(sum);
      for (i64 back = lane; back < count; back += 32) note(sum, Base::number(last[-(back + (EXCLUSIVE ? 1 : 0)) * chunk.from]));
      V result = settled(sum);
      if (lane == owner) chunk.y[i * chunk.to] = convert<Tout>(result), open &= open - 1;
    }
  }
};
using Engine = Either<PREFIX, ColumnsSums<Tval>, ColumnsAny>::type;

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
scan_columns(const Tin* x, Tout* y, const __grid_constant__ Columns p) {
  wait_for_previous();
  __shared__ Engine::Carry link[WARPS][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, size = p.size, team = warp / size, member = warp - team * size;
  if (team >= p.teams) return;
  int next = team * size + (member + 1 < size ? member + 1 : 0), chunks = static_cast<int>((p.length + (EACH - 1)) / EACH);
  i64 strip = blockIdx.x * p.teams + team, more = static_cast<i64>(gridDim.x) * p.teams;
  bool begun = member > 0;  // whether another warp has had its turn
  for (int c = member; strip < p.count; c += size, begun = true) {
    if (c >= chunks) c -= chunks, strip += more;
    if (strip >= p.count) break;
    Index outer = divide(static_cast<Index>(strip), p.strips);
    i64 column = (strip - static_cast<i64>(outer * static_cast<Index>(p.strips.value))) * 32 + lane, first = static_cast<i64>(c) * EACH;
    Offset at[2], from = p.line.stride[0][0], to = p.line.stride[1][0];
    p.kept.locate(static_cast<Index>(outer * p.inner + min(column, p.inner - 1)), at);
    Chunk chunk{x + at[0] + static_cast<Offset>(first) * from, y + at[1] + static_cast<Offset>(first) * to, from, to, 0, c == 0, c};
    if (column < p.inner) chunk.have = static_cast<int>(min(static_cast<i64>(EACH), p.length - first));
    Tin element[EACH];
    chunk.load(element);
    Engine::Found found;
    auto sum = Engine::sum(found, element, chunk.have);
    auto before = Engine::none();
    if (begun && size > 1) barrier_wait(1 + warp, 64);
    if (c > 0) before = link[warp][lane];
    if (c + 1 < chunks) link[next][lane] = Engine::merge(before, sum);
    if (size > 1 && (c + 1 < chunks || strip + more < p.count)) barrier_arrive(1 + next, 64);
    Engine::finish(before, found, Elements{chunk, element}, p);
  }
}
