"""Scans against their definitions: exact sums in integers, products in a tree of Python's floats, NumPy's extremes."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.call.dispatch import describe
from gpuops.plan.work import Machine, new_array
from tests import exact_cases
from tests.budget import round_robin
from tests.compare import accumulator_eps, assert_bits, assert_near, assert_same, fails, run, widened
from tests.layouts import BFLOAT16, COMPLEX, DTYPES, FLOATS, HALVES, INTS, LAYOUTS, inexact, lay_out, placed, sample

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SCALE = 1200  # float64 numbers times 2**SCALE are integers
LENGTHS = (1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 32, 33, 63, 255, 256, 257, 1000, 4095, 4096, 4097, 5000, 70000)
NUMPY: dict[str, Any] = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate
}  # fmt: skip
NAMES = (*NUMPY, "logcumsumexp")

# ------------------------------------------------------------------------------------------------------ the definitions


def rounded(sum: int, dtype: np.dtype) -> float:
    """sum / 2**SCALE in a dtype, rounded to nearest, ties to even."""
    precision, least, top = exact_cases.form(dtype)
    size = abs(sum)
    place = max(size.bit_length() - precision, least + SCALE)
    steps, rest = divmod(size, 1 << place)
    steps += 2 * rest > 1 << place or (2 * rest == 1 << place and steps % 2 == 1)
    value = math.ldexp(steps, place - SCALE) if steps.bit_length() + place - SCALE <= top else math.inf
    return value if sum >= 0 else -value


def sums(x: np.ndarray) -> np.ndarray:
    """The exact sums of floats up to each one, rounded."""
    sum, special, minus, found = 0, 0.0, True, []
    for value in x.astype(np.float64).tolist():
        minus = minus and value == 0 and math.copysign(1, value) < 0
        if math.isfinite(value):
            numerator, denominator = value.as_integer_ratio()
            sum += (numerator << SCALE) // denominator
        else:
            special += value
        found.append(special if special != 0 else -0.0 if minus else rounded(sum, x.dtype))
    return np.array(found, np.float64).astype(x.dtype)


def normal(parts: tuple[float, ...], exponent: int = 0) -> Any:
    """A number in parts and a power of two."""
    shift = math.frexp(max(map(abs, parts)))[1] if all(map(math.isfinite, parts)) else 0
    return tuple([math.ldexp(part, -shift) for part in parts]), exponent + shift


def times(a: Any, b: Any) -> Any:
    """A product, that of complex numbers of their parts: none overflows or vanishes."""
    (x, i), (y, j) = a, b
    if len(x) == 1:
        return normal((x[0] * y[0],), i + j)
    return normal((x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]), i + j)


def value(number: Any) -> Any:
    parts, exponent = number
    with np.errstate(all="ignore"):
        found = [float(np.ldexp(part, max(-5000, min(5000, exponent)))) for part in parts]
    return complex(*found) if len(found) > 1 else found[0]


def before(totals: list[Any], one: Any) -> list[Any]:
    """What comes before each node of a level, given their totals."""
    groups = [totals[i : i + 16] for i in range(0, len(totals), 16)]
    folds = [[one] for _ in groups]
    for fold, group in zip(folds, groups, strict=True):
        for total in group:
            fold.append(times(fold[-1], total))
    parents = before([fold[-1] for fold in folds], one) if len(groups) > 1 else [one]
    pairs = zip(parents, folds, strict=True)
    return [times(parent, each) for parent, fold in pairs for each in fold[:-1]][: len(totals)]


def products(x: np.ndarray, exclusive: bool = False) -> np.ndarray:
    """The products of floats or complex numbers up to each one, or before it, in the order of the tree."""
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    parts = [wide.real.tolist(), wide.imag.tolist()] if x.dtype.kind == "c" else [wide.tolist()]
    values = [normal(each) for each in zip(*parts, strict=True)]
    start = (1.0, *[0.0] * (len(parts) - 1)), 0
    chunks, totals, found = [values[i : i + 16] for i in range(0, len(values), 16)], [], []
    for chunk in chunks:
        total = start
        for each in chunk:
            total = times(total, each)
        totals.append(total)
    for state, chunk in zip(before(totals, start) if totals else [], chunks, strict=True):
        for each in chunk:
            after = times(state, each)
            found.append(value(state if exclusive else after))
            state = after
    made = np.array(found, wide.dtype)
    return made.astype(x.dtype) if x.dtype != BFLOAT16 else once(made)


def once(x: np.ndarray) -> np.ndarray:
    """float64 in bfloat16, rounded once."""
    found = [exact_cases.rounded(Fraction(v), BFLOAT16) if math.isfinite(v) else v for v in x.tolist()]
    return np.array(found, np.float64).astype(BFLOAT16)


def logarithms(x: np.ndarray) -> np.ndarray:
    """The logarithms of sums of exponentials, in extended precision."""
    return np.logaddexp.accumulate(x.astype(np.longdouble)).astype(np.float64)


def of_line(name: str, x: np.ndarray) -> np.ndarray:
    """The scan of a line of elements in the dtype of the result."""
    if name == "logcumsumexp":
        return logarithms(x)
    if name == "cumsum" and x.dtype.kind == "c":
        made = np.empty_like(x)
        made.real, made.imag = sums(x.real), sums(x.imag)
        return made
    if name in ("cumsum", "cumprod") and inexact(x.dtype):
        return (sums if name == "cumsum" else products)(x)
    if x.dtype in HALVES:
        return np.asarray(NUMPY[name](x.astype(np.float32))).astype(x.dtype)
    return np.asarray(NUMPY[name](x, dtype=x.dtype))


def nothing(name: str, dtype: np.dtype) -> Any:
    """The result of no elements."""
    if name in ("cumsum", "cumprod"):
        return int(name == "cumprod")
    least = name != "cummin"
    if dtype.kind == "b":
        return not least
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if least else np.iinfo(dtype).max
    value = -math.inf if least else math.inf
    return complex(value, value) if dtype.kind == "c" else value


def result_dtype(name: str, x: np.ndarray) -> np.dtype:
    """The dtype of a scan's results."""
    if name == "logcumsumexp":
        return x.dtype if inexact(x.dtype) else np.dtype(np.float64)
    small = name in ("cumsum", "cumprod") and x.dtype.kind in "biu"
    return np.cumsum(np.empty(1, x.dtype)).dtype if small else x.dtype


