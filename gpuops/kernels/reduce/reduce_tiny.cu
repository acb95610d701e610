// Reduces rows of LENGTH elements. A thread takes ROWS rows and loads all of them, in packs of VEC, before it uses the
// first. LENGTH is the only size that is compiled in: the loops over such short rows are unrolled.
// blockIdx.x: BLOCK * ROWS rows. PILED: rows are contiguous one after the other, and so are results. A thread takes
// neighbouring rows: a pack may cross rows, and one store writes all results. Otherwise a thread takes every BLOCK-th
// row, and a pack lies in one row.
constexpr int PACKS = ROWS * LENGTH / VEC, APART = PILED ? 1 : BLOCK, STORED = PILED ? ROWS : 1;

// Threads of a multiprocessor. Of exact sums of floats, ptxas spills more if it may choose how many.
constexpr int AT_LEAST = SUMS<Op> == 0 || !SAME<Tin, f32> ? 0 : UNDIVIDED<Op> ? 1536 : 1024;

extern "C" __global__ void __launch_bounds__(BLOCK, AT_LEAST / BLOCK)
reduce_tiny(SOURCE x, const Tb* b, Tout* y, Tz* z, u64* tickets, State* partials, Launch launch, Reduce r) {
  wait_for_previous();
  Context<A> c = context(r, LENGTH, LENGTH, 1);
  Index first = blockIdx.x * static_cast<Index>(BLOCK * ROWS) + threadIdx.x * STORED, outputs = r.outputs;
  bool some = first < outputs, whole = some && (!PILED || first + ROWS <= outputs);
  if (!Op::EXACT && !some) return;
  Pack_x packs[PACKS];
  Offset kept[ROWS][3];
#pragma unroll
  for (int k = 0; k < ROWS; ++k) r.kept.locate(min(first + k * APART, outputs - 1), kept[k]);
  if (whole) {
#pragma unroll
    for (int n = 0; n < PACKS; ++n) {
      Offset at[2] = {n * VEC, 0};
      if constexpr (!PILED) r.reduced.locate(static_cast<Index>(n * VEC % LENGTH), at);
      packs[n] = load_items<VEC>(x + kept[PILED ? 0 : n * VEC / LENGTH][0] + at[0]);
    }
  } else {
#pragma unroll
    for (int n = 0; n < ROWS * LENGTH; ++n) packs[n / VEC].set(n % VEC, some ? x[kept[n / LENGTH][0] + n % LENGTH] : Tin{});
  }
  let_next_start();
  Items<clean_t<Tin, VEC>, VEC> items[PACKS];
#pragma unroll
  for (int n = 0; n < PACKS; ++n) items[n] = cleaned(packs[n]);
  Results<STORED> results[ROWS / STORED];
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    State value = reduced<1, LENGTH>(LENGTH, [&](int i) { return items[(k * LENGTH + i) / VEC].get((k * LENGTH + i) % VEC); }, [](int) { return Tb{}; }, c);
    results[k / STORED].set(k % STORED, value, r, c);
  }
  u32 open = 0;
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    if (first + k * APART >= outputs) continue;
    open |= (results[k / STORED].open >> k % STORED & 1) << k;
    if (!whole) results[0].store_one(y, z, kept[k][2], k % STORED);
    else if (k % STORED == 0) results[k / STORED].store(y, z, kept[k][2], r);
  }
  settle(open, x, b, y, z, r, c, LENGTH,
         [&](int k, Offset (&at)[3]) { r.kept.locate(static_cast<Index>(first + k * APART), at); },
         [&](i64 i, Offset (&at)[2]) {
           at[0] = i, at[1] = 0;
           if constexpr (!PILED) r.reduced.locate(static_cast<Index>(i), at);
         });
}
