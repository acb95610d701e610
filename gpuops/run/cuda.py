"""The GPU, through CuPy: imported when the first CuPy array shows up, never by ``import gpuops``."""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.api import driver

from ..plan.geometry import Shape
from ..plan.work import ALIGNMENT, PARTIALS, SCRATCH, ArraySpec, Kernel, Launch, Machine, Operand, Step, new_array
from . import jit
from .context import NotLoaded, Refused


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint * 16))


#: CUlaunchConfig of cuda.h: the grid, the block and its shared memory; the stream, the attributes and their number.
LAUNCH_CONFIG = struct.Struct("<7I4x2QI4x")
STREAM = 4  # where in it the stream is, in words of eight bytes
#: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the kernel may be made ready while the one before it ends.
OVERLAP = LaunchAttribute(id=6, value=(1,))
#: CU_LAUNCH_ATTRIBUTE_COOPERATIVE: its blocks all run at a time, or it is refused.
COOPERATIVE = LaunchAttribute(id=2, value=(1,))
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
#: What a launch's status says of how it was called: CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_CONTEXT_IS_DESTROYED.
MISUSE = {
    400: "the current stream is of another device or was destroyed, or the device was reset",
    709: "the device was reset",
}
#: What it says of blocks that are too many to run together: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
#: CUDA_ERROR_INVALID_CLUSTER_SIZE.
REFUSED = (720, 912)
LAUNCHES = 2**32  # that a scratch counts
DEFAULT_STREAMS = 2  # the addresses of the legacy one and of each thread's: 0, 1, 2
STREAMS = 32  # of a thread, that have scratch at a time
FOREIGN = "_foreign_stream_ref"  # what a stream of CuPy's has that wraps one of another library
GONE = 16  # streams that are gone, whose scratch is kept
SEMAPHORE = 64  # bytes for a sem_t, at least
NO_DESTRUCTOR_SYNC = 1  # CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
USER_OBJECT_MOVE = 1  # CU_GRAPH_USER_OBJECT_MOVE
STATIC_SHARED = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
PORTABLE_CLUSTER = 8  # blocks of a cluster that every device with clusters takes
#: The first of the two steps of ``cupy.ndarray(shape, dtype)``, without what it does for subclasses.
NEW = cupy.ndarray.__base__.__new__
#: cuBLAS's names of a dtype (cudaDataType) and of how its products are added up (cublasComputeType).
BLAS_TYPES = {
    "float16": (2, 68), "bfloat16": (14, 68), "float32": (0, 68), "float64": (1, 70), "complex64": (4, 68),
    "complex128": (5, 70),
}  # fmt: skip
LARGE = 2**17  # bytes of shared memory for a block, of devices that take clusters twice as large


@cache
def libcuda() -> ctypes.CDLL:
    """The driver's library, for what CuPy does not wrap."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def libc() -> ctypes.CDLL:
    """The C library."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    return library


DEVICES: dict[int, CudaDevice] = {}
DEVICES_LOCK = threading.Lock()


def device(index: int) -> CudaDevice:
    """The device with CUDA's index: one for all threads."""
    if (known := DEVICES.get(index)) is None:
        with DEVICES_LOCK:
            known = DEVICES.get(index) or DEVICES.setdefault(index, CudaDevice(index))
    return known


def device_of(array: cupy.ndarray) -> CudaDevice:
    """The device on which an array lies."""
    return device(array.data.device_id)


