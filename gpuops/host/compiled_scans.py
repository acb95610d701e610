"""Exact sums so far, compiled by Numba: see `prefix_sums`."""

from __future__ import annotations

import numpy as np

from .numba_compiler import compiled

WIDE = 64  # lines side by side that are scanned together
ABOVE = 1 + 2.0**-9  # above what rounding makes of a bound


@compiled(inline="always")
def added(s: float, e: float, r: float, v: float) -> tuple[float, float, float, bool]:
    """The sum s + e, which is off by r at most, and one more element; whether partial sums overflow."""
    t = s + v
    if not np.isfinite(t):
        return t, 0.0, 0.0, bool(np.isfinite(s) and np.isfinite(v))
    z = t - s
    d = (s - (t - z)) + (v - z)
    if d != 0.0:
        u = e + d
        w = u - e
        r += abs((e - (u - w)) + (d - w))
        e = u
    return t, e, r, False


@compiled(inline="always")
def rounded(s: float, e: float, r: float, narrow: bool) -> tuple[float, bool]:
    """The sum, as a number that is rounded to float32 (narrow) or float64 as it is; and whether that is sure."""
    if e == 0.0 and r == 0.0:
        return s, True
    value = s + e
    off = r * ABOVE + abs(e) * 2.0**-52  # so that e - off and e + off, rounded, lie outside
    if not narrow:
        return value, r == 0.0 or s + (e - off) == s + (e + off)
    off += abs(value) * 2.0**-52
    low, high = np.float32(value - off), np.float32(value + off)
    return value, low == high and low != 0.0


@compiled()
def rows(x: np.ndarray, y: np.ndarray, unsure: np.ndarray, narrow: bool) -> bool:
    """Exact sums along the last of two axes, one line after the other. Tells whether some are not sure."""
    some = False
    for line in range(x.shape[0]):
        s, e, r, over = -0.0, 0.0, 0.0, False
        for i in range(x.shape[1]):
            s, e, r, beyond = added(s, e, r, np.float64(x[line, i]))
            over = over or beyond
            value, sure = rounded(s, e, r, narrow)
            y[line, i] = value
            if over or not sure:
                unsure[line, i] = True
                some = True
    return some


@compiled()
def columns(x: np.ndarray, y: np.ndarray, unsure: np.ndarray, narrow: bool) -> bool:
    """The same along the first axis, some lines side by side at a time."""
    some = False
    sums, over = np.empty((3, WIDE)), np.empty(WIDE, np.bool_)
    for first in range(0, x.shape[1], WIDE):
        count = min(WIDE, x.shape[1] - first)
        sums[0], sums[1], sums[2], over[:] = -0.0, 0.0, 0.0, False
        for i in range(x.shape[0]):
            for k in range(count):
                v = np.float64(x[i, first + k])
                sums[0, k], sums[1, k], sums[2, k], beyond = added(sums[0, k], sums[1, k], sums[2, k], v)
                over[k] = over[k] or beyond
                value, sure = rounded(sums[0, k], sums[1, k], sums[2, k], narrow)
                y[i, first + k] = value
                if over[k] or not sure:
                    unsure[i, first + k] = True
                    some = True
    return some
