"""The GPU, through CuPy: imported when the first CuPy array shows up, never by ``import gpuops``."""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.api import driver

from . import jit
from .plan import SCRATCH, Kernel, Shape


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_int), ("rest", ctypes.c_byte * 60))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h."""

    _fields_ = (
        *((f"{kind}_{axis}", ctypes.c_uint) for kind in ("grid", "block") for axis in "xyz"),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


#: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the kernel may be made ready while the one before it ends.
OVERLAP = LaunchAttribute(id=6, value=1)


@cache
def libcuda() -> ctypes.CDLL:
    """The driver's library, for what CuPy does not wrap."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def device(index: int) -> CudaDevice:
    """The device with CUDA's index."""
    return CudaDevice(index)


def device_of(array: cupy.ndarray) -> CudaDevice:
    """The device on which an array lies."""
    return device(array.data.device_id)


class CudaDevice:
    """One GPU: memory from CuPy's current allocator, launches on CuPy's current stream."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.label = f"cuda:{index}"
        attributes = cupy.cuda.Device(index).attributes
        self.multiprocessors: int = attributes["MultiProcessorCount"]
        self.arch: int = int(cupy.cuda.Device(index).compute_capability)
        self.overlaps = self.arch >= 90 and cupy.cuda.runtime.driverGetVersion() >= 12030
        self._functions: dict[Kernel, Any] = {}
        self._scratch = threading.local()  # of a thread: by stream
        self._captured: list[cupy.ndarray] = []
        self._lock = threading.Lock()

    def current(self) -> cupy.cuda.Device:
        return cupy.cuda.Device(self.index)

    def empty(self, shape: Shape, dtype: np.dtype, strides: Shape | None = None) -> cupy.ndarray:
        if strides is None:
            return cupy.ndarray(shape, dtype)
        return cupy.ndarray(shape, dtype, strides=tuple(s * dtype.itemsize for s in strides))

    def scratch(self, nbytes: int) -> cupy.ndarray:
        stream = cupy.cuda.get_current_stream()
        if stream.is_capturing():  # the graph may run at any time, beside anything: it gets its own, for good
            self._captured.append(cupy.zeros(nbytes, np.uint8))
            return self._captured[-1]
        mine = self._scratch.__dict__
        if (scratch := mine.get(stream.ptr)) is None:
            scratch = mine[stream.ptr] = cupy.zeros(SCRATCH, np.uint8)
        return scratch

    def pointer(self, array: cupy.ndarray) -> int:
        return array.data.ptr

    def view(self, array: cupy.ndarray, offset: int, dtype: np.dtype, shape: Shape, strides: Shape) -> cupy.ndarray:
        return cupy.ndarray(shape, dtype, array.data + offset, tuple(s * dtype.itemsize for s in strides))

    def broadcast_to(self, array: cupy.ndarray, shape: Shape) -> cupy.ndarray:
        return cupy.broadcast_to(array, shape)

    def nonzero(self, array: cupy.ndarray) -> tuple[cupy.ndarray, ...]:
        return cupy.nonzero(array)

    def dot(self, x: cupy.ndarray, y: cupy.ndarray) -> cupy.ndarray:
        with self.current():
            return cupy.dot(x, y)

    def to_host(self, array: cupy.ndarray) -> np.ndarray:
        return array.get()

    def from_host(self, array: np.ndarray) -> cupy.ndarray:
        return cupy.asarray(array)

    def function(self, kernel: Kernel) -> Any:
        """The loaded kernel, compiled on first use."""
        if (function := self._functions.get(kernel)) is None:
            with self._lock:
                if (function := self._functions.get(kernel)) is None:
                    module = cupy.cuda.function.Module()
                    module.load(jit.compiled(kernel, self.arch))
                    function = self._functions[kernel] = module.get_function(kernel.name)
        return function

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], block: int, args: list[Any], overlaps: bool = False
    ) -> None:
        cells = [cell(arg) for arg in args]
        addresses = (ctypes.c_void_p * len(cells))(*map(ctypes.addressof, cells))
        function, stream = self.function(kernel).ptr, cupy.cuda.get_current_stream().ptr
        if overlaps and self.overlaps:
            config = LaunchConfig(*grid, block, 1, 1, 0, stream, ctypes.pointer(OVERLAP), 1)
            status = libcuda().cuLaunchKernelEx(ctypes.byref(config), ctypes.c_void_p(function), addresses, None)
            if status:
                raise driver.CUDADriverError(status)
        else:
            driver.launchKernel(function, *grid, block, 1, 1, 0, stream, ctypes.addressof(addresses), 0)

    def elementwise(self, step: Any, arrays: dict[str, Any]) -> None:
        views = []
        for operand, size in step.arrays:
            array = arrays[operand.name]
            shape, strides = (*array.shape, array.itemsize // size), (*array.strides, size)
            views.append(cupy.ndarray(shape, np.complex128 if size == 16 else f"u{size}", array.data, strides))
        *inputs, out = views
        elementwise_kernel(step.in_params, step.out_params, step.operation, step.name)(
            *inputs, *map(np.int64, step.scalars), out, size=step.size
        )


def cell(arg: Any) -> Any:
    """The memory that holds one kernel argument while it is launched."""
    if isinstance(arg, bytes):
        return ctypes.create_string_buffer(arg, len(arg))
    if isinstance(arg, tuple):
        array, offset = arg
        return ctypes.c_longlong(array.data.ptr + offset)
    return ctypes.c_longlong(arg or 0)


@cache
def elementwise_kernel(in_params: str, out_params: str, operation: str, name: str) -> cupy.ElementwiseKernel:
    """CuPy's kernel for an ``Elementwise`` step, with the conversions of ``types.cuh`` at hand."""
    return cupy.ElementwiseKernel(in_params, out_params, operation, name, preamble=jit.read("types.cuh"))
