// As naive, but the lanes of a warp take neighbouring columns. For each k they read one line of b and one element of a;
// and they write one line.
extern "C" __global__ void __launch_bounds__(BLOCK)
matmul_coalesced(const Ta* a, const Tb* b, const Tc* c, Tout* out, Matmul p) {
  wait_for_previous();
  Tile tile(blockIdx.x, ceil_div(p.m, BLOCK / 32), ceil_div(p.n, 32));
  Product product(p, a, b, c, out, tile.batch);
  i64 row = tile.row * i64(BLOCK / 32) + threadIdx.x / 32, col = tile.col * i64(32) + threadIdx.x % 32;
  A sum{};
  if (row < p.m && col < p.n) {
    for (i64 k = 0; k < p.k; ++k) add_product(sum, product.get_a(row, k), product.get_b(k, col));
  }
  product.put(row, col, sum);
}
