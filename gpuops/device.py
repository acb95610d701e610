"""Which device an array lives on, and what a plan needs of it: memory, addresses, launches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from .errors import error
from .plan import Launch, Machine, Plan, Shape, check_order, check_rank

Step = Callable[[list[int]], None]  # of a plan, made ready for a device: called with the addresses of its arrays


class Device(Protocol):
    """A device that runs kernels. ``gpuops/cuda.py`` has the GPU's; the test-suite brings one that runs on the CPU."""

    label: str
    elsewhere: Callable[[], bool] | None  # tells whether another device is the current one; None: there is no other

    @property
    def machine(self) -> Machine:
        """What plans may count on: less for a while, where launches have been refused."""
        ...

    def current(self) -> AbstractContextManager[Any]:
        """Make this the current device for a while."""
        ...

    def without(self, launch: Launch) -> AbstractContextManager[Any]:
        """Have plans of this thread do without launches such as one that was refused, for a while."""
        ...

    def capturing(self) -> bool:
        """Whether what is launched on the current stream goes into a graph, which libraries may not allow."""
        ...

    def empty(self, shape: Shape, dtype: np.dtype, strides: Shape | None = None) -> Any:
        """An uninitialised array; ``strides`` (in elements, of a dense array) default to C order."""
        ...

    def maker(self, shape: Shape, dtype: np.dtype, strides: Shape | None = None) -> Callable[[], tuple[Any, int]]:
        """What makes such arrays, each with its address: as often as it is called."""
        ...

    def scratch(self, nbytes: int) -> tuple[Any, int]:
        """Memory that only this thread's launches on the current stream use, and the number of the launch that is to
        use it, which counts from 1. The memory's first bytes, up to ``plan.PARTIALS``, were zero before all of them."""
        ...

    def keep(self, array: Any) -> None:
        """Keep an array that no caller sees for as long as launches may use it: those of a graph, at any time."""
        ...

    def pointer(self, array: Any) -> int:
        """The address of an array's first element."""
        ...

    def view(self, array: Any, offset: int, dtype: np.dtype, shape: Shape, strides: Shape) -> Any:
        """An array over the same memory, ``offset`` bytes from the first element, with strides in elements."""
        ...

    def broadcast_to(self, array: Any, shape: Shape) -> Any:
        """A view with stride 0 where the array broadcasts."""
        ...

    def nonzero(self, array: Any) -> tuple[Any, ...]:
        """The indices of the non-zero elements, as NumPy's nonzero."""
        ...

    def to_host(self, array: Any) -> np.ndarray:
        """A copy on the host."""
        ...

    def from_host(self, array: np.ndarray) -> Any:
        """A copy on the device."""
        ...

    def launcher(self, launch: Launch, places: dict[str, int]) -> Step:
        """What launches a kernel, which is loaded, as often as it is called; ``places`` are those of the arrays'
        addresses among all that it is given."""
        ...

    def elementwise(self, step: Any, arrays: dict[str, Any]) -> None:
        """Run an ``Elementwise`` step with CuPy's ElementwiseKernel."""
        ...

    def gemm(self, step: Any, places: dict[str, int]) -> Step:
        """What runs a ``Gemm`` step with cuBLAS, likewise."""
        ...


#: Array types whose device is known: ``find(array) -> Device``. Libraries add theirs when their arrays first show up.
FINDERS: dict[type, Any] = {np.ndarray: lambda array: None, np.generic: lambda array: None}
#: Array types whose calls are remembered: with CuPy's attributes.
ARRAYS: set[type] = set()
#: Array types of other libraries whose calls are remembered: what tells the address, and what else decides a call. It
#: raises TypeError for arrays whose calls are to go the long way.
READERS: dict[type, Callable[[Any], tuple[int, tuple[Any, ...]]]] = {}


def device_of(op: str, **arrays: Any) -> Device | None:
    """The one device on which all the arrays live; None is the host.

    Python scalars, NumPy scalars and 0-d NumPy arrays go with any device and may come from the host. Raises TypeError
    when NumPy arrays meet arrays of another kind, and for arrays of a device in another byte order than the machine's;
    ValueError when they lie on two devices.
    """
    home: tuple[str, Any, Device | None] | None = None
    for name, array in arrays.items():
        if array is None or (name != "out" and is_scalar(array)):
            continue
        device = find(op, name, array)
        if name == "out" and device is None and not isinstance(array, np.ndarray):
            raise error(TypeError, op, f"out is a {kind(array)}, not an array")
        if device is not None:
            check_order(op, name, array.dtype)
            check_rank(op, name, array.ndim)
        if home is None:
            home = name, array, device
        elif device is not home[2]:
            if device is None or home[2] is None:
                both = f"{home[0]} is a {kind(home[1])}, {name} is a {kind(array)}"
                raise error(TypeError, op, f"NumPy and CuPy arrays do not mix: {both}")
            raise error(ValueError, op, f"{home[0]} is on {home[2].label}, {name} is on {device.label}")
    return home[2] if home else None


