"""Dask arrays on a cluster of processes: every op, task names, and a killed worker."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest

import gpuops
from tests.ops import EXTREMA, WITH_AXIS

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")
distributed = pytest.importorskip("distributed", reason="needs Dask's distributed")

from dask.utils import key_split  # noqa: E402

TIMEOUT = 60
VALUES = np.random.default_rng(0).normal(size=(8, 12)).astype(np.float32)


@contextmanager
def cluster():
    """Two worker processes with one thread each."""
    waits = {"distributed.comm.timeouts.connect": "10s", "distributed.deploy.lost-worker-timeout": "1s"}
    with (
        dask.config.set(waits),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=0
        ) as processes,
        distributed.Client(processes, timeout=TIMEOUT) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster() as client:
        yield client


@pytest.fixture
def brittle():
    """A client of a separate cluster, which the test may break."""
    with cluster() as client:
        yield client


def lazily(x):
    """A call of each op, with its result for a whole array."""
    mask = VALUES > -1
    for op in (op for op in WITH_AXIS if op not in EXTREMA):
        yield getattr(gpuops, op)(x, axis=1, where=x > -1), getattr(gpuops, op)(VALUES, axis=1, where=mask)
    for op in EXTREMA:
        yield getattr(gpuops, op)(x), getattr(gpuops, op)(VALUES)
    yield gpuops.where(x > -1, x, 0), np.where(mask, VALUES, 0)
    yield gpuops.expand(x, (2, -1, -1)), np.broadcast_to(VALUES, (2, 8, 12))
    yield gpuops.broadcast_to(x, (2, 8, 12)), np.broadcast_to(VALUES, (2, 8, 12))
    yield gpuops.matmul(x, x.T, alpha=2, beta=1, c=x[:, :1]), 2 * VALUES @ VALUES.T + VALUES[:, :1]
    yield gpuops.dot(x, x.T), VALUES @ VALUES.T


def test_every_op_runs_on_a_cluster(client):
    lazy, expected = zip(*lazily(da.from_array(VALUES, (3, 5))))
    for got, value in zip(client.gather(client.compute(lazy)), expected):
        np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6)


def test_scheduler_task_names_contain_the_op(client):
    x = da.from_array(VALUES, (2, 2)).persist()
    distributed.wait(x, timeout=TIMEOUT)
    with dask.config.set(split_every=4):
        lazy = [gpuops.softmax(x, axis=1), gpuops.matmul(x, x.T), gpuops.mean(x), gpuops.sum(x, axis=0)]
    futures = client.compute(lazy, optimize_graph=False)
    client.gather(futures)
    seen = client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.task_prefixes])
    assert {
        "softmax", "softmax-partial", "softmax-aggregate", "softmax-finish", "matmul", "matmul-partial",
        "matmul-aggregate", "mean", "mean-aggregate", "sum", "sum-aggregate",
    } <= {*seen}  # fmt: skip
    futures = client.compute(lazy)
    keys = client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.tasks])
    ours = ("softmax", "matmul", "mean", "sum", "array", "transpose", "finalize")
    assert {name for name in map(key_split, keys) if not any(part in name for part in ours)} == set()
    client.gather(futures)


def test_tasks_of_a_killed_worker_are_recomputed(brittle, tmp_path):

    def slowly(block):  # each worker holds one chunk and computes another
        (tmp_path / f"{os.getpid()}-{time.time_ns()}").touch()
        time.sleep(0.2)
        return block

    x = da.from_array(VALUES, (2, 4)).map_blocks(slowly, dtype=VALUES.dtype, meta=VALUES[:0, :0])
    lazy = [gpuops.softmax(x, axis=1), gpuops.matmul(x, VALUES.T)]
    expected = [gpuops.softmax(VALUES, axis=1), VALUES @ VALUES.T]
    before = {*brittle.run(os.getpid).values()}
    futures = brittle.compute(lazy)
    deadline = time.monotonic() + TIMEOUT
    victim = None
    while victim is None:
        assert time.monotonic() < deadline
        begun = [int(path.name.split("-")[0]) for path in tmp_path.iterdir()]
        victim = next((pid for pid in before if begun.count(pid) > 1), None)
        time.sleep(0.01)
    assert not any(future.done() for future in futures)
    os.kill(victim, signal.SIGKILL)
    for future, result in zip(futures, expected):
        np.testing.assert_allclose(future.result(timeout=TIMEOUT), result, rtol=1e-5, atol=1e-6)
    begun = [int(path.name.split("-")[0]) for path in tmp_path.iterdir()]
    assert len(begun) > x.npartitions, "what died with the process was made again"
