"""Reductions that NumPy makes in several passes, such as variances and norms: in blocks of results, on threads.

A block has all elements of its results, which NumPy computes as it would alone. Blocks depend on shapes and strides, so
bits do not depend on threads. What NumPy makes in between is as large as a block, not as the array.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..plan.geometry import Shape
from ..plan.work import ArraySpec, HostCall
from . import numpy_engine, numpy_functions, threads
from .blocks import Index, indices, innermost

LARGE = 2**22  # bytes of arrays that are worth it
BLOCK = 2**19  # elements of a block
ACROSS = 64  # results of a block that lie side by side, at least


def in_blocks(host: HostCall, a: ArraySpec, axis: Shape, passes: int, lays_out: bool = False) -> HostCall:
    """A call of the NumPy engine that reduces an array along some dims, in blocks if that is better.

    The engine's function passes over memory so many times; it may first lay out anew what it reduces, so that columns
    cost it more than rows.
    """
    if a.machine is not None or a.size * a.itemsize < LARGE or (passes == 1 and threads.limit() == 1):
        return host
    blocks = cut(a.shape, a.strides, axis, lays_out)
    options = {"function": host.function, "options": host.options, "axis": axis, "blocks": blocks, "passes": passes}
    return HostCall(reduce, options) if len(blocks) > 1 else host


@lru_cache(maxsize=256)
def cut(shape: Shape, strides: Shape, axis: Shape, columns: bool) -> list[Index]:
    """Blocks of an array that have all elements of their results; ``columns`` may be parted from those beside them."""
    kept = [d for d in range(len(shape)) if d not in axis and shape[d] > 1]
    inner = innermost(shape, strides)
    room = BLOCK // math.prod([shape[d] for d in axis])
    if inner not in kept:
        return indices(shape, strides, kept, max(1, room))
    if columns:
        return indices(shape, strides, kept, max(ACROSS, room))
    return indices(shape, strides, [d for d in kept if d != inner], max(1, room // shape[inner]))


def reduce(
    a: np.ndarray, out: np.ndarray | None = None, *, function: Any, options: dict[str, Any], axis: Shape,
    blocks: list[Index], passes: int, **others: Any,
) -> Any:  # fmt: skip
    """What ``function`` gives with these options, and others: arrays that lie beside ``a``, or that there is none."""
    beside = {name: np.broadcast_to(each, a.shape) for name, each in others.items() if isinstance(each, np.ndarray)}
    rest = others | options | {"keepdims": True}
    found: list[Any] = [None] * len(blocks)

    warned: dict[tuple[str, type[Warning]], None] = {}

    def work(i: int) -> None:
        block = blocks[i]
        with numpy_functions.held(warned):
            found[i] = function(a[block], **rest | {name: each[block] for name, each in beside.items()})

    threads.shared(passes * a.nbytes)(work, range(len(blocks)))
    for message, category in warned:
        numpy_functions.warn(message, category)
    places = [tuple([slice(None) if d in axis else each for d, each in enumerate(block)]) for block in blocks]

    def joined(parts: Any) -> np.ndarray:
        whole = numpy_engine.new_result(a, axis, parts[0].dtype)[0]
        for place, part in zip(places, parts, strict=True):
            whole[place] = part
        return whole if options["keepdims"] else np.squeeze(whole, axis)

    if isinstance(found[0], tuple):
        return type(found[0])(*map(joined, zip(*found, strict=True)))
    return numpy_engine.deliver(joined(found), out)
