"""The standard's statistical functions."""

import math

import numpy as np

from ..call.launch_cache import operation
from ..call.operation import ARRAY
from ..definition import scans as _scans
from ..ops import reduce as _reductions
from ..ops.arguments import normalize_axis
from ..ops.cumulative import cumulative
from ..ops.docstrings import documented
from .results import as_array

_SUMS, _PRODS = _scans.CUMSUM._replace(name="cumulative_sum"), _scans.CUMPROD._replace(name="cumulative_prod")


@documented
def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """Sum of the elements over the given axes, as ``sum`` of the standard's statistical functions.

    Integers of fewer than 64 bits are summed in int64 or uint64; floating and complex numbers keep their dtype.

    {standard}

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.sum(np.array([1, 2], dtype=np.uint8))
    array(3, dtype=uint64)
    """
    return as_array(_reductions.sum(x, axis=axis, dtype=dtype, keepdims=keepdims))


@documented
def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Product of the elements over the given axes, as ``prod`` of the standard's statistical functions.

    Integers of fewer than 64 bits are multiplied in int64 or uint64; floating and complex numbers keep their dtype.

    {standard}

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.prod(np.array([3.0, 4.0], dtype=np.float32))
    array(12., dtype=float32)
    """
    return as_array(_reductions.prod(x, axis=axis, dtype=dtype, keepdims=keepdims))


@documented
def max(x, /, *, axis=None, keepdims=False):
    """Maximum of the elements over the given axes, as ``max`` of the standard's statistical functions.

    NaN wins over numbers.

    {standard_parameters}

    Returns
    -------
    array
        {standard_result}

    Raises
    ------
    {AxisError}
    {TypeError}
    {ValueError} there is nothing to reduce

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.max(np.array([[3, 1], [2, 5]]), axis=0)
    array([3, 5])
    """
    return as_array(_reductions.max(x, axis=axis, keepdims=keepdims))


@documented
def min(x, /, *, axis=None, keepdims=False):
    """Minimum of the elements over the given axes, as ``min`` of the standard's statistical functions.

    NaN wins over numbers.

    {standard_parameters}

    Returns
    -------
    array
        {standard_result}

    Raises
    ------
    {AxisError}
    {TypeError}
    {ValueError} there is nothing to reduce

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.min(np.array([[3, 1], [2, 5]]), axis=0)
    array([2, 1])
    """
    return as_array(_reductions.min(x, axis=axis, keepdims=keepdims))


@documented
def mean(x, /, *, axis=None, keepdims=False):
    """Mean of the elements over the given axes, as ``mean`` of the standard's statistical functions.

    Floating and complex numbers keep their dtype; integers are averaged in float64. The mean of no elements is NaN.

    {standard}

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.mean(np.array([[1.0, 2.0], [3.0, 5.0]], dtype=np.float32), axis=(0, 1))
    array(2.75, dtype=float32)
    """
    return as_array(_reductions.mean(x, axis=axis, keepdims=keepdims))


@documented
def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Variance of the elements over the given axes, as ``var`` of the standard's statistical functions.

    Floating numbers keep their dtype, complex numbers give the dtype of their parts, integers float64. If
    ``correction`` is at least the number of elements, the result is NaN.

    {standard_parameters}

    Returns
    -------
    array
        The dtype is real, also for complex ``x``.
        {standard_result}

    Raises
    ------
    {AxisError}
    {TypeError} ``correction`` is not a real number

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.var(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1, correction=1)
    array([2., 8.])
    """
    return as_array(_reductions.var(x, axis=axis, correction=_defined(x, axis, correction), keepdims=keepdims))


@documented
def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Standard deviation of the elements over the given axes, as ``std`` of the standard's statistical functions.

    Floating numbers keep their dtype, complex numbers give the dtype of their parts, integers float64. If
    ``correction`` is at least the number of elements, the result is NaN.

    {standard_parameters}

    Returns
    -------
    array
        The dtype is real, also for complex ``x``.
        {standard_result}

    Raises
    ------
    {AxisError}
    {TypeError} ``correction`` is not a real number

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.std(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    array([1., 2.])
    """
    return as_array(_reductions.std(x, axis=axis, correction=_defined(x, axis, correction), keepdims=keepdims))


@operation(x=ARRAY)
@documented
def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sum along an axis, as ``cumulative_sum`` of the standard's statistical functions.

    Integers of fewer than 64 bits are summed in int64 or uint64; floating and complex numbers keep their dtype.

    {standard_scan}

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.cumulative_sum(np.array([1, 2, 3], dtype=np.uint8), include_initial=True)
    array([0, 1, 3, 6], dtype=uint64)
    """
    return cumulative(_SUMS, x, axis, dtype, include_initial)


@operation(x=ARRAY)
@documented
def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running product along an axis, as ``cumulative_prod`` of the standard's statistical functions.

    Integers of fewer than 64 bits are multiplied in int64 or uint64; floating and complex numbers keep their dtype.

    {standard_scan}

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.cumulative_prod(np.array([[1, 2], [3, 4]]), axis=1)
    array([[ 1,  2],
           [ 3, 12]])
    """
    return cumulative(_PRODS, x, axis, dtype, include_initial)


def _defined(x, axis, correction):
    """The correction; or NaN, which makes every variance NaN, as the standard requires if ``N - correction`` is not
    positive."""
    shape = x.shape if hasattr(x, "shape") else np.shape(x)
    try:
        count = math.prod(shape[d] for d in normalize_axis("var", axis, shape))
        return math.nan if count <= correction else correction
    except (TypeError, ValueError):  # an invalid axis or correction
        return correction
