"""Comparisons of whole arrays with NumPy's semantics: array_equal, allclose."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..call.arrays import is_scalar
from ..call.launch_cache import operation
from ..call.operation import ARRAY, WEAK, WEAK_TYPES
from ..definition.records import ANY
from ..errors import error
from ..host import numpy_engine
from ..plan.dtypes import FLOATS, dtype_name
from ..plan.work import HostCall, Work, new_array
from .arguments import broadcast_shapes, check_array, fitted, result_type, scalar
from .docstrings import documented
from .reduction import in_one_pass
from .table import COMPARISONS


@operation(a1=ARRAY, a2=ARRAY)
@documented
def array_equal(a1, a2, equal_nan=False):
    """Whether two arrays have the same shape and elements, as ``numpy.array_equal``; in one pass over memory on a GPU.

    Parameters
    ----------
    a1, a2 : array_like
        {arrays}
    equal_nan : bool, optional
        Whether NaN equals NaN. A complex number is NaN if either of its parts is.

    Returns
    -------
    bool or array
        {comparison}

    Raises
    ------
    {TypeError}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.array_equal(np.array([1, 2]), np.array([1.0, 2.0]))
    True
    """
    op = "array_equal"
    check_array(op, "a1", a1), check_array(op, "a2", a2)
    val = result_type(op, a1=a1, a2=a2)
    options = {"function": np.array_equal, "names": ("a1", "a2"), "equal_nan": equal_nan}
    result = new_array("out", (), np.dtype(bool), machine=a1.machine)
    host = HostCall(numpy_engine.compare, options)
    if a1.machine is None:
        return Work(op, (result,), host)
    if a1.shape == a2.shape:
        plan = in_one_pass(COMPARISONS[op, bool(equal_nan)], a1, a2, (*range(a1.ndim),), val, (result,))
    else:  # any() of no elements is False
        nothing = new_array("a1", (0,), a1.dtype, machine=a1.machine)
        plan = in_one_pass(ANY.struct, nothing, None, (0,), a1.dtype, (result,))
    return Work(op, (result,), host, plan)


@operation(a=WEAK, b=WEAK)
@documented
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements of two arrays are close, as ``numpy.allclose``; in one pass over memory on a GPU.

    Elements are close if ``abs(a - b) <= atol + rtol * abs(b)``; infinities, if they are equal.

    Parameters
    ----------
    a, b : array_like
        {arrays}
        The shapes broadcast; a Python scalar takes the dtype of the other operand.
    rtol, atol : float, optional
        The relative and the absolute tolerance.
    equal_nan : bool, optional
        Whether NaN is close to NaN.

    Returns
    -------
    bool or array
        {comparison}

    Raises
    ------
    {TypeError} a tolerance is not a real number
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.allclose(np.array([1e10, 1e-7]), np.array([1.00001e10, 1e-8]))
    False
    """
    op = "allclose"
    common = result_type(op, a=a, b=b)
    val = common if common.kind == "c" or dtype_name(common) in FLOATS else np.dtype(np.float64)
    tolerances = [as_tolerance(op, name, value) for name, value in (("rtol", rtol), ("atol", atol))]
    numbers = {name: value for name, value in (("a", a), ("b", b)) if type(value) in WEAK_TYPES}
    machine = next((each.machine for each in (a, b) if type(each) not in WEAK_TYPES), None)
    arrays = [
        scalar(name, fitted(op, name, value, val), machine) if name in numbers else check_array(op, name, value)
        for name, value in (("a", a), ("b", b))
    ]  # fmt: skip
    shape = broadcast_shapes(op, *(array.shape for array in arrays))
    options = {"function": np.allclose, "names": ("a", "b"), "rtol": tolerances[0], "atol": tolerances[1], **numbers}
    host = HostCall(numpy_engine.compare, options | {"equal_nan": equal_nan})
    result = new_array("out", (), np.dtype(bool), machine=machine)
    if machine is None:
        return Work(op, (result,), host)
    x, y = (array if array.value is not None else array.broadcast_to(shape) for array in arrays)
    struct, axis = COMPARISONS[op, bool(equal_nan)], (*range(len(shape)),)
    plan = in_one_pass(struct, x, y, axis, val, (result,), rtol=tolerances[0], atol=tolerances[1])
    return Work(op, (result,), host, plan)


def as_tolerance(op: str, name: str, value: Any) -> float:
    """A tolerance, which is one real number."""
    try:
        if is_scalar(value):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise error(TypeError, op, f"{name} must be a real number, got {value!r}")
