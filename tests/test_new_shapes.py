"""Calls with new shapes are served by templates, and give what others give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call import launch_cache, recordings
from gpuops.device import execute
from tests.budget import examples
from tests.compare import assert_same, assert_values
from tests.layouts import lay_out

special = pytest.importorskip("scipy.special", reason="SciPy is the reference")

pytestmark = pytest.mark.usefixtures("own_kernels")

#: Calls on two matrices and a mask of the same shape, and what they give.
CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (lambda x, y, m: gpuops.sum(x, 1), lambda x, y, m: np.sum(x, 1)),
    "sum of all": (lambda x, y, m: gpuops.sum(x), lambda x, y, m: np.sum(x)),
    "kept": (lambda x, y, m: gpuops.sum(x, axis=0, keepdims=True), lambda x, y, m: np.sum(x, 0, keepdims=True)),
    "max": (lambda x, y, m: gpuops.max(x, axis=(0,)), lambda x, y, m: np.max(x, axis=0)),
    "masked": (lambda x, y, m: gpuops.sum(x, where=m), lambda x, y, m: np.sum(x, where=m)),
    "argmax": (lambda x, y, m: gpuops.argmax(x, axis=1), lambda x, y, m: np.argmax(x, axis=1)),
    "softmax": (lambda x, y, m: gpuops.softmax(x, axis=1), lambda x, y, m: special.softmax(x, axis=1)),
    "logsumexp": (lambda x, y, m: gpuops.logsumexp(x, axis=0), lambda x, y, m: special.logsumexp(x, axis=0)),
    "where": (lambda x, y, m: gpuops.where(m, x, y), lambda x, y, m: np.where(m, x, y)),
    "scalar": (lambda x, y, m: gpuops.where(m, x, 2.0), lambda x, y, m: np.where(m, x, np.float32(2))),
    "expand": (lambda x, y, m: gpuops.expand(x, (2, *x.shape)), lambda x, y, m: np.broadcast_to(x, (2, *x.shape))),
    "matmul": (lambda x, y, m: gpuops.matmul(x, y.swapaxes(-1, -2)), lambda x, y, m: x @ y.swapaxes(-1, -2)),
}  # fmt: skip


def operands(m: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices of small integers, so that sums are exact, and a mask."""
    random = np.random.default_rng(m * n)
    x, y = (random.integers(-3, 4, (m, n)).astype(np.float32) for _ in range(2))
    return x, y, random.integers(0, 2, (m, n)).astype(bool)


@pytest.fixture
def always_recorded(monkeypatch):
    """Every call that no recording serves is recorded."""
    monkeypatch.setattr(recordings, "EVERY", 1)
    monkeypatch.setattr(recordings, "EARNED", 0)


@pytest.fixture
def served(monkeypatch) -> list[Any]:
    """The results that templates have made. Nothing is known of calls that other tests have made."""
    launch_cache.clear()
    made: list[Any] = []

    class Counted(execute.Template):
        def __call__(self, *args):
            made.append(super().__call__(*args))
            return made[-1]

    monkeypatch.setattr(recordings, "Template", Counted)
    return made


def check(name: str, device: Any, host: tuple[np.ndarray, ...], arrays: list[Any]) -> None:
    """A call on arrays of a device must give what it gives on the host."""
    call, reference = CALLS[name]
    got, right = device.numpy(call(*arrays)), np.asarray(reference(*host))
    assert got.dtype == right.dtype and got.shape == right.shape
    error = 3e-6 if name in ("softmax", "logsumexp") else 0
    np.testing.assert_allclose(got, right, error, error / 3)


@pytest.mark.parametrize("name", CALLS)
@examples(10)
@given(data=st.data())
def test_new_shapes_give_what_they_should(device, always_recorded, name, data):
    for _ in range(6):
        host = operands(data.draw(st.integers(1, 70)), data.draw(st.integers(1, 70)))
        if data.draw(st.booleans()):
            host = tuple(array[:, ::-1] for array in host)
        arrays = device.arrays(*host)
        for _ in range(data.draw(st.sampled_from((1, 1, 3)))):  # and those that come again
            check(name, device, host, arrays)


@pytest.mark.parametrize("name", CALLS)
def test_a_new_shape_is_served_by_a_template_once_its_kind_is_known(device, served, name):
    for rows in range(11, 111):
        CALLS[name][0](*device.arrays(*operands(rows, 24)))
    assert len(served) >= 100 - 7 * recordings.EVERY  # until there are recordings, and where tiles and alignment change


