"""The NumPy implementation: what gpuops computes for NumPy arrays, and the model for the kernels.

Arguments have been checked by the public modules. Half types accumulate in float32, as on the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..definition.selection import Compress
from ..plan.dtypes import accumulator
from ..plan.geometry import Shape
from .results import deliver


def compare(*, function: Any, names: tuple[str, str], **operands: Any) -> Any:
    """np.allclose or np.array_equal, of operands with these names."""
    pair = [operands.pop(name) for name in names]
    return bool(function(*pair, **operands))


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


def nonzero(**array: np.ndarray) -> tuple[np.ndarray, ...]:
    """np.nonzero of an array, whatever its name."""
    (x,) = array.values()
    return np.nonzero(x)


def compress(condition: np.ndarray, a: np.ndarray, out: np.ndarray | None = None, *, choice: Compress) -> Any:
    """np.compress."""
    condition, beyond = condition[: choice.length], condition[choice.length :]
    counts = int(np.count_nonzero(condition)), int(np.count_nonzero(beyond))
    choice.result(*counts, None if out is None else out.shape)
    return deliver(np.compress(condition, a, choice.axis), out)


def broadcast_to(array: np.ndarray, *, shape: Shape, subok: bool) -> np.ndarray:
    """np.broadcast_to."""
    return np.broadcast_to(array, shape, subok)
