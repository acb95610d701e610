"""Shapes, strides and axes in; frozen, printable plans out. Pure Python: nothing here knows a GPU or CuPy.

A call is planned in two steps. *Geometry* (this module) brings the operands' dims into a normal form: size-1 dims
dropped, negative strides flipped, dims sorted so that the innermost is the one with the smallest stride, neighbours
merged wherever every operand allows it. The family's planner (``gpuops/kernels/*.py``) then chooses a kernel for that
normal form and fills in its parameters. All strides here count elements, not bytes.
"""

from __future__ import annotations

import math
import operator
import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from .errors import error

Shape = tuple[int, ...]
Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

#: dtypes that the kernels know, by NumPy's name, with their name in ``kernels/types.cuh``.
CTYPES = {
    "bool": "b8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip

#: Bytes of an element, by dtype name.
ITEMSIZE = {name: 2 if name == "bfloat16" else np.dtype(name).itemsize for name in CTYPES}

#: Types that move bits and compute nothing, by item size.
BITS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "bits128"}

RANKS = (1, 2, 3, 4, 6, 12, 32)  # the rank classes that kernels are compiled for
MAX_RANK = RANKS[-1]
MAX_GRID = (2**31 - 1, 2**16 - 1, 2**16 - 1)  # blocks of a launch, by dim

# Scratch: memory of its own that a stream's launches may use. Tickets count blocks that have arrived, at barriers they
# wait for each other (8 bytes each), partials are what they tell each other.
SCRATCH = 2**20  # bytes in all
TICKETS = 4096
BARRIERS = 1024
MEETINGS = 8 * TICKETS  # where barriers begin, in bytes
PARTIALS = MEETINGS + 8 * BARRIERS  # and where partials do


# ---------------------------------------------------------------------------------------------------------- axes


