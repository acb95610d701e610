"""Calls with expressions: on every path they give what the same call gives with the expression's value in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import gpuops
from gpuops.adapters.lazies import CONSTANTS, taking
from gpuops.call.dispatch import describe
from gpuops.definition.program import Program, Step
from gpuops.ops.lazy import Lazy
from gpuops.plan import rows
from gpuops.plan.work import Launch, Machine, new_array
from tests import tiers
from tests.budget import round_robin
from tests.compare import assert_bits, fails
from tests.conftest import NO_GPU, Emulated
from tests.layouts import BFLOAT16, DTYPES, FLOATS, sample
from tests.test_lazy import without_payloads

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def operand(way: str, shape: tuple[int, ...], dtype: np.dtype, seed: int) -> np.ndarray:
    """An operand that lies in memory in some way, and broadcasts to a shape."""
    if way == "row":
        return sample(shape[-1:], dtype, seed)
    if way == "column":
        return sample((*shape[:-1], 1), dtype, seed)
    if way == "outer":
        return sample((shape[0], *(1,) * (len(shape) - 1)), dtype, seed)
    if way == "shifted":
        return sample((1 + int(np.prod(shape)),), dtype, seed)[1:].reshape(shape)
    if way == "strided":
        return sample((*shape[:-1], 2 * shape[-1]), dtype, seed)[..., ::2]
    if way == "reversed":
        return sample(shape, dtype, seed)[::-1, ..., ::-1] if len(shape) > 1 else sample(shape, dtype, seed)[::-1]
    if way == "transposed":
        return sample(shape[::-1], dtype, seed).T
    return sample((1,) if way == "one" else shape, dtype, seed)


WAYS = ("same", "row", "column", "outer", "shifted", "strided", "reversed", "transposed", "one")
SHAPES = ((61,), (6, 64), (5, 33), (3, 4, 16), (2, 7, 5), (1, 1))


def eager(x, y):
    return (x - y) * 3 + y if x.dtype.kind == "c" else (x - y) * y + x


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex128"])
def test_operands_may_lie_in_any_way(backend, dtype, shape):
    dtype = np.dtype(dtype)
    x = sample(shape, dtype)
    for way in WAYS:
        y = operand(way, shape, dtype, 1)
        with np.errstate(all="ignore"):
            expected = eager(x, y)
        there = backend.arrays(x, y)
        assert_bits(backend.numpy(gpuops.evaluate(eager(gpuops.lazy(there[0]), there[1]))), expected)


#: The operations of 16-bit floats that kernels compute two at a time.
OF_PAIRS = (np.add, np.subtract, np.multiply, np.divide, np.minimum, np.maximum, np.square, np.absolute, np.negative)


@pytest.mark.parametrize("function", OF_PAIRS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_halves_are_computed_as_numpy_does(backend, dtype, function):
    """Each of the 65536, beside a few others; on a GPU beside as many as NumPy computes in a second."""
    dtype = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.arange(2**16, dtype=np.uint16).view(dtype)[:, None]
    others = np.random.default_rng(0).permutation(2**16)[: 512 if backend.name.startswith("gpu") else 4]
    y = others.astype(np.uint16).view(dtype)
    pair = (x, y)[: function.nin]
    with np.errstate(all="ignore"):
        expected = function(*pair)
    there = backend.arrays(*pair)
    found = backend.numpy(gpuops.evaluate(function(gpuops.lazy(there[0]), *there[1:])))
    zeros = np.zeros((), dtype) if function in (np.minimum, np.maximum) else None  # of either sign
    wanted, got = [without_payloads(each if zeros is None else each + zeros) for each in (expected, found)]
    assert_bits(got, wanted)


#: Shapes and axes that have kernels of their own, or packs of another kind.
REDUCTIONS = (
    ((5000,), None), ((9, 256), 1), ((7, 517), 1), ((40, 2, 100), (0, 2)), ((300, 64), 0), ((100, 61), 0),
    ((500, 3), 1), ((300, 37), 1), ((3, 5, 70), 1), ((6, 1000), None), ((0, 5), 0), ((2, 3000), 1),
)  # fmt: skip


@pytest.mark.parametrize(("shape", "axis"), REDUCTIONS, ids=str)
def test_reductions_compute_what_they_read(backend, shape, axis):
    for dtype in (np.float32, np.float16, np.int8):
        x, y = sample(shape, dtype), sample(shape, dtype, 1)
        row = sample(shape[-1:], dtype, 2)
        value = (x - y) * row
        a, b, c = backend.arrays(x, y, row)
        for function in (gpuops.sum, gpuops.max, gpuops.argmax):
            if function is not gpuops.sum and (not value.size or (function is gpuops.argmax and type(axis) is tuple)):
                continue
            (there,) = backend.arrays(value)
            got = backend.numpy(function((gpuops.lazy(a) - b) * c, axis=axis))
            assert_bits(got, backend.numpy(function(there, axis=axis)))


def assert_alike(backend: Any, call: Callable[[Any], Any], x: Lazy) -> None:
    """A call gives the same bits (but any NaN is NaN) and strides for an expression and for its value."""
    got, expected = call(x), call(gpuops.evaluate(x))
    assert got.strides == expected.strides
    assert_bits(without_payloads(backend.numpy(got)), without_payloads(backend.numpy(expected)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((9, 5003), 1), ((9, 5004), 1), ((1501, 64), 0), ((3, 40004), 1), ((200, 1028), 1)], ids=str
)
def test_packs_past_the_end_count_for_nothing(backend, shape, axis, dtype):
    """Where others are loaded ahead, too: a sum of two arrays, some of whose elements are NaN."""
    x, y = [sample(shape, np.dtype(dtype), seed) for seed in (0, 1)]
    x[np.random.default_rng(0).random(shape) < 0.1] = np.nan
    x, y = backend.arrays(x, y)
    for function in (gpuops.sum, gpuops.nansum, gpuops.mean, gpuops.nanmean, gpuops.var, gpuops.nanvar):
        assert_alike(backend, lambda value, call=function: call(value, axis=axis), gpuops.lazy(x) - y)
        assert_alike(backend, lambda value, call=function: call(value, axis=axis), abs(gpuops.lazy(x) - y) + 2)
    both = np.stack([gpuops.lazy(y) * 2, y * gpuops.lazy(y)])
    for function in (gpuops.sum, gpuops.mean):
        assert_alike(backend, lambda value, call=function: call(value, axis=axis + 1), both)


def expression(backend: Any, ways: str, shape: tuple[int, ...], dtype: np.dtype) -> Lazy:
    """An expression of an array and of operands that lie in these ways, such as "row and column"."""
    others = [operand(way, shape, dtype, seed) for seed, way in enumerate(ways.split(" and "), 1)]
    x, *others = backend.arrays(sample(shape, dtype, special=True), *others)
    made = gpuops.lazy(x)
    for other in others:
        made = (made - other) * other
    return made


#: Ways of one operand or two that do not lie as the expression.
LYING = (
    "row", "column", "outer", "strided", "transposed", "reversed", "one", "row and column", "shifted and outer",
    "transposed and row",
)  # fmt: skip


class Case(NamedTuple):
    """An array that a kernel reduces, if it is not small."""

    kernel: str
    shape: tuple[int, ...]
    axis: int | tuple[int, ...] | None
    dtype: str = "float32"
    options: tuple[tuple[str, Any], ...] = ()
    constants: tuple[tuple[str, int], ...] = ()  # some of the kernel's


CASES = {
    "lanes": Case("reduce_rows", (7, 256), 1, constants=(("GROUP", 32), ("RAGGED", 0))),
    "ragged rows": Case("reduce_rows", (7, 517), 1, constants=(("GROUP", 128), ("RAGGED", 1))),
    "rows of blocks": Case("reduce_rows", (2, 5000), 1, constants=(("GROUP", 512),)),
    "runs": Case("reduce_rows", (40, 2, 100), (0, 2), constants=(("REDUCED", 2),)),
    "split vector": Case("reduce_rows", (20000,), None, "float64", constants=(("RESIDENT", 1024),)),
    "columns": Case("reduce_columns", (300, 64), 0, constants=(("VEC", 4), ("FUNNEL", 0))),
    "runs of columns": Case("reduce_columns", (5, 64, 6), 1, constants=(("EDGED", 1), ("FUNNEL", 0))),
    "single columns": Case("reduce_columns", (100, 61), 0, constants=(("VEC", 1),)),
    "funnel of halves": Case("reduce_columns", (100, 77), 0, "float16", constants=(("FUNNEL", 1),)),
    "funnel of bytes": Case("reduce_columns", (100, 333), 0, "int8", constants=(("FUNNEL", 1),)),
    "split columns": Case("reduce_columns", (1500, 77), 0, "float16", constants=(("FUNNEL", 1),)),
    **{f"tiny {n}": Case("reduce_tiny", (300, n), 1, constants=(("LENGTH", n),)) for n in (2, 3, 5, 7)},
    "piled": Case("reduce_tiny", (501, 2), 1, "int8", constants=(("PILED", 1),)),
    "short": Case("reduce_rows", (300, 8), 1, constants=(("GROUP", 2),)),
    "staged": Case("reduce_staged", (300, 37), 1),
    "staged halves": Case("reduce_staged", (300, 37), 1, "float16"),
    "block": Case("reduce_block", (9, 300), 1, options=(("strategy", "shuffle"),)),
    "block of columns": Case("reduce_block", (300, 9), 0, options=(("strategy", "shuffle"),)),
}
MASKS = ("same", "row", "column", "transposed")
#: What reduces, of an array and a mask.
REDUCING = {
    "max": lambda x, _, **given: gpuops.max(x, **given),
    "sum": lambda x, _, **given: gpuops.sum(x, **given),
    "masked sum": lambda x, mask, **given: gpuops.sum(x, where=mask, **given),
    "argmax": lambda x, _, **given: gpuops.argmax(x, **given),
    "masked max": lambda x, mask, **given: gpuops.max(x, where=mask, initial=-2, **given),
    "any": lambda x, _, **given: gpuops.any(x, **given),
    "mean": lambda x, _, **given: gpuops.mean(x, **given),
    "masked count": lambda x, mask, **given: gpuops.sum(x > 0.5, where=mask, **given),
}


@pytest.mark.parametrize("name", CASES)
def test_cases_are_of_the_kernels_that_they_name(name):
    case, machine = CASES[name], Machine(4, together=1)  # as the emulator's
    dtype = np.dtype(case.dtype)
    program = Program((dtype, dtype), (), (Step("subtract", (dtype,) * 3, (0, 1)),))
    operands = {"x0": case.shape, "x1": case.shape[-1:]}
    specs = {name: new_array(name, shape, dtype, machine=machine) for name, shape in operands.items()}
    with tiers.tuned():
        work = describe(
            taking(gpuops.max, "a", program), **specs, **{CONSTANTS: ()}, axis=case.axis, **dict(case.options)
        )
    steps = [step for step in work.plan.steps if isinstance(step, Launch)]
    assert [step.kernel.name for step in steps] == [case.kernel]
    assert steps[0].kernel.expression is not None
    assert {*case.constants} <= {*steps[0].kernel.constants}


@pytest.mark.parametrize("ways", LYING)
@pytest.mark.parametrize("name", CASES)
def test_every_kernel_of_reductions_reads_operands_in_every_way(device, name, ways):
    case, place = CASES[name], LYING.index(ways)
    x = expression(device, ways, case.shape, np.dtype(case.dtype))
    mask = device.array(operand(MASKS[place % len(MASKS)], case.shape, np.dtype(bool), 3))
    functions = [each for each in REDUCING if each != "argmax" or type(case.axis) is not tuple]
    for function in round_robin(functions, start=place):
        assert_alike(device, lambda x: REDUCING[function](x, mask, axis=case.axis, **dict(case.options)), x)  # noqa: B023


#: Rows and columns of softmax and its like: in lanes, ragged, in a block, on the grid; in a thread, a block, runs.
ROWS: tuple[tuple[tuple[int, ...], int, dict[str, str]], ...] = (
    ((5, 64), 1, {}), ((5, 63), 1, {}), ((3, 3000), 1, {}), ((2, 2000), 1, {"strategy": "grid"}), ((6, 40), 0, {}),
    ((300, 40), 0, {}), ((5, 30, 16), 1, {}), ((60, 7), 0, {}),
    *(() if NO_GPU else (((2, 2**18), 1, {}), ((3, 50001), 1, {}), ((2**15, 40), 0, {}))),  # clusters of blocks
)  # fmt: skip
#: What goes over rows, of an array, a mask and weights.
OVER_ROWS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x, m, w, **given: gpuops.softmax(x, **given),
    "masked softmax": lambda x, m, w, **given: gpuops.softmax(x, where=m, **given),
    "logsumexp": lambda x, m, w, **given: gpuops.logsumexp(x, **without_strategy(given)),
    "rms_norm": lambda x, m, w, **given: gpuops.rms_norm(x, **given),
    "masked logsumexp": lambda x, m, w, **given: gpuops.logsumexp(x, where=m, **without_strategy(given)),
    "log_softmax": lambda x, m, w, **given: gpuops.log_softmax(x, scale=0.5, **given),
    "masked rms_norm": lambda x, m, w, **given: gpuops.rms_norm(x, where=m, **without_strategy(given)),
    "float16 softmax": lambda x, m, w, **given: gpuops.softmax(x, dtype=np.float16, **given),
    "weighted logsumexp": lambda x, m, w, **given: gpuops.logsumexp(x, b=abs(w), axis=given["axis"]),
}


def without_strategy(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "strategy"}


@pytest.mark.parametrize("ways", LYING)
@pytest.mark.parametrize("case", ROWS, ids=str)
def test_every_kernel_of_rows_reads_operands_in_every_way(device, case, ways):
    (shape, axis, options), place = case, LYING.index(ways) + ROWS.index(case)
    for k, function in round_robin([*enumerate(OVER_ROWS)], start=place):
        dtype = FLOATS[(place + k) % len(FLOATS)]
        x = expression(device, ways, shape, dtype)
        mask, weights = device.arrays(operand("row", shape, np.dtype(bool), 3), sample(shape[axis:][:1], dtype, 4))
        weights = weights if axis == len(shape) - 1 else weights[(slice(None), *(None,) * (len(shape) - 1 - axis))]
        assert_alike(device, lambda x: OVER_ROWS[function](x, mask, weights, axis=axis, **options), x)  # noqa: B023


@pytest.mark.parametrize("strategy", rows.STRATEGIES)
def test_every_strategy_of_softmax_takes_expressions(device, strategy):
    (ways,) = round_robin(LYING[:-1], start=list(rows.STRATEGIES).index(strategy))[:1]
    for shape, axis in (((6, 128), 1), ((20, 12), 0)):
        x = expression(device, ways, shape, np.dtype(np.float32))
        assert_alike(device, lambda x: gpuops.softmax(x, axis=axis, strategy=strategy), x)  # noqa: B023


def test_equal_calls_have_equal_descriptions(device):
    x, y = device.arrays(sample((40, 50)), sample((50,), seed=1))
    program, (a, b), _ = (gpuops.lazy(x) - y).program()
    first, second = (describe(taking(gpuops.sum, "a", program), x0=a, x1=b, constants=(), axis=1) for _ in range(2))
    assert first == second and first.sooner() == second.sooner()
    assert first.sooner().strategy and len(first.sooner().steps) == len(first.plan.steps) + 1


def test_integers_to_negative_powers_are_0_on_a_device(device):
    x, y = np.array([2, 1, -1]), np.array([-1, -2, -3])
    a, b = device.arrays(x, y)
    assert_bits(device.numpy(gpuops.evaluate(gpuops.lazy(a) ** b)), np.zeros(3, x.dtype))


def test_threads_without_outputs_read_nothing(emulation):
    x, column, mask = Emulated().arrays(np.ones((2, 3)), np.ones((2, 1)), np.ones((2, 3), bool, order="F"))
    with tiers.tuned():
        assert_bits(np.array(gpuops.max(gpuops.lazy(x) + column, axis=(), where=mask, initial=0)), np.full((2, 3), 2.0))


@pytest.mark.parametrize("strategy", ["cross", "shuffle"])
def test_counts_of_expressions(device, strategy):
    x, column = sample((3, 300)), sample((3, 1), seed=1)
    a, b = device.arrays(x, column)
    got = device.numpy(gpuops.sum(gpuops.lazy(a) - b > 0.5, axis=1, strategy=strategy))
    assert_bits(got, np.sum(x - column > 0.5, 1))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_clip_beside_nan(device, dtype):
    parts = [0, 1, -1, np.nan, np.inf, -np.inf]
    values = np.array([complex(re, im) for re in parts for im in (0, 1, np.nan)], dtype)
    operands = [np.ascontiguousarray(each).ravel() for each in np.meshgrid(values, values, values)]
    x, low, high = device.arrays(*operands)
    got = device.numpy(gpuops.evaluate(np.clip(gpuops.lazy(x), low, high)))
    assert_bits(without_payloads(got) + 0, without_payloads(np.clip(*operands)) + 0)


def test_masks_dtypes_and_initial_values(backend):
    x, y, mask = sample((40, 50)), sample((40, 50), seed=1), sample((40, 1), bool, 2)
    a, b, m = backend.arrays(x, y, mask)
    difference = gpuops.lazy(a) - b
    for options in ({"where": m}, {"dtype": np.float64}, {"initial": 5.0}, {"keepdims": True}, {"axis": 0, "where": m}):
        there = {name: backend.numpy(each) if name == "where" else each for name, each in options.items()}
        assert_bits(backend.numpy(gpuops.sum(difference, **options)), gpuops.sum(x - y, **there))
    assert_bits(backend.numpy(gpuops.sum(difference, where=gpuops.lazy(a) > b)), gpuops.sum(x - y, where=x > y))
    (out,) = backend.arrays(np.empty(50, np.float32))
    assert gpuops.sum(difference, axis=0, out=out) is out
    assert_bits(backend.numpy(out), gpuops.sum(x - y, axis=0))


def test_half_types_round_at_every_node(backend):
    for dtype in (np.dtype(np.float16), BFLOAT16):
        x, y = sample((30, 70), dtype), sample((30, 70), dtype, 1)
        a, b = backend.arrays(x, y)
        assert_bits(backend.numpy(gpuops.evaluate(gpuops.lazy(a) * b + a - b)), x * y + x - y)
        assert_bits(backend.numpy(gpuops.sum(gpuops.lazy(a) * b + a, axis=1)), gpuops.sum(x * y + x, axis=1))


#: What else takes an array: one of every kind, with the name of the operand.
OTHERS = {
    "softmax": lambda x: gpuops.softmax(x, axis=-1), "logsumexp": lambda x: gpuops.logsumexp(x, axis=0),
    "rms_norm": lambda x: gpuops.rms_norm(x), "cumsum": lambda x: gpuops.cumsum(x, axis=0),
    "var": lambda x: gpuops.var(x, axis=1), "vector_norm": lambda x: gpuops.vector_norm(x, axis=1),
    "max_with_index": lambda x: gpuops.max_with_index(x, axis=1)[1], "mean": lambda x: gpuops.mean(x),
    "expand": lambda x: gpuops.expand(x, (2, 20, 30)), "average": lambda x: gpuops.average(x, weights=x, axis=1),
    "nonzero": lambda x: gpuops.nonzero(x)[1],
    "count_nonzero": lambda x: gpuops.count_nonzero(x, axis=0), "nanmax": lambda x: gpuops.nanmax(x),
    "std": lambda x: gpuops.std(x), "ptp": lambda x: gpuops.ptp(x, axis=0), "all": lambda x: gpuops.all(x),
    "sum_of_squares": lambda x: gpuops.sum_of_squares(x, axis=0),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_every_function_takes_expressions(backend, name):
    x, y = sample((20, 30)), sample((20, 30), seed=1)
    a, b, value = backend.arrays(x, y, x * y - x)
    assert_bits(backend.numpy(OTHERS[name](gpuops.lazy(a) * b - a)), backend.numpy(OTHERS[name](value)))


def test_expressions_that_repeat(backend):
    x, y, weights = sample((20, 30)), sample((30,), seed=1), np.abs(sample((4, 20, 1), seed=2))
    a, b, c = backend.arrays(x, y, weights)
    value = backend.array(x * y)
    got = backend.numpy(gpuops.logsumexp(gpuops.lazy(a) * b, axis=(0, 2), b=c))
    assert_bits(got, backend.numpy(gpuops.logsumexp(value, axis=(0, 2), b=c)))


def test_comparisons_take_expressions(backend):
    x, y = backend.arrays(sample((20, 30)), sample((20, 30), seed=1))
    assert gpuops.allclose(gpuops.lazy(x) + y, gpuops.evaluate(gpuops.lazy(x) + y))
    assert not gpuops.array_equal(gpuops.lazy(x) + y, gpuops.lazy(x) - y)


def test_where_makes_expressions(backend):
    x, y = sample((20, 30)), sample((20, 30), seed=1)
    a, b = backend.arrays(x, y)
    chosen = gpuops.where(gpuops.lazy(a) > b, a, 0)
    assert isinstance(chosen, type(gpuops.lazy(a)))
    assert_bits(backend.numpy(gpuops.mean(chosen > 0.5, axis=0)), gpuops.mean(np.where(x > y, x, 0) > 0.5, axis=0))
    (out,) = backend.arrays(np.empty((20, 30)))
    assert gpuops.where(gpuops.lazy(a) > b, a, 0, out=out) is out
    assert_bits(backend.numpy(out), np.where(x > y, x, 0).astype(np.float64))
    assert_bits(backend.numpy(gpuops.where(gpuops.lazy(a) > b)[0]), np.nonzero(x > y)[0])


#: Where a result goes, given an operand x of shape (20, 30) and memory of shape (21, 60) that begins with x.
PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda x, memory: x, "wider": lambda x, memory: memory[:20, :30],
    "sliced": lambda x, memory: memory[:20, ::2],
}  # fmt: skip


def memory_after(x: np.ndarray) -> np.ndarray:
    memory = np.zeros((21, 60))
    memory[:20, :30] = x
    return memory


@pytest.mark.parametrize("place", PLACES)
def test_out_may_be_an_operand_or_lie_anywhere(backend, place):
    x, y = sample((20, 30)), sample((20, 30), seed=1)
    a, b, memory = backend.arrays(x, y, memory_after(x))
    out = PLACES[place](a, memory)
    assert gpuops.evaluate(gpuops.lazy(a) * b + a, out=out) is out
    assert_bits(backend.numpy(out), (x * y + x).astype(out.dtype))


def test_out_may_be_transposed_or_overlap_an_operand(backend):
    x, y = sample((20, 20)), sample((20, 20), seed=1)
    a, b, memory = backend.arrays(x, y, np.zeros((20, 60)))
    out = memory[:20, :20].T
    assert gpuops.evaluate(gpuops.lazy(a) * b + a, out=out) is out
    assert_bits(backend.numpy(out), (x * y + x).astype(np.float64))
    host = memory_after(sample((20, 30)))
    memory = backend.array(host)
    out = memory[1:, :30]
    assert gpuops.evaluate(gpuops.lazy(memory[:20, :30]) * 2, out=out) is out
    assert_bits(backend.numpy(out), host[:20, :30] * 2)


def test_kernels_are_the_plain_ones_and_constants_and_shapes_are_parameters(device):
    def kernels(x, y, factor):
        program, arrays, numbers = ((gpuops.lazy(x) - y) * factor).program()
        bits = tuple([int.from_bytes(each.tobytes(), "little") for each in numbers])
        operands = {f"x{k}": array for k, array in enumerate(arrays)}
        work = describe(taking(gpuops.sum, "a", program), **operands, **{CONSTANTS: bits}, axis=1)
        return [step.kernel for step in work.plan.steps if isinstance(step, Launch)]

    found = []
    for shape, factor in (((64, 128), 2.0), ((128, 128), 3.0)):
        x, y = device.arrays(sample(shape), sample(shape, seed=1))
        found.append(kernels(x, y, factor))
    assert found[0] == found[1]
    assert len(found[0]) == 1


def test_bad_input_is_refused_by_name(backend):
    x, shown = gpuops.lazy(backend.array(sample((3, 4)))), "lazy(x0, dtype=float32, shape=(3, 4))"
    fails(TypeError, f"matmul: a is an expression, {shown}; pass gpuops.evaluate", gpuops.matmul, x, x)
    fails(TypeError, f"sum: out is an expression, {shown}; pass an array", gpuops.sum, x, out=x)
    out = backend.array(np.zeros((4, 3)))
    fails(ValueError, "evaluate: out has shape (4, 3), the result has shape (3, 4)", gpuops.evaluate, x + 1, out=out)
    fails(np.exceptions.AxisError, "sum: axis 2 is out of range for shape (3, 4)", gpuops.sum, x + 1, axis=2)
    fails(TypeError, f"lazy: {shown} is not computed yet; use gpuops.evaluate", np.asarray, x)


@pytest.mark.parametrize("op", ["sum", "max", "argmax", "prod", "logsumexp"])
@pytest.mark.parametrize("length", [3, 12])
def test_few_long_columns_have_the_bits_of_those_of_an_array(device, op, length):
    """Of an array, a thread may take two of them."""
    x, row, column = (device.array(sample(shape, seed=length)) for shape in ((length, 8209), (8209,), (length, 1)))
    for expression in (gpuops.lazy(x) * row, gpuops.lazy(x) * column, gpuops.lazy(row) + device.array(sample((3, 1)))):
        array = gpuops.evaluate(expression)
        found, expected = (device.numpy(getattr(gpuops, op)(each, axis=0)) for each in (expression, array))
        assert_bits(found, expected)


def real_if_cast(value: np.ndarray, to: np.dtype) -> np.ndarray:
    """The real parts, if a cast drops the imaginary ones."""
    return value.real if value.dtype.kind == "c" and to.kind not in "bc" else value


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_casts_between_all_dtypes(device, dtype):
    # (Casts of negative floats to unsigned integers are undefined.)
    x = np.minimum(np.abs(sample((3, 50), np.int8).astype(np.int16)), 127)
    value = x.astype(dtype)
    a = device.array(value)
    for to in DTYPES:
        if dtype.kind == "c" and to.kind in "iu":
            continue
        expected = real_if_cast(value, to).astype(to)
        assert_bits(device.numpy(gpuops.evaluate(gpuops.lazy(a).astype(to))), expected)
