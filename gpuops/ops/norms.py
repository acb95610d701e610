"""Norms of vectors and sums of squares."""

from __future__ import annotations

import numbers

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from ..errors import error
from .reduction import NOT_GIVEN, reduction
from .table import MEASURES, NORMS


@operation(a=ARRAY)
def vector_norm(a, /, *, axis=None, keepdims=False, ord=2, strategy=None):  # noqa: A002 - NumPy's name
    """Norm of vectors along the given axes, as ``numpy.linalg.vector_norm``; in one reading on a GPU.

    On a GPU, squares that overflow or vanish do not spoil the Euclidean norm: that of values of 1e30 is right in
    float32, where NumPy's is infinite.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        The axes of the vectors; None takes the whole array for one.
    keepdims : bool, optional
        Keep the axes with length 1.
    ord : float, optional
        The order: 2 is the Euclidean norm, 1 the sum of magnitudes, inf and -inf the greatest and the least of them, 0
        the number of elements that are not zero; any other p the sum of the p-th powers of magnitudes to the power of
        1 / p. None is 2.
    strategy : str, optional
        One of ``gpuops.strategies("vector_norm")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Real, of the precision of ``a``, float64 of integers; of the same kind and on the same device as ``a``. Half
        types are computed in float32. On a GPU, each thread keeps 1 MiB of workspace for each stream, and a captured
        CUDA graph its own.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported, or ``ord`` is no real number.
    ValueError
        If ``ord`` is a string, the norm of order -inf is to be taken of nothing, or a strategy is unknown.

    Notes
    -----
    Sums of squares of scaled elements are kept beside those of the elements, after J. Blue, "A portable Fortran program
    to find the Euclidean norm of a vector" (1978).

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
        raise error(ValueError, op, f"ord {ord!r} is not a norm of vectors")
    if not isinstance(ord, numbers.Real):
        raise error(TypeError, op, f"ord must be a real number, got {ord!r}")
    order = float(ord)
    record = NORMS.get(order, NORMS[None])
    return reduction(op, a, axis, None, None, keepdims, NOT_GIVEN, True, strategy, record, p=order)


@operation(a=ARRAY, out=OUT, where=MASK)
def sum_of_squares(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Sum of the squared magnitudes of the elements over the given axes; in one reading on a GPU.

    Small integers and bools are squared and summed as int64 or uint64, half types in float32.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The dtype to compute with; that of a sum if not given.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    strategy : str, optional
        One of ``gpuops.strategies("sum_of_squares")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``; real, of complex numbers too. On a GPU, each thread keeps 1
        MiB of workspace for each stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, or a strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.sum_of_squares(np.array([[1, 2], [3, 4]]), axis=1)
    array([ 5, 25])
    """
    record = MEASURES["sum_of_squares"]
    return reduction("sum_of_squares", a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, record)
