// Error-free sums and products, and rounding once: what exact sums are made of. The sum of floats is the exact sum of its
// elements, rounded once: so its bits depend neither on the order of additions nor on who makes them (docs/exact.md).
namespace gpuops {

// A sum, rounded, and what rounding has lost (Knuth, "The Art of Computer Programming", volume 2, 4.2.2). The additions are
// not to be contracted, with a product that is an argument, to an FMA, which does not round the product.
__device__ __forceinline__ double two_sum(double a, double b, double& lost) {
  double sum = __dadd_rn(a, b), added = __dadd_rn(sum, -a);
  lost = __dadd_rn(__dadd_rn(a, -__dadd_rn(sum, -added)), __dadd_rn(b, -added));
  return sum;
}
// The same, if a is 0 or has the greater exponent (Dekker, "A floating-point technique for extending the available
// precision", 1971).
__device__ __forceinline__ double fast_two_sum(double a, double b, double& lost) {
  double sum = __dadd_rn(a, b);
  lost = __dadd_rn(b, -__dadd_rn(sum, -a));
  return sum;
}
// A product, rounded, and what rounding has lost.
__device__ __forceinline__ double two_product(double a, double b, double& lost) {
  double product = __dmul_rn(a, b);
  lost = fma(a, b, -product);
  return product;
}
__device__ __forceinline__ u32 high_word(double x) { return static_cast<u32>(bit_cast<u64>(x) >> 32); }
__device__ __forceinline__ bool is_finite(double x) { return (high_word(x) & 0x7ff00000u) != 0x7ff00000u; }
// 2^exponent, from the least subnormal number to the greatest power.
__device__ __forceinline__ double power_of_two(i32 exponent) {
  return bit_cast<double>(exponent >= -1022 ? u64(exponent + 1023) << 52 : u64(1) << (exponent + 1074));
}
// A number to which others below 2^(exponent - 1) are added without any change of its own exponent.
__device__ __forceinline__ double bias(i32 exponent) { return bit_cast<double>(u64(2 * (exponent + 1023) + 1) << 51); }
// 2^exponent; if it is too small for a float, the least that is not.
__device__ __forceinline__ float float_power(i32 exponent) { return bit_cast<float>(u32(max(exponent, -126) + 127) << 23); }
// The absolute value's mantissa, and the exponent of its last bit.
__device__ __forceinline__ u64 mantissa(double x, i32& exponent) {
  u64 bits = bit_cast<u64>(x), field = bits >> 52 & 0x7ff, low = bits & 0xfffffffffffffu;
  exponent = static_cast<i32>(field ? field : 1) - 1075;
  return field ? low | u64(1) << 52 : low;
}

// Finite terms from 2^960 on are not added up, since their sums may overflow, nor are products below 2^-960,
// since what rounding loses of them may underflow.
constexpr double LOST_BELOW = 0x1p-960;
constexpr u32 HUGE_WORD = (1023 + 960) << 20, LOST_WORD = (1023 - 960) << 20;  // the upper words of these powers

// A number S with |S - (s + e)| <= r (1 + 2^-9). Where s is not finite, it is the number.
struct Expansion {
  double s, e, r;
  __device__ __forceinline__ Expansion normal() const {
    double lost, sum = two_sum(s, e, lost);
    return {sum, lost, r};
  }
  __device__ __forceinline__ Expansion plus(double x) const {
    double lost, more, sum = two_sum(s, x, lost), rest = two_sum(e, lost, more);
    return {sum, rest, r + fabs(more)};
  }
  // (Not normal; of infinities s alone is right.)
  __device__ __forceinline__ Expansion plus(const Expansion& x) const {
    double lost, more, last, sum = two_sum(s, x.s, lost), rest = two_sum(e, x.e, more);
    rest = two_sum(rest, lost, last);
    return {sum, rest, r + x.r + (fabs(more) + fabs(last))};
  }
};
// S / n. The remainder of a quotient is a double.
__device__ __forceinline__ Expansion quotient(const Expansion& x, double n) {
  Expansion a = x.normal();
  double q = a.s / n, lost, rest = two_sum(fma(-q, n, a.s), a.e, lost), more = rest / n, left = fma(-more, n, rest);
  bool vague = fabs(a.s) < LOST_BELOW && a.s != 0;  // the remainder may underflow
  if (!is_finite(x.s) || n == 0) return {x.s / n, 0, 0};
  if (vague) return {q, 0, Limits<double>::greatest()};
  double off = a.r + (fabs(left) + fabs(lost));
  return {q, more, off == 0 ? 0 : off / n + 0x1p-1074};
}
// The root of S, which is not negative: of s = q * q + rest, it is q + rest / (2 q) but for terms of second order.
__device__ __forceinline__ Expansion root(const Expansion& x) {
  Expansion a = x.normal();
  if (!is_finite(x.s) || (a.s == 0 && a.r == 0)) return {sqrt(x.s), 0, 0};
  double q = sqrt(a.s), lost, rest = two_sum(fma(-q, q, a.s), a.e, lost), more = rest / (2 * q);
  double off = a.r + (fabs(fma(-more, 2 * q, rest)) + fabs(lost));
  bool vague = !(a.s >= LOST_BELOW) || !(off < 0x1p-20 * a.s);
  if (vague) return {0, 0, Limits<double>::greatest()};
  return {q, more, off / q + more * more / q};
}

// A sum of three terms, of which all but r is known.
struct Long {
  double s, e, f, r;
  __device__ __forceinline__ void add(double x) {
    double lost;
    s = two_sum(s, x, lost), e = two_sum(e, lost, lost), f = two_sum(f, lost, lost);
    r += fabs(lost);
  }
  __device__ __forceinline__ void add_product(double a, double b) {
    double lost, product = two_product(a, b, lost);
    add(product), add(lost);
  }
  __device__ __forceinline__ Expansion expansion() const {
    double low, lost, rest, sum = two_sum(s, e, low);
    low = two_sum(low, f, lost), sum = two_sum(sum, low, rest);
    return {sum, rest, r + fabs(lost)};
  }
};
// Whether products with a number, and with what is below its last bit, are doubles with errors that are doubles.
__device__ __forceinline__ bool within(double product) { return product == 0 || (product >= 0x1p-800 && product <= 0x1p990); }
// n times the sum of the squares, less the squares of the sums.
template <int N> __device__ __forceinline__ Expansion spread(const Expansion (&sums)[N], const Long& squares, double n) {
  Long all = {};
  bool inside = within(squares.s) && n * squares.s <= 0x1p990;
  all.add_product(n, squares.s);
  all.r = n * squares.r;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    Expansion x = sums[i].normal();
    inside &= within(x.s * x.s);
    all.add_product(x.s, -x.s), all.add_product(-2 * x.s, x.e), all.add_product(x.e, -x.e);
    all.r += (2 * (fabs(x.s) + fabs(x.e)) + x.r) * x.r * (1 + 0x1p-8);
  }
  all.add_product(n, squares.e), all.add_product(n, squares.f);
  Expansion found = all.expansion();
  if (!inside || !is_finite(found.s)) return {0, 0, Limits<double>::greatest()};
  return found;
}
// The quotient of two sums.
__device__ __forceinline__ Expansion ratio(const Expansion& x, const Expansion& y) {
  if (!is_finite(x.s) || !is_finite(y.s)) return {x.s / y.s, 0, 0};
  Expansion a = x.normal(), b = y.normal();
  if (b.s == 0 && b.r == 0 && (a.r == 0 || a.r < fabs(a.s))) return {a.s / b.s, 0, 0};
  double q = a.s / b.s, size = fabs(b.s);
  Long left = {a.s, a.e, 0, a.r};
  left.add_product(q, -b.s), left.add_product(q, -b.e);
  Expansion rest = left.expansion();
  double more = rest.s / b.s, last = fma(-more, b.s, rest.s);
  double off = fabs(last) + fabs(rest.e) + rest.r + (fabs(q) + fabs(more)) * b.r + fabs(more * b.e);
  bool inside = size >= 0x1p-400 && size <= 0x1p990 && b.r < 0x1p-60 * size && within(fabs(a.s)) && within(fabs(q)) && within(fabs(q) * size);
  if (!inside) return {0, 0, Limits<double>::greatest()};
  return {q, more, off == 0 ? 0 : off / size * (1 + 0x1p-8) + 0x1p-1074};
}

