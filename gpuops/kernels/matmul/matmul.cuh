// What the matrix products have in common: out = alpha · a @ b + beta · c, for one product or a batch of them.
// Prologue: Ta, Tb, Tc, Tout, V (in which NumPy would compute), Offset (within a tile), BATCH (dims), VEC_OUT.

using A = accumulate_t<V>;

// Parameters: struct Matmul (gpuops/plan/products/rungs.py). a: (m, k), b: (k, n), c and out: (m, n), each with any two
// strides, in elements.

// A block's tile of out: which product of the batch, and the tile's row and column in it. Consecutive blocks take
// `group` tiles of a column, then those of the next column: blocks that run together share operands in the L2 cache.
struct Tile {
  u32 batch, row, col;
  __device__ __forceinline__ Tile(u32 block, u32 rows, u32 cols, u32 group = 1) {
    group = group < rows ? group : rows;  // group * cols is at most `tiles`
    u32 tiles = rows * cols, in_batch = block % tiles;
    u32 first = in_batch / (group * cols) * group, high = rows - first < group ? rows - first : group;
    batch = block / tiles;
    row = first + in_batch % (group * cols) % high;
    col = in_batch % (group * cols) / high;
  }
};
__device__ __forceinline__ u32 ceil_div(i64 size, int by) { return static_cast<u32>((size + by - 1) / by); }

__device__ __forceinline__ void add_product(A& sum, A x, A y) { sum = static_cast<A>(sum + static_cast<A>(x * y)); }
template <class T> __device__ __forceinline__ T scalar(const u64 (&bytes)[2]) {
  T value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

// One product of the batch; after begin_at, its results are those of a tile.
struct Product {
  const Matmul& p;
  Offset m, n;  // rows and columns of out (after begin_at: of the tile)
  const Ta* a;
  const Tb* b;
  const Tc* c;
  Tout* out;

  __device__ __forceinline__ Product(const Matmul& p, const Ta* a, const Tb* b, const Tc* c, Tout* out, u32 batch)
      : p(p), m(static_cast<Offset>(p.m)), n(static_cast<Offset>(p.n)) {
    i64 at[4];
    p.batch.locate(batch, at);
    this->out = out + at[0], this->a = a + at[1], this->b = b + at[2], this->c = c + at[3];
  }
  // An element, or a pack of N contiguous ones, converted to A. A pack is entirely inside or entirely outside; outside,
  // it is 0.
  __device__ __forceinline__ A get_a(i64 row, i64 k) const { return pack_a<1>(row, k).item[0]; }
  __device__ __forceinline__ A get_b(i64 k, i64 col) const { return pack_b<1>(k, col).item[0]; }
  template <int N> __device__ __forceinline__ Pack<A, N> pack_a(i64 row, i64 k) const {
    return pack<N>(a + row * p.a.row + k * p.a.col, row < p.m && k < p.k);
  }
  template <int N> __device__ __forceinline__ Pack<A, N> pack_b(i64 k, i64 col) const {
    return pack<N>(b + k * p.b.row + col * p.b.col, k < p.k && col < p.n);
  }
  template <int N, class T> static __device__ __forceinline__ Pack<A, N> pack(const T* from, bool inside) {
    Pack<A, N> out{};
    if (!inside) return out;
    Pack<T, N> items = load<N>(from);
#pragma unroll
    for (int e = 0; e < N; ++e) out.item[e] = convert<A>(items.item[e]);
    return out;
  }
  // From here on, rows and columns of results count from (row, col), and there are at most rows × cols of them.
  __device__ __forceinline__ void begin_at(i64 row, i64 col, int rows, int cols) {
    m = static_cast<Offset>(p.m - row < rows ? p.m - row : rows), n = static_cast<Offset>(p.n - col < cols ? p.n - col : cols);
    out += row * p.out.row + col * p.out.col, c += row * p.c.row + col * p.c.col;
  }
  // Writes a result, or N neighbours in a row, in stores of VEC elements.
  __device__ __forceinline__ void put(Offset row, Offset col, A sum) const {
    A one[1] = {sum};
    put<1, 1>(row, col, one);
  }
  template <int N, int VEC = VEC_OUT> __device__ __forceinline__ void put(Offset row, Offset col, A (&sum)[N]) const {
    if (p.scaled || p.added) adjust(row, col, sum);
    write<N, VEC>(row, col, sum);
  }
  // Multiplies the sums by alpha and adds beta · c.
  template <int N> __device__ __forceinline__ void adjust(Offset row, Offset col, A (&sum)[N]) const {
    const Tc* more = c + (row * static_cast<Offset>(p.c.row) + col * static_cast<Offset>(p.c.col));
#pragma unroll
    for (int e = 0; e < N; ++e) {
      // (Only if alpha is not 1: 1 times a complex infinity is NaN.)
      if (p.scaled) sum[e] = static_cast<A>(scalar<A>(p.alpha) * sum[e]);
      if (p.added && row < m && col + e < n) {
        add_product(sum[e], scalar<A>(p.beta), convert<A>(more[e * static_cast<Offset>(p.c.col)]));
      }
    }
  }
  template <int N, int VEC> __device__ __forceinline__ void write(Offset row, Offset col, const A (&sum)[N]) const {
    if (row >= m) return;
#pragma unroll
    for (int j = 0; j < N; j += VEC) {
      if (col + j >= n) continue;
      Items<Tout, VEC> items;
#pragma unroll
      for (int e = 0; e < VEC; ++e) items.set(e, convert<Tout>(convert<V>(sum[j + e])));
      Offset step = VEC > 1 ? 1 : static_cast<Offset>(p.out.col);  // packs are contiguous
      store_past_l1<VEC>(out + (row * static_cast<Offset>(p.out.row) + (col + j) * step), items);
    }
  }
};
