"""softmax, log_softmax and logsumexp of NumPy arrays: in blocks, in parts and on threads."""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call.dispatch import describe
from gpuops.definition.expressions import number
from gpuops.host import exponentials, forms, reduce, row_forms, rows, threads
from gpuops.host.block import Block
from tests import layouts
from tests.compare import assert_bits
from tests.host_blocks import ENGINES, computed_by, settings
from tests.layouts import FLOATS
from tests.test_softmax import check

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

OPS = ("softmax", "log_softmax", "logsumexp")


SMALL = (2**9, 2**5, 2**5, 1, 3, 2)


@contextmanager
def small_blocks(count: int = 1, engine: str = "numpy") -> Iterator[None]:
    """Small arrays have several blocks, on so many threads; an engine computes them all."""
    with (
        computed_by(engine),
        settings(rows, count, WITH_NUMPY=SMALL, WITH_NUMBA=SMALL, FEW=0),
        settings(exponentials, count, SHORT=8, FOLDED=8),
        settings(reduce, count, BLOCK=2**7, VIEWED=2**7, PIECES=100, LESS=2),
    ):
        yield


@given(data=st.data())
def test_blocks_agree_with_scipy(data):
    op, shape = data.draw(st.sampled_from(OPS)), data.draw(layouts.shapes(max_dims=4))
    x = data.draw(layouts.arrays(shape, data.draw(st.sampled_from([*FLOATS, np.dtype(np.int32)]))))
    axis, options = data.draw(layouts.axes(len(shape))), {}
    if data.draw(st.booleans()):
        options["where"] = data.draw(layouts.masks(shape))
    if data.draw(st.booleans()):
        options["scale"] = 0.5
    with small_blocks(data.draw(st.sampled_from((1, 3))), data.draw(st.sampled_from(ENGINES))):
        check(getattr(gpuops, op)(x, axis=axis, **options), op, x, axis, **options)
    if x.size and op != "logsumexp":
        check(defined(op, x, axis=axis, **options), op, x, axis, **options)


