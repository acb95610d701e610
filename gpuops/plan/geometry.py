"""Geometry: the dims of operands in a normal form. All strides here count elements, not bytes.

In normal form, dims of length 1 are dropped, negative strides flipped, dims sorted so that the innermost is the one
with the smallest stride, and neighbours merged wherever every operand allows it.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Shape = tuple[int, ...]

RANKS = (1, 2, 3, 4, 6, 12, 32)  # the rank classes that kernels are compiled for
MANY = 4  # the lowest rank class of kernels that find out the number of dims at run time
MAX_RANK = RANKS[-1]
CLASSES = [RANKS[bisect_left(RANKS, ndim)] for ndim in range(MAX_RANK + 1)]  # the rank class by number of dims


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
        return CLASSES[len(self.sizes)]

    def inner(self, operand: int) -> int:
        """The innermost stride of an operand, 0 without dims."""
        return self.strides[operand][-1] if self.sizes else 0

    def dims(self) -> "Dims":
        """The same for kernels that find out the number of dims at run time."""
        return Dims(self.sizes, self.strides)

    def in_packs(self, vec: int) -> "Axes":
        """The same axes in packs of ``vec`` elements along the innermost dim."""
        if vec == 1:
            return self
        return Axes(
            (*self.sizes[:-1], self.sizes[-1] // vec),
            tuple([(*s[:-1], s[-1] * vec) for s in self.strides]),
        )

    def numbers(self) -> list[int]:
        """The numbers of ``struct Axes`` in ``kernels/common/axes.cuh``: a divisor for each dim, then the strides."""
        pad = self.rank_class - len(self.sizes)
        found, zeros = [*ONE] * pad, (0,) * pad
        for size in self.sizes:
            found += divisor(size)
        for operand in self.strides:
            found += zeros
            found += operand
        return found


class Dims(Axes):
    """Axes for kernels that find out the number of dims at run time."""

    __slots__ = ()

    @property
    def rank_class(self) -> int:
        """The rank class, at least `MANY`."""
        return CLASSES[max(len(self.sizes), MANY)]

    def numbers(self) -> list[int]:
        """The numbers of ``struct Dims``: innermost first, each dim's divisor and strides."""
        found: list[int] = []
        for d in range(len(self.sizes) - 1, -1, -1):
            found += divisor(self.sizes[d])
            found += [operand[d] for operand in self.strides]
        return found + [*ONE, *(0,) * len(self.strides)] * (self.rank_class - len(self.sizes))


