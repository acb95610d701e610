"""Reductions of small arrays: for each record one function of NumPy calls on whole arrays, printed from its definition.

A block would cost more than its elements. Where a floating-point error is met that might be reported twice, or not at
all, and where the record warns or refuses, there is no result: `reduce` makes it in blocks, and reports.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..definition.expressions import ORDERS, PRIMITIVES, Lines, Typed, names_in, number, sqrt
from ..definition.in_numpy import FUNCTIONS, printed, ufunc_of
from ..definition.records import SUM_OF_SQUARES
from ..definition.reduction import Bound
from .forms import along

#: The ufuncs that give the extreme of elements, and the place of the first one, by form.
SEARCHES = {"greatest": ("maximum", "fmax", "argmax"), "least": ("minimum", "fmin", "argmin")}
#: Whether elements take part, and whether all do.
TAKEN, ALL = "taken = np.equal(x, x)", "all = np.count_nonzero(taken) == taken.size"
#: Primitives after which there is nothing else to report: division by a number of elements, and what computes nothing.
QUIET = {*ORDERS, "where", "negative", "inverse", "quotient"}
#: The Euclidean norm, as long as no square overflows or vanishes.
NORM = SUM_OF_SQUARES.but("norm2", finish=lambda s: sqrt(s.total))


class Whole(NamedTuple):
    """A reduction of whole arrays as a function of ``(x, y, axis, place, keep, known)``."""

    run: Callable[..., tuple[Any, ...] | None]  # the results; None if `reduce` is to make them
    known: Callable[..., tuple[Any, ...]]  # what does not depend on elements
    warned: Callable[..., tuple[Any, ...]] | None  # the warning, if that does not
    careful: bool  # whether floating-point errors are raised in it
    keeps: bool  # whether it needs the dims that are reduced, with length 1


@lru_cache(maxsize=1024)
def whole(bound: Bound, chunked: bool) -> Whole | None:
    """The function of a record; None if it has none. ``chunked``: of (outer, n, inner), in parts of columns."""
    text = Text(bound, chunked)
    form = bound.reduction.form
    if form == "squares":
        return whole(NORM.bind(bound.x, bound.val), chunked)
    if form == "deviations":
        text.deviations()
    elif form in SEARCHES:
        text.search(*SEARCHES[form])
    elif bound.merges:
        text.merged()
    else:
        return None
    return text.made()


class Text(Lines):
    """The statements of such a function."""

    def __init__(self, bound: Bound, chunked: bool) -> None:
        super().__init__("numpy")
        self.bound, self.chunked = bound, chunked
        self.errors = 0  # how many of the statements may meet floating-point errors
        self.keeps = chunked
        self.known: dict[str, Typed] = {}
        self.fixed = {"s_n"} if bound.reduction.form == "deviations" and bound.takes is None else set()
        trees = {name: bound.narrowed(name, tree) for name, tree in bound.map_tree.items()}
        moved = bound.moved_in == bound.x and all(tree.head in ("leaf", "const") for tree in trees.values())
        self.elements = bound.x if moved else bound.kinds["A"]
        for dtype in [bound.val] * bound.rounds + [self.elements] * (self.elements != bound.x):
            self.lines.append(f"x = x.astype({self.constant(dtype)})")
        if bound.y is not None:
            self.lines.append(f"y = y.astype({self.constant(bound.kinds['A'])}, copy=False)")
        self.trees = trees

    def name(self, node: Typed) -> str:
        if node.head != "const" and self.is_known(node):
            known = {tree: name for name, tree in self.known.items()}
            self.known[name := known.get(node, f"k{len(known)}")] = node
            return name
        if node.head == "add" and node.args[0].head == "leaf" and node.args[1] == zero(node.dtype) and not self.chunked:
            return self.name(node.args[0])  # NumPy adds to 0
        if node.head not in ("leaf", "const") and node not in self.names:
            self.errors += reports(node)
        return super().name(node)

    def is_known(self, node: Typed) -> bool:
        """Whether a value depends on the number of elements and on options alone."""
        return not [each for each in names_in({"": node}) - self.fixed if each in ("x", "y") or each[:2] == "s_"]

    def reduced(self, value: str, merge: str, dtype: np.dtype | None) -> str:
        """What a primitive makes of an array along the axis."""
        ufunc = self.constant(self.bound.ufunc if len(self.trees) == 1 else ufunc_of(merge))
        into = self.constant(dtype)
        self.errors += merge not in ORDERS and (dtype is None or dtype.kind in "fc")
        if self.chunked:
            return f"along({value}, {ufunc}, {into})[:, None]"
        return f"{ufunc}.reduce({value}, axis, {into}, None, keep)"

    def merged(self) -> None:
        """The fields, each of which merges alone."""
        bound = self.bound
        self.lines += [TAKEN, ALL] * (bound.takes is not None)
        for (name, tree), merge in zip(self.trees.items(), bound.merges or (), strict=True):
            field, state = bound.reduction.fields[name], bound.state[name]
            value = self.name(tree)
            if tree.head == "const":
                value = f"np.broadcast_to({value}, x.shape)"
            if bound.takes is not None:
                one = tree.head == "const" and merge == "add" and number(1, tree.dtype).tobytes() == tree.detail
                identity = self.constant(number(field.identity, tree.dtype))
                value = "taken" if one else f"{value} if all else np.where(taken, {value}, {identity})"
            self.lines.append(f"s_{name} = {self.reduced(value, merge, None if merge in ORDERS else state)}")
            if merge in ORDERS and not bound.trivial and state != self.elements:
                self.lines.append(f"s_{name} = s_{name}.astype({self.constant(state)}, copy=False)")
            if self.chunked and bound.reduction.start == 0 and state.kind in "fc":  # (-0.0 is 0.0)
                self.lines.append(f"s_{name} = s_{name} + 0")

    def deviations(self) -> None:
        """The mean, and squares of the distances from it, less what rounding the mean has cost."""
        bound, self.keeps = self.bound, True
        acc, real = bound.kinds["A"], bound.kinds["R"]
        number_ = Typed("cast", (Typed("leaf", (), "s_n", bound.kinds["I"]),), None, real)
        masked = bound.takes is not None
        self.errors = 2
        count = "count" if masked else self.name(number_)
        square = "squared(apart)" if acc.kind == "c" else "np.square(apart, apart if apart.ndim else None)"
        self.lines += [
            *[TAKEN, ALL] * masked,
            f"s_total = {self.reduced('x if all else np.where(taken, x, 0)' if masked else 'x', 'add', acc)}",
            *[f"s_n = {self.reduced('taken', 'add', bound.kinds['I'])}"] * masked,
            *[f"count = np.maximum(s_n, 1).astype({self.constant(real)})"] * masked,
            f"center = quotient(s_total, {count})",
            "apart = np.subtract(x, center)",
            *["apart = apart if all else np.where(taken, apart, 0)"] * masked,
            f"rest = {self.reduced('apart', 'add', acc)}",
            f"s_squares = {self.reduced(square, 'add', bound.kinds['R'])}",
            f"s_squares = np.maximum(s_squares - squared(rest) / {count}, 0)",
            "s_center = center",  # (of which only matters whether it is finite)
        ]

    def search(self, order: str, order_of_numbers: str, place: str) -> None:
        """The extreme and the first place where it is."""
        bound, valued = self.bound, "s_value" in names_in(self.bound.finish_tree)
        index = f"np.{place}(x, place, keepdims=keep)"
        if bound.takes is not None:
            self.keeps = True
            self.lines += [
                *(["all = False"] if valued else [TAKEN, ALL]),
                f"s_value = x if all else {self.reduced('x', order_of_numbers, None)}",
                "if not all and np.count_nonzero(s_value != s_value): return None",
                f"s_index = {index} if all else np.argmax(x == s_value, place, keepdims=True)",
            ]
        else:
            self.lines += [f"s_value = {self.reduced('x', order, None)}"] * valued + [f"s_index = {index}"]

    def made(self) -> Whole:
        """The function: fields, what the record warns of or refuses, results."""
        bound, rules = self.bound, [self.bound.reduction.warning, self.bound.reduction.refuses]
        warned = None
        for rule in [each[-1] for each in rules if each and bound.reduction.form not in SEARCHES]:
            (tree,) = bound.tree(rule, {"t": "T"}, ("t",)).values()
            if self.is_known(tree):
                warned = printed({"t": tree}, "warned")
            else:
                self.lines.append(f"if np.count_nonzero({self.name(tree)}): return None")
        merge = (bound.merges or ("",))[0]
        if bound.trivial and merge and bound.result == (self.elements if merge in ORDERS else bound.state[0]):
            results = bound.leaves_of["s"]
        else:
            results = tuple([self.name(tree) for tree in bound.finish_tree.values()])
        head = [f"{', '.join(self.known)}, = known"] * bool(self.known)
        body = "\n    ".join([*head, *self.lines, f"return {', '.join(results)},"])
        scope: dict[str, Any] = FUNCTIONS | self.constants | {"along": along}
        exec(compile(f"def run(x, y, axis, place, keep, known):\n    {body}", "<whole>", "exec"), scope)
        known = printed(self.known, "known") if self.known else lambda **given: ()
        return Whole(scope["run"], known, warned, self.errors > 1, self.keeps)


def zero(dtype: np.dtype) -> Typed:
    """0 in an expression."""
    return Typed("const", (), number(0, dtype).tobytes(), dtype)


def reports(node: Typed) -> bool:
    """Whether a primitive or a cast may meet floating-point errors."""
    given = [arg.dtype for arg in node.args]
    if node.head == "cast":  # (a mean is in the range of its elements)
        exact = node.args[0].head == "quotient" or np.can_cast(given[0], node.dtype)
        return not exact and "f" in (given[0].kind, node.dtype.kind)
    if node.head == "magnitude":
        return given[0].kind == "c"
    return node.head not in QUIET and PRIMITIVES[node.head].gives != "bool" and node.dtype.kind in "fc"
