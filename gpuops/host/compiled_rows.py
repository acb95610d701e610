"""softmax, log_softmax and sums of exponentials of a block, compiled by Numba: one function for rows, one for columns.

Rows are (rows, pitch), columns (outer, n, pitch), of which the first ``n`` or ``width`` elements side by side count: so
blocks of larger arrays need no copy. Elements that a mask leaves out are -inf. A *state* is what is known of a row or
column: its greatest element, the sum of exp(x - greatest) over those below it, and how many are equal to it. Apart from
each other, neither loses digits.

Loops have unsigned indices: others, which might count from the end, are not vectorised.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from .numba_compiler import compiled

SUMS, SOFTMAX, LOG_SOFTMAX, WEIGHTED = range(4)  # what is computed; `WEIGHTED` are sums
OPS = {"sums": SUMS, "weighted": WEIGHTED, "shares": SOFTMAX, "logs": LOG_SOFTMAX}
CHUNK = 1024  # elements of a row that are added up in their own type; their sums are added in float64
COLUMN_CHUNK = 64  # the same of a column
TILE = 2**20  # bytes of columns that are taken together, of which there are at least `NARROWEST` side by side
NARROWEST = 512
BATCH = 2**12  # elements of rows that are taken together


def shortened(series: list[float], reach: float, terms: int) -> tuple[float, ...]:
    """Coefficients, highest first, of a polynomial that is near a power series for arguments up to ``reach``: its
    Chebyshev series, cut off."""
    polynomials = np.polynomial.chebyshev
    cut = polynomials.poly2cheb([c * reach**k for k, c in enumerate(series)])[:terms]
    return tuple(float(c) / reach**k for k, c in enumerate(polynomials.cheb2poly(cut)))[::-1]


#: Of a type: itself, the integer of as many bits, bits of the fraction, the x below which exp(x) is 0; log(2) in two
#: parts, the first so short that its products with exponents are exact (Cody and Waite); and a polynomial q, of which
#: exp(r) = 1 + r + r**2 q(r) for |r| <= log(2) / 2.
POWERS = [1 / math.factorial(k + 2) for k in range(20)]
FORMATS: dict[Any, Any] = {
    types.float32: (
        np.float32, np.int32, 23, -104.0, 0.693359375, -2.12194440e-4, shortened(POWERS, math.log(2) / 2, 5)
    ),
    types.float64: (
        np.float64, np.int64, 52, -746.0, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
        shortened(POWERS, math.log(2) / 2, 10),
    ),
}  # fmt: skip
LOG2_HIGH, LOG2_LOW = FORMATS[types.float64][4:6]
ONE, ROOT = (int(np.float64(x).view(np.int64)) for x in (1, math.sqrt(0.5)))  # as bits
FRACTION = 2**52 - 1
#: log(m) = 2 s + s**3 q(s**2) for s = (m - 1) / (m + 1) and sqrt(1/2) <= m <= sqrt(2)
LOG = shortened([2 / (2 * k + 3) for k in range(20)], (3 - 2 * math.sqrt(2)) ** 2, 8)


def exp(x: Any) -> Any:
    """exp(x) for x <= 0, or NaN: x = k log(2) + r, and exp(r) is a polynomial."""
    return np.exp(x)  # compiled code has the following instead


@overload(exp, jit_options={"fastmath": {"contract"}})
def exp_of_type(x: Any) -> Any:
    real, whole, fraction, *constants, polynomial = FORMATS[x]
    least, log2_high, log2_low = map(real, constants)
    bias = np.finfo(real).maxexp - 1
    far = bias // 2  # which keeps the power from underflow until the last step
    rounding, log2_e, back = real(1.5 * 2.0**fraction + bias + far), real(1 / math.log(2)), real(2.0**-far)
    first, *others = map(real, (*polynomial, 1, 1))
    rest = tuple(others)

    def power(x: Any) -> Any:
        x = least if x < least else x
        shifted = x * log2_e + rounding  # whose last bits are those of 2**(k + far), k rounded
        k = shifted - rounding
        r = x - k * log2_high
        r = r - k * log2_low
        q = first
        for c in rest:
            q = q * r + c
        return q * real(whole(real(shifted).view(whole) << fraction).view(real)) * back

    return power


@compiled(error_model="numpy")
def log1p(x: float) -> float:
    """log(1 + x) for x >= 0, or NaN: 1 + x = 2**k m, m about 1, and log(m) = 2 artanh((m - 1) / (m + 1)). (Loops of it
    are vectorised, which those of math.log1p are not.)"""
    whole = 1.0 + x
    lost = (x - (whole - 1.0)) / whole
    word = np.float64(whole).view(np.int64) + (ONE - ROOT)
    k = np.float64((word >> 52) - 1023)
    m = np.int64((word & FRACTION) + ROOT).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    square, q = s * s, 0.0
    for c in LOG:
        q = q * square + c
    return k * LOG2_HIGH + (k * LOG2_LOW + lost + s * square * q + 2.0 * s)


@compiled(error_model="numpy")
def last_step(op: int, top: Any, others: float, at_top: float) -> Any:
    """What powers are multiplied by, or what is subtracted from elements less the greatest one."""
    if op == SOFTMAX:
        return 1.0 / (others + at_top)
    return 0.0 if math.isinf(top) else log1p(others + (at_top - 1.0))


# ---------------------------------------------------------------------------------------------------------------- rows


def greatest(x: Any, r: Any, n: Any) -> Any:
    """The greatest element of a row; where it is infinite, NaN if there is one."""
    return np.max(x[r, :n])  # compiled code has the following instead


@overload(greatest)
def greatest_of_type(x: Any, r: Any, n: Any) -> Any:
    real, whole = FORMATS[x.dtype][:2]

    def found(x: Any, r: Any, n: Any) -> Any:
        # As integers, positive numbers compare as they do, negative ones the other way round. Loops for integers are
        # vectorised; those for numbers are not, because of NaN.
        high = low = whole(real(x[r, 0]).view(whole))
        for i in range(n):
            word = whole(real(x[r, i]).view(whole))
            high = word if word > high else high
            low = word if word < low else low
        top = real(whole(high if high >= 0 else low).view(real))
        if math.isinf(top):
            for i in range(n):
                top = x[r, i] if math.isnan(x[r, i]) else top
        return top

    return found


@compiled()
def without(power: Any, one: Any) -> Any:
    """The power of an element below the greatest; 0 of that. (Apart from loops that add up in any order.)"""
    return power - one


@compiled(fastmath={"reassoc", "nsz"})
def chunk_powers(x: Any, y: Any, weights: Any, r: Any, first: Any, last: Any, top: Any) -> Any:
    others, at_top = x.dtype.type(0), x.dtype.type(0)
    for i in range(first, last):
        power = exp(x[r, i] - top)
        one = np.floor(power)
        if y is not None:
            y[r, i] = power
        if weights is None:
            others += without(power, one)
            at_top += one
        else:
            others += without(power, one) * weights[r, i]
            at_top += one * weights[r, i]
    return others, at_top


@compiled(inline="always")
def row_states(x: Any, y: Any, weights: Any, start: Any, stop: Any, n: Any, states: Any) -> None:
    """The states of rows, whose powers go into y, unless that is None, and have weights, unless there are none."""
    for r in range(start, stop):
        top, others, at_top = greatest(x, r, n), 0.0, 0.0
        for first in range(0, n, CHUNK):
            sums = chunk_powers(x, y, weights, r, np.uintp(first), np.uintp(min(first + CHUNK, n)), top)
            others += sums[0]
            at_top += sums[1]
        states[0, r], states[1, r], states[2, r] = top, others, at_top


@compiled()
def rows(op: int, x: Any, y: Any, n: Any, states: Any, known: bool) -> None:
    """The states of rows, (3, rows), and their results; or these, if the greatest elements and last steps are known."""
    real, n, batch = x.dtype.type, np.uintp(n), max(1, BATCH // n)
    for first in range(0, x.shape[0], batch):
        start, stop = np.uintp(first), np.uintp(min(first + batch, x.shape[0]))
        if op == SOFTMAX and not known:
            row_states(x, y, None, start, stop, n, states)
        elif op == WEIGHTED:
            row_states(x, None, y, start, stop, n, states)
        elif not known:
            row_states(x, None, None, start, stop, n, states)
        for r in range(start, stop):
            top, last = real(states[0, r]), real(states[1, r])
            if not known:
                last = real(last_step(op, states[0, r], states[1, r], states[2, r]))
            if op == LOG_SOFTMAX:
                for i in range(n):
                    y[r, i] = (x[r, i] - top) - last
            elif op == SOFTMAX and known:
                for i in range(n):
                    y[r, i] = exp(x[r, i] - top) * last
            elif op == SOFTMAX:
                for i in range(n):
                    y[r, i] *= last


# ------------------------------------------------------------------------------------------------------------- columns


@compiled()
def larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@compiled()
def column_tops(x: Any, first: Any, tops: Any) -> None:
    """The greatest elements of columns from the first on; where one is infinite, NaN if there is one."""
    n, width, four = np.uintp(x.shape[0]), np.uintp(tops.size), np.uintp(4)
    tops[:], even = -np.inf, n - n % four
    for j in range(np.uintp(0), even, four):
        for i in range(width):
            some = larger(x[j, first + i], x[j + np.uintp(1), first + i])
            more = larger(x[j + np.uintp(2), first + i], x[j + np.uintp(3), first + i])
            tops[i] = larger(tops[i], larger(some, more))
    for j in range(even, n):
        for i in range(width):
            tops[i] = larger(tops[i], x[j, first + i])
    for i in range(width):
        if math.isinf(tops[i]):
            for j in range(n):
                tops[i] = x[j, first + i] if math.isnan(x[j, first + i]) else tops[i]


@compiled()
def column_powers(x: Any, y: Any, weights: Any, first: Any, tops: Any, sums: Any) -> None:
    """The sums of columns' powers, likewise."""
    zero, one, n, width = x.dtype.type(0), x.dtype.type(1), x.shape[0], np.uintp(tops.size)
    others, at_top = np.empty_like(tops), np.empty_like(tops)
    sums[:] = 0
    for start in range(0, n, COLUMN_CHUNK):
        others[:], at_top[:] = 0, 0
        for j in range(np.uintp(start), np.uintp(min(start + COLUMN_CHUNK, n))):
            for i in range(width):
                power = exp(x[j, first + i] - tops[i])
                weight = one
                if y is not None:
                    y[j, first + i] = power
                if weights is not None:
                    weight = weights[j, first + i]
                others[i] += zero if power == one else power * weight
                at_top[i] += weight if power == one else zero
        for i in range(width):
            sums[0, i] += others[i]
            sums[1, i] += at_top[i]


