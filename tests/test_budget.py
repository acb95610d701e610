"""What a run tests: the parts of slow tests, which a bisect can hold on to."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import budget, conftest


def test_the_parts_of_a_run_are_printed_and_can_be_taken_again(pytestconfig):
    again = f"parts of turn {budget.TURN} (again with GPUOPS_TEST_TURN={budget.TURN})"
    assert conftest.pytest_report_header(pytestconfig).endswith(again)
    env = os.environ | {"GPUOPS_TEST_TURN": "1234"}
    command = [sys.executable, "-m", "pytest", "-n", "2", "tests/test_budget.py", "--collect-only"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=pytestconfig.rootpath)
    assert "parts of turn 1234 (again with GPUOPS_TEST_TURN=1234)" in done.stdout, done.stdout
