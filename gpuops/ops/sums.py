"""Exact sums in steps: terms of parts of an array, on the host, which merge in any grouping, and results of terms.

Kernels and the CPU make expansions of a part (`states.partial`). The few that do not determine an exact sum
are computed again from the elements, on the host, where the rest is done too. So the result is that of the whole array,
to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..call.arrays import find
from ..definition.in_cuda import written
from ..definition.reduction import Bound
from ..definition.task import Task
from ..device.copies import to_device, to_host
from ..host import reduce, terms
from . import states


def adds_exactly(bound: Bound, sample: Any) -> bool:
    """Whether a reduction of arrays like this one is an exact sum."""
    if find(bound.reduction.name, "a", sample) is None:
        return terms.adds_exactly(bound)
    return written(bound) != bound.state


def partial(a: Any, where: Any, weights: Any, task: Task, strategy: str | None) -> terms.Terms:
    """The terms of an array's sums over some axes, whose dims are kept; see `states.partial`."""
    bound, context = task.bound, find(task.bound.reduction.name, "a", a)
    more = {"places": task.places, "strategy": strategy}
    made = states.partial(a, where, weights, bound.reduction, bound.val, task.axis, **more)

    def read() -> reduce.Arrays:
        """The elements, and what is beside them, on the host."""
        given: Any = (a, weights, None if where is True else where)
        x, y, mask = (each if context is None or each is None else to_host(context, each) for each in given)
        mask = mask if mask is None else np.broadcast_to(mask, x.shape)
        return x, reduce.beside(x, y, task), mask

    return terms.terms_of(made if context is None else to_host(context, made), task, read)


def finish(sums: terms.Terms, task: Task, n: int, sample: Any) -> Any:
    """The results of terms, which are of ``n`` elements each if the record does not count them, as arrays like the
    sample."""
    found, context = terms.finish(sums, task, n), find(task.bound.reduction.name, "a", sample)
    if context is None:
        return found
    if task.form:
        return task.form(*[to_device(context, np.asarray(each)) for each in found])
    return to_device(context, np.asarray(found))
