"""Exact sums, compiled by Numba: single elements, products with their errors, and expansions of sums.

Arrays are given in one dimension, as integers of the types in `WORDS`, so that types tell what elements are. `given`
are x and what it is multiplied by: y is None for x alone. A place is where elements begin in the two of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding
from numba import types
from numba.extending import intrinsic, overload, register_jitable

MAGNITUDE = 2**63 - 1  # the bits of a float64 but for its sign
HUGE = 2.0**960  # magnitudes whose partial sums might overflow
HUGE_BITS = int(np.float64(HUGE).view(np.int64))
TINY = 2.0**-960  # magnitudes of products below which the last bits may be lost
FUSED = any(binding.get_host_cpu_features().get(name) for name in ("fma", "neon"))  # whether the CPU has such additions


# ----------------------------------------------------------------------------------------------------- single elements


#: The integers whose types say what elements are.
WORDS = {"float16": np.uint16, "bfloat16": np.int16, "float32": np.int32, "float64": np.int64}
INTEGERS = {types.uint16: np.uint16, types.int16: np.int16, types.int32: np.int32, types.int64: np.int64}


def wide(v: Any) -> Any:
    """The bits of an element, an integer of the type in `WORDS`, as float64."""


@overload(wide)
def wide_of_type(v: Any) -> Any:
    def of_half(v: Any) -> Any:
        word = (np.int32(np.int16(v)) << np.int32(13)) & np.int32(~(0b111 << 28))  # the sign was copied
        if (v & np.uint16(0x7C00)) == np.uint16(0x7C00):
            word |= np.int32(0x7F800000)
        return np.float64(np.int32(word).view(np.float32) * np.float32(2.0 ** (127 - 15)))

    def of_bfloat16(v: Any) -> Any:
        return np.float64(np.int32(np.int32(v) << np.int32(16)).view(np.float32))

    def of_single(v: Any) -> Any:
        return np.float64(np.int32(v).view(np.float32))

    def of_double(v: Any) -> Any:
        return np.int64(v).view(np.float64)

    return {types.uint16: of_half, types.int16: of_bfloat16, types.int32: of_single, types.int64: of_double}[v]


@intrinsic
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    return types.float64(types.float64, types.float64, types.float64), lambda _, builder, __, args: builder.fma(*args)


@register_jitable
def upper(a: Any) -> Any:
    """The upper half of the bits (Veltkamp)."""
    t = a * (2.0**27 + 1)
    return t - (t - a)


@register_jitable
def error_in_steps(a: Any, b: Any, p: Any) -> Any:
    """a * b - p for the rounded product p (Dekker 1971)."""
    a1, b1 = upper(a), upper(b)
    a2, b2 = a - a1, b - b1
    return a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)


@register_jitable
def error_fused(a: Any, b: Any, p: Any) -> Any:
    """a * b - p for the rounded product p."""
    return fma(a, b, -p)


error_of_product = error_fused if FUSED else error_in_steps


@register_jitable
def bits(x: Any) -> Any:
    return np.float64(x).view(np.int64)


@register_jitable
def factors(x: Any, y: Any, place: Any, i: Any) -> Any:
    """The elements i after a place in x and, if there is one, in y."""
    v = wide(x[place[0] + i])
    if y is None:
        return v, v
    return v, wide(y[place[1] + i])


@register_jitable
def summand(x: Any, y: Any, place: Any, i: Any, keep: Any) -> Any:
    """A product, or the bits of an element that are kept."""
    v, w = factors(x, y, place, i)
    if y is not None:
        return v * w
    return np.int64(bits(v) & keep).view(np.float64)


def size(x: Any, y: Any, place: Any, i: Any) -> Any:
    """The magnitude of an element or product: its bits without the sign."""


@overload(size)
def size_of_type(x: Any, y: Any, place: Any, i: Any) -> Any:
    integer = INTEGERS[x.dtype]
    most = integer(2 ** (x.dtype.bitwidth - 1) - 1)

    def of_element(x: Any, y: Any, place: Any, i: Any) -> Any:
        return x[place[0] + i] & most

    def of_product(x: Any, y: Any, place: Any, i: Any) -> Any:
        return bits(summand(x, y, place, i, np.int64(-1))) & MAGNITUDE

    return of_element if isinstance(y, types.NoneType) else of_product


def size_bits(given: Any, v: Any) -> Any:
    """The same as the bits of float64."""


@overload(size_bits)
def size_bits_of_type(given: Any, v: Any) -> Any:
    integer = INTEGERS[given[0].dtype]

    def of_element(given: Any, v: Any) -> Any:
        return bits(wide(integer(v)))

    def of_product(given: Any, v: Any) -> Any:
        return v

    return of_element if isinstance(given[1], types.NoneType) else of_product


@register_jitable
def error(x: Any, y: Any, place: Any, i: Any) -> Any:
    """The error of a product."""
    v, w = factors(x, y, place, i)
    return error_of_product(v, w, v * w)


def has_errors(given: Any) -> Any:
    """Whether products have errors: those of float64."""


@overload(has_errors)
def has_errors_of_type(given: Any) -> Any:
    x, y = given
    exact = isinstance(y, types.NoneType) or types.int64 not in (x.dtype, getattr(y, "dtype", None))

    def no(given: Any) -> Any:
        return False

    def yes(given: Any) -> Any:
        return True

    return no if exact else yes


@register_jitable
def loses(given: Any, place: Any, count: Any) -> Any:
    """Whether the errors of some products are not numbers of float64."""
    lost = False
    if has_errors(given):
        for i in range(count):
            v, w = factors(given[0], given[1], place, i)
            p = v * w
            e = error_of_product(v, w, p)
            lost |= ((abs(p) < TINY) & (v != 0) & (w != 0)) | (e - e != 0)
    return lost


# -------------------------------------------------------------------------------------------------------------- adding


@register_jitable
def plus(state: Any, v: Any) -> Any:
    """Add a number to an expansion (Knuth's TwoSum, twice)."""
    s, e, r = state
    h = s + v
    t = h - s
    d = (s - (h - t)) + (v - t)
    g = e + d
    t = g - e
    return h, g, r + abs((e - (g - t)) + (d - t))


@register_jitable
def plus_each(given: Any, place: Any, along: Any, count: Any, keep: Any, state: Any) -> Any:
    """Add elements one by one: those that are not finite to s; r becomes infinite if an expansion cannot hold one."""
    x, y = given
    zero = np.uintp(0)
    for j in range(count):
        here = after(place, along, j)
        v, w = factors(x, y, here, zero)
        p, size = summand(x, y, here, zero, keep), max(abs(v), abs(w))
        if v - v != 0 or w - w != 0:
            state = (state[0] + p, state[1], state[2])
        elif size >= HUGE or abs(p) >= HUGE or (has_errors(given) and abs(p) < TINY and v != 0 and w != 0):
            state = (state[0], state[1], np.inf)
        else:
            state = plus(state, p)
            if has_errors(given):
                state = plus(state, error(x, y, here, zero))
    return state


@register_jitable
def alike(n: Any) -> Any:
    """The same step in x and y."""
    return np.uintp(n), np.uintp(n)


@register_jitable
def after(place: Any, along: Any, j: Any) -> Any:
    """The place after so many steps."""
    return place[0] + j * along[0], place[1] + j * along[1]
