// Reduces short rows of any length that are contiguous one after the other. A block copies r.chunk rows, one contiguous
// piece, to shared memory in packs of 16 bytes. Then TEAM threads reduce each row. A second operand that lies as x is copied,
// too (BESIDE); a row that all rows share is read where it is (LOOSE).
// blockIdx.x: r.chunk rows. Prologue, besides that of reduce.cuh: VEC, TEAM, UNROLL (packs of a thread), BLOCK.

// Whether packs are copied asynchronously, not through registers: for exact sums of elements. (Sums of products and of squares
// were slower so, and what takes few instructions.)
template <class O, bool = O::EXACT> constexpr bool SUM_OF_ELEMENTS = false;
template <class O> constexpr bool SUM_OF_ELEMENTS<O, true> = O::PARTS == 1 && !O::MULTIPLIES;
constexpr bool COPIED = OTHER == NONE && SUM_OF_ELEMENTS<Op>;

// A block's piece of an array on its way to shared memory: `count` elements from number `from` on, every BLOCK-th pack of which is
// a thread's. `high`: how many elements the array has.
template <class T, class Where> struct Piece {
  static constexpr int EACH = 16 / sizeof(T);
  using Packed = Items<T, EACH>;
  Packed* stage;
  Packed packs[UNROLL];
  i32 head;  // elements of the first pack before the piece
  i32 count;

  __device__ __forceinline__ Piece(Pack<u32, 4>* to, const Where& x, i64 from, i32 count, i64 high) : stage(reinterpret_cast<Packed*>(to)), head(index_of(x + from) % EACH), count(count) {
    i32 before = min(from, static_cast<i64>(EACH)), after = min(high - from, static_cast<i64>(BLOCK * UNROLL * EACH));
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      i32 at = place(u);
      if (at >= count) continue;
      if (at + before >= 0 && at + EACH <= after) {
        if constexpr (COPIED) copy_items(stage + pack(u), x + from + at);
        else packs[u] = load_items<EACH>(x + from + at);
      } else {  // at either end of the array: single loads
#pragma unroll
        for (int v = 0; v < EACH; ++v) packs[u].set(v, at + v >= 0 && at + v < count ? x[from + at + v] : T{});
        if constexpr (COPIED) stage[pack(u)] = packs[u];
      }
    }
    if constexpr (COPIED) copies_sent();
  }
  // Its first element in shared memory. (A barrier must follow.)
  __device__ __forceinline__ const T* put() const {
    if constexpr (COPIED) copies_there<0>();
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (!COPIED && place(u) < count) stage[pack(u)] = packs[u];
    }
    return reinterpret_cast<const T*>(stage) + head;
  }
  static __device__ __forceinline__ i32 pack(int u) { return threadIdx.x + u * BLOCK; }
  __device__ __forceinline__ i32 place(int u) const { return pack(u) * EACH - head; }
};

// Threads of a multiprocessor. Of exact sums with a second operand, ptxas spills if it may choose how many.
constexpr int AT_LEAST = !Op::EXACT || OTHER == NONE ? 0 : OTHER == BESIDE || COMPLEX<Tin> ? 1024 : 1280;

extern "C" __global__ void __launch_bounds__(BLOCK, AT_LEAST / BLOCK)
reduce_staged(SOURCE x, const Tb* b, Tout* y, Tz* z, u64* tickets, State* partials, Launch launch, Reduce r) {
  wait_for_previous();
  __shared__ Pack<u32, 4> stage[(OTHER == BESIDE ? 2 : 1) * BLOCK * UNROLL];
  Context<A> c = context(r, r.packs, r.packs, 64);
  i64 first = blockIdx.x * r.chunk, from = first * r.packs, stride = OTHER == LOOSE ? r.reduced.stride[1][0] : 1;
  i32 length = r.packs, rows = min(r.chunk, r.outputs - first), count = rows * length;
  Piece<Tin, Source> piece(stage, x, from, count, r.high);
  const Tin* item;
  const Tb* other = b;
  if constexpr (OTHER == BESIDE) {
    Piece<Tb, const Tb*> beside(stage + BLOCK * UNROLL, b, from, count, r.high);
    item = piece.put(), other = beside.put();
  } else {
    item = piece.put();
  }
  __syncthreads();
  let_next_start();
  u32 open = 0;
  for (i32 base = 0; base < rows; base += BLOCK / TEAM) {
    i32 row = base + threadIdx.x / TEAM;
    auto element = [&](i32 i) { return item[row * length + i]; };
    auto second = [&](i32 i) {
      if constexpr (OTHER == NONE) return Tb{};
      else return other[OTHER == BESIDE ? row * length + i : i * stride];
    };
    State value = reduced<TEAM, 4>(row < rows ? length : 0, element, second, c);
    value = warp_reduce<Op, TEAM>(value);
    Offset at[3];
    r.kept.locate(static_cast<Index>(first + min(row, rows - 1)), at);
    if (row < rows && threadIdx.x % TEAM == 0) open |= write(y, z, at[2], value, r, c) << base / (BLOCK / TEAM);
  }
  settle(open, x, b, y, z, r, c, length,
         [&](int step, Offset (&at)[3]) { r.kept.locate(static_cast<Index>(first + step * (BLOCK / TEAM) + threadIdx.x / TEAM), at); },
         [&](i64 i, Offset (&at)[2]) { at[0] = i, at[1] = i * stride; });
}
