"""gpuops' functions that the standard's extension for linear algebra has too, with its signatures."""

from ..ops import matmul as _products
from ..ops import norms as _norms
from ..ops.docstrings import documented as _documented
from .results import as_array as _as_array

__all__ = ["matmul", "vector_norm"]


@_documented
def matmul(x1, x2, /):
    """Matrix product, as ``matmul`` of the standard's linear algebra functions.

    Parameters
    ----------
    x1, x2 : array
        Matrices, or stacks of matrices, which broadcast. A 1-d array is a row or a column.

    Returns
    -------
    array
        The library and the device are the arrays'.

    Raises
    ------
    {TypeError}
    {ValueError} the shapes do not match

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.matmul(np.array([1, 2]), np.array([3, 4]))
    array(11)
    """
    return _as_array(_products.matmul(x1, x2))


@_documented
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):  # noqa: A002 - the standard's name
    """Norm of vectors along the given axes, as ``vector_norm`` of the standard's linear algebra functions.

    Parameters
    ----------
    {standard_x}
    axis : None, int or tuple of ints, optional
        The axes of the vectors; None takes the whole array as one vector.
    {keepdims}
    {ord}

    Returns
    -------
    array
        The dtype is real, also for complex ``x``.
        {standard_result}

    Raises
    ------
    {AxisError}
    {TypeError} ``ord`` is not a real number

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.linalg.vector_norm(np.array([[3.0, 4.0], [6.0, -8.0]]), axis=1)
    array([ 5., 10.])
    """
    return _as_array(_norms.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord))


def __dir__() -> list[str]:
    return [*__all__]
