"""Exact sums of the elements up to each one, rounded once, with NumPy alone.

Elements are taken in pieces. M = 1.5 * 2**k is added to each and subtracted again, which cuts it in two: the high parts
are multiples of a power of two that is so large that their sums are exact in float64; so are those of the low parts,
unless some have bits below the last one that counts, which are left out, and bounded. What comes before the piece is an
expansion, see `definition.exact`, and so is each result before it is rounded. Where rounding is not sure, the sum is
made in Python's integers (`Exactly`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from ..definition.exact import CLOSE, Expansion, converted, rounded, two_sum
from ..definition.expressions import real_of
from ..definition.in_numpy import is_half
from ..definition.scans import Task
from ..definition.totals import FORMATS, mantissas, total
from ..plan.geometry import order
from . import exact_engines
from .blocks import convert, indices
from .exact import HUGE, UNIT
from .results import Flags
from .threads import shared

PIECE = 2**12  # elements of a line that are taken together, at most
TOGETHER = 2**15  # elements of all lines
PORTION, SIDE = 2**17, 16  # elements, and lines side by side, that a thread takes as they lie
SHORT = 2**10  # elements of a group of lines side by side for which there is no group of its own
COST = 64  # of an element, where that of reading a byte is 1
FEW = 2**13  # elements of float64 that are added up exactly without Numba: it takes NumPy 8 times as long
FINEST = -1074  # exponent of the least number of float64
SCALE = 1130  # float64 numbers times 2**SCALE are integers, their mantissas as in `mantissas`
LARGE = 2.0**1000  # sums from which on an expansion may overflow
UP = 1 + 2.0**-20  # what roundings of a bound may lose


def scan(x: np.ndarray, y: np.ndarray, axis: int, task: Task, flags: Flags) -> None:
    """Write the sums of elements so far along an axis of x to y."""
    val = task.bound.val
    if val.kind == "c":
        x, y, val = parts(x.astype(val, copy=False)), parts(y), real_of(val)
    if (loops := exact_engines.loaded(x.size, "compiled_scans")) is not None:
        x = x if x.dtype == val else x.astype(val)
        if 0 < axis < x.ndim - 1 and math.prod(x.shape[axis:]) < SHORT:
            x, y, axis = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1), x.ndim - 1
        elif not x.flags.c_contiguous:
            dims = order(x.strides)
            x, y, axis = x.transpose(dims), y.transpose(dims), dims.index(axis)
        if x.dtype == y.dtype and val in exact_engines.LOADED and x.flags.c_contiguous and y.flags.c_contiguous:
            return by_loops(loops, x, y, axis, flags)
        return by_copies(loops, x, y, axis, val, flags)
    if axis != x.ndim - 1:
        x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    if x.size < FEW and few(x, y, val, flags):
        return None
    if val == np.float64 and x.size >= FEW:
        np.add.accumulate(x, -1, np.float64, y)
    else:
        by_numpy(x, y, val, flags)
    return None


def parts(x: np.ndarray) -> np.ndarray:
    """Complex numbers as (…, 2)."""
    return x[..., None].view(real_of(x.dtype))


def few(x: np.ndarray, y: np.ndarray, val: np.dtype, flags: Flags) -> bool:
    """Write the sums of few elements so far, if all of them are sure: sums in float64, with what additions lose."""
    found = set(flags.found)
    v = doubles(x, val)
    s = np.add.accumulate(v, -1)
    if (lost := losses(s, v)) is None:
        y[...] = s if val == np.float64 else converted(s, val)
        return True
    e, after = np.add.accumulate(lost, -1), s[..., 1:]
    if val == np.float64 and losses(e, lost) is None and np.isfinite(e[..., -1:]).all():
        np.add(after, e, after, where=e != 0)  # (-0.0 stays)
        y[...] = s
        return True
    flags.found = found
    with np.errstate(all="ignore"):
        d = np.add.reduce(np.abs(lost), -1, keepdims=True) * (lost.shape[-1] * UNIT)
        if val == np.float64:
            low, high = after + (e - d), after + (e + d)
        else:
            after += e
            d = d + np.abs(after) * CLOSE
            low, high = converted(after - d, val), converted(after + d, val)
        if not ((low == high) & np.isfinite(high) & (high != 0)).all():
            return False
        y[..., 1:], y[..., 0] = high, x[..., 0]
    return True


def losses(s: np.ndarray, v: np.ndarray) -> np.ndarray | None:
    """What each addition has lost of sums so far along the last axis, if any has (see `two_sum`)."""
    before, after, v = s[..., :-1], s[..., 1:], v[..., 1:]
    t = after - before
    back = after - t
    if same(t, v) and same(back, before):
        return None
    return np.asarray((before - back) + (v - t))


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same bits."""
    return a.tobytes() == b.tobytes()


