"""Lazy expressions: dtypes, shapes, errors and bits are those of NumPy's own expressions."""

from __future__ import annotations

import operator
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuops.definition.program import UFUNCS, Program
from gpuops.host import programs
from gpuops.ops import lazy as expressions
from gpuops.ops import lazy_structures
from gpuops.ops.lazy import Lazy, lazy
from tests import layouts
from tests.compare import assert_bits, fails
from tests.host_blocks import settings
from tests.layouts import BFLOAT16, DTYPES, sample

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
UNARY = sorted(name for name in UFUNCS if getattr(np, name).nin == 1)
BINARY = sorted(name for name in UFUNCS if getattr(np, name).nin == 2)
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.eq, operator.ne, operator.lt,
    operator.le, operator.gt, operator.ge,
]  # fmt: skip
SCALARS = (0, 1, 2, 3, -1, 0.5, 2.0, -1.5, 1e-3, 300, 2.5j, True)


def evaluate(x: Lazy, out: np.ndarray | None = None) -> np.ndarray:
    """The value of an expression of NumPy arrays."""
    return programs.evaluate(*x.program(), x.shape, out)


class Pair(NamedTuple):
    """An expression, and NumPy's value of it."""

    lazy: Any
    eager: Any


REFUSED = (TypeError, ValueError, OverflowError)


def outcome(function: Any, *args: Any) -> Any:
    """What a call gives, or the type of error that it raises."""
    try:
        return function(*args)
    except REFUSED as failure:
        return type(failure)


def weak(value: Any, *others: Any) -> Any:
    """A Python scalar; beside bfloat16, of which NumPy makes float32, a scalar of that dtype."""
    half = any(getattr(each, "dtype", None) == BFLOAT16 for each in others)
    return BFLOAT16.type(value) if half and type(value) in (int, float) else value


def without_payloads(x: np.ndarray) -> np.ndarray:
    """The same values with one NaN for all."""
    x = np.array(x)
    if x.dtype.kind == "c":
        for part in (x.real, x.imag):
            part[part != part] = np.nan
    elif layouts.inexact(x.dtype):
        x[x != x] = np.nan
    return x


def agree(made: Lazy, value: np.ndarray) -> None:
    """An expression has the dtype, the shape and the bits of NumPy's value, whatever the blocks."""
    assert (made.dtype, made.shape) == (value.dtype, value.shape)
    assert_bits(without_payloads(evaluate(made)), without_payloads(value))


@st.composite
def pairs(draw: Any, shape: tuple[int, ...], depth: int) -> Pair:
    """An expression of at most this depth, with its value; its shape broadcasts to the one given."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        cut = draw(st.integers(0, max(len(shape) - 1, 0)))  # (NumPy's powers by 0-d arrays depend on its version)
        lengths = tuple([n if draw(st.booleans()) else 1 for n in shape[cut:]])
        array = sample(lengths, draw(st.sampled_from(DTYPES)), draw(st.integers(0, 99)), draw(st.booleans()))
        return Pair(lazy(array), array)
    x = draw(pairs(shape, depth - 1))
    match draw(st.sampled_from(("unary", "binary", "binary", "operator", "scalar", "where", "clip", "astype", "part"))):
        case "unary":
            return both(x, lambda a: getattr(np, name)(a)) if (name := draw(st.sampled_from(UNARY))) else x
        case "binary":
            name, y = draw(st.sampled_from(BINARY)), draw(pairs(shape, depth - 1))
            more = 0 if name in ("maximum", "minimum", "fmax", "fmin") else None
            return both(x, lambda a, b: without_sign(getattr(np, name)(a, b), more), y)
        case "operator":
            function, y = draw(st.sampled_from(OPERATORS)), draw(pairs(shape, depth - 1))
            return both(x, function, y)
        case "scalar":
            function, value = draw(st.sampled_from(OPERATORS)), draw(st.sampled_from(SCALARS))
            if draw(st.booleans()):
                return both(x, lambda a: function(a, weak(value, a)))
            return both(x, lambda a: function(weak(value, a), a))
        case "where":
            m, y = draw(pairs(shape, depth - 1)), draw(pairs(shape, depth - 1))
            return both(m, np.where, x, y)
        case "clip":
            low, high = draw(pairs(shape, 0)), draw(pairs(shape, 0))
            return both(x, lambda a, b, c: without_sign(np.clip(a, b, c), 0), low, high)
        case "astype":
            dtype = draw(st.sampled_from(DTYPES))
            return both(x, lambda a: a.astype(dtype)) if defined(x.eager, dtype) else x
        case _:
            return both(x, draw(st.sampled_from((np.real, np.imag))))


def without_sign(x: Any, zero: int | None) -> Any:
    """The same with positive zeros, if given 0: which of two zeros NumPy's extremes take depends on the layout."""
    return x if zero is None else x + zero


