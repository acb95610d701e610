// Scans of many lines.
//
// A warp has a chunk: EACH elements of 32 lines, one line for each lane, in registers. A team of warps takes the chunks of these
// lines in turn. Each adds up its own, waits for what comes before it from the warp that has the chunk before, hands on what comes
// after it, and only then makes its results: so the chain of warps has little to do between two chunks, and the rest is done while
// others have their turn.
//
// Elements of the next chunk are on their way to the warp's part of shared memory meanwhile. Results of lines that lie side by side
// in memory go there straight from registers, others (Y_ALONG) from shared memory.
//
// Parameters: struct Chains (gpuops/plan/scans/chains.py).
// Prologue: Op, Tin, Tval, Tres (of results), Tout (as which they are delivered), Index, Offset, KEPT, LINE (ranks), WARPS,
// RESIDENT, EXCLUSIVE, PREFIX (whether results are exact sums), SCALED (or products of floats), ORDERED (whether the order of merges
// matters), X_ALONG, Y_ALONG (whether lines do not lie side by side), X_BACK, Y_BACK (whether packs of elements along a line lie in the opposite order).

// Chunks of a warp in shared memory: lane after lane (ALONG), or element after element of the lines side by side.
template <class T, bool ALONG, bool BACK> struct Staged : Packs<T, EACH, BACK> {
  using Base = Packs<T, EACH, BACK>;
  using Base::VEC, Base::PACKS, Base::first_pack;
  static constexpr int BYTES = 32 * EACH * sizeof(T);
  static constexpr int LINES = 32 / EACH, AT_ONCE = ALONG ? PACKS : 32 / VEC;  // lines of the elements, and packs of a line (or of an element of all lines), that the lanes move at a time
  static __device__ __forceinline__ int place(int lane, int i) { return ALONG ? Base::element(lane * EACH + i) : i * 32 + lane; }
  // Whether full chunks, whose lines are equally far apart, go by packs of 16 bytes.
  static __device__ __forceinline__ bool packed(const T* first, Offset step, Offset apart) {
    int lane = threadIdx.x % 32;
    if constexpr (ALONG) return VEC > 1 && step == (BACK ? -1 : 1) && apart % VEC == 0 && reinterpret_cast<u64>(first - (BACK ? VEC - 1 : 0)) % 16 == 0;
    else return VEC > 1 && apart == 1 && step % VEC == 0 && reinterpret_cast<u64>(first - lane) % 16 == 0;
  }
  static __device__ __forceinline__ bool one_by_one(const T* first, Offset step, Offset apart, bool whole) { return whole && !packed(first, step, apart); }
  // The place of the n-th element that a lane moves one by one.
  static __device__ __forceinline__ int place_of(int lane, int n) { return ALONG ? place(n * LINES + lane / EACH, lane % EACH) : place(lane, n); }
  // Calls packs(n, place, address) for each pack of the chunks, or elements(n, place, address) for each element, or of chunks that are
  // not whole others(place, address, there). A lane has a chunk of `have` elements from `first` on, `step` from one to the next. whole:
  // all chunks are full, and their lines equally far apart.
  template <class F, class G, class H> static __device__ __forceinline__ void each(T* first, Offset step, Offset apart, int have, bool whole, F packs, G elements, H others) {
    int lane = threadIdx.x % 32;
    if (whole && packed(first, step, apart)) {
      int row = lane / AT_ONCE, pack = lane % AT_ONCE;
      T* at = first + (ALONG ? (row - lane) * apart + (BACK ? -pack * VEC - (VEC - 1) : pack * VEC) : row * step + (pack * VEC - lane));
#pragma unroll
      for (int n = 0; n < PACKS; ++n, at += 32 / AT_ONCE * (ALONG ? apart : step)) {
        packs(n, ALONG ? (first_pack(n * (32 / AT_ONCE) + row) ^ pack) * VEC : (n * (32 / AT_ONCE) + row) * 32 + pack * VEC, at);
      }
    } else if (whole) {
      T* at = first + (ALONG ? (lane / EACH - lane) * apart + lane % EACH * step : 0);
#pragma unroll
      for (int n = 0; n < EACH; ++n, at += ALONG ? LINES * apart : step) elements(n, place_of(lane, n), at);
    } else {
#pragma unroll 1
      for (int n = 0; n < EACH; ++n) {
        if constexpr (ALONG) {
          int row = n * LINES + lane / EACH, i = lane % EACH;
          T* at = shuffle(first, row);
          int count = shuffle(have, row);
          others(place(row, i), at + i * step, i < count);
        } else {
          others(place(lane, n), first + n * step, n < have);
        }
      }
    }
  }
};
using In = Staged<Tin, X_ALONG, X_BACK>;
using Out = Staged<Tout, true, Y_BACK>;
constexpr int STAGED = In::BYTES + (Y_ALONG ? Out::BYTES : 0);  // bytes of a warp

