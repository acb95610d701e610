"""Expressions of arrays of other libraries, when they are computed, and what is computed again."""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops import lazy
from gpuops.call import launch_cache
from gpuops.device import jit
from gpuops.host import programs
from gpuops.ops.lazy import Lazy
from tests import emulated, layouts
from tests.compare import assert_bits, fails
from tests.test_interop import Foreign, Standard, assert_close, check_tensor, jax, place, strict, tensor  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

X, Y = layouts.sample((12, 10)), layouts.sample((12, 10), seed=1)
ROW, COLUMN, MASK = Y[0], X[:, :1], X > Y
#: Calls of x, y, a row, a column and a mask: expressions if ``lazy`` makes these, or NumPy's arrays.
CALLS: dict[str, Callable[..., Any]] = {
    "evaluate": lambda x, y, row, column, m: gpuops.evaluate((x - y) ** 2 * row + column),
    "sum": lambda x, y, row, column, m: gpuops.sum((x - row) ** 2, axis=1),
    "sum of all": lambda x, y, row, column, m: gpuops.sum(x * y, where=m),
    "mean of where": lambda x, y, row, column, m: gpuops.mean(gpuops.where(x > y, x, 0) > 0.5, axis=0),
    "max of halves": lambda x, y, row, column, m: gpuops.max((x * y).astype("f2"), axis=0),
    "softmax": lambda x, y, row, column, m: gpuops.softmax(x * 2 + row, axis=1),
    "masked softmax": lambda x, y, row, column, m: gpuops.softmax(x - column, axis=0, where=m),
    "cumsum": lambda x, y, row, column, m: gpuops.cumsum(abs(x) * column, axis=0),
    "argmax": lambda x, y, row, column, m: gpuops.argmax(x * y, axis=1),
    "var": lambda x, y, row, column, m: gpuops.var(x * y, axis=1),
    "logsumexp": lambda x, y, row, column, m: gpuops.logsumexp(x * y, axis=0),
    "stack": lambda x, y, row, column, m: gpuops.sum(np.stack([x * y, x * row]), axis=2),
    "evaluated stack": lambda x, y, row, column, m: gpuops.evaluate(np.stack([x * y, x])),
    "clip": lambda x, y, row, column, m: gpuops.evaluate(np.clip(x, -1, row)),
    "ufuncs": lambda x, y, row, column, m: gpuops.evaluate(np.sqrt(abs(x)) + np.maximum(x, column) * y),
}


def value(name: str) -> Any:
    """What a call gives for NumPy's arrays: expressions are functions of these, too."""
    return CALLS[name](X, Y, ROW, COLUMN, MASK)


def of_lazy(call: str, x: Any, *others: Any) -> Any:
    return CALLS[call](lazy(x), *others)


# ------------------------------------------------------------------------------------------------------------- Dask

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")


@pytest.fixture(autouse=True)
def synchronous_scheduler() -> Iterator[None]:
    with dask.config.set(scheduler="sync"):
        yield


CHUNKS = {"rows": (5, 10), "columns": (12, 3), "blocks": (5, 4), "uneven": ((1, 7, 0, 4), (2, 8)), "whole": (12, 10)}


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("name", CALLS)
def test_dask_arrays_are_computed_by_chunk(name, chunks):
    x = da.from_array(X, CHUNKS[chunks])
    others = [da.from_array(array, 3) for array in (Y, ROW, COLUMN, MASK)]
    for given in (others, [Y, ROW, COLUMN, MASK], [Y, *others[1:]]):
        made = of_lazy(name, x, *given)
        assert isinstance(made, da.Array)
        expected, got = np.asarray(value(name)), np.asarray(made.compute())
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
        assert_close(got, expected)
    made = of_lazy(name, X, da.from_array(Y, CHUNKS[chunks]), *others[1:3], MASK)
    if isinstance(made, da.Array):  # y is used
        assert_close(np.asarray(made.compute()), np.asarray(value(name)))


def test_chunks_of_expressions_are_those_of_dasks_arrays():
    x, y = da.from_array(X, (5, 10)), da.from_array(Y, (12, 4))
    made = gpuops.evaluate(lazy(x) * y)
    assert made.chunks == (x.chunks[0], y.chunks[1])
    assert made.name.startswith("evaluate-")
    assert_bits(made.compute(), X * Y)
    assert gpuops.evaluate(lazy(x) * Y).chunks == x.chunks
    empty = da.from_array(np.zeros((0, 3)), 2)
    assert_bits(gpuops.evaluate(lazy(empty) + 1).compute(), np.ones((0, 3)))


