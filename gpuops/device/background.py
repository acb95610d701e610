"""Threads that compile kernels in the background. What has not begun when the program ends is left."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache

MOST = 2  # threads, and no more than half of the cores: with more, the compiles that calls wait for take longer


class Background:
    """A queue of tasks, which must not raise, and the threads that work on it: as many as there are tasks, up to a
    limit."""

    def __init__(self, most: int) -> None:
        self.most, self.threads = most, 0
        self.tasks: deque[tuple[Future[None], Callable[[], None]]] = deque()
        self.lock = threading.Lock()

    def submit(self, task: Callable[[], None]) -> Future[None]:
        """Queue a task. Its future can be cancelled until it begins."""
        future: Future[None] = Future()
        with self.lock:
            self.tasks.append((future, task))
            begins = self.threads < self.most
            self.threads += begins
        if begins:
            threading.Thread(target=self.work, name="gpuops-compile").start()
        return future

    def work(self) -> None:
        """Do what is queued, until the program ends: Python waits for threads like this one."""
        while True:
            with self.lock:
                if not self.tasks or not threading.main_thread().is_alive():
                    self.threads -= 1
                    return
                future, task = self.tasks.popleft()
            if future.set_running_or_notify_cancel():
                task()
                future.set_result(None)


@cache
def background() -> Background:
    """The queue of this process."""
    return Background(max(1, min(MOST, (os.cpu_count() or 1) // 2)))

