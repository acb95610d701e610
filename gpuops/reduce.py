"""Reductions with NumPy's semantics: sum, prod, max, min, mean, any, all."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import reference
from .arguments import as_array, as_mask, as_number, check_mask, delivered, dtype_of, fitted, spoils
from .calls import remembered
from .device import Device, device_of, elements, is_scalar, run
from .errors import error
from .kernels import reduce as kernels
from .plan import (
    Shape,
    broadcast_strides,
    check_choice,
    check_dtype,
    check_out,
    dtype_name,
    normalize_axis,
)

NOT_GIVEN: Any = np._NoValue  # type: ignore[attr-defined]  # None has a meaning of its own for ``initial``


@remembered
def sum(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None, finish="device"
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
        One of ``gpuops.strategies("sum")``; None picks the fastest. It matters on a GPU only.
    finish : {"device", "host"}, optional
        Where the classic strategies (``cross``, ``interleaved``, ``shuffle``) reduce their blocks' partial results:
        in a second launch, or on the host (slow, and it waits for the GPU; shown for comparison).

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as ``a``. On a GPU, each thread keeps 1 MiB of workspace for each
        stream, and a captured CUDA graph its own; the classic strategies take up to as much for a call, with
        ``finish="host"`` one partial result per output at least.

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
    return reduce("sum", a, axis, dtype, out, keepdims, initial, where, strategy, finish)


@remembered
def prod(
    a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None, finish="device"
):
    """Product of the elements over the given axes, as ``numpy.prod``.

    Small integers and bools are multiplied as int64 or uint64, half types accumulate in float32.

    Parameters, errors and workspace are those of `sum`.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.prod(np.array([[1, 2], [3, 4]]), axis=1)
    array([ 2, 12])
    """
    return reduce("prod", a, axis, dtype, out, keepdims, initial, where, strategy, finish)


@remembered
def max(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None, finish="device"):
    """Maximum of the elements over the given axes, as ``numpy.max``.

    NaN wins; complex numbers are ordered by real, then imaginary part. An empty or masked maximum needs ``initial``.

    Parameters, errors and workspace are those of `sum`.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.max(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([nan,  4.])
    """
    return reduce("max", a, axis, None, out, keepdims, initial, where, strategy, finish)


@remembered
def min(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True, *, strategy=None, finish="device"):
    """Minimum of the elements over the given axes, as ``numpy.min``.

    NaN wins; complex numbers are ordered by real, then imaginary part. An empty or masked minimum needs ``initial``.

    Parameters, errors and workspace are those of `sum`.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.min(np.array([[3, 1], [2, 5]]), axis=0)
    array([2, 1])
    """
    return reduce("min", a, axis, None, out, keepdims, initial, where, strategy, finish)


@remembered
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True, strategy=None, finish="device"):
    """Mean of the elements over the given axes, as ``numpy.mean``.

    Integers are averaged in float64, half types in float32. The mean of nothing is NaN.

    Parameters, errors and workspace are those of `sum`.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.mean(np.array([[1, 2], [3, 5]]), axis=1)
    array([1.5, 4. ])
    """
    return reduce("mean", a, axis, dtype, out, keepdims, NOT_GIVEN, where, strategy, finish)


@remembered
def any(a, axis=None, out=None, keepdims=False, *, where=True, strategy=None, finish="device"):
    """Whether any element is true over the given axes, as ``numpy.any``.

    NaN is true. The result is bool, or of ``out``'s dtype.

    Parameters, errors and workspace are those of `sum`.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.any(np.array([[0, 0], [0, 7]]), axis=1)
    array([False,  True])
    """
    return reduce("any", a, axis, None, out, keepdims, NOT_GIVEN, where, strategy, finish)


@remembered
def all(a, axis=None, out=None, keepdims=False, *, where=True, strategy=None, finish="device"):
    """Whether all elements are true over the given axes, as ``numpy.all``.

    NaN is true. The result is bool, or of ``out``'s dtype.

    Parameters, errors and workspace are those of `sum`.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.all(np.array([[1, 0], [3, 7]]), axis=1)
    array([False,  True])
    """
    return reduce("all", a, axis, None, out, keepdims, NOT_GIVEN, where, strategy, finish)


amax = max
amin = min


def reduce(
    op: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any, strategy: str | None,
    finish: str,
) -> Any:  # fmt: skip
    """The common path of every reduction: check everything, then hand over to NumPy or to a plan."""
    check_strategy(op, strategy, finish)
    device = device_of(op, a=a, out=out, where=None if where is True else where)
    a, mask = as_array(op, device, "a", a), as_mask(op, device, where)
    check_dtype(op, "a", a.dtype)
    axis = normalize_axis(op, axis, a.shape)
    val, result = dtypes(op, a.dtype, dtype_of(op, dtype), out)
    shape = reduced_shape(a.shape, axis, keepdims)
    if out is not None:
        check_out(op, out, shape, result, "unsafe" if op in ("mean", "any", "all") else "same_kind")
    check_mask(op, mask, a.shape)
    struct, row = kernels.OPS[op]
    if initial is NOT_GIVEN and row.identity:
        first = None
    elif initial is NOT_GIVEN or initial is None:
        first = None
        check_identity(op, a.shape, axis, mask)
    else:
        first = as_initial(op, initial, val)
    if device is None:
        options = {"initial": first} if first is not None or initial is None else {}
        options |= {} if mask is None else {"where": mask}
        return reference.reduce(op, a, axis, val, out, keepdims, options)
    if op == "mean" and mask is not None:
        struct = "MaskedMean"
    elif op == "mean" and kernels.exact(dtype_name(a.dtype), dtype_name(val), a.size):
        struct, val = "IntegerMean", np.dtype(np.int64)
    elif op == "sum" and first is None and dtype_name(val) not in kernels.INTEGERS:
        first = np.zeros((), val)  # NumPy's initial value, without which the sum of -0 is -0
    return launch(device, struct, a, mask, axis, val, result, out, shape, first, strategy, finish)


def launch(
    device: Device, struct: str, x: Any, other: Any, axis: Shape, val: np.dtype, result: np.dtype, out: Any,
    shape: Shape, initial: Any = None, strategy: str | None = None, finish: str = "device", scale: float = 1.0,
) -> Any:  # fmt: skip
    """Run a reduction of ``kernels/ops.cuh`` on a device, into ``out`` or a new array of ``shape``.

    ``other`` is a mask, or the other operand of a dot product.
    """
    with device.current():
        target = out
        if out is None or spoils(device, out, x, *(() if other is None else (other,))):
            target = device.empty(shape, result if out is None else out.dtype)
        if target.size:
            strides = elements(target)
            if len(strides) == x.ndim:  # keepdims: the strides of the dims that stay
                strides = tuple([s for d, s in enumerate(strides) if d not in axis])
            problem = kernels.problem(
                struct, dtype_name(x.dtype), dtype_name(val), dtype_name(target.dtype), x.shape, axis,
                (elements(x), strides_over(other, x.shape), strides),
                tuple([0 if a is None else device.pointer(a) % 16 for a in (x, other, target)]),
                None if other is None else dtype_name(other.dtype), scale=scale,
                initial=None if initial is None else initial.tobytes(),
            )  # fmt: skip
            plan = kernels.plan(problem, strategy, finish, device.machine.multiprocessors)
            run(plan, device, x=x, other=other, out=target)
        return delivered(device, target, out)


# ------------------------------------------------------------------------------------------- what the arguments mean


def check_strategy(op: str, strategy: str | None, finish: str) -> None:
    """Strategy and finish must be known and go together."""
    check_choice(op, "strategy", strategy, (None, *kernels.STRATEGIES))
    check_choice(op, "finish", finish, kernels.FINISHES)
    if finish == "host" and strategy not in kernels.STEPS:
        raise error(ValueError, op, f"finish='host' needs strategy {' or '.join(kernels.STEPS)}, got {strategy!r}")


def dtypes(op: str, x: np.dtype, dtype: np.dtype | None, out: Any) -> tuple[np.dtype, np.dtype]:
    """The dtype in which NumPy would compute, and the result's."""
    if op in ("any", "all"):
        return x, np.dtype(bool)
    row = kernels.OPS[op][1]
    if dtype is not None:
        val = dtype
    elif op == "mean":
        wider = out is not None and np.can_cast(x, out.dtype)
        val = np.dtype(np.float64) if x.kind in "biu" else out.dtype if wider else x
    elif row.arithmetic and out is None and x.kind in "biu":
        val = row.ufunc.reduce(np.empty(0, x)).dtype
    else:
        try:
            val = row.ufunc.resolve_dtypes((x if out is None else out.dtype, x, None), reduction=True)[0]
        except TypeError:
            raise error(TypeError, op, f"cannot cast the result from {x.name} to {out.dtype.name} of out") from None
    check_dtype(op, "the result", val)
    return val, val


def reduced_shape(shape: Shape, axis: Shape, keepdims: bool) -> Shape:
    """The shape of what is left of ``shape``."""
    return tuple([1 if d in axis else n for d, n in enumerate(shape) if keepdims or d not in axis])


def strides_over(other: Any, shape: Shape) -> Shape:
    """The strides with which another operand walks the shape of x; 0 without one."""
    return (0,) * len(shape) if other is None else broadcast_strides(other.shape, elements(other), shape)


def check_identity(op: str, shape: Shape, axis: Shape, mask: Any) -> None:
    """Without an identity or ``initial``, every reduction must have an element that surely takes part."""
    if 0 in (shape[d] for d in axis):
        raise error(ValueError, op, f"zero-size array of shape {shape} has no identity over axis {axis}; give initial")
    if mask is not None:
        raise error(ValueError, op, "has no identity, so a where mask needs initial")


def as_initial(op: str, initial: Any, val: np.dtype) -> Any:
    """``initial`` as a 0-d array of the dtype that NumPy computes with."""
    value = as_number(initial)
    if not is_scalar(value):
        raise error(ValueError, op, f"initial must be a scalar, got {initial!r}")
    return fitted(op, "initial", value, val)
