"""Exact sums of NumPy arrays, see `definition.exact`: those of few elements at once, others in blocks (`exact_end`)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..definition.records import DOT
from ..definition.task import Task
from ..plan.geometry import Shape
from . import few_sums, reduce
from .block import Layout, layout
from .blocks import compiled
from .exact_end import End, converts
from .exact_engines import INSTALLED, LOADED, LOOPS, at_once
from .reduce import beside, delivered, squeezed

TINY = 2.0**-500  # deviations whose squares have lost digits


def call_of(task: Task, shape: Shape, strides: Shape) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What makes an exact sum without a mask or an initial value, and its options."""
    bound, size, (of, *_) = task.bound, math.prod(shape), task.bound.sums or ("", "", "")
    if not size or bound.val.kind == "c" or converts(bound) or of == "weighted":
        return sum, {"task": task}
    double, seen = bound.result == np.float64, layout(shape, strides, task.axis, False, False)
    whole = size == math.prod([shape[d] for d in task.axis]) and bound.takes is None
    listed = LOOPS - 1 if double and INSTALLED else few_sums.VECTOR
    run: Any = None
    if of == "moments":
        run = few_sums.moments if not double and size <= few_sums.FEW else None
    elif whole and size <= listed:
        run = few_sums.of_vector
    elif not double and size <= few_sums.FEW:
        run = few_sums.of_narrow
    if seen.lies and bound.takes is None and bound.result in LOADED and size <= reduce.BLOCK:
        plain = reduce.call_of(task, shape, strides) if double else None
        return loaded, {"task": task, "seen": seen, "run": run, "plain": plain}
    return (few, {"task": task, "run": run}) if run else (sum, {"task": task})


def few(a: np.ndarray, out: np.ndarray | None = None, *, task: Task, run: Callable[..., Any]) -> Any:
    """An exact sum of few elements, if that is sure and has no error to report."""
    try:
        with np.errstate(all="raise"):
            result = run(a, task)
    except FloatingPointError:
        result = None
    if result is None:
        return sum(a, out, task=task)
    results = result if isinstance(result, tuple) else (result,)
    ones = (1,) * a.ndim
    return delivered([squeezed(each if each.ndim else np.full(ones, each), task) for each in results], task, out)


def loaded(
    a: np.ndarray, out: np.ndarray | None = None, *, task: Task, seen: Layout, run: Any,
    plain: tuple[Callable[..., Any], dict[str, Any]] | None,
) -> Any:  # fmt: skip
    """An exact sum of one block that is seen where it lies, if Numba is loaded; else by another function, if given, or
    without Numba a plain one."""
    rounding: Any = compiled("compiled_rounding") if "numba" in sys.modules else None
    if rounding is None and run is not None:
        return few(a, out, task=task, run=run)
    if rounding is None:
        return sum(a, out, task=task) if INSTALLED or plain is None else by_numpy(a, out, True, task, *plain)
    found = at_once(a.transpose(seen.dims).reshape(seen.lengths), task)
    if found is None:
        return sum(a, out, task=task)
    return delivered([seen.back(each, task.keepdims) for each in found], task, out)


def sum(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, weights: np.ndarray | None = None, *, task: Task,
    always: bool = False,
) -> Any:  # fmt: skip
    """What becomes of exact sums. ``always``: with NumPy alone, if need be."""
    end = End(task, a.size, always)
    if end.engine is None:
        return as_it_comes(a, out, where, weights, task)
    mask = None if where is True else np.broadcast_to(where, a.shape)
    results = end.results((a, beside(a, weights, task), mask))
    end.tell()
    return delivered([squeezed(each, task) for each in results], task, out)


def dot(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """The product of two vectors."""
    of, end, _ = task.bound.sums or ("", "", "")
    dtype, rounding = task.bound.val, compiled("compiled_rounding") if "numba" in sys.modules else None
    if rounding is not None and a.dtype == b.dtype == dtype and dtype in LOADED and 0 < a.size <= reduce.BLOCK:
        found = rounding.results(a.reshape(1, -1, 1), of, end, dtype, b.reshape(1, -1, 1))
        if found is not None:
            return delivered([found[0, 0]], task, out)
    return sum(a, out, weights=b, task=task)


def as_it_comes(a: np.ndarray, out: np.ndarray | None, where: Any, weights: np.ndarray | None, task: Task) -> Any:
    """The sum with the errors that adding has; but that of squares that are too large or too small, exact."""
    if weights is not None and task.bound.reduction is DOT:
        return reduce.deliver(np.dot(a, weights), out)
    made: Any = reduce.reduce, {"where": where, "weights": weights, "task": task}
    if where is True and task.initial is None and task.places is None:
        made = reduce.call_of(task, a.shape, a.strides)
    return by_numpy(a, out, where, task, *made)


def by_numpy(
    a: np.ndarray, out: np.ndarray | None, where: Any, task: Task, run: Callable[..., Any], options: dict[str, Any]
) -> Any:
    """What a function makes of sums; deviations whose squares are too large or too small are made of exact sums."""
    if (task.bound.sums or ("", ""))[1] != "deviation":
        return run(a, out, **options)
    with np.errstate(over="ignore", under="ignore"):
        found = run(a, **options)
    size = np.abs(found)
    if np.isinf(size).any() or ((size < TINY) & differ(a, where, task)).any():
        return sum(a, out, where, task=task, always=True)
    return reduce.deliver(found, out)


def differ(a: np.ndarray, where: Any, task: Task) -> Any:
    """Of which results the elements are not all the same."""
    ends: Any = (np.fmax, -np.inf), (np.fmin, np.inf)
    most, least = (ufunc.reduce(a, task.axis, None, None, task.keepdims, start, where) for ufunc, start in ends)
    return most > least
