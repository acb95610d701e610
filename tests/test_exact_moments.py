"""Variances, standard deviations and weighted averages are made of exact sums, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.definition import exact, totals
from gpuops.definition.exact import Number
from tests.layouts import BFLOAT16
from tests.test_exact_sums import HARD, bits, hard

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Elements whose variances are hard: with a large mean, all alike, two values that differ in a last bit, integers.
FLAT = ("mean", "constant", "neighbours", "integers")
SHAPES = ((40, 3), (12, 130), (3, 2500))
DTYPES = ("f2", BFLOAT16, "f4", "f8", "c8")


def rows_of(family: str, shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Rows of elements of a family; complex numbers of two."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        parts = [rows_of(family, shape, np.float32, rng) for _ in range(2)]
        return parts[0] + 1j * parts[1]
    if family in HARD:  # (numpy.finfo does not know bfloat16)
        return hard(family, shape, np.dtype("f4") if dtype.kind == "V" else dtype, rng).astype(dtype)
    x = rng.standard_normal(shape)
    large = 100 if dtype.itemsize == 2 else 1e6
    some = {
        "mean": large + x, "constant": np.repeat(x[:, :1], shape[1], 1), "integers": np.rint(4 * x),
        "neighbours": np.where(x < 0, 0.1, 0.1 + np.finfo(np.float32).eps / 8),
    }  # fmt: skip
    return some[family].astype(dtype)


def variances(rows: np.ndarray, end: str, ddof: float) -> np.ndarray:
    """Those of rows, by the definition."""
    dtype = rows.real.dtype
    found = [totals.number(totals.totals_of("moments", x, None), x.size, Number(end), ddof, dtype) for x in rows]
    return np.array(found, dtype)


def assert_same(got: Any, want: np.ndarray, *what: Any) -> None:
    got = np.asarray(got)
    assert got.dtype == want.dtype, what
    same = (bits(got) == bits(want)) | ((got != got) & (want != want)) if got.dtype.kind != "c" else got == want
    assert same.all(), (*what, got[~same][:3], want[~same][:3])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_variances_are_rounded_once(backend, dtype, shape):
    rng = np.random.default_rng(shape)
    for family in (*HARD, *FLAT):
        x = rows_of(family, shape, dtype, rng)
        for op, end, ddof in (("var", "variance", 0), ("var", "variance", 1), ("std", "deviation", 0.5)):
            want = variances(x, end, ddof)
            for array, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
                got = backend.numpy(getattr(gpuops, op)(backend.array(array), axis=axis, ddof=ddof))
                assert_same(got, want, op, family, ddof, axis)


@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_those_without_nan_and_beside_masks(backend, dtype):
    rng = np.random.default_rng(5)
    for family in (*HARD, *FLAT):
        x = rows_of(family, (12, 130), dtype, rng)
        where = rng.random(x.shape) < 0.6
        want = np.concatenate([variances(row[mask][None], "variance", 1) for row, mask in zip(x, where, strict=True)])
        placed, mask = backend.arrays(x, where)
        assert_same(backend.numpy(gpuops.var(placed, axis=1, ddof=1, where=mask)), want, family)
        missing = backend.array(np.where(where, x, np.asarray(np.nan, dtype)))
        assert_same(backend.numpy(gpuops.nanvar(missing, axis=1, ddof=1)), want, family)
        mean, var = gpuops.mean_var(placed, axis=1, ddof=1)
        assert_same(backend.numpy(mean), backend.numpy(gpuops.mean(placed, axis=1)), family)
        assert_same(backend.numpy(var), variances(x, "variance", 1), family)


@pytest.mark.parametrize("dtype", ("f2", "f4", "f8", "c8"))
def test_averages_are_rounded_once(backend, dtype):
    rng = np.random.default_rng(6)
    for first, second in (("sizes", "mean"), ("cancel", "sizes"), ("integers", "constant"), ("mean", "mean")):
        x, weights = (rows_of(family, (12, 130), dtype, rng) for family in (first, second))
        placed, beside = backend.arrays(x, weights)
        average, weight = gpuops.average(placed, 1, beside, True)
        want = quotients(x, weights)
        assert_same(backend.numpy(average), want[0], first, second)
        assert_same(backend.numpy(weight), want[1], first, second)


@pytest.mark.parametrize("dtype", ("f2", "f4", "f8", "c8"))
@pytest.mark.parametrize("shape", ((300, 21), (2, 9), (70, 37)), ids=str)
def test_averages_of_short_rows_beside_weights_of_each_or_of_all(backend, dtype, shape):
    rng = np.random.default_rng(shape)
    for first, second in (("sizes", "mean"), ("cancel", "sizes"), ("mean", "mean")):
        x, weights = (rows_of(family, shape, dtype, rng) for family in (first, second))
        placed, beside = backend.arrays(x, weights)
        assert_same(backend.numpy(gpuops.average(placed, 1, beside)), quotients(x, weights)[0], first, second)
        assert_same(backend.numpy(gpuops.average(placed[1:], 1, beside[:-1])), quotients(x[1:], weights[:-1])[0])
        row = np.repeat(weights[:1], len(x), 0)
        assert_same(backend.numpy(gpuops.average(placed, 1, beside[0])), quotients(x, row)[0], first, second)


@pytest.mark.parametrize("dtype", ("f2", "f4", "f8", "c8"))
@pytest.mark.parametrize("length", (3, 11))
def test_averages_and_variances_of_few_long_rows_that_are_not_aligned(backend, dtype, length):
    rng = np.random.default_rng(length)
    for first, second in (("sizes", "mean"), ("mean", "mean")):
        x, weights = (rows_of(family, (90, length), dtype, rng) for family in (first, second))
        placed, beside = backend.arrays(*(np.tile(each.T, (1, 333))[:, 1:] for each in (x, weights)))
        both = gpuops.average(placed, 0, beside), gpuops.var(placed, 0)
        for got, want in zip(both, (quotients(x, weights)[0], variances(x, "variance", 0)), strict=True):
            assert_same(backend.numpy(got), np.tile(want, 333)[1:], first, second)


@pytest.mark.parametrize("dtype", ("f2", "f4", "f8", "c8"))
def test_averages_beside_weights_that_cannot_be_read_in_packs(backend, dtype):
    rng = np.random.default_rng(7)
    x, weights = rows_of("mean", (5, 4096), dtype, rng), rows_of("sizes", (5, 4099), dtype, rng)[:, 3:]
    placed, beside = backend.arrays(x, weights)
    assert_same(backend.numpy(gpuops.average(placed, 1, beside)), quotients(x, weights)[0])


def quotients(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The averages of rows and the sums of their weights, by the definition."""
    dtype, parts = x.real.dtype, 1 + (x.dtype.kind == "c")
    found = [totals.totals_of("weighted", *pair) for pair in zip(x, weights, strict=True)]

    def rounded(part: int) -> np.ndarray:
        numbers = [[totals.nearest(row[part * parts + k], dtype) for row in found] for k in range(parts)]
        return np.array(numbers, dtype).T.copy().view(x.dtype)[:, 0]

    sums = rounded(0), rounded(1)
    if parts == 2:
        return exact.complex_ratio(*sums), sums[1]
    return np.array([totals.number(row, 0, Number("ratio"), 0, dtype) for row in found], dtype), sums[1]


def test_large_squares_do_not_spoil_deviations(backend):
    for dtype, large in (("f4", 2.0**100), ("f8", 2.0**700)):
        x = (large * np.array([[1.0, 2, 3, 5], [-7, 7, 7, -7]])).astype(dtype)
        got = backend.numpy(gpuops.std(backend.array(x), axis=1))
        assert_same(got, variances(x, "deviation", 0))
        assert np.isinf(backend.numpy(gpuops.var(backend.array(x), axis=1))).all()
