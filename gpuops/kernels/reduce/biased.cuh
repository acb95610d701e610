// The accumulators of exact sums (see accumulate.cuh).

// Exact sums in doubles that begin with a bias, which is greater than whatever is added: so what an addition loses takes
// two operations (fast_two_sum). `high` loses to `low`. Sums of floats round `low` and note whether it has anything. Those
// of doubles give it a bias, too, and add up what it loses, rounded. The bits of a double with a bias are an integer in
// fixed point. DIRECT: doubles are exact without all that, if terms are FEW.
// COUNT: chains, of one sum or (APART) of as many. They have one bias, which a term of a greater exponent raises.
template <int COUNT, bool APART, class R, bool DIRECT> struct Biased {
  static constexpr bool WIDE = SAME<R, double>;
  static constexpr i32 SLACK = 4, STEP = 8;  // sums have exponents in common, if those of their terms hardly differ
  static constexpr i32 FEW = 15;  // the headroom of less than 2^13 terms: multiples of 2^-24, less than 2^29 together
  static constexpr i32 FINER = 10;  // bits of sums of doubles below the last one of `low`
  static constexpr int LOWS = APART && !DIRECT ? COUNT : 1;
  double high[COUNT], low[LOWS];
  typename Either<WIDE, double, u32>::type lost[LOWS];  // not WIDE: bits, of which that of the sign does not matter
  u32 lacks = 0;  // WIDE: the sums that lack terms, as bits
  i32 most = NOTHING;  // terms are less than 2^most

  __device__ __forceinline__ Biased() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) high[i] = 0;
