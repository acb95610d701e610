"""``bench report``: docs/performance.md, and the tables of the guides in docs/kernels, from results files alone."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from gpuops.plan.rows import WARP_COLS, WARPS

from . import cold, issue_slots, on_cpu, plot
from .cases import HOST, STEPS
from .results import ROOT, Document, peers, published, rivals, timed, write
from .show import MISSING, cell, comparison, machine_name, ratio, refusals, scaling

PAGE = ROOT / "docs" / "performance.md"
KERNELS = PAGE.parent / "kernels"
PROFILES = ROOT / "benchmarks" / "profiles"
PROFILE = (
    "multiply-adds of all instructions", "issue slots used", "used by multiply-adds", "registers of a thread",
)  # fmt: skip
BEGIN, END = "<!-- bench report writes this table -->\n\n", "\n<!-- to here -->\n"
LOSSES = 10  # listed per op, the worst first

HEAD = """\
# Performance

This page is written by `python -m gpuops bench report` from the files in
[benchmarks/results](../benchmarks/results), and the pictures by `python -m gpuops bench plot`: no number is typed.
`make bench OP=softmax` measures an op on your own GPU.

## Method

Times are the GPU's own, between two events in its stream. Every call of a sample works on the next of a ring of arrays,
and its result stays until its turn comes again, so that results are a ring too: what is read is at least four times the
L2 cache before anything is read again. Arrays too small for that are used once per sample. The cache is emptied before
each sample: all data comes from memory. A kernel that only waits runs ahead until Python has launched all calls of the
sample, so the host's time does not count (it has a [table](#host-time) of its own). After a warm-up every library has
two turns over a case, the second in opposite order. A result is the median of all samples; its **noise** is their
interquartile range or the distance between the medians of the two turns, whichever is larger. Before it is timed, each
result is compared with a reference in double precision.

GB/s count every element of the operands and of the result once, whatever a kernel really moves. (Of `[:, ::2]`, half
of an array, memory delivers the other half too: there half of the limit is the most.) **Limit** is what the machine
does with the same number of bytes in the same run: a plain device-to-device copy; for reductions the sum of a whole
array by CUB; a memset where at least 95 % of the bytes are written; for matrix products cuBLAS. Small arrays reach a
smaller limit than large ones, and CUB's sum can be beaten: it takes two launches. **gpuops(max)** and **gpuops(sum)**
are gpuops' own maximum and sum of the same arrays: what another reduction of them should cost. **Of best peer** is
gpuops' speed over that of the fastest other library in the case: below 1, gpuops loses. Faster and slower: by more than
the noise.

JAX runs on a stream of its own: there a matrix product is what runs ahead, and events join the streams. A dash is a
library that does not have the op or was not run: torch.compile and JAX compile for each shape and run on selected cases
only. Where a library refuses a case, runs out of memory or computes something wrong, that is what the table says.
"""


def page(results: dict[str, list[Document]], cpus: dict[str, Document] | None = None) -> str:
    """The page, from the documents of each machine's folder, and those of NumPy arrays on processors."""
    parts = [HEAD]
    for folder, every in results.items():
        documents = [document for document in every if document["mode"] != "scaling"]  # which has a page of its own
        if not documents:
            continue
        parts += [f"## {machine_name(documents[0])}\n", environment(documents), summary(documents)]
        pictures = dict(plot.names(documents))
        if "roofline" in pictures:
            parts.append(picture(f"performance/{folder}", "roofline", pictures["roofline"]))
        for document in documents:
            if document["mode"] == "host":
                parts += ["### Host time\n", *host_section(folder, document, pictures), *first_calls(folder)]
            else:
                title = document["op"] + (", in the cache" if document["mode"] == "hot" else "")
                parts += [f"### {title}\n", *op_section(folder, document, pictures)]
    parts += on_cpu_section(cpus or {})
    return "\n".join(parts)


def environment(documents: list[Document]) -> str:
    """What was measured, on what, and when."""
    about = documents[0]["environment"]
    facts = [f"{about[key]}{unit}" for key, unit in ENVIRONMENT if key in about]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    dates = sorted(document["date"][:10] for document in documents)
    days = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    commits = ", ".join(dict.fromkeys(f"`{document['commit'][:12]}`" for document in documents))
    return f"{'; '.join(facts)}. Measured {days}, commits {commits}. Versions: {versions}.\n"