def test_dask_arrays_cannot_be_out():
    x, out = da.from_array(X, 5), np.zeros_like(X)
    rule = "out is not supported for dask arrays, which cannot be written to"
    fails(TypeError, f"evaluate: {rule}", gpuops.evaluate, lazy(x) + 1, out=out)
    fails(TypeError, f"sum: {rule}", gpuops.sum, lazy(x) + 1, axis=0, out=np.zeros(10, "f4"))
    fails(TypeError, f"evaluate: {rule}", gpuops.evaluate, lazy(X) + 1, out=x)


def test_graphs_compute_nothing():
    def fail(block):
        raise AssertionError("computed")

    x = da.from_array(X, 5).map_blocks(fail, meta=np.zeros((0, 0), np.float32))
    for name in CALLS:
        of_lazy(name, x, Y, ROW, COLUMN, MASK)
    with pytest.raises(AssertionError, match="computed"):
        gpuops.evaluate(lazy(x) + 1).compute()


def test_elements_that_numpy_refuses_are_refused_when_chunks_are_computed():
    made = gpuops.evaluate(lazy(da.from_array(np.arange(4), 2)) ** np.array([1, 2, -1, 3]))
    with pytest.raises(ValueError, match="Integers to negative integer powers"):
        made.compute()


def test_chunks_of_unknown_size_are_refused():
    x = da.from_array(X, 5)
    with pytest.raises(ValueError, match="unknown chunk sizes"):
        gpuops.sum(lazy(x[x > 0]) * 2)


def test_a_dask_array_may_be_beside_an_expression_of_numpys():
    x = lazy(X) * 2
    assert_close(gpuops.sum(x, axis=0, where=da.from_array(MASK, 5)).compute(), gpuops.sum(X * 2, axis=0, where=MASK))
    weights = lazy(da.from_array(abs(Y), 5)) * 2
    assert_close(gpuops.average(x, weights=weights, axis=1).compute(), gpuops.average(X * 2, weights=abs(Y), axis=1))
    assert gpuops.array_equal(x, da.from_array(X * 2, 5)).compute()


def test_graphs_pickle_and_equal_calls_have_equal_names():
    x = da.from_array(X, 5)
    made = gpuops.sum((lazy(x) - Y) ** 2, axis=1)
    assert made.name == gpuops.sum((lazy(x) - Y) ** 2, axis=1).name
    assert_bits(pickle.loads(pickle.dumps(made)).compute(), made.compute())


def test_chunks_may_be_on_a_device(device):
    from tests.chunks import on_device

    x, y = on_device(device, X, (5, 4)), on_device(device, Y, (12, 3))
    assert_bits(device.numpy(gpuops.evaluate((lazy(x) - y) * y).compute()), (X - Y) * Y)
    got = device.numpy(gpuops.sum((lazy(x) - y) * y, axis=1).compute())
    np.testing.assert_allclose(got, gpuops.sum((X - Y) * Y, axis=1), rtol=1e-6)


# --------------------------------------------------------------------------------------------------- PyTorch and JAX


@pytest.mark.parametrize("name", CALLS)
def test_tensors(torch, place, name):  # noqa: F811
    there = [tensor(torch, array, place) for array in (X, Y, ROW, COLUMN, MASK)]
    for _ in range(3):  # from the second call on, these hit the cache
        check_tensor(torch, of_lazy(name, *there), value(name))


def test_tensors_take_results_and_share_memory(torch, place):  # noqa: F811
    x, y = tensor(torch, X, place), tensor(torch, Y, place)
    made, out = (lazy(x) - y) * 2, torch.zeros(12, 20, device=place)
    view = out[:, ::2]
    assert gpuops.evaluate(made, out=view) is view
    check_tensor(torch, view, (X - Y) * 2)
    x.zero_()
    check_tensor(torch, gpuops.evaluate(made), (0 - Y) * 2)
    message = "add: arrays of two libraries do not mix: torch.Tensor and numpy.ndarray"
    fails(TypeError, message, lambda: lazy(x) + Y)
    with torch.no_grad():
        check_tensor(torch, gpuops.evaluate(lazy(y.clone().requires_grad_()) * 2), Y * 2)


