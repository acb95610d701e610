"""argmax, argmin and those that leave out NaN against NumPy, on every path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call.dispatch import describe
from gpuops.definition.records import SEARCHES, WITH_INDEX
from gpuops.plan.work import ArraySpec, Machine
from tests import layouts, tiers
from tests.budget import examples, pairs
from tests.compare import run
from tests.emulated import EmulatedDevice
from tests.layouts import BFLOAT16, COMMON, DTYPES, LAYOUTS, lay_out

STRATEGIES = (None, *gpuops.strategies("argmax"))
#: Those that NaN wins; NumPy's others raise for all-NaN slices.
PLAIN = tuple(op for op, row in SEARCHES.items() if not row.plain)
#: A shape and an axis for each way in which the kernels read.
REGIMES: dict[str, tuple[tuple[int, ...], int | None]] = {
    "a row": ((300,), None),
    "a row of several blocks": ((160011,), None),
    "rows of a pack": ((700, 4), 1),
    "short rows": ((300, 11), 1),
    "rows of a warp": ((40, 260), 1),
    "rows of a block": ((3, 9001), 1),
    "columns": ((70, 100), 0),
    "columns of several blocks": ((9000, 16), 0),
    "a middle axis": ((5, 40, 6), 1),
    "a whole array": ((5, 40, 6), None),
    "rows of one element": ((7, 1), 1),
}
SMALL = ("?", "i1", "u1", "i2", "u2")  # dtypes that kernels search several elements at a time
ALONE = Machine(1, together=1)  # whose threads take several batches of packs:
#: a shape for each way in which they do, given the bytes of an element, the order in memory, and the axis.
BATCHES: dict[str, tuple[Callable[[int], tuple[int, ...]], str, int | None]] = {
    "rows of lanes": (lambda size: (8, 6144 // size), "C", 1),
    "rows of a block": (lambda size: (2, 40000 // size), "C", 1),
    "rows with head and tail": (lambda size: (3, 40000 // size + 1), "C", 1),
    "a row of several blocks": (lambda size: (200000 // size,), "C", None),
    "a row in another order": (lambda size: (8, 32000 // size), "F", None),
    "columns": (lambda size: (600, 128), "C", 0),
    "columns with edges": (lambda size: (600, 131), "C", 0),
    "columns of a thread": (lambda size: (64, 2048), "C", 0),
}


def check(backend: Any, op: str, x: np.ndarray, out: np.ndarray | None = None, **options: Any) -> None:
    """gpuops' result must be NumPy's."""
    strategy = {"strategy": options.pop("strategy")} if "strategy" in options else {}
    expected = getattr(np, op)(x, **options)
    got = run(backend, getattr(gpuops, op), x, out=out, **options, **strategy)
    assert (got.dtype, got.shape) == (np.dtype(np.int64) if out is None else out.dtype, np.shape(expected))
    np.testing.assert_array_equal(got, expected)


def few(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Values of which there are few different ones."""
    return np.random.default_rng(seed).integers(-1 if np.dtype(dtype).kind not in "ub?" else 0, 2, shape).astype(dtype)


@pytest.mark.parametrize("op", PLAIN)
@examples(60)
@given(data=st.data())
def test_agrees_with_numpy(backend, op, data):
    shape = data.draw(layouts.shapes().filter(lambda shape: 0 not in shape))
    x = data.draw(layouts.arrays(shape, data.draw(st.sampled_from(COMMON))))
    options = {"axis": data.draw(st.none() | st.integers(-len(shape), len(shape) - 1) if shape else st.none())}
    options["keepdims"] = data.draw(st.booleans())
    out = None
    if data.draw(st.booleans()):
        expected = getattr(np, op)(x, **options)
        dtype = np.dtype(data.draw(st.sampled_from(["i8", "i4", "u2"])))
        out = data.draw(layouts.outs(np.shape(expected), dtype, (x,)))
    with np.errstate(invalid="ignore"):
        check(backend, op, x, out, strategy=data.draw(st.sampled_from(STRATEGIES)), **options)


@pytest.mark.parametrize("start", [0, 5, 9])
def test_out_may_lie_in_the_input(backend, start):
    memory = np.zeros(20, np.int64)
    memory[:18] = np.tile([0, 0, 1], 6)
    a, out = backend.arrays(memory[:18].reshape(6, 3), memory[start : start + 6])
    assert gpuops.argmax(a, 1, out) is out
    np.testing.assert_array_equal(backend.fetch(out), np.full(6, 2))


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("op", PLAIN)
def test_the_first_of_equal_elements_wins(backend, op, regime):
    shape, axis = REGIMES[regime]
    check(backend, op, few(shape, "f4"), axis=axis)
    check(backend, op, np.zeros(shape, "f4"), axis=axis)


