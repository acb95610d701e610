"""Extremes with NumPy's semantics: max, min and ptp."""

from __future__ import annotations

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from .reduction import NOT_GIVEN, reduction
from .table import MEASURES


@operation(a=ARRAY, out=OUT, where=MASK)
def max(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None):
    """Maximum of the elements over the given axes, as ``numpy.max``.

    NaN wins; complex numbers are ordered by real, then imaginary part. An empty or masked maximum needs ``initial``.

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
    initial : scalar, optional
        A value that takes part in every reduction; an array without dims, of which a GPU is waited for.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    strategy : str, optional
        One of ``gpuops.strategies("max")``; None picks the fastest. It matters on a GPU only. The classic ones
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
        If there is nothing to reduce and no ``initial``, the shape of ``out`` or ``where`` does not fit, or a strategy
        is unknown or does not apply.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.max(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([nan,  4.])
    """
    return reduction("max", a, axis, None, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def min(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None):
    """Minimum of the elements over the given axes, as ``numpy.min``.

    NaN wins; complex numbers are ordered by real, then imaginary part. An empty or masked minimum needs ``initial``.

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
    initial : scalar, optional
        A value that takes part in every reduction; an array without dims, of which a GPU is waited for.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    strategy : str, optional
        One of ``gpuops.strategies("min")``; None picks the fastest. It matters on a GPU only. The classic ones
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
        If there is nothing to reduce and no ``initial``, the shape of ``out`` or ``where`` does not fit, or a strategy
        is unknown or does not apply.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.min(np.array([[3, 1], [2, 5]]), axis=0)
    array([2, 1])
    """
    return reduction("min", a, axis, None, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT)
def ptp(a, axis=None, out=None, keepdims=False, *, strategy=None):
    """Range of the elements over the given axes, from the minimum to the maximum, as ``numpy.ptp``.

    It takes one reading on a GPU. NaN wins. Integers wrap around: the range of int8 values may be negative.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; integer, floating
        (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    strategy : str, optional
        One of ``gpuops.strategies("ptp")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Of the dtype of ``a``, of the same kind and on the same device. On a GPU, each thread keeps 1 MiB of workspace
        for each stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If a dtype is not supported or cannot be cast; bools have no difference.
    ValueError
        If there are no elements, the shape of ``out`` does not fit, or a strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.ptp(np.array([[4, 9, 2], [7, 7, 7]]), axis=1)
    array([7, 0])
    """
    return reduction("ptp", a, axis, None, out, keepdims, NOT_GIVEN, True, strategy, MEASURES["ptp"])


amax = max
amin = min
