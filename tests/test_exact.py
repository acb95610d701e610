"""Exact sums: expansions made by each engine, how they merge, and how they are rounded, against fractions."""

from __future__ import annotations

import operator
from fractions import Fraction
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, strategies
from hypothesis.extra.numpy import arrays

from gpuops.definition import exact, structs
from gpuops.definition.exact import Expansion
from gpuops.definition.totals import nearest, nearest_root, total, total_of_products
from gpuops.device import finish
from gpuops.host import exact as with_numpy
from tests import exact_cases
from tests.layouts import BFLOAT16

DTYPES = [np.dtype(each) for each in ("f2", BFLOAT16, "f4", "f8")]
KINDS = ("x", "abs", "square", "product")
ENGINES = {"numpy": with_numpy.expansions}
if find_spec("numba"):
    from gpuops.host import compiled_exact

    ENGINES["compiled"] = compiled_exact.expansions
needs_numba = pytest.mark.skipif("compiled" not in ENGINES, reason="needs Numba, which the extra `cpu` installs")


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]


def same(a, b) -> bool:
    """Whether two scalars are the same number, or both NaN."""
    return bool((a != a and b != b) or (a == b and np.signbit(a) == np.signbit(b)))


def right(x, kind, y=None):
    """The exact sum of one dimension."""
    if kind in ("square", "product"):
        return total_of_products(x, x if y is None else y)
    return total(abs(x) if kind == "abs" else x)


def agrees(x: Expansion, wanted, dtype) -> None:
    """An expansion, of numbers, tells this sum, and what is sure of it is right."""
    s, e, r = (float(term) for term in x)
    value, sure = exact.rounded(Expansion(*map(np.asarray, x)), dtype)
    if isinstance(wanted, Fraction):
        assert np.isfinite(s) or sure
        assert r == np.inf or abs(wanted - Fraction(s) - Fraction(e)) <= Fraction(r) * (1 + Fraction(1, 1024))
    assert not sure or same(value[()], nearest(wanted, dtype))


# ------------------------------------------------------------------------------------------------------ the definition


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_totals_and_what_is_nearest(dtype):
    rng = np.random.default_rng(1)
    for name, x, sum in exact_cases.cases(dtype, rng):
        assert total(x) == sum, name
        assert same(nearest(sum, dtype), exact_cases.rounded(sum, dtype)), name
        if x.size < 1100:
            y = rng.permutation(x)
            assert total_of_products(x, y) == sum_of_fractions(x, y), name


def sum_of_fractions(x, y):
    return sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y)), Fraction(0))


def test_totals_of_numbers_that_are_not_finite():
    assert total(np.array([1, np.inf])) == np.inf
    assert total(np.array([1, -np.inf])) == -np.inf
    assert np.isnan(total(np.array([np.inf, -np.inf]))) and np.isnan(total(np.array([np.nan, np.inf])))
    assert total_of_products(np.array([1e300, np.inf]), np.array([1e300, -1.0])) == -np.inf
    assert np.isnan(total_of_products(np.array([0.0]), np.array([np.inf])))
    assert np.isnan(nearest(np.nan, "f4")) and np.isnan(nearest_root(Fraction(-1), "f8"))
    assert nearest_root(np.inf, "f4") == np.inf


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nearest_root_lies_between_the_squares_of_ties(dtype):
    rng = np.random.default_rng(2)
    for _ in range(300):
        x = Fraction(int(rng.integers(1, 2**60))) * Fraction(2) ** int(rng.integers(-20, -5))
        root = nearest_root(x, dtype)
        if not np.isfinite(root):
            continue
        bits = root.view(exact.BITS[dtype.itemsize])
        below, above = (Fraction(float((bits + step).view(dtype))) for step in (-1, 1))
        middle = Fraction(float(root))
        assert ((below + middle) / 2) ** 2 <= x <= ((above + middle) / 2) ** 2
    assert nearest_root(Fraction(9, 4), dtype) == 1.5


