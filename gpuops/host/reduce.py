"""Reductions of NumPy arrays: a record's definition in plain NumPy, on blocks that stay in cache, on threads.

How an array is cut depends on its shape and strides alone: the bits of a result do not depend on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..definition.in_numpy import is_half
from ..definition.reduction import Bound
from ..definition.task import Task
from ..errors import error
from ..plan.geometry import Shape
from . import threads
from .block import Block, layout
from .blocks import Index, indices, innermost
from .forms import CHAIN, NARROW, States, as_it_lies, combined, has_loops, merged_parts, states
from .results import Flags, deliver, in_order, new_result, report, warn

FEW = 2**15  # elements of arrays that NumPy reduces as they are
BLOCK = 2**18  # elements of a block of which NumPy makes others beside it
PASSED = 2**18  # of one that compiled loops go over twice
COPIED = 2**19  # of one that is converted
VIEWED = 2**20  # of one that is reduced where it lies, at least
PIECES = 16  # of such blocks, at most
LESS = 16  # elements that become one, at least, in a block that has parts of rows
COST = 4  # of an element, where that of reading a byte is 1
Arrays = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]


def reduce(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, weights: np.ndarray | None = None, *, task: Task
) -> Any:
    """The result of a reduction, or its results."""
    bound, axis = task.bound, task.axis
    mask = None if where is True else np.broadcast_to(where, a.shape)
    flags = Flags()
    with flags.kept():
        fields, count = reduced(task, (a, beside(a, weights, task), mask), flags)
        fields, early = started(bound.wide, fields, task), {*flags.found}
        given, results = finished(bound.wide, fields, count, task.options)
    check(bound.wide, given, axis)
    found = flags.found if bound.reduction.takes is None else early  # (the mean of nothing is NaN, without an error)
    if found and not all([np.isfinite(each).all() for each in results]):
        report(found)
    results = tuple([squeezed(each, task) for each in results])
    return task.form(*results[: len(task.form._fields)]) if task.form else deliver(results[0], out)


def call_of(task: Task, shape: Shape, strides: Shape) -> Callable[..., Any]:
    """What makes a reduction without a mask or an initial value: one call of NumPy, if that is right and fast."""
    bound, axis, size = task.bound, task.axis, math.prod(shape)
    if not size or bound.y is not None:
        return reduce
    if bound.viewed and size <= VIEWED:
        found = layout(shape, strides, axis, False)
        wide = found.lies and not 1 < found.lengths[2] < NARROW
        if chain(bound, shape, strides, axis) <= CHAIN and (wide or size <= FEW):
            return directly
        return as_seen if found.lies or found.first else reduce
    searches = bound.reduction.form in PLACES and bound.takes is None and bound.reduction.results == ("I",)
    return search if searches and size <= FEW and not is_half(bound.x) and len(axis) in (1, len(shape)) else reduce


def chain(bound: Bound, shape: Shape, strides: Shape, axis: Shape) -> int:
    """How many elements NumPy adds one after the other, if that costs digits; not those that lie side by side."""
    length = math.prod([shape[d] for d in axis])
    if bound.exact or length == 1:
        return 1
    inner = innermost(shape, strides)
    return length // shape[inner] if inner in axis else length


def directly(a: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """The result of a reduction by one call of NumPy, with its errors."""
    return ended(task.bound.ufunc.reduce(a, task.axis, task.bound.reduces_in, None, task.keepdims), a, out, task)


def as_seen(a: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """The same of columns, which are added up in chunks."""
    made = as_it_lies(task.bound, a, task.axis)
    if made is None:
        return reduce(a, out, task=task)
    made = squeezed(made, task)
    return ended(made + 0 if task.bound.ufunc is np.add else made, a, out, task)  # (-0.0 is 0.0)


def ended(made: Any, a: np.ndarray, out: np.ndarray | None, task: Task) -> Any:
    """The result of a state."""
    bound = task.bound
    if not bound.trivial or bound.reduction.warning is not None:
        count = math.prod([a.shape[d] for d in task.axis])
        given, (made, *_) = finished(bound, (made.astype(bound.state[0], copy=False),), count, {})
        check(bound, given, task.axis)
    return deliver(made if made.dtype == bound.result else made.astype(bound.result), out)


PLACES: dict[str, Callable[..., Any]] = {"greatest": np.argmax, "least": np.argmin}


def search(a: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """The first places of extremes by one call of NumPy."""
    along = task.axis[0] if len(task.axis) < a.ndim else None
    found = PLACES[task.bound.reduction.form](a, along, keepdims=task.keepdims)
    return in_order(found, a, task.axis, task.keepdims, out)


def room_of(bound: Bound, a: np.ndarray, axis: Shape, mask: np.ndarray | None) -> int:
    """About how many elements a block is to have."""
    seen = layout(a.shape, a.strides, axis, bound.indexed)
    viewed = mask is None and bound.viewed and (seen.lies or seen.first != ())
    if viewed and bound.exact and threads.limit() == 1:  # no other thread helps, and any cut gives the same bits
        return a.size
    searched = bound.reduction.form in PLACES and bound.takes is None and seen.lies and seen.lengths[2] == 1
    looped = has_loops(bound) and not bound.reduction.form and seen.lies
    if viewed or ((looped or searched) and not is_half(a.dtype)):
        return max(VIEWED, a.size // PIECES)
    return COPIED if bound.moved is not None and seen.lies else PASSED if has_loops(bound) else BLOCK


def squeezed(result: np.ndarray, task: Task) -> Any:
    """A result without the dims that were reduced, unless they are kept; a scalar, if none is left."""
    return result if task.keepdims else result.squeeze(task.axis)[()]


def beside(a: np.ndarray, weights: np.ndarray | None, task: Task) -> np.ndarray | None:
    """The second operand in the shape of the array, whose dims it has in ``places``; ones, if it was not given."""
    if task.places is None:
        return None
    heavy = np.ones((), task.bound.val) if weights is None else weights.transpose(np.argsort(task.places).tolist())
    lengths = [a.shape[d] if d in task.places else 1 for d in range(a.ndim)]
    return np.broadcast_to(heavy.reshape(lengths), a.shape)


def started(bound: Bound, fields: States, task: Task) -> States:
    """States to which an initial value contributes, or what the reduction starts with."""
    initial = task.initial
    if initial is None:
        initial = bound.reduction.start if bound.kinds["A"].kind in "fc" else None
    if initial is None:
        return fields
    return combined(bound, bound.map(x=np.asarray(initial, bound.kinds["A"]), **task.options), fields)


def finished(bound: Bound, fields: States, count: Any, options: dict[str, float]) -> tuple[dict[str, Any], States]:
    """What `Bound.finish` is given, and the results that it gives; of so many elements."""
    given = dict(zip(bound.leaves_of["s"], fields, strict=True)) | options
    if bound.asks_for_count:
        given["n"] = np.asarray(count, np.float64)
    return given, bound.finish(**given)


def check(bound: Bound, given: dict[str, Any], axis: Shape) -> None:
    """Raise or warn of states that the record refuses or warns of."""
    refused, warned = bound.reduction.refuses, bound.reduction.warning
    if refused is not None and bound.refuses(**given)[0].any():
        raise error(refused[0], bound.reduction.name, f"{refused[1]} along axis {axis}")
    if warned is not None and bound.warns(**given)[0].any():
        warn(warned[0])


def reduced(
    task: Task, arrays: Arrays, flags: Flags, steps: Shape = (), offset: int = 0
) -> tuple[States, Any]:
    """The states of each result, with dims kept, and its number of elements."""
    bound, axis, (a, _, mask) = task.bound, task.axis, arrays
    wide, names = bound.wide, bound.state.names or ()
    counted = mask is not None and bound.asks_for_count
    count = math.prod([a.shape[d] for d in axis])
    steps = (steps or positions(a.shape, axis)) if bound.indexed else ()
    room = room_of(bound, a, axis, mask)
    if 0 < a.size <= room:
        block = Block(bound, arrays, axis, offset, steps)
        made = states(block, task.options)
        made = tuple([each.astype(wide.state[name], copy=False) for each, name in zip(made, names, strict=True)])
        return made, block.layout.back(block.count, True) if counted else count
    pieces, parts = cut(a.shape, a.strides, axis, room) if a.size else ([], 1)
    found = [new_result(a, axis, wide.state[name], parts) for name in names]
    counts = np.zeros_like(new_result(a, axis, np.dtype(np.int64), parts)) if counted else None

    def work(piece: Piece) -> None:
        first = offset + sum([(piece.block[d].start or 0) * step for d, step in zip(axis, steps, strict=False)])
        block = Block(bound, [None if each is None else each[piece.block] for each in arrays], axis, first, steps)
        with flags.kept():
            for whole, part in zip(found, states(block, task.options), strict=True):
                whole[piece.result] = part
            if counts is not None:
                counts[piece.result] = block.layout.back(block.count, True)

    threads.shared(max(COST * a.size, a.nbytes))(work, pieces)
    if not pieces:
        for each, name in zip(found, names, strict=True):
            each[...] = wide.identities[name]
    fields = tuple([each[0] for each in found]) if parts == 1 else merged_parts(wide, found)
    return fields, count if counts is None else np.add.reduce(counts, 0)


def positions(shape: Shape, axis: Shape) -> Shape:
    """By how much the index of an element grows along each of the dims that are reduced."""
    lengths = [shape[d] for d in axis]
    return tuple([math.prod(lengths[i + 1 :]) for i in range(len(axis))])


class Piece(NamedTuple):
    """A block of an array: its index, and that of its results, of which there are several that become one."""

    block: Index
    result: Index


@lru_cache(maxsize=256)
def cut(shape: Shape, strides: Shape, axis: Shape, room: int) -> tuple[list[Piece], int]:
    """Blocks of about so many elements, as they lie in memory: parts of rows, or of some side by side, if a block has
    enough of each; else rows. And how many results become one."""
    found = indices(shape, strides, range(len(shape)), room)
    if len(found) > 1 and math.prod([extent(found[0][d], shape[d]) for d in axis]) < LESS:
        kept = [d for d in range(len(shape)) if d not in axis]
        found = indices(shape, strides, kept, max(1, room // math.prod([shape[d] for d in axis])))
    parts: dict[Index, int] = {}  # by their index along the dims that are reduced
    pieces = []
    for index in found:
        part = parts.setdefault(tuple([(index[d].start, index[d].stop) for d in axis]), len(parts))
        pieces.append(Piece(index, (part, *(slice(None) if d in axis else each for d, each in enumerate(index)))))
    return pieces, len(parts)


def extent(index: slice, length: int) -> int:
    """How many elements of a dim a slice has."""
    return len(range(*index.indices(length)))
