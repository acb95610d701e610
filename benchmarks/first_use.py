"""First uses: imports, and a library's first call, each in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from .cases import COMPILED_BEFORE, IMPORT, NEW_EXPRESSION, NEW_NUMBER, NEW_SHAPE, NEWS, NOTHING_COMPILED, Case
from .harness import Limit, description, rated, reason
from .providers import Gpuops, Provider
from .results import START
from .timing import Subject

REPEATS = 3
#: Variables for the folders of compiled kernels.
CACHES = ("GPUOPS_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
SCRIPT = """\
import time
{before}
begin = time.perf_counter()
{start}
started = time.perf_counter()
{use}
print(started - begin, time.perf_counter() - started)
"""


class Library(NamedTuple):
    """A process as Python text: imports, GPU start-up, and first calls by op."""

    before: str
    start: str
    calls: dict[str, str]
    compiles: bool = True  # kernels, when they are first used


WITH_CUPY = """\
x, y, mask = cupy.ones((32, 32), "float32"), cupy.zeros((32, 32), "float32"), cupy.zeros((32, 32), bool)
wait = cupy.cuda.Device().synchronize
wait()"""
WITH_TORCH = """\
x = torch.ones((32, 32), device="cuda")
wait = torch.cuda.synchronize
wait()"""

#: gpuops without the kernels that a wheel carries.
UNBUILT = "import os, gpuops.device.prebuilt as prebuilt; prebuilt.FOLDER = os.devnull"

#: By provider.
LIBRARIES = {
    "gpuops": Library(
        f"import cupy, gpuops\n{UNBUILT}", WITH_CUPY,
        {
            "softmax": "gpuops.softmax(x, axis=1)", "sum": "gpuops.sum(x, axis=1)", "where": "gpuops.where(mask, x, y)",
        },
    ),
    "cupy": Library("import cupy", WITH_CUPY, {"sum": "x.sum(axis=1)"}),
    "torch": Library("import torch", WITH_TORCH, {"sum": "x.sum(dim=1)"}, compiles=False),
}  # fmt: skip


#: Two expressions of two arrays, the first with a number, for libraries whose arrays have NumPy's operators.
SQUARES = "((x - y) * by) ** 2"
DIFFERENCES = "abs(x - y)"


class Fusing(NamedTuple):
    """A library that compiles expressions, as Python text: imports, arrays ``x, y`` and larger ones, functions."""

    before: str
    arrays: str
    functions: str
    wait: str = "wait()"


CUPY_ARRAYS = """\
x, y, larger_x, larger_y = (cupy.ones(shape, "float32") for shape in 2 * [(32, 32)] + 2 * [(48, 40)])
wait = cupy.cuda.Device().synchronize
wait()"""

#: By provider.
FUSING = {
    "gpuops": Fusing(
        f"import cupy, gpuops\n{UNBUILT}", CUPY_ARRAYS,
        f"""
def squares(x, y, by):
    x = gpuops.lazy(x)
    return gpuops.sum({SQUARES}, axis=1)
def differences(x, y):
    x = gpuops.lazy(x)
    return gpuops.max({DIFFERENCES}, axis=1)""",
    ),
    "cupy.fuse": Fusing(
        "import cupy", CUPY_ARRAYS,
        f"""
squares = cupy.fuse(kernel_name="squares")(lambda x, y, by: cupy.sum({SQUARES}, axis=1))
differences = cupy.fuse(kernel_name="differences")(lambda x, y: cupy.sum({DIFFERENCES}, axis=1))""",
    ),
    "torch.compile": Fusing(
        "import torch",
        """\
x, y, larger_x, larger_y = (torch.ones(shape, device="cuda") for shape in 2 * [(32, 32)] + 2 * [(48, 40)])
wait = torch.cuda.synchronize
wait()""",
        f"""
squares = torch.compile(lambda x, y, by: torch.sum({SQUARES}, dim=1))
differences = torch.compile(lambda x, y: torch.amax({DIFFERENCES}, dim=1))""",
    ),
    "jax": Fusing(
        "import jax",
        """\
x, y, larger_x, larger_y = (jax.numpy.ones(shape, "float32") for shape in 2 * [(32, 32)] + 2 * [(48, 40)])
wait = lambda result: result.block_until_ready()
wait(larger_y)""",
        f"""
