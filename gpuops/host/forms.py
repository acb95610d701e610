"""The states of a block of elements: by a record's definition, or in a form that is faster and gives the same states.

Narrow columns are folded, as short rows are turned: NumPy's loops are to be long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..definition.expressions import ORDERS, minus_zero, number
from ..definition.in_numpy import is_half, quotient, squared, ufunc_of
from ..definition.records import DEVIATIONS, NANDEVIATIONS, NORM_WITHIN, NUMBERS, SUM, TOTALS
from ..definition.reduction import Bound, Reduction
from ..plan.geometry import Shape
from .block import BYTE, SHORT, Block, Layout, chosen, counted, is_one
from .blocks import compiled
from .exponentials import exponentials

NARROW = 64  # elements side by side that are folded
CACHED = 1024  # elements side by side whose sums in double precision stay in a core's cache
FOLDED = 512  # elements side by side, into which they are
CHAIN = 128  # elements of a column that are added up before the sum of others is, so that long columns lose few digits
LOOPS = 2**13  # elements of a block that compiled loops reduce, at least

States = tuple[Any, ...]  # arrays, by field


# ------------------------------------------------------------------------------------------------------ the definition


def states(block: Block, options: dict[str, float]) -> States:
    """The states of a block, by field, in double precision, with dims kept."""
    bound, apart = block.bound, block.layout.apart
    if apart and bound.merges:
        fields = states(Block(bound, (block.x, block.other, block.mask), apart), options)
        return merged_along(bound.wide, fields, tuple([d for d in block.axis if d not in apart]))
    found = FORMS.get(bound.reduction.form, simple)(block, options)
    found = by_definition(block.widened(), options) if found is None else found
    wide = bound.wide.state
    return tuple([block.layout.back(each, True).astype(wide[i], copy=False) for i, each in enumerate(found)])


def simple(block: Block, options: dict[str, Any], record: Reduction | None = None) -> States:
    """The states (outer, inner), or those of another record: by compiled loops, or as they are defined."""
    own = block.bound
    bound = own if record is None else record.bind(own.x, own.val)
    pays = block.x.size >= LOOPS and has_loops(bound, block.layout, block.mask is not None)
    found = by_loops(block, bound, **options) if pays else None
    return by_definition(block, options, bound if own is not own.wide else bound.wide) if found is None else found


def by_loops(block: Block, bound: Bound, center: Any = None, **options: Any) -> States | None:
    """The states (outer, inner) that compiled loops give; None if these are not finite: then NumPy makes them again,
    and reports why."""
    loops: Any = compiled("compiled")
    elements = block.seen(block.x, np.dtype(np.float32) if is_half(block.x.dtype) else None)
    mask = None if block.mask is None else block.seen(block.mask, None, "mask")
    with np.errstate(all="ignore"):
        found: States | None = loops.states(bound.wide, elements, mask, center)
    return found if found is not None and all(np.isfinite(each).all() for each in found) else None


def has_loops(bound: Bound, seen: Layout, masked: bool) -> bool:
    """Whether compiled loops make the states that a form is of, or those of a record. NumPy adds up float32 as fast
    that lies neither in long rows nor in columns whose sums stay in cache."""
    record = {"deviations": DEVIATIONS, "squares": NORM_WITHIN}.get(bound.reduction.form)
    _, n, inner = seen.lengths
    long = n > SHORT and (inner == 1 or NARROW <= inner <= CACHED)
    summed = bound.of_elements and bound.takes is None and bound.reduces_in == np.float32
    pays = long or masked or not summed
    return pays and looped(record.bind(bound.x, bound.val) if record else bound) and compiled("compiled") is not None


@lru_cache(maxsize=256)
def looped(bound: Bound) -> bool:
    """Whether there may be loops of a reduction; not if NumPy makes it as fast, of the elements themselves."""
    kinds = bound.x.kind in "biufV" and np.can_cast(bound.x, bound.val)
    extremes = bound.plain and "add" not in (bound.merges or ())
    return bound.merges is not None and kinds and not extremes and bound.of_x_alone


def by_definition(block: Block, options: dict[str, Any], bound: Bound | None = None) -> States:
    """The states (outer, inner) as the record defines them."""
    bound = bound or block.bound
    given = options | {"x": block.elements(bound)}
    if "center" in given:
        given["center"] = given["center"][:, None]
    if bound.y is not None:
        given["y"] = block.seen(block.other, bound.kinds["A"], "other")
    if bound.indexed:
        given["index"] = block.index(np.arange(block.layout.lengths[1]))[None, :, None]
    made = [*zip(bound.contributions(**given), bound.reduction.fields.items(), strict=True)]
    if bound.merges is None:
        return halves(bound, [left_out(block, each, field.identity) for each, (_, field) in made])
    return tuple([merged(block, bound, each, name) for each, (name, _) in made])


def merged(block: Block, bound: Bound, made: Any, name: str) -> Any:
    """The state of a field that merges alone, of its contributions."""
    dtype, field = bound.state[name], bound.reduction.fields[name]
    if np.ndim(made) == 0 and field.merge == "add":  # one number for all elements
        return (block.count * made).astype(dtype)
    if made.dtype == bool and field.merge == "add":
        return counted(made if block.taken is None else made & block.taken).astype(dtype)
    made = left_out(block, made, field.identity)
    if name in bound.squared:
        return total(made, True).astype(dtype, copy=False)
    ufunc = bound.ufunc if len(bound.reduction.fields) == 1 else ufunc_of(field.merge)
    return along(made, ufunc, None if field.merge in ORDERS else dtype).astype(dtype, copy=False)


def left_out(block: Block, made: Any, identity: Any) -> np.ndarray:
    """Contributions to a field, and the identity of elements that do not take part."""
    if block.taken is None:
        return made if made.shape == block.layout.lengths else np.broadcast_to(made, block.layout.lengths)
    made = np.broadcast_to(made, block.layout.lengths)
    return chosen(made, block.taken, number(identity, made.dtype), np.empty(made.shape, made.dtype))


def along(made: np.ndarray, ufunc: Any, dtype: np.dtype | None = None) -> np.ndarray:
    """What a ufunc makes of (outer, n, inner) along n; sums begin with -0.0, which changes nothing."""
    outer, n, inner = made.shape
    start = {"initial": minus_zero(dtype or made.dtype)} if ufunc is np.add else {}
    single = made.dtype == np.float32 and made.strides[1] == made.itemsize
    if inner == 1 and ufunc is np.add and single and (dtype is None or dtype == made.dtype):  # (None equals float64)
        return total(made)
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


def total(made: np.ndarray, squares: bool = False) -> np.ndarray:
    """Sums of (outer, n, inner) along n, or of squares: by einsum, which adds up rows faster, and needs no memory for
    squares. It reports no errors and makes no -0.0, so sums that are 0 or not finite are made again."""
    outer, n, inner = made.shape
    chain = CHAIN if inner > 1 else CHAIN * 32 // made.itemsize  # (of a row, 16 bytes are added side by side)
    even = n - n % chain
    parts = [made[:, :even].reshape(outer, -1, chain, inner), made[:, None, even:]]
    subscripts, count = ("ocni,ocni->oci", 2) if squares else ("ocni->oci", 1)
    sums = [np.einsum(subscripts, *count * [part]) for part in parts if part.size]
    found = np.concatenate(sums, 1) if len(sums) > 1 else sums[0]
    found = found[:, 0] if found.shape[1] == 1 else along(found, np.add)
    if (np.isfinite(found) & (found != 0)).all():
        return found  # type: ignore[no-any-return]
    made = np.square(made) if squares else made
    return along(made, np.add) if inner > 1 else np.add.reduce(made, 1, initial=minus_zero(made.dtype))


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


def merged_along(bound: Bound, fields: Sequence[np.ndarray], axis: Shape) -> States:
    """The states of wholes, given those of parts of them along some axes, with dims kept."""
    kept = [d for d in range(fields[0].ndim) if d not in axis]
    shape = tuple([1 if d in axis else n for d, n in enumerate(fields[0].shape)])
    if 0 in [fields[0].shape[d] for d in axis]:
        return tuple([np.full(shape, bound.identities[name], bound.state[name]) for name in bound.state.names or ()])
    count = math.prod([fields[0].shape[d] for d in axis])
    parts = [each.transpose(*axis, *kept).reshape(count, *[shape[d] for d in kept]) for each in fields]
    return tuple([each.reshape(shape) for each in merged_parts(bound, parts)])


# ----------------------------------------------------------------------------------------------------------- the forms


def passes(bound: Bound, masked: bool) -> tuple[Reduction, Reduction]:
    """The sums that a variance is made of: of elements, then of their distances from a center."""
    if bound.takes is not None:
        return NUMBERS, NANDEVIATIONS
    return TOTALS if masked else SUM, DEVIATIONS


def deviations(block: Block, options: dict[str, float]) -> States:
    """The mean, and squares of the distances from it: in two passes, as what a block is stays in cache."""
    bound = block.bound
    first, second = passes(bound, block.mask is not None)
    total, *counts = simple(block, {}, first)
    count = counts[0] if counts else block.count
    n, acc, real = np.maximum(count, 1).astype(np.float64), bound.kinds["A"], bound.kinds["R"]
    center = quotient(total.astype(bound.kinds["D"]), n).astype(acc)
    rest, squares = simple(block, {"center": center}, second)
    if not np.isfinite(squares).all():  # squares around a closer mean may not overflow
        center = (center + quotient(rest, n)).astype(acc)
        rest, squares = simple(block, {"center": center}, second)
    squares = np.where(squares < np.inf, np.maximum(squares - (squared(rest) / n).astype(real), 0), squares)
    found = {"center": center + quotient(rest, n), "squares": squares, "n": count, "total": total}
    return tuple([found[name] for name in bound.state.names or ()])


def squares(block: Block, options: dict[str, float]) -> States | None:
    """Sums of squares that neither overflow nor vanish, beside which the other sums do not count; else None."""
    (total,) = simple(block, {}, NORM_WITHIN)
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


def first_true(truths: np.ndarray) -> np.ndarray:
    """The first places of trues of (outer, n, inner) along n: where there are some, 0 where there are none."""
    _, n, inner = truths.shape
    if inner == 1:
        return np.argmax(truths, 1)
    kind = np.dtype(np.uint8 if n <= BYTE else np.int32)
    ranks = np.multiply(truths, np.arange(n, 0, -1, dtype=kind)[:, None], dtype=kind)
    return (n - np.maximum.reduce(ranks, 1).astype(np.int64)) % n  # type: ignore[no-any-return]


FORMS: dict[str, Callable[..., States | None]] = {
    "deviations": deviations, "squares": squares, "greatest": partial(firsts, greatest=True),
    "least": partial(firsts, greatest=False), "exponentials": exponentials,
}  # fmt: skip
