"""Interfaces of what executes calls: a device, and the context that allocates one library's arrays there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from ..plan.geometry import Shape
from ..plan.work import ArraySpec, Kernel, Launch, Machine, Step


class Device(Protocol):
    """A device that runs kernels: a GPU (``gpuops/device/cuda.py``), or the tests' emulator on the CPU."""

    label: str

    @property
    def machine(self) -> Machine:
        """What plans may use; less inside `without`."""
        ...

    def without(self, launch: Launch) -> AbstractContextManager[Any]:
        """A context in which this thread's plans avoid launches like the refused one."""
        ...

    def capturing(self) -> bool:
        """Whether the current stream is captured into a graph, which some libraries do not allow."""
        ...

    def workspace(self, nbytes: int) -> tuple[Any, int]:
        """Aligned memory and its address. Under capture it lives as long as the graph."""
        ...

    def scratch(self, nbytes: int) -> tuple[Any, int, int]:
        """The scratch of the current stream and thread, its address, and the number of the next launch, from 1 on. Its
        bytes up to ``PARTIALS`` are zero before launch 1."""
        ...

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy memory to the host after all work on the current stream."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Copy from the host to memory, on the current stream."""
        ...

    def load(self, kernels: list[Kernel]) -> None:
        """Prepare to load several kernels at once, which may be new."""
        ...

    def there(self, kernels: list[Kernel]) -> bool:
        """Whether kernels are loaded or, unless under capture, need not be compiled to be."""
        ...

    @property
    def compiles_all(self) -> bool:
        """Whether no kernels came with the package."""
        ...

    def begin(self, kernels: list[Kernel]) -> bool:
        """Begin to compile kernels in the background; whether any was not begun before."""
        ...

    def launcher(self, launch: Launch, places: dict[str, int]) -> Callable[..., None]:
        """Load a kernel; returns a function of the arrays' addresses that launches it. ``places``: the index of each
        array's address. A second argument of the function, a `Given`, replaces the launch's own."""
        ...

    def elementwise(self, step: Any, places: dict[str, int]) -> Step:
        """Likewise for an ``Elementwise`` step, by CuPy's ElementwiseKernel."""
        ...

    def gemm(self, step: Any, places: dict[str, int]) -> Step:
        """Likewise for a ``Gemm`` step, by cuBLAS."""
        ...


class ExecutionContext(Protocol):
    """The device, stream and allocator for one library's arrays on one device."""

    @property
    def device(self) -> Device: ...

    @property
    def elsewhere(self) -> Callable[[], bool] | None:
        """A function that tells whether another device, stream or allocator is current; None if that cannot be."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether stream and allocator are another library's than CuPy."""
        ...

    @property
    def written(self) -> Callable[[Any], None] | None:
        """A function to call after writing to ``out``; None if there is none."""
        ...

    def enter(self) -> AbstractContextManager[Any]:
        """A context in which device, stream and allocator are current."""
        ...

    def spec(self, name: str, array: Any, machine: Machine) -> tuple[ArraySpec, int]:
        """An array's spec, for plans on ``machine``, and its address."""
        ...

    def maker(self, dtype: np.dtype) -> Callable[[Shape, Shape | None, list[int]], Any]:
        """A function that allocates an aligned array, given its shape and strides in bytes (None: C order), and appends
        its address to a list."""
        ...

    def broadcast_to(self, array: Any, shape: Shape) -> Any:
        """A view with stride 0 where the array broadcasts."""
        ...


class Refused(Exception):
    """A launch that the current stream cannot run: too few multiprocessors for co-resident blocks, or for a cluster."""

    def __init__(self, device: Device, launch: Launch) -> None:
        super().__init__(f"{launch.kernel.name}: the stream cannot run {launch.grid[0]} co-resident blocks")
        self.device, self.launch = device, launch


class NotLoaded(Exception):
    """A call under capture needs a kernel, given by name, that is not loaded."""
