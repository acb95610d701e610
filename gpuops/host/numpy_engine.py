"""The NumPy implementation: what gpuops computes for NumPy arrays, and the model for the kernels.

Arguments have been checked by the public modules. Half types accumulate in float32, as on the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ..errors import error
from ..plan.dtypes import accumulator
from ..plan.geometry import Shape, memory_order
from . import numpy_functions


def reduce(a: np.ndarray, out: np.ndarray | None = None, where: Any = True, *, function: Any, **options: Any) -> Any:
    """A function of NumPy's, such as ``np.add.reduce``."""
    if where is True or out is not None:
        return function(a, out=out, **({} if where is True else {"where": where}), **options)
    return in_order(function(a, where=where, **options), a, options["axis"], options["keepdims"])


def reduce_wide(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, *, val: np.dtype, acc: np.dtype, result: np.dtype,
    **options: Any,
) -> Any:  # fmt: skip
    """The same with the values taken as ``val``, but accumulated in ``acc``, and the result in a dtype of its own."""
    if options.get("initial") is not None:
        options["initial"] = options["initial"].astype(acc)
    wide = a.astype(val, copy=False).astype(acc, copy=False)
    found = reduce(wide, None, where, **options)
    found = (found if result.kind == "c" else found.real).astype(result)
    return in_order(found, a, options["axis"], options["keepdims"], out)


def mean(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, *, dtype: np.dtype, **options: Any
) -> Any:  # fmt: skip
    """np.mean; of complex numbers each part has its own, so that an infinite one leaves the other as it is."""
    if dtype.kind != "c":
        return numpy_functions.mean(a, dtype=dtype, out=out, where=where, **options)
    val = real_of(dtype)
    real, imag = (numpy_functions.mean(part, dtype=val, where=where, **options) for part in (a.real, a.imag))
    return deliver(joined(real, imag, dtype), out)


def nanmean(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, *, dtype: np.dtype, **options: Any
) -> Any:  # fmt: skip
    """np.nanmean, likewise."""
    if dtype.kind != "c":
        return numpy_functions.nanmean(a, dtype=dtype, out=out, where=where, **options)
    with np.errstate(invalid="ignore"):
        return mean(a, out, ~np.isnan(a) & where, dtype=dtype, **options)


def joined(real: Any, imag: Any, dtype: np.dtype) -> Any:
    """Complex numbers, or one, of these parts."""
    made = np.empty_like(real, dtype)
    made.real, made.imag = real, imag
    return made[()]


def divided(total: Any, count: Any, dtype: np.dtype) -> Any:
    """Sums divided by the numbers of their elements; of complex numbers each part by itself, as `mean` does."""
    if dtype.kind != "c":
        return np.true_divide(total, count, dtype=dtype)
    val = real_of(dtype)
    real, imag = (np.true_divide(part, count, dtype=val) for part in (total.real, total.imag))
    return joined(real, imag, dtype)


def search(a: np.ndarray, out: np.ndarray | None = None, *, function: Any, axis: Shape, keepdims: bool) -> Any:
    """argmax or the like along one axis, or over all."""
    a = a.astype(np.float32) if a.dtype.kind == "V" else a  # bfloat16, of which NumPy does not know NaN
    try:
        found = function(a, axis=axis[0] if len(axis) < a.ndim else None, keepdims=keepdims)
    except ValueError as failure:  # all NaN
        raise error(ValueError, function.__name__, f"{failure} along axis {axis}") from None
    return in_order(found, a, axis, keepdims, out)  # (NumPy's own ``out`` may not overlap ``a``.)


def with_index(a: np.ndarray, *, function: Any, axis: Shape, keepdims: bool, form: Any) -> Any:
    """The elements that argmax or argmin finds, and their indices."""
    indices = search(a, function=function, axis=axis, keepdims=True)
    if len(axis) == a.ndim:
        values = np.reshape(a.flat[indices.item()], indices.shape)
    else:
        values = np.take_along_axis(a, indices, axis[0])
    found = (in_order(each, a, axis, True) for each in (values, indices))
    return form(*(each if keepdims else np.squeeze(each, axis)[()] for each in found))


def count_nonzero(a: np.ndarray, out: None = None, *, axis: Shape, keepdims: bool) -> Any:
    """np.count_nonzero, as an array or a scalar of NumPy's."""
    return np.asarray(np.count_nonzero(a, axis=axis, keepdims=keepdims), np.int64)[()]


