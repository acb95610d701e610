"""Dask arrays: counts, norms, averages, comparisons and ops with two results, made of other reductions of them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from ..ops import average, compare, norms, reduce
from ..ops.arguments import normalize_axis
from ..ops.search import WithIndex
from ..ops.variance import MeanVar
from ..plan.geometry import Shape
from ..plan.work import ArraySpec
from .dask_graphs import Function, accumulated, blocks, converted, is_dask, labelled, masked, on_block, whole

EXTREMES: dict[str, tuple[Function, Function]] = {
    "max_with_index": (reduce.max, reduce.argmax), "min_with_index": (reduce.min, reduce.argmin),
}  # fmt: skip


def range_of(op: str, result: ArraySpec, a: Any, axis: Any, keepdims: bool, strategy: Any) -> da.Array:
    """ptp."""
    most, least = (each(whole(a), axis, keepdims=keepdims, strategy=strategy) for each in (reduce.max, reduce.min))
    return most - least


def both(op: str, result: ArraySpec, a: Any, ddof: Any, correction: Any, **options: Any) -> MeanVar:
    """mean_var."""
    x = whole(a)
    return MeanVar(reduce.mean(x, **options), reduce.var(x, ddof=ddof, correction=correction, **options))


def with_index(op: str, result: ArraySpec, a: Any, **options: Any) -> WithIndex:
    """max_with_index and min_with_index."""
    return WithIndex(*(function(whole(a), **options) for function in EXTREMES[op]))


def count(op: str, result: ArraySpec, a: Any, axis: Any, keepdims: bool, strategy: Any) -> da.Array:
    """count_nonzero."""
    parts = partial_results(op, partial(reduce.count_nonzero, strategy=strategy), whole(a), axis, result.dtype)
    return reduce.sum(*parts, keepdims=keepdims)


def squares(
    op: str, result: ArraySpec, a: Any, axis: Any, dtype: Any, keepdims: bool, where: Any, strategy: Any
) -> da.Array:
    """sum_of_squares."""
    x, acc = whole(a), accumulated(result.dtype)
    val = np.result_type(acc, np.complex64) if x.dtype.kind == "c" else acc
    parts = partial_results(op, partial(part_of_squares, val, strategy), x, axis, acc, where)
    return converted_to(result.dtype, reduce.sum(*parts, keepdims=keepdims, dtype=acc))


def part_of_squares(val: np.dtype, strategy: Any, x: Any, axis: Shape, keepdims: bool, where: Any) -> Any:
    """What a chunk contributes to a sum of squares."""
    return norms.sum_of_squares(x, axis, val, keepdims=keepdims, where=where, strategy=strategy)


def norm(op: str, result: ArraySpec, a: Any, axis: Any, keepdims: bool, ord: float, strategy: Any) -> da.Array:  # noqa: A002
    """vector_norm: the norm of the chunks' norms."""
    acc = accumulated(result.dtype)
    parts = partial_results(op, partial(part_of_norm, ord, strategy, acc), whole(a), axis, acc)
    if ord == 0:
        return converted_to(result.dtype, reduce.sum(*parts, keepdims=keepdims))
    x, dims = parts
    last = reduce.max if ord == np.inf else reduce.min if ord == -np.inf else None
    if last is not None:
        return converted_to(result.dtype, last(x, dims, keepdims=keepdims))
    x = x.rechunk(dict.fromkeys(dims, -1))
    kept = tuple([d for d in range(x.ndim) if keepdims or d not in dims])
    merge = partial(norms.vector_norm, axis=dims, keepdims=keepdims, ord=ord)
    total = blocks(partial(on_block, merge), f"{op}-finish", kept, [labelled(x, x.ndim)], acc, dict.fromkeys(dims, 1))
    return converted_to(result.dtype, total)


def part_of_norm(ord: float, strategy: Any, acc: np.dtype, x: Any, axis: Shape, keepdims: bool) -> Any:  # noqa: A002
    """The norm of a chunk, in the dtype in which it is added up."""
    x = x if accumulated(x.dtype) == x.dtype else converted(x, acc)
    found = norms.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord, strategy=strategy)
    return converted(found, acc)


