"""Plans put together: copies of operands that kernels cannot read, the op's own steps, and the delivery to ``out``."""

from __future__ import annotations

import math

import numpy as np

from .dtypes import BITS
from .geometry import Shape
from .work import ArraySpec, Machine, Plan, PlanStep, new_array

RESULT = "result"  # the workspace of a result that cannot be written to ``out`` right away


class Builder:
    """A plan in the making, for a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.steps: list[PlanStep] = []
        self.workspace: dict[str, int] = {}
        self.scratch = 0
        self.strategy: str | None = None
        self.first: Plan | None = None  # added before anything else

    def add(self, plan: Plan) -> None:
        """Append the steps of a plan, which name their workspace apart from what there is."""
        if not self.steps and not self.workspace:
            self.first = plan
        self.steps += plan.steps
        self.workspace |= plan.workspace
        self.scratch = max(self.scratch, plan.scratch)
        self.strategy = plan.strategy

    def finish(self) -> Plan:
        """The whole plan, named after the strategy of the op's own part."""
        first = self.first
        if first and len(first.steps) == len(self.steps) and len(first.workspace) == len(self.workspace):
            return first
        return Plan(self.strategy or "none", tuple(self.steps), tuple(self.workspace.items()), self.scratch)

    def target(
        self, out: ArraySpec | None, blocked: bool, shape: Shape, dtype: np.dtype, steps: Shape | None = None
    ) -> ArraySpec:
        """Where the result is made: in a new array, in ``out``, or, if kernels cannot write there right away, in the
        workspace."""
        if out is None:
            return new_array("out", shape, dtype, steps, self.machine)
        return self.temporary(RESULT, shape, out.dtype) if blocked or not out.regular else out

    def temporary(self, name: str, shape: Shape, dtype: np.dtype) -> ArraySpec:
        """An array in the workspace."""
        self.workspace[name] = math.prod(shape) * dtype.itemsize
        return new_array(name, shape, dtype, machine=self.machine)

    def readable(self, spec: ArraySpec) -> ArraySpec:
        """An operand as kernels read them: itself, or a copy if it is a scalar or not regular."""
        if spec.value is not None:
            return self.filled(spec).broadcast_to(spec.shape)
        if spec.regular:
            return spec
        shape = tuple([n if stride else 1 for n, stride in zip(spec.shape, spec.strides, strict=True)])
        copy = self.temporary(f"{spec.name}_copy", shape, spec.dtype)
        self.copy(copy, spec)
        return copy.broadcast_to(spec.shape)

    def filled(self, scalar: ArraySpec) -> ArraySpec:
        """A scalar in the workspace."""
        from . import maps  # which costs time at import

        bits, array = BITS[scalar.itemsize], self.temporary(f"{scalar.name}_copy", (), scalar.dtype)
        self.steps += maps.plan(
            "Expand", (), maps.argument(array, bits, ()), (maps.argument(scalar, bits, ()),)
        ).steps
        return array

    def copy(self, to: ArraySpec, source: ArraySpec) -> None:
        """Copy elements between arrays of one dtype that may lie anywhere, in pieces of as many bytes as are aligned.

        ``source`` may repeat along dims in which ``to`` has length 1.
        """
        from . import maps  # which costs time at import

        if not to.size:
            return
        at = to.itemsize | to.start | source.start
        dims = [dim for dim in zip(to.shape, to.strides, source.strides, strict=True) if dim[0] > 1]
        for _, *strides in dims:
            for stride in strides:
                at |= stride
        size = at & -at
        shape = (*(n for n, _, _ in dims), to.itemsize // size)

        def pieces(spec: ArraySpec, k: int) -> maps.Arg:
            steps = (*(dim[k] // size for dim in dims), 1)
            return maps.Arg(spec.name, BITS[size], size, steps, (spec.start - spec.offset) % 16, offset=spec.offset)

        self.steps += maps.plan("Expand", shape, pieces(to, 1), (pieces(source, 2),)).steps

    def deliver(self, target: ArraySpec, out: ArraySpec | None) -> None:
        """Copy a result from the workspace to ``out``, if that is where it was made."""
        if out is not None and target.name != out.name:
            self.copy(out, target)


def unsafe(out: ArraySpec, operand: ArraySpec) -> bool:
    """Whether writing to ``out`` may overwrite elements of an operand not yet read, even by a kernel that reads each
    element before it writes in its place: they share memory, but are not the same elements in the same places."""
    return operand.name in out.overlaps and not (
        operand.name in out.aliases
        and (out.shape, out.strides, out.itemsize) == (operand.shape, operand.strides, operand.itemsize)
    )


def shared(out: ArraySpec, *operands: ArraySpec | None) -> bool:
    """Whether ``out`` shares memory with any of the operands."""
    return any(operand is not None and operand.name in out.overlaps for operand in operands)
