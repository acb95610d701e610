"""Counts, ranges, norms, sums of squares, and mean_var against NumPy, on every path."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from tests import layouts
from tests.budget import examples, pairs, round_robin
from tests.compare import accumulator_eps, assert_near, assert_same, magnitude, run, widened
from tests.layouts import BFLOAT16, BOOL, COMMON, DTYPES, LAYOUTS, inexact, lay_out, sample

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def squares(x: np.ndarray, **options: Any) -> Any:
    """The sum of squared magnitudes."""
    parts = [np.square(part) for part in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]
    return np.add.reduce(sum(parts), **options)


def real(dtype: Any) -> np.dtype:
    return np.empty(0, dtype).real.dtype


#: The norms' orders, among them two without a kernel of their own.
ORDERS = (2, 1, 0, np.inf, -np.inf, 3, 3.5)
#: Ops, and what each is of wider values.
OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "count_nonzero": (gpuops.count_nonzero, np.count_nonzero),
    "ptp": (gpuops.ptp, np.ptp),
    "sum_of_squares": (gpuops.sum_of_squares, squares),
    **{
        f"norm {order}": (partial(gpuops.vector_norm, ord=order), partial(np.linalg.vector_norm, ord=order))
        for order in ORDERS
    },
}
#: A shape and an axis for each way in which the kernels read.
REGIMES: dict[str, tuple[tuple[int, ...], Any]] = {
    "a row": ((300,), None),
    "a row of several blocks": ((160011,), None),
    "rows of a pack": ((700, 4), 1),
    "tiny rows": ((301, 3), 1),
    "short rows": ((300, 11), 1),
    "rows of a warp": ((40, 260), 1),
    "rows of a block": ((3, 9001), 1),
    "columns": ((70, 100), 0),
    "columns of several blocks": ((9000, 16), 0),
    "odd columns": ((90, 67), 0),
    "a middle axis": ((5, 40, 6), 1),
    "outer axes": ((5, 40, 6), (0, 2)),
    "a whole array": ((5, 40, 6), None),
    "no axis": ((7, 5), ()),
}


def result_dtype(op: str, x: np.dtype) -> np.dtype:
    """What the op gives for elements of a dtype."""
    if op == "count_nonzero":
        return np.dtype(np.int64)
    if op == "sum_of_squares":
        return real(np.add.reduce(np.empty(0, x)).dtype) if x.kind in "biu" else real(x)
    if op == "ptp":
        return x
    return np.dtype(np.float64) if x.kind in "biu" else real(x)


def check(backend: Any, op: str, x: np.ndarray, **options: Any) -> None:
    """gpuops' result must be that of wider values, rounded."""
    function, reference = OPS[op]
    got = run(backend, function, x, **options)
    options = {name: value for name, value in options.items() if name in ("axis", "keepdims")}
    dtype = result_dtype(op, x.dtype)
    if x.dtype.kind in "biu" and not op.startswith("norm"):
        values = x.astype(dtype) if op == "sum_of_squares" else x
        assert_same(got, np.asarray(reference(values, **options)).astype(dtype))
        return
    exact = np.asarray(reference(widened(x if inexact(x.dtype) else x.astype(dtype)), **options))
    assert (got.dtype, got.shape) == (dtype, exact.shape)
    if op == "count_nonzero":
        assert_same(got, exact)
        return
    length = max(x.size / max(exact.size, 1), 1)
    error = accumulator_eps(dtype) * (8 + length**0.5) * magnitude(exact)
    if op == "ptp" and x.dtype.kind == "c":  # whichever of several parts is NaN
        got, exact = (np.where(np.isnan(each), np.nan, each) for each in (got, exact))
    assert_near(got, exact, 4 * error)


def applies(op: str, dtype: Any) -> bool:
    """Whether the op has a value for a dtype."""
    return not (op == "ptp" and np.dtype(dtype) == bool)


@pytest.mark.parametrize("op", OPS)
@examples(20)
@given(data=st.data())
def test_agrees_with_numpy(backend, op, data):
    shape = data.draw(layouts.shapes().filter(lambda shape: 0 not in shape))
    dtype = data.draw(st.sampled_from([d for d in COMMON if applies(op, d)]))
    x = data.draw(layouts.arrays(shape, dtype))
    if op == "norm 3.5" and inexact(x.dtype):  # whose powers are not in range for all
        x[...] = np.where(np.isfinite(x) & (np.abs(x) > 1e-3), np.clip(x.real, -100, 100), 0)
    options = {"axis": data.draw(layouts.axes(len(shape))), "keepdims": data.draw(st.booleans())}
    name = "vector_norm" if op.startswith("norm") else op
    options["strategy"] = data.draw(st.sampled_from((None, *gpuops.strategies(name))))
    check(backend, op, x, **options)


