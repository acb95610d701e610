// Reduces along an outer axis. Neighbouring threads hold packs of VEC neighbouring outputs, so that a warp reads whole
// lines. A thread has UNROLL packs in flight. A block is WIDE packs by DEEP threads along the reduced dims.
// blockIdx.x: WIDE packs of outputs. blockIdx.y: the split of the reduced dims (RESIDENT > 0); the last block to arrive
// adds up the splits' partial results.
// EDGED: each run of neighbouring outputs has packs of its own. PARTIAL: a run may fill its first and last pack only in
// part, all runs alike. FUNNEL: only the last pack may be partial, and packs are read from any address.
// STRIPED: the outputs of a thread are not neighbours, but WIDE apart, and loaded one by one; the last block begins so early
// that it has all its outputs (some, then, are another block's too, which stores the same).
// STORED: outputs that a thread writes with one store.
constexpr int DEEP = BLOCK / WIDE;
constexpr int NEXT = STRIPED ? WIDE : 1;              // outputs between those of a thread
constexpr int LANES = WIDE < 32 ? 32 / WIDE : 1;      // lanes of a warp that hold the same pack
constexpr int LEVELS = DEEP / LANES;                  // partial results per output in shared memory
constexpr int HELD = VEC > LANES ? VEC / LANES : 1;   // outputs of a lane after `share`
constexpr int ALIKE = LANES > VEC ? LANES / VEC : 1;  // lanes that hold the same output after `share`
constexpr int PART = VEC * sizeof(State);             // bytes of a pack's partial results
constexpr int BATCH = Op::EXACT ? 1 : PART < 128 ? 256 / PART : 2;    // splits whose partial results are in flight
using Gathering = Gathered<true, 1>;
using Cells = State[LEVELS][VEC * WIDE];

// A pack of outputs. at: the offsets of their first elements. begin, end: which of the VEC outputs exist. low (high):
// at the first (last) index along the reduced dims, a load of a whole pack would reach outside the array.
struct Spot {
  Offset at[3];
  i32 begin, end;
  bool low, high;
};

__device__ __forceinline__ Spot find(Index pack, const Reduce& r) {
  Spot spot;
  spot.begin = 0, spot.end = pack < static_cast<Index>(r.outputs) ? VEC : 0;
  if constexpr (STRIPED) {
    spot.end = VEC;
    r.kept.locate(min(pack / WIDE * (WIDE * VEC), static_cast<Index>(r.outputs) - WIDE * VEC) + pack % WIDE, spot.at);
  } else if constexpr (!EDGED) {
    r.kept.locate(min(pack, static_cast<Index>(r.outputs - 1)), spot.at);
  } else {
    Index run = divide(pack, r.run_packs);
    i64 first = static_cast<i64>(pack - run * static_cast<Index>(r.run_packs.value)) * VEC - r.head;
    i64 size = spot.end ? r.kept.size[KEPT - 1].value : 0;
    r.kept.template locate<KEPT - 1>(run, spot.at);
#pragma unroll
    for (int k = 0; k < 3; ++k) spot.at[k] += first * r.kept.stride[k][KEPT - 1];
    spot.begin = first < 0 ? -first : 0;
    spot.end = max(min(size - first, static_cast<i64>(VEC)), static_cast<i64>(spot.begin));
    spot.low = FUNNEL ? first == 0 : first < 0;
    spot.high = first + (FUNNEL ? 2 * VEC : VEC) > size;
  }
  return spot;
}

// The step in operand k between neighbours of a pack.
__device__ __forceinline__ Offset beside(int k) { return k == 0 || OTHER == BESIDE; }

// Whether the first pack is loaded again, and ignored, in the place of others past the end: there are more loads than
// predicate registers, or computing packs takes several instructions, which would be a branch for each.
constexpr bool AGAIN = !SINGLE && (UNROLL > 8 || !SAME<Source, const Tin*>);

