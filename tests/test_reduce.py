"""sum, prod, max, min, mean, any and all against NumPy."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from tests import compare, layouts
from tests.budget import examples, pairs, round_robin
from tests.compare import accumulator_eps, assert_bits, assert_near, assert_repeatable, assert_same, magnitude, run
from tests.layouts import ALONG, BFLOAT16, BOOL, COMMON, DTYPES, HALVES, INTS, LAYOUTS, inexact, lay_out, sample
from tests.ops import EXTREMA, LOGICAL, REDUCTIONS, SPREADS, UFUNCS, WITH_DTYPE, initial, reduction_options

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

STRATEGIES = (None, *gpuops.strategies("sum"))
LADDER = tuple(op for op in REDUCTIONS if "cross" in gpuops.strategies(op))
PRODUCTS, MEANS = ("prod", "nanprod"), ("mean", "nanmean", *SPREADS)
CLASSIC = ("cross", "interleaved", "shuffle")
LENGTHS = (1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 8193, 50001)  # the last takes several blocks

#: dtype= for each kind of input, where the conversion of each element is defined.
DTYPE = {"b": "?bilfd", "i": "bilfde", "u": "BHILfd", "f": "fdD", "V": "fd", "c": "FD"}


def strategies(op: str) -> tuple[str | None, ...]:
    """An op's strategies, and None, which picks one."""
    return (None, *gpuops.strategies(op))


def check_run(
    backend: Any, op: str, x: np.ndarray, out: np.ndarray | None = None, strategy: str | None = None, **options: Any
) -> None:
    """Run a reduction and compare it with NumPy's: dtype, shape and values."""
    got = run(backend, getattr(gpuops, op), x, out=out, strategy=strategy, **options)
    reduce = getattr(np, op)
    expected = np.asarray(reduce(x, **options, **({} if out is None else {"out": np.zeros_like(out)})))
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    own = got.dtype if inexact(got.dtype) and not (op in SPREADS and x.dtype.kind == "c") else x.dtype
    val = np.dtype(options.pop("dtype", None) or own)
    if op in (*EXTREMA, *LOGICAL) or not (inexact(val) and (inexact(got.dtype) or inexact(x.dtype))):
        assert_same(got, expected)
        return
    x = compare.widened(x.astype(val))
    if op in SPREADS:
        check_spread(op, x, got, val, options)
        return
    exact = np.asarray(reduce(x, **options))
    eps = max(accumulator_eps(val), accumulator_eps(got.dtype) if got.dtype not in HALVES else 0)
    length = x.size / max(exact.size, 1)
    if "initial" in options:
        options["initial"] = abs(options["initial"] or 0)
    size = magnitude(exact if op in PRODUCTS else reduce(magnitude(x), **options))
    error = eps * (8 + (length if op in PRODUCTS else math.sqrt(length))) * size
    assert_near(got, exact, error, infinities=op not in (*MEANS, *PRODUCTS))


def check_spread(op: str, x: np.ndarray, got: np.ndarray, val: np.dtype, options: dict[str, Any]) -> None:
    """Compare a variance, or its square root, with NumPy's of wider elements: errors are relative to the squares of
    elements, of which a rounded mean may be as far off."""
    exact, power = np.asarray(getattr(np, op)(x, **options)), 2 if op.endswith("std") else 1
    options = {name: value for name, value in options.items() if name != "ddof"}
    size = np.asarray(getattr(np, op.replace("var", "mean").replace("std", "mean"))(np.abs(x) ** 2, **options))
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(exact) & np.isfinite(got)
        error = 64 * max(accumulator_eps(val), accumulator_eps(got.dtype)) * (size + exact**power)
        error = error + 2 * float(ml_dtypes.finfo(got.dtype).eps) * exact**power
        near = np.abs(compare.widened(got) ** power - exact**power) <= error
        overflow = ~np.isfinite(size.astype(got.dtype)) | (size > np.sqrt(float(ml_dtypes.finfo(got.dtype).max)))
        same = (got == exact) | (np.isnan(got) & np.isnan(exact)) | overflow
    assert np.where(finite, near | overflow, same).all(), f"got\n{got}\nexpected\n{exact}"


def safe(x: np.ndarray, op: str) -> np.ndarray:
    """Values whose product does not depend on the order: signs, zeros, infinities."""
    if op in PRODUCTS:
        if x.dtype.kind == "c":
            x[...] = np.array([1, -1, 1j, -1j])[(x.real > 0) + 2 * (x.imag > 0)]
        elif x.dtype != bool:
            with np.errstate(invalid="ignore"):
                x[...] = np.where(np.isfinite(x), np.sign(x), x)
    return x


