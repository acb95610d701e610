"""Expressions: small trees of a closed set of primitives, which become NumPy calls, loops for Numba, or C++.

Nothing promotes: the operands of a primitive have one dtype, constants take it, and everything else is cast explicitly.
NumPy and C++ promote differently; this rule is why they agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Primitive(NamedTuple):
    """An operation on elements: its text in each language, and the dtype of its result."""

    name: str
    numpy: str
    loop: str  # Python for Numba
    cuda: str  # {real}: the result's real type
    gives: str = "same"  # the operands' dtype; "bool"; "real": the dtype of the operands' parts


def infix(name: str, function: str, sign: str, gives: str = "same", cuda: str = "") -> Primitive:
    """A primitive that is an operator in Python."""
    text = f"({{}} {sign} {{}})"
    return Primitive(name, f"np.{function}({{}}, {{}})", text, cuda or text, gives)


def call(name: str, numpy: str, loop: str, cuda: str, count: int = 1, gives: str = "same") -> Primitive:
    """A primitive that is a function."""
    arguments = f"({', '.join(['{}'] * count)})"
    texts = [text if "{" in text else text + arguments for text in (numpy, loop, cuda)]
    return Primitive(name, texts[0], texts[1], texts[2], gives)


PRIMITIVES = {
    each.name: each
    for each in (
        infix("add", "add", "+"), infix("subtract", "subtract", "-"), infix("multiply", "multiply", "*"),
        infix("divide", "true_divide", "/"), infix("equal", "equal", "==", "bool", "equal({}, {})"),
        infix("differs", "not_equal", "!=", "bool", "!equal({}, {})"),
        infix("less", "less", "<", "bool", "less({}, {})"), infix("at_most", "less_equal", "<=", "bool"),
        infix("both", "bitwise_and", "&"), infix("either", "bitwise_or", "|"),
        call("negative", "np.negative", "(-{})", "(-{})"),
        call("inverse", "np.logical_not", "(not {})", "!{}"),
        call("where", "np.where", "({1} if {0} else {2})", "({} ? {} : {})", 3),
        call("maximum", "np.maximum", "maximum", "greater_of", 2),
        call("minimum", "np.minimum", "minimum", "lesser_of", 2),
        call("fmax", "np.fmax", "fmax", "greater_number", 2),
        call("fmin", "np.fmin", "fmin", "lesser_number", 2),
        call("sqrt", "np.sqrt", "math.sqrt", "sqrt"),
        call("exp", "np.exp", "math.exp", "exp"),
        call("log", "np.log", "math.log", "log"),
        call("log1p", "np.log1p", "math.log1p", "log1p"),
        call("power", "power", "({} ** {})", "power({}, static_cast<{real}>({}))", 2),
        call("magnitude", "np.abs", "abs", "magnitude", gives="real"),
        call("squared", "squared", "({0} * {0})", "real_product<{real}>({0}, {0})", gives="real"),
        call("times", "times", "({} * {})", "times({}, static_cast<{real}>({}))", 2),
        call("quotient", "quotient", "({} / {})", "quotient", 2),
        call("ratio", "np.true_divide", "({} / {})", "ratio", 2),
        call("is_nan", "is_nan", "({0} != {0})", "is_nan", gives="bool"),
    )
}  # fmt: skip
#: Primitives that select among their operands, and so are exact in any order.
ORDERS = ("maximum", "minimum", "fmax", "fmin", "either", "both")
#: Primitives of a number and a float64.
MIXED = ("quotient", "power", "times")


class Expr:
    """A node. ``head`` is a primitive's name, or "leaf" (of a name), "const" (a number, or the name of a number that
    depends on the dtype) or "cast" (to a kind of dtype)."""

    __slots__ = ("args", "detail", "head")

    def __init__(self, head: str, *args: Expr, detail: Any = None) -> None:
        self.head, self.args, self.detail = head, args, detail

    def as_(self, kind: str) -> Expr:
        """Cast to a kind of dtype."""
        return Expr("cast", self, detail=kind)

    def __add__(self, other: Any) -> Expr: return node("add", self, other)
    def __radd__(self, other: Any) -> Expr: return node("add", other, self)
    def __sub__(self, other: Any) -> Expr: return node("subtract", self, other)
    def __rsub__(self, other: Any) -> Expr: return node("subtract", other, self)
    def __mul__(self, other: Any) -> Expr: return node("multiply", self, other)
    def __rmul__(self, other: Any) -> Expr: return node("multiply", other, self)
    def __truediv__(self, other: Any) -> Expr: return node("divide", self, other)
    def __rtruediv__(self, other: Any) -> Expr: return node("divide", other, self)
    def __and__(self, other: Any) -> Expr: return node("both", self, other)
    def __or__(self, other: Any) -> Expr: return node("either", self, other)
    def __lt__(self, other: Any) -> Expr: return node("less", self, other)
    def __gt__(self, other: Any) -> Expr: return node("less", other, self)
    def __le__(self, other: Any) -> Expr: return node("at_most", self, other)
    def __ge__(self, other: Any) -> Expr: return node("at_most", other, self)
    def __eq__(self, other: Any) -> Expr: return node("equal", self, other)  # type: ignore[override]
    def __ne__(self, other: Any) -> Expr: return node("differs", self, other)  # type: ignore[override]
    def __neg__(self) -> Expr: return node("negative", self)
    def __invert__(self) -> Expr: return node("inverse", self)
    def __abs__(self) -> Expr: return node("magnitude", self)
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("an expression has no value yet; use where()")


def node(name: str, *args: Any) -> Expr:
    """A primitive of these operands, which may be numbers."""
    return Expr(name, *map(expression, args))


def expression(value: Any) -> Expr:
    """An expression as it is; a number, or the name of one of `NUMBERS`, as a constant."""
    return value if isinstance(value, Expr) else Expr("const", detail=value)


def leaf(name: str) -> Expr:
    """An operand, a field of a state, or an option, by its name."""
    return Expr("leaf", detail=name)


def function(name: str) -> Callable[..., Expr]:
    """A primitive as a function."""
    return lambda *args: node(name, *args)


where, maximum, minimum, sqrt = map(function, ("where", "maximum", "minimum", "sqrt"))
exp, log, log1p = map(function, ("exp", "log", "log1p"))
power, squared, times, quotient = map(function, ("power", "squared", "times", "quotient"))
ratio, is_nan = map(function, ("ratio", "is_nan"))


# ------------------------------------------------------------------------------------------------------------- dtypes


def real_of(dtype: np.dtype) -> np.dtype:
    """The dtype of a complex dtype's parts; other dtypes as they are."""
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def limits(dtype: np.dtype) -> tuple[Any, Any]:
    """The least and the greatest number of a dtype: infinities, where it has them."""
    if dtype.kind in "fc":
        least, greatest = (complex(x, x) if dtype.kind == "c" else x for x in (-np.inf, np.inf))
        return dtype.type(least), dtype.type(greatest)
    if dtype.kind == "b":
        return np.False_, np.True_
    return dtype.type(np.iinfo(dtype).min), dtype.type(np.iinfo(dtype).max)


