"""Tests that need real GPUs: streams, several devices, memory."""

import contextlib
import ctypes
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gpuops
from tests.conftest import NO_GPU

if NO_GPU:
    pytest.skip(NO_GPU, allow_module_level=True)

import cupy as cp
from cupyx.profiler import benchmark

from gpuops.device import cuda, cuda_driver, cuda_memory, disk_cache

ROOT = Path(__file__).resolve().parent.parent

two_gpus = pytest.mark.skipif(cp.cuda.runtime.getDeviceCount() < 2, reason="needs two GPUs")


def needs_memory(gib):
    """Skip the test if the GPU has too little free memory, after freeing CuPy's pool."""
    cp.get_default_memory_pool().free_all_blocks()
    free = cp.cuda.runtime.memGetInfo()[0] / 2**30
    if free < gib:
        pytest.skip(f"needs {gib} GiB of GPU memory, {free:.0f} are free")


def calls(x):
    """One call of each kind of plan, with NumPy's result."""
    host = cp.asnumpy(x)
    yield gpuops.sum(x, axis=0), host.sum(0)
    yield gpuops.sum(x), host.sum()
    yield gpuops.max(x, axis=1, strategy="cross_host"), host.max(1)
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
def test_cupy_profiler_times_every_op(op):
    x = cp.ones((64, 64), np.float32)
    args = {"expand": (x[:1], (64, 64)), "where": (x > 0, x, 0), "matmul": (x, x), "dot": (x[0], x[0])}.get(op, (x,))
    times = benchmark(getattr(gpuops, op), args, n_repeat=3, n_warmup=1)
    assert times.gpu_times.shape == (1, 3) and (times.gpu_times > 0).all()


def test_calls_run_on_the_current_stream():
    x = logits()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        y = cp.zeros_like(x)
        for _ in range(50):  # keeps the stream busy: a call on another stream would see zeros
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
    # On an H200: a cluster of blocks per row or per tile of columns; the whole grid per row, or a part of it.
    "softmax of rows": (partial(gpuops.softmax, axis=1), (40, 2**16)),
    "softmax of columns": (partial(gpuops.softmax, axis=0), (2**14, 64)),
    "softmax of a vector": (gpuops.softmax, (2**20,)),
    "log_softmax of long rows": (partial(gpuops.log_softmax, axis=1), (3, 2**20)),
    "product of long rows": (gram, (100, 2**15)),
    "product of a batch": (gram, (2, 64, 2**14)),
    "large product": (gram, (2048, 1024)),  # a block per tile, loaded while it computes
}


def operand(shape, seed=0):
    return cp.asarray(np.random.default_rng(seed).standard_normal(shape, np.float32))


def warmed_up(name):
    """A call, its operand and result, after compilation; the pool has memory for another result."""
    call, shape = SHARED[name]
    x = operand(shape)
    expected = call(x)
    cp.cuda.Device().synchronize()
    return call, x, expected


def differing_bytes(a, b):
    """How many bytes of two arrays differ, as a device scalar: nothing synchronises."""
    return cp.count_nonzero(a.reshape(-1).view(np.uint8) != b.reshape(-1).view(np.uint8))


@pytest.mark.parametrize("name", SHARED)
def test_results_are_bitwise_identical_across_streams(name):
    call, x, expected = warmed_up(name)
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
    counts = []
    for _ in range(100):
        for stream in streams:
            with stream:
                counts.append(differing_bytes(call(x), expected))
    cp.cuda.Device().synchronize()
    assert sum(count.item() for count in counts) == 0


@pytest.mark.parametrize("name", SHARED)
def test_a_call_may_be_the_first_cuda_use_of_a_thread(name):
    call, x, expected = warmed_up(name)  # nothing else in the new thread creates a context
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit(call, x).result()
    assert differing_bytes(got, expected).item() == 0


