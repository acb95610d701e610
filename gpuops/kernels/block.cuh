// Reducing one value per thread to one value per group, warp or block.
namespace gpuops {

template <class S> __device__ S shuffle_xor(S value, int mask) {  // a State of any size, a word at a time
  constexpr int WORDS = (sizeof(S) + 3) / 4;
  u32 word[WORDS] = {};
  memcpy(word, &value, sizeof value);
#pragma unroll
  for (int w = 0; w < WORDS; ++w) word[w] = __shfl_xor_sync(0xffffffffu, word[w], mask);
  memcpy(&value, word, sizeof value);
  return value;
}

// Every lane of an aligned group of WIDTH lanes gets the group's value. All 32 lanes of the warp take part.
template <class Op, int WIDTH = 32> __device__ typename Op::State warp_reduce(typename Op::State value) {
#pragma unroll
  for (int mask = WIDTH / 2; mask > 0; mask /= 2) value = Op::combine(value, shuffle_xor(value, mask));
  return value;
}

// Every thread of a block of THREADS (a multiple of 32) gets the block's value. A kernel calls it once for each Op:
// every Op has shared memory of its own, so that no barrier need come after.
template <class Op, int THREADS> __device__ typename Op::State block_reduce(typename Op::State value) {
  __shared__ typename Op::State partial[THREADS / 32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_reduce<Op>(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = lane < THREADS / 32 ? partial[lane] : Op::identity();
  return warp_reduce<Op>(value);
}

}  // namespace gpuops
