"""Elementwise functions of the host that Numba compiles: a choice by a mask, and conversions of float16 by its bits.

Each is a ufunc, so it lets go of the GIL and takes any strides; but it goes over an array once. They have no branches,
so that they become vector instructions, and raise no floating-point flags.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np
from numpy import float32, uint16, uint32

from ..plan.geometry import Shape, order
from .blocks import memory
from .numba_compiler import vectorized

LINE = 2**12  # elements that make up for the start of a loop over them
LOCK = threading.Lock()  # one thread compiles what others wait for
ufunc = cache(vectorized)  # for one signature: of several, Numba takes one for wider words
SHIFT, SIGN = uint32(23 - 10), uint32(0x8000)  # between significands; of a float16
BIAS = uint32((127 - 15) << 23)  # between exponents, of a float32
NORMAL, INFINITE = uint32(113 << 23), uint32(255 << 23)  # bits of float32: 2**-14, the least normal float16; infinity


def choose(mask: Any, x: Any, y: Any) -> Any:
    """x where a mask is set, else y."""
    return x if mask else y


def widen(x: Any) -> Any:
    """The bits of a float32, of those of a float16."""
    size = uint32(x & uint16(0x7FFF))
    subnormal = float32(float32(size) * float32(2.0**-24)).view(uint32)
    bits = uint32(uint32(size << SHIFT) + BIAS)
    special = uint32(bits + BIAS)  # infinities and NaNs
    bits = bits if size >= uint32(0x400) else subnormal
    bits = special if size >= uint32(0x7C00) else bits
    return uint32(bits | uint32((x & SIGN) << uint32(16)))


def narrow(x: Any) -> Any:
    """The bits of a float16, of those of a float32: rounded to nearest even; a NaN keeps what fits of its payload."""
    size = uint32(x & uint32(0x7FFFFFFF))
    upper = uint32(size >> SHIFT)
    odd = uint32(upper & uint32(1))
    bits = uint32(uint32(uint32(size + odd) + uint32(0xFFF) - BIAS) >> SHIFT)
    # The last bit of one half is that of subnormal float16, so the sum is rounded to it.
    subnormal = float32(uint32(min(size, NORMAL)).view(float32) + float32(0.5))
    bits = bits if size >= NORMAL else uint32(subnormal.view(uint32) - uint32(126 << 23))
    nan = max(uint32(upper - uint32(0x38000)), uint32(0x7C01))  # which is no infinity, even if nothing fits
    bits = min(bits, nan if size > INFINITE else uint32(0x7C00))
    return uint16(bits | uint32(uint32(x >> uint32(16)) & SIGN))


def call(function: Any, operands: list[np.ndarray], into: np.ndarray) -> bool:
    """Call one of these functions; False, if ``into`` has gaps between elements, or fewer than two.

    Arrays are turned as ``into`` lies: Numba takes it that its elements are side by side, if those of operands are.
    """
    dims = order(into.strides)
    inner = next((d for d in reversed(dims) if into.shape[d] > 1), None)
    if inner is None or into.strides[inner] != into.itemsize:
        return False
    with LOCK:
        made = ufunc(function, into.dtype, *[x.dtype for x in operands])
    apart = [x if x.ndim and x.strides[inner] else repeated(i, x, into, dims) for i, x in enumerate(operands)]
    made(*[x.transpose(dims) for x in apart], out=into.transpose(dims))
    return True


def repeated(number: int, x: np.ndarray, into: np.ndarray, dims: Shape) -> np.ndarray:
    """Copies of elements that an operand repeats along the innermost dim, side by side in lines of some length."""
    lengths, line, strides = list(into.shape), 1, x.strides or (0,) * into.ndim
    for d in reversed(dims):
        if strides[d] == 0 and line >= LINE:
            lengths[d] = 1
        line *= into.shape[d]
    copied = memory(f"operand {number}", tuple(lengths), x.dtype, dims)
    copied[...] = x[tuple(map(slice, lengths))] if x.ndim else x
    return copied
