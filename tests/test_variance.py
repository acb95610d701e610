"""var, std and reductions that leave out NaN, beyond what all reductions share."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import gpuops
from gpuops.plan.work import Machine
from tests.compare import run
from tests.emulated import EmulatedDevice
from tests.exact_cases import rounded
from tests.layouts import BFLOAT16, sample
from tests.ops import SPREADS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Shapes of which a thread takes many elements, on one multiprocessor, and the axis; how fast the mean drifts, by how
#: it does; and the largest error allowed, in units of the last place, which a center that never moves exceeds.
DRIFTS: dict[str, tuple[tuple[int, ...], int, dict[str, int], float]] = {
    "whole": ((2**19,), 0, {"trend": 256, "levels": 4096}, 14),
    "rows": ((2, 2**16), 1, {"trend": 1024, "levels": 4096}, 14),
    "columns": ((2000, 128), 0, {"trend": 256, "levels": 256}, 48),
    "columns of a thread": ((128, 4096), 0, {"trend": 32, "levels": 64}, 64),
    "short rows": ((128, 1000), 1, {"trend": 64, "levels": 256}, 32),  # long for threads of the kernel of small arrays
}
SHAPES = [((3000,), 0), ((40, 700), 1), ((700, 40), 0), ((5000, 7), 1), ((7, 5000), 0), ((20, 30, 9), (0, 2))]


@pytest.mark.parametrize("ddof", [0, 1, 2.5, 3000, 10**6])
@pytest.mark.parametrize("op", SPREADS)
def test_degrees_of_freedom(backend, op, ddof):
    x = sample((3, 3000), "f8")
    x[1, ::7] = np.nan if op.startswith("nan") else x[1, ::7]
    for options in ({"ddof": ddof}, {"correction": ddof}):
        got = run(backend, getattr(gpuops, op), x, axis=1, **options)
        np.testing.assert_allclose(got, getattr(np, op)(x, axis=1, ddof=ddof), rtol=1e-9)


@pytest.mark.parametrize("op", SPREADS)
def test_bad_degrees_of_freedom_raise(backend, op):
    x = backend.array(np.ones(3, np.float32))
    with pytest.raises(ValueError, match=f"^{op}: give ddof or correction, not both; got 1 and 2$"):
        getattr(gpuops, op)(x, ddof=1, correction=2)
    for name in ("ddof", "correction"):
        with pytest.raises(TypeError, match=f"^{op}: {name} must be a real number, got '1'$"):
            getattr(gpuops, op)(x, **{name: "1"})
    with pytest.raises(TypeError, match=f"^{op}: dtype must be floating or complex, got int64$"):
        getattr(gpuops, op)(x, dtype=np.int64)


@pytest.mark.parametrize("op", SPREADS)
@pytest.mark.parametrize("dtype", ["i1", "f4", "D"])
def test_unknown_degrees_of_freedom_make_every_variance_nan(backend, op, dtype):
    x = sample((3, 300), dtype)
    for options in ({}, {"where": np.ones(x.shape, bool)}):
        assert np.isnan(run(backend, getattr(gpuops, op), x, axis=1, ddof=math.nan, **options)).all()


@pytest.mark.parametrize("op", [*SPREADS, "mean_var"])
@pytest.mark.parametrize("shape,axis", [((3,), None), ((3, 50), 1), ((50, 3), 0), ((30000,), 0)], ids=str)
def test_dtype_says_how_precise_the_parts_of_complex_numbers_are(backend, op, shape, axis):
    x = np.asarray(np.arange(np.prod(shape)) % 7 + 1j * (np.arange(np.prod(shape)) % 5)).reshape(shape)
    right = np.var(x, axis=axis) if "var" in op else np.std(x, axis=axis)
    for dtype, wide in (("f4", "F"), ("F", "F"), ("f8", "D"), ("D", "D"), ("f2", "F"), (BFLOAT16, "F")):
        got = getattr(gpuops, op)(backend.array(x), axis=axis, dtype=dtype)
        if op == "mean_var":
            mean, got = got
            np.testing.assert_allclose(backend.numpy(mean), x.mean(axis).astype(wide), rtol=1e-5)
            assert backend.numpy(mean).dtype == wide
        assert backend.numpy(got).dtype == np.empty(0, wide).real.dtype
        np.testing.assert_allclose(backend.numpy(got), right, rtol=1e-5)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_large_means_do_not_cost_digits(backend, dtype, shape, axis):
    eps = np.finfo(dtype).eps
    for mean, spread in ((0, 1), (1e6, 1), (-1e4, 1e-2)):
        x = (mean + spread * np.random.default_rng(3).standard_normal(shape)).astype(dtype)
        right = np.var(x.astype(np.longdouble), axis=axis)
        np.testing.assert_allclose(run(backend, gpuops.var, x, axis=axis), right.astype(np.float64), rtol=64 * eps)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_constants_have_no_variance(backend, shape, axis):
    for value in (0.1, 1e30, -7.0):
        x = np.full(shape, value, np.float32)
        got = run(backend, gpuops.var, x, axis=axis)
        np.testing.assert_array_equal(got, np.zeros_like(got))


@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((4, 1024), 1)], ids=str)
@pytest.mark.parametrize("op", ["var", "nanvar", "std"])
def test_squares_near_the_largest_number_do_not_overflow(backend, op, shape, axis):
    x = (3e17 * (1 + np.random.default_rng(5).random(shape))).astype(np.float32)
    right = getattr(np, op)(x.astype(np.float64), axis=axis)
    np.testing.assert_allclose(run(backend, getattr(gpuops, op), x, axis=axis), right, rtol=1e-5)


@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((2**16,), None), ((2**12, 32), 0)], ids=str)
@pytest.mark.parametrize("op", ["var", "nanvar", "std"])
def test_outliers_that_come_first_do_not_cost_digits(backend, op, shape, axis):
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    first = np.moveaxis(x, axis[0] if isinstance(axis, tuple) else axis or 0, 0)
    for few, value in ((1, 1e6), (4, -9999), (4, 1e17)):
        first[:few] = value
        got = run(backend, getattr(gpuops, op), x, axis=axis)
        right = getattr(np, op)(x.astype(np.float64), axis=axis)
        np.testing.assert_allclose(got, right, rtol=4e-6)


@pytest.mark.parametrize("splits", [3, 7, 20])
@pytest.mark.parametrize("dtype", ["f2", "i4", "f4"])
def test_columns_that_few_blocks_share(device, monkeypatch, dtype, splits):
    """In the last of them, most threads have no partial result to merge."""
    monkeypatch.setattr(EmulatedDevice, "machine", Machine(splits, together=1))
    x = (100 + 30 * np.random.default_rng(splits).standard_normal((6005, 64))).astype(dtype)
    where = np.random.default_rng(0).random(x.shape) < 0.5
    for options in ({}, {"where": where}):
        got = run(device, gpuops.var, x, axis=0, dtype=np.promote_types(dtype, np.float32), **options)
        np.testing.assert_allclose(got, np.var(x.astype(np.float64), axis=0, **options), rtol=4e-6)


@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((2**16,), None), ((2**12, 32), 0), ((300, 64), 1)], ids=str)
@pytest.mark.parametrize("few", [0, 0.001, 0.1])
def test_elements_left_out_do_not_cost_digits(backend, few, shape, axis):
    """Whichever threads have elements, and whichever have none."""
    rng = np.random.default_rng(6)
    x, where = 1e6 + rng.standard_normal(shape), rng.random(shape) < few
    where[(slice(1),) * len(shape)] = where[(slice(-5, None),) * len(shape)] = True
    x = x.astype(np.float32)
    missing = np.where(where, x, np.float32(np.nan))
    for op, array, options in (("var", x, {"where": where}), ("nanvar", missing, {})):
        right = getattr(np, op)(array.astype(np.float64), axis=axis, **options)
        got = run(backend, getattr(gpuops, op), array, axis=axis, **options)
        np.testing.assert_allclose(got, right, rtol=4e-6, atol=1e-9)


def drifting(way: str, rate: int, shape: tuple[int, ...], axis: int, dtype: str) -> np.ndarray:
    """Elements that fall along the axis: as a power does, or from level to level."""
    place = np.arange(shape[axis]) / shape[axis]
    level = 10 * np.floor(64 / (1 + rate * place)) if way == "levels" else 1000 * np.exp(-rate * place)
    along = np.expand_dims(level, [d for d in range(len(shape)) if d != axis])
    return (along * (1 + 0.1 * np.random.default_rng(0).random(shape))).astype(dtype)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", DRIFTS)
def test_means_that_drift_along_a_threads_elements_do_not_cost_digits(device, monkeypatch, name, dtype):
    monkeypatch.setattr(EmulatedDevice, "machine", Machine(1, together=1))
    shape, axis, rates, most = DRIFTS[name]
    where, result = np.random.default_rng(1).random(shape) < 0.7, np.promote_types(dtype, np.float32)
    for way, rate in rates.items():
        x = drifting(way, rate, shape, axis, dtype)
        whole, missing, there = x.astype(np.longdouble), np.where(where, x, np.nan).astype(dtype), device.array(where)
        options = {"axis": axis, "dtype": result}
        right, chosen = np.var(whole, axis=axis), np.var(whole, axis=axis, where=where)
        x, missing = device.arrays(x, missing)
        for got, exact in (
            (gpuops.var(x, **options), right), (gpuops.var(x, where=there, **options), chosen),
            (gpuops.mean_var(x, **options)[1], right), (gpuops.mean_var(x, where=there, **options)[1], chosen),
            (gpuops.nanvar(missing, **options), chosen), (gpuops.std(x, **options) ** 2, right),
        ):  # fmt: skip
            error = np.max(np.abs(device.fetch(got) - exact) / exact) / np.finfo(result).eps
            assert error <= most, way


@pytest.mark.parametrize(
    ("dtype", "kind", "most"),
    [
        ("f4", "alternating", 0.9),
        ("f4", "between 1 and 2", 0.9),
        ("f4", "one far away", 2.5),
        ("f8", "alternating", 1.25),
        ("f8", "between 1 and 2", 1.25),
    ],
)
def test_rounding_errors_stay_within_few_units(device, dtype, kind, most):
    rng = np.random.default_rng(0)
    x = (1 + rng.random((1024, 1024))).astype(dtype)
    if kind == "alternating":
        x[:, ::2] *= -1
    elif kind == "one far away":
        x[:, 0] = 1e5
    right = np.var(x.astype(np.longdouble), axis=1)
    got = device.numpy(gpuops.var(device.array(x), axis=1))
    assert np.max(np.abs(got - right) / right) <= most * np.finfo(dtype).eps


@pytest.mark.parametrize("length", [1, 2**16, 2**17])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2"])
def test_the_greatest_squares_of_small_integers_fit(backend, dtype, length):
    """Those of 2^16 bytes just fit 32 bits."""
    most = True if dtype == "?" else np.iinfo(dtype).min or np.iinfo(dtype).max
    for shape, axis in (((3, length), 1), ((length, 16), 0)):
        x = np.full(shape, most, dtype)
        np.testing.assert_array_equal(run(backend, gpuops.var, x, axis=axis), np.zeros(shape[1 - axis]))
        x[(0,) * 2] = 0
        right = np.var(x.astype(np.longdouble), axis=axis).astype(np.float64)
        np.testing.assert_allclose(run(backend, gpuops.var, x, axis=axis), right, rtol=1e-12)


@pytest.mark.parametrize("size", [3, 60, 3000])
@pytest.mark.parametrize("op", ["var", "nanvar", "std"])
def test_only_results_that_are_too_large_are_infinite(backend, op, size):
    for dtype, large in (("f4", 1e25), ("f8", 1e200)):
        x = np.resize([large, 2 * large, 3 * large], size).astype(dtype)
        got = run(backend, getattr(gpuops, op), x)
        if op == "std":
            np.testing.assert_allclose(got, large * np.std(x / large), rtol=1e-6)
        else:
            assert got == np.inf


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("ddof", [2, 3])
def test_numpy_warns_once_of_degrees_of_freedom(dtype, ddof):
    """Also where some deviations are made of exact sums, since their squares overflow."""
    x = np.array([[1e200 if dtype == "f8" else 1e25, 0.0, 1.0], [3.0, 5.0, 4.0]], dtype)
    with pytest.warns(RuntimeWarning, match="Degrees of freedom") as found:
        got = gpuops.std(x, axis=1, ddof=ddof, where=[[True] * 3, [True, True, False]])
    assert [str(each.message).startswith("Degrees") for each in found].count(True) == 1
    np.testing.assert_array_equal(np.isinf(got), [ddof == 3, True])


@pytest.mark.parametrize("size", [3, 60, 3000])
def test_deviations_of_tiny_numbers(backend, size):
    for dtype, small in (("f4", 1e-30), ("f8", 1e-200)):
        x = np.resize([small, 2 * small, 3 * small], size).astype(dtype)
        np.testing.assert_allclose(run(backend, gpuops.std, x), small * np.std(x / small), rtol=1e-6)
        assert run(backend, gpuops.std, np.full(size, small, dtype)) == 0


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
def test_what_has_no_elements_but_degrees_of_freedom(backend, dtype):
    x = np.zeros((0, 3), dtype)
    np.testing.assert_array_equal(run(backend, gpuops.var, x, axis=0, ddof=-1), np.var(x, axis=0, ddof=-1))


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "f4", "f8", "c8"], ids=str)
@pytest.mark.parametrize("op", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"])
def test_rows_without_numbers(backend, op, dtype):
    x = np.full((4, 70), np.nan).astype(dtype)
    x[1, 69], x[2, 0], x[3, 5] = 2, -3, 1e4 if dtype == "c8" else np.inf
    got = run(backend, getattr(gpuops, op), x, axis=1)
    wide = x.astype("c16" if dtype == "c8" else "f8")
    right = getattr(np, op)(wide, axis=1)
    np.testing.assert_array_equal(got.astype(right.dtype), right)


def test_numpy_warns_on_the_cpu():
    x = np.full((2, 3), np.nan)
    for op, words in (("nanmax", "All-NaN"), ("nanmean", "empty slice"), ("nanvar", "Degrees of freedom")):
        with pytest.warns(RuntimeWarning, match=words):
            getattr(gpuops, op)(x, axis=1)


def test_an_initial_nan_takes_part_in_sums(backend):
    x = sample((3, 50))
    for op in ("nansum", "nanprod"):
        assert np.isnan(run(backend, getattr(gpuops, op), x, axis=1, initial=np.nan)).all()
    for op in ("nanmax", "nanmin"):
        right = getattr(np, op)(x, axis=1, initial=np.nan)
        np.testing.assert_array_equal(run(backend, getattr(gpuops, op), x, axis=1, initial=np.nan), right)


@pytest.mark.parametrize("masked", [False, True], ids=["", "masked"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "i2"])
@pytest.mark.parametrize("op", SPREADS)
def test_chunks_of_dask_arrays_merge(op, dtype, masked):
    da = pytest.importorskip("dask.array", reason="chunks are Dask's")
    x = (sample((60, 50), "f4") * 9 + 1000).astype(dtype)
    mask = sample((60, 50), "?") if masked else True
    if dtype != "i2" and op.startswith("nan"):
        x[7], x[:20, 9] = np.nan, np.nan
    where = da.from_array(mask, (10, 50)) if masked else True
    for axis, ddof in ((0, 0), (1, 2), (None, 1), ((0, 1), 49)):
        got = getattr(gpuops, op)(da.from_array(x, (20, 13)), axis=axis, ddof=ddof, where=where)
        right = getattr(gpuops, op)(x, axis=axis, ddof=ddof, where=mask)
        assert got.dtype == np.asarray(right).dtype
        np.testing.assert_allclose(got.compute(), right, rtol={"f2": 2e-3, "i2": 1e-9}.get(dtype, 1e-4))


@pytest.mark.parametrize("dtype", ["i4", "u4"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_greatest_integers(backend, dtype, axis):
    """Their squares, and sums of these, have more than 64 bits."""
    info = np.iinfo(dtype)
    x = np.full((600, 640), info.max, dtype)
    x[::2, 1::2], x[1::2, ::2] = info.min, info.max - 4
    right = np.var(x.astype(np.longdouble), axis=axis).astype(np.float64)
    np.testing.assert_allclose(run(backend, gpuops.var, x, axis=axis), right, rtol=1e-14)


@pytest.mark.parametrize("n", (2, 16, 22, 90, 1000, 8192))
@pytest.mark.parametrize("op", ("var", "mean_var"))
@pytest.mark.parametrize(("dtype", "a", "far"), [("float32", 4097, 1e4), ("float16", 47, 1e3), ("bfloat16", 17, 1e2)])
def test_rows_whose_variance_doubles_do_and_do_not_determine(device, op, n, dtype, a, far):
    """Elements of registers are first added up in doubles, and exactly where that may not give the rounded result.

    The variance of as many 0 as 2 a is a**2, in the middle between two numbers of the dtype."""
    rng, dtype = np.random.default_rng(n), np.dtype(dtype)
    wide = rng.standard_normal(n) * 2.0 ** rng.integers(-40, 40, n)
    x = np.stack(
        [
            np.full(n, 0.1), np.resize((1, -1), n), np.resize((0, 2 * a), n), np.resize((0, 2 * a), n),
            rng.standard_normal(n), rng.standard_normal(n) + far, np.clip(wide, -(2.0**15), 2.0**15),
        ]
    ).astype(np.float32).astype(dtype)  # fmt: skip
    x[3, 0] = -(2.0 ** (-24 if dtype == "f2" else -60))  # a little more than the middle
    x = np.tile(x, (1 + 2000 // n, 1))
    got = getattr(gpuops, op)(device.array(x), axis=1)
    for row, *found in zip(x, *[device.numpy(each) for each in (got if op == "mean_var" else (got,))], strict=True):
        whole = [*map(Fraction, row.tolist())]
        mean = sum(whole, Fraction(0)) / n
        right = mean, sum((each * each for each in whole), Fraction(0)) / n - mean * mean
        for each, want in zip(found, right[-len(found) :], strict=True):
            assert each.tobytes() == rounded(want, dtype).tobytes()
