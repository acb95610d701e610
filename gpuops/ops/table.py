"""One record per op: what Dask, warm-up, the CPU path, the docs and the tests know of it."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .. import plan
from ..definition import records
from ..definition.reduction import Reduction as Definition
from ..plan import reductions
from ..plan.dtypes import INTEGERS, ITEMSIZE
from ..plan.reductions import FACTOR, Reduction
from .arguments import Casting, check_choice


class ReductionOp(NamedTuple):
    """A reduction with NumPy's semantics."""

    name: str
    define: Definition  # what it computes
    reduction: Reduction  # what computes it on a GPU
    ufunc: Any = None  # decides dtypes
    floating: bool = False  # whether the result is floating, float64 of integers, instead
    result: Callable[[np.dtype], np.dtype] | None = None  # its dtype, if not that in which NumPy would compute
    exponent: float | None = None  # if it is a power of a variance
    identity: bool = True  # whether an empty reduction has a value
    arithmetic: bool = False  # small integers and bools are summed as int64 or uint64
    logical: bool = False  # elements count by their truth
    zero: bool = False  # NumPy's reduction begins with 0, so that the sum of -0 is 0
    casting: Casting = "same_kind"  # of the result to ``out``
    masked: Reduction | None = None  # instead, with a mask
    exact: Reduction | None = None  # instead, for integers whose sums fit 64 bits
    plain: str = ""  # NaN is left out: the op of elements that cannot be NaN

    def beside(self, mask: Any) -> Reduction:
        """The reduction with a mask, or without if it is None."""
        return self.masked if self.masked and mask is not None else self.reduction


def boolean(val: str) -> np.dtype:
    """The state of logical reductions."""
    return np.dtype(np.uint32)


def ordered(val: str) -> np.dtype:
    """The state of maxima and minima: of four bytes at least."""
    acc = reductions.accumulated(val)
    return np.dtype(np.int32) if acc.itemsize < 4 else acc


def indexed(val: str) -> np.dtype:
    """The state of argmax and argmin."""
    return np.dtype([("value", ordered(val)), ("index", np.int64)])


def counted(val: str) -> np.dtype:
    """The state of masked means: a sum and the number of its elements."""
    return np.dtype([("total", reductions.accumulated(val)), ("count", np.int64)])


def centered(val: str) -> np.dtype:
    """The state of variances: a center, sums of squares of elements less that, and of these, and their number."""
    acc = reductions.accumulated(val)
    return np.dtype([("center", acc), ("squares", real(acc)), ("sum", acc), ("count", np.int64)])


def moments(val: str) -> np.dtype:
    """The state of variances of small integers: their sum and that of their squares."""
    return np.dtype([("sum", val), ("squares", f"u{val}")])


def centered_sums(val: str) -> int:
    """What a thread holds of them: it counts elements once for all outputs."""
    return centered(val).itemsize - 8


def centered_and_total(val: str) -> np.dtype:
    """The same, and the sum."""
    spread = centered(val)
    return np.dtype([(name, spread[name]) for name in spread.names or ()] + [("total", reductions.accumulated(val))])


def centered_sums_and_total(val: str) -> int:
    """What a thread holds of them."""
    return centered_and_total(val).itemsize - 8


def magnitude(val: str) -> np.dtype:
    """The state of sums of squares and of most norms."""
    return real(reductions.accumulated(val))


def ranges(val: str) -> np.dtype:
    """The state of ptp: a maximum and a minimum."""
    return np.dtype([("most", ordered(val)), ("least", ordered(val))])


def sums(*names: str) -> Callable[[str], np.dtype]:
    """The state of reductions that add up several things."""
    return lambda val: np.dtype([(name, reductions.accumulated(val)) for name in names])


def squares(val: str) -> np.dtype:
    """The state of Euclidean norms: sums of squares, also of elements times a small and a large number."""
    return np.dtype([(name, magnitude(val)) for name in ("sum", "lowered", "raised")])


def tally(val: str) -> np.dtype:
    """The state of counts."""
    return np.dtype(np.int64)


# Dtypes of results.


