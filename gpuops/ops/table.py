"""Comparisons of arrays as reductions, and the strategies of all ops."""

from functools import cache

import numpy as np

from .. import plan
from ..definition.records import MEASURES, REDUCTIONS, ROWS, SEARCHES, WITH_INDEX
from ..definition.scans import SCANS
from ..plan import reductions
from ..plan.dtypes import INTEGERS, ITEMSIZE
from ..plan.reductions import OpStruct, Traits
from .arguments import check_choice

#: Comparisons of two arrays, by whether NaN is equal to NaN.
EQUALITY, CLOSENESS = Traits(product=True, unconverted=True), Traits(product=True)
COMPARISONS = {
    (op, nans): OpStruct(name, lambda val: np.dtype(np.uint32), traits, options)
    for op, nans, name, traits, options in (
        ("array_equal", False, "Equal", EQUALITY, ()), ("array_equal", True, "EqualNans", EQUALITY, ()),
        ("allclose", False, "Close", CLOSENESS, ("atol", "rtol")),
        ("allclose", True, "CloseNans", CLOSENESS, ("atol", "rtol")),
    )
}  # fmt: skip


@cache
def strategies() -> dict[str, tuple[str, ...]]:
    """The strategies of each op that has some, slowest first."""
    # Of reductions that do not end on the host, for comparison, and of those that no tutorial has.
    on_device = tuple(name for name in reductions.STRATEGIES if not name.endswith(reductions.ON_HOST))
    fast = tuple(name for name in on_device if name not in reductions.STEPS)
    names = (
        dict.fromkeys(("expand", "where"), tuple(plan.maps.STRATEGIES))
        | {op: fast if row.plain or row.form else tuple(reductions.STRATEGIES) for op, row in REDUCTIONS.items()}
        | {op: fast if row.plain else on_device for op, row in SEARCHES.items()}
        | dict.fromkeys((*MEASURES, *WITH_INDEX, "vector_norm"), fast)
        | {"logsumexp": on_device}
        | {op: plan.rows.strategies(row.row) for op, row in ROWS.items() if row.row}
        | {op: plan.scans.strategies(row.record.rules.floating) for op, row in SCANS.items()}
        | {"matmul": tuple(plan.products.STRATEGIES)}
    )
    return names | {"amax": names["max"], "amin": names["min"]}


def check_strategy(op: str, strategy: str | None) -> None:
    """``strategy`` must be None or the name of one of the op's strategies."""
    if strategy is not None:
        check_choice(op, "strategy", strategy, (None, *strategies().get(op, ())))


def is_exact(struct: OpStruct, x: str, val: str, size: int) -> bool:
    """Whether a mean or a variance is to be taken of exact sums of integers, or of their squares."""
    if x not in INTEGERS or val != "float64":
        return False
    if struct.exact == 3:  # squares have 128 bits
        return ITEMSIZE[x] == 4 and size <= 2**31
    bits = 8 * ITEMSIZE[x] * struct.exact
    return bits < 63 and size << bits <= 2**63
