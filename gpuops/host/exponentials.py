"""Sums of exponentials of blocks, seen as (outer, n, inner): with NumPy, or by functions that Numba compiles.

A sum is kept in three parts: the greatest element, the sum of exp(x - greatest) over the elements below it, and the
number of elements equal to it. Apart from each other neither loses digits, however small they are.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from ..plan.geometry import Shape
from .block import Block
from .blocks import compiled, leave_out, memory

COMPILED = 2**16  # bytes from which on compiled functions are used
SHORT = 64  # elements of rows that NumPy is given as columns, and of lines of columns that it is given as longer ones
FOLDED = 512  # elements side by side into which narrow columns are folded
CERTAIN = 0.125  # how far a sum is from 1 where the exponentials below the greatest lose hardly a digit in it
#: What is made of a block: each element's share of the sum, the logarithms of these; sums alone, also such as keep the
#: exponentials, or of exponentials with weights.
SHARES, LOGS, SUMS, POWERS, WEIGHTED = "shares", "logs", "sums", "powers", "weighted"


def exponentials(block: Block, options: dict[str, float]) -> tuple[Any, ...]:
    """The states of LOGSUMEXP, or of its kin with weights, one of which may be for all elements."""
    weights: Any
    acc, weights, mask, factor = block.bound.kinds["A"], block.other, block.mask, None
    if weights is not None and not any(weights.strides):
        factor, weights = acc.type(weights[(0,) * weights.ndim]), None
        mask = mask if factor else np.broadcast_to(False, block.x.shape)
    if weights is not None and not (chosen := weights != 0).all():
        mask = chosen if mask is None else mask & chosen
    if weights is not block.other or mask is not block.mask:
        block = Block(block.bound, (block.x, weights, mask), block.axis)
    y = None if weights is None else block.seen(weights, acc, "other")
    top, others, at_top = sums(scaled(block, options["scale"]), y)
    if (nothing := np.isneginf(top)).any():
        others[nothing] = at_top[nothing] = 0
    if block.bound.y is None:
        return top, others + (at_top - 1)
    return (top, at_top, others) if factor is None else (top, at_top * factor, others * factor)


def scaled(block: Block, scale: float) -> np.ndarray:
    """The elements times the scale, -inf where they are left out."""
    acc = block.bound.kinds["A"]
    if scale == 1:
        return block.filled(-np.inf)
    x = np.multiply(block.seen(block.x, acc, "source"), acc.type(scale), out=memory("scaled", *of(block, acc)))
    if block.taken is not None:
        leave_out(x, block.taken, -np.inf)
    return x


def of(block: Block, dtype: np.dtype) -> tuple[Shape, np.dtype, Shape]:
    """The shape, dtype and order of dims of memory for a block."""
    return block.layout.lengths, dtype, (0, 1, 2)


def engine(nbytes: int) -> ModuleType | None:
    """The compiled functions, if an array is worth them."""
    return compiled("compiled_rows") if nbytes >= COMPILED else None


def sums(x: Any, weights: Any = None) -> Any:
    """The sums of a block's exponentials: (3, outer, inner)."""
    functions, (outer, n, inner) = engine(x.nbytes), x.shape
    if functions is None and inner == 1 and n <= SHORT <= outer:
        turned = [None if each is None else np.array(each.transpose(2, 1, 0), order="C") for each in (x, weights)]
        return sums(*turned).reshape(3, outer, 1)
    made = run(functions, SUMS if weights is None else WEIGHTED, x, x if weights is None else weights)
    if functions is not None and not np.isfinite(made[:2]).all():
        made[0][np.isnan(made[1]) & np.isfinite(made[0])] = np.nan  # compiled functions look for NaN among infinities
        exact(x, made, weights, np.isposinf(made[0]))
    return made


def run(functions: ModuleType | None, op: str, x: np.ndarray, y: np.ndarray, known: Any = None) -> Any:
    """What an op makes of a block: sums (3, outer, inner), unless the greatest elements and the last steps are known;
    and results in y, which holds the weights of those that have some."""
    (outer, n, inner), alone = x.shape, known is None and op in (SUMS, WEIGHTED)
    narrow = outer == 1 and inner > 1 and (inner < SHORT and alone if functions is None else alone or known is not None)
    folds = FOLDED // inner if narrow and x[0].flags.c_contiguous and y[0].flags.c_contiguous else 1
    if 1 < folds <= n:
        return folded(functions, op, x, y, known, folds)
    if functions is None:
        return by_numpy(op, x, y, known)
    made = np.empty((3, outer, inner)) if known is None else np.ascontiguousarray(known, np.float64)
    function, width, shape = functions.columns, inner, made.shape
    if inner == 1:
        function, width, shape = functions.rows, n, (-1, outer)
    function(functions.OPS[op], lines(x), lines(y), width, made.reshape(shape), known is not None)
    return made