SCALARS = (bool, int, float, complex, np.generic)


def is_scalar(value: Any) -> bool:
    """A value that is passed to a kernel by value and goes with arrays of every kind."""
    return isinstance(value, SCALARS) or (type(value) is np.ndarray and value.ndim == 0)


def find(op: str, name: str, array: Any) -> Device | None:
    """The device of one array; lists and whatever else NumPy makes an array of are the host's."""
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(array, ma.MaskedArray):
        rule = "give where=mask.filled(False)" if name == "where" else "give its data, and ~mask as where="
        raise error(TypeError, op, f"{name} is a {kind(array)}, whose mask is not looked at: {rule}")
    for cls in type(array).__mro__:
        if cls in FINDERS:
            return FINDERS[cls](array)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(array, cupy.ndarray):
        from . import cuda

        FINDERS[cupy.ndarray] = cuda.device_of
        ARRAYS.add(cupy.ndarray)
        return cuda.device_of(array)
    if isinstance(array, (str, bytes)):
        raise error(TypeError, op, f"{name} is a {kind(array)}; gpuops takes arrays and scalars")
    return None


def kind(array: Any) -> str:
    """An array's type in words: ``numpy.ndarray``."""
    return f"{type(array).__module__.split('.')[0]}.{type(array).__name__}"


def run(plan: Plan, device: Device, **arrays: Any) -> None:
    """Carry out a plan on the named arrays, and tell those who watch."""
    arrays = {name: array for name, array in arrays.items() if array is not None}
    given, places = arrays.copy(), {name: i for i, name in enumerate((*arrays, *plan.own))}
    try:
        # Some steps want to see the arrays, not only to know where they begin.
        steps = [
            step.ready(device, places) if hasattr(step, "ready") else partial(step.run, device, given)
            for step in plan.steps
        ]
    except NotLoaded as missing:
        rule = "is not loaded yet, and a capture does not allow that: make the same call once before it begins"
        raise RuntimeError(f"{missing} {rule}, so that it takes strategy {plan.strategy!r}") from None
    if (runs := getattr(WATCHED, "runs", None)) is not None:
        runs.append(Run(plan, device, arrays, steps))
    memory, addresses = provided(plan, device)
    given |= memory
    addresses = [*map(device.pointer, arrays.values()), *addresses]
    for step in steps:
        step(addresses)


class Refused(Exception):
    """A launch that a device does not take where it is made, though it takes others: on a stream to which it gives too
    few multiprocessors for blocks that all run at once, or for a cluster of them."""

    def __init__(self, device: Device, launch: Launch) -> None:
        super().__init__(f"{launch.kernel.name}: {launch.grid[0]} blocks that run together are too many for the stream")
        self.device, self.launch = device, launch


class NotLoaded(Exception):
    """A kernel, by its name, that a call needs while it is being captured."""


def provided(plan: Plan, device: Device) -> tuple[dict[str, Any], list[int]]:
    """The memory that a plan's steps use beside the caller's arrays, by name, and the addresses of ``plan.own``."""
    memory = {name: aligned(device, nbytes) for name, nbytes in plan.workspace}
    addresses = [*map(device.pointer, memory.values())]
    if plan.scratch:
        memory["scratch"], number = device.scratch(plan.scratch)
        addresses += device.pointer(memory["scratch"]), number
    return memory, addresses


def aligned(device: Device, nbytes: int) -> Any:
    """Memory that begins at a multiple of 16, whatever the caller's allocator gives; kept while launches may use it."""
    array = device.empty((nbytes,), np.dtype(np.uint8))
    if device.pointer(array) % 16:
        array = device.empty((nbytes + 16,), array.dtype)
        array = device.view(array, -device.pointer(array) % 16, array.dtype, (nbytes,), (1,))
    device.keep(array)
    return array


class Run(NamedTuple):
    """A plan that was carried out, on which arrays, and its steps, which take the arrays' addresses in this order."""

    plan: Plan
    device: Device
    arrays: dict[str, Any]
    steps: list[Step]


WATCHED = threading.local()


def watched(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, list[Run]]:
    """The result of a call, and what this thread ran for it."""
    outer, WATCHED.runs = getattr(WATCHED, "runs", None), []
    runs = WATCHED.runs
    try:
        return call(*args, **options), runs
    finally:
        WATCHED.runs = outer


def overlap(device: Device, out: Any, array: Any) -> bool:
    """Whether two arrays may share memory: their address ranges meet."""
    (a, b), (c, d) = (extent(device.pointer(each), each) for each in (out, array))
    return a < d and c < b


def extent(address: int, array: Any) -> tuple[int, int]:
    """The first byte and the one after the last of an array whose first element is at an address."""
    low = high = address
    if array.size == 0:
        return low, low
    for n, stride in zip(array.shape, array.strides, strict=True):
        low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
    return low, high + array.itemsize


def elements(array: Any) -> Shape:
    """An array's strides in elements: whole ones, but for dims of length 1 and arrays without elements."""
    itemsize = array.itemsize
    return tuple([s // itemsize for s in array.strides])
