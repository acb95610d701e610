"""Expressions as operands: ``evaluate``, and calls of other ops that take one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..call.launch_cache import cached, operation
from ..call.operation import ARRAY, OUT, Operation, operation_of
from ..definition.program import ASTYPE, STACK, Program, Step
from ..plan.builder import Builder, unsafe
from ..plan.expression import Expression, Stack
from ..plan.geometry import Shape, contiguous_strides, like_strides
from ..plan.work import ArraySpec, HostCall, Plan, Work, new_array
from .arguments import broadcast_shapes, check_array, check_out, check_rank
from .broadcast import layout
from .docstrings import documented
from .lazy_structures import ARRAYS, of_bits

NAMES = tuple([f"x{k}" for k in range(ARRAYS)])  # of an expression's arrays
CONSTANTS = "constants"  # the argument of a call that has the bits of an expression's constants, as ints


@operation(x=ARRAY, out=OUT)
@documented
def evaluate(x, *, out=None):
    """Compute an expression: the elements of a lazy array in memory, in one pass over its operands.

    Parameters
    ----------
    x : lazy or array_like
        An expression of `gpuops.lazy`; an array is copied.
    {out}

    Returns
    -------
    ndarray
        The dtype and the shape are those of ``x``. The memory order is that of most of the operand bytes that
        have its shape, or that of ``out``.
        {like_input}

    Raises
    ------
    {TypeError}
    {ValueError}

    Notes
    -----
    docs/kernels/expressions.md explains the kernel.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> x = gpuops.lazy(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> gpuops.evaluate((x - 1) ** 2)
    array([[0., 1.],
           [4., 9.]])
    """
    check_array("evaluate", "x", x)
    return evaluation(Program((x.dtype,), (), ()), {"x": x}, (), out)


def evaluation(
    program: Program, operands: dict[str, ArraySpec], constants: tuple[int, ...], out: ArraySpec | None
) -> Work:
    """The description of computing an expression."""
    op = "evaluate"
    shape = shape_of(op, program, [*operands.values()])
    if out is not None:
        check_out(op, out, shape, program.dtype)
    from ..host import programs  # which costs time at import

    options = {"program": program, "numbers": numbers(program, constants), "names": (*operands,), "shape": shape}
    host = HostCall(programs.evaluated, options)
    machine = next(iter(operands.values())).machine
    if machine is None:
        return Work(op, (out or new_array("out", shape, program.dtype),), host)
    check_rank(op, "the result", len(shape))
    builder, blocked = Builder(machine), False
    steps = None if program.several else layout(shape, [*operands.values()])
    if out is not None:
        steps = out.steps
        lies_like = contiguous_strides(shape) if program.several else like_strides(shape, steps)
        dense = all([own == step or n == 1 for n, own, step in zip(shape, steps, lies_like, strict=True)])
        blocked = not dense or any(unsafe(out, each) for each in operands.values())
        steps = contiguous_strides(shape) if blocked else steps
        program = cast(program, out.dtype)
    target = builder.target(out, blocked, shape, program.dtype, steps)
    builder.evaluate(virtual("x", program, [*operands.values()], constants, target.steps), target)
    builder.deliver(target, out)
    return Work(op, (out or target,), host, builder.finish())


def cast(program: Program, dtype: np.dtype) -> Program:
    """A program whose result, or each that is stacked, is cast to a dtype."""
    if program.dtype == dtype:
        return program
    steps = program.steps[:-1] if program.several else program.steps
    end = program.first + len(steps)
    results = program.steps[-1].args if program.several else (end - 1 if steps else 0,)
    casts = [Step(ASTYPE, (program.dtype, dtype), (place,)) for place in results]
    places = tuple(range(end, end + len(casts)))
    stack = [Step(STACK, (dtype,) * (len(casts) + 1), places)] * bool(program.several)
    return program._replace(steps=(*steps, *casts, *stack))


def virtual(
    name: str, program: Program, operands: list[ArraySpec], constants: tuple[int, ...], steps: Shape | None = None
) -> ArraySpec:
    """The spec of an expression: a dense array that is not in memory; ``steps``: its strides in elements, if given."""
    whole = shape_of(name, program, operands)
    shape, lead = (whole[1:], 1) if program.several else (whole, 0)
    steps = steps[lead:] if steps else layout(shape, operands) or contiguous_strides(shape)
    data = tuple([number.tobytes() for number in numbers(program, constants)])
    made = Expression(program, tuple(operands), data, shape, steps)
    spec = new_array(name, whole, program.dtype, (made.size,) * lead + steps, operands[0].machine)
    return spec._replace(made=Stack(made) if lead else made)


def shape_of(op: str, program: Program, operands: list[ArraySpec]) -> Shape:
    """The shape of an expression of arrays."""
    shape = broadcast_shapes(op, *[each.shape for each in operands])
    return (program.several, *shape) if program.several else shape


def numbers(program: Program, constants: tuple[int, ...]) -> tuple[Any, ...]:
    """The constants of a program, given their bits."""
    pairs = zip(constants, program.constants, strict=True)
    return tuple([of_bits(bits, dtype) for bits, dtype in pairs])


def described(op: Operation, place: str, x: ArraySpec, given: dict[str, Any]) -> Work:
    """The description of a call with an expression in the place of an operand."""
    every = given | {place: x}
    first = [every.pop(name) for name in op.by_position_only if name in every]
    return op.describe(*first, **every)


class InMemory(NamedTuple):
    """Plans a call with an expression in memory: its kernel compiles fast, and those of an array may be there."""

    op: Operation
    place: str
    x: ArraySpec
    given: dict[str, Any]

    def __call__(self) -> Plan:
        assert self.x.machine is not None
        builder = Builder(self.x.machine)
        made = described(self.op, self.place, builder.readable(self.x), self.given).plan
        assert made is not None
        builder.add(made)
        return builder.finish()


@lru_cache(maxsize=1024)
def taking(public: Callable[..., Any], place: str, program: Program) -> Callable[..., Any]:
    """A public function that takes, in the place of one operand, a program's arrays (``x0`` and so on) and
    ``constants``."""
    op, names = operation_of(public), NAMES[: len(program.arrays)]

    def describe(**given: Any) -> Work:
        operands = {name: given.pop(name) for name in names}
        constants, out = given.pop(CONSTANTS), given.get("out")
        for name, operand in operands.items():
            check_array(op.name, name, operand)
        if public is evaluate:
            return evaluation(program, operands, constants, out)
        if out is not None and not {*names}.isdisjoint(out.overlaps):
            given["out"] = out._replace(overlaps=(*out.overlaps, place))
        x = virtual(place, program, [*operands.values()], constants)
        from ..host import programs  # which costs time at import

        work = described(op, place, x, given)
        recorded = any([type(n) is not int for n in (*x.shape, *x.strides)])  # once for many sizes
        sooner = None if work.plan is None or recorded else InMemory(op, place, x, given)
        options = {
            "call": work.host, "place": place, "program": program, "numbers": numbers(program, constants),
            "names": names, "shape": x.shape, "strides": x.strides,
        }  # fmt: skip
        return work._replace(host=HostCall(programs.taken, options), sooner=sooner)

    describe.__name__ = op.name
    roles = {name: takes for name, takes in op.operands.items() if name != place} | dict.fromkeys(names, ARRAY)
    others = tuple([name for name in op.parameters if name != place])
    return cached(Operation(describe, roles, parameters=(*names, CONSTANTS, *others)))
