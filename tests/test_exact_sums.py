"""Sums of floats are exact sums, rounded once: on inputs on which other sums go wrong, whatever way they lie."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.call.dispatch import describe
from gpuops.device import finish, jit
from gpuops.plan.work import Machine, new_array
from tests import emulator
from tests.exact_cases import cases, rounded
from tests.layouts import BFLOAT16

DTYPES = tuple(map(np.dtype, ("f2", BFLOAT16, "f4", "f8")))
LONG = 5000  # elements, beyond which inputs are shortened for the emulator


def inputs(dtype: np.dtype) -> list[tuple[str, np.ndarray, Fraction]]:
    """Inputs with their exact sums."""
    rng = np.random.default_rng(3)
    return [(name, x, total) for name, x, total in cases(dtype, rng) if 0 < x.size <= LONG]


def bits(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def laid(x: np.ndarray) -> dict[str, tuple[np.ndarray, int | None]]:
    """The same elements as a vector, a row among others, and a column among others."""
    others = [x, x[::-1], np.roll(x, 7)]
    rows = np.stack(others)
    return {
        "vector": (x, None), "rows": (rows, 1), "columns": (np.ascontiguousarray(rows.T), 0),
        "strided": (np.repeat(rows, 2, 1)[:, ::2], 1), "apart": (np.stack([rows, rows], 2), 1),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("layout", ("vector", "rows", "columns", "strided", "apart"))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_are_rounded_once(device, dtype, layout):
    for name, x, total in inputs(dtype):
        array, axis = laid(x)[layout]
        got = device.numpy(gpuops.sum(device.array(array), axis=axis))
        want = np.broadcast_to(rounded(total, dtype), got.shape)
        assert np.array_equal(bits(got), bits(want)) or ((got == 0).all() and total == 0), (name, got, want)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("layout", ("vector", "rows", "columns"))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_means_are_rounded_once(device, dtype, layout):
    for name, x, total in inputs(dtype):
        array, axis = laid(x)[layout]
        got = device.numpy(gpuops.mean(device.array(array), axis=axis))
        want = np.broadcast_to(rounded(total / x.size, dtype), got.shape)
        assert np.array_equal(bits(got), bits(want)) or ((got == 0).all() and total == 0), (name, got, want)


@pytest.mark.parametrize("op", ("mean", "nanmean", "mean_var"))
@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize("count", (2, 3, 4, 7, 12, 16))
def test_means_in_the_middle_between_two_numbers(device, dtype, count, op):
    """As many are: of normal elements one in 40, of two numbers with all bits every second one."""
    rng = np.random.default_rng(count)
    x = rng.standard_normal((800, count)).astype(dtype)
    x[::2] = np.sign(x[::2, :1]) * (1 + np.abs(x[::2]) / 8)
    found = getattr(gpuops, op)(device.array(x), axis=1)
    got = device.numpy(found[0] if op == "mean_var" else found)
    totals = [sum(map(Fraction, row), Fraction(0)) for row in x.astype(np.float64).tolist()]
    assert np.array_equal(bits(got), bits(np.array([rounded(total / count, dtype) for total in totals], dtype)))


def root(total: Fraction, dtype: np.dtype) -> Any:
    """The root of a fraction, rounded once: of an integer of 200 bits, and a bit for the rest."""
    shift = 2 * max(0, 200 - total.numerator.bit_length() + total.denominator.bit_length())
    scaled = total * 2**shift
    found = math.isqrt(int(scaled))
    return rounded(Fraction(2 * found + (found * found != scaled), 2 ** (shift // 2 + 1)), dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ("rows", "columns"))
def test_squares_products_and_norms(device, dtype, layout):
    for name, x, _ in inputs(dtype):
        if x.size > 1000:
            continue
        squares = sum([Fraction(float(v)) ** 2 for v in x], Fraction(0))
        sizes = sum([abs(Fraction(float(v))) for v in x], Fraction(0))
        array, axis = laid(x)[layout]
        placed = device.array(array)
        for op, found, want in (
            ("squares", gpuops.sum_of_squares(placed, axis=axis), rounded(squares, dtype)),
            ("norm1", gpuops.vector_norm(placed, axis=axis, ord=1), rounded(sizes, dtype)),
            ("norm2", gpuops.vector_norm(placed, axis=axis), root(squares, dtype)),
        ):
            got = device.numpy(found)
            assert np.array_equal(bits(got), bits(np.broadcast_to(want, got.shape))), (op, name, got, want)
        got = device.numpy(gpuops.dot(device.array(x), device.array(x)))
        assert np.array_equal(bits(got), bits(rounded(squares, dtype))), ("dot", name, got)


#: Elements whose sums are hard to round: of all sizes, those that cancel, ties with or without a trace of more, the
#: least numbers, few among zeros.
HARD = ("sizes", "cancel", "ties", "least", "sparse")


def hard(family: str, shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Rows of such elements."""
    wide, x = (8 if dtype.itemsize == 2 else 50), rng.standard_normal(shape)
    sizes = np.ldexp(x, rng.integers(-wide, wide, shape))
    if family == "cancel":
        half = shape[1] // 2
        sizes = sizes.astype(dtype)
        sizes[:, half : 2 * half] = -sizes[:, :half]
        return rng.permuted(sizes, axis=1)
    if family == "ties":
        x[:, 2:] = 0
        x[:, 0], x[:, 1] = rng.integers(1, 512, shape[0]), np.ldexp(np.finfo(dtype).eps, rng.integers(-3, 9, shape[0]))
        x[:, 2] = rng.integers(-1, 2, shape[0]) * np.ldexp(1.0, rng.integers(-2 * wide, -wide, shape[0]))
        return rng.permuted(x, axis=1).astype(dtype)
    if family == "least":
        return np.ldexp(x, math.frexp(np.finfo(dtype).smallest_subnormal)[1] + rng.integers(0, 12, shape)).astype(dtype)
    return (sizes if family == "sizes" else np.where(rng.random(shape) < 0.9, 0, sizes)).astype(dtype)