#pragma unroll
    for (int i = 0; i < LOWS; ++i) low[i] = -0.0, lost[i] = 0;
  }
  // What lies above a bias, in units of the last bit.
  static __device__ __forceinline__ i64 integer(double x) {
    return static_cast<i64>(bit_cast<u64>(x) & ((u64(1) << 52) - 1)) - (i64(1) << 51);
  }
  // The exponents of biases, of `high` and of `low`; the least is that of a bias which is not subnormal.
  static __device__ __forceinline__ i32 above(i32 exponent, i32 headroom) { return exponent + headroom + 1; }
  static __device__ __forceinline__ i32 below(i32 exponent, i32 headroom) { return exponent + 2 * headroom - 51; }
  static __device__ __forceinline__ i32 at_least(i32 headroom) { return -970 - 2 * headroom; }
  __device__ __forceinline__ double low_bias(i32 headroom) const { return WIDE ? bias(below(most, headroom)) : -0.0; }

  // Returns what is still to be added to low[i % LOWS].
  __device__ __forceinline__ double add_high(int i, double x) {
    double rest = 0;
    if constexpr (DIRECT) {
      high[i] += x;
    } else {
      high[i] = fast_two_sum(high[i], x, rest);
      if constexpr (WIDE) {
        low[i % LOWS] = fast_two_sum(low[i % LOWS], rest, rest);
        lost[i % LOWS] += rest;
      } else {
        lost[i % LOWS] |= high_word(rest);
      }
    }
    return rest;
  }
  // The same of a product that is exact in a double: it need not be made.
  __device__ __forceinline__ double add_product(int i, double x, double y) {
    double sum = fma(x, y, high[i]), rest = fma(x, y, high[i] - sum);
    high[i] = sum, lost[i % LOWS] |= high_word(rest);  // (not WIDE)
    return rest;
  }
  __device__ __forceinline__ void add_low(int i, double x) {
    if constexpr (!WIDE && !DIRECT) low[i % LOWS] += x;
  }
  __device__ __forceinline__ void add(int i, double x) { add_low(i, add_high(i, x)); }
  // Begins with terms that are less than 2^exponent.
  __device__ __forceinline__ void begin(i32 exponent, i32 headroom) {
    most = max(exponent, at_least(headroom));
    bool beyond = WIDE && above(most, headroom) > 1022;
    if (beyond) most = 0;
    double first = bias(above(most, headroom));
#pragma unroll
    for (int i = 0; i < COUNT; ++i) high[i] = SINGLE ? first : high[i] + first;  // (high is 0, or not finite)
#pragma unroll
    for (int i = 0; i < LOWS; ++i) low[i] = low_bias(headroom);
    if (beyond) lacks = ~0u;
  }
  __device__ __forceinline__ void raise(i32 exponent, i32 headroom) {
    exponent = (exponent + 5) & -4;  // other terms are hardly greater; units are alike
    if (most == NOTHING) return begin(exponent, headroom);
    double before[COUNT], rest[LOWS];
#pragma unroll
    for (int i = 0; i < LOWS; ++i) rest[i] = low[i] - low_bias(headroom);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      before[i] = high[i] - bias(above(most, headroom));
      high[i] = is_finite(high[i]) ? 0 : high[i];
    }
    begin(exponent, headroom);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (!is_finite(high[i])) continue;
      add(i, before[i]);
      if (i < LOWS && is_finite(rest[i])) add(i, rest[i]);  // (another chain may be infinite)
    }
  }
  // The sum of all chains or (APART) of one. ROOMY: it has room for all terms of the output. exact: whether `rest` is.
  template <class Number, bool ROOMY> __device__ __forceinline__ Number total(int chain, i32 headroom, const Context<A>& c, bool exact = false) const {
    if constexpr (SAME<Number, Aligned>) return aligned_total<ROOMY>(chain, headroom, c, exact);
    else if constexpr (SAME<Number, Near>) return near_total(chain, headroom);
    else return fixed_total(chain, headroom);
  }
  // A chain's `rest` is the sum of less than 2^n terms of at most half a unit: each of as many additions loses at most 2^-53
  // of 2^(n - 1) units. Its sum gets room for all terms of the output (unless it has that already: ROOMY), in a unit
  // that is 2^shift as great; that loses 2^-53 of what is below it. For what merges lose see `context`. If no chain has lost
  // something, and they are hardly more than 2^shift, merges lose nothing: all is a multiple of a chain's unit.
  template <bool ROOMY> __device__ __forceinline__ Aligned aligned_total(int chain, i32 headroom, const Context<A>& c, bool exact) const {
    bool none = !DIRECT && !SINGLE && most == NOTHING;
    i32 n = c.headroom, exponent = above(DIRECT ? Format<f16>::MOST + 1 : most, headroom);
    double bias_of = DIRECT || none ? 0 : bias(exponent);
    Aligned sum = {high[APART ? chain : 0] - bias_of, low[chain % LOWS], none ? NOTHING : exponent, 0};
#pragma unroll
    for (int i = 1; i < COUNT; ++i) {
      if (!APART) sum.s += high[i] - bias_of;
    }
    if (!ROOMY && !none) sum.raise((exponent + c.room - n + SLACK + STEP - 1) & -STEP);
    i32 shift = sum.exponent - exponent;
    if (DIRECT && n > FEW) sum.lost = float_power(2 * n + 15 - sum.exponent);  // doubles lose 2^-53 of 2^(n + 16)
    if (!DIRECT && !exact && (lost[chain % LOWS] << 1 || shift > 24)) sum.lost = float_power(2 * n - 54 - shift) + float_power(max(n - shift, 0) - 53);
    return sum;
  }
  __device__ __forceinline__ Fixed fixed_total(int chain, i32 headroom) const {
    i64 sum = 0;
    double special = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (APART && i != chain) continue;
      if (!is_finite(high[i])) special += high[i];
      else sum += integer(high[i]);
    }
    if (special != 0) return gpuops::special(special);
    if (lacks >> chain % LOWS & 1) return lacking();
    if (most == NOTHING) return fixed(0);
    i32 unit = below(most, headroom) - 52, half = unit / 2;
    double left = lost[chain % LOWS], rest = ::rint(left * power_of_two(-half) * power_of_two(FINER - unit + half));
    // Less than 2^headroom rests of at most half a unit are rounded when they are added, then once more to an integer.
    float off = left != 0 ? 1 + float_power(2 * headroom - 54 + FINER) : 0;
    Int128 all = shifted(sum, 52 - headroom + FINER) + shifted(integer(low[chain % LOWS]), FINER);
    return {all + shifted(static_cast<i64>(rest), 0), unit - FINER, off};
  }
  __device__ __forceinline__ Near near_total(int chain, i32 headroom) const {
    bool none = !SINGLE && most == NOTHING;
    double s = -0.0, bias_of = none ? 0 : bias(above(most, headroom)), off = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (!APART || i == chain) s += high[i] - bias_of;
    }
    if (lost[chain % LOWS] != 0) off = power_of_two(max(below(most, headroom) - 53 + headroom, -1074));
    if (lacks >> chain % LOWS & 1) off = Limits<double>::greatest();
    return {s, none ? 0 : low[chain % LOWS] - low_bias(headroom), off};
  }
};