// ---- rounding

// What rounding needs to know of a type: the bits of its mantissa, the exponents of its least and greatest powers of two.
template <class T> struct Format;
template <> struct Format<f16> { static constexpr int BITS = 11, LEAST = -24, MOST = 15; };
template <> struct Format<bf16> { static constexpr int BITS = 8, LEAST = -133, MOST = 127; };
template <> struct Format<float> { static constexpr int BITS = 24, LEAST = -149, MOST = 127; };
template <> struct Format<double> { static constexpr int BITS = 53, LEAST = -1074, MOST = 1023; };

// s + e rounded to odd, if e is less than half of the last bit of s. A narrower type then rounds it as s + e (Boldo &
// Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
__device__ __forceinline__ double rounded_to_odd(double s, double e) {
  i64 bits = bit_cast<i64>(s);
  return e == 0 || (bits & 1) ? s : bit_cast<double>(bits + ((e > 0) == (s > 0) ? 1 : -1));
}
// A double in a narrower type, rounded once.
template <class T> __device__ __forceinline__ T narrowed(double x) {
  if constexpr (SAME<T, bf16>) {
    float part = cut_to_f32(x);  // and the last bit tells that there was more
    return to_bf16(bit_cast<float>(bit_cast<u32>(part) | (to_f64(part) != x)));
  } else {
    return convert<T>(x);
  }
}
// S rounded to a T. open: it may be another.
template <class T> __device__ __forceinline__ T rounded(const Expansion& x, bool& open) {
  Expansion a = x.normal();
  if constexpr (SAME<T, double>) {
    if (!is_finite(x.s)) return x.s;
    double most = a.r * (1 + 0x1p-8) + fabs(a.e) * 0x1p-50;
    open |= a.r != 0 && (a.s + (a.e - most) != a.s || a.s + (a.e + most) != a.s);
    return a.s;
  } else {
    if (!is_finite(x.s)) return narrowed<T>(x.s);
    if (a.r == 0) return narrowed<T>(rounded_to_odd(a.s, a.e));
    double most = a.r * (1 + 0x1p-8) + fabs(a.e) * 0x1p-50, below, above, less = two_sum(a.s, a.e - most, below), more = two_sum(a.s, a.e + most, above);
    T low = narrowed<T>(rounded_to_odd(less, below)), high = narrowed<T>(rounded_to_odd(more, above));
    open |= bit_cast<bits_of<T>>(low) != bit_cast<bits_of<T>>(high) || !is_finite(most);
    return low;
  }
}

