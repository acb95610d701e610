"""var, std and the like of Dask arrays: partial results of chunks, which merge in a tree."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import dask.array as da
import numpy as np

from ..call.arrays import is_scalar
from ..definition.records import REDUCTIONS
from ..ops import broadcast, reduce
from ..ops.arguments import as_dtype
from ..ops.reduction import dtypes
from ..plan.geometry import Shape
from .dask_graphs import blocks, chosen, converted, masked, single, tree


class Spread(NamedTuple):
    """A call of such an op."""

    op: str
    axis: Shape
    keepdims: bool
    out: np.dtype
    dtype: Any
    ddof: float
    correction: Any
    strategy: str | None


def spread(call: Spread, x: da.Array, where: Any) -> da.Array:
    """The result, of each chunk's number of elements, their mean and the sum of squared distances from it: beside each
    other in a dim that comes last."""
    op, record, ndim = call.op, REDUCTIONS[call.op], x.ndim if call.keepdims else x.ndim - len(call.axis)
    if record.plain and x.dtype.kind not in "biu":
        where = chosen(x == x, where)
    wide = np.dtype(np.complex128 if x.dtype.kind == "c" else np.float64)
    val = x.dtype if call.dtype is None else dtypes(record, x.dtype, as_dtype(op, call.dtype), None)[0]
    last = da.from_array(np.arange(3), -1), (x.ndim,)
    part = partial(part_of_spread, call.axis, wide, val, call.strategy)
    parts = blocks(part, op, range(x.ndim + 1), [*masked(x, where), last], wide, dict.fromkeys(call.axis, 1))
    parts = tree(parts, op, call.axis, call.keepdims, merge_spreads, merge_spreads, wide)
    ddof = call.ddof if call.correction is None else call.correction
    finish = partial(end_of_spread, call.out, ddof, bool(record.plain), record.exponent)
    return blocks(finish, f"{op}-finish", range(ndim), [(parts, tuple(range(ndim + 1)))], call.out)


def part_of_spread(axis: Shape, wide: np.dtype, val: np.dtype, strategy: Any, x: Any, where: Any, _: Any) -> Any:
    """What a chunk contributes to a variance."""
    options = {"axis": axis, "keepdims": True, "where": where, "strategy": strategy}
    x = x if val == x.dtype else converted(x, val)
    with np.errstate(all="ignore"):
        mean, spread = reduce.mean(x, dtype=wide, **options), reduce.var(x, dtype=wide, **options)
        if is_scalar(where):
            count = np.full_like(spread, math.prod([x.shape[d] for d in axis]) * bool(where))
        else:
            count = broadcast.broadcast_to(where, x.shape).sum(axis=axis, keepdims=True)
        squares = spread * count
    return beside(count, *(broadcast.where(count > 0, each, 0) for each in (mean, squares)), dtype=wide)


def beside(*arrays: Any, dtype: np.dtype) -> Any:
    """Arrays beside each other in a dim that comes last."""
    found = np.empty_like(arrays[0], dtype, shape=(*arrays[0].shape, len(arrays)))
    for k, array in enumerate(arrays):
        found[..., k] = array
    return found


def merge_spreads(x: Any, axis: Shape, keepdims: bool) -> Any:
    """The contributions of several chunks in one (Chan, Golub & LeVeque 1983)."""
    count, mean, squares = x[..., 0], x[..., 1], x[..., 2]
    total = count.sum(axis=axis, keepdims=True)
    center = (count * mean).sum(axis=axis, keepdims=True) / np.maximum(total.real, 1)
    squares = (squares + count * np.abs(mean - center) ** 2).sum(axis=axis, keepdims=True)
    found = beside(total, center, squares, dtype=x.dtype)
    return found if keepdims else found.squeeze(axis)


def end_of_spread(dtype: np.dtype, ddof: float, strict: bool, exponent: float | None, x: Any) -> Any:
    """A power of a variance; NaN without degrees of freedom, if ``strict``."""
    x = single(x)
    freedom = x[..., 0].real - ddof
    with np.errstate(all="ignore"):
        found = x[..., 2].real / broadcast.where(freedom <= 0, np.nan if strict else 0, freedom)
        return (found**exponent).astype(dtype)
