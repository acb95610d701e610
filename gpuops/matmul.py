"""Products of matrices and vectors with NumPy's semantics: matmul, dot."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import reference
from .arguments import WEAK, as_array, as_number, clash, delivered, fitted, result_type, spoils
from .calls import remembered
from .device import Device, device_of, elements, is_scalar, run
from .errors import error
from .kernels import matmul as kernels
from .kernels import reduce as reductions
from .plan import (
    Casting,
    Shape,
    accumulator,
    as_index,
    broadcast_shapes,
    broadcast_strides,
    broadcasts_to,
    check_choice,
    check_out,
    check_rank,
    dtype_name,
)
from .reduce import launch as reduced


@remembered
def matmul(a, b, /, out=None, *, alpha=1, beta=None, c=None, casting="same_kind", axes=None, strategy=None):
    """Matrix product, as ``numpy.matmul``; with factors and an addend ``alpha * a @ b + beta * c``.

    Parameters
    ----------
    a, b : array_like
        Arrays of NumPy's, CuPy's or another library's (docs/interop.md), of at least one dim, any strides and dtypes;
        bool, integer, floating (also float16 and bfloat16) or complex. The last two dims are matrices, those before
        broadcast against each other and cost nothing where they do. A 1-d ``a`` is a row, a 1-d ``b`` a column, which
        the result does not have.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        the operands.
    alpha, beta : scalar, optional
        Factors, which must be numbers of the result's dtype. ``beta`` is 1 if there is ``c``; with 0 nothing is added,
        and ``c`` is not read. Of an array without dims a GPU is waited for.
    c : array_like, optional
        What is added; broadcasts to the result's shape. ``out=c`` accumulates in place.
    casting : {"no", "equiv", "safe", "same_kind", "unsafe"}, optional
        What casts of the operands to the result's dtype, and of the result to that of ``out``, are allowed.
    axes : list of tuples of ints, optional
        Which axes of ``a``, ``b`` and the result the matrices are in; the last two of each if not given. A vector has
        one axis, which may be an int.
    strategy : str, optional
        One of ``gpuops.strategies("matmul")``; None picks the fastest. It matters on a GPU only. ``pipelined`` takes
        float32, ``cublas`` what cuBLAS does: no integers.

    Returns
    -------
    ndarray or scalar
        Of the same kind and on the same device as the operands, of the dtype to which theirs promote. float32 is
        computed as it is, never in TF32; half types accumulate in float32; integers wrap around; of bools it is whether
        any pair is true. On a GPU, blocks that share a tile of a small product take at most 8 MiB of workspace for
        a call, and what ``cublas`` does not take as it lies or converts is copied.

    Raises
    ------
    TypeError
        If arrays of two libraries are mixed, a dtype is not supported or cannot be cast, or a factor is no number of
        the result's dtype.
    ValueError
        If an operand has no dim, the shapes do not go together, or a strategy is unknown or does not apply.

    Notes
    -----
    The rungs follow S. Boehm, "How to optimize a CUDA matmul kernel for cuBLAS-like performance" (2022), and the
    fastest goes beyond; docs/kernels/matmul.md explains them, errors are measured in docs/accuracy.md. The same call on
    the same device gives the same bits.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.matmul(np.array([[1, 2], [3, 4]]), np.array([[0, 1], [1, 0]]))
    array([[2, 1],
           [4, 3]])
    >>> gpuops.matmul([1.0, 2.0], [[1.0], [1.0]], alpha=10, c=[5.0])
    array([35.])
    """
    op = "matmul"
    check_choice(op, "strategy", strategy, (None, *kernels.STRATEGIES))
    check_choice(op, "casting", casting, CASTINGS)
    device = device_of(op, a=a, b=b, c=c, out=out)
    a, b = as_array(op, device, "a", a), as_array(op, device, "b", b)
    if axes is None:
        return multiplied(op, device, a, b, out, alpha, beta, c, casting, strategy)
    orders = axis_orders(op, axes, a.ndim, b.ndim)
    a, b = a.transpose(orders[0]), b.transpose(orders[1])
    if out is not None:
        if out.ndim != len(orders[2]):
            raise error(ValueError, op, f"out has {out.ndim} dims, the result has {len(orders[2])}")
        multiplied(op, device, a, b, out.transpose(orders[2]), alpha, beta, c, casting, strategy)
        return out
    result = multiplied(op, device, a, b, None, alpha, beta, c, casting, strategy)
    return result.transpose(np.argsort(orders[2]).tolist()) if orders[2] else result


CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def axis_orders(op: str, axes: Any, a: int, b: int) -> list[Shape]:
    """The orders of the dims of ``a``, ``b`` and the result that have matrices last, given the axes of the matrices and
    the numbers of dims of ``a`` and ``b``."""
    cores = (min(a, 2), min(b, 2), min(a, 2) + min(b, 2) - 2)
    ndims = (a, b, max(a - cores[0], b - cores[1]) + cores[2])
    if not isinstance(axes, list):
        raise error(TypeError, op, f"axes must be a list, got {axes!r}")
    if len(axes) != 3:
        raise error(ValueError, op, f"axes must have an entry for a, b and the result, got {axes!r}")
    orders = []
    for name, entry, core, ndim in zip(("a", "b", "the result"), axes, cores, ndims, strict=True):
        items = entry if isinstance(entry, tuple) else (entry,)
        last = [as_index(op, "axes", axis, axes) for axis in items]
        if len(last) != core:
            rule = f"axes gives {entry!r} for {name}, of which {core} dims are multiplied"
            raise error(np.exceptions.AxisError, op, rule)
        if any(not -ndim <= axis < ndim for axis in last):
            raise error(np.exceptions.AxisError, op, f"axes {entry!r} of {name} are out of range for {ndim} dims")
        last = [axis % ndim for axis in last]
        if len({*last}) < core:
            raise error(ValueError, op, f"axes {entry!r} of {name} name a dimension twice")
        orders.append((*(d for d in range(ndim) if d not in last), *last))
    return orders


def multiplied(
    op: str, device: Device | None, a: Any, b: Any, out: Any, alpha: Any, beta: Any, c: Any, casting: Casting,
    strategy: str | None,
) -> Any:  # fmt: skip
    """The product of matrices in the last two dims of arrays on a device."""
    check_shapes(op, a.shape, b.shape)
    addend = c if c is None or type(c) in WEAK else as_array(op, device, "c", c)
    val = result_type(op, a=a, b=b, c=addend)
    for name, operand in (("a", a), ("b", b)):
        if not np.can_cast(operand.dtype, val, casting):
            rule = f"cannot cast {name} from {operand.dtype.name} to {val.name} with casting rule {casting!r}"
            raise error(TypeError, op, rule)
    addend = as_array(op, device, "c", fitted(op, "c", c, val)) if type(c) in WEAK else addend
    beta = (0 if c is None else 1) if beta is None else beta
    factors = as_factor(op, "alpha", alpha, val), as_factor(op, "beta", beta, val)
    added = bool(factors[1] != 0)
    rows, cols = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    batch = broadcast_shapes(op, a.shape[:-2], b.shape[:-2])
    shape = (*batch, *rows, *cols)
    if added and addend is None:
        raise error(ValueError, op, f"beta is {beta!r}, and there is no c")
    if addend is not None and not broadcasts_to(addend.shape, shape):
        raise error(ValueError, op, f"c of shape {addend.shape} does not broadcast to {shape}")
    if out is not None:
        check_out(op, out, shape, val, casting)
    if device is None:
        return reference.matmul(a, b, val, *factors, addend if added else None, out)
    sizes = (*(rows or (1,)), *(cols or (1,)), a.shape[-1])
    a_steps, b_steps = elements(a), elements(b)
    a_steps = (*broadcast_strides(a.shape[:-2], a_steps[:-2], batch), *(a_steps[-2:] if rows else (0, *a_steps)))
    b_steps = (*broadcast_strides(b.shape[:-2], b_steps[:-2], batch), *(b_steps[-2:] if cols else (*b_steps, 0)))
    with device.current():
        target = out
        if out is None or spoils(device, out, a, b) or (added and clash(device, out, addend)):
            target = device.empty(shape, val if out is None else out.dtype)

        def placed(array: Any) -> Shape:
            """An array's strides over the batch, rows and columns of the result."""
            steps = iter(broadcast_strides(array.shape, elements(array), shape))
            return (*(next(steps) for _ in batch), *(next(steps) if dims else 0 for dims in (rows, cols)))

        operands = {"out": (target, placed(target)), "a": (a, a_steps), "b": (b, b_steps)}
        if added:
            operands["c"] = addend, placed(addend)
        product(device, operands, sizes, batch, val, factors, strategy)
        return delivered(device, target, out)


