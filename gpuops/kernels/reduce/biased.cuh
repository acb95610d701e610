// The accumulators of exact sums (see accumulate.cuh), and how lanes add them up.

namespace gpuops {

// The greatest of lanes that differ in bits HIGH … LOW of their index.
__device__ __forceinline__ i32 lanes_max(i32 x, int low, int high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (low == 1 && high == 16) return __reduce_max_sync(0xffffffffu, x);
#endif
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    if (mask >= low && mask <= high) x = max(x, shuffle_xor(x, mask));
  }
  return x;
}
// The greatest of the lanes of a row, or of the whole block. Each CALL has memory of its own.
template <int LANES, int CALL> __device__ __forceinline__ i32 row_max(i32 x) {
  if constexpr (LANES <= 32) {
    return lanes_max(x, 1, LANES / 2);
  } else {
    __shared__ i32 cell[LANES / 32];
    x = lanes_max(x, 1, 16);
    if (threadIdx.x % 32 == 0) cell[threadIdx.x / 32] = x;
    __syncthreads();
    return lanes_max(cell[threadIdx.x % (LANES / 32)], 1, 16);
  }
}
// Adds up integers over all lanes, 26 bits at a time.
__device__ __forceinline__ Int128 warp_sum(Int128 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  constexpr u32 MASK = (1u << 26) - 1, ALL = 0xffffffffu;
  u64 middle = x.low >> 52 | static_cast<u64>(x.high) << 12;
  u64 a = __reduce_add_sync(ALL, static_cast<u32>(x.low) & MASK), b = __reduce_add_sync(ALL, static_cast<u32>(x.low >> 26) & MASK);
  u64 c = __reduce_add_sync(ALL, static_cast<u32>(middle) & MASK), d = __reduce_add_sync(ALL, static_cast<u32>(x.high >> 14) & MASK);
  i64 e = __reduce_add_sync(ALL, static_cast<i32>(x.high >> 40));
  b += a >> 26, c += b >> 26, d += c >> 26;
  return {(a & MASK) | (b & MASK) << 26 | c << 52, static_cast<i64>((c & MASK) >> 12) + (static_cast<i64>(d) << 14) + (e << 40)};
#else
  for (int mask = 16; mask > 0; mask /= 2) x = x + shuffle_xor(x, mask);
  return x;
#endif
}
// Adds up exact sums over such lanes: in one unit, if there is no special number. (One function for all calls: loading
// instructions takes long.)
static __device__ __noinline__ Fixed lanes_sum(Fixed x, int low, int high) {
  i32 unit = lanes_max(x.unit, low, high);
  if (unit != SPECIAL) x = x.in_unit(unit);
  if (__any_sync(0xffffffffu, unit == SPECIAL || x.lost != 0)) {
#pragma unroll 1
    for (int mask = high; mask >= low; mask /= 2) x = x + shuffle_xor(x, mask);
  } else if (low == 1 && high == 16) {
    x.integer = warp_sum(x.integer);
  } else {
#pragma unroll 1
    for (int mask = high; mask >= low; mask /= 2) x.integer = x.integer + shuffle_xor(x.integer, mask);
  }
  return x;
}
template <int LEVELS> __device__ __forceinline__ Near<LEVELS> lanes_sum(Near<LEVELS> x, int low, int high) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    if (mask >= low && mask <= high) x = x + shuffle_xor(x, mask);
  }
  return x;
}
template <class Op> __device__ __forceinline__ typename Op::State exact_lanes(typename Op::State value, int low, int high) {
#pragma unroll
  for (int p = 0; p < Op::PARTS; ++p) value.part[p] = lanes_sum(value.part[p], low, high);
  if constexpr (Op::COUNTING) {
#pragma unroll 1
    for (int mask = high; mask >= low; mask /= 2) value.n = decltype(value.n)::of(value.n.get() + shuffle_xor(value.n, mask).get());
  }
  return value;
}

}  // namespace gpuops

// Exact sums in doubles that begin with a bias, which is greater than whatever is added: so what an addition loses takes
// two operations (fast_two_sum). `high` loses to `low`; what that loses is only noted. The bits of such a double are an
// integer in fixed point. DIRECT: doubles are exact without all that, if terms are FEW. PLAIN: `low` is rounded.
// COUNT: chains, of one sum or (APART) of as many. They have one bias, which a term of a greater exponent raises.
template <int COUNT, bool APART, class R, bool DIRECT, bool PLAIN> struct Biased {
  static constexpr i32 SLACK = 2, STEP = 4;  // biases are alike, if exponents hardly differ
  static constexpr u32 BEYOND = ~0u;
  static constexpr i32 FEW = 15;  // the headroom of less than 2^13 terms: multiples of 2^-24, less than 2^29 together
  static constexpr int LOWS = APART && !DIRECT ? COUNT : 1;
  double high[COUNT], low[LOWS];
  i32 most = NOTHING;  // terms are less than 2^most
  u32 lost = 0;

  __device__ __forceinline__ Biased() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) high[i] = 0;
