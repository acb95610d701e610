"""The definitions of reductions: their laws, their results, and that every faster form gives the states they define."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.definition import records
from gpuops.definition.expressions import Typed, leaf, maximum, quotient, typed, where
from gpuops.definition.in_numpy import printed
from gpuops.definition.reduction import Bound, Reduction
from gpuops.definition.task import positions
from gpuops.host import forms
from gpuops.host.forms import Block, States
from gpuops.ops.reduction import dtypes
from tests.compare import accumulator_eps, assert_bits, assert_near, assert_values, widened
from tests.host_blocks import ENGINES, computed_by, settings, small_blocks
from tests.layouts import BFLOAT16, inexact, sample, smallest_subnormal

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RECORDS = {each.name: each for each in vars(records).values() if isinstance(each, Reduction)}
#: Records that forms are made of, which are no op's.
PASSES = ("totals", "numbers", "deviations", "nandeviations", "norm_within")
NO_OPS = (*PASSES, *records.ROWS)  # whose results are no public function's
ROWS = {
    row.name: row
    for rows in (records.REDUCTIONS, records.MEASURES, records.NORMS, records.SEARCHES, records.WITH_INDEX)
    for row in rows.values()
}
DTYPES = tuple(map(np.dtype, ("f2", BFLOAT16, "f4", "f8", "c8", "i1", "u1", "i8", "?")))
SEARCHES = (*records.SEARCHES, *records.WITH_INDEX)
NORMS = {"norm2": 2, "norm1": 1, "norm0": 0, "norm_inf": math.inf, "norm_minus_inf": -math.inf, "norm_p": 3}
OPTIONS = {"ddof": 1.0, "p": 3.0, "scale": 0.5, "floor": np.float64(0.2)}
#: Those of ops that give a result for each element, as public functions take them.
GIVEN = {"softmax": {"scale": 0.5}, "log_softmax": {"scale": 0.5}, "rms_norm": {"eps": 0.04}}
#: What makes elements of which a record has a number, of any, where it has NaN of some: such as np.abs.
DOMAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
CENTER = np.asarray(0.5)  # from which the second passes take distances


def computed_in(name: str, x: np.dtype) -> np.dtype | None:
    """The dtype in which an op computes; None if it does not take elements of that dtype, or another op does."""
    if x.kind in "biu" and (RECORDS[name].takes is not None or (name in ROWS and ROWS[name].plain)):
        return None
    if name.endswith("deviations"):
        return None if x.kind == "c" else x if inexact(x) else np.dtype("f8")
    if "logsumexp" in name or name in records.ROWS:
        return None if x.kind == "c" else np.dtype("f4") if x.itemsize == 2 and inexact(x) else widest(x)
    if name in ("average", "dot"):
        return widest(x)
    if name in SEARCHES:
        return x
    try:
        return dtypes(name, ROWS.get(name, records.REDUCTIONS["mean"]), x, None, None)[0]
    except TypeError:
        return None


def widest(x: np.dtype) -> np.dtype:
    """An inexact dtype, or double precision."""
    return x if inexact(x) else np.dtype("f8")


CASES = [(name, x) for name in RECORDS for x in DTYPES if computed_in(name, x) is not None]


def bind(name: str, x: np.dtype) -> Bound:
    """The record for elements of a dtype."""
    val = computed_in(name, x)
    assert val is not None
    return RECORDS[name].bind(x, val, val if RECORDS[name].struct.traits.product else None)


def bounds(name: str, x: np.dtype) -> list[Bound]:
    """The same, and computed in double precision; the second passes are always."""
    bound = bind(name, x)
    return [bound.wide] if name.endswith("deviations") else [bound, bound.wide]


def weights(x: np.ndarray) -> np.ndarray:
    """Of an average of such elements."""
    found = np.abs(sample(x.shape, x.dtype if inexact(x.dtype) else "f8", 9)) + 1
    return found.astype(computed_in("average", x.dtype))  # (with older versions of ml_dtypes, + 1 makes float32)


def contributions(bound: Bound, x: np.ndarray) -> States:
    """The states of elements, by field, as the record defines them."""
    acc = bound.kinds["A"]
    index = np.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1))
    made = bound.map(
        x=x.astype(bound.val).astype(acc), y=weights(x).astype(acc), index=index, center=CENTER, **OPTIONS
    )  # fmt: skip
    names = bound.state.names or ()
    fields = [np.broadcast_to(each, x.shape).astype(bound.state[name]) for each, name in zip(made, names, strict=True)]
    if bound.takes is not None:
        taken = bound.takes(x=x)[0]
        fields = [np.where(taken, each, bound.identities[name]) for each, name in zip(fields, names, strict=True)]
    return tuple(fields)


def combine(bound: Bound, a: States, b: States) -> States:
    """The states of two parts."""
    names = bound.state.names or ()
    with np.errstate(all="ignore"):
        return bound.combine(**{
            f"{part}_{name}": each for part, state in (("a", a), ("b", b)) for name, each in zip(names, state)
        })  # fmt: skip


def finish(bound: Bound, state: States, n: Any) -> tuple[np.ndarray, ...]:
    """The results of states of n elements each."""
    if bound.reduction.start is not None and bound.kinds["A"].kind in "fc":
        state = combine(bound, bound.map(x=np.asarray(bound.reduction.start, bound.kinds["A"])), state)
    given = {f"s_{name}": each for name, each in zip(bound.state.names or (), state, strict=True)}
    with np.errstate(all="ignore"):
        return tuple(map(np.asarray, bound.finish(n=np.asarray(n, np.float64), **OPTIONS, **given)))


def is_exact(bound: Bound) -> bool:
    """Whether nothing is rounded."""
    return bound.exact or bound.reduction.name in SEARCHES


# ------------------------------------------------------------------------------------------------------------ the laws


def edges(dtype: np.dtype) -> np.ndarray:
    """Both zeros, NaN, infinities, subnormals and the greatest numbers of a dtype, and ordinary ones."""
    if dtype.kind == "c":
        parts = edges(np.dtype(f"f{dtype.itemsize // 2}"))
        made = np.empty((len(parts), len(parts)), dtype)
        made.real, made.imag = parts[:, None], parts
        return made.ravel()
    if dtype.kind in "biu":
        low, high = (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return np.array([low, high, 0, 1, high // 3], dtype)
    tiny, most = smallest_subnormal(dtype), float(ml_dtypes.finfo(dtype).max)
    return np.array([0.0, -0.0, np.nan, np.inf, -np.inf, tiny, -3 * tiny, most, -most, 1.5, -2.25], dtype)


#: A product of complex numbers has no such state: times 1, infinity is NaN in its other part.
LAWFUL = [case for case in CASES if not (case[0].endswith("prod") and case[1].kind == "c")]


@pytest.mark.parametrize("name,dtype", LAWFUL, ids=str)
def test_the_state_of_no_elements_changes_no_bit(name, dtype):
    x = edges(dtype)
    if dtype.kind == "c" and name.startswith("nan"):
        x = x[x == x]  # of two NaNs, either is taken
    for bound in bounds(name, dtype):
        with np.errstate(all="ignore"):
            state = contributions(bound, x)
        nothing = tuple([np.full_like(each, value) for each, value in zip(state, bound.identities.values())])
        for pair in ((nothing, state), (state, nothing)):
            for got, expected in zip(combine(bound, *pair), state, strict=True):
                assert_bits(got, expected)
        for got, expected in zip(combine(bound, nothing, nothing), nothing, strict=True):
            assert_bits(got, expected)


@pytest.mark.parametrize("name,dtype", CASES, ids=str)
def test_merging_is_associative(name, dtype):
    rng = np.random.default_rng(5)
    for bound in bounds(name, dtype):
        x = np.array([sample((60,), dtype, seed, special=is_exact(bound)) for seed in range(9)])
        with np.errstate(all="ignore"):
            x = (x + dtype.type(0)).astype(dtype)  # of 0.0 and -0.0, either is the greater one
            parts = contributions(bound, x)
        a, b, c = (folded(bound, tuple([each[i : i + 3] for each in parts]), rng) for i in (0, 3, 6))
        left, right = combine(bound, combine(bound, a, b), c), combine(bound, a, combine(bound, b, c))
        for one, other, field in zip(left, right, bound.reduction.fields.values(), strict=True):
            if is_exact(bound) or field.kind == "I":
                assert_bits(one, other)
            else:
                eps = np.finfo(one.dtype).eps
                scale = abs(other) if field.merge == "multiply" else abs(other) + 8
                assert_values(np.where(abs(one - other) <= 32 * eps * scale, other, one), other)


# --------------------------------------------------------------------------------------------------------- the results


#: What NumPy's functions give, of wide elements, an axis and weights.
REFERENCES: dict[str, Callable[..., Any]] = {
    "average": lambda x, axis, weights: np.average(x, axis, weights, returned=True),
    "mean_var": lambda x, axis, _: (np.mean(x, axis), np.var(x, axis, ddof=1)),
    "dot": lambda x, axis, weights: np.sum(x * weights, axis),
    "sum_of_squares": lambda x, axis, _: np.sum(x.real * x.real + x.imag * x.imag, axis),
    "logsumexp": lambda x, axis, _: log_of_sum(x, axis, 1)[0],
    "weighted_logsumexp": lambda x, axis, weights: log_of_sum(x, axis, weights)[0],
    "signed_logsumexp": lambda x, axis, weights: log_of_sum(x, axis, weights),
    "max_with_index": lambda x, axis, _: (np.max(x, axis), np.argmax(x, axis)),
    "min_with_index": lambda x, axis, _: (np.min(x, axis), np.argmin(x, axis)),
}


#: Functions of gpuops, likewise.
WITH_WEIGHTS: dict[str, Callable[..., Any]] = {
    "average": lambda x, axis, weights: gpuops.average(x, axis, weights, returned=True),
    "dot": lambda x, axis, weights: np.stack(
        [gpuops.dot(*pair) for pair in zip(np.moveaxis(x, axis, -1), np.moveaxis(weights, axis, -1), strict=True)]
    ),
    **{
        name: lambda x, axis, weights, signed=signed: gpuops.logsumexp(
            x, axis, weights, return_sign=signed, scale=OPTIONS["scale"], dtype=computed_in("logsumexp", x.dtype)
        )
        for name, signed in (("weighted_logsumexp", False), ("signed_logsumexp", True))
    },
}


def log_of_sum(x: np.ndarray, axis: int, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """log |sum(weights * exp(scale * x))| and the sum's sign, as SciPy gives them."""
    special = pytest.importorskip("scipy.special", reason="SciPy is the reference")
    value, sign = special.logsumexp(x * OPTIONS["scale"], axis=axis, b=weights, return_sign=True)
    return value, sign


