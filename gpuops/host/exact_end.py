"""The way from elements to what becomes of exact sums: expansions of blocks, merged, and rounded once.

Expansions are the same number whatever the blocks and their order, so no layout and no thread changes a bit of a
result. Where rounding one is not sure, the definition makes the sum of the elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..definition import exact
from ..definition.exact import Expansion, Number, merged, merged_along
from ..definition.expressions import real_of
from ..definition.reduction import Bound
from ..definition.task import Task
from ..definition.totals import Total, totals_of
from ..definition.totals import number as number_of
from ..errors import error
from ..plan.geometry import Shape
from . import reduce, threads
from .block import Block, together_in_memory
from .exact import alternating, parts_of
from .exact_engines import PLAIN, at_once, converts, engine
from .reduce import Arrays, Piece, cut
from .results import Flags, in_order, new_result, report, warn

INTEGER = np.dtype(np.int64)


def numbers_of(bound: Bound) -> list[list[Number]]:
    """The results, each with its real and perhaps its imaginary part."""
    sums = bound.reduction.sums
    assert sums is not None
    (of, end, second), values = sums, range(sums.values(bound.val))
    if of == "weighted":  # (the quotient of complex sums is made of the rounded ones)
        first = [Number(end)] if len(values) == 1 else [Number(second, part) for part in values]
        return [first, [Number(second, len(values) + part) for part in values]]
    if of == "moments":
        return [*[[Number(second, part) for part in values]] * bool(second), [Number(end)]]
    return [[Number(end, part) for part in values]]


class End:
    """The way from elements to results, with what is to be said of it. ``always``: with NumPy alone, if need be."""

    def __init__(self, task: Task, size: int, always: bool = False) -> None:
        self.task, self.bound, self.flags, self.warned = task, task.bound, Flags(), False
        self.failed, self.refused = False, False  # whether results are not finite; whether the record refuses some
        sums, val = self.bound.reduction.sums, self.bound.val
        assert sums is not None
        self.of, self.dtype, self.numbers = sums.of, real_of(val), numbers_of(self.bound)
        self.values, self.parts = sums.values(val), sums.parts(val)
        self.dtypes = [self.bound.kinds[kind] for kind in self.bound.reduction.results]
        self.counts = "n" in self.bound.reduction.fields
        self.engine = engine(self.dtype, size) or (PLAIN if always else None)

    def results(self, arrays: Arrays) -> list[np.ndarray]:
        """The results, with dims kept."""
        pieces, parts = self.pieces(arrays)
        if arrays[0].size <= reduce.BLOCK:  # which `sums` has tried at once
            found = self.rounded(self.states(arrays), arrays)
        elif len(pieces) == 1:
            found = self.finished(arrays)
        elif parts == 1 and pieces:
            return [each[0] for each in self.of_pieces(self.finished, self.dtypes, arrays)]
        else:
            found = self.rounded(self.states(arrays), arrays)
        return [in_order(each, arrays[0], self.task.axis) for each in found]

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
        room = getattr(a, "room", room)  # of what is computed as it is read
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

    def finished(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The results of a block that has all of their elements, with dims kept."""
        found = at_once(arrays, self.task, True)
        if found is not None:
            return [np.asarray(each) for each in found]
        return self.rounded(self.state(arrays), arrays)

    def state(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The terms of the expansions of a block, of one part after the other, and the numbers of elements if the
        record counts them; with dims kept."""
        shape, strides = arrays[0].shape, arrays[0].strides
        run = together_in_memory(shape, strides, self.task.axis)
        block = Block(self.bound, arrays, run, turns=self.engine is PLAIN)
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
        beside = self.of in ("product", "weighted")
        x = block.seen(block.x, val if converts(self.bound) or beside else None, "elements")
        return x, None if block.other is None else block.seen(block.other, val, "others' elements")

    def expansions(self, x: np.ndarray, y: np.ndarray | None, taken: np.ndarray | None) -> list[Expansion]:
        """The expansions (outer, inner) of the sums of a block."""
        if self.of == "moments":
            return [*self.sums("x", x, None, taken), *self.sums("square", x, None, taken)]
        if self.of == "weighted":
            assert y is not None
            return [*self.sums("product", x, y, taken), *self.sums("x", y, None, taken)]
        return self.sums(self.of, x, y, taken)

    def sums(self, of: str, x: np.ndarray, y: np.ndarray | None, taken: np.ndarray | None) -> list[Expansion]:
        """The expansions of sums of one kind."""
        assert self.engine is not None
        if x.dtype.kind != "c" or of == "abs":
            return [Expansion(*self.engine.expansions(np.abs(x) if x.dtype.kind == "c" else x, of, y, taken))]
        both = None if taken is None else np.repeat(taken, 2, 2)
        if y is None:
            found = alternating(self.engine.expansions(parts_of(x), of, None, both))
            return [*found] if of == "x" else [merged(*found)]
        real = alternating(self.engine.expansions(parts_of(x), of, parts_of(y), both))
        turned = np.empty_like(y)
        turned.real, turned.imag = y.imag, y.real
        return [
            merged(real[0], Expansion(-real[1].s, -real[1].e, real[1].r)),
            merged(*alternating(self.engine.expansions(parts_of(x), of, parts_of(turned), both))),
        ]

    # ---------------------------------------------------------------------------------------------------- the results

    def rounded(self, states: list[np.ndarray], arrays: Sequence[Any]) -> list[np.ndarray]:
        """The results of states of these elements, with dims kept."""
        count = states[-1] if self.counts else np.asarray(self.length(arrays))
        sums = [Expansion(*states[3 * part : 3 * part + 3]) for part in range(self.parts)]
        if self.task.initial is not None:
            firsts = [first.astype(np.float64) for first in (self.task.initial.real, self.task.initial.imag)]
            sums = [merged(x, Expansion(first, 0.0, 0.0)) for x, first in zip(sums, firsts, strict=False)]
        results = []
        for numbers in self.numbers:
            made = []
            for number in numbers:
                value, sure = self.made(number, sums, count)
                if not sure.all():
                    self.again(value, np.argwhere(~sure), arrays, number)
                self.notice(value, sums, count, arrays, number)
                made.append(value)
            results.append(made[0] if len(made) == 1 else joined(made, self.bound.val))
        self.look(count)
        if self.of == "weighted" and self.values > 1:
            results[0] = exact.complex_ratio(*results)
        if self.of == "weighted" and self.bound.refuses(s_weight=results[1])[0].any():
            self.refused = True
        return results

    def made(self, number: Number, sums: Sequence[Expansion], count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A number in its dtype, and where it is sure."""
        assert self.engine is not None
        if number.end in ("variance", "deviation"):
            given = self.task.options["ddof"], self.bound.takes is not None, number.end == "deviation"
            return self.engine.variance(sums[:-1], sums[-1], count, *given, self.dtype)
        if number.end == "ratio":
            return self.engine.ratio(sums[0], sums[1], self.dtype)
        return self.engine.ended(sums[number.part], count, number.end, self.dtype)

    def length(self, arrays: Sequence[Any]) -> int:
        """How many elements each result is of."""
        return math.prod([arrays[0].shape[d] for d in self.task.axis])

    def again(self, values: np.ndarray, places: np.ndarray, arrays: Sequence[Any], number: Number) -> None:
        """Results whose expansions do not tell them, by the definition."""
        for place in map(tuple, places.tolist()):
            totals, n = self.totals_at(place, arrays)
            values[place] = number_of(totals, n, number, self.task.options.get("ddof", 0.0), self.dtype)

    def totals_at(self, place: Shape, arrays: Sequence[Any]) -> tuple[list[Total], int]:
        """The exact sums of the elements of one result, and their number."""
        x, y = line(place, arrays, self.task)
        return totals_of(self.of, x, y, self.task.initial), x.size

    def first(self, part: int) -> Any:
        """A part of the initial value, if there is one."""
        initial = self.task.initial
        return initial if initial is None else (initial.real, initial.imag)[part]

    # ------------------------------------------------------------------------------------------- zeros, and what to say

    def notice(
        self, values: np.ndarray, sums: Sequence[Expansion], count: np.ndarray, arrays: Sequence[Any], number: Number
    ) -> None:
        """Take note of results that overflow or are invalid, and give zeros the sign of an initial value."""
        if self.takes_minus_zero(number.part) and (values == 0).any():
            values[self.minus_zeros(arrays, number.part)] = -0.0
        if np.isfinite(values).all():
            return
        self.failed = True
        given = sums[:-1] if self.of == "moments" else sums
        finite = np.logical_and.reduce([np.isfinite(each.s) for each in given])
        if (np.isinf(values) & finite & (count > self.task.options.get("ddof", -1))).any():
            self.flags.found.add("overflow")
        if np.isnan(values).any() and (np.isnan(values) & self.of_numbers(arrays)).any():
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

    def of_numbers(self, arrays: Sequence[Any]) -> np.ndarray:
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
        given = {"n": count, "s_n": count, **self.task.options}
        if self.bound.reduction.warning is not None and self.bound.warns(**given)[0].any():
            self.warned = True

    def tell(self) -> None:
        """Raise what the record refuses, warn of what it warns of, and report the errors."""
        if self.refused and self.bound.reduction.refuses is not None:
            kind, message, _ = self.bound.reduction.refuses
            raise error(kind, self.bound.reduction.name, f"{message} along axis {self.task.axis}")
        if self.warned and self.bound.reduction.warning is not None:
            warn(self.bound.reduction.warning[0])
        if self.failed and self.flags.found:
            report(self.flags.found)


def line(place: Shape, arrays: Sequence[Any], task: Task) -> tuple[np.ndarray, np.ndarray | None]:
    """The elements of one result that take part, as they are added, and what they are multiplied by."""
    at, val = tuple([slice(None) if d in task.axis else i for d, i in enumerate(place)]), task.bound.val
    source, other, mask = (each if each is None else each[at].reshape(-1) for each in arrays)
    assert source is not None
    taken = np.ones(source.shape, bool) if mask is None else mask.astype(bool)
    if task.bound.takes is not None:
        taken &= task.bound.takes(x=source)[0]
    return source.astype(val)[taken], None if other is None else other.astype(val)[taken]


def joined(parts: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Complex numbers of their parts."""
    both = np.empty_like(parts[0], dtype)
    both.real, both.imag = parts
    return both


def together(states: list[np.ndarray], axis: Shape) -> list[np.ndarray]:
    """States merged along some axes, which keep length 1; along the first axis of parts, without it."""
    kept = [d for d in range(states[0].ndim) if d not in axis]
    shape = [n for d, n in enumerate(states[0].shape) if d not in axis]
    count = math.prod([states[0].shape[d] for d in axis])
    lines = [each.transpose(*axis, *kept).reshape(count, *shape) for each in states]
    found = [term for i in range(0, len(states) - 2, 3) for term in merged_along(*Expansion(*lines[i : i + 3]), 0)]
    found += [each.sum(0) for each in lines[len(found) :]]
    return [np.expand_dims(each, axis) for each in found]
