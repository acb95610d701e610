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
    CLIP: "ufunc::clip({}, {}, {})",
}  # fmt: skip
#: The ufuncs that kernels/common/pairs.cuh has of two elements at once.
PAIRED = ("add", "subtract", "multiply", "square", "absolute", "negative", "minimum", "maximum", "divide")
METHOD = INLINE.removeprefix("static ")


def text(code: Code) -> str:
    """The struct of an expression; kernels/common/expression.cuh says what its functions do."""
    program, memory = code.program, [CTYPES[dtype_name(dtype)] for dtype in code.program.arrays]
    params = params_of(code.rank, code.offsets, len(program.constants), code.moved)
    cached = code.fixed + code.cached
    far = tuple([k for k in range(len(memory)) if k not in cached])
    lines = [
        "namespace gpuops { namespace expression {",
        f"using Offset = {code.offset};",
        params.text if params else "",
        "struct Expression {",
        *members(code, memory, {"Raw": far, "Cached": cached}),
        "  Located located;" if params else "",
        *places(code),
        *body("Raw<N> raw(const At<Expression>& from) const", [
            *loads(code, "raw", far), "return raw;",
        ], "template <int N> "),
        *values(code, memory, cached),
        *body(f"{result_type(program)} operator[](i64 i) const", [
            f"return {'at(i)' if code.vec > 1 else '(*this + i)'}.template load<1>().get(0);",
        ]),
        "};",
        "} }",
        "using Source = expression::Expression;",
        "using From = expression::At<Source>;",
        "#define SOURCE const __grid_constant__ Source",
    ]  # fmt: skip
    return "\n".join(filter(None, lines))


def values(code: Code, memory: list[str], cached: tuple[int, ...]) -> list[str]:
    """The functions that compute elements."""
    program = code.program
    made, pair = result_type(program), pair_of(program)
    packs = [f"{'cached' if k in cached else 'raw'}.x{k}" for k in range(len(memory))]
    given, words = [", ".join([pack + part for pack in packs]) for part in (".get(v)", ".word[w]")]
    of_pairs = [
        "if constexpr (N % 2 == 0) {",
        "#pragma unroll",
        f"  for (int w = 0; w < N / 2; ++w) set_pair(items, w, values({words}));",
        "  return items;",
        "}",
    ]  # fmt: skip
    return [
        *body(f"{made} value({parameters(memory)}) const", statements(program)),
        *(body(
            f"{result_type(program, pair)} values({parameters([pair] * len(memory))}) const", statements(program, pair)
        ) if pair else ()),
        *body(f"Items<{made}, N> made(const At<Expression>& from, const Raw<N>& raw) const", [
            *loads(code, "cached", cached),
            f"Items<{made}, N> items;",
            *of_pairs * (pair is not None),
            "#pragma unroll",
            f"for (int v = 0; v < N; ++v) items.set(v, value({given}));",
            "return items;",
        ], "template <int N> "),
    ]  # fmt: skip


def parameters(types: list[str]) -> str:
    """The text of a function's parameters for the operands."""
    return ", ".join([f"{type_} x{k}" for k, type_ in enumerate(types)])


def places(code: Code) -> list[str]:
    """The functions that locate elements."""
    index = "u32" if code.offset == "i32" else "i64"
    moving = " || ".join([f"k == {i}" for i, step in enumerate(code.steps or ()) if step]) or "false"
    locate = [f"located.axes.locate(static_cast<{index}>(i), there);"] * bool(code.located)
    return [
        f"  static {METHOD} constexpr int step(int k) {{ return {moving} ? 1 : 0; }}",
        *body("void locate(Index i, Places& there) const", locate),
        *body("void begin(Fixed& fixed, const Places& there) const", begins(code)),
        *body("At<Expression> at(i64 i) const", [
            f"At<Expression> from{{this, static_cast<Index>({'i + located.first' if code.moved else 'i'})}};",
            *["locate(from.at, from.there);"] * bool(code.steps),
            "return from;",
        ]),
        *body("At<Expression> operator+(i64 i) const", [
            "At<Expression> from = at(i);",
            *["begin(from.fixed, from.there);"] * bool(code.fixed),
            "return from;",
        ]),
    ]  # fmt: skip


def members(code: Code, memory: list[str], packs: dict[str, tuple[int, ...]]) -> list[str]:
    """The struct's constants, types and pointers, given the types of operands in memory; ``packs``: which operands have
    a pack in these structs."""
    of = {name: "".join([f" Items<{memory[k]}, N> x{k};" for k in places]) for name, places in packs.items()}
    fixed = "".join([f" Items<{memory[k]}, {code.vec}> x{k};" for k in code.fixed])
    return [
        f"  using Index = {code.offset};",
        f"  static constexpr int LOCATED = {code.offsets}, SIZE = {code.program.dtype.itemsize};",
        f"  static constexpr bool EARLY = {str(code.ahead).lower()}, LINEAR = {str(code.steps is not None).lower()};",
        "  static constexpr int KEPT = LINEAR ? LOCATED : 0;",
        *[f"  template <int N> struct {name} {{{text} }};" for name, text in of.items()],
        f"  struct Fixed {{{fixed} }};",
        f"  using Places = Index[{max(code.offsets, 1)}];",
        *[f"  const {type_}* x{k};" for k, type_ in enumerate(memory)],
    ]