def called(module: Any, name: str) -> Callable[..., Any]:
    """A function of gpuops or NumPy, of elements, an axis and weights."""
    if module is np and name in REFERENCES:
        return REFERENCES[name]
    if name in NORMS:
        norm = gpuops.vector_norm if module is gpuops else np.linalg.vector_norm
        return lambda x, axis, _: norm(x, axis=axis, ord=NORMS[name])
    if name in WITH_WEIGHTS:
        return WITH_WEIGHTS[name]
    if name == "logsumexp":
        return lambda x, axis, _: gpuops.logsumexp(x, axis, scale=OPTIONS["scale"], dtype=computed_in(name, x.dtype))
    options = {"ddof": 1} if name.endswith(("var", "std")) else {}
    return lambda x, axis, _: getattr(module, name)(x, axis=axis, **options)


def listed(made: Any) -> list[np.ndarray]:
    """The results of a call."""
    return [np.asarray(each) for each in (made if isinstance(made, tuple) else (made,))]


def folded(bound: Bound, state: States, rng: np.random.Generator | None = None) -> States:
    """The state of all those along the first dim, of which a random one at a time is merged with the next; the first
    one, if there is no generator."""
    parts = [tuple([each[i] for each in state]) for i in range(len(state[0]))]
    while len(parts) > 1:
        i = int(rng.integers(len(parts) - 1)) if rng else 0
        parts[i : i + 2] = [combine(bound, parts[i], parts[i + 1])]
    return parts[0]


