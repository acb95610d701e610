"""Shapes that are new: calls that differ in sizes alone are described by a recorded function of the sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

from ..plan.recording import record
from ..plan.work import ArraySpec, Work
from .facts import fact
from .operation import Call

KINDS = 256  # kinds of calls whose recordings are kept: the latest ones
MOST = 8  # recordings of a kind, the latest used first
EVERY = 4  # calls of a kind that none of them serves, before the next one is made;
FREE, EARNED = 2, 16  # after the first few, as long as they serve so many calls each, which costs less than to make one

Specs = dict[str, ArraySpec]


class Kind:
    """Calls that differ in sizes and strides alone: their recorded descriptions."""

    __slots__ = ("made", "missed", "recorded", "served")

    def __init__(self) -> None:
        self.recorded: list[Callable[..., Work | None]] = []
        self.made = self.missed = self.served = 0

    def find(self, numbers: list[int]) -> Work | None:
        """The description that a recording gives."""
        for recorded in self.recorded:
            if (work := recorded(*numbers)) is not None:
                self.served += 1
                if recorded is not self.recorded[0]:
                    self.add(recorded)
                return work
        return None

    def add(self, recorded: Callable[..., Work | None]) -> None:
        """Put a recording first."""
        self.recorded = [recorded, *[each for each in self.recorded if each is not recorded]][:MOST]

    def due(self) -> bool:
        """Whether to record a call that no recording serves."""
        self.missed += 1
        return self.missed % EVERY == 0 and self.served >= EARNED * (self.made - FREE)


@lru_cache(maxsize=KINDS)
def kinds(*facts: Any) -> Kind:
    """The kind of calls with these facts."""
    return Kind()


def described(call: Call, specs: Specs) -> Work:
    """The description of a call, given the specs of its arrays."""
    try:
        facts, numbers = apart(call, specs)
        kind = kinds(call.operation.describe, call.positional, *facts)
    except (KeyError, TypeError):  # as the launch cache: a type that is in no table, an element without a hash
        return call.describe(specs)
    if (work := kind.find(numbers)) is not None:
        return work
    work = call.describe(specs)
    if kind.due():
        kind.made += 1
        with suppress(TypeError):  # it does with sizes what symbols cannot: it is described each time
            kind.add(record(lambda symbols: together(call, specs, iter(symbols)), numbers))
    return work


def apart(call: Call, specs: Specs) -> tuple[list[Any], list[int]]:
    """What decides a call beside its sizes and strides, and these."""
    facts: list[Any] = []
    numbers: list[int] = []
    for name, value in call.given.items():
        facts.append(name)
        if (spec := specs.get(name)) is not None:
            _, shape, dtype, strides, *rest = spec
            facts += len(shape), dtype, *rest
            numbers += shape
            numbers += strides
        elif is_shape(call, name):
            facts.append(len(value))
            numbers += value
        else:
            facts += fact(value)
    return facts, numbers


def is_shape(call: Call, name: str) -> bool:
    """Whether an argument is a shape, all of whose lengths are ints."""
    value = call.given[name]
    return name in call.operation.shapes and type(value) is tuple and all(type(n) is int for n in value)


def together(call: Call, specs: Specs, numbers: Iterator[Any]) -> Work:
    """The description of the call with other sizes and strides."""
    shapes, arrays = {}, {}
    for name in call.given:
        if (spec := specs.get(name)) is not None:
            shape, strides = (tuple(islice(numbers, spec.ndim)) for _ in range(2))
            arrays[name] = spec._replace(shape=shape, strides=strides)
        elif is_shape(call, name):
            shapes[name] = tuple(islice(numbers, len(call.given[name])))
    return call._replace(given=call.given | shapes).describe(arrays)
