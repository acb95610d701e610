"""Calls with a new shape, of a kind that is recorded: only their numbers are computed, and given to a template.

Neither is a call bound and described then, nor is anything kept for it: that is worth its time at the second call.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import Any

from ..device.context import ExecutionContext, Refused
from ..device.execute import entering, prepare
from .arrays import ARRAYS, CONTEXTS
from .facts import FACTS, PLAIN
from .operation import Operation, names_of
from .recordings import KINDS, Entry, Slot

ARRAY, SHAPE, OTHER = range(3)  # what an argument is
HERE = nullcontext()


def served(
    operation: Operation, args: tuple[Any, ...], options: dict[str, Any], entry: Entry, addresses: list[int]
) -> Any:
    """The result of a call by a template; None if there is none, which leaves word where one will be found."""
    values = (*args, *options.values()) if options else args
    try:
        found = looked_up(operation, len(args), options, values)
    except (KeyError, TypeError):  # as the launch cache: types that are in no table
        return None
    if found is None or found[2].device.capturing():
        return None
    slot, numbers, context, names = found
    entry.slot = slot
    if slot.kind is None:
        return None
    if (changed := slot.kind.changes(numbers)) is None:
        entry.tried = True
        return None
    recorded, changes = changed
    try:
        if entry.seen:
            work = recorded.work(*numbers)
            assert work is not None
            entry.ready = entering(context, work, prepare(work, context, names, None, None, False))
            return entry.ready(values, [*addresses])
        entry.seen = True
        away = context.elsewhere is not None and context.elsewhere()
        with context.enter() if away else HERE:
            return recorded.template(context, names)(changes, [*addresses])
    except Refused:
        entry.ready = None
        return None


def looked_up(
    operation: Operation, count: int, options: dict[str, Any], values: tuple[Any, ...]
) -> tuple[Slot, list[int], ExecutionContext, list[str]] | None:
    """Where the kind of a call is found, its sizes and strides, the execution context and the names of its arrays; None
    if it has an ``out`` or arrays of several devices."""
    parameters = roles(operation, count, *options)
    if parameters is None:
        return None
    context: Any = None
    facts: list[Any] = [operation, count, *options]
    numbers: list[int] = []
    names: list[str] = []
    for value, (name, role) in zip(values, parameters, strict=True):
        kind = type(value)
        if kind in ARRAYS and role == ARRAY:
            here = CONTEXTS[kind](value)
            if context is not None and here is not context:
                return None
            context, data, shape = here, value.data, value.shape
            facts += (len(shape), value.dtype, data.device_id, data.ptr % 16)
            numbers += shape
            numbers += value.strides
            names.append(name)
        elif kind is tuple and role == SHAPE:
            if not all([type(n) is int for n in value]):
                return None
            facts.append(len(value))
            numbers += value
        else:
            facts.append(value if kind in PLAIN else FACTS[kind](value))
    if context is None:
        return None
    return slots(context, context.device.machine, *facts), numbers, context, names


@lru_cache(maxsize=KINDS)
def slots(*facts: Any) -> Slot:
    """Where the kind of calls with these facts is found."""
    return Slot()


@lru_cache(maxsize=1024)
def roles(operation: Operation, count: int, *options: str) -> tuple[tuple[str, int], ...] | None:
    """The names of a call's arguments and what each may be; None of calls with ``out``, or that Python refuses."""
    names = names_of(operation, count, *options)
    if "out" in names or len(names) < count + len(options):
        return None
    kinds = dict.fromkeys(operation.operands, ARRAY) | dict.fromkeys(operation.shapes, SHAPE)
    return tuple([(name, kinds.get(name, OTHER)) for name in names])
