"""The fuzz of exact sums: a quick one with each run, and what it expects."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tests import fuzz_exact_sums as fuzz
from tests.fuzz_exact_sums import Batch, mismatches, root, rounded
from tests.fuzz_numbers import FAMILIES, FORMS, Form
from tests.test_same_bits import needs_loops


@needs_loops
def test_short_rows_on_the_cpu(capsys):
    failed = fuzz.main(["--count", "8000", "--seed", "1"])
    printed = capsys.readouterr().out
    assert not failed, printed
    lines = printed.splitlines()
    assert len(lines) == len(fuzz.OPS) * len(FORMS)
    assert sum(int(line.split()[2]) for line in lines) == 8000 * len(fuzz.OPS)


@pytest.mark.parametrize("length", (3, 24))
@pytest.mark.parametrize("dtype", FORMS)
def test_short_rows_on_devices(device, dtype, length):
    for number, family in enumerate(FAMILIES):
        wrong = mismatches(Batch(2, number, dtype, family, 60, length), device.array, device.numpy)
        assert not wrong, wrong[0]


def test_other_sums_are_found_to_be_wrong(monkeypatch, capsys):
    """NumPy's, in each op and dtype."""
    plain = {"sum_of_squares": lambda x: np.sum(x * x, 1), "vector_norm": lambda x: np.linalg.vector_norm(x, axis=1)}
    for op in fuzz.OPS:
        monkeypatch.setitem(fuzz.OPS, op, plain.get(op) or partial(getattr(np, op, None), axis=1))
    assert fuzz.main(["--count", "4000"]) == 1
    lines = capsys.readouterr().out.splitlines()
    counts = lines[-len(fuzz.OPS) * len(FORMS) :]
    assert all(int(line.split()[4]) > 0 for line in counts), counts
    assert "Batch(seed=0, number=0, dtype='float16'" in lines[0]
    assert [line.split()[0] for line in lines[1:4]] == ["row", "got", "want"]


def assert_nearest(got: float, exact: Fraction, power: int, form: Form) -> None:
    """A number's power, for whose root got is given, lies between those of the midpoints beside got, ties to even."""
    found = form.dtype.type(got)
    assert float(found) == got
    above_all = Fraction(2) ** form.top
    ends = [found, np.nextafter(found, form.dtype.type(0)), np.nextafter(found, form.dtype.type(np.inf))]
    here, below, above = (above_all if np.isinf(v) else Fraction(float(v)) for v in ends)
    low, high = ((here + below) / 2) ** power, ((here + above) / 2) ** power
    even = found.view(f"u{found.itemsize}") % 2 == 0
    assert (low <= exact if even else low < exact) or found == 0
    assert (exact <= high if even else exact < high) or np.isinf(found)


@pytest.mark.parametrize("dtype", FORMS)
def test_what_is_expected_is_the_nearest_number(dtype):
    form, rng = FORMS[dtype], np.random.default_rng(4)
    for k in rng.integers(form.least - 20, form.top, 400).tolist():
        a, b = (int(v) for v in rng.integers(1, 2 ** rng.integers(1, 62, 2)))
        middle = (2 * a + 1) << max(0, form.precision - a.bit_length())
        two = Fraction(2) ** k
        for number, divisor in ((a, b), (a, 1), (middle, 1), (middle * b, b)):
            assert_nearest(rounded(number, divisor, k, form), Fraction(number, divisor) * two, 1, form)
            assert rounded(-number, divisor, k, form) == -rounded(number, divisor, k, form)
            assert_nearest(root(number, k, form), number * two * two, 2, form)
            assert_nearest(root(number * number, k, form), (number * two) ** 2, 2, form)
