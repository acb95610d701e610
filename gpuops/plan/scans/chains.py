"""The launch of a scan of many lines, 32 of them for each warp."""

from __future__ import annotations

from typing import NamedTuple

from ..access import PACK
from ..builder import Builder
from ..work import Launch, Machine, Plan, check_grid
from .common import EACH, tree
from .lanes import DIGITS, LANES, RESERVED, Sides, kernel_of, parameters, sides, staged_of
from .problems import Problem

RESIDENT = 2  # blocks of a multiprocessor
#: Warps of a block, at most 15 (each has a barrier of its own): of ops whose merges have an order, and of lines side by
#: side whose elements have 8 bytes; of others.
MANY, USUAL = 12, 8
#: Elements of lines from which on a warp's lanes have a line each; True: of lines side by side, if sums are exact or
#: merges have an order.
TALL = {False: 16, True: 2}
LONG = 256  # elements of lines of which a chunk that is not full is a small part
FILLED = 0.75  # of the teams that there is room for have a strip, where there is another way


class Chains(NamedTuple):
    """How teams of warps share out lines."""

    sides: Sides
    levels: int  # of a line's tree above its chunks
    warps: int  # of a block
    size: int  # warps of a team
    strips: int

    @property
    def teams(self) -> int:
        """Teams of a block."""
        return self.warps // self.size


def chains(p: Problem, machine: Machine) -> Chains | None:
    """How teams share out lines. None if these are short, or too few for all multiprocessors."""
    each = sides(p)
    tall = TALL[(p.exact or p.ordered) and not any(each)]
    if len(p.line.sizes) != 1 or p.length < tall or p.kept.size < machine.multiprocessors * LANES:
        return None
    chunks = -(-p.length // EACH)
    most = MANY if p.ordered or (max(p.sizes) == 8 and not any(each)) else USUAL
    warps = min(most, (machine.shared // RESIDENT - RESERVED) // shared_of(p, each))
    warps -= warps % 2 if warps > 2 else 0
    size = max([n for n in range(1, min(warps, chunks) + 1) if warps % n == 0])
    return Chains(each, tree(chunks).levels if p.ordered else 0, warps, size, -(-p.kept.size // LANES))


def shared_of(p: Problem, each: Sides) -> int:
    """Bytes of shared memory of a warp: for elements, results, what comes before, and digits."""
    return staged_of(p, each, 1, False) + LANES * p.carry * (2 if p.ordered else 1) + DIGITS * p.exact


def pays(p: Problem, t: Chains, machine: Machine) -> bool:
    """Whether this is faster than the kernel of lines without gaps: for sums that take the time, if these lines are as
    many as teams and go by packs."""
    slots = machine.multiprocessors * RESIDENT * t.teams
    filled = t.strips / (-(-t.strips // slots) * slots)
    packs = all([
        start % PACK == 0 and p.length * size % PACK == 0 for start, size in zip(p.starts, p.sizes, strict=True)
    ])  # fmt: skip
    return p.exact and filled >= FILLED and packs and (p.length % EACH == 0 or p.length >= LONG)


def add_chains(builder: Builder, p: Problem, strategy: str, t: Chains) -> None:
    """Add a scan in one pass over memory to a plan."""
    blocks = min(-(-t.strips // t.teams), builder.machine.multiprocessors * RESIDENT)
    grid = check_grid(p.op, f"strategy {strategy!r}", (blocks, 1), "{} lines", p.kept.size)
    shared = t.warps * staged_of(p, t.sides, 1, False) + t.teams * t.levels * LANES * p.carry
    kernel = kernel_of("scan_chains", p, t.sides, LANES, 0, WARPS=t.warps, RESIDENT=RESIDENT, DEPTH=1, CHAINED=1)
    params = parameters(p, strips=t.strips, parts=1, size=t.size, levels=t.levels)
    builder.add(Plan(strategy, (Launch(kernel, grid, LANES * t.warps, (*p.arrays, params), shared=shared),)))
