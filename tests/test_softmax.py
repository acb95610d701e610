"""softmax, log_softmax and logsumexp against SciPy in float64."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import assume, given
from hypothesis import strategies as st

import gpuops
from gpuops.plan import rows as softmax_kernels
from tests import layouts
from tests.budget import examples, pairs, round_robin
from tests.compare import accumulator_eps, assert_bits, assert_near, run_on, ulp
from tests.layouts import BFLOAT16, DTYPES, FLOATS, HALVES, LAYOUTS, lay_out

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

OPS = ("softmax", "log_softmax")
STRATEGIES = (None, *gpuops.strategies("softmax"))
#: Each op with and without a mask, in two groups for round-robin tests.
MASKED = ((("softmax", False), ("log_softmax", True)), (("softmax", True), ("log_softmax", False)))
LENGTHS = (1, 31, 32, 33, 64, 127, 256, 781, 1023, 1024, 1025, 4099)
COMMON = tuple(map(np.dtype, ("f4", "f4", "f8", "f2", BFLOAT16, "i4", "?")))
#: The longest rows that a strategy takes on every device, or in reasonable time.
LONGEST = {"columns": 512, "naive": 4099, "block_shared": 5000, **dict.fromkeys(softmax_kernels.WARPS, 1024)}


@dataclass
class Call:
    """A call of softmax, log_softmax or logsumexp: the input and the options."""

    op: str
    x: np.ndarray
    axis: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    out: np.ndarray | None = None

    @property
    def axes(self) -> tuple[int, ...]:
        every = tuple(range(self.x.ndim))
        axis = every if self.axis is None else self.axis if isinstance(self.axis, tuple) else (self.axis,)
        return tuple(a % self.x.ndim for a in axis)

    @property
    def length(self) -> int:
        return math.prod(self.x.shape[a] for a in self.axes)

    def run(self, backend: Any) -> np.ndarray:
        """gpuops' result."""
        return run_on(backend, getattr(gpuops, self.op), self.x, self.out, self.options | {"axis": self.axis})


def check(call: Call, got: np.ndarray) -> None:
    """Compare a result with SciPy's of the same values in float64."""
    x, options = call.x, call.options
    floating = x.dtype if x.dtype in FLOATS else np.dtype(np.float64)
    result = np.dtype(options.get("dtype") or floating)
    assert got.dtype == (result if call.out is None else call.out.dtype)
    val = max(np.dtype(np.float32), floating, result, key=lambda d: (d.itemsize, d.kind == "f"))
    scale = options.get("scale")
    z = x.astype(val) if scale is None else x.astype(val) * val.type(scale)
    z = z.astype(np.float64)
    mask = np.broadcast_to(options.get("where", True), x.shape)
    z = np.where(mask, z, -np.inf)
    top = np.max(z, axis=call.axes, keepdims=True, initial=-np.inf)
    eps = accumulator_eps(val)
    rounding = eps * (16 + math.sqrt(call.length) + (0 if scale is None else np.nan_to_num(np.abs(top), posinf=0)))
    if call.op == "logsumexp":
        exact = logsumexp(z, call.axes)
        error = rounding + eps * np.abs(np.where(np.isfinite(exact), exact, 0))
        if not options.get("keepdims"):
            exact, error = np.squeeze(exact, call.axes), np.squeeze(error, call.axes)
        assert_near(got, exact, error + rounded(call, result, exact))
        return
    exact = softmax(z, mask, call.axes) if call.op == "softmax" else log_softmax(z, mask, call.axes)
    shift = z - top
    spread = eps * np.where(np.isfinite(shift), np.abs(shift) + (0 if scale is None else np.abs(z)), 0)
    if call.op == "softmax":
        tiny = float(np.finfo(val).smallest_subnormal)
        error = (rounding + spread) * np.where(np.isfinite(exact), exact, 0) + 2 * tiny
    else:
        error = rounding + spread
    assert_near(got, exact, error + rounded(call, result, exact))


def rounded(call: Call, result: np.dtype, exact: np.ndarray) -> Any:
    """The rounding error of a result in its dtype, before the cast to ``out``."""
    return 0 if call.out is None else ulp(result, exact)