def ptp(a: np.ndarray, out: np.ndarray | None = None, *, axis: Shape, keepdims: bool, dtype: np.dtype) -> Any:
    """The maximum less the minimum. (NumPy's own ``out`` may not overlap ``a``.)"""
    options: Any = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
    return deliver(np.subtract(np.maximum.reduce(a, **options), np.minimum.reduce(a, **options)), out)


def sum_of_squares(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, *, axis: Shape, keepdims: bool, dtype: np.dtype
) -> Any:
    """The sum of squared magnitudes."""
    x = a.astype(dtype, copy=False)
    squares = np.square(x) if x.dtype.kind != "c" else np.square(x.real) + np.square(x.imag)
    options: Any = {"axis": axis, "dtype": squares.dtype, "keepdims": keepdims, "where": where}
    return in_order(np.add.reduce(squares, **options), a, axis, keepdims, out)


def vector_norm(
    a: np.ndarray, out: None = None, *, axis: Shape, keepdims: bool, dtype: np.dtype, ord: float  # noqa: A002
) -> Any:
    """np.linalg.vector_norm; the greatest of no magnitudes is 0, as in NumPy from 2.3 on, and as their sum."""
    ord = 1 if ord == np.inf and not a.size else ord  # noqa: A001
    whole: Any = None if len(axis) == a.ndim else axis[0] if len(axis) == 1 else axis  # NumPy is slower with (d,)
    found = np.linalg.vector_norm(a.astype(dtype, copy=False), axis=whole, keepdims=keepdims, ord=ord)
    return in_order(found, a, axis, keepdims)


def mean_var(
    a: np.ndarray, where: Any = True, *, axis: Shape, keepdims: bool, ddof: float, val: np.dtype, acc: np.dtype,
    form: Any,
) -> Any:  # fmt: skip
    """np.mean and np.var."""
    wide = a.astype(val, copy=False).astype(acc, copy=False)
    options: Any = {"axis": axis, "keepdims": keepdims, "where": where}
    found = mean(wide, dtype=acc, **options).astype(val)
    var = numpy_functions.var(wide, **options, ddof=ddof).astype(real_of(val))
    return form(*(in_order(each, a, axis, keepdims) for each in (found, var)))


def average(
    a: np.ndarray, weights: np.ndarray | None = None, *, axis: Shape | None, keepdims: bool, returned: bool,
    val: np.dtype, acc: np.dtype, form: Any,
) -> Any:  # fmt: skip
    """np.average."""
    wide, *heavy = (x.astype(val, copy=False).astype(acc, copy=False) for x in (a, weights) if x is not None)
    options: Any = {"axis": axis, "weights": next(iter(heavy), None), "returned": True, "keepdims": keepdims}
    dims = (*range(a.ndim),) if axis is None else normalize_axis_tuple(axis, a.ndim)
    try:
        found, total = (in_order(each.astype(val), a, dims, keepdims) for each in np.average(wide, **options))
    except ZeroDivisionError as failure:
        raise error(ZeroDivisionError, "average", str(failure)) from None
    return form(found, total) if returned else found


def compare(*, function: Any, names: tuple[str, str], **operands: Any) -> Any:
    """np.allclose or np.array_equal, of operands with these names."""
    pair = [operands.pop(name) for name in names]
    return bool(function(*pair, **operands))


def softmax(
    x: np.ndarray, out: np.ndarray | None = None, where: np.ndarray | None = None, *, op: str, axis: Shape,
    val: np.dtype, dtype: np.dtype, scale: float,
) -> Any:  # fmt: skip
    """softmax or log_softmax computed in ``val`` and delivered as ``dtype``."""
    if op == "log_softmax":
        result = normalized(op, *exponentials(x, axis, val, where, scale), where)
    else:
        chosen: Any = True if where is None else where
        with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
            values = scaled(x, val, scale)
            power = np.exp(values - np.max(values, axis=axis, keepdims=True, initial=-np.inf, where=chosen))
            result = masked(power / np.sum(power, axis=axis, keepdims=True, where=chosen), where, 0)
    return deliver(result.astype(dtype if out is None else out.dtype, copy=False), out)


