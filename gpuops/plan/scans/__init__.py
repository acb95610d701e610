"""Planning scans."""

from __future__ import annotations

from collections.abc import Callable

from ..builder import Builder
from .launch import add_tiles
from .problems import Problem, problem

__all__ = ["STRATEGIES", "Problem", "add", "problem"]

#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[[Builder, Problem, str], None]] = {"look_back": add_tiles}


def add(builder: Builder, p: Problem, strategy: str | None) -> None:
    """Add a scan to a plan."""
    strategy = strategy or "look_back"
    STRATEGIES[strategy](builder, p, strategy)
