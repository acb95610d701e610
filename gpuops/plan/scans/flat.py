"""The launch of a scan of lines that lie one after the other in memory."""

from __future__ import annotations

from typing import NamedTuple

from ..access import PACK
from ..builder import Builder
from ..params import Field, Struct
from ..work import LAUNCH, PARTIALS, Launch, Machine, Operand, Plan, check_grid, variant
from .common import RADIX, TAGGED, slots_of, types_of
from .problems import Problem

OWN = 64  # bytes of a thread's elements or, if these are wider, of its results, if that is whole packs of both
MOST = 32  # elements of a thread, at most
WARPS = 20  # of a block that scan, at most
FEW = 4  # the same, if there is at most one block for each multiprocessor then
ROOM = 200 * 1024  # bytes of shared memory for elements and results, at most
LOOKING = 3  # warps that look back, in turn
AHEAD = 1  # tiles that a block loads in advance
LATER = 3  # steps after which a block looks at a tile again
LONG_OWN, LONG_LATER = 128, 2  # the same where lines are not short, but for exact sums of float64
SHORT = 4096  # elements of lines of which each warp has some that begin
FAR = 1 << 30  # as long as a line needs to be known
BRIEF = 8  # bytes of an exact sum that is a double
STATIC = 20 * 1024  # bytes of shared memory beside those for elements, at most

PARAMS = Struct(
    "Flat",
    Field("i64", "size", "elements of all lines"),
    Field("i64", "length", "elements of a line"),
    Field("i64", "step", "elements of all blocks' tiles, modulo those of a line"),
    Field("Divisor", "near", "elements of a line, at most FAR"),
    Field("u32", "count", "tiles"),
    Field("u32", "full", "of which all elements are there"),
    Field("i64", "comb", "bits of the elements that begin lines, from one that does on"),
    Field("Tout", "nothing", "the result of no elements"),
)


class Flat(NamedTuple):
    """How blocks share out lines that lie one after the other in memory."""

    backward: tuple[bool, bool]  # whether x and out are in the opposite order
    own: int  # elements of a thread
    later: int  # steps after which a block looks at a tile again
    warps: int  # of a block that scan
    tiles: int
    blocks: int

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.warps * 32 * self.own


def flat(p: Problem, machine: Machine) -> Flat | None:
    """How blocks share out lines. None if these lie otherwise, if states merge in an order, or if blocks cannot wait
    for each other."""
    backward = directions(p)
    if p.ordered or backward is None:
        return None
    size, wide = p.kept.size * p.length, p.exact and p.val == "float64"
    few = size <= machine.multiprocessors * FEW * 32 * own_of(p, OWN)
    own, later = (LONG_OWN, LONG_LATER) if p.length >= SHORT and not (few or wide) else (OWN, LATER)
    own = own_of(p, own)
    warps = max(1, min(FEW if few else WARPS, min(ROOM, machine.shared - STATIC) // shared_of(p, own, later)))
    tiles = -(-size // (warps * 32 * own))
    blocks = tiles if tiles <= machine.multiprocessors else machine.together
    return Flat(backward, own, later, warps, tiles, blocks) if blocks else None


def own_of(p: Problem, nbytes: int) -> int:
    """Elements of a thread that has so many bytes of x or of out."""
    return max(PACK // min(p.sizes), min(MOST, nbytes // max(p.sizes)))


def directions(p: Problem) -> tuple[bool, bool] | None:
    """Whether x and out are in the opposite order in memory, if their lines lie one after the other without gaps."""
    if p.inner != 1 or len(p.line.sizes) > 1 or len(p.kept.sizes) > 1 or p.length == 0:
        return None
    found = []
    for operand in (0, 1):
        step = p.line.inner(operand) if p.length > 1 else 1
        if abs(step) != 1 or (p.outers > 1 and p.kept.inner(operand) != p.length):
            return None
        found.append(step < 0)
    return (found[0], found[1]) if found[0] == found[1] or p.outers == 1 else None


def shared_of(p: Problem, elements: int, later: int) -> int:
    """Bytes of shared memory for so many elements of each lane of a warp, and for results of another size."""
    x, out = p.sizes
    return 32 * elements * ((AHEAD + later + 1) * x + (out if out != x else 0))


def add_flat(builder: Builder, p: Problem, strategy: str, t: Flat) -> None:
    """Add a scan in one pass over memory to a plan."""
    size = p.kept.size * p.length
    memory = slots_of(builder, -(-t.tiles // RADIX) * RADIX * TAGGED * (p.carry + BRIEF * p.exact))
    grid = check_grid(p.op, f"strategy {strategy!r}", (t.blocks, 1), "{} elements", size)
    together = t.tiles > t.blocks
    looking = LOOKING if together else 1
    types = types_of(p) | {"Index": "u32"}
    constants = {
        "OWN": t.own, "WARPS": t.warps, "LOOKING": looking, "AHEAD": AHEAD, "LATER": t.later, "SHORT": p.length < SHORT,
        "X_BACK": t.backward[0], "Y_BACK": t.backward[1], "EXCLUSIVE": p.exclusive, "PREFIX": p.exact, "ORDERED": False,
        "STATES": 0,
    }  # fmt: skip
    params = PARAMS.pack(
        "i64", size=size, length=p.length, step=t.blocks * t.tile % p.length, near=min(p.length, FAR), count=t.tiles,
        full=size // t.tile, comb=comb(p.length), nothing=p.nothing + bytes(-len(p.nothing) % 8),
    )  # fmt: skip
    step = Launch(
        variant("scan_flat", types, constants), grid, 32 * (t.warps + looking),
        (*begins(p, t), Operand("scratch"), memory, LAUNCH, params), shared=shared_of(p, t.warps * t.own, t.later),
        cooperative=together,
    )  # fmt: skip
    builder.add(Plan(strategy, (step,), scratch=PARTIALS))


def begins(p: Problem, t: Flat) -> list[Operand]:
    """Where x and out begin: in the opposite order, with the last line."""
    more = (p.outers - 1) * p.length
    return [
        Operand(array.name, array.offset + more * size * back)
        for array, size, back in zip(p.arrays, p.sizes, t.backward, strict=True)
    ]


def comb(length: int) -> int:
    """Bits at all multiples of a length.

    >>> bin(comb(10))
    '0b1000000000100000000010000000001'
    """
    return sum([1 << i for i in range(0, MOST, length)])
