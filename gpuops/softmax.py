"""softmax, log_softmax and logsumexp over any axes."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from . import reference
from .broadcast import clash
from .calls import remembered
from .device import Device, delivered, device_of, elements, overlap, run
from .errors import error
from .kernels import reduce as reductions
from .kernels import softmax as kernels
from .kernels.broadcast import Arg
from .plan import (
    CTYPES,
    Plan,
    Shape,
    accumulator,
    as_dtype,
    check_choice,
    check_dtype,
    check_out,
    dtype_name,
    like_strides,
    normalize_axis,
)
from .reduce import as_array, check_mask, launch, reduced_shape, strides_over

FLOATS = ("float16", "bfloat16", "float32", "float64")
REALS = (*FLOATS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@remembered
def softmax(x, axis=None, *, dtype=None, out=None, where=True, scale=None, strategy=None, finish="device"):
    """exp(x * scale), normalised to a sum of 1 over the given axes, as ``scipy.special.softmax``.

    Parameters
    ----------
    x : array_like
        NumPy or CuPy array of any shape and strides; bool, integer or floating (also float16 and bfloat16).
    axis : None, int or tuple of ints, optional
        Axes over which the sum is 1; None is the whole array.
    dtype : dtype, optional
        Floating dtype of the result; that of ``x`` if not given, float64 for integers. Half types are computed in
        float32 and rounded once.
    out : ndarray, optional
        Where to put the result: of the shape of ``x``, any strides, a dtype to which the result casts. ``out=x`` works
        in place.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``x``. The others become 0, also in a row that has
        nothing selected.
    scale : float, optional
        A factor on ``x``, 1 if not given: the inverse temperature.
    strategy : str, optional
        One of ``gpuops.strategies("softmax")``; None picks the fastest. It matters on a GPU only. ``warp`` takes rows
        of at most 1024 elements; ``rows``, ``columns`` and ``grid`` take rows that fit on the device's chip.
    finish : {"device", "host"}, optional
        Where ``two_pass`` reduces its blocks' partial results (``"host"`` is slow; shown for comparison).

    Returns
    -------
    ndarray
        Of the same kind, on the same device and with the memory layout of ``x``. On a GPU, rows that do not fit on its
        chip take 8 bytes of workspace a row (float64: 16) and up to 1 MiB.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If NumPy and CuPy arrays are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the shape of ``out`` or ``where`` does not fit, or a strategy is unknown or does not apply.

    Notes
    -----
    A row that is all -inf, or that holds +inf or NaN, gives NaN, as in SciPy. The one-pass maximum and sum follow
    M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax" (2018).

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.softmax(np.array([[0.0, 0.0], [0.0, np.log(3.0)]]), axis=1)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    return normalized("softmax", x, axis, dtype, out, where, scale, strategy, finish)


@remembered
def log_softmax(x, axis=None, *, dtype=None, out=None, where=True, scale=None, strategy=None, finish="device"):
    """Logarithm of the softmax over the given axes, as ``scipy.special.log_softmax``.

    Masked elements become -inf. Parameters, errors and workspace are those of `softmax`.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.log_softmax(np.array([0.0, 0.0]))
    array([-0.69314718, -0.69314718])
    """
    return normalized("log_softmax", x, axis, dtype, out, where, scale, strategy, finish)


@remembered
def logsumexp(x, axis=None, keepdims=False, *, dtype=None, out=None, where=True, scale=None, strategy=None):
    """log(sum(exp(x * scale))) over the given axes, as ``scipy.special.logsumexp``: one reading of ``x``.

    The result is -inf where nothing is selected. ``keepdims`` keeps the reduced axes with length 1; ``out`` has the
    result's shape and may overlap ``x``; ``strategy`` is one of ``gpuops.strategies("logsumexp")``. The other
    parameters and the errors are those of `softmax`; on a GPU it takes up to 1 MiB of workspace.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.logsumexp(np.array([[0.0, 0.0], [1000.0, 1000.0]]), axis=1)
    array([6.93147181e-01, 1.00069315e+03])
    """
    op = "logsumexp"
    check_choice(op, "strategy", strategy, (None, *reductions.STRATEGIES))
    device, x, mask, axis, val, result, factor = arguments(op, x, axis, dtype, out, where, scale)
    shape = reduced_shape(x.shape, axis, keepdims)
    if out is not None:
        check_out(op, out, shape, result)
    if device is None:
        return reference.logsumexp(x, axis, val, result, out, keepdims, mask, factor)
    return launch(device, "LogSumExp", x, mask, axis, val, result, out, shape, strategy=strategy, scale=factor)


