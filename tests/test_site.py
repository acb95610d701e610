"""The documentation site, without building it: its tables, and the links and pictures of all pages."""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import pkgutil
import re
import zlib
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pytest

import gpuops
from docs._ext import inventories, tabs
from docs._ext.site_map import (
    BELOW,
    DOCS,
    RELATED,
    ROOT,
    STAND_FOR,
    WAYS_IN,
    functions,
    public_address,
    related,
    topics,
)

PAGES = sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")])
NAMES = [page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES]
FILES = [*sorted(ROOT.glob("*.md")), *PAGES]
EVERY_FILE = pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])

LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|!?\[[^\]]*\](?:\([^)]*\))?)+\]\(([^)\s]+)\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@lru_cache
def prose(file: Path) -> str:
    """The Markdown of a page or a notebook without its examples of code."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@lru_cache
def anchors(file: Path) -> set[str]:
    """The anchors of a file's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    for heading in HEADING.findall(prose(file)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {slug + (f"-{i}" if i else "") for slug, count in found.items() for i in range(count + 1)}


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "code", text)


def links(file: Path) -> list[str]:
    """The links of a file to others of the repository."""
    found = [target or named for target, named in LINK.findall(without_code(prose(file)))]
    return [unquote(link) for link in found if not re.match(r"[a-z]+:", link)]


def broken(file: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (file.parent / path).resolve() if path else file
    return not target.exists() or (bool(anchor) and anchor not in anchors(target))


@EVERY_FILE
def test_links_lead_somewhere(file):
    assert [link for link in links(file) if broken(file, link)] == []


@EVERY_FILE
def test_pictures_exist_and_say_what_they_show(file):
    pictures = PICTURE.findall(prose(file))
    assert [uri for _, uri in pictures if not re.match("https?:", uri) and not (file.parent / uri).is_file()] == []
    assert [uri for alt, uri in pictures if len(alt) < 10] == []


def test_links_are_found_and_broken_ones_are_noticed():
    found = links(ROOT / "README.md")
    assert "LICENSE" in found
    assert not broken(ROOT / "README.md", "docs/architecture.md#the-rooms")
    assert broken(ROOT / "README.md", "docs/architecture.md#no-such-heading")
    assert broken(ROOT / "README.md", "docs/no-such-page.md")


def test_every_page_is_below_a_way_in():
    patterns = [*WAYS_IN, *(pattern for below in BELOW.values() for pattern in below)]
    assert [name for name in NAMES if name != "index" and not any(fnmatch.fnmatch(name, p) for p in patterns)] == []


@pytest.mark.parametrize("pattern", [*WAYS_IN, *BELOW, *(pattern for below in BELOW.values() for pattern in below)])
def test_every_entry_of_the_navigation_is_a_page(pattern):
    assert fnmatch.filter(NAMES, pattern)


def target(file: Path, link: str) -> Path:
    return (file.parent / link.partition("#")[0]).resolve()


#: Pages with a table of what to read, by the heading of its second column.
GUIDING = [
    (DOCS / "index.md", "| you want to | read |"), (DOCS / "start.md", "| you want to | read |"),
    (ROOT / "README.md", "| page | for |"), (DOCS / "learn.md", "| page | op |"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "head"), GUIDING, ids=[file.name for file, _ in GUIDING])
def test_links_of_guiding_tables_are_titles(file, head):
    table, _, _ = file.read_text(encoding="utf-8").partition(head)[2].partition("\n\n")
    named = re.findall(r"\[(.+?)\]\((.+?)\)", table)
    found = [HEADING.search(prose(target(file, link)))[1] for _, link in named]
    assert len(found) > 3 and found == [text for text, _ in named]


@pytest.mark.parametrize("file", PAGES, ids=NAMES)
def test_a_page_has_one_title(file):
    included = re.fullmatch(r"```\{include\} (\S+)\n```\n", file.read_text(encoding="utf-8"))
    text = prose(target(file, included[1]) if included else file)
    assert text.startswith("# ") and len(re.findall("^# ", text, re.MULTILINE)) == 1


def test_docstrings_name_pages_that_exist():
    docstrings = [pkgutil.resolve_name(f"gpuops.{name}").__doc__ for name in functions()]
    named = {name for text in docstrings for name in re.findall(r"\bdocs/[\w/-]+\.md\b", text)}
    assert len(named) > 5 and [name for name in named if not (ROOT / name).is_file()] == []


def test_the_home_page_names_the_version():
    assert f"This is version {gpuops.__version__};" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_the_home_page_has_a_tab_for_each_way_to_install():
    (made,) = (tabs.tabs(each) for each in tabs.PARTS.finditer((DOCS / "index.md").read_text(encoding="utf-8")))
    assert re.findall(r"\{tab-item\} (.+)\n```sh\npip install '\.\[(\w+)\]'\n```\n````\n", made) == [
        ("CUDA 13", "cuda13"), ("CUDA 12", "cuda12"), ("CPU", "cpu")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://name:secret@example.org/us/gpuops.git\n", "https://example.org/us/gpuops"),
        ("https://example.org:8443/gpuops", "https://example.org:8443/gpuops"),
        ("git@example.org:us/gpuops.git\n", None),
        ("/a/folder\n", None),
        ("", None),
    ],
)
def test_the_public_address_is_that_of_an_https_remote(remote, address):
    assert public_address(remote) == address


def test_the_home_page_has_every_way_in():
    places = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "index.md")}
    files = {ROOT / file: page for file, page in STAND_FOR.items()}
    reached = {files.get(place) or place.relative_to(DOCS).with_suffix("").as_posix() for place in places}
    assert [page for page in WAYS_IN if page not in reached] == []


def test_the_api_index_has_every_function_once():
    found = topics((DOCS / "api" / "index.md").read_text(encoding="utf-8"))
    assert sorted(name for names in found.values() for name in names) == sorted(functions())


# ------------------------------------------------------------------------------------- documentation of other libraries

LIBRARIES = [name for name in inventories.LIBRARIES if name != "python"]
INSTALLED = [name for name in LIBRARIES if importlib.util.find_spec(name)]


@pytest.mark.parametrize(
    "library", [pytest.param(name, marks=[pytest.mark.torch] * (name == "torch")) for name in INSTALLED]
)
def test_names_with_pages_in_other_documentations_exist(library):
    for name in inventories.entries(library):
        pkgutil.resolve_name(name)


def test_names_of_the_same_function_lead_to_its_page():
    assert inventories.entries("numpy")["numpy.sum"] == "reference/generated/numpy.sum.html"
    assert inventories.entries("numpy")["numpy.maximum.accumulate"] == "reference/generated/numpy.ufunc.accumulate.html"
    assert inventories.entries("cupy")["cupyx.scipy.special.softmax"].endswith("/cupyx.scipy.special.softmax.html")
    assert "numpy.int8" not in inventories.entries("numpy")


@pytest.mark.parametrize("library", inventories.LIBRARIES)
def test_inventories_have_the_format_of_sphinx(library):
    head, rest = inventories.inventory(library).split(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2\n# Project: ")
    lines = zlib.decompress(rest).decode().splitlines()
    assert all(re.fullmatch(r"\S+ (?:py:function|std:term) -?1 \S+ -", line) for line in lines)
    assert [line.split()[0] for line in lines if "py:" in line] == [*inventories.entries(library)]


def test_every_function_has_others_to_see():
    public = set(functions())
    assert set(RELATED) == {name for name in public if "." not in name}
    for name in public:
        assert related(name) and name not in related(name) and public.issuperset(related(name))
