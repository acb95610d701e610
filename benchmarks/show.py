"""The output of a run: progress and tables on terminals and in notebooks, plain lines elsewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from gpuops.tools.progress import Progress, in_notebook, progress

from .ops import OPS
from .report_standing import of_best_peer
from .results import Document, ladders, libraries, timed

MISSING = "–"

Column = tuple[str, Callable[[dict[str, Any]], str]]  # a name, and what is said of a case


class Watch:
    """Follows a run: plain lines, one per case."""

    def __init__(self, op: str, total: int) -> None:
        self.op, self.total, self.count, self.label = op, total, 0, ""

    def start(self, label: str) -> None:
        """A case begins."""
        self.label = label

    def provider(self, name: str) -> None:
        """A provider is at work."""

    def done(self, record: dict[str, Any]) -> None:
        """A case is measured."""
        self.count += 1
        print(f"[{self.count}/{self.total}] {line(record)}", flush=True)


class Bar(Watch):
    """Follows a run with a progress display."""

    def __init__(self, op: str, total: int, shown: Progress) -> None:
        super().__init__(op, total)
        self.shown = shown

    def provider(self, name: str) -> None:
        self.shown.at(f"{self.op} {self.label} · {name}")

    def done(self, record: dict[str, Any]) -> None:
        self.shown.done()


class Screen:
    """The output of a run."""

    def __init__(self) -> None:
        self.console: Any = None
        if (sys.stdout.isatty() or in_notebook()) and importlib.util.find_spec("rich"):
            from rich.console import Console

            self.console = Console(highlight=False, emoji=False, markup=False)

    def say(self, text: str) -> None:
        if self.console:
            self.console.print(text, soft_wrap=True)
        else:
            print(text, flush=True)

    @contextmanager
    def progress(self, op: str, total: int) -> Iterator[Watch]:
        """A progress display for the cases of an op."""
        if not self.console:
            yield Watch(op, total)
            return
        with progress(total) as shown:
            yield Bar(op, total, shown)

    def table(self, document: Document) -> None:
        """The results of an op."""
        if not self.console:
            return
        from rich.table import Table

        for title, header, rows in tables(document):
            table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
            for i, text in enumerate(header):
                table.add_column(text, justify="left" if i == 0 else "right", no_wrap=True)
            for row in rows:
                table.add_row(*row)
            self.console.print(table)
        for text in refusals(document["cases"]):
            self.console.print(text, style="dim", soft_wrap=True)


def tables(document: Document) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, header and rows: all providers on every case, and the strategies on the ladder."""
    cases = [case for case in document["cases"] if "results" in case]
    if document["mode"] == "scaling":
        yield f"{document['unit']} on {machine_name(document)}, one and several", *scaling(cases)
        return
    unit = "µs per call" if document["mode"] == "host" else document["unit"]
    header, rows = comparison(cases)
    header[0] = f"{document['op']} ({unit})"
    yield f"{document['op']} on {machine_name(document)}, {document['mode']}", header, rows
    climbed = list(ladders(cases))
    if climbed:
        names = list(dict.fromkeys(name for case in climbed for name in timed(case) if name.startswith("gpuops")))
        header = [f"strategies ({unit})", "reference", *(name.removeprefix("gpuops ") for name in names)]
        rows = [[label(case), number(case, case["limit"]), *(cell(case, name) for name in names)] for case in climbed]
        yield f"The strategies of {document['op']}", header, rows


