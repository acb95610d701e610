"""A map in normal form: one output, and operands that broadcast to it."""

from collections.abc import Sequence
from typing import NamedTuple

from ..dtypes import BITS, CTYPES, ITEMSIZE
from ..geometry import Axes, Shape, broadcast_strides, normalize
from ..work import ArraySpec

HALVES = {BITS[8]: "split64", BITS[16]: "split128"}  # types of the same size at half the alignment
MOST = 2**30  # most elements of a launch, so that 32-bit indices suffice


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
        """Whether elements are aligned to their size, which those of a complex view of a real array need not be."""
        return self.value is not None or self.start % self.itemsize == 0


def argument(spec: ArraySpec, ctype: str, shape: Shape) -> Arg:
    """An operand that broadcasts to the output's shape."""
    itemsize = spec.dtype.itemsize
    if spec.value is not None:
        return Arg(spec.name, ctype, itemsize, (0,) * len(shape), value=spec.value)
    strides = broadcast_strides(spec.shape, spec.steps, shape)
    return Arg(spec.name, ctype, itemsize, strides, (spec.start - spec.offset) % 16, offset=spec.offset)


class Problem(NamedTuple):
    """A map in normal form: the dims, and the output and operands, whose ``offset`` includes that of the flips."""

    map_: str
    axes: Axes  # operands out, then the map's
    args: tuple[Arg, ...]
    option: float

    @property
    def cols(self) -> int:
        """The length of the innermost dim."""
        return self.axes.sizes[-1]


def problem(map_: str, shape: Shape, out: Arg, operands: tuple[Arg, ...], option: float) -> Problem:
    """The normal form of ``out[i] = map_(*operands[i])`` over ``shape``."""
    args = (out, *operands)
    axes, offsets = normalize(Axes(shape, tuple([arg.strides for arg in args])))
    if not axes.sizes:
        axes = Axes((1,), ((1,),) * len(args))
    return Problem(map_, axes, moved(args, offsets), option)


def moved(args: tuple[Arg, ...], offsets: Shape) -> tuple[Arg, ...]:
    """The operands, each moved by an offset in elements."""
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


def in_halves(map_: str, out: Arg, operands: tuple[Arg, ...]) -> tuple[Arg, tuple[Arg, ...]]:
    """The same operands; if some are not aligned, elements that are moved as bits become two halves."""
    if out.ctype not in HALVES:
        return out, operands
    condition, values = (operands[:1], operands[1:]) if map_ == "Where" else ((), operands)
    if not all([arg.aligned for arg in (out, *values)]):
        out, *values_ = (arg._replace(ctype=HALVES[arg.ctype]) for arg in (out, *values))
        return out, (*condition, *values_)
    return out, operands


def reaches(p: Problem) -> tuple[list[int], list[int]]:
    """Each operand's lowest element, and the one after its highest, relative to its first."""
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
    """32-bit offsets where they reach every element."""
    lows, highs = reached
    return "i32" if max(*highs, -min(lows)) < 2**31 - 2**10 else "i64"


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
