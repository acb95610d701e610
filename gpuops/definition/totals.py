"""The definition of exact sums, in Python's integers: of what elements contribute, and of what becomes of sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .exact import Number

#: Bits of precision, exponent of the least subnormal, and exponent that magnitudes stay below, by dtype.
FORMATS = {
    "float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128), "float64": (53, -1074, 1024)
}  # fmt: skip
Total = Fraction | float  #: an exact sum; or that of NaN and infinities, where there are some
HALF = 27  # bits: halves of mantissas, whose products are below 2**54
COUNT = 2**25  # so many of them, halved in turn, are added exactly in float64


def total(x: np.ndarray) -> Total:
    """The exact sum of floats, a Fraction; where there are NaN or infinities, their sum, a float."""
    x = np.asarray(x).astype(np.float64).reshape(-1)
    special = specials(x)
    return special if special is not None else by_exponent([mantissas(x)])


def total_of_products(x: np.ndarray, y: np.ndarray) -> Total:
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


def nearest(x: Total, dtype: Any) -> Any:
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


def nearest_root(x: Total, dtype: Any) -> Any:
    """The number of a dtype nearest to the square root of x; of negative numbers NaN."""
    if not isinstance(x, Fraction) or x < 0:
        return nearest(math.sqrt(x) if x >= 0 else math.nan, dtype)
    if x == 0:
        return nearest(x, dtype)
    shift = 64 - (x.numerator.bit_length() - x.denominator.bit_length()) // 2  # a root of about 64 bits
    scaled = x * Fraction(4) ** shift
    below = math.isqrt(math.floor(scaled))
    return nearest(Fraction(2 * below + (below**2 != scaled), 2) / Fraction(2) ** shift, dtype)  # rounded to odd


# ------------------------------------------------------------------------------------------------------ results of sums


def totals_of(of: str, x: np.ndarray, y: np.ndarray | None, initial: Any = None) -> list[Total]:
    """The exact sums of elements, of one part after the other; ``of`` as in `Exact`."""
    if of == "moments":
        return [*totals_of("x", x, None), *totals_of("square", x, None)]
    if of == "weighted":
        assert y is not None
        return [*totals_of("product", x, y), *totals_of("x", y, None)]
    paired = x.dtype.kind == "c"
    if of == "product":
        assert y is not None
        pairs = [[(x.real, y.real), (x.imag, -y.imag)], [(x.real, y.imag), (x.imag, y.real)]] if paired else [[(x, y)]]
        return [total_of_products(*map(np.concatenate, zip(*each, strict=True))) for each in pairs]
    if of == "square":
        x = np.ascontiguousarray(x).view(x.real.dtype) if paired else x
        return [total_of_products(x, x)]
    parts = [np.abs(x)] if of == "abs" else [x.real, x.imag] if paired else [x]
    firsts = [] if initial is None else [initial.real, initial.imag]
    return [
        total(np.append(part.astype(np.float64), firsts[k : k + 1])) for k, part in enumerate(parts)
    ]  # fmt: skip


def number(totals: Sequence[Total], n: int, which: Number, ddof: float, dtype: Any) -> Any:
    """What becomes of exact sums of n elements, in a dtype, rounded once."""
    found = totals[which.part]
    if which.end in ("variance", "deviation"):
        found = variance(totals[:-1], totals[-1], n, max(n - ddof, 0.0))
    elif which.end == "ratio":
        if totals[0] == 0 and totals[1] < 0:
            return np.dtype(dtype).type(-0.0)  # as float division
        found = ratio(*totals)
    elif which.end == "quotient":
        found = found / n
    return (nearest_root if which.end in ("root", "deviation") else nearest)(found, dtype)


def variance(values: Sequence[Total], squares: Total, n: int, freedom: float) -> Total:
    """The variance of n elements, given the exact sums of them, or of their parts, and of their squares."""
    parts = [each for each in values if isinstance(each, Fraction)]
    if math.isnan(freedom) or len(parts) < len(values):
        return math.nan
    apart = n * squares - sum([each * each for each in parts])
    if freedom == 0:
        return math.inf if apart else math.nan
    return Fraction(0) if n == 0 or math.isinf(freedom) else apart / (n * Fraction(freedom))


def ratio(x: Total, y: Total) -> Total:
    """The quotient of two sums."""
    if isinstance(x, Fraction) and isinstance(y, Fraction) and y:
        return x / y
    sign = float((x > 0) - (x < 0)) if isinstance(x, Fraction) else x
    with np.errstate(all="ignore"):
        return float(np.divide(sign, 0.0 if y == 0 else y if isinstance(y, float) else float((y > 0) - (y < 0))))
