"""Several expressions that are stacked: every call gives what it gives with NumPy's stack of their values."""

from __future__ import annotations

import numpy as np
import pytest

import gpuops
from gpuops.adapters.lazies import CONSTANTS, taking
from gpuops.call.dispatch import describe
from gpuops.plan.work import Machine, new_array
from tests.compare import assert_bits, fails
from tests.layouts import BFLOAT16, sample
from tests.test_lazy import without_payloads

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")] + [BFLOAT16]
GPU = Machine(132, 16, 232448, 132)


def three(x, y):
    """What a cosine of rows is made of."""
    return np.stack([x * y, x * x, y * y])


#: Shapes and an axis of the stack.
SHAPES = {
    "rows by lanes": ((300, 64), 2), "rows": ((7, 3000), -1), "a row by blocks": ((200_000,), 1),
    "edges": ((33, 257), 2), "columns": ((300, 70), 1), "columns of blocks": ((4000, 3), 1),
    "short rows": ((9000, 3), 2), "rows without packs": ((4000, 37), 2),
    "all": ((40, 50), (1, 2)), "outer": ((6, 50, 40), (1, 3)), "one": ((1, 1), 2), "none": ((0, 5), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_and_means_are_those_of_each(backend, name, dtype):
    shape, axis = SHAPES[name]
    x, y = sample(shape, dtype), sample(shape, dtype, seed=1)
    a, b = backend.arrays(x, y)
    values = three(x, y)
    for function in (gpuops.sum, gpuops.mean):
        got = function(three(gpuops.lazy(a), gpuops.lazy(b)), axis=axis)
        assert_bits(backend.numpy(got), function(values, axis=axis))


def powers(x, count):
    """The first so many powers of x, which are stacked."""
    made = [x]
    while len(made) < count:
        made.append(made[-1] * x)
    return np.stack(made)


@pytest.mark.parametrize("count", [1, 2, 4, 5])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_one_to_five_results(backend, dtype, count):
    for shape, axis in (((3, 3000), 2), ((700, 40), 1), ((150, 96), 2), ((5, 7), (1, 2))):
        x = sample(shape, dtype)
        (a,) = backend.arrays(x)
        made, values = powers(gpuops.lazy(a), count), powers(x, count)
        assert_bits(backend.numpy(gpuops.evaluate(made)), values)
        assert_bits(backend.numpy(gpuops.sum(made, axis=axis)), gpuops.sum(values, axis=axis))


def test_options_are_those_of_each(backend):
    x, y = sample((40, 300), "float32"), sample((40, 300), "float32", seed=1)
    x[3] = y[3] = -0.0
    a, b = backend.arrays(x, y)
    made, values = np.stack([gpuops.lazy(a), gpuops.lazy(b) + 0, gpuops.lazy(a) * b]), np.stack([x, y + 0, x * y])
    for options in (
        {"initial": 2.5}, {"initial": -0.0}, {"dtype": "float64"}, {"dtype": "float16"}, {"dtype": "complex64"},
        {"keepdims": True}, {"initial": np.inf, "dtype": "float64", "keepdims": True},
    ):  # fmt: skip
        for axis in (1, 2):
            got = gpuops.sum(made, axis=axis, **options)
            assert_bits(backend.numpy(got), gpuops.sum(values, axis=axis, **options))
    got = gpuops.mean(made, axis=2, dtype="float64", keepdims=True)
    assert_bits(backend.numpy(got), gpuops.mean(values, axis=2, dtype="float64", keepdims=True))
    (out,) = backend.arrays(np.zeros((3, 40), np.float32))
    assert gpuops.sum(made, axis=2, out=out) is out
    assert_bits(backend.numpy(out), gpuops.sum(values, axis=2))


def test_many_shapes_of_one_kind(backend):
    for n in (40, 41, 57, 64, 80, 96):
        x, y = sample((n, 2 * n), "float32"), sample((n, 2 * n), "float32", seed=1)
        a, b = backend.arrays(x, y)
        for axis in (1, 2):
            got = gpuops.sum(three(gpuops.lazy(a), gpuops.lazy(b)), axis=axis)
            assert_bits(backend.numpy(got), gpuops.sum(three(x, y), axis=axis))
        assert_bits(backend.numpy(gpuops.evaluate(three(gpuops.lazy(a), gpuops.lazy(b)))), three(x, y))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 3e38, 1e-45])
def test_each_sum_has_its_own_special_values(backend, special):
    x = sample((50, 200), "float32")
    y = np.where(np.arange(200) == 7, np.float32(special), np.float32(0))
    x[3], x[4, 9] = -0.0, -special
    a, b = backend.arrays(x, y)
    for axis in (1, 2):
        got = gpuops.sum(np.stack([gpuops.lazy(a), gpuops.lazy(a) + b, gpuops.lazy(b) * 1 + a * 0]), axis=axis)
        expected = gpuops.sum(np.stack([x, x + y, y * 1 + x * 0]), axis=axis)
        assert_bits(without_payloads(backend.numpy(got)), without_payloads(expected))


def test_sums_that_are_hard_to_round_are_made_again(backend):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((20, 600)) * 10.0 ** rng.integers(-30, 30, (20, 600))).astype(np.float32)
    x[:, 300:] = -x[:, :300]
    x[::2, 5] += np.float32(1)  # the rest is close to the middle of two floats, or 0
    x[:, 7], x[:, 9] = 1, np.float32(2.0**-24)
    (a,) = backend.arrays(x)
    for axis in (1, 2):
        got = gpuops.sum(np.stack([gpuops.lazy(a), gpuops.lazy(a) * -1]), axis=axis)
        assert_bits(backend.numpy(got), gpuops.sum(np.stack([x, -x]), axis=axis))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint64", "float32", "complex64"])
