"""Sums, means and the like with NumPy's semantics; all reductions are found here."""

from __future__ import annotations

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from ..definition import records
from .docstrings import documented
from .extremes import amax as amax
from .extremes import amin as amin
from .extremes import max as max
from .extremes import min as min
from .extremes import ptp as ptp
from .nan_reductions import nanmax as nanmax
from .nan_reductions import nanmean as nanmean
from .nan_reductions import nanmin as nanmin
from .nan_reductions import nanprod as nanprod
from .nan_reductions import nansum as nansum
from .norms import sum_of_squares as sum_of_squares
from .norms import vector_norm as vector_norm
from .reduction import NOT_GIVEN, reduction
from .search import argmax as argmax
from .search import argmin as argmin
from .search import max_with_index as max_with_index
from .search import min_with_index as min_with_index
from .search import nanargmax as nanargmax
from .search import nanargmin as nanargmin
from .variance import mean_var as mean_var
from .variance import nanstd as nanstd
from .variance import nanvar as nanvar
from .variance import std as std
from .variance import var as var


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def sum(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None
):
    """Sum of the elements over the given axes, as ``numpy.sum``.

    Small integers and bools are summed in int64 or uint64. A sum of floats is the exact sum, rounded once: its bits do
    not depend on the order of the elements (docs/exact.md).

    {reduction}

    Notes
    -----
    The classic strategies follow M. Harris, "Optimizing Parallel Reduction in CUDA" (2007). docs/kernels/reduce.md
    explains all strategies; docs/accuracy.md has the measured errors.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.sum(np.array([[1, 2], [3, 4]]), axis=0)
    array([4, 6])
    """
    return reduction(records.SUM, a, axis, dtype, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def prod(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None
):
    """Product of the elements over the given axes, as ``numpy.prod``.

    Small integers and bools are multiplied in int64 or uint64; half types accumulate in float32.

    {reduction}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.prod(np.array([[1, 2], [3, 4]]), axis=1)
    array([ 2, 12])
    """
    return reduction(records.PROD, a, axis, dtype, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Mean of the elements over the given axes, as ``numpy.mean``.

    Integers are averaged in float64. The mean of floats is their exact sum divided by their number, rounded once. The
    mean of no elements is NaN.

    {reduction}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.mean(np.array([[1, 2], [3, 5]]), axis=1)
    array([1.5, 4. ])
    """
    return reduction(records.MEAN, a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def any(a, axis=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Whether any element is true over the given axes, as ``numpy.any``.

    {truth}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.any(np.array([[0, 0], [0, 7]]), axis=1)
    array([False,  True])
    """
    return reduction(records.ANY, a, axis, None, out, keepdims, NOT_GIVEN, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def all(a, axis=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Whether all elements are true over the given axes, as ``numpy.all``.

    {truth}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.all(np.array([[1, 0], [3, 7]]), axis=1)
    array([False,  True])
    """
    return reduction(records.ALL, a, axis, None, out, keepdims, NOT_GIVEN, where, strategy)


@operation(a=ARRAY)
@documented
def count_nonzero(a, axis=None, *, keepdims=False, strategy=None):
    """Number of non-zero elements over the given axes, as ``numpy.count_nonzero``.

    NaN counts as non-zero.

    {parameters}
    {strategy}

    Returns
    -------
    ndarray or scalar
        The dtype is int64.
        {like_input}
        {workspace}

    {raises}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.count_nonzero(np.array([[0, 7, 0], [2, 0, 9]]), axis=1)
    array([1, 2])
    """
    return reduction(records.COUNT, a, axis, None, None, keepdims, NOT_GIVEN, True, strategy)
