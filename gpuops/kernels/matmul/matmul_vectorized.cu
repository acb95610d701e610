// As blocktile_2d, but with vectorised access in packs: VEC_A elements of a along k, VEC_B of b along n, VEC_OUT of
// out. a's tile is transposed on its way to shared memory, so that a thread reads its rows, too, in packs.
extern "C" __global__ void __launch_bounds__((TILE / SIDE) * (TILE / SIDE))
matmul_vectorized(const Ta* a, const Tb* b, const Tc* c, Tout* out, Matmul p) {
  wait_for_previous();
  constexpr int ACROSS = TILE / SIDE, THREADS = ACROSS * ACROSS;
  __shared__ __align__(16) A tile_a[DEPTH][TILE], tile_b[DEPTH][TILE];
  Tile tile(blockIdx.x, ceil_div(p.m, TILE), ceil_div(p.n, TILE));
  Product product(p, a, b, c, out, tile.batch);
  int x = threadIdx.x % ACROSS * SIDE, y = threadIdx.x / ACROSS * SIDE;
  i64 row = tile.row * i64(TILE), col = tile.col * i64(TILE);
  A sum[SIDE][SIDE] = {};
  for (i64 first = 0; first < p.k; first += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH / VEC_A; i += THREADS) {
      int r = i / (DEPTH / VEC_A), k = i % (DEPTH / VEC_A) * VEC_A;
      Pack<A, VEC_A> items = product.pack_a<VEC_A>(row + r, first + k);
#pragma unroll
      for (int e = 0; e < VEC_A; ++e) tile_a[k + e][r] = items.item[e];
    }
    for (int i = threadIdx.x; i < TILE * DEPTH / VEC_B; i += THREADS) {
      int k = i / (TILE / VEC_B), j = i % (TILE / VEC_B) * VEC_B;
      store(&tile_b[k][j], product.pack_b<VEC_B>(first + k, col + j));
    }
    __syncthreads();
    for (int k = 0; k < DEPTH; ++k) {
      Pack<A, SIDE> left = load<SIDE>(&tile_a[k][y]), right = load<SIDE>(&tile_b[k][x]);
#pragma unroll
      for (int i = 0; i < SIDE; ++i) {
#pragma unroll
        for (int j = 0; j < SIDE; ++j) add_product(sum[i][j], left.item[i], right.item[j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < SIDE; ++i) product.put(row + y + i, col + x, sum[i]);
}
