"""gpuops as type checkers see it: writes ``gpuops/__init__.pyi``, those of ``gpuops.array_api`` and what they share.

    python -m tests.stubs

Parameters are those of the functions, strategies those of the tables; what is written here is the types. mypy answers a
wrong call with all signatures of the function, so there are as few as can be. One serves all arrays if results have the
dtype of the first. Else there is one for NumPy's arrays, with numbers and lists, which become such, and one for those
of other libraries; before these, one for arrays that a checker does not know, and one for floating point if its dtype
is kept. The type of ``out`` is that of the result; by default it is what the result is without it. An expression has
the kind of its arrays, so it goes where these do.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import gpuops
from gpuops import array_api
from gpuops.ops import table

STRATEGIES = table.strategies()
FOLDER = Path(gpuops.__file__).parent
#: The stubs, and what they import besides types.
MODULES = {
    gpuops: """\
from . import array_api as array_api
from .tools.info import info as info
from .version import __version__ as __version__
""",
    array_api: "from . import linalg as linalg\n",
    array_api.linalg: "",
}
SHARED = '''\
"""Types of parameters and results. There is no such module when programs run."""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeVar  # which takes default=

class SupportsDLPack(Protocol):
    def __dlpack__(self) -> Any: ...

class SupportsCudaArrayInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...

class SupportsDask(Protocol):
    def __dask_graph__(self) -> Any: ...

class SupportsItemsize(Protocol):  # the dtypes of other libraries
    @property
    def itemsize(self) -> int: ...

# An array of another library than NumPy; of NumPy's; what becomes such; and a number, or a 0-d array.
Foreign: TypeAlias = SupportsDLPack | SupportsCudaArrayInterface | SupportsDask
Array: TypeAlias = npt.NDArray[Any]
Plain: TypeAlias = complex | np.generic | Sequence[Any]
Number: TypeAlias = complex | np.generic | Array | Foreign
Real: TypeAlias = float | np.integer[Any] | np.floating[Any]

Axis: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
ForeignDType: TypeAlias = npt.DTypeLike | SupportsItemsize
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
Axes: TypeAlias = Sequence[SupportsIndex | tuple[SupportsIndex, ...]]

T = TypeVar("T")
Inexact = TypeVar("Inexact", bound=np.inexact[Any])
Floating = TypeVar("Floating", bound=np.floating[Any], default=Any)
# Of arrays that go in and come out; of those of other libraries.
Kind = TypeVar("Kind", bound=Array | Foreign, default=Array)
Other = TypeVar("Other", bound=Foreign)
# Of arrays that results are written to, by what the result is if none is given.
OutArray = TypeVar("OutArray", bound=Array | Foreign, default=Array)
OutBool = TypeVar("OutBool", bound=Array | Foreign, default=npt.NDArray[np.bool])
OutIndex = TypeVar("OutIndex", bound=Array | Foreign, default=npt.NDArray[np.int64])
OutKind = TypeVar("OutKind", bound=Array | Foreign, default=Kind)
OutOther = TypeVar("OutOther", bound=Array | Foreign, default=Other)

# Nothing is of this type. Where a checker does not know that of an array, as it does not know CuPy's, it fits too: so
# results differ from signature to signature, and the checker knows that it does not know them.
class Untyped: ...

# An expression of arrays of a kind, which is Array for all of NumPy's. Operands are such arrays, too.
class Lazy(Generic[Kind]):
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def real(self) -> Lazy[Kind]: ...
    @property
    def imag(self) -> Lazy[Kind]: ...
    def astype(self, dtype: ForeignDType) -> Lazy[Kind]: ...
    def clip(
        self, min: Kind | Plain | Lazy[Kind] | None = None, max: Kind | Plain | Lazy[Kind] | None = None
    ) -> Lazy[Kind]: ...
    def conj(self) -> Lazy[Kind]: ...
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
{operators}

class Average(NamedTuple, Generic[T]):
    average: T
    weights: T

class MeanVar(NamedTuple, Generic[T]):
    mean: T
    var: T

class WithIndex(NamedTuple, Generic[T]):
    values: T
    indices: T

'''
#: The operators of expressions: with one operand, with two in either order, and comparisons.
UNARY = ("neg", "pos", "invert", "abs")
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
NAMES = {*re.findall(r"^(?:class )?(\w+)(?::| =|\()", SHARED, re.MULTILINE)}


class Kind(NamedTuple):
    """The types of a signature: of the first array, of others, of results, of ``out`` if that is a result."""

    first: str
    others: str
    result: str
    out: str = ""


UNTYPED = Kind("Untyped", "Any", "Untyped")
NUMPY = Kind("Array | Plain | Lazy[Array]", "Array | Plain | Lazy[Array]", "Array", "OutArray")
OTHER = Kind("Other | Lazy[Other]", "Other | Plain | Lazy[Other]", "Other", "OutOther")
EITHER = Kind("Kind | Plain | Lazy[Kind]", "Array | Foreign | Plain | Lazy[Any]", "Kind", "OutKind")
INEXACT, FLOATING = (
    Kind(f"npt.NDArray[{dtype}]", "Array | Plain | Lazy[Array]", f"npt.NDArray[{dtype}]")
    for dtype in ("Inexact", "Floating")
)
#: Functions that take arrays only; those that make an expression of expressions: with ``out``, they compute it.
ARRAYS_ONLY = ("matmul", "dot", "broadcast_to")
NODES = ("where",)
OPERANDS = Kind("Array | Foreign | Plain | Lazy[Any]", "Array | Foreign | Plain | Lazy[Any]", "OutArray")
#: Functions whose results have the dtype of the first array, and those that keep some dtypes of NumPy's arrays.
SAME = ("max", "min", "amax", "amin", "nanmax", "nanmin", "ptp", "expand", "broadcast_to", "compress", "evaluate")
KEEPS = (
    dict.fromkeys(("sum", "prod", "mean", "nansum", "nanprod", "nanmean"), INEXACT)
    | dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumulative_sum", "cumulative_prod"), INEXACT)
    | dict.fromkeys(("softmax", "log_softmax", "rms_norm", "logsumexp", "logcumsumexp"), FLOATING)
    | dict.fromkeys(("var", "std", "nanvar", "nanstd", "sum_of_squares", "vector_norm"), FLOATING)
    | {"where": FLOATING}
)
#: Parameters that may change the dtype; and the values of ``where``: Python's numbers take the dtype of arrays.
CHANGES = dict.fromkeys(("dtype", "b"), "None")
VALUES = dict.fromkeys(("x", "y", "x1", "x2"), "npt.NDArray[Floating] | float")
#: Which parameters are arrays; in functions of several, the first may be a number too.
FIRST = ("a", "x", "array", "a1", "x1")
OTHERS = ("b", "c", "y", "weights", "a2", "x2", "where", "condition")
SEVERAL = ("allclose", "array_equal", "dot", "matmul", "where")
#: The types of other parameters.
TYPES = {
    "axis": "Axis", "keepdims": "bool", "initial": "Number", "ddof": "Real", "correction": "Real", "returned": "bool",
    "return_sign": "bool", "scale": "Number", "ord": "float", "rtol": "float", "atol": "float", "equal_nan": "bool",
    "eps": "float", "alpha": "Number", "beta": "Number", "subok": "bool", "shape": "Shape", "casting": "Casting",
    "axes": "Axes", "dtype": "ForeignDType", "reverse": "bool", "exclusive": "bool", "include_initial": "bool",
}  # fmt: skip
#: Functions of one axis.
SEARCHES = ("argmax", "argmin", "nanargmax", "nanargmin")
EXTREMES = ("max_with_index", "min_with_index")
SELECTIONS = ("compress",)
SCANS = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "cumulative_sum", "cumulative_prod")
#: Results of NumPy's that have a dtype of their own.
OWN = (
    dict.fromkeys(("any", "all"), NUMPY._replace(result="npt.NDArray[np.bool]", out="OutBool"))
    | dict.fromkeys(("allclose", "array_equal"), NUMPY._replace(result="bool"))
    | dict.fromkeys((*SEARCHES, "count_nonzero"), NUMPY._replace(result="npt.NDArray[np.int64]", out="OutIndex"))
)
#: Results that are made of arrays: always; with a flag; of a function that is given an array alone.
MADE = {"mean_var": "MeanVar[{0}]", "lazy": "Lazy[{0}]"} | dict.fromkeys(EXTREMES, "WithIndex[{0}]")
FLAGS = {"average": ("returned", "Average[{0}]"), "logsumexp": ("return_sign", "tuple[{0}, {0}]")}
INDICES = {UNTYPED: "Untyped", NUMPY: "tuple[npt.NDArray[np.int64], ...]", OTHER: "tuple[Other, ...]"}
ALONE = {"where": INDICES, "nonzero": INDICES}


class Parameter(NamedTuple):
    """Of a signature in a stub."""

    name: str
    way: Any  # in which it is given, as inspect says it
    type_: str
    default: str  # empty if it must be given

    def __str__(self) -> str:
        return f"{self.name}: {self.type_}{self.default and f' = {self.default}'}"


def main() -> None:
    """Write the stubs."""
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")


def stubs() -> dict[Path, str]:
    """The texts of the stubs."""
    choices = {f"{family(op)}Strategy": names for op, names in STRATEGIES.items()}
    choices |= {f"{family(op)}Op": [each for each in STRATEGIES if family(each) == family(op)] for op in STRATEGIES}
    literals = [
        listed(f"{type_}: TypeAlias = Literal[", (f'"{name}"' for name in names), "]")
        for type_, names in choices.items()
    ]
    found = {FOLDER / "_types.pyi": SHARED.replace("{operators}", operators()) + "\n".join([*literals, ""])}
    for module, imports in MODULES.items():
        assert module.__file__ is not None
        path = Path(module.__file__).with_suffix(".pyi")
        found[path] = stub(module, imports, "." * len(path.relative_to(FOLDER).parts))
    return found


def operators() -> str:
    """The operators of expressions."""
    both = [name for each in BINARY for name in (each, f"r{each}")]
    lines = [f"def __{name}__(self) -> Lazy[Kind]: ..." for name in UNARY]
    for name in (*both, *COMPARISONS):
        override = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        lines.append(f"def __{name}__(self, other: Kind | Plain | Lazy[Kind]) -> Lazy[Kind]: ...{override}")
    return "\n".join([f"    {line}" for line in lines])


def family(op: str) -> str:
    """How the types of an op's strategies, and of the ops that have these, are called: after the first such op."""
    first = next(name for name, names in STRATEGIES.items() if names == STRATEGIES[op])
    return first.title().replace("_", "")


