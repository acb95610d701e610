"""Threads along the reduced dims: a thread, some lanes, a block or several blocks per output."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..access import PACK, Access
from ..dtypes import ITEMSIZE
from ..geometry import Axes, floor_power_of_2, power_of_2
from ..work import Plan
from .launch import (
    EXACT_PER_SM,
    NARROW,
    THREADS_PER_SM,
    Design,
    access_of,
    in_flight,
    launch,
    loads,
    several_in_flight,
    split,
)
from .problems import FACTOR, POSITION, Problem

BLOCK = 256
LANES_PACKS = {False: 384, True: 512}  # most packs of a row for lanes; True: of exponentials
LANES_EXACT = 256  # the same for exact sums: 8 packs of each lane are in flight
WARPS_PER_SM = 8  # rows per multiprocessor from which on that holds
LANES_ALWAYS = 128  # most packs of a row for lanes, if rows are fewer
ALONE = 8192  # most packs of a row for a single block
ALONE_SLOW = 2**15  # most elements of a row for a single block, if elements take many instructions
MERGED_PACKS = 2  # packs per lane of exponentials and of large states, so that fewer lanes merge
MERGED = 8  # bytes above which a state is large
AT_A_TIME = {False: 16, True: 32}  # elements that `Exponentials` (accumulate.cuh) takes at a time; True: of 16 bits
ROWS = 4  # most rows of a thread, if each is one pack
TINY = 8  # most elements of a row for a thread that takes several rows, if they make no full pack
ROW_BLOCK = {1: 128, 2: 256, 4: 256, 8: 128, 16: 128}  # threads of a block for a row, by item size, if rows are many
BLOCKS_PER_SM = 2  # rows per multiprocessor that are many for blocks
SEVERAL_PACKS, SEVERAL_BLOCK = 32, 32  # packs of a lane, and threads of a block, of several sums: merges take long
SEVERAL_ROOM = 320  # bytes of terms, and of what they are made from, in flight of a thread's several sums
RUN_PACKS = 256  # packs of a run, for each warp of a block, beyond which the whole block shares the run
SPLIT_BLOCK = 512  # threads of a block that shares its row with others
STAGED = 256  # bytes below which rows without aligned packs go through shared memory
STAGED_IDLE = 512  # the same limit, if packs would leave many lanes idle
BUSY = 26  # busy lanes of 32 below which many are idle
STAGED_LONG = 1024  # the same limit, for elements of 8 bytes and more, and for searches
STAGE = 2**14  # bytes of rows per block in shared memory
STAGE_LONG = 24 * 2**10  # the same of exact sums and of exponentials, which take long
LEFT_OUT = 0.4  # of the rows that fit there are left out, at most, so that the others are whole rounds of a block


class Rows(NamedTuple):
    """Rows in packs: runs along the innermost reduced dim if they have head and tail, else one run each."""

    access: Access
    reduced: Axes
    packs: int  # of a run
    runs: int  # of a row

    @property
    def total(self) -> int:
        return self.packs * self.runs


def plan_rows(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """The plan for rows: one of the cases below."""
    access = access_of(p, p.reduced)
    whole = access.vec * p.itemsize >= PACK and not access.ragged
    if not whole and not p.several:  # packs would not help
        if 0 < p.length <= TINY and without_second(p):
            return launch(p, strategy, thread_per_rows(p, access))
        if p.length * p.itemsize < longest_staged(p) and dense(p, 0) and (beside := beside_rows(p)):
            return launch(p, strategy, staged(p, beside, multiprocessors))
    rows = in_packs(p, access)
    many = p.outputs >= multiprocessors * WARPS_PER_SM
    most = LANES_EXACT if p.exact else LANES_PACKS[p.op.traits.exponential]
    short = rows.total <= (most if many else LANES_ALWAYS)
    design = lanes_per_row(p, rows, multiprocessors) if short else blocks_per_row(p, rows, multiprocessors)
    return launch(p, strategy, design)


def in_packs(p: Problem, access: Access) -> Rows:
    """The rows of a problem in packs."""
    if access.ragged:
        length = p.reduced.sizes[-1]
        return Rows(access, p.reduced, length // access.vec, p.reduced.size // length)
    reduced = p.reduced.in_packs(access.vec)
    return Rows(access, reduced, reduced.size if p.length else 0, 1)


def longest_staged(p: Problem) -> int:
    """The bytes below which a row goes through shared memory."""
    if p.itemsize >= 8 or p.op.second == POSITION:
        return STAGED_LONG
    return STAGED_IDLE if idle(p) else STAGED


def idle(p: Problem) -> bool:
    """Whether packs of a row would leave many of its lanes idle."""
    packs = p.length * p.itemsize // PACK
    return 32 * packs < BUSY * power_of_2(packs)


def counts_along(p: Problem) -> bool:
    """Whether the second operand is the element's place in its row."""
    where = p.arrays[1]
    plain = where is not None and where.offset == 0 and p.reduced.strides[1] == (1,)
    return p.op.second == POSITION and plain and not any(p.kept.strides[1])


