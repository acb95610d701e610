"""Measure each case with each provider. Results are checked before they are timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from .arrays import allocate, dtype_of, values
from .cases import Case, Operand
from .ops import OPS, Expected, check, expected, kinds, nbytes, result_dtype
from .providers import Gpuops, Provider, Refused, beside, first_line, strategies
from .timing import COLD, ROUNDS, Runner, Subject, significant, slots

MOSTLY_WRITTEN = 0.05  # share of bytes read below which writing bounds a case


class Limit(Runner):
    """The machine's limit: a copy of the same bytes, or BLAS on the same matrices, timed beside the providers."""

    def __init__(self, name: str) -> None:
        self.name = name


class Wrong(Exception):
    """A result is not what it should be."""


def measure(machine: Any, case: Case, peers: Iterable[Provider], watch: Callable[[str], None]) -> dict[str, Any]:
    """Measure a case: its record in the results file. ``watch`` is told which provider is at work."""
    lineup = providers_of(machine, case, peers)
    subjects: list[Subject] = []
    refused: dict[str, str] = {}
    try:
        ring = with_memory(machine, ring_of, machine, case)
        limit = with_memory(machine, limit_of, machine, case, ring)
        right = with_memory(machine, expected, machine.xp, case, ring[0][: len(case.problem.operands)])
    except Exception as failure:
        if not out_of_memory(failure) and not isinstance(failure, ModuleNotFoundError):
            raise
        machine.free()
        return description(case) | {"skipped": reason(failure)}
    for provider in lineup:
        watch(provider.name)
        try:
            subjects.append(with_memory(machine, prepare, machine, case, provider, ring, right))
        except Exception as failure:  # whatever a library raises
            refused[provider.name] = reason(failure)
    for turn in range(ROUNDS):
        for subject in [limit, *subjects][:: -1 if turn % 2 else 1]:
            name = subject.runner.name
            watch(name)
            try:
                if name not in refused:
                    with_memory(machine, subject.sample, machine)
            except Exception as failure:
                refused[name] = reason(failure)
    machine.tidy()
    if limit.runner.name in refused:
        return description(case) | {"skipped": refused[limit.runner.name]}
    return description(case) | rated(case_work(case), limit, subjects, lineup, refused)


def providers_of(machine: Any, case: Case, peers: Iterable[Provider]) -> list[Provider]:
    """The providers of a case: gpuops, its op beside, the peers that have the op, and on a ladder the strategies."""
    group = case.group
    named = machine.ladders and (group.strategies or (case.pick and group.ladder))
    ladder = strategies(case.op, machine.xp) if named else []
    if group.strategies:
        ladder = [provider for provider in ladder if provider.strategy in group.strategies]
    peers = [peer for peer in peers if group.peers and (peer.name in group.only if group.only else peer.everywhere)]
    everyone = [Gpuops(machine.xp), *beside(case.op, machine.xp), *peers, *ladder]
    return [provider for provider in everyone if case.op in provider.ops]


def description(case: Case) -> dict[str, Any]:
    """What identifies a case, and the work that it does."""
    read, written = nbytes(case)
    return {
        "op": case.op,
        "case": case.label,
        "group": case.group.name,
        "dtype": case.dtype,
        "operands": [{"shape": list(o.shape), "layout": o.layout} for o in case.problem.operands],
        "axis": list(case.axis) if isinstance(case.axis, tuple) else case.axis,
        **({"options": case.options} if case.options else {}),
        "result": list(OPS[case.op].shape(case)),
        "pick": case.pick,
        "read_bytes": read,
        "written_bytes": written,
        "flop": OPS[case.op].flop(case),
    }


def ring_of(machine: Any, case: Case) -> list[tuple[Any, ...]]:
    """The case's arrays, in as many copies as keep the cache cold."""
    dtype = dtype_of(case.dtype)
    data = [machine.upload(values(kind, dtype)) for kind in kinds(case)]
    pairs = list(zip(case.problem.operands, data, strict=True))
    if case.problem.out:
        result = Operand(OPS[case.op].shape(case), case.problem.out)
        pairs.append((result, machine.upload(values("zeros", result_dtype(case)))))
    count = 1 if machine.hot else slots(*nbytes(case), machine.cache)
    return [tuple(allocate(machine.xp, operand, source) for operand, source in pairs) for _ in range(count)]


