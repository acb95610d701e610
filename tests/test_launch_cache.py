"""The launch cache: hits give the results of misses, and only equivalent calls hit."""

from __future__ import annotations

import contextlib
import inspect
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call import launch_cache
from tests import emulated, layouts
from tests.compare import assert_bits, run
from tests.conftest import Emulated

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("own_kernels")]
F4 = np.dtype(np.float32)
MASK = np.arange(6) % 2 == 0

#: Calls on an array x of shape (5, 6) and one y of the same shape.
OPS = {
    "sum": lambda x, y: gpuops.sum(x, axis=1),
    "sum of all": lambda x, y: gpuops.sum(x),
    "prod": lambda x, y: gpuops.prod(x, 0, dtype=np.float64),
    "max": lambda x, y: gpuops.max(x, axis=(0, 1), keepdims=True, initial=-1.5),
    "min": lambda x, y: gpuops.min(x, axis=-1, strategy="cross"),
    "mean": lambda x, y: gpuops.mean(x, axis=0, dtype=np.dtype("f8")),
    "any": lambda x, y: gpuops.any(x, axis=0),
    "all": lambda x, y: gpuops.all(x, axis=1),
    "softmax": lambda x, y: gpuops.softmax(x, axis=1, scale=0.5),
    "log_softmax": lambda x, y: gpuops.log_softmax(x, axis=0),
    "logsumexp": lambda x, y: gpuops.logsumexp(x, axis=1, strategy="rows"),
    "two passes": lambda x, y: gpuops.softmax(x, axis=1, strategy="two_pass"),
    "where": lambda x, y: gpuops.where(x, x, y),
    "where of scalars": lambda x, y: gpuops.where(x, 1.5, -0.0),
    "where of NumPy's scalars": lambda x, y: gpuops.where(x, np.float32(3), np.int8(1)),
    "where of a complex scalar": lambda x, y: gpuops.where(x, 1j, y),
    "expand": lambda x, y: gpuops.expand(x[:, :1], (2, -1, 6)),
    "dot": lambda x, y: gpuops.dot(x[0], y[1]),
    "dot of one array": lambda x, y: (lambda row: gpuops.dot(row, row))(x[0]),
    "product with its transpose": lambda x, y: gpuops.matmul(x, x.T),
    "dot of a matrix": lambda x, y: gpuops.dot(x, y[0]),
    "matmul": lambda x, y: gpuops.matmul(x, y.T),
    "matmul of a vector": lambda x, y: gpuops.matmul(x, y[0]),
    "matmul by a rung": lambda x, y: gpuops.matmul(x.T, y, strategy="warptile"),
    "matmul in parts": lambda x, y: gpuops.matmul(x.T, y, alpha=2, strategy="pipelined"),
    "matmul by cuBLAS, with a copy": lambda x, y: gpuops.matmul(x[:, ::2], y[:3], strategy="cublas"),
    "into y": lambda x, y: gpuops.softmax(x, axis=1, out=y),
    "in place": lambda x, y: gpuops.softmax(x, axis=1, out=x),
    "added in place": lambda x, y: gpuops.matmul(x[:, :5], x, beta=1, c=y, out=y),
    "where in place": lambda x, y: gpuops.where(x, y, 0, out=y),
}


@contextlib.contextmanager
def only_hits():
    """Fails if a call misses the cache."""

    def refuse(*args, **named):
        raise AssertionError("misses the cache")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch_cache, "miss", refuse)
        yield


def numbers(seed, shape=(5, 6), dtype=F4):
    return layouts.random(np.random.default_rng(seed), shape, dtype)


def missed(function, *arrays, **options):
    """The result of a call that misses the cache."""
    launch_cache.entries.cache_clear()
    return function(*arrays, **options)


@pytest.mark.parametrize("name", OPS)
def test_the_second_call_hits_the_cache(device, name):
    for _ in range(2):  # (the first call of a process registers the array type)
        OPS[name](device.array(numbers(0)), device.array(numbers(1)))
    x, y = device.array(numbers(2)), device.array(numbers(3))
    with only_hits():
        result = device.numpy(OPS[name](x, y))
    again = device.array(numbers(2)), device.array(numbers(3))
    assert_bits(result, device.numpy(missed(OPS[name], *again)))
    assert_bits(device.numpy(x), device.numpy(again[0]))
    assert_bits(device.numpy(y), device.numpy(again[1]))


