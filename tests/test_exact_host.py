"""Sums of NumPy arrays of floats are exact, rounded once: of any layout, by each engine, on any number of threads."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies
from hypothesis.extra.numpy import arrays

import gpuops
from gpuops.call import launch_cache
from gpuops.definition.totals import nearest, nearest_root, total, total_of_products
from gpuops.host import exact_engines, few_sums, sums
from tests import exact_cases
from tests.budget import examples
from tests.host_blocks import ENGINES, computed_by, settings, small_blocks
from tests.layouts import BFLOAT16, sample

DTYPES = tuple(map(np.dtype, ("f2", BFLOAT16, "f4", "f8")))
DOUBLE = np.dtype("f8")


@contextmanager
def at_once(engine: str) -> Iterator[None]:
    """One block, by an engine."""
    loops = 0 if engine == "compiled" else 2**60
    both = settings(sums, 1, LOOPS=loops), settings(exact_engines, 1, LOOPS=loops)
    with computed_by(engine), both[0], both[1], settings(few_sums, 1, VECTOR=0, FEW=0):
        yield


WAYS: dict[str, Callable[[], Any]] = {"few": nullcontext} | {
    f"{engine}, {count} threads": lambda engine=engine, count=count: small_blocks(count, engine)
    for engine in ENGINES for count in (1, 2)
} | {engine: lambda engine=engine: at_once(engine) for engine in ENGINES}  # fmt: skip


@pytest.fixture(params=WAYS)
def way(request) -> Iterator[str]:
    launch_cache.clear()
    with WAYS[request.param](), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield request.param


def agrees(found: Any, right: Any) -> None:
    """The same dtype, shape and bits, but for those of NaN."""
    found, right = np.asarray(found), np.asarray(right)
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    word = f"V{found.dtype.itemsize}"
    nans = ((found != found) & (right != right)).reshape(-1)
    same = nans | (found.reshape(-1).view(word) == right.reshape(-1).view(word))
    assert same.all(), f"found\n{found}\nright\n{right}"


def in_ways(dtypes: Iterable[Any], computed: Callable[[Any], Any] = np.dtype) -> Any:
    """Parametrizes a test by all ways to compute and dtypes, but not by float64 without Numba, whose sums are NumPy's.

    ``computed``: the dtype in which a call with that one computes."""
    pairs = [
        pytest.param(way, dtype, id=f"{way}-{dtype}")
        for way in WAYS for dtype in dtypes
        if computed(dtype) != DOUBLE or not way.startswith("numpy")
    ]  # fmt: skip
    return pytest.mark.parametrize("way, dtype", pairs, indirect=["way"])


# ------------------------------------------------------------------------------------------------ functions and results


#: What functions give of a vector, by its definition, and the functions, of an array and options.
OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (gpuops.sum, lambda x: nearest(total(x), x.dtype)),
    "nansum": (gpuops.nansum, lambda x: nearest(total(x[x == x]), x.dtype)),
    "mean": (gpuops.mean, lambda x: nearest(total(x) / x.size, x.dtype)),
    "nanmean": (gpuops.nanmean, lambda x: nearest(total(x[x == x]) / (x == x).sum().item(), x.dtype)),
    "sum_of_squares": (gpuops.sum_of_squares, lambda x: nearest(total_of_products(x, x), x.dtype)),
    "norm1": (lambda x, **more: gpuops.vector_norm(x, ord=1, **more), lambda x: nearest(total(abs(x)), x.dtype)),
    "norm2": (gpuops.vector_norm, lambda x: nearest_root(total_of_products(x, x), x.dtype)),
}  # fmt: skip
MASKABLE = ("sum", "nansum", "mean", "nanmean", "sum_of_squares")


@cache
def inputs(dtype: np.dtype) -> tuple[tuple[str, np.ndarray], ...]:
    """Hard cases of at most 400 elements: of longer ones, some elements."""
    rng = np.random.default_rng(5)
    found = [(name, x) for name, x, _ in exact_cases.cases(dtype, rng) if x.size]
    return tuple((name, x if x.size <= 400 else np.append(rng.permutation(x)[:300], -x[:50])) for name, x in found)


@cache
def rights(op: str, dtype: np.dtype) -> tuple[Any, ...]:
    """The results of these."""
    return tuple(OPS[op][1](x) for _, x in inputs(dtype))


LAYOUTS = ("vector", "strided", "backwards", "rows", "columns", "rows apart", "others between")


def laid(x: np.ndarray) -> dict[str, tuple[np.ndarray, Any, tuple[Any, ...]]]:
    """An array in which a vector lies in some way, the axis, and where its result is."""
    rows = np.stack([np.roll(x, 3), x, -x, x[::-1], np.roll(x, 1)])
    halves = np.zeros((2, 3, -(-x.size // 2)), x.dtype)
    halves[:, 1].reshape(-1)[: x.size] = x
    lines = halves[:, 1].copy().reshape(-1)
    lines[: x.size] = x
    halves[:, 1] = lines.reshape(2, -1)
    return {
        "vector": (x, None, ()), "strided": (np.repeat(x, 3)[::3], 0, ()), "backwards": (x[::-1], 0, ()),
        "rows": (rows, 1, (1,)), "columns": (np.ascontiguousarray(rows.T), 0, (1,)),
        "rows apart": (np.repeat(rows, 2, 1)[:, ::2], 1, (1,)), "others between": (halves, (0, 2), (1,)),
    }  # fmt: skip


@pytest.mark.turns(8, everywhere=True)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", OPS)
@in_ways(DTYPES)
def test_results_are_rounded_once(way, dtype, op, layout):
    for (_, x), right in zip(inputs(dtype), rights(op, dtype), strict=True):
        if layout == "others between" and "mean" in op and x.size % 2:
            continue  # which gets another element
        array, axis, place = laid(x)[layout]
        found = np.asarray(OPS[op][0](array, axis=axis))[place]
        assert found.dtype == dtype
        agrees(found, right)


@in_ways(DTYPES)
def test_dots_are_rounded_once(way, dtype):
    rng = np.random.default_rng(1)
    for _, x in inputs(dtype):
        y = rng.permutation(x)
        right = nearest(total_of_products(x, y), dtype)
        for pair in ((x, y), (x[::-1], y[::-1]), (np.repeat(y, 2)[::2], x)):
            agrees(gpuops.dot(*pair), right)


@pytest.mark.parametrize(
    "engine, dtype", [(e, d) for e in ENGINES for d in ("f2", "f4", "f8") if (e, d) != ("numpy", "f8")]
)
@pytest.mark.parametrize(
    "shape, axis", [((300000,), 0), ((3, 100001), 1), ((100001, 3), 0), ((400, 300), None), ((40, 30, 50), (0, 2))]
)
def test_large_arrays(engine, dtype, shape, axis):
    dtype = np.dtype(dtype)
    x = (np.random.default_rng(2).standard_normal(shape) * 0.1).astype(dtype)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    kept = [d for d in range(x.ndim) if d not in axes]
    lines = x.transpose(*kept, *axes).reshape(np.prod([shape[d] for d in kept], dtype=int), -1)
    for count in (1, 2):
        with computed_by(engine), settings(sums, count):
            for op in ("sum", "mean", "norm2"):
                found = np.asarray(OPS[op][0](x, axis=axis)).reshape(-1)
                agrees(found[:5], np.array([OPS[op][1](line) for line in lines[:5]], dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("length", [2, 7, 16])
def test_many_short_rows_are_rounded_once(dtype, length):
    rng, few = np.random.default_rng(4), slice(None, None, 1999)
    x = (rng.standard_normal((20000, length)) * 10.0 ** rng.integers(-9, 9, (20000, length))).astype(dtype)
    mask = rng.random(x.shape) < 0.8
    mask[few, :2] = True
    with computed_by("compiled"), settings(sums, 2):
        for special in (0.5, np.inf, np.nan):
            x[3998, 0] = special  # one of the few
            for op, (function, right) in OPS.items():
                agrees(np.asarray(function(x, axis=1))[few], np.array([right(row) for row in x[few]], dtype))
                if op in MASKABLE:
                    taken = [row[there] for row, there in zip(x[few], mask[few], strict=True)]
                    found = np.asarray(function(x, axis=1, where=mask))[few]
                    agrees(found, np.array([right(row) for row in taken], dtype))


# ------------------------------------------------------------------------------------------- masks, initial values, out


@pytest.mark.turns(6, everywhere=True)
@pytest.mark.parametrize("op", MASKABLE)
@in_ways(DTYPES)
def test_masks_leave_elements_out(way, dtype, op):
    rng = np.random.default_rng(3)
    for k, (_, x) in enumerate(inputs(dtype)):
        filled, mask = np.full((3, 2 * x.size), np.nan, dtype), np.zeros((3, 2 * x.size), bool)
        places = rng.permutation(2 * x.size)[: x.size]
        filled[1, places], mask[1, places] = x, True
        mask[0, 0] = filled[0, 0] = 1
        right = rights(op, dtype)[k]
        for axis, array, taken in ((1, filled, mask), (0, filled.T.copy(), mask.T.copy())):
            found = OPS[op][0](array, axis=axis, where=taken)
            agrees(found[1], right)
            assert found[0] == 1


@pytest.mark.turns(2, everywhere=True)
@in_ways(DTYPES)
def test_initial_values_are_summands(way, dtype):
    for _, x in inputs(dtype):
        for first in (x[0], dtype.type(0.1), -x.astype("f8").sum().astype(dtype)):
            right = nearest(total(np.append(x, first).astype(dtype)), dtype)
            for op in (gpuops.sum, gpuops.nansum):
                found = op(np.stack([x, x[::-1]]), axis=1, initial=first)
                agrees(found, np.array([right, right], dtype))
            agrees(gpuops.sum(x, initial=first), right)


@pytest.mark.parametrize("dtype", [*DTYPES, np.dtype("c8")], ids=str)
def test_zeros(way, dtype):
    """As NumPy's: a sum of zeros is 0.0, except of -0.0 alone that begins with it."""
    x = np.array([[-0.0, -0.0], [-0.0, 0.0], [1.0, -1.0]]).astype(dtype)
    nothing = x[:, :0]
    for op in (gpuops.sum, gpuops.nansum):
        for array in (x, nothing):
            assert not np.signbit(op(array, axis=1).real.astype("f8")).any()
            assert not np.signbit(op(array, axis=1, initial=0.0).real.astype("f8")).any()
        assert np.signbit(op(x, axis=1, initial=-0.0).real.astype("f8")).tolist() == [True, False, False]
        assert np.signbit(op(nothing, axis=1, initial=-0.0).real.astype("f8")).all()
        taken = np.array([[True, False], [True, False], [False, False]])
        assert np.signbit(op(x, axis=1, initial=-0.0, where=taken).real.astype("f8")).all()
    for op in (gpuops.mean, gpuops.sum_of_squares, gpuops.vector_norm):
        assert not np.signbit(op(x, axis=1).real.astype("f8")).any()
    assert not np.signbit(np.real(gpuops.dot(x[0], x[1])).astype("f8"))


