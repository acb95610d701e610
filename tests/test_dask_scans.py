"""Scans of Dask arrays: the bits of the scans of whole arrays, for all chunks; no chunk is gathered."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops import array_api as xp
from gpuops.adapters import dask_scans
from gpuops.definition.scans import RADIX
from gpuops.host import scan_parts, terms
from gpuops.host.scan_trees import BLOCK
from tests.compare import assert_bits
from tests.layouts import BFLOAT16
from tests.ops import SCANS

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")

from dask.utils import key_split  # noqa: E402

from tests.chunks import on_device  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SHAPE = (3, 23)
CHUNKS = (((2, 0, 1), (9, 0, 3, 11)), ((1, 2), (17, 6)), ((3,), (1,) * 6 + (16, 1)))
DTYPES = ("?", "i1", "u8", "e", "f", "d", "F", "D", BFLOAT16)
CASES = [(dtype, op) for dtype in DTYPES for op in SCANS if op != "logcumsumexp" or np.dtype(dtype).kind != "c"]
OPTIONS = tuple(
    {"axis": axis, "reverse": reverse, "exclusive": exclusive}
    for axis in (0, 1, None) for reverse in (False, True) for exclusive in (False, True)
)  # fmt: skip


@pytest.fixture(autouse=True)
def synchronous_scheduler():
    with dask.config.set(scheduler="sync"):
        yield


def plain(x: np.ndarray) -> np.ndarray:
    """All NaN alike: their signs depend on the order of additions."""
    return np.where(x != x, np.asarray(np.nan).astype(x.dtype), x) if x.dtype.kind in "fcV" else x


def check(call: Any, x: np.ndarray, chunks: Any) -> None:
    """The same bits as of the whole array."""
    lazy, expected = call(da.from_array(x, chunks, name=False)), call(x)
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype, lazy._meta.dtype) == (expected.shape, expected.dtype, expected.dtype)
    assert_bits(plain(lazy.compute()), plain(np.asarray(expected)))


def needs_numba(op: str, dtype: Any) -> None:
    """Skip a test of exact sums of float64, which there are with Numba alone."""
    if op == "cumsum" and np.dtype(dtype).char in "dD":
        pytest.importorskip("numba", reason="needs Numba, which the extra `cpu` installs")


def values(dtype: Any, kind: str) -> np.ndarray:
    """Numbers of like or very different sizes, zeros, and some that are not finite."""
    rng, dtype = np.random.default_rng(3), np.dtype(dtype)
    if dtype.kind in "?biu":
        return rng.integers(-90, 90, SHAPE).astype(dtype)
    x = rng.normal(0, 1, SHAPE) * (10.0 ** rng.integers(-5, 5, SHAPE) if kind == "wide" else 1)
    x = (x + 1j * rng.normal(0, 1, SHAPE) if dtype.kind == "c" else x).astype(dtype)
    if kind == "zeros":
        x[rng.random(SHAPE) < 0.5] = 0.0
        x[:2] = x[:, :12] = -0.0
    elif kind == "special":
        for value in (np.inf, -np.inf, np.nan):
            x[rng.random(SHAPE) < 0.03] = value
    return x


@pytest.mark.parametrize("dtype,op", CASES, ids=str)
def test_bits_are_those_of_whole_arrays(op, dtype):
    needs_numba(op, dtype)
    kinds = ("alike", "wide", "zeros", "special") if np.dtype(dtype).kind in "fcV" else ("alike",)
    for number, kind in enumerate(kinds):
        x = values(dtype, kind)
        for k in range(3):  # of each axis one
            options = OPTIONS[4 * k + (number + k + DTYPES.index(dtype)) % 4]
            check(lambda a, options=options: getattr(gpuops, op)(a, **options), x, CHUNKS[(number + k) % len(CHUNKS)])


@pytest.mark.parametrize("dtype", ["e", "f", "d", "D"])
def test_hard_sums_are_exact(dtype):
    """Carries that cancel, that take many numbers, and that exceed the greatest one."""
    needs_numba("cumsum", dtype)
    top = np.finfo(dtype).max
    rng = np.random.default_rng(0)
    spread = rng.normal(0, 1, 40) * 2.0 ** rng.integers(-20 if dtype == "e" else -100, 10, 40)
    x = np.stack([
        np.array([top, top, top, 1, -top, -top, 3, -top, *[0.25] * 32]), np.concatenate([spread[:20], -spread[:20]]),
        np.tile([1.0, np.finfo(dtype).eps / 2, -1.0, np.finfo(dtype).smallest_subnormal], 10), np.full(40, top / 8),
    ]).astype(dtype)  # fmt: skip
    for chunks in (((4,), (1,) * 8 + (32,)), ((1, 3), (2, 30, 8))):
        for reverse in (False, True):
            check(lambda a, reverse=reverse: gpuops.cumsum(a, axis=1, reverse=reverse), x, chunks)


def test_sums_of_minus_zeros_keep_their_sign_beside_sums_of_several_terms():
    x = np.full((2, 12), -0.0, np.float32)
    x[1] = [2.0**100, 1.0, 2.0**-100] * 4
    check(lambda a: gpuops.sum(a, axis=1, initial=-0.0), x, (2, 1))


@pytest.mark.parametrize("op", ["cumprod", "logcumsumexp"])
@pytest.mark.parametrize(("n", "cuts"), [
    (2 * BLOCK + 300, (9, 16, 300, 4100, BLOCK, BLOCK + 3)), (BLOCK + 5, (BLOCK,)), (4096 + 17, (4095, 4097)),
    (257, (256,)),
])  # fmt: skip
def test_cuts_of_long_lines_keep_the_order(op, n, cuts):
    x = np.random.default_rng(n).normal(1, 0.01, n)
    chunks = tuple(np.diff([0, *cuts, n]).tolist())
    for exclusive in (False, True):
        check(lambda a, exclusive=exclusive: getattr(gpuops, op)(a, exclusive=exclusive), x, (chunks,))


def test_complex_products_keep_the_number_of_merges():
    """Merging with 1 makes NaN of infinities, so how often this happens is part of the order."""
    for n in (16, 256, 300, 5000, BLOCK + 300):
        x = np.exp(1j * np.random.default_rng(n).normal(0, 1, n))
        x[[n // 2, -2]] = complex(np.inf, 0), complex(0, -0.0)
        for cut in (n // 3, n - 7):
            check(gpuops.cumprod, x, ((cut, n - cut),))


def test_nodes_cover_all_elements():
    for place in (0, 1, 15, 16, 255, 300, 70000):
        for n in (0, 1, 15, 16, 17, 1000, 200000):
            at = place
            for level, count in scan_parts.runs(place, n):
                assert at % RADIX**level == 0
                at += count * RADIX**level
            assert at == place + n


@pytest.mark.parametrize("op", SCANS)
@pytest.mark.parametrize("dtype", ["i2", "f", "d"])
def test_dtypes(op, dtype):
    x = np.random.default_rng(1).integers(-5, 5, SHAPE).astype(dtype)
    for to in ("f", "d", "D", "i8"):
        try:
            getattr(gpuops, op)(x, dtype=to)
        except TypeError as error:
            with pytest.raises(TypeError) as got:
                getattr(gpuops, op)(da.from_array(x, 3), dtype=to)
            assert str(got.value) == str(error)
        else:
            check(lambda a, to=to: getattr(gpuops, op)(a, axis=1, dtype=to), x, CHUNKS[1])


@pytest.mark.parametrize("op", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", ["i2", "f", "D"])
def test_array_api(op, dtype):
    x = np.random.default_rng(1).integers(-3, 3, SHAPE).astype(dtype)
    for axis in (0, 1):
        for initial in (False, True):
            for chunks in (*CHUNKS[:2], SHAPE):
                check(lambda a, axis=axis, i=initial: getattr(xp, op)(a, axis=axis, include_initial=i), x, chunks)
    check(lambda a: getattr(xp, op)(a, include_initial=True), x[0], 4)


@pytest.mark.parametrize("op", SCANS)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1, 1)])
def test_small_and_empty_arrays(op, shape):
    for axis in (None, *range(len(shape))):
        check(lambda a, axis=axis: getattr(gpuops, op)(a, axis=axis), np.ones(shape), 1)


@pytest.mark.parametrize("chunks", [((3, 3, 4), (8,), (6,)), (5, 3, 4), (10, 1, 6), (1, 8, 1), (4, 8, 6)])
def test_flattening_makes_no_larger_chunks(chunks):
    x = np.random.default_rng(2).normal(size=(10, 8, 6)).astype("f")
    lazy = da.from_array(x, chunks)
    flat = dask_scans.flattened(lazy, "cumsum")
    assert max(flat.chunks[0]) <= math.prod(map(max, lazy.chunks))
    for op in ("cumsum", "cumprod"):
        check(getattr(gpuops, op), x, chunks)


@pytest.mark.parametrize("op", SCANS)
@pytest.mark.parametrize("axis", [1, None])
def test_tasks_get_a_chunk_and_small_carries(op, axis, monkeypatch):
    """Each chunk goes to two tasks, and what others get is small."""
    n, size, seen = 12, 5000, []

    def weight(value: Any) -> int:
        if isinstance(value, terms.Terms):
            return sum(each.size for each in value.rows.values())
        if isinstance(value, np.ndarray):
            return value.size
        return len(pickle.dumps(value)) // 16

    def watched(real: Any) -> Any:
        def run(*args):
            seen.append([weight(each) for each in args if not callable(each)])
            return real(*args)

        return run

    for name in ("summary", "merged", "following"):
        monkeypatch.setattr(dask_scans, name, watched(getattr(dask_scans, name)))
    x = np.random.default_rng(0).normal(1, 0.01, (1, n * size))
    lazy = getattr(gpuops, op)(da.from_array(x, (1, size)), axis=axis)
    names = {key_split(key) for key in lazy.__dask_graph__()}
    assert {op, f"{op}-finish", f"{op}-partial"} <= names
    assert not any("rechunk" in name or "concatenate" in name for name in names)
    lazy.compute()
    assert sum(weights.count(size) for weights in seen) == 2 * n - 1, "the last chunk needs no summary"
    for weights in seen:
        assert weights.count(size) <= 1 and sum(weights) < size + 300


def test_nothing_is_computed_before_it_is_asked_for():
    def fail(block):
        raise AssertionError

    x = da.from_array(np.ones((4, 6)), 2)
    for op in SCANS:
        getattr(gpuops, op)(x.map_blocks(fail, meta=x._meta), axis=0)


def test_names_of_tasks_repeat_and_graphs_travel():
    x = da.from_array(np.ones((4, 6)), 2)
    for op in SCANS:
        lazy, again = (getattr(gpuops, op)(x, axis=0) for _ in range(2))
        assert lazy.name == again.name != getattr(gpuops, op)(x, axis=1).name
        travelled = pickle.loads(pickle.dumps(lazy))
        assert_bits(travelled.compute(), getattr(gpuops, op)(np.ones((4, 6)), axis=0))


@pytest.mark.parametrize("op", SCANS)
def test_chunks_of_other_devices_stay_there(device, op):
    x = np.random.default_rng(4).normal(1, 0.1, (4, 40)).astype("f")
    there = on_device(device, x, (2, 17))
    for axis in (0, 1, None):
        lazy = getattr(gpuops, op)(there, axis=axis, reverse=axis == 1)
        assert type(lazy._meta) is type(there._meta)
        got, expected = lazy.compute(), getattr(gpuops, op)(x, axis=axis, reverse=axis == 1)
        assert type(got) is type(there._meta)
        if op == "logcumsumexp":
            np.testing.assert_allclose(device.numpy(got), expected, 1e-6)
        else:
            assert_bits(np.asarray(device.numpy(got)), expected)


@pytest.mark.parametrize("op", SCANS)
def test_errors(op):
    x = da.from_array(np.ones((4, 6)), 2)
    call = getattr(gpuops, op)
    with pytest.raises(TypeError, match=f"^{op}: out is not supported for dask arrays"):
        call(x, axis=0, out=np.ones((4, 6)))
    with pytest.raises(ValueError, match=rf"^{op}: a has unknown chunk sizes"):
        call(x[x > 0], axis=0)
    with pytest.raises(np.exceptions.AxisError, match=f"^{op}: axis 2 is out of range"):
        call(x, axis=2)
