"""Products so far along the last of two axes, compiled by Numba: with the bits of `scan_trees`.

A product is a number near 1, times a power of two. Elements of some chunks are turned, so that the first ones of all
lie side by side, then the second ones: chunks are multiplied at the same time. If elements are neither very large nor
very small, the products of a chunk are left as they are, times the power before it, since they do not come near the
limits of float64. Else each is brought near 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ..definition.scans import RADIX
from .compiled_units import bits, power
from .numba_compiler import compiled

CHUNKS = np.uintp(64)  # that are multiplied at the same time
SIZE = np.uintp(RADIX)  # of a chunk
LEAST, MOST = (1023 - 60) << 52, (1023 + 60) << 52  # bits of magnitudes of elements whose products may be left
FAR = 40  # the largest exponent of what is before a chunk whose products may be left without a power
TINY = 2.0**-1022
VANISHED = -2100  # the exponent of numbers that are rounded to 0 if a chunk's products are left
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
def load(x: Any, line: Any, place: Any, counts: Any, t: Any) -> Any:
    """Turn the elements of some lines' chunks. counts: lines, elements of each, chunks of each. Returns whether
    products of chunks may be left as they are."""
    lines, n, each = counts
    wrong, steps = np.int64(0), min(n, SIZE)
    if each == 1:
        for k in range(n):
            for i in range(lines):
                t[k * CHUNKS + i] = x[line + i, place + k]
    for i in range(lines if each > 1 else np.uintp(0)):
        for c in range(each):
            size, first, lane = min(SIZE, n - c * SIZE), place + c * SIZE, i * each + c
            for k in range(size):
                t[k * CHUNKS + lane] = x[line + i, first + k]
            for k in range(size, steps):
                t[k * CHUNKS + lane] = 1.0
    for k in range(steps):
        for c in range(lines * each):
            size = bits(abs(t[k * CHUNKS + c]))
            wrong |= (size - LEAST) | (MOST - size) if size != 0 else np.int64(0)  # below 0, if one is
    return wrong >= 0


@register_jitable
def totals(t: Any, near: Any, lanes: Any, p: Any, e: Any) -> None:
    """The products of chunks."""
    for c in range(lanes):
        p[c] = t[c]
    if near:
        for k in range(np.uintp(1), SIZE):
            for c in range(lanes):
                p[c] *= t[k * CHUNKS + c]
    for c in range(lanes):
        p[c], e[c] = normal(p[c])
    if not near:
        for k in range(np.uintp(1), SIZE):
            for c in range(lanes):
                p[c], e[c] = times((p[c], e[c]), normal(t[k * CHUNKS + c]))


@register_jitable
def elder(folds: Any, powers: Any, line: Any, chunk: Any) -> Any:
    """What comes before the group of a line's chunk."""
    found, level = (1.0, np.int64(0)), np.uintp(0)
    while chunk >= RADIX:
        level, chunk = level + np.uintp(1), chunk // RADIX
    for k in range(level):
        found = times(found, (folds[line, level - k], powers[line, level - k]))
    return found


@register_jitable
def before(folds: Any, powers: Any, line: Any, chunk: Any, counts: Any, p: Any, e: Any) -> None:
    """Put what comes before each chunk of some lines in the place of its total, and go on behind whole ones."""
    lines, n, each = counts
    for i in range(line, line + lines):
        at, top, fold = chunk, elder(folds, powers, i, chunk), (folds[i, 0], powers[i, 0])
        for c in range((i - line) * each, (i - line + np.uintp(1)) * each):
            total = p[c], e[c]
            p[c], e[c] = times(top, fold)
            if c < (i - line) * each + n // SIZE:
                fold, at = times(fold, total), at + 1
                if at % RADIX == 0 and folds.shape[1] > 1:
                    total, level, place = fold, 0, at
                    while place % RADIX == 0:
                        level, place = level + 1, place // RADIX
                        folds[i, level - 1], powers[i, level - 1] = 1.0, 0
                        total = times((folds[i, level], powers[i, level]), total)
                    folds[i, level], powers[i, level] = total
                    top, fold = elder(folds, powers, i, at), (1.0, np.int64(0))
        folds[i, 0], powers[i, 0] = fold


