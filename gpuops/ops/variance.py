"""Variances and standard deviations with NumPy's semantics: var, std, nanvar, nanstd; mean_var, which gives the mean
too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT
from ..plan.work import Work, new_array
from .arguments import as_mask, check_array, dtype_of, normalize_axis
from .reduction import NOT_GIVEN, degrees, dtypes, in_one_pass, on_host, reduced, reduction
from .table import MEASURES, check_strategy


@operation(a=ARRAY, out=OUT, where=MASK)
def var(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None
):
    """Variance of the elements over the given axes, as ``numpy.var``; on a GPU in one reading.

    The mean of the squared distances from the mean. It is NaN or infinite where ``ddof`` leaves nothing to divide by.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The floating or complex dtype to compute with; that of ``a`` if not given, float64 of integers. Of complex
        numbers, it says how precise their parts are.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    ddof : float, optional
        The number that is taken off that of the elements, before the sum of squares is divided by it.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    correction : float, optional
        Another name of ``ddof``, that of the array API standard.
    strategy : str, optional
        One of ``gpuops.strategies("var")``; None picks the fastest. It matters on a GPU only.

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
        If arrays of two libraries are mixed, a dtype is not supported or cannot be cast, or ``ddof`` is no number.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, both ``ddof`` and ``correction`` are given, or a strategy is
        unknown or does not apply.

    Notes
    -----
    Each thread adds up elements less a center near their mean, and their squares; such sums merge around the mean of
    their centers: after T. Chan, G. Golub and R. LeVeque, "Algorithms for computing the sample variance" (1983). Half
    types are computed in float32. NumPy's ``mean=`` is not taken: a mean that is known saves nothing here. `mean_var`
    gives both.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.var(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    array([1., 4.])
    """
    return reduction(
        "var", a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, ddof=degrees("var", ddof, correction)
    )


@operation(a=ARRAY, out=OUT, where=MASK)
def std(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None
):
    """Standard deviation of the elements over the given axes, as ``numpy.std``; on a GPU in one reading.

    The square root of the variance.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The floating or complex dtype to compute with; that of ``a`` if not given, float64 of integers. Of complex
        numbers, it says how precise their parts are.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    ddof : float, optional
        The number that is taken off that of the elements, before the sum of squares is divided by it.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    correction : float, optional
        Another name of ``ddof``, that of the array API standard.
    strategy : str, optional
        One of ``gpuops.strategies("std")``; None picks the fastest. It matters on a GPU only.

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
        If arrays of two libraries are mixed, a dtype is not supported or cannot be cast, or ``ddof`` is no number.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, both ``ddof`` and ``correction`` are given, or a strategy is
        unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.std(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    array([1., 2.])
    """
    return reduction(
        "std", a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, ddof=degrees("std", ddof, correction)
    )


@operation(a=ARRAY, out=OUT, where=MASK)
def nanvar(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None
):
    """Variance of the elements that are not NaN, as ``numpy.nanvar``; on a GPU in one reading.

    It is NaN where ``ddof`` leaves nothing to divide by; on the CPU with NumPy's warning.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The floating or complex dtype to compute with; that of ``a`` if not given, float64 of integers. Of complex
        numbers, it says how precise their parts are.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    ddof : float, optional
        The number that is taken off that of the elements, before the sum of squares is divided by it.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    correction : float, optional
        Another name of ``ddof``, that of the array API standard.
    strategy : str, optional
        One of ``gpuops.strategies("nanvar")``; None picks the fastest. It matters on a GPU only.

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
        If arrays of two libraries are mixed, a dtype is not supported or cannot be cast, or ``ddof`` is no number.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, both ``ddof`` and ``correction`` are given, or a strategy is
        unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanvar(np.array([[1.0, np.nan, 3.0], [2.0, 6.0, 4.0]]), axis=1, ddof=1)
    array([2., 4.])
    """
    return reduction(
        "nanvar", a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, ddof=degrees("nanvar", ddof, correction)
    )


@operation(a=ARRAY, out=OUT, where=MASK)
def nanstd(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None
):
    """Standard deviation of the elements that are not NaN, as ``numpy.nanstd``; on a GPU in one reading.

    It is NaN where ``ddof`` leaves nothing to divide by; on the CPU with NumPy's warning.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The floating or complex dtype to compute with; that of ``a`` if not given, float64 of integers. Of complex
        numbers, it says how precise their parts are.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        ``a``.
    ddof : float, optional
        The number that is taken off that of the elements, before the sum of squares is divided by it.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    correction : float, optional
        Another name of ``ddof``, that of the array API standard.
    strategy : str, optional
        One of ``gpuops.strategies("nanstd")``; None picks the fastest. It matters on a GPU only.

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
        If arrays of two libraries are mixed, a dtype is not supported or cannot be cast, or ``ddof`` is no number.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, both ``ddof`` and ``correction`` are given, or a strategy is
        unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanstd(np.array([[1.0, np.nan, 3.0], [2.0, 6.0, 4.0]]), axis=1, ddof=1)
    array([1.41421356, 2.        ])
    """
    return reduction(
        "nanstd", a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, ddof=degrees("nanstd", ddof, correction)
    )


class MeanVar(NamedTuple):
    """What `mean_var` gives."""

    mean: Any
    var: Any


@operation(a=ARRAY, where=MASK)
def mean_var(a, axis=None, dtype=None, ddof=0, keepdims=False, *, where=True, correction=None, strategy=None):
    """Mean and variance of the elements over the given axes; in one reading on a GPU.

    What `mean` and `var` give.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None, int or tuple of ints, optional
        Axes to reduce; None reduces all of them.
    dtype : dtype, optional
        The floating or complex dtype to compute with; that of ``a`` if not given, float64 of integers. Of complex
        numbers, it says how precise their parts are.
    ddof : float, optional
        The number that is taken off that of the elements, before the sum of squares is divided by it.
    keepdims : bool, optional
        Keep the reduced axes with length 1.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a``.
    correction : float, optional
        Another name of ``ddof``, that of the array API standard.
    strategy : str, optional
        One of ``gpuops.strategies("mean_var")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    mean, var : ndarray or scalar
        A named tuple, of the same kind and on the same device as ``a``. The variance is real, of complex numbers too.
        On a GPU, each thread keeps 1 MiB of workspace for each stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, a dtype is not supported, or ``ddof`` is no number.
    ValueError
        If the shape of ``where`` does not fit, both ``ddof`` and ``correction`` are given, or a strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> mean, var = gpuops.mean_var(np.array([[1.0, 3.0], [2.0, 6.0]]), axis=1)
    >>> mean, var
    (array([2., 4.]), array([1., 4.]))
    """
    op = "mean_var"
    record, freedom = MEASURES[op], degrees(op, ddof, correction)
    check_strategy(op, strategy)
    check_array(op, "a", a)
    axis = normalize_axis(op, axis, a.shape)
    val, _ = dtypes(record, a.dtype, dtype_of(op, dtype), None)
    (shape, steps), mask = reduced(a, axis, keepdims), as_mask(op, where, a.shape)
    kinds = {"mean": val, "var": np.empty(0, val).real.dtype}
    mean, spread = (new_array(name, shape, kind, steps, a.machine) for name, kind in kinds.items())
    plan = None
    if a.machine is not None:
        plan = in_one_pass(record.beside(mask), a, mask, axis, val, (mean, spread), strategy, scale=freedom)
    host = on_host(record, a, val, axis, keepdims, ddof=freedom, form=MeanVar)
    return Work(op, (mean, spread), host, plan, form=MeanVar)
