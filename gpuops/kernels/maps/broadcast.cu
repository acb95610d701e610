// y[i] = Map(a[i], b[i], c[i]) over collapsed, broadcasting dims: expand, where, and the last pass of a softmax.
// A thread writes UNROLL packs of VEC elements, BLOCK packs apart. Packs are aligned in the output's memory. Its rows
// (runs along the innermost dim) may begin and end inside a pack:
//   WHOLE     each row is a whole number of packs
//   CROSSING  the output is dense; packs that cross into the next row are handled separately, at the end
//   NARROW    the output is dense; every pack is loaded as one that may cross into the next row
//   SHORT     the output is dense, and a pack may touch more than two rows: each element is located on its own
//   RAGGED    the rows lie apart: each may begin and end with a partial pack
// Prologue, besides that of broadcast.cuh: RANK, WALK, DENSE (y is contiguous in the order of the flat index), UNROLL,
// BLOCK, LINE (bytes of a cache line).
enum Walk { WHOLE, CROSSING, NARROW, SHORT, RAGGED };

constexpr int WALKED = ARITY + !DENSE;  // operands a, b, c and, unless it is dense, y

// The position of a pack. first: the flat index of item 0 in the output (RAGGED: its column in the row). at[k]: its offset
// in operand k. Items from `split` on are in the next row: jump[k] is added to their offset. complete: all items are
// inside the output (RAGGED: inside the row).
struct Spot {
  i32 first, split;
  bool complete;
  Offset at[WALKED], jump[WALKED];
};

// Sets at[k] and, if SPLIT, jump[k] of a pack that begins at (row, col).
template <bool SPLIT> __device__ __forceinline__ void place(Spot& spot, u32 row, i32 col, const Broadcast& p) {
  p.axes.template locate<RANK - 1>(row, spot.at);
  if constexpr (SPLIT) p.axes.template locate<RANK - 1>(row + 1, spot.jump);
  i32 cols = static_cast<i32>(p.axes.size[RANK - 1].value);
#pragma unroll
  for (int k = 0; k < WALKED; ++k) {
    if constexpr (SPLIT) spot.jump[k] -= spot.at[k] + cols * p.axes.stride[k][RANK - 1];
    spot.at[k] += col * p.axes.stride[k][RANK - 1];
  }
}

__device__ __forceinline__ Spot find(u32 pack, const Broadcast& p) {
  Spot spot;
  const Divisor& size = p.axes.size[RANK - 1];
  i32 cols = static_cast<i32>(size.value), length = p.length;
  if constexpr (WALK == RAGGED) {
    u32 row = divide(pack, p.row_packs);
    place<false>(spot, row, 0, p);
    i32 head = static_cast<i32>(p.head + spot.at[WALKED - 1]) & (VEC - 1);
    spot.first = static_cast<i32>(pack - row * static_cast<u32>(p.row_packs.value)) * VEC - head;
    length = cols;
#pragma unroll
    for (int k = 0; k < WALKED; ++k) spot.at[k] += spot.first * p.axes.stride[k][RANK - 1];
  } else {
    spot.first = static_cast<i32>(pack) * VEC - p.head;
    if constexpr (WALK != SHORT) {
      u32 row = RANK > 1 ? divide(static_cast<u32>(max(spot.first, 0)), size) : 0;
      i32 col = spot.first - static_cast<i32>(row) * cols;
      spot.split = cols - col;
      place<WALK == NARROW>(spot, row, col, p);
    }
  }
  spot.complete = WALK == WHOLE || (spot.first >= 0 && spot.first <= length - VEC);
  return spot;
}

template <int K, class T> __device__ __forceinline__ T one(const T* from, const Offset* at, const Broadcast& p) {
  if constexpr (K < ARITY) return element(from, at[K], p.scalar[K]);
  else return T{};
}

template <bool SPLIT, int K, int WAY, class T>
__device__ __forceinline__ void fetch(Items<T, VEC>& items, const T* from, const Spot& spot, const Broadcast& p) {
  if constexpr (K >= ARITY) {
    return;
  } else if constexpr (WALK != SHORT) {
    Place place = {spot.at[K], p.axes.stride[K][RANK - 1], spot.jump[K], spot.split, p.low[K], p.high[K]};
    items = read<WAY, SPLIT>(from, place, p.scalar[K]);
  } else if constexpr (WAY == PACKED) {
    items = load_items<VEC>(from + spot.first);
  }
}

