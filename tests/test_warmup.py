"""``python -m gpuops warmup``: the kernels that it compiles, and the cache that it fills."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import gpuops
from gpuops.__main__ import main as command_line
from gpuops.call.dispatch import describe
from gpuops.device import disk_cache, jit, record
from gpuops.plan.work import Kernel, Machine, new_array
from gpuops.tools import progress, warmup
from tests.budget import round_robin
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


@pytest.mark.turns(2, everywhere=True)
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
    others = {"amax", "amin", "array_api", "broadcast_to", "info", "strategies", "evaluate", "lazy"}
    assert set(warmup.OPS) == {*gpuops.__all__} - others
    assert BFLOAT16.name == "bfloat16" and warmup.needed(["expand"], ["bfloat16"], H200)


def test_kernels_are_compiled_into_the_cache(nvrtc, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path))
    wanted = sorted(kernels("expand"))[:3]
    assert {*warmup.compile_all(wanted, 90)} == {*wanted}
    assert len([*tmp_path.iterdir()]) == 3
    monkeypatch.setattr(jit, "compile", None)
    assert {*warmup.compile_all(wanted, 90)} == {*wanted}


@pytest.fixture
def few(monkeypatch):
    """Few calls stand for all."""
    for lengths in ("MANY", "FEW", "SOME", "SIDES"):
        monkeypatch.setattr(warmup, lengths, (3, 64))


def test_warmup_compiles_for_the_current_gpu_and_reports(nvrtc, few, tmp_path, monkeypatch, capsys):
    import cupy  # installed, as NVRTC comes with it

    from gpuops.device import cuda

    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warmup, "info", lambda: {"path": "gpu"})
    monkeypatch.setattr(cupy.cuda, "Device", lambda: SimpleNamespace(id=0))
    monkeypatch.setattr(cuda, "device", lambda index: SimpleNamespace(machine=H200, arch=90))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no rich
    assert command_line(["warmup", "expand", "--dtype", "float32", "int64"]) == 0
    count = len([*tmp_path.iterdir()])
    printed = capsys.readouterr()
    assert printed.out == f"{count} kernels for expand of float32, int64 are in {tmp_path}\n"
    assert "1/2 looking for the kernels of expand int64" in printed.err
    assert f"{count}/{count} compiled broadcast" in printed.err


def test_warmup_says_in_a_log_how_far_it_is(nvrtc, few, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0)
    assert command_line(["warmup", "expand", "--arch", "90", "--output", str(tmp_path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0/1 looking for the kernels of expand float32"
    assert re.fullmatch(r"(\d+)/\1 compiled broadcast\w*", lines[-1])


def test_warmup_for_another_gpu_fills_a_folder(nvrtc, few, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path / "cache"))
    for arch in (80, 90):
        assert command_line(["warmup", "where", "--arch", str(arch), "--output", str(tmp_path / "out")]) == 0
        assert f"kernels for where of float32 are in {tmp_path / 'out'}" in capsys.readouterr().out
    there = disk_cache.files(str(tmp_path / "out"))
    assert there and not (tmp_path / "cache").exists()
    assert len(there) == sum(len(warmup.needed(["where"], ["float32"], warmup.machine_of(arch))) for arch in (80, 90))
    monkeypatch.setattr(jit, "compile", None)  # a program that has the folder finds the kernels in it
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path / "out"))
    for kernel in warmup.needed(["where"], ["float32"], warmup.machine_of(90)):
        assert jit.compiled(kernel, 90)[:4] == b"\x7fELF"


def test_every_architecture_has_a_machine(nvrtc):
    for arch in jit.architectures():
        machine = warmup.machine_of(arch)
        assert machine.multiprocessors > 0 and machine.shared >= 48 * 1024
        assert machine.cluster == (1 if arch < 90 else 8 if arch >= 120 else 16)
    assert warmup.machine_of(90) == H200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "pass either ops or, with --from FILE, a record"),
        (["sum", "--from", "x"], "pass either ops or, with --from FILE, a record"),
        (["sing"], "op must be one of sum, .*, dot, got 'sing'"),
        (["sum", "--arch", "91"], "--arch must be one of .*80, .*, which NVRTC compiles for; got 91"),
        (["sum", "--dtype", "real"], "dtype 'real' is not understood"),
        (["softmax", "--dtype", "complex64", "--arch", "90"], "softmax: dtype complex64 of x is not supported"),
        (["sum", "--arch", "90", "--output", "/proc/gpuops"], "/proc/gpuops: No such file or directory"),
        (["--from", "/nowhere", "--arch", "90"], "/nowhere: No such file or directory"),
        (["--from", __file__, "--arch", "90"], "test_warmup.py is not a record of kernels"),
    ],
    ids=str,
)
def test_warmup_says_what_is_wrong(nvrtc, few, arguments, words, capsys):
    assert command_line(["warmup", *arguments]) == 2
    printed = capsys.readouterr()
    assert not printed.out and re.fullmatch(rf"warmup: .*{words}.*\n", printed.err)


def test_warmup_without_a_gpu_says_why(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "info", lambda: {"path": "cpu", "reason": "CuPy finds no GPU"})
    assert command_line(["warmup", "sum"]) == 2
    assert capsys.readouterr().err.startswith("warmup: CuPy finds no GPU; --arch 90 compiles for")


def test_warmup_rejects_options_without_values():
    with pytest.raises(SystemExit) as stopped:
        command_line(["warmup", "sum", "--dtype"])
    assert stopped.value.code == 2


# --------------------------------------------------------------------------------------------------------- records


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A file for a record, and nothing known of it."""
    monkeypatch.setattr(record, "KNOWN", {})
    monkeypatch.setattr(record, "FAILED", set())
    monkeypatch.setenv("GPUOPS_RECORD", str(tmp_path / "record"))
    return tmp_path / "record"


