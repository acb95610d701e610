"""Planning matrix products: which rung, which tiles, how each operand's panels get to shared memory; or cuBLAS."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import error
from . import maps
from .dtypes import CTYPES, ITEMSIZE, accumulator
from .geometry import Axes, Shape, contiguous_strides, normalize
from .work import LAUNCH, NO_LAUNCH, TICKETS, Kernel, Launch, Machine, Operand, Plan, Step, check_grid

PACK = 16  # bytes of a load
FLOAT = "float32"  # what `pipelined` computes
BLAS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")  # and what cuBLAS does

# Tiles of the simple rungs, by bytes of a sum: fewer elements of a thread where each takes more registers.
BLOCK = 1024  # threads of naive and coalesced
SHARED_TILE = 32
DEPTH = 8  # of k that a block fetches at a time
TILE_1D, ROWS_1D = 64, 8
TILE_2D = {1: (128, 8), 2: (128, 8), 4: (128, 8), 8: (128, 8), 16: (64, 4)}  # a block's side, a thread's
WARPTILE = {1: (8, 16), 2: (8, 16), 4: (8, 16), 8: (8, 8), 16: (4, 4)}  # a thread's rows and columns
WARP_DEPTH = 16

LANES_M, LANES_N = 8, 4  # lanes of a warp down and across its tile
STAGES = 2  # of shared memory: one is filled while the other is read


class Tile(NamedTuple):
    """A block of ``pipelined``: what it computes, and by whom."""

    m: int
    n: int
    slices: int  # warps that share a part of the tile, each with a part of k
    depth: int  # of k that a slice takes from a stage
    rate: float  # of the arithmetic that it reaches
    thread: Shape = (8, 16)  # rows and columns of a thread
    resident: int = 1  # blocks of a multiprocessor

    @property
    def step(self) -> int:
        """k of a stage."""
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
        """Bytes of shared memory, however the panels are laid out there: stages, then what slices add up."""
        adding = min(8, math.prod(self.thread) // 4) * 16 * self.threads if self.slices > 1 else 0
        return max(STAGES * self.step * (self.m + self.n + 8) * 4, adding)


#: (Rates of the peak, and the cycles below, are fitted to times of products of many sizes on an H200.)
TILES = (
    Tile(128, 256, 1, 16, 0.8), Tile(128, 128, 2, 8, 0.74), Tile(64, 128, 4, 8, 0.74), Tile(64, 64, 8, 8, 0.7),
    Tile(32, 64, 8, 8, 0.6, thread=(4, 16)), Tile(32, 32, 8, 8, 0.53, thread=(4, 8)),
    Tile(32, 32, 1, 16, 0.5, thread=(4, 8), resident=12),
)  # fmt: skip
LANES = 128  # multiply-adds of a multiprocessor in a cycle, if it has so many threads:
FULL = 128
START = 5500  # cycles of a block in which it does not multiply
SHARE, BYTES = 6500, 44  # and of blocks that share a tile, of which the last reads so many bytes in a cycle
SPLITS = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # blocks that may share one
LEAST = 2  # steps of such a block
WORKSPACE = 2**23  # bytes of their sums, at most
LARGE, DEEP = 500_000, 1024  # cycles and k of a large one of rows with rows
MIDDLE = range(50_000, 4_000_000)  # cycles of one whose operands move element by element
LIMIT = 2**31  # that sizes and strides are below, for cuBLAS
CALLS = 4  # of it that a batch may take
GROUP = 8  # rows of tiles that are taken together, column by column

WAYS = {"packed": 0, "turned": 1, "across": 2, "deep": 3}  # enum Way in matmul_panels.cuh


class Matrix(NamedTuple):
    """How an operand's rows and columns lie in memory, in elements."""

    name: str  # of the array
    dtype: str
    row: int
    col: int
    offset: int  # bytes from the array's first element to where the walk of the batch starts
    pointer: int  # the first element's address modulo 16
    batch: Shape  # strides over the batch

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def operand(self) -> Operand:
        return Operand(self.name, self.offset)

    @property
    def turned(self) -> Matrix:
        """The transpose."""
        return self._replace(row=self.col, col=self.row)

    def aligned(self, vec: int, *strides: int) -> bool:
        """Whether packs of ``vec`` elements begin at multiples of their size, everywhere that the strides lead."""
        width = min(vec * self.itemsize, PACK)
        start = (self.pointer + self.offset) % PACK
        return all(at * self.itemsize % width == 0 for at in (*strides, *self.batch)) and start % width == 0


