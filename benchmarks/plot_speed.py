"""Pictures of speeds: of a family, of what users meet first, by strategy, and at a glance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from . import plot_claims
from .plot_claims import limit_lines, limit_speed
from .plot_style import DETAILS, figure, headed, legend, library, percent, plain, wrapped
from .plot_theme import COLOURS, FAINT, INK, PAPER
from .report_standing import done, of_best_peer
from .results import Document, peers, rivals, timed
from .show import cell, machine_name

Case = dict[str, Any]

ACROSS = 3  # panels side by side
BROAD = 9.4  # inches of a picture that fills a page
NARROW = 4.8  # inches of a picture whose text can be read on a phone, too
#: How libraries are drawn beside gpuops: those that most people have, and the fastest of all others.
RIVALS = {"cupy": "CuPy", "torch": "PyTorch"}
FASTEST = "fastest other"


def strategies(cases: Iterable[Case]) -> list[str]:
    """The names of the strategies that have a time somewhere, in the order of the file."""
    return list(dict.fromkeys(name for case in cases for name in timed(case) if name.startswith("gpuops ")))


def written(strategy: str) -> str:
    """A strategy's name in pictures."""
    return strategy.removeprefix("gpuops ").replace(" host", ", finish on host")


def subtitle(document: Document) -> str:
    return f"{machine_name(document)}, data in memory, none of it in the cache"


def draw_family(family: str, documents: list[Document]) -> Any:
    """A line per op, a dot per case: speeds over the reference, and over the fastest other library."""
    made, (left, right) = figure(1, 2, NARROW, 0.5 + 0.2 * len(documents), sharey=True)
    every = [case for document in documents for case in done(document["cases"])]
    for y, document in enumerate(documents):
        cases = done(document["cases"])
        draw_dots(left, y, [timed(case)["gpuops"]["of_limit"] for case in cases])
        draw_dots(right, y, [gain for case in cases if (gain := of_best_peer(case)) is not None])
    for axis, title in ((left, f"over {limit_speed(every)}"), (right, "over the fastest other library")):
        axis.axvline(1, color=INK, lw=1, ls="--", zorder=1)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(plain)
        axis.set_title(title, fontsize=8)
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
    left.set_yticks(range(len(documents)), [document["op"] for document in documents], fontsize=8)
    left.set_ylim(len(documents) - 0.5, -0.5)
    details = f"Speed of gpuops, a dot for each case, the median in bold. {subtitle(documents[0])}"
    return headed(made, plot_claims.speedups(family, every), details)


def draw_dots(axis: Any, y: int, values: list[float]) -> None:
    """A dot for each value, orange where gpuops is slower, and their median."""
    for value in values:
        axis.plot(value, y, "o", ms=3.5, mew=0, alpha=0.45, color=COLOURS["cupy" if value >= 1 else "gpuops"], zorder=2)
    if values:
        axis.plot(statistics.median(values), y, "|", ms=11, mew=2.2, color=INK, zorder=3)


