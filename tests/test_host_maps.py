"""``where`` and ``expand`` of NumPy arrays, in blocks and on threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call import launch_cache
from gpuops.host import maps
from tests import layouts
from tests.compare import assert_bits
from tests.host_blocks import ENGINES, computed_by, settings

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

    monkeypatch.setattr(maps.numpy_engine, "where", branching)
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
