"""Inputs on which sums go wrong, with their exact sums.

cases(dtype, rng) yields (name, array, sum): arrays of float16, bfloat16, float32 or float64, of at most 2**20 elements,
all finite, and the exact real sum, a Fraction. rounded(x, dtype) rounds a Fraction to nearest, ties to even. What NaN,
infinities and the sign of zero become is left to callers.
"""

import math
from fractions import Fraction

import numpy as np

DTYPES = ("float16", "float32", "float64")


def form(dtype):
    """Bits of precision, exponent of the least subnormal, and exponent that values stay below (|x| < 2**top)."""
    if np.dtype(dtype).name == "bfloat16":  # of ml_dtypes, which np.finfo does not know
        return 8, -133, 128
    info = np.finfo(dtype)
    return info.nmant + 1, int(info.minexp) - info.nmant, int(info.maxexp)


def exact(x):
    """The exact sum of at most 2**25 finite numbers, a Fraction: of the halves of their mantissas, by exponent."""
    mantissa, exponent = np.frexp(np.asarray(x, "f8").ravel())
    whole = np.ldexp(mantissa, 53).astype("i8")
    exponents, where = np.unique(exponent, return_inverse=True)
    high, low = (np.bincount(where, half, exponents.size) for half in (whole >> 27, whole & (2**27 - 1)))  # below 2**53
    total = Fraction(0)
    for e, above, below in zip(exponents.tolist(), high.tolist(), low.tolist(), strict=True):
        total += ((int(above) << 27) + int(below)) * Fraction(2) ** (e - 53)
    return total


def rounded(x, dtype):
    """The number of `dtype` nearest to the Fraction x, ties to even, infinite past the greatest; a scalar of it."""
    precision, least, top = form(dtype)
    scalar = np.dtype(dtype).type
    size = abs(Fraction(x))
    if size == 0:
        return scalar(0)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent  # now 2**exponent <= size < 2**(exponent + 1)
    ulp = max(exponent + 1 - precision, least)
    steps = round(size / Fraction(2) ** ulp)  # round is to even
    value = math.inf if steps * Fraction(2) ** ulp >= Fraction(2) ** top else math.ldexp(steps, ulp)
    return scalar(value if x > 0 else -value)


def cases(dtype, rng):
    """Yields (name, array, exact sum)."""
    dtype = np.dtype(dtype)
    precision, least, top = form(dtype)

    def power(e):
        return np.ldexp(1.0, e)

    def signs(n):
        return rng.choice([-1.0, 1.0], n)

    def exponents(n, low, high):  # random mantissas, exponents uniform in [low, high)
        return signs(n) * np.ldexp(1 + rng.random(n), rng.integers(low, high, n))

    def cancelling(x, *more):  # x, its negative and what remains, shuffled
        return rng.permutation(np.concatenate([x, -x, np.array(more, "f8")]))

    def placed(n, *values):  # zeros but for these
        x = np.zeros(n)
        x[rng.choice(n, len(values), replace=False)] = values
        return x

    wide = exponents(5000, least, top - 15)
    half = power(-precision)  # half of the distance from 1 to the next number
    tiny, small, most = power(least), power(least + precision - 1), 2 * (power(top - 1) - power(top - 1 - precision))
    made = {
        "empty": np.zeros(0),
        "one": np.array([1.5]),
        "least subnormal": np.array([tiny]),
        "normal": rng.standard_normal(1000),
        "normal, long": rng.standard_normal(2**20) * (1 if dtype.itemsize > 2 else 0.01),
        "uniform": rng.random(4097),
        "far from zero": 1000 + rng.standard_normal(1023),
        "sparse": rng.standard_normal(10000) * (rng.random(10000) < 0.01),
        "integers": rng.integers(-1000, 1000, 30000).astype("f8"),
        "all exponents": wide,
        "exponents fall": wide[np.argsort(-abs(wide))],
        "exponents rise": wide[np.argsort(abs(wide))],
        "cancels": cancelling(rng.standard_normal(3000)),
        "cancels, all exponents": cancelling(wide),
        "cancels but for the least": cancelling(wide, tiny),
        "cancels but for minus the least": cancelling(exponents(2**17, least, top - 20), -tiny),
        "cancels but for a third": cancelling(wide[:3000], 1 / 3),
        "subnormals": signs(5000) * rng.integers(0, 2 ** (precision - 1), 5000) * tiny,
        "subnormals to a normal": np.full(64, small - tiny),
        "normals to a subnormal": np.array([1.5 * small, -small, -tiny]),
        "partial sums overflow": cancelling(np.full(500, most), 1.0),
        "partial sums overflow, in order": np.concatenate([np.full(64, most), np.full(63, -most)]),
        "greatest": np.array([most, power(top - precision - 1) - power(top - 2 * precision)]),
        "just overflows": np.array([most, power(top - precision - 1)]),
        "overflows": np.full(3, most),
        "overflows below": np.full(3, -most),
    }
    for name, last in (("even", 0.0), ("odd", 2 * half)):  # ties whose lower neighbour is even or odd
        base = 1 + last
        made |= {
            f"tie, {name}": placed(100, base, half),
            f"tie, {name}, negative": placed(100, -base, -half),
            f"tie, {name}, of many": np.concatenate([[base], np.full(64, half / 64)]),
            f"above a tie, {name}": placed(1000, base, half, tiny),
            f"below a tie, {name}": placed(1000, base, half, -tiny),
            f"above a tie, {name}, below a negative": placed(1000, -base, -half, tiny),
            f"tie, {name}, after cancelling": cancelling(rng.standard_normal(500), base, half),
            f"above a tie, {name}, after cancelling": cancelling(exponents(500, least, 0), base, half, tiny),
        }
    steps = np.array([half / 2**k for k in range(1, min(400, -least - precision))])
    made["staircase to a tie"] = np.concatenate([[1.0], steps])  # the last is missing
    made["staircase onto a tie"] = np.concatenate([[1.0], steps, steps[-1:]])
    made["staircase past a tie"] = np.concatenate([[1.0], steps, steps[-1:], [tiny]])
    for name, x in made.items():
        with np.errstate(under="ignore"):
            array = x.astype(dtype)
        assert np.isfinite(array).all(), name
        yield name, array, exact(array)


if __name__ == "__main__":
    for dtype in DTYPES:
        count, plain = 0, 0
        for seed in range(3):
            for name, array, total in cases(dtype, np.random.default_rng(seed)):
                assert total == sum(map(Fraction, array.tolist()), Fraction(0)) or array.size > 5000, (dtype, name)
                got = rounded(total, dtype)
                try:
                    want = math.fsum(array.tolist())
                except OverflowError:  # of fsum's partial sums or of the sum
                    want = float(rounded(total, "f8"))
                assert float(rounded(total, "f8")) == want, (dtype, name, rounded(total, "f8"), want)
                if total == want:  # conversion of a float64 rounds once
                    with np.errstate(over="ignore"):
                        assert got == np.dtype(dtype).type(want), (dtype, name, got, want)
                with np.errstate(all="ignore"):
                    plain += bool(np.sum(array) != got)
                count += 1
        print(f"{dtype}: {count} cases as math.fsum; np.sum is wrong in {plain}")
