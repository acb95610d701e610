"""Searches with NumPy's semantics: argmax and the like, and maxima with their indices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..call.launch_cache import operation
from ..call.operation import ARRAY, OUT
from ..definition import records
from ..definition.reduction import Reduction
from ..errors import error
from ..plan import reductions
from ..plan.builder import Builder, shared
from ..plan.dtypes import dtype_name
from ..plan.geometry import Shape
from ..plan.work import Work, new_array
from .arguments import as_index, check_array, check_out, normalize_axis
from .docstrings import documented
from .reduction import add_reduction, on_host, reduced, several
from .table import check_strategy


@operation(a=ARRAY, out=OUT)
@documented
def argmax(a, axis=None, out=None, *, keepdims=False, strategy=None):
    """Index of the first maximum along an axis, as ``numpy.argmax``.

    {search}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.argmax(np.array([[1, 5, 5], [9, 3, 4]]), axis=1)
    array([1, 0])
    """
    return search(records.ARGMAX, a, axis, out, keepdims, strategy)


@operation(a=ARRAY, out=OUT)
@documented
def argmin(a, axis=None, out=None, *, keepdims=False, strategy=None):
    """Index of the first minimum along an axis, as ``numpy.argmin``.

    {search}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.argmin(np.array([[4, 2], [7, 7]]), axis=0)
    array([0, 0])
    """
    return search(records.ARGMIN, a, axis, out, keepdims, strategy)

@operation(a=ARRAY, out=OUT)
@documented
def nanargmax(a, axis=None, out=None, *, keepdims=False, strategy=None):
    """Index of the first maximum along an axis, ignoring NaN, as ``numpy.nanargmax``.

    {nan_search}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanargmax(np.array([[np.nan, 5.0, 2.0], [9.0, 3.0, np.nan]]), axis=1)
    array([1, 0])
    """
    return search(records.NANARGMAX, a, axis, out, keepdims, strategy)


@operation(a=ARRAY, out=OUT)
@documented
def nanargmin(a, axis=None, out=None, *, keepdims=False, strategy=None):
    """Index of the first minimum along an axis, ignoring NaN, as ``numpy.nanargmin``.

    {nan_search}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nanargmin(np.array([[np.nan, 5.0, 2.0], [9.0, 3.0, np.nan]]), axis=1)
    array([2, 1])
    """
    return search(records.NANARGMIN, a, axis, out, keepdims, strategy)


class WithIndex(NamedTuple):
    """The results of `max_with_index` and `min_with_index`."""

    values: Any
    indices: Any


@operation(a=ARRAY)
@documented
def max_with_index(a, axis=None, *, keepdims=False, strategy=None):
    """Maximum along an axis and the index of its first occurrence; in one pass over memory on a GPU.

    The same values as from `max` and `argmax`.

    {with_index}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> values, indices = gpuops.max_with_index(np.array([[1, 5, 5], [9, 3, 4]]), axis=1)
    >>> values, indices
    (array([5, 9]), array([1, 0]))
    """
    return with_index(records.MAX_WITH_INDEX, a, axis, keepdims, strategy)


@operation(a=ARRAY)
@documented
def min_with_index(a, axis=None, *, keepdims=False, strategy=None):
    """Minimum along an axis and the index of its first occurrence; in one pass over memory on a GPU.

    The same values as from `min` and `argmin`.

    {with_index}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.min_with_index(np.array([[4, 2], [7, 7]]), axis=0).indices
    array([0, 0])
    """
    return with_index(records.MIN_WITH_INDEX, a, axis, keepdims, strategy)


# ------------------------------------------------------------------------------------------------------- descriptions


def search(record: Reduction, a: Any, axis: Any, out: Any, keepdims: bool, strategy: str | None) -> Work:
    """The description of argmax and the like."""
    op, index = record.name, np.dtype(np.int64)
    check_strategy(op, strategy)
    axis, shape, steps = along(op, a, axis, keepdims)
    if record.plain and a.dtype.kind in "biu":
        record = record.plain
    if out is not None:
        check_out(op, out, shape, index, "unsafe")
        if not np.can_cast(out.dtype, index):
            raise error(TypeError, op, f"out has dtype {out.dtype.name}, which does not cast safely to int64")
    host = on_host(record, a, a.dtype, axis, keepdims)
    if a.machine is None:
        return Work(op, (out or new_array("out", shape, index, steps),), host)
    builder = Builder(a.machine)
    x = builder.readable(a)
    target = builder.target(out, out is not None and shared(out, x), shape, index, steps)
    places = reductions.positions(x, axis)
    add_reduction(builder, reductions.problem(record.struct, x, places, target, axis, dtype_name(a.dtype)), strategy)
    builder.deliver(target, out)
    return Work(op, (out or target,), host, builder.finish())


def with_index(record: Reduction, a: Any, axis: Any, keepdims: bool, strategy: str | None) -> Work:
    """The description of max_with_index and min_with_index."""
    axis = along(record.name, a, axis, keepdims)[0]
    return several(record, WithIndex, a, axis, None, keepdims, True, strategy)


def along(op: str, a: Any, axis: Any, keepdims: bool) -> tuple[Shape, Shape, Shape]:
    """The axis of a search, which must find something, and the shape and the strides of its result."""
    check_array(op, "a", a)
    dims = normalize_axis(op, axis if axis is None else as_index(op, "axis", axis, axis, "None or an int"), a.shape)
    if 0 in [a.shape[d] for d in dims]:
        raise error(ValueError, op, f"there is nothing to search along axis {dims} of shape {a.shape}")
    return dims, *reduced(a, dims, keepdims)
