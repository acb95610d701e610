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
    result = normalized(op, *exponentials(x, axis, val, where, scale), where)
    return deliver(result.astype(dtype if out is None else out.dtype), out)


def normalized(op: str, values: np.ndarray, top: Any, total: Any, where: np.ndarray | None) -> np.ndarray:
    """softmax or log_softmax of values, given each row's maximum and sum of exponentials."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        shifted = values - top
        # With +inf in the row, log_softmax makes every other element -inf and +inf itself NaN, as in SciPy.
        log_total = np.where(np.isposinf(top), 0, np.log(total))
        result = np.exp(shifted) / total if op == "softmax" else shifted - log_total
    if where is not None:
        result = np.where(where, result, values.dtype.type(-np.inf if op == "log_softmax" else 0))
    return result


def logsumexp(
    x: np.ndarray, axis: Shape, val: np.dtype, dtype: np.dtype, out: np.ndarray | None, keepdims: bool,
    where: np.ndarray | None, scale: float,
) -> Any:  # fmt: skip
    """log(sum(exp(x * scale))) over ``axis``."""
    _, top, total = exponentials(x, axis, val, where, scale)
    result = logarithm(top, total)
    result = result if keepdims else np.squeeze(result, axis)[()]
    return deliver(result.astype(dtype if out is None else out.dtype), out)


def logarithm(top: Any, total: Any) -> Any:
    """log(sum(exp)) of rows, given their maxima and sums of exponentials."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isinf(top), top, top + np.log(total))


def exponentials(
    x: np.ndarray, axis: Shape, val: np.dtype, where: np.ndarray | None, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x * scale, its maximum, and the sum of exp(x * scale - maximum), over the selected elements; dims are kept."""
    chosen = True if where is None else where
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        values = scaled(x, val, scale)
        top = np.max(values, axis=axis, keepdims=True, initial=-np.inf, where=chosen)
        total = np.sum(np.exp(values - top), axis=axis, keepdims=True, where=chosen)
    return values, top, total


def scaled(x: np.ndarray, val: np.dtype, scale: float) -> np.ndarray:
    """x * scale in ``val``."""
    values = x.astype(val, copy=False)
    return values if scale == 1 else values * val.type(scale)


def statistics(x: np.ndarray, axis: Shape, val: np.dtype, where: np.ndarray | None, scale: float) -> np.ndarray:
    """Each row's maximum and sum of exponentials, as `pairs`; a row without any above -inf has the sum 0."""
    _, top, total = exponentials(x, axis, val, where, scale)
    return pairs(top, np.where(np.isneginf(top), 0, total))


def merged(stats: np.ndarray, axis: Shape) -> np.ndarray:
    """The statistics of whole rows, given those of their parts."""
    top = np.max(stats.real, axis=axis, keepdims=True)
    with np.errstate(invalid="ignore", under="ignore"):
        powers = np.where(stats.imag == 0, 0, np.exp(stats.real - top))
        return pairs(top, np.sum(powers * stats.imag, axis=axis, keepdims=True))


def pairs(top: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Maxima and sums in one array: as the real and imaginary parts of complex numbers."""
    stats = np.empty(top.shape, np.result_type(top, np.complex64))
    stats.real, stats.imag = top, total
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
