"""Exact sums of parts of an array, which merge to that of the whole in any order: see `sums`.

The expansion (s, e, r) of a part tells its exact sum only where r is 0. So what is kept is a sum of float64 terms, as
many as hold it: s and e, or else terms that are made of the elements once more. Terms of several parts are added
without any error, until few are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..definition.exact import Expansion, converted, two_product, two_sum
from ..definition.expressions import real_of
from ..definition.in_cuda import expansions as layout_of
from ..definition.reduction import Bound
from ..definition.task import Task
from ..definition.totals import FORMATS, Total
from ..plan.geometry import Shape
from .exact import DOUBLE, HUGE, INTEGER, TILE, level, magnitudes
from .exact_end import End
from .exact_engines import INSTALLED, loaded
from .reduce import Arrays, delivered, squeezed

APART = 1200  # what would over- or underflow is kept times a power of two with this exponent
LARGE = 900  # exponents of numbers that do not, and of products; half of it for factors
WIDTH = 2**11  # elements whose bits add up in an integer


@dataclass(frozen=True)
class Terms:
    """Exact sums. ``rows``: terms (k, parts, …) by the exponent of the power of two that they are to be multiplied by,
    0 always among them. ``count``: how many elements a result is of, if the record counts.

    A result that is not finite has no other terms: NaN of an error is infinities of both signs. The first term of a
    sum is -0.0 if all elements are; terms beside it that are 0 are -0.0."""

    rows: dict[int, np.ndarray]
    count: np.ndarray | None


# ------------------------------------------------------------------------------------------------------------- merging


def together(parts: Sequence[Terms]) -> Terms:
    """The sums of some parts, of as many terms as all of these have."""
    scales = dict.fromkeys([scale for each in parts for scale in each.rows])
    rows = {scale: np.concatenate([each.rows[scale] for each in parts if scale in each.rows]) for scale in scales}
    counts = [each.count for each in parts if each.count is not None]
    return Terms(rows, np.add.reduce(counts) if counts else None)


def merged(x: Terms) -> Terms:
    """The same sums, of as few terms as hold them."""
    rows = x.rows
    lost = ~np.isfinite(rows[0]).all(0)
    special = specials(rows[0][:, lost])
    if lost.any():
        rows = {scale: np.where(lost, -0.0, each) for scale, each in rows.items()}
    rows = {scale: few(each) for scale, each in rows.items()}
    large = np.abs(rows[0]) >= HUGE
    if large.any():
        more = [np.ldexp(np.where(large, rows[0], 0.0), -APART), *[rows[APART]] * (APART in rows)]
        rows |= {0: np.where(large, 0.0, rows[0]), APART: few(np.concatenate(more))}
    rows = {scale: each for scale, each in rows.items() if scale == 0 or each.any()}
    if lost.any():
        place(rows, 0, (lost,), special)
    rows[0][1:][rows[0][1:] == 0] = -0.0
    return Terms(rows, x.count)


def specials(terms: np.ndarray) -> np.ndarray:
    """The sums of numbers that are not finite, along the first dim: NaN or an infinity, or infinities of both signs."""
    nan, above, below = np.isnan(terms).any(0), (terms == np.inf).any(0), (terms == -np.inf).any(0)
    both = above & below & ~nan
    return np.stack([np.where(nan, np.nan, np.where(above, np.inf, -np.inf)), np.where(both, -np.inf, -0.0)])


def few(rows: np.ndarray) -> np.ndarray:
    """Terms with the same sums along the first dim, as few as hold them all."""
    before = len(rows) + 1
    while len(rows) < before:
        before, (first, rest) = len(rows), added(rows)
        made = [first]
        while len(rest := rest[rest.any(tuple(range(1, rest.ndim)))]):
            first, rest = added(rest)
            made.append(first)
        rows = np.stack(made)
        rows[1:][rows[1:] == 0] = -0.0  # which leaves the first term its sign
    return rows


def added(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rounded sums along the first dim, and what the additions lose."""
    lost = [rows[:0]]
    while (n := len(rows)) > 1:
        s, e = two_sum(rows[: n // 2], rows[n // 2 : n // 2 * 2])
        lost.append(e)
        rows = np.concatenate([s, rows[n // 2 * 2 :]])
    return rows[0], np.concatenate(lost)


def place(rows: dict[int, np.ndarray], scale: int, index: Any, terms: np.ndarray) -> None:
    """Put terms (k, …) in the place of those of some results."""
    shape = rows[0].shape[1:]
    known = rows.get(scale, np.empty((0, *shape)))
    if len(known) < len(terms):
        known = np.concatenate([known, np.full((len(terms) - len(known), *shape), -0.0)])
    known[(slice(len(terms)), *index)] = terms
    rows[scale] = known


# ------------------------------------------------------------------------------------------------------- from elements


def adds_exactly(bound: Bound) -> bool:
    """Whether sums of arrays of any size are exact."""
    return bound.sums is not None and (INSTALLED or real_of(bound.val) != DOUBLE)


def expansions_of(arrays: Arrays, task: Task) -> np.ndarray:
    """The expansions of the sums of an array, with dims kept, as a structured array."""
    end = End(task, arrays[0].size, always=True)
    found = end.states(arrays)
    made = np.empty(found[0].shape, layout_of(task.bound))
    for k, each in enumerate(found[: 3 * end.parts]):
        made["part"][Expansion._fields[k % 3]][..., k // 3] = each
    if end.counts:
        made["n"] = found[-1]
    return made


def terms_of(expansions: np.ndarray, task: Task, read: Callable[[], Arrays]) -> Terms:
    """The terms of sums, given their expansions. ``read``: gives the elements, which few ask for."""
    end, parts = End(task, 0), np.moveaxis(expansions["part"], -1, 0)
    s, finite = parts["s"], np.isfinite(parts["s"])
    rows = {0: np.stack([s, np.where(finite & (parts["e"] != 0), parts["e"], -0.0)])}
    for part, unsure in enumerate(finite & (parts["r"] != 0)):
        rows[0][:, part][:, unsure] = 0.0
        for places, terms in exact_terms(end, np.argwhere(unsure), read, part):
            for scale, each in terms.items():
                place(rows, scale, (part, *places.T), each)
        if end.takes_minus_zero(part) and (zeros := (rows[0][:, part] == 0).all(0)).any():
            rows[0][0, part][zeros] = np.where(end.minus_zeros(read(), part), -0.0, 0.0)[zeros]
    if (nan := np.isnan(s)).any():
        errors = nan & end.of_numbers(read())
        place(rows, 0, (errors,), np.array([[np.inf], [-np.inf]]))
    return merged(Terms(rows, expansions["n"] if end.counts else None))


def exact_terms(end: End, places: np.ndarray, read: Callable[[], Arrays], part: int) -> Any:
    """Yields places of results and terms of these, by their exponents: of a few results at a time."""
    arrays = read() if len(places) else None
    step = 1 if arrays is None else max(1, TILE // end.length(arrays))
    for first in range(0, len(places), step):
        some = places[first : first + step]
        a, b = summands(end, *lines(end, some, arrays), part)
        yield some, exact_sums(a.astype(DOUBLE), None if b is None else b.astype(DOUBLE))


def lines(end: End, places: np.ndarray, arrays: Any) -> tuple[Any, Any]:
    """The elements (results, n) of some results, 0 for those that do not take part; what they are multiplied by."""
    axis, val = end.task.axis, end.bound.val
    kept = [d for d in range(arrays[0].ndim) if d not in axis]
    at = tuple(places[:, kept].T)
    x, y, mask = (
        each if each is None else each.transpose(*kept, *axis)[at].reshape(len(places), -1) for each in arrays
    )
    taken = None if mask is None else mask.astype(bool)
    if end.bound.takes is not None:
        seen = end.bound.takes(x=x)[0]
        taken = seen if taken is None else seen & taken
    x, y = (each if each is None else each.astype(val) for each in (x, y))
    if taken is None:
        return x, y
    return np.where(taken, x, val.type(0)), None if y is None else np.where(taken, y, val.type(0))


def summands(end: End, x: np.ndarray, y: np.ndarray | None, part: int) -> tuple[np.ndarray, np.ndarray | None]:
    """What a part is the sum of, along the last dim: numbers, or the products of two."""
    apart = part >= end.values
    if end.of == "weighted" and apart:
        assert y is not None
        return (y.real, y.imag)[part - end.values], None
    if end.of == "square" or (end.of == "moments" and apart):
        x = np.concatenate([x.real, x.imag], -1) if x.dtype.kind == "c" else x
        return x, x
    if y is not None and x.dtype.kind == "c":
        others = (y.real, -y.imag) if part == 0 else (y.imag, y.real)
        return np.concatenate([x.real, x.imag], -1), np.concatenate(others, -1)
    x = np.abs(x) if end.of == "abs" else x
    return (x.real, x.imag)[part] if x.dtype.kind == "c" else x, y


def exact_sums(x: np.ndarray, y: np.ndarray | None) -> dict[int, np.ndarray]:
    """Terms (k, results) of the sums along n of finite numbers (results, n), or of products of two."""
    if y is not None and (compiled := loaded(x.size)) and are_in_reach(x, y):
        sums = [compiled.expansions(each[:, :, None], "x") for each in two_product(x, y)]
        if not any(r.any() for *_, r in sums):
            return {0: few(np.concatenate([[s[:, 0], e[:, 0]] for s, e, _ in sums]))}
    found: dict[int, list[np.ndarray]] = {0: [np.zeros((1, len(x)))]}
    for first in range(0, x.shape[1], TILE):
        index = np.s_[:, first : first + TILE]
        for scale, each in in_reach(x[index], None if y is None else y[index]).items():
            found.setdefault(scale, []).append(levels(each))
    return {scale: few(np.concatenate(each)) for scale, each in found.items()}


def in_reach(x: np.ndarray, y: np.ndarray | None) -> dict[int, np.ndarray]:
    """Numbers, or products and what rounding these loses, by the exponent that was taken off them, so that sums neither
    over- nor underflow."""
    if y is None:
        if np.abs(x).max(initial=0.0) < 2.0**LARGE:
            return {0: x}
        m, k = np.frexp(x)
        scale = np.where(k > LARGE, APART, 0)
    else:
        if are_in_reach(x, y):
            return {0: np.concatenate(two_product(x, y), -1)}
        (a, i), (b, j) = np.frexp(x), np.frexp(y)
        m, k = np.concatenate(two_product(a, b), -1), np.tile(i + j, 2)
        scale = np.where(np.abs(k) > LARGE, np.sign(k) * APART, 0)
    return {each: np.ldexp(np.where(scale == each, m, 0.0), k - each) for each in np.unique(scale).tolist()}


def are_in_reach(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether no product of factors like these over- or underflows, nor what rounding it loses."""
    low, high = 2.0 ** (-LARGE // 2), 2.0 ** (LARGE // 2)
    sizes = [np.abs(each) for each in ((x,) if x is y else (x, y))]
    return all(size.max(initial=0.0) < high and size.min(where=size != 0, initial=1.0) > low for size in sizes)


def levels(v: np.ndarray) -> np.ndarray:
    """Terms (k, results) of sums of numbers below 2**960: of integers, 51 bits of each at a time (see `exact`)."""
    n, width = v.shape[1], min(v.shape[1], WIDTH)
    left = np.zeros((len(v), -(-n // width), width, 1))
    left.reshape(len(v), -1)[:, :n] = v
    made = [np.zeros((len(v), left.shape[1], 1))]
    while (top := magnitudes(left).max(2)).any():
        exponent = np.maximum(np.frexp(top)[1] + 1, -1022)
        count, left = level(left, np.ldexp(1.5, exponent))
        near = count.astype(DOUBLE)
        rest = (count - near.astype(INTEGER)).astype(DOUBLE)
        made += [np.ldexp(near, exponent - 52), np.ldexp(rest, exponent - 52)]
    return np.moveaxis(np.stack(made)[..., 0], 2, 1).reshape(-1, len(v))


# ------------------------------------------------------------------------------------------------------------ to floats


def floats(x: Terms, val: np.dtype, axis: int) -> np.ndarray:
    """Few numbers of a dtype along an axis, on which the sums have length 1, whose exact sums these are. One holds the
    sum as far as it can, others the rest: several, where a sum exceeds the greatest number of the dtype."""
    kept = [{scale: each[:, k] for scale, each in x.rows.items()} for k in range(x.rows[0].shape[1])]
    parts = [in_dtype(each, real_of(val)) for each in kept]
    made = np.full((max(map(len, parts)), *parts[0].shape[1:]), -0.0, val)
    for part, into in zip(parts, (made.real, made.imag) if val.kind == "c" else (made,), strict=True):
        into[...] = -0.0
        into[: len(part)] = part
    return np.concatenate([*made], axis)


def in_dtype(rows: dict[int, np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Numbers of a dtype with the same sums along the first dim as terms of a part."""
    most, finite = 2.0 ** (FORMATS[dtype.name][2] - 1), np.isfinite(rows[0]).all(0)
    with np.errstate(invalid="ignore"):
        special = np.add.reduce(rows[0])
    made: list[np.ndarray] = []
    for scale, terms in rows.items():
        limit = math.ldexp(most, -scale)
        for term in terms:
            rest = np.where(finite, term, -0.0)
            while rest.any() or not made:
                piece = converted(np.ldexp(np.clip(rest, -limit, limit), scale), dtype)
                made.append(piece)
                rest = rest - np.ldexp(piece.astype(DOUBLE), -scale)
    first, more = np.where(finite, made[0], converted(special, dtype)), np.stack(made)[1:]
    return np.concatenate([first[None], np.where(more == 0, more.dtype.type(-0.0), more)])


# ---------------------------------------------------------------------------------------------------------- to results

class OfTerms(End):
    """The way from terms to results, of ``n`` elements each if the record does not count."""

    def __init__(self, task: Task, terms: Terms, n: int) -> None:
        super().__init__(task, terms.rows[0][0].size, always=True)
        self.terms, self.n = terms, n

    def all_results(self) -> list[np.ndarray]:
        """The results, with dims kept."""
        states: list[np.ndarray] = []
        for part in range(self.parts):
            (s, e, *more), finite = self.of_part(part), np.isfinite(self.of_part(part)[0])
            r = np.add.reduce(np.abs(more)) if more else np.zeros_like(s)
            for scale, rows in self.terms.rows.items():
                r = np.where(rows[:, part].any(0), np.inf, r) if scale else r
            states += [np.where(finite, s, s + e), np.where(finite, e, 0.0), np.where(finite, r, 0.0)]
        return self.rounded(states if self.terms.count is None else [*states, self.terms.count], ())

    def of_part(self, part: int) -> list[np.ndarray]:
        """The terms of a part, two at least."""
        rows = [*self.terms.rows[0][:, part]]
        return rows if len(rows) > 1 else [*rows, np.full_like(rows[0], -0.0)]

    def length(self, arrays: Sequence[Any]) -> int:
        return self.n

    def totals_at(self, place: Shape, arrays: Sequence[Any]) -> tuple[list[Total], int]:
        count = self.n if self.terms.count is None else int(self.terms.count[place])
        return [self.total_at(place, part) for part in range(self.parts)], count

    def total_at(self, place: Shape, part: int) -> Total:
        """The exact sum of a part of one result."""
        total, first = Fraction(0), self.first(part)
        for scale, rows in self.terms.rows.items():
            terms = [float(each[place]) for each in rows[:, part]]
            if scale == 0 and not np.isfinite(terms).all():
                return float(np.sum(terms))
            total += sum(map(Fraction, terms), Fraction(0)) * Fraction(2) ** scale
        return total if first is None else total + Fraction(float(first))

    def minus_zeros(self, arrays: Sequence[Any], part: int) -> np.ndarray:
        first = self.terms.rows[0][0, part]
        return (first == 0) & np.signbit(first)  # type: ignore[no-any-return]

    def of_numbers(self, arrays: Sequence[Any]) -> np.ndarray:
        numbers = ~np.isnan(self.terms.rows[0][0]).any(0)
        if self.bound.takes is not None and self.terms.count is not None:
            numbers &= self.terms.count > 0
        return numbers  # type: ignore[no-any-return]


def finish(terms: Terms, task: Task, n: int) -> Any:
    """The results of sums of ``n`` elements each."""
    end = OfTerms(task, merged(terms), n)
    with np.errstate(invalid="ignore"):
        results = end.all_results()
    end.tell()
    return delivered([squeezed(each, task) for each in results], task)
