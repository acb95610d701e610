"""Sums as integers, compiled by Numba: see `compiled_scans`.

A sum is hi * 2**u + lo * 2**(u - 52), where 0 <= lo < 2**52, and off by ``lost`` of the last bits at most. Elements
become such integers by an addition that rounds them. Where none is lost, a sum is a number after one more rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

LOW = 52  # bits of lo
MASK = 2**LOW - 1
FINEST = -1022  # the least u: then all float64 are multiples of the last bit
#: Of hi alone, and of hi with lo: bits of hi that an element may have, and that the sum before a tile may have.
ALONE, BOTH = (50, 61), (42, 52)
ABOVE = 1 + 2.0**-9  # above what rounding makes of a bound
SLACK = 4  # bits by which a unit may be larger than it must be
MAGIC = 1.5 * 2.0**52  # numbers below 2**51 that are added to it are rounded to integers, which its bits show
MAGIC_BITS = int(np.float64(MAGIC).view(np.int64))
SIZE, INFINITY, MINUS = 2**63 - 1, 0x7FF << 52, -(2**63)  # bits of magnitudes; of infinity, and of -0.0
LACKING = 2**29 - 1  # bits of float64 that float32 lacks
UNSURE, INFINITE = 1, 2  # what is told of results: some are not sure, some are not finite

# ------------------------------------------------------------------------------------------------- numbers and integers


@register_jitable
def bits(x: Any) -> Any:
    return np.float64(x).view(np.int64)


@register_jitable
def float_of(bits: Any) -> Any:
    return np.int64(bits).view(np.float64)


@register_jitable
def power(k: Any) -> Any:
    """2**k, for k from -1022 to 1023."""
    return float_of((k + 1023) << 52)


@register_jitable
def exponent(size: Any) -> Any:
    """That of a power of two above the magnitude of these bits."""
    return (size >> 52) - 1022


@register_jitable
def at_one(v: Any, u: Any) -> Any:
    """An element as hi, what is left in units, and the bits of an element that is too small to be seen in them."""
    w = v * power(-u)
    s = w + MAGIC
    return bits(s) - MAGIC_BITS, w - (s - MAGIC), bits(v) if w == 0.0 else np.int64(0)


@register_jitable
def at_two(v: Any, u: Any) -> Any:
    """An element as hi and lo, and bits that are 0 if that is all of it."""
    hi, rest, unseen = at_one(v, u)
    rest *= 2.0**LOW
    s = rest + MAGIC
    return hi, bits(s) - MAGIC_BITS, (bits(rest - (s - MAGIC)) | unseen) & SIZE


@register_jitable
def two_sum(a: Any, b: Any) -> Any:
    """See `definition.exact.two_sum`."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@register_jitable
def to_odd(s: Any, error: Any) -> Any:
    """See `definition.exact.odd`."""
    word = bits(s)
    away = 1 | ((word ^ bits(error)) >> 63)
    return float_of(word + ((away & ((word & 1) - 1)) if error != 0.0 else np.int64(0)))


@register_jitable
def number(hi: Any, lo: Any, u: Any, narrow: Any) -> Any:
    """A sum, rounded to float64: to odd if it is to be rounded again."""
    a, b = np.float64(hi + (lo >> LOW)), np.float64(lo & MASK) * 2.0**-LOW
    s = a + b
    return (to_odd(s, b - (s - a)) if narrow else s) * power(u)  # (a is 0 or larger than b)


@register_jitable
def single(x: Any) -> Any:
    """A number rounded to odd, as float32 rounded to odd."""
    word = bits(x)
    return np.float32(float_of((word | ((word & LACKING) + LACKING)) & ~LACKING))


@register_jitable
def differ(y: Any, sum: Any, off: Any, odd: Any) -> Any:
    """Whether a sum (hi, lo, u) that is off by so much, in units, may be rounded to one of two numbers."""
    hi, lo, u = sum
    a, b = np.float64(hi + (lo >> LOW)), np.float64(lo & MASK) * 2.0**-LOW
    low, high = a + (b - off), a + (b + off)
    if y.itemsize == 4:
        low, high = low - abs(low) * 2.0**-52, high + abs(high) * 2.0**-52
    if odd:
        return single(low * power(u)) != single(high * power(u))
    return y.dtype.type(low * power(u)) != y.dtype.type(high * power(u))


