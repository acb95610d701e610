// What a scan computes: how elements merge to states of a part of a tile (Local), these to states of tiles (Carry), and how a
// result is made of what comes before a tile and of the part of the tile up to an element.

constexpr int EACH = 16, RADIX = 16;  // elements of a thread's chunk of a line; branches of a line's tree

// Any op.
struct AnyOp {
  using Local = typename Op::State;
  using Carry = Local;
  using A = typename Op::A;
  static __device__ __forceinline__ Context<A> context() { return {{1, 1, 1}, false, A{}, 0, 0, 0, 0, false, false}; }
  static __device__ __forceinline__ Carry none() { return Op::identity(); }
  static __device__ __forceinline__ Local nothing() { return Op::identity(); }
  static __device__ __forceinline__ Carry merge(const Carry& a, const Carry& b) { return Op::combine(a, b); }
  static __device__ __forceinline__ Local add(const Local& state, Tin x) { return Op::combine(state, Op::map(convert<Tval>(x), context())); }
  static __device__ __forceinline__ Local total(const Tin (&x)[EACH], int have) {
    Local state = nothing();
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      Local next = add(state, x[i]);
      state = i < have ? next : state;
    }
    return state;
  }
  static __device__ __forceinline__ Tout finished(const Carry& state) { return convert<Tout>(Op::template finish<Tres>(state, context())); }
  // All of a total that most tiles need to publish.
  using Brief = Carry;
  static __device__ __forceinline__ bool fits(const Carry&) { return true; }
  static __device__ __forceinline__ Brief brief(const Carry& total) { return total; }
  static __device__ __forceinline__ Carry of(const Brief& total) { return total; }
};

// The greatest number of a warp.
__device__ __forceinline__ u32 greatest_of_warp(u32 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, x);
#else
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) x = max(x, __shfl_xor_sync(0xffffffffu, x, mask));
  return x;
#endif
}

