"""The functions that the standard's extension for linear algebra names too, with its signatures."""

from ..ops import norms as _norms
from .functions import as_array as _as_array
from .functions import matmul

__all__ = ["matmul", "vector_norm"]


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):  # noqa: A002 - the standard's name
    """Norm of vectors along the given axes, as ``vector_norm`` of the standard's linear algebra functions.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    axis : None, int or tuple of ints, optional
        The axes of the vectors; None takes the whole array for one.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    ord : float, optional
        The order: 2 is the Euclidean norm, 1 the sum of magnitudes, inf and -inf the greatest and the least of them, 0
        the number of elements that are not zero; any other p the sum of the p-th powers of magnitudes to the power of 1
        / p.

    Returns
    -------
    array
        Real, of complex numbers too. Of the same library and on the same device as the array, without dims if all are
        reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.linalg.vector_norm(np.array([[3.0, 4.0], [6.0, -8.0]]), axis=1)
    array([ 5., 10.])
    """
    return _as_array(_norms.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord))
