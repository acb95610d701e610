"""The launch of a scan of many lines, 32 of them for each warp."""

from __future__ import annotations

from typing import NamedTuple

from ..access import PACK
from ..builder import Builder
from ..geometry import index_type, offset_type, reaches
from ..params import Field, Struct
from ..work import Launch, Machine, Plan, check_grid, variant
from .common import EACH, tree, types_of
from .problems import Problem

LANES = 32  # lines of a warp
#: Warps of a block, at most 15 (each has a barrier of its own), and blocks of a multiprocessor: of ops whose merges
#: have an order; of lines side by side whose elements have 8 bytes; of others.
ORDERED, WIDE, USUAL = (12, 2), (8, 3), (8, 2)
TALL = 16  # elements of lines from which on a warp's lanes have a line each
LONG = 256  # elements of lines of which a chunk that is not full is a small part
FILLED = 0.75  # of the teams that there is room for have a strip, where there is another way
SECTOR = 32  # contiguous bytes of lines side by side from which on lanes load their own
RESERVED = 1024  # bytes of shared memory that a block has and cannot use
DIGITS = 640  # bytes of the digits of a sum, at most

PARAMS = Struct(
    "Chains",
    Field("i64", "length", "elements of a line"),
    Field("i64", "lines", "lines in all"),
    Field("i64", "strips", "of 32 lines each"),
    Field("i32", "size", "warps of a team, which has a strip"),
    Field("i32", "levels", "of a line's tree above its chunks"),
    Field("Tout", "nothing", "the result of no elements"),
    Field("Axes<KEPT, 2, Offset>", "kept", "operands x and y, over the lines"),
    Field("Axes<LINE, 2, Offset>", "line", "operands x and y, over the elements of a line"),
)


class Chains(NamedTuple):
    """How teams of warps share out lines."""

    along: tuple[bool, bool]  # whether lanes access x and out along lines, not side by side
    levels: int  # of a line's tree above its chunks
    warps: int  # of a block
    resident: int  # blocks of a multiprocessor
    size: int  # warps of a team
    strips: int

    @property
    def teams(self) -> int:
        """Teams of a block."""
        return self.warps // self.size


def chains(p: Problem, machine: Machine) -> Chains | None:
    """How teams share out lines. None if these are short, or too few for all multiprocessors."""
    if len(p.line.sizes) != 1 or p.length < TALL or p.kept.size < machine.multiprocessors * LANES:
        return None
    sides = along(p, 0), along(p, 1)
    chunks = -(-p.length // EACH)
    warps, resident = ORDERED if p.ordered else WIDE if max(p.sizes) == 8 and not any(sides) else USUAL
    warps = min(warps, (machine.shared // resident - RESERVED) // shared_of(p, sides))
    warps -= warps % 2 if warps > 2 else 0
    size = max([n for n in range(1, min(warps, chunks) + 1) if warps % n == 0])
    return Chains(sides, tree(chunks).levels if p.ordered else 0, warps, resident, size, -(-p.kept.size // LANES))


def shared_of(p: Problem, sides: tuple[bool, bool]) -> int:
    """Bytes of shared memory of a warp: for elements, results, what comes before, and digits."""
    return staged_of(p, sides) + LANES * p.carry * (2 if p.ordered else 1) + DIGITS * p.exact


def staged_of(p: Problem, sides: tuple[bool, bool]) -> int:
    """Bytes of shared memory of a warp for elements and results."""
    return LANES * EACH * (p.sizes[0] + p.sizes[1] * sides[1])


def along(p: Problem, operand: int) -> bool:
    """Whether lanes access an operand along its lines, not side by side."""
    beside, step = abs(p.kept.inner(operand)), abs(p.line.inner(operand))
    return beside > step or p.kept.sizes[-1] * beside * p.sizes[operand] < SECTOR


def pays(p: Problem, t: Chains, machine: Machine) -> bool:
    """Whether this is faster than the kernel of lines without gaps: for sums that take the time, if these lines are as
    many as teams and go by packs."""
    slots = machine.multiprocessors * t.resident * t.teams
    filled = t.strips / (-(-t.strips // slots) * slots)
    packs = all([
        start % PACK == 0 and p.length * size % PACK == 0 for start, size in zip(p.starts, p.sizes, strict=True)
    ])  # fmt: skip
    return p.exact and filled >= FILLED and packs and (p.length % EACH == 0 or p.length >= LONG)


def add_chains(builder: Builder, p: Problem, strategy: str, t: Chains) -> None:
    """Add a scan in one pass over memory to a plan."""
    blocks = min(-(-t.strips // t.teams), builder.machine.multiprocessors * t.resident)
    grid = check_grid(p.op, f"strategy {strategy!r}", (blocks, 1), "{} lines", p.kept.size)
    offset = offset_type(reaches(p.kept, p.line))
    types = types_of(p) | {"Index": index_type(p.kept.size, p.length), "Offset": offset}
    constants = {
        "KEPT": p.kept.rank_class, "LINE": p.line.rank_class, "WARPS": t.warps, "RESIDENT": t.resident,
        "EXCLUSIVE": p.exclusive, "PREFIX": p.exact, "SCALED": p.scaled, "ORDERED": p.ordered, "STATES": 0,
        "X_ALONG": t.along[0], "Y_ALONG": t.along[1],
        "X_BACK": t.along[0] and p.line.inner(0) == -1, "Y_BACK": t.along[1] and p.line.inner(1) == -1,
    }  # fmt: skip
    params = PARAMS.pack(
        offset, length=p.length, lines=p.kept.size, strips=t.strips, size=t.size, levels=t.levels,
        nothing=p.nothing + bytes(-len(p.nothing) % 8), kept=p.kept, line=p.line,
    )  # fmt: skip
    shared = t.warps * staged_of(p, t.along) + t.teams * t.levels * LANES * p.carry
    kernel = variant("scan_chains", types, constants)
    builder.add(Plan(strategy, (Launch(kernel, grid, LANES * t.warps, (*p.arrays, params), shared=shared),)))
