"""A reduction that is to be made of an array."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..plan.geometry import Shape
from .reduction import Bound


class Task(NamedTuple):
    """A reduction that is to be made over some axes, to one result or several in a ``form``.

    ``places``: the dims of the array that those of a second operand go along, if there is one.
    """

    bound: Bound
    axis: Shape
    keepdims: bool
    initial: Any = None
    form: Any = None
    places: Shape | None = None
    options: dict[str, float] = {}  # noqa: RUF012 - never changed


def positions(shape: Shape, axis: Shape) -> Shape:
    """By how much the index of an element grows along each of the dims that are reduced."""
    lengths = [shape[d] for d in axis]
    return tuple([math.prod(lengths[i + 1 :]) for i in range(len(axis))])