@remembered
def dot(a, b, out=None):
    """Dot product, as ``numpy.dot``: of two vectors in one reading of both.

    Parameters
    ----------
    a, b : array_like
        Arrays of NumPy's, CuPy's or another library's (docs/interop.md), of any strides and dtypes. The last axis of
        ``a`` is multiplied with the last but one of ``b``, or with its only one, and summed; a 0-d array is a factor.
    out : ndarray, optional
        Where to put the result: of the result's shape, any strides, a dtype to which the result casts. It may overlap
        the operands.

    Returns
    -------
    ndarray or scalar
        Of the dtype to which those of ``a`` and ``b`` promote; half types accumulate in float32, complex numbers are
        not conjugated. On a GPU, two arrays of at least two dims are multiplied as by `matmul`.

    Raises
    ------
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported or cannot be cast.
    ValueError
        If the lengths of the two axes differ, or ``out`` has another shape.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.dot(np.array([1, 2, 3]), np.array([4, 5, 6]))
    np.int64(32)
    """
    op = "dot"
    device = device_of(op, a=a, b=b, out=out)
    a, b = as_array(op, device, "a", a), as_array(op, device, "b", b)
    val = result_type(op, a=a, b=b)
    summed = b.ndim - 2 if b.ndim > 1 else 0  # the axis of b
    if a.ndim and b.ndim and a.shape[-1] != b.shape[summed]:
        lengths = f"{a.shape[-1]} elements along the last axis meet {b.shape[summed]} along axis {summed}"
        raise error(ValueError, op, f"shapes {a.shape} and {b.shape} do not align: {lengths}")
    a_kept, b_kept = a.shape[:-1], b.shape[:summed] + b.shape[summed + 1 :]
    factor = a.ndim == 0 or b.ndim == 0
    shape = (*a.shape, *b.shape) if factor else (*a_kept, *b_kept)
    if out is not None:
        check_out(op, out, shape, val)
    if device is None:
        return reference.deliver(np.dot(a, b), out)
    check_rank(op, "the result", len(shape))
    a_steps, b_steps = elements(a), elements(b)
    if factor:
        steps, others = (*a_steps, *(0,) * b.ndim, 0), (*(0,) * a.ndim, *b_steps, 0)
        return dots(device, a, b, (*shape, 1), steps, others, val, out)
    if a.ndim == 1 or b.ndim == 1:
        steps = (*a_steps[:-1], *(0,) * len(b_kept), a_steps[-1])
        others = (*(0,) * len(a_kept), *b_steps[:summed], *b_steps[summed + 1 :], b_steps[summed])
        return dots(device, a, b, (*shape, a.shape[-1]), steps, others, val, out)
    with device.current():  # all dims but two are a batch's, in each of which one operand repeats
        target = out
        if out is None or spoils(device, out, a, b):
            target = device.empty(shape, val if out is None else out.dtype)
        outer, inner = a.ndim - 2, b.ndim - 2
        steps = elements(target)
        operands = {
            "out": (target, (*steps[:outer], *steps[outer + 1 : -1], steps[outer], steps[-1])),
            "a": (a, (*a_steps[:-2], *(0,) * inner, *a_steps[-2:])),
            "b": (b, (*(0,) * outer, *b_steps)),
        }
        sizes, one = (a.shape[-2], b.shape[-1], a.shape[-1]), as_factor(op, "alpha", 1, val)
        product(device, operands, sizes, (*a.shape[:-2], *b.shape[:-2]), val, (one, one), None)
        return delivered(device, target, out)