@in_ways([("f2", "f4"), ("f4", "f8"), ("f8", "f4"), (BFLOAT16, "f4"), ("f4", "f2")], lambda pair: np.dtype(pair[1]))
def test_the_dtype_of_the_computation(way, dtype):
    """Elements are converted to it, then added up."""
    x, wider = map(np.dtype, dtype)
    elements = sample((7, 30), x, special=False)
    right = np.array([nearest(total(line.astype(wider)), wider) for line in elements], wider)
    squares = np.array([nearest(total_of_products(*[line.astype(wider)] * 2), wider) for line in elements], wider)
    agrees(gpuops.sum(elements, axis=1, dtype=wider), right)
    agrees(gpuops.sum_of_squares(elements, axis=1, dtype=wider), squares)
    out = np.empty(7, wider)
    assert gpuops.sum(elements, axis=1, dtype=wider, out=out) is out
    agrees(out, right)
    kept = np.empty((7, 1), "f8")
    gpuops.sum(elements, axis=1, dtype=wider, keepdims=True, out=kept)
    agrees(kept[:, 0], right.astype("f8"))


def test_out_may_overlap(way):
    x = sample((30, 30), "f4", special=False)
    right = np.array([nearest(total(line), x.dtype) for line in x], "f4")
    gpuops.sum(x, axis=1, out=x[:, 3])
    agrees(x[:, 3], right)


