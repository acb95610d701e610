"""Planning reductions: which kernel, how many threads an output, how many blocks share one, and how they finish it."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from . import maps
from .dtypes import BITS, CTYPES, INTEGERS, ITEMSIZE, accumulator
from .geometry import (
    Axes,
    Shape,
    contiguous_strides,
    divisor,
    index_type,
    normal_form,
    offset_type,
    packable,
    reaches,
)
from .work import (
    LAUNCH,
    NO_LAUNCH,
    PARTIALS,
    SCRATCH,
    TICKETS,
    Kernel,
    Launch,
    Operand,
    Plan,
    PlanStep,
    Step,
    check_grid,
)

PACK = 16  # bytes of a load
NARROW = 4  # bytes of a pack that is narrow: elements that do not go together
IN_FLIGHT = 8  # packs that a thread has in flight, at most; twice as many narrow ones
BLOCK = 256
THREADS_PER_SM = 1024  # that are at work on every multiprocessor when a grid fills the machine
LOOSE = 8  # the shortest run of unaligned elements that is read in whole packs all the same, in packs
WAVES = 5  # blocks share an output so that they fill the machine fewer times than this

# Rows: 16-byte packs that one warp takes, and one block; threads of a block.
WARP_PACKS = 256
WARPS_PER_SM = 8  # but fewer rows than these, for each multiprocessor, get a block each
ALONE = 8192
LANE_PACKS = 2  # of a lane that takes powers: lanes then bring fewer sums together
ROWS = 4  # rows of a thread, at most, if they are a pack each
TINY = 8  # elements of a row that one thread takes, and others with it, if they make no full pack
ROW_BLOCK = {1: 128, 2: 256, 4: 256, 8: 128, 16: 128}  # by item size, where there are rows enough
BLOCKS_PER_SM = 2  # that are rows enough
SPLIT_BLOCK = 512  # of a block that shares its row
STAGED = 256  # bytes of a row that is too short for packs of its own, unless they are aligned
STAGE = 2**14  # bytes of such rows that a block has on chip

# Columns: neighbouring outputs.
COLUMN_BLOCK = 512
STATE = 64  # bytes of partial results in a thread: with more, registers spill
SHARED = 48 * 1024  # and in a block's shared memory
SEGMENT = 256  # bytes next to each other that a block reads; twice as many in narrow packs
COLUMNS = 256  # outputs of a block, at most
LONG = 128  # and packs of them
LEAST = 4  # elements for each thread of a block that shares its outputs, at least
SHALLOW = 32  # elements of an output that one thread may take alone
DEEP = 4  # or any number, if every thread of the machine finds so many packs of outputs
STORE = 16  # bytes of results that such a thread writes, at most: what one store can

CLASSIC_BLOCK = 256
NO_RUNS = divisor(1) + struct.pack("<q", 0)


def accumulated(val: str) -> np.dtype:
    """The state of most reductions: a value of the dtype in which values are added up."""
    return np.dtype(accumulator(val))


@dataclass(frozen=True, eq=False)
class Reduction:
    """What the host knows of a reduction; ``kernels/ops.cuh`` has the rest under the same name."""

    struct: str
    state: Callable[[str], np.dtype] = accumulated  # a partial result in memory, given the dtype of the values
    merge: Any = None  # the ufunc that merges partial results on the host
    product: bool = False  # its second operand is a factor of each element, not a mask
    exponential: bool = False  # it takes powers of whole packs
    exact: bool = False  # sums of integers, which may be held in fewer bytes

    def __repr__(self) -> str:
        return self.struct


def maximum_and_sums(*names: str) -> Callable[[str], np.dtype]:
    """The state of reductions whose partial results are a maximum and sums relative to it."""

    def state(val: str) -> np.dtype:
        part = np.empty(0, accumulated(val)).real.dtype
        return np.dtype([(name, part) for name in names])

    return state


def summed_in(x: str, val: str, length: int) -> str:
    """The dtype in which ``length`` elements are added: sums of few small integers fit four bytes."""
    small = x in INTEGERS and length << 8 * ITEMSIZE[x] <= 2**31
    return "int32" if small and val in ("int64", "uint64") else val


class Problem(NamedTuple):
    """A reduction in normal form: ``out[k] = op(x[k, r] for r in reduced)``, perhaps beside a second operand."""

    op: Reduction
    x: str  # dtype names: of the elements, of the values NumPy would compute with, of the result
    val: str
    out: str | None  # None: the op's own state
    kept: Axes  # operands x, other, out
    reduced: Axes  # operands x, other
    offsets: Shape  # bytes from the first elements of x, other and out to where the walk starts
    pointers: Shape  # addresses of x, other and out modulo 16
    length: int  # elements reduced to one output
    other: str | None = None  # dtype of the second operand: a mask, or the other vector of a dot product
    shifted: bool = False
    scale: float = 1.0
    initial: bytes | None = None
    names: tuple[str, str, str] = ("x", "other", "out")  # of the arrays

    @property
    def outputs(self) -> int:
        return self.kept.size

    @property
    def state(self) -> int:
        """Bytes of a partial result."""
        return self.op.state(self.val).itemsize

    @property
    def result(self) -> int:
        """Bytes of a result."""
        return 2 * ITEMSIZE[self.val] if self.out is None else ITEMSIZE[self.out]

    def start(self, operand: int) -> int:
        """The address modulo 16 where an operand's walk starts."""
        return (self.pointers[operand] + self.offsets[operand]) % PACK


