"""Averages with weights, with NumPy's semantics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..call.launch_cache import operation
from ..call.operation import ARRAY
from ..definition.records import AVERAGE, MEAN
from ..errors import error
from ..plan.geometry import Shape
from ..plan.work import ArraySpec
from .arguments import check_array, normalize_axis, result_type, scalar
from .docstrings import documented
from .reduction import NOT_GIVEN, described, on_host, reduction


class Average(NamedTuple):
    """What `average` gives with ``returned``."""

    average: Any
    weights: Any


@operation(a=ARRAY, weights=ARRAY)
@documented
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """Weighted average over the given axes, as ``numpy.average``; in one pass over both arrays on a GPU.

    The exact sum of the products divided by that of the weights, rounded once (docs/exact.md). Where the weights add up
    to 0, the result is NaN or infinite on a GPU, since raising would synchronise; the CPU raises a ZeroDivisionError,
    as NumPy does.

    Parameters
    ----------
    {a}
    {axis}
    weights : array_like, optional
        The weight of each element, in an array with the shape of ``a`` or that of its dims ``axis``; by default all are
        1.
    returned : bool, optional
        Return the sums of the weights too.
    {keepdims}

    Returns
    -------
    ndarray or scalar
        The dtype is that to which ``a`` and ``weights`` promote, and float64 for integers. With ``returned``, a named
        tuple (average, weights).
        {like_input}
        {workspace}

    Raises
    ------
    {AxisError}
    {TypeError} the shapes differ and ``axis`` is not given
    ValueError
        If the shape of ``weights`` is neither that of ``a`` nor that of its dims ``axis``.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.average(np.array([[1.0, 2.0], [3.0, 5.0]]), axis=1, weights=[3.0, 1.0])
    array([1.25, 3.5 ])
    """
    op = "average"
    if weights is None and not returned:
        return reduction(MEAN, a, axis, None, None, keepdims, NOT_GIVEN, True, None, op)
    check_array(op, "a", a)
    dims = normalize_axis(op, axis, a.shape)
    val = result_type(op, a=a, weights=weights)
    val = np.result_type(val, np.float64) if a.dtype.kind in "biu" else val
    heavy = scalar("weights", np.ones((), val), a.machine)
    if weights is not None:
        heavy = beside_elements(op, a, weights, axis, dims)
    form = Average if returned else None
    host = on_host(AVERAGE, a, val, dims, keepdims, y=val, form=form, places=places_of(a, weights, axis))
    return described(op, host, a, heavy)


def beside_elements(op: str, a: ArraySpec, weights: Any, axis: Any, dims: Shape) -> ArraySpec:
    """Weights as an array of the shape of ``a``, or one that broadcasts to it."""
    check_array(op, "weights", weights)
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise error(TypeError, op, f"weights of shape {weights.shape} for a of shape {a.shape} require an axis")
    order = places_of(a, weights, axis)
    lengths = tuple([a.shape[d] for d in order])
    if weights.shape != lengths:
        rule = f"weights of shape {weights.shape} match neither a's shape {a.shape} nor that of its axes, {lengths}"
        raise error(ValueError, op, rule)
    strides = dict(zip(order, weights.strides, strict=True))
    return weights._replace(shape=a.shape, strides=tuple([strides.get(d, 0) for d in range(a.ndim)]))


def places_of(a: ArraySpec, weights: ArraySpec | None, axis: Any) -> Shape:
    """The dims of ``a`` along which the dims of the weights go."""
    if weights is None or weights.shape == a.shape:
        return tuple(range(a.ndim if weights else 0))
    return tuple([int(d) % a.ndim for d in (axis if isinstance(axis, tuple) else (axis,))])
