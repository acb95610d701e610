"""How much one run tests. Slow tests are split into parts, one per commit, round-robin.

The deep profile runs all parts. The quick profile skips the slowest files and draws few examples.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import hypothesis

PROFILE = os.environ.get("GPUOPS_TEST_PROFILE", "ci")
DEEP = PROFILE == "deep"
FEW = 8  # examples of a property in the quick profile
#: Files that the quick profile leaves out.
SLOW = (
    "test_array_api.py", "test_bench.py", "test_cli.py", "test_cluster.py", "test_dask.py", "test_distributions.py",
    "test_emulator.py", "test_interop.py", "test_kernels.py", "test_logsumexp.py", "test_scaling.py", "test_warmup.py",
)  # fmt: skip


def turn() -> int:
    """The number of the commit, unless GPUOPS_TEST_TURN gives one."""
    if given := os.environ.get("GPUOPS_TEST_TURN"):
        return int(given)

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], capture_output=True, text=True, cwd=Path(__file__).parent).stdout

    try:
        if git("rev-parse", "--is-shallow-repository").strip() == "false":
            return int(git("rev-list", "--count", "HEAD"))
        return int(git("rev-parse", "HEAD")[:6] or "0", 16)  # a shallow clone does not know its number
    except (OSError, ValueError):  # no git, no commit
        return 0


TURN = turn()


def round_robin(items: Sequence[Any], count: int = 1, start: int = 0) -> list[Any]:
    """The next ``count`` items for this commit, round-robin; ``start`` gives other tests other items."""
    if DEEP:
        return list(items)
    return [items[(TURN * count + start + i) % len(items)] for i in range(count)]


def pairs(rows: Iterable[Any], *columns: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each row with one item of each column, round-robin over rows and commits.

    Put items that must meet in all combinations into one column: two columns of equal length stay in step.
    """
    return [(row, item) for i, row in enumerate(rows) for items in columns for item in round_robin(items, start=i)]


def examples(count: int) -> hypothesis.settings:
    """The number of examples of a property, fewer than the default where other tests cover the same ground."""
    if DEEP:
        return hypothesis.settings()
    return hypothesis.settings(max_examples=min(count, FEW) if PROFILE == "quick" else count)
