"""A reduction as a record: an element's contribution, how states merge, how a state becomes the result."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..plan.reductions import OpStruct
from ..plan.row_ops import RowOp
from .exact import Exact
from .expressions import ORDERS, Expr, Typed, expression, leaf, names_in, number, typed
from .in_numpy import is_half, printed, ufunc_of
from .structs import Field, kinds_of, parameters, printed_struct

Named = dict[str, Any]  # expressions by name
#: Ufuncs that merge truth values of elements of any dtype.
LOGICAL = {"either": np.logical_or, "both": np.logical_and}


class Rules(NamedTuple):
    """NumPy's rules: what decides dtypes, and what is refused."""

    ufunc: Any = None  # decides the dtypes of computation
    floating: bool = False  # the result is floating, float64 of integers
    arithmetic: bool = False  # small integers and bools are reduced as int64 or uint64
    logical: bool = False  # elements count by their truth
    real: bool = False  # complex numbers are refused
    parts: bool = False  # ``dtype`` may tell the precision of the parts of complex numbers
    identity: bool = True  # an empty reduction has a value
    initial: bool = False  # if not, ``initial`` may give one
    casting: Any = "same_kind"  # of the result to ``out``


class Reduction:
    """A reduction: ``map`` makes the state of an element, ``combine`` that of two states, ``finish`` the result.

    The functions are written once, on expressions. Their parameters' names select what they get: ``map`` an element
    ``x`` in the accumulator's dtype, the second operand's ``y``, the element's ``index``; ``combine`` two states ``a``
    and ``b``; ``finish`` a state ``s`` and the number ``n`` of elements; each of them options by name, as floats.

    ``each``, for ops with a result per element: the result of an element ``x``, given the results ``r0`` … of its row.
    """

    def __init__(
        self, name: str, fields: dict[str, Field], map: Callable[..., Any],  # noqa: A002
        finish: Callable[..., Any], **more: Any,
    ) -> None:  # fmt: skip
        self.name, self.fields, self.map, self.finish = name, fields, map, finish
        #: Merges two states, if not every field merges by itself.
        self.combine: Callable[..., Named] | None = more.pop("combine", None)
        #: Whether an element takes part, by its value in memory; and the reduction of all elements.
        self.takes: Callable[..., Expr] | None = more.pop("takes", None)
        self.plain: Reduction | None = more.pop("plain", None)
        #: The default initial value.
        self.start: Any = more.pop("start", None)
        #: The kinds of the results' dtypes.
        self.results: tuple[str, ...] = more.pop("results", ("V",))
        #: A warning, and for which results: an expression like ``finish``.
        self.warning: tuple[str, Callable[..., Expr]] | None = more.pop("warning", None)
        #: An error, likewise.
        self.refuses: tuple[type[Exception], str, Callable[..., Expr]] | None = more.pop("refuses", None)
        #: How an engine may reduce blocks faster than element by element.
        self.form: str = more.pop("form", "")
        #: Whether it is an exact sum, where it is computed in floating point.
        self.sums: Exact | None = more.pop("sums", None)
        #: The struct that makes states on a GPU, from kernels/common/ops.cuh or printed; others for integers
        #: whose sums are exact; another beside a mask, if the first one gets the number of elements as an option.
        self.struct: OpStruct = more.pop("struct", None) or printed_struct(
            name, fields, (*parameters(map), *parameters(finish)), self.takes is not None
        )
        self.exact: tuple[OpStruct, ...] = more.pop("exact", ())
        self.counted: OpStruct | None = more.pop("counted", None)
        #: The result of an element; of one that does not take part; and how kernels make these results.
        self.each: Callable[..., Expr] | None = more.pop("each", None)
        self.left_out: Any = more.pop("left_out", 0)
        self.row: RowOp | None = more.pop("row", None)
        #: Whether the struct computes the square of the result.
        self.root: bool = more.pop("root", False)
        self.rules: Rules = Rules(**{name: more.pop(name) for name in Rules._fields if name in more})
        #: The reduction that replaces it beside a mask, with a count of elements in its state.
        self.masked: Reduction | None = more.pop("masked", None) or (counting(self) if asks_for_count(self) else None)
        if more:
            raise TypeError(f"a reduction has no {', '.join(more)}")

    def but(self, name: str, **changes: Any) -> Reduction:
        """A copy with these changes."""
        own = vars(self) | self.rules._asdict() | {"name": name}
        again = {"rules", "masked"} | ({"struct"} if self.struct.printed else set())  # derived from the rest
        return Reduction(**{key: value for key, value in own.items() if key not in again} | changes)

    def bind(self, x: np.dtype, val: np.dtype, y: np.dtype | None = None) -> Bound:
        """The reduction for elements of dtype ``x``, computed in ``val``, with a second operand of dtype ``y``."""
        return bound(self, x, val, y)


