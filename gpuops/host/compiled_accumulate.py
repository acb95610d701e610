"""Results so far that do not round, compiled by Numba: sums and products of integers, the greatest and least elements.

As in NumPy, an extreme that is NaN stays, and of equal ones, as zeros are, there is the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from .compiled import maximum, minimum
from .numba_compiler import compiled

SIDE = 8  # lines side by side that are worth loops of their own
STEPS = 512  # elements of fewer lines that are merged, line after line, while they are in a cache


@register_jitable
def add(a: Any, b: Any) -> Any:
    return a + b


@register_jitable
def multiply(a: Any, b: Any) -> Any:
    return a * b


def accumulated(merge: Callable[[Any, Any], Any]) -> Any:
    """What scans (outer, n, inner) along n, from one of the outer or inner ones to another."""

    @compiled()
    def scan(x: Any, y: Any, where: tuple[int, int, int, int]) -> None:
        real, n, last = y.dtype.type, x.shape[1], where[3]
        for o in range(where[0], where[1]):
            for k in range(where[2], last):
                y[o, 0, k] = x[o, 0, k]
            if last - where[2] < SIDE:
                for start in range(1, n, STEPS):
                    for k in range(where[2], last):
                        found = y[o, start - 1, k]
                        for i in range(start, min(start + STEPS, n)):
                            found = merge(found, real(x[o, i, k]))
                            y[o, i, k] = found
            else:
                for i in range(1, n):
                    before, given = y[o, i - 1, where[2] : last], x[o, i, where[2] : last]
                    made = y[o, i, where[2] : last]
                    for k in range(np.uintp(len(made))):
                        made[k] = merge(before[k], real(given[k]))

    return scan


#: By the ufunc that does the same.
SCANS = {
    np.add: accumulated(add), np.multiply: accumulated(multiply), np.maximum: accumulated(maximum),
    np.minimum: accumulated(minimum),
}  # fmt: skip
