"""``python -m gpuops``, run as a user runs it."""

import subprocess
import sys
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

import gpuops
from gpuops.device import disk_cache
from gpuops.tools import cache, demo


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
def test_demo_rejects_invalid_sizes(size):
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
def test_demo_takes_an_array_file(tmp_path, dtype, shape):
    values = np.random.default_rng(1).standard_normal(shape) * 50
    done = gpuops_command("demo", save(tmp_path, np.asarray(values).astype(dtype)))
    assert done.returncode == 0, done.stderr + done.stdout
    lines = lines_of(done)
    assert len(lines) == len(demo.OPS)
    assert ("not for complex64" in lines["softmax(x, axis=-1)"]) == (dtype == "complex64")


def test_demo_accepts_nan_and_infinity(tmp_path):
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
def test_demo_rejects_unsupported_arrays_in_one_line(tmp_path, array, rule):
    path = save(tmp_path, array, allow_pickle=True)
    done = gpuops_command("demo", path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"demo: cannot use {path}: {rule}")


@pytest.mark.parametrize("content", [None, b"", b"1 2 3\n4 5 6\n", b"\x93NUMPY\x01\x00"], ids=repr)
def test_demo_rejects_unreadable_files_in_one_line(tmp_path, content):
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


def test_deviation_exceeds_1_for_nan_inf_and_wrong_shapes():
    ones = np.ones(2)
    assert not demo.deviation(np.array([1.0, np.nan]), ones, ones) <= 1
    assert not demo.deviation(np.array([1.0, np.inf]), ones, ones) <= 1
    assert not demo.deviation(np.ones(3), ones, ones) <= 1


@pytest.mark.parametrize("size,rule", [("10000000", "there is not enough memory"), ("1" * 23, "")])
def test_demo_rejects_sizes_beyond_memory(size, rule):
    done = gpuops_command("demo", "--size", size)
    assert done.returncode == 2
    assert done.stderr.startswith(f"demo: cannot use size {size}: {rule}") and done.stderr.count("\n") == 1


def test_demo_rejects_oversized_files(tmp_path):
    shape = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }"
    contents = {
        "large.npy": b"\x93NUMPY\x03\x00" + len(shape).to_bytes(4, "little") + shape,
        "header.npy": b"\x93NUMPY\x03\x00" + (10**6).to_bytes(4, "little") + b"{'descr'" + b" " * 10**6,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "dims.npy", np.ones((1,) * 41, "f4"))
    for name in (*contents, "dims.npy"):
        done = gpuops_command("demo", tmp_path / name)
        assert done.returncode == 2
        assert done.stderr.startswith(f"demo: cannot use {tmp_path / name}: ") and done.stderr.count("\n") == 1


def test_demo_is_silent_when_stdout_is_closed_early():
    command = [sys.executable, "-u", "-m", "gpuops", "demo", "--size", "64"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (0, 1)  # (the demo may have been faster)


def test_warmup_names_unknown_dtypes():
    for name, rule in (("foo", "dtype 'foo' is not understood"), ("U3", "dtype <U3 of --dtype is not supported")):
        done = gpuops_command("warmup", "sum", "--dtype", "float32", name)
        assert (done.returncode, done.stderr) == (2, f"warmup: {rule}\n")


# --------------------------------------------------------------------------------------------------------- kernel cache


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A folder with three compiled kernels."""
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path))
    for name, key in (("reduce_rows", "a"), ("reduce_rows", "b"), ("softmax_rows", "c")):
        disk_cache.entry(str(tmp_path), name, key, lambda: bytes(10**6))
    return tmp_path


def test_cache_lists_kernels_by_name(cached):
    done = gpuops_command("cache")
    head, *rows, total = done.stdout.splitlines()
    assert (done.returncode, head.split()) == (0, ["kernel", "variants", "size", "last", "used"])
    assert [row.split()[:4] for row in rows] == [["reduce_rows", "2", "2.0", "MB"], ["softmax_rows", "1", "1.0", "MB"]]
    assert total == f"{cached}: 3 kernels, 3.0 MB of at most 256.0 MB"
    assert total in gpuops_command("info").stdout


def test_cache_clear_removes_kernels_and_nothing_else(cached):
    (cached / "notes.txt").write_text("mine")
    sorted(cached.glob("softmax*"))[0].write_bytes(b"")  # damaged ones too
    assert gpuops_command("cache", "clear").stdout == f"Removed 3 kernels, 2.0 MB, from {cached}\n"
    assert [path.name for path in cached.iterdir()] == ["notes.txt"]


def test_cache_check_names_damaged_kernels(cached):
    assert gpuops_command("cache", "check").returncode == 0
    damaged = sorted(cached.glob("softmax*"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    done = gpuops_command("cache", "check")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == f"{damaged} is damaged, or others may have written it: it is not used"


def test_cache_of_a_user_without_a_home(monkeypatch):
    monkeypatch.delenv("GPUOPS_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("gpuops.device.jit.cache_folder", lambda: "")
    assert cache.main(Namespace(action="list")) == 0
