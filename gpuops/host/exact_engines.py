"""What makes exact sums: Numba, if it is loaded or worth loading, or NumPy alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..definition import exact
from ..definition.reduction import Bound
from ..definition.task import Task
from . import exact as with_numpy
from .block import SMALL, counted, layout, taken_of
from .blocks import compiled, convert_masked

LOOPS = 2**13  # elements that are worth the time that it takes to load Numba
LOADED = (np.dtype(np.float32), np.dtype(np.float64))  # dtypes that compiled functions round to
INSTALLED = find_spec("numba") is not None
SLOW, PATIENCE = count(), 1000  # calls that NumPy alone has made; after how many Numba is worth loading
COUNTED = ("quotient", "variance", "deviation")  # what becomes of sums by the numbers of their elements


class Engine(NamedTuple):
    """What makes expansions, and rounds them: see `exact.expansions`, `definition.exact.ended`, `rounded_variance` and
    `rounded_ratio`."""

    expansions: Callable[..., Sequence[np.ndarray]]
    ended: Callable[..., tuple[np.ndarray, np.ndarray]]
    variance: Callable[..., tuple[np.ndarray, np.ndarray]]
    ratio: Callable[..., tuple[np.ndarray, np.ndarray]]


PLAIN = Engine(with_numpy.expansions, exact.ended, exact.rounded_variance, exact.rounded_ratio)


def engine(dtype: np.dtype, size: int) -> Engine | None:
    """What makes expansions of so many elements, whose sums are rounded to a dtype: of few, only what is loaded.

    There is none for float64 without Numba: its sums are then NumPy's, but for vectors that ``few_sums`` takes,
    since NumPy alone takes 28 times as long for exact ones (10**6 elements), for those of float32 10 times."""
    if (rounding := worthwhile(size, "compiled_rounding")) is not None:
        found: Any = compiled("compiled_exact")
        return Engine(found.expansions, rounding.ended, rounding.variance, rounding.ratio)
    return PLAIN if dtype != np.float64 or (INSTALLED and size < LOOPS) else None


def loaded(size: int, module: str = "compiled_rounding") -> Any:
    """What rounds sums of so many elements, or does something else, if it is compiled, and loaded or worth loading."""
    return compiled(module) if size >= LOOPS or "numba" in sys.modules else None


def worthwhile(size: int, module: str) -> Any:
    """The same for what NumPy alone is slow at: after many such calls it is loaded for few elements, too."""
    found = loaded(size, module)
    return compiled(module) if found is None and INSTALLED and next(SLOW) >= PATIENCE else found


@lru_cache(maxsize=1024)
def converts(bound: Bound) -> bool:
    """Whether elements are converted to the dtype of the computation before they are added."""
    return (bound.x.kind in "fV" and bound.val.kind == "c") or not np.can_cast(bound.x, bound.val)


def at_once(arrays: Sequence[Any], task: Task, keepdims: bool) -> list[Any] | None:
    """The results of a block by what is compiled, if it is loaded and there is nothing to be said of them."""
    (x, y, mask), bound, initial = arrays, task.bound, task.initial
    if bound.result not in LOADED or bound.val.kind == "c" or converts(bound) or (rounding := loaded(x.size)) is None:
        return None
    if (y is not None and not x.dtype == y.dtype == bound.val) or (initial == 0 and np.signbit(initial)):
        return None
    seen, sums = layout(x.shape, x.strides, task.axis, False, False), bound.sums
    apart = seen.lengths[2] > 1 and x.size > rounding.TURNED
    if sums is None or not seen.lies or (apart and (sums.of in ("moments", "weighted") or initial is not None)):
        return None
    taken, n = mask if bound.takes is None else taken_of(bound, x, mask), np.array([seen.lengths[1]], np.float64)
    x = x.transpose(seen.dims).reshape(seen.lengths)
    y = y if y is None else y.transpose(seen.dims).reshape(seen.lengths)
    if taken is not None:
        taken = np.ascontiguousarray(taken.transpose(seen.dims)).reshape(seen.lengths)
        x, y = (each if each is None else kept(each, taken) for each in (x, y))
        n = counted(taken).astype(np.float64).reshape(-1) if sums.end in COUNTED or sums.second else n
    found = rounding.results(x, y, n, sums, bound.val, float(initial or 0), task.options.get("ddof", 0.0))
    return found if found is None else [seen.back(each, keepdims) for each in found]


def kept(x: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Elements that take part, and 0 in the place of others."""
    if x.size <= SMALL:
        return np.where(taken, x, x.dtype.type(0))
    into = np.empty_like(x)
    convert_masked(x, taken, 0.0, into)
    return into