@pytest.mark.turns(3, everywhere=True)
@pytest.mark.parametrize("options", [{}, {"where": 0.7}, {"scale": -2.5}], ids=["plain", "masked", "scaled"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4"])
@pytest.mark.parametrize("shape", [(40, 30), (3, 701), (701, 3), (2001,), (6, 70, 50), (70, 40, 3), (1, 50, 1)])
def test_compiled_functions_agree_with_scipy(shape, dtype, options):
    random = np.random.default_rng(0)
    x = (random.standard_normal(shape) * 9).astype(dtype)
    if x.dtype.kind == "f":
        for special in (np.nan, np.inf, -np.inf):
            x[tuple(random.integers(0, n, 2) for n in shape)] = special
        x[0] = -np.inf
    if "where" in options:
        options = {"where": random.random(shape) < options["where"]}
    for axis in [*range(x.ndim), (0, 2), None] if x.ndim > 2 else [*range(x.ndim), None]:
        for source in (x, x.T.copy().T, x[::-1]):
            for op in OPS:
                with small_blocks(2, "compiled"):
                    found = getattr(gpuops, op)(source, axis=axis, **options)
                check(found, op, source, axis, **options)


@pytest.fixture
def numba():
    return pytest.importorskip("numba", reason="needs Numba")


@pytest.fixture
def compiled_rows(numba):
    return importlib.import_module("gpuops.host.compiled_rows")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_compiled_exponential_and_logarithm_are_within_units_in_the_last_place(numba, compiled_rows, dtype):
    random = np.random.default_rng(0)
    info = np.finfo(dtype)
    x = (np.log(info.tiny) * random.random(10**5)).astype(dtype)
    exp = numba.vectorize(lambda x: compiled_rows.exp(x))
    exact = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(exp(x) - exact) / np.spacing(exact.astype(dtype))) < 1
    np.testing.assert_allclose(compiled_rows.exp(x), exp(x), rtol=4 * info.eps)  # in Python it is NumPy's
    ends = np.array([0, -0.0, -np.inf, np.nan, np.log(info.smallest_subnormal) + 0.1], dtype)
    np.testing.assert_array_equal(exp(ends), np.exp(ends))
    if dtype == "f8":
        terms = np.concatenate([10.0 ** random.uniform(-30, 9, 10**5), [0, 1]])
        exact = np.log1p(terms.astype(np.longdouble))
        found = numba.vectorize(lambda x: compiled_rows.log1p(x))(terms)
        assert np.max(np.abs(found - exact) / np.spacing(exact.astype(dtype))) < 2.5


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_compiled_greatest_element_is_numpys(numba, compiled_rows, dtype):
    greatest = numba.njit(lambda x: compiled_rows.greatest(x, 0, x.shape[1]))
    for row in ([1, -2, 3], [-5, -2, -9], [-0.0, -1], [0.0, -0.0], [-np.inf, -3], [-np.inf] * 3, [np.inf, 2]):
        for length in (len(row), 300):
            x = np.resize(np.array(row, dtype), (1, length))
            assert greatest(x) == compiled_rows.greatest(x, 0, length) == np.max(x)
    for row in ([np.nan, np.inf], [-np.inf, -np.nan], [-np.nan, np.inf, 1]):
        assert np.isnan(greatest(np.array([row], dtype)))


def defined(op: str, x: np.ndarray, **options: Any) -> Any:
    """What the definition of an op gives."""
    task = describe(getattr(gpuops, op), x, **options).host.options["task"]
    bound, given = task.bound, {name: np.float64(value) for name, value in task.options.items()}
    beside = [options.get(name) for name in ("b", "where")]
    y, mask = (None if each is None else np.broadcast_to(each, x.shape) for each in beside)
    block = Block(bound, (x, y, mask), task.axis)
    with np.errstate(all="ignore"):
        states = [block.layout.back(each, True) for each in forms.by_definition(block.widened(), given)]
        results = bound.wide.finish(**dict(zip(bound.leaves_of["s"], states, strict=True)), **given)
        if bound.reduction.each is None:
            return [np.squeeze(each, task.axis) for each in results]
        names = {f"r{i}": each.astype(bound.val) for i, each in enumerate(results)}
        (found,) = bound.each(x=x.astype(bound.val), **names, **given)
    found = found if mask is None else np.where(mask, found, number(bound.reduction.left_out, bound.val))
    return found.astype(describe(getattr(gpuops, op), x, **options).results[0].dtype)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape", [(40, 300), (3, 5000), (5000, 3), (20000,), (30, 7, 50)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_any_number_of_threads_gives_the_same_bits(op, shape, dtype, engine):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for axis in range(x.ndim):
        found = []
        for count in (1, 2, 5):
            with small_blocks(count, engine):
                found.append(getattr(gpuops, op)(x, axis=axis))
        assert_bits(found[1], found[0])
        assert_bits(found[2], found[0])


@given(data=st.data())
def test_blocks_and_their_parts_cover_an_array_once(data):
    shape = data.draw(layouts.shapes(max_dims=4).filter(lambda shape: shape and math.prod(shape)))
    x = data.draw(layouts.arrays(shape, np.dtype(np.float32)))
    axis = tuple(d for d in range(x.ndim) if data.draw(st.booleans()))
    whole, parts = row_forms.cut(x.shape, x.strides, axis, 2**7, 2**3)
    covered = np.zeros(shape, int)
    for index in whole:
        assert all(index[d] == slice(None) for d in axis)
        for part in parts or [(...,)]:
            covered[index][part] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("gap", [0, 1e-3, 1, 30, 80])
@pytest.mark.parametrize("shape", [(6, 50), (50, 6)])
def test_results_near_0_keep_their_digits_in_blocks(gap, shape, engine):
    x = np.zeros(shape)
    x[0], x[:, 0] = 1, 1 + gap
    exact = {axis: np.log1p(np.sum(np.exp(np.delete(x, 0, axis) - x.take([0], axis)), axis=axis)) for axis in (0, 1)}
    with small_blocks(1, engine):
        np.testing.assert_allclose(-gpuops.log_softmax(x, axis=1)[:, 0], exact[1], rtol=1e-13)
        np.testing.assert_allclose(gpuops.logsumexp(x - x[:, :1], axis=1), exact[1], rtol=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_out_may_be_the_input_or_overlap_it(op, engine):
    x = np.random.default_rng(0).standard_normal((41, 60))
    right = getattr(gpuops, op)(x, axis=0)
    with small_blocks(2, engine):
        memory = np.concatenate([x, x[:1]])
        same = memory[:-1]
        assert getattr(gpuops, op)(same, axis=0, out=same) is same
        np.testing.assert_allclose(same, right, rtol=1e-13)
        memory[:-1] = x
        moved = getattr(gpuops, op)(memory[:-1], axis=0, out=memory[1:])
        np.testing.assert_allclose(moved, right, rtol=1e-13)


# ------------------------------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({}, 8), ({"GPUOPS_NUM_THREADS": "3"}, 3), ({"OMP_NUM_THREADS": "2"}, 2), ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"GPUOPS_NUM_THREADS": "1", "OMP_NUM_THREADS": "6"}, 1), ({"GPUOPS_NUM_THREADS": "100"}, 8),
        ({"GPUOPS_NUM_THREADS": "many", "OMP_NUM_THREADS": "5"}, 5), ({"GPUOPS_NUM_THREADS": "0"}, 8),
    ],
)  # fmt: skip
def test_the_environment_limits_threads(monkeypatch, variables, count):
    for name in threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert threads.limit.__wrapped__() == count


def test_each_item_is_taken_once_by_several_threads():
    taken: list[Any] = []

    def take(item: int) -> None:
        taken.append((item, threading.current_thread().name))
        time.sleep(0.002)

    with small_blocks(3):
        threads.each(take, range(30), 3)
    assert sorted(item for item, _ in taken) == [*range(30)]
    assert len({name for _, name in taken}) > 1


