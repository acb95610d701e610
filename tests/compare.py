"""Comparisons of results with their references."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests import layouts
from tests.layouts import HALVES, inexact, wide


def assert_same(got: np.ndarray, expected: Any) -> None:
    """The same dtype, shape and values. NaNs are equal; so are complex numbers with a NaN component."""
    expected = np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert_values(got, expected)


def assert_values(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal values; NaNs are equal."""
    equal = got == expected
    if inexact(got.dtype):
        equal |= (got != got) & (expected != expected)
    assert equal.all(), report(got, expected, ~equal)


def assert_bits(got: np.ndarray, expected: Any) -> None:
    """The same dtype, shape and bits."""
    expected = np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.tobytes() == expected.tobytes(), f"got\n{got}\nexpected\n{expected}"


def assert_near(got: np.ndarray, exact: np.ndarray, error: Any) -> None:
    """``got`` is the exact value within ``error``, plus one unit in the last place for rounding to its dtype."""
    assert got.shape == exact.shape
    if got.dtype.kind == "c":
        assert_near(got.real, exact.real, error)
        assert_near(got.imag, exact.imag, error)
        return
    value = got.astype(np.float64)
    with np.errstate(all="ignore"):
        bound = error + ulp(got.dtype, exact)
        rounded = exact.astype(got.dtype).astype(np.float64)  # inf where the exact value overflows
        near = (np.abs(value - exact) <= bound) | (value == rounded)
    near |= np.isnan(value) & np.isnan(exact)
    near &= np.isnan(value) == np.isnan(exact)
    assert near.all(), report(got, exact, ~near)


def ulp(dtype: np.dtype, value: np.ndarray) -> np.ndarray:
    """At most the distance from a value to its neighbour in a dtype (and at least half of it)."""
    info = ml_dtypes.finfo(dtype)
    size = np.where(np.isfinite(value), np.abs(value), 0)
    return float(info.eps) * np.maximum(size, float(info.smallest_normal))


def accumulator_eps(dtype: np.dtype) -> float:
    """The precision in which a dtype accumulates."""
    return float(ml_dtypes.finfo(np.float32 if dtype in HALVES else dtype).eps)


def report(got: np.ndarray, expected: np.ndarray, wrong: np.ndarray) -> str:
    """The first few elements that differ."""
    lines = [f"{wrong.sum()} of {wrong.size} elements differ"]
    for at in np.argwhere(wrong)[:5]:
        place = tuple(map(int, at))
        lines.append(f"  {place}: got {got[place]!r}, expected {expected[place]!r}")
    return "\n".join(lines)


def widened(x: np.ndarray) -> np.ndarray:
    """The values in the dtype of the reference."""
    return x.astype(wide(x.dtype))


def run_on(backend: Any, function: Any, x: np.ndarray, out: np.ndarray | None, options: dict[str, Any]) -> np.ndarray:
    """A function's result on a backend. It must return ``out`` and leave the memory around it unchanged."""
    hosts = {name: value for name, value in (options | {"x": x, "out": out}).items() if isinstance(value, np.ndarray)}
    if out is not None:
        hosts["memory"] = out.base
    there = dict(zip(hosts, backend.arrays(*hosts.values()), strict=True))
    memory = there.pop("memory", None)
    result = function(there.pop("x"), **(options | there))
    got = backend.numpy(result)
    if out is not None:
        assert result is there["out"]
        assert backend.fetch(memory).tobytes() == layouts.memory_after(out.base, out, got)
    return got
