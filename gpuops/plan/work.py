"""What descriptions consist of: the arrays of a call as specs, a plan for a device, a call for the CPU.

An op's description is pure: `ArraySpec` in, `Work` out. All of it prints and compares.
"""

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import error
from . import printing
from .geometry import Shape, broadcast_strides, contiguous_strides
from .params import Params

MAX_GRID = (2**31 - 1, 2**16 - 1)  # blocks of a launch in x and y
STATIC_SHARED = 48 * 1024  # bytes of shared memory that every GPU gives a block
ALIGNMENT = 16  # bytes: of new results and workspace, and of the widest load

# The scratch is shared by a stream's launches: tickets and barriers (8 bytes each), what tiles of scans tell each other
# (tagged with launch numbers), then partial results.
SCRATCH = 2**22  # bytes in all
TICKETS = 4096
BARRIERS = 1024
BARRIERS_OFFSET = 8 * TICKETS  # in bytes
SLOTS_OFFSET = BARRIERS_OFFSET + 8 * BARRIERS
SLOTS = 2**17  # bytes
PARTIALS = SLOTS_OFFSET + SLOTS


COUNTS = "counts"  # the workspace of numbers (int64) that the host reads between the two works of a call


class Machine(NamedTuple):
    """The properties of a device that plans depend on."""

    multiprocessors: int
    cluster: int = 1  # most blocks of a cluster
    shared: int = STATIC_SHARED  # most bytes of shared memory of a block; a multiprocessor has hardly more
    together: int = 0  # most blocks of a cooperative launch with one block per multiprocessor
    blas: bool = True  # whether cuBLAS can be called
    memory: int = 2**63  # bytes in all
    general: bool = False  # kernels of small arrays serve larger ones too, while the kernels of these compile


PORTABLE_CLUSTER = 8  # blocks of a cluster that every device with clusters supports
LARGE = 2**17  # devices with this much shared memory for a block, in bytes, support clusters twice as large


def largest_cluster(arch: int, shared: int) -> int:
    """Most blocks of a cluster, by compute capability (90 for 9.0) and bytes of shared memory of a block."""
    if arch < 90:
        return 1
    return PORTABLE_CLUSTER if shared < LARGE else 2 * PORTABLE_CLUSTER


# ---------------------------------------------------------------------------------------------------------- launches


class Variant(NamedTuple):
    """A kernel file of ``gpuops/kernels``, and the types and constants that it is compiled with."""

    name: str
    types: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, int], ...]
    expression: Any = None  # a hashable description of the operand x, if that is computed where it is read


class Kernel(Variant):
    """A variant that caches its hash."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


def variant(name: str, types: dict[str, str], constants: dict[str, int]) -> Kernel:
    """The kernel of that name, types and constants: one object for all plans."""
    return _variant(name, tuple(types), tuple(types.values()), tuple(constants), tuple(constants.values()))


@lru_cache(maxsize=4096)
def _variant(
    name: str, types: tuple[str, ...], type_values: tuple[str, ...], constants: tuple[str, ...], values: Shape
) -> Kernel:
    return Kernel(
        name, tuple(zip(types, type_values, strict=True)), tuple(zip(constants, map(int, values), strict=True))
    )


class Operand(NamedTuple):
    """A pointer argument: the name of an array of the call, and an offset in bytes from its first element."""

    name: str
    offset: int = 0


#: The launch number, passed among the addresses: higher than that of every earlier launch that used the scratch.
LAUNCH = Operand("launch")
NO_LAUNCH = bytes(8)  # in its place, where a kernel needs none


class Sources(NamedTuple):
    """A struct argument: pointers to arrays, then parameters."""

    operands: tuple[Operand, ...]
    params: Params

    @property
    def struct(self) -> Params:
        """The struct with null pointers."""
        count = len(self.operands)
        return Params(f"@{count}Q{self.params.format.removeprefix('@')}", (*(0,) * count, *self.params.values))



Step = Callable[[list[int]], None]  # a prepared step of a plan, a function of the arrays' addresses


#: What varies among launches of one kernel: grid and block, in three dims each, and bytes of shared memory; the values
#: of each parameter struct.
Given = tuple[tuple[int, ...], tuple[tuple[Any, ...], ...]]


class PlanStep(Protocol):
    """A step of a plan: a launch, a call of cuBLAS, …"""

    def ready(self, device: Any, places: dict[str, int]) -> Step:
        """Prepare the step for a device. ``places``: the index of each array's address."""
        ...


