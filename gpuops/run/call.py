"""A cache miss: adapt the arguments, have the op describe the call, execute it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import error
from ..plan.work import ArraySpec, Work
from .context import ARRAYS, IMPORTERS, ExecutionContext, Refused, context_of, is_scalar
from .execute import Fits, Ready, prepare, related

#: What a parameter takes: arrays and scalars; arrays, and Python scalars that yield to the dtypes of others; the mask
#: ``where``; the array that the result is written to; an array whose subclass counts.
ARRAY, WEAK, MASK, OUT, SUBCLASS = "array", "weak", "mask", "out", "subclass"
#: Types of arguments that are no arrays.
PLAIN = frozenset((int, bool, float, str, tuple, type, type(None)))
WEAK_TYPES = (int, float, complex)  # Python's scalars, which yield to the dtypes of arrays (NEP 50)
#: PyTorch's names of parameters, and NumPy's.
MEANT = {"dim": "axis", "keepdim": "keepdims"}


class Operation:
    """A public function: the pure description of its calls, and what those of its parameters take that are arrays."""

    def __init__(self, describe: Callable[..., Work], operands: dict[str, str]) -> None:
        code = describe.__code__
        self.describe, self.operands, self.name = describe, operands, describe.__name__
        self.parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # positional ones first


class Entry:
    """What the launch cache knows of a kind of calls: nothing at first."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready: Ready | None = None


class Call(NamedTuple):
    """A call that is to be made: the public function, its operation, the arguments by name, of which the first few are
    given by position, and those among them that are arrays."""

    public: Callable[..., Any]
    operation: Operation
    given: dict[str, Any]
    positional: int
    arrays: dict[str, Any]

    @property
    def name(self) -> str:
        return self.operation.name

    def on(self, arrays: dict[str, Any]) -> Call:
        """The same call with other arrays."""
        return self._replace(given=self.given | arrays, arrays=arrays)

    def make(self, function: Callable[..., Any], given: dict[str, Any]) -> Any:
        """The result of a function for the arguments."""
        items = [*given.items()]
        args = [value for _, value in items[: self.positional]]
        return function(*args, **dict(items[self.positional :]))

    def describe(self, specs: dict[str, ArraySpec]) -> Work:
        """The description of the call, given specs of the arrays."""
        work: Work = self.make(self.operation.describe, self.given | specs)
        return work

    def repeat(self) -> Any:
        """Call the public function."""
        return self.make(self.public, self.given)


class Adapter(Protocol):
    """Makes calls with arrays of another library."""

    def call(self, call: Call, entry: Entry | None, addresses: list[int]) -> Any:
        """The result of a call; what the launch cache has for it, and the addresses of its arrays."""
        ...


def native_cupy() -> None:
    """Make CuPy's arrays native."""
    from . import cuda  # noqa: F401 - which imports CuPy


IMPORTERS["cupy"] = native_cupy
#: Functions that give the adapter of a call; None if its arrays are native. (`gpuops.adapters` adds its own.)
ADAPTERS: list[Callable[[Call], Adapter | None]] = []


def miss(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any],
    entry: Entry | None, addresses: list[int],
) -> Any:  # fmt: skip
    """A call that is not cached."""
    exclude_from_compilers()
    call = bind(public, operation, args, options)
    if type(out := call.given.get("out")) is tuple and len(out) == 1:  # as NumPy's ufuncs take it
        return call.on({"out": out[0]}).repeat()
    adapters = filter(None, (adapter_of(call) for adapter_of in ADAPTERS))
    make = next((adapter.call for adapter in adapters), perform)
    return attempt(make, call, entry, addresses)


def bind(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
) -> Call:
    """The arguments of a call by name; None and True (no mask) are no arrays."""
    parameters, operands = operation.parameters, operation.operands
    for name in options:
        if name in MEANT and MEANT[name] in parameters:
            raise error(TypeError, operation.name, f"{name} is not a parameter; {MEANT[name]} is, as in NumPy")
    given = dict(zip(parameters, args, strict=False))
    if len(args) > len(parameters) or not given.keys().isdisjoint(options):
        operation.describe(*args, **options)  # Python words it
    given |= options
    arrays = {
        name: value for name, value in given.items()
        if name in operands and value is not None and not (value is True and operands[name] is MASK)
    }  # fmt: skip
    return Call(public, operation, given, len(args), arrays)


def attempt(make: Callable[..., Any], call: Call, entry: Entry | None, addresses: list[int]) -> Any:
    """Make a call; if a launch is refused, once more without such launches, and without caching."""
    try:
        return make(call, entry, addresses)
    except Refused as refused:
        with refused.device.without(refused.launch):
            return attempt(make, call, None, addresses)


def perform(call: Call, entry: Entry | None, addresses: list[int]) -> Any:
    """Make a call with native arrays, and keep the work that is ready for the next one."""
    call = with_numbers(call)
    context = context_of(call.name, call.arrays)
    if context is None:
        return on_host(call)
    with context.enter():
        return on_device(call, context, entry, addresses)


def with_numbers(call: Call) -> Call:
    """The same call with numbers in the place of arrays without dims that are no operands."""
    operands = call.operation.operands
    numbers = {
        name: as_number(value) for name, value in call.given.items()
        if name not in operands and type(value) not in PLAIN
    }  # fmt: skip
    return call._replace(given=call.given | numbers) if numbers else call


