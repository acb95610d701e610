"""gpuops as type checkers see it: writes ``gpuops/__init__.pyi``, those of ``gpuops.array_api`` and what they share.

    python -m tests.stubs

Parameters are those of the functions, strategies those of the tables; what is written here is the types. A function has
a signature for each kind of arrays that it takes, and gives back: NumPy's, with numbers and lists, which become such;
those of other libraries; whatever else NumPy makes arrays of. Another one is for ``out``, which is the result then.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
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
from typing import Any, Generic, Literal, NamedTuple, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

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

# An array of another library than NumPy; of NumPy's; what becomes such; and a number, perhaps an array without dims.
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
Kind = TypeVar("Kind", bound=Foreign)  # of arrays that go in and come out
Out = TypeVar("Out", bound=Array | Foreign)  # an array that the result is written to

# Nothing is of this type. Where a checker does not know that of an array, as it does not know CuPy's, it fits too: so
# results differ from signature to signature, and the checker knows that it does not know them.
class Untyped: ...

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
NAMES = {*re.findall(r"^(?:class )?(\w+)(?::| =|\()", SHARED, re.MULTILINE)}


class Kind(NamedTuple):
    """The types of a signature: of the first array, of others, of results, of ``dtype``."""

    first: str
    others: str
    result: str
    dtype: str


KINDS = (
    Kind("Array | Plain", "Array | Plain", "Array", "npt.DTypeLike"),
    Kind("Kind", "Kind | Plain", "Kind", "ForeignDType"),
    Kind("npt.ArrayLike", "npt.ArrayLike", "Array", "npt.DTypeLike"),
)
UNTYPED = Kind("Untyped", "Any", "Untyped", "Any")
INTO = Kind("npt.ArrayLike | Foreign", "npt.ArrayLike | Foreign", "Out", "ForeignDType")
#: Which parameters are arrays; in functions of several, the first may be a number too.
FIRST = ("a", "x", "array", "a1", "x1")
OTHERS = ("b", "c", "y", "weights", "a2", "x2", "where", "condition")
SEVERAL = ("allclose", "array_equal", "dot", "matmul", "where")
#: The types of other parameters.
TYPES = {
    "axis": "Axis", "keepdims": "bool", "initial": "Number", "ddof": "Real", "correction": "Real", "returned": "bool",
    "return_sign": "bool", "scale": "Number", "ord": "float", "rtol": "float", "atol": "float", "equal_nan": "bool",
    "alpha": "Number", "beta": "Number", "subok": "bool", "shape": "Shape", "casting": "Casting", "axes": "Axes",
}  # fmt: skip
#: Functions of one axis.
SEARCHES = ("argmax", "argmin", "nanargmax", "nanargmin")
EXTREMES = ("max_with_index", "min_with_index")
#: Results of NumPy's that have a dtype of their own.
OWN = (
    dict.fromkeys(("any", "all"), "npt.NDArray[np.bool]")
    | dict.fromkeys(("allclose", "array_equal"), "np.bool")
    | dict.fromkeys((*SEARCHES, "count_nonzero"), "npt.NDArray[np.int64]")
)
#: Results that are made of arrays: always; with a flag; of a function that is given an array alone.
MADE = {"mean_var": "MeanVar[{0}]"} | dict.fromkeys(EXTREMES, "WithIndex[{0}]")
FLAGS = {"average": ("returned", "Average[{0}]"), "logsumexp": ("return_sign", "tuple[{0}, {0}]")}
ALONE = {"where": "tuple[{0}, ...]"}


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
    found = {FOLDER / "_types.pyi": SHARED + "\n".join([*literals, ""])}
    for module, imports in MODULES.items():
        assert module.__file__ is not None
        path = Path(module.__file__).with_suffix(".pyi")
        found[path] = stub(module, imports, "." * len(path.relative_to(FOLDER).parts))
    return found


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
    types = listed(f"from {up}_types import (", shared, ")", each=True)
    near = sorted([*imports.splitlines(), types], key=lambda line: (-line.count(".", 0, 8), line.split(" import")[0]))
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


def signatures(module: ModuleType, name: str) -> Iterator[str]:
    """The signatures of a function."""
    if name == "strategies":
        for first in dict.fromkeys(map(family, STRATEGIES)):
            yield f"@overload\ndef strategies(op: {first}Op) -> tuple[{first}Strategy, ...]: ..."
        return
    given = inspect.signature(getattr(module, name)).parameters
    into = "out" in given
    if into and name in ALONE:
        for kind in (UNTYPED, *KINDS):
            alone = Parameter("condition", inspect.Parameter.POSITIONAL_ONLY, kind.first, "")
            yield signature(name, [alone], "Untyped" if kind is UNTYPED else ALONE[name].format(kind.result))
    if into:
        yield signature(name, [typed(name, each, INTO) for each in given.values()], "Out")
    yield signature(name, [typed(name, each, UNTYPED) for each in given.values()], "Untyped")
    flag, made = FLAGS.get(name, ("", ""))
    for kind in KINDS:
        result = OWN.get(name, kind.result) if kind.result == "Array" else kind.result
        result = MADE.get(name, "{0}").format(result)
        parameters = [typed(name, each, kind) for each in given.values()]
        if not flag:
            yield signature(name, parameters, result)
            continue
        both = f"{result} | {made.format(result)}"
        ways = (("Literal[False]", "False", result), ("Literal[True]", "", made.format(result)), ("bool", "", both))
        for type_, default, what in ways:
            changed = [Parameter(*each[:2], type_, default) if each.name == flag else each for each in parameters]
            yield signature(name, changed, what)


def typed(name: str, given: inspect.Parameter, kind: Kind) -> Parameter:
    """A parameter of a function, in a signature of a kind."""
    optional, type_ = given.default is None, TYPES.get(given.name, "")
    default = "..." if given.default is gpuops.ops.reduction.NOT_GIVEN else repr(given.default).replace("'", '"')
    default = "" if given.default is given.empty else default
    if given.name == "out":
        return Parameter("out", given.kind, "Out" if kind is INTO else "None", "" if kind is INTO else "None")
    if given.name in FIRST and not (name == "where" and given.name == "x"):
        type_ = kind.others if name in SEVERAL and kind is not UNTYPED else kind.first
    elif given.name in OTHERS or given.name == "x":
        type_ = kind.first if given.name == "condition" and kind is UNTYPED else kind.others
    elif given.name == "dtype":
        type_ = kind.dtype
    elif given.name == "strategy":
        type_ = f"{family(name if name in STRATEGIES else name.replace('a', '', 1))}Strategy"
    elif given.name == "axis" and name in (*SEARCHES, *EXTREMES):
        type_ = "SupportsIndex"
    if name in ALONE and given.name in ("x", "y"):
        return Parameter(given.name, given.kind, type_, "")
    optional |= given.name == "initial"
    return Parameter(given.name, given.kind, f"{type_} | None" if optional and type_ != "Axis" else type_, default)


def signature(name: str, parameters: list[Parameter], result: str) -> str:
    """The text of a signature. What must be given after what may be left out is given by name, and all after that."""
    first = [each for each in parameters if each.way == each.way.POSITIONAL_ONLY]
    middle = [each for each in parameters if each.way == each.way.POSITIONAL_OR_KEYWORD]
    must = [i for i, each in enumerate(middle) if i > 0 and middle[i - 1].default and not each.default]
    middle, last = middle[: (must or [None])[0]], middle[must[0] :] if must else []
    last += [each for each in parameters if each.way == each.way.KEYWORD_ONLY]
    words = [*map(str, first), *(["/"] if first else []), *map(str, middle), *(["*"] if last else []), *map(str, last)]
    return f"@overload\n{listed(f'def {name}(', words, f') -> {result}: ...')}"


if __name__ == "__main__":
    main()