def expected(
    name: str, x: np.ndarray, axis: int | None, reverse: bool = False, exclusive: bool = False, dtype: Any = None
) -> np.ndarray:  # fmt: skip
    """The results; those of logcumsumexp in float64."""
    val = np.dtype(dtype or result_dtype(name, x))
    x = x.astype(val)
    x = x.reshape(-1) if axis is None else x
    kind = np.dtype(np.float64) if name == "logcumsumexp" else val
    made = np.empty(x.shape, kind)
    step = -1 if reverse else 1
    lines, results = np.moveaxis(x, axis or 0, -1)[..., ::step], np.moveaxis(made, axis or 0, -1)[..., ::step]
    for place in np.ndindex(lines.shape[:-1]):
        found = of_line(name, lines[place])
        if exclusive and name == "cumprod" and inexact(val):
            found = products(lines[place], True)
        elif exclusive:
            found = np.concatenate([np.array([nothing(name, val)], kind), found[:-1]])
        results[place] = found
    return made


def check(backend: Any, name: str, x: np.ndarray, axis: int | None = -1, out: Any = None, **options: Any) -> np.ndarray:
    """Compare results with the definition, bit for bit but for logarithms."""
    given = x.copy()  # (out may be x)
    got = run(backend, getattr(gpuops, name), x, axis=axis, out=out, **options)
    options.pop("strategy", None)
    want = expected(name, given, axis, **options)
    if name == "logcumsumexp":
        val = np.dtype(options.get("dtype") or result_dtype(name, given))
        assert got.dtype == (val if out is None else out.dtype)
        error = accumulator_eps(val) * 8 * math.sqrt(given.size) * (1 + np.where(np.isfinite(want), np.abs(want), 0))
        assert_near(got, want, error)
    elif name == "cumprod" and want.dtype.kind == "c" and backend.name == "gpu":  # which fuses parts of products
        error = 64 * accumulator_eps(want.dtype) * math.sqrt(given.size) * np.abs(want)
        assert_near(got, want, np.where(np.isfinite(error), error, 0))
    elif out is not None and out.dtype != want.dtype:
        assert_same(got, want.astype(out.dtype))
    elif name == "cumsum" or (inexact(want.dtype) and not np.isnan(widened(want)).any()):
        assert_bits(plain(got), plain(want))
    else:
        assert_same(got, want)
    return got


