// Ops that are exact sums of floats: of one kind, or of several that the result needs.
namespace gpuops {

// Of elements; MOMENTS: of elements and of their squares; WEIGHTED: of products with weights and of the weights.
enum class Adds { VALUES, MAGNITUDES, SQUARES, PRODUCTS, MOMENTS, WEIGHTED };
// STRICT: a variance that is NaN without degrees of freedom. SPREAD: the mean and the variance.
enum class Gives { SUM, MEAN, ROOT, VARIANCE, STRICT, SPREAD, RATIO };
// What the terms of a part of a state are. ERRORS: what products lose when they are rounded.
enum class Kind { VALUES, MAGNITUDES, PRODUCTS, FACTORS, ERRORS };

template <class V> constexpr bool COMPLEX = ONE_OF<V, c64, c128>;

// The terms that an element contributes to each part of a state.
template <int PARTS, int TERMS> struct Terms { double of[PARTS][TERMS]; };

// Sums of what elements of V are in its accumulator's type A, in double precision or more.
// NEAR: sums that merge have an exponent, or a unit, in common.
template <class V, Adds ADDS, Gives GIVES, bool NEAR> struct Exact : Traits {
  static constexpr bool EXACT = true, DIVIDES = GIVES == Gives::MEAN, ALIKE = NEAR;
  static constexpr bool PRODUCT = ADDS == Adds::PRODUCTS || ADDS == Adds::WEIGHTED;
  enum Options { N, INVERSE, DDOF = INVERSE, SHARE };  // SHARE: of a variance, the reciprocal of what n S2 - S1^2 is divided by
  using Value = V;
  using A = accumulate_t<V>;
  using R = real_t<A>;    // of parts
  using Part = real_t<V>;  // of the parts of results
  static constexpr bool SPREADS = GIVES == Gives::SPREAD;  // whether it has a second result, a variance
  static constexpr bool MOMENTS = ADDS == Adds::MOMENTS, MULTIPLIES = PRODUCT || MOMENTS || ADDS == Adds::SQUARES;
  static constexpr bool WIDE = SAME<R, double>;  // products have errors
  static constexpr int VALUES = SEVERAL<V> ? SEVERAL<V> : COMPLEX<V> && ADDS != Adds::MAGNITUDES && ADDS != Adds::SQUARES ? 2 : 1;
  static constexpr int PARTS = MOMENTS ? VALUES + (WIDE ? 2 : 1) : ADDS == Adds::WEIGHTED ? 2 * VALUES : VALUES;
  static constexpr int FACTORS = MULTIPLIES && COMPLEX<V> ? 2 : 1, TERMS = FACTORS * (WIDE && MULTIPLIES && !MOMENTS ? 2 : 1);
  // The kind of a part, and how many terms it gets of an element.
  static __device__ constexpr Kind kind(int part) {
    if (ADDS == Adds::MAGNITUDES) return Kind::MAGNITUDES;
    if (ADDS == Adds::VALUES || (MOMENTS && part < VALUES)) return Kind::VALUES;
    if (MOMENTS && part > VALUES) return Kind::ERRORS;
    return ADDS == Adds::WEIGHTED && part >= VALUES ? Kind::FACTORS : Kind::PRODUCTS;
  }
  static __device__ constexpr int count(int part) {
    return kind(part) == Kind::PRODUCTS ? TERMS : kind(part) == Kind::ERRORS ? FACTORS : 1;
  }
  using All = Digits<Part, MULTIPLIES>;
  static constexpr bool WHOLE = GIVES == Gives::SUM || GIVES == Gives::RATIO;  // sums are not divided by numbers
  static constexpr bool DIRECT = SAME<Part, f16> && !MULTIPLIES;  // a double is exact
  using Number = typename Either<SAME<R, float>, Aligned, typename Either<NEAR, gpuops::Near, Fixed>::type>::type;
  struct State { Number part[PARTS]; };
  // A term, of less than 2^room.
  static __device__ __forceinline__ Number number(double x, i32 room = 0) {
    if constexpr (SAME<Number, Aligned>) return aligned(x, room);
    else if constexpr (SAME<Number, Fixed>) return fixed(x);
    else return {x, 0, 0};
  }
  static __device__ __forceinline__ State identity() {
    State made;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) made.part[p] = number(0);
    return made;
  }

