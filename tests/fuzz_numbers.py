"""Rows of finite numbers whose sums, means, squares, norms or variances are hard to round, for `fuzz_exact_sums`.

A family is a function of a random generator, a shape (rows, n) and a format. Its numbers are float64; `rows_of` makes
numbers of the dtype of them, and shuffles each row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Shape = tuple[int, int]


class Form(NamedTuple):
    """A binary format: integers of at most ``precision`` bits times powers of two from 2**least on, below 2**top."""

    dtype: np.dtype
    precision: int
    least: int
    top: int


def form_of(dtype: str) -> Form:
    info = np.finfo(dtype)
    return Form(np.dtype(dtype), info.nmant + 1, int(info.minexp) - info.nmant, int(info.maxexp))


FORMS = {name: form_of(name) for name in ("float16", "float32", "float64")}


def rows_of(family: str, rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Rows of a family, in the dtype, in any order."""
    most = float(np.finfo(form.dtype).max)
    with np.errstate(all="ignore"):
        x = np.clip(FAMILIES[family](rng, shape, form), -most, most).astype(form.dtype)
    assert np.isfinite(x).all() and x.shape == shape, family
    return rng.permuted(x, axis=1)


# --------------------------------------------------------------------------------------------------------------- parts


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.choice((-1.0, 1.0), shape)


