"""The states of a block of elements: by a record's definition, or in a form that is faster and gives the same states.

NumPy's loops go along the elements of a row, or along those side by side. A block is seen as (outer, n, inner) and
reduced over n, so that few of either come together: short rows are turned, narrow columns are folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np

from ..definition.expressions import ORDERS, number
from ..definition.records import DEVIATIONS, NANDEVIATIONS, NUMBERS, SUM, SUM_OF_SQUARES, TOTALS
from ..definition.reduction import Bound, quotient, squared, ufunc_of
from ..plan.geometry import Shape, memory_order
from .blocks import WORDS, compiled, convert, convert_masked, memory

SHORT = 16  # elements of rows that are turned
NARROW = 64  # elements side by side that are folded
FOLDED = 512  # elements side by side, into which they are
CHAIN = 64  # elements of a column that are added up before the sum of others is: columns keep as many digits as rows
LOOPS = 2**13  # elements of a block that compiled loops reduce, at least
BYTE = 255  # trues whose number fits a byte

States = tuple[Any, ...]  # arrays, by field


# ---------------------------------------------------------------------------------------------- how a block is seen


class Layout(NamedTuple):
    """How a block is seen: the order of its dims, the lengths of (outer, n, inner), and whether it lies so in memory.

    ``results``: the lengths and the order of the dims of its results in memory, without those that are reduced and with
    them.
    """

    dims: Shape
    lengths: tuple[int, int, int]
    lies: bool
    first: Shape  # of reduced dims that are apart, those that are outermost in memory
    results: tuple[tuple[Shape, Shape], tuple[Shape, Shape]]

    def back(self, states: np.ndarray, keepdims: bool) -> Any:
        """States (outer, inner) as an array of the block's dims, or the only one as a scalar."""
        shape, order = self.results[keepdims]
        return states.reshape(shape).transpose(order) if shape else states[0, 0]


@lru_cache(maxsize=1024)
def layout(shape: Shape, strides: Shape, axis: Shape, indexed: bool) -> Layout:
    """How a block is seen; ``indexed``: the reduced dims in C order."""
    dims = [d for d in memory_order(shape, strides) if shape[d] > 1]
    reduced = [d for d in dims if d in axis]
    reduced = sorted(reduced) if indexed else reduced
    first = dims.index(reduced[0]) if reduced else len(dims)
    lies = dims[first : first + len(reduced)] == reduced
    apart = () if lies else tuple(takewhile(lambda d: d in axis, dims[first:]))
    outer = dims[:first] if lies else [d for d in dims if d not in axis]
    inner = dims[first + len(reduced) :] if lies else []
    groups = [outer, reduced, inner]
    if not inner and math.prod([shape[d] for d in reduced]) <= SHORT < math.prod([shape[d] for d in outer]):
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
    return tuple([1 if d in axis else shape[d] for d in dims]), tuple(np.argsort(dims).tolist())


def is_one(dims: list[tuple[int, int]]) -> bool:
    """Whether dims, each a length and a stride, are like one: each stride is the next one times its length."""
    return all(stride == n * step for (_, stride), (n, step) in pairwise(dims))


class Block:
    """A block of elements, with a second operand and a mask beside them or None.

    ``offset`` and ``steps`` give the index of an element among those reduced, from its place in the block.
    """

    def __init__(
        self, bound: Bound, arrays: Sequence[Any], axis: Shape, offset: int = 0, steps: Shape = ()
    ) -> None:
        self.bound, self.axis, self.offset, self.steps = bound, axis, offset, steps
        self.x, self.other, self.mask = arrays
        self.layout = layout(self.x.shape, self.x.strides, axis, bound.indexed)

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

    def elements(self, instead: Any = None) -> np.ndarray:
        """The elements in the accumulator's dtype; ``instead`` of those that do not take part."""
        x, acc = rounded(self.x, self.bound), self.bound.kinds["A"]
        if self.taken is None or instead is None:
            return self.seen(x, acc)
        into = memory("values", self.layout.lengths, acc, (0, 1, 2))
        return chosen(self.seen(x, None, "source"), self.taken, instead, into)

    @cached_property
    def taken(self) -> np.ndarray | None:
        """The elements that take part, as (outer, n, inner); None if all do."""
        takes, mask = self.bound.takes, self.mask
        if takes is not None:
            taken = takes(x=self.seen(self.x))[0]
            return taken if mask is None else taken & self.seen(mask, None, "mask")
        return None if mask is None else self.seen(mask, None, "mask")

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


def rounded(x: np.ndarray, bound: Bound) -> np.ndarray:
    """Elements in a dtype from which the accumulator's is that in which NumPy computes."""
    val = bound.val
    return x if val in (x.dtype, bound.kinds["A"]) or np.can_cast(x.dtype, val) else x.astype(val)


