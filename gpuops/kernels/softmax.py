"""Planning softmax, log_softmax and logsumexp."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from ..errors import error
from ..plan import (
    CTYPES,
    ITEMSIZE,
    MAX_GRID_X,
    Axes,
    Kernel,
    Launch,
    Operand,
    Plan,
    Shape,
    contiguous_strides,
    index_type,
    normalize,
)
from . import broadcast, reduce

BLOCK = 256
WARP_COLS = 1024  # the longest row that a warp holds in registers: 32 elements a lane
BLOCK_COLS = 65536  # the longest row that a block is given: beyond, its passes no longer hit in the caches
BLOCKS_PER_SM = 2  # fewer rows than this leave the machine idle when each is one block's


class Problem(NamedTuple):
    """A softmax in normal form, over ``reduced`` for each of ``kept``."""

    op: str  # "softmax" or "log_softmax"
    x: str  # dtype names: of the elements, of the arithmetic, of the result
    val: str
    out: str
    kept: Axes  # operands x, mask, out
    reduced: Axes  # operands x, mask, out
    offsets: Shape  # bytes from the first elements of x, mask and out to where the walk starts
    pointers: Shape  # addresses of x, mask and out modulo 16
    masked: bool
    scale: float

    @property
    def rows(self) -> int:
        return self.kept.size

    @property
    def cols(self) -> int:
        return self.reduced.size


@lru_cache(maxsize=4096)
def problem(
    op: str, x: str, val: str, out: str, shape: Shape, axis: Shape, strides: tuple[Shape, Shape, Shape],
    pointers: Shape, masked: bool, scale: float,
) -> Problem:  # fmt: skip
    """The normal form of a softmax of ``shape`` over ``axis``, with the strides of x, mask and out over the shape."""
    kept_dims = [d for d in range(len(shape)) if d not in axis]
    kept, moved_kept = normalize(pick(shape, kept_dims, strides))
    reduced, moved_reduced = normalize(pick(shape, axis, strides))
    sizes = (ITEMSIZE[x], 1, ITEMSIZE[out])
    offsets = tuple((k + r) * n for k, r, n in zip(moved_kept, moved_reduced, sizes, strict=True))
    return Problem(op, x, val, out, kept, reduced, offsets, pointers, masked, scale)


def pick(shape: Shape, dims, strides: tuple[Shape, ...]) -> Axes:
    """Axes over some dims of the shape."""
    return Axes(tuple(shape[d] for d in dims), tuple(tuple(s[d] for d in dims) for s in strides))


def choose(p: Problem, multiprocessors: int) -> str:
    """The strategy for callers who name none.

    A row that is contiguous in memory goes to a warp's registers if it is short, to a block if it is longer and there
    are rows enough to fill the machine; everything else is two passes of the whole grid.
    """
    kept, cols = p.kept.inner(0), p.reduced.inner(0)
    along_rows = not kept or not cols or cols < kept
    if along_rows and p.cols <= WARP_COLS:
        return "warp"
    if along_rows and p.cols <= BLOCK_COLS and p.rows >= multiprocessors * BLOCKS_PER_SM:
        return "block_coalesced"
    return "grid_online"


@lru_cache(maxsize=4096)
def plan(p: Problem, strategy: str | None, finish: str, multiprocessors: int) -> Plan:
    """Plan a softmax; ``finish="host"`` is for ``two_pass``."""
    strategy = strategy or choose(p, multiprocessors)
    return STRATEGIES[strategy](p, strategy, finish, multiprocessors)


def one_kernel(p: Problem, strategy: str, blocks: int, in_place: bool, **constants: int) -> Plan:
    """The plan of a strategy that is one launch of ``softmax_<strategy>.cu``."""
    if blocks > MAX_GRID_X:
        raise error(
            ValueError, p.op, f"strategy {strategy!r} takes at most {MAX_GRID_X} blocks, {p.rows} rows need {blocks}"
        )
    kernel = Kernel(
        f"softmax_{strategy}",
        types=(
            ("Tin", CTYPES[p.x]), ("V", CTYPES[p.val]), ("Tout", CTYPES[p.out]),
            ("Index", index_type(p.rows, p.cols)),
        ),
        constants=(
            ("LOG", p.op == "log_softmax"), ("MASKED", p.masked), ("KEPT", p.kept.rank_class),
            ("REDUCED", p.reduced.rank_class), ("BLOCK", BLOCK), *constants.items(),
        ),
    )  # fmt: skip
    params = p.kept.packed() + p.reduced.packed() + struct.pack("<2qd", p.rows, p.cols, p.scale)
    x, mask, out = p.offsets
    args = (Operand("x", x), Operand("other", mask) if p.masked else None, Operand("out", out), params)
    return Plan(strategy, (Launch(kernel, (blocks, 1, 1), BLOCK, args),), in_place=in_place)


def plan_naive(p: Problem, strategy: str, finish: str, multiprocessors: int) -> Plan:
    """One thread per element."""
    return one_kernel(p, strategy, -(-p.rows * p.cols // BLOCK), in_place=False)


def plan_block(p: Problem, strategy: str, finish: str, multiprocessors: int) -> Plan:
    """One block per row."""
    return one_kernel(p, strategy, p.rows, in_place=True)


def plan_warp(p: Problem, strategy: str, finish: str, multiprocessors: int) -> Plan:
    """One warp per row."""
    if p.cols > WARP_COLS:
        raise error(ValueError, p.op, f"strategy 'warp' takes rows of at most {WARP_COLS} elements, got {p.cols}")
    per_lane = reduce.power_of_2(-(-p.cols // 32))
    return one_kernel(p, strategy, -(-p.rows // (BLOCK // 32)), in_place=True, PER_LANE=per_lane)


def plan_two_pass(p: Problem, strategy: str, finish: str, multiprocessors: int) -> Plan:
    """Grid-wide maximum, grid-wide sum of exponentials, divide: three readings of x."""
    size = ITEMSIZE[p.val]
    maximum = statistic(p, "ScaledMax", p.val, 2, 0)
    total = statistic(p, "ShiftedExpSum", p.val, 2, size, shifted=True)
    plans = [reduce.plan(q, "shuffle", finish, multiprocessors) for q in (maximum, total)]
    return divided(p, strategy, plans)


def plan_grid_online(p: Problem, strategy: str, finish: str, multiprocessors: int) -> Plan:
    """Maximum and sum of exponentials together in one grid-wide reduction, then divide: two readings of x."""
    both = statistic(p, "MaxExpSum", None, 1, 0)
    return divided(p, strategy, [reduce.plan(both, None, "device", multiprocessors)])


def statistic(p: Problem, op: str, out: str | None, stride: int, offset: int, shifted: bool = False) -> reduce.Problem:
    """A reduction of p's rows into the (rows, 2) array of their maxima and sums."""
    kept = Axes(p.kept.sizes, (*p.kept.strides[:2], tuple(stride * s for s in contiguous_strides(p.kept.sizes))))
    reduced = Axes(p.reduced.sizes, p.reduced.strides[:2])
    return reduce.Problem(
        op, p.x, p.val, out, kept, reduced, (*p.offsets[:2], offset), (*p.pointers[:2], 0), p.cols,
        "bool" if p.masked else None, shifted, p.scale, target="stats",
    )  # fmt: skip


