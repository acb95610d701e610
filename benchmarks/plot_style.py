"""What all pictures share: figures with a heading, legends, the style, and the SVG that is written."""

from __future__ import annotations

import html
import io
import itertools
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from .plot_theme import COLOURS, EDGE, FADED, FAINT, GRID, HUES, INK, PAPER, adaptive

FONTS = ["DejaVu Sans", "Verdana"]  # as wide as each other; then any without serifs
STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": EDGE,
    "axes.facecolor": PAPER,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "figure.facecolor": PAPER,
    "font.family": "sans-serif",
    "font.sans-serif": FONTS,
    "font.size": 9,
    "grid.color": GRID,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gpuops",  # the same file each time
    "text.color": INK,
    "xtick.color": EDGE,
    "xtick.labelcolor": INK,
    "ytick.color": EDGE,
    "ytick.labelcolor": INK,
}
HEADING, DETAILS = 12, 9  # points
MARGIN = 0.12  # inches around all
HANDLE = 0.55  # inches of a legend's sample and the space around a label
SLACK = 0.96  # of a width that text may fill: fonts differ
LINE = 1.35 / 72  # inches of a line of text, per point
MARKERS = dict(zip(COLOURS, "osD^vPX*ds<>", strict=True))
SIGNS = "osD^vPX*dp<>h"  # markers of many names
HOLLOW: dict[str, Any] = {"markersize": 5, "markerfacecolor": "none"}


def extent(text: str, size: float, bold: bool = False) -> float:
    """How many inches wide a line of text is."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


def wrapped(text: str, width: float, size: float, bold: bool = False) -> str:
    """Text broken between words into lines that are at most so many inches wide."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and extent(longer, size, bold) <= SLACK * width:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def headed(made: Any, heading: str, details: str) -> Any:
    """A figure with a heading and, in smaller type, the details above what it has: it grows by as much."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    width, height = made.get_size_inches()
    top = MARGIN / 2
    first = wrapped(heading, width - 2 * MARGIN, HEADING, bold=True)
    then = wrapped(details, width - 2 * MARGIN, DETAILS)
    below = top + LINE * HEADING * (first.count("\n") + 1)
    top = below + LINE * DETAILS * (then.count("\n") + 1)
    made.set_size_inches(width, height := height + top)
    place = {"x": MARGIN / width, "va": "top", "linespacing": 1.2}
    made.text(y=1 - MARGIN / 2 / height, s=first, fontsize=HEADING, fontweight="bold", **place)
    made.text(y=1 - below / height, s=then, fontsize=DETAILS, color=FADED, **place)
    rect = (0, 0, 1, 1 - top / height)
    made.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, rect=rect))
    return made


def figure(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, list[Any]]:
    """An empty figure, so many inches large, and its panels."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    return made, list(made.subplots(rows, columns, squeeze=False, **options).flat)


def legend(made: Any, panels: list[Any]) -> None:
    """One legend for all panels, below them, with as many columns as fit."""
    handles: dict[str, Any] = {}
    for panel in panels:
        found, labels = panel.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    widest = max(extent(label, DETAILS) for label in handles) + HANDLE
    columns = max(1, int((made.get_figwidth() - 2 * MARGIN) / widest))
    rows = math.ceil(len(handles) / columns)
    made.set_figheight(made.get_figheight() + rows * DETAILS * LINE)
    made.legend(handles.values(), handles, loc="outside lower left", ncols=columns, columnspacing=1.5)


def library(name: str) -> dict[str, Any]:
    """The colour and marker of a library."""
    return {"color": COLOURS.get(name, FAINT), "marker": MARKERS.get(name, "o")}


def looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each of many names."""
    colours, markers = itertools.cycle(HUES), itertools.cycle(SIGNS)
    return {name: {"color": next(colours), "marker": next(markers)} for name in names}


def plain(value: float, _: Any = None) -> str:
    """A number on an axis."""
    return f"{value:g}"


def percent(share: float) -> str:
    """A share in percent, with a decimal where it would be 0 otherwise."""
    return f"{100 * share:.{0 if share >= 0.0095 else 1}f}\u00a0%"


def svg(draw: Callable[[], Any], caption: str) -> str:
    """A picture as SVG, the same each time, small, with text as text, for light and dark pages."""
    import matplotlib as mpl

    written = io.StringIO()
    with mpl.rc_context(STYLE):
        draw().savefig(written, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return adaptive(compact(written.getvalue(), caption))


def compact(text: str, caption: str) -> str:
    """Matplotlib's SVG without what it repeats: the fonts stand at the root, and text that is level is not rotated."""
    fonts = ", ".join([*map(repr, FONTS), "sans-serif"])
    text = text.replace(f"font-family: {fonts}; ", "")
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    text = re.sub(r"<!DOCTYPE[^>]*>\s*", "", text)
    text = re.sub(r"\n\s*", "\n", text)
    root = f'<svg role="img" aria-label="{html.escape(caption)}" font-family="{fonts}"'
    return text.replace("<svg", root, 1)
