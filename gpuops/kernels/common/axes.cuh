// From a flat index to offsets in strided arrays.
namespace gpuops {

// Division by a number known on the host: q = (mulhi(n, magic) + n) >> shift (Granlund & Montgomery, 1994). Exact for
// n < 2^31. 64-bit indices use plain division.
struct Divisor { u64 value; u32 magic, shift; };
template <class Index> __device__ __forceinline__ Index divide(Index n, const Divisor& by) {
  if constexpr (sizeof(Index) == 4) return (__umulhi(n, by.magic) + n) >> by.shift;
  else return n / by.value;
}

// A dim: its length, and each operand's stride in elements (any sign, 0 where it broadcasts).
template <int OPERANDS, class Offset> struct Dim {
  Divisor size;
  Offset stride[OPERANDS];
};

// RANK dims, innermost first. With 4 or more, those that are missing are filled up with dims of length 1.
template <int RANK, int OPERANDS, class Offset = i64> struct Axes {
  Dim<OPERANDS, Offset> dim[RANK];

  // at[k] = offset of operand k, in elements, at flat `index` (C order over all dims but the FIRST innermost ones).
  template <int FIRST = 0, class Index> __device__ __forceinline__ void locate(Index index, Offset (&at)[OPERANDS]) const {
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) at[k] = 0;
#pragma unroll
    for (int d = FIRST; d < RANK; ++d) {
      bool last = d == RANK - 1 || (RANK >= 4 && dim[d + 1].size.shift == 0);  // the other dims have length 1
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

// How the threads of a block share outputs: 2^lanes threads to each of 2^wide outputs. Threads of an output are
// neighbours (with more than 32, the block has one output) or, if `across`, 2^wide threads apart (of 32 outputs at most).
struct Shares {
  i32 lanes, wide, across;

  __device__ __forceinline__ u32 output() const {
    return across ? threadIdx.x & ((1u << wide) - 1) : threadIdx.x >> lanes;
  }
  __device__ __forceinline__ u32 lane() const { return across ? threadIdx.x >> wide : threadIdx.x & ((1u << lanes) - 1); }
};

// How a matrix lies: strides in elements.
struct Strides { i64 row, col; };

}  // namespace gpuops
