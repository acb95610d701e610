"""Threads across the kept dims, each with neighbouring outputs."""

from __future__ import annotations

from typing import NamedTuple

from ..access import PACK, Access, packable
from ..dtypes import ITEMSIZE
from ..geometry import Axes, power_of_2
from ..work import STATIC_SHARED, Plan
from .launch import (
    EXACT_PER_SM,
    IN_FLIGHT,
    NARROW,
    SEVERAL_PER_SM,
    THREADS_PER_SM,
    Design,
    Split,
    access_of,
    all_of,
    in_flight,
    launch,
    loads,
    several_bytes,
    several_in_flight,
    split,
)
from .problems import POSITION, Problem

THREAD_BLOCK = 256  # threads of a block, if each has outputs of its own
SEARCH_BLOCK = 128  # the same, of searches
SHARED_BLOCK = 512  # threads of a block, if they share outputs
HELD = 192  # bytes of partial results and packs in flight of a thread: with more, registers spill
SEVERAL_HELD = 400  # the same of several sums
SEVERAL_ROOM = 640  # bytes of terms, and of what they are made from, in flight of a thread's several sums
POWERS = 32  # bytes of partial results of a thread, for exponentials
SEGMENT = 256  # contiguous bytes that a block reads; twice as many in narrow packs
BUSY_SEGMENT = 128  # the same, for busy reductions in full packs, where blocks share outputs
COLUMNS = 128  # most outputs of a block; twice as many with funnel loads
NARROWER = 32  # outputs of a block of exact sums of single elements, if blocks share outputs
NARROWEST = 16  # fewest of them, if blocks do not
ENOUGH = 1.5  # times as many blocks as fill the GPU, from which on blocks do not
LONG = 128  # most packs of outputs of a block
LEAST = 4  # fewest elements for each thread of a block that shares outputs with others
WORTH = 192  # values (at least four per pack) of a thread from which on blocks share outputs
FEW_SPLITS = 16  # blocks of an output below which those of exact sums have half as many threads
RESERVED = 16  # bytes of shared memory for other uses than partial results
SHALLOW = 64  # most elements of outputs that one thread reduces alone
DEEP = 1  # packs of outputs per resident thread from which on a thread reduces outputs of any length alone
FUNNEL = 8  # bytes of a funnel load, at most, of a thread that reduces shallow outputs alone
SINGLES = 12  # most elements of an output whose thread loads all of them at once, if packs are single elements
STRIPES = 2  # shallow outputs of a thread, if their elements cannot be read in aligned packs
#: Most bytes of results of a thread with shallow outputs: one store. Busy reductions take the outputs of a word of x if
#: these are more.
STORE = 16


class Columns(NamedTuple):
    """Neighbouring outputs in packs."""

    access: Access
    kept: Axes
    packs: int
    run: int  # packs of neighbouring outputs
    head: int  # elements of the first pack before the first output
    block_per_run: bool  # a block for each run of neighbours: it reads contiguous memory

    @property
    def edged(self) -> bool:
        """Whether packs may extend beyond a run of neighbours."""
        return self.access.ragged or self.access.funnel or self.block_per_run


