"""The NumPy implementation: what gpuops computes for NumPy arrays, and the model for the kernels.

Arguments have been checked by the public modules. Half types accumulate in float32, as on the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan.dtypes import accumulator
from ..plan.geometry import Shape
from .results import deliver, in_order


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
    if x.dtype != dtype or y.dtype != dtype:
        with np.errstate(invalid="ignore"):  # of signaling NaNs: np.where does not warn, either
            x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
    return deliver(np.where(condition, x, y), out)


def nonzero(condition: np.ndarray) -> tuple[np.ndarray, ...]:
    """np.nonzero."""
    return np.nonzero(condition)


def broadcast_to(array: np.ndarray, *, shape: Shape, subok: bool) -> np.ndarray:
    """np.broadcast_to."""
    return np.broadcast_to(array, shape, subok)
