"""``bench bits``: whether the bits of a result depend on what lies beside it, and what hard data cost exact sums."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .accuracy import host, load_all
from .arrays import dtype_of
from .cases import Case, Group, Operand, Problem, Shape
from .machines import machine_here
from .providers import Cupy, Gpuops, Jax, Provider, Torch, first_line, load
from .results import ROOT, Document, commit, positive, prepare, versions, write
from .timing import ROUNDS, Subject

FOLDER = ROOT / "benchmarks" / "bits"
PAGE = ROOT / "docs" / "exact-measured.md"
NAMED = ("gpuops", "cupy", "torch", "jax", "cuda runtime")  # the versions that the page lists
OPS = ("sum", "mean", "var")
DTYPES = ("float32", "float64", "float16")
LENGTHS = (64, 333, 1000, 4096, 65536, 2**20)
#: Rows beside it.
BATCHES = (2, 7, 64, 1024)
MOST = 2**24  # elements of an array


def others(x: np.ndarray, elements: int) -> Iterator[tuple[str, np.ndarray, int | None, Any]]:
    """Arrays with the elements of a vector, what about them is another, the axis, and where the result is."""
    random = np.random.default_rng(1)
    for batch in BATCHES:
        if batch * x.size <= elements:
            rows = random.standard_normal((batch, x.size)).astype(x.dtype)
            rows[batch // 2] = x
            yield "rows beside it", rows, 1, batch // 2
            yield "columns beside it", np.ascontiguousarray(rows.T), 0, batch // 2
    yield "its alignment", np.append(x.dtype.type(0), x)[1:], None, ()
    yield "the order of elements", random.permutation(x), None, ()
    yield "its shape", x[: x.size // 2 * 2].reshape(2, -1), None, ()


#: Data by what becomes of exact sums: elements of a row. All but the first need bits that sums of two doubles may lack.
HARD: dict[str, Callable[[Any, Shape, Any], np.ndarray]] = {
    "normal": lambda random, shape, top: random.standard_normal(shape),
    "all 0.1": lambda random, shape, top: np.full(shape, 0.1),
    "mean 1e6, spread 1": lambda random, shape, top: 1e6 + random.standard_normal(shape),
    "lognormal": lambda random, shape, top: np.exp(3 * random.standard_normal(shape)),
    "x and -x, lognormal": lambda random, shape, top: opposite(np.exp(3 * random.standard_normal(shape))),
    "all exponents": lambda random, shape, top: np.ldexp(random.random(shape) - 0.5, random.integers(-top, top, shape)),
}
TIMED = (((2**24,), None), ((4096, 4096), 1), ((4096, 4096), 0))


def opposite(x: np.ndarray) -> np.ndarray:
    """Elements of which the second half is the first, with the other sign."""
    flat = x.reshape(-1)
    half = flat.size // 2
    flat[half : 2 * half] = -flat[:half]
    return x


HEAD = """\
# Exact sums, measured

This page is written by `python -m gpuops bench bits` from what it measures.
[Exact sums](exact.md) says what is promised, and how it works.
"""
BITS = """\
**In how many cases a result has the same bits**: the sum, mean or variance of a vector of normally distributed
elements, alone and in other settings. Vectors have {lengths} elements, of {dtypes};
libraries that compile for each shape: sums of {first} alone.

{table}"""
COSTS = """\
**What hard data cost** (microseconds, cold cache). Where two doubles do not determine the rounded result, a block reads
the elements of that result once more. Both halves of *x and -x* cancel to exactly 0.

