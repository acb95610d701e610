// The classic ladder: one block of BLOCK threads reduces one chunk of one output's elements.
// blockIdx.x: the output; blockIdx.y: the split. The FIRST pass reads x and writes partial results as (splits,
// outputs). The next pass, also this kernel, reads those. The LAST pass writes results. RELATIVE: shift holds a (max,
// sum) pair per output, and max is Context::shift. Each thread first adds up every BLOCK-th element, so that
// neighbouring threads read neighbouring elements. Then STEP reduces the block's BLOCK values to one:
//   CROSS        strides 1, 2, 4, …: thread t adds value t + stride if t is a multiple of 2 * stride. The active
//                threads lie ever further apart: warps run with idle lanes, and shared memory has bank conflicts.
//   INTERLEAVED  strides n/2, n/4, …: the first half adds the second half. The active threads stay together: whole
//                warps retire, and there are no bank conflicts.
//   SHUFFLE      warp shuffles within each warp; shared memory and a barrier only once, between warps.
// Prologue, besides that of reduce.cuh: FIRST, LAST, STEP, RELATIVE, BLOCK.
enum Step { CROSS, INTERLEAVED, SHUFFLE };

__device__ State block_step(State value) {
  if constexpr (STEP == SHUFFLE) return block_reduce<Op, BLOCK>(value);
  __shared__ State cell[BLOCK];
  int t = threadIdx.x;
  cell[t] = value;
  __syncthreads();
  if constexpr (STEP == CROSS) {
    for (int stride = 1; stride < BLOCK; stride *= 2) {
      if (t % (2 * stride) == 0) cell[t] = Op::combine(cell[t], cell[t + stride]);
      __syncthreads();
    }
  } else {
    for (int half = BLOCK / 2; half > 0; half /= 2) {
      if (t < half) cell[t] = Op::combine(cell[t], cell[t + half]);
      __syncthreads();
    }
  }
  return cell[0];
}

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_block(SOURCE x, const Tb* b, Tout* y, State* partials, Reduce r, const void* shift) {
  wait_for_previous();
  i64 output = blockIdx.x, split = blockIdx.y;
  Offset kept[3], reduced[2];
  r.kept.locate(static_cast<Index>(output), kept);
  i64 first_chunk = FIRST ? r.chunk : 2 * (r.runs / r.packs);  // at most, of two splits and more
  Context<A> c = context(r, 1, r.runs, (first_chunk + (FIRST ? 0 : r.packs)) / BLOCK + 64);
  if constexpr (RELATIVE) c.shift = static_cast<const A*>(shift)[2 * output];  // max of the (max, sum) pair
  i64 end = min(r.packs, (split + 1) * r.chunk);
  State value = Op::identity();
  for (i64 i = split * r.chunk + threadIdx.x; i < end; i += BLOCK) {
    if constexpr (FIRST) {
      r.reduced.locate(static_cast<Index>(i), reduced);
      value = joined(value, x[kept[0] + reduced[0]],
                     OTHER == NONE ? decltype(element(b)){} : element(b + kept[1] + reduced[1]), c);
    } else {
      value = Op::combine(value, partials[i * r.outputs + output]);
    }
  }
  value = block_step(value);
  if constexpr (LAST) {
    bool open = false;
    if (threadIdx.x == 0) y[kept[2]] = finished<>(value, r, c, open);
    settle(open, x, b, y, static_cast<Tz*>(nullptr), r, c, r.runs, [&](int, Offset (&at)[3]) { copy(at, kept); },
           [&](i64 i, Offset (&at)[2]) { r.reduced.locate(static_cast<Index>(i), at); });
  } else if (threadIdx.x == 0) {
    partials[split * r.outputs + output] = value;
  }
}
