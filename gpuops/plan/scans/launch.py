"""The launch of a scan: how tiles share out lines."""

from __future__ import annotations

from typing import NamedTuple

from ..access import PACK
from ..builder import Builder
from ..geometry import floor_power_of_2, index_type, offset_type, power_of_2, reaches
from ..params import Field, Params, Struct
from ..work import (
    LAUNCH,
    NO_LAUNCH,
    PARTIALS,
    Kernel,
    Launch,
    Machine,
    Operand,
    Plan,
    check_grid,
    variant,
)
from .chains import add_chains, chains, pays
from .common import EACH, RADIX, TAGGED, Tree, slots_of, tree, types_of
from .flat import add_flat, flat
from .parts import add_parts, parts
from .problems import Problem

SHORT = EACH // 2  # elements of lines of which a chunk has several, if these are not side by side
BLOCK = 256  # threads of a block, at most
SEGMENT = 128  # contiguous bytes of x that a tile has of columns
RESIDENT = 3  # blocks of a multiprocessor
SECTOR = 32  # contiguous bytes of columns from which on their threads load them
WALKED = 1  # groups of lines for each multiprocessor from which on a block goes through all tiles of its lines
CLOSE = 4  # the same where tiles look back and elements have at most four bytes
STATIC = 28 * 1024  # bytes of shared memory beside those for elements, at most

PARAMS = Struct(
    "Scan",
    Field("i64", "length", "elements of a line"),
    Field("i64", "outers", "lines that are not side by side"),
    Field("i64", "inner", "lines side by side"),
    Field("i64", "count", "tiles in all"),
    Field("i64", "groups", "groups of siblings in a line's tree of tiles"),
    Field("Divisor", "strips", "parts of the lines side by side, of a tile each"),
    Field("Divisor", "tiles", "tiles of a line"),
    Field("Divisor", "columns", "lines side by side of a tile"),
    Field("Divisor", "chunks", "chunks of a line in a tile"),
    Field("Divisor", "span", "elements of a line in a tile; of those that follow each other in a chunk"),
    Field("i32", "units", "lines of a tile that are not side by side; of those in a chunk, one for all"),
    Field("i32", "batch", "lines that follow each other in a chunk"),
    Field("i32", "rakes", "threads that merge the totals of a line's chunks in a tile"),
    Field("i32", "segment", "chunks that each of these has"),
    Field("i32", "levels", "levels of a line's tree above tiles"),
    Field("i32", "backward[2]", "whether lines run backwards in the memory of x and y"),
    Field("i64", "folds", "bytes of shared memory before those for what comes before a tile"),
    Field("Tout", "nothing", "the result of no elements"),
    Field("Axes<KEPT, 2, Offset>", "kept", "operands x and y, over the lines"),
    Field("Axes<LINE, 2, Offset>", "line", "operands x and y, over the elements of a line"),
)


