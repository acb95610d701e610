"""``python -m gpuops cache``: list, clear or check the folder of compiled kernels."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

from ..device import disk_cache, jit
from ..device.disk_cache import File


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="list", help="(list)")


def main(options: argparse.Namespace) -> int:
    """Run the action."""
    folder = jit.cache_folder()
    if not folder:
        print("There is no folder for compiled kernels: set GPUOPS_CACHE_DIR.")
        return 0
    return ACTIONS[options.action](folder, disk_cache.files(folder))


def show(folder: str, there: list[File]) -> int:
    """Print the entries by kernel."""
    by_kernel: dict[str, list[File]] = defaultdict(list)
    for file in there:
        by_kernel[file.kernel].append(file)
    if by_kernel:
        print(f"{'kernel':<24}{'variants':>10}{'size':>12}  last used")
    for kernel, files in sorted(by_kernel.items()):
        last = time.strftime("%Y-%m-%d %H:%M", time.localtime(max(file.used for file in files)))
        print(f"{kernel:<24}{len(files):>10}{megabytes(sum(file.size for file in files)):>12}  {last}")
    print(summary(folder, there))
    return 0


def clear(folder: str, there: list[File]) -> int:
    """Remove all entries."""
    total = sum(file.size for file in there)
    print(f"Removed {disk_cache.remove(there)} kernels, {megabytes(total)}, from {folder}")
    return 0


def check(folder: str, there: list[File]) -> int:
    """Read all entries; 1 if some are unusable. These are compiled again when needed."""
    bad = [file.path for file in there if not disk_cache.stored(file.path)]
    for path in bad:
        print(f"{path} is damaged, or others may have written it: it is not used")
    print(summary(folder, there))
    return 1 if bad else 0


def summary(folder: str, there: list[File]) -> str:
    """The folder and its size."""
    return f"{folder}: {words(len(there), sum(file.size for file in there), disk_cache.limit())}"


def words(kernels: int, bytes: int, limit: int) -> str:  # noqa: A002 - as `info` names them
    """A folder's size and limit as text."""
    return f"{kernels} kernels, {megabytes(bytes)} of at most {megabytes(limit)}"


def megabytes(nbytes: int) -> str:
    """A size as text.

    >>> megabytes(1_250_000)
    '1.2 MB'
    """
    return f"{nbytes / 1e6:.1f} MB"


ACTIONS = {"list": show, "clear": clear, "check": check}
