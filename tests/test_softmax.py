"""softmax, log_softmax and logsumexp against SciPy in float64."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.lib.array_utils import normalize_axis_tuple

import gpuops
from gpuops.plan import rows as softmax_kernels
from tests import layouts
from tests.budget import examples, pairs, round_robin
from tests.compare import accumulator_eps, assert_bits, assert_near, assert_repeatable, magnitude, run, ulp
from tests.layouts import ALONG, BFLOAT16, COMMON_REALS, FLOATS, HALVES, LAYOUTS, REALS, lay_out, sample
from tests.ops import ROWWISE, SOFTMAXES, softmax_options

special = pytest.importorskip("scipy.special", reason="SciPy is the reference")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

STRATEGIES = (None, *gpuops.strategies("softmax"))
#: Each op with and without a mask, in two groups for round-robin tests.
MASKED = ((("softmax", False), ("log_softmax", True)), (("softmax", True), ("log_softmax", False)))
LENGTHS = (1, 31, 32, 33, 64, 127, 256, 781, 1023, 1024, 1025, 4099)
#: The longest rows that a strategy takes on every device, or in reasonable time.
LONGEST = {"columns": 512, "naive": 4099, "block_shared": 5000, **dict.fromkeys(softmax_kernels.WARPS, 1024)}


def check_run(
    backend: Any, op: str, x: np.ndarray, axis: Any = None, out: np.ndarray | None = None, **options: Any
) -> np.ndarray:
    """Run an op and compare it with SciPy."""
    got = run(backend, getattr(gpuops, op), x, axis=axis, out=out, **options)
    check(got, op, x, axis, out, **options)
    return got


def check(
    got: np.ndarray, op: str, x: np.ndarray, axis: Any, out: np.ndarray | None = None, where: Any = True,
    dtype: Any = None, scale: Any = None, keepdims: bool = False, strategy: str | None = None,
) -> None:  # fmt: skip
    """Compare a result with SciPy's of the same values in float64."""
    floating = x.dtype if x.dtype in FLOATS else np.dtype(np.float64)
    result, axes = np.dtype(dtype or floating), normalized(axis, x.ndim)
    assert got.dtype == (result if out is None else out.dtype)
    val = max(np.dtype(np.float32), floating, result, key=lambda d: (d.itemsize, d.kind == "f"))
    z = x.astype(val) if scale is None else x.astype(val) * val.type(scale)
    mask = np.broadcast_to(where, x.shape)
    z = np.where(mask, z.astype(np.float64), -np.inf)
    top = np.max(z, axis=axes, keepdims=True, initial=-np.inf)
    eps = accumulator_eps(val)
    error = eps * (16 + math.sqrt(length(x, axis)) + (0 if scale is None else magnitude(top)))
    if op == "logsumexp":
        exact = logsumexp(z, axes)
        error = error + eps * magnitude(exact)
        if not keepdims:
            exact, error = np.squeeze(exact, axes), np.squeeze(error, axes)
    else:
        shift = z - top
        error = error + eps * (magnitude(shift) + (0 if scale is None else np.where(np.isfinite(shift), np.abs(z), 0)))
        if op == "softmax":
            exact = softmax(z, mask, axes)
            error = error * magnitude(exact) + 2 * layouts.smallest_subnormal(val)
        else:
            exact = log_softmax(z, mask, axes)
    if out is not None:  # the result is rounded to its dtype before the cast to out
        error = error + ulp(result, exact)
    assert_near(got, exact, error)


def normalized(axis: Any, ndim: int) -> tuple[int, ...]:
    """The dims that ``axis`` names."""
    return tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)


def length(x: np.ndarray, axis: Any) -> int:
    """The number of elements that are normalised together."""
    return math.prod(x.shape[d] for d in normalized(axis, x.ndim))


