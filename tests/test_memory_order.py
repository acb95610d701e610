"""Results of reductions lie in memory as the operand does: NumPy's order K, on every path."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call.dispatch import describe
from gpuops.definition.records import MEASURES, REDUCTIONS, SEARCHES, WITH_INDEX
from gpuops.plan import geometry
from tests import layouts
from tests.budget import examples, pairs
from tests.conftest import Cpu
from tests.ops import initial

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Reductions to one result or two, along one axis.
OPS: dict[str, Any] = {
    **{name: getattr(gpuops, name) for name in (*REDUCTIONS, *MEASURES, *SEARCHES, *WITH_INDEX)},
    **{f"norm {order}": partial(gpuops.vector_norm, ord=order) for order in (2, 0, np.inf, 3)},
    "average": gpuops.average,
    "weighted average": lambda x, **options: gpuops.average(x, weights=x, returned=True, **options),
    "logsumexp": gpuops.logsumexp,
    "signed logsumexp": lambda x, **options: gpuops.logsumexp(x, b=2.0, return_sign=True, **options),
}
#: Views of C-ordered arrays: what is done to them, by name.
VIEWS: dict[str, Any] = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "rotated": lambda x: x.transpose(1, 2, 0),
    "backwards": lambda x: x.transpose(2, 0, 1)[::-1, :, ::-1],
    "with gaps": lambda x: x.T[:, ::2],
    "repeated": lambda x: np.broadcast_to(x.T[:, :, :1], x.T.shape),
}


def moving(array: Any) -> list[int]:
    """An array's strides in items along dims longer than 1."""
    return [stride // array.dtype.itemsize for n, stride in zip(array.shape, array.strides, strict=True) if n > 1]


def check(backend: Any, function: Any, x: np.ndarray, **options: Any) -> None:
    """Each result must lie as NumPy's sum does."""
    for axis in (0, 1, 2):
        for keepdims in (False, True):
            there = {k: backend.array(v) if type(v) is np.ndarray else v for k, v in options.items()}
            found = function(backend.array(x), axis=axis, keepdims=keepdims, **there)
            right = np.add.reduce(x, axis, keepdims=keepdims)
            for result in found if isinstance(found, tuple) else (found,):
                assert moving(result) == moving(right), (axis, keepdims)


@pytest.mark.parametrize("op,view", pairs(OPS, ["F"], [name for name in VIEWS if name != "F"]))
def test_small_results(backend, op, view):
    check(backend, OPS[op], VIEWS[view](layouts.sample((6, 4, 10), "f4", special=False)))


@pytest.mark.parametrize("dtype", ["f2", "c8", "i1", layouts.BFLOAT16], ids=str)
@pytest.mark.parametrize("op", ["sum", "max", "mean", "var", "argmax", "nansum", "any", "sum_of_squares"])
def test_results_of_other_dtypes(backend, op, dtype):
    check(backend, OPS[op], VIEWS["F"](layouts.sample((3, 4, 5), dtype, special=False)))


@pytest.mark.parametrize("op", sorted({*REDUCTIONS, "sum_of_squares", "mean_var", "logsumexp"}))
def test_a_mask_of_another_order_changes_nothing(backend, op):
    x = layouts.sample((6, 4, 10), "f4", special=False)
    check(backend, OPS[op], x.T, where=np.ones(x.T.shape, bool), **initial(op))
    check(backend, OPS[op], x, where=np.ones(x.T.shape, bool).T, **initial(op))


@pytest.mark.parametrize("op", ["sum", "max", "mean", "var", "nanmean", "argmax", "max_with_index", "logsumexp"])
def test_results_of_blocks_of_the_host(op):
    x = layouts.sample((30, 200, 210), "f4", special=False)
    for view in ("F", "rotated"):
        check(Cpu(), OPS[op], VIEWS[view](x))


@examples(60)
@given(data=st.data())
def test_memory_order_is_that_of_numpys_iterators(data):
    shape = data.draw(layouts.shapes(max_dims=5))
    x = data.draw(layouts.arrays(shape, np.dtype("f4")))
    axis = data.draw(st.sampled_from([*range(x.ndim), ()])) if x.ndim else ()
    for keepdims in (False, True):
        result = describe(gpuops.sum, x, axis=axis, keepdims=keepdims).results[0]
        right = np.add.reduce(x, axis, keepdims=keepdims)
        assert not right.size or moving(result) == moving(right)
    assert sorted(geometry.memory_order(x.shape, x.strides)) == [*range(x.ndim)]

