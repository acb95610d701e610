"""The standard's searching functions."""

from ..ops import broadcast as _broadcast
from ..ops import reduce as _reductions
from .results import as_array


def argmax(x, /, *, axis=None, keepdims=False):
    """Index of the first maximum along an axis, as ``argmax`` of the standard's searching functions: NaN wins.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    axis : None or int, optional
        The axis to search along; None searches the whole array, whose elements are counted in C order.
    keepdims : bool, optional
        Keep the reduced axes with length 1.

    Returns
    -------
    array
        int64. Of the same library and on the same device as the array, without dims if all are reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.
    ValueError
        If there is nothing to reduce.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.argmax(np.array([[1, 5, 5], [9, 3, 4]]), axis=1)
    array([1, 0])
    """
    return as_array(_reductions.argmax(x, axis=axis, keepdims=keepdims))


def argmin(x, /, *, axis=None, keepdims=False):
    """Index of the first minimum along an axis, as ``argmin`` of the standard's searching functions: NaN wins.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    axis : None or int, optional
        The axis to search along; None searches the whole array, whose elements are counted in C order.
    keepdims : bool, optional
        Keep the reduced axes with length 1.

    Returns
    -------
    array
        int64. Of the same library and on the same device as the array, without dims if all are reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.
    ValueError
        If there is nothing to reduce.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.argmin(np.array([[4, 2], [7, 7]]))
    array(1)
    """
    return as_array(_reductions.argmin(x, axis=axis, keepdims=keepdims))


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """Number of elements that are not zero, as ``count_nonzero`` of the standard's searching functions.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    keepdims : bool, optional
        Keep the reduced axes with length 1.

    Returns
    -------
    array
        int64. Of the same library and on the same device as the array, without dims if all are reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.count_nonzero(np.array([[0, 7, 0], [2, 0, 9]]), axis=1)
    array([1, 2])
    """
    return as_array(_reductions.count_nonzero(x, axis=axis, keepdims=keepdims))


def where(condition, x1, x2, /):
    """Elements of ``x1`` where the condition is true, of ``x2`` elsewhere: ``where`` of the searching functions.

    All three broadcast. The dtypes of ``x1`` and ``x2`` promote; one of the two may be a Python scalar, which takes
    the other's dtype if it is of no higher kind.

    Parameters
    ----------
    condition : array
        Where it is true, elements of ``x1`` are taken.
    x1, x2 : array or scalar
        What to choose from; one of them may be a Python scalar.

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
    >>> xp.where(np.array([True, False]), np.array([1, 2], dtype=np.int8), 0)
    array([1, 0], dtype=int8)
    """
    return _broadcast.where(condition, x1, x2)