#: The facts that the page gives about a machine.
ENVIRONMENT = (
    ("multiprocessors", " multiprocessors"),
    ("clock_sm_mhz", " MHz under load"),
    ("clock_memory_mhz", " MHz memory clock"),
    ("power_limit_w", " W power limit"),
    ("driver", " driver"),
    ("system", ""),
)


def summary(documents: list[Document]) -> str:
    """A line per op."""
    rows = []
    for document in documents:
        if document["mode"] == "cold":
            rows.append([f"[{document['op']}](#{document['op']})", *verdict(document["cases"])])
    return table(("op", *VERDICT), rows)


VERDICT = ("cases", "of limit: median", "worst", "of best peer: median", "worst", "faster", "even", "slower")


def verdict(cases: Iterable[dict[str, Any]]) -> list[str]:
    """Statistics of gpuops over some cases; even is within the noise."""
    pairs = [(case, ours) for case in cases if (ours := timed(case).get("gpuops"))]
    if not pairs:
        return ["0", *[MISSING] * (len(VERDICT) - 1)]
    counts = Counter(standing(case) for case, _ in pairs)
    limits = [ours["of_limit"] for _, ours in pairs]
    gains = [ours["of_best_peer"] for _, ours in pairs if ours["of_best_peer"]]
    best = (statistics.median(gains), min(gains)) if gains else (None, None)
    ratios = [ratio(value) for value in (statistics.median(limits), min(limits), *best)]
    return [str(len(pairs)), *ratios, *(str(counts[word]) for word in ("faster", "even", "slower"))]


def standing(case: dict[str, Any]) -> str:
    """Whether gpuops is faster or slower than the best peer, or even: by less than the noise."""
    if not rivals(case):
        return "alone"
    ours, best = timed(case)["gpuops"], min(rivals(case).values(), key=lambda result: result["us"])
    noise = max(result[kind] for result in (ours, best) for kind in ("spread", "repeat"))
    gain = best["us"] / ours["us"] - 1
    return "even" if abs(gain) <= noise else "faster" if gain > 0 else "slower"


def op_section(folder: str, document: Document, pictures: dict[str, str]) -> Iterator[str]:
    """Everything about an op: groups, pictures, selected cases, losses, what is missing."""
    cases = [case for case in document["cases"] if "results" in case]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for case in cases:
        groups.setdefault((case["group"], case["dtype"]), []).append(case)
    rows = [[name, dtype, *verdict(members)] for (name, dtype), members in groups.items()]
    yield table(("group", "dtype", *VERDICT), rows)
    about = [f"*{name}*: {group['origin']}" for name, group in document["groups"].items()]
    yield f"{'. '.join(about)}.\n"
    if document["mode"] == "cold":
        for name, caption in pictures.items():
            if name.startswith(f"{document['op']}-"):
                yield picture(f"performance/{folder}", name, caption)
    yield f"Selected cases, {document['unit']}:\n"
    yield table(*comparison([case for case in cases if case["pick"]]))
    losses = sorted((c for c in cases if "gpuops" in timed(c) and standing(c) == "slower"), key=of_best_peer)
    if losses:
        worst = f", the {LOSSES} worst of them" if len(losses) > LOSSES else ""
        yield f"Slower than the best peer in {len(losses)} of {len(cases)} cases{worst}:\n"
        yield table(("case", "gpuops", "best peer", "of best peer"), [loss(case) for case in losses[:LOSSES]])
    if missing := refusals([case for case in document["cases"] if case["pick"] or "skipped" in case]):
        yield "Not measured, of the selected cases:\n"
        yield "\n".join(f"- {line}" for line in missing) + "\n"


def host_section(folder: str, document: Document, pictures: dict[str, str]) -> Iterator[str]:
    """The host time of calls on tiny arrays."""
    yield (
        "Microseconds per call on tiny arrays: launches only, waiting for the GPU once at the end. The limit is the "
        "launch of an empty kernel.\n"
    )
    if "host" in pictures:
        yield picture(f"performance/{folder}", "host", pictures["host"])
    for name, group in document["groups"].items():
        cases = [case for case in document["cases"] if case["group"] == name]
        more = name != HOST.name  # other groups than the calls on tiny arrays
        if cases and more:
            yield f"*{name}*: {group['origin']}.\n"
        if cases:
            yield table(*comparison([case for case in cases if "results" in case]))
        if missing := more and refusals(cases):
            yield "\n".join(f"- {line}" for line in missing) + "\n"


