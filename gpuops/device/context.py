"""What executes calls on a device: the device, and what makes memory there for the arrays of one library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from ..plan.geometry import Shape
from ..plan.work import ArraySpec, Kernel, Launch, Machine, Step


class Device(Protocol):
    """A device that runs kernels. ``gpuops/device/cuda.py`` has the GPU's; the tests bring one that runs on the CPU."""

    label: str

    @property
    def machine(self) -> Machine:
        """What plans may count on: less for a while, where launches have been refused."""
        ...

    def without(self, launch: Launch) -> AbstractContextManager[Any]:
        """Have plans of this thread do without launches such as one that was refused, for a while."""
        ...

    def capturing(self) -> bool:
        """Whether launches on the current stream go into a graph, which libraries may not allow."""
        ...

    def workspace(self, nbytes: int) -> tuple[Any, int]:
        """Aligned memory and its address, kept as long as launches may use it: those of a graph, at any time."""
        ...

    def scratch(self, nbytes: int) -> tuple[Any, int, int]:
        """The scratch of the current stream and thread, its address, and the number of the launch that is to use it,
        counting from 1. Its first bytes, up to ``PARTIALS``, were zero before launch 1."""
        ...

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy memory to the host, after all work of the current stream."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Copy from the host to memory, on the current stream."""
        ...

    def load(self, kernels: list[Kernel]) -> None:
        """Be told of kernels that are about to be launched for the first time, several of them."""
        ...

    def launcher(self, launch: Launch, places: dict[str, int]) -> Callable[..., None]:
        """A function of the arrays' addresses that launches a kernel, which is loaded; ``places`` has the index of each
        array's address. It may be told what else than the launch itself says the kernel is to be given."""
        ...

    def elementwise(self, step: Any, places: dict[str, int]) -> Step:
        """The same of an ``Elementwise`` step, with CuPy's ElementwiseKernel."""
        ...

    def gemm(self, step: Any, places: dict[str, int]) -> Step:
        """The same of a ``Gemm`` step, with cuBLAS."""
        ...


class ExecutionContext(Protocol):
    """The device, stream and allocator that serve the arrays of one library on one device."""

    @property
    def device(self) -> Device: ...

    @property
    def elsewhere(self) -> Callable[[], bool] | None:
        """Tells whether another device, stream or allocator is current; None: these always are."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether its stream and allocator are not CuPy's own."""
        ...

    @property
    def written(self) -> Callable[[Any], None] | None:
        """Is told that ``out`` has been written to."""
        ...

    def enter(self) -> AbstractContextManager[Any]:
        """Make the device, its stream and allocator the current ones for a while."""
        ...

    def spec(self, name: str, array: Any, machine: Machine) -> tuple[ArraySpec, int]:
        """The spec of an array on the device, which is a machine for plans, and the array's address."""
        ...

    def maker(self, dtype: np.dtype) -> Callable[[Shape, Shape | None, list[int]], Any]:
        """A function that makes a new aligned array of that dtype, of a shape and strides in bytes (None: in C order),
        and appends its address."""
        ...

    def broadcast_to(self, array: Any, shape: Shape) -> Any:
        """A view with stride 0 where the array broadcasts."""
        ...

    def nonzero(self, array: Any) -> tuple[Any, ...]:
        """The indices of the non-zero elements, as NumPy's nonzero."""
        ...


class Refused(Exception):
    """A launch that a device does not take on the current stream, though it takes others: too few multiprocessors for
    blocks that all run at once, or for a cluster of them."""

    def __init__(self, device: Device, launch: Launch) -> None:
        super().__init__(f"{launch.kernel.name}: {launch.grid[0]} blocks that run together are too many for the stream")
        self.device, self.launch = device, launch


class NotLoaded(Exception):
    """A kernel, by its name, that a call needs while it is being captured."""
