"""matmul and dot against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call.dispatch import describe
from gpuops.plan import products as kernels
from gpuops.plan.products import cublas
from gpuops.plan.work import Machine
from tests import compare, layouts
from tests.budget import examples, round_robin
from tests.compare import assert_bits, assert_near, assert_repeatable, assert_same, magnitude, run, widened
from tests.layouts import BFLOAT16, COMMON, DTYPES, FLOATS, HALVES, INTS, LAYOUTS, inexact, lay_out, placed, sample
from tests.works import context_of, execute_plan

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

STRATEGIES = gpuops.strategies("matmul")
F4 = np.dtype("f4")


def takes(strategy: str | None, dtype: np.dtype) -> bool:
    """Whether a strategy multiplies a dtype."""
    return {"pipelined": dtype == F4, "cublas": inexact(dtype)}.get(strategy, True)


def result_dtype(a: np.ndarray, b: np.ndarray, c: Any = None) -> np.dtype:
    """The dtype of a product, in which it is computed."""
    arrays = np.result_type(a.dtype, b.dtype)
    if c is None or (arrays == BFLOAT16 and isinstance(c, float)):  # NumPy itself would promote to float64
        return arrays
    return np.result_type(arrays, getattr(c, "dtype", c))


def check_run(backend: Any, a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, **options: Any) -> np.ndarray:
    """Run a call and compare it with NumPy."""
    got = run(backend, gpuops.matmul, a, b, out=out, **options)
    check(got, a, b, out, **options)
    return got


def check(
    got: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, alpha: Any = 1, beta: Any = 0,
    c: Any = None, strategy: str | None = None, product: Callable[..., Any] = np.matmul,
) -> None:  # fmt: skip
    """Compare a result with NumPy's: in the same dtype for integers, else in double precision."""
    val = result_dtype(a, b, c)
    assert got.dtype == (val if out is None else out.dtype)
    acc = compare.accumulator(val)
    alpha, beta = (widened(np.asarray(factor, acc)) for factor in (alpha, beta))
    a, b, c = (widened(np.asarray(x, val)) for x in (a, b, c if beta else 0))
    addend = beta * c
    exact = np.asarray(alpha * product(a, b) + addend).astype(a.dtype)
    if not inexact(val):
        assert_same(got, exact.astype(got.dtype))
        return
    length = a.shape[-1] if a.ndim and b.ndim else 1
    size = abs(alpha) * product(magnitude(a), magnitude(b)) + magnitude(addend)
    error = compare.accumulator_eps(val) * (8 + math.sqrt(length)) * size
    error = error + (length + 2) * layouts.smallest_subnormal(acc)
    if out is not None:  # the result is rounded to its dtype before the cast to out
        error = error + compare.ulp(val, exact)
    assert_near(got, exact, error, infinities=False)


def promotes(a: np.dtype, b: np.dtype) -> bool:
    """Whether NumPy has a common dtype of the two."""
    try:
        np.result_type(a, b)
    except TypeError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------- any call

SIDES = (1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 33, 40, 0)


