"""Exact sums have the same bits everywhere: tests/same_bits.json has hashes of them, for each dtype and op.

``python -m tests.test_same_bits`` writes the file, from the definition in Python's integers. Elements are bit patterns
made by integer arithmetic, so they are the same on all machines and with all versions of NumPy.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.definition.totals import nearest, nearest_root, total, total_of_products
from gpuops.device import jit
from tests.emulator import build
from tests.layouts import BFLOAT16

FILE = Path(__file__).with_name("same_bits.json")
DTYPES = tuple(map(np.dtype, ("f2", BFLOAT16, "f4", "f8", "c8", "c16")))
#: Bits of the exponent and of the mantissa, by the name of a part's dtype.
FIELDS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
OPS: dict[str, Callable[..., Any]] = {
    "sum": gpuops.sum, "nansum": gpuops.nansum, "mean": gpuops.mean, "nanmean": gpuops.nanmean,
    "sum_of_squares": gpuops.sum_of_squares, "norm1": lambda x, axis: gpuops.vector_norm(x, axis=axis, ord=1),
    "norm2": lambda x, axis: gpuops.vector_norm(x, axis=axis),
}  # fmt: skip
FAMILIES = ("alike", "wide", "least", "cancel", "ties")
SHAPES = {(90,): (None,), (7, 60): (0, 1, None), (5, 6, 8): (1, (0, 2)), (2, 700): (1,), (600, 3): (0,)}
#: What the emulator takes: each op and dtype is a kernel that is compiled.
EMULATED = {"op": ("sum", "mean", "norm2"), "shape": ((7, 60),)}
needs_loops = pytest.mark.skipif(find_spec("numba") is None, reason="exact sums of float64 need Numba")


# ------------------------------------------------------------------------------------------------------- the elements


def words(count: int, seed: int) -> np.ndarray:
    """Integers of 64 bits: those of Knuth's linear congruential generator, whose lower bits are mixed."""
    found, state = np.empty(count, np.uint64), seed
    for i in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found[i] = state ^ state >> 29
    return found


def real_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def spread(word: np.ndarray, dtype: np.dtype, low: int, count: int) -> np.ndarray:
    """Numbers of either sign with any mantissas, whose exponent fields are from ``low`` on."""
    _, bits = FIELDS[dtype.name]
    mantissa, field = word & np.uint64(2**bits - 1), (word >> np.uint64(52)) % np.uint64(count) + np.uint64(low)
    sign = word >> np.uint64(63) << np.uint64(8 * dtype.itemsize - 1)
    return (sign | field << np.uint64(bits) | mantissa).astype(f"u{dtype.itemsize}").view(dtype)


