"""Reductions of NumPy arrays that NumPy makes in several passes: in blocks of results, on threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call.dispatch import describe
from gpuops.host import block_results
from gpuops.plan.work import new_array
from tests import layouts
from tests.budget import examples
from tests.compare import assert_bits
from tests.host_blocks import settings
from tests.layouts import BFLOAT16, LAYOUTS, lay_out, sample

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Ops that take blocks of results, each as a function of an array and options.
OPS: dict[str, Any] = {
    name: getattr(gpuops, name)
    for name in (
        "argmax", "argmin", "nanargmax", "nanargmin", "max_with_index", "min_with_index", "var", "std", "nanvar",
        "nanstd", "nansum", "nanprod", "nanmean", "nanmax", "nanmin", "mean_var", "count_nonzero", "ptp",
        "sum_of_squares", "vector_norm",
    )
} | {
    "vector_norm, order 3": partial(gpuops.vector_norm, ord=3),
    "average": lambda x, **options: gpuops.average(x, weights=np.abs(x) + 1, returned=True, **options),
}  # fmt: skip
MASKED = ("var", "nanstd", "nansum", "nanmean", "mean_var", "sum_of_squares")


@contextmanager
def small_blocks(count: int) -> Iterator[None]:
    """Small arrays are reduced in blocks, on so many threads."""
    with settings(block_results, count, LARGE=1, BLOCK=24, ACROSS=2):
        yield


def assert_equal_bits(found: Any, expected: Any) -> None:
    """The results of two calls, which may be named tuples, are the same to the bit."""
    assert type(found) is type(expected)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        assert_bits(np.asarray(one), np.asarray(other))


def is_in_blocks(x: np.ndarray, op: Any, **options: Any) -> bool:
    """Whether the engine reduces such an array in blocks."""
    spec = new_array("a", x.shape, x.dtype)._replace(strides=x.strides)
    work = describe(op, spec, **options)
    assert work.host is not None
    return work.host.function is block_results.reduce


@pytest.mark.parametrize("op", OPS)
@examples(40)
@given(data=st.data())
def test_blocks_agree_with_the_whole(op, data):
    shape = data.draw(layouts.shapes(max_dims=4).filter(lambda shape: shape and 0 not in shape))
    x = data.draw(layouts.arrays(shape, np.dtype(data.draw(st.sampled_from(["f4", "f8", "f2", "i4", "u1"])))))
    if op.startswith("nanarg") and x.dtype.kind == "f":
        x = np.nan_to_num(x)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    options = {"axis": axis, "keepdims": data.draw(st.booleans())}
    expected = OPS[op](x, **options)
    with small_blocks(data.draw(st.sampled_from((1, 3)))):
        found = OPS[op](x, **options)
    assert type(found) is type(expected)
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        near = 8 * np.finfo(one.dtype).eps if one.dtype.kind == "f" else 0  # of repeated elements, the order differs
        np.testing.assert_allclose(one, other, rtol=near, atol=near)


@pytest.mark.parametrize("op", MASKED)
@pytest.mark.parametrize("shape", [(6, 8, 10), (1, 8, 10), (1, 1, 10), (6, 1, 1)])
def test_masks_are_parted_too(op, shape):
    x, mask = sample((6, 8, 10), "f4"), sample(shape, "?")
    for axis in range(3):
        call, found = partial(OPS[op], x, axis=axis, where=mask), []
        for count in (1, 3):
            with small_blocks(count):
                found.append(call())
        assert_equal_bits(*found)
        np.testing.assert_allclose(found[0], call(), rtol=1e-5)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_of_every_layout_on_any_number_of_threads(op, layout):
    x = lay_out(sample((6, 8, 10), "f4"), layout)
    for axis in range(3):
        expected = OPS[op](x, axis=axis)
        for count in (1, 2, 5):
            with small_blocks(count):
                assert_equal_bits(OPS[op](x, axis=axis), expected)


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "c8", "?", "i8"], ids=str)
def test_blocks_of_other_dtypes(dtype):
    x = sample((40, 30), dtype)
    for op in ("argmax", "nansum", "count_nonzero", "vector_norm", "max_with_index", "nanvar"):
        expected = OPS[op](x, axis=1)
        with small_blocks(2):
            assert_equal_bits(OPS[op](x, axis=1), expected)


def test_out_is_written_and_may_overlap():
    x = sample((40, 30), "f4")
    expected = np.var(x, axis=1)
    with small_blocks(2):
        out = x[:, 0]
        assert gpuops.var(x, axis=1, out=out) is out
    assert_bits(out, expected)


def test_rows_of_only_nan_raise_and_leave_out_unchanged():
    x, out = sample((40, 30), "f4"), np.full(40, 7)
    x[33] = np.nan
    with small_blocks(3), pytest.raises(ValueError, match="^nanargmax: All-NaN slice"):
        gpuops.nanargmax(x, axis=1, out=out)
    assert (out == 7).all()


def test_columns_are_parted_only_where_numpy_lays_them_out_anew():
    x = np.zeros((64, 64), np.float32)
    with small_blocks(2):
        assert is_in_blocks(x, gpuops.var, axis=1)
        assert not is_in_blocks(x, gpuops.var, axis=0)
        assert is_in_blocks(x, gpuops.argmax, axis=0)
        assert not is_in_blocks(x, gpuops.argmax)


def test_one_thread_takes_blocks_only_where_numpy_passes_over_memory_again():
    x = np.zeros((64, 64), np.float32)
    with small_blocks(1):
        assert is_in_blocks(x, gpuops.nansum, axis=1)
        assert not is_in_blocks(x, gpuops.nanmax, axis=1)
        assert not is_in_blocks(x, gpuops.argmax, axis=1)
        assert is_in_blocks(x, gpuops.nanargmax, axis=1)
    with small_blocks(2):
        assert is_in_blocks(x, gpuops.nanmax, axis=1)


def test_small_arrays_are_numpys():
    assert not is_in_blocks(np.zeros((64, 64), np.float32), gpuops.var, axis=1)
    assert is_in_blocks(np.zeros((2048, 1024), np.float32), gpuops.var, axis=1)
