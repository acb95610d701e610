"""The pages beside those of the families: the host's time, first calls, the CPU."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from . import cold, on_cpu, plot
from .cases import FAMILIES, FIRST_USE, HOST, family_of
from .report_families import BACK
from .report_standing import Case, done, standing
from .report_text import NAMES, SHOWN, commits, counted, listed, milliseconds, on, picture, table, wrap
from .results import Document, peers, timed
from .show import MISSING, comparison, machine_name, ratio, refusals


def host_page(results: dict[str, list[Document]]) -> str:
    """The host time of calls on tiny arrays."""
    found = [(folder, document) for folder, every in results.items() for document in every if is_host(document)]
    parts = [
        "# Host time\n",
        wrap(
            "How long a call occupies the host: launches only, waiting for the GPU once at the end. It decides where "
            "arrays are tiny. Times are microseconds per call; the reference is the launch of an empty kernel."
        ),
        *(wrap(host_sentence(document)) for _, document in found),
        f"{BACK}\n",
    ]
    for folder, document in found:
        parts += [f"## {machine_name(document)}\n", *host_section(folder, document)]
    return "\n".join(parts)


def is_host(document: Document) -> bool:
    return bool(document["mode"] == "host")


def of_group(document: Document, name: str) -> list[Case]:
    return [case for case in document["cases"] if case["group"] == name]


def medians(cases: list[Case]) -> str:
    """The median microseconds of gpuops, and how many times as long each other library takes in the cases of both."""
    texts: list[str] = []
    for name in peers(cases):
        times = [found[name]["us"] / found["gpuops"]["us"] for case in cases if name in (found := timed(case))]
        verb = "" if texts else "takes "
        texts.append(f"{NAMES.get(name, name)} {verb}{statistics.median(times):.2f} times{'' if texts else ' as long'}")
    ours = f"gpuops takes {statistics.median(timed(case)['gpuops']['us'] for case in cases):.1f} µs"
    return f"{ours}; {listed(texts)}" if texts else ours


def host_sentence(document: Document) -> str:
    """What the host's times say."""
    cases = done(of_group(document, HOST.name))
    if not cases:
        return ""
    slow = sum(standing(case) == "slower" for case in cases)
    return (
        f"{on(document)}, in the median of {counted(len(cases), 'call')}, {medians(cases)}. Another library is faster "
        f"in {slow} of the {len(cases)}, by more than the noise."
    )


def host_section(folder: str, document: Document) -> Iterator[str]:
    """Tables of the families of ops, and of the other groups but first calls, which have a page of their own."""
    pictures = dict(plot.names([document]))
    if "host" in pictures:
        yield picture(folder, "host", pictures["host"])
    for name, group in document["groups"].items():
        cases = of_group(document, name)
        if not cases or name == FIRST_USE.name:
            continue
        measured = [case for case in cases if "results" in case]
        if name == HOST.name:
            yield from family_tables(measured)
        else:
            yield f"### {name.capitalize()}\n"
            yield wrap(f"*{name}*: {group['origin']}.")
            yield table(*comparison(measured))
        if lines := refusals(cases):
            yield "\n".join(f"- {line}" for line in lines) + "\n"
    yield when(document)


def family_tables(cases: list[Case]) -> Iterator[str]:
    """A table per family: each has the libraries that have its ops."""
    for family in FAMILIES:
        if found := [case for case in cases if family_of(case["op"]) == family]:
            yield f"### {family}\n"
            yield table(*comparison(found))


def when(document: Document) -> str:
    return wrap(f"Measured {document['date'][:10]}, {commits([document])}.")


# --------------------------------------------------------------------------------------------------------- first calls


def first_calls_page(results: dict[str, list[Document]]) -> str:
    """What is compiled at the first call, and what it costs."""
    parts = [
        "# First calls\n",
        wrap(
            "What a call costs when its kernel is not compiled yet. Kernels are compiled for the op, the dtype and the "
            "kind of layout at the first call that needs them, and kept on disk; `python -m gpuops warmup` compiles "
            "them ahead."
        ),
        f"{BACK}\n",
    ]
    for folder, documents in results.items():
        parts += first_calls(folder, documents)
    return "\n".join(parts)


