"""Pictures of calls: the host's time, first calls, and NumPy arrays on the CPU."""

from __future__ import annotations

from typing import Any

from . import on_cpu, plot_claims
from .cases import HOST
from .plot_style import figure, headed, legend, library, plain
from .plot_theme import COLOURS, INK, PAPER
from .results import Document, peers, timed
from .show import label, machine_name


def draw_host(document: Document) -> Any:
    """The host time of calls."""
    cases = [case for case in document["cases"] if case["group"] == HOST.name and timed(case)]
    made, (axis,) = figure(1, 1, 9, 0.5 + 0.19 * len(cases))
    for name in ["gpuops", *peers(cases)]:
        points = [(timed(case)[name]["us"], y) for y, case in enumerate(cases) if name in timed(case)]
        look = library(name) | ({"markersize": 7, "zorder": 4} if name == "gpuops" else {"markersize": 4.5})
        axis.plot(*zip(*points, strict=True), ls="", label=name, **look)
    floor = [case["limit"]["us"] for case in cases]
    look = {"marker": "|", "markersize": 9, "markeredgewidth": 1.5, "color": INK}
    axis.plot(floor, range(len(cases)), ls="", label="limit: launch of an empty kernel", **look)
    lines(axis, [label(case) for case in cases], "µs per call (lower is better)")
    legend(made, [axis])
    return headed(made, plot_claims.host(cases), f"{machine_name(document)}, tiny arrays, launches only")


def lines(axis: Any, labels: list[str], unit: str) -> None:
    """A line per label, along a logarithmic axis."""
    axis.set_xscale("log")
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_yticks(range(len(labels)), labels, fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel(unit)
    axis.xaxis.set_major_formatter(plain)


def draw_first_calls(document: Document) -> Any:
    """The seconds that mixes of calls take with nothing compiled, and the second time."""
    rows = [row for row in document["rows"] if "seconds" in row]
    made, (axis,) = figure(1, 1, 9, 0.6 + 0.25 * len(rows))
    for y, row in enumerate(rows):
        look = library(row["library"].partition(" ")[0]) | {"marker": "o"}
        axis.plot([row["again"], row["seconds"]], [y, y], color=look["color"], lw=1.5, zorder=2)
        axis.plot(row["seconds"], y, markersize=8, zorder=3, **look)
        axis.plot(row["again"], y, markerfacecolor=PAPER, markersize=6, zorder=3, **look)
    lines(axis, [f"{row['mix']}: {row['library']}" for row in rows], "seconds (lower is better)")
    details = f"{document['machine']}. Filled: nothing compiled before; hollow: a second process"
    return headed(made, "Calls whose shapes do not repeat: the first process and the next", details)


def draw_on_cpu(document: Document) -> Any:
    """The speed of gpuops on one thread and on all, and of PyTorch, over that of NumPy or SciPy."""
    cases: dict[str, dict[int, dict[str, Any]]] = {}
    for row in document["rows"]:
        if row["dtype"] == "float32" and any(name in timed(row) for name in on_cpu.REFERENCES):
            cases.setdefault(f"{row['op']} {row['case'].removeprefix('float32 ')}", {})[row["threads"]] = timed(row)
    most = on_cpu.most_threads(document)
    made, (axis,) = figure(1, 1, 9, 0.6 + 0.17 * len(cases))
    for name, count, marker, size in (("torch", most, "s", 4), ("gpuops", 1, "o", 5), ("gpuops", most, "o", 7)):
        points = [(gain, y) for y, found in enumerate(cases.values()) if (gain := over_numpy(found, name, count))]
        hollow = {"markerfacecolor": PAPER} if count < most else {}
        style = {"marker": marker, "markersize": size, "color": COLOURS[name], **hollow}
        if points:
            axis.plot(
                *zip(*points, strict=True), ls="", label=f"{name}, {count} thread{'s'[: count > 1]}", zorder=3, **style
            )
    axis.axvline(1, color=INK, lw=1)
    lines(axis, [*cases], "times as fast as NumPy or SciPy (higher is better)")
    legend(made, [axis])
    gains = [gain for found in cases.values() if (gain := over_numpy(found, "gpuops", most))]
    return headed(made, plot_claims.arrays_of_numpy(gains, most), f"{document['machine']}, {most} cores; float32")


def over_numpy(found: dict[int, dict[str, Any]], name: str, count: int) -> float:
    """How many times as fast a library is as NumPy or SciPy, on so many threads; 0 if one was not measured."""
    results = found.get(count, {})
    references = [results[base]["us"] for base in on_cpu.REFERENCES if base in results]
    return min(references) / results[name]["us"] if references and name in results else 0
