"""Reductions of Dask arrays: each chunk gives its states, and a tree merges these, a few at a time.

So each chunk is read once, whatever the reduction. Between tasks states are words in one more dim, which all libraries
concatenate. Ops that give a result for each element go over chunks once more, with the states of whole rows.
logsumexp is such a tree too, comparisons are trees of truths.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.layers import ArrayBlockIdDep

from ..call.arrays import find
from ..call.dispatch import describe
from ..definition.records import LOGSUMEXP, SIGNED_LOGSUMEXP, WEIGHTED_LOGSUMEXP
from ..definition.reduction import Reduction
from ..definition.task import Task, positions
from ..ops import broadcast, reduce, states
from ..ops.rows import finished
from ..ops.softmax import arguments
from ..plan.geometry import Shape
from ..plan.work import ArraySpec, Work, new_array
from .dask_graphs import (
    Function,
    Operand,
    beside,
    blocks,
    converted,
    is_dask,
    labelled,
    like,
    several,
    tree,
    whole,
)

# ------------------------------------------------------------------------------------------------------------- states


def reduction(call: partial[Any], work: Work, where: Any, operands: dict[str, Any]) -> Any:
    """The results of a described call: of an array, perhaps with weights, and a mask. Its tasks get the call, and
    describe it themselves: records hold functions, which do not travel."""
    (a, weights), task = (*operands.values(), None)[:2], task_of(call)
    x, name = whole(a), call.func.__name__
    dims = tuple(range(x.ndim))
    if weights is None and task.places is not None:
        weights = np.ones((), task.bound.val)
    labels = (x, dims), beside(where, x), beside(weights, x, task.places)
    if all(x.numblocks[d] == 1 for d in task.axis):
        first, *more = operands
        return at_once(call, work, dict(zip((first, "where", *more), labels, strict=False)))
    starts = [(0, *accumulate(sizes)) for sizes in x.chunks]
    steps = positions(x.shape, task.axis) if task.bound.indexed else ()
    state = (task.bound.wide if find(name, "a", x._meta) is None else task.bound).state
    meta = like(x, x.ndim, work.results[0].dtype)  # (of no account: chunks of states meet tasks alone)
    parts = da.blockwise(
        partial(part, call, steps, starts), dims, *labels[0], *labels[1], *labels[2], ArrayBlockIdDep(x.chunks), dims,
        token=name, dtype=meta.dtype, meta=meta, align_arrays=False, adjust_chunks=dict.fromkeys(task.axis, 1),
    )  # fmt: skip
    count, dtypes = math.prod([x.shape[d] for d in task.axis]), [each.dtype for each in work.results]
    if task.bound.reduction.each:
        join = partial(merge, call, state)
        (known,) = tree(parts, name, task.axis, True, join, join, dtypes)
        last = partial(elements, call, state, count)
        return blocks(last, f"{name}-finish", dims, [*labels[:2], (known, dims)], dtypes[0])
    last = partial(finish, call, state, count)
    results = tree(parts, name, task.axis, task.keepdims, partial(merge, call, state), last, dtypes)
    return task.form(*results) if task.form else results[0]


def at_once(call: partial[Any], work: Work, operands: dict[str, Operand]) -> Any:
    """The results where each is of one chunk: those of the call with chunks."""
    (_, dims), *_ = operands.values()
    task, name, dtypes = task_of(call), call.func.__name__, [each.dtype for each in work.results]
    axis = () if task.bound.reduction.each else task.axis
    kept = [d for d in dims if task.keepdims or d not in axis]
    function = partial(with_chunks, call, [*operands])
    found = blocks(function, name, kept, [*operands.values()], dtypes[0], dict.fromkeys(axis, 1))
    return task.form(*several(found, name, dtypes)) if task.form else found


def with_chunks(call: partial[Any], names: list[str], *chunks: Any) -> Any:
    """A described call, with chunks in the place of specs; they come in lists along the dims that are reduced."""
    given = dict(zip(names, map(alone, chunks), strict=True))
    args = [given[each.name] if isinstance(each, ArraySpec) else each for each in call.args]
    options = {key: given[key] if isinstance(each, ArraySpec) else each for key, each in call.keywords.items()}
    return call.func(*args, **options)


def alone(chunk: Any) -> Any:
    """The only chunk of nested lists."""
    while isinstance(chunk, list):
        (chunk,) = chunk
    return chunk


def task_of(call: partial[Any]) -> Task:
    """The reduction that a call with specs describes."""
    task: Task = describe(call.func, *call.args, **call.keywords).host.options["task"]
    return task


def part(call: partial[Any], steps: Shape, starts: list[Shape], x: Any, where: Any, weights: Any, block: Shape) -> Any:
    """The states of a chunk, given its place among others."""
    task = task_of(call)
    bound, options = task.bound, tuple(task.options.items())
    offset = sum([starts[d][block[d]] * step for d, step in zip(task.axis, steps, strict=False)])
    strategy = None if bound.reduction.each else call.keywords.get("strategy")
    more = {"steps": steps, "offset": offset, "places": task.places, "strategy": strategy}
    return packed(states.partial(x, where, weights, bound.reduction, bound.val, task.axis, options, **more))


def merge(call: partial[Any], state: np.dtype, x: Any, axis: Shape, keepdims: bool) -> Any:
    """The states of several chunks in one."""
    bound = task_of(call).bound
    return packed(states.merge(unpacked(x, state), bound.reduction, bound.val, axis))


def finish(call: partial[Any], state: np.dtype, n: int, x: Any, axis: Shape, keepdims: bool) -> Any:
    """The results of the states of several chunks."""
    task = task_of(call)
    bound, options = task.bound, tuple(task.options.items())
    initial = None if task.initial is None else task.initial[()]
    given = unpacked(x, state), bound.reduction, bound.val, axis, keepdims, n, initial, options, task.form
    return states.finish(*given)


def elements(call: partial[Any], state: np.dtype, n: int, x: Any, where: Any, known: Any) -> Any:
    """What the elements of a chunk become, given the states of their rows."""
    work = describe(call.func, *call.args, **call.keywords)
    task, dtype = work.host.options["task"], work.host.options["dtype"]
    given = task.bound.reduction, task.bound.val, task.axis, n, dtype, tuple(task.options.items())
    return finished(x, where, unpacked(known, state), *given)


def packed(made: Any) -> Any:
    """States as words, in a dim that comes last: libraries do not concatenate structured arrays."""
    return made.reshape(*made.shape, 1).view(f"u{made.dtype.alignment}")


def unpacked(x: Any, state: np.dtype) -> Any:
    """The states that words are."""
    return (x if x.flags.c_contiguous else x.copy()).view(state)[..., 0]


# ----------------------------------------------------------------------------------------------------- trees of numbers


def compared(op: Function, result: ArraySpec, *arrays: Any, **options: Any) -> da.Array:
    """allclose: whether a function says so of all chunks."""
    ndim = max(map(np.ndim, arrays))
    ones = dict.fromkeys(range(ndim), 1)
    part = partial(comparison, partial(op, **options), ndim)
    parts = blocks(part, op.__name__, range(ndim), [*arrays], result.dtype, ones)
    (found,) = tree(parts, op.__name__, (*ones,), False, reduce.all, reduce.all, [result.dtype])
    return found


def comparison(function: Function, ndim: int, x: Any, y: Any) -> Any:
    """What is true of two chunks."""
    return np.reshape(function(x, y), (1,) * ndim)


def equal(op: Function, result: ArraySpec, x: Any, y: Any, **options: Any) -> da.Array:
    """array_equal."""
    return compared(op, result, x, y, **options) if np.shape(x) == np.shape(y) else da.zeros((), bool)


# ------------------------------------------------------------------------------------------------ sums of exponentials


class Rows(NamedTuple):
    """Sums of exponentials along some axes: in which dtype, with which factor; whether they have weights, and whether
    their signs are asked for."""

    axis: Shape
    val: np.dtype
    scale: float
    weighted: bool = False
    signed: bool = False

    @property
    def record(self) -> Reduction:
        return SIGNED_LOGSUMEXP if self.signed else WEIGHTED_LOGSUMEXP if self.weighted else LOGSUMEXP

    @property
    def options(self) -> tuple[tuple[str, float], ...]:
        return (("scale", self.scale),)

    def state(self, x: da.Array) -> np.dtype:
        """The dtype of states of chunks like those of an array."""
        bound = self.record.bind(self.val, self.val)
        return (bound.wide if find(self.record.name, "x", x._meta) is None else bound).state

    def of_chunk(self, x: Any, where: Any, b: Any = None) -> Any:
        """The states of a chunk, some of whose elements may have weights."""
        if self.weighted:
            x = x if x.ndim else broadcast.where(b != b, 0, x)  # (a scalar, which lies on no device)
            b = b if np.ndim(b) else np.asarray(b, self.val)
            b = b if where is True else broadcast.where(broadcast.broadcast_to(where, x.shape), b, 0)
            where = True
        return packed(states.partial(x, where, b, self.record, self.val, self.axis, self.options))

    def merged(self, state: np.dtype, x: Any, axis: Shape, keepdims: bool) -> Any:
        """The states of several chunks in one."""
        return packed(states.merge(unpacked(x, state), self.record, self.val, axis))

    def logarithms(self, state: np.dtype, out: np.dtype, x: Any, axis: Shape, keepdims: bool) -> Any:
        """The logarithms of sums, and their signs if these are asked for."""
        form = Signed if self.signed else None
        found = states.finish(unpacked(x, state), self.record, self.val, axis, keepdims, 0, None, self.options, form)
        return tuple([converted(each, out) for each in found]) if self.signed else converted(found, out)


class Signed(NamedTuple):
    """A logarithm and the sign of what it is of."""

    value: Any
    sign: Any


def log_sum(
    op: Function, result: ArraySpec, a: Any, b: Any, axis: Any, dtype: Any, where: Any, scale: Any, keepdims: bool,
    return_sign: bool, strategy: Any,
) -> Any:  # fmt: skip
    """logsumexp."""
    a, name = a if is_dask(a) else np.asarray(a), op.__name__  # (a scalar goes with chunks of any kind)
    a = a if is_dask(b) else whole(a)
    of_weights = new_array("b", b.shape, b.dtype) if hasattr(b, "dtype") else b
    given = arguments(name, new_array("a", a.shape, a.dtype), axis, dtype, True, scale, of_weights, "a")
    shape, axis = given.x.shape, given.axis
    a, b = (da.broadcast_to(each, shape) if is_dask(each) and each.shape != shape else each for each in (a, b))
    dims, x = tuple(range(len(shape))), a if is_dask(a) else b
    rows = Rows(axis, given.val, given.scale, b is not None or return_sign, return_sign)
    operands = [labelled(a, len(dims)), beside(where, x), labelled(1.0 if b is None else b, len(dims))]
    state = rows.state(x)
    parts = blocks(rows.of_chunk, name, dims, operands[: 2 + rows.weighted], given.val, dict.fromkeys(axis, 1))
    last = partial(rows.logarithms, state, result.dtype)
    results = tree(parts, name, axis, keepdims, partial(rows.merged, state), last, [result.dtype] * (1 + return_sign))
    return tuple(results) if return_sign else results[0]
