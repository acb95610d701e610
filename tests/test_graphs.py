"""CUDA graphs, and the caller's allocator and streams: tests that need a real GPU."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import gpuops
from tests.conftest import NO_GPU

if NO_GPU:
    pytest.skip(NO_GPU, allow_module_level=True)

import cupy as cp

SHAPE = (96, 200)
#: Each op as a function of an array of SHAPE.
OPS = {
    **{name: partial(getattr(gpuops, name), axis=1) for name in ("sum", "prod", "max", "min", "mean")},
    "any": lambda x: gpuops.any(x, axis=0),
    "all": lambda x: gpuops.all(x, axis=0),
    "sum of all": gpuops.sum,
    "softmax": lambda x: gpuops.softmax(x, axis=1),
    "softmax of columns": lambda x: gpuops.softmax(x, axis=0),
    "softmax of all": lambda x: gpuops.softmax(x, axis=(0, 1)),
    "softmax in two passes": lambda x: gpuops.softmax(x, axis=1, strategy="two_pass"),
    "log_softmax": lambda x: gpuops.log_softmax(x, axis=1),
    "logsumexp": lambda x: gpuops.logsumexp(x, axis=1),
    "logsumexp with weights and a mask": lambda x: gpuops.logsumexp(x, 1, x, where=x.view(bool)[:, : SHAPE[1]]),
    "where": lambda x: gpuops.where(x, x, 1.5),
    "expand": lambda x: gpuops.expand(x, (3, *SHAPE)),
    "dot": lambda x: gpuops.dot(x, x[0]),
    "matmul": lambda x: gpuops.matmul(x, x.T, strategy="pipelined"),
    "matmul of integers": lambda x: gpuops.matmul(x.view(np.int32), x.T.view(np.int32)),
}
#: Ops whose blocks share results through scratch, which each graph has for itself.
SHARED = {
    "sum of a long vector": (gpuops.sum, (2**20,)),
    "softmax of a long vector": (gpuops.softmax, (2**20,)),
    "product of long rows": (lambda x: gpuops.matmul(x, x.T, strategy="pipelined"), (64, 2**14)),
}
CASES = {name: (op, SHAPE) for name, op in OPS.items()} | SHARED


def contents(shape, count=8):
    """Arrays of different contents; some elements are zero."""
    random = np.random.default_rng(0)
    return [cp.asarray(random.standard_normal(shape, np.float32) * (random.random(shape) < 0.9)) for _ in range(count)]


def captured(stream, op, *arrays):
    """A graph of a warmed-up call, and the result that it fills."""
    with stream:
        op(*arrays)
        stream.begin_capture()
        result = op(*arrays)
        return stream.end_capture(), result


def differing_bytes(result, expected):
    """How many bytes differ, as a device scalar: nothing synchronises."""
    return cp.count_nonzero(result.reshape(-1).view(np.uint8) != expected.reshape(-1).view(np.uint8))


@pytest.mark.parametrize("name", CASES)
def test_a_thousand_replays_with_changing_contents(name):
    op, shape = CASES[name]
    inputs = contents(shape)
    expected = [op(x) for x in inputs]
    x, stream = cp.empty(shape, np.float32), cp.cuda.Stream(non_blocking=True)
    x[...] = inputs[0]
    cp.cuda.Device().synchronize()
    graph, result = captured(stream, op, x)
    with stream:
        wrong = cp.zeros((), np.int64)
        for turn in range(1000):
            cp.copyto(x, inputs[turn % 8])
            graph.launch()
            wrong += differing_bytes(result, expected[turn % 8])
    stream.synchronize()
    assert wrong.item() == 0


def test_a_pipeline_of_calls_in_a_graph():
    def pipeline(x, mask):
        kept = gpuops.where(mask, x, 0)
        total = gpuops.sum(kept, axis=1, keepdims=True)
        filled = gpuops.where(mask, kept, total)
        return gpuops.softmax(filled, axis=1), (kept, total, filled)

    inputs = contents(SHAPE)
    mask = inputs[0] > 0
    expected = [pipeline(x, mask)[0] for x in inputs]
    x, stream = inputs[0].copy(), cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    graph, (result, _held) = captured(stream, pipeline, x, mask)
    with stream:
        others = [cp.full(SHAPE, n, np.float32) for n in range(20)]  # in memory that the graph must not write
        for turn in range(1000):
            cp.copyto(x, inputs[turn % 8])
            graph.launch()
            if turn % 100 == 0:
                assert differing_bytes(result, expected[turn % 8]).item() == 0
        assert all((other == n).all() for n, other in enumerate(others))


def test_graphs_with_two_streams_and_cooperative_kernels():
    """A kernel that waits for another stream, and one after a cooperative kernel, do not start too early."""

    def work(x, stream, beside):
        vector = gpuops.softmax(x, axis=None)  # a cooperative launch
        shifted = gpuops.where(vector, vector, 1)
        start, end = cp.cuda.Event(disable_timing=True), cp.cuda.Event(disable_timing=True)
        start.record(stream)
        beside.wait_event(start)
        with beside:
            doubled = gpuops.where(x, x, 2)
            end.record(beside)
        total = gpuops.sum(shifted)
        stream.wait_event(end)
        return gpuops.where(doubled, doubled, total), (vector, shifted, doubled, total)

    inputs = contents((2**21,), 4)
    stream, beside = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    expected, x = [], cp.empty_like(inputs[0])
    cp.cuda.Device().synchronize()
    with stream:
        for each in inputs:
            expected.append(work(each, stream, beside)[0])
            cp.cuda.Device().synchronize()
        graph, (result, _held) = captured(stream, work, x, stream, beside)
        wrong = cp.zeros((), np.int64)
        for turn in range(200):
            cp.copyto(x, inputs[turn % 4])
            graph.launch()
            wrong += differing_bytes(result, expected[turn % 4])
        assert wrong.item() == 0


def test_capturing_a_cublas_call_says_how_to_warm_up():
    a = contents((64, 64))[0].astype(np.float16)
    gpuops.matmul(a, a)
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        with pytest.raises(RuntimeError, match="is not loaded, .* make the same call once .* strategy 'warptile'"):
            gpuops.matmul(a, a)
        stream.end_capture()
        expected = gpuops.matmul(a, a, strategy="warptile")
        stream.begin_capture()
        result = gpuops.matmul(a, a)
        graph = stream.end_capture()
        graph.launch()
        assert differing_bytes(result, expected).item() == 0
    assert cp.allclose(gpuops.matmul(a, a), a @ a, atol=0.1)  # by cuBLAS again


@pytest.mark.parametrize("name", OPS)
def test_memory_comes_from_the_current_allocator(name):
    x = contents(SHAPE)[0]
    expected = OPS[name](x)
    pool, asynchronous, taken = cp.cuda.MemoryPool(), cp.cuda.MemoryAsyncPool(), []

    def anywhere(nbytes):  # not at a multiple of 16
        taken.append(nbytes)
        memory = pool.malloc(nbytes + 4)
        return cp.cuda.MemoryPointer(memory.mem, 4)

    for allocator in (pool.malloc, asynchronous.malloc, anywhere):
        with cp.cuda.using_allocator(allocator):
            for _ in range(3):
                result = OPS[name](x)
                if expected.dtype.kind == "f":
                    cp.testing.assert_allclose(result, expected, rtol=2e-5)
                else:
                    assert (result == expected).all()
    assert taken and pool.total_bytes() > 0


def test_concurrent_threads_and_streams():
    inputs = contents(SHAPE, 16)
    expected = {name: [op(x) for x in inputs] for name, op in OPS.items()}
    cp.cuda.Device().synchronize()

    def work(i):
        wrong = []
        for stream in (cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)):
            with stream:
                for _ in range(20):
                    wrong += [differing_bytes(op(inputs[i]), expected[name][i]) for name, op in OPS.items()]
            stream.synchronize()
        return sum(count.item() for count in wrong)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(16))) == 0


@pytest.mark.skipif(cp.cuda.runtime.getDeviceCount() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("name", OPS)
def test_cached_calls_on_a_device_that_is_not_current(name):
    here = contents(SHAPE)
    with cp.cuda.Device(1):
        there = contents(SHAPE)
    for x, y in zip(here, there):
        mine, other = OPS[name](x), OPS[name](y)
        assert (mine.device.id, other.device.id, cp.cuda.Device().id) == (0, 1, 0)
        assert cp.asnumpy(mine).tobytes() == cp.asnumpy(other).tobytes()


@pytest.mark.skipif(cp.cuda.runtime.getDeviceCount() < 2, reason="needs two GPUs")
def test_streams_of_another_device_raise():
    x = contents(SHAPE)[0]
    gpuops.sum(x, axis=1)
    with cp.cuda.Device(1):
        other = cp.cuda.Stream(non_blocking=True)
    with cp.cuda.ExternalStream(other.ptr), pytest.raises(RuntimeError, match="of another device"):
        gpuops.sum(x, axis=1)