@st.composite
def calls(draw: st.DrawFn, op: str) -> tuple[np.ndarray, dict[str, Any]]:
    """The input and the options of any call of a reduction that NumPy supports too."""
    shape = draw(layouts.shapes())
    x = safe(draw(layouts.arrays(shape, draw(st.sampled_from(COMMON)))), op)
    options = draw(reduction_options(op, shape, x.dtype))
    if op in WITH_DTYPE and not (op in SPREADS and x.dtype.kind == "c") and draw(st.booleans()):
        choice = DTYPE[x.dtype.kind]
        if op in MEANS:  # an empty mean is NaN, which integers cannot hold
            choice = "".join(c for c in choice if inexact(np.dtype(c)) and (op not in SPREADS or c != "D"))
        options["dtype"] = np.dtype(draw(st.sampled_from(choice)))
    if draw(st.booleans()):
        options["where"] = draw(st.one_of(layouts.masks(shape), st.booleans()))
    if draw(st.booleans()):
        result = np.asarray(getattr(np, op)(x, **options))
        dtypes = st.just(result.dtype) if "dtype" in options else layouts.casts(result.dtype)
        dtype = draw(dtypes.filter(lambda d: d == result.dtype or d not in HALVES))  # NumPy computes in out's dtype
        options["out"] = draw(layouts.outs(result.shape, dtype, (x, options.get("where"))))
    return x, options | {"strategy": draw(st.sampled_from(strategies(op)))}


@pytest.mark.parametrize("op", REDUCTIONS)
@examples(20)
@given(data=st.data())
def test_agrees_with_numpy(backend, op, data):
    x, options = data.draw(calls(op))
    check_run(backend, op, x, **options)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_takes_every_dtype(backend, op, dtype):
    x = sample((5, 40), dtype, special=op not in PRODUCTS)
    for axis in round_robin((0, 1), start=REDUCTIONS.index(op) + DTYPES.index(dtype)):
        check_run(backend, op, x, axis=axis)


@pytest.mark.parametrize("axis,op", pairs(ALONG, ["sum", "max"]))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reduces_every_length(backend, op, strategy, axis):
    for length in LENGTHS:
        shape, dims = ALONG[axis](length)
        check_run(backend, op, sample(shape, seed=length), strategy=strategy, axis=dims)


@pytest.mark.parametrize("strategy", CLASSIC)
@pytest.mark.parametrize("op", LADDER)
def test_host_finish_merges_many_blocks(backend, op, strategy):
    check_run(backend, op, safe(sample((2, 20001)), op), strategy=f"{strategy}_host", axis=1)


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
    "shallow columns misaligned within a word": ((5, 30001), 0, ()),
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
    x = sample(shape, dtype)[cut]
    for each in ("sum", "max", "all") if regime in ("columns", "a row of several blocks") else (op,):
        check_run(backend, each, x, axis=axis)


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
            x = np.full(shape, rest, dtype)
            np.moveaxis(x, axis, -1)[0, place] = found
            check_run(backend, op, x, axis=axis)


@pytest.mark.parametrize("dtype,op", pairs(["i1", "u1", "i2", "u2"], ["sum", "mean"], ["max", "min"]))
def test_extreme_values_of_small_integers(backend, op, dtype):
    info = np.iinfo(dtype)
    for value in (info.min, info.max):
        for shape, axis in (((3, 5000), 1), ((5000, 48), 0), ((2**15, 2), 0), ((1, 2**15 + 1), 1), ((40, 5), 1)):
            check_run(backend, op, np.full(shape, value, dtype), axis=axis)


#: dtypes, with ops along axes 0, 1 and all.
MASKED = [*product(["f4", "i1", "f8", "f2"], (("sum", "mean", "sum"), ("mean", "sum", "mean")))]


@pytest.mark.parametrize("mask,kind", pairs([(60, 512), (60, 1), (1, 512), (512,), (1, 1)], MASKED), ids=str)
@pytest.mark.parametrize("cut", [slice(None), slice(1, None), slice(16, -16), slice(None, None, -1)], ids=str)
def test_masks_of_every_shape(backend, cut, mask, kind):
    dtype, ops = kind
    x = sample((60, 512), dtype)[:, cut]
    where = np.random.default_rng(1).random(mask) < 0.6
    where = where[..., cut] if mask[-1] > 1 else where
    for axis, op in zip((0, 1, None), ops):
        check_run(backend, op, x, axis=axis, where=where)


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
    for axis in (*range(len(shape)), None):
        check_run(backend, op, sample(shape), axis=axis)


