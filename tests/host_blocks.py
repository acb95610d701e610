"""Blocks of the CPU engines so small that small arrays have several, on as many threads as a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from gpuops.call import launch_cache
from gpuops.host import (
    block,
    blocks,
    exact_engines,
    exponentials,
    few_sums,
    forms,
    maps,
    reduce,
    row_forms,
    sums,
    threads,
)

ENGINES = ("numpy", "compiled") if find_spec("numba") else ("numpy",)


@contextmanager
def computed_by(engine: str) -> Iterator[None]:
    """Elementwise functions are NumPy's, or those that Numba compiles."""
    if engine not in ENGINES:
        pytest.skip("needs Numba, which the extra `cpu` installs")
    with pytest.MonkeyPatch.context() as patch:
        for module in (blocks, exponentials):
            patch.setattr(module, "COMPILED", 0 if engine == "compiled" else 2**60)
        if engine == "numpy":
            patch.setattr(maps, "compiled", lambda module: None)
            patch.setattr(forms, "compiled", lambda module: None)
            patch.setattr(exact_engines, "compiled", lambda module: None)
            for module in (sums, exact_engines):
                patch.setattr(module, "INSTALLED", False)
        yield


@contextmanager
def settings(module: ModuleType, count: int, **values: Any) -> Iterator[None]:
    """Constants of an engine set to these values, and the number of threads."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(module, name, value)
        patch.setattr(threads, "limit", lambda: count)
        patch.setattr(threads, "WAKE", 1)  # which is no work
        forget()
        try:
            yield
        finally:
            threads.pool().shutdown()
            forget()


@contextmanager
def small_blocks(count: int, engine: str = "numpy") -> Iterator[None]:
    """Small arrays are reduced in blocks, on so many threads."""
    loops = 0 if engine == "compiled" else 2**60
    with (
        computed_by(engine),
        settings(block, count, SHORT=4),
        settings(forms, count, NARROW=8, FOLDED=12, CHAIN=4, LOOPS=loops),
        settings(exponentials, count, SHORT=8, FOLDED=12),
        settings(sums, count, LOOPS=loops),
        settings(exact_engines, count, LOOPS=loops),
        settings(few_sums, count, VECTOR=0, FEW=0),
        settings(reduce, count, BLOCK=24, VIEWED=48, PIECES=100, LESS=2),
    ):
        yield


def forget() -> None:
    """Let go of what is kept for other settings."""
    threads.pool.cache_clear()
    row_forms.form.cache_clear()
    row_forms.turned.cache_clear()
    row_forms.cut.cache_clear()
    reduce.cut.cache_clear()
    block.layout.cache_clear()
    launch_cache.clear()
