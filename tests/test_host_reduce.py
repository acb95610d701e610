"""Reductions of NumPy arrays in blocks: the same as of the whole, on any number of threads, with and without Numba."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.host import reduce
from tests import layouts
from tests.budget import examples
from tests.compare import assert_bits
from tests.conftest import Cpu
from tests.host_blocks import ENGINES, small_blocks
from tests.layouts import BFLOAT16, LAYOUTS, lay_out, sample
from tests.ops import REDUCTIONS
from tests.test_reduce import calls, check_run

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


def assert_equal_bits(found: Any, expected: Any) -> None:
    """The results of two calls, which may be named tuples, are the same to the bit."""
    assert type(found) is type(expected)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        assert_bits(np.asarray(one), np.asarray(other))


def assert_near(found: Any, expected: Any) -> None:
    """The results of two calls differ by how often sums were rounded."""
    assert type(found) is type(expected)
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        near = 16 * np.finfo(one.dtype).eps if one.dtype.kind in "fc" else 0
        np.testing.assert_allclose(one, other, rtol=near, atol=near)


@pytest.mark.turns(2, everywhere=True)
@pytest.mark.parametrize("op", REDUCTIONS)
@examples(60)
@given(data=st.data())
def test_blocks_agree_with_numpy(op, data):
    x, options = data.draw(calls(op))
    with small_blocks(data.draw(st.sampled_from((1, 3))), data.draw(st.sampled_from(ENGINES))):
        check_run(Cpu(), op, x, **options)


@pytest.mark.turns(2, everywhere=True)
@pytest.mark.parametrize("shape", [(700,), (40, 30), (3, 200), (203, 3), (30, 4, 25), (5, 41, 3), (1, 50, 1)])
@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "f4", "f8", "c8", "i1", "u4", "?"], ids=str)
def test_any_number_of_threads_gives_the_same_bits(shape, dtype):
    x = sample(shape, dtype)
    mask = sample(shape, "?")
    axes = [*range(x.ndim), (0, x.ndim - 1) if x.ndim > 1 else None]
    sources = (x, np.asfortranarray(x), x[::-1])
    for (i, axis), (j, source) in itertools.product(enumerate(axes), enumerate(sources)):
        op = ("sum", "mean", "max")[(i + j) % 3]
        options = {"where": mask, "initial": 1} if op == "max" else {}
        for engine in ENGINES:
            found = []
            for count in (1, 2, 5):
                with small_blocks(count, engine):
                    found.append(np.asarray(getattr(gpuops, op)(source, axis=axis, **options)))
            assert_bits(found[1], found[0])
            assert_bits(found[2], found[0])
            with small_blocks(5, engine):
                check_run(Cpu(), op, source, axis=axis, **options)


@given(data=st.data())
def test_blocks_cover_an_array_once(data):
    shape = data.draw(layouts.shapes(max_dims=4).filter(lambda shape: shape and 0 not in shape))
    x = data.draw(layouts.arrays(shape, np.dtype(np.float32)))
    axis = tuple(d for d in range(x.ndim) if data.draw(st.booleans()))
    with small_blocks(1):
        pieces, parts = reduce.cut(x.shape, x.strides, axis, 16)
    covered, made = np.zeros(shape, int), np.zeros([parts, *(1 if d in axis else n for d, n in enumerate(shape))], int)
    for piece in pieces:
        covered[piece.block] += 1
        made[piece.result] += 1
    assert (covered == 1).all() and (made == 1).all()


def test_masked_means_of_nothing_are_nan():
    x, mask = sample((50, 40)), np.ones((50, 40), bool)
    mask[7] = False
    with small_blocks(2):
        found = gpuops.mean(x, axis=1, where=mask)
    np.testing.assert_allclose(found, np.mean(x, axis=1, where=mask), rtol=1e-5, atol=1e-7)
    assert np.isnan(found[7])


@pytest.mark.turns(2, everywhere=True)
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
    assert_near(found, expected)


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
        np.testing.assert_allclose(found[0], call(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_of_every_layout_on_any_number_of_threads(op, layout):
    x = lay_out(sample((6, 8, 10), "f4"), layout)
    for axis in range(3):
        expected, found = OPS[op](x, axis=axis), []
        for count in (1, 2, 5):
            with small_blocks(count):
                found.append(OPS[op](x, axis=axis))
        assert_equal_bits(found[1], found[0])
        assert_equal_bits(found[2], found[0])
        assert_near(found[0], expected)


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "c8", "?", "i8"], ids=str)
def test_blocks_of_other_dtypes(dtype):
    x = sample((40, 30), dtype)
    for op in ("argmax", "nansum", "count_nonzero", "vector_norm", "max_with_index", "nanvar"):
        expected = OPS[op](x, axis=1)
        with small_blocks(2):
            assert_near(OPS[op](x, axis=1), expected)


def test_out_is_written_and_may_overlap():
    x = sample((40, 30), "f4")
    expected = np.var(x, axis=1)
    with small_blocks(2):
        out = x[:, 0]
        assert gpuops.var(x, axis=1, out=out) is out
    assert_near(out, expected)


def test_rows_of_only_nan_raise_and_leave_out_unchanged():
    x, out = sample((40, 30), "f4"), np.full(40, 7)
    x[33] = np.nan
    with small_blocks(3), pytest.raises(ValueError, match="^nanargmax: All-NaN slice"):
        gpuops.nanargmax(x, axis=1, out=out)
    assert (out == 7).all()