// Where elements of a row are: a multiplication away from the first one that is taken, where this needs no register that
// others need more.
template <class Where> struct Places {
  static constexpr bool STRAIGHT = REDUCED == 1 && SAME<Where, const Tin*> && (STRIPED || (Op::EXACT && !EDGED));
  Where row, first;
  Index i;
  __device__ __forceinline__ Places(const Where& row, const Reduce& r, Index i) : row(row), first(row), i(i) {
    if constexpr (STRAIGHT) first = moved(row, r, i), early(first);
  }
  // The element `steps` after that.
  __device__ __forceinline__ Where after(u32 steps, const Reduce& r) const {
    if constexpr (STRAIGHT) return moved(first, r, steps);
    Offset at[2];
    r.reduced.locate(i + steps, at);
    return row + at[0];
  }
  static __device__ __forceinline__ const Tin* moved(const Tin* x, const Reduce& r, Index steps) {
    i64 bytes = static_cast<i64>(r.reduced.stride[0][0]) * static_cast<i64>(steps * sizeof(Tin));
    return reinterpret_cast<const Tin*>(reinterpret_cast<const char*>(x) + bytes);
  }
};

// Accumulates UNROLL packs of x, DEEP elements apart along the reduced dims, all loaded before the first is used.
// CHECK: some may lie past the end.
template <bool CHECK>
__device__ __forceinline__ void take(Gathering& gathered, const From& row, const Tb* b, const Spot& spot, const Reduce& r, const Context<A>& c, Index i, Index end) {
  Pack_x packs[UNROLL];
  Pack_b others[UNROLL];
  Raw raw[UNROLL];
  bool ready[UNROLL];
  Places<From> places(row, r, i);
  auto steps = [&](int u) { return AGAIN && CHECK && i + u * DEEP >= end ? 0u : u * DEEP; };
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    ready[u] = !CHECK || i + u * DEEP < end;
    if (!AGAIN && !ready[u]) {
      leave_out(packs[u], others[u], ready[u]);
      continue;
    }
    From from = places.after(steps(u), r);
    if constexpr (STRIPED) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) packs[u].set(v, from[v * WIDE]);
    } else if constexpr (FUNNEL) packs[u] = funnel_load<VEC>(from);
    else if constexpr (RAW) raw[u] = load_raw<VEC>(from);
    else packs[u] = load_items<VEC>(from);
    if constexpr (OTHER != NONE) {
      Offset at[2];
      r.reduced.locate(i + steps(u), at);
      others[u] = load_items<VEC_B>(b + spot.at[1] + at[1]);
    }
  }
  if constexpr (RAW && !FUNNEL) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (CHECK && !AGAIN && i + u * DEEP >= end) continue;
      packs[u] = made_of<VEC>(places.after(steps(u), r), raw[u]);
    }
  }
  if constexpr (STRIPED && Op::INDEXED) loads_go_first();
  gathered.add(packs, others, ready, c);
}

// Exact sums of what takes several loads: while some packs are added, the next ones are loaded.
constexpr bool MEANWHILE = Op::EXACT && (OTHER == NONE ? RAW : DEEP > 1) && !FUNNEL && !STRIPED && !SINGLE;

// Loads a pack at the edge of the array element by element; nothing outside is read.
__device__ __forceinline__ void load_part(Pack_x& pack, Pack_b& other, const Source& x, const Tb* b, const Spot& spot, const Reduce& r, Index i) {
  Offset at[2];
  r.reduced.locate(i, at);
#pragma unroll
  for (int v = 0; v < VEC; ++v) pack.set(v, v >= spot.begin && v < spot.end ? x[spot.at[0] + at[0] + v] : Tin{});
  if constexpr (OTHER != NONE) other = load_items<VEC_B>(b + spot.at[1] + at[1]);
}

// Combines the values of lanes with the same pack and writes them to shared memory. After it,
// cells[0 … LEVELS)[v * WIDE + wide] are the partial results of output v of pack `wide`.
__device__ __forceinline__ void meet(Cells& cells, State (&value)[VEC]) {
  int lane = threadIdx.x % 32 / WIDE, wide = threadIdx.x % WIDE, level = threadIdx.x / (WIDE * LANES);
  int first = share<Op, (LANES > 1 ? 16 : 0), WIDE>(value);
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    if (lane % ALIKE == 0) cells[level][(first + i) * WIDE + wide] = value[i];
  }
  __syncthreads();
}

// The combined partial results, of the first `levels` (others are neutral).
__device__ __forceinline__ State met(const Cells& cells, int i, int levels = LEVELS) {
  State part[LEVELS];
#pragma unroll
  for (int level = 0; level < LEVELS; ++level) part[level] = cells[level][i];
#pragma unroll
  for (int half = LEVELS / 2; half > 0; half /= 2) {  // pairwise: rounding errors grow with the number of steps
#pragma unroll
    for (int level = 0; level < LEVELS / 2; ++level) {
      if (level < half) part[level] = Op::combine(part[level], part[level + half]);
    }
  }
  return part[0];
}

