"""The sdist and the wheel: what they hold, and that what is installed from them works."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from html.parser import HTMLParser
from importlib.metadata import distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import gpuops
from tests.versions import VERSIONS

ROOT = Path(__file__).resolve().parent.parent
NAME = f"gpuops_cupy-{gpuops.__version__}"
#: The sources: what the package, its tests, its docs and its benchmarks need.
FILES = (
    ".pre-commit-config.yaml", "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE",
    "MANIFEST.in", "Makefile", "README.md", "SECURITY.md", "pyproject.toml", "setup.py",
)  # fmt: skip
FOLDERS = (".github", "benchmarks", "docs", "gpuops", "tests")
LEFTOVERS = (
    ".hypothesis/examples/0", ".venv/bin/python", "benchmarks/results/cpu/sum.part.json", "build/docs/index.html",
    "build/lib/gpuops/old.py", "dist/old.whl", "docs/api/generated/gpuops.old.rst", "tests/old.pyc",
    "docs/tutorials/.ipynb_checkpoints/old-checkpoint.ipynb", "gpuops/__pycache__/old.cpython-310.pyc",
    "gpuops/prebuilt/sm_90.kernels",
)  # fmt: skip
#: What setuptools adds to an sdist.
METADATA = re.compile(r"PKG-INFO|setup\.cfg|gpuops_cupy\.egg-info/[\w.-]+")
#: Prints whose code runs, and the results of two calls.
CALLS = """
import gpuops, numpy
print(gpuops.__file__)
print(gpuops.sum(numpy.arange(12.0).reshape(3, 4), axis=1).tolist(), gpuops.softmax([0.0, 0.0]).tolist())
"""


def run(*command, **options):
    """A finished command that has succeeded."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


class Distributions(NamedTuple):
    """What was built, and the files that it was built from."""

    sdist: Path
    wheel: Path
    sources: set[str]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist, from a copy of the sources beside leftovers of other work, and the wheel, from the sdist."""
    have = {name: version(name) for name in ("build", "pip", "setuptools") if find_spec(name)}
    if len(have) < 3 or int(have["setuptools"].split(".")[0]) < 77:
        pytest.skip(f"this needs build, pip and setuptools 77, which `make test` installs; here: {have}")
    folder = tmp_path_factory.mktemp("sources")
    ignored = shutil.ignore_patterns(
        "__pycache__", "*.part.json", "*_cache", ".ipynb_checkpoints", "generated", "prebuilt"
    )
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    sources = files_below(folder)
    for name in LEFTOVERS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    dist = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, folder)
    return Distributions(dist / f"{NAME}.tar.gz", dist / f"{NAME}-py3-none-any.whl", sources)


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def unpacked(distributions, tmp_path_factory):
    """The folder of an unpacked sdist."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(distributions.sdist) as file:
        file.extractall(folder)
    return folder / NAME


def environment(folder, *packages):
    """The interpreter of a new virtual environment that sees these packages of the running one, and no others."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        found = distribution(package)
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (site / name).symlink_to(found.locate_file(name))
    return folder / "bin" / "python"


def install(python, file):
    """Install a distribution as a user does, without the network."""
    options = ("--no-index", "--no-deps", "--no-build-isolation", "--quiet")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, file)


# ------------------------------------------------------------------------------------------------------------ contents


def test_sdist_holds_all_sources_and_no_leftovers(unpacked, distributions):
    packed = {name for name in files_below(unpacked) if not METADATA.fullmatch(name)}
    assert packed == distributions.sources


def test_wheel_holds_package_and_code_of_benchmarks(distributions):
    parts = {"gpuops": r"gpuops/.*\.(py|pyi|cu|cuh)|gpuops/py\.typed", "gpuops/benchmarks": r"benchmarks/\w+\.py"}
    expected = {
        re.sub("^benchmarks", "gpuops/benchmarks", name)
        for name in distributions.sources
        if any(re.fullmatch(pattern, name) for pattern in parts.values())
    }
    with zipfile.ZipFile(distributions.wheel) as file:
        packed = {name for name in file.namelist() if ".dist-info/" not in name}
    assert packed == expected
    assert {"gpuops/py.typed", "gpuops/__init__.pyi", "gpuops/benchmarks/cli.py"} < packed


@pytest.fixture(scope="module")
def metadata(distributions) -> Message:
    """The metadata of the wheel."""
    with zipfile.ZipFile(distributions.wheel) as file:
        return Parser().parsestr(file.read(f"{NAME}.dist-info/METADATA").decode())


def test_wheel_metadata(metadata):
    assert metadata["Name"] == "gpuops-cupy"
    assert metadata["Version"] == gpuops.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "MIT"
    names = (line.rpartition(" ")[2] for line in metadata.get_all("Classifier") if ":: Python :: 3." in line)
    assert {*names} == {name for name in VERSIONS if not name.startswith("3.14")}  # claimed once it has been tested
    required = metadata.get_all("Requires-Dist")
    assert [line for line in required if "extra" not in line] == ["numpy>=2.0"]
    assert {"cuda12", "cuda13", "dask", "test", "bench", "docs"} <= set(metadata.get_all("Provides-Extra"))
    assert 'cupy-cuda12x[ctk]>=14; extra == "cuda12"' in required
    assert 'cupy-cuda13x[ctk]>=14; extra == "cuda13"' in required


class References(HTMLParser):
    """The addresses in a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("href", "src", "srcset")]


