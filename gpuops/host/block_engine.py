"""softmax, log_softmax and logsumexp of the host, in blocks that stay in cache, on several threads.

NumPy computes them in several passes over a block; or, of larger arrays, functions that Numba compiles, if it is
installed. What they compute is what `numpy_engine` defines. How they share it out depends on shapes and strides alone,
so the same call gives the same bits on any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from ..plan.geometry import Shape, order
from . import numpy_engine, results
from .blocks import Index, compiled, convert, convert_masked, indices, innermost, leave_out, memory
from .threads import Share, alone, shared


class Sizes(NamedTuple):
    """How arrays are shared out."""

    block: int  # bytes of a block, of which a thread has two or three in its cache
    line: int  # bytes next to each other in memory that a block has at least, if there are so many
    parts: int  # blocks of which a row, or some side by side, has to be worth more, before it is taken in parts


NUMPY = Sizes(2**19, 2**15, 4)
WITH_NUMBA = Sizes(2**21, 2**10, 1)  # whose functions go over a block once
SHORT = 64  # elements of rows that are turned, so that NumPy goes along many of them at a time
COMPILED = 2**16  # bytes from which on compiled functions are used
COST = 6  # of an element, beside that of reading it
CERTAIN = 1.125  # a sum of powers, the greatest of which is 1, from which on hardly a digit of the others is lost in it


def cut(x: np.ndarray, axis: Shape, itemsize: int, sizes: Sizes) -> tuple[list[Index], list[Index]]:
    """How an array is shared out: indices of rows along ``axis`` that are taken together, as they lie in memory; and of
    parts of rows, if they are too long for a block."""
    length, room = math.prod([x.shape[d] for d in axis]), sizes.block // itemsize
    kept = [d for d in range(x.ndim) if d not in axis]
    least = 1 if innermost(x.shape, x.strides) in axis else sizes.line // itemsize
    rows = indices(x.shape, x.strides, kept, max(1, room // length, least))
    together = math.prod([rows[0][d].stop for d in kept])
    if together * length <= sizes.parts * room:
        return rows, []
    return rows, indices(x.shape, x.strides, axis, max(1, room // together))


class Piece(NamedTuple):
    """Some rows, or parts of rows: elements, the mask, and where the results go."""

    x: np.ndarray
    mask: np.ndarray | None
    y: np.ndarray

    def at(self, index: Index, over: Index | None = None) -> Piece:
        """A part of it; ``over`` is the index of the results, if that is another one."""
        return Piece(self.x[index], None if self.mask is None else self.mask[index], self.y[over or index])


@lru_cache(maxsize=64)
def layout(shape: Shape, strides: Shape, axis: Shape) -> tuple[Shape, bool]:
    """The order of dims in memory: as an array has them, or turned, so that NumPy goes along many elements at a time
    where rows are short, or few lie side by side."""
    dims, length = order(strides), math.prod([shape[d] for d in axis])
    along = innermost(shape, strides) in axis
    apart = "k" in "".join("n" if d in axis else "k" for d in dims if shape[d] > 1).strip("k")
    turned = apart or (length if along else math.prod(shape) // length) <= SHORT
    return tuple(sorted(dims, key=lambda d: (d in axis) == (length > SHORT))) if turned else dims, turned


class Rows:
    """What is computed of an array's rows along ``axis``, in ``val``: softmax, or, if ``log``, the logarithms of
    log_softmax and logsumexp."""

    def __init__(self, op: str, x: np.ndarray, axis: Shape, val: np.dtype, scale: float) -> None:
        self.op, self.axis, self.val, self.scale, self.log = op, axis, val, scale, op != "softmax"
        self.engine = compiled("compiled_engine") if x.size * val.itemsize >= COMPILED else None

    def memory(self, x: np.ndarray, name: str = "lowered") -> np.ndarray:
        """A thread's memory for elements in ``val``, of one layout for all blocks."""
        dims, _ = layout(x.shape, x.strides, self.axis)
        return memory(name, x.shape, self.val, dims)

    def values(self, piece: Piece, into: np.ndarray) -> np.ndarray:
        """Elements times the scale, -inf where the mask leaves them out: in memory, or where they are."""
        x = piece.x
        if x.dtype == self.val and self.scale == 1 and piece.mask is None and into.strides == x.strides:
            return x
        if piece.mask is not None and self.scale == 1:
            convert_masked(x, piece.mask, -np.inf, into)
            return into
        convert(x, into)
        if self.scale != 1:
            np.multiply(into, self.val.type(self.scale), out=into)
        if piece.mask is not None:
            leave_out(into, piece.mask, -np.inf)
        return into

    def top(self, values: np.ndarray) -> Any:
        return np.maximum.reduce(values, axis=self.axis, keepdims=True)

    def lowered(self, piece: Piece, into: np.ndarray, top: np.ndarray) -> np.ndarray:
        """The same less their row's maximum."""
        return np.subtract(self.values(piece, into), top, out=into)

    def total(self, values: np.ndarray) -> Any:
        return np.add.reduce(values, axis=self.axis, keepdims=True)

    def logarithm(self, total: np.ndarray, top: np.ndarray, lowered: Iterable[np.ndarray]) -> np.ndarray:
        """The logarithms of sums of powers, the greatest of which are 1. Where these are almost all, the others keep
        their digits, however small they are: they are added up once more, from parts of rows."""
        made: np.ndarray = np.log(total)
        few = ~(total >= CERTAIN)
        if few.any():
            dims = [*(d for d in range(few.ndim) if d not in self.axis), *self.axis]
            chosen = np.squeeze(few, self.axis)
            others, count = np.zeros((), self.val), np.zeros((), np.int64)
            for part in lowered:
                rows = part.transpose(dims)[chosen]
                greatest, over = rows == 0, tuple(range(1, rows.ndim))
                others = others + np.add.reduce(np.where(greatest, 0, np.exp(rows)), axis=over)
                count = count + np.count_nonzero(greatest, axis=over)
            made[few] = np.log1p(others + (count - 1).astype(self.val))
            made[np.isposinf(top)] = 0
        return made

    def finish(self, piece: Piece, made: np.ndarray, total: np.ndarray) -> None:
        """The results: powers over their sum, or lowered elements less the logarithm of that."""
        if self.log:
            np.subtract(made, total, out=made)
        else:
            np.divide(made, total, out=made)
        self.store(piece, made)

    def store(self, piece: Piece, made: np.ndarray) -> None:
        """The results where they go, and those that the mask leaves out."""
        if piece.mask is not None:
            leave_out(made, piece.mask, -np.inf if self.log else 0)
        if made is not piece.y:
            convert(made, piece.y)

    def compiled(self, piece: Piece) -> bool:
        """Have compiled functions make the results of whole rows, with threads, if they can without copies."""
        plain = piece.x.dtype == self.val == piece.y.dtype and piece.mask is None and self.scale == 1
        return self.engine is not None and plain and self.engine.compute(self.op, piece.x, piece.y, self.axis)

    def compiled_block(self, piece: Piece) -> bool:
        """The same of a block, by way of memory."""
        if self.engine is None:
            return False
        into, made = self.memory(piece.x), piece.y
        values, reduced = self.values(piece, into), made.shape != piece.x.shape
        if not reduced and (made.dtype != self.val or made.strides != into.strides):
            made = self.memory(piece.x, "power")
        if not self.engine.compute(self.op, values, made, self.axis, alone):
            return False
        if not reduced:
            self.store(piece, made)
        return True

    def sums(self, piece: Piece, into: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of rows that are a block: what `finish` takes, made in memory, and each row's maximum."""
        values = self.values(piece, into)
        top = self.top(values)
        lowered = np.subtract(values, top, out=into)
        if not self.log:
            power = np.exp(lowered, out=lowered)
            return power, self.total(power), top
        total = self.total(np.exp(lowered, out=self.memory(piece.x, "power")))
        return lowered, self.logarithm(total, top, [lowered]), top

    def stores(self, part: Piece) -> bool:
        """Whether the powers of a part wait for their sum where the results go."""
        return not self.log and part.y.dtype == self.val

    def sums_of_parts(self, parts: list[Piece], share: Share) -> tuple[np.ndarray, np.ndarray]:
        """The same of rows in parts: sums or their logarithms, and maxima."""
        tops: list[Any] = [None] * len(parts)
        totals: list[Any] = [None] * len(parts)

        def first(k: int) -> None:
            tops[k] = self.top(self.values(parts[k], self.memory(parts[k].x)))

        def second(k: int) -> None:
            into = parts[k].y if self.stores(parts[k]) else self.memory(parts[k].x)
            lowered = self.lowered(parts[k], into, top)
            totals[k] = self.total(np.exp(lowered, out=lowered))

        share(first, range(len(parts)))
        top = reduce(np.maximum, tops)
        share(second, range(len(parts)))
        total = reduce(np.add, totals)
        if self.log:
            total = self.logarithm(total, top, (self.lowered(p, self.memory(p.x), top) for p in parts))
        return total, top


def raised(top: np.ndarray, logarithms: np.ndarray) -> np.ndarray:
    """The logarithm of a sum of powers, given that of the powers relative to the greatest."""
    return np.where(np.isinf(top), top, top + logarithms)


# ------------------------------------------------------------------------------------------------------------- the ops


def softmax(
    x: np.ndarray, out: np.ndarray | None = None, where: np.ndarray | None = None, *, op: str, axis: Shape,
    val: np.dtype, dtype: np.dtype, scale: float,
) -> Any:  # fmt: skip
    """softmax or log_softmax computed in ``val`` and delivered as ``dtype``."""
    if x.size == 0 or x.ndim == 0:
        return numpy_engine.softmax(x, out, where, op=op, axis=axis, val=val, dtype=dtype, scale=scale)
    mask = None if where is None else np.broadcast_to(where, x.shape)
    apart = out is not None and not any(np.may_share_memory(out, each) for each in (x, mask) if each is not None)
    y = out if apart and out is not None else np.empty_like(x, dtype if out is None else out.dtype, subok=False)
    rows, piece = Rows(op, x, axis, val, scale), Piece(x, mask, y)

    def whole(piece: Piece) -> None:
        if rows.compiled_block(piece):
            return
        turned = layout(piece.x.shape, piece.x.strides, axis)[1]
        into = rows.memory(piece.x) if turned or piece.y.dtype != val else piece.y
        made, total, _ = rows.sums(piece, into)
        rows.finish(piece, made, total)

    def parted(parts: list[Piece], share: Share) -> None:
        total, top = rows.sums_of_parts(parts, share)

        def last(part: Piece) -> None:
            if rows.stores(part):
                return rows.finish(part, part.y, total)
            lowered = rows.lowered(part, part.y if part.y.dtype == val else rows.memory(part.x), top)
            return rows.finish(part, lowered if rows.log else np.exp(lowered, out=lowered), total)

        share(last, parts)

    if not rows.compiled(piece):
        over_blocks(rows, piece, whole, parted)
    return y if out is None or y is out else results.deliver(y, out)


def logsumexp(
    a: np.ndarray, b: np.ndarray | None = None, out: np.ndarray | None = None, where: np.ndarray | None = None, *,
    dtype: np.dtype, keepdims: bool, shape: Shape, **options: Any,
) -> Any:  # fmt: skip
    """log(sum(exp(a * scale))) over ``axis``; with weights as `numpy_engine` defines it."""
    if b is not None or options["return_sign"] or a.size == 0 or a.ndim == 0:
        options |= {"dtype": dtype, "keepdims": keepdims, "shape": shape}
        return numpy_engine.logsumexp(a, b, out, where, **options)
    rows = Rows("logsumexp", a, options["axis"], options["val"], options["scale"])
    mask = None if where is None else np.broadcast_to(where, a.shape)
    y = results.new_result(a, rows.axis, rows.val)[0]

    piece = Piece(a, mask, y)

    def whole(piece: Piece) -> None:
        if rows.compiled_block(piece):
            return
        _, total, top = rows.sums(piece, rows.memory(piece.x))
        piece.y[...] = raised(top, total)

    def parted(parts: list[Piece], share: Share) -> None:
        total, top = rows.sums_of_parts(parts, share)
        parts[0].y[...] = raised(top, total)

    if not rows.compiled(piece):
        over_blocks(rows, piece, whole, parted)
    value = (y if keepdims else np.squeeze(y, rows.axis)[()]).astype(dtype if out is None else out.dtype)
    return results.deliver(value, out)


def over_blocks(
    rows: Rows, piece: Piece, whole: Callable[[Piece], None], parted: Callable[[list[Piece], Share], None]
) -> None:
    """Make the results of rows: of blocks of them, or of those that are long in parts."""
    sizes = WITH_NUMBA if rows.engine else NUMPY
    if piece.x.size * rows.val.itemsize <= sizes.block:
        return alone(whole, [piece])
    blocks, parts = cut(piece.x, rows.axis, rows.val.itemsize, sizes)
    reduced = piece.y.shape != piece.x.shape  # a result for each row
    several = shared(COST * piece.x.size * rows.val.itemsize)
    share, within = (several, alone) if len(blocks) > 1 else (alone, several)

    def block(index: Index) -> None:
        mine = piece.at(index)
        if parts:
            parted([mine.at(part, (...,) if reduced else part) for part in parts], within)
        else:
            whole(mine)

    return share(block, blocks)