{table}"""


def main(arguments: list[str]) -> int:
    """``bench bits``: measure, and write the page from this and earlier measurements."""
    parser = argparse.ArgumentParser("python -m gpuops bench bits", description=__doc__)
    parser.add_argument("--elements", metavar="N", type=positive, default=MOST, help="of arrays, at most (%(default)s)")
    parser.add_argument("--results", metavar="FOLDER", type=Path, default=FOLDER, help="of results (%(default)s)")
    parser.add_argument("--output", metavar="FILE", type=Path, default=PAGE, help="the page (%(default)s)")
    options = parser.parse_args(arguments)
    machine = machine_here()
    prepare(options.results)
    about = {"machine": machine.name, "commit": commit(), "versions": versions()}
    found = about | {"bits": list(bits(machine, options.elements)), "costs": list(costs(machine, options.elements))}
    write(options.results / f"{machine.folder}.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    write(options.output, page(load_all(options.results)))
    print(f"{options.output}: {machine.name}")
    return 0


def case_of(op: str, dtype: str, shape: Shape, axis: int | None) -> Case:
    problem = Problem((Operand(shape),), axis)
    return Case(op, Group("bits", "", (problem,), dtype, ()), problem, dtype, pick=False)


def bits(machine: Any, elements: int) -> Iterator[dict[str, Any]]:
    """For each op, dtype and library: by what is another, in how many cases of how many bits are the same."""
    kinds = (Cupy, Torch, Jax) if machine.xp is not np else ()
    loaded = [Gpuops(machine.xp), *(load(kind, machine.xp) for kind in kinds)]
    providers = [provider for provider in loaded if isinstance(provider, Provider)]
    for op in OPS:
        for dtype in DTYPES:
            for provider in providers:
                if op in provider.ops and (not provider.compiles or (op, dtype) == (OPS[0], DTYPES[0])):
                    row = {"op": op, "dtype": dtype, "library": provider.name}
                    yield row | same(machine, provider, op, dtype, elements)


def same(machine: Any, provider: Provider, op: str, dtype: str, elements: int) -> dict[str, Any]:
    counts: dict[str, list[int]] = {}

    def result(x: np.ndarray, axis: int | None, place: Any) -> bytes:
        call = provider.call(case_of(op, dtype, x.shape, axis))
        return host(provider.wide(call(provider.array(machine.upload(x)))))[place].tobytes()

    try:
        for n in LENGTHS:
            if n > elements:
                continue
            x = np.random.default_rng(n).standard_normal(n).astype(dtype_of(dtype))
            right = result(x, None, ())
            for what, array, axis, place in others(x, elements):
                if array.size % n == 0:
                    count = counts.setdefault(what, [0, 0])
                    count[0] += result(array, axis, place) == right
                    count[1] += 1
            machine.tidy()
    except Exception as failure:  # whatever a library raises
        return {"refused": first_line(failure)}
    return {"same": counts}


def costs(machine: Any, elements: int) -> Iterator[dict[str, Any]]:
    """For each op, dtype, shape and kind of data: microseconds."""
    provider = Gpuops(machine.xp)
    for op in ("sum", "var"):
        for dtype in DTYPES[:2]:
            for shape, axis in TIMED:
                most = max(2, int(elements ** (1 / len(shape))))
                lengths = tuple(min(n, most) for n in shape)
                row: dict[str, Any] = {"op": op, "dtype": dtype, "shape": list(lengths), "axis": axis}
                for name, make in HARD.items():
                    top = 60 if dtype == "float32" else 400
                    x = machine.upload(make(np.random.default_rng(0), lengths, top).astype(dtype_of(dtype)))
                    call = provider.call(case_of(op, dtype, lengths, axis))
                    subject = Subject(provider, [partial(call, x)], fresh=True)
                    subject.warm_up(machine.synchronize)
                    for _ in range(ROUNDS):
                        subject.sample(machine)
                    row[name] = subject.result()["us"]
                machine.tidy()
                yield row


def page(documents: list[Document]) -> str:
    """The page, from the measurements."""
    parts = [HEAD]
    lengths = ", ".join(map(str, LENGTHS[:-1])) + f" or {LENGTHS[-1]}"
    for found in documents:
        of = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if name in NAMED)
        parts.append(f"## {found['machine']}\n\n{of}; commit {found['commit'][:10]}.\n")
        about = {"lengths": lengths, "dtypes": ", ".join(DTYPES), "first": DTYPES[0]}
        parts += [BITS.format(**about, table=counted(found["bits"])), COSTS.format(table=timed(found["costs"]))]
    return "\n".join(parts)


def counted(rows: list[dict[str, Any]]) -> str:
    """The cases of each op by what is another, of all dtypes together, with the libraries beside each other."""
    names = list(dict.fromkeys(row["library"] for row in rows))
    lines = [f"| op | what is another | {' | '.join(names)} |", f"|{' --- |' * 2}{' ---: |' * len(names)}"]
    totals: dict[tuple[str, str], dict[str, list[int]]] = {}
    for row in rows:
        for what, counts in row.get("same", {}).items():
            total = totals.setdefault((row["op"], what), {}).setdefault(row["library"], [0, 0])
            total[:] = [a + b for a, b in zip(total, counts, strict=True)]
    for (op, what), found in totals.items():
        cells = [f"{found[name][0]} of {found[name][1]}" if name in found else "–" for name in names]
        lines.append(f"| {op} | {what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def timed(rows: list[dict[str, Any]]) -> str:
    """The times by data."""
    lines = [f"| op | dtype | shape | {' | '.join(HARD)} |", f"|{' --- |' * 3}{' ---: |' * len(HARD)}"]
    for row in rows:
        shape = "×".join(map(str, row["shape"])) + ("" if row["axis"] is None else f", axis {row['axis']}")
        cells = " | ".join(f"{row[name]:.4g}" for name in HARD)
        lines.append(f"| {row['op']} | {row['dtype']} | {shape} | {cells} |")
    return "\n".join(lines) + "\n"
