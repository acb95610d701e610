"""logsumexp and log_softmax near 0, and logsumexp with weights and signs."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

import gpuops
from tests.compare import assert_bits, run
from tests.layouts import BFLOAT16

special = pytest.importorskip("scipy.special", reason="SciPy is the reference")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
STRATEGIES = gpuops.strategies("logsumexp")
#: Rows whose sum of exponentials is barely above 1: terms added directly to the maximum's 1 would be lost.
SMALL = [[0, -40], [0, -20], [0, -30, -36], [-3, 0, -50, -17], [0, -80, -80.5], [-24, -25, -26, 0]]
#: The precision of results, by dtype.
EPS = {"f4": 2.0**-23, "f8": 2.0**-52, BFLOAT16: 2.0**-8}


def exact(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """log(sum(weights * exp(values))) in 80 digits, rounded once."""
    with localcontext() as context:
        context.prec = 80
        weights = np.ones(len(values)) if weights is None else weights
        pairs = [(Decimal(float(b)), Decimal(float(x))) for x, b in zip(values, weights) if x != -np.inf]
        return float(sum(b * x.exp() for b, x in pairs).ln())


def scattered(row: list[float], length: int, seed: int) -> np.ndarray:
    """The row's elements in random order among many -inf."""
    values = np.full(length, -np.inf)
    values[np.random.default_rng(seed).permutation(length)[: len(row)]] = row
    return values


def small_rows(dtype: Any, length: int) -> tuple[np.ndarray, np.ndarray]:
    """``SMALL`` scattered over rows of a length, and their logsumexp."""
    rows = np.array([scattered(row, length, seed) for seed, row in enumerate(SMALL)]).astype(dtype)
    return rows, np.array([exact(row.astype("f8")) for row in rows])


def assert_close(got: np.ndarray, expected: np.ndarray, dtype: Any) -> None:
    """Within some units in the last place, and one more per factor of e below 1: the accuracy of the exponentials."""
    bound = EPS[dtype] * abs(expected) * (8 - np.log(abs(expected)))
    assert (abs(got.astype("f8") - expected) <= bound).all(), (got, expected)


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
@pytest.mark.parametrize("dtype", EPS, ids=str)
def test_logsumexp_near_zero_is_accurate(backend, dtype, strategy):
    for length in (4, 40, 1000):
        rows, expected = small_rows(dtype, length)
        for axis, values in ((1, rows), (0, rows.T)):
            assert_close(run(backend, gpuops.logsumexp, values, axis, strategy=strategy), expected, dtype)
        assert_close(run(backend, gpuops.logsumexp, rows[0], strategy=strategy), expected[0], dtype)


def test_long_rows_of_small_terms_are_accurate(backend):
    x = np.full(300_000, -50.0)
    x[123_456] = 0
    expected = 299_999 * np.exp(-50.0)
    np.testing.assert_allclose(run(backend, gpuops.logsumexp, x), expected, rtol=1e-13)
    got = run(backend, gpuops.log_softmax, x)[123_456]
    np.testing.assert_allclose(got, -expected, rtol=1e-13)


def test_several_maxima_are_counted(backend):
    for count in (1, 2, 3, 100, 4000):
        x = np.full(5000, -np.inf, "f4")
        x[:count] = 7
        got = run(backend, gpuops.logsumexp, x)
        np.testing.assert_allclose(got, 7 + np.log(count), rtol=1e-6)


@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize("strategy", [None, *gpuops.strategies("log_softmax")])
def test_log_softmax_of_the_maximum_is_accurate(backend, dtype, strategy):
    for length in (4, 1000) if strategy and strategy.startswith("warp") else (4, 1000, 3001):
        rows, expected = small_rows(dtype, length)
        for axis, values in ((1, rows), (0, rows.T)):
            try:
                got = run(backend, gpuops.log_softmax, values, axis, strategy=strategy)
            except ValueError as failure:
                assert "does not hold rows" in str(failure)
                continue
            assert_close(got.max(axis), -expected, dtype)


