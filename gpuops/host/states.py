"""States of reductions as structured arrays: of parts of an array, of several such parts, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..definition.in_cuda import expansions
from ..definition.reduction import Bound
from ..definition.task import Task
from ..plan.geometry import Shape
from .forms import States, merged_along
from .reduce import End, beside, delivered, reduced, squeezed
from .results import Flags, report
from .terms import adds_exactly, expansions_of


def partial(
    a: np.ndarray, where: Any = True, weights: np.ndarray | None = None, *, task: Task, steps: Shape, offset: int
) -> np.ndarray:
    """The states of an array, with dims kept; ``steps`` and ``offset`` give the indices of its elements."""
    arrays = a, beside(a, weights, task), None if where is True else np.broadcast_to(where, a.shape)
    if adds_exactly(task.bound):
        return expansions_of(arrays, task)
    end = End(task, stops=True)
    with end.flags.kept():
        fields = reduced(task, arrays, end, steps, offset)
    return joined(task.bound.wide, fields)


def layout(bound: Bound) -> np.dtype:
    """The dtype of the states."""
    return expansions(bound) if adds_exactly(bound) else bound.wide.state


def merge(states: np.ndarray, *, task: Task) -> np.ndarray:
    """The states of whole parts, with dims kept."""
    with Flags().kept():
        return joined(task.bound.wide, merged(task.bound.wide, states, task.axis))


def finish(states: np.ndarray, *, task: Task, n: float) -> Any:
    """The results of ``n`` elements each."""
    end = End(task)
    with end.flags.kept():
        results = end.results(merged(end.wide, states, task.axis), n)
    end.tell()
    if end.flags.found and not all([np.isfinite(each).all() for each in results]):
        report(end.flags.found)
    return delivered([squeezed(each, task) for each in results], task)


def merged(bound: Bound, states: np.ndarray, axis: Shape) -> States:
    """The fields of states, merged along some axes, with dims kept."""
    return merged_along(bound, [states[name] for name in bound.state.names or ()], axis)


def joined(bound: Bound, fields: Sequence[Any]) -> np.ndarray:
    """Fields as one structured array."""
    made = np.empty(np.shape(fields[0]), bound.state)
    for name, each in zip(bound.state.names or (), fields, strict=True):
        made[name] = each
    return made
