"""The states of a block of elements: by a record's definition, or in a form that is faster and gives the same states.

Narrow columns are folded, as short rows are turned: NumPy's loops are to be long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..definition.expressions import ORDERS, minus_zero, number
from ..definition.in_numpy import is_half, quotient, squared, ufunc_of
from ..definition.records import DEVIATIONS, NANDEVIATIONS, NUMBERS, SUM, SUM_OF_SQUARES, TOTALS
from ..definition.reduction import Bound
from ..plan.geometry import Shape, memory_order
from .block import BYTE, Block, chosen, counted, is_one, layout, rounded, taken_of
from .blocks import compiled, convert, memory

NARROW = 64  # elements side by side that are folded
FOLDED = 512  # elements side by side, into which they are
CHAIN = 64  # elements of a column that are added up before the sum of others is: columns keep as many digits as rows
LOOPS = 2**13  # elements of a block that compiled loops reduce, at least

States = tuple[Any, ...]  # arrays, by field


# ------------------------------------------------------------------------------------------------------ the definition


def states(block: Block, options: dict[str, float]) -> States:
    """The states of a block, by field, with dims kept: to be held in double precision."""
    bound, names = block.bound, block.bound.state.names or ("",)
    apart = bound.viewed and block.mask is None and not block.layout.lies and block.layout.first
    if not apart and (found := by_loops(block)) is not None:  # (apart, a loop would want a copy)
        return tuple([block.layout.back(each, True) for each in found])
    if bound.moved is not None and bound.moved == names[0] and bound.merges:  # the others do not depend on elements
        rest = zip(bound.contributions(x=block.x)[1:], names[1:], bound.merges[1:], strict=True)
        others = [block.layout.back(merged(block, *each), True) for each in rest]
        return (merged_elements(block), *others)
    form = FORMS.get(bound.reduction.form)
    found = form(block, options) if form else by_definition(block, options)
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
    trees = [bound.narrowed(*each) for each in bound.map_tree.items()]
    moved = "add" not in (bound.merges or ()) and all(tree.head == "leaf" for tree in trees)
    merges = bound.merges is not None or bound.reduction.form in LOOP_FORMS
    kinds = bound.x.kind in "biufV" and np.can_cast(bound.x, bound.val)
    return merges and kinds and not moved and bound.of_x_alone and compiled("compiled") is not None


def merged_elements(block: Block) -> np.ndarray:
    """The state that a ufunc makes of the elements themselves: where they lie, or of a copy without those left out."""
    bound, x, mask = block.bound, block.x, block.mask
    acc, taken = bound.kinds["A"], taken_of(bound, x, mask)
    if bound.moved_in == x.dtype and taken is None and (found := as_it_lies(bound, x, block.axis)) is not None:
        return found
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
    some: np.ndarray | None = None
    while not found.lies and found.first:  # the outermost of the reduced dims first
        place = layout(a.shape, a.strides, found.first, False)
        if not place.lies:
            return None
        some = along(a.transpose(place.dims).reshape(place.lengths), bound.ufunc, bound.reduces_in)
        a = place.back(some, True)
        found = layout(a.shape, a.strides, axis, False)
    if not found.lies and some is None:
        return None
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
        return made if made.shape == block.layout.lengths else np.broadcast_to(made, block.layout.lengths)
    identity = number(block.bound.reduction.fields[name].identity, made.dtype)
    return np.where(block.taken, made, identity)


def along(made: np.ndarray, ufunc: Any, dtype: np.dtype | None = None) -> np.ndarray:
    """What a ufunc makes of (outer, n, inner) along n; sums begin with -0.0, which changes nothing."""
    outer, n, inner = made.shape
    start = {"initial": minus_zero(dtype or made.dtype)} if ufunc is np.add else {}
    if inner == 1:
        return ufunc.reduce(made[..., 0], 1, dtype, **start)[:, None]  # type: ignore[no-any-return]
    folds = FOLDED // inner if inner < NARROW else 1
    if folds > 1 and n >= 2 * folds and is_one([*zip(made.shape[1:], made.strides[1:], strict=True)]):
        even = n - n % folds
        some = along(made[:, :even].reshape(outer, -1, folds * inner), ufunc, dtype).reshape(outer, folds, inner)
        some = ufunc.reduce(some, 1, dtype, **start)
        return ufunc(some, ufunc.reduce(made[:, even:], 1, dtype, **start)) if even < n else some  # type: ignore[no-any-return]
    chain = CHAIN if ufunc is np.add and made.dtype.kind in "fc" else n
    while n > chain:
        even = n - n % chain
        some = ufunc.reduce(made[:, :even].reshape(outer, -1, chain, inner), 2, dtype, **start)
        made = some if even == n else np.concatenate([some, made[:, even:]], 1, dtype=some.dtype)
        n = made.shape[1]
    return ufunc.reduce(made, 1, dtype, **start)  # type: ignore[no-any-return]


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
        start = {"initial": minus_zero(each.dtype)} if merge == "add" else {}
        dtype = None if merge in ORDERS else each.dtype
        whole.append(ufunc_of(merge).reduce(lying, -1 if long else 0, dtype, **start))
    return tuple(whole)


# ----------------------------------------------------------------------------------------------------------- the forms


def deviations(block: Block, options: dict[str, float]) -> States:
    """The mean, and squares of the distances from it: in two passes, as what a block is stays in cache."""
    bound, count = block.bound, block.count
    acc, double, real = bound.kinds["A"], bound.kinds["D"], bound.kinds["R"]
    x, n = block.elements(0), np.maximum(count, 1).astype(np.float64)
    into = memory("apart", x.shape, acc, (0, 1, 2))
    total = along(x, np.add, acc)
    mean = quotient(total.astype(double), n)
    squares = along(squares_of(apart_from(mean.astype(acc), x, block, into)), np.add)
    lost = np.square(8 * np.finfo(real).eps * np.abs(mean)) * n  # what rounding the mean may cost
    if not np.all((lost <= np.finfo(real).eps * squares) & (squares < np.inf)):
        rest = along(apart_from(mean.astype(acc), x, block, into), np.add, acc).astype(double)
        mean = mean.astype(acc) + quotient(rest, n)
        rest = squared(rest) / n
        if not np.isfinite(squares).all():  # squares around a closer mean may not overflow
            squares, rest = along(squares_of(apart_from(mean.astype(acc), x, block, into)), np.add), 0 * rest
        squares = np.where(squares < np.inf, np.maximum(squares - rest.astype(real), 0), squares)
    found = {"center": mean, "squares": squares, "n": count, "total": total}
    return tuple([found[name] for name in bound.state.names or ()])


def apart_from(center: np.ndarray, x: np.ndarray, block: Block, into: np.ndarray) -> np.ndarray:
    """The distances of the elements that take part from a center, in memory."""
    apart = np.subtract(x, center[:, None], out=into)
    if block.taken is not None:
        np.copyto(apart, 0, where=~block.taken)
    return apart


def squares_of(x: np.ndarray) -> np.ndarray:
    """Squares of magnitudes, in the place of numbers if these are real."""
    return np.square(x, out=x) if x.dtype.kind != "c" else squared(x)  # type: ignore[no-any-return]


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
    return within(block, found[0]) if found else None


def squares(block: Block, options: dict[str, float]) -> States | None:
    """Sums of squares that neither overflow nor vanish, beside which the other sums do not count; else None."""
    x = block.elements(0)
    if x.dtype.kind == "c":
        return within(block, along(squared(x), np.add))
    return within(block, along(np.square(x, out=memory("apart", x.shape, x.dtype, (0, 1, 2))), np.add))


def within(block: Block, total: np.ndarray) -> States | None:
    """Sums of squares that are neither so large nor so small that their digits are in question; else None."""
    least, most = (number(name, total.dtype) for name in ("tiny", "large"))
    if not np.all((total >= least) & (total <= most)):
        return None
    found = {"total": total, "n": block.count}
    return tuple([found[name] if name in found else np.zeros_like(total) for name in block.bound.state.names or ()])


def firsts(block: Block, options: dict[str, float], greatest: bool) -> States:
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
    if bound.takes is not None and (nothing := value != value).any():  # where all are NaN
        value = np.where(nothing, number(bound.reduction.fields["value"].identity, value.dtype), value)
        index = np.where(nothing, bound.identities["index"], index)
    return value.astype(bound.state["value"], copy=False), index


def exponentials(block: Block, options: dict[str, float]) -> States:
    """The greatest elements, and sums of exponentials relative to them, less 1."""
    x, scale = block.elements(-np.inf), block.bound.kinds["A"].type(options["scale"])
    if scale != 1:
        x = np.multiply(x, scale, out=memory("apart", x.shape, x.dtype, (0, 1, 2)))
        x = x if block.taken is None else np.where(block.taken, x, x.dtype.type(-np.inf))
    top = np.maximum.reduce(x, 1)
    powers = np.exp(x - top[:, None])
    greatest = x == top[:, None]
    np.copyto(powers, 0, where=greatest)
    rest = along(powers, np.add) + (np.count_nonzero(greatest, 1) - 1)
    return top, np.where(np.isneginf(top), -1, np.where(np.isposinf(top), np.nan, rest))


def first_true(truths: np.ndarray) -> np.ndarray:
    """The first places of trues of (outer, n, inner) along n: where there are some, 0 where there are none."""
    _, n, inner = truths.shape
    if inner == 1:
        return np.argmax(truths, 1)
    kind = np.dtype(np.uint8 if n <= BYTE else np.int32)
    ranks = np.multiply(truths, np.arange(n, 0, -1, dtype=kind)[:, None], dtype=kind)
    return (n - np.maximum.reduce(ranks, 1).astype(np.int64)) % n  # type: ignore[no-any-return]


LOOP_FORMS: dict[str, Any] = {"deviations": deviations_by_loops, "squares": squares_by_loops}
FORMS: dict[str, Callable[..., States | None]] = {
    "deviations": deviations, "squares": squares, "greatest": partial(firsts, greatest=True),
    "least": partial(firsts, greatest=False), "exponentials": exponentials,
}  # fmt: skip
