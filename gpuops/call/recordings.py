"""New shapes at low cost: calls that differ only in sizes are described by a recorded function of the sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from ..device.context import ExecutionContext
from ..device.execute import Changes, Ready, Template, changes_of
from ..plan.recording import Recording
from ..plan.work import ArraySpec, Launch, Work
from .operation import Call

KINDS = 256  # kinds whose recordings are kept, at most: the least recently used goes first
MOST = 8  # recordings of a kind, at most: the least recently used goes first
EVERY = 10  # misses of a kind before it is recorded
FREE, EARNED = 3, 8  # from the third recording on this doubles, unless 8 calls have been served since the last one

Specs = dict[str, ArraySpec]


class Recorded:
    """A recorded description: the work of calls, as a function of the sizes and strides that pass its guards.

    ``changes`` gives only the part of the work that varies with the numbers; ``template`` is the prepared rest.
    """

    def __init__(self, call: Call, specs: Specs, numbers: Sequence[int], work: Work) -> None:
        self.recording, self.example = Recording(), work
        self.symbolic = together(call, specs, iter(self.recording.symbols(numbers)))
        self.some = changing(self.symbolic, [*call.arrays])
        self.ready: Template | None = None

    @cached_property
    def work(self) -> Callable[..., Work | None]:
        """The work for given numbers; None if a guard fails."""
        return self.recording.function(self.symbolic)

    @cached_property
    def changes(self) -> Callable[..., Changes | None] | None:
        """The `Changes` for given numbers; the property is None if a template cannot serve such calls."""
        return None if self.some is None else self.recording.function(self.some)

    def template(self, context: ExecutionContext, names: Sequence[str]) -> Template | None:
        """The prepared common part; None as long as its kernels are not there. All calls of a kind have the same
        execution context and array names."""
        plan = self.example.plan
        if (found := self.ready) is None and plan is not None and context.device.there(plan.kernels):
            found = self.ready = Template(self.example, context, names)
        return found


def changing(work: Work, names: list[str]) -> Changes | None:
    """The `Changes` of a work with symbols; None if more varies than a template can change."""
    plan = work.plan
    if plan is None or work.then is not None or not all(isinstance(step, Launch) for step in plan.steps):
        return None
    new = all(spec.name not in names for spec in work.results)
    fixed = all(type(arg.offset) is int for step in plan.steps for *_, arg in step.pointers)
    return changes_of(work) if new and fixed else None


class Kind:
    """Calls that differ only in sizes and strides, with their recorded descriptions."""

    __slots__ = ("made", "missed", "over", "recorded", "served", "wait")

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.over: dict[tuple[str, ...], Kind] = {}
        self.made, self.wait = 0, EVERY
        self.missed = self.served = 0  # calls since the last recording was made

    def writing(self, out: ArraySpec) -> Kind:
        """The calls whose ``out`` overlaps the same operands, which the key does not tell."""
        return self.over.get(out.overlaps) or self.over.setdefault(out.overlaps, Kind())

    def find(self, numbers: Sequence[int]) -> Work | None:
        """The work by the first recording whose guards pass; None if none applies."""
        for recorded in self.recorded:
            if (work := recorded.work(*numbers)) is not None:
                self.use(recorded)
                return work
        return None

    def changes(self, numbers: Sequence[int]) -> tuple[Recorded, Changes] | None:
        """The first recording with a template whose guards pass, and the call's `Changes`; None if none applies."""
        for recorded in self.recorded:
            if recorded.changes is not None and (found := recorded.changes(*numbers)) is not None:
                self.use(recorded)
                return recorded, found
        return None

    def use(self, recorded: Recorded) -> None:
        """Count a served call, and move its recording to the front."""
        self.served += 1
        if recorded is not self.recorded[0]:
            self.add(recorded)

    def add(self, recorded: Recorded) -> None:
        """Put a recording at the front."""
        self.recorded = [recorded, *[each for each in self.recorded if each is not recorded]][:MOST]

    def due(self) -> bool:
        """Whether to record this call, to which no recording applies."""
        self.missed += 1
        if self.missed < self.wait:
            return False
        self.made += 1
        self.wait = EVERY if self.made < FREE or self.served >= EARNED else 2 * self.wait
        self.missed = self.served = 0
        return True


@lru_cache(maxsize=KINDS)
def kinds(*facts: Any) -> Kind:
    """The kind of calls with these facts."""
    return Kind()


class Entry:
    """What the launch cache has for a key: nothing at first."""

    __slots__ = ("kind", "ready", "sooner")

    def __init__(self) -> None:
        self.ready: Ready | None = None
        self.sooner = 0  # how many calls went by other kernels, while their own compiled
        self.kind: Kind | None = None  # the kind whose template served the first call


def described(call: Call, specs: Specs, kind: Kind, numbers: Sequence[int]) -> Work:
    """Describe a call, by a recording if one applies. ``numbers``: all sizes and strides."""
    if (work := kind.find(numbers)) is not None:
        return work
    work = call.describe(specs)
    if kind.due():
        with suppress(TypeError):  # symbols cannot do what it does with sizes: describe each call
            kind.add(Recorded(call, specs, numbers, work))
    return work


def is_lengths(value: Any) -> bool:
    """Whether a shape is a tuple of ints."""
    return isinstance(value, tuple) and all([type(n) is int for n in value])


def together(call: Call, specs: Specs, numbers: Iterator[Any]) -> Work:
    """Describe the call with other sizes and strides."""
    shapes, arrays = {}, {}
    for name, value in call.given.items():
        if (spec := specs.get(name)) is not None:
            shape, strides = (tuple(islice(numbers, spec.ndim)) for _ in range(2))
            arrays[name] = spec._replace(shape=shape, strides=strides)
        elif name in call.operation.shapes and is_lengths(value):
            shapes[name] = tuple(islice(numbers, len(value)))
    return call._replace(given=call.given | shapes).describe(arrays)