def asks_for_count(record: Reduction) -> bool:
    """Whether results depend on the number of elements, which the state does not have."""
    return "n" in parameters(record.finish)


def counting(record: Reduction, **changes: Any) -> Reduction:
    """The same reduction, with a count of elements in its state."""

    def map(*args: Any) -> Named:  # noqa: A001
        made = record.map(*args)
        return (made if isinstance(made, dict) else dict.fromkeys(record.fields, made)) | {"n": 1}

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        names = parameters(function)

        def of_state(s: Any, *args: Any) -> Any:
            given = {"s": s, "n": s.n.as_("F")} | dict(zip(others, args, strict=True))
            return function(*[given[name] for name in names])

        others = tuple([name for name in names if name not in ("s", "n")])
        of_state.parameters = ("s", *others)  # type: ignore[attr-defined]
        return of_state

    map.parameters = parameters(record.map)  # type: ignore[attr-defined]
    warning = record.warning and (record.warning[0], counted(record.warning[1]))
    fields = record.fields | {"n": Field("I", 0, "add")}
    finish = counted(record.finish)
    new = {"fields": fields, "map": map, "finish": finish, "warning": warning, "exact": ()}
    if record.struct.printed:
        names = (*parameters(map), *parameters(finish))
        new["struct"] = printed_struct(f"masked_{record.name}", fields, names, record.takes is not None)
    return record.but(record.name, **new | changes)


@lru_cache(maxsize=1024)
def bound(reduction: Reduction, x: np.dtype, val: np.dtype, y: np.dtype | None, wide: bool = False) -> Bound:
    return Bound(reduction, x, val, y, wide)