@pytest.mark.parametrize("name", CALLS)
def test_jax_arrays(jax, name):  # noqa: F811
    there = [jax.numpy.asarray(array) for array in (X, Y, ROW, COLUMN, MASK)]
    expected = np.asarray(value(name))
    wanted = expected.astype({"float64": "f4", "int64": "i4"}.get(expected.dtype.name, expected.dtype))
    for _ in range(2):
        got = of_lazy(name, *there)
        assert isinstance(got, jax.Array)
        assert_close(np.asarray(got), wanted)  # JAX has 32 bits


def test_jax_operators_leave_expressions_to_these(jax):  # noqa: F811
    x, y = jax.numpy.asarray(X), jax.numpy.asarray(Y)
    for made, expected in ((x - lazy(y), X - Y), (x * lazy(y), X * Y), (x < lazy(y), X < Y), (2 / lazy(x), 2 / X)):
        assert isinstance(made, Lazy)
        assert_bits(np.asarray(gpuops.evaluate(made)), expected)


def test_traced_arrays_are_refused_where_they_are_computed(jax):  # noqa: F811
    with pytest.raises(TypeError, match="which JAX traces: call gpuops outside of jit, grad and vmap"):
        jax.jit(lambda x: gpuops.sum(lazy(x) * 2))(jax.numpy.asarray(X))


TWO_DEVICES = """
import gpuops, jax, numpy as np
first, second = jax.devices("cpu")
x = np.arange(6, dtype=np.float32).reshape(2, 3)
here, there = jax.device_put(x, first), jax.device_put(x, second)
assert gpuops.sum(gpuops.lazy(there) * 2, axis=0).devices() == {second}
try:
    gpuops.evaluate(gpuops.lazy(here) + there)
except ValueError as failure:
    assert str(first) in str(failure) and str(second) in str(failure), failure
else:
    raise AssertionError("mixed devices were accepted")
"""


def test_jax_arrays_on_two_devices_raise(jax):  # noqa: F811
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", TWO_DEVICES], check=True, env=env)


def test_libraries_do_not_mix(jax):  # noqa: F811
    x = lazy(jax.numpy.asarray(X))
    words = "arrays of two libraries do not mix: jaxlib.ArrayImpl and numpy.ndarray"
    fails(TypeError, f"add: {words}", lambda: x + Y)
    fails(TypeError, f"where: {words}", gpuops.where, x > 0, Y, 0)
    fails(TypeError, f"clip: {words}", np.clip, x, 0, Y)
    words = "arrays of two libraries do not mix: numpy.ndarray and jaxlib.ArrayImpl"
    fails(TypeError, f"subtract: {words}", lambda: lazy(Y) - x)
    for call in (
        lambda: gpuops.sum(x * 2, axis=0, where=MASK),
        lambda: gpuops.evaluate(x * 2, out=np.zeros_like(X)),
        lambda: gpuops.evaluate(lazy(X) * 2, out=x.arrays[0]),
    ):
        with pytest.raises(TypeError, match=r"do not mix: .*jaxlib.ArrayImpl.*") as failure:
            call()
        assert "numpy.ndarray" in str(failure.value)


def test_jax_and_dask_do_not_mix(jax):  # noqa: F811
    x, y = jax.numpy.asarray(X), da.from_array(Y, 5)
    with pytest.raises(TypeError, match="arrays of two libraries do not mix"):
        gpuops.where(x > 0, x, y)
    with pytest.raises(TypeError, match="arrays of two libraries do not mix"):
        gpuops.evaluate(lazy(x) + y)


def test_two_devices_are_named():
    class Context:
        def __init__(self, label):
            self.device = type("Device", (), {"label": label})

    x, y = lazy(np.ones(3)), lazy(np.ones(3))
    for each, label in ((x, "GPU 0"), (y, "GPU 1")):
        Lazy.context.__set__(each, Context(label))
    fails(ValueError, "add: arrays are on GPU 0 and GPU 1", lambda: x + y)


# ------------------------------------------------------------------------------------------------- other libraries

