"""The launch of a scan of lines that lie side by side."""

from __future__ import annotations

from ..builder import Builder
from ..geometry import index_type, offset_type, reaches
from ..params import Field, Struct
from ..work import Launch, Machine, Plan, check_grid, variant
from .common import EACH, types_of
from .problems import Problem

LANES = 32  # lines of a warp
WARPS = 14  # of a block, at most 15: each but the first has a barrier of its own
RESIDENT = 2  # blocks of a multiprocessor
SPARE = 8  # lanes without a line in the last warp of neighbours, for each 32 lines, at most
TALL = 16  # elements of lines from which on a warp's lanes have a line each

PARAMS = Struct(
    "Columns",
    Field("i64", "length", "elements of a line"),
    Field("i64", "inner", "lines side by side"),
    Field("i64", "count", "strips of 32 lines"),
    Field("Divisor", "strips", "of lines side by side"),
    Field("i32", "teams", "of a block, which have a strip each"),
    Field("i32", "size", "warps of a team"),
    Field("Tout", "nothing", "the result of no elements"),
    Field("Axes<KEPT, 2, Offset>", "kept", "operands x and y, over the lines"),
    Field("Axes<LINE, 2, Offset>", "line", "operands x and y, over the elements of a line"),
)


def fits(p: Problem, machine: Machine) -> bool:
    """Whether there are strips of neighbouring lines enough for all multiprocessors."""
    strips = -(-p.inner // LANES)
    wide = strips * LANES - p.inner <= p.inner // LANES * SPARE
    return not p.ordered and len(p.line.sizes) == 1 and p.length >= TALL and wide and (
        p.outers * strips >= machine.multiprocessors
    )  # fmt: skip


def add_columns(builder: Builder, p: Problem, strategy: str) -> None:
    """Add a scan in one pass over memory to a plan."""
    strips, chunks = -(-p.inner // LANES), -(-p.length // EACH)
    size, count = min(WARPS, chunks), p.outers * strips
    teams = WARPS // size
    blocks = min(-(-count // teams), builder.machine.multiprocessors * RESIDENT)
    grid = check_grid(p.op, f"strategy {strategy!r}", (blocks, 1), "{} lines", p.kept.size)
    offset = offset_type(reaches(p.kept, p.line))
    types = types_of(p) | {"Index": index_type(p.kept.size, p.length, count), "Offset": offset}
    constants = {
        "KEPT": p.kept.rank_class, "LINE": p.line.rank_class, "WARPS": WARPS, "RESIDENT": RESIDENT,
        "EXCLUSIVE": p.exclusive, "PREFIX": p.exact, "STATES": 0,
    }  # fmt: skip
    params = PARAMS.pack(
        offset, length=p.length, inner=p.inner, count=count, strips=strips, teams=teams, size=size,
        nothing=p.nothing + bytes(-len(p.nothing) % 8), kept=p.kept, line=p.line,
    )  # fmt: skip
    kernel = variant("scan_columns", types, constants)
    builder.add(Plan(strategy, (Launch(kernel, grid, 32 * WARPS, (*p.arrays, params)),)))
