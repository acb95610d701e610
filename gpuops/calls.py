"""Calls that were made before: what such a call does is looked up and done again, without asking anything anew.

What a call does is decided by its arguments: by shape, strides, dtype, device and address modulo 16 of arrays, by type
and value of all else. A call of a new kind takes the long way through checks and planning, and is watched: if all that
it did on the device was to run one plan on the caller's arrays and on one of its own, the result, then that is what the
next call of this kind does. Of arrays, it asks no more than where they begin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache, wraps
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from .device import ARRAYS, READERS, Refused, Run, elements, extent, provided, watched
from .errors import error
from .interop import Call, guests
from .plan import CTYPES, Launch, Shape, contiguous_strides

LIMIT = 4096  # kinds of calls that are remembered: the latest ones

DTYPES = [np.dtype(name) for name in CTYPES if name != "bfloat16"]
#: Types whose values decide as they are: those of two are never equal.
PLAIN = frozenset((int, str, type, type(None)))
#: What of other arguments decides, by their type; calls with arguments of types that are nowhere take the long way.
FACTS: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: (bool, value),
    **dict.fromkeys(map(type, DTYPES), lambda dtype: dtype),
    **dict.fromkeys((dtype.type for dtype in DTYPES), lambda scalar: (scalar.dtype, scalar.tobytes())),
    float: Struct("d").pack,  # the bits: 0.0 and -0.0 are equal, NaN and NaN are not
    complex: lambda value: np.complex128(value).tobytes(),
    tuple: lambda values: tuple([(kind := type(v), v if kind in PLAIN else FACTS[kind](v)) for v in values]),
}

#: Makes a call again, given its arguments and the addresses of the arrays among them; None if those arrays, or the
#: result, do not lie as its plan needs it.
Again = Callable[[tuple[Any, ...], list[int]], Any]
#: Makes a function that makes results, each with its address, given their shape, dtype and strides in elements.
Maker = Callable[[Shape, np.dtype, Shape | None], Callable[[], tuple[Any, int]]]


class Home(NamedTuple):
    """Where a call is made: what tells whether its device and stream are not the current ones (None: they always are),
    what makes them so for a while, what makes results, and who is to be told when ``out`` has been written to."""

    elsewhere: Callable[[], bool] | None
    enter: Callable[[], AbstractContextManager[Any]]
    maker: Maker
    written: Callable[[Any], None] | None = None


class Memory:
    """What is known of a kind of calls: nothing at first."""

    again: Again | None = None


@lru_cache(maxsize=LIMIT)
def memory(*facts: Any) -> Memory:
    """The memory of a kind of calls: of an op, with what decides what it does."""
    return Memory()


def remembered(op: Callable[..., Any]) -> Callable[..., Any]:
    """A public function, which does again what it did when it was called like this before."""

    @wraps(op)
    def public(*args: Any, **options: Any) -> Any:
        values = (*args, *options.values()) if options else args
        addresses: list[int] = []
        facts = [op, len(args), *options]
        try:
            for value in values:
                kind = type(value)
                if kind in ARRAYS:
                    data = value.data
                    address = data.ptr
                    addresses.append(address)
                    strides = value._c_contiguous or value.strides  # (the shape tells those of a contiguous one)
                    facts += (value.shape, strides, value.dtype, data.device_id, address % 16)
                elif kind in PLAIN:
                    facts.append(value)
                elif kind in READERS:
                    address, more = READERS[kind](value)
                    addresses.append(address)
                    facts += more
                else:
                    facts.append(FACTS[kind](value))
            if len(addresses) > 1 and len({*addresses}) < len(addresses):
                facts += map(addresses.index, addresses)  # which arrays begin where another one does
            known = memory(*facts) if addresses else None
        except (KeyError, TypeError):  # a type that is in no table, an element without a hash
            known = None
        if known is not None and (again := known.again):
            try:
                if (result := again(values, addresses)) is not None:
                    return result
            except Refused:
                known = None
        return long_way(public, op, args, options, known, addresses)

    return public


def unremembered(op: Callable[..., Any]) -> Callable[..., Any]:
    """A public function that runs no plan."""

    @wraps(op)
    def public(*args: Any, **options: Any) -> Any:
        return long_way(public, op, args, options, None, [])

    return public


def long_way(
    public: Callable[..., Any], op: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any],
    known: Memory | None, addresses: list[int],
) -> Any:  # fmt: skip
    """A call that is not known: with arrays of other libraries as these have it, and remembered if it can be."""
    keep_compilers_away()
    code = op.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # positional ones first
    for name, meant in MEANT.items():
        if name in options and meant in parameters:
            raise error(TypeError, op.__name__, f"{name} is not a parameter; {meant} is, as in NumPy")
    call = Call(public, op, args, options, (*parameters[: len(args)], *options))
    given = call.given()
    if type(out := given.get("out")) is tuple and len(out) == 1:  # as NumPy's ufuncs take it
        there = call.on(given | {"out": out[0]})
        return public(*there.args, **there.options)
    library = guests(call)
    if library is not None:
        return attempt(library.call, call, known, addresses)
    return attempt(learn, call, known, addresses)


def attempt(make: Callable[..., Any], call: Call, known: Memory | None, addresses: list[int]) -> Any:
    """Make a call; once more, and not to be remembered, without launches of a kind that is refused where it is made."""
    try:
        return make(call, known, addresses)
    except Refused as refused:
        with refused.device.without(refused.launch):
            return attempt(make, call, None, addresses)


#: PyTorch's names of parameters, and NumPy's.
MEANT = {"dim": "axis", "keepdim": "keepdims"}


def keep_compilers_away() -> None:
    """Have ``torch.compile`` leave the package's functions alone, which run no operations that it could trace."""
    if not TOLD and "torch._dynamo" in sys.modules:
        TOLD.append(__package__)
        sys.modules["torch._dynamo"].trace_rules.add(__package__)


