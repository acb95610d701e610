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
from .block import layout
from .exact_end import End
from .exact_engines import INSTALLED, LOADED, LOOPS, at_once, converts
from .reduce import beside, delivered, squeezed
from .results import in_order

TINY = 2.0**-500  # deviations whose squares have lost digits


def call_of(task: Task, shape: Shape, strides: Shape) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What makes an exact sum without a mask or an initial value, and its options."""
    bound, size, (of, *_) = task.bound, math.prod(shape), task.bound.sums or ("", "", "")
    if not size or bound.val.kind == "c" or converts(bound) or of == "weighted":
        return sum, {"task": task}
    double = bound.result == np.float64
    whole = size == math.prod([shape[d] for d in task.axis]) and bound.takes is None and of != "moments"
    run = few_sums.of_vector if whole and size <= (LOOPS - 1 if double and INSTALLED else few_sums.VECTOR) else None
    seen = layout(shape, strides, task.axis, False, False)
    if bound.result in LOADED and size <= reduce.BLOCK and seen.lies and (run or double):
        plain = reduce.call_of(task, shape, strides) if double else None
        return small, {"task": task, "run": run, "plain": plain}
    return (small, {"task": task, "run": run}) if run else (sum, {"task": task})


def small(
    a: np.ndarray, out: np.ndarray | None = None, *, task: Task, run: Any,
    plain: tuple[Callable[..., Any], dict[str, Any]] | None = None,
) -> Any:  # fmt: skip
    """An exact sum of few elements: if Numba is not loaded, by ``run``, or if there is no Numba, by a ``plain`` one."""
    if "numba" in sys.modules or (run is None and (INSTALLED or plain is None)):
        return sum(a, out, task=task)
    if run is None:
        return by_numpy(a, out, True, task, *(plain or ()))
    found = few_sums.quiet(run, a, task)
    return sum(a, out, task=task) if found is None else delivered([shaped(found, a, task)], task, out)


def sum(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, weights: np.ndarray | None = None, *, task: Task,
    always: bool = False,
) -> Any:  # fmt: skip
    """What becomes of exact sums. ``always``: with NumPy alone, if need be, after another function."""
    arrays = a, beside(a, weights, task), None if where is True else np.broadcast_to(where, a.shape)
    if 0 < a.size <= reduce.BLOCK and (found := at_once(arrays, task, task.keepdims)) is not None:
        return delivered(found, task, out)
    for few in (few_sums.of_narrow, few_sums.of_not_finite) if 0 < a.size <= few_sums.FEW else ():
        if (found := few_sums.quiet(few, arrays, task)) is not None:
            return delivered([shaped(each, a, task) for each in found], task, out)
    end = End(task, a.size, always)
    if end.engine is None:
        return as_it_comes(a, out, where, weights, task)
    results = end.results(arrays)
    end.warned &= not always  # what was made before has warned
    end.tell()
    return delivered([squeezed(each, task) for each in results], task, out)


def shaped(result: Any, a: np.ndarray, task: Task) -> Any:
    """A result with dims kept, or a scalar, as it is delivered."""
    kept = in_order(result, a, task.axis) if result.ndim else np.full((1,) * a.ndim, result)
    return squeezed(kept, task)


def dot(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """The product of two vectors."""
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
    huge, tiny = np.isinf(found), np.less(found, TINY)
    for some, meant in ((huge, have_freedom), (tiny, differ)):
        if some.any() and (some & meant(a, where, task)).any():
            return sum(a, out, where, task=task, always=True)
    return reduce.deliver(found, out)


def have_freedom(a: np.ndarray, where: Any, task: Task) -> Any:
    """Which results have degrees of freedom."""
    n: Any = np.broadcast_to(where, a.shape).sum(task.axis, keepdims=task.keepdims)
    return n > task.options["ddof"]


def differ(a: np.ndarray, where: Any, task: Task) -> Any:
    """Of which results the elements are not all the same."""
    ends: Any = (np.fmax, -np.inf), (np.fmin, np.inf)
    most, least = (ufunc.reduce(a, task.axis, None, None, task.keepdims, start, where) for ufunc, start in ends)
    return most > least
