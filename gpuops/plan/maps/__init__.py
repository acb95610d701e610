"""Plans maps: ``expand``, ``where``, and every other pass from broadcasting operands to one output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import error
from ..geometry import Shape
from ..work import Launch, Plan
from .elements import is_small, launch_elements
from .elementwise import plan_elementwise
from .launch import WAYS
from .packs import WALKS, launch_packs
from .problems import Arg, Problem, argument, condition_type, element_types, in_halves, pieces, problem
from .stepped import affordable, along, launch_stepped, launch_together, together, worthwhile
from .tiled import COLS, across, launch_tiled

__all__ = [
    "STRATEGIES", "WALKS", "WAYS", "Arg", "Problem", "argument", "choose", "condition_type", "element_types",
    "plan",
]  # fmt: skip


def plan(
    map_: str, shape: Shape, out: Arg, operands: tuple[Arg, ...], strategy: str | None = None, option: float = 1.0
) -> Plan:
    """Plan ``out[i] = map_(*operands[i])`` over ``shape``."""
    p = problem(map_, shape, *in_halves(map_, out, operands), option)
    strategy = strategy or choose(p)
    return Plan(strategy, STRATEGIES[strategy](p), in_place=True)


def choose(p: Problem) -> str:
    """The default strategy."""
    if is_small(p):
        return "collapsed"
    if len(p.axes.sizes) == 1:  # no other dim to repeat along, or to be contiguous along
        return "vectorized"
    if p.cols >= COLS and across(p) is not None:
        return "tiled"
    if affordable(p) < 2:
        return "vectorized"
    dim = along(p)
    pays = together(p) is not None if dim is None else worthwhile(p, dim) > 1
    return "stepped" if pays else "vectorized"


def plan_vectorized(p: Problem) -> tuple[Launch, ...]:
    """Packs of 16 bytes."""
    return tuple(map(launch_packs, pieces(p)))


def plan_collapsed(p: Problem) -> tuple[Launch, ...]:
    """Single elements, over the same collapsed dims."""
    return tuple(map(launch_elements, pieces(p)))


def plan_stepped(p: Problem) -> tuple[Launch, ...]:
    """Packs of 16 bytes, many of them along a dim in which operands repeat."""
    if along(p) is None and together(p) is None:
        rule = "takes an operand that repeats along an outer dim, and whole packs of 16 bytes, of a row or of many rows"
        raise error(ValueError, p.map_.lower(), f"strategy 'stepped' {rule}")
    return tuple([launch for q in pieces(p) for launch in in_steps(q)])


def in_steps(p: Problem) -> list[Launch]:
    """The launches for a piece: rows that are not whole packs are taken together."""
    if (dim := along(p)) is not None:
        return [launch_stepped(p, dim)]
    if (found := together(p)) is None:
        return [launch_packs(p)]
    whole, rest = found
    return [launch_together(whole), *([launch_packs(rest)] if rest else [])]


def plan_tiled(p: Problem) -> tuple[Launch, ...]:
    """Tiles through shared memory."""
    if across(p) is None:
        rule = "takes an operand that is contiguous along another dim than the result"
        raise error(ValueError, p.map_.lower(), f"strategy 'tiled' {rule}")
    return tuple(launch_packs(q) if (dim := across(q)) is None else launch_tiled(q, dim) for q in pieces(p))


#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[[Problem], tuple[Any, ...]]] = {
    "elementwise": plan_elementwise,
    "collapsed": plan_collapsed,
    "vectorized": plan_vectorized,
    "stepped": plan_stepped,
    "tiled": plan_tiled,
}
