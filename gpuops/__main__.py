"""The command line: ``gpuops``, or ``python -m gpuops``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from .tools import cache, demo, prebuild, warmup
from .tools.info import info
from .version import __version__


@dataclass(frozen=True)
class Command:
    """One subcommand: its arguments, and what it does with them (the result is the exit status)."""

    name: str
    help: str
    run: Callable[[argparse.Namespace], int]
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def show_info(arguments: argparse.Namespace) -> int:
    """Print ``gpuops.info()``."""
    print(info())
    return 0


#: A subcommand is a row.
COMMANDS = (
    Command("cache", "list, clear or check the compiled kernels on disk", cache.main, cache.arguments),
    Command("demo", "run, check and time the main ops on the best device present", demo.main, demo.arguments),
    Command("info", "show versions, devices and the path that calls take", show_info),
    Command("kernels", "compile the commonest kernels into the package", prebuild.main, prebuild.arguments),
    Command("warmup", "compile the kernels of some ops before they are needed", warmup.main, warmup.arguments),
)


def bench(arguments: list[str]) -> int:
    """Run the benchmarks: those that were installed with the package, or a clone's, which lie beside it."""
    root = Path(__file__).resolve().parent.parent
    installed = find_spec("gpuops.benchmarks") is not None
    if not installed and not (root / "benchmarks" / "cli.py").exists():
        print("bench: pip install 'gpuops-cupy[bench]' first, or run this in the repository of gpuops", file=sys.stderr)
        return 2
    sys.path[:0] = [] if installed else [str(root)]
    status: int = import_module("gpuops.benchmarks.cli" if installed else "benchmarks.cli").main(arguments)
    return status


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser("gpuops", description="NumPy-style array ops for CuPy and NumPy arrays.")
    top.add_argument("--version", action="version", version=f"gpuops {__version__}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        sub = subparsers.add_parser(command.name, help=command.help, description=command.help.capitalize() + ".")
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    subparsers.add_parser("bench", help="measure the ops against other libraries", add_help=False)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand; without one, print help."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["bench"]:
        return bench(arguments[1:])  # it has commands of its own
    top = parser()
    options = top.parse_args(arguments)
    if not hasattr(options, "run"):
        top.print_help()
        return 0
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has had enough, as `head` has; nor may Python's end write anything
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
