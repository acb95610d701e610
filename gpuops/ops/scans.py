"""Scans with NumPy's semantics: running sums and products, and the like."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import plan
from ..call.facts import FACTS
from ..call.launch_cache import operation
from ..call.operation import ARRAY, OUT
from ..definition import scans
from ..definition.scans import Scan, Task
from ..plan.builder import Builder, shared, unsafe
from ..plan.dtypes import CTYPES, FLOATS, REALS, ctype
from ..plan.geometry import Shape, contiguous_strides, like_strides
from ..plan.work import ArraySpec, Work, new_array
from .arguments import as_index, check_array, check_dtype, check_out, dtype_of, normalize_axis
from .broadcast import add_map
from .docstrings import documented
from .reduction import dtypes
from .table import check_strategy

FACTS[Scan] = id  # scans are constants


@operation(a=ARRAY, out=OUT)
@documented
def cumsum(a, axis=None, dtype=None, out=None, *, reverse=False, exclusive=False, strategy=None):
    """Running sum along an axis, as ``numpy.cumsum``.

    Small integers and bools are summed in int64 or uint64. Each result of floats is the exact sum of the elements so
    far, rounded once: its bits depend on these elements alone (docs/exact.md).

    {scan}

    Notes
    -----
    Blocks scan tiles and look back at the totals of earlier ones, in one pass over memory: D. Merrill and M. Garland,
    "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016).

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.cumsum(np.array([1, 2, 3]))
    array([1, 3, 6])
    >>> gpuops.cumsum(np.array([[1, 2], [3, 4]]), axis=1, exclusive=True)
    array([[0, 1],
           [0, 3]])
    """
    return scan(scans.CUMSUM, a, axis, dtype, out, reverse, exclusive, strategy)


@operation(a=ARRAY, out=OUT)
@documented
def cumprod(a, axis=None, dtype=None, out=None, *, reverse=False, exclusive=False, strategy=None):
    """Running product along an axis, as ``numpy.cumprod``.

    Small integers and bools are multiplied in int64 or uint64. Floats are multiplied in float64, complex numbers in
    complex128, with a separate exponent, and each result is rounded from that. So a result may be finite where an
    earlier product has overflowed in NumPy. The order of the multiplications depends on the length of the axis alone
    (docs/kernels/scan.md).

    {scan}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.cumprod(np.array([1, 2, 3, 4]))
    array([ 1,  2,  6, 24])
    """
    return scan(scans.CUMPROD, a, axis, dtype, out, reverse, exclusive, strategy)


@operation(a=ARRAY, out=OUT)
@documented
def cummax(a, axis=None, dtype=None, out=None, *, reverse=False, exclusive=False, strategy=None):
    """Running maximum along an axis, as ``numpy.maximum.accumulate``.

    NaN wins over numbers; complex numbers are ordered by real part, then by imaginary part. The maximum of no elements,
    with ``exclusive``, is the least value of the dtype.

    {scan}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.cummax(np.array([2, 1, 4, 3]))
    array([2, 2, 4, 4])
    """
    return scan(scans.CUMMAX, a, axis, dtype, out, reverse, exclusive, strategy)


@operation(a=ARRAY, out=OUT)
@documented
def cummin(a, axis=None, dtype=None, out=None, *, reverse=False, exclusive=False, strategy=None):
    """Running minimum along an axis, as ``numpy.minimum.accumulate``.

    NaN wins over numbers; complex numbers are ordered by real part, then by imaginary part. The minimum of no elements,
    with ``exclusive``, is the greatest value of the dtype.

    {scan}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.cummin(np.array([2, 3, 1, 4]), reverse=True)
    array([1, 1, 1, 4])
    """
    return scan(scans.CUMMIN, a, axis, dtype, out, reverse, exclusive, strategy)


@operation(a=ARRAY, out=OUT)
@documented
def logcumsumexp(a, axis=None, dtype=None, out=None, *, reverse=False, exclusive=False, strategy=None):
    """Running logsumexp along an axis: each result is the logarithm of the sum of the exponentials so far.

    Integers are computed in float64. The order of the additions depends on the length of the axis alone
    (docs/kernels/scan.md). The logarithm of the sum of no elements, with ``exclusive``, is -inf.

    {scan}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.logcumsumexp(np.log([1.0, 2.0, 3.0]))
    array([0.        , 1.09861229, 1.79175947])
    """
    return scan(scans.LOGCUMSUMEXP, a, axis, dtype, out, reverse, exclusive, strategy)


def scan(
    scan: Scan, a: Any, axis: Any, dtype: Any, out: Any, reverse: Any, exclusive: Any, strategy: str | None
) -> Work:  # fmt: skip
    """The description of every scan."""
    op = scan.name
    check_strategy(op, strategy)
    check_array(op, "a", a, REALS if scan.record.rules.floating else CTYPES)
    task = task_of(scan, a, axis, dtype, out, reverse, exclusive)
    if out is not None:
        check_out(op, out, (a.size,) if task.axis is None else a.shape, task.dtype)
    return work_of(task, a, out, strategy)


def work_of(task: Task, a: ArraySpec, out: Any, strategy: str | None) -> Work:
    """The description of a task."""
    from ..host import scans as engine  # which costs time at import

    op, shape = task.scan.name, (a.size,) if task.axis is None else a.shape
    host = engine.call(task, a, out)
    steps = None if task.axis is None else like_strides(a.shape, a.steps)
    if a.machine is None:
        return Work(op, (out or new_array("out", shape, task.dtype, steps),), host)
    builder = Builder(a.machine)
    x = converted(builder, operand(builder, a, task), task.bound.val)
    target = builder.target(out, False, shape, task.dtype, steps)
    if target.size:
        problem = plan.scans.problem(task, x, target)
        if target is out and (unsafe(out, a) if problem.in_place else shared(out, a)):
            target = builder.target(out, True, shape, task.dtype)
            problem = plan.scans.problem(task, x, target)
        plan.scans.add(builder, problem, strategy)
    builder.deliver(target, out)
    return Work(op, (out or target,), host, builder.finish())


@operation(a=ARRAY)
def of_part(a, scan, val, axis, reverse, strategy=None):
    """The scan of a part of an array along an axis, in the dtype in which NumPy would compute that of the whole."""
    return work_of(Task(scan, scan.record.bind(a.dtype, val), axis, reverse, False, val), a, None, strategy)


def task_of(scan: Scan, a: ArraySpec, axis: Any, dtype: Any, out: Any, reverse: Any, exclusive: Any) -> Task:
    """The task of a scan of an array."""
    op, record = scan.name, scan.record
    axis = along(op, axis, a.shape)
    val, result = dtypes(op, record, a.dtype, dtype_of(op, dtype), out)
    if record.rules.floating:
        check_dtype(op, "the result", val, FLOATS)
    return Task(scan, record.bind(a.dtype, val), axis, bool(reverse), bool(exclusive), result)


def along(op: str, axis: Any, shape: Shape) -> int | None:
    """The axis of a scan; None for that of an array as a single line, in C order."""
    if axis is None:
        return None
    dims = normalize_axis(op, as_index(op, "axis", axis, axis, "None or an int"), shape)
    return dims[0] if dims else None


def operand(builder: Builder, a: ArraySpec, task: Task) -> ArraySpec:
    """The operand of a scan: an expression that is not converted is computed where it is read."""
    plain = task.bound.val.kind != "c" or a.dtype.kind == "c"
    whole = task.axis is not None or a.steps == contiguous_strides(a.shape)
    return builder.computable(a) if plain and whole else builder.readable(a)


def converted(builder: Builder, x: ArraySpec, val: np.dtype) -> ArraySpec:
    """An operand that kernels can read: real numbers that are summed as complex ones are converted before."""
    if val.kind != "c" or x.dtype.kind == "c":
        return x
    made = builder.temporary("converted", x.shape, val)
    add_map(builder, "Expand", made, [x], (ctype(val), ctype(x.dtype)))
    return made