class CudaDevice:
    """One GPU, and the execution context of CuPy's arrays there: CuPy's current allocator and stream."""

    foreign = False
    written = None

    def __init__(self, index: int) -> None:
        self.index = index
        self.label = f"cuda:{index}"
        attributes = cupy.cuda.Device(index).attributes
        self.arch: int = int(cupy.cuda.Device(index).compute_capability)
        shared: int = attributes["MaxSharedMemoryPerBlockOptin"]
        cluster = 1 if self.arch < 90 else PORTABLE_CLUSTER if shared < LARGE else 2 * PORTABLE_CLUSTER
        count: int = attributes["MultiProcessorCount"]
        together = count if attributes["CooperativeLaunch"] else 0
        memory = cupy.cuda.runtime.getDeviceProperties(index)["totalGlobalMem"]
        self.whole = Machine(count, cluster, shared, together, memory=memory)
        self.elsewhere = self.is_elsewhere if cupy.cuda.runtime.getDeviceCount() > 1 else None
        self.overlaps = self.arch >= 90 and cupy.cuda.runtime.driverGetVersion() >= 12030
        self._functions: dict[Kernel, Any] = {}
        self._local = threading.local()
        self._retired = Retired(index)
        self._captured: dict[int, Captured] = {}  # by the number of the capture
        self._lock = threading.Lock()

    @property
    def device(self) -> CudaDevice:
        return self

    @property
    def machine(self) -> Machine:
        return getattr(self._local, "machine", self.whole)

    @contextmanager
    def without(self, launch: Launch) -> Iterator[None]:
        before = self.machine
        self._local.machine = before._replace(
            cluster=1 if launch.cluster > 1 else before.cluster, together=0 if launch.cooperative else before.together
        )
        try:
            yield
        finally:
            self._local.machine = before

    def enter(self) -> cupy.cuda.Device:
        return cupy.cuda.Device(self.index)

    def is_elsewhere(self) -> bool:
        return cupy.cuda.device.get_device_id() != self.index

    def capturing(self) -> bool:
        return cupy.cuda.get_current_stream().is_capturing()

    def spec(self, name: str, array: cupy.ndarray) -> tuple[ArraySpec, int]:
        address: int = array.data.ptr
        return ArraySpec(name, array.shape, array.dtype, array.strides, start=address % ALIGNMENT), address

    def maker(self, spec: ArraySpec) -> Callable[[list[int]], cupy.ndarray]:
        new, cls, shape, dtype = NEW, cupy.ndarray, spec.shape, spec.dtype
        strides = None if spec.strides == new_array("", shape, dtype).strides else spec.strides

        def make(addresses: list[int]) -> cupy.ndarray:
            array = new(cls)
            array._init(shape, dtype, None, strides)
            address = array.data.ptr
            if address % ALIGNMENT:  # as from an allocator of the caller's own
                memory, address = aligned(array.nbytes)
                array = cupy.ndarray(shape, dtype, memory, strides)
            addresses.append(address)
            return array

        return make

    def workspace(self, nbytes: int) -> tuple[Any, int]:
        memory, address = aligned(nbytes)
        self.keep(memory)
        return memory, address

    def scratch(self, nbytes: int) -> tuple[Any, int, int]:
        stream = cupy.cuda.get_current_stream()
        if stream.is_capturing():  # the graph may run at any time, beside anything: it gets its own, cleared each time
            memory = zeros(self, nbytes)
            return memory, memory.ptr, 1
        try:
            mine: Scratches = self._local.scratches
        except AttributeError:
            mine = self._local.scratches = Scratches(self)
        memory, number = mine.of(stream)
        return memory, memory.ptr, number

    def keep(self, memory: cupy.cuda.MemoryPointer) -> None:
        """Keep memory that no caller sees for as long as a graph that is being captured may use it."""
        stream = cupy.cuda.get_current_stream()
        if not stream.is_capturing():
            return
        with self._lock:
            for number, captured in [*self._captured.items()]:
                if captured.gone():
                    del self._captured[number]
            number, graph = capture_of(stream.ptr)
            if number not in self._captured:
                self._captured[number] = Captured(graph)
            self._captured[number].memory.append(memory)

    def broadcast_to(self, array: cupy.ndarray, shape: Shape) -> cupy.ndarray:
        return cupy.broadcast_to(array, shape)

    def nonzero(self, array: cupy.ndarray) -> tuple[cupy.ndarray, ...]:
        return cupy.nonzero(array)

    def read(self, address: int, nbytes: int) -> bytes:
        data = ctypes.create_string_buffer(max(nbytes, 1))
        stream = cupy.cuda.get_current_stream()
        kind = cupy.cuda.runtime.memcpyDeviceToHost
        cupy.cuda.runtime.memcpyAsync(ctypes.addressof(data), address, nbytes, kind, stream.ptr)
        stream.synchronize()
        return data.raw[:nbytes]

    def write(self, address: int, data: bytes) -> None:
        memory, stream = ctypes.create_string_buffer(data, len(data)), cupy.cuda.get_current_stream()
        kind = cupy.cuda.runtime.memcpyHostToDevice  # of pageable memory: it is staged before the call returns
        cupy.cuda.runtime.memcpyAsync(address, ctypes.addressof(memory), len(data), kind, stream.ptr)

    def function(self, launch: Launch) -> Any:
        """The loaded kernel, compiled on first use."""
        kernel = launch.kernel
        if (function := self._functions.get(kernel)) is None:
            if self.capturing():
                raise NotLoaded(kernel.name)
            with self._lock:
                if (function := self._functions.get(kernel)) is None:
                    module = cupy.cuda.function.Module()
                    try:
                        module.load(jit.compiled(kernel, self.arch))
                    except driver.CUDADriverError:  # what lies in the cache is of no use
                        module = cupy.cuda.function.Module()
                        module.load(jit.compiled(kernel, self.arch, anew=True))
                    function = module.get_function(kernel.name)
                    if launch.cluster > PORTABLE_CLUSTER:
                        set_attribute(function, NON_PORTABLE_CLUSTER, 1)
                    if launch.shared:
                        room = self.machine.shared - get_attribute(function, STATIC_SHARED)
                        set_attribute(function, MAX_DYNAMIC_SHARED, room)
                    self._functions[kernel] = function
        return function

    def launcher(self, launch: Launch, places: dict[str, int]) -> Step:
        """A launch that is made again and again: all of its arguments lie ready but the addresses of the arrays."""
        handle = ctypes.c_void_p(self.function(launch).ptr)
        pointers = [arg for arg in launch.args if not isinstance(arg, bytes)]
        first = LAUNCH_CONFIG.size // 8 + len(launch.args)
        operands = [(i, places[arg.name], arg.offset) for i, arg in enumerate(pointers, first) if arg is not None]
        attributes = attributes_of(launch.cluster, launch.cooperative, self.overlaps)
        free: list[Arguments] = []
        launch_kernel, stream = libcuda().cuLaunchKernelEx, cupy.cuda.get_current_stream

        def go(addresses: list[int]) -> None:
            """Launch it on the current stream, on the arrays that begin at these addresses."""
            try:
                arguments = free.pop()  # no thread shares them while they are in use
            except IndexError:
                arguments = Arguments(launch, attributes)
            words = arguments.words
            words[STREAM] = stream().ptr
            for i, place, offset in operands:
                words[i] = addresses[place] + offset
            if status := launch_kernel(arguments.config, handle, arguments.addresses, None):
                if status == INVALID_CONTEXT:  # of a new thread: the driver's launches do not enter it, as CuPy's do
                    cupy.cuda.runtime.setDevice(self.index)
                    status = launch_kernel(arguments.config, handle, arguments.addresses, None)
                if status in REFUSED and (launch.cluster > 1 or launch.cooperative):
                    raise Refused(self, launch)
                if status in MISUSE:
                    raise RuntimeError(f"{launch.kernel.name} cannot be launched on {self.label}: {MISUSE[status]}")
                check(status)
            free.append(arguments)

        return go

    def elementwise(self, step: Any, places: dict[str, int]) -> Step:
        kernel = elementwise_kernel(step.in_params, step.out_params, step.operation, step.name)
        operands = [
            (places[operand.name], dtype) if isinstance(operand, Operand) else np.frombuffer(operand, dtype)[0]
            for operand, dtype in ((operand, bits_dtype(size)) for operand, size in step.operands)
        ]
        scalars = [*map(np.int64, step.scalars)]

        def go(addresses: list[int]) -> None:
            """Launch it on the current stream, on the arrays that begin at these addresses."""
            *inputs, out = (self.element(addresses[x[0]], x[1]) if type(x) is tuple else x for x in operands)
            kernel(*inputs, *scalars, out, size=step.size)

        return go

    def element(self, address: int, dtype: np.dtype) -> cupy.ndarray:
        """The array of the one element at an address."""
        memory = cupy.cuda.UnownedMemory(address, dtype.itemsize, self, self.index)
        return cupy.ndarray((1,), dtype, cupy.cuda.MemoryPointer(memory, 0))

    def gemm(self, step: Any, places: dict[str, int]) -> Step:
        from cupy_backends.cuda.libs import cublas  # a library of 100 MB and more, which only this needs

        factors = [ctypes.create_string_buffer(factor, len(factor)) for factor in (step.alpha, step.beta)]
        m, n, k = step.sizes
        turned = [cublas.CUBLAS_OP_T if in_columns else cublas.CUBLAS_OP_N for in_columns in step.turned]
        (lda, ldb, ldc), (a_step, b_step, out_step) = step.leading, step.strides
        data, compute = BLAS_TYPES[step.dtype]
        operands = [(places[operand.name], operand.offset) for operand in (step.a, step.b, step.out)]

        def go(addresses: list[int]) -> None:
            """Call it on the current stream, on the arrays that begin at these addresses."""
            a, b, out = (addresses[place] + offset for place, offset in operands)
            alpha, beta = map(ctypes.addressof, factors)
            handle = cupy.cuda.device.get_cublas_handle()
            mode, pointers = cublas.getMathMode(handle), cublas.getPointerMode(handle)
            cublas.setMathMode(handle, cublas.CUBLAS_DEFAULT_MATH)  # no TF32
            cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
            try:  # it knows matrices in columns: out's transpose is that of b times that of a
                cublas.gemmStridedBatchedEx(
                    handle, turned[1], turned[0], n, m, k, alpha, b, data, ldb, b_step, a, data, lda, a_step, beta,
                    out, data, ldc, out_step, step.batch, compute, cublas.CUBLAS_GEMM_DEFAULT,
                )  # fmt: skip
            finally:
                cublas.setMathMode(handle, mode)
                cublas.setPointerMode(handle, pointers)

        return go


