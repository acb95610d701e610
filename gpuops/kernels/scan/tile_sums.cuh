// Exact sums of tiles: the sizes of elements of each line, and how results are rounded.

constexpr bool TOGETHER = ONE && LOOK;  // all threads of a block have one line
constexpr int LONGEST = BLOCK <= 256 ? 12 : BLOCK <= 512 ? 13 : 14;  // log2 of the elements that a line has in a tile, at most

template <class V> struct TileSums : ExactPrefix<V, LONGEST> {
  using Base = ExactPrefix<V, LONGEST>;
  using typename Base::Extremes;
  __device__ __forceinline__ explicit TileSums(const Extremes& found) : Base(found) {}
  // Those of a tile: of each warp if there is one line, else of each line.
  struct Sizes { u32 most[TOGETHER ? BLOCK / 32 : BLOCK], least[TOGETHER ? BLOCK / 32 : BLOCK]; };
  static __device__ __forceinline__ Sizes& sizes(int piece) {
    __shared__ Sizes found[PIECES];
    return found[piece];
  }
  // Looks at elements, in any order: elements.each(f) calls f(x) for each. A barrier must follow. If there are several
  // lines, one must have followed `clear`.
  template <class All> static __device__ __forceinline__ void look(const All& elements, bool there, int line, int piece) {
    auto found = Extremes::of(elements);
    auto &most = sizes(piece).most, &least = sizes(piece).least;
    if constexpr (TOGETHER) {
      found = found.of_warp();
      if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = found.most, least[threadIdx.x / 32] = found.least;
    } else if (there) {
      atomicMax(most + line, found.most), atomicMin(least + line, found.least);
    }
  }
  static __device__ __forceinline__ void clear(int lines, int piece) {
    for (int i = threadIdx.x; !TOGETHER && i < lines; i += blockDim.x) sizes(piece).most[i] = 0, sizes(piece).least[i] = ~0u;
  }
  static __device__ __forceinline__ TileSums of_line(int line, int piece) {
    auto &most = sizes(piece).most, &least = sizes(piece).least;
    u32 top = most[TOGETHER ? 0 : line], bottom = least[TOGETHER ? 0 : line];
    if constexpr (TOGETHER) {
#pragma unroll
      for (int w = 1; w < BLOCK / 32; ++w) {
        if (w < static_cast<int>(blockDim.x) / 32) top = max(top, most[w]), bottom = min(bottom, least[w]);
      }
    }
    return TileSums(Extremes{top, bottom});
  }
};

// How results of a chunk are rounded, and whether all doubles next to the exact sums are rounded as those are.
template <class V> struct Rounding {
  using Engine = TileSums<V>;
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
