"""Planning softmax, log_softmax and logsumexp."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..errors import error
from . import maps, reductions
from .dtypes import CTYPES, ITEMSIZE, accumulator
from .geometry import (
    Axes,
    Shape,
    contiguous_strides,
    index_type,
    normal_form,
    offset_type,
    packable,
    reaches,
)
from .reductions import Reduction, maximum_and_sums
from .work import BARRIERS_OFFSET, LAUNCH, PARTIALS, Kernel, Launch, Machine, Operand, Plan, check_grid

PACK = 16  # bytes of a load
CLASSIC_BLOCK = 256
WARP_COLS = 1024  # the longest row that the classic warp holds in registers: 32 elements a lane
WARPS = {"warp": 1, "warp_pack2": 2, "warp_pack4": 4, "warp_pack8": 8}  # elements of a pack, by strategy

# On chip.
PACKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # packs of a thread in registers that kernels are compiled for
MOST_PACKS = 8  # of 16 bytes
NARROW = 4  # narrower ones are at most so many times as many
GROUPS = 2  # groups in which the others come to shared memory
LOOSE = 8  # the shortest row that is read in whole packs though it begins and ends anywhere, in packs
STATES = 2**13  # bytes of shared memory that a block keeps for states
RESERVED = 2**10 + 2**8  # and what the system keeps for itself with every block, and where those of a cluster meet

# Rows.
LANE_PACKS = 2  # of a lane, where a row is that of some lanes
WARP_PACKS = 176  # of a row, before it is that of a whole block
LANES_BLOCK = 128  # threads of a block that has several rows
SHORT, FEW_PACKS = 2**11, 4  # packs of a row up to which it is a block's, and of a thread then
BLOCK = 256  # threads of a block of those that share a longer one, four of which share a multiprocessor
PART = 768  # packs of such a block, at least
LARGE_BLOCK = 1024  # threads of a block that has a multiprocessor alone
SPREAD = 256  # packs of a block, at least, if few rows are spread over many
LONG = 2**16  # packs of a row, of more than which the grid shares it
GRID_BLOCKS = 2  # that share a multiprocessor then, unless there is one row only
GRID_PACKS = 6  # of a thread of theirs in registers

# Columns: neighbouring rows.
COLUMN_BLOCK = 512  # threads of a block, two of which share a multiprocessor
SMALL_BLOCK = 256  # or of one of four, which are
SMALL_CLUSTERS = {4: 16, 2: 2}  # at most so many to a tile, by bytes of an element
COLUMN_PACKS = (4, 2)  # of a thread in registers; and with a mask
SEGMENT = 128  # bytes next to each other that a block reads
FAR, LONGER = 2**17, 2  # bytes from row to row from which on they are so many times as many, for elements of 4 bytes
COLUMN_ROWS = 64  # rows of a block, at most
SECTOR = 32  # the least of them that memory moves


#: The reductions that softmax is made of.
SCALED_MAX = Reduction("ScaledMax", merge=np.maximum)
SHIFTED_EXP_SUM = Reduction("ShiftedExpSum", lambda val: np.result_type(accumulator(val), np.complex64), np.add)
MAX_EXP_SUM = Reduction("MaxExpSum", maximum_and_sums("max", "rest"), exponential=True)
MERGED_MAX_EXP_SUM = Reduction("MergedMaxExpSum", maximum_and_sums("max", "rest"))
LOG_SUM_EXP = Reduction("LogSumExp", maximum_and_sums("max", "rest"), exponential=True)
WEIGHTED_LOG_SUM_EXP = Reduction("WeightedLogSumExp", maximum_and_sums("max", "top", "rest"), product=True)


class Problem(NamedTuple):
    """A softmax in normal form, over ``reduced`` for each of ``kept``."""

    op: str  # "softmax" or "log_softmax"
    x: str  # dtype names: of the elements, of the arithmetic, of the result
    val: str
    out: str
    kept: Axes  # operands x, mask, out
    reduced: Axes  # operands x, mask, out
    offsets: Shape  # bytes from the first elements of x, mask and out to where the walk starts
    pointers: Shape  # addresses of x, mask and out modulo 16
    masked: bool
    scale: float
    sizes: Shape  # bytes of an element of x, mask and out
    rows: int
    cols: int  # elements of a row
    names: tuple[str, str, str]  # of the arrays

    def start(self, operand: int) -> int:
        """The address modulo 16 where an operand's walk starts."""
        return (self.pointers[operand] + self.offsets[operand]) % PACK

    @property
    def width(self) -> int:
        """Registers that a number takes in the arithmetic: threads that compute in float64 have more, and are fewer."""
        return ITEMSIZE[self.val] // 4