# ---------------------------------------------------------------------------------------------------- kept memory


class Scratch:
    """The scratch of a stream, and the numbers of the launches that use it."""

    def __init__(self, device: CudaDevice, stream: Any, id_: int) -> None:
        self.memory, self.stream, self.id, self.number = zeros(device, SCRATCH), stream, id_, 0

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

    def __init__(self, device: CudaDevice) -> None:
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

    After the last work of a stream that is there an event tells so. Of streams that are gone nothing does: when there
    are many of those, the device is waited for.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.known: list[tuple[Any, Scratch]] = []
        self.unknown: list[Scratch] = []
        self.lock = threading.Lock()

    def add(self, old: Scratch) -> None:
        with self.lock, cupy.cuda.Device(self.index):
            self.known = [(event, scratch) for event, scratch in self.known if not event.done]
            if old.stream is not None and not old.stream.is_capturing():
                event = cupy.cuda.Event(disable_timing=True)
                event.record(old.stream)
                self.known.append((event, old))
                return
            self.unknown.append(old)
            if len(self.unknown) >= GONE:
                cupy.cuda.runtime.deviceSynchronize()
                self.unknown.clear()


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
        check(libcuda().cuUserObjectCreate(ctypes.byref(user_object), semaphore, call, 1, NO_DESTRUCTOR_SYNC))
        check(libcuda().cuGraphRetainUserObject(graph, user_object, 1, USER_OBJECT_MOVE))
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