// The greatest exponent of terms: |x| < 2^exponent.
template <class R> struct Largest {
  float size = 0;
  // FINITE: leaves out others.
  template <bool FINITE> __device__ __forceinline__ void add(float x) { size = greater_of(size, FINITE && !(fabs(x) < Limits<float>::greatest()) ? 0.0f : fabs(x)); }
  __device__ __forceinline__ void join(Largest other) { size = greater_of(size, other.size); }
  __device__ __forceinline__ i32 exponent() const { return static_cast<i32>(bit_cast<u32>(size) >> 23) - 126; }
  static constexpr i32 INFINITE = 129;
};
template <> struct Largest<double> {
  u32 size = 0;
  template <bool FINITE> __device__ __forceinline__ void add(double x) {
    u32 own = high_word(x) & 0x7fffffffu;
    size = max(size, FINITE && own >= 0x7ff00000u ? 0u : own);
  }
  __device__ __forceinline__ void join(Largest other) { size = max(size, other.size); }
  __device__ __forceinline__ i32 exponent() const { return static_cast<i32>(size >> 20) - 1022; }
  static constexpr i32 INFINITE = 1025;
};

__device__ constexpr i32 log2_of(i32 n) { return n <= 1 ? 0 : 1 + log2_of((n + 1) / 2); }

// The sums of elements and of their squares in doubles, of a row that a block has in registers or in shared memory: they
// mostly determine the rounded variance, and exact sums are not needed. Of less than 2^7 additions in turn (planners see to
// that, where a row's length is not known here), a sum is less than 2^-46 of the magnitudes off. They are at most the root
// of `first`, n times the sum of squares. So what a variance is made of is less than 2^-44 of `first` off, and the sum less
// than 2^-46 of its root.
template <class O> struct InDoubles {
  static constexpr bool WORKS = O::MOMENTS && O::VALUES == 1 && SAME<typename O::Number, Aligned> && !O::COUNTING && SINGLE &&
      RESIDENT == 0 && OTHER == NONE && !READS && !WRITES;
  using Part = typename O::Part;
  static constexpr bool BROAD = SAME<Part, bf16>;
  double sum[2] = {}, squares[2] = {};
  __device__ __forceinline__ void add(int chain, Tval x) {
    double one = convert<double>(convert<typename O::A>(x));
    sum[chain % 2] += one, squares[chain % 2] = fma(one, one, squares[chain % 2]);
  }
  // Adds up all lanes of the row, and tells whether that is enough: the variance is at most 2^-38, the mean 2^-35 of it off.
  template <int LANES> __device__ __forceinline__ bool enough(const Context<A>& c) {
    sum[0] += sum[1], squares[0] += squares[1];
    row_sums<LANES>(sum[0], squares[0]);
    double first = c.option[O::N] * squares[0], apart = fma(-sum[0], sum[0], first), found = apart * c.option[O::SHARE], mean = sum[0] * (1 / c.option[O::N]);
    if (c.root) found = sqrt(found);
    bool sure = c.option[O::N] > c.option[O::DDOF] && first < 0x1p6 * apart && is_certain<Part, BROAD ? 31 : 16>(found);
    if constexpr (O::SPREADS) sure &= first < 0x1p22 * sum[0] * sum[0] && is_certain<Part, BROAD ? 31 : 19>(mean);
    return LANES > 1 && LANES < 32 ? __all_sync(0xffffffffu, sure) : sure;  // the lanes of a warp exchange what exact sums need
  }
  __device__ __forceinline__ typename O::State state(bool holds) const {
    typename O::State made;
    made.part[0] = {holds ? sum[0] : 0, 0, 0, 0}, made.part[1] = {holds ? squares[0] : 0, 0, 0, 0};
    return made;
  }
};

