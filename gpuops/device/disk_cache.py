"""Files of compiled code in a folder that processes and users may share, and that may be damaged or planted.

An entry is a digest and the code. It is used only if the digest is right and the file is a regular one that nobody but
this user or root can have written; else it is as if it were not there. Links are not followed, and nobody is waited for
longer than a compile may take. The folder is bounded: the entries that were not used for the longest time go first.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from typing import NamedTuple

DIGEST = hashlib.sha256().digest_size
PATIENCE = 60.0  # seconds that another process's compile is waited for
PAUSE = 0.01  # seconds between looks
STALE = 3600.0  # seconds after which what is unfinished was left behind
UNFINISHED = ".unfinished"
LOCK = ".lock"
ENTRY = re.compile(r"(\w+)-[0-9a-f]{32}\.cubin")  # the file of an entry, with its kernel's name
SIZE = 256 * 10**6  # bytes of a folder, unless GPUOPS_CACHE_SIZE says otherwise
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
LOOK, LEFT = 16, 8  # after each 16th of that is written, the folder is looked through; an 8th is left free
RECENT = 3600.0  # seconds in which the use of an entry is not noted again
#: Links are not followed, and a FIFO is not waited for. (Windows has no such flags.)
CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
CAREFULLY |= getattr(os, "O_BINARY", 0)


def entry(folder: str, name: str, key: str, make: Callable[[], bytes], anew: bool = False) -> bytes:
    """What ``make`` gives for a key, from the folder if it is there; ``anew`` replaces it. Without a folder that can be
    used it is made each time."""
    if not folder or not prepared(folder):
        return make()
    path = os.path.join(folder, f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.cubin")
    if not anew and (code := stored(path)):
        return code
    with locked(path + LOCK):
        if not anew and (code := stored(path)):  # another thread or process was faster
            return code
        code = make()
        with suppress(OSError):  # a read-only home, or a full disk, costs a compile per process, nothing else
            store(path, code)
            trim(folder, DIGEST + len(code))
    return code


def prepared(folder: str) -> bool:
    """Whether there is such a folder; a new one is this user's alone. What others left unfinished is swept up."""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        sweep(folder)
    except OSError:
        return os.path.isdir(folder)
    return True


SWEPT: set[str] = set()


def sweep(folder: str) -> None:
    """Remove, once per process, what processes that were killed have left in the folder."""
    if folder in SWEPT:
        return
    SWEPT.add(folder)
    with os.scandir(folder) as files:
        for file in files:
            if file.name.endswith((UNFINISHED, LOCK)):
                with suppress(OSError):
                    if time.time() - file.stat(follow_symlinks=False).st_mtime > STALE:
                        os.unlink(file.path)


def stored(path: str) -> bytes:
    """The code of an entry; nothing if there is none, or none that can be trusted."""
    try:
        descriptor = os.open(path, os.O_RDONLY | CAREFULLY)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        if not trusted(status := os.fstat(descriptor)):
            return b""
        content = file.read()
        if time.time() - status.st_mtime > RECENT:
            with suppress(OSError):
                os.utime(descriptor if os.utime in os.supports_fd else path)  # used now
    digest, code = content[:DIGEST], content[DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else b""


def trusted(status: os.stat_result) -> bool:
    """Whether a file is a regular one that only this user or root can have written."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def store(path: str, code: bytes) -> None:
    """Write an entry: another process sees all of it or nothing; after a crash the digest tells whether it is whole."""
    unfinished = f"{path}.{os.getpid()}-{time.monotonic_ns()}{UNFINISHED}"
    # As readable as the user's other files are: a folder that several users share is for all of them.
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CAREFULLY, 0o644)
    try:
        with open(descriptor, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise


# ---------------------------------------------------------------------------------------------------------------- size


class File(NamedTuple):
    """An entry in a folder."""

    path: str
    kernel: str
    size: int
    used: float  # when it was last used


def files(folder: str) -> list[File]:
    """The entries of a folder, those first that were not used for the longest time."""
    found = []
    with suppress(OSError), os.scandir(folder) as there:
        for file in there:
            if match := ENTRY.fullmatch(file.name):
                with suppress(OSError):  # another process has just removed it
                    status = file.stat(follow_symlinks=False)
                    found.append(File(file.path, match[1], status.st_size, status.st_mtime))
    return sorted(found, key=lambda file: file.used)


def limit() -> int:
    """How many bytes of entries a folder keeps: ``GPUOPS_CACHE_SIZE``, such as 256 MB.

    >>> os.environ["GPUOPS_CACHE_SIZE"] = "1.5 GB"
    >>> limit()
    1500000000
    >>> del os.environ["GPUOPS_CACHE_SIZE"]
    """
    text = os.environ.get("GPUOPS_CACHE_SIZE", "").strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Z]*)", text.upper())
    if match and match[2] in UNITS:
        return int(float(match[1]) * UNITS[match[2]])
    if text:
        rule = f"is not a size such as 256 MB: the kernel cache keeps {SIZE // 10**6} MB"
        warnings.warn(f"GPUOPS_CACHE_SIZE {text!r} {rule}", stacklevel=2)
    return SIZE


WRITTEN: dict[str, int] = {}  # bytes that this process has stored in a folder since it looked through it


def trim(folder: str, added: int) -> None:
    """Keep a folder to which so many bytes were added below its limit."""
    most = limit()
    WRITTEN[folder] = WRITTEN.get(folder, most) + added  # the first time it looks
    if WRITTEN[folder] <= most // LOOK:
        return
    WRITTEN[folder] = 0
    there = files(folder)
    before = [0, *accumulate(file.size for file in there)]  # bytes that are used less recently than each
    if before[-1] > most:
        over = before[-1] - (most - most // LEFT)
        remove(file for file, nbytes in zip(there, before, strict=False) if nbytes < over)


def remove(there: Iterable[File]) -> int:
    """Remove entries; how many they were. (Who has read one goes on with it.)"""
    count = 0
    for file in there:
        with suppress(OSError):  # another process was faster
            os.unlink(file.path)
            count += 1
    return count


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Let other threads and processes that are to make the same file wait, for a while, where files can be locked."""
    descriptor = -1
    try:
        with suppress(ImportError, OSError):  # Windows, or a folder that takes no files or no locks: each makes its own
            import fcntl

            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | CAREFULLY, 0o600)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                wait_for(lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB))
        yield
    finally:
        if descriptor >= 0:
            with suppress(OSError):  # removed while it is locked: whoever waits for it finds the file made
                os.unlink(path)
            os.close(descriptor)


def wait_for(lock: Callable[[], None]) -> None:
    """Try to lock until it works or patience is at an end."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return lock()
        except BlockingIOError:
            if time.monotonic() > end:
                return None
            time.sleep(PAUSE)
