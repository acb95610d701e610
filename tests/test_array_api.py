"""gpuops.array_api against the Python array API standard, version 2024.12."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import array_api as strategies
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import gpuops
from gpuops import array_api as xp
from tests import array_api_namespace, ops
from tests.budget import examples, round_robin
from tests.compare import assert_near, assert_same
from tests.layouts import DTYPES, HALVES, inexact, wide

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

REDUCTIONS = tuple(op for op in ops.REDUCTIONS if op in xp.__all__ and op not in ops.SPREADS)
#: As the standard prints them, annotations left out.
SIGNATURES = {
    "all": "(x, /, *, axis=None, keepdims=False)",
    "any": "(x, /, *, axis=None, keepdims=False)",
    "argmax": "(x, /, *, axis=None, keepdims=False)",
    "argmin": "(x, /, *, axis=None, keepdims=False)",
    "broadcast_to": "(x, /, shape)",
    "count_nonzero": "(x, /, *, axis=None, keepdims=False)",
    "cumulative_prod": "(x, /, *, axis=None, dtype=None, include_initial=False)",
    "cumulative_sum": "(x, /, *, axis=None, dtype=None, include_initial=False)",
    "matmul": "(x1, x2, /)",
    "max": "(x, /, *, axis=None, keepdims=False)",
    "mean": "(x, /, *, axis=None, keepdims=False)",
    "min": "(x, /, *, axis=None, keepdims=False)",
    "nonzero": "(x, /)",
    "prod": "(x, /, *, axis=None, dtype=None, keepdims=False)",
    "std": "(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "sum": "(x, /, *, axis=None, dtype=None, keepdims=False)",
    "var": "(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "where": "(condition, x1, x2, /)",
}
#: Those that have another name in gpuops.
CUMULATIVE = ("cumulative_prod", "cumulative_sum")
LINALG = {"matmul": SIGNATURES["matmul"], "vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)"}
#: The dtypes of the standard.
STANDARD = tuple(d for d in DTYPES if d not in HALVES)
NUMERIC = STANDARD[1:]
#: The dtypes that properties draw from; other tests take all.
FEW = tuple(map(np.dtype, ("f4", "i1", "c8")))
#: Python scalars that adopt the dtype of an array, by the array's kind.
SCALARS = {"b": (True,), "i": (-3,), "u": (3,), "f": (-3, 0.5, float("inf")), "c": (-3, 0.5, 2j)}


def fetched(backend, result):
    """A result as a NumPy array, after a check that it is an array, not a scalar."""
    assert type(result) is type(backend.array(np.empty(())))
    return backend.fetch(result)


def whole(rng, shape, dtype):
    """Small integers, few of them 0: sums and products are exact in every dtype, or overflow."""
    least = 1 if dtype.kind in "bu" else -1
    return np.asarray(rng.choice([0, least, 1, 2], shape, p=[0.1, 0.2, 0.5, 0.2])).astype(dtype)


def result_dtype(op, dtype):
    """The result dtype of a reduction by the standard; NumPy's for dtypes that the standard lacks."""
    if op in ("any", "all"):
        return np.dtype(bool)
    if op in ("max", "min"):
        return dtype
    if op == "mean":
        return np.dtype(np.float64) if dtype.kind in "biu" else dtype
    return {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}.get(dtype.kind, dtype)


def check_reduction(backend, op, x, **options):
    """Compare a reduction of integers with the standard's dtype and NumPy's shape and values."""
    got = fetched(backend, getattr(xp, op)(backend.array(x), **options))
    exact = np.asarray(getattr(np, op)(x.astype(wide(x.dtype)), **options))
    dtype = result_dtype(op, x.dtype)
    if op == "mean" and inexact(dtype):
        assert got.dtype == dtype
        assert_near(got, exact, 0)
    else:
        assert_same(got, exact.astype(dtype))


# ---------------------------------------------------------------------------------------------------------- signatures


def test_namespace_exports_the_standard_functions_of_gpuops():
    assert sorted(SIGNATURES) == xp.__all__
    assert sorted(LINALG) == xp.linalg.__all__
    assert {*xp.__all__, *xp.linalg.__all__} - {*CUMULATIVE} <= {*gpuops.__all__}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_match_the_standard(name):
    assert str(inspect.signature(getattr(xp, name))) == SIGNATURES[name]


