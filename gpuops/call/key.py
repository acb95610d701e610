"""The key of a call, and the kind of call that a miss derives from it.

The launch cache builds the key inline: the operation, the number of positional arguments and the names of the others;
each device array's shape, strides (True in C order), dtype, device and address modulo 16; what `FACTS` gives for all
other arguments; and, if arrays share an address, for each array the index of the first one there. A kind is a key
without sizes: a shape becomes its number of dims, strides become None, and the device's `Machine` is added.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from numpy import ndarray

from ..device.context import ExecutionContext
from .arrays import is_scalar
from .libraries import ARRAYS, CONTEXTS, READERS
from .operation import OUT, SHAPE, Operation, names_of
from .recordings import Entry, Kind, is_lengths, kinds

ARRAY_FACTS = 5  # entries of a device array in the key
OPTION = "option"  # the role of an argument that is neither an operand nor a shape


class Missed(NamedTuple):
    """A call that missed the cache. If its arrays are native and on one device, also its kind, all sizes and strides,
    the execution context and the arrays' names."""

    entry: Entry
    values: tuple[Any, ...]
    addresses: list[int]
    kind: Kind | None = None
    numbers: Sequence[int] = ()
    context: ExecutionContext | None = None
    names: Sequence[str] = ()


def missed(entry: Entry, key: list[Any], values: tuple[Any, ...], addresses: list[int]) -> Missed:
    """Derive a call's kind and numbers from its key."""
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
    """Whether an operand is None, or a scalar where one is allowed."""
    return value is None or (role is not OUT and is_scalar(value))


@lru_cache(maxsize=1024)
def roles(operation: Operation, count: int, *options: str) -> tuple[tuple[str, str], ...]:
    """The names and roles of a call's arguments; too few if they do not fit the signature."""
    takes = operation.operands | dict.fromkeys(operation.shapes, SHAPE)
    return tuple([(name, takes.get(name, OPTION)) for name in names_of(operation, count, *options)])
