"""A cache miss: adapt the arguments, have the op describe the call, execute it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np

from ..device.context import Device, ExecutionContext, Refused
from ..device.execute import Fits, Ready, entering, meanwhile, prepare, related
from ..errors import error, is_about_the_call
from ..plan.small import KERNELS as SMALL
from ..plan.work import ArraySpec, HostCall, Kernel, Work
from .arrays import context_of, host_array, is_scalar, kind
from .key import Missed
from .libraries import STANDING, adapter_of
from .operation import MASK, OUT, SUBCLASS, WEAK, WEAK_TYPES, Call, Operation, bind, operation_of
from .recordings import described

#: Types of options that `as_number` leaves as they are.
PLAIN = frozenset((int, bool, float, str, tuple, type, type(None)))
#: What arrays of programs are, mostly.
RELATED = ("float32", "float64", "float16", "int64", "int32")
HERE = nullcontext()


def miss(
    public: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any],
    known: Missed | None = None,
) -> Any:  # fmt: skip
    """Make a call that the launch cache does not have."""
    if known is None:
        for value in (*args, *options.values()):
            if (make := STANDING.get(type(value))) is not None:  # type: ignore[arg-type]
                return make(public, operation, args, options)
    exclude_from_compilers()
    if known is not None and (result := served(known)) is not None:
        return result
    call = bind(public, operation, args, options)
    if type(out := call.given.get("out")) is tuple and len(out) == 1:  # as NumPy's ufuncs accept it
        return call.on({"out": out[0]}).repeat()
    native = known is not None and known.context is not None and not known.context.foreign
    return attempt(perform if native else maker_of(call), call, known)


def served(known: Missed) -> Any:
    """The result by a recorded description, without binding or describing; None if no recording applies.

    The first call of a key only fills in a template. The second one prepares and caches the launches, which takes
    longer and would not pay off for a key that never comes again.
    """
    entry, kind, context = known.entry, known.kind, known.context
    if kind is None or context is None:
        return None
    try:
        if entry.kind is kind and (work := kind.find(known.numbers)) is not None:
            ready = entry.ready = entering(context, work, prepare(work, context, known.names, None, None, False))
            return ready(known.values, [*known.addresses])
        if (changed := kind.changes(known.numbers)) is None:
            return None
        entry.kind = kind
        recorded, changes = changed
        if (template := recorded.template(context, known.names)) is None:
            return None
        away = context.elsewhere is not None and context.elsewhere()
        with context.enter() if away or template.always else HERE:
            return template(changes, [*known.addresses])
    except Refused:
        entry.ready = None
        return None


def shown(failure: Exception, operation: Operation, args: tuple[Any, ...], options: dict[str, Any]) -> Exception:
    """Shorten an exception's traceback: no frames below the public function if the error is about the arguments."""
    if not is_of_the_caller(failure, operation, args, options):
        return failure.with_traceback(failure.__traceback__ and failure.__traceback__.tb_next)
    failure.__suppress_context__ = True
    return failure.with_traceback(None)


def is_of_the_caller(
    failure: Exception, operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
) -> bool:
    """Whether an exception is about the arguments: one of ours, or Python's TypeError for a wrong signature."""
    if type(failure) is not TypeError or is_about_the_call(failure):
        return is_about_the_call(failure)
    from inspect import signature

    try:
        signature(operation.describe).bind(*args, **options)
    except TypeError:
        return True
    return False


def maker_of(call: Call) -> Callable[[Call, Missed | None], Any]:
    """The function that makes the call: an adapter's, or `perform` if all arrays are native.

    Raises TypeError for arrays of two libraries; scalars mix with any.
    """
    arrays = call.arrays
    adapters = {name: adapter_of(value) for name, value in arrays.items()}
    first = next((name for name, adapter in adapters.items() if adapter is not None), None)
    if first is None:
        return perform
    adapter: Any = adapters[first]
    for name, other in adapters.items():
        accepted = other is None and (adapter.mixes or (is_scalar(arrays[name]) and name != "out"))
        if other != adapter and not accepted:
            both = f"{first} is a {kind(arrays[first])}, {name} is a {kind(arrays[name])}"
            raise error(TypeError, call.name, f"arrays of two libraries do not mix: {both}")
    make: Callable[[Call, Missed | None], Any] = adapter.call
    return make


