"""``bench accuracy``: the largest errors of gpuops and others, by op and dtype, and docs/accuracy.md."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import dtype_of
from .cases import Case, Group, Operand, Problem, Shape, shrunk
from .machines import machine_here
from .ops import OPS, finfo
from .providers import Cupy, Gpuops, Numpy, Provider, Torch, first_line, load
from .results import ROOT, Document, Unusable, commit, positive, prepare, versions, write

FOLDER = ROOT / "benchmarks" / "accuracy"
PAGE = ROOT / "docs" / "accuracy.md"
DTYPES = ("float32", "float16", "bfloat16", "float64")
NAMED = ("gpuops", "numpy", "cupy", "torch", "cuda runtime")  # of whose versions the page speaks
LARGEST = 2.0**15  # of the sums: they fit float16

#: What is computed: an op, the shape of its operands, the axis, and the dtypes.
SAMPLES: tuple[tuple[str, Shape, int | None, tuple[str, ...]], ...] = (
    ("sum", (2**28,), None, DTYPES[:1]),
    *(("sum", shape, axis, DTYPES) for shape, axis in (((2**24,), None), ((4096, 4096), 1), ((4096, 4096), 0))),
    ("mean", (2**24,), None, DTYPES),
    ("mean", (4096, 4096), 0, DTYPES),
    ("prod", (4096, 256), 0, DTYPES),
    ("dot", (2**24,), None, DTYPES),
)

HEAD = """\
# Accuracy

This page is written by `python -m gpuops bench accuracy` from what it measures; no number is typed.

Floating-point addition rounds, so a sum depends on the order in which it is made. gpuops adds in many short chains
and then merges those, in an order that depends on the shape and the device alone: the same call gives the same bits.

- `float16` and `bfloat16` are added, multiplied and averaged in `float32` and rounded once, at the end.
- Integers are added exactly, modulo the size of the result, as NumPy's. On a GPU the mean of up to 2³¹ integers of at
  most four bytes is that of the exact sum; longer, masked and 64-bit ones are added in `float64`.
- `max` and `min` do not round. NaN wins, complex numbers are ordered by their real, then by their imaginary part.
- Subnormal numbers are kept, on input and in results.

