"""Links from names in code font: to the pages of gpuops' functions, and to the documentation of other libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from site_map import functions
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

CALL = re.compile(r"gpuops\.([\w.]+)(\(.*\))?")
FUNCTIONS = frozenset(functions())

#: How code names other libraries, beside their own names.
SHORT = {"np": "numpy", "cp": "cupy", "jnp": "jax.numpy", "da": "dask.array"}
OTHER = re.compile(rf"(numpy|cupyx?|scipy|torch|jax|dask|{'|'.join(SHORT)})\.([\w.]+)(\([^()]*\))?")
#: The libraries by the headings of the columns of docs/names.md.
COLUMNS = {"NumPy": "numpy", "CuPy": "cupy", "PyTorch": "torch"}


class CodeLinks(SphinxTransform):
    """Links `gpuops.sum`, `numpy.sum`, `np.sum(a, axis)` and their like; what has no page stays as it is."""

    default_priority = 501

    def apply(self, **kwargs: Any) -> None:
        for node in [*self.document.findall(nodes.literal)]:
            if free(node) and not self.link_to_function(node):
                self.link_to_other(node, node.astext())
        if self.env.docname == "names":
            for library, node in in_columns(self.document):
                self.link_to_other(node, f"{library}.{node.astext()}")

    def link_to_function(self, node: nodes.Element) -> bool:
        """Link a function of gpuops, in the API's index its name alone, but not on its own page; whether it is one."""
        prefix = "gpuops." if self.env.docname == "api/index" else ""
        found = CALL.fullmatch(prefix + node.astext())
        if not found or found[1] not in FUNCTIONS or self.env.docname.endswith(f"/gpuops.{found[1]}"):
            return False
        self.link(node, "func", f"gpuops.{found[1]}")
        return True

    def link_to_other(self, node: nodes.Element, name: str) -> None:
        """Link a name of another library; intersphinx knows which have pages."""
        if found := OTHER.fullmatch(name):
            self.link(node, "obj", f"{SHORT.get(found[1], found[1])}.{found[2]}")

    def link(self, node: nodes.Element, role: str, target: str) -> None:
        options = {"refdomain": "py", "reftype": role, "reftarget": target, "refexplicit": True}
        link = addnodes.pending_xref("", refdoc=self.env.docname, **options)
        node.replace_self(link)
        link += node


def free(node: nodes.Element) -> bool:
    """Whether a link can stand here: not in another, and not in a title."""
    inside = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.download_reference)
    parent = node.parent
    while parent is not None and not isinstance(parent, inside):
        parent = parent.parent
    return parent is None


def in_columns(document: nodes.document) -> Iterator[tuple[str, nodes.Element]]:
    """The library and the node of each name in a column that a library heads."""
    for table in document.findall(nodes.table):
        head, *rows = table.findall(nodes.row)
        for column, heading in enumerate(head):
            for row in rows if heading.astext() in COLUMNS else ():
                for node in [*row[column].findall(nodes.literal)]:
                    if free(node):
                        yield COLUMNS[heading.astext()], node


def setup(app: Any) -> dict[str, bool]:
    app.add_transform(CodeLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
