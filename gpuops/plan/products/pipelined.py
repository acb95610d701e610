"""``pipelined``: one stage of shared memory is filled while the other is read."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from ...errors import error
from ..geometry import Shape
from ..work import LAUNCH, NO_LAUNCH, TICKETS, Machine, Operand, Plan
from .problems import FLOAT, Matrix, Problem, single
from .rungs import Design, blocks_of, launch, packs, plan_elements

LANES_M, LANES_N = 8, 4  # lanes of a warp down and across its tile
STAGES = 2  # of shared memory: one is filled while the other is read


class Tile(NamedTuple):
    """A block of ``pipelined``: the tile that it computes, and how its threads divide it."""

    m: int
    n: int
    slices: int  # warps for each part of the tile, each with a part of k
    depth: int  # the k of a stage for each slice
    rate: float  # the fraction of peak arithmetic that it reaches
    thread: Shape = (8, 16)  # rows and columns of a thread
    resident: int = 1  # blocks per multiprocessor

    @property
    def step(self) -> int:
        """The k of a stage."""
        return self.slices * self.depth

    @property
    def warp(self) -> Shape:
        """Rows and columns of a warp."""
        return LANES_M * self.thread[0], LANES_N * self.thread[1]

    @property
    def threads(self) -> int:
        return 32 * (self.m // self.warp[0]) * (self.n // self.warp[1]) * self.slices

    @property
    def shared(self) -> int:
        """Bytes of shared memory, for any layout of panels: the stages, later reused to add up slices."""
        adding = min(8, math.prod(self.thread) // 4) * 16 * self.threads if self.slices > 1 else 0
        return max(STAGES * self.step * (self.m + self.n + 8) * 4, adding)


#: Rates, and the cycles below, are fitted to times of products of many sizes on an H200.
TILES = (
    Tile(128, 256, 1, 16, 0.8), Tile(128, 128, 2, 8, 0.74), Tile(64, 128, 4, 8, 0.74), Tile(64, 64, 8, 8, 0.7),
    Tile(32, 64, 8, 8, 0.6, thread=(4, 16)), Tile(32, 32, 8, 8, 0.53, thread=(4, 8)),
    Tile(32, 32, 1, 16, 0.5, thread=(4, 8), resident=12),
)  # fmt: skip
LANES = 128  # multiply-adds per cycle of a multiprocessor
FULL = 128  # threads that it needs to reach this rate
START = 5500  # cycles of a block outside its loop of products
SHARE, BYTES = 6500, 44  # more cycles where blocks share a tile; bytes per cycle at which the last adds up their sums
SPLITS = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # numbers of blocks that may share a tile
LEAST = 2  # fewest steps of such a block
WORKSPACE = 2**23  # most bytes of their sums
GROUP = 8  # rows of tiles that are taken together, column by column
WAYS = {"packed": 0, "turned": 1, "across": 2, "deep": 3}  # enum Way in matmul_panels.cuh


class Choice(NamedTuple):
    """How ``pipelined`` divides a problem among blocks."""

    tile: Tile
    whole: int  # tiles with a block each: all, or those of full rounds
    splits: int  # blocks that share each of the others
    cycles: float


def best(p: Problem, machine: Machine) -> Choice | None:
    """The choice with the fewest estimated cycles; None if no tile fits the device."""
    fitting = [tile for tile in TILES if tile.shared <= machine.shared]
    choices = (choice for tile in fitting for choice in ways_to_share(p, tile, machine))
    return min(choices, key=lambda choice: choice.cycles, default=None)


def ways_to_share(p: Problem, tile: Tile, machine: Machine) -> Iterator[Choice]:
    """The choices for a tile, with estimated cycles: rounds of blocks, times the cycles of a block.

    If the last round has too few tiles for all multiprocessors, several blocks can share each of them (split-K).
    """
    tiles, steps = blocks_of(p, tile.m, tile.n), -(-p.k // tile.step)
    step = tile.step * tile.m * tile.n / (LANES * tile.rate)  # cycles
    together = min(tile.resident, -(-tiles // machine.multiprocessors))  # blocks of a multiprocessor
    block = START + together * steps * step / min(1, together * tile.threads / FULL)
    yield Choice(tile, tiles, 1, -(-tiles // (machine.multiprocessors * together)) * block)
    if tile.resident > 1:
        return
    rounds, left = divmod(tiles, machine.multiprocessors)
    nbytes = 4 * tile.m * tile.n
    for splits in SPLITS:
        blocks = left * splits
        if not 0 < blocks <= machine.multiprocessors or steps < LEAST * splits or blocks * nbytes > WORKSPACE:
            return
        cycles = rounds * block + START + -(-steps // splits) * step + SHARE + splits * nbytes / BYTES
        yield Choice(tile, tiles - left, splits, cycles)


def plan_pipelined(p: Problem, strategy: str, machine: Machine) -> Plan:
    """The plan with the best tile and split."""
    if not single(p):
        rule = f"strategy {strategy!r} takes {FLOAT} operands, got {p.a.dtype} and {p.b.dtype}"
        raise error(ValueError, "matmul", rule)
    if (choice := best(p, machine)) is None:
        least = min(tile.shared for tile in TILES)
        rule = f"strategy {strategy!r} takes {least} bytes of shared memory, this device has {machine.shared}"
        raise error(ValueError, "matmul", rule)
    if p.k == 0:  # nothing to multiply
        return plan_elements(p, "naive", machine)._replace(strategy=strategy)
    return tiled(p, strategy, choice.tile, choice.splits, choice.whole)


def tiled(p: Problem, strategy: str, tile: Tile, splits: int, whole: int = 0) -> Plan:
    """The plan of ``matmul_pipelined.cu`` with a tile; ``splits`` blocks share each tile after the first ``whole``."""
    constants = {
        "BLOCK_M": tile.m, "BLOCK_N": tile.n, "WARP_M": tile.warp[0], "WARP_N": tile.warp[1],
        "THREAD_M": tile.thread[0], "THREAD_N": tile.thread[1], "SLICES": tile.slices, "DEPTH": tile.depth,
        "THREADS": tile.threads, "RESIDENT": tile.resident, "GROUP": GROUP, "SPLIT": int(splits > 1),
        "WAY_A": WAYS[way(p.a, p.m, p.k)], "WAY_B": WAYS[way(p.b.turned, p.n, p.k)], "VEC_OUT": packs(p)["VEC_OUT"],
    }  # fmt: skip
    far = max(tile.m * abs(p.a.row), tile.n * abs(p.b.col), tile.step * abs(p.a.col), tile.step * abs(p.b.row))
    far = max(far, *(tile.m * abs(x.row) + tile.n * abs(x.col) for x in (p.out, p.c or p.out)))
    offset = "i32" if far < 2**30 else "i64"
    tiles = blocks_of(p, tile.m, tile.n)
    sharing = (tiles - whole) * splits if splits > 1 else 0  # blocks
    more = (Operand("partials"), Operand("scratch"), LAUNCH) if sharing else (None, None, NO_LAUNCH)
    blocks = whole + sharing if sharing else tiles
    design = Design(blocks, tile.threads, constants, offset, whole, splits, tile.shared, more)
    made = launch(p, strategy, design)
    if not sharing:
        return made
    return made._replace(workspace=(("partials", sharing * 4 * tile.m * tile.n),), scratch=8 * TICKETS)


def way(matrix: Matrix, size: int, k: int) -> str:
    """How panels of an operand laid out like ``a``, (size, k), get to shared memory."""
    if matrix.row == 1 and size % 4 == 0 and matrix.aligned(4, matrix.col):
        return "packed"
    if matrix.col == 1 and k % 4 == 0 and matrix.aligned(4, matrix.row):
        return "turned"
    return "across" if abs(matrix.row) <= abs(matrix.col) else "deep"