def softmax(z: np.ndarray, mask: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    exact = scipy.special.softmax(z, axes) if z.size and axes else np.exp(z - z)
    return np.where(mask, exact, 0)


def log_softmax(z: np.ndarray, mask: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    exact = scipy.special.log_softmax(z, axes) if z.size and axes else z - z
    return np.where(mask, exact, -np.inf)


def logsumexp(z: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if not axes:
        return z
    if not z.size:
        return np.full([1 if d in axes else n for d, n in enumerate(z.shape)], -np.inf)
    return np.asarray(scipy.special.logsumexp(z, axes, keepdims=True))


def applies(strategy: str | None, length: int) -> bool:
    return length <= LONGEST.get(strategy, length)


def random(shape: tuple[int, ...], dtype: Any = "f4", special: bool = False) -> np.ndarray:
    return layouts.random(np.random.default_rng(0), shape, np.dtype(dtype), special)


@st.composite
def calls(draw: st.DrawFn, op: str) -> Call:
    """Any call of an op."""
    shape = draw(layouts.shapes(max_size=1500))
    x = draw(layouts.arrays(shape, draw(st.sampled_from(COMMON))))
    call = Call(op, x, draw(layouts.axes(len(shape))))
    if draw(st.booleans()):
        call.options["where"] = draw(st.one_of(layouts.masks(shape), st.booleans()))
    if draw(st.booleans()):
        call.options["dtype"] = draw(st.sampled_from([np.dtype("f4"), np.dtype("f8"), np.dtype("f2"), BFLOAT16]))
    if draw(st.booleans()):
        call.options["scale"] = draw(st.sampled_from([1, 0.5, -2.0, 0, np.float32(3), 10.0]))
    result_shape = shape
    if op == "logsumexp":
        call.options["keepdims"] = keepdims = draw(st.booleans())
        call.options["strategy"] = draw(st.sampled_from((None, *gpuops.strategies("logsumexp"))))
        result_shape = tuple(1 if d in call.axes else n for d, n in enumerate(shape) if keepdims or d not in call.axes)
    else:
        call.options["strategy"] = strategy = draw(st.sampled_from(STRATEGIES))
        assume(applies(strategy, call.length))
    if draw(st.booleans()):
        dtype = np.dtype(call.options.get("dtype") or (x.dtype if x.dtype in FLOATS else np.float64))
        if "dtype" not in call.options and draw(st.integers(0, 3)) == 0:
            dtype = np.dtype(draw(st.sampled_from("fd" if dtype == BFLOAT16 else "efd")))
        inputs = [a for a in (x, call.options.get("where")) if isinstance(a, np.ndarray)]
        in_place = x.dtype == dtype and shape == result_shape and 0 not in x.strides and draw(st.booleans())
        call.out = x if in_place else draw(layouts.outs(result_shape, dtype, inputs))
    return call


@pytest.mark.parametrize("op", [*OPS, "logsumexp"])
@examples(40)
@given(data=st.data())
def test_agrees_with_scipy(backend, op, data):
    call = data.draw(calls(op))
    check(call, call.run(backend))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "c"], ids=str)
@pytest.mark.parametrize("op", [*OPS, "logsumexp"])
def test_takes_every_dtype(backend, op, dtype):
    for axis in round_robin((0, 1), start=len(op) + DTYPES.index(dtype)):
        call = Call(op, random((5, 40), dtype, special=True), axis)
        check(call, call.run(backend))


@pytest.mark.parametrize(
    "axis,kind", pairs(["last", "first", "whole"], [*itertools.product(OPS, (LENGTHS[::2], LENGTHS[1::2]))]), ids=str
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_normalises_rows_of_every_length(backend, kind, strategy, axis):
    op, lengths = kind
    for length in lengths:
        if applies(strategy, length):
            shape, dims = {"last": ((3, length), 1), "first": ((length, 3), 0), "whole": ((length,), None)}[axis]
            call = Call(op, random(shape), dims, {"strategy": strategy})
            check(call, call.run(backend))


@pytest.mark.parametrize("length", [40, 700, 5000, 17001])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_aligned_differently_from_their_results(backend, dtype, length):
    x = random((3, length + 1), dtype)
    for values in (x[:, 1:], x[:, :-1]):
        for op, masked in itertools.chain(*round_robin(MASKED, start=FLOATS.index(dtype))):
            call = Call(op, values, 1, {"where": random(values.shape) > 0} if masked else {})
            check(call, call.run(backend))


@pytest.mark.parametrize("length", [60, 300, 700, 3000, 9000])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_strided_rows(backend, dtype, length):
    x = random((3, 2 * length), dtype)
    for values in (x[:, ::2], x[:, ::-2]):
        for op, masked in itertools.chain(*round_robin(MASKED, start=FLOATS.index(dtype))):
            call = Call(op, values, 1, {"where": random(values.shape) > 0} if masked else {})
            check(call, call.run(backend))


@pytest.mark.parametrize("dtype,length", [("f4", 22000), ("f2", 44000), ("f8", 6001)])
def test_rows_of_the_largest_blocks(backend, dtype, length):
    call = Call("softmax", random((2, length), dtype), 1)
    check(call, call.run(backend))


@pytest.mark.parametrize("length", [*LENGTHS, 20001])
@pytest.mark.parametrize("strategy", (None, *gpuops.strategies("logsumexp")))
def test_logsumexp_of_rows_of_every_length(backend, strategy, length):
    for shape, axis in (((3, length), 1), ((length, 3), 0), ((length,), None)):
        call = Call("logsumexp", random(shape), axis, {"strategy": strategy})
        check(call, call.run(backend))


@pytest.mark.parametrize("shape,axis", [((70, 300), 1), ((300, 70), 0), ((3000, 3), 1), ((3, 3000), 0)], ids=str)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_many_rows(backend, dtype, shape, axis):
    call = Call("softmax", random(shape, dtype), axis)
    got = call.run(backend)
    check(call, got)
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


@pytest.mark.parametrize(
    "row,way", pairs(ROWS, [*itertools.product(OPS, (0, 1), (FLOATS[::2], FLOATS[1::2]))]), ids=str
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_difficult_rows(backend, way, strategy, row):
    (op, axis, dtypes), x = way, np.array([ROWS[row], [0, 1, 2, 3]])
    for dtype in dtypes:
        call = Call(op, (x if axis else x.T).astype(dtype), axis, {"strategy": strategy})
        check(call, call.run(backend))


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_logsumexp_of_difficult_rows(backend, dtype, row):
    call = Call("logsumexp", np.array([ROWS[row], [0, 1, 2, 3]]).astype(dtype), 1)
    check(call, call.run(backend))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_of_only_minus_infinity_is_nan_unless_masked(backend, strategy):
    x = np.array([[-np.inf] * 3, [-np.inf] * 3, [0, -np.inf, 0]], "f4")
    mask = np.array([[True, False, True], [False] * 3, [True] * 3])
    there, chosen = backend.arrays(x, mask)
    got = backend.numpy(gpuops.softmax(there, 1, where=chosen, strategy=strategy))
    np.testing.assert_array_equal(got, [[np.nan, 0, np.nan], [0, 0, 0], [0.5, 0, 0.5]])
    got = backend.numpy(gpuops.log_softmax(there, 1, where=chosen, strategy=strategy))
    np.testing.assert_array_equal(got[:2], [[np.nan, -np.inf, np.nan], [-np.inf] * 3])
    got = backend.numpy(gpuops.logsumexp(there, 1, where=chosen))
    np.testing.assert_array_equal(got[:2], [-np.inf, -np.inf])


@pytest.mark.parametrize("length,dtype", pairs([5, 700, 1024], ["f4", "f2", BFLOAT16]), ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_masked_elements_are_excluded(backend, length, strategy, dtype):
    x = random((4, length), dtype)
    x[3, 2] = np.nan  # unmasked, so the rest of the row is NaN
    x[:, ::3] = np.nan  # masked elements may be anything
    x[:, 1] = np.inf
    mask = np.ones((4, length), bool)
    mask[:, ::3] = mask[:, 1] = mask[2] = False
    for op in OPS:
        for where in (mask, mask[0]) if length > 5 else (mask,):
            call = Call(op, x, 1, {"where": where, "strategy": strategy})
            got = call.run(backend)
            check(call, got)
            chosen = np.broadcast_to(where, x.shape)
            assert (got[~chosen] == (0 if op == "softmax" else -np.inf)).all()


@pytest.mark.parametrize("dtype,op", pairs(["f4", "f2", BFLOAT16], OPS), ids=str)
def test_masked_elements_are_excluded_from_column_tiles(backend, op, dtype):
    x = random((700, 40), dtype)  # some packs of a thread are staged in shared memory
    mask = np.random.default_rng(1).random(x.shape) < 0.5
    mask[:, 3] = False
    x[~mask] = np.nan
    x[mask[:, 5].argmax(), 5] = np.nan
    for where in (mask, mask[:, :1]):
        call = Call(op, x, 0, {"where": where, "strategy": "columns"})
        got = call.run(backend)
        check(call, got)
        assert (got[~np.broadcast_to(where, x.shape)] == (0 if op == "softmax" else -np.inf)).all()


@pytest.mark.parametrize("scale,op", pairs([1, 0.125, -1, 0, 30.0, np.float64(0.5)], OPS))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_scale_multiplies_x(backend, strategy, scale, op):
    call = Call(op, random((4, 300)), 1, {"scale": scale, "strategy": strategy})
    check(call, call.run(backend))
    call = Call("logsumexp", random((4, 300)), 1, {"scale": scale})
    check(call, call.run(backend))


@pytest.mark.parametrize("strategy", [None, *softmax_kernels.ON_CHIP])
@pytest.mark.parametrize("spread", [1, 10, 40])
@pytest.mark.parametrize("offset", [0, -1420, 3e5, 2**23, -(2**31)])  # where exponentials are computed differently
def test_errors_in_float32_do_not_grow_with_the_spread(device, strategy, offset, spread):
    info = np.finfo("f4")
    x = (np.random.default_rng(0).standard_normal((3, 500)) * spread + offset).astype("f4")
    for axis, values in ((1, x), (0, x.T.copy())):
        got = device.numpy(gpuops.softmax(device.array(values), axis, strategy=strategy))
        exact = scipy.special.softmax(values.astype("f8"), axis)
        assert (abs(got - exact) <= 4 * info.eps * np.maximum(exact, info.smallest_normal)).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_exp_of_the_maximum_is_exactly_1(backend, dtype, strategy):
    x = np.array([[5.3, -40, -50, -60], [-1000.7, -np.inf, -2000, -3000]], dtype)
    for axis, values in ((1, x), (0, x.T)):
        got = np.max(backend.numpy(gpuops.log_softmax(backend.array(values), axis, strategy=strategy)), axis)
        np.testing.assert_allclose(got, [-math.exp(x[0, 1] - x[0, 0]) * (1 + math.exp(-10)), 0], rtol=1e-5)
        total = backend.numpy(gpuops.logsumexp(backend.array(values), axis))
        np.testing.assert_array_equal(total, x[:, 0])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8"])
def test_subnormal_results_are_kept(backend, dtype, strategy):
    info = np.finfo(dtype)
    least = math.log(info.smallest_subnormal)
    small = math.log(info.smallest_normal) - 1, least + 4, least + 1, least + 0.2
    x = np.array([[0, *small, least - 2, least * 2]], dtype)
    got = backend.numpy(gpuops.softmax(backend.array(x), 1, strategy=strategy))
    exact = scipy.special.softmax(x.astype("f8"), 1)
    assert (got[0, :5] > 0).all() and (got[0, 1:5] < info.smallest_normal).all() and got[0, 6] == 0
    np.testing.assert_allclose(got, exact, rtol=0.6 * info.eps, atol=2 * float(info.smallest_subnormal))


@pytest.mark.parametrize("strategy", [each for each in STRATEGIES if applies(each, 2**20)])
def test_sums_over_a_million_half_type_elements_do_not_overflow(backend, strategy):
    for dtype in HALVES:  # the largest float16 is 65504; in bfloat16, 256 + 1 rounds to 256
        x = backend.array(np.full(2**20, 3, dtype))
        try:
            got = gpuops.softmax(x, strategy=strategy)
        except ValueError as failure:
            assert strategy in softmax_kernels.ON_CHIP and "does not hold rows" in str(failure)
        else:
            assert (backend.numpy(got) == 2.0**-20).all()
        assert float(backend.numpy(gpuops.logsumexp(x))) == np.float64(3 + 20 * math.log(2)).astype(dtype)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("x_dtype", ["f4", BFLOAT16], ids=str)
def test_subnormal_bfloat16_results_are_kept(backend, x_dtype, strategy):
    x = np.array([[0, -80, -88, -90, -92, -200]]).astype(x_dtype)
    for axis, values in ((1, x), (0, x.T)):
        got = gpuops.softmax(backend.array(values), axis, dtype=BFLOAT16, strategy=strategy)
        exact = scipy.special.softmax(values.astype("f8"), axis).astype(BFLOAT16).astype("f8")
        np.testing.assert_allclose(backend.numpy(got).astype("f8"), exact, rtol=0.01, atol=1e-40)
        assert np.count_nonzero(exact) == 5


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", ["f4", BFLOAT16], ids=str)
def test_elements_near_the_largest_float(backend, dtype, strategy):
    x = np.array([[3e38, -3e38, 1e38, 2.9e38, 3e38], [-3e38, -3e38, -3.3e38, -3e38, -3e38]]).astype(dtype)
    got = backend.numpy(gpuops.softmax(backend.array(x), 1, strategy=strategy)).astype("f8")
    np.testing.assert_array_equal(got, np.array([[0.5, 0, 0, 0, 0.5], [0.25, 0.25, 0, 0.25, 0.25]]))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_types_are_rounded_once(backend, dtype, strategy):
    x = random((3, 500), dtype)
    got = backend.numpy(gpuops.softmax(backend.array(x), 1, strategy=strategy))
    exact = scipy.special.softmax(x.astype("f8"), 1)
    half = np.abs(exact.astype(dtype).astype("f8") - exact)  # the final rounding; float32 adds little
    assert (np.abs(got.astype("f8") - exact) <= half + exact * 1e-5 + 1e-30).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reads_and_writes_every_layout(backend, strategy, layout):
    x = lay_out(random((3, 8, 32)), layout)
    for axis in round_robin((0, 1, 2, (0, 2), (1, 2)), start=LAYOUTS.index(layout)):
        out = None if layout == "broadcast" else lay_out(np.zeros(x.shape, "f4"), layout)
        call = Call("softmax", x, axis, {"strategy": strategy}, out)
        check(call, call.run(backend))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_dims_that_do_not_merge(backend, strategy):
    x = layouts.strided((3, 2, 4, 3, 2, 5), np.dtype("f4"), range(6), (2, 1, 2, -1, 2, 3))
    x[...] = random(x.shape)
    mask = np.random.default_rng(1).random((4, 1, 2, 5)) < 0.7
    for axes in ((1, 3, 5), (0, 2, 4)):
        for where in (True, mask):
            call = Call("softmax", x, axes, {"where": where, "strategy": strategy})
            check(call, call.run(backend))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "place,axis",
    pairs(["in place", "shifted", "reversed", "transposed", "other dtype", "the mask's"], [0, 1, None]),
)
def test_out_may_overlap_the_input(backend, place, axis, strategy):
    memory = np.zeros(4 * 30 * 30 * 2 + 16, np.uint8)
    x = np.ndarray((30, 30), "f4", memory, 8)
    x[...] = random(x.shape)
    out = {
        "in place": lambda: x,
        "shifted": lambda: np.ndarray((30, 30), "f4", memory, 12),
        "reversed": lambda: np.ndarray((30, 30), "f4", memory, 8 + 4 * 899, (-120, -4)),
        "transposed": lambda: np.ndarray((30, 30), "f4", memory, 8, (4, 120)),
        "other dtype": lambda: np.ndarray((30, 30), "f2", memory, 8),
        "the mask's": lambda: np.ndarray((30, 30), "f4", memory, 8 + 4 * 900),
    }[place]()
    options: dict[str, Any] = {"strategy": strategy}
    if place == "the mask's":
        options["where"] = np.ndarray((30, 30), bool, memory, 8 + 4 * 900)
        options["where"][...] = np.random.default_rng(1).random((30, 30)) < 0.7
    call = Call("softmax", x.copy() if place == "in place" else x, axis, options)
    if place == "in place":
        call.x = call.out = lay_out(x, "C")
    else:
        call.out = out
    check(call, call.run(backend))


@pytest.mark.parametrize("op", [*OPS, "logsumexp"])
def test_0d_arrays(backend, op):
    for axis in (None, ()):
        call = Call(op, lay_out(np.array(3, "f4"), "C"), axis)
        check(call, call.run(backend))


@pytest.mark.parametrize("op", [*OPS, "logsumexp"])
@pytest.mark.parametrize("shape,axis", [((0,), None), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1), ((0, 3), ())], ids=str)
def test_empty_arrays(backend, op, shape, axis):
    call = Call(op, np.zeros(shape, "f4"), axis)
    check(call, call.run(backend))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_empty_axes_normalise_each_element_separately(backend, strategy, op):
    call = Call(op, np.array([[1, -np.inf, 3], [np.nan, np.inf, 0]], "f4"), (), {"strategy": strategy})
    check(call, call.run(backend))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_repeated_calls_are_bitwise_identical(backend, strategy):
    shape, axis = ((3, 5001), None) if applies(strategy, 15003) else ((3, LONGEST[strategy]), 1)
    x = backend.array(random(shape))
    first, second = (backend.numpy(gpuops.softmax(x, axis, strategy=strategy)) for _ in range(2))
    assert_bits(first, second)


def test_new_results_keep_fortran_order(backend):
    x = backend.array(lay_out(random((4, 5)), "F"))
    assert gpuops.softmax(x, 0).flags.f_contiguous


def test_input_is_not_modified(backend):
    x = random((4, 50))
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
    x, mask = random((300, 64), dtype), (np.random.default_rng(1).random((300, 128)) < 0.5)[:, ::2]
    for op in OPS:
        got = backend.numpy(getattr(gpuops, op)(backend.array(x), 0, where=backend.array(mask)))
        expected = getattr(gpuops, op)(x.astype("f8"), 0, where=mask)
        assert (got[~mask] == (0 if op == "softmax" else -np.inf)).all()
        np.testing.assert_allclose(got[mask], expected[mask], rtol=1e-5 if dtype == "f4" else 2e-3, atol=1e-7)
