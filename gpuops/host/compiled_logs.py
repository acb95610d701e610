"""Sums of exponentials so far, compiled by Numba: with the bits of `scan_trees.powers`, whose exponentials NumPy makes.

A chunk's greatest elements so far are known before its sums are. So a first function tells what exponentials there are,
and a second one goes on with these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from ..definition.scans import RADIX
from .numba_compiler import compiled

SIZE = np.uintp(RADIX)  # of a chunk
LEAST = -1000.0  # its exponential is 0, and so is that of NaN here


@register_jitable
def greater(a: Any, b: Any) -> Any:
    """The greater one, or NaN."""
    return a if (a >= b) | (a != a) else b


@register_jitable
def apart(a: Any, b: Any) -> Any:
    """How far the less one is below the greater one, at least `LEAST`."""
    below = b - a if a >= b else a - b
    return below if below > LEAST else LEAST


@register_jitable
def following(top: Any, rest: Any, x: Any, share: Any) -> Any:
    """The rest of a sum that goes on with an element."""
    own = 0.0 if x != -np.inf else -1.0
    return rest + (own + 1.0) * share if top >= x else own + (rest + 1.0) * share


@compiled()
def differences(x: np.ndarray, tops: np.ndarray, d: np.ndarray) -> None:
    """How far apart elements (line, n) and the greatest ones before them are, given those before (line, chunk)."""
    n = np.uintp(x.shape[1])
    for line in range(np.uintp(x.shape[0])):
        for chunk in range(np.uintp(tops.shape[1])):
            top = tops[line, chunk]
            for i in range(chunk * SIZE, min(n, chunk * SIZE + SIZE)):
                this = x[line, i]
                d[line, i], top = apart(top, this), greater(top, this)


@compiled()
def totals(x: np.ndarray, shares: np.ndarray, tops: np.ndarray, rests: np.ndarray) -> None:
    """The sums of whole chunks (line, chunk), given the exponentials."""
    for line in range(np.uintp(x.shape[0])):
        for chunk in range(np.uintp(x.shape[1]) // SIZE):
            top, rest = -np.inf, -1.0
            for i in range(chunk * SIZE, chunk * SIZE + SIZE):
                this = x[line, i]
                rest, top = following(top, rest, this, shares[line, i]), greater(top, this)
            tops[line, chunk], rests[line, chunk] = top, rest


@compiled()
def results(x: np.ndarray, shares: np.ndarray, tops: np.ndarray, rests: np.ndarray, exclusive: bool) -> None:
    """Put the greatest elements so far in the place of elements, and the rests of the sums in that of exponentials,
    given what is before each chunk."""
    n = np.uintp(x.shape[1])
    for line in range(np.uintp(x.shape[0])):
        for chunk in range(np.uintp(tops.shape[1])):
            top, rest = tops[line, chunk], rests[line, chunk]
            for i in range(chunk * SIZE, min(n, chunk * SIZE + SIZE)):
                this, before = x[line, i], (top, rest)
                rest, top = following(top, rest, this, shares[line, i]), greater(top, this)
                x[line, i], shares[line, i] = before if exclusive else (top, rest)
