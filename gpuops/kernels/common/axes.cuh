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

// How a matrix lies: strides in elements.
struct Strides { i64 row, col; };

}  // namespace gpuops