def test_what_programs_record_is_compiled(nvrtc, recorded, tmp_path, capsys):
    wanted = sorted(kernels("where"))[:3]
    for kernel in (*wanted, *wanted):
        record.note(kernel)
    record.KNOWN.clear()  # another process, which goes on
    for kernel in wanted:
        record.note(kernel)
    assert len(recorded.read_text().splitlines()) == 1 + len(wanted)
    assert record.read(str(recorded)) == wanted
    assert command_line(["warmup", "--from", str(recorded), "--arch", "90", "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"3 kernels for {recorded} are in {tmp_path / 'out'}\n"
    assert len(disk_cache.files(str(tmp_path / "out"))) == 3


def test_two_processes_that_begin_a_record_do_not_harm_it(recorded):
    first, second = sorted(kernels("where"))[:2]
    record.note(first)
    record.append(str(recorded), record.HEAD)
    record.KNOWN.clear()
    record.note(second)
    assert record.read(str(recorded)) == [first, second]


def test_kernels_of_expressions_are_not_recorded(recorded):
    kernel = sorted(kernels("where"))[0]
    record.note(Kernel(*kernel[:3], "an expression"))
    assert not recorded.exists()


def test_without_a_file_nothing_is_recorded(recorded, monkeypatch):
    monkeypatch.delenv("GPUOPS_RECORD")
    record.note(sorted(kernels("where"))[0])
    assert not recorded.exists()


def test_a_file_that_cannot_be_written_is_told_of_once(recorded, monkeypatch):
    monkeypatch.setenv("GPUOPS_RECORD", "/proc/gpuops")
    with pytest.warns(UserWarning, match=r"^GPUOPS_RECORD: .*/proc/gpuops.*; kernels are not recorded$") as told:
        for kernel in sorted(kernels("where"))[:3]:
            record.note(kernel)
    assert len(told) == 1


BAD = {
    "nothing": ("", "is not a record of kernels"),
    "no JSON": ("kernels", "is not a record of kernels"),
    "another file": ('{"name": "x"}', "is not a record of kernels"),
    "a list": ("[1]", "is not a record of kernels"),
    "another version": ('{"gpuops": "0.0.1", "record": "kernels"}', r"was recorded by gpuops 0\.0\.1, this is .*"),
}
ENTRIES = {
    "no kernel": {"kernel": 3},
    "a statement": {"kernel": "reduce_rows", "types": {"Tin": "float; int x"}, "constants": {}},
    "a name": {"kernel": "reduce_rows", "types": {}, "constants": {"A = 1; //": 1}},
    "no int": {"kernel": "reduce_rows", "types": {}, "constants": {"A": "1"}},
    "no dict": {"kernel": "reduce_rows", "types": [], "constants": {}},
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_files_that_are_no_records_are_refused(recorded, text, words):
    recorded.write_text(text)
    with pytest.raises(record.Unusable, match=f"{recorded} {words}"):
        record.read(str(recorded))
    if text:
        with pytest.warns(UserWarning, match="kernels are not recorded"):
            record.note(sorted(kernels("where"))[0])
        assert recorded.read_text() == text


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_entries_never_become_source_text_that_is_more_than_names(recorded, entry):
    recorded.write_text(f"{json.dumps(record.HEAD)}\n{json.dumps(entry)}\n")
    with pytest.raises(record.Unusable, match="has an entry that is not a kernel"):
        record.read(str(recorded))


def test_kernels_of_a_record_that_are_no_more_are_named(nvrtc, recorded, capsys):
    record.append(str(recorded), record.HEAD)
    record.append(str(recorded), {"kernel": "reduce_better", "types": {}, "constants": {}})
    assert command_line(["warmup", "--from", str(recorded), "--arch", "90"]) == 2
    assert "has a kernel reduce_better, which gpuops does not have" in capsys.readouterr().err


def test_every_variant_can_be_recorded():
    """Of some ops per run."""
    for op in round_robin([*warmup.OPS], 10):
        for kernel in kernels(op):
            entry = {"kernel": kernel.name, "types": dict(kernel.types), "constants": dict(kernel.constants)}
            assert record.kernel_of("", json.loads(json.dumps(entry))) == kernel