// The threads that share an output, and which output is a thread's in that turn.
constexpr int SHARING = !Op::EXACT || BLOCK <= VEC * WIDE ? 1 : BLOCK / (VEC * WIDE) > 32 ? 32 : BLOCK / (VEC * WIDE);
__device__ __forceinline__ int place_of(int turn) { return (turn * BLOCK + threadIdx.x) / SHARING; }

// Calls then(i, state, turn) with the combined partial results of each output i. Exact sums merge in any order: several
// threads share an output.
template <class O = Op, class Then> __device__ __forceinline__ void each_met(const Cells& cells, int levels, Then then) {
  if constexpr (O::EXACT) {
#pragma unroll 1
    for (int turn = 0; turn * (BLOCK / SHARING) < VEC * WIDE; ++turn) {
      int i = place_of(turn);
      State all = O::identity();
#pragma unroll 1
      for (int level = i < VEC * WIDE ? threadIdx.x % SHARING : levels; level < levels; level += SHARING) all = O::combine(all, cells[level][i]);
      all = warp_reduce<O, SHARING>(all);
      if (threadIdx.x % SHARING == 0 && i < VEC * WIDE) then(i, all, turn);
    }
  } else {
#pragma unroll 1
    for (int i = threadIdx.x; i < VEC * WIDE; i += BLOCK) then(i, met(cells, i, levels), i / BLOCK);
  }
}

// A pack's partial results, read by vectorised loads.
__device__ __forceinline__ void read_part(State (&value)[VEC], const State* part) {
  if constexpr (PART % 16 == 0) {
    Pack<u32, 4> piece[PART / 16 + 1];
#pragma unroll
    for (int n = 0; n < PART / 16; ++n) piece[n] = load<4>(reinterpret_cast<const u32*>(part) + 4 * n);
    memcpy(value, piece, PART);
  } else {
#pragma unroll
    for (int v = 0; v < VEC; ++v) value[v] = part[v];
  }
}

// Threads of a multiprocessor. If ptxas may choose how many registers a thread has, it spills more of one exact sum of elements in
// registers; where blocks share outputs, of single elements, it takes a few registers more than let a fourth block in.
constexpr bool ALL_THERE = SINGLE && RESIDENT == 0;
constexpr bool ONE_SUM = SUMS<Op> == 1 && (ALL_THERE || (!SINGLE && VEC == 1 && RESIDENT > 0));
constexpr int ROOM = STRIPED ? (HALF<Tin> ? 1280 : 0) : ALL_THERE && sizeof(Tin) > 4 ? 768 : 1024;
constexpr int AT_LEAST = ONE_SUM ? ROOM : Op::EXPONENTIAL || Op::EXACT || DEEP == 1 || RESIDENT > 1024 ? RESIDENT : 1024;

