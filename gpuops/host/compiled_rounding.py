"""Rounding of exact sums, compiled by Numba: see `definition.exact`, whose functions serve where this is not sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ..definition import exact
from ..definition.exact import ABOVE, CLOSE, LEAST, MOST, SMALL, SMALLEST, Expansion
from .compiled_elements import alike, error_of_product, plus
from .compiled_exact import BLOCKS, KEEP, expansions, sum_of_row, word_of
from .numba_compiler import compiled

TURNED = 2**12  # elements of columns that are turned to rows, at most
SHORT, TILE = 16, 2**16  # elements of rows that are turned to columns, at most, and elements turned together
#: What becomes of sums.
QUOTIENT, ROOT = 1, 2
ENDS = {"itself": 0, "quotient": QUOTIENT, "root": ROOT}


@register_jitable
def near(s: Any, n: Any, end: Any) -> Any:
    """What becomes of a sum, in float64."""
    if end == QUOTIENT:
        return s / n
    return np.sqrt(s) if end == ROOT else s


@register_jitable
def close(s: Any, e: Any, r: Any, n: Any, end: Any) -> Any:
    """The same of an expansion, as a number, what is to be added to it, and a bound of the error of that."""
    if end == QUOTIENT:
        y, factor, divisor = s / n, n, n
    else:
        y = np.sqrt(s)
        factor, divisor = y, 2 * y
    p = y * factor
    u = (s - p) - error_of_product(y, factor, p)  # exact
    v = u + e
    t = v - u
    lost, w = abs((u - (v - t)) + (e - t)) + r, v / divisor
    exact = lost == 0 and (v == 0 or abs(v) >= LEAST) and w * divisor == v and error_of_product(w, divisor, v) == 0
    if exact and (end == QUOTIENT or v == 0):
        return y, w, 0.0
    return y, w, abs(w) * CLOSE + ((abs(u) + abs(e)) * CLOSE + lost * ABOVE) / divisor + SMALLEST


@register_jitable
def narrow(s: Any, e: Any, r: Any, n: Any, end: Any, out: Any, i: Any) -> Any:
    """A result of a dtype narrower than float64 at place i, and whether it is sure."""
    d = 2 * (abs(e) + r) + abs(s) * CLOSE
    out[i] = near(s - d, n, end)
    low = out[i]
    out[i] = near(s + d, n, end)
    if low == out[i]:
        return d == 0 or low != 0
    y = near(s, n, end)
    out[i] = y
    factor = n if end == QUOTIENT else y if end == ROOT else 1.0
    return e == 0 and r == 0 and y * factor == s and error_of_product(y, factor, s) == 0 and abs(s) >= LEAST  # a tie


@register_jitable
def double(s: Any, e: Any, r: Any, n: Any, end: Any, out: Any, i: Any) -> Any:
    """The same for float64."""
    if end == 0:
        y, w, d = s, e, r * ABOVE + abs(e) * 2.0**-52 if r > 0 else 0.0
    elif LEAST <= abs(s) <= MOST and r <= abs(s) * 2.0**-20:
        y, w, d = close(s, e, r, n, end)
    else:
        out[i] = 0.0
        return s == 0 and r == 0
    low, high = y + (w - d), y + (w + d)
    out[i] = high
    return low == high and (d == 0 or high != 0)


@register_jitable
def at(s: Any, e: Any, r: Any, n: Any, end: Any, out: Any, i: Any) -> Any:
    """The result of an expansion at place i, and whether it is sure."""
    if s - s != 0 or (end == QUOTIENT and n == 0):
        out[i] = near(s, n, end)
        return s - s != 0 or r == 0
    h = s + e
    t = h - s
    e = (s - (h - t)) + (e - t)
    s = h + 0.0  # (not -0.0)
    if s - s != 0:
        return False
    return double(s, e, r, n, end, out, i) if out.itemsize == 8 else narrow(s, e, r, n, end, out, i)


@compiled(error_model="numpy")
def each(s: Any, e: Any, r: Any, n: Any, end: Any, out: Any, sure: Any) -> Any:
    """The results of expansions, whether each is sure, and how many are. n: the number of elements of each or all."""
    step, total = np.uintp(n.size > 1), 0
    for i in range(np.uintp(0), np.uintp(s.size)):
        sure[i] = at(s[i], e[i], r[i], n[i * step], end, out, i)
        total += sure[i]
    return total


@register_jitable
def normal(s: Any, e: Any, r: Any) -> Any:
    """The same expansion, whose second term is what rounding the sum of both loses."""
    h = s + e
    t = h - s
    return h, (s - (h - t)) + (e - t), r


@register_jitable
def spread(values: Any, squares: Any, n: Any) -> Any:
    """As `exact.spread`, for elements that are real; with an infinite residue outside of the range."""
    s, e, r = normal(*values)
    a, b, d = normal(*squares)
    p, q = n * a, n * b
    total = (p, error_of_product(n, a, p), n * d)
    total = plus(plus(total, q), error_of_product(n, b, q))
    square, mixed, rest = s * s, 2 * s * e, e * e
    total = plus(plus(total, -square), -error_of_product(s, s, square))
    total = plus(plus(total, -mixed), -error_of_product(2 * s, e, mixed))
    total = plus(plus(total, -rest), -error_of_product(e, e, rest))
    inside = (s == 0 or SMALL <= square <= MOST) and (a == 0 or SMALL <= a <= MOST / n)
    more = total[2] + (2 * (abs(s) + abs(e)) + r) * r * ABOVE
    return normal(total[0], total[1], more if inside else np.inf)


@register_jitable
def variance_at(values: Any, squares: Any, n: Any, ddof: Any, root: Any, out: Any, i: Any) -> Any:
    """A variance or its root at place i, and whether it is sure."""
    s, e, r = spread(values, squares, n)
    for divisor in (n, n - ddof):
        if s == 0 and e == 0 and r == 0:
            break
        if not (divisor > 0 and LEAST <= s <= MOST and r <= s * 2.0**-20):
            out[i] = 0.0
            return False
        s, e, r = normal(*close(s, e, r, divisor, QUOTIENT))
    if root and (s != 0 or r != 0):
        s, e, r = close(s, e, r, 1.0, ROOT)
    return n > 0 and n - ddof > 0 and at(s, e, r, 1.0, 0, out, i)


@register_jitable
def ratio_at(x: Any, y: Any, out: Any, i: Any) -> Any:
    """A quotient of two sums at place i, and whether it is sure: as `exact.ratio`."""
    a, e, r = normal(*x)
    b, f, d = normal(*y)
    size, q = abs(b), a / b
    if not (SMALL <= size <= MOST and d <= 2.0**-20 * size):
        return False
    if a == 0 and e == 0 and r == 0:
        out[i] = 0.0 / b  # which may be -0.0
        return True
    if a != 0 and not (SMALL <= abs(a) <= MOST and SMALL <= abs(q) <= MOST):
        return False
    p, low = q * b, q * f
    rest = plus(plus((a, e, r), -p), -error_of_product(q, b, p))
    s, e, r = normal(*plus(plus(rest, -low), -error_of_product(q, f, low)))
    if s == 0 and e == 0 and r == 0 and d == 0:
        return at(q, 0.0, 0.0, 1.0, 0, out, i)
    second = s / b
    lost = (abs(e) + r + (abs(q) + abs(second)) * d + abs(second * f)) / size * ABOVE
    return at(q, second, lost + abs(second) * 2.0**-52 + 2.0**-1074, 1.0, 0, out, i)


@compiled(error_model="numpy")
def ratios(first: Any, second: Any, out: Any, sure: Any) -> Any:
    """Quotients of expansions, whether each is sure, and how many are."""
    total = 0
    for i in range(np.uintp(0), np.uintp(sure.size)):
        x, y = (first[0][i], first[1][i], first[2][i]), (second[0][i], second[1][i], second[2][i])
        sure[i] = ratio_at(x, y, out, i)
        total += sure[i]
    return total


@compiled(error_model="numpy")
def variances(first: Any, second: Any, n: Any, ddof: Any, root: Any, out: Any, sure: Any) -> Any:
    """Variances or their roots, given expansions, whether each is sure, and how many are; n as in `each`."""
    step, total = np.uintp(n.size > 1), 0
    for i in range(np.uintp(0), np.uintp(sure.size)):
        values, squares = (first[0][i], first[1][i], first[2][i]), (second[0][i], second[1][i], second[2][i])
        sure[i] = variance_at(values, squares, n[i * step], ddof, root, out, i)
        total += sure[i]
    return total


@compiled(error_model="numpy")
def variances_of_rows(x: Any, short: Any, lengths: Any, n: Any, ddof: Any, root: Any, means: Any, out: Any) -> Any:
    """Means and variances of rows that follow each other, if all are sure and finite; the others as in `of_rows`."""
    step, length, good, keep = np.uintp(n.size > 1), np.uintp(lengths[0]), True, np.int64(-1)
    size = (length, np.uintp(lengths[1]))
    for o in range(np.uintp(0), np.uintp(out.size)):
        values = sum_of_row((x, None), alike(o * length), keep, short, size)
        squares = sum_of_row((x, x), alike(o * length), keep, False, size)
        good &= variance_at(values, squares, n[o * step], ddof, root, out, o) and out[o] - out[o] == 0
        if means.size:
            good &= at(*values, n[o * step], QUOTIENT, means, o) and means[o] - means[o] == 0
    return good


@compiled(error_model="numpy")
def ratios_of_rows(given: Any, short: Any, lengths: Any, out: Any, weights: Any) -> Any:
    """Sums of products, divided by those of the second operand, and these; else as `of_rows`."""
    length, good, keep = np.uintp(lengths[0]), True, np.int64(-1)
    size = (length, np.uintp(lengths[1]))
    for o in range(np.uintp(0), np.uintp(out.size)):
        products = sum_of_row(given, alike(o * length), keep, False, size)
        others = sum_of_row((given[1], None), alike(o * length), keep, short, size)
        good &= ratio_at(products, others, out, o) and out[o] - out[o] == 0
        good &= at(*others, 1.0, 0, weights, o) and weights[o] - weights[o] == 0
    return good


@compiled(error_model="numpy")
def of_rows(given: Any, keep: Any, short: Any, lengths: Any, n: Any, first: Any, end: Any, out: Any) -> Any:
    """The results of rows that follow each other, of n elements and ``first``, if all are sure and finite. lengths: of
    rows and of blocks."""
    step, length, good = np.uintp(n.size > 1), np.uintp(lengths[0]), True
    for o in range(np.uintp(0), np.uintp(out.size)):
        s, e, r = plus(sum_of_row(given, alike(o * length), keep, short, (length, np.uintp(lengths[1]))), first)
        good &= at(s, e, r, n[o * step], end, out, o) and out[o] - out[o] == 0
    return good


def results(
    x: np.ndarray, y: np.ndarray | None, n: np.ndarray, sums: exact.Exact, dtype: np.dtype, first: float, ddof: float
) -> Sequence[Any] | None:
    """The results (outer, inner) of elements (outer, length, inner), of which n count, the others being 0; None if some
    are not finite or not sure. Of columns of more elements than `TURNED`: of one sum, and without a first element."""
    (outer, length, inner), (of, end, second) = x.shape, sums
    if x.size > TURNED and inner == 1 and 0 < length <= SHORT and not second and of in KEEP and first == 0:
        return of_short_rows(x, y, n, sums, dtype)
    if x.size > TURNED and not (inner == 1 and x.flags.c_contiguous):
        value, sure = ended(Expansion(*expansions(x, of, y)), n.reshape(outer, -1) if n.size > 1 else n, end, dtype)
        return (value,) if sure.all() and np.isfinite(value).all() else None
    words, others = turned_words(x), None if y is None else turned_words(y)
    made = np.empty((2 if second else 1, outer * inner), dtype)
    lengths, short = (length, BLOCKS[x.itemsize]), x.itemsize < 8
    if of == "moments":
        good = variances_of_rows(words, short, lengths, n, ddof, end == "deviation", made[:-1].reshape(-1), made[-1])
    elif of == "weighted":
        good = ratios_of_rows((words, others), short, lengths, made[0], made[1])
    else:
        given = words, words if of == "square" else others
        good = of_rows(given, KEEP[of], short and given[1] is None, lengths, n, first, ENDS[end], made[0])
    return [*made.reshape(-1, outer, inner)] if good else None


def of_short_rows(
    x: np.ndarray, y: np.ndarray | None, n: np.ndarray, sums: exact.Exact, dtype: np.dtype
) -> Sequence[Any] | None:
    """The same of many short rows, turned to columns: a row has less to do than its loops take to begin."""
    outer, length, _ = x.shape
    made, step = np.empty((outer, 1), dtype), TILE // length
    for i in range(0, outer, step):
        first, other = [None if each is None else columns_of(each[i : i + step]) for each in (x, y)]
        assert first is not None
        count = n[i : i + step].reshape(1, -1) if n.size > 1 else n
        value, sure = ended(Expansion(*expansions(first, sums.of, other)), count, sums.end, dtype)
        if not (sure.all() and np.isfinite(value).all()):
            return None
        made[i : i + step] = value.T
    return (made,)


def columns_of(rows: np.ndarray) -> np.ndarray:
    """Rows (outer, n, 1) as columns (1, n, outer)."""
    return np.ascontiguousarray(rows[:, :, 0].T)[None]


def turned_words(x: np.ndarray) -> np.ndarray:
    """Elements (outer, n, inner) as integers, those of one sum after the other."""
    x = x if x.shape[2] == 1 else x.transpose(0, 2, 1)
    return x.reshape(-1).view(word_of(x.dtype))


def ended(x: Expansion, n: Any, end: str, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """As `exact.ended`."""
    if dtype.kind != "f" or dtype.itemsize == 2:
        return exact.ended(x, n, end, dtype)
    shape = np.shape(x.s)
    s, e, r = (np.ascontiguousarray(term).reshape(-1) for term in x)
    count = np.asarray(n, np.float64)
    count = count.reshape(-1) if count.size == 1 else np.ascontiguousarray(np.broadcast_to(count, shape)).reshape(-1)
    made, sure = np.empty(s.size, dtype), np.empty(s.size, bool)
    if each(s, e, r, count, ENDS[end], made, sure) < s.size:
        left = ~sure
        some = Expansion(s[left], e[left], r[left])
        made[left], sure[left] = exact.ended(some, count[left] if count.size > 1 else count, end, dtype)
    return made.reshape(shape), sure.reshape(shape)


def variance(
    values: Sequence[Expansion], squares: Expansion, n: Any, ddof: float, strict: bool, root: bool, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """As `exact.rounded_variance`."""
    general = exact.rounded_variance
    if len(values) > 1 or dtype.kind != "f" or dtype.itemsize == 2:
        return general(values, squares, n, ddof, strict, root, dtype)
    shape, (first, second) = np.shape(squares.s), (flat(x) for x in (values[0], squares))
    count = np.ascontiguousarray(np.broadcast_to(np.asarray(n, np.float64), shape)).reshape(-1)
    made, sure = np.empty(count.size, dtype), np.empty(count.size, bool)
    if variances(first, second, count, ddof, root, made, sure) < count.size:
        left = ~sure
        x, y = (Expansion(*[term[left] for term in terms]) for terms in (first, second))
        made[left], sure[left] = general([x], y, count[left], ddof, strict, root, dtype)
    return made.reshape(shape), sure.reshape(shape)


def ratio(x: Expansion, y: Expansion, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """As `exact.rounded_ratio`."""
    if dtype.kind != "f" or dtype.itemsize == 2:
        return exact.rounded_ratio(x, y, dtype)
    shape, first, second = np.shape(x.s), flat(x), flat(y)
    made, sure = np.empty(first.s.size, dtype), np.empty(first.s.size, bool)
    if ratios(first, second, made, sure) < made.size:
        left = ~sure
        x, y = (Expansion(*[term[left] for term in terms]) for terms in (first, second))
        made[left], sure[left] = exact.rounded_ratio(x, y, dtype)
    return made.reshape(shape), sure.reshape(shape)


def flat(x: Expansion) -> Expansion:
    """Expansions in one dimension."""
    return Expansion(*[np.ascontiguousarray(term).reshape(-1) for term in x])