def first_calls(folder: str) -> Iterator[str]:
    """Mixes of calls from an empty cache of kernels, if they were measured on the machine."""
    if (document := cold.found(folder)) is not None:
        yield "### First calls\n"
        yield cold.about(document)
        yield picture(f"performance/{folder}", plot.FIRST_CALLS.name, plot.FIRST_CALLS.caption)
        yield table(cold.HEAD, cold.lines(document))


def on_cpu_section(documents: dict[str, Document]) -> Iterator[str]:
    """NumPy arrays, if they were measured anywhere."""
    if documents:
        yield "## On the CPU\n"
        yield (
            "NumPy arrays, in the cache where they fit into it, on one thread and on all cores, beside NumPy (SciPy "
            "for softmax and its like), PyTorch and numexpr on as many threads: their times over that of gpuops. The "
            "limit is a copy of as many bytes on as many threads; for reductions a maximum of as many integers of 8 "
            "bytes.\n"
        )
        yield picture("performance", plot.ON_CPU.name, plot.ON_CPU.caption)
    for document in documents.values():
        yield on_cpu.about(document)
        yield table(on_cpu.HEAD, on_cpu.lines(document))
        if slow := on_cpu.losses(document):
            count = f"{len(slow)} of {len(document['rows'])} cases"
            worst = f", the {LOSSES} worst of them" if len(slow) > LOSSES else ""
            yield f"Slower than NumPy or SciPy by more than {on_cpu.NOISE:.0%} in {count}{worst}:\n"
            yield table(("case", "of NumPy or SciPy"), [[case, ratio(gain)] for gain, case in slow[:LOSSES]])


def of_best_peer(case: dict[str, Any]) -> float:
    return timed(case)["gpuops"]["of_best_peer"]


def loss(case: dict[str, Any]) -> list[str]:
    """A line about a case that gpuops loses."""
    best = max(peers([case]), key=lambda name: timed(case)[name]["speed"])
    return [case["case"], cell(case, "gpuops"), f"{cell(case, best)} {best}", ratio(of_best_peer(case))]


def picture(folder: str, name: str, caption: str) -> str:
    return f"![{caption}]({folder}/{name}.svg)\n"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table: text to the left in the first column, numbers to the right."""
    header = list(header)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def guide(op: str, text: str, results: dict[str, list[Document]]) -> str:
    """A guide with its table written from the results of an op, of the host or of several GPUs."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the guide to {op} lacks a line of two: {BEGIN.strip()!r}, {END.strip()!r}")
    _, written = GUIDES[op]
    tables = [
        written(folder, document)
        for folder, documents in results.items()
        for document in documents
        if (document["op"], document["mode"]) == (op, op if op in ("host", "scaling") else "cold")
    ]
    return before + begin + ("\n".join(filter(None, tables)) or "Not measured yet.\n") + end + after


def crossings(folder: str, document: Document) -> str:
    """The row length from which a block is faster than a warp, for each pack size; "" if not measured."""
    group = "warp or block"
    by_dtype: dict[str, list[dict[str, Any]]] = {}
    for case in document["cases"]:
        if case["group"] == group and any(f"gpuops {name}" in timed(case) for name in WARPS):
            by_dtype.setdefault(case["dtype"], []).append(case)
    rows = [[name, str(pack), *(crossing(cases, name) for cases in by_dtype.values())] for name, pack in WARPS.items()]
    if not by_dtype:
        return ""
    drawn = picture(f"../performance/{folder}", plot.slug("softmax", group), "softmax: warps and blocks, by row length")
    heading = f"{machine_name(document)}, results of {document['date'][:10]}:\n"
    return "\n".join((drawn, heading, table(("strategy", "elements of a pack", *by_dtype), rows)))


def crossing(cases: list[dict[str, Any]], warp: str) -> str:
    """The shortest row from which on the best block strategy is always faster than that warp strategy."""
    shortest = f"not up to {WARP_COLS}"
    for case in sorted(cases, key=plot.ALONG["row length"], reverse=True):
        found = timed(case)
        blocks = [name for name in found if name.startswith("gpuops block")]
        best = min(blocks, key=lambda name: found[name]["us"], default="")
        ours = found.get(f"gpuops {warp}")
        if not ours or not best or found[best]["us"] >= ours["us"]:
            break
        shortest = f"{plot.ALONG['row length'](case)} ({best.removeprefix('gpuops ')})"
    return shortest


