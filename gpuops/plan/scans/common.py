"""What the launches of scans have in common: trees of tiles, and memory for what these tell each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..builder import Builder
from ..dtypes import CTYPES
from ..work import SLOTS, SLOTS_OFFSET, Operand
from .problems import Problem

EACH = RADIX = 16  # elements of a thread's chunk of a line; branches of a line's tree (engines.cuh, tree.cuh)
TAGGED = 2  # bytes in a slot for each of a total: half of them are tags (slots.cuh)


class Tree(NamedTuple):
    """The tree of a line's tiles."""

    tiles: int
    groups: int  # of siblings: of tiles, and of the nodes above them
    levels: int


def tree(tiles: int) -> Tree:
    """The tree of so many tiles.

    >>> tree(16), tree(4097)
    (Tree(tiles=16, groups=1, levels=1), Tree(tiles=4097, groups=277, levels=4))
    """
    nodes, groups, levels = -(-tiles // RADIX), -(-tiles // RADIX), 1
    while nodes > 1:
        nodes = -(-nodes // RADIX)
        groups, levels = groups + nodes, levels + 1
    return Tree(tiles, groups, levels)


def slots_of(builder: Builder, nbytes: int) -> Operand:
    """Memory for totals that no other launch has tagged: the scratch or, if they are many, zeroed workspace."""
    if nbytes <= SLOTS:
        return Operand("scratch", SLOTS_OFFSET)
    from .. import maps  # slow to import

    words = np.dtype(np.uint64)
    slots, zero = builder.temporary("slots", (nbytes // words.itemsize,), words), builder.filling(words)
    args = (maps.argument(each, "u64", slots.shape) for each in (slots, zero))
    builder.add(maps.plan("Expand", slots.shape, next(args), (next(args),)))
    return slots.operand


def types_of(p: Problem) -> dict[str, str]:
    """The C++ types of elements, of results and what is between, and of the op, of which exact sums use nothing."""
    names = {"Tin": p.x, "Tval": p.val, "Tres": p.result, "Tout": p.out}
    return {**{each: CTYPES[name] for each, name in names.items()}, "Op": "Added<Tval>" if p.exact else struct_of(p)}


def struct_of(p: Problem) -> str:
    """The C++ type of the op."""
    if p.struct.printed:
        return p.struct.name
    return f"{p.struct.name}<Tval, false>" if p.struct.summed else f"{p.struct.name}<Tval>"
