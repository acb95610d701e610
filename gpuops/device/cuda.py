"""The GPU, through CuPy: imported with the first CuPy array, never by ``import gpuops``."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import chain
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.api import driver

from ..plan.geometry import Shape
from ..plan.work import (
    ALIGNMENT,
    PORTABLE_CLUSTER,
    ArraySpec,
    Given,
    Kernel,
    Launch,
    Machine,
    Operand,
    Step,
    largest_cluster,
)
from . import cuda_driver, jit, record
from .context import NotLoaded, Refused
from .cuda_driver import STREAM, Arguments
from .cuda_memory import Graphs, Retired, Scratches, aligned

#: Errors of launches that the caller causes: CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_CONTEXT_IS_DESTROYED.
MISUSE = {
    400: "the current stream belongs to another device or was destroyed, or the device was reset",
    709: "the device was reset",
}
#: Errors of launches with too many co-resident blocks: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
#: CUDA_ERROR_INVALID_CLUSTER_SIZE.
REFUSED = (720, 912)
#: The first of the two steps of ``cupy.ndarray(shape, dtype)``, without CuPy's work for subclasses.
NEW = cupy.ndarray.__base__.__new__
#: cuBLAS's cudaDataType and cublasComputeType, by dtype.
BLAS_TYPES = {
    "float16": (2, 68), "bfloat16": (14, 68), "float32": (0, 68), "float64": (1, 70), "complex64": (4, 68),
    "complex128": (5, 70),
}  # fmt: skip

DEVICES: dict[int, CudaDevice] = {}
DEVICES_LOCK = threading.Lock()


def device(index: int) -> CudaDevice:
    """The device with CUDA's index, shared by all threads."""
    if (known := DEVICES.get(index)) is None:
        with DEVICES_LOCK:
            known = DEVICES.get(index) or DEVICES.setdefault(index, CudaDevice(index))
    return known