// ---- states of sums

// The sum of terms in two doubles: `s`, a multiple of 2^(exponent - 52) and less than 2^(exponent - 1), so that sums of one
// exponent add up exactly, and `rest`, which is rounded and less than lost * 2^(exponent - 52) off.
constexpr i32 NOTHING = -(1 << 20);  // the exponent of no terms
struct Aligned {
  double s, rest;
  i32 exponent;
  float lost;
  // Moves to `rest` what a greater exponent has no bits for.
  __device__ __forceinline__ void raise(i32 greater) {
    double whole = (s + bias(greater)) - bias(greater);
    rest += s - whole, s = whole, exponent = greater;
  }
  // The same, and what that loses: 2^-53 of rest. If there is something below, merges may lose of it, too: so it is noted, even
  // if it is too small for a float.
  static __device__ __noinline__ Aligned raised(Aligned x, i32 exponent) {
    float before = x.lost * float_power(-min(exponent - x.exponent, 126));
    bool some = x.lost != 0;
    x.raise(exponent);
    float more = static_cast<float>(fabs(x.rest) * power_of_two(-exponent));
    x.lost = some || x.rest != 0 ? greater_of(before + more, float_power(-126)) : 0;
    return x;
  }
};
// A term, of less than 2^room.
__device__ __forceinline__ Aligned aligned(double x, i32 room) {
  if (!is_finite(x) || x == 0) return {x, 0, NOTHING, 0};
  return Aligned::raised({x, 0, NOTHING, 0}, static_cast<i32>(high_word(x) >> 20 & 0x7ff) - 1021 + room);
}
__device__ __forceinline__ Aligned alike_sum(const Aligned& a, const Aligned& b) {
  return {a.s + b.s, a.rest + b.rest, a.exponent, a.lost + b.lost};
}
static __device__ __noinline__ Aligned unlike_sum(Aligned a, Aligned b) {
  i32 exponent = max(a.exponent, b.exponent);
  return alike_sum(a.exponent < exponent ? Aligned::raised(a, exponent) : a, b.exponent < exponent ? Aligned::raised(b, exponent) : b);
}
__device__ __forceinline__ Aligned operator+(const Aligned& a, const Aligned& b) {
  return a.exponent == b.exponent ? alike_sum(a, b) : unlike_sum(a, b);
}
// What it is off, at most.
__device__ __forceinline__ double off(const Aligned& x) { return x.lost == 0 ? 0 : x.lost * power_of_two(x.exponent - 52); }
__device__ __forceinline__ Expansion expansion(const Aligned& x) {
  if (!is_finite(x.s)) return {x.s, 0, 0};
  return {x.s, x.rest, off(x)};
}

