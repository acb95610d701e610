"""How gpuops stands beside other libraries: which of them count, what is faster and what is slower."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .results import Document, rivals, timed

Case = dict[str, Any]

#: The kinds of peers that are strong: they make a kernel for the very case, or their own is as fast (the method page
#: has what each kind reaches). The others run kernels that must serve any case, or convert the array first.
STRONG = {
    "torch.compile", "quack", "jax", "cupy in products", "torch in products", "numpy", "scipy", "numexpr", "numba",
}  # fmt: skip
#: Any other peer is strong in a case in which it has this share of the reference's speed: little is left to win there.
NEAR = 0.8


def kind(case: Case, peer: str) -> str:
    """What a peer is in a case: matrix products are those of cuBLAS."""
    return f"{peer} in products" if case["op"] == "matmul" and peer in ("cupy", "torch") else peer


def contested(case: Case) -> bool:
    """Whether a strong peer completed the case. (On tiny arrays the host's time decides: there each peer is.)"""
    found = rivals(case)
    if case["limit"]["name"] in ("launch", "start"):
        return bool(found)
    return any(kind(case, peer) in STRONG or result["of_limit"] >= NEAR for peer, result in found.items())


def counts(case: Case) -> bool:
    """Whether the case counts among those beside peers: a loss always does."""
    return standing(case) == "slower" or contested(case)


def standing(case: Case) -> str:
    """Whether gpuops is faster or slower than the best peer, or even: by less than the noise."""
    if not rivals(case):
        return "alone"
    ours, best = timed(case)["gpuops"], min(rivals(case).values(), key=lambda result: result["us"])
    noise = max(result[kind] for result in (ours, best) for kind in ("spread", "repeat"))
    gain = best["us"] / ours["us"] - 1
    return "even" if abs(gain) <= noise else "faster" if gain > 0 else "slower"


def of_best_peer(case: Case) -> float | None:
    """The speed of gpuops over that of the fastest other library, if the case counts."""
    gain: float | None = timed(case)["gpuops"]["of_best_peer"] if "gpuops" in timed(case) and counts(case) else None
    return gain


def best_peer(case: Case) -> str:
    """The fastest other library."""
    found = rivals(case)
    return min(found, key=lambda name: found[name]["us"])


class Tally(NamedTuple):
    """gpuops in some cases: speeds over those of the reference, of the best peer and of CuPy, and who is faster."""

    of_reference: list[float]
    of_best_peer: list[float]  # in the cases that count
    of_cupy: list[float]
    standings: Counter[str]  # likewise

    @property
    def cases(self) -> int:
        return len(self.of_reference)

    @property
    def left_out(self) -> int:
        """The cases that do not count beside peers."""
        return self.cases - len(self.of_best_peer)


def tally(cases: Iterable[Case]) -> Tally:
    """gpuops in those of the cases that it completed."""
    ours = done(cases)
    counted = [case for case in ours if counts(case)]
    return Tally(
        [timed(case)["gpuops"]["of_limit"] for case in ours],
        [timed(case)["gpuops"]["of_best_peer"] for case in counted],
        [found["cupy"]["us"] / found["gpuops"]["us"] for found in map(timed, ours) if "cupy" in found],
        Counter(map(standing, counted)),
    )


def done(cases: Iterable[Case]) -> list[Case]:
    """The cases that gpuops completed."""
    return [case for case in cases if "gpuops" in timed(case)]


def losses(cases: Iterable[Case]) -> list[Case]:
    """The cases in which another library is faster, the worst first."""
    slow = [case for case in done(cases) if standing(case) == "slower"]
    return sorted(slow, key=lambda case: timed(case)["gpuops"]["of_best_peer"])


def shares(documents: Iterable[Document]) -> Iterator[tuple[str, list[float]]]:
    """Each kind of peer: its speed over that of the fastest peer in each case that a strong one completed too."""
    found: dict[str, list[float]] = {}
    for document in documents:
        for case in document["cases"]:
            others = rivals(case)
            for peer, result in others.items():
                if any(kind(case, other) in STRONG for other in others if other != peer):
                    share = min(other["us"] for other in others.values()) / result["us"]
                    found.setdefault(kind(case, peer), []).append(share)
    order = sorted(found, key=lambda name: statistics.median(found[name]), reverse=True)
    return ((name, found[name]) for name in order)
