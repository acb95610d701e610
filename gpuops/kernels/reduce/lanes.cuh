// How lanes add up exact sums.

namespace gpuops {

// The greatest of lanes that differ in bits HIGH … LOW of their index.
__device__ __forceinline__ i32 lanes_max(i32 x, int low, int high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (low == 1 && high == 16) return __reduce_max_sync(0xffffffffu, x);
#endif
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    if (mask >= low && mask <= high) x = max(x, shuffle_xor(x, mask));
  }
  return x;
}
// The greatest of the lanes of a row, or of the whole block. Each CALL has memory of its own.
template <int LANES, int CALL> __device__ __forceinline__ i32 row_max(i32 x) {
  if constexpr (LANES <= 32) {
    return lanes_max(x, 1, LANES / 2);
  } else {
    __shared__ i32 cell[LANES / 32];
    x = lanes_max(x, 1, 16);
    if (threadIdx.x % 32 == 0) cell[threadIdx.x / 32] = x;
    __syncthreads();
    return lanes_max(cell[threadIdx.x % (LANES / 32)], 1, 16);
  }
}
// The sums of two numbers over the lanes of a row, or of the whole block.
template <int LANES> __device__ __forceinline__ void row_sums(double& a, double& b) {
#pragma unroll
  for (int mask = (LANES < 32 ? LANES : 32) / 2; mask > 0; mask /= 2) a += shuffle_xor(a, mask), b += shuffle_xor(b, mask);
  if constexpr (LANES > 32) {
    __shared__ double cell[2][LANES / 32];
    if (threadIdx.x % 32 == 0) cell[0][threadIdx.x / 32] = a, cell[1][threadIdx.x / 32] = b;
    __syncthreads();
    a = cell[0][threadIdx.x % (LANES / 32)], b = cell[1][threadIdx.x % (LANES / 32)];
#pragma unroll
    for (int mask = LANES / 64; mask > 0; mask /= 2) a += shuffle_xor(a, mask), b += shuffle_xor(b, mask);
  }
}
// Adds up integers over all lanes, 26 bits at a time.
__device__ __forceinline__ Int128 warp_sum(Int128 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  constexpr u32 MASK = (1u << 26) - 1, ALL = 0xffffffffu;
  u64 middle = x.low >> 52 | static_cast<u64>(x.high) << 12;
  u64 a = __reduce_add_sync(ALL, static_cast<u32>(x.low) & MASK), b = __reduce_add_sync(ALL, static_cast<u32>(x.low >> 26) & MASK);
  u64 c = __reduce_add_sync(ALL, static_cast<u32>(middle) & MASK), d = __reduce_add_sync(ALL, static_cast<u32>(x.high >> 14) & MASK);
  i64 e = __reduce_add_sync(ALL, static_cast<i32>(x.high >> 40));
  b += a >> 26, c += b >> 26, d += c >> 26;
  return {(a & MASK) | (b & MASK) << 26 | c << 52, static_cast<i64>((c & MASK) >> 12) + (static_cast<i64>(d) << 14) + (e << 40)};
#else
  for (int mask = 16; mask > 0; mask /= 2) x = x + shuffle_xor(x, mask);
  return x;
#endif
}
template <int WIDTH, class T> __device__ __forceinline__ T lanes_sum(T x) {
#pragma unroll
  for (int mask = WIDTH / 2; mask > 0; mask /= 2) x = x + shuffle_xor(x, mask);
  return x;
}
// Adds up exact sums over lanes, as exact_lanes does: ALIKE, or in the greatest unit or exponent.
template <int WIDTH, bool WHOLE, bool ALIKE> __device__ __forceinline__ Fixed exact_sum(Fixed x) {
  if constexpr (WIDTH < 32) {
    return lanes_sum<WIDTH>(x);
  } else {
    i32 unit = lanes_max(x.unit, 1, 16);
    if (__any_sync(0xffffffffu, unit == SPECIAL)) return lanes_sum<32>(x);
    x = x.in_unit(unit);
    float lost = bit_cast<float>(lanes_max(bit_cast<i32>(x.lost), 1, 16)) * 32;
    return {warp_sum(x.integer), unit, lost};
  }
}
template <int WIDTH, bool WHOLE, bool ALIKE> __device__ __forceinline__ Near exact_sum(Near x) { return lanes_sum<WIDTH>(x); }
template <int WIDTH, bool WHOLE, bool ALIKE> __device__ __forceinline__ Aligned exact_sum(Aligned x) {
  if constexpr (!ALIKE) {
    i32 exponent = lanes_max(x.exponent, 1, WHOLE ? 16 : WIDTH / 2);
    if (x.exponent != exponent) x = Aligned::raised(x, exponent);
  }
  float lost = WHOLE ? bit_cast<float>(lanes_max(bit_cast<i32>(x.lost), 1, 16)) * WIDTH : lanes_sum<WIDTH>(x.lost);
  return {lanes_sum<WIDTH>(x.s), lanes_sum<WIDTH>(x.rest), x.exponent, lost};
}
template <class Op, int WIDTH, bool WHOLE> __device__ __forceinline__ typename Op::State exact_lanes(typename Op::State value) {
#pragma unroll
  for (int p = 0; p < Op::PARTS; ++p) value.part[p] = exact_sum<WIDTH, WHOLE, Op::ALIKE>(value.part[p]);
  if constexpr (Op::COUNTING) {
#pragma unroll
    for (int mask = WIDTH / 2; mask > 0; mask /= 2) value.n = decltype(value.n)::of(value.n.get() + shuffle_xor(value.n, mask).get());
  }
  return value;
}

}  // namespace gpuops