def weighed(op: str, result: ArraySpec, a: Any, axis: Any, weights: Any, returned: bool, keepdims: bool) -> Any:
    """average: a sum of products, and one of weights."""
    x, val = whole(a), result.dtype
    dims = normalize_axis(op, axis, x.shape)
    if weights is None:
        mean = reduce.mean(x, dims, keepdims=keepdims)
        return average.Average(mean, da.full_like(mean, math.prod(x.shape[d] for d in dims))) if returned else mean
    if is_dask(weights) and weights.shape != x.shape:  # of axes
        order = [int(d) % x.ndim for d in (axis if isinstance(axis, tuple) else (axis,))]
        along = weights.transpose(np.argsort(order).tolist())
        heavy = along.reshape([n if d in dims else 1 for d, n in enumerate(x.shape)])
    else:
        heavy = whole(weights)
    acc = accumulated(val)
    part = partial(part_of_average, acc, dims)
    totals = blocks(part, op, range(x.ndim), [x, heavy], acc, dict.fromkeys(dims, 1))
    total = reduce.sum(totals, dims, keepdims=keepdims)
    weight = reduce.sum(da.broadcast_to(heavy, x.shape), dims, dtype=acc, keepdims=keepdims)
    found = converted_to(val, total / weight)
    return average.Average(found, converted_to(val, weight)) if returned else found


def part_of_average(acc: np.dtype, dims: Shape, x: Any, weights: Any) -> Any:
    """What a chunk contributes to a weighted sum."""
    return reduce.sum(converted(x, acc) * converted(weights, acc), dims, keepdims=True)


def equal(op: str, result: ArraySpec, a1: Any, a2: Any, equal_nan: bool) -> da.Array:
    """array_equal."""
    if np.shape(a1) != np.shape(a2):
        return da.zeros((), bool)
    return compared(op, partial(compare.array_equal, equal_nan=equal_nan), a1, a2)


def close(op: str, result: ArraySpec, a: Any, b: Any, **options: Any) -> da.Array:
    """allclose."""
    return compared(op, partial(compare.allclose, **options), a, b)


def compared(op: str, function: Function, x: Any, y: Any) -> da.Array:
    """Whether a function says so of all chunks of two operands, which broadcast."""
    ndim = max(np.ndim(x), np.ndim(y))
    part = partial(part_of_comparison, function, ndim)
    parts = blocks(part, op, range(ndim), [x, y], np.dtype(bool), dict.fromkeys(range(ndim), 1))
    return reduce.all(parts)


def part_of_comparison(function: Function, ndim: int, x: Any, y: Any) -> Any:
    """What is true of two chunks."""
    return np.reshape(function(x, y), (1,) * ndim)


def partial_results(
    op: str, function: Function, x: da.Array, axis: Any, dtype: np.dtype, where: Any = None
) -> tuple[da.Array, Shape]:
    """A function of each chunk along the axes, whose dims are kept, and these axes."""
    dims = normalize_axis(op, axis, x.shape)
    operands = [labelled(x, x.ndim)] if where is None else masked(x, where)
    part = partial(on_chunk, partial(function, axis=dims, keepdims=True), where is not None)
    return blocks(part, op, range(x.ndim), operands, dtype, dict.fromkeys(dims, 1)), dims


def on_chunk(function: Function, masked: bool, x: Any, where: Any = None) -> Any:
    """A call with a chunk, and perhaps its mask."""
    return function(x, where=where) if masked else function(x)


def converted_to(dtype: np.dtype, x: da.Array) -> da.Array:
    """An array in another dtype."""
    return x if x.dtype == dtype else x.astype(dtype)


#: What makes the graph of each of these functions.
GRAPHS: dict[Function, Function] = {
    reduce.ptp: range_of, reduce.count_nonzero: count, reduce.sum_of_squares: squares, reduce.vector_norm: norm,
    reduce.mean_var: both, reduce.max_with_index: with_index, reduce.min_with_index: with_index,
    average.average: weighed, compare.array_equal: equal, compare.allclose: close,
}  # fmt: skip
