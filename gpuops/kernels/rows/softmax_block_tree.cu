// The second rung: one block of BLOCK threads per row. Each row is now read three times (maximum, sum, result). But
// thread t reads the t-th run of neighbouring elements, so that a warp's 32 loads fall into 32 different lines. The
// block's values are reduced to one by a tree in shared memory, with a barrier at every level.
template <class Op> __device__ typename Op::State block_tree(typename Op::State value) {
  __shared__ typename Op::State cell[BLOCK];
  int t = threadIdx.x;
  cell[t] = value;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (t < half) cell[t] = Op::combine(cell[t], cell[t + half]);
    __syncthreads();
  }
  return cell[0];
}

extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_block_tree(SOURCE x, const b8* mask, Tout* y, Softmax p) {
  wait_for_previous();
  Row row(p, x, mask, y, blockIdx.x);
  i64 run = (p.cols + BLOCK - 1) / BLOCK, begin = threadIdx.x * run, end = min(begin + run, p.cols);
  V max = Limits<V>::least();
  Total sum{};
  for (i64 c = begin; c < end; ++c) max = Max<V>::combine(max, row.get(c));
  max = block_tree<Max<V>>(max);
  for (i64 c = begin; c < end; ++c) sum = sum + row.power(c, max);
  sum = block_tree<Added<Total>>(sum);
  for (i64 c = begin; c < end; ++c) row.put(c, row.get(c), max, sum);
}
