"""softmax, log_softmax and logsumexp over any axes."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np

from . import reference
from .arguments import (
    WEAK,
    as_array,
    as_mask,
    as_number,
    check_mask,
    clash,
    delivered,
    dtype_of,
    fitted,
    is_whole,
    result_type,
)
from .broadcast import launch as launch_map
from .calls import remembered
from .device import Device, device_of, elements, overlap, run
from .errors import error
from .kernels import reduce as reductions
from .kernels import softmax as kernels
from .kernels.broadcast import Arg
from .plan import (
    CTYPES,
    Plan,
    Shape,
    accumulator,
    broadcast_shapes,
    check_choice,
    check_dtype,
    check_out,
    dtype_name,
    like_strides,
    normalize_axis,
)
from .reduce import launch, reduced_shape, strides_over

FLOATS = ("float16", "bfloat16", "float32", "float64")
REALS = (*FLOATS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@remembered
def softmax(x, axis=None, *, dtype=None, out=None, where=True, scale=None, strategy=None, finish="device"):
    """exp(x * scale), normalised to a sum of 1 over the given axes, as ``scipy.special.softmax``.

    Parameters
    ----------
    x : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer or
        floating (also float16 and bfloat16).
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
        A factor on ``x``, 1 if not given: the inverse temperature. Of an array without dims a GPU is waited for.
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
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
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
def logsumexp(
    a, axis=None, b=None, keepdims=False, return_sign=False, *, dtype=None, out=None, where=True, scale=None,
    strategy=None,
):  # fmt: skip
    """log(sum(b * exp(a * scale))) over the given axes, as ``scipy.special.logsumexp``: one reading of ``a`` and ``b``.

    Parameters
    ----------
    a : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer or
        floating (also float16 and bfloat16).
    axis : None, int or tuple of ints, optional
        Axes to sum over; None is the whole array.
    b : array_like, optional
        Real weights, which may be negative; ``a`` and ``b`` broadcast. An element whose weight is 0 is left out.
    keepdims : bool, optional
        Keep the axes with length 1.
    return_sign : bool, optional
        Whether to return the sign of the sum, too, and the logarithm of its magnitude. Without it the logarithm of a
        negative sum is NaN.
    dtype : dtype, optional
        Floating dtype of the result; that to which ``a`` and ``b`` promote if not given, float64 for integers. Half
        types are computed in float32 and rounded once.
    out : ndarray, optional
        Where to put the logarithm: of the result's shape, any strides, a dtype to which the result casts. It may
        overlap ``a`` and ``b``.
    where : array_like of bool, optional
        The elements that take part; broadcasts to the shape of ``a`` and ``b``. The result is -inf where none does.
    scale : float, optional
        A factor on ``a``, 1 if not given.
    strategy : str, optional
        One of ``gpuops.strategies("logsumexp")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``; with ``return_sign`` two of them, the other holds 1, 0 or -1.
        On a GPU it takes up to 1 MiB of workspace, ``b`` with ``where`` an array of their shape.

    Raises
    ------
    AxisError
        If an axis is out of range.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If shapes do not broadcast, that of ``out`` does not fit, or a strategy is unknown.

    Notes
    -----
    The maximum stays out of the sum, so that results near 0 keep their digits: log(1 + 1e-20) is 1e-20. Errors are
    measured in docs/accuracy.md.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.logsumexp(np.array([[0.0, 0.0], [1000.0, 1000.0]]), axis=1)
    array([6.93147181e-01, 1.00069315e+03])
    >>> gpuops.logsumexp([0.0, 0.0], b=[1, -2], return_sign=True)
    (np.float64(0.0), np.float64(-1.0))
    """
    op = "logsumexp"
    check_choice(op, "strategy", strategy, (None, *reductions.STRATEGIES))
    given = arguments(op, a, axis, dtype, out, where, scale, 1.0 if b is None and return_sign else b)
    shape = reduced_shape(given.x.shape, given.axis, keepdims)
    if out is not None:
        check_out(op, out, shape, given.result)
    if given.device is None:
        return reference.logsumexp(
            given.x, given.axis, given.val, given.result, out, keepdims, given.mask, given.scale, given.weights,
            return_sign,
        )  # fmt: skip
    if given.weights is None:
        return launch(
            given.device, "LogSumExp", given.x, given.mask, given.axis, given.val, given.result, out, shape,
            strategy=strategy, scale=given.scale,
        )  # fmt: skip
    return weighted(given.device, given, out, shape, strategy, return_sign)


