// From a flat index to offsets in strided arrays.
namespace gpuops {

// Division by a number known on the host: q = (mulhi(n, magic) + n) >> shift (Granlund & Montgomery, 1994). Exact for
// n < 2^31. 64-bit indices use plain division.
struct Divisor { u64 value; u32 magic, shift; };
template <class Index> __device__ __forceinline__ Index divide(Index n, const Divisor& by) {
  if constexpr (sizeof(Index) == 4) return (__umulhi(n, by.magic) + n) >> by.shift;
  else return n / by.value;
}

// RANK dims, outermost first. stride[k]: operand k's strides in elements (any sign, 0 where it broadcasts).
template <int RANK, int OPERANDS, class Offset = i64> struct Axes {
  Divisor size[RANK];
  Offset stride[OPERANDS][RANK];

  // at[k] = offset of operand k, in elements, at flat `index` (C order over the first DIMS dims).
  template <int DIMS = RANK, class Index> __device__ __forceinline__ void locate(Index index, Offset (&at)[OPERANDS]) const {
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) at[k] = 0;
#pragma unroll
    for (int d = DIMS - 1; d >= 0; --d) {
      Index outer = d > 0 ? divide(index, size[d]) : 0;
      Offset here = static_cast<Offset>(index - outer * static_cast<Index>(size[d].value));
      index = outer;
#pragma unroll
      for (int k = 0; k < OPERANDS; ++k) at[k] += here * stride[k][d];
    }
  }
};

// Up to RANK dims, innermost first. Missing ones come last, with length 1, and cost nothing. A dim is adjacent to its
// strides, so that it takes few cache lines.
template <int OPERANDS, class Offset> struct Dim {
  Divisor size;
  Offset stride[OPERANDS];
};
template <int RANK, int OPERANDS, class Offset = i64> struct Dims {
  Dim<OPERANDS, Offset> dim[RANK];

  // As Axes::locate, over all dims.
  template <class Index> __device__ __forceinline__ void locate(Index index, Offset (&at)[OPERANDS]) const {
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) at[k] = 0;
#pragma unroll
    for (int d = 0; d < RANK; ++d) {
      bool last = d == RANK - 1 || dim[d + 1].size.shift == 0;
      Index outer = 0, here = index;
      if (!last) {
        outer = divide(index, dim[d].size);
        here = index - outer * static_cast<Index>(dim[d].size.value);
      }
#pragma unroll
      for (int k = 0; k < OPERANDS; ++k) at[k] += static_cast<Offset>(here) * dim[d].stride[k];
      if (last) break;
      index = outer;
    }
  }
};

// How the threads of a block are divided among outputs: 2^lanes threads for each of 2^wide outputs. An output's threads are
// neighbours (more than 32: the block has one output) or, if `across`, 2^wide threads apart (at most 32 outputs).
struct Shares {
  i32 lanes, wide, across;

  __device__ __forceinline__ u32 output() const {
    return across ? threadIdx.x & ((1u << wide) - 1) : threadIdx.x >> lanes;
  }
  __device__ __forceinline__ u32 lane() const { return across ? threadIdx.x >> wide : threadIdx.x & ((1u << lanes) - 1); }
};

// The layout of a matrix: strides in elements.
struct Strides { i64 row, col; };

}  // namespace gpuops
