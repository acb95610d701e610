"""How threads reach elements along the innermost dim: in packs of a few elements, aligned or not.

One vocabulary for all families. A *pack* is what one load or store moves. A dim is read in packs if it is contiguous.
Packs are *aligned* if each begins at a multiple of its size. With *head and tail* (``ragged``) the dim begins and ends
anywhere: whole packs lie between, and the kernel masks the rest. *Funnel* loads make each pack of the two aligned ones
that it lies in.
"""

from typing import NamedTuple

from .geometry import Axes

PACK = 16  # bytes of the widest load and store
SECTOR = 32  # bytes: the least that memory moves
RAGGED = 8  # the shortest run that is read with head and tail, in packs


class Access(NamedTuple):
    """How packs of ``vec`` elements along a dim are read."""

    vec: int
    beside: str = "none"  # how a second operand lies beside them: or "beside", "repeated", "stepped", "scattered"
    ragged: bool = False  # with head and tail
    funnel: bool = False  # a pack is made of two aligned ones


def packable(vec: int, itemsize: int, start: int, operand: int, *groups: Axes, inner: Axes) -> bool:
    """Whether an operand may be read in aligned packs of ``vec`` elements along the innermost dim of ``inner``.

    ``start`` is the address of its first element; ``groups`` are all the axes it moves along.
    """
    width = min(vec * itemsize, PACK)
    if inner.inner(operand) != 1 or inner.sizes[-1] % vec or start % width:
        return False
    moved = 0
    for axes in groups:
        for stride in axes.strides[operand]:
            moved += stride * itemsize % width != 0
    return moved == (itemsize % width != 0)  # but the innermost one (in a sliding window there may be more)
