"""The page on the method: how things were measured, what the words mean, which peers are strong, the machines."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from .report_standing import NEAR, STRONG, shares
from .report_text import bullets, commits, glossary, table
from .results import Document
from .show import machine_name, ratio

HEAD = """\
# Method

This page says how the numbers on the [performance pages](../performance.md) were measured, and what their words mean.

## How a case is measured

Times are the GPU's own, between two events in its stream. A sample is a series of calls. They take their operands from
a ring of arrays in turn, and keep their results in a second ring, so that at least four times the size of the L2 cache
is read before anything is read again. Arrays too small for that are used once per sample. The cache is emptied before
each sample: all data comes from memory. A kernel that only waits is launched first, and ends when Python has launched
all calls of the sample, so the host's time does not count (it has a [page](host.md) of its own). After a warm-up each
case is timed twice, the second time with the libraries in reverse order. Before it is timed, each result is compared
with a reference in double precision. JAX runs on a stream of its own: there a matrix product runs first instead, and
events join the streams.
"""
#: What the words mean.
WORDS = (
    (
        "case",
        "an op, a dtype, shapes and layouts: `float32 4096×8192 axis 1`. After a shape, `F` is Fortran (column-major) "
        "order, `[:, ::2]` and the like a slice; `→` leads to the shape of a result, `out` is the layout of an array "
        "given as `out=`",
    ),
    ("group", "cases of one origin, such as a published sweep"),
    (
        "speed",
        "GB/s that count each element of the operands and of the result once, whatever a kernel really moves; "
        "TFLOP/s of matrix products",
    ),
    (
        "reference",
        "what the machine does with as many bytes in the same run: a plain device-to-device *copy*; for "
        "reductions, *read*, the sum of a whole array by CUB; *write*, a memset, where at least 95 % of the bytes"
        " are written; for matrix products cuBLAS, *BLAS*; for the host's time the *launch* of an empty kernel. "
        "It can be exceeded: small arrays do not fill the machine, and CUB's sum takes two launches",
    ),
    ("limit", "what cannot be exceeded: the roofs of memory and of arithmetic, in the pictures"),
    (
        "of reference",
        "the speed of gpuops over that of the reference. (For `[:, ::2]`, memory also delivers the skipped half, so "
        "0.5 is the most.)",
    ),
    ("peer", "another library in the same case"),
    ("of best peer", "the speed of gpuops over that of the fastest peer: below 1, gpuops loses"),
    (
        "left out",
        'cases that no [strong peer](#strong-peers) completed: they are in no median of "of best peer"; but if gpuops '
        "is slower, they are listed as losses",
    ),
    (
        "noise",
        "for a result (the median of all samples): their interquartile range, or the distance between the medians of "
        "its two timings, whichever is larger",
    ),
    ("faster, slower, even", "than the best peer, by more than the noise of both; even: within the noise"),
    (
        "`gpuops(max)`, `gpuops(sum)`",
        "gpuops' own maximum or sum of the same arrays: what another reduction of them should cost",
    ),
    ("`gpuops(torch)`", "gpuops given PyTorch's tensors"),
    ("`cub`", "CUB's reductions as they are compiled into CuPy, called directly"),
    ("–", "the library does not have the op, or was not run"),
    (
        "refuses, wrong, out of memory",
        "why a library has no number there; the [results file](../../benchmarks/results) says why",
    ),
)
RULE = f"""\
## Strong peers

CuPy and PyTorch run kernels that must serve any case, and for some dtypes they convert the array first. Where only they
ran, even a gain of several hundred times says little. A case is therefore compared only if a strong peer completed it:
one that compiles a kernel for that case (torch.compile, QuACK, JAX), any library in matrix products, all of which use
cuBLAS, or one that has {NEAR} of the reference's speed in that case, so that little is left to win. All peers are
strong for the host's time; on a CPU, NumPy, SciPy and numexpr are. The best peer of a case that counts is the fastest
of all, strong or not.

The rule rests on this table: how close each kind of peer comes to the fastest, in the cases that another strong peer
completed.
"""
SHARES = ("peer", "always strong", "cases", "of the fastest: median", "worst", "is the fastest in")

#: The facts that are given about a machine.
ENVIRONMENT = (
    ("multiprocessors", " multiprocessors"),
    ("clock_sm_mhz", " MHz under load"),
    ("clock_memory_mhz", " MHz memory clock"),
    ("power_limit_w", " W power limit"),
    ("driver", " driver"),
    ("system", ""),
)


def method_page(results: dict[str, list[Document]]) -> str:
    """The page on the method."""
    parts = [HEAD, "## The words\n", glossary("word", "what it means", WORDS), RULE]
    for documents in results.values():
        cold = [document for document in documents if document["mode"] == "cold"]
        if rows := [*evidence(cold)]:
            parts += [f"{machine_name(cold[0])}:\n", table(SHARES, rows)]
    parts.append("## Machines and versions\n")
    parts += [f"### {machine_name(documents[0])}\n\n{environment(documents)}" for documents in results.values()]
    return "\n".join(parts)


def evidence(documents: list[Document]) -> Iterator[list[str]]:
    """What each kind of peer reaches."""
    for name, found in shares(documents):
        first = sum(share == 1 for share in found)
        numbers = str(len(found)), ratio(statistics.median(found)), ratio(min(found)), str(first)
        yield [name, "yes" if name in STRONG else "no", *numbers]


def environment(documents: list[Document]) -> str:
    """What was measured, on what, and when."""
    about = documents[0]["environment"]
    facts = [f"{about[key]}{unit}" for key, unit in ENVIRONMENT if key in about]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    dates = sorted(document["date"][:10] for document in documents)
    days = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    text = bullets((f"{'; '.join(facts)}.", f"Measured {days}, {commits(documents)}.", f"Versions: {versions}."))
    return text
