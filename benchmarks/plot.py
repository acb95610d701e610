"""``bench plot``: pictures, from results files alone."""

from __future__ import annotations

import importlib.util
import io
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from . import cold, on_cpu
from .cases import HOST
from .ops import OPS, READINGS
from .results import ROOT, Document, Unusable, ladders, peers, prepare, published, rivals, timed, write
from .show import MISSING, cell, label, machine_name

PICTURES = ROOT / "docs" / "performance"

Case = dict[str, Any]

#: A colour per provider, after Okabe and Ito's colour-blind safe palette.
COLOURS = {
    "gpuops": "#D55E00",
    "cupy": "#0072B2",
    "torch": "#E69F00",
    "torch.compile": "#B8860B",
    "triton": "#009E73",
    "quack": "#AA4499",
    "jax": "#56B4E9",
    "cub": "#555555",
    "numpy": "#0072B2",
    "scipy": "#009E73",
}
MARKERS = dict(zip(COLOURS, "osD^vPX*ds", strict=True))
GOOD, BAD, FAINT = "#0072B2", "#D55E00", "#8A8A8A"
STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#B0B0B0",
    "axes.grid": True,
    "axes.labelcolor": "#333333",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": "#E6E6E6",
    "legend.frameon": False,
    "svg.hashsalt": "gpuops",  # the same file each time
    "xtick.color": "#333333",
    "ytick.color": "#333333",
}

#: What a group can be plotted along.
ALONG: dict[str, Callable[[Case], int]] = {
    "row length": lambda case: case["operands"][0]["shape"][-1],
    "elements": lambda case: math.prod(case["operands"][0]["shape"]),
    "elements of the result": lambda case: math.prod(case["result"]),
    "n": lambda case: case["operands"][0]["shape"][-1],
}
LIMITS = {
    "copy": "a plain copy of the same bytes",
    "read": "a sum of as many bytes by CUB",
    "write": "a memset of as many bytes",
    "BLAS": "cuBLAS",
}
FEW = 3  # fewer points than this make no line
WIDE = 64  # ratio from which on an axis is logarithmic
GAINS = {1 / 8: "⅛", 1 / 4: "¼", 1 / 2: "½", 1: "1", 2: "2", 4: "4", 8: "8"}  # ticks of speed-ups; bars end there
BARS = 28  # at most in a picture; beyond that, only each group's first dtype
ACROSS = 3  # panels side by side
COLUMN = 1.3  # inches per legend column
BROAD = 1.8  # inches per legend column with names of strategies


class Picture(NamedTuple):
    """A picture that can be drawn."""

    name: str
    caption: str
    draw: Callable[[], Any]


def plan(documents: list[Document]) -> Iterator[Picture]:
    """The pictures of one machine's results."""
    cold = [document for document in documents if document["mode"] == "cold"]
    peak = cold[0]["environment"].get("fp32_tflops") if cold else None
    # (Ops that have a maximum or a sum beside them lie where that lies.)
    points = {document["op"]: intensities(document) for document in cold if not OPS[document["op"]].beside}
    bandwidth = max((memory_limit(document) for document in cold), default=0)
    if peak and bandwidth and any(points.values()):
        caption = "FLOP/s against FLOP per byte, under the roofs of memory and arithmetic"
        yield Picture("roofline", caption, partial(draw_roofline, machine_name(cold[0]), points, peak, bandwidth))
    for document in cold:
        op = document["op"]
        cases = [case for case in document["cases"] if timed(case)]
        for group, about in document["groups"].items():
            panels = sizes(cases, group) if about["along"] else {}
            if panels:
                caption = f"{op}, {group}: {document['unit']} against {about['along']}, for {', '.join(panels)}"
                yield Picture(slug(op, group), caption, partial(draw_sizes, document, group, panels))
        others, picks = peers(cases), selected(cases)
        if others and picks:
            caption = f"{op}: speed of gpuops over that of each library"
            yield Picture(slug(op, "speedup"), caption, partial(draw_speedups, caption, document, picks, others))
        climbed = [case for case in ladders(cases) if case["pick"]]
        if climbed:
            caption = f"{op}: the ladder of strategies, {document['unit']}"
            yield Picture(slug(op, "ladder"), caption, partial(draw_ladder, document, climbed))
        steps = [case for case in climbed if case["dtype"] == "float32" and rungs(case)]
        if steps and peak and bandwidth:
            caption = f"{op}: each rung of the ladder under the roofs, by the bytes that it asks for"
            yield Picture(slug(op, "roofline"), caption, partial(draw_rungs, document, steps, peak, bandwidth))
    for document in documents:
        if document["mode"] == "host":
            yield Picture("host", "microseconds per call on tiny arrays", partial(draw_host, document))