# ------------------------------------------------------------------------------------------------------------ rounding


def near_ties(dtype, rng, n):
    """Numbers of a dtype, and half of the distance to the next or 0, as float64."""
    word = exact.BITS[dtype.itemsize]
    bits = rng.integers(0, 2 ** (8 * dtype.itemsize - 1) - 1, n).astype(word)
    some = rng.random(n) < 0.6  # which are of ordinary size
    bits[some] = rng.choice([-1, 1], some.sum()).astype(dtype).view(word) + rng.integers(-300, 300, some.sum())
    with np.errstate(invalid="ignore"):
        x, above = (each.view(dtype).astype("f8") for each in (bits, bits + 1))
    finite = np.isfinite(x) & np.isfinite(above) & (abs(x) < 2.0**900) & (abs(x) > 2.0**-900)
    x, above = np.where(finite, x, 1.0), np.where(finite, above, 1.0)
    return x * rng.choice([-1, 1], n), (above - x) / 2 * rng.integers(0, 2, n) * rng.choice([-1, 1], n)


def blurred(s, e, rng):
    """Expansions at s + e, close to it, or with a residue."""
    n = s.size
    away = np.where(rng.random(n) < 0.5, 0.0, abs(s) * np.exp2(rng.integers(-130, -40, n)) * rng.choice([-1, 1], n))
    r = np.where(rng.random(n) < 0.5, 0.0, abs(s) * np.exp2(rng.integers(-130, -20, n)))
    return Expansion(s, e + away, r)


def ends(x: Expansion):
    """The least and the greatest number that an expansion may be, each of many."""
    for s, e, r in zip(*(term.tolist() for term in x)):
        middle, most = Fraction(s) + Fraction(e), Fraction(r) * (1 + Fraction(1, 1024))
        yield (middle - most, middle + most) if r else (middle,)


