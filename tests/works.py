"""Helpers that build specs and problems, and execute a test's own plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuops.call.arrays import find
from gpuops.definition.records import (
    AVERAGE,
    DOT,
    LOGSUMEXP,
    MEASURES,
    NORMS,
    REDUCTIONS,
    ROWS,
    SEARCHES,
    SIGNED_LOGSUMEXP,
    WEIGHTED_LOGSUMEXP,
    WITH_INDEX,
)
from gpuops.device.context import ExecutionContext
from gpuops.device.execute import prepare
from gpuops.ops.table import COMPARISONS
from gpuops.plan import reductions, rows
from gpuops.plan.geometry import Shape
from gpuops.plan.reductions import OpStruct
from gpuops.plan.row_ops import MAX_EXP_SUM
from gpuops.plan.work import ArraySpec, HostCall, Plan, Work

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

#: Every reduction that kernels compute, by its name in ``kernels/common/ops.cuh``.
STRUCTS: dict[str, OpStruct] = {
    each.name: each
    for each in (
        DOT.struct, MAX_EXP_SUM, *(value for value in vars(rows).values() if isinstance(value, OpStruct)),
        AVERAGE.struct, LOGSUMEXP.struct, WEIGHTED_LOGSUMEXP.struct, SIGNED_LOGSUMEXP.struct, *COMPARISONS.values(),
        *(
            each for table in (REDUCTIONS, SEARCHES, WITH_INDEX, MEASURES, NORMS, ROWS) for row in table.values()
            for each in (row.struct, row.masked and row.masked.struct, row.counted, *row.exact) if each
        ),
    )
}  # fmt: skip


def execute_plan(plan: Plan, **arrays: Any) -> None:
    """Execute a plan on the named arrays."""
    context = context_of(next(iter(arrays.values())))
    work = Work("test", (), HostCall(len, {}), plan)
    addresses = [context.spec(name, array, context.device.machine)[1] for name, array in arrays.items()]
    prepare(work, context, [*arrays], None, None, False)((), addresses)


def context_of(array: Any) -> ExecutionContext:
    """The execution context of an array of a device."""
    context = find("test", "x", array)
    assert context is not None
    return context


def spec(name: str, dtype: str, shape: Shape, steps: Shape, start: int = 0) -> ArraySpec:
    """The spec of an array with strides in elements, whose address is ``start`` modulo 16."""
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return ArraySpec(name, shape, kind, tuple(step * kind.itemsize for step in steps), start=start)


def reduction_problem(
    struct: str, x: str, val: str, out: str, shape: Shape, axis: Shape, strides: tuple[Shape, Shape, Shape],
    pointers: Shape = (0, 0, 0), other: str | None = None, **more: Any,
) -> reductions.Problem:  # fmt: skip
    """A reduction, given strides of x and the second operand over the shape, and of out over the dims that stay."""
    kept = tuple(n for d, n in enumerate(shape) if d not in axis)
    more = dict.fromkeys((*STRUCTS[struct].options, "ddof"), 1.0) | more
    return reductions.problem(
        STRUCTS[struct], spec("x", x, shape, strides[0], pointers[0]),
        None if other is None else spec("other", other, shape, strides[1], pointers[1]),
        spec("out", out, kept, strides[2], pointers[2]), axis, val, **more,
    )  # fmt: skip


def softmax_problem(
    op: str, x: str, val: str, out: str, shape: Shape, axis: Shape, strides: tuple[Shape, Shape, Shape],
    pointers: Shape = (0, 0, 0), masked: bool = False, scale: float = 1.0,
) -> rows.Problem:  # fmt: skip
    """A row op, given strides of x, the mask and out over the shape."""
    record = ROWS[op]
    assert record.row is not None
    struct = record.masked.struct if masked and record.masked else record.struct
    return rows.problem(
        record.row, struct, spec("x", x, shape, strides[0], pointers[0]),
        spec("other", "bool", shape, strides[1], pointers[1]) if masked else None,
        spec("out", out, shape, strides[2], pointers[2]), axis, val, scale,
    )  # fmt: skip