class Bound:
    """A reduction for given dtypes: typed expressions, and NumPy functions that compute them."""

    def __init__(self, reduction: Reduction, x: np.dtype, val: np.dtype, y: np.dtype | None, wide: bool) -> None:
        self.reduction, self.x, self.val, self.y = reduction, x, val, y
        self.kinds = kinds_of(x, val, wide)
        fields = [(name, self.kinds[field.kind]) for name, field in reduction.fields.items()]
        self.state = np.dtype(fields, align=True)

    def __repr__(self) -> str:
        return f"{self.reduction.name} of {self.x.name} in {self.val.name}"

    @cached_property
    def wide(self) -> Bound:
        """The same with an accumulator in double precision."""
        return bound(self.reduction, self.x, self.val, self.y, True)

    @cached_property
    def identities(self) -> dict[str, Any]:
        """The state of no elements."""
        return {name: number(field.identity, self.state[name]) for name, field in self.reduction.fields.items()}

    @cached_property
    def merges(self) -> tuple[str, ...] | None:
        """The primitives that merge the fields, if each merges by itself."""
        found = tuple(field.merge for field in self.reduction.fields.values())
        return found if all(found) else None

    @cached_property
    def leaves_of(self) -> dict[str, tuple[str, ...]]:
        """The names that fields of the states ``a``, ``b`` and ``s`` have in expressions."""
        return {state: tuple([f"{state}_{name}" for name in self.state.names or ()]) for state in "abs"}

    # ------------------------------------------------------------------------------------------------ typed expressions

    def leaves(self) -> dict[str, np.dtype]:
        """The dtypes of operands, by name; options are float64."""
        more = {f"r{i}": self.kinds[kind] for i, kind in enumerate(self.reduction.results)}
        more |= {"y": self.kinds["A"]} if self.y is not None else {}
        return {"x": self.kinds["A"], "index": self.kinds["I"], "n": self.kinds["F"], **more}

    def tree(self, function: Callable[..., Any], kinds: dict[str, str], names: tuple[str, ...]) -> dict[str, Typed]:
        """Call a function of operands, states and options; the typed results by name, each cast to its kind."""
        dtypes = self.leaves()
        args: list[Any] = []
        for parameter in parameters(function):
            if parameter in ("a", "b", "s"):
                fields = {name: leaf(f"{parameter}_{name}") for name in self.state.names or ()}
                dtypes |= {f"{parameter}_{name}": self.state[name] for name in fields}
                args.append(SimpleNamespace(**fields))
            else:
                dtypes.setdefault(parameter, self.kinds["F"])
                args.append(leaf(parameter))
        made = function(*args)
        if not isinstance(made, dict):
            made = dict.fromkeys(names, made)
        cast = {name: Expr("cast", expression(each), detail=kinds[name]) for name, each in made.items()}
        return {name: typed(each, dtypes, self.kinds) for name, each in cast.items()}

    @cached_property
    def field_kinds(self) -> dict[str, str]:
        return {name: field.kind for name, field in self.reduction.fields.items()}

    @cached_property
    def map_tree(self) -> dict[str, Typed]:
        """The contribution of an element, by field."""
        return self.tree(self.reduction.map, self.field_kinds, tuple(self.field_kinds))

    @cached_property
    def finish_tree(self) -> dict[str, Typed]:
        """The results of a state."""
        kinds = {f"r{i}": kind for i, kind in enumerate(self.reduction.results)}
        return self.tree(self.reduction.finish, kinds, tuple(kinds))

    @cached_property
    def each_tree(self) -> dict[str, Typed]:
        """The result of an element."""
        assert self.reduction.each is not None
        return self.tree(self.reduction.each, {"each": "A"}, ("each",))

    # ------------------------------------------------------------------------------------------------- NumPy functions

    @cached_property
    def map(self) -> Callable[..., tuple[Any, ...]]:
        """The contributions of elements, given operands by name: ``x``, ``y``, ``index`` and options."""
        return printed(self.map_tree, "map")

    @cached_property
    def takes(self) -> Callable[..., tuple[Any, ...]] | None:
        """Whether elements ``x`` take part, by their values in memory."""
        if self.reduction.takes is None or self.x.kind in "biu":
            return None
        return printed({"takes": typed(self.reduction.takes(leaf("x")), {"x": self.x}, self.kinds)}, "takes")

    @cached_property
    def indexed(self) -> bool:
        """Whether elements contribute their index."""
        return "index" in names_in(self.map_tree)

    @cached_property
    def of_x_alone(self) -> bool:
        """Whether a contribution depends on the element alone."""
        return names_in(self.map_tree) <= {"x", "center"}

    @cached_property
    def asks_for_count(self) -> bool:
        """Whether results depend on the number of elements, which the state does not have."""
        return "n" in names_in(self.finish_tree)

    @cached_property
    def moved(self) -> str | None:
        """The field that reduces the elements themselves, if all other contributions are constants."""
        differ = [name for name, tree in self.map_tree.items() if names_in({name: tree})]
        trees = [self.narrowed(name, self.map_tree[name]) for name in differ]
        return differ[0] if len(trees) == 1 and trees[0].head == "leaf" and trees[0].detail == "x" else None

    @cached_property
    def rounds(self) -> bool:
        """Whether elements are rounded before they accumulate: to a dtype that is neither theirs nor wider."""
        return self.val not in (self.x, self.kinds["A"]) and not np.can_cast(self.x, self.val)

    @cached_property
    def moved_in(self) -> np.dtype:
        """The dtype in which elements of `moved` are merged: their own, if NumPy is fast in it and nothing is lost."""
        if self.rounds:
            return self.val
        return self.x if not is_half(self.x) and np.can_cast(self.x, self.val) else self.kinds["A"]

    @cached_property
    def viewed(self) -> bool:
        """Whether ufuncs that reduce elements where they lie make the state, and know their dtype."""
        trees, merges = [self.narrowed(*each) for each in self.map_tree.items()], self.merges or ()
        elements = merges and all(tree.head == "leaf" and tree.detail == "x" for tree in trees)
        elements = elements and self.takes is None and self.moved_in == self.x
        return bool(elements) and (len(merges) == 1 or {*merges} <= {*ORDERS})

    @cached_property
    def ufuncs(self) -> tuple[Any, ...]:
        """What merges each field."""
        merges = self.merges or ()
        return (self.ufunc,) if len(merges) == 1 else tuple([ufunc_of(merge) for merge in merges])

    @cached_property
    def ufunc(self) -> Any:
        """The ufunc that merges the first field; for truth values one that also takes elements of other dtypes."""
        if not self.merges:
            return None
        truth = self.moved is not None and self.map_tree[self.moved].dtype.kind == "u" and self.merges[0] in LOGICAL
        return LOGICAL[self.merges[0]] if truth else ufunc_of(self.merges[0])

    @cached_property
    def plain(self) -> bool:
        """Whether elements contribute nothing but themselves, and constants."""
        return all(self.narrowed(*each).head in ("leaf", "const") for each in self.map_tree.items())

    @cached_property
    def of_elements(self) -> bool:
        """Whether NumPy merges such elements in their dtype, without losing digits."""
        return self.plain and self.merges is not None and self.moved_in == self.x

    @cached_property
    def squared(self) -> frozenset[str]:
        """The fields that are sums of squares of real numbers: to these, `contributions` gives what is squared."""
        trees = self.map_tree.items()
        found = [name for name, tree in trees if tree.head == "squared" and tree.args[0].dtype.kind != "c"]
        return frozenset([name for name in found if self.reduction.fields[name].merge == "add"])

    @cached_property
    def trivial(self) -> bool:
        """Whether the result is the first field, apart from a cast."""
        trees = [*self.finish_tree.values()]
        while len(trees) == 1 and trees[0].head == "cast":
            trees = [*trees[0].args]
        return len(trees) == 1 and trees[0].head == "leaf" and trees[0].detail == self.leaves_of["s"][0]

    @cached_property
    def exact(self) -> bool:
        """Whether states are the same in any order of merging."""
        kinds = {self.state[name].kind for name in self.state.names or ()}
        return self.merges is not None and (not kinds & {*"fc"} or {*self.merges} <= {*ORDERS})

    @cached_property
    def sums(self) -> Exact | None:
        """What it is the exact sum of, if it is one: not of integers."""
        return self.reduction.sums if {self.x.kind, self.val.kind} <= {*"fcV"} else None

    @property
    def result(self) -> np.dtype:
        """The dtype of the first result."""
        return self.kinds[self.reduction.results[0]]

    @cached_property
    def reduces_in(self) -> np.dtype | None:
        """The ``dtype`` with which `ufunc` merges; None: the operands'."""
        return self.state[0] if self.merges is not None and self.merges[0] not in ORDERS else None

    @cached_property
    def contributions(self) -> Callable[..., tuple[Any, ...]]:
        """As `map`, for many elements: without the casts that merging does not need."""
        trees = {name: self.narrowed(name, tree) for name, tree in self.map_tree.items()}
        return printed({n: t.args[0] if n in self.squared else t for n, t in trees.items()}, "contributions")

    def narrowed(self, name: str, tree: Typed) -> Typed:
        """A contribution without the casts that its merge does not need, or makes itself."""
        merge = self.reduction.fields[name].merge
        while tree.head == "cast":
            given = tree.args[0].dtype
            exact = merge in ORDERS and given.kind != "V" and np.can_cast(given, tree.dtype)
            if not (exact or (merge == "add" and given.kind == "b")):
                break
            tree = tree.args[0]
        truth = merge in LOGICAL and tree.head == "differs" and tree.args[0].head == "leaf"
        return tree.args[0] if truth and self.merges == (merge,) else tree

    @cached_property
    def warning_tree(self) -> dict[str, Typed]:
        """Of which states the record warns."""
        return self.tree(self.reduction.warning[-1], {"t": "T"}, ("t",)) if self.reduction.warning else {}

    @cached_property
    def warns_of_states(self) -> bool:
        """Whether that depends on more than the number of elements."""
        return not names_in(self.warning_tree) <= {"n"}

    @cached_property
    def warns(self) -> Callable[..., tuple[Any, ...]]:
        """The same, given what `finish` is given."""
        return printed(self.warning_tree, "warns")

    @cached_property
    def refuses(self) -> Callable[..., tuple[Any, ...]]:
        """Which states the record refuses, likewise."""
        assert self.reduction.refuses is not None
        return printed(self.tree(self.reduction.refuses[-1], {"t": "T"}, ("t",)), "refuses")

    @cached_property
    def combine_tree(self) -> dict[str, Typed]:
        """The merged state of two."""
        merge = self.reduction.combine or (
            lambda a, b: {
                name: Expr(field.merge, getattr(a, name), getattr(b, name))
                for name, field in self.reduction.fields.items()
            }
        )
        return self.tree(merge, self.field_kinds, ())

    @cached_property
    def combine(self) -> Callable[..., tuple[Any, ...]]:
        """The same as a function of the fields of both: ``a_total`` and so on."""
        return printed(self.combine_tree, "combine")

    @cached_property
    def finish(self) -> Callable[..., tuple[Any, ...]]:
        """The results of states, given their fields (``s_total``), their numbers of elements ``n``, and options."""
        return printed(self.finish_tree, "finish")

    @cached_property
    def each(self) -> Callable[..., tuple[Any, ...]]:
        """The results of elements, given those of their rows (``r0`` …) and options."""
        return printed(self.each_tree, "each")
