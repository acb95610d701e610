"""Public functions and their calls: arguments by name, the arrays among them, and the description of a call."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from ..errors import error
from ..plan.work import ArraySpec, Work

#: Roles of parameters: an array or scalar; the same, with weak Python scalars; the mask ``where``; ``out``; an array
#: whose subclass is kept.
ARRAY, WEAK, MASK, OUT, SUBCLASS = "array", "weak", "mask", "out", "subclass"
SHAPE = "shape"  # not an array but a shape; its lengths are sizes, as those of arrays are
WEAK_TYPES = (int, float, complex)  # Python scalars, which take an array's dtype (NEP 50)
#: Other libraries' parameter names, and what to write instead if the function has that parameter.
MEANT = {
    "dim": "axis", "keepdim": "keepdims", "size": "shape", "p": "ord",  # PyTorch
    "temperature": "scale=1 / temperature", "unbiased": "ddof=1 if unbiased else 0",
    "keep_dims": "keepdims", "mask": "where",  # TensorFlow, Keras
}  # fmt: skip
#: Operand names of PyTorch, the array API standard, NumPy and TensorFlow. They stand for the function's next operand.
OPERANDS = frozenset(("input", "other", "tensor", "x", "x1", "x2", "a", "array", "logits"))


class Operation:
    """A public function: the pure description of its calls, and the roles of its array parameters."""

    def __init__(
        self, describe: Callable[..., Work], operands: dict[str, str], view: bool = False,
        parameters: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """``parameters``: those of a description that takes any, by name."""
        code, self.view = describe.__code__, view  # whether the result is a view of an operand
        self.describe, self.name = describe, describe.__name__
        self.operands = {name: takes for name, takes in operands.items() if takes != SHAPE}
        self.shapes = operands.keys() - self.operands.keys()
        # Positional ones come first.
        self.parameters = parameters or code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.positional, self.by_position_only = code.co_argcount, self.parameters[: code.co_posonlyargcount]


class Call(NamedTuple):
    """A call: the public function, its operation, the arguments by name (the first ``positional`` are passed by
    position), and the arrays among them."""

    public: Callable[..., Any]
    operation: Operation
    given: dict[str, Any]
    positional: int
    arrays: dict[str, Any]

    @property
    def name(self) -> str:
        return self.operation.name

    def on(self, arrays: dict[str, Any]) -> "Call":
        """The same call with other arrays."""
        return self._replace(given=self.given | arrays, arrays=arrays)

    def make(self, function: Callable[..., Any], given: dict[str, Any]) -> Any:
        """Call a function with arguments, of which the first ``positional`` are passed by position."""
        count, values = self.positional, [*given.values()]
        if count == len(values):
            return function(*values)
        return function(*values[:count], **dict([*given.items()][count:]))

    def describe(self, specs: dict[str, ArraySpec]) -> Work:
        """The description of the call, given specs of the arrays."""
        work: Work = self.make(self.operation.describe, self.given | specs)
        return work

    def repeat(self) -> Any:
        """Call the public function with these arguments."""
        return self.make(self.public, self.given)


def bind(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
) -> Call:
    """Bind arguments to names. None, and True as a mask, do not count as arrays."""
    names, operands = names_of(operation, len(args), *options), operation.operands
    if len(names) < len(args) + len(options):
        check_shape(operation, args)
        operation.describe(*args, **options)  # raises Python's own TypeError
    given = dict(zip(names, (*args, *options.values()), strict=True))
    check_keepdims(operation, given)
    arrays = {}
    for name, value in given.items():
        if name in operands and value is not None and not (value is True and operands[name] is MASK):
            arrays[name] = value
    return Call(public, operation, given, len(args), arrays)


def check_shape(operation: Operation, args: tuple[Any, ...]) -> None:
    """Raise if the lengths of a shape are passed as separate arguments."""
    for name in operation.shapes:
        lengths = args[operation.parameters.index(name) :]
        if len(lengths) > 1 and all(type(n) is int for n in lengths):
            raise error(TypeError, operation.name, f"{name} is one argument: pass the tuple {lengths}")


def check_keepdims(operation: Operation, given: dict[str, Any]) -> None:
    """Raise if ``dtype`` or ``out`` is a bool: PyTorch has keepdims in that position."""
    for name in ("dtype", "out"):
        if type(value := given.get(name)) is bool and "keepdims" in operation.parameters:
            raise error(TypeError, operation.name, f"{name} is {value}; write keepdims={value} for keepdims")


@lru_cache(maxsize=1024)
def names_of(operation: Operation, positional: int, *options: str) -> tuple[str, ...]:
    """The names of a call's arguments; too few if there are too many arguments, or one is passed twice."""
    names = operation.parameters[: min(positional, operation.positional)]
    for name in options:
        if name not in operation.parameters and (hint := meant(operation, name, (*names, *options))):
            raise error(TypeError, operation.name, f"{name} is not a parameter; {hint}")
    return tuple(dict.fromkeys((*names, *options)))


def meant(operation: Operation, name: str, given: tuple[str, ...]) -> str | None:
    """What to write instead of another library's parameter name; None if unknown."""
    if name in OPERANDS:
        others = (each for each, takes in operation.operands.items() if takes not in (MASK, OUT) and each not in given)
        operand = next(others, None)
        return f"pass {operand} by position" if operand in operation.by_position_only else operand and f"use {operand}"
    hint = MEANT.get(name, "")
    return f"use {hint}" if hint.partition("=")[0] in operation.parameters else None


def operation_of(public: Any) -> Operation:
    """The operation of a public function."""
    made: Operation = public.operation
    return made