  // Factors of the products, or the terms alone, in doubles.
  static __device__ __forceinline__ void factors(V x, V y, double (&a)[PARTS][FACTORS], double (&b)[PARTS][FACTORS]) {
    A p = convert<A>(x), q = convert<A>(PRODUCT ? y : x);
    if constexpr (SEVERAL<V> > 0) {
#pragma unroll
      for (int k = 0; k < VALUES; ++k) a[k][0] = convert<double>(p.of[k]);
    } else if constexpr (ADDS == Adds::MAGNITUDES) {
      a[0][0] = convert<double>(magnitude(p));
    } else if constexpr (!COMPLEX<V>) {
      a[0][0] = convert<double>(p), b[0][0] = convert<double>(q);
      if constexpr (MOMENTS) a[1][0] = b[1][0] = a[0][0];
      if constexpr (ADDS == Adds::WEIGHTED) a[1][0] = b[0][0];
    } else if constexpr (ADDS == Adds::SQUARES) {
      a[0][0] = b[0][0] = convert<double>(p.re), a[0][1] = b[0][1] = convert<double>(p.im);
    } else if constexpr (!PRODUCT) {
      a[0][0] = convert<double>(p.re), a[1][0] = convert<double>(p.im);
      if constexpr (MOMENTS) a[2][0] = b[2][0] = a[0][0], a[2][1] = b[2][1] = a[1][0];
    } else {
      a[0][0] = a[1][0] = convert<double>(p.re), a[0][1] = a[1][1] = convert<double>(p.im);
      b[0][0] = b[1][1] = convert<double>(q.re), b[1][0] = convert<double>(q.im), b[0][1] = -convert<double>(q.im);
      if constexpr (ADDS == Adds::WEIGHTED) a[2][0] = b[0][0], a[3][0] = b[1][0];
    }
  }
  // Whether an element is beyond what expansions hold.
  template <bool PRODUCTS> static __device__ __forceinline__ bool beyond(double term, double a, double b) {
    if constexpr (!SAME<R, double>) return false;
    u32 size = high_word(term) & 0x7fffffffu;  // (integers, which other units compare)
    bool huge = size >= HUGE_WORD && is_finite(a) && (!PRODUCTS || is_finite(b));
    return huge || (PRODUCTS && size < LOST_WORD && bit_cast<u64>(a) << 1 != 0 && bit_cast<u64>(b) << 1 != 0);
  }
  // A term of a part, and its error.
  static __device__ __forceinline__ double term_of(int part, double a, double b, double& error) {
    error = 0;
    if (kind(part) != Kind::PRODUCTS) return a;
    if constexpr (WIDE) return two_product(a, b, error);
    else return __dmul_rn(a, b);
  }
  static __device__ __forceinline__ bool is_beyond(int part, double term, double a, double b) {
    return kind(part) == Kind::PRODUCTS ? beyond<true>(term, a, b) : beyond<false>(term, a, b);
  }
  // Terms, of which `lost` says of each part whether some are left out, since they are beyond expansions.
  static __device__ __forceinline__ Terms<PARTS, TERMS> terms(V x, V y, bool (&lost)[PARTS]) {
    double a[PARTS][FACTORS], b[PARTS][FACTORS];
    Terms<PARTS, TERMS> found;
    factors(x, y, a, b);
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      if (kind(p) == Kind::ERRORS) continue;  // they come with the products
      lost[p] = false;
      constexpr bool APART = MOMENTS && WIDE;
#pragma unroll
      for (int f = 0; f < (kind(p) == Kind::PRODUCTS ? FACTORS : 1); ++f) {
        double error, term = term_of(p, a[p][f], b[p][f], error);
        if (is_beyond(p, term, a[p][f], b[p][f])) term = error = 0, lost[p] = true;
        if (!is_finite(term)) error = 0;
        found.of[p][f] = term;
        if constexpr (APART) {
          if (kind(p) == Kind::PRODUCTS) found.of[PARTS - 1][f] = error, lost[PARTS - 1] = false;
        } else if constexpr (WIDE && MULTIPLIES) {
          if (kind(p) == Kind::PRODUCTS) found.of[p][FACTORS + f] = error;
        }
      }
    }
    return found;
  }
  // The state of an element, of which rounding loses nothing.
  static __device__ __forceinline__ State product(V x, V y, const Context<A>& c) {
    bool lost[PARTS];
    auto found = terms(x, y, lost);
    State made;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      made.part[p] = number(found.of[p][0], c.room);
#pragma unroll
      for (int t = 1; t < count(p); ++t) made.part[p] = made.part[p] + number(found.of[p][t], c.room);
      if constexpr (SAME<Number, Fixed>) made.part[p] = lost[p] ? lacking() : made.part[p];
    }
    return made;
  }
  static __device__ __forceinline__ State map(V x, const Context<A>& c) { return product(x, x, c); }
  static __device__ __forceinline__ State combine(const State& a, const State& b) {
    State both;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      if constexpr (ALIKE && SAME<Number, Aligned>) both.part[p] = alike_sum(a.part[p], b.part[p]);
      else both.part[p] = a.part[p] + b.part[p];
    }
    return both;
  }
  // Whether a part of an initial value is -0.0, and whether a part of a result is 0.
  static __device__ __forceinline__ bool has_minus_zero(V x) {
    if constexpr (SEVERAL<V> > 0) return bit_cast<u64>(convert<double>(x.of[0])) == u64(1) << 63;  // they are alike
    else if constexpr (COMPLEX<V>) return bit_cast<bits_of<R>>(x.re) == bit_cast<bits_of<R>>(R(-0.0)) || bit_cast<bits_of<R>>(x.im) == bit_cast<bits_of<R>>(R(-0.0));
    else return bit_cast<u64>(convert<double>(x)) == u64(1) << 63;
  }
  template <class Out> static __device__ __forceinline__ bool has_zero(Out x) {
    if constexpr (SEVERAL<Out> > 0) {
      bool any = false;
#pragma unroll
      for (int k = 0; k < VALUES; ++k) any |= !nonzero(x.of[k]);
      return any;
    } else if constexpr (COMPLEX<Out>) return x.re == 0 || x.im == 0;
    else return !nonzero(x);
  }
  template <class Out> static __device__ __forceinline__ Out joined(const Part (&part)[VALUES]) {
    if constexpr (SEVERAL<Out> > 0) {
      Several<Part, VALUES> all;
      memcpy(&all, part, sizeof all);
      return convert<Out>(all);
    } else if constexpr (VALUES == 2) return convert<Out>(Complex<Part>{part[0], part[1]});
    else return convert<Out>(part[0]);
  }
  template <class X> static __device__ __forceinline__ double part_of(X x, int part) {
    if constexpr (SEVERAL<X> > 0) return convert<double>(x.of[part]);
    else if constexpr (COMPLEX<X>) return convert<double>(part ? x.im : x.re);
    else return convert<double>(x);
  }
  struct Rounded {
    Part value;
    bool open;
  };
  template <Gives ONE> static __device__ __noinline__ Rounded made_of(Number sum, double n, double initial) {
    Rounded made = {};
    Expansion all = expansion(sum);
    if (initial != 0) {
      bool number = is_finite(all.s) && is_finite(initial);
      all = all.plus(initial);
      made.open = number && !is_finite(all.s);
    }
    if constexpr (ONE == Gives::MEAN) all = quotient(all, n);
    if constexpr (ONE == Gives::ROOT) all = gpuops::root(all);
    made.value = rounded<Part>(all, made.open);
    return made;
  }
  static __device__ __forceinline__ void note_merging(State& s, const Context<A>& c) {
    if constexpr (SAME<Number, Aligned>) {
#pragma unroll
      for (int p = 0; p < PARTS; ++p) {
        s.part[p].lost += s.part[p].lost == 0 ? 0 : float_power(kind(p) == Kind::PRODUCTS && MOMENTS ? c.merging_products : c.merging);
      }
    }
  }
  // What becomes of the sums of the first parts, or of those from FIRST on, and an initial value. open: it may be another.
  template <Gives ONE, class Out, int FIRST = 0>
  static __device__ __forceinline__ Out made(const State& s, double n, double inverse, bool has_initial, V initial, bool& open) {
    Part part[VALUES];
#pragma unroll
    for (int p = 0; p < VALUES; ++p) {
      const Number& own = s.part[FIRST + p];
      if constexpr (!SAME<Part, double>) {
        Found state;
        double sum = quick(own, state), found = ONE == Gives::MEAN ? sum * inverse : ONE == Gives::ROOT ? sqrt(sum) : sum;
        bool sure = state != Found::AWAY && is_certain<Part>(found);
        if constexpr (ONE == Gives::SUM) sure |= state == Found::EXACT;
        if (ONE == Gives::MEAN && state == Found::EXACT && is_normal<Part>(found)) found = around_middle<Part>(found, sum, n), sure = true;
        if (sure && !has_initial) {
          part[p] = narrowed<Part>(found);
          continue;
        }
      }
      Rounded found = made_of<ONE>(own, n, has_initial ? part_of(initial, p) : 0);
      part[p] = found.value, open |= found.open;
    }
    return joined<Out>(part);
  }
  // The expansion of the sum of squares, with that of their errors.
  static __device__ __forceinline__ Long squares_of(const State& s) {
    Long all = {};
    Expansion squares = expansion(s.part[VALUES]);
    all.add(squares.s), all.add(squares.e), all.r = squares.r;
    if constexpr (WIDE) {
      Expansion errors = expansion(s.part[PARTS - 1]);
      all.add(errors.s), all.add(errors.e), all.r += errors.r;
    }
    return all;
  }
  static __device__ __noinline__ Rounded variance_of(State s, double n, double freedom, bool root) {
    Rounded made = {};
    bool number = true;
    Expansion values[VALUES];
#pragma unroll
    for (int p = 0; p < VALUES; ++p) values[p] = expansion(s.part[p]), number &= is_finite(values[p].s);
    Expansion all = spread(values, squares_of(s), n);
    if (!number || freedom != freedom || (freedom <= 0 && GIVES == Gives::STRICT)) {
      made.value = convert<Part>(nan<float>());
    } else if (n == 0 || freedom <= 0 || !is_finite(freedom)) {
      made.value = convert<Part>(all.s / (freedom <= 0 ? 0.0 : freedom));
      made.open = all.r != 0 && !(all.r < fabs(all.s));
    } else {
      all = quotient(quotient(all, n), freedom);
      made.value = rounded<Part>(root ? gpuops::root(all) : all, made.open);
    }
    return made;
  }
  template <class Out> static __device__ __forceinline__ Out variance(const State& s, double n, double share, const Context<A>& c, bool& open) {
    double freedom = n - c.option[DDOF];
    if constexpr (!SAME<Part, double>) {
      double off, apart = quick_spread<VALUES>(s.part, n, off), found = apart * share;
      if (c.root) found = sqrt(found);
      if (freedom > 0 && off < 0x1p-43 * apart && is_certain<Part>(found)) return convert<Out>(narrowed<Part>(found));
    }
    Rounded found = variance_of(s, n, freedom, c.root);
    open |= found.open;
    return convert<Out>(found.value);
  }
  static __device__ __noinline__ Rounded ratio_of(State s) {
    Rounded made = {};
    made.value = rounded<Part>(gpuops::ratio(expansion(s.part[0]), expansion(s.part[1])), made.open);
    return made;
  }
  template <class Out> static __device__ __forceinline__ Out ratio(const State& s, bool& open) {
    if constexpr (VALUES == 1) {
      Rounded found = ratio_of(s);
      open |= found.open;
      return convert<Out>(found.value);
    } else {
      return ratio_of_rounded<Out>(made<Gives::SUM, V>(s, 1, 1, false, V{}, open), made<Gives::SUM, V, VALUES>(s, 1, 1, false, V{}, open));
    }
  }
  // That of complex sums that are rounded: in double precision, in steps that are rounded, too (R. Smith, "Algorithm 116:
  // Complex division", 1962).
  template <class Out> static __device__ __forceinline__ Out ratio_of_rounded(V x, V y) {
    Complex<double> a = {x.re, x.im}, b = {y.re, y.im};
    bool steep = fabs(b.im) > fabs(b.re);
    if (steep) a = {a.im, -a.re}, b = {b.im, -b.re};
    double part = b.im / b.re, size = __dadd_rn(b.re, __dmul_rn(b.im, part));
    double re = __dadd_rn(a.re, __dmul_rn(a.im, part)) / size, im = __dadd_rn(a.im, -__dmul_rn(a.re, part)) / size;
    return convert<Out>(Complex<Part>{convert<Part>(re), convert<Part>(im)});
  }
  // The first result, and the second one, of a state of n elements.
  template <class Out> static __device__ __forceinline__ Out first(State s, double n, double inverse, double share, const Context<A>& c, bool has_initial, V initial, bool& open) {
    note_merging(s, c);
    if constexpr (GIVES == Gives::VARIANCE || GIVES == Gives::STRICT) return variance<Out>(s, n, share, c, open);
    else if constexpr (GIVES == Gives::RATIO) return ratio<Out>(s, open);
    else return made<GIVES == Gives::SPREAD ? Gives::MEAN : GIVES, Out>(s, n, inverse, has_initial, initial, open);
  }
  template <class Out> static __device__ __forceinline__ Out then(State s, double n, double share, const Context<A>& c, bool& open) {
    note_merging(s, c);
    if constexpr (GIVES == Gives::SPREAD) return variance<Out>(s, n, share, c, open);
    else return made<Gives::SUM, Out, VALUES>(s, 1, 1, false, V{}, open);
  }
  template <class Out> static __device__ __forceinline__ Out finish(const State& s, const Context<A>& c, bool has_initial, V initial, bool& open) {
    return first<Out>(s, c.option[N], GIVES == Gives::SPREAD ? 1 / c.option[N] : c.option[INVERSE], c.option[SHARE], c, has_initial, initial, open);
  }
  template <class Out> static __device__ __forceinline__ Out second(const State& s, const Context<A>& c, bool& open) {
    return then<Out>(s, c.option[N], c.option[SHARE], c, open);
  }

  // A state as expansions: those of squares with what rounding them has lost.
  template <class F> static __device__ __forceinline__ F fields(State s, const Context<A>& c) {
    F made;
    note_merging(s, c);
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      if (kind(p) != Kind::ERRORS) made.part[p] = MOMENTS && p == VALUES ? squares_of(s).expansion() : expansion(s.part[p]);
    }
    if constexpr (MOMENTS) made.n = static_cast<i64>(c.option[N]);
    return made;
  }

  // ---- from digits
  // A thread's terms, and what it adds to the digits of its block.
  struct Again {
    double s[3] = {};
    u32 seen = 0;
    __device__ __forceinline__ void add(double x, All& all) {
      double lost;
#pragma unroll
      for (int i = 0; i < 3; ++i) s[i] = two_sum(s[i], x, lost), x = lost;
      if (x != 0) all.add(x);
    }
    __device__ __forceinline__ void end(All& all) {
#pragma unroll
      for (int i = 0; i < 3; ++i) all.add(s[i]);
      if (seen) atomicOr(&all.seen, seen);
    }
  };
  static __device__ __forceinline__ void again(V x, V y, Again (&own)[PARTS], All (&all)[PARTS]) {
    double a[PARTS][FACTORS], b[PARTS][FACTORS];
    factors(x, y, a, b);
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      if (kind(p) == Kind::ERRORS) continue;
#pragma unroll
      for (int f = 0; f < (kind(p) == Kind::PRODUCTS ? FACTORS : 1); ++f) {
        double error, term = term_of(p, a[p][f], b[p][f], error);
        if (bit_cast<u64>(a[p][f]) != u64(1) << 63) own[p].seen = All::OTHER;
        if (is_beyond(p, term, a[p][f], b[p][f])) {
          if (kind(p) == Kind::PRODUCTS) all[p].add_product(a[p][f], b[p][f]);
          else all[p].add(term);
        } else if (!is_finite(term)) {
          all[p].note(term);
        } else {
          own[p].add(term, all[p]);
          if (WIDE && kind(p) == Kind::PRODUCTS) own[p].add(error, all[p]);
        }
      }
    }
  }
  // The first result, and the second one, of n elements; `all` may be used up.
  template <class Out, class Second> static __device__ void exactly(All (&all)[PARTS], double n, const Context<A>& c, Out& y, Second& z) {
    bool negative[PARTS], finite = true;
    for (int p = 0; p < PARTS; ++p) negative[p] = all[p].settled(), finite &= p >= VALUES || all[p].finite();
    if constexpr (MOMENTS) {
      double freedom = n - c.option[DDOF];
      Part found = convert<Part>(nan<float>());
      if (finite && freedom == freedom && !(freedom <= 0 && GIVES == Gives::STRICT)) {
        all[VALUES].multiply(static_cast<u64>(n));
        for (int p = 0; p < VALUES; ++p) all[VALUES].subtract_square(all[p]);
        all[VALUES].settled();
        found = quotient_of(all[VALUES], false, n > 0 ? n : 1, freedom <= 0 ? 0.0 : freedom, c.root);
      }
      if constexpr (GIVES == Gives::SPREAD) {
        Part part[VALUES];
        for (int p = 0; p < VALUES; ++p) part[p] = quotient_of(all[p], negative[p], n, 1, false);
        y = joined<Out>(part), z = convert<Second>(found);
      } else {
        y = convert<Out>(found);
      }
    } else if constexpr (GIVES == Gives::RATIO) {
      Part part[PARTS];
      for (int p = VALUES == 1; p < PARTS; ++p) part[p] = quotient_of(all[p], negative[p], 1, 1, false);
      if constexpr (VALUES == 1) {
        y = convert<Out>(ratio_of_digits(all[0], negative[0], all[1], negative[1])), z = convert<Second>(part[1]);
      } else {
        V first = convert<V>(Complex<Part>{part[0], part[1]}), weight = convert<V>(Complex<Part>{part[2], part[3]});
        y = ratio_of_rounded<Out>(first, weight), z = convert<Second>(weight);
      }
    } else {
      Part part[VALUES];
      for (int p = 0; p < VALUES; ++p) {
        part[p] = quotient_of(all[p], negative[p], GIVES == Gives::MEAN ? n : 1, 1, GIVES == Gives::ROOT);
        if (c.minus_zero && !nonzero(part[p]) && !(all[p].seen & All::OTHER)) part[p] = convert<Part>(-0.0);
      }
      y = joined<Out>(part);
    }
  }
  // Settled digits, divided by n and by another number if the op divides; or the root of that.
  static __device__ __noinline__ Part quotient_of(const All& all, bool negative, double n, double other, bool root) {
    bool finite = all.finite();
    if constexpr (WHOLE || GIVES == Gives::ROOT) {
      if (!finite) return convert<Part>(all.special());  // (whose root is that itself)
      Binary found = all.whole();
      return nearest<Part>(root ? found.root() : found, negative);
    } else {
      if (!finite || n == 0 || other == 0 || !is_finite(other)) {
        return convert<Part>((!finite ? all.special() : all.is_zero() ? 0.0 : negative ? -1.0 : 1.0) / n / other);
      }
      i32 exponent;
      u64 part = mantissa(other, exponent);
      for (; !(part & 1); part >>= 1) ++exponent;
      Binary found = all.over(static_cast<u64>(n), part, exponent, root ? 128 : 64);
      return nearest<Part>(root ? found.root() : found, negative);
    }
  }
  static __device__ __noinline__ Part ratio_of_digits(All& x, bool negative_x, All& y, bool negative_y) {
    if (!x.finite() || !y.finite() || y.is_zero()) {
      double a = x.finite() ? (x.is_zero() ? 0.0 : negative_x ? -1.0 : 1.0) : x.special();
      return convert<Part>(a / (y.finite() ? (y.is_zero() ? 0.0 : negative_y ? -1.0 : 1.0) : y.special()));
    }
    return nearest<Part>(x.over(y), negative_x != negative_y);
  }
};