@pytest.mark.parametrize("regime,op", pairs(REGIMES, [*OPS]))
def test_every_regime(backend, op, regime):
    shape, axis = REGIMES[regime]
    for dtype in some(backend, ["f4", "f2", "i1", "f8"], 1, [*REGIMES].index(regime)):
        check(backend, op, sample(shape, dtype), axis=axis)


@pytest.mark.parametrize("op", OPS)
def test_every_layout(backend, op):
    for layout in LAYOUTS:
        x = lay_out(sample((6, 30, 5), "f4"), layout)
        for axis in round_robin((None, 0, 1, 2), 2):
            check(backend, op, x, axis=axis)


def some(backend: Any, items: Any, count: int = 2, start: int = 0) -> list[Any]:
    """All items, or the next few on the emulator, which compiles for seconds."""
    return round_robin([*items], count, start) if backend.name.startswith("emulated") else [*items]


@pytest.mark.parametrize("op", OPS)
def test_every_dtype(backend, op):
    for dtype in some(backend, DTYPES, start=[*OPS].index(op)):
        if applies(op, dtype):
            for axis in (0, 1):
                check(backend, op, sample((5, 40), dtype), axis=axis)


@pytest.mark.parametrize("op", ["ptp", "sum_of_squares"])
@examples(30)
@given(data=st.data())
def test_out_takes_the_result(backend, op, data):
    shape = data.draw(layouts.shapes().filter(lambda shape: 0 not in shape))
    x = data.draw(layouts.arrays(shape, np.dtype(data.draw(st.sampled_from(["i4", "f4", "f8"])))))
    axis = data.draw(layouts.axes(len(shape)))
    dtype = result_dtype(op, x.dtype)
    kept = np.shape(np.sum(x, axis=axis))
    check(backend, op, x, axis=axis, out=data.draw(layouts.outs(kept, dtype, (x,))))


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "i2"])
def test_a_mask_chooses_the_squares_that_are_added(backend, dtype):
    x, mask = sample((30, 50), dtype), sample((30, 50), "?")
    for axis in (0, 1, None):
        got = run(backend, gpuops.sum_of_squares, x, axis=axis, where=mask)
        right = squares(np.where(mask, widened(x), 0), axis=axis)
        np.testing.assert_allclose(got.astype(right.dtype), right, rtol=2e-3 if dtype == "f2" else 1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8", BFLOAT16, "c8"], ids=str)
@pytest.mark.parametrize("shape,axis", [((3000,), None), ((40, 300), 1), ((300, 40), 0)], ids=str)
def test_euclidean_norms_neither_overflow_nor_vanish(device, dtype, shape, axis):
    info = ml_dtypes.finfo(real(dtype) if np.dtype(dtype).kind == "c" else dtype)
    values = np.random.default_rng(5).uniform(1, 2, shape)
    for power in (-int(info.nmant) - 100 if info.bits > 16 and info.bits < 64 else -120, 100):
        scale = 2.0 ** (power * (8 if info.bits == 64 else 1))
        x = (values * scale).astype(dtype)
        right = np.linalg.vector_norm(x.astype(np.complex256 if x.dtype.kind == "c" else np.longdouble), axis=axis)
        got = run(device, gpuops.vector_norm, x, axis=axis).astype(np.longdouble)
        np.testing.assert_allclose(got, right, rtol=16 * float(info.eps))


@pytest.mark.parametrize("order", [*range(1, 18), 40, 0.5, 2.5, 15.75, 16.5, -1, -2.5])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_norms_of_any_order(backend, dtype, order):
    x = np.random.default_rng(6).uniform(0.5, 1.5, (60, 40)).astype(dtype)
    x[0], x[1] = 1, -x[1]
    right = np.linalg.vector_norm(x.astype(np.complex256 if dtype == "c8" else np.longdouble), axis=1, ord=order)
    got = run(backend, gpuops.vector_norm, x, axis=1, ord=order)
    np.testing.assert_allclose(got, right.astype(real(dtype)), rtol=32 * float(np.finfo(dtype).eps))


def test_bad_orders_raise(backend):
    x = backend.array(np.ones(3, np.float32))
    for order, error, rule in (
        (1j, TypeError, "ord must be a real number, got 1j"), ("fro", ValueError, "ord 'fro' is not a vector norm"),
    ):  # fmt: skip
        with pytest.raises(error, match=f"^vector_norm: {rule}"):
            gpuops.vector_norm(x, ord=order)
    with pytest.raises(ValueError, match=r"^vector_norm: zero-size array of shape \(0,\) has no identity"):
        gpuops.vector_norm(backend.array(np.ones(0)), ord=-np.inf)


def test_norms_of_nothing_are_0(backend):
    for order in (2, 1, 0, 3, np.inf, None):
        assert backend.numpy(gpuops.vector_norm(backend.array(np.ones((0, 2))), axis=0, ord=order)).tolist() == [0, 0]


def test_ranges_are_of_something_that_has_differences(backend):
    with pytest.raises(TypeError, match="^ptp: dtype bool is not supported$"):
        gpuops.ptp(backend.array(np.ones(3, bool)))
    with pytest.raises(ValueError, match=r"^ptp: zero-size array of shape \(0, 2\) has no identity over axis \(0,\)$"):
        gpuops.ptp(backend.array(np.ones((0, 2))), axis=0)


def test_ranges_of_integers_wrap_around_and_those_of_nan_are_nan(backend):
    assert run(backend, gpuops.ptp, np.array([-128, 127], np.int8)) == -1
    assert np.isnan(run(backend, gpuops.ptp, np.array([1.0, np.nan, 3.0])))
    assert run(backend, gpuops.ptp, np.array([1.0, np.inf, np.inf])) == np.inf


@pytest.mark.parametrize("dtype", ["?", "i1"])
def test_counts_do_not_wrap_around_in_their_bytes(backend, dtype):
    x = np.ones((2**19, 16), dtype)
    x[:, 5] = 0
    for axis in (0, 1, None):
        np.testing.assert_array_equal(run(backend, gpuops.count_nonzero, x, axis=axis), np.count_nonzero(x, axis=axis))


@pytest.mark.parametrize("bits", [0x7E00, 0xFE00, 0x7C01, 0xFFFF])
def test_whatever_its_bits_nan_is_no_number(backend, bits):
    x = (np.arange(256 * 512) % 1000 / 64).astype(np.float16).reshape(256, 512)
    x[::3, ::2] = np.array(bits, np.uint16).view(np.float16)
    for axis in (0, 1):
        right = np.nansum(x.astype("f8"), axis=axis).astype("f2")
        np.testing.assert_array_equal(run(backend, gpuops.nansum, x, axis=axis), right)
        np.testing.assert_array_equal(run(backend, gpuops.ptp, x, axis=axis), np.ptp(x, axis=axis))


def test_counts_of_nan_and_of_both_zeros(backend):
    x = np.array([0.0, -0.0, np.nan, 1e-45, np.inf], np.float32)
    assert run(backend, gpuops.count_nonzero, x) == 3


# ------------------------------------------------------------------------------------------------------- two results


def test_mean_and_variance_are_those_of_mean_and_var(backend):
    for dtype in some(backend, DTYPES):
        check_both(backend, sample((30, 50), dtype))


def check_both(backend: Any, x: np.ndarray) -> None:
    """mean_var must give what mean and var give."""
    for options in ({"axis": 0}, {"axis": 1, "ddof": 1, "keepdims": True}, {"axis": None}, {"axis": (0, 1)}):
        mean, var = both = gpuops.mean_var(backend.array(x), **options)
        assert (both.mean is mean, both.var is var) == (True, True)
        others = options.items() - {("ddof", 1)}
        for got, right in ((mean, gpuops.mean(x, **dict(others))), (var, gpuops.var(x, **options))):
            got, right = backend.numpy(got), np.asarray(right)
            assert (got.dtype, got.shape) == (right.dtype, right.shape)
            rtol = 32 * accumulator_eps(right.dtype) + (float(ml_dtypes.finfo(right.dtype).eps))
            np.testing.assert_allclose(widened(got), widened(right), rtol=rtol, atol=rtol * float(np.abs(x).max()) ** 2)


@pytest.mark.parametrize("regime", REGIMES)
def test_mean_and_variance_in_every_regime(backend, regime):
    shape, axis = REGIMES[regime]
    for dtype in some(backend, ["f4", "c8", "f8"], 1, [*REGIMES].index(regime)):
        x = sample(shape, dtype)
        mask = sample(shape, "?")
        for where in (True, mask):
            given = where if where is True else backend.array(where)
            got = [backend.numpy(each) for each in gpuops.mean_var(backend.array(x), axis=axis, where=given)]
            wide = widened(x)
            right = np.mean(wide, axis=axis, where=where), np.var(wide, axis=axis, where=where)
            rtol = 64 * accumulator_eps(real(dtype))
            for one, other in zip(got, right, strict=True):
                np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def test_the_mean_of_infinities_is_infinite_and_their_variance_nan(backend):
    x = np.array([[1.0, np.inf, 2.0], [np.inf, 1.0, 2.0], [1.0, 2.0, 3.0]])
    mean, var = (backend.numpy(each) for each in gpuops.mean_var(backend.array(x), axis=1))
    np.testing.assert_array_equal(mean, [np.inf, np.inf, 2])
    np.testing.assert_allclose(var, [np.nan, np.nan, 2 / 3])


def test_mean_and_variance_of_nothing_are_nan(backend):
    for each in gpuops.mean_var(backend.array(np.zeros((0, 2))), axis=0):
        assert np.isnan(backend.numpy(each)).all()


def test_mean_var_refuses_what_var_refuses(backend):
    x = backend.array(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="^mean_var: dtype must be floating or complex, got int64$"):
        gpuops.mean_var(x, dtype=np.int64)
    with pytest.raises(ValueError, match="^mean_var: give ddof or correction, not both"):
        gpuops.mean_var(x, ddof=1, correction=2)
    with pytest.raises(np.exceptions.AxisError, match="^mean_var: axis 1 is out of range"):
        gpuops.mean_var(x, axis=1)


EXTREMES = {"max": np.argmax, "min": np.argmin}


@pytest.mark.parametrize("op", EXTREMES)
@examples(60)
@given(data=st.data())
def test_maxima_come_with_their_indices(backend, op, data):
    shape = data.draw(layouts.shapes().filter(lambda shape: 0 not in shape))
    x = data.draw(layouts.arrays(shape, data.draw(st.sampled_from(COMMON))))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1) if shape else st.none())
    keepdims = data.draw(st.booleans())
    strategy = data.draw(st.sampled_from((None, *gpuops.strategies("max_with_index"))))
    there, function = backend.array(x), getattr(gpuops, f"{op}_with_index")
    found = function(there, axis=axis, keepdims=keepdims, strategy=strategy)
    assert found._fields == ("values", "indices")
    values, indices = map(backend.numpy, found)
    with np.errstate(invalid="ignore"):
        assert_same(indices, np.asarray(EXTREMES[op](x, axis=axis, keepdims=keepdims), np.int64))
        assert_same(values, getattr(np, op)(x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("regime", [name for name, (_, axis) in REGIMES.items() if not isinstance(axis, tuple)])
def test_maxima_with_indices_in_every_regime(backend, regime):
    shape, axis = REGIMES[regime]
    for dtype in some(backend, ["f4", "i1", "f8", "f2"], 1, [*REGIMES].index(regime)):
        check_maxima(backend, (sample(shape, "f4") * 3).astype(dtype), axis)


def check_maxima(backend: Any, x: np.ndarray, axis: Any) -> None:
    """max_with_index must give what max and argmax give."""
    values, indices = map(backend.numpy, gpuops.max_with_index(backend.array(x), axis=axis))
    assert_same(values, np.max(x, axis=axis))
    assert_same(indices, np.asarray(np.argmax(x, axis=axis), np.int64))


def test_maxima_with_indices_take_one_axis(backend):
    x = backend.array(np.zeros((2, 3)))
    for axis in ((0, 1), 1.0):
        with pytest.raises(TypeError, match="^max_with_index: axis must be"):
            gpuops.max_with_index(x, axis=axis)
    with pytest.raises(ValueError, match="^min_with_index: there is nothing to search"):
        gpuops.min_with_index(backend.array(np.zeros((0, 3))), axis=0)


SEARCHES = {"nanargmax": np.nanargmax, "nanargmin": np.nanargmin}


@pytest.mark.parametrize("op", SEARCHES)
def test_searches_pass_over_nan(backend, op):
    for dtype in some(backend, ["f2", "c8", BFLOAT16, "f4", "i2", "f8", "?"]):
        check_search(backend, op, dtype)


def check_search(backend: Any, op: str, dtype: Any) -> None:
    """nanargmax and nanargmin must find what NumPy's find."""
    x = (sample((40, 70), "f4") * 2).astype(dtype)
    if inexact(x.dtype):
        x[1:, ::3], x[3, :69], x[4, 1:] = np.nan, np.nan, np.nan
        x[4, 0] = -np.inf if op == "nanargmax" else np.inf
        x[3, 69] = 1  # (NumPy's own would find NaN before an infinity that loses)
    right = x.astype("f4") if x.dtype == BFLOAT16 else x
    for axis in (0, 1, None):
        got = run(backend, getattr(gpuops, op), x, axis=axis)
        assert_same(got, np.asarray(SEARCHES[op](right, axis=axis), np.int64))


@pytest.mark.parametrize("op", SEARCHES)
def test_nothing_but_nan_has_no_index(backend, op):
    x = backend.array(np.array([[np.nan, np.nan], [1.0, np.nan]]))
    if backend.name == "cpu":
        for _ in ("a miss", "a hit"):
            with pytest.raises(ValueError, match=rf"^{op}: All-NaN slice encountered along axis \(1,\)$"):
                getattr(gpuops, op)(x, axis=1)
    else:
        assert backend.numpy(getattr(gpuops, op)(x, axis=1)).tolist() == [-1, 0]


# ------------------------------------------------------------------------------------------------------- two operands


def test_averages_weigh_elements(backend):
    for dtype in some(backend, DTYPES):
        check_average(backend, dtype)


def check_average(backend: Any, dtype: Any) -> None:
    """Averages of elements with weights of the same shape and of axes must be NumPy's."""
    x, weights = sample((20, 30), dtype), np.abs(sample((20, 30), "f4")) + 1
    weights = weights.astype(dtype) if inexact(np.dtype(dtype)) else weights
    wide, heavy = widened(x), widened(weights)
    for axis, part in ((None, ...), (0, ...), (1, ...), (0, (slice(None), 0)), (1, 0), ((0, 1), ...)):
        given, right = weights[part], heavy[part]
        got, total = gpuops.average(*backend.arrays(x), axis, backend.array(given), True)
        exact, exact_total = np.average(wide, axis, right, True)
        for one, other in ((got, exact), (total, exact_total)):
            one = backend.numpy(one)
            assert one.dtype == (np.result_type(x, weights) if inexact(x.dtype) else np.float64)
            eps = max(accumulator_eps(one.dtype), float(ml_dtypes.finfo(one.dtype).eps))
            np.testing.assert_allclose(widened(one), other, rtol=40 * eps, atol=40 * eps * np.abs(wide).max())
        alone = backend.numpy(gpuops.average(*backend.arrays(x), axis, backend.array(given)))
        np.testing.assert_array_equal(alone, backend.numpy(got))


def test_averages_without_weights_are_means(backend):
    x = backend.array(sample((20, 30), "f4"))
    np.testing.assert_array_equal(backend.numpy(gpuops.average(x, 1)), backend.numpy(gpuops.mean(x, 1)))
    found = gpuops.average(x, 1, returned=True, keepdims=True)
    assert found._fields == ("average", "weights")
    np.testing.assert_array_equal(backend.numpy(found.weights), np.full((20, 1), 30, np.float32))
    np.testing.assert_allclose(backend.numpy(found.average)[:, 0], backend.numpy(gpuops.mean(x, 1)), rtol=1e-5)


def test_weights_must_fit(backend):
    x, row, column = backend.arrays(np.ones((2, 3)), np.ones(3), np.ones(2))
    with pytest.raises(TypeError, match=r"^average: weights of shape \(3,\) for a of shape \(2, 3\) require an axis$"):
        gpuops.average(x, weights=row)
    with pytest.raises(ValueError, match=r"^average: weights of shape \(2,\) match neither a's shape \(2, 3\) nor"):
        gpuops.average(x, 1, column)


def test_weights_that_add_up_to_nothing(backend):
    x, weights = backend.arrays(np.ones(3), np.array([1.0, -1.0, 0.0]))
    if backend.name == "cpu":
        with pytest.raises(ZeroDivisionError, match="^average: Weights sum to zero"):
            gpuops.average(x, weights=weights)
    else:
        assert np.isnan(backend.numpy(gpuops.average(x, weights=weights)))


def truth(backend: Any, result: Any) -> bool:
    """A result without dims, as ``bool()`` gives it; that of NumPy arrays is a bool, as NumPy's."""
    if backend.name == "cpu":
        assert type(result) is bool
        return result
    assert backend.numpy(result).dtype == bool
    assert backend.numpy(result).shape == ()
    return bool(result)


@pytest.mark.parametrize("shape", [(), (1,), (40,), (7, 130), (9000, 3), (0, 4)], ids=str)
def test_equal_arrays(backend, shape):
    for dtype in some(backend, DTYPES):
        check_equal(backend, shape, dtype)


def check_equal(backend: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """An array is equal to its copies, and to nothing that differs anywhere."""
    x = sample(shape, dtype)
    for y in (x, x.copy(), x.copy("F")):
        assert truth(backend, gpuops.array_equal(*backend.arrays(x, y)))
    for at in (0, -1, x.size // 2) if x.size else ():
        y = x.copy()
        y.flat[at] = not y.flat[at] if dtype in BOOL else y.flat[at] + y.dtype.type(1)
        assert not truth(backend, gpuops.array_equal(*backend.arrays(x, y)))
    assert not truth(backend, gpuops.array_equal(*backend.arrays(x, np.zeros((*shape, 2), dtype))))


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_one_bit_makes_arrays_unequal(backend, dtype):
    x = sample((64, 64), dtype)
    for at in range(0, x.size, 61):
        y = x.copy()
        y.flat[at] ^= 1 << at % (8 * x.itemsize)
        assert not truth(backend, gpuops.array_equal(*backend.arrays(x, y)))


def test_all_bytes_but_0_are_true(backend):
    x = np.arange(4096, dtype=np.uint8)
    y = np.where(x > 0, x[::-1] | 1, x)
    assert truth(backend, gpuops.array_equal(*backend.arrays(x.view(bool), y.view(bool))))
    y[7] = 0
    assert not truth(backend, gpuops.array_equal(*backend.arrays(x.view(bool), y.view(bool))))


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8"])
def test_nan_may_be_equal_to_nan(backend, dtype):
    x = sample((9, 50), dtype)
    x[3, 7] = np.nan
    there = backend.arrays(x, x.copy())
    assert not truth(backend, gpuops.array_equal(*there))
    assert truth(backend, gpuops.array_equal(*there, equal_nan=True))
    assert not truth(backend, gpuops.allclose(*there))
    assert truth(backend, gpuops.allclose(*there, equal_nan=True))


def test_large_integers_are_compared_as_they_are(device):
    for a, b in ((2**63, -(2**63)), (2**63 + 1, 2**63), (2**53 + 1, 2**53)):
        x = np.array([a], np.uint64)
        y = np.array([b], np.int64 if b < 2**63 else np.uint64)
        assert not truth(device, gpuops.array_equal(*device.arrays(x, y)))
    assert truth(device, gpuops.array_equal(*device.arrays(np.array([7], np.uint64), np.array([7], np.int8))))


@pytest.mark.parametrize("pair", [("f4", "f4"), ("f2", "f2"), ("f8", "f4"), ("i4", "f8"), ("i2", "i2"), ("c8", "c8")])
@examples(60)
@given(data=st.data())
def test_close_arrays(backend, pair, data):
    shape = data.draw(layouts.shapes())
    x = data.draw(layouts.arrays(shape, np.dtype(pair[0])))
    apart = data.draw(st.sampled_from([0, 1e-9, 1e-6, 1e-5, 1e-3, 1]))
    y = np.asarray(x * (1 + apart)).astype(pair[1])
    if data.draw(st.booleans()) and x.ndim:
        y = y[:1]
    options = {"rtol": data.draw(st.sampled_from([1e-5, 0, 1e-3])), "atol": data.draw(st.sampled_from([1e-8, 0, 0.5]))}
    options["equal_nan"] = data.draw(st.booleans())
    right = np.allclose(x, y, **options)
    if x.dtype.kind == "c":  # whose magnitudes are rounded otherwise
        (rtol, atol, nans), near = options.values(), [0.99, 1.01]
        if len({np.allclose(x, y, rtol * factor, atol * factor, nans) for factor in near}) > 1:
            return
    assert truth(backend, gpuops.allclose(*backend.arrays(x, y), **options)) == right


def test_close_to_a_number(backend):
    x = backend.array(np.full((30, 40), 0.1, np.float32))
    assert truth(backend, gpuops.allclose(x, 0.1))
    assert not truth(backend, gpuops.allclose(x, 1))
    assert not truth(backend, gpuops.allclose(np.inf, x))


def test_infinities_are_close_if_they_are_equal(backend):
    x = np.array([np.inf, -np.inf, 1.0])
    assert truth(backend, gpuops.allclose(*backend.arrays(x, x.copy())))
    assert not truth(backend, gpuops.allclose(*backend.arrays(x, -x)))
    assert not truth(backend, gpuops.allclose(*backend.arrays(np.ones(1), np.array([np.inf])), rtol=1))


def test_bad_tolerances_raise(backend):
    x = backend.array(np.ones(3))
    with pytest.raises(TypeError, match="^allclose: rtol must be a real number, got 'x'$"):
        gpuops.allclose(x, x, rtol="x")
    with pytest.raises(ValueError, match=r"^allclose: shapes \(3,\), \(2,\) do not broadcast$"):
        gpuops.allclose(x, backend.array(np.ones(2)))


# ------------------------------------------------------------------------------------------------------------- Dask


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["f4", "i2", "c8"])
def test_dask_arrays(op, dtype):
    da = pytest.importorskip("dask.array", reason="needs Dask")
    function, x = OPS[op][0], sample((20, 30), dtype)
    for axis, keepdims in ((0, False), (1, True), (None, False), ((0, 1), True)):
        got = function(da.from_array(x, (7, 11)), axis=axis, keepdims=keepdims)
        right = np.asarray(function(x, axis=axis, keepdims=keepdims))
        assert isinstance(got, da.Array)
        assert (got.dtype, got.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(got.compute(), right, rtol=1e-5)


def test_dask_arrays_with_two_results():
    da = pytest.importorskip("dask.array", reason="needs Dask")
    x = sample((20, 30), "f4")
    lazy = da.from_array(x, (7, 11))
    for options in ({"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": None}):
        for op in ("mean_var", "max_with_index", "min_with_index"):
            got, right = getattr(gpuops, op)(lazy, **options), getattr(gpuops, op)(x, **options)
            assert type(got) is type(right)
            for one, other in zip(got, right, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one.compute(), other, rtol=1e-5, atol=1e-6)


def test_two_dask_arrays():
    da = pytest.importorskip("dask.array", reason="needs Dask")
    x, weights = sample((20, 30), "f4"), np.abs(sample((20, 30), "f4", seed=3)) + 1
    lazy, heavy = da.from_array(x, (7, 11)), da.from_array(weights, (7, 11))
    for axis in (0, 1, None):
        got, total = gpuops.average(lazy, axis, heavy, True)
        right, right_total = np.average(x, axis, weights, True)
        np.testing.assert_allclose(got.compute(), right, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(total.compute(), right_total, rtol=1e-5)
    np.testing.assert_allclose(
        gpuops.average(lazy, 1, weights[0]).compute(), np.average(x, 1, weights[0]), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(gpuops.average(lazy, 1).compute(), np.mean(x, 1), rtol=1e-5)
    got, total = gpuops.average(lazy, 1, returned=True)
    np.testing.assert_allclose(got.compute(), np.mean(x, 1), rtol=1e-5)
    np.testing.assert_array_equal(total.compute(), np.full(20, 30, np.float32))


def test_norms_of_half_types_in_chunks_are_rounded_once():
    da = pytest.importorskip("dask.array", reason="needs Dask")
    x = np.random.default_rng(7).uniform(1, 2, (40, 600)).astype(np.float16)
    got = gpuops.vector_norm(da.from_array(x, (40, 7)), axis=1)
    right = np.linalg.vector_norm(x.astype(np.float64), axis=1).astype(np.float16)
    np.testing.assert_array_equal(got.compute(), right)


def test_comparisons_of_dask_arrays():
    da = pytest.importorskip("dask.array", reason="needs Dask")
    x = sample((20, 30), "f4")
    lazy = da.from_array(x, (7, 11))
    for y, near in ((x, True), (x + 1, False)):
        for op in ("array_equal", "allclose"):
            got = getattr(gpuops, op)(lazy, da.from_array(y, (20, 5)))
            assert isinstance(got, da.Array)
            assert bool(got.compute()) is near
    assert not bool(gpuops.array_equal(lazy, lazy[:5]).compute())


