"""rms_norm against its formula in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.lib.array_utils import normalize_axis_tuple

import gpuops
from gpuops.call.dispatch import describe
from gpuops.plan.work import Machine, new_array
from tests.compare import accumulator_eps, assert_bits, assert_near, run, widened
from tests.layouts import BFLOAT16, FLOATS, LAYOUTS, lay_out, sample, smallest_subnormal

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DTYPES = (*FLOATS, np.dtype("i4"), np.dtype("u1"), np.dtype("?"))


def computed_in(x: np.ndarray, dtype: Any = None) -> np.dtype:
    """The dtype of the computation."""
    floating = x.dtype if x.dtype in FLOATS else np.dtype(np.float64)
    return max(np.dtype(np.float32), floating, np.dtype(dtype or floating), key=lambda d: (d.itemsize, d.kind == "f"))


def check(
    backend: Any, x: np.ndarray, axis: Any = -1, out: np.ndarray | None = None, where: Any = True, eps: Any = None,
    **options: Any,
) -> np.ndarray:  # fmt: skip
    """Compare a result with the formula."""
    more = {"where": where} if where is not True else {}
    given = x.copy()  # (out may be x)
    got = run(backend, gpuops.rms_norm, x, axis=axis, out=out, eps=eps, **more, **options)
    exact, val = formula(given, axis, where, eps, options.get("dtype"))
    if out is None:
        assert got.dtype == (options.get("dtype") or (x.dtype if x.dtype in FLOATS else np.float64))
    error = accumulator_eps(val) * (8 + math.sqrt(x.size)) * np.where(np.isfinite(exact), np.abs(exact), 1)
    assert_near(got, exact, error + 4 * smallest_subnormal(val))
    return got


def formula(x: np.ndarray, axis: Any, where: Any, eps: Any, dtype: Any) -> tuple[np.ndarray, np.dtype]:
    """x / sqrt(mean(x * x) + eps) of the elements that take part, and the dtype of the computation."""
    val = computed_in(x, dtype)
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    mask = np.broadcast_to(where, x.shape)
    values = np.where(mask, widened(x).astype(np.longdouble), 0)
    eps = np.finfo(val).eps if eps is None else eps
    with np.errstate(all="ignore"):
        count = np.sum(mask, axis=axes, keepdims=True)
        mean = np.sum(values * values, axis=axes, keepdims=True) / count
        return np.where(mask, values / np.sqrt(mean + np.longdouble(eps)), 0).astype(np.float64), val


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_axes_of_any_layout(backend, dtype, layout):
    x = lay_out(sample((5, 37, 24), dtype, 1), layout)
    for axis in (-1, 0, 1, (0, 2), (1, 2), (0, 1, 2), (), None):
        check(backend, x, axis)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 37, 24), (3, 1000), (2, 9000), (700, 40)], ids=str)
def test_masked_elements_do_not_count_and_become_0(backend, shape, dtype):
    x = sample(shape, dtype, 2)
    mask = sample(shape, "?", 3)
    mask[0] = False
    for axis in (-1, 0, None):
        got = check(backend, x, axis, where=mask)
        assert not got[~mask].any()
    check(backend, x, -1, where=mask[..., :1])
    assert not run(backend, gpuops.rms_norm, x, where=np.zeros(shape, bool)).any()


#: Of each size class of the planners: lanes, warps, a block, staged, a cluster or several blocks, beyond the chip.
SIZES = (1, 2, 3, 31, 64, 257, 1000, 4099, 12288, 70001)


@pytest.mark.parametrize("dtype", [*FLOATS, np.dtype("i4")], ids=str)
@pytest.mark.parametrize("cols", SIZES)
def test_rows_and_columns_of_every_size(backend, cols, dtype):
    rows = 3 if cols > 1000 else 40
    check(backend, sample((rows, cols), dtype, 4))
    check(backend, sample((cols, rows), dtype, 5), 0)


@pytest.mark.parametrize("strategy", [*gpuops.strategies("rms_norm")])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_every_strategy(backend, strategy, dtype):
    for shape, axis in (((3, 300), 1), ((300, 24), 0)):
        check(backend, sample(shape, dtype, 6), axis, strategy=strategy)
        check(backend, sample(shape, dtype, 6) * np.asarray(2e-4, dtype), axis, strategy=strategy, eps=1e-5)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8"), BFLOAT16], ids=str)
@pytest.mark.parametrize("shape,axis", [((3, 200), 1), ((4, 9000), 1), ((500, 40), 0), ((3, 50, 7), 1)], ids=str)
def test_squares_neither_overflow_nor_vanish(backend, shape, axis, dtype):
    x, mask = sample(shape, np.float32, 7).astype(np.float64), sample(shape, "?", 8)
    for exponent in (125, 100, 40, -40, -100, -120):
        factor = 2.0 ** (exponent * (8 if dtype == "f8" else 1))
        large = (x * factor / 8).astype(dtype)
        for eps in (None, 0, 1e-30):
            check(backend, large, axis, eps=eps)
            check(backend, large, axis, eps=eps, where=mask)
    mixed = x.copy()
    mixed[::2] *= 2.0**100
    mixed[1::2] *= 2.0**-100
    check(backend, mixed.astype(dtype), axis, eps=0)


def test_the_largest_and_the_smallest_numbers(backend):
    for dtype in ("f4", "f8"):
        info = np.finfo(dtype)
        for value in (info.max, info.tiny):
            for shape, axis in (((2, 100), 1), ((100, 2), 0), ((1, 9000), 1)):
                got = run(backend, gpuops.rms_norm, np.full(shape, value, dtype), axis=axis, eps=0)
                np.testing.assert_allclose(got, np.ones(shape), rtol=8 * info.eps)


@pytest.mark.parametrize("shape,axis", [((3, 200), 1), ((4, 9000), 1), ((500, 40), 0)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_and_infinity(backend, shape, axis, dtype):
    x = np.moveaxis(sample(shape, dtype, 8), axis, -1)
    x[0, 5], x[1, 7], x[2, 3] = np.nan, np.inf, 0
    x[2] = 0
    x = np.moveaxis(x, -1, axis)
    for eps in (None, 0):
        check(backend, x, axis, eps=eps)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtype_and_out(backend, dtype):
    x = sample((6, 300), dtype, 9)
    for result in FLOATS:
        check(backend, x, dtype=result)
        check(backend, x, out=np.empty((300, 6), result).T, dtype=result)
    check(backend, x, out=np.empty((6, 301), np.float64)[:, 1:])


@pytest.mark.parametrize("shape,axis", [((6, 300), 1), ((3, 9000), 1), ((300, 12), 0), ((40, 50), None)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_in_place_and_overlapping(backend, shape, axis, dtype):
    x = sample(shape, dtype, 10)
    expected = gpuops.rms_norm(x, axis)
    there = backend.array(x)
    assert gpuops.rms_norm(there, axis, out=there) is there
    exact, val = formula(x, axis, True, None, None)
    assert_near(backend.numpy(there), exact, accumulator_eps(val) * (8 + math.sqrt(x.size)) * (np.abs(exact) + 1e-30))
    both = backend.array(np.concatenate([x, x]))
    gpuops.rms_norm(both[: len(x)], axis, out=both[1 : len(x) + 1])
    assert_near(backend.numpy(both[1 : len(x) + 1]), widened(expected), 16 * accumulator_eps(val) * (np.abs(exact) + 1))


def test_empty_arrays(backend):
    for shape, axis in (((0, 5), 1), ((5, 0), 1), ((5, 0), 0), ((0,), None)):
        assert run(backend, gpuops.rms_norm, np.empty(shape, np.float32), axis=axis).shape == shape


def test_a_number(backend):
    assert run(backend, gpuops.rms_norm, np.full((1,), -3.0, np.float32), eps=0) == -1
    for axis in (None, ()):
        found = run(backend, gpuops.rms_norm, np.array(-3.0, np.float16), axis=axis, eps=0)
        assert (found, found.shape, found.dtype) == (-1, (), np.float16)
        assert run(backend, gpuops.rms_norm, np.array(-3.0, np.float32), axis=axis, where=np.array(False)) == 0


def test_any_number_of_threads_gives_the_same_bits():
    from tests.host_blocks import small_blocks

    x = sample((300, 1000), "f4", 11)
    for axis in (0, 1, None):
        found = []
        for count in (1, 2, 5):
            with small_blocks(count, "numpy"):
                found.append(gpuops.rms_norm(x, axis))
        assert_bits(found[1], found[0])
        assert_bits(found[2], found[0])


@pytest.mark.parametrize(
    "eps,kind,message",
    [
        (-1.0, ValueError, "eps must not be negative, got -1.0"), ("1", TypeError, "eps must be a real number, got "),
        (math.nan, ValueError, "eps must not be negative"), (1j, TypeError, "eps must be a real number"),
    ],
)  # fmt: skip
def test_eps_is_a_real_number_and_not_negative(backend, eps, kind, message):
    with pytest.raises(kind, match=f"^rms_norm: {message}"):
        gpuops.rms_norm(backend.array(np.ones(3, np.float32)), eps=eps)


def test_eps_is_by_default_that_of_the_computation(backend):
    x = np.full((1, 4), 1e-4, np.float32)
    for dtype, eps in (("f4", 2.0**-23), ("f2", 2.0**-23), ("f8", 2.0**-52)):
        got = run(backend, gpuops.rms_norm, x.astype(dtype))
        value = float(x.astype(dtype)[0, 0])
        np.testing.assert_allclose(got, value / math.sqrt(value**2 + eps), rtol=2e-3 if dtype == "f2" else 1e-6)


@pytest.mark.parametrize(
    "shape,axis,strategy",
    [((4096, 256), 1, "rows"), ((64, 2**20), 1, "grid"), ((4096, 4096), 0, "columns"), ((2**28,), 0, "grid_online")],
)
def test_rows_are_held_on_chip(shape, axis, strategy):
    x = new_array("x", shape, np.dtype("f4"), machine=Machine(132, cluster=16, shared=227 * 1024, together=132))
    work = describe(gpuops.rms_norm, x, axis=axis)
    assert work.plan is not None and work.plan.strategy == strategy
    masked = describe(gpuops.rms_norm, x, axis=axis, where=x._replace(dtype=np.dtype(bool)))
    assert masked.plan is not None and masked.plan.strategy == "grid_online"  # which counts the elements that take part


def test_kernels_on_chip_take_no_mask(device):
    x = device.array(np.ones((4, 8), np.float32))
    with pytest.raises(ValueError, match="rms_norm: strategy 'rows' takes no mask"):
        gpuops.rms_norm(x, strategy="rows", where=x > 0)


@pytest.mark.turns(8)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_dask_arrays_of_several_chunks_along_the_axis(backend, dtype, masked):
    chunks = pytest.importorskip("tests.chunks", reason="needs Dask")
    x = sample((12, 50), dtype, 12)
    mask = sample((12, 50), "?", 13) if masked else True
    if masked:
        mask[3] = False
    for lengths in ((5, 7), (12, 20), (4, 50)):
        lazy = chunks.on_device(backend, x, lengths)
        where = chunks.on_device(backend, mask, lengths) if masked else True
        for axis in (0, 1, None):
            found = backend.numpy(gpuops.rms_norm(lazy, axis, where=where).compute())
            exact, val = formula(x, axis, mask, None, None)
            assert_near(found, exact, accumulator_eps(val) * 40 * (np.abs(exact) + 1e-30))


def test_dask_arrays_of_large_and_small_numbers(backend):
    chunks = pytest.importorskip("tests.chunks", reason="needs Dask")
    x = np.array([[1e30, 2e30, 3e30, 0], [1e-30, -2e-30, 3e-30, 1e-30], [1e30, 1e-30, 0, 0]], np.float32)
    found = backend.numpy(gpuops.rms_norm(chunks.on_device(backend, x, (2, 2)), eps=0).compute())
    exact, _ = formula(x, -1, True, 0, None)
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-40)