// A sum in two doubles that are exact, since they have a unit in common with those that they are added to. What is left out
// is at most r.
struct Near { double s, rest, r; };
__device__ __forceinline__ Near operator+(const Near& a, const Near& b) { return {a.s + b.s, a.rest + b.rest, a.r + b.r}; }
__device__ __forceinline__ Expansion expansion(const Near& x) { return {x.s, x.rest, x.r}; }

// An integer of 128 bits.
struct Int128 {
  u64 low;
  i64 high;
};
__device__ __forceinline__ Int128 operator+(Int128 a, Int128 b) {
  u64 low = a.low + b.low;
  return {low, a.high + b.high + (low < a.low)};
}
// value << shift, for a shift below 64
__device__ __forceinline__ Int128 shifted(i64 value, i32 shift) { return {static_cast<u64>(value) << shift, value >> 1 >> (63 - shift)}; }
// Returns whether something is lost.
__device__ __forceinline__ bool shift_right(Int128& x, i32 by) {
  by = min(by, 127);
  bool inexact = false;
  if (by >= 64) inexact = x.low != 0, x.low = x.high, x.high >>= 63;
  by &= 63;
  if (by == 0) return inexact;
  inexact |= x.low << (64 - by) != 0;
  x.low = x.low >> by | static_cast<u64>(x.high) << (64 - by), x.high >>= by;
  return inexact;
}

constexpr i32 SPECIAL = 1 << 20;  // the unit of a number that is not finite, with its bits

// A sum in fixed point: an integer times 2^unit, which is less than lost * 2^unit off. Sums of up to 2^40 terms fit.
struct Fixed {
  Int128 integer;
  i32 unit;
  float lost;
  // The same in a larger unit.
  __device__ __forceinline__ Fixed in_unit(i32 larger) const { return unit == larger ? *this : moved(*this, larger); }
  // (What is rare is no part of loops, which would become long.)
  static __device__ __noinline__ Fixed moved(Fixed x, i32 larger) {
    bool inexact = shift_right(x.integer, larger - x.unit);
    float scale = bit_cast<float>(u32(127 - min(larger - x.unit, 126)) << 23);
    return {x.integer, larger, x.lost > 0 || inexact ? x.lost * scale + 1 : 0};
  }
};
__device__ __forceinline__ Fixed special(double x) { return {{bit_cast<u64>(x), 0}, SPECIAL, 0}; }
__device__ __forceinline__ double special_of(const Fixed& x) { return bit_cast<double>(x.integer.low); }
// A sum that lacks a term.
__device__ __forceinline__ Fixed lacking() { return {{}, NOTHING, Limits<float>::greatest()}; }
__device__ __forceinline__ Fixed fixed(double x) {
  constexpr i32 ROOM = 34;  // bits below those of x
  if (!is_finite(x)) return special(x);
  i32 exponent;
  i64 value = mantissa(x, exponent);
  return {shifted(x < 0 ? -value : value, ROOM), x == 0 ? NOTHING : exponent - ROOM, 0};
}
static __device__ __noinline__ Fixed unlike_sum(Fixed a, Fixed b) {
  if (a.unit == SPECIAL && b.unit == SPECIAL) return special(special_of(a) + special_of(b));
  Fixed more = a.unit > b.unit ? a : b, less = a.unit > b.unit ? b : a;
  if (more.unit == SPECIAL) return more;
  less = Fixed::moved(less, more.unit);
  return {more.integer + less.integer, more.unit, more.lost + less.lost};
}
__device__ __forceinline__ Fixed operator+(const Fixed& a, const Fixed& b) {
  if (a.unit != b.unit || a.unit == SPECIAL) return unlike_sum(a, b);
  return {a.integer + b.integer, a.unit, a.lost + b.lost};
}
__device__ __forceinline__ Expansion expansion(const Fixed& x) {
  if (x.unit == SPECIAL) return {special_of(x), 0, 0};
  if (x.unit == NOTHING) return {0, 0, x.lost};
  constexpr u64 MASK = (u64(1) << 42) - 1;
  u64 middle = (static_cast<u64>(x.integer.high) << 22 | x.integer.low >> 42) & MASK;
  double lost, rest, s = fast_two_sum(static_cast<double>(x.integer.high >> 20) * 0x1p84, static_cast<double>(middle) * 0x1p42, lost);
  double e = two_sum(lost, static_cast<double>(x.integer.low & MASK), rest);
  double first = power_of_two(x.unit / 2), second = power_of_two(x.unit - x.unit / 2);
  return {s * first * second, e * first * second, (fabs(rest) + x.lost) * first * second};
}

