"""The standard's utility functions."""

from ..ops import reduce as _reductions
from .results import as_array


def any(x, /, *, axis=None, keepdims=False):
    """Whether any element is true over the given axes, as ``any`` of the standard's utility functions: NaN is true.

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
        bool. Of the same library and on the same device as the array, without dims if all are reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.any(np.array([[0, 0], [0, 7]]), axis=1)
    array([False,  True])
    """
    return as_array(_reductions.any(x, axis=axis, keepdims=keepdims))


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements are true over the given axes, as ``all`` of the standard's utility functions: NaN is true.

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
        bool. Of the same library and on the same device as the array, without dims if all are reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.all(np.array([[1, 0], [3, 7]]))
    array(False)
    """
    return as_array(_reductions.all(x, axis=axis, keepdims=keepdims))
