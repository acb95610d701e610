"""Reductions in steps: states of parts of an array, which merge in any grouping, and the results of states.

A state is an element of a structured array, with the fields of the reduction's record. What is too large for one call
is reduced so: in chunks, on several devices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..call.facts import FACTS
from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK
from ..definition.reduction import Reduction
from ..definition.task import Task
from ..plan import reductions
from ..plan.builder import Builder
from ..plan.dtypes import dtype_name
from ..plan.geometry import Shape, offset_type
from ..plan.reductions import OpStruct
from ..plan.work import ArraySpec, HostCall, Work, new_array
from .arguments import as_mask
from .reduction import beside, reduced

FACTS[Reduction] = id  # records are constants


@operation(a=ARRAY, where=MASK, weights=ARRAY)
def partial(a, where, weights, record, val, axis, options=(), steps=(), offset=0):
    """The states of an array over some axes, whose dims are kept.

    Parameters
    ----------
    a : array
    where : array of bools or True
        The elements that take part.
    weights : array or None
        The second operand, in the shape of ``a``.
    record : Reduction
    val : dtype
        In which NumPy would compute.
    axis : tuple of ints
    options : tuple of (name, number)
        What the record asks for.
    steps : tuple of ints
        By how much the index of an element grows along each axis; by default as in an array of this shape.
    offset : int
        The index of the first element.

    Returns
    -------
    structured array
    """
    from ..host import states  # which costs time at import

    op, mask, second = record.name, as_mask(record.name, where, a.shape), None if weights is None else val
    beside_all = None if weights is None else (*range(a.ndim),)
    task = Task(record.bind(a.dtype, val, second), axis, True, places=beside_all, options=dict(options))
    steps = steps or places(a.shape, axis)
    host = HostCall(states.partial, {"task": task, "steps": steps, "offset": offset})
    target = new_array("out", reduced(a, axis, True)[0], task.bound.state, machine=a.machine)
    if a.machine is None:
        return Work(op, (target._replace(dtype=task.bound.wide.state),), host)
    struct, builder = beside(record, mask)._replace(exact=0), Builder(a.machine)  # in no fewer bytes than fields have
    x, other = builder.readable(a), mask and builder.readable(mask)
    if weights is not None:
        other = builder.readable(weights)
    if struct.traits.indexed:
        other = reductions.positions(x, axis, steps)._replace(offset=offset)
    if target.size:
        problem = reductions.problem(struct, x, other, target, axis, dtype_name(val), **given(struct, dict(options)))
        if struct.traits.indexed:
            last = offset + sum([(a.shape[d] - 1) * step for d, step in zip(axis, steps, strict=True)])
            problem = problem._replace(integer=offset_type((last + 1,)))
        builder.add(reductions.plan(problem.writing(), None, a.machine.multiprocessors))
    return Work(op, (target,), host, builder.finish())


@operation(states=ARRAY)
def merge(states, record, val, axis):
    """The states of whole parts, given those of parts of them along some axes. Dims are kept.

    Parameters
    ----------
    states : structured array
    record, val, axis
        As in `partial`.

    Returns
    -------
    structured array
    """
    from ..host import states as host

    task = Task(record.bind(val, val), axis, True)
    target = new_array("out", reduced(states, axis, True)[0], states.dtype, machine=states.machine)
    call = HostCall(host.merge, {"task": task})
    if states.machine is None:
        return Work(record.name, (target,), call)
    builder = Builder(states.machine)
    if target.size:
        problem = planned(states, record, (target,), axis, val, {}, None).writing()
        builder.add(reductions.plan(problem, None, states.machine.multiprocessors))
    return Work(record.name, (target,), call, builder.finish())


@operation(states=ARRAY)
def finish(states, record, val, axis, keepdims=False, n=0, initial=None, options=(), form=None):
    """The results of states, which are merged along some axes.

    Parameters
    ----------
    states : structured array
    record, val, axis, options
        As in `partial`.
    keepdims : bool
    n : int
        How many elements each result is of, for a record that asks for it.
    initial : scalar or None
        The initial value, or what the record has in its place.
    form : named tuple type or None
        What several results come in.

    Returns
    -------
    array, or several in ``form``
    """
    from ..host import states as host

    first = None if initial is None else np.asarray(initial, val)
    task = Task(record.bind(val, val), axis, keepdims, first, form, options=dict(options))
    shape, steps = reduced(states, axis, keepdims)
    names = form._fields if form else ("out",)
    results = tuple(
        [
            new_array(name, shape, task.bound.kinds[kind], steps, states.machine)
            for name, kind in zip(names, record.results, strict=False)
        ]
    )
    call = HostCall(host.finish, {"task": task, "n": n})
    if states.machine is None:
        return Work(record.name, results, call, form=form or tuple)
    builder = Builder(states.machine)
    if results[0].size:
        if first is None and record.start == 0 and val.kind in "fcV":
            first = np.zeros((), val)
        problem = planned(states, record, results, axis, val, {"n": n, **dict(options)}, first)
        builder.add(reductions.plan(problem, None, states.machine.multiprocessors))
    return Work(record.name, results, call, builder.finish(), form=form or tuple)


def planned(
    states: ArraySpec, record: Reduction, results: tuple[ArraySpec, ...], axis: Shape, val: np.dtype,
    options: dict[str, float], first: np.ndarray | None,
) -> reductions.Problem:  # fmt: skip
    """The merging of states as a problem."""
    struct = (record.counted or record.struct)._replace(exact=0)
    start = None if first is None else first.tobytes()
    problem = reductions.problem(
        struct, states, None, results[0], axis, dtype_name(val), start, **given(struct, options)
    )
    return problem.reading()._replace(root=record.root, second=results[1] if len(results) > 1 else None)


def given(struct: OpStruct, options: dict[str, float]) -> dict[str, Any]:
    """The options of a struct; those that are of no account until its states are finished may be missing."""
    return dict.fromkeys((*struct.options, "ddof"), 0.0) | options


def places(shape: Shape, axis: Shape) -> Shape:
    """By how much the index of an element grows along each axis."""
    lengths = [shape[d] for d in axis]
    return tuple([math.prod(lengths[i + 1 :]) for i in range(len(axis))])
