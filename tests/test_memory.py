"""Unusual memory: strides that are no multiples of the item size, misaligned addresses, bools other than 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.call import dispatch as call
from gpuops.device.execute import prepare
from gpuops.plan.work import Launch, Operand
from tests.compare import assert_bits, assert_values
from tests.layouts import BFLOAT16

#: Views of float memory, as complex numbers whose strides are 3, 5 and 7 reals.
DTYPES = {"c16": "f8", "c8": "f4"}


def misaligned(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Complex numbers whose strides are odd multiples of the real part's size, along every dim."""
    real = np.dtype(DTYPES[dtype])
    memory = np.random.default_rng(seed).integers(-9, 9, 4000).astype(real)
    strides, step = [], 3
    for n in reversed(shape):
        strides.insert(0, step * real.itemsize)
        step = step * n + 2 | 1
    return np.ndarray(shape, dtype, memory, 0, strides)


#: Calls on two arrays of shape (5, 6).
CALLS = {
    "sum": lambda x, y: gpuops.sum(x, 1),
    "sum of all": lambda x, y: gpuops.sum(x),
    "max": lambda x, y: gpuops.max(x, 0),
    "mean": lambda x, y: gpuops.mean(x[:4], 0),  # a power of two: nothing is rounded
    "any": lambda x, y: gpuops.any(x, 1),
    "expand": lambda x, y: gpuops.expand(x, (2, 5, 6)),
    "expand by single elements": lambda x, y: gpuops.expand(x, (2, 5, 6), strategy="elementwise"),
    "where": lambda x, y: gpuops.where(x, y, x),
    "dot": lambda x, y: gpuops.dot(x[0], y[1]),
    "dot of a matrix": lambda x, y: gpuops.dot(x, y[1]),
    "matmul": lambda x, y: gpuops.matmul(x, y.T),
    "matmul by cuBLAS": lambda x, y: gpuops.matmul(x, y.T, strategy="cublas"),
    "addend": lambda x, y: gpuops.matmul(x[:, :5], x, c=y),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_strides_that_are_not_multiples_of_the_item_size(backend, name, dtype):
    x, y = misaligned(dtype, (5, 6)), misaligned(dtype, (5, 6), 1)
    expected = CALLS[name](np.ascontiguousarray(x), np.ascontiguousarray(y))
    got = backend.numpy(CALLS[name](backend.array(x), backend.array(y)))
    assert got.dtype == np.asarray(expected).dtype
    assert_values(got, np.asarray(expected))


#: Calls whose results take several steps, on two arrays and a mask.
STEPS = {
    "an out that overlaps": lambda x, y, mask: gpuops.where(x[:, ::-1], y, x, out=x),
    "a product into its operand": lambda x, y, mask: gpuops.matmul(x[:, :5], y, out=x),
    "weights": lambda x, y, mask: gpuops.logsumexp(x.real, 1, y.real),
    "weights and a mask": lambda x, y, mask: gpuops.logsumexp(x.real, 1, y.real, where=mask),
    "weights and signs": lambda x, y, mask: gpuops.logsumexp(x.real, 1, y.real, return_sign=True),
}


@pytest.mark.parametrize("name", [*CALLS, *STEPS])
def test_launches_use_only_operands_results_and_workspace(device, monkeypatch, name):
    """Launches use no other arrays: those could be freed before a graph replays the launches."""
    arrays = [
        *(device.array(misaligned("c16", (5, 6), seed)) for seed in range(2)),
        device.array(np.eye(5, 6, dtype=bool)),
    ]
    described = []
    monkeypatch.setattr(call, "prepare", lambda work, *rest: described.append((work, *rest)) or prepare(work, *rest))
    (CALLS | STEPS)[name](*arrays[: 2 if name in CALLS else 3])
    for work, _, names, *_ in described:
        known = {*names, *(spec.name for spec in work.results), *work.plan.own}
        launches = [step for step in work.plan.steps if isinstance(step, Launch)]
        assert known >= {arg.name for launch in launches for arg in launch.args if isinstance(arg, Operand)}
    assert described


def test_sum_of_a_column_of_a_complex_view(backend):
    z = np.arange(12, dtype="f8").reshape(4, 3)[:, :2].view("c16")[:, 0]
    assert backend.numpy(gpuops.sum(backend.array(z))) == 18 + 22j


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["expand", "where", "sum", "matmul", "add"])
def test_out_with_gaps_leaves_other_memory_unchanged(backend, op, dtype):
    """The memory between the elements of ``out`` is unchanged."""
    x, out = np.ascontiguousarray(misaligned(dtype, (5, 6))), misaligned(dtype, (5, 6), 2)
    a, b = x[:, :3], x[:3]
    function = {
        "expand": lambda x, a, b, out: gpuops.expand(x, (5, 6), out=out),
        "where": lambda x, a, b, out: gpuops.where(x, x, 0, out=out),
        "sum": lambda x, a, b, out: gpuops.sum(x[None], 0, out=out),
        "matmul": lambda x, a, b, out: gpuops.matmul(a, b, out=out),
        "add": lambda x, a, b, out: gpuops.matmul(a, b, c=out, out=out),
    }[op]
    before = out.base.copy()
    expected = function(x, a, b, out.copy())
    memory, there, *operands = backend.arrays(out.base, out, x, a, b)
    assert function(*operands, there) is there
    out[...] = expected
    assert not (out.base == before).all()
    assert_bits(backend.fetch(memory), out.base)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "c16", "c8", BFLOAT16], ids=str)
