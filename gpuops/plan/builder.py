"""Builds plans: copies of operands that kernels cannot read, the op's own steps, and the copy to ``out``."""

from __future__ import annotations

import math

import numpy as np

from .dtypes import BITS
from .expression import Expression, Stack, across, fused
from .geometry import Shape
from .work import ArraySpec, Launch, Machine, Plan, PlanStep, new_array

TURNED = 2**16  # elements of an operand of an expression from which on it is copied, if it lies in another order
TOGETHER = 4  # results of a stacked expression that are made together, at most
RESULT = "result"  # the workspace of a result that cannot be written to ``out`` directly


class Builder:
    """Collects the steps and the workspace of a plan for a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.steps: list[PlanStep] = []
        self.workspace: dict[str, int] = {}
        self.scratch = 0
        self.strategy: str | None = None
        self.first: Plan | None = None  # added before anything else
        self.computed: list[tuple[ArraySpec, Shape]] = []  # expressions that are not in memory, and the dims reduced

    def add(self, plan: Plan) -> None:
        """Append a plan's steps. The names of its workspace must be new."""
        if not self.steps and not self.workspace:
            self.first = plan
        self.steps += plan.steps
        self.workspace |= plan.workspace
        self.scratch = max(self.scratch, plan.scratch)
        self.strategy = plan.strategy

    def finish(self) -> Plan:
        """The whole plan, with the strategy of the op's own steps."""
        first = self.first
        for x, axis in self.computed:
            self.steps = [fused(step, x, axis) if isinstance(step, Launch) else step for step in self.steps]
            first = None
        if first and len(first.steps) == len(self.steps) and len(first.workspace) == len(self.workspace):
            return first
        return Plan(self.strategy or "none", tuple(self.steps), tuple(self.workspace.items()), self.scratch)

    def target(
        self, out: ArraySpec | None, blocked: bool, shape: Shape, dtype: np.dtype, steps: Shape | None = None
    ) -> ArraySpec:
        """Where kernels write the result: a new array, ``out`` or, if they cannot write there directly, the
        workspace."""
        if out is None:
            return new_array("out", shape, dtype, steps, self.machine)
        return self.temporary(RESULT, shape, out.dtype) if blocked or not out.regular else out

    def temporary(self, name: str, shape: Shape, dtype: np.dtype, steps: Shape | None = None) -> ArraySpec:
        """Add an array to the workspace; ``steps`` as in `new_array`."""
        self.workspace[name] = math.prod(shape) * dtype.itemsize
        return new_array(name, shape, dtype, steps, self.machine)

    def computable(self, spec: ArraySpec, axis: Shape = ()) -> ArraySpec:
        """An expression that kernels can compute where they read it, along the dims ``axis`` of each row; other
        operands as `readable`."""
        if not isinstance(spec.made, Expression):
            return self.readable(spec)
        operands = tuple([self.readable(self.turned(spec, operand)) for operand in spec.made.operands])
        spec = spec._replace(made=spec.made._replace(operands=operands))
        self.computed.append((spec, axis))
        return spec

    def turned(self, x: ArraySpec, operand: ArraySpec) -> ArraySpec:
        """An operand of an expression; a copy in the expression's memory order, if it is contiguous along another dim
        than that, and large."""
        if operand.shape != x.made.shape or not across(operand, x.made.steps) or operand.size < TURNED:
            return operand
        copy = self.temporary(f"{operand.name}_turned", operand.shape, operand.dtype, x.made.steps)
        self.copy(copy, operand)
        return copy

    def evaluate(self, x: ArraySpec, to: ArraySpec) -> None:
        """Compute an expression; ``to`` is dense in the same memory order."""
        from .maps import evaluate  # slow to import

        if not to.size:
            return
        if not isinstance(x.made, Stack):
            self.add(evaluate.plan(self.computable(x), to))
        elif to.shape[0] <= TOGETHER:
            every = self.computable(x.made.together(x))
            self.add(evaluate.plan(every, of_first_dim(to, 0), to.steps[0]))
        else:
            for k, part in enumerate(x.made.parts(x)):
                self.evaluate(part, of_first_dim(to, k))

    def readable(self, spec: ArraySpec) -> ArraySpec:
        """An operand that kernels can read: itself, or a copy if it is a scalar, not regular, or not in memory."""
        if spec.made is not None:
            value = self.temporary(f"{spec.name}_value", spec.shape, spec.dtype, spec.steps)
            self.evaluate(spec, value)
            return value
        if spec.value is not None:
            return self.filled(spec).broadcast_to(spec.shape)
        if spec.regular:
            return spec
        shape = tuple([n if stride else 1 for n, stride in zip(spec.shape, spec.strides, strict=True)])
        copy = self.temporary(f"{spec.name}_copy", shape, spec.dtype)
        self.copy(copy, spec)
        return copy.broadcast_to(spec.shape)

    def filled(self, scalar: ArraySpec) -> ArraySpec:
        """Copy a scalar to the workspace."""
        from . import maps  # slow to import

        bits, array = BITS[scalar.itemsize], self.temporary(f"{scalar.name}_copy", (), scalar.dtype)
        self.steps += maps.plan(
            "Expand", (), maps.argument(array, bits, ()), (maps.argument(scalar, bits, ()),)
        ).steps
        return array

    def filling(self, dtype: np.dtype) -> ArraySpec:
        """A zero, to fill arrays with."""
        return ArraySpec("zero", (), dtype, (), self.machine, value=bytes(dtype.itemsize))

    def copy(self, to: ArraySpec, source: ArraySpec) -> None:
        """Copy between arrays of one dtype at any alignment, in pieces of as many bytes as are aligned.

        Where ``source`` has stride 0, ``to`` may have length 1.
        """
        from . import maps  # slow to import

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
        """Copy a result to ``out``, if it was written to the workspace."""
        if out is not None and target.name != out.name:
            self.copy(out, target)


def of_first_dim(x: ArraySpec, k: int) -> ArraySpec:
    """The view ``x[k]``."""
    return x.view(x.shape[1:], x.steps[1:], offset=k * x.strides[0])


def unsafe(out: ArraySpec, operand: ArraySpec) -> bool:
    """Whether writing to ``out`` may overwrite elements of an operand not yet read, even by a kernel that reads each
    element before it writes in its place: they overlap, but not element for element."""
    return operand.name in out.overlaps and not (
        operand.name in out.aliases
        and (out.shape, out.strides, out.itemsize) == (operand.shape, operand.strides, operand.itemsize)
    )


def shared(out: ArraySpec, *operands: ArraySpec | None) -> bool:
    """Whether ``out`` overlaps any of the operands."""
    return any(operand is not None and operand.name in out.overlaps for operand in operands)
