// Selection: the true elements of a condition as bits, in C order, and the places that they get.
//
// A tile is 32 bits for each thread of a block. `bits` has them, in words; `before` how many are set in earlier tiles of the
// same run of `span` tiles; `runs` how many are set in earlier runs. Bit `head` stands for the first element.

constexpr int TILE = 32 * BLOCK;

// The sum of earlier threads' values, and that of all.
template <class T> struct Prefix { T before, total; };
template <class T> __device__ __forceinline__ Prefix<T> prefix(T value) {
  __shared__ T sums[BLOCK / 32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T sum = value;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    T other = __shfl_up_sync(0xffffffffu, sum, by);
    sum += lane >= by ? other : 0;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  Prefix<T> found = {sum - value, 0};
#pragma unroll
  for (int w = 0; w < BLOCK / 32; ++w) {
    found.before += w < warp ? sums[w] : 0;
    found.total += sums[w];
  }
  return found;
}

// Calls store(place, load(element)) for each element that the block's tile selects: neighbouring threads for neighbouring
// places. Each thread loads AHEAD elements before it stores one.
template <int AHEAD, class Load, class Store>
__device__ __forceinline__ void each_selected(const u32* bits, const u32* before, const i64* runs, i64 span, i64 head, Load load, Store store) {
  __shared__ u16 chosen[TILE];
  i64 tile = blockIdx.x, first = runs[tile / span] + before[tile];
  u32 word = bits[tile * BLOCK + threadIdx.x];
  auto [at, count] = prefix<u32>(__popc(word));
  for (; word; word &= word - 1) chosen[at++] = static_cast<u16>(threadIdx.x * 32 + __ffs(word) - 1);
  __syncthreads();
  Index base = static_cast<Index>(tile * TILE - head);
  for (u32 start = threadIdx.x; start < count; start += AHEAD * BLOCK) {
    decltype(load(base)) value[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
      u32 place = start + i * BLOCK;
      if (place < count) value[i] = load(base + chosen[place]);
    }
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
      u32 place = start + i * BLOCK;
      if (place < count) store(first + place, value[i]);
    }
  }
}
