// A thread computes SIDE × SIDE elements: 2 * SIDE values in registers serve SIDE * SIDE products.
// Block tile TILE × TILE of out, DEPTH along k; (TILE / SIDE)² threads.
extern "C" __global__ void __launch_bounds__((TILE / SIDE) * (TILE / SIDE))
matmul_blocktile_2d(const Ta* a, const Tb* b, const Tc* c, Tout* out, Matmul p) {
  wait_for_previous();
  constexpr int ACROSS = TILE / SIDE, THREADS = ACROSS * ACROSS;
  __shared__ A tile_a[TILE][DEPTH], tile_b[DEPTH][TILE];
  Tile tile(blockIdx.x, ceil_div(p.m, TILE), ceil_div(p.n, TILE));
  Product product(p, a, b, c, out, tile.batch);
  int x = threadIdx.x % ACROSS * SIDE, y = threadIdx.x / ACROSS * SIDE;
  i64 row = tile.row * i64(TILE), col = tile.col * i64(TILE);
  A sum[SIDE][SIDE] = {};
  for (i64 first = 0; first < p.k; first += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
      tile_a[i / DEPTH][i % DEPTH] = product.get_a(row + i / DEPTH, first + i % DEPTH);
      tile_b[i / TILE][i % TILE] = product.get_b(first + i / TILE, col + i % TILE);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      A left[SIDE], right[SIDE];
#pragma unroll
      for (int i = 0; i < SIDE; ++i) left[i] = tile_a[y + i][k], right[i] = tile_b[k][x + i];
#pragma unroll
      for (int i = 0; i < SIDE; ++i) {
#pragma unroll
        for (int j = 0; j < SIDE; ++j) add_product(sum[i][j], left[i], right[j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < SIDE; ++i) {
#pragma unroll
    for (int j = 0; j < SIDE; ++j) product.put(row + y + i, col + x + j, sum[i][j]);
  }
}