def equal_extremes(shape: tuple[int, ...], axis: int | None, dtype: np.dtype, least: bool) -> Iterator[np.ndarray]:
    """Arrays of which each row has equal extremes: two, ever farther apart; several; about every second element."""
    random = np.random.default_rng(9)
    extreme, other = np.array([0, 1] if least else [1, 0]).astype(dtype)
    x = np.empty(shape, dtype)
    rows = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, -1)
    every, length = np.arange(len(rows)), rows.shape[-1]
    for apart in 2 ** np.arange(length.bit_length() - 1):
        first = random.integers(0, length - apart, len(rows))
        rows[...] = other
        rows[every, first] = rows[every, first + apart] = extreme
        yield x
    for chance in (4 / length, 0.5):
        rows[...] = np.where(random.random(rows.shape) < chance, extreme, other)
        yield x


@pytest.mark.parametrize("regime", BATCHES)
@pytest.mark.parametrize(
    ("op", "dtype"),
    [*product(PLAIN, SMALL), *pairs(PLAIN, ["f2", "f4"]), *pairs(WITH_INDEX, SMALL)],
)
def test_the_first_of_equal_elements_wins_however_far_apart_they_are(device, monkeypatch, op, dtype, regime):
    """In one pack, in others of a batch, in later batches, of other threads, warps and blocks."""
    monkeypatch.setattr(EmulatedDevice, "machine", ALONE)
    shape, order, axis = BATCHES[regime]
    place = np.argmin if "min" in op else np.argmax
    for values in equal_extremes(shape(np.dtype(dtype).itemsize), axis, np.dtype(dtype), place is np.argmin):
        x = np.asarray(values, order=order)
        found = getattr(gpuops, op)(device.array(x), axis=axis)
        np.testing.assert_array_equal(device.numpy(found.indices if op in WITH_INDEX else found), place(x, axis=axis))


@pytest.mark.parametrize("regime", BATCHES)
def test_threads_of_one_multiprocessor_take_several_batches(regime):
    shape, order, axis = BATCHES[regime]
    for dtype in map(np.dtype, ("i1", "i2", "f4")):
        x = np.empty(shape(dtype.itemsize), dtype, order=order)
        with tiers.tuned():
            plan = describe(gpuops.argmax, ArraySpec("x", x.shape, dtype, x.strides, ALONE), axis=axis).plan
        (step,) = plan.steps
        constants, chunk = dict(step.kernel.constants), step.args[-1].values[2]
        assert chunk > (constants.get("TEAM") or step.block // constants["WIDE"]) * constants["UNROLL"]


@pytest.mark.parametrize(
    "regime", ["a row of several blocks", "rows of a warp", "rows of a block", "columns of several blocks"]
)
@pytest.mark.parametrize("dtype", ["?", "f2", "c8"])
@pytest.mark.parametrize("op", SEARCHES)
def test_every_way_to_compare(backend, op, dtype, regime):
    shape, axis = REGIMES[regime]
    random = np.random.default_rng(6)
    x = random.standard_normal(shape).astype("f4").astype(dtype)
    rare = (random.random(shape) < 3 / x.shape[axis or 0]).astype(dtype)
    for values in (few(shape, dtype), x, rare, 1 - rare if dtype != "?" else ~rare):
        check(backend, op, values, axis=axis)
    if dtype != "?":
        x[rare != 0] = np.nan
        np.moveaxis(x, axis or 0, 0)[:1] = 0  # so that no row is NaN alone
        check(backend, op, x, axis=axis)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_reads_every_layout(backend, strategy):
    for layout in LAYOUTS:
        x = lay_out(few((6, 70, 5), "f4"), layout)
        for axis in (None, 0, 1, 2):
            check(backend, "argmax", x, axis=axis, strategy=strategy)


@pytest.mark.parametrize("dtype", ["?", "i1", "f2", BFLOAT16, "i4", "f8"], ids=str)
@pytest.mark.parametrize("op", SEARCHES)
def test_memory_in_another_order_than_that_of_the_indices(backend, op, dtype):
    for shape in ((48, 32), (7, 1024), (3, 1031), (2, 6, 64)):
        x = few(shape, dtype)
        for values in (x, np.random.default_rng(3).permuted(np.arange(x.size)).reshape(shape).astype(dtype), x == x):
            for there in (values.T, values[..., ::-1], np.moveaxis(values, 0, -1)[::-1]):
                check(backend, op, there)
                check(backend, op, there[1:])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", PLAIN)
def test_takes_every_dtype(backend, op, dtype):
    for axis in (0, 1):
        check(backend, op, few((5, 40), dtype), axis=axis)


@pytest.mark.parametrize("op", PLAIN)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
def test_the_first_nan_wins(backend, op, dtype):
    x = np.ones((4, 50), dtype)
    x[0, 0] = x[1, 7] = x[1, 31] = x[2, 49] = np.nan
    x[:, 20], x[:, 21] = np.inf, -np.inf
    check(backend, op, x, axis=1)
    check(backend, op, x.T, axis=0)


@pytest.mark.parametrize("op", SEARCHES)
def test_rows_of_the_least_and_of_the_greatest_value(backend, op):
    info = np.iinfo("i4")
    for value in (-np.inf, np.inf):
        check(backend, op, np.full((3, 40), value, "f4"), axis=1)
    for value in (info.min, info.max):
        check(backend, op, np.full((3, 40), value, "i4"), axis=1)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "f2", BFLOAT16], ids=str)
