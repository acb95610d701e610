"""The documentation site, without building it: its tables, and the links and pictures of all pages."""

from __future__ import annotations

import fnmatch
import json
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from docs._ext.site_map import BELOW, DOCS, RELATED, ROOT, STAND_FOR, WAYS_IN, functions, related, topics

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


def test_the_home_page_has_every_way_in():
    places = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "index.md")}
    files = {ROOT / file: page for file, page in STAND_FOR.items()}
    reached = {files.get(place) or place.relative_to(DOCS).with_suffix("").as_posix() for place in places}
    assert [page for page in WAYS_IN if page not in reached] == []


def test_the_api_index_has_every_function_once():
    found = topics((DOCS / "api" / "index.md").read_text(encoding="utf-8"))
    assert sorted(name for names in found.values() for name in names) == sorted(functions())


def test_every_function_has_others_to_see():
    public = set(functions())
    assert set(RELATED) == {name for name in public if "." not in name}
    for name in public:
        assert related(name) and name not in related(name) and public.issuperset(related(name))
