"""The page of an op: what its measurements say, pictures, selected cases, groups, losses, what is missing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator

from . import plot
from .expressions import EXPRESSIONS
from .report_standing import Case, Tally, best_peer, done, losses, tally
from .report_text import FOLDER, REFERENCES, SHOWN, bullets, commits, counted, listed, on, picture, table, wrap
from .results import Document, timed
from .show import MISSING, cell, comparison, machine_name, ratio, refusals

BACK = "[All ops](../performance.md) · [how it was measured, and what the words mean](method.md)"
#: The guides to the kernels, but for those of reductions.
GUIDES = {
    "softmax": "softmax", "log_softmax": "softmax", "logsumexp": "softmax", "matmul": "matmul", "where": "broadcast",
    "expand": "broadcast", **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), "scan"),
    **dict.fromkeys(("nonzero", "compress"), "select"), **dict.fromkeys(EXPRESSIONS, "expressions"),
}  # fmt: skip
STANDINGS = ("faster", "even", "slower")
GROUPS = (
    "group, dtype", "cases", "of reference: median", "worst", "left out", "of best peer: median", "worst", *STANDINGS,
)  # fmt: skip


def op_page(op: str, found: dict[str, list[Document]]) -> str:
    """The page of an op, from its documents by machine's folder: those with data in memory, then in the cache."""
    documents = [document for every in found.values() for document in every]
    parts = [f"# {op}\n", *(wrap(sentence(document)) for document in documents)]
    parts.append(wrap(f"{BACK} · [its kernels](../kernels/{GUIDES.get(op, 'reduce')}.md)"))
    for folder, every in found.items():
        for document in every:
            parts += [f"## {heading(document)}\n", *section(folder, document)]
    return "\n".join(parts)


def heading(document: Document) -> str:
    return machine_name(document) + (", data in the cache" if document["mode"] == "hot" else "")


def sentence(document: Document) -> str:
    """The result of an op in words."""
    ours = tally(document["cases"])
    where = f"{on(document)}{', with data in the cache,' if document['mode'] == 'hot' else ','} `{document['op']}`"
    if not ours.cases:
        return f"{where} completed no case."
    names = dict.fromkeys(case["limit"]["name"] for case in done(document["cases"]))
    reference = listed((REFERENCES.get(name, name) for name in names), "or")
    text = (
        f"{where} runs at {statistics.median(ours.of_reference):.2f} times the speed of its reference, {reference}, in "
        f"the median of {counted(ours.cases, 'case')}, and at {min(ours.of_reference):.2f} times in the worst."
    )
    return f"{text} {beside_peers(ours)}"


def beside_peers(ours: Tally) -> str:
    """How an op stands beside the fastest other library, in words."""
    gains = ours.of_best_peer
    if not gains:
        return "No strong peer completed any of them."
    best = f"its speed is {statistics.median(gains):.2f} times that of the fastest other library"
    if len(gains) == 1:
        return f"In the one that a strong peer completed, {best}."
    words = listed(f"{word} in {ours.standings[word]}" for word in STANDINGS)
    return (
        f"In the {len(gains)} of them that a strong peer completed, {best} in the median, and {min(gains):.2f} times "
        f"at worst: gpuops is {words} of them."
    )


def section(folder: str, document: Document) -> Iterator[str]:
    """All about an op on a machine."""
    cases = [case for case in document["cases"] if "results" in case]
    if document["mode"] == "cold":
        yield from pictures(folder, document)
    yield from selection(document, [case for case in cases if case["pick"]])
    yield from groups(document, cases)
    yield from lost(document, cases)
    yield from missing(document)
    known = ", ".join(f"{name} {version}" for name, version in document["environment"]["versions"].items())
    yield wrap(f"Measured {document['date'][:10]}, {commits([document])}, with {known}.")


def pictures(folder: str, document: Document) -> Iterator[str]:
    """The op's pictures."""
    for name, caption in plot.names([document]):
        if name.startswith(f"{document['op']}-") and name != plot.slug(document["op"], plot.GLANCE):
            yield picture(folder, name, caption)


def selection(document: Document, cases: list[Case]) -> Iterator[str]:
    """The selected cases: a line each."""
    if not cases:
        return
    header, rows = comparison(cases)
    yield "### Selected cases\n"
    names = dict.fromkeys(case["limit"]["name"] for case in cases)
    said = listed((f"{REFERENCES.get(name, name)}{f' (*{name}*)' if len(names) > 1 else ''}" for name in names), "or")
    text = f"{document['unit']}; the reference is {said}."
    if left := tally(cases).left_out:
        text += (
            f" {left} of {counted(len(done(cases)), 'case')} have a dash for the best peer: no [strong "
            "peer](method.md#strong-peers) completed them, and they are in no median."
        )
    yield wrap(text)
    yield table(header, rows)


def groups(document: Document, cases: list[Case]) -> Iterator[str]:
    """All cases by group and dtype, and what the groups are."""
    members: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        members.setdefault((case["group"], case["dtype"]), []).append(case)
    yield "### Groups\n"
    yield wrap("All cases. Left out are those that no strong peer completed.")
    yield table(GROUPS, ([f"{name}, {dtype}", *verdict(tally(some))] for (name, dtype), some in members.items()))
    shown = {name for name, _ in members}
    yield bullets(f"*{name}*: {group['origin']}." for name, group in document["groups"].items() if name in shown)


def verdict(ours: Tally) -> list[str]:
    """The numbers of a group."""
    reference, peer = (middle_and_worst(values) for values in (ours.of_reference, ours.of_best_peer))
    standings = (str(ours.standings[word]) for word in STANDINGS)
    return [str(ours.cases), *reference, str(ours.left_out), *peer, *standings]


def middle_and_worst(values: list[float]) -> list[str]:
    return [ratio(statistics.median(values)), ratio(min(values))] if values else [MISSING, MISSING]


def lost(document: Document, cases: list[Case]) -> Iterator[str]:
    """The cases in which another library is faster."""
    if slow := losses(cases):
        worst = f" These are the {SHOWN} worst of them." if len(slow) > SHOWN else ""
        yield "### Losses\n"
        yield wrap(f"Slower than another library in {len(slow)} of {counted(len(cases), 'case')}.{worst}")
        header = ("case", f"gpuops, {document['unit']}", "best peer", "of best peer")
        yield table(header, [loss(case) for case in slow[:SHOWN]])


def loss(case: Case) -> list[str]:
    """A line about a case that gpuops loses."""
    best = best_peer(case)
    gain = timed(case)["gpuops"]["of_best_peer"]
    return [case["case"], cell(case, "gpuops"), f"{cell(case, best)} {best}", ratio(gain)]


def missing(document: Document) -> Iterator[str]:
    """What has no number, and why."""
    if lines := refusals(document["cases"]):
        yield "### Not measured\n"
        yield "\n".join(f"- {line}" for line in lines) + "\n"


def by_op(results: dict[str, list[Document]]) -> dict[str, dict[str, list[Document]]]:
    """The documents of each op, by machine's folder."""
    found: dict[str, dict[str, list[Document]]] = {}
    for folder, documents in results.items():
        for document in of_ops(documents):
            found.setdefault(document["op"], {}).setdefault(folder, []).append(document)
    return found


def of_ops(documents: Iterable[Document]) -> list[Document]:
    """The documents that are of one op each."""
    return [document for document in documents if document["mode"] in ("cold", "hot")]


def page_of(op: str) -> str:
    """The link to an op's page from the first page."""
    return f"[{op}]({FOLDER}/{op}.md)"