def names(documents: list[Document]) -> list[tuple[str, str]]:
    """Names and captions of the pictures of one machine's results."""
    return [(picture.name, picture.caption) for picture in plan(documents)]


def slug(*words: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", " ".join(words).lower())


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


def figure(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, list[Any]]:
    """An empty figure, so many inches large, and its panels."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    made = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    return made, list(made.subplots(rows, columns, squeeze=False, **options).flat)


def title(made: Any, heading: str, details: str) -> None:
    """A heading and, in smaller type, the details."""
    made.suptitle(f"{heading}\n", x=0.01, ha="left", fontsize=13, fontweight="bold")
    height = made.get_size_inches()[1]
    made.text(0.01, 1 - 0.36 / height, details, ha="left", va="top", fontsize=9, color="#555555")


def legend(made: Any, panels: list[Any], column: float = COLUMN) -> None:
    """One legend for all panels, below them."""
    handles: dict[str, Any] = {}
    for panel in panels:
        found, labels = panel.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    made.legend(handles.values(), handles, loc="outside lower left", ncols=int(made.get_figwidth() / column))


def draw_sizes(document: Document, group: str, panels: dict[str, list[Case]]) -> Any:
    """Speed against size, a panel per dtype; and panels of speed over the limit where speeds span a wide range."""
    limits = [case["limit"]["speed"] for cases in panels.values() for case in cases]
    rows = 2 if spans(limits) else 1
    count = len(panels)
    made, axes = figure(rows, count, 4 + 4 * count**0.8, 1.6 + 2.8 * rows, sharex="col", sharey="row")
    along = document["groups"][group]["along"]
    for axis, (dtype, cases) in zip(axes, panels.items(), strict=False):
        draw_lines(axis, cases, along, lambda case, result: result["speed"])
        axis.set_title(dtype)
    for axis, cases in zip(axes[count:], panels.values(), strict=False):
        draw_lines(axis, cases, along, lambda case, result: result["speed"] / case["limit"]["speed"])
    for axis in axes[-count:]:
        axis.set_xlabel(along)
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel(f"{document['unit']} (higher is better)")
    if rows == 2:
        axes[0].set_yscale("log")
        axes[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes[count].set_ylabel("of the limit")
    title(made, f"{document['op']}: {document['groups'][group]['origin']}", subtitle(document))
    legend(made, axes, BROAD if compared(next(iter(panels.values()))) else COLUMN)
    return made


def draw_lines(axis: Any, cases: list[Case], along: str, value: Callable[[Case, dict[str, Any]], float]) -> None:
    """A line per library, or per strategy where these are compared, and one for the limit."""
    x = [ALONG[along](case) for case in cases]
    axis.plot(x, [value(case, case["limit"]) for case in cases], "--", color="black", lw=1, label=limits_of(cases))
    named = compared(cases)
    others = looks(["gpuops", *named])
    for name in ["gpuops", *peers(cases), *named]:
        points = [(i, value(case, timed(case)[name])) for i, case in zip(x, cases, strict=True) if name in timed(case)]
        if points:
            style = line_style(name, len(points), len(cases))
            if name in named:
                style |= {"label": name.removeprefix("gpuops "), **others[name]}
            axis.plot(*zip(*points, strict=True), **style)
    if spans(x):
        axis.set_xscale("log", base=2)


def strategies(cases: Iterable[Case]) -> list[str]:
    """The names of the strategies that have a time somewhere, in the order of the file."""
    return list(dict.fromkeys(name for case in cases for name in timed(case) if name.startswith("gpuops ")))


def compared(cases: Iterable[Case]) -> list[str]:
    """The strategies with lines of their own: only where there is no peer."""
    cases = list(cases)
    return [] if peers(cases) else strategies(cases)


def looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each of many names."""
    colours, markers = itertools.cycle(dict.fromkeys(COLOURS.values())), itertools.cycle("osD^vPX*dp<")
    return {name: {"color": next(colours), "marker": next(markers)} for name in names}


def spans(values: list[Any]) -> bool:
    """Whether values are so far apart that they need a logarithmic axis."""
    return max(values) >= WIDE * min(values)


def line_style(name: str, count: int, of: int) -> dict[str, Any]:
    """The style of a library: dots without a line where it has few of the points."""
    ours = name == "gpuops"
    dots = count < of / 2
    return {
        "label": name,
        "color": COLOURS.get(name, FAINT),
        "linewidth": 0 if dots else 2.4 if ours else 1.3,
        "marker": MARKERS.get(name, "o") if dots or of <= 20 else None,
        "markersize": 5 if dots else 3,
        "zorder": 4 if ours else 3,
    }


def limits_of(cases: list[Case]) -> str:
    return ", ".join(dict.fromkeys(LIMITS[case["limit"]["name"]] for case in cases))


def subtitle(document: Document) -> str:
    return f"{machine_name(document)}, data in memory, none of it in the cache"


def draw_speedups(heading: str, document: Document, cases: list[Case], others: list[str]) -> Any:
    """The speed-up of gpuops over each peer: a bar per case."""
    made, axes = figure(1, len(others), 3.6 + 1.75 * len(others), 1.3 + 0.21 * len(cases), sharey=True)
    for axis, rival in zip(axes, others, strict=True):
        for y, case in enumerate(cases):
            draw_speedup(axis, y, case, rival)
        axis.axvline(1, color="black", lw=0.8)
        axis.set_xscale("log", base=2)
        axis.set_xlim(min(GAINS) / 2.8, max(GAINS) * 2.8)
        axis.set_xticks(list(GAINS), list(GAINS.values()))
        axis.minorticks_off()
        axis.grid(axis="y", visible=False)
        axis.set_title(rival)
        axis.tick_params(axis="y", length=0)
    axes[0].set_ylim(len(cases) - 0.4, -0.6)
    axes[0].set_yticks(range(len(cases)), [case["case"] for case in cases])
    title(made, heading, f"{subtitle(document)}. To the right of 1 gpuops is faster, to the left slower")
    return made


def draw_speedup(axis: Any, y: int, case: Case, rival: str) -> None:
    """A bar, or why there is none."""
    found = timed(case)
    if rival not in found:
        why = cell(case, rival)
        axis.text(1.1, y, "not run" if why == MISSING else why, color=FAINT, fontsize=7, va="center")
        return
    gain = found["gpuops"]["speed"] / found[rival]["speed"]
    shown = min(max(gain, min(GAINS)), max(GAINS))
    colour, side, away = (GOOD, "left", 3) if gain >= 1 else (BAD, "right", -3)
    axis.barh(y, shown - 1, left=1, height=0.72, color=colour)
    number = f"{gain:.0f}×" if gain >= 10 else f"{gain:.2f}×"
    axis.annotate(number, (shown, y), (away, 0), textcoords="offset points", ha=side, va="center", fontsize=7)


def draw_ladder(document: Document, cases: list[Case]) -> Any:
    """The speed of each strategy, a panel per case."""
    names = [*strategies(cases), "gpuops"]
    columns = min(ACROSS, len(cases))
    rows = math.ceil(len(cases) / columns)
    height = 1.2 + rows * (0.75 + 0.24 * len(names))
    made, axes = figure(rows, columns, 2.2 + 3.4 * columns, height, sharey=True)
    for axis in axes[len(cases) :]:
        axis.set_axis_off()
    for axis, case in zip(axes, cases, strict=False):
        found = timed(case)
        for y, name in enumerate(names):
            if name not in found:
                axis.text(0, y, f" {cell(case, name)}", color=FAINT, fontsize=8, va="center")
                continue
            axis.barh(y, found[name]["speed"], height=0.72, color=COLOURS["gpuops" if name == "gpuops" else "triton"])
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
            point = found[name]["speed"], y
            axis.annotate(
                cell(case, name), point, (3, 0), textcoords="offset points", va="center", fontsize=8, bbox=box
            )
        axis.axvline(case["limit"]["speed"], color="black", lw=1, ls="--", label="limit: " + limits_of(cases))
        if rivals(case):
            best = max(result["speed"] for result in rivals(case).values())
            axis.axvline(best, color=FAINT, lw=1.5, ls=":", label="the best other library in each case")
        axis.set_xlim(0, 1.15 * max(case["limit"]["speed"], *(result["speed"] for result in found.values())))
        axis.set_title(case["case"])
        axis.set_xlabel(document["unit"])
        axis.grid(axis="y", visible=False)
    labels = [name.removeprefix("gpuops ").replace(" host", ", finish on host") for name in names[:-1]]
    axes[0].set_yticks(range(len(names)), [*labels, "auto"])
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    title(made, f"{document['op']}: the ladder of strategies", subtitle(document))
    legend(made, axes)
    return made


def intensities(document: Document) -> list[tuple[float, float]]:
    """Operations per byte and TFLOP/s of gpuops in the selected float32 cases that calculate."""
    return [
        (case["flop"] / (case["read_bytes"] + case["written_bytes"]), case["flop"] * 1e-6 / found["us"])
        for case in document["cases"]
        if case["pick"] and case["dtype"] == "float32" and case["flop"] and (found := timed(case).get("gpuops"))
    ]


def memory_limit(document: Document) -> float:
    """The highest measured memory bandwidth in TB/s; 0 if it was not measured."""
    limits = [case["limit"] for case in document["cases"] if "limit" in case]
    return max((limit["speed"] for limit in limits if limit["name"] in ("copy", "read")), default=0) * 1e-3


def draw_roofline(machine: str, points: dict[str, list[tuple[float, float]]], peak: float, bandwidth: float) -> Any:
    """FLOP/s against arithmetic intensity, under the roofs of memory and arithmetic."""
    made, (axis,) = figure(1, 1, 8.4, 5)
    draw_roofs(axis, 0.05, peak, bandwidth, named=0.06)
    for op, look in looks(points).items():
        if points[op]:
            axis.plot(*zip(*points[op], strict=True), ls="", label=op, **look, **HOLLOW)
    axis.set_ylim(bottom=1e-3)
    axis.set_xlabel("float32 operations per byte that must move")
    details = "data in memory, none of it in the cache. A point per selected case; small arrays lie lower"
    title(made, "Roofline: gpuops' float32 results under what the machine can do", f"{machine}, {details}")
    legend(made, [axis])
    return made


HOLLOW: dict[str, Any] = {"markersize": 5, "markerfacecolor": "none"}


def draw_roofs(axis: Any, left: float, peak: float, bandwidth: float, named: float) -> None:
    """The roofs of memory and arithmetic, from intensity ``left`` on; memory's label is at ``named``."""
    ridge = peak / bandwidth
    axis.plot([left, ridge, 2 * ridge], [left * bandwidth, peak, peak], color="black", lw=1.5)
    above = 1.4  # of a line that text belongs to
    slope = {"rotation_mode": "anchor", "transform_rotates_text": True}
    slope["rotation"] = math.degrees(math.atan(above * bandwidth))
    axis.text(named, named * above * bandwidth, f"memory: {bandwidth:.2f} TB/s", **slope)
    axis.text(1.9 * ridge, above * peak, f"float32 arithmetic: {peak:.0f} TFLOP/s", ha="right")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=10)
    axis.set_xlim(left, 2 * ridge)
    axis.set_ylim(top=peak * 3)
    axis.set_ylabel("TFLOP/s")


