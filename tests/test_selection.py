"""Selection against NumPy: nonzero, where with a condition alone, and compress."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call.dispatch import describe
from gpuops.ops import selection
from gpuops.plan.selection.count import TILE
from gpuops.plan.work import Machine, new_array
from tests import layouts
from tests.compare import assert_bits, assert_same, fails, run
from tests.layouts import BFLOAT16, DTYPES, LAYOUTS, lay_out, placed, sample, smallest_subnormal, unmergeable

MACHINE = Machine(132, shared=227 * 1024)
#: Numbers of elements around the borders of words, warps and tiles; of more tiles than a multiprocessor has blocks.
LENGTHS = (1, 2, 31, 32, 33, 511, 512, 513, TILE - 1, TILE, TILE + 1, 3 * TILE + 5, 40 * TILE + 7)


def condition_of(shape: Any, dtype: Any, density: float, seed: int = 0) -> np.ndarray:
    """An array of which about this share of the elements is true."""
    x = sample(shape, dtype, seed)
    x[x == 0] = 1
    x[np.random.default_rng(seed).random(shape) >= density] = 0
    return x


def check_nonzero(backend: Any, x: np.ndarray, function: Any = gpuops.nonzero) -> None:
    """Compare the indices with NumPy's."""
    got, expected = function(backend.array(x)), np.nonzero(x)
    assert (type(got), len(got)) == (tuple, x.ndim)
    for ours, numpys in zip(got, expected, strict=True):
        assert_bits(backend.numpy(ours), numpys)


def check_compress(backend: Any, condition: np.ndarray, a: np.ndarray, axis: int | None = None, **options: Any) -> None:
    """Compare elements with NumPy's."""
    expected = np.compress(condition, a, axis)
    if (out := options.get("out")) is not None and out.dtype != a.dtype:
        assert_same(run(backend, gpuops.compress, condition, a, axis=axis, **options), expected.astype(out.dtype))
    else:
        assert_bits(run(backend, gpuops.compress, condition, a, axis=axis, **options), expected)


# ------------------------------------------------------------------------------------------------------------- indices


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_indices_of_any_layout(backend, dtype, layout):
    x = lay_out(condition_of((3, 19, 5), dtype, 0.5), layout)
    check_nonzero(backend, x)
    check_nonzero(backend, x[1], gpuops.where)


@pytest.mark.parametrize("length", LENGTHS)
def test_vectors_of_every_length(backend, length):
    cases = (("?", 0.5), ("f4", 0.1), ("f8", 1.0), ("f2", 0.0), ("c16", 0.5))
    for dtype, density in cases if length < 10 * TILE else cases[:2]:
        check_nonzero(backend, condition_of((length,), dtype, density))


@pytest.mark.parametrize("start", (1, 3, 15))
def test_vectors_that_begin_anywhere(backend, start):
    for dtype, length in itertools.product(("?", "i2", "f4", "c8"), (1, 40, TILE - start, TILE + 3)):
        check_nonzero(backend, placed(condition_of((length,), dtype, 0.5), start=start))


@pytest.mark.parametrize("ndim", (2, 4, 5, 9))
def test_indices_along_many_dims(backend, ndim):
    check_nonzero(backend, condition_of((3, 2, 1, 4, 2, 3, 1, 2, 5)[:ndim], "i4", 0.5))


def test_six_dims_that_do_not_merge(backend):
    check_nonzero(backend, unmergeable() > 0)
    check_nonzero(backend, unmergeable())


def test_broadcast_and_backward_conditions(backend):
    x = condition_of((1, 300), "?", 0.3)
    for view in (np.broadcast_to(x, (40, 300)), np.broadcast_to(x.T, (300, 40)), x[0, ::-1], x.T[::-1], x[:, ::-3]):
        check_nonzero(backend, view)


def test_what_is_true(backend):
    for dtype in ("f2", BFLOAT16, "f4", "f8"):
        values = [0.0, -0.0, np.nan, -np.inf, smallest_subnormal(np.dtype(dtype)), 1]
        check_nonzero(backend, np.array(values, dtype))
    check_nonzero(backend, np.array([0, 1, 1j, complex(0, -0.0), complex(np.nan, 0)], "c8"))
    check_nonzero(backend, np.array([0, 2, 255, 1], "u1").view(bool))


def test_arrays_without_elements(backend):
    for shape in ((0,), (3, 0), (0, 2, 4)):
        check_nonzero(backend, np.zeros(shape, "f4"))
        check_nonzero(backend, np.zeros(shape, "f4"), gpuops.where)


def test_indices_do_not_share_memory(backend):
    first, second = gpuops.nonzero(backend.array(np.ones((3, 4), bool)))
    first[...] = 7
    assert_bits(backend.numpy(second), np.nonzero(np.ones((3, 4)))[1])