def normalized(
    op: str, x: Any, axis: Any, dtype: Any, out: Any, where: Any, scale: Any, strategy: str | None, finish: str
) -> Any:
    """The common path of softmax and log_softmax."""
    check_choice(op, "strategy", strategy, (None, *kernels.STRATEGIES))
    check_choice(op, "finish", finish, ("device", "host"))
    if finish == "host" and strategy != "two_pass":
        raise error(ValueError, op, f"finish='host' needs strategy two_pass, got {strategy!r}")
    device, x, mask, axis, val, result, factor = arguments(op, x, axis, dtype, out, where, scale)
    if out is not None:
        check_out(op, out, x.shape, result)
    if device is None:
        return reference.softmax(op, x, axis, val, result, out, mask, factor)
    with device.current():
        target = out if out is not None else device.empty(x.shape, result, like_strides(x.shape, elements(x)))
        if target.size:
            plan = device_plan(device, op, x, mask, axis, val, target, factor, strategy, finish)
            if out is not None and spoils(device, plan, out, x, mask):
                target = device.empty(x.shape, target.dtype)
                plan = device_plan(device, op, x, mask, axis, val, target, factor, strategy, finish)
            run(plan, device, x=x, other=mask, out=target)
        return delivered(device, target, out)


def spoils(device: Device, plan: Plan, out: Any, x: Any, mask: Any) -> bool:
    """Whether the plan would overwrite in ``out`` what it has yet to read."""
    unsafe = clash(device, out, x) if plan.in_place else overlap(device, out, x)
    return unsafe or (mask is not None and overlap(device, out, mask))


def device_plan(device, op, x, mask, axis, val, target, scale, strategy, finish):
    """The plan for these arrays."""
    problem = kernels.problem(
        op, dtype_name(x.dtype), dtype_name(val), dtype_name(target.dtype), x.shape, axis,
        (elements(x), strides_over(mask, x.shape), elements(target)),
        tuple([0 if a is None else device.pointer(a) % 16 for a in (x, mask, target)]), mask is not None, scale,
    )  # fmt: skip
    return kernels.plan(problem, strategy, finish, device.machine)


def arguments(
    op: str, x: Any, axis: Any, dtype: Any, out: Any, where: Any, scale: Any
) -> tuple[Any, Any, Any, Shape, np.dtype, np.dtype, float]:
    """The checked arguments: device, x, mask, axes, the dtypes of arithmetic and result, the factor."""
    mask = None if where is True else where
    device = device_of(op, x=x, out=out, where=mask)
    x, mask = as_array(device, x), None if mask is None else as_array(device, mask)
    check_dtype(op, "x", x.dtype, REALS)
    axis = normalize_axis(op, axis, x.shape)
    check_mask(op, mask, x.shape)
    floating = x.dtype if dtype_name(x.dtype) in FLOATS else np.dtype(np.float64)
    result = floating if dtype is None else as_dtype(op, dtype)
    check_dtype(op, "the result", result, FLOATS)
    val = np.dtype(accumulator(dtype_name(floating if floating.itemsize > result.itemsize else result)))
    if scale is not None and not isinstance(scale, numbers.Real):
        raise error(TypeError, op, f"scale must be a real number, got {scale!r}")
    return device, x, mask, axis, val, result, 1.0 if scale is None else float(scale)


# --------------------------------------------------------------------------------- in two passes, over parts of rows


