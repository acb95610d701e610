"""What reductions have in common: the description of their calls, and what their arguments mean."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..call.arrays import is_scalar
from ..definition.reduction import Reduction
from ..definition.structs import kinds_of
from ..definition.task import Task
from ..errors import error
from ..plan import reductions
from ..plan.builder import TOGETHER, Builder, of_first_dim, shared
from ..plan.dtypes import CTYPES, FLOATS, INTEGERS, REALS, dtype_name
from ..plan.expression import Stack
from ..plan.geometry import Shape, contiguous_strides, dense_strides, memory_order
from ..plan.reductions import OpStruct
from ..plan.work import ArraySpec, HostCall, Plan, Work, new_array
from .arguments import (
    as_mask,
    check_array,
    check_dtype,
    check_out,
    dtype_of,
    fitted,
    normalize_axis,
)
from .table import check_strategy, is_exact

NOT_GIVEN: Any = np._NoValue  # type: ignore[attr-defined]  # None has a meaning of its own for ``initial``


def reduction(
    record: Reduction, a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any,
    strategy: str | None, op: str = "", **options: Any,
) -> Work:  # fmt: skip
    """The description of every reduction of one array to one result; of a public function with another name, if given
    ``op``."""
    op = op or record.name
    check_strategy(op, strategy)
    check_array(op, "a", a)
    if record.plain and a.dtype.kind in "biu":
        record = record.plain
    axis = normalize_axis(op, axis, a.shape)
    val, result = dtypes(op, record, a.dtype, dtype_of(op, dtype), out)
    shape, steps = reduced(a, axis, keepdims)
    if out is not None:
        check_out(op, out, shape, result, record.rules.casting)
    mask = as_mask(op, where, a.shape)
    first = None
    if initial is not NOT_GIVEN and initial is not None:
        first = as_initial(op, initial, val)
    elif initial is None or not record.rules.identity:
        check_identity(op, a.shape, axis, mask, initial is None or record.rules.initial)
    if mask is not None:
        record = record.masked or record
    call = on_host(record, a, val, axis, keepdims, mask, initial=first, **options)
    if a.machine is None:
        return Work(op, (out or new_array("out", shape, result, steps),), call)
    struct = beside(record, mask)
    exact = [each for each in record.exact if is_exact(each, dtype_name(a.dtype), dtype_name(val), a.size)]
    if mask is None and exact:
        struct, val = exact[0], np.dtype(np.int64)
    elif record.start == 0 and first is None and dtype_name(val) not in INTEGERS:
        first = np.zeros((), val)
    start = None if first is None else first.tobytes()
    given = {"val": dtype_name(val), "initial": start, "root": record.root, **options}
    problem: Callable[..., reductions.Problem] = partial(reductions.problem, struct, **given)
    if isinstance(a.made, Stack) and 0 not in axis and mask is None and out is None and strategy is None:
        target = new_array("out", shape, result, machine=a.machine)
        return Work(op, (target,), call, stacked(record, problem, a, target, axis))
    builder = Builder(a.machine)
    x = builder.readable(a) if reductions.ON_HOST in (strategy or "") else builder.computable(a, axis)
    other = mask and builder.readable(mask)
    target = builder.target(out, out is not None and shared(out, x, other), shape, result, steps)
    add_reduction(builder, problem(x, other, target, axis), strategy)
    builder.deliver(target, out)
    return Work(op, (out or target,), call, builder.finish())


def stacked(
    record: Reduction, problem: Callable[..., reductions.Problem], a: ArraySpec, out: ArraySpec, axis: Shape
) -> Plan:
    """The plan of a reduction of arrays that an expression stacks: exact sums of all elements are made together, other
    reductions one after the other. ``problem``: of x, a second operand, the result and the dims."""
    assert a.machine is not None
    builder, axis = Builder(a.machine), tuple([d - 1 for d in axis])
    whole = record.sums is not None and record.sums.of == "x" and record.takes is None
    if whole and {dtype_name(a.dtype), dtype_name(out.dtype)} <= {*FLOATS} and out.shape[0] <= TOGETHER:
        made = problem(builder.computable(a.made.together(a), axis), None, of_first_dim(out, 0), axis)
        add_reduction(builder, made._replace(several=out.shape[0]))
    else:
        for k, x in enumerate(a.made.parts(a)):
            add_reduction(builder, problem(builder.computable(x, axis), None, of_first_dim(out, k), axis))
    return builder.finish()


def several(
    record: Reduction, form: Any, a: Any, axis: Any, dtype: Any, keepdims: bool, where: Any, strategy: str | None,
    **options: Any,
) -> Work:  # fmt: skip
    """The description of every reduction of one array to several new results, which come in a named tuple."""
    op = record.name
    check_strategy(op, strategy)
    check_array(op, "a", a)
    axis = normalize_axis(op, axis, a.shape)
    val, _ = dtypes(op, record, a.dtype, dtype_of(op, dtype), None)
    mask = as_mask(op, where, a.shape)
    if not record.rules.identity:
        check_identity(op, a.shape, axis, mask, False)
    if mask is not None:
        record = record.masked or record
    return described(op, on_host(record, a, val, axis, keepdims, mask, form=form, **options), a, mask, strategy)


def described(
    op: str, host: HostCall, a: ArraySpec, other: ArraySpec | None = None, strategy: str | None = None
) -> Work:
    """The description of a reduction to new arrays, given what the CPU does. ``other`` is a mask or, if the task has
    ``places``, the second operand."""
    task: Task = host.options["task"]
    results = new_results(task, a)
    if a.machine is None:
        return Work(op, results, host, form=task.form)
    struct = beside(task.bound.reduction, other if task.places is None else None)
    if struct.traits.indexed:
        other = reductions.positions(a, task.axis)
    plan = in_one_pass(struct, a, other, task.axis, task.bound.val, results, strategy, **task.options)
    return Work(op, results, host, plan, form=task.form)


def new_results(task: Task, a: ArraySpec) -> tuple[ArraySpec, ...]:
    """The results of a reduction of an array, or of states, as new arrays."""
    shape, steps = reduced(a, task.axis, task.keepdims)
    names = [f"r{i}" for i in range(len(task.form._fields))] if task.form else ["out"]  # which no operand has
    kinds = [task.bound.kinds[kind] for kind in task.bound.reduction.results]
    pairs = zip(names, kinds, strict=False)
    return tuple([new_array(name, shape, kind, steps, a.machine) for name, kind in pairs])


def beside(record: Reduction, mask: Any) -> OpStruct:
    """The struct that makes a record's states with a mask, or without if it is None."""
    return record.counted if mask is not None and record.counted else record.struct


