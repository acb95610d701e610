"""softmax and log_softmax of the host, in blocks that stay in cache, on several threads.

A block has whole rows, or parts of long ones, and is seen as (outer, n, inner), reduced over n (`exponentials`). How
arrays are shared out depends on shapes and strides alone, so the same call gives the same bits on any number of
threads. What the caller's ``np.errstate`` has to know is found in blocks, and reported once, at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..definition.task import Task
from ..plan.geometry import Shape, order
from .blocks import Index, convert, convert_masked, innermost, leave_out, memory
from .exponentials import LOGS, POWERS, SHARES, engine, run, sums
from .forms import merged_parts
from .results import deliver
from .row_forms import Form, cut, form, turned
from .threads import Share, alone, shared

#: Of NumPy and of compiled functions: bytes of a block; bytes side by side that it has of columns, and that those in
#: parts have; of how many blocks rows are worth more that are taken in parts; elements of rows, and of columns side by
#: side, up to which they are turned.
WITH_NUMPY, WITH_NUMBA = (2**20, 2**15, 2**15, 4, 64, 64), (2**21, 2**10, 2**15, 1, 16, 15)
FEW = 2**14  # elements up to which NumPy is faster without turning them
COST = 6  # of an element, beside that of reading it


class Piece(NamedTuple):
    """Some rows, or parts of rows: elements, the mask, and where the results go."""

    x: np.ndarray
    mask: np.ndarray | None
    y: np.ndarray

    def at(self, index: Index) -> Piece:
        return Piece(self.x[index], None if self.mask is None else self.mask[index], self.y[index])


def normalized(
    x: np.ndarray, out: np.ndarray | None = None, where: np.ndarray | None = None, *, task: Task, dtype: np.dtype
) -> Any:
    """Shares of sums of exponentials, or their logarithms, delivered as ``dtype``."""
    mask = None if where is None else np.broadcast_to(where, x.shape)
    apart = out is not None and not any(np.may_share_memory(out, each) for each in (x, mask) if each is not None)
    y = out if apart and out is not None else np.empty_like(x, dtype if out is None else out.dtype, subok=False)
    rows = Rows(task, x.size)
    rows.compute(Piece(x, mask, y))
    result = y if out is None or y is out else deliver(y, out)
    if rows.errors:
        rows.report(y.dtype)
    return result


class Rows:
    """What a call computes of rows."""

    def __init__(self, task: Task, size: int) -> None:
        (scale,), record = task.options.values(), task.bound.reduction
        self.bound, self.axis, self.val, self.scale = task.bound, task.axis, task.bound.val, task.bound.val.type(scale)
        self.op = LOGS if record.row is not None and record.row.log else SHARES
        self.engine = engine(size * self.val.itemsize)
        self.room, self.line, self.wide, self.most, *self.short = WITH_NUMBA if self.engine else WITH_NUMPY
        self.errors: set[str] = set()

    def compute(self, piece: Piece) -> None:
        """Compute rows in blocks: several, or, of those that are long, parts of them."""
        x, nbytes, room = piece.x, piece.x.size * self.val.itemsize, self.room
        if room // 2 < nbytes < 4 * room and innermost(x.shape, x.strides) in self.axis:
            room //= 2  # for more threads
        if nbytes <= room:
            return alone(self.whole, [piece] if nbytes else [])
        room, line, wide = (each // self.val.itemsize for each in (room, self.line, self.wide))
        whole, parts = cut(x.shape, x.strides, self.axis, room, line, self.most)
        if parts:
            whole, parts = cut(x.shape, x.strides, self.axis, room, wide, self.most)
        several = shared(COST * nbytes)
        share, within = (several, alone) if len(whole) > 1 else (alone, several)
        if parts:
            self.short = [self.short[0], 1] if self.engine else self.short
            return share(lambda index: self.parted(piece.at(index), parts, within), whole)
        return share(lambda index: self.whole(piece.at(index)), whole)

    def whole(self, piece: Piece) -> None:
        """Compute rows that are a block."""
        self.finish(piece, *self.values(piece))

    def parted(self, piece: Piece, parts: list[Index], share: Share) -> None:
        """Compute rows in parts. NumPy's powers wait where the results go, if they can."""
        pieces = [piece.at(index) for index in parts]
        found: list[Any] = [None] * len(parts)
        kept = [self.engine is None and self.op == SHARES and piece.y.dtype == self.val] * len(parts)

        def first(k: int) -> None:
            lying, x = self.values(pieces[k])
            y = lying.of(pieces[k].y) if kept[k] else x
            kept[k] = kept[k] and np.may_share_memory(y, pieces[k].y)
            top, others, at_top = run(None, POWERS, x, y) if kept[k] else sums(x)
            rest = np.where(np.isneginf(top), -1, others + (at_top - 1))
            found[k] = [lying.over(each, piece.x, self.axis) for each in (top, rest)]

        share(first, range(len(parts)))
        fields = merged_parts(self.bound.wide, [*map(np.stack, zip(*found, strict=True))])
        top, rest = self.bound.wide.finish(**dict(zip(self.bound.leaves_of["s"], fields, strict=True)))
        self.look(piece, top)
        last = 1 / (rest + 1) if self.op == SHARES else np.where(np.isposinf(top), 0, np.log1p(rest))

        def second(k: int) -> None:
            if not kept[k]:
                return self.finish(pieces[k], *self.values(pieces[k]), (top, last))
            y, factor = pieces[k].y, np.exp(found[k][0] - top) * last
            return self.store(pieces[k], np.multiply(y, factor.astype(self.val), out=y))

        return share(second, range(len(parts)))

    def lay(self, array: np.ndarray) -> tuple[Form, np.ndarray] | None:
        """An array's form, and itself in it."""
        found = form(array.shape, array.strides, array.itemsize, self.axis)
        return None if found is None else (found, found.of(array))

    def memory(self, name: str, like: np.ndarray, dims: Shape) -> tuple[np.ndarray, Form, np.ndarray]:
        """A thread's memory of an array's shape whose dims lie in an order, likewise."""
        into = memory(name, like.shape, self.val, dims)
        found = self.lay(into)
        assert found is not None
        return into, *found

    def values(self, piece: Piece) -> tuple[Form, np.ndarray]:
        """Elements times the scale, -inf where they are left out: as they lie in memory, or a copy."""
        x, mask = piece.x, piece.mask
        dims = turned(x.shape, x.strides, self.axis, *self.short)
        plain = mask is None and x.dtype == self.val and self.scale == 1
        if plain and (dims is None or x.size <= FEW) and (found := self.lay(x)):
            return found
        into, lying, values = self.memory("values", x, dims or order(x.strides))
        if mask is not None and self.scale == 1:
            convert_masked(x, mask, -np.inf, into)
            return lying, values
        convert(x, into)
        if self.scale != 1:
            np.multiply(into, self.scale, out=into)
        if mask is not None:
            leave_out(into, mask, -np.inf)
        return lying, values

    def finish(self, piece: Piece, lying: Form, x: np.ndarray, last: tuple[Any, Any] | None = None) -> None:
        """The results of softmax or log_softmax, where they go; of parts, given the greatest element of their rows, and
        by what its powers are multiplied, or what is subtracted from its elements less the greatest."""
        made, known = piece.y, None
        if made.dtype == self.val and (found := self.lay(made)) and found[0][:2] == lying[:2]:
            y = found[1]
        else:
            made, _, y = self.memory("results", made, lying.dims)
        if last is not None:
            known = np.stack([lying.of(each)[:, 0] for each in last])
        states = run(self.engine, self.op, x, y, known)
        if known is None and np.isinf(states[0]).any():
            self.look(piece, lying.over(states[0], piece.x, self.axis))
        self.store(piece, made)

    def store(self, piece: Piece, made: np.ndarray) -> None:
        """Results where they go, and those that are left out."""
        y = piece.y
        if piece.mask is not None:
            leave_out(made, piece.mask, 0 if self.op == SHARES else -np.inf)
        if made is not y:
            convert(made, y)
            if self.op == LOGS and y.dtype.kind == "f" and y.itemsize < made.itemsize:
                self.errors |= {"over"} if np.isinf(y).sum() != np.isinf(made).sum() else set()

    def look(self, piece: Piece, top: np.ndarray) -> None:
        """Notice rows of which infinity is subtracted from infinity."""
        infinite = np.isinf(top)
        if piece.mask is not None and infinite.any():
            infinite = infinite & piece.mask.any(axis=self.axis, keepdims=True)
        self.errors |= {"invalid"} if infinite.any() else set()

    def report(self, dtype: np.dtype) -> None:
        """Tell of errors as the caller's ``np.errstate`` says, each once."""
        if "invalid" in self.errors:
            np.subtract([np.inf], [np.inf])
        if "over" in self.errors:
            np.finfo(self.val).max.reshape(1).astype(dtype)
