"""While the kernels of a new expression compile, its first call goes by kernels that are there, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import gpuops
from tests import emulated
from tests.compare import assert_bits
from tests.layouts import sample


class Compiling:
    """Which kernels a device has: those of arrays, and those that the test says are ready."""

    def __init__(self) -> None:
        self.begun, self.ready, self.launched = [], False, []

    def there(self, kernels):
        return self.ready or all(kernel.expression is None for kernel in kernels)

    def begin(self, kernels):
        new = [kernel for kernel in kernels if kernel not in self.begun]
        self.begun += new
        return bool(new)


@pytest.fixture
def compiling(monkeypatch):
    state, launch = Compiling(), emulated.EmulatedDevice.launch

    def launched(self, step, *more):
        state.launched.append(step.kernel)
        return launch(self, step, *more)

    monkeypatch.setattr(emulated.DEVICE, "there", state.there)
    monkeypatch.setattr(emulated.DEVICE, "begin", state.begin)
    monkeypatch.setattr(emulated.EmulatedDevice, "launch", launched)
    return state


def sums(x, axis):
    """The sums of two expressions, which are stacked."""
    return gpuops.sum(np.stack([x, x * x]), axis=axis + 1)


@pytest.mark.parametrize("function", [gpuops.sum, gpuops.softmax, gpuops.cumsum, sums], ids=lambda each: each.__name__)
def test_calls_do_not_wait_for_kernels_of_expressions(emulation, compiling, function):
    x, y = (emulated.DEVICE.from_host(sample((40, 50), seed=seed)) for seed in (0, 1))
    results = []
    for call in range(4):
        compiling.launched.clear()
        compiling.ready = call > 1
        results.append(np.asarray(function((gpuops.lazy(x) - y) * 2, axis=1)))
        names = [kernel.name for kernel in compiling.launched]
        assert len(names) == 1 if call else names[0] == "evaluate" and len(names) > 1  # the second one waits
    for result in results[1:]:
        assert_bits(result, results[0])
    assert [kernel.name for kernel in compiling.begun] == names


def test_out_and_operands_that_overlap_it_are_right_meanwhile(emulation, compiling):
    x = emulated.DEVICE.from_host(sample((40, 50)))
    expected = np.asarray(gpuops.cumsum(emulated.DEVICE.from_host(np.asarray(x * 2)), axis=1))
    gpuops.cumsum(gpuops.lazy(x) * 2, axis=1, out=x)
    assert_bits(np.asarray(x), expected)
    assert compiling.begun


def test_kernels_may_be_there_before_the_call_that_began_them_is_made(emulation, compiling):
    def begin(kernels):
        compiling.ready = True
        return True

    emulated.DEVICE.begin = begin  # (the fixture restores it)
    x = emulated.DEVICE.from_host(sample((40, 50)))
    expected = np.asarray(gpuops.sum(emulated.DEVICE.from_host(np.asarray(x * 2)), axis=1))
    compiling.launched.clear()
    for _ in range(3):
        assert_bits(np.asarray(gpuops.sum(gpuops.lazy(x) * 2, axis=1)), expected)
    names = [kernel.name for kernel in compiling.launched]
    assert names[0] == "evaluate" and names.count("evaluate") == 1