def plain(x: np.ndarray) -> np.ndarray:
    """The same with one NaN."""
    if x.dtype.kind == "c":
        return plain(np.ascontiguousarray(x).view(x.real.dtype)).view(x.dtype)
    return np.where(x != x, np.array(np.nan, x.dtype), x) if inexact(x.dtype) else x


def supported(name: str) -> tuple[np.dtype, ...]:
    """The dtypes that a scan takes."""
    return tuple([d for d in DTYPES if d not in COMPLEX]) if name == "logcumsumexp" else DTYPES


CASES = [(name, dtype) for name in NAMES for dtype in supported(name)]
FLAGS = [{"reverse": reverse, "exclusive": exclusive} for reverse in (False, True) for exclusive in (False, True)]

# ----------------------------------------------------------------------------------------------------------- any array


@pytest.mark.turns(21)  # out of step with FLAGS
@pytest.mark.parametrize("name,dtype", CASES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_axis_of_any_layout(backend, name, dtype, layout):
    x = lay_out(sample((3, 19, 4), dtype, 1), layout)
    for i, axis in enumerate((-1, 0, 1, None)):
        for flags in FLAGS if backend.name == "cpu" else round_robin(FLAGS, 1, i + LAYOUTS.index(layout)):
            check(backend, name, x, axis, **flags)


@pytest.mark.turns(16)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", LENGTHS)
def test_lines_of_every_length(backend, name, length):
    few = length > 1000
    for dtype in ("f8", "i4") if length > 5000 else ("f4", "f8", "f2", BFLOAT16, "i2", "u8"):
        x = sample((length, 1 if few else 3), dtype, 2)
        if name == "cumprod":
            x = np.sign(x) + (x == 0) + (x / np.asarray(64, x.dtype)).astype(x.dtype) if inexact(x.dtype) else x
        check(backend, name, x, 0)
        if not few:
            check(backend, name, np.ascontiguousarray(x.T), 1, reverse=True)


@pytest.mark.turns(8)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape,axis", [((300, 24), 0), ((5, 3, 40), 1), ((2, 700, 17), 1), ((700, 5), 0)], ids=str)
def test_many_columns(backend, name, shape, axis):
    for dtype in ("f4", "f8", "f2", "c8", "i1", "?"):
        if np.dtype(dtype) in supported(name):
            x = sample(shape, dtype, 3)
            if name == "cumprod" and inexact(x.dtype):
                x = x / np.abs(x).max().astype(x.dtype)
            check(backend, name, x, axis)


#: (shape, axis) of many lines, and of few long ones of which lanes have one or share some: on the emulator with four
#: multiprocessors for chains of warps, and for parts.
MANY_AND_FEW = (
    ((140, 40), 1), ((40, 140), 0), ((70, 40, 2), 1), ((1700, 3), 0), ((260, 17), 0), ((2, 3100), 1), ((260, 70), 0),
    ((3, 5, 141), 1), ((12, 260), 0),
)  # fmt: skip


@pytest.mark.turns(32, everywhere=True)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape,axis", MANY_AND_FEW, ids=str)
def test_many_lines_and_few(backend, name, layout, shape, axis):
    for i, dtype in enumerate(("f4", "f8", "c8", "i2")):
        if np.dtype(dtype) in supported(name):
            x = sample(shape, dtype, 4)
            if name == "cumprod" and inexact(x.dtype):
                x = x / np.abs(x).max().astype(x.dtype)
            check(backend, name, lay_out(x, layout), axis, **FLAGS[(i + axis) % 4])


@pytest.mark.turns(12)
@pytest.mark.parametrize("name,dtype", CASES, ids=str)
def test_special_values(backend, name, dtype):
    if name == "cumprod" and dtype in COMPLEX:
        return  # infinite numbers times 1 have parts that are NaN
    for shape, axis in (((40, 7), 1), ((40, 9), 0), ((5, 140), 0), ((3, 400), 1)):
        check(backend, name, sample(shape, dtype, 4, special=True), axis)


# ---------------------------------------------------------------------------------------------------------- exact sums


@contextmanager
def engine(name: str) -> Any:
    """The CPU engine of exact sums, in small pieces."""
    from gpuops.host import exact_engines, prefix_sums

    with pytest.MonkeyPatch.context() as patch:
        if name == "numpy":
            patch.setattr(exact_engines, "compiled", lambda module: None)
            patch.setattr(prefix_sums, "PIECE", 64)
            patch.setattr(prefix_sums, "FEW", 2**60)
        elif name == "compiled":
            pytest.importorskip("numba", reason="needs Numba, which the extra `cpu` installs")
            patch.setattr(exact_engines, "LOOPS", 0)
        yield


ENGINES = ("", "numpy", "compiled")


@cache
def hard(dtype: Any) -> list[tuple[str, np.ndarray]]:
    """Lines whose sums are hard to round."""
    rng = np.random.default_rng(5)
    found = [(name, x[:2000]) for name, x, _ in exact_cases.cases(dtype, rng) if x.size]
    precision, least, top = exact_cases.form(dtype)
    grid = rng.integers(-(2 ** (precision - 4)), 2 ** (precision - 3), 3000) * 2.0 ** (min(0, top - precision - 8))
    ramp = np.ldexp(rng.choice([-1.0, 1.0], 3000), rng.integers(least, top - 14, 3000))
    found += [(name, x.astype(dtype)) for name, x in (("grid", grid), ("powers", ramp), ("there and back", both(ramp)))]
    odd = sample((2000,), dtype, 6, special=True)
    return [*found, ("special", odd), ("minus zero", np.array([-0.0] * 70 + [0.0, -0.0, 1, -1, -0.0], dtype))]


def both(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, -x[::-1]])


