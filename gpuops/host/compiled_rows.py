"""softmax, log_softmax and logsumexp of the host in one pass after the other over a row, compiled by Numba.

Numba is an optional dependency (``gpuops-cupy[cpu]``). It compiles a function when it is first called with arrays of
some dtype.

An array is seen as (outer, n, inner), reduced over n. Rows have one element side by side (inner is 1); columns have
some, which are taken together. Elements that a mask leaves out count as -inf. All functions return, of powers, the sum
of those below the greatest and the number of the greatest, which are 1: so neither loses digits to the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from .numba_compiler import compiled, widest_vectors

CHUNK = 1024  # elements of a row that are added up in their own type; their sums are added in float64
COLUMN_CHUNK = 64  # the same of a column


def shortened(series: list[float], reach: float, terms: int) -> tuple[float, ...]:
    """Coefficients, highest first, of a polynomial that is near a power series for arguments up to ``reach``: its
    Chebyshev series, cut off."""
    polynomials = np.polynomial.chebyshev
    cut = polynomials.poly2cheb([c * reach**k for k, c in enumerate(series)])[:terms]
    return tuple(float(c) / reach**k for k, c in enumerate(polynomials.cheb2poly(cut)))[::-1]


#: Of a type: bits, those of the fraction, the exponent's bias; the x below which exp(x) is 0; log(2) in two parts, the
#: first so short that its products with exponents are exact (Cody and Waite); and a polynomial q, of which
#: exp(r) = 1 + r + r**2 q(r) for |r| <= log(2) / 2.
POWERS = [1 / math.factorial(k + 2) for k in range(20)]
FORMATS = {
    types.float32: (32, 23, 127, -104.0, 0.693359375, -2.12194440e-4, shortened(POWERS, math.log(2) / 2, 5)),
    types.float64: (
        64, 52, 1023, -746.0, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
        shortened(POWERS, math.log(2) / 2, 10),
    ),
}  # fmt: skip
FAR = 2  # the part of the bias by which results are kept from underflow until the last step
LOG2_HIGH, LOG2_LOW = FORMATS[types.float64][4:6]
ONE, ROOT = (int(np.float64(x).view(np.int64)) for x in (1, math.sqrt(0.5)))  # as bits
FRACTION = 2**52 - 1
#: log(m) = 2 s + s**3 q(s**2) for s = (m - 1) / (m + 1) and sqrt(1/2) <= m <= sqrt(2)
LOG = shortened([2 / (2 * k + 3) for k in range(20)], (3 - 2 * math.sqrt(2)) ** 2, 8)


@intrinsic  # type: ignore[untyped-decorator]
def larger(context: Any, a: Any, b: Any) -> Any:
    """The larger of two numbers; any of them, if one is NaN. Loops of it are vectorised, which those of max are not."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        flags = ("nnan", "nsz")
        return builder.select(builder.fcmp_ordered(">", args[1], args[0], flags=flags), args[1], args[0], flags=flags)

    return a(a, b), build