def attempt(make: Callable[..., Any], call: Call, known: Missed | None) -> Any:
    """Make a call; if the device refuses a launch, plan again without such launches, and do not cache."""
    try:
        return make(call, known)
    except Refused as refused:
        with refused.device.without(refused.launch):
            return attempt(make, call, None)


def perform(call: Call, known: Missed | None) -> Any:
    """Make a call with native arrays, and cache its prepared work."""
    context = known.context if known is not None else None
    if context is None:
        call = with_numbers(call)
        context = context_of(call.name, call.arrays)
    if context is None:
        return on_host(call, known)
    with context.enter():
        return on_device(call, context, known)


def with_numbers(call: Call) -> Call:
    """Replace 0-d arrays among the options by numbers."""
    operands = call.operation.operands
    numbers = {
        name: as_number(value) for name, value in call.given.items()
        if name not in operands and type(value) not in PLAIN
    }  # fmt: skip
    return call._replace(given=call.given | numbers) if numbers else call


def as_number(value: Any) -> Any:
    """The element of a 0-d array of any library, which synchronises with a GPU; other values unchanged."""
    if type(value) is np.ndarray and value.ndim == 0:
        return value[()]
    if is_scalar(value) or getattr(value, "shape", None) != () or not hasattr(value, "item"):
        return value
    return value.item()


def on_host(call: Call, known: Missed | None) -> Any:
    """Make a call with host arrays."""
    arrays = host_arrays(call)
    host = call.describe(host_specs(arrays)).host
    if known is not None:
        known.entry.ready = repeated(call, arrays, host, len(known.addresses))
    return host.function(**arrays, **host.options)


def repeated(call: Call, arrays: dict[str, np.ndarray], host: HostCall, count: int) -> Ready | None:
    """The cached form of a host call; None if an array was converted, and other calls would have to as well."""
    places = {name: i for i, (name, value) in enumerate(call.given.items()) if type(value) is np.ndarray}
    if len(places) != count or any(arrays.get(name) is not call.given[name] for name in places):
        return None
    fixed = {name: array for name, array in arrays.items() if name not in places}
    function, first = partial(host.function, **fixed, **host.options), host.function.__code__.co_varnames[0]
    if [*places] == [first]:
        return lambda values, addresses: function(values[places[first]])
    return lambda values, addresses: function(**{name: values[i] for name, i in places.items()})


def host_arrays(call: Call) -> dict[str, np.ndarray]:
    """The operands as NumPy arrays, without weak Python scalars."""
    arrays = ((name, on_cpu(call, name, value)) for name, value in call.arrays.items())
    return {name: array for name, array in arrays if array is not None}


def on_cpu(call: Call, name: str, value: Any) -> np.ndarray | None:
    """An operand as a NumPy array in native byte order; None for a weak Python scalar."""
    takes = call.operation.operands[name]
    if takes == OUT:
        return value
    if takes == WEAK and type(value) in WEAK_TYPES:
        return None
    truth = takes == MASK and not hasattr(value, "dtype")  # as in NumPy
    keeps = takes == SUBCLASS and isinstance(value, np.ndarray)
    array = value if keeps else host_array(call.name, name, value, truth)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def host_specs(arrays: dict[str, np.ndarray]) -> dict[str, ArraySpec]:
    """The specs of host arrays."""
    return {
        name: ArraySpec(name, array.shape, array.dtype, array.strides, writeable=array.flags.writeable)
        for name, array in arrays.items()
    }


