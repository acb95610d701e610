// A chunk for each lane of a warp, whose elements are in registers: how they get there, what they add up to, and how results leave.
//
// Parameters: struct Lanes (gpuops/plan/scans/lanes.py).

// Lanes of NARROW strips share SHARE lines: each has a chunk of one of them, one chunk after the other.
constexpr bool NARROW = SHARE < 32, IDLE = 32 % SHARE != 0;  // IDLE: some lanes have none
struct Place {
  static constexpr int CHUNKS = 32 / SHARE;  // of a line
  int line, chunk;                           // of the lane
  __device__ __forceinline__ Place() : line(threadIdx.x % 32 % SHARE), chunk(threadIdx.x % 32 / SHARE) {}
  __device__ __forceinline__ bool there() const { return !IDLE || chunk < CHUNKS; }
};

// Chunks of a warp in shared memory: lane after lane (ALONG), or element after element of the lines side by side.
template <class T, bool ALONG, bool BACK> struct Staged : Packs<T, EACH, BACK> {
  using Base = Packs<T, EACH, BACK>;
  using Base::VEC, Base::PACKS, Base::first_pack;
  static constexpr bool DENSE = NARROW && !ALONG;  // lines side by side and nothing beside them
  static constexpr int BYTES = (32 * EACH + (DENSE ? 16 * VEC : 0)) * sizeof(T);
  // Lines of the elements, and packs of a line (or of an element of all lines), that lanes move at a time.
  static constexpr int LINES = 32 / EACH, AT_ONCE = ALONG ? PACKS : 32 / VEC;

  // The place of element i of the lane. (Chunks of a line are a pack further apart than their elements fill, for other banks.)
  static __device__ __forceinline__ int place(int i) {
    int lane = threadIdx.x % 32;
    if constexpr (ALONG) return Base::element(lane * EACH + i);
    if constexpr (!DENSE) return i * 32 + lane;
    Place own;
    return own.chunk * (EACH * SHARE + VEC) + i * SHARE + own.line;
  }
  // The place of the n-th element that a lane moves one by one.
  static __device__ __forceinline__ int moved(int n) {
    int lane = threadIdx.x % 32;
    return ALONG ? Base::element((n * LINES + lane / EACH) * EACH + lane % EACH) : place(n);
  }
  // Whether full chunks go by packs of 16 bytes. even: their lines are equally far apart.
  template <class P> static __device__ __forceinline__ bool packed(P first, Offset step, Offset apart, bool even) {
    int lane = threadIdx.x % 32;
    if constexpr (ALONG) return VEC > 1 && even && step == (BACK ? -1 : 1) && apart % VEC == 0 && address_of(first - (BACK ? VEC - 1 : 0)) % 16 == 0;
    if constexpr (!DENSE) return VEC > 1 && even && apart == 1 && step % VEC == 0 && address_of(first - lane) % 16 == 0;
    return VEC > 1 && apart == 1 && step == SHARE && address_of(shuffle(first, 0)) % 16 == 0;
  }
  // Calls packs(place, address) for each pack of the chunks, or elements(n, place, address) for each element, or, of chunks that are
  // not whole, others(n, place, address, there). A lane has a chunk of `have` elements from `first` on, `step` from one to the next.
  template <class P, class F, class G, class H> static __device__ __forceinline__ void each(P first, Offset step, Offset apart, int have, bool whole, bool packed, bool even, F packs, G elements, H others) {
    int lane = threadIdx.x % 32;
    if (whole && packed) {
      if constexpr (DENSE) {
        constexpr int share = EACH * SHARE, count = Place::CHUNKS * share / VEC;
        P at = shuffle(first, 0) + lane * VEC;
#pragma unroll
        for (int n = 0; n < PACKS; ++n, at += 32 * VEC) {
          int pack = n * 32 + lane;
          if (count == 32 * PACKS || pack < count) packs((pack + pack / (share / VEC)) * VEC, at);
        }
      } else {
        int row = lane / AT_ONCE, pack = lane % AT_ONCE;
        P at = first + (ALONG ? (row - lane) * apart + (BACK ? -pack * VEC - (VEC - 1) : pack * VEC) : row * step + (pack * VEC - lane));
#pragma unroll
        for (int n = 0; n < PACKS; ++n, at += 32 / AT_ONCE * (ALONG ? apart : step)) {
          packs(ALONG ? (first_pack(n * (32 / AT_ONCE) + row) ^ pack) * VEC : (n * (32 / AT_ONCE) + row) * 32 + pack * VEC, at);
        }
      }
    } else if (whole) {
      if (DENSE && !Place().there()) return;
      P at = first + (ALONG ? (lane / EACH - lane) * apart + lane % EACH * step : 0);
#pragma unroll
      for (int n = 0; n < EACH; ++n, at += ALONG ? LINES * apart : step) {
        if (ALONG && !even) elements(n, moved(n), shuffle(first, n * LINES + lane / EACH) + lane % EACH * step);
        else elements(n, moved(n), at);
      }
    } else {
      if (DENSE && !Place().there()) return;
#pragma unroll (ALONG ? 4 : EACH)
      for (int n = 0; n < EACH; ++n) {
        if constexpr (ALONG) {
          int row = n * LINES + lane / EACH, i = lane % EACH;
          P at = shuffle(first, row);
          int count = shuffle(have, row);
          others(n, moved(n), at + i * step, i < count);
        } else {
          others(n, place(n), first + n * step, n < have);
        }
      }
    }
  }
};
using In = Staged<Tin, X_ALONG, X_BACK>;
using Out = Staged<Tout, Y_ALONG, Y_BACK>;
constexpr bool Y_STAGED = Y_ALONG || NARROW;
constexpr int STAGED = DEPTH * In::BYTES + (Y_STAGED ? Out::BYTES : 0);  // bytes of a warp

