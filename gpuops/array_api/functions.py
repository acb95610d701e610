"""The functions of the standard's main namespace."""

import numpy as np

from ..ops import broadcast as _broadcast
from ..ops import matmul as _products
from ..ops import reduce as _reductions

# ----------------------------------------------------------------------------------------------- statistical functions


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """Sum of the elements over the given axes, as ``sum`` of the standard's statistical functions.

    Integers smaller than 64 bits are summed as int64 or uint64, floating and complex numbers keep their dtype.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The dtype to compute with and of the result.
    keepdims : bool, optional
        Keep the reduced axes with length 1.

    Returns
    -------
    array
        Of the same library and on the same device as the array, without dims if all are reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.sum(np.array([1, 2], dtype=np.uint8))
    array(3, dtype=uint64)
    """
    return as_array(_reductions.sum(x, axis=axis, dtype=dtype, keepdims=keepdims))


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Product of the elements over the given axes, as ``prod`` of the standard's statistical functions.

    Integers smaller than 64 bits are multiplied as int64 or uint64, floating and complex numbers keep their dtype.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The dtype to compute with and of the result.
    keepdims : bool, optional
        Keep the reduced axes with length 1.

    Returns
    -------
    array
        Of the same library and on the same device as the array, without dims if all are reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.prod(np.array([3.0, 4.0], dtype=np.float32))
    array(12., dtype=float32)
    """
    return as_array(_reductions.prod(x, axis=axis, dtype=dtype, keepdims=keepdims))


def max(x, /, *, axis=None, keepdims=False):
    """Maximum of the elements over the given axes, as ``max`` of the standard's statistical functions: NaN wins.

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
        Of the same library and on the same device as the array, without dims if all are reduced.

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
    >>> xp.max(np.array([[3, 1], [2, 5]]), axis=0)
    array([3, 5])
    """
    return as_array(_reductions.max(x, axis=axis, keepdims=keepdims))


def min(x, /, *, axis=None, keepdims=False):
    """Minimum of the elements over the given axes, as ``min`` of the standard's statistical functions: NaN wins.

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
        Of the same library and on the same device as the array, without dims if all are reduced.

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
    >>> xp.min(np.array([[3, 1], [2, 5]]), axis=0)
    array([2, 1])
    """
    return as_array(_reductions.min(x, axis=axis, keepdims=keepdims))


def mean(x, /, *, axis=None, keepdims=False):
    """Mean of the elements over the given axes, as ``mean`` of the standard's statistical functions.

    Floating and complex numbers keep their dtype, integers are averaged in float64. The mean of nothing is NaN.

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
        Of the same library and on the same device as the array, without dims if all are reduced.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.mean(np.array([[1.0, 2.0], [3.0, 5.0]], dtype=np.float32), axis=(0, 1))
    array(2.75, dtype=float32)
    """
    return as_array(_reductions.mean(x, axis=axis, keepdims=keepdims))


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Variance of the elements over the given axes, as ``var`` of the standard's statistical functions.

    Floating numbers keep their dtype, that of complex numbers is real, integers are taken as float64.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    correction : float, optional
        The number that is taken off that of the elements, before the sum of squares is divided by it.
    keepdims : bool, optional
        Keep the reduced axes with length 1.

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
    >>> xp.var(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1, correction=1)
    array([2., 8.])
    """
    return as_array(_reductions.var(x, axis=axis, correction=correction, keepdims=keepdims))


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Standard deviation of the elements over the given axes, as ``std`` of the standard's statistical functions.

    Floating numbers keep their dtype, that of complex numbers is real, integers are taken as float64.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    correction : float, optional
        The number that is taken off that of the elements, before the sum of squares is divided by it.
    keepdims : bool, optional
        Keep the reduced axes with length 1.

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
    >>> xp.std(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    array([1., 2.])
    """
    return as_array(_reductions.std(x, axis=axis, correction=correction, keepdims=keepdims))


# ------------------------------------------------------------------------------------------------- searching functions


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


# --------------------------------------------------------------------------------------------------- utility functions


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


# ------------------------------------------------------------------- searching, manipulation, linear algebra functions


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


def broadcast_to(x, /, shape):
    """A view of an array with another shape, as ``broadcast_to`` of the standard's manipulation functions.

    Nothing is copied, so do not write to it.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    shape : int or tuple of ints
        The shape of the view, to which that of ``x`` broadcasts.

    Returns
    -------
    array
        A view of ``x``.

    Raises
    ------
    TypeError
        If a dtype is not supported.
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.broadcast_to(np.array([1, 2]), shape=(2, 2))
    array([[1, 2],
           [1, 2]])
    """
    return _broadcast.broadcast_to(x, shape)


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
    return as_array(_products.matmul(x1, x2))


def as_array(result):
    """A result as an array: NumPy's scalars become arrays without dims."""
    return np.asarray(result) if isinstance(result, np.generic) else result