// A double for the sum: whether it is within 2^-42 of it, and whether it is exact.
enum class Found { AWAY, CLOSE, EXACT };
__device__ __forceinline__ double quick(const Aligned& x, Found& found) {
  double sum = x.s + x.rest;
  i32 lost = static_cast<i32>(bit_cast<u32>(x.lost) >> 23) - 126 + x.exponent;  // off by less than 2^(lost - 52)
  bool close = x.lost == 0 || lost <= static_cast<i32>(high_word(sum) >> 20 & 0x7ff) - 1023 + 9;
  found = x.lost == 0 && x.rest == 0 ? Found::EXACT : close ? Found::CLOSE : Found::AWAY;
  return sum;
}
// The same for `spread`: a double for it, and what that is off, at most. Two doubles are off by 2^-98 of what is subtracted.
template <int N> __device__ __forceinline__ double quick_spread(const Aligned* part, double n, double& off_by) {
  const Aligned& squares = part[N];
  double low, all = two_sum(squares.s, squares.rest, low), first = n * all, apart = first, rest = fma(n, all, -first) + n * low;
  off_by = n * off(squares) + first * 0x1p-98;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    double sum = two_sum(part[i].s, part[i].rest, low), square = __dmul_rn(sum, sum), error = fma(sum, sum, -square), lost;
    apart = two_sum(apart, -square, lost);
    rest += (lost - error) - 2 * sum * low;
    off_by += 2.5 * fabs(sum) * off(part[i]);
  }
  off_by = is_finite(off_by) ? off_by : Limits<double>::greatest();
  return apart + rest;
}
// Whether a number lies where those of T have all their bits.
template <class T> __device__ __forceinline__ bool is_normal(double x) {
  constexpr u32 LEAST_NORMAL = 1023 + Format<T>::LEAST + Format<T>::BITS - 1;  // the exponent field
  return (high_word(x) >> 20 & 0x7ff) - LEAST_NORMAL < 0x7ff - LEAST_NORMAL;
}
// Whether a number that is at most 2^-41 of it off is rounded as the exact one: most are not that close to the middle between
// two numbers of T.
template <class T, i32 LOWER = SAME<T, bf16> ? 31 : 13> __device__ __forceinline__ bool is_certain(double x) {
  using Bits = typename Either<SAME<T, float>, u32, u64>::type;
  constexpr Bits DROPPED = Bits(1) << (53 - Format<T>::BITS), MARGIN = Bits(1) << LOWER;
  Bits apart = (static_cast<Bits>(bit_cast<u64>(x)) & (DROPPED - 1)) - (DROPPED / 2 - MARGIN);
  return apart > 2 * MARGIN && is_normal<T>(x);
}
// A double that is rounded to a T as s / n is, of which q, which is normal, is at most 2^-41 off: the middle between the
// numbers of T around q, or what is beside it on the side of s / n, which the sign of s - middle * n tells. Quotients of sums
// of few elements often are such a middle.
template <class T> __device__ __forceinline__ double around_middle(double q, double s, double n) {
  constexpr u64 DROPPED = u64(1) << (53 - Format<T>::BITS);
  u64 middle = (bit_cast<u64>(q) & ~(DROPPED - 1)) | DROPPED / 2;
  double apart = fma(-bit_cast<double>(middle), n, s);
  return bit_cast<double>(middle + (apart == 0 ? 0 : (apart < 0) == (s < 0) ? 1 : -1));
}

}  // namespace gpuops