@in_ways(["c8", "c16"], lambda dtype: np.dtype(f"f{np.dtype(dtype).itemsize // 2}"))
def test_parts_of_complex_numbers_are_apart(way, dtype):
    dtype, real = np.dtype(dtype), np.dtype(f"f{np.dtype(dtype).itemsize // 2}")
    rng = np.random.default_rng(4)
    x, y = np.empty((2, 5, 90), dtype)
    for part in (x.real, x.imag, y.real, y.imag):
        part[...] = (rng.standard_normal(part.shape) * np.exp2(rng.integers(-20, 20, part.shape))).astype(real)
    for axis, array in ((1, x), (0, np.ascontiguousarray(x.T)), (0, np.repeat(x.T, 2, 0)[::2])):
        agrees(gpuops.sum(array, axis=axis), both([(total(line.real), total(line.imag)) for line in x], dtype))
        means = both([(total(line.real) / 90, total(line.imag) / 90) for line in x], dtype)
        agrees(gpuops.mean(array, axis=axis), means)
        parts = [line.view(real) for line in x]
        squares = [total_of_products(line, line) for line in parts]
        agrees(gpuops.sum_of_squares(array, axis=axis), np.array([nearest(each, real) for each in squares], real))
        roots = np.array([nearest_root(each, real) for each in squares], real)
        agrees(gpuops.vector_norm(array, axis=axis), roots)
        sizes = np.array([nearest(total(np.abs(line)), real) for line in x], real)
        agrees(gpuops.vector_norm(array, axis=axis, ord=1), sizes)
    pairs = [
        (total_of_products(a.view(real), b.conj().view(real)), total_of_products(a.view(real), turned(b).view(real)))
        for a, b in zip(x, y, strict=True)
    ]
    agrees(np.array([gpuops.dot(a, b) for a, b in zip(x, y, strict=True)]), both(pairs, dtype))