def plan_columns(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """The plan for columns: each thread has outputs of its own if there are enough, else threads share them."""
    machine = multiprocessors * THREADS_PER_SM
    shallow = p.length <= SHALLOW and 2 * p.outputs * max(p.result, NARROW) >= STORE * machine
    columns = in_packs(p, shallow)
    alone = shallow or columns.packs >= DEEP * machine
    return launch(p, strategy, thread_per_outputs(p, columns) if alone else shared_outputs(p, columns, multiprocessors))


def in_packs(p: Problem, shallow: bool) -> Columns:
    """The outputs of a problem in packs."""
    neighbours = p.kept.sizes[-1] if p.kept.sizes else 1
    held = SEVERAL_HELD if p.several else HELD
    most = POWERS // p.state if p.op.traits.exponential else held // (p.held + IN_FLIGHT * p.itemsize)
    stored = max(STORE // p.result, NARROW // ITEMSIZE[p.x] if p.op.busy else 1)
    access = access_of(p, p.kept, max(1, min(most, stored if shallow else PACK)))
    if access.funnel and (p.exact or shallow):
        access = access_of(p, p.kept, 1 if p.exact else min(access.vec, FUNNEL // ITEMSIZE[p.x]))
    if shallow and stripes(p, access):
        access = Access(STRIPES, "repeated" if p.other else "none", striped=True)
    head = p.starts[0] // ITEMSIZE[p.x] % access.vec if access.ragged else 0
    run, runs = -(-(head + neighbours) // access.vec), p.outputs // neighbours
    block_per_run = runs > 1 and run <= LONG and not shallow
    run = power_of_2(run) if block_per_run else run
    columns = Columns(access, p.kept, run * runs, run, head, block_per_run)
    return columns if columns.edged or access.striped else columns._replace(kept=p.kept.in_packs(access.vec))


def stripes(p: Problem, access: Access) -> bool:
    """Whether threads take outputs that are a block apart: those of an array's contiguous dim, enough for a block, of
    elements of up to four bytes; in place of funnel loads, if a thread would not store single bytes."""
    unaligned = access.vec == 1 or (access.funnel and p.result > 1)
    plain = unaligned and p.itemsize <= 4 and p.any_order and not (p.several or p.computed)
    row = len(p.kept.sizes) == 1 and p.kept.inner(0) == 1 and (p.other is None or p.kept.inner(1) == 0)
    return plain and row and p.outputs >= STRIPES * THREAD_BLOCK


def thread_per_outputs(p: Problem, columns: Columns) -> Design:
    """A thread per pack of outputs, over their whole length."""
    stored = 1 if columns.edged or columns.access.striped else store_width(p, columns.access.vec)
    block = SEARCH_BLOCK if p.op.second == POSITION else THREAD_BLOCK
    return design(p, columns, block, block, (1, p.length), THREADS_PER_SM, stored)


def shared_outputs(p: Problem, columns: Columns, multiprocessors: int) -> Design:
    """A block, or several, for some packs of outputs side by side; its threads divide their length."""
    vec, segment = columns.access.vec, SEGMENT
    resident = SEVERAL_PER_SM if p.several else EXACT_PER_SM if p.exact else THREADS_PER_SM
    if (nbytes := vec * p.itemsize) <= NARROW:
        resident, segment = resident * 3 // 2, 2 * SEGMENT
    elif p.op.busy and nbytes == PACK and not columns.edged:
        few = columns.packs * PACK // SEGMENT < multiprocessors * THREADS_PER_SM // SHARED_BLOCK
        segment = BUSY_SEGMENT if few else SEGMENT
    wide = columns.run
    if not columns.block_per_run:
        most = 2 * COLUMNS if columns.access.funnel else COLUMNS
        wide = min(power_of_2(columns.packs), LONG, segment // nbytes, most // vec)
    block = SHARED_BLOCK
    if p.several or (p.exact and -(-columns.packs // wide) * FEW_SPLITS >= multiprocessors):
        block //= 2
    fill = multiprocessors * resident // block
    if p.exact and vec == 1 and not columns.block_per_run:
        wide = narrow(columns.packs, wide, fill)
    while wide > 1 and cells(block, wide) * vec * p.state > STATIC_SHARED - RESERVED:
        wide //= 2
    deep = block // wide
    shared = Split(1, max(1, p.length))
    if p.length * max(vec, 4) >= WORTH * deep:
        shared = split(p, -(-columns.packs // wide), fill, p.length, deep, LEAST, vec * wide)
    return design(p, columns, block, wide, shared, resident, 1)


def narrow(outputs: int, wide: int, fill: int) -> int:
    """The most outputs side by side, up to ``wide``, with which there are enough blocks; NARROWER if blocks must share
    outputs, since exact sums take long to merge."""
    sizes = (wide >> n for n in range(wide.bit_length()) if wide >> n >= NARROWEST)
    return next((each for each in sizes if -(-outputs // each) >= ENOUGH * fill), min(wide, NARROWER))


def design(
    p: Problem, columns: Columns, block: int, wide: int, shared: tuple[int, int], resident: int, stored: int
) -> Design:
    """The design with ``wide`` packs of outputs side by side; ``shared``: blocks per output, and the chunk of each."""
    blocks, chunk = shared
    access = columns.access
    own = -(-chunk * wide // block)  # packs of a thread
    if access.vec == 1 and block == wide and all_there(p, access, own):
        unroll = all_of(own)
    elif p.several:
        unroll = several_in_flight(p, own, access, SEVERAL_ROOM)
    else:
        unroll = in_flight(p, own, access, p.exact and p.ahead and p.itemsize > 2)
        if access.vec * p.itemsize == 1:
            unroll = min(unroll, IN_FLIGHT)
    single = p.exact and (block == wide or not p.wide) and own <= unroll and not (access.ragged or access.funnel)
    constants = {
        "WIDE": wide, "UNROLL": unroll, "EDGED": columns.edged,
        "PARTIAL": access.ragged or access.funnel, "FUNNEL": access.funnel, "STRIPED": access.striped,
        "STORED": stored,
    }  # fmt: skip
    counts = p.outputs if access.striped else columns.packs, p.length, chunk, 1, 1
    return Design(
        "reduce_columns", access, (-(-columns.packs // wide), blocks), block, columns.kept, p.reduced, counts,
        constants, columns.run, columns.head, access.vec * wide, resident, single=single, near=block == wide,
    )  # fmt: skip


def all_there(p: Problem, access: Access, count: int) -> bool:
    """Whether a thread has room for all elements of an exact output at once."""
    if p.several:
        size, room = several_bytes(p, access), SEVERAL_ROOM
    else:
        size, room = max(p.loaded, p.itemsize * loads(p, access)), HELD
    return p.exact and count <= SINGLES and count * size <= room


def cells(block: int, wide: int) -> int:
    """Packs of partial results of a block in shared memory."""
    return wide * (block // max(32, wide))


def store_width(p: Problem, vec: int) -> int:
    """Outputs per store of a thread with ``vec`` neighbouring ones."""
    most = 1 if p.several else min(vec, PACK // p.result)
    for width in (16, 8, 4, 2):
        if width <= most and packable(width, p.result, p.starts[2], 2, p.kept, inner=p.kept):
            return width
    return 1
