"""Exact sums of NumPy arrays, see `definition.exact`: expansions of blocks, merged, and rounded once.

Expansions are the same number whatever the blocks and their order, so no layout and no thread changes a bit of a
result. Where rounding one is not sure, the definition makes the sum of the elements.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from ..definition import exact
from ..definition.exact import Expansion, merged, merged_along, nearest, nearest_root, total, total_of_products
from ..definition.expressions import real_of
from ..definition.reduction import Bound
from ..definition.task import Task
from ..plan.geometry import Shape
from . import exact as with_numpy
from . import few_sums, reduce, threads
from .block import Block, Layout, layout, together_in_memory
from .blocks import compiled
from .exact import alternating, parts_of
from .reduce import Arrays, Piece, beside, cut, delivered, squeezed
from .results import Flags, new_result, report, warn

LOOPS = 2**13  # elements that are worth the time that it takes to load Numba
INTEGER = np.dtype(np.int64)
LOADED = (np.dtype(np.float32), np.dtype(np.float64))  # dtypes that compiled functions round to
INSTALLED = find_spec("numba") is not None


class Engine(NamedTuple):
    """What makes expansions, and rounds them: see `exact.expansions` and `definition.exact.ended`. ``results``: what
    does both at once, where nothing is to be added and all is sure."""

    expansions: Callable[..., Sequence[np.ndarray]]
    ended: Callable[..., tuple[np.ndarray, np.ndarray]]
    results: Callable[..., np.ndarray | None] | None = None


def engine(dtype: np.dtype, size: int) -> Engine | None:
    """What makes expansions of so many elements, whose sums are rounded to a dtype: of few, only what is loaded.

    There is none for float64 without Numba: its sums are then NumPy's, but for vectors that ``few_sums`` takes,
    since NumPy alone takes 28 times as long for exact ones (10**6 elements), for those of float32 10 times."""
    if (size >= LOOPS or "numba" in sys.modules) and (found := compiled("compiled_exact")):
        rounding: Any = compiled("compiled_rounding")
        return Engine(found.expansions, rounding.ended, rounding.results)
    known = dtype != np.float64 or (INSTALLED and size < LOOPS)
    return Engine(with_numpy.expansions, exact.ended) if known else None


def call_of(task: Task, shape: Shape, strides: Shape) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What makes an exact sum without a mask or an initial value, and its options."""
    bound, size = task.bound, math.prod(shape)
    if not size or bound.val.kind == "c" or converts(bound):
        return sum, {"task": task}
    double, seen = bound.result == np.float64, layout(shape, strides, task.axis, False, False)
    whole = size == math.prod([shape[d] for d in task.axis]) and bound.takes is None
    listed = LOOPS - 1 if double and INSTALLED else few_sums.VECTOR
    run: Any = None
    if whole and size <= listed:
        run = few_sums.of_vector
    elif not double and size <= few_sums.FEW:
        run = few_sums.of_narrow
    if seen.lies and bound.takes is None and bound.result in LOADED and size <= reduce.BLOCK:
        plain = reduce.call_of(task, shape, strides) if double else None
        return loaded, {"task": task, "seen": seen, "run": run, "plain": plain}
    return (few, {"task": task, "run": run}) if run else (sum, {"task": task})


def few(a: np.ndarray, out: np.ndarray | None = None, *, task: Task, run: Callable[..., Any]) -> Any:
    """An exact sum of few elements, if that is sure and has no error to report."""
    try:
        with np.errstate(all="raise"):
            result = run(a, task)
    except FloatingPointError:
        result = None
    if result is None:
        return sum(a, out, task=task)
    if not result.ndim:
        result = np.asarray(result).reshape((1,) * a.ndim)
    return delivered([squeezed(result, task)], task, out)


def loaded(
    a: np.ndarray, out: np.ndarray | None = None, *, task: Task, seen: Layout, run: Any,
    plain: tuple[Callable[..., Any], dict[str, Any]] | None,
) -> Any:  # fmt: skip
    """An exact sum of one block that is seen where it lies, if Numba is loaded; else by another function, if given, or
    without Numba a plain one."""
    rounding: Any = compiled("compiled_rounding") if "numba" in sys.modules else None
    if rounding is None and run is not None:
        return few(a, out, task=task, run=run)
    if rounding is None:
        return sum(a, out, task=task) if INSTALLED or plain is None else plain[0](a, out, **plain[1])
    of, end = task.bound.sums or ("", "")
    found = rounding.results(a.transpose(seen.dims).reshape(seen.lengths), of, end, task.bound.result)
    if found is None:
        return sum(a, out, task=task)
    return delivered([seen.back(found, task.keepdims)], task, out)