// Elements that a warp loads: on their way to shared memory or, if they do not go by packs and there are registers for them, there.
constexpr bool HELD = EACH * sizeof(Tin) / 4 + 96 <= 65536 / (32 * WARPS * RESIDENT);
struct Loading {
  Tin* staged;
  Tin element[HELD ? EACH : 1];
};
// A lane's chunk: where its elements and results are in memory, and how many there are.
struct Chunk {
  const Tin* x;
  Tout* y;
  int have;
  bool whole;
  int number;  // in its line

  __device__ __forceinline__ void fetch(Loading& loading, const Chains& p) const {
    using Loaded = In::Loaded;
    In::each(const_cast<Tin*>(x), from(p), apart<0>(p), have, whole, [&](int, int place, const Tin* at) {
      copy_async(reinterpret_cast<Loaded*>(loading.staged + place), reinterpret_cast<const Loaded*>(at));
    }, [&](int n, int place, const Tin* at) {
      if constexpr (HELD) loading.element[n] = *at;
      else copy_async(loading.staged + place, at);
    }, [&](int place, const Tin* at, bool there) {
      loading.staged[place] = there ? *at : convert<Tin>(-0.0f);
    });
    copies_sent();
  }
  __device__ __forceinline__ void take(Tin (&element)[EACH], const Loading& loading, const Chains& p) const {
    const Tin* staged = loading.staged;
    if (HELD && In::one_by_one(const_cast<Tin*>(x), from(p), apart<0>(p), whole)) {
      int lane = threadIdx.x % 32;
#pragma unroll
      for (int n = 0; n < EACH; ++n) loading.staged[In::place_of(lane, n)] = loading.element[n];
    }
    copies_there<0>();
    __syncwarp();
    if constexpr (X_ALONG) {
      In in;
#pragma unroll
      for (int n = 0; n < In::PACKS; ++n) {
        auto items = in.items(staged, n);
#pragma unroll
        for (int v = 0; v < In::VEC; ++v) element[n * In::VEC + v] = In::get(items, v);
      }
    } else {
#pragma unroll
      for (int i = 0; i < EACH; ++i) element[i] = staged[In::place(threadIdx.x % 32, i)];
    }
    __syncwarp();
  }
  // Results on their way from there.
  __device__ __forceinline__ void deliver(const Tout* staged, const Chains& p) const {
    if constexpr (Y_ALONG) {
      __syncwarp();
      Out::each(y, to(p), apart<1>(p), have, whole, [&](int, int place, Tout* at) { store_past_l1(at, load_items<Out::VEC>(staged + place)); },
                [&](int, int place, Tout* at) { *at = staged[place]; }, [&](int place, Tout* at, bool there) {
        if (there) *at = staged[place];
      });
      __syncwarp();
    }
  }
  static __device__ __forceinline__ Offset from(const Chains& p) { return p.line.stride[0][0]; }
  static __device__ __forceinline__ Offset to(const Chains& p) { return p.line.stride[1][0]; }
  template <int OPERAND> static __device__ __forceinline__ Offset apart(const Chains& p) { return p.kept.stride[OPERAND][KEPT - 1]; }
};
// Where a lane's results go.
struct Results {
  Chunk chunk;
  Tout* staged;
  Offset to;
  __device__ __forceinline__ void put(int i, Tout result) const {
    if constexpr (Y_ALONG) staged[Out::place(threadIdx.x % 32, i)] = result;
    else chunk.y[i * to] = result;
  }
};
struct Elements {
  const Results& to;
  const Tin (&x)[EACH];
  // Puts f(x, i) in its place for each element.
  template <int, class F> __device__ __forceinline__ void scan(F f) const {
    if constexpr (Y_ALONG) {
      Out out;
      Tout packed[Out::VEC];
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
        packed[i % Out::VEC] = f(x[i], i);
        if (i % Out::VEC == Out::VEC - 1) out.put(to.staged, i / Out::VEC, packed);
      }
    } else {
      Tout* at = to.chunk.y;
#pragma unroll
      for (int i = 0; i < EACH; ++i, at += to.to) {
        Tout result = f(x[i], i);
        if (i < to.chunk.have) *at = result;
      }
    }
  }
};

