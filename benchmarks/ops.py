"""The ops: a reference in double precision, input data, and the limit of their speed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .arrays import dtype_of, stored, values
from .cases import CASTS, Case, Shape
from .expressions import EXPRESSIONS, Library

#: What ``rms_norm`` adds to means, by all libraries.
EPS = 1e-6


@dataclass(frozen=True)
class Op:
    """One op. References take NumPy or CuPy (``xp``), the case, and arrays in double precision or integers."""

    reference: Callable[..., Any]
    shape: Callable[[Case], Shape]  # of the result
    limit: str  # what bounds it: "copy" or "read" of the same bytes, or "BLAS"
    flop: Callable[[Case], int]  # floating-point operations, for rooflines
    result: Callable[[np.dtype], np.dtype] = lambda dtype: dtype
    data: tuple[str, ...] = ("normal",)  # kinds of ``arrays.values``, one per operand
    exact: bool = False  # no rounding is allowed
    #: Like ``reference``, the size that results would have without cancellation; the reference itself if None.
    magnitude: Callable[..., Any] | None = None
    beside: str = ""  # the op of gpuops whose time on the same arrays stands beside, if any


def softmax(xp: Any, case: Case, x: Any, mask: Any = True) -> Any:
    powers = xp.exp(case.problem.scale * (x - xp.max(x, axis=case.axis, keepdims=True))) * mask
    total = xp.sum(powers, axis=case.axis, keepdims=True)
    return powers / xp.where(total, total, 1)  # fully masked rows give 0


def logsumexp(xp: Any, case: Case, x: Any, keepdims: bool = False) -> Any:
    peak = xp.max(x, axis=case.axis, keepdims=True)
    below, options = x != peak, {"axis": case.axis, "keepdims": True}  # results near 0 depend on those alone
    rest = xp.sum(xp.where(below, xp.exp(x - peak), 0), **options) + (xp.sum(~below, **options) - 1)
    total = xp.log1p(rest) + peak
    return total if keepdims else xp.squeeze(total, case.axis)


def rms_norm(xp: Any, case: Case, x: Any) -> Any:
    return x / xp.sqrt(xp.mean(x * x, axis=case.axis, keepdims=True) + EPS)


def elements(case: Case) -> int:
    return max(math.prod(operand.shape) for operand in case.problem.operands)


def per_element(flop: int) -> Callable[[Case], int]:
    return lambda case: flop * elements(case)


def same_shape(case: Case) -> Shape:
    return case.problem.operands[0].shape


def given_shape(case: Case) -> Shape:
    return case.problem.shape


def reduced_shape(case: Case) -> Shape:
    shape = case.problem.operands[0].shape
    axis = range(len(shape)) if case.axis is None else (case.axis,) if isinstance(case.axis, int) else case.axis
    return tuple(n for d, n in enumerate(shape) if d not in axis)


def terms(case: Case) -> int:
    """How many elements each result reduces."""
    return elements(case) // max(1, math.prod(reduced_shape(case)))


def reduction(
    name: str,
    data: str = "normal",
    magnitude: Callable[..., Any] | None = None,
    exact: bool | None = None,
    beside: str = "",
) -> Op:
    """NumPy's reduction of that name, with a mask if there is one, exact unless it has a magnitude or that is said."""

    def reference(xp: Any, case: Case, x: Any, *masks: Any) -> Any:
        return getattr(xp, name)(x, axis=case.axis, **({"where": masks[0]} if masks else {}))

    return Op(
        reference, reduced_shape, "read", per_element(1),
        lambda dtype: getattr(np, name)(np.ones(2, dtype)).dtype, (data,),
        magnitude is None if exact is None else exact, magnitude, beside,
    )  # fmt: skip


def norm(xp: Any, case: Case, x: Any, *masks: Any) -> Any:
    """The size of a sum of terms of random sign, all of which take part but NaN."""
    return xp.sqrt(xp.nansum(abs(x) ** 2, axis=case.axis))


def norm_of_mean(xp: Any, case: Case, x: Any, *masks: Any) -> Any:
    """The same, of a mean."""
    return norm(xp, case, x) / terms(case)


def first(xp: Any, case: Case, x: Any, top: str) -> Any:
    """The index of the first element that is as large as ``top`` says. (CuPy's own has the index in an int.)"""
    x, axis = (x.ravel(), 0) if case.axis is None else (x, case.axis)
    length = x.shape[axis]
    index = xp.arange(length).reshape([length if d == axis else 1 for d in range(x.ndim)])
    found = x == getattr(xp, top)(x, axis=axis, keepdims=True)
    return xp.min(xp.where(found, index, length), axis=axis)


