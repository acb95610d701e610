"""``where`` and ``expand`` of NumPy arrays, in blocks and on threads; choices by masks and conversions of blocks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call import launch_cache
from gpuops.host import blocks, maps, numpy_engine
from tests import layouts
from tests.compare import assert_bits
from tests.host_blocks import ENGINES, computed_by, settings
from tests.layouts import BFLOAT16, sample

DTYPES = [np.dtype(name) for name in ("?", "i1", "u2", "f2", "i4", "f4", "i8", "f8", "c8", "c16")]


@contextmanager
def small_blocks(count: int, engine: str = "numpy") -> Iterator[None]:
    """Small arrays are made in blocks, on so many threads."""
    with (
        computed_by(engine),
        settings(maps, count, FEW=0, BLOCK=16, COPIES=64, smooth=lambda condition: False),
    ):
        yield


@given(data=st.data())
def test_where_in_blocks_gives_the_bits_and_the_layout_of_numpys(data):
    shape, dtype = data.draw(layouts.shapes(max_dims=4).filter(bool)), data.draw(st.sampled_from(DTYPES))
    condition = data.draw(layouts.masks(shape))
    x = data.draw(layouts.arrays(shape, dtype))
    y = data.draw(st.one_of(layouts.arrays(shape, data.draw(st.sampled_from((dtype, np.dtype(np.int8))))), st.just(1)))
    right = np.where(condition, x, y)
    with small_blocks(data.draw(st.sampled_from((1, 3))), data.draw(st.sampled_from(ENGINES))):
        got = gpuops.where(condition, x, y)
        out = np.empty(got.shape, got.dtype)
        assert gpuops.where(condition, x, y, out=out) is out
    assert_bits(got, right)
    assert_bits(out, right)
    if right.size:
        assert lying(got) == lying(right)


def lying(array: np.ndarray) -> list[int]:
    """The strides of the dims that have some."""
    return [stride for n, stride in zip(array.shape, array.strides, strict=True) if n > 1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["f4", "i2", "c8"])
def test_where_in_blocks_takes_any_condition_by_its_truth(kind, engine):
    condition = np.array([0, 1, 2, -0.0, np.nan, 3] * 20 if kind != "i2" else [0, 1, 2, 0, 256, -1] * 20).astype(kind)
    x, y = np.arange(120.0), -np.arange(120.0)
    with small_blocks(2, engine):
        np.testing.assert_array_equal(gpuops.where(condition, x, y), np.where(condition, x, y))
    odd = np.arange(120, dtype=np.uint8).view(bool)  # bytes that are true without being 1
    with small_blocks(2, engine):
        np.testing.assert_array_equal(gpuops.where(odd, x, y), np.where(np.arange(120) != 0, x, y))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", BFLOAT16, "c8"], ids=str)
def test_where_in_blocks_keeps_the_payloads_and_signs_of_nans(dtype, engine):
    dtype = np.dtype(dtype)
    x, y = np.random.default_rng(0).integers(0, 256, (2, 100 * dtype.itemsize), np.uint8).view(dtype)
    special = np.array([-np.nan, np.nan, -0.0, 0.0, -np.inf]).astype(dtype)
    x[:5], y[-5:] = special, special
    mask = np.arange(100) % 3 > 0
    expected = x.copy()
    expected[~mask] = y[~mask]
    with small_blocks(2, engine):
        assert_bits(gpuops.where(mask, x, y), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_operands_of_where_in_blocks_repeat_any_dims(engine):
    shape = (2, 3, 4)
    shapes = [*product(*((1, n) for n in shape))]
    with small_blocks(1, engine):
        for narrow, turned in product(shapes, (False, True)):
            mask, x, y = sample(narrow, "?"), sample(shape, "f4"), sample(narrow[1:], "f4")
            x = x.transpose(2, 1, 0).copy().transpose(2, 1, 0) if turned else x
            for operands in ((mask, x, y), (mask, y, x), (x > 0, x, y), (x > 0, y, 1), (mask, -1, x)):
                assert_bits(gpuops.where(*operands), np.where(*operands))


@pytest.mark.parametrize("engine", ENGINES)
def test_where_in_blocks_takes_a_condition_of_bfloat16(engine):
    condition = np.array([0, 1, -0.0, np.nan] * 20).astype(BFLOAT16)
    with small_blocks(2, engine):
        np.testing.assert_array_equal(gpuops.where(condition, 1, 2), [2, 1, 2, 1] * 20)


def signaling(count: int) -> np.ndarray:
    """NaNs whose casts raise a floating-point flag."""
    return np.full(count, 0x7F800001, np.uint32).view(np.float32)


@pytest.mark.parametrize("engine", [*ENGINES, None])
def test_where_is_as_silent_as_numpys(engine):
    """np.where does not warn of its casts to the result's dtype."""
    x, y = signaling(100), np.arange(100.0)
    with small_blocks(2, engine) if engine else computed_by("numpy"), np.errstate(all="raise"):
        assert np.isnan(np.where(y > 50, x, y)[51:]).all()
        assert np.isnan(gpuops.where(y > 50, x, y)[51:]).all()


def casts(op: str) -> tuple[Any, ...]:
    """A call whose results overflow where they are cast to the dtype of ``out``."""
    if op == "where":
        x = np.full(100, 1e300)
        return gpuops.where, (x > 0, x, x), (100,)
    narrow = {"expand": (100, 1), "expand, as it is": (100, 20)}[op]
    return gpuops.expand, (np.full(narrow, 1e300), (100, 20)), (100, 20)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("op", ["where", "expand", "expand, as it is"])
