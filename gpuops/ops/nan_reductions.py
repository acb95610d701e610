"""Reductions with NumPy's semantics that leave out NaN: nansum, nanmax and the like."""

from __future__ import annotations

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from ..definition import records
from .docstrings import documented
from .reduction import NOT_GIVEN, reduction


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def nansum(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None
):
    """Sum of the elements that are not NaN, as ``numpy.nansum``; 0 if there are none.

    {skips_nan}

    {nan_reduction}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nansum(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1., 7.])
    """
    return reduction(records.NANSUM, a, axis, dtype, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def nanprod(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None
):
    """Product of the elements that are not NaN, as ``numpy.nanprod``; 1 if there are none.

    {skips_nan}

    {nan_reduction}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanprod(np.array([[2.0, np.nan], [3.0, 4.0]]), axis=1)
    array([ 2., 12.])
    """
    return reduction(records.NANPROD, a, axis, dtype, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def nanmax(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None):
    """Maximum of the elements that are not NaN, as ``numpy.nanmax``.

    {nan_extreme}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanmax(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1., 4.])
    """
    return reduction(records.NANMAX, a, axis, None, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def nanmin(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None):
    """Minimum of the elements that are not NaN, as ``numpy.nanmin``.

    {nan_extreme}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanmin(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=0)
    array([1., 4.])
    """
    return reduction(records.NANMIN, a, axis, None, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Mean of the elements that are not NaN, as ``numpy.nanmean``.

    The result is NaN where there are no such elements; the CPU then gives NumPy's warning. On a GPU, elements are
    counted as they are read.

    {nan_reduction}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanmean(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1. , 3.5])
    """
    return reduction(records.NANMEAN, a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy)
