"""sum, prod, max, min, mean, any and all against NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.ops import table
from tests import layouts
from tests.budget import examples, pairs, round_robin
from tests.compare import accumulator_eps, assert_bits, assert_near, assert_same, run_on
from tests.layouts import BFLOAT16, COMMON, DTYPES, HALVES, LAYOUTS, inexact, lay_out, wide

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

OPS = tuple(table.REDUCTIONS)
STRATEGIES = (None, *gpuops.strategies("sum"))
CLASSIC = ("cross", "interleaved", "shuffle")
LENGTHS = (1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 8193, 50001)  # the last takes several blocks

#: dtype= for each kind of input, where the conversion of each element is defined.
DTYPE = {"b": "?bilfd", "i": "bilfde", "u": "BHILfd", "f": "fdD", "V": "fd", "c": "FD"}
#: Other dtypes of out, to which the result is cast.
OUT = {"b": "?bif", "i": "bildF", "u": "BHIlf", "f": "fdFD", "V": "fd", "c": "FD"}


@dataclass
class Call:
    """A reduction: the input and the options that NumPy knows, then gpuops' own."""

    op: str
    x: np.ndarray
    options: dict[str, Any]
    out: np.ndarray | None = None
    strategy: str | None = None

    def numpy(self, **more: Any) -> Any:
        """NumPy's result."""
        return getattr(np, self.op)(self.x, **self.options, **more)

    def run(self, backend: Any) -> np.ndarray:
        """gpuops' result."""
        more = {"strategy": self.strategy}
        return run_on(backend, getattr(gpuops, self.op), self.x, self.out, self.options | more)


def check(call: Call, got: np.ndarray) -> None:
    """Compare a result with NumPy's: dtype, shape and values."""
    out = None if call.out is None else np.zeros(call.out.shape, call.out.dtype)
    expected = np.asarray(call.numpy() if out is None else call.numpy(out=out))
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if call.op in ("max", "min", "any", "all") or not (inexact(got.dtype) or inexact(call.x.dtype)):
        assert_same(got, expected)
        return
    val = np.dtype(call.options.get("dtype") or (got.dtype if inexact(got.dtype) else call.x.dtype))
    if not inexact(val):  # floats cast to integers before the sum
        assert_same(got, expected)
        return
    x = call.x.astype(val).astype(wide(val))
    options = {name: value for name, value in call.options.items() if name != "dtype"}
    exact = np.asarray(getattr(np, call.op)(x, **options))
    eps = max(accumulator_eps(val), accumulator_eps(got.dtype) if got.dtype not in HALVES else 0)
    length = x.size / max(exact.size, 1)
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    if "initial" in options:
        options["initial"] = abs(options["initial"] or 0)
    size = np.abs(exact) if call.op == "prod" else getattr(np, call.op)(finite, **options)
    if call.op in ("mean", "prod") and got.dtype.kind == "c":  # which component gets the NaN depends on the order
        got, exact = (np.where(np.isfinite(a), a, np.nan) for a in (got, exact))
    error = eps * (8 + (length if call.op == "prod" else math.sqrt(length))) * np.where(np.isfinite(size), size, 0)
    assert_near(got, exact, error)