def problem(
    op: str, x: str, val: str, out: str, shape: Shape, axis: Shape, strides: tuple[Shape, Shape, Shape],
    pointers: Shape, masked: bool, scale: float, names: tuple[str, str, str] = ("x", "other", "out"),
) -> Problem:  # fmt: skip
    """The normal form of a softmax of ``shape`` over ``axis``, with the strides of x, mask and out over the shape."""
    dims = [*zip(shape, *strides, strict=True)]
    kept, moved_kept = normal_form([dim for d, dim in enumerate(dims) if d not in axis], len(strides))
    reduced, moved_reduced = normal_form([dims[d] for d in axis], len(strides))
    sizes = (ITEMSIZE[x], 1, ITEMSIZE[out])
    offsets = tuple([(k + r) * n for k, r, n in zip(moved_kept, moved_reduced, sizes, strict=True)])
    counts = kept.size, reduced.size
    return Problem(op, x, val, out, kept, reduced, offsets, pointers, masked, scale, sizes, *counts, names)


def along_rows(p: Problem) -> bool:
    """Whether threads go along the reduced dims: whichever are contiguous in memory."""
    kept, reduced = p.kept.inner(0), p.reduced.inner(0)
    return not kept or not reduced or reduced < kept


@lru_cache(maxsize=4096)
def plan(p: Problem, strategy: str | None, machine: Machine) -> Plan:
    """Plan a softmax."""
    return STRATEGIES[strategy](p, strategy, machine) if strategy else choose(p, machine)


def choose(p: Problem, machine: Machine) -> Plan:
    """The plan for callers who name no strategy: one that holds the rows on chip, if there is room."""
    idle = p.rows * machine.cluster < machine.multiprocessors  # if each row has a cluster
    long = p.cols * p.sizes[0] > LONG * PACK and (p.width == 1 or idle)
    tries = ("columns",) if not along_rows(p) else ("grid", "rows") if long else ("rows", "grid")
    for strategy in tries:
        if made := ON_CHIP[strategy](p, machine):
            return made
    return plan_grid_online(p, "grid_online", machine)


