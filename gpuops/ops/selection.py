"""Selection with NumPy's semantics: the indices of true elements, and what an array has at them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import plan
from ..call.launch_cache import operation
from ..call.operation import ARRAY, OUT
from ..definition.selection import Compress
from ..errors import error
from ..host import numpy_engine
from ..plan.builder import Builder, shared
from ..plan.geometry import Shape
from ..plan.work import COUNTS, ArraySpec, HostCall, Machine, Then, Work, new_array
from .arguments import as_index, check_array, check_out, normalize_axis
from .docstrings import documented

if TYPE_CHECKING:
    from ..plan.selection import Bits

INDEX = np.dtype(np.int64)


@operation(a=ARRAY)
@documented
def nonzero(a):
    """The indices of the elements that are not zero, as ``numpy.nonzero``.

    Parameters
    ----------
    {a}
        NaN is not zero.

    Returns
    -------
    tuple of ndarray
        For each dim of ``a``, the indices along it, as int64; the elements come in C order.
        {like_input}

    Raises
    ------
    TypeError
        If ``a`` is not an array, or its dtype is not supported.
    ValueError
        If ``a`` has no dims.

    Notes
    -----
    {counting}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.nonzero(np.array([[3, 0], [0, 4]]))
    (array([0, 1]), array([0, 1]))
    """
    return indices("nonzero", "a", a)


@operation(condition=ARRAY, a=ARRAY, out=OUT)
@documented
def compress(condition, a, axis=None, out=None):
    """The slices of an array along an axis where a condition is true, as ``numpy.compress``.

    Parameters
    ----------
    condition : array_like
        {array}
        with one dim, of any numeric dtype. Non-zero is true, and so is NaN. If it is shorter than the axis, nothing
        beyond its end is selected.
    {a}
    axis : None or int, optional
        Axis to select along; None selects elements of the whole array, in C order.
    {out}

    Returns
    -------
    ndarray
        A new array in C order, or ``out``.
        {like_input}

    Raises
    ------
    {AxisError}
    IndexError
        If ``condition`` is true beyond the end of the axis.
    {TypeError}
    {ValueError} ``condition`` does not have one dim

    Notes
    -----
    {counting}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> a = np.array([[1, 2], [3, 4], [5, 6]])
    >>> gpuops.compress([True, False, True], a, axis=0)
    array([[1, 2],
           [5, 6]])
    >>> gpuops.compress([0, 1, 1], a)
    array([2, 3])
    """
    op = "compress"
    check_array(op, "condition", condition)
    check_array(op, "a", a)
    if condition.ndim != 1:
        raise error(ValueError, op, f"condition must have one dim, its shape is {condition.shape}")
    dims = () if axis is None else normalize_axis(op, as_index(op, "axis", axis, axis, "None or an int"), a.shape)
    choice = Compress(op, a.shape, dims[0] if dims else None)
    if out is not None:
        check_out(op, out, out.shape, a.dtype)  # its shape is checked when that of the result is known
    host = HostCall(numpy_engine.compress, {"choice": choice})
    if a.machine is None:
        return Work(op, (), host)
    builder = Builder(a.machine)
    x, length = builder.readable(condition), choice.length
    parts = {"inside": x._replace(shape=(min(length, x.size),))}
    if x.size > length:
        parts["beyond"] = x.view((x.size - length,), x.steps, offset=length * x.strides[0])
    return counting(builder, op, host, parts, partial(Compressing, choice, host, a, out, a.machine))


def indices(op: str, name: str, x: Any) -> Work:
    """The description of `nonzero`, and of `where` with a condition alone."""
    check_array(op, name, x)
    if x.ndim == 0:
        raise error(ValueError, op, f"{name} is 0-d, which has no indices; pass {name}.reshape(1)")
    host = HostCall(numpy_engine.nonzero, {})
    if x.machine is None:
        return Work(op, (), host)
    builder = Builder(x.machine)
    parts = {"inside": builder.readable(x)}
    return counting(builder, op, host, parts, partial(Finding, op, host, x.shape, x.machine))


# ---------------------------------------------------------------------------------------- once the number is known


class Finding(NamedTuple):
    """The rest of a call that finds the indices of true elements, given how many there are."""

    op: str
    host: HostCall
    shape: Shape  # of the condition
    machine: Machine
    bits: dict[str, Bits]  # of the parts of the condition that have any

    def __call__(self, counts: tuple[int, ...]) -> Work:
        (count,) = counts or (0,)
        builder = Builder(self.machine)
        found = [new_array(f"index{d}", (count,), INDEX, machine=self.machine) for d in range(len(self.shape))]
        if count:
            plan.selection.add_indices(builder, self.op, self.bits["inside"], self.shape, tuple(found))
        return Work(self.op, tuple(found), self.host, builder.finish(), form=tuple)


class Compressing(NamedTuple):
    """The rest of a `compress`, given how many elements of the condition are true, also beyond the end of the axis."""

    choice: Compress
    host: HostCall
    a: ArraySpec
    out: ArraySpec | None
    machine: Machine
    bits: dict[str, Bits]  # of the parts of the condition that have any

    def __call__(self, counts: tuple[int, ...]) -> Work:
        op, found = self.choice.op, dict(zip(self.bits, counts, strict=True))
        count, out = found.get("inside", 0), self.out
        shape = self.choice.result(count, found.get("beyond", 0), None if out is None else out.shape)
        builder = Builder(self.machine)
        a = builder.readable(self.a)
        target = builder.target(out, out is not None and shared(out, a), shape, self.a.dtype)
        if target.size and len(shape) == 1:
            plan.selection.add_elements(builder, op, self.bits["inside"], a, target)
        elif target.size:
            index = builder.temporary("index", (count,), INDEX)
            plan.selection.add_indices(builder, op, self.bits["inside"], (self.choice.length,), (index,))
            plan.selection.add_rows(builder, op, index, a, self.choice.axis or 0, target)
        builder.deliver(target, out)
        return Work(op, (out or target,), self.host, builder.finish())


def counting(
    builder: Builder, op: str, host: HostCall, parts: dict[str, ArraySpec], rest: Callable[[dict[str, Bits]], Then]
) -> Work:  # fmt: skip
    """A call that counts the true elements of parts of a condition first; of empty parts, nothing is read."""
    parts = {name: part for name, part in parts.items() if part.size}
    if not parts:
        return rest({})(())
    builder.temporary(COUNTS, (len(parts),), INDEX)
    bits = {name: plan.selection.add_count(builder, part, k) for k, (name, part) in enumerate(parts.items())}
    return Work(op, (), host, builder.finish(), then=rest(bits))