def test_casts_to_out_warn_once_as_the_caller_asks(op, threads):
    function, operands, shape = casts(op)
    out = np.empty(shape, np.float32)
    with small_blocks(threads):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            function(*operands, out=out)
        assert [str(each.message) for each in told] == ["overflow encountered in cast"]
        assert np.isposinf(out).all()
        with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in cast"):
            function(*operands, out=out)
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.simplefilter("error")
            function(*operands, out=out)


@given(data=st.data())
def test_out_of_where_in_blocks_has_any_layout_and_dtype(data):
    shape = data.draw(layouts.shapes(max_dims=3).filter(bool))
    mask, x, y = sample(shape, "?"), sample(shape, "f4"), sample(shape[-1:], "f4")
    out = data.draw(layouts.outs(shape, data.draw(st.sampled_from([np.dtype("f4"), np.dtype("f8")])), [mask, x, y]))
    expected = np.where(mask, x, y).astype(out.dtype)
    with small_blocks(data.draw(st.sampled_from((1, 3))), data.draw(st.sampled_from(ENGINES))):
        assert gpuops.where(mask, x, y, out=out) is out
    assert_bits(out, expected)


def test_out_of_where_in_blocks_may_overlap_the_operands():
    memory = np.arange(101.0)
    condition = np.arange(100) % 3 > 0
    right = np.where(condition, memory[:-1], -1.0)
    with small_blocks(2):
        gpuops.where(condition, memory[:-1], -1.0, out=memory[1:])
    np.testing.assert_array_equal(memory[1:], right)


@pytest.mark.parametrize("large", [False, True])
def test_masks_are_selected_by_bits_where_branches_cannot_be_foreseen(large, monkeypatch):
    found = []

    def branching(condition, x, y, out=None, *, dtype):
        found.append("NumPy's")
        return x

    monkeypatch.setattr(numpy_engine, "where", branching)
    size = 2 * maps.FEW if large else maps.FEW // 2
    random = np.random.default_rng(0).random(size) < 0.5
    launch_cache.clear()
    with computed_by("numpy"):
        gpuops.where(random, random, 0)
        assert found == ([] if large else ["NumPy's"])
        gpuops.where(np.sort(random), random, 0)
    assert found == ["NumPy's"] * (1 if large else 2)
    launch_cache.clear()


@given(data=st.data())
def test_expand_in_blocks_gives_the_bits_of_numpys(data):
    shape = data.draw(layouts.shapes(max_dims=4))
    x = data.draw(layouts.narrowed(shape).flatmap(lambda narrow: layouts.arrays(narrow, np.dtype(np.float32))))
    with small_blocks(data.draw(st.sampled_from((1, 3)))):
        got = gpuops.expand(x, shape)
    assert_bits(got, np.broadcast_to(x, shape).copy())
    assert got.flags.c_contiguous


# ------------------------------------------------------------------------------------------------ conversions of blocks

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_float16_is_widened_as_by_numpy(engine):
    finite = HALVES[np.isfinite(HALVES)]
    for source in (HALVES, finite, finite[::-1], finite.reshape(-1, 2).T, HALVES.reshape(256, 256)[:, 1::2]):
        into = np.empty(source.shape, np.float32)
        with computed_by(engine), np.errstate(all="ignore"):
            blocks.convert(source, into)
        assert_bits(into, source.astype(np.float32))


@pytest.mark.parametrize("engine", ENGINES)
def test_float32_is_rounded_to_float16_as_by_numpy(engine):
    """Around every float16 and every boundary of rounding; NaNs with any upper bits of their payload."""
    up = HALVES[:0x7C00].astype(np.float32)
    between = np.append(up[:-1] + np.diff(up) / 2, np.float32(65520))  # from which on it is infinite
    exact = np.concatenate([up, between]).view(np.uint32)
    near = np.concatenate([exact + step for step in range(3)] + [exact[exact >= 2] - step for step in (1, 2)])
    nans = 0x7F800000 + np.concatenate([np.arange(1, 2**23, 2**9), np.arange(1, 2**13, 7)]).astype(np.uint32)
    others = np.random.default_rng(0).integers(0, 2**31, 2**18, np.uint32)  # of any exponent, also subnormal
    bits = np.concatenate([near, nans, others, np.array([0x7F800000, 0x7F7FFFFF, 1], np.uint32)])
    x = np.concatenate([bits, bits | np.uint32(2**31)]).view(np.float32)
    into = np.empty(x.shape, np.float16)
    with computed_by(engine), np.errstate(all="ignore"):
        blocks.convert(x, into)
        assert_bits(into, x.astype(np.float16))


@pytest.mark.parametrize("engine", ENGINES)
def test_masks_and_conversions_of_every_layout(engine):
    x, mask = sample((6, 8), "f4"), sample((6, 8), "?")
    for layout, other, kept in product(layouts.LAYOUTS, ("C", "F", "transposed", "sliced", "reversed"), (-1, 0)):
        source, chosen = layouts.lay_out(x, layout), layouts.lay_out(mask, layout)
        into, half = (layouts.lay_out(np.zeros((6, 8), dtype), other) for dtype in ("f4", "f2"))
        with computed_by(engine):
            blocks.convert_masked(source, chosen, kept, into)
            blocks.convert(source, half)
        assert_bits(into, np.where(chosen, source, np.float32(kept)))
        assert_bits(half, source.astype("f2"))
        with computed_by(engine):
            blocks.convert(half, into)
            blocks.leave_out(into, chosen.astype("f8"), kept)
        assert_bits(into, np.where(chosen, half.astype("f4"), np.float32(kept)))
        with computed_by(engine):
            blocks.convert_masked(half, chosen[:1], kept, into)
        assert_bits(into, np.where(chosen[:1], half.astype("f4"), np.float32(kept)))
