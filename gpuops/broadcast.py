"""Broadcasting with NumPy's semantics: expand, broadcast_to, where."""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any

import numpy as np

from . import reference
from .arguments import WEAK, as_array, clash, delivered, fitted, is_whole, result_type
from .calls import remembered, unremembered
from .device import Device, device_of, elements, is_scalar, run
from .errors import error
from .kernels import broadcast as kernels
from .plan import (
    Shape,
    broadcast_shapes,
    broadcast_strides,
    broadcasts_to,
    check_choice,
    check_dtype,
    check_out,
    check_rank,
    contiguous_strides,
    dtype_name,
    like_strides,
)


@remembered
def expand(x, shape, *, out=None, strategy=None):
    """Repeat an array along new and length-1 dims into a new array: ``torch.Tensor.expand``, but materialised.

    Parameters
    ----------
    x : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides; bool, integer,
        floating (also float16 and bfloat16) or complex.
    shape : int or tuple of ints
        The shape to expand to. -1 keeps the length of an existing dim; further dims may lead.
    out : ndarray, optional
        Where to put the result: of that shape, any strides, a dtype to which ``x`` casts. It may overlap ``x``.
    strategy : str, optional
        One of ``gpuops.strategies("expand")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray
        A new array in C order, of the same kind and on the same device as ``x``; ``out`` if given.

    Raises
    ------
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If ``x`` does not expand to ``shape``, ``out`` has another shape, or the strategy is unknown or
        not for such operands.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.expand(np.array([[1], [2]]), (-1, 3))
    array([[1, 1, 1],
           [2, 2, 2]])
    """
    op = "expand"
    check_choice(op, "strategy", strategy, (None, *kernels.STRATEGIES))
    device = device_of(op, x=x, out=out)
    x = as_array(op, device, "x", x)
    check_dtype(op, "x", x.dtype)
    shape = expanded_shape(op, x.shape, shape)
    if out is not None:
        check_out(op, out, shape, x.dtype)
    if device is None:
        return reference.expand(x, shape, out)
    check_rank(op, "the result", len(shape))
    dtype = x.dtype if out is None else out.dtype
    types = kernels.element_types(dtype_name(dtype), (dtype_name(x.dtype),))
    return launch(device, "Expand", shape, dtype, None, out, types, [x], strategy)