class Problem(NamedTuple):
    """out = alpha * a @ b + beta * c for each of a batch: ``a`` is (m, k), ``b`` (k, n), ``out`` and ``c`` (m, n)."""

    m: int
    n: int
    k: int
    batch: Shape
    val: str  # the dtype in which NumPy would compute
    a: Matrix
    b: Matrix
    c: Matrix | None  # None: nothing is added
    out: Matrix
    alpha: bytes  # of the dtype in which products are added up
    beta: bytes
    scaled: bool  # whether alpha is not 1

    @property
    def number(self) -> int:
        """How many products there are."""
        return math.prod(self.batch)

    def axes(self, *operands: Matrix | None) -> Axes:
        """The batch's dims with some operands' strides; 0 for one that there is not."""
        zero = (0,) * len(self.batch)
        return Axes(self.batch, tuple(zero if matrix is None else matrix.batch for matrix in operands))


class Layout(NamedTuple):
    """One array of the call: dtype, strides in elements (batch, rows, columns), its address modulo 16, and the bytes
    from there to the first element."""

    name: str
    dtype: str
    strides: Shape
    pointer: int
    offset: int = 0


def problem(
    val: str, sizes: Shape, batch: Shape, out: Layout, a: Layout, b: Layout, c: Layout | None, alpha: bytes,
    beta: bytes, scaled: bool,
) -> Problem:  # fmt: skip
    """The normal form of products of ``sizes`` (m, n, k): the result lies in rows, and the batch's dims are merged."""
    layouts = [layout for layout in (out, a, b, c) if layout]
    axes, moved = normalize(Axes(batch, tuple(layout.strides[:-2] for layout in layouts)))
    matrices = [
        Matrix(x.name, x.dtype, x.strides[-2], x.strides[-1], x.offset + start * ITEMSIZE[x.dtype], x.pointer, strides)
        for x, start, strides in zip(layouts, moved, axes.strides, strict=True)
    ]
    (m, n, k), (o, left, right, *more) = sizes, matrices
    if abs(o.row) < abs(o.col):  # it lies in columns: its transpose is that of b times that of a
        m, n, (o, right, left, *more) = n, m, [matrix.turned for matrix in matrices]
    return Problem(m, n, k, axes.sizes, val, left, right, more[0] if more else None, o, alpha, beta, scaled)


@lru_cache(maxsize=4096)
def plan(p: Problem, strategy: str | None, machine: Machine) -> Plan:
    """Plan a matrix product."""
    strategy = strategy or choose(p, machine)
    return STRATEGIES[strategy](p, strategy, machine)


def choose(p: Problem, machine: Machine) -> str:
    """The strategy for callers who name none."""
    # (With alpha 0, BLAS does not read a and b: NaN would be lost.)
    blas = p.val in BLAS and machine.blas and any(p.alpha) and max(p.m, p.n, p.k, p.number) < LIMIT
    blas = blas and sum(nbytes for _, nbytes in copies(p).values()) < machine.memory // 2
    choice = best(p, machine) if single(p) else None
    if choice is None:
        return "cublas" if blas else "warptile"
    return "cublas" if blas and behind(p, choice) else "pipelined"


