"""Scans of NumPy arrays whose results may follow that of no elements."""

import numpy as np

from ..definition.scans import Task
from . import scans


def scan(x: np.ndarray, *, task: Task, initial: bool) -> np.ndarray:
    """The scan of an array. ``initial``: there is one more result, that of no elements."""
    axis, shape = task.axis or 0, [*(x.shape or (1,))]
    shape[axis] += initial
    made = np.empty_like(x, task.dtype, subok=False, shape=shape)
    first, rest = np.split(made, [int(initial)], axis)
    first[...] = task.nothing
    scans.scan(x, rest, task=task)
    return made
