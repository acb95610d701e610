"""gpuops' functions that the Python array API standard has too, with its signatures: version 2024.12.

Arrays are positional-only, options are keyword-only, and the results are arrays, 0-d if all axes are reduced. Otherwise
they are gpuops' functions of the same names; ``cumulative_sum`` and ``cumulative_prod`` are ``cumsum`` and ``cumprod``,
and can begin with the result of no elements. The namespace has nothing else of the standard; `linalg` is its extension
for linear algebra.

    >>> import gpuops.array_api as xp
    >>> import numpy as np
    >>> xp.sum(np.array([[1, 2], [3, 4]], dtype=np.int8), axis=1, keepdims=True)
    array([[3],
           [7]])

Where the standard leaves a choice, gpuops chooses as NumPy does: functions take more dtypes than they have to (integers
in `mean`, bools in `sum` and `matmul`, complex numbers in `max` and `min`), dtypes of different kinds promote, and an
empty maximum is an error.
"""

from . import linalg as linalg
from .linalg import matmul
from .manipulation import broadcast_to
from .searching import argmax, argmin, count_nonzero, nonzero, where
from .statistical import cumulative_prod, cumulative_sum, max, mean, min, prod, std, sum, var
from .utility import all, any

__all__ = [
    "all", "any", "argmax", "argmin", "broadcast_to", "count_nonzero", "cumulative_prod", "cumulative_sum", "matmul",
    "max", "mean", "min", "nonzero", "prod", "std", "sum", "var", "where",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__, "linalg"]
