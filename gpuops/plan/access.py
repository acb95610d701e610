"""How threads access elements along the innermost dim: in packs of a few elements, aligned or not.

All kernel families share these terms. A *pack* is what one load or store moves. Only contiguous dims are read in packs.
Packs are *aligned* if each begins at a multiple of its size. With *head and tail* (``ragged``) the dim begins and ends
anywhere: aligned packs lie between, and the kernel handles the rest apart. A *funnel* load makes a pack at any address
from the two aligned ones that contain it. The elements of a *striped* pack lie as many elements apart as a block has
threads, and are loaded one by one: so a warp reads neighbours.
"""

from typing import NamedTuple

from .geometry import Axes

PACK = 16  # bytes of the widest load and store
SECTOR = 32  # bytes of the smallest memory transaction
RAGGED = 8  # the shortest run that is read with head and tail, in packs


class Access(NamedTuple):
    """How packs of ``vec`` elements along a dim are read."""

    vec: int
    beside: str = "none"  # the second operand's layout, or "beside", "repeated", "stepped", "loose", "scattered"
    ragged: bool = False  # with head and tail
    funnel: bool = False  # each pack is made from two aligned ones
    striped: bool = False  # the elements of a pack lie a block's threads apart


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
    return moved == (itemsize % width != 0)  # only the innermost stride (in a sliding window, more are 1)