The tests hold every sum of n numbers to an error of (8 + √n) ε Σ|x|, with ε of the dtype that adds, and the `float32`
sum of 2²⁸ uniform numbers to 2 units in the last place. Measured below: the largest error of all results, in **units
in the last place of the result's dtype** (0.5 is a correctly rounded result), for uniform numbers between 0 and 1,
scaled by a factor so that `float16` holds the sums. For `prod` they are close to 1. The exact values are computed in
`float64`; for `float64` in the host's long double.
"""


def main(arguments: list[str]) -> int:
    """``bench accuracy``: measure, and write the page from this and earlier measurements."""
    parser = argparse.ArgumentParser("python -m gpuops bench accuracy", description=__doc__)
    parser.add_argument("--elements", metavar="N", type=positive, default=2**28, help="halve arrays that have more")
    parser.add_argument("--results", metavar="FOLDER", type=Path, default=FOLDER, help="of results (%(default)s)")
    parser.add_argument("--output", metavar="FILE", type=Path, default=PAGE, help="the page (%(default)s)")
    options = parser.parse_args(arguments)
    machine = machine_here()
    prepare(options.results)
    found = document(machine, options.elements)
    write(options.results / f"{machine.folder}.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    write(options.output, page(load_all(options.results)))
    print(f"{options.output}: {len(found['rows'])} rows, {machine.name}")
    return 0


def document(machine: Any, elements: int) -> Document:
    """Everything that is measured on a machine, and where."""
    return {
        "machine": machine.name,
        "commit": commit(),
        "versions": versions(),
        "rows": list(rows(machine, elements)),
    }


def rows(machine: Any, elements: int) -> Iterator[dict[str, Any]]:
    """One row for each sample and dtype: the largest error of each library, or why there is none."""
    kinds = (Cupy, Torch) if machine.xp is not np else ()
    others = [peer for peer in (load(kind, machine.xp) for kind in (*kinds, Numpy)) if isinstance(peer, Provider)]
    for op, shape, axis, dtypes in SAMPLES:
        for dtype in dtypes:
            problem = Problem((Operand(shape),) * len(OPS[op].data), axis)
            group = Group("accuracy", "", (problem,), dtype, ())
            case = shrunk(Case(op, group, problem, dtype, pick=False, lead=False), elements)
            operands = data(case)
            right = exact(op, operands, axis)
            row: dict[str, Any] = {"op": op, "dtype": dtype, "shape": list(operands[0].shape), "axis": axis}
            for provider in (Gpuops(machine.xp), *others):
                try:
                    arrays = operands if isinstance(provider, Numpy) else tuple(map(machine.upload, operands))
                    result = provider.call(case)(*map(provider.array, arrays))
                    row[provider.name] = error(host(provider.wide(result)), right, dtype_of(dtype))
                except Exception as failure:  # whatever a library raises
                    row[provider.name] = first_line(failure)
            machine.tidy()
            yield row


def data(case: Case) -> tuple[np.ndarray, ...]:
    """Random operands of a case."""
    random = np.random.default_rng(0)
    x, *others = (random.random(operand.shape) for operand in case.problem.operands)
    x = 1 + (x - 0.5) / 256 if case.op == "prod" else x * min(1.0, LARGEST / (1 if case.op == "mean" else x.size))
    return tuple(operand.astype(dtype_of(case.dtype)) for operand in (x, *others))


def exact(op: str, operands: tuple[np.ndarray, ...], axis: int | None) -> np.ndarray:
    """The results in a wider precision."""
    wider = [x.astype(np.longdouble if x.dtype == np.float64 else np.float64) for x in operands]
    if op == "dot":
        return np.asarray(np.sum(np.multiply(*wider)))
    x = wider[0] if axis is None else np.ascontiguousarray(np.moveaxis(wider[0], axis, -1))
    return np.asarray(getattr(np, op)(x, axis=None if axis is None else -1))


def host(result: Any) -> np.ndarray:
    return np.asarray(result.get() if hasattr(result, "get") else result)


def error(result: np.ndarray, right: np.ndarray, dtype: np.dtype) -> float:
    """The largest error in units in the last place."""
    steps = finfo(dtype)
    unit = float(steps.eps) * np.exp2(np.floor(np.log2(np.maximum(abs(right), float(steps.smallest_normal)))))
    return float(f"{float(np.max(abs(result - right) / unit)):.3g}")


def load_all(folder: Path) -> list[Document]:
    """What was measured, on every machine."""
    try:
        return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    except (OSError, ValueError) as failure:
        raise Unusable(f"{folder} is of no use: {failure}") from failure


def page(documents: Iterable[Document]) -> str:
    """The page, from what was measured."""
    parts = [HEAD]
    for found in documents:
        of = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if name in NAMED)
        parts.append(f"## {found['machine']}\n\n{of}; commit {found['commit'][:10]}. NumPy is the host's.\n")
        names = [name for name in found["rows"][0] if name not in ("op", "dtype", "shape", "axis")]
        parts.append(f"| op | dtype | shape | {' | '.join(names)} |\n|{' --- |' * 3}{' ---: |' * len(names)}")
        for row in found["rows"]:
            axis = "" if row["axis"] is None else f", axis {row['axis']}"
            shape = "×".join(map(str, row["shape"])) + axis
            cells = (f"{row[name]:g}" if isinstance(row[name], float) else "–" for name in names)
            parts[-1] += f"\n| {row['op']} | {row['dtype']} | {shape} | {' | '.join(cells)} |"
        parts[-1] += "\n"
    return "\n".join(parts)
