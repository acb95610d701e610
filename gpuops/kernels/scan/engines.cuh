// What a scan computes: how elements merge to states of a part of a tile (Local), these to states of tiles (Carry), and how a
// result is made of what comes before a tile and of the part of the tile up to an element.

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
};

// Products of floats: a number and a power of two, so that none of parts, and none before another, overflows or vanishes.
template <class A> struct Scaled {
  struct Local {
    A number;
    i64 exponent;
  };
  using Carry = Local;
  static __device__ __forceinline__ Carry none() { return {convert<A>(1.0), 0}; }
  static __device__ __forceinline__ Local nothing() { return none(); }
  static __device__ __forceinline__ double size(double x) { return fabs(x); }
  static __device__ __forceinline__ double size(c128 x) { return fmax(fabs(x.re), fabs(x.im)); }
  static __device__ __forceinline__ double times(double x, double power) { return x * power; }
  static __device__ __forceinline__ c128 times(c128 x, double power) { return {x.re * power, x.im * power}; }
  static __device__ __forceinline__ double power(double x, i32 exponent) { return ldexp(x, exponent); }
  static __device__ __forceinline__ c128 power(c128 x, i32 exponent) { return {ldexp(x.re, exponent), ldexp(x.im, exponent)}; }
  // Whether products of two such numbers, and of their parts, are far from overflow and from subnormal numbers.
  static __device__ __forceinline__ bool inside(double x) { return (high_word(x) & 0x7fffffffu) - ((1023u - 400) << 20) < 800u << 20; }
  static __device__ __forceinline__ bool inside(c128 x) { return inside(x.re) && inside(x.im); }
  // The same number with its greater part from 1 to 2.
  static __device__ __noinline__ Local normal(A x, i64 exponent) {
    double most = size(x);
    if (most < 0x1p-1022) x = times(x, 0x1p54), most *= 0x1p54, exponent -= 54;
    i32 above = static_cast<i32>(high_word(most) >> 20) - 1023;
    if (most == 0 || !is_finite(most)) return {x, 0};
    return {times(x, power_of_two(-above)), exponent + above};
  }
  static __device__ __forceinline__ Local within(A x, i64 exponent) { return inside(x) ? Local{x, exponent} : normal(x, exponent); }
  static __device__ __forceinline__ Carry merge(const Carry& a, const Carry& b) { return within(a.number * b.number, a.exponent + b.exponent); }
  static __device__ __forceinline__ Local total(const Tin (&x)[EACH], int have) {
    Local state = none();
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      Local next = add(state, x[i]);
      if (i < have) state = next;
    }
    return state;
  }
  static __device__ __forceinline__ Local add(const Local& state, Tin x) { return merge(state, within(convert<A>(convert<Tval>(x)), 0)); }
  static __device__ __forceinline__ Tout finished(const Carry& state) {
    if (state.exponent == 0) return convert<Tout>(convert<Tres>(state.number));
    i32 exponent = static_cast<i32>(max(i64(-5000), min(i64(5000), state.exponent)));
    return convert<Tout>(convert<Tres>(power(state.number, exponent)));
  }
};

