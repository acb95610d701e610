// y[i] = Map(a[i], b[i], c[i]) over collapsed, broadcasting dims: expand, where, and the last pass of a softmax.
// A thread makes UNROLL packs of VEC elements, BLOCK packs apart; the innermost dim counts packs. Along it an operand is
//   PACKED    stride 1, aligned: one wide load
//   REPEATED  stride 0: one element for the whole pack
//   STRIDED   anything else: VEC single loads
// Typed prologue: Map, Ta, Tb, Tc, Tout, Index, RANK, VEC, UNROLL, BLOCK, WAY_A, WAY_B, WAY_C, WAY_OUT.
enum Way { PACKED, REPEATED, STRIDED };

struct Broadcast {
  Axes<RANK, 4> axes;           // operands y, a, b, c
  i64 packs, inner_stride[4];
  double scale;
  u64 immediate[3][2];          // the value of an operand that is a scalar: its pointer is null
};

template <int WAY, class T> __device__ __forceinline__ Pack<T, VEC> read(const T* from, i64 at, i64 stride, const u64* immediate) {
  Pack<T, VEC> pack;
  if constexpr (WAY == PACKED) {
    pack = load<VEC>(from + at);
  } else if constexpr (WAY == REPEATED) {
    T value;
    if (from) value = from[at];
    else memcpy(&value, immediate, sizeof value);
#pragma unroll
    for (int v = 0; v < VEC; ++v) pack.item[v] = value;
  } else {
#pragma unroll
    for (int v = 0; v < VEC; ++v) pack.item[v] = from[at + v * stride];
  }
  return pack;
}

struct Expand {
  template <class A, class B, class C> static __device__ __forceinline__ Tout apply(A a, B, C, double) { return convert<Tout>(a); }
};

struct Where {
  template <class A, class B, class C> static __device__ __forceinline__ Tout apply(A condition, B x, C y, double) {
    return nonzero(condition) ? convert<Tout>(x) : convert<Tout>(y);
  }
};

// a is x, b each row's maximum and sum of exp(x * scale - maximum), c the mask.
struct Softmax {
  template <class A, class B, class C> static __device__ __forceinline__ Tout apply(A x, B row, C chosen, double scale) {
    using V = decltype(row.max);
    V value = convert<V>(x) * static_cast<V>(scale);
    return convert<Tout>(chosen ? exp(value - row.max) / row.sum : V(0));
  }
};

struct LogSoftmax {
  template <class A, class B, class C> static __device__ __forceinline__ Tout apply(A x, B row, C chosen, double scale) {
    using V = decltype(row.max);
    V value = convert<V>(x) * static_cast<V>(scale);
    return convert<Tout>(chosen ? log_softmax(value, row.max, row.sum) : Limits<V>::least());
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
broadcast(Tout* y, const Ta* a, const Tb* b, const Tc* c, Broadcast p) {
  i64 first = blockIdx.x * static_cast<i64>(BLOCK * UNROLL) + threadIdx.x;
  Pack<Ta, VEC> pa[UNROLL];
  Pack<Tb, VEC> pb[UNROLL];
  Pack<Tc, VEC> pc[UNROLL];
  i64 to[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    i64 pack = first + u * BLOCK, at[4];
    if (pack >= p.packs) continue;
    p.axes.locate(static_cast<Index>(pack), at);
    to[u] = at[0];
    pa[u] = read<WAY_A>(a, at[1], p.inner_stride[1], p.immediate[0]);
    pb[u] = read<WAY_B>(b, at[2], p.inner_stride[2], p.immediate[1]);
    pc[u] = read<WAY_C>(c, at[3], p.inner_stride[3], p.immediate[2]);
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    if (first + u * BLOCK >= p.packs) continue;
    Pack<Tout, VEC> out;
#pragma unroll
    for (int v = 0; v < VEC; ++v) out.item[v] = Map::apply(pa[u].item[v], pb[u].item[v], pc[u].item[v], p.scale);
    if constexpr (WAY_OUT == PACKED) store(y + to[u], out);
    else {
#pragma unroll
      for (int v = 0; v < VEC; ++v) y[to[u] + v * p.inner_stride[0]] = out.item[v];
    }
  }
}
