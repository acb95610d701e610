"""A task for an engine: a reduction over some axes of an array."""

import math
from typing import Any, NamedTuple

from ..plan.geometry import Shape
from .reduction import Bound


class Task(NamedTuple):
    """A reduction over some axes, with one result, or several in a ``form``.

    ``places``: the dims of the array to which those of a second operand correspond, if there is one.
    """

    bound: Bound
    axis: Shape
    keepdims: bool
    initial: Any = None
    form: Any = None
    places: Shape | None = None
    options: dict[str, float] = {}  # noqa: RUF012 - never changed


def positions(shape: Shape, axis: Shape) -> Shape:
    """The stride of an element's index along each reduced dim."""
    lengths = [shape[d] for d in axis]
    return tuple([math.prod(lengths[i + 1 :]) for i in range(len(axis))])
