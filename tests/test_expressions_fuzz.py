"""Random expressions on the engines that run kernels: values against NumPy's, and calls that compute them as they read.

Each example compiles a kernel: there are few of them, except in the deep profile.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpuops
from gpuops.definition.program import Step
from gpuops.ops import lazy as expressions
from gpuops.ops.lazy import Lazy
from tests import layouts, test_lazy
from tests.budget import examples
from tests.compare import assert_bits, assert_near, ulp
from tests.test_lazy import Pair, outcome, pairs, without_payloads

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Operations whose last bits are each engine's own: of floats, and others of complex numbers. Integers have exact ones.
FUNCTIONS = {
    "power", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "hypot", "arctan2",
}  # fmt: skip
OF_COMPLEX = {"multiply", "square", "divide", "reciprocal", "absolute", "sign", "sqrt"}
#: Their errors in units in the last place, beside NumPy's; of complex numbers, in those of their absolute value.
ULPS = 8
COMPLEX_ULPS = dict.fromkeys((*FUNCTIONS, *OF_COMPLEX), 16) | {"exp2": 32, "power": 128}
FEW = 50  # about half of which are of new programs
#: Layouts that leave an operand's values as they are.
LAYOUTS = [name for name in layouts.LAYOUTS if name != "broadcast"]


def exact(step: Step) -> bool:
    """Whether every engine gives the bits that NumPy gives."""
    dtype = step.dtypes[0]
    inexact = (step.name in FUNCTIONS and layouts.inexact(dtype)) or (step.name in OF_COMPLEX and dtype.kind == "c")
    return not inexact


def exact_only(x: Pair, function: Any, *more: Pair) -> Pair:
    """As `test_lazy.both`, but the first operand as it is, if the function is not exact."""
    made = both(x, function, *more)
    return made if all(map(exact, made.lazy.program()[0].steps)) else x


both = test_lazy.both


def drawn(data: Any, shape: tuple[int, ...], depth: int, only_exact: bool = True) -> Pair:
    """A random expression of NumPy arrays, and its value."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        if only_exact:
            patch.setattr(test_lazy, "both", exact_only)
        pair: Pair = data.draw(pairs(shape, depth))
    return pair


def moved(data: Any, backend: Any, x: Lazy) -> Lazy:
    """The same expression of arrays on a backend, each in any layout."""
    there = backend.arrays(*[layouts.lay_out(array, data.draw(st.sampled_from(LAYOUTS))) for array in x.arrays])
    copies = {id(array): gpuops.lazy(copy) for array, copy in zip(x.arrays, there)}
    made: dict[int, Lazy] = {}

    def visit(node: Any) -> Any:
        if not isinstance(node, Lazy) or not node.arrays:
            return node
        if not node.args:
            return copies[id(node.arrays[0])]
        if id(node) not in made:
            last = node.structure
            made[id(node)] = expressions.again(last.name, last.dtypes, tuple(map(visit, node.args)))
        return made[id(node)]

    return visit(x)


def shapes(data: Any) -> tuple[int, ...]:
    return data.draw(layouts.shapes(max_dims=3).filter(bool))


@examples(FEW)
@given(data=st.data())
def test_exact_expressions_have_numpys_bits(device, data):
    made, value = drawn(data, shapes(data), data.draw(st.integers(1, 8)))
    assume(made.args)
    got = device.numpy(gpuops.evaluate(moved(data, device, made)))
    assert (made.dtype, made.shape) == (value.dtype, value.shape)
    assert_bits(without_payloads(got), without_payloads(value))


@examples(FEW)
@given(data=st.data())
def test_inexact_operations_are_close_to_numpys(device, data):
    shape = shapes(data)
    name = data.draw(st.sampled_from(sorted(FUNCTIONS | OF_COMPLEX)))
    operands = [drawn(data, shape, data.draw(st.integers(0, 1))) for _ in range(getattr(np, name).nin)]
    with np.errstate(all="ignore"):
        made, value = both(operands[0], getattr(np, name), *operands[1:])
    assume(made is not operands[0].lazy and not exact(made.program()[0].steps[-1]))
    got = device.numpy(gpuops.evaluate(moved(data, device, made)))
    assert (got.dtype, got.shape) == (value.dtype, value.shape)
    assert_close(name, made.structure.dtypes[0], got, value, [each.eager for each in operands])


def assert_close(name: str, dtype: np.dtype, got: np.ndarray, value: np.ndarray, operands: list[np.ndarray]) -> None:
    """Equal up to the rounding of an operation in a dtype.

    Complex numbers are compared where they are, and their operands, finite and normal: see test_ufuncs.py for others.
    """
    if dtype.kind != "c":
        assert_near(got, value, ULPS * ulp(value.dtype, value))
        return
    given = [np.broadcast_to(each, value.shape).astype(dtype) for each in operands]
    wide = [each.astype(np.complex128) for each in given]
    with np.errstate(all="ignore"):
        size = np.abs(value.astype(np.complex128))
        if name in ("multiply", "square"):
            size = np.abs(wide[0] * wide[-1])
        if name == "power":
            size = size * (1 + np.abs(wide[1] * np.log(wide[0])))
        normal = np.isfinite(size) & np.isfinite(got) & np.isfinite(value)
        for parts in (part for each in given for part in (each.real, each.imag)):
            normal &= np.isfinite(parts) & ((parts == 0) | (np.abs(parts) >= np.finfo(parts.dtype).tiny))
        error = COMPLEX_ULPS[name] * ulp(value.dtype, np.where(normal, size, 0))
    assert_near(np.where(normal, got, 0).astype(got.dtype), np.where(normal, value, 0).astype(value.dtype), error)


@examples(FEW // 2)
@given(data=st.data())
def test_calls_give_what_they_give_with_the_value(backend, data):
    x, _ = drawn(data, shapes(data), data.draw(st.integers(1, 8)), only_exact=False)
    assume(x.args)
    function = data.draw(st.sampled_from((gpuops.sum, gpuops.max, gpuops.any, gpuops.argmax)))
    options: dict[str, Any] = {}
    if function is gpuops.argmax:
        options["axis"] = data.draw(st.sampled_from((None, *range(-x.ndim, x.ndim))))
    else:
        options["axis"] = data.draw(layouts.axes(x.ndim))
        if data.draw(st.booleans()):
            options["where"] = backend.array(data.draw(layouts.masks(x.shape)))
            options |= {"initial": 1} if function is gpuops.max else {}
    there = moved(data, backend, x)
    expected = outcome(lambda: function(gpuops.evaluate(there), **options))
    got = outcome(lambda: function(there, **options))
    if isinstance(expected, type):
        assert got is expected
        return
    assert got.strides == expected.strides
    assert_bits(without_payloads(backend.numpy(got)), without_payloads(backend.numpy(expected)))
