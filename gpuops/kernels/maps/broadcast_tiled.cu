// The maps of broadcast.cuh where operands are contiguous along another dim than the output (transposed arrays). A
// block writes a square tile of the output: TILE rows along that other dim, TILE columns along the output's innermost
// dim. TILED operands are read along their own contiguous dim into shared memory, and from there along the output's.
// Prologue, besides that of broadcast.cuh: RANK (of the outer dims), TILE, BLOCK.
// A tile in shared memory, in words of B elements: 4 bytes of small elements, or one larger element. Small elements are
// transposed in registers, in blocks of B × B. Rows are padded to an odd number of words: no bank conflicts in either
// direction.
template <class T, bool USED> struct Tile {
  static constexpr int B = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  Items<T, B> word[TILE][TILE / B + 1];
};
template <class T> struct Tile<T, false> {};

// out[v] item w = in[w] item v
template <class T, int B> __device__ __forceinline__ void transpose(Items<T, B> (&out)[B], const Items<T, B> (&in)[B]) {
  if constexpr (B == 1) {
    out[0] = in[0];
  } else if constexpr (B == 2) {
    out[0].word[0] = __byte_perm(in[0].word[0], in[1].word[0], 0x5410);
    out[1].word[0] = __byte_perm(in[0].word[0], in[1].word[0], 0x7632);
  } else {
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // items 0 and 1, then 2 and 3
      u32 top = __byte_perm(in[0].word[0], in[1].word[0], half ? 0x7362 : 0x5140);
      u32 bottom = __byte_perm(in[2].word[0], in[3].word[0], half ? 0x7362 : 0x5140);
      out[2 * half].word[0] = __byte_perm(top, bottom, 0x5410);
      out[2 * half + 1].word[0] = __byte_perm(top, bottom, 0x7632);
    }
  }
}

// INSIDE: the whole tile lies inside the output.
template <bool INSIDE, class T>
__device__ __forceinline__ void fill(Tile<T, true>& tile, const T* from, i32 rows, i32 cols, Offset across, Offset along,
                                     bool wide) {
  constexpr int B = Tile<T, true>::B, SIDE = TILE / B, LANES = 32 / B, STEPS = (SIDE * SIDE + BLOCK - 1) / BLOCK;
  // Whether a step may go past the tile. For small elements the check stays even where it always passes: with it the
  // compiler interleaves loads with stores instead of holding all loads in registers, which is faster.
  constexpr bool PART = SIDE * SIDE % BLOCK != 0 || B > 1;
  Items<T, B> in[STEPS][B];
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    int i = threadIdx.x + s * BLOCK, warp = i / 32;  // a warp: LANES blocks along the rows, B along the columns
    int row = (i % LANES + warp % (SIDE / LANES) * LANES) * B, col = (i % 32 / LANES + warp / (SIDE / LANES) * B) * B;
#pragma unroll
    for (int w = 0; w < B; ++w) {
      if ((!INSIDE && col + w >= cols) || (PART && i >= SIDE * SIDE)) continue;
      const T* here = from + (col + w) * across + row * along;
      if (B > 1 && wide && (INSIDE || row + B <= rows)) {
        in[s][w] = load_items<B>(here);
      } else {
#pragma unroll
        for (int v = 0; v < B; ++v) {
          if (INSIDE || row + v < rows) in[s][w].set(v, here[v * along]);
        }
      }
    }
  }
#pragma unroll
  for (int s = 0; s < STEPS; ++s) {
    int i = threadIdx.x + s * BLOCK, warp = i / 32;
    int row = (i % LANES + warp % (SIDE / LANES) * LANES) * B, col = i % 32 / LANES + warp / (SIDE / LANES) * B;
    if (PART && i >= SIDE * SIDE) continue;
    Items<T, B> turned[B];
    transpose(turned, in[s]);
#pragma unroll
    for (int v = 0; v < B; ++v) tile.word[row + v][col] = turned[v];
  }
}

template <int K, int WAY, class T>
__device__ __forceinline__ void prepare(Tile<T, WAY == TILED>& tile, const T* from, const Offset* at, i32 row, i32 col,
                                        const Tiled& p) {
  if constexpr (WAY == TILED) {
    const T* corner = from + at[K] + row * p.along[K] + col * p.across[K];
    i32 rows = p.rows - row, cols = p.cols - col;
    if (rows >= TILE && cols >= TILE) fill<true>(tile, corner, rows, cols, p.across[K], p.along[K], p.wide[K]);
    else fill<false>(tile, corner, rows, cols, p.across[K], p.along[K], p.wide[K]);
  }
}

// Reads the pack at (row, col) of the tile whose corner is at (row0, col0).
template <int K, int WAY, class T>
__device__ __forceinline__ void take(Items<T, VEC>& items, const Tile<T, WAY == TILED>& tile, const T* from,
                                     const Offset* at, i32 row0, i32 col0, i32 row, i32 col, const Tiled& p) {
  if constexpr (WAY == TILED) {
    constexpr int B = Tile<T, true>::B;
    if constexpr (VEC >= B) {
#pragma unroll
      for (int w = 0; w < VEC / B; ++w) {
        Items<T, B> word = tile.word[row][col / B + w];
        if constexpr (B > 1) items.word[w] = word.word[0];
        else items.set(w, word.get(0));
      }
    } else {
#pragma unroll
      for (int v = 0; v < VEC; ++v) items.set(v, tile.word[row][(col + v) / B].get((col + v) % B));
    }
  } else if constexpr (K < ARITY) {
    Place place = {at[K] + (row0 + row) * p.along[K] + (col0 + col) * p.across[K], p.across[K]};
    items = read<WAY, false>(from, place, p.scalar[K]);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
broadcast_tiled(Tout* y, const Ta* a, const Tb* b, const Tc* c, Tiled p) {
  wait_for_previous();
  __shared__ Tile<Ta, WAY_A == TILED> ta;
  __shared__ Tile<Tb, WAY_B == TILED> tb;
  __shared__ Tile<Tc, WAY_C == TILED> tc;
  u32 strip = divide(blockIdx.x, p.tile_cols), outer = divide(strip, p.tile_rows);
  i32 col0 = static_cast<i32>(blockIdx.x - strip * static_cast<u32>(p.tile_cols.value)) * TILE;
  i32 row0 = static_cast<i32>(strip - outer * static_cast<u32>(p.tile_rows.value)) * TILE;
  Offset at[ARITY + 1];
  p.axes.locate(outer, at);
  prepare<0, WAY_A>(ta, a, at, row0, col0, p);
  prepare<1, WAY_B>(tb, b, at, row0, col0, p);
  prepare<2, WAY_C>(tc, c, at, row0, col0, p);
  __syncthreads();
#pragma unroll 4
  for (int i = threadIdx.x; i < TILE * TILE / VEC; i += BLOCK) {
    int row = i / (TILE / VEC), col = i % (TILE / VEC) * VEC;
    if (row0 + row >= p.rows || col0 + col >= p.cols) continue;
    Items<Ta, VEC> pa;
    Items<Tb, VEC> pb;
    Items<Tc, VEC> pc;
    take<0, WAY_A>(pa, ta, a, at, row0, col0, row, col, p);
    take<1, WAY_B>(pb, tb, b, at, row0, col0, row, col, p);
    take<2, WAY_C>(pc, tc, c, at, row0, col0, row, col, p);
    Tout* to = y + at[ARITY] + (row0 + row) * p.along[ARITY] + (col0 + col) * p.across[ARITY];
    store_past_l1(to, mapped(pa, pb, pc, p.option));
  }
}
