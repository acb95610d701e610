"""Pictures of speeds: against size, over other libraries, by strategy, and at a glance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any

from . import plot_claims
from .plot_claims import limit_lines, limit_speed
from .plot_style import DETAILS, extent, figure, headed, legend, library, looks, percent, plain, power, wrapped
from .plot_theme import COLOURS, FAINT, INK, PAPER, TINTS
from .results import Document, peers, rivals, timed
from .show import MISSING, cell, machine_name

Case = dict[str, Any]

FEW = 3  # fewer points than this make no line
WIDE = 64  # ratio of speeds from which on their axis is logarithmic
BARS = 28  # lines at most in a picture; beyond that, only each group's first dtype
ACROSS = 3  # panels side by side
BROAD = 9.4  # inches of a picture that fills a page


def sizes(cases: Iterable[Case], group: str) -> dict[str, list[Case]]:
    """The cases of a group by dtype, where there are enough points for lines."""
    panels: dict[str, list[Case]] = {}
    for case in cases:
        if case["group"] == group:
            panels.setdefault(case["dtype"], []).append(case)
    return {dtype: members for dtype, members in panels.items() if len(members) >= FEW}


def selected(cases: Iterable[Case]) -> list[Case]:
    """The picks that gpuops completed; only each group's first dtype if all do not fit into a picture."""
    picks = [case for case in cases if case["pick"] and "gpuops" in timed(case)]
    if len(picks) <= BARS:
        return picks
    first: dict[str, str] = {}
    return [case for case in picks if first.setdefault(case["group"], case["dtype"]) == case["dtype"]]


def strategies(cases: Iterable[Case]) -> list[str]:
    """The names of the strategies that have a time somewhere, in the order of the file."""
    return list(dict.fromkeys(name for case in cases for name in timed(case) if name.startswith("gpuops ")))


def compared(cases: Iterable[Case]) -> list[str]:
    """The strategies with lines of their own: only where there is no peer."""
    cases = list(cases)
    return [] if peers(cases) else strategies(cases)


def written(strategy: str) -> str:
    """A strategy's name in pictures."""
    return strategy.removeprefix("gpuops ").replace(" host", ", finish on host")


def subtitle(document: Document) -> str:
    return f"{machine_name(document)}, data in memory, none of it in the cache"


def spans(values: list[Any]) -> bool:
    """Whether values are so far apart that they need a logarithmic axis."""
    return max(values) >= WIDE * min(values)


def geometric(values: list[int]) -> bool:
    """Whether values grow by factors rather than by steps: whether their middle is nearer to the geometric mean."""
    ends, middle = (min(values), max(values)), statistics.median(values)
    return middle < math.sqrt(math.sqrt(ends[0] * ends[1]) * sum(ends) / 2)


def draw_sizes(document: Document, group: str, panels: dict[str, list[Case]], size: Callable[[Case], int]) -> Any:
    """Speed against size, a panel per dtype; and panels of shares of the reference where speeds span a wide range."""
    every = [case for cases in panels.values() for case in cases]
    rows, count = 2 if spans([case["limit"]["speed"] for case in every]) else 1, len(panels)
    made, axes = figure(rows, count, BROAD if count > 1 else 6.6, 0.6 + 2.5 * rows, sharex="col", sharey="row")
    along = document["groups"][group]["along"]
    for axis, (dtype, cases) in zip(axes, panels.items(), strict=False):
        draw_lines(axis, cases, size, lambda case, result: result["speed"])
        axis.set_title(dtype)
    for axis, cases in zip(axes[count:], panels.values(), strict=False):
        draw_lines(axis, cases, size, lambda case, result: 100 * result["speed"] / case["limit"]["speed"])
    for axis in axes[-count:]:
        axis.set_xlabel(along)
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel(f"{document['unit']} (higher is better)")
    if rows == 2:
        axes[0].set_yscale("log")
        axes[0].yaxis.set_major_formatter(plain)
        axes[count].set_ylabel(f"% of {limit_speed(every)}")
    legend(made, axes)
    claim = plot_claims.by_size(document["op"], every, along)
    return headed(made, claim, f"{document['groups'][group]['origin']}. {subtitle(document)}")


def draw_lines(
    axis: Any, cases: list[Case], size: Callable[[Case], int], value: Callable[[Case, dict[str, Any]], float]
) -> None:
    """A line per library, or per strategy where these are compared, and one for the reference."""
    x = [size(case) for case in cases]
    axis.plot(x, [value(case, case["limit"]) for case in cases], "--", color=INK, lw=1, label=limit_lines(cases))
    named = compared(cases)
    others = looks(["gpuops", *named])
    for name in ["gpuops", *peers(cases), *named]:
        points = [(i, value(case, timed(case)[name])) for i, case in zip(x, cases, strict=True) if name in timed(case)]
        if points:
            style = line_style(name, len(points), len(cases))
            if name in named:
                style |= {"label": written(name), "color": others[name]["color"]}
                style |= {"marker": others[name]["marker"], "markevery": 4}
            axis.plot(*zip(*points, strict=True), **style)
    if geometric(x):
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(power(2) if max(x) > 2**14 else plain)


def line_style(name: str, count: int, of: int) -> dict[str, Any]:
    """The style of a library: dots without a line where it has few of the points."""
    ours = name == "gpuops"
    dots = count < of / 2
    return {
        "label": name,
        "linewidth": 0 if dots else 2.4 if ours else 1.3,
        "markersize": 5 if dots else 3,
        "zorder": 4 if ours else 3,
        **library(name),
        **({} if dots or of <= 20 else {"marker": None}),
    }


def draw_speedups(document: Document, cases: list[Case], others: list[str]) -> Any:
    """The speed of gpuops over that of each peer: a line per case and a column per peer."""
    labels = [case["case"] for case in cases]
    width = max(7, 0.4 + max(extent(text, 8) for text in labels) + 0.85 * len(others))
    made, (axis,) = figure(1, 1, width, 0.4 + 0.2 * len(cases))
    for y, case in enumerate(cases):
        for x, rival in enumerate(others):
            draw_speedup(axis, x, y, case, rival)
    axis.set_xlim(-0.5, len(others) - 0.5)
    axis.set_ylim(len(cases) - 0.5, -0.5)
    axis.set_xticks(range(len(others)), others)
    axis.set_yticks(range(len(cases)), labels, fontsize=8)
    axis.tick_params(length=0, labeltop=True, labelbottom=False)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    said = "Speed of gpuops over that of each library: above 1 faster (blue), below 1 slower (orange), grey: within 2 %"
    return headed(made, plot_claims.speedups(document["op"], cases), f"{said}. {subtitle(document)}")


def draw_speedup(axis: Any, x: int, y: int, case: Case, rival: str) -> None:
    """A speed-up on its tint, or why there is none."""
    found, place = timed(case), {"ha": "center", "va": "center_baseline", "fontsize": 8}
    if rival not in found:
        why = cell(case, rival)
        axis.text(x, y, "not run" if why == MISSING else why, color=FAINT, **place)
        return
    gain = found["gpuops"]["speed"] / found[rival]["speed"]
    tint = next(tint for tint in TINTS if gain < tint.below)
    axis.barh(y, 1, left=x - 0.5, height=1, color=tint.light, edgecolor=PAPER, linewidth=1)
    number = f"{gain:.0f}×" if gain >= 10 else f"{gain:.2f}×"
    axis.text(x, y, number, fontweight="bold" if tint in TINTS[:2] else "normal", **place)


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
    made, (axis,) = figure(1, 1, 6.4, 0.12 + 0.15 * len(names))
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
