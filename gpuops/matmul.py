"""Products of matrices and vectors with NumPy's semantics: matmul, dot."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import reference
from .broadcast import clash
from .calls import remembered
from .device import Device, delivered, device_of, elements, is_scalar, overlap, run
from .errors import error
from .kernels import matmul as kernels
from .kernels import reduce as reductions
from .plan import (
    Shape,
    accumulator,
    broadcast_strides,
    broadcasts_to,
    check_choice,
    check_dtype,
    check_out,
    dtype_name,
)
from .reduce import as_array
from .reduce import launch as reduced


@remembered
def matmul(a, b, /, out=None, *, alpha=1, beta=0, c=None, strategy=None):
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
        Factors, which must be numbers of the result's dtype. With ``beta`` 0 nothing is added, and ``c`` is not read.
    c : array_like, optional
        What is added; broadcasts to the result's shape. ``out=c`` accumulates in place.
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
    >>> gpuops.matmul([1.0, 2.0], [[1.0], [1.0]], alpha=10, beta=1, c=[5.0])
    array([35.])
    """
    op = "matmul"
    check_choice(op, "strategy", strategy, (None, *kernels.STRATEGIES))
    device = device_of(op, a=a, b=b, c=c, out=out)
    a, b = as_array(device, a), as_array(device, b)
    check_shapes(op, a.shape, b.shape)
    weak = type(c) in (bool, int, float, complex)  # a Python scalar takes the others' dtype
    addend = c if c is None or weak else as_array(device, c)
    val = common_dtype(op, a, b, addend)
    addend = as_array(device, as_addend(op, c, val)) if weak else addend
    factors = as_factor(op, "alpha", alpha, val), as_factor(op, "beta", beta, val)
    added = bool(factors[1] != 0)
    rows, cols = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, *rows, *cols)
    if added and addend is None:
        raise error(ValueError, op, f"beta is {beta!r}, and there is no c")
    if addend is not None and not broadcasts_to(addend.shape, shape):
        raise error(ValueError, op, f"c of shape {addend.shape} does not broadcast to {shape}")
    if out is not None:
        check_out(op, out, shape, val)
    if device is None:
        return reference.matmul(a, b, val, *factors, addend if added else None, out)
    sizes = (*(rows or (1,)), *(cols or (1,)), a.shape[-1])
    a_steps, b_steps = elements(a), elements(b)
    a_steps = (*broadcast_strides(a.shape[:-2], a_steps[:-2], batch), *(a_steps[-2:] if rows else (0, *a_steps)))
    b_steps = (*broadcast_strides(b.shape[:-2], b_steps[:-2], batch), *(b_steps[-2:] if cols else (*b_steps, 0)))
    with device.current():
        target = out
        beside = [array for array in (a, b) if out is not None and overlap(device, out, array)]
        if out is None or beside or (added and clash(device, out, addend)):
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
def dot(x, y):
    """Dot product, as ``numpy.dot``: of two vectors in one reading of both.

    Parameters
    ----------
    x, y : array_like
        Arrays of NumPy's, CuPy's or another library's (docs/interop.md), of any strides and dtypes. The last axis of
        ``x`` is multiplied with the last but one of ``y``, or with its only one, and summed; a 0-d array is a factor.

    Returns
    -------
    ndarray or scalar
        Of the dtype to which those of ``x`` and ``y`` promote; half types accumulate in float32, complex numbers are
        not conjugated. On a GPU, two arrays of at least two dims are multiplied as by `matmul`.

    Raises
    ------
    TypeError
        If arrays of two libraries are mixed, or a dtype is not supported.
    ValueError
        If the lengths of the two axes differ.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.dot(np.array([1, 2, 3]), np.array([4, 5, 6]))
    np.int64(32)
    """
    op = "dot"
    device = device_of(op, x=x, y=y)
    x, y = as_array(device, x), as_array(device, y)
    val = common_dtype(op, x, y)
    summed = y.ndim - 2 if y.ndim > 1 else 0  # the axis of y
    if x.ndim and y.ndim and x.shape[-1] != y.shape[summed]:
        lengths = f"{x.shape[-1]} elements along the last axis meet {y.shape[summed]} along axis {summed}"
        raise error(ValueError, op, f"shapes {x.shape} and {y.shape} do not align: {lengths}")
    if device is None:
        return np.dot(x, y)
    x_steps, y_steps = elements(x), elements(y)
    if x.ndim == 0 or y.ndim == 0:
        steps, others = (*x_steps, *(0,) * y.ndim, 0), (*(0,) * x.ndim, *y_steps, 0)
        return dots(device, x, y, (*x.shape, *y.shape, 1), steps, others, val)
    x_kept, y_kept = x.shape[:-1], y.shape[:summed] + y.shape[summed + 1 :]
    if x.ndim == 1 or y.ndim == 1:
        steps = (*x_steps[:-1], *(0,) * len(y_kept), x_steps[-1])
        others = (*(0,) * len(x_kept), *y_steps[:summed], *y_steps[summed + 1 :], y_steps[summed])
        return dots(device, x, y, (*x_kept, *y_kept, x.shape[-1]), steps, others, val)
    with device.current():  # all dims but two are a batch's, in each of which one operand repeats
        target = device.empty((*x_kept, *y_kept), val)
        outer, inner = x.ndim - 2, y.ndim - 2
        steps = elements(target)
        operands = {
            "out": (target, (*steps[:outer], *steps[outer + 1 : -1], steps[outer], steps[-1])),
            "a": (x, (*x_steps[:-2], *(0,) * inner, *x_steps[-2:])),
            "b": (y, (*(0,) * outer, *y_steps)),
        }
        sizes, one = (x.shape[-2], y.shape[-1], x.shape[-1]), as_factor(op, "alpha", 1, val)
        product(device, operands, sizes, (*x.shape[:-2], *y.shape[:-2]), val, (one, one), None)
        return target


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
        np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise error(ValueError, op, f"batch dimensions {a[:-2]} and {b[:-2]} do not broadcast: {both}") from None


