"""``--host``: the host time of calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import gpuops
from gpuops.call.arrays import find
from gpuops.call.dispatch import describe
from gpuops.device.execute import maker, provided, workspace_of

from . import first_use
from .cases import CACHED_CALL_STEPS, EAGER, FIRST_USE, NEW, REPLAYED, REPLAYED_ON_GPU, WITH_TENSORS, Case, Shape
from .harness import Limit, Wrong, description, prepare, providers_of, rated, reason, ring_of, warm
from .ops import check, expected
from .providers import Provider
from .timing import ROUNDS, Subject

SAMPLES = 10  # per round
CALLS = 200  # per sample
FEW_CALLS = 50  # per sample of several kernels each: few enough not to fill the GPU's queue
NEW_ROWS = range(33, 600)  # row counts of new shapes
KNOWN = 21  # every 21st shape warms up instead of being timed, so that all kernels are loaded
NEW_CALLS = 27  # per sample: 2 rounds of 10 samples take all of the other 540


def measure(machine: Any, case: Case, peers: Iterable[Provider], watch: Callable[[str], None]) -> dict[str, Any]:
    """Measure a case of ``--host``: its record in the results file."""
    return (first_use.measure if case.group == FIRST_USE else latency)(machine, case, peers, watch)


def latency(machine: Any, case: Case, peers: Iterable[Provider], watch: Callable[[str], None]) -> dict[str, Any]:
    """Measure what a call costs, libraries round-robin, so that slow moments of the host hit them all."""
    timing = TIMINGS[case.problem.how]
    lineup = [p for p in providers_of(machine, case, peers) if not (timing.any_shape and p.specialises)]
    subjects: list[Subject] = []
    refused: dict[str, str] = {}
    ring = ring_of(machine, case)[:1]
    right = expected(machine.xp, case, ring[0][: len(case.problem.operands)])
    for provider in lineup:
        watch(provider.name)
        try:
            subject = prepare(machine, case, provider, ring, right)
            subject.count = timing.calls
            timing.make_ready(machine, case, subject)
            subjects.append(subject)
        except Exception as failure:  # whatever a library raises
            refused[provider.name] = reason(failure)
    floor = warm(machine, Subject(Limit("launch"), [machine.launch], fresh=False))
    floor.count = timing.calls
    repeat_call(machine, case, floor)
    for _ in range(ROUNDS):
        everyone = [floor, *subjects]
        for subject in everyone:
            subject.samples.append([])
        for subject in everyone * SAMPLES:
            watch(subject.runner.name)
            subject.samples[-1].append(timing.clock(machine, subject))
    return description(case) | rated(1, floor, subjects, lineup, refused)


def host_seconds(machine: Any, subject: Subject) -> float:
    """Host seconds per call, launches only; the device is synchronised before."""
    batch = subject.calls[: subject.count]
    subject.calls = subject.calls[subject.count :] + batch
    machine.synchronize()
    start = time.perf_counter()
    for call in batch:
        call()
    return (time.perf_counter() - start) / len(batch)


def gpu_seconds(machine: Any, subject: Subject) -> float:
    """Seconds per call on the device."""
    seconds, hidden = machine.sample(subject, [None])
    subject.hidden &= hidden
    return seconds


def repeat_call(machine: Any, case: Case, subject: Subject) -> None:
    """Repeat the same call within each sample."""
    subject.calls *= subject.count
    for call in subject.calls:
        call()


def on_new_shapes(machine: Any, case: Case, subject: Subject) -> None:
    """One call per new shape."""
    provider = subject.runner
    assert isinstance(provider, Provider)
    tallest, *_ = ring_of(machine, taller(case, NEW_ROWS.stop))
    calls = {}
    for rows in NEW_ROWS:
        grown = taller(case, rows)
        pairs = zip(tallest, grown.problem.operands, strict=True)
        arrays = (x[: operand.shape[0]] if x.ndim else x for x, operand in pairs)
        calls[rows] = partial(provider.call(grown), *map(provider.array, arrays))
    for rows in NEW_ROWS[::-KNOWN]:
        calls.pop(rows)()
    subject.calls = list(calls.values())


def taller(case: Case, rows: int) -> Case:
    """The case with ``rows`` rows: of all its arrays, or of the first matrix of a product."""

    def grown(shape: Shape) -> Shape:
        return (rows, *shape[1:]) if shape else ()

    first, *others = case.problem.operands
    grow = [first] if case.op == "matmul" else [first, *others]
    operands = [operand._replace(shape=grown(operand.shape)) for operand in grow] + others[len(grow) - 1 :]
    return case._replace(problem=case.problem._replace(operands=tuple(operands), shape=grown(case.problem.shape)))


def replayed(machine: Any, case: Case, subject: Subject) -> None:
    """Replay a CUDA graph of the call."""
    provider, (call,) = subject.runner, subject.calls[:1]
    assert isinstance(provider, Provider)
    arrays, *_ = ring_of(machine, case)  # the same data as the call's
    machine.synchronize()
    replay, result, more = provider.captured(call)
    result[...] = 0
    replay()
    if problem := check(machine.xp, expected(machine.xp, case, arrays), provider.wide(result)):
        raise Wrong(f"replayed, {problem}")
    subject.calls, subject.kept = [replay], (result, more)
    repeat_call(machine, case, subject)


def one_step(machine: Any, case: Case, subject: Subject) -> None:
    """Time one step of a cached call."""
    (x,), *_ = ring_of(machine, case)
    calls, subject.kept = steps(getattr(gpuops, case.op), x, axis=case.axis)
    subject.calls = [calls[case.problem.how]]
    repeat_call(machine, case, subject)


def steps(op: Any, x: Any, **options: Any) -> tuple[dict[str, Callable[[], Any]], Any]:
    """The steps of a cache hit, each as a separate call; and the arrays that they need."""
    result, context, work = op(x, **options), find(op.__name__, "a", x), describe(op, x, **options)
    assert context is not None and work.plan is not None
    make = maker(context, [*work.results], work)
    addresses = [context.spec("", array, context.device.machine)[1] for array in (x, result)]
    assert make is not None
    memory, more = provided(context.device, workspace_of(work.plan), work.plan.scratch)
    (step,) = work.plan.steps
    places = {name: i for i, name in enumerate(("a", "out", *work.plan.own))}
    launch = partial(step.ready(context.device, places), addresses + more)
    calls: tuple[Callable[[], Any], ...] = (lambda: make([]), launch, partial(op, x, **options))
    return dict(zip(CACHED_CALL_STEPS, calls, strict=True)), (result, memory)


class Timing(NamedTuple):
    """How a case is timed."""

    make_ready: Callable[[Any, Case, Subject], None] = repeat_call
    calls: int = CALLS  # per sample
    clock: Callable[[Any, Subject], float] = host_seconds
    any_shape: bool = False  # excludes libraries that specialise for each shape


#: By ``Problem.how``.
TIMINGS: dict[str, Timing] = {
    **dict.fromkeys(("", WITH_TENSORS), Timing()),
    NEW: Timing(on_new_shapes, NEW_CALLS, any_shape=True),
    EAGER: Timing(calls=FEW_CALLS),
    REPLAYED: Timing(replayed, FEW_CALLS),
    REPLAYED_ON_GPU: Timing(replayed, FEW_CALLS, gpu_seconds),
    **dict.fromkeys(CACHED_CALL_STEPS, Timing(one_step)),
}
