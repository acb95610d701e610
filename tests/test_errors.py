"""Errors name the op, the rule and the values, and leave ``out`` unchanged."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import gpuops
from tests import ops
from tests.compare import fails
from tests.layouts import BFLOAT16
from tests.ops import EXTREMA, LOGICAL, REDUCTIONS, ROWWISE, SOFTMAXES, UFUNCS, WITH_AXIS, WITH_DTYPE, initial

AxisError = np.exceptions.AxisError
X = np.arange(20, dtype="f4").reshape(4, 5)
#: The name of an op's first parameter: NumPy's or SciPy's.
FIRST = {op: ops.parameters(op)[0] for op in WITH_AXIS}


def zeros(backend: Any, *shape: int, dtype: Any = "f4") -> Any:
    """A new array on the backend, filled with 7."""
    return backend.array(np.full(shape, 7).astype(dtype))


# ------------------------------------------------------------------------------------------------------------ axes


@pytest.mark.parametrize("op", WITH_AXIS)
def test_invalid_axes(backend, op):
    function, x = getattr(gpuops, op), backend.array(X)
    fails(AxisError, f"{op}: axis 2 is out of range for shape (4, 5)", function, x, 2)
    fails(AxisError, f"{op}: axis -3 is out of range for shape (4, 5)", function, x, (0, -3))
    fails(ValueError, f"{op}: axis (0, -2) names a dimension twice for shape (4, 5)", function, x, (0, -2))
    fails(TypeError, f"{op}: axis must be None, an int or a tuple of ints, got 1.0", function, x, 1.0)
    fails(TypeError, f"{op}: axis must be None, an int or a tuple of ints, got [0]", function, x, [0])
    fails(TypeError, f"{op}: axis must be None, an int or a tuple of ints, got True", function, x, True)
    for axis, wrong in ((1, 1), (-2, -2), ((0,), 0), ((-1,), -1)):
        message = f"{op}: axis {wrong} is out of range for shape ()"
        fails(AxisError, message, function, backend.array(np.array(1.0)), axis)


def test_out_is_untouched_by_a_wrong_axis(backend):
    for op in REDUCTIONS:
        fails(AxisError, f"{op}: axis 2", getattr(gpuops, op), backend.array(X), 2, out=zeros(backend, 4))
    for op in SOFTMAXES:
        fails(AxisError, f"{op}: axis 2", getattr(gpuops, op), backend.array(X), 2, out=zeros(backend, 4, 5))


# ---------------------------------------------------------------------------------------------------------- shapes


def test_incompatible_shapes(backend):
    x = backend.array(X)
    y, out = zeros(backend, 3), zeros(backend, 4, 5)
    fails(ValueError, "where: shapes (4, 5), (3,), (4, 5) do not broadcast", gpuops.where, x, y, x, out=out)
    fails(ValueError, "where: shapes (3,), (4, 5), () do not broadcast", gpuops.where, y, x, 0)
    for shape in ((4, 6), (5,), (), (0, 5), (4, -2), (-1, 4, 5), (5, 4)):
        fails(ValueError, f"expand: shape (4, 5) does not expand to {shape}", gpuops.expand, x, shape, out=out)
        fails(ValueError, f"broadcast_to: shape (4, 5) does not broadcast to {shape}", gpuops.broadcast_to, x, shape)
    fails(ValueError, "broadcast_to: shape (4, 5) does not broadcast to (-1, 5)", gpuops.broadcast_to, x, (-1, 5))
    fails(TypeError, "expand: shape must be an int or a tuple of ints, got (2.5,)", gpuops.expand, x, (2.5,))
    fails(TypeError, "broadcast_to: shape must be an int or a tuple of ints, got 'ab'", gpuops.broadcast_to, x, "ab")


@pytest.mark.parametrize("op", WITH_AXIS)
def test_invalid_masks(backend, op):
    function, x = getattr(gpuops, op), backend.array(X)
    for shape in ((3,), (2, 4, 5), (5, 4)):
        mask = zeros(backend, *shape, dtype=bool)
        message = f"{op}: where of shape {shape} does not broadcast to (4, 5)"
        fails(ValueError, message, function, x, where=mask, **initial(op))
    for mask, name in ((zeros(backend, 5, dtype="i8"), "int64"), (zeros(backend, 5), "float32")):
        fails(TypeError, f"{op}: where must be boolean, got {name}", function, x, where=mask, **initial(op))
    message = f"{op}: where is None; pass a mask, or True for all elements"
    fails(TypeError, message, function, x, where=None, **initial(op))


# ------------------------------------------------------------------------------------------------------ strategies


@pytest.mark.parametrize("op", ["expand", "where", "matmul", *WITH_AXIS])
def test_unknown_strategies(backend, op):
    valid = ", ".join(("None", *gpuops.strategies(op)))
    x = backend.array(X)
    args = {"expand": (x, (4, 5)), "where": (x, x, x), "matmul": (x, x.T)}.get(op, (x,))
    fails(ValueError, f"{op}: unknown strategy 'fast'; valid: {valid}", getattr(gpuops, op), *args, strategy="fast")


@pytest.mark.parametrize("op", ROWWISE)
def test_warp_rejects_long_rows(device, op):
    out = zeros(device, 2, 1025)
    message = f"{op}: strategy 'warp' takes rows of at most 1024 elements, got 1025"
    fails(ValueError, message, getattr(gpuops, op), zeros(device, 2, 1025), 1, out=out, strategy="warp")


def test_strategies_of_an_unknown_op():
    fails(ValueError, "strategies: unknown op 'dance'; valid: expand, where, sum", gpuops.strategies, "dance")


# ---------------------------------------------------------------------------------------------------------- dtypes

UNSUPPORTED = [
    np.array([1, None], object), np.array(["2020-01-01"], "M8[D]"), np.array(["a"]), np.array([b"a"]),
    np.zeros(2, np.longdouble), np.zeros(2, np.clongdouble), np.zeros(2, [("a", "i4")]), np.zeros(2, "m8[s]"),
]  # fmt: skip


@pytest.mark.parametrize("x", UNSUPPORTED, ids=lambda x: x.dtype.name)
def test_unsupported_dtypes(x):
    name = str(x.dtype)
    for op in WITH_AXIS:
        fails(TypeError, f"{op}: dtype {name} of {FIRST[op]} is not supported", getattr(gpuops, op), x)
    fails(TypeError, f"expand: dtype {name} of x is not supported", gpuops.expand, x, (3, x.size))
    fails(TypeError, f"where: dtype {name} of condition is not supported", gpuops.where, x, 1, 2)
    fails(TypeError, f"where: dtype {name} of x is not supported", gpuops.where, x == x, x, 2)
    fails(TypeError, f"where: dtype {name} of y is not supported", gpuops.where, x == x, 2, x)


def test_longdouble_on_a_device(device):
    if device.name == "emulated":  # CuPy has no longdouble
        fails(TypeError, "sum: dtype float128 of a", gpuops.sum, device.array(np.zeros(2, np.longdouble)))


@pytest.mark.parametrize("dtype", [object, "M8[D]", "S3", np.longdouble])
def test_unsupported_result_dtypes(backend, dtype):
    x, name = backend.array(X), str(np.dtype(dtype))
    for op in (*WITH_DTYPE, *SOFTMAXES):
        fails(TypeError, f"{op}: dtype {name} of the result is not supported", getattr(gpuops, op), x, dtype=dtype)


def test_invalid_dtype_strings(backend):
    for op in ("sum", "softmax"):
        fails(TypeError, f"{op}: ", getattr(gpuops, op), backend.array(X), dtype="nope")


def test_where_of_dtypes_without_a_common_dtype(backend):
    x, y = backend.array(X.astype("f2")), backend.array(X.astype(BFLOAT16))
    fails(TypeError, "where: ", gpuops.where, x, x, y)


@pytest.mark.parametrize("op", SOFTMAXES)
def test_softmax_takes_real_operands_dtypes_and_scales(backend, op):
    function = getattr(gpuops, op)
    fails(TypeError, f"{op}: dtype complex64 of {FIRST[op]} is not supported", function, backend.array(X.astype("c8")))
    for dtype in (int, bool, complex):
        message = f"{op}: dtype {np.dtype(dtype).name} of the result is not supported"
        fails(TypeError, message, function, backend.array(X), dtype=dtype)
    for scale in ("a", 1j, [1]):
        fails(TypeError, f"{op}: scale must be a real number, got {scale!r}", function, backend.array(X), scale=scale)
    fails(TypeError, f"{op}: scale must be a real number, got ", function, backend.array(X), scale=backend.array(X))
    fails(TypeError, f"{op}: scale must be", function, backend.array(X), scale=backend.array(np.array(1j)))


# ------------------------------------------------------------------------------------------------------------- dot


def test_dot_of_incompatible_shapes(backend):
    x, matrix = backend.array(X), backend.array(X.T)
    rule = "dot: shapes (4, 5) and (4, 5) do not align: 5 elements along the last axis meet 4 along axis 0"
    fails(ValueError, rule, gpuops.dot, x, x)
    rule = "dot: shapes (5,) and (4,) do not align: 5 elements along the last axis meet 4 along axis 0"
    fails(ValueError, rule, gpuops.dot, x[0], matrix[0])
    rule = "dot: shapes (4, 5) and (1, 4, 5) do not align: 5 elements along the last axis meet 4 along axis 1"
    fails(ValueError, rule, gpuops.dot, x, x[None])


def test_dot_of_dtypes_without_a_common_dtype(backend):
    half, brain = zeros(backend, 4, dtype="f2"), zeros(backend, 4, dtype=BFLOAT16)
    fails(TypeError, "dot: dtypes float16 and bfloat16 have no common dtype", gpuops.dot, half, brain)
    fails(TypeError, "dot: dtype <U1 of b is not supported", gpuops.dot, np.zeros(1), np.zeros(1, "U1"))


def test_dot_rejects_mixed_array_types(device, types):
    there = device.array(X[0])
    check_mixed("dot", ("a", "b"), types, gpuops.dot, X[0], there)
    check_mixed("dot", ("a", "b"), types[::-1], gpuops.dot, there, X[0])


# ---------------------------------------------------------------------------------------------------------- matmul

A, B = np.arange(12, dtype="f4").reshape(3, 4), np.arange(20, dtype="f4").reshape(4, 5)


def test_matmul_of_incompatible_shapes(backend):
    def of(a: tuple[int, ...], b: tuple[int, ...], message: str) -> None:
        out = zeros(backend, 3, 6)
        fails(ValueError, f"matmul: {message}", gpuops.matmul, zeros(backend, *a), zeros(backend, *b), out=out)

    for a, b in (((3, 4), (5, 6)), ((4,), (5, 6)), ((3, 4), (5,)), ((4,), (5,)), ((2, 3, 4), (3, 6)), ((3, 0), (1, 6))):
        of(a, b, f"inner dimensions differ: {a} @ {b}")
    for a, b in (((2, 3, 4), (3, 4, 6)), ((2, 1, 3, 4), (3, 2, 4, 6)), ((0, 3, 4), (2, 4, 6))):
        of(a, b, f"batch dimensions {a[:-2]} and {b[:-2]} do not broadcast: {a} @ {b}")
    for a, b in (((), (4, 6)), ((3, 4), ()), ((), ())):
        of(a, b, f"operands need at least one dimension: {a} @ {b}")


def test_matmul_of_a_scalar(backend):
    x = backend.array(A)
    for scalar in (2, 2.5, np.float32(2), np.array(2.0)):
        fails(ValueError, "matmul: operands need at least one dimension: (3, 4) @ ()", gpuops.matmul, x, scalar)
        fails(ValueError, "matmul: operands need at least one dimension: () @ (3, 4)", gpuops.matmul, scalar, x)


def test_invalid_out_of_matmul(backend):
    a, b = backend.arrays(A, B)
    for shape in ((3,), (5, 3), (1, 3, 5), (), (3, 1)):
        message = f"matmul: out has shape {shape}, the result has shape (3, 5)"
        fails(ValueError, message, gpuops.matmul, a, b, out=zeros(backend, *shape))
    message = "matmul: out has shape (1,), the result has shape ()"
    fails(ValueError, message, gpuops.matmul, a[0], b[:, 0], out=zeros(backend, 1))
    for dtype in ("i8", "?", "u1"):
        rule = f"cannot cast the result from float32 to {np.dtype(dtype).name} of out with casting rule 'same_kind'"
        fails(TypeError, f"matmul: {rule}", gpuops.matmul, a, b, out=zeros(backend, 3, 5, dtype=dtype))
    message = "matmul: cannot cast the result from complex64 to float32 of out"
    fails(TypeError, message, gpuops.matmul, a, b, zeros(backend, 3, 5), beta=1, c=1j)
    for out in ([0, 0], 3, "ab"):
        words = "an int" if out == 3 else f"a {type(out).__name__}"
        fails(TypeError, f"matmul: out is {words}, not an array", gpuops.matmul, a, b, out=out)


def test_invalid_addend_of_matmul(backend):
    a, b, out = *backend.arrays(A, B), zeros(backend, 3, 5)
    for beta in (1, -0.5):
        fails(ValueError, f"matmul: beta requires c, got beta={beta!r}", gpuops.matmul, a, b, out=out, beta=beta)
    for shape in ((4,), (5, 3), (1, 3, 5), (3,), (0,)):
        message = f"matmul: c of shape {shape} does not broadcast to (3, 5)"
        for beta in (0, 1):
            fails(ValueError, message, gpuops.matmul, a, b, out=out, beta=beta, c=zeros(backend, *shape))
    message = "matmul: c of shape (1,) does not broadcast to ()"
    fails(ValueError, message, gpuops.matmul, a[0], b[:, 0], beta=1, c=zeros(backend, 1))


def test_python_int_addends_out_of_range(backend):
    a, b, out = zeros(backend, 3, 4, dtype="u1"), zeros(backend, 4, 5, dtype="u1"), zeros(backend, 3, 5, dtype="u1")
    for c in (300, -1):
        fails(OverflowError, "matmul: ", gpuops.matmul, a, b, out=out, beta=1, c=c)


def test_matmul_factors_must_fit_the_dtype(backend):
    def of(dtype: Any, *wrong: Any) -> None:
        dtype = np.dtype(dtype)
        a, b, out = (zeros(backend, *shape, dtype=dtype) for shape in ((3, 4), (4, 5), (3, 5)))
        for factor in wrong:
            for name in ("alpha", "beta"):
                message = f"matmul: {name} {factor!r} cannot be represented in {dtype.name}"
                fails(TypeError, message, gpuops.matmul, a, b, out=out, c=out, **{name: factor})

    of("?", 2, -1, 0.5, 1j)
    of("u1", 0.5, -1, 256, 1j, np.float32(1))
    of("i8", 0.5, 2**63, 1j, 1.0)
    for dtype in ("f2", BFLOAT16, "f4", "f8"):
        of(dtype, 1j, np.complex64(1), np.str_("a"))
    of("c8", np.str_("a"), np.datetime64("2020"))


def test_matmul_factors_must_be_scalars(backend):
    a, b, out = *backend.arrays(A, B), zeros(backend, 3, 5)
    for factor in ("a", [1], None, (1,), np.ones(1, "f4")):
        for name in ("alpha", "beta"):
            if name == "beta" and factor is None:  # None is beta's default
                continue
            message = f"matmul: {name} must be a scalar, got {factor!r}"
            fails(TypeError, message, gpuops.matmul, a, b, out=out, c=out, **{name: factor})
    fails(TypeError, "matmul: alpha must be a scalar, got ", gpuops.matmul, a, b, out=out, alpha=zeros(backend, 1))


def test_matmul_strategies_reject_unsupported_dtypes(device):
    for dtype, other in (("f8", "f8"), ("f4", "f8"), ("f2", "f2"), (BFLOAT16, "f4"), ("i4", "i4"), ("c8", "f4")):
        a, b = device.arrays(A.astype(dtype), B.astype(other))
        out = zeros(device, 3, 5, dtype=np.result_type(a.dtype, b.dtype))
        message = f"matmul: strategy 'pipelined' takes float32 operands, got {a.dtype.name} and {b.dtype.name}"
        fails(ValueError, message, gpuops.matmul, a, b, out=out, strategy="pipelined")
    for dtype in ("?", "i1", "u8"):
        a, b, out = *device.arrays(A.astype(dtype), B.astype(dtype)), zeros(device, 3, 5, dtype=dtype)
        message = "matmul: strategy 'cublas' takes float16, bfloat16, float32, float64, complex64, complex128, got "
        fails(ValueError, message + np.dtype(dtype).name, gpuops.matmul, a, b, out=out, strategy="cublas")
    a, b, out = *device.arrays(A, B), zeros(device, 3, 5, dtype="f8")
    message = "matmul: strategy 'pipelined' takes float32 operands, got "  # c promotes them to float64
    fails(ValueError, message, gpuops.matmul, a, b, out=out, c=zeros(device, 5, dtype="f8"), strategy="pipelined")


@pytest.mark.parametrize("x", UNSUPPORTED, ids=lambda x: x.dtype.name)
def test_matmul_of_unsupported_dtypes(x):
    name, out = str(x.dtype), np.zeros(2)
    a, b = np.zeros((2, x.size)), np.zeros((x.size, 2))
    fails(TypeError, f"matmul: dtype {name} of a is not supported", gpuops.matmul, x, b, out=out)
    fails(TypeError, f"matmul: dtype {name} of b is not supported", gpuops.matmul, a, x, out=out)
    fails(TypeError, f"matmul: dtype {name} of c is not supported", gpuops.matmul, a, b[:, 0], out=out, beta=1, c=x)


def test_matmul_of_dtypes_without_a_common_dtype(backend):
    half, brain = zeros(backend, 4, 4, dtype="f2"), zeros(backend, 4, 4, dtype=BFLOAT16)
    fails(TypeError, "matmul: dtypes float16 and bfloat16 have no common dtype", gpuops.matmul, half, brain)
    message = "matmul: dtypes float16 and float16 and bfloat16 have no common dtype"
    fails(TypeError, message, gpuops.matmul, half, half, beta=1, c=brain)


def test_matmul_rejects_mixed_array_types(device, types):
    a, b, out = device.arrays(A, B, np.zeros((3, 5), "f4"))
    here, back = np.full((3, 5), 7, "f4"), types[::-1]
    check_mixed("matmul", ("a", "b"), types, gpuops.matmul, A, b, out=here)
    check_mixed("matmul", ("a", "b"), back, gpuops.matmul, a, B, out=out)
    check_mixed("matmul", ("a", "out"), types, gpuops.matmul, A, B, out=out)
    check_mixed("matmul", ("a", "out"), back, gpuops.matmul, a, b, out=here)
    check_mixed("matmul", ("a", "c"), types, gpuops.matmul, A, B, beta=1, c=out)
    check_mixed("matmul", ("a", "c"), back, gpuops.matmul, a, b, beta=1, c=here)


# ----------------------------------------------------------------------------------------------- mixed array types


def check_mixed(
    op: str, names: tuple[str, str], types: tuple[str, str], function: Any, *args: Any, **more: Any
) -> None:
    """A TypeError that names both arguments and both types."""
    message = f"{op}: NumPy and CuPy arrays do not mix: {names[0]} is a {types[0]}, {names[1]} is a {types[1]}"
    fails(TypeError, message, function, *args, **more)


@pytest.fixture
def types(device):
    """The names of NumPy's and the device's array types in messages."""
    return "numpy.ndarray", {"emulated": "tests.EmulatedArray", "gpu": "cupy.ndarray"}[device.name]


@pytest.mark.parametrize("op", WITH_AXIS)
def test_reductions_reject_mixed_array_types(device, types, op):
    function, x = getattr(gpuops, op), device.array(X)
    full = op in ROWWISE
    dtype = bool if op in LOGICAL else "f4"
    here, there = (np.zeros((4, 5) if full else 4, dtype), zeros(device, *((4, 5) if full else (4,)), dtype=dtype))
    mask = np.ones((4, 5), bool)
    check_mixed(op, (FIRST[op], "out"), types, function, X, 1, out=there)
    check_mixed(op, (FIRST[op], "out"), types[::-1], function, x, 1, out=here)
    check_mixed(op, (FIRST[op], "where"), types, function, X, 1, where=device.array(mask), **initial(op))
    check_mixed(op, (FIRST[op], "where"), types[::-1], function, x, 1, where=mask, **initial(op))
    check_mixed(op, (FIRST[op], "where"), types, function, X, 1, out=here, where=device.array(mask), **initial(op))


@pytest.mark.parametrize("op", [*REDUCTIONS, "logsumexp"])
def test_0d_numpy_out_of_device_operands_is_rejected(device, types, op):
    out = np.zeros((), bool if op in LOGICAL else "f4")
    check_mixed(op, (FIRST[op], "out"), types[::-1], getattr(gpuops, op), device.array(X), out=out)


def test_broadcasting_rejects_mixed_array_types(device, types):
    x, out = device.array(X), zeros(device, 4, 5)
    back = types[::-1]
    check_mixed("expand", ("x", "out"), types, gpuops.expand, X, (4, 5), out=out)
    check_mixed("expand", ("x", "out"), back, gpuops.expand, x, (4, 5), out=X.copy())
    check_mixed("where", ("condition", "x"), types, gpuops.where, X > 0, x, 0)
    check_mixed("where", ("condition", "x"), back, gpuops.where, x, X, 0)
    check_mixed("where", ("condition", "y"), types, gpuops.where, X > 0, 0, x)
    check_mixed("where", ("condition", "y"), back, gpuops.where, x, x, X)
    check_mixed("where", ("x", "y"), types, gpuops.where, True, X, x)
    check_mixed("where", ("condition", "out"), types, gpuops.where, X > 0, X, 0, out=out)
    check_mixed("where", ("condition", "out"), back, gpuops.where, x, x, 0, out=X.copy())


# ------------------------------------------------------------------------------------------------------------- out


@pytest.mark.parametrize("op", REDUCTIONS)
def test_invalid_out_shapes_of_reductions(backend, op):
    function, x = getattr(gpuops, op), backend.array(X)
    dtype = bool if op in LOGICAL else "f4"
    for shape in ((5,), (4, 1), ()):
        message = f"{op}: out has shape {shape}, the result has shape (4,)"
        fails(ValueError, message, function, x, 1, out=zeros(backend, *shape, dtype=dtype))
    message = f"{op}: out has shape (4,), the result has shape (4, 1)"
    fails(ValueError, message, function, x, 1, out=zeros(backend, 4, dtype=dtype), keepdims=True)


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("dtype", ["i8", "?", "u1"])
def test_out_of_another_dtype_kind_is_rejected(backend, op, dtype):
    message = f"{op}: cannot cast the result from float32 to {np.dtype(dtype).name} of out"
    fails(TypeError, message, getattr(gpuops, op), backend.array(X), 1, out=zeros(backend, 4, dtype=dtype))


@pytest.mark.parametrize("op", ROWWISE)
def test_invalid_out_of_softmax(backend, op):
    function, x = getattr(gpuops, op), backend.array(X)
    fails(ValueError, f"{op}: out has shape (4,), the result has shape (4, 5)", function, x, 1, out=zeros(backend, 4))
    message = f"{op}: cannot cast the result from float32 to int64 of out"
    fails(TypeError, message, function, x, 1, out=zeros(backend, 4, 5, dtype="i8"))
    message = "logsumexp: out has shape (4,), the result has shape (5,)"
    fails(ValueError, message, gpuops.logsumexp, x, 0, out=zeros(backend, 4))


def test_invalid_out_of_broadcasting(backend):
    x = backend.array(X)
    message = "expand: out has shape (4,), the result has shape (4, 5)"
    fails(ValueError, message, gpuops.expand, x, (4, 5), out=zeros(backend, 4))
    message = "where: out has shape (5,), the result has shape (4, 5)"
    fails(ValueError, message, gpuops.where, x, x, 0, out=zeros(backend, 5))
    for dtype in ("i8", "?"):
        rule = f"cannot cast the result from float32 to {np.dtype(dtype).name} of out with casting rule 'same_kind'"
        fails(TypeError, f"expand: {rule}", gpuops.expand, x, (4, 5), out=zeros(backend, 4, 5, dtype=dtype))
        fails(TypeError, f"where: {rule}", gpuops.where, x, x, 0, out=zeros(backend, 4, 5, dtype=dtype))
    fails(TypeError, "where: out needs x and y", gpuops.where, x, out=zeros(backend, 4, 5))


@pytest.mark.parametrize("out", [[0, 0, 0, 0], 3, "abcd", (1,)], ids=repr)
def test_out_must_be_an_array(backend, out):
    x = backend.array(X)
    for op in WITH_AXIS:
        fails(TypeError, f"{op}: ", getattr(gpuops, op), x, 1, out=out)
    fails(TypeError, "expand: ", gpuops.expand, x, (4, 5), out=out)
    fails(TypeError, "where: ", gpuops.where, x, x, x, out=out)


def test_read_only_out(backend):
    x, row, full = backend.array(X), zeros(backend, 4), zeros(backend, 4, 5)
    if backend.name == "gpu":
        assert not hasattr(row.flags, "writeable")  # CuPy's arrays cannot be read-only
        return
    row.flags.writeable = full.flags.writeable = False
    for op in (*REDUCTIONS, "logsumexp"):
        fails(ValueError, f"{op}: out is read-only", getattr(gpuops, op), x, 1, out=row)
    for op in ROWWISE:
        fails(ValueError, f"{op}: out is read-only", getattr(gpuops, op), x, 1, out=full)
    fails(ValueError, "expand: out is read-only", gpuops.expand, x, (4, 5), out=full)
    fails(ValueError, "where: out is read-only", gpuops.where, x, x, 0, out=full)
    fails(ValueError, "matmul: out is read-only", gpuops.matmul, x, zeros(backend, 5, 5), out=full)
    fails(ValueError, "matmul: out is read-only", gpuops.matmul, x, zeros(backend, 5, 5), out=full, beta=1, c=full)


# --------------------------------------------------------------------------------------------------------- initial


@pytest.mark.parametrize("op", EXTREMA)
def test_max_and_min_without_a_required_initial(backend, op):
    function = getattr(gpuops, op)
    for shape, axis, dims in (((0,), None, (0,)), ((0, 3), 0, (0,)), ((3, 0), 1, (1,)), ((0, 0), 0, (0,))):
        message = f"{op}: zero-size array of shape {shape} has no identity over axis {dims}; give initial"
        fails(ValueError, message, function, zeros(backend, *shape), axis)
    mask = zeros(backend, 4, 5, dtype=bool)
    for where in (mask, False, np.bool_(True)):
        message = f"{op}: has no identity, so a where mask needs initial"
        fails(ValueError, message, function, backend.array(X), 1, out=zeros(backend, 4), where=where)


def test_initial_none_removes_the_identity(backend):
    message = "sum: zero-size array of shape (0,) has no identity over axis (0,); give initial"
    fails(ValueError, message, gpuops.sum, zeros(backend, 0), initial=None)
    message = "prod: has no identity, so a where mask needs initial"
    fails(ValueError, message, gpuops.prod, backend.array(X), initial=None, where=zeros(backend, 4, 5, dtype=bool))


@pytest.mark.parametrize("op", UFUNCS)
def test_initial_must_be_a_scalar_that_fits(backend, op):
    function, x = getattr(gpuops, op), backend.array(X)
    fails(ValueError, f"{op}: initial must be a scalar, got ", function, x, initial=backend.array(X))
    fails(ValueError, f"{op}: initial must be a scalar, got [1]", function, x, initial=[1])
    fails(ValueError, f"{op}: initial must be a scalar, got 'a'", function, x, initial="a")
    fails(TypeError, f"{op}: ", function, x, initial=1j)
    big = 300 if op in EXTREMA else 2**70  # int8 is summed as int64
    fails(OverflowError, f"{op}: ", function, zeros(backend, 3, dtype="i1"), initial=big)


# ----------------------------------------------------------------------------------------------------------- where


def test_where_needs_both_or_neither_of_x_and_y(backend):
    x = backend.array(X)
    message = "where: either both or neither of x and y must be given"
    fails(ValueError, message, gpuops.where, x, x)
    fails(ValueError, message, gpuops.where, x, None, x)
    fails(ValueError, "where: condition is 0-d, which has no indices", gpuops.where, backend.array(np.array(True)))


# --------------------------------------------------------------------------------------------------- other libraries


class Foreign:
    """An array whose memory cannot be shared."""

    shape, dtype, ndim = (3,), np.dtype("f4"), 1

    def __dlpack__(self, stream=None):
        raise AssertionError("its device is asked for first")


@pytest.mark.parametrize("op", WITH_AXIS)
def test_foreign_objects_without_shared_memory_are_rejected(op):
    message = f"{op}: {FIRST[op]} is a tests.Foreign, whose memory cannot be shared: it has neither"
    fails(TypeError, message, getattr(gpuops, op), Foreign())
    message = f"{op}: {FIRST[op]} is a str, not an array"
    fails(TypeError, message, getattr(gpuops, op), "abc")


def test_matmul_rejects_arrays_of_two_libraries():
    message = "matmul: arrays of two libraries do not mix: a is a tests.Foreign, b is a numpy.ndarray"
    fails(TypeError, message, gpuops.matmul, Foreign(), X[0])
    message = "matmul: arrays of two libraries do not mix: c is a tests.Foreign, a is a numpy.ndarray"
    fails(TypeError, message, gpuops.matmul, A, B, beta=1, c=Foreign())


NO_ARRAYS = {
    "a dict": {"a": 1}, "a set": {1, 2}, "a generator": (n for n in range(3)), "a str": "abc", "an object": object(),
    "a decimal.Decimal": Decimal(1), "a dict_values": {}.values(),
}  # fmt: skip


@pytest.mark.parametrize("what", NO_ARRAYS)
def test_operands_that_are_no_arrays_are_called_what_they_are(backend, what):
    value, x = NO_ARRAYS[what], backend.array(X)
    for op in WITH_AXIS:
        fails(TypeError, f"{op}: {FIRST[op]} is {what}, not an array", getattr(gpuops, op), value)
        fails(TypeError, f"{op}: where is {what}, not an array", getattr(gpuops, op), x, where=value, **initial(op))
    fails(TypeError, f"where: y is {what}, not an array", gpuops.where, x, x, value)
    fails(TypeError, f"broadcast_to: array is {what}, not an array", gpuops.broadcast_to, value, (2,))
    fails(TypeError, f"matmul: a is {what}, not an array", gpuops.matmul, value, x)
    fails(TypeError, f"matmul: b is {what}, not an array", gpuops.matmul, x, value)


def test_sparse_matrices_get_a_hint_at_dense_arrays(backend):
    sparse = pytest.importorskip("scipy.sparse", reason="its matrices are SciPy's")
    x = sparse.csr_array(X)
    message = "sum: a is a scipy.csr_array, not an array; pass a.toarray()"
    fails(TypeError, message, gpuops.sum, x)
    message = "matmul: b is a scipy.csr_array, not an array; pass b.toarray()"
    fails(TypeError, message, gpuops.matmul, backend.array(X.T), x)


def test_ragged_lists_are_rejected_in_numpys_words(backend):
    ragged, rule = [[1.0], [1.0, 2.0]], "cannot be converted to an array: setting an array element with a sequence"
    fails(ValueError, f"sum: a {rule}", gpuops.sum, ragged)
    fails(ValueError, f"where: y {rule}", gpuops.where, backend.array(X), 0, ragged)
    fails(ValueError, f"sum: where {rule}", gpuops.sum, backend.array(X), where=ragged)


def test_dask_calls_name_operands_that_are_no_arrays():
    da = pytest.importorskip("dask.array", reason="arrays are Dask's")
    x = da.from_array(X, 2)
    fails(TypeError, "where: y is a dict, not an array", gpuops.where, x, x, {})
    fails(ValueError, "matmul: b cannot be converted to an array: ", gpuops.matmul, x, [[1.0], [1.0, 2.0]])


def test_masked_arrays_are_rejected():
    masked = np.ma.array(X, mask=X > 3)
    rule = "is a numpy.MaskedArray; masked arrays are not supported: pass"
    fails(TypeError, f"sum: a {rule} its data, and ~mask as where=", gpuops.sum, masked)
    fails(TypeError, f"where: y {rule} its data", gpuops.where, X > 3, X, masked)
    fails(TypeError, f"sum: where {rule} where=mask.filled(False)", gpuops.sum, X, where=masked > 1)


def test_out_with_zero_strides_is_rejected(backend):
    out = backend.array(np.lib.stride_tricks.as_strided(np.zeros(4, "f4"), (4, 5), (4, 0)))
    message = "softmax: out overlaps itself: its shape is (4, 5), its strides (4, 0)"
    fails(ValueError, message, gpuops.softmax, backend.array(X), axis=1, out=out)


@pytest.mark.parametrize("strides", [(4, 4), (8, 4), (-4, 4), (12, 8), (16, 4)])
def test_out_with_overlapping_elements_is_rejected(backend, strides):
    memory = np.full(200, 7, "u1")
    out = backend.array(np.ndarray((4, 5), "f4", memory, 80, strides))
    fails(ValueError, "expand: out overlaps itself: its shape is (4, 5)", gpuops.expand, 1.0, (4, 5), out=out)


@pytest.mark.parametrize("op", ["sum", "mean", "softmax"])
def test_byte_swapped_result_dtypes_are_rejected(backend, op):
    message = f"{op}: dtype >f4 of dtype is not in native byte order"
    fails(TypeError, message, getattr(gpuops, op), zeros(backend, 2, 3), dtype=">f4")


def test_byte_swapped_arrays_are_rejected_on_devices(device):
    x, native = zeros(device, 2, 3, dtype=">f4"), zeros(device, 2, 3)
    assert gpuops.sum(np.ones((2, 3), ">f4")) == 6
    rule = "is not in native byte order"
    fails(TypeError, f"sum: dtype >f4 of a {rule}", gpuops.sum, x)
    fails(TypeError, f"where: dtype >f4 of y {rule}", gpuops.where, native, 0, x)
    fails(TypeError, f"matmul: dtype >f4 of b {rule}", gpuops.matmul, native, x)
    fails(TypeError, f"softmax: dtype >f4 of out {rule}", gpuops.softmax, native, out=x)
