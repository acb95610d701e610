"""What type checkers see of gpuops."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpuops
from gpuops import array_api
from tests import stubs

USES = Path(__file__).with_name("uses_of_types.py")
CHECKERS = {
    "mypy": ("mypy", "--strict", "--config-file=", "--no-error-summary", "--cache-dir", "{folder}"),
    "pyright": ("basedpyright", "--level", "error", "--project", "{folder}/pyrightconfig.json"),
}

FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (gpuops, array_api, array_api.linalg)
    for name in module.__all__
    if callable(getattr(module, name))
}


def test_stubs_have_the_parameters_and_strategies_of_the_functions():
    for path, text in stubs.stubs().items():
        assert path.read_text(encoding="utf-8") == text, "python -m tests.stubs writes it"


@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_uses_and_no_others_are_errors(checker, tmp_path):
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(stubs.FOLDER.parent)], "include": [str(USES)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    module, *options = (word.format(folder=tmp_path) for word in CHECKERS[checker])
    command = [sys.executable, "-m", module, *options, str(USES)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=stubs.FOLDER.parent, timeout=300)
    found = {int(line) for line in re.findall(rf"{USES.name}:(\d+)(?::\d+)?(?: -)?:? error", done.stdout)}
    lines = USES.read_text(encoding="utf-8").splitlines()
    assert found == {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}, done.stdout + done.stderr


@pytest.mark.parametrize("name", [name for name in stubs.SAME + tuple(stubs.KEEPS) if name != "where"])
def test_results_have_the_dtypes_that_the_types_promise(name):
    function = getattr(gpuops if name in gpuops.__all__ else array_api, name)
    kept = stubs.KEEPS.get(name, stubs.EITHER).first
    dtypes = {stubs.INEXACT.first: "efdFD", stubs.FLOATING.first: "efd"}.get(kept, "bhilBHILefdFD")
    shape = [(2, 3)] if "shape" in inspect.signature(function).parameters else []
    before = [[True, False]] if "condition" in inspect.signature(function).parameters and name != "where" else []
    options = {"axis": 1} if name in stubs.SCANS else {}
    for dtype in map(np.dtype, dtypes):
        assert function(*before, np.ones((2, 3), dtype), *shape, **options).dtype == dtype


@pytest.mark.parametrize("values", [("f", 1), (2.5, "e"), ("f", "f"), (True, "d")])
def test_a_choice_has_the_dtype_that_the_types_promise(values):
    x, y = (np.ones(3, value) if isinstance(value, str) else value for value in values)
    (expected,) = {value.dtype for value in (x, y) if isinstance(value, np.ndarray)}
    assert gpuops.where([True, False, True], x, y).dtype == expected


def test_functions_whose_results_have_the_dtype_of_the_first_array_have_one_signature():
    """So mypy says what is wrong in a call, and lists no overloads."""
    found = {name: stubs.signatures(gpuops, name) for name in stubs.SAME}
    assert {len(signatures) for signatures in found.values()} == {1}


def test_every_function_has_a_use():
    used = re.findall(r"\b(gpuops|xp|xp\.linalg)\.(\w+)\(", USES.read_text(encoding="utf-8"))
    modules = {"gpuops": gpuops, "xp": array_api, "xp.linalg": array_api.linalg}
    assert {f"{modules[module].__name__}.{name}" for module, name in used} >= {*FUNCTIONS}
