"""Blocks of arrays of the host, and memory for them."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from ..plan.geometry import Shape

Index = tuple[Any, ...]  # slices
KEPT = 2**22  # bytes of memory that a thread keeps from call to call, at most, so that it need not get new pages


def innermost(shape: Shape, strides: Shape) -> int:
    """The dim along which neighbours in memory lie."""
    return min(range(len(shape)), key=lambda d: abs(strides[d]) if shape[d] > 1 else math.inf)


def indices(x: np.ndarray, dims: list[int], most: int) -> list[Index]:
    """Indices that cut an array along some dims, those first that lie closest: about ``most`` elements along them."""
    pieces = {d: [slice(None)] for d in range(x.ndim)}
    for d in reversed([d for d in order(x.strides) if d in dims]):
        step = max(1, -(-x.shape[d] // max(1, -(-x.shape[d] // most))))
        pieces[d] = [slice(i, min(i + step, x.shape[d])) for i in range(0, x.shape[d], step)]
        most = max(1, most // step)
    return [*product(*pieces.values())]


def order(strides: Shape) -> Shape:
    """The dims of an array as they lie in memory."""
    return tuple(sorted(range(len(strides)), key=lambda d: -abs(strides[d])))


@cache
def local() -> Any:
    """What each thread keeps."""
    import threading  # slow to import

    return threading.local()


def memory(name: str, shape: Shape, dtype: np.dtype, dims: Shape) -> np.ndarray:
    """A thread's memory of that name, as an array whose dims lie in an order."""
    nbytes = math.prod(shape) * dtype.itemsize
    flat = getattr(local(), name, None)
    if flat is None or flat.size < nbytes:
        flat = np.empty(nbytes, np.uint8)
        if nbytes <= KEPT:
            setattr(local(), name, flat)
    lying = flat[:nbytes].view(dtype).reshape([shape[d] for d in dims])
    return lying.transpose(np.argsort(dims))  # type: ignore[no-any-return]


WORDS: dict[int, Any] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}  # by their bytes


def words_of(mask: np.ndarray, word: Any, dims: Shape) -> np.ndarray:
    """A mask as words of all ones and zeros, in a thread's memory whose dims lie in an order."""
    words = memory("words", mask.shape, np.dtype(word), dims)
    words[...] = np.not_equal(mask.view(np.uint8) if mask.dtype == bool else mask, 0)
    return np.negative(words, out=words)


def leave_out(values: np.ndarray, mask: np.ndarray, other: float) -> None:
    """Replace floating values where a mask is not set, by their bits: without branches, which NumPy's copyto has."""
    word = WORDS[values.itemsize]
    bits, words = values.view(word), words_of(mask, word, order(values.strides))
    instead = values.dtype.type(other).view(word)
    if instead:
        np.bitwise_xor(bits, instead, out=bits)
    np.bitwise_and(bits, words, out=bits)
    if instead:
        np.bitwise_xor(bits, instead, out=bits)
