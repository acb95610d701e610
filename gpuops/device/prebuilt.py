"""Kernels that come with the package: an archive of machine code for each architecture, which ``make kernels`` writes.

The first line of an archive is the SHA-256 of the second, which is JSON: ``kernels`` maps a kernel's key to its block,
its place there and its size; ``blocks`` has the place, the size and the SHA-256 of each block. The blocks follow,
LZMA-compressed: similar kernels lie together, since most of their code is the same. The key is a digest of the kernel's
source, so what another version of gpuops has left behind is not found. GPUs run machine code of the earlier
architectures of their generation: what is built for 8.0 serves 8.6 and 8.9.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache
from typing import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "prebuilt")
TOGETHER = 16  # kernels in a block: the first use of one unpacks all, which takes a few ms
#: Instructions of 16 bytes.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 4}]
RECENT = 8  # blocks that stay unpacked


class Archive(NamedTuple):
    """What the first line of an archive says."""

    path: str
    begin: int  # of the blocks
    kernels: dict[str, tuple[int, int, int]]
    blocks: list[tuple[int, int, str]]


def path_of(arch: int) -> str:
    """The file of the kernels for an architecture."""
    return os.path.join(FOLDER, f"sm_{arch}.kernels")


def counts() -> dict[int, int]:
    """How many kernels there are, by architecture."""
    there = [re.fullmatch(r"sm_(\d+)\.kernels", name) for name in (os.listdir(FOLDER) if os.path.isdir(FOLDER) else ())]
    return {arch: len(archive(path_of(arch)).kernels) for arch in sorted(int(name[1]) for name in there if name)}


def key_of(text: str) -> str:
    """The key of a kernel, given its source."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def archive(path: str) -> Archive:
    """An archive; an empty one if there is none, or its head is damaged."""
    with suppress(OSError), open(path, "rb") as file:
        digest, head = file.readline().strip(), file.readline()
        if hashlib.sha256(head).hexdigest().encode() == digest:
            return Archive(path, file.tell(), **json.loads(head))
    return Archive(path, 0, {}, [])


def archives(arch: int) -> list[Archive]:
    """What serves an architecture: its own archive, and those of earlier ones of its generation."""
    return [archive(path_of(each)) for each in range(arch, arch // 10 * 10 - 1, -1)]


def found(text: str, arch: int) -> bytes:
    """The machine code of a kernel, given its source, for an architecture or an earlier one of its generation; empty if
    no archive has it, or that is damaged."""
    key = key_of(text)
    for there in archives(arch):
        if (entry := there.kernels.get(key)) is not None:
            number, begin, size = entry
            return block(there.path, number)[begin : begin + size]
    return b""


@lru_cache(maxsize=RECENT)
def block(path: str, number: int) -> bytes:
    """The kernels of a block; empty if it is damaged, or the archive was removed or replaced meanwhile."""
    there = archive(path)
    begin, size, digest = there.blocks[number]
    with suppress(OSError), open(path, "rb") as file:
        file.seek(there.begin + begin)
        packed = file.read(size)
        if hashlib.sha256(packed).hexdigest() == digest:
            return lzma.decompress(packed)
    return b""


def write(path: str, codes: Iterable[tuple[str, bytes]]) -> None:
    """Write an archive of kernels, given their sources and machine code, with similar ones next to each other."""
    entries = [*codes]
    kernels: dict[str, tuple[int, int, int]] = {}
    blocks: list[tuple[int, int, str]] = []
    body = b""
    for first in range(0, len(entries), TOGETHER):
        raw = b""
        for text, code in entries[first : first + TOGETHER]:
            kernels[key_of(text)] = len(blocks), len(raw), len(code)
            raw += code
        packed = lzma.compress(raw, filters=FILTERS)
        blocks.append((len(body), len(packed), hashlib.sha256(packed).hexdigest()))
        body += packed
    os.makedirs(os.path.dirname(path), exist_ok=True)
    head = json.dumps({"kernels": kernels, "blocks": blocks}).encode() + b"\n"
    with open(path, "wb") as file:
        file.write(hashlib.sha256(head).hexdigest().encode() + b"\n" + head + body)
