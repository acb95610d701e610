"""What search engines show of a page: its first sentences, and of the home page a title that says what gpuops is."""

from __future__ import annotations

import textwrap
from html import escape
from typing import Any

from docutils import nodes
from sphinx import addnodes

TITLE = "NumPy-style reductions, softmax and matrix products for CuPy arrays"
LENGTH = 160  # about what search engines show


def describe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Add the description of a page to its head."""
    if pagename == app.config.root_doc:
        context["docstitle"] = TITLE
    paragraphs = doctree.findall(nodes.paragraph) if doctree is not None else ()
    texts = (each.astext() for each in paragraphs if isinstance(each.parent, (nodes.section, addnodes.desc_content)))
    if first := next(texts, ""):
        text = textwrap.shorten(first, LENGTH, placeholder=" …")
        context["metatags"] = f'{context.get("metatags", "")}\n<meta name="description" content="{escape(text)}"/>'


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
