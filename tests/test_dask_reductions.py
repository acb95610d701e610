"""Reductions of Dask arrays by their states: one read of each chunk, nothing moved, any record."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gpuops
from gpuops.call.launch_cache import operation
from gpuops.call.operation import ARRAY, MASK
from gpuops.definition import records
from gpuops.definition.expressions import exp, log
from gpuops.definition.reduction import Reduction
from gpuops.definition.structs import added
from gpuops.ops.reduction import NOT_GIVEN, reduction
from tests.conftest import Cpu
from tests.exact_cases import cases, rounded
from tests.layouts import BFLOAT16
from tests.ops import REDUCTIONS, parameters
from tests.test_exact_sums import HARD, hard

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")

from dask.utils import key_split  # noqa: E402

from tests.chunks import on_device  # noqa: E402

#: Every reduction of one array, those to several results among them, and their options.
MASKED = tuple(op for op in (*REDUCTIONS, *records.MEASURES) if "where" in parameters(op))
MASKED_DTYPES = tuple(
    (op, dtype) for op in MASKED for dtype in ("f4", "c8", "i2")
    if dtype != "c8" or not (records.REDUCTIONS | records.MEASURES)[op].rules.real
)  # fmt: skip
OTHERS = (*(op for op in records.MEASURES if op not in MASKED), *records.WITH_INDEX, "vector_norm", "average")
SEARCHES = tuple(records.SEARCHES)
OPS = (*MASKED, *OTHERS, *SEARCHES)
CHUNKS = ((4, 3, 5), (6, 9))
AXES = (None, 0, 1)


@pytest.fixture(autouse=True)
def synchronous_scheduler():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def cpu() -> Cpu:
    return Cpu()


def values(dtype: str = "f8") -> np.ndarray:
    return np.random.default_rng(2).normal(1, 0.2, (12, 15)).astype(dtype)


def in_chunks(backend: Any, array: np.ndarray) -> Any:
    return on_device(backend, array, CHUNKS)


def each_of(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def assert_agrees(backend: Any, lazy: Any, expected: Any) -> None:
    assert type(lazy) is type(expected) or not isinstance(expected, tuple)
    for got, right in zip(each_of(lazy), each_of(expected), strict=True):
        found = backend.numpy(got.compute())
        assert (got.dtype, found.dtype) == (right.dtype,) * 2 and got.shape == found.shape == right.shape
        np.testing.assert_allclose(found, right, 64 * np.finfo(found.dtype).eps if found.dtype.kind in "fc" else 0)


@pytest.mark.turns(8)
@pytest.mark.parametrize("op", OPS)
def test_each_chunk_is_read_once_and_none_moves(backend, op):
    seen: list[Any] = []

    def read(block):
        seen.append(block.shape)
        return block

    for axis in AXES:
        for keepdims in (False, True):
            x, function = values(), getattr(gpuops, op)
            seen.clear()
            there = in_chunks(backend, x)
            lazy = function(there.map_blocks(read, meta=there._meta), axis=axis, keepdims=keepdims)
            names = {key_split(key) for each in each_of(lazy) for key in each.__dask_graph__()}
            assert not any("rechunk" in name or "concatenate" in name for name in names)
            assert not seen
            results = dask.compute(*each_of(lazy))
            assert len(seen) == 6, "two results come of one pass"
            expected = each_of(function(x, axis=axis, keepdims=keepdims))
            for got, right in zip(results, expected, strict=True):
                np.testing.assert_allclose(backend.numpy(got), right, 1e-13)


@pytest.mark.turns(8)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("op", "dtype"), MASKED_DTYPES)
def test_masked_reductions_agree_with_whole_arrays(backend, op, dtype):
    x, mask = values(dtype), np.random.default_rng(3).random((12, 15)) < 0.6
    row = mask[0]
    if x.dtype.kind != "i" and op.startswith("nan"):
        x[2] = np.nan
    for axis in AXES:
        for where in (mask, row, row[None]):
            options: dict[str, Any] = {"axis": axis, "keepdims": axis == 1}
            if op.endswith(("max", "min")):
                options["initial"] = 1
            chosen = on_device(backend, where, (5,) * where.ndim)
            got = getattr(gpuops, op)(in_chunks(backend, x), where=chosen, **options)
            assert_agrees(backend, got, getattr(gpuops, op)(x, where=where, **options))


@pytest.mark.parametrize("op", SEARCHES)
def test_places_are_those_in_the_whole_array(backend, op):
    ties = np.random.default_rng(4).integers(0, 3, (12, 15))
    rare = np.zeros((12, 15), "f4")
    rare[10, 7] = 1
    nans = ties.astype("f4")
    nans[np.random.default_rng(5).random((12, 15)) < 0.2] = np.nan
    for x in (ties.astype("i1"), ties.astype("f8"), rare, -rare, nans):
        for axis in AXES:
            for keepdims in (False, True):
                lazy = getattr(gpuops, op)(in_chunks(backend, x), axis=axis, keepdims=keepdims)
                assert_agrees(backend, lazy, getattr(np, op)(x, axis=axis, keepdims=keepdims))


def test_extremes_and_their_places_agree(backend):
    x = np.random.default_rng(4).integers(0, 3, (12, 15)).astype("f4")
    x[5, 6] = np.nan
    for op in ("max_with_index", "min_with_index"):
        for axis in AXES:
            expected = [np.asarray(each) for each in getattr(gpuops, op)(x, axis=axis)]
            for one, other in zip(getattr(gpuops, op)(in_chunks(backend, x), axis=axis), expected, strict=True):
                np.testing.assert_array_equal(backend.numpy(one.compute()), other)


def test_rows_without_a_number_are_refused_when_they_are_computed(cpu):
    x = values()
    x[3] = np.nan
    lazy = gpuops.nanargmax(in_chunks(cpu, x), axis=1)
    with pytest.raises(ValueError, match="nanargmax: All-NaN slice encountered"):
        lazy.compute()


def test_degrees_of_freedom_dtypes_and_initial_values(backend):
    x = values("f4")
    for op in ("var", "std", "nanvar", "nanstd", "mean_var"):
        for options in ({"ddof": 2}, {"correction": 1, "axis": 0}, {"dtype": "f8", "axis": 1}):
            lazy = getattr(gpuops, op)(in_chunks(backend, x), **options)
            assert_agrees(backend, lazy, getattr(gpuops, op)(x, **options))
    for options in ({"initial": 100}, {"initial": 100, "axis": 1}, {"dtype": "f8"}, {"initial": 3.5, "dtype": "c16"}):
        assert_agrees(backend, gpuops.sum(in_chunks(backend, x), **options), gpuops.sum(x, **options))
    assert_agrees(backend, gpuops.max(in_chunks(backend, x), initial=9), np.float32(9))
    zeros = np.full((12, 15), -0.0)
    for initial, negative in ((-0.0, True), (0.0, False)):
        found = gpuops.sum(in_chunks(backend, zeros), initial=initial).compute()
        assert np.signbit(backend.numpy(found)) == negative


def test_weights_go_along_their_axes(backend):
    x, heavy = values("f4"), np.random.default_rng(6).random((12, 15)).astype("f4")
    for axis, weights in ((None, heavy), (0, heavy), (1, heavy), (1, heavy[0]), (0, heavy[:, 0]), ((1, 0), heavy.T)):
        there = on_device(backend, weights, CHUNKS if weights.shape == x.shape else 4)
        for options in ({}, {"returned": True}, {"keepdims": True}):
            lazy = gpuops.average(in_chunks(backend, x), axis, there, **options)
            assert_agrees(backend, lazy, gpuops.average(x, axis, weights, **options))
    assert_agrees(backend, gpuops.average(in_chunks(backend, x), returned=True), gpuops.average(x, returned=True))


def test_variances_of_chunks_keep_their_digits(backend):
    x = (1000 + np.random.default_rng(7).normal(size=(12, 15))).astype("f4")
    right = x.astype("f8").var(0)
    got = gpuops.var(in_chunks(backend, x), axis=0)
    np.testing.assert_allclose(backend.numpy(got.compute()), right, 1e-4)


@pytest.mark.parametrize("strategy", (None, "rows", "columns", "shuffle", "cross_host"))
def test_chunks_take_the_strategy(backend, strategy):
    x = values("f4")
    assert_agrees(backend, gpuops.sum(in_chunks(backend, x), axis=1, strategy=strategy), gpuops.sum(x, axis=1))


# ---------------------------------------------------------------------------------------------------------- exact sums

EXACT = ("sum", "nansum", "mean", "nanmean", "sum_of_squares", "vector_norm")
FLOATS = tuple(map(np.dtype, ("f2", BFLOAT16, "f4", "f8", "c8", "c16")))


def same_bits(found: Any, right: Any) -> bool:
    """Whether numbers are the same, NaN and the signs of zeros among them."""
    found, right = np.asarray(found), np.asarray(right)
    parts = [(each.real, each.imag) if each.dtype.kind == "c" else (each,) for each in (found, right)]
    pairs = zip(*parts, strict=True)
    return found.dtype == right.dtype and all(
        bool((((x == y) & (np.signbit(x) == np.signbit(y))) | ((x != x) & (y != y))).all()) for x, y in pairs
    )


def hard_values(family: str, dtype: np.dtype, rng: np.random.Generator, shape: tuple[int, int] = (9, 24)) -> np.ndarray:
    """Elements whose sums are hard to round; NaN and infinities among them now and then."""
    real = np.dtype("f4") if dtype == BFLOAT16 else np.empty(0, dtype).real.dtype
    x = hard(family, shape, real, rng)
    x[rng.random(shape) < 0.002] = rng.choice([np.nan, np.inf, -np.inf])
    return (x + 1j * np.roll(x, 1, 1)).astype(dtype) if dtype.kind == "c" else x.astype(dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", EXACT)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_have_the_same_bits_in_any_chunks(cpu, dtype, op):
    rng, function = np.random.default_rng(11), getattr(gpuops, op)
    for family in HARD:
        x = hard_values(family, dtype, rng)
        mask, axis, chunks = rng.random(x.shape) < 0.8, AXES[rng.integers(3)], tuple(rng.integers(2, 12, 2).tolist())
        options: list[dict[str, Any]] = [{}]
        if "where" in parameters(op):
            options.append({"where": mask})
        if "initial" in parameters(op):
            options += [{"initial": x[1, 2]}, {"initial": -0.0, "where": mask}]
        for each in options:
            lazy = {key: da.from_array(value, 7) if key == "where" else value for key, value in each.items()}
            found = function(da.from_array(x, chunks), axis=axis, **lazy).compute()
            assert same_bits(found, function(x, axis=axis, **each)), (family, axis, chunks, each)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_dots_of_vectors_have_the_same_bits(cpu, dtype):
    rng = np.random.default_rng(12)
    for family in HARD:
        x, y = (hard_values(family, dtype, rng, (2, 300)).ravel() for _ in range(2))
        for chunks in (50, 200):
            found = gpuops.dot(da.from_array(x, chunks), da.from_array(y, chunks)).compute()
            assert same_bits(found, gpuops.dot(x, y)), (family, chunks)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ("f2", "f4", "f8"))
def test_sums_of_chunks_are_rounded_once(cpu, dtype):
    for name, x, total in cases(dtype, np.random.default_rng(13)):
        if 0 < x.size <= 5000:
            found = gpuops.sum(da.from_array(x, max(1, x.size // 5))).compute()
            assert same_bits(found, rounded(total, dtype)), name


@given(
    hnp.arrays("f8", st.tuples(st.integers(1, 8), st.integers(1, 12)), elements=st.floats(width=64)),
    st.integers(1, 5), st.integers(1, 5), st.sampled_from((None, 0, 1)), st.sampled_from((*EXACT, "dot")),
    st.sampled_from(("f4", "f8")),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_any_chunks_give_the_same_bits(x, rows, columns, axis, op, dtype):
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        if op == "dot":
            found, right = gpuops.dot(da.from_array(x[0], columns), da.from_array(x[0], rows)), gpuops.dot(x[0], x[0])
        else:
            function = getattr(gpuops, op)
            found, right = function(da.from_array(x, (rows, columns)), axis=axis), function(x, axis=axis)
        assert same_bits(found.compute(), right)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ("f4", "f8", "c8"))
def test_chunks_on_a_device_give_the_same_bits(backend, dtype):
    rng = np.random.default_rng(14)
    for family in ("sizes", "cancel"):
        x = hard_values(family, np.dtype(dtype), rng)
        for op in ("sum", "nanmean", "vector_norm"):
            for axis in AXES:
                found = getattr(gpuops, op)(on_device(backend, x, (4, 7)), axis=axis).compute()
                assert same_bits(backend.numpy(found), getattr(gpuops, op)(x, axis=axis)), (family, op, axis)


def test_errors_are_those_of_the_whole_array(cpu):
    for x in ([np.inf, -np.inf], [np.nan, 1], [np.inf, 1], [1e308] * 4, [1e308, 1e308, -1e308, -1e308]):
        array = np.array(x)
        for function in (gpuops.sum, gpuops.mean, gpuops.nansum):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                function(array)
            assert warned(function(da.from_array(array, 1))) == [str(each.message) for each in found], (x, function)


# ------------------------------------------------------------------------------------------------------------ warnings


def warned(lazy: Any) -> list[str]:
    """What the computation warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lazy.compute()
    return [str(each.message) for each in found]


