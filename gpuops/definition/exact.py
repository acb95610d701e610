"""Exact sums: the exact sum of the elements, rounded once.

An *expansion* is three float64 numbers (s, e, r) that tell a sum S: |S - (s + e)| <= r * (1 + 2**-10). So S is s + e
where r is 0, and nothing is known of it where r is infinite. A non-finite s is itself the sum: that of infinities and
NaN. Expansions of parts merge in any order. Rounding one tells the value and whether it is sure; where it is not, the
sum is made once more from its elements.

`totals` has the definition, in Python's integers, slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

BITS: dict[int, Any] = {2: np.int16, 4: np.int32, 8: np.int64}  # integers by their bytes
#: Above r * (1 + 2**-10), and roundings of the bound itself.
ABOVE = 1 + 2.0**-9
#: Magnitudes of sums whose quotients and roots are made from expansions: exact remainders neither under- nor overflow.
LEAST, MOST = 2.0**-960, 2.0**990
#: From which on products with what is below their last bits do not underflow.
SMALL = 2.0**-800
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
    """That a reduction is an exact sum: of what, and what becomes of the sum before it is rounded once.

    Some have several sums: "moments" are those of the elements and of their squares, "weighted" those of the products
    with weights and of the weights."""

    of: str  # "x", its magnitude "abs", its "square", or its "product" with the second operand; "moments", "weighted"
    end: str = "itself"  # or its "quotient" by the number of elements, or its "root"; "variance", "deviation", "ratio"
    second: str = ""  # another result: before that the "quotient" of the elements' sum; after it the weights' "itself"

    def values(self, val: np.dtype) -> int:
        """How many parts elements have whose sums are apart: those of complex numbers two."""
        return 2 if val.kind == "c" and self.of not in ("abs", "square") else 1

    def parts(self, val: np.dtype) -> int:
        """How many sums a result is made of."""
        values = self.values(val)
        return {"moments": values + 1, "weighted": 2 * values}.get(self.of, values)


class Number(NamedTuple):
    """A real number that is made of sums and then rounded: of the sum of one part, or of all of them."""

    end: str
    part: int = 0


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


def rounded_variance(
    values: Sequence[Expansion], squares: Expansion, n: Any, ddof: float, strict: bool, root_of: bool, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Variances of n elements, or their square roots, in a dtype, rounded once, and whether each of them is sure.
    Without degrees of freedom they are NaN if ``strict``, else quotients by 0."""
    n = np.broadcast_to(np.asarray(n, np.float64), np.shape(squares.s))
    freedom = np.maximum(n - ddof, 0.0)
    with np.errstate(all="ignore"):
        apart = spread(values, squares, n)
        x = quotient(quotient(apart, n), freedom)
        made, sure = settled(root(x) if root_of else x, dtype)
        nothing = np.isnan(freedom) | (strict & (freedom == 0))
        for each in values:
            nothing = nothing | ~np.isfinite(each.s)
        bare, size = (n == 0) | (freedom == 0) | np.isinf(freedom), apart.s + apart.e
        known = nothing | (bare & ((apart.r == 0) | (apart.r < np.abs(size))))
        made = np.where(known, np.where(nothing, np.nan, size / freedom).astype(dtype), made)
    return made, np.where(nothing | bare, known, sure)


def complex_ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Quotients of complex numbers, each step rounded in float64.

    Source: R. Smith, "Algorithm 116: Complex division" (1962)."""
    a, b = x.astype(np.complex128), y.astype(np.complex128)
    steep = np.abs(b.imag) > np.abs(b.real)
    ar, ai = np.where(steep, a.imag, a.real), np.where(steep, -a.real, a.imag)
    br, bi = np.where(steep, b.imag, b.real), np.where(steep, -b.real, b.imag)
    with np.errstate(all="ignore"):
        part = bi / br
        size = br + bi * part
        made = np.empty_like(a)
        made.real, made.imag = (ar + ai * part) / size, (ai - ar * part) / size
        return made.astype(x.dtype)


def rounded_ratio(x: Expansion, y: Expansion, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Quotients of two sums in a dtype, rounded once, and whether each of them is sure."""
    with np.errstate(all="ignore"):
        made, sure = settled(ratio(x, y), dtype)
        a, b = (np.where(np.isfinite(each.s), each.s + each.e, each.s) for each in (x, y))
        nothing = (b == 0) & (y.r == 0)
        zero = (a == 0) & (x.r == 0) & (y.r < np.abs(b))
        ready = zero | ~np.isfinite(x.s) | ~np.isfinite(y.s) | (nothing & ((x.r < np.abs(a)) | (x.r == 0)))
        made = np.where(ready, ((a + 0.0) / b).astype(dtype), made)  # (not of -0.0)
    return made, np.where(nothing, ready, sure | ready)


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


def spread(values: Sequence[Expansion], squares: Expansion, n: np.ndarray) -> Expansion:
    """n times the sums of squares, less the squares of sums."""
    inside = (squares.s == 0) | (squares.s >= SMALL) & (squares.s <= MOST / np.maximum(n, 1.0))
    total = Expansion(*two_product(n, squares.s), n * squares.r)
    total = merged(total, Expansion(*two_product(n, squares.e), 0.0))
    for x in values:
        s, e = two_sum(x.s, x.e)
        inside &= (s == 0) | (s * s >= SMALL) & (s * s <= MOST)
        for a, b in ((s, -s), (e, -2 * s), (e, -e)):
            total = merged(total, Expansion(*two_product(a, b), 0.0))
        total = total._replace(r=total.r + (2 * (np.abs(s) + np.abs(e)) + x.r) * x.r * ABOVE)
    s, e = two_sum(total.s, total.e)
    inside &= np.isfinite(s + total.r)
    return bounded(s, e, total.r, inside & (total.r == 0), inside)


def ratio(x: Expansion, y: Expansion) -> Expansion:
    """Quotients of two sums."""
    a, b = (Expansion(*two_sum(each.s, each.e), each.r) for each in (x, y))
    q = a.s / b.s
    rest = Expansion(a.s, a.e, a.r)
    for each in (b.s, b.e):
        rest = merged(rest, Expansion(*two_product(q, -each), 0.0))
    rest = Expansion(*two_sum(rest.s, rest.e), rest.r)
    second = rest.s / b.s
    size = np.abs(b.s)
    inside = (size >= SMALL) & (size <= MOST) & (b.r <= 2.0**-20 * size)
    inside &= (a.s == 0) | (np.abs(a.s) >= SMALL) & (np.abs(a.s) <= MOST) & (np.abs(q) >= SMALL) & (np.abs(q) <= MOST)
    exact = inside & (rest.s == 0) & (rest.e == 0) & (rest.r == 0) & (b.r == 0)
    residue = (np.abs(rest.e) + rest.r + (np.abs(q) + np.abs(second)) * b.r + np.abs(second * b.e)) / size * ABOVE
    return bounded(q, second, residue + np.abs(second) * 2.0**-52 + 2.0**-1074, exact, inside)


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
