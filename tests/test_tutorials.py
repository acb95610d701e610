"""The pages with which newcomers begin: notebooks, and what the pages beside them say of functions, tests and times."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import gpuops

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NOTEBOOKS = {path.stem: path for path in sorted((DOCS / "tutorials").glob("*.ipynb"))}
EVERY_NOTEBOOK = pytest.mark.parametrize("name", NOTEBOOKS)
#: Python names of functions that compute arrays.
FUNCTIONS = {*gpuops.__all__} - {"array_api", "info", "strategies"}


def cells(name: str, kind: str) -> list[str]:
    """The text of a notebook's cells of a kind."""
    return [cell.source for cell in nbformat.read(NOTEBOOKS[name], 4).cells if cell.cell_type == kind]


def sections(page: str) -> dict[str, str]:
    """The parts of a page by heading."""
    parts = re.split(r"^## (.+)\n", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# ------------------------------------------------------------------------------------------------------- notebooks


@EVERY_NOTEBOOK
def test_notebooks_are_valid_and_hold_no_results(name):
    notebook = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len({*ids}) == len(ids)
    for cell in notebook["cells"]:
        assert (cell.get("outputs", []), cell.get("execution_count")) == ([], None)
        assert cell["metadata"].keys() <= {"tags"}


@EVERY_NOTEBOOK
def test_code_of_notebooks_uses_defined_names_and_all_imports(name):
    code = "\n\n".join(cells(name, "code"))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F", "--line-length=120", "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@EVERY_NOTEBOOK
def test_notebooks_name_no_place_of_a_machine(name):
    text = NOTEBOOKS[name].read_text(encoding="utf-8")
    assert not re.search(r"/(?:home|root|tmp|work|Users)/|[A-Z]:\\|file:", text)


@EVERY_NOTEBOOK
def test_notebooks_begin_with_a_title_and_end_with_links(name):
    prose = cells(name, "markdown")
    assert re.match(r"# .+\n\nThis notebook ", prose[0])
    assert prose[-1].startswith("## Where to go next\n") and "](../" in prose[-1]


@EVERY_NOTEBOOK
def test_the_index_of_tutorials_names_each(name):
    title = cells(name, "markdown")[0].splitlines()[0].removeprefix("# ")
    assert f"[{title}]({name}.ipynb)" in (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------------------------------- pages


@pytest.mark.parametrize("library", ["CuPy, or NumPy", "PyTorch", "JAX"])
def test_every_function_is_translated(library):
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", sections("coming-from.md")[f"From {library}"], re.MULTILINE)
    named = re.findall(r"`(?:gpuops\.)?(\w+)", " ".join(rows))
    assert {*named} >= FUNCTIONS


def test_differences_from_pytorch(torch):
    text = sections("coming-from.md")["From PyTorch"]
    example = re.search(r"^```python\n(import gpuops\nimport torch\n.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert example
    exec(example[1], {})


def test_promises_name_files_of_tests_that_exist():
    named = {*re.findall(r"\[(test_\w+\.py)\]\(\.\./tests/\1\)", (DOCS / "promises.md").read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert named <= {path.name for path in (ROOT / "tests").iterdir()}


def test_times_of_first_calls_are_those_of_the_results():
    results = json.loads((ROOT / "benchmarks" / "results" / "nvidia-h200" / "host.json").read_text(encoding="utf-8"))
    times = {
        (case["op"], case["case"].split("first call: ")[1], each["provider"]): f"{each['us'] / 1000:.3g} ms"
        for case in results["cases"] if "first call: " in case["case"] for each in case["results"]
    }  # fmt: skip
    rows = re.findall(r"^\| `(\w+)`, (\w+ \w+) \| (.+) \|$", sections("start.md")["The first call"], re.MULTILINE)
    shown = {(op, when): cells.split(" | ") for op, when, cells in rows}
    assert len(shown) == 4
    for (op, when), found in shown.items():
        assert found == [times.get((op, when, provider), "–") for provider in ("gpuops", "cupy", "torch")]
