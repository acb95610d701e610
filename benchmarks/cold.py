"""``bench --cold``: mixes of calls whose shapes do not repeat, from an empty cache of kernels, then from a full one.

Each library runs each mix in a process of its own. Its arrays are views of one array for each dtype.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gpuops.device import prebuilt

from .cases import Case
from .first_use import CACHES
from .machines import Cpu, machine_here
from .mixes import MIXES, MOST
from .providers import PEERS, Gpuops, Provider, first_line, load
from .results import ROOT, START, Document, Unusable, prepare, save_rows
from .show import MISSING

FOLDER = ROOT / "benchmarks" / "first_calls"
WHEEL = "gpuops (wheel)"  # with the kernels that a wheel carries
#: Which libraries run which mixes: JAX compiles anew for each shape.
LIBRARIES = {**dict.fromkeys(("gpuops", WHEEL, "cupy", "torch"), tuple(MIXES)), "jax": ("six ops",)}
NAMED = (*LIBRARIES, "cuda runtime")
PATIENCE = 240  # seconds that a library may run a mix
#: Where those are counted that were compiled.
KERNELS = {**dict.fromkeys(("gpuops", WHEEL), "GPUOPS_CACHE_DIR"), "cupy": "CUPY_CACHE_DIR"}


def main(arguments: list[str]) -> int:
    """``bench --cold``: measure, and write what was found."""
    parser = argparse.ArgumentParser("python -m gpuops bench --cold", description=__doc__)
    parser.add_argument("--mixes", metavar="NAMES", help=f"only these, by comma, of {', '.join(MIXES)}")
    parser.add_argument("--providers", metavar="NAMES", help=f"only these, by comma, of {', '.join(LIBRARIES)}")
    parser.add_argument("--results", metavar="FOLDER", type=Path, default=FOLDER, help="of results (%(default)s)")
    options = parser.parse_args(arguments)
    mixes, libraries = chosen("mix", options.mixes, [*MIXES]), chosen("provider", options.providers, [*LIBRARIES])
    machine = machine_here()
    if isinstance(machine, Cpu):
        raise Unusable("kernels are compiled for a GPU: this needs one")
    prepare(options.results)
    rows = []
    for mix in mixes:
        for library in libraries:
            if mix in LIBRARIES[library]:
                rows.append({"mix": mix, "library": library, **measured(library, mix)})
                print(json.dumps(rows[-1]), flush=True)
    part = ".part" if options.mixes or options.providers else ""  # a selection never replaces a full run
    save_rows(options.results / f"{machine.folder}{part}.json", machine, rows)
    return 0


def chosen(what: str, names: str | None, every: list[str]) -> list[str]:
    """Those that were asked for by name."""
    wanted = every if names is None else [name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in every]:
        raise Unusable(f"there is no {what} {unknown[0]!r}; there are {', '.join(every)}")
    return wanted


def measured(library: str, mix: str) -> dict[str, Any]:
    """A mix in two processes, of which the first finds no kernels and the second those of the first."""
    with TemporaryDirectory() as root:
        folders = {name: os.path.join(root, name.lower()) for name in CACHES}
        try:
            first, second = (process(library, mix, folders) for _ in range(2))
        except (subprocess.TimeoutExpired, RuntimeError) as failure:
            return {"failed": first_line(failure)}
        counted = KERNELS.get(library)
        kernels = sum(len(files) for *_, files in os.walk(folders[counted])) if counted else None
    return {**first, "again": second["seconds"], "kernels": kernels}


def process(library: str, mix: str, folders: dict[str, str]) -> dict[str, Any]:
    """What a new process measures."""
    command = [sys.executable, "-m", __name__, library, mix]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=START, env=os.environ | folders, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}")
    measurements: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measurements


# ------------------------------------------------------------------------------------------------------ in the process


def run(library: str, mix: str) -> dict[str, Any]:
    """Run a mix with a library: the seconds until all results are there, and the milliseconds of the worst call."""
    import cupy

    if library == WHEEL and not prebuilt.counts():
        raise RuntimeError("there are no built kernels: run make kernels")
    if library == "gpuops":
        prebuilt.FOLDER = os.devnull
    peers = {kind.name: kind for kind in PEERS["gpu"]}
    provider = load(peers[library], cupy) if library in peers else Gpuops(cupy)
    if isinstance(provider, str):
        raise RuntimeError(provider)
    pools: dict[str, Any] = {}
    functions: dict[Case, Any] = {}  # what is jitted knows its shapes
    calls, refused = [], 0
    for case in MIXES[mix]():
        if case not in functions:
            functions[case] = provider.call(case)
        calls.append((functions[case], [provider.array(array) for array in operands(cupy, pools, case)]))
    cupy.cuda.Device().synchronize()
    worst, result, start = 0.0, None, time.perf_counter()
    for call, arrays in calls:
        begin = time.perf_counter()
        try:
            result = call(*arrays)
        except Exception:  # whatever a library raises
            refused += 1
        worst = max(worst, time.perf_counter() - begin)
    wait(cupy, provider, result)
    seconds = time.perf_counter() - start
    made = {"calls": len(calls), "refused": refused, "seconds": round(seconds, 4), "worst_ms": round(worst * 1e3, 2)}
    return made


def wait(cupy: Any, provider: Provider, result: Any) -> None:
    """Wait until a result, the last of all, is there."""
    provider.fence(result)
    cupy.cuda.Device().synchronize()


def operands(xp: Any, pools: dict[str, Any], case: Case) -> list[Any]:
    """The arrays of a case: views of an array of ones for each dtype."""
    arrays = []
    for i, operand in enumerate(case.problem.operands):
        dtype = "bool" if case.op == "where" and i == 0 else case.dtype
        if dtype not in pools:
            pools[dtype] = xp.ones(MOST, dtype)
        arrays.append(pools[dtype][: int(np.prod(operand.shape))].reshape(operand.shape))
    return arrays


# ---------------------------------------------------------------------------------------------------------- the report


def found(folder: str) -> Document | None:
    """What was measured on a machine."""
    file = FOLDER / f"{folder}.json"
    if not file.exists():
        return None
    document: Document = json.loads(file.read_text(encoding="utf-8"))
    return document


HEAD = "mix: library", "calls", "seconds", "kernels compiled", "worst call, ms", "second process, seconds"


def about(document: Document) -> str:
    """What was measured."""
    mixes = dict.fromkeys(row["mix"] for row in document["rows"])
    said = ". ".join(f"*{mix}*: {(MIXES[mix].__doc__ or '').strip().rstrip('.')}" for mix in mixes)
    known = ", ".join(f"{name} {version}" for name, version in document["versions"].items() if name in NAMED)
    with_wheel = any(row["library"] == WHEEL for row in document["rows"])
    used = f"*{WHEEL}* has the common kernels that a wheel carries"
    carried = used if with_wheel else "The kernels that a wheel carries are not used"
    return (
        "Programs whose shapes do not repeat, in a process that finds no compiled kernels, then in a second one that "
        f"finds those of the first. {carried}. The library is imported, and the GPU initialised, before the time "
        "starts. Kernels are files in the "
        f"library's cache; where a library does not have an op for a dtype, it makes fewer calls. {said}. "
        f"Commit `{document['commit'][:12]}`; {known}.\n"
    )


def lines(document: Document) -> list[list[str]]:
    """The rows of the table."""
    rows = []
    for row in document["rows"]:
        name = f"{row['mix']}: {row['library']}"
        if "failed" in row:
            rows.append([name, *[MISSING] * 4, row["failed"]])
            continue
        kernels = MISSING if row["kernels"] is None else str(row["kernels"])
        made = str(row["calls"] - row["refused"])
        rows.append([name, made, f"{row['seconds']:.2f}", kernels, f"{row['worst_ms']:.0f}", f"{row['again']:.2f}"])
    return rows


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:])))
