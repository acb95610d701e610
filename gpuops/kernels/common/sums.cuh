// Ops that are exact sums of floats, of their magnitudes, squares or products: their mean, or the root.
namespace gpuops {

enum class Adds { VALUES, MAGNITUDES, SQUARES, PRODUCTS };
enum class Gives { SUM, MEAN, ROOT };

template <class V> constexpr bool COMPLEX = ONE_OF<V, c64, c128>;

// The terms that an element contributes to each part of a sum, the real and the imaginary one.
template <int PARTS, int TERMS> struct Terms { double of[PARTS][TERMS]; };

// Sums of what elements of V are in its accumulator's type A, in double precision or more.
// NEAR: sums that merge have an exponent, or a unit, in common.
template <class V, Adds ADDS, Gives GIVES, bool NEAR> struct Exact : Traits {
  static constexpr bool EXACT = true, DIVIDES = GIVES == Gives::MEAN, ALIKE = NEAR, PRODUCT = ADDS == Adds::PRODUCTS;
  enum Options { N, INVERSE };  // the number of elements, and its reciprocal
  using A = accumulate_t<V>;
  using R = real_t<A>;    // of parts
  using Part = real_t<V>;  // of the parts of results
  static constexpr bool MULTIPLIES = ADDS == Adds::SQUARES || ADDS == Adds::PRODUCTS;
  static constexpr bool WIDE = MULTIPLIES && SAME<R, double>;  // products have two terms
  static constexpr int PARTS = COMPLEX<V> && (ADDS == Adds::VALUES || ADDS == Adds::PRODUCTS) ? 2 : 1;
  static constexpr int FACTORS = MULTIPLIES && COMPLEX<V> ? 2 : 1, TERMS = FACTORS * (WIDE ? 2 : 1);
  using All = Digits<Part, MULTIPLIES>;
  static constexpr bool DIRECT = SAME<V, f16> && !MULTIPLIES;  // a double is exact
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
    A p = convert<A>(x), q = convert<A>(ADDS == Adds::PRODUCTS ? y : x);
    if constexpr (ADDS == Adds::MAGNITUDES) {
      a[0][0] = convert<double>(magnitude(p));
    } else if constexpr (!COMPLEX<V>) {
      a[0][0] = convert<double>(p), b[0][0] = convert<double>(q);
    } else if constexpr (ADDS == Adds::VALUES) {
      a[0][0] = convert<double>(p.re), a[1][0] = convert<double>(p.im);
    } else if constexpr (ADDS == Adds::SQUARES) {
      a[0][0] = b[0][0] = convert<double>(p.re), a[0][1] = b[0][1] = convert<double>(p.im);
    } else {
      a[0][0] = a[1][0] = convert<double>(p.re), a[0][1] = a[1][1] = convert<double>(p.im);
      b[0][0] = b[1][1] = convert<double>(q.re), b[1][0] = convert<double>(q.im), b[0][1] = -convert<double>(q.im);
    }
  }
  // Whether an element is beyond what expansions hold.
  static __device__ __forceinline__ bool beyond(double term, double a, double b) {
    if constexpr (!SAME<R, double>) return false;
    bool huge = fabs(term) >= HUGE_FROM && is_finite(a) && (!MULTIPLIES || is_finite(b));
    return huge || (MULTIPLIES && fabs(term) < LOST_BELOW && a != 0 && b != 0);
  }
  // Terms, of which `lost` says of each part whether some are left out, since they are beyond expansions.
  static __device__ __forceinline__ Terms<PARTS, TERMS> terms(V x, V y, bool (&lost)[PARTS]) {
    double a[PARTS][FACTORS], b[PARTS][FACTORS];
    Terms<PARTS, TERMS> found;
    factors(x, y, a, b);
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      lost[p] = false;
#pragma unroll
      for (int f = 0; f < FACTORS; ++f) {
        double term = a[p][f], error = 0;
        if constexpr (WIDE) term = two_product(a[p][f], b[p][f], error);
        else if constexpr (MULTIPLIES) term = __dmul_rn(a[p][f], b[p][f]);
        if (beyond(term, a[p][f], b[p][f])) term = error = 0, lost[p] = true;
        if (WIDE && !is_finite(term)) error = 0;
        found.of[p][f] = term;
        if constexpr (WIDE) found.of[p][FACTORS + f] = error;
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
      for (int t = 1; t < TERMS; ++t) made.part[p] = made.part[p] + number(found.of[p][t], c.room);
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
    if constexpr (COMPLEX<V>) return bit_cast<bits_of<R>>(x.re) == bit_cast<bits_of<R>>(R(-0.0)) || bit_cast<bits_of<R>>(x.im) == bit_cast<bits_of<R>>(R(-0.0));
    else return bit_cast<u64>(convert<double>(x)) == u64(1) << 63;
  }
  template <class Out> static __device__ __forceinline__ bool has_zero(Out x) {
    if constexpr (COMPLEX<Out>) return x.re == 0 || x.im == 0;
    else return !nonzero(x);
  }
  template <class Out> static __device__ __forceinline__ Out joined(const Part (&part)[PARTS]) {
    if constexpr (PARTS == 2) return convert<Out>(Complex<Part>{part[0], part[1]});
    else return convert<Out>(part[0]);
  }
  template <class X> static __device__ __forceinline__ double part_of(X x, int part) {
    if constexpr (COMPLEX<X>) return convert<double>(part ? x.im : x.re);
    else return convert<double>(x);
  }
  struct Rounded {
    Part value;
    bool open;
  };
  static __device__ __noinline__ Rounded made_of(Number sum, double n, double initial) {
    Rounded made = {};
    Expansion all = expansion(sum);
    if (initial != 0) all = all.plus(initial);
    if constexpr (GIVES == Gives::MEAN) all = quotient(all, n);
    if constexpr (GIVES == Gives::ROOT) all = gpuops::root(all);
    made.value = rounded<Part>(all, made.open);
    return made;
  }
  // The result of a state and an initial value. open: it may be another.
  template <class Out, class S>
  static __device__ __forceinline__ Out made(S s, const Context<A>& c, double n, double inverse, bool has_initial, V initial, bool& open) {
    Part part[PARTS];
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      s.part[p] = merged(s.part[p], c);
      if constexpr (!SAME<Part, double>) {
        Found state;
        double found = quick(s.part[p], state);
        if constexpr (GIVES == Gives::MEAN) found *= inverse;
        if constexpr (GIVES == Gives::ROOT) found = sqrt(found);
        bool sure = (GIVES == Gives::SUM && state == Found::EXACT) || (state != Found::AWAY && is_certain<Part>(found));
        if (sure && !has_initial) {
          part[p] = narrowed<Part>(found);
          continue;
        }
      }
      Rounded found = made_of(s.part[p], n, has_initial ? part_of(initial, p) : 0);
      part[p] = found.value, open |= found.open;
    }
    return joined<Out>(part);
  }
  template <class Out> static __device__ __forceinline__ Out finish(const State& s, const Context<A>& c, bool has_initial, V initial, bool& open) {
    return made<Out>(s, c, c.option[N], c.option[INVERSE], has_initial, initial, open);
  }

