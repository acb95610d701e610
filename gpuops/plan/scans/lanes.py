"""What the launches of scans have in common whose lanes have chunks of lines."""

from __future__ import annotations

from typing import NamedTuple

from ..geometry import index_type, offset_type, reaches
from ..params import Field, Params, Struct
from ..work import Kernel, variant
from .common import EACH, types_of
from .problems import Problem

LANES = 32  # of a warp
SECTOR = 32  # contiguous bytes of lines side by side from which on lanes load their own
RESERVED = 1024  # bytes of shared memory that a block has and cannot use
DIGITS = 640  # bytes of the digits of a sum, at most

PARAMS = Struct(
    "Lanes",
    Field("i64", "length", "elements of a line"),
    Field("i64", "lines", "lines in all"),
    Field("i64", "strips", "of SHARE lines each"),
    Field("i64", "parts", "of a line"),
    Field("i32", "size", "warps of a team, which has a strip"),
    Field("i32", "levels", "of a line's tree above its chunks"),
    Field("Tout", "nothing", "the result of no elements"),
    Field("Axes<KEPT, 2, Offset>", "kept", "operands x and y, over the lines"),
    Field("Axes<LINE, 2, Offset>", "line", "operands x and y, over the elements of a line"),
)


class Sides(NamedTuple):
    """Whether lanes access x and out along lines, not side by side."""

    x: bool
    out: bool


def sides(p: Problem) -> Sides:
    """How lanes access both arrays."""
    return Sides(along(p, 0), along(p, 1))


def along(p: Problem, operand: int) -> bool:
    """Whether lanes access an operand along its lines, not side by side."""
    beside, step = abs(p.kept.inner(operand)), abs(p.line.inner(operand))
    return beside == 0 or beside > step or p.inner * beside * p.sizes[operand] < SECTOR


def staged_of(p: Problem, each: Sides, depth: int, narrow: bool) -> int:
    """Bytes of shared memory of a warp for `depth` chunks of elements and one of results."""

    def chunk(size: int, along: bool) -> int:
        return LANES * EACH * size + 16 * max(16, size) * (narrow and not along)

    return depth * chunk(p.sizes[0], each.x) + chunk(p.sizes[1], each.out) * (each.out or narrow)


def kernel_of(name: str, p: Problem, each: Sides, share: int, totals: int, **constants: int) -> Kernel:
    """The kernel for how lanes access both arrays."""
    index, offset = index_type(p.kept.size, p.length, totals), offset_type(reaches(p.kept, p.line))
    types = types_of(p) | {"Index": index, "Offset": offset}
    more = {
        "KEPT": p.kept.rank_class, "LINE": p.line.rank_class, "EXCLUSIVE": p.exclusive, "PREFIX": p.exact,
        "SCALED": p.scaled, "ORDERED": p.ordered, "STATES": 0, "SHARE": share, "X_ALONG": each.x, "Y_ALONG": each.out,
        "X_BACK": each.x and p.line.inner(0) == -1, "Y_BACK": each.out and p.line.inner(1) == -1,
    }  # fmt: skip
    return variant(name, types, more | constants)


def parameters(p: Problem, **numbers: int) -> Params:
    """The kernel's parameters."""
    return PARAMS.pack(
        offset_type(reaches(p.kept, p.line)), length=p.length, lines=p.kept.size,
        nothing=p.nothing + bytes(-len(p.nothing) % 8), kept=p.kept, line=p.line, **numbers,
    )  # fmt: skip