def rungs(case: Case) -> dict[str, tuple[float, float]]:
    """Operations per byte that each strategy loads or stores in a case, and TFLOP/s."""
    shape, axis = case["operands"][0]["shape"], case["axis"]
    cols = math.prod(n for d, n in enumerate(shape) if axis is None or d in ([axis] if isinstance(axis, int) else axis))
    found, points = timed(case), {}
    for name in strategies([case]):
        readings = READINGS.get(case["op"], {}).get(name.split()[1])
        if readings:
            moved = readings(cols) * case["read_bytes"] + case["written_bytes"]
            points[name.removeprefix("gpuops ")] = case["flop"] / moved, case["flop"] * 1e-6 / found[name]["us"]
    return points


def draw_rungs(document: Document, cases: list[Case], peak: float, bandwidth: float) -> Any:
    """Each strategy under the roofs: all cases together, and each case enlarged under the memory roof."""
    from matplotlib.figure import Figure

    points = [rungs(case) for case in cases]
    made = Figure(figsize=(3.3 * max(3, len(cases)), 8), layout="constrained")
    grid = made.add_gridspec(2, len(cases), height_ratios=(1.2, 1))
    whole = made.add_subplot(grid[0, :])
    enlarged = [made.add_subplot(grid[1, i]) for i in range(len(cases))]
    intensities = [intensity for found in points for intensity, _ in found.values()]
    left, most = min(intensities) / 2, 1.25 * max(intensities)
    draw_roofs(whole, left, peak, bandwidth, named=(left * most) ** 0.5)
    for name, look in looks(dict.fromkeys(name for found in points for name in found)).items():
        style = {"ls": "", **look, **HOLLOW}
        reached = [found[name] for found in points if name in found]
        whole.plot(*zip(*reached, strict=True), label=name.replace(" host", ", finish on host"), **style)
        for axis, found in zip(enlarged, points, strict=True):
            if name in found:
                axis.plot(*found[name], **style)
    for axis, case in zip(enlarged, cases, strict=True):
        axis.plot([0, most], [0, most * bandwidth], color="black", lw=1.5)
        axis.set_xlim(-0.02 * most, most)
        axis.set_ylim(0, most * bandwidth)
        axis.set_title(case["case"])
    for axis in (whole, *enlarged):
        axis.set_xlabel("float32 operations per byte asked for")
    enlarged[0].set_ylabel("TFLOP/s")
    details = "to the right: asks for fewer bytes; what is above memory's roof is served by caches"
    title(made, f"{document['op']}: each rung of the ladder under the roofs", f"{subtitle(document)}; {details}")
    legend(made, [whole], BROAD)
    return made