def safe(x: np.ndarray, op: str) -> np.ndarray:
    """Values whose product does not depend on the order: signs, zeros, infinities."""
    if op == "prod":
        whole = x.base[: x.base.size // x.itemsize * x.itemsize].view(x.dtype)
        if x.dtype.kind == "c":
            whole[...] = np.array([1, -1, 1j, -1j])[(whole.real > 0) + 2 * (whole.imag > 0)]
        elif x.dtype != bool:
            with np.errstate(invalid="ignore"):
                whole[...] = np.where(np.isfinite(whole), np.sign(whole), whole)
    return x


@st.composite
def calls(draw: st.DrawFn, op: str) -> Call:
    """Any call of a reduction that NumPy supports too."""
    shape = draw(layouts.shapes())
    x = safe(draw(layouts.arrays(shape, draw(st.sampled_from(COMMON)))), op)
    options: dict[str, Any] = {"axis": draw(layouts.axes(len(shape))), "keepdims": draw(st.booleans())}
    if op in ("sum", "prod", "mean") and draw(st.booleans()):
        choice = DTYPE[x.dtype.kind]
        if op == "mean":  # an empty mean is NaN, which integers cannot hold
            choice = "".join(c for c in choice if inexact(np.dtype(c)))
        options["dtype"] = np.dtype(draw(st.sampled_from(choice)))
    if op in ("sum", "prod", "max", "min") and (op in ("max", "min") or draw(st.booleans())):
        options["initial"] = draw(st.sampled_from([0, 1] if x.dtype == bool else [2, 0, np.int8(3)]))
    if draw(st.booleans()):
        options["where"] = draw(st.one_of(layouts.masks(shape), st.booleans()))
    strategy = draw(st.sampled_from(STRATEGIES))
    call = Call(op, x, options, None, strategy)
    if draw(st.booleans()):
        result = np.asarray(call.numpy())
        dtype = result.dtype
        if "dtype" not in options and draw(st.integers(0, 3)) == 0:
            dtype = np.dtype(draw(st.sampled_from(OUT[dtype.kind])))
        inputs = [a for a in (x, options.get("where")) if isinstance(a, np.ndarray)]
        call.out = draw(layouts.outs(result.shape, dtype, inputs))
    return call


@pytest.mark.parametrize("op", OPS)
@examples(40)
@given(data=st.data())
def test_agrees_with_numpy(backend, op, data):
    call = data.draw(calls(op))
    check(call, call.run(backend))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", OPS)
def test_takes_every_dtype(backend, op, dtype):
    x = lay_out(layouts.random(np.random.default_rng(0), (5, 40), dtype, special=op != "prod"), "C")
    for axis in round_robin((0, 1), start=OPS.index(op) + DTYPES.index(dtype)):
        call = Call(op, x, {"axis": axis})
        check(call, call.run(backend))


@pytest.mark.parametrize("axis,op", pairs(["last", "first", "whole"], ["sum", "max"]))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reduces_every_length(backend, op, strategy, axis):
    for length in LENGTHS:
        shape, dims = {"last": ((3, length), 1), "first": ((length, 3), 0), "whole": ((length,), None)}[axis]
        x = lay_out(layouts.random(np.random.default_rng(length), shape, np.dtype("f4")), "C")
        call = Call(op, x, {"axis": dims}, strategy=strategy)
        check(call, call.run(backend))


@pytest.mark.parametrize("strategy", CLASSIC)
@pytest.mark.parametrize("op", OPS)
def test_host_finish_merges_many_blocks(backend, op, strategy):
    x = lay_out(layouts.random(np.random.default_rng(0), (2, 20001), np.dtype("f4")), "C")
    call = Call(op, safe(x, op), {"axis": 1}, strategy=f"{strategy}_host")
    check(call, call.run(backend))


#: A shape, an axis and a slice for each memory access pattern.
REGIMES: dict[str, tuple[tuple[int, ...], Any, tuple[slice, ...]]] = {
    "rows of a pack": ((8192, 4), 1, ()),
    "rows of a few packs": ((3000, 20), 1, ()),
    "tiny rows": ((3001, 3), 1, ()),
    "tiny rows of seven": ((333, 7), 1, ()),
    "tiny rows from an odd offset": ((3001, 3), 1, (slice(1, None),)),
    "padded tiny rows": ((3001, 4), 1, (slice(None), slice(1, None))),
    "a few short runs": ((2, 10), None, (slice(None), slice(5))),
    "a few tiny runs": ((2, 6), None, (slice(None), slice(3))),
    "short rows": ((3000, 11), 1, ()),
    "many short rows": ((40001, 5), 1, ()),
    "short rows from an odd offset": ((3001, 33), 1, (slice(1, None),)),
    "rows of a warp": ((100, 260), 1, ()),
    "unaligned rows of a warp": ((100, 261), 1, ()),
    "padded rows": ((40, 2003), 1, (slice(None), slice(2, -3))),
    "a row of several blocks": ((2, 160000), 1, ()),
    "an unaligned row of several blocks": ((160011,), None, (slice(5, -2),)),
    "runs of several blocks": ((20, 9000), None, (slice(None), slice(3, -1))),
    "long runs of several blocks": ((3, 60000), None, (slice(None), slice(1, None))),
    "a few columns": ((9000, 5), 0, ()),
    "columns": ((700, 100), 0, ()),
    "columns of several blocks": ((20000, 16), 0, ()),
    "misaligned columns": ((600, 640), 0, (slice(None), slice(3, -7))),
    "columns misaligned within a word": ((500, 131), 0, ()),
    "columns misaligned within a word, several blocks": ((20001, 67), 0, (slice(None, None, -1), slice(1, None))),
    "columns misaligned within a word, many runs": ((7, 300, 139), 1, ()),
    "columns of many runs": ((7, 300, 20), 1, ()),
    "shallow columns": ((6, 20000), 0, ()),
    "columns of pairs of axes": ((9, 40, 11, 24), (0, 2), ()),
}


#: dtypes of each family, with ops.
FAMILIES = [
    [*product(dtypes, ["sum", "min"])]
    for dtypes in (["i1", "u2", "?"], ["f2", BFLOAT16], ["f4", "i4", "f8", "c8", "c16"])
]


@pytest.mark.parametrize("regime,kind", pairs(REGIMES, *FAMILIES), ids=str)
def test_every_memory_access_regime(backend, regime, kind):
    dtype, op = kind
    shape, axis, cut = REGIMES[regime]
    x = lay_out(layouts.random(np.random.default_rng(0), shape, np.dtype(dtype)), "C")[cut]
    for each in ("sum", "max", "all") if regime in ("columns", "a row of several blocks") else (op,):
        call = Call(each, x, {"axis": axis})
        check(call, call.run(backend))


@pytest.mark.parametrize(
    "dtype,op",
    pairs(["i1", "u1", "i2", "u2", "?", "f2", BFLOAT16], ["max", "min"], ["any", "all"], ["sum", "mean"]),
    ids=str,
)
def test_small_elements_at_every_position_in_a_word(backend, op, dtype):
    dtype = np.dtype(dtype)
    rest, found = {"any": (0, 1), "all": (1, 0), "min": (1, 0)}.get(op, (0, 1))
    for place in range(0, 40, 3):
        for shape, axis in (((40, 2), 0), ((2, 64), 1), ((2, 40), 1), ((48, 32), 0), ((40, 333), 1)):
            x = lay_out(np.full(shape, rest, dtype), "C")
            np.moveaxis(x, axis, -1)[0, place] = found
            call = Call(op, x, {"axis": axis})
            check(call, call.run(backend))


@pytest.mark.parametrize("dtype,op", pairs(["i1", "u1", "i2", "u2"], ["sum", "mean"], ["max", "min"]))
def test_extreme_values_of_small_integers(backend, op, dtype):
    info = np.iinfo(dtype)
    for value in (info.min, info.max):
        for shape, axis in (((3, 5000), 1), ((5000, 48), 0), ((2**15, 2), 0), ((1, 2**15 + 1), 1), ((40, 5), 1)):
            call = Call(op, lay_out(np.full(shape, value, dtype), "C"), {"axis": axis})
            check(call, call.run(backend))


#: dtypes, with ops along axes 0, 1 and all.
MASKED = [*product(["f4", "i1", "f8", "f2"], (("sum", "mean", "sum"), ("mean", "sum", "mean")))]


@pytest.mark.parametrize("mask,kind", pairs([(60, 512), (60, 1), (1, 512), (512,), (1, 1)], MASKED), ids=str)
@pytest.mark.parametrize("cut", [slice(None), slice(1, None), slice(16, -16), slice(None, None, -1)], ids=str)
def test_masks_of_every_shape(backend, cut, mask, kind):
    dtype, ops = kind
    x = lay_out(layouts.random(np.random.default_rng(0), (60, 512), np.dtype(dtype)), "C")[:, cut]
    where = lay_out(np.random.default_rng(1).random(mask) < 0.6, "C")
    where = where[..., cut] if mask[-1] > 1 else where
    for axis, op in zip((0, 1, None), ops):
        call = Call(op, x, {"axis": axis, "where": where})
        check(call, call.run(backend))


def test_float32_sum_of_a_million_numbers_is_within_2_ulps(device):
    x = np.random.default_rng(0).random(2**20, np.float32)
    exact = x.astype(np.float64).sum()
    for shape, axis in (((2**20,), None), ((2, 2**19), 1), ((2**16, 16), 0)):
        there = device.array(x.reshape(shape))
        got = device.numpy(gpuops.sum(there, axis=axis)).astype(np.float64).sum()
        assert abs(got - exact) <= 2 * np.spacing(np.float32(exact))


@pytest.mark.parametrize("shape", [(3, 3000), (3000, 3), (40000, 2), (2, 40000), (17, 129, 5)], ids=str)
@pytest.mark.parametrize("op", ["sum", "max", "mean"])
def test_few_long_and_many_short_rows(backend, op, shape):
    x = lay_out(layouts.random(np.random.default_rng(0), shape, np.dtype("f4")), "C")
    for axis in (*range(len(shape)), None):
        call = Call(op, x, {"axis": axis})
        check(call, call.run(backend))


@pytest.mark.parametrize("axes", [(0, 2, 4), (1, 3, 5), (0, 3), ()], ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_dims_that_do_not_merge(backend, strategy, axes):
    x = layouts.strided((3, 2, 4, 3, 2, 5), np.dtype("f4"), (0, 1, 2, 3, 4, 5), (2, 1, 2, -1, 2, 3))
    x[...] = layouts.random(np.random.default_rng(0), x.shape, x.dtype)
    mask = lay_out(np.random.default_rng(1).random((4, 1, 2, 5)) < 0.7, "C")
    for where in (True, mask):
        call = Call("sum", x, {"axis": axes, "where": where}, strategy=strategy)
        check(call, call.run(backend))


@pytest.mark.parametrize("layout,dtype", pairs(LAYOUTS, ["f4", "i1", "c16", "f2", "f8"]))
def test_reads_every_layout(backend, layout, dtype):
    x = lay_out(layouts.random(np.random.default_rng(0), (6, 64, 32), np.dtype(dtype)), layout)
    for axis in (0, 1, 2, (0, 2), None):
        call = Call("sum", x, {"axis": axis})
        check(call, call.run(backend))


@pytest.mark.parametrize("length", [33, 257, 1025, 8193])
@pytest.mark.parametrize("op", ["max", "min"])
def test_nan_propagates_from_every_position(backend, op, length):
    for place in (0, length // 2, length - 1):
        for shape, axis in (((2, length), 1), ((length, 2), 0)):
            x = lay_out(layouts.random(np.random.default_rng(0), shape, np.dtype("f4")), "C")
            np.moveaxis(x, axis, -1)[0, place] = np.nan
            for strategy in STRATEGIES:
                got = Call(op, x, {"axis": axis}, strategy=strategy).run(backend)
                assert np.isnan(got).tolist() == [True, False]


@pytest.mark.parametrize("op", ["max", "min"])
def test_complex_numbers_are_ordered_by_real_then_imaginary_part(backend, op):
    x = lay_out(np.array([1 + 5j, 2 + 1j, 2 + 3j, 1 - 9j, 2 - 1j, -np.inf + 0j], "c8"), "C")
    for strategy in STRATEGIES:
        call = Call(op, x, {}, strategy=strategy)
        check(call, call.run(backend))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_repeated_calls_are_bitwise_identical(backend, dtype, strategy):
    for shape, axis in (((3, 20001), 1), ((20001, 3), 0), ((3, 20001), None)):
        x = backend.array(layouts.random(np.random.default_rng(0), shape, np.dtype(dtype)))
        first, second = (backend.numpy(gpuops.sum(x, axis, strategy=strategy)) for _ in range(2))
        assert_bits(first, second)


@pytest.mark.parametrize("strategy,dtype", pairs(STRATEGIES, ["f4", "f8"], ["f2", BFLOAT16]), ids=str)
def test_subnormals_are_kept(backend, strategy, dtype):
    tiny = {"f4": 1.4e-45, "f2": 6e-8, BFLOAT16: 9.2e-41, "f8": 5e-324}[dtype]
    x = lay_out(np.array([3, 1, 2] * 11).astype("f8") * tiny, "C").astype(dtype)
    assert (x != 0).all()
    there = backend.array(x)
    assert_bits(backend.numpy(gpuops.max(there, strategy=strategy)), x[0])
    assert_bits(backend.numpy(gpuops.min(backend.array(-x), strategy=strategy)), -x[0])
    assert_bits(backend.numpy(gpuops.sum(there, strategy=strategy)), (np.array(66 * tiny)).astype(dtype))
    assert bool(backend.numpy(gpuops.all(there, strategy=strategy)))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "biu"], ids=str)
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_integers_wrap_like_numpy(backend, op, dtype):
    x = lay_out(layouts.random(np.random.default_rng(0), (300,), dtype, special=True), "C") | dtype.type(1)
    for options in ({}, *round_robin([{"dtype": d} for d in (dtype, np.dtype("i2"), np.dtype("u4"))])):
        call = Call(op, x, options)
        check(call, call.run(backend))


def test_half_types_accumulate_in_float32_and_round_once(backend):
    for dtype in HALVES:
        x = np.full(4097, 1, dtype)
        x[0] = 2048
        exact = np.asarray(2048.0 + 4096).astype(dtype)
        for strategy in STRATEGIES:
            assert_bits(backend.numpy(gpuops.sum(backend.array(x), strategy=strategy)), exact)
        mean = np.asarray((2048.0 + 4096) / 4097).astype(dtype)
        assert_bits(backend.numpy(gpuops.mean(backend.array(x))), mean)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "view",
    [lambda x: x[0], lambda x: x[-1], lambda x: x[::2].reshape(-1)[: x.shape[1]], lambda x: x[2, ::-1]],
    ids=["first row", "last row", "a row", "reversed row"],
)
def test_out_may_be_part_of_the_input(backend, view, strategy):
    memory = np.zeros(7 * 33 * 4, np.uint8)
    x = np.ndarray((7, 33), np.float32, memory)
    x[...] = layouts.random(np.random.default_rng(0), x.shape, x.dtype)
    out = np.ndarray((33,), np.float32, memory, *placed(view(x), memory))
    call = Call("sum", x, {"axis": 0}, out, strategy)
    check(call, call.run(backend))


