"""``bench accuracy``: the largest errors of gpuops and others, by op and dtype, and docs/accuracy.md."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import dtype_of
from .cases import Case, Group, Operand, Problem, Shape, shrunk
from .machines import machine_here
from .ops import OPS, finfo
from .providers import SCANS, SOFTMAX, Cupy, Gpuops, Numpy, Provider, Scipy, Torch, first_line, load
from .results import ROOT, Document, Unusable, commit, positive, prepare, versions, write

FOLDER = ROOT / "benchmarks" / "accuracy"
PAGE = ROOT / "docs" / "accuracy.md"
DTYPES = ("float32", "float16", "bfloat16", "float64")
NAMED = ("gpuops", "numpy", "scipy", "cupy", "torch", "cuda runtime")  # the versions that the page lists
LARGEST = 2.0**15  # of the sums, so that they fit float16

#: Samples: an op, the shape of its operands, the axis, and the dtypes.
SAMPLES: tuple[tuple[str, Shape, int | None, tuple[str, ...]], ...] = (
    ("sum", (2**28,), None, DTYPES[:1]),
    *(("sum", shape, axis, DTYPES) for shape, axis in (((2**24,), None), ((4096, 4096), 1), ((4096, 4096), 0))),
    ("mean", (2**24,), None, DTYPES),
    ("mean", (4096, 4096), 0, DTYPES),
    ("prod", (4096, 256), 0, DTYPES),
    ("dot", (2**24,), None, DTYPES),
    *(
        ("softmax", shape, axis, DTYPES)
        for shape, axis in (((2048, 2048), 1), ((2048, 2048), 0), ((2**20,), 0), ((64, 50257), 1))
    ),
    ("log_softmax", (2048, 2048), 1, DTYPES),
    *(("logsumexp", shape, axis, DTYPES) for shape, axis in (((2048, 2048), 1), ((2**20,), 0))),
    *(("matmul", (n, n), None, DTYPES[:2]) for n in (512, 1024)),
    ("matmul", (4096, 4096), None, DTYPES[:1]),
    *(("cumsum", shape, 0, DTYPES) for shape in ((2**24,), (4096, 4096))),
    ("cumprod", (4096, 256), 0, DTYPES),
    *(("logcumsumexp", shape, axis, DTYPES) for shape, axis in (((2**20,), 0), ((2048, 2048), 1))),
)
#: Rows with one element 0 and the others in this range: results near 0 depend on the others alone.
FAR = (-60.0, -10.0)
#: Samples of such rows, in the dtypes that distinguish their results from 0.
NEAR_ZERO = tuple((op, (4096, 64), 1, ("float32", "bfloat16", "float64")) for op in ("logsumexp", "log_softmax"))


def around(mean: float) -> Callable[[Any, Shape], np.ndarray]:
    """Numbers with a mean and a spread of 1."""
    return lambda random, shape: mean + random.standard_normal(shape)


def times(factor: float) -> Callable[[Any, Shape], np.ndarray]:
    """Numbers between 1 and 2, times a factor."""
    return lambda random, shape: factor * (1 + random.random(shape))


def alternating(random: Any, shape: Shape) -> np.ndarray:
    """Numbers between 1 and 2, of which every other one is negative."""
    return (1 + random.random(shape)) * (1 - 2 * (np.arange(shape[-1]) % 2))


def outlier(random: Any, shape: Shape) -> np.ndarray:
    """Numbers with a spread of 1, of which the first of each row is 1e5."""
    numbers = random.standard_normal(shape)
    numbers[..., 0] = 1e5
    return numbers


#: Data on which formulas fail. Squares of numbers times 1e18 exceed float32 when they are added, their variance does
#: not.
HARD: dict[str, Callable[[Any, Shape], np.ndarray]] = {
    "mean 1e6, spread 1": around(1e6),
    "1e18 × (1 … 2)": times(1e18),
    "1e30 × (1 … 2)": times(1e30),
    "1e-30 × (1 … 2)": times(1e-30),
    "all 0.1": lambda random, shape: np.full(shape, 0.1),
    "alternating signs": alternating,
    "one of 1e5 first": outlier,
}
#: Samples of such data: those of the others, and the name of the data.
HARD_SAMPLES = (
    *((("var", (4096, 1024), 1, ("float32", "float64")), name) for name in ("mean 1e6, spread 1", "alternating signs")),
    (("var", (4096, 1024), 0, ("float32",)), "mean 1e6, spread 1"),
    (("var", (2**22,), None, ("float32",)), "mean 1e6, spread 1"),
    (("var", (4096, 1024), 1, ("float32",)), "1e18 × (1 … 2)"),
    (("var", (4096, 1024), 1, ("float32",)), "one of 1e5 first"),
    (("var", (2**22,), None, ("float32",)), "one of 1e5 first"),
    (("var", (4096, 1024), 1, DTYPES), "all 0.1"),
    *((("vector_norm", (4096, 1024), 1, ("float32",)), name) for name in ("1e30 × (1 … 2)", "1e-30 × (1 … 2)")),
)

HEAD = """\
# Accuracy

