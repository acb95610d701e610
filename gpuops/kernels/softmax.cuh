// What the softmax kernels share: their parameters, and the classic ones' view of a row.
// Prologue: Tin, V (float or double, for the arithmetic), Tout, Index, Offset, KEPT, REDUCED
// (ranks), MASK, SCALED, LOG.

using Op = MaxExpSum<V>;
using State = Op::State;

// How the mask lies: there is NONE, packs of it lie BESIDE those of x, or its elements are SCATTERED.
enum Mask { NONE, BESIDE, SCATTERED };

struct Softmax {
  i64 rows, cols;                     // rows: packs of them, if a thread has several
  i64 packs, chunk;                   // of a row, chunk of them to a block
  i64 staged;                         // of a thread, in shared memory
  i64 team;                           // blocks to a row, if they are more than a cluster
  double scale;
  Axes<KEPT, 3, Offset> kept;         // operands x, mask, y: which row
  Axes<REDUCED, 3, Offset> reduced;   // operands x, mask, y: which of its elements
};

__device__ __forceinline__ V scaled(Tin x, const Softmax& p) {
  return SCALED ? convert<V>(x) * static_cast<V>(p.scale) : convert<V>(x);
}

// A row as the classic kernels see it: its elements as x * scale in V, -inf where the mask leaves them out
struct Row {
  const Softmax& p;
  const Tin* x;
  const bool* mask;
  Tout* y;
  Offset row[3];

  __device__ Row(const Softmax& p, const Tin* x, const bool* mask, Tout* y, i64 index) : p(p), x(x), mask(mask), y(y) {
    p.kept.locate(static_cast<Index>(index), row);
  }
  __device__ bool chosen(i64 col) const {
    if constexpr (MASK == NONE) return true;
    Offset at[3];
    p.reduced.locate(static_cast<Index>(col), at);
    return mask[row[1] + at[1]];
  }
  __device__ V get(i64 col) const {
    Offset at[3];
    p.reduced.locate(static_cast<Index>(col), at);
    return chosen(col) ? scaled(x[row[0] + at[0]], p) : Limits<V>::least();
  }
  __device__ V shifted_exp(i64 col, V max) const { return chosen(col) ? exp(get(col) - max) : V(0); }
  __device__ void put(i64 col, V value, V max, V sum) const {
    Offset at[3];
    p.reduced.locate(static_cast<Index>(col), at);
    y[row[2] + at[2]] = result(value, chosen(col), max, sum);
  }
  static __device__ Tout result(V value, bool chosen, V max, V sum) {
    if constexpr (LOG) return convert<Tout>(chosen ? log_softmax(value, max, sum) : Limits<V>::least());
    else return convert<Tout>(chosen ? exp(value - max) / sum : V(0));
  }
};
