"""The page of a family of ops: for each machine a picture, a table, and the cases that another library wins."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from . import plot
from .cases import FAMILIES, family_of
from .report_standing import Case, Tally, best_peer, done, losses, tally
from .report_text import (
    FOLDER,
    REFERENCES,
    SHOWN,
    bullets,
    commits,
    counted,
    listed,
    on,
    parts_of,
    picture,
    table,
    wrap,
)  # fmt: skip
from .results import Document, timed
from .show import MISSING, machine_name, ratio

BACK = "[All families](../performance.md) · [how it was measured, and what the words mean](method.md)"
#: The guides to the kernels of each family.
GUIDES = {
    "Maps": "broadcast", "Softmax": "softmax", "Products": "matmul", "Scans": "scan", "Expressions": "expressions",
}  # fmt: skip
STANDINGS = ("faster", "even", "slower")
COLUMNS = (
    "op, dtype", "cases", "maximum", "of reference: median", "of reference: worst", "of CuPy: median",
    "of best peer: median", "of best peer: worst", "faster in", "slower in",
)  # fmt: skip


def family_page(family: str, found: dict[str, list[Document]]) -> str:
    """The page of a family, from the documents of its ops by machine's folder."""
    guide = GUIDES.get(family, "reduce")
    ops = listed(f"`{op}`" for op in FAMILIES[family])
    head = [f"# {family}\n", wrap(f"How fast {ops} are."), wrap(f"{BACK} · [the kernels](../kernels/{guide}.md)")]
    sections = {machine_name(documents[0]): section(family, folder, documents) for folder, documents in found.items()}
    return "\n".join([*head, parts_of({name: "\n".join(texts) for name, texts in sections.items()})])


def section(family: str, folder: str, documents: list[Document]) -> Iterator[str]:
    """All about a family on a machine."""
    cases = [case for document in documents for case in document["cases"] if "results" in case]
    yield wrap(sentence(documents[0], cases))
    yield from (picture(folder, name, caption) for name, caption in plot.names(documents) if name == plot.slug(family))
    unit = f"speeds are in {listed(dict.fromkeys(document['unit'] for document in documents))}"
    yield wrap(f"Maximum: the highest speed; {unit}. Faster in: of the cases that a strong peer completed.")
    yield table(COLUMNS, rows(documents))
    yield from lost(cases)
    yield wrap(f"Measured {documents[0]['date'][:10]}, {commits(documents)}.")


def sentence(document: Document, cases: list[Case]) -> str:
    """The result of a family in words."""
    ours = tally(cases)
    if not ours.cases:
        return f"{on(document)}, no case was completed."
    names = dict.fromkeys(case["limit"]["name"] for case in done(cases))
    reference = listed((REFERENCES.get(name, name) for name in names), "or")
    return (
        f"{on(document)}, these ops run at {statistics.median(ours.of_reference):.2f} times the speed of their "
        f"reference ({reference}), in the median of {counted(ours.cases, 'case')}. {beside_peers(ours)}"
    )


def beside_peers(ours: Tally) -> str:
    """How gpuops stands beside the fastest other library, in words."""
    gains = ours.of_best_peer
    if not gains:
        return "No strong peer completed any of them."
    words = listed(f"{word} in {ours.standings[word]}" for word in STANDINGS)
    return (
        f"Compared with the fastest other library, gpuops is {words}, of the {len(gains)} cases that a [strong "
        f"peer](method.md#strong-peers) completed: {statistics.median(gains):.2f} times as fast in the median, "
        f"{min(gains):.2f} times at worst."
    )


def rows(documents: list[Document]) -> Iterator[list[str]]:
    """A line for each op and dtype."""
    for document in documents:
        members: dict[str, list[Case]] = {}
        for case in done(document["cases"]):
            members.setdefault(case["dtype"], []).append(case)
        for dtype, cases in members.items():
            most = max(timed(case)["gpuops"]["speed"] for case in cases)
            yield [f"`{document['op']}` {dtype}", *numbers(tally(cases), f"{most:.0f}")]


def numbers(ours: Tally, most: str | None = None) -> list[str]:
    """The numbers of some cases."""
    reference, peer = ((median(values), worst(values)) for values in (ours.of_reference, ours.of_best_peer))
    speed = [] if most is None else [most]
    won = f"{ours.standings['faster']} of {len(ours.of_best_peer)}" if ours.of_best_peer else MISSING
    return [str(ours.cases), *speed, *reference, median(ours.of_cupy), *peer, won, str(ours.standings["slower"])]


def median(values: list[float]) -> str:
    return ratio(statistics.median(values)) if values else MISSING


def worst(values: list[float]) -> str:
    return ratio(min(values)) if values else MISSING


def lost(cases: list[Case]) -> Iterator[str]:
    """The cases in which another library is faster, the worst first."""
    if slow := losses(cases):
        which = f"the {SHOWN} worst of them" if len(slow) > SHOWN else "these"
        yield wrap(f"Slower than another library in {len(slow)} of {counted(len(done(cases)), 'case')}, {which}:")
        yield bullets(loss(case) for case in slow[:SHOWN])


def loss(case: Case) -> str:
    """A line about a case that gpuops loses."""
    return f"`{case['op']}` `{case['case']}`: {ratio(timed(case)['gpuops']['of_best_peer'])} of {best_peer(case)}"


def by_family(results: dict[str, list[Document]]) -> dict[str, dict[str, list[Document]]]:
    """The documents of each family, by machine's folder, in the order of its ops."""
    found: dict[str, dict[str, list[Document]]] = {}
    for family, ops in FAMILIES.items():
        for folder, documents in results.items():
            of_ops = {document["op"]: document for document in documents if document["mode"] == "cold"}
            if some := [of_ops[op] for op in ops if op in of_ops]:
                found.setdefault(family, {})[folder] = some
    return found


def page_of(op: str) -> str:
    """The link from the first page to the page that an op is on."""
    return link(op, family_of(op))


def link(text: str, family: str) -> str:
    """A link from the first page to the page of a family."""
    return f"[{text}]({FOLDER}/{plot.slug(family)}.md)"
