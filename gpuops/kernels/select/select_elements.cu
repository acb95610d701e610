// bits, before, runs: as in select.cuh. a: an array that is as long as the condition, in C order; out: one dim of stride
// `step`, for the elements where the condition is true. One block per tile.

extern "C" __global__ void __launch_bounds__(BLOCK) select_elements(
    const u32* __restrict__ bits, const u32* __restrict__ before, const i64* __restrict__ runs, const Tin* __restrict__ a,
    Tout* __restrict__ out, SelectElements p) {
  wait_for_previous();
  auto read = [&](Index element) {
    if constexpr (DENSE) {
      return a[element];
    } else {
      Offset place[1];
      p.dims.locate(element, place);
      return a[place[0]];
    }
  };
  each_selected<4>(bits, before, runs, p.span, p.head, read, [&](i64 place, Tin value) { out[place * p.step] = convert<Tout>(value); });
}