def stub(module: ModuleType, imports: str, up: str) -> str:
    """The stub of a module, from which it is as many dots up to gpuops."""
    names = [name for name in module.__all__ if name not in re.findall(r"as (\w+)", imports)]
    body = "\n".join(signature for name in names for signature in signatures(module, name))
    words = {*re.findall(r"\w+", body)}
    shared = sorted(word for word in words if word in NAMES or word.endswith(("Strategy", "Op")))
    types = [listed(f"from {up}_types import (", shared, ")", each=True)]
    near = sorted([*imports.splitlines(), *types], key=lambda line: (-line.count(".", 0, 8), line.split(" import")[0]))
    typing = [name for name in ("Any", "Literal", "SupportsIndex", "overload") if name in words]
    head = [
        f"from typing import {', '.join(typing)}",
        "",
        *(["import numpy as np"] if "np" in words else []),
        "import numpy.typing as npt",
        "",
        *near,
        "",
        listed("__all__ = [", (f'"{name}"' for name in module.__all__), "]"),
        "",
    ]
    return "\n".join([*head, body, ""])


def listed(begin: str, words: Iterable[str], end: str, each: bool = False) -> str:
    """Words between brackets, by comma: in one line if they fit into it, else in as few as they do (or a line each)."""
    words = [*words]
    line = f"{begin}{', '.join(words)}{end}"
    if len(line) <= 120:
        return line.replace("import (", "import ").removesuffix(")") if each else line
    if each:
        return "\n".join([begin, *(f"    {word}," for word in words), end])
    unbroken = ", ".join(word.replace(" ", "\xa0") for word in words)
    lines = textwrap.wrap(unbroken, 116, break_long_words=False, break_on_hyphens=False)
    return "\n".join([begin, *(f"    {line}" for line in lines), end]).replace("\xa0", " ")


