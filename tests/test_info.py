"""``info``, strategies, and what importing gpuops imports."""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import pickle
import platform
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import gpuops
from gpuops.device import jit
from gpuops.host import blocks
from gpuops.tools import demo

OPS = {
    "sum": ["sum", "prod", "max", "min", "mean", "any", "all"],
    "where": ["where", "expand"],
    "softmax": ["softmax", "log_softmax"],
}


@pytest.mark.parametrize("first", OPS)
def test_ops_of_a_family_have_the_same_strategies(first):
    for op in OPS[first]:
        assert gpuops.strategies(op) == gpuops.strategies(first)


def test_strategies_of_the_ladders():
    assert {"cross", "interleaved", "shuffle", "rows", "columns"} <= set(gpuops.strategies("sum"))
    assert {"elementwise", "vectorized"} <= set(gpuops.strategies("where"))
    classic = {"naive", "block_tree", "block_coalesced", "block_shared", "block_online", "two_pass", "warp"}
    packs = {f"warp_pack{n}" for n in (2, 4, 8)}
    assert {*classic, *packs, "rows", "columns", "grid"} <= set(gpuops.strategies("softmax"))


def test_every_strategy_is_a_distinct_name():
    for first in OPS:
        names = gpuops.strategies(first)
        assert isinstance(names, tuple)
        assert all(isinstance(name, str) and name for name in names)
        assert len(set(names)) == len(names)


def test_info_has_versions_devices_and_a_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path))
    facts = gpuops.info()
    assert [*facts] == ["versions", "devices", "path", "reason", "packaged", "cache", "cached", "calls", "threads"]
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["versions"]["python"] == platform.python_version()
    assert {"gpuops", "cupy", "numba"} <= set(facts["versions"])
    assert facts["cache"] == str(tmp_path)
    assert facts["cached"] == {"kernels": 0, "bytes": 0, "limit": 256 * 10**6}
    assert facts["reason"]
    assert "cpu" in facts["devices"]
    assert facts["path"] == ("gpu" if any(name.startswith("cuda:") for name in facts["devices"]) else "cpu")


def test_the_cache_folder_follows_the_environment(monkeypatch):
    monkeypatch.delenv("GPUOPS_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert gpuops.info()["cache"] == "/somewhere/gpuops"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert gpuops.info()["cache"] == "/home/someone/.cache/gpuops"


def test_info_without_cupy_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    facts = gpuops.info()
    assert facts["versions"]["cupy"] == "not installed"
    assert "pip install" in facts["reason"]
    assert "gpuops-cupy" in facts["reason"]
    assert facts["path"] == "cpu"


def test_info_and_demo_say_what_numba_would_bring(monkeypatch, capsys):
    numba = pytest.importorskip("numba", reason="needs Numba")
    assert gpuops.info()["versions"]["numba"] == numba.__version__
    monkeypatch.setattr(blocks, "compiled", lambda module: None)
    bring = "'gpuops-cupy[cpu]'): with it, softmax, masks, float16 and large sums of NumPy arrays are much faster"
    assert gpuops.info()["versions"]["numba"] == f"cannot be imported (update {bring}"
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("numba", "cupy") else found(name))
    assert gpuops.info()["versions"]["numba"] == f"not installed (pip install {bring}"
    assert f"numba         not installed (pip install {bring}" in str(gpuops.info())
    demo.main(SimpleNamespace(file=None, size=8))
    assert f"Numba: not installed (pip install {bring}" in capsys.readouterr().out


def test_info_is_a_dict_to_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path))
    facts = gpuops.info()
    assert isinstance(facts, dict) and facts == dict(facts)
    assert json.loads(json.dumps(facts)) == facts
    assert ast.literal_eval(repr(facts)) == facts
    assert pickle.loads(pickle.dumps(facts)) == copy.copy(facts) == facts


def test_info_is_a_table_to_people(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path / "<script>"))
    facts = gpuops.info()
    lines = str(facts).splitlines()
    assert re.fullmatch(r"gpuops +\S.*", lines[0])
    assert any(re.fullmatch(rf"numpy +{re.escape(np.__version__)}", line) for line in lines)
    assert f"kernel cache  {tmp_path / '<script>'}: 0 kernels, 0.0 MB of at most 256.0 MB" in lines
    assert re.fullmatch(r"launch cache  \d+ of at most 4096 kinds of calls, \d+ hits, \d+ misses", lines[-2])
    printed = []
    facts._repr_pretty_(SimpleNamespace(text=printed.append), False)
    assert printed == [str(facts)]
    page = facts._repr_html_()
    assert page.count("<tr>") == len(lines)
    assert "&lt;script&gt;" in page and "<script>" not in page


def test_info_without_a_folder_for_kernels_says_so(monkeypatch):
    monkeypatch.setattr(jit, "cache_folder", lambda: "")
    assert "kernel cache  none: 0 kernels" in str(gpuops.info())


def test_info_command_prints_versions():
    done = subprocess.run([sys.executable, "-m", "gpuops", "info"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.__version__ in done.stdout


@pytest.mark.parametrize("call", ["", "gpuops.softmax(gpuops.sum([[1.0, 2.0]], axis=0))"])
def test_numpy_users_never_import_cupy(call):
    code = f"import sys, numpy\nothers = {{*sys.modules}}\nimport gpuops\n{call}\nprint(*{{*sys.modules}} - others)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {name.split(".")[0] for name in done.stdout.split()}
    assert not names & {"cupy", "cupy_backends", "subprocess", "setuptools", "distutils", "ml_dtypes", "scipy"}


def test_public_names_have_examples():
    assert sorted(gpuops.__all__) == gpuops.__all__
    for name in gpuops.__all__:
        assert ">>> " in getattr(gpuops, name).__doc__, f"{name} has no example"