def draw_host(document: Document) -> Any:
    """The host time of calls."""
    cases = [case for case in document["cases"] if case["group"] == HOST.name and timed(case)]
    made, (axis,) = figure(1, 1, 9, 1.4 + 0.24 * len(cases))
    floor = [case["limit"]["us"] for case in cases]
    axis.plot(floor, range(len(cases)), "--", color="black", lw=1, label="launch of an empty kernel")
    for name in ["gpuops", *peers(cases)]:
        points = [(timed(case)[name]["us"], y) for y, case in enumerate(cases) if name in timed(case)]
        size = 7 if name == "gpuops" else 5
        look = {"marker": MARKERS.get(name, "o"), "markersize": size, "color": COLOURS.get(name, FAINT)}
        axis.plot(*zip(*points, strict=True), ls="", label=name, zorder=4 if name == "gpuops" else 3, **look)
    axis.set_xscale("log")
    axis.set_ylim(len(cases) - 0.4, -0.6)
    axis.set_yticks(range(len(cases)), [label(case) for case in cases])
    axis.set_xlabel("µs per call (lower is better)")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    title(made, "The host's time per call on tiny arrays", f"{machine_name(document)}; launches only")
    legend(made, [axis])
    return made


FIRST_CALLS = Picture("first-calls", "seconds of mixes of calls whose shapes do not repeat", lambda: None)


