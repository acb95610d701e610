"""What calls on NumPy arrays share: where results go, and errors and warnings, which a call gives once, at its end."""

from __future__ import annotations

import sys
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from ..plan.geometry import Shape, memory_order
from .blocks import inverse

BETWEEN = __name__.partition(".")[0]  # the package of frames between a warning and the call


def new_result(a: np.ndarray, axis: Shape, dtype: np.dtype, parts: int = 1) -> np.ndarray:
    """New arrays, side by side, for reductions of an array: in its memory order, of length 1 along ``axis``."""
    lengths, order = lying(a.shape, a.strides, axis)
    return np.empty((parts, *lengths), dtype).transpose(order)


@lru_cache(maxsize=1024)
def lying(shape: Shape, strides: Shape, axis: Shape) -> tuple[Shape, Shape]:
    """The lengths of such results in memory, and where their dims are in it, after one for the parts."""
    order = memory_order(shape, strides)
    return tuple([1 if d in axis else shape[d] for d in order]), (0, *(1 + place for place in inverse(order)))


def in_order(result: np.ndarray, a: np.ndarray, axis: Shape) -> np.ndarray:
    """A result of length 1 along ``axis``, in the memory order of the array."""
    if result.size == max(result.shape, default=1):
        return result
    made = new_result(a, axis, result.dtype)[0]
    if made.strides == result.strides:
        return result
    made[...] = result
    return made  # type: ignore[no-any-return]


def deliver(result: Any, out: np.ndarray | None) -> Any:
    """The result, in ``out`` if the caller gave one; an input that overlaps ``out`` has been read by now."""
    if out is None:
        return result
    np.copyto(out, result, casting="unsafe")
    return out


def warn(message: str) -> None:
    """A RuntimeWarning at the line that calls gpuops."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)


#: What NumPy reports each floating-point error of, by its name in `numpy.seterrcall`.
REPORTED: dict[str, tuple[Any, list[Any]]] = {
    "overflow": (np.add, [np.finfo(np.float64).max] * 2), "invalid value": (np.add, [np.inf, -np.inf]),
    "divide by zero": (np.true_divide, [1.0, 0.0]), "underflow": (np.multiply, [np.finfo(np.float64).tiny] * 2),
}  # fmt: skip


class Flags:
    """The floating-point errors that NumPy meets where they are kept, on any thread."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def kept(self) -> Any:
        """A context in which they are."""
        return np.errstate(all="call", call=lambda flag, _: self.found.add(flag))


def report(flags: set[str], method: str = "reduce") -> None:
    """Report floating-point errors, each once, as the caller's ``np.errstate`` says; of a ufunc's method."""
    for flag in sorted(flags):
        ufunc, operands = REPORTED[flag]
        if method == "__call__":
            ufunc(*operands)
        else:
            getattr(ufunc, method)(operands)
