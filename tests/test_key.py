"""The kind of a call: what of its key tells calls apart whose sizes differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.call import key, launch_cache, libraries, recordings
from gpuops.plan.work import Machine
from tests import emulated

Kinds = Callable[..., list[recordings.Kind | None]]


def numbers(rows: int = 8, dtype: str = "f4") -> np.ndarray:
    """A matrix of small integers with 28 columns."""
    return (np.arange(rows * 28) * 7 % 11).reshape(rows, 28).astype(dtype)


def matrix(device: Any, rows: int = 8, dtype: str = "f4") -> Any:
    """The same on a device, aligned."""
    return device.array(numbers(rows, dtype))


@pytest.fixture
def kinds(monkeypatch) -> Kinds:
    """The kinds of calls, which are made."""
    found: list[Any] = []
    monkeypatch.setattr(launch_cache, "missed", lambda *a: found.append(key.missed(*a)) or found[-1])

    def kinds(*calls: Callable[[], Any]) -> list[recordings.Kind | None]:
        found.clear()
        for call in calls:
            launch_cache.entries.cache_clear()
            call()
        return [known.kind for known in found]

    return kinds


#: Calls on a matrix that differ in one fact, of which each is a kind of its own.
APART: dict[str, Callable[[Any, Any], list[Callable[[], Any]]]] = {
    "the operation": lambda d, x: [lambda: gpuops.sum(x), lambda: gpuops.max(x)],
    "what is given by position": lambda d, x: [lambda: gpuops.sum(x, 1), lambda: gpuops.sum(x, axis=1)],
    "names": lambda d, x: [lambda: gpuops.sum(x, axis=1), lambda: gpuops.sum(x, initial=1)],
    "alignment": lambda d, x: [lambda k=k: gpuops.sum(x[:, k : k + 24], 1) for k in range(4)],
    "alignment of the mask": lambda d, x: [
        lambda k=k: gpuops.where((x > 3)[:, k : k + 12], x[:, :12], 0) for k in range(3)
    ],
    "the number of dims": lambda d, x: [lambda: gpuops.sum(x), lambda: gpuops.sum(x[None]), lambda: gpuops.sum(x[0])],
    "which operand has more dims": lambda d, x: [
        lambda: gpuops.where((x > 3)[None], x, 0), lambda: gpuops.where(x > 3, x[None], 0),
    ],
    "the dtype": lambda d, x: [
        lambda t=t: gpuops.sum(x, 1) if t is None else gpuops.sum(matrix(d, 8, t), 1) for t in (None, "i4", "u4", "f8")
    ],
    "the value of an option": lambda d, x: [lambda a=a: gpuops.sum(x, a) for a in (0, 1, -1, None, (1,), (0, 1))],
    "the type of an option": lambda d, x: [
        lambda i=i: gpuops.sum(x, initial=i) for i in (1, 1.0, True, np.float32(1), np.int8(1))
    ],
    "the sign of zero": lambda d, x: [lambda i=i: gpuops.sum(x, initial=i) for i in (0.0, -0.0)],
    "an operand's number": lambda d, x: [lambda i=i: gpuops.where(x, x, i) for i in (1, 2, 1.0)],
    "an option that is a dtype": lambda d, x: [
        lambda t=t: gpuops.sum(x, dtype=t) for t in (np.dtype("f4"), np.dtype("f8"))
    ],
    "the length of a shape": lambda d, x: [lambda s=s: gpuops.expand(x, (*s, 8, 28)) for s in ((), (2,), (2, 3))],
    "which arrays share an address": lambda d, x: [
        lambda: gpuops.softmax(x, axis=1, out=x), lambda: gpuops.softmax(x, axis=1, out=matrix(d)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("fact", APART)
def test_a_fact_makes_another_kind(device, kinds, fact):
    x = matrix(device)
    found = kinds(*APART[fact](device, x))
    assert None not in found
    assert len({*map(id, found)}) == len(found)


def test_sizes_and_strides_make_no_other_kind(device, kinds):
    x = matrix(device)
    calls = [lambda y=y: gpuops.sum(y, 0) for y in (x, x[:4], x[::2], x.T, x[:, :8], x[:0], x[::-1][:, ::-1][1:])]
    assert len({*map(id, kinds(*calls[:-1]))}) == 1
    shapes = [lambda s=s: gpuops.expand(x, s) for s in ((2, 8, 28), (3, 8, 28))]
    assert len({*map(id, kinds(*shapes))}) == 1


#: Calls on a matrix and a device's array without dims: their keys do not tell all that decides them.
UNKNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "an array of the host": lambda x, n: gpuops.sum(np.ones((4, 28), "f4"), 0),
    "an axis of the host": lambda x, n: gpuops.sum(x, np.array(1)),
    "a number of the host": lambda x, n: gpuops.where(x > 3, x, np.array(1.5, "f4")),
    "a number of the device": lambda x, n: gpuops.sum(x, initial=n),
    "a list": lambda x, n: gpuops.expand(x, [2, 8, 28]),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_calls_whose_key_does_not_tell_all_have_no_kind(device, kinds, what):
    x, number = matrix(device), device.array(np.array(2.0))
    assert not any(kinds(lambda: UNKNOWN[what](x, number)))


@pytest.mark.parametrize("call", [
    lambda x: gpuops.where(x > 3, x, "text"), lambda x: gpuops.where(x > 3, x, (1, 2)),
    lambda x: gpuops.sum(x, 1, out=np.float32(3)),
], ids=["text", "tuple", "out"])  # fmt: skip
def test_operands_that_are_no_arrays_raise_beside_recorded_calls(device, kinds, call):
    x = matrix(device)

    def refused() -> None:
        with pytest.raises(TypeError, match="not an array|do not mix"):
            call(x)

    assert not any(kinds(refused))


def test_calls_in_a_capture_have_no_kind(emulation, kinds, monkeypatch):
    monkeypatch.setattr(emulated.DEVICE, "capturing", lambda: True)
    x = emulated.DEVICE.from_host(numbers())
    assert not any(kinds(lambda: gpuops.sum(x, 1)))


def test_what_the_device_can_do_makes_another_kind(emulation, kinds, monkeypatch):
    x = emulated.DEVICE.from_host(np.ones((8, 28), np.float32))

    def reduced() -> None:
        monkeypatch.setattr(emulated.DEVICE, "machine", Machine(4))
        gpuops.sum(x, 1)

    first, second = kinds(lambda: gpuops.sum(x, 1), reduced)
    assert first is not second


class There(emulated.EmulatedArray):
    """An array of a second device."""

    @property
    def data(self):
        return SimpleNamespace(ptr=emulated.Address.of(self), device_id=2)


class SecondDevice(emulated.EmulatedDevice):
    """Another device like the first."""

    def empty(self, shape, dtype, strides=None):
        return super().empty(shape, dtype, strides).view(There)


@pytest.fixture
def second_device(emulation, monkeypatch) -> Iterator[SecondDevice]:
    device = SecondDevice()
    monkeypatch.setitem(libraries.CONTEXTS, There, lambda array: device)
    libraries.ARRAYS.add(There)
    yield device
    libraries.ARRAYS.remove(There)


@pytest.fixture
def always_recorded(monkeypatch):
    """Every call that no recording serves is recorded."""
    monkeypatch.setattr(recordings, "EVERY", 1)
    monkeypatch.setattr(recordings, "EARNED", 0)


def test_new_shapes_are_made_on_their_own_device(second_device, always_recorded):
    for rows in range(5, 15):
        for device in (emulated.DEVICE, second_device):
            x = device.from_host(np.full((rows, 24), rows, np.float32))
            for _ in range(3):
                total = gpuops.sum(x, axis=1)
                assert type(total) is type(x)
                np.testing.assert_array_equal(np.array(total), np.full(rows, 24 * rows))


def test_arrays_of_two_devices_have_no_kind(second_device, kinds):
    x, y = (device.from_host(np.ones((8, 28), np.float32)) for device in (emulated.DEVICE, second_device))

    def call() -> None:
        with pytest.raises(ValueError, match="is on emulated, y is on"):
            gpuops.where(x, x, y)

    assert kinds(call) == [None]


def test_out_that_begins_elsewhere_is_not_written_as_in_place(device, always_recorded):
    for rows in range(8, 12):
        x = matrix(device, rows)
        right = gpuops.softmax(numbers(rows), axis=1)
        np.testing.assert_allclose(device.numpy(gpuops.softmax(x, axis=1, out=x)), right, 1e-5)
        memory = matrix(device, rows + 4)
        for operand, out in ((memory[4:], memory[:-4]), (memory[:-4], memory[4:])):
            right = gpuops.softmax(device.numpy(operand), axis=1)
            np.testing.assert_allclose(device.numpy(gpuops.softmax(operand, axis=1, out=out)), right, 1e-5)


def test_out_that_overlaps_in_some_calls_only_is_described_anew(device, always_recorded):
    for start in (100, 40, 100, 40):  # apart, over part of x
        memory = matrix(device, 200)
        operand, out = memory[:100], memory[start : start + 100]
        right = gpuops.softmax(device.numpy(operand), axis=1)
        np.testing.assert_allclose(device.numpy(gpuops.softmax(operand, axis=1, out=out)), right, 1e-5)


def test_threads_share_kinds(device, always_recorded):
    """Also arrays of one key whose strides differ, along a dim of length 1."""
    whole = matrix(device, 60)
    arrays = [y for rows in range(1, 40) for y in (whole[:rows], whole[:1][:, :rows % 5 + 3], whole[rows : rows + 1])]
    right = [device.numpy(y).sum(1) for y in arrays]
    for _ in range(2):
        launch_cache.clear()
        with ThreadPoolExecutor(4) as pool:
            found = [*pool.map(lambda y: gpuops.sum(y, axis=1), arrays * 2)]
        for got, expected in zip(found, right * 2, strict=True):
            np.testing.assert_array_equal(device.numpy(got), expected)
