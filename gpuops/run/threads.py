"""The threads that share the work of a call on the host."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Share = Callable[[Callable[[Any], Any], Iterable[Any]], None]  # calls a function for each item
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
def pool() -> ThreadPoolExecutor:
    """The threads beside the caller's: they start when there is work for them."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    return ThreadPoolExecutor(limit() - 1, "gpuops")


def alone(function: Callable[[Any], Any], items: Iterable[Any]) -> None:
    """Call a function for each item. NumPy's warnings are off."""
    with np.errstate(all="ignore"):
        for item in items:
            function(item)


def each(function: Callable[[Any], Any], items: Iterable[Any]) -> None:
    """The same, on several threads at a time."""
    left = deque(items)

    def work() -> None:
        with np.errstate(all="ignore"):
            while left:
                try:
                    item = left.popleft()
                except IndexError:  # another thread took the last one
                    return
                function(item)

    helpers = min(limit(), len(left)) - 1
    started = [pool().submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        left.clear()  # after a failure, nobody goes on
        failures = [helper.exception() for helper in started]
    for failure in filter(None, failures):
        raise failure


if hasattr(os, "register_at_fork"):  # the threads stay behind
    os.register_at_fork(after_in_child=pool.cache_clear)