def without_second(p: Problem) -> bool:
    """Whether rows have no second operand in memory."""
    return p.other is None or counts_along(p)


def dense(p: Problem, operand: int) -> bool:
    """Whether an operand's rows are contiguous, one after the other."""
    itemsize = ITEMSIZE[p.x if operand == 0 else p.other or p.x]
    strides = p.kept.strides[operand], p.reduced.strides[operand]
    return strides == ((p.length,), (1,)) and p.starts[operand] % itemsize == 0


def beside_rows(p: Problem) -> str:
    """How the second operand of a sum lies beside contiguous rows: as they do, or a row for all of them; "" if it does
    not."""
    if without_second(p):
        return "none"
    if not p.op.summed or p.other is None or ITEMSIZE[p.other] > ITEMSIZE[p.x]:
        return ""
    return "beside" if dense(p, 1) else "" if any(p.kept.strides[1]) else "loose"


def thread_per_rows(p: Problem, access: Access) -> Design:
    """A thread for several rows of few elements: neighbouring ones, if a pack of one row would be less than a word."""
    rows = PACK // max(ITEMSIZE[p.x], p.result)  # neighbours, whose results one store writes
    vec = math.gcd(math.gcd(PACK, p.starts[0]) // ITEMSIZE[p.x], rows * p.length)
    stored = p.kept.inner(2) == 1 and p.starts[2] % (rows * p.result) == 0
    across = access.vec * p.itemsize < NARROW and access.vec < vec and dense(p, 0) and stored
    if not across:
        rows, vec = 2 * TINY // power_of_2(p.length), access.vec
    constants = {"LENGTH": p.length, "ROWS": rows, "PILED": across}
    counts = p.outputs, p.length, p.length, 1, 1
    blocks = -(-p.outputs // (BLOCK * rows)), 1
    return Design(
        "reduce_tiny", Access(vec), blocks, BLOCK, p.kept, p.reduced, counts, constants, single=p.exact, near=p.exact
    )


def staged(p: Problem, beside: str, multiprocessors: int) -> Design:
    """A block for several short rows, which it copies to shared memory as one piece."""
    vec = PACK // ITEMSIZE[p.x]
    long = p.op.traits.exponential or (p.exact and not p.computed)
    stage = STAGE_LONG if long and beside != "beside" else STAGE
    fit = (stage // ITEMSIZE[p.x] - vec) // p.length  # the first row may begin anywhere in its pack
    chunk = min(fit, max(32, -(-p.outputs // (multiprocessors * BLOCKS_PER_SM))))
    team = min(32, max(1, floor_power_of_2(BLOCK // chunk)))
    rest = chunk % (BLOCK // team)
    if rest <= LEFT_OUT * chunk:  # no thread is idle in the last round
        chunk -= rest
    constants = {"TEAM": team, "UNROLL": stage // (PACK * BLOCK)}
    counts = p.outputs, p.length, chunk, 1, 1
    blocks = -(-p.outputs // chunk), 1
    return Design(
        "reduce_staged", Access(vec, beside), blocks, BLOCK, p.kept, p.reduced, counts, constants, single=p.exact,
        near=p.exact,
    )  # fmt: skip


def lanes_per_row(p: Problem, rows: Rows, multiprocessors: int) -> Design:
    """Some lanes of a warp for a row, or a thread for a few rows."""
    lane = MERGED_PACKS if p.op.traits.exponential or p.state > MERGED else 1
    if p.exact:
        lane = SEVERAL_PACKS if p.several else 2 if rows.packs < 16 else 4 if rows.packs < 64 else 8
    group = min(32, power_of_2(-(-rows.packs // lane)))
    single = at_once(p, rows, rows.packs, group)
    loose = p.exact and not single and rows.access.beside == "loose" and p.val[0] != "c"
    unroll = at_most(p, -(-rows.packs // group), rows.access, busy=loose)
    enough = unroll * p.outputs * group // (multiprocessors * THREADS_PER_SM)  # packs that may be one thread's
    size = rows.access.vec * p.itemsize
    several = max(1, floor_power_of_2(min(ROWS * PACK // size, 16, enough)) // unroll)
    constants = {
        "GROUP": group, "TEAM": group, "ROWS": several, "UNROLL": unroll, "RAGGED": rows.access.ragged,
    }  # fmt: skip
    counts = p.outputs, rows.packs, rows.packs, rows.runs, rows.runs
    blocks = -(-p.outputs // (BLOCK // group * several)), 1
    return Design(
        "reduce_rows", rows.access, blocks, BLOCK, p.kept, rows.reduced, counts, constants, single=single, near=single
    )


def blocks_per_row(p: Problem, rows: Rows, multiprocessors: int) -> Design:
    """A block for a row, or several blocks, each with part of a long run or with some of many runs."""
    chunk, run_chunk, blocks = rows.packs, rows.runs, 1
    resident = EXACT_PER_SM if p.exact else THREADS_PER_SM
    alone = min(ALONE, ALONE_SLOW // rows.access.vec) if slow(p) else ALONE
    if rows.total * loads(p, rows.access) > alone:
        fill = multiprocessors * resident // SPLIT_BLOCK
        if rows.runs < fill:
            blocks, chunk = split(p, p.outputs, fill, rows.packs, SPLIT_BLOCK)
        else:
            blocks, run_chunk = split(p, p.outputs, fill, rows.runs, 1)
    block = SPLIT_BLOCK if blocks > 1 else block_of(p, rows.total, multiprocessors)
    single = (blocks == 1 or not p.wide) and at_once(p, rows, chunk, block)
    busy = p.exact and blocks == 1 and not single and (p.itemsize > 2 or p.op.second == FACTOR)
    team = block if rows.runs == 1 or chunk > RUN_PACKS * block // 32 else 32  # or each warp takes a run
    own, least = -(-chunk // team), 2 if p.exact and blocks > 1 else 1  # (not a kernel more for one pack)
    constants = {
        "GROUP": block, "TEAM": team, "ROWS": 1, "UNROLL": at_most(p, max(own, least), rows.access, busy),
        "RAGGED": rows.access.ragged,
    }  # fmt: skip
    counts = p.outputs, rows.packs, chunk, rows.runs, run_chunk
    return Design(
        "reduce_rows", rows.access, (p.outputs, blocks), block, p.kept, rows.reduced, counts, constants,
        resident=resident, single=single, near=single and p.wide,
    )  # fmt: skip


def at_most(p: Problem, count: int, access: Access, busy: bool = False) -> int:
    """Packs in flight per thread. Exact sums that load ahead are busy, too."""
    if p.several:
        return several_in_flight(p, count, access, SEVERAL_ROOM)
    if p.ahead and p.op.traits.exponential:  # as few as the accumulator takes at a time: the bits are the same
        count = min(count, max(1, AT_A_TIME[ITEMSIZE[p.x] == 2] // access.vec))
    most = in_flight(p, count, access, busy or (p.exact and p.ahead))
    if most // 2 < count < most and most > 4:  # no thread has as many
        # Exact sums add those that are not there, too. Tests of elements are faster with a full round and a rest.
        return count if p.exact else most // 2 if p.out == "bool" or p.op.traits.counting else most
    return most


def at_once(p: Problem, rows: Rows, packs: int, threads: int) -> bool:
    """Whether so many threads have all packs of a row in flight at once; then the largest element of an exact sum is
    known before they are added."""
    return p.exact and rows.runs == 1 and packs <= threads * at_most(p, packs, rows.access)


def slow(p: Problem) -> bool:
    """Whether elements take many instructions because they are widened to more than four bytes."""
    return not p.op.busy and ITEMSIZE[p.val] > max(4, ITEMSIZE[p.x])


def block_of(p: Problem, packs: int, multiprocessors: int) -> int:
    """Threads of a block with a row of its own: fewer for short rows, if there are few or merging takes many steps."""
    many = p.outputs >= multiprocessors * BLOCKS_PER_SM
    if p.several and many:
        return SEVERAL_BLOCK
    if p.exact and many:
        return min(ROW_BLOCK[p.itemsize], max(64, power_of_2(packs) // 8))
    most = ROW_BLOCK[p.itemsize] if many else 1024
    least = most if many else 128
    return min(most, max(least, power_of_2(packs) // (8 if p.op.busy and p.op.second != POSITION else 4)))