# --------------------------------------------------------------------------------------------------------------- states


@register_jitable
def moved(hi: Any, lo: Any, lost: Any, by: Any) -> Any:
    """A sum in a unit that is larger by a power of two."""
    if hi == 0 and lo == 0 and lost == 0:
        by = np.int64(0)
    while by > 0:
        k = min(by, np.int64(LOW))
        below = (1 << k) - 1
        if lost != 0 or lo & below != 0:
            lost = (lost >> k) + 2
        lo, hi, by = (lo >> k) | ((hi & below) << (LOW - k)), hi >> k, by - k
    while by < 0:
        k = min(-by, np.int64(LOW))
        hi, lo, by = (hi << k) | (lo >> (LOW - k)), (lo << k) & MASK, by + k
    return hi, lo, lost


@register_jitable
def least_unit(state: Any, most: Any) -> Any:
    """The least unit that is right for a sum."""
    hi, lo, _, u = state
    if hi == 0 and lo == 0:
        return np.int64(FINEST)
    return u - most[1] + (exponent(bits(abs(hi))) if hi != 0 else exponent(bits(lo)) - LOW)


@register_jitable
def fitted(state: Any, top: Any, most: Any, least: Any) -> Any:
    """A state in a unit that is right for it, and for elements up to a magnitude of such bits."""
    hi, lo, lost, u = state
    need = max(exponent(top) - most[0], max(np.int64(least), least_unit(state, most)))
    if u < need or (u > need + SLACK and lost == 0):
        hi, lo, lost = moved(hi, lo, lost, need - u)
        u = need
    return hi, lo, lost, u


@register_jitable
def rounded(s: Any, e: Any, r: Any, y: Any, odd: Any) -> Any:
    """The expansion s + e, which is off by r at most, as a number that is rounded to the results' dtype as it is; and
    whether that is sure."""
    real = y.dtype.type
    value, error = two_sum(s, e)
    if r == 0.0:
        return to_odd(value, error) if y.itemsize == 4 else (value if e != 0.0 else s), np.isfinite(value)
    off = r * ABOVE + (abs(e) + (abs(value) if y.itemsize == 4 else 0.0)) * 2.0**-52
    low, high = s + (e - off), s + (e + off)
    if odd:
        return high, single(low) == single(high)
    return high, real(low) == real(high) and real(low) != 0


@register_jitable
def with_care(m: Any, y: Any, unsure: Any, state: Any, odd: Any) -> Any:
    """Sums of a line as expansions of float64. Tells whether some are not sure."""
    hi, lo, lost, u = state
    s, e, r = np.float64(hi) * power(u), np.float64(lo) * 2.0**-LOW * power(u), np.float64(lost) * 2.0**-LOW * power(u)
    told = 0
    for i in range(len(y)):
        s, d = two_sum(s, float_of(m[i]))
        if d != 0.0:
            e, d = two_sum(e, d)
            r += abs(d)
        value, sure = rounded(s, e, r, y, odd)
        y[i] = single(value) if odd else value
        if not sure:
            unsure[i], told = True, UNSURE
    if not (np.isfinite(s) and np.isfinite(r)):
        return (np.int64(0), np.int64(0), np.int64(1) << LOW, np.int64(971)), told
    u = max(exponent(max(bits(abs(s)), bits(abs(e)))) - 50, np.int64(FINEST))
    (hi, lo, left), (more, rest, other) = at_two(s, u), at_two(e, u)
    off = np.ceil(r * ABOVE * power(-u) * 2.0**LOW)
    lost = np.int64(min(off, 2.0**LOW)) + (left != 0) + (other != 0)
    return (hi + more + ((lo + rest) >> LOW), (lo + rest) & MASK, lost, u), told


@register_jitable
def unusual(x: Any, y: Any, special: Any) -> Any:
    """Sums of what is no ordinary number in elements of a line, in the place of others' sums. Returns the last one."""
    for i in range(len(x)):
        v = np.float64(x[i])
        special += v if v == 0.0 or not np.isfinite(v) else 0.0
        if bits(special) != 0:
            y[i] = special
    return special


@register_jitable
def may_overflow(y: Any, u: Any) -> Any:
    """Whether sums in a unit may be infinite."""
    return u + 62 > (127 if y.itemsize == 4 else 1023)