def on_device(call: Call, context: ExecutionContext, known: Missed | None) -> Any:
    """Make a call with arrays of a device."""
    captured = (known is None or known.kind is None) and context.device.capturing()
    specs, scalars, places, fits = device_specs(call, context, captured)
    every = specs | scalars if scalars else specs
    if known is None or known.kind is None:
        work = call.describe(every)
    else:
        kind = known.kind.writing(specs["out"]) if "out" in specs else known.kind
        work = described(call, every, kind, known.numbers)
    if work.method is not None:
        name, args = work.method
        return getattr(context, name)(*(call.arrays[arg] if type(arg) is str else arg for arg in args))
    out = [*call.given].index("out") if "out" in specs else None
    there = work.plan is None or context.device.there(work.plan.kernels)
    now = work if there else sooner(call, every, work, context.device, known)
    ready = prepare(now, context, [*specs], out, fits, captured)
    lasts = known is not None and not captured and now is work
    if known is not None and lasts and len(places) == len(known.addresses) and (out is None or fits is not None):
        known.entry.ready = entering(context, now, ready)
    return ready(tuple(call.given.values()), places)


def sooner(call: Call, specs: dict[str, ArraySpec], work: Work, device: Device, known: Missed | None) -> Work:
    """The same work, of which not all kernels are there, or one whose kernels take less time to be. Where none came
    with the package, those that calls with other dtypes would take compile beside them."""
    before = known.entry.sooner if known is not None else None
    now = meanwhile(work, device, lambda: call.describe(general(specs)), before)
    if known is not None:
        known.entry.sooner += now is not work
    if not before and device.compiles_all and not device.capturing():
        device.begin(relatives(call, specs))
    return now


def general(specs: dict[str, ArraySpec]) -> dict[str, ArraySpec]:
    """The specs on a machine whose kernels of small arrays serve larger ones, too."""
    return {
        name: spec if spec.machine is None else spec._replace(machine=spec.machine._replace(general=True))
        for name, spec in specs.items()
    }


def relatives(call: Call, specs: dict[str, ArraySpec]) -> list[Kernel]:
    """The kernels of small arrays that the call would take if its arrays had other dtypes."""
    found: list[Kernel] = []
    for dtype in map(np.dtype, RELATED):
        others = {name: of_dtype(spec, dtype) for name, spec in general(specs).items()}
        with suppress(Exception), np.errstate(all="ignore"):  # the op, or an initial value, does not take it
            plan = call.describe(others).plan
            found += [kernel for kernel in plan.kernels if kernel.name in SMALL] if plan is not None else []
    return found


def of_dtype(spec: ArraySpec, dtype: np.dtype) -> ArraySpec:
    """The spec of an array like it of another dtype; of bools and of scalars itself."""
    if spec.dtype.kind == "b" or spec.value is not None or spec.made is not None:
        return spec
    return spec._replace(dtype=dtype, strides=tuple([step * dtype.itemsize for step in spec.steps]), start=0)


def device_specs(
    call: Call, context: ExecutionContext, captured: bool
) -> tuple[dict[str, ArraySpec], dict[str, ArraySpec], list[int], Fits | None]:
    """The specs of the device arrays, those of the scalars, the arrays' addresses, and the check of `related`."""
    machine = context.device.machine
    machine = machine._replace(blas=False) if captured else machine
    specs: dict[str, ArraySpec] = {}
    scalars: dict[str, ArraySpec] = {}
    places: list[int] = []
    for name, value in call.arrays.items():
        if name != "out" and is_scalar(value):
            if (number := on_cpu(call, name, value)) is not None:
                scalars[name] = ArraySpec(name, (), number.dtype, (), machine, value=number.tobytes())
            continue
        specs[name], address = context.spec(name, value, machine)
        places.append(address)
    fits = None
    if "out" in specs:
        specs["out"], fits = related(specs, places)
    return specs, scalars, places, fits


def describe(public: Callable[..., Any], *args: Any, **options: Any) -> Work:
    """The `Work` of a call of a public function; native arrays may be given as specs.

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
    """Make ``torch.compile`` skip the package's functions, which run no operations that it can trace."""
    if not EXCLUDED and "torch._dynamo" in sys.modules:
        EXCLUDED.append(__package__.partition(".")[0])
        sys.modules["torch._dynamo"].trace_rules.add(EXCLUDED[0])


EXCLUDED: list[str] = []
exclude_from_compilers._torchdynamo_disable = True  # type: ignore[attr-defined]  # nor trace this one
