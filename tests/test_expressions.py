"""Calls with expressions: on every path they give what the same call gives with the expression's value in memory."""

from __future__ import annotations

import numpy as np
import pytest

import gpuops
from gpuops.call.dispatch import describe
from gpuops.plan.work import Launch
from tests.compare import assert_bits, fails
from tests.layouts import BFLOAT16, DTYPES, sample

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
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int8), np.dtype(np.complex128)], ids=str)
def test_operands_may_lie_in_any_way(backend, dtype, shape):
    x = sample(shape, dtype)
    for way in WAYS:
        y = operand(way, shape, dtype, 1)
        with np.errstate(all="ignore"):
            expected = eager(x, y)
        there = backend.arrays(x, y)
        assert_bits(backend.numpy(gpuops.evaluate(eager(gpuops.lazy(there[0]), there[1]))), expected)


#: Shapes and axes that have kernels of their own, or packs of another kind.
REDUCTIONS = (
    ((5000,), None), ((9, 256), 1), ((7, 517), 1), ((40, 2, 100), (0, 2)), ((300, 64), 0), ((100, 61), 0), ((500, 3), 1),
    ((300, 37), 1), ((3, 5, 70), 1), ((6, 1000), None), ((0, 5), 0), ((2, 3000), 1),
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


def test_out_may_be_an_operand_or_lie_anywhere(backend):
    x, y = sample((20, 30)), sample((20, 30), seed=1)
    for place in ("itself", "transposed", "wider", "sliced", "shifted"):
        memory = np.zeros((21, 60))
        memory[:20, :30] = x
        a, b, target = backend.arrays(x, y, memory)
        out = {
            "itself": lambda: a, "transposed": lambda: target[:20, :20], "wider": lambda: target[:20, :30],
            "sliced": lambda: target[:20, ::2], "shifted": lambda: target[1:, :30],
        }[place]()  # fmt: skip
        made = gpuops.lazy(a) * b + a
        if place == "transposed":
            expected, made, out = (x * y + x)[:, :20].astype(np.float64), (gpuops.lazy(a[:, :20]) * b[:, :20] + a[:, :20]), out.T
        elif place == "shifted":
            expected, made = target_value(memory), gpuops.lazy(target[:20, :30]) * 2
        else:
            expected = (x * y + x).astype(out.dtype)
        assert gpuops.evaluate(made, out=out) is out
        assert_bits(backend.numpy(out), expected)


def target_value(memory):
    return memory[:20, :30] * 2


def test_kernels_are_the_plain_ones_and_constants_and_shapes_are_parameters(device):
    def kernels(x, y, factor):
        work = describe_sum((gpuops.lazy(x) - y) * factor)
        return [step.kernel for step in work.plan.steps if isinstance(step, Launch)]

    def describe_sum(x):
        from gpuops.adapters.lazies import CONSTANTS, taking

        program, arrays, numbers = x.program()
        bits = tuple([int.from_bytes(each.tobytes(), "little") for each in numbers])
        operands = {f"x{k}": array for k, array in enumerate(arrays)}
        return describe(taking(gpuops.sum, "a", program), **operands, **{CONSTANTS: bits}, axis=1)

    found = []
    for shape, factor in (((64, 128), 2.0), ((128, 128), 3.0)):
        x, y = device.arrays(sample(shape), sample(shape, seed=1))
        found.append(kernels(x, y, factor))
    assert found[0] == found[1]
    assert len(found[0]) == 1


def test_bad_input_is_refused_by_name(backend):
    x = gpuops.lazy(backend.array(sample((3, 4))))
    fails(TypeError, "matmul: a is an expression, lazy(x0, dtype=float32, shape=(3, 4)); pass gpuops.evaluate", gpuops.matmul, x, x)
    fails(TypeError, "sum: out is an expression, lazy(x0, dtype=float32, shape=(3, 4)); pass an array", gpuops.sum, x, out=x)
    out = backend.array(np.zeros((4, 3)))
    fails(ValueError, "evaluate: out has shape (4, 3), the result has shape (3, 4)", gpuops.evaluate, x + 1, out=out)
    fails(np.exceptions.AxisError, "sum: axis 2 is out of range for shape (3, 4)", gpuops.sum, x + 1, axis=2)
    fails(TypeError, "lazy: lazy(x0, dtype=float32, shape=(3, 4)) is not computed yet; use gpuops.evaluate", np.asarray, x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_casts_between_all_dtypes(device, dtype):
    x = np.abs(sample((3, 50), np.int8).astype(np.int16))  # (casts of negative floats to unsigned integers are undefined)
    x = np.minimum(x, 127)
    a = device.array(x.astype(dtype))
    value = x.astype(dtype)
    for to in DTYPES:
        if dtype.kind == "c" and to.kind in "iu":
            continue
        expected = value.real.astype(to) if dtype.kind == "c" and to.kind != "c" and to != bool else value.astype(to)
        assert_bits(device.numpy(gpuops.evaluate(gpuops.lazy(a).astype(to))), expected)
