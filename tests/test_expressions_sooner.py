"""While the kernels of a new expression compile, its first call goes by kernels that are there, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import gpuops
from tests import emulated
from tests.compare import assert_bits
from tests.compiling import Compiling
from tests.layouts import sample


@pytest.fixture
def compiling(emulation, monkeypatch):
    return Compiling(lambda kernel: kernel.expression is None, monkeypatch)


def sums(x, axis):
    """The sums of two expressions, which are stacked."""
    return gpuops.sum(np.stack([x, x * x]), axis=axis + 1)


@pytest.mark.parametrize("function", [gpuops.sum, gpuops.softmax, gpuops.cumsum, sums], ids=lambda each: each.__name__)
def test_calls_do_not_wait_for_kernels_of_expressions(compiling, function):
    x, y = (emulated.DEVICE.from_host(sample((40, 50), seed=seed)) for seed in (0, 1))
    results = []
    for call in range(5):
        compiling.launched.clear()
        compiling.ready = call > 2
        results.append(np.asarray(function((gpuops.lazy(x) - y) * 2, axis=1)))
        names = compiling.names()
        assert len(names) == 1 if call > 1 else names[0] == "evaluate" and len(names) > 1  # the third one waits
    for result in results[1:]:
        assert_bits(result, results[0])
    assert [kernel.name for kernel in compiling.begun] == names


def test_out_and_operands_that_overlap_it_are_right_meanwhile(compiling):
    x = emulated.DEVICE.from_host(sample((40, 50)))
    expected = np.asarray(gpuops.cumsum(emulated.DEVICE.from_host(np.asarray(x * 2)), axis=1))
    gpuops.cumsum(gpuops.lazy(x) * 2, axis=1, out=x)
    assert_bits(np.asarray(x), expected)
    assert compiling.begun


def test_kernels_may_be_there_before_the_call_that_began_them_is_made(compiling):
    def begin(kernels):
        compiling.ready = True
        return True

    emulated.DEVICE.begin = begin  # (the fixture restores it)
    x = emulated.DEVICE.from_host(sample((40, 50)))
    expected = np.asarray(gpuops.sum(emulated.DEVICE.from_host(np.asarray(x * 2)), axis=1))
    compiling.launched.clear()
    for _ in range(3):
        assert_bits(np.asarray(gpuops.sum(gpuops.lazy(x) * 2, axis=1)), expected)
    names = compiling.names()
    assert names[0] == "evaluate" and names.count("evaluate") == 1