@pytest.mark.parametrize("op", ("nanmax", "nanmin"))
def test_a_chunk_of_nan_warns_of_nothing_a_result_of_nan_once(cpu, op):
    x = values()
    x[:, :6] = np.nan
    function = getattr(gpuops, op)
    assert warned(function(in_chunks(cpu, x), axis=1)) == []
    x[1] = np.nan
    assert warned(function(in_chunks(cpu, x), axis=1)) == ["All-NaN slice encountered"]
    assert warned(function(in_chunks(cpu, x))) == []


def test_means_and_variances_of_nothing_warn_once(cpu):
    x = values()
    x[:4] = np.nan
    assert warned(gpuops.nanmean(in_chunks(cpu, x), axis=0)) == []
    assert warned(gpuops.nanvar(in_chunks(cpu, x), axis=0)) == []
    x[:, :6] = np.nan  # the columns of one chunk
    assert warned(gpuops.nanmean(in_chunks(cpu, x), axis=0)) == ["Mean of empty slice"]
    assert warned(gpuops.nanvar(in_chunks(cpu, x), axis=0, ddof=1)) == ["Degrees of freedom <= 0 for slice."]


def test_steps_between_raise_nothing_that_the_result_does_not_show(cpu):
    x = values("f4")
    x[:, :6] = np.nan
    x[2, 8] = 1e30
    with np.errstate(all="raise"):
        for op in ("nansum", "nanmean", "nanmax", "nanargmax"):
            expected = getattr(gpuops, op)(x, axis=1)
            np.testing.assert_allclose(getattr(gpuops, op)(in_chunks(cpu, x), axis=1).compute(), expected, 1e-6)
        large = in_chunks(cpu, np.full((12, 15), 1e30, "f4"))
        np.testing.assert_allclose(gpuops.vector_norm(large).compute(), 180**0.5 * 1e30, 1e-6)