def weighted(device: Device, given: Arguments, out: Any, shape: Shape, strategy: str | None, return_sign: bool) -> Any:
    """``logsumexp`` with weights on a device; with signs they come as pairs, which are then taken apart."""
    with device.current():
        b, val, result = given.weights, given.val, given.result
        if given.mask is not None:  # the kernel takes one operand beside a
            ctype, both = CTYPES[dtype_name(b.dtype)], broadcast_shapes("logsumexp", b.shape, given.mask.shape)
            chosen = [given.mask, b, np.zeros((), b.dtype)]
            b = launch_map(device, "Where", both, b.dtype, None, None, (ctype, "u8", ctype, ctype), chosen, None)
            device.keep(b)
        b = device.broadcast_to(b, given.x.shape)
        one = None if return_sign else out
        pairs = np.result_type(val, np.complex64) if return_sign else result
        made = launch(
            device, reductions.WEIGHTED, given.x, b, given.axis, val, pairs, one, shape, strategy=strategy,
            scale=given.scale,
        )  # fmt: skip
        if not return_sign:
            return made
        device.keep(made)
        types = CTYPES[dtype_name(result if out is None else out.dtype)], CTYPES[result.name], CTYPES[val.name]
        value, sign = parts(device, made, val)
        logarithm = launch_map(device, "Expand", shape, result, None, out, (types[0], types[2]), [value], None)
        return logarithm, launch_map(device, "Expand", shape, result, None, None, types[1:], [sign], None)


def normalized(
    op: str, x: Any, axis: Any, dtype: Any, out: Any, where: Any, scale: Any, strategy: str | None, finish: str
) -> Any:
    """The common path of softmax and log_softmax."""
    check_choice(op, "strategy", strategy, (None, *kernels.STRATEGIES))
    check_choice(op, "finish", finish, ("device", "host"))
    if finish == "host" and strategy != "two_pass":
        raise error(ValueError, op, f"finish='host' needs strategy two_pass, got {strategy!r}")
    given = arguments(op, x, axis, dtype, out, where, scale)
    device, x, mask = given.device, given.x, given.mask
    if out is not None:
        check_out(op, out, x.shape, given.result)
    if device is None:
        return reference.softmax(op, x, given.axis, given.val, given.result, out, mask, given.scale)
    with device.current():
        target = out
        if out is None or not is_whole(device, out):
            target = device.empty(
                x.shape, given.result if out is None else out.dtype, like_strides(x.shape, elements(x))
            )
        if target.size:
            plan = device_plan(op, given, target, strategy, finish)
            if target is out and in_the_way(device, plan, out, x, mask):
                target = device.empty(x.shape, target.dtype)
                plan = device_plan(op, given, target, strategy, finish)
            run(plan, device, x=x, other=mask, out=target)
        return delivered(device, target, out)


def in_the_way(device: Device, plan: Plan, out: Any, x: Any, mask: Any) -> bool:
    """Whether the plan would overwrite in ``out`` what it has yet to read."""
    unsafe = clash(device, out, x) if plan.in_place else overlap(device, out, x)
    return unsafe or (mask is not None and overlap(device, out, mask))


def device_plan(op: str, given: Arguments, target: Any, strategy: str | None, finish: str) -> Plan:
    """The plan for these arrays."""
    device, x, mask = given.device, given.x, given.mask
    assert device is not None
    problem = kernels.problem(
        op, dtype_name(x.dtype), dtype_name(given.val), dtype_name(target.dtype), x.shape, given.axis,
        (elements(x), strides_over(mask, x.shape), elements(target)),
        tuple([0 if a is None else device.pointer(a) % 16 for a in (x, mask, target)]), mask is not None, given.scale,
    )  # fmt: skip
    return kernels.plan(problem, strategy, finish, device.machine)


