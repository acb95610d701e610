"""The scans: for each element of a line, the reduction of the elements up to it."""

from typing import Any, NamedTuple

import numpy as np

from .expressions import number
from .in_numpy import is_half
from .records import LOGSUMEXP, MAX, MIN, PROD, SUM, by_name
from .reduction import Bound, Reduction

#: A line is a tree of so many branches: chunks of `RADIX` elements, groups of `RADIX` chunks, and so on. What comes
#: before a node is what comes before its parent, merged with the node's elder siblings, of which those merge first, in
#: order; and what comes before a chunk is merged with its elements one after the other.
RADIX = 16


class Scan(NamedTuple):
    """A scan: a result for each element of a line, of the state of those up to it."""

    name: str
    record: Reduction  # what becomes of the elements so far
    empty: Any  # the result of none: a number, or the name of one of the dtype
    wide: bool = False  # floats are merged in double precision
    options: tuple[tuple[str, float], ...] = ()  # of the record

    def __repr__(self) -> str:
        return self.name

    def ordered(self, val: np.dtype) -> bool:
        """Whether results depend on the order in which states merge, as rounded ones do."""
        return val.kind in "fcV" and self.record.sums is None and self.record.rules.identity


class Task(NamedTuple):
    """A scan along an axis of an array, of elements of ``bound.x`` in the arithmetic of ``bound.val``."""

    scan: Scan
    bound: Bound
    axis: int | None  # None: the whole array is one line, in C order
    reverse: bool  # from the last element to the first
    exclusive: bool  # without the element itself: the first result is that of no elements
    dtype: np.dtype  # of the results

    @property
    def nothing(self) -> np.ndarray:
        """The result of no elements."""
        val = self.bound.val
        return np.asarray(number(self.scan.empty, np.dtype(np.float32) if is_half(val) else val)).astype(self.dtype)


CUMSUM, CUMPROD = Scan("cumsum", SUM, 0), Scan("cumprod", PROD, 1, wide=True)
CUMMAX, CUMMIN = Scan("cummax", MAX, "least"), Scan("cummin", MIN, "greatest")
LOGCUMSUMEXP = Scan("logcumsumexp", LOGSUMEXP, "least", options=(("scale", 1.0),))
SCANS: dict[str, Any] = by_name(CUMSUM, CUMPROD, CUMMAX, CUMMIN, LOGCUMSUMEXP)  # type: ignore[arg-type]