def by_loops(loops: Any, x: np.ndarray, y: np.ndarray, axis: int, flags: Flags) -> None:
    """Write sums so far, by what Numba compiles, of elements that it takes as they are and where they are."""
    n, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    outer = x.size // (n * inner)
    flat, results = x.reshape(-1), y.reshape(-1)
    most = max(1, PORTION // (n * inner)), max(SIDE, PORTION // n)

    def work(item: tuple[int, int]) -> None:
        (o, k), groups, count = item, min(most[0], outer - item[0]), min(most[1], inner - item[1])
        unsure = np.zeros((groups * count, n), bool)
        where = lying(groups, n, inner, o * n * inner + k)
        if loops.sums(flat, results, where, states(groups * count), unsure, False):
            given, made = (np.moveaxis(each.reshape(outer, n, inner), 1, -1) for each in (flat, results))
            part = slice(o, o + groups), slice(k, k + count)
            ended(given[part], made[part], unsure, flags)

    if x.size <= TOGETHER:
        return work((0, 0))
    return shared(8 * x.nbytes)(work, product(range(0, outer, most[0]), range(0, inner, most[1])))


def by_copies(loops: Any, x: np.ndarray, y: np.ndarray, axis: int, val: np.dtype, flags: Flags) -> None:
    """The same of all other arrays."""
    n, half = x.shape[axis], is_half(val)
    real, others = np.dtype(np.float32) if half else val, [d for d in range(x.ndim) if d != axis]

    def work(index: Any) -> None:
        some, made = x[index], y[index]
        count, inner, found = some.size // n, math.prod(some.shape[axis + 1 :]), 0
        now, unsure, step = states(count), np.zeros((count, n), bool), max(1, TOGETHER // count)
        for first in range(0, n, step):
            part = (*[slice(None)] * axis, slice(first, min(first + step, n)))
            numbers, sums = np.empty((2, *some[part].shape), real)
            convert(some[part], numbers)
            where = lying(count // inner, numbers.shape[axis], inner, 0, first)
            found |= loops.sums(numbers.reshape(-1), sums.reshape(-1), where, now, unsure, half)
            convert(sums, made[part])
            if half and np.abs(sums).max() > largest(val):
                found |= loops.INFINITE
        if found:
            ended(np.moveaxis(some, axis, -1), np.moveaxis(made, axis, -1), unsure, flags)

    shared(8 * x.nbytes)(work, indices(x.shape, x.strides, others, max(SIDE, TOGETHER // n)))


def lying(groups: int, n: int, inner: int, base: int, before: int = 0) -> tuple[int, ...]:
    """Where lines of (groups, n, inner) are, see `compiled_scans.sums`."""
    return (base, 1, 0, n, 1, n, before) if inner == 1 else (base, groups, n * inner, n, inner, 1, before)


def states(count: int) -> np.ndarray:
    """Those of lines of which there was nothing, see `compiled_scans`."""
    made = np.zeros((5, count), np.int64)
    made[4] = -(2**63)
    return made


def largest(val: np.dtype) -> float:
    """The largest number of a dtype."""
    precision, _, top = FORMATS[val.name]
    return 2.0**top * (1 - 2.0**-precision)


def ended(x: np.ndarray, y: np.ndarray, unsure: np.ndarray, flags: Flags) -> None:
    """Make results that are not sure, in integers, and notice what NumPy would report."""
    if unsure.any():
        exactly(x, y, unsure)
    told(x, y, flags)


def exactly(x: np.ndarray, y: np.ndarray, unsure: np.ndarray) -> None:
    """Results of lines that are not sure, in integers. (From an element on that is not finite, all are sure.)"""
    for line in np.flatnonzero(unsure.any(1)):
        at = np.unravel_index(line, x.shape[:-1])
        given, made = x[at], y[at]
        special = np.flatnonzero(~np.isfinite(doubles(given, y.dtype)))[:1]
        wanted = unsure[line, : special[0] if special.size else None]
        sums = Exactly(given, y.dtype)
        for first in (np.unique(np.flatnonzero(wanted) // PIECE) * PIECE).tolist():
            part = slice(first, min(first + PIECE, wanted.size))
            found = sums.results(doubles(given[part], y.dtype), first, wanted[part], y.dtype)
            made[part] = np.where(wanted[part], found, made[part])


def told(x: np.ndarray, y: np.ndarray, flags: Flags) -> None:
    """Notice what NumPy would report."""
    if not np.isfinite(y).all():
        if np.isfinite(x).all():
            flags.found.add("overflow")
        if np.isnan(y).any() and not np.isnan(x).any():
            flags.found.add("invalid value")


def by_numpy(x: np.ndarray, y: np.ndarray, val: np.dtype, flags: Flags) -> None:
    """The same of numbers that are not complex, along the last axis."""
    n = x.shape[-1]
    piece = min(n, PIECE)

    def work(index: Any) -> None:
        some, made = x[index], y[index]
        lines = Lines(some, val, flags)
        for first in range(0, n, piece):
            made[..., first : first + piece] = lines.following(first, min(first + piece, n))

    shared(COST * x.size)(work, indices(x.shape, x.strides, range(x.ndim - 1), max(1, TOGETHER // piece)))


class Lines:
    """Sums along the last axis of lines, so far: an expansion of each; the sum of infinities and NaN, 0 if there are
    none; and of which lines there was nothing but -0.0. Bounds of expansions are infinite where nothing is known."""

    def __init__(self, x: np.ndarray, val: np.dtype, flags: Flags) -> None:
        self.x, self.val, self.flags = x, val, flags
        shape = (*x.shape[:-1], 1)
        self.carry = Expansion(*np.zeros((3, *shape)))
        self.special, self.minus = np.zeros(shape), np.ones(shape, bool)
        self.exactly: dict[Any, Exactly] = {}

    def following(self, first: int, last: int) -> np.ndarray:
        """The results of the next elements."""
        with self.flags.kept():
            v = doubles(self.x[..., first:last], self.val)
        top = np.abs(v).max(-1, keepdims=True)
        special = None
        if not (top < HUGE).all() or self.special.any():
            finite = np.isfinite(v)
            with self.flags.kept():
                special = np.add.accumulate(np.where(finite, 0.0, v), -1)
                special += self.special
            self.special = special[..., -1:]
            v = np.where(finite, v, 0.0)
            top = np.abs(v).max(-1, keepdims=True)
        with np.errstate(all="ignore"):
            made, sure = self.rounded(v, top)
        if not sure.all():
            self.settle(made, sure, v, first)
        self.signs(made, v)
        if special is not None:
            made = np.where(special != 0, special.astype(self.val), made)
        if self.val != np.float64 or special is not None or self.exactly:
            infinite = np.isinf(made)
            if infinite.any() and (special is None or (infinite & (special == 0)).any()):
                self.flags.found.add("overflow")
        return made

    def rounded(self, v: np.ndarray, top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The results of finite elements, and which are sure."""
        s, e, r = self.carry
        if not (e.any() or r.any()):
            sums = np.add.accumulate(np.concatenate((s, v), -1), -1)
            if losses(sums, np.concatenate((s, v), -1)) is None:
                self.carry = Expansion(sums[..., -1:].copy(), e, r)
                return converted(sums[..., 1:], self.val), np.ones(v.shape, bool)
        if (top >= HUGE).any():
            v, r = np.where(top < HUGE, v, 0.0), np.where(top < HUGE, r, np.inf)
        high, low, lost = cut(v, np.where(top < HUGE, top, 0.0))
        a, first = two_sum(s, high)
        g, second = (e, 0.0) if low is None else two_sum(low, e)
        w, third = two_sum(first, g)
        all_lost = np.abs(second) + np.abs(third) + (r + lost)
        self.carry = Expansion(*[each[..., -1:].copy() for each in (a, w, all_lost)])
        return rounded(Expansion(a, w, all_lost), self.val)

    def settle(self, made: np.ndarray, sure: np.ndarray, v: np.ndarray, first: int) -> None:
        """Results that are not sure, in integers; and their lines' expansions."""
        for line in map(tuple, np.argwhere(~sure.all(-1)).tolist()):
            exactly = self.exactly.setdefault(line, Exactly(self.x[line], self.val))
            made[line] = np.where(sure[line], made[line], exactly.results(v[line], first, ~sure[line], self.val))
            for term, number in zip(self.carry, exactly.expansion(), strict=True):
                term[(*line, 0)] = number

    def signs(self, made: np.ndarray, v: np.ndarray) -> None:
        """Sums of nothing but -0.0."""
        if self.minus.any():
            minus = np.logical_and.accumulate((v == 0) & np.signbit(v), -1) & self.minus
            made[minus] = -0.0
            self.minus = minus[..., -1:]


def doubles(x: np.ndarray, val: np.dtype) -> np.ndarray:
    """Elements, converted to a dtype, as float64."""
    if x.dtype != val:
        x = x.astype(val)
    if is_half(val):
        convert(x, single := np.empty(x.shape, np.float32))
        x = single
    return x.astype(np.float64, copy=False)


def cut(v: np.ndarray, top: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, Any]:
    """The sums so far of the high parts and of the low parts of elements, and a bound of what these have lost. There
    are no low parts if all are 0. top: the greatest magnitudes."""
    more = v.shape[-1].bit_length()  # so that n < 2**more
    unit = np.maximum(np.frexp(top)[1] + (more - 53), FINEST)
    bias = np.ldexp(1.5, unit + 52)
    high = v + bias
    high -= bias
    low = v - high
    high = np.add.accumulate(high, -1)
    if not low.any():
        return high, None, 0.0
    finer = np.maximum(unit + (more - 54), FINEST)
    bias = np.ldexp(1.5, finer + 52)
    kept = low + bias
    kept -= bias
    loses = (kept != low).any(-1, keepdims=True)
    lost = np.where(loses, np.ldexp(0.5 * v.shape[-1], finer), 0.0)
    return high, np.add.accumulate(kept, -1), lost


class Exactly:
    """Sums of a line in Python's integers."""

    def __init__(self, x: np.ndarray, val: np.dtype) -> None:
        self.x, self.val, self.count, self.sum = x, val, 0, 0

    def before(self, place: int) -> None:
        """Go on to an element."""
        some = doubles(self.x[self.count : place], self.val)
        more = total(np.where(np.isfinite(some), some, 0.0))
        assert isinstance(more, Fraction)
        self.sum += int(more * (1 << SCALE))
        self.count = place

    def results(self, v: np.ndarray, first: int, wanted: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The sums up to those elements of v that are wanted, of which the first one is at a place, in a dtype."""
        self.before(first)
        made = np.zeros(v.shape, dtype)
        integer, exponent = mantissas(v)
        given = zip(integer.tolist(), exponent.tolist(), wanted.tolist(), strict=True)
        for i, (number, shift, want) in enumerate(given):
            self.sum += number << (shift + SCALE)
            if want:
                made[i] = nearest_of(self.sum, *FORMATS[dtype.name])
        self.count = first + v.size
        return made

    def expansion(self) -> tuple[float, float, float]:
        """The sum as an expansion."""
        exact = Fraction(self.sum, 1 << SCALE)
        if abs(exact) >= LARGE:
            return 0.0, 0.0, np.inf
        s = float(exact)
        e = float(exact - Fraction(s))
        return s, e, float(abs(exact - Fraction(s) - Fraction(e))) * UP


def nearest_of(sum: int, precision: int, least: int, top: int) -> float:
    """An integer over 2**SCALE, rounded to nearest in a format, ties to even; infinite where it overflows."""
    size = abs(sum)
    place = max(size.bit_length() - precision, least + SCALE)  # of the last bit that is kept
    steps, rest = size >> place, size & ((1 << place) - 1)
    half = 1 << (place - 1)
    steps += rest > half or (rest == half and steps & 1)
    value = math.ldexp(steps, place - SCALE) if steps.bit_length() + place - SCALE <= top else math.inf
    return value if sum >= 0 else -value
