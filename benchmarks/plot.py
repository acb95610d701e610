"""``bench plot``: pictures, from results files alone."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from . import cold, on_cpu
from .cases import FAMILIES, FRONT
from .expressions import EXPRESSIONS
from .ops import OPS
from .plot_calls import draw_first_calls, draw_host, draw_on_cpu
from .plot_roofs import draw_roofline, draw_rungs, intensities, memory_limit, rungs
from .plot_speed import draw_family, draw_front, draw_glance, draw_ladder, met, strategies
from .plot_style import svg
from .report_standing import done
from .results import ROOT, Document, Unusable, ladders, peers, prepare, published, timed, write
from .show import machine_name

PICTURES = ROOT / "docs" / "performance"
#: The ops whose strategies are drawn: those with a guide that shows them.
CLIMBED = ("expand", "where", "sum", "softmax", "matmul", "cumsum")
READ = ("softmax",)  # those whose guide says how often each strategy reads the array

Case = dict[str, Any]


class Picture(NamedTuple):
    """A picture that can be drawn."""

    name: str
    caption: str
    draw: Callable[[], Any]


class Roofs(NamedTuple):
    """The limits of a machine: TFLOP/s and TB/s; 0 where they were not measured."""

    peak: float
    bandwidth: float


def plan(documents: list[Document]) -> Iterator[Picture]:
    """The pictures of one machine's results."""
    cold = [document for document in documents if document["mode"] == "cold"]
    roofs = Roofs(cold[0]["environment"].get("fp32_tflops", 0) if cold else 0, max(map(memory_limit, cold), default=0))
    # (Ops that have a maximum or a sum beside them lie where that lies; expressions near the maps and sums they are.)
    alone = [document for document in cold if not OPS[document["op"]].beside and document["op"] not in EXPRESSIONS]
    points = {document["op"]: found for document in alone if (found := intensities(document))}
    if all(roofs) and points:
        caption = "FLOP/s against FLOP per byte, under the limits of memory and arithmetic"
        yield Picture("roofline", caption, partial(draw_roofline, machine_name(cold[0]), points, *roofs))
    if shown := front(cold):
        caption = "the share of the reference's speed that gpuops, CuPy, PyTorch and the fastest other library reach"
        yield Picture("front", caption, partial(draw_front, cold[0], shown))
    for family, ops in FAMILIES.items():
        if some := [document for op in ops for document in cold if document["op"] == op and done(document["cases"])]:
            caption = f"{family}: the speed of gpuops over that of the reference and of the fastest other library"
            yield Picture(slug(family), caption, partial(draw_family, family, some))
    for document in cold:
        if document["op"] in CLIMBED:
            yield from plan_ladder(document, roofs)
    for document in documents:
        if document["mode"] == "host":
            yield Picture("host", "microseconds per call on tiny arrays", partial(draw_host, document))


def front(documents: list[Document]) -> list[tuple[str, Case]]:
    """The cases that users meet first, with their ops."""
    measured = {(each["op"], case["case"]): case for each in documents for case in done(each["cases"])}
    return [(op, measured[op, name]) for op, name in FRONT if (op, name) in measured]


def plan_ladder(document: Document, roofs: Roofs) -> Iterator[Picture]:
    """The pictures of an op's strategies."""
    op, unit = document["op"], document["unit"]
    climbed = [case for case in ladders(document["cases"]) if case["pick"] and len(strategies([case])) > 1]
    if climbed:
        caption = f"{op}: the ladder of strategies, {unit}"
        yield Picture(slug(op, "ladder"), caption, partial(draw_ladder, document, climbed))
    steps = [case for case in climbed if case["dtype"] == "float32" and rungs(case)]
    if op in READ and steps and all(roofs):
        caption = f"{op}: each rung of the ladder beside the memory limit, by the bytes that it asks for"
        yield Picture(slug(op, "roofline"), caption, partial(draw_rungs, document, steps, *roofs))


def glances(documents: list[Document]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What draws the picture of each op for the API's pages, of the documents of a machine."""
    for document in documents:
        cases = [case for case in document["cases"] if timed(case)]
        if document["mode"] == "cold" and peers(cases) and (found := met(cases))[1]:
            yield document["op"], partial(draw_glance, document, *found)


def names(documents: list[Document]) -> list[tuple[str, str]]:
    """Names and captions of the pictures of one machine's results."""
    return [(picture.name, picture.caption) for picture in plan(documents)]


def slug(*words: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", " ".join(words).lower())


FIRST_CALLS = Picture("first-calls", "seconds of mixes of calls whose shapes do not repeat", lambda: None)
ON_CPU = Picture("on-cpu", "NumPy arrays on the CPU: the speed of gpuops over that of NumPy or SciPy", lambda: None)


def drawn(machine: str, documents: list[Document]) -> list[Picture]:
    """All pictures of a machine's results."""
    measured = cold.found(machine)
    first = [FIRST_CALLS._replace(draw=partial(draw_first_calls, measured))] if measured else []
    return [*plan(documents), *first]


def main(arguments: list[str]) -> int:
    """Draw everything."""
    description = "Draw the pictures of the performance pages from the results files."
    found, output = published("plot", description, PICTURES, arguments)
    if not importlib.util.find_spec("matplotlib"):
        raise Unusable("pictures need matplotlib: pip install 'gpuops-cupy[bench]'")
    jobs = [(output / machine, drawn(machine, documents)) for machine, documents in found.items()]
    if cpus := on_cpu.found():
        widest = max(cpus.values(), key=on_cpu.most_threads)
        jobs.append((output, [ON_CPU._replace(draw=partial(draw_on_cpu, widest))]))
    for folder, pictures in jobs:
        prepare(folder)
        for picture in pictures:
            file = folder / f"{picture.name}.svg"
            write(file, svg(picture.draw, picture.caption))
            print(file)
    return 0
