"""Writes docs/names.md from the table in gpuops/tools/names.py:

    python -m docs._ext.names_page
"""

from __future__ import annotations

from collections.abc import Iterable

import gpuops
from docs._ext.site_map import DOCS
from gpuops.tools.names import LIBRARIES, Row, topics

PATH = DOCS / "names.md"
INTRODUCTION = """\
# What gpuops has, and has not

This page is written by `python -m docs._ext.names_page` from the table that error messages use too.

gpuops has reductions, scans, broadcasting, the softmax family and products, and
[lazy expressions](guide.md#lazy-expressions), which NumPy's elementwise functions extend. All other functions
stay those of your array library. They work on the results of gpuops, which are
[arrays of the same library](interop.md). If you ask gpuops for a function that it does not have, the error says what to
use:

```python
>>> import gpuops
>>> gpuops.median
Traceback (most recent call last):
    ...
AttributeError: module 'gpuops' has no attribute 'median'; use numpy.median, cupy.median or torch.median
>>> gpuops.norm
Traceback (most recent call last):
    ...
AttributeError: module 'gpuops' has no attribute 'norm'; use gpuops.vector_norm

```

A dash means that there is no such function. Functions of one line do the same kind of work. How their parameters and
results differ is in the [Migration guide](coming-from.md).
"""


def page() -> str:
    """The text of the page."""
    return "\n".join([INTRODUCTION, *(f"## {topic}\n\n{table(rows)}" for topic, rows in topics().items())])


def table(rows: Iterable[Row]) -> str:
    """The table of a topic."""
    lines = [("gpuops", *LIBRARIES.values()), ("---",) * (1 + len(LIBRARIES)), *map(cells, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row."""
    ours = [f"gpuops.{row.name}"] if row.name in gpuops.__all__ else []
    return tuple(", ".join(f"`{name}`" for name in names) or "–" for names in (ours, *row.theirs))


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
