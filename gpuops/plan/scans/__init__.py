"""Planning scans."""

from __future__ import annotations

from collections.abc import Callable

from ..builder import Builder
from .ladder import OWN_ORDER, add_blelloch, add_hillis_steele, add_three_pass, add_warp
from .launch import add_tiles
from .problems import Problem, problem

__all__ = ["OWN_ORDER", "STRATEGIES", "Problem", "add", "problem", "strategies"]

#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[[Builder, Problem, str], None]] = {
    "hillis_steele": add_hillis_steele,
    "blelloch": add_blelloch,
    "warp": add_warp,
    "three_pass": add_three_pass,
    "look_back": add_tiles,
}


def add(builder: Builder, p: Problem, strategy: str | None) -> None:
    """Add a scan to a plan."""
    strategy = strategy or "look_back"
    STRATEGIES[strategy](builder, p, strategy)


def strategies(ordered: bool) -> tuple[str, ...]:
    """The names of a scan's strategies; if it is ``ordered`` in every dtype, those that merge in the tree's order."""
    return tuple([name for name in STRATEGIES if not (ordered and name in OWN_ORDER)])