class Launch(NamedTuple):
    """One kernel launch of a plan."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: int
    args: tuple[Operand | Params | Sources | bytes | None, ...]  # None: a null pointer
    cluster: int = 1  # blocks of a cluster
    shared: int = 0  # bytes of dynamic shared memory
    cooperative: bool = False  # its blocks wait for each other, so all must be resident

    def ready(self, device: Any, places: dict[str, int]) -> Step:
        return device.launcher(self, places)

    @property
    def packed(self) -> tuple[Operand | Params | bytes | None, ...]:
        """The arguments as words, structs and bytes."""
        return tuple([arg.struct if isinstance(arg, Sources) else arg for arg in self.args])

    @property
    def pointers(self) -> list[tuple[int, int, Operand]]:
        """All pointers: the argument, the word in it, and where it points."""
        found = []
        for i, arg in enumerate(self.args):
            operands = arg.operands if isinstance(arg, Sources) else (arg,)
            found += [(i, word, each) for word, each in enumerate(operands) if isinstance(each, Operand)]
        return found

    def __repr__(self) -> str:
        return f"Launch(kernel={self.kernel!r}, grid={self.grid}, block={self.block})"


#: The columns of printed plans.
HEADER = ("step", "kernel", "grid", "block", "shared", "compiled with")


def row(number: int, step: Any) -> tuple[str, ...]:
    """A step's row under ``HEADER``; for one other than a launch, its class and what that does."""
    if not isinstance(step, Launch):
        does = (type(step).__doc__ or "").partition("\n")[0].replace("`", "")
        return str(number), type(step).__name__, "", "", "", does
    ways = [f"clusters of {step.cluster}"] * (step.cluster > 1) + ["cooperative"] * step.cooperative
    compiled = [f"{name}={value}" for name, value in (*step.kernel.types, *step.kernel.constants)]
    facts = ", ".join([str(step.grid), *ways]), str(step.block), str(step.shared)
    return str(number), step.kernel.name, *facts, " ".join(compiled)


def given(launch: Launch) -> Given:
    """The part of a launch that varies among those of its kernel."""
    structs = tuple([arg.values for arg in launch.packed if isinstance(arg, Params)])
    return (*launch.grid, launch.block, 1, 1, launch.shared), structs


def check_grid(op: str, kernel: str, blocks: tuple[int, int], problem: str, *values: int) -> tuple[int, int, int]:
    """A grid of these blocks in x and y. Raises if CUDA does not allow it; ``problem``, with values, explains them."""
    x, y = blocks
    if x > MAX_GRID[0] or y > MAX_GRID[1]:
        axis, count, most = ("x", x, MAX_GRID[0]) if x > MAX_GRID[0] else ("y", y, MAX_GRID[1])
        rule = f"{kernel} takes at most {most} blocks in {axis}, {problem.format(*values)} need {count}"
        raise error(ValueError, op, rule)
    return x, y, 1


class Plan(NamedTuple):
    """What a call does on the device: steps in order, and the workspace (name, bytes) that they share.

    ``scratch``: the bytes of the stream's scratch that they use.
    ``in_place``: whether ``out`` may be the input itself, with the same strides.
    """

    strategy: str
    steps: tuple[Any, ...]  # PlanStep
    workspace: tuple[tuple[str, int], ...] = ()
    scratch: int = 0
    in_place: bool = False

    @property
    def own(self) -> list[str]:
        """The names of the workspace and, if they are used, of the scratch and the launch number."""
        names = [name for name, _ in self.workspace]
        return [*names, "scratch", LAUNCH.name] if self.scratch else names

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels that it launches."""
        return [step.kernel for step in self.steps if isinstance(step, Launch)]

    @property
    def summary(self) -> str:
        """The strategy, the workspace and the scratch."""
        memory = [*self.workspace, *([("scratch", self.scratch)] if self.scratch else [])]
        return ", ".join([f"strategy {self.strategy}", *(f"{name} of {nbytes} bytes" for name, nbytes in memory)])

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Its steps under ``HEADER``."""
        return [row(i, step) for i, step in enumerate(self.steps, 1)]

    def __str__(self) -> str:
        return "\n".join([self.summary, *(printing.as_item(HEADER, each) for each in self.rows)])

    def _repr_html_(self) -> str:
        return printing.as_html(self.summary, HEADER, self.rows)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


# -------------------------------------------------------------------------------------------------------- descriptions


