"""One record per op: what Dask, warm-up, the CPU path, the docs and the tests know of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..plan import maps, products, reductions, rows
from ..plan.dtypes import INTEGERS, ITEMSIZE
from ..plan.reductions import Reduction
from .arguments import Casting


class ReductionOp(NamedTuple):
    """A reduction with NumPy's semantics."""

    name: str
    reduction: Reduction
    numpy: Callable[..., Any]  # what the CPU does
    ufunc: Any = None  # merges elements, if one does, and decides dtypes
    floating: bool = False  # whether the result is floating, float64 of integers, instead
    exponent: float | None = None  # if it is a power of a variance, which is real
    identity: bool = True  # whether an empty reduction has a value
    arithmetic: bool = False  # small integers and bools are summed as int64 or uint64
    logical: bool = False  # the result is bool, and elements count by their truth
    zero: bool = False  # NumPy's reduction begins with 0, so that the sum of -0 is 0
    typed: bool = True  # whether ``numpy`` takes a dtype to compute with
    casting: Casting = "same_kind"  # of the result to ``out``
    masked: Reduction | None = None  # instead, with a mask
    exact: Reduction | None = None  # instead, for integers whose sum is exact
    plain: str = ""  # NaN is left out: the op of elements that cannot be NaN


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
    """The state of variances: a center, sums of elements less that and of their squares, and the number of elements."""
    acc = reductions.accumulated(val)
    return np.dtype([("center", acc), ("sum", acc), ("squares", np.empty(0, acc).real.dtype), ("count", np.int64)])


REDUCTIONS = {
    row.name: row
    for row in (
        ReductionOp(
            "sum", Reduction("Sum", merge=np.add, exact=True), np.add.reduce, np.add, arithmetic=True, zero=True
        ),
        ReductionOp(
            "prod", Reduction("Prod", merge=np.multiply), np.multiply.reduce, np.multiply, arithmetic=True
        ),
        ReductionOp(
            "max", Reduction("Max", ordered, np.maximum), np.maximum.reduce, np.maximum, identity=False, typed=False
        ),
        ReductionOp(
            "min", Reduction("Min", ordered, np.minimum), np.minimum.reduce, np.minimum, identity=False, typed=False
        ),
        ReductionOp(
            "mean", Reduction("Mean", merge=np.add), np.mean, np.add, floating=True, casting="unsafe",
            masked=Reduction("MaskedMean", counted), exact=Reduction("IntegerMean", merge=np.add, exact=True),
        ),
        ReductionOp(
            "nansum", Reduction("NanSum", merge=np.add), np.nansum, np.add, arithmetic=True, zero=True, plain="sum"
        ),
        ReductionOp(
            "nanprod", Reduction("NanProd", merge=np.multiply), np.nanprod, np.multiply, arithmetic=True, plain="prod"
        ),
        ReductionOp(
            "nanmax", Reduction("NanMax", ordered, np.fmax), np.nanmax, np.fmax,
            identity=False, typed=False, plain="max",
        ),
        ReductionOp(
            "nanmin", Reduction("NanMin", ordered, np.fmin), np.nanmin, np.fmin,
            identity=False, typed=False, plain="min",
        ),
        ReductionOp("nanmean", Reduction("NanMean", counted), np.nanmean, np.add, floating=True, plain="mean"),
        *(
            ReductionOp(
                name, Reduction("NanVar" if plain else "Var", centered), function, floating=True, exponent=exponent,
                plain=plain, casting="same_kind" if plain else "unsafe",
            )
            for name, function, exponent, plain in (
                ("var", np.var, 1.0, ""), ("std", np.std, 0.5, ""),
                ("nanvar", np.nanvar, 1.0, "var"), ("nanstd", np.nanstd, 0.5, "std"),
            )
        ),
        ReductionOp(
            "any", Reduction("Any", boolean, np.bitwise_or), np.any, np.logical_or, logical=True, casting="unsafe"
        ),
        ReductionOp(
            "all", Reduction("All", boolean, np.bitwise_and), np.all, np.logical_and, logical=True, casting="unsafe"
        ),
    )
}  # fmt: skip
#: Reductions to the index of an element.
SEARCHES = {
    name: ReductionOp(name, Reduction(struct, indexed, second=reductions.POSITION), function)
    for name, struct, function in (("argmax", "ArgMax", np.argmax), ("argmin", "ArgMin", np.argmin))
}
DOT = Reduction("Dot", merge=np.add, second=reductions.FACTOR)

#: Strategies of reductions whose partial results NumPy does not merge, and of those that no tutorial has.
ON_DEVICE = tuple(name for name in reductions.STRATEGIES if not name.endswith(reductions.ON_HOST))
FAST = tuple(name for name in ON_DEVICE if name not in reductions.STEPS)
#: The strategies of each op that has some, slowest first.
STRATEGIES: dict[str, tuple[str, ...]] = (
    dict.fromkeys(("expand", "where"), tuple(maps.STRATEGIES))
    | {op: FAST if row.plain or row.exponent else tuple(reductions.STRATEGIES) for op, row in REDUCTIONS.items()}
    | dict.fromkeys((*SEARCHES, "logsumexp"), ON_DEVICE)
    | dict.fromkeys(rows.OPS, tuple(rows.STRATEGIES))
    | {"matmul": tuple(products.STRATEGIES)}
)


def is_exact(x: str, val: str, size: int) -> bool:
    """Whether a mean is to be taken of an exact sum of integers."""
    return x in INTEGERS and ITEMSIZE[x] <= 4 and val == "float64" and size < 2**31
