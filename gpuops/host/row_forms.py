"""How arrays of rows lie in memory, and how they are shared out to blocks."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..plan.geometry import Shape, order
from .blocks import Index, indices, innermost, inverse


@lru_cache(maxsize=256)
def cut(
    shape: Shape, strides: Shape, axis: Shape, room: int, line: int, parts: int = 1
) -> tuple[list[Index], list[Index]]:
    """How an array is shared out to blocks of about ``room`` elements: indices of rows along ``axis`` that are taken
    together, as they lie in memory, ``line`` of them where they lie side by side; and, if these are worth more than
    ``parts`` blocks, indices of parts of them."""
    length, kept = math.prod([shape[d] for d in axis]), [d for d in range(len(shape)) if d not in axis]
    least = 1 if innermost(shape, strides) in axis else line
    rows = indices(shape, strides, kept, max(1, room // length, least))
    together = math.prod([rows[0][d].stop for d in kept])
    if together * length <= parts * room:
        return rows, []
    return rows, indices(shape, strides, axis, max(1, room // together))


class Form(NamedTuple):
    """How an array lies in memory, seen as (outer, n, inner): the order of its dims, these lengths, and the elements
    from one row to the next, or from one line of columns."""

    dims: Shape
    lengths: Shape
    pitch: int

    def of(self, array: np.ndarray) -> np.ndarray:
        """The array, or one with an element for each row, as (outer, n, inner)."""
        outer, n, inner = self.lengths
        return array.transpose(self.dims).reshape(outer, n if array.size == outer * n * inner else 1, inner)

    def over(self, array: np.ndarray, like: np.ndarray, axis: Shape) -> np.ndarray:
        """An element for each row, (outer, 1, inner), as an array with the dims of another one."""
        return array.reshape([1 if d in axis else like.shape[d] for d in self.dims]).transpose(inverse(self.dims))


@lru_cache(maxsize=256)
def form(shape: Shape, strides: Shape, itemsize: int, axis: Shape) -> Form | None:
    """The form of an array; None, if other dims are between those along ``axis``, or gaps elsewhere than between lines
    at equal distances."""
    lying = order(strides)
    dims = tuple([d for d in lying if shape[d] > 1])
    reduced = [k for k, d in enumerate(dims) if d in axis]
    first, end = (reduced[0], reduced[-1] + 1) if reduced else (len(dims),) * 2
    runs = dims[:first], dims[first:end], dims[end:]
    regular = all(strides[d] == strides[e] * shape[e] for run in runs for d, e in pairwise(run))
    if end - first > len(reduced) or not regular or any(strides[d] % itemsize for d in dims):
        return None
    outer, n, inner = lengths = tuple([math.prod([shape[d] for d in run]) for run in runs])
    steps = [strides[run[-1]] // itemsize if run else 0 for run in runs]
    if inner > 1:
        pitch, plain = steps[1], steps[2] == 1 and (outer == 1 or steps[0] == n * steps[1])
    else:
        pitch, plain = steps[0] or n, n == 1 or steps[1] == 1
    plain = plain and pitch >= (inner if inner > 1 else n)
    dims = (*[d for d in lying if shape[d] == 1], *dims)
    return Form(dims, lengths, pitch) if plain else None


@lru_cache(maxsize=256)
def turned(shape: Shape, strides: Shape, axis: Shape, rows: int, side: int) -> Shape | None:
    """The order of dims in which a block is copied to memory, so that loops go along enough elements: if rows, or
    the elements side by side in columns, are at most so many, or other dims are between those along ``axis``."""
    dims = [d for d in order(strides) if shape[d] > 1]
    kinds = "".join(["n" if d in axis else "k" for d in dims])
    length, inner = math.prod([shape[d] for d in axis]), math.prod([shape[d] for d in dims[kinds.rfind("n") + 1 :]])
    if "k" not in kinds.strip("k") and (inner > side if "nk" in kinds else length > rows):
        return None
    return tuple(sorted(order(strides), key=lambda d: (d in axis) == (length > max(rows, side))))
