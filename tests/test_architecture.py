"""The layers of the package: allowed imports, declared libraries, and size limits."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import gpuops
from gpuops.definition.records import STRUCTS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(gpuops.__file__).parent
#: The layers from top to bottom; imports only go down. Modules outside them are "" (above) or "base" (below).
LAYERS = ("", "tools", "adapters", "ops", "call", "device", "host", "definition", "plan", "base")
BASE = ("errors", "version")


def modules() -> list[str]:
    """All modules, named relative to the package."""
    paths = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix("__init__").rstrip(".") for path in paths)


def layer(module: str) -> str:
    """The layer that a module is in."""
    head, _, rest = module.partition(".")
    return head if head in LAYERS else "base" if head in BASE and not rest else ""


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(source(module).read_text(encoding="utf-8"))


def source(module: str) -> Path:
    """The file of a module."""
    path = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def imports(module: str) -> Iterator[str]:
    """The gpuops modules that a module imports, also inside functions."""
    own = module.split(".") if module else []
    package = own if source(module).name == "__init__.py" else own[:-1]
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            elif (node.module or "").split(".")[0] == "gpuops":
                base = (node.module or "").split(".")[1:]
            else:
                continue
            name = ".".join(filter(None, base))
            for alias in node.names:
                below = f"{name}.{alias.name}".lstrip(".")
                yield below if below in modules() else name
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.split(".")[0] == "gpuops")


@pytest.mark.parametrize("module", modules())
def test_no_layer_imports_a_higher_one(module):
    for other in imports(module):
        assert LAYERS.index(layer(module)) <= LAYERS.index(layer(other)), f"{module} imports {other}"
        assert other or not module, f"{module} imports the package itself"


def test_imports_have_no_cycles():
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for other in imports(module):
                visit(other, (*path, module))
            done.add(module)

    for module in modules():
        visit(module, ())


def test_dir_lists_only_public_names():
    assert {*dir(gpuops)} == {*gpuops.__all__, "__version__"}


def test_numpy_arrays_load_no_planner():
    code = (
        "import sys, gpuops, numpy\n"
        "x = numpy.ones((3, 3))\n"
        "gpuops.sum(x, 0), gpuops.softmax(x), gpuops.where(x > 0, x, 0), gpuops.matmul(x, x), gpuops.argmax(x)\n"
        "gpuops.cumsum(x)\n"
        "names = 'maps', 'reductions.launch', 'reductions.strategies', 'rows', 'products', 'scans'\n"
        "print(*{f'gpuops.plan.{name}' for name in names} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "\n", done.stderr


def test_importing_the_package_imports_no_other_library():
    code = (
        "import sys, gpuops, numpy\n"
        "gpuops.sum(numpy.ones(3))\n"
        "print({'cupy', 'torch', 'dask', 'jax', 'scipy', 'ml_dtypes'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "set()\n", done.stderr


# ----------------------------------------------------------------------------------------------------- other libraries

ROOT = PACKAGE.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OURS = {"gpuops", "benchmarks", "tests", "docs", "site_map", "drawings"}
#: Libraries that tests import and no extra installs: make chooses the CuPy for the GPU, and installs PEERS.
OF_MAKE = {"cupy", "cupy_backends", "cupyx", "cuda", "torch"}


def libraries(*places: str) -> set[str]:
    """The modules of other libraries that the code in these files and folders imports, also where that may fail."""
    found: set[str] = set()
    for place in places:
        for path in (ROOT / place).rglob("*.py") if (ROOT / place).is_dir() else [ROOT / place]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                found |= {name.partition(".")[0] for name in imported(node)}
    return found - OURS - sys.stdlib_module_names


def imported(node: ast.AST) -> Iterable[str]:
    """The modules that a statement or a call of importorskip imports; none for relative imports."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(level=0, module=str(name)):
            return [name]
        case ast.Call(func=ast.Attribute(attr="importorskip"), args=[ast.Constant(value=str(name)), *_]):
            return [name]
    return []


def required(requirements: Iterable[str]) -> set[str]:
    """The distributions that requirements name; an extra of gpuops stands for its own requirements."""
    found: set[str] = set()
    for requirement in requirements:
        name, extras = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement).groups()
        if name == PROJECT["project"]["name"]:
            for extra in extras.split(","):
                found |= required(PROJECT["project"]["optional-dependencies"][extra])
        else:
            found.add(normalized(name))
    return found


def normalized(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_mypy_finds_the_same_whatever_is_installed():
    """What gpuops and its benchmarks import is installed with gpuops, or mypy skips it."""
    settings = PROJECT["tool"]["mypy"]
    skipped = [each["module"] for each in settings["overrides"] if each.get("follow_imports") == "skip"]
    known = {name.removesuffix(".*") for names in skipped for name in names}
    assert libraries(*settings["files"]) - known <= required(PROJECT["project"]["dependencies"])


@pytest.mark.parametrize(("folder", "extra"), [("tests", "test"), ("docs", "docs")])
def test_what_a_folder_imports_its_own_extra_installs(folder, extra):
    """Itself, not as a requirement of something else, nor because another target of make has installed it."""
    project, providers = PROJECT["project"], packages_distributions()
    declared = required([*project["dependencies"], *project["optional-dependencies"][extra]])
    for library in libraries(folder) - OF_MAKE:
        assert declared & {*map(normalized, providers.get(library, [library]))}, f"{folder}/ imports {library}"


# --------------------------------------------------------------------------------------------------------------- sizes

LINES, FUNCTION_LINES, PARAMETERS = 400, 40, 8

#: Functions exempt from the limits, and why.
LARGE_FUNCTIONS: dict[str, str] = {
    "ops.reduction.reduction": "NumPy's parameters of reductions, and the op",
    **dict.fromkeys([f"ops.variance.{op}" for op in ("var", "std", "nanvar", "nanstd")], "NumPy's parameters"),
    "plan.reductions.launch.kernel_with": "the facts that tell kernels apart",
    "ops.matmul.matmul": "NumPy's parameters, and the addend's",
    **dict.fromkeys(("ops.states.partial", "ops.states.finish"), "a chunk's place, and the op's parameters"),
    "ops.rows.finished": "a chunk, the states of its rows, and the op's parameters",
    "ops.softmax.logsumexp": "SciPy's parameters, and the mask's",
    "adapters.dask.matrix_product": "the op's parameters",
}


@pytest.mark.parametrize("module", modules())
def test_files_stay_small(module):
    assert source(module).read_text(encoding="utf-8").count("\n") <= LINES


def test_functions_stay_small():
    functions = ((module, node) for module in modules() for node in ast.walk(tree(module)))
    large = {
        f"{module}.{node.name}" for module, node in functions if isinstance(node, ast.FunctionDef) and too_large(node)
    }
    assert large == {*LARGE_FUNCTIONS}


def too_large(function: ast.FunctionDef) -> bool:
    """Whether a function has too many lines or parameters."""
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    parameters = len([name for name in names if name not in ("self", "cls")])
    return parameters > PARAMETERS or length(function) > FUNCTION_LINES


def length(function: ast.FunctionDef) -> int:
    """The lines of a function without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


def test_no_code_asks_for_the_name_of_an_op():
    """What an op does is in its record; code that compares names does something else for one op than for others."""
    names = {*gpuops.__all__, *STRUCTS} - {"where"}  # which is also a parameter
    found = [
        f"{module}:{node.lineno}: {word.value}"
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.Compare, ast.MatchValue))
        for word in ast.walk(node)
        if isinstance(word, ast.Constant) and word.value in names
    ]
    assert found == []
