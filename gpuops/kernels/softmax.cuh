// What the softmax kernels share. Typed prologue: Tin, Tout, V (float or double), Index, KEPT, REDUCED, MASKED, LOG.
namespace gpuops {

struct SoftmaxRows {
  Axes<KEPT, 3> kept;        // operands x, mask, y: which row
  Axes<REDUCED, 3> reduced;  // operands x, mask, y: which of its elements
  i64 rows, cols;
  double scale;
};

// One row: its elements as x * scale in V, -inf where the mask leaves them out.
struct Row {
  const SoftmaxRows& p;
  const Tin* x;
  const bool* mask;
  Tout* y;
  i64 row[3];

  __device__ Row(const SoftmaxRows& p, const Tin* x, const bool* mask, Tout* y, i64 index) : p(p), x(x), mask(mask), y(y) {
    p.kept.locate(static_cast<Index>(index), row);
  }
  __device__ V get(i64 col, bool& chosen) const {
    i64 at[3];
    p.reduced.locate(static_cast<Index>(col), at);
    chosen = !MASKED || mask[row[1] + at[1]];
    return chosen ? convert<V>(x[row[0] + at[0]]) * static_cast<V>(p.scale) : Limits<V>::least();
  }
  __device__ V get(i64 col) const {
    bool chosen;
    return get(col, chosen);
  }
  __device__ V shifted_exp(i64 col, V max) const {
    bool chosen;
    V value = get(col, chosen);
    return chosen ? exp(value - max) : V(0);
  }
  __device__ void put(i64 col, V max, V sum) const {
    bool chosen;
    V value = get(col, chosen);
    i64 at[3];
    p.reduced.locate(static_cast<Index>(col), at);
    y[row[2] + at[2]] = result(value, chosen, max, sum);
  }
  static __device__ Tout result(V value, bool chosen, V max, V sum) {
    if constexpr (LOG) return convert<Tout>(chosen ? log_softmax(value, max, sum) : Limits<V>::least());
    else return convert<Tout>(chosen ? exp(value - max) / sum : V(0));
  }
};

}  // namespace gpuops