def normalized(op: str, values: np.ndarray, top: Any, rest: Any, where: np.ndarray | None) -> np.ndarray:
    """softmax or log_softmax of values, given each row's maximum and the rest of its sum of exponentials."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        lowered = values - top
        if op == "softmax":
            return masked(np.exp(lowered) / (1 + rest), where, 0)
        # With +inf in the row, log_softmax makes every other element -inf and +inf itself NaN, as in SciPy.
        return masked(lowered - np.where(np.isposinf(top), 0, np.log1p(rest)), where, -np.inf)


def masked(values: np.ndarray, where: np.ndarray | None, other: float) -> np.ndarray:
    """Values, or another one where the mask leaves them out."""
    return values if where is None else np.where(where, values, values.dtype.type(other))


def logsumexp(
    a: np.ndarray, b: np.ndarray | None = None, out: np.ndarray | None = None, where: np.ndarray | None = None, *,
    axis: Shape, val: np.dtype, dtype: np.dtype, keepdims: bool, scale: float, return_sign: bool, shape: Shape,
) -> Any:  # fmt: skip
    """log(sum(b * exp(a * scale))) over ``axis``; with ``return_sign`` of the sum's magnitude, and its sign."""
    x, weights = np.broadcast_to(a, shape), b
    if weights is not None:
        weights = weights.astype(val, copy=False)
        where = weights != 0 if where is None else where & (weights != 0)
    _, top, at_top, others = powers(x, axis, val, where, scale, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        total, rest = np.where(np.isposinf(top), at_top, at_top + others), others + (at_top - 1)
        near = (rest > -0.5) & ~np.isposinf(top)
        value = top + np.where(near, np.log1p(rest), np.log(np.abs(total)))
    value = np.where(np.isneginf(top), top, value)
    sign = np.where(np.isnan(value), value, np.sign(total))
    if not return_sign:
        value = np.where(sign < 0, np.nan, value)
    value, sign = (in_order(each, x, axis, True) for each in (value, sign))
    value, sign = (each if keepdims else np.squeeze(each, axis)[()] for each in (value, sign))
    result = deliver(value.astype(dtype if out is None else out.dtype), out)
    return (result, sign.astype(dtype)) if return_sign else result


def exponentials(
    x: np.ndarray, axis: Shape, val: np.dtype, where: np.ndarray | None, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x * scale, its maximum, and the sum of exp(x * scale - maximum) less 1, over the selected elements. Dims are
    kept."""
    values, top, at_top, others = powers(x, axis, val, where, scale)
    rest = others + (at_top - 1)
    return values, top, np.where(np.isposinf(top), np.nan, rest).astype(val)


def powers(
    x: np.ndarray, axis: Shape, val: np.dtype, where: np.ndarray | None, scale: float, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x * scale, its maximum, and the sums of exp(x * scale - maximum) over the selected elements, perhaps weighted:
    of those that are the maximum, and of the others. Dims are kept.

    Apart from the maximum, the others keep their digits however small they are.
    """
    chosen: Any = True if where is None else where
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        values = scaled(x, val, scale)
        top = np.max(values, axis=axis, keepdims=True, initial=-np.inf, where=chosen)
        below = values != top
        power = np.exp(values - top)
        power = power if weights is None else power * weights
        others = np.sum(power, axis=axis, keepdims=True, where=below & chosen)
        ones: Any = ~below if weights is None else np.broadcast_to(weights, values.shape)
        at_top = np.sum(ones, axis=axis, keepdims=True, dtype=val, where=~below & chosen & ~np.isneginf(top))
    return values, top, at_top, others


def scaled(x: np.ndarray, val: np.dtype, scale: float) -> np.ndarray:
    """x * scale in ``val``."""
    values = x.astype(val, copy=False)
    return values if scale == 1 else values * val.type(scale)


def statistics(
    x: np.ndarray, where: np.ndarray | None = None, *, axis: Shape, val: np.dtype, scale: float
) -> np.ndarray:
    """Each row's maximum and the rest of its sum of exponentials, as `pairs`."""
    _, top, rest = exponentials(x, axis, val, where, scale)
    return pairs(top, rest)


def merged(stats: np.ndarray, *, axis: Shape) -> np.ndarray:
    """The statistics of whole rows, given those of their parts."""
    top = np.max(stats.real, axis=axis, keepdims=True)
    below = stats.real != top
    with np.errstate(invalid="ignore", under="ignore"):
        power = np.where(stats.imag == -1, 0, np.exp(stats.real - top))
        parts = np.where(below, power * (1 + stats.imag), stats.imag)
        rest = np.sum(parts, axis=axis, keepdims=True) + (np.sum(~below, axis=axis, keepdims=True) - 1)
        return pairs(top, np.where(np.isneginf(top), -1, rest))


def finished(
    x: np.ndarray, where: np.ndarray | None = None, *, stats: np.ndarray, op: str, dtype: np.dtype, scale: float
) -> np.ndarray:
    """softmax or log_softmax given each row's statistics."""
    result = normalized(op, scaled(x, stats.real.dtype, scale), stats.real, stats.imag, where)
    return result.astype(dtype, copy=False)


def pairs(top: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Two numbers in one array: as the real and imaginary parts of complex numbers."""
    stats = np.empty(top.shape, np.result_type(top, np.complex64))
    stats.real, stats.imag = top, rest
    return stats


def matmul(
    a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None, out: np.ndarray | None = None, *, val: np.dtype,
    alpha: np.ndarray, beta: np.ndarray, orders: list[Shape] | None = None,
) -> Any:  # fmt: skip
    """alpha * a @ b + beta * c with the values taken as ``val``; ``orders`` of the dims have matrices last."""
    acc = np.dtype(accumulator(val.name))
    if orders is not None:
        a, b = a.transpose(orders[0]), b.transpose(orders[1])
    a, b = (x.astype(val, copy=False).astype(acc, copy=False) for x in (a, b))
    result = np.matmul(a, b)
    result = result if alpha == 1 else result * alpha
    if c is not None and beta != 0:
        result = result + beta * c.astype(val, copy=False).astype(acc, copy=False)
    result = result.astype(val, copy=False)
    if orders is not None and orders[2]:
        result = result.transpose(np.argsort(orders[2]).tolist())
    return deliver(result, out)


def product(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
    """np.matmul, of a dtype that it computes in."""
    return deliver(np.matmul(a, b), out)


def dot(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
    """np.dot."""
    return deliver(np.dot(a, b), out)


def where(condition: np.ndarray, x: Any, y: Any, out: np.ndarray | None = None, *, dtype: np.dtype) -> Any:
    """np.where in a given dtype."""
    x = x if x.dtype is dtype else x.astype(dtype, copy=False)
    y = y if y.dtype is dtype else y.astype(dtype, copy=False)
    return deliver(np.where(condition, x, y), out)


def nonzero(condition: np.ndarray) -> tuple[np.ndarray, ...]:
    """np.nonzero."""
    return np.nonzero(condition)


def broadcast_to(array: np.ndarray, *, shape: Shape, subok: bool) -> np.ndarray:
    """np.broadcast_to."""
    return np.broadcast_to(array, shape, subok)


def real_of(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers; of others their own."""
    return np.empty(0, dtype).real.dtype


def in_order(result: Any, a: np.ndarray, axis: Shape, keepdims: bool, out: np.ndarray | None = None) -> Any:
    """The result of a reduction in the memory order of the array, where NumPy has another one; or in ``out``."""
    if out is not None:
        return deliver(result, out)
    if result.ndim < 2 or a.flags.c_contiguous:
        return result
    order = [d for d in memory_order(a.shape, a.strides) if keepdims or d not in axis]
    order = np.argsort(np.argsort(order)).tolist()  # of the dims that are left
    return np.ascontiguousarray(result.transpose(order)).transpose(np.argsort(order))


def new_result(a: np.ndarray, axis: Shape, dtype: np.dtype, parts: int = 1) -> np.ndarray:
    """New arrays, side by side, for reductions of an array: in its memory order, of length 1 along ``axis``."""
    order = memory_order(a.shape, a.strides)
    lying = np.empty([parts, *(1 if d in axis else a.shape[d] for d in order)], dtype)
    return lying.transpose(0, *(1 + np.argsort(order)))


def deliver(result: Any, out: np.ndarray | None) -> Any:
    """The result, in ``out`` if the caller gave one; an input that overlaps ``out`` has been read by now."""
    if out is None:
        return result
    np.copyto(out, result, casting="unsafe")
    return out
