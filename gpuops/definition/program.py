"""Expressions of whole arrays as programs: the operations in order, which every engine runs on elements."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

#: Operations that are not ufuncs of NumPy.
WHERE, CLIP, ASTYPE, REAL, IMAG = "where", "clip", "astype", "real", "imag"
STACK = "stack"  # of the results of others, along a new first dim; only the last operation


class Operation(NamedTuple):
    """What is known of a ufunc that expressions are made of."""

    sign: str = ""  # Python's operator
    compares: bool = False  # which NumPy does with ints of any size
    refuses: bool = False  # NumPy refuses some integers: negative exponents


#: The ufuncs, by NumPy's names.
UFUNCS = {
    "add": Operation("+"), "subtract": Operation("-"), "multiply": Operation("*"), "divide": Operation("/"),
    "floor_divide": Operation("//"), "remainder": Operation("%"), "power": Operation("**", refuses=True),
    "equal": Operation("==", compares=True), "not_equal": Operation("!=", compares=True),
    "less": Operation("<", compares=True), "less_equal": Operation("<=", compares=True),
    "greater": Operation(">", compares=True), "greater_equal": Operation(">=", compares=True),
    "bitwise_and": Operation("&"), "bitwise_or": Operation("|"), "bitwise_xor": Operation("^"),
    "left_shift": Operation("<<"), "right_shift": Operation(">>"),
    **dict.fromkeys((
        "negative", "positive", "invert", "logical_and", "logical_or", "logical_xor", "logical_not",
        "minimum", "maximum", "fmin", "fmax", "absolute", "sign", "conjugate",
        "sqrt", "square", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
        "sin", "cos", "tan", "tanh", "hypot", "arctan2", "floor", "ceil", "rint", "trunc", "isnan", "isinf", "isfinite",
    ), Operation()),
}  # fmt: skip

#: Python's operators, by the ends of their methods' names: those that also have a reflected method, and comparisons.
REFLECTED = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
    "rshift": "right_shift",
}  # fmt: skip
COMPARED = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip


class Step(NamedTuple):
    """An operation, computed as NumPy does: operands are cast to its dtypes, and its result is rounded."""

    name: str
    dtypes: tuple[np.dtype, ...]  # of the operands, then of the result
    args: tuple[int, ...]  # places of the operands: arrays come first, then constants, then the results of steps


class Program(NamedTuple):
    """The structure of an expression. Values of constants, and shapes, are no part of it."""

    arrays: tuple[np.dtype, ...]
    constants: tuple[np.dtype, ...]
    steps: tuple[Step, ...]  # the last one makes the result; without steps, it is the only array

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the result."""
        return self.steps[-1].dtypes[-1] if self.steps else self.arrays[0]

    @property
    def several(self) -> int:
        """How many results are stacked; 0 if it is one that is not."""
        return len(self.steps[-1].args) if self.steps and self.steps[-1].name == STACK else 0

    def part(self, k: int) -> Program:
        """The program of one of the results that are stacked, of the same arrays and constants."""
        return part_of(self, k)

    @property
    def first(self) -> int:
        """The place of the first step's result."""
        return len(self.arrays) + len(self.constants)

    def last_uses(self) -> tuple[tuple[int, ...], ...]:
        """For each step, the steps whose results it is the last to need."""
        last = {place: i for i, step in enumerate(self.steps) for place in step.args if place >= self.first}
        found: list[list[int]] = [[] for _ in self.steps]
        for place, i in last.items():
            found[i].append(place - self.first)
        return tuple([tuple(each) for each in found])


@lru_cache(maxsize=1024)
def part_of(program: Program, k: int) -> Program:
    """`Program.part`."""
    last, first = program.steps[-1].args[k], program.first
    if last < first:
        return program._replace(steps=(Step(ASTYPE, (program.dtype, program.dtype), (last,)),))
    needed, places = {last}, {place: place for place in range(first)}
    for place in range(last, first - 1, -1):
        needed |= {*program.steps[place - first].args} if place in needed else set()
    steps: list[Step] = []
    for place, step in enumerate(program.steps[: last + 1 - first], first):
        if place in needed:
            places[place] = first + len(steps)
            steps.append(step._replace(args=tuple([places[arg] for arg in step.args])))
    return program._replace(steps=tuple(steps))