def defined(x: np.ndarray, dtype: np.dtype) -> bool:
    """Whether a cast is defined: of floats to integers, only if these have the values."""
    if not layouts.inexact(x.dtype) or dtype.kind not in "iu":
        return True
    values = x.real.astype(np.float64)
    return bool(np.all((values > (-1 if dtype.kind == "u" else -129)) & (values < 128)))


def both(x: Pair, function: Any, *more: Pair) -> Pair:
    """A function of expressions, and of their values; the first as it is, where NumPy refuses them or there are
    too many arrays."""
    if len({id(array) for each in (x, *more) for array in each.lazy.arrays}) > lazy_structures.ARRAYS:
        return x
    value = outcome(function, *[each.eager for each in (x, *more)])
    made = outcome(function, *[each.lazy for each in (x, *more)])
    if isinstance(value, type):
        if isinstance(made, Lazy):  # NumPy refuses elements, not dtypes
            assert isinstance(outcome(evaluate, made), type), f"{made!r}: {value}"
        return x
    assert isinstance(made, Lazy), f"{function} of {[each.eager.dtype for each in (x, *more)]}: {made}"
    return Pair(made, np.asarray(value))


@given(data=st.data())
def test_random_expressions_have_numpys_bits(data):
    shape = data.draw(layouts.shapes(max_dims=3).filter(bool))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, value = data.draw(pairs(shape, data.draw(st.integers(1, 8))))
        with settings(programs, 2, BLOCK=data.draw(st.sampled_from((2, 7, 2**17)))):
            agree(made, value)


@pytest.mark.parametrize("name", sorted(UFUNCS))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_operation_has_numpys_dtypes(name, dtype):
    function = getattr(np, name)
    x = sample((3, 5), dtype, 1, special=True)
    for y in (x,) if function.nin == 1 else (np.abs(x.real).astype(dtype) if dtype.kind == "c" else np.absolute(x),):
        args, made = (x, y)[: function.nin], outcome(function, *[lazy(x), lazy(y)][: function.nin])
        expected = outcome(function, *args)
        if isinstance(expected, type) or expected.dtype not in DTYPES:
            assert isinstance(made, type)
        else:
            agree(made, expected)


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scalars_have_numpys_dtypes_on_either_side(function, dtype):
    x = sample((3, 5), dtype, 2, special=True)
    for value in (*SCALARS, np.float32(2), np.int8(3), np.array(2)):
        known = Pair(lazy(x), x)
        for made in (
            both(known, lambda a: function(a, weak(value, a))),  # noqa: B023
            both(known, lambda a: function(weak(value, a), a)),  # noqa: B023
        ):
            agree(*made)


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_lie_in_memory_as_numpys(order):
    x = np.asarray(sample((30, 40)), order=order)
    made, expected = evaluate(lazy(x) * 2 + 1), x * 2 + 1
    assert made.strides == expected.strides


def test_equal_structures_are_one_program():
    a, b = sample((3, 4)), sample((7, 4))
    first, second = ((lazy(x) - x[:1]) ** 2 * 3.5 for x in (a, b))
    other = (lazy(a) - a[:1]) ** 2 * 4.5
    assert first.program()[0] == second.program()[0] == other.program()[0]
    assert hash(first.program()[0]) == hash(second.program()[0])
    assert first.program()[0] != ((lazy(a) - a[:1]) ** 2 / 3.5).program()[0]


def test_expressions_without_dims_or_arrays_have_a_value():
    agree(lazy(np.float32(3)) * 2 + 1, np.asarray(np.float32(7)))
    agree(expressions.where(True, 1, 2.5), np.asarray(1.0))
    target = np.zeros(())
    assert evaluate(lazy(np.array(3.0)) * 2, target) is target
    assert_bits(target, 6.0)


def test_an_array_that_is_used_twice_is_read_once():
    x = lazy(sample((3, 4)))
    y = x + 1
    program, arrays, constants = (y * y + lazy(x.arrays[0])).program()
    assert isinstance(program, Program)
    assert (len(arrays), len(constants), len(program.steps)) == (1, 1, 3)