def search(top: str, data: str = "normal") -> Op:
    """The index of the first element that NumPy's reduction ``top`` gives."""
    return Op(
        lambda xp, case, x: first(xp, case, x, top), reduced_shape, "read", per_element(1),
        lambda dtype: np.dtype(np.int64), (data,), exact=True, beside="max",
    )  # fmt: skip


def two_results(of: Callable[..., Sequence[Any]], *dtypes: str, exact: bool = False, **options: Any) -> Op:
    """A reduction with two results, of which one array is made here; "" is the operand's dtype."""
    return Op(
        lambda xp, case, x: xp.stack(of(xp, case, x)), reduced_shape, "read", per_element(1),
        lambda dtype: np.dtype([(f"result {i}", name or dtype) for i, name in enumerate(dtypes)]), exact=exact,
        **options,
    )  # fmt: skip


def with_index(top: str) -> Op:
    """What NumPy's reduction ``top`` gives, and where it is."""
    return two_results(
        lambda xp, case, x: (getattr(xp, top)(x, axis=case.axis), first(xp, case, x, top)), "", "int64",
        exact=True, beside="max",
    )  # fmt: skip


def comparison(name: str) -> Op:
    """NumPy's comparison of two arrays, which are equal: the worst case."""
    return Op(
        lambda xp, case, x, y: xp.asarray(getattr(xp, name)(x, y)), given_shape, "read", per_element(1),
        lambda dtype: np.dtype(bool), ("normal", "normal"), exact=True, beside="sum",
    )  # fmt: skip


def scanned(xp: Any, combine: Callable[..., Any], x: Any, axis: int) -> Any:
    """A scan in log2(n) steps, which combine elements with those ever further before them: CuPy has no other one."""
    lines, step = xp.moveaxis(x, axis, -1).copy(), 1
    while step < lines.shape[-1]:
        lines[..., step:] = combine(lines[..., :-step], lines[..., step:])
        step *= 2
    return xp.moveaxis(lines, -1, axis)


def scan(reference: Callable[..., Any], flop: int = 1, **options: Any) -> Op:
    """A scan along an axis."""
    return Op(lambda xp, case, x: reference(xp, x, case.axis), same_shape, "copy", per_element(flop), **options)


def summed(dtype: np.dtype) -> np.dtype:
    """The dtype of sums and products of elements of a dtype."""
    return np.cumsum(np.ones(2, dtype)).dtype


def selected(case: Case) -> int:
    """How many elements, or rows, a case selects."""
    (length, *_), data = case.problem.operands[0].shape, values(kinds(case)[0], np.dtype(bool))
    periods, rest = divmod(length, data.size)
    return periods * int(data.sum()) + int(data[:rest].sum())


def expression(
    name: str,
    flop: int,
    *data: str,
    limit: str = "read",
    result: Callable[[np.dtype], np.dtype] = lambda dtype: dtype,
    magnitude: Callable[..., Any] | None = None,
) -> Op:
    """An expression, of these kinds of data: a reduction, or an element for each of the first array (``copy``)."""

    def reference(xp: Any, case: Case, *arrays: Any) -> Any:
        special = (lambda x, axis: logsumexp(xp, case, x)), (lambda x, axis: softmax(xp, case, x))
        return EXPRESSIONS[name](Library(xp.sum, xp.mean, xp.max, xp.where, *special), case.axis, *arrays)

    shape = same_shape if limit == "copy" else reduced_shape
    return Op(reference, shape, limit, per_element(flop), result, data, magnitude=magnitude)


def norm_of_cosine(xp: Any, case: Case, x: Any, y: Any) -> Any:
    """The size of a cosine of random vectors."""
    return norm(xp, case, x * y) / (norm(xp, case, x) * norm(xp, case, y))


