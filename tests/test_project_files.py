"""Files beside the code (the citation, forms, hooks, policies, MANIFEST.in) agree with the code.

Those that are YAML have one key in a line, so patterns read them, and the tests need no library for it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from gpuops.__main__ import COMMANDS
from gpuops.version import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))
EVERY_FORM = pytest.mark.parametrize("form", FORMS, ids=[form.stem for form in FORMS])
#: Files that name commands, targets of make and other files in plain text.
TEXTS = [
    ".pre-commit-config.yaml", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "docs/promises.md",
    "docs/sharp-edges.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / ".github").rglob("*.*")),
]  # fmt: skip
EVERY_TEXT = pytest.mark.parametrize("name", TEXTS)


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def values(text: str, key: str) -> list[str]:
    """The values of a YAML key, in the order of the file."""
    found = re.findall(rf"^[ -]*{re.escape(key)}: *(.*?) *(?: #.*)?$", text, re.MULTILINE)
    return [value.strip('"') for value in found]


def value(text: str, key: str) -> str:
    """The value of a key that is there once."""
    (found,) = values(text, key)
    return found


def keys(text: str) -> set[str]:
    """The keys of the outermost level."""
    return {*re.findall(r"^([\w-]+):", text, re.MULTILINE)}


# ------------------------------------------------------------------------------------------------------------ citation


def test_the_citation_is_of_this_version():
    text = read("CITATION.cff")
    assert value(text, "version") == __version__
    assert value(text, "license") == PROJECT["license"]
    assert values(text, "name") == [author["name"] for author in PROJECT["authors"]]


def test_the_citation_has_the_keys_that_its_format_requires():
    text = read("CITATION.cff")
    assert value(text, "cff-version") == "1.2.0"
    assert {"authors", "cff-version", "message", "title"} <= keys(text)


# ------------------------------------------------------------------------------------------------- forms and templates


def parts_of(text: str) -> list[str]:
    """The elements of a form, without the word that begins each."""
    return text.partition("\nbody:\n")[2].split("  - type: ")[1:]


@EVERY_FORM
def test_forms_have_the_keys_that_the_host_requires(form):
    text = form.read_text(encoding="utf-8")
    assert keys(text) >= {"name", "description", "body"}
    assert "\t" not in text and parts_of(text)
    for part in parts_of(text):
        kind = part.split()[0]
        assert kind in {"markdown", "textarea", "input", "checkboxes"}
        for key in ("value",) if kind == "markdown" else ("id", "label"):
            assert all(values(part, key)) and values(part, key), f"{kind} without {key}"
    assert len(values(text, "id")) == len({*values(text, "id")})


@pytest.mark.parametrize("name", ["bug_report", "wrong_result"])
def test_reports_require_a_program_and_the_versions(name):
    parts = {value(part, "id"): part for part in parts_of(read(".github", "ISSUE_TEMPLATE", f"{name}.yml"))[1:]}
    assert values(parts["example"], "required") == values(parts["info"], "required") == ["true"]
    assert "python -m gpuops info" in parts["info"]


# --------------------------------------------------------------------------------------------------------------- hooks


def targets() -> dict[str, list[str]]:
    """The targets of the Makefile that are no files, and what each needs."""
    rules = dict(re.findall(r"^([\w.-]+):(.*)$", read("Makefile"), re.MULTILINE))
    return {name: rules[name].split() for name in rules[".PHONY"].split()}


def test_hooks_run_the_linters_that_the_tests_run():
    text, known = read(".pre-commit-config.yaml"), targets()
    wanted = [f"make {target}" for target in known["test"] if target in known]
    assert wanted and sorted(values(text, "entry")) == sorted(wanted)
    assert {*values(text, "repo")} == {"local"} and {*values(text, "language")} == {"system"}
    assert {*values(text, "pass_filenames")} == {"false"}


def test_hooks_run_for_the_files_that_linters_read():
    lint, types = values(read(".pre-commit-config.yaml"), "files")
    for name in ("gpuops/ops/reduce.py", "gpuops/__init__.pyi", "tests/test_lazy.py", "pyproject.toml"):
        assert (ROOT / name).is_file() and re.search(lint, name) and re.search(types, name)
    for pattern in (lint, types):
        assert not re.search(pattern, "docs/guide.md") and not re.search(pattern, "docs/pyproject.toml")
    notebooks = [*(ROOT / "docs").rglob("*.ipynb")]
    assert notebooks and all(re.search(lint, str(path.relative_to(ROOT))) for path in notebooks)


# ---------------------------------------------------------------------------------------------------- what texts name


@EVERY_TEXT
def test_commands_that_texts_name_exist(name):
    named = re.findall(r"python\s-m\sgpuops\s([a-z]+)", read(name))
    assert {*named} <= {command.name for command in COMMANDS} | {"bench"}


@EVERY_TEXT
def test_targets_of_make_that_texts_name_exist(name):
    """In code: after a backtick, as the entry of a hook, or in a line with a comment."""
    named = re.findall(r"(?:`|entry: |^(?=make [a-z-]+ +#))make ([a-z][a-z-]*)", read(name), re.MULTILINE)
    assert {*named} <= targets().keys()


@EVERY_TEXT
def test_files_that_texts_name_exist(name):
    named = re.findall(r"\b(?:docs|tests|gpuops|benchmarks)/[\w./-]*\w\.[a-z]+\b|\b[A-Z_]+\.(?:md|cff)\b", read(name))
    assert [file for file in named if not (ROOT / file).is_file()] == []


def test_names_are_found_in_texts():
    """So that the three tests before do not pass for want of names."""
    everything = "\n".join(map(read, TEXTS))
    for text in ("python -m gpuops warmup", "`make lint`", "entry: make types", "docs/sharp-edges.md", "SECURITY.md"):
        assert text in everything


def test_the_table_of_what_is_public_has_every_variable_that_is_read():
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "gpuops").rglob("*.py"))
    table = read("docs", "promises.md").partition("## What counts as public\n")[2].partition("\n## ")[0]
    names = [{*re.findall(r"\bGPUOPS_[A-Z_]+\b", text)} for text in (code, table)]
    assert names[0] == names[1] and "GPUOPS_CACHE_DIR" in names[0]


# --------------------------------------------------------------------------------------------------------- MANIFEST.in


def manifest(verb: str) -> set[str]:
    """What lines of MANIFEST.in with this first word name: files to ``include``, folders to ``graft``."""
    lines = [line.split() for line in read("MANIFEST.in").splitlines()]
    return {name for first, *names in lines if first == verb for name in names}


def test_what_the_manifest_names_exists():
    files, folders = manifest("include"), manifest("graft")
    assert files and [name for name in files if not (ROOT / name).is_file()] == []
    assert folders and [name for name in folders if not (ROOT / name).is_dir()] == []


@pytest.mark.parametrize("name", [*TEXTS, "CODE_OF_CONDUCT.md", "Makefile"])
def test_a_source_distribution_has_the_files_that_these_tests_read(name):
    assert name in manifest("include") or name.partition("/")[0] in manifest("graft")