// Prefetches `lines` cache lines of an operand to L2: each of the grid's first threads requests one.
template <class T> __device__ __forceinline__ void fetch_ahead(const T* from, Offset low, i32 lines) {
#ifdef __CUDA_ARCH__
  i32 line = blockIdx.x * BLOCK + threadIdx.x;
  const char* first = reinterpret_cast<const char*>(from + low);
  if (line < lines) asm volatile("prefetch.global.L2 [%0];" ::"l"(first + line * i64(LINE)));
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
broadcast(Tout* y, const Ta* a, const Tb* b, const Tc* c, Broadcast p) {
  wait_for_previous();
  u32 first = blockIdx.x * (BLOCK * UNROLL) + threadIdx.x;
  if (blockIdx.x < p.ahead) {
    fetch_ahead(a, p.low[0], p.lines[0]);
    if constexpr (ARITY > 1) fetch_ahead(b, p.low[1], p.lines[1]);
    if constexpr (ARITY > 2) fetch_ahead(c, p.low[2], p.lines[2]);
  }
  Items<Ta, VEC> pa[UNROLL];
  Items<Tb, VEC> pb[UNROLL];
  Items<Tc, VEC> pc[UNROLL];
  Spot spots[UNROLL];
  bool ready[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    ready[u] = false;
    if (first + u * BLOCK >= p.packs) continue;
    spots[u] = find(first + u * BLOCK, p);
    ready[u] = spots[u].complete && (WALK != CROSSING || RANK == 1 || spots[u].split >= VEC);
    if (!ready[u]) continue;
    fetch<WALK == NARROW, 0, WAY_A>(pa[u], a, spots[u], p);
    fetch<WALK == NARROW, 1, WAY_B>(pb[u], b, spots[u], p);
    fetch<WALK == NARROW, 2, WAY_C>(pc[u], c, spots[u], p);
    if constexpr (WALK == SHORT) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        Offset at[WALKED];
        p.axes.locate(static_cast<u32>(spots[u].first + v), at);
        if (WAY_A != PACKED) pa[u].set(v, one<0>(a, at, p));
        if (WAY_B != PACKED) pb[u].set(v, one<1>(b, at, p));
        if (WAY_C != PACKED) pc[u].set(v, one<2>(c, at, p));
      }
    }
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    const Spot& spot = spots[u];
    if (first + u * BLOCK >= p.packs) continue;
    Offset at[WALKED];
    if (ready[u]) {
      Offset to = DENSE ? static_cast<Offset>(spot.first) : spot.at[WALKED - 1];
      store_past_l1(y + to, mapped(pa[u], pb[u], pc[u], p.option));
    } else if (!spot.complete) {  // a partial pack: the head or tail of the output (RAGGED: of a row)
      i32 length = WALK == RAGGED ? static_cast<i32>(p.axes.size[RANK - 1].value) : p.length;
#pragma unroll 1
      for (i32 v = max(-spot.first, 0); v < min(length - spot.first, VEC); ++v) {
        if constexpr (WALK == RAGGED) {
#pragma unroll
          for (int k = 0; k < WALKED; ++k) at[k] = spot.at[k] + v * p.axes.stride[k][RANK - 1];
        } else {
          p.axes.locate(static_cast<u32>(spot.first + v), at);
        }
        y[DENSE ? static_cast<Offset>(spot.first + v) : at[WALKED - 1]] =
            Map::apply(one<0>(a, at, p), one<1>(b, at, p), one<2>(c, at, p), p.option);
      }
    }
  }
  if constexpr (WALK == CROSSING && RANK > 1) {  // this block's packs that cross a row's end: at most one per thread
    const Divisor& size = p.axes.size[RANK - 1];
    i32 cols = static_cast<i32>(size.value), start = static_cast<i32>(first - threadIdx.x) * VEC - p.head;
    i32 stop = min(start + BLOCK * UNROLL * VEC, p.length);
    u32 last = divide(static_cast<u32>(stop - 1), size);
    u32 row = divide(static_cast<u32>(max(start, 0)), size) + threadIdx.x;
    u32 end = (row + 1) * cols, before = (end + p.head) % VEC;
    if (row < last && before != 0) {
      Spot spot;
      spot.first = end - before;
      spot.split = before;
      place<true>(spot, row, cols - before, p);
      fetch<true, 0, WAY_A>(pa[0], a, spot, p);
      fetch<true, 1, WAY_B>(pb[0], b, spot, p);
      fetch<true, 2, WAY_C>(pc[0], c, spot, p);
      store_past_l1(y + spot.first, mapped(pa[0], pb[0], pc[0], p.option));
    }
  }
}
