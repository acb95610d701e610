"""Programs on NumPy arrays: compiled loops, and results that reductions compute as they read them, change no bit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops import lazy
from gpuops.host import exact_engines, few_sums, program_loops, program_operand, programs, reduce, sums
from gpuops.host.program_loops import has_loop, looked_at
from tests.compare import assert_bits
from tests.host_blocks import ENGINES, computed_by, settings
from tests.layouts import sample


@contextmanager
def small_loops(count: int = 2, block: int = 64) -> Iterator[list[bool]]:
    """Loops are compiled at once, and compute small blocks. Gives what each of their calls returns."""
    loops = pytest.importorskip("gpuops.host.compiled_programs", reason="needs Numba")
    found: list[bool] = []

    def call(*args: Any) -> bool:
        found.append(own(*args))
        return found[-1]

    own = loops.call
    with pytest.MonkeyPatch.context() as patch, settings(programs, count, BLOCK=block):
        patch.setattr(program_loops, "WORTH", 0)
        patch.setattr(loops, "call", call)
        loops.loop.cache_clear()
        yield found
    loops.loop.cache_clear()


def values(dtype: str, seed: int, shape: tuple[int, ...] = (20, 50)) -> np.ndarray:
    """Finite numbers of all sizes that a dtype has, and zeros of both signs."""
    random, kind = np.random.default_rng(seed), np.dtype(dtype)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return random.integers(ends.min, ends.max, shape, kind, endpoint=True)
    x = random.standard_normal(shape)
    x.flat[::7], x.flat[3::5] = 0.0, -0.0
    return x.astype(kind) if kind.kind == "f" else x > 0


#: Expressions of two arrays of one dtype.
OF_NUMBERS = {
    "arithmetic": lambda a, b: (a - b) * a + b, "squares": lambda a, b: (a - b) ** 2,
    "choice": lambda a, b: np.where(a > b, a, -b),
    "signs": lambda a, b: abs(-a) + np.positive(b), "clip": lambda a, b: np.clip(a, b, b),
    "least": lambda a, b: np.minimum(a, b), "greatest": lambda a, b: np.maximum(b, a),
    "truths": lambda a, b: (a == b) | ~((a <= b) & np.logical_not(a)) ^ np.logical_xor(a, b),
    "and, or": lambda a, b: np.logical_and(a, b) == np.logical_or(a < b, a != b),
    "casts": lambda a, b: (a > b).astype("u1") - a.astype(bool),
}  # fmt: skip
OF_FLOATS = {
    "quotient": lambda a, b: a / (b + 3) - 1 / (abs(a) + 1), "root": lambda a, b: np.sqrt(abs(a)) * b,
    "contraction": lambda a, b: a * b + a,
    "tests": lambda a, b: np.isfinite(a) & ~np.isnan(b) & ~np.isinf(a), "widening": lambda a, b: a.astype("f8") * 3 - b,
    "narrowing": lambda a, b: (a * 3).astype("f4") + b.astype("f4"),
}  # fmt: skip
OF_INTEGERS = {"bits": lambda a, b: (a & b) | ~(a ^ b), "to floats": lambda a, b: a.astype("f4") + b * 1.5}
CASES = [
    *((dtype, name, OF_NUMBERS[name]) for dtype in ("f4", "f8", "i1", "u4", "i8", "u8") for name in OF_NUMBERS),
    *((dtype, name, OF_FLOATS[name]) for dtype in ("f4", "f8") for name in OF_FLOATS),
    *((dtype, name, OF_INTEGERS[name]) for dtype in ("i2", "u8") for name in OF_INTEGERS),
    ("?", "truths", OF_NUMBERS["truths"]), ("?", "choice", lambda a, b: np.where(a, a > b, b)),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "name", "function"), CASES, ids=[f"{dtype}-{name}" for dtype, name, _ in CASES])
def test_loops_have_numpys_bits(dtype, name, function):
    x, y = values(dtype, 1), values(dtype, 2)
    y = np.where(y == 0, np.array(-1).astype(dtype), y) if name == "greatest" else y  # (which zero depends on layouts)
    with small_loops() as called:
        got = gpuops.evaluate(function(lazy(x), lazy(y)))
    assert called, "no loop has computed it"
    assert all(called), "a loop has computed it"
    assert_bits(got, function(x, y))


LAYOUTS = {
    "same": lambda x: x, "row": lambda x: x[0], "column": lambda x: x[:, :1].copy(), "one": lambda x: x[:1, :1],
    "reversed": lambda x: x[::-1, ::-1], "fortran": np.asfortranarray, "strided": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "scalar": lambda x: x[0, 0],
}  # fmt: skip


@pytest.mark.parametrize("way", LAYOUTS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block", [7, 64, 2**17 - 1])
def test_loops_take_operands_in_any_way(way, order, block):
    x, y = np.asarray(values("f4", 1), order=order), LAYOUTS[way](values("f4", 2))
    with small_loops(block=block) as called:
        if block > x.size:
            programs.BLOCK = 100  # rows of more than one block's elements
        got = gpuops.evaluate((lazy(x) - y) * 2)
    assert_bits(got, (x - y) * 2)
    assert got.strides == ((x - y) * 2).strides
    assert called
    assert any(called) or way in ("reversed", "strided") or (way, order) in (("same", "F"), ("fortran", "C"))


def test_columns_of_matrices_are_copied():
    x, y = values("f4", 1, (6, 400)), values("f4", 2, (6, 400))
    with small_loops(block=1000) as called:
        assert_bits(gpuops.evaluate(lazy(x) - y[:, :1]), x - y[:, :1])
    assert len(called) > 1
    assert all(called)


def test_dims_that_repeat_in_the_middle_are_computed():
    x, y = values("f4", 1, (4, 6, 10)), values("f4", 2, (4, 1, 10))
    with small_loops():
        assert_bits(gpuops.evaluate(lazy(x) * y + x[:, :, :1]), x * y + x[:, :, :1])


def test_bytes_other_than_one_are_true():
    m, x = np.arange(1000, dtype=np.uint8).view(bool), values("f4", 1, (1000,))
    with small_loops() as called:
        got = gpuops.evaluate(gpuops.where(lazy(m), x, 0))
    assert all(called)
    assert_bits(got, np.where(m.view(np.uint8) != 0, x, np.float32(0)))


HIDDEN = {
    "overflow": lambda x: 1 / (x * x), "divide": lambda x: np.maximum(-1 / (x * 0), x),
    "invalid": lambda x: np.sqrt(-x) > 0,
    "over": lambda x: (x.astype("f8") * 1e300 * 1e300) > 1,
}  # fmt: skip


@pytest.mark.parametrize("error", HIDDEN)
def test_loops_report_errors_that_results_do_not_show(error):
    x = np.full(1000, 1e30, np.float32)
    with small_loops() as called:
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            gpuops.evaluate(HIDDEN[error](lazy(x)))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            gpuops.evaluate(HIDDEN[error](lazy(x)))
        with np.errstate(all="ignore"):
            assert_bits(gpuops.evaluate(HIDDEN[error](lazy(x))), HIDDEN[error](x))
    assert not any(called)
    assert told


def test_extremes_of_nan_are_nan():
    x, y = (values("f4", seed, (1000,)) for seed in (1, 2))
    x[::4], y[1::4], x[2::8], y[::16] = np.nan, np.nan, np.inf, -np.inf
    with small_loops() as called:
        for function in (np.minimum, np.maximum, lambda a, b: np.clip(a, b, b)):
            got, expected = gpuops.evaluate(function(lazy(x), lazy(y))), function(x, y)
            np.testing.assert_array_equal(got, expected)
    assert all(called)


def test_errors_are_reported_of_operands_that_the_result_replaces():
    x = np.full(1000, 1e30, np.float32)
    with small_loops(), np.errstate(all="ignore"):
        expected = 1 / (x * x)
        assert_bits(gpuops.evaluate(1 / (lazy(x) * x), out=x), expected)


def test_underflow_is_reported_if_it_is_of_interest():
    x = np.full(1000, 1e-30, np.float32)
    with small_loops() as called:
        with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
            gpuops.evaluate(lazy(x) * x)
        assert not called
        assert_bits(gpuops.evaluate(lazy(x) * x), x * x)
    assert all(called)


def test_infinities_that_are_no_errors_are_not_reported():
    x = np.full(1000, np.inf, np.float32)
    with small_loops(), np.errstate(all="raise"):
        assert_bits(gpuops.evaluate(lazy(x) * 2), x)


def test_steps_are_looked_at_unless_others_pass_errors_on():
    x = lazy(np.ones(3, np.float32))
    passed, hidden = ((x - 1) ** 2, {1}), (1 / (x * x), {0, 1})
    more = (np.reciprocal(x * x), {0, 1}), (np.sqrt(x) > 1, {0}), (x > 1, set()), (-(x + x), {1})
    for made, steps in (passed, hidden, *more):
        assert looked_at(made.program()[0]) == steps


def test_only_exact_operations_have_loops():
    x, i = lazy(np.ones(3, np.float32)), lazy(np.ones(3, np.int32))
    casts = [x.astype(dtype) + 1 for dtype in ("i4", "f2", "c8")]
    for made in (np.exp(x) + 1, x**3, i // 2, i % 2, i << 1, np.hypot(x, x), *casts):
        assert not has_loop(made.program()[0])
    assert has_loop(((x + i) ** 2).program()[0])


def test_loops_are_compiled_for_programs_that_have_computed_much(monkeypatch):
    x = lazy(np.ones(100_000, np.float32))
    with small_loops() as called, settings(programs, 1):
        monkeypatch.setattr(program_loops, "WORTH", 20 * 2**16)
        monkeypatch.setattr(program_loops, "units", {(x * 7.5 - x).program()[0]: iter(range(100))}.get)
        computed = []
        for _ in range(12):
            gpuops.evaluate(x * 7.5 - x)
            computed.append(bool(called))
    assert computed == [False] * 10 + [True] * 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_choice_may_replace_an_operand(engine):
    for n in (10, 2**15):
        x, y = values("f4", 1, (n,)), values("f4", 2, (n,))
        for place in (0, 1):
            a, b = x.copy(), y.copy()
            expected = np.where(x > y, x, y)
            with computed_by(engine):
                gpuops.evaluate(gpuops.where(lazy(a) > b, a, b), out=(a, b)[place])
            assert_bits((a, b)[place], expected)


def test_scalars_and_arrays_without_elements_are_computed():
    assert_bits(gpuops.evaluate(lazy(np.float32(3)) * 2), np.float32(6))
    out = np.zeros((), np.float32)
    assert gpuops.evaluate(lazy(np.array(3, np.float32)) * 2, out=out) is out
    assert out == 6
    assert gpuops.evaluate(lazy(np.ones((0, 3), np.float32)) * 2).shape == (0, 3)


# ------------------------------------------------------------------------------- reductions that compute what they read

REDUCTIONS = {
    "sum": gpuops.sum, "mean": gpuops.mean, "max": gpuops.max, "argmax": gpuops.argmax, "var": gpuops.var,
    "any": gpuops.any, "count_nonzero": gpuops.count_nonzero, "ptp": gpuops.ptp, "vector_norm": gpuops.vector_norm,
}  # fmt: skip


@contextmanager
def small_operands(count: int = 2) -> Iterator[list[Any]]:
    """Reductions compute small expressions in small blocks. Gives the blocks that were."""
    blocks: list[Any] = []

    def block(self: Any, index: Any) -> Any:
        blocks.append(index)
        return own(self, index)

    own = program_operand.Computed.__getitem__
    with (
        pytest.MonkeyPatch.context() as patch, settings(reduce, count, BLOCK=64, VIEWED=64, LESS=2, FEW=0),
        settings(few_sums, count, VECTOR=0, FEW=0), settings(sums, count, LOOPS=0),
        settings(exact_engines, count, LOOPS=0),
    ):  # fmt: skip
        patch.setattr(program_operand, "LARGE", 65)
        patch.setattr(program_operand, "ROOM", 160)
        patch.setattr(program_operand.Computed, "__getitem__", block)
        yield blocks


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "f2", "?"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_have_the_bits_of_the_value_in_memory(name, dtype, axis):
    if dtype == "?" and name == "ptp":
        return
    x, y = sample((40, 70), np.dtype(dtype), 1), sample((40, 70), np.dtype(dtype), 2)
    for turn in (np.asarray, np.asfortranarray):
        a, b = turn(x), turn(y)
        made, value = (lazy(a) & b, a & b) if dtype == "?" else (lazy(a) - b[:1], a - b[:1])
        with small_operands() as blocks:
            got = REDUCTIONS[name](made, axis=axis, keepdims=True)
            assert_bits(got, REDUCTIONS[name](value, axis=axis, keepdims=True))
        if blocks:  # the same in any cut
            with settings(reduce, 2):
                assert_bits(got, REDUCTIONS[name](value, axis=axis, keepdims=True))
        if name in ("max", "argmax", "count_nonzero", "ptp"):
            assert len(blocks) > 4, "it was computed in blocks"


def test_sums_compute_what_they_read_where_they_are_exact():
    sums, means = [(dtype, gpuops.sum) for dtype in ("f4", "i4")], [(dtype, gpuops.mean) for dtype in ("?", "i2")]
    for dtype, function in (*sums, *means, ("f4", gpuops.var)):
        with small_operands() as blocks:
            x = values(dtype, 1, (40, 70))
            made = lazy(x) | x[:1] if dtype == "?" else lazy(x) - x[:1]
            got = function(made, axis=1)
        assert_bits(got, function(x | x[:1] if dtype == "?" else x - x[:1], axis=1))
        assert len(blocks) > 4
    with small_operands() as blocks:  # their order counts
        gpuops.prod(lazy(x) * 1.5, axis=1)
    assert not blocks


def test_loops_compute_what_reductions_read():
    x, y = values("f4", 1, (40, 70)), values("f4", 2, (40, 70))
    with small_loops() as called, small_operands() as blocks:
        got = gpuops.sum((lazy(x) - y) ** 2, axis=1)
    assert all(called)
    assert len(called) == len(blocks) > 4
    assert_bits(got, gpuops.sum((x - y) ** 2, axis=1))


def told_by(function: Any) -> list[str]:
    """The warnings that a call gives."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        function()
    return [str(each.message) for each in told]