def limit_of(machine: Any, case: Case, ring: list[tuple[Any, ...]]) -> Subject:
    """A copy, a read or a write of as many bytes as the case's; for a matrix product, BLAS."""
    kind = OPS[case.op].limit
    read, written = nbytes(case)
    if kind == "BLAS":
        calls: list[Callable[[], Any]] = [partial(machine.xp.matmul, *arrays) for arrays in ring]
    else:
        kind = "write" if kind == "copy" and read < MOSTLY_WRITTEN * (read + written) else kind
        calls = [getattr(machine, kind)(read + written) for _ in ring]
    return warm(machine, Subject(Limit(kind), calls, fresh=needs_fresh(machine, case, ring)))


def prepare(machine: Any, case: Case, provider: Provider, ring: list[tuple[Any, ...]], right: Expected) -> Subject:
    """The provider's calls, warmed up after a check of the result."""
    function = provider.into(case) if case.problem.out else provider.call(case)
    calls: list[Callable[[], Any]] = [partial(function, *map(provider.array, arrays)) for arrays in ring]
    result = calls[0]()
    if provider.checked and (problem := check(machine.xp, right, provider.wide(result))):
        raise Wrong(problem)
    machine.synchronize()
    return warm(machine, Subject(provider, calls, fresh=needs_fresh(machine, case, ring)))


def warm(machine: Any, subject: Subject) -> Subject:
    """The subject, ready to be sampled."""
    subject.warm_up(machine.synchronize)
    return subject


def with_memory(machine: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; if it runs out of memory, free the libraries' pools and retry."""
    try:
        return function(*arguments)
    except Exception as failure:
        if not out_of_memory(failure):
            raise
    machine.free()
    return function(*arguments)


def needs_fresh(machine: Any, case: Case, ring: list[tuple[Any, ...]]) -> bool:
    """Whether the ring is too small to reuse its slots within a sample."""
    return not machine.hot and len(ring) * nbytes(case)[0] < COLD * machine.cache


def rated(
    work: float, limit: Subject, subjects: list[Subject], lineup: list[Provider], refused: dict[str, str]
) -> dict[str, Any]:
    """The limit and the results with speeds (``work`` per µs) and their ratios to the limit and the best peer."""
    timed = {s.runner.name: s.result() for s in (limit, *subjects) if s.runner.name not in refused}
    for result in timed.values():
        result["speed"] = significant(work / result["us"])
    bound = {"name": limit.runner.name, **timed.pop(limit.runner.name)}
    best = min((result["us"] for name, result in timed.items() if not name.startswith("gpuops")), default=None)
    results = []
    for provider in lineup:
        if provider.name in refused:
            results.append({"provider": provider.name, "refused": refused[provider.name]})
            continue
        result = timed[provider.name]
        result["of_limit"] = significant(bound["us"] / result["us"])
        result["of_best_peer"] = best and significant(best / result["us"])
        results.append({"provider": provider.name, **result})
    return {"limit": bound, "results": results}


def case_work(case: Case) -> float:
    """The work that speeds count, per microsecond: GB/s, or TFLOP/s of matrix products."""
    return OPS[case.op].flop(case) * 1e-6 if OPS[case.op].limit == "BLAS" else sum(nbytes(case)) * 1e-3


def reason(failure: Exception) -> str:
    """Why there is no time, in a line."""
    if isinstance(failure, Wrong):
        return f"wrong: {failure}"
    if out_of_memory(failure):
        return f"out of memory: {first_line(failure)}"
    return first_line(failure) if isinstance(failure, Refused) else f"{type(failure).__name__}: {first_line(failure)}"


def out_of_memory(failure: Exception) -> bool:
    """Whether the machine has too little memory, in the words of any library."""
    return (
        isinstance(failure, MemoryError)
        or "OutOfMemory" in type(failure).__name__
        or any(text in str(failure) for text in ("RESOURCE_EXHAUSTED", "cudaErrorMemoryAllocation"))
    )