@given(st.data())
def test_indices_property(backend, data):
    shape, dtype = data.draw(layouts.shapes()), data.draw(st.sampled_from(layouts.COMMON))
    if shape:
        check_nonzero(backend, data.draw(layouts.arrays(shape, dtype)))


# ------------------------------------------------------------------------------------------------------------- elements


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_of_any_layout(backend, dtype, layout):
    a = lay_out(sample((6, 9, 8), dtype), layout)
    for axis, length in ((None, 400), (0, 6), (1, 7), (-1, 8)):
        check_compress(backend, condition_of((length,), "?", 0.5, length), a, axis)


@pytest.mark.parametrize("length", LENGTHS[:-1])
def test_elements_of_vectors_of_every_length(backend, length):
    condition, a = condition_of((length,), "i1", 0.7), sample((length,), "f4")
    check_compress(backend, condition, a)
    check_compress(backend, condition[::-1], a, 0)


@pytest.mark.parametrize("cols", (1, 3, 4, 32, 1100))
def test_rows_and_columns(backend, cols):
    for dtype in ("f4", "i1", "c16"):
        a, some = sample((70, cols), dtype), condition_of((70,), "?", 0.5)
        check_compress(backend, some, a, 0)
        check_compress(backend, some, a.T, 1)
        check_compress(backend, some[:50], placed(a, steps=(1, 2), start=1), 0)


def test_conditions_of_other_lengths(backend):
    a = sample((5, 4), "f4")
    for condition in ([], [0], [1], [0, 1, 1], [1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0, 0]):
        check_compress(backend, np.array(condition, "i4"), a, 0)
        check_compress(backend, np.array(condition, "f8"), a[:, 0], 0)
    for condition in (np.ones(20), np.r_[np.ones(20), np.zeros(50)]):
        check_compress(backend, condition, a)


def test_arrays_without_dims_or_elements(backend):
    for a, axis in itertools.product((np.array(3, "f4"), np.array(2j)), (None, 0, -1)):
        check_compress(backend, np.array([True]), a, axis)
        check_compress(backend, np.array([False, False]), a, axis)
    check_compress(backend, np.array([0, 0]), np.zeros((0, 3)), 0)
    check_compress(backend, np.array([1, 0, 1]), np.zeros((0, 3)), 1)
    check_compress(backend, np.array([], bool), np.zeros((2, 3)), 1)
    check_compress(backend, np.zeros(9), sample((4, 3)), 0)


@pytest.mark.parametrize("axis", (None, 0, 1))
def test_out_of_any_layout_and_dtype(backend, axis):
    for dtype, kind in (("f4", "f4"), ("f4", "f8"), ("f8", "f2"), ("c8", "c8"), ("i2", "i8"), ("?", "?")):
        a, condition = sample((5, 6), dtype), np.array([1, 0, 1, 1, 0], bool)
        shape = np.compress(condition, a, axis).shape
        for order, steps in ((range(len(shape)), (2, -1)), (range(len(shape))[::-1], (1, 3))):
            out = layouts.strided(shape, np.dtype(kind), [*order], steps[: len(shape)], 1)
            check_compress(backend, condition, a, axis, out=out)


def test_out_may_overlap_what_is_selected(backend):
    x, condition = sample((8, 6)), np.array([1, 0, 1, 1, 0, 1], bool)
    memory = placed(x)
    expected = np.compress(condition, x, 1)
    there = backend.array(memory)
    assert_bits(backend.numpy(gpuops.compress(backend.array(condition), there, 1, there[:, 2:])), expected)
    there = backend.array(memory)
    got = gpuops.compress(backend.array(condition), there, 0, there[1:5])
    assert_bits(backend.numpy(got), np.compress(condition, x, 0))


@given(st.data())
def test_elements_property(backend, data):
    shape, dtype = data.draw(layouts.shapes()), data.draw(st.sampled_from(layouts.COMMON))
    a = data.draw(layouts.arrays(shape, dtype))
    axis = data.draw(st.sampled_from((None, *range(-a.ndim, a.ndim))))
    length = a.size if axis is None else shape[axis]
    condition = data.draw(layouts.arrays((data.draw(st.integers(0, length)),), np.dtype("?")))
    expected = np.compress(condition, a, axis)
    out = data.draw(st.none() | layouts.outs(expected.shape, data.draw(layouts.casts(dtype)), ()))
    with np.errstate(all="ignore"):
        check_compress(backend, condition, a, axis, out=out)


# --------------------------------------------------------------------------------------------------------------- calls


def test_calls_are_cached_whatever_is_true(device, monkeypatch):
    """A hit counts again, and plans the rest anew if the number has changed."""
    x = device.array(condition_of((300,), "f4", 0.5))
    gpuops.nonzero(x)
    monkeypatch.setattr(selection, "indices", None)  # describing another call would fail
    for fill in ([1, 0, 1], [0, 0, 0], [5, 5, 5], [5, 5, 5]):
        x[:3] = device.array(np.array(fill, "f4"))
        assert_bits(device.numpy(gpuops.nonzero(x)[0]), np.nonzero(device.numpy(x))[0])