@intrinsic  # type: ignore[untyped-decorator]
def power_of_two(context: Any, x: Any) -> Any:
    """2**(k + bias / 2) of an integer k, given as the sum of k and 1.5 * 2**fraction, whose last bits are k."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        width, fraction, bias = FORMATS[x][:3]
        whole = ir.IntType(width)
        exponent = builder.add(builder.bitcast(args[0], whole), ir.Constant(whole, bias + bias // FAR))
        return builder.bitcast(builder.shl(exponent, ir.Constant(whole, fraction)), args[0].type)

    return x(x), build


def exp(x: Any) -> Any:
    """exp(x) for x <= 0, or NaN: x = k log(2) + r, and exp(r) is a polynomial."""
    return np.exp(x)  # compiled code has the following instead


@overload(exp, jit_options={"fastmath": {"contract"}})
def exp_of_type(x: Any) -> Any:
    width, fraction, bias, *constants, polynomial = FORMATS[x]
    real: Any = np.float32 if width == 32 else np.float64
    least, log2_high, log2_low, one = map(real, (*constants, 1))
    rounding, log2_e, back = real(1.5 * 2.0**fraction), real(1 / math.log(2)), real(2.0 ** -(bias // FAR))
    first, *others = map(real, polynomial)
    rest = tuple(others)

    def power(x: Any) -> Any:
        x = least if x < least else x
        shifted = x * log2_e + rounding
        k = shifted - rounding
        r = x - k * log2_high
        r = r - k * log2_low
        q = first
        for c in rest:
            q = q * r + c
        return (q * (r * r) + r + one) * power_of_two(shifted) * back

    return power


def reinterpret(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))


@intrinsic  # type: ignore[untyped-decorator]
def bits(context: Any, x: Any) -> Any:
    """A float64 as an int64."""
    return types.int64(x), reinterpret


@intrinsic  # type: ignore[untyped-decorator]
def number(context: Any, x: Any) -> Any:
    """An int64 as a float64."""
    return types.float64(x), reinterpret


@compiled(error_model="numpy")
def log1p(x: float) -> float:
    """log(1 + x) for x >= 0, or NaN: 1 + x = 2**k m, m about 1, and log(m) = 2 artanh((m - 1) / (m + 1)). (Loops of it
    are vectorised, which those of math.log1p are not.)"""
    whole = 1.0 + x
    lost = (x - (whole - 1.0)) / whole
    word = bits(whole) + (ONE - ROOT)
    k = np.float64((word >> 52) - 1023)
    m = number((word & FRACTION) + ROOT)
    s = (m - 1.0) / (m + 1.0)
    square, q = s * s, 0.0
    for c in LOG:
        q = q * square + c
    return k * LOG2_HIGH + (k * LOG2_LOW + lost + s * square * q + 2.0 * s)


@compiled()
def without_one(power: Any, one: Any) -> Any:
    """The power of an element below the greatest; 0 of that. (Apart from loops that add up in any order.)"""
    return power - one


@compiled()
def logarithm(below: float, count: float, top: float) -> float:
    """Of a sum of powers, relative to the greatest element."""
    return 0.0 if math.isinf(top) else log1p(below + (count - 1.0))


# Indices are unsigned: loops over others, which might count from the end, are not vectorised.

# ---------------------------------------------------------------------------------------------------------------- rows


@compiled()
def greatest(x: Any, r: Any) -> Any:
    """The greatest element of a row; where it is infinite, NaN if there is one."""
    top, length = x.dtype.type(-np.inf), np.uintp(x.shape[1])
    for i in range(length):
        top = larger(top, x[r, i])
    if math.isinf(top):
        for i in range(length):
            if math.isnan(x[r, i]):
                return x[r, i]
    return top


@compiled(fastmath={"reassoc", "nsz"})
def chunk_powers(x: Any, y: Any, r: Any, first: Any, last: Any, top: Any) -> Any:
    widest_vectors()
    real = x.dtype.type
    below, count = real(0), real(0)
    for i in range(first, last):
        lowered = x[r, i] - top
        power = exp(lowered)
        if y is not None:
            y[r, i] = power
        one = real(lowered == real(0))
        below += without_one(power, one)
        count += one
    return below, count


@compiled()
def powers(x: Any, y: Any, r: Any, top: Any) -> Any:
    """The sums of a row's powers, which go into y, unless that is None."""
    below, count, length = 0.0, 0.0, x.shape[1]
    for first in range(0, length, CHUNK):
        sums = chunk_powers(x, y, r, np.uintp(first), np.uintp(min(first + CHUNK, length)), top)
        below += sums[0]
        count += sums[1]
    return below, count


@compiled(error_model="numpy")
def softmax_rows(x: Any, y: Any, start: int, stop: int) -> None:
    for r in range(np.uintp(start), np.uintp(stop)):
        below, count = powers(x, y, r, greatest(x, r))
        factor = x.dtype.type(1.0 / (below + count))
        for i in range(np.uintp(x.shape[1])):
            y[r, i] *= factor


@compiled()
def log_softmax_rows(x: Any, y: Any, start: int, stop: int) -> None:
    for r in range(np.uintp(start), np.uintp(stop)):
        top = greatest(x, r)
        below, count = powers(x, None, r, top)
        log = x.dtype.type(logarithm(below, count, top))
        for i in range(np.uintp(x.shape[1])):
            y[r, i] = (x[r, i] - top) - log