@pytest.mark.parametrize("shape", ((300, 3), (90, 24), (60, 130), (12, 1000), (2, 5000), (1, 20000)), ids=str)
@pytest.mark.parametrize("dtype", ("f2", "f4", "f8"))
def test_hard_sums_of_rows_and_columns(device, dtype, shape):
    rng = np.random.default_rng(shape)
    for family in HARD:
        x = hard(family, shape, np.dtype(dtype), rng)
        want = np.array([rounded(sum(map(Fraction, row), Fraction(0)), x.dtype) for row in x.tolist()])
        for array, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
            got = device.numpy(gpuops.sum(device.array(array), axis=axis))
            assert ((bits(got) == bits(want)) | ((got == 0) & (want == 0))).all(), (family, axis)


@pytest.mark.parametrize("count", (3, 11, 20))
@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_sums_of_few_long_columns_of_any_width(device, dtype, count):
    """Threads have outputs that are a block apart, and the last block begins before its turn."""
    columns, like = 8209, np.dtype("f2" if dtype.itemsize == 2 else "f4")
    rng = np.random.default_rng(count)
    x = np.concatenate([hard(family, (columns // 4, count), like, rng) for family in HARD])[:columns].astype(dtype)
    x[5, 1], x[columns - 1, 0] = np.nan, np.inf
    x = np.ascontiguousarray(x.T)
    totals = [sum(map(Fraction, column), Fraction(0)) for column in np.nan_to_num(x.astype("f8"), posinf=0).T.tolist()]
    array = device.array(np.concatenate([x[:1, :1], x.reshape(1, -1)], 1))[0, 1:].reshape(x.shape)
    for op, divisor in (("sum", 1), ("nansum", 1), ("mean", count)):
        want = np.array([rounded(total / divisor, dtype) for total in totals], dtype)
        want[columns - 1], want[5] = np.inf, want[5] if op == "nansum" else np.nan
        got = device.numpy(getattr(gpuops, op)(array, axis=0))
        assert ((bits(got) == bits(want)) | ((got == 0) & (want == 0)) | (np.isnan(got) & np.isnan(want))).all(), op


@pytest.mark.parametrize("strategy", gpuops.strategies("sum"))
def test_the_least_number_decides_a_tie(device, strategy):
    """It lies so far below the others that a bound of what is lost would be 0 as a float32."""
    few = [2.0**100, 2.0**76, 2.0**-96, 2.0**-149, -(2.0**-96)]
    x = np.zeros((len(few), 300), "f4")
    for shift, row in enumerate(x):
        row[np.arange(len(few)) * 59] = np.roll(few, shift)
    for array, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        got = device.numpy(gpuops.sum(device.array(array), axis=axis, strategy=strategy))
        assert (got == np.float32(2.0**100 + 2.0**77)).all(), got


def test_float16_does_not_lose_small_elements_beside_large_sums(device):
    """Warps of a block have sums of one sign in turns, which cancel in the end but for what makes a tie no tie."""
    signs = np.where(np.arange(4096) % 1024 // 32 % 2, -1, 1)  # by packs of eight, of 1024 threads
    row = np.repeat(signs, 8) * np.float16(65504)
    row[[0, 2]], row[[256, 257, 258]] = [1, 2.0**-11], 0
    row[1] = 2.0**-24
    x = np.stack([row.astype("f2")] * 2)
    total = sum(map(Fraction, x[0].tolist()), Fraction(0))
    got = device.numpy(gpuops.sum(device.array(x), axis=1))
    assert (got == rounded(total, np.dtype("f2"))).all(), (got, float(total))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", ("sum", "mean"))
@pytest.mark.parametrize("strategy", ("cross_host", "shuffle_host", "rows", "shuffle"))
def test_masks_of_any_strides_where_elements_are_read_again(device, strategy, op):
    rng = np.random.default_rng(5)
    x = np.ldexp(1 + rng.random((2, 3, 90)), rng.integers(-140, 60, (2, 3, 90))).astype("f4")
    masks = rng.random((2, 3, 90)) < 0.6
    for mask in (masks, masks[:, ::-1, ::-1], masks[:1, :, ::-1], np.ascontiguousarray(masks.T).T):
        array, where = device.array(x), device.array(mask)
        got = device.numpy(getattr(gpuops, op)(array, axis=(1, 2), where=where, strategy=strategy))
        chosen = np.broadcast_to(mask, x.shape)
        for row, taken, found in zip(x, chosen, got, strict=True):
            total = sum(map(Fraction, row[taken].tolist()), Fraction(0))
            want = rounded(total / (int(taken.sum()) if op == "mean" else 1), x.dtype)
            assert bits(found) == bits(want), (found, want)


@pytest.mark.parametrize("dtype", ("f2", "f4", "f8", "c8", "i1", "i4"))
@pytest.mark.parametrize("shape", ((700, 21), (333, 7), (1, 9), (40, 31)), ids=str)
def test_short_rows_beside_masks_and_factors(device, dtype, shape):
    rng = np.random.default_rng(shape)
    parts = [rng.standard_normal((2, *shape)) * np.exp2(rng.integers(-6, 6, (2, *shape))) for _ in range(2)]
    x, row = (4 * (parts[0] + 1j * parts[1] if dtype == "c8" else parts[0])).astype(dtype)
    row, mask = row[0], rng.random(shape) < 0.5
    placed, factors, every = device.arrays(x, row, mask)
    for where, there in ((mask, every), (mask[0], every[0]), (mask[:, ::-1], every[:, ::-1])):
        for op in ("sum", "mean", "any"):
            want, got = (getattr(gpuops, op)(y, axis=1, where=mask) for y, mask in ((x, where), (placed, there)))
            assert (bits(device.numpy(got)) == bits(want)).all(), op
    for array, there in ((row, factors), (row[::-1], factors[::-1])):
        got, wide = device.numpy(gpuops.dot(placed, there)), "c16" if dtype == "c8" else "f8"
        terms = x.astype(wide) * array.astype(wide)
        if dtype[0] == "i":
            assert (got == np.dot(x, array)).all()
        else:
            off = np.finfo(dtype).eps * (1 if dtype == "c8" else 0.51)
            assert (abs(got - terms.sum(1)) <= off * abs(terms.sum(1)) + 1e-14 * abs(terms).sum(1)).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ("f8", "c16"))
@pytest.mark.parametrize("length", (2, 5, 11, 13))
def test_doubles_of_few_long_rows_that_are_not_aligned(device, dtype, length):
    rng = np.random.default_rng(length)
    shape = length, 20001
    parts = [np.ldexp(rng.standard_normal(shape), rng.integers(-600, 600, shape)) for _ in range(2)]
    x = (parts[0] + 1j * parts[1] if dtype == "c16" else parts[0]).astype(dtype)
    x[1, ::2] = -x[0, ::2]
    x[:, :6] = np.array([[np.inf, np.nan, -np.inf, 0.0, -0.0, 5e-324]])
    x[1, 2] = np.inf
    mask = rng.random(shape) < 0.5
    placed, there = device.arrays(x, mask)
    for op in ("sum", "mean"):
        for want, got in (
            (getattr(gpuops, op)(x, axis=0), getattr(gpuops, op)(placed, axis=0)),
            (getattr(gpuops, op)(x, axis=0, where=mask), getattr(gpuops, op)(placed, axis=0, where=there)),
        ):
            np.testing.assert_array_equal(device.numpy(got), want)


def test_what_the_host_finishes_is_rounded_at_once(device, monkeypatch):
    def no(*arguments):
        raise AssertionError(arguments)

    rng = np.random.default_rng(2)
    for shape, axis in (((100000,), None), ((40, 300), 0), ((600, 16), 1)):
        x = device.array(rng.standard_normal(shape).astype("f4"))
        want = bits(device.numpy(gpuops.sum(x, axis=axis)))
        with monkeypatch.context() as patch:
            patch.setattr(finish, "elements", no)
            patch.setattr(finish, "merged_total", no)
            got = device.numpy(gpuops.sum(x, axis=axis, strategy="shuffle_host"))
        assert (bits(got) == want).all()


def test_what_merges_of_blocks_lose_is_what_kernels_know(emulation):
    x = new_array("x", (5000,), np.dtype("f4"), machine=Machine(4))
    kernel = describe(gpuops.sum, x, strategy="shuffle").plan.steps[1].kernel
    source = jit.source(kernel)
    (context,) = re.findall(r"Context<A> c = context\(r, .*\);", source)
    (chunk,) = re.findall(r"i64 first_chunk = .*;", source)
    body = f"Reduce r = {{}}; r.runs = n; r.packs = splits; {chunk} {context} *out = c.merging;"
    text = f'{source}\nextern "C" __global__ void told(i64 n, i64 splits, i32* out) {{ {body} }}'
    module, told = emulator.compile(text, "told.cu"), np.zeros(1, np.int32)
    for length in (2, 255, 16384, 2**20, 2**28, 2**28 - 1, 3 * 2**30):
        for splits in (2, 7, 2112):
            module.launch("told", (1, 1, 1), (1, 1, 1), (length, splits, told))
            assert told[0] == finish.merging(length, splits)


def test_infinities_before_greater_elements(device):
    """They are in one chain of a thread, whose others go on."""
    x = np.ones(200000, np.float32)
    x[100001], x[100002:] = np.inf, 1e20
    for op in (gpuops.sum, gpuops.mean, gpuops.nansum):
        assert device.numpy(op(device.array(x))) == np.inf


@pytest.mark.parametrize("strategy", [None, "rows", "shuffle"])
def test_the_least_loss_is_noticed(device, strategy):
    x = np.array([1, 2.0**-53, 2.0**-1043])
    assert device.numpy(gpuops.sum(device.array(x), strategy=strategy)) == 1 + 2.0**-52


@pytest.mark.parametrize("strategy", ["shuffle", "cross", "interleaved"])
def test_many_terms_of_one_size_fit(device, strategy):
    for value in (1.0, 1.5):
        assert device.numpy(gpuops.sum(device.array(np.full(40000, value)), strategy=strategy)) == 40000 * value


@pytest.mark.parametrize("strategy", [None, "shuffle"])
def test_the_rest_of_a_quotient_may_be_tiny(device, strategy):
    n = 1025
    odd = 2**53 + (pow(n, -1, 2**12) - 2**53) % 2**12
    odd = next(m for m in range(odd, odd + 2**14, 2**12) if (m - 1) // 2 % 2 == 0)
    total = Fraction(n * odd, 2**1023)
    x = np.zeros(n)
    x[0] = float(total)
    x[1] = float(total - Fraction(x[0])) + 2.0**-1071
    want = rounded(sum(map(Fraction, x[:2]), Fraction(0)) / n, np.dtype("f8"))
    assert device.numpy(gpuops.mean(device.array(x), strategy=strategy)) == want


def test_an_initial_value_may_be_beyond_expansions(device):
    x = np.full(2049, 2.0**959)
    x[2048] = -1
    most = np.finfo("f8").max
    assert device.numpy(gpuops.sum(device.array(x), initial=most)) == most


@pytest.mark.parametrize(
    ("op", "elements", "right"),
    [("sum", (1, 0, 2.0**60, 0, -(2.0**60)), 1), ("sum_of_squares", (16, 0, 1, 0, 2.0**-60), 258)],  # 257: a middle
)
@pytest.mark.parametrize(("shape", "axis"), [((40, 8192), 1), ((12, 2**14 + 1), 0), ((2**15, 128), 0)])
def test_bfloat16_whose_exponents_are_far_apart_are_not_added_in_one_double(device, shape, axis, op, elements, right):
    x = np.zeros(shape, np.float32)
    np.moveaxis(x, axis, -1)[..., :5] = elements
    got = device.numpy(getattr(gpuops, op)(device.array(x.astype(BFLOAT16)), axis=axis))
    assert (got.astype(np.float32) == right).all()
