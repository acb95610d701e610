"""Prints a program as the C++ struct ``Expression``, which kernels take in the place of a pointer."""

from __future__ import annotations

import numpy as np

from ..plan.dtypes import CTYPES, dtype_name
from ..plan.expression import EACH, SHIFTED, STRIDED, Code, params_of
from .in_cuda import INLINE, ctype
from .program import ASTYPE, CLIP, IMAG, REAL, WHERE, Program, Step

#: What computes the operations that are not ufuncs.
OTHERS = {
    ASTYPE: "{}", REAL: "{}.re", IMAG: "{}.im", WHERE: "({} ? {} : {})",
    CLIP: "ufunc::minimum(ufunc::maximum({}, {}), {})",
}  # fmt: skip
METHOD = INLINE.removeprefix("static ")


def text(code: Code) -> str:
    """The struct of an expression."""
    program: Program = code.program
    ways, located = code.ways, code.located
    memory = [CTYPES[dtype_name(dtype)] for dtype in program.arrays]
    made, index = CTYPES[dtype_name(program.dtype)], "u32" if code.offset == "i32" else "i64"
    params = params_of(code.rank, len(located), len(program.constants))
    pairs = [*enumerate(zip(memory, ways, strict=True))]
    parameters = ", ".join([f"{type_} x{k}" for k, type_ in enumerate(memory)])
    values = ", ".join([f"raw.x{k}.get(v)" for k in range(len(memory))])
    at = {k: f"at[{i}]" for i, k in enumerate(located)}
    steps = {k: f"located.axes.stride[{i}][{code.rank - 1}]" for i, k in enumerate(located)}
    each = [k for k in located if ways[k] == EACH]
    locate = f"located.axes.locate(static_cast<{index}>({{}}), at);"
    lines = [
        "namespace gpuops { namespace expression {",
        f"using Offset = {code.offset};",
        params.text if params else "",
        "struct Expression {",
        *[f"  const {type_}* x{k};" for k, (type_, _) in pairs],
        "  Located located;" if params else "",
        f"  template <int N> struct Raw {{ {' '.join([f'Items<{type_}, N> x{k};' for k, (type_, _) in pairs])} }};",
        f"  {METHOD} {made} value({parameters}) const {{",
        *[f"    {line}" for line in statements(program)],
        "  }",
        f"  template <int N> {METHOD} Raw<N> raw(Offset i) const {{",
        "    Raw<N> raw;",
        *([f"    Offset at[{len(located)}];", f"    {locate.format('i')}"] if located else []),
        *[
            f"    raw.x{k} = fetch<{way}, N>(x{k}, {at.get(k, 'i')}, {step_of(way, steps.get(k, ''))});"
            for k, (_, way) in pairs if way != EACH
        ],
        *[f"    raw.x{k}.set(0, x{k}[{at[k]}]);" for k in each],
        *([
            "#pragma unroll",
            "    for (int v = 1; v < N; ++v) {",
            f"      {locate.format('i + v')}",
            *[f"      raw.x{k}.set(v, x{k}[{at[k]}]);" for k in each],
            "    }",
        ] if each else []),
        "    return raw;",
        "  }",
        f"  template <int N> {METHOD} Items<{made}, N> made(const Raw<N>& raw) const {{",
        f"    Items<{made}, N> items;",
        "#pragma unroll",
        f"    for (int v = 0; v < N; ++v) items.set(v, value({values}));",
        "    return items;",
        "  }",
        f"  template <int N> {METHOD} Items<{made}, N> load(Offset i) const {{ return made<N>(raw<N>(i)); }}",
        f"  {METHOD} At<Expression, Offset> operator+(i64 i) const {{ return {{this, static_cast<Offset>(i)}}; }}",
        f"  {METHOD} {made} operator[](i64 i) const {{ return load<1>(static_cast<Offset>(i)).get(0); }}",
        "};",
        "} }",
        "using Source = expression::Expression;",
        "using From = expression::At<Source, expression::Offset>;",
    ]  # fmt: skip
    return "\n".join(filter(None, lines))


def step_of(way: str, step: str) -> str:
    """The step between neighbours in a pack of an operand."""
    return step if way == STRIDED else "Offset(1)" if way == SHIFTED else "Offset(0)"


def statements(program: Program) -> list[str]:
    """The statements that compute an element, given those of the operands: ``x0`` and so on."""
    names, dtypes, lines = [], [], []
    for k, dtype in enumerate(program.arrays):
        names.append(f"x{k}")
        dtypes.append(dtype)
    for k, dtype in enumerate(program.constants):
        names.append(f"c{k}")
        dtypes.append(dtype)
        memory = CTYPES[dtype_name(dtype)]
        lines.append(f"const {memory} c{k} = constant<{memory}>(located.constant[{k}]);")
    for i, step in enumerate(program.steps):
        lines.append(f"const {ctype(step.dtypes[-1])} t{i} = {computed(step, names, dtypes)};")
        names.append(f"t{i}")
        dtypes.append(step.dtypes[-1])
    return [*lines, f"return convert<{CTYPES[dtype_name(program.dtype)]}>({names[-1]});"]


def computed(step: Step, names: list[str], dtypes: list[np.dtype]) -> str:
    """The text of a step's result: operands are cast to its dtypes, halves are computed in float32 and rounded."""
    args = []
    for place, dtype in zip(step.args, step.dtypes, strict=False):
        cast = f"convert<{ctype(dtype)}>({names[place]})"  # (a bool in memory is not one in a register)
        text = names[place] if dtype == dtypes[place] and dtype.kind != "b" else cast
        args.append(f"widen({text})" if is_half(dtype) and step.name not in (ASTYPE, WHERE) else text)
    if step.name == ASTYPE:
        return f"convert<{ctype(step.dtypes[-1])}>({names[step.args[0]]})"
    made = OTHERS[step.name].format(*args) if step.name in OTHERS else f"ufunc::{step.name}({', '.join(args)})"
    rounds = is_half(step.dtypes[-1]) and step.name != WHERE
    return f"convert<{ctype(step.dtypes[-1])}>({made})" if rounds else made


def is_half(dtype: np.dtype) -> bool:
    """Whether a dtype has 16 bits of a float."""
    return dtype_name(dtype) in ("float16", "bfloat16")
