"""Small arrays: one kernel for any strides, element by element."""

from __future__ import annotations

from ..access import PACK, Access, packable
from ..dtypes import ITEMSIZE
from ..small import BLOCK, SIDE, shared
from ..work import STATIC_SHARED, Plan
from .launch import THREADS_PER_SM, Design, launch, split
from .problems import Problem

#: Elements of x below which it is small. WHOLE: a single row in packs, of elements below 8 bytes, or each row in packs
#: of a busy reduction. WIDE: other single rows. LONG: other long rows in packs. ODD: else.
WHOLE, WIDE, LONG, ODD = 2**11, 2**18, 2**18, 2**21
SHORT = 512  # bytes from which on a row is long
UNROLL = 8  # elements in flight per thread
MOST = 2**31  # outputs, and elements of one, below which the kernel's indices suffice
WORTH = 24  # elements per thread from which on blocks share an output
LEAST = 4  # fewest elements per thread of these blocks


def is_small(p: Problem) -> bool:
    """Whether x is too small for other kernels to gain time, and a block's partial results fit shared memory."""
    if not has_room(p):
        return False
    if p.general:
        return max(p.outputs, p.length) < MOST
    size, along = ITEMSIZE[p.x], p.reduced.inner(0) == 1
    packed = along and packable(PACK // size, size, p.starts[0], 0, p.kept, p.reduced, inner=p.reduced)
    run = along and len(p.reduced.sizes) == 1
    if run and packed and p.length >= WHOLE and (p.op.busy or (p.outputs == 1 and size < 8)):
        return False
    long = LONG if packed and p.length * size >= SHORT else ODD
    return p.outputs * p.length < (WIDE if run and p.outputs == 1 else long)


def has_room(p: Problem) -> bool:
    """Whether a block's partial results fit shared memory."""
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