def problem(
    op: Reduction, x: str, val: str, out: str, shape: Shape, axis: Shape, strides: tuple[Shape, Shape, Shape],
    pointers: Shape, other: str | None = None, initial: bytes | None = None, **more: Any,
) -> Problem:  # fmt: skip
    """The normal form of reducing ``shape`` over ``axis``; ``strides`` are those of x and the other operand over the
    shape, and of out over the kept dims."""
    kept_dims = [d for d in range(len(shape)) if d not in axis]
    x_strides, other_strides, out_strides = strides
    reduced_dims = axis
    if empty := 0 in shape:  # nothing to read: every output is the identity
        x_strides = other_strides = (0,) * len(shape)
        reduced_dims = ()
    kept, (x_kept, other_kept, out_kept) = normal_form(
        [(shape[d], x_strides[d], other_strides[d], s) for d, s in zip(kept_dims, out_strides, strict=True)], 3
    )
    reduced, (x_reduced, other_reduced) = normal_form(
        [(shape[d], x_strides[d], other_strides[d]) for d in reduced_dims], 2
    )
    length = 0 if empty else reduced.size
    offsets = (
        ITEMSIZE[x] * (x_kept + x_reduced),
        ITEMSIZE[other] * (other_kept + other_reduced) if other else 0,
        ITEMSIZE[out] * out_kept,
    )
    if op.exact and initial is None:
        val = summed_in(x, val, length)
    return Problem(op, x, val, out, kept, reduced, offsets, pointers, length, other, initial=initial, **more)


# -------------------------------------------------------------------------------------------------------- choosing


def choose(p: Problem) -> str:
    """The strategy for callers who name none: threads go along whichever dims are contiguous in memory."""
    kept, reduced = p.kept.inner(0), p.reduced.inner(0)
    return "columns" if kept and (not reduced or kept < reduced) else "rows"


@lru_cache(maxsize=4096)
def plan(p: Problem, strategy: str | None, multiprocessors: int) -> Plan:
    """Plan a reduction."""
    strategy = strategy or choose(p)
    return STRATEGIES[strategy](p, strategy, multiprocessors)


