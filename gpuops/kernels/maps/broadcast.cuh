// What the maps have in common: loading a pack of VEC elements of an operand, and mapping up to three to one of the output.
// Prologue: Map, Ta, Tb, Tc, Tout, Offset, ARITY (operands that the map takes), VEC, WAY_A, WAY_B, WAY_C.

// Access to an operand along the innermost dim:
//   PACKED    stride 1, aligned where the packs of the output begin: one vectorised load
//   FUNNEL    stride 1 at any alignment: the two aligned packs around it, funnel-shifted into one
//   REVERSED  stride -1 at any alignment: the same, with the elements reversed
//   REPEATED  stride 0, a scalar, or VEC = 1: one element for the whole pack
//   STRIDED   anything else: VEC single loads
//   TILED     contiguous along another dim: through a tile in shared memory (broadcast_tiled.cu)
//   SCATTERED any; packs cross rows: each element is located on its own (broadcast_stepped.cu)
enum Way { PACKED, FUNNEL, REVERSED, REPEATED, STRIDED, TILED, SCATTERED };

// A scalar operand is passed by value, as bytes in the kernel's parameters; its pointer is null.
template <class T> __device__ __forceinline__ T element(const T* from, Offset at, const u64* scalar) {
  T value;
  if (from) value = from[at];
  else memcpy(&value, scalar, sizeof value);
  return value;
}

// The position of a pack's items: item v is at from[at + v * stride]. Items from `split` on are in the next row: `jump` is
// added to their offset. All elements of the array lie in from[low .. high).
struct Place { Offset at, stride, jump; i32 split; Offset low, high; };

// VEC neighbouring elements from any address, in memory order (REVERSED: in reverse order).
template <int WAY, class T> __device__ __forceinline__ Items<T, VEC> neighbours(const T* from, Offset at, const Place& place) {
  Offset first = WAY == REVERSED ? at - (VEC - 1) : at;
  Items<T, VEC> items;
  Offset lowest = place.low + (VEC - 1), range = place.high - 2 * VEC - lowest;  // where both loads stay in the array
  if (range >= 0 && static_cast<u64>(static_cast<i64>(first) - lowest) <= static_cast<u64>(range)) {
    items = funnel_load<VEC>(from + first);
  } else {  // at either end of the array: single loads
#pragma unroll
    for (int v = 0; v < VEC; ++v) items.set(v, first + v >= place.low && first + v < place.high ? from[first + v] : T{});
  }
  if constexpr (WAY == REVERSED) {
    Items<T, VEC> turned;
#pragma unroll
    for (int v = 0; v < VEC; ++v) turned.set(v, items.get(VEC - 1 - v));
    return turned;
  }
  return items;
}

// Loads a pack of an operand. SPLIT: the pack may cross into the next row.
template <int WAY, bool SPLIT, class T>
__device__ __forceinline__ Items<T, VEC> read(const T* from, const Place& place, const u64* scalar) {
  Items<T, VEC> items;
  bool over = SPLIT && place.split < VEC;
  if constexpr (WAY == PACKED) {
    items = load_items<VEC>(from + place.at);
  } else if constexpr (WAY == STRIDED) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      items.set(v, from[place.at + v * place.stride + (SPLIT && v >= place.split ? place.jump : 0)]);
    }
  } else if constexpr (WAY == REPEATED) {
    T value = element(from, place.at, scalar), next = value;
    if (over) next = element(from, place.at + place.jump, scalar);
    items.fill(value);
    if constexpr (SPLIT) {
      Items<T, VEC> rest;
      rest.fill(next);
      items.merge(rest, place.split);
    }
  } else {
    items = neighbours<WAY>(from, place.at, place);
    if (over) items.merge(neighbours<WAY>(from, place.at + place.jump, place), place.split);
  }
  return items;
}

// ---- maps: an element of the output from up to three elements
struct Expand {
  template <class A, class B, class C> static __device__ __forceinline__ Tout apply(A a, B, C, double) { return convert<Tout>(a); }
};

struct Where {
  template <class A, class B, class C> static __device__ __forceinline__ Tout apply(A condition, B x, C y, double) {
    return nonzero(condition) ? convert<Tout>(x) : convert<Tout>(y);
  }
};

// The last pass of a softmax. a: x. b: each row's maximum, and its sum of exp(x * scale - maximum) less 1 (`rest`).
// c: the mask, if there is one.
struct Softmax {
  template <class A, class B, class C> static __device__ __forceinline__ Tout apply(A x, B row, C chosen, double scale) {
    using V = decltype(row.max);
    V value = convert<V>(x) * static_cast<V>(scale);
    return convert<Tout>(ARITY == 2 || nonzero(chosen) ? quotient(value - row.max, 1 + row.rest) : V(0));
  }
  template <class V> static __device__ __forceinline__ V quotient(V value, V sum) {
    if constexpr (HALF<Tout> && SAME<V, float>) {
      // Few instructions. The factors 2^64 and 2^-64 let subnormal results keep their digits.
      return power_of_2(fma(value, LOG2_E, 64.0f)) * reciprocal(sum) * 0x1p-64f;
    } else {
      return exp(value) / sum;
    }
  }
};

struct LogSoftmax {
  template <class A, class B, class C> static __device__ __forceinline__ Tout apply(A x, B row, C chosen, double scale) {
    using V = decltype(row.max);
    V value = convert<V>(x) * static_cast<V>(scale);
    return convert<Tout>(ARITY == 2 || nonzero(chosen) ? log_softmax(value, row.max, log1p(row.rest)) : Limits<V>::least());
  }
};

// Whether `where` can select whole words by masks: conditions of one byte each, elements of one or two bytes that are
// not converted.
constexpr bool SELECTS = SAME<Map, Where> && SAME<Ta, u8> && SAME<Tb, Tout> && SAME<Tc, Tout> && WORDY<Tout, VEC> &&
                         WORDY<u8, VEC>;

template <int N>
__device__ __forceinline__ Items<Tout, N> mapped(const Items<Ta, N>& a, const Items<Tb, N>& b, const Items<Tc, N>& c, double scale) {
  Items<Tout, N> out;
  if constexpr (SELECTS) {
    constexpr int SIZE = sizeof(Tout);
#pragma unroll
    for (int w = 0; w < N / 4; ++w) {
      u32 mask = filled(a.word[w]);
#pragma unroll
      for (int s = 0; s < SIZE; ++s) {
        u32 wide = SIZE == 1 ? mask : pair_filled(mask, s);
        out.word[w * SIZE + s] = (b.word[w * SIZE + s] & wide) | (c.word[w * SIZE + s] & ~wide);
      }
    }
  } else if constexpr (SAME<Map, Expand> && SAME<Ta, Tout>) {
    out = a;
  } else {
#pragma unroll
    for (int v = 0; v < N; ++v) out.set(v, Map::apply(a.get(v), b.get(v), c.get(v), scale));
  }
  return out;
}
