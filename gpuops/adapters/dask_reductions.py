"""Reductions of Dask arrays: each chunk gives its states, and a tree merges these, a few at a time.

So each chunk is read once, whatever the reduction. Between tasks states are words in one more dim, which all libraries
concatenate. Ops that give a result for each element go over chunks once more, with the states of whole rows.
logsumexp is such a tree too, comparisons are trees of truths.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate
from typing import Any

import dask.array as da
import numpy as np
from dask.array.dispatch import concatenate_lookup
from dask.layers import ArrayBlockIdDep

from ..call.arrays import find
from ..call.dispatch import describe
from ..definition.task import Task, positions
from ..host import terms
from ..ops import broadcast, reduce, states, sums
from ..ops.rows import finished
from ..plan.geometry import Shape
from ..plan.work import ArraySpec, Work
from .dask_graphs import (
    Function,
    Operand,
    beside,
    blocks,
    converted,
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
    name, shape = call.func.__name__, work.host.options.get("shape", np.shape(a))
    x = whole(a) if np.shape(a) == shape else blocks(spread, name, range(len(shape)), [a, weights], task.bound.x)
    dims = tuple(range(x.ndim))
    if weights is None and task.places is not None:
        weights = np.ones((), task.bound.val)
    labels = (x, dims), beside(where, x), beside(weights, x, task.places)
    if all(x.numblocks[d] == 1 for d in task.axis):
        first, *more = operands
        return at_once(call, work, dict(zip((first, "where", *more), labels, strict=False)))
    starts = [(0, *accumulate(sizes)) for sizes in x.chunks]
    steps = positions(x.shape, task.axis) if task.bound.indexed else ()
    exact = sums.adds_exactly(task.bound, x._meta)
    make = partial(exact_part, call) if exact else partial(part, call, steps, starts)
    state = (task.bound.wide if find(name, "a", x._meta) is None else task.bound).state
    meta = like(x, x.ndim, work.results[0].dtype)  # (of no account: chunks of states meet tasks alone)
    parts = da.blockwise(
        make, dims, *labels[0], *labels[1], *labels[2], ArrayBlockIdDep(x.chunks), dims,
        token=name, dtype=meta.dtype, meta=meta, align_arrays=False, adjust_chunks=dict.fromkeys(task.axis, 1),
    )  # fmt: skip
    count, dtypes = math.prod([x.shape[d] for d in task.axis]), [each.dtype for each in work.results]
    if exact:
        last = partial(exact_finish, call, count, dtypes, x._meta)
        results = tree(parts, name, task.axis, task.keepdims, exact_merge, last, dtypes)
        return gathered(work, results)
    if task.bound.reduction.each:
        join = partial(merge, call, state)
        (known,) = tree(parts, name, task.axis, True, join, join, dtypes)
        last = partial(elements, call, state, count)
        return blocks(last, f"{name}-finish", dims, [*labels[:2], (known, dims)], dtypes[0])
    last = partial(finish, call, state, count, dtypes)
    results = tree(parts, name, task.axis, task.keepdims, partial(merge, call, state), last, dtypes)
    return gathered(work, results)


def gathered(work: Work, results: list[Any]) -> Any:
    """The result, or several in their form."""
    return getattr(work.form, "_make", work.form or tuple)(results) if len(results) > 1 else results[0]


def spread(x: Any, y: Any) -> Any:
    """A chunk, or a number, in the shape to which it broadcasts with another one."""
    x = x if np.ndim(x) else broadcast.where(y == y, x, x)  # (which lies where that does)
    return broadcast.broadcast_to(x, np.broadcast_shapes(x.shape, y.shape))


def at_once(call: partial[Any], work: Work, operands: dict[str, Operand]) -> Any:
    """The results where each is of one chunk: those of the call with chunks."""
    (_, dims), *_ = operands.values()
    task, name, dtypes = task_of(call), call.func.__name__, [each.dtype for each in work.results]
    axis = () if task.bound.reduction.each else task.axis
    kept = [d for d in dims if task.keepdims or d not in axis]
    function = partial(with_chunks, call, [*operands])
    found = blocks(function, name, kept, [*operands.values()], dtypes[0], dict.fromkeys(axis, 1))
    return gathered(work, several(found, name, dtypes))


def with_chunks(call: partial[Any], names: list[str], *chunks: Any) -> Any:
    """A described call, with chunks in place of specs; they come in lists along the dims that are reduced."""
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
    strategy, places = None if bound.reduction.each else call.keywords.get("strategy"), task.places
    if weights is not None and where is not True:  # (kernels read one operand beside x; a weight of 0 leaves one out)
        weights, where, places = broadcast.where(broadcast.broadcast_to(where, x.shape), weights, 0), True, None
    more = {"steps": steps, "offset": offset, "places": places, "strategy": strategy}
    return packed(states.partial(x, where, weights, bound.reduction, bound.val, task.axis, options, **more))


def merge(call: partial[Any], state: np.dtype, x: Any, axis: Shape, keepdims: bool) -> Any:
    """The states of several chunks in one."""
    bound = task_of(call).bound
    return packed(states.merge(unpacked(x, state), bound.reduction, bound.val, axis))


def finish(
    call: partial[Any], state: np.dtype, n: int, dtypes: list[np.dtype], x: Any, axis: Shape, keepdims: bool
) -> Any:
    """The results of the states of several chunks."""
    task = task_of(call)
    bound, options = task.bound, tuple(task.options.items())
    initial = None if task.initial is None else task.initial[()]
    given = unpacked(x, state), bound.reduction, bound.val, axis, keepdims, n, initial, options, task.form
    found = states.finish(*given)
    if not task.form:
        return converted(found, dtypes[0])
    return tuple([converted(each, dtype) for each, dtype in zip(found, dtypes, strict=False)])


def exact_part(call: partial[Any], x: Any, where: Any, weights: Any, block: Shape) -> terms.Terms:
    """The terms of a chunk's exact sums."""
    task = task_of(call)
    return sums.partial(x, where, weights, task, call.keywords.get("strategy"))


def exact_merge(x: terms.Terms, axis: Shape, keepdims: bool) -> terms.Terms:
    """As few terms as hold those of several chunks."""
    return terms.merged(x)


def exact_finish(
    call: partial[Any], n: int, dtypes: list[np.dtype], sample: Any, x: terms.Terms, axis: Shape, keepdims: bool
) -> Any:
    """The results of the terms of several chunks."""
    found = sums.finish(x, task_of(call), n, sample)
    if len(dtypes) == 1 and not isinstance(found, tuple):
        return converted(found, dtypes[0])
    return tuple([converted(each, dtype) for each, dtype in zip(found, dtypes, strict=False)])


@concatenate_lookup.register(terms.Terms)
def together(parts: list[terms.Terms], axis: int) -> terms.Terms:
    """The terms of chunks along a dim that is reduced."""
    return terms.together(parts)


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