// Exact sums of a thread (SINGLE: of all elements of its outputs at once): of packs of VEC elements, or of single ones.
// Elements come several at a time: they are measured, before they are added.
template <bool APART, int CHAINS, class O = Op> struct Sums {
  static constexpr int OUTPUTS = APART ? VEC : 1, COUNT = APART ? VEC : CHAINS < VEC ? CHAINS : VEC;
  static constexpr bool ALL = OTHER == NONE && !O::UNCONVERTED;  // every element takes part
  static constexpr int MEASURES = O::MULTIPLIES && !O::MOMENTS ? 1 : O::VALUES;  // the parts of elements that are measured apart
  static constexpr bool GRAINS = O::MOMENTS && !SAME<typename O::R, double>;  // whether it knows what elements are multiples of
  // Whether the elements of a pack, or (APART) those of N packs that are of one output, are added up in a double before that is
  // added, if this is exact, since their exponents are close. (Not where that was not faster.)
  template <int N, int WIDTH> static constexpr bool TOGETHER = GRAINS && !COMPLEX<Tval> && (HALF<Tval> || ALL) &&
      (APART ? N : WIDTH) > 1 && (!SINGLE || HALF<Tval>);
  // The same, where two elements in a word are measured at a time. (Not f16: few of their squares are close.)
  template <int N, int WIDTH> static constexpr bool PAIRED = SAME<Tin, bf16> && SAME<Tval, bf16> && ALL && (O::MOMENTS || O::PARTS == 1) &&
      (O::kind(0) == Kind::VALUES || O::kind(0) == Kind::PRODUCTS) && WORDY<Tin, WIDTH> && (APART ? N : WIDTH) > 1;
  using R = typename O::R;
  using Part = Biased<COUNT, APART, R, O::DIRECT>;
  Part sum[O::PARTS];
  Largest<R> first[MEASURES], second[1];
  u32 least = ~0u;  // GRAINS: the bits of the least magnitude, less 1: 0 is the greatest
  bool close = false;  // whether the elements of this step are to be added TOGETHER
  u32 number[O::COUNTING ? OUTPUTS : 1] = {};
  static constexpr bool FILTER = !APART && InDoubles<O>::WORKS;
  typename Either<FILTER, InDoubles<O>, u8>::type plain = {};
  bool known = false, holds = true;

  // LANES: of a row.
  template <int LANES = 1, bool QUICKLY = false, class X, class B, int N>
  __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    if constexpr (FILTER && QUICKLY) {
      static_assert((N + 2) * VEC + log2_of(LANES) < 1 << 7);  // additions in turn, with those of edges
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int v = 0; v < VEC; ++v) plain.add(v, value(x[n], b[n], v));
      }
      known = plain.template enough<LANES>(c), holds = threadIdx.x % LANES == 0;
      if (known) return;
    }
    if constexpr (!SINGLE) begin();
    measure(x, b, ready);
    if constexpr (APART && !O::DIRECT) {
      if (infinite()) begin(), measure<VEC, true>(x, b, ready);  // to the others, that is of no account
    }
    make_room<LANES>(c);
    insert(x, b, ready);
  }
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int p = 0; p < MEASURES; ++p) first[p].size = 0;
    second[0].size = 0;
  }
  // WIDTH: elements of a pack.
  template <int WIDTH = VEC, bool FINITE = false, class X, class B, int N>
  __device__ __forceinline__ void measure(const X (&x)[N], const B (&b)[N], const bool (&ready)[N]) {
    if constexpr (O::DIRECT) return;
    if constexpr (PAIRED<N, WIDTH> && !FINITE) return measure_pairs<WIDTH>(x, ready);
    u32 step = ~0u;
    close = TOGETHER<N, WIDTH>;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
      Largest<R> own[MEASURES], other[1];  // a chain for each pack
      u32 pack = ~0u;
#pragma unroll
      for (int v = 0; v < WIDTH; ++v) {
        measured<FINITE>(own, value(x[n], b[n], v));
        if constexpr (GRAINS) pack = min(pack, size_less_one(value(x[n], b[n], v)));
        if constexpr (O::PRODUCT) measured<FINITE>(other, factor(b[n], v));
      }
      if constexpr (TOGETHER<N, WIDTH> && !APART) close &= fits<WIDTH>(own[0], pack);
      step = min(step, pack);
#pragma unroll
      for (int p = 0; p < MEASURES; ++p) first[p].join(own[p]);
      second[0].join(other[0]);
    }
    if constexpr (TOGETHER<N, WIDTH> && APART) close = fits<N>(first[0], step);
    if constexpr (GRAINS) least = min(least, step);
  }
  template <int WIDTH, class X, int N> __device__ __forceinline__ void measure_pairs(const X (&x)[N], const bool (&ready)[N]) {
    // The greatest magnitudes, with the sign's bit set; the least ones less 1, as signed numbers: 0 counts as the greatest.
    u32 most = 0x80008000u, low = 0x7fff7fffu;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int w = 0; w < WIDTH / 2; ++w) {
        u32 both = x[n].word[w] | 0x80008000u;
        most = extreme<u16, true>(most, both), low = extreme<i16, false>(low, both - 0x00010001u);
      }
    }
    u32 greatest = max(most & 0x7fff, most >> 16 & 0x7fff), less_one = min(low & 0xffff ^ 0x8000, low >> 16 ^ 0x8000);
    u32 step = (bit_cast<u32>(widen(bf16{static_cast<u16>(less_one + 1)})) << 1) - 2;
    first[0].join({widen(bf16{static_cast<u16>(greatest)})});
    close = fits<APART ? N : WIDTH>(first[0], step);
    if constexpr (GRAINS) least = min(least, step);
  }
  template <bool FINITE, int N> static __device__ __forceinline__ void measured(Largest<R> (&largest)[N], Tval x) {
    auto value = convert<typename O::A>(x);
    if constexpr (SEVERAL<Tval> > 0) {
#pragma unroll
      for (int k = 0; k < N; ++k) largest[k].template add<FINITE>(value.of[k]);
    } else if constexpr (COMPLEX<Tval>) largest[0].template add<FINITE>(value.re), largest[N - 1].template add<FINITE>(value.im);
    else largest[0].template add<FINITE>(value);
  }
  static __device__ __forceinline__ u32 size_less_one(Tval x) {
    auto value = convert<typename O::A>(x);
    if constexpr (COMPLEX<Tval>) return min((bit_cast<u32>(value.re) << 1) - 2, (bit_cast<u32>(value.im) << 1) - 2);
    else return (bit_cast<u32>(value) << 1) - 2;
  }
  // The exponent field of a magnitude that is given by its bits less 1; of 0 that of the least normal number.
  static __device__ __forceinline__ i32 field(u32 size_less_one) { return static_cast<i32>(max((size_less_one + 2) >> 24, 1u)); }
  // Whether a double holds sums of MANY elements: multiples of 2^(least - 126 - BITS), less than 2^(greatest - 126). Products
  // are less than the square, and multiples of it.
  template <int MANY> static __device__ __forceinline__ bool fits(const Largest<R>& greatest, u32 size_less_one) {
    constexpr i32 BITS = Format<typename Either<HALF<Tval>, Tval, float>::type>::BITS;
    i32 most = static_cast<i32>(bit_cast<u32>(greatest.size) >> 23), apart = most - field(size_less_one) + BITS;
    return most < 255 && (HALF<Tval> && O::MULTIPLIES ? 2 : 1) * apart + log2_of(MANY) <= 53;
  }
  // The exponent of the last bit that a float can have whose magnitude is the least one.
  __device__ __forceinline__ i32 grain() const { return field(least) - 150; }
  __device__ __forceinline__ bool infinite() const {
    bool any = false;
#pragma unroll
    for (int p = 0; p < MEASURES; ++p) any |= first[p].exponent() >= Largest<R>::INFINITE;
    return any || (O::PRODUCT && second[0].exponent() >= Largest<R>::INFINITE);
  }
  // That of a part's terms. Squares have room for all of an output from the beginning: so their sums move nothing later, and
  // what lies below their last bits is exact, if elements do not differ much (see `total_of`).
  static __device__ __forceinline__ i32 headroom(int part, const Context<A>& c) {
    return GRAINS && O::kind(part) == Kind::PRODUCTS ? c.room : c.headroom;
  }
  template <int LANES> __device__ __forceinline__ void make_room(const Context<A>& c) {
    if constexpr (O::DIRECT) return;
    i32 own[MEASURES], other = 0;
#pragma unroll
    for (int p = 0; p < MEASURES; ++p) own[p] = most_of<LANES>(first[p], p);
    if constexpr (O::PRODUCT) other = most_of<LANES>(second[0], MEASURES);
    i32 all = MEASURES > 1 ? max(own[0], own[MEASURES - 1]) : own[0];
#pragma unroll
    for (int p = 0; p < O::PARTS; ++p) {
      i32 exponent = O::kind(p) == Kind::FACTORS ? other : O::kind(p) == Kind::VALUES ? own[p % MEASURES] : all;
      if (O::kind(p) == Kind::PRODUCTS) exponent += O::PRODUCT ? other : all;
      if (GRAINS && !SINGLE && O::kind(p) == Kind::PRODUCTS) exponent = (exponent + 3) & -4;  // alike in most threads
      if (O::kind(p) == Kind::ERRORS) exponent += all - 53;
      if (O::kind(p) == Kind::MAGNITUDES && COMPLEX<Tval>) ++exponent;
      if constexpr (SINGLE) sum[p].begin(exponent, headroom(p, c));
      else if (exponent > sum[p].most) sum[p].raise(exponent, headroom(p, c));
    }
  }
  // The exponent of finite elements, SINGLE: of all of a row.
  template <int LANES> static __device__ __forceinline__ i32 most_of(const Largest<R>& largest, int call) {
    constexpr int SHARED = Part::WIDE || LANES <= 32 ? LANES : 32;
    i32 exponent = largest.exponent();
    exponent = exponent >= Largest<R>::INFINITE ? -1000 : exponent;
    if constexpr (!SINGLE) return exponent;
    else return call == 0 ? row_max<SHARED, 0>(exponent) : call == 1 ? row_max<SHARED, 1>(exponent) : call == 2 ? row_max<SHARED, 2>(exponent) : row_max<SHARED, 3>(exponent);
  }
  // Returns what is still to be added to the lower level of each part.
  struct Rest { double of[O::PARTS]; };
  __device__ __forceinline__ Rest insert_high(int chain, Tval x, Tval y) {
    Rest rest = {};
    if constexpr (O::MULTIPLIES && !Part::WIDE) {
      double a[O::PARTS][O::FACTORS], b[O::PARTS][O::FACTORS];
      O::factors(x, y, a, b);
#pragma unroll
      for (int p = 0; p < O::PARTS; ++p) {
#pragma unroll
        for (int f = 0; f < O::count(p); ++f) {
          double more = O::kind(p) == Kind::PRODUCTS ? sum[p].add_product(chain, a[p][f], b[p][f]) : sum[p].add_high(chain, a[p][f]);
          rest.of[p] = f > 0 ? rest.of[p] + more : more;
        }
      }
      return rest;
    }
    bool beyond[O::PARTS];
    auto terms = O::terms(x, y, beyond);
#pragma unroll
    for (int p = 0; p < O::PARTS; ++p) {
#pragma unroll
      for (int t = 0; t < O::count(p); ++t) {
        double more = sum[p].add_high(chain, terms.of[p][t]);
        rest.of[p] = t > 0 ? rest.of[p] + more : more;
      }
      if (beyond[p]) sum[p].lacks |= 1u << chain % Part::LOWS;
    }
    return rest;
  }
  __device__ __forceinline__ void insert_low(int chain, const Rest& rest) {
#pragma unroll
    for (int p = 0; p < O::PARTS; ++p) sum[p].add_low(chain, rest.of[p]);
  }
  __device__ __forceinline__ void insert_one(int chain, Tval x, Tval y) { insert_low(chain, insert_high(chain, x, y)); }
  // The same, but the values of a pack, or (APART) those of one output, are added up before, and PRODUCTS, too.
  template <int WIDTH, bool PRODUCTS, class X, class B, int N> __device__ __forceinline__ void insert_together(const X (&x)[N], const B (&b)[N], const bool (&ready)[N]) {
#pragma unroll
    for (int o = 0; o < (APART ? WIDTH : N); ++o) {
      if (!APART && !ready[o]) continue;
      int chain = o % COUNT;
      double values[2] = {}, products[2] = {};
      Rest rest = {};
#pragma unroll
      for (int i = 0; i < (APART ? N : WIDTH); ++i) {
        int n = APART ? i : o, v = APART ? o : i;
        double one = ready[n] ? convert<double>(convert<typename O::A>(value(x[n], b[n], v))) : 0;
        values[i % 2] = O::kind(0) == Kind::PRODUCTS ? fma(one, one, values[i % 2]) : values[i % 2] + one;
        if constexpr (PRODUCTS) products[i % 2] = fma(one, one, products[i % 2]);
        else if constexpr (O::MOMENTS) rest.of[1] += sum[1].add_product(APART ? chain : i % COUNT, one, one);
        if constexpr (O::COUNTING) number[APART ? v : 0] += ready[n] && chosen(x[n], b[n], v);
      }
      rest.of[0] = sum[0].add_high(chain, values[0] + values[1]);
      if constexpr (PRODUCTS) rest.of[1] = sum[1].add_high(chain, products[0] + products[1]);
      insert_low(chain, rest);
    }
  }
  template <int WIDTH = VEC, class X, class B, int N> __device__ __forceinline__ void insert(const X (&x)[N], const B (&b)[N], const bool (&ready)[N]) {
    if constexpr (PAIRED<N, WIDTH> || TOGETHER<N, WIDTH>) {
      if (close) return insert_together<WIDTH, O::MOMENTS && HALF<Tval>>(x, b, ready);
      if constexpr (SAME<Tval, f16>) return insert_together<WIDTH, false>(x, b, ready);  // a double holds all sums of values
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
      Rest rest[Part::LOWS];  // of a pack, added up apart: the lower level would be one long chain
#pragma unroll
      for (int v = 0; v < WIDTH; ++v) {
        Rest more = insert_high(v % COUNT, value(x[n], b[n], v), factor(b[n], v));
        int low = v % COUNT % Part::LOWS;
#pragma unroll
        for (int p = 0; p < O::PARTS; ++p) rest[low].of[p] = v >= Part::LOWS ? rest[low].of[p] + more.of[p] : more.of[p];
        if constexpr (O::COUNTING) number[APART ? v : 0] += chosen(x[n], b[n], v);
      }
#pragma unroll
      for (int low = 0; low < Part::LOWS && low < WIDTH; ++low) insert_low(low, rest[low]);
    }
  }
  // Elements at the edges of a row: before the others, and after them.
  template <class X, class B, int N> __device__ __forceinline__ void first_edges(const X (&x)[N], const B (&b)[N], const bool (&ready)[N]) {
    if constexpr (SINGLE) measure<1>(x, b, ready);
    if constexpr (FILTER) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (ready[n]) plain.add(n, value(x[n], b[n], 0));
      }
    }
  }
  template <class X, class B, int N> __device__ __forceinline__ void last_edges(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    if constexpr (!SINGLE) {
      begin();
      measure<1>(x, b, ready);
      make_room<1>(c);
    }
    if (!known) insert<1>(x, b, ready);
  }
  // Whether element v of a pack takes part; an element, or 0 in its place; what it is multiplied by.
  template <class X, class B> static __device__ __forceinline__ bool chosen(const X& x, const B& b, int v) {
    return taken<O>(x.get(v), b.get(ONE_EACH ? v : 0));
  }
  template <class X, class B> static __device__ __forceinline__ Tval value(const X& x, const B& b, int v) {
    Tval own = convert<Tval>(x.get(v));
    return ALL || O::PRODUCT || chosen(x, b, v) ? own : Tval{};
  }
  template <class B> static __device__ __forceinline__ Tval factor(const B& b, int v) {
    if constexpr (O::PRODUCT) return convert<Tval>(b.get(ONE_EACH ? v : 0));
    else return Tval{};
  }
  __device__ __forceinline__ typename O::State get(int o, const Context<A>& c) const {
    if constexpr (FILTER) {
      if (known) return plain.state(holds);
    }
    typename O::State made;
#pragma unroll
    for (int p = 0; p < O::PARTS; ++p) {
      made.part[p] = total_of(p, o, c);
    }
    if constexpr (O::COUNTING) made.n = decltype(made.n)::of(number[o]);
    return made;
  }
  // What lies below the last bits of squares is exact, and merges lose nothing of it, if less than 2^room of at most half of
  // 2^(most + room + 1 - 52) add up to less than 2^53 times what all are multiples of.
  __device__ __forceinline__ typename O::Number total_of(int p, int o, const Context<A>& c) const {
    if (!(GRAINS && O::kind(p) == Kind::PRODUCTS)) return sum[p].template total<typename O::Number, O::ALIKE>(o, c.headroom, c);
    return sum[p].template total<typename O::Number, true>(o, c.room, c, 2 * c.room + sum[p].most - 52 - 2 * grain() <= 53);
  }
  __device__ __forceinline__ typename O::State total(const Context<A>& c) const { return get(0, c); }
};

