"""Memory that launches use and no caller sees: aligned workspace, the scratch of streams, what captured graphs keep."""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache
from typing import Any

import cupy

from ..plan.work import ALIGNMENT, PARTIALS, SCRATCH
from . import cuda_driver

LAUNCHES = 2**32  # that a scratch counts
DEFAULT_STREAMS = 2  # the addresses of the legacy one and of each thread's: 0, 1, 2
STREAMS = 32  # of a thread, that have scratch at a time
FOREIGN = "_foreign_stream_ref"  # what a stream of CuPy's has that wraps one of another library
GONE = 16  # streams that are gone, for which one event stands
SEMAPHORE = 64  # bytes for a sem_t, at least
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
    """Memory of another library's, which lives as long as its owner."""

    def __init__(self, address: int, nbytes: int, owner: Any, index: int) -> None:
        super().__init__(address, nbytes, owner, index)
        self.owner = owner


class Scratch:
    """The scratch of a stream, and the numbers of the launches that use it."""

    def __init__(self, device: Any, stream: Any, id_: int) -> None:
        self.memory, self.stream, self.id, self.number = device.zeros(SCRATCH), stream, id_, 0

    def next(self) -> tuple[cupy.cuda.MemoryPointer, int]:
        """The memory, and the number of the launch that is to use it."""
        self.number += 1
        if self.number == LAUNCHES:
            self.memory.memset_async(0, PARTIALS)
            self.number = 1
        return self.memory, self.number


class Scratches(dict[int, Scratch]):
    """A thread's scratch on a device, by the address of the stream.

    A stream of CuPy's is kept as long as its scratch, so that no other stream gets its address. Of one that somebody
    else made the driver's unique number tells whether it still is the same.
    """

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.device = device

    def of(self, stream: Any) -> tuple[cupy.cuda.MemoryPointer, int]:
        """A stream's scratch, and the number of the launch that is to use it."""
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
        """Part with the scratch of a stream, whose work may still use it."""
        if (old := self.pop(address, None)) is not None:
            self.device._retired.add(old)

    def __del__(self) -> None:
        """The thread is gone."""
        if not sys.is_finalizing():
            for address in [*self]:
                self.retire(address)


class Retired:
    """Scratch that no call will use again, kept until the GPU is done with it.

    An event tells so: one after the last work of its stream or, where the stream may be gone, one after all work of the
    device, for several of them together. Nothing waits for it.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.known: list[tuple[Any, list[Scratch]]] = []  # an event, and what it stands for
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
    """Memory that a graph uses, for as long as it or an executable one made of it exists.

    The driver then calls a function, from a thread of its own, where Python must not run: ``sem_post``, which counts.
    """

    def __init__(self, graph: ctypes.c_void_p) -> None:
        self.memory: list[cupy.cuda.MemoryPointer] = []
        self.semaphore: ctypes.c_void_p | None = None
        if sys.platform == "win32":  # has none: they are kept for good
            return
        user_object, semaphore = ctypes.c_void_p(), ctypes.c_void_p(libc().malloc(SEMAPHORE))
        libc().sem_init(semaphore, 0, 0)
        call = ctypes.cast(libc().sem_post, ctypes.c_void_p)
        made, driver = ctypes.byref(user_object), cuda_driver.libcuda()
        cuda_driver.check(driver.cuUserObjectCreate(made, semaphore, call, 1, NO_DESTRUCTOR_SYNC))
        cuda_driver.check(driver.cuGraphRetainUserObject(graph, user_object, 1, USER_OBJECT_MOVE))
        self.semaphore = semaphore

    def gone(self) -> bool:
        """Whether the graph is."""
        if self.semaphore is None:
            return False
        value = ctypes.c_int()
        libc().sem_getvalue(self.semaphore, ctypes.byref(value))
        if value.value:
            libc().free(self.semaphore)
        return value.value > 0


class Graphs:
    """The memory that graphs of a device use, by the number of their capture."""

    def __init__(self) -> None:
        self.captured: dict[int, Captured] = {}
        self.lock = threading.Lock()

    def keep(self, memory: cupy.cuda.MemoryPointer) -> None:
        """Keep memory that no caller sees for as long as a graph that is being captured may use it."""
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
    """The unique number of the capture on a stream, and the graph that it makes."""
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    arguments = [ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None]
    cuda_driver.check(cuda_driver.libcuda().cuStreamGetCaptureInfo_v2(ctypes.c_void_p(stream), *arguments))
    return number.value, graph


def stream_id(stream: int) -> int:
    """The number of a stream, which no other one of the process has had."""
    number = ctypes.c_uint64()
    cuda_driver.check(cuda_driver.libcuda().cuStreamGetId(ctypes.c_void_p(stream), ctypes.byref(number)))
    return number.value
