"""The fields of states, and descriptions for the planner of the structs that make states on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..plan.dtypes import INTEGERS, accumulator, dtype_name
from ..plan.reductions import OpStruct, Traits
from .exact import Exact
from .expressions import ORDERS, real_of


class Field(NamedTuple):
    """A field of a reduction's state: the kind of its dtype, its identity, and the primitive that merges it, if that
    does not depend on other fields."""

    kind: str
    identity: Any
    merge: str = ""


def added(kind: str = "A") -> Field:
    """A sum. Its identity is -0.0, so that a sum of only -0.0 is -0.0."""
    return Field(kind, "minus_zero", "add")


PLAIN = Traits()
#: Parameters other than options.
OPERANDS = ("x", "y", "index", "a", "b", "s")


def memory_of(fields: dict[str, Field], val: str) -> np.dtype:
    """A state in a kernel's memory, without padding, for values of a dtype."""
    kinds = state_kinds(np.dtype(accumulator(val)))
    return np.dtype([(name, kinds[field.kind]) for name, field in fields.items()])


def state_kinds(acc: np.dtype) -> dict[str, np.dtype]:
    """The dtypes of the kinds of fields, given the accumulator's."""
    return {
        "A": acc, "W": np.dtype(np.int32) if acc.itemsize < 4 else acc, "R": real_of(acc),
        "I": np.dtype(np.int64), "B": np.dtype(np.uint32),
    }  # fmt: skip


@lru_cache(maxsize=1024)
def kinds_of(x: np.dtype, val: np.dtype, wide: bool = False) -> dict[str, np.dtype]:
    """The dtypes of the kinds.

    X: in memory. V: in which NumPy computes. A: V's accumulator. W: A, with at least 32 bits. R, RV: the real dtypes of
    A and V. D: double precision. F, I, B, T: float64, int64, uint32, bool.

    ``wide``: the accumulator is in double precision."""
    acc = np.dtype(accumulator(dtype_name(val)))
    double = np.dtype(np.complex128 if acc.kind == "c" else np.float64)
    acc = double if wide and acc.kind in "fc" else acc
    return state_kinds(acc) | {
        "X": x, "V": val, "RV": real_of(val), "D": double, "F": np.dtype(np.float64), "T": np.dtype(bool),
    }  # fmt: skip


def struct(name: str, fields: dict[str, Field], traits: Traits = PLAIN, **more: Any) -> OpStruct:
    """The description of a struct whose states have these fields."""
    selects = all([field.merge in ORDERS for field in fields.values()])
    return OpStruct(name, partial(memory_of, fields), traits, selects=selects, **more)


#: Exact sums in a kernel's memory, of float32 and of float64: ``struct Aligned`` and ``struct Fixed`` of
#: kernels/common/exact.cuh.
ALIGNED = np.dtype([("s", np.float64), ("rest", np.float64), ("exponent", np.int32), ("lost", np.float32)], align=True)
FIXED = np.dtype([("low", np.uint64), ("high", np.int64), ("unit", np.int32), ("lost", np.float32)], align=True)


def parts(of: str, val: str) -> int:
    """How many sums of values of a dtype a state has, ``of`` as in `Exact`: those of double precision have the errors
    of squares apart."""
    acc = np.dtype(accumulator(val))
    return Exact(of).parts(acc) + (of == "moments" and acc.char in "dD")


def exact_memory(of: str, counted: bool, val: str) -> np.dtype:
    """Exact sums of values of a dtype in a kernel's memory, perhaps with a count; of integers, a plain sum."""
    acc = np.dtype(accumulator(val))
    part = ALIGNED if acc.char in "fF" else FIXED
    sums = [("part", part, (parts(of, val),))] if acc.kind in "fc" else [("total", acc)]
    return np.dtype([*sums, *[("n", np.int64)] * counted])


def summed(name: str, of: str = "x", traits: Traits = PLAIN, numbered: bool = False, **more: Any) -> OpStruct:
    """The description of a struct whose state is exact sums."""
    state = partial(exact_memory, of, numbered)
    return OpStruct(name, state, traits, numbered=numbered, held=partial(held, of, state), summed=True, **more)


def held(of: str, state: Callable[[str], np.dtype], val: str) -> int:
    """The bytes of sums in a thread: two doubles each, or an integer."""
    return state(val).itemsize if val in INTEGERS else 2 * 8 * parts(of, val)


def printed_struct(op: str, fields: dict[str, Field], names: tuple[str, ...], takes: bool) -> OpStruct:
    """The description of a printed struct, given its functions' parameters and whether it ignores NaN."""
    options = tuple(dict.fromkeys(name for name in names if name not in OPERANDS))
    traits = Traits(product="y" in names, unconverted=takes)
    counts = any(field.kind == "I" for field in fields.values())
    name = "".join([word.capitalize() for word in op.split("_")])
    return struct(name, fields, traits, options=options, numbered=counts, printed=True)


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    code, given = function.__code__, getattr(function, "parameters", None)
    return given or code.co_varnames[: code.co_argcount]
