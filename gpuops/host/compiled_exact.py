"""Exact sums, compiled by Numba: the expansions of sums, see `definition.exact`.

Elements are added as integers. Of a block whose greatest magnitude is below 2**(k - 1), M = 1.5 * 2**k is added to
each element: the sum t lies in [2**k, 2**(k + 1)], so its bits, less those of M, count multiples of 2**(k - 52), which
add up in an integer. What each element has below these, d = x - (t - M), is exact (Dekker 1971), and goes the same way
with M * 2**-51. What even that leaves only sets a flag. (Binned sums: Demmel, Ahrens and Nguyen 2020.) Blocks are added
to expansions.

Integers may be added in any order, so loops over a row are vectorised as they are; columns are summed side by side.
Loops have unsigned indices: others, which might count from the end, are not vectorised.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba.extending import register_jitable

from .compiled_elements import (
    HUGE_BITS,
    MAGNITUDE,
    WORDS,
    after,
    alike,
    bits,
    error,
    has_errors,
    loses,
    plus,
    plus_each,
    size,
    size_bits,
    summand,
)
from .numba_compiler import compiled

BLOCKS = {2: 2**11, 4: 2**11, 8: 768}  # elements of a row taken together, by bytes: integers of 2**51 allow 2**11
NARROW = 16  # columns below which they are turned to rows
WIDTH, STEPS = 128, 64  # columns that are summed side by side, and elements of each that are taken together
#: The bits of elements that count.
KEEP = dict.fromkeys(("x", "square", "product"), np.int64(-1)) | {"abs": np.int64(MAGNITUDE)}
EXPONENT = 52  # of the bits of a float64: where the exponent begins
LEAST = 50  # exponent, as in the bits, below which M * 2**-51 would be subnormal


@register_jitable
def plus_count(state: Any, count: Any, unit: Any) -> Any:
    """Add an integer times a power of two to an expansion: its upper and its lower bits."""
    return plus(plus(state, np.float64(count >> 31) * (unit * 2.0**31)), np.float64(count & (2**31 - 1)) * unit)


@register_jitable
def bias(top: Any) -> Any:
    """M for magnitudes whose greatest has these bits, and its last bit: of M * 2**-51 too it is a number."""
    power = np.int64((max(top >> EXPONENT, LEAST) + 2) << EXPONENT)
    return np.int64(power | (1 << (EXPONENT - 1))).view(np.float64), power.view(np.float64) * 2.0**-EXPONENT


@register_jitable
def level(m: Any, v: Any) -> Any:
    """A number in last bits of M, rounded, and what it has below these."""
    t = m + v
    return bits(t) - bits(m), v - (t - m)


# ------------------------------------------------------------------------------------------------------- sums of rows


@register_jitable
def peak(given: Any, place: Any, count: Any) -> Any:
    """The bits, as of float64, of the greatest magnitude."""
    top = size(given[0], given[1], place, np.uintp(0))
    for i in range(count):
        top = max(top, size(given[0], given[1], place, i))
    return size_bits(given, top)


@register_jitable
def one_level(given: Any, place: Any, count: Any, keep: Any, m: Any) -> Any:
    """The sum of elements in last bits of M, and whether they have parts below these (-0.0 is none)."""
    total, rest = np.int64(0), np.int64(0)
    for i in range(count):
        v = summand(given[0], given[1], place, i, keep)
        t = m + v
        total += bits(t)
        rest |= bits(t - m) ^ bits(v)
    return total - np.int64(count) * bits(m), rest & MAGNITUDE


@register_jitable
def two_levels(given: Any, place: Any, count: Any, keep: Any, m: Any) -> Any:
    """The sums in last bits of M, and of M * 2**-51; and whether there are parts below these."""
    n = m * 2.0**-51
    total, second, rest = np.int64(0), np.int64(0), np.int64(0)
    for i in range(count):
        v = summand(given[0], given[1], place, i, keep)
        t = m + v
        d = v - (t - m)
        u = n + d
        total += bits(t)
        second += bits(u)
        rest |= bits(u - n) ^ bits(d)
    return total - np.int64(count) * bits(m), second - np.int64(count) * bits(n), rest & MAGNITUDE


@register_jitable
def level_of_errors(given: Any, place: Any, count: Any, n: Any) -> Any:
    """The sum of errors of products in last bits of M * 2**-51, and whether they have parts below these."""
    total, rest = np.int64(0), np.int64(0)
    for i in range(count):
        a, d = level(n, error(given[0], given[1], place, i))
        total += a
        rest |= bits(d)
    return total, rest & MAGNITUDE


@register_jitable
def plus_row(given: Any, place: Any, count: Any, keep: Any, short: Any, top: Any, state: Any) -> Any:
    """Add elements that lie side by side. short: whether one level is likely to do."""
    m, unit = bias(top)
    if short:
        total, rest = one_level(given, place, count, keep, m)
        if rest == 0:
            return plus_count(state, total, unit)
    total, second, rest = two_levels(given, place, count, keep, m)
    state = plus_count(state, total, unit)
    unit *= 2.0**-51
    lost = np.float64(count) * unit * 0.5 if rest else 0.0
    if has_errors(given):
        more, rest = level_of_errors(given, place, count, m * 2.0**-51)
        second += more
        lost += np.float64(count) * unit * 0.5 if rest else 0.0
    s, e, r = plus_count(state, second, unit)
    return s, e, r + lost


@register_jitable(inline="always")
def sum_of_row(given: Any, begin: Any, keep: Any, short: Any, lengths: Any) -> Any:
    """The expansion of a row that begins at a place. lengths: its own, and that of its blocks."""
    one, length, state = alike(1), lengths[1], (0.0, 0.0, 0.0)
    for j in range(np.uintp(0), lengths[0], length):
        place, count = after(begin, one, j), min(length, lengths[0] - j)
        top = peak(given, place, count)
        if top >= HUGE_BITS or loses(given, place, count):
            state = plus_each(given, place, one, count, keep, state)
        else:
            state = plus_row(given, place, count, keep, short, top, state)
    return state


@compiled(error_model="numpy")
def rows(given: Any, keep: Any, short: Any, outs: Any, lengths: Any, along: Any) -> Any:
    """Expansions of (outer, n) summed over n. lengths: outer, n, and that of blocks of a row; along: steps from row to
    row, in x and y."""
    for o in range(lengths[0]):
        outs[0][o], outs[1][o], outs[2][o] = sum_of_row(given, after(alike(0), along, o), keep, short, lengths[1:])


# ----------------------------------------------------------------------------------------------------- sums of columns


@register_jitable
def peaks(given: Any, place: Any, along: Any, counts: Any, tops: Any) -> Any:
    """The greatest magnitudes of columns, as `size`: of four elements at a time, the last of which may be the same."""
    x, y = given
    last = counts[0] - np.uintp(1)
    for i in range(counts[1]):
        tops[i] = size(x, y, place, i)
    for j in range(np.uintp(1), counts[0], np.uintp(4)):
        a, b = after(place, along, j), after(place, along, min(j + np.uintp(1), last))
        c, d = after(place, along, min(j + np.uintp(2), last)), after(place, along, min(j + np.uintp(3), last))
        for i in range(counts[1]):
            v = max(size(x, y, a, i), size(x, y, b, i))
            w = max(size(x, y, c, i), size(x, y, d, i))
            tops[i] = max(tops[i], max(v, w))


@register_jitable
def one_level_each(given: Any, place: Any, along: Any, counts: Any, keep: Any, lanes: Any) -> Any:
    """The sums of columns in last bits of M, and whether they have parts below these: of four elements at a time."""
    steps, width = counts
    m, total, _, rest = lanes
    x, y = given
    for j in range(np.uintp(0), steps - steps % np.uintp(4), np.uintp(4)):
        a, b = after(place, along, j), after(place, along, j + np.uintp(1))
        c, d = after(place, along, j + np.uintp(2)), after(place, along, j + np.uintp(3))
        for i in range(width):
            n = m[i]
            (p, e), (q, f) = level(n, summand(x, y, a, i, keep)), level(n, summand(x, y, b, i, keep))
            (u, g), (v, h) = level(n, summand(x, y, c, i, keep)), level(n, summand(x, y, d, i, keep))
            total[i] += (p + q) + (u + v)
            rest[i] |= (bits(e) | bits(f)) | (bits(g) | bits(h))
    for j in range(steps - steps % np.uintp(4), steps):
        a = after(place, along, j)
        for i in range(width):
            p, e = level(m[i], summand(x, y, a, i, keep))
            total[i] += p
            rest[i] |= bits(e)


@register_jitable
def two_levels_each(given: Any, place: Any, along: Any, counts: Any, keep: Any, lanes: Any) -> Any:
    """The sums of columns in last bits of M, and of M * 2**-51; and whether there are parts below these."""
    steps, width = counts
    m, total, second, rest = lanes
    x, y = given
    for j in range(np.uintp(0), steps - steps % np.uintp(2), np.uintp(2)):
        a, b = after(place, along, j), after(place, along, j + np.uintp(1))
        for i in range(width):
            n = m[i]
            (p, e), (q, f) = level(n, summand(x, y, a, i, keep)), level(n, summand(x, y, b, i, keep))
            n *= 2.0**-51
            (u, g), (v, h) = level(n, e), level(n, f)
            total[i] += p + q
            second[i] += u + v
            rest[i] |= bits(g) | bits(h)
    for j in range(steps - steps % np.uintp(2), steps):
        a = after(place, along, j)
        for i in range(width):
            p, e = level(m[i], summand(x, y, a, i, keep))
            u, g = level(m[i] * 2.0**-51, e)
            total[i] += p
            second[i] += u
            rest[i] |= bits(g)


@register_jitable
def errors_each(given: Any, place: Any, along: Any, counts: Any, lanes: Any) -> Any:
    """Add errors of products to the second sums."""
    m, _, second, rest = lanes
    for j in range(counts[0]):
        here = after(place, along, j)
        for i in range(counts[1]):
            a, d = level(m[i] * 2.0**-51, error(given[0], given[1], here, i))
            second[i] += a
            rest[i] |= bits(d)


@register_jitable
def plus_tile(given: Any, place: Any, along: Any, counts: Any, keep: Any, short: Any, lanes: Any, sums: Any) -> Any:
    """Add elements to columns. short: whether one level is likely to do."""
    m, total, second, rest = lanes
    s, e, r, out = sums
    left = np.int64(1)
    for i in range(counts[1]):
        total[i] = second[i] = rest[i] = 0
    if short:
        one_level_each(given, place, along, counts, keep, lanes)
        left = np.int64(0)
        for i in range(counts[1]):
            left |= rest[i] & MAGNITUDE
    if left:
        for i in range(counts[1]):
            total[i] = rest[i] = 0
        two_levels_each(given, place, along, counts, keep, lanes)
        if has_errors(given):
            errors_each(given, place, along, counts, lanes)
    for i in range(counts[1]):
        unit = m[i] * (2.0**-EXPONENT / 1.5)
        state = plus_count((s[out + i], e[out + i], r[out + i]), total[i], unit)
        if left:
            unit *= 2.0**-51
            state = plus_count(state, second[i], unit)
        lost = np.float64(counts[0]) * unit if left and rest[i] & MAGNITUDE else 0.0
        s[out + i], e[out + i], r[out + i] = state[0], state[1], state[2] + lost


@compiled(error_model="numpy")
def columns(given: Any, keep: Any, short: Any, outs: Any, lengths: Any, along: Any, tops: Any) -> Any:
    """Add (outer, n, inner), summed over n, to expansions. along: steps along outer in x and y, and along n; tops:
    memory for sizes."""
    zero, one = alike(0), alike(1)
    m, integers = np.empty(WIDTH), np.empty((3, WIDTH), np.int64)
    lanes = (m, integers[0], integers[1], integers[2])
    s, e, r = outs
    for o in range(lengths[0]):
        for j in range(np.uintp(0), lengths[1], np.uintp(STEPS)):
            for k in range(np.uintp(0), lengths[2], np.uintp(WIDTH)):
                counts = min(np.uintp(STEPS), lengths[1] - j), min(np.uintp(WIDTH), lengths[2] - k)
                place = after(after(after(zero, along[0], o), along[1], j), one, k)
                out = o * lengths[2] + k
                peaks(given, place, along[1], counts, tops)
                top = np.int64(0)
                for i in range(counts[1]):
                    t = size_bits(given, tops[i])
                    top = max(top, t)
                    m[i] = bias(t)[0]
                lost = False
                for f in range(counts[0]):
                    lost |= loses(given, after(place, along[1], f), counts[1])
                if top >= HUGE_BITS or lost:
                    for i in range(counts[1]):
                        state = (s[out + i], e[out + i], r[out + i])
                        state = plus_each(given, after(place, one, i), along[1], counts[0], keep, state)
                        s[out + i], e[out + i], r[out + i] = state
                else:
                    plus_tile(given, place, along[1], counts, keep, short, lanes, (s, e, r, out))


# ------------------------------------------------------------------------------------------------------------ any block


def expansions(
    x: np.ndarray, kind: str, y: np.ndarray | None = None, taken: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The expansions (outer, inner) of sums of elements (outer, n, inner) over n, of those ``taken``; kind: whether of
    "x", "abs", "square", or "product" with y."""
    outer, n, inner = x.shape
    if taken is not None:  # loops of their own would take longer to compile than this takes
        x = np.where(taken, x, x.dtype.type(0))
        y = y if y is None else np.where(taken, y, y.dtype.type(0))
    arrays = [x, x if kind == "square" else y]
    if inner == 1 and outer >= NARROW and abs(x.strides[0]) < abs(x.strides[1]):  # these are columns
        s, e, r = expansions(*turned(arrays, (2, 1, 0), (1, n, outer), kind))
    elif 1 < inner < NARROW:
        s, e, r = expansions(*turned(arrays, (0, 2, 1), (outer * inner, n, 1), kind))
    else:
        s, e, r = added(x, kind, arrays[1])
    return s.reshape(outer, inner), e.reshape(outer, inner), r.reshape(outer, inner)