CASES = 16700  # for each of 3 functions and 4 dtypes: 2 * 10**5


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sure_sums_are_right(dtype):
    rng = np.random.default_rng(3)
    x = blurred(*near_ties(dtype, rng, CASES), rng)
    made, sure = exact.rounded(x, dtype)
    assert made.dtype == dtype and sure[x.r == 0].all() and 0.2 < sure[x.r > 0].mean() < 0.99
    for value, certain, each in zip(made, sure, ends(x)):
        assert not certain or all(same(value, nearest(end, dtype)) for end in each), each


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sure_quotients_are_right(dtype):
    rng = np.random.default_rng(4)
    value, half = near_ties(dtype, rng, CASES)
    n = np.where(rng.random(CASES) < 0.5, rng.integers(1, 12, CASES), rng.integers(1, 2**40, CASES)).astype("f8")
    s, e = exact.two_product(value, n)
    x = blurred(s, e + half * n, rng)
    made, sure = exact.rounded_quotient(x, n, dtype)
    assert made.dtype == dtype and sure[x.r == 0].mean() > (0.75 if dtype == "f8" else 0.99)
    for value, certain, each, count in zip(made, sure, ends(x), n.tolist()):
        assert not certain or all(same(value, nearest(end / int(count), dtype)) for end in each), (each, count)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sure_roots_are_right(dtype):
    rng = np.random.default_rng(5)
    value, half = near_ties(dtype, rng, CASES)
    far = (abs(value) > 2.0**450) | (abs(value) < 2.0**-450)
    value, half = np.where(far, 1.0, value), np.where(far, 0.0, half)
    s, e = exact.two_product(value, value)
    x = blurred(s, e + half * (2 * value + half), rng)
    made, sure = exact.rounded_root(x, dtype)
    assert made.dtype == dtype and sure[x.r == 0].mean() > (0.6 if dtype == "f8" else 0.99)
    for value, certain, each in zip(made, sure, ends(x)):
        assert not certain or all(same(value, nearest_root(end, dtype)) for end in each), each


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ties_of_quotients_and_roots_are_sure(dtype):
    one = np.ones((), dtype)
    tie = 1 + float((one.view(exact.BITS[dtype.itemsize]) + 1).view(dtype))  # twice the number between
    s = np.array([tie, 3 * tie, 0.0, -tie])
    zero = np.zeros(4)
    made, sure = exact.rounded_quotient(Expansion(s, zero, zero), np.array([2.0, 6, 5, 2]), dtype)
    assert sure.all() and made.tolist() == [1, 1, 0, -1]
    made, sure = exact.rounded_root(Expansion(np.array([2.25, 0, 1.0, 2.0]), zero, zero), dtype)
    assert sure.all() and made.tolist() == [1.5, 0, 1, nearest_root(Fraction(2), dtype)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rounding_at_the_ends_of_the_range(dtype):
    zero, most = np.zeros(5), float(greatest(dtype))
    x = Expansion(np.array([np.nan, np.inf, -np.inf, -0.0, most]), zero, zero)
    for rounding in (exact.rounded, exact.rounded_root, lambda x, dtype: exact.rounded_quotient(x, 1, dtype)):
        made, sure = rounding(x, dtype)
        assert sure[[0, 1, 3]].all() and np.isnan(made[0]) and made[1] == np.inf and same(made[3], dtype.type(0))
    made, sure = exact.rounded(x, dtype)
    assert sure.all() and made[2] == -np.inf and made[4] == most
    made, sure = exact.rounded_quotient(Expansion(*np.array([[1.0, 0], [0, 0], [0, 0]])), 0, dtype)
    assert sure.all() and made[0] == np.inf and np.isnan(made[1])
    tiny = Expansion(np.zeros(1), np.zeros(1), np.full(1, 1e-300))  # of either sign
    assert not exact.rounded(tiny, dtype)[1].any() and not exact.rounded(Expansion(1.0, 0.0, np.inf), dtype)[1].any()


def greatest(dtype):
    """The greatest number of a dtype."""
    return (np.array(np.inf, dtype).view(exact.BITS[dtype.itemsize]) - 1).view(dtype)


# ------------------------------------------------------------------------------------------------------------- merging


def test_merging_along_an_axis_in_any_order():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((5, 37, 3)) * np.exp2(rng.integers(-80, 80, (5, 37, 3)))
    zero = np.zeros_like(x)
    for axis in (0, 1, -1):
        s, e, r = exact.merged_along(x, zero, zero, axis)
        lines = np.moveaxis(x, axis, -1)
        assert s.shape == lines.shape[:-1]
        for place in np.ndindex(s.shape):
            agrees(Expansion(s[place], e[place], r[place]), total(lines[place]), np.dtype("f8"))
    assert [term.tolist() for term in exact.merged_along(x[:, :0], zero[:, :0], zero[:, :0], 1)] == [
        [[0.0] * 3] * 5
    ] * 3


def test_what_is_not_finite_or_open_merges_too():
    def of(s, r=0.0):
        return Expansion(*np.array([[s], [0.0], [r]]))

    assert exact.merged(of(np.inf), of(1.0)).s == np.inf
    assert np.isnan(exact.merged(of(np.inf), of(-np.inf)).s) and np.isnan(exact.merged(of(np.nan), of(1.0)).s)
    assert exact.merged(of(0.0, np.inf), of(1.0)).r == np.inf
    s, e, r = exact.merged(of(1.7e308), of(1.7e308))
    assert (s, e, r) == (0, 0, np.inf)  # no infinity of numbers


# ------------------------------------------------------------------------------------------------------------- engines


@cache
def hard(dtype, kind, most):
    """Hard cases as (x, y, exact sum), of at most so many elements."""
    rng, made = np.random.default_rng(7), []
    for _, x, _ in exact_cases.cases(dtype, rng):
        x = rng.permutation(x[:most]) if x.size > most else x
        y = rng.permutation(x) if kind == "product" else None
        made.append((x, y, right(x, kind, y)))
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hard_sums(engine, dtype, kind):
    rng = np.random.default_rng(7)
    for x, y, wanted in hard(dtype, kind, 2**20):
        for order in (slice(None), rng.permutation(x.size)):
            sums = engine(x[order].reshape(1, -1, 1), kind, y if y is None else y[order].reshape(1, -1, 1))
            agrees(Expansion(*(term[0, 0] for term in sums)), wanted, dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", ["rows", "columns", "few columns", "rows side by side", "columns apart"])
def test_hard_sums_beside_each_other(engine, form, dtype, kind):
    rng, n = np.random.default_rng(8), 600
    cases = hard(dtype, kind, n)[:: 5 if form == "few columns" else 1] * (1 if "few" in form else 3)
    lines, others = np.zeros((2, len(cases), n), dtype)
    for (x, y, _), line, other in zip(cases, lines, others):
        order = rng.permutation(n)[: x.size]
        line[order], other[order] = x, x if y is None else y
    sums = engine(shaped(lines, form), kind, shaped(others, form) if kind == "product" else None)
    for i, (_, _, wanted) in enumerate(cases):
        agrees(Expansion(*(term.reshape(-1)[i] for term in sums)), wanted, dtype)


SHAPES = [(1, 3001, 1), (7, 100, 1), (2, 65, 131), (3, 70, 5), (2, 1, 3), (4, 0, 3), (1, 40001, 1)]


def shaped(lines, form):
    """Lines as (outer, n, inner) of one form."""
    if form in ("rows", "rows side by side"):
        return (lines if form == "rows" else np.asfortranarray(lines))[:, :, None]
    columns = np.ascontiguousarray(lines.T)[None]
    return columns if form != "columns apart" else np.repeat(columns, 2, 2)[:, ::-1, ::2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shape", [(1, 3001, 1), (7, 100, 1), (2, 65, 131), (3, 70, 5), (2, 1, 3), (4, 0, 3), (1, 40001, 1)]
)
def test_ordinary_sums_are_sure(engine, shape, kind, dtype):
    rng = np.random.default_rng(9)
    scale = 0.01 if dtype == "f2" else 1.0
    data = {
        "normal": rng.standard_normal(shape) * scale,
        "uniform": rng.random(shape) * scale,
        "lognormal": rng.lognormal(0, 1, shape) * scale,
        "integers": rng.integers(-100, 100, shape) * scale,
        "far from zero": (1000 + rng.standard_normal(shape)) * scale,
    }
    for name, numbers in data.items():
        x = numbers.astype(dtype)
        y = rng.permutation(x, axis=1) if kind == "product" else None
        sums = engine(x, kind, y)
        made, sure = exact.rounded(Expansion(*sums), dtype)
        assert made.shape == (shape[0], shape[2]) and sure.all(), name
        some = [(0, 0), (shape[0] - 1, shape[2] - 1)]
        for o, i in some:
            wanted = right(x[o, :, i], kind, None if y is None else y[o, :, i])
            assert same(made[o, i], nearest(wanted, dtype)), name


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 700, 1), (2, 90, 70), (2, 90, 3)])
def test_elements_that_do_not_take_part(engine, shape, kind, dtype):
    rng = np.random.default_rng(10)
    x, taken = rng.standard_normal(shape).astype(dtype), rng.random(shape) < 0.5
    x[~taken] = rng.choice([np.nan, np.inf, 1.0], (~taken).sum()).astype(dtype)
    y = np.roll(x, 1, 0) if kind == "product" else None
    if y is not None:
        y[~np.isfinite(y.astype("f8"))] = 1
        y[~taken] = np.nan
    s, e, r = engine(x, kind, y, taken)
    for o, i in np.ndindex(s.shape):
        line = taken[o, :, i]
        wanted = right(x[o, line, i], kind, None if y is None else y[o, line, i])
        agrees(Expansion(s[o, i], e[o, i], r[o, i]), wanted, dtype)
        assert np.isfinite(s[o, i])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(6, 700, 1), (1, 90, 70), (1, 90, 6)])