class Tiling(NamedTuple):
    """How tiles share out lines: a tile has ``units`` units of ``columns`` lines side by side, each of ``chunks``
    chunks, of which each has ``batch`` lines, or part of one."""

    columns: int
    chunks: int
    units: int
    batch: int = 1
    look: bool = False  # lines are longer than a tile

    def rakes(self, ordered: bool) -> tuple[int, int]:
        """The threads that merge the totals of a line's chunks, a power of 2, and the chunks that each has."""
        if ordered:
            return power_of_2(-(-self.chunks // RADIX)), RADIX
        threads = floor_power_of_2(min(self.chunks, max(1, 32 // (self.units * self.columns))))
        return threads, -(-self.chunks // threads)

    @property
    def threads(self) -> int:
        return -(-self.columns * self.chunks * self.units // 64) * 64


def tiling(p: Problem, machine: Machine) -> Tiling:
    """The tiles of a scan: of whole lines if they fit, else of parts of them."""
    most = BLOCK
    while most > 64 and staged(most, p) + STATIC > machine.shared:
        most //= 2
    if p.length <= SHORT and p.inner == 1:
        return Tiling(1, 1, most, EACH // max(1, p.length))
    chunks, wide = -(-p.length // EACH), max(EACH, SEGMENT // p.sizes[0])
    room = most // chunks
    if p.inner <= room:
        return Tiling(p.inner, chunks, room // p.inner)
    if wide <= room:
        return Tiling(floor_power_of_2(room), chunks, 1)
    columns = min(p.inner, wide)
    if p.ordered:
        columns = min(columns, most // RADIX)
        whole = columns == 1 and most == RADIX * RADIX
        return Tiling(columns, most if whole else RADIX, 1, look=True)
    return Tiling(columns, most // columns, 1, look=True)


def staged(threads: int, p: Problem) -> int:
    """Bytes of shared memory for the elements of a tile."""
    return -(-threads * (EACH + 1) * max(p.sizes) // PACK) * PACK


def is_linear(p: Problem, t: Tiling, operand: int) -> bool:
    """Whether a tile of an operand is contiguous in memory."""
    if t.columns != p.inner or len(p.line.sizes) > 1 or is_direct(p, t):
        return False
    if p.length > 1 and abs(p.line.inner(operand)) != p.inner:
        return False
    run, outer = 1, p.length * p.inner
    dims = [*zip(p.kept.sizes, p.kept.strides[operand], strict=True)]
    while dims and run < p.inner:  # those side by side
        n, step = dims.pop()
        if step != run:
            return False
        run *= n
    if run != p.inner:
        return False
    return t.units * t.batch == 1 or not dims or (len(dims) == 1 and dims[0][1] == outer)


def is_direct(p: Problem, t: Tiling) -> bool:
    """Whether threads load their own elements, and their neighbours' lie beside these."""
    return len(p.line.sizes) == 1 and t.columns * min(p.sizes) >= SECTOR


def add_tiles(builder: Builder, p: Problem, strategy: str) -> None:
    """Add a scan in one pass over memory to a plan."""
    machine = builder.machine
    in_turn, teams = flat(p, machine), chains(p, machine)
    if teams and not (in_turn and not pays(p, teams, machine)):
        return add_chains(builder, p, strategy, teams)
    if in_turn:
        return add_flat(builder, p, strategy, in_turn)
    if few := parts(p, machine):
        return add_parts(builder, p, strategy, few)
    t = tiling(p, machine)
    span = EACH * t.chunks if t.look else t.batch * p.length
    groups = -(-p.outers // (t.units * t.batch)) * -(-p.inner // t.columns)
    tiles = -(-p.length // span) if t.look else 1
    walk = t.look and groups >= WALKED * machine.multiprocessors
    line = tree(tiles)
    count = groups * line.tiles
    folds = staged(t.threads, p)
    memory: tuple[Operand | bytes | None, ...] = (None, None, NO_LAUNCH)
    shared = folds
    if t.look:
        shared += line.levels * t.columns * p.carry
    if t.look and not walk:
        totals = p.outers * -(-p.inner // t.columns) * t.columns * line.groups * RADIX * TAGGED * p.carry
        memory = (Operand("scratch"), slots_of(builder, totals), LAUNCH)
    resident = CLOSE if t.look and max(p.sizes) <= 4 else RESIDENT
    blocks = groups if walk else min(count, machine.multiprocessors * resident)
    grid = check_grid(p.op, f"strategy {strategy!r}", (blocks, 1), "{} lines", p.kept.size)
    constants = {"RESIDENT": resident, "WALK": walk}
    step = Launch(
        kernel_of(p, t, span, count, constants), grid, t.threads,
        (*p.arrays, *memory, parameters(p, t, span, count, line, folds)), shared=shared,
    )  # fmt: skip
    builder.add(Plan(strategy, (step,), scratch=PARTIALS if t.look and not walk else 0))


def kernel_of(p: Problem, t: Tiling, span: int, count: int, constants: dict[str, int]) -> Kernel:
    """The kernel for a tiling."""
    types = types_of(p) | {
        "Index": index_type(p.kept.size, p.length, count), "Offset": offset_type(reaches(p.kept, p.line)),
    }  # fmt: skip
    one = t.columns == p.inner == 1
    more = {
        "KEPT": p.kept.rank_class, "LINE": p.line.rank_class, "BLOCK": BLOCK, "X_LINEAR": is_linear(p, t, 0),
        "Y_LINEAR": is_linear(p, t, 1), "SHORT": t.batch > 1, "LOOK": t.look, "EXCLUSIVE": p.exclusive,
        "ONE": one, "SIMPLE": one and (t.look or span % EACH == 0) and not any(p.backward),
        "DIRECT": is_direct(p, t), "EVEN": t.columns % EACH == 0,
        "PREFIX": p.exact, "SCALED": p.scaled, "ORDERED": p.ordered, "STATES": 0,
    }  # fmt: skip
    return variant("scan_tiles", types, more | constants)


def parameters(p: Problem, t: Tiling, span: int, count: int, line: Tree, folds: int) -> Params:
    """The kernel's parameters."""
    rakes, segment = t.rakes(p.ordered)
    return PARAMS.pack(
        offset_type(reaches(p.kept, p.line)), length=p.length, outers=p.outers, inner=p.inner,
        strips=-(-p.inner // t.columns), tiles=line.tiles, count=count, groups=line.groups, columns=t.columns,
        chunks=t.chunks, span=max(1, span), units=t.units, batch=t.batch, rakes=rakes, segment=segment,
        levels=line.levels, backward=p.backward,
        nothing=p.nothing + bytes(-len(p.nothing) % 8), folds=folds, kept=p.kept, line=p.line,
    )  # fmt: skip
