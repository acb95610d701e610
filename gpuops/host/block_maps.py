"""``where`` and ``expand`` of the host, in blocks on several threads: the same bits for any number of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..plan.geometry import Shape, order
from . import numpy_engine, results, threads
from .blocks import WORDS, Index, compiled, indices, words_of

FEW = 2**16  # elements below which NumPy's own `where` is used
BLOCK = 2**16  # elements of a block
COMPILED_BLOCK = 2**18  # the same for compiled functions
SMOOTH = 8  # elements for each change of a mask along memory, from which on a processor foresees most of its branches
SAMPLE = 64  # elements along each dim by which that is judged
LARGE = 2**20  # bytes of a result from which on compiled functions are used
COST = 4  # of an element of a result, beside that of writing it
COPIES = 2**22  # bytes of a result that is copied in blocks


def where(condition: np.ndarray, x: Any, y: Any, out: np.ndarray | None = None, *, dtype: np.dtype) -> Any:
    """np.where in a given dtype.

    NumPy's branches at each element, so it is slow where masks change often. There bits are selected, in words of the
    dtype's size; large arrays by a function that Numba compiles, if it is installed.
    """
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    full = [array for array in (condition, x, y) if array.shape == shape]
    nbytes = math.prod(shape) * dtype.itemsize
    maps = compiled("compiled_maps") if shape and nbytes >= LARGE and condition.dtype == bool else None
    slow = maps is None and (smooth(condition) or len({order(array.strides) for array in full}) > 1)
    if slow or dtype.itemsize not in WORDS:
        return numpy_engine.where(condition, x, y, out, dtype=dtype)
    made: Any = np.empty_like(full[0], dtype, subok=False) if full and out is None else out
    if made is None or made.dtype != dtype or any(np.may_share_memory(made, array) for array in (condition, x, y)):
        made = np.empty(shape, dtype)
    operands = [np.broadcast_to(array, shape) for array in (condition, x, y)]
    word = np.dtype(WORDS[dtype.itemsize])

    def select(index: Index) -> None:
        c, x, y = (array[index] for array in operands)
        x, y = (array.astype(dtype, copy=False).view(word) for array in (x, y))
        target = made[index].view(word)
        if maps and maps.selected(c, x, y, target):
            return
        words = words_of(c, word, order(target.strides))
        np.bitwise_xor(x, y, out=target)
        np.bitwise_and(target, words, out=target)
        np.bitwise_xor(target, y, out=target)

    blocks = indices(made.shape, made.strides, range(made.ndim), COMPILED_BLOCK if maps else BLOCK)
    threads.shared(COST * nbytes)(select, blocks)
    return made if made is out else results.deliver(made, out)


def smooth(condition: np.ndarray) -> bool:
    """Whether a processor foresees a mask: one that is short, or seldom changes, by its first elements."""
    if condition.size <= SAMPLE**2 or condition.ndim == 0:
        return True
    first = condition[(slice(SAMPLE),) * condition.ndim] if condition.ndim > 1 else condition[: SAMPLE**2]
    return bool(np.count_nonzero(first[..., 1:] != first[..., :-1]) * SMOOTH < first.size)


def expand(x: np.ndarray, out: np.ndarray | None = None, *, shape: Shape) -> Any:
    """A materialised np.broadcast_to."""
    apart = out is not None and not np.may_share_memory(x, out)  # np.copyto does not see every overlap of 1-d arrays
    made = out if apart and out is not None else np.empty(shape, x.dtype)
    if made.nbytes < COPIES or threads.limit() == 1:
        np.copyto(made, x, casting="unsafe")
    else:
        view = np.broadcast_to(x, shape)
        blocks = indices(made.shape, made.strides, range(made.ndim), COPIES // made.itemsize // 4)
        threads.shared(made.nbytes)(lambda index: np.copyto(made[index], view[index], casting="unsafe"), blocks)
    return made if out is None or made is out else results.deliver(made, out)
