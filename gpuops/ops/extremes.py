"""Extremes with NumPy's semantics: max, min and ptp."""

from __future__ import annotations

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from ..definition import records
from .docstrings import documented
from .reduction import NOT_GIVEN, reduction


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def max(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None):
    """Maximum of the elements over the given axes, as ``numpy.max``.

    {extreme}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.max(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([nan,  4.])
    """
    return reduction(records.MAX, a, axis, None, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def min(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None):
    """Minimum of the elements over the given axes, as ``numpy.min``.

    {extreme}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.min(np.array([[3, 1], [2, 5]]), axis=0)
    array([2, 1])
    """
    return reduction(records.MIN, a, axis, None, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT)
@documented
def ptp(a, axis=None, out=None, keepdims=False, *, strategy=None):
    """Range (maximum minus minimum) over the given axes, as ``numpy.ptp``; in one pass over memory on a GPU.

    NaN wins over numbers. Integers wrap around: the range of int8 values may be negative.

    Parameters
    ----------
    a : array_like
        {array}
        integer, floating (including float16 and bfloat16) or complex.
    {axis}
    {out}
    {keepdims}
    {strategy}

    Returns
    -------
    ndarray or scalar
        The dtype is that of ``a``.
        {like_input}
        {workspace}

    Raises
    ------
    {AxisError}
    {TypeError} ``a`` is bool, since bools cannot be subtracted
    {ValueError} there are no elements

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.ptp(np.array([[4, 9, 2], [7, 7, 7]]), axis=1)
    array([7, 0])
    """
    return reduction(records.PTP, a, axis, None, out, keepdims, NOT_GIVEN, True, strategy)


amax = max
amin = min