class Arguments(NamedTuple):
    """Arguments that have been checked."""

    device: Device | None
    x: Any
    mask: Any
    axis: Shape
    val: np.dtype  # of the arithmetic
    result: np.dtype
    scale: float
    weights: Any = None  # of logsumexp


def arguments(op: str, x: Any, axis: Any, dtype: Any, out: Any, where: Any, scale: Any, b: Any = None) -> Arguments:
    """Check what softmax and its like are given."""
    name = "a" if op == "logsumexp" else "x"
    device = device_of(op, **{name: x}, b=b, out=out, where=None if where is True else where)
    x, mask = as_array(op, device, name, x), as_mask(op, device, where)
    check_dtype(op, name, x.dtype, REALS)
    b = b if b is None or type(b) in WEAK else as_array(op, device, "b", b)
    common = x.dtype if b is None else result_type(op, **{name: x}, b=b)
    floating = common if dtype_name(common) in FLOATS else np.dtype(np.float64)
    if b is not None:
        b = as_array(op, device, "b", fitted(op, "b", b, floating)) if type(b) in WEAK else b
        check_dtype(op, "b", b.dtype, REALS)
        shape = broadcast_shapes(op, x.shape, b.shape)
        if shape != x.shape:
            x = np.broadcast_to(x, shape) if device is None else device.broadcast_to(x, shape)
    axis = normalize_axis(op, axis, x.shape)
    check_mask(op, mask, x.shape)
    result = dtype_of(op, dtype) or floating
    check_dtype(op, "the result", result, FLOATS)
    val = np.dtype(accumulator(dtype_name(floating if floating.itemsize > result.itemsize else result)))
    factor = as_number(scale)
    if factor is not None and not isinstance(factor, numbers.Real):
        raise error(TypeError, op, f"scale must be a real number, got {scale!r}")
    return Arguments(device, x, mask, axis, val, result, 1.0 if factor is None else float(factor), b)


# --------------------------------------------------------------------------------- in two passes, over parts of rows


def statistics(x: Any, where: Any, axis: Shape, val: np.dtype, scale: float = 1.0) -> Any:
    """Each row's maximum of x * scale and the rest of its sum of exp(x * scale - maximum), which is 1 less, in ``val``,
    float32 or float64: the real and imaginary parts of complex numbers, which lie in memory as ``MaxExpSum::State``.
    Dims are kept.

    A part of a row that has nothing selected, or nothing above -inf, has the maximum -inf and the rest -1.
    """
    device, x, mask = operands(x, where)
    if device is None:
        return reference.statistics(x, axis, val, mask, scale)
    shape, pair = reduced_shape(x.shape, axis, True), np.result_type(val, np.complex64)
    return launch(device, "MaxExpSum", x, mask, axis, val, pair, None, shape, scale=scale)


def merged(stats: Any, axis: Shape, keepdims: bool = True) -> Any:
    """The statistics of whole rows, given those of their parts along ``axis``. Dims are kept."""
    device, stats, _ = operands(stats)
    if device is None:
        return reference.merged(stats, axis)
    shape, pair = reduced_shape(stats.shape, axis, True), stats.dtype
    return launch(device, "MergedMaxExpSum", stats, None, axis, pair, pair, None, shape)


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


def operands(x: Any, where: Any = True) -> tuple[Device | None, Any, Any]:
    """The device, the array on it and its mask, None without one."""
    device = device_of("softmax", x=x, where=None if where is True else where)
    return device, as_array("softmax", device, "x", x), as_mask("softmax", device, where)


def parts(device: Device, stats: Any, val: np.dtype) -> tuple[Any, Any]:
    """Views of the two numbers of pairs."""
    strides = tuple([2 * s for s in elements(stats)])
    real, imaginary = (device.view(stats, offset, val, stats.shape, strides) for offset in (0, val.itemsize))
    return real, imaginary
