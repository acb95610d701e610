"""Many packs per thread along a dim in which operands repeat: ``broadcast_stepped.cu``."""

from __future__ import annotations

import math

from ..access import PACK, packable
from ..dtypes import BITS
from ..geometry import Axes, contiguous_strides
from ..params import Field, Struct
from ..work import MAX_GRID, Launch
from .launch import TAIL, launch, padded, scalars, way
from .problems import Problem, moved, offset_type, reaches

BLOCK = 256
IN_FLIGHT = 2  # packs in flight per thread
#: Packs of a thread along a dim in which operands repeat, by the bytes that repeat: up to the first limit L1 serves the
#: repeats, beyond the last one not even L2 does. More steps than needed scatter the writes.
STEPS = ((2**17, 1), (2**24, 4), (math.inf, 64))
FEW = 2**18  # fewest threads of a grid whose threads take several packs
TOGETHER = 2**12  # packs of the rows that are taken together, at most, if fewer rows are not whole packs
ROUNDS = 8  # packs of a thread, at most, if each of its elements was located on its own
NARROW = 2  # bytes of an element up to which that pays, if it and those that lie beside it have at most twice as many

PARAMS = Struct(
    "Stepped",
    Field("u32", "packs", "packs of a step"),
    Field("i32", "steps", "the dim's length"),
    Field("i32", "chunk", "steps of a thread"),
    Field("i32", "reserved", "0"),
    Field("Offset", "step[4]", "strides along the dim, of a, b, c, y"),
    Field("Axes<RANK, ARITY + 1, Offset>", "axes", "the other dims, operands a, b, c, y"),
    *TAIL,
)


def along(p: Problem) -> int | None:
    """The outer dim with the most operand reuse, if the packs are whole."""
    out, vec = p.args[0], PACK // p.args[0].itemsize
    if not packable(vec, out.itemsize, out.start, 0, p.axes, inner=p.axes):
        return None
    saved = [repeated(p, d) for d in range(len(p.axes.sizes) - 1)]
    most = max(saved, default=0)
    return saved.index(most) if most > 0 else None


def repeated(p: Problem, dim: int) -> int:
    """Bytes of operands reused at each step along a dim, less those that are loaded anew."""
    total = 0
    for arg, strides in zip(p.args[1:], p.axes.strides[1:], strict=True):
        if arg.value is None:
            inner = zip(p.axes.sizes[dim + 1 :], strides[dim + 1 :], strict=True)
            nbytes = arg.itemsize * math.prod([n for n, s in inner if s])
            total += -nbytes if strides[dim] else nbytes
    return total


def worthwhile(p: Problem, dim: int) -> int:
    """How many steps along a dim a thread should take, as long as threads enough are left; 1: not worthwhile."""
    nbytes = repeated(p, dim)
    return min(next(steps for limit, steps in STEPS if nbytes <= limit), affordable(p))


def affordable(p: Problem) -> int:
    """The most steps of a thread that leave threads enough."""
    return p.axes.size * p.args[0].itemsize // (PACK * FEW)


def together(p: Problem) -> tuple[Problem, Problem | None] | None:
    """The map with as many rows taken together as are whole packs, as steps along a dim in front, and the rows that are
    left. None unless rows are not whole packs, elements are narrow and not converted, and operands repeat along the
    outermost dim or lie beside the output."""
    out, (length, *sizes) = p.args[0], p.axes.sizes
    vec, row = PACK // out.itemsize, math.prod(sizes)
    if not sizes or out.itemsize > NARROW or out.start % PACK or row % vec == 0:
        return None
    least = vec // math.gcd(vec, row)
    rows = least * max(1, TOGETHER * vec // (least * row))
    dense = p.axes.strides[0] == contiguous_strides(p.axes.sizes)
    as_bits = all(arg.ctype == BITS[arg.itemsize] for arg in p.args)
    if not (dense and as_bits) or length < 2 * rows:
        return None
    moving = [k for k in range(1, len(p.args)) if not fixed(p, k)]
    if not all(level(p, k) for k in moving) or sum(p.args[k].itemsize for k in (0, *moving)) > 2 * NARROW:
        return None
    count, rest = divmod(length, rows)
    strides = tuple([(rows * s[0], *s) for s in p.axes.strides])
    whole = p._replace(axes=Axes((count, rows, *sizes), strides))
    if not rest:
        return whole, None
    args = moved(p.args, tuple(count * rows * s[0] for s in p.axes.strides))
    return whole, p._replace(axes=Axes((rest, *sizes), p.axes.strides), args=args)


def fixed(p: Problem, k: int, dim: int = 0) -> bool:
    """Whether an operand repeats along a dim."""
    return p.args[k].value is not None or p.axes.strides[k][dim] == 0


def level(p: Problem, k: int) -> bool:
    """Whether an operand's packs are those of the output."""
    arg, vec = p.args[k], PACK // p.args[0].itemsize
    return p.axes.strides[k] == p.axes.strides[0] and arg.start % min(vec * arg.itemsize, PACK) == 0


def launch_together(p: Problem) -> Launch:
    """A launch for rows that are taken together."""
    ways = [
        "repeated" if p.args[k].value is not None else "scattered" if fixed(p, k) else "packed"
        for k in range(1, len(p.args))
    ]  # fmt: skip
    return launched(p, 0, min(ROUNDS, affordable(p)), ways)


def launch_stepped(p: Problem, dim: int) -> Launch:
    """A launch of ``broadcast_stepped.cu``."""
    vec = PACK // p.args[0].itemsize
    ways = [way(p, k, "whole", vec, shift=False) for k in range(1, len(p.args))]
    return launched(p, dim, worthwhile(p, dim), ways)


def launched(p: Problem, dim: int, steps: int, ways: list[str]) -> Launch:
    """A launch of ``broadcast_stepped.cu``, with so many steps of a thread or, since the grid is short, more."""
    vec = PACK // p.args[0].itemsize
    length = p.axes.sizes[dim]
    steps = min(max(2, steps, -(-length // MAX_GRID[1])), length)
    order = (*range(1, len(p.args)), 0)  # the kernel's order: the output last
    others = [d for d in range(len(p.axes.sizes)) if d != dim]
    walked = Axes(
        tuple(p.axes.sizes[d] for d in others), tuple(tuple(p.axes.strides[k][d] for d in others) for k in order)
    )
    count, offset = walked.size // vec, offset_type(reaches(p))
    params = PARAMS.pack(
        offset, packs=count, steps=length, chunk=steps, reserved=0,
        step=padded([p.axes.strides[k][dim] for k in order]), axes=walked, **scalars(p),
    )  # fmt: skip
    repeat = [fixed(p, k, dim) for k in range(1, len(p.args))]
    constants = {"BLOCK": BLOCK, "RANK": walked.rank_class, "UNROLL": IN_FLIGHT}
    constants |= dict(zip(("FIXED_A", "FIXED_B", "FIXED_C"), (*repeat, True, True), strict=False))
    grid = -(-count // BLOCK), -(-length // steps)
    return launch("broadcast_stepped", p, vec, offset, ways, params, grid, constants)
