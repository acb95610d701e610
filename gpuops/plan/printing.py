"""Tables for terminals and for notebooks."""

from collections.abc import Iterable, Sequence

Row = Sequence[str]


def as_text(rows: Sequence[Row]) -> str:
    """Rows as lines, in aligned columns.

    >>> print(as_text([("numpy", "2.4"), ("cpu", "x86_64")]))
    numpy  2.4
    cpu    x86_64
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def as_item(header: Row, row: Row) -> str:
    """A row on several lines: number, name and the titled cells between, then the last cell.

    >>> print(as_item(("step", "kernel", "grid", "block", "compiled with"), ("1", "copy", "(8, 1, 1)", "256", "V=4")))
    1  copy  grid (8, 1, 1)  block 256
       V=4
    """
    from textwrap import fill  # costs time at import

    number, name, *cells, last = row
    facts = [f"{title} {cell}" for title, cell in zip(header[2:-1], cells, strict=True) if cell]
    below = fill(last, 116, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)
    return "\n".join(["  ".join([number, name, *facts]), below])


def as_html(caption: str, header: Row, rows: Iterable[Row]) -> str:
    """Rows as an HTML table; texts are escaped.

    >>> as_html("kernels", ["name"], [["Sum<float>"]])
    '<table><caption>kernels</caption><tr><th>name</th></tr><tr><td>Sum&lt;float&gt;</td></tr></table>'
    """
    from html import escape  # costs time at import

    lines = [("th", header), *(("td", row) for row in rows)]
    body = "".join(f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>" for tag, row in lines if row)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"