def both(pairs: list[tuple[Fraction, Fraction]], dtype: np.dtype) -> np.ndarray:
    """Complex numbers with these parts."""
    made = np.empty(len(pairs), dtype)
    made.real, made.imag = ([nearest(each, made.real.dtype) for each in parts] for parts in zip(*pairs, strict=True))
    return made


def turned(x: np.ndarray) -> np.ndarray:
    """With the parts exchanged."""
    made = np.empty_like(x)
    made.real, made.imag = x.imag, x.real
    return made


# -------------------------------------------------------------------------------------------------- what is not finite


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "norm2", "sum_of_squares"])
def test_infinities_and_nan(way, dtype, op):
    rows = [[np.inf, 1, 2], [-np.inf, 1, 2], [np.inf, -np.inf, 1], [np.nan, 1, 2], [np.nan, np.inf, 1], [1, 2, 3]]
    x = np.array(rows).astype(dtype)
    for array, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        agrees(OPS[op][0](array, axis=axis), np.array([OPS[op][1](line) for line in x], dtype))


@in_ways(["f2", "f4", "f8"])
@pytest.mark.parametrize("repeats", [1, 3000])
def test_only_results_overflow(way, dtype, repeats):
    dtype = np.dtype(dtype)
    most = np.finfo(dtype).max
    x = np.tile(np.array([most, most, -most, -most], dtype), repeats)
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        assert gpuops.sum(np.append(x, dtype.type(3))) == 3
        assert gpuops.mean(np.tile(x[:2], repeats)) == most
        assert gpuops.vector_norm(np.append(x, dtype.type(3))[-1:]) == 3
        assert gpuops.vector_norm(np.array([most, 0], dtype)) == most
    for call in (gpuops.sum, gpuops.sum_of_squares):
        with warnings.catch_warnings(record=True) as found, np.errstate(all="warn"):
            warnings.simplefilter("always")
            assert call(np.abs(x)) == np.inf
        assert ["overflow" in str(each.message) for each in found] == [True]


@pytest.mark.skipif("compiled" not in ENGINES, reason="needs Numba")
def test_numba_is_loaded_after_many_calls_without_it(monkeypatch):
    asked: list[str] = []
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(exact_engines, "compiled", asked.append)
    for first, names in ((0, []), (exact_engines.PATIENCE, ["compiled_rounding", "compiled_products"])):
        monkeypatch.setattr(exact_engines, "SLOW", itertools.count(first))
        assert exact_engines.engine(DOUBLE, 100) is exact_engines.PLAIN
        gpuops.cumprod(np.ones(100))
        assert asked == names


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_masks_weights_and_initial_values_of_few_elements(monkeypatch, dtype, loads):
    """With what Numba compiles, and with NumPy alone."""
    if loads or dtype == "f8":  # sums of float64 are NumPy's where it is not installed
        pytest.importorskip("numba")
    if not loads:
        monkeypatch.setattr(exact_engines, "compiled", lambda name: None)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, x, _ in exact_cases.cases(dtype, np.random.default_rng(7)):
            if 1 < x.size < exact_engines.LOOPS // 2:  # (of which there are two rows)
                masks_weights_and_initial_values(x)


