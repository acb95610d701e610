"""Rules of reductions of NumPy arrays that hold for every size, number of threads and engine: initial values beside a
wider ``out``, zeros' signs, floating-point errors, accuracy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.call import launch_cache
from gpuops.host import forms, reduce
from tests.compare import assert_bits
from tests.host_blocks import ENGINES, computed_by, forget, settings, small_blocks
from tests.layouts import BFLOAT16, sample

#: How arrays are reduced: as they are, and in blocks on some threads by each engine.
WAYS: dict[str, Any] = {"as they are": nullcontext} | {
    f"{engine}, {count} threads": lambda count=count, engine=engine: small_blocks(count, engine)
    for engine in ENGINES for count in (1, 3)
}  # fmt: skip


@pytest.fixture(params=WAYS)
def way(request) -> Iterator[None]:
    launch_cache.clear()
    with WAYS[request.param]():
        yield


@contextmanager
def told() -> Iterator[list[warnings.WarningMessage]]:
    """The warnings that are given."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


@pytest.mark.parametrize("op, initial, right", [("max", -1, 7), ("max", 300, 300), ("min", -1, -1), ("min", 300, 7)])
@pytest.mark.parametrize("shape", [(4, 2), (10000, 2)])
@pytest.mark.parametrize("masked", [False, True])
def test_initial_values_are_of_the_wider_dtype_of_out(way, op, initial, right, shape, masked):
    x, out = np.full(shape, 7, "u1"), np.zeros(shape[0], np.int64)
    mask = {"where": np.arange(x.size).reshape(shape) % 2 == 0} if masked else {}
    assert getattr(gpuops, op)(x, axis=1, initial=initial, out=out, **mask) is out
    assert (out == right).all()


@pytest.mark.parametrize("op, initial", [("nanmax", 1e300), ("nanmin", -1e300), ("max", 1e300), ("min", -1e300)])
@pytest.mark.parametrize("size", [5, 20000])
def test_initial_values_beyond_the_elements_dtype(way, op, initial, size):
    x, out = sample((size,), "f4", special=False), np.zeros((), np.float64)
    getattr(gpuops, op)(x, initial=initial, out=out)
    assert out == initial


@pytest.mark.parametrize("shape", [(3, 4), (300, 40), (3, 3000)])
def test_elements_are_rounded_to_the_dtype_before_they_are_added(way, shape):
    x = sample(shape, "f4", special=False)
    for axis in (None, 0, 1, ()):
        for op in ("sum", "mean", "nansum"):
            right = getattr(np, op)(x.astype(np.float16).astype(np.float64), axis=axis)
            near = 2 * np.finfo(np.float16).eps
            np.testing.assert_allclose(getattr(gpuops, op)(x, axis=axis, dtype=np.float16), right, rtol=near, atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 4), (12, 15), (300, 40), (3, 30000)])
def test_sums_are_as_precise_as_the_dtype(way, shape):
    x = 1 + sample(shape, "f4", special=False)
    for axis in (None, 0, 1):
        for op in ("sum", "mean", "nansum", "var"):
            right = getattr(np, op)(x.astype("f8"), axis=axis)
            np.testing.assert_allclose(getattr(gpuops, op)(x, axis=axis, dtype="f8"), right, rtol=1e-12)


@pytest.mark.parametrize("size", [3, 30000])
def test_means_of_integers_in_an_integer_dtype(way, size):
    x = np.arange(2 * size, dtype=np.int32).reshape(2, size)
    for axis in (None, 0, 1):
        found, right = gpuops.mean(x, axis=axis, dtype=int), np.mean(x, axis=axis, dtype=int)
        assert found.dtype == right.dtype
        np.testing.assert_array_equal(found, right)


@pytest.mark.turns(6, everywhere=True)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("shape", [(3, 4), (300, 40), (3, 3000)])
def test_zeros_are_negative_only_if_the_initial_value_is(way, dtype, shape):
    x = -np.zeros(shape, dtype)
    some = {"where": np.arange(x.size).reshape(shape) % 3 > 0}
    for op in ("sum", "nansum"):
        for axis in (None, 0, 1):
            for mask in ({}, some):
                for initial, negative in ((-0.0, True), (0.0, False)):
                    found = getattr(gpuops, op)(x, axis=axis, initial=initial, **mask)
                    assert (np.signbit(found.real) == negative).all()
                assert not np.signbit(getattr(gpuops, op)(x, axis=axis, **mask).real).any()