@pytest.mark.parametrize("name", LINALG)
def test_signatures_match_those_of_the_extension(name):
    assert str(inspect.signature(getattr(xp.linalg, name))) == LINALG[name]


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_take_arrays_by_position_and_options_by_keyword(backend, op):
    x = backend.array(np.ones((2, 3)))
    reduce = getattr(xp, op)
    assert fetched(backend, reduce(x, axis=0)).shape == (3,)
    with pytest.raises(TypeError, match="positional argument"):
        reduce(x, 0)
    with pytest.raises(TypeError, match="positional"):
        reduce(x=x)


def test_other_functions_take_arrays_by_position_only(backend):
    x = backend.array(np.ones((2, 2)))
    with pytest.raises(TypeError, match="positional-only"):
        xp.where(condition=x, x1=x, x2=x)
    with pytest.raises(TypeError, match="positional-only"):
        xp.matmul(x1=x, x2=x)
    with pytest.raises(TypeError, match="positional-only"):
        xp.broadcast_to(x=x, shape=(2, 2))
    with pytest.raises(TypeError, match="positional"):
        xp.cumulative_sum(x=x, axis=0)
    with pytest.raises(TypeError, match="positional"):
        xp.cumulative_prod(x, 0)


# ---------------------------------------------------------------------------------------------------------- reductions


@pytest.mark.parametrize("op", REDUCTIONS)
@examples(20)
@given(data=st.data())
def test_reductions_match_numpy(backend, op, data):
    least = 1 if op in ("max", "min") else 0
    shape = tuple(data.draw(st.lists(st.integers(least, 4), max_size=3)))
    ndim = len(shape)
    one = st.integers(-ndim, ndim - 1) if ndim else st.none()
    some = st.lists(st.integers(0, ndim - 1), unique=True).map(tuple) if ndim else st.just(())
    back = some.map(lambda axes: tuple(d - ndim for d in axes))
    options = data.draw(st.fixed_dictionaries({}, optional={"axis": st.none() | one | some | back,
                                                            "keepdims": st.booleans()}))  # fmt: skip
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    check_reduction(backend, op, whole(rng, shape, data.draw(st.sampled_from(FEW))), **options)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_of_every_dtype(backend, op, dtype):
    """Reuses the kernels of ``test_reduce.test_takes_every_dtype``."""
    (axis, *_) = round_robin((0, 1), start=REDUCTIONS.index(op) + DTYPES.index(dtype))
    check_reduction(backend, op, whole(np.random.default_rng(0), (5, 40), dtype), axis=axis)


@pytest.mark.parametrize(("dtype", "wider"), [("i1", "i2"), ("u1", "u4"), ("u1", "i4"), ("i4", "i8")])
def test_integers_are_cast_to_dtype_before_accumulating(backend, dtype, wider):
    top = int(np.iinfo(dtype).max)
    x = backend.array(np.full((3, 2), top, dtype))
    assert_same(fetched(backend, xp.sum(x, axis=1, dtype=np.dtype(wider))), np.full(3, 2 * top, wider))
    assert_same(fetched(backend, xp.prod(x, axis=1, dtype=np.dtype(wider))), np.full(3, top**2, wider))


@pytest.mark.parametrize("wider", ["f8", "c16"])
def test_floats_are_cast_to_dtype_before_accumulating(backend, wider):
    a, b = 1 + 2.0**-23, 2.0**-30 + 2.0**-53  # float32 holds each, and neither their sum nor their product
    x = backend.array(np.array([a, b], np.float32))
    assert_same(fetched(backend, xp.sum(x, dtype=np.dtype(wider))), np.array(a + b, wider))
    assert_same(fetched(backend, xp.prod(x, dtype=np.dtype(wider))), np.array(a * b, wider))


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("axis", [2, -3, (0, 2), (0, 0), (1, -1)], ids=str)
def test_out_of_range_and_duplicate_axes_raise(backend, op, axis):
    with pytest.raises(ValueError, match=f"{op}: "):
        getattr(xp, op)(backend.array(np.ones((2, 3))), axis=axis)


@pytest.mark.parametrize("shape", [(0,), (2, 0)], ids=str)
def test_reductions_of_empty_arrays(backend, shape):
    x = backend.array(np.empty(shape))
    for op, expected in {"sum": 0.0, "prod": 1.0, "mean": np.nan, "any": False, "all": True}.items():
        assert_same(fetched(backend, getattr(xp, op)(x, axis=-1)), np.full(shape[:-1], expected))


@pytest.mark.parametrize("op", ("max", "min"))
def test_max_and_min_of_empty_arrays_raise(backend, op):
    """The standard leaves this case undefined."""
    with pytest.raises(ValueError, match=f"{op}: zero-size array"):
        getattr(xp, op)(backend.array(np.empty((2, 0))), axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "mean"])
