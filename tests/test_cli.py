"""``python -m gpuops``, run as a user runs it."""

import subprocess
import sys
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

import gpuops
from gpuops import demo


def gpuops_command(*arguments):
    command = [sys.executable, "-m", "gpuops", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300)


def save(folder, array, **options):
    np.save(folder / "x.npy", array, **options)
    return folder / "x.npy"


def lines_of(done):
    """The lines of the table, by op."""
    return {op.text: line for op in demo.OPS for line in done.stdout.splitlines() if line.startswith(op.text)}


def test_without_arguments_help_lists_the_commands():
    done = gpuops_command()
    assert done.returncode == 0
    assert "demo" in done.stdout and "info" in done.stdout


def test_unknown_command_fails():
    assert gpuops_command("sing").returncode == 2


def test_version():
    assert gpuops_command("--version").stdout == f"gpuops {gpuops.__version__}\n"


def test_info_shows_versions_and_path():
    done = gpuops_command("info")
    assert done.returncode == 0, done.stderr
    facts = gpuops.info()
    for shown in (np.__version__, facts["reason"], facts["cache"], *facts["devices"].values()):
        assert shown in done.stdout


def test_demo_shows_a_line_for_each_op():
    done = gpuops_command("demo", "--size", 64)
    assert done.returncode == 0, done.stderr
    assert len(lines_of(done)) == len(demo.OPS) == 5
    assert ("No GPU: " in done.stdout) == (gpuops.info()["path"] == "cpu")


@pytest.mark.parametrize("size", ["0", "-3", "many"])
def test_demo_refuses_a_size(size):
    done = gpuops_command("demo", "--size", size)
    assert done.returncode == 2
    assert "--size" in done.stderr


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("float32", (1000,)),
        ("float16", (3, 70, 5)),
        (">f8", (40, 30)),
        ("uint8", (3, 70, 5)),
        ("int64", (2, 3, 4, 5)),
        ("bool", (33, 2)),
        ("complex64", (17, 9)),
        ("float64", ()),
    ],
)
def test_demo_takes_an_array_of_ones_own(tmp_path, dtype, shape):
    values = np.random.default_rng(1).standard_normal(shape) * 50
    done = gpuops_command("demo", save(tmp_path, np.asarray(values).astype(dtype)))
    assert done.returncode == 0, done.stderr + done.stdout
    lines = lines_of(done)
    assert len(lines) == len(demo.OPS)
    assert ("not for complex64" in lines["softmax(x, axis=-1)"]) == (dtype == "complex64")


def test_demo_accepts_nan_and_infinity_where_they_are_due(tmp_path):
    x = np.array([[np.nan, 1, np.inf], [1, 2, 3], [-np.inf] * 3], np.float32)
    assert gpuops_command("demo", save(tmp_path, x)).returncode == 0


@pytest.mark.parametrize(
    ("array", "rule"),
    [
        (np.array([{}, 1], dtype=object), "Object arrays cannot be loaded"),
        (np.array(["a", "b"]), "dtype <U1 is not supported"),
        (np.zeros((3, 0)), "an array of shape (3, 0) has no elements"),
    ],
    ids=["object", "str", "empty"],
)
def test_demo_refuses_an_array_in_one_line(tmp_path, array, rule):
    path = save(tmp_path, array, allow_pickle=True)
    done = gpuops_command("demo", path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"demo: cannot use {path}: {rule}")


@pytest.mark.parametrize("content", [None, b"", b"1 2 3\n4 5 6\n", b"\x93NUMPY\x01\x00"], ids=repr)
def test_demo_refuses_a_file_in_one_line(tmp_path, content):
    path = tmp_path / "x.npy"
    if content is not None:
        path.write_bytes(content)
    done = gpuops_command("demo", path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"demo: cannot use {path}: ")


def test_demo_fails_when_a_result_is_wrong(monkeypatch, capsys):
    wrong = replace(demo.OPS[0], reference=lambda x, mask, row: np.where(mask, x, 1))
    monkeypatch.setattr(demo, "OPS", (wrong, *demo.OPS[1:]))
    assert demo.main(Namespace(file=None, size=8)) == 1
    assert "where(mask, x, 0): the error of" in capsys.readouterr().err


def test_deviation_is_relative_to_the_scale():
    result, reference = np.array([1.0, 4.5]), np.array([1.0, 4.0])
    assert demo.deviation(result, reference, reference) == 0.125
    assert demo.deviation(result, reference, np.array([np.inf, 5.0])) == 0.1
    assert demo.deviation(reference, reference, reference) == 0


def test_deviation_is_not_finite_where_the_result_is_not():
    ones = np.ones(2)
    assert not demo.deviation(np.array([1.0, np.nan]), ones, ones) <= 1
    assert not demo.deviation(np.array([1.0, np.inf]), ones, ones) <= 1
    assert not demo.deviation(np.ones(3), ones, ones) <= 1
