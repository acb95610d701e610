"""Ops that give a result for each element of a row: the description of their calls, whole and in steps."""

from typing import NamedTuple

import numpy as np

from .. import plan
from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK
from ..definition.reduction import Reduction
from ..definition.task import Task
from ..plan import reductions
from ..plan.builder import Builder, shared, unsafe
from ..plan.dtypes import ctype, dtype_name
from ..plan.expression import computable
from ..plan.geometry import Shape, broadcast_strides, like_strides
from ..plan.work import ArraySpec, HostCall, Plan, Work, new_array
from .arguments import as_mask, check_out
from .states import problem_of
from .table import check_strategy


class Rows(NamedTuple):
    """Arguments of a row op that have been checked."""

    x: ArraySpec
    mask: ArraySpec | None
    axis: Shape
    val: np.dtype  # of the arithmetic
    result: np.dtype


def normalized(
    record: Reduction, given: Rows, out: ArraySpec | None, strategy: str | None, **option: float
) -> Work:
    """The description of an op that gives a result for each element, and takes a number."""
    from ..host import each  # which costs time at import

    op, (x, mask, axis, val, result) = record.name, given
    check_strategy(op, strategy)
    if out is not None:
        check_out(op, out, x.shape, result)
    record = record.masked or record if mask is not None else record
    task = Task(record.bind(x.dtype, val), axis, True, options=option)
    host = HostCall(each.normalized, {"task": task, "dtype": result})
    if x.machine is None:
        return Work(op, (out or new_array("out", x.shape, result),), host)
    builder = Builder(x.machine)
    source, mask = builder.computable(x, axis), mask and builder.readable(mask)
    steps = like_strides(x.shape, source.steps)
    target = builder.target(out, out is not None and shared(out, mask), x.shape, result, steps)
    if target.size:
        made = plan_of(task, source, mask, target, strategy)
        if source.made is not None and not computable(made, source):
            source = builder.readable(x)
            made = plan_of(task, source, mask, target, strategy)
        if target is out and (unsafe(out, source) if made.in_place else shared(out, source)):
            target = builder.target(out, True, x.shape, result)
            made = plan_of(task, source, mask, target, strategy)
        builder.add(made)
    builder.deliver(target, out)
    return Work(op, (out or target,), host, builder.finish())


def plan_of(task: Task, x: ArraySpec, mask: ArraySpec | None, target: ArraySpec, strategy: str | None) -> Plan:
    """The plan of a row op of these arrays."""
    record, (number,) = task.bound.reduction, task.options.values()
    assert x.machine is not None and record.row is not None
    val = dtype_name(task.bound.val)
    problem = plan.rows.problem(record.row, record.struct, x, mask, target, task.axis, val, number)
    return plan.rows.plan(problem, strategy, x.machine)


@operation(x=ARRAY, where=MASK, states=ARRAY)
def finished(x, where, states, record, val, axis, n, dtype, options):
    """The results of the elements of an array, or of a part of it, given the states of their rows.

    Parameters
    ----------
    x : array
    where : array of bools or True
        The elements that take part.
    states : structured array
        With the dims of ``x``, of length 1 along ``axis``.
    record, val, axis, options
        As in `states.partial`.
    n : int
        How many elements a row has.
    dtype : dtype
        Of the results.
    """
    from ..host import each  # which costs time at import

    op, mask = record.name, as_mask(record.name, where, x.shape)
    task = Task(record.bind(x.dtype, val), axis, True, options=dict(options))
    host = HostCall(each.finished, {"task": task, "n": n, "dtype": dtype})
    if x.machine is None:
        return Work(op, (new_array("out", x.shape, dtype),), host)
    builder = Builder(x.machine)
    x, mask, known = builder.readable(x), mask and builder.readable(mask), builder.readable(states)
    target = new_array("out", x.shape, dtype, like_strides(x.shape, x.steps), x.machine)
    if target.size:
        ((_, number),) = options
        if record.row.states is None:
            known = builder.temporary("known", states.shape, val)
            problem = problem_of(record.struct, states, None, known, axis, val, {"n": n, **dict(options)})
            builder.add(reductions.plan(problem.reading(), None, x.machine.multiprocessors))
        out, source = (plan.maps.argument(each, ctype(each.dtype), x.shape) for each in (target, x))
        chosen = mask and plan.maps.argument(mask, ctype(mask.dtype), x.shape)
        over = broadcast_strides(known.shape, known.steps, x.shape)
        of_rows = plan.rows.statistics_arg(record.row, val.name, over, known.name, known.start)
        builder.add(plan.rows.last_pass(record.row, x.shape, out, (source, chosen), of_rows, number))
    return Work(op, (target,), host, builder.finish())
