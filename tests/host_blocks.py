"""Blocks of the CPU engines so small that small arrays have several, on as many threads as a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from gpuops.run import block_engine, block_reduce, launch_cache, threads


@contextmanager
def settings(module: ModuleType, count: int, **values: int) -> Iterator[None]:
    """Constants of an engine set to these values, and the number of threads."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(module, name, value)
        patch.setattr(threads, "limit", lambda: count)
        forget()
        try:
            yield
        finally:
            if count > 1:
                threads.pool().shutdown()
            forget()


def forget() -> None:
    """Let go of what is kept for other settings."""
    threads.pool.cache_clear()
    block_engine.layout.cache_clear()
    block_reduce.cut.cache_clear()
    launch_cache.clear()
