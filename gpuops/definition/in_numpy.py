"""Expressions as NumPy functions, and the primitives that NumPy lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .expressions import PRIMITIVES, Lines, Typed, names_in


def is_half(dtype: np.dtype) -> bool:
    """Whether NumPy computes slowly with a dtype: float16 and bfloat16."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def ufunc_of(primitive: str) -> Any:
    """The ufunc of a primitive."""
    return getattr(np, PRIMITIVES[primitive].numpy.removeprefix("np.").partition("(")[0])


def is_nan(x: Any) -> Any:
    """np.isnan, for bfloat16 too."""
    return np.not_equal(x, x)


def squared(x: Any) -> Any:
    """Squares of magnitudes."""
    return np.square(x) if x.dtype.kind != "c" else np.square(x.real) + np.square(x.imag)


def joined(real: Any, imag: Any, dtype: np.dtype) -> Any:
    """A complex array or scalar with these parts."""
    made = np.empty_like(real, dtype)
    made.real, made.imag = real, imag
    return made[()]


def times(x: Any, factor: Any) -> Any:
    """x times a real factor, part by part: a complex factor would turn infinities into NaN."""
    return x * factor if x.dtype.kind != "c" else joined(x.real * factor.real, x.imag * factor.real, x.dtype)


def quotient(total: Any, count: Any) -> Any:
    """``total`` divided by a real number, part by part, so that an infinite part leaves the other as it is."""
    if total.dtype.kind != "c":
        return np.true_divide(total, count)
    return joined(np.true_divide(total.real, count), np.true_divide(total.imag, count), total.dtype)


def power(x: Any, exponent: Any) -> Any:
    """x to a power, in the dtype of x."""
    return np.power(x, x.dtype.type(exponent))


#: The names in printed NumPy functions.
FUNCTIONS: dict[str, Any] = {
    "np": np, "is_nan": is_nan, "squared": squared, "times": times, "quotient": quotient, "power": power
}  # fmt: skip


def printed(trees: dict[str, Typed], name: str) -> Callable[..., tuple[Any, ...]]:
    """A NumPy function that computes these expressions, in this order, given their leaves by name."""
    lines = Lines("numpy")
    results = [lines.name(tree) for tree in trees.values()]
    body = [*lines.lines, f"return {', '.join(results)},"]
    text = f"def {name}(*, {', '.join(sorted(names_in(trees)))}, **others):\n    " + "\n    ".join(body)
    if not names_in(trees):
        text = text.replace("*, , ", "")
    scope: dict[str, Any] = FUNCTIONS | lines.constants
    exec(compile(text, f"<{name}>", "exec"), scope)
    made: Callable[..., tuple[Any, ...]] = scope[name]
    return made
