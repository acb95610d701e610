"""Threads across the kept dims, each with neighbouring outputs."""

from __future__ import annotations

from typing import NamedTuple

from ..access import PACK, Access, packable
from ..dtypes import ITEMSIZE
from ..geometry import Axes, power_of_2
from ..work import STATIC_SHARED, Plan
from .launch import IN_FLIGHT, NARROW, THREADS_PER_SM, Design, Split, access_of, in_flight, launch, split
from .problems import Problem

THREAD_BLOCK = 256  # threads of a block whose threads have their outputs alone
SHARED_BLOCK = 512  # and of one whose threads share them;
LARGE_BLOCK = 1024  # of variances in packs of 8 bytes, where there are fewer blocks than multiprocessors
HELD = 192  # bytes of partial results and of packs in flight in a thread: with more, registers spill
POWERS = 32  # bytes of the partial results of powers
SEGMENT = 256  # bytes next to each other that a block reads; twice as many in narrow packs;
BUSY_SEGMENT = 128  # of busy reductions in full packs, where blocks share their outputs
COLUMNS = 128  # outputs of a block, at most; twice as many through a funnel
LONG = 128  # and packs of them
LEAST = 4  # elements for each thread of a block that shares its outputs, at least
WORTH = 192  # values that a thread reads, in packs of four or more, before its block shares its outputs with others
RESERVED = 16  # bytes of shared memory for other things than partial results
SHALLOW = 64  # elements of an output that one thread may take alone
DEEP = 1  # or any number, if every thread of the machine finds so many packs of outputs
STORE = 16  # bytes of results that such a thread writes, at most: what one store can; or those of a word that it reads,
# in busy reductions


class Columns(NamedTuple):
    """Neighbouring outputs in packs."""

    access: Access
    kept: Axes
    packs: int
    run: int  # packs of neighbouring outputs
    head: int  # elements of the first pack before the first output
    block_per_run: bool  # a block for a run of neighbours: all that it reads is one piece of memory

    @property
    def edged(self) -> bool:
        """Whether packs may reach out of a run of neighbours."""
        return self.access.ragged or self.access.funnel or self.block_per_run


def plan_columns(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """The plan for columns: threads have their outputs alone if there are enough of them, else they share them."""
    machine = multiprocessors * THREADS_PER_SM
    shallow = p.length <= SHALLOW and 2 * p.outputs * p.result >= STORE * machine
    columns = in_packs(p, shallow)
    alone = shallow or columns.packs >= DEEP * machine
    return launch(p, strategy, thread_per_outputs(p, columns) if alone else shared_outputs(p, columns, multiprocessors))


def in_packs(p: Problem, shallow: bool) -> Columns:
    """The outputs of a problem in packs."""
    neighbours = p.kept.sizes[-1] if p.kept.sizes else 1
    most = POWERS // p.state if p.op.traits.exponential else HELD // (p.held + IN_FLIGHT * ITEMSIZE[p.x])
    stored = max(STORE // p.result, NARROW // ITEMSIZE[p.x] if p.op.busy else 1)
    access = access_of(p, p.kept, max(1, min(most, stored if shallow else PACK)))
    head = p.starts[0] // ITEMSIZE[p.x] % access.vec if access.ragged else 0
    run, runs = -(-(head + neighbours) // access.vec), p.outputs // neighbours
    block_per_run = runs > 1 and run <= LONG and not shallow
    run = power_of_2(run) if block_per_run else run
    columns = Columns(access, p.kept, run * runs, run, head, block_per_run)
    return columns if columns.edged else columns._replace(kept=p.kept.in_packs(access.vec))


def thread_per_outputs(p: Problem, columns: Columns) -> Design:
    """Each thread alone with a pack of outputs, over their whole length."""
    stored = 1 if columns.edged else store_width(p, columns.access.vec)
    return design(p, columns, THREAD_BLOCK, THREAD_BLOCK, (1, p.length), THREADS_PER_SM, stored)


def shared_outputs(p: Problem, columns: Columns, multiprocessors: int) -> Design:
    """A block with some packs of outputs side by side, whose threads share their length; or several such blocks."""
    vec, resident, segment = columns.access.vec, THREADS_PER_SM, SEGMENT
    if (nbytes := vec * ITEMSIZE[p.x]) <= NARROW:
        resident, segment = THREADS_PER_SM * 3 // 2, 2 * SEGMENT
    elif p.op.busy and nbytes == PACK and not columns.edged:
        few = columns.packs * PACK // SEGMENT < multiprocessors * THREADS_PER_SM // SHARED_BLOCK
        segment = BUSY_SEGMENT if few else SEGMENT
    wide = columns.run
    if not columns.block_per_run:
        most = 2 * COLUMNS if columns.access.funnel else COLUMNS
        wide = min(power_of_2(columns.packs), LONG, segment // nbytes, most // vec)
    narrow = p.op.traits.centered and nbytes == PACK // 2 and not columns.edged
    block = LARGE_BLOCK if narrow and -(-columns.packs // wide) < multiprocessors else SHARED_BLOCK
    while wide > 1 and cells(block, wide) * vec * p.state > STATIC_SHARED - RESERVED:
        wide //= 2
    fill, deep = multiprocessors * resident // block, block // wide
    shared = Split(1, max(1, p.length))
    if p.length * max(vec, 4) >= WORTH * deep:
        shared = split(p, -(-columns.packs // wide), fill, p.length, deep, LEAST, vec * wide)
    return design(p, columns, block, wide, shared, resident, 1)


def design(
    p: Problem, columns: Columns, block: int, wide: int, shared: tuple[int, int], resident: int, stored: int
) -> Design:
    """The design with ``wide`` packs of outputs side by side, ``shared`` by so many blocks in such chunks."""
    blocks, chunk = shared
    access = columns.access
    constants = {
        "WIDE": wide, "UNROLL": in_flight(p, -(-chunk * wide // block), access), "EDGED": columns.edged,
        "PARTIAL": access.ragged or access.funnel, "FUNNEL": access.funnel, "STORED": stored,
    }  # fmt: skip
    counts = columns.packs, p.length, chunk, 1, 1
    return Design(
        "reduce_columns", access, (-(-columns.packs // wide), blocks), block, columns.kept, p.reduced, counts,
        constants, columns.run, columns.head, access.vec * wide, resident,
    )  # fmt: skip


def cells(block: int, wide: int) -> int:
    """Packs of partial results that the threads of a block bring together in shared memory."""
    return wide * (block // max(32, wide))


def store_width(p: Problem, vec: int) -> int:
    """Outputs that a thread with ``vec`` neighbouring ones writes at once."""
    most = min(vec, PACK // p.result)
    for width in (16, 8, 4, 2):
        if width <= most and packable(width, p.result, p.starts[2], 2, p.kept, inner=p.kept):
            return width
    return 1
