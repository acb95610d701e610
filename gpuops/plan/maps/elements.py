"""Small outputs, element by element: ``broadcast_elements.cu``."""

from __future__ import annotations

from ..access import PACK
from ..geometry import Axes
from ..params import Field, Struct
from ..work import Launch
from .launch import TAIL, launch, scalars, way
from .problems import Problem, offset_type, reaches
from .tiled import across

BLOCK = 256
UNROLL = 2  # elements of a thread
#: Bytes of the output below which it is small. WHOLE: all operands are read in packs, along two dims at most. ACROSS:
#: some are contiguous along another dim than the output. ODD: else.
WHOLE, ACROSS, ODD = 2**14, 2**19, 2**22

PARAMS = Struct(
    "Elements",
    Field("u32", "size", "elements"),
    Field("u32", "reserved", "0"),
    Field("Dims<RANK, ARITY + 1, Offset>", "axes", "operands a, b, c, y"),
    *TAIL,
)


def is_small(p: Problem) -> bool:
    """Whether the output is too small for another strategy to gain time."""
    out = p.args[0]
    nbytes, vec = p.axes.size * out.itemsize, PACK // out.itemsize
    if nbytes >= ODD or (nbytes >= ACROSS and len(p.axes.sizes) > 1 and across(p) is not None):
        return False
    if nbytes < WHOLE or len(p.axes.sizes) > 2:
        return True
    return any([way(p, k, "whole", vec, shift=False) != "packed" for k in range(len(p.args))])


def launch_elements(p: Problem) -> Launch:
    """A launch of ``broadcast_elements.cu``."""
    offset = offset_type(reaches(p))
    walked = Axes(p.axes.sizes, (*p.axes.strides[1:], p.axes.strides[0])).dims()
    params = PARAMS.pack(offset, size=p.axes.size, reserved=0, axes=walked, **scalars(p))
    constants = {"BLOCK": BLOCK, "RANK": walked.rank_class, "UNROLL": UNROLL}
    grid = -(-p.axes.size // (BLOCK * UNROLL)), 1
    return launch("broadcast_elements", p, 1, offset, ["repeated"] * (len(p.args) - 1), params, grid, constants)
