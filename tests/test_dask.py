"""Dask arrays: lazy calls, results and errors as for whole arrays, chunk types, task names."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpuops
from gpuops.call.arrays import kind
from tests import layouts
from tests.budget import examples, pairs
from tests.compare import accumulator_eps, assert_near, assert_same, fails, magnitude
from tests.conftest import Cpu
from tests.layouts import BFLOAT16, COMMON, COMMON_REALS, FLOATS, HALVES, inexact
from tests.ops import (
    EXTREMA,
    LOGICAL,
    REDUCTIONS,
    SOFTMAXES,
    WITH_AXIS,
    initial,
    reduction_options,
    softmax_options,
)

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")

from dask.utils import key_split  # noqa: E402

from tests.chunks import on_device  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EXACT = (*EXTREMA, *LOGICAL, "where", "expand", "broadcast_to")


@pytest.fixture(autouse=True)
def synchronous_scheduler():
    """Tasks run one after the other, as the tests of errors and the emulator require."""
    with dask.config.set(scheduler="sync"):
        yield


def whole(value: Any) -> Any:
    """A Dask array as a NumPy array; other arguments unchanged."""
    return np.asarray(value.compute()) if isinstance(value, da.Array) else value


def call(op: str, *args: Any, **options: Any) -> None:
    """Check a call with Dask arrays against the same call with whole arrays."""
    try:
        expected = getattr(gpuops, op)(*map(whole, args), **{name: whole(value) for name, value in options.items()})
    except Exception as error:
        with pytest.raises(type(error)) as got:
            getattr(gpuops, op)(*args, **options)
        assert str(got.value) == str(error)
        return
    lazy = getattr(gpuops, op)(*args, **options)
    assert isinstance(lazy, da.Array)
    check_meta(lazy)
    check(op, args, options, np.asarray(lazy.compute()), np.asarray(expected))


def check(op: str, args: Any, options: Any, got: np.ndarray, expected: np.ndarray) -> None:
    """Equal up to rounding, which depends on the order of additions."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if op in EXACT or not inexact(got.dtype):
        assert_same(got, expected)
        return
    inputs = [np.asarray(whole(a)) for a in args]
    size, eps = max(2, *(a.size for a in inputs)), accumulator_eps(got.dtype)
    scale = [magnitude(a.astype("D")).max(initial=1) for a in inputs]
    error = eps * 16 * size * math.prod(scale) * abs(options.get("scale") or 1)
    exact = expected.astype("D" if got.dtype.kind == "c" else "d")
    assert_near(got, exact, error + eps * magnitude(exact), infinities=False)


def check_meta(lazy: Any) -> None:
    """The metadata of a Dask array matches its computed chunks."""
    blocks = dask.compute(*lazy.to_delayed().ravel())
    kinds = (type(lazy._meta), np.generic) if lazy.ndim == 0 else (type(lazy._meta),)
    assert lazy._meta.dtype == lazy.dtype and lazy._meta.ndim == lazy.ndim
    for place, block in zip(np.ndindex(*lazy.numblocks), blocks):
        assert block.dtype == lazy.dtype and isinstance(block, kinds)
        assert block.shape == tuple(c[i] for c, i in zip(lazy.chunks, place))