squares = jax.jit(lambda x, y, by: jax.numpy.sum({SQUARES}, axis=1))
differences = jax.jit(lambda x, y: jax.numpy.max({DIFFERENCES}, axis=1))""",
        "wait(result)",
    ),
}  # fmt: skip
KNOWN = "squares(x, y, 2.0)"
NEW_CALLS = {
    NEW_EXPRESSION: "differences(x, y)",
    NEW_SHAPE: "squares(larger_x, larger_y, 2.0)",
    NEW_NUMBER: "squares(x, y, 3.0)",
}


class Seconds(NamedTuple):
    """The times that a process measured."""

    start: float
    use: float


def measure(machine: Any, case: Case, peers: Iterable[Provider], watch: Callable[[str], None]) -> dict[str, Any]:
    """Measure a first use, libraries round-robin. The limit is the start-up time in the first library's process."""
    lineup = [provider for provider in (Gpuops(machine.xp), *peers) if takes_part(provider.name, case)]
    limit = Subject(Limit("start"), [], fresh=False)
    subjects = [Subject(provider, [], fresh=False) for provider in lineup]
    refused: dict[str, str] = {}
    for repeat in range(REPEATS):
        for subject in subjects:
            name = subject.runner.name
            watch(name)
            try:
                if name not in refused:
                    found = MEASURED[case.problem.how](name, case.op, repeat)
                    subject.samples.append([found.use])
                    if len(limit.samples) == repeat:
                        limit.samples.append([found.start])
            except Exception as failure:
                refused[name] = reason(failure)
    if len(limit.samples) < REPEATS:
        return description(case) | {"skipped": next(iter(refused.values()))}
    return description(case) | rated(1, limit, subjects, lineup, refused)


def takes_part(name: str, case: Case) -> bool:
    """Whether a provider has such a first use."""
    if case.problem.how in NEWS:
        return name in FUSING
    if (library := LIBRARIES.get(name)) is None:
        return False
    return case.problem.how == IMPORT or (
        case.op in library.calls and (library.compiles or case.problem.how == COMPILED_BEFORE)
    )


def imported(name: str, op: str, repeat: int) -> Seconds:
    """The import of NumPy, then of the library."""
    return process("", "import numpy", f"import {name}")


@cache
def compiled(name: str, op: str, repeat: int) -> tuple[TemporaryDirectory[str], Seconds]:
    """A folder for compiled kernels, and the time of a first call that filled it."""
    folder = TemporaryDirectory()
    return folder, called(name, op, folder.name)


def nothing_compiled(name: str, op: str, repeat: int) -> Seconds:
    """A first call that compiles everything."""
    return compiled(name, op, repeat)[1]


def compiled_before(name: str, op: str, repeat: int) -> Seconds:
    """A first call with filled caches, in a new process."""
    return called(name, op, compiled(name, op, repeat)[0].name)


def called(name: str, op: str, folder: str) -> Seconds:
    """A library's first call, until its result is there, over the start of the GPU."""
    before, start, calls, _ = LIBRARIES[name]
    return process(before, start, f"{calls[op]}\nwait()", dict.fromkeys(CACHES, folder))


def anew(name: str, op: str, repeat: int, how: str) -> Seconds:
    """A call of an expression in which nothing is new, then one with something new, with empty caches."""
    before, arrays, functions, wait = FUSING[name]
    known, new = (f"result = {call}\n{wait}" for call in (KNOWN, NEW_CALLS[how]))
    with TemporaryDirectory() as folder:
        return process("\n".join((before, arrays, functions, known)), known, new, dict.fromkeys(CACHES, folder))


def process(before: str, start: str, use: str, variables: dict[str, str] | None = None) -> Seconds:
    """Run all three in a new process, which times the latter two."""
    command = [sys.executable, "-c", SCRIPT.format(before=before, start=start, use=use)]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | (variables or {})  # modules are compiled once for all
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=START, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}")
    return Seconds(*map(float, done.stdout.split()[-2:]))


#: By ``Problem.how``.
MEASURED: dict[str, Callable[[str, str, int], Seconds]] = {
    IMPORT: imported,
    NOTHING_COMPILED: nothing_compiled,
    COMPILED_BEFORE: compiled_before,
    **{how: partial(anew, how=how) for how in NEWS},
}
