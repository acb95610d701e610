// bits, before, runs: as in select.cuh. index0, …: the indices of true elements along N neighbouring dims of the condition,
// the outermost first. FIRST: these dims are its first ones; LAST: its last ones. One block per tile.

extern "C" __global__ void __launch_bounds__(BLOCK) select_indices(
    const u32* __restrict__ bits, const u32* __restrict__ before, const i64* __restrict__ runs, i64* __restrict__ index0,
    i64* __restrict__ index1, i64* __restrict__ index2, i64* __restrict__ index3, SelectIndices p) {
  wait_for_previous();
  i64* const to[4] = {index0, index1, index2, index3};
  auto same = [](Index element) { return element; };
  each_selected<2>(bits, before, runs, p.span, p.head, same, [&](i64 place, Index element) {
    Index rest = LAST ? element : divide(element, p.inner);
#pragma unroll
    for (int d = N - 1; d >= 0; --d) {
      Index outer = d > 0 || !FIRST ? divide(rest, p.dims.size[d]) : 0;
      to[d][place] = rest - outer * static_cast<Index>(p.dims.size[d].value);
      rest = outer;
    }
  });
}