#: Array-likes of which NumPy makes arrays.
LIKE: dict[str, Callable[[], Any]] = {
    "list": lambda: X.tolist(),
    "tuple of rows": lambda: tuple(X),
    "memoryview": lambda: memoryview(X),
    "matrix": lambda: np.matrix(X),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("name", LIKE)
def test_what_numpy_converts_is_an_array(name):
    like = LIKE[name]()
    array = np.asarray(like)
    for got, expected in (
        (gpuops.evaluate(lazy(like) * 2), array * 2),
        (gpuops.sum((lazy(like) - Y) ** 2, axis=1), gpuops.sum((array - Y) ** 2, axis=1)),
        (gpuops.evaluate(lazy(Y) - like), Y - array),
    ):
        assert type(got) is np.ndarray
        assert_bits(got, expected)


def test_operators_of_pandas_leave_expressions_to_these():
    assert Lazy.__pandas_priority__ > 4000  # that of a DataFrame


def test_lists_and_scalars():
    assert_bits(gpuops.evaluate(lazy([1, 2, 3])), np.array([1, 2, 3]))
    assert_bits(gpuops.sum(lazy([1, 2, 3]) * [0.5, 1, 2]), 8.5)
    assert_bits(gpuops.evaluate(lazy(3) * 2.5), np.asarray(7.5))
    assert_bits(gpuops.evaluate(lazy([]) + 1), np.zeros(0))
    fails(ValueError, "lazy: x cannot be converted to an array", lazy, [[1], [2, 3]])


def test_what_is_no_array_is_refused():
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy has such arrays").csr_array(X)
    for call in (lambda: lazy(sparse), lambda: lazy(X) + sparse, lambda: sparse + lazy(X)):
        fails(TypeError, "lazy: x is a scipy.csr_array, not an array; pass x.toarray()", call)
    fails(TypeError, "lazy: x is a numpy.MaskedArray; masked arrays are not supported", lazy, np.ma.array(X))
    for value in (None, "text", {}, object()):
        with pytest.raises(TypeError, match=r"^lazy: x is an? .*, not an array"):
            lazy(value)


@pytest.mark.parametrize("make", [Foreign, Standard])
def test_arrays_of_dlpack(make):
    x, y = make(X), make(Y)
    fetch = (lambda result: result.array) if make is Standard else np.asarray
    assert_bits(fetch(gpuops.evaluate(lazy(x) - y)), X - Y)
    assert_bits(fetch(gpuops.sum(lazy(x) - y, axis=1)), gpuops.sum(X - Y, axis=1))


@pytest.mark.filterwarnings("ignore:You are comparing")
def test_arrays_of_the_array_api_standard(strict):  # noqa: F811
    here, there = (strict.asarray(X, device=strict.Device(name)) for name in ("CPU_DEVICE", "device1"))
    got = gpuops.sum(lazy(there) * 2, axis=0)
    assert got.device == there.device
    assert_bits(np.from_dlpack(got), gpuops.sum(X * 2, axis=0))
    with pytest.raises(ValueError, match=f"{re.escape(str(here.device))}.*{re.escape(str(there.device))}"):
        gpuops.evaluate(lazy(here) + there)


def test_expressions_can_be_copied_and_pickled():
    x = lazy(X) * 2
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert_bits(gpuops.evaluate(made), X * 2)


# ------------------------------------------------------------------------------------------ when elements are computed


@pytest.fixture
def computed(monkeypatch) -> list[Any]:
    """The programs that are run on the CPU, and the launches of kernels."""
    found: list[Any] = []

    def noted(owner: Any, name: str) -> None:
        function = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **given: found.append(name) or function(*args, **given))

    noted(programs, "run")
    noted(emulated.EmulatedDevice, "launch")
    return found


def test_nodes_compute_nothing(backend, computed):
    x, y, row = backend.arrays(X, Y, ROW)
    made = np.exp((lazy(x) - y) ** 2 / row).astype("f8").clip(0, 10)
    made = gpuops.where(made > 1, made, np.sqrt(made)).real + (lazy(y) == row)
    assert not computed
    gpuops.evaluate(made)
    assert computed or backend.name == "gpu"


def test_nodes_of_more_elements_than_memory_holds():
    x = lazy(np.broadcast_to(np.float32(1), (2**30, 2**30)))
    y = gpuops.where((x - 1) ** 2 > x, x, 0)
    assert (y.size, y.dtype) == (2**60, np.float32)


def test_what_arrays_hold_when_they_are_consumed_counts(backend):
    x, y = backend.arrays(X, Y)
    made = (lazy(x) - y) * 2
    for factor in (1, 3, -1):
        x[...] = backend.array(X * factor)
        for _ in range(2):  # the second call hits the cache
            assert_bits(backend.numpy(gpuops.evaluate(made)), (X * factor - Y) * 2)
            assert_bits(backend.numpy(gpuops.max(made, axis=1)), np.max((X * factor - Y) * 2, 1))


