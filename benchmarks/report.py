"""``bench report``: docs/performance.md and the pages below it, and tables in the guides, from results files alone."""

from __future__ import annotations

from pathlib import Path

from . import on_cpu
from .plot import slug
from .report_families import by_family, family_page
from .report_guides import GUIDES
from .report_method import method_page
from .report_more import first_calls_page, host_page, on_cpu_page
from .report_summary import first_page
from .report_text import DOCS, FOLDER
from .results import Document, prepare, published, write

BEGIN, END = "<!-- bench report writes this table -->\n\n", "\n<!-- to here -->\n"


def pages(results: dict[str, list[Document]], cpus: dict[str, Document] | None = None) -> dict[str, str]:
    """All pages by name, from the documents of each machine's folder, and those of NumPy arrays on processors."""
    here = {folder: kept for folder, every in results.items() if (kept := without_scaling(every))}
    return {
        f"{FOLDER}.md": first_page(here, cpus or {}),
        **{f"{FOLDER}/{slug(name)}.md": family_page(name, found) for name, found in by_family(here).items()},
        f"{FOLDER}/host.md": host_page(here),
        f"{FOLDER}/first-calls.md": first_calls_page(here),
        f"{FOLDER}/on-cpu.md": on_cpu_page(cpus or {}),
        f"{FOLDER}/method.md": method_page(here),
    }


def without_scaling(documents: list[Document]) -> list[Document]:
    """The documents but for that of several GPUs, which has a page of its own."""
    return [document for document in documents if document["mode"] != "scaling"]


def guide(op: str, text: str, results: dict[str, list[Document]]) -> str:
    """A guide with its table written from the results."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the guide to {op} lacks a line of two: {BEGIN.strip()!r}, {END.strip()!r}")
    _, written = GUIDES[op]
    tables = [written(folder, documents) for folder, documents in results.items() if documents]
    return before + begin + ("\n".join(filter(None, tables)) or "Not measured yet.\n") + end + after


def main(arguments: list[str]) -> int:
    """Write the pages and, if they are the published ones, the tables of the guides."""
    description = "Write the performance pages from the results files."
    found, output = published("report", description, DOCS, arguments)
    texts = {output / name: text for name, text in pages(found, on_cpu.found()).items()}
    if output == DOCS:
        texts |= {path: guide(op, path.read_text(encoding="utf-8"), found) for op, path in guides()}
    prepare(output / FOLDER)
    for path, text in texts.items():
        write(path, text)
        print(path)
    return 0


def guides() -> list[tuple[str, Path]]:
    """The guides that are there: an installed package has none."""
    return [(op, path) for op, (path, _) in GUIDES.items() if path.exists()]