def folded(functions: ModuleType | None, op: str, x: np.ndarray, y: np.ndarray, known: Any, folds: int) -> Any:
    """The same of narrow columns, of which so many elements are side by side; and of those that are left."""
    n, inner = x.shape[1:]
    even, found = n - n % folds, []
    for part, times in [(slice(even), folds)] + [(slice(even, n), 1)] * (even < n):
        a, b = (each[:, part].reshape(1, -1, times * inner) for each in (x, y))
        made = run(functions, op, a, b, None if known is None else np.tile(known, times))
        found.append(made.reshape(-1, times, inner))
    return known if known is not None else merged(np.concatenate(found, axis=1))


def merged(parts: np.ndarray) -> np.ndarray:
    """The sums of wholes, of those of their parts: (3, parts, inner) to (3, 1, inner)."""
    top = np.max(np.where(np.isnan(parts[1]) & np.isfinite(parts[0]), np.nan, parts[0]), 0)
    lowered = np.where(np.isneginf(parts[0]), 0, np.exp(parts[0] - top) * (parts[1] + parts[2]))
    greatest = parts[0] == top
    others = np.where(greatest, parts[1], lowered).sum(0)
    return np.stack([top, others, np.where(greatest, parts[2], 0).sum(0)])[:, None]


class Lines:
    """An array seen with another shape, and as if it could be written to: Numba compiles others apart."""

    def __init__(self, array: np.ndarray, shape: Shape) -> None:
        self.array = array
        seen = {"shape": shape, "strides": None, "data": (array.__array_interface__["data"][0], False)}
        self.__array_interface__ = array.__array_interface__ | seen


def lines(x: np.ndarray) -> np.ndarray:
    """A block as compiled functions take it: rows as (rows, pitch), columns as (outer, n, pitch), where what lies
    between lines may be no memory of the array's. What does not lie so is copied."""
    outer, n, inner = x.shape
    dims = 2 if inner == 1 else 3
    if x.flags.c_contiguous and x.flags.writeable:
        return x.reshape(x.shape[:dims])
    first, second, third = (step // x.itemsize for step in x.strides)
    if dims == 2:
        pitch, least, plain = first if outer > 1 else n, n, n == 1 or second == 1
    else:
        pitch, least = second if n > 1 else first if outer > 1 else inner, inner
        plain = third == 1 and (outer == 1 or n == 1 or first == n * second)
    if not plain or pitch < least or any(step % x.itemsize for step in x.strides):
        return np.array(x, order="C").reshape(x.shape[:dims])
    return np.asarray(Lines(x, (*x.shape[: dims - 1], pitch)))


def by_numpy(op: str, x: np.ndarray, y: np.ndarray, known: Any) -> Any:
    """What `run` does, with NumPy's functions."""
    if known is not None:
        top, last = np.asarray(known)[:, :, None].astype(x.dtype)
        np.subtract(x, top, out=y)
        return np.multiply(np.exp(y, out=y), last, out=y) if op == SHARES else np.subtract(y, last, out=y)
    lowered = y if op in (SHARES, LOGS, POWERS) else memory("powers", x.shape, x.dtype, (0, 1, 2))
    powers = memory("powers", x.shape, x.dtype, (0, 1, 2)) if op == LOGS else lowered
    made = np.zeros((3, x.shape[0], x.shape[2]), x.dtype)
    np.maximum.reduce(x, 1, out=made[0])
    np.exp(np.subtract(x, made[0][:, None], out=lowered), out=powers)
    if op == WEIGHTED:  # the greatest elements are apart: they may cancel each other, also those of other parts
        greatest = np.unravel_index(np.flatnonzero(x == made[0][:, None]), x.shape)
        np.add.at(made[2], (greatest[0], greatest[2]), y[greatest])
        np.multiply(powers, y, out=powers)
        powers[greatest] = 0
    np.add.reduce(powers, 1, out=made[1])
    if op == SHARES:
        np.divide(y, made[1][:, None], out=y)
        return made
    if op not in (POWERS, WEIGHTED) and (few := ~(made[1] - 1 >= CERTAIN)).any():
        exact(x, made, None, few)
    if op == LOGS:
        rest = made[1] + (made[2] - 1)
        np.subtract(lowered, np.where(np.isinf(made[0]), 0, np.log1p(rest))[:, None], out=y)
    return made


def exact(x: np.ndarray, made: np.ndarray, weights: np.ndarray | None, few: np.ndarray) -> None:
    """Add up a few rows once more: apart, where a sum of all would lose digits of the elements below the greatest; and
    where that is infinite."""
    rows, top = x.transpose(0, 2, 1)[few], made[0][few][:, None].astype(x.dtype)
    factors = 1 if weights is None else weights.transpose(0, 2, 1)[few]
    greatest, power = rows == top, np.exp(rows - top) * factors
    made[1][few] = np.where(greatest & (top < np.inf), 0, power).sum(axis=1)
    made[2][few] = np.where(greatest, factors, 0).sum(axis=1)
