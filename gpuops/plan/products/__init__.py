"""Plans matrix products: which rung or cuBLAS, which tiles, how each operand's panels get to shared memory."""

from __future__ import annotations

from collections.abc import Callable

from ..work import Machine, Plan
from .cublas import BLAS, LIMIT, Gemm, copies, direct, plan_cublas
from .pipelined import GROUP, LEAST, TILES, WAYS, Choice, Tile, best, plan_pipelined, tiled, way, ways_to_share
from .problems import Layout, Matrix, Problem, problem, single
from .rungs import plan_blocktile_1d, plan_blocktile_2d, plan_elements, plan_shared, plan_warptile

__all__ = [
    "BLAS", "GROUP", "LEAST", "STRATEGIES", "TILES", "WAYS", "Choice", "Gemm", "Layout", "Matrix", "Problem", "Tile",
    "best", "choose", "plan", "problem", "tiled", "way", "ways_to_share",
]  # fmt: skip

LARGE, DEEP = 500_000, 1024  # the least cycles and k for which cuBLAS is faster if both operands are contiguous along k
MIDDLE = range(50_000, 4_000_000)  # cycles for which cuBLAS is faster if operands move element by element


def plan(p: Problem, strategy: str | None, machine: Machine) -> Plan:
    """Plan a matrix product."""
    strategy = strategy or choose(p, machine)
    return STRATEGIES[strategy](p, strategy, machine)


def choose(p: Problem, machine: Machine) -> str:
    """The default strategy."""
    # (With alpha 0, BLAS does not read a and b: NaN would be lost.)
    blas = p.val in BLAS and machine.blas and any(p.alpha) and max(p.m, p.n, p.k, p.number) < LIMIT
    blas = blas and sum(nbytes for _, nbytes in copies(p).values()) < machine.memory // 2
    choice = best(p, machine) if single(p) else None
    if choice is None:
        return "cublas" if blas else "warptile"
    return "cublas" if blas and behind(p, choice) else "pipelined"


def behind(p: Problem, choice: Choice) -> bool:
    """Whether cuBLAS is faster than ``pipelined``: without copies, for products of medium size whose operands move
    element by element, and for large ones of operands that are contiguous along k (a @ b.T)."""
    ways = {way(p.a, p.m, p.k), way(p.b.turned, p.n, p.k)}
    one_by_one = bool(ways & {"across", "deep"}) and int(choice.cycles) in MIDDLE
    rows_with_rows = ways == {"turned"} and p.k >= DEEP and choice.cycles >= LARGE
    return (one_by_one or rows_with_rows) and direct(p)


#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[[Problem, str, Machine], Plan]] = {
    "naive": plan_elements,
    "coalesced": plan_elements,
    "shared": plan_shared,
    "blocktile_1d": plan_blocktile_1d,
    "blocktile_2d": plan_blocktile_2d,
    "vectorized": plan_blocktile_2d,
    "warptile": plan_warptile,
    "cublas": plan_cublas,
    "pipelined": plan_pipelined,
}
