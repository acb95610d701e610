"""Finishes a reduction on the host, for comparison: states are copied from the device, results back to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..definition.expressions import exp, where
from ..definition.in_cuda import dtype_of
from ..definition.records import MAX, MEAN, STRUCTS
from ..definition.reduction import Reduction
from ..definition.structs import Field
from ..host.forms import combined, merged_parts
from ..plan.dtypes import CTYPES
from ..plan.reductions import Problem
from ..plan.rows import SCALED_MAX, SHIFTED_EXP_SUM
from ..plan.work import Step

#: A sum of exponentials less one 1: the terms below 1, and the number of terms that are 1.
EXPONENTIALS = Reduction(
    "shifted_exp_sum", {"smaller": Field("A", 0, "add"), "ones": Field("A", 0, "add")},
    lambda x, shift: {
        "smaller": where(x == shift.as_("A"), 0, exp(x - shift.as_("A"))), "ones": (x == shift.as_("A")).as_("A"),
    },
    lambda s: s.smaller + (s.ones - 1), struct=SHIFTED_EXP_SUM,
)  # fmt: skip
#: Records by the name of the struct that makes their states, also of structs that are only a part of an op.
RECORDS = STRUCTS | {
    each.struct.name: each
    for each in (
        MEAN.but("integer_mean", results=("D",), struct=MEAN.exact), MAX.but("scaled_max", struct=SCALED_MAX),
        EXPONENTIALS,
    )
}  # fmt: skip


def finisher(device: Any, step: Any, places: dict[str, int]) -> Step:
    """A step that synchronises, merges states (splits, outputs) on the host, and copies the results back."""
    p, shape = step.problem, (step.splits, step.problem.outputs)
    partials, finished = places["partials"], places["finished"]

    def go(addresses: list[int]) -> None:
        state = np.frombuffer(device.read(addresses[partials], step.splits * p.outputs * p.state), p.partial)
        with np.errstate(all="ignore"):
            device.write(addresses[finished], results(p, state.reshape(shape)).tobytes())

    return go


def results(p: Problem, state: np.ndarray) -> np.ndarray:
    """Merge and finish states as their record defines it."""
    val = dtype_of(CTYPES[p.val])
    bound = RECORDS[p.op.name].bind(val, val)
    fields = [state[name].astype(bound.state[name], copy=False) for name in bound.state.names or ()]
    whole = merged_parts(bound, fields)
    if p.initial is not None:
        whole = combined(bound, bound.map(x=np.frombuffer(p.initial, val)[0].astype(bound.kinds["A"])), whole)
    given = dict(zip(bound.leaves_of["s"], whole, strict=True)) | dict(zip(p.op.options, p.numbers, strict=True))
    (found,) = bound.finish(**given)
    return found.astype(dtype_of(CTYPES[p.out or p.val]))