def test_infinities_and_nan(engine, shape, kind, dtype):
    x = np.ones(shape, dtype)
    lines = np.moveaxis(x, 1, 2).reshape(-1, shape[1])
    assert np.shares_memory(lines, x) or shape[0] == 1
    for i, values in enumerate([(np.inf,), (-np.inf,), (np.inf, -np.inf), (np.nan,), (np.inf, np.nan)]):
        for k, value in enumerate(values):
            x[(i, 37 * (k + 1), 0) if shape[2] == 1 else (0, 37 * (k + 1) % 90, i)] = value
    y = x.copy() if kind == "product" else None
    s, e, r = engine(x, kind, y)
    made, sure = exact.rounded(Expansion(s, e, r), dtype)
    for o, i in np.ndindex(s.shape):
        wanted = nearest(right(x[o, :, i], kind, None if y is None else y[o, :, i]), dtype)
        assert sure[o, i] and same(made[o, i], wanted)


@pytest.mark.parametrize("shape", [(1, 700, 1), (1, 90, 70)])
def test_numbers_that_expansions_cannot_hold_leave_them_open(engine, shape):
    def one(value, other=1.0):
        x, y = np.ones(shape), np.ones(shape)
        x[0, 50, 0], y[0, 50, 0] = value, other
        return x, y

    assert np.isinf(engine(one(1e300)[0], "x")[2][0, 0])
    for x, y in (one(1e200, 1e200), one(1e-200, 1e-200), one(1e-160, 3e-160)):
        s, _, r = engine(x, "product", y)
        assert np.isinf(r[0, 0]) and np.isfinite(s).all() and (r.reshape(-1)[1:] == 0).all()
    assert engine(one(-np.inf)[0] + one(1e300)[0], "x")[0][0, 0] == -np.inf


