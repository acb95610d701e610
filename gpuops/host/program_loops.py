"""Which programs a compiled loop computes: those that compute much, if it has NumPy's bits and tells of errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from ..definition.program import ASTYPE, CLIP, WHERE, Program, Step
from .blocks import compiled

#: Computes a block from operands, constants and the result; False, if NumPy has to.
Loop = Callable[[Sequence[np.ndarray], Sequence[Any], np.ndarray], bool]
WORTH = 2**27  # elements that a program has computed before its loop is compiled: these take longer than compiling
UNIT = 2**16  # elements that count as one
DTYPES = {*map(np.dtype, "?bhilqBHILQfd")}  # that Numba computes with as NumPy does
ARITHMETIC = {"add", "subtract", "multiply", "square", "negative", "positive", "absolute", "conjugate"}
OF_FLOATS = {"divide", "reciprocal", "sqrt", "isnan", "isinf", "isfinite"}
LOGICAL = {"logical_and", "logical_or", "logical_xor", "logical_not"}
BITWISE = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert"}
COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
CHOICES = {"minimum", "maximum", CLIP}
#: Steps that may make infinities or NaN of numbers, and steps whose results are not finite if their first operand is
#: not, or neither operand.
ERRING = {"add", "subtract", "multiply", "square", "divide", "reciprocal", "sqrt", ASTYPE}
PASSING = {"negative", "positive", "absolute", "conjugate", "sqrt", "square", "divide", ASTYPE}
PASSING_BOTH = {"add", "subtract", "multiply"}


def loop_of(program: Program, size: int) -> Loop | None:
    """The loop that computes a result of so many elements, if there is one and the program is worth it. Underflow,
    which loops do not see, must be of no interest."""
    if not has_loop(program) or np.geterr()["under"] != "ignore" or not spent(program, size):
        return None
    module: Any = compiled("compiled_programs")
    return None if module is None else module.loop(program)


def spent(program: Program, size: int) -> bool:
    """Whether a program has computed so many elements that its loop is worth compiling; count these."""
    counter, done = units(program), 0
    for _ in range(-(-size // UNIT)):
        done = next(counter)
    return done >= WORTH // UNIT


@lru_cache(maxsize=256)
def units(program: Program) -> Any:
    """What counts the elements that a program has computed."""
    return count()


@lru_cache(maxsize=1024)
def has_loop(program: Program) -> bool:
    """Whether a loop has the bits of NumPy's steps."""
    given = {*program.arrays, *program.constants}
    return bool(program.steps) and given <= DTYPES and all(is_exact(program, step) for step in program.steps)


def is_exact(program: Program, step: Step) -> bool:
    """Whether a loop computes a step as NumPy does."""
    *operands, result = step.dtypes
    casts = [*zip([dtype_at(program, place) for place in step.args], operands, strict=True)]
    if step.name == ASTYPE:
        casts = [(operands[0], result)]
    if not {*step.dtypes} <= DTYPES or any(a.kind == "f" and b.kind in "iu" for a, b in casts):
        return False
    kinds = {dtype.kind for dtype in operands}
    same = len({*operands}) == 1
    return (
        (step.name in ARITHMETIC and kinds <= {*"iuf"} and {*operands} == {result})
        or (step.name in OF_FLOATS and kinds == {"f"})
        or step.name in LOGICAL
        or step.name in (WHERE, ASTYPE)
        or (step.name in BITWISE and kinds <= {*"biu"} and same)
        or (step.name in COMPARISONS and same)
        or (step.name in CHOICES and same and kinds <= {*"iuf"})
    )


def dtype_at(program: Program, place: int) -> np.dtype:
    """The dtype of an array, a constant or the result of a step."""
    given = (*program.arrays, *program.constants)
    return given[place] if place < len(given) else program.steps[place - len(given)].dtypes[-1]


def looked_at(program: Program) -> set[int]:
    """Steps such that their results are not finite if any step has met an error: the last that pass them on."""
    erring: set[int] = set()
    found: set[int] = set()
    for i, step in enumerate(program.steps):
        place, dtypes = program.first + i, step.dtypes
        if dtypes[-1].kind == "f" and (step.name in ERRING or any(arg in erring for arg in passing(step))):
            erring.add(place)
    for place in erring:
        later = program.steps[place - program.first + 1 :]
        if not any(each.dtypes[-1].kind == "f" and place in passing(each) for each in later):
            found.add(place - program.first)
    return found


def passing(step: Step) -> tuple[int, ...]:
    """The places of operands that make a result not finite, if they are not."""
    return step.args if step.name in PASSING_BOTH else step.args[:1] if step.name in PASSING else ()