@pytest.mark.parametrize("name", SHARED)
def test_threads_sharing_a_stream_do_not_interfere(name):
    call, x, expected = warmed_up(name)

    def work(stream):
        with stream:
            counts = [differing_bytes(call(x), expected) for _ in range(50)]
            return sum(count.item() for count in counts)

    common = cp.cuda.Stream(non_blocking=True)
    streams = [common, common, cp.cuda.Stream.ptds, cp.cuda.Stream.ptds, cp.cuda.Stream(non_blocking=True)]
    with ThreadPoolExecutor(len(streams)) as pool:
        assert sum(pool.map(work, streams)) == 0


@pytest.mark.parametrize("name", SHARED)
def test_captured_calls_run_concurrently_with_others(name):
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
            assert differing_bytes(out, call(x)).item() == 0, turn
        with beside:
            assert differing_bytes(concurrent, expected).item() == 0, turn


@pytest.mark.parametrize("name", SHARED)
def test_calls_see_writes_of_the_preceding_kernel(name):
    call, shape = SHARED[name]
    source = operand(shape)
    weights = operand(call(source).size, 1).astype(call(source).dtype)

    def pipeline(wait):
        x, ends = cp.zeros_like(source), []
        for turn in range(60):
            cp.multiply(source, turn % 7 - 3, out=x)
            wait()
            result = call(x)  # may launch while x is still being written
            wait()
            ends.append(gpuops.dot(result.reshape(-1), weights))  # may launch while the result is still being written
            wait()
        return cp.stack(ends)

    assert differing_bytes(pipeline(lambda: None), pipeline(cp.cuda.Device().synchronize)).item() == 0


def test_reductions_see_writes_of_the_preceding_kernel():
    x = cp.zeros(2**22, np.float32)
    for value in range(1, 200):  # each sum may launch while the fill before it still runs
        x.fill(value)
        assert gpuops.sum(x).item() == value * 2**22
        total = gpuops.sum(x[: 2**12])
        x[: 2**12] = total / 2**12  # and this one's result is read by the next kernel
        assert gpuops.max(x).item() == value


def test_small_integer_sums_do_not_overflow_their_partial_sums():
    needs_memory(8)
    length = 2**23  # one block per row: each thread adds at least 4096 packs of the largest value
    x = cp.full((300, length), 65535, np.uint16)
    assert (gpuops.sum(x, axis=1) == 65535 * length).all()
    assert (gpuops.sum(x.reshape(length, 300), axis=0) == 65535 * length).all()
    assert (gpuops.sum(cp.broadcast_to(x[0, :16], (2**22, 16)), axis=0) == 65535 * 2**22).all()


def test_float32_sums_are_accurate_to_a_few_ulps():
    needs_memory(6)
    x = cp.random.default_rng(0).random(2**28, np.float32)
    exact = cp.sum(x, dtype=np.float64).item()
    for shape, axis in (((2**28,), None), ((2**14, 2**14), 1), ((2**24, 16), 0), ((2**12, 2**16), 0)):
        got = cp.asnumpy(gpuops.sum(x.reshape(shape), axis=axis))
        right = cp.asnumpy(cp.sum(x.reshape(shape), axis=axis, dtype=np.float64))
        units = 2 if right.size == 1 else 4  # the worst of many sums
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
def test_arrays_on_two_devices_raise(op):
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


def test_arrays_of_more_than_2_to_the_31_elements():
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


# -------------------------------------------------------------------------------- lifetimes of streams and graphs


