"""States of reductions as structured arrays: of parts of an array, of several such parts, and what becomes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..definition.reduction import Bound
from ..definition.task import Task
from ..plan.geometry import Shape
from .forms import States, merged_parts
from .reduce import beside, check, finished, reduced, squeezed, started
from .results import Flags


def partial(
    a: np.ndarray, where: Any = True, weights: np.ndarray | None = None, *, task: Task, steps: Shape, offset: int
) -> np.ndarray:
    """The states of an array, with dims kept; ``steps`` and ``offset`` give the indices of its elements."""
    flags = Flags()
    mask = None if where is True else np.broadcast_to(where, a.shape)
    with flags.kept():
        fields, _ = reduced(task, (a, beside(a, weights, task), mask), flags, steps, offset)
    return joined(task.bound.wide, fields)


def merge(states: np.ndarray, *, task: Task) -> np.ndarray:
    """The states of whole parts, with dims kept."""
    with Flags().kept():
        return joined(task.bound.wide, merged(task.bound.wide, states, task.axis))


def finish(states: np.ndarray, *, task: Task, n: float) -> Any:
    """The results of ``n`` elements each."""
    bound = task.bound.wide
    with Flags().kept():
        fields = started(bound, merged(bound, states, task.axis), task)
        given, results = finished(bound, fields, n, task.options)
    check(bound, given, task.axis)
    results = tuple([squeezed(each, task) for each in results])
    return task.form(*results[: len(task.form._fields)]) if task.form else results[0]


def merged(bound: Bound, states: np.ndarray, axis: Shape) -> States:
    """The fields of states, merged along some axes, with dims kept."""
    kept = [d for d in range(states.ndim) if d not in axis]
    shape = tuple([1 if d in axis else n for d, n in enumerate(states.shape)])
    parts = states.transpose(*axis, *kept).reshape(-1, *[states.shape[d] for d in kept])
    if not len(parts):
        return tuple([np.full(shape, bound.identities[name], bound.state[name]) for name in bound.state.names or ()])
    fields = merged_parts(bound, [parts[name] for name in bound.state.names or ()])
    return tuple([each.reshape(shape) for each in fields])


def joined(bound: Bound, fields: States) -> np.ndarray:
    """Fields as one structured array."""
    made = np.empty(np.shape(fields[0]), bound.state)
    for name, each in zip(bound.state.names or (), fields, strict=True):
        made[name] = each
    return made
