"""The arrays of a case: data and memory layouts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .cases import Operand, Shape

PATTERN = 1_000_033  # period of the data: prime, so that rows differ, and the length of none: it adds up to about 0
NANS = 0.03  # share of them in data whose kind is "nan ", before that of the others
PAIRS = {"signs": (-1, 1), "flags": (0, 1)}  # products of signs neither overflow nor vanish


class Layout(NamedTuple):
    """A memory layout: the shape of the memory, and the view of it that is the operand."""

    memory: Callable[[Shape], Shape]
    view: Callable[[Any, Shape], Any]


#: Layouts by name.
LAYOUTS: dict[str, Layout] = {
    "C": Layout(lambda shape: shape, lambda x, shape: x),
    "F": Layout(lambda shape: shape[::-1], lambda x, shape: x.T),
    "[:, ::2]": Layout(lambda shape: (*shape[:-1], 2 * shape[-1]), lambda x, shape: x[..., ::2]),
    "[:, :-7]": Layout(lambda shape: (*shape[:-1], shape[-1] + 7), lambda x, shape: x[..., :-7]),
    "[:, ::-1]": Layout(lambda shape: shape, lambda x, shape: x[..., ::-1]),
    "[::-1]": Layout(lambda shape: shape, lambda x, shape: x[::-1]),
    "[1:]": Layout(lambda shape: (math.prod(shape) + 1,), lambda x, shape: x[1:].reshape(shape)),
    "broadcast": Layout(lambda shape: (*shape[:-1], 1), lambda x, shape: x),
}


def dtype_of(name: str) -> np.dtype:
    """The dtype with a name; bfloat16 is that of ml_dtypes (ModuleNotFoundError without it)."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


@cache
def values(kind: str, dtype: np.dtype) -> np.ndarray:
    """``PATTERN`` elements of data, the same in every run; other ones if a number follows the kind."""
    name, _, number = kind.rpartition(" ")
    random = np.random.default_rng(int(number) if number.isdigit() else 0)
    kind = name if number.isdigit() else kind
    if kind.startswith("nan "):
        x = values(kind.removeprefix("nan "), dtype).copy()
        if dtype.kind not in "biu":
            x[random.random(PATTERN) < NANS] = np.nan
        return x
    if kind == "mask" or (kind == "normal" and dtype.kind == "b"):
        return random.random(PATTERN) < 0.5
    if kind in ("zeros", "ones"):
        return getattr(np, kind)(PATTERN, dtype)
    if kind in PAIRS:
        return np.where(random.random(PATTERN) < 0.5, *PAIRS[kind]).astype(dtype)
    if kind == "weights":
        return (1 + random.random(PATTERN)).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(-9, 10, PATTERN).astype(dtype)
    x = random.standard_normal(PATTERN)
    x -= x.mean()  # sums of many repeats stay in the range of float16
    return (x + 1j * x[::-1] if dtype.kind == "c" else x).astype(dtype)


def allocate(xp: Any, operand: Operand, data: Any) -> Any:
    """An operand in new NumPy or CuPy memory, filled with repetitions of ``data``."""
    layout = LAYOUTS[operand.layout]
    memory = xp.empty(layout.memory(operand.shape), data.dtype)
    flat = memory.reshape(-1)
    for start in range(0, flat.size, data.size):
        part = flat[start : start + data.size]
        part[...] = data[: part.size]
    x = layout.view(memory, operand.shape)
    return xp.broadcast_to(x, operand.shape) if operand.layout == "broadcast" else x


def stored(operand: Operand) -> int:
    """How many distinct elements in memory an operand has."""
    return math.prod(operand.shape) // (operand.shape[-1] if operand.layout == "broadcast" else 1)