def on_host(
    record: Reduction, a: ArraySpec, val: np.dtype, axis: Shape, keepdims: bool, mask: Any = None,
    y: np.dtype | None = None, **more: Any,
) -> HostCall:  # fmt: skip
    """What the CPU does: the record's definition, with options; ``initial``, ``form`` and ``places`` as in `Task`."""
    from ..host import reduce, sums  # which cost time at import

    given = {name: more.pop(name) for name in ("initial", "form", "places") if name in more}
    task = Task(record.bind(a.dtype, val, y), axis, keepdims, **given, options=more)
    exact = task.bound.sums is not None
    if a.machine is not None or mask is not None or task.initial is not None:
        return HostCall(sums.sum if exact else reduce.reduce, {"task": task})
    return HostCall(*(sums if exact else reduce).call_of(task, a.shape, a.strides))


def in_one_pass(
    struct: OpStruct, x: ArraySpec, other: ArraySpec | None, axis: Shape, val: np.dtype,
    results: tuple[ArraySpec, ...], strategy: str | None = None, **options: Any,
) -> Plan:  # fmt: skip
    """The plan of a reduction, perhaps of two operands, to one new result or two."""
    assert x.machine is not None
    builder = Builder(x.machine)
    x, other = builder.computable(x, axis), other and builder.readable(other)
    if other is not None and other.ndim > x.ndim:  # x is a scalar
        x = x.broadcast_to(other.shape)
    problem = reductions.problem(struct, x, other, results[0], axis, dtype_name(val), **options)
    if len(results) > 1:
        problem = problem._replace(second=results[1])
    add_reduction(builder, problem, strategy)
    return builder.finish()


