"""Carrying out a `Work` on a device: allocate, launch, deliver. Nothing else touches devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..plan.geometry import Shape, contiguous_strides
from ..plan.recording import known
from ..plan.work import ArraySpec, Given, Launch, Plan, Work, given
from .context import Device, ExecutionContext, NotLoaded

#: A `Work` that is ready for a device: called with the call's arguments, and the addresses of the arrays among them. It
#: returns None if they are not what the work was described for.
Ready = Callable[[tuple[Any, ...], list[int]], Any]
#: What differs among calls of one template: shapes and strides (None: C order) of the new results, bytes of workspace
#: and of scratch, and what launches are given.
Changes = tuple[tuple[tuple[Shape, Shape | None], ...], tuple[int, ...], int, tuple[Given, ...]]


def prepare(
    work: Work, context: ExecutionContext, names: Sequence[str], out: int | None, fits: Fits | None, captured: bool
) -> Ready:
    """Make a work ready: kernels loaded, launches filled in but for addresses.

    ``names`` are those of the arrays whose addresses it will be given, ``out`` is the index of that argument. ``fits``
    tells whether ``out`` lies to the other arrays as it was described. ``captured``: it was described for a capture.
    """
    assert work.plan is not None
    plan, device, own = work.plan, context.device, work.plan.own
    new = [spec for spec in work.results if spec.name not in names]
    places = {name: i for i, name in enumerate((*names, *[spec.name for spec in new], *own))}
    if len(plan.steps) > 1:
        device.load(plan.kernels)
    try:
        steps = [step.ready(device, places) for step in plan.steps]
    except NotLoaded as missing:
        rule = "is not loaded yet, and a capture does not allow that: make the same call once before it begins"
        raise RuntimeError(f"{missing} {rule}, so that it takes strategy {plan.strategy!r}") from None
    make, written = maker(context, new, work), context.written
    provide = partial(provided, device, workspace_of(plan), plan.scratch) if own else None
    # Steps other than our launches, such as cuBLAS, are planned differently for a capture.
    guarded = not captured and not all(isinstance(step, Launch) for step in plan.steps)
    capturing = device.capturing if guarded else None

    def ready(values: tuple[Any, ...], addresses: list[int]) -> Any:
        if (fits is not None and not fits(addresses)) or (capturing is not None and capturing()):
            return None
        result = None if make is None else make(addresses)
        if out is not None:
            result = values[out] if result is None else (values[out], *result)
        if provide is not None:
            _memory, more = provide()  # which lives until the launches are made
            addresses += more
        for step in steps:
            step(addresses)
        if out is not None and written is not None:
            written(values[out])
        return result

    return ready


def maker(context: ExecutionContext, new: list[ArraySpec], work: Work) -> Callable[[list[int]], Any] | None:
    """A function that makes the new ones of a work's results: together, if it has several."""
    makers = [partial(context.maker(spec.dtype), *layout(spec)) for spec in new]
    if len(work.results) == 1:
        return makers[0] if makers else None
    gather = together(work)
    return lambda addresses: gather([make(addresses) for make in makers])


def layout(spec: ArraySpec) -> tuple[Shape, Shape | None]:
    """The shape and the strides of a new array; None in C order, whatever the numbers are that symbols stand for."""
    itemsize, shape, strides = spec.itemsize, spec.shape, spec.strides
    for stride, step in zip(strides, contiguous_strides(shape), strict=True):
        if known(stride) != known(step * itemsize):
            return shape, strides
    return shape, None


def together(work: Work) -> Callable[[list[Any]], Any]:
    """What puts several results together."""
    return getattr(work.form, "_make", work.form)