def device_of(array: cupy.ndarray) -> CudaDevice:
    """An array's device."""
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
        count: int = attributes["MultiProcessorCount"]
        together = count if attributes["CooperativeLaunch"] else 0
        memory = cupy.cuda.runtime.getDeviceProperties(index)["totalGlobalMem"]
        self.whole = Machine(count, largest_cluster(self.arch, shared), shared, together, memory=memory)
        self.elsewhere = self.is_elsewhere if cupy.cuda.runtime.getDeviceCount() > 1 else None
        self.overlaps = self.arch >= 90 and cupy.cuda.runtime.driverGetVersion() >= 12030
        self._functions: dict[Kernel, Any] = {}
        self._codes: dict[Kernel, bytes] = {}  # compiled, not loaded yet
        self._begun: dict[Kernel, Any] = {}  # those that were begun in the background, and their futures
        self._local = threading.local()
        self._retired = Retired(index)
        self._graphs = Graphs()
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

    def spec(self, name: str, array: cupy.ndarray, machine: Machine) -> tuple[ArraySpec, int]:
        address: int = array.data.ptr
        return ArraySpec(name, array.shape, array.dtype, array.strides, machine, address % ALIGNMENT), address

    def maker(self, dtype: np.dtype) -> Callable[[Shape, Shape | None, list[int]], cupy.ndarray]:
        new, cls = NEW, cupy.ndarray

        def make(shape: Shape, strides: Shape | None, addresses: list[int]) -> cupy.ndarray:
            array = new(cls)
            array._init(shape, dtype, None, strides)
            address = array.data.ptr
            if address % ALIGNMENT:  # the caller's own allocator need not align
                memory, address = aligned(array.nbytes)
                array = cupy.ndarray(shape, dtype, memory, strides)
            addresses.append(address)
            return array

        return make

    def workspace(self, nbytes: int) -> tuple[Any, int]:
        memory, address = aligned(nbytes)
        self._graphs.keep(memory)
        return memory, address

    def zeros(self, nbytes: int) -> Any:
        """Zeroed workspace."""
        memory, _ = self.workspace(nbytes)
        memory.memset_async(0, nbytes)
        return memory

    def scratch(self, nbytes: int) -> tuple[Any, int, int]:
        stream = cupy.cuda.get_current_stream()
        if stream.is_capturing():  # a graph may run at any time, beside any work: its own scratch, zeroed per run
            memory = self.zeros(nbytes)
            return memory, memory.ptr, 1
        try:
            mine: Scratches = self._local.scratches
        except AttributeError:
            mine = self._local.scratches = Scratches(self)
        memory, number = mine.of(stream)
        return memory, memory.ptr, number

    def broadcast_to(self, array: cupy.ndarray, shape: Shape) -> cupy.ndarray:
        return cupy.broadcast_to(array, shape)

    def read(self, address: int, nbytes: int) -> bytes:
        data = ctypes.create_string_buffer(max(nbytes, 1))
        stream = cupy.cuda.get_current_stream()
        kind = cupy.cuda.runtime.memcpyDeviceToHost
        cupy.cuda.runtime.memcpyAsync(ctypes.addressof(data), address, nbytes, kind, stream.ptr)
        stream.synchronize()
        return data.raw[:nbytes]

    def write(self, address: int, data: bytes) -> None:
        memory, stream = ctypes.create_string_buffer(data, len(data)), cupy.cuda.get_current_stream()
        kind = cupy.cuda.runtime.memcpyHostToDevice  # pageable memory is staged before the call returns
        cupy.cuda.runtime.memcpyAsync(address, ctypes.addressof(memory), len(data), kind, stream.ptr)

    def load(self, kernels: list[Kernel]) -> None:
        """Compile kernels in parallel, if several are not loaded."""
        missing = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self._functions]
        if len(missing) > 1 and not self.capturing():
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            with ThreadPoolExecutor(len(missing)) as pool:
                codes = pool.map(lambda kernel: self.ahead(kernel) or self.compiled(kernel), missing)
                self._codes |= zip(missing, codes, strict=True)

    def there(self, kernels: list[Kernel]) -> bool:
        if self.capturing():  # which allows no loading
            return all([kernel in self._functions for kernel in kernels])
        for kernel in kernels:
            if kernel not in self._functions and kernel not in self._codes:
                if kernel in self._begun or not (code := jit.kept(kernel, self.arch)):
                    return False
                self._codes[kernel] = code
        return True

    @property
    def compiles_all(self) -> bool:
        return not jit.is_packaged(self.arch)

    def begin(self, kernels: list[Kernel]) -> bool:
        from .background import background  # needed by few processes

        with self._lock:
            known = self._begun.keys() | self._functions.keys()
            new = [kernel for kernel in dict.fromkeys(kernels) if kernel not in known]
            self._begun |= {kernel: background().submit(partial(self.compile_ahead, kernel)) for kernel in new}
        return bool(new)

    def wait_for_kernels(self) -> None:
        """Wait until the kernels that compile in the background are there."""
        for compiling in [*self._begun.values()]:
            if not compiling.cancelled():  # since it was needed before its turn came
                compiling.result()

    def compile_ahead(self, kernel: Kernel) -> None:
        """Compile a kernel for later. One that fails is compiled again when it is needed, which raises."""
        code = b""
        with suppress(Exception):
            code = self.compiled(kernel)
        self._codes.setdefault(kernel, code)

    def compiled(self, kernel: Kernel) -> bytes:
        """Machine code for this GPU."""
        return jit.packaged(kernel, self.arch) or jit.compiled(kernel, self.arch)

    def ahead(self, kernel: Kernel) -> bytes:
        """Machine code that was compiled ahead, waited for if it is being compiled; empty if there is none."""
        if (begun := self._begun.get(kernel)) is not None and not begun.cancel():
            begun.result()
        return self._codes.get(kernel, b"")

    def module(self, kernel: Kernel) -> Any:
        """A kernel's module: of the first machine code that the driver takes."""
        record.note(kernel)
        ahead, refused = self.ahead(kernel), None
        self._codes.pop(kernel, None)
        for code in chain([ahead] if ahead else [], jit.attempts(kernel, self.arch)):
            module = cupy.cuda.function.Module()
            try:
                module.load(code)
                return module
            except driver.CUDADriverError as failure:
                refused = failure
        assert refused is not None
        raise refused

    def function(self, launch: Launch) -> Any:
        """The loaded kernel, compiled on first use."""
        kernel = launch.kernel
        if (function := self._functions.get(kernel)) is None:
            if self.capturing():
                raise NotLoaded(kernel.name)
            with self._lock:
                if (function := self._functions.get(kernel)) is None:
                    function = self.module(kernel).get_function(kernel.name)
                    if launch.cluster > PORTABLE_CLUSTER:
                        cuda_driver.set_attribute(function, cuda_driver.NON_PORTABLE_CLUSTER, 1)
                    if launch.shared:
                        static = cuda_driver.get_attribute(function, cuda_driver.STATIC_SHARED)
                        room = self.machine.shared - static
                        cuda_driver.set_attribute(function, cuda_driver.MAX_DYNAMIC_SHARED, room)
                    self._functions[kernel] = function
        return function

    def launcher(self, launch: Launch, places: dict[str, int]) -> Callable[..., None]:
        """A reusable launch, whose arguments are packed but for the arrays' addresses."""
        handle = ctypes.c_void_p(self.function(launch).ptr)
        operands = [(i, places[arg.name], arg.offset) for i, arg in cuda_driver.pointers_of(launch)]
        attributes = cuda_driver.attributes_of(launch.cluster, launch.cooperative, self.overlaps)
        free: list[Arguments] = []
        launch_kernel, stream = cuda_driver.libcuda().cuLaunchKernelEx, cupy.cuda.get_current_stream

        def go(addresses: list[int], given: Given | None = None) -> None:
            """Launch on the current stream, with arrays at these addresses."""
            try:
                arguments = free.pop()  # taken off the list, so that no two threads share them
            except IndexError:
                arguments = Arguments(launch, attributes)
            if given is not None:
                arguments.give(given)
            words = arguments.words
            words[STREAM] = stream().ptr
            for i, place, offset in operands:
                words[i] = addresses[place] + offset
            if status := launch_kernel(arguments.config, handle, arguments.addresses, None):
                if status == cuda_driver.INVALID_CONTEXT:  # a new thread, without a current context
                    cupy.cuda.runtime.setDevice(self.index)
                    status = launch_kernel(arguments.config, handle, arguments.addresses, None)
                if status in REFUSED and (launch.cluster > 1 or launch.cooperative):
                    raise Refused(self, launch)
                if status in MISUSE:
                    raise RuntimeError(f"{launch.kernel.name} cannot be launched on {self.label}: {MISUSE[status]}")
                cuda_driver.check(status)
            free.append(arguments)

        return go

    def finisher(self, step: Any, places: dict[str, int]) -> Step:
        """A step that finishes a reduction on the host."""
        from .finish import finisher  # needed by few calls

        return finisher(self, step, places)

    def elementwise(self, step: Any, places: dict[str, int]) -> Step:
        kernel = elementwise_kernel(step.in_params, step.out_params, step.operation, step.name)
        operands = [
            (places[operand.name], dtype) if isinstance(operand, Operand) else np.frombuffer(operand, dtype)[0]
            for operand, dtype in ((operand, bits_dtype(size)) for operand, size in step.operands)
        ]
        scalars = [*map(np.int64, step.scalars)]

        def go(addresses: list[int]) -> None:
            """Launch on the current stream, with arrays at these addresses."""
            *inputs, out = (self.element(addresses[x[0]], x[1]) if type(x) is tuple else x for x in operands)
            kernel(*inputs, *scalars, out, size=step.size)

        return go

    def element(self, address: int, dtype: np.dtype) -> cupy.ndarray:
        """A one-element array at an address."""
        memory = cupy.cuda.UnownedMemory(address, dtype.itemsize, self, self.index)
        return cupy.ndarray((1,), dtype, cupy.cuda.MemoryPointer(memory, 0))

    def gemm(self, step: Any, places: dict[str, int]) -> Step:
        from cupy_backends.cuda.libs import cublas  # a library of 100 MB and more, needed only here

        factors = [ctypes.create_string_buffer(factor, len(factor)) for factor in (step.alpha, step.beta)]
        m, n, k = step.sizes
        turned = [cublas.CUBLAS_OP_T if in_columns else cublas.CUBLAS_OP_N for in_columns in step.turned]
        (lda, ldb, ldc), (a_step, b_step, out_step) = step.leading, step.strides
        data, compute = BLAS_TYPES[step.dtype]
        operands = [(places[operand.name], operand.offset) for operand in (step.a, step.b, step.out)]

        def go(addresses: list[int]) -> None:
            """Call cuBLAS on the current stream, with arrays at these addresses."""
            a, b, out = (addresses[place] + offset for place, offset in operands)
            alpha, beta = map(ctypes.addressof, factors)
            handle = cupy.cuda.device.get_cublas_handle()
            mode, pointers = cublas.getMathMode(handle), cublas.getPointerMode(handle)
            cublas.setMathMode(handle, cublas.CUBLAS_DEFAULT_MATH)  # no TF32
            cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
            try:  # column-major: out.T = b.T @ a.T
                cublas.gemmStridedBatchedEx(
                    handle, turned[1], turned[0], n, m, k, alpha, b, data, ldb, b_step, a, data, lda, a_step, beta,
                    out, data, ldc, out_step, step.batch, compute, cublas.CUBLAS_GEMM_DEFAULT,
                )  # fmt: skip
            finally:
                cublas.setMathMode(handle, mode)
                cublas.setPointerMode(handle, pointers)

        return go


def bits_dtype(size: int) -> np.dtype:
    """An unsigned dtype of that size in bytes; complex128 for 16."""
    return np.dtype(np.complex128 if size == 16 else f"u{size}")


@cache
def elementwise_kernel(in_params: str, out_params: str, operation: str, name: str) -> cupy.ElementwiseKernel:
    """CuPy's kernel for an ``Elementwise`` step, with the conversions of ``types.cuh`` as preamble."""
    return cupy.ElementwiseKernel(in_params, out_params, operation, name, preamble=jit.read("types.cuh"))
