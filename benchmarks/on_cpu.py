"""``bench --cpu``: NumPy arrays, on one thread and on all cores, beside NumPy, SciPy, PyTorch, numexpr and Numba.

Arrays stay in the cache where they fit into it. The reference is a copy of as many bytes on as many threads.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpuops.call import launch_cache
from gpuops.host import threads

from .cases import Case, Group, Problem, along, five, joined, scaled, standardized, together
from .harness import measure
from .machines import Cpu
from .providers import PEERS, Provider, load
from .results import ROOT, Document, Unusable, prepare, save_rows, timed
from .show import MISSING, ratio

FOLDER = ROOT / "benchmarks" / "on_cpu"
LARGE = (2048, 4096)

#: Shapes and axes that differ in what a processor does with them.
SHAPES = (
    along((128, 128), 1), along((128, 128), 0), along((256, 1000), 1), along((512, 512), 0), along(LARGE, 1),
    along(LARGE, 0), along((64, 64, 512), 1), along((64, 512, 64), (0, 2)), along((2**19, 10), 1),
    along((2**19, 16), 0), along((16, 2**18), 1), along((2**22,), 0), along(LARGE, 1, "F"), along(LARGE, 1, "[:, ::2]"),
)  # fmt: skip
FEW = SHAPES[2:6]
BIG = (*SHAPES[4:7], SHAPES[8])
LINES = tuple(problem for problem in SHAPES if problem.axis != (0, 2))  # that a scan goes along
PAIRS = (*map(joined, BIG), joined(along((2**22,), None)))
MASKED = tuple(along(LARGE, axis, mask=LARGE) for axis in (1, 0))
CHOICES = (
    together((256, 1000), (256, 1000), (256, 1000)), together(LARGE, LARGE, LARGE), together(LARGE, (), ()),
    together((2048, 1), (1, 4096), LARGE),
)  # fmt: skip
COPIES = (
    together((1000, 1), shape=(1000, 250)), together((2048, 1), shape=LARGE), together((4096,), shape=LARGE),
    together((64, 1, 512), shape=(64, 128, 512)),
)  # fmt: skip

#: The cases of each op: problems by dtypes.
TABLES: dict[str, tuple[tuple[str, tuple[Problem, ...]], ...]] = {
    "softmax": (("float32", SHAPES), ("float64", SHAPES), ("float16 bfloat16", FEW)),
    "log_softmax": (("float32", SHAPES), ("float64", FEW)),
    "logsumexp": (("float32", SHAPES), ("float64", FEW)),
    "sum": (("float32", SHAPES + MASKED), ("float16", SHAPES), ("float64 int32", FEW)),
    "max": (("float32", SHAPES), ("float16 int32", FEW)),
    "mean": (("float32 int32", SHAPES), ("float32", MASKED)),
    "any": (("float32", FEW),),
    "var": (("float32", FEW + BIG[2:]), ("float16", BIG[:1])),
    "nansum": (("float32", BIG),),
    "nanmax": (("float32", BIG),),
    "argmax": (("float32", BIG),),
    "max_with_index": (("float32", BIG),),
    "count_nonzero": (("float32", BIG),),
    "vector_norm": (("float32", BIG),),
    "cumsum": (("float32", LINES), ("float64 int32", FEW), ("float16 complex64", BIG)),
    "cumprod": (("float32 float64", FEW), ("complex64", BIG)),
    "cummax": (("float32", FEW), ("float16 int32", BIG)),
    "logcumsumexp": (("float32 float64", FEW),),
    "where": (("float32 float64 int8", CHOICES),),
    "expand": (("float32 float64", COPIES),),
    "squared_distance": (("float32", PAIRS), ("float64 int32", PAIRS[:1])),
    "greatest_difference": (("float32", PAIRS),),
    "share_above": (("float32", PAIRS),),
    "scaled_logsumexp": (("float32", (*map(scaled, BIG[:2]), BIG[0])),),
    "scaled_softmax": (("float32", tuple(map(scaled, BIG[:2]))),),
    "standardize": (("float32", (standardized(LARGE),)),),
    "polynomial": (("float32 float64", (five(along((2**22,), None)),)),),
    "cosine": (("float32", PAIRS),),
}
REFERENCES = ("numpy", "scipy")


def cases(op: str) -> Iterator[Case]:
    """The cases of an op."""
    for dtypes, problems in TABLES[op]:
        for dtype in dtypes.split():
            group = Group(dtype, "", problems, dtype, picks=())
            for problem in problems:
                yield Case(op, group, problem, dtype, pick=True)


def main(arguments: list[str]) -> int:
    """``bench --cpu``: measure, and write what was found."""
    parser = argparse.ArgumentParser("python -m gpuops bench --cpu", description=__doc__)
    parser.add_argument("ops", metavar="OP", nargs="*", help=f"of {', '.join(TABLES)}; all of them if none is")
    parser.add_argument("--cases", metavar="TEXT", help="only those whose label has this text")
    parser.add_argument("--results", metavar="FOLDER", type=Path, default=FOLDER, help="of results (%(default)s)")
    options = parser.parse_args(arguments)
    if unknown := [op for op in options.ops if op not in TABLES]:
        raise Unusable(f"there is no op {unknown[0]!r}; there are {', '.join(TABLES)}")
    chosen = [case for op in options.ops or TABLES for case in cases(op) if (options.cases or "") in case.label]
    if not chosen:
        raise Unusable(f"no case of {', '.join(options.ops or TABLES)} has {options.cases!r} in its label")
    prepare(options.results)
    machine = Cpu(hot=True)
    peers = [peer for peer in (load(kind, machine.xp) for kind in PEERS["cpu"]) if isinstance(peer, Provider)]
    rows, cores = [], threads.limit()
    for count in sorted({1, cores}):
        on_threads(count)
        for case in chosen:
            rows.append({"threads": count, **measure(machine, case, peers, lambda name: None)})
            print(f"{count}: {case.op} {case.label}: {', '.join(said(rows[-1]))}", flush=True)
    part = ".part" if options.ops or options.cases else ""  # a selection never replaces a full run
    save_rows(options.results / f"{slug(machine.name)}-{cores}{part}.json", machine, rows)
    return 1 if any(map(faults, rows)) else 0


def slug(name: str) -> str:
    """A processor's name as that of a file."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(\w+\)", "", name.lower())).strip("-")


