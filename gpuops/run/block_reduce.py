"""Reductions of the host where NumPy's are slow, or threads help: in blocks, the same bits for any number of threads.

NumPy's loops go along the elements of a row, or along those side by side. So few of either are brought together: short
rows are turned, narrow columns are folded. Elements that a mask leaves out are replaced by neutral ones, instead of a
branch for each; half types are widened in blocks.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..plan.geometry import Shape, order
from ..plan.work import ArraySpec
from . import numpy_engine, threads
from .blocks import WORDS, Index, Seen, convert, convert_masked, indices, memory, seen

FEW = 2**13  # elements of arrays that NumPy reduces
SHARED = 2**23  # bytes of arrays that threads share
BLOCK = 2**17  # elements of a block, at least
COPIED = 2**19  # elements of a block that is copied, at most
COST = 16  # of an element that is copied, where that of reading a byte is 1
PIECES = 16  # blocks of an array, at most, unless they are copied
LESS = 16  # elements that become one, at least, in a block that has parts of rows
SHORT = 16  # elements of rows that are turned
NARROW = 64  # elements side by side that are folded
FOLDED = 512  # elements side by side, into which they are
UFUNCS: dict[Any, Any] = {
    np.add.reduce: np.add, np.mean: np.add, np.multiply.reduce: np.multiply, np.maximum.reduce: np.maximum,
    np.minimum.reduce: np.minimum, np.any: np.logical_or, np.all: np.logical_and,
}  # fmt: skip
NEUTRAL = {np.add: 0, np.multiply: 1, np.logical_or: 0, np.logical_and: 1}


def helps(a: ArraySpec, axis: Shape, mask: ArraySpec | None, function: Any, half: bool) -> bool:
    """Whether an array is better reduced in blocks."""
    if a.size < FEW or (mask is not None and a.itemsize not in WORDS):
        return False
    found, ufunc = seen(a.shape, a.strides, a.itemsize, axis), UFUNCS[function]
    few = found is not None and (is_short(found.lengths) or is_narrow(found.lengths))
    sums = ufunc in (np.add, np.multiply)
    # One thread does not share, unless that changes the bits; maxima of bytes are no work.
    large = a.size * a.itemsize >= SHARED and (sums or a.itemsize > 1)
    large = large and (threads.limit() > 1 or (sums and a.dtype.kind not in "biu"))
    widened = half and (a.dtype == np.float16 or a.size >= BLOCK)
    return widened or mask is not None or few or large


def is_short(lengths: Shape) -> bool:
    """Whether an array that is seen as (outer, n, inner) has short rows."""
    _, n, inner = lengths
    return inner == 1 and n <= SHORT


def is_narrow(lengths: Shape) -> bool:
    """Whether it has narrow columns, long enough to be folded."""
    _, n, inner = lengths
    return 1 < inner < NARROW and n * inner >= 2 * FOLDED


def reduce(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, *, function: Any, axis: Shape, keepdims: bool,
    **options: Any,
) -> Any:  # fmt: skip
    """What `numpy_engine.reduce` and `numpy_engine.reduce_half` define."""
    ufunc, initial = UFUNCS[function], options.get("initial")
    mask = None if where is True else np.broadcast_to(where, a.shape)
    count: Any = math.prod([a.shape[d] for d in axis])
    if function is np.mean and mask is not None:
        count = Reducer(np.add, axis, dtype=np.dtype(np.intp)).array(mask)
    reducer = Reducer(ufunc, axis, options.get("acc"), options.get("dtype"), NEUTRAL.get(ufunc, initial))
    undefined = not count if mask is None else reducer.neutral is None or not np.all(count)
    if undefined or (reducer.wide is not None and a.dtype != options["val"]):
        define = numpy_engine.reduce if reducer.wide is None else numpy_engine.reduce_half
        return define(a, out, where, function=function, axis=axis, keepdims=keepdims, **options)
    total = reducer.array(a, mask)
    if initial is not None:
        total = ufunc(total, initial.astype(total.dtype))
    if function is np.mean:
        total = np.true_divide(total, count, dtype=total.dtype)
    if reducer.wide is not None:
        total = total.astype(options["val"])
    return numpy_engine.deliver(total if keepdims else np.squeeze(total, axis)[()], out)


class Reducer(NamedTuple):
    """How arrays are reduced: what merges elements, the dims, the dtype of elements if they are half types, that of the
    results, and what takes the place of elements that a mask leaves out."""

    ufunc: Any
    axis: Shape
    wide: np.dtype | None = None
    dtype: np.dtype | None = None
    neutral: Any = None

    def array(self, a: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """An array reduced, with dims kept."""
        copied = self.wide is not None or mask is not None
        room = max(BLOCK, min(a.size // PIECES, COPIED if copied else a.size))
        pieces = cut(a.shape, a.strides, self.axis, room)
        if len(pieces) == 1:
            return self.block(a, mask)
        found: list[Any] = [None] * len(pieces)

        def piece(k: int) -> None:
            block = pieces[k].block
            found[k] = self.block(a[block], None if mask is None else mask[block])

        threads.shared((COST if copied else a.itemsize) * a.size)(piece, range(len(pieces)))
        total = np.empty([1 if d in self.axis else n for d, n in enumerate(a.shape)], found[0].dtype)
        for (_, where, first), part in zip(pieces, found, strict=True):
            target = total[where]
            if first:
                target[...] = part
            else:
                self.ufunc(target, part, out=target)
        return total

    def block(self, x: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        """The same of a block: turned, widened or masked in memory, if it has to be."""
        found = seen(x.shape, x.strides, x.itemsize, self.axis)
        turned = found is not None and is_short(found.lengths) and x.dtype.kind != "V"  # bfloat16 is slow to turn
        if self.wide is not None or mask is not None or turned:
            dims = tuple(sorted(order(x.strides), key=lambda d: d not in self.axis or not turned))
            into = memory("values", x.shape, self.wide or x.dtype, dims)
            if mask is None:
                convert(x, into)
            else:
                convert_masked(x, mask, self.neutral, into)
            x = into
            found = seen(x.shape, x.strides, x.itemsize, self.axis)
        if found is not None and is_narrow(found.lengths):
            return self.folded(x, found)
        return self.reduced(x, self.axis, keepdims=True)

    def reduced(self, x: np.ndarray, axis: int | Shape, **options: Any) -> np.ndarray:
        """What NumPy makes of it."""
        dtype = {} if self.dtype is None else {"dtype": self.dtype}
        return self.ufunc.reduce(x, axis=axis, **dtype, **options)  # type: ignore[no-any-return]

    def folded(self, x: np.ndarray, found: Seen) -> np.ndarray:
        """Narrow columns reduced, several elements of a column side by side."""
        outer, n, inner = found.lengths
        columns, folds = x.transpose(found.dims).reshape(found.lengths), FOLDED // inner
        even = n - n % folds
        made = self.reduced(columns[:, :even].reshape(outer, -1, folds * inner), 1)
        made = self.reduced(made.reshape(outer, folds, inner), 1)
        if even < n:
            made = self.ufunc(made, self.reduced(columns[:, even:], 1))
        shape = [1 if d in self.axis else x.shape[d] for d in found.dims]
        return made.reshape(shape).transpose(np.argsort(found.dims).tolist())


class Piece(NamedTuple):
    """A block of an array: its index, that of its results, and whether it is the first to have some there."""

    block: Index
    results: Index
    first: bool


@lru_cache(maxsize=256)
def cut(shape: Shape, strides: Shape, axis: Shape, room: int) -> list[Piece]:
    """Blocks of about so many elements, as they lie in memory: parts of rows, or of some side by side, if a block has
    enough of each; else rows."""
    found = indices(shape, strides, range(len(shape)), room)
    if len(found) > 1 and math.prod([extent(found[0][d], shape[d]) for d in axis]) < LESS:
        kept = [d for d in range(len(shape)) if d not in axis]
        found = indices(shape, strides, kept, max(1, room // math.prod([shape[d] for d in axis])))
    return [
        Piece(index, tuple([slice(None) if d in axis else part for d, part in enumerate(index)]),
              not any(index[d].start for d in axis))
        for index in found
    ]  # fmt: skip


def extent(index: slice, length: int) -> int:
    """How many elements of a dim a slice has."""
    return len(range(*index.indices(length)))