def common_dtype(op: str, *operands: Any) -> np.dtype:
    """The dtype to which those of the operands promote; a Python scalar yields to the others', None is none."""
    given = [operand for operand in operands if operand is not None]
    for name, operand in zip(NAMES[op], operands, strict=False):
        if hasattr(operand, "dtype"):
            check_dtype(op, name, operand.dtype)
    dtypes = [operand.dtype if hasattr(operand, "dtype") else operand for operand in given]
    try:
        val = np.result_type(*dtypes)
    except TypeError:
        names = " and ".join(dtype.name for dtype in dtypes if isinstance(dtype, np.dtype))
        raise error(TypeError, op, f"{names} have no common dtype") from None
    check_dtype(op, "the result", val)
    return val


NAMES = {"matmul": "abc", "dot": "xy"}
KINDS = "biufc"  # of numbers, each of which takes those before it


def as_factor(op: str, name: str, factor: Any, val: np.dtype) -> Any:
    """A factor as a 0-d array of the dtype in which products of ``val`` are added up."""
    acc = np.dtype(accumulator(dtype_name(val)))
    if not is_scalar(factor):
        raise error(TypeError, op, f"{name} must be a scalar, got {factor!r}")
    made = np.asarray(factor)
    kind = KINDS.find(made.dtype.kind.replace("V", "f"))  # (that of bfloat16)
    if made in (0, 1) if acc.kind == "b" else 0 <= kind <= max(KINDS.index(acc.kind), 2):
        try:
            return np.asarray(made.item(), acc)
        except (OverflowError, TypeError, ValueError):
            pass
    raise error(TypeError, op, f"{name} {factor!r} is no number of the result's dtype, {val.name}")


def as_addend(op: str, c: Any, val: np.dtype) -> np.ndarray:
    """A Python scalar as what is added to products of dtype ``val``."""
    try:
        return np.asarray(c, val)
    except (OverflowError, TypeError, ValueError) as failure:
        raise error(type(failure), op, f"c {c!r} does not become {val.name}: {failure}") from None


def same(device: Device, out: Any, c: Any, c_steps: Shape, out_steps: Shape) -> bool:
    """Whether ``c`` is what ``out`` holds."""
    return (device.pointer(c), c.dtype, c_steps) == (device.pointer(out), out.dtype, out_steps)
