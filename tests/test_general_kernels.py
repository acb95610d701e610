"""The first call of a large array takes the kernels of small ones, with the same bits, while its own compile."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import gpuops
from gpuops.call.dispatch import describe
from gpuops.device.background import Background
from gpuops.plan import maps
from gpuops.plan import small as plan_small
from gpuops.plan.reductions import small
from gpuops.plan.work import Machine, new_array
from tests import emulated
from tests.compare import assert_bits
from tests.compiling import Compiling
from tests.layouts import sample

SMALL = {*plan_small.KERNELS}


@pytest.fixture
def compiling(emulation, monkeypatch):
    return Compiling(lambda kernel: kernel.name in SMALL, monkeypatch)


def on_device(array):
    return emulated.DEVICE.from_host(array)


def expanded(x):
    return gpuops.expand(x, (300, *x.shape))


CALLS = {
    "sum of rows": lambda x: gpuops.sum(x, axis=1),
    "sum of all": gpuops.sum,
    "mean of columns": lambda x: gpuops.mean(x, axis=0),
    "max": lambda x: gpuops.max(x, axis=1),
    "index of the largest": lambda x: gpuops.argmax(x, axis=0),
    "expand": expanded,
}


@pytest.fixture
def all_large(monkeypatch):
    """All arrays are large."""
    for module, limit in ((small, "WIDE"), (small, "LONG"), (small, "ODD"), (small, "WHOLE")):
        monkeypatch.setattr(module, limit, 0)
    monkeypatch.setattr(maps.elements, "WHOLE", 0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_do_not_wait_for_kernels_of_large_arrays(compiling, all_large, name, dtype):
    x, results = on_device(sample((60, 70), np.dtype(dtype))), []
    for call in range(5):
        compiling.launched.clear()
        compiling.ready = call > 2
        results.append(np.asarray(CALLS[name](x)))
        assert ({*compiling.names()} <= SMALL) == (call < 2)  # the third one waits for its own kernels
    for result in results[1:]:
        assert_bits(result, results[0])
    assert {kernel.name for kernel in compiling.begun} == {*compiling.names()}


def test_only_the_same_call_waits_for_its_own_kernels(compiling, all_large):
    x = on_device(sample((60, 70)))
    calls = (60, False), (59, False), (58, False), (60, False), (57, False), (60, True), (59, False), (59, True)
    for rows, waits in calls:
        compiling.launched.clear()
        gpuops.sum(x[:rows], axis=1)
        assert {*compiling.names()}.isdisjoint(SMALL) == waits


def test_first_calls_compile_kernels_that_others_share(emulation, all_large, monkeypatch):
    compiling = Compiling(lambda kernel: False, monkeypatch)
    gpuops.sum(on_device(sample((60, 70))), axis=1)
    assert {*compiling.names()} <= SMALL
    assert {kernel.name for kernel in compiling.begun}.isdisjoint(SMALL)


def test_kernels_of_other_dtypes_compile_beside_those_of_a_call(emulation, all_large, monkeypatch):
    compiling = Compiling(lambda kernel: False, monkeypatch)
    x, y = on_device(sample((60, 70))), on_device(sample((60, 70)) > 0)
    gpuops.sum(x, axis=1)
    before = len(compiling.begun)
    monkeypatch.setattr(emulated.EmulatedDevice, "compiles_all", True)
    gpuops.sum(x, axis=0)
    gpuops.where(y, x, x)
    more = compiling.begun[before:]
    assert {kernel.name for kernel in more} - SMALL == {"reduce_columns", "broadcast"}
    sums = {dict(kernel.types)["Tin"] for kernel in more if kernel.name == "reduce_small"}
    assert sums == {"f32", "f64", "f16", "i64", "i32"}
    maps = {tuple(dict(kernel.types)[name] for name in ("Ta", "Tb")) for kernel in more if "elements" in kernel.name}
    assert maps == {("u8", "u16"), ("u8", "u32"), ("u8", "u64")}
    begun = len(compiling.begun)
    gpuops.sum(x, axis=0)
    assert len(compiling.begun) == begun


def test_options_need_not_suit_other_dtypes(emulation, all_large, monkeypatch):
    Compiling(lambda kernel: False, monkeypatch)
    monkeypatch.setattr(emulated.EmulatedDevice, "compiles_all", True)
    assert gpuops.sum(on_device(np.ones(3)), initial=1e300) == 1e300


def test_one_call_is_enough_before_a_capture(compiling, all_large, monkeypatch):
    x = on_device(sample((60, 70)))
    expected = np.asarray(gpuops.sum(x, axis=1))
    monkeypatch.setattr(emulated.DEVICE, "capturing", lambda: True)
    for _ in range(2):
        compiling.launched.clear()
        assert_bits(np.asarray(gpuops.sum(x, axis=1)), expected)
        assert {*compiling.names()} <= SMALL  # the others are not loaded


MACHINE = Machine(132, cluster=16, shared=227 * 1024, together=132)
GENERAL = MACHINE._replace(general=True)


def kernels(op, shape, dtype, machine, **options):
    """The kernels that a call needs on a machine."""
    x = new_array("x", shape, np.dtype(dtype), machine=machine)
    return {kernel.name for kernel in describe(op, x, **options).plan.kernels}


@pytest.mark.parametrize(
    ("op", "dtype", "general"),
    [
        (gpuops.sum, "float64", True),
        (gpuops.mean, "float16", True),
        (gpuops.prod, "int64", True),
        (gpuops.max, "float32", True),
        (gpuops.argmin, "float64", True),
        (gpuops.any, "bool", True),
        (gpuops.var, "float32", False),  # its states have no room
        (gpuops.prod, "float32", False),  # the order of products decides the last bits
        (gpuops.logsumexp, "float32", False),
        (gpuops.max, "float64", False),  # and which of two zeros is the largest
        (gpuops.softmax, "float32", False),
    ],
)  # fmt: skip
def test_general_kernels_serve_what_gives_the_same_bits_in_any_order(op, dtype, general):
    shape = (2048, 2048)
    assert kernels(op, shape, dtype, MACHINE, axis=1).isdisjoint(SMALL)
    assert (kernels(op, shape, dtype, GENERAL, axis=1) <= SMALL) == general


@pytest.mark.parametrize(("shape", "general"), [((2**33,), False), ((2**31 - 1,), True), ((2**32, 2), False)])
def test_general_kernels_of_reductions_have_32_bit_indices(shape, general):
    assert (kernels(gpuops.sum, shape, "int8", GENERAL, axis=-1) <= SMALL) == general


def test_general_kernels_of_maps_serve_any_size():
    x = new_array("x", (2**17, 1), np.dtype("float32"), machine=GENERAL)
    steps = describe(gpuops.expand, x, (2**17, 2**17)).plan.steps
    assert {step.kernel.name for step in steps} <= SMALL and len(steps) > 1


def test_general_kernels_serve_no_named_strategy():
    named = {"axis": 1, "strategy": "rows"}
    assert kernels(gpuops.sum, (2048, 2048), "float32", GENERAL, **named) == {"reduce_rows"}


# ------------------------------------------------------------------------------------------------------------- threads


def test_tasks_run_on_several_threads_and_each_once():
    queue, started, release, done = Background(2), threading.Semaphore(0), threading.Event(), []

    def task(i):
        started.release()
        assert release.wait(30)
        done.append(i)

    futures = [queue.submit(lambda i=i: task(i)) for i in range(5)]
    for _ in range(2):
        assert started.acquire(timeout=30)
    assert not started.acquire(timeout=0.05) and futures[4].cancel() and not futures[0].cancel()
    release.set()
    for future in futures[:4]:
        future.result(30)
    assert sorted(done) == [0, 1, 2, 3]
    queue.submit(lambda: done.append(9)).result(30)  # by a new thread
    assert done[-1] == 9 and queue.most == 2


def test_what_has_not_begun_is_left_when_the_program_ends(monkeypatch):
    queue = Background(1)
    monkeypatch.setattr(threading, "main_thread", lambda: threading.Thread())  # which does not run
    future = queue.submit(lambda: None)
    while queue.threads:
        pass
    assert not future.done()
