"""The functions that the standard's extension for linear algebra names too, with its signatures."""

from ..ops import norms as _norms
from .functions import as_array as _as_array
from .functions import matmul

__all__ = ["matmul", "vector_norm"]


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):  # noqa: A002 - the standard's name
    """Norm of vectors along the given axes, as ``vector_norm`` of the standard's linear algebra functions.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.linalg.vector_norm(np.array([[3.0, 4.0], [6.0, -8.0]]), axis=1)
    array([ 5., 10.])
    """
    return _as_array(_norms.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord))