@st.composite
def chunks(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Uneven chunks, with empty ones among them."""
    made = []
    for n in shape:
        cuts = sorted(draw(st.lists(st.integers(0, n), max_size=3)))
        made.append(tuple(b - a for a, b in zip([0, *cuts], [*cuts, n])))
    return tuple(made)


@st.composite
def arrays(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype, special: bool | None = None) -> Any:
    """A Dask array of random values, cut from an array in any layout."""
    return da.from_array(draw(layouts.arrays(shape, dtype, special)), draw(chunks(shape)))


@st.composite
def masks(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """A mask: a Dask array, an array, a bool."""
    mask = draw(layouts.masks(shape))
    return draw(st.sampled_from([da.from_array(mask, draw(chunks(mask.shape))), mask, mask.tolist(), True, False]))


shapes = layouts.shapes(max_dims=4, max_size=200)


@pytest.mark.turns(2, everywhere=True)
@pytest.mark.parametrize("op", REDUCTIONS)
@examples(60)
@given(data=st.data())
def test_reductions_agree_with_whole_arrays(op, data):
    shape, dtype = data.draw(shapes), data.draw(st.sampled_from(COMMON))
    x = data.draw(arrays(shape, dtype, special=None if op in EXACT else False))
    if op == "prod":
        x = x.astype(bool) if dtype.kind in "bc" else x.map_blocks(np.sign, dtype=dtype)
    options = data.draw(reduction_options(op, shape, x.dtype))
    if data.draw(st.booleans()):
        options["where"] = data.draw(masks(shape))
    if op in ("sum", "mean") and data.draw(st.booleans()):
        options["dtype"] = data.draw(st.sampled_from(FLOATS)) if x.dtype.kind != "c" else np.dtype("D")
    call(op, x, **options)


@pytest.mark.parametrize("op", EXTREMA)
@examples(60)
@given(data=st.data())
def test_max_and_min_of_empty_chunks_need_no_initial(op, data):
    shape, dtype = data.draw(shapes), data.draw(st.sampled_from(layouts.DTYPES))
    assume(math.prod(shape))
    call(op, data.draw(arrays(shape, dtype)), axis=data.draw(layouts.axes(len(shape))))


@pytest.mark.parametrize("op", SOFTMAXES)
@examples(60)
@given(data=st.data())
def test_softmax_agrees_with_whole_arrays(op, data):
    shape = data.draw(shapes)
    x = data.draw(arrays(shape, data.draw(st.sampled_from(COMMON_REALS))))
    options = data.draw(softmax_options(op, shape))
    if data.draw(st.booleans()):
        options["where"] = data.draw(masks(shape))
    call(op, x, **options)


@given(data=st.data())
def test_where_agrees_with_whole_arrays(data):
    shape = data.draw(shapes)
    operands = []
    for _ in range(3):
        array = data.draw(arrays(data.draw(layouts.narrowed(shape)), data.draw(st.sampled_from(COMMON))))
        operands.append(data.draw(st.sampled_from([array, array, whole(array), 2, 1.5, np.float32(3)])))
    assume(any(isinstance(operand, da.Array) for operand in operands))
    call("where", *operands)


@examples(60)
@given(data=st.data())
def test_where_with_a_condition_alone_gives_indices(data):
    shape = data.draw(st.lists(st.integers(0, 7), min_size=1, max_size=3).map(tuple))
    x = data.draw(arrays(shape, data.draw(st.sampled_from(COMMON))))
    found = gpuops.where(x)
    assert {key_split(name) for name in (each.name for each in found)} == {"where"}
    for got, expected in zip(found, np.nonzero(np.asarray(x.compute())), strict=True):
        assert got.dtype == got._meta.dtype == expected.dtype and math.isnan(got.shape[0])
        assert_same(got.compute(), expected)


@examples(60)
@given(data=st.data())
def test_compress_agrees_with_whole_arrays(data):
    a = data.draw(arrays(data.draw(shapes), data.draw(st.sampled_from(COMMON))))
    axis = data.draw(st.sampled_from((None, *range(-a.ndim, a.ndim))))
    length = data.draw(st.integers(0, a.size if axis is None else a.shape[axis]))
    condition = data.draw(arrays((length,), np.dtype(bool)))
    plain, values = np.asarray(condition.compute()), np.asarray(a.compute())
    for one, other in ((condition, a), (condition, values), (plain, a)):
        got = gpuops.compress(one, other, axis)
        assert got.dtype == got._meta.dtype == a.dtype
        assert math.isnan(sum(got.shape)) == (one is condition)
        assert_same(got.compute(), np.compress(plain, values, axis))


def test_conditions_beyond_an_array_raise():
    x = da.ones((4, 3), chunks=(2, 3))
    message = "compress: condition is a dask.Array of 5 elements, more than the 4 of axis 0"
    fails(ValueError, message, gpuops.compress, da.ones(5, chunks=2), x, 0)
    fails(IndexError, "compress: condition is true beyond the 4 elements of axis 0", gpuops.compress, np.ones(5), x, 0)
    assert_same(gpuops.compress([1, 0, 0, 1, 0], x, 0).compute(), np.ones((2, 3)))


@given(data=st.data())
def test_expand_agrees_with_whole_arrays(data):
    shape = data.draw(shapes)
    shape = tuple(n if data.draw(st.booleans()) else 1 for n in shape)
    x = data.draw(arrays(shape, data.draw(st.sampled_from(COMMON))))
    lead = data.draw(st.lists(st.integers(0, 3), max_size=2))
    to = [*lead, *(data.draw(st.integers(0, 4)) if n == 1 else n for n in shape)]
    kept = [-1 if d >= len(lead) and n == shape[d - len(lead)] else n for d, n in enumerate(to)]
    with dask.config.set({"array.chunk-size": data.draw(st.sampled_from(["8 B", "128 MiB"]))}):
        call("expand", x, tuple(kept))
        call("broadcast_to", x, tuple(to))


@given(data=st.data())
def test_matmul_and_dot_agree_with_whole_arrays(data):
    m, n, k = (data.draw(st.sampled_from((0, 1, 2, 5, 9))) for _ in range(3))
    batch = data.draw(st.lists(st.sampled_from((1, 2, 3)), max_size=2))
    shape = [*batch, m, k], [*batch[data.draw(st.integers(0, len(batch))) :], k, n]
    shape = tuple(tuple(n if data.draw(st.integers(0, 3)) else 1 for n in s[:-2]) + tuple(s[-2:]) for s in shape)
    shape = tuple((k,) if data.draw(st.integers(0, 4)) == 0 else s for s in shape)
    a, b = (data.draw(arrays(s, data.draw(st.sampled_from(COMMON)), special=False)) for s in shape)
    call("dot", a, b)
    options: dict[str, Any] = {}
    both_bool = a.dtype == b.dtype == bool
    if data.draw(st.booleans()):
        options["alpha"] = 1 if both_bool else 2
    if data.draw(st.booleans()):
        result = np.matmul(np.zeros(shape[0]), np.zeros(shape[1])).shape
        c = data.draw(arrays(tuple(data.draw(st.sampled_from((n, 1))) for n in result), a.dtype, special=False))
        options |= {"beta": data.draw(st.sampled_from((0, 1))), "c": data.draw(st.sampled_from((c, whole(c), 1)))}
    call("matmul", a, b if data.draw(st.booleans()) else whole(b), **options)


def test_dot_with_a_scalar_multiplies():
    x = da.from_array(np.arange(6.0).reshape(2, 3), 2)
    for scalar in (2, np.float32(2), da.from_array(np.asarray(3.0))):
        call("dot", x, scalar)
        call("dot", scalar, x)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_partial_results_of_half_types_are_not_rounded(dtype):
    x = np.full(4096, 1.001, np.float32).astype(dtype)
    lazy = da.from_array(x, 64)
    exact = x.astype(np.float64).sum()
    assert abs(float(gpuops.sum(lazy, dtype=dtype).compute()) - exact) <= exact * accumulator_eps(
        np.dtype("f4")
    ) * 64 + (abs(float(np.float64(exact).astype(dtype)) - exact))
    assert float(gpuops.mean(lazy).compute()) == float(gpuops.mean(x))
    assert float(gpuops.matmul(lazy, np.ones(4096, dtype)).compute()) == float(np.float64(exact).astype(dtype))
    assert float(gpuops.dot(lazy, np.ones(4096, dtype)).compute()) == float(np.float64(exact).astype(dtype))


@pytest.mark.parametrize("mask", [(6, 1), (1, 8), (8,), (1, 1), (6, 8)], ids=str)
def test_mean_counts_every_element_of_a_broadcast_mask(mask):
    x, chosen = np.arange(48.0).reshape(6, 8), np.arange(math.prod(mask)).reshape(mask) % 3 != 1
    for where in (chosen, da.from_array(chosen, 3)):
        for axis in (0, 1, None):
            call("mean", da.from_array(x, (2, 3)), axis=axis, where=where)


def test_softmax_is_accurate_for_large_values():
    x = (30000 + np.random.default_rng(0).normal(size=(4, 400))).astype(np.float32)
    got = gpuops.softmax(da.from_array(x, (2, 30)), axis=1).compute()
    np.testing.assert_allclose(got, gpuops.softmax(x.astype(np.float64), axis=1), rtol=2e-6)


def test_rows_with_infinities_and_fully_masked_rows():
    x = np.zeros((6, 8), np.float32)
    x[0] = -np.inf
    x[1, :4] = -np.inf
    x[2, 3] = np.inf
    x[3, 7] = np.nan
    mask = np.ones(x.shape, bool)
    mask[4] = False
    mask[5, :4] = False
    for op in SOFTMAXES:
        for where in (True, mask):
            call(op, da.from_array(x, (6, 3)), axis=1, where=where)


# ------------------------------------------------------------------------------------------------------------- errors

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
#: Invalid calls, as functions of the namespace and of an array factory.
WRONG = {
    "axis": lambda op, a: op.sum(a(X), axis=2),
    "axis twice": lambda op, a: op.max(a(X), axis=(0, -2)),
    "axis type": lambda op, a: op.softmax(a(X), axis="0"),
    "mask dtype": lambda op, a: op.mean(a(X), where=a(X)),
    "mask shape": lambda op, a: op.logsumexp(a(X), where=a(X[:2] > 0)),
    "mask without initial": lambda op, a: op.max(a(X), where=a(X > 0)),
    "no identity": lambda op, a: op.min(a(X[:0]), axis=0),
    "initial": lambda op, a: op.sum(a(X.astype("i1")), dtype="i1", initial="x"),
    "dtype": lambda op, a: op.softmax(a(X), dtype="i4"),
    "complex": lambda op, a: op.log_softmax(a(X.astype("F"))),
    "text": lambda op, a: op.any(a(X.astype("U1"))),
    "scale": lambda op, a: op.softmax(a(X), scale=1j),
    "strategy": lambda op, a: op.sum(a(X), strategy="fast"),
    "finish": lambda op, a: op.softmax(a(X), finish="host"),
    "shapes": lambda op, a: op.where(a(X > 0), a(X[:2]), 0),
    "one of two": lambda op, a: op.where(a(X > 0), a(X)),
    "0-d condition": lambda op, a: op.where(a(np.asarray(True))),
    "expand": lambda op, a: op.expand(a(X), (2, 4)),
    "shape": lambda op, a: op.expand(a(X), "a"),
    "broadcast": lambda op, a: op.broadcast_to(a(X), (4, 3)),
    "inner": lambda op, a: op.matmul(a(X), a(X)),
    "batch": lambda op, a: op.matmul(a(np.zeros((2, 3, 4))), a(np.zeros((3, 4, 3)))),
    "0-d operand": lambda op, a: op.matmul(a(X), 2),
    "factor": lambda op, a: op.matmul(a(X), a(X.T), alpha="x"),
    "no c": lambda op, a: op.matmul(a(X), a(X.T), beta=1),
    "c": lambda op, a: op.matmul(a(X), a(X.T), beta=1, c=a(X)),
    "aligned": lambda op, a: op.dot(a(X), a(X)),
    "missing": lambda op, a: op.matmul(a(X)),
    "unknown": lambda op, a: op.sum(a(X), axes=0),
    "too many": lambda op, a: op.dot(a(X), a(X), None, a(X)),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_raised_at_call_time_as_for_whole_arrays(case):
    with pytest.raises(Exception) as expected:
        WRONG[case](gpuops, lambda array: array)
    with pytest.raises(expected.type) as got:
        WRONG[case](gpuops, lambda array: da.from_array(array, 2))
    assert got.type is expected.type and str(got.value) == str(expected.value)


def test_out_raises():
    x = da.from_array(X, 2)
    for call in (
        lambda: gpuops.sum(x, out=np.zeros(())),
        lambda: gpuops.sum(X, out=x),
        lambda: gpuops.sum(x, out=x),
    ):
        with pytest.raises(TypeError, match=r"sum: out is not supported for dask arrays, which cannot be written to"):
            call()


def test_unknown_chunk_sizes_raise():
    x = da.from_array(X, 2)
    with pytest.raises(
        ValueError, match=r"softmax: x has unknown chunk sizes \(nan, 4\); call x.compute_chunk_sizes\(\) first"
    ):
        gpuops.softmax(x[x[:, 0] > 0], axis=0)
    with pytest.raises(ValueError, match=r"sum: where has unknown chunk sizes \(nan,\)"):
        gpuops.sum(x, where=x[0][x[0] > 0] > 0)


def test_dask_arrays_as_scalar_options_raise():
    x = da.from_array(X, 2)
    with pytest.raises(TypeError, match="softmax: scale is a dask.Array, which is not computed: pass scale.compute"):
        gpuops.softmax(x, scale=x[0, 0])
    for axis, words in ((da.from_array(np.asarray(0)), "dask.Array"), (dask.delayed(0), "dask.DelayedLeaf")):
        with pytest.raises(TypeError, match=f"sum: axis is a {words}, which is not computed"):
            gpuops.sum(x, axis=axis)


def test_unsupported_chunk_types_raise():
    x = da.from_array(np.ma.masked_array(X, X > 2), 2)
    with pytest.raises(TypeError, match="sum: a is a numpy.MaskedArray; masked arrays are not supported"):
        gpuops.sum(x)
    sparse = pytest.importorskip("scipy.sparse", reason="needs SciPy")
    x = da.from_array(X, 2).map_blocks(sparse.csr_array)
    with pytest.raises(TypeError, match="sum: a is a dask.Array of scipy.csr_array; only chunks of NumPy and CuPy"):
        gpuops.sum(x)


def test_mixed_chunk_types_raise(device):
    there, theirs = device.array, kind(device.array(X))
    x, gpu = da.from_array(X, 2), on_device(device, X, 2)
    mix = "softmax: NumPy and CuPy arrays do not mix: "
    for where, words in (
        (there(X > 0), f"x is a dask.Array of numpy.ndarray, where is a {theirs}"),
        (on_device(device, X > 0, 2), f"x is a dask.Array of numpy.ndarray, where is a dask.Array of {theirs}"),
    ):
        with pytest.raises(TypeError, match=mix + words):
            gpuops.softmax(x, where=where)
    with pytest.raises(TypeError, match=mix + f"x is a dask.Array of {theirs}, where is a numpy.ndarray"):
        gpuops.softmax(gpu, where=X > 0)
    with pytest.raises(TypeError, match=mix + f"x is a numpy.ndarray, where is a dask.Array of {theirs}"):
        gpuops.softmax(X, where=on_device(device, X > 0, 2))


# ------------------------------------------------------------------------------------------------------------- graphs

#: Calls on chunked arrays, with the names of their own tasks.
BIG = da.from_array(np.random.default_rng(0).normal(size=(8, 100)), (4, 5))
TASKS = {
    "sum": (lambda: gpuops.sum(BIG), {"sum", "sum-partial", "sum-aggregate"}),
    "sum of whole rows": (lambda: gpuops.sum(BIG.rechunk((2, 100)), axis=1), {"sum"}),
    "any": (lambda: gpuops.any(BIG, axis=1), {"any", "any-partial", "any-aggregate"}),
    "mean": (lambda: gpuops.mean(BIG, axis=1), {"mean", "mean-partial", "mean-aggregate"}),
    "masked mean": (
        lambda: gpuops.mean(BIG, axis=1, where=BIG > 0), {"mean", "mean-partial", "mean-aggregate"}
    ),
    "var": (lambda: gpuops.var(BIG, axis=1), {"var", "var-partial", "var-aggregate"}),
    "argmax": (lambda: gpuops.argmax(BIG), {"argmax", "argmax-partial", "argmax-aggregate"}),
    "softmax": (
        lambda: gpuops.softmax(BIG, axis=1),
        {"softmax", "softmax-partial", "softmax-aggregate", "softmax-finish"},
    ),
    "softmax at once": (lambda: gpuops.softmax(BIG, axis=()), {"softmax"}),
    "log_softmax": (
        lambda: gpuops.log_softmax(BIG, axis=1),
        {"log_softmax", "log_softmax-partial", "log_softmax-aggregate", "log_softmax-finish"},
    ),
    "logsumexp": (lambda: gpuops.logsumexp(BIG, axis=1), {"logsumexp", "logsumexp-partial", "logsumexp-aggregate"}),
    "where": (lambda: gpuops.where(BIG > 0, BIG, 0.0), {"where"}),
    "expand": (lambda: gpuops.expand(BIG, (3, -1, -1)), {"expand"}),
    "broadcast_to": (lambda: gpuops.broadcast_to(BIG, (3, 8, 100)), {"broadcast_to"}),
    "matmul": (lambda: gpuops.matmul(BIG, BIG.T), {"matmul", "matmul-partial", "matmul-aggregate"}),
    "matmul and c": (
        lambda: gpuops.matmul(BIG, BIG.T, beta=1, c=BIG[:, :1]),
        {"matmul", "matmul-partial", "matmul-aggregate", "matmul-finish"},
    ),
    "dot": (lambda: gpuops.dot(BIG, BIG.T), {"dot", "dot-partial", "dot-aggregate"}),
}
#: Names of Dask's own tasks: arrays, slices, transposes and comparisons.
GIVEN = {"array", "getitem", "transpose", "gt", "rechunk", "rechunk-merge", "rechunk-split"}


@pytest.mark.parametrize("case", TASKS)
def test_tasks_are_named_after_the_op(case):
    make, names = TASKS[case]
    lazy = make()
    every = {key_split(key) for key in lazy.__dask_graph__()}
    assert every - GIVEN == names
    for key in dask.optimize(lazy)[0].__dask_graph__():  # fused tasks have the names of all their parts
        name = key_split(key)
        assert name in names | GIVEN or any(part in name for part in names), name


@pytest.mark.parametrize("op", ["sum", "logsumexp"])
def test_partial_results_are_merged_in_a_tree(op):
    def last(count):
        x = da.from_array(np.ones((count, 2), np.float32), (1, 2))
        graph = dict(getattr(gpuops, op)(x, axis=0).__dask_graph__())
        return len({key[0] for key in graph if key[0].startswith((f"{op}-partial", f"{op}-aggregate"))})

    assert (last(16), last(17), last(257)) == (1, 2, 3)
    with dask.config.set(split_every=2):
        assert last(16) == 4


@pytest.mark.parametrize("case", TASKS)
def test_equal_calls_have_equal_task_names(case):
    make, _ = TASKS[case]
    assert make().name == make().name


def test_task_names_are_the_same_in_every_process():
    code = (
        "import numpy as np, dask.array as da, gpuops; x = da.from_array(np.arange(9.0), 2);"
        "print(gpuops.softmax(x).name, gpuops.mean(x, where=x > 0).name, gpuops.dot(x, x).name, gpuops.max(x).name)"
    )
    first, second = (subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_threaded_and_multiprocessing_schedulers(scheduler):
    lazy = {case: make() for case, (make, _) in TASKS.items()}
    with dask.config.set(scheduler=scheduler, num_workers=2):
        (there,) = dask.compute(lazy)
    for case, got in there.items():
        np.testing.assert_array_equal(got, lazy[case].compute())


def test_graphs_pickle():
    for make, _ in TASKS.values():
        lazy = make()
        copy = pickle.loads(pickle.dumps(lazy))
        np.testing.assert_array_equal(copy.compute(), lazy.compute())


def test_calls_compute_nothing():
    def fail(block):
        raise AssertionError("computed")

    x = BIG.map_blocks(fail, meta=np.zeros((0, 0)))
    mask = BIG.map_blocks(fail, meta=np.zeros((0, 0), bool))
    for op in WITH_AXIS:
        getattr(gpuops, op)(x, axis=1, where=mask, **initial(op))
    gpuops.where(mask, x, 0)
    gpuops.where(mask)
    gpuops.expand(x, (2, -1, -1))
    gpuops.broadcast_to(x, (2, 8, 100))
    gpuops.matmul(x, x.T, beta=1, c=x[:, :1])
    gpuops.dot(x, x.T)


def test_softmax_reads_each_chunk_twice_and_moves_none():
    seen = []

    def read(block):
        seen.append(block.shape)
        return block

    x = BIG.map_blocks(read, meta=np.zeros((0, 0)))
    lazy = gpuops.softmax(x, axis=1)
    assert lazy.chunks == x.chunks
    lazy.compute()
    assert len(seen) == x.npartitions
    readers = [key for key, task in dask.optimize(lazy)[0].__dask_graph__().items() if x.name in str(task.dependencies)]
    assert len(readers) == 2 * x.npartitions


def test_huge_arrays_are_planned_in_chunks():
    x = da.zeros((2**20, 2**21), dtype="f4", chunks=2**14)
    assert gpuops.sum(x).shape == ()
    assert gpuops.softmax(x, axis=1, strategy="warp").chunks == x.chunks
    assert max(gpuops.expand(x[:1], (2**20, -1)).chunks[0]) * 2**14 * 4 <= 2**28
    assert gpuops.matmul(x, x.T).chunks == (x.chunks[0], x.chunks[0])


def test_import_needs_no_dask():
    code = (
        "import gpuops, numpy, sys; gpuops.sum(numpy.ones(3))\n"
        "assert not {'dask', 'gpuops.adapters.dask'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_byte_swapped_and_memory_mapped_chunks(tmp_path):
    x = da.from_array(X.astype(">f4"), 2)
    assert gpuops.sum(x, axis=0).compute().tolist() == X.sum(0).tolist()
    call("where", da.from_array(X > 3, 2), X.astype(">f4"), 0)
    np.save(tmp_path / "x.npy", X)
    mapped = da.from_array(np.load(tmp_path / "x.npy", mmap_mode="r"), 2)
    call("softmax", mapped, axis=1)
    assert type(gpuops.sum(mapped, axis=0)._meta) is np.ndarray


def test_numpy_operands_work_with_dask_arrays():
    mask = X > 3
    call("sum", X, axis=0, where=da.from_array(mask, 2))
    call("softmax", X, axis=1, where=da.from_array(mask[:1], 2))
    call("sum", da.from_array(X, 2), where=mask.tolist())
    call("sum", da.from_array(X, 2), where=da.from_array(np.asarray(False)))
    call("sum", 2.0, where=da.from_array(np.asarray(True)))
    call("matmul", X, da.from_array(X.T, 2))
    call("where", mask, da.from_array(X, 2), [1, 2, 3, 4])


# ------------------------------------------------------------------------------------------------------ chunks on GPUs


def fetched(device: Cpu, lazy: Any) -> np.ndarray:
    """A result, after a check that each of its chunks is on the device."""
    for block in dask.compute(*lazy.to_delayed().ravel()):
        device.numpy(block)
    assert isinstance(lazy._meta, device.kinds) or lazy.ndim == 0
    return device.numpy(lazy.compute())


@pytest.mark.parametrize("op,dtype", pairs(WITH_AXIS, ["f4", BFLOAT16]), ids=str)
def test_chunks_stay_on_their_device(device, op, dtype):
    values = layouts.sample((4, 40), dtype, special=op != "prod")
    values[1, :13] = -np.inf if op in SOFTMAXES else 1
    mask = np.random.default_rng(1).random(values.shape) < 0.6
    mask[3] = False
    x = on_device(device, values, ((1, 3), (13, 0, 27)))
    for where in (True, mask):
        chosen = True if where is True else on_device(device, where, ((4,), (20, 20)))
        got = fetched(device, getattr(gpuops, op)(x, axis=1, where=chosen, **initial(op)))
        expected = getattr(gpuops, op)(values, axis=1, where=where, **initial(op))
        check(op, (values,), {}, got, np.asarray(expected))


def test_chunks_of_other_ops_stay_on_their_device(device):
    values = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    x, plain = on_device(device, values, ((1, 3), (2, 4))), device.array(values)
    for op, lazy, expected in (
        ("where", gpuops.where(x, x, 0), values),
        ("expand", gpuops.expand(x[:, :1], (2, 4, 3)), np.broadcast_to(values[:, :1], (2, 4, 3))),
        ("broadcast_to", gpuops.broadcast_to(x[:1], (2, 4, 6)), np.broadcast_to(values[:1], (2, 4, 6))),
        ("matmul", gpuops.matmul(x, x.T), values @ values.T),
        ("matmul", gpuops.matmul(plain, x.T, alpha=2, beta=3, c=x[:, :1]), 2 * values @ values.T + 3 * values[:, :1]),
        ("dot", gpuops.dot(x, x.T), values @ values.T),
    ):
        check(op, (values, values), {}, fetched(device, lazy), expected)
    for found, expected in zip(gpuops.where(x), np.nonzero(values), strict=True):
        assert_same(fetched(device, found), expected)
    some = values[0] > 0
    assert_same(fetched(device, gpuops.compress(device.array(some), x, 1)), values[:, some])
    chosen = on_device(device, values.ravel() > 0, ((11, 13),))
    assert_same(fetched(device, gpuops.compress(chosen, x)), values[values > 0])


def test_softmax_of_device_chunks_is_accurate_for_large_values(backend):
    values = np.random.default_rng(0).normal(10_000, 1, (8, 600)).astype(np.float32)
    powers = np.exp(values.astype(np.float64) - values.max(1, keepdims=True))
    got = fetched(backend, gpuops.softmax(on_device(backend, values, ((3, 5), (1, 299, 300))), axis=1))
    np.testing.assert_allclose(got, powers / powers.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize(
    "options", [{"b": 2.0}, {"b": np.float32(-2), "return_sign": True}, {"return_sign": True}], ids=str
)
@pytest.mark.parametrize("chunks", [((1, 3), (13, 27)), ((4,), (40,))], ids=str)
def test_logsumexp_with_a_scalar_weight_stays_on_its_device(backend, options, chunks):
    values = np.random.default_rng(0).normal(size=(4, 40)).astype(np.float32)
    mask = values > 0
    for where in (True, on_device(backend, mask, ((2, 2), (40,)))):
        got = gpuops.logsumexp(on_device(backend, values, chunks), axis=1, where=where, **options)
        right = gpuops.logsumexp(values, axis=1, where=True if where is True else mask, **options)
        for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (got, right)), strict=True):
            check("logsumexp", (values,), {}, fetched(backend, one), other)
    options = {"axis": 1, "return_sign": True}
    scalar = gpuops.logsumexp(np.float32(1), b=on_device(backend, values, chunks), where=where, **options)
    right = gpuops.logsumexp(np.float32(1), b=values, where=mask, **options)
    for one, other in zip(scalar, right, strict=True):
        check("logsumexp", (values,), {}, fetched(backend, one), other)
