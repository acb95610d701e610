"""Expressions: arithmetic on arrays, and a reduction or softmax of it, which some libraries compute in one pass.

Each is written once, for every library: with operators, and the functions of a ``Library``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

THRESHOLD = 0.5
FACTOR, ADDEND = 0.125, 1.5  # where no rows are given


def same(x: Any) -> Any:
    return x


class Library(NamedTuple):
    """What expressions call: functions of a library by NumPy's names, which take ``axis``.

    ``lazy`` makes what operators take of an array, and ``evaluate`` an array of that.
    """

    sum: Callable[..., Any]
    mean: Callable[..., Any]
    max: Callable[..., Any]
    where: Callable[..., Any]
    logsumexp: Any = None  # of libraries that have one
    softmax: Any = None  # likewise
    sums: Any = None  # of several expressions at once, of libraries that have that
    lazy: Callable[[Any], Any] = same
    evaluate: Callable[[Any], Any] = same


def numpy_like(xp: Any, special: Any) -> Library:
    """A library with NumPy's functions, and a module that has SciPy's, or None."""
    logsumexp, softmax = (getattr(special, name, None) for name in ("logsumexp", "softmax"))
    return Library(xp.sum, xp.mean, xp.max, xp.where, logsumexp, softmax)


def squared_distance(lib: Library, axis: Any, x: Any, y: Any) -> Any:
    difference = x - y
    return lib.sum(difference * difference, axis=axis)  # not ** 2, which is powf in CuPy


def greatest_difference(lib: Library, axis: Any, x: Any, y: Any) -> Any:
    return lib.max(abs(x - y), axis=axis)


def share_above(lib: Library, axis: Any, x: Any, mask: Any) -> Any:
    return lib.mean(lib.where(mask, x, 0) > THRESHOLD, axis=axis)


def share_above_where(lib: Library, axis: Any, x: Any, y: Any) -> Any:
    return lib.mean(lib.where(y > 0, x, 0) > THRESHOLD, axis=axis)


def scaled_logsumexp(lib: Library, axis: Any, x: Any, s: Any = FACTOR, b: Any = ADDEND) -> Any:
    return lib.logsumexp(x * s + b, axis=axis)


def scaled_softmax(lib: Library, axis: Any, x: Any, s: Any, b: Any) -> Any:
    return lib.softmax(x * s + b, axis=axis)


def standardize(lib: Library, axis: Any, x: Any, mean: Any, std: Any) -> Any:
    return lib.evaluate((x - mean) / std)


def polynomial(lib: Library, axis: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return lib.evaluate(((a * b + c) * d + e) * a)


def cosine(lib: Library, axis: Any, x: Any, y: Any) -> Any:
    """(The roots are multiplied, not the sums: their product is too large for float16.)"""
    terms = x * y, x * x, y * y
    sums = lib.sums(terms, axis) if lib.sums else [lib.sum(each, axis=axis) for each in terms]
    both, of_x, of_y = map(lib.lazy, sums)
    return lib.evaluate(both / (of_x**0.5 * of_y**0.5))


#: By op.
EXPRESSIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        squared_distance, greatest_difference, share_above, share_above_where, scaled_logsumexp, scaled_softmax,
        standardize, polynomial, cosine,
    )
}  # fmt: skip


def computed(op: str, lib: Library, axis: Any, *arrays: Any) -> Any:
    """The result of an expression of a library's arrays."""
    return EXPRESSIONS[op](lib, axis, *map(lib.lazy, arrays))


class Text(NamedTuple):
    """An expression for numexpr: names of its arrays, their elements' arithmetic, and NumPy's reduction of that."""

    names: str
    elements: str
    reduction: str = ""


#: By op, but for the softmaxes and what is more than one pass.
TEXTS = {
    "squared_distance": Text("x y", "(x - y) * (x - y)", "sum"),
    "greatest_difference": Text("x y", "abs(x - y)", "max"),
    "share_above": Text("x mask", f"where(mask, x, 0) > {THRESHOLD}", "mean"),
    "share_above_where": Text("x y", f"where(y > 0, x, 0) > {THRESHOLD}", "mean"),
    "standardize": Text("x mean std", "(x - mean) / std"),
    "polynomial": Text("a b c d e", "((a * b + c) * d + e) * a"),
}
