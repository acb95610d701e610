"""Reductions of NumPy arrays in blocks: folded, turned, widened, without masks' branches, and on threads."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.run import block_reduce, blocks
from tests import layouts
from tests.budget import examples
from tests.compare import assert_bits
from tests.conftest import Cpu
from tests.host_blocks import settings
from tests.layouts import BFLOAT16, sample
from tests.ops import REDUCTIONS
from tests.test_reduce import calls, check_run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def small_blocks(count: int) -> AbstractContextManager[None]:
    """Small arrays are reduced in blocks, on so many threads."""
    return settings(block_reduce, count, FEW=1, SHARED=0, BLOCK=100, PIECES=100, LESS=2, SHORT=4, NARROW=8, FOLDED=12)


@pytest.mark.parametrize("op", REDUCTIONS)
@examples(60)
@given(data=st.data())
def test_blocks_agree_with_numpy(op, data):
    x, options = data.draw(calls(op))
    with small_blocks(data.draw(st.sampled_from((1, 3)))):
        check_run(Cpu(), op, x, **options)


@pytest.mark.parametrize("shape", [(700,), (40, 30), (3, 200), (203, 3), (30, 4, 25), (5, 41, 3), (1, 50, 1)])
@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "f4", "f8", "c8", "i1", "u4", "?"], ids=str)
def test_any_number_of_threads_gives_the_same_bits(shape, dtype):
    x = sample(shape, dtype)
    mask = sample(shape, "?")
    for axis in [*range(x.ndim), (0, x.ndim - 1) if x.ndim > 1 else None]:
        for source in (x, np.asfortranarray(x), x[::-1]):
            for op in ("sum", "mean", "max"):
                options = {"where": mask, "initial": 1} if op == "max" else {}
                found = []
                for count in (1, 2, 5):
                    with small_blocks(count):
                        found.append(np.asarray(getattr(gpuops, op)(source, axis=axis, **options)))
                        check_run(Cpu(), op, source, axis=axis, **options)
                assert_bits(found[1], found[0])
                assert_bits(found[2], found[0])


@given(data=st.data())
def test_blocks_cover_an_array_once(data):
    shape = data.draw(layouts.shapes(max_dims=4).filter(lambda shape: shape and 0 not in shape))
    x = data.draw(layouts.arrays(shape, np.dtype(np.float32)))
    axis = tuple(d for d in range(x.ndim) if data.draw(st.booleans()))
    covered, begun = np.zeros(shape, int), np.zeros([1 if d in axis else n for d, n in enumerate(shape)], bool)
    with small_blocks(1):
        for piece in block_reduce.cut(x.shape, x.strides, axis, 16):
            covered[piece.block] += 1
            assert begun[piece.results].all() != piece.first  # the first one of its results comes first
            begun[piece.results] = True
    assert (covered == 1).all() and begun.all()


def test_every_float16_is_widened():
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = x[np.isfinite(x)]
    for source in (x, finite, finite[::-1], finite.reshape(-1, 2).T):
        into = np.empty(source.shape, np.float32)
        blocks.convert(source, into)
        right = source.astype(np.float32)
        assert ((into.view(np.int32) == right.view(np.int32)) | np.isnan(right)).all()
        assert (np.isnan(into) == np.isnan(right)).all()


def test_masked_means_of_nothing_are_nan():
    x, mask = sample((50, 40)), np.ones((50, 40), bool)
    mask[7] = False
    with small_blocks(2):
        found = gpuops.mean(x, axis=1, where=mask)
    np.testing.assert_allclose(found, np.mean(x, axis=1, where=mask), rtol=1e-5)
    assert np.isnan(found[7])
