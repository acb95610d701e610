"""``where`` and ``expand`` of the host, in blocks on several threads: the same bits for any number of them.

NumPy's warnings are off in blocks: casts that may warn are made outside of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan.geometry import Shape
from . import numpy_engine, results, threads
from .blocks import WORDS, Index, choose, compiled, indices

FEW = 2**16  # elements below which NumPy's own `where` is used
BLOCK = 2**18  # elements of a block of `where`
COST = 4  # of an element that `where` chooses, beside that of writing it
SAMPLE = 64  # elements along each dim by which a mask is judged
SMOOTH = 8  # elements for each of a mask's changes, from which on a processor foresees most of NumPy's branches
COPIES = 2**22  # bytes of a result that is copied in blocks


def where(condition: np.ndarray, x: Any, y: Any, out: np.ndarray | None = None, *, dtype: np.dtype) -> Any:
    """np.where in a given dtype, without its branch for each element."""
    operands = condition, x, y
    if dtype.itemsize not in WORDS or (compiled("compiled_maps") is None and smooth(condition)):
        return numpy_engine.where(condition, x, y, out, dtype=dtype)
    made: Any = out
    if out is None or out.dtype != dtype or any(np.may_share_memory(out, array) for array in operands):
        made = new_result(operands, dtype)
    word = WORDS[dtype.itemsize]
    views = [np.broadcast_to(array, made.shape) for array in operands]

    def fill(index: Index) -> None:
        mask, *values = (view[index] for view in views)
        x, y = (each.astype(dtype, copy=False).view(word) for each in values)
        choose(mask, x, y, made[index].view(word))

    threads.shared(COST * made.nbytes)(fill, indices(made.shape, made.strides, range(made.ndim), BLOCK))
    return made if made is out else results.deliver(made, out)


def smooth(condition: np.ndarray) -> bool:
    """Whether a mask is short, or its first elements seldom change: then NumPy's branches cost little."""
    if condition.size <= SAMPLE**2:
        return True
    first = condition[(slice(SAMPLE),) * condition.ndim] if condition.ndim > 1 else condition[: SAMPLE**2]
    return bool(np.count_nonzero(first[..., 1:] != first[..., :-1]) * SMOOTH < first.size)


def new_result(operands: tuple[Any, ...], dtype: np.dtype) -> np.ndarray:
    """A new array of the shape to which operands broadcast, whose dims lie as those of NumPy's own result."""
    access = [["writeonly", "allocate", "no_subtype"], *([["readonly"]] * len(operands))]
    dtypes = [dtype, *([None] * len(operands))]
    return np.nditer((None, *operands), ["zerosize_ok"], access, dtypes).operands[0]  # type: ignore[arg-type]


def expand(x: np.ndarray, out: np.ndarray | None = None, *, shape: Shape) -> Any:
    """A materialised np.broadcast_to."""
    apart = out is not None and not np.may_share_memory(x, out)  # np.copyto does not see every overlap of 1-d arrays
    made = out if apart and out is not None else np.empty(shape, x.dtype)
    if made.nbytes >= COPIES and x.size < made.size:
        x = x.astype(made.dtype, copy=False)  # once for each element
    if made.nbytes < COPIES or made.dtype != x.dtype or threads.limit() == 1:
        np.copyto(made, x, casting="unsafe")
    else:
        view = np.broadcast_to(x, shape)
        blocks = indices(made.shape, made.strides, range(made.ndim), COPIES // made.itemsize // 4)
        threads.shared(made.nbytes)(lambda index: np.copyto(made[index], view[index]), blocks)
    return made if out is None or made is out else results.deliver(made, out)
