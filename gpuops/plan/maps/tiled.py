"""Tiles through shared memory: ``broadcast_tiled.cu``."""

from __future__ import annotations

from ..access import PACK, SECTOR, packable
from ..geometry import Axes
from ..params import Field, Struct
from ..work import STATIC_SHARED, Launch
from .launch import TAIL, launch, padded, scalars, way
from .problems import Problem, offset_type, reaches

BLOCK = 256
SIDE = 16  # the shortest dim along which tiles are cut
COLS = 48  # the shortest rows of the output for which tiles are the default
TILES = {1: 128, 2: 64, 4: 64, 8: 32, 16: 32}  # side of a tile, by bytes of an element

PARAMS = Struct(
    "Tiled",
    Field("Divisor", "tile_cols", "tiles along the innermost dim"),
    Field("Divisor", "tile_rows", "tiles along the other one"),
    Field("i32", "cols", "the innermost dim's length"),
    Field("i32", "rows", "the other one's"),
    Field("i32", "wide[4]", "whether a TILED operand of small elements is read a word at a time"),
    Field("Offset", "across[4]", "strides from column to column, of a, b, c, y"),
    Field("Offset", "along[4]", "strides from row to row"),
    Field("Axes<RANK, ARITY + 1, Offset>", "axes", "the outer dims, operands a, b, c, y"),
    *TAIL,
)


def across(p: Problem) -> int | None:
    """The dim along which operands are read into tiles. Those with a large innermost stride vote, with the weight of
    their item size, for their dim of smallest stride. None without votes."""
    votes: dict[int, int] = {}
    for k in range(1, len(p.args)):
        if (dim := closest(p, k)) is not None:
            votes[dim] = votes.get(dim, 0) + p.args[k].itemsize
    return max(votes, key=lambda dim: votes[dim]) if votes else None


def closest(p: Problem, k: int) -> int | None:
    """The dim of an operand with the smallest stride, if it should be read along that, not along the innermost one."""
    strides, itemsize = p.axes.strides[k], p.args[k].itemsize
    if abs(strides[-1]) * itemsize < SECTOR or p.cols < SIDE:
        return None
    dims = [d for d, s in enumerate(strides) if s and p.axes.sizes[d] >= SIDE]
    dim = min(dims, key=lambda d: abs(strides[d]))
    return dim if abs(strides[dim]) * itemsize < SECTOR else None


def launch_tiled(p: Problem, dim: int) -> Launch:
    """A launch of ``broadcast_tiled.cu``, with tiles of that dim and the innermost one."""
    out = p.args[0]
    vec = PACK // out.itemsize
    if not packable(vec, out.itemsize, out.start, 0, p.axes, inner=p.axes):
        vec = 1
    ways = [
        "tiled" if closest(p, k) == dim else way(p, k, "whole", vec, shift=False) for k in range(1, len(p.args))
    ]
    staged = [p.args[k].itemsize for k, w in enumerate(ways, 1) if w == "tiled"]
    side = TILES[max(out.itemsize, *staged)]
    while sum(tile_bytes(side, itemsize) for itemsize in staged) > STATIC_SHARED:
        side //= 2
    block = BLOCK if side * side * out.itemsize < 4 * BLOCK * PACK else 2 * BLOCK
    rows, cols = p.axes.sizes[dim], p.cols
    tile_rows, tile_cols = -(-rows // side), -(-cols // side)
    order = (*range(1, len(p.args)), 0)  # the kernel's order: the output last
    outer = [d for d in range(len(p.axes.sizes) - 1) if d != dim]
    strides = tuple(tuple(p.axes.strides[k][d] for d in outer) for k in order)
    walked = Axes(tuple(p.axes.sizes[d] for d in outer), strides)
    offset = offset_type(reaches(p))
    params = PARAMS.pack(
        offset, tile_cols=tile_cols, tile_rows=tile_rows, cols=cols, rows=rows,
        wide=padded([wide(p, k, dim) for k in range(1, len(p.args))]),
        across=padded([p.axes.inner(k) for k in order]), along=padded([p.axes.strides[k][dim] for k in order]),
        axes=walked, **scalars(p),
    )  # fmt: skip
    constants = {"BLOCK": block, "RANK": walked.rank_class, "TILE": side}
    grid = walked.size * tile_rows * tile_cols, 1
    return launch("broadcast_tiled", p, vec, offset, ways, params, grid, constants)


def tile_bytes(side: int, itemsize: int) -> int:
    """Bytes of a tile in shared memory: rows of words of at least four bytes, each padded by a word."""
    word = max(4, itemsize)
    return side * (side * itemsize + word)


def wide(p: Problem, k: int, dim: int) -> bool:
    """Whether small elements may be read four bytes at a time along a dim."""
    arg = p.args[k]
    items = 4 // arg.itemsize
    others = [s for d, s in enumerate(p.axes.strides[k]) if d != dim]
    return items > 1 and p.axes.strides[k][dim] == 1 and arg.start % 4 == 0 and all(s % items == 0 for s in others)