def sum(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, weights: np.ndarray | None = None, *, task: Task
) -> Any:
    """An exact sum, its quotient by the number of elements, or its root."""
    end = End(task, a.size)
    if end.engine is None:
        return as_it_comes(a, out, where, weights, task)
    mask = None if where is True else np.broadcast_to(where, a.shape)
    result = end.result((a, beside(a, weights, task), mask))
    end.tell()
    return delivered([squeezed(result, task)], task, out)


def dot(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """The product of two vectors."""
    of, end = task.bound.sums or ("", "")
    dtype, rounding = task.bound.val, compiled("compiled_rounding") if "numba" in sys.modules else None
    if rounding is not None and a.dtype == b.dtype == dtype and dtype in LOADED and 0 < a.size <= reduce.BLOCK:
        found = rounding.results(a.reshape(1, -1, 1), of, end, dtype, b.reshape(1, -1, 1))
        if found is not None:
            return delivered([found[0, 0]], task, out)
    return sum(a, out, weights=b, task=task)


def as_it_comes(a: np.ndarray, out: np.ndarray | None, where: Any, weights: np.ndarray | None, task: Task) -> Any:
    """The sum with the errors that adding has."""
    if weights is not None:
        return reduce.deliver(np.dot(a, weights), out)
    if where is not True or task.initial is not None:
        return reduce.reduce(a, out, where, task=task)
    function, options = reduce.call_of(task, a.shape, a.strides)
    return function(a, out, **options)


class End:
    """The way from elements to results, with what is to be said of it."""

    def __init__(self, task: Task, size: int) -> None:
        self.task, self.bound, self.flags, self.warned = task, task.bound, Flags(), False
        self.failed = False  # whether results are not finite
        assert self.bound.reduction.sums is not None
        self.of, self.end = self.bound.reduction.sums
        self.dtype = real_of(self.bound.val)
        self.parts = self.bound.reduction.sums.parts(self.bound.val)
        self.counts = "n" in self.bound.reduction.fields
        self.engine = engine(self.dtype, size)
        plain = self.bound.val.kind != "c" and not converts(self.bound) and self.bound.takes is None
        direct = self.engine is not None and self.engine.results is not None and self.dtype in LOADED
        self.simple = plain and direct and task.initial is None

    def result(self, arrays: Arrays) -> np.ndarray:
        """The result, with dims kept."""
        pieces, parts = self.pieces(arrays)
        if len(pieces) == 1:
            return lying(self.finished(arrays), arrays[0], self.task.axis)
        if parts == 1 and pieces:
            return self.of_pieces(lambda some: [self.finished(some)], [self.bound.result], arrays)[0][0]
        return lying(self.rounded(self.states(arrays), arrays), arrays[0], self.task.axis)

    def states(self, arrays: Arrays) -> list[np.ndarray]:
        """What `state` gives, of an array of any size."""
        pieces, _ = self.pieces(arrays)
        if len(pieces) == 1:
            return self.state(arrays)
        found = self.of_pieces(self.state, [np.dtype(np.float64)] * 3 * self.parts + [INTEGER] * self.counts, arrays)
        for each in found if not pieces else []:
            each[...] = 0
        return [each[0] for each in together(found, (0,))]

    def pieces(self, arrays: Arrays) -> tuple[list[Piece], int]:
        """The blocks of an array, and how many of their results become one."""
        a, viewed = arrays[0], self.bound.takes is None and arrays[2] is None
        room = max(reduce.VIEWED, a.size // reduce.PIECES) if viewed else reduce.BLOCK
        return cut(a.shape, a.strides, self.task.axis, room) if a.size else ([], 1)

    def of_pieces(self, make: Callable[..., Any], dtypes: list[np.dtype], arrays: Arrays) -> list[np.ndarray]:
        """What a function makes of each block, in arrays of these dtypes with a dim for results that become one."""
        a, (pieces, parts) = arrays[0], self.pieces(arrays)
        found = [new_result(a, self.task.axis, dtype, parts) for dtype in dtypes]

        def work(piece: Piece) -> None:
            some = tuple([None if each is None else each[piece.block] for each in arrays])
            for into, part in zip(found, make(some), strict=True):
                into[piece.result] = part

        threads.shared(max(reduce.COST * a.size, a.nbytes))(work, pieces)
        return found

    # ---------------------------------------------------------------------------------------------- states of blocks

    def finished(self, arrays: Sequence[Any]) -> np.ndarray:
        """The results of a block that has all of their elements, with dims kept."""
        x, y, mask = arrays
        if self.simple and y is None and mask is None:
            seen = layout(x.shape, x.strides, self.task.axis, False, False)
            if seen.lies:
                assert self.engine is not None and self.engine.results is not None
                elements = x.transpose(seen.dims).reshape(seen.lengths)
                found = self.engine.results(elements, self.of, self.end, self.dtype)
                if found is not None:
                    return np.asarray(seen.back(found, True))
        return self.rounded(self.state(arrays), arrays)

    def state(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The terms of the expansions of a block, of one part after the other, and the numbers of elements if the
        record counts them; with dims kept."""
        shape, strides = arrays[0].shape, arrays[0].strides
        run = together_in_memory(shape, strides, self.task.axis)
        block = Block(self.bound, arrays, run, turns=self.engine is not None and self.engine.results is None)
        with self.flags.kept():
            x, y = self.elements(block)
        with np.errstate(all="ignore"):
            made = [term for sums in self.expansions(x, y, block.taken) for term in sums]
        made += [block.count] * self.counts
        states = [block.layout.back(each, True) for each in made]
        rest = tuple([d for d in self.task.axis if d not in run and shape[d] > 1])
        return together(states, rest) if rest else states

    def elements(self, block: Block) -> tuple[np.ndarray, np.ndarray | None]:
        """The elements (outer, n, inner), in their dtype if no sum is lost by it, and what they are multiplied by."""
        val = self.bound.val
        x = block.seen(block.x, val if converts(self.bound) or self.of == "product" else None, "elements")
        return x, None if block.other is None else block.seen(block.other, val, "others' elements")

    def expansions(self, x: np.ndarray, y: np.ndarray | None, taken: np.ndarray | None) -> list[Expansion]:
        """The expansions (outer, inner) of the sums of a block."""
        assert self.engine is not None
        if x.dtype.kind != "c" or self.of == "abs":
            return [Expansion(*self.engine.expansions(np.abs(x) if x.dtype.kind == "c" else x, self.of, y, taken))]
        both = None if taken is None else np.repeat(taken, 2, 2)
        if y is None:
            found = alternating(self.engine.expansions(parts_of(x), self.of, None, both))
            return [*found] if self.of == "x" else [merged(*found)]
        real = alternating(self.engine.expansions(parts_of(x), self.of, parts_of(y), both))
        turned = np.empty_like(y)
        turned.real, turned.imag = y.imag, y.real
        return [
            merged(real[0], Expansion(-real[1].s, -real[1].e, real[1].r)),
            merged(*alternating(self.engine.expansions(parts_of(x), self.of, parts_of(turned), both))),
        ]

    # ---------------------------------------------------------------------------------------------------- the results

    def rounded(self, states: list[np.ndarray], arrays: Sequence[Any]) -> np.ndarray:
        """The results of states of these elements, with dims kept."""
        count = states[-1] if self.counts else np.asarray(self.length(arrays))
        made = []
        for part in range(self.parts):
            sums = Expansion(*states[3 * part : 3 * part + 3])
            if (first := self.first(part)) is not None:
                sums = merged(sums, Expansion(first.astype(np.float64), 0.0, 0.0))
            assert self.engine is not None
            value, sure = self.engine.ended(sums, count, self.end, self.dtype)
            if not sure.all():
                self.again(value, np.argwhere(~sure), arrays, part)
            self.notice(value, sums, arrays, part)
            made.append(value)
        self.look(count)
        if self.bound.val.kind != "c" or self.parts == 1:
            return made[0]
        both = np.empty_like(made[0], self.bound.val)
        both.real, both.imag = made
        return both

    def length(self, arrays: Sequence[Any]) -> int:
        """How many elements each result is of."""
        return math.prod([arrays[0].shape[d] for d in self.task.axis])

    def again(self, values: np.ndarray, places: np.ndarray, arrays: Sequence[Any], part: int) -> None:
        """Results whose expansions do not tell them, by the definition."""
        for place in map(tuple, places.tolist()):
            found, n = self.total_at(place, arrays, part)
            if self.end == "quotient":
                found = found / n
            values[place] = (nearest_root if self.end == "root" else nearest)(found, self.dtype)

    def total_at(self, place: Shape, arrays: Sequence[Any], part: int) -> tuple[Fraction | float, int]:
        """The exact sum of the elements of one result, and their number."""
        x, y = self.line(place, arrays)
        a, b = self.summands(x, y, part)
        if b is not None:
            return total_of_products(a, b), x.size
        first = self.first(part)
        return total(a if first is None else np.append(a.astype(np.float64), first)), x.size

    def summands(self, x: np.ndarray, y: np.ndarray | None, part: int) -> tuple[np.ndarray, np.ndarray | None]:
        """What a part is the sum of, along the last dim: numbers, or the products of two."""
        if y is not None and x.dtype.kind == "c":
            others = (y.real, -y.imag) if part == 0 else (y.imag, y.real)
            return np.concatenate([x.real, x.imag], -1), np.concatenate(others, -1)
        if self.of == "square":
            x = np.concatenate([x.real, x.imag], -1) if x.dtype.kind == "c" else x
        elif self.of == "abs":
            x = np.abs(x)
        return (x.real, x.imag)[part] if x.dtype.kind == "c" else x, x if self.of == "square" else y

    def first(self, part: int) -> Any:
        """A part of the initial value, if there is one."""
        initial = self.task.initial
        return initial if initial is None else (initial.real, initial.imag)[part]

    def line(self, place: Shape, arrays: Sequence[Any]) -> tuple[np.ndarray, np.ndarray | None]:
        """The elements of one result that take part, as they are added, and what they are multiplied by."""
        at = tuple([slice(None) if d in self.task.axis else i for d, i in enumerate(place)])
        source, other, mask = (each if each is None else each[at].reshape(-1) for each in arrays)
        assert source is not None
        x = source.astype(self.bound.val)
        y = None if other is None else other.astype(self.bound.val)
        taken = np.ones(x.shape, bool) if mask is None else mask.astype(bool)
        if self.bound.takes is not None:
            taken &= self.bound.takes(x=source)[0]
        return x[taken], y if y is None else y[taken]

    # ------------------------------------------------------------------------------------------- zeros, and what to say

    def notice(self, values: np.ndarray, sums: Expansion, arrays: Sequence[Any], part: int) -> None:
        """Take note of results that overflow or are invalid, and give zeros the sign of an initial value."""
        if self.takes_minus_zero(part) and (values == 0).any():
            values[self.minus_zeros(arrays, part)] = -0.0
        if np.isfinite(values).all():
            return
        self.failed = True
        if (np.isinf(values) & np.isfinite(sums.s)).any():
            self.flags.found.add("overflow")
        if np.isnan(values).any() and (np.isnan(values) & self.numbers(arrays)).any():
            self.flags.found.add("invalid value")

    def takes_minus_zero(self, part: int) -> bool:
        """Whether a part of the initial value is -0.0."""
        first = self.first(part)
        return first is not None and bool(first == 0 and np.signbit(first))

    def minus_zeros(self, arrays: Sequence[Any], part: int) -> np.ndarray:
        """Of which results a part is of nothing but -0.0."""
        x = arrays[0].astype(self.bound.val)
        x = (x.real, x.imag)[part] if x.dtype.kind == "c" else x
        return self.every((x == 0) & np.signbit(x), arrays)

    def numbers(self, arrays: Sequence[Any]) -> np.ndarray:
        """Which results are NaN by an error, if they are: those that are not of NaN."""
        x, y, _ = arrays
        numbers = self.every(x == x if y is None else (x == x) & (y == y), arrays)
        if self.bound.takes is not None:  # (the mean of nothing is NaN without an error)
            numbers &= ~self.every(np.zeros(x.shape, bool), arrays)
        return numbers

    def every(self, truths: np.ndarray, arrays: Sequence[Any]) -> np.ndarray:
        """Of which results this is true of all elements that take part."""
        x, _, mask = arrays
        if mask is not None:
            truths = truths | ~np.asarray(mask, bool)
        if self.bound.takes is not None:
            truths = truths | ~self.bound.takes(x=x)[0]
        return np.logical_and.reduce(truths, self.task.axis, keepdims=True)

    def look(self, count: np.ndarray) -> None:
        """Take note of results of no elements, of which the record warns."""
        if self.bound.reduction.warning is not None and self.bound.warns(n=count, s_n=count)[0].any():
            self.warned = True

    def tell(self) -> None:
        """Warn of them, and report the errors."""
        if self.warned and self.bound.reduction.warning is not None:
            warn(self.bound.reduction.warning[0])
        if self.failed and self.flags.found:
            report(self.flags.found)


def converts(bound: Bound) -> bool:
    """Whether elements are converted to the dtype of the computation before they are added."""
    return (bound.x.kind in "fV" and bound.val.kind == "c") or not np.can_cast(bound.x, bound.val)


def lying(result: np.ndarray, a: np.ndarray, axis: Shape) -> np.ndarray:
    """The result, in the memory order of the array."""
    if a.flags.c_contiguous or result.size == max(result.shape, default=1):
        return result
    made = new_result(a, axis, result.dtype)[0]
    made[...] = result
    return made  # type: ignore[no-any-return]


def together(states: list[np.ndarray], axis: Shape) -> list[np.ndarray]:
    """States merged along some axes, which keep length 1; along the first axis of parts, without it."""
    kept = [d for d in range(states[0].ndim) if d not in axis]
    shape = [n for d, n in enumerate(states[0].shape) if d not in axis]
    count = math.prod([states[0].shape[d] for d in axis])
    lines = [each.transpose(*axis, *kept).reshape(count, *shape) for each in states]
    found = [term for i in range(0, len(states) - 2, 3) for term in merged_along(*Expansion(*lines[i : i + 3]), 0)]
    found += [each.sum(0) for each in lines[len(found) :]]
    return [np.expand_dims(each, axis) for each in found]
