"""How far long work is: a bar on terminals and in notebooks, a line on terminals without rich, which are gone when the
work is done; elsewhere, such as in a log, a line now and then."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape

EVERY = 5.0  # seconds between lines in a log
Show = Callable[[int, str], None]  # shows how many things are done, and what is at work


class Progress:
    """Follows the work on a number of things."""

    def __init__(self, show: Show) -> None:
        self.show, self.count, self.text = show, 0, ""

    def at(self, text: str) -> None:
        """Say what is at work."""
        self.text = text
        self.show(self.count, text)

    def done(self) -> None:
        """One more thing is done."""
        self.count += 1
        self.show(self.count, self.text)


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """A context with what follows the work on so many things."""
    with display()(total) as show:
        yield Progress(show)


def display() -> Callable[[int], AbstractContextManager[Show]]:
    """The display for where this runs."""
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
    """Lines of standard error, none of work that is done soon: ``3/12 softmax of float32``."""
    due = time.monotonic() + EVERY

    def show(done: int, text: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + EVERY
            print(f"{done}/{total} {text}", file=sys.stderr, flush=True)

    yield show


@contextmanager
def line(total: int) -> Iterator[Show]:
    """A line of standard error that is written anew: ``3/12 softmax of float32``."""
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
    """A bar of rich's on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}", markup=False)
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), text
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=done, description=text)


@contextmanager
def notebook(total: int) -> Iterator[Show]:
    """An output of the cell that is shown anew; rich's needs ipywidgets."""
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
