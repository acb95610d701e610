"""Sums of the host that Numba compiles.

Elements are added up in chunks, so that loops are vectorised and sums keep their digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan.geometry import Shape
from . import blocks
from .numba_compiler import compiled

SHORT = 64  # elements of rows, or side by side, below which loops over them do not pay
CHUNK = 1024  # elements of a row that are added up in any order
COLUMN_CHUNK = 64  # elements of a column that are added up before the sum of others is
#: The dtypes in which sums are taken, by that of the elements.
SUMS = {
    element: sums
    for elements, sums in (
        ("bool int8 int16 int32 int64", ("int64", "float64")),
        ("uint8 uint16 uint32 uint64", ("uint64", "float64")),
        ("float32", ("float32", "float64")),
        ("float64", ("float64",)),
    )
    for element in elements.split()
}


def add(x: np.ndarray, out: np.ndarray, axis: Shape) -> bool:
    """Sum an array without gaps, if that pays; ``out`` has dims of length 1 in the place of those that are reduced."""
    found = blocks.seen(x.shape, x.strides, x.itemsize, axis)
    if found is None or out.dtype.name not in SUMS.get(x.dtype.name, ()):
        return False
    outer, n, inner = found.lengths
    if (n if inner == 1 else inner) < SHORT:
        return False
    x3, sums = x.transpose(found.dims).reshape(found.lengths), np.zeros((outer, inner), out.dtype)
    if inner == 1:
        zero = out.dtype.type(0) if x.dtype.kind == "f" or x.itemsize == out.itemsize else np.int64(0)
        rows(x3[..., 0], sums[:, 0], zero)
    else:
        columns(x3, sums)
    out.transpose(found.dims)[...] = sums.reshape([out.shape[d] for d in found.dims])
    return True


@compiled(fastmath={"reassoc", "nsz"})
def chunk(x: Any, r: Any, first: Any, last: Any, zero: Any) -> Any:
    """The sum of some elements of a row."""
    total = zero
    for i in range(first, last):
        total += x[r, i]
    return total


@compiled()
def rows(x: Any, sums: Any, zero: Any) -> None:
    """Add the elements of each row, first to ``zero``, whose type holds the sum of a chunk."""
    length = x.shape[1]
    for r in range(np.uintp(x.shape[0])):
        for first in range(0, length, CHUNK):
            sums[r] += sums.dtype.type(chunk(x, r, np.uintp(first), np.uintp(min(first + CHUNK, length)), zero))


@compiled()
def columns(x: Any, sums: Any) -> None:
    """The same of columns, some side by side; four of their elements at a time."""
    of_sums, length, width = sums.dtype.type, x.shape[1], np.uintp(x.shape[2])
    some, one, two, three = np.empty(x.shape[2], sums.dtype), np.uintp(1), np.uintp(2), np.uintp(3)
    for o in range(np.uintp(x.shape[0])):
        for first in range(0, length, COLUMN_CHUNK):
            last = min(first + COLUMN_CHUNK, length)
            fours = last - (last - first) % 4
            some[:] = 0
            for j in range(np.uintp(first), np.uintp(fours), np.uintp(4)):
                for i in range(width):
                    half = of_sums(x[o, j, i]) + of_sums(x[o, j + one, i])
                    some[i] += half + (of_sums(x[o, j + two, i]) + of_sums(x[o, j + three, i]))
            for j in range(np.uintp(fours), np.uintp(last)):
                for i in range(width):
                    some[i] += of_sums(x[o, j, i])
            for i in range(width):
                sums[o, i] += some[i]