@unremembered
def broadcast_to(array, shape, subok=False):
    """A view of an array with another shape, as ``numpy.broadcast_to``: nothing is copied.

    Parameters
    ----------
    array : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md).
    shape : int or tuple of ints
        The shape to broadcast to.
    subok : bool, optional
        Whether the view of an array of a subclass of NumPy's is one of that class, too.

    Returns
    -------
    ndarray
        A view with stride 0 where the array repeats. Read-only for NumPy arrays; CuPy arrays have no such flag, so do
        not write to it.

    Raises
    ------
    ValueError
        If the array does not broadcast to ``shape``.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.broadcast_to(np.array([1, 2]), (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    op = "broadcast_to"
    device = device_of(op, array=array)
    if array is None:
        raise error(TypeError, op, "array is None; gpuops takes arrays and scalars")
    if device is None:
        array = np.asanyarray(array) if subok else np.asarray(array)
    elif is_scalar(array):
        array = device.from_host(np.asarray(array))
    shape = as_shape(op, shape)
    if any(n < 0 for n in shape) or not broadcasts_to(array.shape, shape):
        raise error(ValueError, op, f"shape {array.shape} does not broadcast to {shape}")
    return np.broadcast_to(array, shape, subok) if device is None else device.broadcast_to(array, shape)


@remembered
def where(condition, x=None, y=None, /, *, out=None, strategy=None):
    """Elements of ``x`` where the condition is true, of ``y`` elsewhere, as ``numpy.where``: all three broadcast.

    Parameters
    ----------
    condition : array_like
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape, strides and numeric dtype;
        non-zero is true, and so is NaN.
    x, y : array_like, optional
        Arrays or scalars to choose from. Their dtypes promote as in NumPy; a Python scalar takes the other's dtype, in
        which an int must fit.
        Leave out both to get ``nonzero(condition)``.
    out : ndarray, optional
        Where to put the result: of the broadcast shape, any strides, a dtype to which the result casts. It may overlap
        the operands.
    strategy : str, optional
        One of ``gpuops.strategies("where")``; None picks the fastest. It matters on a GPU only.

    Returns
    -------
    ndarray
        Of the same kind and on the same device as the operands; without ``x`` and ``y`` a tuple of index arrays
        (on a GPU that waits for the device, as their length must be known).

    Raises
    ------
    OverflowError
        If a Python int does not fit the result's dtype.
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the shapes do not broadcast, ``out`` has another shape, only one of ``x`` and ``y`` is given, or the
        strategy is unknown or not for such operands.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.where(np.array([[True], [False]]), np.array([1, 2, 3]), 0)
    array([[1, 2, 3],
           [0, 0, 0]])
    """
    op = "where"
    check_choice(op, "strategy", strategy, (None, *kernels.STRATEGIES))
    if (x is None) != (y is None):
        raise error(ValueError, op, "either both or neither of x and y must be given")
    device = device_of(op, condition=condition, x=x, y=y, out=out)
    if x is None:
        return nonzero(device, condition, out)
    condition, x, y = (operand(op, device, name, v) for name, v in (("condition", condition), ("x", x), ("y", y)))
    dtype = result_type(op, x=x, y=y)
    values = [condition if hasattr(condition, "dtype") else np.asarray(condition)]
    values += [fitted(op, name, v, dtype) if type(v) in WEAK else v for name, v in (("x", x), ("y", y))]
    check_dtype(op, "condition", values[0].dtype)
    shape = broadcast_shapes(op, *(value.shape for value in values))
    if out is not None:
        check_out(op, out, shape, dtype)
    if device is None:
        return reference.where(values[0], values[1], values[2], dtype, out)
    check_rank(op, "the result", len(shape))
    values[1:] = [v.astype(dtype) if is_scalar(v) else v for v in values[1:]]
    target = dtype if out is None else out.dtype
    moved = kernels.element_types(dtype_name(target), [dtype_name(v.dtype) for v in values[1:]])
    types = (moved[0], kernels.condition_type(dtype_name(values[0].dtype)), *moved[1:])
    return launch(device, "Where", shape, target, layout(shape, values), out, types, values, strategy)


def operand(op: str, device: Device | None, name: str, value: Any) -> Any:
    """An operand of ``where``: a Python scalar as it is, other scalars on the host, arrays on the device."""
    if type(value) in WEAK:
        return value
    return np.asarray(value) if device is not None and is_scalar(value) else as_array(op, device, name, value)


def nonzero(device: Device | None, condition: Any, out: Any) -> tuple[Any, ...]:
    """``where`` with a condition alone."""
    if out is not None:
        raise error(TypeError, "where", "out needs x and y")
    condition = as_array("where", device, "condition", condition)
    if condition.ndim == 0:
        raise error(ValueError, "where", "a 0-d condition needs x and y")
    return np.nonzero(condition) if device is None else device.nonzero(condition)


def as_shape(op: str, shape: Any) -> Shape:
    """A shape given as an int or a sequence of ints."""
    lengths = np.asarray(shape.tolist()) if hasattr(shape, "tolist") else shape  # of an array, wherever it is
    try:
        return tuple([operator.index(n) for n in (lengths if np.iterable(lengths) else (lengths,))])
    except TypeError:
        raise error(TypeError, op, f"shape must be an int or a tuple of ints, got {shape!r}") from None


def expanded_shape(op: str, shape: Shape, to: Any) -> Shape:
    """The shape that ``expand`` makes, with every -1 filled in."""
    wanted = as_shape(op, to)
    lead = len(wanted) - len(shape)
    full = tuple([shape[d - lead] if n == -1 and d >= lead else n for d, n in enumerate(wanted)])
    if lead < 0 or min(full, default=0) < 0 or not broadcasts_to(shape, full):
        raise error(ValueError, op, f"shape {shape} does not expand to {wanted}")
    return full


def launch(
    device: Device, map_: str, shape: Shape, dtype: np.dtype, strides: Shape | None, out: Any, types: tuple[str, ...],
    operands: list[Any], strategy: str | None,
) -> Any:  # fmt: skip
    """Run a map of ``broadcast.cu`` over the operands, into ``out`` or a new array of that shape and strides."""
    with device.current():
        if strategy == "elementwise":
            operands = [device.from_host(v) if is_scalar(v) else v for v in operands]
        arrays = {name: v for name, v in zip("abc", operands, strict=False) if not is_scalar(v)}
        target = out
        if out is None or not is_whole(device, out) or any(clash(device, out, v) for v in arrays.values()):
            target = device.empty(shape, dtype, strides)
        if target.size:
            arrays["out"] = target
            args = [
                kernels.Arg(
                    name, ctype, v.itemsize, broadcast_strides(v.shape, elements(v), shape), device.pointer(v) % 16
                )
                if name in arrays
                else kernels.Arg(name, ctype, v.itemsize, (0,) * len(shape), value=v.tobytes())
                for name, ctype, v in zip(("out", "a", "b", "c"), types, (target, *operands), strict=False)
            ]  # fmt: skip
            plan = kernels.plan(map_, shape, args[0], tuple(args[1:]), strategy)
            run(plan, device, **arrays)
        return delivered(device, target, out)


def layout(shape: Shape, operands: list[Any]) -> Shape | None:
    """The strides of a new result: those that most bytes of the operands of that very shape have, so that transposed
    operands make a transposed result; None if it is to be in C order, as without such operands."""
    lying = [
        (elements(array), array.itemsize)
        for array in operands
        if array.shape == shape and all(s or n == 1 for n, s in zip(shape, array.strides, strict=True))
    ]
    if {strides for strides, _ in lying} <= {contiguous_strides(shape)}:
        return None
    votes: Counter[Shape] = Counter()
    for strides, itemsize in lying:
        votes[like_strides(shape, strides)] += itemsize
    return max(votes, key=lambda strides: votes[strides])
