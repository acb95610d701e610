"""Colours of pictures on light pages, and how an SVG changes on dark ones."""

from __future__ import annotations

import re

#: Neutral colours, as on light pages.
PAPER, INK, FADED, FAINT, EDGE, GRID = "#ffffff", "#333333", "#555555", "#6b6b6b", "#b0b0b0", "#e6e6e6"

#: A colour per library, after Okabe and Ito's colour-blind safe palette.
COLOURS = {
    "gpuops": "#d55e00",
    "cupy": "#0072b2",
    "cupy.fuse": "#332288",
    "torch": "#e69f00",
    "torch.compile": "#b8860b",
    "triton": "#009e73",
    "quack": "#aa4499",
    "jax": "#56b4e9",
    "cub": "#555555",
    "numpy": "#0072b2",
    "scipy": "#009e73",
    "numba": "#882255",
}

#: Colours of many names beside each other, after Okabe and Ito, Tol, and Brewer.
HUES = (
    "#d55e00", "#0072b2", "#009e73", "#aa4499", "#b8860b", "#56b4e9", "#332288",
    "#999933", "#882255", "#cc6677", "#117733", "#661100", "#6b6b6b", "#44aa99", "#e7298a", "#66a61e",
)  # fmt: skip


#: What colours become on dark pages; those that are not here stay.
DARK = {
    PAPER: "#161b22",
    INK: "#e6edf3",
    FADED: "#aab2bd",
    FAINT: "#9aa4af",
    EDGE: "#59626d",
    GRID: "#30363d",
    "#0072b2": "#2f8fd0",
    "#aa4499": "#cf6abf",
    "#332288": "#8f82dd",
    "#882255": "#c55b8f",
    "#117733": "#4fb06f",
    "#661100": "#c26a4f",
}

#: What an SVG has for readers who prefer dark pages: rules, each with braces of its own.
ON_DARK = re.compile(r"@media \(prefers-color-scheme: dark\)\s*\{((?:[^{}]*\{[^{}]*\})*)\s*\}")


def adaptive(svg: str) -> str:
    """An SVG of Matplotlib's that is dark where the reader prefers dark pages."""
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark}!important}}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
        if f"{kind}: {light}" in svg
    )
    return svg.replace("</style>", f"@media (prefers-color-scheme: dark){{{rules}}}</style>", 1)


def themed(svg: str, dark: bool) -> str:
    """An SVG, drawn by Matplotlib or by hand, that is dark or light, whatever the reader prefers."""
    return ON_DARK.sub(r"\1" if dark else "", svg)
