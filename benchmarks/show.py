"""The output of a run: a progress bar and tables on a terminal, plain lines elsewhere."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .results import Document, ladders, libraries, timed

MISSING = "–"


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
    """Follows a run with rich's progress bar."""

    def __init__(self, op: str, total: int, progress: Any) -> None:
        super().__init__(op, total)
        self.progress, self.task = progress, progress.add_task(op, total=total)

    def provider(self, name: str) -> None:
        self.progress.update(self.task, description=f"{self.op} {self.label} · {name}")

    def done(self, record: dict[str, Any]) -> None:
        self.progress.advance(self.task)


class Screen:
    """The output of a run."""

    def __init__(self) -> None:
        self.console: Any = None
        if sys.stdout.isatty() and importlib.util.find_spec("rich"):
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
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        task = TextColumn("{task.description}", markup=False)
        columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), task
        with Progress(*columns, console=self.console, transient=True) as progress:
            yield Bar(op, total, progress)

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
        header = [f"strategies ({unit})", "limit", *(name.removeprefix("gpuops ") for name in names)]
        rows = [[label(case), number(case, case["limit"]), *(cell(case, name) for name in names)] for case in climbed]
        yield f"The strategies of {document['op']}", header, rows


def comparison(cases: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table with a line per case and a column per library."""
    names = libraries(cases)
    rows = []
    for case in cases:
        ours = timed(case).get("gpuops", {"of_limit": None, "of_best_peer": None})
        limit = f"{number(case, case['limit'])} {case['limit']['name']}"
        ratios = ratio(ours["of_limit"]), ratio(ours["of_best_peer"])
        rows.append([label(case), limit, cell(case, "gpuops"), *ratios, *(cell(case, name) for name in names)])
    return ["case", "limit", "gpuops", "of limit", "of best peer", *names], rows


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
    """Why there are results missing, each reason once."""
    counts = Counter(
        (result["provider"], result["refused"])
        for case in cases
        for result in case.get("results", ())
        if "refused" in result
    )
    lines = [f"{who}: {why} ({count} case{'s'[: count > 1]})" for (who, why), count in counts.items()]
    return lines + [f"{case['case']}: skipped: {case['skipped']}" for case in cases if "skipped" in case]


def machine_name(document: Document) -> str:
    environment = document["environment"]
    return environment.get("gpu", environment["cpu"])


def digits(value: float) -> str:
    """A number in three digits, or more before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
