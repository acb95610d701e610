"""Exact sums with NumPy alone: the expansions of sums, see `definition.exact`.

Elements are taken in tiles that stay in the cache, as float64, in which products of two numbers of narrower dtypes are
exact. Sums of a few of these have an error that is bounded in advance, and none where all are multiples of a power of
two that is large enough. Sums of float64 are made of integers, as in `compiled_exact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..definition.exact import LEAST, Expansion, merged, merged_along, two_product
from ..definition.expressions import real_of
from .blocks import convert, indices, memory

TILE = 2**17  # elements that are taken together
ROW, COLUMN = 256, 128  # elements that are added up before they are merged, of rows and of columns
NARROW = 16  # columns below which they are turned to rows
LONG, LANES = 2**14, 512  # rows of so many elements are taken as so many columns
HUGE = 2.0**960  # magnitudes whose partial sums might overflow
UNIT = 2.0**-53 * 1.01  # the error of an addition, relative to its result, and what bounds of it lose
ENDS = (2**12 - 1, 2**24 - 1)  # bits at the end of sums of one piece, and of more, that may be zeros
SINGLE, DOUBLE, INTEGER = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)


def expansions(x: np.ndarray, kind: str, y: np.ndarray | None = None, taken: np.ndarray | None = None) -> Expansion:
    """The expansions (outer, inner) of sums of elements (outer, n, inner) over n, of those ``taken``; kind: whether of
    "x", "abs", "square", or "product" with y."""
    outer, n, inner = x.shape
    given = (x, y, taken)
    if 1 < inner < NARROW:
        turned = [each if each is None else each.transpose(0, 2, 1).copy() for each in given]
        rows = part(tuple(turned), np.s_[:], (outer * inner, n, 1))
        return Expansion(*[term.reshape(outer, inner) for term in expansions(rows[0], kind, *rows[1:])])
    if inner == 1 and n >= LONG:
        even = n - n % LANES
        columns, rest = part(given, np.s_[:, :even], (outer, n // LANES, LANES)), part(given, np.s_[:, even:])
        return merged(
            Expansion(*[term[:, None] for term in merged_along(*expansions(columns[0], kind, *columns[1:]), 1)]),
            expansions(rest[0], kind, *rest[1:]),
        )
    made = Expansion(*np.zeros((3, outer, inner)))
    step = ROW if inner == 1 or x.dtype == DOUBLE else COLUMN
    even = n - n % step
    add(made, kind, part(given, np.s_[:, :even], (outer, n // step, step, inner)))
    add(made, kind, part(given, np.s_[:, even:], (outer, 1, n - even, inner)))
    return made


def part(given: tuple[Any, ...], index: Any, shape: tuple[int, ...] | None = None) -> list[Any]:
    """A part of each array that there is, in another shape."""
    some = [each if each is None else each[index] for each in given]
    return [each if each is None or shape is None else each.reshape(shape) for each in some]


def add(sums: Expansion, kind: str, given: list[Any]) -> None:
    """Add elements (outer, pieces, n, inner), summed over pieces and n, to expansions (outer, inner)."""
    x = given[0]
    form = in_integers if x.dtype == DOUBLE else in_doubles
    if not x.size:
        return
    for index in indices(x.shape, x.strides, (0, 1, 3), max(1, TILE // x.shape[2])):
        with np.errstate(all="ignore"):
            pieces = form(kind, *part(tuple(given), index))
        places = index[0], index[3]
        total = merged(Expansion(*[term[places] for term in sums]), merged_along(*pieces, 1))
        for term, new in zip(sums, total, strict=True):
            term[places] = new


def wide(x: np.ndarray, taken: np.ndarray | None, name: str) -> np.ndarray:
    """Elements as float64 in a thread's memory of that name, 0 in the place of those that do not take part."""
    dims = tuple(range(x.ndim))
    values = memory(name, x.shape, DOUBLE, dims)
    if x.dtype.itemsize == 2:
        single = memory("single", x.shape, SINGLE, dims)
        convert(x, single)
        x = single
    np.copyto(values, x)
    if taken is not None:
        np.copyto(values, 0.0, where=~taken)
    return values