def test_nan_propagates(backend, op, dtype):
    x = np.array([[np.inf, np.nan, 1], [1, 2, 3], [0, -np.inf, np.nan]], dtype)
    got = fetched(backend, getattr(xp, op)(backend.array(x), axis=1))
    assert np.isnan(got).tolist() == [True, False, True]


def test_complex_mean_propagates_nan_per_component(backend):
    x = backend.array(np.array([[complex(np.nan, 1), 1], [complex(1, np.nan), 1], [1, 2]]))
    got = fetched(backend, xp.mean(x, axis=1))
    assert np.isnan(got.real[0]) and np.isnan(got.imag[1]) and got[2] == 1.5


def test_counts_are_arrays(backend):
    x = np.array([[0.0, 2.0, np.nan], [0.0, -0.0, 1.0]])
    for options in ({}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}):
        got = fetched(backend, xp.count_nonzero(backend.array(x), **options))
        assert_same(got, np.asarray(np.count_nonzero(x, **options)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1j, complex(0, np.nan), complex(np.nan, 0)], ids=str)
def test_nonzero_values_are_true(backend, value):
    dtype = np.complex128 if isinstance(value, complex) else np.float64
    assert_same(fetched(backend, xp.any(backend.array(np.array([0, value], dtype)))), True)
    assert_same(fetched(backend, xp.all(backend.array(np.array([value, value], dtype)))), True)
    assert_same(fetched(backend, xp.all(backend.array(np.array([value, 0], dtype)))), False)
    assert_same(fetched(backend, xp.any(backend.array(np.zeros(2, dtype)))), False)


# --------------------------------------------------------------------------------------------------------- cumulations


def cumulated(op, x, axis=None, dtype=None, include_initial=False):
    """NumPy's function of that name, which NumPy 2.0 lacks."""
    function, first = {"cumulative_sum": (np.cumsum, 0), "cumulative_prod": (np.cumprod, 1)}[op]
    axis = 0 if axis is None else axis
    right = function(x, axis=axis, dtype=dtype)
    shape = list(right.shape)
    shape[axis] = 1
    initial = np.full(shape, first, right.dtype)
    return np.concatenate((initial, right), axis) if include_initial else right


