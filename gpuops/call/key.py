"""The key of a call, and the kind of the call, which a miss derives from it.

The launch cache makes the key in place: the operation, how many arguments are given by position and the names of the
others; of each array of a device its shape, strides (True in C order), dtype, device and address modulo 16; of all else
what `FACTS` has; if arrays share an address, also the first that begins there, for each of them. The kind is the same
without sizes: a shape becomes the number of dims, strides become None. What the device can do is added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from numpy import ndarray

from ..device.context import ExecutionContext
from .arrays import is_scalar
from .libraries import ARRAYS, CONTEXTS, READERS
from .operation import OUT, SHAPE, Operation, names_of
from .recordings import Entry, Kind, is_lengths, kinds

ARRAY_FACTS = 5  # in the key, of an array of a device
OPTION = "option"  # what an argument is that is neither an operand nor a shape


class Missed(NamedTuple):
    """A call for which nothing lies ready; of calls with arrays of one device alone, all of them native, also their
    kind, their sizes and strides, the execution context and the names of the arrays."""

    entry: Entry
    values: tuple[Any, ...]
    addresses: list[int]
    kind: Kind | None = None
    numbers: Sequence[int] = ()
    context: ExecutionContext | None = None
    names: Sequence[str] = ()


def missed(entry: Entry, key: list[Any], values: tuple[Any, ...], addresses: list[int]) -> Missed:
    """What the key of a call tells of it."""
    at = 2 + len(values) - key[1]
    context: Any = None
    facts, numbers, names = key.copy(), [], []
    for value, (name, role) in zip(values, roles(*key[:at]), strict=False):
        cls = type(value)
        if cls in ARRAYS or cls in READERS:
            here = CONTEXTS[cls](value)
            if role is OPTION or (context is not None and here is not context):
                return Missed(entry, values, addresses)
            context, shape = here, key[at]
            facts[at], facts[at + 1] = len(shape), None
            numbers += shape
            numbers += value.strides if cls in ARRAYS else [step * value.itemsize for step in key[at + 1]]
            names.append(name)
            at += ARRAY_FACTS
            continue
        if role is SHAPE and is_lengths(value):
            facts[at] = len(value)
            numbers += value
        elif cls is ndarray or (role is not OPTION and not is_number(role, value)):
            return Missed(entry, values, addresses)
        at += 1
    if context is None or context.device.capturing():
        return Missed(entry, values, addresses)
    return Missed(entry, values, addresses, kinds(context.device.machine, *facts), numbers, context, names)


def is_number(role: str, value: Any) -> bool:
    """Whether an operand is none, or a scalar where that may be."""
    return value is None or (role is not OUT and is_scalar(value))


@lru_cache(maxsize=1024)
def roles(operation: Operation, count: int, *options: str) -> tuple[tuple[str, str], ...]:
    """The names of a call's arguments and what each may be: too few, if Python refuses the call."""
    takes = operation.operands | dict.fromkeys(operation.shapes, SHAPE)
    return tuple([(name, takes.get(name, OPTION)) for name in names_of(operation, count, *options)])