def test_other_calls_give_what_they_give_with_the_stack(backend, dtype):
    x, y = sample((13, 40), dtype), sample((13, 40), dtype, seed=1)
    a, b = backend.arrays(x, y)
    made = np.stack([gpuops.lazy(a), b, gpuops.lazy(a) | b if dtype == "bool" else gpuops.lazy(a) + b])
    values, mask = backend.arrays(np.stack([x, y, x | y if dtype == "bool" else x + y]), x != 0)
    for call in (
        lambda v: gpuops.max(v, axis=2), lambda v: gpuops.sum(v, axis=1, keepdims=True), lambda v: gpuops.sum(v),
        lambda v: gpuops.sum(v, axis=0), lambda v: gpuops.any(v, axis=(0, 2)), lambda v: gpuops.prod(v, axis=(1, 2)),
        lambda v: gpuops.argmax(v, axis=-1), lambda v: gpuops.cumsum(v, axis=2), lambda v: gpuops.var(v, axis=2),
        lambda v: gpuops.nansum(v, axis=2), lambda v: gpuops.nanmean(v, axis=1),
        lambda v: gpuops.sum_of_squares(v, axis=2), lambda v: gpuops.vector_norm(v, axis=2),
        lambda v: gpuops.sum(v, axis=2, where=mask),
    ):  # fmt: skip
        assert_bits(backend.numpy(call(made)), backend.numpy(call(values)))


def test_evaluate_stacks_values(backend):
    x, y = sample((13, 40)), sample((40,), seed=1)
    a, b = backend.arrays(x, y)
    made, values = np.stack((gpuops.lazy(a) * b, gpuops.lazy(a))), np.stack((x * y, x))
    assert made.shape == (2, 13, 40) and repr(made).startswith("lazy(stack((x0 * x1), x0)")
    assert_bits(backend.numpy(gpuops.evaluate(made)), values)
    for out in (np.zeros((2, 13, 40), np.float32), np.zeros((40, 2, 13)).transpose(1, 2, 0)):
        (there,) = backend.arrays(out)
        assert gpuops.evaluate(made, out=there) is there
        assert_bits(backend.numpy(there), values.astype(out.dtype))
    both = backend.array(np.stack((x, x)))
    gpuops.evaluate(np.stack((gpuops.lazy(both[1]) + 1, gpuops.lazy(both[0]) * 2)), out=both)
    assert_bits(backend.numpy(both), np.stack((x + 1, x * 2)))


def test_operands_are_promoted():
    made = np.stack([gpuops.lazy(np.float32([1, 2])), np.array([3, 4], np.int8), gpuops.lazy(np.float64([5, 6]))])
    assert made.dtype == np.float64
    assert_bits(gpuops.sum(made, axis=1), np.array([3.0, 7.0, 11.0]))
    made = np.stack([gpuops.lazy(np.array(1, np.float32)), 2.5])
    assert_bits(gpuops.evaluate(made), np.stack([np.float32(1), 2.5]))


def test_what_cannot_be_stacked_is_refused():
    x = gpuops.lazy(np.ones((3, 4)))
    made = np.stack([x, x + 1])
    fails(ValueError, "stack: all shapes must be equal, got (3, 4), (4,)", np.stack, [x, gpuops.lazy(np.ones(4))])
    fails(ValueError, "stack: expressions are stacked along axis 0, got axis 1", np.stack, [x, x], 1)
    halves = gpuops.lazy(np.ones(3, np.float16)), gpuops.lazy(np.ones(3, BFLOAT16))
    fails(TypeError, "stack: dtypes float16 and bfloat16 have no common dtype", np.stack, halves)
    fails(TypeError, "add: stack must be the last operation of an expression", lambda: made + 1)
    fails(TypeError, "stack: stack must be the last operation of an expression", np.stack, [made, made])
    fails(TypeError, "astype: stack must be the last operation of an expression", made.astype, np.float32)


def test_exact_sums_are_made_in_one_pass():
    program, *_ = three(*[gpuops.lazy(np.ones((2, 2), np.float32)) for _ in range(2)]).program()
    specs = {name: new_array(name, (8192, 8192), np.dtype(np.float32), machine=GPU) for name in ("x0", "x1")}
    for axis, kernel in ((2, "reduce_rows"), (1, "reduce_columns")):
        work = describe(taking(gpuops.sum, "a", program), **specs, **{CONSTANTS: ()}, axis=axis)
        assert [step.kernel.name for step in work.plan.steps] == [kernel]
    work = describe(taking(gpuops.max, "a", program), **specs, **{CONSTANTS: ()}, axis=2)
    assert len(work.plan.steps) == 3


def test_up_to_four_results_are_evaluated_in_one_pass():
    x = gpuops.lazy(np.ones((2, 2), np.float32))
    for count, launches in ((4, 1), (5, 5)):
        program, *_ = np.stack([x * i for i in range(count)]).program()
        spec = new_array("x0", (300, 200), np.dtype(np.float32), machine=GPU)
        work = describe(taking(gpuops.evaluate, "x", program), x0=spec, **{CONSTANTS: (0,) * count})
        assert len(work.plan.steps) == launches