@pytest.mark.parametrize("by", ENGINES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_are_rounded_once(backend, dtype, by):
    if by and backend.name != "cpu":
        return
    with engine(by):
        for name, x in hard(dtype):
            x = x if backend.name == "cpu" else x[:900]  # what is open takes long on the emulator
            want = sums(x)
            for shape, axis in (((-1, 1), 0), ((1, -1), 1)):
                got = run(backend, gpuops.cumsum, x.reshape(shape), axis=axis)
                assert_bits(plain(got.reshape(-1)), plain(want)), name


@pytest.mark.parametrize("count", (3, 17, 40, 140))
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_of_many_lines_and_few_are_rounded_once(backend, dtype, count):
    lines = hard(dtype)
    length = 600 if count < 100 else 200
    different = [np.resize(line, length) for _, line in lines]
    x = np.stack([different[i % len(lines)] for i in range(count)], 1)
    exact = [plain(sums(line)) for line in different]
    want = np.stack([exact[i % len(lines)] for i in range(count)], 1)
    for given, axis in ((x, 0), (x.T, 1), (np.repeat(x.T, 2, 1)[:, ::2], 1)):
        got = plain(run(backend, gpuops.cumsum, given, axis=axis))
        assert_bits(np.ascontiguousarray(got if axis == 0 else got.T), want)


@pytest.mark.parametrize("by", ENGINES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_do_not_depend_on_what_is_beside(backend, dtype, by):
    if by and backend.name != "cpu":
        return
    _, least, top = exact_cases.form(dtype)
    scales = np.ldexp(1.0, np.linspace(least + 20, top - 10, 40).astype(int))
    x = (sample((300, 40), np.float64, 7) * scales).astype(dtype)
    x[17, 3], x[200, 4], x[5, 8], x[6, 8] = np.nan, np.inf, -np.inf, np.inf
    with engine(by):
        want = np.stack([plain(sums(column)) for column in x.T], 1)
        for given, axis in ((x, 0), (x.T, 1), (np.ascontiguousarray(x.T), 1), (np.stack([x, x])[1], 0)):
            got = plain(run(backend, gpuops.cumsum, given, axis=axis))
            assert_bits(np.ascontiguousarray(got if axis == 0 else got.T), want)
        for count in (1, 2, 7, 16, 33):
            got = plain(run(backend, gpuops.cumsum, x[:, :count].copy(), axis=0))
            assert_bits(got, np.ascontiguousarray(want[:, :count]))


def test_sums_overflow_only_if_they_are_too_large(backend):
    for dtype in ("f4", "f8"):
        most = np.finfo(dtype).max
        x = np.array([most, most, -most, -most, most / 2, np.inf, -np.inf, 1], dtype)
        want = np.array([most, np.inf, most, 0, most / 2, np.inf, np.nan, np.nan], dtype)
        assert_same(run(backend, gpuops.cumsum, x), want)
    assert_same(run(backend, gpuops.cumsum, np.array([1e308, 1e308, -1e308])), np.array([1e308, np.inf, 1e308]))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_long_lines_on_threads(count):
    from gpuops.host import threads

    x = sample((70000,), "f8", 8) * 10.0 ** np.random.default_rng(9).integers(-9, 9, 70000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "limit", lambda: count)
        patch.setattr(threads, "WAKE", 1)
        for name, given in (("cumsum", x), ("cumsum", x.astype("f4")), ("cumsum", (x * 100).astype("i8"))):
            assert_bits(getattr(gpuops, name)(given), of_line(name, given))


# ------------------------------------------------------------------------------------------------------ compiled scans


def bits_of(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(plain(x))


def warned(call: Any) -> tuple[np.ndarray, set[str]]:
    """A result, and what is said of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = call()
    return bits_of(made), {str(each.message) for each in caught}


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("name", "dtypes"), [("cumprod", "fd"), ("cumprod", "FD"), ("logcumsumexp", "fd")])
def test_compiled_scans_have_the_bits_of_the_tree(name, dtypes, exclusive):
    pytest.importorskip("numba", reason="needs Numba, which the extra `cpu` installs")
    from gpuops.host import exact_engines

    rng = np.random.default_rng(13)
    lines = ((900, 7), 1), ((900, 16), 1), ((2000, 17), 1), ((2000, 31), 1), ((20, 2000), 0), ((600, 33), 1)
    for shape, axis in (*lines, ((3, 5000), 1), ((20000, 3), 0), ((70000,), 0)):
        normal = rng.normal(0, 1, shape)
        wild = np.where(rng.random(shape) < 0.01, 0.0 if shape == (900, 7) else 2.0**-900, np.exp(normal * 40))
        odd, minus = (np.where(rng.random(shape) < 0.001, number, normal) for number in (np.inf, -np.inf))
        for x in (1 + normal / 100, normal, wild, odd, minus, np.where(rng.random(shape) < 0.001, np.nan, normal)):
            given = [x.astype(dtype) for dtype in dtypes]
            if dtypes == "FD":
                given = [(x * np.exp(1j * turn)).astype(dtype) for dtype in dtypes for turn in (0, normal)]
            for each in given:
                call = partial(getattr(gpuops, name), each, axis=axis, exclusive=exclusive)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(exact_engines, "LOOPS", 0)
                    got, said = warned(call)
                    patch.setattr(exact_engines, "compiled", lambda module: None)
                    want, expected = warned(call)
                assert_bits(got, want)
                assert said == expected


@pytest.mark.parametrize("name", ["cumprod", "logcumsumexp"])
def test_compiled_scans_of_very_long_lines_have_the_bits_of_the_tree(name):
    """Of more than 16 blocks; with all signs of zeros, if they are complex."""
    pytest.importorskip("numba", reason="needs Numba, which the extra `cpu` installs")
    from gpuops.host import exact_engines

    signs = np.array([1, -1, 1j, -1j, complex(1, -0.0), complex(-1, -0.0), complex(-0.0, 1), complex(-0.0, -1)])
    x = np.random.default_rng(14).choice(signs, 2**20 + 70000)
    for each in (x.real + 1.5,) if name == "logcumsumexp" else (x, np.where(x.real < 0, -1.0, 1.0)):
        with pytest.MonkeyPatch.context() as patch:
            got = getattr(gpuops, name)(each)
            patch.setattr(exact_engines, "compiled", lambda module: None)
            assert_bits(bits_of(got), bits_of(getattr(gpuops, name)(each)))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["?", "i4", "i8", "f4", "f8"])
def test_compiled_accumulation_has_the_bits_of_numpy(name, dtype):
    if dtype[0] == "f" and name in ("cumsum", "cumprod"):
        return
    x = sample((120, 90), dtype, 14, special=True)
    for shape, axis in (((-1,), 0), ((120, 90), 0), ((120, 90), 1), ((2700, 4), 0), ((2700, 4), 1), ((4, 27, 100), 1)):
        given = x.reshape(shape)
        want = NUMPY[name](given, axis=axis)
        assert_bits(bits_of(getattr(gpuops, name)(given, axis=axis)), bits_of(want))


def test_sums_of_exponentials_merge_as_their_record_says():
    from gpuops.definition.records import LOGSUMEXP
    from gpuops.host.scan_trees import exponentials, logarithm, powers

    numbers = [-np.inf, np.inf, np.nan, 0.0, -1.5, 700.0, -1e300]
    top, rest = (each.ravel() for each in np.meshgrid(numbers, [0.0, 0.25, 1e5]))
    rest[top == -np.inf] = -1.0  # the state of no elements
    a, b = ([each.repeat(top.size) for each in (top, rest)], [np.tile(each, top.size) for each in (top, rest)])
    wide = LOGSUMEXP.bind(np.dtype("f8"), np.dtype("f8")).wide
    with np.errstate(all="ignore"):
        want = wide.combine(**dict(zip(wide.leaves_of["a"] + wide.leaves_of["b"], a + b, strict=True)))
        want = wide.finish(**dict(zip(wide.leaves_of["s"], want, strict=True)), scale=1.0)[0]
        assert_bits(bits_of(logarithm(powers(a, b))), bits_of(want))
        states = [a, *([np.roll(each, 7 * turn) for each in b] for turn in range(1, 20))]
        so_far = exponentials(tuple([np.stack(each, -1) for each in zip(*states, strict=True)]))
        wanted = zip(*itertools.accumulate(states, powers), strict=True)
        for found, each in zip(so_far, wanted, strict=True):
            assert_bits(bits_of(found), bits_of(np.stack(each, -1)))


# ---------------------------------------------------------------------------------------------------------- the ladder

LADDER = [(strategy, name) for name in NAMES for strategy in gpuops.strategies(name)[:-1]]
#: Dtypes of each scan that every rung takes, if it has the scan.
OF_ALL = {
    "cumsum": ("f4", "c16", "u1"), "cumprod": ("i4",), "cummax": ("f2", "i8"), "cummin": ("f8",),
    "logcumsumexp": ("f4",),
}  # fmt: skip


@pytest.mark.parametrize("strategy,name", LADDER)
def test_rungs_give_the_same_as_the_fast_kernel(device, strategy, name):
    ordered = strategy in ("blelloch", "three_pass") and name == "cumprod"
    for i, dtype in enumerate((*OF_ALL[name], *("f4", "c8") * ordered)):
        x = sample((37, 5, 3), dtype, 14, special=name in ("cummax", "cummin"))
        for axis, flags in zip((0, None), FLAGS[i % 2 :: 2], strict=True):
            check(device, name, lay_out(x, "sliced"), axis, strategy=strategy, **flags)
        check(device, name, sample((2, 1000), dtype, 15), strategy=strategy)


@pytest.mark.parametrize("strategy", gpuops.strategies("cumsum")[:-1])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_of_rungs_are_rounded_once(device, strategy, dtype):
    for name, x in hard(dtype):
        got = run(device, gpuops.cumsum, x[:300].reshape(1, -1), axis=1, strategy=strategy)
        assert_bits(plain(got.reshape(-1)), plain(sums(x[:300]))), name


@pytest.mark.parametrize("name", NAMES)
def test_three_passes_over_long_lines(device, name):
    for dtype, flags in (("f8", {}), ("i2", {"reverse": True, "exclusive": True})):
        x = sample((2, 9000), dtype, 16)
        x = np.sign(x) * 1.0625 if name == "cumprod" and dtype == "f8" else x
        check(device, name, x, strategy="three_pass", **flags)


@pytest.mark.parametrize("strategy", gpuops.strategies("cummax")[:-1])
def test_rungs_in_place(device, strategy):
    for flags in FLAGS:
        x = device.array(sample((3, 400), "i4", 17))
        want = expected("cummax", device.numpy(x), 1, **flags)
        assert_same(device.numpy(gpuops.cummax(x, 1, None, x, strategy=strategy, **flags)), want)


def test_rungs_tell_what_they_do_not_take():
    line, lines = (new_array("a", shape, np.dtype("f4"), machine=Machine(132)) for shape in ((5000,), (40, 1024)))
    for strategy, most in (("hillis_steele", 1024), ("blelloch", 4096)):
        rule = f"cumsum: strategy '{strategy}' takes lines of at most {most} elements, got 5000"
        fails(ValueError, rule, describe, gpuops.cumsum, line, strategy=strategy)
        assert describe(gpuops.cumsum, lines, 1, strategy=strategy).plan.steps[0].grid == (40, 1, 1)
    for strategy in ("hillis_steele", "warp"):
        rule = f"cumprod: strategy '{strategy}' merges in an order of its own, on which float64 results depend"
        fails(ValueError, rule, describe, gpuops.cumprod, lines, 1, strategy=strategy)


def test_three_passes_are_five_over_very_long_lines():
    x = new_array("a", (2**24 + 1, 3), np.dtype("f4"), machine=Machine(132))
    plan = describe(gpuops.cumsum, x, 0, strategy="three_pass").plan
    assert [step.grid[0] for step in plan.steps] == [3 * 4097, 3 * 2, 3, 3 * 2, 3 * 4097]
    assert dict(plan.workspace) == {"level_1": 24 * 3 * 4097, "level_2": 24 * 3 * 2}


# ------------------------------------------------------------------------------------------------------ out, and errors


@pytest.mark.parametrize("name", NAMES)
def test_dtype_and_out(backend, name):
    for dtype in ("f4", "i4", "u1", "f2"):
        x = np.abs(sample((6, 50), dtype, 10)) if name == "logcumsumexp" else sample((6, 50), dtype, 10)
        for result in ("f4", "f8"):
            check(backend, name, x, dtype=result)
            check(backend, name, x, out=placed(np.empty((6, 50), result), (1, 0), (2, -1), 1), dtype=result)
    x = sample((6, 50), "f4", 11)
    check(backend, name, x, out=placed(np.empty((6, 50), np.float64)), dtype="f4")
    x = np.ones((6, 50), "i4")
    if name != "logcumsumexp":
        check(backend, name, x, out=placed(np.empty((6, 50), np.int16), (1, 0)), dtype="i4")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape,axis", [((6, 300), 1), ((300, 12), 0), ((40, 50), 1)], ids=str)
def test_in_place_and_overlapping(backend, name, shape, axis):
    for dtype in ("f4", "f8", "i4"):
        if name == "logcumsumexp" and dtype == "i4":
            continue
        x = np.abs(sample(shape, dtype, 12)) / np.asarray(3 if name == "cumprod" else 1, dtype)
        x = x.astype(dtype)
        want = getattr(gpuops, name)(x, axis, dtype=dtype)
        for flags in FLAGS:
            there = backend.array(x)
            result = getattr(gpuops, name)(there, axis, dtype, there, **flags)
            assert result is there
            assert_values_near(backend.numpy(there), getattr(gpuops, name)(x, axis, dtype, **flags))
        both = backend.array(np.concatenate([x, x]))
        getattr(gpuops, name)(both[: len(x)], axis, dtype, both[1 : len(x) + 1])
        assert_values_near(backend.numpy(both[1 : len(x) + 1]), want)


def assert_values_near(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_empty_arrays_and_numbers(backend, name):
    function: Callable[..., Any] = getattr(gpuops, name)
    for shape, axis in (((0, 5), 1), ((5, 0), 1), ((5, 0), 0), ((0,), None)):
        assert run(backend, function, np.empty(shape, np.float32), axis=axis).shape == shape
    for axis in (None, 0, -1):
        found = run(backend, function, np.array(3.0, np.float16), axis=axis)
        assert (found.tolist(), found.shape, found.dtype) == ([3], (1,), np.float16)
    assert run(backend, function, np.ones((3, 1, 2), np.float32), axis=1).shape == (3, 1, 2)


@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_memory_order_of_the_array(backend, name):
    x = backend.array(np.asfortranarray(sample((4, 5, 6))).transpose(1, 0, 2))
    assert getattr(gpuops, name)(x, 1).strides == np.empty_like(x).strides


@pytest.mark.parametrize("name", NAMES)
def test_errors(backend, name):
    x, function = backend.array(np.ones((3, 4), np.float32)), getattr(gpuops, name)
    fails(np.exceptions.AxisError, f"{name}: axis 2", function, x, axis=2)
    fails(TypeError, f"{name}: axis", function, x, axis=True)
    fails(TypeError, f"{name}: axis", function, x, axis=(0, 1))
    fails(ValueError, f"{name}: out", function, x, axis=1, out=backend.array(np.ones((3, 5), np.float32)))
    fails(TypeError, f"{name}: ", function, x, dtype="U3")


def test_products_neither_overflow_nor_vanish_on_the_way(backend):
    x = np.ones(400)
    x[:16], x[16:32], x[300:310], x[310:320] = 1e-18, 1e20, 1e150, 1e-150
    check(backend, "cumprod", x)
    check(backend, "cumprod", np.stack([x, 1 / x], 1), 0)
    got = run(backend, gpuops.cumprod, np.arange(20000) / 20000 + 0.5)
    assert not np.isnan(got).any() and got[-1] == 0


def test_warnings_come_once():
    most = np.finfo(np.float64).max
    cases = ("cumsum", [most, most, most]), ("cumprod", [1e200, 1e200, 1e200]), ("cumsum", [np.inf, -np.inf, 1])
    for name, x in cases:
        with pytest.warns(RuntimeWarning) as found:
            getattr(gpuops, name)(np.array(x))
        assert len(found) == 1
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            getattr(gpuops, name)(np.array(x))
        with np.errstate(all="ignore"):
            getattr(gpuops, name)(np.array(x))


@pytest.mark.parametrize("size", [3, 300, 20000])
@pytest.mark.parametrize("dtype", (*FLOATS, *COMPLEX), ids=str)
@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
def test_overflow_is_reported_as_by_numpy(op, dtype, size):
    x = np.ones(size, dtype)
    x[:2] = math.ldexp(1, exact_cases.form(x.real.dtype)[2] - 1)
    for a, axis in ((x, 0), (np.stack([x, x], 1), 0), (np.stack([x, x]), 1)):
        for options in {}, {"exclusive": True}:
            with pytest.warns(RuntimeWarning, match="^overflow encountered in accumulate$"):
                getattr(gpuops, op)(a, axis, **options)


assert INTS
