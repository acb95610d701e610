"""Broadcasting with NumPy's semantics: expand, broadcast_to, where."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from .. import plan
from ..call.launch_cache import operation, view
from ..call.operation import ARRAY, OUT, SHAPE, SUBCLASS, WEAK, WEAK_TYPES
from ..errors import error
from ..host import maps, numpy_engine
from ..plan.builder import Builder, unsafe
from ..plan.dtypes import dtype_name
from ..plan.geometry import Shape, contiguous_strides, like_strides
from ..plan.recording import index
from ..plan.work import ArraySpec, HostCall, Work, new_array
from .arguments import (
    broadcast_shapes,
    broadcasts_to,
    check_array,
    check_out,
    check_rank,
    fitted,
    result_type,
    scalar,
)
from .docstrings import documented
from .selection import indices
from .table import check_strategy


@operation(x=ARRAY, shape=SHAPE, out=OUT)
@documented
def expand(x, shape, *, out=None, strategy=None):
    """Repeat an array along new and length-1 dims, in new memory; ``torch.Tensor.expand`` makes a view.

    Parameters
    ----------
    {x}
    shape : int or tuple of ints
        The shape to expand to. -1 keeps the length of an existing dim; new dims come first.
    {out}
    {strategy}

    Returns
    -------
    ndarray
        A new array in C order, or ``out``.
        {like_input}

    Raises
    ------
    {TypeError}
    {ValueError} ``x`` does not expand to ``shape``; if the strategy does not apply

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.expand(np.array([[1], [2]]), (-1, 3))
    array([[1, 1, 1],
           [2, 2, 2]])
    """
    op = "expand"
    check_strategy(op, strategy)
    check_array(op, "x", x)
    shape = expanded_shape(op, x.shape, shape)
    if out is not None:
        check_out(op, out, shape, x.dtype)
    host = HostCall(maps.expand, {"shape": shape})
    if x.machine is None:
        return Work(op, (out or new_array("out", shape, x.dtype),), host)
    check_rank(op, "the result", len(shape))
    dtype = x.dtype if out is None else out.dtype
    builder = Builder(x.machine)
    source = x if x.value is not None else builder.readable(x)
    target = builder.target(out, out is not None and unsafe(out, source), shape, dtype)
    types = plan.maps.element_types(dtype_name(dtype), (dtype_name(x.dtype),))
    add_map(builder, "Expand", target, [source], types, strategy)
    builder.deliver(target, out)
    return Work(op, (out or target,), host, builder.finish())


@view(array=SUBCLASS, shape=SHAPE)
@documented
def broadcast_to(array, shape, subok=False):
    """A view of an array with another shape, as ``numpy.broadcast_to``; nothing is copied.

    Parameters
    ----------
    array : array_like
        An array of NumPy, CuPy or another library (docs/interop.md).
    shape : int or tuple of ints
        The shape to broadcast to.
    subok : bool, optional
        Whether a subclass of ``numpy.ndarray`` gives a view of that class.

    Returns
    -------
    ndarray
        A view, with stride 0 where the array repeats. NumPy views are read-only. CuPy has no such flag: do not write to
        the view.

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
    if array is None:
        raise error(TypeError, op, "array is None; gpuops takes arrays and scalars")
    shape = as_shape(op, shape)
    if any(n < 0 for n in shape) or not broadcasts_to(array.shape, shape):
        raise error(ValueError, op, f"shape {array.shape} does not broadcast to {shape}")
    host = HostCall(numpy_engine.broadcast_to, {"shape": shape, "subok": subok})
    return Work(op, (array.broadcast_to(shape),), host, method=("broadcast_to", ("array", shape)))


