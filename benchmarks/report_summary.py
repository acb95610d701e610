"""The first page: what the measurements say, on every machine and on each, and when gpuops is not for you."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from . import cold, on_cpu, plot
from .cases import COMPILED_BEFORE, FIRST_USE, HOST, NEW_SHAPES, NOTHING_COMPILED
from .report_families import COLUMNS, STANDINGS, by_family, link, numbers, page_of
from .report_more import medians, of_group
from .report_standing import Case, best_peer, counts, done, losses, standing, tally
from .report_text import FOLDER, bullets, counted, glossary, listed, milliseconds, on, picture, table, wrap
from .results import Document, timed
from .show import digits, machine_name

HEAD = """\
# Performance

How fast each op is, where gpuops loses, and how to measure it on your own GPU. `python -m gpuops bench report` writes
this page and those that it links; every number comes from the files in [benchmarks/results](../benchmarks/results).
"""
LEGEND = (
    "Speeds of gpuops over those of others: above 1, gpuops is faster. **Of reference**: of a plain operation that "
    "moves as many bytes (a copy, a memset, CUB's sum); for `matmul` of cuBLAS. **Of best peer**: of the fastest other "
    "library in each case that a [strong peer](performance/method.md#strong-peers) completed. Only differences beyond "
    "the noise count as faster or slower."
)
#: Large arrays of float32 that stand for an op.
EXAMPLES = (
    ("softmax", "float32 65536×1024 axis 1"),
    ("sum", "float32 268435456"),
    ("where", "float32 8192×8192, 8192×8192, 8192×8192"),
)
PRODUCT = "float32 4096×4096, 4096×4096"
EVEN = 1.02  # a median gain over other libraries up to this is none
#: What adds floats up exactly and rounds once (docs/exact.md).
EXACT = (
    "sum", "nansum", "mean", "nanmean", "var", "std", "nanvar", "nanstd", "mean_var", "average", "sum_of_squares",
    "vector_norm", "dot", "cumsum",
)  # fmt: skip
FAR = 0.5  # below this share of its reference, a case is far from it
NAMED = 5  # examples in a sentence

#: The pages beside those of the families, and what they have.
PAGES = (
    (
        f"[Host time]({FOLDER}/host.md)",
        "how long a call on tiny arrays keeps the host busy, with new shapes, in CUDA graphs, with tensors",
    ),
    (
        f"[First calls]({FOLDER}/first-calls.md)",
        "imports, the first call of a process, programs whose shapes do not repeat",
    ),
    (f"[On the CPU]({FOLDER}/on-cpu.md)", "NumPy arrays, beside NumPy, SciPy, PyTorch and numexpr"),
    (f"[Method]({FOLDER}/method.md)", "how all this was measured, what the words mean, the machine, the versions"),
    ("[Scaling](scaling.md)", "Dask arrays, on one GPU and on several"),
    ("[Accuracy](accuracy.md)", "the errors of sums, products and softmaxes"),
)
MEASURE = """\
## Measure it yourself

```sh
make bench OP=softmax    # an op, or without OP all of them, against CuPy and a plain copy
make bench OP='sum --quick' PEERS='torch jax[cuda13] quack-kernels'    # installs these libraries too
```

It prints a table and saves the results in `benchmarks/results`. `python -m gpuops bench report --output DIR` and
`python -m gpuops bench plot --output DIR/performance` make pages and pictures like these from them, and
`python -m gpuops bench compare OLD.json NEW.json` shows what moved between two results files.
"""


def first_page(results: dict[str, list[Document]], cpus: dict[str, Document]) -> str:
    """The first page, from the documents of each machine's folder and those of processors."""
    parts = [HEAD, *everywhere([measured(every) for every in results.values()])]
    for folder, every in results.items():
        if not (documents := measured(every)):
            continue
        pictures = dict(plot.names(every))
        parts += [f"## {machine_name(documents[0])}\n", bullets(meaning(every))]
        if "roofline" in pictures:
            parts.append(picture(f"{FOLDER}/{folder}", "roofline", pictures["roofline"]))
        parts += ["### When gpuops is not for you\n", bullets(limits(folder, every, cpus))]
        parts += ["### All families\n", wrap(LEGEND), summary(folder, documents)]
    return "\n".join([*parts, "## The other pages\n", glossary("page", "what it has", PAGES), MEASURE])


def measured(documents: list[Document]) -> list[Document]:
    """The documents of ops, with data in memory."""
    return [document for document in documents if document["mode"] == "cold"]