@pytest.mark.parametrize("shift", [1, 2, 4])
def test_misaligned_elements(device, dtype, shift):
    memory = np.zeros(2000, "u1")
    x = np.ndarray((5, 7), dtype, memory, shift)
    x[...] = np.random.default_rng(0).integers(-9, 9, (5, 7))
    there = device.array(x)
    assert_values(device.numpy(gpuops.sum(there, 0)), np.asarray(gpuops.sum(x.copy(), 0)))
    assert_values(device.numpy(gpuops.where(there, there, 1)), np.where(x, x, x.dtype.type(1)))
    if x.dtype.kind != "c":
        got, expected = device.numpy(gpuops.softmax(there, 1)), gpuops.softmax(x.copy(), 1)
        np.testing.assert_allclose(got.astype("f8"), expected.astype("f8"), rtol=1e-2)
    there, out = device.arrays(memory, x)
    gpuops.expand(device.array(x + x.dtype.type(1)), x.shape, out=out)
    x += x.dtype.type(1)
    assert_bits(device.fetch(there), memory)


def test_copies_of_unaligned_broadcast_arrays_keep_stride_zero(device):
    x = np.broadcast_to(misaligned("c16", (3, 1)), (3, 2**20))
    assert device.numpy(gpuops.sum(device.array(x), (0, 1))) == np.sum(x[:, 0]) * 2**20


# -------------------------------------------------------------------------------------------------------------- bools

#: Bool bytes as buffers of other libraries may hold them.
BYTES = np.frombuffer(bytes([0xFF, 2, 0, 1, 0x80, 0, 4, 3] * 40), bool)
#: Calls on an array of bools b and an array of small integers x.
OF_BOOLS = {
    "sum": lambda b, x: gpuops.sum(b, -1),
    "sum of few": lambda b, x: gpuops.sum(b, -1, dtype=np.int16),
    "sum of floats": lambda b, x: gpuops.sum(b, -1, dtype=np.float32),
    "mean": lambda b, x: gpuops.mean(b, -1),
    "max": lambda b, x: gpuops.max(b, -1),
    "min": lambda b, x: gpuops.min(b, -1),
    "prod": lambda b, x: gpuops.prod(b, -1),
    "any": lambda b, x: gpuops.any(b, -1),
    "all": lambda b, x: gpuops.all(b, -1),
    "softmax": lambda b, x: gpuops.softmax(b, -1),
    "logsumexp": lambda b, x: gpuops.logsumexp(b, -1),
    "mask": lambda b, x: gpuops.sum(x, -1, where=b),
    "mask of a mean": lambda b, x: gpuops.mean(x, -1, where=b),
    "mask of a softmax": lambda b, x: gpuops.softmax(x, -1, where=b),
    "mask of halves": lambda b, x: gpuops.softmax(x, -1, dtype=np.float16, where=b),
    "condition": lambda b, x: gpuops.where(b, x, 7),
    "numbers": lambda b, x: gpuops.where(x, b, 7),
    "dot": lambda b, x: gpuops.dot(b.reshape(-1), x.reshape(-1)),
    "matmul": lambda b, x: gpuops.matmul(b, x[0]),
    "matmul of bools": lambda b, x: gpuops.matmul(b, b.T),
    "weights": lambda b, x: gpuops.logsumexp(x, -1, b=b),
}
SHAPES = [(320,), (1, 320), (40, 8), (8, 40), (106, 3)]


@pytest.mark.parametrize("name", OF_BOOLS)
def test_nonzero_bool_bytes_are_true(backend, name):
    for shape in SHAPES:
        for order in "CF":
            b = np.ndarray(shape, bool, BYTES.tobytes(), 0, None, order)
            if b.ndim == 1 and name.startswith("matmul"):
                continue
            x = np.arange(b.size, dtype="f8").reshape(shape) % 3
            there = backend.array(x)
            got = backend.numpy(OF_BOOLS[name](backend.array(b), there))
            clean = backend.numpy(OF_BOOLS[name](backend.array(b.view("u1") != 0), there))
            assert_bits(got.view("u1") != 0 if got.dtype == bool else got, clean)


@pytest.mark.parametrize("strategy", gpuops.strategies("sum"))
@pytest.mark.parametrize("op", ["sum", "all", "min"])
def test_nonzero_bool_bytes_are_true_by_every_strategy(device, op, strategy):
    for shape, axis in (((8, 40), 1), ((8, 40), 0), ((320,), 0)):
        b: Any = BYTES.reshape(shape)
        got = device.numpy(getattr(gpuops, op)(device.array(b), axis, strategy=strategy))
        assert_values(got, getattr(np, op)(b.view("u1") != 0, axis))