@compiled()
def logsumexp_rows(x: Any, y: Any, start: int, stop: int) -> None:
    for r in range(np.uintp(start), np.uintp(stop)):
        top = greatest(x, r)
        below, count = powers(x, None, r, top)
        y[r] = top + x.dtype.type(logarithm(below, count, top))


# ------------------------------------------------------------------------------------------------------------- columns


@compiled()
def column_tops(x: Any, first: Any, tops: Any) -> None:
    """The greatest elements of columns from the first on; where one is infinite, NaN if there is one."""
    first, width, length = np.uintp(first), np.uintp(tops.size), np.uintp(x.shape[0])
    tops[:] = -np.inf
    for j in range(length):
        for i in range(width):
            tops[i] = larger(tops[i], x[j, first + i])
    for i in range(width):
        if math.isinf(tops[i]):
            for j in range(length):
                if math.isnan(x[j, first + i]):
                    tops[i] = np.nan


@compiled()
def column_powers(x: Any, y: Any, first: Any, tops: Any, below: Any, count: Any) -> None:
    """The sums of columns' powers, which go into y, unless that is None."""
    widest_vectors()
    real = x.dtype.type
    first, width, length = np.uintp(first), np.uintp(tops.size), x.shape[0]
    below[:], count[:] = 0, 0
    some_below, some_count = np.empty_like(tops), np.empty_like(tops)
    for start in range(0, length, COLUMN_CHUNK):
        some_below[:], some_count[:] = 0, 0
        for j in range(np.uintp(start), np.uintp(min(start + COLUMN_CHUNK, length))):
            for i in range(width):
                lowered = x[j, first + i] - tops[i]
                power = exp(lowered)
                if y is not None:
                    y[j, first + i] = power
                one = real(lowered == real(0))
                some_below[i] += power - one
                some_count[i] += one
        below += some_below
        count += some_count


@compiled()
def column_times(y: Any, first: Any, factors: Any) -> None:
    """Multiply columns."""
    first, width = np.uintp(first), np.uintp(factors.size)
    for j in range(np.uintp(y.shape[0])):
        for i in range(width):
            y[j, first + i] *= factors[i]


@compiled()
def column_lower(x: Any, y: Any, first: Any, tops: Any, logs: Any) -> None:
    """Columns less their greatest element and less a logarithm."""
    first, width = np.uintp(first), np.uintp(tops.size)
    for j in range(np.uintp(x.shape[0])):
        for i in range(width):
            y[j, first + i] = (x[j, first + i] - tops[i]) - logs[i]


@compiled()
def column_logarithms(below: Any, count: Any, tops: Any) -> Any:
    logs = np.empty_like(tops)
    for i in range(tops.size):
        logs[i] = logarithm(below[i], count[i], tops[i])
    return logs


@compiled(error_model="numpy")
def softmax_columns(x: Any, y: Any, start: int, stop: int) -> None:
    tops, below, count = np.empty(stop - start, x.dtype), np.empty(stop - start), np.empty(stop - start)
    for o in range(x.shape[0]):
        column_tops(x[o], start, tops)
        column_powers(x[o], y[o], start, tops, below, count)
        for i in range(tops.size):
            tops[i] = 1.0 / (below[i] + count[i])
        column_times(y[o], start, tops)


@compiled()
def tops_and_logarithms(x: Any, first: int, tops: Any) -> Any:
    """The greatest elements of columns, and the logarithms of the sums of their powers."""
    below, count = np.empty(tops.size), np.empty(tops.size)
    column_tops(x, first, tops)
    column_powers(x, None, first, tops, below, count)
    return column_logarithms(below, count, tops)


@compiled()
def log_softmax_columns(x: Any, y: Any, start: int, stop: int) -> None:
    tops = np.empty(stop - start, x.dtype)
    for o in range(x.shape[0]):
        logs = tops_and_logarithms(x[o], start, tops)
        column_lower(x[o], y[o], start, tops, logs)


@compiled()
def logsumexp_columns(x: Any, y: Any, start: int, stop: int) -> None:
    tops = np.empty(stop - start, x.dtype)
    for o in range(x.shape[0]):
        y[o, start:stop] = tops_and_logarithms(x[o], start, tops) + tops