class Template:
    """What works have in common that are launches alone and differ in numbers: loaded kernels, places of addresses."""

    def __init__(self, work: Work, context: ExecutionContext, names: Sequence[str]) -> None:
        plan = work.plan
        assert plan is not None
        self.device, self.own = context.device, bool(plan.own)
        self.always = always_entered(context, plan)
        places = {name: i for i, name in enumerate((*names, *(spec.name for spec in work.results), *plan.own))}
        self.device.load(plan.kernels)
        self.steps = [self.device.launcher(step, places) for step in plan.steps]
        self.makers, self.gather = [context.maker(spec.dtype) for spec in work.results], together(work)

    def __call__(self, changes: Changes, addresses: list[int]) -> Any:
        """The result of a call whose arrays begin at these addresses."""
        layouts, workspace, scratch, launches = changes
        made = [make(*each, addresses) for make, each in zip(self.makers, layouts, strict=True)]
        if self.own:
            _memory, more = provided(self.device, workspace, scratch)  # which lives until the launches are made
            addresses += more
        for step, changed in zip(self.steps, launches, strict=True):
            step(addresses, changed)
        return self.gather(made) if len(made) > 1 else made[0]


def changes_of(work: Work) -> Changes:
    """What a template is given for a work, all of whose results are new."""
    assert work.plan is not None
    launches = tuple(given(step) for step in work.plan.steps)
    return tuple([*map(layout, work.results)]), workspace_of(work.plan), work.plan.scratch, launches


def workspace_of(plan: Plan) -> tuple[int, ...]:
    """The bytes of each array of a plan's workspace."""
    return tuple([nbytes for _, nbytes in plan.workspace])


def provided(device: Device, workspace: tuple[int, ...], scratch: int) -> tuple[list[Any], list[int]]:
    """The memory that a plan's steps use beside the caller's arrays, and the addresses of ``plan.own``."""
    memory, addresses = [], []
    for nbytes in workspace:
        array, address = device.workspace(nbytes)
        memory.append(array)
        addresses.append(address)
    if scratch:
        array, address, number = device.scratch(scratch)
        memory.append(array)
        addresses += address, number
    return memory, addresses


def entering(context: ExecutionContext, work: Work, ready: Ready) -> Ready:
    """The same, which enters the execution context where that is not the current one."""
    elsewhere, enter = context.elsewhere, context.enter
    if elsewhere is None:
        return ready
    assert work.plan is not None
    always = always_entered(context, work.plan)

    def entered(values: tuple[Any, ...], addresses: list[int]) -> Any:
        if always or elsewhere():
            with enter():
                return ready(values, addresses)
        return ready(values, addresses)

    return entered


def always_entered(context: ExecutionContext, plan: Plan) -> bool:
    """Whether a plan takes memory of its own, which CuPy's current allocator gives, and the context has another."""
    return context.foreign and bool(plan.own)


# ------------------------------------------------------------------------------------------------------------ overlap

Fits = Callable[[list[int]], bool]


def extent(spec: ArraySpec, address: int) -> tuple[int, int]:
    """The first byte and the one after the last of an array whose first element is at an address."""
    low = high = address
    if spec.size == 0:
        return low, low
    for n, stride in zip(spec.shape, spec.strides, strict=True):
        low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
    return low, high + spec.itemsize


def related(specs: dict[str, ArraySpec], addresses: list[int]) -> tuple[ArraySpec, Fits | None]:
    """The spec of ``out``, told which of the other arrays share memory with it, and which begin at its address.

    Also a function that tells, of other addresses of such arrays, whether none shares memory with ``out`` but those
    that begin there, which the launch cache knows of; None if another one does now.
    """
    place = [*specs].index("out")
    out, first = specs["out"], addresses[place]
    low, high = extent(out, first)
    overlaps, aliases = [], []
    others = []  # the index of an array, and the distances from ``out`` between which it would overlap
    for i, (name, address) in enumerate(zip(specs, addresses, strict=True)):
        if i == place:
            continue
        begin, end = extent(specs[name], address)
        if low < end and begin < high:
            overlaps.append(name)
        if address == first:
            aliases.append(name)
        elif specs[name].size:
            others.append((i, low - first - end + address, high - first - begin + address))

    def fits(addresses: list[int]) -> bool:
        first = addresses[place]
        for i, below, above in others:  # noqa: SIM110 - a generator would take longer
            if below < addresses[i] - first < above:
                return False
        return True

    out = out._replace(overlaps=tuple(overlaps), aliases=tuple(aliases))
    return out, fits if {*overlaps} <= {*aliases} else None