def draw_first_calls(document: Document) -> Any:
    """The seconds that mixes of calls take with nothing compiled, and the second time."""
    rows = [row for row in document["rows"] if "seconds" in row]
    made, (axis,) = figure(1, 1, 9, 1.4 + 0.3 * len(rows))
    for y, row in enumerate(rows):
        colour = COLOURS.get(row["library"], FAINT)
        axis.plot([row["again"], row["seconds"]], [y, y], color=colour, lw=1.5, zorder=2)
        axis.plot(row["seconds"], y, "o", color=colour, markersize=8, zorder=3)
        axis.plot(row["again"], y, "o", color=colour, markerfacecolor="white", markersize=6, zorder=3)
    axis.set_xscale("log")
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set_yticks(range(len(rows)), [f"{row['mix']}: {row['library']}" for row in rows])
    axis.set_xlabel("seconds (lower is better)")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    details = f"{document['machine']}; filled: nothing compiled before, hollow: a second process"
    title(made, "Mixes of calls whose shapes do not repeat", details)
    return made


ON_CPU = Picture("on-cpu", "NumPy arrays on the CPU: the speed of gpuops over that of NumPy or SciPy", lambda: None)


def draw_on_cpu(document: Document) -> Any:
    """The speed of gpuops on one thread and on all, and of PyTorch, over that of NumPy or SciPy."""
    cases: dict[str, dict[int, dict[str, Any]]] = {}
    for row in document["rows"]:
        if row["dtype"] == "float32" and any(name in timed(row) for name in on_cpu.REFERENCES):
            cases.setdefault(f"{row['op']} {row['case'].removeprefix('float32 ')}", {})[row["threads"]] = timed(row)
    most = max(row["threads"] for row in document["rows"])
    made, (axis,) = figure(1, 1, 9, 1.6 + 0.2 * len(cases))
    looks = (("torch", most, "s", 4), ("gpuops", 1, "o", 5), ("gpuops", most, "o", 7))
    for name, count, marker, size in looks:
        points = [
            (min(found[count][base]["us"] for base in on_cpu.REFERENCES if base in found[count]) / result["us"], y)
            for y, found in enumerate(cases.values()) if count in found and (result := found[count].get(name))
        ]  # fmt: skip
        hollow = {"markerfacecolor": "white"} if count < most else {}
        style = {"marker": marker, "markersize": size, "color": COLOURS[name], **hollow}
        if points:
            axis.plot(*zip(*points, strict=True), ls="", label=f"{name}, {count} threads", zorder=3, **style)
    axis.axvline(1, color="black", lw=1)
    axis.set_xscale("log")
    axis.set_ylim(len(cases) - 0.4, -0.6)
    axis.set_yticks(range(len(cases)), [*cases])
    axis.set_xlabel("times as fast as NumPy or SciPy (higher is better)")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    title(made, "NumPy arrays on the CPU, float32", f"{document['machine']}, {most} cores")
    legend(made, [axis], 2 * COLUMN)
    return made


