"""What CuPy does not wrap of the CUDA driver: launches with attributes, attributes of kernels, events of a context."""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from cupy_backends.cuda.api import driver, runtime

from ..plan.params import Params
from ..plan.work import Given, Launch, Operand


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint * 16))


#: CUlaunchConfig of cuda.h: grid, block and shared memory; stream, attributes and their count.
HEAD = "7I4x2QI4x"
LAUNCH_CONFIG = struct.Struct(f"@{HEAD}")
GRID = struct.Struct("@7I")  # its first fields
STREAM = 4  # the index of the stream in it, in 8-byte words
#: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the kernel may start while its predecessor still runs.
OVERLAP = LaunchAttribute(id=6, value=(1,))
#: CU_LAUNCH_ATTRIBUTE_COOPERATIVE: all blocks are co-resident, else the launch fails.
COOPERATIVE = LaunchAttribute(id=2, value=(1,))
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
CAPTURE_UNSUPPORTED = 900  # CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
STATIC_SHARED = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED


@cache
def libcuda() -> ctypes.CDLL:
    """The driver's library."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def check(status: int) -> None:
    """Raise if the driver returned an error."""
    if status:
        raise driver.CUDADriverError(status)


@cache
def attributes_of(cluster: int, cooperative: bool, overlaps: bool) -> Any:
    """A launch's attributes as an array for the driver. Cooperative launches do not overlap their predecessor."""
    every = [COOPERATIVE] if cooperative else [OVERLAP] if overlaps else []
    if cluster > 1:
        every.append(LaunchAttribute(id=CLUSTER_DIMENSION, value=(cluster, 1, 1)))
    return (LaunchAttribute * len(every))(*every)


class Arguments:
    """A launch packed in memory: configuration, addresses of arguments, arguments. The stream and the arrays' addresses
    are filled in for each launch."""

    def __init__(self, launch: Launch, attributes: Any) -> None:
        args = launch.packed
        whole, places = layout_of(*formats_of(args))
        pairs = zip(args, places, strict=True)
        self.structs = [(struct_of(arg.format), place) for arg, place in pairs if type(arg) is Params]
        self.memory = ctypes.create_string_buffer(whole.size)
        start = ctypes.addressof(self.memory)
        values: list[Any] = [0] * len(args)
        for arg in args:
            if type(arg) is Params:
                values += arg.values
            elif type(arg) is bytes:
                values.append(arg)
        whole.pack_into(
            self.memory, 0, *launch.grid, launch.block, 1, 1, launch.shared, 0, ctypes.addressof(attributes),
            len(attributes), *[start + place for place in places], *values,
        )  # fmt: skip
        self.words = memoryview(self.memory).cast("B").cast("q")
        self.config, self.addresses = ctypes.c_void_p(start), ctypes.c_void_p(start + LAUNCH_CONFIG.size)

    def give(self, given: Given) -> None:
        """Replace everything except addresses."""
        head, structs = given
        GRID.pack_into(self.memory, 0, *head)
        for (packed, place), values in zip(self.structs, structs, strict=True):
            packed.pack_into(self.memory, place, *values)


struct_of = cache(struct.Struct)


def formats_of(args: Sequence[Any]) -> list[str | int]:
    """The formats of arguments, as `layout_of` takes them."""
    return [arg.format if type(arg) is Params else len(arg) if type(arg) is bytes else 0 for arg in args]


def pointers_of(launch: Launch) -> list[tuple[int, Operand]]:
    """The pointers of a launch: their places in memory, in 8-byte words, and where they point."""
    _, places = layout_of(*formats_of(launch.packed))
    return [(places[i] // 8 + word, operand) for i, word, operand in launch.pointers]


@cache
def layout_of(*args: str | int) -> tuple[struct.Struct, list[int]]:
    """The format of a launch in memory, and the offsets of its arguments. It holds the configuration, the addresses of
    the arguments, a word for each (used by array addresses), and the structs. ``args``: each struct's format, or its
    bytes; 0 for an array's address."""
    formats = [f"@{arg}s0q" if isinstance(arg, int) and arg else arg or "" for arg in args]
    words = LAUNCH_CONFIG.size + 8 * len(formats)
    structs = itertools.accumulate(map(struct.calcsize, filter(None, formats)), initial=words + 8 * len(formats))
    places = [next(structs) if each else words + 8 * i for i, each in enumerate(formats)]
    body = "".join(each.removeprefix("@") for each in formats)
    return struct.Struct(f"@{HEAD}{2 * len(formats)}Q{body}"), places


def get_attribute(function: Any, attribute: int) -> int:
    """An attribute of a loaded kernel."""
    value = ctypes.c_int()
    check(libcuda().cuFuncGetAttribute(ctypes.byref(value), attribute, ctypes.c_void_p(function.ptr)))
    return value.value


def set_attribute(function: Any, attribute: int, value: int) -> None:
    """Set an attribute of a loaded kernel."""
    check(libcuda().cuFuncSetAttribute(ctypes.c_void_p(function.ptr), attribute, value))


def record_all(event: Any) -> bool:
    """Record an event after all work of the current device, including destroyed streams. False if a capture in progress
    forbids it. Drivers before CUDA 12.5 cannot record it; then this synchronises with the device."""
    record = getattr(libcuda(), "cuCtxRecordEvent", None)
    if record is None:
        runtime.deviceSynchronize()
        return True
    context = ctypes.c_void_p(driver.ctxGetCurrent())
    status = record(context, ctypes.c_void_p(event.ptr))
    if status != CAPTURE_UNSUPPORTED:
        check(status)
    return not status