def behind(p: Problem, choice: Choice) -> bool:
    """Where cuBLAS is faster than ``pipelined``, if it takes the operands as they are: neither small nor very large
    products of operands that move element by element, and large ones of rows with rows (a @ b.T)."""
    ways = {way(p.a, p.m, p.k), way(p.b.turned, p.n, p.k)}
    one_by_one = bool(ways & {"across", "deep"}) and int(choice.cycles) in MIDDLE
    rows_with_rows = ways == {"turned"} and p.k >= DEEP and choice.cycles >= LARGE
    return (one_by_one or rows_with_rows) and direct(p)


def single(p: Problem) -> bool:
    """Whether both operands are of the dtype that ``pipelined`` computes."""
    return (p.a.dtype, p.b.dtype, p.val) == (FLOAT,) * 3


# --------------------------------------------------------------------------------------------------- the simple rungs


def one_kernel(
    p: Problem, strategy: str, blocks: int, block: int, types: dict[str, str], constants: dict[str, int],
    whole: int = 0, splits: int = 1, shared: int = 0, more: tuple[Operand | bytes | None, ...] = (),
) -> Plan:  # fmt: skip
    """The plan of a strategy that is one launch of ``matmul_<strategy>.cu``."""
    products = f"{p.number} products of ({p.m}, {p.k}) @ ({p.k}, {p.n})"
    grid = check_grid("matmul", f"strategy {strategy!r}", (blocks,), products)
    batch = p.axes(p.out, p.a, p.b, p.c)
    c = p.c or p.out
    kernel = Kernel(
        f"matmul_{strategy}",
        types=(
            ("Ta", CTYPES[p.a.dtype]), ("Tb", CTYPES[p.b.dtype]), ("Tc", CTYPES[c.dtype]),
            ("Tout", CTYPES[p.out.dtype]), ("V", CTYPES[p.val]), *({"Offset": "i64"} | types).items(),
        ),
        constants=(("BATCH", batch.rank_class), *({"VEC_OUT": 1} | constants).items()),
    )  # fmt: skip
    strides = (stride for matrix in (p.a, p.b, c, p.out) for stride in (matrix.row, matrix.col))
    params = struct.pack("<3q2I8q2i", p.m, p.n, p.k, whole, splits, *strides, p.scaled, p.c is not None)
    params += p.alpha.ljust(16, b"\0") + p.beta.ljust(16, b"\0") + batch.packed()
    operands = (p.a.operand, p.b.operand, p.c and p.c.operand, p.out.operand, *more)
    launch = Launch(kernel, grid, block, (*operands, params), shared=shared)
    return Plan(strategy, (launch,))


