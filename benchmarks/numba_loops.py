"""Expressions as loops that Numba compiles, along the rows of contiguous matrices; a vector is one row.

Rows are shared by the cores, and few long ones are cut into parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import prange

from .expressions import THRESHOLD

PART = 2**14  # elements that a core takes at once

compiled = numba.njit(parallel=True, fastmath=False)


@compiled
def squared_distance(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.shape[0]):
        total = out[i]
        for j in range(x.shape[1]):
            difference = x[i, j] - y[i, j]
            total += difference * difference
        out[i] = total


@compiled
def greatest_difference(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.shape[0]):
        top = out[i]
        for j in range(x.shape[1]):
            top = max(top, abs(x[i, j] - y[i, j]))
        out[i] = top


@compiled
def share_above(x: Any, mask: Any, out: Any) -> None:
    for i in prange(x.shape[0]):
        count = 0
        for j in range(x.shape[1]):
            count += mask[i, j] and x[i, j] > THRESHOLD
        out[i] = count


@compiled
def polynomial(a: Any, b: Any, c: Any, d: Any, e: Any, out: Any) -> None:
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = ((a[i, j] * b[i, j] + c[i, j]) * d[i, j] + e[i, j]) * a[i, j]


@compiled
def standardize(x: Any, mean: Any, std: Any, out: Any) -> None:
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean[j]) / std[i, 0]


#: How parts of a row become its result.
JOINED: dict[str, Callable[..., Any]] = {
    "squared_distance": np.sum, "greatest_difference": np.max, "share_above": np.sum,
}  # fmt: skip
LOOPS = {loop.__name__: loop for loop in (squared_distance, greatest_difference, share_above, polynomial, standardize)}


def along_rows(op: str, dtype: np.dtype, *arrays: Any) -> Any:
    """The result of a reduction, of a dtype, along the rows of matrices or of vectors."""
    *outer, length = arrays[0].shape
    part = PART if length % PART == 0 else length
    parts = np.zeros((*outer, length // part), dtype)
    LOOPS[op](*(x.reshape(-1, part) for x in arrays), parts.reshape(-1))
    result = JOINED[op](parts, axis=-1)
    return result / length if op == "share_above" else result


def each_element(op: str, *arrays: Any) -> Any:
    """The result of an expression for each element of the first matrix, or vector."""
    rows = [x if x.ndim == 2 or op == "standardize" else x.reshape(1, -1) for x in arrays]
    out = np.empty_like(rows[0])
    LOOPS[op](*rows, out)
    return out.reshape(arrays[0].shape)
