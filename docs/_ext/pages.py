"""Links as viewers of the repository follow them, on the site: to pages, to files of source code, to functions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import site_map
from docutils import nodes
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from site_map import DOCS, ROOT, STAND_FOR, functions, place, toctrees
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

PICTURES = (".svg", ".png")
CALL = re.compile(r"gpuops\.([\w.]+)(\(.*\))?")
FUNCTIONS = frozenset(functions())


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
            node.replace_self(addnodes.pending_xref("", *node.children, **target, **options))
        elif path.is_dir():
            node.replace_self(node.children)
        elif path.suffix in PICTURES:
            node["reftarget"] = "/" + os.path.relpath(path, DOCS)
        elif path.is_file():
            self.env.metadata[self.env.docname].setdefault("sources", []).append(name)
            uri = self.env.app.builder.get_relative_uri(self.env.docname, f"source/{name}")
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))

    def page(self, path: Path) -> str | None:
        """The page that a file or a folder of docs/ makes."""
        name = os.path.relpath(path, DOCS)
        pages = (os.path.splitext(name)[0], f"{name}/index")
        return next((page for page in pages if page in self.env.found_docs), None)


class Functions(SphinxTransform):
    """Links `gpuops.sum` and `gpuops.sum(x)` to the function's page, and in the API's index `sum` alone."""

    default_priority = 501

    def apply(self, **kwargs: Any) -> None:
        prefix = "gpuops." if self.env.docname == "api/index" else ""
        for node in [*self.document.findall(nodes.literal)]:
            found = CALL.fullmatch(prefix + node.astext())
            if found and found[1] in FUNCTIONS and self.links(node, found[1]):
                target = {"refdomain": "py", "reftype": "func", "reftarget": f"gpuops.{found[1]}"}
                link = addnodes.pending_xref("", refdoc=self.env.docname, refexplicit=True, **target)
                node.replace_self(link)
                link += node

    def links(self, node: nodes.Element, name: str) -> bool:
        """Whether a link can stand here: not in another, not in a title, not on the function's own page."""
        inside = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.download_reference)
        parent = node.parent
        while parent is not None and not isinstance(parent, inside):
            parent = parent.parent
        return parent is None and not self.env.docname.endswith(f"/gpuops.{name}")


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
        code = app.builder.highlighter.highlight_block(text, language(name))
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
    for transform in (Links, Functions, Doctests):
        app.add_transform(transform)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
