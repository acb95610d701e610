"""Products of matrices and vectors with NumPy's semantics: matmul, dot."""

from typing import Any, NamedTuple

import numpy as np

from .. import plan
from ..call.arrays import is_scalar
from ..call.launch_cache import operation
from ..call.operation import ARRAY, OUT, WEAK, WEAK_TYPES
from ..definition.records import DOT
from ..definition.task import Task
from ..errors import error
from ..host import numpy_engine
from ..plan import reductions
from ..plan.builder import Builder, shared, unsafe
from ..plan.dtypes import accumulator, dtype_name
from ..plan.geometry import Shape, broadcast_strides
from ..plan.work import ArraySpec, HostCall, Work, new_array
from .arguments import (
    Casting,
    as_index,
    broadcast_shapes,
    broadcasts_to,
    check_array,
    check_choice,
    check_out,
    check_rank,
    fitted,
    result_type,
    scalar,
)
from .docstrings import documented
from .reduction import add_reduction
from .table import check_strategy


@operation(a=ARRAY, b=ARRAY, c=WEAK, out=OUT)
@documented
def matmul(a, b, /, out=None, *, alpha=1, beta=None, c=None, casting="same_kind", axes=None, strategy=None):
    """Matrix product, as ``numpy.matmul``; with factors and an addend, ``alpha * a @ b + beta * c``.

    Parameters
    ----------
    a, b : array_like
        {arrays}
        They have at least one dim. The last two dims hold matrices; the dims before them broadcast, without copies. A
        1-d ``a`` is a row and a 1-d ``b`` a column; the result lacks that dim.
    {out}
    alpha, beta : scalar, optional
        Factors, which the result's dtype must represent. ``beta`` is 1 by default if ``c`` is given; with 0, ``c`` is
        not read. A 0-d GPU array is copied to the host first, which synchronises.
    c : array_like, optional
        The addend, which broadcasts to the result's shape. ``out=c`` accumulates in place.
    casting : {"no", "equiv", "safe", "same_kind", "unsafe"}, optional
        Which casts are allowed, of the operands to the result's dtype and of the result to the dtype of ``out``.
    axes : list of tuples of ints, optional
        Which axes of ``a``, ``b`` and the result hold the matrices; by default the last two of each. A vector has one
        axis, which may be an int.
    {strategy}
        ``pipelined`` takes float32; ``cublas`` takes the dtypes that cuBLAS supports, not integers.

    Returns
    -------
    ndarray or scalar
        The dtype is that to which the operands promote. float32 is never computed in TF32; half types accumulate in
        float32; integers wrap around; for bools, an element says whether any pair is true.
        {like_input}
        On a GPU, small products whose blocks share a tile take up to 8 MiB of workspace per call, and ``cublas`` copies
        the operands whose layout or dtype it does not support. In large products of half types, it also copies operands
        and the result if their rows are not whole packs of 16 bytes, at most 2**29 elements.

    Raises
    ------
    {AxisError} an axis in ``axes`` is out of range
    {TypeError} ``axes`` is not a list of ints and tuples; if a factor cannot be represented in the result's dtype
    {ValueError} an operand is 0-d; if the shapes do not match; if the strategy does not apply

    Notes
    -----
    The rungs follow S. Boehm, "How to optimize a CUDA matmul kernel for cuBLAS-like performance" (2022); the fastest
    one goes further. docs/kernels/matmul.md explains them; docs/accuracy.md has the measured errors. The same call on
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
    check_strategy(op, strategy)
    check_choice(op, "casting", casting, CASTINGS)
    check_array(op, "a", a), check_array(op, "b", b)
    orders = None if axes is None else axis_orders(op, axes, a.ndim, b.ndim)
    given_out = out
    if orders is not None:
        a, b = a.transpose(orders[0]), b.transpose(orders[1])
        if out is not None and out.ndim != len(orders[2]):
            raise error(ValueError, op, f"out has {out.ndim} dims, the result has {len(orders[2])}")
        out = out and out.transpose(orders[2])
    terms = as_terms(op, a, b, alpha, beta, c, casting)
    if out is not None:
        check_out(op, out, terms.shape, terms.val, casting)
    options = {"val": terms.val, "alpha": terms.alpha, "beta": terms.beta, "orders": orders}
    options |= {"c": terms.number} if terms.number is not None else {}
    plain = c is None and orders is None and terms.alpha == 1 and a.dtype == b.dtype == terms.val
    half = accumulator(dtype_name(terms.val)) != dtype_name(terms.val)
    host = HostCall(numpy_engine.product, {}) if plain and not half else HostCall(numpy_engine.matmul, options)
    result = given_out or new_array("out", terms.shape, terms.val, machine=a.machine)
    plan = None
    if a.machine is not None:
        builder = Builder(a.machine)
        a, b, added = builder.readable(a), builder.readable(b), terms.c and builder.readable(terms.c)
        blocked = out is not None and (shared(out, a, b) or (added is not None and unsafe(out, added)))
        target = builder.target(out, blocked, terms.shape, terms.val)
        add_product(builder, matrices(terms, a, b, added, target), terms, strategy)
        builder.deliver(target, out)
        plan = builder.finish()
    if given_out is None and orders is not None and orders[2]:
        result = result.transpose(tuple(np.argsort(orders[2]).tolist()))
    return Work(op, (result,), host, plan)


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
        last = [as_index(op, "axes", axis, axes, "a list of ints and tuples of ints") for axis in items]
        if len(last) != core:
            rule = f"axes must give {core} of the axes of {name}, got {entry!r}"
            raise error(np.exceptions.AxisError, op, rule)
        if any(not -ndim <= axis < ndim for axis in last):
            raise error(np.exceptions.AxisError, op, f"axes {entry!r} of {name} are out of range for {ndim} dims")
        last = [axis % ndim for axis in last]
        if len({*last}) < core:
            raise error(ValueError, op, f"axes {entry!r} of {name} name a dimension twice")
        orders.append((*(d for d in range(ndim) if d not in last), *last))
    return orders


class Terms(NamedTuple):
    """What a product is made of: alpha * a @ b + beta * c for each of a batch."""

    val: np.dtype  # in which NumPy would compute
    sizes: Shape  # m, n, k
    batch: Shape
    shape: Shape  # of the result
    alpha: np.ndarray
    beta: np.ndarray
    c: ArraySpec | None = None  # None: nothing is added
    number: np.ndarray | None = None  # c, if it is a Python scalar
    row: bool = True  # whether the result has a dim of rows, and one of columns
    column: bool = True


def as_terms(op: str, a: Any, b: Any, alpha: Any, beta: Any, c: Any, casting: Casting) -> Terms:
    """Check what is multiplied and added."""
    check_shapes(op, a.shape, b.shape)
    val = result_type(op, a=a, b=b, c=c)
    for name, operand in (("a", a), ("b", b)):
        if not np.can_cast(operand.dtype, val, casting):
            rule = f"cannot cast {name} from {operand.dtype.name} to {val.name} with casting rule {casting!r}"
            raise error(TypeError, op, rule)
    number = fitted(op, "c", c, val) if type(c) in WEAK_TYPES else None
    beta = (0 if c is None else 1) if beta is None else beta
    factors = as_factor(op, "alpha", alpha, val), as_factor(op, "beta", beta, val)
    addend = c if number is None else scalar("c", number, a.machine)
    rows, cols = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    batch = broadcast_shapes(op, a.shape[:-2], b.shape[:-2])
    shape = (*batch, *rows, *cols)
    if factors[1] != 0 and addend is None:
        raise error(ValueError, op, f"beta requires c, got beta={beta!r}")
    if addend is not None and not broadcasts_to(check_array(op, "c", addend).shape, shape):
        raise error(ValueError, op, f"c of shape {addend.shape} does not broadcast to {shape}")
    sizes = (*(rows or (1,)), *(cols or (1,)), a.shape[-1])
    added = addend if factors[1] != 0 else None
    return Terms(val, sizes, batch, shape, *factors, added, number, bool(rows), bool(cols))


Matrices = dict[str, tuple[ArraySpec, Shape]]  # out, a, b and perhaps c, with their strides over (batch, rows, columns)


def matrices(terms: Terms, a: ArraySpec, b: ArraySpec, c: ArraySpec | None, out: ArraySpec) -> Matrices:
    """The operands of a product of stacks of matrices, where vectors have a stride of 0."""

    def over_result(array: ArraySpec) -> Shape:
        steps = iter(broadcast_strides(array.shape, array.steps, terms.shape))
        return (
            *(next(steps) for _ in terms.batch), *(next(steps) if dim else 0 for dim in (terms.row, terms.column))
        )  # fmt: skip

    a_steps, b_steps = a.steps, b.steps
    a_inner = a_steps[-2:] if terms.row else (0, *a_steps)
    b_inner = b_steps[-2:] if terms.column else (*b_steps, 0)
    found = {
        "out": (out, over_result(out)),
        "a": (a, (*broadcast_strides(a.shape[:-2], a_steps[:-2], terms.batch), *a_inner)),
        "b": (b, (*broadcast_strides(b.shape[:-2], b_steps[:-2], terms.batch), *b_inner)),
    }
    return found if c is None else found | {"c": (c, over_result(c))}


@operation(a=ARRAY, b=ARRAY, out=OUT)
@documented
def dot(a, b, out=None):
    """Dot product, as ``numpy.dot``; of two vectors in one pass over memory.

    Parameters
    ----------
    a, b : array_like
        {arrays}
        The sum runs over the last axis of ``a`` and the second-to-last of ``b``, or its only one. A 0-d array is a
        factor.
    {out}

    Returns
    -------
    ndarray or scalar
        The dtype is that to which ``a`` and ``b`` promote. The product of two vectors is exact, rounded once;
        complex numbers are not conjugated. On a GPU, two arrays of at least two dims are multiplied as by `matmul`.
        {like_input}

    Raises
    ------
    {TypeError}
    {ValueError} the lengths of the summed axes differ

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.dot(np.array([1, 2, 3]), np.array([4, 5, 6]))
    np.int64(32)
    """
    op = "dot"
    check_array(op, "a", a), check_array(op, "b", b)
    val = result_type(op, a=a, b=b)
    summed = b.ndim - 2 if b.ndim > 1 else 0  # the axis of b
    if a.ndim and b.ndim and a.shape[-1] != b.shape[summed]:
        lengths = f"{a.shape[-1]} elements along the last axis meet {b.shape[summed]} along axis {summed}"
        raise error(ValueError, op, f"shapes {a.shape} and {b.shape} do not align: {lengths}")
    factor = a.ndim == 0 or b.ndim == 0
    kept = (a.shape, b.shape) if factor else (a.shape[:-1], b.shape[:summed] + b.shape[summed + 1 :])
    shape = (*kept[0], *kept[1])
    if out is not None:
        check_out(op, out, shape, val)
    host = dot_on_host(a, b, val)
    if a.machine is None:
        return Work(op, (out or new_array("out", shape, val),), host)
    check_rank(op, "the result", len(shape))
    builder = Builder(a.machine)
    a, b = builder.readable(a), builder.readable(b)
    target = builder.target(out, out is not None and shared(out, a, b), shape, val)
    a_steps, b_steps = a.steps, b.steps
    if factor:
        steps, others = (*a_steps, *(0,) * b.ndim, 0), (*(0,) * a.ndim, *b_steps, 0)
        add_dots(builder, a, b, (*shape, 1), steps, others, val, target)
    elif a.ndim == 1 or b.ndim == 1:
        steps = (*a_steps[:-1], *(0,) * len(kept[1]), a_steps[-1])
        others = (*(0,) * len(kept[0]), *b_steps[:summed], *b_steps[summed + 1 :], b_steps[summed])
        add_dots(builder, a, b, (*shape, a.shape[-1]), steps, others, val, target)
    else:  # all dims but two form a batch, along which one operand repeats
        outer, inner, steps = a.ndim - 2, b.ndim - 2, target.steps
        operands = {
            "out": (target, (*steps[:outer], *steps[outer + 1 : -1], steps[outer], steps[-1])),
            "a": (a, (*a_steps[:-2], *(0,) * inner, *a_steps[-2:])),
            "b": (b, (*(0,) * outer, *b_steps)),
        }
        one = as_factor(op, "alpha", 1, val)
        sizes, batch = (a.shape[-2], b.shape[-1], a.shape[-1]), (*a.shape[:-2], *b.shape[:-2])
        add_product(builder, operands, Terms(val, sizes, batch, shape, one, one), None)
    builder.deliver(target, out)
    return Work(op, (out or target,), host, builder.finish())


def dot_on_host(a: ArraySpec, b: ArraySpec, val: np.dtype) -> HostCall:
    """What the CPU does: the product of two vectors is an exact sum."""
    bound = DOT.bind(a.dtype, val, val)
    if a.ndim == b.ndim == 1 and bound.sums is not None and b.dtype.kind in "fcV":
        from ..host import sums  # which costs time at import

        return HostCall(sums.dot, {"task": Task(bound, (0,), False, places=(0,))})
    return HostCall(numpy_engine.dot, {})


def add_product(builder: Builder, operands: Matrices, terms: Terms, strategy: str | None) -> None:
    """Add a product of stacks of matrices."""
    (out, out_steps), sizes = operands["out"], terms.sizes
    if out.size == 0:
        return
    plain = strategy is None and "c" not in operands and terms.alpha == 1
    if plain and 1 in sizes[:2] and sizes[2]:
        add_vector_product(builder, operands, terms)
        return
    layouts = {}
    for name, (array, steps) in operands.items():
        pointer = (array.start - array.offset) % 16
        layouts[name] = plan.products.Layout(array.name, dtype_name(array.dtype), steps, pointer, array.offset)
    if "c" in operands:
        c, c_steps = operands["c"]
        if c.name in out.aliases and (c.dtype, c_steps) == (out.dtype, out_steps):  # it is what ``out`` holds
            layouts["c"] = layouts["out"]
    problem = plan.products.problem(
        dtype_name(terms.val), sizes, terms.batch, layouts, terms.alpha.tobytes(), terms.beta.tobytes(),
        bool(terms.alpha != 1),
    )  # fmt: skip
    builder.add(plan.products.plan(problem, strategy, builder.machine))


def add_vector_product(builder: Builder, operands: Matrices, terms: Terms) -> None:
    """Add a product with a vector, as a reduction over k."""
    m, n, k = terms.sizes
    (out, out_steps), (a, a_steps), (b, b_steps) = (operands[name] for name in ("out", "a", "b"))
    side = -2 if m > 1 else -1  # the result's only dim
    shape, lengths = (*terms.batch, max(m, n)), (*terms.batch, max(m, n), k)
    a_steps = (*a_steps[:-2], a_steps[-2] if m > 1 else 0, a_steps[-1])
    b_steps = (*b_steps[:-2], b_steps[-1] if m == 1 else 0, b_steps[-2])
    view = out.view(shape, (*out_steps[:-2], out_steps[side]))
    add_dots(builder, a, b, lengths, a_steps, b_steps, terms.val, view)


def add_dots(
    builder: Builder, x: ArraySpec, y: ArraySpec, shape: Shape, x_steps: Shape, y_steps: Shape, val: np.dtype,
    target: ArraySpec,
) -> None:  # fmt: skip
    """Add sums of products along the last dim of two operands, read with these strides over a common shape."""
    lead, other = x.view(shape, x_steps), y.view(shape, y_steps)
    packed = y.size == x.size and abs(x_steps[-1]) != 1 and abs(y_steps[-1]) == 1
    if y.size > x.size or packed:  # the larger one leads: dims are ordered by its strides; or that which is contiguous
        lead, other = other, lead
    add_reduction(builder, reductions.problem(DOT.struct, lead, other, target, (len(shape) - 1,), dtype_name(val)))


# ------------------------------------------------------------------------------------------- what the arguments mean


def check_shapes(op: str, a: Shape, b: Shape) -> None:
    """The shapes of two operands must match."""
    if not a or not b:
        raise error(ValueError, op, f"operands need at least one dimension: {a} @ {b}")
    if a[-1] != b[-2 if len(b) > 1 else -1]:
        raise error(ValueError, op, f"inner dimensions differ: {a} @ {b}")
    try:
        broadcast_shapes(op, a[:-2], b[:-2])
    except ValueError:
        raise error(ValueError, op, f"batch dimensions {a[:-2]} and {b[:-2]} do not broadcast: {a} @ {b}") from None


KINDS = "biufc"  # kinds of numbers; each includes those before it


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
    raise error(TypeError, op, f"{name} {factor!r} cannot be represented in {val.name}")
