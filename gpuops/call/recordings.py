"""Shapes that are new: calls that differ in sizes alone are described by a recorded function of the sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from ..device.context import ExecutionContext
from ..device.execute import Changes, Ready, Template, changes_of
from ..plan.recording import Recording
from ..plan.work import ArraySpec, Launch, Operand, Work
from .operation import Call

KINDS = 256  # kinds of calls whose recordings are kept: the latest ones
MOST = 8  # recordings of a kind, the latest used first
EVERY = 10  # calls of a kind that none of them serves, before one is made;
FREE, EARNED = 3, 8  # after the first few, twice as many each time, unless the last one served so many: it has paid

Specs = dict[str, ArraySpec]


class Recorded:
    """A recorded description of calls: their work, as a function of sizes and strides that pass its guards.

    ``changes`` gives less: what of the work is not the same for all of them. ``template`` has the rest, ready.
    """

    def __init__(self, call: Call, specs: Specs, numbers: Sequence[int], work: Work) -> None:
        self.recording, self.example = Recording(), work
        self.symbolic = together(call, specs, iter(self.recording.symbols(numbers)))
        self.some = changing(self.symbolic, [*call.arrays])
        self.ready: Template | None = None

    @cached_property
    def work(self) -> Callable[..., Work | None]:
        """The work of a call with such numbers."""
        return self.recording.function(self.symbolic)

    @cached_property
    def changes(self) -> Callable[..., Changes | None] | None:
        """What a template is given for a call with such numbers."""
        return None if self.some is None else self.recording.function(self.some)

    def template(self, context: ExecutionContext, names: Sequence[str]) -> Template:
        """What calls have in common: their execution context and the names of their arrays are those of the kind."""
        if (found := self.ready) is None:
            found = self.ready = Template(self.example, context, names)
        return found


def changing(work: Work, names: list[str]) -> Changes | None:
    """What of a work with symbols changes with them, if that is no more than a template takes."""
    plan = work.plan
    if plan is None or not all(isinstance(step, Launch) for step in plan.steps):
        return None
    new = all(spec.name not in names for spec in work.results)
    fixed = all(type(arg.offset) is int for step in plan.steps for arg in step.args if isinstance(arg, Operand))
    return changes_of(work) if new and fixed else None


class Kind:
    """Calls that differ in sizes and strides alone: their recorded descriptions."""

    __slots__ = ("made", "missed", "over", "recorded", "served", "wait")

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.over: dict[tuple[str, ...], Kind] = {}
        self.made, self.wait = 0, EVERY
        self.missed = self.served = 0  # calls since the last recording was made

    def writing(self, out: ArraySpec) -> Kind:
        """Those whose ``out`` overlaps the same operands, which also depends on where it ends."""
        return self.over.get(out.overlaps) or self.over.setdefault(out.overlaps, Kind())

    def find(self, numbers: Sequence[int]) -> Work | None:
        """The work that a recording gives."""
        for recorded in self.recorded:
            if (work := recorded.work(*numbers)) is not None:
                self.use(recorded)
                return work
        return None

    def changes(self, numbers: Sequence[int]) -> tuple[Recorded, Changes] | None:
        """A recording that has a template for a call, and what of its work is the call's own."""
        for recorded in self.recorded:
            if recorded.changes is not None and (found := recorded.changes(*numbers)) is not None:
                self.use(recorded)
                return recorded, found
        return None

    def use(self, recorded: Recorded) -> None:
        """A recording has served a call."""
        self.served += 1
        if recorded is not self.recorded[0]:
            self.add(recorded)

    def add(self, recorded: Recorded) -> None:
        """Put a recording first."""
        self.recorded = [recorded, *[each for each in self.recorded if each is not recorded]][:MOST]

    def due(self) -> bool:
        """Whether to record a call that no recording serves."""
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
    """What the launch cache knows of calls with the same key: nothing at first."""

    __slots__ = ("kind", "ready")

    def __init__(self) -> None:
        self.ready: Ready | None = None
        self.kind: Kind | None = None  # whose template has served such a call


def described(call: Call, specs: Specs, kind: Kind, numbers: Sequence[int]) -> Work:
    """The description of a call of a kind, given the specs of its arrays, and all sizes and strides."""
    if (work := kind.find(numbers)) is not None:
        return work
    work = call.describe(specs)
    if kind.due():
        with suppress(TypeError):  # it does with sizes what symbols cannot: it is described each time
            kind.add(Recorded(call, specs, numbers, work))
    return work


def is_lengths(value: Any) -> bool:
    """Whether a shape is a tuple of ints."""
    return isinstance(value, tuple) and all([type(n) is int for n in value])


def together(call: Call, specs: Specs, numbers: Iterator[Any]) -> Work:
    """The description of the call with other sizes and strides."""
    shapes, arrays = {}, {}
    for name, value in call.given.items():
        if (spec := specs.get(name)) is not None:
            shape, strides = (tuple(islice(numbers, spec.ndim)) for _ in range(2))
            arrays[name] = spec._replace(shape=shape, strides=strides)
        elif name in call.operation.shapes and is_lengths(value):
            shapes[name] = tuple(islice(numbers, len(value)))
    return call._replace(given=call.given | shapes).describe(arrays)