def everywhere(machines: list[list[Document]]) -> Iterator[str]:
    """What holds on every machine, if there are several."""
    machines = [documents for documents in machines if documents]
    if len(machines) < 2:
        return
    by_name = [
        {(each["op"], case["case"]): case for each in documents for case in done(each["cases"]) if counts(case)}
        for documents in machines
    ]
    shared = [name for name in by_name[0] if all(name in found for found in by_name)]
    standings = {name: {standing(found[name]) for found in by_name} for name in shared}
    won, lost = ([name for name in shared if standings[name] == {word}] for word in ("faster", "slower"))
    names = listed(f"an {machine_name(documents[0])}" for documents in machines)
    yield "## On every GPU that was measured\n"
    yield wrap(
        f"Of {len(shared)} cases that a [strong peer]({FOLDER}/method.md#strong-peers) completed on {names}, gpuops is "
        f"faster than every other library in {len(won)} on all of them, and slower than one in {len(lost)} on all of "
        "them."
    )
    yield bullets(f"{page_of(op)} `{case}`" for op, case in lost)


def summary(folder: str, documents: list[Document]) -> str:
    """A line per family."""
    of_families = {family: found[folder] for family, found in by_family({folder: documents}).items()}
    cases = {name: [case for each in found for case in each["cases"]] for name, found in of_families.items()}
    head = ("family", COLUMNS[1], *COLUMNS[3:])
    return table(head, ([link(name, name), *numbers(tally(found))] for name, found in cases.items()))


def quartiles(values: list[float]) -> str:
    """Between which values the middle half lies."""
    low, _, high = statistics.quantiles(values) if len(values) > 1 else values * 3
    return f"{low:.2f} and {high:.2f}"


# ----------------------------------------------------------------------------------------------- what the results mean


def meaning(documents: list[Document]) -> Iterator[str]:
    """What the measurements of a machine say in plain words."""
    ops = measured(documents)
    yield memory(ops)
    yield products(ops)
    yield peers_said(ops)
    yield cupy_said(ops)
    for document in documents:
        if document["mode"] == "host" and (calls := done(of_group(document, HOST.name))):
            yield f"**The host's time** of a call on tiny arrays: in the median {medians(calls)}."


def memory(documents: list[Document]) -> str:
    """How near to the speed of memory."""
    moved = [document for document in documents if document["unit"] == "GB/s"]
    shares = [gain for document in moved for gain in tally(document["cases"]).of_reference]
    if not shares:
        return ""
    found = [
        f"{page_of(op)} {digits(timed(case)['gpuops']['speed'])} GB/s"
        for op, label in EXAMPLES
        for document in moved
        for case in done(document["cases"])
        if (document["op"], case["case"]) == (op, label)
    ]
    most = max(case["limit"]["speed"] for document in moved for case in done(document["cases"]))
    examples = f" Large float32 arrays: {', '.join(found)}; the fastest reference: {digits(most)}." if found else ""
    return (
        f"**Memory is what limits most ops**, and gpuops runs at its speed: between {quartiles(shares)} times that of "
        f"a plain operation on as many bytes (a copy, a memset, CUB's sum) in the middle half of {len(shares)} cases."
        f"{examples}"
    )


def products(documents: list[Document]) -> str:
    """How near to the speed of arithmetic."""
    peak = documents[0]["environment"].get("fp32_tflops") if documents else None
    for document in documents:
        for case in done(document["cases"]):
            if peak and (document["op"], case["case"]) == ("matmul", PRODUCT):
                speed = timed(case)["gpuops"]["speed"]
                return (
                    f"**Arithmetic limits matrix products**: {page_of('matmul')} of `{PRODUCT}` reaches "
                    f"{digits(speed)} TFLOP/s, {speed / peak:.2f} of what the machine can do; cuBLAS "
                    f"{digits(case['limit']['speed'])}."
                )
    return ""


def peers_said(documents: list[Document]) -> str:
    """How gpuops stands beside the fastest other library."""
    tallies = {document["op"]: tally(document["cases"]) for document in documents}
    every = tally(case for document in documents for case in document["cases"])
    medians = {op: statistics.median(ours.of_best_peer) for op, ours in tallies.items() if ours.of_best_peer}
    if not medians:
        return "**Other libraries.** No strong peer ran."
    low, high = min(medians, key=lambda op: medians[op]), max(medians, key=lambda op: medians[op])
    words = listed(f"{word} in {every.standings[word]}" for word in STANDINGS)
    return (
        f"**The fastest other library** of each case: gpuops is {words} (a difference within the noise is even), of "
        f"the {len(every.of_best_peer)} cases that a [strong peer]({FOLDER}/method.md#strong-peers) completed. The "
        f"medians of the ops lie between {medians[low]:.2f} ({page_of(low)}) and {medians[high]:.2f} "
        f"({page_of(high)}) times the speed of that library."
    )


