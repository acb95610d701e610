"""A block of an array that is reduced, and how it is seen: as (outer, n, inner), reduced over n.

NumPy's loops go along the elements of a row, or along those side by side, so few of either are brought together: short
rows are turned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np

from ..definition.reduction import Bound
from ..plan.geometry import Shape, memory_order
from .blocks import WORDS, convert, convert_masked, memory

SHORT = 16  # elements of rows that are turned
SMALL = 2**11  # elements among which NumPy chooses as fast as by their bits
BYTE = 255  # trues whose number fits a byte


class Layout(NamedTuple):
    """How a block is seen: the order of its dims, the lengths of (outer, n, inner), and whether it lies so in memory.

    ``results``: the lengths and the order of the dims of its results in memory, without those that are reduced and with
    them.
    """

    dims: Shape
    lengths: tuple[int, int, int]
    lies: bool
    apart: Shape  # of reduced dims with others between them, those that are outermost in memory
    results: tuple[tuple[Shape, Shape], tuple[Shape, Shape]]

    def back(self, states: np.ndarray, keepdims: bool) -> Any:
        """States (outer, inner) as an array of the block's dims, or the only one as a scalar."""
        shape, order = self.results[keepdims]
        return states.reshape(shape).transpose(order) if shape else states[0, 0]


@lru_cache(maxsize=1024)
def layout(shape: Shape, strides: Shape, axis: Shape, indexed: bool, turns: bool = True) -> Layout:
    """How a block is seen; ``indexed``: the reduced dims in C order; ``turns``: whether short rows are turned."""
    dims = [d for d in memory_order(shape, strides) if shape[d] > 1]
    reduced = [d for d in dims if d in axis]
    reduced = sorted(reduced) if indexed else reduced
    first = dims.index(reduced[0]) if reduced else len(dims)
    lies = dims[first : first + len(reduced)] == reduced
    apart = () if lies or indexed else tuple(takewhile(lambda d: d in axis, dims[first:]))
    outer = dims[:first] if lies else [d for d in dims if d not in axis]
    inner = dims[first + len(reduced) :] if lies else []
    groups = [outer, reduced, inner]
    short = math.prod([shape[d] for d in reduced]) <= SHORT < math.prod([shape[d] for d in outer])
    if turns and short and not inner and reduced:
        groups, lies = [[], reduced, outer], False
    lies = lies and all(is_one([(shape[d], strides[d]) for d in group]) for group in groups)
    lengths = [math.prod([shape[d] for d in group]) for group in groups]
    ones = [d for d in range(len(shape)) if shape[d] == 1]
    order = (*ones, *groups[0], *groups[1], *groups[2])
    results = back(shape, axis, order, False), back(shape, axis, order, True)
    return Layout(order, (lengths[0], lengths[1], lengths[2]), lies, apart, results)


def back(shape: Shape, axis: Shape, order: Shape, keepdims: bool) -> tuple[Shape, Shape]:
    """The lengths of a result's dims in memory order, and where each of its dims is in it."""
    dims = [d for d in order if keepdims or d not in axis]
    return tuple([1 if d in axis else shape[d] for d in dims]), tuple(sorted(range(len(dims)), key=dims.__getitem__))


def is_one(dims: list[tuple[int, int]]) -> bool:
    """Whether dims, each a length and a stride, are like one: each stride is the next one times its length."""
    return all(stride == n * step for (_, stride), (n, step) in pairwise(dims))


def together_in_memory(shape: Shape, strides: Shape, axis: Shape) -> Shape:
    """Of the dims that are reduced, those without others between them that have most elements."""
    runs: list[list[int]] = [[]]
    for d in memory_order(shape, strides):
        if shape[d] > 1 and d in axis:
            runs[-1].append(d)
        elif shape[d] > 1:
            runs.append([])
    return tuple(max(runs, key=lambda run: math.prod([shape[d] for d in run])))


