"""Products so far along the last of two axes, compiled by Numba: with the bits of `scan_trees`.

A product is a number near 1, times a power of two. If elements are neither very large nor very small, the products of a
chunk are left as they are, since they do not come near the limits of float64. Else each is brought near 1. The chunks
of a part do not depend on each other, so that a processor multiplies several at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ..definition.scans import RADIX
from .compiled_units import bits, power
from .numba_compiler import compiled

CHUNKS = np.uintp(64)  # of a part
SIZE = np.uintp(RADIX)  # of a chunk
ONE = np.uintp(1)
LINES = np.uintp(64)  # short lines that are looked at together
UNIT = 1023 << 52  # the bits of 1.0
FAR = 1000  # exponents from which on products may come near the limits of float64
TINY = 2.0**-1022
VANISHED = -2100  # the exponent of numbers that are rounded to 0
INVALID, OVERFLOW, UNDERFLOW = 1, 2, 4  # what is told of results


@register_jitable
def normal(x: Any) -> Any:
    """A number as one near 1 and an exponent."""
    size = bits(abs(x)) >> 52
    if 0 < size < 2045:
        return x * power(1022 - size), size - 1022
    p, k = math.frexp(x)
    return p, np.int64(k)


@register_jitable
def times(a: Any, b: Any) -> Any:
    """A product of numbers near 1, which is at least a quarter."""
    p, small = a[0] * b[0], abs(a[0] * b[0]) < 0.5
    return p + p if small else p, a[1] + b[1] - small


@register_jitable
def scaled(p: Any, k: Any) -> Any:
    """p * 2**k, rounded once: the first of two products is exact, or the result is 0 or infinite."""
    near = min(max(k, np.int64(-600)), np.int64(600))
    rest = power(min(max(k - near, np.int64(-1022)), np.int64(1023)))
    return p * (0.0 if (k < VANISHED) & (abs(p) < np.inf) else rest) * power(near)  # (numbers below `TINY` take long)


@register_jitable
def reach(x: Any) -> Any:
    """A bound of the exponents of the products of a chunk, but for 0; a large one where elements are not finite."""
    low, high = np.int64(UNIT), np.int64(UNIT)
    for i in range(np.uintp(len(x))):
        size = bits(abs(x[i]))
        size = size if size != 0 else np.int64(UNIT)
        low, high = min(low, size), max(high, size)
    return RADIX * max(1023 - (low >> 52), (high >> 52) - 1022)


@register_jitable
def total(x: Any, first: Any, near: Any) -> Any:
    """The product of a whole chunk."""
    p = x[first]
    if near:
        for i in range(first + ONE, first + SIZE):
            p *= x[i]
        return normal(p)
    state = normal(p)
    for i in range(first + ONE, first + SIZE):
        state = times(state, normal(x[i]))
    return state


@register_jitable
def elder(folds: Any, powers: Any, chunk: Any) -> Any:
    """What comes before the group of a chunk."""
    found, level = (1.0, np.int64(0)), np.uintp(0)
    while chunk >= RADIX:
        level, chunk = level + ONE, chunk // RADIX
    for k in range(level):
        found = times(found, (folds[level - k], powers[level - k]))
    return found


@register_jitable
def before(folds: Any, powers: Any, chunk: Any, counts: Any, p: Any, e: Any) -> None:
    """Put what comes before each chunk of a part in the place of its total, and go on behind whole ones."""
    top, fold = elder(folds, powers, chunk), (folds[0], powers[0])
    for c in range(counts[0]):
        now = p[c], e[c]
        p[c], e[c] = times(top, fold)
        if c < counts[1]:
            fold, chunk = times(fold, now), chunk + 1
            if chunk % RADIX == 0 and len(folds) > 1:
                now, level, place = fold, 0, chunk
                while place % RADIX == 0:
                    level, place = level + 1, place // RADIX
                    folds[level - 1], powers[level - 1] = 1.0, 0
                    now = times((folds[level], powers[level]), now)
                folds[level], powers[level] = now
                top, fold = elder(folds, powers, chunk), (1.0, np.int64(0))
    folds[0], powers[0] = fold


@register_jitable
def left(x: Any, y: Any, part: Any, p: Any, exclusive: Any) -> None:
    """Products so far of a chunk, as they are."""
    if exclusive:
        for i in range(part[0], part[1]):
            p, y[i] = p * x[i], p
    else:
        for i in range(part[0], part[1]):
            p *= x[i]
            y[i] = p


@register_jitable
def vanished(x: Any, y: Any, part: Any, p: Any, exclusive: Any) -> Any:
    """Products so far of a chunk that are all rounded to 0. Tells whether some are not 0."""
    some = np.int64(0)
    for i in range(part[0], part[1]):
        b, p = p, p * x[i]
        made = b if exclusive else p
        y[i] = made * 0.0
        some |= np.int64(made != 0.0)
    return UNDERFLOW if some else 0


@register_jitable
def results(x: Any, y: Any, part: Any, near: Any, state: Any, exclusive: Any) -> Any:
    """Products so far of a chunk. Tells what is told of them."""
    invalid, over, under = np.int64(0), np.int64(0), np.int64(0)
    for i in range(part[0], part[1]):
        v, b = x[i], state
        state = (b[0] * v, b[1]) if near else times(b, normal(v))
        invalid |= np.int64((state[0] != state[0]) & (b[0] == b[0]) & (v == v))
        b = b if exclusive else state
        made = scaled(b[0], b[1])
        y[i] = made
        over |= np.int64((abs(made) == np.inf) & (abs(b[0]) < np.inf))
        under |= np.int64((abs(made) < TINY) & (b[0] != 0.0))
    return (INVALID if invalid else 0) | (OVERFLOW if over else 0) | (UNDERFLOW if under else 0)


@register_jitable
def chunked(x: Any, y: Any, folds: Any, powers: Any, chunk: Any, memory: Any, far: Any, exclusive: Any) -> Any:
    """Products so far of a part of a line."""
    told, size, near, (p, e) = 0, np.uintp(len(x)), far < FAR, memory
    counts = (size + SIZE - ONE) // SIZE, size // SIZE
    for c in range(counts[1]):
        p[c], e[c] = total(x, c * SIZE, near)
    before(folds, powers, chunk, counts, p, e)
    for c in range(counts[0]):
        part = c * SIZE, min(size, c * SIZE + SIZE)
        if abs(e[c]) + far < FAR and abs(p[c]) < np.inf:
            left(x, y, part, p[c] * power(e[c]), exclusive)
        elif near and e[c] < VANISHED - FAR and abs(p[c]) < np.inf:
            told |= vanished(x, y, part, p[c], exclusive)
        else:
            told |= results(x, y, part, near, (p[c], e[c]), exclusive)
    return told


@compiled()
def products(
    x: np.ndarray, y: np.ndarray, folds: np.ndarray, powers: np.ndarray, chunk: int, length: int, exclusive: bool
) -> int:  # fmt: skip
    """Products so far of parts (lines, n) of lines of a length, of which there were so many chunks before, from folds
    (lines, level) times powers of two to folds. Tells what is told of results."""
    told, n, lines = 0, np.uintp(x.shape[1]), np.uintp(x.shape[0])
    memory = np.empty(CHUNKS), np.empty(CHUNKS, np.int64)
    x, y = x.reshape(-1), y.reshape(-1)
    if length <= RADIX:
        for first in range(np.uintp(0), lines * n, LINES * n):
            last = min(first + LINES * n, lines * n)
            far = reach(x[first:last])
            for place in range(first, last, n):
                part = place, place + n
                if far < FAR:
                    left(x, y, part, 1.0, exclusive)
                else:
                    told |= results(x, y, part, False, (1.0, np.int64(0)), exclusive)
        return told
    for line in range(lines):
        for first in range(np.uintp(0), n, CHUNKS * SIZE):
            here = slice(line * n + first, line * n + min(first + CHUNKS * SIZE, n))
            at, far = chunk + np.int64(first) // RADIX, reach(x[here])
            told |= chunked(x[here], y[here], folds[line], powers[line], at, memory, far, exclusive)
    return told


# ----------------------------------------------------------------------------------------------------- complex numbers
#
# They merge with the number 1 where `scan_trees` does, which may change the sign of a part that is 0. Products are left
# as they are while no part of them is so large or so small that one brought near 1 would have other bits, unless it is
# 0. Else a function tells that it has failed.

NEAR, CLOSE = 400, 100  # exponents of parts of products and of elements that are left as they are
FAILED = 8  # what is told then
INNER = 3  # levels of a block's tree above its chunks


@register_jitable
def parts_within(x: Any, most: Any) -> Any:
    """Whether each part of a number is 0, or neither large nor small."""
    a, b, low, high = bits(abs(x.real)), bits(abs(x.imag)), (1023 - most) << 52, (1023 + most) << 52
    return ((a == 0) | (low <= a) & (a < high)) & ((b == 0) | (low <= b) & (b < high))


@register_jitable
def complex_normal(p: Any, e: Any) -> Any:
    """A number as one near 1 and an exponent, and whether it is sure."""
    shift = (bits(max(abs(p.real), abs(p.imag))) >> 52) - 1022
    scale = power(-min(max(shift, np.int64(-1022)), np.int64(1022)))
    p = complex(p.real * scale, p.imag * scale)
    return p, e + shift, parts_within(p, NEAR)


@register_jitable
def complex_times(a: Any, b: Any) -> Any:
    """A product of numbers near 1, which is sure if they are."""
    p, e, sure = complex_normal(a[0] * b[0], a[1] + b[1])
    return p, e, sure & a[2] & b[2]


@register_jitable
def complex_before(folds: Any, powers: Any, chunk: Any, length: Any) -> Any:
    """What comes before a chunk of a line."""
    one = complex(1.0, 0.0), np.int64(0), True
    block, levels, found = chunk // RADIX**INNER, 1, one
    while RADIX**levels <= block:
        levels += 1
    for level in range(levels + INNER - 1, -1, -1):
        if level >= INNER or length - block * RADIX ** (INNER + 1) > RADIX ** (level + 1):
            some = chunk // RADIX**level % RADIX > 0
            found = complex_times(found, (folds[level], powers[level], True) if some else one)
    return found


@register_jitable
def complex_add(folds: Any, powers: Any, chunk: Any, total: Any) -> Any:
    """Go on behind a whole chunk. Tells whether all is sure."""
    for level in range(len(folds)):
        if chunk // RADIX**level % RADIX > 0:
            total = complex_times((folds[level], powers[level], True), total)
        elif level == INNER or (level > INNER and chunk >= RADIX**level):
            total = complex_times((complex(1.0, 0.0), np.int64(0), True), total)
        folds[level], powers[level] = total[0], total[1]
        if (chunk + 1) % RADIX ** (level + 1) != 0:
            break
    return total[2]


@register_jitable
def complex_result(b: Any, e: Any) -> Any:
    """A product, and what is told of it."""
    made = complex(scaled(b.real, e), scaled(b.imag, e))
    over = (abs(made.real) == np.inf) | (abs(made.imag) == np.inf)
    under = (abs(made.real) < TINY) & (b.real != 0.0) | (abs(made.imag) < TINY) & (b.imag != 0.0)
    return made, (OVERFLOW if over else 0) | (UNDERFLOW if under else 0)


@compiled()
def complex_products(
    x: np.ndarray, y: np.ndarray, folds: np.ndarray, powers: np.ndarray, chunk: int, length: int, exclusive: bool
) -> int:  # fmt: skip
    """The same of complex numbers."""
    n, told, sure = np.uintp(x.shape[1]), 0, True
    for line in range(np.uintp(x.shape[0])):
        for first in range(np.uintp(0), n, SIZE):
            place, last = chunk + np.int64(first) // RADIX, min(first + SIZE, n)
            p, e, right = complex_before(folds[line], powers[line], place, length)
            usual, product = abs(e) < FAR - 1 - NEAR, x[line, first]
            scale = power(e if usual else np.int64(0))
            for i in range(first, last):
                v, b = x[line, i], p
                p, product = p * v, v if i == first else product * v
                right &= parts_within(v, CLOSE) & parts_within(p, NEAR) & parts_within(product, NEAR)
                b = b if exclusive else p
                if usual:
                    y[line, i] = complex(b.real * scale, b.imag * scale)
                else:
                    y[line, i], found = complex_result(b, e)
                    told |= found
            if last - first == SIZE:
                total = complex_normal(product, np.int64(0))
                right &= complex_add(folds[line], powers[line], place, total)
            sure &= right
        if not sure:
            return FAILED
    return told