def blocks_of(p: Problem, rows: int, cols: int) -> int:
    """How many tiles of so many rows and columns there are."""
    return p.number * -(-p.m // rows) * -(-p.n // cols)


def plan_elements(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One thread per element: a warp in a column, or in a row."""
    tile = (32, BLOCK // 32) if strategy == "naive" else (BLOCK // 32, 32)
    return one_kernel(p, strategy, blocks_of(p, *tile), BLOCK, {}, {"BLOCK": BLOCK})


def plan_shared(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One thread per element, tiles in shared memory."""
    tile = SHARED_TILE
    return one_kernel(p, strategy, blocks_of(p, tile, tile), tile * tile, {}, {"TILE": tile})


def plan_blocktile_1d(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Several elements of a column for each thread."""
    constants = {"TILE": TILE_1D, "ROWS": ROWS_1D, "DEPTH": DEPTH}
    return one_kernel(p, strategy, blocks_of(p, TILE_1D, TILE_1D), TILE_1D * TILE_1D // ROWS_1D, {}, constants)


def plan_blocktile_2d(p: Problem, strategy: str, machine: Machine) -> Plan:
    """A square of elements for each thread; ``vectorized`` moves packs."""
    tile, side = TILE_2D[ITEMSIZE[accumulator(p.val)]]
    constants = {"TILE": tile, "SIDE": side, "DEPTH": DEPTH}
    constants |= packs(p) if strategy == "vectorized" else {}
    return one_kernel(p, strategy, blocks_of(p, tile, tile), (tile // side) ** 2, {}, constants)


def plan_warptile(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Four warps with a tile each."""
    rows, cols = WARPTILE[ITEMSIZE[accumulator(p.val)]]
    constants = {"THREAD_M": rows, "THREAD_N": cols, "DEPTH": WARP_DEPTH, **packs(p)}
    return one_kernel(p, strategy, blocks_of(p, 16 * rows, 8 * cols), 128, {}, constants)


def packs(p: Problem) -> dict[str, int]:
    """How many elements move at a time: four, where a row's neighbours in a, b and out lie so."""
    def width(matrix: Matrix, neighbours: int) -> int:
        return 4 if matrix.col == 1 and neighbours % 4 == 0 and matrix.aligned(4, matrix.row) else 1

    return {"VEC_A": width(p.a, p.k), "VEC_B": width(p.b, p.n), "VEC_OUT": width(p.out, p.n)}


# ------------------------------------------------------------------------------------------------------- pipelined


class Choice(NamedTuple):
    """How ``pipelined`` shares out a problem."""

    tile: Tile
    whole: int  # tiles that a block has alone: all, or those of full rounds
    splits: int  # blocks that share one of the others
    cycles: float


def best(p: Problem, machine: Machine) -> Choice | None:
    """The tiles, and the blocks that share one, which should be the fastest; None if no block fits the device."""
    fitting = [tile for tile in TILES if tile.shared <= machine.shared]
    choices = (choice for tile in fitting for choice in ways_to_share(p, tile, machine))
    return min(choices, key=lambda choice: choice.cycles, default=None)


def ways_to_share(p: Problem, tile: Tile, machine: Machine) -> Iterator[Choice]:
    """How tiles can be shared out, and an estimate of what that takes: rounds of blocks, times what one of them takes.

    The tiles of the last round, if they are too few for all multiprocessors, can be shared by several blocks each.
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
    """Stages of shared memory that are filled while others are read."""
    if not single(p):
        rule = f"strategy {strategy!r} takes {FLOAT} operands, got {p.a.dtype} and {p.b.dtype}"
        raise error(ValueError, "matmul", rule)
    if (choice := best(p, machine)) is None:
        least = min(tile.shared for tile in TILES)
        rule = f"strategy {strategy!r} takes {least} bytes of shared memory, this device has {machine.shared}"
        raise error(ValueError, "matmul", rule)
    if p.k == 0:  # nothing is multiplied
        return plan_elements(p, "naive", machine)._replace(strategy=strategy)
    return tiled(p, strategy, choice.tile, choice.splits, choice.whole)


def tiled(p: Problem, strategy: str, tile: Tile, splits: int, whole: int = 0) -> Plan:
    """The plan of ``matmul_pipelined.cu`` with given tiles, of which all but ``whole`` are shared by blocks."""
    constants = {
        "BLOCK_M": tile.m, "BLOCK_N": tile.n, "WARP_M": tile.warp[0], "WARP_N": tile.warp[1],
        "THREAD_M": tile.thread[0], "THREAD_N": tile.thread[1], "SLICES": tile.slices, "DEPTH": tile.depth,
        "THREADS": tile.threads, "RESIDENT": tile.resident, "GROUP": GROUP, "SPLIT": int(splits > 1),
        "WAY_A": WAYS[way(p.a, p.m, p.k)], "WAY_B": WAYS[way(p.b.turned, p.n, p.k)], "VEC_OUT": packs(p)["VEC_OUT"],
    }  # fmt: skip
    far = max(tile.m * abs(p.a.row), tile.n * abs(p.b.col), tile.step * abs(p.a.col), tile.step * abs(p.b.row))
    far = max(far, *(tile.m * abs(x.row) + tile.n * abs(x.col) for x in (p.out, p.c or p.out)))
    types = {"Offset": "i32" if far < 2**30 else "i64"}
    tiles = blocks_of(p, tile.m, tile.n)
    sharing = (tiles - whole) * splits if splits > 1 else 0  # blocks
    more = (Operand("partials"), Operand("scratch"), LAUNCH) if sharing else (None, None, NO_LAUNCH)
    blocks = whole + sharing if sharing else tiles
    made = one_kernel(p, strategy, blocks, tile.threads, types, constants, whole, splits, tile.shared, more)
    if not sharing:
        return made
    return made._replace(workspace=(("partials", sharing * 4 * tile.m * tile.n),), scratch=8 * TICKETS)


def way(matrix: Matrix, size: int, k: int) -> str:
    """How a panel gets to shared memory of an operand that lies as ``a`` does: (size, k)."""
    if matrix.row == 1 and size % 4 == 0 and matrix.aligned(4, matrix.col):
        return "packed"
    if matrix.col == 1 and k % 4 == 0 and matrix.aligned(4, matrix.row):
        return "turned"
    return "across" if abs(matrix.row) <= abs(matrix.col) else "deep"


# ---------------------------------------------------------------------------------------------------------- cuBLAS


class Gemm(NamedTuple):
    """A step that is a call of cuBLAS: out = alpha * a @ b + beta * out, for a batch with one stride.

    All three matrices are of one dtype. ``a`` and ``b`` lie in rows or in columns, ``out`` in rows.
    """

    dtype: str
    sizes: Shape  # m, n, k
    a: Operand
    b: Operand
    out: Operand
    turned: tuple[bool, ...]  # whether a and b lie in columns
    leading: Shape  # elements from row to row (or column to column) of a, b and out
    batch: int
    strides: Shape  # elements from product to product, of a, b and out
    alpha: bytes
    beta: bytes

    def ready(self, device: Any, places: dict[str, int]) -> Step:
        return device.gemm(self, places)


def plan_cublas(p: Problem, strategy: str, machine: Machine) -> Plan:
    """cuBLAS, after copies of what it does not take as it lies."""
    if p.val not in BLAS:
        raise error(ValueError, "matmul", f"strategy {strategy!r} takes {', '.join(BLAS)}, got {p.val}")
    if max(p.m, p.n, p.k, p.number) >= LIMIT:
        raise error(ValueError, "matmul", f"strategy {strategy!r} takes sizes below {LIMIT}, got ({p.m}, {p.n}, {p.k})")
    if p.k == 0:  # nothing is multiplied
        return plan_elements(p, "naive", machine)._replace(strategy=strategy)
    steps: list[Any] = []
    dense = copies(p)
    workspace = [(matrix.name, nbytes) for matrix, nbytes in dense.values()]
    if (total := sum(nbytes for _, nbytes in workspace)) > machine.memory:
        rule = f"strategy {strategy!r} needs copies of {total} bytes, this device has {machine.memory}"
        raise error(MemoryError, "matmul", rule)
    a, b, out = (dense[name][0] if name in dense else getattr(p, name) for name in ("a", "b", "out"))
    for name, matrix, size in (("a", a, (p.m, p.k)), ("b", b, (p.k, p.n))):
        if name in dense:
            steps.extend(copy(p, matrix, getattr(p, name), *size))
    if p.c is not None and not same_place(p.c, out):
        steps.extend(copy(p, out, p.c, p.m, p.n))
    in_columns = [not leading(matrix, *size) for matrix, size in ((a, (p.m, p.k)), (b, (p.k, p.n)))]
    sizes = ((p.m, p.k), (p.k, p.n), (p.m, p.n))
    rows = [
        leading(matrix.turned if turned else matrix, *(size[::-1] if turned else size))
        for matrix, turned, size in zip((a, b, out), (*in_columns, False), sizes, strict=True)
    ]
    batch, inner = (p.batch or (1,)), [(matrix.batch or (0,))[-1] for matrix in (a, b, out)]
    for outer in np.ndindex(batch[:-1]):
        first, second, third = (
            Operand(matrix.name, matrix.offset + matrix.itemsize * sum(map(operator.mul, outer, matrix.batch)))
            for matrix in (a, b, out)
        )
        steps.append(Gemm(
            p.val, (p.m, p.n, p.k), first, second, third, tuple(in_columns), tuple(rows), batch[-1], tuple(inner),
            p.alpha, p.beta if p.c is not None else bytes(len(p.beta)),
        ))  # fmt: skip
    if "out" in dense:
        steps.extend(copy(p, p.out, out, p.m, p.n))
    return Plan(strategy, tuple(steps), tuple(workspace))


def copies(p: Problem) -> dict[str, tuple[Matrix, int]]:
    """The dense arrays that take the place of what cuBLAS does not take as it lies, and their bytes, by operand."""
    found = {}
    for name, rows, cols in (("a", p.m, p.k), ("b", p.k, p.n), ("out", p.m, p.n)):
        matrix: Matrix = getattr(p, name)
        if not accepted(p, matrix, rows, cols, in_columns=name != "out"):
            sizes = tuple(n for n, s in zip(p.batch, matrix.batch, strict=True) if s)
            steps = iter(contiguous_strides((*sizes, rows, cols))[:-2])
            batch = tuple(next(steps) if s else 0 for s in matrix.batch)
            nbytes = math.prod(sizes) * rows * cols * ITEMSIZE[p.val]
            found[name] = Matrix(f"dense_{name}", p.val, cols, 1, 0, 0, batch), nbytes
    return found


def accepted(p: Problem, matrix: Matrix, rows: int, cols: int, in_columns: bool = True) -> bool:
    """Whether cuBLAS takes a matrix as it lies: in rows, or perhaps in columns, aligned to its dtype, and those of a
    batch one after the other, not backwards (which it takes for some shapes and dtypes only)."""
    backwards = bool(matrix.batch) and matrix.batch[-1] < 0
    lies = leading(matrix, rows, cols) or (in_columns and leading(matrix.turned, cols, rows))
    return matrix.dtype == p.val and matrix.aligned(1) and not backwards and bool(lies)


def leading(matrix: Matrix, rows: int, cols: int) -> int:
    """The leading dimension of a matrix that lies in rows; 0 if it does not."""
    if matrix.col != 1 and cols > 1:
        return 0
    return max(1, cols) if rows == 1 else matrix.row if cols <= matrix.row < LIMIT else 0


def direct(p: Problem) -> bool:
    """Whether cuBLAS takes a product as it lies, in few calls."""
    return not copies(p) and math.prod(p.batch[:-1]) <= CALLS


def same_place(c: Matrix, out: Matrix) -> bool:
    """Whether ``c`` is what ``out`` holds."""
    return c._replace(name="") == out._replace(name="") and c.name == out.name


def copy(p: Problem, to: Matrix, matrix: Matrix, rows: int, cols: int) -> tuple[Launch, ...]:
    """The launches that copy matrices of a batch, and convert them."""
    def arg(m: Matrix, ctype: str) -> maps.Arg:
        strides = (*(s for s, keep in zip(m.batch, to.batch, strict=True) if keep), m.row, m.col)
        return maps.Arg(m.name, ctype, m.itemsize, strides, m.pointer, offset=m.offset)

    target, source = maps.element_types(to.dtype, (matrix.dtype,))
    sizes = (*(n for n, keep in zip(p.batch, to.batch, strict=True) if keep), rows, cols)
    return maps.plan("Expand", sizes, arg(to, target), (arg(matrix, source),)).steps


#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[[Problem, str, Machine], Plan]] = {
    "naive": plan_elements,
    "coalesced": plan_elements,
    "shared": plan_shared,
    "blocktile_1d": plan_blocktile_1d,
    "blocktile_2d": plan_blocktile_2d,
    "vectorized": plan_blocktile_2d,
    "warptile": plan_warptile,
    "cublas": plan_cublas,
    "pipelined": plan_pipelined,
}