#: Shares of cuBLAS that a ladder of the same seven steps reaches on an NVIDIA A10, at n = 4092.
REFERENCE = {
    "naive": 0.039, "coalesced": 0.079, "shared": 0.146, "blocktile_1d": 0.412, "blocktile_2d": 0.764,
    "vectorized": 0.871, "warptile": 1.0,
}  # fmt: skip


def rates(folder: str, document: Document) -> str:
    """The speed of each matmul strategy, beside the reference ladder; "" if not measured."""
    found = {case["operands"][0]["shape"][0]: timed(case) for case in document["cases"] if case["group"] == "squares"}
    climbed = {n: results for n, results in found.items() if "gpuops naive" in results}
    if not climbed:
        return ""
    names = [name.removeprefix("gpuops ") for name in next(iter(climbed.values())) if name.startswith("gpuops ")]
    rows = []
    for name in names:
        cells = (climbed[n][f"gpuops {name}"] for n in climbed)
        reference = f"{REFERENCE[name]:.1%}" if name in REFERENCE else MISSING
        rows.append([name, *(f"{cell['speed']:.3g} ({cell['of_limit']:.1%})" for cell in cells), reference])
    heading = f"{machine_name(document)}, results of {document['date'][:10]}: TFLOP/s, and the share of cuBLAS:\n"
    made = [heading, table(("strategy", *(f"n = {n}" for n in climbed), "reference, n = 4092"), rows)]
    profile = PROFILES / folder / "matmul.csv"
    if profile.exists():
        made += [
            f"What Nsight Compute counts at n = {issue_slots.N} ([issue_slots.py](../../benchmarks/issue_slots.py)):\n",
            table(("kernel", *PROFILE), issue_slots.rows(profile)),
        ]
    return "\n".join(made)


def budget(folder: str, document: Document) -> str:
    """The times of a cached call and of its steps, each timed alone; "" if not measured."""
    steps = [case for case in document["cases"] if case["group"] == STEPS.name and "gpuops" in timed(case)]
    if not steps:
        return ""
    rows = [[case["case"].rpartition(", ")[2], f"{timed(case)['gpuops']['us']:.2f}"] for case in steps]
    heading = f"`{steps[0]['op']}`, {machine_name(document)}, results of {document['date'][:10]}:\n"
    return "\n".join([heading, table(("step", "µs"), rows)])


def scaled(folder: str, document: Document) -> str:
    """The speed of several GPUs beside one, by group; "" if not measured."""
    parts = [
        f"{machine_name(document)}, results of {document['date'][:10]}: {document['unit']} of one GPU and of all, each "
        "with as much data; then, with all of them, the tasks, the time from the start of the first to the end of the "
        "last and the time that the client waited; and how long a GPU has nothing to do, for each task.\n"
    ]
    for name, group in document["groups"].items():
        if cases := [case for case in document["cases"] if case["group"] == name]:
            parts += [f"*{name}*: {group['origin']}.\n", table(*scaling([case for case in cases if "results" in case]))]
            parts += ["\n".join(f"- {line}" for line in missing) + "\n"] if (missing := refusals(cases)) else []
    return "\n".join(parts) if document["cases"] else ""


#: The guides that have a table, and what writes it, by op.
GUIDES = {
    "softmax": (KERNELS / "softmax.md", crossings),
    "matmul": (KERNELS / "matmul.md", rates),
    "host": (PAGE.parent / "architecture.md", budget),
    "scaling": (PAGE.parent / "scaling.md", scaled),
}


def main(arguments: list[str]) -> int:
    """Write the page and, if it is the published one, the tables of the guides."""
    found, file = published("report", "Write the performance page from the results files.", PAGE, arguments)
    texts = {file: page(found, on_cpu.found())}
    if file == PAGE:
        for op, (path, _) in GUIDES.items():
            texts[path] = guide(op, path.read_text(encoding="utf-8"), found)
    for path, text in texts.items():
        write(path, text)
        print(path)
    return 0
