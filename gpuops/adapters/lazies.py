"""Calls with expressions: the same calls with the expressions' arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..call.libraries import STANDING
from ..call.operation import ARRAY, MASK, WEAK, Operation, bind, names_of
from ..errors import error
from ..ops.broadcast import broadcast_to, where
from ..ops.expressions import CONSTANTS, evaluate, taking
from ..ops.lazy import Lazy
from ..ops.lazy import where as choice
from ..ops.matmul import dot, matmul

#: Functions that take arrays only.
ARRAYS_ONLY = (matmul, dot, broadcast_to)


def with_expressions(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Make a call with expressions. The first is computed where its elements are read, others before the call."""
    names = names_of(operation, len(args), *options)
    if len(names) < len(args) + len(options):
        bind(public, operation, args, options)  # raises
    given = dict(zip(names, (*args, *options.values()), strict=True))
    places = [name for name, value in given.items() if type(value) is Lazy]
    dask = any([hasattr(value, "__dask_graph__") for value in given.values()])
    if len(places) > 1 or dask or not takes(public, operation, places[0]):
        return evaluated_first(public, operation, given, places)
    (place,) = places
    x: Lazy = given.pop(place)
    program, arrays, numbers = x.program()
    bits = tuple([int.from_bytes(each.tobytes(), "little") for each in numbers])
    operands = {f"x{k}": array for k, array in enumerate(arrays)}
    if arrays and not getattr(x.context, "mixes", False):
        return taking(public, place, program)(**operands, **{CONSTANTS: bits}, **given)
    value = graph(program, operands, bits) if arrays else number(program, numbers, x.shape)
    if public is evaluate and given.get("out") is None:
        return value
    return public(value, **given) if place in operation.by_position_only else public(**{place: value}, **given)


@lru_cache(maxsize=1024)
def takes(public: Callable[..., Any], operation: Operation, place: str) -> bool:
    """Whether a function computes an expression in the place of an operand."""
    return public not in (*ARRAYS_ONLY, where) and operation.operands.get(place) in (ARRAY, WEAK)


def evaluated_first(
    public: Callable[..., Any], operation: Operation, given: dict[str, Any], places: list[str]
) -> Any:
    """Make a call with several expressions, of which the first may stay one, with one in another place, or with one
    beside a Dask array."""
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


def number(program: Any, numbers: Any, shape: Any) -> Any:
    """The value of an expression without arrays."""
    from ..host import programs  # which costs time at import

    return programs.evaluate(program, [], numbers, shape)


def graph(program: Any, operands: dict[str, Any], bits: tuple[int, ...]) -> Any:
    """The Dask array of an expression."""
    from .dask import evaluated

    return evaluated(program, operands, bits)


STANDING[Lazy] = with_expressions
