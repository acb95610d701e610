"""From a condition to its bits, and how many of them are set: ``select_count.cu``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..access import PACK
from ..builder import Builder
from ..dtypes import dtype_name
from ..geometry import Axes, Dims, Shape, index_type, offset_type, reaches
from ..maps.problems import condition_type
from ..params import Field, Struct
from ..work import COUNTS, LAUNCH, PARTIALS, ArraySpec, Launch, Operand, Plan, variant

BLOCK = 256  # threads
TILE = 32 * BLOCK  # elements of a tile: a word of bits for each thread
#: Blocks of a multiprocessor, by most bytes of an element: wider ones have twice as many packs in registers.
RESIDENT = ((2, 8), (16, 4))

PARAMS = Struct(
    "SelectCount",
    Field("i64", "length", "elements of the condition"),
    Field("i64", "head", "PACKED: elements between the start of the first pack and the first element; else 0"),
    Field("i64", "tiles", "tiles in all"),
    Field("i64", "span", "tiles of a run"),
    Field("Dims<RANK, 1, Offset>", "dims", "the condition, unless PACKED"),
)


class Bits(NamedTuple):
    """A condition's bits in the workspace (``kernels/select/select.cuh``)."""

    names: tuple[str, str, str]  # of bits, before, runs
    length: int  # elements of the condition
    head: int  # bits before that of the first element
    tiles: int
    span: int  # tiles of a run

    @property
    def operands(self) -> tuple[Operand, ...]:
        bits, before, runs = map(Operand, self.names)
        return bits, before, runs

    @property
    def index_type(self) -> str:
        """The type of an index of a bit."""
        return index_type(self.length + self.head)


def in_order(shape: Shape, steps: Shape) -> Axes:
    """The dims of an array in C order, neighbours merged where they can be.

    >>> in_order((2, 3, 4), (24, 8, 2)), in_order((2, 1, 3), (-3, 5, 1))
    (Axes(sizes=(24,), strides=((2,),)), Axes(sizes=(2, 3), strides=((-3, 1),)))
    """
    merged: list[tuple[int, int]] = []
    for n, step in zip(shape, steps, strict=True):
        if n == 1:
            continue
        if merged and merged[-1][1] == n * step:
            n *= merged.pop()[0]
        merged.append((n, step))
    sizes, strides = zip(*merged, strict=True) if merged else ((1,), (1,))
    return Axes(tuple(sizes), (tuple(strides),))


def unused() -> Dims:
    """The dims of an array that is contiguous."""
    return Dims((1,), ((1,),))


def add_count(builder: Builder, condition: ArraySpec, number: int) -> Bits:
    """Add the count of a condition's true elements, which becomes the ``number``-th of `COUNTS`."""
    axes, itemsize = in_order(condition.shape, condition.steps), condition.itemsize
    packed = len(axes.sizes) == 1 and axes.inner(0) == 1 and condition.start % itemsize == 0
    vec, head = (PACK // itemsize, condition.start // itemsize) if packed else (1, 0)
    length = axes.size
    tiles = -(-(length + head) // TILE)
    resident = next(blocks for most, blocks in RESIDENT if itemsize <= most)
    span = -(-tiles // (resident * builder.machine.multiprocessors))
    grid = -(-tiles // span)
    memory = (("bits", tiles * BLOCK, np.uint32), ("before", tiles, np.uint32), ("runs", grid, np.int64))
    made = [builder.temporary(f"{name}{number}", (n,), np.dtype(kind)) for name, n, kind in memory]
    names = made[0].name, made[1].name, made[2].name
    bits = Bits(names, length, head, tiles, span)
    dims = unused() if packed else axes.dims()
    offset = offset_type(reaches(axes))
    types = {"Tin": condition_type(dtype_name(condition.dtype)), "Index": bits.index_type, "Offset": offset}
    constants = {"BLOCK": BLOCK, "VEC": vec, "PACKED": packed, "RANK": dims.rank_class, "RESIDENT": resident}
    params = PARAMS.pack(offset, length=length, head=head, tiles=tiles, span=span, dims=dims)
    pointers = condition.operand, *bits.operands, Operand(COUNTS, 8 * number), Operand("scratch"), LAUNCH
    step = Launch(variant("select_count", types, constants), (grid, 1, 1), BLOCK, (*pointers, params))
    builder.add(Plan("counted", (step,), scratch=PARTIALS))
    return bits
