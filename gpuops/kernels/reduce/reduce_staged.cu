// Reduces short rows of any length that are contiguous one after the other. A block copies r.chunk rows, one contiguous
// piece, to shared memory in packs of 16 bytes. Then TEAM threads reduce each row.
// blockIdx.x: r.chunk rows. Prologue, besides that of reduce.cuh: VEC, TEAM, UNROLL (packs of a thread), BLOCK.
extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_staged(SOURCE x, const Tb* b, Tout* y, Tz* z, u64* tickets, State* partials, Launch launch, Reduce r) {
  wait_for_previous();
  __shared__ Pack<u32, 4> stage[BLOCK * UNROLL];
  Context<A> c = context(r, r.packs, r.packs, 64);
  i64 first = blockIdx.x * r.chunk, from = first * r.packs;
  i32 before = min(from, static_cast<i64>(VEC)), after = min(r.high - from, static_cast<i64>(BLOCK * UNROLL * VEC));
  i32 length = r.packs, rows = min(r.chunk, r.outputs - first), count = rows * length;
  i32 head = index_of(x + from) % VEC;  // elements of the first pack before the rows
  Pack_x packs[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    i32 at = (threadIdx.x + u * BLOCK) * VEC - head;
    if (at >= count) continue;
    if (at + before >= 0 && at + VEC <= after) {
      packs[u] = load_items<VEC>(x + from + at);
    } else {  // at either end of the array: single loads
#pragma unroll
      for (int v = 0; v < VEC; ++v) packs[u].set(v, at + v >= 0 && at + v < count ? x[from + at + v] : Tin{});
    }
    stage[threadIdx.x + u * BLOCK] = bit_cast<Pack<u32, 4>>(packs[u]);
  }
  __syncthreads();
  let_next_start();
  u32 open = 0;
  const Tin* item = reinterpret_cast<const Tin*>(stage) + head;
  for (i32 base = 0; base < rows; base += BLOCK / TEAM) {
    i32 row = base + threadIdx.x / TEAM;
    const Tin* from = item + row * length;
    State value = reduced<TEAM, 4>(row < rows ? length : 0, [&](i32 i) { return from[i]; }, c);
    value = warp_reduce<Op, TEAM>(value);
    Offset at[3];
    r.kept.locate(static_cast<Index>(first + min(row, rows - 1)), at);
    if (row < rows && threadIdx.x % TEAM == 0) open |= write(y, z, at[2], value, r, c) << base / (BLOCK / TEAM);
  }
  settle(open, x, b, y, z, r, c, length,
         [&](int step, Offset (&at)[3]) { r.kept.locate(static_cast<Index>(first + step * (BLOCK / TEAM) + threadIdx.x / TEAM), at); },
         [&](i64 i, Offset (&at)[2]) { at[0] = i, at[1] = 0; });
}
