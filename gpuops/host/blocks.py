"""Blocks of arrays of the host, memory for them, and what NumPy does slowly: masks, and float16."""

from __future__ import annotations

import math
from collections.abc import Container
from functools import cache, lru_cache
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..plan.geometry import Shape, contiguous_strides, order

Index = tuple[Any, ...]  # slices
COMPILED = 2**16  # bytes of a block from which on compiled functions are used
KEPT = 2**22  # bytes of memory that a thread keeps from call to call, at most, so that it need not get new pages


def innermost(shape: Shape, strides: Shape) -> int:
    """The dim along which neighbours in memory lie."""
    return min(range(len(shape)), key=lambda d: abs(strides[d]) if shape[d] > 1 else math.inf)


def indices(shape: Shape, strides: Shape, dims: Container[int], most: int) -> list[Index]:
    """Indices that cut an array along some dims, those first that lie closest: about ``most`` elements along them."""
    pieces = {d: [slice(None)] for d in range(len(shape))}
    for d in reversed([d for d in order(strides) if d in dims]):
        step = max(1, -(-shape[d] // max(1, -(-shape[d] // most))))
        pieces[d] = [slice(i, min(i + step, shape[d])) for i in range(0, shape[d], step)]
        most = max(1, most // step)
    return [*product(*pieces.values())]


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


@cache
def compiled(module: str) -> ModuleType | None:
    """A module of functions that Numba compiles; None, if there is no Numba for this Python and NumPy."""
    try:
        return import_module(f".{module}", __package__)
    except ImportError:
        return None


def maps_of(x: np.ndarray) -> ModuleType | None:
    """The elementwise functions among them, if a block is worth them."""
    return compiled("compiled_maps") if x.nbytes >= COMPILED else None


def convert_masked(x: np.ndarray, mask: np.ndarray, other: float, into: np.ndarray) -> None:
    """Copy an array into one of another dtype, and replace elements where a mask is not set."""
    if x.dtype == into.dtype and mask.dtype == bool and (maps := maps_of(x)):
        word, others = WORDS[x.itemsize], memory("others", into.shape, into.dtype, order(into.strides))
        others.fill(other)
        if maps.selected(mask, x.view(word), others.view(word), into.view(word)):
            return
    convert(x, into)
    leave_out(into, mask, other)


def convert(x: np.ndarray, into: np.ndarray) -> None:
    """Copy an array into one of another dtype.

    Without Numba, float16 becomes float32 by shifting bits, unless some are not finite.
    """
    halves = x.dtype == np.float16, into.dtype == np.float16
    maps = maps_of(x) if any(halves) else None
    if halves[0] and into.dtype == np.float32:
        if maps and maps.widened(x, into):
            return
        if finite(x):
            bits = into.view(np.int32)
            bits[...] = x.view(np.int16)
            np.left_shift(bits, 23 - 10, out=bits)
            np.bitwise_and(bits, ~(0b111 << 28), out=bits)  # the sign was copied to the bits that had none
            np.multiply(into, np.float32(2.0 ** (127 - 15)), out=into)
            return
    if not (maps and x.dtype == np.float32 and maps.narrowed(x, into)):
        np.copyto(into, x, casting="unsafe")


def finite(x: np.ndarray) -> bool:
    """Whether all of an array of float16 are."""
    return bool(np.bitwise_and(x.view(np.uint16), 0x7FFF).max(initial=0) < 0x7C00)
