"""The reductions: for each, what an element contributes, how states merge, and what becomes of them."""

from __future__ import annotations

from typing import Any

from .expressions import Expr, is_nan, maximum, power, quotient, ratio, sqrt, squared, times, where
from .reduction import Field, Named, Reduction, added

#: The index of no element: greater than all others.
NOWHERE = 2**63 - 1


def without_nan(name: str, base: Reduction, **changes: Any) -> Reduction:
    """The reduction of the elements that are not NaN."""
    return base.but(name, takes=lambda x: x == x, **changes)


SUM = Reduction("sum", {"total": added()}, lambda x: x, lambda s: s.total, start=0)
PROD = Reduction("prod", {"product": Field("A", 1, "multiply")}, lambda x: x, lambda s: s.product)
MAX = Reduction("max", {"most": Field("W", "least", "maximum")}, lambda x: x, lambda s: s.most)
MIN = Reduction("min", {"least": Field("W", "greatest", "minimum")}, lambda x: x, lambda s: s.least)
MEAN = SUM.but(
    "mean", finish=lambda s, n: quotient(s.total.as_("D"), n), warning=("Mean of empty slice", lambda n: n <= 0)
)
NANSUM, NANPROD = without_nan("nansum", SUM), without_nan("nanprod", PROD)
# NaN is what is left where all are NaN; so it is the identity.
ALL_NAN = "All-NaN slice encountered"
NANMAX = MAX.but("nanmax", fields={"most": Field("W", "nan", "fmax")}, warning=(ALL_NAN, lambda s: is_nan(s.most)))
NANMIN = MIN.but("nanmin", fields={"least": Field("W", "nan", "fmin")}, warning=(ALL_NAN, lambda s: is_nan(s.least)))
NANMEAN = without_nan(
    "nanmean", MEAN, fields={"total": added(), "n": Field("I", 0, "add")}, map=lambda x: {"total": x, "n": 1},
    start=None, finish=lambda s: quotient((s.total + 0).as_("D"), s.n.as_("F")),
    warning=("Mean of empty slice", lambda s: s.n <= 0),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------- variances and norms


def merged(a: Any, b: Any) -> Named:
    """Two parts' mean, sum of squared distances from it, and number of elements (Chan, Golub & LeVeque, 1983)."""
    part = b.n.as_("F") / maximum(a.n + b.n, 1).as_("F")
    apart = b.center - a.center
    center = a.center + apart * part.as_("R").as_("A")
    squares = a.squares + b.squares + squared(apart) * (a.n.as_("F") * part).as_("R")
    return {  # (a part of no elements has no center: its distance may be infinite)
        "center": where(b.n == 0, a.center, where(a.n == 0, b.center, center)),
        "squares": where(b.n == 0, a.squares, where(a.n == 0, b.squares, squares)),
        "n": a.n + b.n,
    }


def spread(s: Any, ddof: Expr) -> Expr:
    """A variance. An infinite mean makes it NaN."""
    return (s.squares.as_("F") + abs(s.center).as_("F") * 0.0) / maximum(s.n.as_("F") - ddof, 0.0)


def strict(s: Any, ddof: Expr) -> Expr:
    """The same, but NaN without degrees of freedom."""
    return where(s.n.as_("F") - ddof <= 0.0, "nan", spread(s, ddof))


def no_freedom(s: Any, ddof: Expr) -> Expr:
    return s.n.as_("F") - ddof <= 0.0


FREEDOM = "Degrees of freedom <= 0 for slice"
VAR = Reduction(
    "var", {"center": Field("A", 0), "squares": Field("R", 0), "n": Field("I", 0)},
    lambda x: {"center": x, "squares": 0, "n": 1}, spread, combine=merged,
    results=("RV",), form="deviations", warning=(FREEDOM, no_freedom),
)  # fmt: skip
STD = VAR.but("std", finish=lambda s, ddof: sqrt(spread(s, ddof)))
NANVAR = without_nan("nanvar", VAR, finish=strict, warning=(f"{FREEDOM}.", no_freedom))
NANSTD = NANVAR.but("nanstd", finish=lambda s, ddof: sqrt(strict(s, ddof)))
MEAN_VAR = VAR.but(  # (infinite elements leave no center, so that there is a sum for the mean)
    "mean_var", fields=VAR.fields | {"total": added()}, map=lambda x: {"center": x, "squares": 0, "n": 1, "total": x},
    combine=lambda a, b: merged(a, b) | {"total": a.total + b.total}, results=("V", "RV"),
    finish=lambda s, ddof: {"r0": quotient(s.total.as_("D"), s.n.as_("F")), "r1": spread(s, ddof)},
)  # fmt: skip
SUM_OF_SQUARES = Reduction(
    "sum_of_squares", {"total": Field("R", 0, "add")}, lambda x: squared(x), lambda s: s.total, results=("RV",)
)
NORM1 = SUM_OF_SQUARES.but("norm1", map=lambda x: abs(x))
NORM_INF = NORM1.but("norm_inf", fields={"total": Field("R", 0, "maximum")})
NORM_MINUS_INF = NORM1.but("norm_minus_inf", fields={"total": Field("R", "greatest", "minimum")})
NORM_P = NORM1.but("norm_p", map=lambda x, p: power(abs(x), p), finish=lambda s, p: power(s.total, 1.0 / p))
# Squares may overflow, or vanish: so those of elements times a small and a large number are added up beside them, and
# the sum that has kept its digits is taken. Source: J. Blue, "A portable Fortran program to find the Euclidean norm of
# a vector" (1978).
NORM2 = Reduction(
    "norm2", {name: Field("R", 0, "add") for name in ("total", "lowered", "raised")},
    lambda x: {"total": squared(x), "lowered": squared(times(x, "small")), "raised": squared(times(x, "large"))},
    lambda s: where(
        s.total == "greatest", sqrt(s.lowered) * "large",
        where(s.total < "tiny", sqrt(s.raised) * "small", sqrt(s.total)),
    ),
    results=("RV",), form="squares",
)  # fmt: skip

# -------------------------------------------------------------------------------------------------- truth and numbers

ANY = Reduction("any", {"any": Field("B", 0, "either")}, lambda x: x != 0, lambda s: s.any != 0, results=("T",))
ALL = Reduction("all", {"all": Field("B", 1, "both")}, lambda x: x != 0, lambda s: s.all != 0, results=("T",))
COUNT = Reduction("count_nonzero", {"count": Field("I", 0, "add")}, lambda x: x != 0, lambda s: s.count, results=("I",))
NORM0 = COUNT.but("norm0", results=("RV",))
PTP = Reduction(
    "ptp", {"most": MAX.fields["most"], "least": MIN.fields["least"]}, lambda x: {"most": x, "least": x},
    lambda s: s.most - s.least,
)  # fmt: skip
AVERAGE = Reduction(
    "average", {"total": added(), "weight": added()}, lambda x, y: {"total": x * y, "weight": y},
    lambda s: {"r0": ratio(s.total, s.weight), "r1": s.weight}, results=("V", "V"),
    refuses=(ZeroDivisionError, "Weights sum to zero, can't be normalized", lambda s: s.weight == 0),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ searches


def first(greatest: bool) -> Any:
    """Of two elements the greater one, of equal ones the first; NaN is the greatest, and the least."""

    def combine(a: Any, b: Any) -> Named:
        ahead = (b.value > a.value if greatest else b.value < a.value) | (is_nan(b.value) & ~is_nan(a.value))
        same = (a.value == b.value) | (is_nan(a.value) & is_nan(b.value))
        taken = ahead & ~is_nan(a.value) | same & (b.index < a.index)
        return {name: where(taken, getattr(b, name), getattr(a, name)) for name in ("value", "index")}

    return combine


def search(name: str, identity: str, greatest: bool) -> Reduction:
    return Reduction(
        name, {"value": Field("W", identity), "index": Field("I", NOWHERE)},
        lambda x, index: {"value": x, "index": index}, lambda s: s.index, combine=first(greatest), results=("I",),
        form="greatest" if greatest else "least",
    )  # fmt: skip


NO_NUMBER = ValueError, ALL_NAN, lambda s: s.index == NOWHERE
ARGMAX, ARGMIN = search("argmax", "least", True), search("argmin", "greatest", False)
NANARGMAX, NANARGMIN = (
    without_nan(name, base, refuses=NO_NUMBER) for name, base in (("nanargmax", ARGMAX), ("nanargmin", ARGMIN))
)
MAX_WITH_INDEX, MIN_WITH_INDEX = (
    base.but(name, finish=lambda s: {"r0": s.value, "r1": s.index}, results=("V", "I"))
    for name, base in (("max_with_index", ARGMAX), ("min_with_index", ARGMIN))
)

# ------------------------------------------------------------------------------------------------ two passes, in blocks

#: Sums with the numbers of their elements; then, given means, sums of the distances from them and of their squares.
TOTALS = NANMEAN.but("totals", takes=None)
NUMBERS = NANMEAN.but("numbers")
DEVIATIONS = Reduction(
    "deviations", {"rest": added(), "squares": Field("R", 0, "add")},
    lambda x, center: {"rest": x - center, "squares": squared(x - center)}, lambda s: s.squares, results=("RV",),
)  # fmt: skip
NANDEVIATIONS = without_nan("nandeviations", DEVIATIONS)