def chosen(x: np.ndarray, taken: np.ndarray, instead: Any, into: np.ndarray) -> np.ndarray:
    """Elements that take part, in another dtype, and another number in the place of the others."""
    if into.itemsize in WORDS:
        convert_masked(x, taken, instead, into)
    else:
        np.copyto(into, x, casting="unsafe")
        np.copyto(into, instead, where=~taken)
    return into


# ------------------------------------------------------------------------------------------------------ the definition


def states(block: Block, options: dict[str, float]) -> States:
    """The states of a block, by field, with dims kept: to be held in double precision."""
    bound = block.bound
    if (found := by_loops(block)) is not None:
        return tuple([block.layout.back(each, True) for each in found])
    if bound.moved is not None and len(bound.reduction.fields) == 1:
        return (merged_elements(block),)
    form = FORMS.get(bound.reduction.form)
    found = form(block) if form else by_definition(block, options)
    found = by_definition(block.widened(), options) if found is None else found
    return tuple([block.layout.back(each, True) for each in found])


def by_loops(block: Block) -> States | None:
    """The states (outer, inner) that compiled loops give; None if there are none, or what they give is not finite: then
    NumPy makes it again, and reports why."""
    bound, x = block.bound, block.x
    if x.size < LOOPS or not has_loops(bound):
        return None
    loops: Any = compiled("compiled")
    elements = block.seen(x, np.dtype(np.float32) if is_half(x.dtype) else None)
    mask = None if block.mask is None else block.seen(block.mask, None, "mask")
    form = LOOP_FORMS.get(bound.reduction.form)
    with np.errstate(all="ignore"):
        found = form(loops, block, elements, mask) if form else loops.states(bound.wide, elements, mask)
    return found if found is not None and all(np.isfinite(each).all() for each in found) else None


def has_loops(bound: Bound) -> bool:
    """Whether there are compiled loops of a reduction; not if NumPy makes it as fast, of the elements themselves."""
    moved = bound.moved is not None and bound.merges is not None and bound.ufunc is not np.add
    merges = bound.merges is not None or bound.reduction.form in LOOP_FORMS
    kinds = bound.x.kind in "biufV" and np.can_cast(bound.x, bound.val)
    return merges and kinds and not moved and bound.of_x_alone and compiled("compiled") is not None


def merged_elements(block: Block) -> np.ndarray:
    """The state that a ufunc makes of the elements themselves: where they lie, or of a copy without those left out."""
    bound, x, mask = block.bound, block.x, block.mask
    if bound.viewed and mask is None and (found := as_it_lies(bound, x, block.axis)) is not None:
        return found
    taken = mask if bound.takes is None else bound.takes(x=x)[0] if mask is None else bound.takes(x=x)[0] & mask
    acc = bound.kinds["A"]
    x = rounded(x, bound)
    dims = memory_order(x.shape, x.strides) if block.layout.first else block.layout.dims
    into = memory("values", x.shape, acc, dims)
    if taken is None:
        convert(x, into)
    else:
        chosen(x, taken, bound.identity, into)
    found = as_it_lies(bound, into, block.axis)
    assert found is not None
    return found


def as_it_lies(bound: Bound, a: np.ndarray, axis: Shape) -> np.ndarray | None:
    """The state of elements that are merged as they are, with dims kept; None if they cannot be seen where they lie."""
    found = layout(a.shape, a.strides, axis, False)
    while not found.lies:  # the outermost of the reduced dims first
        place = layout(a.shape, a.strides, found.first, False)
        if not (found.first and place.lies):
            return None
        some = along(a.transpose(place.dims).reshape(place.lengths), bound.ufunc, bound.reduces_in)
        a = place.back(some, True)
        found = layout(a.shape, a.strides, axis, False)
    some = along(a.transpose(found.dims).reshape(found.lengths), bound.ufunc, bound.reduces_in)
    return found.back(some, True).astype(bound.state[0], copy=False)


def by_definition(block: Block, options: dict[str, float]) -> States:
    """The states (outer, inner) as the record defines them."""
    bound = block.bound
    given: dict[str, Any] = dict(options)
    given["x"] = block.elements()
    if bound.y is not None:
        given["y"] = block.seen(block.other, bound.kinds["A"], "other")
    if bound.indexed:
        given["index"] = block.index(np.arange(block.layout.lengths[1]))[None, :, None]
    made = [*zip(bound.contributions(**given), bound.state.names or (), strict=True)]
    if bound.merges is None:
        return halves(bound, [left_out(block, each, name) for each, name in made])
    return tuple([merged(block, *each, merge) for each, merge in zip(made, bound.merges, strict=True)])


