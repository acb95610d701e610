"""Pictures of results: what their titles say, what readers can read, light and dark."""

import functools
import html
import importlib.util
import itertools
import math
import re
import statistics
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from benchmarks import plot, plot_calls, plot_claims, plot_roofs, plot_speed, plot_theme, results
from benchmarks.plot_theme import COLOURS, DARK, FADED, FAINT, HUES, INK, PAPER, themed
from benchmarks.results import timed

DRAWN = sorted(plot.PICTURES.glob("**/*.svg"))
EVERY = [*DRAWN, *sorted((plot.PICTURES.parent / "kernels").glob("*.svg"))]
MACHINES = [folder.name for folder in plot.PICTURES.iterdir() if folder.is_dir()]
SVG = "{http://www.w3.org/2000/svg}"
needs_matplotlib = pytest.mark.skipif(not importlib.util.find_spec("matplotlib"), reason="draws pictures")


def name(file):
    return file.stem


class Box(NamedTuple):
    """A line of text and where it is, in points from the upper left."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other):
        across = min(self.right, other.right) - max(self.left, other.left)
        return across > 0.5 and min(self.bottom, other.bottom) - max(self.top, other.top) > 0.5


def style_of(element):
    return dict(part.split(": ") for part in element.get("style", "").split("; ") if part)


def box(element):
    """The box of a text element; turned by whatever angle it has."""
    from benchmarks.plot_style import extent

    style, transform = style_of(element), element.get("transform", "")
    moved = re.match(r"translate\((\S+) (\S+)\)", transform)  # of several lines each is moved to its place
    x, y = map(float, moved.groups() if moved else (element.get("x"), element.get("y")))
    size, bold = float(style["font-size"].removesuffix("px")), style.get("font-weight") == "bold"
    width = 72 * extent(element.text, size, bold)
    start = x - {"start": 0, "middle": 0.5, "end": 1}[style.get("text-anchor", "start")] * width
    turn = re.match(r"rotate\((\S+) ", transform)
    angle = math.radians(float(turn[1])) if turn else 0
    corners = [
        (x + (i - x) * math.cos(angle) - j * math.sin(angle), y + (i - x) * math.sin(angle) + j * math.cos(angle))
        for i in (start, start + width)
        for j in (-0.75 * size, 0.2 * size)
    ]
    across, down = zip(*corners, strict=True)
    return Box(element.text, min(across), min(down), max(across), max(down))


@functools.cache
def parsed(file):
    return ElementTree.fromstring(file.read_text(encoding="utf-8"))


@functools.cache
def boxes(file):
    return [box(element) for element in parsed(file).iter(f"{SVG}text")]


@needs_matplotlib
@pytest.mark.parametrize("file", DRAWN, ids=name)
def test_no_text_is_clipped(file):
    _, _, width, height = map(float, parsed(file).get("viewBox").split())
    outside = [b for b in boxes(file) if min(b.left, b.top) < 0 or b.right > width or b.bottom > height]
    assert boxes(file) and not outside


@needs_matplotlib
@pytest.mark.parametrize("file", DRAWN, ids=name)
def test_no_text_overlaps_other_text(file):
    level = [b for b in boxes(file) if "memory: " not in b.text]  # which lies along the roof: its box is larger than it
    assert [(a.text, b.text) for a, b in itertools.combinations(level, 2) if a.overlaps(b)] == []


@needs_matplotlib
@pytest.mark.parametrize("file", [file for file in DRAWN if file.stem.endswith(("ladder", "glance"))], ids=name)
def test_no_dashed_line_runs_through_a_number(file):
    lines = []
    for path in parsed(file).iter(f"{SVG}path"):
        points = re.findall(r"[ML] (\S+) (\S+)", path.get("d"))
        if "stroke-dasharray" in style_of(path) and len(points) == 2 and points[0][0] == points[1][0]:
            lines.append((float(points[0][0]), *sorted(float(y) for _, y in points)))
    assert lines
    crossed = [
        b for b in boxes(file) for x, top, bottom in lines if b.left < x < b.right and b.top < bottom and b.bottom > top
    ]
    assert crossed == []


@pytest.mark.parametrize("file", DRAWN, ids=name)
def test_pictures_name_the_machine_and_keep_text_as_text(file):
    text = " ".join("".join(element.itertext()) for element in parsed(file).iter(f"{SVG}text"))
    assert re.search("NVIDIA|AMD|Intel", text)
    assert "DejaVu Sans" in parsed(file).get("font-family") and parsed(file).get("aria-label")


@pytest.mark.parametrize("file", [file for file in DRAWN if file.stem.endswith("glance")], ids=name)
def test_glances_are_small_and_begin_with_gpuops(file):
    _, _, width, height = map(float, parsed(file).get("viewBox").split())
    assert width * 96 / 72 <= 640 and height * 96 / 72 <= 160
    labels = [b.text for b in sorted(boxes(file), key=lambda b: b.top) if b.text in COLOURS]
    assert labels[0] == "gpuops" and len(labels) > 1


@functools.cache
def published(machine):
    return results.load_all(results.FOLDER / machine)


def cold():
    return [document for machine in MACHINES for document in published(machine) if document["mode"] == "cold"]


@needs_matplotlib
@pytest.mark.parametrize("machine", MACHINES)
def test_published_titles_are_those_of_the_results(machine):
    for picture in plot.drawn(machine, published(machine)):
        text = (plot.PICTURES / machine / f"{picture.name}.svg").read_text(encoding="utf-8")
        heading, details, *_ = picture.draw().texts
        for line in (*heading.get_text().split("\n"), *details.get_text().split("\n")):
            assert f">{html.escape(line, quote=False)}<" in text, f"run python -m gpuops bench plot: {picture.name}"


# Light and dark


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_enough_contrast(dark):
    def shown(colour):
        return DARK.get(colour, colour) if dark else colour

    pairs = [(ink, PAPER) for ink in (INK, FADED, FAINT)]
    assert all(contrast(shown(ink), shown(paper)) >= 4.5 for ink, paper in pairs)
    lines = {*HUES, *COLOURS.values()}
    assert all(contrast(shown(line), shown(PAPER)) >= (3 if dark else 2) for line in lines)
    assert len({*map(shown, HUES)}) == len(HUES)


@pytest.mark.parametrize("file", EVERY, ids=name)
def test_pictures_are_dark_where_readers_prefer_it_or_the_site_says_so(file):
    svg = file.read_text(encoding="utf-8")
    light, dark = themed(svg, False), themed(svg, True)
    assert "prefers-color-scheme" in svg and "prefers-color-scheme" not in light + dark
    for made in (light, dark):
        ElementTree.fromstring(made)
        assert [themed(made, again) for again in (False, True)] == [made, made]
    assert len(light) < len(dark) < len(svg) and DARK[PAPER] in dark and DARK[PAPER] not in light


def test_dark_pages_recolour_only_colours_that_a_picture_has():
    svg = f'<svg><style>*{{x: y}}</style><path style="fill: {PAPER}; stroke: #d55e00"/></svg>'
    rule = f'[style*="fill: {PAPER}"]{{fill:{DARK[PAPER]}!important}}'
    assert plot_theme.adaptive(svg) == svg.replace("}<", f"}}@media (prefers-color-scheme: dark){{{rule}}}<")
    assert themed(plot_theme.adaptive(svg), False) == svg
    assert themed(plot_theme.adaptive(svg), True) == svg.replace("}<", f"}}{rule}<")


# What is drawn


@needs_matplotlib
def test_every_op_of_the_roofline_has_a_colour_and_lies_in_view():
    documents = cold()
    axis = next(picture for picture in plot.plan(documents) if picture.name == "roofline").draw().axes[0]
    ops = {line.get_label(): line for line in axis.lines if not line.get_label().startswith("_")}
    assert {"softmax", "sum", "dot", "logsumexp", "matmul"} <= set(ops)
    assert len({line.get_color() for line in ops.values()}) == len(ops)
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    points = [point for line in ops.values() for point in line.get_xydata()]
    assert len(points) == sum(len(plot.intensities(document)) for document in documents if document["op"] in ops)
    assert all(left < x < right and bottom < y < top for x, y in points)


def test_ops_with_the_same_intensity_stand_side_by_side():
    points = {"sum": [(0.25, 1.0)], "max": [(0.25, 1.0), (2.0, 3.0)], "min": [(0.25, 1.0)]}
    moved = plot_roofs.apart(points)
    assert moved["sum"][0][0] < moved["max"][0][0] == 0.25 < moved["min"][0][0]
    assert moved["max"][1] == (2.0, 3.0)


def case(shares, pick=True, limit="copy"):
    """A case with these shares of its reference."""
    found = [
        {"provider": who, "us": 1 / share, "speed": share, "of_limit": share, "spread": 0.001, "repeat": 0.0}
        for who, share in shares.items()
    ]
    best = max((share for who, share in shares.items() if who != "gpuops"), default=None)
    for result in found:
        result["of_best_peer"] = best and result["speed"] / best
    what = {"op": "sum", "axis": 1, "pick": pick}
    return what | {"limit": {"name": limit, "us": 1.0, "speed": 1.0}, "results": found}


def test_glances_show_the_cases_that_all_libraries_completed():
    every = [case({"gpuops": 1, "cupy": 0.5, "torch": 0.9}), case({"gpuops": 1, "torch": 0.9}), case({"torch": 1})]
    every += [case({"gpuops": 1, "cupy": 2, "torch": 3}, pick=False)]
    assert plot_speed.met(every) == (["gpuops", "cupy", "torch"], every[:1])
    never = [case({"gpuops": 1, "cupy": 0.5}), case({"gpuops": 1, "torch": 0.9}), case({"gpuops": 1, "torch": 0.9})]
    assert plot_speed.met(never) == (["gpuops", "torch"], never[1:])


@needs_matplotlib
def test_glances_show_medians_and_losses():
    for document in cold():
        names, shared = plot_speed.met([case for case in document["cases"] if timed(case)])
        axis = plot_speed.draw_glance(document, names, shared).axes[0]
        widths = [bar.get_width() for bar in axis.patches]
        expected = [statistics.median(timed(c)[who]["speed"] / c["limit"]["speed"] for c in shared) for who in names]
        assert widths == pytest.approx(expected) and axis.get_xlim()[1] > max(widths)


@needs_matplotlib
def test_families_have_a_line_for_each_op_and_a_dot_for_each_case():
    members = [case({"gpuops": 1.1, "jax": 1}), case({"gpuops": 0.5, "jax": 1}), case({"gpuops": 0.5, "torch": 0.1})]
    document = {"op": "sum", "cases": members, "environment": {"gpu": "NVIDIA X", "cpu": "Y"}}
    left, right = plot_speed.draw_family("Reductions", [document, document | {"op": "max"}]).axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["sum", "max"]

    def places(axis, marker):
        return [line.get_xdata()[0] for line in axis.lines if line.get_marker() == marker]

    assert places(left, "o") == [1.1, 0.5, 0.5] * 2 and places(left, "|") == [0.5] * 2
    assert places(right, "o") == pytest.approx([1.1, 0.5] * 2)  # no strong peer completed the third


@needs_matplotlib
def test_the_front_has_a_bar_for_each_case_beside_other_libraries():
    document = {"environment": {"gpu": "NVIDIA X", "cpu": "Y"}}
    shares = {"gpuops": 0.9, "cupy": 0.25, "torch": 0.5, "jax": 0.75}
    shown = [("sum", case(shares) | {"case": "one"}), ("max", case({"gpuops": 0.5}) | {"case": "two"})]
    axis = plot_speed.draw_front(document, shown).axes[0]
    assert [bar.get_width() for bar in axis.patches] == [0.9, 0.5]
    found = {line.get_label(): line.get_xdata()[0] for line in axis.lines if not line.get_label().startswith("_")}
    assert found == {"fastest other": 0.75, "CuPy": 0.25, "PyTorch": 0.5}


# Titles


def test_the_title_of_the_front_counts_the_medians_of_its_cases():
    members = [case({"gpuops": 1, "cupy": 0.25, "torch": 0.5}), case({"gpuops": 1, "cupy": 0.5}), case({"gpuops": 1})]
    assert plot_claims.front(members) == "gpuops: 3.0 times CuPy and 2.0 times PyTorch, in the median of these"
    assert plot_claims.front(members[2:]) == "gpuops"


@pytest.mark.parametrize(
    ("ours", "title"),
    [
        ((2, 2), "op: gpuops is faster than every other library in all 2 cases"),
        ((2,), "op: gpuops is faster than every other library in the only case"),
        ((2, 1.0005), "op: gpuops is faster than every other library in 1 of 2 cases"),
        ((2, 0.5), "op: gpuops is faster than every other library in 1 of 2 cases, slower than the best in\u00a01"),
    ],
)
def test_titles_count_wins_and_losses_beyond_the_noise(ours, title):
    assert plot_claims.speedups("op", [case({"gpuops": share, "torch": 1, "jax": 0.1}) for share in ours]) == title


def test_titles_count_no_cases_of_weak_peers_alone():
    weak, strong = case({"gpuops": 2, "torch": 0.1}), case({"gpuops": 2, "torch": 0.1, "jax": 1})
    many = "in the only case with a strong peer"
    assert plot_claims.speedups("op", [weak, strong]) == f"op: gpuops is faster than every other library {many}"
    assert plot_claims.speedups("op", [weak]) == "op: no strong peer completed a case"


@pytest.mark.parametrize(
    ("ours", "title"),
    [
        (1.0, "what gpuops chooses is as fast as the fastest strategy"),
        (0.954, "what gpuops chooses is within 5\u00a0% of the fastest strategy"),
        (0.5, "the speed of each strategy"),
    ],
)
def test_titles_of_ladders_hold(ours, title):
    climbed = [case({"gpuops rows": 1, "gpuops naive": 0.1, "gpuops": share}) for share in (1.1, ours)]
    assert plot_claims.ladder("op", climbed, ["gpuops rows", "gpuops naive"]) == f"op: {title}"


def test_titles_of_glances_name_the_best_other_library():
    shares = {"gpuops": 0.99, "cupy": 0.004, "jax": 1.03}
    assert plot_claims.glance("op", shares, "copy speed") == "op: 99\u00a0% of copy speed; jax: 103\u00a0%"
    assert plot_claims.percent(0.004) == "0.4\u00a0%"


def test_references_that_differ_are_not_named_as_one():
    both = [case({"gpuops": 1}), case({"gpuops": 1}, limit="write")]
    assert plot_claims.limit_speed(both[:1]) == "copy speed" and plot_claims.limit_speed(both) == plot_claims.MIXED
    assert plot_claims.limit_lines(both) == "reference: a plain copy of as many bytes, a memset of as many bytes"


def test_speeds_over_numpy_need_both():
    found = {1: {"gpuops": {"us": 2.0}, "numpy": {"us": 4.0}, "scipy": {"us": 3.0}}, 16: {"gpuops": {"us": 1.0}}}
    assert plot_calls.over_numpy(found, "gpuops", 1) == 1.5
    assert plot_calls.over_numpy(found, "gpuops", 16) == plot_calls.over_numpy(found, "torch", 1) == 0