This page is written by `python -m gpuops bench accuracy` from what it measures.

Floating-point addition rounds, so a sum usually depends on the order in which it is made. Here `sum`, `mean`, `var`,
`std`, `mean_var`, their variants without NaN, `average`, `sum_of_squares`, the norms of order 1 and 2, `dot` of two
vectors, and `cumsum` are [exact](exact.md): computed from exact sums and rounded once. Other reductions add in an order
that depends on the shape and the device alone: the same call gives the same bits.

- `float16` and `bfloat16` are multiplied in `float32` and rounded once, at the end.
- Integers are added exactly, modulo the size of the result, as NumPy's. On a GPU the mean of up to 2³¹ integers of at
  most four bytes is that of the exact sum; longer, masked and 64-bit ones are added in `float64`.
- Matrix products of `float32` are computed in `float32`: never in TF32. Where warps or blocks share a result, they add
  up in a fixed order.
- `max` and `min` do not round. NaN wins, complex numbers are ordered by their real, then by their imaginary part.
- Subnormal numbers are kept, on input and in results.

The tests hold exact sums to the last bit, others of n numbers to an error of (8 + √n) ε Σ|x|, with ε of the dtype that
adds. Measured below: the largest error of all results, in **units
in the last place of the result's dtype** (0.5 is a correctly rounded result), for uniform numbers between 0 and 1,
scaled by a factor so that `float16` holds the sums. For `prod` they are close to 1. The exact values are computed in
`float64`; for `float64` in the host's long double.

## Softmaxes

`softmax`, `log_softmax` and `logsumexp` subtract a maximum before they take exponentials, so neither these nor their
sums overflow, whatever the elements. This holds for a million `float16` elements as for a few.

- `float16` and `bfloat16` are computed in `float32` and rounded once, at the end; `scale` multiplies in `float32` too.
- For `float16` and `bfloat16` results, exp(x - max) is computed as 2 to the power of log₂e · x - log₂e · max, in one
  fused operation. The second term has the same rounding error for all elements of a row, which a factor corrects. (For
  rows beyond the chip it is 2 to the power of log₂e · (x - max).)
- For `float32` results of rows that fit on the chip (and `bfloat16` results of `float32` rows), log₂e · x is split into
  an integer and a remainder before it is rounded, so the error of an exponential does not grow with its distance from
  the maximum.
- `float32` results of rows beyond the chip, `float64` results, and the classic strategies use CUDA's `exp` of x - max.
  That difference is rounded by up to half a unit in its own last place, which is the relative error of the exponential.
- Exponentials that are only summed, for `logsumexp`, `log_softmax` and other axes in `float32` and for rows beyond the
  chip, take fewer operations; that of the maximum is exactly 1.