def cupy_said(documents: list[Document]) -> str:
    """How gpuops stands beside CuPy."""
    gains = {document["op"]: tally(document["cases"]).of_cupy for document in documents}
    every = [gain for values in gains.values() for gain in values]
    if not every:
        return ""
    faster = sum(gain > 1 for gain in every)
    return (
        f"**CuPy itself**: {statistics.median(every):.1f} times its speed in the median of {len(every)} cases, between "
        f"{quartiles(every)} in the middle half; faster in {faster} of them."
    )


def in_short(folder: str, documents: list[Document]) -> str:
    """What the measurements say in a sentence and a picture, for the home page; "" if there are none."""
    ops = measured(documents)
    tallies = [tally(document["cases"]) for document in ops]
    moved = [ours for ours, document in zip(tallies, ops, strict=True) if document["unit"] == "GB/s"]
    cupy = [gain for ours in tallies for gain in ours.of_cupy]
    reference = [gain for ours in moved for gain in ours.of_reference]
    if not (cupy and reference):
        return ""
    sentence = (
        f"{on(ops[0])}, gpuops is **{statistics.median(cupy):.1f} times as fast as CuPy** in the median of "
        f"{len(cupy)} cases, and runs **at the speed of memory**: in the median of {len(reference)} cases at "
        f"{statistics.median(reference):.2f} times the speed of a plain copy, read or write of as many bytes."
    )
    drawn = [picture(f"{FOLDER}/{folder}", name, text) for name, text in plot.names(documents) if name == "front"]
    return "\n".join([wrap(sentence), *drawn])


# ----------------------------------------------------------------------------------------- when gpuops is not for you


def limits(folder: str, documents: list[Document], cpus: dict[str, Document]) -> Iterator[str]:
    """The measurements that speak against gpuops."""
    cases = {document["op"]: document["cases"] for document in documents if document["mode"] == "cold"}
    yield even(cases)
    yield exact(cases)
    yield lost(cases)
    yield far(cases)
    for document in documents:
        if document["mode"] == "host":
            yield tiny(document)
            yield compiled(folder, document)
    yield only_here(documents)
    yield on_processors(cpus)


def even(cases: dict[str, list[Case]]) -> str:
    """The ops in which other compiled kernels are as fast."""
    found = {op: statistics.median(gains) for op, some in cases.items() if (gains := tally(some).of_best_peer)}
    names = [f"{page_of(op)} ({gain:.2f})" for op, gain in found.items() if gain <= EVEN]
    if not names:
        return ""
    return (
        f"**You compile already.** In the median another library is about as fast, or faster, in {listed(names)}. In "
        "brackets: the speed of gpuops over that of the fastest other library."
    )


def exact(cases: dict[str, list[Case]]) -> str:
    """What it costs that sums are exact."""
    found: dict[bool, list[float]] = {True: [], False: []}
    for op, some in cases.items():
        for case in some:
            floats = not case["dtype"].startswith(("int", "uint", "bool"))
            found[op in EXACT and floats] += tally([case]).of_best_peer
    ours, others = found[True], found[False]
    if not (ours and others):
        return ""
    met = counted(len(ours), "case")
    return (
        f"**You do not need exact sums.** {listed(f'`{op}`' for op in EXACT)} of floats are [exact](exact.md): they "
        "take more arithmetic than the sums of other libraries, which round at every step. In the median gpuops has "
        f"{statistics.median(ours):.2f} times the speed of the fastest other library in the {met} of these "
        f"that a strong peer completed, and {statistics.median(others):.2f} times in the {len(others)} other cases."
    )


def lost(cases: dict[str, list[Case]]) -> str:
    """The cases in which another library is faster."""
    slow = sorted(
        ((timed(case)["gpuops"]["of_best_peer"], op, case) for op, some in cases.items() for case in losses(some)),
        key=lambda found: found[:2],
    )
    if not slow:
        return ""
    shown = slow[:NAMED]
    named = [f"{page_of(op)} `{case['case']}` {gain:.2f} ({best_peer(case)})" for gain, op, case in shown]
    total = sum(len(done(some)) for some in cases.values())
    which = "the worst are" if len(slow) > NAMED else "these are"
    return f"**You need one of the cases that lose**: {len(slow)} of {total} do; {which} {listed(named)}."