def test_results_in_the_order_of_transposed_arrays_are_served_by_templates(device, always_recorded, served):
    for n in range(5, 45):
        host = np.arange(6 * n * (n + 2), dtype=np.float32).reshape(6, n, n + 2).T
        x = device.array(host)
        total, spread = gpuops.sum(x, axis=2), gpuops.softmax(x, axis=0)
        assert [each.strides for each in (total, spread)] == [(4, 4 * (n + 2)), host.strides]
        np.testing.assert_array_equal(device.numpy(total), host.sum(2))
        np.testing.assert_allclose(device.numpy(spread), special.softmax(host, 0), rtol=1e-5, atol=1e-7)
    assert len(served) >= 50  # of 80: tiles and alignment change with the length


def test_the_second_call_of_a_shape_is_prepared_and_the_third_is_a_hit(device, always_recorded, served, monkeypatch):
    prepared = []
    monkeypatch.setattr("gpuops.call.dispatch.prepare", lambda *a: prepared.append(a) or execute.prepare(*a))
    x = device.arrays(*(np.ones((rows, 24), np.float32) for rows in range(3, 40)))
    for array in x:
        gpuops.sum(array, axis=1)
    before = len(served), len(prepared)
    assert before[0] >= 30 and sum(before) == 37
    for _ in range(3):
        np.testing.assert_array_equal(device.numpy(gpuops.sum(x[-1], axis=1)), np.full(39, 24))
    assert (len(served), len(prepared)) == (before[0], before[1] + 1)


@pytest.mark.parametrize("change", ["out", "dtype", "address", "axis", "initial"])
def test_other_kinds_of_calls_are_not_served_alike(device, always_recorded, change):
    for rows in range(5, 20):
        gpuops.sum(device.array(np.ones((rows, 24), np.float32)), axis=1)
    host = np.arange(21 * 24).reshape(21, 24).astype(np.float64 if change == "dtype" else np.float32)
    x = device.array(host)
    if change == "out":
        out = device.array(np.zeros(21, np.float32))
        got, right = gpuops.sum(x, axis=1, out=out), host.sum(1)
        assert got is out
    elif change == "address":
        got, right = gpuops.sum(x[:, 1:], axis=1), host[:, 1:].sum(1)
    elif change == "axis":
        got, right = gpuops.sum(x, axis=0), host.sum(0)
    elif change == "initial":
        got, right = gpuops.sum(x, axis=1, initial=3), host.sum(1, initial=3)
    else:
        got, right = gpuops.sum(x, axis=1), host.sum(1)
    assert_values(device.numpy(got), right)


#: Changes of the operands that leave sizes and strides such that they pass all guards.
CHANGES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]] = {
    "x begins elsewhere": lambda x, y, m: (lay_out(x, "unaligned"), y, m),
    "y begins elsewhere": lambda x, y, m: (x, lay_out(y, "unaligned"), m),
    "the mask begins elsewhere": lambda x, y, m: (x, y, lay_out(m, "unaligned")),
    "another dtype of x": lambda x, y, m: (x.astype(np.int32), y, m),
    "another dtype of y": lambda x, y, m: (x, y.astype(np.int32), m),
    "more dims": lambda x, y, m: (x[None], y, m),
    "other dims, as many in all": lambda x, y, m: (x[None], y, m[0]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", CALLS)
def test_operands_that_differ_in_more_than_sizes_are_not_served_alike(device, always_recorded, served, name, change):
    for rows in (60, 62, 64):
        host = operands(rows, 32)
        check(name, device, host, device.arrays(*host))
    assert served
    host = CHANGES[change](*operands(80, 32))
    check(name, device, host, device.arrays(*host))


#: Pairs of calls that differ in more than their arrays, and what the second gives.
PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "ops": (
        lambda x: gpuops.sum(x, axis=1), lambda x: gpuops.max(x, axis=1), lambda x: np.max(x, axis=1),
    ),
    "names of options": (
        lambda x: gpuops.sum(x, axis=1), lambda x: gpuops.sum(x, initial=1), lambda x: np.sum(x, initial=1),
    ),
    "lengths of shapes": (
        lambda x: gpuops.expand(x, (2, *x.shape)), lambda x: gpuops.expand(x, (3, 2, *x.shape)),
        lambda x: np.broadcast_to(x, (3, 2, *x.shape)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PAIRS)
def test_calls_that_differ_in_more_than_their_arrays_are_not_served_alike(device, always_recorded, served, what):
    call, other, reference = PAIRS[what]
    for rows in (60, 62, 64):
        call(device.array(operands(rows, 32)[0]))
    assert served
    x = operands(80, 32)[0]
    assert_same(device.numpy(other(device.array(x))), reference(x))


def test_out_that_overlaps_is_never_served_by_a_template(device, always_recorded, served):
    for rows in range(5, 20):
        x = device.array(np.arange(rows * 6, dtype=np.float32).reshape(rows, 6))
        right = np.where(device.numpy(x) > 7, device.numpy(x), np.float32(1))
        got = gpuops.where(device.array(device.numpy(x) > 7), x, 1, out=x)
        np.testing.assert_array_equal(device.numpy(got), right)
    assert not served
