"""NumPy's functions that warn of empty or all-NaN slices: their warnings point at the line that calls gpuops.

They are copies of NumPy's Python functions with another module ``warnings``: calls that do not warn pay nothing. (Those
of ufuncs, such as "overflow encountered in reduce", come from C: they point into NumPy or gpuops, as NumPy's own do.)
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

BETWEEN = ("numpy", __name__.partition(".")[0])  # the packages of frames between a warning and the call
#: The warnings that are held back, if any are.
HELD: ContextVar[dict[tuple[str, type[Warning]], None] | None] = ContextVar("HELD", default=None)


def warn(message: str, category: type[Warning], stacklevel: int = 1) -> None:
    """``warnings.warn`` at the line that calls gpuops, wherever NumPy would point; held back inside of `held`."""
    if (held := HELD.get()) is not None:
        held[message, category] = None
        return
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def held(found: dict[tuple[str, type[Warning]], None]) -> Iterator[None]:
    """Collect warnings instead, each once: those of a thread that the caller does not run in, and of several blocks."""
    token = HELD.set(found)
    try:
        yield
    finally:
        HELD.reset(token)


@cache
def copies(module: str) -> dict[str, Any]:
    """The names of one of NumPy's modules, with copies of its functions that warn as the package does."""
    theirs = vars(sys.modules[module])
    ours = theirs | {"warnings": SimpleNamespace(**vars(warnings) | {"warn": warn})}
    for name, value in theirs.items():
        plain = getattr(value, "__wrapped__", value)  # behind the dispatcher of __array_function__
        if isinstance(plain, FunctionType) and plain.__globals__ is theirs:
            ours[name] = copy = FunctionType(plain.__code__, ours, name, plain.__defaults__, plain.__closure__)
            copy.__kwdefaults__ = plain.__kwdefaults__
    return ours


def copy_of(function: Any) -> Callable[..., Any]:
    """A copy of a Python function of NumPy's that warns as the package does."""
    plain: Any = getattr(function, "__wrapped__", function)
    made: Callable[..., Any] = copies(plain.__globals__["__name__"])[plain.__name__]
    return made


nanmax, nanmin, nanmean, nanvar, nanstd = map(copy_of, (np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd))
methods: Any = np._core._methods  # type: ignore[attr-defined]  # what the methods of arrays call, and np.mean
mean, var, std = map(copy_of, (methods._mean, methods._var, methods._std))