@st.composite
def calls(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """The operands and the options of any call."""
    m, n, k = (draw(st.sampled_from(SIDES)) for _ in range(3))
    batch = tuple(draw(st.lists(st.sampled_from((1, 2, 2, 3, 0)), max_size=3)))
    dtype = draw(st.sampled_from(COMMON))
    others = [d for d in COMMON if promotes(d, dtype)] if draw(st.integers(0, 3)) == 0 else [dtype]
    row, column = draw(st.integers(0, 5)) == 0, draw(st.integers(0, 5)) == 0
    a = draw(layouts.arrays((k,) if row else (*draw(layouts.narrowed(batch)), m, k), dtype))
    b = draw(layouts.arrays((k,) if column else (*draw(layouts.narrowed(batch)), k, n), draw(st.sampled_from(others))))
    options: dict[str, Any] = {}
    shape, val = np.matmul(np.zeros(a.shape, bool), np.zeros(b.shape, bool)).shape, result_dtype(a, b)
    if draw(st.booleans()):
        options["alpha"] = draw(factors(val))
    if draw(st.booleans()):
        options["beta"] = draw(factors(val))
        c_shape = shape if draw(st.booleans()) else draw(layouts.narrowed(shape))
        options["c"] = draw(st.one_of(layouts.arrays(c_shape, val), st.sampled_from((1, True))))
    if draw(st.booleans()):
        c = options.get("c")
        mine = isinstance(c, np.ndarray) and c.shape == shape and 0 not in c.strides and draw(st.booleans())
        dtypes = layouts.casts(result_dtype(a, b, c))
        options["out"] = c if mine else draw(layouts.outs(shape, draw(dtypes), (a, b, c)))
    return a, b, options


def factors(val: np.dtype) -> st.SearchStrategy[Any]:
    """Factors that a dtype can hold."""
    if val.kind == "b":
        return st.sampled_from((0, 1, True, False))
    few = (0, 1, 2, 3) if val.kind == "u" else (0, 1, 2, -1, np.int8(3))
    more = (0.5, -2.0, np.float32(1.25)) if inexact(val) else ()
    return st.sampled_from((*few, *more, *((2j, -1 + 0.5j) if val.kind == "c" else ())))


@given(data=st.data())
def test_agrees_with_numpy(backend, data):
    a, b, options = data.draw(calls())
    check_run(backend, a, b, **options)


# ------------------------------------------------------------------------------------------------ every strategy

#: m, n, k: across tile edges, and within one tile.
SIZES = (
    (1, 1, 1), (3, 65, 33), (33, 3, 64), (32, 32, 32), (31, 64, 63), (65, 127, 31), (129, 33, 3), (2, 257, 129),
)  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_products_of_every_size(backend, strategy, size):
    m, n, k = size
    check_run(backend, placed(sample((m, k))), placed(sample((k, n), seed=1)), strategy=strategy)


def padded(values: np.ndarray) -> np.ndarray:
    """A matrix with rows padded by whole packs of 16 bytes."""
    return np.pad(values, ((0, 0), (0, 4)), constant_values=np.nan)[:, :-4]


#: Layouts of a and b, as functions of their values.
PLACES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]] = {
    "rows": (placed, placed),
    "a transposed": (lambda a: placed(a, (1, 0)), placed),
    "b transposed": (placed, lambda b: placed(b, (1, 0))),
    "both transposed": (lambda a: placed(a, (1, 0)), lambda b: placed(b, (1, 0))),
    "padded": (padded, padded),
    "padded and transposed": (lambda a: padded(a.T).T, lambda b: padded(b.T).T),
    "reversed": (lambda a: placed(a, None, (-1, -1)), lambda b: placed(b, None, (-1, 1))),
    "unaligned": (lambda a: placed(a, start=1), lambda b: placed(b, start=3)),
    "unaligned and transposed": (lambda a: placed(a, (1, 0), start=1), lambda b: placed(b, (1, 0), start=3)),
    "sliced": (lambda a: placed(a, None, (2, 3)), lambda b: placed(b, (1, 0), (3, 2))),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_operands_of_every_layout(backend, strategy, place):
    for m, n, k in ((68, 36, 20), (33, 65, 18)):
        a, b = (put(sample(shape, seed=m)) for put, shape in zip(PLACES[place], ((m, k), (k, n)), strict=True))
        check_run(backend, a, b, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches_that_broadcast(backend, strategy):
    m, n, k = 5, 36, 12
    batches = ((3,), (3,)), ((3,), ()), ((), (2, 3)), ((2, 1), (3,)), ((1, 2), (3, 1))
    for left, right in batches:
        a, b = sample((*left, m, k)), sample((*right, k, n), seed=1)
        check_run(backend, a[..., ::-1, :], lay_out(b, "F"), strategy=strategy)
    repeated = np.broadcast_to(sample((m, k)), (4, m, k)), np.broadcast_to(sample((k, 1), seed=1), (4, k, n))
    check_run(backend, *repeated, strategy=strategy)
    apart = placed(sample((2, 3, 2, m, k)), (2, 0, 3, 1, 4), (1, -1, 2, 1, 1))  # batch dims that do not merge
    check_run(backend, apart, sample((3, 1, k, n), seed=1), strategy=strategy)


#: dtypes that differ from others only in size for the kernels: tested with a few strategies, round-robin.
ALIKE = [np.dtype(name) for name in ("i2", "i4", "i8", "u1", "u2", "u4")]


@pytest.mark.parametrize(
    "dtype,strategy",
    [(d, s) for i, d in enumerate(DTYPES) for s in (round_robin(STRATEGIES, 2, i) if d in ALIKE else STRATEGIES)],
    ids=str,
)
def test_takes_every_dtype(backend, dtype, strategy):
    a, b = lay_out(sample((35, 21), dtype, 0, True), "C"), lay_out(sample((21, 37), dtype, 1, True), "C")
    if backend.name == "cpu" or takes(strategy, dtype):
        check_run(backend, a, b, strategy=strategy)
    else:
        with pytest.raises(ValueError, match=f"^matmul: strategy '{strategy}' takes "):
            gpuops.matmul(*backend.arrays(a, b), strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("place", ["rows", "columns", "transposed", "sliced", "reversed", "unaligned", "other dtype"])
def test_out_of_every_layout(backend, place, strategy):
    a, b, c = sample((2, 33, 20)), sample((20, 36), seed=1), sample((2, 33, 36), seed=2)
    order, steps, start, dtype = {
        "rows": ((0, 1, 2), (1, 1, 1), 0, "f4"),
        "columns": ((2, 1, 0), (1, 1, 1), 0, "f4"),
        "transposed": ((0, 2, 1), (1, 1, 1), 0, "f4"),
        "sliced": ((1, 0, 2), (1, 2, 3), 2, "f4"),
        "reversed": ((0, 1, 2), (-1, -1, -1), 0, "f4"),
        "unaligned": ((0, 2, 1), (2, 1, 1), 1, "f4"),
        "other dtype": ((0, 1, 2), (1, 1, 1), 1, "f8"),
    }[place]
    out = placed(np.zeros(c.shape, dtype), order, steps, start)
    check_run(backend, a, b, out, strategy=strategy)
    check_run(backend, a, b, alpha=-2, beta=0.5, c=c, out=out, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_out_may_be_an_operand(backend, strategy):
    for which in ("a", "b"):
        a, b = (placed(sample((20, 20), seed=seed)) for seed in (0, 1))
        check_run(backend, a, b, out={"a": a, "b": b}[which], strategy=strategy)
        check_run(backend, a, b, alpha=2, beta=1, c=a.copy(), out={"a": a, "b": b}[which], strategy=strategy)
    a = placed(sample((20, 20)))
    out = np.ndarray((20, 20), "f4", a.base, 0, (4, 80))  # c transposed, in the memory of both operands
    check_run(backend, a, a.T, beta=-1, c=a, out=out, strategy=strategy)


# ----------------------------------------------------------------------------------------------- factors and addend


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_addend_and_out_are_not_read_if_beta_is_0(backend, strategy):
    a, b, c = sample((9, 12)), sample((12, 20), seed=1), np.full((9, 20), np.nan, "f4")
    for options in ({"beta": 0}, {"beta": 0.0, "alpha": 2}):
        for target in (None, placed(c)):
            got = check_run(backend, a, b, c=c if target is None else target, out=target, strategy=strategy, **options)
            assert np.isfinite(got).all()
    for size in (9, 1):  # a vector product too
        out = placed(np.full((size, 20), np.nan, "f4"))
        assert np.isfinite(check_run(backend, a[:size], b, out=out, strategy=strategy)).all()


@pytest.mark.parametrize("shape", [(4, 9, 20), (9, 20), (20,), (4, 1, 1), (9, 1), (1, 1, 1), ()], ids=str)
@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_addend_broadcasts(backend, strategy, shape):
    a, b = sample((4, 9, 12)), sample((12, 20), seed=1)
    c = lay_out(sample(shape, seed=2), "C")
    check_run(backend, a, b, beta=2, c=c, strategy=strategy)
    check_run(backend, a, b, alpha=-0.5, beta=3, c=np.broadcast_to(c, (4, 9, 20)), strategy=strategy)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["rows", "columns"])
@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_accumulates_in_place(backend, strategy, order):
    for m, n, k in ((33, 36, 20), (1, 40, 7), (40, 1, 7), (5, 6, 0)):
        c = placed(sample((m, n), seed=2), order)
        check_run(backend, sample((m, k)), sample((k, n), seed=1), beta=1, c=c, out=c, strategy=strategy)
    c = placed(sample((33, 36), seed=2), order, (2, 1), 3)
    check_run(backend, sample((33, 8)), sample((8, 36), seed=1), alpha=0.5, beta=-2, c=c, out=c, strategy=strategy)


@pytest.mark.parametrize("place", ["transposed", "forward", "reversed"])
@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_out_may_overlap_the_addend(backend, strategy, place):
    c, _, out = layouts.overlapping(place, 40)
    check_run(backend, sample((40, 8)), sample((8, 40), seed=1), out, beta=1, c=c, strategy=strategy)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_factors_of_every_dtype(backend, dtype):
    for alpha, beta in ((0, 1), (1, 1)) if dtype in layouts.BOOL else ((3, 1), (1, 2), (0, 5)):
        a, b, c = (sample(shape, dtype, seed) for seed, shape in enumerate(((5, 7), (7, 9), (5, 9))))
        check_run(backend, a, b, alpha=alpha, beta=beta, c=c)
        check_run(backend, a, b, alpha=dtype.type(alpha))
    if dtype.kind == "c":
        check_run(backend, a, b, alpha=1 - 2j, beta=0.5j, c=c)
    elif dtype.kind == "i":
        check_run(backend, a, b, alpha=-3, beta=-1, c=c)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "pipelined"])
def test_factors_of_half_types_are_float32(backend, strategy, dtype):
    a, b, c = np.full((2, 3), 1, dtype), np.full((3, 2), 1, dtype), np.full((2, 2), 1, dtype)
    got = run(backend, gpuops.matmul, a, b, alpha=1 / 3, strategy=strategy)
    assert_bits(got, np.full((2, 2), np.float32(1 / 3) * 3).astype(dtype))
    got = run(backend, gpuops.matmul, a, b, alpha=1e5, beta=-3e5, c=c, strategy=strategy)
    assert_bits(got, np.zeros((2, 2), dtype))  # float16 holds neither factor


# ------------------------------------------------------------------------------------------- the kernel `pipelined`


def check_tile(
    device: Any, a: np.ndarray, b: np.ndarray, tile: kernels.Tile, splits: int, whole: int = 0,
    out: np.ndarray | None = None, alpha: float = 1, beta: float = 0, c: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Check a float32 product by ``pipelined`` with a given tile; split-K applies to all tiles but ``whole``."""
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    out = np.zeros((*a.shape[:-1], n), F4) if out is None else out
    hosts = {"a": a, "b": b, "out": out} | ({} if c is None else {"c": c})
    there = dict(zip(hosts, device.arrays(*hosts.values()), strict=True))
    context = context_of(there["a"])
    specs = {name: context.spec(name, array, context.device.machine)[0] for name, array in there.items()}
    operand_layouts = {
        name: kernels.Layout(name, spec.dtype.name, spec.steps, spec.start) for name, spec in specs.items()
    }
    scalars = (np.float32(factor).tobytes() for factor in (alpha, beta))
    problem = kernels.problem("float32", (m, n, k), out.shape[:-2], operand_layouts, *scalars, alpha != 1)
    ways = [kernels.way(problem.a, problem.m, k), kernels.way(problem.b.turned, problem.n, k)]
    plan = kernels.tiled(problem, "pipelined", tile, splits, whole)
    constants = dict(plan.steps[0].kernel.constants)
    assert [constants["WAY_A"], constants["WAY_B"]] == [kernels.WAYS[name] for name in ways]
    execute_plan(plan, **there)
    got = device.numpy(there["out"])
    check(got, a, b, out, alpha, beta, c)
    return got


#: Layouts of an operand (size, k) that select each panel way: the order of its dims, and its start.
WAY_LAYOUTS = {"packed": ((1, 0), 0), "turned": ((0, 1), 0), "across": ((1, 0), 1), "deep": ((0, 1), 1)}


def operand_for(way: str, size: int, k: int, seed: int) -> np.ndarray:
    """An operand (size, k) that takes this way to shared memory."""
    order, start = WAY_LAYOUTS[way]
    x = placed(sample((size, k), seed=seed), order, start=start)
    matrix = kernels.Matrix("x", "float32", *(s // 4 for s in x.strides), 0, x.ctypes.data % 16, ())
    assert kernels.way(matrix, size, k) == way
    return x


def each_way() -> list[Any]:
    """Each tile with each way of either operand, and each pair of ways: half of them per run, round-robin."""
    ways = tuple(kernels.WAYS)
    return [
        pytest.param(tile, way, ways[(i + turn) % 4], id=f"{tile.m}x{tile.n}-{way}-{ways[(i + turn) % 4]}")
        for turn, tile in enumerate(kernels.TILES)
        for i, way in round_robin([*enumerate(ways)], 2, turn)
    ]


@pytest.mark.parametrize("tile,way_a,way_b", each_way())
def test_every_tile_with_every_panel_way(device, tile, way_a, way_b):
    m, n, step = tile.m, tile.n, tile.step
    packs = (m, n, step), (m + 4, n - 28, 2 * step + 4), (4, 8, 4), (12, 4, 3 * step - 4)
    odd = ((m - 1, n + 1, step + 1), (1, 3, 5)) if {way_a, way_b} <= {"across", "deep"} else ()
    for m, n, k in (*packs, *odd):
        a, b = operand_for(way_a, m, k, 0), operand_for(way_b, n, k, 1).T
        for splits in (1, 2) if tile.resident == 1 and k > step else (1,):
            check_tile(device, a, b, tile, splits)


SHARED = [tile for tile in kernels.TILES if tile.resident == 1]  # tiles that split-K may use


@pytest.mark.parametrize("splits", [2, 5])
@pytest.mark.parametrize("tile", SHARED, ids=lambda t: f"{t.m}x{t.n}")
def test_split_k_tiles(device, tile, splits):
    m, n, k = tile.m + 4, tile.n - 4, (splits + 1) * tile.step + 4
    a, b, c = operand_for("turned", m, k, 0), operand_for("turned", n, k, 1).T, sample((m, n), seed=2)
    for options in ({}, {"alpha": 0.5, "beta": 2, "c": c}):
        got = check_tile(device, a, b, tile, splits, **options)
    assert_bits(check_tile(device, a, b, tile, splits, **options), got)


@pytest.mark.parametrize("whole", [1, 3])
@pytest.mark.parametrize("tile", SHARED, ids=lambda t: f"{t.m}x{t.n}")
def test_split_k_of_the_last_tiles_only(device, tile, whole):
    m, n, k = 2 * tile.m - 3, 2 * tile.n - 5, 3 * tile.step - 1
    c = sample((m, n), seed=2)
    check_tile(device, sample((m, k)), sample((k, n), seed=1), tile, 3, whole, c, alpha=3, beta=2, c=c)


@pytest.mark.parametrize("tile", kernels.TILES[1:], ids=lambda t: f"{t.m}x{t.n}x{t.slices}")
@pytest.mark.parametrize("splits", [1, 4])
def test_tiles_of_batched_products(device, tile, splits):
    splits = splits if tile.resident == 1 else 1
    m, n, k = tile.m + 3, 37, 4 * tile.step + 1
    a, b = np.broadcast_to(sample((1, m, k)), (3, m, k)), sample((3, k, n), seed=1)
    check_tile(device, a, b, tile, splits)
    out = placed(sample((3, m, n), seed=3), (0, 2, 1))
    check_tile(device, a, b, tile, splits, out=out, beta=1, c=out)


def test_huge_strides_of_length_1_dims(device):
    far = 2**30  # bytes, along dims of length 1
    a, b = sample((1, 70)), sample((70, 1), seed=1)
    apart = [np.lib.stride_tricks.as_strided(x, x.shape, strides) for x, strides in ((a, (far, 4)), (b, (4, -far)))]
    for left, right in (apart, (apart[0], sample((70, 3), seed=2)), (sample((3, 70), seed=2), apart[1])):
        check_run(device, left, right, strategy="pipelined")
    one = np.lib.stride_tricks.as_strided(sample((3, 1)), (3, 1), (4, far))
    check_run(device, one, sample((1, 5), seed=1), strategy="pipelined")


def test_grouped_tile_order(device):
    tile = kernels.TILES[-1]
    for rows, cols in ((kernels.GROUP + 3, 2), (2 * kernels.GROUP, 3), (1, 5)):
        m, n, k = tile.m * rows, tile.n * cols, 3
        check_tile(device, sample((m, k)), sample((k, n), seed=1), tile, 1)


# ------------------------------------------------------------------------------------------------- shapes and dtypes

SHAPES = (
    ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((2, 3), (3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)), ((1, 3), (3, 1)), ((1,), (1,)), ((2, 1), (1, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
    ((0,), (0,)), ((0,), (0, 3)), ((2, 0), (0,)), ((0, 2, 3), (3, 2)), ((0, 0), (0, 0)), ((5, 0, 2), (1, 2, 4)),
)  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_result_shapes_match_numpy(backend, strategy, shapes):
    a, b = (sample(shape, seed=seed) for seed, shape in enumerate(shapes))
    got = check_run(backend, a, b, strategy=strategy)
    assert got.shape == np.matmul(a, b).shape
    c = sample(got.shape[-1:], seed=2)
    check_run(backend, a, b, beta=2, c=c, strategy=strategy)
    if got.size:
        check_run(backend, a, b, lay_out(np.zeros(got.shape, F4), "unaligned"), strategy=strategy)


def test_products_of_two_vectors_are_0d_results_of_the_backend(backend):
    x, y = backend.arrays(sample((5,)), sample((5,), seed=1))
    for options in ({}, {"alpha": 2}, {"beta": 1, "c": 3}):
        got = gpuops.matmul(x, y, **options)
        assert isinstance(got, np.float32 if backend.name == "cpu" else backend.kinds) and got.shape == ()


@pytest.mark.parametrize("other", DTYPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_promote_like_numpy(backend, dtype, other):
    a, b, c = backend.array(np.zeros((0, 3), dtype)), backend.array(np.zeros((3, 4), other)), np.zeros((1, 4), other)
    if not promotes(dtype, other):
        for function in (gpuops.matmul, gpuops.dot):
            with pytest.raises(TypeError, match=f"^{function.__name__}: dtypes {dtype.name} and {other.name} have no"):
                function(a, b)
        return
    val = np.result_type(dtype, other)
    assert gpuops.matmul(a, b).dtype == gpuops.dot(a, b).dtype == val
    same = backend.array(np.zeros((3, 4), dtype))
    assert gpuops.matmul(a, same, c=backend.array(c)).dtype == val
    assert gpuops.matmul(a, same, alpha=1, beta=0).dtype == dtype


@pytest.mark.parametrize("dtype,other", [("i1", "u1"), ("f4", "f8"), ("f2", "f4"), ("?", "f4"), ("i4", "c8")])
@pytest.mark.parametrize("strategy", [None, "vectorized"])
def test_operands_of_two_dtypes(backend, strategy, dtype, other):
    a, b = sample((20, 12), dtype), sample((12, 24), other, 1)
    check_run(backend, a, b, strategy=strategy)
    check_run(backend, b.T, a.T, beta=2, c=sample((20,), dtype, 2), strategy=strategy)


@pytest.mark.parametrize("c", [True, 3, 2.5, 1 - 2j])
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f2", BFLOAT16, "f4", "c8"], ids=str)
def test_python_scalar_addends_adopt_the_dtype(backend, dtype, c):
    got = check_run(backend, sample((4, 5), dtype), sample((5, 6), dtype, 1), beta=1, c=c)
    weak = dtype == BFLOAT16 and not isinstance(c, complex)  # NumPy itself would promote a float to float64
    assert got.dtype == (dtype if weak else np.result_type(np.dtype(dtype), c))


def test_numpy_scalar_addends_keep_their_dtype(backend):
    for c in (np.float64(2.5), np.array(2.5)):
        got = backend.numpy(gpuops.matmul(*backend.arrays(np.ones((2, 3), "f4"), np.ones((3, 2), "f4")), beta=2, c=c))
        assert_same(got, np.full((2, 2), 8.0))


# ------------------------------------------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize("strategy", [None, *(s for s in STRATEGIES if s != "pipelined")])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_types_accumulate_in_float32_and_round_once(backend, dtype, strategy):
    a, b = np.full((3, 513), 1, dtype), np.full((513, 2), 1, dtype)
    a[:, 0] = 2048  # 2048 + 1 rounds to 2048 in either type
    got = run(backend, gpuops.matmul, a, b, strategy=strategy)
    assert_bits(got, np.full((3, 2), 2560).astype(dtype))
    a[:, 0] = 1000  # 1512 needs more digits than bfloat16 has
    got = run(backend, gpuops.matmul, a, b, beta=1, c=b[0], strategy=strategy)
    assert_bits(got, np.full((3, 2), 1513.0).astype(dtype))


@pytest.mark.parametrize(
    "strategy,dtype", [(s, d) for s in (None, *STRATEGIES) for d in FLOATS if takes(s, d)], ids=str
)
def test_subnormals_are_kept(backend, dtype, strategy):
    tiny = layouts.smallest_subnormal(dtype)
    a = (np.array([[3, 1, 2, 0], [0, -5, 0, 0]]).astype("f8") * tiny).astype(dtype)
    b, c = np.ones((4, 3), dtype), a[0, 0]
    got = run(backend, gpuops.matmul, a, b, strategy=strategy)
    assert_bits(got, np.repeat((np.array([[6], [-5]]).astype("f8") * tiny).astype(dtype), 3, 1))
    got = run(backend, gpuops.matmul, a, b, beta=1, c=np.full(3, c), strategy=strategy)
    assert_bits(got, np.repeat((np.array([[9], [-2]]).astype("f8") * tiny).astype(dtype), 3, 1))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integers_wrap_around(backend, dtype):
    info = np.iinfo(dtype)
    a, b = np.full((3, 40), info.max, dtype), np.full((40, 5), info.max, dtype)
    b[:, 1] = info.min
    b[:, 2] = info.max // 3
    for strategy in (None, "naive", "blocktile_1d"):
        check_run(backend, a, b, strategy=strategy)
        check_run(backend, a, b, alpha=info.max, beta=info.max, c=b[0], strategy=strategy)


@pytest.mark.parametrize("strategy", [None, *(s for s in STRATEGIES if s not in ("pipelined", "cublas"))])
def test_bool_products_are_true_if_any_pair_is(backend, strategy):
    a, b = np.zeros((3, 300), bool), np.zeros((300, 4), bool)
    a[1, :] = b[:, 2] = True  # 300 pairs: a uint8 sum would wrap to 44
    a[2, 255] = b[255, 0] = True
    got = check_run(backend, a, b, strategy=strategy)
    assert got.tolist() == [[False] * 4, [True, False, True, False], [True, False, True, False]]


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nan_and_inf_stay_in_their_row_and_column(backend, strategy, value):
    a, b = sample((67, 36)), sample((36, 68), seed=1)
    a[66, 35] = a[0, 0] = value
    b[35, 67] = value
    got = check_run(backend, placed(a), placed(b), strategy=strategy)
    odd = ~np.isfinite(got)
    assert odd[[0, 66]].all() and odd[:, 67].all() and not odd[1:66, :67].any()


# ---------------------------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_repeated_calls_are_bitwise_identical(backend, strategy):
    assert_repeatable(backend, gpuops.matmul, sample((33, 130)), sample((130, 34), seed=1), strategy=strategy)


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_operands_are_not_modified(backend, strategy):
    hosts = [lay_out(sample((20, 20), seed=seed), "sliced") for seed in range(3)]
    there = backend.arrays(*hosts)
    gpuops.matmul(*there[:2], alpha=2, beta=1, c=there[2], strategy=strategy)
    for array, host in zip(there, hosts, strict=True):
        assert_bits(backend.numpy(array), host)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["i1", "f2", "f8", "c16"])
def test_reads_every_layout(backend, dtype, layout):
    a, b = lay_out(sample((3, 20, 32), dtype), layout), lay_out(sample((3, 32, 24), dtype, 1), layout)
    check_run(backend, a, b)
    check_run(backend, a, b[0])
    check_run(backend, b.swapaxes(-1, -2), a.swapaxes(-1, -2))


def test_overlapping_sliding_windows(backend):
    x = np.lib.stride_tricks.sliding_window_view(np.arange(99, dtype="f4"), 20)
    for strategy in (None, *STRATEGIES):
        check_run(backend, x, x.T, strategy=strategy)
        check_run(backend, x[:, :1], x[:1], strategy=strategy)


def test_lists_and_scalars_give_numpy_results():
    assert gpuops.matmul([1, 2], [3, 4]) == 11
    assert gpuops.matmul([[1.0, 2.0]], [[3.0], [4.0]], alpha=2, beta=1, c=0.5).tolist() == [[22.5]]
    assert gpuops.matmul([True, False], [1, 1]).dtype == np.int64


def test_new_results_are_c_contiguous(backend):
    a, b = backend.arrays(lay_out(sample((4, 5)), "F"), lay_out(sample((5, 6)), "F"))
    assert gpuops.matmul(a, b).flags.c_contiguous


# ------------------------------------------------------------------------------------------------------------- dot


@st.composite
def products(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Operands of a dot product that NumPy takes."""
    length = draw(st.sampled_from([0, 1, 2, 5, 33, 300, 5000]))
    x_kept, y_kept = draw(st.sampled_from([((), ()), ((), ()), ((3,), ()), ((), (4,)), ((2, 3), (4,)), ((3,), (2, 4))]))
    x = draw(layouts.arrays((*x_kept, length), draw(st.sampled_from(COMMON))))
    shape = (*y_kept[:-1], length, *y_kept[-1:])
    y = draw(layouts.arrays(shape, draw(st.sampled_from([d for d in COMMON if promotes(d, x.dtype)]))))
    return x, y


def check_dot(backend: Any, x: np.ndarray, y: np.ndarray) -> None:
    """Compare gpuops.dot with NumPy's."""
    check(run(backend, gpuops.dot, x, y), x, y, product=np.dot)


@examples(60)
@given(data=st.data())
def test_dot_agrees_with_numpy(backend, data):
    check_dot(backend, *data.draw(products()))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dot_of_every_dtype_and_alignment(backend, dtype):
    memory = [sample((9000,), dtype, seed) for seed in range(2)]
    places = ((0, 0, 8192), (1, 1, 8191), (1, 0, 8191), (3, 5, 64), (0, 0, 1))
    for first, second, length in round_robin(places, 2, DTYPES.index(dtype)):
        check_dot(backend, memory[0][first : first + length], memory[1][second : second + length])
    for step in round_robin((-1, 3), start=DTYPES.index(dtype)):
        x = memory[0][::step]
        check_dot(backend, x, memory[1][: x.size])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dot_of_long_vectors_of_which_one_cannot_be_read_in_packs(backend, dtype):
    memory = [sample((50_000,), dtype, seed) for seed in range(2)]
    for first, second in (
        (slice(1, 40_008), slice(40_007)), (slice(40_000), slice(3, 40_003)), (slice(0, 40_000, 2), slice(20_000)),
        (slice(20_001), slice(40_001, None, -2)),
    ):  # fmt: skip
        check_dot(backend, memory[0][first], memory[1][second])


@pytest.mark.parametrize("dtype", ["f4", BFLOAT16], ids=str)
def test_dot_of_long_vectors_that_begin_anywhere(backend, dtype):
    x, y = (sample((2**18 + 9,), dtype, seed) for seed in range(2))
    check_dot(backend, x[1:], y[:-1])


@pytest.mark.parametrize(
    "shapes",
    [
        ((), ()), ((), (3, 4)), ((5,), ()), ((4, 300), (300,)), ((300,), (300, 40)), ((2, 9), (9, 3)),
        ((2, 3, 9), (9, 4)), ((3, 9), (2, 9, 4)), ((2, 3, 9), (2, 4, 9, 5)), ((2, 0), (3, 0, 4)), ((0, 9), (9, 3)),
    ],
    ids=str,
)  # fmt: skip
def test_dot_of_other_shapes(backend, shapes):
    for dtype in ("f4", "i2", "c8", BFLOAT16):
        check_dot(backend, *(sample(shape, dtype, seed) for seed, shape in enumerate(shapes)))


# ------------------------------------------------------------------------------------------------- NumPy's signature


def test_beta_defaults_to_1_with_an_addend(backend):
    product = partial(run, backend, gpuops.matmul, sample((4, 5)), sample((5, 6), seed=1))
    c = sample((4, 6), seed=2)
    assert_bits(product(c=c), product(c=c, beta=1))
    assert_bits(product(c=c, beta=0), product())
    assert_bits(product(c=2), product(c=2, beta=1))


AXES = [
    ((3, 4), (4, 5), [(0, 1), (0, 1), (0, 1)]), ((4, 3), (5, 4), [(1, 0), (-1, -2), (1, 0)]),
    ((4, 7, 3), (7, 4, 5), [(2, 0), (1, 2), (0, 2)]), ((3, 2, 4), (4,), [(0, 2), 0, 0]), ((4,), (3, 4), [0, (1, 0), 0]),
    ((4, 2), (2, 4, 3), [(1, 0), (1, 2), (0, 2)]), ((4,), (4,), [0, 0, ()]), ((4,), (4,), [(0,), (0,), ()]),
    ((3, 2, 4), (4,), [(0, 2), (0,), (1,)]),
]  # fmt: skip


@pytest.mark.parametrize("a,b,axes", AXES, ids=str)
def test_axes_match_numpy(backend, a, b, axes):
    a, b = np.round(sample(a) * 8), np.round(sample(b, seed=1) * 8)
    expected = np.matmul(a, b, axes=axes)
    there = backend.arrays(a, b)
    assert_same(backend.numpy(gpuops.matmul(*there, axes=axes)), expected)
    out = backend.array(np.full(expected.shape, 7, "f4"))
    assert gpuops.matmul(*there, out=out, axes=axes) is out
    assert_same(backend.fetch(out), expected)
    da = pytest.importorskip("dask.array", reason="chunks are Dask's")
    chunked = [da.from_array(x, chunks=2) for x in (a, b)]
    assert_same(gpuops.matmul(*chunked, axes=axes).compute(), expected)


def test_invalid_axes_raise(backend):
    a, b = backend.arrays(np.ones((3, 4), "f4"), np.ones((4, 5), "f4"))
    vector, AxisError = backend.array(np.ones(4, "f4")), np.exceptions.AxisError
    for axes, right, kind, rule in (
        (3, b, TypeError, "axes must be a list, got 3"),
        ([(0, 1)], b, ValueError, "axes must have an entry for a, b and the result"),
        ([(0, 1), (0, 1)], b, ValueError, "axes must have an entry for a, b and the result"),
        ([(0, 1), 0, (0, 1)], b, AxisError, "axes must give 2 of the axes of b, got 0"),
        ([(0, 1), (0, 1), 0], vector, AxisError, r"axes must give 1 of the axes of b, got \(0, 1\)"),
        ([(0, 1), (0, 2), (0, 1)], b, AxisError, r"axes \(0, 2\) of b are out of range for 2 dims"),
        ([(1, 1), (0, 1), (0, 1)], b, ValueError, r"axes \(1, 1\) of a name a dimension twice"),
        ([(0, 1.5), (0, 1), (0, 1)], b, TypeError, "axes must be a list of ints and tuples of ints"),
    ):
        with pytest.raises(kind, match=f"^matmul: {rule}"):
            gpuops.matmul(a, right, axes=axes)
    with pytest.raises(ValueError, match="^matmul: out has 1 dims, the result has 2"):
        gpuops.matmul(a, b, out=vector, axes=[(0, 1), (0, 1), (0, 1)])


def test_casting_rules_match_numpy(backend):
    a, b = backend.arrays(np.ones((3, 4)), np.ones((4, 5)))
    out = backend.array(np.zeros((3, 5), "i4"))
    gpuops.matmul(a, b, out=out, casting="unsafe")
    assert_same(backend.fetch(out), np.full((3, 5), 4, "i4"))
    with pytest.raises(TypeError, match="^matmul: cannot cast the result from float64 to int32 of out"):
        gpuops.matmul(a, b, out=out)
    single = backend.array(np.ones((4, 5), "f4"))
    with pytest.raises(TypeError, match="^matmul: cannot cast b from float32 to float64 with casting rule 'no'"):
        gpuops.matmul(a, single, casting="no")
    with pytest.raises(ValueError, match="^matmul: unknown casting 'rough'; valid: no, equiv, safe"):
        gpuops.matmul(a, b, casting="rough")


def test_out_may_be_a_one_element_tuple(backend):
    a, b, out = *backend.arrays(np.ones((3, 4)), np.ones((4, 5))), backend.array(np.zeros((3, 5)))
    assert gpuops.matmul(a, b, (out,)) is out
    assert gpuops.matmul(a, b, out=(out,)) is out
    assert gpuops.sum(a, 1, out=(backend.array(np.zeros(3)),)).shape == (3,)


DOTS = [
    ((4,), (4,)), ((3, 4), (4,)), ((3, 4), (4, 5)), ((2, 3, 4), (5, 4, 6)), ((), (3, 4)), ((4,), (2, 4, 3)),
    ((0,), (0,)),
]  # fmt: skip


@pytest.mark.parametrize("x,y", DOTS, ids=str)
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_dot_into_out(backend, x, y, order):
    a, b = (np.asarray(np.round(sample(shape, seed=seed) * 8)) for seed, shape in enumerate((x, y)))
    expected = np.dot(a, b)
    step = 2 if order == "strided" else 1
    memory = np.full([step * n for n in np.shape(expected)], 7, "f8", order="F" if order == "F" else "C")
    out = backend.array(memory[(..., *[slice(None, None, step)] * memory.ndim)])
    assert gpuops.dot(*backend.arrays(a, b), out) is out
    assert_same(backend.fetch(out), np.asarray(expected, "f8"))


def test_dot_out_may_overlap_its_operands(backend):
    square = np.round(sample((6, 6)) * 8).astype("f8")
    for view in (lambda x: x, lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::-1]):
        x = backend.array(square)
        gpuops.dot(x, x.T, out=view(x))
        assert_same(view(backend.fetch(x)), square @ square.T)
    tall = backend.array(np.arange(24.0).reshape(4, 6))
    gpuops.dot(tall, tall[0], out=tall[:, 2])
    assert_same(backend.fetch(tall)[:, 2], np.arange(24.0).reshape(4, 6) @ np.arange(6.0))


def test_dot_into_invalid_out_raises(backend):
    a, b = backend.arrays(np.ones((3, 4)), np.ones((4, 5)))
    with pytest.raises(ValueError, match=r"^dot: out has shape \(3, 4\), the result has shape \(3, 5\)"):
        gpuops.dot(a, b, out=backend.array(np.zeros((3, 4))))
    with pytest.raises(TypeError, match="^dot: cannot cast the result from float64 to int32 of out"):
        gpuops.dot(a, b, out=backend.array(np.zeros((3, 5), "i4")))


# --------------------------------------------------------------------------------- operands unsupported by cuBLAS


def gemms(made):
    return [step for step in made.steps if isinstance(step, kernels.Gemm)]


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16"])
def test_batches_with_negative_strides_are_copied_for_cublas(device, dtype):
    a, b = sample((3, 16, 16), dtype), sample((3, 16, 65), dtype, 1)
    there = device.array(a), device.array(b[::-1])[::-1]
    plan = describe(gpuops.matmul, *there, strategy="cublas").plan
    assert all(stride >= 0 for step in gemms(plan) for stride in step.strides)
    result = gpuops.matmul(*there, strategy="cublas")
    np.testing.assert_allclose(device.numpy(result), a @ b, rtol=1e-4, atol=1e-4)


def test_misaligned_operands_are_copied_for_cublas(device):
    memory = np.round(sample((2 * 16 * 16 + 1,)) * 8)
    a = memory[1:].view("c8").reshape(16, 16)
    there = device.array(a), device.array(a.copy())
    assert {name for name, _ in describe(gpuops.matmul, *there, strategy="cublas").plan.workspace} == {"dense_a"}
    assert_same(device.numpy(gpuops.matmul(*there, strategy="cublas")), a @ a)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [(20, 21, 22), (16, 24, 21), (16, 21, 24), (9, 16, 8), (16, 16, 16)], ids=str)
