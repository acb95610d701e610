"""Records the kernels that programs use in the file named by ``GPUOPS_RECORD``, for a later warm-up.

The first line names the version that wrote it; each other line is a kernel, as JSON. Processes append whole lines.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from typing import Any

from ..plan.work import Kernel
from ..version import __version__

HEAD = {"gpuops": __version__, "record": "kernels"}
NAME = re.compile(r"[A-Za-z_]\w*")
TYPE = re.compile(r"(struct )?[A-Za-z_]\w*(<[A-Za-z_]\w*(, [A-Za-z_]\w*){0,2}>)?(::[A-Za-z_]\w*)?")


class Unusable(Exception):
    """A file that is not a record of this version; the message says why."""


def note(kernel: Kernel) -> None:
    """Record a loaded kernel, if ``GPUOPS_RECORD`` names a file; not of an expression, whose code is no name. Failures
    warn once, and do not stop the call."""
    path = os.environ.get("GPUOPS_RECORD")
    if not path or kernel.expression is not None:
        return
    try:
        written = known(path)
        if kernel not in written:
            append(path, {"kernel": kernel.name, "types": dict(kernel.types), "constants": dict(kernel.constants)})
            written.add(kernel)
    except (OSError, Unusable) as failure:
        if path not in FAILED:
            FAILED.add(path)
            warnings.warn(f"GPUOPS_RECORD: {failure}; kernels are not recorded", stacklevel=2)


KNOWN: dict[str, set[Kernel]] = {}  # the kernels that this process knows to be in a file
FAILED: set[str] = set()


def known(path: str) -> set[Kernel]:
    """The kernels in a file, which is created if missing or empty."""
    if path not in KNOWN:
        if not os.path.exists(path) or not os.path.getsize(path):
            append(path, HEAD)
        KNOWN[path] = {*read(path)}
    return KNOWN[path]


def append(path: str, line: dict[str, Any]) -> None:
    """Append a line in one write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
    finally:
        os.close(descriptor)


def read(path: str) -> list[Kernel]:
    """The kernels of a record, each once."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    try:
        head, *rest = [json.loads(line) for line in lines if line]
    except ValueError:  # or an empty file
        raise Unusable(f"{path} is not a record of kernels") from None
    if not isinstance(head, dict) or head.get("record") != HEAD["record"]:
        raise Unusable(f"{path} is not a record of kernels")
    if head != HEAD:
        rule = f"was recorded by gpuops {head.get('gpuops')}, this is {__version__}: record the program again"
        raise Unusable(f"{path} {rule}")
    return [*dict.fromkeys(kernel_of(path, entry) for entry in rest if entry != HEAD)]


def kernel_of(path: str, entry: Any) -> Kernel:
    """The kernel of an entry. Types and constants become source text, so they must be names and ints."""
    try:
        name, types, constants = (entry[key] for key in ("kernel", "types", "constants"))
        right = NAME.fullmatch(name) and all(type(value) is int for value in constants.values())
        right = right and all(map(NAME.fullmatch, (*types, *constants))) and all(map(TYPE.fullmatch, types.values()))
        kernel = Kernel(name, tuple(types.items()), tuple(constants.items()))
    except (AttributeError, KeyError, TypeError):
        right = False
    if not right:
        raise Unusable(f"{path} has an entry that is not a kernel: {str(entry)[:80]}")
    return kernel