def one_kernel(
    p: Problem, strategy: str, blocks: int, block: int, kept: Axes, reduced: Axes, way: Walk, constants: dict[str, int],
    held: Held, in_place: bool = True,
) -> Plan:  # fmt: skip
    """The plan of a strategy that is one launch of ``softmax_<strategy>.cu``, which may hold rows on chip."""
    grid = check_grid(p.op, f"strategy {strategy!r}", (blocks,), f"{p.rows} rows")
    on_chip = (("PACKS", held.registers), ("STAGED", GROUPS if held.staged else 0), ("SHIFTED", way.shifted))
    offset = offset_type(reaches(p.kept, p.reduced))
    kernel = Kernel(
        f"softmax_{strategy}",
        types=(
            ("Tin", CTYPES[p.x]), ("V", CTYPES[p.val]), ("Tout", CTYPES[p.out]),
            ("Index", index_type(kept.size, p.cols)), ("Offset", offset),
        ),
        constants=(
            ("LOG", p.op == "log_softmax"), ("MASK", MASKS[way.mask]), ("SCALED", p.scale != 1),
            ("KEPT", kept.rank_class), ("REDUCED", reduced.rank_class), ("VEC", way.vec),
            *(on_chip if held.registers else ()), *constants.items(),
        ),
    )  # fmt: skip
    sizes = struct.pack("<6qd", kept.size, p.cols, held.packs, held.part, held.staged, held.team, p.scale)
    x, mask, out = map(Operand, p.names, p.offsets)
    meeting = (Operand("scratch", BARRIERS_OFFSET), Operand("scratch", PARTIALS), LAUNCH) if held.team else ()
    params = sizes + kept.packed(offset) + reduced.packed(offset)
    launch = Launch(
        kernel, grid, block, (x, mask if p.masked else None, out, *meeting, params),
        cluster=held.cluster, shared=held.staged * block * pack_size(p, way), cooperative=held.team > 0,
    )  # fmt: skip
    scratch = PARTIALS + 4 * blocks * ITEMSIZE[p.val] if held.team else 0  # states of two rounds
    return Plan(strategy, (launch,), scratch=scratch, in_place=in_place)