@register_jitable
def left(t: Any, lanes: Any, p: Any, e: Any, exclusive: Any) -> Any:
    """Put products so far in the place of elements, as they are, unless some may come near the limits of float64."""
    width, steps = lanes
    far = np.int64(0)
    for c in range(width):
        far |= (e[c] + FAR) | (FAR - e[c]) | np.int64(-1 if abs(p[c]) == np.inf or p[c] != p[c] else 0)
    if far < 0:
        return False
    for c in range(width):
        p[c] *= power(e[c])
    for k in range(steps):
        if exclusive:
            for c in range(width):
                t[k * CHUNKS + c], p[c] = p[c], p[c] * t[k * CHUNKS + c]
        else:
            for c in range(width):
                p[c] *= t[k * CHUNKS + c]
                t[k * CHUNKS + c] = p[c]
    return True


@register_jitable
def results(t: Any, near: Any, lanes: Any, p: Any, e: Any, exclusive: Any) -> Any:
    """Put products so far in the place of elements. Tells what is told of them."""
    invalid, over, under = np.int64(0), np.int64(0), np.int64(0)
    width, steps = lanes
    for k in range(steps):
        for c in range(width):
            v, b, i = t[k * CHUNKS + c], p[c], e[c]
            if near:
                p[c] = b * v
            else:
                p[c], e[c] = times((b, i), normal(v))
            invalid |= np.int64((p[c] != p[c]) & (b == b) & (v == v))
            b, i = (b, i) if exclusive else (p[c], e[c])
            made = scaled(b, i)
            t[k * CHUNKS + c] = made
            over |= np.int64((abs(made) == np.inf) & (abs(b) < np.inf))
            under |= np.int64((abs(made) < TINY) & (b != 0.0))
    return (INVALID if invalid else 0) | (OVERFLOW if over else 0) | (UNDERFLOW if under else 0)


@register_jitable
def store(t: Any, line: Any, place: Any, counts: Any, y: Any) -> None:
    """Write results of some lines' chunks, in the order of elements."""
    lines, n, each = counts
    if each == 1:
        for k in range(n):
            for i in range(lines):
                y[line + i, place + k] = t[k * CHUNKS + i]
    for i in range(lines if each > 1 else np.uintp(0)):
        for c in range(each):
            for k in range(min(SIZE, n - c * SIZE)):
                y[line + i, place + c * SIZE + k] = t[k * CHUNKS + i * each + c]


@compiled()
def products(x: np.ndarray, y: np.ndarray, folds: np.ndarray, powers: np.ndarray, chunk: int, exclusive: bool) -> int:
    """Products so far of lines (lines, n), of which there were so many chunks before, from folds (lines, level) times
    powers of two to folds. Tells what is told of results."""
    told, n, all = 0, np.uintp(x.shape[1]), np.uintp(x.shape[0])
    t, p, e = np.empty(CHUNKS * SIZE), np.empty(CHUNKS), np.empty(CHUNKS, np.int64)
    most = min(n, CHUNKS * SIZE)  # elements of a line that are taken together
    together = CHUNKS // ((most + SIZE - np.uintp(1)) // SIZE)
    for line in range(np.uintp(0), all, together):
        lines = min(together, all - line)
        for first in range(np.uintp(0), n, most):
            size = min(n - first, most)
            each = (size + SIZE - np.uintp(1)) // SIZE
            counts, lanes = (lines, size, each), (lines * each, min(size, SIZE))
            near = load(x, line, first, counts, t)
            if size >= SIZE:
                totals(t, near, lines * each, p, e)
            before(folds, powers, line, chunk + np.int64(first) // RADIX, counts, p, e)
            if near and not left(t, lanes, p, e, exclusive):
                told |= results(t, True, lanes, p, e, exclusive)
            elif not near:
                told |= results(t, False, lanes, p, e, exclusive)
            store(t, line, first, counts, y)
    return told
