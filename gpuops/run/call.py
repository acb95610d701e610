"""A cache miss: adapt the arguments, have the op describe the call, execute it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import error
from ..plan.work import ArraySpec, Work
from .context import ExecutionContext, Refused, context_of, is_scalar
from .execute import Ready, apart, prepare, related

#: What a parameter takes: arrays and scalars; arrays, and Python scalars that yield to the dtypes of others; the mask
#: ``where``; the array that the result is written to; an array whose subclass counts.
ARRAY, WEAK, MASK, OUT, SUBCLASS = "array", "weak", "mask", "out", "subclass"
WEAK_TYPES = (int, float, complex)  # Python's scalars, which yield to the dtypes of arrays (NEP 50)
#: PyTorch's names of parameters, and NumPy's.
MEANT = {"dim": "axis", "keepdim": "keepdims"}


@dataclass(frozen=True, eq=False)
class Operation:
    """A public function: the pure description of its calls, and which of its parameters are arrays."""

    describe: Callable[..., Work]
    operands: dict[str, str]  # by name, what they take

    @property
    def name(self) -> str:
        return self.describe.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters, positional ones first."""
        code = self.describe.__code__
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


class Entry:
    """What the launch cache knows of a kind of calls: nothing at first."""

    ready: Ready | None = None


class Call(NamedTuple):
    """A call that is to be made: the public function, its operation, the arguments, and their names."""

    public: Callable[..., Any]
    operation: Operation
    args: tuple[Any, ...]
    options: dict[str, Any]
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.operation.name

    def given(self) -> dict[str, Any]:
        """All arguments by their names."""
        return dict(zip(self.names, (*self.args, *self.options.values()), strict=False))

    def arrays(self) -> dict[str, Any]:
        """The arguments for parameters that are arrays, but None and True (no mask)."""
        operands = self.operation.operands
        return {
            name: value for name, value in self.given().items()
            if name in operands and value is not None and not (value is True and operands[name] == MASK)
        }  # fmt: skip

    def on(self, given: dict[str, Any]) -> Call:
        """The same call with other values of the arguments."""
        values = tuple(given.values())
        options = dict(zip(self.options, values[len(self.args) :], strict=True))
        return self._replace(args=values[: len(self.args)], options=options)

    def describe(self) -> Work:
        """The description of the call: of one whose arrays are specs."""
        return self.operation.describe(*self.args, **self.options)

    def repeat(self) -> Any:
        """Call the public function."""
        return self.public(*self.args, **self.options)


class Adapter(Protocol):
    """Makes calls with arrays of another library."""

    def call(self, call: Call, entry: Entry | None, addresses: list[int]) -> Any:
        """The result of a call; what the launch cache has for it, and the addresses of its arrays."""
        ...


#: Functions that give the adapter of a call; None if its arrays are native. (`gpuops.adapters` adds its own.)
ADAPTERS: list[Callable[[Call], Adapter | None]] = []


def miss(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any],
    entry: Entry | None, addresses: list[int],
) -> Any:  # fmt: skip
    """A call that is not cached."""
    exclude_from_compilers()
    call = bind(public, operation, args, options)
    given = call.given()
    if type(out := given.get("out")) is tuple and len(out) == 1:  # as NumPy's ufuncs take it
        return call.on(given | {"out": out[0]}).repeat()
    adapters = filter(None, (adapter_of(call) for adapter_of in ADAPTERS))
    make = next((adapter.call for adapter in adapters), perform)
    return attempt(make, call, entry, addresses)


def bind(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
) -> Call:
    """The arguments of a call with their names."""
    parameters = operation.parameters
    for name, meant in MEANT.items():
        if name in options and meant in parameters:
            raise error(TypeError, operation.name, f"{name} is not a parameter; {meant} is, as in NumPy")
    call = Call(public, operation, args, options, (*parameters[: len(args)], *options))
    if len(call.given()) < len(args) + len(options):  # too many arguments, or one twice
        call.describe()  # Python words it
    return call


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
    arrays = call.arrays()
    context = context_of(call.name, arrays)
    if context is None:
        return on_host(call, arrays)
    with context.enter():
        return on_device(call, arrays, context, entry, addresses)