- Where the logarithm of a sum is taken, that 1 is kept apart, and log1p is applied to the rest, so results near 0 keep
  their digits, as in SciPy's `logsumexp`. (Not for `float16` results, whose smallest number is as large as the loss.)
- A row is held in parts with a maximum each. The sums of their exponentials are rescaled to the maximum of the whole
  row, in an order that depends on the shape and the device alone.
- Special rows are as in SciPy. A row that is all -inf, or has NaN or +inf, gives NaN, except that the
  other elements of a row with +inf give -inf in `log_softmax`. A single -inf gives 0, and -inf in `log_softmax`.
  `logsumexp` of a row that is all -inf is -inf, and with a +inf it is +inf.
- Masked elements are ignored, whatever their values; they give 0, and -inf in `log_softmax`.

## Scans

- Each result of `cumsum` of floats is the exact sum so far, rounded once, however long the line is. The last one has
  the bits of `sum`, unless all elements are -0.0.
- `cumprod` and `logcumsumexp` merge in [a tree with 16 branches at each node](kernels/scan.md#order): the prefix of the
  n-th element takes about 16 log₁₆ n merges, not n. The order depends on the length of the line alone.
- `cumprod` of floats multiplies in `float64`, with an exponent of its own, and rounds each result from that. So
  products neither overflow nor underflow on the way.
- `cummax` and `cummin` do not round.
"""
PRODUCTS = """\
Matrix products of normally distributed numbers: the largest error of all results, each in units of ε √Σ(ab)², the size
of its terms together where their signs are random, with ε of the result's dtype. (cupy and torch call cuBLAS, and so
does gpuops for half types; for `float32` gpuops has its own kernel.)

{products}"""
SOFTMAXES = """\
Softmaxes of normally distributed numbers (mean 0, standard deviation 1): the largest error of all results, in units in
the last place,

{units}
and the **largest relative error**, |result - exact| / |exact|; where the exact value is subnormal, relative to the
smallest normal number.

{relative}"""
OF_SCANS = """\
Scans of the same kinds of numbers as their reductions: the largest error of all results, in units in the last place.

{scans}"""
DIFFICULT = """\
Variances and norms of data on which simple formulas fail: the **largest relative error**; where the exact value is 0,
relative to the mean of the squares.

{difficult}"""
SMALL = """\
`logsumexp` and the largest `log_softmax` of rows of 64 elements, one of them 0 and the others between {low:g} and
{high:g}, at a different distance in each row: the **largest relative error**. Added to the 1 of the maximum, the other
exponentials are lost, which is an error of 1.

