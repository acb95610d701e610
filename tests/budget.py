"""How much of what takes long one run tests: parts, one for each commit in turn; the deep profile takes all, the quick
one leaves out what takes longest and draws few examples."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import hypothesis

PROFILE = os.environ.get("GPUOPS_TEST_PROFILE", "ci")
DEEP = PROFILE == "deep"
FEW = 12  # examples of a property in the quick profile
#: Files that the quick profile leaves out.
SLOW = (
    "test_bench.py", "test_cli.py", "test_cluster.py", "test_emulator.py", "test_kernels.py", "test_package.py",
    "test_scaling.py",
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
        return int(git("rev-parse", "HEAD")[:6] or "0", 16)  # how many came before is not known
    except (OSError, ValueError):  # no git, no commit
        return 0


TURN = turn()


def in_turn(items: Sequence[Any], count: int = 1, start: int = 0) -> list[Any]:
    """The next few items, from turn to turn; other tests take others by their ``start``."""
    if DEEP:
        return list(items)
    return [items[(TURN * count + start + i) % len(items)] for i in range(count)]


def pairs(rows: Iterable[Any], *columns: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each row with one item in turn of each column, of the next row with the next item.

    What is to meet in all combinations makes one column: two that are as long keep the same step.
    """
    return [(row, item) for i, row in enumerate(rows) for items in columns for item in in_turn(items, start=i)]


def examples(count: int) -> hypothesis.settings:
    """A property's number of examples, fewer than usual where they repeat each other or others run more."""
    if DEEP:
        return hypothesis.settings()
    return hypothesis.settings(max_examples=min(count, FEW) if PROFILE == "quick" else count)
