"""Executes a `Work` on a device: allocate, launch, return. Nothing else touches devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..errors import error
from ..plan.geometry import Shape, contiguous_strides
from ..plan.recording import known
from ..plan.work import COUNTS, ArraySpec, Given, Launch, Plan, Work, given
from .context import Device, ExecutionContext, NotLoaded

#: A `Work` prepared for a device: a function of the call's arguments, and of the addresses of the arrays among them. It
#: returns None if the work was not planned for them.
Ready = Callable[[tuple[Any, ...], list[int]], Any]
#: What varies among calls of one template: shapes and strides (None: C order) of new results, bytes of workspace and of
#: scratch, and each launch's `Given`.
Changes = tuple[tuple[tuple[Shape, Shape | None], ...], tuple[int, ...], int, tuple[Given, ...]]
OFTEN = 2  # how often a call is made by other kernels before it waits for its own


def prepare(
    work: Work, context: ExecutionContext, names: Sequence[str], out: int | None, fits: Fits | None, captured: bool
) -> Ready:
    """Prepare a work: load kernels, and pack launches but for addresses.

    ``names``: the arrays whose addresses it will get. ``out``: the index of that argument. ``fits``: checks that
    ``out``'s overlap is unchanged. ``captured``: the work was planned under capture.
    """
    assert work.plan is not None
    if work.then is not None:
        return prepare_counting(work, context, names, out, fits)
    plan, device, own = work.plan, context.device, work.plan.own
    new = [spec for spec in work.results if spec.name not in names]
    places = {name: i for i, name in enumerate((*names, *[spec.name for spec in new], *own))}
    if len(plan.steps) > 1:
        device.load(plan.kernels)
    try:
        steps = [step.ready(device, places) for step in plan.steps]
    except NotLoaded as missing:
        rule = "is not loaded, and loading is not allowed during a capture: make the same call once before it"
        raise RuntimeError(f"{missing} {rule}, with strategy {plan.strategy!r}") from None
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
            _memory, more = provide()  # keeps the memory until all launches are issued
            addresses += more
        for step in steps:
            step(addresses)
        if out is not None and written is not None:
            written(values[out])
        return result

    return ready


def meanwhile(work: Work, device: Device, general: Callable[[], Work], before: int | None) -> Work:
    """The same work by a plan whose kernels many calls share, while those of its own plan, which are not there, compile
    in the background. The work itself if others share these too, and if the call was made `OFTEN` before: then it waits
    for them, so that calls that are repeated, and timed, have the speed that lasts.

    ``general``: describes the work by kernels of small arrays, as far as these give the same bits. ``before``: how
    often the call was made so; None if that is not known: then one waits if any call needed its kernels before.
    """
    assert work.plan is not None
    plan = work.sooner() if work.sooner is not None else general().plan
    if plan is None or {*plan.kernels} <= {*work.plan.kernels}:
        return work
    if device.capturing():  # the call before it was made in this way
        return work._replace(plan=plan, sooner=None) if device.there(plan.kernels) else work
    if work.sooner is not None and not device.there([kernel for kernel in plan.kernels if kernel.expression is None]):
        return work
    new = device.begin(work.plan.kernels)
    waits = not new if before is None else before >= OFTEN
    return work if waits else work._replace(plan=plan, sooner=None)


def prepare_counting(
    work: Work, context: ExecutionContext, names: Sequence[str], out: int | None, fits: Fits | None
) -> Ready:  # fmt: skip
    """Prepare a work whose numbers the host reads, and with them the rest of the call, whenever they change."""
    assert work.plan is not None and work.then is not None
    plan, device, describe = work.plan, context.device, work.then
    places = {name: i for i, name in enumerate((*names, *plan.own))}
    workspace, nbytes = workspace_of(plan), dict(plan.workspace)[COUNTS]

    def check() -> None:
        if device.capturing():
            rule = "the size of the result must be read from the GPU, which is not allowed during a graph capture"
            raise error(RuntimeError, work.op, rule)

    check()
    device.load(plan.kernels)
    steps = [step.ready(device, places) for step in plan.steps]

    @lru_cache(maxsize=1)
    def rest(counts: tuple[int, ...]) -> Ready:
        return prepare(describe(counts), context, [*places], out, None, False)

    def ready(values: tuple[Any, ...], addresses: list[int]) -> Any:
        check()
        if fits is not None and not fits(addresses):
            return None
        _memory, more = provided(device, workspace, plan.scratch)  # keeps the memory until all launches are issued
        addresses += more
        for step in steps:
            step(addresses)
        counts = np.frombuffer(device.read(addresses[places[COUNTS]], nbytes), np.int64)
        return rest(tuple(counts.tolist()))(values, addresses)

    return ready


def maker(context: ExecutionContext, new: list[ArraySpec], work: Work) -> Callable[[list[int]], Any] | None:
    """A function that allocates a work's new results; in the work's form if it has several."""
    makers = [partial(context.maker(spec.dtype), *layout(spec)) for spec in new]
    if len(work.results) == 1 and work.form is None:
        return makers[0] if makers else None
    gather = together(work)
    return lambda addresses: gather([make(addresses) for make in makers])


def layout(spec: ArraySpec) -> tuple[Shape, Shape | None]:
    """A new array's shape and strides; None for strides that are in C order, whatever the values of symbols."""
    itemsize, shape, strides = spec.itemsize, spec.shape, spec.strides
    for stride, step in zip(strides, contiguous_strides(shape), strict=True):
        if known(stride) != known(step * itemsize):
            return shape, strides
    return shape, None


