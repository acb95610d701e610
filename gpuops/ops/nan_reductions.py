"""Reductions with NumPy's semantics that leave out NaN: nansum, nanmax and the like."""

from __future__ import annotations

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from .reduction import NOT_GIVEN, reduction


@operation(a=ARRAY, out=OUT, where=MASK)
def nansum(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None
):
    """Sum of the elements that are not NaN, as ``numpy.nansum``; of none, it is 0.

    On a GPU, NaN is left out as elements are read: there is no mask in memory and no second pass.

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
        One of ``gpuops.strategies("nansum")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

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
    >>> gpuops.nansum(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1., 7.])
    """
    return reduction("nansum", a, axis, dtype, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def nanprod(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None
):
    """Product of the elements that are not NaN, as ``numpy.nanprod``; of none, it is 1.

    On a GPU, NaN is left out as elements are read: there is no mask in memory and no second pass.

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
        One of ``gpuops.strategies("nanprod")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

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
    >>> gpuops.nanprod(np.array([[2.0, np.nan], [3.0, 4.0]]), axis=1)
    array([ 2., 12.])
    """
    return reduction("nanprod", a, axis, dtype, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def nanmax(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None):
    """Maximum of the elements that are not NaN, as ``numpy.nanmax``.

    It is NaN where all elements are; on the CPU with NumPy's warning. An empty or masked maximum needs ``initial``.

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
        One of ``gpuops.strategies("nanmax")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If there is nothing to reduce and no ``initial``, the shape of ``out`` or ``where`` does not fit, or a strategy
        is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanmax(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1., 4.])
    """
    return reduction("nanmax", a, axis, None, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def nanmin(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None):
    """Minimum of the elements that are not NaN, as ``numpy.nanmin``.

    It is NaN where all elements are; on the CPU with NumPy's warning. An empty or masked minimum needs ``initial``.

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
        One of ``gpuops.strategies("nanmin")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If there is nothing to reduce and no ``initial``, the shape of ``out`` or ``where`` does not fit, or a strategy
        is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanmin(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=0)
    array([1., 4.])
    """
    return reduction("nanmin", a, axis, None, out, keepdims, initial, where, strategy)


@operation(a=ARRAY, out=OUT, where=MASK)
def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True, strategy=None):
    """Mean of the elements that are not NaN, as ``numpy.nanmean``.

    On a GPU, elements are counted as they are read. It is NaN where all of them are, or there are none; on the CPU with
    NumPy's warning.

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
        One of ``gpuops.strategies("nanmean")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

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
    >>> gpuops.nanmean(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1. , 3.5])
    """
    return reduction("nanmean", a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy)