def masks_weights_and_initial_values(x: np.ndarray) -> None:
    taken, heavy = np.arange(x.size) % 3 != 1, np.minimum(np.abs(x), 1000) + x.dtype.type(1)
    some = x[taken]
    mean = nearest(total(some) / some.size, x.dtype)
    agrees(gpuops.sum(x, where=taken, initial=2.5), nearest(total(np.append(some, 2.5)), x.dtype))
    agrees(gpuops.mean(x, where=taken), mean)
    agrees(gpuops.nanmean(np.where(taken, x, x.dtype.type(np.nan))), mean)
    right = nearest(total_of_products(x, heavy) / total(heavy), x.dtype)
    found = gpuops.average(np.stack([x] * 2), axis=1, weights=np.stack([heavy] * 2), returned=True)
    agrees(found.average, np.stack([right] * 2))
    agrees(found.weights, np.stack([nearest(total(heavy), x.dtype)] * 2))


def outcome(function: Callable[..., Any], x: np.ndarray, options: dict[str, Any]) -> tuple[Any, list[str]]:
    """The result of a call, and its warnings."""
    launch_cache.clear()
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        found = function(x, **options)
    return found, sorted(str(each.message) for each in caught)


@pytest.mark.parametrize("numbers", [(np.nan,), (np.inf,), (-np.inf, -np.inf), (np.inf, np.nan), (np.inf, -np.inf)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("op", ["sum", "mean", "var", "std", "mean_var", "sum_of_squares", "vector_norm", "nansum"])
def test_numbers_that_are_not_finite_tell_the_sum_of_few(monkeypatch, op, dtype, numbers):
    """They give the result that the sum of all has, and its warnings."""
    pytest.importorskip("numba")  # without which sums of float64 are NumPy's
    function, x = getattr(gpuops, op), np.arange(12, dtype=dtype).reshape(3, 4)
    x[1, : len(numbers)] = numbers
    masks: list[dict[str, Any]] = [{"where": x > -5}, {"where": x < 2}, {"where": np.zeros(x.shape, bool)}]
    degrees = [{"ddof": 3}, {"ddof": 12}] if op in ("var", "std", "mean_var") else []
    for options in [{}, {"keepdims": True}, {"axis": 1}, *(masks if op != "vector_norm" else []), *degrees]:
        found = outcome(function, x, options)
        with monkeypatch.context() as patch:
            patch.setattr(few_sums, "of_not_finite", lambda *given: None)
            right = outcome(function, x, options)
        assert found[1] == right[1], options
        agrees(found[0], right[0])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_numbers_that_are_not_finite_need_no_expansions(monkeypatch, dtype):
    pytest.importorskip("numba")  # without which sums of float64 are NumPy's
    monkeypatch.setattr(sums, "End", None)
    launch_cache.clear()
    x = np.arange(12, dtype=dtype)
    x[5] = np.nan
    for function in (gpuops.sum, gpuops.mean, gpuops.var, gpuops.std, gpuops.sum_of_squares, gpuops.vector_norm):
        agrees(function(x), x.dtype.type(np.nan))
    x[5] = -np.inf
    for function, sign in ((gpuops.sum, -1), (gpuops.mean, -1), (gpuops.sum_of_squares, 1), (gpuops.vector_norm, 1)):
        agrees(function(x), x.dtype.type(sign * np.inf))


# ---------------------------------------------------------------------------------------------- nothing changes a bit


FLOATS = {np.dtype(f"f{width // 8}"): strategies.floats(width=width) for width in (16, 32, 64)}


@pytest.mark.parametrize(
    "engine, dtype",
    [(e, d) for e in ("few", *ENGINES) for d in FLOATS if (e, d) != ("numpy", DOUBLE)], ids=str,
)  # fmt: skip
@examples(40)
@given(data=strategies.data())
def test_no_order_of_elements_or_dims_changes_a_bit(engine, dtype, data):
    shape = data.draw(strategies.lists(strategies.integers(1, 6), min_size=1, max_size=3))
    x = data.draw(arrays(dtype, tuple(shape), elements=FLOATS[dtype]))
    op = data.draw(strategies.sampled_from(list(OPS)))
    dims = data.draw(strategies.permutations(range(x.ndim)))
    order = data.draw(strategies.permutations(range(x.size)))
    right = OPS[op][1](x.reshape(-1)) if not op.startswith("nanm") or (x == x).any() else x.dtype.type(np.nan)
    way = data.draw(strategies.sampled_from([way for way in WAYS if way.startswith(engine)]))
    with WAYS[way](), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for array in (x, x.transpose(dims), np.asfortranarray(x), x.reshape(-1)[order]):
            agrees(OPS[op][0](array), right)