def body(head: str, lines: list[str], before: str = "") -> list[str]:
    """A function of the struct."""
    return [f"  {before}{METHOD} {head} {{", *[f"    {line}" for line in lines], "  }"]


# ------------------------------------------------------------------------------------------------------------ operands


def fetch(code: Code, k: int, count: str, at: str) -> str:
    """The text that loads elements of an operand."""
    way = code.ways[k]
    step = "Offset(1)" if way == SHIFTED else "Offset(0)"
    if way == STRIDED:
        step = f"located.axes.stride[{code.offset_of[k]}][{code.rank - 1}]"
    return f"fetch<{way}, {count}>(x{k}, {at}, {step})"


def begins(code: Code) -> list[str]:
    """The statements that load the packs of operands that do not move."""
    places = {k: f"there[{place}]" for k, place in code.offset_of.items()}
    return [f"fixed.x{k} = {fetch(code, k, str(code.vec), places[k])};" for k in code.fixed]


def loads(code: Code, to: str, operands: tuple[int, ...]) -> list[str]:
    """The statements that load N elements of operands to a struct ``to``."""
    there = {k: f"there[{place}]" for k, place in code.offset_of.items()}
    each = [k for k in operands if code.ways[k] == EACH and k not in code.fixed]
    lines = [f"{to.capitalize()}<N> {to};"]
    lines += ["Places there;", "from.locate(there);"] * any([k in there for k in operands])
    for k in operands:
        if k in code.fixed:
            lines.append(f"if constexpr (N == {code.vec}) {to}.x{k} = from.fixed.x{k};")
            lines.append(f"else {to}.x{k}.set(0, x{k}[{there[k]}]);")
        elif k in each:
            lines.append(f"{to}.x{k}.set(0, x{k}[{there[k]}]);")
        else:
            lines.append(f"{to}.x{k} = {fetch(code, k, 'N', there.get(k, 'from.at'))};")
    if each:
        lines += [
            "#pragma unroll",
            "for (int v = 1; v < N; ++v) {",
            "  locate(from.at + v, there);",
            *[f"  {to}.x{k}.set(v, x{k}[{there[k]}]);" for k in each],
            "}",
        ]
    return lines


# -------------------------------------------------------------------------------------------------------------- values


def statements(program: Program, pair: str | None = None) -> list[str]:
    """The statements that compute an element, given those of the operands, ``x0`` and so on; or a pair of a type."""
    names = [f"x{k}" for k in range(len(program.arrays))] + [f"c{k}" for k in range(len(program.constants))]
    dtypes, lines = [*program.arrays, *program.constants], []
    for k, dtype in enumerate(program.constants):
        memory = CTYPES[dtype_name(dtype)]
        lines.append(f"const {pair or memory} c{k}{{constant<{memory}>(located.constant[{k}])}};")
    steps = program.steps[:-1] if program.several else program.steps
    last = program.steps[-1].args if program.several else (program.first + len(steps) - 1 if steps else 0,)
    for i, step in enumerate(steps):
        made = computed_in_pairs(step, names, pair) if pair else computed(step, names, dtypes)
        lines.append(f"const {pair or ctype(step.dtypes[-1])} t{i} = {made};")
        names.append(f"t{i}")
        dtypes.append(step.dtypes[-1])
    of_type = "{}" if pair else f"convert<{CTYPES[dtype_name(program.dtype)]}>({{}})"
    results = ", ".join([of_type.format(names[place]) for place in last])
    return [*lines, f"return {{{{{results}}}}};" if program.several else f"return {results};"]


def result_type(program: Program, pair: str | None = None) -> str:
    """The type of what a program gives for an element, or for a pair of a type."""
    one = pair or CTYPES[dtype_name(program.dtype)]
    return f"Several<{one}, {program.several}>" if program.several else one


def pair_of(program: Program) -> str | None:
    """The type of pairs in which a program can be computed: if all its dtypes are one of 16 bits of a float."""
    dtypes = {*program.arrays, *program.constants, *[dtype for step in program.steps for dtype in step.dtypes]}
    return f"ufunc::Pair<{CTYPES[dtype_name(program.dtype)]}>" if len(dtypes) == 1 and is_half(program.dtype) else None


def computed_in_pairs(step: Step, names: list[str], pair: str) -> str:
    """The text of a step's results of two elements, of which the ufuncs in ``PAIRED`` make both at once."""
    args = [names[place] for place in step.args]
    if step.name == ASTYPE:
        return args[0]
    if step.name in PAIRED:
        return f"ufunc::{step.name}({', '.join(args)})"
    function = OTHERS.get(step.name) or f"ufunc::{step.name}({', '.join(['{}'] * len(args))})"
    return f"{pair}({', '.join([function.format(*[f'{arg}.{part}()' for arg in args]) for part in ('low', 'high')])})"


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
    return f"ufunc::rounded<{ctype(step.dtypes[-1])}>({made})" if rounds else made


def is_half(dtype: np.dtype) -> bool:
    """Whether a dtype has 16 bits of a float."""
    return dtype_name(dtype) in ("float16", "bfloat16")
