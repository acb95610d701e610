"""Blocks of arrays of the host, memory for them, and what NumPy does slowly: masks, and float16."""

from __future__ import annotations

import math
from collections.abc import Container
from functools import cache, lru_cache
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np

from ..plan.geometry import Shape, order

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


@cache
def local() -> Any:
    """What each thread keeps."""
    import threading  # slow to import

    return threading.local()


@lru_cache(maxsize=256)
def inverse(order: Shape) -> Shape:
    """Where each dim is in an order of them."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def memory(name: str, shape: Shape, dtype: np.dtype, dims: Shape) -> np.ndarray:
    """A thread's memory of that name, as an array whose dims lie in an order."""
    nbytes = math.prod(shape) * dtype.itemsize
    flat = getattr(local(), name, None)
    if flat is None or flat.size < nbytes:
        flat = np.empty(nbytes, np.uint8)
        if nbytes <= KEPT:
            setattr(local(), name, flat)
    lying = flat[:nbytes].view(dtype).reshape([shape[d] for d in dims])
    return lying.transpose(inverse(dims))


WORDS: dict[int, Any] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}  # by their bytes


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


def words_of(mask: np.ndarray, word: Any, dims: Shape) -> np.ndarray:
    """A mask as words of all ones and zeros, in a thread's memory whose dims lie in an order."""
    truth = np.not_equal(mask.view(np.uint8) if mask.dtype == bool else mask, 0).view(np.int8)
    words = memory("words", mask.shape, np.dtype(word), dims)
    words[...] = np.negative(truth)
    return words


def choose(mask: np.ndarray, x: np.ndarray, y: np.ndarray, into: np.ndarray) -> None:
    """x where a mask is set, else y: words of one dtype, by their bits, without NumPy's branch for each of them."""
    if maps := maps_of(into):
        truth = mask if mask.dtype == bool else np.not_equal(mask, 0)
        if maps.call(maps.choose, [truth.view(np.uint8), x, y], into):
            return
    select(mask, x, y, into)


def select(mask: np.ndarray, x: np.ndarray, y: np.ndarray, into: np.ndarray) -> None:
    """The same without Numba; ``into`` may be x."""
    words, mixed = words_of(mask, into.dtype, order(into.strides)), y.ndim or y
    if mixed:
        x = np.bitwise_xor(x, y, out=into)
    np.bitwise_and(x, words, out=into)
    if mixed:
        np.bitwise_xor(into, y, out=into)


def leave_out(values: np.ndarray, mask: np.ndarray, other: float) -> None:
    """Replace floating values where a mask is not set. (In place Numba makes no vector instructions.)"""
    bits = values.view(WORDS[values.itemsize])
    select(mask, bits, values.dtype.type(other).view(bits.dtype), bits)


def convert_masked(x: np.ndarray, mask: np.ndarray, other: float, into: np.ndarray) -> None:
    """Copy an array into one of another dtype, and replace elements where a mask is not set."""
    if x.dtype == into.dtype:
        word = WORDS[x.itemsize]
        choose(mask, x.view(word), x.dtype.type(other).view(word), into.view(word))
    else:
        convert(x, into)
        leave_out(into, mask, other)


HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
BY_BITS = {(HALF, SINGLE): "widen", (SINGLE, HALF): "narrow"}  # the functions that Numba compiles


def convert(x: np.ndarray, into: np.ndarray) -> None:
    """Copy an array into one of another dtype; float16 by its bits, which NumPy does slowly."""
    name = BY_BITS.get((x.dtype, into.dtype))
    if name and (maps := maps_of(x)):
        source, target = (array.view(f"u{array.itemsize}") for array in (x, into))
        if maps.call(getattr(maps, name), [source], target):
            return
    if name == "widen" and np.bitwise_and(x.view(np.uint16), 0x7FFF).max(initial=0) < 0x7C00:  # all are finite
        bits = into.view(np.int32)
        bits[...] = x.view(np.int16)
        np.left_shift(bits, 23 - 10, out=bits)
        np.bitwise_and(bits, ~(0b111 << 28), out=bits)  # the sign was copied to the bits that had none
        np.multiply(into, np.float32(2.0 ** (127 - 15)), out=into)
    else:
        np.copyto(into, x, casting="unsafe")
