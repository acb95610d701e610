"""Long tables of measurements, which a page of the site shows on demand."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

PAGES = ("performance/host", "performance/on-cpu", "kernels/thresholds")
LONG = 24  # rows


class Folds(SphinxTransform):
    """Puts the long tables of these pages into parts that open."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        for table in [*self.document.findall(nodes.table)] if self.env.docname.startswith(PAGES) else ():
            rows = sum(len(body) for body in table.findall(nodes.tbody))
            if rows > LONG:
                begin = f'<details class="fold"><summary>Table of {rows} rows</summary>'
                first, last = (nodes.raw("", html, format="html") for html in (begin, "</details>"))
                place = table.parent.index(table)
                table.parent[place : place + 1] = [first, table, last]


def setup(app: Any) -> dict[str, bool]:
    app.add_transform(Folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
