"""softmax, log_softmax and logsumexp of the host, in blocks that stay in cache, on several threads.

A block has whole rows, or parts of long ones, and is seen as (outer, n, inner), reduced over n. NumPy goes over it
a few times; functions that Numba compiles go once, if it is installed and the array is not small (`compiled_rows`).
What they compute is what `definition_of_rows` defines. How arrays are shared out depends on shapes and strides alone,
so the same call gives the same bits on any number of threads. What the caller's ``np.errstate`` has to know is found in
blocks, and reported once, at the end.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..plan.geometry import Shape, order
from . import definition_of_rows as definition
from .blocks import Index, compiled, convert, convert_masked, innermost, leave_out, memory
from .definition_of_rows import State
from .results import deliver, new_result
from .row_forms import Form, cut, form, turned
from .threads import Share, alone, shared

#: Of NumPy and of compiled functions: bytes of a block; bytes side by side that it has of columns, and that those in
#: parts have; of how many blocks rows are worth more that are taken in parts; elements of rows, and of columns side by
#: side, up to which they are turned.
WITH_NUMPY, WITH_NUMBA = (2**20, 2**15, 2**15, 4, 64, 64), (2**21, 2**10, 2**15, 1, 16, 15)
COMPILED = 2**16  # bytes from which on compiled functions are used
#: What is made of a block: each element's share of the sum of powers, the logarithms of these, that of the sum; states,
#: also such as keep powers, or of powers with weights.
SHARES, LOGS, SUM, STATES, POWERS, WEIGHTED = "shares", "logs", "sum", "states", "powers", "weighted"
FEW = 2**14  # elements up to which NumPy is faster without turning them
FOLDED = 512  # elements side by side into which columns in parts are folded
COST = 6  # of an element, beside that of reading it
CERTAIN = 0.125  # how far a sum of powers is from 1 where those below the greatest lose hardly a digit in it


class Piece(NamedTuple):
    """Some rows, or parts of rows: elements, the mask, weights, and where the results go."""

    x: np.ndarray
    mask: np.ndarray | None
    weights: np.ndarray | None
    results: tuple[np.ndarray, ...]  # of logsumexp the logarithms and, perhaps, their signs

    def at(self, index: Index) -> Piece:
        mask, weights = (None if each is None else each[index] for each in (self.mask, self.weights))
        return Piece(self.x[index], mask, weights, tuple([each[index] for each in self.results]))


class Rows:
    """What is computed in ``val`` of the rows along ``axis``."""

    def __init__(self, op: str, piece: Piece, axis: Shape, val: np.dtype, scale: float) -> None:
        self.op, self.axis, self.val, self.scale = op, axis, val, val.type(scale)
        large = piece.x.size * val.itemsize >= COMPILED
        self.engine: ModuleType | None = compiled("compiled_rows") if large else None
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
        lying, x = self.values(piece)
        if self.op != SUM:
            self.finish(piece, lying, x)
        elif len(piece.results) > 1:
            self.reduce(piece, self.state(piece, lying, x))
        else:
            y = np.empty((x.shape[0], 1, x.shape[2]), self.val)
            self.block(SUM, lying, x, y, lying)
            self.reduce(piece, (lying.over(y, piece.x, self.axis),))

    def reduce(self, piece: Piece, found: tuple[np.ndarray, ...]) -> None:
        """The results of logsumexp."""
        for y, each in zip(piece.results, found, strict=True):
            y[...] = each

    def parted(self, piece: Piece, parts: list[Index], share: Share) -> None:
        """Compute rows in parts. NumPy's powers wait where the results go, if they can."""
        pieces = [piece.at(index) for index in parts]
        found: list[Any] = [None] * len(parts)
        kept = [self.engine is None and self.op == SHARES and piece.results[0].dtype == self.val] * len(parts)

        def first(k: int) -> None:
            lying, x = self.values(pieces[k])
            y = lying.of(pieces[k].results[0]) if kept[k] else x
            kept[k] = kept[k] and np.may_share_memory(y, pieces[k].results[0])
            found[k] = self.state(pieces[k], lying, x, y if kept[k] else None)

        share(first, range(len(parts)))
        state = definition.merged_state(State(*map(np.stack, zip(*found, strict=True))), 0)
        state = State(*[each[0] for each in state])
        if self.op == SUM:
            return self.reduce(piece, state if len(piece.results) > 1 else definition.logarithm(state)[:1])
        self.look(piece, state.top)
        last = 1 / (state.others + state.at_top) if self.op == SHARES else definition.logs(state)

        def second(k: int) -> None:
            if not kept[k]:
                return self.finish(pieces[k], *self.values(pieces[k]), (state.top, last))
            (y,), factor = pieces[k].results, np.exp(found[k].top - state.top) * last
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
        if piece.weights is not None and not (chosen := piece.weights != 0).all():
            mask = chosen if mask is None else mask & chosen
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

    def state(self, piece: Piece, lying: Form, x: np.ndarray, powers: np.ndarray | None = None) -> State:
        """The states of a block, with its dims. Powers may be kept."""
        op, target, y = (STATES, lying, x) if powers is None else (POWERS, lying, powers)
        if (weights := piece.weights) is not None:
            op, found = WEIGHTED, self.lay(weights) if weights.dtype == self.val else None
            if found is None or found[0][:2] != lying[:2]:
                into, target, y = self.memory("weights", weights, lying.dims)
                convert(weights, into)
            else:
                target, y = found
        states = self.block(op, lying, x, y, target)
        if self.engine and (few := np.isposinf(states[0])).any():
            exact(x, State(*states[:, :, None]), y if op == WEIGHTED else None, few)
        return State(*[lying.over(each, piece.x, self.axis) for each in states])

    def finish(self, piece: Piece, lying: Form, x: np.ndarray, last: tuple[Any, Any] | None = None) -> None:
        """The results of softmax or log_softmax, where they go; of parts, given the greatest element of their rows, and
        by what its powers are multiplied, or what is subtracted from its elements less the greatest."""
        (made,), known = piece.results, None
        if made.dtype == self.val and (found := self.lay(made)) and found[0][:2] == lying[:2]:
            target, y = found
        else:
            made, target, y = self.memory("results", made, lying.dims)
        if last is not None:
            known = np.stack([lying.of(each)[:, 0] for each in last])
        states = self.block(self.op, lying, x, y, target, known)
        if known is None and np.isinf(states[0]).any():
            self.look(piece, lying.over(states[0], piece.x, self.axis))
        self.store(piece, made)

    def store(self, piece: Piece, made: np.ndarray) -> None:
        """Results where they go, and those that are left out."""
        (y,) = piece.results
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

    def block(
        self, op: str, lying: Form, x: np.ndarray, y: np.ndarray, target: Form, known: np.ndarray | None = None
    ) -> Any:
        """The states of a block, (3, outer, inner), or what `finish` is given, if that is known; and the results of an
        op in y, which has weights if the states are weighted."""
        if self.engine is None:
            return numpy_block(op, x, y, known)
        outer, n, inner = x.shape
        folds = FOLDED // inner if (outer, lying.pitch, target.pitch) == (1, inner, inner) and inner > 1 else 1
        if 1 < folds <= n and (known is not None or op in (STATES, WEIGHTED)):
            return self.folded(op, x, y, known, folds)
        states = np.empty((3, outer, inner)) if known is None else np.ascontiguousarray(known, np.float64)
        function, width, shape = self.engine.columns, inner, states.shape
        if inner == 1:
            function, width, shape = self.engine.rows, n, (-1, outer)
        code = self.engine.OPS[op]
        function(code, lying.lines(x), target.lines(y), width, states.reshape(shape), known is not None)
        return states

    def folded(self, op: str, x: np.ndarray, y: np.ndarray, known: np.ndarray | None, folds: int) -> Any:
        """The same of narrow columns, of which so many elements are side by side; and of those that are left."""
        n, inner = x.shape[1:]
        even, found = n - n % folds, []
        for part, times in [(slice(even), folds)] + [(slice(even, n), 1)] * (even < n):
            a, b = (each[:, part].reshape(1, -1, times * inner) for each in (x, y))
            wide = Form((), a.shape, times * inner)
            states = self.block(op, wide, a, b, wide, None if known is None else np.tile(known, times))
            found.append(states.reshape(-1, times, inner))
        if known is not None:
            return known
        return np.stack(definition.merged_state(State(*np.concatenate(found, axis=1)), 0))