def divided(p: Problem, strategy: str, reductions: list[Plan]) -> Plan:
    """The reductions into the rows' statistics, then the pass that applies them to every element."""
    stats_size = 2 * ITEMSIZE[p.val]
    x, mask, out = (k + r for k, r in zip(p.kept.strides, p.reduced.strides, strict=True))
    stats = contiguous_strides(p.kept.sizes) + (0,) * len(p.reduced.sizes)
    arg = broadcast.Arg
    all_chosen = None if p.masked else b"\1"
    chosen = arg("other", CTYPES["bool"], 1, mask, p.pointers[1], offset=p.offsets[1], value=all_chosen)
    map_ = broadcast.plan(
        {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[p.op],
        p.kept.sizes + p.reduced.sizes,
        arg("out", CTYPES[p.out], ITEMSIZE[p.out], out, p.pointers[2], offset=p.offsets[2]),
        (
            arg("x", CTYPES[p.x], ITEMSIZE[p.x], x, p.pointers[0], offset=p.offsets[0]),
            arg("stats", f"MaxExpSum<{CTYPES[p.val]}>::State", stats_size, stats),
            chosen,
        ),
        scale=p.scale,
    )
    steps = tuple(step for reduction in (*reductions, map_) for step in reduction.steps)
    workspace = dict(item for reduction in reductions for item in reduction.workspace)
    scratch = max(reduction.scratch for reduction in reductions)
    return Plan(strategy, steps, (("stats", p.rows * stats_size), *workspace.items()), scratch, in_place=True)


#: The strategies and what plans each, slowest first.
STRATEGIES: dict[str, Callable[..., Plan]] = {
    "naive": plan_naive,
    "block_tree": plan_block,
    "block_coalesced": plan_block,
    "two_pass": plan_two_pass,
    "warp": plan_warp,
    "grid_online": plan_grid_online,
}
