"""Sampling: how often a call is made, and the statistics of its times."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

COLD = 4  # a ring of arrays is this many times the cache size, so that each slot is evicted before its next use
SLOTS = 64  # arrays in a ring at most; a ring too small for the cache is used once per sample, after a flush
RING = 2**34  # bytes of a ring of arrays and of the results made of them, at most
ROUNDS = 2  # rounds over all runners; the difference between them shows the noise
SAMPLES = 4  # per round
SAMPLE = 1e-3  # seconds that the calls of a sample should take together
SLOW = 0.05  # seconds after which a sample ends


def slots(read: int, written: int, cache: int) -> int:
    """How many arrays a ring needs so that calls find a cold cache of ``cache`` bytes.

    What is read must be evicted even if writes bypass the cache.
    """
    return max(2, min(SLOTS, RING // (read + written), math.ceil(COLD * cache / read))) if read else 2


class Runner:
    """What is timed: a library, or the machine itself for a limit."""

    name = ""
    most = 64  # calls that may be queued on the device

    def keep_busy(self, machine: Any, seconds: float) -> None:
        """Occupy the device, so that the next calls queue, and flush its cache."""
        machine.keep_busy(seconds)

    def fence(self, result: Any) -> None:
        """Make the default stream wait for a result of another stream."""


@dataclass
class Subject:
    """Something to be timed: a runner's call on each slot of the ring of arrays, and its samples."""

    runner: Runner
    calls: list[Callable[[], Any]]
    fresh: bool  # no slot may be used twice in a sample
    host: float = 0.0  # seconds per call until Python has launched it
    count: int = 1  # calls per sample
    samples: list[list[float]] = field(default_factory=list)  # of each round: seconds per call
    hidden: bool = True  # the host never was the bottleneck
    kept: Any = None  # objects that must outlive the calls

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
        """Make the calls of a sample. Results stay until their slot is reused: they form a ring too."""
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
