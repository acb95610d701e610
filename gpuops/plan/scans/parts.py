"""The launch of a scan of few lines, in parts."""

from __future__ import annotations

from typing import NamedTuple

from ..builder import Builder
from ..work import LAUNCH, PARTIALS, Launch, Machine, Operand, Plan, check_grid
from .common import EACH, RADIX, TAGGED, slots_of
from .lanes import DIGITS, LANES, RESERVED, Sides, kernel_of, parameters, sides, staged_of
from .problems import Problem

WARPS = 8  # of a block
RESIDENT = 2  # blocks of a multiprocessor
DEPTH = 4  # chunks of a lane in a part, at most
BRIEF = 8  # bytes of an exact sum that is a double
KNOWN = 8  # bytes of what is known of a chunk


class Parts(NamedTuple):
    """How blocks share out lines."""

    sides: Sides
    share: int  # lines of a warp
    depth: int  # chunks of a lane in a part
    warps: int  # of a block
    strips: int
    parts: int  # of a line

    @property
    def narrow(self) -> bool:
        """Whether lanes share lines."""
        return self.share < LANES


def parts(p: Problem, machine: Machine) -> Parts | None:
    """How blocks share out lines. None if merges have an order, or if these are short."""
    if p.ordered or len(p.line.sizes) != 1 or p.length < EACH:
        return None
    each, share = sides(p), LANES
    if 1 < p.inner < LANES and all([abs(p.kept.inner(k)) < abs(p.line.inner(k)) for k in (0, 1)]):
        each, share = Sides(False, False), p.inner
    elif p.kept.size < LANES and all(each):
        share = 1
    narrow = share < LANES
    for depth in range(DEPTH, 0, -1):
        warps = min(WARPS, (machine.shared // RESIDENT - RESERVED) // shared_of(p, each, depth, narrow))
        if warps == WARPS:
            break
    strips = -(-p.kept.size // share)
    count = -(-p.length // (warps * depth * (LANES // share) * EACH))
    return Parts(each, share, depth, warps, strips, count) if strips * count >= machine.multiprocessors else None


def shared_of(p: Problem, each: Sides, depth: int, narrow: bool) -> int:
    """Bytes of shared memory of a warp: for elements, results, what comes before, and digits."""
    more = depth * LANES * (p.carry + KNOWN * p.exact) + LANES * (p.carry + 1) + DIGITS * p.exact
    return staged_of(p, each, depth, narrow) + more


def add_parts(builder: Builder, p: Problem, strategy: str, t: Parts) -> None:
    """Add a scan in one pass over memory to a plan."""
    totals = t.strips * t.parts * t.share
    memory = slots_of(builder, -(-totals // RADIX) * RADIX * TAGGED * (p.carry + BRIEF * p.exact))
    blocks = min(t.strips * t.parts, builder.machine.multiprocessors * RESIDENT)
    grid = check_grid(p.op, f"strategy {strategy!r}", (blocks, 1), "{} lines", p.kept.size)
    constants = {"WARPS": t.warps, "RESIDENT": RESIDENT, "DEPTH": t.depth, "CHAINED": 0}
    kernel = kernel_of("scan_parts", p, t.sides, t.share, totals, **constants)
    params = parameters(p, strips=t.strips, parts=t.parts, size=t.warps, levels=0)
    shared = t.warps * (staged_of(p, t.sides, t.depth, t.narrow) + t.depth * LANES * (p.carry + KNOWN * p.exact))
    step = Launch(
        kernel, grid, LANES * t.warps, (*p.arrays, Operand("scratch"), memory, LAUNCH, params), shared=shared,
    )  # fmt: skip
    builder.add(Plan(strategy, (step,), scratch=PARTIALS))