def comparison(cases: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table with a line per case and a column per library; without peers, none of the best."""
    several = len({case["limit"]["name"] for case in cases}) > 1  # references, each named then
    made: list[Column] = [
        ("case", label),
        ("gpuops", lambda case: cell(case, "gpuops")),
        ("of reference", lambda case: of_reference(case, several)),
    ]
    if any(map(of_best_peer, cases)):
        made.append(("of best peer", lambda case: ratio(of_best_peer(case))))
    made += columns(cases)
    return [name for name, _ in made], [[text(case) for _, text in made] for case in cases]


def columns(cases: list[dict[str, Any]]) -> list[Column]:
    """The columns of the libraries. If several other ops of gpuops stand beside, these share one."""
    names = libraries(cases)
    others = [name for name in names if beside(name) in OPS]
    apart = [name for name in names if len(others) < 2 or name not in others]
    made: list[Column] = [(name, partial(cell, provider=name)) for name in apart]
    if len(apart) < len(names):
        made.append(("gpuops(max or sum)", lambda case: shared(case, others)))
    return made


def beside(name: str) -> str:
    """The op of ``gpuops(op)``, which stands beside another one."""
    return name.removeprefix("gpuops(").removesuffix(")")


def shared(case: dict[str, Any], names: list[str]) -> str:
    """The number of the one of these that the case has, and which that is."""
    here = [name for name in names if name in timed(case)]
    return ", ".join(f"{cell(case, name)} {beside(name)}" for name in here) or MISSING


def of_reference(case: dict[str, Any], several: bool) -> str:
    """The speed of gpuops over that of the reference, and which that is if there are several."""
    text = ratio(timed(case).get("gpuops", {"of_limit": None})["of_limit"])
    return f"{text} {case['limit']['name']}" if several else text


def scaling(cases: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table with a line per case: speeds of one and all workers, and the cost of tasks."""
    counts = sorted({case["workers"] for case in cases})
    several = "/".join(map(str, counts)) or MISSING
    header = ["case", "chunks of", "1 ×", f"{several} ×", "of linear", "tasks", "ms", "ms waited"]
    header += ["idle µs, 1 ×", f"idle µs, {several} ×"]
    rows = []
    for case in cases:
        alone, ours = case["limit"], timed(case)["gpuops"]
        speeds = digits(alone["speed"] / case["workers"]), digits(ours["speed"]), ratio(ours["of_limit"])
        times = digits(ours["us"] * 1e-3), digits(ours["wall_us"] * 1e-3)
        idle = digits(alone["overhead_us"]), digits(ours["overhead_us"])
        rows.append([label(case), size(case["chunk_bytes"]), *speeds, str(ours["tasks"]), *times, *idle])
    return header, rows


def size(nbytes: int) -> str:
    """Bytes in the largest binary unit that they fill."""
    power = min((max(nbytes, 1).bit_length() - 1) // 10, 3)
    return f"{nbytes / 2 ** (10 * power):.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def cell(case: dict[str, Any], provider: str) -> str:
    """A provider's number, a word if it has none, a dash if it did not run."""
    for result in case["results"]:
        if result["provider"] == provider:
            return word(result["refused"]) if "refused" in result else number(case, result)
    return MISSING


def of_host(case: dict[str, Any]) -> bool:
    """Whether the case measures host time."""
    return case["limit"]["name"] in ("launch", "start")


def label(case: dict[str, Any]) -> str:
    """A case's name within its document."""
    return f"{case['op']} {case['case']}" if of_host(case) or "workers" in case else case["case"]


def number(case: dict[str, Any], result: dict[str, Any]) -> str:
    """A result's number in tables: its speed, or the host time in microseconds."""
    return digits(result["us"] if of_host(case) else result["speed"])


def word(refusal: str) -> str:
    """A refusal in a word."""
    for start in ("wrong", "out of memory"):
        if refusal.startswith(start):
            return start
    return "refuses"


def line(record: dict[str, Any]) -> str:
    """A case in a line of text."""
    text = f"{record['op']} {record['case']}: "
    if "skipped" in record:
        return text + f"skipped: {record['skipped']}"
    parts = [f"{record['limit']['name']} {number(record, record['limit'])}"]
    for result in record["results"]:
        if "refused" in result:
            parts.append(f"{result['provider']}: {result['refused']}")
            continue
        part = f"{result['provider']} {number(record, result)}"
        if result["provider"] == "gpuops":
            part += f" ({100 * result['of_limit']:.0f} %)"
        parts.append(part)
    return text + ", ".join(parts)


def refusals(cases: list[dict[str, Any]]) -> list[str]:
    """Why there are results missing, each reason once: of whom, and how often."""
    found: dict[str, list[tuple[str, str]]] = {}
    for case in cases:
        for result in case.get("results", ()):
            if "refused" in result:
                why = brief(result["refused"])
                found.setdefault(NUMBER.sub("…", why), []).append((result["provider"].removeprefix("gpuops "), why))
        if "skipped" in case:
            found.setdefault(f"skipped: {case['skipped']}", []).append((case["case"], f"skipped: {case['skipped']}"))
    return [reason(masked, given) for masked, given in found.items()]


def reason(masked: str, given: list[tuple[str, str]]) -> str:
    """A reason in a line; numbers are masked where they differ."""
    who = Counter(name for name, _ in given)
    texts = {why for _, why in given}
    times = f" ({len(given)} result{'s'[: len(given) > 1]})" if not masked.startswith("skipped") else ""
    return f"{abridged(who)}: {texts.pop() if len(texts) == 1 else masked}{times}"


def abridged(names: Iterable[str]) -> str:
    """Names in a row; of many only the first, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - NAMES} more" if len(every) > NAMES else ""
    return ", ".join(every[:NAMES]) + more


def brief(refusal: str) -> str:
    """What a refusal says, without the strategy that says it and the values that differ from case to case."""
    text = re.sub(r"^ValueError: \w+: strategy '\w+' |, got .*$", "", refusal)
    return text.partition("; ")[0]


NUMBER = re.compile(r"\binf\b|\d[\d.]*(e[+-]?\d+)?")
NAMES = 8  # that one reason is given with


def machine_name(document: Document) -> str:
    environment = document["environment"]
    return environment.get("gpu", environment["cpu"])


def digits(value: float) -> str:
    """A number in three digits, or more before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
