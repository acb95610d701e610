"""gpuops: NumPy-style broadcasting, reductions, softmax and matrix products for CuPy and NumPy arrays.

NumPy arrays are computed on the CPU and give NumPy arrays, CuPy arrays on their GPU and give CuPy arrays.
"""

from . import array_api
from .adapters import lazies as _lazies  # noqa: F401 - which makes calls with expressions
from .adapters import libraries as _libraries  # noqa: F401 - which makes calls with arrays of other libraries
from .ops.average import average
from .ops.broadcast import broadcast_to, expand, where
from .ops.compare import allclose, array_equal
from .ops.expressions import evaluate
from .ops.lazy import lazy
from .ops.matmul import dot, matmul
from .ops.norms import rms_norm
from .ops.reduce import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    max_with_index,
    mean,
    mean_var,
    min,
    min_with_index,
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
    prod,
    ptp,
    std,
    sum,
    sum_of_squares,
    var,
    vector_norm,
)
from .ops.scans import cummax, cummin, cumprod, cumsum, logcumsumexp
from .ops.selection import compress, nonzero
from .ops.softmax import log_softmax, logsumexp, softmax
from .tools.info import info, strategies
from .version import __version__ as __version__

__all__ = [
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "array_api",
    "array_equal",
    "average",
    "broadcast_to",
    "compress",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dot",
    "evaluate",
    "expand",
    "info",
    "lazy",
    "log_softmax",
    "logcumsumexp",
    "logsumexp",
    "matmul",
    "max",
    "max_with_index",
    "mean",
    "mean_var",
    "min",
    "min_with_index",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "nonzero",
    "prod",
    "ptp",
    "rms_norm",
    "softmax",
    "std",
    "strategies",
    "sum",
    "sum_of_squares",
    "var",
    "vector_norm",
    "where",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> None:
    if name.startswith("_"):
        raise AttributeError(f"module 'gpuops' has no attribute {name!r}")
    from .tools.names import missing

    raise missing(name, __all__)