def capture_of(stream: int) -> tuple[int, ctypes.c_void_p]:
    """The unique number of the capture on a stream, and the graph that it makes."""
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    arguments = [ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None]
    check(libcuda().cuStreamGetCaptureInfo_v2(ctypes.c_void_p(stream), *arguments))
    return number.value, graph


def stream_id(stream: int) -> int:
    """The number of a stream, which no other one of the process has had."""
    number = ctypes.c_uint64()
    check(libcuda().cuStreamGetId(ctypes.c_void_p(stream), ctypes.byref(number)))
    return number.value


class Borrowed(cupy.cuda.UnownedMemory):
    """Memory of another library's, which lives as long as its owner."""

    def __init__(self, address: int, nbytes: int, owner: Any, index: int) -> None:
        super().__init__(address, nbytes, owner, index)
        self.owner = owner


@cache
def attributes_of(cluster: int, cooperative: bool, overlaps: bool) -> Any:
    """The attributes of a launch, as the driver takes them. (What is cooperative does not overlap.)"""
    every = [COOPERATIVE] if cooperative else [OVERLAP] if overlaps else []
    if cluster > 1:
        every.append(LaunchAttribute(id=CLUSTER_DIMENSION, value=(cluster, 1, 1)))
    return (LaunchAttribute * len(every))(*every)


