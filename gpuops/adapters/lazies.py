"""Calls with expressions: the same calls with the expressions' arrays."""

from __future__ import annotations

from typing import Any

from ..call.operation import Call
from ..errors import error
from ..ops.broadcast import broadcast_to, where
from ..ops.expressions import CONSTANTS, evaluate, taking
from ..ops.lazy import Lazy
from ..ops.lazy import where as choice
from ..ops.matmul import dot, matmul

#: Functions that make an expression, and those that take arrays only.
NODES = {where: choice}
ARRAYS_ONLY = (matmul, dot, broadcast_to)


def with_arrays(call: Call) -> Any:
    """Make a call with expressions. The first is computed where its elements are read, others before the call."""
    public, given = call.public, call.given
    expressions = {name: value for name, value in call.arrays.items() if isinstance(value, Lazy)}
    if public in ARRAYS_ONLY or "out" in expressions:
        name = "out" if "out" in expressions else next(iter(expressions))
        rule = "takes an array" if name == "out" else "is an expression; pass gpuops.evaluate of it"
        raise error(TypeError, call.name, f"{name} {rule}, got {expressions[name]!r}")
    if public in NODES and given.get("x") is not None:
        node = NODES[public](given["condition"], given["x"], given.get("y"))
        return node if given.get("out") is None else evaluate(node, out=given["out"])
    if len(expressions) > 1 or public is where:
        later = [*expressions][1:] if public is not where else [*expressions]
        values = {name: evaluate(expressions[name]) for name in later}
        return call.on(call.arrays | values).repeat()
    ((place, x),) = expressions.items()
    program, arrays, constants = x.program()
    operands = {f"x{k}": array for k, array in enumerate(arrays)}
    bits = tuple([int.from_bytes(each.tobytes(), "little") for each in constants])
    if not arrays or any(hasattr(array, "__dask_graph__") for array in arrays):
        value = in_memory(x, operands, bits)
        return value if public is evaluate and given.get("out") is None else call.on(call.arrays | {place: value}).repeat()
    rest = named(call, place)
    return taking(public, place, program)(**operands, **{CONSTANTS: bits}, **rest)


def in_memory(x: Lazy, operands: dict[str, Any], bits: tuple[int, ...]) -> Any:
    """The value of an expression of numbers, or of Dask arrays."""
    from ..host import programs

    program, *_ = x.program()
    if not operands:
        return programs.evaluate(program, [], programs.numbers(program, bits), x.shape)
    from .dask import evaluated

    return evaluated(program, operands, bits)


def named(call: Call, place: str) -> dict[str, Any]:
    """The arguments by name, without the expression."""
    return {name: value for name, value in call.given.items() if name != place}