def as_number(value: Any) -> Any:
    """A scalar: of an array without dims of any library its element, for which a GPU is waited."""
    if type(value) is np.ndarray and value.ndim == 0:
        return value[()]
    if is_scalar(value) or getattr(value, "shape", None) != () or not hasattr(value, "item"):
        return value
    return value.item()


def on_host(call: Call) -> Any:
    """The result of a call with arrays of the host."""
    arrays = host_arrays(call)
    host = call.describe(host_specs(arrays)).host
    return host.function(**arrays, **host.options)


def host_arrays(call: Call) -> dict[str, np.ndarray]:
    """The arrays of a call as NumPy's; Python scalars that stay such are left out."""
    arrays = ((name, on_cpu(call, name, value)) for name, value in call.arrays.items())
    return {name: array for name, array in arrays if array is not None}


def on_cpu(call: Call, name: str, value: Any) -> np.ndarray | None:
    """An operand as NumPy's array in the machine's byte order; None for a Python scalar that stays one."""
    takes = call.operation.operands[name]
    if takes == OUT:
        return value
    if takes == WEAK and type(value) in WEAK_TYPES:
        return None
    if takes == MASK and not hasattr(value, "dtype"):  # a mask by its truth, as in NumPy
        return np.asarray(value, bool)
    array = np.asanyarray(value) if takes == SUBCLASS else np.asarray(value)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def host_specs(arrays: dict[str, np.ndarray]) -> dict[str, ArraySpec]:
    """The specs of arrays of the host."""
    return {
        name: ArraySpec(name, array.shape, array.dtype, array.strides, writeable=array.flags.writeable)
        for name, array in arrays.items()
    }


def on_device(call: Call, context: ExecutionContext, entry: Entry | None, addresses: list[int]) -> Any:
    """The result of a call with arrays of a device."""
    captured = context.device.capturing()
    specs, scalars, places, fits = device_specs(call, context, captured)
    work = call.describe(specs | scalars if scalars else specs)
    if work.method is not None:
        name, args = work.method
        return getattr(context, name)(*(call.arrays[arg] if type(arg) is str else arg for arg in args))
    out = [*call.given].index("out") if "out" in specs else None
    ready = prepare(work, context, [*specs], out, fits, captured)
    if entry is not None and not captured and len(places) == len(addresses) and (out is None or fits is not None):
        entry.ready = entering(context, work, ready)
    return ready(tuple(call.given.values()), places)


def device_specs(
    call: Call, context: ExecutionContext, captured: bool
) -> tuple[dict[str, ArraySpec], dict[str, ArraySpec], list[int], Fits | None]:
    """The specs of arrays of a device, those of scalars beside them, the addresses of the former, and what tells
    whether others lie to ``out`` as these do."""
    machine = context.device.machine
    machine = machine._replace(blas=False) if captured else machine
    specs: dict[str, ArraySpec] = {}
    scalars: dict[str, ArraySpec] = {}
    places: list[int] = []
    for name, value in call.arrays.items():
        if type(value) not in ARRAYS and name != "out" and is_scalar(value):
            if (number := on_cpu(call, name, value)) is not None:
                scalars[name] = ArraySpec(name, (), number.dtype, (), machine, value=number.tobytes())
            continue
        specs[name], address = context.spec(name, value, machine)
        places.append(address)
    fits = None
    if "out" in specs:
        specs["out"], fits = related(specs, places)
    return specs, scalars, places, fits


def entering(context: ExecutionContext, work: Work, ready: Ready) -> Ready:
    """The same, which enters the execution context where that is not the current one."""
    elsewhere, enter = context.elsewhere, context.enter
    if elsewhere is None:
        return ready
    assert work.plan is not None
    always = context.foreign and bool(work.plan.own)  # whose memory comes from CuPy's current allocator

    def entered(values: tuple[Any, ...], addresses: list[int]) -> Any:
        if always or elsewhere():
            with enter():
                return ready(values, addresses)
        return ready(values, addresses)

    return entered


def operation_of(public: Any) -> Operation:
    """The operation of a public function."""
    made: Operation = public.operation
    return made


def describe(public: Callable[..., Any], *args: Any, **options: Any) -> Work:
    """What a call of a public function is to do; native arrays may be given as specs.

    >>> import gpuops, numpy as np
    >>> describe(gpuops.sum, np.ones((3, 4), np.int8), axis=1).results[0].dtype
    dtype('int64')
    """
    call = with_numbers(bind(public, operation_of(public), args, options))
    specs = {name: value for name, value in call.arrays.items() if type(value) is ArraySpec}
    native = call._replace(arrays={name: value for name, value in call.arrays.items() if name not in specs})
    context = context_of(call.name, native.arrays)
    if context is None:
        return call.describe(specs | host_specs(host_arrays(native)))
    found, scalars, *_ = device_specs(native, context, context.device.capturing())
    return call.describe(specs | found | scalars)


# ----------------------------------------------------------------------------------------------------------- compilers


def exclude_from_compilers() -> None:
    """Have ``torch.compile`` leave the package's functions alone, which run no operations that it could trace."""
    if not EXCLUDED and "torch._dynamo" in sys.modules:
        EXCLUDED.append(__package__.partition(".")[0])
        sys.modules["torch._dynamo"].trace_rules.add(EXCLUDED[0])


EXCLUDED: list[str] = []
exclude_from_compilers._torchdynamo_disable = True  # type: ignore[attr-defined]  # nor may this be traced
