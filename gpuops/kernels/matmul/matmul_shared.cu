// A block loads a tile of a and a tile of b, TILE × TILE each, to shared memory. TILE threads read each element there:
// TILE times fewer loads from global memory. One thread per element of out, TILE * TILE of them.
extern "C" __global__ void __launch_bounds__(TILE * TILE)
matmul_shared(const Ta* a, const Tb* b, const Tc* c, Tout* out, Matmul p) {
  wait_for_previous();
  __shared__ A tile_a[TILE][TILE], tile_b[TILE][TILE];
  Tile tile(blockIdx.x, ceil_div(p.m, TILE), ceil_div(p.n, TILE));
  Product product(p, a, b, c, out, tile.batch);
  int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  i64 row = tile.row * i64(TILE) + y, col = tile.col * i64(TILE) + x;
  A sum{};
  for (i64 first = 0; first < p.k; first += TILE) {
    tile_a[y][x] = product.get_a(row, first + x);
    tile_b[y][x] = product.get_b(first + y, col);
    __syncthreads();
    for (int k = 0; k < TILE; ++k) add_product(sum, tile_a[y][k], tile_b[k][x]);
    __syncthreads();
  }
  product.put(row, col, sum);
}