def placed(view: np.ndarray, memory: np.ndarray) -> tuple[int, tuple[int, ...]]:
    """The offset and strides of a view in memory; offset 0 for a copy."""
    offset = view.ctypes.data - memory.ctypes.data
    return (offset, view.strides) if 0 <= offset < memory.size else (0, (4,))


@pytest.mark.parametrize("op", OPS)
def test_out_may_be_the_input_when_nothing_is_reduced(backend, op):
    x = lay_out(layouts.random(np.random.default_rng(0), (4, 9), np.dtype(bool if op in ("any", "all") else "f4")), "C")
    call = Call(op, x, {"axis": ()}, x)
    check(call, call.run(backend))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape,axis", [((0,), None), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1), ((2, 0, 3), (0, 1))])
def test_empty_arrays(backend, op, shape, axis):
    options: dict[str, Any] = {"axis": axis}
    if op in ("max", "min"):
        options["initial"] = 7
    call = Call(op, lay_out(np.zeros(shape, "f4"), "C"), options)
    check(call, call.run(backend))


@pytest.mark.parametrize("dtype", ["i1", "i4", "u8", "?"])
def test_integer_means_are_truncated(backend, dtype):
    x = lay_out(np.array([[1, 2, 3, 5], [7, 7, 9, 4]], "i2"), "C")
    for strategy in STRATEGIES:
        call = Call("mean", x, {"axis": 1, "dtype": np.dtype(dtype)}, strategy=strategy)
        check(call, call.run(backend))


