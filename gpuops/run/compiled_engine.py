"""softmax, log_softmax and logsumexp of the host with the compiled functions of `compiled_rows`, on several threads.

What they compute is what `numpy_engine` defines. How arrays are shared out depends on shapes and strides alone, so the
same call gives the same bits on any number of threads.
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np

from ..plan.geometry import Shape, contiguous_strides
from . import compiled_rows
from .blocks import order
from .threads import Share, alone, each

NARROW = 16  # elements of rows, or side by side, below which loops over them do not pay
TASK = 2**20  # bytes of the rows that a thread takes at a time
LONG = 2**22  # bytes of rows, taken together, from which on they are shared out in parts
PART = 2**18  # elements of a part
TILE = 2**20  # bytes of columns that are taken together, if that is within
TILE_WIDTHS = (512, 4096)  # elements side by side
FOLDED = 512  # elements side by side, into which narrow columns are folded
#: By op, and whether elements lie side by side.
FUNCTIONS = {
    (op, side_by_side): getattr(compiled_rows, f"{op}_{'columns' if side_by_side else 'rows'}")
    for op in ("softmax", "log_softmax", "logsumexp") for side_by_side in (False, True)
}  # fmt: skip


def convert(x: np.ndarray, into: np.ndarray) -> None:
    """Copy an array into one of another dtype."""
    if (x.dtype, into.dtype) == (np.float16, np.float32):
        from .compiled_halves import widened

        widened(x.view(np.uint16), out=into)
    elif (x.dtype, into.dtype) == (np.float32, np.float16):
        from .compiled_halves import narrowed

        narrowed(x, out=into.view(np.uint16))
    else:
        np.copyto(into, x, casting="unsafe")


class Seen(NamedTuple):
    """How an array without gaps is seen as (outer, n, inner): the order of its dims, and these lengths."""

    dims: Shape
    lengths: Shape


@lru_cache(maxsize=256)
def seen(shape: Shape, strides: Shape, itemsize: int, axis: Shape) -> Seen | None:
    """How an array is seen to reduce it along ``axis``; None, if it has gaps, or other dims between those."""
    dims = tuple(d for d in order(strides) if shape[d] > 1)
    kept = "".join("n" if d in axis else "k" for d in dims)
    first, count = kept.find("n"), kept.count("n")
    lengths = [shape[d] for d in dims]
    if [n * itemsize for n in contiguous_strides(lengths)] != [strides[d] for d in dims]:
        return None
    if count == 0 or kept.rfind("n") != first + count - 1:
        return None
    parts = lengths[:first], lengths[first : first + count], lengths[first + count :]
    return Seen((*(d for d in range(len(shape)) if shape[d] == 1), *dims), tuple(map(math.prod, parts)))


def compute(op: str, x: np.ndarray, y: np.ndarray, axis: Shape, share: Share | None = None) -> bool:
    """Compute an op of an array without gaps, if that needs no copy.

    The result goes into y, which lies as x, or has one element for each row. Threads share large arrays, unless the
    caller says how they are shared.
    """
    found, reduced = seen(x.shape, x.strides, x.itemsize, axis), y.shape != x.shape
    if found is None or not (reduced or y.strides == x.strides):
        return False
    x3 = x.transpose(found.dims).reshape(found.lengths)
    y3 = np.empty(found.lengths[::2], y.dtype) if reduced else y.transpose(found.dims).reshape(found.lengths)
    if not shared_out(op, x3, y3, share or (each if x.nbytes > TASK else alone)):
        return False
    if reduced:
        y.transpose(found.dims)[...] = y3.reshape([y.shape[d] for d in found.dims])
    return True


def shared_out(op: str, x: np.ndarray, y: np.ndarray, share: Share) -> bool:
    """The same of arrays that are seen as (outer, n, inner)."""
    outer, n, inner = x.shape
    width = tile(n, inner, x.itemsize)
    nbytes = n * width * x.itemsize  # of what is reduced at a time
    if (nbytes > LONG or outer * inner == 1) and outer * -(-inner // width) < 64:
        for o in range(outer):
            in_parts(op, x[o], y[o], share)
        return True
    if (n if inner == 1 else inner) < NARROW:
        return False
    function = FUNCTIONS[op, inner > 1]
    step = max(1, TASK // nbytes)
    if inner == 1:
        x, y = x[..., 0], y[..., 0]
        share(lambda start: function(x, y, start, min(start + step, outer)), range(0, outer, step))
    else:
        pieces = [(o, c) for o in range(0, outer, step) for c in range(0, inner, width)]

        def columns(piece: tuple[int, int]) -> None:
            o, c = piece
            function(x[o : o + step], y[o : o + step], c, min(c + width, inner))

        share(columns, pieces)
    return True


def tile(n: int, inner: int, itemsize: int) -> int:
    """How many columns are taken together."""
    few, many = TILE_WIDTHS
    return min(inner, max(few, min(many, TILE // (n * itemsize))))


def in_parts(op: str, x: np.ndarray, y: np.ndarray, share: Share) -> None:
    """The same of columns, (n, inner), that are shared out in parts of their length."""
    n, inner = x.shape
    folds = max(1, FOLDED // inner)
    even, step = n - n % folds, max(1, PART // (inner * folds)) * folds
    parts = [(slice(start, min(start + step, even)), folds) for start in range(0, even, step)]
    parts += [(slice(even, n), 1)] * (even < n)
    tops = np.empty((len(parts), inner), x.dtype)
    sums = np.empty((2, len(parts), inner))
    into = y if op == "softmax" else None

    def folded(array: np.ndarray, k: int) -> np.ndarray:
        """A part, in which elements of a column lie side by side."""
        part, count = parts[k]
        return array[part].reshape(-1, count * inner)

    def first(k: int) -> None:
        some = folded(x, k)
        found = np.empty(some.shape[1], x.dtype)
        compiled_rows.column_tops(some, 0, found)
        np.maximum.reduce(found.reshape(-1, inner), axis=0, out=tops[k])

    def second(k: int) -> None:
        some, target = folded(x, k), None if into is None else folded(into, k)
        found = np.empty((2, some.shape[1]))
        compiled_rows.column_powers(some, target, 0, np.tile(top, parts[k][1]), *found)
        np.add.reduce(found.reshape(2, -1, inner), axis=1, out=sums[:, k])

    def third(k: int) -> None:
        target, count = folded(y, k), parts[k][1]
        if into is not None:
            compiled_rows.column_times(target, 0, np.tile(factors, count))
        else:
            compiled_rows.column_lower(folded(x, k), target, 0, np.tile(top, count), np.tile(logs, count))

    share(first, range(len(parts)))
    top = reduce(np.maximum, tops)
    for i in np.flatnonzero(np.isinf(top)):
        top[i] += np.where(np.isnan(x[:, i]).any(), np.nan, 0)
    share(second, range(len(parts)))
    below, count = np.add.reduce(sums, axis=1)
    factors = (1 / (below + count)).astype(x.dtype)
    logs = compiled_rows.column_logarithms(below, count, top)
    if y.ndim == 1:
        y[:] = top + logs
    else:
        share(third, range(len(parts)))
