"""softmax, log_softmax and logsumexp of the host with the compiled functions of `compiled_rows`, on several threads.

What they compute is what `numpy_engine` defines. How arrays are shared out depends on shapes and strides alone, so the
same call gives the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..plan.geometry import Shape
from . import blocks, compiled_rows
from .threads import Share, shared

NARROW = 16  # elements of rows, or side by side, below which loops over them do not pay
TASK = 2**20  # bytes of the rows that a thread takes at a time
LONG = 2**22  # bytes of rows, taken together, from which on they are shared out in parts
PART = 2**18  # elements of a part
TILE = 2**20  # bytes of columns that are taken together, if that is within
TILE_WIDTHS = (512, 4096)  # elements side by side
FOLDED = 512  # elements side by side, into which narrow columns are folded
COST = 4  # of an element, beside that of reading it
#: By op, and whether elements lie side by side.
FUNCTIONS = {
    (op, side_by_side): getattr(compiled_rows, f"{op}_{'columns' if side_by_side else 'rows'}")
    for op in ("softmax", "log_softmax", "logsumexp") for side_by_side in (False, True)
}  # fmt: skip


def compute(op: str, x: np.ndarray, y: np.ndarray, axis: Shape, share: Share | None = None) -> bool:
    """Compute an op of an array without gaps, if that needs no copy.

    The result goes into y, which lies as x, or has one element for each row. Threads share large arrays, unless the
    caller says how they are shared.
    """
    found, reduced = blocks.seen(x.shape, x.strides, x.itemsize, axis), y.shape != x.shape
    if found is None or not (reduced or y.strides == x.strides):
        return False
    x3 = x.transpose(found.dims).reshape(found.lengths)
    y3 = np.empty(found.lengths[::2], y.dtype) if reduced else y.transpose(found.dims).reshape(found.lengths)
    if not shared_out(op, x3, y3, share or shared(COST * x.nbytes)):
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


class Parts:
    """Columns, (n, inner), in parts of their length, which threads share.

    Of narrow columns some elements of each lie side by side in a part.
    """

    def __init__(self, shape: Shape, share: Share) -> None:
        n, inner = shape
        folds = max(1, FOLDED // inner)
        even, step = n - n % folds, max(1, PART // (inner * folds)) * folds
        self.parts = [(slice(start, min(start + step, even)), folds) for start in range(0, even, step)]
        self.parts += [(slice(even, n), 1)] * (even < n)
        self.inner, self.share = inner, share

    def each(self, function: Callable[[int], None]) -> None:
        """Call a function for each part."""
        self.share(function, range(len(self.parts)))

    def of(self, array: np.ndarray, k: int) -> np.ndarray:
        """A part of an array."""
        part, folds = self.parts[k]
        return array[part].reshape(-1, folds * self.inner)

    def repeat(self, values: np.ndarray, k: int) -> np.ndarray:
        """Numbers of columns, for all of their elements that lie side by side in a part."""
        return np.tile(values, self.parts[k][1])

    def tops(self, x: np.ndarray) -> np.ndarray:
        """The greatest elements; where one is infinite, NaN if there is one."""
        tops = np.empty((len(self.parts), self.inner), x.dtype)

        def compute(k: int) -> None:
            part = self.of(x, k)
            found = np.empty(part.shape[1], x.dtype)
            compiled_rows.column_tops(part, 0, found)
            np.maximum.reduce(found.reshape(-1, self.inner), axis=0, out=tops[k])

        self.each(compute)
        top: np.ndarray = np.maximum.reduce(tops, axis=0)
        for i in np.flatnonzero(np.isinf(top)):
            top[i] = np.nan if np.isnan(x[:, i]).any() else top[i]
        return top

    def powers(self, x: np.ndarray, y: np.ndarray | None, top: np.ndarray) -> np.ndarray:
        """The sums of powers, which go into y, unless that is None: of those below the greatest, and their number."""
        sums = np.empty((2, len(self.parts), self.inner))

        def compute(k: int) -> None:
            part, target = self.of(x, k), None if y is None else self.of(y, k)
            found = np.empty((2, part.shape[1]))
            compiled_rows.column_powers(part, target, 0, self.repeat(top, k), *found)
            np.add.reduce(found.reshape(2, -1, self.inner), axis=1, out=sums[:, k])

        self.each(compute)
        return np.add.reduce(sums, axis=1)  # type: ignore[no-any-return]


def in_parts(op: str, x: np.ndarray, y: np.ndarray, share: Share) -> None:
    """Compute an op of columns, (n, inner), that are shared out in parts of their length."""
    parts = Parts(x.shape, share)
    top = parts.tops(x)
    below, count = parts.powers(x, y if op == "softmax" else None, top)
    if op == "softmax":
        factors = (1 / (below + count)).astype(x.dtype)
        return parts.each(lambda k: compiled_rows.column_times(parts.of(y, k), 0, parts.repeat(factors, k)))
    logs = compiled_rows.column_logarithms(below, count, top)
    if op == "logsumexp":
        y[:] = top + logs
        return None
    repeat = parts.repeat
    return parts.each(
        lambda k: compiled_rows.column_lower(parts.of(x, k), parts.of(y, k), 0, repeat(top, k), repeat(logs, k))
    )
