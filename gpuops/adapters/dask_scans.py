"""Scans of Dask arrays: each chunk gives a summary, and the results of its elements given those of the chunks before.

The prefix of a chunk, its carry, is merged from the summaries of earlier chunks, one after the other. So tasks get a
chunk and a carry, or a carry and a summary. Where the order of merging matters, summaries are nodes of a tree, on the
host (`scan_parts`). Otherwise they are exact sums, or the last result of a chunk, and are put as numbers in front of
the chunk's own elements: the scan of arrays does the rest.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate, product
from typing import Any

import dask.array as da
import numpy as np
from dask.array.dispatch import concatenate_lookup
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ..call.arrays import find
from ..call.dispatch import describe
from ..definition import task as reductions
from ..definition.scans import Task
from ..device.copies import to_device, to_host
from ..host import scan_parts, terms
from ..ops import scans, sums
from ..plan.work import Work
from .dask_graphs import Function, blocks, converted, like, whole
from .dask_reductions import with_chunks

# -------------------------------------------------------------------------------------------------------------- graphs


def scan(call: partial[Any], work: Work, operands: dict[str, Any]) -> da.Array:
    """The results of a described call. Its tasks get the call, and describe it themselves, as those of reductions."""
    ((operand, a),), task, (result,) = operands.items(), task_of(call), work.results
    name, x, axis = call.func.__name__, whole(a), task.axis or 0
    x = flattened(x, name) if task.axis is None else x
    if not x.size:
        x = x.rechunk({axis: -1})
    places = range(x.numblocks[axis])[:: -1 if task.reverse else 1]
    lengths = [*x.chunks[axis]]
    lengths[places[0]] += result.shape[axis] - x.shape[axis]
    alone = partial(with_chunks, call, [operand])
    if len(places) == 1:
        return blocks(alone, name, range(x.ndim), [x], result.dtype, {axis: tuple(lengths)})
    token, n = tokenize(call, x), x.shape[axis]
    summaries, carries, results = f"{name}-{token}", f"{name}-partial-{token}", f"{name}-finish-{token}"
    find_out, merge, last = partial(summary, call), partial(merged, call, n), partial(following, call, n)
    starts = [0, *accumulate([x.chunks[axis][k] for k in places])]
    graph: dict[Any, Any] = {}
    for block in product(*[range(1 if d == axis else n) for d, n in enumerate(x.numblocks)]):
        carry = None
        for k, start in zip(places, starts, strict=False):
            place = (*block[:axis], k, *block[axis + 1 :])
            graph[(summaries, *place)] = find_out, (x.name, *place), start
            graph[(results, *place)] = last, alone, (x.name, *place), carry
            graph[(carries, *place)] = merge, carry, (summaries, *place)
            carry = (carries, *place)
    chunks = tuple([tuple(lengths) if d == axis else sizes for d, sizes in enumerate(x.chunks)])
    layers = HighLevelGraph.from_collections(results, graph, dependencies=[x])
    return da.Array(layers, results, chunks, meta=like(x, x.ndim, result.dtype))


def flattened(x: da.Array, name: str) -> da.Array:
    """The elements in C order. Chunks that are not consecutive there are cut, and joined to none larger than the
    largest."""
    if x.ndim == 1:
        return x
    shape, most = x.shape, math.prod(map(max, x.chunks)) if x.size else 1
    first = next((d for d in range(x.ndim) if math.prod(shape[d + 1 :]) <= most), 0)
    if x.ndim and x.size:
        length = most // math.prod(shape[first + 1 :])
        same = all(n == 1 for n in x.numblocks[first + 1 :])
        cut = {d: 1 if d < first else x.chunks[d] if same else length for d in range(first + 1)}
        x = x.rechunk(cut | dict.fromkeys(range(first + 1, x.ndim), -1))
    else:
        x = x.rechunk(-1)
    places = [*product(*map(range, x.numblocks))]
    made = f"{name}-flatten-{tokenize(x)}"
    graph = {(made, k): (flat, (x.name, *place)) for k, place in enumerate(places)}
    sizes = [math.prod([sizes[k] for sizes, k in zip(x.chunks, place, strict=True)]) for place in places]
    layers = HighLevelGraph.from_collections(made, graph, dependencies=[x])
    return da.Array(layers, made, (tuple(sizes),), meta=like(x, 1, x.dtype))


def flat(x: Any) -> Any:
    """A chunk as a line."""
    return x.reshape(-1)


# --------------------------------------------------------------------------------------------------------------- tasks


def task_of(call: partial[Any]) -> Task:
    """The scan that a call with specs describes."""
    task: Task = options(call)["task"]
    return task


def options(call: partial[Any]) -> dict[str, Any]:
    """What the CPU is told of a call with specs."""
    return describe(call.func, *call.args, **call.keywords).host.options  # type: ignore[no-any-return]


def summary(call: partial[Any], x: Any, start: int) -> Any:
    """What later chunks need to know of this one. ``start``: the place of its first element in the line."""
    task, axis = line(call)
    if ordered(task):
        return scan_parts.summary(on_host(x, task), task, axis, start)
    if sums.adds_exactly(task.bound, x):
        zero = np.full((), -0.0, task.bound.val)  # beside which a sum of nothing but -0.0 keeps its sign
        if zero.dtype.kind == "c":
            zero.imag = -0.0
        return sums.partial(x, True, None, reductions.Task(task.bound, (axis,), True, zero), None)
    return end(x, task, axis)


def merged(call: partial[Any], n: int, before: Any, more: Any) -> Any:
    """The carry after a chunk, given that before it, if there is one, and its summary."""
    task, axis = line(call)
    if ordered(task):
        return scan_parts.after(before or scan_parts.Carry(), more, task, n)
    if before is None:
        return more
    if isinstance(more, terms.Terms):
        return terms.merged(terms.together([before, more]))
    return end(joined([before, more], task, axis), task, axis)


def following(call: partial[Any], n: int, first: Function, x: Any, carry: Any) -> Any:
    """The results of a chunk: those of its elements after some numbers that stand for what comes before."""
    task, axis = line(call)
    if ordered(task):
        made = scan_parts.scan(on_host(x, task), carry or scan_parts.Carry(), task, axis, n)
        if carry is None and options(call).get("initial"):
            made = np.insert(made, 0, task.nothing, axis)
        return like_chunk(made, x, task)
    if carry is None:
        return first(x)
    if isinstance(carry, terms.Terms):
        carry = like_chunk(terms.floats(carry, task.bound.val, axis), x, task)
    found = scanned(joined([carry, converted(x, task.bound.val)], task, axis), task, axis)
    start = 0 if task.reverse else carry.shape[axis]
    start += task.exclusive * (1 if task.reverse else -1)
    return found[(slice(None),) * axis + (slice(start, start + x.shape[axis]),)]


def line(call: partial[Any]) -> tuple[Task, int]:
    """The task, and the axis of chunks: that of flattened ones is 0."""
    task = task_of(call)
    return task, task.axis or 0


def ordered(task: Task) -> bool:
    """Whether results depend on the order in which states merge: these merge on the host."""
    return task.scan.ordered(task.bound.val)


def on_host(x: Any, task: Task) -> np.ndarray:
    """A chunk as a NumPy array."""
    context = find(task.scan.name, "a", x)
    return x if context is None else to_host(context, x)  # type: ignore[no-any-return]


def like_chunk(made: np.ndarray, x: Any, task: Task) -> Any:
    """An array where a chunk is."""
    context = find(task.scan.name, "a", x)
    return made if context is None else to_device(context, made)


def scanned(x: Any, task: Task, axis: int) -> Any:
    """The scan of elements, each with the others."""
    return scans.of_part(x, task.scan, task.bound.val, axis, task.reverse)


def end(x: Any, task: Task, axis: int) -> Any:
    """The last result along an axis, which stays."""
    found = scanned(x, task, axis)
    last = slice(1) if task.reverse else slice(found.shape[axis] - 1, None)
    return found[(slice(None),) * axis + (last,)].copy()  # not to keep the others


def joined(parts: list[Any], task: Task, axis: int) -> Any:
    """Parts of lines, in the order of the scan."""
    ordered = parts[::-1] if task.reverse else parts
    return concatenate_lookup.dispatch(type(parts[-1]))(ordered, axis)
