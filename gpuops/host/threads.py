"""The threads that share the work of a call on the host."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np

Share = Callable[[Callable[[Any], Any], Iterable[Any]], None]  # calls a function for each item
WAKE = 2**20  # bytes that are read from memory while a thread begins
VARIABLES = ("GPUOPS_NUM_THREADS", "OMP_NUM_THREADS")


@cache
def limit() -> int:
    """How many threads a call may use: what the environment says, at most one for each core of this process."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    for name in VARIABLES:
        first = os.environ.get(name, "").partition(",")[0].strip()  # OpenMP's may be a list: one for each level
        if first.isdecimal() and int(first) > 0:
            return min(int(first), cores)
    return cores


@cache
def pool() -> Any:
    """The threads beside the callers'."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    return ThreadPoolExecutor(max(1, limit() - 1), "gpuops")


def alone(function: Callable[[Any], Any], items: Iterable[Any]) -> None:
    """Call a function for each item. NumPy's warnings are off."""
    with np.errstate(all="ignore"):
        for item in items:
            function(item)


def each(function: Callable[[Any], Any], items: Iterable[Any], most: int) -> None:
    """The same, on so many threads at a time, at most: each takes items until there are none, or one has failed."""
    left = deque(items)

    def taken() -> Iterator[Any]:
        with suppress(IndexError):
            while True:
                yield left.popleft()

    def work() -> None:
        try:
            alone(function, taken())
        except BaseException:
            left.clear()
            raise

    helpers = []
    with suppress(RuntimeError):  # the interpreter is about to end
        for _ in range(min(most, limit(), len(left)) - 1):
            helpers.append(pool().submit(work))
    try:
        work()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]  # other callers have the other threads
        failures = [helper.exception() for helper in begun]
    for failure in filter(None, failures):
        raise failure


def shared(nbytes: int) -> Share:
    """How to call a function for items, which takes as long in all as a pass over so many bytes of memory.

    Threads begin one after the other, since each needs Python's lock for that: n of them take time in proportion to
    nbytes / n + WAKE * n, which is least for their number here.
    """
    count = min(limit(), math.isqrt(nbytes // WAKE))
    return partial(each, most=count) if count > 1 else alone


if hasattr(os, "register_at_fork"):  # the threads stay behind
    os.register_at_fork(after_in_child=pool.cache_clear)