def test_views_are_not_cached(device):
    known = launch_cache.entries.cache_info().currsize
    gpuops.broadcast_to(device.array(numbers(0)), (2, 5, 6))
    assert launch_cache.entries.cache_info().currsize == known


def test_results_are_new_arrays(device):
    x = device.array(numbers(0))
    one, two = gpuops.softmax(x, axis=1), gpuops.softmax(x, axis=1)
    before = device.numpy(one)
    two[...] = 0
    assert_bits(device.numpy(one), before)


def test_transposed_results_stay_transposed(device):
    first, second = (device.array(numbers(seed, (6, 5)).T) for seed in (0, 1))
    expected = gpuops.softmax(first, axis=1)
    assert gpuops.softmax(second, axis=1).strides == expected.strides == first.strides


@pytest.mark.parametrize("pair", [(0.0, -0.0), (-0.0, 0.0), (1, True), (True, 1), (1, 1.0), (1.0, 1)], ids=repr)
def test_equal_scalars_of_different_type_or_sign_are_distinct(device, pair):
    condition = device.array(np.array([True, False]))
    for value in pair:
        assert_bits(device.numpy(gpuops.where(condition, value, value)), np.where([True, False], value, value))


def test_calls_with_nan_scalars_hit_the_cache(device):
    condition = device.array(np.array([True, False]))
    gpuops.where(condition, math.nan, 0.0)
    with only_hits():
        gpuops.where(condition, float("nan"), 0.0)


def test_invalid_axes_equal_to_cached_ones_still_raise(device):
    x = device.array(numbers(0))
    gpuops.sum(x, axis=1)
    gpuops.sum(x, axis=(0, 1))
    for axis in (1.0, (0, 1.0), [0, 1]):
        with pytest.raises(TypeError, match="axis must be"):
            gpuops.sum(x, axis=axis)


def test_arrays_given_as_options_are_not_cached(device):
    x = device.array(numbers(0))
    column = device.array(numbers(0, (2, 1)))
    for value in (False, True):
        assert gpuops.sum(x, keepdims=device.array(np.array(value))).ndim == 2 * value
    if device.name == "emulated":  # CuPy arrays have no __index__
        for n in (3, 5):
            assert gpuops.expand(column, device.array(np.array([2, n]))).shape == (2, n)
            shape = device.array(np.array([n, 2]))
            assert gpuops.expand(shape, shape).shape == (n, 2)


def test_tuples_of_custom_index_objects_are_not_cached(device):
    class Index:
        def __index__(self):
            return self.value

    x, index = device.array(numbers(0)), Index()
    for index.value in (0, 1):
        assert gpuops.sum(x, axis=(index,)).shape == ((6,), (5,))[index.value]
    assert launch_cache.entries.cache_info().currsize == 0


def test_invalid_calls_raise_after_similar_cached_calls(device):
    x, y, mask = (device.array(array) for array in (numbers(0), numbers(1), numbers(2) > 0))
    gpuops.where(mask, x, x)
    with pytest.raises(TypeError, match="positional"):
        gpuops.where(mask, x, y, 0, 1, 1)
    gpuops.softmax(x, scale=0.5)
    with pytest.raises(TypeError, match="scale must be"):
        gpuops.softmax(x, scale=(0.5).hex())


@pytest.mark.parametrize("nan", [math.nan, complex(math.nan, 0)])
def test_nan_scalars_keep_their_sign(device, nan):
    mask = device.array(np.array([True]))
    for value in (nan, -nan, nan):
        assert_bits(device.numpy(gpuops.where(mask, value, value)), np.array([value]))


def test_shape_strides_and_dtype_are_part_of_the_key(device):
    base = numbers(0, (8, 40))
    arrays = [base, base[:, :32], base[:, 1:33], base[:, ::2], base[::-1], base.T, base.astype("f8"), base[:4], base[0]]
    expected = [np.sum(array, axis=0, dtype="f8") for array in arrays]
    for _ in range(2):
        for array, right in zip(arrays, expected):
            np.testing.assert_allclose(device.numpy(gpuops.sum(device.array(array), axis=0)), right, rtol=1e-5)


def test_operand_aliasing_is_part_of_the_key(device):
    x, y, mask = (device.array(array) for array in (numbers(0), numbers(1), numbers(2) > 0))
    for _ in range(2):
        for b, c in ((x, x), (x, y), (y, x), (y, y)):
            right = np.where(device.numpy(mask), device.numpy(b), device.numpy(c))
            assert_bits(device.numpy(gpuops.where(mask, b, c)), right)