def draw_front(document: Document, cases: list[tuple[str, Case]]) -> Any:
    """A line per case: the share of the reference that gpuops, CuPy, PyTorch and the fastest other library reach."""
    made, (axis,) = figure(1, 1, NARROW, 0.6 + 0.3 * len(cases))
    for y, (_, case) in enumerate(cases):
        shares = {name: result["of_limit"] for name, result in timed(case).items()}
        best = max((shares[name] for name in rivals(case)), default=None)
        axis.barh(y, shares["gpuops"], height=0.5, color=COLOURS["gpuops"], label="gpuops", zorder=2)
        if best is not None:
            axis.plot(best, y, "D", ms=5, color=COLOURS["jax"], mec=PAPER, label=FASTEST, zorder=3)
        for name, label in RIVALS.items():
            if name in shares:
                axis.plot(shares[name], y, **{**library(name), "ls": "", "ms": 6}, mec=PAPER, label=label, zorder=4)
    axis.axvline(1, color=INK, lw=1, ls="--", zorder=1)
    axis.set_xlim(left=0)
    axis.xaxis.set_major_formatter(lambda share, _: percent(share) if share else "0")
    axis.set_yticks(range(len(cases)), [f"{op}\n{case['case']}" for op, case in cases], fontsize=7)
    axis.set_ylim(len(cases) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    legend(made, [axis])
    details = f"Share of {limit_speed(case for _, case in cases)} (dashed). {subtitle(document)}"
    return headed(made, plot_claims.front([case for _, case in cases]), details)


def draw_ladder(document: Document, cases: list[Case]) -> Any:
    """The speed of each strategy, a panel per case."""
    names = [*strategies(cases), "gpuops"]
    columns = min(ACROSS, math.ceil(math.sqrt(len(cases))))
    rows = math.ceil(len(cases) / columns)
    width = BROAD if columns == ACROSS else 1.6 + 3 * columns
    titles = [wrapped(case["case"], (width - 1.5) / columns - 0.5, DETAILS) for case in cases]
    height = 0.6 + 0.2 * len(names) + 0.15 * max(title.count("\n") + 1 for title in titles)
    made, axes = figure(rows, columns, width, rows * height, sharey=True)
    for axis in axes[len(cases) :]:
        axis.set_axis_off()
    for axis, case, title in zip(axes, cases, titles, strict=False):
        draw_rung_bars(axis, case, names)
        axis.set_xlabel(document["unit"])
        axis.set_title(title)
    axes[0].set_yticks(range(len(names)), [*map(written, names[:-1]), "auto"])
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    legend(made, axes)
    details = f"{subtitle(document)}. auto: the strategy that gpuops chooses"
    return headed(made, plot_claims.ladder(document["op"], cases, names[:-1]), details)


def draw_rung_bars(axis: Any, case: Case, names: list[str]) -> None:
    """A bar per strategy of a case, whose number stands to the right of all lines."""
    found = timed(case)
    for y, name in enumerate(names):
        if name in found:
            axis.barh(y, found[name]["speed"], height=0.7, color=COLOURS["gpuops" if name == "gpuops" else "triton"])
        colour = INK if name in found else FAINT
        place = {"xycoords": axis.get_yaxis_transform(), "va": "center_baseline", "fontsize": 8}
        axis.annotate(cell(case, name), (1.02, y), color=colour, **place)
    axis.axvline(case["limit"]["speed"], color=INK, lw=1, ls="--", label=limit_lines([case]))
    if rivals(case):
        best = max(result["speed"] for result in rivals(case).values())
        axis.axvline(best, color=FAINT, lw=1.5, ls=":", label="the best other library in each case")
    axis.set_xlim(0, 1.02 * max(case["limit"]["speed"], *(result["speed"] for result in found.values())))
    axis.xaxis.set_major_locator(nice(3))
    axis.tick_params(axis="y", labelsize=8)
    axis.grid(axis="y", visible=False)


def nice(count: int) -> Any:
    """At most so many steps between the ticks of an axis."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count)


def met(cases: list[Case]) -> tuple[list[str], list[Case]]:
    """gpuops and its peers, and the picks that all of these completed; without whoever completes too little for any."""
    picks = [case for case in cases if case["pick"] and "gpuops" in timed(case)]
    others = peers(picks)
    while not (shared := [case for case in picks if all(name in timed(case) for name in others)]):
        others.remove(min(others, key=lambda name: sum(name in timed(case) for case in picks)))
    return ["gpuops", *others], shared


def draw_glance(document: Document, names: list[str], cases: list[Case]) -> Any:
    """A bar per library: the median share of the reference over some cases."""
    shares = {
        name: statistics.median(timed(case)[name]["speed"] / case["limit"]["speed"] for case in cases) for name in names
    }
    made, (axis,) = figure(1, 1, NARROW, 0.12 + 0.15 * len(names))
    for y, (name, share) in enumerate(shares.items()):
        axis.barh(y, share, height=0.7, color=COLOURS[name] if name == "gpuops" else FAINT)
        place = {"xycoords": axis.get_yaxis_transform(), "va": "center_baseline", "fontsize": 8}
        axis.annotate(percent(share), (1.01, y), fontweight="bold" if name == "gpuops" else "normal", **place)
    axis.axvline(1, color=INK, lw=1, ls="--")
    axis.set_xlim(0, 1.02 * max(1, *shares.values()))
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xticks([])
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    speed = limit_speed(cases)
    count = f"{len(cases)} cases" if len(cases) > 1 else "one case"
    details = f"Share of {speed} (dashed), median of {count}. {machine_name(document)}"
    return headed(made, plot_claims.glance(document["op"], shares, speed), details)
