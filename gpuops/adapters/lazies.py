"""Calls with expressions: the same calls with the expressions' arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..call.libraries import STANDING
from ..call.operation import ARRAY, MASK, WEAK, Operation, bind, names_of
from ..errors import error
from ..ops.broadcast import broadcast_to, where
from ..ops.expressions import CONSTANTS, NAMES, evaluate, numbers, taking
from ..ops.lazy import Lazy
from ..ops.lazy import where as choice
from ..ops.matmul import dot, matmul

#: Functions that take arrays only.
ARRAYS_ONLY = (matmul, dot, broadcast_to)


def with_expressions(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Make a call with expressions. The first is computed as its elements are read, others before the call."""
    names, values = names_of(operation, len(args), *options), (*args, *options.values())
    if len(names) < len(values):
        bind(public, operation, args, options)  # raises
    given = dict(zip(names, values, strict=True))
    place = place_of(public, operation, names, *map(type, values))
    if not place:
        return evaluated_first(public, operation, given)
    x: Lazy = given.pop(place)
    program, bits = x.structure.program, tuple([number.bits for number in x.numbers])
    operands = dict(zip(NAMES, x.arrays, strict=False))
    if operands and not getattr(x.context, "mixes", False):
        return taking(public, place, program)(**operands, **{CONSTANTS: bits}, **given)
    value = graph(program, operands, bits) if operands else number(program, bits, x.shape)
    if public is evaluate and given.get("out") is None:
        return value
    return public(value, **given) if place in operation.by_position_only else public(**{place: value}, **given)


@lru_cache(maxsize=1024)
def place_of(public: Callable[..., Any], operation: Operation, names: tuple[str, ...], *types: Any) -> str:
    """The name of the argument that is an expression, if there is one and the call computes it itself; else ""."""
    places = [name for name, cls in zip(names, types, strict=True) if cls is Lazy]
    alone = len(places) == 1 and not any([hasattr(cls, "__dask_graph__") for cls in types])
    return places[0] if alone and takes(public, operation, places[0]) else ""


def takes(public: Callable[..., Any], operation: Operation, place: str) -> bool:
    """Whether a function computes an expression in place of an operand."""
    return public not in (*ARRAYS_ONLY, where) and operation.operands.get(place) in (ARRAY, WEAK)


def evaluated_first(public: Callable[..., Any], operation: Operation, given: dict[str, Any]) -> Any:
    """Make a call with several expressions, of which the first may stay one, with one in another place, or with one
    beside a Dask array."""
    places = [name for name, value in given.items() if type(value) is Lazy]
    for name in places:
        if public in ARRAYS_ONLY or operation.operands.get(name) not in (ARRAY, WEAK, MASK):
            rule = "pass gpuops.evaluate of it" if name in operation.operands and name != "out" else "pass an array"
            raise error(TypeError, operation.name, f"{name} is an expression, {given[name]!r}; {rule}")
    if public is where:
        return chosen(given)
    stays = len(places) > 1 and takes(public, operation, places[0])
    given |= {name: evaluate(given[name]) for name in places[stays:]}
    first = [given.pop(name) for name in operation.by_position_only if name in given]
    return public(*first, **given)


def chosen(given: dict[str, Any]) -> Any:
    """where: an expression; of a condition alone, indices."""
    if given.get("x") is None:
        return where(evaluate(given["condition"]))
    node = choice(given["condition"], given["x"], given["y"])
    return node if given.get("out") is None else evaluate(node, out=given["out"])


def number(program: Any, bits: tuple[int, ...], shape: Any) -> Any:
    """The value of an expression without arrays."""
    from ..host import programs  # which costs time at import

    return programs.evaluate(program, [], numbers(program, bits), shape)


def graph(program: Any, operands: dict[str, Any], bits: tuple[int, ...]) -> Any:
    """The Dask array of an expression."""
    from .dask import da, evaluated

    if program.several:
        return da.stack([evaluated(program.part(k), operands, bits) for k in range(program.several)])
    return evaluated(program, operands, bits)


STANDING[Lazy] = with_expressions
