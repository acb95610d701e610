"""Planning ``expand`` and ``where``, and every other pass that maps broadcasting operands to one output."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ..plan import (
    BITS,
    CTYPES,
    ITEMSIZE,
    MAX_GRID_X,
    Axes,
    Kernel,
    Launch,
    Operand,
    Plan,
    Shape,
    index_type,
    normalize,
    packable,
)

BLOCK = 256
IN_FLIGHT = 64  # bytes of output that a thread makes: four 16-byte stores
WAYS = {"packed": 0, "repeated": 1, "strided": 2}  # enum Way in broadcast.cu


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


ABSENT = ("u8", b"\0")  # type and value of the operands that a map does not use


@lru_cache(maxsize=4096)
def plan(map_: str, shape: Shape, out: Arg, operands: tuple[Arg, ...], scale: float = 1.0) -> Plan:
    """Plan ``out[i] = map_(*operands[i])`` over ``shape`` with the kernel of ``broadcast.cu``."""
    axes, offsets = normalize(Axes(shape, (out.strides, *(a.strides for a in operands))))
    absent = (Arg("", ABSENT[0], 1, (0,) * len(shape), value=ABSENT[1]),) * (3 - len(operands))
    axes = Axes(axes.sizes, axes.strides + ((0,) * len(axes.sizes),) * len(absent))
    args = (out, *operands, *absent)
    offsets += (0,) * len(absent)

    vec = 16 // out.itemsize
    while vec > 1 and not packable(vec, out.itemsize, start(out, offsets[0]), 0, axes, inner=axes):
        vec //= 2
    if any(axes.inner(k) not in (0, 1) for k in range(1, 4)):
        vec, axes = 1, tiled(axes)
    ways = [way(vec, arg, offsets[k], axes, k) for k, arg in enumerate(args)]
    unroll = max(1, IN_FLIGHT // (vec * out.itemsize)) if vec > 1 else 4
    in_packs = axes.in_packs(vec)
    grid = -(-in_packs.size // (BLOCK * unroll))
    kernel = Kernel(
        "broadcast",
        types=(
            *zip(("Tout", "Ta", "Tb", "Tc"), (arg.ctype for arg in args), strict=True),
            ("Index", index_type(in_packs.size)), ("Map", f"struct {map_}"),
        ),
        constants=(
            *zip(("WAY_OUT", "WAY_A", "WAY_B", "WAY_C"), (WAYS[w] for w in ways), strict=True),
            ("RANK", axes.rank_class), ("VEC", vec), ("UNROLL", unroll), ("BLOCK", BLOCK),
        ),
    )  # fmt: skip
    inner = [axes.inner(k) for k in range(4)]
    params = in_packs.packed() + struct.pack("<q4qd", in_packs.size, *inner, scale)
    params += b"".join((arg.value or b"").ljust(16, b"\0") for arg in args[1:])
    pointers = [
        None if arg.value is not None else Operand(arg.name, arg.offset + offset * arg.itemsize)
        for arg, offset in zip(args, offsets, strict=True)
    ]
    if grid > MAX_GRID_X:
        raise OverflowError(f"{map_}: {axes.size} elements need more than {MAX_GRID_X} blocks")
    return Plan("vectorized", (Launch(kernel, (grid, 1, 1), BLOCK, (*pointers, params)),), in_place=True)


TILE = 32


def tiled(axes: Axes) -> Axes:
    """The same walk in square tiles of the two innermost dims, where they divide.

    An operand that is contiguous along the outer of the two is read a whole line at a time then, from the L1 cache.
    """
    *outer, rows, cols = (1, *axes.sizes)
    if rows % TILE or cols % TILE:
        return axes
    strides = tuple((*s[:-2], s[-2] * TILE, s[-1] * TILE, *s[-2:]) for s in axes.strides)
    return Axes((*outer[1:], rows // TILE, cols // TILE, TILE, TILE), strides)


def start(arg: Arg, offset: int) -> int:
    """The address (modulo 16) from which the walk over an operand starts, ``offset`` elements from its first."""
    return arg.pointer + arg.offset + offset * arg.itemsize


def way(vec: int, arg: Arg, offset: int, axes: Axes, operand: int) -> str:
    """How the kernel reaches an operand along the innermost dim."""
    if axes.inner(operand) == 0:
        return "repeated"
    if vec > 1 and packable(vec, arg.itemsize, start(arg, offset), operand, axes, inner=axes):
        return "packed"
    return "strided"


# -------------------------------------------------------------------------------- the first rung: ElementwiseKernel


class Elementwise(NamedTuple):
    """One call of CuPy's ``ElementwiseKernel``: flat output index to input indices by div and mod over the dims.

    Arrays are passed as bits of their item size, so that no dtype needs CuPy's support.
    """

    name: str
    in_params: str
    out_params: str
    operation: str
    arrays: tuple[tuple[Operand, int], ...]  # operand and item size, the output last
    scalars: tuple[int, ...]
    size: int

    def run(self, device, arrays) -> None:
        """Launch it on a device."""
        device.elementwise(self, arrays)


@lru_cache(maxsize=1024)
def plan_elementwise(map_: str, shape: Shape, out: Arg, operands: tuple[Arg, ...]) -> Plan:
    """Plan the same map as one ``ElementwiseKernel`` over the flat output index."""
    axes, offsets = normalize(Axes(shape, (out.strides, *(a.strides for a in operands))))
    args = (out, *operands)
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
        name: f"(({'' if name == 'y' else 'const '}gpuops::{arg.ctype}*)&{name}[0])[{name}_at]"
        for name, arg in zip(letters, args, strict=True)
    }
    target = f"gpuops::convert<gpuops::{out.ctype}>"
    if map_ == "Expand":
        lines.append(f"{load['y']} = {target}({load['a']});")
    else:
        lines.append(f"{load['y']} = gpuops::nonzero({load['a']}) ? {target}({load['b']}) : {target}({load['c']});")
    inputs = [f"raw {t} {name}" for t, name in zip("ABC", letters[1:], strict=False)]
    step = Elementwise(
        name=f"gpuops_{map_.lower()}_elementwise",
        in_params=", ".join(inputs + dims),
        out_params="raw Y y",
        operation="\n".join(lines),
        arrays=tuple((Operand(arg.name), arg.itemsize) for arg in (*operands, out)),
        scalars=(*axes.sizes, *(s for k in range(len(args)) for s in axes.strides[k]), *offsets),
        size=axes.size,
    )
    return Plan("elementwise", (step,), in_place=True)


#: The strategies of expand and where, and what plans each; None is the choice for callers who name none.
PLANNERS = {None: plan, "vectorized": plan, "elementwise": plan_elementwise}


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
