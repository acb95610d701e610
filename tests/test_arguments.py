"""Arguments in every form that NumPy accepts, and the errors for invalid ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpuops
from tests.compare import assert_same
from tests.ops import REDUCTIONS, ROWWISE, SOFTMAXES, SPREADS, WITH_AXIS

special = pytest.importorskip("scipy.special", reason="SciPy is the reference")

X = np.arange(20, dtype="f4").reshape(4, 5) % 7


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_of_0d_arrays_take_axis_0(backend, op):
    x, function = backend.array(np.array(3.0)), getattr(gpuops, op)
    for axis in (None, 0, -1, ()):
        for keepdims in (False, True):
            got = backend.numpy(function(x, axis=axis, keepdims=keepdims))
            assert got.shape == () and got == getattr(np, op)(3.0)


def test_softmax_of_0d_arrays(backend):
    x = backend.array(np.array(3.0))
    for axis in (0, -1):
        for op in SOFTMAXES:
            assert_same(backend.numpy(getattr(gpuops, op)(x, axis)), getattr(special, op)(np.array(3.0), axis))


def test_numpy_parameter_names_are_accepted(backend):
    x, y = backend.arrays(X, X.T.copy())
    for op in REDUCTIONS:
        got = backend.numpy(getattr(gpuops, op)(a=x, axis=1, keepdims=True))
        np.testing.assert_allclose(got, getattr(np, op)(a=X, axis=1, keepdims=True), rtol=1e-6 * (op in SPREADS))
    assert_same(backend.numpy(gpuops.dot(a=x, b=y)), np.dot(a=X, b=X.T))
    assert gpuops.broadcast_to(array=x, shape=(2, 4, 5)).shape == (2, 4, 5)
    assert backend.numpy(gpuops.logsumexp(a=x, axis=0)).shape == (5,)


@pytest.mark.parametrize("op", WITH_AXIS)
def test_pytorch_parameter_names_get_a_hint(backend, op):
    for given, meant in (("dim", "axis"), ("keepdim", "keepdims")):
        if op in ROWWISE and given == "keepdim":
            continue
        message = f"{op}: {given} is not a parameter; use {meant}"
        with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
            getattr(gpuops, op)(backend.array(X), **{given: 1})


@pytest.mark.parametrize("call, message", [
    (lambda x: gpuops.softmax(x, temperature=2), "softmax: temperature is not a parameter; use scale=1 / temperature"),
    (lambda x: gpuops.var(x, unbiased=True), "var: unbiased is not a parameter; use ddof=1 if unbiased else 0"),
    (lambda x: gpuops.sum(input=x), "sum: input is not a parameter; use a"),
    (lambda x: gpuops.softmax(logits=x), "softmax: logits is not a parameter; use x"),
    (lambda x: gpuops.dot(x, other=x), "dot: other is not a parameter; use b"),
    (lambda x: gpuops.dot(input=x, tensor=x), "dot: input is not a parameter; use a"),
    (lambda x: gpuops.matmul(x, x2=x), "matmul: x2 is not a parameter; pass b by position"),
    (lambda x: gpuops.where(x, input=x, other=x), "where: input is not a parameter; pass x by position"),
    (lambda x: gpuops.sum(x, keep_dims=True), "sum: keep_dims is not a parameter; use keepdims"),
    (lambda x: gpuops.expand(x, size=(4, 5)), "expand: size is not a parameter; use shape"),
    (lambda x: gpuops.vector_norm(x, p=3), "vector_norm: p is not a parameter; use ord"),
    (lambda x: gpuops.softmax(x, mask=x), "softmax: mask is not a parameter; use where"),
])  # fmt: skip
def test_other_libraries_parameter_names_get_a_hint(backend, call, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        call(backend.array(X))


def test_names_that_mean_no_parameter_of_the_function_get_no_hint(backend):
    x = backend.array(X)
    for call in (lambda: gpuops.sum(x, temperature=2), lambda: gpuops.sum(x, input=x), lambda: gpuops.dot(x, x, dim=0)):
        with pytest.raises(TypeError, match=r"got an unexpected keyword argument '(temperature|input|dim)'$"):
            call()


def test_lengths_given_as_several_arguments_get_a_hint_at_a_tuple(backend):
    x = backend.array(X)
    for call, message in (
        (lambda: gpuops.expand(x, 4, 5), "expand: shape is one argument: pass the tuple (4, 5)"),
        (lambda: gpuops.expand(x, 2, 4, 5), "expand: shape is one argument: pass the tuple (2, 4, 5)"),
        (lambda: gpuops.broadcast_to(x, 2, 4, 5), "broadcast_to: shape is one argument: pass the tuple (2, 4, 5)"),
    ):
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            call()


def test_keyword_only_parameters_are_not_taken_by_position(backend):
    x, out = backend.array(X), backend.array(np.full((4, 5), 7, "f4"))
    for call in (lambda: gpuops.expand(x, (4, 5), out), lambda: gpuops.where(x, x, x, out)):
        with pytest.raises(TypeError, match=r"takes .*positional arguments but \d (were|was) given"):
            call()
    assert (backend.numpy(out) == 7).all()


@pytest.mark.parametrize("op", ["max", "argmax", "any", "sum", "mean", "var"])
def test_keepdims_in_the_place_of_another_parameter_gets_a_hint(backend, op):
    for keepdims in (True, False):
        message = rf"^{op}: (out|dtype) is {keepdims}; write keepdims={keepdims} for keepdims$"
        with pytest.raises(TypeError, match=message):
            getattr(gpuops, op)(backend.array(X), 1, keepdims)


def test_lists_and_scalars_as_masks_are_cast_to_bool():
    """Elements of other sequences count by their truth value."""
    for mask in ([True, False, True, False, True], [1, 0, 2, 0, 0.5], 1, 0, (0, 0, 1, 1, 1), np.True_):
        for op in ("sum", "any", "prod"):
            expected = getattr(np, op)(X, 1, where=np.asarray(mask, bool))
            assert_same(np.asarray(getattr(gpuops, op)(X, 1, where=mask)), expected)
        expected = gpuops.softmax(X, 1, where=np.asarray(mask, bool))
        assert_same(gpuops.softmax(X, 1, where=mask), expected)


def test_scalar_masks_work_with_device_arrays(device):
    x = device.array(X)
    for mask in (1, 0, False, np.True_, np.array(True)):
        assert_same(device.numpy(gpuops.sum(x, 1, where=mask)), np.sum(X, 1, where=bool(mask)))


@pytest.mark.parametrize("call", [
    lambda x: gpuops.sum(None), lambda x: gpuops.softmax(None), lambda x: gpuops.matmul(x, None),
    lambda x: gpuops.dot(None, x), lambda x: gpuops.expand(None, 3), lambda x: gpuops.broadcast_to(None, 3),
    lambda x: gpuops.where(None, x, x),
])  # fmt: skip
def test_none_as_an_operand_raises(backend, call):
    with pytest.raises(TypeError, match=r"^\w+: \w+ is None; gpuops takes arrays and scalars"):
        call(backend.array(X))


@pytest.mark.parametrize("out", [np.float32, np.dtype("f4"), memoryview(bytearray(20)), [0.0] * 5, 3.0], ids=type)
def test_out_must_be_an_array(backend, out):
    for call in (lambda x: gpuops.sum(x, 0, out=out), lambda x: gpuops.softmax(x, out=out)):
        with pytest.raises(TypeError, match=r"^\w+: (out is a|NumPy and CuPy arrays do not mix)"):
            call(backend.array(X))


@pytest.mark.parametrize("dtype", ["i4,,", "foo", "f4,", 3, [("a",)], b"\xff"], ids=repr)
def test_invalid_dtypes_raise(backend, dtype):
    for op in ("sum", "softmax"):
        with pytest.raises(TypeError, match=f"^{op}: dtype .* (is not understood|is not supported)"):
            getattr(gpuops, op)(backend.array(X), dtype=dtype)


def test_byte_swapped_arrays_give_native_results():
    x = X.astype(">f4")
    results = [getattr(gpuops, op)(x, 1) for op in WITH_AXIS]
    results += [gpuops.where(x > 1, x, x), gpuops.where(x > 1, x, 0), gpuops.expand(x, (2, 4, 5))]
    results += [gpuops.matmul(x, x.T), gpuops.dot(x, x.T), gpuops.dot(x, 2.0), gpuops.max(x), gpuops.sum(x, ())]
    for result in results:
        assert result.dtype.isnative
    assert_same(gpuops.max(x, 1), np.max(X, 1))
    out = np.zeros(4, ">f4")
    assert gpuops.sum(x, 1, out=out) is out and (out == X.sum(1)).all()


def test_sums_are_negative_zero_only_if_initial_is(backend):
    def sign(value):
        return np.signbit(backend.numpy(value)).all()

    for dtype in ("f4", "f8", "f2", "c8", "c16"):
        x = backend.array(-np.zeros((3, 40), dtype))
        for axis in (None, 0, 1):
            real = lambda value: backend.numpy(value).real  # noqa: E731
            assert np.signbit(real(gpuops.sum(x, axis, initial=-0.0))).all()
            assert not np.signbit(real(gpuops.sum(x, axis))).any()
            assert not np.signbit(real(gpuops.sum(x, axis, initial=0.0))).any()
            assert not np.signbit(real(gpuops.mean(x, axis))).any()
    x = backend.array(-np.zeros((3, 40)))
    nothing = backend.array(np.zeros((0, 3)))
    assert sign(gpuops.sum(nothing, 0, initial=-0.0)) and not sign(gpuops.sum(nothing, 0))
    mask = backend.array(np.zeros((3, 40), bool))
    assert sign(gpuops.sum(x, 1, initial=-0.0, where=mask)) and not sign(gpuops.sum(x, 1, where=mask))


@pytest.mark.parametrize("strategy", gpuops.strategies("sum"))
def test_negative_zero_sums_by_every_strategy(device, strategy):
    x = device.array(-np.zeros((300, 40), "f4"))
    for axis in (None, 0, 1):
        assert np.signbit(device.numpy(gpuops.sum(x, axis, initial=-0.0, strategy=strategy))).all()
        assert not np.signbit(device.numpy(gpuops.sum(x, axis, strategy=strategy))).any()


def test_split_every_applies_to_dask_arrays_only():
    da = pytest.importorskip("dask.array", reason="chunks are Dask's")
    x = da.from_array(np.arange(64.0), chunks=1)
    narrow, wide = (gpuops.sum(x, split_every=few) for few in (2, 64))
    assert narrow.compute() == wide.compute() == 2016
    assert len(narrow.__dask_graph__()) > len(wide.__dask_graph__())
    np.testing.assert_allclose(gpuops.softmax(x, split_every=4).compute(), gpuops.softmax(np.arange(64.0)))
    minus = da.from_array(-np.zeros(8), chunks=2)
    assert np.signbit(gpuops.sum(minus, initial=-0.0).compute()) and not np.signbit(gpuops.sum(minus).compute())
    with pytest.raises(TypeError, match="split_every"):
        gpuops.sum(np.ones(3), split_every=2)
