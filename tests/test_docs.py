"""Examples that users paste, in the README and in docs. (Those with results are doctests.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpuops.definition import expressions, records
from gpuops.ops.reduction import NOT_GIVEN, reduction
from gpuops.plan.work import new_array
from tests.conftest import NO_GPU

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
#: Python without prompts, by page and line.
EXAMPLES = {
    f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}": match[1]
    for page in PAGES
    for text in [page.read_text(encoding="utf-8")]
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if ">>>" not in match[1]
}
RUN = [name for name, text in EXAMPLES.items() if "import cupy as cp" in text]  # the others need more than a GPU


def test_there_are_examples():
    assert len(EXAMPLES) > 4
    assert len(RUN) > 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_pasted_examples_know_all_names(name):
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821", "--stdin-filename=example.py", "-"]
    done = subprocess.run(command, input=EXAMPLES[name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(bool(NO_GPU), reason=NO_GPU)
@pytest.mark.parametrize("name", RUN)
def test_pasted_examples_run(name):
    exec(compile(EXAMPLES[name], name, "exec"), {})


def test_the_reduction_of_the_guide_for_contributors_is_right():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    scope = vars(records) | vars(expressions)
    exec(re.search(r"^ +GEOMETRIC_MEAN = .*?^   \)", page, re.MULTILINE | re.DOTALL)[0].strip(), scope)

    def described(x, axis):
        a = new_array("a", x.shape, x.dtype)
        return reduction(scope["GEOMETRIC_MEAN"], a, axis, None, None, False, NOT_GIVEN, True, None).host

    x = np.random.default_rng(0).uniform(0.5, 4, (30, 12)).astype("f4")
    for axis in (0, 1, None):
        host = described(x, axis)
        found = host.function(x, **host.options)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, np.exp(np.log(x.astype("f8")).mean(axis)), rtol=1e-5)
    with pytest.raises(TypeError, match="^geometric_mean: dtype complex64 of a is not supported"):
        described(x.astype("c8"), None)