def add_reduction(builder: Builder, problem: reductions.Problem, strategy: str | None = None) -> None:
    """Add a reduction to a plan."""
    if problem.outputs:
        builder.add(reductions.plan(problem, strategy, builder.machine.multiprocessors))


# ------------------------------------------------------------------------------------------- what the arguments mean


def dtypes(
    op: str, record: Reduction, x: np.dtype, dtype: np.dtype | None, out: ArraySpec | None
) -> tuple[np.dtype, np.dtype]:
    """The dtype in which NumPy would compute, and the result's."""
    rules = record.rules
    kinds = REALS if rules.real else CTYPES
    check_dtype(op, "a", x, kinds)
    if rules.logical:
        val = x
    elif dtype is not None:
        parts = rules.parts and x.kind == "c" and dtype.kind in "fV"
        val = np.result_type(dtype, np.complex64) if parts else dtype
    elif rules.floating:
        wider = out is not None and np.can_cast(x, out.dtype)
        val = np.dtype(np.float64) if x.kind in "biu" else out.dtype if wider and out is not None else x
    elif rules.arithmetic and out is None and x.kind in "biu":
        val = rules.ufunc.reduce(np.empty(0, x)).dtype
    elif rules.ufunc is None or (record.results[0] != "V" and x.kind == "c"):  # which a real ``out`` takes
        val = x
    else:
        try:
            val = rules.ufunc.resolve_dtypes((x if out is None else out.dtype, x, None), reduction=True)[0]
        except TypeError:
            rule = f"dtype {x.name} is not supported"
            if out is not None:
                rule = f"cannot cast the result from {x.name} to {out.dtype.name} of out"
            raise error(TypeError, op, rule) from None
    check_dtype(op, "the result", val, kinds)
    if rules.floating and (record.plain or not rules.ufunc) and val.kind not in "fcV":
        raise error(TypeError, op, f"dtype must be floating or complex, got {val.name}")
    return val, kinds_of(x, val)[record.results[0]]


def degrees(op: str, ddof: Any, correction: Any) -> float:
    """``ddof`` by either name."""
    if correction is not None and ddof != 0:
        raise error(ValueError, op, f"give ddof or correction, not both; got {ddof!r} and {correction!r}")
    name, given = ("ddof", ddof) if correction is None else ("correction", correction)
    if not isinstance(given, (int, float, np.integer, np.floating)):
        raise error(TypeError, op, f"{name} must be a real number, got {given!r}")
    return float(given)


def reduced(a: ArraySpec, axis: Shape, keepdims: bool) -> tuple[Shape, Shape]:
    """The shape of what is left of an array, and its strides in elements: in the array's memory order, as NumPy's."""
    dims = [d for d in range(a.ndim) if keepdims or d not in axis]
    shape = tuple([1 if d in axis else a.shape[d] for d in dims])
    if len(dims) < 2:
        return shape, contiguous_strides(shape)
    order = [dims.index(d) for d in memory_order(a.shape, a.strides) if d in dims]
    return shape, dense_strides(shape, tuple(order))


def check_identity(op: str, shape: Shape, axis: Shape, mask: Any, initial: bool) -> None:
    """Without an identity or ``initial``, every reduction must have an element that surely takes part."""
    if 0 in (shape[d] for d in axis):
        way = "; give initial" if initial else ""
        raise error(ValueError, op, f"zero-size array of shape {shape} has no identity over axis {axis}{way}")
    if mask is not None:
        raise error(ValueError, op, f"has no identity, so a where mask {'needs initial' if initial else 'is refused'}")


def as_initial(op: str, initial: Any, val: np.dtype) -> np.ndarray:
    """``initial`` as a 0-d array of the dtype that NumPy computes with."""
    if not is_scalar(initial):
        raise error(ValueError, op, f"initial must be a scalar, got {initial!r}")
    return fitted(op, "initial", initial, val)