def signatures(module: ModuleType, name: str) -> list[str]:
    """The signatures of a function, which are overloads if there are several."""
    if name == "strategies":
        families = dict.fromkeys(map(family, STRATEGIES))
        found = [f"def strategies(op: {first}Op) -> tuple[{first}Strategy, ...]: ..." for first in families]
    else:
        given = [*inspect.signature(getattr(module, name)).parameters.values()]
        found = [signature(name, *each) for each in overloads(name, given)]
    return [f"@overload\n{each}" for each in found] if len(found) > 1 else found


def overloads(name: str, given: list[inspect.Parameter]) -> Iterator[tuple[list[Parameter], str]]:
    """The parameters and the result of each signature of a function."""
    if name in SAME:
        yield [typed(name, each, taken(name, EITHER)) for each in given], result_of(given, EITHER)
        return
    first, *others = given
    if name in ALONE and all(each.default is None for each in others[:1]):
        for kind, result in ALONE[name].items():
            yield [Parameter(first.name, first.kind, kind.first, "")], result
        if not others:
            return
    yield [typed(name, each, UNTYPED) for each in given], UNTYPED.result
    flag, made = FLAGS.get(name, ("", ""))
    if name in KEEPS:
        types = CHANGES | {flag: "Literal[False]"} | (VALUES if name in SEVERAL else {})
        yield [typed(name, each, taken(name, KEEPS[name]), types) for each in given], KEEPS[name].result
    for kind in (taken(name, OWN.get(name, NUMPY)), taken(name, OTHER)):
        result = MADE.get(name, "{0}").format(result_of(given, kind))
        both = made.format(result)
        ways = {"Literal[False]": result, "Literal[True]": both, "bool": f"{result} | {both}"} if flag else {"": result}
        for type_, what in ways.items():
            yield [typed(name, each, kind, {flag: type_}) for each in given], what
    if name in NODES:
        for kind in (NUMPY, OTHER):
            yield [typed(name, each, kind, {"out": "None"}) for each in given], f"Lazy[{kind.result}]"
        if "out" in [each.name for each in given]:
            yield [typed(name, each, OPERANDS, {"out": "OutArray"}) for each in given], OPERANDS.result


