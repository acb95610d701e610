"""Searches with NumPy's semantics: argmax and the like, and maxima with their indices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..call.launch_cache import operation
from ..call.operation import ARRAY, OUT
from ..errors import error
from ..plan import reductions
from ..plan.builder import Builder, shared
from ..plan.dtypes import dtype_name
from ..plan.geometry import Shape
from ..plan.work import Work, new_array
from .arguments import as_index, check_array, check_out, normalize_axis
from .reduction import add_reduction, in_one_pass, on_host, reduced
from .table import SEARCHES, WITH_INDEX, check_strategy


@operation(a=ARRAY, out=OUT)
def argmax(a, axis=None, out=None, *, keepdims=False, strategy=None):
    """Index of the maximum along an axis, as ``numpy.argmax``: of the first one, if there are several.

    NaN wins; complex numbers are ordered by real, then imaginary part.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None or int, optional
        The axis to search along; None searches the whole array, whose elements are counted in C order.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, an integer dtype that int64 holds. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the axis with length 1.
    strategy : str, optional
        One of ``gpuops.strategies("argmax")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        int64, of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If the axis is out of range.
    TypeError
        If the axis is no int, a dtype is not supported, or int64 does not hold that of ``out``.
    ValueError
        If there is nothing to search, the shape of ``out`` does not fit, or a strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.argmax(np.array([[1, 5, 5], [9, 3, 4]]), axis=1)
    array([1, 0])
    """
    return search("argmax", a, axis, out, keepdims, strategy)


@operation(a=ARRAY, out=OUT)
def argmin(a, axis=None, out=None, *, keepdims=False, strategy=None):
    """Index of the minimum along an axis, as ``numpy.argmin``: of the first one, if there are several.

    NaN wins; complex numbers are ordered by real, then imaginary part.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None or int, optional
        The axis to search along; None searches the whole array, whose elements are counted in C order.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, an integer dtype that int64 holds. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the axis with length 1.
    strategy : str, optional
        One of ``gpuops.strategies("argmin")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        int64, of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If the axis is out of range.
    TypeError
        If the axis is no int, a dtype is not supported, or int64 does not hold that of ``out``.
    ValueError
        If there is nothing to search, the shape of ``out`` does not fit, or a strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.argmin(np.array([[4, 2], [7, 7]]), axis=0)
    array([0, 0])
    """
    return search("argmin", a, axis, out, keepdims, strategy)

@operation(a=ARRAY, out=OUT)
def nanargmax(a, axis=None, out=None, *, keepdims=False, strategy=None):
    """Index of the maximum along an axis, NaN left out, as ``numpy.nanargmax``: of the first one, if there are several.

    Where all elements are NaN, it is -1 on a GPU, which is not waited for, and a ValueError on the CPU, as in NumPy.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None or int, optional
        The axis to search along; None searches the whole array, whose elements are counted in C order.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, an integer dtype that int64 holds. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the axis with length 1.
    strategy : str, optional
        One of ``gpuops.strategies("nanargmax")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        int64, of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If the axis is out of range.
    TypeError
        If the axis is no int, a dtype is not supported, or int64 does not hold that of ``out``.
    ValueError
        If there is nothing to search (also, on the CPU, nothing but NaN), the shape of ``out`` does not fit, or a
        strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanargmax(np.array([[np.nan, 5.0, 2.0], [9.0, 3.0, np.nan]]), axis=1)
    array([1, 0])
    """
    return search("nanargmax", a, axis, out, keepdims, strategy)


@operation(a=ARRAY, out=OUT)
def nanargmin(a, axis=None, out=None, *, keepdims=False, strategy=None):
    """Index of the minimum along an axis, NaN left out, as ``numpy.nanargmin``: of the first one, if there are several.

    Where all elements are NaN, it is -1 on a GPU, which is not waited for, and a ValueError on the CPU, as in NumPy.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None or int, optional
        The axis to search along; None searches the whole array, whose elements are counted in C order.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, an integer dtype that int64 holds. It may overlap
        ``a``.
    keepdims : bool, optional
        Keep the axis with length 1.
    strategy : str, optional
        One of ``gpuops.strategies("nanargmin")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        int64, of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If the axis is out of range.
    TypeError
        If the axis is no int, a dtype is not supported, or int64 does not hold that of ``out``.
    ValueError
        If there is nothing to search (also, on the CPU, nothing but NaN), the shape of ``out`` does not fit, or a
        strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanargmin(np.array([[np.nan, 5.0, 2.0], [9.0, 3.0, np.nan]]), axis=1)
    array([2, 1])
    """
    return search("nanargmin", a, axis, out, keepdims, strategy)


class WithIndex(NamedTuple):
    """What `max_with_index` and `min_with_index` give."""

    values: Any
    indices: Any


@operation(a=ARRAY)
def max_with_index(a, axis=None, *, keepdims=False, strategy=None):
    """Maximum along an axis and its index, of the first one if there are several; in one reading on a GPU.

    What `max` and `argmax` give: NaN wins; complex numbers are ordered by real, then imaginary part.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None or int, optional
        The axis to search along; None searches the whole array, whose elements are counted in C order.
    keepdims : bool, optional
        Keep the axis with length 1.
    strategy : str, optional
        One of ``gpuops.strategies("max_with_index")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    values, indices : ndarray or scalar
        A named tuple: elements, of the dtype of ``a``, and int64; of the same kind and on the same device as ``a``. On
        a GPU, each thread keeps 1 MiB of workspace for each stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If the axis is out of range.
    TypeError
        If the axis is no int, or a dtype is not supported.
    ValueError
        If there is nothing to search, or a strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> values, indices = gpuops.max_with_index(np.array([[1, 5, 5], [9, 3, 4]]), axis=1)
    >>> values, indices
    (array([5, 9]), array([1, 0]))
    """
    return with_index("max_with_index", a, axis, keepdims, strategy)


@operation(a=ARRAY)
def min_with_index(a, axis=None, *, keepdims=False, strategy=None):
    """Minimum along an axis and its index, of the first one if there are several; in one reading on a GPU.

    What `min` and `argmin` give. NaN wins; complex numbers are ordered by real, then imaginary part.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    axis : None or int, optional
        The axis to search along; None searches the whole array, whose elements are counted in C order.
    keepdims : bool, optional
        Keep the axis with length 1.
    strategy : str, optional
        One of ``gpuops.strategies("min_with_index")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    values, indices : ndarray or scalar
        A named tuple: elements, of the dtype of ``a``, and int64; of the same kind and on the same device as ``a``. On
        a GPU, each thread keeps 1 MiB of workspace for each stream, and a captured CUDA graph its own.

    Raises
    ------
    AxisError
        If the axis is out of range.
    TypeError
        If the axis is no int, or a dtype is not supported.
    ValueError
        If there is nothing to search, or a strategy is unknown.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.min_with_index(np.array([[4, 2], [7, 7]]), axis=0).indices
    array([0, 0])
    """
    return with_index("min_with_index", a, axis, keepdims, strategy)


# ------------------------------------------------------------------------------------------------------- descriptions


def search(op: str, a: Any, axis: Any, out: Any, keepdims: bool, strategy: str | None) -> Work:
    """The description of argmax and the like."""
    check_strategy(op, strategy)
    axis, shape, steps = along(op, a, axis, keepdims)
    record, index = SEARCHES[op], np.dtype(np.int64)
    if record.plain and a.dtype.kind in "biu":
        record = SEARCHES[record.plain]
    if out is not None:
        check_out(op, out, shape, index, "unsafe")
        if not np.can_cast(out.dtype, index):
            raise error(TypeError, op, f"out is of dtype {out.dtype.name}, which int64 does not hold")
    host = on_host(record, a, a.dtype, axis, keepdims)
    if a.machine is None:
        return Work(op, (out or new_array("out", shape, index, steps),), host)
    builder = Builder(a.machine)
    x = builder.readable(a)
    target = builder.target(out, out is not None and shared(out, x), shape, index, steps)
    places = reductions.positions(x, axis)
    add_reduction(builder, reductions.problem(record.reduction, x, places, target, axis, dtype_name(a.dtype)), strategy)
    builder.deliver(target, out)
    return Work(op, (out or target,), host, builder.finish())


def with_index(op: str, a: Any, axis: Any, keepdims: bool, strategy: str | None) -> Work:
    """The description of max_with_index and min_with_index."""
    check_strategy(op, strategy)
    axis, shape, steps = along(op, a, axis, keepdims)
    record = WITH_INDEX[op]
    results = (
        new_array("values", shape, a.dtype, steps, a.machine),
        new_array("indices", shape, np.dtype(np.int64), steps, a.machine),
    )  # fmt: skip
    host = on_host(record, a, a.dtype, axis, keepdims, form=WithIndex)
    plan = None
    if a.machine is not None:
        places = reductions.positions(a, axis)
        plan = in_one_pass(record.reduction, a, places, axis, a.dtype, results, strategy)
    return Work(op, results, host, plan, form=WithIndex)


def along(op: str, a: Any, axis: Any, keepdims: bool) -> tuple[Shape, Shape, Shape]:
    """The axis of a search, which must find something, and the shape and the strides of its result."""
    check_array(op, "a", a)
    dims = normalize_axis(op, axis if axis is None else as_index(op, "axis", axis, axis, "None or an int"), a.shape)
    if 0 in [a.shape[d] for d in dims]:
        raise error(ValueError, op, f"there is nothing to search along axis {dims} of shape {a.shape}")
    return dims, *reduced(a, dims, keepdims)
