"""Exact sums have the same bits on GPUs of any size: plans for simulated ones differ, results do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.call import launch_cache
from gpuops.call.dispatch import describe
from gpuops.definition import totals
from gpuops.definition.exact import Number
from gpuops.plan.work import LARGE, Machine
from tests import emulated, fuzz_numbers
from tests.conftest import Cpu, started
from tests.test_exact_moments import FLAT, assert_same, rows_of
from tests.test_exact_sums import HARD

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: GPUs by their multiprocessors; the larger two have clusters.
MACHINES = (
    Machine(20, together=20), Machine(46, together=46), Machine(132, 16, 227 * 1024, 132),
    Machine(200, 8, LARGE - 1, 200),
)  # fmt: skip
#: Public functions with their operands, what they add up, and what becomes of the sums.
OPS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "sum": (lambda call, x, w, axis: call(gpuops.sum, x, axis=axis), "x", "itself"),
    "mean": (lambda call, x, w, axis: call(gpuops.mean, x, axis=axis), "x", "quotient"),
    "var": (lambda call, x, w, axis: call(gpuops.var, x, axis=axis), "moments", "variance"),
    "norm2": (lambda call, x, w, axis: call(gpuops.vector_norm, x, axis=axis), "square", "root"),
    "sum_of_squares": (lambda call, x, w, axis: call(gpuops.sum_of_squares, x, axis=axis), "square", "itself"),
    "average": (lambda call, x, w, axis: call(gpuops.average, x, axis, w), "weighted", "ratio"),
    "dot": (lambda call, x, w, axis: call(gpuops.dot, x, w), "product", "itself"),
}
DTYPES = ("f2", "f4", "f8")
DENSE = (*HARD, *FLAT)
#: Families of `fuzz_numbers`, and how many numbers of them: so few that none are there to cancel.
MIDDLES = {"norm2": ("middles_of_norms", 3), "sum_of_squares": ("middles_of_squares", 4)}
DISTINCT = 45  # rows, beyond which they are repeated, since the definition is slow
LAYOUTS = ("whole", "rows", "columns", "shared rows")
CASES = [(op, layout) for op in OPS for layout in LAYOUTS if op != "dot" or layout == "whole"]


@pytest.fixture(params=["emulated", "emulated-small"])
def device(request: pytest.FixtureRequest) -> Iterator[Cpu]:
    """The emulator, whose machine a test chooses."""
    yield from started(request)


def shape_of(layout: str, itemsize: int) -> tuple[int, int]:
    """Rows and their elements: so many that plans depend on the number of multiprocessors."""
    shapes = {"whole": (1, 900_000 // itemsize), "rows": (300, 1100), "columns": (400, 800)}
    return shapes.get(layout, (2, 60_000 + 280_000 // itemsize))


def middles(op: str, n: int, dtype: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A row of zeros but for a few numbers, whose result is the middle between two, or close to one; for products
    weights that add up to 4."""
    family, width = MIDDLES.get(op, ("middles", 3))
    made = fuzz_numbers.rows_of(family, rng, (50, width), fuzz_numbers.FORMS[np.dtype(dtype).name])
    places = rng.choice(n, 4, replace=False)
    x, weights = np.zeros((2, 1, n), dtype)
    x[0, places[:width]], weights[0, places] = made[np.count_nonzero(made, axis=1).argmax()], 1
    return x, weights


@cache
def elements(op: str, layout: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """At most ``DISTINCT`` rows, and weights: a row that is nearly a middle, one of another hard family, and so on."""
    count, n = shape_of(layout, np.dtype(dtype).itemsize)
    first = [*OPS].index(op) + LAYOUTS.index(layout) + DTYPES.index(dtype)
    rng, pairs = np.random.default_rng((n, first)), []
    for k in range(first, first + min(count, DISTINCT)):
        families = DENSE[k // 2 % len(DENSE)], DENSE[k // 3 % len(DENSE)]
        dense = k % 2 and tuple([rows_of(family, (1, n), dtype, rng) for family in families])
        pairs.append(dense or middles(op, n, dtype, rng))
    x, weights = map(np.concatenate, zip(*pairs, strict=True))
    return x, weights


def defined(op: str, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The results of rows, by the definition."""
    _, of, end = OPS[op]
    found = [totals.totals_of(of, *pair) for pair in zip(x, weights, strict=True)]
    return np.array([totals.number(row, x.shape[1], Number(end), 0.0, x.dtype) for row in found], x.dtype)


def laid(layout: str, x: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Rows, repeated, as an array, and the axis that they lie along."""
    if layout == "whole":
        return x[0], None
    x = np.resize(x, shape_of(layout, x.itemsize))
    return (np.ascontiguousarray(x.T), 0) if layout == "columns" else (x, 1)


def run(public: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of a call, where `describe` has its plan."""
    return public(*args, **options)


@pytest.mark.turns(20)
@pytest.mark.parametrize(("op", "layout"), CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_number_of_multiprocessors_changes_plans_but_no_bit(device, monkeypatch, dtype, op, layout):
    call, x, weights = OPS[op][0], *elements(op, layout, dtype)
    want, (array, axis) = defined(op, x, weights), laid(layout, x)
    placed, beside = device.arrays(array, laid(layout, weights)[0])
    plans, results = [], []
    for machine in MACHINES:
        monkeypatch.setattr(emulated.DEVICE, "machine", machine)
        launch_cache.clear()
        plans.append(call(describe, placed, beside, axis).plan)
        results.append(device.numpy(call(run, placed, beside, axis)).reshape(-1))
        assert_same(results[-1], results[0], machine)
        monkeypatch.setattr(emulated.DEVICE, "machine", Machine(machine.multiprocessors))
        assert call(describe, placed, beside, axis).plan == plans[-1], "it has other launches without clusters"
    assert_same(results[0], np.resize(want, results[0].size))
    grids = [[(step.grid, step.block) for step in plan.steps] for plan in plans]
    assert grids[0] != grids[-1], "the least and the greatest machine have the same launches"
