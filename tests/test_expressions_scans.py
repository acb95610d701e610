"""Scans of expressions: the bits are those of the same scan of the expression's value in memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gpuops
from tests.compare import assert_bits
from tests.layouts import sample

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
#: Shapes and axes that have kernels of their own: lines in one sequence, lines apart, side by side, few, many, short.
CASES = (
    ((5000,), 0), ((7, 517), 1), ((300, 64), 0), ((40, 3, 33), 1), ((500, 5), 1), ((9, 260), 1), ((3000, 2), 0),
    ((2, 3), 0),
)  # fmt: skip


#: In which of them a scan goes, in which dtypes, and with which options.
SCANS = {
    gpuops.cumsum: (CASES, (np.float32, np.int16), ({}, {"reverse": True}, {"exclusive": True})),
    gpuops.cummax: (CASES, (np.float32,), ({"reverse": True},)),
    gpuops.cumprod: (CASES[1:3], (np.float32,), ({},)),
    gpuops.logcumsumexp: (CASES[1:3], (np.float32,), ({},)),
}


@pytest.mark.parametrize(
    ("name", "case"), [(function.__name__, case) for function, (cases, *_) in SCANS.items() for case in cases], ids=str
)
def test_scans_compute_what_they_read(backend, name, case):
    function = getattr(gpuops, name)
    (shape, axis), (_, dtypes, options) = case, SCANS[function]
    for dtype, given in zip(itertools.cycle(dtypes), options):
        x, y, row = sample(shape, dtype), sample(shape, dtype, 1), sample(shape[-1:], dtype, 2)
        a, b, c, value = backend.arrays(x, y, row, (x - y) * row)
        got = function((gpuops.lazy(a) - b) * c, axis=axis, **given)
        assert_bits(backend.numpy(got), backend.numpy(function(value, axis=axis, **given)))


def test_operands_may_lie_in_any_way(backend):
    x, y = sample((60, 70)), sample((70, 60), seed=1)
    a, b, column = backend.arrays(x, y, sample((60, 1), seed=2))
    value = backend.array(x * y.T - sample((60, 1), seed=2))
    for axis in (0, 1, None):
        got = gpuops.cumsum(gpuops.lazy(a) * b.T - column, axis=axis)
        assert_bits(backend.numpy(got), backend.numpy(gpuops.cumsum(value, axis=axis)))


def test_out_may_be_an_operand(backend):
    x, y = sample((50, 60)), sample((50, 60), seed=1)
    a, b = backend.arrays(x, y)
    expected = backend.numpy(gpuops.cumsum(backend.array(x * y), axis=1))
    assert gpuops.cumsum(gpuops.lazy(a) * b, axis=1, out=a) is a
    assert_bits(backend.numpy(a), expected)


@pytest.mark.parametrize("strategy", ["hillis_steele", "blelloch", "warp", "three_pass"])
def test_named_strategies_take_expressions(device, strategy):
    x, y = sample((5, 300)), sample((5, 300), seed=1)
    a, b, value = device.arrays(x, y, x * y)
    got = gpuops.cumsum(gpuops.lazy(a) * b, axis=1, strategy=strategy)
    assert_bits(device.numpy(got), device.numpy(gpuops.cumsum(value, axis=1, strategy=strategy)))