// Elements that a warp loads: on their way to shared memory or, if they do not go by packs and there are registers for them,
// held in these.
constexpr bool HELD = CHAINED && EACH * sizeof(Tin) / 4 + 96 <= 65536 / (32 * WARPS * RESIDENT);
struct Loading {
  Tin* staged;
  Tin element[HELD ? EACH : 1];
};
// A lane's chunk: where its elements and results are in memory, and how many there are.
struct Chunk {
  From x;
  Tout* y;
  int have;
  bool whole, even, all;  // all lanes' chunks are full; their lines are equally far apart; none has the line of another
  int number;  // in its line

  static __device__ __forceinline__ Offset from(const Lanes& p) { return p.line.stride[0][0]; }
  static __device__ __forceinline__ Offset to(const Lanes& p) { return p.line.stride[1][0]; }
  // From a lane's line, or chunk, to the next one's.
  template <int OPERAND> static __device__ __forceinline__ Offset apart(const Lanes& p) {
    bool chunks = NARROW && (OPERAND == 0 ? X_ALONG : Y_ALONG);
    return chunks ? p.line.stride[OPERAND][0] * EACH : p.kept.stride[OPERAND][KEPT - 1];
  }
  __device__ __forceinline__ bool packed(const Lanes& p) const { return In::packed(x, from(p), apart<0>(p), even); }