def product(
    device: Device, operands: dict[str, tuple[Any, Shape]], sizes: Shape, batch: Shape, val: np.dtype,
    factors: tuple[Any, Any], strategy: str | None,
) -> None:  # fmt: skip
    """Multiply matrices of ``sizes`` (m, n, k). Operands out, a, b and perhaps c come with their strides over the
    batch, the rows and the columns."""
    out, alpha, beta = operands["out"][0], *factors
    if out.size == 0:
        return
    plain = strategy is None and "c" not in operands and alpha == 1
    if plain and 1 in sizes[:2] and sizes[2]:
        vectors(device, operands, sizes, batch, val)
        return
    layouts: dict[str, Any] = {"c": None}
    for name, (array, steps) in operands.items():
        layouts[name] = kernels.Layout(name, dtype_name(array.dtype), steps, device.pointer(array) % 16)
    if "c" in operands and same(device, out, *operands["c"], operands["out"][1]):
        layouts["c"] = layouts["out"]
    problem = kernels.problem(
        dtype_name(val), sizes, batch, layouts["out"], layouts["a"], layouts["b"], layouts["c"], alpha.tobytes(),
        beta.tobytes(), bool(alpha != 1),
    )  # fmt: skip
    plan = kernels.plan(problem, strategy, device.machine._replace(blas=not device.capturing()))
    run(plan, device, **{name: operands[name][0] for name in ("a", "b", "c", "out") if name in operands})