class ArraySpec(NamedTuple):
    """What an op may know about an array: an operand, ``out``, a new result, or workspace.

    For ``out``, ``overlaps`` names the operands that share memory with it, ``aliases`` those that begin at its address.
    A scalar operand on a device has a ``value`` and no memory.
    """

    name: str
    shape: Shape
    dtype: np.dtype
    strides: Shape  # in bytes
    machine: Machine | None = None  # of the device that has it; None is the host
    start: int = 0  # the address of its first element modulo 16
    offset: int = 0  # bytes from the first element of the array of that name
    value: bytes | None = None
    overlaps: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    writeable: bool = True
    made: Any = None  # the expression of an array that is not in memory

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def steps(self) -> Shape:
        """The strides in elements; exact for regular arrays, except in dims of length 1 and in empty arrays."""
        itemsize = self.dtype.itemsize
        return tuple([stride // itemsize for stride in self.strides])

    @property
    def operand(self) -> Operand:
        """The pointer argument for its first element."""
        return Operand(self.name, self.offset)

    @property
    def regular(self) -> bool:
        """Whether strides are multiples of the item size and elements are aligned; complex ones to half their size, as
        in a view of real numbers."""
        itemsize = self.dtype.itemsize
        for n, stride in zip(self.shape, self.strides, strict=True):
            if stride % itemsize and n > 1:
                return self.size == 0
        return not self.start % (itemsize // 2 if self.dtype.kind == "c" else itemsize) or not self.size

    def transpose(self, order: Shape) -> "ArraySpec":
        """A view with the dims in another order."""
        return self._replace(
            shape=tuple([self.shape[d] for d in order]), strides=tuple([self.strides[d] for d in order])
        )

    def broadcast_to(self, shape: Shape) -> "ArraySpec":
        """A view with stride 0 where it broadcasts."""
        if shape == self.shape:
            return self
        return self._replace(shape=shape, strides=broadcast_strides(self.shape, self.strides, shape))

    def view(self, shape: Shape, steps: Shape, dtype: np.dtype | None = None, offset: int = 0) -> "ArraySpec":
        """A view with other dims and strides (in elements), ``offset`` bytes further on."""
        dtype = dtype or self.dtype
        strides = tuple([step * dtype.itemsize for step in steps])
        at = (self.start + offset) % ALIGNMENT, self.offset + offset
        return self._replace(shape=shape, dtype=dtype, strides=strides, start=at[0], offset=at[1])


def new_array(
    name: str, shape: Shape, dtype: np.dtype, steps: Shape | None = None, machine: Machine | None = None
) -> ArraySpec:
    """The spec of a new array: aligned, in C order unless ``steps`` are its strides in elements."""
    itemsize = dtype.itemsize
    strides = tuple([step * itemsize for step in (contiguous_strides(shape) if steps is None else steps)])
    return ArraySpec(name, shape, dtype, strides, machine)


class HostCall(NamedTuple):
    """What the CPU does: call a function of the NumPy engine with the arrays by name and with options."""

    function: Callable[..., Any]
    options: dict[str, Any]


class Work(NamedTuple):
    """What a call does.

    On a device (``plan``): allocate the results that the caller did not pass, and run the plan's steps. On the host
    (``host``): one call of the NumPy engine. ``method``, instead of a plan, names a method of the execution context
    that makes the result, a view. Such calls are not cached. If the device must count first, the plan does so: the host
    reads its `COUNTS`, and ``then`` describes the rest of the call, given these numbers.
    """

    op: str
    results: tuple[ArraySpec, ...]
    host: HostCall
    plan: Plan | None = None
    method: tuple[str, tuple[Any, ...]] | None = None
    form: Any = None  # of the results: a tuple, or a named tuple; None: one by itself, several as a tuple
    then: "Then | None" = None
    sooner: "Sooner | None" = None  # plans the same results, for while the plan's own kernels compile

    @property
    def summary(self) -> str:
        """The op and its results; without a plan, also the function that makes them."""
        facts = [f"{spec.name} {spec.dtype} {spec.shape}" for spec in self.results]
        if self.then:
            facts.append("as many results as are counted")
        if self.method:
            facts.append(f"by {self.method[0]}")
        elif not self.plan:
            facts.append(f"by {self.host.function.__name__} on the host")
        return f"{self.op}: {', '.join(facts)}"

    def __str__(self) -> str:
        return f"{self.summary}\n{self.plan}" if self.plan else self.summary

    def _repr_html_(self) -> str | None:
        return self.plan and printing.as_html(f"{self.summary}; {self.plan.summary}", HEADER, self.plan.rows)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class Sooner(Protocol):
    """Another plan of a call."""

    def __call__(self) -> Plan:
        """Make it."""
        ...


class Then(Protocol):
    """The rest of a call."""

    def __call__(self, counts: tuple[int, ...]) -> Work:
        """Describe it, given the numbers that the first work has counted."""
        ...
