"""What the cache key takes from arguments other than arrays."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np

from ..plan.dtypes import CTYPES

DTYPES = [np.dtype(name) for name in CTYPES if name != "bfloat16"]
#: Types whose values are their own keys: values of two of these types never compare equal.
PLAIN = frozenset((int, str, type, type(None)))
#: The keys of other values, by type. Calls with arguments of any other type are not cached.
FACTS: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: (bool, value),
    **dict.fromkeys(map(type, DTYPES), lambda dtype: dtype),
    **dict.fromkeys((dtype.type for dtype in DTYPES), lambda scalar: (scalar.dtype, scalar.tobytes())),
    float: Struct("d").pack,  # the bits: 0.0 and -0.0 are equal, NaN and NaN are not
    complex: lambda value: np.complex128(value).tobytes(),
    tuple: lambda values: tuple([fact(value) for value in values]),
}


def fact(value: Any) -> tuple[type, Any]:
    """A value's type and key."""
    kind = type(value)
    return kind, value if kind in PLAIN else FACTS[kind](value)
