"""Compare exact sums with exact arithmetic, on many short rows that are hard to round.

``python -m tests.fuzz_exact_sums [--count N] [--seed S] [--backend cpu|gpu] [--processes P]`` compares N rows in each
op, prints how many that were by op and dtype, and each row with a wrong bit. It ends with 1 if there is one. The same
N and S give the same rows, with any number of processes.

The results that it expects are made here, in Python's integers, not by ``gpuops.definition``.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import gpuops
from tests.fuzz_numbers import FAMILIES, FORMS, Form, rows_of

OPS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: gpuops.sum(x, axis=1),
    "mean": lambda x: gpuops.mean(x, axis=1),
    "sum_of_squares": lambda x: gpuops.sum_of_squares(x, axis=1),
    "vector_norm": lambda x: gpuops.vector_norm(x, axis=1, ord=2),
    "var": lambda x: gpuops.var(x, axis=1),
}
#: Elements of a row and rows of a batch, in turns: their numbers, and that of families and dtypes, have no divisor in
#: common, so all combinations have their turn.
LENGTHS = (2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 12, 16, 17, 24, 33, 40, 64)
ROWS = (50, 7, 2000, 400, 1)


class Batch(NamedTuple):
    """Rows of one shape, family and dtype."""

    seed: int
    number: int
    dtype: str
    family: str
    rows: int
    length: int

    def elements(self) -> np.ndarray:
        rng = np.random.default_rng((self.seed, self.number))
        return rows_of(self.family, rng, (self.rows, self.length), FORMS[self.dtype])


class Mismatch(NamedTuple):
    """A result that is not the exact one, rounded."""

    op: str
    batch: Batch
    row: np.ndarray
    got: Any
    want: Any

    def __str__(self) -> str:
        row = ", ".join([float(v).hex() for v in self.row])
        return (
            f"{self.op} {self.batch}\n  row  [{row}]\n  got  {float(self.got).hex()}\n  want {float(self.want).hex()}"
        )


def batches(count: int, seed: int) -> Iterator[Batch]:
    """Batches of so many rows in all."""
    kinds = [(dtype, family) for family in FAMILIES for dtype in FORMS]
    number = 0
    while count > 0:
        rows = min(count, ROWS[number // len(kinds) % len(ROWS)])
        yield Batch(seed, number, *kinds[number % len(kinds)], rows, LENGTHS[number % len(LENGTHS)])
        count, number = count - rows, number + 1


# ---------------------------------------------------------------------------------------------------- exact arithmetic


def rounded(a: int, b: int, k: int, form: Form) -> float:
    """a / b * 2**k rounded once to a format, ties to even: for b > 0."""
    size, p = abs(a), form.precision
    if size == 0:
        return 0.0
    unit = max(size.bit_length() - b.bit_length() + k - p, form.least)  # of the last bit, or one bit less than that
    quotient, rest, divisor = divided(size, b, k - unit)
    if quotient >> p:
        unit += 1
        quotient, rest, divisor = divided(size, b, k - unit)
    quotient += 2 * rest > divisor or (2 * rest == divisor and quotient & 1)
    value = math.ldexp(quotient, unit) if quotient.bit_length() + unit <= form.top else math.inf
    return -value if a < 0 else value


def divided(a: int, b: int, shift: int) -> tuple[int, int, int]:
    """a * 2**shift / b: the quotient, the remainder and the divisor."""
    divisor = b << max(-shift, 0)
    return *divmod(a << max(shift, 0), divisor), divisor


def root(a: int, k: int, form: Form) -> float:
    """The square root of a, times 2**k, rounded once: that of 64 bits at least, and a bit that tells whether there are
    more."""
    shift = max(0, 64 - a.bit_length() // 2)
    found = math.isqrt(a << 2 * shift)
    return rounded(2 * found + (found * found != a << 2 * shift), 1, k - shift - 1, form)


def sums(x: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """For each row integers s, q and k: the elements add up to s * 2**k, their squares to q * 4**k."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    whole, exponent = np.ldexp(mantissa, 53).astype(np.int64), exponent.astype(np.int64) - 53
    least = exponent.min(axis=1)
    shifts = exponent - least[:, None]
    for integers, places, k in zip(whole.tolist(), shifts.tolist(), least.tolist(), strict=True):
        pairs = [*zip(integers, places, strict=True)]
        yield sum([m << e for m, e in pairs]), sum([m * m << 2 * e for m, e in pairs]), k


def expected(x: np.ndarray, form: Form) -> dict[str, np.ndarray]:
    """The results of rows by op."""
    n = x.shape[1]
    found = [
        (
            rounded(s, 1, k, form), rounded(s, n, k, form), rounded(q, 1, 2 * k, form), root(q, k, form),
            rounded(n * q - s * s, n * n, 2 * k, form),
        )
        for s, q, k in sums(x)
    ]  # fmt: skip
    return dict(zip(OPS, np.array(found).T.astype(form.dtype), strict=True))


# ---------------------------------------------------------------------------------------------------------- comparison


def mismatches(batch: Batch, to: Callable[[np.ndarray], Any], back: Callable[[Any], np.ndarray]) -> list[Mismatch]:
    """Results of a batch with a wrong bit. ``to`` and ``back`` copy arrays to where they are computed, and back."""
    x = batch.elements()
    there, found = to(x), []
    for op, want in expected(x, FORMS[batch.dtype]).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            got = back(OPS[op](there))
        integer = f"u{want.itemsize}"
        differ = np.flatnonzero(np.ascontiguousarray(got).view(integer) != np.ascontiguousarray(want).view(integer))
        found += [Mismatch(op, batch, x[i], got[i], want[i]) for i in differ]
    return found


def compared(batch: Batch, backend: str) -> tuple[Batch, list[Mismatch]]:
    """A batch and its mismatches with NumPy arrays, or with CuPy's."""
    if backend == "cpu":
        return batch, mismatches(batch, np.asarray, np.asarray)
    import cupy

    return batch, mismatches(batch, cupy.asarray, cupy.asnumpy)


def everywhere(count: int, seed: int, backend: str, processes: int) -> Iterable[tuple[Batch, list[Mismatch]]]:
    """The mismatches of all batches, as they come."""
    compare = partial(compared, backend=backend)
    if processes == 1:
        yield from map(compare, batches(count, seed))
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(compare, batches(count, seed), 4)


def main(arguments: list[str] | None = None) -> int:
    """Compare; returns 1 if there is a mismatch."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_exact_sums", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=100_000, help="rows, each of which all ops take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args(arguments)
    rows: Counter[str] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    for batch, found in everywhere(options.count, options.seed, options.backend, options.processes):
        rows[batch.dtype] += batch.rows
        for mismatch in found:
            wrong[mismatch.op, batch.dtype] += 1
            print(mismatch, flush=True)
    for dtype in FORMS:
        for op in OPS:
            print(f"{op:15} {dtype}: {rows[dtype]} rows, {wrong[op, dtype]} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