class Axes(NamedTuple):
    """Dims that a flat index runs over, outermost first, with each operand's strides in elements."""

    sizes: Shape
    strides: tuple[Shape, ...]

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    @property
    def rank_class(self) -> int:
        """The smallest rank that kernels are compiled for and that holds these dims."""
        return RANKS[bisect_left(RANKS, len(self.sizes))]

    def inner(self, operand: int) -> int:
        """The innermost stride of an operand, 0 without dims."""
        return self.strides[operand][-1] if self.sizes else 0

    def in_packs(self, vec: int) -> Axes:
        """The same walk in steps of ``vec`` elements along the innermost dim."""
        if vec == 1:
            return self
        return Axes(
            (*self.sizes[:-1], self.sizes[-1] // vec),
            tuple([(*s[:-1], s[-1] * vec) for s in self.strides]),
        )

    def packed(self, offset: str = "i64") -> bytes:
        """The bytes of ``struct Axes`` in ``kernels/axes.cuh``, with strides of a 32- or 64-bit type."""
        pad = self.rank_class - len(self.sizes)
        ones, zeros = (1,) * pad, (0,) * pad
        strides: Shape = ()
        for operand in self.strides:
            strides += zeros + operand
        return b"".join(map(divisor, ones + self.sizes)) + integers(offset, *strides)


@lru_cache(maxsize=1024)
def divisor(value: int) -> bytes:
    """The bytes of ``struct Divisor``: the value and the multiplier and shift that divide n < 2**31 by it."""
    shift = (value - 1).bit_length()
    magic = ((1 << 32) * ((1 << shift) - value) // value + 1) % 2**32
    return struct.pack("<QII", value, magic, shift)


def integers(ctype: str, *values: int) -> bytes:
    """The bytes of an array of ``i32`` or ``i64`` (in a struct: filled up to a multiple of 8)."""
    count = len(values)
    return struct.pack(f"<{count}i{count % 2 * 4}x" if ctype == "i32" else f"<{count}q", *values)


def accumulator(val: str) -> str:
    """The dtype in which values of a dtype are added up: float32 for the half types.

    >>> accumulator("bfloat16"), accumulator("int8")
    ('float32', 'int8')
    """
    return "float32" if val in ("float16", "bfloat16") else val


def index_type(*counts: int) -> str:
    """32-bit indices where every count allows them; ``Divisor`` is exact below 2**31."""
    return "u32" if max(counts) < 2**31 else "i64"


def reaches(*groups: Axes) -> list[int]:
    """How far the last element of each of the first group's operands may lie from its first, in elements; the other
    groups need not have all of them.

    >>> reaches(Axes((2, 3), ((-3, 1),)), Axes((4,), ((6,),)))
    [23]
    """
    far = [0] * len(groups[0].strides)
    for sizes, operands in groups:
        for operand, strides in enumerate(operands):
            for n, s in zip(sizes, strides, strict=True):
                far[operand] += (n - 1) * abs(s)
    return far


def offset_type(far: Iterable[int]) -> str:
    """32-bit offsets where no operand reaches further."""
    return "i32" if max(far) < 2**31 - 2**10 else "i64"


def normalize(axes: Axes) -> tuple[Axes, Shape]:
    """Axes in normal form, and how far each operand's first element moves (in elements) by the flips.

    The first operand leads: its strides (then the next's, …) order the dims and tell which dims to flip. A dim in
    which it broadcasts goes outermost, so that the innermost dim is one that it really moves along.

    >>> normalize(Axes((2, 3, 4), ((12, 4, 1), (0, 4, 1))))
    (Axes(sizes=(2, 12), strides=((12, 1), (0, 1))), (0, 0))
    >>> normalize(Axes((5, 4), ((-4, -1),)))
    (Axes(sizes=(20,), strides=((1,),)), (-19,))
    """
    offsets = (0,) * len(axes.strides)
    if len({*axes.strides}) == 1 and axes.strides[0] == contiguous_strides(axes.sizes):  # one run of all operands
        n = math.prod(axes.sizes)
        return Axes((n,), ((1,),) * len(offsets)) if n != 1 else Axes((), ((),) * len(offsets)), offsets
    return normal_form(zip(axes.sizes, *axes.strides, strict=True), len(axes.strides))


def normal_form(dims: Iterable[Shape], operands: int) -> tuple[Axes, Shape]:
    """What `normalize` gives for dims as tuples: the size, then the stride of each operand."""
    dims = [dim for dim in dims if dim[0] != 1]
    offsets = (0,) * operands
    if not dims:
        return Axes((), ((),) * operands), offsets
    for d, (n, *strides) in enumerate(dims):
        if min(strides) < 0 and backwards(strides):
            offsets = tuple([o + (n - 1) * s for o, s in zip(offsets, strides, strict=True)])
            dims[d] = (n, *[-s for s in strides])
    if len(dims) > 1:
        dims.sort(key=lambda dim: [-abs(s) if s else -math.inf for s in dim[1:]])
        merged = dims[:1]
        for dim in dims[1:]:
            n, outer = dim[0], merged[-1]
            if outer[1:] == tuple([n * s for s in dim[1:]]):
                merged[-1] = (outer[0] * n, *dim[1:])
            else:
                merged.append(dim)
        dims = merged
    sizes, *columns = zip(*dims, strict=True)
    return Axes(sizes, tuple(columns)), offsets


def backwards(strides: Iterable[int]) -> bool:
    """Whether the first operand that a dim moves goes backwards along it."""
    for stride in strides:
        if stride:
            return stride < 0
    return False


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """C-order strides in elements.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return tuple(strides)


def like_strides(shape: Shape, strides: Shape) -> Shape:
    """Strides of a dense array of ``shape`` whose dims lie in memory in the order of ``strides`` (NumPy's order K).

    >>> like_strides((2, 3), (1, 2)), like_strides((2, 3), (-3, 1))
    ((1, 2), (3, 1))
    """
    out = [0] * len(shape)
    step = 1
    for d in sorted(range(len(shape)), key=lambda d: (abs(strides[d]) if shape[d] > 1 else 0, -d)):
        out[d] = step
        step *= max(shape[d], 1)
    return tuple(out)


def broadcast_strides(shape: Shape, strides: Shape, to: Shape) -> Shape:
    """The strides with which an operand of ``shape`` walks the broadcast shape ``to``.

    >>> broadcast_strides((3, 1), (1, 1), (2, 3, 4))
    (0, 1, 0)
    """
    kept = strides if 1 not in shape else tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=True)])
    return (0,) * (len(to) - len(shape)) + kept


def packable(vec: int, itemsize: int, pointer: int, operand: int, *groups: Axes, inner: Axes) -> bool:
    """Whether an operand may be read ``vec`` elements at a time along the innermost dim of ``inner``.

    ``pointer`` is the address of its first element; ``groups`` are all the axes it moves along.
    """
    width = min(vec * itemsize, 16)
    if inner.inner(operand) != 1 or inner.sizes[-1] % vec or pointer % width:
        return False
    moved = 0
    for axes in groups:
        for stride in axes.strides[operand]:
            moved += stride * itemsize % width != 0
    return moved == (itemsize % width != 0)  # but the innermost one (in a sliding window there may be more)


# ---------------------------------------------------------------------------------------------------- arguments


def normalize_axis(op: str, axis: Any, shape: Shape) -> tuple[int, ...]:
    """``axis`` (None, an int or a tuple of ints, negative ones counted from the end) as sorted dims."""
    if axis is None:
        return tuple(range(len(shape)))
    dims = []
    for a in axis if isinstance(axis, tuple) else (axis,):
        a = as_index(op, "axis", a, axis)
        if not shape and axis in (0, -1):  # NumPy takes an array of no dim for one of a single element then
            return ()
        if not -len(shape) <= a < len(shape):
            raise error(np.exceptions.AxisError, op, f"axis {a} is out of range for shape {shape}")
        dims.append(a % len(shape))
    if len(set(dims)) != len(dims):
        raise error(ValueError, op, f"axis {axis!r} names a dimension twice for shape {shape}")
    return tuple(sorted(dims))


def as_index(op: str, name: str, index: Any, given: Any) -> int:
    """An int that is no bool, one of those that were given."""
    try:
        if not isinstance(index, (bool, np.bool_)):
            return operator.index(index)
    except TypeError:
        pass
    raise error(TypeError, op, f"{name} must be None, an int or a tuple of ints, got {given!r}")


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """NumPy's broadcast of the shapes, of any number of dims.

    >>> broadcast_shapes("where", (3, 1), (4,), ())
    (3, 4)
    """
    ndim = max(map(len, shapes))
    result: list[int] = []
    for lengths in zip(*[(1,) * (ndim - len(shape)) + shape for shape in shapes], strict=True):
        long = {*lengths} - {1} or {1}
        if len(long) > 1:
            raise error(ValueError, op, f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result += long
    return tuple(result)


def broadcasts_to(shape: Shape, to: Shape) -> bool:
    """Whether an operand of ``shape`` broadcasts to exactly the shape ``to``.

    >>> broadcasts_to((3, 1), (2, 3, 4)), broadcasts_to((3,), (1,))
    (True, False)
    """
    tail = to[len(to) - len(shape) :] if len(shape) <= len(to) else ()
    return len(tail) == len(shape) and all(n in (1, m) for n, m in zip(shape, tail, strict=True))


def check_choice(op: str, what: str, value: Any, choices: Iterable[str | None]) -> None:
    """``value`` must be one of the choices, which the message lists."""
    if value not in (names := tuple(choices)):
        listed = ", ".join(str(name) for name in names)
        raise error(ValueError, op, f"unknown {what} {value!r}; valid: {listed}")


def as_dtype(op: str, dtype: Any) -> np.dtype:
    """What the caller gave as ``dtype``."""
    try:
        made = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        raise error(TypeError, op, f"dtype {dtype!r} is not understood") from None
    check_order(op, "dtype", made)
    return made


def check_order(op: str, what: str, dtype: np.dtype) -> None:
    """The bytes of an element must lie as the machine's do."""
    if not dtype.isnative:
        raise error(TypeError, op, f"dtype {dtype.str} of {what} is not in the machine's byte order")


def check_rank(op: str, what: str, ndim: int) -> None:
    """Kernels are compiled for so many dims."""
    if ndim > MAX_RANK:
        raise error(ValueError, op, f"{what} has {ndim} dims; on a GPU gpuops takes at most {MAX_RANK}")


@cache
def dtype_name(dtype: np.dtype) -> str:
    """``dtype.name``, which NumPy puts together anew every time."""
    return dtype.name


def check_dtype(op: str, what: str, dtype: np.dtype, kinds: Iterable[str] = CTYPES) -> None:
    """The dtype must be one that the op computes."""
    if dtype_name(dtype) not in kinds:
        raise error(TypeError, op, f"dtype {dtype.name} of {what} is not supported")


def check_out(op: str, out: Any, shape: Shape, dtype: np.dtype, casting: Casting = "same_kind") -> None:
    """``out`` must have the result's shape, be writeable, and take the result's dtype."""
    if out.shape != shape:
        raise error(ValueError, op, f"out has shape {out.shape}, the result has shape {shape}")
    if not getattr(out.flags, "writeable", True):
        raise error(ValueError, op, "out is read-only")
    if overlaps_itself(shape, out.strides, out.itemsize):
        raise error(ValueError, op, f"out has elements in one place: its shape is {shape}, its strides {out.strides}")
    check_dtype(op, "out", out.dtype)
    if not np.can_cast(dtype, out.dtype, casting):
        rule = f"cannot cast the result from {dtype.name} to {out.dtype.name} of out with casting rule '{casting}'"
        raise error(TypeError, op, rule)


def overlaps_itself(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Whether two elements of an array share a byte.

    They do if some steps along the dims, not all of them 0, lead less than an item away. With the longest strides
    first, few numbers of steps leave what the other dims can make good.

    >>> overlaps_itself((3, 3), (4, 4), 4), overlaps_itself((2, 3), (12, 8), 4), overlaps_itself((2, 3), (12, 4), 4)
    (True, False, False)
    """
    if 0 in shape:
        return False
    dims = sorted([(abs(stride), n - 1) for n, stride in zip(shape, strides, strict=True) if n > 1], reverse=True)
    reach = [0] * (len(dims) + 1)  # how far the dims from each one on lead
    for d in range(len(dims) - 1, -1, -1):
        reach[d] = reach[d + 1] + dims[d][0] * dims[d][1]
    if all(stride >= reach[d + 1] + itemsize for d, (stride, _) in enumerate(dims)):
        return False

    def meets(d: int, at: int, moved: bool) -> bool:
        if d == len(dims):
            return moved and abs(at) < itemsize
        stride, most = dims[d]
        if stride == 0:
            return True
        near = -round(at / stride)  # the number of steps that leads back, and around it those that others can make good
        far = (itemsize + reach[d + 1]) // stride + 1
        steps = range(max(-most, near - far), min(most, near + far) + 1)
        return any(meets(d + 1, at + n * stride, moved or n != 0) for n in steps)

    return meets(0, 0, False)


# --------------------------------------------------------------------------------------------------------- plans


class Machine(NamedTuple):
    """What plans ask of a device."""

    multiprocessors: int
    cluster: int = 1  # blocks that reach each other's shared memory, at most
    shared: int = 48 * 1024  # bytes of shared memory of a block, at most, and nearly those of a multiprocessor
    together: int = 0  # blocks that can wait for each other, if each has a multiprocessor to itself
    blas: bool = True  # whether cuBLAS can be called
    memory: int = 2**63  # bytes of it, in all


class Kernel(NamedTuple):
    """One compiled variant: a kernel file of ``gpuops/kernels`` with its types and constants filled in."""

    name: str
    types: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, int], ...]


class Operand(NamedTuple):
    """A pointer argument: the name of an array of the call, and the bytes from its first element."""

    name: str
    offset: int = 0


#: The number of the launch, which stands among the addresses: higher than that of any before it that used the scratch.
LAUNCH = Operand("launch")
NO_LAUNCH = bytes(8)  # in its place, where a launch needs none


def check_grid(op: str, kernel: str, grid: Shape, problem: str) -> tuple[int, int, int]:
    """A grid's blocks in x, y and z, which CUDA must allow; ``problem`` says in words what needs so many."""
    x, y, z = (*grid, *(1,) * (3 - len(grid)))
    for axis, blocks, most in zip("xyz", (x, y, z), MAX_GRID, strict=True):
        if blocks > most:
            raise error(ValueError, op, f"{kernel} takes at most {most} blocks in {axis}, {problem} need {blocks}")
    return x, y, z


class Launch(NamedTuple):
    """One kernel launch of a plan."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: int
    args: tuple[Operand | bytes | None, ...]  # None: a null pointer
    cluster: int = 1  # neighbouring blocks that run together and reach each other's shared memory
    shared: int = 0  # bytes of shared memory that the launch gives to a block
    cooperative: bool = False  # its blocks wait for each other: all of them must run at a time

    def ready(self, device: Any, places: dict[str, int]) -> Any:
        """What launches it on a device, given addresses, among which those of its arrays have these places."""
        return device.launcher(self, places)

    def __repr__(self) -> str:
        return f"Launch(kernel={self.kernel!r}, grid={self.grid}, block={self.block})"


class Plan(NamedTuple):
    """What a call does on the device: steps in order, and the workspace (name, bytes) that they share.

    ``scratch`` is how many bytes of the stream's own memory they use beside.
    ``in_place`` tells whether ``out`` may be exactly the (same-strided) input.
    """

    strategy: str
    steps: tuple[Any, ...]
    workspace: tuple[tuple[str, int], ...] = ()
    scratch: int = 0
    in_place: bool = False

    @property
    def own(self) -> list[str]:
        """The names of what the steps use beside the caller's arrays: memory, and the number of the launch."""
        names = [name for name, _ in self.workspace]
        return [*names, "scratch", LAUNCH.name] if self.scratch else names