def with_numbers(call: Call) -> Call:
    """The same call with numbers in the place of arrays without dims that are no operands."""
    operands = call.operation.operands
    return call.on({name: v if name in operands else as_number(v) for name, v in call.given().items()})


def as_number(value: Any) -> Any:
    """A scalar: of an array without dims of any library its element, for which a GPU is waited."""
    if type(value) is np.ndarray and value.ndim == 0:
        return value[()]
    if is_scalar(value) or getattr(value, "shape", None) != () or not hasattr(value, "item"):
        return value
    return value.item()


def on_host(call: Call, arrays: dict[str, Any]) -> Any:
    """The result of a call with arrays of the host."""
    there = {name: array for name, value in arrays.items() if (array := on_cpu(call, name, value)) is not None}
    host = call.on(call.given() | host_specs(there)).describe().host
    return host.function(**there, **host.options)


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


def on_device(
    call: Call, arrays: dict[str, Any], context: ExecutionContext, entry: Entry | None, addresses: list[int]
) -> Any:
    """The result of a call with arrays of a device."""
    captured, given = context.device.capturing(), call.given()
    specs, scalars, places = device_specs(call, arrays, context, captured)
    work = call.on(given | specs | scalars).describe()
    if work.method is not None:
        name, args = work.method
        return getattr(context, name)(*(arrays[arg] if type(arg) is str else arg for arg in args))
    names, out = [*specs], [*given].index("out") if "out" in specs else None
    fits = None if out is None else apart(specs, places)
    ready = prepare(work, context, names, out, fits, captured)
    if entry is not None and not captured and len(places) == len(addresses) and (out is None or fits is not None):
        entry.ready = entering(context, work, ready)
    return ready(tuple(given.values()), places)


def device_specs(
    call: Call, arrays: dict[str, Any], context: ExecutionContext, captured: bool
) -> tuple[dict[str, ArraySpec], dict[str, ArraySpec], list[int]]:
    """The specs of arrays of a device, those of scalars beside them, and the addresses of the former."""
    machine = context.device.machine
    machine = machine._replace(blas=False) if captured else machine
    specs, scalars, places = {}, {}, []
    for name, value in arrays.items():
        if name != "out" and is_scalar(value):
            if (number := on_cpu(call, name, value)) is not None:
                scalars[name] = ArraySpec(name, (), number.dtype, (), machine, value=number.tobytes())
            continue
        spec, address = context.spec(name, value)
        specs[name] = spec._replace(machine=machine)
        places.append(address)
    if "out" in specs:
        specs["out"] = related(specs, places)
    return specs, scalars, places


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
    arrays = {name: value for name, value in call.arrays().items() if type(value) is not ArraySpec}
    context = context_of(call.name, arrays)
    if context is None:
        there = {name: array for name, value in arrays.items() if (array := on_cpu(call, name, value)) is not None}
        return call.on(call.given() | host_specs(there)).describe()
    specs, scalars, _ = device_specs(call, arrays, context, context.device.capturing())
    return call.on(call.given() | specs | scalars).describe()


# ----------------------------------------------------------------------------------------------------------- compilers


def exclude_from_compilers() -> None:
    """Have ``torch.compile`` leave the package's functions alone, which run no operations that it could trace."""
    if not EXCLUDED and "torch._dynamo" in sys.modules:
        EXCLUDED.append(__package__.partition(".")[0])
        sys.modules["torch._dynamo"].trace_rules.add(EXCLUDED[0])


EXCLUDED: list[str] = []
exclude_from_compilers._torchdynamo_disable = True  # type: ignore[attr-defined]  # nor may this be traced
