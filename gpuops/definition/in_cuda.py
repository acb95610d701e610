"""Prints C++ structs for kernels: reductions, like those in kernels/common/ops.cuh, and their states in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan.dtypes import CTYPES, dtype_name
from ..plan.work import Kernel
from .exact import EXPANSION
from .expressions import PRIMITIVES, Lines, Typed, number, real_of
from .records import ROWS, STRUCTS
from .reduction import Bound, Reduction

#: The records whose maps are printed, by these.
MAPS = {row.row.map: row for row in ROWS.values() if row.row and row.row.states is None}


def texts(kernel: Kernel) -> list[str]:
    """The structs that a kernel needs and no file has: a map, or its op, if that is printed, and states in memory."""
    types, constants = dict(kernel.types), dict(kernel.constants)
    if row := MAPS.get(types.get("Map", "").removeprefix("struct ")):
        return [map_struct(row, types["Tb"], types["Tout"], constants["ARITY"] > 2)]
    record = STRUCTS.get(types.get("Op", "").partition("<")[0])
    if record is None or not (record.struct.printed or constants["STATES"]):
        return []
    val = dtype_of(types["Tval"])
    bound = record.bind(val, val, val if record.struct.traits.product else None)
    made = [Struct(bound, types.get("Integer", "i64")).text()] if record.struct.printed else []
    return [*made, state_struct(written(bound))] if constants["STATES"] else made


def written(bound: Bound) -> np.dtype:
    """The states that kernels write: of exact sums expansions."""
    return expansions(bound) if bound.reduction.struct.summed and bound.val.kind in "fcV" else bound.state


def expansions(bound: Bound) -> np.dtype:
    """The expansions of a result's parts, and the number of elements if the record counts."""
    sums, fields = bound.reduction.sums, bound.reduction.fields
    assert sums is not None
    return np.dtype([("part", EXPANSION, (sums.parts(bound.val),)), *[("n", np.int64)] * ("n" in fields)])


def dtype_of(name: str) -> np.dtype:
    """The dtype of a C++ type."""
    found = next(dtype for dtype, ctype in CTYPES.items() if ctype == name)
    if found == "bfloat16":
        import ml_dtypes  # registers the dtype with NumPy

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(found)


def ctype(dtype: np.dtype) -> str:
    """The C++ type of a number in a register; half types as in memory, since nothing is computed in them."""
    return "bool" if dtype.kind == "b" else CTYPES[dtype_name(dtype)]


def state_struct(state: np.dtype) -> str:
    """The struct of a state in memory, laid out as NumPy's structured dtype."""
    fields = []
    for name in state.names or ():
        dtype = state[name]
        fields.append(f"Expansion {name}[{dtype.shape[0]}];" if dtype.base == EXPANSION else f"{ctype(dtype)} {name};")
    return f"struct Fields {{ {' '.join(fields)} }};"


INLINE = "static __device__ __forceinline__"


def map_struct(record: Reduction, val: str, out: str, masked: bool) -> str:
    """The map from elements, the results of their rows and, if ``masked``, a mask to the results of elements."""
    assert record.row is not None
    dtype = dtype_of(val)
    lines = Cuda("cuda", "t", {record.row.option: "option"})
    value = lines.name(record.bind(dtype, dtype).each_tree["each"])
    nothing = constant(number(record.left_out, dtype))
    body = [
        f"if (!nonzero(chosen)) return convert<{out}>({nothing});" if masked else "",
        f"{val} x = convert<{val}>(x_);", *lines.lines, f"return convert<{out}>({value});",
    ]  # fmt: skip
    head = f"template <class A, class B, class C> {INLINE} {out} apply(A x_, B r0, C chosen, double option)"
    return f"struct {record.row.map} {{\n  {head} {{\n    " + "\n    ".join(filter(None, body)) + "\n  }\n};"