@pytest.mark.parametrize("row", SMALL, ids=str)
def test_dask_results_near_zero_are_accurate(row):
    da = pytest.importorskip("dask.array", reason="chunks are Dask's")
    x = da.from_array(scattered(row, 1000, 0), chunks=70)
    np.testing.assert_allclose(gpuops.logsumexp(x).compute(), exact(np.array(row, "f8")), rtol=1e-15)
    largest = gpuops.log_softmax(x).compute().max()
    np.testing.assert_allclose(largest, -exact(np.array(row, "f8")), rtol=1e-15)


# ------------------------------------------------------------------------------------------------------------ weights


@pytest.mark.turns(8)
@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
@pytest.mark.parametrize("shape", [(5, 7), (3, 400), (2, 3000), (3000, 3), (64, 64)])
def test_weights_agree_with_scipy(backend, shape, strategy):
    random = np.random.default_rng(0)
    a, b = random.standard_normal(shape) * 20, random.integers(-2, 4, shape).astype("f8")
    there = backend.arrays(a, b)
    for axis in (0, 1, None, (0, 1)):
        for keepdims in (False, True):
            options = {"keepdims": keepdims, "return_sign": True}
            expected = special.logsumexp(a, axis, b, **options)
            got = gpuops.logsumexp(there[0], axis, there[1], **options, strategy=strategy)
            assert type(got) is tuple and len(got) == 2
            for one, other in zip(got, expected):
                np.testing.assert_allclose(backend.numpy(one), other, rtol=1e-11, atol=1e-12)
            alone = backend.numpy(gpuops.logsumexp(there[0], axis, there[1], keepdims))
            np.testing.assert_allclose(alone, special.logsumexp(a, axis, b, keepdims), rtol=1e-11, atol=1e-12)


def test_weights_broadcast_and_promote(backend):
    a = np.random.default_rng(0).standard_normal((4, 5)).astype("f4")
    for b in (np.arange(5.0), np.arange(4, dtype="i4")[:, None], np.ones((3, 1, 5), "f4"), np.arange(5) % 2 == 0):
        expected = special.logsumexp(a, -1, b)
        got = run(backend, gpuops.logsumexp, a, -1, b)
        assert got.shape == expected.shape and got.dtype == np.result_type(a, b)
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    for scalar in (2, 2.5, np.float32(3)):
        got = run(backend, gpuops.logsumexp, a, 1, scalar)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, special.logsumexp(a, 1, np.float32(scalar)), rtol=1e-6)
    wide = gpuops.logsumexp(backend.array(a[0].copy()), 0, backend.array(np.ones((3, 5), "f4")))
    assert wide.shape == (5,)


def test_negative_sums_give_nan_or_a_sign(backend):
    a, b = backend.arrays(np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 2.0]]), np.array([[1.0, -1], [-1, 1], [1, -1]]))
    logarithm, sign = (backend.numpy(x) for x in gpuops.logsumexp(a, 1, b, return_sign=True))
    np.testing.assert_allclose(logarithm, [np.log(np.e - 1), np.log(np.e - 1), -np.inf])
    np.testing.assert_array_equal(sign, [-1, 1, 0])
    assert np.isnan(backend.numpy(gpuops.logsumexp(a, 1, b))).tolist() == [True, False, False]


@pytest.mark.parametrize("weight", [2.0, 1e20])
@pytest.mark.parametrize("count", [1, 5000])
def test_weights_of_the_maximum_may_cancel(backend, count, weight):
    a, b = np.tile([[0.0, -35.0, 0.0]], (count, 1)), np.tile([[weight, 1.0, -weight]], (count, 1))
    for axis, x, y in ((1, a, b), (0, a.T.copy(), b.T.copy())):
        found = gpuops.logsumexp(backend.array(x), axis, backend.array(y), return_sign=True)
        for one, exact in zip(found, (-35.0, 1.0), strict=True):
            np.testing.assert_array_equal(backend.numpy(one), np.full(count, exact))