// Exact sums so far, rounded once. Within a tile a line's elements are cut in two: `high`, a multiple of 2^(exponent - 52), and
// what is left, `low`. With 2^exponent more than all the elements together, the high parts add up exactly in any order; so
// do the low ones, unless some elements are so small that these lose bits: that is at most `off`. Where the elements' bits fit
// a double together (plain), there is no need to cut them. What comes before a tile is an Expansion.
// LONGEST: log2 of the elements that are added up so, at most.
template <class V, int LONGEST> struct ExactPrefix {
  using Value = V;
  using F = Format<V>;
  using Carry = Expansion;
  struct Local { double high, low; };  // of nothing but -0.0: low is -0.0
  static constexpr bool DOUBLE = SAME<V, double>;
  static constexpr int SHIFT = DOUBLE ? 20 : 23, BIAS = DOUBLE ? 1023 : 127;
  static constexpr u32 SPECIAL = DOUBLE ? 0x7ff00000u : 0x7f800000u;

  static __device__ __forceinline__ Carry none() { return {-0.0, -0.0, 0}; }
  static __device__ __forceinline__ Local nothing() { return {-0.0, -0.0}; }
  static __device__ __forceinline__ Local merge(const Local& a, const Local& b) { return {a.high + b.high, a.low + b.low}; }
  static __device__ __forceinline__ Carry merge(const Carry& a, const Carry& b) { return a.plus(b); }
  // Most totals are doubles.
  using Brief = double;
  static __device__ __forceinline__ bool fits(const Carry& total) { return !is_finite(total.s) || (total.e == 0 && total.r == 0); }
  static __device__ __forceinline__ Brief brief(const Carry& total) { return total.s; }
  static __device__ __forceinline__ Carry of(Brief total) { return {total, total == 0 ? total : 0, 0}; }
  static __device__ __forceinline__ double number(Tin x) { return convert<double>(convert<V>(x)); }
  // The size of a number, as a word that grows with it: 0 of zeros.
  static __device__ __forceinline__ u32 size_of(Tin x) {
    if constexpr (DOUBLE) {
      double value = number(x);
      u32 word = high_word(value) & 0x7fffffffu;
      return word == 0 && value != 0 ? 1 : word;
    } else {
      return bit_cast<u32>(convert<float>(convert<V>(x))) & 0x7fffffffu;
    }
  }

  // Sizes of elements: of the greatest one that is finite, and of the least but zeros, less 1. There is no need to look for those
  // of a type with FEW: all of its numbers have few bits together.
  static constexpr bool FEW = SAME<V, f16>;
  struct Extremes {
    u32 most = 0, least = ~0u;
    static __device__ __forceinline__ Extremes any() { return {static_cast<u32>(127 + F::MOST) << 23 | 0x7fffffu, (static_cast<u32>(127 + F::LEAST) << 23) - 1}; }
    static __device__ __forceinline__ Extremes of(const Tin (&x)[EACH]) { return of(Chunk{x}); }
    struct Chunk {
      const Tin (&x)[EACH];
      template <class F> __device__ __forceinline__ void each(F f) const {
#pragma unroll
        for (int i = 0; i < EACH; ++i) f(x[i]);
      }
    };
    // Of those that elements.each(f) calls f(x) for, in any order.
    template <class All> static __device__ __forceinline__ Extremes of(const All& elements) {
      if constexpr (FEW) return any();
      Extremes found;
      elements.each([&](Tin x) {
        u32 size = size_of(x);
        found.most = max(found.most, size), found.least = min(found.least, size - 1);
      });
      if (found.most >= SPECIAL) {
        found.most = 0;
        elements.each([&](Tin x) {
          u32 size = size_of(x);
          found.most = max(found.most, size < SPECIAL ? size : 0);
        });
      }
      return found;
    }
    // Of all elements of a warp.
    __device__ __forceinline__ Extremes of_warp() const {
      if constexpr (FEW) return any();
      Extremes all = *this;
      all.most = greatest_of_warp(most), all.least = ~greatest_of_warp(~least);
      return all;
    }
  };

  double up, off;         // the bias that cuts elements; what low parts lose
  i32 exponent, unit;     // of the elements together, and of their last bit
  bool some;              // whether there are any but zeros
  bool plain, lacking;    // whether they need not be cut; or are too large to be added up

  __device__ __forceinline__ explicit ExactPrefix(const Extremes& some_found) {
    auto found = FEW ? Extremes::any() : some_found;
    u32 top = found.most, bottom = found.least;
    i32 above = static_cast<i32>(max(top >> SHIFT, 1u)) - BIAS, below = static_cast<i32>(max((bottom + 1) >> SHIFT, 1u)) - BIAS;
    some = bottom != ~0u, lacking = DOUBLE && above >= 960;
    exponent = max(lacking ? 0 : above + LONGEST + 2, -900), unit = max(below - (F::BITS - 1), F::LEAST);
    plain = !lacking & (!some | (unit >= above + LONGEST + 1 - 53));
    off = 0;
    if (!plain) {
      bool loses = unit < min(exponent - 41, above + LONGEST + 1) - 53;
      off = lacking ? Limits<double>::greatest() : loses ? power_of_two(exponent - 80) : 0;
    }
    up = bias(exponent);
  }
  template <bool PLAIN> __device__ __forceinline__ Local add(const Local& sum, Tin element) const {
    double x = number(element);
    if constexpr (PLAIN) {
      return {sum.high + x, sum.low};
    } else {
      double high = (x + up) - up;
      if (DOUBLE && lacking) return {sum.high + (is_finite(x) ? 0 : x), sum.low + 0.0};
      return {sum.high + high, sum.low + (x - high)};
    }
  }
  // The sum of a chunk.
  template <bool PLAIN> __device__ __forceinline__ Local total(const Tin (&x)[EACH]) const {
    Local sum = nothing();
#pragma unroll
    for (int i = 0; i < EACH; ++i) sum = add<PLAIN>(sum, x[i]);
    if (PLAIN && bit_cast<u64>(sum.high) != u64(1) << 63) sum.low = 0;
    return sum;
  }
  __device__ __forceinline__ Carry carried(const Local& total) const {
    if (!is_finite(total.high)) return {total.high, 0, 0};
    if (total.high == 0 && total.low == 0) return {total.low, total.low, off};
    double rest, sum = two_sum(total.high, total.low, rest);
    return {sum, rest, off};
  }
  // More than any sum of elements.
  __device__ __forceinline__ double most() const { return bit_cast<double>(u64(exponent + 1022) << 52); }
  // Whether sums with what comes before are doubles, as those of the elements are: whether all have no bits below
  // 2^(top - 53), where 2^top is more than any.
  __device__ __forceinline__ bool exact(const Carry& line) const {
    i32 top = exponent_of(fabs(line.s) + most() / 2) + 1, zeros = top - 1 - exponent_of(line.s);
    bool aligned = line.s == 0 || (zeros <= 52 && (bit_cast<u64>(line.s) & ((u64(1) << zeros) - 1)) == 0);
    return plain & (line.r == 0) & (line.e == 0) & (!some | (aligned & (unit >= top - 53)));
  }
  static __device__ __forceinline__ i32 exponent_of(double x) { return static_cast<i32>(high_word(x) >> 20 & 0x7ff) - 1023; }

  // What comes before elements, and how results are made: as sums that are doubles; that are close to some; or so, of elements
  // that are cut.
  enum Way : u32 { DOUBLES, CLOSE, CUT };
  struct Ready {
    Expansion line;
    float least;  // of results that can be rounded right, if they are close to doubles
    u32 way;
  };
  static __device__ __forceinline__ Ready ready(const Carry& before, const Extremes& found) {
    ExactPrefix known(found);
    Expansion line = before.normal();
    if (line.s == 0 && line.e == 0) line.s = line.e = before.s;  // -0.0 of nothing else
    if (line.e == 0) line.e = line.s == 0 ? line.s : 0;
    if (!is_finite(before.s)) line = {before.s, 0, 0};
    constexpr i32 NORMAL = F::LEAST + F::BITS - 1;  // the least exponent of numbers that are not subnormal
    if (known.plain && (!is_finite(before.s) || known.exact(line))) return {line, static_cast<float>(power_of_two(NORMAL)), DOUBLES};
    double off = 2 * (line.r + known.off) + (known.plain ? 0 : known.most() * 0x1p-90);  // low parts of those that are cut
    float least = static_cast<float>(off * 0x1.00001p50 + 4 * fabs(line.e));
    return {line, max(least, static_cast<float>(power_of_two(NORMAL))), known.plain ? CLOSE : CUT};
  }

  // Results: sums of s, e and the elements. If they are not doubles, they are off by less than 2^-51 of themselves, and by what
  // `least` allows: 2^-50 of it.
  template <bool STARTS, Way WAY, int UNROLLED, class Elements> __device__ __forceinline__ bool chain(Expansion line, Local part, const Elements& elements, u32 starts, float least, Tout empty) const {
    constexpr u32 NEAR = 16;  // so far from the middle between two results all doubles next to a sum are rounded alike
    u32 closest = ~0u;
    float smallest = Limits<float>::greatest();
    elements.template scan<UNROLLED>([&](Tin x, int i) {
      bool start = STARTS && (starts >> i & 1);
      if (start) part = nothing();
      if (start && WAY != DOUBLES) line = none();
      Local next = add<WAY != CUT>(part, x), last = EXCLUSIVE ? part : next;
      part = next;
      if (WAY == DOUBLES) return EXCLUSIVE && start ? empty : convert<Tout>(narrowed<V>(last.high));
      double here = (line.s + last.high) + (WAY == CUT ? line.e + last.low : line.e);
      float rounded = static_cast<float>(here);
      u32 below;
      if constexpr (SAME<V, float>) below = (static_cast<u32>(bit_cast<u64>(here)) << 3) + (0x80000000u + (NEAR << 3));
      else below = (bit_cast<u32>(rounded) << (32 - (24 - Format<V>::BITS))) ^ 0x80000000u;
      if (!(EXCLUSIVE && start)) closest = min(closest, below), smallest = fminf(smallest, fabsf(rounded));
      if (WAY == CUT && !is_finite(here)) closest = 0;  // low parts of infinities are NaN
      return EXCLUSIVE && start ? empty : convert<Tout>(convert<V>(rounded));
    });
    return WAY == DOUBLES || (closest > (SAME<V, float> ? NEAR << 4 : 0) && smallest >= least);
  }
  // Results of doubles.
  template <int UNROLLED, class Elements> __device__ __forceinline__ bool pairs(Expansion line, Local part, const Elements& elements, u32 starts, Tout empty) const {
    double margin = 2 * (line.r + off) + (fabs(line.s) + power_of_two(exponent)) * 0x1p-92;  // what they are off
    bool sure = true;
    elements.template scan<UNROLLED>([&](Tin x, int i) {
      bool start = starts >> i & 1, nothing_yet = EXCLUSIVE && start;
      if (start) line = none(), part = nothing();
      Local next = add<false>(part, x), here = EXCLUSIVE ? part : next;
      double lost, sum = two_sum(line.s, here.high, lost), rest = (line.e + here.low) + lost, low = sum + (rest - margin);
      sure &= nothing_yet || low == sum + (rest + margin);
      part = next;
      return nothing_yet ? empty : convert<Tout>(low);
    });
    return sure;
  }
  // What comes after `line` and `part`, if it is not `sure`.
  static __device__ __forceinline__ V closely(const Carry& line, const Local& part, double off, bool& open) {
    double sum = line.s + part.high;
    Expansion all = Expansion{line.s, line.e, line.r + off}.plus(part.high).plus(part.low).normal();
    if (!is_finite(sum)) return narrowed<V>(sum);
    if (all.s == 0 && all.e == 0 && all.r == 0) {
      double rest = line.e + part.low;
      return narrowed<V>(rest == 0 ? rest : 0.0);  // -0.0 of nothing else
    }
    return rounded<V>(all, open);
  }
};

// Sums of digits of a warp.
template <class V> __device__ __forceinline__ void clear(Digits<V, false>& sum) {
  for (u32 i = threadIdx.x % 32; i < sizeof sum / 8; i += 32) reinterpret_cast<u64*>(&sum)[i] = 0;
  __syncwarp();
}
template <class V> __device__ __forceinline__ void note(Digits<V, false>& sum, double x) {
  if (bit_cast<u64>(x) != u64(1) << 63) atomicOr(&sum.seen, Digits<V, false>::OTHER);
  if (is_finite(x)) sum.add(x);
  else sum.note(x);
}
template <class V> __device__ V rounded(Digits<V, false>& sum) {
  bool negative = sum.settled();
  if (!sum.finite()) return convert<V>(sum.special());
  if (sum.is_zero()) return convert<V>(sum.seen & Digits<V, false>::OTHER ? 0.0 : -0.0);
  return nearest<V>(sum.whole(), negative);
}
// The sum of all lanes' numbers, rounded once.
template <class V> __device__ __forceinline__ V settled(Digits<V, false>& sum) {
  __syncwarp();
  V result = convert<V>(0.0);
  if (threadIdx.x % 32 == 0) result = rounded(sum);
  __syncwarp();
  return shuffle(result, 0);
}