FLOATS = {np.dtype(f"f{width // 8}"): strategies.floats(width=width) for width in (16, 32, 64)}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(data=strategies.data())
def test_no_order_and_no_split_changes_a_sum(engine, dtype, data):
    x = data.draw(arrays(dtype, strategies.integers(0, 40), elements=FLOATS[dtype]))
    order = data.draw(strategies.permutations(range(x.size)))
    cut = data.draw(strategies.integers(0, x.size))
    wanted = total(x)
    x = x[order]
    first, second = (Expansion(*engine(part.reshape(1, -1, 1), "x")) for part in (x[:cut], x[cut:]))
    for sums in (
        Expansion(*engine(x.reshape(1, -1, 1), "x")),
        exact.merged(first, second),
        exact.merged(second, first),
    ):
        agrees(Expansion(*(term[0, 0] for term in sums)), wanted, dtype)


@cache
def errors_by(function):
    """A function of arrays that gives the errors of products."""
    from numba import njit

    @njit(error_model="numpy")
    def errors(a, b, into):
        for i in range(a.size):
            into[i] = function(a[i], b[i], a[i] * b[i])

    return errors


@needs_numba
@pytest.mark.parametrize("way", ["error_in_steps", "error_fused"])
def test_errors_of_products_are_exact(way):
    """Were a step of the first contracted to a fused multiplication and addition, halves would not be halves."""
    from gpuops.host import compiled_elements

    rng = np.random.default_rng(11)
    a, b = rng.standard_normal((2, 4000)) * np.exp2(rng.integers(-300, 300, (2, 4000)))
    into = np.empty_like(a)
    errors_by(getattr(compiled_elements, way))(a, b, into)
    for x, y, e in zip(a.tolist(), b.tolist(), into.tolist()):
        assert Fraction(x) * Fraction(y) == Fraction(x * y) + Fraction(e)


