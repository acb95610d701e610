"""The reductions: for each, what an element contributes, how states merge, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..plan.reductions import OpStruct, Traits
from ..plan.row_ops import MAX_EXP_SUM, RowOp
from .exact import Exact
from .expressions import (
    Expr,
    exp,
    is_nan,
    log,
    log1p,
    maximum,
    minimum,
    power,
    quotient,
    ratio,
    sqrt,
    squared,
    times,
    where,
)
from .reduction import Named, Reduction, counting
from .structs import Field, added, struct, summed

#: The index of no element: greater than all others.
NOWHERE = 2**63 - 1
COUNTING, PRODUCT, INDEXED = Traits(counting=True), Traits(product=True), Traits(indexed=True)
RAW = Traits(unconverted=True)


def without_nan(name: str, base: Reduction, struct: str = "", **changes: Any) -> Reduction:
    """The reduction of the elements that are not NaN; by a struct of that name, or one that is printed."""
    whole = base.masked or base
    made = whole.struct._replace(name=struct, traits=whole.struct.traits._replace(unconverted=True)) if struct else None
    return whole.but(name, **{"takes": lambda x: x == x, "plain": base, "struct": made} | changes)


def extreme(name: str, field: str, merge: str, ufunc: Any) -> Reduction:
    """The greatest element, or the least."""
    fields = {field: Field("W", "greatest" if merge == "minimum" else "least", merge)}
    return Reduction(
        name, fields, lambda x: x, lambda s: getattr(s, field), struct=struct(name.capitalize(), fields),
        ufunc=ufunc, identity=False, initial=True,
    )  # fmt: skip


TOTAL = {"total": added()}
SUM = Reduction(
    "sum", TOTAL, lambda x: x, lambda s: s.total, start=0, struct=summed("Sum", exact=1), ufunc=np.add,
    arithmetic=True, sums=Exact("x"),
)  # fmt: skip
PROD = Reduction(
    "prod", {"product": Field("A", 1, "multiply")}, lambda x: x, lambda s: s.product, ufunc=np.multiply, arithmetic=True
)
MAX, MIN = extreme("max", "most", "maximum", np.maximum), extreme("min", "least", "minimum", np.minimum)
# NumPy adds to 0, so that the mean of -0.0 is 0.
MEAN_OF_NONE = "Mean of empty slice"
MEAN = Reduction(
    "mean", TOTAL, lambda x: x, lambda s, n: quotient((s.total + 0).as_("D"), n),
    warning=(MEAN_OF_NONE, lambda n: n <= 0), struct=summed("Mean", options=("n", "inverse")),
    exact=(struct("IntegerMean", TOTAL, options=("n",), exact=1),), ufunc=np.add, floating=True,
    sums=Exact("x", "quotient"),
)  # fmt: skip
COUNTED = {"total": added(), "n": Field("I", 0, "add")}
MEAN.masked = MASKED_MEAN = counting(MEAN, struct=summed("MaskedMean", traits=COUNTING, numbered=True))
NANSUM, NANPROD = without_nan("nansum", SUM, "NanSum"), without_nan("nanprod", PROD)
# NaN is what is left where all are NaN; so it is the identity.
ALL_NAN = "All-NaN slice encountered"
NANMAX = MAX.but(
    "nanmax", fields={"most": Field("W", "nan", "fmax")}, warning=(ALL_NAN, lambda s: is_nan(s.most)), plain=MAX,
    struct=struct("NanMax", MAX.fields), ufunc=np.fmax,
)  # fmt: skip
NANMIN = MIN.but(
    "nanmin", fields={"least": Field("W", "nan", "fmin")}, warning=(ALL_NAN, lambda s: is_nan(s.least)), plain=MIN,
    struct=struct("NanMin", MIN.fields), ufunc=np.fmin,
)  # fmt: skip
NANMEAN = without_nan("nanmean", MEAN, "NanMean")


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
OF_VARIANCE: Any = {"of": "moments", "options": ("n", "ddof", "share")}
VARIANCE = summed("Var", **OF_VARIANCE)
MASKED_VARIANCE = summed("MaskedVar", traits=COUNTING, numbered=True, **OF_VARIANCE)
VAR = Reduction(
    "var", {"center": Field("A", 0), "squares": Field("R", 0), "n": Field("I", 0)},
    lambda x: {"center": x, "squares": 0, "n": 1}, spread, combine=merged,
    results=("RV",), form="deviations", warning=(FREEDOM, no_freedom), struct=VARIANCE, counted=MASKED_VARIANCE,
    exact=(
        OpStruct(
            "IntegerVar", lambda val: np.dtype([("sum", val), ("squares", f"u{val}")]), COUNTING, ("n", "ddof"), exact=2
        ),
        OpStruct(
            "LongVar", lambda val: np.dtype([("sum", val), ("low", "u8"), ("high", "u8")]), COUNTING, ("n", "ddof"),
            exact=3,
        ),
    ),
    floating=True, parts=True, casting="unsafe", sums=Exact("moments", "variance"),
)  # fmt: skip
DEVIATION = Exact("moments", "deviation")
STD = VAR.but("std", finish=lambda s, ddof: sqrt(spread(s, ddof)), root=True, sums=DEVIATION)
NANVAR = VAR.but(
    "nanvar", finish=strict, warning=(f"{FREEDOM}.", no_freedom), takes=lambda x: x == x, plain=VAR, exact=(),
    struct=MASKED_VARIANCE._replace(name="NanVar", traits=COUNTING._replace(unconverted=True)), counted=None,
    casting="same_kind",
)
NANSTD = NANVAR.but("nanstd", finish=lambda s, ddof: sqrt(strict(s, ddof)), plain=STD, root=True, sums=DEVIATION)
MEAN_VAR = VAR.but(  # (infinite elements leave no center, so that there is a sum for the mean)
    "mean_var", fields=VAR.fields | {"total": added()}, map=lambda x: {"center": x, "squares": 0, "n": 1, "total": x},
    combine=lambda a, b: merged(a, b) | {"total": a.total + b.total}, results=("V", "RV"),
    finish=lambda s, ddof: {"r0": quotient(s.total.as_("D"), s.n.as_("F")), "r1": spread(s, ddof)}, exact=(),
    struct=VARIANCE._replace(name="MeanVar"), counted=MASKED_VARIANCE._replace(name="MaskedMeanVar"),
    casting="same_kind", sums=Exact("moments", "variance", "quotient"),
)  # fmt: skip
SUM_OF_SQUARES = Reduction(
    "sum_of_squares", {"total": Field("R", 0, "add")}, lambda x: squared(x), lambda s: s.total, results=("RV",),
    ufunc=np.add, arithmetic=True, struct=summed("SumOfSquares", "square"), sums=Exact("square"),
)  # fmt: skip
NORM1 = SUM_OF_SQUARES.but(
    "norm1", map=lambda x: abs(x), ufunc=None, arithmetic=False, floating=True, struct=summed("Norm1", "abs"),
    sums=Exact("abs"),
)  # fmt: skip
NORM_INF = NORM1.but("norm_inf", struct=None, sums=None, fields={"total": Field("R", 0, "maximum")})
NORM_MINUS_INF = NORM_INF.but("norm_minus_inf", fields={"total": Field("R", "greatest", "minimum")}, identity=False)
NORM_P = NORM_INF.but(
    "norm_p", fields=NORM1.fields, map=lambda x, p: power(abs(x), p), finish=lambda s, p: power(s.total, 1.0 / p)
)
# Squares may overflow, or vanish: so those of elements times a small and a large number are added up beside them, and
# the sum that has kept its digits is taken. Source: J. Blue, "A portable Fortran program to find the Euclidean norm of
# a vector" (1978).
SQUARES = {name: Field("R", 0, "add") for name in ("total", "lowered", "raised")}
NORM2 = Reduction(
    "norm2", SQUARES,
    lambda x: {"total": squared(x), "lowered": squared(times(x, "small")), "raised": squared(times(x, "large"))},
    lambda s: within_reach(s, sqrt), results=("RV",), form="squares", struct=summed("Norm2", "square"), floating=True,
    sums=Exact("square", "root"),
)  # fmt: skip


def within_reach(s: Any, root: Callable[[Expr], Expr]) -> Expr:
    """The root of that sum of squares which has kept its digits."""
    small = where(s.total < "tiny", root(s.raised) * "small", root(s.total))
    return where(s.total == "greatest", root(s.lowered) * "large", small)


def hypotenuse(a: Expr, b: Expr) -> Expr:
    """The root of the sum of two squares; of zeros, NaN."""
    return maximum(a, b) * sqrt(squared(minimum(a, b) / maximum(a, b)) + 1.0)


RMS_NORM = NORM2.but(
    "rms_norm", sums=None,
    finish=lambda s, n, floor: hypotenuse(within_reach(s, lambda total: sqrt(quotient(total, n))), floor.as_("R")),
    results=("A",), each=lambda x, r0: x / r0, struct=None, row=RowOp("rms_norm", "RmsNormOp", "RmsNorm", "floor"),
)  # fmt: skip

# -------------------------------------------------------------------------------------------------- truth and numbers

TRUTH: dict[str, Any] = {"results": ("T",), "logical": True, "casting": "unsafe"}
SOME, EVERY = {"any": Field("B", 0, "either")}, {"all": Field("B", 1, "both")}
ANY = Reduction(
    "any", SOME, lambda x: x != 0, lambda s: s.any != 0, struct=struct("Any", SOME, RAW), ufunc=np.logical_or, **TRUTH
)
ALL = Reduction(
    "all", EVERY, lambda x: x != 0, lambda s: s.all != 0, struct=struct("All", EVERY, RAW), ufunc=np.logical_and,
    **TRUTH,
)
NUMBER = {"count": Field("I", 0, "add")}
COUNT = Reduction(
    "count_nonzero", NUMBER, lambda x: x != 0, lambda s: s.count, results=("I",),
    form="truths", struct=struct("CountNonzero", NUMBER, COUNTING), logical=True,
)  # fmt: skip
NORM0 = COUNT.but("norm0", results=("RV",), logical=False, floating=True)
EXTREMES = MAX.fields | MIN.fields
PTP = Reduction(
    "ptp", EXTREMES, lambda x: {"most": x, "least": x}, lambda s: s.most - s.least, struct=struct("Range", EXTREMES),
    ufunc=np.subtract, identity=False,
)  # fmt: skip
AVERAGE = Reduction(
    "average", {"total": added(), "weight": added()}, lambda x, y: {"total": x * y, "weight": y},
    lambda s: {"r0": ratio(s.total, s.weight), "r1": s.weight}, results=("V", "V"),
    refuses=(ZeroDivisionError, "Weights sum to zero, can't be normalized", lambda s: s.weight == 0),
    sums=Exact("weighted", "ratio", "itself"), struct=summed("Average", "weighted", PRODUCT), floating=True,
)  # fmt: skip
#: The product of two vectors.
DOT = Reduction(
    "dot", TOTAL, lambda x, y: x * y, lambda s: s.total + 0, struct=summed("Dot", "product", PRODUCT),
    sums=Exact("product"),
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


def search(name: str, identity: str, greatest: bool, by: str) -> Reduction:
    fields = {"value": Field("W", identity), "index": Field("I", NOWHERE)}
    return Reduction(
        name, fields, lambda x, index: {"value": x, "index": index}, lambda s: s.index, combine=first(greatest),
        results=("I",), form="greatest" if greatest else "least", struct=struct(by, fields, INDEXED), identity=False,
    )  # fmt: skip


NO_NUMBER = ValueError, ALL_NAN, lambda s: s.index == NOWHERE
ARGMAX, ARGMIN = search("argmax", "least", True, "ArgMax"), search("argmin", "greatest", False, "ArgMin")
NANARGMAX = without_nan("nanargmax", ARGMAX, "NanArgMax", refuses=NO_NUMBER)
NANARGMIN = without_nan("nanargmin", ARGMIN, "NanArgMin", refuses=NO_NUMBER)
MAX_WITH_INDEX, MIN_WITH_INDEX = (
    base.but(
        name, finish=lambda s: {"r0": s.value, "r1": s.index}, results=("V", "I"), ufunc=ufunc,
        struct=base.struct._replace(name=by),
    )
    for name, base, by, ufunc in (
        ("max_with_index", ARGMAX, "MaxWithIndex", np.maximum), ("min_with_index", ARGMIN, "MinWithIndex", np.minimum),
    )
)  # fmt: skip

# ------------------------------------------------------------------------------------------------ sums of exponentials


def lifted(part: Any, top: Expr) -> Expr:
    """A part's sum of exponentials, relative to the maximum of the whole. It includes the part's 1."""
    return where(part.max == "least", 0.0, (part.rest + 1.0) * exp(part.max - top))


def relative(a: Any, b: Any) -> Named:
    """The maximum of two parts, and their sum of exp(x - maximum) less 1 (Milakov & Gimelshein, 2018)."""
    top = maximum(a.max, b.max)
    first = (a.max == top) | is_nan(a.max)
    return {"max": top, "rest": where(first, a.rest, b.rest) + where(first, lifted(b, top), lifted(a, top))}


LOGSUMEXP = Reduction(
    "logsumexp", {"max": Field("A", "least"), "rest": Field("A", -1)},
    lambda x, scale: {"max": times(x, scale), "rest": (times(x, scale) != "least").as_("A") - 1},
    lambda s: where((s.max == "least") | (s.max == "greatest"), s.max, s.max + log1p(s.rest)), combine=relative,
    form="exponentials", struct=struct(
        "LogSumExp", {"max": Field("A", "least"), "rest": Field("A", -1)}, Traits(exponential=True), options=("scale",)
    ), floating=True,
)  # fmt: skip


EXPONENTIALS = RowOp("softmax", "SoftmaxOp", "Softmax", "scale", states=MAX_EXP_SUM, classic=True)
SOFTMAX = LOGSUMEXP.but(  # (with inf or NaN in a row, the rest is NaN)
    "softmax", finish=lambda s: {"r0": s.max, "r1": s.rest + where(s.max == "least", 0.0, s.max - s.max)},
    results=("A", "A"),
    each=lambda x, r0, r1, scale: exp(times(x, scale) - r0) / (r1 + 1.0), row=EXPONENTIALS,
)  # fmt: skip
LOG_SOFTMAX = SOFTMAX.but(  # (with inf in a row, every other element becomes -inf and inf itself NaN, as in SciPy)
    "log_softmax", each=lambda x, r0, r1, scale: times(x, scale) - r0 - where(r0 == "greatest", 0.0, log1p(r1)),
    left_out="least", row=EXPONENTIALS._replace(name="log_softmax", map="LogSoftmax", log=True),
)  # fmt: skip


def weighted(a: Any, b: Any) -> Named:
    """The same of sums with weights: those of elements that are the maximum are apart."""
    top, same = maximum(a.max, b.max), a.max == b.max
    first = (a.max == top) | is_nan(a.max)
    low_a, low_b = (
        where(part.max == "least", 0.0, (part.top + part.rest) * exp(part.max - top)) for part in (a, b)
    )  # fmt: skip
    apart = where(first, a.rest, b.rest) + where(first, low_b, low_a)
    return {
        "max": top, "top": where(same, a.top + b.top, where(first, a.top, b.top)),
        "rest": where(same, a.rest + b.rest, apart),
    }  # fmt: skip


def logarithm(s: Any) -> Named:
    """The logarithm of the magnitude of a sum, and its sign."""
    infinite, rest = s.max == "greatest", s.rest + (s.top - 1.0)
    total = where(infinite, s.top, s.top + s.rest)
    near = (rest > -0.5) & ~infinite
    value = where(s.max == "least", s.max, s.max + where(near, log1p(rest), log(abs(total))))
    sign = where(total > 0.0, 1.0, where(total < 0.0, -1.0, total))
    return {"r0": value, "r1": where(is_nan(value), value, sign)}


def alone(s: Any) -> Expr:
    """The logarithm without the sign: NaN for a negative sum."""
    found = logarithm(s)
    return where(found["r1"] < 0.0, "nan", found["r0"])


PARTS = {"max": Field("A", "least"), "top": Field("A", 0), "rest": Field("A", 0)}
WEIGHTED_LOGSUMEXP = Reduction(
    "weighted_logsumexp", PARTS,
    lambda x, y, scale: {
        "max": where((y == 0.0) | (times(x, scale) == "least"), "least", times(x, scale)),
        "top": where(times(x, scale) == "least", 0.0, y), "rest": y * 0.0,
    },
    alone, combine=weighted, form="exponentials", floating=True,
    struct=struct("WeightedLogSumExp", PARTS, PRODUCT, options=("scale",)),
)  # fmt: skip
SIGNED_LOGSUMEXP = WEIGHTED_LOGSUMEXP.but(
    "signed_logsumexp", finish=logarithm, results=("V", "V"),
    struct=struct("SignedLogSumExp", PARTS, PRODUCT, options=("scale",)),
)  # fmt: skip

# -------------------------------------------------------------------------------------------------- parts, on the host

#: Sums with the numbers of their elements; then, given means, sums of the distances from them and of their squares.
TOTALS, NUMBERS = MASKED_MEAN.but("totals", sums=None), NANMEAN.but("numbers", sums=None)
DEVIATIONS = Reduction(
    "deviations", {"rest": added(), "squares": Field("R", 0, "add")},
    lambda x, center: {"rest": x - center.as_("A"), "squares": squared(x - center.as_("A"))}, lambda s: s.squares,
    results=("RV",),
)  # fmt: skip
NANDEVIATIONS = without_nan("nandeviations", DEVIATIONS)
#: A norm of elements whose squares neither overflow nor vanish.
NORM_WITHIN = SUM_OF_SQUARES.but("norm_within", finish=lambda s: sqrt(s.total), sums=None)

# ----------------------------------------------------------------------------------------------------------- the tables


def by_name(*rows: Reduction) -> dict[str, Reduction]:
    return {row.name: row for row in rows}


REDUCTIONS = by_name(
    SUM, PROD, MAX, MIN, MEAN, NANSUM, NANPROD, NANMAX, NANMIN, NANMEAN, VAR, STD, NANVAR, NANSTD, ANY, ALL
)
#: Other reductions, which are not called as those are.
MEASURES = by_name(COUNT, PTP, SUM_OF_SQUARES, MEAN_VAR)
#: vector_norm by its order; None is any other.
NORMS = {2.0: NORM2, 1.0: NORM1, 0.0: NORM0, np.inf: NORM_INF, -np.inf: NORM_MINUS_INF, None: NORM_P}
#: Reductions to the index of an element; those of the elements themselves, with their indices.
SEARCHES = by_name(ARGMAX, ARGMIN, NANARGMAX, NANARGMIN)
WITH_INDEX = by_name(MAX_WITH_INDEX, MIN_WITH_INDEX)
#: Ops that give a result for each element.
ROWS = by_name(SOFTMAX, LOG_SOFTMAX, RMS_NORM)
#: The records by the structs that make their states.
STRUCTS = {
    struct.name: each
    for row in [*globals().values()][::-1] if isinstance(row, Reduction)
    for each in (row.masked, row) if each
    for struct in (each.struct, each.counted) if struct
}  # fmt: skip
