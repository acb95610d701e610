"""The threads that share the work of a call on the host."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable
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


class Helper:
    """A thread that waits for something to do; unlike ThreadPoolExecutor's, it is waited for only while it does it."""

    def __init__(self, idle: deque[Helper]) -> None:
        import threading  # slow to import

        self.idle, self.begin = idle, threading.Lock()
        self.begin.acquire()
        self.work: Callable[[], None] | None = None
        threading.Thread(target=self.run, name="gpuops", daemon=True).start()

    def start(self, work: Callable[[], None] | None) -> None:
        """Have it do something, after which it is idle again; it ends, if that is nothing."""
        self.work = work
        self.begin.release()

    def run(self) -> None:
        while self.begin.acquire() and self.work is not None:
            self.work()
            self.work = None  # which has the caller's arrays
            self.idle.append(self)


@cache
def pool() -> deque[Helper]:
    """The idle threads beside the callers'."""
    idle: deque[Helper] = deque()
    idle.extend([Helper(idle) for _ in range(limit() - 1)])
    return idle


class Items:
    """Items that threads take one after the other; the last one done tells the caller."""

    def __init__(self, function: Callable[[Any], Any], items: Iterable[Any]) -> None:
        import threading

        self.function, self.left = function, deque(items)
        self.count, self.done = len(self.left), deque[BaseException | None]()
        self.end = threading.Lock()
        self.end.acquire()

    def work(self) -> None:
        """Take items until there are none, or one has failed."""
        with np.errstate(all="ignore"), suppress(IndexError):
            while True:
                item = self.left.popleft()
                try:
                    self.function(item)
                    self.done.append(None)
                except BaseException as failure:
                    self.done.append(failure)
                    with suppress(IndexError):
                        while True:
                            self.left.popleft()
                            self.done.append(None)
                if len(self.done) == self.count:
                    with suppress(RuntimeError):  # two threads may see it
                        self.end.release()

    def wait(self) -> None:
        """Wait until all are done; raise what one of them has raised."""
        if len(self.done) < self.count:
            self.end.acquire()
        for failure in filter(None, self.done):
            raise failure


def alone(function: Callable[[Any], Any], items: Iterable[Any]) -> None:
    """Call a function for each item. NumPy's warnings are off."""
    with np.errstate(all="ignore"):
        for item in items:
            function(item)


def each(function: Callable[[Any], Any], items: Iterable[Any], most: int) -> None:
    """The same, on so many threads at a time, at most."""
    work, idle = Items(function, items), pool()
    with suppress(IndexError):  # other callers have the others
        for _ in range(min(most, limit(), work.count) - 1):
            idle.pop().start(work.work)
    work.work()
    work.wait()


def shared(nbytes: int) -> Share:
    """How to call a function for items, which takes as long in all as a pass over so many bytes of memory.

    Threads begin one after the other, since each needs Python's lock for that: n of them take time in proportion to
    nbytes / n + WAKE * n, which is least for their number here.
    """
    count = min(limit(), math.isqrt(nbytes // WAKE))
    return partial(each, most=count) if count > 1 else alone


if hasattr(os, "register_at_fork"):  # the threads stay behind
    os.register_at_fork(after_in_child=pool.cache_clear)