  __device__ __forceinline__ void fetch(Loading& loading, const Lanes& p) const {
    In::each(x, from(p), apart<0>(p), have, whole, packed(p), even, [&](int place, From at) {
      copy_pack<In::VEC>(loading.staged + place, at);
    }, [&](int n, int place, From at) {
      if constexpr (HELD) loading.element[n] = at[0];
      else copy_pack<1>(loading.staged + place, at);
    }, [&](int n, int place, From at, bool there) {
      if constexpr (HELD && !X_ALONG) loading.element[n] = there ? at[0] : convert<Tin>(PADDING);
      else if (there) copy_pack<1>(loading.staged + place, at);
      else loading.staged[place] = convert<Tin>(PADDING);
    });
    copies_sent();
  }
  // The elements, when at most PENDING fetches are on their way.
  template <int PENDING> __device__ __forceinline__ void take(Tin (&element)[EACH], const Loading& loading, const Lanes& p) const {
    const Tin* staged = loading.staged;
    if constexpr (HELD && X_ALONG) {
      if (whole && !packed(p)) {
#pragma unroll
        for (int n = 0; n < EACH; ++n) loading.staged[In::moved(n)] = loading.element[n];
      }
    } else if constexpr (HELD) {
      if (!whole || !packed(p)) {
#pragma unroll
        for (int n = 0; n < EACH; ++n) element[n] = loading.element[n];
        return;
      }
    }
    copies_there<PENDING>();
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
      bool there = !NARROW || Place().there();
#pragma unroll
      for (int i = 0; i < EACH; ++i) element[i] = there ? staged[In::place(i)] : convert<Tin>(PADDING);
    }
    __syncwarp();
  }
  // Results on their way from shared memory.
  __device__ __forceinline__ void deliver(const Tout* staged, const Lanes& p) const {
    if constexpr (Y_STAGED) {
      __syncwarp();
      Out::each(y, to(p), apart<1>(p), have, whole && all, Out::packed(y, to(p), apart<1>(p), even), even, [&](int place, Tout* at) {
        store_past_l1(at, load_items<Out::VEC>(staged + place));
      }, [&](int, int place, Tout* at) { *at = staged[place]; }, [&](int, int place, Tout* at, bool there) {
        if (there) *at = staged[place];
      });
    }
  }
};
// Where a lane's results go.
struct Results {
  Chunk chunk;
  Tout* staged;
  Offset to;
  __device__ __forceinline__ void put(int i, Tout result) const {
    if constexpr (Y_STAGED) staged[Out::place(i)] = result;
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
    } else if constexpr (NARROW) {
      bool there = Place().there();
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
        Tout result = f(x[i], i);
        if (there) to.staged[Out::place(i)] = result;
      }
    } else {
      Tout* at = to.chunk.y;
#pragma unroll
      for (int i = 0; i < EACH; ++i, at += to.to) {
        if (i % 4 == 0 && i >= to.chunk.have) break;  // not each time: full chunks would be slower
        Tout result = f(x[i], i);
        if (i < to.chunk.have) *at = result;
      }
    }
  }
};

// Makes of the values of lanes that share lines those of their lines up to there. Returns what comes before each in its warp.
template <class Engine, class T> __device__ __forceinline__ T scan_lanes(T& value, T nothing) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = SHARE; step < 32; step *= 2) {  // lanes of a line are SHARE apart
    T elder = shuffle_up(value, step);
    if (lane >= step) value = Engine::merge(elder, value);
  }
  T before = shuffle_up(value, SHARE);
  return lane >= SHARE ? before : nothing;
}

