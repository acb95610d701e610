"""Results files: content, location, writing and reading."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import gpuops

from .cases import TABLES, Group
from .ops import OPS
from .providers import PEERS

SOURCES = Path(__file__).resolve().parent.parent
INSTALLED = not (SOURCES / "pyproject.toml").exists()  # as gpuops.benchmarks
#: Results and pages: the repository's, or if there is none, a folder of the current one with the same layout.
ROOT = Path.cwd() / "gpuops-bench" if INSTALLED else SOURCES
#: Where a new process starts, so that it imports the same gpuops.
START = None if INSTALLED else SOURCES
FOLDER = ROOT / "benchmarks" / "results"
SCHEMA = Path(__file__).with_name("schema.json")
VERSION = 1  # of the files' form
UNITS = {"host": "M calls/s", "scaling": "GB/s"}  # by mode; the others' are those of their ops

Document = dict[str, Any]


class Unusable(Exception):
    """An unusable argument, results file or folder; the message says which and why."""


def document(
    machine: Any, op: str, mode: str, selection: dict[str, Any], groups: Iterable[Group], cases: list[dict[str, Any]]
) -> Document:
    """The results of a run, with its environment and settings."""
    return {
        "version": VERSION,
        "op": op,  # or "host" or "scaling", of all ops
        "mode": mode,  # cold, hot, host or scaling
        "selection": selection,  # what was asked for, if not everything
        "unit": UNITS.get(mode) or ("TFLOP/s" if OPS[op].limit == "BLAS" else "GB/s"),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "environment": {**machine.environment(), "system": platform.platform(), "versions": versions(mode)},
        "groups": {group.name: {"origin": group.origin} for group in groups},
        "cases": cases,
    }


def versions(mode: str = "cold") -> dict[str, str]:
    """Versions of gpuops, its peers and their platform."""
    peers = (peer.distribution for kinds in PEERS.values() for peer in kinds)
    distributions = {"dask", "distributed"} if mode == "scaling" else {*peers, "numba"} - {""}
    found = {"gpuops": gpuops.__version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in sorted(distributions - {"numpy"}):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    try:
        import cupy

        runtime = cupy.cuda.runtime.runtimeGetVersion()
    except Exception:  # not installed, or finds no GPU
        return found
    return found | {"cupy": cupy.__version__, "cuda runtime": f"{runtime // 1000}.{runtime % 1000 // 10}"}


def commit() -> str:
    """The commit that was measured, with a + if the code differs from it."""
    if INSTALLED:
        return "unknown"
    code = ("gpuops", "benchmarks/*.py")
    try:
        head = git("rev-parse", "HEAD")
        return head + ("+" if git("status", "--porcelain", "--", *code) else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def file_name(op: str, mode: str, selection: dict[str, Any]) -> str:
    """The name of a results file; a selection has another, so that it never replaces a full run."""
    return f"{op}{'.hot' if mode == 'hot' else ''}{'.part' if selection else ''}.json"


def prepare(folder: Path) -> None:
    """Make a folder and check that it is writable, before anything is measured."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as failure:
        raise Unusable(f"cannot write to {folder}: {failure.strerror}") from failure


def save(file: Path, document: Document) -> None:
    """Write a results file, one line per result so that changes can be read."""
    head = {key: value for key, value in document.items() if key != "cases"}
    text = json.dumps(head, indent=1, ensure_ascii=False)[:-2] + ',\n "cases": [\n'
    write(file, text + ",\n".join(lines(case) for case in document["cases"]) + "\n ]\n}\n")


def save_rows(file: Path, machine: Any, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows that were measured on a machine, one per line, with the commit and the versions."""
    head = {"machine": machine.name, "commit": commit(), "versions": versions()}
    text = json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n'
    write(file, text + ",\n".join(map(json.dumps, rows)) + "\n ]\n}\n")


def write(file: Path, text: str) -> None:
    """Write a file, in a new folder if need be, or say why that cannot be done."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as failure:
        raise Unusable(f"cannot write {file}: {failure.strerror}") from failure


def lines(case: dict[str, Any]) -> str:
    """A case as JSON: what it is in one line, then the limit and each result in one."""
    what = {key: value for key, value in case.items() if key not in ("limit", "results")}
    text = "  " + json.dumps(what, ensure_ascii=False)
    if "results" not in case:
        return text
    results = ",\n".join("    " + json.dumps(result, ensure_ascii=False) for result in case["results"])
    return f'{text[:-1]},\n   "limit": {json.dumps(case["limit"])},\n   "results": [\n{results}]}}'


def load(file: str | Path) -> Document:
    """Read a results file."""
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as failure:
        raise Unusable(f"cannot read {file}: {failure.strerror}") from failure
    except ValueError as failure:  # also of bytes that are no text
        raise Unusable(f"{file} is not JSON: {failure}") from failure
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise Unusable(f"{file} is not a results file of version {VERSION}")
    return found


def load_all(folder: Path) -> list[Document]:
    """The complete results of one machine, in the order of the ops, and those of all ops together."""
    files = [folder / f"{name}.json" for name in (*TABLES, *(f"{op}.hot" for op in TABLES), "host", "scaling")]
    found = [load(file) for file in files if file.exists()]
    if not found:
        raise Unusable(f"there are no results in {folder}")
    return found


def positive(text: str) -> int:
    """An argument that must be a positive integer."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def published(
    action: str, description: str, output: Path, arguments: list[str]
) -> tuple[dict[str, list[Document]], Path]:
    """Parse the arguments of an action: the results by machine folder, and the output path."""
    parser = argparse.ArgumentParser(f"python -m gpuops bench {action}", description=description)
    parser.add_argument("--results", metavar="FOLDER", type=Path, default=FOLDER, help="of results (%(default)s)")
    parser.add_argument("--output", metavar="PATH", type=Path, default=output, help="what is written (%(default)s)")
    options = parser.parse_args(arguments)
    folders = sorted(path for path in options.results.glob("*") if any(path.glob("*.json")))
    if not folders:
        raise Unusable(f"there are no results in {options.results}")
    return {folder.name: load_all(folder) for folder in folders}, options.output


def timed(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The results of a case that have a time, by provider."""
    return {result["provider"]: result for result in case.get("results", ()) if "us" in result}


def rivals(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The timed results of peers."""
    return {name: result for name, result in timed(case).items() if not name.startswith("gpuops")}


def peers(cases: Iterable[dict[str, Any]]) -> list[str]:
    """The names of the peers that have a time somewhere, in the order of the file."""
    return list(dict.fromkeys(name for case in cases for name in rivals(case)))


def libraries(cases: Iterable[dict[str, Any]]) -> list[str]:
    """The names with a time somewhere, without gpuops and its strategies: peers, and gpuops on foreign arrays."""
    return list(dict.fromkeys(name for case in cases for name in timed(case) if name.split()[0] != "gpuops"))


def ladders(cases: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The cases in which named strategies have a time."""
    return (case for case in cases if any(name.startswith("gpuops ") for name in timed(case)))