@pytest.mark.parametrize("name", ["sum", "max", "argmax", "mean"])
def test_errors_of_an_expression_are_reported_once_and_first(name):
    x = np.full((40, 70), 1e30, np.float32)
    function = REDUCTIONS[name]
    expected = told_by(lambda: function(gpuops.evaluate(lazy(x) * x), axis=1))
    with small_operands():
        assert told_by(lambda: function(lazy(x) * x, axis=1)) == expected
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow encountered in add"):
            function(lazy(x) * x, axis=1)
        with np.errstate(all="ignore"):
            assert_bits(function(lazy(x) * x, axis=1), function(x * x, axis=1))


def test_ends_that_need_all_elements_have_them():
    special = np.array([np.nan, np.inf, -np.inf, 1.0] * 700, np.float32).reshape(40, 70)
    zeros = -np.zeros((40, 70), np.float32)
    for x in (special, zeros, np.where(special == 1, np.float32(3e38), zeros)):
        for options in ({}, {"initial": -0.0}):
            with np.errstate(all="ignore"):
                expected = gpuops.sum(x * 1, axis=0, **options)
                with small_operands():
                    assert_bits(gpuops.sum(lazy(x) * 1, axis=0, **options), expected)


def test_masks_and_results_that_are_operands_are_computed_before():
    x, mask = values("f4", 1, (40, 70)), values("?", 2, (40, 70))
    with small_operands() as blocks:
        assert_bits(gpuops.sum(lazy(x) * 2, axis=1, where=mask), gpuops.sum(x * 2, axis=1, where=mask))
        row = x[0]
        expected = gpuops.max(x * 2, axis=0)
        assert gpuops.max(lazy(x) * 2, axis=0, out=row) is row
        assert_bits(row, expected)
        assert not blocks
        out = np.zeros(70)
        assert gpuops.max(lazy(x) * 2, axis=0, out=out) is out
        assert blocks
    assert_bits(out, gpuops.max(x * 2, axis=0).astype(np.float64))