def test_out_may_overlap_in_some_calls_only(device):
    for axis in (0, 1):
        for start, stop in ((5, 10), (0, 5), (2, 7), (5, 10)):  # apart, in place, over part of x, apart
            memory = device.array(numbers(0, (10, 6)))
            out = memory[start:stop]
            expected = gpuops.softmax(numbers(0, (10, 6))[:5], axis=axis)
            assert gpuops.softmax(memory[:5], axis=axis, out=out) is out
            np.testing.assert_allclose(device.numpy(out), expected, rtol=1e-5)


def test_out_is_returned_even_if_it_aliases_an_operand(device):
    x, y = device.array(numbers(0)), device.array(numbers(1, (5, 5)))
    gpuops.softmax(x, axis=1, out=x)
    other = x[:]
    assert gpuops.softmax(x, axis=1, out=other) is other
    assert gpuops.softmax(other, axis=1, out=x) is x
    gpuops.matmul(y, x, beta=1, c=x, out=x)
    assert gpuops.matmul(y, x, beta=1, c=x, out=other) is other


def test_results_may_share_an_address_with_an_empty_operand(emulation, monkeypatch):
    memory = emulated.DEVICE.empty((1024,), np.dtype(np.uint8))
    none = np.ndarray((0, 5), F4, memory, 64).view(emulated.EmulatedArray)
    mask = Emulated().array(np.ones((0, 5), bool))
    with monkeypatch.context() as patch:
        beside = np.ndarray((5,), F4, memory, 64).view(emulated.EmulatedArray)
        patch.setattr(emulated.DEVICE, "empty", lambda shape, dtype, strides=None: beside)
        assert gpuops.sum(where=mask, a=none, axis=0).ctypes.data == none.ctypes.data
    memory[512:] = 7
    none = np.ndarray((0, 5), F4, memory, 512).view(emulated.EmulatedArray)
    assert not np.array(gpuops.sum(where=mask, a=none, axis=0)).any()
    assert (memory[512:] == 7).all()


def test_strides_of_length_1_dims_do_not_matter(device):
    base = numbers(0, (4, 5))
    left, right = base[None, :, :4], base.reshape(1, 4, 5)[:, :, :4]
    whole = base[None], base.reshape(1, 4, 5)
    for pair in ((left, right), whole):
        for x, y in (pair, pair[::-1]):
            results = [gpuops.where(device.array(each), device.array(each), 0) for each in (x, y)]
            launch_cache.entries.cache_clear()
            assert results[0].strides == results[1].strides


def test_disjoint_calls_stay_cached_beside_overlapping_ones(device):
    memory, mask = device.array(numbers(0, (10, 6))), device.array(MASK)
    gpuops.where(mask, memory[:5], 0, out=memory[5:])
    gpuops.where(mask, memory[:5], 0, out=memory[1:6])
    with only_hits():
        gpuops.where(mask, memory[:5], 0, out=memory[5:])


def test_invalid_calls_raise_every_time(device):
    x = device.array(numbers(0))
    for _ in range(2):
        with pytest.raises(ValueError, match="out has shape"):
            gpuops.softmax(x, axis=1, out=x[:4])
        with pytest.raises(TypeError, match="do not mix"):
            gpuops.where(x, numbers(0), x)


def test_positional_and_keyword_arguments_are_distinguished(device):
    x = device.array(numbers(0))
    assert gpuops.sum(x, 1).shape == gpuops.sum(x, axis=1).shape == (5,)
    assert gpuops.sum(x, 0).shape == gpuops.sum(axis=0, a=x).shape == (6,)
    assert gpuops.sum(x, keepdims=True).shape == (1, 1)
    with only_hits():
        assert gpuops.sum(x, axis=1).shape == (5,)


def test_cache_size_is_limited(device):
    x = device.array(np.array([True, False]))
    for value in range(launch_cache.LIMIT + 10):
        launch_cache.entries(gpuops.where, value)
    gpuops.where(x, 1, 2)
    assert launch_cache.entries.cache_info().currsize == launch_cache.LIMIT == gpuops.info()["calls"]["limit"]


def test_info_counts_hits_and_misses(device):
    x = device.array(numbers(0))
    before = gpuops.info()["calls"]
    for _ in range(5):
        gpuops.sum(x)
    after = gpuops.info()["calls"]
    assert after["hits"] - before["hits"] == 4 and after["misses"] - before["misses"] == 1
    assert after["known"] == 1


