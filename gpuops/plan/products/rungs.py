"""The simple rungs: a thread per element, tiles in shared memory, tiles of threads and of warps."""

from typing import NamedTuple

from ..dtypes import CTYPES, ITEMSIZE, accumulator
from ..params import Field, Struct
from ..work import Launch, Machine, Operand, Plan, check_grid, variant
from .problems import Matrix, Problem

# Tiles of the simple rungs, by bytes of a sum: the more registers a sum takes, the fewer elements per thread.
BLOCK = 1024  # threads of naive and coalesced
SHARED_TILE = 32
DEPTH = 8  # the k that a block loads at a time
TILE_1D, ROWS_1D = 64, 8
TILE_2D = {1: (128, 8), 2: (128, 8), 4: (128, 8), 8: (128, 8), 16: (64, 4)}  # a block's side, a thread's
WARPTILE = {1: (8, 16), 2: (8, 16), 4: (8, 16), 8: (8, 8), 16: (4, 4)}  # a thread's rows and columns
WARP_DEPTH = 16

PARAMS = Struct(
    "Matmul",
    Field("i64", "m", "rows of a and out"),
    Field("i64", "n", "columns of b and out"),
    Field("i64", "k", "columns of a, rows of b"),
    Field("u32", "whole", "pipelined: tiles of one block each"),
    Field("u32", "splits", "pipelined: blocks per tile of the others (split-K)"),
    Field("Strides", "a", "from row to row, from column to column"),
    Field("Strides", "b", "the same of b"),
    Field("Strides", "c", "of c"),
    Field("Strides", "out", "of out"),
    Field("i32", "scaled", "whether alpha is not 1"),
    Field("i32", "added", "whether beta * c is added: c is not read otherwise"),
    Field("u64", "alpha[2]", "the bytes of an A"),
    Field("u64", "beta[2]", "likewise"),
    Field("Axes<BATCH, 4>", "batch", "operands out, a, b, c"),
)


class Design(NamedTuple):
    """How a kernel divides a product among blocks."""

    blocks: int
    block: int  # threads
    constants: dict[str, int]
    offset: str = "i64"
    whole: int = 0  # tiles with a block each
    splits: int = 1  # blocks that share each of the others
    shared: int = 0  # bytes of dynamic shared memory
    more: tuple[Operand | bytes | None, ...] = ()  # arguments after the operands


def launch(p: Problem, strategy: str, design: Design) -> Plan:
    """The plan of a strategy that is one launch of ``matmul_<strategy>.cu``."""
    words = "{} products of ({}, {}) @ ({}, {})"
    rule = f"strategy {strategy!r}"
    grid = check_grid("matmul", rule, (design.blocks, 1), words, p.number, p.m, p.k, p.k, p.n)
    batch, c = p.axes(p.out, p.a, p.b, p.c), p.c or p.out
    types = {
        "Ta": CTYPES[p.a.dtype], "Tb": CTYPES[p.b.dtype], "Tc": CTYPES[c.dtype], "Tout": CTYPES[p.out.dtype],
        "V": CTYPES[p.val], "Offset": design.offset,
    }  # fmt: skip
    kernel = variant(f"matmul_{strategy}", types, {"BATCH": batch.rank_class, "VEC_OUT": 1} | design.constants)
    params = PARAMS.pack(
        "i64", m=p.m, n=p.n, k=p.k, whole=design.whole, splits=design.splits, a=p.a.strides, b=p.b.strides,
        c=c.strides, out=p.out.strides, scaled=p.scaled, added=p.c is not None, alpha=p.alpha.ljust(16, b"\0"),
        beta=p.beta.ljust(16, b"\0"), batch=batch,
    )  # fmt: skip
    operands = (p.a.operand, p.b.operand, p.c and p.c.operand, p.out.operand, *design.more)
    return Plan(strategy, (Launch(kernel, grid, design.block, (*operands, params), shared=design.shared),))


def blocks_of(p: Problem, rows: int, cols: int) -> int:
    """The number of tiles of these rows and columns."""
    return p.number * -(-p.m // rows) * -(-p.n // cols)


def plan_elements(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One thread per element: the warp goes along a column (naive) or a row."""
    tile = (32, BLOCK // 32) if strategy == "naive" else (BLOCK // 32, 32)
    return launch(p, strategy, Design(blocks_of(p, *tile), BLOCK, {"BLOCK": BLOCK}))


def plan_shared(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One thread per element, tiles in shared memory."""
    tile = SHARED_TILE
    return launch(p, strategy, Design(blocks_of(p, tile, tile), tile * tile, {"TILE": tile}))


def plan_blocktile_1d(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Several elements of a column for each thread."""
    constants = {"TILE": TILE_1D, "ROWS": ROWS_1D, "DEPTH": DEPTH}
    return launch(p, strategy, Design(blocks_of(p, TILE_1D, TILE_1D), TILE_1D * TILE_1D // ROWS_1D, constants))


def plan_blocktile_2d(p: Problem, strategy: str, machine: Machine) -> Plan:
    """A square of elements for each thread; ``vectorized`` moves packs."""
    tile, side = TILE_2D[ITEMSIZE[accumulator(p.val)]]
    constants = {"TILE": tile, "SIDE": side, "DEPTH": DEPTH}
    constants |= packs(p) if strategy == "vectorized" else {}
    return launch(p, strategy, Design(blocks_of(p, tile, tile), (tile // side) ** 2, constants))


def plan_warptile(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Four warps with a tile each."""
    rows, cols = WARPTILE[ITEMSIZE[accumulator(p.val)]]
    constants = {"THREAD_M": rows, "THREAD_N": cols, "DEPTH": WARP_DEPTH, **packs(p)}
    return launch(p, strategy, Design(blocks_of(p, 16 * rows, 8 * cols), 128, constants))


def packs(p: Problem) -> dict[str, int]:
    """Elements per load and store: four where rows of a, b and out are contiguous and aligned."""
    def width(matrix: Matrix, neighbours: int) -> int:
        return 4 if matrix.col == 1 and neighbours % 4 == 0 and matrix.aligned(4, matrix.row) else 1

    return {"VEC_A": width(p.a, p.k), "VEC_B": width(p.b, p.n), "VEC_OUT": width(p.out, p.n)}
