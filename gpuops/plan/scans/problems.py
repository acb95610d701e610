"""Scans in normal form."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import accumulator, dtype_name
from ..geometry import Axes, Shape, contiguous_strides, normal_form
from ..reductions import OpStruct
from ..work import ALIGNMENT, ArraySpec, Operand


class Problem(NamedTuple):
    """A scan in normal form: along ``line``, of each of ``kept``."""

    op: str
    struct: OpStruct
    x: str  # dtype names: of the elements, of the arithmetic, of the results, and of what these are delivered as
    val: str
    result: str
    out: str
    kept: Axes  # operands x and out: the lines, neighbours in memory last
    line: Axes  # operands x and out, in the direction of the scan
    inner: int  # lines side by side, closer in memory than the elements of a line
    arrays: tuple[Operand, Operand]  # where x and out begin in normal form
    starts: Shape  # these addresses modulo 16
    sizes: Shape  # bytes of an element of x and out
    exclusive: bool
    nothing: bytes  # the result of no elements
    exact: bool  # results are exact sums
    ordered: bool  # results depend on the order in which states merge
    scaled: bool  # they are products, whose totals are numbers with powers of two apart

    @property
    def length(self) -> int:
        """Elements of a line."""
        return self.line.size

    @property
    def outers(self) -> int:
        """Lines that are not side by side."""
        return self.kept.size // self.inner

    @property
    def backward(self) -> tuple[bool, bool]:
        """Whether lines run backwards in the memory of x and of out."""
        return self.line.inner(0) < 0, self.line.inner(1) < 0

    @property
    def carry(self) -> int:
        """Bytes of a tile's total."""
        return 24 if self.exact else self.struct.state(self.val).itemsize + 8 * self.scaled

    @property
    def in_place(self) -> bool:
        """Whether out may be x itself: exact sums may read elements again."""
        return not self.exact


def problem(task: Any, x: ArraySpec, out: ArraySpec) -> Problem:
    """The normal form of a scan of x. Sums of complex numbers are those of their parts, side by side."""
    val, scan = task.bound.val, task.scan
    exact = val.kind in "fcV" and scan.record.sums is not None
    steps, axis = out.steps, task.axis
    if axis is None:  # out has one dim
        steps = tuple([(out.steps or (1,))[0] * step for step in contiguous_strides(x.shape)])
    dims = [*zip(x.shape, x.steps, steps, strict=True)]
    names = [dtype_name(each) for each in (x.dtype, computed_in(task), task.dtype, out.dtype)]
    sizes = [x.itemsize, out.itemsize]
    line = tuple(range(x.ndim)) if axis is None else (axis,)
    if exact and val.kind == "c":
        dims = [*((n, 2 * a, 2 * b) for n, a, b in dims), (2, 1, 1)]
        names, sizes = [PARTS[name] for name in names], [size // 2 for size in sizes]
    nothing = task.nothing.astype(out.dtype).tobytes()[: sizes[1]]  # (of complex numbers both parts are 0)
    kept, moves = normal_form([dim for d, dim in enumerate(dims) if d not in line], 2)
    along, ends = line_form([dims[d] for d in line], task.reverse)
    bytes_moved = [(move + end) * size for move, end, size in zip(moves, ends, sizes, strict=True)]
    first, last = (Operand(each.name, each.offset + by) for each, by in zip((x, out), bytes_moved, strict=True))
    starts = tuple([(each.start + by) % ALIGNMENT for each, by in zip((x, out), bytes_moved, strict=True)])
    return Problem(
        scan.name, scan.record.struct, names[0], names[1], names[2], names[3], kept, along,
        side_by_side(kept, along), (first, last), starts, tuple(sizes), task.exclusive, nothing, exact,
        scan.ordered(val), scan.wide and val.kind in "fcV",
    )  # fmt: skip


#: The dtypes of complex numbers' parts.
PARTS = {"complex64": "float32", "complex128": "float64"}


def computed_in(task: Any) -> np.dtype:
    """The dtype in which states merge."""
    val = task.bound.val
    if task.scan.wide and val.kind in "fcV":
        return np.dtype(np.complex128 if val.kind == "c" else np.float64)
    return np.dtype(accumulator(dtype_name(val))) if task.scan.record.rules.floating else val


def line_form(dims: list[Shape], reverse: bool) -> tuple[Axes, Shape]:
    """The dims of a line, in order, merged where they can be; and by how many elements each operand's first element
    moves if the line goes from the last element to the first.

    >>> line_form([(2, 12, 12), (3, 4, 4)], False)
    (Axes(sizes=(6,), strides=((4,), (4,))), (0, 0))
    >>> line_form([(5, 1, 2)], True)
    (Axes(sizes=(5,), strides=((-1,), (-2,))), (4, 8))
    """
    merged: list[Shape] = []
    for dim in dims:
        if dim[0] == 1:
            continue
        if merged and merged[-1][1:] == tuple([dim[0] * step for step in dim[1:]]):
            dim = (merged.pop()[0] * dim[0], *dim[1:])
        merged.append(dim)
    ends = [0, 0]
    if reverse:
        ends = [sum([(dim[0] - 1) * dim[k] for dim in merged]) for k in (1, 2)]
        merged = [(n, -a, -b) for n, a, b in merged]
    sizes, *strides = zip(*merged, strict=True) if merged else ((), (), ())
    return Axes(tuple(sizes), (tuple(strides[0]), tuple(strides[1]))), tuple(ends)


def side_by_side(kept: Axes, line: Axes) -> int:
    """How many neighbouring lines are closer in memory than the elements of a line."""
    if len(line.sizes) != 1:
        return 1
    operand = 0 if line.inner(0) else 1
    step = abs(line.inner(operand))
    near = [n for n, stride in zip(kept.sizes, kept.strides[operand], strict=True) if 0 < abs(stride) < step]
    return math.prod(kept.sizes[len(kept.sizes) - len(near) :])