def numpy_block(op: str, x: np.ndarray, y: np.ndarray, known: np.ndarray | None) -> Any:
    """What `Rows.block` does, with NumPy's functions."""
    if known is not None:
        top, last = known[:, :, None].astype(x.dtype)
        np.subtract(x, top, out=y)
        return np.multiply(np.exp(y, out=y), last, out=y) if op == SHARES else np.subtract(y, last, out=y)
    lowered = y if op in (SHARES, LOGS, POWERS) else memory("powers", x.shape, x.dtype, (0, 1, 2))
    powers = memory("powers", x.shape, x.dtype, (0, 1, 2)) if op == LOGS else lowered
    top = np.maximum.reduce(x, axis=1, keepdims=True)
    np.exp(np.subtract(x, top, out=lowered), out=powers)
    if op == WEIGHTED:
        np.multiply(powers, y, out=powers)
    total = np.add.reduce(powers, axis=1, keepdims=True)
    if op == SHARES:
        np.divide(y, total, out=y)
        return top[:, 0], total[:, 0]
    state = State(top, total, np.zeros_like(top))
    last = np.log(total) if op in (LOGS, SUM) else top
    few = ~((total if op != WEIGHTED else np.abs(total - 1) + 1) >= 1 + CERTAIN)
    if op != POWERS and few.any():
        exact(x, state, y if op == WEIGHTED else None, few[:, 0])
        last = np.where(few, definition.logs(state), last)
    if op == LOGS:
        np.subtract(lowered, last, out=y)
    elif op == SUM:
        np.add(top, last, out=y)
    return [each[:, 0] for each in state]


