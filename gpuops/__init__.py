"""gpuops: NumPy-style broadcasting, reductions, softmax and matrix products for CuPy arrays, as fast as they can be.

NumPy arrays are computed on the CPU and give NumPy arrays, CuPy arrays on their GPU and give CuPy arrays.
"""

from . import array_api as array_api
from .broadcast import broadcast_to, expand, where
from .info import info, strategies
from .matmul import dot, matmul
from .reduce import all, amax, amin, any, max, mean, min, prod, sum
from .softmax import log_softmax, logsumexp, softmax

__version__ = "0.1.0"
__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "broadcast_to",
    "dot",
    "expand",
    "info",
    "log_softmax",
    "logsumexp",
    "matmul",
    "max",
    "mean",
    "min",
    "prod",
    "softmax",
    "strategies",
    "sum",
    "where",
]