#: One row per op.
OPS: dict[str, Op] = {
    "softmax": Op(softmax, same_shape, "copy", per_element(5)),
    "log_softmax": Op(
        lambda xp, case, x: x - logsumexp(xp, case, x, keepdims=True), same_shape, "copy", per_element(5)
    ),
    "logsumexp": Op(logsumexp, reduced_shape, "read", per_element(4)),
    "rms_norm": Op(rms_norm, same_shape, "copy", per_element(3)),
    "sum": reduction("sum", magnitude=norm),
    "mean": reduction("mean", magnitude=norm_of_mean),
    "max": reduction("max"),
    "min": reduction("min"),
    "prod": reduction("prod", "signs"),
    "any": reduction("any", "zeros"),  # the worst case: every element must be read
    "all": reduction("all", "ones"),
    "argmax": search("max"),
    "argmin": search("min"),
    "nanargmax": search("nanmax", "nan normal"),
    "nanargmin": search("nanmin", "nan normal"),
    "max_with_index": with_index("max"),
    "min_with_index": with_index("min"),
    "ptp": reduction("ptp", exact=False, beside="max"),
    "nansum": reduction("nansum", "nan normal", norm, beside="max"),
    "nanprod": reduction("nanprod", "nan signs", beside="max"),
    "nanmax": reduction("nanmax", "nan normal", beside="max"),
    "nanmin": reduction("nanmin", "nan normal", beside="max"),
    "nanmean": reduction("nanmean", "nan normal", norm_of_mean, beside="max"),
    "nanvar": reduction("nanvar", "nan normal", exact=False, beside="max"),
    "nanstd": reduction("nanstd", "nan normal", exact=False, beside="max"),
    "var": reduction("var", exact=False, beside="sum"),
    "std": reduction("std", exact=False, beside="sum"),
    "mean_var": two_results(
        lambda xp, case, x: (xp.mean(x, axis=case.axis), xp.var(x, axis=case.axis)), "", "", beside="sum"
    ),
    "count_nonzero": Op(
        lambda xp, case, x: xp.asarray(xp.count_nonzero(x, axis=case.axis)), reduced_shape, "read", per_element(1),
        lambda dtype: np.dtype(np.int64), ("flags",), exact=True, beside="sum",
    ),
    "sum_of_squares": Op(
        lambda xp, case, x: xp.sum(abs(x) ** 2, axis=case.axis), reduced_shape, "read", per_element(2),
        lambda dtype: np.sum(np.ones(2, dtype)).dtype, beside="sum",
    ),
    "vector_norm": Op(norm, reduced_shape, "read", per_element(2), beside="sum"),
    "average": Op(
        lambda xp, case, x, weights: xp.sum(x * weights, axis=case.axis) / xp.sum(weights, axis=case.axis),
        reduced_shape, "read", per_element(3), data=("normal", "weights"), magnitude=norm_of_mean, beside="sum",
    ),
    "allclose": comparison("allclose"),
    "array_equal": comparison("array_equal"),
    "dot": Op(
        lambda xp, case, x, y: xp.dot(x, y), given_shape, "read", lambda case: 2 * elements(case),
        data=("normal", "ones"), magnitude=lambda xp, case, x, y: xp.sqrt(xp.dot(abs(x) ** 2, abs(y) ** 2)),
    ),
    "cumsum": scan(lambda xp, x, axis: xp.cumsum(x, axis), result=summed),
    "cumprod": scan(lambda xp, x, axis: xp.cumprod(x, axis), result=summed, data=("signs",), exact=True),
    "cummax": scan(lambda xp, x, axis: scanned(xp, xp.maximum, x, axis), exact=True),
    "cummin": scan(lambda xp, x, axis: scanned(xp, xp.minimum, x, axis), exact=True),
    "logcumsumexp": scan(lambda xp, x, axis: scanned(xp, xp.logaddexp, x, axis), flop=4),
    "nonzero": Op(
        lambda xp, case, x: xp.stack(xp.nonzero(x)), lambda case: (1, selected(case)), "copy", per_element(0),
        lambda dtype: np.dtype(np.int64), ("flags",), exact=True,
    ),
    "compress": Op(
        lambda xp, case, condition, x: xp.compress(condition, x, axis=case.axis),
        lambda case: (selected(case), *case.problem.operands[1].shape[1:]), "copy", per_element(0),
        data=("mask", "normal"), exact=True,
    ),
    "where": Op(
        lambda xp, case, condition, x, y: xp.where(condition, x, y), given_shape, "copy", per_element(0),
        data=("mask", "normal", "normal"), exact=True,
    ),
    "expand": Op(
        lambda xp, case, x: xp.broadcast_to(x, case.problem.shape), given_shape, "copy", per_element(0), exact=True
    ),
    "matmul": Op(
        lambda xp, case, a, b: xp.matmul(a, b), given_shape,
        "BLAS", lambda case: 2 * math.prod(same_shape(case)) * case.problem.shape[-1],
        data=("normal", "normal"), magnitude=lambda xp, case, a, b: xp.sqrt(xp.matmul(abs(a) ** 2, abs(b) ** 2)),
    ),
    "squared_distance": expression("squared_distance", 3, "normal", "normal 1", result=summed),
    "greatest_difference": expression("greatest_difference", 3, "normal", "normal 1"),
    "share_above": expression("share_above", 3, "normal", "mask", result=lambda dtype: np.dtype(np.float64)),
    "share_above_where": expression(
        "share_above_where", 4, "normal", "normal 1", result=lambda dtype: np.dtype(np.float64)
    ),
    "scaled_logsumexp": expression("scaled_logsumexp", 6, "normal", "weights", "normal 1"),
    "scaled_softmax": expression("scaled_softmax", 7, "normal", "weights", "normal 1", limit="copy"),
    "standardize": expression("standardize", 2, "normal", "normal 1", "weights", limit="copy"),
    "polynomial": expression("polynomial", 5, "normal", *(f"normal {i}" for i in range(1, 5)), limit="copy"),
    "cosine": expression("cosine", 6, "normal", "normal 1", magnitude=norm_of_cosine),
    # For --host only: three ops, of which the last is checked, and an import, without arrays.
    "pipeline": Op(
        lambda xp, case, x, mask: softmax(xp, case, xp.where(mask, x, 0)), same_shape, "copy", per_element(6)
    ),
    "import": Op(lambda xp, case: None, given_shape, "read", lambda case: 0, data=()),
}  # fmt: skip


