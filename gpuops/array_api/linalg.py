"""The functions that the standard's extension for linear algebra names too, with its signatures."""

from ..ops import matmul as _products
from ..ops import norms as _norms
from .results import as_array as _as_array

__all__ = ["matmul", "vector_norm"]


def matmul(x1, x2, /):
    """Matrix product, as ``matmul`` of the standard's linear algebra functions.

    Parameters
    ----------
    x1, x2 : array
        Matrices, or stacks of them, which broadcast; an array of one dim is a row or a column.

    Returns
    -------
    array
        Of the same library and on the same device as the arrays.

    Raises
    ------
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported.
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.matmul(np.array([1, 2]), np.array([3, 4]))
    array(11)
    """
    return _as_array(_products.matmul(x1, x2))


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


def __dir__() -> list[str]:
    return [*__all__]
