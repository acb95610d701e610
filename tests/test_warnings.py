"""The warnings of NumPy's functions come at the line of the call, whatever computes it, and as NumPy's come."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import gpuops
import gpuops.array_api as xp
from gpuops.call import launch_cache
from tests.host_blocks import small_blocks

NANS = np.full((2, 3), np.nan)
EMPTY = np.ones((0, 3))
#: Calls that warn: the op, its array and options.
CALLS: list[tuple[str, np.ndarray, dict[str, Any]]] = [
    *((op, NANS, {"axis": 1}) for op in ("nanmax", "nanmin", "nanmean", "nanvar", "nanstd")),
    ("mean", EMPTY, {"axis": 0}), ("mean", NANS, {"axis": 1, "where": NANS == NANS}), ("average", EMPTY, {"axis": 0}),
    ("var", NANS, {"axis": 1, "ddof": 3}), ("std", NANS, {"axis": 1, "ddof": 3}),
]  # fmt: skip
WORDS = "slice"  # in all of the warnings in question, but not in those of ufuncs


def told(call: Any, *args: Any, **options: Any) -> tuple[int, list[warnings.WarningMessage]]:
    """The line of a call, and the warnings of slices that it gave."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        call(*args, **options)
    return line, [each for each in found if WORDS in str(each.message)]


@pytest.mark.parametrize("op, x, options", CALLS)
def test_warnings_are_numpys_and_point_at_the_call(op, x, options):
    launch_cache.clear()
    _, (theirs,) = told(getattr(np, op), x, **options)
    for _ in ("a miss", "a hit"):
        line, (ours,) = told(getattr(gpuops, op), x, **options)
        assert ours.category is theirs.category
        assert str(ours.message).rstrip(".") == str(theirs.message).rstrip(".")  # NumPy's versions differ in the dot
        assert (ours.filename, ours.lineno) == (__file__, line)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("op", ["nanmax", "nanmean", "nanvar", "nanstd", "var", "mean_var"])
def test_blocks_warn_once_at_the_call(op, threads):
    x, options = np.full((60, 10), np.nan), {} if op.startswith("nan") else {"ddof": 10}
    launch_cache.clear()
    with small_blocks(threads):
        for _ in ("a miss", "a hit"):
            line, ours = told(getattr(gpuops, op), x, axis=1, **options)
            assert [(each.filename, each.lineno) for each in ours] == [(__file__, line)]


def test_the_standards_functions_warn_at_their_call():
    line, ours = told(xp.mean, EMPTY)
    assert [(each.filename, each.lineno) for each in ours] == [(__file__, line)]


def test_foreign_arrays_warn_at_the_call():
    class Foreign:
        def __dlpack__(self, **options):
            return NANS.__dlpack__(**options)

        def __dlpack_device__(self):
            return NANS.__dlpack_device__()

    line, ours = told(gpuops.nanmean, Foreign(), 1)
    assert [(each.filename, each.lineno) for each in ours] == [(__file__, line)]


def test_warnings_are_shown_once_for_each_line_by_default():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            gpuops.nanmax(NANS, axis=1)
        gpuops.nanmax(NANS, axis=1)
    assert len(found) == 2 and found[0].lineno + 1 == found[1].lineno


@pytest.mark.parametrize("op, x, options", CALLS)
def test_warnings_become_errors_where_asked(op, x, options):
    for _ in ("a miss", "a hit"):
        with warnings.catch_warnings(), pytest.raises(RuntimeWarning, match=WORDS):
            warnings.simplefilter("error")
            getattr(gpuops, op)(x, **options)


def test_warnings_of_blocks_become_errors_and_later_calls_are_as_before():
    x = np.full((60, 10), np.nan)
    with small_blocks(3):
        with warnings.catch_warnings(), pytest.raises(RuntimeWarning, match="empty slice"):
            warnings.simplefilter("error")
            gpuops.nanmean(x, axis=1)
        assert len(told(gpuops.nanmean, x, 1)[1]) == 1


def test_warnings_can_be_turned_off_for_the_module_that_calls():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=__name__)
        gpuops.nanmean(NANS, axis=1)
    assert not found


def test_numpys_own_functions_warn_as_before():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        np.nanmean(NANS, axis=1)
    assert [each.filename for each in found] == [__file__]


# ------------------------------------------------------------------------------------------------ floating-point errors

SOFTMAXES = ("softmax", "log_softmax", "logsumexp")
SHAPES = [(60, 8), (8, 60), (40, 3000), (3000, 40)]


def rows(shape: tuple[int, int], dtype: str, value: float = 1.0) -> np.ndarray:
    """Numbers far from each other; one of them is another value."""
    x = (np.random.default_rng(0).standard_normal(shape) * 30).astype(dtype)
    x[3, 2] *= value
    return x


def errors(call: Any, *args: Any, **options: Any) -> list[str]:
    """The warnings of floating-point errors that a call gives."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*args, **options)
    return [str(each.message) for each in found]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", SOFTMAXES)
def test_finite_results_raise_no_floating_point_errors(op, shape, dtype):
    """Powers that underflow are no error, nor is what a mask leaves out."""
    x, call = rows(shape, dtype), getattr(gpuops, op)
    mask = np.random.default_rng(1).random(shape) < 0.5
    mask[5] = False
    beyond = np.where(mask, x, np.inf).astype(dtype)
    with np.errstate(all="raise"):
        for axis in (0, 1, None):
            call(x, axis=axis)
            call(x, axis=axis, scale=0.5)
            call(beyond, axis=axis, where=mask)
            if op == "logsumexp":
                call(x, axis=axis, b=-2.0, return_sign=True)
                call(x, axis=axis, b=x)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", SOFTMAXES)
def test_floating_point_errors_are_scipys_once_and_as_the_caller_says(op, shape, value):
    special = pytest.importorskip("scipy.special", reason="SciPy is the reference")
    for dtype in ("f2", "f4", "f8"):
        x, call = rows(shape, dtype, value), getattr(gpuops, op)
        if value == -np.inf:
            x[3], x[:, 2] = value, value
        for axis in (0, 1, None):
            theirs = errors(getattr(special, op), x.astype("f8"), axis=axis)
            assert errors(call, x, axis=axis) == theirs
            with np.errstate(all="ignore"):
                assert errors(call, x, axis=axis) == []
            if theirs:
                with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="invalid value"):
                    call(x, axis=axis)


@pytest.mark.parametrize("length", [4, 4000])
@pytest.mark.parametrize("op", ["log_softmax", "logsumexp"])
def test_results_beyond_their_dtype_overflow_once(op, length):
    x = np.array([[1e6, 0.0], [2, 3]] * length)
    assert errors(getattr(gpuops, op), x, axis=1, dtype="f2") == ["overflow encountered in cast"]
    assert errors(getattr(gpuops, op), x - x, axis=1, dtype="f2") == []
