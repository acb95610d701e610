"""Planning ``expand`` and ``where``, and every other pass that maps broadcasting operands to one output."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..errors import error
from .dtypes import BITS, CTYPES, ITEMSIZE
from .geometry import Axes, Shape, broadcast_strides, contiguous_strides, divisor, integers, normalize, packable
from .work import MAX_GRID, ArraySpec, Kernel, Launch, Operand, Plan, Step, check_grid

BLOCK = 256  # threads
FLAT_BLOCK = {1: 256, 2: 128, 3: 128}  # of broadcast.cu, by operands of the map
PACK = 16  # bytes of output that a thread writes at once
IN_FLIGHT = 2  # packs that a thread makes, where there are many
FEW = 2**18  # packs from which on it does: fewer are spread over as many threads
#: How many packs a thread makes along a dim in which operands repeat, by the bytes that repeat: fewer come from the
#: nearest cache again, more are beyond the farthest one. More steps than needed scatter what is written.
STEPS = ((2**17, 1), (2**24, 4), (math.inf, 64))
HALVES = {BITS[8]: "split64", BITS[16]: "split128"}  # types of the same size at half the alignment
LINE = 128  # bytes of a cache line
AHEAD = 2**24  # bytes of an operand that are fetched ahead, at most
MOST = 2**30  # elements of one launch, so that 32-bit indices do
SECTOR = 32  # bytes that memory delivers at once: elements this far apart waste the rest of it
SIDE = 16  # dims shorter than this are no side of a tile
SHARED = 48 * 1024  # bytes of shared memory that every GPU gives a block
TILES = {1: 128, 2: 64, 4: 64, 8: 32, 16: 32}  # side of a tile, by bytes of an element
WAYS = {"packed": 0, "shifted": 1, "reversed": 2, "repeated": 3, "strided": 4, "tiled": 5}  # enum Way in broadcast.cuh
WALKS = {"whole": 0, "crossing": 1, "narrow": 2, "short": 3, "peeled": 4}  # enum Walk in broadcast.cu


class Arg(NamedTuple):
    """One operand of a map: an array (element type, size in bytes, strides over the output's shape, its address modulo
    16, and the bytes from there to the first element), or a scalar given by the bytes of its ``value``."""

    name: str
    ctype: str
    itemsize: int
    strides: Shape
    pointer: int = 0
    value: bytes | None = None
    offset: int = 0

    @property
    def start(self) -> int:
        """The address of the first element, modulo 16."""
        return (self.pointer + self.offset) % 16

    @property
    def aligned(self) -> bool:
        """Whether the elements lie at multiples of their size, as those of a complex view of a real array may not."""
        return self.value is not None or self.start % self.itemsize == 0


def argument(spec: ArraySpec, ctype: str, shape: Shape) -> Arg:
    """An operand that broadcasts to the output's shape."""
    itemsize = spec.dtype.itemsize
    if spec.value is not None:
        return Arg(spec.name, ctype, itemsize, (0,) * len(shape), value=spec.value)
    strides = broadcast_strides(spec.shape, spec.steps, shape)
    return Arg(spec.name, ctype, itemsize, strides, (spec.start - spec.offset) % 16, offset=spec.offset)


class Problem(NamedTuple):
    """A map in normal form: the dims, and the output and the operands whose ``offset`` is where the walk starts."""

    map_: str
    axes: Axes  # operands out, then the map's
    args: tuple[Arg, ...]
    scale: float

    @property
    def cols(self) -> int:
        """The length of the innermost dim."""
        return self.axes.sizes[-1]


def problem(map_: str, shape: Shape, out: Arg, operands: tuple[Arg, ...], scale: float) -> Problem:
    """The normal form of ``out[i] = map_(*operands[i])`` over ``shape``."""
    args = (out, *operands)
    axes, offsets = normalize(Axes(shape, tuple([arg.strides for arg in args])))
    if not axes.sizes:
        axes = Axes((1,), ((1,),) * len(args))
    return Problem(map_, axes, moved(args, offsets), scale)


