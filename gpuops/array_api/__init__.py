"""The functions that the Python array API standard names too, with its signatures: version 2024.12.

Arrays are positional-only, options are keyword-only, and the results are arrays, 0-d if all axes are reduced. That
is how these differ from gpuops' functions of the same names, which compute them. The namespace holds no more of the
standard than that; `linalg` is its extension for linear algebra.

    >>> import gpuops.array_api as xp
    >>> import numpy as np
    >>> xp.sum(np.array([[1, 2], [3, 4]], dtype=np.int8), axis=1, keepdims=True)
    array([[3],
           [7]])

Where the standard leaves a choice, it is NumPy's: other dtypes are taken than a function has to take (integers by
`mean`, bools by `sum` and `matmul`, complex numbers by `max` and `min`), dtypes of different kinds promote, an empty
maximum is an error.
"""

from . import linalg as linalg
from .linalg import matmul
from .manipulation import broadcast_to
from .searching import argmax, argmin, count_nonzero, where
from .statistical import max, mean, min, prod, std, sum, var
from .utility import all, any

__all__ = [
    "all", "any", "argmax", "argmin", "broadcast_to", "count_nonzero", "matmul", "max", "mean", "min", "prod", "std",
    "sum", "var", "where",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__, "linalg"]