def statistics(x: Any, where: Any, axis: Shape, val: np.dtype, scale: float = 1.0, strategy: str | None = None) -> Any:
    """Each row's maximum of x * scale and sum of exp(x * scale - maximum) in ``val``, float32 or float64: the real and
    imaginary parts of complex numbers, which lie in memory as ``MaxExpSum::State``. Dims are kept.

    A part of a row that has nothing selected, or nothing above -inf, has the maximum -inf and the sum 0.
    """
    device, x, mask = operands(x, where)
    if device is None:
        return reference.statistics(x, axis, val, mask, scale)
    shape, pair = reduced_shape(x.shape, axis, True), np.result_type(val, np.complex64)
    return launch(device, "MaxExpSum", x, mask, axis, val, pair, None, shape, strategy=strategy, scale=scale)


def merged(stats: Any, axis: Shape, keepdims: bool = True) -> Any:
    """The statistics of whole rows, given those of their parts along ``axis``. Dims are kept."""
    device, stats, _ = operands(stats)
    if device is None:
        return reference.merged(stats, axis)
    val, shape = stats.real.dtype, reduced_shape(stats.shape, axis, True)
    with device.current():
        whole = device.empty(shape, stats.dtype)
        if whole.size:
            whole[...] = 1 + 1j  # the sums are 1 until they are known, so that powers are divided by nothing
            tops, totals = parts(device, stats, val)
            top, total = parts(device, whole, val)
            launch(device, "Max", tops, None, axis, val, val, top, shape)
            # A part whose maximum is -inf adds 0: its power would be NaN, if that of the whole row is -inf too.
            some = launch(device, "Any", totals, None, (), val, np.dtype(bool), None, stats.shape)
            powers = finished(tops, some, whole, "softmax", val)
            launch(device, reductions.DOT, powers, totals, axis, val, val, total, shape)
        return whole


def finished(x: Any, where: Any, stats: Any, op: str, dtype: np.dtype, scale: float = 1.0) -> Any:
    """softmax or log_softmax of x, or of a part of it, given its rows' statistics."""
    device, x, mask = operands(x, where)
    val = stats.real.dtype
    if device is None:
        result = reference.normalized(op, reference.scaled(x, val, scale), stats.real, stats.imag, mask)
        return result.astype(dtype, copy=False)
    with device.current():
        out = device.empty(x.shape, dtype, like_strides(x.shape, elements(x)))
        if out.size:

            def argument(name: str, array: Any) -> Arg:
                ctype, strides = CTYPES[dtype_name(array.dtype)], strides_over(array, x.shape)
                return Arg(name, ctype, array.itemsize, strides, device.pointer(array) % 16)

            chosen = None if mask is None else argument("other", mask)
            plan = kernels.last_pass(
                op, val.name, x.shape, argument("out", out), argument("x", x), strides_over(stats, x.shape), chosen,
                scale, device.pointer(stats) % 16,
            )  # fmt: skip
            run(plan, device, out=out, x=x, stats=stats, other=mask)
        return out


def log_sums(stats: Any, axis: Shape, keepdims: bool, out: np.dtype) -> Any:
    """logsumexp as ``out``, given the statistics of parts of rows along ``axis``."""
    stats = merged(stats, axis)
    device, stats, _ = operands(stats)
    if device is None:
        result = reference.logarithm(stats.real, stats.imag).astype(out)
        return result if keepdims else np.squeeze(result, axis)[()]
    val, shape = stats.real.dtype, reduced_shape(stats.shape, axis, keepdims)
    with device.current():
        zeros = device.empty(stats.shape, val)
        zeros[...] = 0
        negative = finished(zeros, True, stats, "log_softmax", val)  # 0 - maximum - log(sum)
        return launch(device, "Prod", negative, None, axis, val, out, None, shape, np.asarray(-1, val))


def operands(x: Any, where: Any = True) -> tuple[Device | None, Any, Any]:
    """The device, the array on it and its mask, None without one."""
    mask = None if where is True else where
    device = device_of("softmax", x=x, where=mask)
    return device, as_array(device, x), None if mask is None else as_array(device, mask)


def parts(device: Device, stats: Any, val: np.dtype) -> tuple[Any, Any]:
    """Views of the maxima and of the sums."""
    strides = tuple([2 * s for s in elements(stats)])
    real, imaginary = (device.view(stats, offset, val, stats.shape, strides) for offset in (0, val.itemsize))
    return real, imaginary