#pragma unroll
    for (int i = 0; i < LOWS; ++i) low[i] = -0.0;
  }
  static __device__ __forceinline__ double bias(i32 exponent) { return bit_cast<double>(u64(2 * (exponent + 1023) + 1) << 51); }
  // What lies above a bias, in units of the last bit.
  static __device__ __forceinline__ i64 integer(double x) {
    return static_cast<i64>(bit_cast<u64>(x) & ((u64(1) << 52) - 1)) - (i64(1) << 51);
  }
  // The exponents of biases, of `high` and of `low`; the least is that of a bias which is not subnormal.
  static __device__ __forceinline__ i32 above(i32 exponent, i32 headroom) { return exponent + headroom + 1; }
  static __device__ __forceinline__ i32 below(i32 exponent, i32 headroom) { return exponent + 2 * headroom - 51; }
  static __device__ __forceinline__ i32 at_least(i32 headroom) { return -970 - 2 * headroom; }
  __device__ __forceinline__ double low_bias(i32 headroom) const { return PLAIN ? -0.0 : bias(below(most, headroom)); }

  __device__ __forceinline__ void add(int i, double x) {
    if constexpr (DIRECT) {
      high[i] += x;
    } else {
      double rest;
      high[i] = fast_two_sum(high[i], x, rest);
      if constexpr (PLAIN) {
        low[i % LOWS] += rest;
      } else {
        double last;
        low[i % LOWS] = fast_two_sum(low[i % LOWS], rest, last), rest = last;
      }
      lost |= high_word(rest);
      if constexpr (SAME<R, double>) lost |= static_cast<u32>(bit_cast<u64>(rest));  // of a subnormal one, the higher word may be 0
    }
  }
  // What doubles without a bias may lose: of 2^headroom sums of as many terms, less than 2^16 each, 2^-53 of each sum.
  static __device__ __forceinline__ double rounded_off(i32 headroom) {
    return headroom <= FEW ? 0 : power_of_two(2 * headroom + 16 - 53);
  }
  // Begins with terms that are less than 2^exponent; there are less than 2^headroom.
  __device__ __forceinline__ void begin(i32 exponent, i32 headroom) {
    most = max(exponent, at_least(headroom));
    if (SAME<R, double> && above(most, headroom) > 1022) lost = BEYOND, most = 0;
    double first = bias(above(most, headroom));
#pragma unroll
    for (int i = 0; i < COUNT; ++i) high[i] = SINGLE ? first : high[i] + first;  // (high is 0, or not finite)
#pragma unroll
    for (int i = 0; i < LOWS; ++i) low[i] = low_bias(headroom);
  }
  __device__ __forceinline__ void raise(i32 exponent, i32 headroom) {
    exponent = (exponent + SLACK + STEP - 1) & -STEP;
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
      if (i < LOWS) add(i, rest[i]);
    }
  }
  // The sum of all chains or (APART) of one.
  __device__ __forceinline__ Fixed total(int chain, i32 headroom) const {
    i64 sum = 0;
    double special = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (APART && i != chain) continue;
      if (!is_finite(high[i])) special += high[i];
      else if constexpr (DIRECT) sum += static_cast<i64>(high[i] * 0x1p24);
      else sum += integer(high[i]);
    }
    if (special != 0) return gpuops::special(special);
    if constexpr (DIRECT) return {shifted(sum, 0), Format<f16>::LEAST, convert<float>(rounded_off(headroom) * 0x1p24)};
    if (lost == BEYOND) return lacking();
    if (most == NOTHING) return fixed(0);
    i32 unit = below(most, headroom) - 52;
    float off = lost << 1 ? bit_cast<float>(u32(headroom + 126) << 23) : 0;  // (each term loses half a unit)
    double rest = low[chain % LOWS];
    i64 second = PLAIN ? static_cast<i64>(rint(rest * power_of_two(-unit))) : integer(rest);
    return {shifted(sum, 52 - headroom) + shifted(second, 0), unit, off};
  }
  __device__ __forceinline__ Near<DIRECT ? 1 : 2> near_total(int chain, i32 headroom) const {
    bool none = !SINGLE && most == NOTHING;
    double s = -0.0, bias_of = DIRECT || none ? 0 : bias(above(most, headroom));
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (!APART || i == chain) s += high[i] - bias_of;
    }
    double off = 0;
    if (!DIRECT && lost << 1) {
      i32 exponent = below(most, headroom) - 53 + headroom;
      off = SAME<R, double> && lost == BEYOND ? Limits<double>::greatest() : power_of_two(max(exponent, -1074));
    }
    if constexpr (DIRECT) return {s, rounded_off(headroom)};
    else return {s, none ? 0 : PLAIN ? low[chain % LOWS] : low[chain % LOWS] - low_bias(headroom), off};
  }
};