def test_out_may_be_an_operand_and_may_have_another_dtype():
    x, y = sample((50, 60)), sample((50, 60), seed=1)
    for target in (x.copy(), np.empty((50, 60)), np.empty((60, 50), np.float32).T):
        a = target if target.flags.c_contiguous and target.dtype == x.dtype else x
        expected = (a - y) * y
        assert evaluate((lazy(a) - y) * y, target) is target
        assert_bits(target, expected.astype(target.dtype))
    shifted = np.arange(20.0)
    expected = shifted[:-1] * 2
    evaluate(lazy(shifted[:-1]) * 2, shifted[1:])
    assert_bits(shifted[1:], expected)


def test_floating_point_errors_are_reported_as_errstate_says():
    x = lazy(np.array([0.0, 1.0]))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        evaluate(1 / x)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        evaluate(1 / x)


def test_nothing_is_computed_unless_evaluated():
    x = lazy(sample((3, 4))) + 1
    for use in (bool, len, iter, np.asarray, float, lambda x: x[0], lambda x: 1 in x, np.from_dlpack):
        fails(TypeError, "lazy: lazy((x0 + 1.0), dtype=float32, shape=(3, 4)) is not computed yet; use gpuops.evaluate",
              use, x)  # fmt: skip
    assert repr(x) == "lazy((x0 + 1.0), dtype=float32, shape=(3, 4))"
    assert repr(np.exp(x).astype("f8")) == "lazy(astype(exp((x0 + 1.0)), float64), dtype=float64, shape=(3, 4))"
    with pytest.raises(AttributeError, match="immutable"):
        x.shape = (4, 3)


def test_bad_input_is_refused_where_the_mistake_is():
    x = lazy(sample((3, 4)))
    fails(ValueError, "add: shapes (3, 4), (3,) do not broadcast", lambda: x + np.ones(3))
    fails(TypeError, "bitwise_and: NumPy does not compute it for float32, int", lambda: x & 1)
    fails(TypeError, "subtract: NumPy does not compute it for bool, bool", lambda: (x > 0) - (x > 1))
    fails(OverflowError, "add: a scalar 300 cannot be represented in uint8", lambda: lazy(np.ones(3, "u1")) + 300)
    fails(ValueError, "power: integers have no integer power below 0, got -1", lambda: lazy(np.ones(3, "i4")) ** -1)
    fails(TypeError, "lazy: np.add.reduce takes arrays, not expressions", np.add.reduce, x)
    fails(TypeError, "lazy: np.sum is not an operation of expressions; use gpuops' functions", np.sum, x)
    fails(TypeError, "lazy: np.arcsin is not an operation of expressions", np.arcsin, x)
    fails(TypeError, "lazy: np.add of an expression takes no where", lambda: np.add(x, x, where=np.ones(3, bool)))
    fails(TypeError, "lazy: dtype object of x is not supported", lazy, np.array([None]))
    fails(TypeError, "lazy: dtype <U1 of x is not supported", lazy, np.array(["a"]))
    fails(TypeError, "lazy: x is a dict, not an array", lazy, {})


def test_large_expressions_are_refused():
    x = lazy(np.ones(3))
    deep, wide = x, x
    for _ in range(lazy_structures.DEPTH):
        deep = deep + 1
    fails(ValueError, "lazy: an expression has at most 64, got 65 operations one inside the other", lambda: deep + 1)
    for _ in range(lazy_structures.ARRAYS - 1):
        wide = wide + np.ones(3)
    fails(ValueError, "lazy: an expression has at most 16, got 17 arrays", lambda: wide + np.ones(3))
    many = [x + i for i in range(lazy_structures.STEPS // 2)]
    while len(many) > 1:
        many = [a + b for a, b in zip(many[::2], many[1::2], strict=True)]
    fails(ValueError, "lazy: an expression has at most 256, got 257 operations", lambda: many[0] + (x - 1))


def test_numpy_and_device_arrays_do_not_mix(backend):
    there = backend.array(np.ones(3, np.float32))
    x = lazy(there)
    if x.context is None:
        assert_bits(evaluate(x + there), np.full(3, 2, np.float32))
        return
    assert (x + 1).context is x.context
    fails(TypeError, "add: arrays of two libraries do not mix", lambda: x + np.ones(3))
    assert (np.float32(2) * x).shape == (3,)
