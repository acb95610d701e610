// Reduces along the axis that is contiguous in memory. GROUP threads (a power of two up to 32, or the whole BLOCK)
// share a row. They read packs of VEC elements, UNROLL of them in flight for each of ROWS rows.
// blockIdx.x: BLOCK / GROUP * ROWS rows. blockIdx.y: the split of a long row (RESIDENT > 0); the last block to arrive
// adds up the splits' partial results.
// RAGGED: a row, and each run of it along the innermost reduced dim, may begin and end at any element. The head and
// tail around its aligned packs are read element by element. TEAM threads of the group share a run. A split is r.chunk
// packs of every run or, if those are all packs, r.run_chunk runs.
constexpr int GROUPS = BLOCK / GROUP, TEAMS = GROUP / TEAM;
constexpr int EDGES = (2 * (VEC - 1) + TEAM - 1) / TEAM;  // head and tail elements of a run for each thread, at most
// 32 floats of a thread. (Variances that are tried in doubles first were slower then.)
constexpr bool FULL = SINGLE && !RAGGED && OTHER == NONE && SAME<Tin, f32> && UNROLL * VEC == 32;
constexpr bool TOGETHER = SINGLE && Op::ALIKE;  // threads have one bias, with room for all of an output
// Exact sums of what takes several loads: while some packs are added, the next ones are loaded. With a second operand, where
// that is worth its registers: it is not for a block's halves with a mask, nor for several sums of doubles.
constexpr bool WORTH = HALF<Tin> ? !SAME<Tb, u8> || GROUP < BLOCK : SUMS<Op> == 1 || sizeof(Tin) < 8;
constexpr bool MEANWHILE = Op::EXACT && (OTHER == NONE ? RAW : WORTH) && ROWS == 1 && !SINGLE;
using Gathering = Gathered<false, (ROWS > 1 || MEANWHILE ? 1 : 4)>;

// A thread's part of ROWS rows: where it reads, where the packs end, and its accumulators.
struct Rows {
  From x[ROWS];
  const Tb* b[ROWS];
  Index end[ROWS];
  Gathering packs[ROWS];
  State singles[ROWS];
};

// The step in the second operand between the elements of neighbours.
__device__ __forceinline__ Offset step_of(const Reduce& r) {
  if constexpr (OTHER == STEPPED || OTHER == LOOSE) return r.reduced.stride[1][REDUCED - 1] / (RAGGED ? 1 : VEC);
  else return OTHER == BESIDE;
}
template <int N, class T> __device__ __forceinline__ Items<T, N> load_other(const T* from, Offset step) {
  if constexpr (OTHER == LOOSE) {
    Items<T, N> items;
#pragma unroll
    for (int v = 0; v < N; ++v) items.set(v, from[v * step]);
    return items;
  } else {
    return load_items<N>(from, step);
  }
}

// Whether exact sums of products add a pack only if the warp has some of it. That puts packs one after the other, which
// takes fewer registers, so that more warps have room.
constexpr bool ONE_BY_ONE = Op::EXACT && OTHER != NONE && TEAM % 32 == 0 && (ONE_OF<Tval, f32, Complex<f32>> || (HALF<Tval> && RESIDENT == 0));

// Unconditional loads are all issued at once: past the end, the last pack is loaded again and ignored.
constexpr bool LOADS_ALL = Op::EXPONENTIAL && GROUP == BLOCK && (HALF<Tin> || UNROLL <= 4);

