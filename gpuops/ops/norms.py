"""Norms of vectors and sums of squares."""

from __future__ import annotations

import math
import numbers

import numpy as np

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from ..definition.records import NORMS, RMS_NORM, SUM_OF_SQUARES
from ..errors import error
from .docstrings import documented
from .reduction import NOT_GIVEN, reduction
from .rows import normalized
from .softmax import arguments


@operation(a=ARRAY)
@documented
def vector_norm(a, /, *, axis=None, keepdims=False, ord=2, strategy=None):  # noqa: A002 - NumPy's name
    """Norm of vectors along the given axes, as ``numpy.linalg.vector_norm``; in one pass over memory on a GPU.

    The norms of order 1 and 2 are exact sums, rounded once (docs/exact.md). So the Euclidean norm is right even where
    squares overflow or underflow: for values of 1e30 in float32, NumPy's is infinite.

    Parameters
    ----------
    {a}
    axis : None, int or tuple of ints, optional
        The axes of the vectors; None takes the whole array as one vector.
    {keepdims}
    {ord}
        None is 2.
    {strategy}

    Returns
    -------
    ndarray or scalar
        The dtype is real, with the precision of ``a``, and float64 for integers. For orders
        other than 1 and 2, half types are computed in float32.
        {like_input}
        {workspace}

    Raises
    ------
    {AxisError}
    {TypeError} ``ord`` is not a real number
    {ValueError} ``ord`` is a string; if the norm of order -inf is taken of no elements

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.vector_norm(np.array([[3.0, 4.0], [6.0, -8.0]]), axis=1)
    array([ 5., 10.])
    """
    op = "vector_norm"
    if ord is None:  # as numpy.linalg.norm takes it
        ord = 2  # noqa: A001
    if isinstance(ord, str):
        raise error(ValueError, op, f"ord {ord!r} is not a vector norm")
    if not isinstance(ord, numbers.Real):
        raise error(TypeError, op, f"ord must be a real number, got {ord!r}")
    order = float(ord)
    record = NORMS.get(order, NORMS[None])
    return reduction(record, a, axis, None, None, keepdims, NOT_GIVEN, True, strategy, op, p=order)


@operation(a=ARRAY, out=OUT, where=MASK)
@documented
def sum_of_squares(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Sum of the squared magnitudes of the elements over the given axes; in one pass over memory on a GPU.

    Small integers and bools are squared and summed in int64 or uint64. A sum of squares of floats is exact, rounded
    once.

    Parameters
    ----------
    {a}
    {axis}
    dtype : dtype, optional
        Dtype of the computation; by default that of a sum.
    {out}
    {keepdims}
    {where}
    {strategy}

    Returns
    -------
    ndarray or scalar
        The dtype is real, also for complex ``a``.
        {like_input}
        {workspace}

    {raises}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.sum_of_squares(np.array([[1, 2], [3, 4]]), axis=1)
    array([ 5, 25])
    """
    return reduction(SUM_OF_SQUARES, a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy)


@operation(x=ARRAY, out=OUT, where=MASK)
@documented
def rms_norm(x, axis=-1, *, eps=None, dtype=None, out=None, where=True, strategy=None):
    """x / sqrt(mean(x ** 2) + eps), with the mean over the given axes, as ``torch.nn.functional.rms_norm``.

    Masked elements do not count in the mean, and become 0. Squares neither overflow nor underflow.

    Parameters
    ----------
    x : array_like
        {array}
        bool, integer or floating (including float16 and bfloat16).
    {softmax_axis}
    eps : float, optional
        Added to the mean; by default the machine epsilon of the dtype of the computation.
    {softmax_dtype}
    {softmax_out}
    {where}
    {strategy}

    Returns
    -------
    ndarray
        It has the memory layout of ``x``.
        {like_input}
        On a GPU, rows that do not fit on its chip, or that have a mask, are read twice.

    Raises
    ------
    {AxisError}
    {TypeError} ``eps`` is not a real number
    {ValueError} ``eps`` is negative; if the strategy does not apply

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.rms_norm(np.array([[1.0, 7.0], [-3.0, 3.0]]), eps=0)
    array([[ 0.2,  1.4],
           [-1. ,  1. ]])
    """
    given = arguments("rms_norm", x, axis, dtype, where)
    eps = np.finfo(given.val).eps if eps is None else eps
    if not isinstance(eps, numbers.Real):
        raise error(TypeError, "rms_norm", f"eps must be a real number, got {eps!r}")
    if not float(eps) >= 0:
        raise error(ValueError, "rms_norm", f"eps must not be negative, got {eps!r}")
    return normalized(RMS_NORM, given.rows, out, strategy, floor=math.sqrt(eps))
