"""Links as viewers of the repository follow them, on the site: to pages and to files of source code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import site_map
from docutils import nodes
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from site_map import DOCS, ROOT, STAND_FOR, place, toctrees
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

PICTURES = (".svg", ".png")


def add_toctrees(app: Any, docname: str, source: list[str]) -> None:
    """Append the toctrees of a page, which viewers of the repository need not see."""
    source[0] += "".join(toctrees(docname))
    app.env.note_dependency(site_map.__file__)


class Links(SphinxTransform):
    """Gives each relative link its place on the site; what leads nowhere is left for MyST to report."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        for kind in (addnodes.download_reference, addnodes.pending_xref):
            for node in [*self.document.findall(kind)]:
                if node.get("reftype") == "myst" and (path := self.path(node)):
                    self.redirect(node, path, self.anchor(node))
                elif node.get("refdomain") == "doc":
                    self.name(node)

    def path(self, node: nodes.Element) -> Path | None:
        """The file that a link names; None if it is a page of docs/, or one place of this page."""
        target = node["reftarget"].partition("#")[0]
        if node.get("refdomain") == "doc":
            return None if target in self.env.found_docs else DOCS / f"{target}.md"
        return place(self.env.docname, target) if target else None

    def anchor(self, node: nodes.Element) -> str | None:
        return node.get("reftargetid") or node["reftarget"].partition("#")[2] or None

    def redirect(self, node: nodes.Element, path: Path, anchor: str | None) -> None:
        """Replace a link by one to a page, to a picture, or to a page of source code; folders have none."""
        name = os.path.relpath(path, ROOT)
        page = STAND_FOR.get(name) or self.page(path)
        if page:
            target = {"refdomain": "doc", "reftarget": page, "reftargetid": None if page == "index" else anchor}
            options = {"refdoc": self.env.docname, "reftype": "myst", "refexplicit": node["refexplicit"]}
            link = addnodes.pending_xref("", *node.children, **target, **options)
            node.replace_self(link)
            self.name(link)
        elif path.is_dir():
            node.replace_self(node.children)
        elif path.suffix in PICTURES:
            node["reftarget"] = "/" + os.path.relpath(path, DOCS)
        elif path.is_file():
            self.env.metadata[self.env.docname].setdefault("sources", []).append(name)
            uri = self.env.app.builder.get_relative_uri(self.env.docname, f"source/{name}")
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))

    def name(self, node: nodes.Element) -> None:
        """Let the title of a page stand for the name of its file."""
        if node.astext().endswith(".md"):
            node["refexplicit"] = False
            node.clear()

    def page(self, path: Path) -> str | None:
        """The page that a file or a folder of docs/ makes."""
        name = os.path.relpath(path, DOCS)
        pages = (os.path.splitext(name)[0], f"{name}/index")
        return next((page for page in pages if page in self.env.found_docs), None)


class Downloads(SphinxTransform):
    """Offers the notebook of a page below its first paragraph."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix == ".ipynb":
            words = nodes.inline("", "Download this notebook")
            link = addnodes.download_reference("", "", words, refdoc=self.env.docname, reftarget=path.name)
            title = next(self.document.findall(nodes.title))
            title.parent.insert(2, nodes.paragraph("", "", link))


class Doctests(SphinxTransform):
    """Takes away the empty line that ends an example for doctest."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        for node in self.document.findall(nodes.literal_block):
            if node.rawsource == node.astext():
                node.rawsource = node.rawsource.rstrip("\n")
                node[:] = [nodes.Text(node.rawsource)]


def source_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file of source code that a page links."""
    linked = {name for data in app.env.metadata.values() for name in data.get("sources", ())}
    for name in sorted(linked):
        text = (ROOT / name).read_text(encoding="utf-8")
        code = app.builder.highlighter.highlight_block(text, language(name), linespans="L")
        body = f'<h1>{Path(name).name}</h1><p><code>{name}</code></p><div class="source">{code}</div>'
        yield f"source/{name}", {"title": name, "body": body}, "page.html"


def language(name: str) -> str:
    try:
        return get_lexer_for_filename(name).aliases[0]
    except (ClassNotFound, IndexError):
        return "text"


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", add_toctrees)
    app.connect("html-collect-pages", source_pages)
    for transform in (Links, Downloads, Doctests):
        app.add_transform(transform)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
