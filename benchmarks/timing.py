"""From calls to times: how often a call is made, and what is kept of the samples."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

COLD = 4  # a ring of arrays is this many times as large as the cache: none of it is still there when its turn comes
SLOTS = 64  # arrays in a ring at most; where they do not fill it, each is used once per sample, after a flush
RING = 2**34  # bytes of a ring of arrays and of the results made of them, at most
ROUNDS = 2  # turns of a runner, the others' between them: their difference shows the noise
SAMPLES = 4  # per round
SAMPLE = 1e-3  # seconds that the calls of a sample should take together
SLOW = 0.05  # seconds after which a sample has calls enough


def slots(read: int, written: int, cache: int) -> int:
    """The arrays that a ring needs for calls that read and write so many bytes each to find a cold cache of ``cache``
    bytes: what is read must be out of it, even if what is written leaves it alone."""
    return max(2, min(SLOTS, RING // (read + written), math.ceil(COLD * cache / read))) if read else 2


class Runner:
    """Who is timed: a library, or the machine itself for a limit."""

    name = ""
    most = 64  # calls that it can have waiting on the device

    def keep_busy(self, machine: Any, seconds: float) -> None:
        """Occupy the device on which the next calls wait, and empty its cache."""
        machine.keep_busy(seconds)

    def fence(self, result: Any) -> None:
        """Let the default stream wait for a result that is computed on another."""


@dataclass
class Subject:
    """Something to be timed: a runner's call on each slot of the ring of arrays, and its samples."""

    runner: Runner
    calls: list[Callable[[], Any]]
    fresh: bool  # no slot may be used twice in a sample
    host: float = 0.0  # seconds per call until Python has launched it
    count: int = 1  # calls per sample
    samples: list[list[float]] = field(default_factory=list)  # of each round: seconds per call
    hidden: bool = True  # the host's time never showed
    kept: Any = None  # whatever has to live as long as the calls

    def warm_up(self, synchronize: Callable[[], None]) -> None:
        """Call on every slot, so that memory for every result is in the pool; choose the calls per sample."""
        results = []
        start = time.perf_counter()
        for call in self.calls:
            results.append(call())
            if (waited := time.perf_counter() - start) > SLOW:
                break
        self.host = waited / len(results)
        synchronize()
        seconds = (time.perf_counter() - start) / len(results)
        rounds = 1 if self.fresh else math.ceil(SAMPLE / (seconds * len(self.calls)))
        self.count = max(1, min(self.runner.most, rounds * len(self.calls), int(SLOW / seconds)))

    def sample(self, machine: Any) -> None:
        """Take a round of samples, fewer if the calls are slow."""
        results: list[Any] = [None] * len(self.calls)
        taken: list[float] = []
        while len(taken) < (SAMPLES if not taken or taken[0] * self.count < SLOW / 2 else 1):
            seconds, hidden = machine.sample(self, results)
            taken.append(seconds)
            self.hidden &= hidden
        self.samples.append(taken)

    def call(self, results: list[Any]) -> Any:
        """Make the calls of a sample. Results stay until their slot's turn comes again: theirs is a ring too."""
        for i in range(self.count):
            slot = i % len(results)
            results[slot] = self.calls[slot]()
        return results[slot]

    def result(self) -> dict[str, Any]:
        """The median in microseconds; its relative spread (interquartile) and how far apart the rounds' medians are."""
        every = [seconds for taken in self.samples for seconds in taken]
        median = statistics.median(every)
        low, _, high = statistics.quantiles(every, n=4)
        medians = [statistics.median(taken) for taken in self.samples]
        return {
            "us": significant(median * 1e6),
            "spread": significant((high - low) / median),
            "repeat": significant((max(medians) - min(medians)) / median),
            "host_hidden": self.hidden,
        }


def significant(value: float) -> float:
    """Rounded to five digits, for files that people read."""
    return float(f"{value:.5g}")