def in_doubles(kind: str, x: np.ndarray, y: np.ndarray | None, taken: np.ndarray | None) -> Expansion:
    """The sums along axis 2 of elements of a narrower dtype, with a bound of their error."""
    v, n = wide(x, taken, "values"), x.shape[2]
    if kind in ("square", "product"):
        np.multiply(v, v if y is None else wide(y, taken, "others"), out=v)
    elif kind == "abs":
        np.abs(v, out=v)
    s = np.add.reduce(v, 2)
    zeros = np.zeros_like(s)
    if x.dtype == np.float16 and kind in ("x", "abs"):  # multiples of 2**-24 below 2**16
        return Expansion(s, zeros, zeros)
    most = s if kind in ("abs", "square") else np.add.reduce(magnitudes(v), 2)
    return Expansion(s, zeros, np.where(exactness(v, s, most), 0.0, most * (n * UNIT)))


def magnitudes(v: np.ndarray) -> np.ndarray:
    """Magnitudes in memory that the next function overwrites."""
    return np.abs(v, out=memory("biased", v.shape, DOUBLE, tuple(range(v.ndim))))


def exactness(v: np.ndarray, s: np.ndarray, most: np.ndarray) -> Any:
    """Where all are multiples of a power of two, of which float64 holds all numbers up to ``most``. Unless most sums
    end in zeros, as those of integers do, this is not worth a look: it takes as long as all else. Sums of one piece are
    ties more often than those of more."""
    if 2 * np.count_nonzero(s.view(INTEGER) & ENDS[s.shape[1] > 1]) > s.size:
        return False
    bias = np.ldexp(1.5, np.frexp(most)[1] + 1)[:, :, None]
    t = np.add(v, bias, out=memory("biased", v.shape, DOUBLE, tuple(range(v.ndim))))
    return np.equal(np.subtract(t, bias, out=t), v).all(2)


def in_integers(kind: str, x: np.ndarray, y: np.ndarray | None, taken: np.ndarray | None) -> Expansion:
    """The sums along axis 2 of elements of float64."""
    v = x if taken is None else wide(x, taken, "values")
    if kind not in ("square", "product"):
        return counted(np.abs(v) if kind == "abs" else v)
    w = v if y is None else wide(y, taken, "others")
    p, e = two_product(v, w)
    lost = np.isfinite(v) & np.isfinite(w) & (~np.isfinite(e) | (np.abs(p) < LEAST) & (v != 0) & (w != 0))
    p[lost] = 0.0
    e[lost | ~np.isfinite(e)] = 0.0
    s, t, r = merged(counted(p), counted(e))
    return Expansion(s, t, np.where(lost.any(2), np.inf, r))


def counted(v: np.ndarray) -> Expansion:
    """The sums along axis 2 of float64 numbers, at most 2**11 of them."""
    special, huge = np.zeros(()), np.zeros((), bool)
    top = magnitudes(v).max(2)
    if not (top < HUGE).all():
        finite = np.isfinite(v)
        special, huge = np.where(finite, 0.0, v).sum(2), (finite & (np.abs(v) >= HUGE)).any(2)
        v = np.where(np.abs(v) < HUGE, v, 0.0)
        top = magnitudes(v).max(2)
    exponent = np.maximum(np.frexp(top)[1], -972) + 1  # so that 2**-51 of the bias is normal
    below, levels = v, []
    for k in (exponent, exponent - 51):
        count, below = level(below, np.ldexp(1.5, k))
        near = count.astype(DOUBLE)
        rest = (count - near.astype(INTEGER)).astype(DOUBLE)
        levels.append(Expansion(np.ldexp(near, k - 52), np.ldexp(rest, k - 52), np.zeros_like(top)))
    left = np.bitwise_or.reduce(below.view(INTEGER), 2) << 1 != 0  # (but for -0.0)
    s, e, r = merged(*levels)
    r = r + left * np.ldexp(0.5 * v.shape[2], exponent - 103)
    return Expansion(s + special, e, np.where(huge, np.inf, r))


def level(v: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums along axis 2 in last bits of a bias, and what elements have below these."""
    dims = tuple(range(v.ndim))
    t, below = memory("biased", v.shape, DOUBLE, dims), memory("below", v.shape, DOUBLE, dims)
    np.add(v, bias[:, :, None], out=t)
    count = np.add.reduce(t.view(INTEGER), 2) - v.shape[2] * bias.view(INTEGER)
    np.subtract(t, bias[:, :, None], out=t)
    return count, np.subtract(v, t, out=below)


def parts_of(x: np.ndarray) -> np.ndarray:
    """Complex numbers (outer, n, inner) as their parts, side by side."""
    return np.ascontiguousarray(x).view(real_of(x.dtype))


def alternating(terms: Sequence[np.ndarray]) -> tuple[Expansion, Expansion]:
    """The expansions of real and of imaginary parts that lie side by side."""
    first, second = (Expansion(*[term[:, i::2] for term in terms]) for i in (0, 1))
    return first, second
