"""softmax, log_softmax and logsumexp in plain NumPy: what the kernels and `rows` must compute.

A *state* is what is known of a row, or of a part of it: its greatest element, the sum of exp(x - greatest) over the
elements below it, and over those that are equal to it. Apart from each other neither loses digits, however small they
are. Dims are kept. Half types are computed in float32, as on the GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..definition.expressions import number
from ..definition.task import Task
from ..plan.geometry import Shape
from .results import deliver, in_order


class State(NamedTuple):
    top: np.ndarray
    others: np.ndarray
    at_top: np.ndarray

    @property
    def rest(self) -> Any:
        """The sum of all powers, less 1."""
        return self.others + (self.at_top - 1)


def normalized(
    x: np.ndarray, out: np.ndarray | None = None, where: np.ndarray | None = None, *, task: Task, dtype: np.dtype
) -> Any:
    """softmax, or its logarithm, delivered as ``dtype``."""
    bound, axis, options = task.bound, task.axis, task.options
    state = state_of(scaled(x, bound.val, options["scale"]), axis, where)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        values = x.astype(bound.val, copy=False)
        (result,) = bound.each(x=values, r0=state.top, r1=np.asarray(state.rest, bound.val), **options)
    if where is not None:
        result = np.where(where, result, number(bound.reduction.left_out, bound.val))
    return deliver(result.astype(dtype if out is None else out.dtype, copy=False), out)


def logsumexp(
    a: np.ndarray, b: np.ndarray | None = None, out: np.ndarray | None = None, where: np.ndarray | None = None, *,
    axis: Shape, val: np.dtype, scale: float, shape: Shape, **options: Any,
) -> Any:  # fmt: skip
    """log(sum(b * exp(a * scale))) over ``axis``; with ``return_sign`` of the sum's magnitude, and its sign."""
    x = np.broadcast_to(a, shape)
    weights = None if b is None else b.astype(val, copy=False)
    if weights is not None:
        where = weights != 0 if where is None else where & (weights != 0)
    found = logarithm(state_of(scaled(x, val, scale), axis, where, weights))
    return delivered(x, found, out, axis=axis, **options)


def scaled(x: np.ndarray, val: np.dtype, scale: float) -> np.ndarray:
    """x * scale in ``val``."""
    values = x.astype(val, copy=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values if scale == 1 else values * val.type(scale)


def state_of(
    values: np.ndarray, axis: Shape, where: np.ndarray | None = None, weights: np.ndarray | None = None
) -> State:
    """The states of rows along ``axis``, of the selected elements; powers may be weighted."""
    chosen: Any = True if where is None else where
    options: Any = {"axis": axis, "keepdims": True}
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        top = np.max(values, **options, initial=-np.inf, where=chosen)
        below = values != top
        power = np.exp(values - top)
        power = power if weights is None else power * weights
        ones: Any = ~below if weights is None else np.broadcast_to(weights, values.shape)
        others = np.where(np.isposinf(top), np.nan, np.sum(power, **options, where=below & chosen)).astype(values.dtype)
        at_top = np.sum(ones, **options, dtype=values.dtype, where=~below & chosen & ~np.isneginf(top))
    return State(top, others, at_top)


def merged_state(parts: State, axis: Any) -> State:
    """The states of whole rows, given those of their parts along ``axis``."""
    options: Any = {"axis": axis, "keepdims": True}
    nan = np.isnan(parts.others) & np.isfinite(parts.top)
    top = np.max(np.where(nan, np.nan, parts.top), **options)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        lowered = np.exp(parts.top - top) * (parts.others + parts.at_top)
        lowered, at_top = np.where(np.isneginf(parts.top), 0, lowered), parts.top == top
        others = np.sum(np.where(at_top, parts.others, lowered), **options)
    return State(top, others, np.sum(parts.at_top, **options, where=at_top))


def logs(state: State) -> Any:
    """The logarithm of the magnitude of a sum of powers, relative to the greatest element; 0 if that is infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = np.asarray(state.rest)
        found = np.log(np.abs(state.others + state.at_top), out=np.empty_like(rest))
        np.log1p(rest, out=found, where=(rest > -0.5) & (rest < 1))
    found[np.isinf(state.top)] = 0
    return found


def logarithm(state: State) -> tuple[Any, Any]:
    """The logarithm of the magnitude of a sum, and its sign."""
    top, total = state.top, state.others + state.at_top
    with np.errstate(invalid="ignore", divide="ignore"):
        value = top + logs(state)
        if not np.isfinite(top).all():
            total = np.where(np.isposinf(top), state.at_top, np.where(np.isneginf(top), 0, total))
            value = np.where(np.isposinf(top), top + np.log(np.abs(total)), np.where(np.isneginf(top), top, value))
    return value, np.where(np.isnan(value), value, np.sign(total))


def delivered(
    x: np.ndarray, found: tuple[Any, ...], out: np.ndarray | None, *, axis: Shape, dtype: np.dtype, keepdims: bool,
    return_sign: bool,
) -> Any:  # fmt: skip
    """logsumexp as the caller wants it, of logarithms and, perhaps, signs; without these, NaN for a negative sum."""
    value, *signs = found
    if signs and not return_sign:
        value = np.where(signs.pop() < 0, np.nan, value)
    value, *signs = (in_order(each, x, axis, True) for each in (value, *signs))
    value, *signs = (each if keepdims else each.squeeze(axis)[()] for each in (value, *signs))
    with np.errstate(under="ignore"):
        result = deliver(value.astype(dtype if out is None else out.dtype), out)
        return (result, signs[0].astype(dtype)) if return_sign else result
