"""A reduction that is to be made of an array."""

from __future__ import annotations

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
