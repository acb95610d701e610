"""``--gpus``: Dask arrays on several GPUs of one host, a worker process for each, beside the same on one of them.

Weak scaling: arrays grow with the number of workers. Times are those of the workers, from the start of the first
task to the end of the last; the time that the client waits is recorded too.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from .arrays import PATTERN, allocate, dtype_of, values
from .cases import Case, Operand, Shape
from .harness import Limit, Wrong, case_work, description, rated, reason
from .ops import check, expected, kinds, widened
from .providers import Gpuops, Provider
from .results import Unusable
from .timing import ROUNDS, Subject, significant

REPEATS = 4  # per round
STEP = 7919  # elements between the starts of two chunks' data, so that chunks differ
LINES = 8  # rows or columns of a result that are checked
PATIENCE = 500  # hundredths of a second to wait for results to be freed

Interval = tuple[float, float]  # when a task began and when it ended, in seconds
Log = list[tuple[Any, Any]]  # the marks of a task's start and end


# -------------------------------------------------------------------------------------------------------- on a worker


class TimedThreadPoolExecutor(ThreadPoolExecutor):
    """A worker's single thread, which records task intervals. (Dask looks for ThreadPoolExecutor in the name.)"""

    def __init__(self) -> None:
        super().__init__(1)
        self.log: Log = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        return super().submit(self.timed, function, *arguments, **options)

    def timed(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        begin = self.mark()
        try:
            return function(*arguments, **options)
        finally:
            self.log.append((begin, self.mark()))

    def take(self) -> list[Interval]:
        """The intervals of the tasks since the last call."""
        log, self.log = self.log, []
        return self.intervals(log) if log else []

    def mark(self) -> Any:
        """A mark of the current time."""
        return time.time()

    def intervals(self, log: Log) -> list[Interval]:
        """The intervals between marks."""
        return log


class GpuThreadPoolExecutor(TimedThreadPoolExecutor):
    """Task intervals by the GPU's clock, from events in the stream: nothing synchronises while tasks run."""

    def __init__(self) -> None:
        super().__init__()
        import cupy

        self.cuda = cupy.cuda

    def mark(self) -> Any:
        """The host's time, and an event that the GPU reaches later."""
        event, now = self.cuda.Event(), time.time()
        event.record()
        return now, event

    def intervals(self, log: Log) -> list[Interval]:
        (start, first), _ = log[0]  # when the GPU was idle
        _, (_, last) = log[-1]
        last.synchronize()

        def arrival(mark: tuple[float, Any]) -> float:
            return max(mark[0], start + self.cuda.get_elapsed_time(first, mark[1]) * 1e-3)

        return [(arrival(begin), arrival(end)) for begin, end in log]


#: By the library of the chunks.
EXECUTORS = {"numpy": TimedThreadPoolExecutor, "cupy": GpuThreadPoolExecutor}


def prepare(package: str, dask_worker: Any) -> None:
    """Make a worker record its task intervals."""
    dask_worker.executors["default"] = EXECUTORS[package]()


def take(dask_worker: Any) -> list[Interval]:
    """The task intervals that a worker has recorded."""
    return dask_worker.executors["default"].take()


def held(dask_worker: Any) -> set[Any]:
    """The keys of the chunks that a worker holds."""
    return {*dask_worker.data}


def tidy(package: str) -> None:
    """Free the memory pool: the next case has chunks of another size."""
    if package == "cupy":
        import_module(package).get_default_memory_pool().free_all_blocks()


def chunk(package: str, kind: str, dtype: str, shape: Shape, number: int) -> Any:
    """A chunk of an operand."""
    data = values(kind, dtype_of(dtype))[number * STEP % (PATTERN // 2) :]
    xp = import_module(package)
    return allocate(xp, Operand(shape), xp.asarray(data))


def on_host(x: Any) -> np.ndarray:
    """A chunk as NumPy's array."""
    return x if isinstance(x, np.ndarray) else x.get()


# ------------------------------------------------------------------------------------------------------ on the client


class Run(NamedTuple):
    """The times of one call, in seconds."""

    work: float  # from the start of the first task to the end of the last
    idle: float  # idle time per task
    wall: float  # until the client had the answer
    tasks: int


def summary(logs: Iterable[list[Interval]], called: float, returned: float) -> Run:
    """A run, from each worker's task intervals and the client's times of call and answer."""
    logs = list(logs)
    if not all(logs):
        raise Wrong("a worker had nothing to do")
    tasks = [interval for log in logs for interval in log]
    end = max(end for _, end in tasks)
    work = end - min(begin for begin, _ in tasks)
    busy = sum(end - begin for begin, end in tasks)
    idle = max(0.0, len(logs) * work - busy) / len(tasks)
    return Run(work, idle, max(returned, end) - called, len(tasks))


@contextmanager
def measuring(machine: Any, count: int) -> Iterator[Callable[..., dict[str, Any]]]:
    """A function that measures a case on ``count`` workers."""
    try:
        import dask.array
        import distributed
    except ModuleNotFoundError as failure:
        raise Unusable(f"--gpus needs {failure.name}: pip install 'gpuops-cupy[dask]'") from failure
    environments = machine.workers(count)
    if len(environments) < count:
        raise Unusable(f"--gpus {count}: there are {len(environments)} to be seen")
    package = machine.xp.__name__
    with TemporaryDirectory() as folder, dask.config.set({"distributed.diagnostics.nvml": False}):
        here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "dashboard": False}
        options = {**here, "nthreads": 1, "memory_limit": 0, "local_directory": folder, "silence_logs": logging.ERROR}
        workers = {
            i: {"cls": distributed.Nanny, "options": {**options, "env": environment}}
            for i, environment in enumerate(environments)
        }
        scheduler = {"cls": distributed.Scheduler, "options": here}
        with (
            distributed.SpecCluster(workers, scheduler, silence_logs=logging.ERROR) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.wait_for_workers(count)
            client.run(prepare, package)
            yield partial(measure, Team(client, package))


class Team:
    """The workers, and the chunks that they hold for a case."""

    def __init__(self, client: Any, package: str) -> None:
        self.client, self.package = client, package
        self.names = sorted(client.nthreads())
        self.chunks: dict[tuple[str, int, int], Any] = {}

    @contextmanager
    def holding(self, case: Case) -> Iterator[None]:
        """Hold each worker's part of the case's operands, created on the worker."""
        cols, lengths = case.problem.operands[0].shape[1], parts(case)
        for (operand, kind), (place, worker) in product(enumerate(kinds(case)), enumerate(self.names)):
            for i, length in enumerate(lengths, place * len(lengths)):
                given = self.package, kind, case.dtype, (length, cols), i + operand
                key = (name_of(case, operand), i, 0)
                self.chunks[key] = self.client.submit(chunk, *given, key=key, workers=[worker])
        try:
            yield
        finally:
            self.chunks.clear()
            self.forget()
            self.client.run(tidy, self.package)

    def operands(self, case: Case, count: int) -> list[Any]:
        """The parts of the first ``count`` workers as Dask arrays."""
        from dask.array import Array

        (_, cols), lengths = case.problem.operands[0].shape, parts(case) * count
        made = []
        for operand, kind in enumerate(kinds(case)):
            name, dtype = name_of(case, operand), values(kind, dtype_of(case.dtype)).dtype
            graph = {(name, i, 0): self.chunks[name, i, 0] for i in range(len(lengths))}
            like = import_module(self.package).empty((0, 0), dtype)
            made.append(Array(graph, name, (lengths, (cols,)), dtype, meta=like))
        return made

    def done(self, array: Any, count: int) -> Any:
        """A Dask array, computed and persisted by the first ``count`` workers."""
        from distributed import futures_of, wait

        array = self.client.persist(array, workers=self.names[:count])
        wait(array)
        for future in futures_of(array):
            if future.status != "finished":
                future.result()  # raises the task's error
        return array

    def run(self, call: Callable[[], Any], count: int) -> Run:
        """Time a call on the first ``count`` workers."""
        self.client.run(take)
        called = time.time()
        result = self.done(call(), count)
        returned = time.time()
        logs = self.client.run(take)
        del result
        self.forget()
        return summary([logs[name] for name in self.names[:count]], called, returned)

    def forget(self) -> None:
        """Wait until the workers hold only operands: remaining results would not be recomputed."""
        for _ in range(PATIENCE):
            if set().union(*self.client.run(held).values()) <= self.chunks.keys():
                break
            time.sleep(0.01)


def measure(
    team: Team, machine: Any, case: Case, peers: Iterable[Provider], watch: Callable[[str], None]
) -> dict[str, Any]:
    """Measure a case: its record in the results file. The limit is one worker's speed times the workers."""
    everyone, ours = len(team.names), Gpuops(machine.xp)
    whole, function = enlarged(case, everyone), ours.call(case)
    alone, together = (Subject(runner, [], fresh=False, kept=[]) for runner in (Limit("linear"), ours))
    row = case.problem.operands[0].shape[1] * dtype_of(case.dtype).itemsize
    chunks = {"chunks": whole.problem.chunks, "chunk_bytes": max(parts(case)) * row}
    about = description(whole) | {"workers": everyone, **chunks}
    watch(ours.name)
    try:
        with team.holding(case):
            sample(team, case, function, [(alone, 1), (together, everyone)])
    except Exception as failure:
        return about | {"skipped": reason(failure)}
    record = about | rated(case_work(whole), alone, [together], [ours], {})
    record["limit"] |= details(alone.kept)
    record["results"][0] |= details(together.kept)
    return record


def sample(team: Team, case: Case, function: Callable[..., Any], turns: list[tuple[Subject, int]]) -> None:
    """Check the results of subjects, each on its number of workers, then sample them."""
    calls = {count: partial(function, *team.operands(case, count)) for _, count in turns}
    for count, call in calls.items():
        if problem := fault(case, call.args, team.done(call(), count)):
            raise Wrong(problem)
        team.forget()
    for turn in range(ROUNDS):
        for subject, count in turns[:: -1 if turn % 2 else 1]:
            runs = [team.run(calls[count], count) for _ in range(REPEATS)]
            subject.samples.append([run.work for run in runs])
            subject.kept += runs


def details(runs: list[Run]) -> dict[str, Any]:
    """Medians of the other times of a subject's runs."""
    idle, wall = (statistics.median(getattr(run, name) for run in runs) for name in ("idle", "wall"))
    return {
        "tasks": runs[0].tasks, "overhead_us": significant(idle * 1e6), "wall_us": significant(wall * 1e6)
    }  # fmt: skip


def fault(case: Case, operands: Sequence[Any], result: Any) -> str:
    """What is wrong with a few lines of a result along the axis; "" if they are right."""
    columns = case.axis == 0
    size = operands[0].shape[1 if columns else 0]
    lines = slice(size // LINES // 2, None, max(1, size // LINES) | 1)  # an odd step hits other positions in each chunk
    given = tuple(fetched(x[:, lines] if columns else x[lines]) for x in operands)
    found = fetched(result[..., lines] if columns else result[lines])
    return check(np, expected(np, case, given), widened(np, found))


def fetched(x: Any) -> np.ndarray:
    """A small Dask array as NumPy's."""
    return x.map_blocks(on_host, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype)).compute()


def parts(case: Case) -> tuple[int, ...]:
    """The rows of each chunk of a worker."""
    rows, count = case.problem.operands[0].shape[0], case.problem.chunks
    return tuple((rows + i) // count for i in range(count))


def name_of(case: Case, operand: int) -> str:
    """A name for an operand's chunks, unique to the case."""
    return f"{case.op} {case.group.name} {case.label} {operand}"


def enlarged(case: Case, workers: int) -> Case:
    """The case with the rows of ``workers`` workers."""

    def grown(shape: Shape) -> Shape:
        return (shape[0] * workers, *shape[1:]) if shape else ()

    operands = tuple(operand._replace(shape=grown(operand.shape)) for operand in case.problem.operands)
    chunks = case.problem.chunks * workers
    problem = case.problem._replace(operands=operands, shape=grown(case.problem.shape), chunks=chunks)
    return case._replace(problem=problem)
