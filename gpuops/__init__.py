"""gpuops: NumPy-style broadcasting, reductions, softmax and matrix products for CuPy arrays, as fast as they can be.

NumPy arrays are computed on the CPU and give NumPy arrays, CuPy arrays on their GPU and give CuPy arrays.
"""

from . import array_api
from .adapters import libraries as _libraries  # noqa: F401 - which makes calls with arrays of other libraries
from .ops.broadcast import broadcast_to, expand, where
from .ops.matmul import dot, matmul
from .ops.reduce import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    max,
    mean,
    min,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
    prod,
    std,
    sum,
    var,
)
from .ops.softmax import log_softmax, logsumexp, softmax
from .tools.info import info, strategies
from .version import __version__ as __version__

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "array_api",
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
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "softmax",
    "std",
    "strategies",
    "sum",
    "var",
    "where",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