def often(times: int) -> Callable[[int], int]:
    return lambda cols: times


#: How often each strategy loads an element of x, by row length: by design, whether from memory or cache.
READINGS: dict[str, dict[str, Callable[[int], int]]] = {
    "softmax": {
        "naive": lambda cols: 2 * cols + 1,
        **dict.fromkeys(("block_tree", "block_coalesced", "two_pass", "two_pass_host"), often(3)),
        **dict.fromkeys(("block_online", "grid_online"), often(2)),
        **dict.fromkeys(("block_shared", "warp", "warp_pack2", "warp_pack4", "warp_pack8"), often(1)),
        **dict.fromkeys(("rows", "columns", "grid"), often(1)),
    },
    "cumsum": {
        **dict.fromkeys(("hillis_steele", "blelloch", "warp", "look_back"), often(1)),
        "three_pass": often(2),
    },
}


def kinds(case: Case) -> tuple[str, ...]:
    """The kind of data of each operand: what the op takes, or the first of that, and a mask if there is one more."""
    data, count = OPS[case.op].data, len(case.problem.operands)
    return (data + ("mask",) * (count - len(data)))[:count]


def result_dtype(case: Case) -> np.dtype:
    """The dtype of the result."""
    return dtype_of(CASTS[case.dtype]) if case.problem.cast else OPS[case.op].result(dtype_of(case.dtype))


def nbytes(case: Case) -> tuple[int, int]:
    """The bytes that a case reads and writes if it touches each element of its operands and its result once."""
    itemsize = dtype_of(case.dtype).itemsize
    sizes = [1 if kind == "mask" else itemsize for kind in kinds(case)]
    read = sum(stored(operand) * size for operand, size in zip(case.problem.operands, sizes, strict=True))
    return read, math.prod(OPS[case.op].shape(case)) * result_dtype(case).itemsize


def widened(xp: Any, x: Any) -> Any:
    """Floating and complex numbers in double precision, others as they are."""
    if x.dtype.kind in "biu":
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


class Expected(NamedTuple):
    """The expected result and its tolerance."""

    values: Any
    allowed: float | None  # the largest error; None where no bit may differ


def expected(xp: Any, case: Case, arrays: tuple[Any, ...]) -> Expected:
    """The reference result and a tolerance for rounding.

    Half of the digits of the largest magnitude must be right: this detects wrong results, not rounding.
    """
    op = OPS[case.op]
    wide = [widened(xp, x) for x in arrays]
    values = op.reference(xp, case, *wide)
    dtype = result_dtype(case)
    if op.exact or dtype.kind in "biu":
        return Expected(values, None)
    magnitude = values if op.magnitude is None else op.magnitude(xp, case, *wide)
    steps = finfo(dtype[0] if dtype.names else dtype)
    return Expected(values, float(steps.eps) ** 0.5 * float(xp.max(abs(magnitude))) + float(steps.smallest_subnormal))


def check(xp: Any, right: Expected, result: Any) -> str:
    """What is wrong with a result (in double precision, or integers); "" if it is right."""
    if result.shape != right.values.shape:
        return f"a result of shape {result.shape} instead of {right.values.shape}"
    if right.allowed is None:
        count = int(xp.count_nonzero(result != right.values))
        return f"{count} of {result.size} elements differ" if count else ""
    worst = float(xp.max(abs(result - right.values)))
    return "" if worst <= right.allowed else f"an error of {worst:.1e} where {right.allowed:.1e} is allowed"  # or NaN


def finfo(dtype: np.dtype) -> Any:
    if dtype.kind in "fc":
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)