def taken(name: str, kind: Kind) -> Kind:
    """The kind without expressions, for a function that takes none in this signature."""
    return Kind(*(re.sub(r" \| Lazy\[\w+\]", "", each) for each in kind)) if name in (*ARRAYS_ONLY, *NODES) else kind


def result_of(given: list[inspect.Parameter], kind: Kind) -> str:
    """The type of the result, which is that of ``out`` if the function has it."""
    return kind.out if "out" in [each.name for each in given] else kind.result


def typed(name: str, given: inspect.Parameter, kind: Kind, types: Mapping[str, str] | None = None) -> Parameter:
    """A parameter of a function, in a signature of a kind, in which some have other types."""
    default = "..." if given.default is gpuops.ops.reduction.NOT_GIVEN else repr(given.default).replace("'", '"')
    type_, optional = (types or {}).get(given.name, ""), given.default is None or given.name == "initial"
    must = type_ in ("Literal[True]", "bool", "OutArray") or given.kind is given.POSITIONAL_ONLY
    if given.default is given.empty or must:
        default, optional = "", False
    first = FIRST if name not in SEVERAL else ("condition", "a", "a1", "x1") if kind is UNTYPED else ()
    if type_:
        optional = False
    elif given.name == "out":
        type_, optional = kind.out or "None", bool(kind.out)
    elif given.name in (*FIRST, *OTHERS):
        type_ = kind.first if given.name in first else kind.others
    elif given.name == "strategy":
        type_ = f"{family(name if name in STRATEGIES else name.replace('a', '', 1))}Strategy"
    elif given.name == "axis" and name in (*SEARCHES, *EXTREMES, *SCANS, *SELECTIONS):
        type_ = "SupportsIndex"
    else:
        type_ = TYPES[given.name]
    return Parameter(given.name, given.kind, f"{type_} | None" if optional and type_ != "Axis" else type_, default)


def signature(name: str, parameters: list[Parameter], result: str) -> str:
    """The text of a signature. What must be given after what may be left out is given by name, and all after that."""
    first = [each for each in parameters if each.way == each.way.POSITIONAL_ONLY]
    middle = [each for each in parameters if each.way == each.way.POSITIONAL_OR_KEYWORD]
    must = [i for i, each in enumerate(middle) if i > 0 and middle[i - 1].default and not each.default]
    middle, last = middle[: (must or [None])[0]], middle[must[0] :] if must else []
    last += [each for each in parameters if each.way == each.way.KEYWORD_ONLY]
    words = [*map(str, first), *(["/"] if first else []), *map(str, middle), *(["*"] if last else []), *map(str, last)]
    return listed(f"def {name}(", words, f") -> {result}: ...")


if __name__ == "__main__":
    main()