@compiled()
def column_results(op: int, x: Any, y: Any, first: Any, tops: Any, sums: Any, known: bool) -> None:
    n, width, last = np.uintp(x.shape[0]), np.uintp(tops.size), np.empty_like(tops)
    for i in range(width):
        last[i] = sums[0, i] if known else last_step(op, tops[i], sums[0, i], sums[1, i])
    for j in range(n):
        if op == LOG_SOFTMAX:
            for i in range(width):
                y[j, first + i] = (x[j, first + i] - tops[i]) - last[i]
        elif known:
            for i in range(width):
                y[j, first + i] = exp(x[j, first + i] - tops[i]) * last[i]
        else:
            for i in range(width):
                y[j, first + i] *= last[i]


@compiled()
def columns(op: int, x: Any, y: Any, width: int, states: Any, known: bool) -> None:
    """The same of columns, (3, outer, width)."""
    tile = width if known else max(NARROWEST, TILE // (x.shape[1] * x.itemsize))
    for o in range(x.shape[0]):
        for start in range(0, width, tile):
            stop, first = min(start + tile, width), np.uintp(start)
            tops, sums = np.empty(stop - start, x.dtype), np.empty((2, stop - start))
            if known:
                for i in range(stop - start):
                    tops[i], sums[0, i] = states[0, o, start + i], states[1, o, start + i]
            else:
                column_tops(x[o], first, tops)
                if op == SOFTMAX:
                    column_powers(x[o], y[o], None, first, tops, sums)
                elif op == WEIGHTED:
                    column_powers(x[o], None, y[o], first, tops, sums)
                else:
                    column_powers(x[o], None, None, first, tops, sums)
                for i in range(stop - start):
                    states[0, o, start + i], states[1, o, start + i] = tops[i], sums[0, i]
                    states[2, o, start + i] = sums[1, i]
            if op not in (SUMS, WEIGHTED):
                column_results(op, x[o], y[o], first, tops, sums, known)