// Exact sums so far, rounded once. Within a tile a line's elements are cut in two: `high`, a multiple of 2^(exponent - 52), and
// what is left, `low`. With 2^exponent more than all the elements together, the high parts add up exactly in any order; so
// do the low ones, unless some elements are so small that these lose bits: that is at most `off`. Where the elements' bits fit
// a double together (plain), there is no need to cut them. What comes before a tile is an Expansion.
constexpr bool TOGETHER = ONE && LOOK;  // all threads of a block have one line
constexpr int LONGEST = BLOCK <= 256 ? 12 : BLOCK <= 512 ? 13 : 14;  // log2 of the elements that a line has in a tile, at most
template <class V> struct ExactPrefix {
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
  static __device__ __forceinline__ Carry merge(const Carry& a, const Carry& b) {
    double first, second, third, rest;
    Carry all;
    all.s = two_sum(a.s, b.s, first);
    all.e = two_sum(a.e, b.e, second), all.e = two_sum(all.e, first, third);
    all.r = a.r + b.r + (fabs(second) + fabs(third));
    bool zero = a.s == 0 && b.s == 0;
    double sum = two_sum(all.s, all.e, rest);
    if (!is_finite(all.s)) return {all.s, 0, 0};
    return zero ? Carry{all.s, a.e + b.e, a.r + b.r} : Carry{sum, rest, all.r};
  }
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

  double up, off;         // the bias that cuts elements; what low parts lose
  i32 exponent, unit;     // of the elements together, and of their last bit
  bool some;              // whether there are any but zeros
  bool plain, lacking;    // whether they need not be cut; or are too large to be added up

  // What is known of a line, given the sizes of its greatest element and of its least one, less 1.
  __device__ __forceinline__ void know(u32 top, u32 bottom) {
    i32 above = static_cast<i32>(max(top >> SHIFT, 1u)) - BIAS, below = static_cast<i32>(max((bottom + 1) >> SHIFT, 1u)) - BIAS;
    some = bottom != ~0u, lacking = DOUBLE && above >= 960;
    exponent = max(lacking ? 0 : above + LONGEST + 2, -900), unit = below - (F::BITS - 1);
    plain = !lacking & (!some | (unit >= above + LONGEST + 1 - 53));
    off = 0;
    if (!plain) {
      bool loses = unit < min(exponent - 41, above + LONGEST + 1) - 53;
      off = lacking ? Limits<double>::greatest() : loses ? power_of_two(exponent - 80) : 0;
    }
    up = bias(exponent);
  }
  // Sizes of the elements of a part of a tile, in words that start at 0 and ~0.
  struct Extremes {
    u32 most = 0, least = ~0u;
    __device__ __forceinline__ void add(Tin x) {
      u32 size = size_of(x);
      most = max(most, size), least = min(least, size - 1);
    }
    __device__ __forceinline__ void add_finite(Tin x) {
      u32 size = size_of(x);
      most = max(most, size < SPECIAL ? size : 0);
    }
  };
  // Those of a tile: of each warp if there is one line, else of each line.
  struct Sizes { u32 most[TOGETHER ? BLOCK / 32 : BLOCK], least[TOGETHER ? BLOCK / 32 : BLOCK]; };
  static __device__ __forceinline__ Sizes& sizes(int piece) {
    __shared__ Sizes found[PIECES];
    return found[piece];
  }
  // Looks at elements, in any order: elements.each(f) calls f(x) for each. A barrier must follow. If there are several
  // lines, one must have followed `clear`.
  template <class All> static __device__ __forceinline__ void look(const All& elements, bool there, int line, int piece) {
    Extremes found;
    elements.each([&](Tin x) { found.add(x); });
    if (found.most >= SPECIAL) {
      found.most = 0;
      elements.each([&](Tin x) { found.add_finite(x); });
    }
    auto &most = sizes(piece).most, &least = sizes(piece).least;
    if constexpr (TOGETHER) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
      found.most = __reduce_max_sync(0xffffffffu, found.most), found.least = __reduce_min_sync(0xffffffffu, found.least);
#else
#pragma unroll
      for (int mask = 16; mask > 0; mask /= 2) {
        found.most = max(found.most, __shfl_xor_sync(0xffffffffu, found.most, mask));
        found.least = min(found.least, __shfl_xor_sync(0xffffffffu, found.least, mask));
      }
#endif
      if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = found.most, least[threadIdx.x / 32] = found.least;
    } else if (there) {
      atomicMax(most + line, found.most), atomicMin(least + line, found.least);
    }
  }
  static __device__ __forceinline__ void clear(int lines, int piece) {
    for (int i = threadIdx.x; !TOGETHER && i < lines; i += blockDim.x) sizes(piece).most[i] = 0, sizes(piece).least[i] = ~0u;
  }
  static __device__ __forceinline__ ExactPrefix of_line(int line, int piece) {
    ExactPrefix known;
    auto &most = sizes(piece).most, &least = sizes(piece).least;
    u32 top = most[TOGETHER ? 0 : line], bottom = least[TOGETHER ? 0 : line];
    if constexpr (TOGETHER) {
#pragma unroll
      for (int w = 1; w < BLOCK / 32; ++w) {
        if (w < static_cast<int>(blockDim.x) / 32) top = max(top, most[w]), bottom = min(bottom, least[w]);
      }
    }
    known.know(top, bottom);
    return known;
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
  // Whether sums with what comes before are doubles, as those of the tile are.
  __device__ __forceinline__ bool exact(const Carry& line) const {
    i32 least = min(max(unit, -1000), 900);
    double whole = bias(least + 52), room = bit_cast<double>(u64(least + 53 + 1023) << 52);
    bool fits = fabs(line.s) + bit_cast<double>(u64(exponent + 1023) << 52) < room, aligned = (line.s + whole) - whole == line.s;
    return plain & (line.r == 0) & (line.e == 0) & (!some | (fits & aligned));
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

// How results of a chunk are rounded, and whether all doubles next to the exact sums are rounded as those are.
template <class V> struct Rounding {
  using Engine = ExactPrefix<V>;
  using Bits = typename Either<SAME<V, float>, u32, u64>::type;
  static constexpr Bits DROPPED = Bits(1) << (53 - (Engine::DOUBLE ? 24 : Format<V>::BITS)), NEAR = 16;
  Expansion line;  // what comes before the tile
  bool exact;      // sums are doubles
  double margin;   // what they are off, beside what is relative to them
  u32 first, most = 0;   // the upper word of the least double for which it can be told; of all, how far they are above that
  Bits least = ~Bits(0);  // how far the bits that are dropped are above the middle between two numbers
  bool sure = true;
  __device__ __forceinline__ Rounding(const Engine& engine, const Expansion& before) : line(before), exact(engine.exact(before)) {
    margin = 2 * (line.r + engine.off) + (fabs(line.s) + bit_cast<double>(u64(engine.exponent + 1023) << 52)) * (Engine::DOUBLE ? 0x1p-92 : 0x1p-90);
    constexpr u32 NORMAL = (1023 + Format<V>::LEAST + Format<V>::BITS - 1) << 20;  // the least number that is not subnormal
    first = max(NORMAL, high_word(margin * 0x1p52) + (1 << 20));
  }
  template <bool PLAIN> __device__ __forceinline__ V operator()(const typename Engine::Local& part) {
    if constexpr (Engine::DOUBLE) {
      double lost, sum = two_sum(line.s, part.high, lost), rest = (PLAIN ? line.e : line.e + part.low) + lost;
      double low = sum + (rest - margin), high = sum + (rest + margin);
      sure &= low == high;
      return exact ? sum + line.e : low;
    } else {
      // Off by less than 2^-51 of itself, or else by less than the margin.
      double value = (line.s + part.high) + (PLAIN ? line.e : line.e + part.low);
      least = min(least, (static_cast<Bits>(bit_cast<u64>(value)) & (DROPPED - 1)) - (DROPPED / 2 - NEAR));
      most = max(most, (high_word(value) & 0x7fffffffu) - first);
      return narrowed<V>(value);
    }
  }
  __device__ __forceinline__ bool all_sure() const {
    if constexpr (Engine::DOUBLE) return exact | sure;
    else return exact | ((least > 2 * NEAR) & (first < 0x7ff00000u) & (most < 0x7ff00000u - first));
  }
};

// The same of lines that a thread has whole.
template <class V> struct ExactShort {
  using Carry = Expansion;
  Expansion sum;
  static __device__ __forceinline__ Carry none() { return {-0.0, -0.0, 0}; }
  __device__ __forceinline__ void restart() { sum = none(); }
  __device__ __forceinline__ void next(Tin element) {
    double x = convert<double>(convert<V>(element));
    bool huge = SAME<V, double> && fabs(x) >= 0x1p960 && is_finite(x);
    Expansion more = sum.plus(x);
    sum.s = huge ? sum.s : more.s;
    sum.e = huge || !is_finite(more.s) ? sum.e : more.e;
    sum.r = huge ? Limits<double>::greatest() : is_finite(more.s) ? more.r : 0;
  }
  __device__ __forceinline__ Tout result(bool& open) const {
    if (!is_finite(sum.s) || (sum.s == 0 && sum.e == 0 && sum.r == 0)) return convert<Tout>(narrowed<V>(sum.s));
    return convert<Tout>(rounded<V>(sum, open));
  }
};
template <class Engine> struct Short {
  typename Engine::Carry state;
  __device__ __forceinline__ void restart() { state = Engine::none(); }
  __device__ __forceinline__ void next(Tin x) { state = Engine::add(state, x); }
  __device__ __forceinline__ Tout result(bool&) const { return Engine::finished(state); }
};
