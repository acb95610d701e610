"""The strategies of reductions, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable

from ..work import Plan
from .classic import ON_HOST, STEPS, plan_block
from .columns import plan_columns
from .problems import Problem, States
from .rows import plan_rows
from .small import has_room, is_small, plan_small

#: The strategies and what plans each.
STRATEGIES: dict[str, Callable[[Problem, str, int], Plan]] = {
    "rows": plan_rows,
    "columns": plan_columns,
    **dict.fromkeys(STEPS, plan_block),
    **dict.fromkeys((step + ON_HOST for step in STEPS), plan_block),
}


def choose(p: Problem) -> str:
    """The default strategy: threads go along whichever dims are contiguous in memory."""
    kept, reduced = p.kept.inner(0), p.reduced.inner(0)
    return "columns" if kept and (not reduced or kept < reduced) else "rows"


def plan(p: Problem, strategy: str | None, multiprocessors: int) -> Plan:
    """Plan a reduction."""
    if p.states & States.READ:  # few states, of any size
        return plan_small(p, choose(p), multiprocessors) if has_room(p) else plan_block(p, "shuffle", multiprocessors)
    if strategy is None and is_small(p):
        return plan_small(p, choose(p), multiprocessors)
    strategy = strategy or choose(p)
    return STRATEGIES[strategy](p, strategy, multiprocessors)