def truth(val: np.dtype) -> np.dtype:
    """That of any and all."""
    return np.dtype(bool)


def number(val: np.dtype) -> np.dtype:
    """That of counts and indices."""
    return np.dtype(np.int64)


def real(val: np.dtype) -> np.dtype:
    """That of variances and norms."""
    return np.empty(0, val).real.dtype


REDUCTIONS = {
    row.name: row
    for row in (
        ReductionOp("sum", records.SUM, Reduction("Sum", merge=np.add, exact=1), np.add, arithmetic=True, zero=True),
        ReductionOp("prod", records.PROD, Reduction("Prod", merge=np.multiply), np.multiply, arithmetic=True),
        ReductionOp("max", records.MAX, Reduction("Max", ordered, np.maximum), np.maximum, identity=False),
        ReductionOp("min", records.MIN, Reduction("Min", ordered, np.minimum), np.minimum, identity=False),
        ReductionOp(
            "mean", records.MEAN, Reduction("Mean", merge=np.add), np.add, floating=True, casting="unsafe",
            masked=Reduction("MaskedMean", counted, counts=True),
            exact=Reduction("IntegerMean", merge=np.add, exact=1),
        ),
        ReductionOp(
            "nansum", records.NANSUM, Reduction("NanSum", merge=np.add), np.add, arithmetic=True, zero=True, plain="sum"
        ),
        ReductionOp(
            "nanprod", records.NANPROD, Reduction("NanProd", merge=np.multiply), np.multiply, arithmetic=True,
            plain="prod",
        ),
        ReductionOp(
            "nanmax", records.NANMAX, Reduction("NanMax", ordered, np.fmax), np.fmax, identity=False, plain="max"
        ),
        ReductionOp(
            "nanmin", records.NANMIN, Reduction("NanMin", ordered, np.fmin), np.fmin, identity=False, plain="min"
        ),
        ReductionOp(
            "nanmean", records.NANMEAN, Reduction("NanMean", counted, counts=True), np.add, floating=True, plain="mean"
        ),
        *(
            ReductionOp(
                name, define, Reduction("Var", centered, held=centered_sums, busy=True, counts=True, divided=True),
                floating=True, result=real, exponent=exponent, casting="unsafe",
                masked=Reduction("MaskedVar", centered, busy=True, counts=True),
                exact=Reduction("IntegerVar", moments, exact=2, busy=True),
            )
            for name, define, exponent in (("var", records.VAR, 1.0), ("std", records.STD, 0.5))
        ),
        *(
            ReductionOp(
                name, define, Reduction("NanVar", centered, busy=True, counts=True), floating=True, result=real,
                exponent=exponent, plain=plain,
            )
            for name, define, exponent, plain in (
                ("nanvar", records.NANVAR, 1.0, "var"), ("nanstd", records.NANSTD, 0.5, "std"),
            )
        ),
        ReductionOp(
            "any", records.ANY, Reduction("Any", boolean, np.bitwise_or), np.logical_or, result=truth, logical=True,
            casting="unsafe",
        ),
        ReductionOp(
            "all", records.ALL, Reduction("All", boolean, np.bitwise_and), np.logical_and, result=truth, logical=True,
            casting="unsafe",
        ),
    )
}  # fmt: skip
#: Other reductions, which are not called as those are.
MEASURES = {
    row.name: row
    for row in (
        ReductionOp("count_nonzero", records.COUNT, Reduction("CountNonzero", tally), result=number, logical=True),
        ReductionOp("ptp", records.PTP, Reduction("Range", ranges), np.subtract, identity=False),
        ReductionOp(
            "sum_of_squares", records.SUM_OF_SQUARES, Reduction("SumOfSquares", magnitude), np.add, arithmetic=True,
            result=real,
        ),
        ReductionOp(
            "mean_var", records.MEAN_VAR,
            Reduction(
                "MeanVar", centered_and_total, held=centered_sums_and_total, busy=True, counts=True, divided=True
            ),
            floating=True, exponent=1.0, masked=Reduction("MaskedMeanVar", centered_and_total, busy=True, counts=True),
        ),
    )
}  # fmt: skip
#: vector_norm by its order; None is any other.
NORMS = {
    order: ReductionOp("vector_norm", define, Reduction(struct, state), floating=True, identity=identity, result=real)
    for order, define, struct, state, identity in (
        (2.0, records.NORM2, "Norm2", squares, True), (1.0, records.NORM1, "Norm1", magnitude, True),
        (0.0, records.NORM0, "CountNonzero", tally, True), (np.inf, records.NORM_INF, "NormInf", magnitude, True),
        (-np.inf, records.NORM_MINUS_INF, "NormMinusInf", magnitude, False),
        (None, records.NORM_P, "NormP", magnitude, True),
    )
}  # fmt: skip


