"""Comparisons of results with their references."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import layouts
from tests.layouts import HALVES, inexact, wide

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")


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


def assert_near(got: np.ndarray, exact: np.ndarray, error: Any, infinities: bool = True) -> None:
    """``got`` is the exact value within ``error``, plus one unit in the last place for rounding to its dtype.

    Without ``infinities``, any complex numbers that are not finite are equal: in a product of complex infinities, the
    order of operations decides which component is NaN.
    """
    assert got.shape == exact.shape
    if got.dtype.kind == "c":
        if not infinities:
            got, exact = (np.where(np.isfinite(x), x, np.nan) for x in (got, exact))
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
    return float(info.eps) * np.maximum(magnitude(value), float(info.smallest_normal))


def magnitude(x: Any) -> np.ndarray:
    """Absolute values, 0 where not finite."""
    return np.where(np.isfinite(x), np.abs(x), 0)


def accumulator(dtype: np.dtype) -> np.dtype:
    """The dtype in which a dtype accumulates."""
    return np.dtype(np.float32) if dtype in HALVES else dtype


def accumulator_eps(dtype: np.dtype) -> float:
    """The precision in which a dtype accumulates."""
    return float(ml_dtypes.finfo(accumulator(dtype)).eps)


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


def run(
    backend: Any, function: Callable[..., Any], *operands: Any, out: np.ndarray | None = None, **options: Any
) -> np.ndarray:
    """A function's result on a backend. It must return ``out`` and leave the memory around it unchanged."""
    given = [*operands, *options.values(), *(() if out is None else (out, out.base))]
    copies = iter(backend.arrays(*(value for value in given if type(value) is np.ndarray)))
    there = [next(copies) if type(value) is np.ndarray else value for value in given]
    operands, options = there[: len(operands)], dict(zip(options, there[len(operands) :]))
    if out is None:
        return backend.numpy(function(*operands, **options))
    target, memory = there[-2:]
    result = function(*operands, out=target, **options)
    got = backend.numpy(result)
    assert result is target
    assert backend.fetch(memory).tobytes() == layouts.memory_after(out.base, out, got)
    return got


def assert_repeatable(backend: Any, function: Callable[..., Any], *operands: np.ndarray, **options: Any) -> None:
    """A second call on the same arrays gives the same bits."""
    there = backend.arrays(*operands)
    first, second = (backend.numpy(function(*there, **options)) for _ in range(2))
    assert_bits(first, second)


def fails(kind: type[Exception], message: str, function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """The call raises an error that begins with the message, and ``out`` keeps its bits."""
    out = options.get("out")
    content = getattr(out, "tobytes", out.__repr__)
    before = content()
    with pytest.raises(kind, match="^" + re.escape(message)):
        function(*args, **options)
    assert content() == before