def plan_naive(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One thread per element."""
    return classic(p, strategy, -(-p.rows * p.cols // CLASSIC_BLOCK), in_place=False)


def plan_block(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One block per row."""
    return classic(p, strategy, p.rows)


def plan_block_shared(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One block per row, which it keeps in shared memory."""
    nbytes = p.cols * ITEMSIZE[p.val]
    if nbytes > machine.shared - STATES:
        rule = f"strategy {strategy!r} takes rows of at most {(machine.shared - STATES) // ITEMSIZE[p.val]} elements"
        raise error(ValueError, p.op, f"{rule} on this device, got {p.cols}")
    (launch,) = (made := classic(p, strategy, p.rows)).steps
    return made._replace(steps=(launch._replace(shared=nbytes),))


def plan_warp(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One warp per row, which reads it in packs of so many elements as the strategy says, if they are aligned."""
    if p.cols > WARP_COLS:
        rule = f"strategy {strategy!r} takes rows of at most {WARP_COLS} elements, got {p.cols}"
        raise error(ValueError, p.op, rule)
    tries = (n for n in (8, 4, 2) if n <= WARPS[strategy])
    vec = next((n for n in tries if all(fits(p, p.reduced, Walk(n), operand) for operand in (0, 2))), 1)
    packs = p.cols // vec
    per_lane = reductions.power_of_2(-(-packs // 32))
    way = Walk(vec, "scattered" if p.masked else "none")
    blocks, constants = -(-p.rows // (CLASSIC_BLOCK // 32)), {"BLOCK": CLASSIC_BLOCK, "PER_LANE": per_lane}
    reduced, held = p.reduced.in_packs(vec), Held(packs)
    made = one_kernel(p, "warp", blocks, CLASSIC_BLOCK, p.kept, reduced, way, constants, held)
    return made._replace(strategy=strategy)


def classic(p: Problem, strategy: str, blocks: int, in_place: bool = True) -> Plan:
    """A rung of the ladder that takes any row as it is, element by element."""
    way = Walk(1, "scattered" if p.masked else "none")
    constants = {"BLOCK": CLASSIC_BLOCK}
    return one_kernel(p, strategy, blocks, CLASSIC_BLOCK, p.kept, p.reduced, way, constants, Held(p.cols), in_place)


# ------------------------------------------------------------------------------------------ rows and columns on chip


class Walk(NamedTuple):
    """How packs of ``vec`` elements lie along a dim, and those of the mask beside them."""

    vec: int
    mask: str = "none"
    loose: bool = False  # it begins and ends anywhere in a pack
    shifted: bool = False  # and in x elsewhere than in the result


def walk(p: Problem, inner: Axes, registers: int = 0) -> Walk:
    """The widest packs along the innermost dim of ``inner`` (one of p's axes) that x and the result allow."""
    for way in ways(p, inner, registers):
        if fits(p, inner, way, 0) and fits(p, inner, way, 2):
            if not p.masked:
                return way
            beside = not way.shifted and fits(p, inner, way, 1)
            return way._replace(mask="beside" if beside else "scattered")
    return Walk(1, "scattered" if p.masked else "none")


def ways(p: Problem, inner: Axes, registers: int) -> Iterator[Walk]:
    """The packs to try, the best ones first. A single reduced dim of some length is read in full packs even if it
    begins and ends anywhere: alike in x and the result, or, as long as it has no more than ``registers`` of them,
    elsewhere in x."""
    full = PACK // max(p.sizes)
    vec = full
    while vec > 1:
        yield Walk(vec)
        if vec == full and inner is p.reduced and len(inner.sizes) == 1 and p.cols >= LOOSE * full:
            yield Walk(full, loose=True)
            if p.cols <= full * registers and full * p.sizes[0] >= 4:
                yield Walk(full, loose=True, shifted=True)
        vec //= 2


def fits(p: Problem, inner: Axes, way: Walk, operand: int) -> bool:
    """Whether an operand may be read or written in such packs along the innermost dim of ``inner``."""
    size, out = p.sizes[operand], p.sizes[2]
    if not way.loose:
        return packable(way.vec, size, p.start(operand), operand, p.kept, p.reduced, inner=inner)
    apart = [a - b for a, b in zip(p.kept.strides[operand], p.kept.strides[2], strict=True)]
    apart.append(p.start(operand) // size - p.start(2) // out)
    together = (way.shifted and operand == 0) or all(d % way.vec == 0 for d in apart)
    return together and p.start(operand) % size == 0 and inner.strides[operand] == (1,) and p.start(2) % out == 0


def plan_on_chip(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Rows on chip: in the registers and the shared memory of some lanes, a block, a cluster of blocks, or the grid; or
    tiles of an outer axis, of a block or a cluster."""
    made = ON_CHIP[strategy](p, machine)
    if made is None:
        rule = f"strategy {strategy!r} does not hold rows of {p.cols} elements on this device's chip"
        raise error(ValueError, p.op, rule)
    return made


def rows_on_chip(p: Problem, machine: Machine) -> Plan | None:
    """The plan for rows, if they fit a cluster of blocks."""
    largest = BLOCK * machine.cluster if machine.cluster > 1 else LARGE_BLOCK  # threads to a row, without staging
    way = walk(p, p.reduced, registers=MOST_PACKS * largest if p.width == 1 else SHORT)
    packs = p.cols // way.vec
    times = narrow(p, way)
    if packs <= WARP_PACKS * times and (packs <= 32 * LANE_PACKS * times or p.rows >= machine.multiprocessors):
        group = min(32, reductions.power_of_2(-(-packs // (LANE_PACKS * times))))
        blocks = -(-p.rows // (LANES_BLOCK // group))
        held = Held(packs, packs, compiled(-(-packs // group)))
        constants = {"CLUSTER": 1, "GROUP": group}
        return along_packs(p, "rows", way, held, blocks, LANES_BLOCK, constants)
    short = packs <= SHORT * times
    most = min(machine.cluster, machine.multiprocessors // p.rows, packs // SPREAD)  # few rows are spread over many
    if p.width == 1 and not short:
        most = max(most, min(machine.cluster, packs // (PART * times)))
    cluster = reductions.floor_power_of_2(max(1, most))
    alone = p.rows * cluster <= machine.multiprocessors
    shape = block_shape(p, way, machine, cluster, SHORT // FEW_PACKS if short or alone else BLOCK)
    if shape is None:
        return None
    part = -(-packs // shape.cluster)
    each = 1 if alone else times * (FEW_PACKS * p.width if short else MOST_PACKS)
    block = min(shape.block, -(-part // (32 * each)) * 32)
    held = hold(packs, part, block, shape.registers, cluster=shape.cluster)
    constants = {"CLUSTER": shape.cluster, "GROUP": 0}
    full = held.staged > 0 or held.registers > FEW_PACKS * times
    return along_packs(p, "rows", way, held, p.rows * shape.cluster, block, constants, full)


class BlockShape(NamedTuple):
    """How blocks hold a row, if that is long."""

    cluster: int  # blocks
    block: int  # threads of each
    registers: int  # packs of a thread
    staged: int = 0  # and in shared memory

    @property
    def room(self) -> int:
        """Packs of a cluster."""
        return self.cluster * self.block * (self.registers + self.staged)


def narrow(p: Problem, way: Walk) -> int:
    """How many packs a thread takes in the place of one of 16 bytes."""
    return min(NARROW, PACK // (way.vec * max(p.sizes)))


def block_shape(p: Problem, way: Walk, machine: Machine, cluster: int, block: int) -> BlockShape | None:
    """The first shape of blocks that holds a row."""
    packs = p.cols // way.vec
    for shape in block_shapes(p, way, machine, cluster, block):
        if packs <= shape.room:
            return shape
    return None


def block_shapes(p: Problem, way: Walk, machine: Machine, cluster: int, block: int) -> Iterator[BlockShape]:
    """The registers of so many blocks of so many threads hold a row, or those of a single large block; or registers and
    shared memory, of blocks that share a multiprocessor or, if that will not do, have it alone."""
    most, block, large = MOST_PACKS * narrow(p, way), block // p.width, LARGE_BLOCK // p.width
    yield BlockShape(cluster, block, most)
    if p.width == 1 and cluster == 1:
        yield BlockShape(1, large, most)
    for threads, registers in ((block, most), (large, most // 2)):
        staged = staged_packs(machine.shared * threads // large - STATES, threads * pack_size(p, way))
        for n in clusters(machine):
            if n >= cluster:
                yield BlockShape(n, threads, registers, staged)


def clusters(machine: Machine) -> list[int]:
    """The blocks that a cluster may have."""
    return [2**n for n in range(machine.cluster.bit_length())]


def rows_on_grid(p: Problem, machine: Machine) -> Plan | None:
    """The plan for rows that the blocks which run at a time share, if they fit them."""
    way = walk(p, p.reduced)
    packs, resident = p.cols // way.vec, 1 if p.rows == 1 else GRID_BLOCKS
    block, together = LARGE_BLOCK // (resident * p.width), machine.together * resident
    stage = staged_packs(machine.shared // resident - STATES, block * pack_size(p, way))  # packs of a thread
    room = block * (GRID_PACKS + stage)  # of a block
    most = min(p.rows, together // -(-packs // room))
    if most == 0:
        return None
    teams = min(range(most, most // 2, -1), key=lambda n: -(-p.rows // n) / (together // n))  # rounds × a block's part
    team = together // teams
    held = hold(packs, -(-packs // team), block, GRID_PACKS, team=team)
    return along_packs(p, "grid", way, held, team * teams, block, {}, full=True)


class Held(NamedTuple):
    """What is held where."""

    packs: int  # of a row
    part: int = 0  # packs of a block
    registers: int = 0  # packs of a thread: none if a kernel does without `softmax_on_chip.cuh`
    staged: int = 0  # and in shared memory
    cluster: int = 1  # blocks to a row
    team: int = 0  # or so many that tell each other through memory


def hold(packs: int, part: int, block: int, most: int, **more: int) -> Held:
    """A block's part of a row in the registers of its threads, ``most`` packs each, and the rest staged."""
    each = -(-part // block)
    count = min(most, compiled(each))
    return Held(packs, part, count, max(0, each - count), **more)


def compiled(packs: int) -> int:
    """Packs of a thread that a kernel is compiled for: at least so many, if there are registers for them."""
    return next((n for n in PACKS if n >= packs), PACKS[-1])


def pack_size(p: Problem, way: Walk) -> int:
    """Bytes of a pack of x with its mask."""
    return way.vec * (p.sizes[0] + p.masked)


def staged_packs(room: int, size: int) -> int:
    """Packs of a thread that find room in shared memory."""
    return max(0, room // size)


def along_packs(
    p: Problem, strategy: str, way: Walk, held: Held, blocks: int, block: int, constants: dict[str, int],
    full: bool = False,
) -> Plan:  # fmt: skip
    """The plan of a kernel whose threads go along rows. ``full``: as many blocks share a multiprocessor as it has
    registers for."""
    reduced = p.reduced if way.loose else p.reduced.in_packs(way.vec)
    bound = max(LANES_BLOCK, reductions.power_of_2(block))
    resident = LARGE_BLOCK // (bound * p.width) if full else 0
    more = {"APART": 0, "BLOCK": bound, "RESIDENT": resident, "PEELED": way.loose}
    return one_kernel(p, strategy, blocks, block, p.kept, reduced, way, constants | more, held)


def columns_on_chip(p: Problem, machine: Machine) -> Plan | None:
    """The plan for tiles of an outer axis, if they fit a cluster of blocks."""
    way = walk(p, p.kept)
    kept, nbytes, size = p.kept.in_packs(way.vec), way.vec * p.sizes[0], pack_size(p, way)
    registers = COLUMN_PACKS[p.masked]
    block, wide, cluster, resident, held = LANES_BLOCK, LANES_BLOCK, 1, 0, Held(p.cols, p.cols, compiled(p.cols))
    if p.cols > MOST_PACKS:  # more than a thread's own
        far = p.width == 1 and max(p.reduced.strides[0]) * p.sizes[0] >= FAR
        segment = SEGMENT * LONGER if far else SEGMENT
        widest = max(1, min(segment // nbytes, COLUMN_ROWS // way.vec, reductions.power_of_2(kept.size)))

        def room(wide: int, block: int, cluster: int) -> int:  # packs of a tile along the axis
            states = (block // max(32, wide) + cluster) * way.vec * wide * 2 * ITEMSIZE[p.val]
            shared = machine.shared * block * p.width // LARGE_BLOCK - RESERVED - states
            return cluster * (block // wide) * (registers + staged_packs(shared, block * size))

        def tiles() -> Iterator[tuple[int, int, int]]:  # to try: packs side by side, threads of a block, blocks
            sizes, large = clusters(machine), COLUMN_BLOCK // p.width
            small = 0 if far or p.width > 1 else SMALL_CLUSTERS.get(p.sizes[0], 0)
            for n in sizes:
                if n <= small:
                    yield widest, SMALL_BLOCK, n
            for n in sizes:
                yield widest, large, n
            wide = widest
            while wide > 1 and wide * nbytes > SECTOR:
                wide //= 2
                yield wide, large, sizes[-1]

        for wide, block, cluster in tiles():
            if p.cols <= room(wide, block, cluster):
                break
        else:
            return None
        resident = LARGE_BLOCK // (block * p.width)
        while block > max(wide, LANES_BLOCK) and p.cols <= cluster * (block // 2 // wide) * registers:
            block, resident = block // 2, 0
        held = hold(p.cols, -(-p.cols // cluster), block // wide, registers, cluster=cluster)
    constants = {"APART": 1, "BLOCK": block, "WIDE": wide, "CLUSTER": cluster, "RESIDENT": resident}
    return one_kernel(p, "columns", -(-kept.size // wide) * cluster, block, kept, p.reduced, way, constants, held)


# --------------------------------------------------------------------------------------------------- the whole grid


def plan_two_pass(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Grid-wide maximum, grid-wide sum of exponentials, divide: three readings of x."""
    size = ITEMSIZE[p.val]
    maximum = statistic(p, SCALED_MAX, p.val, 2, 0)
    total = statistic(p, SHIFTED_EXP_SUM, p.val, 2, size, shifted=True)
    how = "shuffle" + strategy.removeprefix("two_pass")
    plans = [reductions.plan(q, how, machine.multiprocessors) for q in (maximum, total)]
    return divided(p, strategy, plans)


def plan_grid_online(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Maximum and sum of exponentials together in one grid-wide reduction, then divide: two readings of x."""
    both = statistic(p, MAX_EXP_SUM, None, 1, 0)
    return divided(p, strategy, [reductions.plan(both, None, machine.multiprocessors)])


def statistic(
    p: Problem, op: Reduction, out: str | None, stride: int, offset: int, shifted: bool = False
) -> reductions.Problem:
    """A reduction of p's rows into the (rows, 2) array of their maxima and sums."""
    kept = Axes(p.kept.sizes, (*p.kept.strides[:2], tuple(stride * s for s in contiguous_strides(p.kept.sizes))))
    reduced = Axes(p.reduced.sizes, p.reduced.strides[:2])
    return reductions.Problem(
        op, p.x, p.val, out, kept, reduced, (*p.offsets[:2], offset), (*p.pointers[:2], 0), p.cols,
        "bool" if p.masked else None, shifted, p.scale, names=(*p.names[:2], "stats"),
    )  # fmt: skip


def divided(p: Problem, strategy: str, passes: list[Plan]) -> Plan:
    """The reductions into the rows' statistics, then the pass that applies them to every element."""
    stats_size = 2 * ITEMSIZE[p.val]
    x, mask, out = (k + r for k, r in zip(p.kept.strides, p.reduced.strides, strict=True))
    stats = contiguous_strides(p.kept.sizes) + (0,) * len(p.reduced.sizes)
    arg = maps.Arg
    map_ = last_pass(
        p.op, p.val, p.kept.sizes + p.reduced.sizes,
        arg(p.names[2], CTYPES[p.out], ITEMSIZE[p.out], out, p.pointers[2], offset=p.offsets[2]),
        arg(p.names[0], CTYPES[p.x], ITEMSIZE[p.x], x, p.pointers[0], offset=p.offsets[0]), stats,
        arg(p.names[1], CTYPES["bool"], 1, mask, p.pointers[1], offset=p.offsets[1]) if p.masked else None, p.scale,
    )  # fmt: skip
    steps = tuple(step for each in (*passes, map_) for step in each.steps)
    workspace = dict(item for each in passes for item in each.workspace)
    scratch = max(each.scratch for each in passes)
    return Plan(strategy, steps, (("stats", p.rows * stats_size), *workspace.items()), scratch, in_place=True)


def last_pass(
    op: str, val: str, shape: Shape, out: maps.Arg, x: maps.Arg, stats: Shape, mask: maps.Arg | None,
    scale: float, pointer: int = 0, name: str = "stats",
) -> Plan:  # fmt: skip
    """The map that applies the rows' statistics, of these strides, to every element."""
    pairs = maps.Arg(name, f"MaxExpSum<{CTYPES[val]}>::State", 2 * ITEMSIZE[val], stats, pointer)
    map_ = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[op]
    return maps.plan(map_, shape, out, (x, pairs) if mask is None else (x, pairs, mask), scale=scale)


#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[..., Plan]] = {
    "naive": plan_naive,
    "block_tree": plan_block,
    "block_coalesced": plan_block,
    "two_pass": plan_two_pass,
    "two_pass_host": plan_two_pass,
    "block_online": plan_block,
    "block_shared": plan_block_shared,
    **dict.fromkeys(WARPS, plan_warp),
    "grid_online": plan_grid_online,
    **dict.fromkeys(("grid", "columns", "rows"), plan_on_chip),
}
#: How those are planned that hold rows on chip: not at all, if there is no room.
ON_CHIP = {"rows": rows_on_chip, "grid": rows_on_grid, "columns": columns_on_chip}
MASKS = {"none": 0, "beside": 1, "scattered": 2}  # enum Mask in softmax.cuh
