"""A result for each element of a row, of NumPy arrays: by a record's definition on blocks, or in a faster form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..definition.expressions import number
from ..definition.task import Task
from . import rows
from .blocks import convert, indices, leave_out
from .reduce import End, reduced
from .results import Flags, deliver, report
from .states import merged
from .threads import shared

BLOCK = 2**16  # elements of a block, of which NumPy makes others beside it
COST = 8  # of an element, where that of reading a byte is 1


def normalized(
    x: np.ndarray, out: np.ndarray | None = None, where: np.ndarray | None = None, *, task: Task, dtype: np.dtype
) -> Any:
    """What a row op makes of an array, delivered as ``dtype``."""
    if form := FORMS.get(task.bound.reduction.form):
        return form(x, out, where, task=task, dtype=dtype)
    mask = None if where is None else np.broadcast_to(where, x.shape)
    end = End(task)
    with end.flags.kept():
        found = reduced(task, (x, None, mask), end)
    end.tell()
    beside = [each for each in (x, mask) if each is not None]
    apart = out is not None and not any(np.may_share_memory(out, each) for each in beside)
    y = out if apart and out is not None else np.empty_like(x, dtype if out is None else out.dtype, subok=False)
    elements(task, x, mask, found, y, end.flags)
    return y if out is None or y is out else deliver(y, out)


def finished(
    x: np.ndarray, where: np.ndarray | None = None, *, states: np.ndarray, task: Task, n: float, dtype: np.dtype
) -> np.ndarray:
    """The same of a part of an array, given the states of its rows, which have ``n`` elements."""
    end, y = End(task), np.empty_like(x, dtype, subok=False)
    with end.flags.kept():
        found = end.results(merged(end.wide, states, ()), n)
    end.tell()
    elements(task, x, None if where is None else np.broadcast_to(where, x.shape), found, y, end.flags)
    return y


def elements(
    task: Task, x: np.ndarray, mask: np.ndarray | None, found: Sequence[Any], y: np.ndarray, flags: Flags
) -> None:
    """Results of elements, given those of their rows, with dims kept."""
    bound = task.bound
    val = bound.kinds["A"]
    nothing = float(number(bound.reduction.left_out, val))
    names = [f"r{i}" for i in range(len(found))]

    def work(index: Any) -> None:
        index = (*index, ...)  # (so that also one element is an array)
        some = x[index]
        at = tuple([slice(None) if d in task.axis else each for d, each in enumerate(index)])
        known = [each[at].astype(val, copy=False) for each in found]
        if some.dtype != val:
            convert(some, some := np.empty_like(some, val))
        with flags.kept():
            (made,) = map(np.asarray, bound.each(x=some, **dict(zip(names, known, strict=True)), **task.options))
        if mask is not None:
            leave_out(made, mask[index], nothing)
        with flags.kept():
            convert(made, y[index])

    shared(max(COST * x.size, x.nbytes))(work, indices(x.shape, x.strides, range(x.ndim), BLOCK) if x.size else [])
    if flags.found and not np.isfinite(y).all():
        report(flags.found)


#: What makes results faster, by forms of records.
FORMS: dict[str, Callable[..., Any]] = {"exponentials": rows.normalized}