def elements(name: str, dtype: np.dtype, shape: tuple[int, ...] = (23, 12)) -> np.ndarray:
    """Elements of columns, some of which are not finite, except of products, in which their order would count."""
    x = sample(shape, dtype, 3)
    if inexact(dtype) and "prod" not in name:
        x[3, 1], x[5, 2], x[2, 3], x[7, 4], x[:, 6] = np.inf, -np.inf, np.nan, -0.0, 0.0
        x[[4, 9], 5] = np.inf, -np.inf
    if RECORDS[name].takes is not None:
        x[::4, 7:] = np.nan
    return x


def assert_results(name: str, got: list[np.ndarray], expected: list[np.ndarray], bound: Bound, n: int) -> None:
    """The results of n elements are NumPy's, but for how often they were rounded."""
    for one, exact in zip(got, expected, strict=True):
        assert one.shape == exact.shape
        rounded = name in NORMS and bound.x.kind == "c"  # magnitudes
        if (is_exact(bound) and not rounded) or not inexact(one.dtype):
            assert_values(one, exact.astype(one.dtype))
        else:
            error = n * accumulator_eps(one.dtype) * (np.abs(exact) + ("prod" not in name) * 8)
            assert_near(one, exact, error, infinities=False)


@pytest.mark.parametrize("name,dtype", [case for case in CASES if case[0] not in NO_OPS], ids=str)
def test_any_tree_of_elements_gives_what_the_public_function_and_numpy_give(name, dtype):
    x = elements(name, dtype)
    with np.errstate(all="ignore"):
        expected = listed(called(np, name)(widened(x), 0, widened(weights(x))))
    found = listed(called(gpuops, name)(x, 0, weights(x)))
    assert_results(name, found, expected, bind(name, dtype), len(x))
    for bound in bounds(name, dtype):
        with np.errstate(all="ignore"):
            state = contributions(bound, x)
        for rng in (None, *map(np.random.default_rng, range(3))):
            results = [*finish(bound, folded(bound, state, rng), len(x))][: len(found)]
            assert [each.dtype for each in results] == [each.dtype for each in found]
            assert_results(name, results, expected, bound, len(x))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in RECORDS if name not in NO_OPS])
