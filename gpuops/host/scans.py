"""Scans of NumPy arrays.

Results whose order of merging does not matter are NumPy's (`accumulate`); sums of floats are exact (`prefix_sums`);
what is rounded as it merges is merged in the order of a tree (`scan_trees`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ..definition.in_numpy import is_half
from ..definition.scans import Task
from ..plan.geometry import Shape, contiguous_strides
from ..plan.work import ArraySpec, HostCall
from . import exact_engines, prefix_sums, scan_trees
from .blocks import compiled, indices
from .results import Flags, report
from .threads import shared

COST = 8  # of an element, where that of reading a byte is 1
LINES, SIDE = 2**16, 64  # elements of lines that are accumulated together, and lines side by side
NARROW = 16  # lines side by side below which loops for bools would be slower than NumPy's
PLAIN = {np.dtype(code) for code in "?ilqfd"}  # dtypes that loops are compiled for

Run = Callable[[np.ndarray, np.ndarray, int, Task, Flags], None]


def call(task: Task, a: ArraySpec, out: ArraySpec | None) -> HostCall:
    """What scans an array: few elements that NumPy takes as they are and where they are by a call of NumPy's."""
    val = task.bound.val
    few = out is None and a.ndim > 0 and a.size < exact_engines.LOOPS and a.steps == contiguous_strides(a.shape)
    same = val == task.dtype and np.can_cast(a.dtype, val) and not is_half(val)
    axis = 0 if a.ndim == 1 else task.axis
    if not (few and same) or axis is None or task.reverse or task.exclusive or engine(task) is not accumulate:
        return HostCall(scan, {"task": task})
    return HostCall(plain, {"task": task, "axis": axis})


def plain(a: np.ndarray, *, task: Task, axis: int) -> Any:
    """NumPy's results."""
    return task.bound.ufunc.accumulate(a, axis, task.bound.val)


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
    before: Any = (slice(None),) * axis if task.reverse or task.exclusive else ()
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
    if wide == val == y.dtype and (loops := compiled_for(x, y, axis)) is not None:
        return by_loops(loops.SCANS[ufunc], x, y, axis)

    def write(some: np.ndarray, made: np.ndarray) -> None:
        if wide == val == made.dtype:
            ufunc.accumulate(some, axis, val, made)
        else:
            made[...] = ufunc.accumulate(some.astype(val, copy=False), axis, wide)

    def work(index: Any) -> None:
        with flags.kept():
            write(x[index], y[index])

    if x.size <= LINES:
        return write(x, y)
    return shared(max(COST * x.size, x.nbytes))(work, pieces(x.shape, x.strides, axis))


def compiled_for(x: np.ndarray, y: np.ndarray, axis: int) -> Any:
    """What scans arrays, if it is compiled for their dtypes, as they lie."""
    if y.dtype == bool and math.prod(x.shape[axis + 1 :]) < NARROW:
        return None
    lie = x.flags.c_contiguous and y.flags.c_contiguous
    known = lie and x.size >= exact_engines.LOOPS and (x.dtype == y.dtype or y.dtype == np.int64)
    return compiled("compiled_accumulate") if known and {x.dtype, y.dtype} <= PLAIN else None


def by_loops(scan: Any, x: np.ndarray, y: np.ndarray, axis: int) -> None:
    """Write results by what Numba compiles."""
    n, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    arrays = [each.view(np.uint8 if each.dtype == bool else each.dtype).reshape(-1, n, inner) for each in (x, y)]
    outer = x.size // (n * inner)
    most = max(1, LINES // (n * inner)), max(SIDE, LINES // n)

    def work(item: tuple[int, int]) -> None:
        scan(*arrays, (item[0], min(item[0] + most[0], outer), item[1], min(item[1] + most[1], inner)))

    shared(2 * max(x.nbytes, y.nbytes))(work, product(range(0, outer, most[0]), range(0, inner, most[1])))


def pieces(shape: Shape, strides: Shape, axis: int, most: int = LINES) -> list[Any]:
    """Indices that cut an array into lines."""
    others = [d for d in range(len(shape)) if d != axis]
    return indices(shape, strides, others, max(1, most // max(1, shape[axis]))) if math.prod(shape) else []