def softmax(z: np.ndarray, mask: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    exact = special.softmax(z, axes) if z.size and axes else np.exp(z - z)
    return np.where(mask, exact, 0)


def log_softmax(z: np.ndarray, mask: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    exact = special.log_softmax(z, axes) if z.size and axes else z - z
    return np.where(mask, exact, -np.inf)


def logsumexp(z: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if not axes:
        return z
    if not z.size:
        return np.full([1 if d in axes else n for d, n in enumerate(z.shape)], -np.inf)
    return np.asarray(special.logsumexp(z, axes, keepdims=True))


def applies(strategy: str | None, length: int) -> bool:
    return length <= LONGEST.get(strategy, length)


@st.composite
def calls(draw: st.DrawFn, op: str) -> tuple[np.ndarray, dict[str, Any]]:
    """The input and the options of any call of an op."""
    shape = draw(layouts.shapes(max_size=1500))
    x = draw(layouts.arrays(shape, draw(st.sampled_from(COMMON_REALS))))
    options = draw(softmax_options(op, shape))
    options["strategy"] = draw(st.sampled_from((None, *gpuops.strategies(op))))
    if draw(st.booleans()):
        options["where"] = draw(st.one_of(layouts.masks(shape), st.booleans()))
    if op == "logsumexp":
        axes = normalized(options["axis"], x.ndim)
        shape = tuple(1 if d in axes else n for d, n in enumerate(shape) if options["keepdims"] or d not in axes)
    else:
        assume(applies(options["strategy"], length(x, options["axis"])))
    if draw(st.booleans()):
        dtype = options.get("dtype") or draw(layouts.casts(x.dtype if x.dtype in FLOATS else np.dtype(np.float64)))
        in_place = (x.dtype, x.shape) == (dtype, shape) and 0 not in x.strides and draw(st.booleans())
        options["out"] = x if in_place else draw(layouts.outs(shape, dtype, (x, options.get("where"))))
    return x, options


@pytest.mark.parametrize("op", SOFTMAXES)
@examples(40)
@given(data=st.data())
def test_agrees_with_scipy(backend, op, data):
    x, options = data.draw(calls(op))
    check_run(backend, op, x, **options)


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("op", SOFTMAXES)
def test_takes_every_dtype(backend, op, dtype):
    for axis in round_robin((0, 1), start=len(op) + REALS.index(dtype)):
        check_run(backend, op, sample((5, 40), dtype, special=True), axis)


@pytest.mark.parametrize(
    "axis,kind", pairs(ALONG, [*itertools.product(ROWWISE, (LENGTHS[::2], LENGTHS[1::2]))]), ids=str
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_normalises_rows_of_every_length(backend, kind, strategy, axis):
    op, lengths = kind
    for length in lengths:
        if applies(strategy, length):
            shape, dims = ALONG[axis](length)
            check_run(backend, op, sample(shape), dims, strategy=strategy)


def check_rows(backend: Any, *views: np.ndarray) -> None:
    """Softmaxes of the last axis, with masks and without."""
    for x in views:
        for op, masked in itertools.chain(*round_robin(MASKED, start=FLOATS.index(x.dtype))):
            check_run(backend, op, x, 1, where=sample(x.shape) > 0 if masked else True)


@pytest.mark.parametrize("length", [40, 700, 5000, 17001])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_aligned_differently_from_their_results(backend, dtype, length):
    x = sample((3, length + 1), dtype)
    check_rows(backend, x[:, 1:], x[:, :-1])


@pytest.mark.parametrize("length", [60, 300, 700, 3000, 9000])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_strided_rows(backend, dtype, length):
    x = sample((3, 2 * length), dtype)
    check_rows(backend, x[:, ::2], x[:, ::-2])


@pytest.mark.parametrize("dtype,length", [("f4", 22000), ("f2", 44000), ("f8", 6001)])
def test_rows_of_the_largest_blocks(backend, dtype, length):
    check_run(backend, "softmax", sample((2, length), dtype), 1)


@pytest.mark.parametrize("length", [*LENGTHS, 20001])
@pytest.mark.parametrize("strategy", (None, *gpuops.strategies("logsumexp")))
def test_logsumexp_of_rows_of_every_length(backend, strategy, length):
    for shape, axis in (along(length) for along in ALONG.values()):
        check_run(backend, "logsumexp", sample(shape), axis, strategy=strategy)


@pytest.mark.parametrize("shape,axis", [((70, 300), 1), ((300, 70), 0), ((3000, 3), 1), ((3, 3000), 0)], ids=str)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_many_rows(backend, dtype, shape, axis):
    got = check_run(backend, "softmax", sample(shape, dtype), axis)
    np.testing.assert_allclose(got.astype("f8").sum(axis), 1, rtol=300 * float(np.finfo(dtype).eps))


#: Rows with special or extreme values.
ROWS = {
    "one -inf": [1, -np.inf, 2, 0.5],
    "one +inf": [1, np.inf, 2, 0.5],
    "both infinities": [np.inf, 1, -np.inf, 2],
    "one NaN": [1, 2, np.nan, 3],
    "NaN and +inf": [np.inf, 2, np.nan, 3],
    "only -inf": [-np.inf] * 4,
    "only +inf": [np.inf] * 4,
    "all equal": [3.25] * 4,
    "huge": [6e4, -6e4, 5.9e4, 6e4],
    "huge and equal": [6e4] * 4,
    "far below": [0, -80, -95, -103],
    "tiny": [1e-7, 0, -1e-7, 2e-7],
    **{f"next to {huge:g}": [huge, 0, -huge, huge * (1 - 2.0**-8)] for huge in (1e6, 3e8, 1e9, 1e10, 3e37, 1e38, 3e38)},
    "spread of 1e30": [1e30, -1e30, 0, 9e29],
    "spread of 1e-30": [1e-30, -1e-30, 0, 3e-30],
    "zeros of both signs": [0.0, -0.0, 0.0, -0.0],
}


@pytest.mark.turns(8)
@pytest.mark.parametrize(
    "row,way", pairs(ROWS, [*itertools.product(ROWWISE, (0, 1), (FLOATS[::2], FLOATS[1::2]))]), ids=str
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_difficult_rows(backend, way, strategy, row):
    (op, axis, dtypes), x = way, np.array([ROWS[row], [0, 1, 2, 3]])
    for dtype in dtypes:
        check_run(backend, op, (x if axis else x.T).astype(dtype), axis, strategy=strategy)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_logsumexp_of_difficult_rows(backend, dtype, row):
    check_run(backend, "logsumexp", np.array([ROWS[row], [0, 1, 2, 3]]).astype(dtype), 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_of_only_minus_infinity_is_nan_unless_masked(backend, strategy):
    x = np.array([[-np.inf] * 3, [-np.inf] * 3, [0, -np.inf, 0]], "f4")
    mask = np.array([[True, False, True], [False] * 3, [True] * 3])
    got = run(backend, gpuops.softmax, x, 1, where=mask, strategy=strategy)
    np.testing.assert_array_equal(got, [[np.nan, 0, np.nan], [0, 0, 0], [0.5, 0, 0.5]])
    got = run(backend, gpuops.log_softmax, x, 1, where=mask, strategy=strategy)
    np.testing.assert_array_equal(got[:2], [[np.nan, -np.inf, np.nan], [-np.inf] * 3])
    got = run(backend, gpuops.logsumexp, x, 1, where=mask)
    np.testing.assert_array_equal(got[:2], [-np.inf, -np.inf])


@pytest.mark.parametrize("length,dtype", pairs([5, 700, 1024], ["f4", "f2", BFLOAT16]), ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_masked_elements_are_excluded(backend, length, strategy, dtype):
    x = sample((4, length), dtype)
    x[3, 2] = np.nan  # unmasked, so the rest of the row is NaN
    x[:, ::3] = np.nan  # masked elements may be anything
    x[:, 1] = np.inf
    mask = np.ones((4, length), bool)
    mask[:, ::3] = mask[:, 1] = mask[2] = False
    for op in ROWWISE:
        for where in (mask, mask[0]) if length > 5 else (mask,):
            got = check_run(backend, op, x, 1, where=where, strategy=strategy)
            chosen = np.broadcast_to(where, x.shape)
            assert (got[~chosen] == (0 if op == "softmax" else -np.inf)).all()


@pytest.mark.parametrize("dtype,op", pairs(["f4", "f2", BFLOAT16], ROWWISE), ids=str)
def test_masked_elements_are_excluded_from_column_tiles(backend, op, dtype):
    x = sample((700, 40), dtype)  # some packs of a thread are staged in shared memory
    mask = sample(x.shape, bool, 1)
    mask[:, 3] = False
    x[~mask] = np.nan
    x[mask[:, 5].argmax(), 5] = np.nan
    for where in (mask, mask[:, :1]):
        got = check_run(backend, op, x, 0, where=where, strategy="columns")
        assert (got[~np.broadcast_to(where, x.shape)] == (0 if op == "softmax" else -np.inf)).all()


@pytest.mark.parametrize("dtype,op", pairs(["f4", "f2", BFLOAT16, "f8"], ROWWISE), ids=str)
@pytest.mark.parametrize("rows", [9, 16, 27])
def test_columns_that_a_thread_holds_in_narrow_packs(backend, rows, op, dtype):
    x = sample((rows, 4099), dtype)
    check_run(backend, op, x, 0, strategy="columns")
    check_run(backend, op, x[:, 1:-1], 0, where=sample((rows, 4097), bool, 1), strategy="columns")


@pytest.mark.parametrize("scale,op", pairs([1, 0.125, -1, 0, 30.0, np.float64(0.5)], ROWWISE))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_scale_multiplies_x(backend, strategy, scale, op):
    check_run(backend, op, sample((4, 300)), 1, scale=scale, strategy=strategy)
    check_run(backend, "logsumexp", sample((4, 300)), 1, scale=scale)


@pytest.mark.parametrize("strategy", [None, *softmax_kernels.ON_CHIP])
@pytest.mark.parametrize("spread", [1, 10, 40])
@pytest.mark.parametrize("offset", [0, -1420, 3e5, 2**23, -(2**31)])  # where exponentials are computed differently
def test_errors_in_float32_do_not_grow_with_the_spread(device, strategy, offset, spread):
    info = np.finfo("f4")
    x = (np.random.default_rng(0).standard_normal((3, 500)) * spread + offset).astype("f4")
    for axis, values in ((1, x), (0, x.T.copy())):
        got = device.numpy(gpuops.softmax(device.array(values), axis, strategy=strategy))
        exact = special.softmax(values.astype("f8"), axis)
        assert (abs(got - exact) <= 4 * info.eps * np.maximum(exact, info.smallest_normal)).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exp_of_the_maximum_is_exactly_1(backend, dtype, strategy):
    x = np.array([[5.3, -40, -50, -60], [-1000.7, -np.inf, -2000, -3000]], dtype)
    for axis, values in ((1, x), (0, x.T)):
        got = np.max(run(backend, gpuops.log_softmax, values, axis, strategy=strategy), axis)
        np.testing.assert_allclose(got, [-math.exp(x[0, 1] - x[0, 0]) * (1 + math.exp(-10)), 0], rtol=1e-5)
        total = run(backend, gpuops.logsumexp, values, axis)
        np.testing.assert_array_equal(total, x[:, 0])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8"])
def test_subnormal_results_are_kept(backend, dtype, strategy):
    info = np.finfo(dtype)
    least = math.log(info.smallest_subnormal)
    small = math.log(info.smallest_normal) - 1, least + 4, least + 1, least + 0.2
    x = np.array([[0, *small, least - 2, least * 2]], dtype)
    got = run(backend, gpuops.softmax, x, 1, strategy=strategy)
    exact = special.softmax(x.astype("f8"), 1)
    assert (got[0, :5] > 0).all() and (got[0, 1:5] < info.smallest_normal).all() and got[0, 6] == 0
    np.testing.assert_allclose(got, exact, rtol=0.6 * info.eps, atol=2 * float(info.smallest_subnormal))


@pytest.mark.parametrize("strategy", [each for each in STRATEGIES if applies(each, 2**20)])
def test_sums_over_a_million_half_type_elements_do_not_overflow(backend, strategy):
    for dtype in HALVES:  # the largest float16 is 65504; in bfloat16, 256 + 1 rounds to 256
        x = np.full(2**20, 3, dtype)
        try:
            got = run(backend, gpuops.softmax, x, strategy=strategy)
        except ValueError as failure:
            assert strategy in softmax_kernels.ON_CHIP and "does not hold rows" in str(failure)
        else:
            assert (got == 2.0**-20).all()
        assert run(backend, gpuops.logsumexp, x) == np.float64(3 + 20 * math.log(2)).astype(dtype)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("x_dtype", ["f4", BFLOAT16], ids=str)
def test_subnormal_bfloat16_results_are_kept(backend, x_dtype, strategy):
    x = np.array([[0, -80, -88, -90, -92, -200]]).astype(x_dtype)
    for axis, values in ((1, x), (0, x.T)):
        got = run(backend, gpuops.softmax, values, axis, dtype=BFLOAT16, strategy=strategy)
        exact = special.softmax(values.astype("f8"), axis).astype(BFLOAT16).astype("f8")
        np.testing.assert_allclose(got.astype("f8"), exact, rtol=0.01, atol=1e-40)
        assert np.count_nonzero(exact) == 5


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ["f4", BFLOAT16], ids=str)
def test_elements_near_the_largest_float(backend, dtype, strategy):
    x = np.array([[3e38, -3e38, 1e38, 2.9e38, 3e38], [-3e38, -3e38, -3.3e38, -3e38, -3e38]]).astype(dtype)
    got = run(backend, gpuops.softmax, x, 1, strategy=strategy).astype("f8")
    np.testing.assert_array_equal(got, np.array([[0.5, 0, 0, 0, 0.5], [0.25, 0.25, 0, 0.25, 0.25]]))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_types_are_rounded_once(backend, dtype, strategy):
    x = sample((3, 500), dtype)
    got = run(backend, gpuops.softmax, x, 1, strategy=strategy)
    exact = special.softmax(x.astype("f8"), 1)
    half = np.abs(exact.astype(dtype).astype("f8") - exact)  # the final rounding; float32 adds little
    assert (np.abs(got.astype("f8") - exact) <= half + exact * 1e-5 + 1e-30).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reads_and_writes_every_layout(backend, strategy, layout):
    x = lay_out(sample((3, 8, 32)), layout)
    for axis in round_robin((0, 1, 2, (0, 2), (1, 2)), start=LAYOUTS.index(layout)):
        out = None if layout == "broadcast" else lay_out(np.zeros(x.shape, "f4"), layout)
        check_run(backend, "softmax", x, axis, out, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_dims_that_do_not_merge(backend, strategy):
    for axes in ((1, 3, 5), (0, 2, 4)):
        for where in (True, sample((4, 1, 2, 5), bool)):
            check_run(backend, "softmax", layouts.unmergeable(), axes, where=where, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "place,axis",
    pairs(["in place", "forward", "reversed", "transposed", "narrower", "over the mask"], [0, 1, None]),
)
def test_out_may_overlap_the_input(backend, place, axis, strategy):
    x, mask, out = layouts.overlapping(place, 30)
    where = mask if place == "over the mask" else True
    check_run(backend, "softmax", x, axis, out, where=where, strategy=strategy)


@pytest.mark.parametrize("op", SOFTMAXES)
def test_0d_arrays(backend, op):
    for axis in (None, ()):
        check_run(backend, op, np.array(3, "f4"), axis)


@pytest.mark.parametrize("op", SOFTMAXES)
@pytest.mark.parametrize("shape,axis", [((0,), None), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1), ((0, 3), ())], ids=str)
def test_empty_arrays(backend, op, shape, axis):
    check_run(backend, op, np.zeros(shape, "f4"), axis)


@pytest.mark.parametrize("op", ROWWISE)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_empty_axes_normalise_each_element_separately(backend, strategy, op):
    check_run(backend, op, np.array([[1, -np.inf, 3], [np.nan, np.inf, 0]], "f4"), (), strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_repeated_calls_are_bitwise_identical(backend, strategy):
    shape, axis = ((3, 5001), None) if applies(strategy, 15003) else ((3, LONGEST[strategy]), 1)
    assert_repeatable(backend, gpuops.softmax, sample(shape), axis=axis, strategy=strategy)


def test_new_results_keep_fortran_order(backend):
    x = backend.array(lay_out(sample((4, 5)), "F"))
    assert gpuops.softmax(x, 0).flags.f_contiguous


def test_input_is_not_modified(backend):
    x = sample((4, 50))
    there = backend.array(x)
    for strategy in STRATEGIES:
        gpuops.softmax(there, 1, strategy=strategy)
    assert_bits(backend.numpy(there), x)


def test_lists_and_scalars_give_numpy_results():
    np.testing.assert_allclose(gpuops.softmax([0, 0]), [0.5, 0.5])
    assert gpuops.softmax(3.0) == 1
    assert gpuops.logsumexp([0.0, 0.0]) == np.log(2)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_masks_with_strided_columns(backend, dtype):
    x, mask = sample((300, 64), dtype), sample((300, 128), bool, 1)[:, ::2]
    for op in ROWWISE:
        got = run(backend, getattr(gpuops, op), x, 0, where=mask)
        expected = getattr(gpuops, op)(x.astype("f8"), 0, where=mask)
        assert (got[~mask] == (0 if op == "softmax" else -np.inf)).all()
        np.testing.assert_allclose(got[mask], expected[mask], rtol=1e-5 if dtype == "f4" else 2e-3, atol=1e-7)
