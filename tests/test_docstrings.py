"""The help of public functions, which is filled from texts that they share."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import gpuops
from gpuops import array_api
from gpuops.ops.docstring_texts import CONDITIONS, PARAMETERS, TEXTS
from gpuops.ops.docstrings import PLACEHOLDER
from gpuops.ops.table import strategies

FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (gpuops, array_api, array_api.linalg)
    for name in module.__all__
    if callable(getattr(module, name))
}
EVERY_FUNCTION = pytest.mark.parametrize("name", FUNCTIONS)


@EVERY_FUNCTION
def test_help_stands_alone(name):
    """It says what each parameter is, in order, what comes back and what is raised, and has an example."""
    text = inspect.getdoc(FUNCTIONS[name])
    _, *sections = re.split(r"^(\w+)\n-+\n", text, flags=re.MULTILINE)
    found = dict(zip(sections[::2], sections[1::2], strict=True))
    parameters = [*inspect.signature(FUNCTIONS[name]).parameters]
    described = re.findall(r"^(\w+(?:, \w+)*) : .+\n +\S", found.get("Parameters", ""), re.MULTILINE)
    assert ", ".join(described) == ", ".join(parameters)
    assert found.keys() >= {"Returns", "Examples"}
    assert "Raises" in found or not parameters
    assert ">>> " in found["Examples"]
    assert not re.search(r"(?:those|that) of `[^`]", text)


@EVERY_FUNCTION
def test_help_is_filled_and_laid_out(name):
    text = FUNCTIONS[name].__doc__
    assert not PLACEHOLDER.search(text) and "{op}" not in text
    assert max(map(len, text.splitlines())) <= 120
    assert not re.search(r"\S +$|\n\n\n", text, re.MULTILINE)


@pytest.mark.parametrize("op", strategies())
def test_help_names_the_strategies_that_it_explains(op):
    text = getattr(gpuops, op).__doc__
    assert f'gpuops.strategies("{op}")' in text or op in ("amax", "amin")
    assert ("``cross``" in text) == ("cross" in strategies()[op])
    assert ("``_host``" in text) == ("cross_host" in strategies()[op])


def test_every_shared_text_is_used():
    used = {match[2] for text in (*PARAMETERS.values(), *TEXTS.values()) for match in PLACEHOLDER.finditer(text)}
    for function in FUNCTIONS.values():
        used |= {match[2] for match in PLACEHOLDER.finditer(inspect.getsource(inspect.unwrap(function)))}
    assert used == {*PARAMETERS, *TEXTS, *CONDITIONS}


def test_functions_work_without_docstrings():
    command = [sys.executable, "-OO", "-c", "import gpuops; print(gpuops.sum.__doc__, gpuops.sum([1, 2]))"]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "None 3\n"
