"""Reductions of NumPy arrays in blocks: folded, turned, widened, without masks' branches, and on threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.host import block_reduce
from tests import layouts
from tests.budget import examples
from tests.compare import assert_bits
from tests.conftest import Cpu
from tests.host_blocks import ENGINES, computed_by, settings
from tests.layouts import BFLOAT16, sample
from tests.ops import REDUCTIONS
from tests.test_reduce import calls, check_run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@contextmanager
def small_blocks(count: int, engine: str = "numpy") -> Iterator[None]:
    """Small arrays are reduced in blocks, on so many threads."""
    with (
        computed_by(engine),
        settings(block_reduce, count, FEW=1, SHARED=0, BLOCK=100, PIECES=100, LESS=2, SHORT=4, NARROW=8, FOLDED=12),
    ):
        yield


@pytest.mark.parametrize("op", REDUCTIONS)
@examples(60)
@given(data=st.data())
def test_blocks_agree_with_numpy(op, data):
    x, options = data.draw(calls(op))
    with small_blocks(data.draw(st.sampled_from((1, 3))), data.draw(st.sampled_from(ENGINES))):
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
                for engine in ENGINES:
                    found = []
                    for count in (1, 2, 5):
                        with small_blocks(count, engine):
                            found.append(np.asarray(getattr(gpuops, op)(source, axis=axis, **options)))
                            check_run(Cpu(), op, source, axis=axis, **options)
                    assert_bits(found[1], found[0])
                    assert_bits(found[2], found[0])


@given(data=st.data())
def test_blocks_cover_an_array_once(data):
    shape = data.draw(layouts.shapes(max_dims=4).filter(lambda shape: shape and 0 not in shape))
    x = data.draw(layouts.arrays(shape, np.dtype(np.float32)))
    axis = tuple(d for d in range(x.ndim) if data.draw(st.booleans()))
    with small_blocks(1):
        pieces, parts = block_reduce.cut(x.shape, x.strides, axis, 16)
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
    np.testing.assert_allclose(found, np.mean(x, axis=1, where=mask), rtol=1e-5)
    assert np.isnan(found[7])


@pytest.fixture
def compiled_sums():
    return pytest.importorskip("gpuops.host.compiled_sums", reason="needs Numba")


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(2500,), (3, 1024), (130, 70), (2, 129, 64), (64, 3, 100)], ids=str)
def test_compiled_sums_agree_with_numpy(compiled_sums, shape, dtype):
    rng = np.random.default_rng(7)
    info = np.iinfo(dtype) if dtype[0] in "iu" else None
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True) if info else rng.standard_normal(shape) * 9
    x = x.astype(dtype)
    for axis in range(x.ndim):
        for result in ("i8", "u8", "f4", "f8"):
            found = np.full([1 if d == axis else n for d, n in enumerate(shape)], 99, result)
            if compiled_sums.add(x, found, (axis,)):
                assert np.can_cast(dtype, result) or (dtype[1:], result) == ("8", "f8")
                right = np.add.reduce(x, axis=axis, keepdims=True, dtype=np.longdouble if result[0] == "f" else result)
                room = np.add.reduce(np.abs(x.astype(np.longdouble)), axis=axis, keepdims=True)
                assert (np.abs(found - right) <= (4 * np.finfo(result).eps * room if result[0] == "f" else 0)).all()
            else:
                rows = shape[axis] >= compiled_sums.SHORT and not x.ndim > axis + 1
                assert not (rows and result == np.add.reduce(x, axis=axis).dtype.str[1:])


@pytest.mark.parametrize("dtype,result", [("f2", "f4"), ("f2", "f8"), (BFLOAT16, "f4"), ("c8", "c8")], ids=str)
def test_elements_that_numba_does_not_know_are_summed_by_numpy(compiled_sums, dtype, result):
    x = np.ones((4, 200), dtype)
    assert not compiled_sums.add(x, np.empty((4, 1), result), (1,))
    with small_blocks(2, "compiled"):
        np.testing.assert_array_equal(gpuops.sum(x, axis=1, dtype=result), [200] * 4)


def test_compiled_sums_of_what_is_not_finite(compiled_sums):
    x = np.ones((4, 2000), np.float32)
    x[1, 7], x[2, 1500], x[3, [0, 1999]] = np.nan, np.inf, (np.inf, -np.inf)
    found = np.empty((4, 1), np.float32)
    assert compiled_sums.add(x, found, (1,))
    np.testing.assert_array_equal(found[:, 0], [2000, np.nan, np.inf, np.nan])
    assert not compiled_sums.add(x[:, ::2], found, (1,))
