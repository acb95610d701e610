"""The kernels that come with the package: their archives, and which they are."""

from __future__ import annotations

import lzma
from types import SimpleNamespace

import pytest

from benchmarks import mixes
from gpuops.__main__ import main as command_line
from gpuops.device import jit, prebuilt
from gpuops.tools import prebuild
from gpuops.tools.info import packaged
from gpuops.tools.warmup import machine_of
from tests.test_jit import KERNEL

CODES = [(f"source {i}", bytes([i]) * (1000 + i)) for i in range(40)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(prebuilt, "FOLDER", str(tmp_path / "prebuilt"))
    yield tmp_path / "prebuilt"
    prebuilt.archive.cache_clear()
    prebuilt.block.cache_clear()


def damage(path, place):
    """Change a byte of a file, whose contents this process then reads again."""
    whole = bytearray(path.read_bytes())
    whole[place] ^= 1
    path.write_bytes(whole)
    prebuilt.archive.cache_clear()
    prebuilt.block.cache_clear()


def test_kernels_are_found_by_source_and_architecture(folder):
    prebuilt.write(prebuilt.path_of(90), CODES)
    assert [prebuilt.found(text, 90) for text, _ in CODES] == [code for _, code in CODES]
    assert prebuilt.found("source 40", 90) == b""
    assert prebuilt.found("source 1", 80) == prebuilt.found("source 1", 100) == b""
    assert prebuilt.counts() == {90: 40}


def test_kernels_of_an_earlier_architecture_serve_the_rest_of_its_generation(folder):
    prebuilt.write(prebuilt.path_of(80), CODES)
    prebuilt.write(prebuilt.path_of(89), [("source 1", b"its own")])
    found = {arch: prebuilt.found("source 1", arch) for arch in (80, 86, 89, 90)}
    assert found == {80: CODES[1][1], 86: CODES[1][1], 89: b"its own", 90: b""}
    assert prebuilt.found("source 2", 89) == CODES[2][1]


def test_nothing_is_found_where_no_kernels_were_built(folder):
    assert prebuilt.counts() == {}
    assert prebuilt.found("source 1", 90) == b""


def test_a_damaged_archive_offers_only_what_is_whole(folder):
    prebuilt.write(prebuilt.path_of(90), CODES)
    (path,) = folder.iterdir()
    damage(path, -1)  # in the last block
    assert [prebuilt.found(text, 90) for text, _ in CODES] == [code for _, code in CODES[:32]] + [b""] * 8
    path.write_bytes(path.read_bytes()[:-5])
    damage(path, -1)
    assert prebuilt.found(*CODES[-1][:1], 90) == b""
    damage(path, 100)  # in the head
    assert prebuilt.found("source 1", 90) == b"" and prebuilt.counts() == {90: 0}


def test_an_archive_may_vanish_while_it_is_used(folder):
    prebuilt.write(prebuilt.path_of(90), CODES)
    assert prebuilt.counts() == {90: len(CODES)}
    (path,) = folder.iterdir()
    path.unlink()
    assert prebuilt.found(*CODES[0][:1], 90) == b""


def test_similar_kernels_share_a_block(folder):
    same = bytes(range(256)) * 40
    prebuilt.write(prebuilt.path_of(90), [(str(i), same + bytes([i])) for i in range(prebuilt.TOGETHER)])
    (path,) = folder.iterdir()
    assert path.stat().st_size < 2 * len(lzma.compress(same)) + 2000


def test_a_kernel_of_the_package_is_not_compiled(nvrtc, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path / "cache"))
    prebuilt.write(prebuilt.path_of(90), [(jit.source(KERNEL), b"built")])
    assert jit.packaged(KERNEL, 90) == jit.kept(KERNEL, 90) == b"built"
    assert jit.packaged(KERNEL, 80) == jit.kept(KERNEL, 80) == b""
    monkeypatch.setattr(jit, "compile", lambda text, name, arch: b"compiled")
    assert [*jit.attempts(KERNEL, 90)] == [b"built", b"compiled", b"compiled"]
    assert [*jit.attempts(KERNEL, 80)] == [b"compiled", b"compiled"]
    monkeypatch.setattr(jit, "source", lambda kernel: "changed")  # by another version of gpuops
    assert jit.packaged(KERNEL, 90) == b""


def test_the_command_builds_the_commonest_kernels(nvrtc, folder, monkeypatch, capsys):
    monkeypatch.setattr(prebuild, "CALLS", 300)
    assert command_line(["kernels", "--arch", "80", "90", "--count", "2"]) == 0
    assert prebuilt.counts() == {80: 2, 90: 2}
    for kernel in prebuild.commonest([machine_of(90)], 2):
        assert jit.packaged(kernel, 90).startswith(b"\x7fELF")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" are in ")[0] for line in lines] == [
        "2 kernels for compute capability 8.0", "2 kernels for compute capability 9.0",
    ]  # fmt: skip


def test_the_command_refuses_architectures_that_nvrtc_does_not_know(nvrtc, folder, capsys):
    assert command_line(["kernels", "--arch", "90", "21"]) == 2
    assert capsys.readouterr().err.endswith(", got 21\n") and not folder.exists()


def test_the_commonest_kernels_serve_most_calls_of_programs():
    there = {*prebuild.commonest([machine_of(90)], prebuild.COUNT)}
    needed = mixes.kernels(mixes.mixed())
    served = sum(count for kernel, count in needed.items() if kernel in there)
    assert len(there) == prebuild.COUNT
    assert served > 0.93 * sum(needed.values())


def test_info_says_how_many_kernels_came_with_the_package():
    assert packaged({80: 3, 120: 4}) == "3 for compute capability 8.0, 4 for 12.0"
    assert "make kernels" in packaged({})


@pytest.mark.parametrize("ahead", [b"", b"compiled ahead"])
def test_machine_code_that_the_driver_refuses_is_replaced(ahead, monkeypatch):
    cupy = pytest.importorskip("cupy")
    from gpuops.device import cuda

    tried = []

    class Module:
        def load(self, code):
            tried.append(code)
            if code != b"compiled again":
                raise RuntimeError("CUDA_ERROR_INVALID_IMAGE")

    codes = {KERNEL: ahead} if ahead else {}
    device = SimpleNamespace(_codes=codes, ahead=lambda kernel: codes.get(kernel, b""), arch=90)
    monkeypatch.setattr(cuda, "driver", SimpleNamespace(CUDADriverError=RuntimeError))
    monkeypatch.setattr(cupy.cuda.function, "Module", Module)
    monkeypatch.setattr(jit, "attempts", lambda kernel, arch: iter([b"built", b"compiled", b"compiled again"]))
    assert isinstance(cuda.CudaDevice.module(device, KERNEL), Module)
    assert tried == [ahead] * bool(ahead) + [b"built", b"compiled", b"compiled again"]
    monkeypatch.setattr(jit, "attempts", lambda kernel, arch: iter([b"compiled"]))
    with pytest.raises(RuntimeError, match="INVALID_IMAGE"):
        cuda.CudaDevice.module(device, KERNEL)
