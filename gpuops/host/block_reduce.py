"""Reductions of the host where NumPy's are slow, or threads help: in blocks, the same bits for any number of threads.

NumPy's loops go along the elements of a row, or along those side by side. So few of either are brought together: short
rows are turned, narrow columns are folded. Elements that a mask leaves out are replaced by neutral ones, instead of a
branch for each; half types are widened in blocks.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from ..plan.geometry import Shape, order
from ..plan.work import ArraySpec
from . import numpy_engine, threads
from .blocks import WORDS, Index, Seen, compiled, convert, convert_masked, indices, innermost, memory, seen

FEW = 2**13  # elements of arrays that NumPy reduces
SHARED = 2**23  # bytes of arrays that threads share, or compiled functions reduce
BLOCK = 2**17  # elements of a block, at least
COPIED = 2**19  # elements of a block that is copied, at most
COST = 16  # of an element that is copied, where that of reading a byte is 1
PIECES = 16  # blocks of an array, at most, unless they are copied
EACH = 2  # blocks for each thread
LESS = 16  # elements that become one, at least, in a block that has parts of rows
SHORT = 16  # elements of rows that are turned
NARROW = 64  # elements side by side that are folded
FOLDED = 512  # elements side by side, into which they are
APART = 128  # elements side by side that are reduced after others, with other dims between


def helps(a: ArraySpec, axis: Shape, mask: ArraySpec | None, ufunc: Any, half: bool) -> bool:
    """Whether an array is better reduced in blocks."""
    if not axis or a.size < FEW or (mask is not None and a.itemsize not in WORDS):
        return False
    sums = ufunc in (np.add, np.multiply)
    # One thread does not share, unless that changes the bits; maxima of bytes are no work.
    large = a.size * a.itemsize >= SHARED and (sums or a.itemsize > 1) and (sums or threads.limit() > 1)
    widened = half and (a.dtype == np.float16 or a.size >= BLOCK)
    return widened or mask is not None or large or way(a.shape, a.strides, a.dtype, axis, ufunc) != PLAIN


PLAIN, COPY, TURN, FOLD, INNER_LAST = "plain", "copy", "turn", "fold", "inner last"


@lru_cache(maxsize=256)
def way(shape: Shape, strides: Shape, dtype: np.dtype, axis: Shape, ufunc: Any) -> str:
    """How NumPy does not have to reduce an array in loops that are short, or not vectorised."""
    found = seen(shape, strides, dtype.itemsize, axis)
    if found is None:
        dim = innermost(shape, strides)
        gaps = ufunc in (np.maximum, np.minimum) and dtype.kind == "f" and abs(strides[dim]) > dtype.itemsize
        return COPY if gaps and dim not in axis else INNER_LAST if inner(shape, strides, axis) else PLAIN
    if is_short(found.lengths) and dtype.kind != "V":  # bfloat16 is slow to turn
        return TURN
    return FOLD if is_narrow(found.lengths) else PLAIN


def is_short(lengths: Shape) -> bool:
    """Whether an array that is seen as (outer, n, inner) has short rows."""
    _, n, inner = lengths
    return inner == 1 and n <= SHORT


def is_narrow(lengths: Shape) -> bool:
    """Whether it has narrow columns, long enough to be folded."""
    _, n, inner = lengths
    return 1 < inner < NARROW and n * inner >= 2 * FOLDED


def inner(shape: Shape, strides: Shape, axis: Shape) -> Shape:
    """The innermost dims that are reduced, if these are few elements, and others are reduced, apart from them."""
    dims = [d for d in order(strides) if shape[d] > 1]
    last = [*takewhile(lambda d: d in axis, reversed(dims))]
    apart = any(d in axis for d in dims[: len(dims) - len(last)])
    return tuple(last) if apart and math.prod([shape[d] for d in last]) <= APART else ()


def reduce(
    a: np.ndarray, out: np.ndarray | None = None, where: Any = True, *, function: Any, ufunc: Any, axis: Shape,
    keepdims: bool, **options: Any,
) -> Any:  # fmt: skip
    """What `numpy_engine.reduce` and `numpy_engine.reduce_wide` define; ``ufunc`` merges elements."""
    initial, mask = options.get("initial"), None if where is True else np.broadcast_to(where, a.shape)
    count: Any = math.prod([a.shape[d] for d in axis])
    if function is numpy_engine.mean and mask is not None:
        count = Reducer(np.add, axis, dtype=np.dtype(np.intp)).array(mask)
    neutral = initial if ufunc.identity is None else ufunc.identity
    reducer = Reducer(ufunc, axis, options.get("acc"), options.get("dtype"), neutral)
    undefined = not count if mask is None else neutral is None or not np.all(count)
    if undefined or (reducer.wide is not None and a.dtype != options["val"]):
        define = numpy_engine.reduce if reducer.wide is None else numpy_engine.reduce_wide
        return define(a, out, where, function=function, axis=axis, keepdims=keepdims, **options)
    total = reducer.array(a, mask)
    if initial is not None:
        total = ufunc(total, initial.astype(total.dtype))
    if function is numpy_engine.mean:
        total = numpy_engine.divided(total, count, total.dtype)
    if reducer.wide is not None:
        total = total.astype(options["val"])
    found = total if keepdims else np.squeeze(total, axis)[()]
    return numpy_engine.in_order(found, a, axis, keepdims, out)


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
        chosen = way(a.shape, a.strides, a.dtype, self.axis, self.ufunc)
        copied = self.wide is not None or mask is not None or chosen in (COPY, TURN)
        nbytes = (COST if copied else a.itemsize) * a.size
        count = max(1, min(PIECES, EACH * math.isqrt(nbytes // threads.WAKE)))
        room = max(BLOCK, a.size // count)
        pieces, parts = cut(a.shape, a.strides, self.axis, min(room, COPIED) if copied else room)
        found = numpy_engine.new_result(a, self.axis, self.result(a.dtype), parts)
        sums = compiled("compiled_sums") if self.ufunc is np.add and a.nbytes >= SHARED and not copied else None

        def reduce(piece: Piece) -> None:
            x, result = a[piece.block], found[piece.result]
            if copied:
                self.copied(x, None if mask is None else mask[piece.block], result)
            elif not (sums and sums.add(x, result, self.axis)):
                self.block(x, result, chosen)

        threads.shared(nbytes)(reduce, pieces)
        return found[0] if parts == 1 else self.ufunc.reduce(found, 0, self.dtype)  # type: ignore[no-any-return]

    def result(self, dtype: np.dtype) -> np.dtype:
        """The dtype of results."""
        logical = self.ufunc in (np.logical_or, np.logical_and)
        return np.dtype(bool) if logical else self.dtype or self.wide or dtype

    def copied(self, x: np.ndarray, mask: np.ndarray | None, result: np.ndarray) -> None:
        """Reduce a block that is turned, widened or masked in memory."""
        turned = way(x.shape, x.strides, x.dtype, self.axis, self.ufunc) == TURN
        dims = tuple(sorted(order(x.strides), key=lambda d: d not in self.axis or not turned))
        into = memory("values", x.shape, self.wide or x.dtype, dims)
        if mask is None:
            convert(x, into)
        else:
            convert_masked(x, mask, self.neutral, into)
        self.block(into, result, way(into.shape, into.strides, into.dtype, self.axis, self.ufunc))

    def block(self, x: np.ndarray, result: np.ndarray, chosen: str) -> None:
        """Reduce a block."""
        if chosen == FOLD:
            found = seen(x.shape, x.strides, x.itemsize, self.axis)
            assert found is not None
            return self.folded(x, found, result)
        axis = self.axis
        if chosen == INNER_LAST:
            axis = inner(x.shape, x.strides, axis)
            x = self.reduced(x, tuple(d for d in self.axis if d not in axis))
        self.reduced(x, axis, out=result)
        return None

    def reduced(self, x: np.ndarray, axis: int | Shape, out: np.ndarray | None = None) -> np.ndarray:
        """What NumPy makes of it, with dims kept."""
        return self.ufunc.reduce(x, axis, self.dtype, out, True)  # type: ignore[no-any-return]

    def folded(self, x: np.ndarray, found: Seen, result: np.ndarray) -> None:
        """Reduce narrow columns, several elements of a column side by side."""
        outer, n, inner = found.lengths
        columns, folds = x.transpose(found.dims).reshape(found.lengths), FOLDED // inner
        even = n - n % folds
        made = self.reduced(columns[:, :even].reshape(outer, -1, folds * inner), 1)
        made = self.reduced(made.reshape(outer, folds, inner), 1)
        if even < n:
            made = self.ufunc(made, self.reduced(columns[:, even:], 1))
        result.transpose(found.dims)[...] = made.reshape([result.shape[d] for d in found.dims])


class Piece(NamedTuple):
    """A block of an array: its index, and that of its results, of which there are several that become one."""

    block: Index
    result: Index


@lru_cache(maxsize=256)
def cut(shape: Shape, strides: Shape, axis: Shape, room: int) -> tuple[list[Piece], int]:
    """Blocks of about so many elements, as they lie in memory: parts of rows, or of some side by side, if a block has
    enough of each; else rows. And how many results become one."""
    found = indices(shape, strides, range(len(shape)), room)
    if len(found) > 1 and math.prod([extent(found[0][d], shape[d]) for d in axis]) < LESS:
        kept = [d for d in range(len(shape)) if d not in axis]
        found = indices(shape, strides, kept, max(1, room // math.prod([shape[d] for d in axis])))
    parts: dict[Index, int] = {}  # by their index along the dims that are reduced
    pieces = []
    for index in found:
        part = parts.setdefault(tuple([(index[d].start, index[d].stop) for d in axis]), len(parts))
        pieces.append(Piece(index, (part, *(slice(None) if d in axis else each for d, each in enumerate(index)))))
    return pieces, len(parts)


def extent(index: slice, length: int) -> int:
    """How many elements of a dim a slice has."""
    return len(range(*index.indices(length)))
