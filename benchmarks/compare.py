"""``bench compare``: what moved between two results files by more than the noise."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

from .results import Document, Unusable, load, rivals, timed
from .show import machine_name

LOSS = 0.05  # fails the comparison if a gpuops result gets slower by more


class Move(NamedTuple):
    """A time that changed."""

    op: str
    case: str
    provider: str
    old: float  # µs
    new: float
    noise: float  # relative
    others: float  # speed change of the case's limit and peers: due to the machine, not the code
    steady: bool  # host time does not affect it

    @property
    def change(self) -> float:
        """The change in speed: 0.1 is ten percent faster."""
        return self.old / self.new - 1

    @property
    def lost(self) -> bool:
        """Whether gpuops got slower, both absolutely and relative to the others."""
        beside = (1 + self.change) / (1 + self.others) - 1
        return self.provider.startswith("gpuops") and self.steady and max(self.change, beside) < -max(LOSS, self.noise)

    def __str__(self) -> str:
        percent = ", ".join(
            f"{name}{100 * value:+.1f} %" for name, value in (("", self.change), ("the others ", self.others))
        )
        times = f"{self.old:.1f} → {self.new:.1f} µs ({percent}; noise {100 * self.noise:.1f} %)"
        return f"{self.op} {self.case}: {self.provider} {times}"


def common(old: Document, new: Document) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The cases that both have."""
    after = {(case["op"], case["case"]): case for case in new["cases"]}
    return [(case, after[key]) for case in old["cases"] if (key := (case["op"], case["case"])) in after]


def moves(old: Document, new: Document) -> Iterator[Move]:
    """The results that both have and that differ by more than the spread and the repeats of either."""
    for earlier, case in common(old, new):
        if "limit" not in earlier or "limit" not in case:
            continue
        pairs = {name: (timed(earlier)[name], now) for name, now in timed(case).items() if name in timed(earlier)}
        rest = [(earlier["limit"], case["limit"]), *(pairs[name] for name in rivals(case) if name in pairs)]
        others = statistics.median(then["us"] / now["us"] for then, now in rest) - 1
        for provider, pair in pairs.items():
            then, now = pair
            noise = max(max(result["spread"], result["repeat"]) for result in pair)
            steady = all(result["host_hidden"] for result in pair)
            move = Move(case["op"], case["case"], provider, then["us"], now["us"], noise, others, steady)
            if abs(move.change) > noise:
                yield move


def vanished(old: Document, new: Document) -> Iterator[str]:
    """Results of gpuops that the new file lacks."""
    for case, later in common(old, new):
        for provider in timed(case):
            if provider.startswith("gpuops") and provider not in timed(later):
                why = next((r["refused"] for r in later.get("results", ()) if r["provider"] == provider), "")
                yield f"{case['op']} {case['case']}: {provider} has no result any more: {why or later.get('skipped')}"


def main(arguments: list[str]) -> int:
    """Compare two files; 1 if gpuops lost."""
    parser = argparse.ArgumentParser(
        "python -m gpuops bench compare",
        description="Print what moved by more than the noise; fail if gpuops lost more than "
        f"{100 * LOSS:.0f} %%, by itself and beside the limit and the other libraries in the same files.",
    )
    parser.add_argument("old", metavar="OLD.json")
    parser.add_argument("new", metavar="NEW.json")
    options = parser.parse_args(arguments)
    old, new = load(options.old), load(options.new)
    for key in ("op", "mode"):
        if old[key] != new[key]:
            raise Unusable(f"{options.old} is of {key} {old[key]}, {options.new} of {new[key]}")
    machines = [machine_name(document) for document in (old, new)]
    if machines[0] != machines[1]:
        raise Unusable(f"{options.old} was measured on {machines[0]}, {options.new} on {machines[1]}")
    moved = sorted(moves(old, new), key=lambda move: move.change)
    lost = [move for move in moved if move.lost]
    gone = list(vanished(old, new))
    for move in moved:
        print(f"{'LOSS ' if move.lost else ''}{move}")
    for line in gone:
        print(f"LOSS {line}")
    print(f"{len(common(old, new))} cases compared, {len(moved)} results moved, {len(lost) + len(gone)} losses")
    return 1 if lost or gone else 0
