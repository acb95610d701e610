"""What makes exact sums: Numba, if it is loaded or worth loading, or NumPy alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from ..definition import exact
from ..definition.expressions import real_of
from ..definition.task import Task
from . import exact as with_numpy
from .blocks import compiled

LOOPS = 2**13  # elements that are worth the time that it takes to load Numba
LOADED = (np.dtype(np.float32), np.dtype(np.float64))  # dtypes that compiled functions round to
INSTALLED = find_spec("numba") is not None


class Engine(NamedTuple):
    """What makes expansions, and rounds them: see `exact.expansions`, `definition.exact.ended` and `rounded_variance`.
    ``compiled``: whether by what Numba has compiled, which also does both at once (`at_once`)."""

    expansions: Callable[..., Sequence[np.ndarray]]
    ended: Callable[..., tuple[np.ndarray, np.ndarray]]
    variance: Callable[..., tuple[np.ndarray, np.ndarray]]
    compiled: bool = False


PLAIN = Engine(with_numpy.expansions, exact.ended, exact.rounded_variance)


def engine(dtype: np.dtype, size: int) -> Engine | None:
    """What makes expansions of so many elements, whose sums are rounded to a dtype: of few, only what is loaded.

    There is none for float64 without Numba: its sums are then NumPy's, but for vectors that ``few_sums`` takes,
    since NumPy alone takes 28 times as long for exact ones (10**6 elements), for those of float32 10 times."""
    if (size >= LOOPS or "numba" in sys.modules) and (found := compiled("compiled_exact")):
        rounding: Any = compiled("compiled_rounding")
        return Engine(found.expansions, rounding.ended, rounding.variance, True)
    return PLAIN if dtype != np.float64 or (INSTALLED and size < LOOPS) else None


def at_once(x: np.ndarray, task: Task) -> list[np.ndarray] | None:
    """The results (outer, inner) of elements (outer, n, inner) by what is compiled, if there is nothing to be said."""
    of, end, second = task.bound.sums or ("", "", "")
    rounding: Any = compiled("compiled_rounding")
    dtype = real_of(task.bound.val)
    if of == "moments":
        found: list[np.ndarray] | None = rounding.moments(
            x, end == "deviation", task.options["ddof"], dtype, second != ""
        )
        return found
    one = rounding.results(x, of, end, dtype)
    return one if one is None else [one]


