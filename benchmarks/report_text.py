"""What all pages of ``bench report`` are made of: tables, pictures, wrapped text, links."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from .results import ROOT, Document
from .show import digits, machine_name

DOCS = ROOT / "docs"
FOLDER = "performance"  # of the pages, beside performance.md
KERNELS = DOCS / "kernels"
WIDTH = 120
SHOWN = 10  # of losses, the worst first

#: What the results files call limits, in words.
REFERENCES = {
    "copy": "a plain copy of as many bytes",
    "read": "a sum of as many bytes by CUB",
    "write": "a memset of as many bytes",
    "BLAS": "cuBLAS",
}


#: The names of libraries in sentences.
NAMES = {
    "cupy": "CuPy", "torch": "PyTorch", "triton": "Triton", "quack": "QuACK", "cub": "CUB", "jax": "JAX",
    "numpy": "NumPy", "scipy": "SciPy",
}  # fmt: skip


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table: text to the left in the first column, numbers to the right."""
    header = list(header)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def glossary(word: str, meaning: str, rows: Iterable[tuple[str, str]]) -> str:
    """A Markdown table of words and what is to be said of them."""
    lines = [(word, meaning), ("---", "---"), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def picture(folder: str, name: str, caption: str) -> str:
    return f"![{caption}]({folder}{'/' if folder else ''}{name}.svg)\n"


def wrap(text: str, first: str = "", more: str = "") -> str:
    """Text in lines that fit; what lines begin with can be given."""
    made = textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )
    return made + "\n"


def bullets(texts: Iterable[str]) -> str:
    """A list; empty texts are left out."""
    return "".join(wrap(text, "- ", "  ") for text in texts if text)


def parts_of(texts: dict[str, str]) -> str:
    """Parts of a page by their names, of which the site shows one at a time, in tabs."""
    parts = (f"**{name}**\n\n{text}" for name, text in texts.items())
    return "\n".join(["<!-- tabs -->\n", *parts, "<!-- end of tabs -->\n"])


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: Iterable[str], word: str = "and") -> str:
    """Items in a sentence: a, b and c."""
    *most, last = items
    return f"{', '.join(most)} {word} {last}" if most else last


def article(name: str) -> str:
    """A machine's name in a sentence."""
    return f"an {name}" if name.startswith(("NVIDIA", "A", "E", "I")) else f"a {name}"


def on(document: Document) -> str:
    """Where a document was measured, to begin a sentence with."""
    return f"On {article(machine_name(document))}"


def milliseconds(us: float) -> str:
    return digits(us * 1e-3)


def commits(documents: Iterable[Document]) -> str:
    """The commits of results files, each once."""
    names = list(dict.fromkeys(f"`{document['commit'][:12]}`" for document in documents))
    return f"commit{'s'[: len(names) > 1]} {', '.join(names)}"
