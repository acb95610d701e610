"""The NumPy implementation: what gpuops computes for NumPy arrays, and the model for the kernels.

Arguments have been checked by the public modules. Half types accumulate in float32, as on the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .plan import Shape, accumulator


def reduce(
    op: str, x: np.ndarray, axis: Shape, val: np.dtype, out: np.ndarray | None, keepdims: bool, options: dict[str, Any]
) -> Any:
    """``np.<op>`` with the values taken as ``val``; ``options`` may hold ``initial`` and ``where``."""
    if op in ("any", "all"):
        return getattr(np, op)(x, axis=axis, out=out, keepdims=keepdims, **options)
    acc = np.dtype(accumulator(val.name))
    if acc == val and op != "mean":
        ufunc: Any = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op]
        dtype = None if op in ("max", "min") else val
        return ufunc.reduce(x, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **options)
    if acc == val:
        return np.mean(x, axis=axis, dtype=val, out=out, keepdims=keepdims, **options)
    if "initial" in options and options["initial"] is not None:
        options = options | {"initial": options["initial"].astype(acc)}
    wide = reduce(op, x.astype(val, copy=False).astype(acc), axis, acc, None, keepdims, options)
    return deliver(wide.astype(val), out)


def softmax(
    op: str, x: np.ndarray, axis: Shape, val: np.dtype, dtype: np.dtype, out: np.ndarray | None,
    where: np.ndarray | None, scale: float,
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
    x: np.ndarray, axis: Shape, val: np.dtype, dtype: np.dtype, out: np.ndarray | None, keepdims: bool,
    where: np.ndarray | None, scale: float, weights: np.ndarray | None, return_sign: bool,
) -> Any:  # fmt: skip
    """log(sum(weights * exp(x * scale))) over ``axis``; with ``return_sign`` of the sum's magnitude, and its sign."""
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


def statistics(x: np.ndarray, axis: Shape, val: np.dtype, where: np.ndarray | None, scale: float) -> np.ndarray:
    """Each row's maximum and the rest of its sum of exponentials, as `pairs`."""
    _, top, rest = exponentials(x, axis, val, where, scale)
    return pairs(top, rest)


def merged(stats: np.ndarray, axis: Shape) -> np.ndarray:
    """The statistics of whole rows, given those of their parts."""
    top = np.max(stats.real, axis=axis, keepdims=True)
    below = stats.real != top
    with np.errstate(invalid="ignore", under="ignore"):
        power = np.where(stats.imag == -1, 0, np.exp(stats.real - top))
        parts = np.where(below, power * (1 + stats.imag), stats.imag)
        rest = np.sum(parts, axis=axis, keepdims=True) + (np.sum(~below, axis=axis, keepdims=True) - 1)
        return pairs(top, np.where(np.isneginf(top), -1, rest))


def pairs(top: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Two numbers in one array: as the real and imaginary parts of complex numbers."""
    stats = np.empty(top.shape, np.result_type(top, np.complex64))
    stats.real, stats.imag = top, rest
    return stats


def matmul(
    a: np.ndarray, b: np.ndarray, val: np.dtype, alpha: np.ndarray, beta: np.ndarray, c: np.ndarray | None,
    out: np.ndarray | None,
) -> Any:  # fmt: skip
    """alpha * a @ b + beta * c with the values taken as ``val``."""
    acc = np.dtype(accumulator(val.name))
    a, b = (x.astype(val, copy=False).astype(acc, copy=False) for x in (a, b))
    result = np.matmul(a, b)
    result = result if alpha == 1 else result * alpha
    result = result if c is None else result + beta * c.astype(val, copy=False).astype(acc, copy=False)
    return deliver(result.astype(val, copy=False), out)


def where(condition: np.ndarray, x: Any, y: Any, dtype: np.dtype, out: np.ndarray | None) -> Any:
    """np.where in a given dtype."""
    return deliver(np.where(condition, x.astype(dtype, copy=False), y.astype(dtype, copy=False)), out)


def expand(x: np.ndarray, shape: Shape, out: np.ndarray | None) -> Any:
    """A materialised np.broadcast_to."""
    view = np.broadcast_to(x, shape)
    # np.copyto does not see every overlap of 1-d arrays.
    return deliver(view.copy() if out is None or np.may_share_memory(x, out) else view, out)


def deliver(result: Any, out: np.ndarray | None) -> Any:
    """The result, in ``out`` if the caller gave one; an input that overlaps ``out`` has been read by now."""
    if out is None:
        return result
    np.copyto(out, result, casting="unsafe")
    return out