def far(cases: dict[str, list[Case]]) -> str:
    """The cases that are far from their reference: the worst of each op."""
    every = [(timed(case)["gpuops"]["of_limit"], op, case) for op, some in cases.items() for case in done(some)]
    slow = sorted((found for found in every if found[0] < FAR), key=lambda found: found[:2])
    if not slow:
        return ""
    worst: dict[str, tuple[float, Case]] = {}
    for share, op, case in slow:
        worst.setdefault(op, (share, case))
    named = [f"{page_of(op)} `{case['case']}` {share:.2f}" for op, (share, case) in [*worst.items()][:NAMED]]
    return (
        f"**Your shape or layout is a hard one.** In {len(slow)} of {len(every)} cases gpuops is below half the speed "
        f"of its reference; the worst case of each op: {listed(named)}."
    )


def tiny(document: Document) -> str:
    """The calls in which another library keeps the host for less time."""
    calls, new = (done(of_group(document, group.name)) for group in (HOST, NEW_SHAPES))
    met = [case for case in calls if "torch" in timed(case)]
    slow = [case for case in met if timed(case)["torch"]["us"] < timed(case)["gpuops"]["us"]]
    if not slow:
        return ""
    worst = min(slow, key=of_torch)
    text = (
        f"**Your arrays are tiny, and PyTorch is at hand.** There the [host's time]({FOLDER}/host.md) decides, and "
        f"PyTorch's is shorter in {len(slow)} of {len(met)} calls: in the worst, `{worst['op']} {worst['case']}`, "
        f"gpuops takes {1 / of_torch(worst):.2f} times as long."
    )
    if fresh := [1 / of_torch(case) for case in new if "torch" in timed(case)]:
        text += f" If no shape repeats, gpuops takes {statistics.median(fresh):.1f} times as long as PyTorch (median)."
    return text


def of_torch(case: Case) -> float:
    """The speed of gpuops over that of PyTorch."""
    found = timed(case)
    return float(found["torch"]["us"] / found["gpuops"]["us"])


def compiled(folder: str, document: Document) -> str:
    """What first calls cost."""
    first = {case["case"]: case for case in done(of_group(document, FIRST_USE.name)) if case["op"] == "softmax"}
    times = [
        milliseconds(timed(case)["gpuops"]["us"])
        for words in (NOTHING_COMPILED, COMPILED_BEFORE)
        for name, case in first.items()
        if words in name
    ]
    said = f" The first `softmax` of a process takes {' ms, with kernels on disk '.join(times)} ms." if times else ""
    mixes = cold.found(folder)
    rows = {(row["mix"], row["library"]): row for row in mixes["rows"] if "seconds" in row} if mixes else {}
    ours, torch = rows.get(("six ops", "gpuops")), rows.get(("six ops", "torch"))
    if ours and torch:
        said += (
            f" {ours['calls']} calls of random shapes take {ours['seconds']:.1f} s, or {ours['again']:.1f} s with "
            f"kernels on disk; PyTorch, which compiles nothing, takes {torch['seconds']:.1f} s for the "
            f"{torch['calls'] - torch['refused']} of them that it supports."
        )
    begin = f"**Your program runs once and briefly.** [First calls]({FOLDER}/first-calls.md) compile."
    return begin + said if said else ""


def only_here(documents: list[Document]) -> str:
    """On what the numbers were measured."""
    return (
        f"**You have another GPU, or none.** The kernels are CUDA, for NVIDIA GPUs alone; these numbers are from one "
        f"machine, {machine_name(documents[0])}."
    )


def on_processors(documents: dict[str, Document]) -> str:
    """What NumPy arrays lose."""
    texts = []
    for document in documents.values():
        cores = on_cpu.most_threads(document)
        slow, of = len(on_cpu.losses(document)), len(on_cpu.gains(document["rows"], on_cpu.REFERENCES))
        ahead = on_cpu.behind(document, ("torch",), cores)
        names = listed(f"`{op}` ({gain:.2f} of its speed)" for gain, op in ahead) if ahead else ""
        texts.append(
            f"on {document['machine']} ({counted(cores, 'core')}), NumPy or SciPy is faster in {slow} of {of} cases"
            f"{f', and PyTorch is faster in the median in {names}' if ahead else ''}"
        )
    if not texts:
        return ""
    return f"**You have NumPy arrays.** They are computed [on the CPU]({FOLDER}/on-cpu.md): {'; '.join(texts)}."
