"""A public function and a call of it: which of its arguments are arrays, and the description of the call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from ..errors import error
from ..plan.work import ArraySpec, Work

#: What a parameter takes: arrays and scalars; arrays, and Python scalars that yield to the dtypes of others; the mask
#: ``where``; the array that the result is written to; an array whose subclass counts.
ARRAY, WEAK, MASK, OUT, SUBCLASS = "array", "weak", "mask", "out", "subclass"
SHAPE = "shape"  # no array: a shape, whose lengths are sizes as those of arrays are
WEAK_TYPES = (int, float, complex)  # Python's scalars, which yield to the dtypes of arrays (NEP 50)
#: Other libraries' names of parameters, and what to write instead, where the function has that parameter.
MEANT = {
    "dim": "axis", "keepdim": "keepdims", "size": "shape", "p": "ord",  # PyTorch
    "temperature": "scale=1 / temperature", "unbiased": "ddof=1 if unbiased else 0",
    "keep_dims": "keepdims", "mask": "where",  # TensorFlow, Keras
}  # fmt: skip
#: Names of operands in PyTorch, the array API standard, NumPy and TensorFlow: the next of the function's own is meant.
OPERANDS = frozenset(("input", "other", "tensor", "x", "x1", "x2", "a", "array", "logits"))


class Operation:
    """A public function: the pure description of its calls, and what those of its parameters take that are arrays."""

    def __init__(self, describe: Callable[..., Work], operands: dict[str, str], view: bool = False) -> None:
        code, self.view = describe.__code__, view  # whether the result is a view of an operand
        self.describe, self.name = describe, describe.__name__
        self.operands = {name: takes for name, takes in operands.items() if takes != SHAPE}
        self.shapes = operands.keys() - self.operands.keys()
        self.parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # positional ones first
        self.positional, self.by_position_only = code.co_argcount, self.parameters[: code.co_posonlyargcount]


class Call(NamedTuple):
    """A call that is to be made: the public function, its operation, the arguments by name, of which the first few are
    given by position, and those among them that are arrays."""

    public: Callable[..., Any]
    operation: Operation
    given: dict[str, Any]
    positional: int
    arrays: dict[str, Any]

    @property
    def name(self) -> str:
        return self.operation.name

    def on(self, arrays: dict[str, Any]) -> Call:
        """The same call with other arrays."""
        return self._replace(given=self.given | arrays, arrays=arrays)

    def make(self, function: Callable[..., Any], given: dict[str, Any]) -> Any:
        """The result of a function for the arguments."""
        count, values = self.positional, [*given.values()]
        if count == len(values):
            return function(*values)
        return function(*values[:count], **dict([*given.items()][count:]))

    def describe(self, specs: dict[str, ArraySpec]) -> Work:
        """The description of the call, given specs of the arrays."""
        work: Work = self.make(self.operation.describe, self.given | specs)
        return work

    def repeat(self) -> Any:
        """Call the public function."""
        return self.make(self.public, self.given)


def bind(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
) -> Call:
    """The arguments of a call by name; None and True (no mask) do not count as arrays."""
    names, operands = names_of(operation, len(args), *options), operation.operands
    if len(names) < len(args) + len(options):
        check_shape(operation, args)
        operation.describe(*args, **options)  # Python words it
    given = dict(zip(names, (*args, *options.values()), strict=True))
    check_keepdims(operation, given)
    arrays = {}
    for name, value in given.items():
        if name in operands and value is not None and not (value is True and operands[name] is MASK):
            arrays[name] = value
    return Call(public, operation, given, len(args), arrays)


def check_shape(operation: Operation, args: tuple[Any, ...]) -> None:
    """A shape must be one argument: of too many, those from there on must not be its lengths."""
    for name in operation.shapes:
        lengths = args[operation.parameters.index(name) :]
        if len(lengths) > 1 and all(type(n) is int for n in lengths):
            raise error(TypeError, operation.name, f"{name} is one argument: give the tuple {lengths}")


def check_keepdims(operation: Operation, given: dict[str, Any]) -> None:
    """PyTorch takes keepdims by position where NumPy takes ``dtype`` or ``out``."""
    for name in ("dtype", "out"):
        if type(value := given.get(name)) is bool and "keepdims" in operation.parameters:
            raise error(TypeError, operation.name, f"{name} is {value}; write keepdims={value} for keepdims")


@lru_cache(maxsize=1024)
def names_of(operation: Operation, positional: int, *options: str) -> tuple[str, ...]:
    """The names of a call's arguments; too few, if there are too many or some are given twice."""
    names = operation.parameters[: min(positional, operation.positional)]
    for name in options:
        if name not in operation.parameters and (hint := meant(operation, name, (*names, *options))):
            raise error(TypeError, operation.name, f"{name} is not a parameter; {hint}")
    return tuple(dict.fromkeys((*names, *options)))


def meant(operation: Operation, name: str, given: tuple[str, ...]) -> str | None:
    """What to write instead of another library's name of a parameter; None if that is not known."""
    if name in OPERANDS:
        others = (each for each, takes in operation.operands.items() if takes not in (MASK, OUT) and each not in given)
        operand = next(others, None)
        return f"give {operand} by position" if operand in operation.by_position_only else operand and f"use {operand}"
    hint = MEANT.get(name, "")
    return f"use {hint}" if hint.partition("=")[0] in operation.parameters else None


def operation_of(public: Any) -> Operation:
    """The operation of a public function."""
    made: Operation = public.operation
    return made