def merged(block: Block, made: Any, name: str, merge: str) -> Any:
    """The state of a field that merges alone, of its contributions."""
    dtype = block.bound.state[name]
    if np.ndim(made) == 0 and merge == "add":  # one number for all elements
        return (block.count * made).astype(dtype)
    if made.dtype == bool and merge == "add":
        return counted(made if block.taken is None else made & block.taken).astype(dtype)
    reduced_in = None if merge in ORDERS else dtype
    return along(left_out(block, made, name), ufunc_of(merge), reduced_in).astype(dtype, copy=False)


def left_out(block: Block, made: Any, name: str) -> np.ndarray:
    """Contributions to a field, and the identity of elements that do not take part."""
    if block.taken is None:
        return np.broadcast_to(made, block.layout.lengths)
    identity = number(block.bound.reduction.fields[name].identity, made.dtype)
    return np.where(block.taken, made, identity)


def along(made: np.ndarray, ufunc: Any, dtype: np.dtype | None = None) -> np.ndarray:
    """What a ufunc makes of (outer, n, inner) along n."""
    outer, n, inner = made.shape
    if inner == 1:
        return ufunc.reduce(made[..., 0], 1, dtype)[:, None]  # type: ignore[no-any-return]
    folds = FOLDED // inner if inner < NARROW else 1
    if folds > 1 and n >= 2 * folds and is_one([*zip(made.shape[1:], made.strides[1:], strict=True)]):
        even = n - n % folds
        some = along(made[:, :even].reshape(outer, -1, folds * inner), ufunc, dtype).reshape(outer, folds, inner)
        some = ufunc.reduce(some, 1, dtype)
        return ufunc(some, ufunc.reduce(made[:, even:], 1, dtype)) if even < n else some  # type: ignore[no-any-return]
    chain = CHAIN if ufunc is np.add and made.dtype.kind in "fc" else n
    while n > chain:
        even = n - n % chain
        some = ufunc.reduce(made[:, :even].reshape(outer, -1, chain, inner), 2, dtype)
        made = some if even == n else np.concatenate([some, made[:, even:]], 1, dtype=some.dtype)
        n = made.shape[1]
    return ufunc.reduce(made, 1, dtype)  # type: ignore[no-any-return]


def counted(truths: np.ndarray) -> np.ndarray:
    """The numbers of trues of (outer, n, inner) along n: first in bytes, which NumPy adds many at a time."""
    outer, n, inner = truths.shape
    ones, even = truths.view(np.uint8), n - n % BYTE
    some = np.add.reduce(ones[:, :even].reshape(outer, -1, BYTE, inner), 2, np.uint8)
    total = np.add.reduce(some, 1, np.int64) + np.add.reduce(ones[:, even:], 1, np.uint8)
    return total  # type: ignore[no-any-return]


def halves(bound: Bound, fields: list[np.ndarray]) -> States:
    """States that merge two at a time, neighbours first, along the second dim."""
    while (n := fields[0].shape[1]) > 1:
        pairs = n // 2 * 2
        parts = [[each[:, i:pairs:2] for each in fields] for i in (0, 1)]
        both = combined(bound, *parts)
        fields = [np.concatenate([one, each[:, pairs:]], 1) for one, each in zip(both, fields, strict=True)]
    return tuple([each[:, 0] for each in fields])


def combined(bound: Bound, first: Any, second: Any) -> States:
    """The states of two parts."""
    parts = [*zip(bound.leaves_of["a"], first, strict=True), *zip(bound.leaves_of["b"], second, strict=True)]
    return bound.combine(**dict(parts))


def merged_parts(bound: Bound, fields: list[np.ndarray]) -> States:
    """The states of whole results, given those of parts of them along the first dim."""
    if bound.merges is None:
        shapes = [each.shape[1:] for each in fields]
        found = halves(bound, [each.reshape(1, len(each), -1) for each in fields])
        return tuple([each.reshape(shape) for each, shape in zip(found, shapes, strict=True)])
    whole = []
    for each, merge in zip(fields, bound.merges, strict=True):
        long = merge == "add" and len(each) > CHAIN  # which NumPy adds in pairs if they lie side by side
        lying = np.ascontiguousarray(np.moveaxis(each, 0, -1)) if long else each
        whole.append(ufunc_of(merge).reduce(lying, -1 if long else 0))
    return tuple(whole)


# ----------------------------------------------------------------------------------------------------------- the forms