def on_threads(count: int) -> None:
    """Let gpuops and its peers use so many threads."""
    os.environ["GPUOPS_NUM_THREADS"] = str(count)
    threads.limit.cache_clear()
    threads.pool.cache_clear()
    launch_cache.clear()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)
    if numexpr := sys.modules.get("numexpr"):
        numexpr.set_num_threads(count)
    if numba := sys.modules.get("numba"):
        numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


def faults(row: dict[str, Any]) -> list[str]:
    """What is wrong with gpuops in a case."""
    refused = {result["provider"]: result["refused"] for result in row.get("results", ()) if "refused" in result}
    return [refused["gpuops"]] if "gpuops" in refused else []


def said(row: dict[str, Any]) -> Iterator[str]:
    """A case in a line: microseconds of gpuops and, in its time, of the copy and of the others."""
    found = timed(row)
    if "gpuops" not in found:
        yield from faults(row) or [row.get("skipped", "")]
        return
    ours = found.pop("gpuops")["us"]
    yield f"{ours:.3g} µs"
    for name, us in ({"copy": row["limit"]["us"]} | {name: result["us"] for name, result in found.items()}).items():
        yield f"{name} {us / ours:.2f}"


# ---------------------------------------------------------------------------------------------------------- the report

HEAD = (
    "op", "threads", "cases", "of NumPy or SciPy: median", "worst", "of one thread: median", "of PyTorch: median",
    "worst", "of numexpr: median", "of reference: median",
)  # fmt: skip


def found() -> dict[str, Document]:
    """What was measured, by machine."""
    files = sorted(file for file in FOLDER.glob("*.json") if not file.stem.endswith(".part"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def gains(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[float]:
    """The speed of gpuops over that of one of these libraries, in each case that both have."""
    times = [found for row in rows if "gpuops" in (found := timed(row))]
    return [found[name]["us"] / found["gpuops"]["us"] for found in times for name in names if name in found]


def lines(document: Document) -> Iterator[list[str]]:
    """The rows of the table: an op on some threads."""
    for op in TABLES:
        every = [row for row in document["rows"] if row["op"] == op and "gpuops" in timed(row)]
        alone = {row["case"]: timed(row)["gpuops"]["us"] for row in every if row["threads"] == 1}
        for count in sorted({row["threads"] for row in every}):
            rows = [row for row in every if row["threads"] == count]
            ours = [timed(row)["gpuops"] for row in rows]
            base, torch, numexpr = (gains(rows, names) for names in (REFERENCES, ("torch",), ("numexpr",)))
            more = [alone[row["case"]] / result["us"] for row, result in zip(rows, ours, strict=True) if count > 1]
            peers = median(torch), least(torch), median(numexpr)
            copies = median([result["of_limit"] for result in ours])
            yield [op, str(count), str(len(rows)), median(base), least(base), median(more), *peers, copies]


NOISE = 0.05


def losses(document: Document, names: tuple[str, ...] = REFERENCES) -> list[tuple[float, str]]:
    """The cases in which one of these libraries is faster, the worst first: by how much, and which."""
    slow = []
    for row in document["rows"]:
        gain = min(gains([row], names), default=1)
        if gain < 1 - NOISE:
            threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
            slow.append((gain, f"{row['op']} {row['case']}, {threads}"))
    return sorted(slow)


def behind(document: Document, names: tuple[str, ...], count: int) -> list[tuple[float, str]]:
    """The ops that one of these libraries computes faster on so many threads, in the median of the cases."""
    found = []
    for op in TABLES:
        values = gains([row for row in document["rows"] if (row["op"], row["threads"]) == (op, count)], names)
        if values and statistics.median(values) < 1 - NOISE:
            found.append((statistics.median(values), op))
    return sorted(found)


def most_threads(document: Document) -> int:
    """The most threads that were measured: the processor's cores."""
    return max(row["threads"] for row in document["rows"])


def median(values: list[float]) -> str:
    return ratio(statistics.median(values)) if values else MISSING


def least(values: list[float]) -> str:
    return ratio(min(values)) if values else MISSING


def about(document: Document) -> str:
    """What was measured."""
    known = ", ".join(f"{name} {version}" for name, version in document["versions"].items() if name in NAMED)
    return f"{document['machine']}, {most_threads(document)} cores. Commit `{document['commit'][:12]}`; {known}.\n"


NAMED = ("gpuops", "python", "numpy", "scipy", "torch", "numexpr", "numba")
