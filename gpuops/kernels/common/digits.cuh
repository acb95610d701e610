// Sums in fixed point of all the bits that terms can have: where others leave the rounded result open. A block's threads add
// to them in shared memory. Loops are not unrolled: this is rare, but much to compile.
namespace gpuops {

// A positive number: top * 2^(exponent - 63) and what `low` adds, another 64 bits, and less than one more in the last of
// these, if there is a rest. The highest bit of top is set, or the number is 0.
struct Binary {
  u64 top, low;
  bool rest;
  i32 exponent;
  // Its root, of 64 bits, one after the other.
  __device__ __noinline__ Binary root() const {
    if (!top) return *this;
    i32 odd = exponent & 1 ? 0 : 1;  // the root of a number of 127 or 128 bits, high and low, has 64
    u64 high = top >> odd, below = odd ? top << 63 | low >> 1 : low, found = 0;
#pragma unroll 1
    for (int i = 63; i >= 0; --i) {
      u64 next = found | u64(1) << i, most = __umul64hi(next, next), least = next * next;
      if (most < high || (most == high && least <= below)) found = next;
    }
    bool lost = __umul64hi(found, found) != high || found * found != below || (odd && (low & 1));
    return {found, 0, rest || lost, (exponent - 1 + odd) / 2};
  }
};
template <class T> __device__ __noinline__ T nearest(const Binary& x, bool negative) {
  using F = Format<T>;
  i32 kept = min(F::BITS, x.exponent - F::LEAST + 1);  // bits; without any, the number may still be more than half of the least
  if (x.top == 0 || kept < 0) return convert<T>(negative ? -0.0 : 0.0);
  u64 head = kept > 0 ? x.top >> (64 - kept) : 0, tail = kept > 0 ? x.top << kept : x.top, half = u64(1) << 63;
  head += tail > half || (tail == half && (x.rest || x.low || (head & 1)));
  i32 unit = x.exponent - kept + 1;
  bool over = unit > F::MOST || (head >> (F::MOST - unit > 62 ? 63 : F::MOST - unit + 1)) != 0;
  double size = over ? Limits<double>::greatest() : static_cast<double>(head) * power_of_two(unit);
  return convert<T>(negative ? -size : size);
}

// A sum of elements of V, or of products of two and of elements, in fixed point. Digits of 32 bits lie in 64 bits: none
// overflows. Elements begin with digit WHOLE, so that squares of their sums have digits in the same places.
template <class V, bool PRODUCTS> struct Digits {
  using F = Format<V>;
  static constexpr int WHOLE = (31 - F::LEAST) / 32, LEAST = -32 * WHOLE * (PRODUCTS ? 2 : 1);
  static constexpr int BITS = (F::MOST + 1) * (PRODUCTS ? 2 : 1) - LEAST + (PRODUCTS ? 96 : 48);
  static constexpr int COUNT = (BITS + 31) / 32 + 1;
  static constexpr u32 UP = 1, DOWN = 2, NOTHING = 4, OTHER = 8;  // of the elements: infinities, NaN, others than -0.0
  u64 digit[COUNT];  // signed
  u32 seen;

  // Adds value * 2^exponent.
  __device__ void add(u64 value, i32 exponent, bool negative) {
    for (i32 bit = exponent - LEAST; value; value >>= 32, bit += 32) {
      u64 part = (value & 0xffffffffu) << (bit & 31), low = part & 0xffffffffu, high = part >> 32;
      atomicAdd(digit + bit / 32, negative ? 0 - low : low);
      if (high) atomicAdd(digit + bit / 32 + 1, negative ? 0 - high : high);
    }
  }
  __device__ __noinline__ void add(double x) {
    if (x == 0) return;
    i32 exponent;
    u64 value = mantissa(x, exponent);
    i32 below = LEAST - exponent;  // zeros at the end
    if (below > 0) value >>= below, exponent += below;
    add(value, exponent, x < 0);
  }
  __device__ __noinline__ void add_product(double x, double y) {
    i32 of_x, of_y;
    u64 a = mantissa(x, of_x), b = mantissa(y, of_y);
    bool negative = (x < 0) != (y < 0);
    add(a * b, of_x + of_y, negative);
    add(__umul64hi(a, b), of_x + of_y + 64, negative);
  }
  __device__ void note(double x) {  // an element, or a product, that is not finite
    atomicOr(&seen, x != x ? NOTHING : x > 0 ? UP : DOWN);
  }
  __device__ bool finite() const { return !(seen & (UP | DOWN | NOTHING)); }
  // The sum of what is not finite.
  __device__ double special() const {
    bool nothing = (seen & NOTHING) || ((seen & UP) && (seen & DOWN));
    return nothing ? nan<double>() : seen & UP ? Limits<double>::greatest() : Limits<double>::least();
  }
  // Makes all digits positive, and tells whether the number is negative.
  __device__ __noinline__ bool settled() {
    i64 carry = 0;
#pragma unroll 1
    for (int i = 0; i < COUNT; ++i) {
      carry += static_cast<i64>(digit[i]);
      digit[i] = carry & 0xffffffff, carry >>= 32;
    }
    if (carry >= 0) return false;
    u64 one = 1;
#pragma unroll 1
    for (int i = 0; i < COUNT; ++i) {
      one += ~digit[i] & 0xffffffffu;
      digit[i] = one & 0xffffffffu, one >>= 32;
    }
    return true;
  }
  __device__ bool is_zero() const { return length() == 0; }
  // The bits of the settled number.
  __device__ i32 length() const {
    int i = COUNT - 1;
    while (i >= 0 && digit[i] == 0) --i;
    return i < 0 ? 0 : 32 * i + 64 - __clzll(digit[i]);
  }
  __device__ u64 at(i32 i) const { return i < 0 ? 0 : digit[i]; }
  __device__ u64 bit(i32 place) const { return place < 0 ? 0 : digit[place / 32] >> place % 32 & 1; }
  // The settled number, divided by n * part * 2^exponent (n * part has less than 128 bits): `count` bits of it, 64 or 128,
  // by long division; the others are a rest.
  __device__ __noinline__ Binary over(u64 n, u64 part, i32 exponent, i32 count) const {
    u64 most = __umul64hi(n, part), least = n * part, high = 0, low = 0, top = 0, next = 0;
    i32 bits = length(), found = 0, place = bits - 1;
    if (!bits) return {};
#pragma unroll 1
    for (; found < count; --place) {
      high = high << 1 | low >> 63, low = low << 1 | bit(place);
      bool one = high > most || (high == most && low >= least);
      if (one) high -= most + (low < least), low -= least;
      if (!found && !one) continue;
      if (!found++) exponent = place + LEAST - exponent;
      top = top << 1 | next >> 63, next = next << 1 | one;
    }
    bool rest = high || low;
    for (; place >= 0; --place) rest |= bit(place);
    return {count > 64 ? top : next, count > 64 ? next : 0, rest, exponent};
  }
  // The settled number itself: its 128 highest bits; the others are a rest.
  __device__ __noinline__ Binary whole() const {
    i32 bits = length(), i = (bits - 1) >> 5, by = (32 - bits) & 31;
    if (!bits) return {};
    u64 top = 0, low = 0;
#pragma unroll 1
    for (i32 last = i - 4; i > last; --i) top = top << 32 | low >> 32, low = low << 32 | at(i);
    u64 next = at(i) << by, rest = next & 0xffffffffu;
    top = top << by | low >> 32 >> (32 - by), low = low << by | next >> 32;
    while (--i >= 0) rest |= digit[i];
    return {top, low, rest != 0, bits - 1 + LEAST};
  }
  // The settled number, divided by another one: 64 bits of it, one after the other. Both are used up.
  __device__ __noinline__ Binary over(Digits& other) {
    i32 bits = length(), apart = bits - other.length();
    if (!bits) return {};
    (apart > 0 ? other : *this).shift(apart > 0 ? apart : -apart);
    int begin = 0, end = min(COUNT, max(bits, bits - apart) / 32 + 2);
    while (digit[begin] == 0 && other.digit[begin] == 0) ++begin;
    if (less(other, begin, end)) --apart, twice(begin, end);
    u64 top = 0;
#pragma unroll 1
    for (int i = 0; i < 64; ++i) {
      bool one = !less(other, begin, end);
      if (one) subtract(other, begin, end);
      top = top << 1 | one;
      twice(begin, end);
    }
    return {top, 0, !is_zero(), apart};
  }
  __device__ void shift(i32 by) {
#pragma unroll 1
    for (int i = COUNT - 1; i >= 0; --i) {
      int from = i - by / 32;
      u64 high = from >= 0 ? digit[from] << by % 32 : 0, low = from > 0 && by % 32 ? digit[from - 1] >> (32 - by % 32) : 0;
      digit[i] = (high | low) & 0xffffffffu;
    }
  }
  // These look at digits from begin to end.
  __device__ void twice(int begin, int end) {
    u64 carry = 0;
#pragma unroll 1
    for (int i = begin; i < end; ++i) {
      carry |= digit[i] << 1;
      digit[i] = carry & 0xffffffffu, carry >>= 32;
    }
  }
  __device__ bool less(const Digits& other, int begin, int end) const {
    int i = end - 1;
    while (i > begin && digit[i] == other.digit[i]) --i;
    return digit[i] < other.digit[i];
  }
  __device__ void subtract(const Digits& other, int begin, int end) {
    i64 carry = 0;
#pragma unroll 1
    for (int i = begin; i < end; ++i) {
      carry += static_cast<i64>(digit[i]) - static_cast<i64>(other.digit[i]);
      digit[i] = carry & 0xffffffff, carry >>= 32;
    }
  }
  __device__ __noinline__ void multiply(u64 n) {
    u64 high = 0, low = 0;
#pragma unroll 1
    for (int i = 0; i < COUNT; ++i) {
      u64 own = digit[i], more = own * n;
      high += __umul64hi(own, n) + (low + more < more), low += more;
      digit[i] = low & 0xffffffffu;
      low = low >> 32 | high << 32, high >>= 32;
    }
  }
  // Subtracts the square of a settled sum of elements.
  __device__ __noinline__ void subtract_square(const Digits& sum) {
#pragma unroll 1
    for (int i = WHOLE; i < COUNT; ++i) {
      for (int j = WHOLE; sum.digit[i] && j < min(COUNT, COUNT - 1 + 2 * WHOLE - i); ++j) {
        u64 product = sum.digit[i] * sum.digit[j];
        digit[i + j - 2 * WHOLE] -= product & 0xffffffffu;
        digit[i + j - 2 * WHOLE + 1] -= product >> 32;
      }
    }
  }
};

}  // namespace gpuops
