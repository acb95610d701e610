"""Descriptions of calls, and plans that a test made itself."""

from __future__ import annotations

from typing import Any

from gpuops.ops.table import DOT, REDUCTIONS
from gpuops.plan import rows
from gpuops.plan.reductions import Reduction
from gpuops.plan.work import HostCall, Plan, Work
from gpuops.run.context import ExecutionContext, find
from gpuops.run.execute import prepare

#: Every reduction that kernels compute, by its name in ``kernels/ops.cuh``.
STRUCTS: dict[str, Reduction] = {
    each.struct: each
    for each in (
        DOT, *(value for value in vars(rows).values() if isinstance(value, Reduction)),
        *(each for row in REDUCTIONS.values() for each in (row.reduction, row.masked, row.exact) if each),
    )
}  # fmt: skip


def carry_out(plan: Plan, **arrays: Any) -> None:
    """Execute a plan on the named arrays."""
    context = context_of(next(iter(arrays.values())))
    work = Work("test", (), HostCall(len, {}), plan)
    addresses = [context.spec(name, array)[1] for name, array in arrays.items()]
    prepare(work, context, [*arrays], None, None, False)((), addresses)


def context_of(array: Any) -> ExecutionContext:
    """The execution context of an array of a device."""
    context = find("test", "x", array)
    assert context is not None
    return context