def first_calls(folder: str, documents: list[Document]) -> Iterator[str]:
    """The first calls of a process, then mixes of many, if they were measured on the machine."""
    mixes, first = cold.found(folder), [document for document in documents if is_host(document)]
    uses = [(document, cases) for document in first if (cases := done(of_group(document, FIRST_USE.name)))]
    if mixes is not None or uses:
        yield f"## {mixes['machine'] if mixes is not None else machine_name(uses[0][0])}\n"
    for document, cases in uses:
        yield "### One call\n"
        yield wrap(f"Milliseconds {document['groups'][FIRST_USE.name]['origin'].partition(';')[0]}.")
        names = ["gpuops", *peers(cases)]
        yield table(("first use", *names), ([said(case), *(first_use(case, name) for name in names)] for case in cases))
        yield when(document)
    if mixes is not None:
        yield "### Many calls\n"
        yield wrap(cold.about(mixes))
        yield picture(folder, plot.FIRST_CALLS.name, plot.FIRST_CALLS.caption)
        yield table(cold.HEAD, cold.lines(mixes))


def said(case: Case) -> str:
    return f"{case['op']} {case['case']}".replace(", first call:", ":")


def first_use(case: Case, name: str) -> str:
    return milliseconds(timed(case)[name]["us"]) if name in timed(case) else MISSING


# ------------------------------------------------------------------------------------------------------------- the CPU


def on_cpu_page(documents: dict[str, Document]) -> str:
    """NumPy arrays on processors."""
    parts = [
        "# On the CPU\n",
        wrap(
            "How fast gpuops computes NumPy arrays, on one thread and on all cores, beside NumPy (SciPy for softmax "
            "and its like), PyTorch and numexpr on as many threads. Numbers are their times divided by gpuops' time: "
            "above 1, gpuops is faster. Arrays are in the cache where they fit into it. The reference is a copy of as "
            "many bytes on as many threads; for reductions a maximum of as many integers of 8 bytes."
        ),
        *(wrap(cpu_sentence(document)) for document in documents.values()),
        f"{BACK}\n",
    ]
    if documents:
        parts.append(picture("", plot.ON_CPU.name, plot.ON_CPU.caption))
    for document in documents.values():
        cores = on_cpu.most_threads(document)
        parts += [f"## {document['machine']}, {counted(cores, 'core')}\n", *cpu_section(document)]
    return "\n".join(parts)


def cpu_sentence(document: Document) -> str:
    """What the measurements on a processor say."""
    cores, rows = on_cpu.most_threads(document), document["rows"]
    slow, gains = on_cpu.losses(document), on_cpu.gains(rows, on_cpu.REFERENCES)
    text = (
        f"On {document['machine']} with {counted(cores, 'core')}, gpuops is {statistics.median(gains):.2f} times as "
        f"fast as NumPy or SciPy in the median of {len(gains)} cases, and slower by more than {on_cpu.NOISE:.0%} in "
        f"{len(slow)}."
    )
    if ahead := on_cpu.behind(document, ("torch",), cores):
        names = listed(f"`{op}` ({ratio(gain)})" for gain, op in ahead)
        text += f" On {counted(cores, 'thread')}, PyTorch is faster, in the median, in {names}."
    return text


def cpu_section(document: Document) -> Iterator[str]:
    """All ops on a processor, and the cases in which another library is faster."""
    yield table(on_cpu.HEAD, on_cpu.lines(document))
    for name, names in (("NumPy or SciPy", on_cpu.REFERENCES), ("PyTorch", ("torch",))):
        if slow := on_cpu.losses(document, names):
            worst = f" These are the {SHOWN} worst of them." if len(slow) > SHOWN else ""
            of = len(on_cpu.gains(document["rows"], names))
            yield wrap(f"Slower than {name} by more than {on_cpu.NOISE:.0%} in {len(slow)} of {of} cases.{worst}")
            yield table(("case", f"of {name}"), [[case, ratio(gain)] for gain, case in slow[:SHOWN]])
    yield wrap(on_cpu.about(document))