@pytest.mark.parametrize("op", SEARCHES)
def test_small_elements_that_are_all_the_least_or_the_greatest(backend, op, dtype):
    kind = np.dtype(dtype).kind
    least, greatest = (0, 1) if kind == "b" else (-np.inf, np.inf)
    if kind in "iu":
        least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    for value in (least, greatest):
        x = np.full((40, 64), value).astype(dtype)
        for axis in (0, 1):
            check(backend, op, x, axis=axis)
            check(backend, op, np.ascontiguousarray(x.T), axis=axis)


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16], ids=str)
@pytest.mark.parametrize("op", PLAIN)
def test_nan_of_any_bits_wins_among_half_types(backend, op, dtype):
    infinity = int(np.array(np.inf).astype(dtype).view(np.uint16))
    bits = np.array([0x7FFF, 0xFFFF, infinity + 1, infinity + 0x8001], np.uint16)
    x = np.random.default_rng(7).standard_normal((64, 64)).astype(dtype)
    for i, nan in enumerate(bits):
        x.view(np.uint16)[5 * i + 7, :: i + 3] = nan
        x.view(np.uint16)[5 * i + 9, 40] = bits[i - 1]
    for axis in (0, 1):
        check(backend, op, x, axis=axis)


@pytest.mark.parametrize("op", SEARCHES)
def test_zeros_of_both_signs_are_equal(backend, op):
    check(backend, op, np.array([[0.0, -0.0, 0.0], [-0.0, 0.0, -0.0]], "f4"), axis=1)


@pytest.mark.parametrize("op", SEARCHES)
def test_complex_numbers_are_ordered_by_real_then_imaginary_part(backend, op):
    check(backend, op, np.array([1 + 2j, 1 + 3j, 1 - 9j, 0 + 9j], "c8"))


@pytest.mark.parametrize("op", SEARCHES)
def test_nothing_to_search_raises(backend, op):
    function = getattr(gpuops, op)
    with pytest.raises(ValueError, match=rf"^{op}: there is nothing to search along axis \(0,\) of shape \(0, 3\)$"):
        function(backend.array(np.zeros((0, 3))), axis=0)
    with pytest.raises(ValueError, match=f"^{op}: there is nothing to search"):
        function(backend.array(np.zeros((0,))))
    assert backend.numpy(function(backend.array(np.zeros((0, 3))), axis=1)).shape == (0,)


@pytest.mark.parametrize("op", SEARCHES)
def test_axis_must_be_an_int(backend, op):
    x = backend.array(np.zeros((2, 3)))
    for axis in ((0, 1), 1.0, True, "0"):
        with pytest.raises(TypeError, match=f"^{op}: axis must be None or an int, got "):
            getattr(gpuops, op)(x, axis=axis)
    with pytest.raises(np.exceptions.AxisError, match=f"^{op}: axis 2 is out of range"):
        getattr(gpuops, op)(x, axis=2)


@pytest.mark.parametrize("dtype", ["uint64", "float64"])
def test_out_must_be_an_integer_that_int64_holds(backend, dtype):
    x, out = backend.arrays(np.zeros((2, 3)), np.zeros(2, dtype))
    with pytest.raises(TypeError, match=f"^argmax: out has dtype {dtype}, which does not cast safely to int64"):
        gpuops.argmax(x, 1, out)


def test_out_has_the_shape_of_the_result(backend):
    x, out = backend.arrays(np.zeros((2, 3)), np.zeros(3, int))
    with pytest.raises(ValueError, match=r"^argmax: out has shape \(3,\), the result has shape \(2,\)$"):
        gpuops.argmax(x, 1, out)


def test_strategies_that_finish_on_the_host_are_not_for_indices(backend):
    assert not any(name.endswith("_host") for name in gpuops.strategies("argmax"))
    with pytest.raises(ValueError, match="^argmax: unknown strategy 'cross_host'; valid: None, "):
        gpuops.argmax(backend.array(np.zeros(3)), strategy="cross_host")


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_dask_arrays(axis):
    da = pytest.importorskip("dask.array", reason="needs Dask")
    x = few((9, 14), "f4")
    for keepdims in (False, True):
        got = gpuops.argmax(da.from_array(x, (4, 5)), axis=axis, keepdims=keepdims)
        assert isinstance(got, da.Array)
        np.testing.assert_array_equal(got.compute(), np.argmax(x, axis=axis, keepdims=keepdims))