  // What merges can have lost, too.
  static __device__ __forceinline__ Number merged(Number sum, const Context<A>& c) {
    if constexpr (SAME<Number, Aligned>) sum.lost += sum.lost == 0 ? 0 : float_power(c.merging);
    return sum;
  }
  // A state as expansions.
  template <class F> static __device__ __forceinline__ F fields(const State& s, const Context<A>& c) {
    F made;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) made.part[p] = expansion(merged(s.part[p], c));
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
#pragma unroll
      for (int f = 0; f < FACTORS; ++f) {
        double term = a[p][f], error = 0;
        if constexpr (WIDE) term = two_product(a[p][f], b[p][f], error);
        else if constexpr (MULTIPLIES) term = __dmul_rn(a[p][f], b[p][f]);
        if (bit_cast<u64>(a[p][f]) != u64(1) << 63) own[p].seen = All::OTHER;
        if (beyond(term, a[p][f], b[p][f])) {
          if constexpr (MULTIPLIES) all[p].add_product(a[p][f], b[p][f]);
          else all[p].add(term);
        } else if (!is_finite(term)) {
          all[p].note(term);
        } else {
          own[p].add(term, all[p]);
          if constexpr (WIDE) own[p].add(error, all[p]);
        }
      }
    }
  }
  template <class Out> static __device__ Out exactly(All (&all)[PARTS], double n, bool minus_zero) {
    Part part[PARTS];
    for (int p = 0; p < PARTS; ++p) {
      if (!all[p].finite()) {
        part[p] = convert<Part>(all[p].special());
        continue;
      }
      bool negative = all[p].settled();
      Binary found = GIVES == Gives::ROOT ? all[p].root() : all[p].over(GIVES == Gives::MEAN ? static_cast<u64>(n) : 1);
      part[p] = nearest<Part>(found, found.top ? negative : minus_zero && !(all[p].seen & All::OTHER));
    }
    return joined<Out>(part);
  }
};

// Counts the elements that it adds, in an I.
template <class V, class I, bool NEAR> struct CountedMean : Exact<V, Adds::VALUES, Gives::MEAN, NEAR> {
  static constexpr bool COUNTING = true;
  using Base = Exact<V, Adds::VALUES, Gives::MEAN, NEAR>;
  using A = typename Base::A;
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
    return Base::template made<Out>(s, c, n, 1 / n, has_initial, initial, open);
  }
  template <class F> static __device__ __forceinline__ F fields(const State& s, const Context<A>& c) {
    F made = Base::template fields<F>(sum(s), c);
    made.n = static_cast<i64>(s.count());
    return made;
  }
};

// Sums of floats are exact; those of integers are as they are.
template <class V> constexpr bool INEXACT = HALF<V> || FLOATING<V>;
template <class V, Adds ADDS, int NEAR, class Plain> using of_type =
    typename Either<INEXACT<V>, Exact<V, ADDS, Gives::SUM, NEAR>, Plain>::type;
template <class V, bool NEAR> using Sum = of_type<V, Adds::VALUES, NEAR, Added<V>>;
template <class V, bool NEAR> using SumOfSquares = of_type<V, Adds::SQUARES, NEAR, Squares<V>>;
template <class V, bool NEAR> using Dot = of_type<V, Adds::PRODUCTS, NEAR, Products<V>>;
template <class V, bool NEAR> using Mean = typename Either<INEXACT<V>, Exact<V, Adds::VALUES, Gives::MEAN, NEAR>, WholeMean<V>>::type;
template <class V, class I, bool NEAR> using MaskedMean = typename Either<INEXACT<V>, CountedMean<V, I, NEAR>, MaskedWholeMean<V, I>>::type;
template <class V, bool NEAR> using Norm1 = Exact<V, Adds::MAGNITUDES, Gives::SUM, NEAR>;
template <class V, bool NEAR> using Norm2 = Exact<V, Adds::SQUARES, Gives::ROOT, NEAR>;
template <class V, bool NEAR> using NanSum = WithoutNan<Sum<V, NEAR>, V>;
template <class V, class I, bool NEAR> using NanMean = WithoutNan<MaskedMean<V, I, NEAR>, V>;

}  // namespace gpuops
