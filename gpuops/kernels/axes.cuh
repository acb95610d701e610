// How a flat index walks a strided array.
namespace gpuops {

// Division by a number known on the host: q = mulhi(n, magic) + n >> shift (Granlund & Montgomery, 1994), exact for
// n < 2^31; wider indices divide.
struct Divisor { u64 value; u32 magic, shift; };
template <class Index> __device__ __forceinline__ Index divide(Index n, const Divisor& by) {
  if constexpr (sizeof(Index) == 4) return (__umulhi(n, by.magic) + n) >> by.shift;
  else return n / by.value;
}

// RANK dims, outermost first; stride[k] are those of operand k, in elements (any sign, 0 where it broadcasts).
template <int RANK, int OPERANDS> struct Axes {
  Divisor size[RANK];
  i64 stride[OPERANDS][RANK];

  // at[k] = where operand k's element number `index` (C order over the dims) lies, from its first element.
  template <class Index> __device__ __forceinline__ void locate(Index index, i64 (&at)[OPERANDS]) const {
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) at[k] = 0;
#pragma unroll
    for (int d = RANK - 1; d > 0; --d) {
      Index outer = divide(index, size[d]);
      i64 here = static_cast<i64>(index - outer * static_cast<Index>(size[d].value));
      index = outer;
#pragma unroll
      for (int k = 0; k < OPERANDS; ++k) at[k] += here * stride[k][d];
    }
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) at[k] += static_cast<i64>(index) * stride[k][0];
  }
};

}  // namespace gpuops