def together(work: Work) -> Callable[[list[Any]], Any]:
    """The function that makes the work's form of a list of results."""
    return getattr(work.form, "_make", work.form or tuple)


class Template:
    """The common part of works that consist of launches and differ only in numbers: kernels, places of addresses."""

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
        """Make a call with arrays at these addresses."""
        layouts, workspace, scratch, launches = changes
        made = [make(*each, addresses) for make, each in zip(self.makers, layouts, strict=True)]
        if self.own:
            _memory, more = provided(self.device, workspace, scratch)  # keeps the memory until all launches are issued
            addresses += more
        for step, changed in zip(self.steps, launches, strict=True):
            step(addresses, changed)
        return self.gather(made) if len(made) > 1 else made[0]


def changes_of(work: Work) -> Changes:
    """The `Changes` of a work whose results are all new."""
    assert work.plan is not None
    launches = tuple(given(step) for step in work.plan.steps)
    return tuple([*map(layout, work.results)]), workspace_of(work.plan), work.plan.scratch, launches


def workspace_of(plan: Plan) -> tuple[int, ...]:
    """The bytes of each array of a plan's workspace."""
    return tuple([nbytes for _, nbytes in plan.workspace])


def provided(device: Device, workspace: tuple[int, ...], scratch: int) -> tuple[list[Any], list[int]]:
    """A plan's workspace and scratch, and the addresses of ``plan.own``."""
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
    """A prepared work that enters its execution context where that is not current."""
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
    """Whether each call enters the context: the plan allocates with CuPy's current allocator, not the context's."""
    return context.foreign and bool(plan.own)


# ------------------------------------------------------------------------------------------------------------ overlap

Fits = Callable[[list[int]], bool]


def extent(spec: ArraySpec, address: int) -> tuple[int, int]:
    """The first byte of an array and the one after its last, given the address of its first element."""
    low = high = address
    if spec.size == 0:
        return low, low
    for n, stride in zip(spec.shape, spec.strides, strict=True):
        low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
    return low, high + spec.itemsize


def related(specs: dict[str, ArraySpec], addresses: list[int]) -> tuple[ArraySpec, Fits | None]:
    """The spec of ``out`` with its ``overlaps`` and ``aliases``, and a check of ``out``'s overlap at other addresses.

    The check passes if only arrays at ``out``'s own address overlap it, which are part of the cache key. It is None if
    another array overlaps ``out`` now.
    """
    place = [*specs].index("out")
    out, first = specs["out"], addresses[place]
    low, high = extent(out, first)
    overlaps, aliases = [], []
    others = []  # an array's index, and the distances from ``out`` between which they overlap
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