class RawStream:
    """A stream of the CUDA runtime, destroyed explicitly, as other libraries do."""

    def __init__(self):
        self.ptr = cp.cuda.runtime.streamCreateWithFlags(cp.cuda.runtime.streamNonBlocking)

    def __cuda_stream__(self):
        return 0, self.ptr

    @contextlib.contextmanager
    def current(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            stream = cp.cuda.ExternalStream(self.ptr, cp.cuda.Device().id)
        with stream:
            yield

    def destroy(self):
        cp.cuda.runtime.streamDestroy(self.ptr)


def busy(x, y):
    """Some milliseconds of work on the current stream."""
    for _ in range(40):
        cp.copyto(y, x)


def test_a_stream_destroyed_while_busy_shares_no_scratch_with_the_next():
    x = cp.asarray(np.random.default_rng(0).integers(0, 9, 2**22).astype(np.float64))
    expected, ballast = float(cp.sum(x)), (cp.zeros(2**26, np.uint8), cp.zeros(2**26, np.uint8))
    gpuops.sum(x)
    cp.cuda.Device().synchronize()
    reused = 0
    for _ in range(20):
        old, outs = RawStream(), [cp.empty((), np.float64) for _ in range(8)]
        with old.current():
            busy(*ballast)
            for out in outs[:4]:
                gpuops.sum(x, out=out)
        old.destroy()
        new = RawStream()
        reused += new.ptr == old.ptr
        with new.current():
            for out in outs[4:]:
                gpuops.sum(x, out=out)
        cp.cuda.Device().synchronize()
        new.destroy()
        assert [float(out) for out in outs] == [expected] * 8
    print(f"{reused} of 20 new streams had the address of the old one")


def scratch_of(device):
    """How many scratch buffers there are, in use or retired."""
    retired = device._retired
    return len(device._local.scratches) + sum(len(kept) for _, kept in retired.known) + len(retired.unknown)


SPIN = r"""
extern "C" __global__ void spin(const volatile int* stop, long long most) {
  for (long long begin = clock64(); !*stop && clock64() - begin < most;);
}
"""


def test_calls_on_streams_that_come_and_go_do_not_wait():
    """One kernel runs until all calls have been made; it ends by itself, should one of them wait for it."""
    x, spin = cp.ones(2**22, np.float32), cp.RawKernel(SPIN, "spin")
    pinned = cp.cuda.alloc_pinned_memory(4)
    stop = np.frombuffer(pinned, np.int32, 1)
    stop[0] = 1
    spin((1,), (1,), (np.uint64(pinned.ptr), 0))  # loads it
    gpuops.sum(x)
    cp.cuda.Device().synchronize()
    outs, streams = cp.zeros(4 * cuda_memory.STREAMS, np.float32), []
    spinning, over = RawStream(), cp.cuda.Event()
    stop[0] = 0
    with spinning.current():
        spin((1,), (1,), (np.uint64(pinned.ptr), 2**34))
        over.record()
    try:
        for i in range(outs.size):
            stream = RawStream()
            with stream.current():
                gpuops.sum(x, out=outs[i, ...])
            streams.append(stream)
            if i % 3 or len(streams) > 16:  # CUDA itself waits before it makes very many
                streams.pop(0 if i % 2 else -1).destroy()
            assert not over.done, f"call {i} has waited"
    finally:
        stop[0] = 1
    cp.cuda.Device().synchronize()
    assert (cp.asnumpy(outs) == 2**22).all()
    for stream in (*streams, spinning):
        stream.destroy()


@pytest.mark.parametrize("make", [RawStream, partial(cp.cuda.Stream, non_blocking=True)], ids=["another's", "CuPy's"])
def test_scratch_of_destroyed_streams_is_freed(make):
    x = cp.ones(2**22, np.float32)
    device = cuda.device(cp.cuda.Device().id)
    for _ in range(200):
        streams = [make() for _ in range(3)]
        for stream in streams:
            with stream.current() if isinstance(stream, RawStream) else stream:
                assert float(gpuops.sum(x)) == 2**22
        for stream in streams:
            if isinstance(stream, RawStream):
                stream.destroy()
    cp.cuda.Device().synchronize()
    assert scratch_of(device) <= 2 * cuda_memory.STREAMS + cuda_memory.GONE


def test_arrays_of_destroyed_graphs_are_freed():
    x = cp.ones(2**22, np.float32)
    device = cuda.device(cp.cuda.Device().id)
    stream = cp.cuda.Stream(non_blocking=True)
    gpuops.sum(x), gpuops.softmax(x, strategy="two_pass")
    most = 0
    for _ in range(20):
        with stream:
            stream.begin_capture()
            total = gpuops.sum(x)
            gpuops.softmax(x, strategy="two_pass")
            graph = stream.end_capture()
            graph.launch()
        stream.synchronize()
        assert float(total) == 2**22
        most = max(most, len(device._graphs.captured))
        del graph
        time.sleep(0.02)  # the driver signals it from its own thread
    assert 1 <= most <= 3


IN_THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor
import cupy as cp
import gpuops

x, mask = cp.arange(6.0), cp.arange(6) % 2 == 0
barrier = threading.Barrier(32)

def call(i):
    barrier.wait()
    return gpuops.where(mask, x, 0).sum()

with ThreadPoolExecutor(32) as pool:
    assert {float(total) for total in pool.map(call, range(32))} == {6.0}
"""


def in_a_new_process(code, **environment):
    options = {"env": os.environ | environment, "cwd": ROOT, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", code], check=False, **options)
    assert done.returncode == 0, done.stderr


def test_first_calls_from_many_threads_at_once():
    for _ in range(3):
        in_a_new_process(IN_THREADS)


def test_damaged_cache_entries_are_recompiled(tmp_path):
    alone = "import cupy, gpuops; from gpuops.call import dispatch; dispatch.RELATED = ()"  # no other kernel beside it
    code = f"{alone}; assert float(gpuops.nanprod(cupy.ones(1000))) == 1"  # which no package has compiled
    in_a_new_process(code, GPUOPS_CACHE_DIR=str(tmp_path))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    no_code = b"not a module"
    no_module = disk_cache.digest_of(str(path), no_code) + no_code
    for damaged in (whole[: len(whole) // 2], bytes(len(whole)), no_module):
        path.write_bytes(damaged)
        in_a_new_process(code, GPUOPS_CACHE_DIR=str(tmp_path))
        assert path.read_bytes() == whole


# ------------------------------------------------------------------------------------------------ hardware limits


def test_long_broadcast_dims_fit_the_grid():
    got = gpuops.expand(cp.arange(4.0)[None], (200_000, 4), strategy="stepped")
    assert bool((got == cp.arange(4.0)).all())


def test_where_with_a_16_gib_result():
    needs_memory(20)
    condition = cp.arange(32) % 2 == 0
    x, y = cp.arange(32 * 32, dtype=np.complex128).reshape(32, 32), cp.arange(32, dtype=np.complex128)[:, None]
    shape = (2**20, 32, 32)
    got = gpuops.where(*(cp.broadcast_to(each, shape) for each in (condition, x, y)))
    expected = cp.where(condition, x, y)
    for at in (0, 1, 2**16, 2**19 + 3, 2**20 - 1):
        assert bool((got[at] == expected).all())
    del got
    cp.get_default_memory_pool().free_all_blocks()


def test_matmul_with_2_to_the_34_columns():
    needs_memory(40)
    n = 2**34
    b = cp.zeros((1, n), np.int8)
    b[0, 0], b[0, -1], b[0, 2**33 + 1] = 1, 2, 3
    a = cp.asarray([[5]], np.int8)
    got = gpuops.matmul(a, b, strategy="shared")
    assert [int(got[0, at]) for at in (0, n - 1, 2**33 + 1, 1, 2**32)] == [5, 10, 15, 0, 0]
    del got, b
    cp.get_default_memory_pool().free_all_blocks()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_matmul_of_layouts_that_cublas_may_reject(dtype):
    """Batch strides positive, negative, zero, padded and interleaved, of row- and column-major matrices."""
    random = np.random.default_rng(0)

    def operand(batch, rows, cols):
        memory = np.round(random.standard_normal(2 * 5 * 3 * 90 * 90) * 2).astype(dtype)
        order = random.permutation(3)
        shape = np.array([batch, rows, cols])
        strides, step = np.zeros(3, int), int(random.integers(1, 3)) if random.random() < 0.3 else 1
        for d in order[::-1]:
            strides[d] = step
            step = step * shape[d] + int(random.integers(0, 4))
        signs = random.choice([1, -1], 3)
        if random.random() < 0.2:
            strides[0] = 0
        start = sum((n - 1) * s for n, s, sign in zip(shape, strides, signs) if sign < 0)
        there = cp.asarray(memory)
        steps = tuple(strides * signs * there.itemsize)
        view = cp.ndarray(tuple(shape), dtype, there.data + start * there.itemsize, steps)
        return view, cp.asnumpy(view)

    for _ in range(150):
        batch, m, n, k = (int(x) for x in (random.integers(1, 5), *random.integers(1, 80, 3)))
        (a, host_a), (b, host_b) = operand(batch, m, k), operand(batch, k, n)
        expected = np.matmul(host_a.astype("c16"), host_b.astype("c16"))
        for strategy in ("cublas", None):
            got = cp.asnumpy(gpuops.matmul(a, b, strategy=strategy)).astype("c16")
            rtol, atol = (2e-2, 2) if dtype == "f2" else (1e-5, 1e-3)
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
    for shape, other in (((4, 5, 6), (7, 6, 8)), ((3, 4, 64, 32), (5, 32, 16)), ((2, 70, 8), (3, 4, 8, 66))):
        a, b = (cp.asarray(np.round(random.standard_normal(s) * 2).astype(dtype)) for s in (shape, other))
        expected = np.dot(cp.asnumpy(a).astype("c16"), cp.asnumpy(b).astype("c16"))
        out = cp.empty(expected.shape, dtype, order="F")
        for got in (gpuops.dot(a, b), gpuops.dot(a, b, out=out)):
            np.testing.assert_allclose(cp.asnumpy(got).astype("c16"), expected, rtol=1e-2)


def test_cublas_pointer_mode_is_restored():
    from cupy_backends.cuda.libs import cublas

    handle, x = cp.cuda.device.get_cublas_handle(), cp.ones((8, 8))
    for mode in (cublas.CUBLAS_POINTER_MODE_DEVICE, cublas.CUBLAS_POINTER_MODE_HOST):
        cublas.setPointerMode(handle, mode)
        gpuops.matmul(x, x, strategy="cublas")
        assert cublas.getPointerMode(handle) == mode


@pytest.fixture
def few_multiprocessors():
    """A stream of a green context with few multiprocessors."""
    driver, sm = cuda_driver.libcuda(), 1  # CU_DEV_RESOURCE_TYPE_SM
    if not hasattr(driver, "cuGreenCtxStreamCreate"):
        pytest.skip("needs a driver with streams of green contexts (cuGreenCtxStreamCreate)")
    cp.zeros(1)
    resources = [ctypes.create_string_buffer(512) for _ in range(3)]
    whole, some, rest = map(ctypes.byref, resources)
    count, description, context, stream = ctypes.c_uint(1), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    cuda_driver.check(driver.cuDeviceGetDevResource(cp.cuda.Device().id, whole, sm))
    cuda_driver.check(driver.cuDevSmResourceSplitByCount(some, ctypes.byref(count), whole, rest, 0, 8))
    cuda_driver.check(driver.cuDevResourceGenerateDesc(ctypes.byref(description), some, 1))
    cuda_driver.check(driver.cuGreenCtxCreate(ctypes.byref(context), description, cp.cuda.Device().id, 1))
    cuda_driver.check(driver.cuGreenCtxStreamCreate(ctypes.byref(stream), context, 1, 0))
    raw = object.__new__(RawStream)
    raw.ptr = stream.value
    yield raw
    cp.cuda.Device().synchronize()
    raw.destroy()
    driver.cuGreenCtxDestroy(context)


SHAPES = [((2**22,), 0), ((2, 2**20), 1), ((4, 100_000), 1), ((8192, 64), 0), ((3, 2**21), 1)]


@pytest.mark.parametrize("shape,axis", SHAPES)
def test_green_context_streams_with_few_multiprocessors(few_multiprocessors, shape, axis):
    x = cp.asarray(np.random.default_rng(0).standard_normal(shape, np.float32))
    for function in (gpuops.softmax, gpuops.log_softmax, gpuops.sum):
        expected = cp.asnumpy(function(x, axis))
        cp.cuda.Device().synchronize()
        with few_multiprocessors.current():
            got = [function(x, axis) for _ in range(3)]
        cp.cuda.Device().synchronize()
        for each in got:
            np.testing.assert_allclose(cp.asnumpy(each), expected, rtol=1e-4, atol=1e-6)
        assert cp.asnumpy(function(x, axis)).tobytes() == expected.tobytes()  # also after a refused launch
