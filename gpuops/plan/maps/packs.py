"""Packs of the output in C order: ``broadcast.cu``."""

from __future__ import annotations

import math

from ..access import PACK, packable
from ..dtypes import BITS
from ..geometry import Axes, contiguous_strides
from ..params import Field, Struct
from ..work import Launch
from .launch import TAIL, launch, padded, scalars, way
from .problems import Problem, offset_type, reaches

BLOCK = {1: 256, 2: 128, 3: 128}  # threads, by operands of the map
IN_FLIGHT = 2  # packs of a thread, if there are at least FEW
FEW = 2**18  # packs below which each has a thread of its own
LINE = 128  # bytes of a cache line
WORD = 4  # bytes of the words in which copies are made
AHEAD = 2**24  # most bytes of an operand to prefetch
WALKS = {"whole": 0, "crossing": 1, "narrow": 2, "short": 3, "ragged": 4}  # enum Walk in broadcast.cu

PARAMS = Struct(
    "Broadcast",  # what every thread reads comes first, on few cache lines
    Field("u32", "packs", "packs of the output"),
    Field("i32", "length", "elements of a dense output"),
    Field("i32", "head", "elements between the start of y's first pack and y's first element"),
    Field("u32", "ahead", "blocks that prefetch operands"),
    Field("Axes<RANK, ARITY + !DENSE, Offset>", "axes", "operands a, b, c, and y unless it is dense"),
    Field("Divisor", "row_packs", "RAGGED: packs that a row may touch"),
    Field("Offset", "low[4]", "the lowest elements of a, b, c, relative to their first ones"),
    Field("Offset", "high[4]", "the end of a, b, c's elements"),
    Field("i32", "lines[4]", "cache lines of a, b, c to prefetch"),
    *TAIL,
)


def in_words(p: Problem) -> Problem:
    """A copy in whole packs as a copy of 4-byte words, so that the same kernels serve all dtypes."""
    size, ctype = p.args[0].itemsize, p.args[0].ctype
    if p.map_ != "Expand" or size == WORD or not p.args[1].ctype == ctype == BITS[size] or p.args[1].value is not None:
        return p
    if not all([packable(PACK // size, size, arg.start, k, p.axes, inner=p.axes) for k, arg in enumerate(p.args)]):
        return p
    sizes = (*p.axes.sizes[:-1], p.cols * size // WORD)
    strides = tuple([(*[s * size // WORD for s in operand[:-1]], 1) for operand in p.axes.strides])
    args = tuple([arg._replace(ctype=BITS[WORD], itemsize=WORD) for arg in p.args])
    return p._replace(axes=Axes(sizes, strides), args=args)


def launch_packs(p: Problem) -> Launch:
    """A launch of ``broadcast.cu`` with packs of at most 16 bytes."""
    p = in_words(p)
    out, size = p.args[0], p.axes.size
    vec = PACK // out.itemsize
    dense = p.axes.strides[0] == contiguous_strides(p.axes.sizes)
    if p.axes.inner(0) != 1 or not out.aligned:
        vec = 1
    walk = walk_of(p, vec, dense)
    if walk in ("narrow", "short") and vec > 2 and walk_of(p, vec // 2, dense) == "whole":
        walk, vec = "whole", vec // 2  # narrower packs, but none crosses rows
    if walk == "ragged" and p.cols < 2 * vec:
        walk, vec = "whole", 1
    head = 0 if walk == "whole" else out.start % (vec * out.itemsize) // out.itemsize
    row_packs = -(-(p.cols + vec - 1) // vec)
    count = size // p.cols * row_packs if walk == "ragged" else -(-(size + head) // vec)
    unroll, block = 1 if count < FEW else IN_FLIGHT, BLOCK[len(p.args) - 1]
    ways = [way(p, k, walk, vec, head) for k in range(1, len(p.args))]
    if unroll > 1 and vec == PACK and ways == ["repeated"]:
        unroll *= 2  # a pack that repeats a byte takes one multiplication
    walked = Axes(p.axes.sizes, p.axes.strides[1:] if dense else (*p.axes.strides[1:], p.axes.strides[0]))
    lows, highs = reached = reaches(p)
    offset, ahead = offset_type(reached), padded(lines(p, lows, highs))
    params = PARAMS.pack(
        offset, packs=count, length=size, head=head, ahead=-(-max(ahead) // block), axes=walked, row_packs=row_packs,
        low=padded(lows[1:]), high=padded(highs[1:]), lines=ahead, **scalars(p),
    )  # fmt: skip
    constants = {
        "BLOCK": block, "RANK": p.axes.rank_class, "WALK": WALKS[walk], "DENSE": dense, "UNROLL": unroll, "LINE": LINE,
    }  # fmt: skip
    return launch("broadcast", p, vec, offset, ways, params, (-(-count // (block * unroll)), 1), constants)


def walk_of(p: Problem, vec: int, dense: bool) -> str:
    """How packs of the output align with its rows."""
    out = p.args[0]
    if vec == 1 or packable(vec, out.itemsize, out.start, 0, p.axes, inner=p.axes):
        return "whole"
    if not dense:
        return "ragged"
    if len(p.axes.sizes) == 1:
        return "crossing"
    # In short rows of few dims it is cheap to locate each element. With one operand, of four bytes an element or more,
    # reading each pack from two rows costs less than a second loop.
    if p.cols < vec - 1 or (len(p.axes.sizes) == 2 and p.cols < 2 * vec <= 8):
        return "short"
    return "crossing" if p.cols >= 4 * vec and (len(p.args) > 2 or vec > 4) else "narrow"


def lines(p: Problem, lows: list[int], highs: list[int]) -> list[int]:
    """How many cache lines of each operand of the map to prefetch, given their extents: all, if it is reused often and
    the cache holds it, else none."""
    least, most = 2**14, min(AHEAD, p.axes.size * p.args[0].itemsize // 8)
    if most < least:
        return []
    found = []
    for arg, strides, low, high in zip(p.args, p.axes.strides, lows, highs, strict=True):
        count = high - low
        again = arg.value is None and least <= count * arg.itemsize <= most
        full = again and count == math.prod([n for n, s in zip(p.axes.sizes, strides, strict=True) if s])
        found.append(-(-count * arg.itemsize // LINE) if full else 0)
    return found[1:]
