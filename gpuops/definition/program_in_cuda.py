"""Prints a program as the C++ struct ``Expression``, which kernels take in the place of a pointer."""

from __future__ import annotations

import numpy as np

from ..plan.dtypes import CTYPES, dtype_name
from ..plan.expression import EACH, SAME, SHIFTED, STRIDED, Code, params_of
from .in_cuda import INLINE, ctype
from .program import ASTYPE, CLIP, IMAG, REAL, WHERE, Program, Step

#: What computes the operations that are not ufuncs.
OTHERS = {
    ASTYPE: "{}", REAL: "{}.re", IMAG: "{}.im", WHERE: "({} ? {} : {})",
    CLIP: "ufunc::minimum(ufunc::maximum({}, {}), {})",
}  # fmt: skip
PLACES = "Index (&there)[LOCATED > 0 ? LOCATED : 1]"
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
    there = {k: f"from.there[{i}]" for i, k in enumerate(located)}
    steps = {k: f"located.axes.stride[{i}][{code.rank - 1}]" for i, k in enumerate(located)}
    moving = " || ".join([f"k == {i}" for i, step in enumerate(code.steps or ()) if step]) or "false"
    locate = f"located.axes.locate(static_cast<{index}>(at), there);" if located else ""
    loads = {k: f"fetch<{way}, {{n}}>(x{k}, {{at}}, {step_of(way, steps.get(k, ''))})" for k, (_, way) in pairs}
    fetched = [
        f"raw.x{k} = {loads[k].format(n='N', at=there.get(k, 'from.at'))};"
        for k, (_, way) in pairs if way != EACH and k not in code.fixed
    ]  # fmt: skip
    fetched += [
        f"if constexpr (N == {code.vec}) raw.x{k} = from.fixed.x{k}; else raw.x{k}.set(0, x{k}[{there[k]}]);"
        for k in code.fixed
    ]
    begun = [f"fixed.x{k} = {loads[k].format(n=code.vec, at=there[k].removeprefix('from.'))};" for k in code.fixed]
    each = [k for k in located if ways[k] == EACH and k not in code.fixed]
    others = [
        "Index there[LOCATED];",
        "#pragma unroll",
        "for (int v = 1; v < N; ++v) {",
        "  locate(from.at + v, there);",
        *[f"  raw.x{k}.set(v, x{k}[there[{located.index(k)}]]);" for k in each],
        "}",
    ]
    lines = [
        "namespace gpuops { namespace expression {",
        f"using Offset = {code.offset};",
        params.text if params else "",
        "struct Expression {",
        f"  using Index = {code.offset};",
        f"  static constexpr int LOCATED = {len(located)};",
        f"  static constexpr int WHOLE = {len([way for way in ways if way in (SAME, SHIFTED)])};",
        f"  static constexpr bool LINEAR = {str(code.steps is not None).lower()};",
        *[f"  const {type_}* x{k};" for k, (type_, _) in pairs],
        "  Located located;" if params else "",
        f"  template <int N> struct Raw {{ {' '.join([f'Items<{type_}, N> x{k};' for k, (type_, _) in pairs])} }};",
        f"  struct Fixed {{ {' '.join([f'Items<{memory[k]}, {code.vec}> x{k};' for k in code.fixed])} }};",
        f"  static {METHOD} constexpr int step(int k) {{ return {moving} ? 1 : 0; }}",
        f"  {METHOD} void locate(Index at, Index* there) const {{ {locate} }}".replace("Index* there", PLACES),
        f"  {METHOD} {made} value({parameters}) const {{",
        *[f"    {line}" for line in statements(program)],
        "  }",
        f"  template <int N> {METHOD} Raw<N> raw(const At<Expression>& from) const {{",
        "    Raw<N> raw;",
        *[f"    {line}" for line in fetched],
        *[f"    raw.x{k}.set(0, x{k}[{there[k]}]);" for k in each],
        *[f"    {line}" for line in others if each],
        "    return raw;",
        "  }",
        f"  template <int N> {METHOD} Items<{made}, N> made(const Raw<N>& raw) const {{",
        f"    Items<{made}, N> items;",
        "#pragma unroll",
        f"    for (int v = 0; v < N; ++v) items.set(v, value({values}));",
        "    return items;",
        "  }",
        f"  {METHOD} void begin(Fixed& fixed, const {PLACES[:5]} {PLACES[5:]}) const {{ {' '.join(begun)} }}",
        f"  {METHOD} At<Expression> operator+(i64 i) const {{",
        "    At<Expression> from = at(i);",
        "    begin(from.fixed, from.there);",
        "    return from;",
        "  }",
        f"  {METHOD} At<Expression> at(i64 i) const {{",
        "    At<Expression> from{this, static_cast<Index>(i)};",
        "    locate(from.at, from.there);",
        "    return from;",
        "  }",
        f"  {METHOD} {made} operator[](i64 i) const {{ return at(i).template load<1>().get(0); }}",
        "};",
        "} }",
        "using Source = expression::Expression;",
        "using From = expression::At<Source>;",
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
