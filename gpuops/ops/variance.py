"""Variances and standard deviations with NumPy's semantics: var, std, nanvar, nanstd; mean_var, which gives the mean
too."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from ..definition import records
from .docstrings import documented
from .reduction import NOT_GIVEN, degrees, reduction, several


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def var(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None
):
    """Variance of the elements over the given axes, as ``numpy.var``; in one pass over memory on a GPU.

    The sum of the squared distances from the mean, divided by ``N - ddof``. It is NaN or infinite where the divisor is
    not positive.

    {variance}

    Notes
    -----
    With S1 and S2 the exact sums of the elements and of their squares, it is ``(n * S2 - S1**2) / (n * (n - ddof))``,
    rounded once (docs/exact.md): a large mean costs no digits. There is no parameter ``mean`` as in NumPy, since a
    known mean saves nothing here. `mean_var` returns the mean too.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.var(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    array([1., 4.])
    """
    return reduction(
        records.VAR, a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, ddof=degrees("var", ddof, correction)
    )


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def std(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None
):
    """Standard deviation of the elements over the given axes, as ``numpy.std``; in one pass over memory on a GPU.

    The square root of the variance, rounded once: finite even where the variance is too large for the dtype.

    {variance}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.std(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    array([1., 2.])
    """
    return reduction(
        records.STD, a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, ddof=degrees("std", ddof, correction)
    )


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def nanvar(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None
):
    """Variance of the elements that are not NaN, as ``numpy.nanvar``; in one pass over memory on a GPU.

    {nan_variance}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanvar(np.array([[1.0, np.nan, 3.0], [2.0, 6.0, 4.0]]), axis=1, ddof=1)
    array([2., 4.])
    """
    freedom = degrees("nanvar", ddof, correction)
    return reduction(records.NANVAR, a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, ddof=freedom)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def nanstd(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None
):
    """Standard deviation of the elements that are not NaN, as ``numpy.nanstd``; in one pass over memory on a GPU.

    {nan_variance}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanstd(np.array([[1.0, np.nan, 3.0], [2.0, 6.0, 4.0]]), axis=1, ddof=1)
    array([1.41421356, 2.        ])
    """
    freedom = degrees("nanstd", ddof, correction)
    return reduction(records.NANSTD, a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, ddof=freedom)


class MeanVar(NamedTuple):
    """The results of `mean_var`."""

    mean: Any
    var: Any


@operation(a=ARRAY, where=MASK)
@documented
def mean_var(a, axis=None, dtype=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None):
    """Mean and variance of the elements over the given axes; in one pass over memory on a GPU.

    The same values as from `mean` and `var`.

    {variance_parameters}

    Returns
    -------
    mean, var : ndarray or scalar
        A named tuple. The variance is real, also for complex ``a``.
        {like_input}
        {workspace}

    {raises}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> mean, var = gpuops.mean_var(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    >>> mean, var
    (array([2., 4.]), array([1., 4.]))
    """
    freedom = degrees("mean_var", ddof, correction)
    return several(records.MEAN_VAR, MeanVar, a, axis, dtype, keepdims, where, strategy, ddof=freedom)
