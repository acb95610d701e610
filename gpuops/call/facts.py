"""What decides a call in an argument other than an array."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np

from ..plan.dtypes import CTYPES

DTYPES = [np.dtype(name) for name in CTYPES if name != "bfloat16"]
#: Types whose values decide as they are: those of two are never equal.
PLAIN = frozenset((int, str, type, type(None)))
#: What decides of others, by their type; calls with arguments of types that are nowhere are not cached.
FACTS: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: (bool, value),
    **dict.fromkeys(map(type, DTYPES), lambda dtype: dtype),
    **dict.fromkeys((dtype.type for dtype in DTYPES), lambda scalar: (scalar.dtype, scalar.tobytes())),
    float: Struct("d").pack,  # the bits: 0.0 and -0.0 are equal, NaN and NaN are not
    complex: lambda value: np.complex128(value).tobytes(),
    tuple: lambda values: tuple([fact(value) for value in values]),
}


def fact(value: Any) -> tuple[type, Any]:
    """What decides of a value, and its type."""
    kind = type(value)
    return kind, value if kind in PLAIN else FACTS[kind](value)
