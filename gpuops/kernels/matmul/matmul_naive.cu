// The first rung: one thread per element of out, which reads a row of a and a column of b from global memory.
// The lanes of a warp take neighbouring rows: their loads of a fall into a line each, if rows of a are contiguous.
extern "C" __global__ void __launch_bounds__(BLOCK)
matmul_naive(const Ta* a, const Tb* b, const Tc* c, Tout* out, Matmul p) {
  wait_for_previous();
  Tile tile(blockIdx.x, ceil_div(p.m, 32), ceil_div(p.n, BLOCK / 32));
  Product product(p, a, b, c, out, tile.batch);
  i64 row = tile.row * i64(32) + threadIdx.x % 32, col = tile.col * i64(BLOCK / 32) + threadIdx.x / 32;
  A sum{};
  if (row < p.m && col < p.n) {
    for (i64 k = 0; k < p.k; ++k) add_product(sum, product.get_a(row, k), product.get_b(k, col));
  }
  product.put(row, col, sum);
}