struct LanesAny : Inexact {
  struct Found {};
  // The sum of a lane's line up to the lane's chunk and with it, in the warp; and what comes before.
  static __device__ __forceinline__ Carry sum(Found&, const Tin (&x)[EACH], int have, Carry& before) {
    Carry all = total(x, have);
    before = scan_lanes<LanesAny>(all, none());
    return all;
  }
  static __device__ __forceinline__ Carry sum(Found&, const Tin (&x)[EACH], int have) { return total(x, have); }
  static __device__ __forceinline__ void finish(const Carry& before, const Found&, const Elements& elements, const Lanes& p) {
    Inexact::finish(before, elements, elements.to.chunk.number == 0, p.nothing);
  }
};
template <class V> struct LanesSums : ExactPrefix<V, 4> {
  using Base = ExactPrefix<V, 4>;
  using typename Base::Carry, typename Base::Local, typename Base::Way;
  using Base::DOUBLES, Base::CLOSE, Base::CUT;
  using Found = typename Base::Extremes;
  static __device__ __forceinline__ Carry sum(Found& found, const Tin (&x)[EACH], int) {
    found = Found::of(x);
    Base known(found);
    return known.carried(__all_sync(0xffffffffu, known.plain) ? known.template total<true>(x) : known.template total<false>(x));
  }
  // Likewise of lanes that share lines: sums of the warp have one exponent.
  using Wide = ExactPrefix<V, 9>;
  struct Plain { static __device__ __forceinline__ double merge(double a, double b) { return a + b; } };
  static __device__ __forceinline__ Carry sum(Found& found, const Tin (&x)[EACH], int, Carry& before) {
    found = Found::of(x);
    auto most = found.of_warp();
    Wide known({most.most, most.least});
    if (known.plain) {
      double all = known.template total<true>(x).high, part = scan_lanes<Plain>(all, -0.0);
      before = Base::of(part);
      return Base::of(all);
    }
    auto all = known.template total<false>(x), part = scan_lanes<Wide>(all, Wide::nothing());
    before = known.carried(part);
    return known.carried(all);
  }
  static __device__ __forceinline__ void finish(const Carry& carry, const Found& found, const Elements& elements, const Lanes& p) {
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
  static __device__ __noinline__ u32 closely(Found found, Expansion line, Results results, const Lanes& p) {
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
  static __device__ __noinline__ void settle(u32 open, Results results, const Lanes& p) {
    const Chunk& chunk = results.chunk;
    __shared__ Digits<V, false> sums[WARPS];
    auto& sum = sums[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    while (u32 lanes = __ballot_sync(0xffffffffu, open != 0)) {
      int owner = __ffs(lanes) - 1, i = __shfl_sync(0xffffffffu, __ffs(open) - 1, owner);
      From last = shuffle(chunk.x + i * chunk.from(p), owner);
      i64 count = static_cast<i64>(__shfl_sync(0xffffffffu, chunk.number, owner)) * EACH + i + (EXCLUSIVE ? 0 : 1);
      clear(sum);
      for (i64 back = lane; back < count; back += 32) note(sum, Base::number(last[-(back + (EXCLUSIVE ? 1 : 0)) * chunk.from(p)]));
      V result = settled(sum);
      if (lane == owner) results.put(i, convert<Tout>(result)), open &= open - 1;
    }
  }
};
using Engine = Either<PREFIX, LanesSums<Tval>, LanesAny>::type;

// A lane's line.
struct Line {
  From x;
  Tout* y;
  bool there, all, even;  // whether the lane has one; all of them have; and these are equally far apart
  __device__ __forceinline__ Line(const Source& x, Tout* y, i64 strip, const Lanes& p) {
    int lane = threadIdx.x % 32;
    Place own;
    i64 number = strip * SHARE + own.line;
    Offset at[2];
    there = own.there() && number < p.lines;
    p.kept.locate(static_cast<Index>(min(number, p.lines - 1)), at);
    this->x = x + at[0], this->y = y + at[1];
    Offset first[] = {shuffle(at[0], 0), shuffle(at[1], 0)};
    all = NARROW || __all_sync(0xffffffffu, there);
    even = SHARE == 1 || __all_sync(0xffffffffu, there && at[0] - first[0] == lane * Chunk::apart<0>(p) && at[1] - first[1] == lane * Chunk::apart<1>(p));
  }
  // Chunk c or, of lanes that share lines, of the c-th chunks of the warp.
  __device__ __forceinline__ Chunk chunk(int c, const Lanes& p) const {
    Place own;
    int number = c * Place::CHUNKS + own.chunk;
    i64 first = static_cast<i64>(number) * EACH;
    int have = static_cast<int>(max(i64(0), min(static_cast<i64>(EACH), p.length - first)));
    bool whole = have == EACH || !own.there();
    if (NARROW) whole = __all_sync(0xffffffffu, whole);
    return {x + static_cast<Offset>(first) * Chunk::from(p), y + static_cast<Offset>(first) * Chunk::to(p), there ? have : 0, whole, even, all, number};
  }
};