class Block:
    """A block of elements, with a second operand and a mask beside them or None.

    ``offset`` and ``steps`` give the index of an element among those reduced, from its place in the block.
    """

    def __init__(
        self, bound: Bound, arrays: Sequence[Any], axis: Shape, offset: int = 0, steps: Shape = (), turns: bool = True
    ) -> None:
        self.bound, self.axis, self.offset, self.steps = bound, axis, offset, steps
        self.x, self.other, self.mask = arrays
        self.layout = layout(self.x.shape, self.x.strides, axis, bound.indexed, turns)

    def seen(self, array: np.ndarray, dtype: np.dtype | None = None, name: str = "values") -> np.ndarray:
        """An array as (outer, n, inner): where it lies if possible, else copied to memory of that name."""
        dims, lengths, lies, *_ = self.layout
        turned = array.transpose(dims)
        alike = array.strides == self.x.strides or array.ndim <= len(lengths) or turned.flags.c_contiguous
        if lies and alike and (dtype is None or dtype == array.dtype):
            return turned.reshape(lengths)
        into = memory(name, turned.shape, dtype or array.dtype, tuple(range(turned.ndim)))
        convert(turned, into)
        return into.reshape(lengths)

    def elements(self, bound: Bound) -> np.ndarray:
        """The elements in the dtype in which they contribute to a reduction."""
        return self.seen(rounded(self.x, bound), bound.x if bound.of_elements else bound.kinds["A"])

    def filled(self, instead: Any) -> np.ndarray:
        """The elements in the accumulator's dtype, and ``instead`` of those that do not take part."""
        x, acc = rounded(self.x, self.bound), self.bound.kinds["A"]
        if self.taken is None:
            return self.seen(x, acc)
        into = memory("values", self.layout.lengths, acc, (0, 1, 2))
        return chosen(self.seen(x, None, "source"), self.taken, instead, into)

    @cached_property
    def taken(self) -> np.ndarray | None:
        """The elements that take part, as (outer, n, inner); None if all do."""
        mask = None if self.mask is None else self.seen(self.mask, None, "mask")
        return mask if self.bound.takes is None else taken_of(self.bound, self.seen(self.x, None, "source"), mask)

    def widened(self) -> Block:
        """The same block, computed in double precision."""
        return Block(self.bound.wide, (self.x, self.other, self.mask), self.axis, self.offset, self.steps)

    @property
    def count(self) -> Any:
        """How many elements each state is of."""
        outer, n, inner = self.layout.lengths
        return np.full((outer, inner), n, np.int64) if self.taken is None else counted(self.taken)

    def index(self, place: Any) -> Any:
        """The indices of elements at places along n."""
        lengths = [self.x.shape[d] for d in self.axis]
        found = np.unravel_index(place, lengths) if lengths else ()
        return sum((each * step for each, step in zip(found, self.steps, strict=True)), place * 0 + self.offset)


def taken_of(bound: Bound, x: np.ndarray, mask: np.ndarray | None) -> np.ndarray | None:
    """The elements that take part; None if all do, of those without a mask."""
    if bound.takes is None:
        return mask
    taken = bound.takes(x=x)[0]
    return taken & mask if mask is not None else None if taken.all() else taken


def rounded(x: np.ndarray, bound: Bound) -> np.ndarray:
    """Elements in a dtype from which the accumulator's is that in which NumPy computes."""
    return x.astype(bound.val) if bound.rounds else x


def chosen(x: np.ndarray, taken: np.ndarray, instead: Any, into: np.ndarray) -> np.ndarray:
    """Elements that take part, in another dtype, and another number in the place of the others."""
    if x.size <= SMALL and x.dtype == into.dtype:
        into[...] = np.where(taken, x, instead)
    elif into.itemsize in WORDS:
        convert_masked(x, taken, instead, into)
    else:
        np.copyto(into, x, casting="unsafe")
        np.copyto(into, instead, where=~taken)
    return into


def counted(truths: np.ndarray) -> np.ndarray:
    """The numbers of trues of (outer, n, inner) along n: first in bytes, which NumPy adds many at a time."""
    outer, n, inner = truths.shape
    ones, even = np.not_equal(truths.view(np.uint8), 0).view(np.uint8), n - n % BYTE  # (bytes may be others than 0, 1)
    some = np.add.reduce(ones[:, :even].reshape(outer, -1, BYTE, inner), 2, np.uint8)
    total = np.add.reduce(some, 1, np.int64) + np.add.reduce(ones[:, even:], 1, np.uint8)
    return total  # type: ignore[no-any-return]
