"""What type checkers know of gpuops."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import stubs

USES = Path(__file__).with_name("uses_of_types.py")
CHECKERS = {
    "mypy": ("mypy", "--strict", "--config-file=", "--no-error-summary", "--cache-dir", "{folder}"),
    "pyright": ("basedpyright", "--level", "error", "--project", "{folder}/pyrightconfig.json"),
}


def test_stubs_have_the_parameters_and_strategies_of_the_functions():
    for path, text in stubs.stubs().items():
        assert path.read_text(encoding="utf-8") == text, "python -m tests.stubs writes it"


@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_uses_and_no_others_are_errors(checker, tmp_path):
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(stubs.FOLDER.parent)], "include": [str(USES)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    module, *options = (word.format(folder=tmp_path) for word in CHECKERS[checker])
    command = [sys.executable, "-m", module, *options, str(USES)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=stubs.FOLDER.parent, timeout=300)
    found = {int(line) for line in re.findall(rf"{USES.name}:(\d+)(?::\d+)?(?: -)?:? error", done.stdout)}
    lines = USES.read_text(encoding="utf-8").splitlines()
    assert found == {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}, done.stdout + done.stderr
