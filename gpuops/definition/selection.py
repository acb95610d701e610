"""What `compress` selects, as every engine checks it."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..errors import error
from ..plan.geometry import Shape


class Compress(NamedTuple):
    """The choice of elements of an array, in C order, or of what it has along an axis."""

    op: str
    shape: Shape  # of the array
    axis: int | None

    @property
    def length(self) -> int:
        """How many there are to choose from."""
        return math.prod(self.shape) if self.axis is None else self.shape[self.axis]

    def result(self, count: int, beyond: int, out: Shape | None) -> Shape:
        """The shape of the result, given how many are chosen, and how many that do not exist."""
        if beyond:
            of = "the array" if self.axis is None else f"axis {self.axis}"
            raise error(IndexError, self.op, f"condition is true beyond the {self.length} elements of {of}")
        before, after = ((), ()) if self.axis is None else (self.shape[: self.axis], self.shape[self.axis + 1 :])
        made = (*before, count, *after)
        if out is not None and out != made:
            raise error(ValueError, self.op, f"out has shape {out}, the result has shape {made}")
        return made