extern "C" __global__ void __launch_bounds__(BLOCK, AT_LEAST / BLOCK)
reduce_columns(SOURCE x, const Tb* b, Tout* y, Tz* z, u64* tickets, State* partials, Launch launch, Reduce r) {
  wait_for_previous();
  int wide = threadIdx.x % WIDE, deep = threadIdx.x / WIDE;
  Index begin = blockIdx.y * r.chunk, end = min(static_cast<i64>(begin) + r.chunk, r.packs);
  Context<A> c = context(r, r.chunk / DEEP + 1, r.packs, gridDim.y + 64);
  Spot spot = find(blockIdx.x * static_cast<Index>(WIDE) + wide, r);

  Index i = begin + deep;
  if (spot.end == spot.begin) end = i;
  Pack_x part[1];
  Pack_b part_b[1];
  bool first[1] = {false}, last[1] = {false};
  if constexpr (PARTIAL) {
    if (spot.low && i == 0 && i < end) {
      load_part(part[0], part_b[0], x, b, spot, r, i);
      (Op::INDEXED ? first : last)[0] = true, i += DEEP;  // only searches need it to come first
    } else if (spot.high && end == r.packs && i < end && (end - 1 - i) % DEEP == 0) {
      load_part(part[0], part_b[0], x, b, spot, r, --end);
      last[0] = true;
    }
  }
  Gathering gathered;
  From row = x + (SAME<Source, const Tin*> || spot.end > spot.begin ? spot.at[0] : 0);  // (threads without outputs load nothing)
  keep(row);
  if constexpr (PARTIAL && Op::INDEXED) gathered.add(part, part_b, first, c);
  if constexpr (MEANWHILE) {
    auto steps = [&](Index first, int u) { return first + u * DEEP < end ? u * DEEP : 0; };  // past the end, the first pack
    auto where = [&](Index first, int u) { return Places<From>(row, r, first).after(steps(first, u), r); };
    auto second = [&](Index first, int u) {
      Offset at[2];
      r.reduced.locate(first + steps(first, u), at);
      return load_items<VEC_B>(b + spot.at[1] + at[1]);
    };
    gather_meanwhile<UNROLL, DEEP>(i, end, where, second, [&](Pack_x (&x)[UNROLL], Pack_b (&b)[UNROLL], bool (&ready)[UNROLL]) {
      gathered.add(x, b, ready, c);
    });
  } else if constexpr (SINGLE) {
    take<true>(gathered, row, b, spot, r, c, i, end);
  } else if constexpr (Op::EXACT) {  // one copy of the long additions
    for (; i < end; i += UNROLL * DEEP) take<true>(gathered, row, b, spot, r, c, i, end);
  } else {
    for (; i + (UNROLL - 1) * DEEP < end; i += UNROLL * DEEP) take<false>(gathered, row, b, spot, r, c, i, end);
    if (i < end) take<true>(gathered, row, b, spot, r, c, i, end);
  }
  if constexpr (PARTIAL) gathered.add(part, part_b, last, c);
  let_next_start();
  State value[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) value[v] = gathered.get(v, c);

  u32 open = 0;
  if constexpr (DEEP == 1) {
    Results<STORED> results[VEC / STORED];
#pragma unroll
    for (int v = 0; v < VEC; ++v) results[v / STORED].set(v % STORED, value[v], r, c);
#pragma unroll
    for (int s = 0; s < VEC / STORED; ++s) {
      if (s * STORED < spot.begin || s * STORED >= spot.end) continue;
      results[s].store(y, z, spot.at[2] + s * STORED * NEXT * r.y_inner, r);
      open |= results[s].open << s * STORED;
    }
  } else {
    __shared__ Cells cells;
    u32 levels = LEVELS;
    meet(cells, value);
    if constexpr (RESIDENT > 0) {
      State* mine = partials + static_cast<i64>(blockIdx.x) * gridDim.y * (VEC * WIDE);
      State* here = mine + blockIdx.y * (VEC * WIDE);
      each_met(cells, LEVELS, [&](int i, const State& state, int) { here[i % WIDE * VEC + i / WIDE] = state; });
      if (!last_block(tickets + blockIdx.x, gridDim.y, launch)) return;
#pragma unroll
      for (int v = 0; v < VEC; ++v) value[v] = Op::identity();
      if (deep < gridDim.y) read_part(value, mine + (deep * WIDE + wide) * VEC);
#pragma unroll BATCH
      for (u32 split = deep + DEEP; split < gridDim.y; split += DEEP) {
        State more[VEC];
        read_part(more, mine + (split * WIDE + wide) * VEC);
#pragma unroll
        for (int v = 0; v < VEC; ++v) value[v] = Op::combine(value[v], more[v]);
      }
      levels = min(levels, (gridDim.y + LANES - 1) / LANES);
      meet(cells, value);
    }
    each_met(cells, levels, [&](int i, const State& state, int turn) {
      Spot there = find(blockIdx.x * static_cast<Index>(WIDE) + i % WIDE, r);
      int v = i / WIDE;
      if (v >= there.begin && v < there.end) open |= write(y, z, there.at[2] + v * r.y_inner, state, r, c) << turn;
    });
  }
  settle(open, x, b, y, z, r, c, r.packs,
         [&](int bit, Offset (&at)[3]) {
           int i = place_of(bit), v = DEEP == 1 ? bit : i / WIDE;
           Spot there = find(blockIdx.x * static_cast<Index>(WIDE) + (DEEP == 1 ? wide : i % WIDE), r);
#pragma unroll
           for (int k = 0; k < 3; ++k) at[k] = there.at[k] + v * NEXT * (k == 2 ? r.y_inner : beside(k));
         },
         [&](i64 i, Offset (&at)[2]) { r.reduced.locate(static_cast<Index>(i), at); });
}