@pytest.mark.parametrize("name", OPS)
def test_the_second_call_of_numpy_arrays_hits_the_cache(name):
    OPS[name](numbers(0), numbers(1))
    with only_hits():
        result = OPS[name](numbers(2), numbers(3))
    assert_bits(result, missed(OPS[name], numbers(2), numbers(3)))


def test_numpy_arrays_that_are_written_to_hit_the_cache_if_they_are_writeable():
    x, out = numbers(0), np.empty(5, np.float32)
    gpuops.sum(x, 1, out=out)
    with only_hits():
        assert gpuops.sum(numbers(1), 1, out=out) is out
    np.testing.assert_array_equal(out, numbers(1).sum(1, np.float64).astype(np.float32))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        gpuops.sum(x, 1, out=out)


@pytest.mark.parametrize("other", ["scalar", "mask", "dtype", "order", "axis", "list", "subclass"])
def test_calls_of_numpy_arrays_that_differ_are_told_apart(other):
    x, mask = numbers(0), numbers(1) > 0
    calls = {
        "scalar": [lambda value=value: gpuops.where(mask, x, value) for value in (1.0, 2.0, np.float32(3))],
        "mask": [lambda value=value: gpuops.sum(x, 1, where=value) for value in (mask, ~mask, True)],
        "dtype": [lambda value=value: gpuops.sum(x.astype(value), 1) for value in ("f4", "f8", "i2", "f2")],
        "order": [lambda value=value: gpuops.sum(x.astype(value), 1) for value in ("<f4", ">f4")],
        "axis": [lambda value=value: gpuops.sum(x, np.array(value)) for value in (0, 1)],
        "list": [lambda value=value: gpuops.sum(value, 0) for value in ([1, 2], [3, 4])],
        "subclass": [lambda value=value: gpuops.sum(value.view(np.recarray), 0) for value in (x, mask)],
    }[other]
    right = [missed(call) for call in calls]
    for _ in range(3):
        for call, expected in zip(calls, right, strict=True):
            assert_bits(np.asarray(call()), np.asarray(expected))


def test_cached_functions_keep_names_and_signatures():
    assert str(inspect.signature(gpuops.expand)) == "(x, shape, *, out=None, strategy=None)"
    assert gpuops.sum.__name__ == "sum" and "numpy.sum" in gpuops.sum.__doc__


def test_threads_share_cache_entries(device):
    arrays = [device.array(numbers(seed)) for seed in range(8)]
    right = [device.numpy(missed(gpuops.softmax, x)) for x in arrays]
    launch_cache.entries.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(gpuops.softmax, arrays * 4)]
    for got, expected in zip(found, right * 4):
        assert_bits(device.numpy(got), expected)


def test_temporaries_are_allocated_as_workspace(emulation, monkeypatch):
    made, x, workspace = [], Emulated().array(numbers(0, (6, 6))), emulated.DEVICE.workspace
    monkeypatch.setattr(emulated.DEVICE, "workspace", lambda nbytes: made.append(nbytes) or workspace(nbytes))
    for _ in range(2):
        gpuops.softmax(x, axis=1)
        assert not made
        gpuops.softmax(x, axis=1, strategy="two_pass")  # statistics
        gpuops.sum(x, axis=0, out=x[0])  # a temporary result
        gpuops.where(x[1:], x[:-1], 0, out=x[1:])
        gpuops.matmul(x, x, out=x)
        assert len(made) == 4
        made.clear()


@given(data=st.data())
def test_hits_and_misses_give_the_same_bits(device, data):
    name = data.draw(st.sampled_from(["sum", "min", "any", "softmax", "log_softmax", "logsumexp"]))
    op, shape = getattr(gpuops, name), data.draw(layouts.shapes(max_dims=3, max_size=500))
    x = data.draw(layouts.arrays(shape, data.draw(st.sampled_from([F4, np.dtype(np.float16), np.dtype(np.int8)]))))
    options = {"axis": data.draw(layouts.axes(len(shape)))}
    if name == "min":
        options["initial"] = 3
    if data.draw(st.booleans()):
        options["where"] = data.draw(layouts.masks(shape))
    like = op(x, **options)
    out = data.draw(layouts.outs(like.shape, like.dtype, [x])) if data.draw(st.booleans()) else None
    run(device, op, x, out=out, **options)
    values = x.base[: x.base.size // x.itemsize * x.itemsize].view(x.dtype)
    values[...] = layouts.random(np.random.default_rng(data.draw(st.integers(0, 99))), values.shape, x.dtype)
    assert_bits(run(device, op, x, out=out, **options), run(device, partial(missed, op), x, out=out, **options))