// The greatest exponent of terms: |x| < 2^exponent.
template <class R> struct Largest {
  float size = 0;
  // FINITE: leaves out others.
  template <bool FINITE> __device__ __forceinline__ void add(float x) { size = greater_of(size, FINITE && !(fabs(x) < Limits<float>::greatest()) ? 0.0f : fabs(x)); }
  __device__ __forceinline__ i32 exponent() const { return static_cast<i32>(bit_cast<u32>(size) >> 23) - 126; }
  static constexpr i32 INFINITE = 129;
};
template <> struct Largest<double> {
  u32 size = 0;
  template <bool FINITE> __device__ __forceinline__ void add(double x) {
    u32 own = high_word(x) & 0x7fffffffu;
    size = max(size, FINITE && own >= 0x7ff00000u ? 0u : own);
  }
  __device__ __forceinline__ i32 exponent() const { return static_cast<i32>(size >> 20) - 1022; }
  static constexpr i32 INFINITE = 1025;
};

// Exact sums of a thread (SINGLE: of all elements of its outputs at once): of packs of VEC elements, or of single ones. Elements come several at a time: they are measured,
// before they are added.
template <bool APART, int CHAINS, class O = Op> struct Sums {
  static constexpr int OUTPUTS = APART ? VEC : 1, COUNT = APART ? VEC : CHAINS < VEC ? CHAINS : VEC;
  static constexpr bool ALL = OTHER == NONE && !O::UNCONVERTED;  // every element takes part
  static constexpr int MEASURES = O::MULTIPLIES ? 1 : O::PARTS;  // the parts of elements that are measured apart
  using R = typename O::R;
  using Part = Biased<COUNT, APART, R, O::DIRECT, O::PLAIN>;
  Part sum[O::PARTS];
  Largest<R> first[MEASURES], second[1];
  u32 number[O::COUNTING ? OUTPUTS : 1] = {};

  // LANES: of a row.
  template <int LANES = 1, class X, class B, int N>
  __device__ __forceinline__ void add(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    if constexpr (!SINGLE) begin();
    measure(x, b, ready);
    if constexpr (APART && !O::DIRECT) {
      if (infinite()) begin(), measure<VEC, true>(x, b, ready);  // to the others, that is of no account
    }
    make_room<LANES>(c.headroom);
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
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int v = 0; v < WIDTH; ++v) {
        measured<FINITE>(first, value(x[n], b[n], v));
        if constexpr (O::PRODUCT) measured<FINITE>(second, factor(b[n], v));
      }
    }
  }
  template <bool FINITE, int N> static __device__ __forceinline__ void measured(Largest<R> (&largest)[N], Tval x) {
    auto value = convert<typename O::A>(x);
    if constexpr (COMPLEX<Tval>) largest[0].template add<FINITE>(value.re), largest[N - 1].template add<FINITE>(value.im);
    else largest[0].template add<FINITE>(value);
  }
  __device__ __forceinline__ bool infinite() const {
    bool any = first[0].exponent() >= Largest<R>::INFINITE || first[MEASURES - 1].exponent() >= Largest<R>::INFINITE;
    return any || (O::PRODUCT && second[0].exponent() >= Largest<R>::INFINITE);
  }
  template <int LANES> __device__ __forceinline__ void make_room(i32 headroom) {
    if constexpr (O::DIRECT) return;
    make_room_of<0, LANES>(headroom);
    if constexpr (O::PARTS > 1) make_room_of<1, LANES>(headroom);
  }
  template <int P, int LANES> __device__ __forceinline__ void make_room_of(i32 headroom) {
    i32 exponent = first[P % MEASURES].exponent();
    bool infinite = exponent >= Largest<R>::INFINITE;
    if constexpr (O::PRODUCT) infinite |= second[0].exponent() >= Largest<R>::INFINITE;
    if constexpr (O::MULTIPLIES) exponent += O::PRODUCT ? second[0].exponent() : exponent;
    else if constexpr (COMPLEX<Tval> && O::PARTS == 1) ++exponent;  // a magnitude
    if constexpr (SINGLE) sum[P].begin(row_max<LANES, P>(infinite ? -1000 : exponent), headroom);
    else if (exponent > sum[P].most && !infinite) sum[P].raise(exponent, headroom);
  }
  __device__ __forceinline__ void insert_one(int chain, Tval x, Tval y) {
    bool beyond[O::PARTS];
    auto terms = O::terms(x, y, beyond);
#pragma unroll
    for (int p = 0; p < O::PARTS; ++p) {
#pragma unroll
      for (int t = 0; t < O::TERMS; ++t) sum[p].add(chain, terms.of[p][t]);
      if (beyond[p]) sum[p].lost = Part::BEYOND;
    }
  }
  template <int WIDTH = VEC, class X, class B, int N> __device__ __forceinline__ void insert(const X (&x)[N], const B (&b)[N], const bool (&ready)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (!ready[n]) continue;
#pragma unroll
      for (int v = 0; v < WIDTH; ++v) {
        insert_one(v % COUNT, value(x[n], b[n], v), factor(b[n], v));
        if constexpr (O::COUNTING) number[APART ? v : 0] += chosen(x[n], b[n], v);
      }
    }
  }
  // Elements at the edges of a row: before the others, and after them.
  template <class X, class B, int N> __device__ __forceinline__ void first_edges(const X (&x)[N], const B (&b)[N], const bool (&ready)[N]) {
    if constexpr (SINGLE) measure<1>(x, b, ready);
  }
  template <class X, class B, int N> __device__ __forceinline__ void last_edges(const X (&x)[N], const B (&b)[N], const bool (&ready)[N], const Context<A>& c) {
    if constexpr (!SINGLE) {
      begin();
      measure<1>(x, b, ready);
      make_room<1>(c.headroom);
    }
    insert<1>(x, b, ready);
  }
  // Whether element v of a pack takes part; an element, or 0 in its place; what it is multiplied by.
  template <class X, class B> static __device__ __forceinline__ bool chosen(const X& x, const B& b, int v) {
    return taken<O>(x.get(v), b.get(OTHER == BESIDE ? v : 0));
  }
  template <class X, class B> static __device__ __forceinline__ Tval value(const X& x, const B& b, int v) {
    Tval own = convert<Tval>(x.get(v));
    return ALL || O::PRODUCT || chosen(x, b, v) ? own : Tval{};
  }
  template <class B> static __device__ __forceinline__ Tval factor(const B& b, int v) {
    if constexpr (O::PRODUCT) return convert<Tval>(b.get(OTHER == BESIDE ? v : 0));
    else return Tval{};
  }
  __device__ __forceinline__ typename O::State get(int o, const Context<A>& c) const {
    typename O::State made;
#pragma unroll
    for (int p = 0; p < O::PARTS; ++p) {
      if constexpr (O::IS_NEAR) made.part[p] = sum[p].near_total(o, c.headroom);
      else made.part[p] = sum[p].total(o, c.headroom);
    }
    if constexpr (O::COUNTING) made.n = decltype(made.n)::of(number[o]);
    return made;
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

// Elements that are there in a row's own order, every STEP-th from this thread's place on.
template <int STEP, int UNROLLED, class Get, class O = Op> __device__ __forceinline__ State reduced(i32 count, Get get, const Context<A>& c) {
  i32 first = STEP > 1 ? threadIdx.x % STEP : 0;
  if constexpr (O::EXACT) {
    Sums<false, 1, O> sum;
    auto element = [&](i32 i) {
      auto own = get(i);
      return taken<O>(own, Tb{}) ? convert<Tval>(own) : Tval{};
    };
    sum.begin();
#pragma unroll UNROLLED
    for (i32 i = first; i < count; i += STEP) sum.template measured<false>(sum.first, element(i));
    sum.template make_room<STEP>(c.headroom);
#pragma unroll UNROLLED
    for (i32 i = first; i < count; i += STEP) {
      sum.insert_one(0, element(i), Tval{});
      if constexpr (O::COUNTING) sum.number[0] += taken<O>(get(i), Tb{});
    }
    return sum.total(c);
  } else {
    State value = Op::identity();
#pragma unroll UNROLLED
    for (i32 i = first; i < count; i += STEP) value = joined_next(value, get(i), i, c);
    return value;
  }
}
