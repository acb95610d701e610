"""Reductions in steps: states of parts of an array, which merge in any grouping, and the results of states.

A state is an element of a structured array, with the fields of the reduction's record. So arrays that are too large for
one call are reduced in chunks, or on several devices. (Exact sums merge in `sums`.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..call.facts import FACTS
from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK
from ..definition.in_cuda import written
from ..definition.reduction import Reduction
from ..definition.task import Task, positions
from ..errors import error
from ..plan import reductions
from ..plan.builder import Builder
from ..plan.dtypes import dtype_name
from ..plan.geometry import Shape, offset_type
from ..plan.reductions import OpStruct
from ..plan.work import ArraySpec, HostCall, Work, new_array
from .arguments import as_mask
from .reduction import beside, new_results, reduced

FACTS[Reduction] = id  # records are constants


@operation(a=ARRAY, where=MASK, weights=ARRAY)
def partial(
    a, where, weights, record, val, axis, options=(), steps=(), offset=0, places=None, strategy=None
):
    """The states of an array over some axes, whose dims are kept.

    Parameters
    ----------
    a : array
    where : array of bools or True
        The elements that take part.
    weights : array or None
        The second operand, in the shape of ``a`` or of some of its dims. Kernels read only one, so it excludes a mask.
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
    places : tuple of ints or None
        The dims of ``a`` that those of ``weights`` go along; by default all.
    strategy : str or None
        Strategies that merge on the host do not do so here: states stay on the device.

    Returns
    -------
    structured array
        For exact sums, expansions (`in_cuda.expansions`), with which `sums` continues.

    Raises
    ------
    ValueError
        If both a mask and weights are given.
    """
    from ..host import states  # which costs time at import

    op, mask, y = record.name, as_mask(record.name, where, a.shape), None if weights is None else val
    if mask is not None and weights is not None:
        raise error(ValueError, op, "takes a where mask or weights, not both")
    if weights is not None and places is None:
        places = (*range(weights.ndim),)
    task = Task(record.bind(a.dtype, val, y), axis, True, places=places, options=dict(options))
    steps = steps or positions(a.shape, axis)
    host = HostCall(states.partial, {"task": task, "steps": steps, "offset": offset})
    target = new_array("out", reduced(a, axis, True)[0], written(task.bound), machine=a.machine)
    if a.machine is None:
        return Work(op, (target._replace(dtype=states.layout(task.bound)),), host)
    builder = Builder(a.machine)
    second = mask if weights is None else along(weights, places, a)
    struct, x, other = beside(record, mask), builder.readable(a), second and builder.readable(second)
    if struct.traits.indexed:
        other = reductions.positions(x, axis, steps)._replace(offset=offset)
    if target.size:
        problem = problem_of(struct, x, other, target, axis, val, dict(options))
        if struct.traits.indexed:
            last = offset + sum([(a.shape[d] - 1) * step for d, step in zip(axis, steps, strict=True)])
            problem = problem._replace(integer=offset_type((last + 1,)))
        strategy = strategy and strategy.removesuffix(reductions.ON_HOST)
        builder.add(reductions.plan(problem.writing(), strategy, a.machine.multiprocessors))
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
        problem = problem_of(record.counted or record.struct, states, None, target, axis, val, {}).reading().writing()
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
    results, call = new_results(task, states), HostCall(host.finish, {"task": task, "n": n})
    if states.machine is None:
        return Work(record.name, results, call, form=form)
    builder = Builder(states.machine)
    if results[0].size:
        if first is None and record.start == 0 and val.kind in "fcV":
            first = np.zeros((), val)
        struct, numbers = record.counted or record.struct, {"n": n, **dict(options)}
        problem = problem_of(struct, states, None, results[0], axis, val, numbers, first).reading()
        problem = problem._replace(root=record.root, second=results[1] if len(results) > 1 else None)
        builder.add(reductions.plan(problem, None, states.machine.multiprocessors))
    return Work(record.name, results, call, builder.finish(), form=form)


def problem_of(
    struct: OpStruct, x: ArraySpec, other: ArraySpec | None, target: ArraySpec, axis: Shape, val: np.dtype,
    options: dict[str, float], first: np.ndarray | None = None,
) -> reductions.Problem:  # fmt: skip
    """A reduction of elements or of states; options that are of no account before the end may be missing."""
    struct = struct._replace(exact=0)  # in no fewer bytes than fields have
    asked = {*struct.options, "ddof"} - reductions.problems.OPTIONS.keys()  # (planners compute the others)
    given: dict[str, Any] = dict.fromkeys(asked, 0.0) | options
    start = None if first is None else first.tobytes()
    return reductions.problem(struct, x, other, target, axis, dtype_name(val), start, **given)


def along(weights: ArraySpec, places: Shape, a: ArraySpec) -> ArraySpec:
    """Weights of some dims of an array, in its shape; a number as it is."""
    if weights.value is not None:
        return weights
    lengths, strides = (dict(zip(places, each, strict=True)) for each in (weights.shape, weights.strides))
    beside = tuple([strides[d] if lengths.get(d, 1) > 1 else 0 for d in range(a.ndim)])
    return weights._replace(shape=a.shape, strides=beside)