def divisor(value: int) -> Shape:
    """The numbers of ``struct Divisor``: the value, and the multiplier and shift that divide n < 2**31 by it."""
    shift = (value - 1).bit_length()
    return value, (((1 << shift) - value << 32) // value + 1) % 2**32, shift


ONE = divisor(1)


def index_type(*counts: int) -> str:
    """32-bit indices where every count allows them; ``Divisor`` is exact below 2**31."""
    return "u32" if max(counts) < 2**31 else "i64"


def reaches(*groups: Axes) -> list[int]:
    """How far each operand of the first group reaches from its first element, in elements; the other groups may have
    fewer operands.

    >>> reaches(Axes((2, 3), ((-3, 1),)), Axes((4,), ((6,),)))
    [23]
    """
    far = [0] * len(groups[0].strides)
    for axes in groups:
        for d, n in enumerate(axes.sizes):
            for operand, strides in enumerate(axes.strides):
                far[operand] += (n - 1) * abs(strides[d])
    return far


def offset_type(far: Iterable[int]) -> str:
    """32-bit offsets where no operand reaches further."""
    return "i32" if max(far) < 2**31 - 2**10 else "i64"


def normalize(axes: Axes) -> tuple[Axes, Shape]:
    """Axes in normal form, and by how many elements the flips move each operand's first element.

    The first operand's strides (then the next's, …) order the dims and decide which to flip. A dim in which it
    broadcasts goes outermost, so that it moves along the innermost dim.

    >>> normalize(Axes((2, 3, 4), ((12, 4, 1), (0, 4, 1))))
    (Axes(sizes=(2, 12), strides=((12, 1), (0, 1))), (0, 0))
    >>> normalize(Axes((5, 4), ((-4, -1),)))
    (Axes(sizes=(20,), strides=((1,),)), (-19,))
    """
    offsets = (0,) * len(axes.strides)
    if axes.strides.count(contiguous_strides(axes.sizes)) == len(offsets):  # all are in C order: one run
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
    """Whether the first operand that moves along a dim moves backwards."""
    for stride in strides:
        if stride:
            return stride < 0
    return False


def order(strides: Shape) -> Shape:
    """The dims of an array by stride, longest first."""
    return tuple(sorted(range(len(strides)), key=lambda d: -abs(strides[d])))


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """C-order strides in elements.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return tuple(strides)


def memory_order(shape: Shape, strides: Shape) -> Shape:
    """The dims of an array from the outermost to the innermost, as NumPy's iterators sort them (its order K): by
    stride; dims of stride 0 or length 1 stay where C order has them.

    >>> memory_order((2, 3, 4), (4, -8, 24)), memory_order((2, 3), (0, 4))
    ((2, 1, 0), (0, 1))
    """
    steps = [abs(stride) if n > 1 else 0 for n, stride in zip(shape, strides, strict=True)]
    found: list[int] = []  # from the innermost on
    for d in range(len(shape) - 1, -1, -1):
        place = len(found)
        for i in range(len(found) - 1, -1, -1) if steps[d] != 0 else ():
            if (step := steps[found[i]]) == 0:
                continue
            if step <= steps[d]:
                break
            place = i
        found.insert(place, d)
    return tuple(found[::-1])


def dense_strides(shape: Shape, order: Shape) -> Shape:
    """Strides in elements of a dense array whose dims have this order in memory, outermost first.

    >>> dense_strides((2, 3, 4), (2, 1, 0))
    (1, 2, 6)
    """
    if order == tuple(range(len(shape))):
        return contiguous_strides(shape)
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d], step = step, step * max(shape[d], 1)
    return tuple(strides)


def like_strides(shape: Shape, strides: Shape) -> Shape:
    """Strides in elements of a dense array of ``shape`` whose dims are in the memory order of ``strides``.

    >>> like_strides((2, 3), (1, 2)), like_strides((2, 3), (-3, 1))
    ((1, 2), (3, 1))
    """
    return dense_strides(shape, memory_order(shape, strides))


def broadcast_strides(shape: Shape, strides: Shape, to: Shape) -> Shape:
    """The strides of an operand of ``shape`` when broadcast to ``to``.

    >>> broadcast_strides((3, 1), (1, 1), (2, 3, 4))
    (0, 1, 0)
    """
    kept = strides if 1 not in shape else tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=True)])
    return (0,) * (len(to) - len(shape)) + kept


def power_of_2(n: int) -> int:
    """The smallest power of two that is at least n.

    >>> power_of_2(5), power_of_2(0)
    (8, 1)
    """
    return 1 << max(n - 1, 0).bit_length()


def log2(n: int) -> int:
    """The logarithm of a power of two."""
    return n.bit_length() - 1


def floor_power_of_2(n: int) -> int:
    """The greatest power of two that is at most n; 0 for 0."""
    return power_of_2(n + 1) // 2


def overlaps_itself(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Whether two elements of an array share a byte.

    They do if steps along the dims, not all of them 0, can lead less than an item away. With the longest strides first,
    only few numbers of steps leave a distance that the other dims can make up for.

    >>> overlaps_itself((3, 3), (4, 4), 4), overlaps_itself((2, 3), (12, 8), 4), overlaps_itself((2, 3), (12, 4), 4)
    (True, False, False)
    """
    if 0 in shape:
        return False
    dims = sorted([(abs(stride), n - 1) for n, stride in zip(shape, strides, strict=True) if n > 1], reverse=True)
    reach = [0] * (len(dims) + 1)  # of the dims from each one on
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
        near = -round(at / stride)  # the number of steps that leads back; others can make up for those near it
        far = (itemsize + reach[d + 1]) // stride + 1
        steps = range(max(-most, near - far), min(most, near + far) + 1)
        return any(meets(d + 1, at + n * stride, moved or n != 0) for n in steps)

    return meets(0, 0, False)
