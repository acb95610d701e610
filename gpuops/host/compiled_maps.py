"""Elementwise functions of the host that Numba compiles: a choice by a mask, and conversions of float16 by its bits.

Their loops have no branches, so that they become vector instructions. They give no warnings.
"""

from __future__ import annotations

import math
import threading
from functools import cache, partial
from typing import Any

import numpy as np
from numba import from_dtype, njit, types
from numba.extending import register_jitable
from numpy import float32, uint16, uint32

from ..plan.geometry import Shape, order
from .blocks import memory
from .numba_compiler import kept

LOCK = threading.Lock()  # one thread compiles what others wait for
SHIFT, SIGN = uint32(23 - 10), uint32(0x8000)  # between significands; of a float16
BIAS = uint32((127 - 15) << 23)  # between exponents, of a float32
NORMAL, INFINITE = uint32(113 << 23), uint32(255 << 23)  # bits of float32: 2**-14, the least normal float16; infinity


@register_jitable  # type: ignore[untyped-decorator]
def at(x: Any, i: int) -> Any:
    """An element or row, also of an array that repeats its only one. (LLVM makes a loop for each of the cases.)"""
    return x[i if len(x) > 1 else 0]


def choose(mask: Any, x: Any, y: Any, into: Any) -> None:
    """x where a mask is set, else y."""
    for i in range(len(into)):
        masks, xs, ys, row = at(mask, i), at(x, i), at(y, i), into[i]
        for j in range(len(row)):
            one, other = at(xs, j), at(ys, j)
            row[j] = one if at(masks, j) else other


def widen(x: Any, into: Any) -> None:
    """Bits of float16 as those of float32."""
    for i in range(len(into)):
        xs, row = at(x, i), into[i]
        for j in range(len(row)):
            row[j] = widened(at(xs, j))


def narrow(x: Any, into: Any) -> None:
    """Bits of float32 as those of float16."""
    for i in range(len(into)):
        xs, row = at(x, i), into[i]
        for j in range(len(row)):
            row[j] = narrowed(at(xs, j))


@register_jitable  # type: ignore[untyped-decorator]
def widened(x: Any) -> Any:
    """The bits of a float32, of those of a float16."""
    size = uint32(x & uint16(0x7FFF))
    subnormal = float32(float32(size) * float32(2.0**-24)).view(uint32)
    bits = uint32(uint32(size << SHIFT) + BIAS)
    special = uint32(bits + BIAS)  # infinities and NaNs
    bits = bits if size >= uint32(0x400) else subnormal
    bits = special if size >= uint32(0x7C00) else bits
    return uint32(bits | uint32(uint32(x & SIGN) << uint32(16)))


@register_jitable  # type: ignore[untyped-decorator]
def narrowed(x: Any) -> Any:
    """The bits of a float16, of those of a float32: rounded to nearest even; a NaN keeps what fits of its payload."""
    size = uint32(x & uint32(0x7FFFFFFF))
    upper = uint32(size >> SHIFT)
    odd = uint32(upper & uint32(1))
    bits = uint32(uint32(uint32(size + odd) + uint32(0xFFF) - BIAS) >> SHIFT)
    # The last bit of one half is that of subnormal float16, so the sum is rounded to it.
    subnormal = float32(uint32(min(size, NORMAL)).view(float32) + float32(0.5))
    bits = bits if size >= NORMAL else uint32(subnormal.view(uint32) - uint32(126 << 23))
    nan = max(uint32(upper - uint32(0x38000)), uint32(0x7C01))  # not infinity, even if no payload fits
    bits = min(bits, nan if size > INFINITE else uint32(0x7C00))
    return uint16(bits | uint32(uint32(x >> uint32(16)) & SIGN))


def kernel(function: Any, layout: str, *arrays: np.ndarray) -> Any:
    """One of the first three, compiled for operands of a layout and a result, seen as rows."""
    with LOCK:
        return compiled(function, layout, *[x.dtype for x in arrays])


@cache
def compiled(function: Any, layout: str, *dtypes: np.dtype) -> Any:
    """The same for these dtypes."""
    operands = [types.Array(from_dtype(dtype), 2, layout, readonly=True) for dtype in dtypes[:-1]]
    signature = types.void(*operands, types.Array(from_dtype(dtypes[-1]), 2, "C"))
    return kept(partial(njit, signature, nogil=True), function)


def call(function: Any, operands: list[np.ndarray], into: np.ndarray) -> bool:
    """Call one of the first three; False, if ``into`` has gaps between elements."""
    operands = [x if x.shape in ((), into.shape) else np.broadcast_to(x, into.shape) for x in operands]
    if all([x.flags.c_contiguous and x.flags.aligned for x in (*operands, into)]):
        kernel(function, "C", *operands, into)(*[x.reshape(1, -1) for x in (*operands, into)])
        return True
    dims = order(into.strides)
    target = into.transpose(dims).squeeze()
    if not (target.flags.c_contiguous and target.flags.aligned):
        return False
    turned = [x.transpose(dims).squeeze() if x.ndim else x for x in operands]
    steps = [x.strides for x in turned if x.ndim]
    # A row is the innermost dims of which each operand repeats all or none.
    cut = max((d for d in range(1, target.ndim) if any((s[d] == 0) != (s[d - 1] == 0) for s in steps)), default=0)
    # A choice among elements apart is no slower than their copies.
    apart = function is choose and any(x.ndim and x.strides[-1] not in (0, x.itemsize) for x in turned)
    layout = "A" if apart else "C"
    rows = [as_rows(f"operand {i}", x, target.shape, cut, layout) for i, x in enumerate(turned)]
    lines = target.reshape(math.prod(target.shape[:cut]), math.prod(target.shape[cut:]))
    kernel(function, layout, *operands, into)(*rows, lines)
    return True


def as_rows(name: str, x: np.ndarray, shape: Shape, cut: int, layout: str) -> np.ndarray:
    """An operand, or what it repeats, as rows of a layout; dims from ``cut`` on are in a row."""
    many = any(x.strides[:cut]), any(x.strides[cut:])
    lengths = [n if many[d >= cut] else 1 for d, n in enumerate(shape)] if x.ndim else []
    few = x[tuple(map(slice, lengths))] if x.ndim else x
    if not few.flags.aligned or (layout == "C" and not few.flags.c_contiguous):
        copied = memory(name, few.shape, x.dtype, (*range(x.ndim),))
        copied[...] = few
        few = copied
    return few.reshape(math.prod(lengths[:cut]), math.prod(lengths[cut:]))
