"""How much one run tests. Slow tests are split into parts, one per commit, round-robin.

Kernels are compiled for the emulator, for seconds: one run takes one of seven combinations of a test's parameters there
with the tuned kernels and another with those for small arrays, and all of them on a CPU and a GPU. So each combination
has its turn within four runs, and each run takes at least one of each test. The marker ``turns(n)`` says another
number, and ``turns(n, everywhere=True)`` that all are taken on a GPU alone.

The deep profile runs all parts. The quick profile skips the slowest files and draws few examples.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest

PROFILE = os.environ.get("GPUOPS_TEST_PROFILE", "ci")
DEEP = PROFILE == "deep"
TIERS = 2  # kinds of kernels on the emulator
TURNS = 7  # of a test without a marker; odd, to be out of step with what tests take round-robin themselves
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


def other_turns(items: Iterable[pytest.Item], tier: Callable[[pytest.Item], str]) -> list[pytest.Item]:
    """The tests on the emulator that are for other commits, and others with the marker ``turns(n, everywhere=True)``.

    One of n combinations of a test's parameters runs, round-robin, in a diagonal: each value of each parameter has its
    turn soon. The tuned kernels and those for small arrays have different combinations, so that with ``turns(2)`` each
    combination runs on one of them. If there are fewer than n / 2, one runs on one of them.
    """
    turn = TURN // 2 if PROFILE == "quick" else TURN  # it takes turns of its own with the two kinds of kernels
    items, seen = list(items), Counter[tuple[str, str]]()
    sizes = Counter((test_of(item), tier(item)) for item in items)
    left_out = []
    for item in items:
        marker, name = item.get_closest_marker("turns"), tier(item)
        emulated, everywhere = name.startswith("emulated"), marker is not None and marker.kwargs.get("everywhere")
        if DEEP or name == "gpu" or not (emulated or everywhere):
            continue
        count, test = marker.args[0] if marker else TURNS, (test_of(item), name)
        count = count if everywhere else min(count, TIERS * sizes[test])
        place, seen[test] = seen[test], seen[test] + 1
        if (place + place // count + turn + name.endswith("small") * (count // 2)) % count:
            left_out.append(item)
    return left_out


def test_of(item: pytest.Item) -> str:
    """The name of a test, without its parameters."""
    return item.nodeid.partition("[")[0]


def examples(count: int) -> hypothesis.settings:
    """The number of examples of a property, fewer than the default where other tests cover the same ground."""
    if DEEP:
        return hypothesis.settings()
    return hypothesis.settings(max_examples=min(count, FEW) if PROFILE == "quick" else count)