def test_constants_are_kept_as_they_were():
    number = np.array(2.0, np.float32)
    made = lazy(X) * number
    number[...] = 3
    assert_bits(gpuops.evaluate(made), X * np.float32(2))


def test_expressions_may_be_used_by_several_threads(device):
    arrays = [device.arrays(X + k, Y) for k in range(4)]
    made = [(lazy(x) - y) * y for x, y in arrays]
    host = [(X + k - Y) * Y for k in range(4)]

    def work(turn: int) -> None:
        for k in range(10):
            at = (turn + k) % len(made)
            x, y = arrays[at]
            assert_bits(device.numpy(gpuops.evaluate(made[at])), host[at])
            got = gpuops.max((lazy(x) - y) * y * (turn + 1), axis=0)
            assert_bits(device.numpy(got), np.max(host[at] * np.float32(turn + 1), 0))

    at_once(work, 8)


def test_expressions_of_numpys_arrays_may_be_used_by_several_threads():
    large = layouts.sample((700, 500))
    made = (lazy(large) - ROW[0]) * 2
    expected, total = (large - ROW[0]) * 2, gpuops.sum((large - ROW[0]) * 2, axis=0)

    def work(turn: int) -> None:
        for k in range(10):
            assert_bits(gpuops.evaluate(made + (turn + k)), expected + np.float32(turn + k))
            assert_bits(gpuops.sum(made, axis=0), total)

    at_once(work, 8)


def at_once(work: Callable[[int], None], threads: int) -> None:
    """Do this in so many threads."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))


# ------------------------------------------------------------------------------------------------- the launch cache


@pytest.fixture
def compiled(monkeypatch) -> list[Any]:
    """The kernels whose text is made."""
    found: list[Any] = []
    source = jit.source
    monkeypatch.setattr(jit, "source", lambda kernel: found.append(kernel) or source(kernel))
    return found


#: Calls of an expression.
CONSUMED: dict[str, Callable[[Any], Any]] = {
    "evaluate": gpuops.evaluate,
    "sum": lambda x: gpuops.sum(x, axis=1),
    "max": lambda x: gpuops.max(x, axis=0),
    "softmax": lambda x: gpuops.softmax(x, axis=1),
    "cumsum": lambda x: gpuops.cumsum(x, axis=1),
}


@pytest.mark.parametrize("name", CONSUMED)
def test_new_arrays_constants_and_shapes_compile_nothing(device, compiled, name):
    def call(rows: int, columns: int, seed: int, factor: float) -> None:
        x, y, row = (layouts.sample(shape, seed=seed) for shape in ((rows, columns), (rows, columns), (columns,)))
        a, b, c = device.arrays(x, y, row)
        got = device.numpy(CONSUMED[name]((lazy(a) - b) * c * factor))
        expected = CONSUMED[name]((x - y) * row * np.float32(factor))
        np.testing.assert_allclose(got, expected, 1e-5, 1e-4)

    for rows in (24, 32, 48):  # also records the call
        call(rows, 64, 0, 2.0)
    known = len(compiled)
    for shape, seed, factor in (((24, 64), 1, 2.0), ((24, 64), 2, 3.5), ((40, 64), 3, -1.0), ((56, 64), 4, 1e-3)):
        for _ in range(2):
            call(*shape, seed, factor)
    assert len(compiled) == known


def test_the_second_call_with_an_expression_hits_the_cache(device, monkeypatch):
    def made(seed: int, factor: float) -> Lazy:
        x, y = device.arrays(*(layouts.sample((12, 10), seed=seed + k) for k in range(2)))
        return (lazy(x) - y) * factor

    missed: list[Any] = []
    miss = launch_cache.miss

    def noted(public: Any, op: Any, args: Any, options: Any, *more: Any) -> Any:
        if not any(isinstance(each, Lazy) for each in (*args, *options.values())):  # it has made a call with arrays
            missed.append(op.name)
        return miss(public, op, args, options, *more)

    monkeypatch.setattr(launch_cache, "miss", noted)
    for call in CONSUMED.values():
        expected = device.numpy(call(gpuops.evaluate(made(5, 2.0))))
        for _ in range(2):  # (the first call of a process registers the array type)
            call(made(0, 2.0))
        assert missed
        missed.clear()
        assert_bits(device.numpy(call(made(5, 2.0))), expected)
        assert not missed