def mantissas(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Integers of all bits, of either sign; in some rows only the first bit or two, or the first and the last, are
    set."""
    p = form.precision
    masks = np.array([-1, -1, 1 << p - 1, 3 << p - 2, 1 << p - 1 | 1])
    return signs(rng, shape) * (rng.integers(1 << p - 1, 1 << p, shape) & rng.choice(masks, (shape[0], 1)))


def exponents(rng: np.random.Generator, rows: int, form: Form, room: int) -> np.ndarray:
    """One for each row, (rows, 1), so that integers below 2**room are numbers of the format."""
    return rng.integers(form.least, form.top - room + 1, (rows, 1))


def trace(rng: np.random.Generator, e: np.ndarray, form: Form) -> np.ndarray:
    """For each row 0, or a power of two of either sign below 2**e: any, or the least of all."""
    lower = rng.integers(form.least, np.maximum(e, form.least + 1))
    lower = np.where(rng.random(e.shape) < 0.3, form.least, lower)
    return rng.integers(-1, 2, e.shape) * np.where(lower < e, np.ldexp(1.0, lower), 0.0)


def pairs(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Numbers that cancel; the last of an odd number of them is a zero of either sign."""
    half = shape[1] // 2
    x = windows(rng, (shape[0], half), form)
    x = np.where(rng.random((shape[0], 1)) < 0.3, 0.0, x)  # (in some rows there are none)
    return np.concatenate([x, -x, signs(rng, (shape[0], shape[1] % 2)) * 0.0], axis=1)


def joined(rng: np.random.Generator, shape: Shape, form: Form, *columns: np.ndarray) -> np.ndarray:
    """These columns, as many as fit, and pairs that cancel."""
    given = np.concatenate(columns, axis=1)[:, : shape[1]]
    return np.concatenate([given, pairs(rng, (shape[0], shape[1] - given.shape[1]), form)], axis=1)


# ------------------------------------------------------------------------------------------------------------ families


def wide(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """All exponents."""
    low, high = form.least, form.top - form.precision - 7
    return np.ldexp(mantissas(rng, shape, form), rng.integers(low, max(high, low + 1), shape))


def windows(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Exponents of a window, which is wider in some rows than in others."""
    p = form.precision
    width = rng.choice((1, 3, p // 2, p, 2 * p, 3 * p + 5), (shape[0], 1))
    place = exponents(rng, shape[0], form, p) + (rng.random(shape) * width).astype(int)
    return np.ldexp(mantissas(rng, shape, form), np.minimum(place, form.top - p - 1))


def cancelling(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Pairs that cancel, but in some rows for the last bit of one."""
    x = pairs(rng, shape, form).astype(form.dtype)
    moved = np.nextafter(x[:, :1], form.dtype.type(0))
    x[:, :1] = np.where(rng.random((shape[0], 1)) < 0.7, moved, x[:, :1])
    return x.astype(np.float64)


def residues(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Numbers, and less their rounded sum."""
    x = windows(rng, shape, form).astype(form.dtype).astype(np.float64)
    x[:, -1] = -np.nan_to_num(x[:, :-1].sum(axis=1))  # (of infinite partial sums)
    return x


def middles(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """The sum, or the mean, is a midpoint between two numbers, or so but for a trace."""
    rows, n = shape
    p = form.precision
    middle = 2 * rng.integers(1 << p - 1, 1 << p, (rows, 1)) + 1
    middle *= np.where(rng.random((rows, 1)) < 0.5, n if n < 2**7 else 1, 1)
    split, e = rng.integers(8, p, (rows, 1)), exponents(rng, rows, form, p + 8)
    upper, lower = middle >> split, middle & (1 << split) - 1
    sign = signs(rng, (rows, 1))
    return joined(rng, shape, form, np.ldexp(sign * upper, e + split), np.ldexp(sign * lower, e), trace(rng, e, form))


def middles_of_squares(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """A square of at most p bits, half of its last bit as a square or two, a trace."""
    rows, p = shape[0], form.precision
    root = rng.integers(1, 1 << p // 2, (rows, 1))
    half = np.frexp(root.astype(float) ** 2)[1] - p - 1
    e = rng.integers(form.least // 2, form.top // 2 - p // 2 + 1, (rows, 1))
    small = np.ldexp(1.0, e + half // 2)  # its square, or twice that, is 2**half
    x = [signs(rng, (rows, 1)) * np.ldexp(root, e), small, np.where(half % 2, small, 0.0), trace(rng, e, form)]
    return np.concatenate([*x, np.zeros(shape)], axis=1)[:, : shape[1]]


def middles_of_norms(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """3k and 4k for an odd 5k of p + 1 bits, a trace."""
    rows, p = shape[0], form.precision
    k = rng.integers(2**p // 10 + 1, 2**p // 6, (rows, 1)) * 2 + 1
    e = exponents(rng, rows, form, p + 1)
    x = [signs(rng, (rows, 1)) * np.ldexp(factor * k, e) for factor in (3.0, 4.0)]
    return np.concatenate([*x, trace(rng, e, form), np.zeros(shape)], axis=1)[:, : shape[1]]


def middles_of_variances(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Two values alternate. Their variance is a quarter of the square of their distance, of p + 1 bits."""
    rows, p = shape[0], form.precision
    least, most = np.ceil(2 ** (p / 2)), np.floor(2 ** ((p + 1) / 2))
    distance = rng.integers(int(least) // 2, int(most) // 2, (rows, 1)) * 2 + 1
    first = np.where(rng.random((rows, 1)) < 0.5, rng.integers(-(1 << p - 1), 1 << p - 1, (rows, 1)), 0)
    e = rng.integers(form.least // 2, form.top // 2 - p + 1, (rows, 1))
    x = np.ldexp(1.0 * (first + distance * (np.arange(shape[1]) % 2)), e)
    x[:, :1] += np.where(first == 0, trace(rng, e, form), 0.0)
    return x


def subnormals(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Multiples of the least number, up to normal ones."""
    bits = rng.choice((1, 2, form.precision - 1, form.precision), (shape[0], 1))
    return np.ldexp(1.0 * rng.integers(-(1 << bits), (1 << bits) + 1, shape), form.least)


def low_squares(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Small integers times one power of two, whose squares add up to a subnormal number or little more."""
    bits = rng.integers(1, form.precision // 2 + 1, (shape[0], 1))
    e = rng.integers((form.least - form.precision) // 2 - 1, form.least // 2 + 2, (shape[0], 1))
    return np.ldexp(1.0 * rng.integers(-(1 << bits), (1 << bits) + 1, shape), e)


def huge(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """The greatest number, half of its last bit, a trace, others that cancel; or any great ones of both signs."""
    rows, p = shape[0], form.precision
    e = np.full((rows, 1), form.top - p - 1)
    most = np.full((rows, 1), float(np.finfo(form.dtype).max))
    sign, half = signs(rng, (rows, 1)), np.ldexp(rng.choice((0.0, 1.0, 1.0, 2.0), (rows, 1)), e)
    others = most * np.tile((1.0, -1.0), max(shape[1] - 3, 0) // 2)
    edge = np.concatenate([sign * most, sign * half, trace(rng, e, form), others, np.zeros(shape)], axis=1)
    great = np.ldexp(mantissas(rng, shape, form), form.top - p - rng.integers(0, 3, shape))
    return np.where(rng.random((rows, 1)) < 0.5, edge[:, : shape[1]], great)


def zeros(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Zeros of both signs, in some rows all negative, or with few others."""
    least = np.ldexp(1.0, form.least)
    few = np.array([-0.0, 0.0, 1.0, -1.0, least, -least])
    return few[rng.integers(0, 6, shape) % rng.choice((1, 2, 6), (shape[0], 1))]


def flat(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """One number, or two neighbours, or a number that is far greater than what is added to it."""
    x = windows(rng, (shape[0], 1), form).astype(form.dtype)
    other = np.nextafter(x, form.dtype.type(np.inf))
    near = np.where(rng.random(shape) < rng.choice((0.0, 0.1, 0.5), (shape[0], 1)), other, x).astype(np.float64)
    small = rng.integers(-8, 9, shape) * np.ldexp(1.0, -rng.integers(4, form.precision, shape))
    far = x.astype(np.float64) * (1 + small)
    return np.where(rng.random((shape[0], 1)) < 0.7, near, far)


def integers(rng: np.random.Generator, shape: Shape, form: Form) -> np.ndarray:
    """Small ones."""
    return rng.integers(-9, 10, shape) * rng.choice((1.0, 0.5, 3.0), (shape[0], 1))


FAMILIES: dict[str, Callable[[np.random.Generator, Shape, Form], np.ndarray]] = {
    family.__name__: family for family in (
        wide, windows, cancelling, residues, middles, middles_of_squares, middles_of_norms, middles_of_variances,
        subnormals, low_squares, huge, zeros, flat, integers,
    )
}  # fmt: skip
