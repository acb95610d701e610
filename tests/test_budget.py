"""What a run tests: the parts of slow tests, which a bisect can hold on to."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from tests import budget, conftest


def test_the_parts_of_a_run_are_printed_and_can_be_taken_again(pytestconfig):
    again = f"parts of turn {budget.TURN} (again with GPUOPS_TEST_TURN={budget.TURN})"
    assert conftest.pytest_report_header(pytestconfig).endswith(again)
    env = os.environ | {"GPUOPS_TEST_TURN": "1234"}
    command = [sys.executable, "-m", "pytest", "-n", "2", "tests/test_budget.py", "--collect-only"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=pytestconfig.rootpath)
    assert "parts of turn 1234 (again with GPUOPS_TEST_TURN=1234)" in done.stdout, done.stdout


def run_in(turn, count, monkeypatch, everywhere=False, rows=3, columns=5):
    """The combinations of 3 x 5 or other parameters that a run takes on each of the two kinds of kernels.

    0: no marker.
    """
    monkeypatch.setattr(budget, "TURN", turn)
    marker = SimpleNamespace(args=(count,), kwargs={"everywhere": True} if everywhere else {}) if count else None
    items = [
        SimpleNamespace(
            nodeid=f"test.py::test[{tier}-{place}]", tier=tier, place=place, get_closest_marker=lambda _: marker
        )
        for place in itertools.product(range(rows), range(columns))
        for tier in ("cpu", "emulated", "emulated-small", "gpu")
    ]
    left_out = {item.nodeid for item in budget.other_turns(items, lambda item: item.tier)}
    return Counter((item.tier, item.place) for item in items if item.nodeid not in left_out)


@pytest.mark.parametrize(
    ("count", "everywhere"), [(0, False), *itertools.product((2, 4, 5, 8), (False, True))]
)
def test_each_combination_has_its_turn_on_each_kind_of_kernels(monkeypatch, count, everywhere):
    monkeypatch.setattr(budget, "DEEP", False)
    monkeypatch.setattr(budget, "PROFILE", "ci")
    runs = [run_in(turn, count, monkeypatch, everywhere) for turn in range(7, 7 + (count or budget.TURNS))]
    times = sum(runs, Counter())
    assert len(times) == 4 * 15
    seldom = ("cpu", "emulated", "emulated-small") if everywhere else ("emulated", "emulated-small")
    assert all(times[tier, place] == (1 if tier in seldom else count or budget.TURNS) for tier, place in times)
    for run in runs:
        once = {place for tier, place in run if tier.startswith("emulated")}
        assert len(once) == sum(tier.startswith("emulated") for tier, _ in run), "one kind of kernels for each"
        assert len(once) == 15 or count != 2


@pytest.mark.parametrize("combinations", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [0, 2, 5, 20])
def test_each_run_takes_a_combination_of_each_test(monkeypatch, count, combinations):
    monkeypatch.setattr(budget, "DEEP", False)
    monkeypatch.setattr(budget, "PROFILE", "ci")
    runs = [run_in(turn, count, monkeypatch, rows=1, columns=combinations) for turn in range(20)]
    assert all(any(tier.startswith("emulated") for tier, _ in run) for run in runs)
    times = sum(runs, Counter())
    assert {place for tier, place in times if tier == "emulated-small"} == {(0, i) for i in range(combinations)}


def test_the_deep_profile_leaves_no_combination_out(monkeypatch):
    monkeypatch.setattr(budget, "DEEP", True)
    assert len(run_in(3, 4, monkeypatch)) == 4 * 15
