"""Shows the progress of long work: a bar in terminals and notebooks, or a line in terminals without rich, removed at
the end; elsewhere, such as in a log, a line every few seconds."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape

EVERY = 5.0  # seconds between lines in a log
Show = Callable[[int, str], None]  # shows the number of steps that are done, and the current one


class Progress:
    """Counts the steps that are done."""

    def __init__(self, show: Show) -> None:
        self.show, self.count, self.text = show, 0, ""

    def at(self, text: str) -> None:
        """Show the current step."""
        self.text = text
        self.show(self.count, text)

    def done(self) -> None:
        """Count a step."""
        self.count += 1
        self.show(self.count, self.text)


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """A context that shows the progress of ``total`` steps."""
    with display()(total) as show:
        yield Progress(show)


def display() -> Callable[[int], AbstractContextManager[Show]]:
    """The display for this environment."""
    if in_notebook():
        return notebook
    if not sys.stderr.isatty():
        return log
    return terminal if importlib.util.find_spec("rich") else line


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@contextmanager
def log(total: int) -> Iterator[Show]:
    """Lines on standard error, none for short work: ``3/12 softmax of float32``."""
    due = time.monotonic() + EVERY

    def show(done: int, text: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + EVERY
            print(f"{done}/{total} {text}", file=sys.stderr, flush=True)

    yield show


@contextmanager
def line(total: int) -> Iterator[Show]:
    """A line on standard error that is overwritten: ``3/12 softmax of float32``."""
    width = shutil.get_terminal_size().columns - 1

    def show(done: int, text: str) -> None:
        write(f"{done}/{total} {text}")

    def write(text: str) -> None:
        print(f"\r{text[:width]:<{width}}", end="\r", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        write("")


@contextmanager
def terminal(total: int) -> Iterator[Show]:
    """Rich's bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}", markup=False)
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), text
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=done, description=text)


@contextmanager
def notebook(total: int) -> Iterator[Show]:
    """An output of the cell that is updated; rich's bar needs ipywidgets."""
    from IPython.display import display

    def output(done: int, text: str) -> dict[str, str]:
        label = f"{done}/{total} {text}"
        return {
            "text/plain": label,
            "text/html": f'<progress value="{done}" max="{total}"></progress> {escape(label)}',
        }

    shown = display(output(0, ""), raw=True, display_id=True)
    try:
        yield lambda done, text: shown.update(output(done, text), raw=True)
    finally:
        shown.update({"text/plain": ""}, raw=True)