// Accumulates UNROLL packs of each row, TEAM packs apart, all loaded before the first is used. CHECK: some may lie past
// the end.
template <bool CHECK> __device__ __forceinline__ void take(Rows& rows, const Reduce& r, const Context<A>& c, Index i) {
  Pack_x x[ROWS][UNROLL];
  Pack_b b[ROWS][UNROLL];
  Raw raw[ROWS][UNROLL];
  bool ready[ROWS][UNROLL];
  auto place = [&](int u, Offset (&at)[2]) {
    Index pack = i + u * TEAM, near = LOADS_ALL && CHECK ? min(pack, rows.end[0] - 1) : pack;
    at[0] = static_cast<Offset>(near) * VEC, at[1] = static_cast<Offset>(near) * VEC * step_of(r);
    if constexpr (!RAGGED) r.reduced.locate(near, at);
  };
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    Offset at[2];
    place(u, at);
#pragma unroll
    for (int k = 0; k < ROWS; ++k) {
      ready[k][u] = !CHECK || i + u * TEAM < rows.end[k];
      if (!LOADS_ALL && !ready[k][u]) {
        leave_out(x[k][u], b[k][u], ready[k][u]);
        if constexpr (ONE_BY_ONE) ready[k][u] = i - threadIdx.x % 32 + u * TEAM < rows.end[k];
        continue;
      }
      if constexpr (RAW) raw[k][u] = load_raw<VEC>(rows.x[k] + at[0]);
      else x[k][u] = load_items<VEC>(rows.x[k] + at[0]);
      if constexpr (OTHER != NONE) b[k][u] = load_other<VEC_B>(rows.b[k] + at[1], step_of(r));
    }
  }
  if constexpr (RAW) {
    if constexpr (Op::EXPONENTIAL || SEVERAL<Tin> > 0) loads_go_first();
#pragma unroll
    for (int n = 0; n < ROWS * UNROLL; ++n) {
      int k = n / UNROLL, u = n % UNROLL;
      if (!LOADS_ALL && CHECK && i + u * TEAM >= rows.end[k]) continue;
      Offset at[2];
      place(u, at);
      x[k][u] = made_of<VEC>(rows.x[k] + at[0], raw[k][u]);
    }
  }
#pragma unroll
  for (int k = 0; k < ROWS; ++k) add_packs<GROUP, !FULL>(rows.packs[k], x[k], b[k], ready[k], c);
}

// The elements of a row, and where one of them lies.
__device__ __forceinline__ i64 elements(const Reduce& r) {
  return RAGGED ? r.runs * r.reduced.size[REDUCED - 1].value : r.packs * VEC;
}
__device__ __forceinline__ void place(i64 i, const Reduce& r, Offset (&at)[2]) {
  if constexpr (RAGGED) {
    i64 run = r.reduced.size[REDUCED - 1].value, rest = i % run;
    r.reduced.template locate<REDUCED - 1>(static_cast<Index>(i / run), at);
    at[0] += rest, at[1] += rest * step_of(r);
  } else {
    r.reduced.locate(static_cast<Index>(i / VEC), at);
    at[0] += i % VEC, at[1] += i % VEC * step_of(r);
  }
}

// Accumulates this thread's packs of the rows, from `begin` on.
__device__ __forceinline__ void gather(Rows& rows, const Reduce& r, const Context<A>& c, Index begin) {
  Index i = begin + threadIdx.x % TEAM;
  if constexpr (MEANWHILE) {
    auto place = [&](Index first, int u, Offset (&at)[2]) {  // past the end, the last pack
      Index near = min(first + u * TEAM, rows.end[0] - 1);
      at[0] = static_cast<Offset>(near) * VEC, at[1] = static_cast<Offset>(near) * VEC * step_of(r);
      if constexpr (!RAGGED) r.reduced.locate(near, at);
    };
    auto where = [&](Index first, int u) {
      Offset at[2];
      place(first, u, at);
      return rows.x[0] + at[0];
    };
    auto second = [&](Index first, int u) {
      Offset at[2];
      place(first, u, at);
      return load_other<VEC_B>(rows.b[0] + at[1], step_of(r));
    };
    gather_meanwhile<UNROLL, TEAM>(i, rows.end[0], where, second, [&](Pack_x (&x)[UNROLL], Pack_b (&b)[UNROLL], bool (&ready)[UNROLL]) {
      add_packs<GROUP>(rows.packs[0], x, b, ready, c);
    });
  } else if constexpr (SINGLE) {
    take<true>(rows, r, c, i);
  } else if constexpr (ROWS == 1 && !Op::EXACT) {
    for (; i + (UNROLL - 1) * TEAM < rows.end[0]; i += UNROLL * TEAM) take<false>(rows, r, c, i);
    if (i < rows.end[0]) take<true>(rows, r, c, i);
  } else {
    Index end = rows.end[0];
#pragma unroll
    for (int k = 1; k < ROWS; ++k) end = max(end, rows.end[k]);
    for (; i < end; i += UNROLL * TEAM) take<true>(rows, r, c, i);
  }
}