def vectors(device: Device, operands: dict[str, tuple[Any, Shape]], sizes: Shape, batch: Shape, val: np.dtype) -> None:
    """Products of which one operand is a vector: sums of products over k, read as reductions read."""
    m, n, k = sizes
    (out, out_steps), (a, a_steps), (b, b_steps) = (operands[name] for name in ("out", "a", "b"))
    side = -2 if m > 1 else -1  # of the result's dims, the one that there is
    shape, lengths = (*batch, max(m, n)), (*batch, max(m, n), k)
    a_steps = (*a_steps[:-2], a_steps[-2] if m > 1 else 0, a_steps[-1])
    b_steps = (*b_steps[:-2], b_steps[-1] if m == 1 else 0, b_steps[-2])
    view = device.view(out, 0, out.dtype, shape, (*out_steps[:-2], out_steps[side]))
    dots(device, a, b, lengths, a_steps, b_steps, val, view)


def dots(
    device: Device, x: Any, y: Any, shape: Shape, x_steps: Shape, y_steps: Shape, val: np.dtype, out: Any = None
) -> Any:
    """Sums of products along the last dim of two operands, read with these strides over a common shape."""
    lead, other = device.view(x, 0, x.dtype, shape, x_steps), device.view(y, 0, y.dtype, shape, y_steps)
    if y.size > x.size:  # the larger one leads: dims are ordered by its strides
        lead, other = other, lead
    return reduced(device, reductions.DOT, lead, other, (len(shape) - 1,), val, val, out, shape[:-1])


# ------------------------------------------------------------------------------------------- what the arguments mean


def check_shapes(op: str, a: Shape, b: Shape) -> None:
    """Two shapes must go together."""
    both = f"{a} @ {b}"
    if not a or not b:
        raise error(ValueError, op, f"operands need at least one dimension: {both}")
    if a[-1] != b[-2 if len(b) > 1 else -1]:
        raise error(ValueError, op, f"inner dimensions differ: {both}")
    try:
        broadcast_shapes(op, a[:-2], b[:-2])
    except ValueError:
        raise error(ValueError, op, f"batch dimensions {a[:-2]} and {b[:-2]} do not broadcast: {both}") from None


KINDS = "biufc"  # of numbers, each of which takes those before it


def as_factor(op: str, name: str, factor: Any, val: np.dtype) -> Any:
    """A factor as a 0-d array of the dtype in which products of ``val`` are added up."""
    acc = np.dtype(accumulator(dtype_name(val)))
    value = as_number(factor)
    if not is_scalar(value):
        raise error(TypeError, op, f"{name} must be a scalar, got {factor!r}")
    made = np.asarray(value)
    kind = KINDS.find(made.dtype.kind.replace("V", "f"))  # (that of bfloat16)
    if made in (0, 1) if acc.kind == "b" else 0 <= kind <= max(KINDS.index(acc.kind), 2):
        try:
            return np.asarray(made.item(), acc)
        except (OverflowError, TypeError, ValueError):
            pass
    raise error(TypeError, op, f"{name} {factor!r} is no number of the result's dtype, {val.name}")


def same(device: Device, out: Any, c: Any, c_steps: Shape, out_steps: Shape) -> bool:
    """Whether ``c`` is what ``out`` holds."""
    return (device.pointer(c), c.dtype, c_steps) == (device.pointer(out), out.dtype, out_steps)
