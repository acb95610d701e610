"""Reductions as C++ structs for kernels, like those in kernels/common/ops.cuh; their states as structs in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plan.dtypes import CTYPES, accumulator, dtype_name
from ..plan.reductions import OpStruct, Traits
from ..plan.work import Kernel
from .expressions import PRIMITIVES, Lines, Typed, real_of

if TYPE_CHECKING:
    from .reduction import Bound, Field, Reduction

PLAIN = Traits()
#: Names of parameters that are no options.
OPERANDS = ("x", "y", "index", "a", "b", "s")


def memory_of(fields: dict[str, Field], val: str) -> np.dtype:
    """A state in a kernel's memory, where values are of a dtype: without gaps."""
    kinds = state_kinds(np.dtype(accumulator(val)))
    return np.dtype([(name, kinds[field.kind]) for name, field in fields.items()])


def state_kinds(acc: np.dtype) -> dict[str, np.dtype]:
    """The dtypes that kinds of fields stand for, given that of the accumulator."""
    return {
        "A": acc, "W": np.dtype(np.int32) if acc.itemsize < 4 else acc, "R": real_of(acc),
        "I": np.dtype(np.int64), "B": np.dtype(np.uint32),
    }  # fmt: skip


def struct(name: str, fields: dict[str, Field], traits: Traits = PLAIN, **more: Any) -> OpStruct:
    """What is known of a struct whose states have these fields."""
    return OpStruct(name, partial(memory_of, fields), traits, **more)


def printed_struct(record: Reduction) -> OpStruct:
    """The same of one that is printed."""
    names = [*parameters(record.map), *parameters(record.finish)]
    options = tuple(dict.fromkeys(name for name in names if name not in OPERANDS))
    traits = Traits(product="y" in names, unconverted=record.takes is not None)
    counts = any(field.kind == "I" for field in record.fields.values())
    name = "".join([word.capitalize() for word in record.name.split("_")])
    return struct(name, record.fields, traits, options=options, numbered=counts, printed=True)


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    code, given = function.__code__, getattr(function, "parameters", None)
    return given or code.co_varnames[: code.co_argcount]


# ----------------------------------------------------------------------------------------------------------- printing


def texts(kernel: Kernel) -> list[str]:
    """The structs that a kernel takes and that are in no file: of an op, and of its states in memory."""
    from .records import STRUCTS  # which are made of these functions

    types, constants = dict(kernel.types), dict(kernel.constants)
    record = STRUCTS.get(types.get("Op", "").partition("<")[0])
    if record is None:
        return []
    val = dtype_of(types["Tval"])
    bound = record.bind(val, val, val if record.struct.traits.product else None)
    made = [text(record, bound, types.get("Integer", "i64"))] if record.struct.printed else []
    return [*made, state_struct("Fields", bound.state)] if constants["STATES"] else made


def dtype_of(name: str) -> np.dtype:
    """The dtype of a C++ type."""
    found = next(dtype for dtype, ctype in CTYPES.items() if ctype == name)
    if found == "bfloat16":
        import ml_dtypes  # which NumPy then knows

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(found)


def ctype(dtype: np.dtype) -> str:
    """The C++ type of a number in a register."""
    return "bool" if dtype.kind == "b" else CTYPES[dtype_name(dtype)]


def state_struct(name: str, state: np.dtype) -> str:
    """A state in memory, as NumPy's structured arrays have it."""
    return f"struct {name} {{ {members(state)} }};"


def members(state: np.dtype, integer: str = "i64") -> str:
    """Fields of a struct."""
    names = state.names or ()
    return " ".join([f"{ctype(state[n]) if state[n] != np.int64 else integer} {n};" for n in names])


def text(record: Reduction, bound: Bound, integer: str) -> str:
    """The struct of a record: that of all elements, and, where NaN is left out, what leaves it out.

    ``integer``: the type of numbers of elements.
    """
    val, acc, state = CTYPES[dtype_name(bound.val)], ctype(bound.kinds["A"]), bound.state
    name = record.struct.name
    beside = f"Beside<{acc}, {integer}>"  # so that there are no gaps between fields, which nobody would write
    own = f"Plain{name}" if record.takes else name
    fields = ", ".join([f"s.{n}" if state[n] != np.int64 else f"s.{n}.get()" for n in state.names or ()])
    back = ", ".join([f"f.{n}" if state[n] != np.int64 else of(integer, beside, f"f.{n}") for n in state.names or ()])
    identity = [constant(bound.identities[n]) for n in state.names or ()]
    counts = [state[n] == np.int64 for n in state.names or ()]
    identity = [of(integer, beside, each) if counted else each for counted, each in zip(counts, identity, strict=True)]
    options = ", ".join([each.upper() for each in record.struct.options])
    lines = [
        f"struct {own} : Traits {{",
        f"  static constexpr bool PRODUCT = {str(record.struct.traits.product).lower()};",
        f"  using A = {acc};",
        f"  struct State {{ {members(state, beside)} }};",
        *([f"  enum Options {{ {options} }};"] if options else []),
        f"  static __device__ __forceinline__ State identity() {{ return {{{', '.join(identity)}}}; }}",
        *mapped(bound, val, acc, (integer, beside)),
        *function("State combine(State a, State b)", bound.combine_tree, bound, (integer, beside)),
        *finished(bound),
        f"  template <class F> static __device__ __forceinline__ F fields(State s) {{ return {{{fields}}}; }}",
        f"  template <class F> static __device__ __forceinline__ State from(F f) {{ return {{{back}}}; }}",
        "};",
    ]
    if record.takes:
        lines.append(f"using {name} = WithoutNan<{own}, {val}>;")
    return "\n".join(lines)