def turned(arrays: list[Any], dims: tuple[int, ...], shape: tuple[int, ...], kind: str) -> list[Any]:
    """The parameters of `expansions` with dims in another order."""
    x, y = [each if each is None else each.transpose(dims).reshape(shape) for each in arrays]
    return [x, kind, y]


def added(x: np.ndarray, kind: str, y: np.ndarray | None) -> np.ndarray:
    """Terms of expansions of columns, or of rows if these are of one column, as (3, outer * inner)."""
    outer, n, inner = x.shape
    made = np.zeros((3, outer * inner))
    if not x.size:
        return made
    seen = [flat(each, 1 if inner == 1 else 2) for each in (x, y)]
    given = (seen[0][0], seen[1][0])
    along = [tuple([np.uintp(steps[k]) for _, steps in seen]) for k in (0, 1)]
    keep, alone = KEEP[kind], given[1] is None
    double = 8 in [each.itemsize for each in (x, y) if each is not None]
    assert given[0] is not None
    short = not double and alone
    if inner == 1:
        rows(given, keep, short, tuple(made), uints(outer, n, BLOCKS[x.itemsize]), along[0])
    else:
        tops = np.empty(WIDTH, given[0].dtype if alone else np.int64)
        columns(given, keep, short, tuple(made), uints(outer, n, inner), tuple(along), tops)
    return made


@cache
def word_of(dtype: np.dtype) -> Any:
    """The integers by which elements are given."""
    return WORDS[dtype.name]


def uints(*numbers: int) -> tuple[Any, ...]:
    return tuple(map(np.uintp, numbers))


def flat(x: np.ndarray | None, dim: int) -> tuple[np.ndarray | None, tuple[int, ...]]:
    """Elements in one dimension, as integers, with the steps along the first two; copied where they are apart along a
    dim, or in another order."""
    if x is None:
        return None, (0, 0)
    if x.flags.c_contiguous:
        return x.reshape(-1).view(word_of(x.dtype)), (x.shape[1] * x.shape[2], x.shape[2])
    near = x.shape[dim] == 1 or x.strides[dim] == x.itemsize
    if not near or min(x.strides) < 0 or any(stride % x.itemsize for stride in x.strides):
        x = np.ascontiguousarray(x)
    span = sum((n - 1) * (stride // x.itemsize) for n, stride in zip(x.shape, x.strides, strict=True)) + 1
    elements = np.lib.stride_tricks.as_strided(x, (span,), (x.itemsize,))
    return elements.view(word_of(x.dtype)), (x.strides[0] // x.itemsize, x.strides[1] // x.itemsize)