def minus_zero(dtype: np.dtype) -> Any:
    """-0.0, or 0 in dtypes without it: the neutral element of sums."""
    return dtype.type(complex(-0.0, -0.0) if dtype.kind == "c" else -0.0 if dtype.kind == "f" else 0)


def beyond(exponent: int) -> Callable[[np.dtype], Any]:
    """A power of two in a dtype: with this exponent in double precision, with an eighth of it in single."""
    return lambda dtype: dtype.type(2.0 ** (exponent if real_of(dtype).itemsize == 8 else exponent // 8))


#: Numbers that depend on the dtype.
NUMBERS: dict[str, Callable[[np.dtype], Any]] = {
    "least": lambda dtype: limits(dtype)[0], "greatest": lambda dtype: limits(dtype)[1], "minus_zero": minus_zero,
    "nan": lambda dtype: dtype.type(np.nan) if dtype.kind in "fc" else limits(dtype)[0],
    # Factors by which squares neither underflow nor overflow; a sum of squares below which some may have underflowed.
    "large": beyond(768), "small": beyond(-768), "tiny": beyond(-720),
}  # fmt: skip


def number(value: Any, dtype: np.dtype) -> Any:
    """A constant in a dtype."""
    return NUMBERS[value](dtype) if isinstance(value, str) else dtype.type(value)


class Typed(NamedTuple):
    """A node with its dtype."""

    head: str
    args: tuple[Typed, ...]
    detail: Any
    dtype: np.dtype


def typed(expr: Expr, dtypes: dict[str, np.dtype], kinds: dict[str, np.dtype]) -> Typed:
    """Infer the dtypes of all nodes, given those of leaves by name and those of casts by kind."""
    done: dict[int, Typed] = {}

    def visit(node: Expr, wanted: np.dtype | None = None) -> Typed:
        if node.head == "const":
            if wanted is None:
                raise TypeError(f"constant {node.detail!r} has no operand to take its dtype from")
            return Typed("const", (), number(node.detail, wanted).tobytes(), wanted)  # (0.0 and -0.0 are equal)
        if id(node) not in done:
            done[id(node)] = known(node)
        return done[id(node)]

    def known(node: Expr) -> Typed:
        if node.head == "leaf":
            return Typed("leaf", (), node.detail, dtypes[node.detail])
        if node.head == "cast":
            (arg,) = (visit(arg, kinds[node.detail]) for arg in node.args)
            return arg if arg.dtype == kinds[node.detail] else Typed("cast", (arg,), None, kinds[node.detail])
        values = node.args[1:] if node.head == "where" else node.args
        strong = [visit(arg) for arg in values if arg.head != "const"]
        common = strong[0].dtype if strong else None
        mixed = {each.dtype for each in strong} - {common}
        if mixed and node.head not in MIXED:
            names = ", ".join(each.dtype.name for each in strong)
            raise TypeError(f"{node.head} of {names}: cast one of them")
        args = [visit(arg, common) for arg in values]
        if node.head == "where":
            args.insert(0, visit(node.args[0]))
        gives = PRIMITIVES[node.head].gives
        assert common is not None
        result = np.dtype(bool) if gives == "bool" else real_of(common) if gives == "real" else common
        return Typed(node.head, tuple(args), None, result)

    return visit(expr)


def names_in(trees: dict[str, Typed]) -> set[str]:
    """The names of the leaves of expressions."""
    found: set[str] = set()

    def visit(node: Typed) -> None:
        if node.head == "leaf":
            found.add(node.detail)
        for arg in node.args:
            visit(arg)

    for tree in trees.values():
        visit(tree)
    return found


# ----------------------------------------------------------------------------------------------------------- printing


class Lines:
    """Statements that compute expressions, each node once."""

    def __init__(self, language: str, prefix: str = "t", leaves: dict[str, str] | None = None) -> None:
        self.language, self.prefix, self.leaves = language, prefix, leaves or {}  # text by the names of leaves
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}  # by the names that the statements use
        self.names: dict[Typed, str] = {}

    def name(self, node: Typed) -> str:
        """The name of a node's value; appends the statements that compute it, once."""
        if node.head == "leaf":
            return self.leaves.get(node.detail, str(node.detail))
        if node.head == "const":
            return self.constant(np.frombuffer(node.detail, node.dtype)[0])
        if node not in self.names:
            text = self.text(node)
            self.names[node] = f"{self.prefix}{len(self.names)}"
            self.lines.append(self.assigned(self.names[node], text, node))
        return self.names[node]

    def assigned(self, name: str, text: str, node: Typed) -> str:
        """The statement that assigns a node's value to a name."""
        return f"{name} = {text}"

    def text(self, node: Typed) -> str:
        args = [self.name(arg) for arg in node.args]
        if node.head == "cast":
            return self.cast(args[0], node)
        return str(getattr(PRIMITIVES[node.head], self.language)).format(*args)

    def constant(self, value: Any) -> str:
        """The name of a new constant."""
        name = f"c{len(self.constants)}_{self.prefix}"
        self.constants[name] = value
        return name

    def cast(self, arg: str, node: Typed) -> str:
        """The text of a cast."""
        to, given = node.dtype, node.args[0].dtype
        dtype = self.constant(to.type if self.language == "loop" else to)
        if self.language == "loop":
            return f"{dtype}({arg})"
        real = ".real" if given.kind == "c" and to.kind != "c" else ""
        return f"{arg}{real}.astype({dtype}, copy=False)"
