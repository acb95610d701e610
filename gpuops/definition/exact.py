"""Exact sums: the exact sum of the elements, rounded once.

An *expansion* is three float64 numbers (s, e, r) that tell a sum S: |S - (s + e)| <= r * (1 + 2**-10). So S is s + e
where r is 0, and nothing is known of it where r is infinite. A non-finite s is itself the sum: that of infinities and
NaN. Expansions of parts merge in any order. Rounding one tells the value and whether it is sure; where it is not, the
sum is made once more from its elements.

The definition is at the end, in Python's integers, slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

#: Bits of precision, exponent of the least subnormal, and exponent that magnitudes stay below, by dtype.
FORMATS = {
    "float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128), "float64": (53, -1074, 1024)
}  # fmt: skip
BITS: dict[int, Any] = {2: np.int16, 4: np.int32, 8: np.int64}  # integers by their bytes
#: Above r * (1 + 2**-10), and roundings of the bound itself.
ABOVE = 1 + 2.0**-9
#: Magnitudes of sums whose quotients and roots are made from expansions: exact remainders neither under- nor overflow.
LEAST, MOST = 2.0**-960, 2.0**990
#: Errors of a few operations, relative to their results, and where these underflow.
CLOSE, SMALLEST = 2.0**-50, 2.0**-1070
TOGETHER = 2**13  # sums that are rounded together, so that they stay in the cache


class Expansion(NamedTuple):
    """Sums, as float64 arrays of one shape, or scalars."""

    s: Any
    e: Any
    r: Any


#: One in memory: ``struct Expansion`` of kernels/common/exact.cuh.
EXPANSION = np.dtype([(name, np.float64) for name in Expansion._fields])


class Exact(NamedTuple):
    """That a reduction is an exact sum: of what, and what becomes of the sum before it is rounded once."""

    of: str  # "x", its magnitude "abs", its "square", or its "product" with the second operand
    end: str = "itself"  # or its "quotient" by the number of elements, or its "root"

    def parts(self, val: np.dtype) -> int:
        """How many sums a result is made of: two, if it is of the parts of complex numbers."""
        return 2 if val.kind == "c" and self.of in ("x", "product") else 1


# ------------------------------------------------------------------------------------------------------------- merging


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum s and its error e: s + e = a + b (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product p and its error e: p + e = a * b (Dekker 1971), for |a|, |b| <= 2**990 and products whose
    last bits do not underflow."""
    p = a * b
    (a1, a2), (b1, b2) = split(a), split(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def split(a: Any) -> tuple[Any, Any]:
    """The upper and the lower half of the bits (Veltkamp; Dekker 1971)."""
    t = a * (2.0**27 + 1)
    high = t - (t - a)
    return high, a - high


def merged(a: Expansion, b: Expansion) -> Expansion:
    """The expansions of the sums of two: what additions lose goes from term to term, and from the last to r."""
    with np.errstate(all="ignore"):
        s, t = two_sum(a.s, b.s)
        e, first = two_sum(a.e, b.e)
        e, second = two_sum(e, t)
        r = (a.r + b.r) + (np.abs(first) + np.abs(second))
    if np.isfinite(s).all():
        return Expansion(s, e, r)
    finite = np.isfinite(s)
    overflows = np.isfinite(a.s) & np.isfinite(b.s) & ~finite
    return Expansion(
        np.where(overflows, 0.0, s), np.where(finite, e, 0.0), np.where(finite, r, np.where(overflows, np.inf, 0.0))
    )


def merged_along(s: Any, e: Any, r: Any, axis: int) -> Expansion:
    """The expansions of the sums along an axis; of none (0, 0, 0)."""
    before = (slice(None),) * (axis % s.ndim)
    x, n = Expansion(s, e, r), s.shape[axis]
    if not n:
        return Expansion(*[np.zeros_like(term.sum(axis)) for term in x])
    while n > 1:
        half = n // 2
        first, second, last = (
            Expansion(*[term[(*before, part)] for term in x])
            for part in (slice(half), slice(half, 2 * half), slice(2 * half, n))
        )
        x = merged(first, second)
        if n % 2:
            x = Expansion(*[np.concatenate(terms, axis) for terms in zip(x, last, strict=True)])
        n = half + n % 2
    return Expansion(*[term[(*before, 0)] for term in x])


# ------------------------------------------------------------------------------------------------------------ rounding


def rounded(x: Expansion, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sums in a dtype, rounded to nearest, and whether each of them is sure."""
    return finished(x, np.dtype(dtype), lambda s: s, lambda x: x)


def rounded_quotient(x: Expansion, n: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sums divided by n in a dtype, rounded once, and whether each of them is sure; n are integers, as float64."""
    n = np.broadcast_to(np.asarray(n, np.float64), np.shape(x.s))
    return finished(x, np.dtype(dtype), np.divide, quotient, n)


def rounded_root(x: Expansion, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """The square roots of sums in a dtype, rounded once, and whether each of them is sure."""
    return finished(x, np.dtype(dtype), np.sqrt, root)


def ended(x: Expansion, n: Any, end: str, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """What `Exact.end` makes of sums of n elements, in a dtype, rounded once, and whether each is sure."""
    if end == "quotient":
        return rounded_quotient(x, n, dtype)
    return rounded_root(x, dtype) if end == "root" else rounded(x, dtype)


def finished(
    x: Expansion, dtype: np.dtype, near: Callable[..., Any], close: Callable[..., Expansion], *n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A rising function of sums in a dtype: ``near`` gives it in float64, ``close`` as expansions, which is slower."""
    shape = np.shape(x.s)
    terms = [np.asarray(each, np.float64).reshape(-1) for each in (*x, *n)]
    made, sure = np.empty(terms[0].size, dtype), np.empty(terms[0].size, bool)
    with np.errstate(all="ignore"):
        for first in range(0, made.size, TOGETHER):
            part = slice(first, first + TOGETHER)
            s, e, r, *count = [each[part] for each in terms]
            made[part], sure[part] = finished_part(Expansion(s, e, r), dtype, near, close, *count)
    return made.reshape(shape), sure.reshape(shape)


def finished_part(
    x: Expansion, dtype: np.dtype, near: Callable[..., Any], close: Callable[..., Expansion], *n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same of some sums in one dimension."""
    given, _, r = x
    s, e = two_sum(given, x.e)
    s += 0.0  # (not -0.0)
    ready = ~np.isfinite(given)
    if n:
        ready |= (n[0] == 0) & (r == 0)
    if dtype == np.float64:
        made, sure = settled(close(Expansion(s, e, r), *n), dtype)
    else:
        d = 2 * (np.abs(e) + r) + np.abs(s) * 2.0**-50
        made, sure = between(converted(near(s - d, *n), dtype), converted(near(s + d, *n), dtype))
        left = ~(sure | ready)
        if left.any():
            part = close(Expansion(s[left], e[left], r[left]), *[each[left] for each in n])
            made[left], sure[left] = settled(part, dtype)
    if ready.any():
        made[ready] = converted(near(given[ready], *[each[ready] for each in n]), dtype)
    return made, (sure & np.isfinite(s)) | ready


def quotient(x: Expansion, n: np.ndarray) -> Expansion:
    """Sums divided by n: the quotient rounded, and its remainder, which is exact, divided in turn."""
    s, e, r = x
    q = s / n
    p, low = two_product(q, n)
    u, v = two_sum((s - p) - low, e)
    second = u / n
    p, low = two_product(second, n)
    inside = (s == 0) | (np.abs(s) >= LEAST) & (np.abs(s) <= MOST)
    exact = inside & (r == 0) & (v == 0) & (p == u) & (low == 0) & ((u == 0) | (np.abs(u) >= LEAST))
    residue = (np.abs(v) + r) / n + np.abs(second) * 2.0**-52 + 2.0**-1074
    return bounded(q, second, residue, exact, inside)


def root(x: Expansion) -> Expansion:
    """Square roots of sums. With y that of s, S = y**2 + w: the root is y + w / 2y, but for at most w**2 / 2y**3."""
    s, e, r = x
    y = np.sqrt(s)
    p, low = two_product(y, y)
    u, v = two_sum((s - p) - low, e)  # w, but for r
    most = np.abs(u) + np.abs(v) + r * ABOVE
    second = np.where(u == 0, 0.0, u / (2 * y))
    inside = (s == 0) | (s >= LEAST) & (s <= MOST)
    exact = inside & (r == 0) & (u == 0) & (v == 0)
    residue = (np.abs(v) + r + most * (most / s)) / (2 * y) + np.abs(second) * 2.0**-52 + 2.0**-1074
    return bounded(y, second, residue, exact, inside)


def bounded(s: Any, e: Any, r: Any, exact: Any, inside: Any) -> Expansion:
    """Expansions whose residue is 0 where they are exact, and which are open where not inside the range."""
    known = exact | (inside & np.isfinite(r))
    return Expansion(np.where(known, s, 0.0), np.where(known, e, 0.0), np.where(exact, 0.0, np.where(known, r, np.inf)))


def settled(x: Expansion, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Expansions in a dtype, and whether all that they may be are rounded to the same."""
    s, e = two_sum(x.s, x.e)
    r = np.where(x.r == 0, 0.0, x.r * ABOVE + np.abs(e) * 2.0**-52)  # so that e - r and e + r, rounded, lie outside
    return between(nearest_of_two(s, e - r, dtype), nearest_of_two(s, e + r, dtype))


def between(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The higher of two, and whether they are the same, zeros' signs too."""
    bits = BITS[high.dtype.itemsize]
    return high, np.equal(low.view(bits), high.view(bits))


def nearest_of_two(s: np.ndarray, e: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """s + e rounded once to a dtype."""
    return np.asarray(s + e) if dtype == np.float64 else converted(odd(*two_sum(s, e)), dtype)


def odd(s: np.ndarray, e: np.ndarray) -> np.ndarray:
    """s + e, where s is that rounded to nearest, rounded to odd instead: to the neighbour whose last bit is set, unless
    it is exact. So it is never taken for a tie of two numbers of a narrower dtype (Boldo and Melquiond 2008)."""
    bits = np.asarray(s).view(np.int64)
    away = np.where(np.signbit(s) == np.signbit(e), 1, -1)
    return (bits + np.where((e != 0) & (bits & 1 == 0), away, 0)).view(np.float64)


def converted(x: Any, dtype: np.dtype) -> np.ndarray:
    """float64 in another dtype, rounded once: to bfloat16 by way of float32, rounded to odd."""
    x = np.asarray(x)
    if dtype.kind == "f":
        return x.astype(dtype)
    narrow = x.astype(np.float32)
    error = np.where(np.isfinite(x), x - narrow, 0.0)  # (that of an overflow points back to numbers)
    bits = narrow.view(np.int32)
    away = np.where(np.signbit(x) == np.signbit(error), 1, -1).astype(np.int32)
    return (bits + np.where((error != 0) & (bits & 1 == 0), away, np.int32(0))).view(np.float32).astype(dtype)


# ------------------------------------------------------------------------------------------------------ the definition

HALF = 27  # bits: halves of mantissas, whose products are below 2**54
COUNT = 2**25  # so many of them, halved in turn, are added exactly in float64


def total(x: np.ndarray) -> Fraction | float:
    """The exact sum of floats, a Fraction; where there are NaN or infinities, their sum, a float."""
    x = np.asarray(x).astype(np.float64).reshape(-1)
    special = specials(x)
    return special if special is not None else by_exponent([mantissas(x)])


def total_of_products(x: np.ndarray, y: np.ndarray) -> Fraction | float:
    """The exact sum of the products of floats, as `total`."""
    x, y = (np.asarray(each).astype(np.float64).reshape(-1) for each in (x, y))
    with np.errstate(all="ignore"):
        special = specials(np.where(np.isfinite(x) & np.isfinite(y), 0.0, x * y))
    if special is not None:
        return special
    (a, i), (b, j) = mantissas(x), mantissas(y)
    first, second = ([(each >> HALF, HALF), (each & (2**HALF - 1), 0)] for each in (a, b))
    return by_exponent([(p * q, i + j + shift + more) for p, shift in first for q, more in second])


def specials(x: np.ndarray) -> float | None:
    """The sum of the elements that are not finite; None if all are."""
    finite = np.isfinite(x)
    with np.errstate(invalid="ignore"):
        return None if finite.all() else float(np.sum(x[~finite]))


def mantissas(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers below 2**53 and exponents: x = integer * 2**exponent."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(mantissa, 53).astype(np.int64), exponent.astype(np.int64) - 53


def by_exponent(parts: list[tuple[np.ndarray, np.ndarray]]) -> Fraction:
    """The sum of integers times powers of two: those of an exponent first, their upper and lower bits apart."""
    least = min((int(exponent.min()) for _, exponent in parts if exponent.size), default=0)
    sum = 0
    for integer, exponent in parts:
        for first in range(0, integer.size, COUNT):
            piece, place = integer[first : first + COUNT], exponent[first : first + COUNT] - least
            high, low = (np.bincount(place, half) for half in (piece >> HALF, piece & (2**HALF - 1)))
            for k in np.flatnonzero((high != 0) | (low != 0)).tolist():
                sum += ((int(high[k]) << HALF) + int(low[k])) << k
    return sum * Fraction(2) ** least


def nearest(x: Fraction | float, dtype: Any) -> Any:
    """The number of a dtype nearest to x, ties to even, infinite where it overflows: a scalar of the dtype."""
    dtype = np.dtype(dtype)
    if not isinstance(x, Fraction):
        return dtype.type(x)
    precision, least, top = FORMATS[dtype.name]
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent  # 2**exponent <= size < 2**(exponent + 1)
    ulp = max(exponent + 1 - precision, least)
    steps = round(size / Fraction(2) ** ulp)  # to even
    value = math.ldexp(steps, ulp) if steps.bit_length() + ulp <= top else math.inf
    return dtype.type(value if x >= 0 else -value)


def nearest_root(x: Fraction | float, dtype: Any) -> Any:
    """The number of a dtype nearest to the square root of x; of negative numbers NaN."""
    if not isinstance(x, Fraction) or x < 0:
        return nearest(math.sqrt(x) if x >= 0 else math.nan, dtype)
    if x == 0:
        return nearest(x, dtype)
    shift = 64 - (x.numerator.bit_length() - x.denominator.bit_length()) // 2  # a root of about 64 bits
    scaled = x * Fraction(4) ** shift
    below = math.isqrt(math.floor(scaled))
    return nearest(Fraction(2 * below + (below**2 != scaled), 2) / Fraction(2) ** shift, dtype)  # rounded to odd