// Packs of elements that are not there: they count for nothing.
template <class O = Op, class X, class B> __device__ __forceinline__ void leave_out(X& x, B& b, bool& ready) {
  if constexpr (O::EXACT) {
    if constexpr (O::UNCONVERTED) x.fill(convert<Tin>(nan<float>()));
    else x.fill(Tin{});
    if constexpr (OTHER != NONE) b.fill(Tb{});
    ready = true;
  }
}

// Elements that are there in a row's own order, every STEP-th from this thread's place on. get(i): element i; other(i): its
// element of the second operand.
template <int STEP, int UNROLLED, class Get, class Other, class O = Op> __device__ __forceinline__ State reduced(i32 count, Get get, Other other, const Context<A>& c) {
  i32 first = STEP > 1 ? threadIdx.x % STEP : 0;
  if constexpr (O::EXACT) {
    Sums<false, 1, O> sum;
    auto element = [&](i32 i) {
      auto own = get(i);
      return taken<O>(own, other(i)) ? convert<Tval>(own) : Tval{};
    };
    auto factor = [&](i32 i) {
      if constexpr (O::PRODUCT) return convert<Tval>(other(i));
      else return Tval{};
    };
    if constexpr (sum.FILTER) {  // (in one chain: of two, the index would not be known)
#pragma unroll UNROLLED
      for (i32 i = first; i < count; i += STEP) sum.plain.add(0, element(i));
      if (sum.plain.template enough<STEP>(c)) return sum.plain.state(first == 0);
    }
    sum.begin();
#pragma unroll UNROLLED
    for (i32 i = first; i < count; i += STEP) {
      sum.template measured<false>(sum.first, element(i));
      if constexpr (O::PRODUCT) sum.template measured<false>(sum.second, factor(i));
      if constexpr (sum.GRAINS) sum.least = min(sum.least, sum.size_less_one(element(i)));
    }
    sum.template make_room<STEP>(c);
#pragma unroll UNROLLED
    for (i32 i = first; i < count; i += STEP) {
      sum.insert_one(0, element(i), factor(i));
      if constexpr (O::COUNTING) sum.number[0] += taken<O>(get(i), other(i));
    }
    return sum.total(c);
  } else {
    State value = Op::identity();
#pragma unroll UNROLLED
    for (i32 i = first; i < count; i += STEP) value = joined_next(value, get(i), other(i), i, c);
    return value;
  }
}