// The same for a run of n elements that begins at any element. The first split also takes the head, the last one the
// tail.
__device__ __forceinline__ void gather_run(Rows& rows, const Reduce& r, const Context<A>& c, i64 n, Index begin) {
  Items<Tin, 1> x[ROWS][EDGES + 1];
  Items<Tb, 1> b[ROWS][EDGES + 1];
  bool ready[ROWS][EDGES + 1] = {};
  bool last = begin + r.chunk >= r.packs;
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    i32 head = min(static_cast<i64>(-index_of(rows.x[k]) % VEC), n);
    i64 packs = (n - head) / VEC;
    i32 before = begin == 0 ? head : 0, behind = last ? n - head - packs * VEC : 0;
#pragma unroll
    for (int e = 0; e < EDGES; ++e) {
      i32 i = threadIdx.x % TEAM + e * TEAM;
      i64 at = i < before ? i : n - behind + (i - before);
      ready[k][e] = i < before + behind;
      if (!ready[k][e]) continue;
      x[k][e] = load_items<1>(rows.x[k] + at);
      if constexpr (OTHER != NONE) b[k][e] = load_items<1>(rows.b[k] + at * step_of(r));
    }
    rows.end[k] = last ? packs : min(static_cast<i64>(begin) + r.chunk, packs);
    rows.x[k] += head;
    rows.b[k] += head * step_of(r);
    add_edges<true>(rows.packs[k], rows.singles[k], x[k], b[k], ready[k], c);
  }
  gather(rows, r, c, begin);
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    add_edges<false>(rows.packs[k], rows.singles[k], x[k], b[k], ready[k], c);
  }
}

// Threads of a multiprocessor that a kernel whose lanes share rows of floats, or of stacks of them, has registers for.
__device__ constexpr int in_lanes() {
  if (SEVERAL<Tin> > 0) return !SINGLE || SEVERAL<Tin> > 3 ? 0 : SEVERAL<Tin> == 3 && ROWS == 1 ? 512 : 768;
  if (!SINGLE) return RAW && SUMS<Op> == 1 && OTHER == NONE ? 768 : 0;
  if (OTHER != NONE) return ROWS == 1 ? 1024 : 0;
  if (SUMS<Op> > 1) return 1024;
  return RAW || (GROUP == 1 && !UNDIVIDED<Op>) ? 1280 : 1536;
}

// Threads of a multiprocessor. If ptxas may choose how many registers a thread has, it chooses so few that it spills some of
// 32 floats, or of 16 where lanes of a warp share rows; and for variances so many that few threads fit.
constexpr bool MANY = SPREAD<Op> && SINGLE && SAME<Tin, f32> && UNROLL * VEC > 16;
constexpr bool FLOATS = SAME<real_t<Tin>, f32> && !COMPLEX<Tin>;
constexpr bool FEW = SUMS<Op> > 0 && FLOATS && !RAGGED && GROUP < BLOCK && ROWS <= 2 && ROWS * UNROLL * VEC <= 16;
constexpr int AT_LEAST = RESIDENT > 0 ? RESIDENT : FULL ? 1024 : MANY ? 768 : FEW ? in_lanes() : 0;