def test_new_shapes_are_recorded(device):
    for n in range(20, 50):
        x, a = condition_of((n, 3), "i4", 0.5, n), sample((n, 3))
        check_nonzero(device, x)
        check_compress(device, x[:, 0], a, 0)
        check_compress(device, x[: n // 2, 0], a)


def test_a_captured_call_raises(device, monkeypatch):
    x = device.array(np.ones(5, bool))
    gpuops.nonzero(x)
    monkeypatch.setattr(type(gpuops.call.arrays.find("test", "x", x).device), "capturing", lambda self: True)
    message = "the size of the result must be read from the GPU, which is not allowed during a graph capture"
    for _ in range(2):
        fails(RuntimeError, f"nonzero: {message}", gpuops.nonzero, x)
        fails(RuntimeError, f"where: {message}", gpuops.where, x)


def test_wrong_arguments_raise_what_numpy_raises(backend):
    a, some = backend.array(sample((4, 3))), backend.array(np.array([1, 0, 1]))
    many = backend.array(np.array([0, 0, 0, 1, 1]))
    zero = backend.array(np.array(3.0))
    for kind, message, function, args, options in (
        (ValueError, "nonzero: a is 0-d, which has no indices; pass a.reshape(1)", gpuops.nonzero, (zero,), {}),
        (ValueError, "where: condition is 0-d, which has no indices", gpuops.where, (zero,), {}),
        (ValueError, "compress: condition must have one dim, its shape is (4, 3)", gpuops.compress, (a, a), {}),
        (ValueError, "compress: condition must have one dim, its shape is ()", gpuops.compress, (True, a), {}),
        (IndexError, "compress: condition is true beyond the 3 elements of axis 1", gpuops.compress, (many, a, 1), {}),
        (IndexError, "compress: condition is true beyond the 1 elements of", gpuops.compress, (many, zero), {}),
        (np.exceptions.AxisError, "compress: axis 2 is out of range", gpuops.compress, (some, a, 2), {}),
        (TypeError, "compress: axis must be None or an int, got (0,)", gpuops.compress, (some, a, (0,)), {}),
        (TypeError, "compress: axis must be None or an int, got 1.0", gpuops.compress, (some, a, 1.0), {}),
    ):
        fails(kind, message, function, *args, **options)
        numpys = [backend.numpy(each) if hasattr(each, "shape") else each for each in args]
        with pytest.raises(kind):
            getattr(np, function.__name__)(*numpys, **options)
    fails(TypeError, "nonzero: a is None", gpuops.nonzero, None)
    for shape in ((2,), (3, 3), (2, 4)):
        message = f"compress: out has shape {shape}, the result has shape (2, 3)"
        fails(ValueError, message, gpuops.compress, some, a, 0, out=backend.array(np.zeros(shape, "f4")))
    message = "compress: cannot cast the result from float32 to int32 of out"
    fails(TypeError, message, gpuops.compress, some, a, 0, out=backend.array(np.zeros((2, 3), "i4")))


def test_more_elements_than_32_bits_count():
    """Of plans alone: indices and offsets have 64 bits."""
    size = 2**31 + 12345
    for dtype, ndim in (("?", 1), ("f4", 2)):
        shape = (size,) if ndim == 1 else (2, size)
        x = new_array("x", shape, np.dtype(dtype), machine=MACHINE)
        work = describe(gpuops.nonzero, x)
        rest = work.then((size - 5,))
        assert [dict(step.kernel.types)["Index"] for step in (*work.plan.steps, *rest.plan.steps)] == ["i64", "i64"]
        assert rest.plan.steps[0].grid[0] == -(-x.size // TILE)
        assert [each.shape for each in rest.results] == [(size - 5,)] * ndim
    a = new_array("a", (3, 2**31), np.dtype("i1"), machine=MACHINE)
    some = new_array("condition", (3,), np.dtype("?"), machine=MACHINE)
    (_, rows) = describe(gpuops.compress, some, a, 0).then((2,)).plan.steps
    assert dict(rows.kernel.types) == {"Tout": "u8", "Tin": "u8", "Index": "u32", "Offset": "i64"}
    assert dict(rows.kernel.constants)["VEC"] == 16


def test_a_condition_is_read_once_in_packs():
    for dtype, vec in (("?", 16), ("f2", 8), ("f4", 4), ("f8", 2), ("c16", 1)):
        x = new_array("x", (2**28,), np.dtype(dtype), machine=MACHINE)
        (step,) = describe(gpuops.nonzero, x).plan.steps
        assert dict(step.kernel.constants)["VEC"] == vec
        assert step.grid[0] <= 8 * 132