{small}"""


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
    """All measurements on a machine, with its versions."""
    return {
        "machine": machine.name,
        "commit": commit(),
        "versions": versions(),
        "rows": list(rows(machine, elements)),
    }


def rows(machine: Any, elements: int) -> Iterator[dict[str, Any]]:
    """One row for each sample and dtype: the largest errors of each library, or why there are none."""
    kinds = (Cupy, Torch) if machine.xp is not np else ()
    providers = [Gpuops(machine.xp), *(load(kind, machine.xp) for kind in (*kinds, Numpy, Scipy))]
    found = [provider for provider in providers if isinstance(provider, Provider)]
    samples = (*((s, "") for s in SAMPLES), *HARD_SAMPLES, *((s, "near zero") for s in NEAR_ZERO))
    for (op, shape, axis, dtypes), kind in samples:
        near, hard = kind == "near zero", kind in HARD
        for dtype in dtypes:
            problem = Problem((Operand(shape),) * len(OPS[op].data), axis)
            group = Group("accuracy", "", (problem,), dtype, ())
            case = shrunk(Case(op, group, problem, dtype, pick=False), elements)
            operands = (one_far_above(case),) if near else (hard_data(case, kind),) if hard else data(case)
            right = exact(case, operands)
            top = np.max(right, axis=-1) if near and op == "log_softmax" else right
            size = terms(case, operands) if op == "matmul" else None
            row: dict[str, Any] = {"op": op, "dtype": dtype, "shape": list(operands[0].shape), "axis": axis}
            row |= {"data": kind} if hard else {}
            relative: dict[str, float] = {}
            for provider in (*found, *reference(machine)):
                if op not in provider.ops:
                    continue
                try:
                    arrays = operands if provider.xp is np else tuple(map(machine.upload, operands))
                    with np.errstate(over="ignore"):  # which the row says
                        result = host(provider.wide(provider.call(case)(*map(provider.array, arrays))))
                    if near:
                        result = np.max(result, axis=-1) if op == "log_softmax" else result
                        row[provider.name] = relative_error(result, top, dtype_of(dtype))
                        continue
                    if hard:
                        row[provider.name] = largest(result, right, np.where(right, right, squares(case, operands)))
                        continue
                    row[provider.name] = error(result, right, dtype_of(dtype), size)
                    relative[provider.name] = relative_error(result, right, dtype_of(dtype))
                except Exception as failure:  # whatever a library raises
                    row[provider.name] = first_line(failure)
            machine.tidy()
            yield row | ({"near zero": True} if near else {"relative": relative} if op in SOFTMAX else {})


def reference(machine: Any) -> list[Provider]:
    """On a GPU also gpuops for NumPy arrays: softmaxes only, as its sums are NumPy's."""
    own = Gpuops(np)
    own.name, own.ops = "gpuops, NumPy", SOFTMAX
    return [] if machine.xp is np else [own]


def data(case: Case) -> tuple[np.ndarray, ...]:
    """Random operands of a case."""
    random = np.random.default_rng(0)
    if case.op in (*SOFTMAX, "matmul", "logcumsumexp"):
        return tuple(random.standard_normal(o.shape).astype(dtype_of(case.dtype)) for o in case.problem.operands)
    x, *others = (random.random(operand.shape) for operand in case.problem.operands)
    scale = min(1.0, LARGEST / (1 if case.op == "mean" else x.size))
    x = 1 + (x - 0.5) / 256 if case.op in ("prod", "cumprod") else x * scale
    return tuple(operand.astype(dtype_of(case.dtype)) for operand in (x, *others))


def one_far_above(case: Case) -> np.ndarray:
    """Rows with one element 0; the others are close together, at a distance that grows by row."""
    rows, cols = case.problem.operands[0].shape
    x = np.linspace(*FAR, rows)[:, None] + np.random.default_rng(0).random((rows, cols))
    x[np.arange(rows), np.arange(rows) % cols] = 0
    return x.astype(dtype_of(case.dtype))


def hard_data(case: Case, name: str) -> np.ndarray:
    """Data of a name in ``HARD`` for a case."""
    return HARD[name](np.random.default_rng(0), case.problem.operands[0].shape).astype(dtype_of(case.dtype))


def squares(case: Case, operands: tuple[np.ndarray, ...]) -> np.ndarray:
    """The means of the squares of a case's elements."""
    return np.asarray(np.mean(operands[0].astype(np.float64) ** 2, axis=case.axis))


def exact(case: Case, operands: tuple[np.ndarray, ...]) -> np.ndarray:
    """The results in a wider precision."""
    wider = [x.astype(np.longdouble if x.dtype == np.float64 else np.float64) for x in operands]
    if case.op == "dot":
        return np.asarray(np.sum(np.multiply(*wider)))
    if case.op == "matmul":
        return np.matmul(*wider)
    axis = case.axis
    x = wider[0].reshape(-1) if axis is None else np.ascontiguousarray(np.moveaxis(wider[0], axis, -1))
    last = case._replace(problem=case.problem._replace(axis=-1))
    result = np.asarray(OPS[case.op].reference(np, last, x))
    return result if axis is None or result.ndim < x.ndim else np.moveaxis(result, -1, axis)