def deviations(block: Block) -> States:
    """The mean, and squares of the distances from it: in two passes, as what a block is stays in cache."""
    bound, count = block.bound, block.count
    acc, double = bound.kinds["A"], bound.kinds["D"]
    x, n = block.elements(0), np.maximum(count, 1).astype(np.float64)
    total = along(x, np.add, acc)
    center = quotient(total.astype(double), n).astype(acc)
    for _ in ("the mean", "a closer one, if the squares overflow"):
        apart = np.subtract(x, center[:, None], out=memory("apart", x.shape, acc, (0, 1, 2)))
        if block.taken is not None:
            np.copyto(apart, 0, where=~block.taken)
        rest = along(apart, np.add, acc).astype(double)  # what rounding the mean has left
        squares = along(squared(apart), np.add)
        mean = center.astype(double) + quotient(rest, n)
        center = mean.astype(acc)
        if np.isfinite(squares).all():
            squares = np.maximum(squares - (squared(rest) / n).astype(squares.dtype), 0)
            break
    found = {"center": mean, "squares": squares, "n": count, "total": total}
    return tuple([found[name] for name in bound.state.names or ()])


def deviations_by_loops(loops: Any, block: Block, x: np.ndarray, mask: np.ndarray | None) -> States | None:
    """The same, in compiled loops."""
    bound, nans = block.bound, block.bound.takes is not None
    whole = mask is None and not nans
    totals = loops.states((SUM if whole else NUMBERS if nans else TOTALS).bind(bound.x, bound.val).wide, x, mask)
    if totals is None:
        return None
    total, count = totals if len(totals) == 2 else (*totals, block.count)
    n = np.maximum(count, 1).astype(np.float64)
    center = total / n
    apart = loops.states((NANDEVIATIONS if nans else DEVIATIONS).bind(bound.x, bound.val).wide, x, mask, center)
    rest, squares = apart
    squares = np.maximum(squares - rest * rest / n, 0)
    found = {"center": center + rest / n, "squares": squares, "n": count, "total": total}
    return tuple([found[name] for name in bound.state.names or ()])


def squares_by_loops(loops: Any, block: Block, x: np.ndarray, mask: np.ndarray | None) -> States | None:
    """The same, in compiled loops."""
    found = loops.states(SUM_OF_SQUARES.bind(block.bound.x, block.bound.val).wide, x, mask)
    return within(found[0]) if found else None


def squares(block: Block) -> States | None:
    """Sums of squares that neither overflow nor vanish, beside which the other sums do not count; else None."""
    return within(along(squared(block.elements(0)), np.add))


def within(total: np.ndarray) -> States | None:
    """Sums of squares that are neither so large nor so small that their digits are in question; else None."""
    least, most = (number(name, total.dtype) for name in ("tiny", "large"))
    return (total, *2 * [np.zeros_like(total)]) if np.all((total >= least) & (total <= most)) else None


def firsts(block: Block, greatest: bool) -> States:
    """The greatest or least elements, and the first places where they are."""
    bound, inner = block.bound, block.layout.lengths[2]
    x = block.seen(block.x, np.dtype(np.float32) if is_half(block.x.dtype) else None)
    if inner == 1 and bound.takes is None:
        place = (np.argmax if greatest else np.argmin)(x[..., 0], 1)[:, None]
    else:
        order = ("maximum", "minimum") if bound.takes is None else ("fmax", "fmin")
        value = along(x, ufunc_of(order[not greatest]))[:, None]
        same = x == value
        if bound.takes is None and (lost := value != value).any():
            same |= (x != x) & lost
        place = first_true(same)
    value = np.take_along_axis(x, place[:, None], 1)[:, 0]
    index = block.index(place)
    if bound.takes is not None:  # (where all are NaN, so is what was found)
        index = np.where(value != value, bound.identities["index"], index)
    return value.astype(bound.state["value"], copy=False), index


def first_true(truths: np.ndarray) -> np.ndarray:
    """The first places of trues of (outer, n, inner) along n: where there are some, 0 where there are none."""
    _, n, inner = truths.shape
    if inner == 1:
        return np.argmax(truths, 1)
    kind = np.dtype(np.uint8 if n <= BYTE else np.int32)
    ranks = np.multiply(truths, np.arange(n, 0, -1, dtype=kind)[:, None], dtype=kind)
    return (n - np.maximum.reduce(ranks, 1).astype(np.int64)) % n  # type: ignore[no-any-return]


def is_half(dtype: np.dtype) -> bool:
    """Whether NumPy computes slowly with a dtype: float16 and bfloat16."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


LOOP_FORMS: dict[str, Any] = {"deviations": deviations_by_loops, "squares": squares_by_loops}
FORMS: dict[str, Callable[[Block], States | None]] = {
    "deviations": deviations, "squares": squares, "greatest": partial(firsts, greatest=True),
    "least": partial(firsts, greatest=False),
}  # fmt: skip
