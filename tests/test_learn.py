"""The course: what its pages include of the kernels, and that each rung has its section."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pygments.lexers
import pytest
from pygments.token import Error

import gpuops

DOCS = Path(__file__).parent.parent / "docs"
#: The guide of each op that the course is about.
GUIDES = {
    "expand": "broadcast", "where": "broadcast", "sum": "reduce", "softmax": "softmax", "matmul": "matmul",
    "cumsum": "scan",
}  # fmt: skip
PAGES = {name: (DOCS / "kernels" / f"{name}.md").read_text(encoding="utf-8") for name in dict.fromkeys(GUIDES.values())}
RUNGS = [(op, strategy) for op in GUIDES for strategy in gpuops.strategies(op)]
MOST_LINES = 44  # of an excerpt
INCLUDE = re.compile(r"^```\{literalinclude\} (?P<path>\S+)\n(?P<options>(?::.*\n)*)```$", re.MULTILINE)


def includes() -> list[tuple[str, str, dict[str, str]]]:
    """The page, the path and the options of each literalinclude."""
    found = []
    for page, text in PAGES.items():
        for match in INCLUDE.finditer(text):
            options = re.findall(r"^:([\w-]+): ?(.*)$", match["options"], re.MULTILINE)
            found.append((page, match["path"], {name: value.strip('"') for name, value in options}))
    return found


def excerpt(text: str, options: dict[str, str]) -> str:
    """What Sphinx shows of a text, for markers that occur once in it."""
    lines = text.splitlines()
    if name := options.get("pyobject"):
        name = name.rpartition(".")[2]
        first = next(n for n, line in enumerate(lines) if re.match(rf"\s*def {name}\(", line))
        indent = len(lines[first]) - len(lines[first].lstrip())
        inside = (n for n in range(first + 1, len(lines)) if lines[n] and not lines[n].startswith(" " * (indent + 1)))
        return "\n".join(lines[first : next(inside, len(lines))])

    def line_of(marker: str) -> int:
        return next(n for n, line in enumerate(lines) if options[marker] in line)

    end = line_of("end-at") + 1 if "end-at" in options else line_of("end-before") if "end-before" in options else None
    return "\n".join(lines[line_of("start-at") : end])


def sections(page: str) -> dict[str, str]:
    """The sections of a guide by the names of strategies before the colon of their heading."""
    parts = re.split(r"^## (.*)$", PAGES[page], flags=re.MULTILINE)
    return {
        name: body
        for heading, body in zip(parts[1::2], parts[2::2])
        for name in heading.partition(":")[0].split(", ")
    }  # fmt: skip


def drawings(name: str = "drawings") -> ModuleType:
    """A script that draws pictures."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "kernels" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_include_is_recognised():
    marks = sum(text.count("{literalinclude}") for text in PAGES.values())
    assert marks == len(includes()) > 30


@pytest.mark.parametrize(("page", "path", "options"), includes())
def test_excerpts_are_found_once_and_short(page, path, options):
    file = DOCS / "kernels" / path
    assert file.is_file(), f"{page}.md includes {path}"
    text = file.read_text(encoding="utf-8")
    markers = {"start-at", "end-at", "end-before"} & options.keys()
    assert set(options) <= {"language", "dedent", "pyobject"} | markers
    assert "pyobject" in options or "start-at" in markers, f"{page}.md: {path} is included as a whole"
    for marker in markers:
        assert text.count(options[marker]) == 1, f"{page}.md: {options[marker]!r} in {path}"
    shown = excerpt(text, options)
    assert 0 < len(shown.splitlines()) <= MOST_LINES
    lexer = pygments.lexers.get_lexer_by_name(options["language"])
    assert not [value for kind, value in lexer.get_tokens(shown) if kind is Error]


@pytest.mark.parametrize(("page", "path", "options"), includes())
def test_excerpts_have_a_link_to_their_file(page, path, options):
    assert f"]({path})" in PAGES[page]


@pytest.mark.parametrize(("op", "strategy"), RUNGS)
def test_each_rung_has_a_section_with_picture_kernel_and_trial(op, strategy):
    section = sections(GUIDES[op])[strategy]
    picture = re.search(r"!\[[^]]+\]\(([\w-]+\.svg)\)", section)
    assert picture and (DOCS / "kernels" / picture[1]).is_file()
    assert "{literalinclude}" in section
    assert "**What to look at" in section
    (trial,) = re.findall(r"\*\*Try it\.\*\*\n\n```python\n(.*?)```", section, re.DOTALL)
    assert f'"{strategy}"' in trial


def test_the_course_leads_to_every_guide():
    text = (DOCS / "learn.md").read_text(encoding="utf-8")
    assert all(f"(kernels/{page}.md)" in text and "(../learn.md)" in PAGES[page] for page in PAGES)


@pytest.mark.parametrize("script", ("drawings", "exact_drawings", "scan_drawings"))
def test_pictures_are_those_of_the_script(script, monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "kernels")  # one script takes functions of the other
    module = drawings(script)
    for name, draw in module.PICTURES.items():
        drawn = (DOCS / "kernels" / f"{name}.svg").read_text(encoding="utf-8")
        assert drawn == draw().svg(), f"run python docs/kernels/{script}.py"
        assert "prefers-color-scheme: dark" in drawn


def test_pictures_of_products_have_the_tiles_of_the_planner():
    from gpuops.plan import products
    from gpuops.plan.products import rungs

    drawn = drawings().RUNGS
    largest = products.TILES[0]
    assert drawn["pipelined"].block == (largest.m, largest.n)
    assert drawn["shared"].block == (rungs.SHARED_TILE,) * 2
    assert drawn["blocktile_1d"].block == (rungs.TILE_1D,) * 2
    assert drawn["blocktile_1d"].thread[0][2:] == (rungs.ROWS_1D, 1)
    tile, side = rungs.TILE_2D[4]
    assert drawn["blocktile_2d"].block == drawn["vectorized"].block == (tile,) * 2
    assert drawn["blocktile_2d"].thread[0][2:] == (side, side)
    assert {drawn[name].depth for name in ("blocktile_1d", "blocktile_2d", "vectorized")} == {rungs.DEPTH}
    rows, cols = rungs.WARPTILE[4]
    assert drawn["warptile"].warp[2:] == (8 * rows, 4 * cols)
    assert sum(high * wide for *_, high, wide in drawn["warptile"].thread) == rows * cols
