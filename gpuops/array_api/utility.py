"""The standard's utility functions."""

from ..ops import reduce as _reductions
from ..ops.docstrings import documented
from .results import as_array


@documented
def any(x, /, *, axis=None, keepdims=False):
    """Whether any element is true over the given axes, as ``any`` of the standard's utility functions.

    NaN is true.

    {standard_parameters}

    Returns
    -------
    array
        The dtype is bool.
        {standard_result}

    {raises}

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.any(np.array([[0, 0], [0, 7]]), axis=1)
    array([False,  True])
    """
    return as_array(_reductions.any(x, axis=axis, keepdims=keepdims))


@documented
def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements are true over the given axes, as ``all`` of the standard's utility functions.

    NaN is true.

    {standard_parameters}

    Returns
    -------
    array
        The dtype is bool.
        {standard_result}

    {raises}

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.all(np.array([[1, 0], [3, 7]]))
    array(False)
    """
    return as_array(_reductions.all(x, axis=axis, keepdims=keepdims))
