"""Exact sums of few elements, for which expansions would take longer than all else: see `sums`.

Either ``math.fsum`` adds up the elements of a vector, or NumPy adds up those of a narrower dtype in float64, whose
error is bounded in advance; or infinities and NaN make the result. Where this does not tell the rounded result there is
none, nor where there is an error to report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..definition.exact import CLOSE, LEAST, MOST, SMALLEST, converted, two_product
from ..definition.task import Task
from .exact_engines import converts

VECTOR = 128  # elements up to which fsum is faster than others
FEW = 2**15  # elements of which NumPy makes others beside them
UNIT = 2.0**-53 * 1.01  # that of an addition, and what bounds of it lose
DOUBLE, HALF = np.dtype(np.float64), np.dtype(np.float16)
TINY, HUGE = 2.0**-100, 2.0**120  # sums of squares of float32 that tell magnitudes
EXACT = 2**13  # numbers of float16 whose sums float64 holds: multiples of 2**-24 below 2**16


def quiet(run: Callable[..., Any], *given: Any) -> Any:
    """A result, if there is no floating-point error to report."""
    try:
        with np.errstate(all="raise"):
            return run(*given)
    except FloatingPointError:
        return None


def of_vector(a: np.ndarray, task: Task) -> Any:
    """The result of all elements, or None."""
    bound, n, dtype = task.bound, a.size, task.bound.result
    of, end, _ = bound.sums or ("", "", "")
    if of == "square" and dtype == DOUBLE:
        wide = a.astype(DOUBLE, copy=False)
        x = [v for part in two_product(wide, wide) for v in part.ravel().tolist()]
    else:
        x = a.ravel().tolist()
        x = [*map(abs, x)] if of == "abs" else [v * v for v in x] if of == "square" else x
    try:
        s = math.fsum(x) + 0.0  # (not -0.0)
    except (OverflowError, ValueError):
        return None
    if not math.isfinite(s):
        return None
    if dtype != DOUBLE:
        return between(s, 0.0, end, n, dtype)
    if end == "itself" or s == 0:
        return dtype.type(s)
    if not LEAST <= abs(s) <= MOST:
        return None
    y, e = near(s, end, n), math.fsum([*x, -s])
    found = corrected(s, e, y, *((n, n) if end == "quotient" else (y, 2 * y)))
    return found if found is None else dtype.type(found)


def near(s: float, end: str, n: int) -> float:
    """What becomes of a sum, in float64."""
    return s / n if end == "quotient" else math.sqrt(max(s, 0.0)) if end == "root" else s


def between(s: float, d: float, end: str, n: int, dtype: np.dtype) -> Any:
    """The result of a sum that is s but for d, in a dtype narrower than float64; None if that is not sure."""
    d += abs(s) * CLOSE
    low, high = (narrowed(near(v, end, n), dtype) for v in (s - d, s + d))
    return high if low == high and (high or not d) else None


def corrected(s: float, e: float, y: float, factor: float, divisor: float) -> float | None:
    """The quotient or root y of s, of s + e instead, rounded once, for an e that is itself rounded; None if that is not
    sure."""
    p, low = two_product(y, float(factor))
    rest = (s - p) - low  # exact
    w = (rest + e) / divisor
    d = abs(w) * CLOSE + (abs(rest) + abs(e)) * CLOSE / divisor + SMALLEST
    low, high = y + (w - d), y + (w + d)
    return high if low == high else None


def of_not_finite(arrays: Sequence[Any], task: Task) -> list[Any] | None:
    """The results of all elements, some of which are infinite or NaN: the sum of these. None if all are finite, or if
    there is an error to report."""
    (a, y, taken), bound, n = arrays, task.bound, arrays[0].size
    if a.dtype.kind != "f" or y is not None or bound.takes is not None or task.initial is not None or converts(bound):
        return None
    found = ~np.isfinite(a) if taken is None else taken & ~np.isfinite(a)
    if len(task.axis) < a.ndim or not found.any():
        return None
    of, _, second = bound.sums or ("", "", "")
    s = np.add.reduce(a[found] if of == "x" else np.abs(a[found]), dtype=DOUBLE)
    n = n if taken is None else np.count_nonzero(taken)
    if of == "moments" and (np.isinf(s) or n <= task.options["ddof"]):
        return None
    return [bound.result.type(s)] * (2 if second else 1)


def narrowed(x: Any, dtype: np.dtype) -> Any:
    """float64 in another dtype, rounded once."""
    return dtype.type(x) if dtype.kind == "f" else converted(x, dtype)[()]


def of_narrow(arrays: Sequence[Any], task: Task) -> list[Any] | None:
    """The results of elements of a narrower dtype than float64, with dims kept, or None; of sums without a mask or an
    initial value that become one, a scalar."""
    bound, initial = task.bound, task.initial
    if bound.result == DOUBLE or bound.val.kind == "c" or converts(bound) or (initial == 0 and np.signbit(initial)):
        return None
    of, *_ = bound.sums or ("",)
    return {"moments": moments, "weighted": ratios}.get(of, sums)(given_of(arrays, task), task)


class Given(NamedTuple):
    """Elements and what is beside them, 0 where they do not take part; which do, None if all; and their numbers."""

    a: np.ndarray
    y: Any
    taken: np.ndarray | None
    n: Any


def given_of(arrays: Sequence[Any], task: Task) -> Given:
    """What a call is given."""
    a, y, taken = arrays
    if task.bound.takes is not None and np.count_nonzero(found := np.equal(a, a)) < a.size:
        taken = found if taken is None else found & taken
    if taken is None:
        return Given(a, y, None, math.prod([a.shape[d] for d in task.axis]))
    y = y if y is None else np.where(taken, y, y.dtype.type(0))
    return Given(np.where(taken, a, a.dtype.type(0)), y, taken, np.add.reduce(taken, task.axis, DOUBLE, keepdims=True))


def sums(given: Given, task: Task) -> list[Any] | None:
    """What becomes of sums."""
    a, y, _, n = given
    (of, end, _), dtype, initial = task.bound.sums or ("", "", ""), task.bound.result, task.initial
    exact = of == "x" and a.dtype == HALF and a.size <= EXACT and initial is None
    if of == "product":
        a = np.multiply(a, y, dtype=DOUBLE)
    elif of != "x":
        a = np.abs(a) if of == "abs" else np.square(a, dtype=DOUBLE)
    whole = initial is None and isinstance(n, int) and n == a.size
    s: Any = np.add.reduce(a, None, DOUBLE) if whole else np.add.reduce(a, task.axis, DOUBLE, keepdims=True)
    d: Any = 0.0 if exact else (magnitudes(a) if of in ("x", "product") else s) * (a.size * UNIT)
    if initial is not None:
        s = s + float(initial)
        d = d + np.abs(s) * UNIT
    if whole:
        found = between(float(s), float(d), end, n, dtype) if math.isfinite(s) else None
        return found if found is None else [found]
    if end == "quotient":
        s, d = s / n, d / n
    elif end == "root":
        s, d = np.sqrt(s), d / np.maximum(np.sqrt(s), LEAST)
    if end != "itself":
        d = d + np.abs(s) * CLOSE
    return narrowed_alike([(s - d, s + d)], dtype)


def narrowed_alike(ends: list[tuple[Any, Any]], dtype: np.dtype) -> list[Any] | None:
    """Results between two numbers each, if these are rounded to the same one."""
    made = [(narrowed(low, dtype), narrowed(high, dtype)) for low, high in ends]
    for (low, high), (least, most) in zip(made, ends, strict=True):
        if not ((low == high) & ((high != 0) | (least == most))).all():
            return None
    return [high for _, high in made]


def ratios(given: Given, task: Task) -> list[Any] | None:
    """Sums of products divided by those of the second operand, and these."""
    a, y, *_ = given
    products = np.multiply(a, y, dtype=DOUBLE)
    s, t = (np.add.reduce(each, task.axis, DOUBLE, keepdims=True) for each in (products, y))
    d, e = (magnitudes(each) * (a.size * UNIT) for each in (products, y))
    if not (np.abs(t) > 2 * e).all() or not s.all():  # (zeros have signs)
        return None
    q = s / t
    apart = (d + np.abs(q) * e) / (np.abs(t) - e) * (1 + CLOSE) + np.abs(q) * CLOSE
    return narrowed_alike([(q - apart, q + apart), (t - e, t + e)], task.bound.result)


def moments(given: Given, task: Task) -> list[Any] | None:
    """Variances or their roots, perhaps after the means. Distances d from a mean m that is about right add up to almost
    0: the sum of the squares of those from the mean is that of d**2, less the square of the sum of d, divided by n."""
    (a, _, taken, n), (_, end, second), axis = given, task.bound.sums or ("", "", ""), task.axis
    freedom = n - task.options["ddof"]
    if not np.all(freedom > 0) or not np.all(n > 0):
        return None
    x = a.astype(DOUBLE)
    total = np.add.reduce(x, axis, keepdims=True)
    x -= total / n
    if taken is not None:
        x[~taken] = 0.0
    rest = np.add.reduce(x, axis, keepdims=True)
    squares = np.add.reduce(np.square(x, out=x), axis, keepdims=True)
    most = (a.size + 10) * UNIT
    d = squares * most + np.square(np.abs(rest) + most * np.sqrt(n * squares)) / n
    low, high = (squares - d) / freedom, (squares + d) / freedom
    if end == "deviation":
        low, high = np.sqrt(np.maximum(low, 0.0)) * (1 - CLOSE), np.sqrt(high) * (1 + CLOSE)
    ends = [(low, high)]
    if second:
        d = magnitudes(a) * most
        ends.insert(0, ((total - d) / n, (total + d) / n))
    return narrowed_alike(ends, task.bound.result)


def magnitudes(a: np.ndarray) -> float:
    """A bound of the sum of all magnitudes: by that of squares, which BLAS adds up faster. (Those may underflow.)"""
    if a.dtype == np.float32:
        x = a.reshape(-1)
        squares = float(np.dot(x, x))
        if TINY < squares < HUGE:
            return math.sqrt(a.size * squares) * 1.01
    return float(np.add.reduce(np.abs(a), None, DOUBLE))
