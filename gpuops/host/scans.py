"""Scans of NumPy arrays.

Results whose order of merging does not matter are NumPy's (`accumulate`); sums of floats are exact (`prefix_sums`);
what is rounded as it merges is merged in the order of a tree (`scan_trees`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..definition.in_numpy import is_half
from ..definition.scans import Task
from ..plan.geometry import Shape
from . import prefix_sums, scan_trees
from .blocks import indices
from .results import Flags, report
from .threads import shared

COST = 8  # of an element, where that of reading a byte is 1
LINES = 2**16  # elements of the lines that NumPy accumulates together

Run = Callable[[np.ndarray, np.ndarray, int, Task, Flags], None]


def scan(a: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """The scan of an array, delivered as the task's dtype."""
    axis = task.axis
    if axis is None:
        a, axis = a.reshape(-1), 0
    apart = out is not None and out.dtype == task.dtype and not np.may_share_memory(a, out)
    y = out if apart and out is not None else np.empty_like(a, task.dtype, subok=False)
    flags = Flags()
    with flags.kept():
        into(a, y, axis, task, flags)
        if out is not None and y is not out:
            np.copyto(out, y, casting="unsafe")
    if flags.found and (y.dtype.kind not in "fcV" or not np.isfinite(y).all()):
        report(flags.found, "accumulate")
    return y if out is None else out


def into(x: np.ndarray, y: np.ndarray, axis: int, task: Task, flags: Flags) -> None:
    """Write the results of x to y."""
    if not y.size:
        return
    before: Any = (slice(None),) * axis
    if task.reverse:
        x, y = x[(*before, slice(None, None, -1))], y[(*before, slice(None, None, -1))]
    if task.exclusive and not task.scan.ordered(task.bound.val):
        y[(*before, 0)] = task.nothing
        x, y = x[(*before, slice(-1))], y[(*before, slice(1, None))]
    if x.size:
        engine(task)(x, y, axis, task, flags)


def engine(task: Task) -> Run:
    """What makes the results of a task."""
    val, record = task.bound.val, task.scan.record
    if val.kind in "fcV" and record.sums is not None:
        return prefix_sums.scan
    return scan_trees.scan if task.scan.ordered(val) else accumulate


def accumulate(x: np.ndarray, y: np.ndarray, axis: int, task: Task, flags: Flags) -> None:
    """Results that NumPy merges one after the other."""
    ufunc, val = task.bound.ufunc, task.bound.val
    wide = np.dtype(np.float32) if is_half(val) else val

    def work(index: Any) -> None:
        with flags.kept():
            some, made = x[index], y[index]
            if wide == val == made.dtype:
                ufunc.accumulate(some, axis, val, made)
            else:
                made[...] = ufunc.accumulate(some.astype(val, copy=False), axis, wide)

    shared(max(COST * x.size, x.nbytes))(work, pieces(x.shape, x.strides, axis))


def pieces(shape: Shape, strides: Shape, axis: int, most: int = LINES) -> list[Any]:
    """Indices that cut an array into lines."""
    others = [d for d in range(len(shape)) if d != axis]
    return indices(shape, strides, others, max(1, most // max(1, shape[axis]))) if math.prod(shape) else []
