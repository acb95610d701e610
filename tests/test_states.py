"""Reductions in steps: states of parts merge to what the whole gives, on every device, with the same fields; terms of
exact sums to the same bits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import gpuops
from gpuops.definition import records, totals
from gpuops.definition.in_cuda import expansions
from gpuops.definition.reduction import Reduction
from gpuops.definition.task import Task, positions
from gpuops.host import terms
from gpuops.ops import sums
from gpuops.ops.average import Average
from gpuops.ops.reduction import dtypes
from gpuops.ops.search import WithIndex
from gpuops.ops.states import finish, merge, partial
from gpuops.ops.variance import MeanVar

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Records, and the functions that are made of them.
FUNCTIONS = {
    row.name: (row, getattr(gpuops, op))
    for rows in (records.REDUCTIONS, records.MEASURES, records.SEARCHES, records.WITH_INDEX)
    for op, row in rows.items()
}
OPTIONS = {"var": (("ddof", 1.0),), "nanvar": (("ddof", 1.0),), "std": (("ddof", 0.0),), "nanstd": (("ddof", 0.0),)}
OPTIONS["mean_var"] = (("ddof", 0.0),)
FORMS = {"mean_var": MeanVar, "max_with_index": WithIndex, "min_with_index": WithIndex}
AXES = ((0,), (1,), (0, 1, 2), (0, 2))


def in_chunks(backend, record: Reduction, x, val, axis, mask=None, options=()):
    """The results of states of some chunks, first merged two by two."""
    steps, cuts = positions(x.shape, axis), [[slice(0, n // 3), slice(n // 3, n)] for n in x.shape]
    found = np.empty([len(each) for each in cuts], object)
    for place in itertools.product(*[range(len(each)) for each in cuts]):
        index = tuple([each[k] for each, k in zip(cuts, place, strict=True)])
        offset = sum([index[d].start * step for d, step in zip(axis, steps, strict=True)])
        part = True if mask is None else backend.array(np.ascontiguousarray(mask[index]))
        chunk = backend.array(np.ascontiguousarray(x[index]))
        made = partial(chunk, part, None, record, val, axis, options, steps, offset)
        found[place] = as_host(made)
    whole = np.block(found.tolist()) if x.ndim == 1 else assembled(found)
    return merge(backend.array(whole), record, val, axis)


def of_terms(backend, task: Task, x, cuts: list[int], mask=None, weights=None):
    """The results of the terms of parts of an array, cut along the first dim that is reduced: merged two by two."""
    d, parts = task.axis[0], []
    for first, last in itertools.pairwise((0, *cuts, x.shape[task.axis[0]])):
        index = (slice(None),) * d + (slice(first, last),)
        chunk, part, beside = (
            each if each is None else backend.array(np.ascontiguousarray(each[index])) for each in (x, mask, weights)
        )
        parts.append(sums.partial(chunk, True if part is None else part, beside, task, None))
    while len(parts) > 1:
        parts = [terms.merged(terms.together(parts[i : i + 2])) for i in range(0, len(parts), 2)]
    n = math.prod([x.shape[d] for d in task.axis])
    found = sums.finish(parts[0], task, n, backend.array(x[:0]))
    return [as_host(each) for each in found] if task.form else as_host(found)


def as_host(states) -> np.ndarray:
    return states.get() if hasattr(states, "get") else np.asarray(states)


def assembled(found: np.ndarray) -> np.ndarray:
    """Chunks in an array of their place put together."""
    for d in reversed(range(found.ndim)):
        rows = found.reshape(-1, found.shape[-1])
        joined = np.empty(len(rows), object)
        for k, row in enumerate(rows):
            joined[k] = np.concatenate(list(row), axis=d)
        found = joined.reshape(found.shape[:-1])
    return found[()]


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    """Results of the same dtype and shape, equal but for rounding."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    rtol = 32 * np.finfo(found.dtype).eps if found.dtype.kind in "fc" else 0
    np.testing.assert_allclose(found, expected, rtol, 0)


