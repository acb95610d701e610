"""What the results say for sure: titles of pictures, from their numbers alone."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from typing import Any

from . import on_cpu
from .plot_style import percent
from .report_standing import counts, standing
from .report_text import REFERENCES
from .results import rivals, timed

Case = dict[str, Any]
CLOSE = 0.9  # from this share on, "within" is said


#: The speed of each reference, in a sentence.
SPEEDS = {
    "copy": "copy speed",
    "read": "CUB sum speed",
    "write": "memset speed",
    "BLAS": "cuBLAS speed",
}
MIXED = "the reference's speed"

def limit_lines(cases: Iterable[Case]) -> str:
    """What the dashed line is, in a legend."""
    return "reference: " + ", ".join(dict.fromkeys(REFERENCES[case["limit"]["name"]] for case in cases))


def limit_speed(cases: Iterable[Case]) -> str:
    """What the speed of gpuops is a share of, in a sentence."""
    found = {SPEEDS[case["limit"]["name"]] for case in cases}
    return found.pop() if len(found) == 1 else MIXED


def within(share: float) -> str:
    """How far a share below 1 is from it, rounded up."""
    return f"{math.ceil(100 * (1 - share) - 1e-9)}\u00a0%"


def against_all(cases: Iterable[Case]) -> str:
    """In how many of the cases that count gpuops is faster than every other library by more than the noise, and in how
    many slower."""
    met = [case for case in cases if rivals(case) and "gpuops" in timed(case)]
    found = Counter(standing(case) for case in met if counts(case))
    if not found:
        return "no strong peer completed a case"
    which = " with a strong peer" if found.total() < len(met) else ""
    slower = f", slower than the best in\u00a0{found['slower']}" if found["slower"] else ""
    return f"gpuops is faster than every other library {of_cases(found['faster'], found.total())}{which}{slower}"


def of_cases(won: int, met: int) -> str:
    """So many of so many cases."""
    return f"in {won} of {met} cases" if won < met else f"in all {met} cases" if met > 1 else "in the only case"


def speedups(op: str, cases: list[Case]) -> str:
    return f"{op}: {against_all(cases)}"


def ladder(op: str, cases: list[Case], names: list[str]) -> str:
    """How close to the fastest strategy the one is that gpuops chooses."""
    shares = []
    for case in cases:
        found = timed(case)
        best = max(found[name]["speed"] for name in names if name in found)
        shares.append(found["gpuops"]["speed"] / best if "gpuops" in found else 0)
    lowest = min(shares)
    if lowest >= 1:
        return f"{op}: what gpuops chooses is as fast as the fastest strategy"
    if lowest >= CLOSE:
        return f"{op}: what gpuops chooses is within {within(lowest)} of the fastest strategy"
    return f"{op}: the speed of each strategy"


def front(cases: list[Case]) -> str:
    """How many times as fast as CuPy and PyTorch gpuops is in these cases."""
    gains = []
    for name, label in (("cupy", "CuPy"), ("torch", "PyTorch")):
        found = [timed(case)[name]["us"] / timed(case)["gpuops"]["us"] for case in cases if name in timed(case)]
        gains += [f"{statistics.median(found):.1f} times {label}"] if found else []
    return f"gpuops: {' and '.join(gains)}, in the median of these" if gains else "gpuops"


def glance(op: str, shares: dict[str, float], speed: str) -> str:
    """The share of the reference that gpuops reaches, and the best other library."""
    best = max((name for name in shares if name != "gpuops"), key=shares.__getitem__)
    return f"{op}: {percent(shares['gpuops'])} of {speed}; {best}: {percent(shares[best])}"


def roofline(points: Iterable[tuple[float, float]], peak: float, bandwidth: float) -> str:
    """The largest shares of the limits that are reached on either side of where they meet."""
    best = dict.fromkeys(ROOFS, 0.0)
    for intensity, speed in points:
        kind = "memory" if intensity * bandwidth < peak else "arithmetic"
        best[kind] = max(best[kind], speed / min(peak, intensity * bandwidth))
    reached = " and ".join(f"{percent(best[kind])} of {what}" for kind, what in ROOFS.items() if best[kind])
    return f"Roofline: gpuops reaches up to {reached}"


ROOFS = {"memory": "the fastest reference's bandwidth", "arithmetic": "the arithmetic limit"}


def host(cases: list[Case]) -> str:
    return f"Host time per call: {against_all(cases)}"


def arrays_of_numpy(gains: list[float], threads: int) -> str:
    """In how many cases gpuops is faster than NumPy or SciPy by more than the noise, and in how many slower."""
    won, lost = (sum(hit) for hit in ([g > 1 + on_cpu.NOISE for g in gains], [g < 1 - on_cpu.NOISE for g in gains]))
    slower = f", slower in {lost}" if lost else ""
    return f"NumPy arrays, {threads} threads: faster than NumPy or SciPy {of_cases(won, len(gains))}{slower}"
