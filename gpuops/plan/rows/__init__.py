"""Planning ops that give a result for each element of a row."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import error
from ..access import PACK
from ..row_ops import RowOp
from ..work import Machine, Plan
from .classic import (
    WARP_COLS,
    WARPS,
    last_pass,
    plan_block,
    plan_block_shared,
    plan_grid_online,
    plan_naive,
    plan_two_pass,
    plan_warp,
    statistics_arg,
)
from .columns import columns_on_chip
from .on_chip import rows_on_chip, rows_on_grid
from .problems import SCALED_MAX, SHIFTED_EXP_SUM, Problem, problem
from .small import is_small, plan_small

__all__ = [
    "ON_CHIP", "SCALED_MAX", "SHIFTED_EXP_SUM", "STRATEGIES", "WARPS", "WARP_COLS", "Problem", "choose",
    "last_pass", "plan", "problem", "statistics_arg", "strategies",
]  # fmt: skip

LONG = 2**16  # packs of a row, of more than which the grid shares it


def along_rows(p: Problem) -> bool:
    """Whether threads go along the reduced dims: whichever are contiguous in memory."""
    kept, reduced = p.kept.inner(0), p.reduced.inner(0)
    return not kept or not reduced or reduced < kept


def plan(p: Problem, strategy: str | None, machine: Machine) -> Plan:
    """Plan a row op."""
    return STRATEGIES[strategy](p, strategy, machine) if strategy else choose(p, machine)


def choose(p: Problem, machine: Machine) -> Plan:
    """The plan for callers who name no strategy: one that holds the rows on chip, if there is room."""
    across = not along_rows(p)
    if p.counted:
        return plan_grid_online(p, "grid_online", machine)
    if is_small(p, across):
        return plan_small(p, across, machine)
    idle = p.rows * machine.cluster < machine.multiprocessors  # if each row has a cluster
    long = p.cols * p.sizes[0] > LONG * PACK and (p.width == 1 or idle)
    tries = ("columns",) if across else ("grid", "rows") if long else ("rows", "grid")
    for strategy in tries:
        if made := ON_CHIP[strategy](p, machine):
            return made
    return plan_grid_online(p, "grid_online", machine)


def plan_on_chip(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Rows on chip, or tiles of an outer axis."""
    if p.counted:
        raise error(ValueError, p.op.name, f"strategy {strategy!r} takes no mask")
    made = ON_CHIP[strategy](p, machine)
    if made is None:
        rule = f"strategy {strategy!r} does not hold rows of {p.cols} elements on this device's chip"
        raise error(ValueError, p.op.name, rule)
    return made


#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[[Problem, str, Machine], Plan]] = {
    "naive": plan_naive,
    "block_tree": plan_block,
    "block_coalesced": plan_block,
    "two_pass": plan_two_pass,
    "two_pass_host": plan_two_pass,
    "block_online": plan_block,
    "block_shared": plan_block_shared,
    **dict.fromkeys(WARPS, plan_warp),
    "grid_online": plan_grid_online,
    **dict.fromkeys(("grid", "columns", "rows"), plan_on_chip),
}
#: How those are planned that hold rows on chip: not at all, if there is no room.
ON_CHIP: dict[str, Callable[[Problem, Machine], Plan | None]] = {
    "rows": rows_on_chip, "grid": rows_on_grid, "columns": columns_on_chip,
}  # fmt: skip


def strategies(op: RowOp) -> tuple[str, ...]:
    """The names of an op's strategies; most of the classic kernels compute softmax alone."""
    return tuple([name for name in STRATEGIES if op.classic or name in ("grid_online", *ON_CHIP)])
