"""Kernel sources, compilation and the disk cache, without a GPU."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpuops.device import disk_cache, jit
from gpuops.plan import reductions
from tests.works import reduction_problem

pytestmark = pytest.mark.usefixtures("nvrtc")

ROOT = Path(__file__).resolve().parent.parent
STRIDES = ((64, 1), (0, 0), (1,))
PROBLEM = reduction_problem("Sum", *("float32",) * 3, (100, 64), (1,), STRIDES, (0, 0, 0))
(KERNEL,) = reductions.plan(PROBLEM, None, 132).kernels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def refuse(*arguments):
    raise AssertionError("compiled again")


def content(path):
    """The code in an entry of the cache."""
    return path.read_bytes()[disk_cache.DIGEST :]


def test_a_variant_is_compiled_once_and_then_read_from_disk(folder, monkeypatch):
    code = jit.compiled(KERNEL, 90)
    assert code.startswith(b"\x7fELF")
    assert [content(path) for path in folder.iterdir()] == [code]
    monkeypatch.setattr(jit, "compile", refuse)
    assert jit.compiled(KERNEL, 90) == code


def test_compiles_are_logged(folder, caplog):
    with caplog.at_level("INFO", "gpuops"):
        jit.compiled(KERNEL, 90)
        jit.compiled(KERNEL, 90)  # from disk
    (message,) = caplog.messages
    assert re.fullmatch(rf"compiled {KERNEL.name}\.cu for sm_90 in \d+ ms", message)


def test_cache_key_holds_architecture_compiler_and_source(folder, monkeypatch):
    jit.compiled(KERNEL, 90)
    jit.compiled(KERNEL, 80)
    assert len(list(folder.iterdir())) == 2
    with monkeypatch.context() as patch:
        patch.setattr(jit, "compiler", lambda: "another build")
        jit.compiled(KERNEL, 90)
    assert len(list(folder.iterdir())) == 3
    source = jit.source(KERNEL)
    monkeypatch.setattr(jit, "source", lambda kernel: source + "\n// changed")
    jit.compiled(KERNEL, 90)
    assert len(list(folder.iterdir())) == 4


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not say where a library is from")
def test_compiler_key_distinguishes_nvrtc_builds_of_one_version():
    from cupy_backends.cuda.libs import nvrtc

    version, head, size = jit.compiler().split("\0")
    assert version == str(nvrtc.getVersion())
    assert bytes.fromhex(head).startswith(b"\x7fELF") and int(size) > 2**20


def test_gpus_older_than_nvrtc_supports_raise():
    with pytest.raises(RuntimeError, match=r"^k\.cu: NVRTC [\d.]+ compiles for .* newer, the GPU has 2\.1: "):
        jit.compile('extern "C" __global__ void k() {}', "k.cu", 21)


def test_damaged_entries_are_recompiled(folder, monkeypatch):
    code = jit.compiled(KERNEL, 90)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], bytes(len(whole)), b"text", whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(damaged)
        assert jit.compiled(KERNEL, 90) == code
        assert path.read_bytes() == whole


def test_entries_are_recompiled_on_request(folder):
    code = jit.compiled(KERNEL, 90)
    (path,) = folder.iterdir()
    other = b"of no use"
    path.write_bytes(disk_cache.digest_of(str(path), other) + other)
    assert jit.compiled(KERNEL, 90) == other
    assert jit.compiled(KERNEL, 90, anew=True) == code == jit.compiled(KERNEL, 90)


def test_an_unusable_folder_disables_only_the_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GPUOPS_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert jit.compiled(KERNEL, 90).startswith(b"\x7fELF")


COMPILE = """
import sys
from gpuops.device import jit
from tests.test_jit import KERNEL
compile = jit.compile

def noted(*arguments):
    print("compiles", flush=True)
    return compile(*arguments)

jit.compile = noted
sys.stdin.readline()
jit.compiled(KERNEL, 90)
"""


def test_concurrent_processes_compile_once(folder):
    command = [sys.executable, "-c", COMPILE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    processes = [subprocess.Popen(command, **pipes) for _ in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=100)[0] for process in processes]
    assert sorted(printed) == ["", "", "", "compiles\n"]
    assert [process.returncode for process in processes] == [0] * 4
    assert [path.suffix for path in folder.iterdir()] == [".cubin"]


def test_concurrent_threads_compile_once(folder, monkeypatch):
    compile, compiles = jit.compile, []
    monkeypatch.setattr(jit, "compile", lambda *arguments: compiles.append(arguments) or compile(*arguments))
    with ThreadPoolExecutor(8) as pool:
        codes = set(pool.map(lambda _: jit.compiled(KERNEL, 90), range(8)))
    assert len(codes) == len(compiles) == 1
    assert [content(path) for path in folder.iterdir()] == list(codes)


def test_failed_compilations_can_be_retried(folder, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="broken"):
        patch.setattr(jit, "source", lambda kernel: "broken")
        patch.setattr(jit, "compile", broken)
        jit.compiled(KERNEL, 90)
    assert list(folder.iterdir()) == []
    assert jit.compiled(KERNEL, 90).startswith(b"\x7fELF")


def test_compilation_works_without_file_locks(folder, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="files are locked by POSIX systems")

    def refuse(*arguments):
        raise OSError("no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert jit.compiled(KERNEL, 90).startswith(b"\x7fELF")
    assert ".cubin" in {path.suffix for path in folder.iterdir()}


def broken(*arguments):
    raise RuntimeError("broken")


def test_an_architecture_newer_than_nvrtc_gets_ptx():
    assert b".target sm_" in jit.compile(jit.source(KERNEL), "reduce_rows.cu", 999)


def test_compile_errors_include_the_compiler_log():
    with pytest.raises(RuntimeError, match=r"bad\.cu does not compile for sm_90:\n.*identifier \"nonsense\""):
        jit.compile('extern "C" __global__ void k(int* x) { *x = nonsense; }', "bad.cu", 90)


def test_compile_errors_name_the_kernel_file_and_line():
    text = jit.source(KERNEL).replace("State value = Op", "Nonsense value = Op")
    line = 1 + jit.read("reduce_small.cu").splitlines()[1:].index(
        next(line for line in jit.read("reduce_small.cu").splitlines() if "State value = Op" in line)
    )
    with pytest.raises(RuntimeError, match=rf"reduce_small\.cu\({line}\): error"):
        jit.compile(text, "reduce_small.cu", 90)


def test_the_cache_folder_follows_the_environment(monkeypatch):
    monkeypatch.delenv("GPUOPS_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert jit.cache_folder() == os.path.join("/somewhere", "gpuops")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert jit.cache_folder() == "/home/me/.cache/gpuops"
    monkeypatch.setenv("GPUOPS_CACHE_DIR", "~/kernels")
    assert jit.cache_folder() == "/home/me/kernels"
    for relative in ("kernels", "./~/kernels", "~nobody-has-this-name/kernels"):
        monkeypatch.setenv("GPUOPS_CACHE_DIR", relative)
        rule = re.escape(f"GPUOPS_CACHE_DIR must be an absolute path, got '{relative}'")
        with pytest.raises(ValueError, match=rule):
            jit.cache_folder()


def test_without_a_home_directory_nothing_is_cached(tmp_path, monkeypatch):
    for name in ("GPUOPS_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user without a passwd entry
    monkeypatch.chdir(tmp_path)
    assert jit.cache_folder() == ""
    assert jit.compiled(KERNEL, 90).startswith(b"\x7fELF")
    assert list(tmp_path.iterdir()) == []