TOLD: list[str] = []
keep_compilers_away._torchdynamo_disable = True  # type: ignore[attr-defined]  # nor may this be traced


def learn(call: Call, known: Memory | None, addresses: list[int], home: Home | None = None) -> Any:
    """Make a call the long way, and remember what it did, if it can be remembered."""
    if known is None:
        return call.op(*call.args, **call.options)
    result, runs = watched(call.op, *call.args, **call.options)
    known.again = repeated(runs, call.given(), addresses, result, home) or known.again
    return result


def repeated(
    runs: list[Run], given: dict[str, Any], addresses: list[int], result: Any, home: Home | None = None
) -> Again | None:
    """What makes a call again that ran these plans, given its arguments by name, the addresses of the arrays among
    them, and its result; on the device, if it has no other home.

    None if it did more than to run one plan on those arrays and the result: if there was a copy, or an array was asked
    for its values.
    """
    if len(runs) != 1 or not all(hasattr(step, "ready") for step in runs[0].plan.steps):
        return None
    plan, device, named, steps = runs[0]
    if home is None:
        home = Home(device.elsewhere, device.current, device.maker)
    elif plan.own:  # which comes from where one has entered
        home = home._replace(elsewhere=lambda: True)
    pointer, capturing = device.pointer, device.capturing
    into = given.get("out") is result
    tell = home.written if into else None
    everywhere = addresses if into else [*addresses, pointer(result)]
    begins = {name: pointer(array) for name, array in named.items()}
    if sorted(begins.values()) != sorted(everywhere):
        return None
    if not into and (everywhere[-1] % 16 or everywhere[-1] in addresses):  # (where an operand without elements begins)
        return None
    if capturing():  # where other plans are made
        return None
    own = plan.own
    if [*begins.values()] != everywhere:  # the plan has them in another order
        places = {name: everywhere.index(begin) for name, begin in begins.items()}
        places |= {name: i for i, name in enumerate(own, len(everywhere))}
        steps = [step.ready(device, places) for step in plan.steps]
    outside = not all(isinstance(step, Launch) for step in plan.steps)  # of captures, which allow no cuBLAS
    if into:
        out = [*given].index("out")
        fits = fitting([array for array in given.values() if type(array) in ARRAYS], addresses, result)
        if not fits(addresses):
            return None
    else:
        shape, strides = result.shape, elements(result)
        make = home.maker(shape, result.dtype, None if strides == contiguous_strides(shape) else strides)

    def again(values: tuple[Any, ...], addresses: list[int]) -> Any:
        if outside and capturing():
            return None
        if not into:
            result, address = make()
            if address % 16:  # as from an allocator of the caller's own
                return None
            addresses.append(address)
        elif fits(addresses):
            result = values[out]
        else:
            return None
        if own:
            _memory, more = provided(plan, device)  # (which lives until the launches are made)
            addresses += more
        for step in steps:
            step(addresses)
        if tell is not None:
            tell(result)
        return result

    return entering(home, again)


def entering(home: Home, again: Again) -> Again:
    """The same, where one need not be already."""
    elsewhere, enter = home.elsewhere, home.enter
    if elsewhere is None:
        return again

    def entered(values: tuple[Any, ...], addresses: list[int]) -> Any:
        if elsewhere():
            with enter():
                return again(values, addresses)
        return again(values, addresses)

    return entered


def fitting(arrays: list[Any], addresses: list[int], result: Any) -> Callable[[list[int]], bool]:
    """Tells whether nothing that a call reads lies in its result, but what begins where that does: which arrays do is
    one of the facts."""
    place = next(i for i, array in enumerate(arrays) if array is result)
    first = addresses[place]
    below, above = extent(first, result)
    others = []  # which array, and between which distances from the result's first element it would lie in it
    for i, (array, address) in enumerate(zip(arrays, addresses, strict=True)):
        if array.size and address != first:
            low, high = extent(address, array)
            others.append((i, below - first - high + address, above - first - low + address))

    def fits(addresses: list[int]) -> bool:
        first = addresses[place]
        for i, below, above in others:  # noqa: SIM110 - a generator would take longer
            if below < addresses[i] - first < above:
                return False
        return True

    return fits