def test_the_public_function_gives_the_same_of_blocks(name, engine):
    for dtype in (np.dtype("f4"), np.dtype("i1")):
        if computed_in(name, dtype) is not None:
            x = elements(name, dtype)
            bound = bind(name, dtype)
            expected = finish(bound, folded(bound, contributions(bound, x)), len(x))
            for threads in (1, 3):
                with small_blocks(threads, engine):
                    found = listed(called(gpuops, name)(x, 0, weights(x)))
                assert_results(name, found, [widened(each) for each in expected], bound, len(x))


@pytest.mark.parametrize("name,dtype", [case for case in CASES if case[0] in records.ROWS], ids=str)
def test_each_element_becomes_what_the_public_function_gives(name, dtype):
    x, bound = elements(name, dtype), bind(name, dtype)
    with np.errstate(all="ignore"):
        found = finish(bound, folded(bound, contributions(bound, x)), len(x))
        results = {f"r{i}": each for i, each in enumerate(found)}
        (expected,) = bound.each(x=x.astype(bound.kinds["A"]), **results, **OPTIONS)
    got = getattr(gpuops, name)(x, axis=0, **GIVEN[name])
    error = len(x) * accumulator_eps(got.dtype) * (np.abs(widened(expected)) + 8 * (expected != 0))
    assert_near(got, widened(expected), error, infinities=False)


# ----------------------------------------------------------------------------------------------------------- the forms

#: Shapes of blocks, and the axes that are reduced.
BLOCKS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "a row": ((1500,), (0,)), "rows": ((5, 700), (1,)), "columns": ((300, 9), (0,)), "both": ((4, 50, 20), (1,)),
    "apart": ((40, 6, 30), (0, 2)),
}  # fmt: skip
FORMED = [case for case in CASES if RECORDS[case[0]].form in forms.FORMS]
#: Numba compiles a loop for each record and dtype, which takes time.
LOOPED = [
    case
    for case in CASES
    if "compiled" in ENGINES and case[0] not in ("deviations", "nandeviations") and case[1] in DTYPES[2:8:3]
    if forms.looped(bind(*case)) and RECORDS[case[0]].form not in forms.FORMS
]