def test_a_failure_on_any_thread_reaches_the_caller():
    def fail(item: int) -> None:
        if item == 7:
            raise KeyError(item)

    with small_blocks(3), pytest.raises(KeyError, match="7"):
        threads.each(fail, range(20), 3)


def python(code: str, **variables: str) -> str:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | variables, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.turns(2, everywhere=True)
@pytest.mark.parametrize("found", [False, True], ids=["no Numba", "no folder for its code"])
def test_without_numba_or_a_folder_for_its_code_the_results_are_right(found):
    if found:
        pytest.importorskip("numba", reason="needs Numba")
    code = f"""
import sys
if not {found}:
    sys.modules["numba"] = None
import numpy, gpuops
x = numpy.random.default_rng(0).standard_normal((600, 1000))
mask = x > 0.1
power = numpy.exp(x)
assert numpy.allclose(gpuops.softmax(x, axis=1), power / power.sum(axis=1, keepdims=True))
assert numpy.allclose(gpuops.sum(x, axis=0, where=mask), x.sum(axis=0, where=mask))
assert (gpuops.where(mask, x, 0) == numpy.where(mask, x, 0)).all()
assert gpuops.softmax(x.astype("f2"), axis=0).dtype == numpy.float16
print("numba.core" in sys.modules)
"""
    assert python(code, NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator") == str(found)


def test_imports_and_small_arrays_start_no_threads():
    code = """
import threading, numpy, gpuops
gpuops.softmax(numpy.ones((100, 100)))
print(threading.active_count())
"""
    assert python(code) == "1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_after_a_fork_there_are_threads_again():
    code = """
import os, numpy, gpuops
from gpuops.host import threads
threads.limit = lambda: 2
x = numpy.random.default_rng(0).standard_normal((1000, 1000))
before = gpuops.softmax(x, axis=1)
if child := os.fork():
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status))
else:
    os._exit(0 if (gpuops.softmax(x, axis=1) == before).all() else 3)
"""
    assert python(code) == "0"


def test_info_shows_the_number_of_threads():
    assert python("import gpuops; print(gpuops.info()['threads'])", GPUOPS_NUM_THREADS="1") == "1"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weights", ["scalar", "array", "row", "masked", "float16", "0"])
@pytest.mark.parametrize("shape", [(40, 30), (3, 701), (701, 3), (6, 70, 50)])
def test_weights_in_blocks_agree_with_the_definition(shape, weights, engine):
    random = np.random.default_rng(0)
    a = random.standard_normal(shape) * 9
    a[tuple(random.integers(0, n, 3) for n in shape)] = np.inf, -np.inf, np.nan
    options: dict[str, Any] = {"b": random.integers(-2, 4, shape[-1:] if weights == "row" else shape).astype("f8")}
    if weights in ("scalar", "0"):
        options["b"] = -2.5 if weights == "scalar" else 0.0
    if weights == "float16":
        options["b"] = options["b"].astype("f2")
    if weights == "masked":
        options["where"] = random.random(shape) < 0.7
    for axis in range(a.ndim):
        exact = defined("logsumexp", a, axis=axis, return_sign=True, **options)
        with small_blocks(2, engine):
            found = gpuops.logsumexp(a, axis=axis, return_sign=True, **options)
        for one, other in zip(found, exact, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_that_may_not_be_written_to_need_no_copy(engine):
    x = np.random.default_rng(0).standard_normal((90, 70))
    right = {(op, axis): getattr(gpuops, op)(x, axis=axis) for op in OPS for axis in (0, 1)}
    x.flags.writeable = False
    with small_blocks(1, engine):
        for op in OPS:
            for axis in (0, 1):
                np.testing.assert_allclose(getattr(gpuops, op)(x, axis=axis), right[op, axis], rtol=1e-13)
        np.testing.assert_allclose(gpuops.logsumexp(x, axis=1, b=x**2), np.log((x**2 * np.exp(x)).sum(1)), rtol=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(5, 40), (300, 40), (3, 900)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_greatest_elements_whose_weights_cancel_leave_the_others_their_digits(dtype, shape, engine):
    random = np.random.default_rng(0)
    x, b = random.standard_normal(shape).astype(dtype), random.random(shape).astype(dtype)
    x[:, 3:5], b[:, 3], b[:, 4] = 25 if dtype == "f4" else 60, 2, -2
    others = np.exp(x.astype("f8")) * b
    others[:, 3:5] = 0
    exact = np.log(others.sum(axis=1))
    for axis, operands in ((1, (x, b)), (0, (x.T.copy(), b.T.copy()))):
        with computed_by(engine):
            found = gpuops.logsumexp(operands[0], axis=axis, b=operands[1])
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5 if dtype == "f4" else 1e-13)