def test_results_that_overflow_are_reported(cpu):
    x = np.full((12, 15), 5e36, "f4")  # a chunk's sum is finite
    assert warned(gpuops.sum(in_chunks(cpu, x))) == ["overflow encountered in reduce"]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        gpuops.sum(in_chunks(cpu, x)).compute()


# ---------------------------------------------------------------------------------------------------------- new records


GEOMETRIC_MEAN = Reduction(
    "geometric_mean", {"logs": added()}, lambda x: log(x), lambda s, n: exp(s.logs.as_("D") / n), floating=True,
    real=True,
)  # fmt: skip


@operation(a=ARRAY, where=MASK)
def geometric_mean(a, axis=None, dtype=None, out=None, keepdims=False, where=True):
    return reduction(GEOMETRIC_MEAN, a, axis, dtype, out, keepdims, NOT_GIVEN, where, None)


@pytest.fixture
def in_table(monkeypatch):
    """Its structs are found by their names, as those of the records in the tables."""
    for record in (GEOMETRIC_MEAN, GEOMETRIC_MEAN.masked):
        monkeypatch.setitem(records.STRUCTS, record.struct.name, record)


@pytest.mark.usefixtures("in_table")
def test_a_new_record_needs_nothing_of_dask(backend):
    x, mask = np.random.default_rng(8).uniform(1, 2, (12, 15)).astype("f4"), values() > 1
    for axis in AXES:
        right = np.exp(np.log(x.astype("f8")).mean(axis)).astype("f4")
        got = geometric_mean(in_chunks(backend, x), axis)
        assert {key_split(key) for key in got.__dask_graph__()} & {"geometric_mean-aggregate"}
        np.testing.assert_allclose(backend.numpy(got.compute()), right, 1e-6)
        right = np.exp(np.log(x.astype("f8")).mean(axis, where=mask)).astype("f4")
        chosen = on_device(backend, mask, 7)
        got = geometric_mean(in_chunks(backend, x), axis, where=chosen)
        np.testing.assert_allclose(backend.numpy(got.compute()), right, 1e-6)


def test_a_record_of_real_numbers_refuses_others(backend):
    (x,) = backend.arrays(np.ones(3, "c8"))
    with pytest.raises(TypeError, match="^geometric_mean: dtype complex64 of a is not supported$"):
        geometric_mean(x)
    (x,) = backend.arrays(np.ones(3, "f4"))
    with pytest.raises(TypeError, match="^geometric_mean: dtype complex128 of the result is not supported$"):
        geometric_mean(x, dtype="c16")
