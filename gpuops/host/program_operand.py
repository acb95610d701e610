"""The result of a program as an operand of a reduction, computed in blocks as they are read, which stay in cache.

Where blocks end is another matter than for an array in memory, so only reductions that have the same bits however an
array is cut read one. If there is an error to report, or anything else is asked of it, the program is computed before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..definition.expressions import real_of
from ..definition.program import Program
from ..definition.reduction import Bound
from ..definition.task import Task
from ..plan.geometry import Shape, order
from ..plan.work import HostCall
from . import reduce, sums
from .blocks import indices, memory
from .exact_engines import engine
from .program_loops import Loop, loop_of
from .program_steps import BLOCK, Numbers, calls, run
from .results import Flags

LARGE = 2**20  # elements of a result that is computed in blocks, at least
ROOM = 2**21  # bytes of a block: fewer cost less than these take to leave the cache (2**19 to 2**22 were measured)
DIGITS = 53  # bits of integers that float64 adds without an error
#: Functions that reduce arrays in blocks, given those that are called with arrays in memory.
DRIVERS: dict[Any, Callable[..., Any]] = {
    reduce.reduce: reduce.reduce, reduce.merge: reduce.reduce, reduce.count: reduce.reduce, sums.sum: sums.sum
}  # fmt: skip
#: What `numpy.geterr` names floating-point errors that NumPy calls otherwise.
NAMES = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}


class NotInBlocks(Exception):
    """Something was asked of a `Computed` that needs all of its elements in memory, or an error is to be reported."""


class Computed:
    """An array whose blocks are computed in a thread's memory when they are read: each until the next one is."""

    __slots__ = ("dtype", "ignored", "itemsize", "loop", "nbytes", "ndim", "numbers", "room", "shape", "size", "steps",
                 "strides", "views")  # fmt: skip
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, program: Program, arrays: Sequence[np.ndarray], numbers: Numbers, shape: Shape, strides: Shape
    ) -> None:
        self.steps, self.numbers, self.dtype = calls(program), numbers, program.dtype
        self.shape, self.strides = shape, strides
        self.views = [np.broadcast_to(array, shape) for array in arrays]
        self.ndim, self.size, self.itemsize = len(shape), math.prod(shape), self.dtype.itemsize
        self.nbytes, self.room = self.size * self.itemsize, ROOM // self.itemsize
        self.loop: Loop | None = loop_of(program, self.size)
        self.ignored = {NAMES[name] for name, way in np.geterr().items() if way == "ignore"}

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        views = [view[index] for view in self.views]
        shape = tuple([len(range(*each.indices(n))) for each, n in zip(index, self.shape, strict=True)])
        into = memory("computed", shape, self.dtype, order(self.strides))
        if self.loop is None or not self.loop(views, self.numbers, into):
            flags = Flags()
            with flags.kept():
                for part in indices(shape, into.strides, range(self.ndim), BLOCK):
                    run(self.steps, [view[part] for view in views], self.numbers, into[part])
            if flags.found - self.ignored:
                raise NotInBlocks
        return into

    def __getattr__(self, name: str) -> Any:
        raise NotInBlocks

    def __eq__(self, other: object) -> Any:
        raise NotInBlocks

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotInBlocks


Made = tuple[Program, list[np.ndarray], Numbers]


def in_blocks(
    call: HostCall, made: Made, shape: Shape, strides: Shape, others: dict[str, Any]
) -> tuple[Callable[..., Any], dict[str, Any], Computed] | None:
    """What makes a call with a result that is computed in blocks, its options and the operand; None, if that would not
    pay, or might change a bit."""
    size = math.prod(shape)
    if size < LARGE or (run_of := DRIVERS.get(call.function)) is None:
        return None
    task: Task = call.options["task"]
    given = {name: value for name, value in others.items() if value is not None}
    out = given.pop("out", None)
    if given or not same_in_any_cut(task, size):
        return None
    if out is not None and any(np.may_share_memory(out, array) for array in made[1]):
        return None
    return run_of, {"task": task}, Computed(*made, shape, strides)


def same_in_any_cut(task: Task, size: int) -> bool:
    """Whether a reduction has the same bits in whatever blocks an array is reduced, and nothing to say of masks."""
    bound = task.bound
    if bound.takes is not None or task.places is not None:
        return False
    if bound.sums is not None:
        return engine(real_of(bound.val), size) is not None
    return bound.exact or bound.indexed or adds_integers(bound, size)


def adds_integers(bound: Bound, size: int) -> bool:
    """Whether sums in double precision are of integers, and have no more digits."""
    bits = 1 if bound.x.kind == "b" else 8 * bound.x.itemsize
    plain = bound.x.kind in "biu" and bound.merges == ("add",) and bound.viewed
    return plain and bound.val == np.float64 and bits + size.bit_length() <= DIGITS
