"""Reductions of NumPy arrays: a record's definition in plain NumPy, on blocks that stay in cache, on threads.

How an array is cut depends on its shape and strides alone: the bits of a result do not depend on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..definition.in_numpy import is_half
from ..definition.reduction import Bound
from ..definition.task import Task, positions
from ..errors import error
from ..plan.geometry import Shape
from . import threads
from .block import Block, Layout, layout
from .blocks import Index, indices, innermost
from .exponentials import COMPILED, engine
from .forms import CHAIN, NARROW, States, along, combined, has_loops, merged_parts, states
from .results import Flags, deliver, new_result, report, warn
from .whole import SEARCHES, whole

FEW = 2**15  # elements of arrays that NumPy reduces as they are
BLOCK = 2**19  # elements of a block of which others are made beside it, or that is gone over twice
VIEWED = 2**20  # of one that is reduced where it lies, at least
PIECES = 16  # of such blocks, at most
LESS = 16  # elements that become one, at least, in a block that has parts of rows
COST = 4  # of an element, where that of reading a byte is 1
Arrays = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]


def reduce(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, weights: np.ndarray | None = None, *, task: Task
) -> Any:
    """The result of a reduction, or its results."""
    mask = None if where is True else np.broadcast_to(where, a.shape)
    end = End(task)
    with end.flags.kept():
        results = reduced(task, (a, beside(a, weights, task), mask), end)
    end.tell()
    if end.flags.found and not all([np.isfinite(each).all() for each in results]):
        report(end.flags.found)
    return delivered([squeezed(each, task) for each in results], task, out)


def logsumexp(
    a: np.ndarray, b: np.ndarray | None = None, out: np.ndarray | None = None, where: Any = True, *, task: Task,
    shape: Shape, dtype: np.dtype, run: Any = None,
) -> Any:  # fmt: skip
    """Logarithms of sums of exponentials, and perhaps their signs, as ``dtype``.

    Only a result too large for ``dtype`` is reported, as in SciPy. ``run``: the printed function, for small arrays."""
    a = np.broadcast_to(a, shape) if a.shape != shape else a
    mask = None if where is True else np.broadcast_to(where, shape)
    y = beside(a, b, task)
    with np.errstate(all="ignore"):
        if run is not None and (mask is None or y is not None):
            y = y if y is None or mask is None else np.where(mask, y, y.dtype.type(0))
            results = run(a, y, task.axis, None, None, **task.options)
        else:
            results = reduced(task, (a, y, mask), End(task))
    with np.errstate(under="ignore"):
        value, *signs = [squeezed(each.astype(dtype, copy=False), task) for each in results]
        return (deliver(value, out), *signs) if task.form else deliver(value, out)


def delivered(results: Sequence[Any], task: Task, out: np.ndarray | None = None) -> Any:
    """The results in their form, or the first in ``out``."""
    return task.form(*results[: len(task.form._fields)]) if task.form else deliver(results[0], out)


def call_of(task: Task, shape: Shape, strides: Shape) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What makes a reduction without a mask or an initial value, and its options: NumPy's own function at once, where
    that is as good."""
    bound, axis, size = task.bound, task.axis, math.prod(shape)
    seen = layout(shape, strides, axis, bound.indexed)
    general = reduce, {"task": task}
    if not size:
        return general
    if bound.viewed and (size <= VIEWED or bound.reduces_in is None) and (seen.lies or size <= FEW):
        chunked = chain(bound, shape, strides, axis) > CHAIN or (size > FEW // 2 and seen.lengths[2] < NARROW)
        return (merge, {"task": task, "seen": seen if chunked else None}) if seen.lies or not chunked else general
    few = is_small(bound, shape, strides, axis)
    if bound.reduction.form == "truths" and len(axis) == len(shape) and (few or bound.x.itemsize == 1):
        return count, {"task": task}
    if bound.indexed:  # NumPy looks along one dim or all, and has results in C order
        few &= len(axis) in (1, len(shape))
        few &= len(shape) - len(axis) < 2 or seen.dims == tuple(range(len(shape)))
        if few and bound.takes is None and task.form is None:
            return search, {"task": task}
    if not few or (run := whole(bound)) is None:
        return general
    given = {"place": axis[0] if len(axis) == 1 else None, "n": np.float64(math.prod([shape[d] for d in axis]))}
    return at_once, {"task": task, "run": run, **given}


def is_small(bound: Bound, shape: Shape, strides: Shape, axis: Shape) -> bool:
    """Whether NumPy may reduce an array as it is: it has few elements, and sums keep their digits."""
    return 0 < math.prod(shape) <= FEW and chain(bound, shape, strides, axis) <= CHAIN


def chain(bound: Bound, shape: Shape, strides: Shape, axis: Shape) -> int:
    """How many elements NumPy adds one after the other, if that costs digits; not those that lie side by side."""
    inner = innermost(shape, strides) if shape else None
    return 1 if bound.exact else math.prod([shape[d] for d in axis if d != inner])


def merge(a: np.ndarray, out: np.ndarray | None = None, *, task: Task, seen: Layout | None) -> Any:
    """A reduction of elements that a ufunc merges: as they are, or seen as columns in chunks."""
    bound = task.bound
    if a.size > VIEWED and threads.limit() > 1:
        return reduce(a, out, task=task)
    found = []
    for ufunc in bound.ufuncs:
        if seen is None:
            found.append(ufunc.reduce(a, task.axis, bound.reduces_in, None, task.keepdims))
        else:
            state = along(a.transpose(seen.dims).reshape(seen.lengths), ufunc, bound.reduces_in)
            state = state if bound.reduction.start is None else state + state.dtype.type(0)
            found.append(seen.back(state, task.keepdims))
    if bound.trivial and found[0].dtype == bound.result and not bound.warns_of_states:
        return delivered(found, task, out)
    given = dict(zip(bound.leaves_of["s"], found, strict=True))
    if bound.asks_for_count or bound.reduction.warning:
        given["n"] = np.float64(math.prod([a.shape[d] for d in task.axis]))
    if bound.warns_of_states and bound.warns(**given)[0].any():
        return reduce(a, out, task=task)
    return delivered(bound.finish(**given), task, out)


def count(a: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """The number of all elements that are true."""
    found = task.bound.result.type(np.count_nonzero(a))
    return delivered([found.reshape((1,) * a.ndim) if task.keepdims else found], task, out)


def search(a: np.ndarray, out: np.ndarray | None = None, *, task: Task) -> Any:
    """A search along one dim or all."""
    find = np.argmax if task.bound.reduction.form == "greatest" else np.argmin
    return delivered([find(a, task.axis[0] if len(task.axis) < a.ndim else None, keepdims=task.keepdims)], task, out)


def at_once(
    a: np.ndarray, out: np.ndarray | None = None, weights: np.ndarray | None = None, *, task: Task,
    run: Callable[..., tuple[Any, ...] | None], place: int | None, n: np.float64,
) -> Any:  # fmt: skip
    """A reduction of a small array by its printed function; in blocks, if there is something to report."""
    try:
        with np.errstate(all="raise"):
            results = run(a, beside(a, weights, task), task.axis, place, n, **task.options)
    except FloatingPointError:
        results = None
    if results is None:
        return reduce(a, out, weights=weights, task=task)
    if not task.keepdims:
        results = tuple([each.squeeze(task.axis)[()] for each in results])
    return delivered(results, task, out)


def room_of(bound: Bound, shape: Shape, strides: Shape, axis: Shape, masked: bool) -> int:
    """About how many elements a block is to have."""
    seen, size = layout(shape, strides, axis, bound.indexed), math.prod(shape)
    lies, form = seen.lies or (seen.apart != () and bound.merges is not None), bound.reduction.form
    compiled = form == "exponentials" and bound.x == bound.kinds["A"] and engine(COMPILED) is not None
    single = bound.viewed and len(bound.ufuncs) == 1
    viewed = lies and not masked and (single or form == "squares" or compiled)
    searched = form in SEARCHES and bound.takes is None and lies and seen.lengths[2] == 1
    looped = form != "deviations" and lies and has_loops(bound, seen, masked)
    return max(VIEWED, size // PIECES) if viewed or ((looped or searched) and not is_half(bound.x)) else BLOCK


def squeezed(result: np.ndarray, task: Task) -> Any:
    """A result without the dims that were reduced, unless they are kept; a scalar, if none is left."""
    return result if task.keepdims else result.squeeze(task.axis)[()]


def beside(a: np.ndarray, weights: np.ndarray | None, task: Task) -> np.ndarray | None:
    """The second operand in the shape of the array, whose dims it has in ``places``; ones, if it was not given."""
    if task.places is None:
        return None
    if weights is not None and weights.shape == a.shape and task.places == tuple(range(a.ndim)):
        return weights
    if weights is None:
        return np.broadcast_to(np.ones((), task.bound.val), a.shape)
    lengths = dict(zip(task.places, weights.shape, strict=True))
    weights = weights.transpose(np.argsort(task.places).tolist())
    return np.broadcast_to(weights.reshape([lengths.get(d, 1) for d in range(a.ndim)]), a.shape)


class End:
    """What becomes of states, and what is to be said of it: once for a call, from any thread.

    ``stops``: states are the results.
    """

    def __init__(self, task: Task, stops: bool = False) -> None:
        self.stops, self.task, self.wide, self.flags = stops, task, task.bound.wide, Flags()
        self.refused: list[Exception] = []
        self.warned: set[str] = set()
        kinds, reduction = self.wide.kinds, task.bound.reduction
        fields = [self.wide.state[name] for name in self.wide.state.names or ()]
        self.dtypes = fields if stops else [kinds[kind] for kind in reduction.results]
        start = reduction.start if kinds["A"].kind in "fc" else None
        initial = start if task.initial is None else task.initial
        given = task.options if initial is None else {"x": np.asarray(initial, kinds["A"]), **task.options}
        self.first = None if initial is None else self.wide.map(**given)

    def results(self, fields: States, count: float) -> States:
        """The results of states of so many elements, to which an initial value contributes."""
        bound, reduction = self.wide, self.task.bound.reduction
        if self.stops:
            return fields
        if self.first is not None:
            fields = combined(bound, self.first, fields)
        given = dict(zip(bound.leaves_of["s"], fields, strict=True)) | self.task.options
        if bound.asks_for_count:
            given["n"] = np.asarray(count, np.float64)
        with nullcontext() if reduction.takes is None else np.errstate(all="ignore"):  # (the mean of nothing is NaN)
            if reduction.refuses is not None and bound.refuses(**given)[0].any():
                kind, message, _ = reduction.refuses
                self.refused.append(error(kind, reduction.name, f"{message} along axis {self.task.axis}"))
            if reduction.warning is not None and bound.warns(**given)[0].any():
                self.warned.add(reduction.warning[0])
            return bound.finish(**given)

    def tell(self) -> None:
        """Raise or warn of states that the record refuses or warns of."""
        for failure in self.refused:
            raise failure
        for message in self.warned:
            warn(message)


def reduced(task: Task, arrays: Arrays, end: End, steps: Shape = (), offset: int = 0) -> Sequence[Any]:
    """The results, with dims kept: of states of blocks, or of states that parts of them are merged to."""
    bound, axis, (a, _, mask) = task.bound, task.axis, arrays
    wide, length = bound.wide, math.prod([a.shape[d] for d in axis])
    steps = (steps or positions(a.shape, axis)) if bound.indexed else ()
    if 0 < a.size <= BLOCK:
        return end.results(states(Block(bound, arrays, axis, offset, steps), task.options), length)
    room = getattr(a, "room", None) or room_of(bound, a.shape, a.strides, axis, mask is not None)
    pieces, parts = cut(a.shape, a.strides, axis, room) if a.size else ([], 1)
    dtypes = [wide.state[name] for name in wide.state.names or ()]
    whole = parts == 1 and a.size > 0

    def made(piece: Piece) -> States:
        """The states of a block."""
        first = offset + sum([(piece.block[d].start or 0) * step for d, step in zip(axis, steps, strict=False)])
        block = Block(bound, [None if each is None else each[piece.block] for each in arrays], axis, first, steps)
        return states(block, task.options)

    if len(pieces) == 1:
        return end.results(made(pieces[0]), length)
    found = [new_result(a, axis, dtype, parts) for dtype in (end.dtypes if whole else dtypes)]

    def work(piece: Piece) -> None:
        with end.flags.kept():
            fields = made(piece)
            for into, part in zip(found, end.results(fields, length) if whole else fields, strict=True):
                into[piece.result] = part

    threads.shared(max(COST * a.size, a.nbytes))(work, pieces)
    if whole:
        return [each[0] for each in found]
    for each, name in zip(found, wide.state.names or (), strict=True):
        if not pieces:
            each[...] = wide.identities[name]
    fields = merged_parts(wide, found) if pieces else tuple([each[0] for each in found])
    return end.results(fields, length)


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