def sample(dtype: np.dtype, shape: tuple[int, ...] = (4, 9, 5)) -> np.ndarray:
    rng = np.random.default_rng(4)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 7, shape).astype(dtype)
    x = rng.normal(1, 0.2, shape)
    return (x + 1j * rng.normal(0, 0.2, shape) if dtype.kind == "c" else x).astype(dtype)


@pytest.mark.turns(24)
@pytest.mark.parametrize("masked", (False, True))
@pytest.mark.parametrize("dtype", ("f4", "f8", "c8", "i2", "?"))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_states_of_chunks_give_what_the_function_gives(backend, name, dtype, masked):
    row, function = FUNCTIONS[name]
    x = sample(np.dtype(dtype))
    if row.plain:
        if x.dtype.kind in "biu":
            pytest.skip("no NaN: another op")
        x[1, ::2] = np.nan
    try:
        val = x.dtype if name in (*records.SEARCHES, *records.WITH_INDEX) else dtypes(name, row, x.dtype, None, None)[0]
    except TypeError:
        pytest.skip("no such dtype")
    if masked and (not row.rules.identity or name in ("count_nonzero", "ptp")):
        pytest.skip("takes no mask")
    mask = np.random.default_rng(5).random(x.shape) < 0.7 if masked else None
    record = row.masked or row if masked else row
    options = OPTIONS.get(name, ())
    for axis in AXES:
        if name in (*records.SEARCHES, *records.WITH_INDEX) and len(axis) == 2:
            continue
        over = None if len(axis) == 3 else axis if len(axis) > 1 else axis[0]
        more = dict(options) | ({"where": mask} if masked else {})
        expected = function(x, axis=over, **more)
        task = Task(record.bind(x.dtype, val), axis, False, form=FORMS.get(name), options=dict(options))
        if sums.adds_exactly(task.bound, backend.array(x)):
            found = of_terms(backend, task, x, [x.shape[axis[0]] // 3], mask)
            for one, other in zip(found, expected, strict=True) if name in FORMS else [(found, expected)]:
                check = np.testing.assert_array_equal if x.dtype.kind in "fc" else assert_close
                check(one, np.asarray(other))  # (of integers, the CPU's is no exact sum)
            continue
        both = in_chunks(backend, record, x, val, axis, mask, options)
        n = math.prod([x.shape[d] for d in axis])
        found = finish(both, record, val, axis, False, n, None, options, FORMS.get(name))
        pairs = zip(found, expected, strict=True) if name in FORMS else [(found, expected)]
        for one, other in pairs:
            assert_close(as_host(one), np.asarray(other))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_states_are_structured_arrays_with_the_fields_of_the_record(backend, name):
    row, _ = FUNCTIONS[name]
    x = sample(np.dtype("f4"))
    states = partial(backend.array(x), True, None, row, np.dtype("f4"), (1,), OPTIONS.get(name, ()))
    assert states.shape == (4, 1, 5)
    if sums.adds_exactly(row.bind(x.dtype, x.dtype), states):
        assert states.dtype == expansions(row.bind(x.dtype, x.dtype))
        return
    assert states.dtype.names == tuple(row.fields)
    expected = row.bind(x.dtype, x.dtype)
    made = as_host(states)
    for field in states.dtype.names:
        kind = expected.state[field]
        assert made[field].dtype.kind == kind.kind and made[field].dtype.itemsize >= kind.itemsize
    reference = partial(x, True, None, row, np.dtype("f4"), (1,), OPTIONS.get(name, ()))
    for field in states.dtype.names:
        np.testing.assert_allclose(made[field], reference[field], 1e-5, 1e-5)


def test_an_average_in_steps(backend):
    x, w = sample(np.dtype("f8")), np.random.default_rng(6).random((4, 9, 5))
    bound = records.AVERAGE.bind(x.dtype, x.dtype, x.dtype)
    task = Task(bound, (1,), False, form=Average, places=(0, 1, 2))
    found = of_terms(backend, task, x, [2, 7], weights=w)
    for one, other in zip(found, gpuops.average(x, 1, w, returned=True), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("axis", ((0,), (1,), (0, 1)))
def test_many_states_merge(backend, axis):
    x = sample(np.dtype("f4"), (300, 700))
    states = partial(backend.array(x[..., None]), True, None, records.MAX, x.dtype, (2,))
    found = finish(states, records.MAX, x.dtype, (*axis, 2))
    np.testing.assert_array_equal(as_host(found), x.max(axis))


def test_an_initial_value_takes_part_once(backend):
    x = sample(np.dtype("f4"))
    states = partial(backend.array(x), True, None, records.MAX, x.dtype, (1,))
    assert (as_host(finish(states, records.MAX, x.dtype, (0, 1), initial=np.float32(100))) == 100).all()
    for zeros, initial, negative in (([-0.0] * 5, None, False), ([-0.0] * 5, -0.0, True), ([-0.0, 0.0], -0.0, False)):
        first = None if initial is None else np.asarray(initial)
        task = Task(records.SUM.bind(np.dtype("f8"), np.dtype("f8")), (0,), False, first)
        found = of_terms(backend, task, np.array(zeros), [1])
        assert found == 0 and np.signbit(found) == negative


def test_states_of_no_elements_are_the_identity(backend):
    states = partial(backend.array(np.zeros((3, 0), np.int64)), True, None, records.SUM, np.dtype("i8"), (1,))
    assert states.shape == (3, 1) and (as_host(states)["total"] == 0).all()
    assert (as_host(finish(states, records.SUM, np.dtype("i8"), (1,))) == 0).all()
    task = Task(records.SUM.bind(np.dtype("f8"), np.dtype("f8")), (1,), False)
    np.testing.assert_array_equal(of_terms(backend, task, np.zeros((3, 0)), []), np.zeros(3))


#: Elements of which no three terms hold the sum, or whose partial sums are too large or not finite, and the sum.
FAR_APART = (
    ([1e300, 1.0, 1e-300, 1e-320, -1e300, 2.0], 3.0), ([1.7e308] * 5 + [-1.7e308] * 4, 1.7e308),
    ([1.7e308, 1e-320, -1.7e308], 1e-320), ([2.0**53, 1, 2.0**-60], 2.0**53 + 2), ([1.7e308, 1.7e308], np.inf),
    ([np.inf, 1.0], np.inf), ([np.inf, -np.inf, 1.0], np.nan), ([np.nan, np.inf], np.nan),
    ([1e308, -np.inf, 1e308], -np.inf),
)  # fmt: skip


def test_terms_lose_nothing(backend):
    task = Task(records.SUM.bind(np.dtype("f8"), np.dtype("f8")), (0,), False)
    for values, right in FAR_APART:
        for cuts in ([], [1], [2], [*range(1, len(values))]):
            np.testing.assert_array_equal(of_terms(backend, task, np.array(values), cuts), right)


@pytest.mark.parametrize("dtype", ("f4", "f8", "c16"))
def test_squares_of_all_sizes(backend, dtype):
    """Those of float64 neither over- nor underflow."""
    rng, info = np.random.default_rng(7), np.finfo(dtype)
    x = np.ldexp(rng.standard_normal(600), rng.integers(info.minexp, info.maxexp - 8, 600)).astype(dtype)
    task = Task(records.NORM2.bind(x.dtype, x.dtype), (0,), False)
    for part in (x, np.ldexp(1.0, -900).astype(x.real.dtype) * x, x[np.abs(x) < 1]):
        parts = [each.astype("f8") for each in ((part.real, part.imag) if x.dtype.kind == "c" else (part,))]
        total = sum([totals.total_of_products(each, each) for each in parts], Fraction(0))
        for cuts in ([], [1, 100, 101]):
            assert of_terms(backend, task, part, cuts) == totals.nearest_root(total, x.real.dtype)


def test_a_mask_beside_weights_is_refused_on_every_device(backend):
    x, mask = backend.arrays(sample(np.dtype("f8")), np.ones((4, 9, 5), bool))
    with pytest.raises(ValueError, match="^average: takes a where mask or weights, not both"):
        partial(x, mask, x, records.AVERAGE, np.dtype("f8"), (1,))