// Counts the elements that it adds, in an I.
template <class Base, class I> struct Counted : Base {
  static constexpr bool COUNTING = true, DIVIDES = false;
  using A = typename Base::A;
  using V = typename Base::Value;
  struct State {
    typename Base::Number part[Base::PARTS];
    Beside<double, I> n;
    __device__ __forceinline__ I count() const { return n.get(); }
  };
  static __device__ __forceinline__ State state(const typename Base::State& sum, I count) {
    State made;
#pragma unroll
    for (int p = 0; p < Base::PARTS; ++p) made.part[p] = sum.part[p];
    made.n = Beside<double, I>::of(count);
    return made;
  }
  static __device__ __forceinline__ typename Base::State sum(const State& s) {
    typename Base::State made;
#pragma unroll
    for (int p = 0; p < Base::PARTS; ++p) made.part[p] = s.part[p];
    return made;
  }
  static __device__ __forceinline__ State identity() { return state(Base::identity(), 0); }
  static __device__ __forceinline__ State map(V x, const Context<A>& c) { return state(Base::map(x, c), 1); }
  static __device__ __forceinline__ State combine(const State& a, const State& b) {
    return state(Base::combine(sum(a), sum(b)), a.count() + b.count());
  }
  template <class Out> static __device__ __forceinline__ Out finish(const State& s, const Context<A>& c, bool has_initial, V initial, bool& open) {
    double n = static_cast<double>(s.count());
    return Base::template first<Out>(sum(s), n, 1 / n, share(n, c), c, has_initial, initial, open);
  }
  template <class Out> static __device__ __forceinline__ Out second(const State& s, const Context<A>& c, bool& open) {
    double n = static_cast<double>(s.count());
    return Base::template then<Out>(sum(s), n, share(n, c), c, open);
  }
  static __device__ __forceinline__ double share(double n, const Context<A>& c) { return 1 / (n * (n - c.option[Base::DDOF])); }
  template <class F> static __device__ __forceinline__ F fields(const State& s, const Context<A>& c) {
    F made = Base::template fields<F>(sum(s), c);
    made.n = static_cast<i64>(s.count());
    return made;
  }
};

