"""Records what a pure function does with numbers as straight-line Python: tracing with symbolic shapes.

The function is called once with symbols instead of numbers. Each operation on them becomes a line, each branch a guard.
The recorded function runs the lines for other numbers: it returns what the function itself would return, or None if a
guard fails, where the function would have taken another branch. The function must be pure, and must not branch by
catching arithmetic errors.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

NUMBERS = (int, float, bool)
ARITHMETIC: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("+", operator.add), "sub": ("-", operator.sub), "mul": ("*", operator.mul), "mod": ("%", operator.mod),
    "truediv": ("/", operator.truediv), "floordiv": ("//", operator.floordiv), "and": ("&", operator.and_),
    "or": ("|", operator.or_), "lshift": ("<<", operator.lshift), "rshift": (">>", operator.rshift),
}  # fmt: skip
#: Operands that leave an int unchanged, on its right and on its left.
NEUTRAL = {("+", 0), ("-", 0), ("*", 1), ("//", 1), ("<<", 0), (">>", 0), ("|", 0)}
NEUTRAL_LEFT = {("+", 0), ("*", 1), ("|", 0)}
COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "eq": ("==", operator.eq), "ne": ("!=", operator.ne), "lt": ("<", operator.lt), "le": ("<=", operator.le),
    "gt": (">", operator.gt), "ge": (">=", operator.ge),
}  # fmt: skip


class Symbol:
    """A number of a recording: its value in the recorded call, and the name of its variable.

    Using the value itself, to index, hash or print, adds a guard.
    """

    __slots__ = ("name", "recording", "value")

    def __init__(self, recording: Recording, value: Any, name: str) -> None:
        self.recording, self.value, self.name = recording, value, name

    def decided(self) -> Any:
        """The value, with a guard that it is the same again."""
        self.recording.guard(f"{self.name} == {literal(self.value)}", True)
        return self.value

    def __index__(self) -> int:
        return operator.index(self.decided())

    def __int__(self) -> int:
        return int(self.decided())

    def __float__(self) -> float:
        return float(self.decided())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.decided(), digits)

    def __hash__(self) -> int:
        return hash(self.decided())

    def __repr__(self) -> str:
        return repr(self.decided())

    def __bool__(self) -> bool:
        return self.recording.guard(self.name, bool(self.value))

    def __neg__(self) -> Symbol:
        return self.recording.line(-self.value, f"-{self.name}")

    def __abs__(self) -> Symbol:
        return self.recording.line(abs(self.value), f"abs({self.name})")

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def bit_length(self) -> Symbol:
        return self.recording.line(self.value.bit_length(), f"{self.name}.bit_length()")


def arithmetic(sign: str, function: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The methods of an operator on symbols, and the reflected one."""

    def method(self: Symbol, other: Any) -> Any:
        if type(other) is Symbol:
            return self.recording.line(function(self.value, other.value), f"{self.name} {sign} {other.name}")
        if type(other) not in NUMBERS:
            return NotImplemented
        if type(self.value) is type(other) is int and (sign, other) in NEUTRAL:
            return self
        return self.recording.line(function(self.value, other), f"{self.name} {sign} {literal(other)}")

    def reflected(self: Symbol, other: Any) -> Any:
        if type(other) not in NUMBERS:
            return NotImplemented
        if type(self.value) is type(other) is int and (sign, other) in NEUTRAL_LEFT:
            return self
        return self.recording.line(function(other, self.value), f"{literal(other)} {sign} {self.name}")

    return method, reflected