def test_zero_weights_exclude_elements(backend):
    a = np.array([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, 1.0], [np.inf, np.nan]])
    b = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    there = backend.arrays(a, b)
    np.testing.assert_array_equal(backend.numpy(gpuops.logsumexp(there[0], 1, there[1])), [1, 1, 1, -np.inf])
    b = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    logarithm, sign = (backend.numpy(x) for x in gpuops.logsumexp(there[0], 1, backend.array(b), return_sign=True))
    np.testing.assert_array_equal(logarithm, [np.nan, np.inf, 1, np.nan])
    np.testing.assert_array_equal(sign, [np.nan, -1, 1, np.nan])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_weights_with_a_mask_and_a_scale(backend, dtype):
    random = np.random.default_rng(0)
    a, b = random.standard_normal((6, 50)).astype(dtype), random.integers(-2, 4, (6, 50)).astype(dtype)
    mask = random.random((6, 50)) < 0.5
    there = dict(zip("abm", backend.arrays(a, b, mask)))
    got = gpuops.logsumexp(there["a"], 1, there["b"], where=there["m"], scale=3, return_sign=True)
    expected = special.logsumexp(3 * a.astype("f8"), 1, np.where(mask, b, 0), return_sign=True)
    for one, other in zip(got, expected):
        np.testing.assert_allclose(backend.numpy(one), other, rtol=1e-5 if dtype == "f4" else 1e-12)


def test_weights_of_half_types(backend):
    a = np.random.default_rng(0).standard_normal((3, 40))
    b = np.arange(40) % 5 - 1.0
    for dtype in ("f2", BFLOAT16):
        there = backend.arrays(a.astype(dtype), b.astype(dtype))
        got, sign = gpuops.logsumexp(there[0], 1, there[1], return_sign=True)
        assert got.dtype == sign.dtype == dtype
        expected = special.logsumexp(a.astype(dtype).astype("f8"), 1, b.astype(dtype).astype("f8"))
        np.testing.assert_allclose(backend.numpy(got).astype("f8"), expected, rtol=2e-2)


def test_return_sign_without_weights(backend):
    a = np.array([[0.0, 1.0], [-np.inf, -np.inf]])
    logarithm, sign = gpuops.logsumexp(backend.array(a), 1, return_sign=True)
    assert_bits(backend.numpy(logarithm), special.logsumexp(a, 1))
    np.testing.assert_array_equal(backend.numpy(sign), [1, 0])


def test_out_receives_the_logarithm(backend):
    a, b = backend.arrays(np.arange(12.0).reshape(3, 4), np.array([1.0, -1, 2, 1]))
    out = backend.array(np.zeros(3, "f4"))
    assert gpuops.logsumexp(a, 1, b, out=out) is out
    result = gpuops.logsumexp(a, 1, b, return_sign=True, out=out)
    assert result[0] is out
    np.testing.assert_allclose(backend.numpy(out), backend.numpy(gpuops.logsumexp(a, 1, b)), rtol=1e-6)
    overlapping = a[:, 0]
    expected = backend.numpy(gpuops.logsumexp(a, 1, b))
    gpuops.logsumexp(a, 1, b, out=overlapping)
    np.testing.assert_allclose(backend.fetch(overlapping), expected)


@pytest.mark.parametrize("chunks", [(4, 60), (2, 7), (1, 1)])
def test_weights_of_dask_arrays(chunks):
    da = pytest.importorskip("dask.array", reason="chunks are Dask's")
    random = np.random.default_rng(0)
    a, b = random.standard_normal((4, 60)) * 10, random.integers(-2, 4, (4, 60)).astype("f8")
    mask = random.random((4, 60)) < 0.7
    for axis in (0, 1, None):
        for options in ({}, {"keepdims": True}):
            expected = gpuops.logsumexp(a, axis, b, return_sign=True, where=mask, **options)
            there = (da.from_array(x, chunks=chunks) for x in (a, b, mask))
            x, weights, chosen = there
            got = gpuops.logsumexp(x, axis, weights, return_sign=True, where=chosen, **options)
            for one, other in zip(got, expected):
                assert one.shape == np.shape(other) and one.dtype == np.float64
                np.testing.assert_allclose(one.compute(), other, rtol=1e-12, atol=1e-13)
            alone = gpuops.logsumexp(x, axis, weights, where=chosen, **options).compute()
            expected = gpuops.logsumexp(a, axis, b, where=mask, **options)
            np.testing.assert_allclose(alone, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gpuops.logsumexp(x, 1, 2.0).compute(), special.logsumexp(a, 1, 2.0))
    np.testing.assert_allclose(gpuops.logsumexp(x, 1, b[0]).compute(), gpuops.logsumexp(a, 1, b[0]), equal_nan=True)