struct ChainsAny : Inexact {
  struct Found {};
  static __device__ __forceinline__ Carry sum(Found&, const Tin (&x)[EACH], int have) { return total(x, have); }
  static __device__ __forceinline__ void finish(const Carry& before, const Found&, const Elements& elements, const Chains& p) {
    Inexact::finish(before, elements, elements.to.chunk.number == 0, p.nothing);
  }
};
template <class V> struct ChainsSums : ExactPrefix<V, 4> {
  using Base = ExactPrefix<V, 4>;
  using typename Base::Carry, typename Base::Local, typename Base::Way;
  using Base::DOUBLES, Base::CLOSE, Base::CUT;
  using Found = typename Base::Extremes;
  static __device__ __forceinline__ Carry sum(Found& found, const Tin (&x)[EACH], int) {
    found = Found::of(x);
    Base known(found);
    return known.carried(__all_sync(0xffffffffu, known.plain) ? known.template total<true>(x) : known.template total<false>(x));
  }
  static __device__ __forceinline__ void finish(const Carry& carry, const Found& found, const Elements& elements, const Chains& p) {
    Base known(found);
    auto before = Base::ready(carry, found);
    const auto& line = before.line;
    bool sure, exact = before.way == DOUBLES, first = elements.to.chunk.number == 0;
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
    u32 open = elements.to.chunk.have && !sure ? closely(found, line, elements.to, p) : 0;
    if (__any_sync(0xffffffffu, open != 0)) settle(open, elements.to, p);
  }
  // Results of a chunk, each with all that is known of it. Returns which of them are open still.
  static __device__ __noinline__ u32 closely(Found found, Expansion line, Results results, const Chains& p) {
    const Chunk& chunk = results.chunk;
    Base known(found);
    Local part = Base::nothing();
    u32 opens = 0;
#pragma unroll 1
    for (int i = 0; i < chunk.have; ++i) {
      Local next = known.template add<false>(part, chunk.x[i * chunk.from(p)]);
      bool open = false, none_yet = EXCLUSIVE && chunk.number == 0 && i == 0;
      V result = Base::closely(line, EXCLUSIVE ? part : next, known.off, open);
      results.put(i, none_yet ? p.nothing : convert<Tout>(result));
      opens |= static_cast<u32>(open && !none_yet) << i;
      part = next;
    }
    return opens;
  }
  // Open ones: for one after the other, the warp adds up the elements of its line up to it in digits.
  static __device__ __noinline__ void settle(u32 open, Results results, const Chains& p) {
    const Chunk& chunk = results.chunk;
    __shared__ Digits<V, false> sums[WARPS];
    auto& sum = sums[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    while (u32 lanes = __ballot_sync(0xffffffffu, open != 0)) {
      int owner = __ffs(lanes) - 1, i = __shfl_sync(0xffffffffu, __ffs(open) - 1, owner);
      const Tin* last = reinterpret_cast<const Tin*>(__shfl_sync(0xffffffffu, reinterpret_cast<u64>(chunk.x + i * chunk.from(p)), owner));
      i64 count = static_cast<i64>(__shfl_sync(0xffffffffu, chunk.number, owner)) * EACH + i + (EXCLUSIVE ? 0 : 1);
      clear(sum);
      for (i64 back = lane; back < count; back += 32) note(sum, Base::number(last[-(back + (EXCLUSIVE ? 1 : 0)) * chunk.from(p)]));
      V result = settled(sum);
      if (lane == owner) results.put(i, convert<Tout>(result)), open &= open - 1;
    }
  }
};
using Engine = Either<PREFIX, ChainsSums<Tval>, ChainsAny>::type;

// What comes before a chunk: before the group of siblings in the line's tree that it is one of, and of its elder siblings. (Merges
// without an order need no groups.)
struct Ordered {
  using Carry = Engine::Carry;
  Carry above, elders;
  static __device__ __forceinline__ Ordered none() { return {Engine::none(), Engine::none()}; }
  // What comes before chunk c + 1. fold: of each level above chunks, what the elder siblings have.
  __device__ __forceinline__ Ordered next(int c, const Carry& sum, Carry* fold, int levels) const {
    Carry all = c % RADIX == 0 ? sum : Engine::merge(elders, sum);
    if (c % RADIX != RADIX - 1) return {above, all};
    bool full = true;
    Carry before = Engine::none();
    for (int level = 1, place = c / RADIX; level < levels; ++level, place /= RADIX) {
      Carry& elder = fold[level * 32];
      if (full) {
        if (place % RADIX != 0) all = Engine::merge(elder, all);
        full = place % RADIX == RADIX - 1;
        elder = full ? Engine::none() : all;
      }
    }
    for (int level = levels - 1; level > 0; --level) before = Engine::merge(before, fold[level * 32]);
    return {before, Engine::none()};
  }
  __device__ __forceinline__ Carry before() const { return Engine::merge(above, elders); }
};
struct Unordered {
  using Carry = Engine::Carry;
  Carry all;
  static __device__ __forceinline__ Unordered none() { return {Engine::none()}; }
  __device__ __forceinline__ Unordered next(int, const Carry& sum, Carry*, int) const { return {Engine::merge(all, sum)}; }
  __device__ __forceinline__ Carry before() const { return all; }
};
using Link = Either<ORDERED, Ordered, Unordered>::type;

// A lane's line.
struct Line {
  const Tin* x;
  Tout* y;
  bool there, even;  // even: all lanes have one, equally far apart
  __device__ __forceinline__ Line(const Tin* x, Tout* y, i64 strip, const Chains& p) {
    int lane = threadIdx.x % 32;
    i64 number = strip * 32 + lane;
    Offset at[2];
    there = number < p.lines;
    p.kept.locate(static_cast<Index>(min(number, p.lines - 1)), at);
    this->x = x + at[0], this->y = y + at[1];
    Offset first[] = {shuffle(at[0], 0), shuffle(at[1], 0)};
    even = __all_sync(0xffffffffu, there && at[0] - first[0] == lane * Chunk::apart<0>(p) && at[1] - first[1] == lane * Chunk::apart<1>(p));
  }
  __device__ __forceinline__ Chunk chunk(int c, const Chains& p) const {
    i64 first = static_cast<i64>(c) * EACH;
    int have = static_cast<int>(min(static_cast<i64>(EACH), p.length - first));
    return {x + static_cast<Offset>(first) * Chunk::from(p), y + static_cast<Offset>(first) * Chunk::to(p), there ? have : 0, even && have == EACH, c};
  }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT)
scan_chains(const Tin* x, Tout* y, const __grid_constant__ Chains p) {
  wait_for_previous();
  extern __shared__ __align__(16) u64 memory[];
  __shared__ Link link[WARPS][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, size = p.size, team = warp / size, member = warp - team * size;
  char* mine = reinterpret_cast<char*>(memory) + warp * STAGED;
  Loading loading{reinterpret_cast<Tin*>(mine)};
  Tout* staged = reinterpret_cast<Tout*>(mine + In::BYTES);
  auto* fold = reinterpret_cast<Engine::Carry*>(reinterpret_cast<char*>(memory) + WARPS * STAGED) + (team * p.levels * 32 + lane);
  int after = team * size + (member + 1 < size ? member + 1 : 0), chunks = static_cast<int>((p.length + (EACH - 1)) / EACH);
  i64 strip = blockIdx.x * (WARPS / size) + team, stride = static_cast<i64>(gridDim.x) * (WARPS / size);
  if (strip >= p.strips) return;
  Line line(x, y, strip, p);
  int c = member;
  line.chunk(c, p).fetch(loading, p);
  for (bool begun = member > 0;; begun = true) {  // begun: another warp has had its turn
    Chunk chunk = line.chunk(c, p);
    Tin element[EACH];
    chunk.take(element, loading, p);
    bool first = c == 0, last = c + 1 == chunks, more = strip + stride < p.strips;
    c += size;
    if (c < chunks) line.chunk(c, p).fetch(loading, p);
    else if (more) Line(x, y, strip + stride, p).chunk(c - chunks, p).fetch(loading, p);
    Engine::Found found;
    auto sum = Engine::sum(found, element, chunk.have);
    if (begun && size > 1) barrier_wait(1 + warp, 64);
    auto before = first ? Link::none() : link[warp][lane];
    if (first && ORDERED) {
      for (int level = 1; level < p.levels; ++level) fold[level * 32] = Engine::none();
    }
    if (!last) link[after][lane] = before.next(chunk.number, sum, fold, p.levels);
    if (size > 1 && (!last || more)) barrier_arrive(1 + after, 64);
    Results results{chunk, staged, Chunk::to(p)};
    Engine::finish(before.before(), found, Elements{results, element}, p);
    chunk.deliver(staged, p);
    if (c < chunks) continue;
    if (!more) break;
    c -= chunks, strip += stride, line = Line(x, y, strip, p);
  }
}