@pytest.mark.parametrize("axes", [(0, 2, 4), (1, 3, 5), (0, 3), ()], ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_dims_that_do_not_merge(backend, strategy, axes):
    for where in (True, sample((4, 1, 2, 5), bool)):
        check_run(backend, "sum", layouts.unmergeable(), strategy=strategy, axis=axes, where=where)


@pytest.mark.parametrize("layout,dtype", pairs(LAYOUTS, ["f4", "i1", "c16", "f2", "f8"]))
def test_reads_every_layout(backend, layout, dtype):
    x = lay_out(sample((6, 64, 32), dtype), layout)
    for axis in (0, 1, 2, (0, 2), None):
        check_run(backend, "sum", x, axis=axis)


@pytest.mark.parametrize("length", [33, 257, 1025, 8193])
@pytest.mark.parametrize("op", EXTREMA)
def test_nan_wins_or_loses_at_every_position(backend, op, length):
    for place in (0, length // 2, length - 1):
        for shape, axis in (((2, length), 1), ((length, 2), 0)):
            x = sample(shape)
            np.moveaxis(x, axis, -1)[0, place] = np.nan
            for strategy in strategies(op):
                got = run(backend, getattr(gpuops, op), x, axis=axis, strategy=strategy)
                assert np.isnan(got).tolist() == [not op.startswith("nan"), False]


@pytest.mark.parametrize("op", EXTREMA)
def test_complex_numbers_are_ordered_by_real_then_imaginary_part(backend, op):
    x = np.array([1 + 5j, 2 + 1j, 2 + 3j, 1 - 9j, 2 - 1j, -np.inf + 0j], "c8")
    for strategy in strategies(op):
        check_run(backend, op, x, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_repeated_calls_are_bitwise_identical(backend, dtype, strategy):
    for shape, axis in (((3, 20001), 1), ((20001, 3), 0), ((3, 20001), None)):
        assert_repeatable(backend, gpuops.sum, sample(shape, dtype), axis=axis, strategy=strategy)


@pytest.mark.parametrize("strategy,dtype", pairs(STRATEGIES, ["f4", "f8"], ["f2", BFLOAT16]), ids=str)
def test_subnormals_are_kept(backend, strategy, dtype):
    tiny = layouts.smallest_subnormal(dtype)
    x = (np.array([3, 1, 2] * 11) * tiny).astype(dtype)
    assert (x != 0).all()
    assert_bits(run(backend, gpuops.max, x, strategy=strategy), x[0])
    assert_bits(run(backend, gpuops.min, -x, strategy=strategy), -x[0])
    assert_bits(run(backend, gpuops.sum, x, strategy=strategy), np.array(66 * tiny).astype(dtype))
    assert run(backend, gpuops.all, x, strategy=strategy)


@pytest.mark.parametrize("dtype", BOOL + INTS, ids=str)
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_integers_wrap_like_numpy(backend, op, dtype):
    x = sample((300,), dtype, special=True) | dtype.type(1)
    for options in ({}, *round_robin([{"dtype": d} for d in (dtype, np.dtype("i2"), np.dtype("u4"))])):
        check_run(backend, op, x, **options)


def test_half_types_accumulate_in_float32_and_round_once(backend):
    for dtype in HALVES:
        x = np.full(4097, 1, dtype)
        x[0] = 2048
        exact = np.asarray(2048.0 + 4096).astype(dtype)
        for strategy in STRATEGIES:
            assert_bits(run(backend, gpuops.sum, x, strategy=strategy), exact)
        mean = np.asarray((2048.0 + 4096) / 4097).astype(dtype)
        assert_bits(run(backend, gpuops.mean, x), mean)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "view",
    [lambda x: x[0], lambda x: x[-1], lambda x: x.reshape(-1)[50:83], lambda x: x[2, ::-1]],
    ids=["first row", "last row", "two halves of rows", "reversed row"],
)
def test_out_may_be_part_of_the_input(backend, view, strategy):
    x = lay_out(sample((7, 33)), "C")
    check_run(backend, "sum", x, view(x), strategy, axis=0)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_out_may_be_the_input_when_nothing_is_reduced(backend, op):
    x = lay_out(sample((4, 9), bool if op in LOGICAL else "f4"), "C")
    check_run(backend, op, x, x, axis=())


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("shape,axis", [((0,), None), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1), ((2, 0, 3), (0, 1))])
def test_empty_arrays(backend, op, shape, axis):
    check_run(backend, op, np.zeros(shape, "f4"), axis=axis, **initial(op, 7))


@pytest.mark.parametrize("op", ["mean", "nanmean", "mean_var"])
@pytest.mark.parametrize("shape,axis", [((2,), None), ((3, 2), 1), ((2, 3), 0), ((40, 9000), 0)], ids=str)
def test_an_infinite_part_of_a_complex_mean_leaves_the_other_as_it_is(backend, op, shape, axis):
    for dtype in "FD":
        x = np.full(shape, 3 + 2j, dtype)
        x[(0,) * len(shape)] = complex(math.inf, 2)
        x.flat[-1] = complex(3, -math.inf) if len(shape) > 1 else 3 + 2j
        for options in ({}, {"where": np.ones(shape, bool)}):
            got = getattr(gpuops, op)(backend.array(x), axis=axis, **{k: backend.array(v) for k, v in options.items()})
            got = backend.numpy(got[0] if op == "mean_var" else got)
            parts = [np.asarray(np.mean(part, axis=axis)) for part in (x.real, x.imag)]
            for part, right in zip((got.real, got.imag), parts):
                np.testing.assert_array_equal(part, right)


@pytest.mark.parametrize("dtype", ["i1", "i4", "u8", "?"])
def test_integer_means_are_truncated(backend, dtype):
    x = np.array([[1, 2, 3, 5], [7, 7, 9, 4]], "i2")
    for strategy in STRATEGIES:
        check_run(backend, "mean", x, strategy=strategy, axis=1, dtype=np.dtype(dtype))


@pytest.mark.parametrize("op", EXTREMA)
def test_an_empty_result_needs_no_initial(backend, op):
    check_run(backend, op, np.zeros((0, 3), "f4"), axis=1)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_0d_arrays(backend, op):
    for dtype in ("f4", "i1", "?"):
        for keepdims in (False, True):
            for axis in (None, ()):
                check_run(backend, op, np.array(3, dtype), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("op", WITH_DTYPE)
def test_fully_masked_rows(backend, op):
    for where in (np.array([[True], [False], [True]]), False):
        for strategy in strategies(op):
            check_run(backend, op, safe(sample((3, 40)), op), strategy=strategy, axis=1, where=where)


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("initial", [0, 5, -3, np.int8(4), 2.0])
def test_initial_is_applied_once(backend, op, initial):
    for shape, axis in (((3, 9000), 1), ((9000, 3), 0)):
        x = safe(sample(shape), op)
        for strategy in strategies(op):
            check_run(backend, op, x, strategy=strategy, axis=axis, initial=initial)


@pytest.mark.parametrize("made", [lambda value: value, np.asarray, lambda value: np.asarray(value)[()]], ids="pas")
@pytest.mark.parametrize("op,dtype,value,error", [
    ("min", "i1", 1000, OverflowError), ("max", "u1", -1, OverflowError), ("min", "i8", math.nan, ValueError),
    ("max", "i4", math.inf, OverflowError), ("min", "i2", 1e300, OverflowError), ("max", "f4", 1j, TypeError),
    ("sum", "i4", math.nan, ValueError), ("prod", "u8", -1, OverflowError), ("nanmax", "i1", 128, OverflowError),
])  # fmt: skip
def test_initial_must_fit_whatever_its_type(backend, op, dtype, value, error, made):
    x = np.array([100, 90], dtype)
    with pytest.raises(error, match=f"^{op}: initial .* cannot be represented in"):
        run(backend, getattr(gpuops, op), x, initial=made(value))
    for fits in (3, 3.0, np.int64(3), np.float64(3), np.bool_(True), np.longdouble(3), ml_dtypes.bfloat16(3)):
        check_run(backend, op, x.real, initial=fits)


@pytest.mark.parametrize("op", ["sum", "max"])
def test_initial_none_means_no_initial(backend, op):
    check_run(backend, op, np.arange(6.0).reshape(2, 3), axis=1, initial=None)


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
    check_run(backend, "sum", x, strategy=strategy, axis=axis)


@pytest.mark.parametrize("op", ["sum", "max", "any", "argmax", "max_with_index", "nanmin", "logsumexp"])
@pytest.mark.parametrize("dtype", ["f4", "i4"])
@pytest.mark.parametrize("length", [3, 12, 25])
def test_few_long_columns_of_any_width(device, op, dtype, length):
    """Threads have outputs that are a block apart."""
    rng = np.random.default_rng(length)
    x = rng.integers(-99, 99, (length, 8209)).astype(dtype)
    if dtype == "f4":
        x[2, ::5] = np.nan
    found, expected = (getattr(gpuops, op)(array, axis=0) for array in (device.array(x), x))
    for one, other in zip(found, expected, strict=True) if op == "max_with_index" else [(found, expected)]:
        np.testing.assert_allclose(device.numpy(one), other, rtol=0, atol=1e-5 if op == "logsumexp" else 0)


def test_numpys_mark_of_no_initial_is_none_here_too():
    x = np.arange(6.0)
    assert gpuops.sum(x, initial=np._NoValue) == 15
    assert gpuops.max(x, initial=np._NoValue) == 5