@pytest.mark.parametrize("op", CUMULATIVE)
@examples(20)
@given(data=st.data())
def test_cumulations_match_numpy(backend, op, data):
    shape = tuple(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)))
    axis = st.integers(-len(shape), len(shape) - 1)
    axis = data.draw(axis if len(shape) > 1 else axis | st.none())
    options = {"axis": axis, "include_initial": data.draw(st.booleans())}
    dtype = data.draw(st.sampled_from(FEW))
    x = whole(np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))), shape, dtype)
    got = fetched(backend, getattr(xp, op)(backend.array(x), **options))
    right = cumulated(op, x.astype(wide(dtype)), **options)
    assert_same(got, right.astype(result_dtype(op, dtype)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", CUMULATIVE)
def test_cumulations_of_every_dtype(backend, op, dtype):
    x = whole(np.random.default_rng(0), (5, 40), dtype)
    for axis, initial in ((0, True), (1, False)):
        got = fetched(backend, getattr(xp, op)(backend.array(x), axis=axis, include_initial=initial))
        right = cumulated(op, x.astype(wide(dtype)), axis=axis, include_initial=initial)
        assert_same(got, right.astype(result_dtype(op, dtype)))


@pytest.mark.parametrize("op", CUMULATIVE)
def test_cumulations_take_other_layouts_and_dtypes(backend, op):
    x = whole(np.random.default_rng(0), (6, 8), np.dtype(np.int16))
    for view in (lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[:, 3:4]):
        for options in ({"axis": 0}, {"axis": -1, "dtype": np.dtype(np.float64)}):
            got = fetched(backend, getattr(xp, op)(view(backend.array(x)), include_initial=True, **options))
            assert_same(got, cumulated(op, view(x), include_initial=True, **options))


@pytest.mark.parametrize("op", CUMULATIVE)
def test_cumulations_of_0d_arrays_have_one_dim(backend, op):
    x = backend.array(np.array(3, np.int64))
    assert_same(fetched(backend, getattr(xp, op)(x)), np.array([3]))
    first = 0 if op == "cumulative_sum" else 1
    assert_same(fetched(backend, getattr(xp, op)(x, include_initial=True)), np.array([first, 3]))


@pytest.mark.parametrize("op", CUMULATIVE)
def test_cumulations_of_several_dims_need_an_axis(backend, op):
    x = backend.array(np.ones((2, 3)))
    with pytest.raises(ValueError, match=f"^{op}: axis is None, and x has 2 dims: pass the axis to go along"):
        getattr(xp, op)(x)
    with pytest.raises(np.exceptions.AxisError, match=rf"^{op}: axis 2 is out of range for shape \(2, 3\)"):
        getattr(xp, op)(x, axis=2)
    with pytest.raises(TypeError, match=rf"^{op}: axis must be None or an int, got \(0, 1\)"):
        getattr(xp, op)(x, axis=(0, 1))


# --------------------------------------------------------------------------------------------------------------- where


@given(data=st.data())
def test_where_broadcasts(backend, data):
    shapes = data.draw(mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_side=4, max_dims=3))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x1, x2 = (whole(rng, shape, data.draw(st.sampled_from(FEW[:2]))) for shape in shapes.input_shapes[1:])
    condition = whole(rng, shapes.input_shapes[0], np.dtype(bool))
    expected = np.where(condition, x1, x2)
    assert expected.shape == shapes.result_shape
    assert_same(fetched(backend, xp.where(*backend.arrays(condition, x1, x2))), expected)


def with_values(backend, dtypes, first):
    """The dtypes to test with non-empty arrays: all on the CPU, some round-robin where kernels are compiled."""
    if backend.name == "cpu":
        return dtypes
    same, start = [d for d in dtypes if d.kind == first.kind], dtypes.index(first)
    return [*round_robin(same, start=start), *round_robin(dtypes, 2, start)]


@pytest.mark.parametrize("first", STANDARD, ids=str)
def test_where_promotes_dtypes(backend, first):
    """0-d arrays promote like all others."""
    for second in STANDARD:
        for size in (0, 2) if second in with_values(backend, STANDARD, first) else (0,):
            x1, x2 = np.ones((), first), np.zeros(size, second)
            got = fetched(backend, xp.where(*backend.arrays(np.array([True, False][:size], bool), x1, x2)))
            assert_same(got, np.array([1, 0][:size], np.result_type(first, second)))


@pytest.mark.parametrize("dtype", STANDARD, ids=str)
def test_where_takes_python_scalars(backend, dtype):
    condition = backend.array(np.array([True, False]))
    for scalar in SCALARS[dtype.kind]:
        x = backend.array(np.array([1, 0], dtype))
        assert_same(fetched(backend, xp.where(condition, x, scalar)), np.array([1, scalar], dtype))
        assert_same(fetched(backend, xp.where(condition, scalar, x)), np.array([scalar, 0], dtype))


def test_where_of_0d_arrays(backend):
    condition, x = backend.arrays(np.array(True), np.array(2, np.int8))
    assert_same(fetched(backend, xp.where(condition, x, 5)), np.array(2, np.int8))


# -------------------------------------------------------------------------------------------------------- broadcast_to


@given(data=st.data())
def test_broadcast_to_matches_numpy(backend, data):
    x = np.arange(data.draw(st.integers(0, 3)) * 2).reshape(-1, 1, 2) if data.draw(st.booleans()) else np.array(7)
    x = x.astype(data.draw(st.sampled_from(DTYPES)))
    wider = mutually_broadcastable_shapes(num_shapes=1, base_shape=x.shape, min_side=0, max_side=4, max_dims=5)
    shape = data.draw(wider).result_shape
    there = backend.array(x)
    assert_same(fetched(backend, xp.broadcast_to(there, shape)), np.broadcast_to(x, shape))
    assert_same(fetched(backend, xp.broadcast_to(there, shape=shape)), np.broadcast_to(x, shape))


@pytest.mark.parametrize(("shape", "to"), [((2,), (3,)), ((2, 1), (2,)), ((2,), ()), ((1, 3), (2, 1)), ((2,), (2, 3))])
def test_broadcast_to_incompatible_shapes_raises(backend, shape, to):
    with pytest.raises(ValueError, match="broadcast_to: "):
        xp.broadcast_to(backend.array(np.ones(shape)), to)


# -------------------------------------------------------------------------------------------------------------- matmul


@given(data=st.data())
def test_matmul_matches_numpy(backend, data):
    """Of vectors, matrices and batches that broadcast."""
    shapes = data.draw(mutually_broadcastable_shapes(signature=np.matmul.signature, max_side=3, max_dims=2))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    dtype = data.draw(st.sampled_from(FEW))
    x1, x2 = (whole(rng, shape, dtype) for shape in shapes.input_shapes)
    expected = np.matmul(x1, x2)
    assert expected.shape == shapes.result_shape
    assert_same(fetched(backend, xp.matmul(*backend.arrays(x1, x2))), expected)


@pytest.mark.parametrize("first", NUMERIC, ids=str)
def test_matmul_promotes_dtypes(backend, first):
    for second in NUMERIC:
        for rows in (0, 1) if second in with_values(backend, NUMERIC, first) else (0,):
            x1, x2 = np.array([[1, 2]], first)[:rows].copy(), np.array([[3], [4]], second)
            got = fetched(backend, xp.matmul(*backend.arrays(x1, x2)))
            assert_same(got, np.array([[11]], np.result_type(first, second))[:rows])


def test_matmul_does_not_conjugate(backend):
    x = backend.array(np.array([1j, 2]))
    assert_same(fetched(backend, xp.matmul(x, x)), np.array(3 + 0j))


REFUSED = [((), (2,)), ((2,), ()), ((), ()), ((2,), (3,)), ((2,), (3, 2)), ((3, 2), (3,)), ((2, 3), (2, 3))]


@pytest.mark.parametrize(("first", "second"), [*REFUSED, ((2, 1, 1), (3, 1, 1))])
def test_matmul_of_incompatible_shapes_raises(backend, first, second):
    with pytest.raises(ValueError, match="matmul: "):
        xp.matmul(*backend.arrays(np.ones(first), np.ones(second)))


# --------------------------------------------------------------------------------------------------------------- norms


@pytest.mark.parametrize("ord", [2, 1, 0, np.inf, -np.inf, 3, 2.5])
@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": (-1, 0), "keepdims": True}], ids=str)
def test_norms_match_numpy(backend, ord, options):  # noqa: A002
    for dtype in ("f4", "f8", "c8"):
        x = whole(np.random.default_rng(0), (5, 6, 7), np.dtype(dtype)) + np.asarray(0.5, dtype)
        got = fetched(backend, xp.linalg.vector_norm(backend.array(x), ord=ord, **options))
        right = np.asarray(np.linalg.vector_norm(x, ord=ord, **options))
        assert (got.dtype, got.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(got, right, rtol=1e-5)


# ------------------------------------------------------------------------------------------------------ the namespaces


def test_importing_array_api_imports_nothing_else():
    code = "import sys, gpuops; had = {*sys.modules}; import gpuops.array_api; print({*sys.modules} - had)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[1]
    )
    assert done.stdout in ("{'gpuops.array_api'}\n", "set()\n"), done.stderr


@given(data=st.data())
def test_hypothesis_strategies_accept_the_namespace(data):
    """gpuops' functions, and a library's arrays as the suite draws them."""
    assert {name: getattr(array_api_namespace, name) for name in xp.__all__} == {n: getattr(xp, n) for n in xp.__all__}
    drawn = strategies.make_strategies_namespace(array_api_namespace, api_version="2024.12")
    x = data.draw(drawn.arrays(drawn.numeric_dtypes(), drawn.array_shapes()))
    assert isinstance(x, array_api_namespace.asarray(0).__class__)
    assert array_api_namespace.sum(x).shape == ()


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i2"])
@pytest.mark.parametrize("op", ["var", "std"])
def test_variances_take_a_correction(backend, op, dtype):
    x = np.arange(24).reshape(4, 6).astype(dtype) ** 2
    for options in ({}, {"axis": 1, "correction": 1}, {"axis": (0, 1), "correction": 0.5, "keepdims": True}):
        got = fetched(backend, getattr(xp, op)(backend.array(x), **options))
        right = np.asarray(getattr(np, op)(x, ddof=options.pop("correction", 0), **options))
        assert (got.dtype, got.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(got, right, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i2"])
@pytest.mark.parametrize("op", ["var", "std"])
def test_variances_without_degrees_of_freedom_are_nan(backend, op, dtype):
    x = backend.array((np.arange(24).reshape(4, 6) ** 2).astype(dtype))
    for options in ({"axis": 1, "correction": 6}, {"axis": (0, -1), "correction": 24.5}, {"correction": np.int64(99)}):
        assert np.isnan(fetched(backend, getattr(xp, op)(x, **options))).all()
        assert np.isfinite(fetched(backend, getattr(xp, op)(x, **options | {"correction": 5.5}))).all()
    with pytest.raises(np.exceptions.AxisError, match=rf"^{op}: axis 2 is out of range for shape \(4, 6\)"):
        getattr(xp, op)(x, axis=2)
    with pytest.raises(TypeError, match=f"^{op}: correction must be a real number, got '1'"):
        getattr(xp, op)(x, correction="1")
