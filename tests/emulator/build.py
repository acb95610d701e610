"""g++, and the cache of what it made."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent
_CUDA = (_HERE / "cuda.h").read_text()
_RUNTIME_FILES = ("fibre.h", "state.h", "memory.h", "runtime.cpp")

_RUNTIME_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-shared")
_KERNEL_FLAGS = (
    "-std=c++17", "-O1", "-fno-asynchronous-unwind-tables", "-pipe", "-fPIC", "-x", "c++",
    "-Werror=frame-larger-than=65536",  # half a fibre's stack: overrunning one would end Python
    # The calls that check each access. The thread sanitizer's own library is not linked (-nostdlib).
    "-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0", "--param", "tsan-distinguish-volatile=1",
    "-fsanitize=alignment,bounds,shift-exponent,integer-divide-by-zero", "-fno-sanitize-recover=all",
    # Two modules may hold different functions of the same name.
    "-fvisibility=hidden", "-fno-gnu-unique",
    # As a GPU has it: integers wrap, a cast pointer may alias, char is signed.
    "-fwrapv", "-fno-strict-aliasing", "-fsigned-char", "-ffp-contract=off",
    "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics",
)  # fmt: skip
_LINK_FLAGS = ("-shared", "-nostdlib", "-Wl,-Bsymbolic", "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset")
_LINES = ("-g1", "-gdwarf-4")  # a fifth of the time, for what only a message about a fault needs


class EmulatorError(RuntimeError):
    """A kernel does not compile, or did what a GPU would not forgive."""


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"gpuops-emulator-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@functools.cache
def _compiler() -> str:
    """What the output of g++ depends on besides its input."""
    return subprocess.run(["g++", "-v"], capture_output=True, text=True, check=True).stderr


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((_compiler(), *parts)).encode()).hexdigest()[:32]


def _run(
    flags: tuple[str, ...], name: str, text: str, *libraries: str, made: str | None = None
) -> Path:
    """What g++ makes of the text, a shared library unless it is named, from the cache if it is there."""
    library = _folder() / (made or f"{_key(*flags, *libraries, text)}.so")
    if library.exists():
        return library
    # Written under a name of its own, then renamed: another process may be making the same file.
    with tempfile.TemporaryDirectory(dir=_folder()) as scratch:
        unfinished = Path(scratch) / library.name
        done = subprocess.run(
            ["g++", *flags, "-o", str(unfinished), *([] if made else ["-"]), *libraries],
            input=text, capture_output=True, check=False, text=True, cwd=_folder(),
        )  # fmt: skip
        if done.returncode:
            errors = [
                line for line in done.stderr.splitlines() if "error" in line
            ] or done.stderr.splitlines()
            raise EmulatorError(f"{name} does not compile:\n  " + "\n  ".join(errors[:5]))
        os.replace(unfinished, library)
    return library


@functools.cache
def runtime() -> Path:
    """The library that every kernel is linked to."""
    text = "\n".join((_HERE / name).read_text() for name in _RUNTIME_FILES)
    text = "\n".join(
        line for line in text.splitlines() if not line.startswith(('#include "', "#pragma once"))
    )
    return _run((*_RUNTIME_FLAGS, "-x", "c++"), "the emulator's runtime", text, "-ldl", "-lm")


@functools.cache
def _header(text: str, flags: tuple[str, ...]) -> Path:
    """A header that g++ has compiled, which takes a tenth of the time of a module that begins with it."""
    header = _folder() / f"{_key(*flags, text)}.h"
    if not header.exists():
        with tempfile.NamedTemporaryFile("w", dir=_folder(), delete=False) as unfinished:
            unfinished.write(text)
        os.replace(unfinished.name, header)
    _run((*flags, "-c", "-x", "c++-header", str(header)), header.name, "", made=f"{header.name}.gch")
    return header


def build(text: str, common: int, name: str, *more: str) -> Path:
    """The library of the kernels in a text that ``source.translate`` made; other texts begin with ``common`` lines."""
    flags, lines = (*_KERNEL_FLAGS, *more), text.split("\n")
    head = "\n".join(('#line 1 "cuda.h"', _CUDA, *lines[1 : 1 + common], ""))
    return _run(
        (*flags, *_LINK_FLAGS, "-include", str(_header(head, flags))),
        name,
        "\n".join((lines[0], *lines[1 + common :])),
        "-x",
        "none",
        str(runtime()),
        "-lgcc",
    )


@functools.cache
def available() -> str | None:
    """None where the emulator can be built, else what it lacks. (If it then does not build, that is an error.)

    >>> available()
    """
    if sys.platform != "linux" or not shutil.which("g++"):
        return "the emulator needs Linux and g++"
    return None


def source_lines(text: str, common: int, name: str, addresses: list[int]) -> list[str]:
    """``file:line`` of each address, innermost function first where functions were inlined."""
    # Lines change nothing of the code: its addresses are those of the library without.
    library = build(text, common, name, *_LINES)
    command = ["addr2line", "-i", "-a", "-e", str(library), *map(hex, addresses)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    found: list[list[str]] = []
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            found.append([])
        elif not line.startswith("??"):
            found[-1].append(line.split(" (")[0].removeprefix(f"{_folder()}/"))
    return [
        " inlined at ".join(place for place in places if not place.startswith("cuda.h:"))
        for places in found
    ] or [""] * len(addresses)