def of(integer: str, beside: str, value: str) -> str:
    """A number of elements in a state."""
    return f"{beside}::of(static_cast<{integer}>({value}))"


def mapped(bound: Bound, val: str, acc: str, integer: tuple[str, str]) -> list[str]:
    """What an element contributes; beside a second operand, nothing without it."""
    if bound.reduction.struct.traits.product:
        made = function(
            f"State product({val} x_, {val} y_, const Context<A>& c)", bound.map_tree, bound, integer,
            ["    A x = convert<A>(x_), y = convert<A>(y_);"],
        )
        alone = f"State map({val}, const Context<A>&) {{ return identity(); }}"
        return [*made, f"  static __device__ __forceinline__ {alone}"]
    return function(
        f"State map({val} x_, const Context<A>& c)", bound.map_tree, bound, integer, ["    A x = convert<A>(x_);"]
    )


def function(
    head: str, trees: dict[str, Typed], bound: Bound, integer: tuple[str, str], before: list[str] | None = None
) -> list[str]:
    """A function that gives a state."""
    lines = Cuda(bound)
    values = {name: lines.name(tree) for name, tree in trees.items()}
    values |= {name: of(*integer, value) for name, value in values.items() if bound.state[name] == np.int64}
    body = [*(before or []), *[f"    {line}" for line in lines.lines], f"    return {{{', '.join(values.values())}}};"]
    return [f"  static __device__ __forceinline__ {head} {{", *body, "  }"]


def finished(bound: Bound) -> list[str]:
    """What becomes of a state: the result, and a second one."""
    made = []
    for name, (_, tree) in zip(("finish", "second"), bound.finish_tree.items(), strict=False):
        lines = Cuda(bound)
        value = lines.name(tree)
        made += [
            f"  template <class Out> static __device__ __forceinline__ Out {name}(State s, const Context<A>& c) {{",
            *[f"    {line}" for line in lines.lines], f"    return convert<Out>({value});", "  }",
        ]  # fmt: skip
    return made


class Cuda(Lines):
    """Statements in C++, a typed constant for each node."""

    def __init__(self, bound: Bound) -> None:
        leaves = {name: f"c.option[{name.upper()}]" for name in bound.reduction.struct.options}
        for state, names in bound.leaves_of.items():
            for leaf, name in zip(names, bound.state.names or (), strict=True):
                leaves[leaf] = f"{state}.{name}" + (".get()" if bound.state[name] == np.int64 else "")
        super().__init__("cuda", "t", leaves)

    def assigned(self, name: str, text: str, node: Typed) -> str:
        return f"const {type_of(node.dtype)} {name} = {text};"

    def text(self, node: Typed) -> str:
        args = [self.name(arg) for arg in node.args]
        if node.head == "cast":
            return f"convert<{type_of(node.dtype)}>({args[0]})"
        made = PRIMITIVES[node.head].cuda.format(*args, real=ctype(real_of(node.dtype)))
        small = node.dtype.kind in "iu" and node.dtype.itemsize < 4
        return f"static_cast<{ctype(node.dtype)}>({made})" if small else made

    def constant(self, value: Any) -> str:
        return constant(value)


def type_of(dtype: np.dtype) -> str:
    """The type of a value: half types as they lie in memory, since nothing is computed in them."""
    return CTYPES[dtype_name(dtype)] if dtype.kind != "b" else "bool"


def constant(value: Any) -> str:
    """A number of a NumPy dtype, by its bits."""
    value = np.asarray(value)
    kind, size = value.dtype.kind, value.dtype.itemsize
    if kind == "c":
        return f"{ctype(value.dtype)}{{{constant(value.real)}, {constant(value.imag)}}}"
    bits = hex(int(value.view(f"u{size}")))
    if kind == "f":
        return f"bit_cast<{ctype(value.dtype)}>({'u64' if size == 8 else 'u32'}({bits}u{'ll' if size == 8 else ''}))"
    return f"static_cast<{ctype(value.dtype)}>({bits}u{'ll' if size == 8 else ''})"
