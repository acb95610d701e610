"""Elementwise functions of the host that Numba compiles: a choice by a mask, and conversions of float16.

They let go of the GIL, as NumPy's ufuncs do; but they go over an array once. Each says whether it could.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ..plan.geometry import order
from .blocks import memory
from .numba_compiler import vectorized

LOCK = threading.Lock()  # Numba compiles in one thread at a time
READY: set[tuple[Any, ...]] = set()  # what is compiled: a function and the dtypes of its operands


@intrinsic  # type: ignore[untyped-decorator]
def chosen(context: Any, condition: Any, x: Any, y: Any) -> Any:
    """One of two numbers, without a branch."""
    return x(condition, x, y), lambda context, builder, signature, args: builder.select(*args)


@intrinsic  # type: ignore[untyped-decorator]
def from_half(context: Any, x: Any) -> Any:
    """A float32 of the bits of a float16."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), build


@intrinsic  # type: ignore[untyped-decorator]
def to_half(context: Any, x: Any) -> Any:
    """The bits of a float16, of a float32."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), build


@cache
def select(word: np.dtype) -> Any:
    """The ufunc that chooses words: one for each, since Numba would have words widened for a wider one's."""
    return vectorized(lambda mask, x, y: chosen(mask != 0, x, y))


@vectorized
def widen(x: Any) -> Any:
    return from_half(x)


@vectorized
def narrow(x: Any) -> Any:
    return to_half(x)


def call(function: Any, *operands: np.ndarray, out: np.ndarray) -> bool:
    """Call one of the functions above, compiled before any thread runs it; False, if ``out`` has gaps between elements.

    Arrays are turned as ``out`` lies: where all operands have neighbours side by side, Numba takes it that ``out`` has.
    """
    dims = order(out.strides)
    if next((out.strides[d] for d in reversed(dims) if out.shape[d] > 1), out.itemsize) != out.itemsize:
        return False
    key = (function, *(operand.dtype for operand in operands))
    if key not in READY:
        with LOCK:
            if key not in READY:
                function(*(np.zeros(1, operand.dtype) for operand in operands))
                READY.add(key)
    function(*(x if x.ndim == 0 else x.transpose(dims) for x in operands), out=out.transpose(dims))
    return True


def selected(mask: np.ndarray, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> bool:
    """x where a mask of bools is set, else y, both words of one dtype: into ``out``, which none of them may be."""
    last = order(out.strides)[-1] if out.ndim else 0
    return call(select(out.dtype), mask.view(np.uint8), repeated(x, "x", last), repeated(y, "y", last), out=out)


def repeated(x: np.ndarray, name: str, dim: int) -> np.ndarray:
    """An array which has copies of elements that it repeats along a dim: side by side, as Numba's loops want them."""
    if x.size <= 1 or x.strides[dim] != 0:
        return x
    few = x[tuple([slice(None) if stride or d == dim else slice(1) for d, stride in enumerate(x.strides)])]
    copied = memory(name, few.shape, x.dtype, (*(d for d in range(x.ndim) if d != dim), dim))
    copied[...] = few
    return np.broadcast_to(copied, x.shape)


def widened(x: np.ndarray, out: np.ndarray) -> bool:
    """float16 as float32."""
    return call(widen, x.view(np.uint16), out=out)


def narrowed(x: np.ndarray, out: np.ndarray) -> bool:
    """float32 as float16."""
    return call(narrow, x, out=out.view(np.uint16))