def test_page_of_the_package_links_to_nothing_that_is_not_there(metadata):
    """It is the README: the repository's other files are not beside it, and its headings have no anchors."""
    markdown_it = pytest.importorskip("markdown_it", reason="needs a renderer of Markdown, which comes with rich")
    assert metadata["Description-Content-Type"] == "text/markdown"
    page = metadata.get_payload()
    references = References()
    references.feed(markdown_it.MarkdownIt("commonmark").enable("table").render(page))
    assert references.found
    assert [address for address in references.found if not address.startswith("https://")] == []
    assert "](" not in re.sub(r"\]\(https://|```.*?```", "", page, flags=re.DOTALL)  # nor what looks like a link


def test_page_of_the_package_keeps_the_code_of_the_readme(metadata):
    code = [re.findall(r"^```.*?^```$", text, re.M | re.S) for text in (metadata.get_payload(), read("README.md"))]
    assert code[0] == code[1]
    assert len(code[0]) > 2


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------------------------------- installed


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def installed(request, distributions, tmp_path_factory):
    """The interpreter of a virtual environment with NumPy and gpuops alone."""
    packages = {"wheel": ("numpy",), "sdist": ("numpy", "setuptools")}  # it is built there
    python = environment(tmp_path_factory.mktemp(request.param) / "venv", *packages[request.param])
    install(python, getattr(distributions, request.param))
    return python


def test_installed_package_computes(installed, tmp_path):
    place, results = run(installed, "-c", CALLS, cwd=tmp_path).stdout.splitlines()
    assert Path(place).is_relative_to(installed.parent.parent)
    assert results == "[6.0, 22.0, 38.0] [0.5, 0.5]"


def test_installed_package_has_types_and_kernels(installed):
    (package,) = installed.parent.parent.glob("lib/python*/site-packages/gpuops")
    for pattern in ("py.typed", "*.pyi", "kernels/*/*.cu", "kernels/*/*.cuh"):
        names = {str(path.relative_to(package)) for path in package.glob(pattern)}
        assert names == {str(path.relative_to(ROOT / "gpuops")) for path in (ROOT / "gpuops").glob(pattern)} != set()


@pytest.mark.parametrize("arguments", [["info"], ["demo", "--size", "64"], ["bench", "--help"], ["warmup", "--help"]])
def test_installed_commands_run(installed, arguments, tmp_path):
    assert run(installed, "-m", "gpuops", *arguments, cwd=tmp_path).stderr == ""


def test_bench_from_the_wheel_keeps_results_in_the_current_folder(distributions, tmp_path):
    python = environment(tmp_path / "venv", "numpy", "ml_dtypes")
    install(python, distributions.wheel)
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    options = ("--quick", "--cases", "lengths", "--elements", "1000")
    done = run(python, "-m", "gpuops", "bench", "softmax", *options, cwd=tmp_path, env=hidden)
    (file,) = tmp_path.glob("gpuops-bench/benchmarks/results/*/softmax.part.json")
    assert f"Results: {file}\n" in done.stdout


def test_bench_without_its_extra_says_how_to_install_it(distributions, tmp_path):
    python = environment(tmp_path / "venv", "numpy")
    install(python, distributions.wheel)
    done = subprocess.run([python, "-m", "gpuops", "bench", "sum"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "bench: needs the package ml_dtypes: pip install 'gpuops-cupy[bench]'\n"


# --------------------------------------------------------------------------------------------------------------- tests


def test_all_tests_of_the_sdist_are_collected(unpacked):
    """Each finds the files that it reads when it is imported."""
    command = ("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-n", "0")
    assert "error" not in run(sys.executable, *command, cwd=unpacked).stdout.splitlines()[-1]


def test_quick_tests_of_the_sdist_pass(unpacked):
    select = ("tests/test_broadcast.py", "-k", "not emulated and not gpu", "-n", "0")
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *select)
    done = run(sys.executable, *command, cwd=unpacked, env=os.environ | {"GPUOPS_TEST_PROFILE": "quick"})
    assert re.search(r"\d{2,} passed", done.stdout)


def test_python_3_9_is_told_which_pythons_are_needed(tmp_path):
    """setup.py runs there, so that pip learns what the package requires."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(text, feature_version=(3, 9))) if isinstance(node, ast.Call)]
    newer = [call.func.id for call in calls if getattr(call.func, "id", "") == "zip" and call.keywords]
    assert newer == []  # zip(strict=) is of 3.10
    python = shutil.which("python3.9")
    if python and subprocess.run([python, "-m", "ensurepip", "--version"], capture_output=True).returncode == 0:
        run(python, "-m", "venv", tmp_path / "old")
        command = [tmp_path / "old/bin/python", "-m", "pip", "install", ROOT]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1 and "requires a different Python: 3.9" in done.stderr, done.stderr