extern "C" __global__ void __launch_bounds__(BLOCK, AT_LEAST / BLOCK)
reduce_rows(SOURCE x, const Tb* b, Tout* y, Tz* z, u64* tickets, State* partials, Launch launch, Reduce r) {
  wait_for_previous();
  Context<A> c = context(r, TOGETHER ? elements(r) : (r.chunk / TEAM + 1) * VEC * (r.run_chunk / TEAMS + 1), elements(r), gridDim.y + 64);
  Index first = blockIdx.x * static_cast<Index>(GROUPS * ROWS) + threadIdx.x / GROUP;
  Index begin = r.chunk < r.packs ? blockIdx.y * r.chunk : 0, outputs = r.outputs;
  Rows rows;
  Offset kept[ROWS][3];
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    r.kept.locate(min(first + k * GROUPS, outputs - 1), kept[k]);  // past the last row, the last one is read again
    rows.x[k] = x + kept[k][0];
    if constexpr (OFFSETS<Source> == 0) keep(rows.x[k]);  // else they take more registers than it saves
    rows.b[k] = b + kept[k][1];
    rows.end[k] = min(static_cast<i64>(begin) + r.chunk, r.packs);
    rows.singles[k] = Op::identity();
  }
  if constexpr (!RAGGED) {
    gather(rows, r, c, begin);
  } else {
    Index first_run = r.run_chunk < r.runs ? blockIdx.y * r.run_chunk : 0, end_run = min(first_run + r.run_chunk, r.runs);
    for (Index run = first_run + threadIdx.x % GROUP / TEAM; run < end_run; run += TEAMS) {
      Offset at[2];
      r.reduced.template locate<REDUCED - 1>(run, at);
#pragma unroll
      for (int k = 0; k < ROWS; ++k) {
        rows.x[k] = x + kept[k][0] + at[0];
        rows.b[k] = b + kept[k][1] + at[1];
      }
      gather_run(rows, r, c, r.reduced.size[REDUCED - 1].value, begin);
    }
  }

  let_next_start();
  State value[ROWS];
  u32 open = 0;
  int shared_first = 0;
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    value[k] = rows.packs[k].total(c);
    if constexpr (RAGGED && !Op::EXACT) value[k] = Op::combine(rows.singles[k], value[k]);
  }
  bool known = ROWS == 1 && is_known(rows.packs[0]);
  if constexpr (GROUP == BLOCK) {
    if constexpr (RESIDENT == 0 || !Op::EXACT) {
      if (!known) value[0] = block_reduce<Op, BLOCK, false>(value[0]);
    }
    if constexpr (RESIDENT > 0 && Op::EXACT) {  // the same instructions twice, since loading others takes long
      State* mine = partials + static_cast<i64>(first) * gridDim.y;
#pragma unroll 1
      for (int pass = 0; pass < 2; ++pass) {
        value[0] = block_reduce<Op, BLOCK, false>(value[0]);
        if (pass > 0) break;
        if (threadIdx.x == 0) mine[blockIdx.y] = value[0];
        if (!last_block(tickets + first, gridDim.y, launch)) return;
        value[0] = threadIdx.x < gridDim.y ? mine[threadIdx.x] : Op::identity();
#pragma unroll 1
        for (u32 split = threadIdx.x + BLOCK; split < gridDim.y; split += BLOCK) value[0] = Op::combine(value[0], mine[split]);
      }
    } else if constexpr (RESIDENT > 0) {
      State* mine = partials + static_cast<i64>(first) * gridDim.y;
      if (threadIdx.x == 0) mine[blockIdx.y] = value[0];
      if (!last_block(tickets + first, gridDim.y, launch)) return;
      value[0] = threadIdx.x < gridDim.y ? mine[threadIdx.x] : Op::identity();
#pragma unroll 1
      for (u32 split = threadIdx.x + BLOCK; split < gridDim.y; split += BLOCK) value[0] = Op::combine(value[0], mine[split]);
      value[0] = block_reduce<Op, BLOCK, false>(value[0]);
    }
    if (threadIdx.x == 0) open = write(y, z, kept[0][2], value[0], r, c);
  } else {
    constexpr int LANES = GROUP > ROWS ? GROUP / ROWS : 1, HELD = ROWS > GROUP ? ROWS / GROUP : 1;
    int shared = known ? 0 : share<Op, GROUP / 2, 1>(value);
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
      Index row = first + (shared + i) * GROUPS;
      if (row >= outputs || threadIdx.x % LANES) continue;
      r.kept.locate(row, kept[0]);
      open |= write(y, z, kept[0][2], value[i], r, c) << i, shared_first = shared;
    }
  }
  settle(open, x, b, y, z, r, c, elements(r),
         [&](int i, Offset (&at)[3]) { r.kept.locate(static_cast<Index>(first + (shared_first + i) * GROUPS), at); },
         [&](i64 i, Offset (&at)[2]) { place(i, r, at); });
}
