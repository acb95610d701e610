"""The public names, and the cost of the import."""

import os
import subprocess
import sys
from pathlib import Path

import gpuops

ROOT = Path(__file__).resolve().parent.parent
IMPORT_BUDGET, NUMPYS = 0.030, 0.070  # seconds on top of NumPy's import, and of that, on the machine where this was set


def run_python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, **options)


def test_public_names_exist_and_are_sorted():
    assert all(hasattr(gpuops, name) for name in gpuops.__all__)
    assert gpuops.__all__ == sorted(gpuops.__all__)


def test_import_time_is_within_budget(tmp_path):
    """With cached bytecode, as for an installed package. CPU time, the best of several runs.

    The bound scales with NumPy's own time, as a busy machine slows both.
    """
    cached = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    cached["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    clock = "time.process_time()"
    code = f"import time; a = {clock}; import numpy; b = {clock}; import gpuops; print(b - a, {clock} - b)"
    runs = [map(float, run_python("-c", code, cwd=ROOT, env=cached).stdout.split()) for _ in range(9)]
    numpys, ours = map(min, zip(*runs, strict=True))
    bound = IMPORT_BUDGET * max(1.0, numpys / NUMPYS)
    assert ours < bound, f"gpuops: {ours * 1e3:.0f} ms, NumPy: {numpys * 1e3:.0f} ms"


def test_import_imports_no_other_library():
    code = "import sys, gpuops; print({'cupy', 'cupy_backends', 'ml_dtypes', 'scipy'} & set(sys.modules))"
    assert run_python("-c", code, cwd=ROOT).stdout == "set()\n"
