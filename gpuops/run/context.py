"""Where a call is executed: the device of its arrays, and what makes memory there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from ..errors import error
from ..plan.geometry import Shape
from ..plan.work import ArraySpec, Kernel, Launch, Machine, Step


class Device(Protocol):
    """A device that runs kernels. ``gpuops/run/cuda.py`` has the GPU's; the tests bring one that runs on the CPU."""

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


#: The execution context of an array, by its type; None is the host. Libraries add theirs when an array shows up.
CONTEXTS: dict[type, Callable[[Any], ExecutionContext | None]] = {
    np.ndarray: lambda array: None, np.generic: lambda array: None,
}  # fmt: skip
#: Functions that import what adds the contexts of a library's arrays, by its package.
IMPORTERS: dict[str, Callable[[], Any]] = {}
#: Array types with CuPy's attributes, which the launch cache reads in place.
ARRAYS: set[type] = set()
#: Array types of other libraries: what gives the address, and all else that decides a call. It raises TypeError for
#: arrays whose calls are not cached.
READERS: dict[type, Callable[[Any], tuple[int, tuple[Any, ...]]]] = {}

SCALARS = (bool, int, float, complex, np.generic)


def is_scalar(value: Any) -> bool:
    """A value that goes with arrays of every kind, from the host too."""
    return isinstance(value, SCALARS) or (type(value) is np.ndarray and value.ndim == 0)


def context_of(op: str, arrays: dict[str, Any]) -> ExecutionContext | None:
    """The one execution context of all the arrays; None is the host.

    Scalars go with any device. Raises TypeError when NumPy arrays meet arrays of another kind, ValueError when arrays
    are on two devices.
    """
    found: tuple[str, Any, ExecutionContext | None] | None = None
    for name, array in arrays.items():
        if type(array) in ARRAYS:
            context = CONTEXTS[type(array)](array)
        elif name != "out" and is_scalar(array):
            continue
        else:
            context = find(op, name, array)
        if name == "out" and context is None and not isinstance(array, np.ndarray):
            raise not_an_array(op, name, array)
        if found is None:
            found = name, array, context
        elif context is not found[2]:
            if context is None or found[2] is None:
                host_array(op, *((name, array) if context is None else found[:2]))  # which may be no array at all
                both = f"{found[0]} is a {kind(found[1])}, {name} is a {kind(array)}"
                raise error(TypeError, op, f"NumPy and CuPy arrays do not mix: {both}")
            labels = found[2].device.label, context.device.label
            raise error(ValueError, op, f"{found[0]} is on {labels[0]}, {name} is on {labels[1]}")
    return found[2] if found else None


def find(op: str, name: str, array: Any) -> ExecutionContext | None:
    """The execution context of one array; lists and whatever else NumPy makes an array of are the host's."""
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(array, ma.MaskedArray):
        rule = "give where=mask.filled(False)" if name == "where" else "give its data, and ~mask as where="
        raise error(TypeError, op, f"{name} is a {kind(array)}; masked arrays are not supported: {rule}")
    for cls in type(array).__mro__:
        if cls not in CONTEXTS and (package := cls.__module__.partition(".")[0]) in IMPORTERS:
            IMPORTERS[package]()
        if cls in CONTEXTS:
            return CONTEXTS[cls](array)
    if isinstance(array, (str, bytes)):
        raise not_an_array(op, name, array)
    return None


def host_array(op: str, name: str, value: Any, truth: bool = False) -> np.ndarray:
    """An operand of the host as NumPy's array; of the truth of its elements, if that is what counts."""
    try:
        array = np.asarray(value, bool if truth else None)
    except (TypeError, ValueError) as failure:  # such as of lists of several lengths
        exact = TypeError if isinstance(failure, TypeError) else ValueError
        raise error(exact, op, f"{name} does not become an array: {failure}") from None
    opaque = array.ndim == 0 and not (is_scalar(value) or isinstance(value, np.ndarray))
    if opaque and np.asarray(value).dtype == object:
        raise not_an_array(op, name, value)
    return array


def not_an_array(op: str, name: str, value: Any) -> TypeError:
    """The error for an argument that no array can be made of."""
    words = kind(value)
    hint = f"; give {name}.toarray()" if hasattr(value, "toarray") else ""  # a sparse matrix
    return error(TypeError, op, f"{name} is {'an' if words[0] in 'aeio' else 'a'} {words}, not an array{hint}")


def kind(array: Any) -> str:
    """An array's type in words: ``numpy.ndarray``, ``dict``."""
    return f"{type(array).__module__.split('.')[0]}.{type(array).__name__}".removeprefix("builtins.")


class Refused(Exception):
    """A launch that a device does not take on the current stream, though it takes others: too few multiprocessors for
    blocks that all run at once, or for a cluster of them."""

    def __init__(self, device: Device, launch: Launch) -> None:
        super().__init__(f"{launch.kernel.name}: {launch.grid[0]} blocks that run together are too many for the stream")
        self.device, self.launch = device, launch


class NotLoaded(Exception):
    """A kernel, by its name, that a call needs while it is being captured."""