@pytest.mark.parametrize("count", (0, 1, 1000))
def test_states_of_a_device_add_up_exactly_on_the_host(count):
    rng = np.random.default_rng(count)
    aligned, fixed = np.zeros(count + 2, structs.ALIGNED), np.zeros(count + 2, structs.FIXED)
    aligned["s"][:count] = rng.standard_normal(count) * 2.0 ** rng.integers(-90, 90, count)
    aligned["rest"][:count] = rng.standard_normal(count) * 2.0**-90
    fixed["low"][:count] = rng.integers(2**64 - 1, size=count, dtype=np.uint64)
    fixed["high"][:count] = rng.integers(-(2**63), 2**63 - 1, count)
    fixed["unit"] = rng.integers(-1100, 900, count + 2)
    assert finish.merged_total(aligned) == sum(map(Fraction, [*aligned["s"], *aligned["rest"]]), Fraction(0))
    digits = ((int(high) << 64) + int(low) for low, high, *_ in fixed.tolist())
    units = (Fraction(2) ** unit for unit in fixed["unit"].tolist())
    assert finish.merged_total(fixed) == sum(map(operator.mul, digits, units), Fraction(0))
    aligned["lost"][-1] = 1
    assert finish.merged_total(aligned) is None


@pytest.mark.parametrize("dtype", ("float16", "float32"))
def test_quotients_of_many_states_of_a_device_are_rounded_at_once(dtype):
    rng = np.random.default_rng(3)
    part = np.zeros((3, 2000, 1), structs.ALIGNED)
    part["s"] = rng.integers(-(2**14), 2**14, part.shape) * 0.5  # ties too
    part["rest"] = np.where(rng.random(part.shape) < 0.3, rng.standard_normal(part.shape) * 2.0**-60, 0.0)
    part["lost"][0, :9], part["exponent"][0, :9], part["s"][1, 9] = 1, 60, np.inf
    part["lost"][0, 10:500], part["exponent"][0, 10:500] = 1, -100  # too little to matter
    counts = rng.integers(1, 20, part.shape[1])
    found, sure = finish.rounded_at_once(part, counts, 20, np.dtype(dtype))
    assert not sure[:10].any() and sure.mean() > 0.9
    part["lost"] = 0
    for o in np.flatnonzero(sure[:, 0]).tolist():
        assert found[o, 0] == nearest(finish.merged_total(part[:, o, 0]) / int(counts[o]), np.dtype(dtype))


@pytest.mark.parametrize("dtype", ("float16", "float32"))
def test_what_states_of_a_device_have_lost_cannot_change_results_that_are_sure(dtype):
    """Both ends of what the sum may be, where that is from much less than the last bit of the result to more."""
    rng, length = np.random.default_rng(4), 2**28
    part = np.zeros((2, 3000, 1), structs.ALIGNED)
    part["s"] = 1 + rng.random(part.shape)
    bits = np.finfo(dtype).nmant
    part["lost"], part["exponent"] = rng.random(part.shape), rng.integers(52 - bits - 12, 52 - bits + 3, part.shape)
    found, sure = finish.rounded_at_once(part, np.ones(3000, int), length, np.dtype(dtype))
    assert 0.2 < sure.mean() < 0.9
    for o in np.flatnonzero(sure[:, 0]).tolist():
        unit = [Fraction(2) ** (int(k) - 52) for k in part["exponent"][:, o, 0]]
        off = sum(map(operator.mul, map(Fraction, part["lost"][:, o, 0].tolist()), unit), Fraction(0))
        off += Fraction(2) ** finish.merging(length, 2) * max(unit)
        middle = sum(map(Fraction, part["s"][:, o, 0].tolist()), Fraction(0))
        assert nearest(middle - off, np.dtype(dtype)) == found[o, 0] == nearest(middle + off, np.dtype(dtype))
