"""What only real GPUs show: streams, several devices, memory."""

import numpy as np
import pytest

import gpuops
from tests.conftest import gpu_found

if not gpu_found():
    pytest.skip("CuPy finds no GPU", allow_module_level=True)

import cupy as cp

two_gpus = pytest.mark.skipif(cp.cuda.runtime.getDeviceCount() < 2, reason="needs two GPUs")


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


def positive(x):
    """A mask on the device of x: CuPy compares on the current one."""
    with x.device:
        return x > 0


def logits():
    return cp.asarray(np.random.default_rng(0).standard_normal((300, 700), np.float32))


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
    free = cp.cuda.runtime.memGetInfo()[0]
    if free < 12 * 2**30:
        pytest.skip(f"needs 12 GiB of GPU memory, {free / 2**30:.0f} are free")
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