class Struct:
    """The struct of a record in C++, for given dtypes; ``integer``: the type of counts."""

    def __init__(self, bound: Bound, integer: str) -> None:
        self.bound, self.record, self.integer = bound, bound.reduction, integer
        self.acc = ctype(bound.kinds["A"])
        self.beside = f"Beside<{self.acc}, {integer}>"  # no padding, which nobody would write
        self.names = bound.state.names or ()
        self.alone = len(self.names) == 1  # the state is a single number

    def counts(self, name: str) -> bool:
        """Whether a field is a count."""
        return self.record.fields[name].kind == "I"

    def member(self, name: str) -> str:
        """The type of a field."""
        if not self.counts(name):
            return ctype(self.bound.state[name])
        return self.integer if self.alone else self.beside

    def read(self, state: str, name: str) -> str:
        """The text that reads a field of a state."""
        if self.alone:
            return state
        return f"{state}.{name}.get()" if self.counts(name) else f"{state}.{name}"

    def made(self, values: dict[str, str]) -> str:
        """The text of a state with these fields."""
        casts = {name: f"static_cast<{self.integer}>({value})" for name, value in values.items() if self.counts(name)}
        if self.alone:
            return (values | casts)[self.names[0]]
        besides = {name: f"{self.beside}::of({value})" for name, value in casts.items()}
        return f"{{{', '.join((values | besides).values())}}}"

    def text(self) -> str:
        """The whole struct; for an op that ignores NaN, the struct for all elements and an alias that ignores NaN."""
        record, name = self.record, self.record.struct.name
        own = f"Plain{name}" if record.takes else name
        fields = " ".join([f"{self.member(each)} {each};" for each in self.names])
        identity = {each: constant(value) for each, value in self.bound.identities.items()}
        given = {each: f"f.{each}" for each in self.names}
        copied = ", ".join([self.read("s", each) for each in self.names])
        options = ", ".join([each.upper() for each in record.struct.options])
        lines = [
            f"struct {own} : Traits {{",
            f"  static constexpr bool PRODUCT = {str(record.struct.traits.product).lower()};",
            f"  using A = {self.acc};",
            f"  using State = {self.member(self.names[0])};" if self.alone else f"  struct State {{ {fields} }};",
            f"  enum Options {{ {options} }};" if options else "",
            f"  {INLINE} State identity() {{ return {self.made(identity)}; }}",
            *self.mapped(),
            *self.function("State combine(State a, State b)", self.bound.combine_tree),
            *self.finished(),
            f"  template <class F> {INLINE} F fields(State s) {{ return {{{copied}}}; }}",
            f"  template <class F> {INLINE} State from(F f) {{ return {self.made(given)}; }}",
            "};",
            f"using {name} = WithoutNan<{own}, {CTYPES[dtype_name(self.bound.val)]}>;" if record.takes else "",
        ]
        return "\n".join([line for line in lines if line])

    def mapped(self) -> list[str]:
        """The contribution of an element; of one without the second operand that it needs, nothing."""
        val, trees = CTYPES[dtype_name(self.bound.val)], self.bound.map_tree
        if not self.record.struct.traits.product:
            return self.function(f"State map({val} x_, const Context<A>& c)", trees, "A x = convert<A>(x_);")
        made = "A x = convert<A>(x_), y = convert<A>(y_);"
        both = self.function(f"State product({val} x_, {val} y_, const Context<A>& c)", trees, made)
        return [*both, f"  {INLINE} State map({val}, const Context<A>&) {{ return identity(); }}"]

    def function(self, head: str, trees: dict[str, Typed], before: str = "") -> list[str]:
        """A function that returns a state."""
        lines = self.statements()
        value = self.made({name: lines.name(tree) for name, tree in trees.items()})
        body = [f"    {line}" for line in (before, *lines.lines, f"return {value};") if line]
        return [f"  {INLINE} {head} {{", *body, "  }"]

    def finished(self) -> list[str]:
        """The functions that make the result of a state, and the second one."""
        made = []
        for name, tree in zip(("finish", "second"), self.bound.finish_tree.values(), strict=False):
            lines = self.statements()
            value = lines.name(tree)
            made.append(f"  template <class Out> {INLINE} Out {name}(State s, const Context<A>& c) {{")
            made += [f"    {line}" for line in (*lines.lines, f"return convert<Out>({value});")] + ["  }"]
        return made

    def statements(self) -> Cuda:
        """An empty list of statements, whose leaves are operands, fields of states, and options."""
        leaves = {name: f"c.option[{name.upper()}]" for name in self.record.struct.options}
        for state, names in self.bound.leaves_of.items():
            leaves |= {leaf: self.read(state, name) for leaf, name in zip(names, self.names, strict=True)}
        return Cuda("cuda", "t", leaves)


class Cuda(Lines):
    """Statements in C++, a typed constant for each node."""

    def assigned(self, name: str, text: str, node: Typed) -> str:
        return f"const {ctype(node.dtype)} {name} = {text};"

    def text(self, node: Typed) -> str:
        args = [self.name(arg) for arg in node.args]
        if node.head == "cast":
            return f"convert<{ctype(node.dtype)}>({args[0]})"
        made = PRIMITIVES[node.head].cuda.format(*args, real=ctype(real_of(node.dtype)))
        small = node.dtype.kind in "iu" and node.dtype.itemsize < 4
        return f"static_cast<{ctype(node.dtype)}>({made})" if small else made

    def constant(self, value: Any) -> str:
        return constant(value)


def constant(value: Any) -> str:
    """The text of a number of a NumPy dtype, by its bits."""
    value = np.asarray(value)
    kind, size = value.dtype.kind, value.dtype.itemsize
    if kind == "c":
        return f"{ctype(value.dtype)}{{{constant(value.real)}, {constant(value.imag)}}}"
    bits = hex(int(value.view(f"u{size}")))
    if kind == "f":
        return f"bit_cast<{ctype(value.dtype)}>({'u64' if size == 8 else 'u32'}({bits}u{'ll' if size == 8 else ''}))"
    return f"static_cast<{ctype(value.dtype)}>({bits}u{'ll' if size == 8 else ''})"
