"""Small arrays: one kernel for whatever strides, element by element."""

from __future__ import annotations

from ..access import PACK, Access, packable
from ..dtypes import ITEMSIZE
from ..small import BLOCK, SIDE, shared
from ..work import STATIC_SHARED, Plan
from .launch import THREADS_PER_SM, Design, launch, split
from .problems import Problem

#: Elements of x below which it is small: of one row in packs, if they have fewer than 8 bytes, and of each row of busy
#: reductions; of other single rows; of other long rows in packs; of all others.
WHOLE, WIDE, LONG, ODD = 2**11, 2**18, 2**18, 2**21
SHORT = 512  # bytes of a row that is short
UNROLL = 8  # elements that a thread has in flight
WORTH = 24  # elements of a thread from which on blocks share an output;
LEAST = 4  # and of one of theirs, at least


def is_small(p: Problem) -> bool:
    """Whether x is so small that it hardly matters how it is read, and a block's partial results find room."""
    if not has_room(p):
        return False
    size, along = ITEMSIZE[p.x], p.reduced.inner(0) == 1
    packed = along and packable(PACK // size, size, p.starts[0], 0, p.kept, p.reduced, inner=p.reduced)
    run = along and len(p.reduced.sizes) == 1
    if run and packed and p.length >= WHOLE and (p.op.busy or (p.outputs == 1 and size < 8)):
        return False
    long = LONG if packed and p.length * size >= SHORT else ODD
    return p.outputs * p.length < (WIDE if run and p.outputs == 1 else long)


def has_room(p: Problem) -> bool:
    """Whether a block's partial results find room."""
    return p.state * (BLOCK + SIDE) <= STATIC_SHARED


def plan_small(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """The plan for a small array: threads along whichever dims are contiguous in memory."""
    shares = shared(p.outputs, p.length, ITEMSIZE.get(p.x, p.state), strategy == "columns", multiprocessors)
    lanes, wide = 1 << shares.lanes, 1 << shares.wide
    count, blocks, chunk = -(-p.outputs // wide), 1, max(1, p.length)
    if p.length >= WORTH * lanes and (shares.across or wide == 1):
        fill = multiprocessors * THREADS_PER_SM // shares.block
        blocks, chunk = split(p, count, fill, p.length, lanes, LEAST, wide)
    counts = p.outputs, p.length, chunk, 1, 1
    constants = {"UNROLL": UNROLL, "BLOCK": BLOCK, "RESIDENT": 0}
    design = Design(
        "reduce_small", Access(1, "beside" if p.other else "none"), (count, blocks), shares.block, p.kept.dims(),
        p.reduced, counts, constants, states=wide, shares=shares,
    )  # fmt: skip
    return launch(p, strategy, design)
