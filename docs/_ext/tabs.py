"""Parts of a page of which the site shows one at a time, in tabs; elsewhere they follow each other.

They stand between two comments, and each begins with its name in bold on a line of its own.
"""

from __future__ import annotations

import re
from typing import Any

PARTS = re.compile(r"^<!-- tabs -->\n(.+?)^<!-- end of tabs -->$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)


def tabs(match: re.Match[str]) -> str:
    """The directives for the parts of a match."""
    _, *parts = NAME.split(match[1])
    pairs = zip(parts[::2], parts[1::2], strict=True)
    items = "".join(f"````{{tab-item}} {name}\n{text.strip()}\n````\n" for name, text in pairs)
    return f"`````{{tab-set}}\n{items}`````"


def make_tabs(app: Any, docname: str, source: list[str]) -> None:
    """Replace the parts of a page."""
    source[0] = PARTS.sub(tabs, source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", make_tabs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