def exact(x: np.ndarray, state: State, weights: np.ndarray | None, few: np.ndarray) -> None:
    """Add up the powers of a few rows once more: apart, where a sum of all would lose digits of those below the
    greatest; and where that is infinite."""
    rows, top = x.transpose(0, 2, 1)[few], state.top[:, 0][few][:, None]
    factors = 1 if weights is None else weights.transpose(0, 2, 1)[few]
    greatest, power = rows == top, np.exp(rows - top) * factors
    state.others[:, 0][few] = np.where(greatest & (top < np.inf), 0, power).sum(axis=1)
    state.at_top[:, 0][few] = np.where(greatest, factors, 0).sum(axis=1)


# ------------------------------------------------------------------------------------------------------------- the ops


def softmax(
    x: np.ndarray, out: np.ndarray | None = None, where: np.ndarray | None = None, *, axis: Shape, val: np.dtype,
    dtype: np.dtype, scale: float, log: bool = False,
) -> Any:  # fmt: skip
    """softmax, or its logarithm, computed in ``val`` and delivered as ``dtype``."""
    mask = None if where is None else np.broadcast_to(where, x.shape)
    apart = out is not None and not any(np.may_share_memory(out, each) for each in (x, mask) if each is not None)
    y = out if apart and out is not None else np.empty_like(x, dtype if out is None else out.dtype, subok=False)
    piece = Piece(x, mask, None, (y,))
    rows = Rows(LOGS if log else SHARES, piece, axis, val, scale)
    rows.compute(piece)
    result = y if out is None or y is out else deliver(y, out)
    if rows.errors:
        rows.report(y.dtype)
    return result


def log_softmax(*arrays: Any, **options: Any) -> Any:
    """The same, of the logarithm."""
    return softmax(*arrays, **options, log=True)


def logsumexp(
    a: np.ndarray, b: np.ndarray | None = None, out: np.ndarray | None = None, where: np.ndarray | None = None, *,
    axis: Shape, val: np.dtype, scale: float, shape: Shape, return_sign: bool, **options: Any,
) -> Any:  # fmt: skip
    """log(sum(b * exp(a * scale))) over ``axis``; with ``return_sign`` of the sum's magnitude, and its sign."""
    x = np.broadcast_to(a, shape) if a.shape != shape else a
    if b is not None and x.size <= FEW // 4:
        options |= {"axis": axis, "val": val, "scale": scale, "shape": shape, "return_sign": return_sign}
        return definition.logsumexp(a, b, out, where, **options)
    number = None if b is None or b.size > 1 else b.astype(val)
    where = np.zeros((), bool) if number == 0 else where
    mask, weights = (None if each is None else np.broadcast_to(each, shape) for each in (where, b))
    count = 1 if b is None and not return_sign else 3  # of logarithms, or of the states that they are made of
    if x.flags.c_contiguous:
        made = np.empty((count, *[1 if d in axis else n for d, n in enumerate(shape)]), val)
    else:
        made = new_result(x, axis, val, count)
    made[0], made[1:] = -np.inf, 0
    piece = Piece(x, mask, None if number is not None else weights, tuple([made[k, ...] for k in range(count)]))
    Rows(SUM, piece, axis, val, scale).compute(piece)
    if number is not None:
        made[1:] *= number
    found = definition.logarithm(State(*made)) if count > 1 else (made[0],)
    return definition.delivered(x, found, out, axis=axis, return_sign=return_sign, **options)