def search(struct: str) -> Reduction:
    """A reduction that takes elements with their indices."""
    return Reduction(struct, indexed, second=reductions.POSITION, busy=True)


#: Reductions to the index of an element; those of the elements themselves, with their indices.
SEARCHES = {
    name: ReductionOp(name, define, search(struct), plain=plain)
    for name, define, struct, plain in (
        ("argmax", records.ARGMAX, "ArgMax", ""), ("argmin", records.ARGMIN, "ArgMin", ""),
        ("nanargmax", records.NANARGMAX, "NanArgMax", "argmax"),
        ("nanargmin", records.NANARGMIN, "NanArgMin", "argmin"),
    )
}  # fmt: skip
WITH_INDEX = {
    f"{name}_with_index": ReductionOp(name, define, search(struct))
    for name, define, struct in (
        ("max", records.MAX_WITH_INDEX, "MaxWithIndex"), ("min", records.MIN_WITH_INDEX, "MinWithIndex"),
    )
}  # fmt: skip
#: Reductions of two arrays; comparisons by whether NaN is equal to NaN.
AVERAGE = ReductionOp("average", records.AVERAGE, Reduction("Average", sums("total", "weight"), second=FACTOR))
COMPARISONS = {
    (name, nans): Reduction(struct, boolean, np.bitwise_and, second=FACTOR)
    for name, nans, struct in (
        ("array_equal", False, "Equal"), ("array_equal", True, "EqualNans"),
        ("allclose", False, "Close"), ("allclose", True, "CloseNans"),
    )
}  # fmt: skip
DOT = Reduction("Dot", merge=np.add, second=FACTOR)

#: Strategies of reductions whose partial results NumPy does not merge, and of those that no tutorial has.
ON_DEVICE = tuple(name for name in reductions.STRATEGIES if not name.endswith(reductions.ON_HOST))
FAST = tuple(name for name in ON_DEVICE if name not in reductions.STEPS)


@cache
def strategies() -> dict[str, tuple[str, ...]]:
    """The strategies of each op that has some, slowest first."""
    names = (
        dict.fromkeys(("expand", "where"), tuple(plan.maps.STRATEGIES))
        | {op: FAST if row.plain or row.exponent else tuple(reductions.STRATEGIES) for op, row in REDUCTIONS.items()}
        | {op: FAST if row.plain else ON_DEVICE for op, row in SEARCHES.items()}
        | dict.fromkeys((*MEASURES, *WITH_INDEX, "vector_norm"), FAST)
        | {"logsumexp": ON_DEVICE}
        | dict.fromkeys(plan.rows.OPS, tuple(plan.rows.STRATEGIES))
        | {"matmul": tuple(plan.products.STRATEGIES)}
    )
    return names | {"amax": names["max"], "amin": names["min"]}


def check_strategy(op: str, strategy: str | None) -> None:
    """``strategy`` must be None or the name of one of the op's strategies."""
    if strategy is not None:
        check_choice(op, "strategy", strategy, (None, *strategies().get(op, ())))


def is_exact(record: ReductionOp, x: str, val: str, size: int) -> bool:
    """Whether a mean or a variance is to be taken of exact sums of integers, or of their squares."""
    if x not in INTEGERS or val != "float64":
        return False
    bits = 8 * ITEMSIZE[x] * (2 if record.exponent else 1)
    return bits < 63 and size << bits <= 2**63