class Arguments:
    """The memory of a launch's arguments: its configuration, the addresses of its arguments, and these, of which the
    addresses of arrays and the stream are filled in."""

    def __init__(self, launch: Launch, attributes: Any) -> None:
        structs = [arg for arg in launch.args if type(arg) is bytes]
        places, end, size = places_of(tuple([len(arg) if type(arg) is bytes else 0 for arg in launch.args]))
        self.memory = ctypes.create_string_buffer(size)
        start = ctypes.addressof(self.memory)
        shape = (*launch.grid, launch.block, 1, 1, launch.shared)
        head = LAUNCH_CONFIG.pack(*shape, 0, ctypes.addressof(attributes), len(attributes))
        head += struct.pack(f"{len(places)}Q", *[start + place for place in places])
        ctypes.memmove(start, head, len(head))
        ctypes.memmove(start + end, b"".join(structs), size - end)
        self.words = memoryview(self.memory).cast("B")[:end].cast("q")
        self.config, self.addresses = ctypes.c_void_p(start), ctypes.c_void_p(start + LAUNCH_CONFIG.size)


@cache
def places_of(sizes: tuple[int, ...]) -> tuple[list[int], int, int]:
    """Where in a launch's memory its arguments lie, addresses of arrays (of size 0) before structs; where the structs
    begin, and where they end."""
    first = LAUNCH_CONFIG.size + 8 * len(sizes)
    end = first + 8 * sizes.count(0)
    operands, structs = itertools.count(first, 8), itertools.accumulate(filter(None, sizes), initial=end)
    return [next(structs if size else operands) for size in sizes], end, end + sum(sizes)


def bits_dtype(size: int) -> np.dtype:
    """A dtype of so many bytes."""
    return np.dtype(np.complex128 if size == 16 else f"u{size}")


def aligned(nbytes: int) -> tuple[cupy.cuda.MemoryPointer, int]:
    """Aligned memory and its address, whatever the current allocator gives."""
    memory = cupy.cuda.alloc(nbytes)
    if memory.ptr % ALIGNMENT:
        memory = cupy.cuda.alloc(nbytes + ALIGNMENT)
        memory = memory + -memory.ptr % ALIGNMENT
    return memory, memory.ptr


def zeros(device: CudaDevice, nbytes: int) -> cupy.cuda.MemoryPointer:
    """Aligned memory, cleared; that of a graph is kept."""
    memory, _ = device.workspace(nbytes)
    memory.memset_async(0, nbytes)
    return memory


def get_attribute(function: Any, attribute: int) -> int:
    """An attribute of a loaded kernel."""
    value = ctypes.c_int()
    check(libcuda().cuFuncGetAttribute(ctypes.byref(value), attribute, ctypes.c_void_p(function.ptr)))
    return value.value


def set_attribute(function: Any, attribute: int, value: int) -> None:
    """Set an attribute of a loaded kernel."""
    check(libcuda().cuFuncSetAttribute(ctypes.c_void_p(function.ptr), attribute, value))


def check(status: int) -> None:
    """Raise what the driver's status says."""
    if status:
        raise driver.CUDADriverError(status)


@cache
def elementwise_kernel(in_params: str, out_params: str, operation: str, name: str) -> cupy.ElementwiseKernel:
    """CuPy's kernel for an ``Elementwise`` step, with the conversions of ``types.cuh`` at hand."""
    return cupy.ElementwiseKernel(in_params, out_params, operation, name, preamble=jit.read("types.cuh"))
