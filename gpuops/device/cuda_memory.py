"""Internal memory of launches: aligned workspace, per-stream scratch, and what captured graphs keep alive."""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache
from typing import Any

import cupy

from ..plan.work import ALIGNMENT, PARTIALS, SCRATCH
from . import cuda_driver

LAUNCHES = 2**32  # launch numbers of a scratch; then they start again
DEFAULT_STREAMS = 2  # the largest handle of a default stream: legacy 0 and 1, per-thread 2
STREAMS = 32  # streams of a thread that have scratch at a time
FOREIGN = "_foreign_stream_ref"  # an attribute of CuPy streams that wrap another library's
GONE = 16  # scratches of streams that may be destroyed, which share one event
SEMAPHORE = 64  # bytes, at least those of a sem_t
NO_DESTRUCTOR_SYNC = 1  # CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
USER_OBJECT_MOVE = 1  # CU_GRAPH_USER_OBJECT_MOVE


@cache
def libc() -> ctypes.CDLL:
    """The C library."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    return library


def aligned(nbytes: int) -> tuple[cupy.cuda.MemoryPointer, int]:
    """Aligned memory and its address, whatever the current allocator gives."""
    memory = cupy.cuda.alloc(nbytes)
    if memory.ptr % ALIGNMENT:
        memory = cupy.cuda.alloc(nbytes + ALIGNMENT)
        memory = memory + -memory.ptr % ALIGNMENT
    return memory, memory.ptr


class Borrowed(cupy.cuda.UnownedMemory):
    """Another library's memory; keeps its owner alive."""

    def __init__(self, address: int, nbytes: int, owner: Any, index: int) -> None:
        super().__init__(address, nbytes, owner, index)
        self.owner = owner


class Scratch:
    """A stream's scratch, and its launch counter."""

    def __init__(self, device: Any, stream: Any, id_: int) -> None:
        self.memory, self.stream, self.id, self.number = device.zeros(SCRATCH), stream, id_, 0

    def next(self) -> tuple[cupy.cuda.MemoryPointer, int]:
        """The memory, and the number of the next launch."""
        self.number += 1
        if self.number == LAUNCHES:
            self.memory.memset_async(0, PARTIALS)
            self.number = 1
        return self.memory, self.number


class Scratches(dict[int, Scratch]):
    """A thread's scratch on a device, by the stream's handle.

    A CuPy stream is kept alive with its scratch, so that its handle is not reused. For other streams, the driver's
    unique ID tells whether the handle still names the same one.
    """

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.device = device

    def of(self, stream: Any) -> tuple[cupy.cuda.MemoryPointer, int]:
        """A stream's scratch, and the number of the next launch."""
        address: int = stream.ptr
        known = self.get(address)
        if known is None or (known.id and known.id != stream_id(address)):
            self.retire(address)
            while len(self) >= STREAMS:
                self.retire(next(iter(self)))
            foreign = not isinstance(stream, cupy.cuda.Stream) or hasattr(stream, FOREIGN)
            own = not foreign or address <= DEFAULT_STREAMS
            known = self[address] = Scratch(self.device, stream if own else None, 0 if own else stream_id(address))
        return known.next()

    def retire(self, address: int) -> None:
        """Retire a stream's scratch, which its work may still use."""
        if (old := self.pop(address, None)) is not None:
            self.device._retired.add(old)

    def __del__(self) -> None:
        """The thread has ended."""
        if not sys.is_finalizing():
            for address in [*self]:
                self.retire(address)


class Retired:
    """Scratch that no call will use again, kept until the GPU is done with it.

    An event tells when: one on its stream or, if the stream may be destroyed, one after all work of the device, shared
    by several scratches. Nothing waits for it.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.known: list[tuple[Any, list[Scratch]]] = []  # events, and the scratches that each covers
        self.unknown: list[Scratch] = []
        self.lock = threading.Lock()

    def add(self, old: Scratch) -> None:
        with self.lock, cupy.cuda.Device(self.index):
            self.known = [(event, scratches) for event, scratches in self.known if not event.done]
            event = cupy.cuda.Event(disable_timing=True)
            if old.stream is not None and not old.stream.is_capturing():
                event.record(old.stream)
                self.known.append((event, [old]))
                return
            self.unknown.append(old)
            if len(self.unknown) % GONE == 0 and cuda_driver.record_all(event):
                self.known.append((event, self.unknown))
                self.unknown = []


class Captured:
    """Memory of a graph, kept while the graph or an executable graph made from it exists.

    The driver calls a destructor from its own thread, where Python must not run: ``sem_post``, whose count is polled.
    """

    def __init__(self, graph: ctypes.c_void_p) -> None:
        self.memory: list[cupy.cuda.MemoryPointer] = []
        self.semaphore: ctypes.c_void_p | None = None
        if sys.platform == "win32":  # no semaphores: the memory is kept for good
            return
        user_object, semaphore = ctypes.c_void_p(), ctypes.c_void_p(libc().malloc(SEMAPHORE))
        libc().sem_init(semaphore, 0, 0)
        call = ctypes.cast(libc().sem_post, ctypes.c_void_p)
        made, driver = ctypes.byref(user_object), cuda_driver.libcuda()
        cuda_driver.check(driver.cuUserObjectCreate(made, semaphore, call, 1, NO_DESTRUCTOR_SYNC))
        cuda_driver.check(driver.cuGraphRetainUserObject(graph, user_object, 1, USER_OBJECT_MOVE))
        self.semaphore = semaphore

    def gone(self) -> bool:
        """Whether the graph is destroyed."""
        if self.semaphore is None:
            return False
        value = ctypes.c_int()
        libc().sem_getvalue(self.semaphore, ctypes.byref(value))
        if value.value:
            libc().free(self.semaphore)
        return value.value > 0


class Graphs:
    """The memory that a device's graphs use, by the ID of their capture."""

    def __init__(self) -> None:
        self.captured: dict[int, Captured] = {}
        self.lock = threading.Lock()

    def keep(self, memory: cupy.cuda.MemoryPointer) -> None:
        """Under capture, keep memory alive as long as the graph."""
        stream = cupy.cuda.get_current_stream()
        if not stream.is_capturing():
            return
        with self.lock:
            for number, captured in [*self.captured.items()]:
                if captured.gone():
                    del self.captured[number]
            number, graph = capture_of(stream.ptr)
            if number not in self.captured:
                self.captured[number] = Captured(graph)
            self.captured[number].memory.append(memory)


def capture_of(stream: int) -> tuple[int, ctypes.c_void_p]:
    """The unique ID of the capture on a stream, and its graph."""
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    arguments = [ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None]
    cuda_driver.check(cuda_driver.libcuda().cuStreamGetCaptureInfo_v2(ctypes.c_void_p(stream), *arguments))
    return number.value, graph


def stream_id(stream: int) -> int:
    """A stream's ID, unique in the process."""
    number = ctypes.c_uint64()
    cuda_driver.check(cuda_driver.libcuda().cuStreamGetId(ctypes.c_void_p(stream), ctypes.byref(number)))
    return number.value