def power_of_2(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def floor_power_of_2(n: int) -> int:
    """The greatest power of two that is at most n; 0 for 0."""
    return power_of_2(n + 1) // 2


class Walk(NamedTuple):
    """How packs of ``vec`` elements lie along a dim."""

    vec: int
    other: str = "none"
    loose: bool = False  # it begins and ends anywhere in a pack
    unaligned: bool = False  # or packs begin anywhere: each is made of the two aligned ones it lies in


def walk(p: Problem, inner: Axes, most: int = PACK) -> Walk:
    """The widest packs, of at most so many elements, along the innermost dim of ``inner`` (one of p's axes), which both
    operands allow."""
    for way in ways(p, inner, most):
        if along(p, inner, way, 0) and (other := other_way(p, inner, way)):
            return way._replace(other=other) if p.other else way
    return Walk(1, "beside" if p.other else "none")


def ways(p: Problem, inner: Axes, most: int) -> Iterator[Walk]:
    """The packs to try, the best ones first. A dim of some length is read in full packs even if it begins and ends
    anywhere, and elements that do not even make words even if packs begin anywhere."""
    beside = ITEMSIZE[p.other] if p.op.product and p.other else 1
    full = floor_power_of_2(min(most, PACK // max(ITEMSIZE[p.x], beside)))
    long = inner.sizes and inner.sizes[-1] >= LOOSE * full
    vec = full
    while vec > 1:
        yield Walk(vec)
        if long and vec == NARROW // ITEMSIZE[p.x] and inner is p.kept:
            yield Walk(full, unaligned=True)
        if long and vec == full:
            yield Walk(full, loose=True)
        vec //= 2


def other_way(p: Problem, inner: Axes, way: Walk) -> str:
    """How the second operand lies beside packs of x; "" if it does not fit them."""
    if p.other is None:
        return "none"
    if inner.inner(1) == 0:
        return "repeated"
    if way.unaligned or not along(p, inner, way, 1):
        return ""
    if way.loose:  # its packs must begin where those of x do
        x, other = (p.kept.strides[k] + p.reduced.strides[k] for k in (0, 1))
        apart = p.start(0) // ITEMSIZE[p.x] - p.start(1) // ITEMSIZE[p.other]
        if inner is not p.reduced or any(d % way.vec for d in (apart, *(a - b for a, b in zip(x, other, strict=True)))):
            return ""
    return "beside"


def along(p: Problem, inner: Axes, way: Walk, operand: int) -> bool:
    """Whether an operand may be read in such packs along the innermost dim of ``inner``.

    Loose packs along the kept dims must lie alike in every run; along the reduced ones each run has its own. Unaligned
    ones may reach out of a run, but not out of the one beside it in memory.
    """
    itemsize = ITEMSIZE[p.x if operand == 0 else p.other or p.x]
    if not (way.loose or way.unaligned):
        return packable(way.vec, itemsize, p.start(operand), operand, p.kept, p.reduced, inner=inner)
    if inner.inner(operand) != 1 or p.start(operand) % itemsize:
        return False
    others = [*p.kept.strides[operand], *p.reduced.strides[operand]]
    others.remove(1)  # the innermost one
    if way.unaligned:
        return all(s >= 2 * way.vec for s in others)
    return inner is p.reduced or all(s and s % way.vec == 0 for s in others)


def shared(
    p: Problem, blocks: int, fill: int, packs: int, step: int, least: int = 1, states: int = 1
) -> tuple[int, int]:
    """How many blocks should share an output, and the packs that each takes, if it takes ``blocks`` of them when none
    is shared and ``fill`` fill the machine.

    Enough to fill it, and so many that they all finish together; but each has at least ``least`` steps of ``step``
    packs, and their partial results, ``states`` for each of the blocks, find room.
    """
    room = (SCRATCH - PARTIALS) // (blocks * states * p.state) if blocks <= TICKETS else 1
    most = min(room, packs // (least * step))
    splits = 1
    if most > 1:
        tries = [1, *[max(1, min(most, waves * fill // blocks)) for waves in range(1, WAVES)]]
        splits = min(tries, key=lambda n: -(-blocks * n // fill) / n)
    chunk = -(-packs // splits)
    chunk = max(1, -(-chunk // step) * step if chunk > step else chunk)
    return max(1, -(-packs // chunk)), chunk


def in_flight(p: Problem, count: int, way: Walk) -> int:
    """Packs in flight per thread, of ``count`` that it has: as many as there are, up to a limit."""
    most = IN_FLIGHT if way.vec * ITEMSIZE[p.x] > NARROW else 2 * IN_FLIGHT
    return min(most // operands_beside(way), power_of_2(count))


def operands_beside(way: Walk) -> int:
    """How many packs are read at a time: of x, and of the other operand if that lies beside, or the next of x."""
    return 2 if way.other == "beside" or way.unaligned else 1


# ---------------------------------------------------------------------------------------------------------- kernels


def plan_rows(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """Threads along the reduced dims: some for each of several outputs, a block, or several blocks."""
    way, outputs = walk(p, p.reduced), p.outputs
    if p.other is None and (way.loose or way.vec * ITEMSIZE[p.x] < PACK):  # packs of such short rows would be in vain
        if 0 < p.length <= TINY:
            return plan_tiny(p, strategy, way)
        if p.length < STAGED // ITEMSIZE[p.x] and piled(p):
            return plan_staged(p, strategy, multiprocessors)
    if way.loose:
        reduced, packs = p.reduced, p.reduced.sizes[-1] // way.vec
        runs = reduced.size // reduced.sizes[-1]
    else:
        reduced, runs = p.reduced.in_packs(way.vec), 1
        packs = reduced.size if p.length else 0
    total, size = packs * runs, way.vec * ITEMSIZE[p.x]
    chunk, run_chunk, splits, rows = packs, runs, 1, 1
    if total <= WARP_PACKS and (total <= 32 or outputs >= multiprocessors * WARPS_PER_SM):
        lane = LANE_PACKS if p.op.exponential else 1
        block, group = BLOCK, min(32, power_of_2(-(-packs // lane)))
        team, unroll = group, in_flight(p, -(-packs // group), way)
        enough = unroll * outputs * group // (multiprocessors * THREADS_PER_SM)  # packs that may be one thread's
        rows = max(1, floor_power_of_2(min(ROWS * PACK // size, 16, enough)) // unroll)
    else:
        fill = multiprocessors * THREADS_PER_SM // SPLIT_BLOCK
        alone = total * operands_beside(way) <= ALONE
        if not alone and runs < fill:
            splits, chunk = shared(p, outputs, fill, packs, SPLIT_BLOCK)
        elif not alone:
            splits, run_chunk = shared(p, outputs, fill, runs, 1)
        group = block = SPLIT_BLOCK if splits > 1 else row_block(p, total, multiprocessors)
        team = block if runs == 1 or chunk > WARP_PACKS * block // 32 else 32
        unroll = in_flight(p, -(-chunk // team), way)
    return launch(
        p, "reduce_rows", strategy, way, (-(-outputs // (block // group * rows)), splits), block, p.kept, reduced,
        (outputs, packs, chunk, runs, run_chunk), GROUP=group, TEAM=team, ROWS=rows, UNROLL=unroll, PEELED=way.loose,
    )  # fmt: skip


def row_block(p: Problem, packs: int, multiprocessors: int) -> int:
    """Threads of a block that has a row alone."""
    if p.outputs >= multiprocessors * BLOCKS_PER_SM:
        return ROW_BLOCK[ITEMSIZE[p.x]]
    return min(1024, max(128, power_of_2(packs) // 4))


def piled(p: Problem) -> bool:
    """Whether rows lie one after the other in memory."""
    strides = p.kept.strides[0], p.reduced.strides[0]
    return strides == ((p.length,), (1,)) and p.start(0) % ITEMSIZE[p.x] == 0


def plan_tiny(p: Problem, strategy: str, way: Walk) -> Plan:
    """A thread for some rows of a few elements: neighbouring ones, if packs of one row would be less than a word."""
    rows = PACK // max(ITEMSIZE[p.x], p.result)  # neighbours whose results one store writes
    vec = math.gcd(math.gcd(PACK, p.start(0)) // ITEMSIZE[p.x], rows * p.length)
    stored = p.kept.inner(2) == 1 and p.start(2) % (rows * p.result) == 0
    across = way.vec * ITEMSIZE[p.x] < NARROW and way.vec < vec and piled(p) and stored
    if not across:
        rows, vec = 2 * TINY // power_of_2(p.length), way.vec
    return launch(
        p, "reduce_tiny", strategy, Walk(vec), (-(-p.outputs // (BLOCK * rows)), 1), BLOCK, p.kept, p.reduced,
        (p.outputs, p.length, p.length, 1, 1), LENGTH=p.length, ROWS=rows, PILED=across,
    )  # fmt: skip


def plan_staged(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """A block for some short rows, read as one piece of memory."""
    vec = PACK // ITEMSIZE[p.x]
    fit = (STAGE // ITEMSIZE[p.x] - vec) // p.length  # the first row may begin anywhere in its pack
    chunk = min(fit, max(32, -(-p.outputs // (multiprocessors * BLOCKS_PER_SM))))
    team = min(32, max(1, floor_power_of_2(BLOCK // chunk)))
    return launch(
        p, "reduce_staged", strategy, Walk(vec), (-(-p.outputs // chunk), 1), BLOCK, p.kept, p.reduced,
        (p.outputs, p.length, chunk, 1, 1), TEAM=team, UNROLL=STAGE // (PACK * BLOCK),
    )  # fmt: skip


def plan_columns(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """Threads across the kept dims; along the reduced ones too, unless there are outputs enough."""
    outputs, length, size, state = p.outputs, p.length, p.result, p.state
    neighbours = p.kept.sizes[-1] if p.kept.sizes else 1
    machine = multiprocessors * THREADS_PER_SM
    shallow = length <= SHALLOW and 2 * outputs * size >= STORE * machine
    room = STATE // 2 if p.op.exponential else STATE
    way = walk(p, p.kept, max(1, min(room // state, STORE // size if shallow else PACK)))
    head = p.start(0) // ITEMSIZE[p.x] % way.vec if way.loose else 0
    run = -(-(head + neighbours) // way.vec)  # packs of neighbouring outputs
    runs = outputs // neighbours
    apart = runs > 1 and run <= LONG and not shallow  # a block for a run: all that it reads is one piece of memory
    run = power_of_2(run) if apart else run
    partial = way.loose or way.unaligned
    edged = partial or apart
    kept, packs = p.kept if edged else p.kept.in_packs(way.vec), run * runs
    resident = THREADS_PER_SM
    if shallow or packs >= DEEP * machine:
        block, wide, splits, chunk = BLOCK, BLOCK, 1, length
    else:
        nbytes = way.vec * ITEMSIZE[p.x]
        block, segment = COLUMN_BLOCK, SEGMENT
        if nbytes <= NARROW:
            resident, segment = THREADS_PER_SM * 3 // 2, 2 * SEGMENT
        wide = run if apart else min(power_of_2(packs), LONG, segment // nbytes, COLUMNS // way.vec)
        while wide > 1 and cells(block, wide) * way.vec * state > SHARED:
            wide //= 2
        fill = multiprocessors * resident // block
        splits, chunk = shared(p, -(-packs // wide), fill, length, block // wide, LEAST, way.vec * wide)
    return launch(
        p, "reduce_columns", strategy, way, (-(-packs // wide), splits), block, kept, p.reduced,
        (packs, length, chunk, 1, 1), divisor(run) + struct.pack("<q", head), way.vec * wide, resident, WIDE=wide,
        UNROLL=in_flight(p, -(-chunk * wide // block), way), EDGED=edged, PARTIAL=partial, UNALIGNED=way.unaligned,
        STORED=store_width(p, way.vec) if wide == block and not edged else 1,
    )  # fmt: skip


def cells(block: int, wide: int) -> int:
    """Packs of partial results that the threads of a block bring together in shared memory."""
    return wide * (block // max(32, wide))


def store_width(p: Problem, vec: int) -> int:
    """Outputs that a thread with ``vec`` neighbouring ones writes at once."""
    most = min(vec, PACK // p.result)
    for width in (16, 8, 4, 2):
        if width <= most and packable(width, p.result, p.start(2), 2, p.kept, inner=p.kept):
            return width
    return 1


STEPS = {"cross": 0, "interleaved": 1, "shuffle": 2}  # enum Step in reduce_block.cu
ON_HOST = "_host"  # ends the names of strategies that finish on the host


def plan_block(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """The classic ladder: blocks reduce chunks by the named step; their partials are reduced by the same kernel, or
    on the host."""
    fill = multiprocessors * THREADS_PER_SM // CLASSIC_BLOCK
    splits, chunk = shared(p, p.outputs, fill, p.length, CLASSIC_BLOCK, LEAST)
    on_host = strategy.endswith(ON_HOST)
    alone = splits == 1 and not on_host
    other = "beside" if p.other else "none"
    shift, far = Operand("stats") if p.shifted else None, reaches(p.kept, p.reduced)
    offset = offset_type(far)

    def launch(first: bool, last: bool, splits: int, packs: int, chunk: int) -> Launch:
        counts = (p.outputs, packs, chunk, 1, 1)
        kernel = variant(
            p, "reduce_block", p.kept, p.reduced, offset, other if first else "none", counts, CLASSIC_BLOCK,
            STEP=STEPS[strategy.removesuffix(ON_HOST)], SHIFTED=first and p.shifted, FIRST=first, LAST=last, VEC=1,
        )  # fmt: skip
        x, b, y = operands(p)
        partials = None if alone else Operand("partials")
        args = (x, b, y, partials, parameters(p, p.kept, p.reduced, offset, far[0] + 1, counts), shift)
        return Launch(kernel, grid(p, "reduce_block", p.outputs, splits), CLASSIC_BLOCK, args)

    first: PlanStep = launch(True, alone, splits, p.length, chunk)
    workspace = (("partials", splits * p.outputs * p.state),)
    if alone:
        return Plan(strategy, (first,))
    if not on_host:
        return Plan(strategy, (first, launch(False, True, 1, splits, splits)), workspace)
    finished = ("finished", p.outputs * p.result)
    return Plan(strategy, (first, HostFinish(p, splits), *from_host(p)), (*workspace, finished))


#: The strategies and what plans each.
STRATEGIES: dict[str, Callable[..., Plan]] = {
    "rows": plan_rows,
    "columns": plan_columns,
    **dict.fromkeys(STEPS, plan_block),
    **dict.fromkeys((step + ON_HOST for step in STEPS), plan_block),
}
OTHERS = {"none": 0, "beside": 1, "repeated": 2}  # enum Other in reduce.cuh


# -------------------------------------------------------------------------------------------------------- launches


def launch(
    p: Problem, kernel: str, strategy: str, way: Walk, blocks: tuple[int, int], block: int, kept: Axes, reduced: Axes,
    counts: tuple[int, ...], runs: bytes = NO_RUNS, states: int = 1, resident: int = THREADS_PER_SM, **constants: int,
) -> Plan:  # fmt: skip
    """A reduction in one launch, whose blocks have ``states`` partial results each, ``resident`` threads at a time on a
    multiprocessor."""
    split = blocks[1] > 1
    constants |= {"VEC": way.vec, "RESIDENT": resident if split else 0}
    partials = (Operand("scratch"), Operand("scratch", PARTIALS), LAUNCH) if split else (None, None, NO_LAUNCH)
    far = reaches(p.kept, p.reduced)
    offset = offset_type(far)
    args = (*operands(p), *partials, parameters(p, kept, reduced, offset, far[0] + 1, counts, runs))
    kernel_ = variant(p, kernel, kept, reduced, offset, way.other, counts, block, **constants)
    step = Launch(kernel_, grid(p, kernel, *blocks), block, args)
    return Plan(strategy, (step,), scratch=PARTIALS + math.prod(blocks) * states * p.state if split else 0)


def grid(p: Problem, kernel: str, blocks: int, splits: int) -> tuple[int, int, int]:
    """The grid of a launch."""
    return check_grid(p.op.struct.lower(), kernel, (blocks, splits), f"{p.outputs} outputs")


def variant(
    p: Problem, kernel: str, kept: Axes, reduced: Axes, offset: str, other: str, counts: tuple[int, ...], block: int,
    **constants: int,
) -> Kernel:  # fmt: skip
    """The kernel for a problem's types."""
    beside = "u8" if p.other is None or not p.op.product else CTYPES[p.other]  # a mask is what its bytes are
    return Kernel(
        kernel,
        types=(
            ("Tin", CTYPES[p.x]), ("Tb", beside), ("Tval", CTYPES[p.val]), ("Op", f"{p.op.struct}<Tval>"),
            ("Tout", "Op::State" if p.out is None else CTYPES[p.out]), ("Index", index_type(*counts)),
            ("Offset", offset),
        ),
        constants=(
            ("OTHER", OTHERS[other]), ("KEPT", kept.rank_class), ("REDUCED", reduced.rank_class), ("BLOCK", block),
            ("SCALED", p.scale != 1), *constants.items(),
        ),
    )  # fmt: skip


def operands(p: Problem) -> tuple[Operand | None, ...]:
    """The arrays that a kernel takes: x, the other operand, the result."""
    x, other, out = map(Operand, p.names, p.offsets)
    return x, other if p.other else None, out


def parameters(
    p: Problem, kept: Axes, reduced: Axes, offset: str, high: int, counts: tuple[int, ...], runs: bytes = NO_RUNS
) -> bytes:
    """The bytes of ``struct Reduce`` in reduce.cuh; x's elements lie below ``high``."""
    initial = (p.initial or b"").ljust(16 if ITEMSIZE[p.val] == 16 else 8, b"\0")
    last = struct.pack("<2q2dq", high, p.kept.inner(2), p.length, p.scale, p.initial is not None)
    return struct.pack("<5q", *counts) + kept.packed(offset) + reduced.packed(offset) + runs + last + initial


class HostFinish(NamedTuple):
    """The slow way to finish, for comparison: partial results go to the host, are reduced there, and come back."""

    problem: Problem
    splits: int

    def ready(self, device: Any, places: dict[str, int]) -> Step:
        """Wait for the device, reduce (splits, outputs) with NumPy, copy the results back."""
        p = self.problem
        partials, finished = places["partials"], places["finished"]
        dtype, shape = p.op.state(p.val), (self.splits, p.outputs)

        def go(addresses: list[int]) -> None:
            nbytes = math.prod(shape) * dtype.itemsize
            state = np.frombuffer(device.read(addresses[partials], nbytes), dtype).reshape(shape)
            with np.errstate(all="ignore"):
                device.write(addresses[finished], self.finish(state).astype(p.out).tobytes())

        return go

    def finish(self, state: np.ndarray) -> np.ndarray:
        """The op's results from its partial ones, as ``combine`` and ``finish`` of ops.cuh make them."""
        p = self.problem
        if p.op.struct == "MaskedMean":
            return (np.add.reduce(state["total"]) / np.add.reduce(state["count"])).astype(p.val)
        # (NumPy's own reduction of -0 begins with 0.)
        total = reduce(np.add, state) if p.op.struct == "Sum" else p.op.merge.reduce(state, axis=0)
        if p.initial is not None:
            initial = np.frombuffer(p.initial, np.dtype(p.val))[0].astype(total.dtype)
            total = p.op.merge(initial, total)
        if p.op.struct == "IntegerMean":
            return total / p.length
        if p.op.struct == "ShiftedExpSum":
            return (total.real + (total.imag - 1)).astype(p.val)
        return (np.divide(total, p.length) if p.op.struct == "Mean" else total).astype(p.val)


def from_host(p: Problem) -> tuple[PlanStep, ...]:
    """The launch that moves finished results to where they belong."""
    bits = BITS[p.result]
    out = maps.Arg(p.names[2], bits, p.result, p.kept.strides[2], p.pointers[2], offset=p.offsets[2])
    finished = maps.Arg("finished", bits, p.result, contiguous_strides(p.kept.sizes))
    return maps.plan("Expand", p.kept.sizes, out, (finished,)).steps
