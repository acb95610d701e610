"""Plans reductions: which kernel, how many threads per output, how many blocks share one, and how they finish it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .problems import (
    OpStruct,
    Problem,
    States,
    Traits,
    accumulated,
    fields,
    of_normal_form,
    positions,
    problem,
)

if TYPE_CHECKING:
    from .classic import ON_HOST as ON_HOST
    from .classic import STEPS as STEPS
    from .strategies import STRATEGIES as STRATEGIES
    from .strategies import choose as choose
    from .strategies import plan as plan

__all__ = [
    "ON_HOST", "STEPS", "STRATEGIES", "OpStruct", "Problem", "States", "Traits", "accumulated", "choose", "fields",
    "of_normal_form", "plan", "positions", "problem",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what plans reductions on first use: calls with NumPy arrays need none."""
    if name not in ("ON_HOST", "STEPS", "STRATEGIES", "choose", "plan"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import strategies

    found = globals()[name] = getattr(strategies, name)
    return found
