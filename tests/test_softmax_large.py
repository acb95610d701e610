"""Softmaxes of long rows, which need a GPU's speed and clusters."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.plan import rows as softmax_kernels
from tests.compare import accumulator_eps, ulp
from tests.conftest import BACKENDS, NO_GPU
from tests.layouts import BFLOAT16, FLOATS, HALVES
from tests.test_softmax import check

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

if NO_GPU:
    pytest.skip(NO_GPU, allow_module_level=True)

#: Shapes and axes.
LARGE = [
    *(((rows, cols), 1) for cols in (1, 31, 4097, 50257, 131071, 2**18, 2**20 + 3) for rows in (1, 3, 200)),
    *(((cols, rows), 0) for cols in (1, 31, 4097, 50257, 131071, 2**18, 2**20 + 3) for rows in (5, 64, 256)),
]
DIFFERENT = 5  # distinct rows of such a matrix, which repeat
CONVERTED = dict(zip(FLOATS, (np.dtype("f8"), np.dtype("f4"), BFLOAT16, HALVES[0])))


def different_rows(count: int, cols: int) -> np.ndarray:
    """Distinct rows, most with special or large values."""
    x = np.random.default_rng(cols).standard_normal((DIFFERENT, cols)) * 3
    x[0, 3::7] = -np.inf
    x[1, cols // 2] = np.inf
    x[2, -1] = np.nan
    x[3] = -np.inf
    x[4] *= 30
    return x[:count]


def repeated(gpu: Any, x: Any, count: int, axis: int) -> Any:
    """``count`` rows along an axis, repeating those of an array on the GPU."""
    at = gpu.cupy.arange(count) % x.shape[axis]
    return gpu.cupy.take(x.view(f"u{x.itemsize}"), at, axis).view(x.dtype)


@pytest.mark.parametrize("strategy", [None, *softmax_kernels.ON_CHIP])
@pytest.mark.parametrize("shape,axis", [case for case in LARGE if math.prod(case[0]) <= 2**25], ids=str)
def test_large_matrices(shape, axis, strategy):
    gpu = BACKENDS["gpu"]()
    total, cols = shape if axis else shape[::-1]
    count, across = min(total, DIFFERENT), 1 - axis
    mask = np.random.default_rng(cols).random((count, cols)) < 0.8
    values, each, one = (a if axis else a.T for a in (different_rows(count, cols), mask, mask[:1]))
    done = 0
    for dtype in FLOATS:
        x = values.astype(dtype)
        there = repeated(gpu, gpu.array(x), total, across)
        for op, where, options in (
            ("softmax", True, {}),
            ("softmax", each, {"scale": 0.125}),
            ("softmax", one, {"dtype": CONVERTED[dtype]}),
            ("log_softmax", True, {}),
            ("log_softmax", one, {"scale": -2.0}),
        ):
            chosen = where if where is True else repeated(gpu, gpu.array(where), total if where is each else 1, across)
            function = partial(getattr(gpuops, op), axis=axis, where=chosen, strategy=strategy, **options)
            try:
                got = function(there)
            except ValueError as failure:
                assert strategy and "does not hold rows" in str(failure)
                continue
            check(gpu.fetch(got[:count] if axis else got[:, :count]), op, x, axis, where=where, **options)
            # Equal rows have nearly equal results, whatever their alignment.
            wide, eps = got.astype(np.float64), float(ml_dtypes.finfo(got.dtype).eps)
            again = repeated(gpu, wide[:count] if axis else wide[:, :count], total, across)
            near = max(1000 * accumulator_eps(got.dtype), 4 * eps)  # exponents as low as -800 are rounded
            least = near if op == "log_softmax" else 2 * float(ulp(got.dtype, np.zeros(())))
            assert gpu.cupy.allclose(wide, again, near, least, equal_nan=True)
            if got.dtype == dtype:
                in_place = there.copy()
                assert function(in_place, out=in_place) is in_place
                assert (in_place.view(f"u{dtype.itemsize}") == got.view(f"u{dtype.itemsize}")).all()
            done += 1
    if not done:
        pytest.skip(f"{strategy!r} refuses rows of {cols} elements: more than it holds on this device's chip")
