// Row ops: what the kernels that keep rows on chip make of a row. Each row has a key, and a sum of its elements' terms
// relative to that; the results are made of the elements, or of the terms that replaced them, and of the row's state. A
// record of gpuops/definition/records.py names its struct.
//   MAXIMUM     the key comes from the row's maximum (otherwise the terms of all parts have the same scale)
//   size(z)     what that is the maximum of; also of each of a pair of half types
//   KEEP        terms overwrite the elements
//   left_out()  what stands for an element that the mask leaves out; its term must be 0
//   Base        the terms: of(z), and what Powers of ops.cuh has besides
//   Ending      the results
// Prologue, besides that of softmax.cuh: APART.

// A partial state: the key, and the sum of terms relative to it, as `stored`. The sum of an empty part rescales to 0.
struct alignas(2 * sizeof(V)) State { V max, sum; };
__device__ __forceinline__ State state_of(V max, Total sum) { return {max, Of::stored(sum)}; }
template <class Op, class B> __device__ __forceinline__ V lift(V key, const B& to) {
  return Op::MAXIMUM && key == Limits<V>::least() ? V(0) : to.lift(key);
}

// softmax and, if LOG, log_softmax.
struct SoftmaxOp {
  static constexpr bool MAXIMUM = true;
  static constexpr bool KEEP = SAME<Tin, V> && !LOG && !APART;
  static constexpr int RAISED = SAME<Tout, bf16> ? 64 : 0;  // bfloat16's subnormals are below float32's normal range
  static constexpr bool HUGE = !SAME<Tin, f16> || SCALED;
  // SHORT exponentials are precise enough for half-type results. The exception is bfloat16 from float32: near 2^29,
  // neighbouring float32 values differ by 64, and exp(-64) is not 0 in bfloat16.
  static constexpr bool QUICK = HALF<Tout> && !(RAISED && SAME<Tin, V> && !LOG);
  // Result: exponentials that results are made of. Base: those that are only added up; their errors mostly cancel.
  using Result = Powers<V, LEAVES_OUT ? Taken::PLAIN : QUICK ? Taken::SHORT : LOG ? Taken::PLAIN : Taken::CLOSE, HUGE,
                        LEAVES_OUT ? 0 : RAISED>;
  using Base = Powers<V, LEAVES_OUT ? Taken::PLAIN : QUICK ? Taken::SHORT : KEEP ? Taken::CLOSE : Taken::PLAIN, HUGE,
                      LEAVES_OUT ? 0 : RAISED>;

  static __device__ __forceinline__ V left_out() { return Limits<V>::least(); }
  template <class T> static __device__ __forceinline__ T size(T z) { return z; }
  template <class B> static __device__ __forceinline__ V logarithm(State row, const B& base) {
    return row.max == Limits<V>::greatest() ? V(0) : Of::log(row.sum * base.rest());
  }

  struct Ending {
    Result base;
    V top, factor;

    Ending() = default;
    // part: the key of the exponentials that were kept (WHOLE: it is the row's own). row: the row's state.
    template <bool WHOLE> static __device__ __forceinline__ Ending of(V part, State row, const Softmax&) {
      Ending end;
      end.base = Result(SAME<Result, Base> ? row.max : Result::key(row.max)), end.top = row.max;
      if constexpr (LOG) end.factor = logarithm(row, end.base);
      else if constexpr (!SAME<Result, Base>) end.factor = 1 / (row.sum * end.base.of(row.max));
      else end.factor = (KEEP && !WHOLE ? lift<SoftmaxOp>(part, end.base) : V(1)) / row.sum;
      return end;
    }
    __device__ __forceinline__ V operator()(V value) const {
      if constexpr (LOG) return value - top - factor;
      else if constexpr (KEEP) return value * factor;
      else return base.of(value) * factor;
    }
  };
};

// x / sqrt(mean(x * x) + floor * floor). Squares are of elements times a power of 2, by which the largest is near 1, so
// that they neither overflow nor vanish. Those of narrower dtypes do not in V.
struct RmsNormOp {
  static constexpr bool MAXIMUM = SAME<Tin, V> || SAME<Tin, bf16>, KEEP = false;
  struct Base {
    using Bits = Either<sizeof(V) == 8, u64, u32>::type;
    static constexpr Bits DIGITS = sizeof(V) == 8 ? 52 : 23, TOP = sizeof(V) == 8 ? 2046 : 254;  // the largest exponent
    V factor = 1;
    Base() = default;
    __device__ explicit Base(V key) {
      if constexpr (MAXIMUM) factor = bit_cast<V>((TOP - min(bit_cast<Bits>(key) >> DIGITS, TOP - 1)) << DIGITS);
    }
    static __device__ V key(V max) { return max; }
    __device__ V of(V z) const { return z * factor * (z * factor); }
    __device__ V lift(V key) const { return of(1 / Base(key).factor); }
  };

  static __device__ __forceinline__ V left_out() { return 0; }
  static __device__ __forceinline__ V size(V z) { return fabs(z); }
  static __device__ __forceinline__ u32 size(u32 pair) { return pair & 0x7fff7fffu; }

  struct Ending {
    V factor, inverse;

    Ending() = default;
    template <bool> static __device__ __forceinline__ Ending of(V, State row, const Softmax& p) {
      V floor = static_cast<V>(p.option);
      Base base(greater_of(row.max, floor));
      Ending end;
      end.factor = base.factor;
      end.inverse = 1 / sqrt(row.sum * (MAXIMUM ? base.lift(row.max) : V(1)) / static_cast<V>(p.cols) + base.of(floor));
      return end;
    }
    __device__ __forceinline__ V operator()(V value) const { return value * factor * inverse; }
  };
};