def comparison(sign: str, function: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """The method of a comparison of symbols, which adds a guard."""

    def method(self: Symbol, other: Any) -> Any:
        if type(other) is Symbol:
            return self.recording.guard(f"{self.name} {sign} {other.name}", function(self.value, other.value))
        if type(other) not in NUMBERS:
            return NotImplemented
        return self.recording.guard(f"{self.name} {sign} {literal(other)}", function(self.value, other))

    return method


def index(number: Any) -> Any:
    """``operator.index``, which leaves symbols as they are."""
    return number if type(number) is Symbol else operator.index(number)


def known(number: Any) -> Any:
    """A number, or the variable of a symbol: equal ones have been computed alike."""
    return number.name if type(number) is Symbol else number


def literal(number: Any) -> str:
    """A number as Python source."""
    return repr(number) if math.isfinite(number) else f"float('{number}')"


for name, (sign, function) in ARITHMETIC.items():
    for prefix, method in zip(("__", "__r"), arithmetic(sign, function), strict=True):
        setattr(Symbol, f"{prefix}{name}__", method)
for name, (sign, decide) in COMPARISONS.items():
    setattr(Symbol, f"__{name}__", comparison(sign, decide))


class Recording:
    """The lines and guards of one call, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []  # of the function's numbers
        self.lines: dict[str, Symbol] = {}  # by right-hand side: each expression is computed once
        self.guards: dict[str, bool] = {}  # conditions, and whether they held
        self.order: list[str] = []  # of lines and guards
        self.constants: list[Any] = []

    def symbols(self, numbers: Sequence[int]) -> list[Symbol]:
        """The symbols of the numbers that the function is called with."""
        self.names = [f"n{i}" for i in range(len(numbers))]
        return [Symbol(self, value, name) for value, name in zip(numbers, self.names, strict=True)]

    def line(self, value: Any, expression: str) -> Symbol:
        """The symbol of a computed number."""
        if (known := self.lines.get(expression)) is None:
            known = self.lines[expression] = Symbol(self, value, f"v{len(self.lines)}")
            self.order.append(expression)
        return known

    def guard(self, condition: str, holds: bool) -> bool:
        """Add a guard: the condition must hold again, or fail again."""
        if condition not in self.guards:
            self.guards[condition] = holds
            self.order.append(condition)
        return holds

    def function(self, result: Any) -> Callable[..., Any]:
        """The recorded function of the numbers, which returns this result."""
        made = self.expression(result)
        needed = set(made.translate(SPLIT).split())
        body = [f"    return {made}"]
        for text in reversed(self.order):
            if text in self.guards:
                body.append(f"    if {'not ' * self.guards[text]}({text}): return None")
            elif (variable := self.lines[text].name) in needed:
                body.append(f"    {variable} = {text}")
            else:
                continue
            needed.update(text.translate(SPLIT).split())
        source = "\n".join([f"def recorded({', '.join(self.names)}):", *reversed(body)])
        space = {"new": tuple.__new__, **{f"k{i}": value for i, value in enumerate(self.constants)}}
        exec(compile(source, "<recorded>", "exec"), space)
        return space["recorded"]  # type: ignore[no-any-return]

    def expression(self, value: Any) -> str:
        """The source of a value: of tuples, lists and dicts of symbols and constants."""
        if type(value) is Symbol:
            return value.name
        if not symbolic(value):
            self.constants.append(value)
            return f"k{len(self.constants) - 1}"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {self.expression(item)}' for key, item in value.items())}}}"
        if not isinstance(value, (tuple, list)):
            raise TypeError(f"a {type(value).__name__} of symbols cannot be recorded")
        items = "".join(f"{self.expression(item)}, " for item in value)
        if isinstance(value, list):
            return f"[{items}]"
        self.constants.append(type(value))
        return f"({items})" if type(value) is tuple else f"new(k{len(self.constants) - 1}, ({items}))"


#: Separates the names in an expression.
SPLIT = str.maketrans(dict.fromkeys("()[]{},:=<>!+-*/%&|", " ") | {".": " "})


def symbolic(value: Any) -> bool:
    """Whether a value contains symbols."""
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(map(symbolic, value))
    return any(map(symbolic, value.values())) if isinstance(value, dict) else type(value) is Symbol


def record(function: Callable[[list[Any]], Any], numbers: Sequence[int]) -> Callable[..., Any]:
    """Record a pure function of a list of numbers, called with these.

    >>> blocks = record(lambda n: ("few" if n[0] < 100 else "many", -(-n[0] // 4)), [10])
    >>> blocks(30), blocks(31), blocks(100)
    (('few', 8), ('few', 8), None)
    """
    recording = Recording()
    return recording.function(function(recording.symbols(numbers)))