def host(result: Any) -> np.ndarray:
    return np.asarray(result.get() if hasattr(result, "get") else result)


def error(result: np.ndarray, right: np.ndarray, dtype: np.dtype, size: np.ndarray | None = None) -> float:
    """The largest error in units in the last place, or in ``eps`` times ``size``."""
    steps = finfo(dtype)
    size = np.exp2(np.floor(np.log2(at_least_normal(right, steps)))) if size is None else size
    return largest(result, right, float(steps.eps) * size)


def terms(case: Case, operands: tuple[np.ndarray, ...]) -> np.ndarray:
    """The magnitude of a matrix product's terms, as if their signs were random."""
    size = OPS[case.op].magnitude
    assert size is not None
    return size(np, case, *(x.astype(np.float64) for x in operands))


def relative_error(result: np.ndarray, right: np.ndarray, dtype: np.dtype) -> float:
    """The largest relative error."""
    return largest(result, right, at_least_normal(right, finfo(dtype)))


def at_least_normal(right: np.ndarray, steps: Any) -> np.ndarray:
    """The magnitudes of values, at least the smallest normal number."""
    return np.maximum(abs(right), float(steps.smallest_normal))


def largest(result: np.ndarray, right: np.ndarray, unit: np.ndarray) -> float:
    """The largest error in given units, to three digits."""
    return float(f"{float(np.max(abs(result - right) / unit)):.3g}")


def load_all(folder: Path) -> list[Document]:
    """The measurements of every machine."""
    try:
        return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    except (OSError, ValueError) as failure:
        raise Unusable(f"{folder} is of no use: {failure}") from failure


def page(documents: Iterable[Document]) -> str:
    """The page, from the measurements."""
    parts = [HEAD]
    for found in documents:
        of = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if name in NAMED)
        about = f"{of}; commit {found['commit'][:10]}.\nNumPy and SciPy are the host's."
        parts.append(f"## {found['machine']}\n\n{about}\n")
        softmaxes = [row for row in found["rows"] if "relative" in row]
        products = [row for row in found["rows"] if row["op"] == "matmul"]
        difficult = [row for row in found["rows"] if "data" in row]
        small = [row for row in found["rows"] if "near zero" in row]
        scans = [row for row in found["rows"] if row["op"] in SCANS]
        others = (*products, *difficult, *small, *scans)
        parts.append(table([row for row in found["rows"] if "relative" not in row and row not in others]))
        if difficult:
            parts.append(DIFFICULT.format(difficult=table(difficult)))
        if products:
            parts.append(PRODUCTS.format(products=table(products)))
        if softmaxes:
            relative = table([row | row["relative"] for row in softmaxes])
            parts.append(SOFTMAXES.format(units=table(softmaxes), relative=relative))
        if scans:
            parts.append(OF_SCANS.format(scans=table(scans)))
        if small:
            parts.append(SMALL.format(low=FAR[0], high=FAR[1], small=table(small)))
    return "\n".join(parts)


def table(rows: list[dict[str, Any]]) -> str:
    """A Markdown table of rows with the same libraries."""
    about = ("op", "dtype", "shape", "axis", "data", "relative", "near zero")
    names = [name for name in rows[0] if name not in about]
    lines = [f"| op | dtype | shape | {' | '.join(names)} |", f"|{' --- |' * 3}{' ---: |' * len(names)}"]
    for row in rows:
        axis = "" if row["axis"] is None else f", axis {row['axis']}"
        shape = "×".join(map(str, row["shape"])) + axis
        cells = (f"{row[name]:g}" if isinstance(row[name], float) else "–" for name in names)
        op = f"{row['op']}, {row['data']}" if "data" in row else row["op"]
        lines.append(f"| {op} | {row['dtype']} | {shape} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
