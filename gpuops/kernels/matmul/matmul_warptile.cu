// As vectorized, but each warp has a tile of its own, laid out so that its lanes read few different words of shared
// memory: 8 × 4 lanes with THREAD_M × THREAD_N elements each, in squares of 4 × 4 that lie 32 rows or 16 columns apart.
// A block is four warps, two by two.
constexpr int WARP_M = 8 * THREAD_M, WARP_N = 4 * THREAD_N;

extern "C" __global__ void __launch_bounds__(128)
matmul_warptile(const Ta* a, const Tb* b, const Tc* c, Tout* out, Matmul p) {
  wait_for_previous();
  constexpr int TILE_M = 2 * WARP_M, TILE_N = 2 * WARP_N, THREADS = 128;
  __shared__ __align__(16) A tile_a[DEPTH][TILE_M + 4], tile_b[DEPTH][TILE_N];
  Tile tile(blockIdx.x, ceil_div(p.m, TILE_M), ceil_div(p.n, TILE_N));
  Product product(p, a, b, c, out, tile.batch);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int y = warp / 2 * WARP_M + lane / 4 * 4, x = warp % 2 * WARP_N + lane % 4 * 4;
  i64 row = tile.row * i64(TILE_M), col = tile.col * i64(TILE_N);
  A sum[THREAD_M][THREAD_N / 4][4] = {};
  for (i64 first = 0; first < p.k; first += DEPTH) {
    for (int i = threadIdx.x; i < TILE_M * DEPTH / VEC_A; i += THREADS) {
      int r = i / (DEPTH / VEC_A), k = i % (DEPTH / VEC_A) * VEC_A;
      Pack<A, VEC_A> items = product.pack_a<VEC_A>(row + r, first + k);
#pragma unroll
      for (int e = 0; e < VEC_A; ++e) tile_a[k + e][r] = items.item[e];
    }
    for (int i = threadIdx.x; i < TILE_N * DEPTH / VEC_B; i += THREADS) {
      int k = i / (TILE_N / VEC_B), j = i % (TILE_N / VEC_B) * VEC_B;
      store(&tile_b[k][j], product.pack_b<VEC_B>(first + k, col + j));
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      Pack<A, 4> left[THREAD_M / 4], right[THREAD_N / 4];
#pragma unroll
      for (int i = 0; i < THREAD_M / 4; ++i) left[i] = load<4>(&tile_a[k][y + 32 * i]);
#pragma unroll
      for (int j = 0; j < THREAD_N / 4; ++j) right[j] = load<4>(&tile_b[k][x + 16 * j]);
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) add_product(sum[i][j / 4][j % 4], left[i / 4].item[i % 4], right[j / 4].item[j % 4]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
    for (int j = 0; j < THREAD_N / 4; ++j) product.put(row + y + i / 4 * 32 + i % 4, col + x + 16 * j, sum[i][j]);
  }
}