def finite(name: str, shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> np.ndarray:
    """Elements of which a record has numbers."""
    return DOMAINS.get(name, np.asarray)(sample(shape, dtype, seed))


def blocks(name: str, bound: Bound, kind: str, masked: bool) -> tuple[Block, Block, Block]:
    """A block of elements, and its two halves."""
    shape, axis = BLOCKS[kind]
    x = finite(name, shape, bound.x, 4)
    if bound.takes is not None:
        x[sample(shape, "?", 5)] = np.nan
    y = None if bound.y is None else weights(x)
    mask = sample(shape, "?", 6) if masked else None
    steps, d = positions(shape, axis), axis[0]
    middle = shape[d] // 2
    if bound.takes is not None and len(shape) > 1:  # the first half has states of no elements
        np.moveaxis(x, axis, range(len(axis)))[(slice(middle), *[slice(None)] * (len(axis) - 1), 0)] = np.nan

    def part(index: slice, offset: int) -> Block:
        at = (slice(None),) * d + (index,)
        arrays = [each if each is None else each[at] for each in (x, y, mask)]
        return Block(bound, arrays, axis, offset, steps)

    return part(slice(None), 0), part(slice(middle), 0), part(slice(middle, None), middle * steps[0] if steps else 0)


def defined(block: Block) -> States:
    """The states that the definition gives, in double precision."""
    with np.errstate(all="ignore"):
        made = forms.by_definition(block.widened(), OPTIONS)
    return held(block, made)


def held(block: Block, made: States) -> States:
    """States as those of parts are kept."""
    wide = block.bound.wide.state
    return tuple([block.layout.back(np.asarray(each, wide[i]), True) for i, each in enumerate(made)])


def check_form(name: str, bound: Bound, form: Callable[[Block], States | None]) -> None:
    """States of blocks by a form are those of the definition, and are merged with such."""
    eps = accumulator_eps(bound.result if inexact(bound.result) else np.dtype("f8"))
    for kind in BLOCKS:
        for masked in (False, True) if bound.reduction.name not in SEARCHES else (False,):
            whole, first, second = blocks(name, bound, kind, masked)
            parts = []
            for block in (whole, first, second):
                made = form(block)
                assert made is not None
                parts.append(held(block, made))
            expected = defined(whole)
            for field, one, other in zip(bound.reduction.fields, parts[0], expected, strict=True):
                # (Forms leave sums at 0 that do not count, and add weights at the maximum to those below it.)
                if field not in ("lowered", "raised", "top", "rest") or name == "logsumexp":
                    assert_close(one, other, eps)
            n = whole.layout.back(whole.count, True)
            right = finish(bound.wide, expected, n)
            for both in ((parts[1], defined(second)), (defined(first), parts[2]), parts[1:]):
                for one, other in zip(finish(bound.wide, combine(bound.wide, *both), n), right, strict=True):
                    assert one.dtype == other.dtype
                    assert_close(one, other, eps)


def assert_close(one: np.ndarray, other: np.ndarray, eps: float) -> None:
    """Equal integers; other numbers up to rounding."""
    assert one.shape == other.shape
    if inexact(one.dtype):
        one, other = widened(one), widened(other)
        np.testing.assert_allclose(one, other, rtol=64 * eps, atol=64 * eps)
    else:
        assert_values(one, other)


@pytest.mark.turns(6, everywhere=True)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name,dtype", FORMED, ids=str)
def test_forms_give_the_states_of_the_definition(name, dtype, engine):
    bound = bind(name, dtype)
    with computed_by(engine), settings(forms, 1, LOOPS=0):
        check_form(name, bound, partial(forms.FORMS[bound.reduction.form], options=OPTIONS))


@pytest.mark.turns(2, everywhere=True)
@pytest.mark.parametrize("name,dtype", LOOPED, ids=str)
def test_compiled_loops_give_the_states_of_the_definition(name, dtype):
    with computed_by("compiled"), settings(forms, 1, LOOPS=0):
        bound = bind(name, dtype)
        check_form(name, bound, partial(forms.by_loops, bound=bound))


#: Reductions of which NaN becomes NaN.
NAN_COUNTS = [
    name for name, x in LOOPED if x == "f4" and RECORDS[name].takes is None and name not in ("count_nonzero", "norm0")
]


@pytest.mark.parametrize("name", NAN_COUNTS)
def test_compiled_loops_leave_nan_to_numpy(name):
    bound = bind(name, np.dtype("f4"))
    with computed_by("compiled"), settings(forms, 1, LOOPS=0):
        for shape, axis in (((700,), (0,)), ((30, 12), (0,))):
            x = finite(name, shape, np.dtype("f4"))
            assert forms.by_loops(Block(bound, (x, None, None), axis), bound) is not None
            for place in (0, 1, 5, len(x) - 1):
                other = x.copy()
                other[place] = np.nan
                assert forms.by_loops(Block(bound, (other, None, None), axis), bound) is None


@pytest.mark.parametrize("dtype,size", [("f4", 1e30), ("f8", 1e200)])
def test_parts_of_a_norm_may_be_of_any_size(dtype, size):
    bound = bind("norm2", np.dtype(dtype))
    for scales in ((size, 1.0), (1 / size, 1.0), (size, 1 / size), (1 / size, 1 / size), (size, size)):
        parts, exact = [], 0.0
        for seed, scale in enumerate(scales):
            x = sample((600,), dtype, seed) * np.dtype(dtype).type(scale)
            block = Block(bound, (x, None, None), (0,))
            form = forms.squares(block, {})
            with np.errstate(all="ignore"):
                assert (form is None) == (scale != 1)
                parts.append(forms.by_definition(block, OPTIONS) if form is None else form)
            exact = math.hypot(exact, math.sqrt(math.fsum((x.astype("f8") / scale) ** 2)) * scale)
        for pair in (parts, parts[::-1]):
            (got,) = finish(bound, combine(bound, *pair), 1200)
            np.testing.assert_allclose(got, exact, rtol=4 * float(np.finfo(dtype).eps))


def test_a_record_without_rules_computes_in_the_dtype_of_elements():
    record = records.MAX.but("greatest", ufunc=None)
    for dtype in DTYPES:
        assert dtypes("greatest", record, dtype, None, None) == (dtype, dtype)


# ----------------------------------------------------------------------------------------------------- the expressions

KINDS = {"D": np.dtype("f8"), "I": np.dtype("i8")}


def typed_of(expr: Any, **names: str) -> Typed:
    """An expression of leaves of these dtypes."""
    return typed(expr, {name: np.dtype(dtype) for name, dtype in names.items()}, KINDS)


X, Y = leaf("x"), leaf("y")


@pytest.mark.parametrize(
    "expr,name",
    [
        (X + Y, "add"), (X - Y, "subtract"), (X * Y, "multiply"), (X / Y, "divide"), (X < Y, "less"),
        (X <= Y, "at_most"), (X == Y, "equal"), (X != Y, "differs"), (maximum(X, Y), "maximum"),
        (where(X == 0, X, Y), "where"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
@pytest.mark.parametrize("x,y", [("f4", "f8"), ("i8", "f8"), ("u1", "i8"), ("c8", "f4"), ("f2", "f4")])
def test_nothing_promotes(expr, name, x, y):
    names = f"{np.dtype(x).name}, {np.dtype(y).name}"
    with pytest.raises(TypeError, match=f"^{name} of {names}: cast one of them$"):
        typed_of(expr, x=x, y=y)
    assert typed_of(expr, x=x, y=x).dtype == (bool if name in ("less", "at_most", "equal", "differs") else x)


def test_casts_and_constants_are_in_one_dtype():
    assert typed_of(X.as_("D") + Y, x="f4", y="f8").dtype == np.float64
    assert typed_of(X * 2, x="f4").dtype == typed_of(2.0 - X, x="f4").dtype == np.float32
    assert typed_of(abs(X), x="c8").dtype == np.float32
    assert typed_of(quotient(X, Y), x="c16", y="f8").dtype == np.complex128
    both = {"r": typed_of(where(X < 0, -0.0, X), x="f4"), "s": typed_of(where(X < 0, 0.0, X), x="f4")}
    minus, plus = printed(both, "f")(x=np.array([-1], "f4"))
    assert_bits(minus, np.array([-0.0], "f4"))
    assert_bits(plus, np.array([0.0], "f4"))


def test_a_constant_alone_has_no_dtype():
    for expr in (maximum(1, 2), where(X < 0, 1, 2)):
        with pytest.raises(TypeError, match="constant 1 has no operand to take its dtype from"):
            typed_of(expr, x="f4")


def test_an_expression_has_no_truth():
    for decide in (lambda: bool(X), lambda: X < Y < 0, lambda: not X, lambda: max(X, Y)):
        with pytest.raises(TypeError, match=r"^an expression has no value yet; use where\(\)$"):
            decide()


def test_numpy_functions_compute_each_node_once():
    calls = []

    class Counted(np.ndarray):
        def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
            calls.append(ufunc)
            return getattr(ufunc, method)(*(np.asarray(each) for each in args), **options)

    square = X * X
    x = np.arange(3.0).view(Counted)
    (got,) = printed({"r": typed_of(square + square * square, x="f8")}, "f")(x=x)
    assert calls == [np.multiply]
    assert got.tolist() == [0, 2, 20]
