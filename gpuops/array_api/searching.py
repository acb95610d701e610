"""The standard's searching functions."""

from ..ops import broadcast as _broadcast
from ..ops import reduce as _reductions
from ..ops import selection as _selection
from ..ops.docstrings import documented
from .results import as_array


@documented
def argmax(x, /, *, axis=None, keepdims=False):
    """Index of the first maximum along an axis, as ``argmax`` of the standard's searching functions.

    NaN wins over numbers.

    Parameters
    ----------
    {standard_x}
    {search_axis}
    {keepdims}

    Returns
    -------
    array
        The dtype is int64.
        {standard_result}

    Raises
    ------
    {AxisError}
    {TypeError}
    {ValueError} there is nothing to search

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.argmax(np.array([[1, 5, 5], [9, 3, 4]]), axis=1)
    array([1, 0])
    """
    return as_array(_reductions.argmax(x, axis=axis, keepdims=keepdims))


@documented
def argmin(x, /, *, axis=None, keepdims=False):
    """Index of the first minimum along an axis, as ``argmin`` of the standard's searching functions.

    NaN wins over numbers.

    Parameters
    ----------
    {standard_x}
    {search_axis}
    {keepdims}

    Returns
    -------
    array
        The dtype is int64.
        {standard_result}

    Raises
    ------
    {AxisError}
    {TypeError}
    {ValueError} there is nothing to search

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.argmin(np.array([[4, 2], [7, 7]]))
    array(1)
    """
    return as_array(_reductions.argmin(x, axis=axis, keepdims=keepdims))


@documented
def count_nonzero(x, /, *, axis=None, keepdims=False):
    """Number of non-zero elements over the given axes, as ``count_nonzero`` of the standard's searching functions.

    {standard_parameters}

    Returns
    -------
    array
        The dtype is int64.
        {standard_result}

    {raises}

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.count_nonzero(np.array([[0, 7, 0], [2, 0, 9]]), axis=1)
    array([1, 2])
    """
    return as_array(_reductions.count_nonzero(x, axis=axis, keepdims=keepdims))


@documented
def nonzero(x, /):
    """Indices of the elements that are not zero, as ``nonzero`` of the standard's searching functions.

    Parameters
    ----------
    {standard_x}

    Returns
    -------
    tuple of array
        For each dim of ``x``, the indices along it, as int64; the elements come in C order.
        {standard_result}

    Raises
    ------
    TypeError
        If ``x`` is not an array, or its dtype is not supported.
    ValueError
        If ``x`` has no dims.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.nonzero(np.array([0, 7, 0, 2]))
    (array([1, 3]),)
    """
    return _selection.nonzero(x)


@documented
def where(condition, x1, x2, /):
    """Elements of ``x1`` where the condition is true, of ``x2`` elsewhere: ``where`` of the searching functions.

    All three broadcast. The dtypes of ``x1`` and ``x2`` promote; one of the two may be a Python scalar, which takes the
    dtype of the other if it is of no higher kind.

    Parameters
    ----------
    condition : array
        Where it is true, elements of ``x1`` are taken.
    x1, x2 : array or scalar
        What to choose from; one of them may be a Python scalar.

    Returns
    -------
    array
        The library and the device are the arrays'.

    Raises
    ------
    {TypeError}
    {ValueError} the shapes do not broadcast

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.where(np.array([True, False]), np.array([1, 2], dtype=np.int8), 0)
    array([1, 0], dtype=int8)
    """
    return _broadcast.where(condition, x1, x2)
