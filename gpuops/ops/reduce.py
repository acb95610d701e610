"""Sums, means and the like with NumPy's semantics; all reductions are found here."""

from __future__ import annotations

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
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
from .table import MEASURES
from .variance import mean_var as mean_var
from .variance import nanstd as nanstd
from .variance import nanvar as nanvar
from .variance import std as std
from .variance import var as var


@operation(a=ARRAY, out=OUT, where=MASK)
def sum(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None
):
    """Sum of the elements over the given axes, as ``numpy.sum``.

    Small integers and bools are summed as int64 or uint64, half types accumulate in float32.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The dtype to compute and deliver; NumPy's choice if not given.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    initial : scalar, optional
        A value that takes part in every reduction; an array without dims, of which a GPU is waited for.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    strategy : str, optional
        One of ``gpuops.strategies("sum")``; None picks the fastest. It matters on a GPU only. The classic ones
        (``cross``, ``interleaved``, ``shuffle``) reduce their blocks' partial results in a second launch; those whose
        names end in ``_host`` on the host (slow, and it waits for the GPU; for comparison).

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own; the classic strategies take up to as much for a call, those that
        finish on the host one partial result per output at least.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, or a strategy is unknown or does not apply.

    Notes
    -----
    The classic strategies follow M. Harris, "Optimizing Parallel Reduction in CUDA" (2007); all are explained in
    docs/kernels/reduce.md, errors measured in docs/accuracy.md. The same call on the same device gives the same bits.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.sum(np.array([[1, 2], [3, 4]]), axis=0)
    array([4, 6])
    """
    return reduction("sum", a, axis, dtype, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def prod(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None
):
    """Product of the elements over the given axes, as ``numpy.prod``.

    Small integers and bools are multiplied as int64 or uint64, half types accumulate in float32.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The dtype to compute and deliver; NumPy's choice if not given.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    initial : scalar, optional
        A value that takes part in every reduction; an array without dims, of which a GPU is waited for.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    strategy : str, optional
        One of ``gpuops.strategies("prod")``; None picks the fastest. It matters on a GPU only. The classic ones
        (``cross``, ``interleaved``, ``shuffle``) reduce their blocks' partial results in a second launch; those whose
        names end in ``_host`` on the host (slow, and it waits for the GPU; for comparison).

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own; the classic strategies take up to as much for a call, those that
        finish on the host one partial result per output at least.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, or a strategy is unknown or does not apply.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.prod(np.array([[1, 2], [3, 4]]), axis=1)
    array([ 2, 12])
    """
    return reduction("prod", a, axis, dtype, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Mean of the elements over the given axes, as ``numpy.mean``.

    Integers are averaged in float64, half types in float32. The mean of nothing is NaN.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The dtype to compute and deliver; NumPy's choice if not given.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    strategy : str, optional
        One of ``gpuops.strategies("mean")``; None picks the fastest. It matters on a GPU only. The classic ones
        (``cross``, ``interleaved``, ``shuffle``) reduce their blocks' partial results in a second launch; those whose
        names end in ``_host`` on the host (slow, and it waits for the GPU; for comparison).

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own; the classic strategies take up to as much for a call, those that
        finish on the host one partial result per output at least.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, or a strategy is unknown or does not apply.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.mean(np.array([[1, 2], [3, 5]]), axis=1)
    array([1.5, 4. ])
    """
    return reduction("mean", a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def any(a, axis=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Whether any element is true over the given axes, as ``numpy.any``.

    NaN is true. The result is bool, or of ``out``'s dtype.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    strategy : str, optional
        One of ``gpuops.strategies("any")``; None picks the fastest. It matters on a GPU only. The classic ones
        (``cross``, ``interleaved``, ``shuffle``) reduce their blocks' partial results in a second launch; those whose
        names end in ``_host`` on the host (slow, and it waits for the GPU; for comparison).

    Returns
    -------
    ndarray or scalar
        bool, or of the dtype of ``out``; of the same kind and on the same device as ``a``. On a GPU, each thread keeps
        1 MiB of workspace for each stream, and a captured CUDA graph its own; the classic strategies take up to as much
        for a call, those that finish on the host one partial result per output at least.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, or a strategy is unknown or does not apply.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.any(np.array([[0, 0], [0, 7]]), axis=1)
    array([False,  True])
    """
    return reduction("any", a, axis, None, out, keepdims, NOT_GIVEN, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def all(a, axis=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Whether all elements are true over the given axes, as ``numpy.all``.

    NaN is true. The result is bool, or of ``out``'s dtype.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    strategy : str, optional
        One of ``gpuops.strategies("all")``; None picks the fastest. It matters on a GPU only. The classic ones
        (``cross``, ``interleaved``, ``shuffle``) reduce their blocks' partial results in a second launch; those whose
        names end in ``_host`` on the host (slow, and it waits for the GPU; for comparison).

    Returns
    -------
    ndarray or scalar
        bool, or of the dtype of ``out``; of the same kind and on the same device as ``a``. On a GPU, each thread keeps
        1 MiB of workspace for each stream, and a captured CUDA graph its own; the classic strategies take up to as much
        for a call, those that finish on the host one partial result per output at least.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, or a strategy is unknown or does not apply.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.all(np.array([[1, 0], [3, 7]]), axis=1)
    array([False,  True])
    """
    return reduction("all", a, axis, None, out, keepdims, NOT_GIVEN, where, strategy)


@operation(a=ARRAY)
def count_nonzero(a, axis=None, *, keepdims=False, strategy=None):
    """Number of elements that are not zero over the given axes, as ``numpy.count_nonzero``.

    NaN is not zero.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to count along; None counts all elements.
    keepdims : bool, optional
        Keep the axes with length 1.
    strategy : str, optional
        One of ``gpuops.strategies("count_nonzero")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        int64, of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported.
    ValueError
        If a strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.count_nonzero(np.array([[0, 7, 0], [2, 0, 9]]), axis=1)
    array([1, 2])
    """
    record = MEASURES["count_nonzero"]
    return reduction("count_nonzero", a, axis, None, None, keepdims, NOT_GIVEN, True, strategy, record)
