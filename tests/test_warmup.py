"""``python -m gpuops warmup``: the kernels that it compiles, and the cache that it fills."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import gpuops
from gpuops.__main__ import main as command_line
from gpuops.plan.work import Machine, new_array
from gpuops.run import jit
from gpuops.run.call import describe
from gpuops.tools import warmup
from tests.layouts import BFLOAT16

H200 = Machine(multiprocessors=132, cluster=16, shared=227 * 1024, together=132)
F4 = np.dtype(np.float32)
SHAPES = ((32, 32), (1000, 1000), (4096, 4096), (4096, 50257), (128, 768), (7, 1_000_003), (2**20, 16), (60000, 784))

#: Calls on an array x of a shape, by op.
CALLS = {
    "sum": [
        lambda x: describe(gpuops.sum, x), lambda x: describe(gpuops.sum, x, axis=0),
        lambda x: describe(gpuops.sum, x, 1, keepdims=True),
    ],
    "max": [lambda x: describe(gpuops.max, x, axis=1), lambda x: describe(gpuops.max, x, axis=0)],
    "softmax": [lambda x: describe(gpuops.softmax, x, axis=1), lambda x: describe(gpuops.softmax, x, axis=0)],
    "logsumexp": [lambda x: describe(gpuops.logsumexp, x, axis=1)],
    "where": [lambda x: describe(gpuops.where, mask(x), x, x), lambda x: describe(gpuops.where, mask(x), x, 0)],
    "expand": [
        lambda x: describe(gpuops.expand, array((x.shape[0], 1)), x.shape),
        lambda x: describe(gpuops.expand, array((1,)), x.shape),
    ],
    "matmul": [lambda x: describe(gpuops.matmul, x, array((x.shape[1], 96)))],
}  # fmt: skip


def array(shape, dtype=F4):
    return new_array("x", shape, np.dtype(dtype), machine=H200._replace(blas=False))


def mask(like):
    return array(like.shape, bool)


@cache
def kernels(op):
    """The kernels that a warm-up of the op for float32 compiles."""
    return {*warmup.needed([op], ["float32"], H200)}


@pytest.mark.parametrize("op", CALLS)
def test_common_calls_need_only_warmed_up_kernels(op):
    for shape in SHAPES:
        for call in CALLS[op]:
            found = {*call(array(shape)).plan.kernels}
            assert found and not found - kernels(op), shape


def test_most_matrix_sizes_need_only_warmed_up_kernels():
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        rows, cols = (int(2 ** rng.uniform(0, 13)) * (4 if rng.random() < 0.5 else 1) for _ in "rc")
        work = describe(gpuops.softmax, array((rows, cols)), axis=int(rng.integers(2)))
        found.append({*work.plan.kernels} <= kernels("softmax"))
    assert np.mean(found) >= 0.98


def test_warmup_covers_every_op(monkeypatch):
    for lengths in ("MANY", "FEW", "SOME", "SIDES"):
        monkeypatch.setattr(warmup, lengths, (3, 64))
    dtypes = {"softmax": ["float16", "int8"], "where": ["complex64"], "dot": ["bool"], "sum": ["uint8"]}
    for op, names in dtypes.items():
        for name in names:
            assert warmup.needed([op], [name], H200)
    assert set(warmup.OPS) == {*gpuops.__all__} - {"amax", "amin", "array_api", "broadcast_to", "info", "strategies"}
    assert BFLOAT16.name == "bfloat16" and warmup.needed(["expand"], ["bfloat16"], H200)


def test_kernels_are_compiled_into_the_cache(nvrtc, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path))
    wanted = sorted(kernels("expand"))[:3]
    assert {*warmup.compile_all(wanted, 90)} == {*wanted}
    assert len([*tmp_path.iterdir()]) == 3
    monkeypatch.setattr(jit, "compile", None)
    assert {*warmup.compile_all(wanted, 90)} == {*wanted}


def test_warmup_command_compiles_and_reports(nvrtc, tmp_path, monkeypatch, capsys):
    import cupy  # installed, as NVRTC comes with it

    from gpuops.run import cuda

    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warmup, "info", lambda: {"path": "gpu", "cache": "the folder"})
    monkeypatch.setattr(cupy.cuda, "Device", lambda: SimpleNamespace(id=0))
    monkeypatch.setattr(cuda, "device", lambda index: SimpleNamespace(machine=H200, arch=90))
    monkeypatch.setattr(warmup, "SOME", (3, 64))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert warmup.main(Namespace(op=["expand"], dtype=["float32", "int32"])) == 0
    count = len([*tmp_path.iterdir()])
    printed = capsys.readouterr()
    assert printed.out == f"{count} kernels for expand of float32, int32 are in the folder\n"
    assert f"[{'#' * 40}] {count}/{count}" in printed.err
    assert warmup.main(Namespace(op=["softmax"], dtype=["complex64"])) == 2
    assert "warmup: softmax: dtype complex64 of x is not supported" in capsys.readouterr().err
    assert warmup.main(Namespace(op=["sum"], dtype=["real"])) == 2
    assert "warmup: dtype 'real' is not understood" in capsys.readouterr().err


def test_warmup_without_a_gpu_says_why(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "info", lambda: {"path": "cpu", "reason": "CuPy finds no GPU"})
    assert command_line(["warmup", "sum"]) == 2
    assert capsys.readouterr().err == "warmup: CuPy finds no GPU\n"


@pytest.mark.parametrize("arguments", [[], ["sing"], ["sum", "--dtype"]], ids=str)
def test_warmup_rejects_invalid_arguments(arguments):
    with pytest.raises(SystemExit) as stopped:
        command_line(["warmup", *arguments])
    assert stopped.value.code == 2