// Sums of floats are exact; those of integers are as they are.
template <class V> constexpr bool INEXACT = HALF<V> || FLOATING<V> || SEVERAL<V> > 0;
template <class V, Adds ADDS, int NEAR, class Plain> using of_type =
    typename Either<INEXACT<V>, Exact<V, ADDS, Gives::SUM, NEAR>, Plain>::type;
template <class V, bool NEAR> using Sum = of_type<V, Adds::VALUES, NEAR, Added<V>>;
template <class V, bool NEAR> using SumOfSquares = of_type<V, Adds::SQUARES, NEAR, Squares<V>>;
template <class V, bool NEAR> using Dot = of_type<V, Adds::PRODUCTS, NEAR, Products<V>>;
template <class V, bool NEAR> using Mean = typename Either<INEXACT<V>, Exact<V, Adds::VALUES, Gives::MEAN, NEAR>, WholeMean<V>>::type;
template <class V, class I, bool NEAR> using MaskedMean = typename Either<INEXACT<V>, Counted<Exact<V, Adds::VALUES, Gives::MEAN, NEAR>, I>, MaskedWholeMean<V, I>>::type;
template <class V, bool NEAR> using Norm1 = Exact<V, Adds::MAGNITUDES, Gives::SUM, NEAR>;
template <class V, bool NEAR> using Norm2 = Exact<V, Adds::SQUARES, Gives::ROOT, NEAR>;
template <class V, bool NEAR> using Var = Exact<V, Adds::MOMENTS, Gives::VARIANCE, NEAR>;
template <class V, class I, bool NEAR> using MaskedVar = Counted<Var<V, NEAR>, I>;
template <class V, class I, bool NEAR> using NanVar = WithoutNan<Counted<Exact<V, Adds::MOMENTS, Gives::STRICT, NEAR>, I>, V>;
template <class V, bool NEAR> using MeanVar = Exact<V, Adds::MOMENTS, Gives::SPREAD, NEAR>;
template <class V, class I, bool NEAR> using MaskedMeanVar = Counted<MeanVar<V, NEAR>, I>;
template <class V, bool NEAR> using Average = Exact<V, Adds::WEIGHTED, Gives::RATIO, NEAR>;
template <class V, bool NEAR> using NanSum = WithoutNan<Sum<V, NEAR>, V>;
template <class V, class I, bool NEAR> using NanMean = WithoutNan<MaskedMean<V, I, NEAR>, V>;

}  // namespace gpuops
