"""A disk cache of compiled code, in a folder that processes and users may share, with files that may be damaged or
planted.

An entry is a digest, of its file's name and the code, and the code. It is used only if the digest matches and the file
is a regular one that only this user or root can have written; otherwise it is a miss. Links are not followed, and waits
for other processes are bounded. So is the folder's size: the least recently used entries go first.
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
PATIENCE = 60.0  # seconds to wait for another process's compile
PAUSE = 0.01  # seconds between attempts to lock
STALE = 3600.0  # seconds after which an unfinished file counts as abandoned
UNFINISHED = ".unfinished"
LOCK = ".lock"
ENTRY = re.compile(r"(\w+)-[0-9a-f]{32}\.cubin")  # the file of an entry, with its kernel's name
SIZE = 256 * 10**6  # bytes of a folder, unless GPUOPS_CACHE_SIZE is set
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
LOOK, LEFT = 16, 8  # the folder is scanned each time 1/16 of its limit has been written; trimming leaves 1/8 free
RECENT = 3600.0  # seconds before an entry's time of last use is updated again
#: Do not follow links, do not block on a FIFO. (Windows has no such flags.)
CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
CAREFULLY |= getattr(os, "O_BINARY", 0)


def entry(folder: str, name: str, key: str, make: Callable[[], bytes], anew: bool = False) -> bytes:
    """The cached result of ``make`` for a key; ``anew`` replaces it. Without a usable folder nothing is cached."""
    if not folder or not prepared(folder):
        return make()
    path = path_of(folder, name, key)
    if not anew and (code := stored(path)):
        return code
    with locked(path + LOCK):
        if not anew and (code := stored(path)):  # another thread or process was faster
            return code
        code = make()
        with suppress(OSError):  # a read-only home or a full disk only costs a compile per process
            store(path, code)
            trim(folder, DIGEST + len(code))
    return code


def path_of(folder: str, name: str, key: str) -> str:
    """The file of an entry."""
    return os.path.join(folder, f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.cubin")


def found(folder: str, name: str, key: str) -> bytes:
    """The cached result for a key; empty if there is none."""
    return stored(path_of(folder, name, key)) if folder else b""


def prepared(folder: str) -> bool:
    """Create the folder, private to this user, and sweep it; False if that fails and there is none."""
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
    """Remove files that killed processes left unfinished, once per process."""
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
    """The code of an entry; empty if it is missing, damaged or not trusted."""
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
                os.utime(descriptor if os.utime in os.supports_fd else path)  # the time of last use
    digest, code = content[:DIGEST], content[DIGEST:]
    return code if digest_of(path, code) == digest else b""


def digest_of(path: str, code: bytes) -> bytes:
    """The digest of an entry: no other name has it, so entries cannot be exchanged."""
    return hashlib.sha256(os.path.basename(path).encode() + b"\0" + code).digest()


def trusted(status: os.stat_result) -> bool:
    """Whether a file is a regular one that only this user or root can have written."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def store(path: str, code: bytes) -> None:
    """Write an entry atomically; after a crash the digest tells whether it is complete."""
    unfinished = f"{path}.{os.getpid()}-{time.monotonic_ns()}{UNFINISHED}"
    # Readable by others, as far as the umask allows, for folders that several users share.
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CAREFULLY, 0o644)
    try:
        with open(descriptor, "wb") as file:
            file.write(digest_of(path, code) + code)
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
    """The entries of a folder, least recently used first."""
    found = []
    with suppress(OSError), os.scandir(folder) as there:
        for file in there:
            if match := ENTRY.fullmatch(file.name):
                with suppress(OSError):  # another process has just removed it
                    status = file.stat(follow_symlinks=False)
                    found.append(File(file.path, match[1], status.st_size, status.st_mtime))
    return sorted(found, key=lambda file: file.used)


def limit() -> int:
    """The size limit of a folder in bytes: ``GPUOPS_CACHE_SIZE``, such as 256 MB.

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


WRITTEN: dict[str, int] = {}  # bytes that this process has stored in a folder since its last scan


def trim(folder: str, added: int) -> None:
    """Keep a folder below its limit, after ``added`` bytes were stored."""
    most = limit()
    WRITTEN[folder] = WRITTEN.get(folder, most) + added  # the first time it is scanned
    if WRITTEN[folder] <= most // LOOK:
        return
    WRITTEN[folder] = 0
    there = files(folder)
    before = [0, *accumulate(file.size for file in there)]  # bytes of the entries before each
    if before[-1] > most:
        over = before[-1] - (most - most // LEFT)
        remove(file for file, nbytes in zip(there, before, strict=False) if nbytes < over)


def remove(there: Iterable[File]) -> int:
    """Remove entries; returns how many. (Processes that have read one keep their copy.)"""
    count = 0
    for file in there:
        with suppress(OSError):  # another process was faster
            os.unlink(file.path)
            count += 1
    return count


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Make other threads and processes that want the same entry wait, for a while, where files can be locked."""
    descriptor = -1
    try:
        with suppress(ImportError, OSError):  # Windows, or no files or locks here: each compiles its own
            import fcntl

            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | CAREFULLY, 0o600)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                wait_for(lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB))
        yield
    finally:
        if descriptor >= 0:
            with suppress(OSError):  # removed while locked: whoever waits finds the entry
                os.unlink(path)
            os.close(descriptor)


def wait_for(lock: Callable[[], None]) -> None:
    """Try to lock until it works, or `PATIENCE` runs out."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return lock()
        except BlockingIOError:
            if time.monotonic() > end:
                return None
            time.sleep(PAUSE)
