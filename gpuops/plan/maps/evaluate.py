"""The elements of an expression in memory: ``evaluate.cu``."""

from __future__ import annotations

from ..access import PACK
from ..dtypes import ctype
from ..geometry import index_type
from ..params import Field, Struct
from ..work import ArraySpec, Launch, Operand, Plan, check_grid, variant

BLOCK = 256
LOADED = 64  # most bytes of an operand in a pack of the output

PARAMS = Struct(
    "Evaluate", Field("i64", "packs", "whole packs of the output"), Field("i64", "size", "elements"),
    Field("i64", "apart", "elements from one output to the next, of several"),
)


def plan(x: ArraySpec, to: ArraySpec, apart: int = 0) -> Plan:
    """Plan ``to[...] = x`` for an expression and an array that is dense in the same order; ``apart``: how far the next
    array is from that one, if the expression has several results."""
    sizes = [each.itemsize for each in x.made.operands]
    vec = max(1, min(PACK // to.itemsize, LOADED // max(sizes, default=1)))
    vec = vec if to.start % min(vec * to.itemsize, PACK) == 0 and apart % vec == 0 else 1
    packs = x.size // vec
    types = {"Tin": ctype(x.dtype), "Index": index_type(x.size + BLOCK * vec)}
    grid = check_grid("evaluate", "evaluate.cu", (max(1, -(-packs // BLOCK)), 1), "{} elements", x.size)
    kernel = variant("evaluate", types, {"BLOCK": BLOCK, "VEC": vec})
    args = (to.operand, Operand(x.name), PARAMS.pack("i64", packs=packs, size=x.size, apart=apart))
    return Plan("evaluate", (Launch(kernel, grid, BLOCK, args),), in_place=True)