def drawn(machine: str, documents: list[Document]) -> list[Picture]:
    """All pictures of a machine's results."""
    measured = cold.found(machine)
    first = [FIRST_CALLS._replace(draw=partial(draw_first_calls, measured))] if measured else []
    return [*plan(documents), *first]


def main(arguments: list[str]) -> int:
    """Draw everything."""
    description = "Draw the pictures of the performance page from the results files."
    found, output = published("plot", description, PICTURES, arguments)
    if not importlib.util.find_spec("matplotlib"):
        raise Unusable("pictures need matplotlib: pip install 'gpuops-cupy[bench]'")
    import matplotlib as mpl

    jobs = [(output / machine, drawn(machine, documents)) for machine, documents in found.items()]
    if cpus := on_cpu.found():
        widest = max(cpus.values(), key=lambda document: max(row["threads"] for row in document["rows"]))
        jobs.append((output, [ON_CPU._replace(draw=partial(draw_on_cpu, widest))]))
    for folder, pictures in jobs:
        prepare(folder)
        for picture in pictures:
            file, svg = folder / f"{picture.name}.svg", io.StringIO()
            with mpl.rc_context(STYLE):
                picture.draw().savefig(svg, format="svg", metadata={"Date": None})
            write(file, svg.getvalue())
            print(file)
    return 0