def moved(args: tuple[Arg, ...], offsets: Shape) -> tuple[Arg, ...]:
    """The operands, each so many elements further on."""
    if not any(offsets):
        return args
    return tuple(
        arg._replace(offset=arg.offset + offset * arg.itemsize) for arg, offset in zip(args, offsets, strict=True)
    )


def pieces(p: Problem) -> list[Problem]:
    """The map in pieces of at most ``MOST`` elements."""
    if p.axes.size <= MOST:
        return [p]
    found = []
    outer, *inner = p.axes.sizes
    step = max(1, MOST * outer // p.axes.size)
    for i in range(0, outer, step):
        sizes, strides = (min(step, outer - i), *inner), p.axes.strides
        if sizes[0] == 1 and inner:
            sizes, strides = tuple(inner), tuple(s[1:] for s in strides)
        args = moved(p.args, tuple(i * s[0] for s in p.axes.strides))
        found += pieces(p._replace(axes=Axes(sizes, strides), args=args))
    return found


@lru_cache(maxsize=4096)
def plan(
    map_: str, shape: Shape, out: Arg, operands: tuple[Arg, ...], strategy: str | None = None, scale: float = 1.0
) -> Plan:
    """Plan ``out[i] = map_(*operands[i])`` over ``shape``."""
    p = problem(map_, shape, *in_halves(map_, out, operands), scale)
    strategy = strategy or choose(p)
    return Plan(strategy, STRATEGIES[strategy](p), in_place=True)


def in_halves(map_: str, out: Arg, operands: tuple[Arg, ...]) -> tuple[Arg, tuple[Arg, ...]]:
    """The same, with elements that are moved as bits in two halves if not all of them are aligned."""
    if out.ctype not in HALVES:
        return out, operands
    condition, values = (operands[:1], operands[1:]) if map_ == "Where" else ((), operands)
    if not all([arg.aligned for arg in (out, *values)]):
        out, *values_ = (arg._replace(ctype=HALVES[arg.ctype]) for arg in (out, *values))
        return out, (*condition, *values_)
    return out, operands


def choose(p: Problem) -> str:
    """The strategy for callers who name none."""
    if len(p.axes.sizes) == 1:  # there is no other to repeat along, or to lie across
        return "vectorized"
    if across(p) is not None:
        return "tiled"
    dim = along(p) if affordable(p) > 1 else None
    return "vectorized" if dim is None or worthwhile(p, dim) < 2 else "stepped"


def plan_vectorized(p: Problem) -> tuple[Launch, ...]:
    """Packs of 16 bytes."""
    return tuple(map(packs, pieces(p)))


def plan_collapsed(p: Problem) -> tuple[Launch, ...]:
    """Single elements, over the same collapsed dims."""
    return tuple(flat(piece, 1) for piece in pieces(p))


def plan_stepped(p: Problem) -> tuple[Launch, ...]:
    """Packs of 16 bytes, many of them along a dim in which operands repeat."""
    if along(p) is None:
        rule = "takes an operand that repeats along an outer dim, and whole packs of 16 bytes"
        raise error(ValueError, p.map_.lower(), f"strategy 'stepped' {rule}")
    return tuple(packs(q) if (dim := along(q)) is None else stepped(q, dim) for q in pieces(p))


def plan_tiled(p: Problem) -> tuple[Launch, ...]:
    """Tiles through shared memory."""
    if across(p) is None:
        rule = "takes an operand that is contiguous along another dim than the result"
        raise error(ValueError, p.map_.lower(), f"strategy 'tiled' {rule}")
    return tuple(packs(q) if (dim := across(q)) is None else tiled(q, dim) for q in pieces(p))


# --------------------------------------------------------------------------------------------- packs: broadcast.cu


def packs(p: Problem) -> Launch:
    """A launch with packs of 16 bytes."""
    return flat(p, PACK // p.args[0].itemsize)


def flat(p: Problem, vec: int) -> Launch:
    """A launch of ``broadcast.cu`` with packs of at most ``vec`` elements."""
    out, size = p.args[0], p.axes.size
    dense = p.axes.strides[0] == contiguous_strides(p.axes.sizes)
    if p.axes.inner(0) != 1 or not out.aligned:
        vec = 1
    walk = walk_of(p, vec, dense)
    if walk in ("narrow", "short") and vec > 2 and walk_of(p, vec // 2, dense) == "whole":
        walk, vec = "whole", vec // 2  # half as wide, but simple
    if walk == "peeled" and p.cols < 2 * vec:
        walk, vec = "whole", 1
    head = 0 if walk == "whole" else out.start % (vec * out.itemsize) // out.itemsize
    row_packs = -(-(p.cols + vec - 1) // vec)
    count = size // p.cols * row_packs if walk == "peeled" else -(-(size + head) // vec)
    unroll, block = 1 if count < FEW else IN_FLIGHT, FLAT_BLOCK[len(p.args) - 1]
    ways = [way(p, k, walk, vec, head) for k in range(1, len(p.args))]
    if unroll > 1 and vec == PACK and ways == ["repeated"]:
        unroll *= 2  # a single byte's pack is made at once
    walked = Axes(p.axes.sizes, p.axes.strides[1:] if dense else (*p.axes.strides[1:], p.axes.strides[0]))
    lows, highs = reached = reaches(p)
    offset, ahead = offset_type(reached), padded(lines(p, lows, highs))
    params = struct.pack("<4i", count, size, head, -(-max(ahead) // block)) + walked.packed(offset)
    params += divisor(row_packs) + integers(offset, *padded(lows[1:]), *padded(highs[1:]))
    params += struct.pack("<4i", *ahead)
    return launch(
        "broadcast", p, vec, offset, ways, params, (-(-count // (block * unroll)),), block,
        RANK=p.axes.rank_class, WALK=WALKS[walk], DENSE=dense, UNROLL=unroll, LINE=LINE,
    )  # fmt: skip


def walk_of(p: Problem, vec: int, dense: bool) -> str:
    """How packs of the output lie to its rows."""
    out = p.args[0]
    if vec == 1 or packable(vec, out.itemsize, out.start, 0, p.axes, inner=p.axes):
        return "whole"
    if not dense:
        return "peeled"
    if len(p.axes.sizes) == 1:
        return "crossing"
    # The shorter the row and the fewer the dims, the cheaper to locate each element; with one operand, of four bytes an
    # element or more, a pack is read from two rows for less than a second loop costs.
    if p.cols < vec - 1 or (len(p.axes.sizes) == 2 and p.cols < 2 * vec <= 8):
        return "short"
    return "crossing" if p.cols >= 4 * vec and (len(p.args) > 2 or vec > 4) else "narrow"


def way(p: Problem, k: int, walk: str, vec: int, head: int = 0, shift: bool = True) -> str:
    """How the kernel reaches an operand along the innermost dim; ``shift`` is whether it may by funnel shifts."""
    arg, inner = p.args[k], p.axes.inner(k)
    if (arg.value is not None or inner == 0 or vec == 1) and walk != "short":
        return "repeated"
    if walk == "whole":
        in_step = packable(vec, arg.itemsize, arg.start, k, p.axes, inner=p.axes)
    else:  # its packs must begin where the output's do
        ours, outs = p.axes.strides[k], p.axes.strides[0]
        level = all((s - o) % vec == 0 for s, o in zip(ours, outs, strict=True)) if walk == "peeled" else ours == outs
        in_step = inner == 1 and level and (arg.start - head * arg.itemsize) % min(vec * arg.itemsize, PACK) == 0
    if in_step:
        return "packed"
    if shift and walk != "short" and abs(inner) == 1 and arg.itemsize < 4 <= vec * arg.itemsize <= PACK:
        return "shifted" if inner == 1 else "reversed"
    return "strided"


def lines(p: Problem, lows: list[int], highs: list[int]) -> list[int]:
    """How many cache lines of each operand of the map, given what all reach, to fetch ahead: all, if it is read again
    and again and the cache holds it."""
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


def reaches(p: Problem) -> tuple[list[int], list[int]]:
    """Each operand's lowest element, and the one after its highest, counted from where the walk starts."""
    lows, highs = [], []
    for strides in p.axes.strides:
        low, high = 0, 1
        for n, s in zip(p.axes.sizes, strides, strict=True):
            if s > 0:
                high += (n - 1) * s
            else:
                low += (n - 1) * s
        lows.append(low)
        highs.append(high)
    return lows, highs


def offset_type(reached: tuple[list[int], list[int]]) -> str:
    """32-bit offsets where every element is that near."""
    lows, highs = reached
    return "i32" if max(*highs, -min(lows)) < 2**31 - 2**10 else "i64"


def padded(values: Sequence[int]) -> list[int]:
    """The values of a map's operands, in an array that has room for four."""
    return [*values, *(0,) * (4 - len(values))]


ABSENT = Arg("", "u8", 1, (), value=b"\0")  # in place of the operands that a map does not take


def launch(
    name: str, p: Problem, vec: int, offset: str, ways: list[str], params: bytes, grid: Shape, block: int,
    **constants: int
) -> Launch:  # fmt: skip
    """A launch of a map's kernel; its scale and the values of scalar operands follow ``params``."""
    args = (*p.args, *(ABSENT,) * (4 - len(p.args)))
    out, a, b, c = args
    way_a, way_b, way_c = (*ways, *("repeated",) * (3 - len(ways)))
    kernel = Kernel(
        name,
        types=(
            ("Tout", out.ctype), ("Ta", a.ctype), ("Tb", b.ctype), ("Tc", c.ctype), ("Offset", offset),
            ("Map", f"struct {p.map_}"),
        ),
        constants=(
            ("ARITY", len(p.args) - 1), ("VEC", vec), ("BLOCK", block),
            ("WAY_A", WAYS[way_a]), ("WAY_B", WAYS[way_b]), ("WAY_C", WAYS[way_c]), *constants.items(),
        ),
    )  # fmt: skip
    params += struct.pack("<d16s16s16s", p.scale, a.value or b"", b.value or b"", c.value or b"")
    pointers = [Operand(arg.name, arg.offset) if arg.value is None else None for arg in args]
    size = f"{p.axes.size} elements"
    return Launch(kernel, check_grid(p.map_.lower(), f"{name}.cu", grid, size), block, (*pointers, params))


# ---------------------------------------------------------------------------------------- steps: broadcast_stepped.cu


def along(p: Problem) -> int | None:
    """The outer dim along which most bytes of operands come again, if the packs are whole."""
    out, vec = p.args[0], PACK // p.args[0].itemsize
    if not packable(vec, out.itemsize, out.start, 0, p.axes, inner=p.axes):
        return None
    saved = [repeated(p, d) for d in range(len(p.axes.sizes) - 1)]
    most = max(saved, default=0)
    return saved.index(most) if most > 0 else None


def repeated(p: Problem, dim: int) -> int:
    """The bytes of operands that come again at each step along a dim, less those that come anew."""
    total = 0
    for arg, strides in zip(p.args[1:], p.axes.strides[1:], strict=True):
        if arg.value is None:
            inner = zip(p.axes.sizes[dim + 1 :], strides[dim + 1 :], strict=True)
            nbytes = arg.itemsize * math.prod([n for n, s in inner if s])
            total += -nbytes if strides[dim] else nbytes
    return total


def worthwhile(p: Problem, dim: int) -> int:
    """How many steps along a dim a thread should take, if that leaves threads enough; 1 is not worth it."""
    nbytes = repeated(p, dim)
    return min(next(steps for limit, steps in STEPS if nbytes <= limit), affordable(p))


def affordable(p: Problem) -> int:
    """How many steps a thread can take at most, so that threads enough are left."""
    return p.axes.size * p.args[0].itemsize // (PACK * FEW)


def stepped(p: Problem, dim: int) -> Launch:
    """A launch of ``broadcast_stepped.cu``."""
    vec = PACK // p.args[0].itemsize
    length = p.axes.sizes[dim]
    steps = min(max(2, worthwhile(p, dim), -(-length // MAX_GRID[1])), length)  # the grid is short along the dim
    order = (*range(1, len(p.args)), 0)  # the kernel's: the output comes last
    others = [d for d in range(len(p.axes.sizes)) if d != dim]
    walked = Axes(
        tuple(p.axes.sizes[d] for d in others), tuple(tuple(p.axes.strides[k][d] for d in others) for k in order)
    )
    count, offset = walked.size // vec, offset_type(reaches(p))
    params = struct.pack("<4i", count, p.axes.sizes[dim], steps, 0)
    params += integers(offset, *padded([p.axes.strides[k][dim] for k in order])) + walked.packed(offset)
    fixed = [not p.axes.strides[k][dim] for k in range(1, len(p.args))]
    ways = [way(p, k, "whole", vec, shift=False) for k in range(1, len(p.args))]
    return launch(
        "broadcast_stepped", p, vec, offset, ways, params,
        (-(-count // BLOCK), -(-p.axes.sizes[dim] // steps)), BLOCK, RANK=walked.rank_class, UNROLL=IN_FLIGHT,
        **dict(zip(("FIXED_A", "FIXED_B", "FIXED_C"), (*fixed, True, True), strict=False)),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- tiles: broadcast_tiled.cu


def across(p: Problem) -> int | None:
    """The dim along which operands are read into tiles: the one where those lie closest that are far apart along the
    innermost dim. None if there is no such operand."""
    votes: dict[int, int] = {}
    for k in range(1, len(p.args)):
        if (dim := closest(p, k)) is not None:
            votes[dim] = votes.get(dim, 0) + p.args[k].itemsize
    return max(votes, key=lambda dim: votes[dim]) if votes else None


def closest(p: Problem, k: int) -> int | None:
    """The dim that an operand is to be read along, if that is another than the innermost one."""
    strides, itemsize = p.axes.strides[k], p.args[k].itemsize
    if abs(strides[-1]) * itemsize < SECTOR or p.cols < SIDE:
        return None
    dims = [d for d, s in enumerate(strides) if s and p.axes.sizes[d] >= SIDE]
    dim = min(dims, key=lambda d: abs(strides[d]))
    return dim if abs(strides[dim]) * itemsize < SECTOR else None


def tiled(p: Problem, dim: int) -> Launch:
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
    while sum(tile_bytes(side, itemsize) for itemsize in staged) > SHARED:
        side //= 2
    block = BLOCK if side * side * out.itemsize < 2 * BLOCK * PACK else 2 * BLOCK
    rows, cols = p.axes.sizes[dim], p.cols
    tile_rows, tile_cols = -(-rows // side), -(-cols // side)
    order = (*range(1, len(p.args)), 0)  # the kernel's: the output comes last
    outer = [d for d in range(len(p.axes.sizes) - 1) if d != dim]
    strides = tuple(tuple(p.axes.strides[k][d] for d in outer) for k in order)
    walked = Axes(tuple(p.axes.sizes[d] for d in outer), strides)
    offset = offset_type(reaches(p))
    params = divisor(tile_cols) + divisor(tile_rows) + struct.pack("<2i", cols, rows)
    params += struct.pack("<4i", *padded([wide(p, k, dim) for k in range(1, len(p.args))]))
    params += integers(offset, *padded([p.axes.inner(k) for k in order]))
    params += integers(offset, *padded([p.axes.strides[k][dim] for k in order])) + walked.packed(offset)
    return launch(
        "broadcast_tiled", p, vec, offset, ways, params, (walked.size * tile_rows * tile_cols,), block,
        RANK=walked.rank_class, TILE=side,
    )  # fmt: skip


def tile_bytes(side: int, itemsize: int) -> int:
    """Shared memory that a tile takes: rows of words of at least four bytes, and one more word for each row."""
    word = max(4, itemsize)
    return side * (side * itemsize + word)


def wide(p: Problem, k: int, dim: int) -> bool:
    """Whether small elements may be read four bytes at a time along a dim."""
    arg = p.args[k]
    items = 4 // arg.itemsize
    others = [s for d, s in enumerate(p.axes.strides[k]) if d != dim]
    return items > 1 and p.axes.strides[k][dim] == 1 and arg.start % 4 == 0 and all(s % items == 0 for s in others)


# -------------------------------------------------------------------------------- the first rung: ElementwiseKernel


class Elementwise(NamedTuple):
    """One call of CuPy's ``ElementwiseKernel``: flat output index to input indices by div and mod over the dims.

    Elements are passed as unsigned integers of their alignment, so that no dtype needs CuPy's support.
    """

    name: str
    in_params: str
    out_params: str
    operation: str
    operands: tuple[tuple[Operand | bytes, int], ...]  # an array, or a scalar's bytes, and its alignment; output last
    scalars: tuple[int, ...]
    size: int

    def ready(self, device: Any, places: dict[str, int]) -> Step:
        return device.elementwise(self, places)


#: NumPy's types of so many bytes, in which ``ElementwiseKernel`` takes scalars.
ELEMENTWISE_TYPES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


def plan_elementwise(p: Problem) -> tuple[Elementwise, ...]:
    """The whole map as one ``ElementwiseKernel`` over the flat output index."""
    axes, args = p.axes, p.args
    letters = "yabc"[: len(args)]
    rank = len(axes.sizes)
    dims = [f"int64 n{d}" for d in range(rank)]
    dims += [f"int64 {name}{d}" for name in letters for d in range(rank)]
    dims += [f"int64 {name}_start" for name in letters]
    lines = ["long long rest = i;", *(f"long long {name}_at = {name}_start;" for name in letters)]
    for d in reversed(range(rank)):
        lines.append(f"long long i{d} = rest % n{d}; rest /= n{d};")
        lines += [f"{name}_at += i{d} * {name}{d};" for name in letters]
    load = {
        name: f"(*(const gpuops::{arg.ctype}*)&{name})"
        if arg.value is not None
        else f"(({'' if name == 'y' else 'const '}gpuops::{arg.ctype}*)&{name}[0])[{name}_at]"
        for name, arg in zip(letters, args, strict=True)
    }
    target = f"gpuops::convert<gpuops::{args[0].ctype}>"
    if p.map_ == "Expand":
        lines.append(f"{load['y']} = {target}({load['a']});")
    else:
        lines.append(f"{load['y']} = gpuops::nonzero({load['a']}) ? {target}({load['b']}) : {target}({load['c']});")
    inputs = [
        f"raw {t} {name}" if arg.value is None else f"{ELEMENTWISE_TYPES[arg.itemsize]} {name}"
        for t, name, arg in zip("ABC", letters[1:], args[1:], strict=False)
    ]
    step = Elementwise(
        name=f"gpuops_{p.map_.lower()}_elementwise",
        in_params=", ".join(inputs + dims),
        out_params="raw Y y",
        operation="\n".join(lines),
        operands=tuple(
            (Operand(arg.name) if arg.value is None else arg.value, arg.itemsize if arg.aligned else arg.itemsize // 2)
            for arg in (*args[1:], args[0])
        ),
        scalars=(
            *axes.sizes, *(s for strides in axes.strides for s in strides),
            *(arg.offset // arg.itemsize for arg in args),
        ),
        size=axes.size,
    )  # fmt: skip
    return (step,)


#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[[Problem], tuple[Any, ...]]] = {
    "elementwise": plan_elementwise,
    "collapsed": plan_collapsed,
    "vectorized": plan_vectorized,
    "stepped": plan_stepped,
    "tiled": plan_tiled,
}


def element_types(out: str, moved: Sequence[str]) -> tuple[str, ...]:
    """Element types of the output and the operands moved to it, given by dtype name.

    Bits of the item size when nothing is converted, so that one kernel serves every dtype of that size.
    """
    names = (out, *moved)
    if set(names) == {out}:
        return (BITS[ITEMSIZE[out]],) * len(names)
    return tuple(CTYPES[name] for name in names)


def condition_type(name: str) -> str:
    """Element type of a condition: integers are true when any bit is set, floats have a -0.0."""
    return BITS[ITEMSIZE[name]] if name.startswith(("bool", "int", "uint")) else CTYPES[name]