def parts(family: str, count: int, dtype: np.dtype) -> np.ndarray:
    """Numbers of a family, an array of one dim."""
    exponent, bits = FIELDS[dtype.name]
    one, word = 2 ** (exponent - 1) - 1, words(count, 7 * count + FAMILIES.index(family))
    if family == "alike":
        return spread(word, dtype, one - 2, 5)
    if family == "least":
        return spread(word, dtype, 0, 3)
    wide = spread(word, dtype, 1, 2 * one - 15 if dtype.itemsize > 2 else 2 * one - 8)
    if family == "wide":
        return wide
    if family == "cancel":  # but for one
        half = (count - 1) // 2
        return np.concatenate([wide[:half], wide[half : count - half], -wide[:half]])
    powers = np.zeros(count, dtype)  # 1 + half of its last bit, and a trace of more or less
    few = np.array([1, 2.0 ** -(bits + 1), 0, 2.0**-9], "f8").astype(dtype)
    powers[: 4 * (count // 4)] = np.tile(few, count // 4)
    powers[2::4] = spread(word, dtype, 1, 3)[2::4]
    return powers[np.argsort(word[: powers.size], kind="stable")]


@cache
def elements(family: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of a family."""
    part, size = real_of(dtype), int(np.prod(shape))
    return parts(family, size * dtype.itemsize // part.itemsize, part).view(dtype).reshape(shape)


# ------------------------------------------------------------------------------------------------------ the definition


def row_sum(op: str, x: np.ndarray, y: np.ndarray) -> Any:
    """The result of a row of elements (for dot, of two)."""
    dtype = real_of(x.dtype)
    if op in ("sum_of_squares", "norm2"):
        square = total_of_products(x.view(dtype), x.view(dtype))
        return (nearest_root if op == "norm2" else nearest)(square, dtype)
    if op == "norm1":
        return nearest(total(np.abs(x)), dtype)
    if op == "dot" and x.dtype.kind == "c":
        minus = total_of_products(np.append(x.real, x.imag), np.append(y.real, -y.imag))
        return [nearest(each, dtype) for each in (
            minus, total_of_products(np.append(x.real, x.imag), np.append(y.imag, y.real))
        )]  # fmt: skip
    if op == "dot":
        return nearest(total_of_products(x, y), dtype)
    count = x.size if "mean" in op else 1
    made = [nearest(total(each) / count, dtype) for each in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]
    return made if x.dtype.kind == "c" else made[0]


def defined(op: str, x: np.ndarray, axis: Any) -> np.ndarray:
    """The results, by the definition."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    rows = np.moveaxis(x, axes, range(-len(axes), 0))
    kept = rows.shape[: x.ndim - len(axes)]
    rows = np.ascontiguousarray(rows).reshape(-1, int(np.prod([x.shape[d] for d in axes])))
    found = np.array([row_sum(op, row, row[::-1]) for row in rows], real_of(x.dtype))
    return found.view(x.dtype).reshape(kept) if found.ndim == 2 else found.reshape(kept)


def by_calls(op: str, x: Any, axis: Any) -> Any:
    """The results, by the library."""
    return gpuops.dot(x, x[::-1]) if op == "dot" else OPS[op](x, axis=axis)


def cases(op: str, shapes: Any = None) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """Families, shapes and axes."""
    for family in FAMILIES:
        for shape, axes in SHAPES.items():
            if (op != "dot" or len(shape) == 1) and (shapes is None or shape in shapes):
                yield from ((family, shape, axis) for axis in axes)


def key(op: str, family: str, shape: tuple[int, ...], axis: Any) -> str:
    return f"{op} {family} {'x'.join(map(str, shape))} {axis}"


def hashed(x: np.ndarray) -> str:
    """A hash of bits; zeros have a sign of their own, all NaN are one."""
    parts = np.ascontiguousarray(x).reshape(-1).view(real_of(x.dtype))
    parts = np.where(parts != parts, np.array(np.nan, parts.dtype), parts)
    return hashlib.sha256(parts.tobytes()).hexdigest()[:8]


def ops_of(dtype: np.dtype) -> tuple[str, ...]:
    """The ops of a dtype. Magnitudes of complex numbers are rounded in other ways on other machines."""
    return tuple(op for op in (*OPS, "dot") if dtype.kind != "c" or op != "norm1")


@cache
def table() -> dict[str, dict[str, str]]:
    return json.loads(FILE.read_text())  # type: ignore[no-any-return]


def check(backend: Any, dtype: np.dtype, op: str, shapes: Any = None) -> None:
    """Compare the results of an op with the hashes."""
    for family, shape, axis in cases(op, shapes):
        x = elements(family, shape, dtype)
        with np.errstate(all="ignore"):
            got = backend.numpy(by_calls(op, backend.array(x), axis))
        if hashed(got) != table()[dtype.name][key(op, family, shape, axis)]:
            raise AssertionError((key(op, family, shape, axis), got, defined(op, x, axis)))


# ----------------------------------------------------------------------------------------------------------- the tests


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_results_have_these_bits(backend, dtype):
    if backend.name == "cpu" and real_of(dtype) == np.float64 and find_spec("numba") is None:
        pytest.skip("exact sums of float64 need Numba")
    few = backend.name == "emulated"
    for op in EMULATED["op"] if few else ops_of(dtype):
        check(backend, dtype, str(op), EMULATED["shape"] if few else None)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_hashes_are_those_of_the_definition(dtype):
    """Of some, since it is slow."""
    for op in ("sum", "norm2", "mean"):
        for family, shape, axis in cases(op, ((7, 60),)):
            found = hashed(defined(op, elements(family, shape, dtype), axis))
            assert found == table()[dtype.name][key(op, family, shape, axis)], key(op, family, shape, axis)


def same(a: Any, b: Any) -> bool:
    return hashed(np.asarray(a)) == hashed(np.asarray(b))


@needs_loops
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(
    st.sampled_from(["sum", "mean", "norm2", "sum_of_squares"]), st.sampled_from(DTYPES[:4]),
    st.sampled_from(FAMILIES), st.randoms(use_true_random=False),
)  # fmt: skip
def test_neither_order_nor_layout_changes_a_bit(op, dtype, family, random):
    x = elements(family, (7, 60), dtype)
    want = OPS[op](x, axis=1)
    order = random.sample(range(60), 60)
    assert same(OPS[op](x[:, order], axis=1), want)
    assert same(OPS[op](np.ascontiguousarray(x.T), axis=0), want)
    assert same(OPS[op](np.asfortranarray(x)[:, ::-1], axis=1), want)
    assert same(OPS[op](np.repeat(x, 3, 1)[:, ::3], axis=1), want)
    assert same([OPS[op](row, axis=None) for row in x], want)
    rows = random.choices(range(7), k=random.randint(1, 40))
    assert same(OPS[op](x[rows], axis=1), want[rows])


@needs_loops
@given(st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=60), st.integers(0, 60), st.sampled_from("fd"))
def test_sums_of_integers_can_be_split(numbers, place, dtype):
    x = np.array(numbers, dtype) / 8
    first = gpuops.sum(x[:place])
    if float(first) != sum(numbers[:place]) / 8:  # it has more bits than the dtype
        return
    assert same(gpuops.sum(x[place:], initial=first), gpuops.sum(x))


# ------------------------------------------------------------------------------- products and sums are rounded apart

FUSED = re.compile(r"\b(vfm|vfnm|fmadd|fmsub|fnmadd|fnmsub)")  # of x86-64 and of ARM
SNIPPET = "double f(double a, double b, double c) { double product = a * b; return product + c; }"


def assembly(*flags: str) -> str:
    """What g++ makes of a product and a sum for a CPU that could fuse them."""
    more = ["-mfma"] if platform.machine() == "x86_64" else []
    command = ["g++", *flags, *more, "-S", "-x", "c++", "-o", "-", "-"]
    return subprocess.run(command, input=SNIPPET, capture_output=True, text=True, check=True).stdout


def test_the_emulator_fuses_nothing(emulation):
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("instructions of this machine are not known")
    assert FUSED.search(assembly("-O2", "-ffp-contract=fast")), "this test could not fail"
    assert not FUSED.search(assembly(*build._KERNEL_FLAGS, "-O2"))


#: A product with its error, both added to a sum with a bias, as a thread does; the error of another sum; and products
#: that only their use tells from other arguments.
CHAIN = """
extern "C" __global__ void chain(const double* x, double* y) {
  double error, lost, product = gpuops::two_product(x[0], x[1], error);
  double high = gpuops::fast_two_sum(x[2], product, lost);
  y[0] = gpuops::fast_two_sum(high, error, y[1]), y[2] = gpuops::two_sum(lost, product, y[3]);
  y[4] = gpuops::fast_two_sum(x[3] * x[4], x[5], y[5]), y[6] = gpuops::two_sum(x[6], x[7] * x[8], y[7]);
}
"""


def test_nvrtc_fuses_nothing_in_sums_without_errors(nvrtc):
    """One fma (of an error) and as many additions as are written, all with a rounding mode: ptxas fuses no others."""
    from cupy_backends.cuda.libs import nvrtc as compiler

    text = "\n".join([*map(jit.read, jit.COMMON[: jit.COMMON.index("exact.cuh") + 1]), CHAIN])
    program = compiler.createProgram(text, "chain.cu", (), ())
    try:
        compiler.compileProgram(program, (*jit.options("reduce_rows"), "-arch=compute_90"))
        ptx = compiler.getPTX(program).decode()
    finally:
        compiler.destroyProgram(program)
    body = ptx[ptx.index(".entry chain") :]
    products, fused = re.findall(r"\bmul(?:\.rn)?\.f64\b", body), re.findall(r"\bfma\.rn\.f64\b", body)
    assert len(products) == 3 and len(fused) == 1, (products, fused)
    additions = re.findall(r"\b(?:add|sub)(?:\.rn)?\.f64\b", body)
    assert all(".rn" in each for each in additions), additions
    assert len(additions) == 3 + 3 + 6 + 3 + 6, additions


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        made = {
            dtype.name: {
                key(op, *case): hashed(defined(op, elements(case[0], case[1], dtype), case[2]))
                for op in ops_of(dtype) for case in cases(op)
            }
            for dtype in DTYPES
        }  # fmt: skip
    FILE.write_text(json.dumps(made, indent=0) + "\n")
