"""Reductions of small arrays: for each record one function of NumPy calls on whole arrays, printed from its definition.

A block would cost more than its elements. Where a floating-point error is met, and where the record warns or refuses,
there is no result: `reduce` makes it in blocks, and reports.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..definition.expressions import ORDERS, Lines, Typed, names_in, number
from ..definition.in_numpy import FUNCTIONS, ufunc_of
from ..definition.records import NORM2, NORM_WITHIN
from ..definition.reduction import Bound
from .exponentials import CERTAIN
from .forms import passes

#: The ufuncs that give the extreme of elements, and the place of the first one, by form.
SEARCHES = {"greatest": ("maximum", "fmax", "argmax"), "least": ("minimum", "fmin", "argmin")}
#: Whether elements take part, and whether all do.
TAKEN = ["taken = np.equal(x, x)", "all = np.count_nonzero(taken) == taken.size"]


@lru_cache(maxsize=1024)
def whole(bound: Bound) -> Callable[..., tuple[Any, ...] | None] | None:
    """The function of ``(x, y, axis, place, n)`` and options that gives the results, with dims kept, or None; None for
    a record that has none."""
    form, text = bound.reduction.form, Text(bound)
    if bound.reduction is NORM2:
        return whole(NORM_WITHIN.bind(bound.x, bound.val))
    if form == "deviations":
        text.deviations()
    elif form in SEARCHES:
        text.search(*SEARCHES[form])
    elif form == "exponentials":
        text.exponentials()
    elif bound.merges:
        text.merged(bound)
    else:
        return None
    return text.made()


class Text(Lines):
    """The statements of such a function."""

    def __init__(self, bound: Bound) -> None:
        super().__init__("numpy")
        self.bound = bound
        moved = bound.of_elements or (bound.reduction.form in SEARCHES and bound.moved_in == bound.x)
        for dtype in [bound.val] * bound.rounds + [bound.kinds["A"]] * (not moved and bound.kinds["A"] != bound.x):
            self.lines.append(f"x = x.astype({self.constant(dtype)})")
        if bound.y is not None:
            self.lines.append(f"y = y.astype({self.constant(bound.kinds['A'])}, copy=False)")
        self.lines += TAKEN * (bound.takes is not None)

    def merged(self, bound: Bound) -> None:
        """The fields of a record each of which merges alone."""
        for name, field in bound.reduction.fields.items():
            tree, state = bound.narrowed(name, bound.map_tree[name]), bound.state[name]
            value = self.name(tree)
            if tree.head == "const":
                value = f"np.broadcast_to({value}, x.shape)"
            if bound.takes is not None:
                one = tree.head == "const" and field.merge == "add" and number(1, tree.dtype).tobytes() == tree.detail
                identity = self.constant(number(field.identity, tree.dtype))
                value = "taken" if one else f"{value} if all else np.where(taken, {value}, {identity})"
            ufunc = self.constant(bound.ufunc if len(bound.reduction.fields) == 1 else ufunc_of(field.merge))
            dtype = None if field.merge in ORDERS else state
            self.lines.append(f"s_{name} = {ufunc}.reduce({value}, axis, {self.constant(dtype)}, None, True)")
            if field.merge in ORDERS and state != tree.dtype:
                self.lines.append(f"s_{name} = s_{name}.astype({self.constant(state)}, copy=False)")

    def deviations(self) -> None:
        """The mean, and squares of the distances from it, less what rounding the mean has cost."""
        bound = self.bound
        first, second = (each.bind(bound.x, bound.val) for each in passes(bound, False))
        self.merged(first)
        self.lines.append("count = np.maximum(s_n, 1)" if "n" in first.reduction.fields else "count = s_n = n")
        self.lines.append("center = quotient(s_total, count)")
        self.merged(second)
        self.lines += [
            "s_squares = np.maximum(s_squares - squared(s_rest) / count, 0)",
            f"s_center = {self.constant(bound.kinds['A'].type(0))}",  # (it is finite, or the squares are NaN)
        ]

    def exponentials(self) -> None:
        """The maximum, and the sum of exponentials relative to it; if that is near 1, without those that are 1."""
        weighted, acc = self.bound.y is not None, self.constant(self.bound.kinds["A"])
        least = self.constant(self.bound.kinds["A"].type(-np.inf))
        total = f"np.add.reduce({{}}, axis, {acc}, None, True)".format
        self.lines += [
            f"x = x if scale == 1 else x * {acc}.type(scale)",
            *[f"x = x if np.count_nonzero(y) == y.size else np.where(y == 0, {least}, x)"] * weighted,
            "s_max = np.maximum.reduce(x, axis, None, None, True)",
            f"power = np.exp(x - s_max){' * y' * weighted}",
        ]
        if weighted:  # always apart, since weights may cancel the greatest elements
            self.lines += [
                "same = x == s_max",
                f"s_rest = {total('np.where(same, 0, power)')}",
                f"s_top = {total('np.where(same & (x > -np.inf), y, 0)')}",
            ]
        else:
            self.lines += [
                f"s_rest = {total('power')} - 1",
                f"if np.count_nonzero(s_rest >= {CERTAIN}) < s_rest.size:",
                "    same = x == s_max",
                f"    s_rest = {total('np.where(same, 0, power)')} + ({total('same')} - 1)",
            ]

    def search(self, order: str, order_of_numbers: str, place: str) -> None:
        """The extreme, unless all are numbers, and the first place where it is."""
        index = f"np.{place}(x, place, keepdims=True)"
        if self.bound.takes is None:
            self.lines += [f"s_value = np.{order}.reduce(x, axis, None, None, True)", f"s_index = {index}"]
        else:
            self.lines += [
                f"s_value = x if all else np.{order_of_numbers}.reduce(x, axis, None, None, True)",
                "if not all and np.count_nonzero(s_value != s_value): return None",
                f"s_index = {index} if all else np.argmax(x == s_value, place, keepdims=True)",
            ]

    def made(self) -> Callable[..., tuple[Any, ...] | None]:
        """The function: fields, what the record warns of or refuses, results."""
        bound, trees = self.bound, self.bound.finish_tree
        for rule in (bound.reduction.warning, bound.reduction.refuses):
            if rule and bound.reduction.form not in SEARCHES:
                (tree,) = bound.tree(rule[-1], {"t": "T"}, ("t",)).values()
                self.lines.append(f"if np.count_nonzero({self.name(tree)}): return None")
        results = [self.name(tree) for tree in trees.values()]
        options = sorted(name for name in self.leaves_of(trees) if name[:2] != "s_" and name not in ("x", "y", "n"))
        body = "\n    ".join([*self.lines, f"return {', '.join(results)},"])
        scope: dict[str, Any] = FUNCTIONS | self.constants
        text = f"def run(x, y, axis, place, n, {', '.join([*options, '**others'])}):\n    {body}"
        exec(compile(text, f"<{bound}>", "exec"), scope)
        run: Callable[..., tuple[Any, ...] | None] = scope["run"]
        return run

    def leaves_of(self, trees: dict[str, Typed]) -> set[str]:
        """The operands and options that the function takes."""
        return names_in(trees | {f"map {name}": tree for name, tree in self.bound.map_tree.items()}) - {"index"}
