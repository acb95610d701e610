"""What only real GPUs show: streams, several devices, memory."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import gpuops

if gpuops.info()["path"] == "cpu":
    pytest.skip(gpuops.info()["reason"], allow_module_level=True)

import cupy as cp
from cupyx.profiler import benchmark

two_gpus = pytest.mark.skipif(cp.cuda.runtime.getDeviceCount() < 2, reason="needs two GPUs")


def needs_memory(gib):
    """Skip a test of large arrays on a GPU that has no room for them, even when CuPy keeps nothing back."""
    cp.get_default_memory_pool().free_all_blocks()
    free = cp.cuda.runtime.memGetInfo()[0] / 2**30
    if free < gib:
        pytest.skip(f"needs {gib} GiB of GPU memory, {free:.0f} are free")


def calls(x):
    """One call of each kind of plan, with the result that NumPy gives."""
    host = cp.asnumpy(x)
    yield gpuops.sum(x, axis=0), host.sum(0)
    yield gpuops.sum(x), host.sum()
    yield gpuops.max(x, axis=1, strategy="cross", finish="host"), host.max(1)
    yield gpuops.where(positive(x), x, 0), np.where(host > 0, host, 0)
    yield gpuops.expand(x[:1], x.shape, strategy="elementwise"), np.broadcast_to(host[:1], x.shape)
    for strategy in gpuops.strategies("softmax"):
        yield gpuops.softmax(x, axis=1, strategy=strategy), gpuops.softmax(host, axis=1)
    for strategy in gpuops.strategies("matmul"):
        yield gpuops.matmul(x, x.T, alpha=2**-9, strategy=strategy), gpuops.matmul(host, host.T, alpha=2**-9)
    yield gpuops.matmul(x, x.T, alpha=2**-9, beta=1, c=x[:, :1]), gpuops.matmul(host, host.T) * 2**-9 + host[:, :1]


def positive(x):
    """A mask on the device of x: CuPy compares on the current one."""
    with x.device:
        return x > 0


def logits():
    return cp.asarray(np.random.default_rng(0).standard_normal((300, 700), np.float32))


@pytest.mark.parametrize("op", ["sum", "max", "mean", "softmax", "logsumexp", "expand", "where", "matmul", "dot"])
def test_cupys_profiler_takes_every_op(op):
    x = cp.ones((64, 64), np.float32)
    args = {"expand": (x[:1], (64, 64)), "where": (x > 0, x, 0), "matmul": (x, x), "dot": (x[0], x[0])}.get(op, (x,))
    times = benchmark(getattr(gpuops, op), args, n_repeat=3, n_warmup=1)
    assert times.gpu_times.shape == (1, 3) and (times.gpu_times > 0).all()


def test_work_goes_on_the_current_stream():
    x = logits()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        y = cp.zeros_like(x)
        for _ in range(50):  # keeps the stream busy: on another one, the call would see zeros
            y += 1e-3
        cp.copyto(y, x)
        got = gpuops.softmax(y, axis=1)
    stream.synchronize()
    np.testing.assert_allclose(cp.asnumpy(got), gpuops.softmax(cp.asnumpy(x), axis=1), rtol=1e-5)


def gram(x, out=None):
    """The products of all rows with all rows."""
    return gpuops.matmul(x, x.swapaxes(-1, -2), out=out)


#: Calls in which several blocks share a result or a row, each with the shape of its input.
SHARED = {
    "sum": (gpuops.sum, (2**22,)),
    "max": (partial(gpuops.max, axis=1), (3, 2**20)),
    "mean": (partial(gpuops.mean, axis=0), (2**18, 16)),
    "all": (partial(gpuops.all, axis=0), (2**16, 64)),
    "logsumexp": (partial(gpuops.logsumexp, axis=1), (3, 2**20)),
    # On an H200: a cluster of blocks to a row, or to a tile of columns; the whole grid to a row, or a part of it.
    "softmax of rows": (partial(gpuops.softmax, axis=1), (40, 2**16)),
    "softmax of columns": (partial(gpuops.softmax, axis=0), (2**14, 64)),
    "softmax of a vector": (gpuops.softmax, (2**20,)),
    "log_softmax of long rows": (partial(gpuops.log_softmax, axis=1), (3, 2**20)),
    "product of long rows": (gram, (100, 2**15)),
    "product of a batch": (gram, (2, 64, 2**14)),
    "large product": (gram, (2048, 1024)),  # a block to a tile, filled while it computes
}


def operand(shape, seed=0):
    return cp.asarray(np.random.default_rng(seed).standard_normal(shape, np.float32))


def made(name):
    """A shared call, an operand, and their result: compiled, and the pool has memory for another."""
    call, shape = SHARED[name]
    x = operand(shape)
    expected = call(x)
    cp.cuda.Device().synchronize()
    return call, x, expected


def differ(a, b):
    """How many bytes of two arrays differ: a number on the device, so that no one waits for it."""
    return cp.count_nonzero(a.reshape(-1).view(np.uint8) != b.reshape(-1).view(np.uint8))


@pytest.mark.parametrize("name", SHARED)
def test_a_hundred_runs_on_several_streams_give_the_same_bits(name):
    call, x, expected = made(name)
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
    counts = []
    for _ in range(100):
        for stream in streams:
            with stream:
                counts.append(differ(call(x), expected))
    cp.cuda.Device().synchronize()
    assert sum(count.item() for count in counts) == 0


@pytest.mark.parametrize("name", SHARED)
def test_a_new_thread_can_begin_with_a_call(name):
    call, x, expected = made(name)  # nothing else in the thread asks for a context
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit(call, x).result()
    assert differ(got, expected).item() == 0


@pytest.mark.parametrize("name", SHARED)
def test_threads_on_one_stream_and_on_their_own_do_not_meet(name):
    call, x, expected = made(name)

    def work(stream):
        with stream:
            counts = [differ(call(x), expected) for _ in range(50)]
            return sum(count.item() for count in counts)

    common = cp.cuda.Stream(non_blocking=True)
    streams = [common, common, cp.cuda.Stream.ptds, cp.cuda.Stream.ptds, cp.cuda.Stream(non_blocking=True)]
    with ThreadPoolExecutor(len(streams)) as pool:
        assert sum(pool.map(work, streams)) == 0


@pytest.mark.parametrize("name", SHARED)
def test_a_captured_call_can_run_beside_others(name):
    call, shape = SHARED[name]
    x, other = operand(shape), operand(shape, 1)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        out = cp.empty_like(call(x))  # compiled, and the pool has memory for another result
        call(x, out=out)
        stream.begin_capture()
        call(x, out=out)
        graph = stream.end_capture()
    beside = cp.cuda.Stream(non_blocking=True)
    expected = call(other)
    cp.cuda.Device().synchronize()
    for turn in range(20):
        data = np.random.default_rng(turn).standard_normal(shape, np.float32)
        with stream:
            x.set(data, stream)
            call(other)
        with beside:
            concurrent = call(other)
        graph.launch(stream)
        with stream:
            assert differ(out, call(x)).item() == 0, turn
        with beside:
            assert differ(concurrent, expected).item() == 0, turn


@pytest.mark.parametrize("name", SHARED)
def test_a_call_sees_what_the_kernel_before_it_wrote(name):
    call, shape = SHARED[name]
    source = operand(shape)
    weights = operand(call(source).size, 1).astype(call(source).dtype)

    def pipeline(wait):
        x, ends = cp.zeros_like(source), []
        for turn in range(60):
            cp.multiply(source, turn % 7 - 3, out=x)
            wait()
            result = call(x)  # it may be made ready while x is still being written
            wait()
            ends.append(gpuops.dot(result.reshape(-1), weights))  # as may this one while the result is
            wait()
        return cp.stack(ends)

    assert differ(pipeline(lambda: None), pipeline(cp.cuda.Device().synchronize)).item() == 0


def test_a_reduction_sees_what_the_kernel_before_it_wrote():
    x = cp.zeros(2**22, np.float32)
    for value in range(1, 200):  # each sum may be made ready while the fill before it still runs
        x.fill(value)
        assert gpuops.sum(x).item() == value * 2**22
        total = gpuops.sum(x[: 2**12])
        x[: 2**12] = total / 2**12  # and this one's result is read by the next kernel
        assert gpuops.max(x).item() == value


def test_sums_of_small_integers_do_not_overflow_on_the_way():
    needs_memory(8)
    length = 2**23  # of rows that a block each adds up: 4096 packs and more of the greatest numbers for a thread
    x = cp.full((300, length), 65535, np.uint16)
    assert (gpuops.sum(x, axis=1) == 65535 * length).all()
    assert (gpuops.sum(x.reshape(length, 300), axis=0) == 65535 * length).all()
    assert (gpuops.sum(cp.broadcast_to(x[0, :16], (2**22, 16)), axis=0) == 65535 * 2**22).all()


def test_uniform_numbers_are_added_within_units_in_the_last_place():
    needs_memory(6)
    x = cp.random.default_rng(0).random(2**28, np.float32)
    exact = cp.sum(x, dtype=np.float64).item()
    for shape, axis in (((2**28,), None), ((2**14, 2**14), 1), ((2**24, 16), 0), ((2**12, 2**16), 0)):
        got = cp.asnumpy(gpuops.sum(x.reshape(shape), axis=axis))
        right = cp.asnumpy(cp.sum(x.reshape(shape), axis=axis, dtype=np.float64))
        units = 2 if right.size == 1 else 4  # of many sums, the worst
        assert (abs(got - right) <= units * np.spacing(right.astype(np.float32))).all()
    assert abs(gpuops.dot(x, cp.ones_like(x)).item() - exact) <= 2 * np.spacing(np.float32(exact))


@two_gpus
def test_arrays_are_computed_on_their_own_device():
    with cp.cuda.Device(1):
        x = logits()
    with cp.cuda.Device(0):
        for got, expected in calls(x):
            assert got.device.id == 1
            np.testing.assert_allclose(cp.asnumpy(got), expected, rtol=1e-4, atol=1e-5)
        out = gpuops.softmax(x, axis=1, out=x)
        assert out is x
        assert cp.cuda.Device().id == 0


@two_gpus
@pytest.mark.parametrize("op", ["where", "sum out", "softmax where"])
def test_arrays_of_two_devices_do_not_mix(op):
    x = logits()
    with cp.cuda.Device(1):
        y = cp.zeros_like(x)
    run = {
        "where": lambda: gpuops.where(positive(x), x, y),
        "sum out": lambda: gpuops.sum(x, axis=(), out=y),
        "softmax where": lambda: gpuops.softmax(x, where=positive(y)),
    }[op]
    with pytest.raises(ValueError, match="is on cuda:0, .* is on cuda:1"):
        run()


def test_kernels_that_cannot_use_32_bit_indices():
    needs_memory(12)
    n = 2**31 + 12345
    x = cp.zeros(n, np.int8)
    x[[0, 5, 2**31 - 1, 2**31, n - 1]] = cp.asarray([1, 2, 3, 4, 100], np.int8)
    assert gpuops.sum(x).item() == 110
    assert gpuops.max(x, strategy="shuffle").item() == 100
    y = gpuops.where(x, x, 1)
    assert y[n - 1].item() == 100 and gpuops.sum(y).item() == 110 + n - 5
    tall = x[: n - n % 5].reshape(-1, 5)
    assert gpuops.sum(tall, axis=0)[0].item() == cp.sum(tall[:, 0], dtype=np.int64).item()
    assert gpuops.max(tall, axis=1)[-1].item() == cp.max(tall[-1]).item()
    del y, tall
    row = gpuops.expand(cp.arange(3, dtype=np.int8), (2**30, 3))
    assert row[-1].tolist() == [0, 1, 2] and row[2**29].tolist() == [0, 1, 2]