#: Calls that meet floating-point errors: the op, elements, and the error.
ERRORS = {
    "a sum overflows": ("sum", [3e38, 3e38], "overflow"), "infinities meet": ("sum", [np.inf, -np.inf], "invalid"),
    "a square overflows": ("sum_of_squares", [1e30, 1.0], "overflow"),
    "a product overflows": ("prod", [3e38, 3e38], "overflow"),
    "a mean of infinities": ("mean", [np.inf, -np.inf], "invalid"),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
@pytest.mark.parametrize("repeats", [1, 5000])
def test_errors_are_reported_once_as_errstate_says(way, what, repeats):
    op, elements, error = ERRORS[what]
    x = np.tile(np.array(elements, np.float32), (3, repeats))
    call = getattr(gpuops, op)
    with told() as found, np.errstate(all="warn"):
        call(x, axis=1)
    assert [each.category for each in found] == [RuntimeWarning]
    with told() as found, np.errstate(all="ignore"):
        call(x, axis=1)
    assert not found
    with pytest.raises(FloatingPointError, match=error), np.errstate(all="raise", under="ignore"):
        call(x, axis=1)
    kinds: list[str] = []
    with np.errstate(all="call", call=lambda kind, flag: kinds.append(kind)):
        call(x, axis=1)
    assert [kind.split()[0] for kind in kinds] == [error]


@pytest.mark.parametrize("repeats", [1, 5000])
def test_nothing_is_reported_of_what_a_mask_leaves_out_or_of_finite_results(way, repeats):
    x, mask = np.tile([1e200, 1.0], (3, repeats)), np.tile([False, True], (3, repeats))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(gpuops.sum_of_squares(x, axis=1, where=mask), [repeats] * 3)
        np.testing.assert_allclose(gpuops.vector_norm(x, axis=1), [1e200 * repeats**0.5] * 3)
        infinite = np.where(mask, x, np.tile([np.inf, 1.0, -np.inf, 1.0], (3, repeats))[:, : x.shape[1]])
        assert (gpuops.sum(infinite, axis=1, where=mask) == repeats).all()
        assert (gpuops.var(infinite, axis=1, where=mask) == 0).all()
        assert (gpuops.max(infinite, axis=1) == np.inf).all()
        gpuops.nanmax(np.where(mask, x, np.nan), axis=1)
        gpuops.nanmean(np.where(mask, x, np.nan), axis=1)


def test_counts_of_any_dtype(way):
    for dtype in ("?", "i1", "u2", "i8", "f2", "f4", "f8", "c16"):
        x = sample((40, 300), dtype)
        x[::3] = 0
        for axis in (None, 0, 1, (0, 1)):
            np.testing.assert_array_equal(gpuops.count_nonzero(x, axis=axis), np.count_nonzero(x, axis=axis))


def test_counts_of_nan_and_negative_zeros(way):
    for dtype in ("f2", BFLOAT16, "f4", "c8"):
        x = sample((40, 300), dtype)
        x[::3], x[1::7] = np.array(np.nan, x.dtype), np.array(-0.0, x.dtype)
        for source in (x, x[::-1, ::2], x[:2, :3]):
            for axis in (None, 0, 1):
                found = gpuops.count_nonzero(source, axis=axis)
                np.testing.assert_array_equal(found, np.count_nonzero(source, axis=axis))


@pytest.mark.parametrize("op", ["nanargmax", "nanargmin", "nanmax", "nanmin", "nansum", "nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_blocks_of_nan_alone_do_not_hide_numbers(way, op, dtype):
    x = sample((400, 3), dtype)
    x[:300, 0] = x[100:, 1] = x[:390, 2] = np.nan
    for axis, source in ((0, x), (1, np.ascontiguousarray(x.T)), (0, x[:, 0].copy())):
        found, right = getattr(gpuops, op)(source, axis=axis), getattr(np, op)(source, axis=axis)
        np.testing.assert_allclose(found, right, rtol=0 if "arg" in op else 1e-5)


#: How far results may be from the exact ones, in units of float32's epsilon.
CLOSE = {
    "sum": 4, "mean": 4, "nansum": 4, "nanmean": 4, "average": 4, "sum_of_squares": 4, "vector_norm": 4, "var": 8,
    "std": 8, "nanvar": 8, "nanstd": 8, "mean_var": 8, "count_nonzero": 0,
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("op", CLOSE)
def test_sums_are_as_accurate_over_columns_as_over_rows(monkeypatch, engine, op):
    if engine == "numpy":
        monkeypatch.setattr(forms, "compiled", lambda module: None)
    forget()
    x = (1000 + np.random.default_rng(1).standard_normal((200000, 20))).astype(np.float32)
    wide = x.astype(np.float64)
    options = {"weights": np.random.default_rng(2).random(x.shape).astype(np.float32)} if op == "average" else {}
    references = {
        "sum_of_squares": lambda a, axis: np.sum(a * a, axis=axis),
        "vector_norm": lambda a, axis: np.sqrt(np.sum(a * a, axis=axis)),
        "average": lambda a, axis: np.average(a, axis=axis, weights=options["weights"].astype(np.float64)),
        "mean_var": lambda a, axis: (np.mean(a, axis=axis), np.var(a, axis=axis)),
    }
    right = references.get(op, getattr(np, op, None))(wide, axis=0)
    near = CLOSE[op] * np.finfo(np.float32).eps
    np.testing.assert_allclose(getattr(gpuops, op)(x, axis=0, **options), right, rtol=near)
    turned = {name: np.ascontiguousarray(each.T) for name, each in options.items()}
    np.testing.assert_allclose(getattr(gpuops, op)(np.ascontiguousarray(x.T), axis=1, **turned), right, rtol=near)


@pytest.mark.turns(2, everywhere=True)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("op", CLOSE)
def test_threads_change_no_bit_of_large_arrays(engine, op):
    x = (1000 + np.random.default_rng(1).standard_normal((200000, 20))).astype(np.float32)
    for source, axis in ((x, 0), (np.ascontiguousarray(x.T), 1)):
        options = {"weights": source - 900} if op == "average" else {}
        found = []
        for count in (1, 2):
            with computed_by(engine), settings(reduce, count):
                found.append(np.asarray(getattr(gpuops, op)(source, axis=axis, **options)))
        assert_bits(found[1], found[0])