def test_halves_in_loose_rows_are_copied_to_whole_packs_for_cublas(device, monkeypatch, dtype, layout, sizes):
    monkeypatch.setattr(cublas, "WORK", 1)
    monkeypatch.setattr(cublas, "REUSE", 0)
    (m, n, k), options = sizes, {"alpha": 2.0, "beta": 3.0}
    a, b, c = lay_out(sample((m, k), dtype), layout), sample((k, n), dtype, 1), sample((m, n), dtype, 2)
    check_run(device, a, b)
    check_run(device, a, b, out=np.zeros((m, n + 3), dtype)[:, 1 : n + 1], c=c, **options)
    check_run(device, np.stack([a, a[::-1], a]), b[None], c=c, **options)
    plan = describe(gpuops.matmul, device.array(a), device.array(b)).plan
    for step in gemms(plan):
        assert all(size % 8 == 0 for size in (*step.sizes[1:], *step.leading))


def test_cublas_copies_beyond_device_memory_are_not_planned():
    large = kernels.Layout("a", "float64", (0, 0), 0)
    small = kernels.Layout("b", "float64", (0, 0), 0)
    out = kernels.Layout("out", "float64", (4, 1), 0)
    layouts, one = {"out": out, "a": large, "b": small}, np.ones(1).tobytes()
    problem = kernels.problem("float64", (2**30, 4, 2**30), (), layouts, one, bytes(8), False)
    machine = Machine(132, shared=2**17, memory=2**37)
    assert kernels.plan(problem, None, machine).strategy == "warptile"
    with pytest.raises(MemoryError, match=f"^matmul: strategy 'cublas' needs copies of {8 * (2**60 + 2**32)} bytes"):
        kernels.plan(problem, "cublas", machine)
