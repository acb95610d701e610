// Sums in fixed point of all the bits that terms can have: where others leave the rounded result open. A block's threads add
// to them in shared memory.
namespace gpuops {

// A positive number: top * 2^(exponent - 63), and less than one more in the last bit of top, if there is a rest. The
// highest bit of top is set, or the number is 0.
struct Binary {
  u64 top;
  bool rest;
  i32 exponent;
};
template <class T> __device__ T nearest(const Binary& x, bool negative) {
  using F = Format<T>;
  i32 kept = min(F::BITS, x.exponent - F::LEAST + 1);  // bits; without any, the number may still be more than half of the least
  if (x.top == 0 || kept < 0) return convert<T>(negative ? -0.0 : 0.0);
  u64 head = kept > 0 ? x.top >> (64 - kept) : 0, tail = kept > 0 ? x.top << kept : x.top, half = u64(1) << 63;
  head += tail > half || (tail == half && (x.rest || (head & 1)));
  i32 unit = x.exponent - kept + 1;
  bool over = unit > F::MOST || (head >> (F::MOST - unit > 62 ? 63 : F::MOST - unit + 1)) != 0;
  double size = over ? Limits<double>::greatest() : ldexp(static_cast<double>(head), unit);
  return convert<T>(negative ? -size : size);
}

// A sum of elements of V, or of products of two, in fixed point. Digits of 32 bits lie in 64 bits: none overflows.
template <class V, bool PRODUCTS> struct Digits {
  using F = Format<V>;
  static constexpr int LEAST = F::LEAST * (PRODUCTS ? 2 : 1), BITS = (F::MOST + 1) * (PRODUCTS ? 2 : 1) - LEAST + 48;
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
  __device__ void add(double x) {
    if (x == 0) return;
    i32 exponent;
    u64 value = mantissa(x, exponent);
    i32 below = LEAST - exponent;  // zeros at the end
    if (below > 0) value >>= below, exponent += below;
    add(value, exponent, x < 0);
  }
  __device__ void add_product(double x, double y) {
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
  __device__ bool settled() {
    i64 carry = 0;
    for (int i = 0; i < COUNT; ++i) {
      carry += static_cast<i64>(digit[i]);
      digit[i] = carry & 0xffffffff, carry >>= 32;
    }
    if (carry >= 0) return false;
    u64 one = 1;
    for (int i = 0; i < COUNT; ++i) {
      one += ~digit[i] & 0xffffffffu;
      digit[i] = one & 0xffffffffu, one >>= 32;
    }
    return true;
  }
  // Sixteen bits of the settled number; 0 below it.
  __device__ u32 sixteen(int i) const { return i < 0 ? 0 : digit[i / 2] >> 16 * (i & 1) & 0xffff; }
  // The settled number, divided by n: long division, 16 bits at a time.
  __device__ Binary over(u64 n) const {
    u64 left = 0, top = 0;
    i32 bits = 0, exponent = 0;
    bool rest = false;
    for (int i = 2 * COUNT - 1; i >= 0 || (bits < 64 && (left || top)); --i) {
      left = left << 16 | sixteen(i);
      u64 part = left / n;
      left -= part * n;
      if (!top && !part) continue;
      if (!top) bits = 64 - __clzll(part), exponent = LEAST + 16 * i + bits - 1, top = part << (64 - bits);
      else if (bits >= 64) rest |= part != 0;
      else {
        int room = 64 - bits;
        top |= room >= 16 ? part << (room - 16) : part >> (16 - room);
        rest |= room < 16 && (part & ((1u << (16 - room)) - 1)) != 0;
        bits += 16;
      }
    }
    return {top, rest || left != 0, exponent};
  }
  // Its root, of 64 bits, one after the other.
  __device__ Binary root() const {
    Binary all = over(1);
    if (!all.top) return all;
    i32 shift = all.exponent & 1;  // the root of a number of 127 or 128 bits, high and low, has 64
    u64 high = shift ? all.top : all.top >> 1, low = shift ? 0 : all.top << 63;
    i32 place = all.exponent - LEAST - 64;  // of the first bit that top has not
    for (int i = 0; i < 63 + shift; ++i, --place) {
      u64 bit = place < 0 ? 0 : digit[place / 32] >> place % 32 & 1;
      low |= bit << (62 + shift - i);
    }
    bool rest = false;
    for (; place >= 0; --place) rest |= digit[place / 32] >> place % 32 & 1;
    u64 found = 0;
    for (int i = 63; i >= 0; --i) {
      u64 next = found | u64(1) << i, above = __umul64hi(next, next), below = next * next;
      if (above < high || (above == high && below <= low)) found = next;
    }
    rest |= __umul64hi(found, found) != high || found * found != low;
    return {found, rest, (all.exponent - shift) / 2};
  }
};

}  // namespace gpuops
