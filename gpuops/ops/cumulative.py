"""The array API standard's cumulative functions: scans whose results may follow that of no elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import plan
from ..definition.scans import Scan
from ..errors import error
from ..plan.builder import Builder
from ..plan.dtypes import dtype_name
from ..plan.geometry import like_strides
from ..plan.work import ArraySpec, HostCall, Work, new_array
from .arguments import check_array
from .broadcast import add_map
from .scans import converted, task_of


def cumulative(scan: Scan, x: ArraySpec, axis: Any, dtype: Any, include_initial: Any) -> Work:
    """The description of a scan along an axis, which must be given unless there is only one."""
    from ..host import cumulative as engine  # which costs time at import

    op = scan.name
    if check_array(op, "x", x).ndim > 1 and axis is None:
        raise error(ValueError, op, f"axis is None, and x has {x.ndim} dims: pass the axis to go along")
    task = task_of(scan, x, axis, dtype, None, False, False)
    more, along = bool(include_initial), task.axis or 0
    shape, steps = x.shape or (1,), x.steps or (1,)
    longer = tuple([n + more if d == along else n for d, n in enumerate(shape)])
    out = new_array("out", longer, task.dtype, like_strides(longer, steps), x.machine)
    host = HostCall(engine.scan, {"task": task, "initial": more})
    if x.machine is None:
        return Work(op, (out,), host)
    builder = Builder(x.machine)
    if more:
        first = tuple([1 if d == along else n for d, n in enumerate(shape)])
        fill(builder, out.view(first, out.steps), task.nothing)
    target = out.view(shape, out.steps, offset=more * out.strides[along])
    if target.size:
        problem = plan.scans.problem(task, converted(builder, builder.readable(x), task.bound.val), target)
        plan.scans.add(builder, problem, None)
    return Work(op, (out,), host, builder.finish())


def fill(builder: Builder, target: ArraySpec, number: np.ndarray) -> None:
    """Set all elements of an array to a number of its dtype."""
    name = dtype_name(target.dtype)
    filling = ArraySpec("initial", (), target.dtype, (), builder.machine, value=number.tobytes())
    add_map(builder, "Expand", target, [filling], plan.maps.element_types(name, (name,)))