@operation(condition=ARRAY, x=WEAK, y=WEAK, out=OUT)
@documented
def where(condition, x=None, y=None, /, *, out=None, strategy=None):
    """Elements of ``x`` where the condition is true, of ``y`` elsewhere, as ``numpy.where``; all three broadcast.

    Parameters
    ----------
    condition : array_like
        An array of NumPy, CuPy or another library (docs/interop.md), of any shape, strides and numeric dtype. Non-zero
        is true, and so is NaN.
    x, y : array_like, optional
        Arrays or scalars to choose from. Their dtypes promote as in NumPy; a Python scalar takes the dtype of the
        other, which must be able to represent an int. Without both, the result is ``nonzero(condition)``.
    {out}
    {strategy}

    Returns
    -------
    ndarray
        The chosen elements. Without ``x`` and ``y``, a tuple of index arrays; on a GPU this
        synchronises, since the host must know their length.
        {like_input}

    Raises
    ------
    OverflowError
        If a Python int does not fit the result's dtype.
    {TypeError}
    {ValueError} the shapes do not broadcast; if only one of ``x`` and ``y`` is given; if the strategy does not apply

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.where(np.array([[True], [False]]), np.array([1, 2, 3]), 0)
    array([[1, 2, 3],
           [0, 0, 0]])
    """
    op = "where"
    check_strategy(op, strategy)
    if (x is None) != (y is None):
        raise error(ValueError, op, "either both or neither of x and y must be given")
    if x is None:
        if out is not None:
            raise error(TypeError, op, "out needs x and y")
        return indices(op, "condition", condition)
    dtype = result_type(op, x=x, y=y)
    check_array(op, "condition", condition)
    values, scalars = [], {}
    for name, value in (("x", x), ("y", y)):
        if type(value) in WEAK_TYPES:
            scalars[name] = fitted(op, name, value, dtype)
            values.append(scalar(name, scalars[name], condition.machine))
        else:
            values.append(check_array(op, name, value))
    shape = broadcast_shapes(op, condition.shape, *(value.shape for value in values))
    if out is not None:
        check_out(op, out, shape, dtype)
    compute = numpy_engine.where if math.prod(shape) < maps.FEW else maps.where
    host = HostCall(compute, {"dtype": dtype, **scalars})
    if condition.machine is None:
        return Work(op, (out or new_array("out", shape, dtype),), host)
    check_rank(op, "the result", len(shape))
    builder = Builder(condition.machine)
    operands = [each if each.value is not None else builder.readable(each) for each in (condition, *values)]
    operands[1:] = [each if each.value is None else converted(each, dtype) for each in operands[1:]]
    made = dtype if out is None else out.dtype
    blocked = out is not None and any(unsafe(out, each) for each in operands)
    target = builder.target(out, blocked, shape, made, layout(shape, operands))
    moved = plan.maps.element_types(dtype_name(made), [dtype_name(each.dtype) for each in operands[1:]])
    types = (moved[0], plan.maps.condition_type(dtype_name(condition.dtype)), *moved[1:])
    add_map(builder, "Where", target, operands, types, strategy)
    builder.deliver(target, out)
    return Work(op, (out or target,), host, builder.finish())


def converted(value: ArraySpec, dtype: np.dtype) -> ArraySpec:
    """A scalar in another dtype."""
    assert value.value is not None
    return scalar(value.name, np.frombuffer(value.value, value.dtype)[0].astype(dtype), value.machine)


def add_map(
    builder: Builder, map_: str, target: ArraySpec, operands: list[ArraySpec], types: tuple[str, ...],
    strategy: str | None = None,
) -> None:  # fmt: skip
    """Add a map of ``broadcast.cu``: element types are those of the target, then of the operands."""
    if target.size:
        shape = target.shape
        typed = zip((target, *operands), types, strict=True)
        out, *args = (plan.maps.argument(each, ctype, shape) for each, ctype in typed)
        if strategy is None and builder.machine.general:
            strategy = "collapsed"  # that of small arrays
        builder.add(plan.maps.plan(map_, shape, out, tuple(args), strategy))


def as_shape(op: str, shape: Any) -> Shape:
    """A shape given as an int or a sequence of ints."""
    lengths = np.asarray(shape.tolist()) if hasattr(shape, "tolist") else shape  # of an array, wherever it is
    try:
        return tuple([index(n) for n in (lengths if np.iterable(lengths) else (lengths,))])
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


def layout(shape: Shape, operands: list[ArraySpec]) -> Shape | None:
    """The strides of a new result: it has the memory order of most of the operand bytes that have its shape, so that
    transposed operands give a transposed result; None for C order, also if no operand has its shape."""
    lying = [
        (array.steps, array.itemsize)
        for array in operands
        if array.value is None and array.shape == shape
        if all(s or n == 1 for n, s in zip(shape, array.strides, strict=True))
    ]
    in_order = contiguous_strides(shape)
    if all(strides == in_order for strides, _ in lying):
        return None
    votes: Counter[Shape] = Counter()
    for strides, itemsize in lying:
        votes[like_strides(shape, strides)] += itemsize
    return max(votes, key=lambda strides: votes[strides])
