// A thread computes ROWS elements of a column: an element of b, once in a register, serves ROWS products.
// Block tile TILE × TILE of out, DEPTH along k; TILE * TILE / ROWS threads = TILE * DEPTH, so that each fetches one
// element of a's tile and one of b's.
extern "C" __global__ void __launch_bounds__(TILE * DEPTH)
matmul_blocktile_1d(const Ta* a, const Tb* b, const Tc* c, Tout* out, Matmul p) {
  wait_for_previous();
  static_assert(TILE == ROWS * DEPTH, "a thread fetches one element of either tile");
  __shared__ A tile_a[TILE][DEPTH], tile_b[DEPTH][TILE];
  Tile tile(blockIdx.x, ceil_div(p.m, TILE), ceil_div(p.n, TILE));
  Product product(p, a, b, c, out, tile.batch);
  int x = threadIdx.x % TILE, y = threadIdx.x / TILE;           // position in b's tile and in out's
  int a_k = threadIdx.x % DEPTH, a_row = threadIdx.x / DEPTH;   // position in a's tile
  i64 row = tile.row * i64(TILE), col = tile.col * i64(TILE);
  A sum[ROWS] = {};
  for (i64 first = 0; first < p.k; first += DEPTH) {
    tile_a[a_row][a_k] = product.get_a(row + a_row, first + a_k);
    tile_b[y][x] = product.get_b(first + y, col + x);
    __syncthreads();
    for (int k = 0; k < DEPTH; ++k) {
      A right = tile_b[k][x];
#pragma unroll
      for (int i = 0; i < ROWS; ++i) add_product(sum[i], tile_a[y * ROWS + i][k], right);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i) product.put(row + y * ROWS + i, col + x, sum[i]);
}