@pytest.mark.parametrize("op", ["max", "min"])
def test_an_empty_result_needs_no_initial(backend, op):
    call = Call(op, lay_out(np.zeros((0, 3), "f4"), "C"), {"axis": 1})
    check(call, call.run(backend))


@pytest.mark.parametrize("op", OPS)
def test_0d_arrays(backend, op):
    for dtype in ("f4", "i1", "?"):
        for keepdims in (False, True):
            for axis in (None, ()):
                call = Call(op, lay_out(np.array(3).astype(dtype), "C"), {"axis": axis, "keepdims": keepdims})
                check(call, call.run(backend))


@pytest.mark.parametrize("op", ["sum", "prod", "mean"])
def test_fully_masked_rows(backend, op):
    x = lay_out(layouts.random(np.random.default_rng(0), (3, 40), np.dtype("f4")), "C")
    mask = lay_out(np.array([[True], [False], [True]]), "C")
    for where in (mask, False):
        for strategy in STRATEGIES:
            call = Call(op, safe(x, op), {"axis": 1, "where": where}, strategy=strategy)
            check(call, call.run(backend))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("initial", [0, 5, -3, np.int8(4), 2.0])
def test_initial_is_applied_once(backend, op, initial):
    for shape, axis in (((3, 9000), 1), ((9000, 3), 0)):
        x = lay_out(layouts.random(np.random.default_rng(0), shape, np.dtype("f4")), "C")
        for strategy in STRATEGIES:
            call = Call(op, safe(x, op), {"axis": axis, "initial": initial}, strategy=strategy)
            check(call, call.run(backend))


@pytest.mark.parametrize("op", ["sum", "max"])
def test_initial_none_means_no_initial(backend, op):
    call = Call(op, lay_out(np.arange(6.0).reshape(2, 3), "C"), {"axis": 1, "initial": None})
    check(call, call.run(backend))


def test_amax_and_amin_are_max_and_min():
    assert gpuops.amax is gpuops.max
    assert gpuops.amin is gpuops.min


def test_lists_and_scalars_give_numpy_results():
    assert gpuops.sum([1, 2, 3]) == 6
    assert gpuops.max(3.5) == 3.5
    assert gpuops.any([[0, 0], [0, 1]], axis=1).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["f4", "i1"])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_overlapping_sliding_windows(backend, strategy, axis, dtype):
    x = np.lib.stride_tricks.sliding_window_view(np.arange(299).astype(dtype), 4)
    check(call := Call("sum", x, {"axis": axis}, strategy=strategy), call.run(backend))
