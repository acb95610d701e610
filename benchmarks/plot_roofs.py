"""Rooflines: of all ops, and of the strategies of one."""

from __future__ import annotations

import math
from typing import Any

from . import plot_claims
from .ops import READINGS
from .plot_speed import BROAD, Case, strategies, subtitle, written
from .plot_style import HOLLOW, figure, headed, legend, looks, plain
from .plot_theme import INK
from .results import Document, timed

Points = list[tuple[float, float]]  # operations per byte, and TFLOP/s
STEP = 2**0.085  # between ops that stand side by side
ROOM = 1.6  # around all points


def intensities(document: Document) -> Points:
    """Operations per byte and TFLOP/s of gpuops in the selected float32 cases that calculate."""
    return [
        (case["flop"] / (case["read_bytes"] + case["written_bytes"]), case["flop"] * 1e-6 / found["us"])
        for case in document["cases"]
        if case["pick"] and case["dtype"] == "float32" and case["flop"] and (found := timed(case).get("gpuops"))
    ]


def memory_limit(document: Document) -> float:
    """The highest memory bandwidth in TB/s that a reference reached; 0 if it was not measured."""
    limits = [case["limit"] for case in document["cases"] if "limit" in case]
    return max((limit["speed"] for limit in limits if limit["name"] in ("copy", "read")), default=0) * 1e-3


def apart(points: dict[str, Points]) -> dict[str, Points]:
    """The points of each op, moved sideways where other ops have the same number of operations per byte."""
    ops: dict[float, list[str]] = {}
    for op, members in points.items():
        for intensity in {round(intensity, 2) for intensity, _ in members}:
            ops.setdefault(intensity, []).append(op)
    moved = {}
    for op, members in points.items():
        beside = [ops[round(intensity, 2)] for intensity, _ in members]
        places = [others.index(op) - (len(others) - 1) / 2 for others in beside]
        moved[op] = [(x * STEP**place, y) for (x, y), place in zip(members, places, strict=True)]
    return moved


def draw_roofline(machine: str, points: dict[str, Points], peak: float, bandwidth: float) -> Any:
    """FLOP/s against arithmetic intensity, under the roofs of memory and arithmetic."""
    made, (axis,) = figure(1, 1, BROAD, 4.6)
    every = [point for members in points.values() for point in members]
    draw_roofs(axis, every, peak, bandwidth)
    for op, members in apart(points).items():
        axis.plot(*zip(*members, strict=True), ls="", label=op, **looks(points)[op], **HOLLOW | {"markersize": 4})
    axis.set_xlabel("float32 operations per byte that must move")
    legend(made, [axis])
    details = (
        f"{machine}, data in memory, none of it in the cache. A point per selected case; small arrays lie lower. "
        "Ops with as many operations per byte stand side by side"
    )
    return headed(made, plot_claims.roofline(every, peak, bandwidth), details)


def draw_roofs(axis: Any, points: Points, peak: float, bandwidth: float) -> None:
    """The limits of memory and arithmetic above some points."""
    ridge = peak / bandwidth
    left = min(x for x, _ in points) / ROOM
    right = ROOM * max(ridge * 2, *(x for x, _ in points))
    axis.plot([left, ridge, right], [left * bandwidth, peak, peak], color=INK, lw=1.5)
    above = 1.35  # of a line that text belongs to
    slope = {"rotation_mode": "anchor", "transform_rotates_text": True, "ha": "center"}
    slope["rotation"] = math.degrees(math.atan(above * bandwidth))
    middle = math.sqrt(left * ridge)
    axis.text(middle, middle * above * bandwidth, f"memory: {bandwidth:.2f} TB/s, the fastest reference", **slope)
    axis.text(right / ROOM, above * peak, f"float32 arithmetic: {peak:.0f} TFLOP/s", ha="right")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=10)
    axis.xaxis.set_major_formatter(plain)
    axis.yaxis.set_major_formatter(plain)
    axis.set_xlim(left, right)
    axis.set_ylim(min(y for _, y in points) / ROOM, peak * 3)
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
    """Each strategy under the memory limit, by the bytes that it asks for: a panel per case."""
    points = [rungs(case) for case in cases]
    columns = min(2, len(cases))
    made, axes = figure(math.ceil(len(cases) / columns), columns, BROAD, 3.1 * math.ceil(len(cases) / columns))
    for axis in axes[len(cases) :]:
        axis.set_axis_off()
    most = 1.25 * max(intensity for found in points for intensity, _ in found.values())
    named = dict.fromkeys(name for found in points for name in found)
    for axis, case, found in zip(axes, cases, points, strict=False):
        draw_memory(axis, most, bandwidth)
        axis.set_title(case["case"])
        for name, look in looks(named).items():
            place = found.get(name, (math.nan, math.nan))
            axis.plot(*place, ls="", label=written(name), clip_on=False, zorder=3, **look, **HOLLOW)
    legend(made, axes[:1])
    details = (
        f"{subtitle(document)}. To the right: asks for fewer bytes. What is above the memory limit is served by "
        f"caches. The arithmetic limit, {peak:.0f} TFLOP/s, begins at {peak / bandwidth:.0f} operations per byte"
    )
    return headed(made, f"{document['op']}: each rung of the ladder beside the memory limit", details)


def draw_memory(axis: Any, most: float, bandwidth: float) -> None:
    """The memory limit, up to so many operations per byte."""
    axis.plot([0, most], [0, most * bandwidth], color=INK, lw=1.5)
    slope = {"rotation": math.degrees(math.atan(bandwidth)), "rotation_mode": "anchor", "transform_rotates_text": True}
    axis.text(0.7 * most, 0.73 * most * bandwidth, f"memory: {bandwidth:.2f} TB/s", ha="right", **slope)
    axis.set_xlim(0, most)
    axis.set_ylim(0, most * bandwidth)
    axis.set_xlabel("float32 operations per byte asked for")
    axis.set_ylabel("TFLOP/s")
