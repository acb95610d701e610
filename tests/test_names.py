"""What gpuops has and has not, beside the names of other libraries: the table, its page, and the error for a name."""

import importlib.util
import pkgutil
import subprocess
import sys

import pytest

import gpuops
from docs._ext import names_page
from gpuops.tools import names

ROWS = [row for rows in names.topics().values() for row in rows]


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_the_page_is_that_of_the_table():
    assert names_page.PATH.read_text(encoding="utf-8") == names_page.page(), "python -m docs._ext.names_page writes it"


def test_every_function_of_gpuops_is_in_the_table_and_no_name_twice():
    found = [row.name for row in ROWS]
    assert {name for name in gpuops.__all__ if callable(getattr(gpuops, name))} <= {*found}
    assert len({*found}) == len(found)


INSTALLED = [name for name in names.LIBRARIES if importlib.util.find_spec(name)]


@pytest.mark.parametrize(
    "library", [pytest.param(name, marks=[pytest.mark.torch] * (name == "torch")) for name in INSTALLED]
)
def test_the_names_of_other_libraries_exist(library):
    theirs = [row.theirs[[*names.LIBRARIES].index(library)] for row in ROWS]
    for name in (each for found in theirs for each in found):
        pkgutil.resolve_name(names.full_name(library, name))


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("median", "numpy.median, cupy.median or torch.median"),
        ("expit", "scipy.special.expit, cupyx.scipy.special.expit or torch.sigmoid"),
        ("topk", "torch.topk"),
        ("asnumpy", "cupy.asnumpy or torch.Tensor.numpy"),
        ("cat", "numpy.concatenate, cupy.concatenate or torch.cat"),
        ("norm", "gpuops.vector_norm"),
        ("baddbmm", "gpuops.matmul"),
        ("equal", "numpy.equal, cupy.equal or torch.eq"),  # NumPy's, not PyTorch's of whole arrays
    ],
)
def test_the_error_says_what_to_use_instead(name, instead):
    with pytest.raises(AttributeError) as caught:
        getattr(gpuops, name)
    assert str(caught.value) == f"module 'gpuops' has no attribute '{name}'; use {instead}"


@pytest.mark.parametrize("name", ["total", "_median", "__wrapped__"])
def test_the_error_for_other_names_is_pythons(name):
    with pytest.raises(AttributeError) as caught:
        getattr(gpuops, name)
    assert str(caught.value) == f"module 'gpuops' has no attribute '{name}'"


def test_names_that_are_missing_are_so_for_hasattr_and_import():
    assert not hasattr(gpuops, "median")
    with pytest.raises(ImportError, match="cannot import name 'median'"):
        from gpuops import median  # noqa: F401


def test_python_suggests_a_name_only_where_nothing_else_serves():
    assert "Did you mean: 'softmax'?" in run_python("import gpuops; gpuops.sofmax").stderr
    assert run_python("import gpuops; gpuops.median").stderr.endswith("cupy.median or torch.median\n")


def test_the_table_loads_with_the_first_missing_name():
    code = (
        "import sys, gpuops\n"
        "for name in ('__wrapped__', '_private', 'median'):\n"
        "    print(hasattr(gpuops, name), 'gpuops.tools.names' in sys.modules)\n"
    )
    assert run_python(code).stdout == "False False\nFalse False\nFalse True\n"
