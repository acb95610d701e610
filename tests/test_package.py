"""The contents of the wheel, and the cost of the import."""

import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import gpuops

ROOT = Path(__file__).resolve().parent.parent
IMPORT_BUDGET = 0.030  # seconds on top of NumPy's import, itself 0.07 on the machine where this was set


def run_python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel, built from a copy of the sources without leftovers of earlier builds."""
    have = {name: version(name) for name in ("pip", "setuptools") if find_spec(name)}
    if len(have) < 2 or int(have["setuptools"].split(".")[0]) < 77:
        pytest.skip(f"a wheel is built by pip and setuptools 77, which `make test` installs; here: {have}")
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "gpuops", folder / "gpuops", ignore=shutil.ignore_patterns("__pycache__"))
    build = ("-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", "dist")
    done = run_python(*build, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (folder / "dist").iterdir()
    with zipfile.ZipFile(path) as file:
        yield path.name, file


def test_wheel_is_named_after_distribution_and_version(wheel):
    assert wheel[0] == f"gpuops_cupy-{gpuops.__version__}-py3-none-any.whl"


def test_wheel_holds_modules_kernels_and_type_marker(wheel):
    sources = {
        str(path.relative_to(ROOT))
        for pattern in ("*.py", "*.pyi", "*.cu", "*.cuh", "py.typed")
        for path in (ROOT / "gpuops").rglob(pattern)
    }
    packed = {name for name in wheel[1].namelist() if ".dist-info/" not in name}
    assert "gpuops/py.typed" in sources
    assert packed == sources


def test_wheel_metadata(wheel):
    (name,) = (name for name in wheel[1].namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel[1].read(name).decode())
    assert metadata["Name"] == "gpuops-cupy"
    assert metadata["Version"] == gpuops.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "MIT"
    required = metadata.get_all("Requires-Dist")
    assert [line for line in required if "extra" not in line] == ["numpy>=2.0"]
    assert {"cuda12", "cuda13", "dask", "test", "bench", "docs"} <= set(metadata.get_all("Provides-Extra"))
    assert 'cupy-cuda12x[ctk]>=14; extra == "cuda12"' in required
    assert 'cupy-cuda13x[ctk]>=14; extra == "cuda13"' in required


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
    assert ours < max(IMPORT_BUDGET, 0.25 * numpys), f"gpuops: {ours * 1e3:.0f} ms, NumPy: {numpys * 1e3:.0f} ms"


def test_import_imports_no_other_library():
    code = "import sys, gpuops; print({'cupy', 'cupy_backends', 'ml_dtypes', 'scipy'} & set(sys.modules))"
    assert run_python("-c", code, cwd=ROOT).stdout == "set()\n"
