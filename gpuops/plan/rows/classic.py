"""The classic rungs: a thread to an element, a block or a warp to a row; and row ops in several passes."""

from __future__ import annotations

from ...errors import error
from .. import maps, reductions
from ..access import Access
from ..dtypes import CTYPES, ITEMSIZE
from ..geometry import Axes, Shape, contiguous_strides, power_of_2
from ..reductions import OpStruct
from ..row_ops import RowOp
from ..work import Machine, Operand, Plan
from .launch import Design, Held, fits, launch
from .problems import SCALED_MAX, SHIFTED_EXP_SUM, Problem

BLOCK = 256
WARP_COLS = 1024  # the longest row that a warp holds in registers: 32 elements a lane
WARPS = {"warp": 1, "warp_pack2": 2, "warp_pack4": 4, "warp_pack8": 8}  # elements of a pack, by strategy
STATES = 2**13  # bytes of shared memory that a block keeps for states


def plan_naive(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One thread per element."""
    return launch(p, strategy, by_elements(p, -(-p.rows * p.cols // BLOCK)), in_place=False)


def plan_block(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One block per row."""
    return launch(p, strategy, by_elements(p, p.rows))


def plan_block_shared(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One block per row, which it keeps in shared memory."""
    nbytes, room = p.cols * ITEMSIZE[p.val], machine.shared - STATES
    if nbytes > room:
        rule = f"strategy {strategy!r} takes rows of at most {room // ITEMSIZE[p.val]} elements"
        raise error(ValueError, p.op.name, f"{rule} on this device, got {p.cols}")
    (step,) = (made := launch(p, strategy, by_elements(p, p.rows))).steps
    return made._replace(steps=(step._replace(shared=nbytes),))


def by_elements(p: Problem, blocks: int) -> Design:
    """A rung that takes any row as it is, element by element."""
    access = Access(1, "scattered" if p.masked else "none")
    return Design(blocks, BLOCK, access, Held(p.cols), p.kept, p.reduced, {"BLOCK": BLOCK})


def plan_warp(p: Problem, strategy: str, machine: Machine) -> Plan:
    """One warp per row, which reads it in packs of so many elements as the strategy says, if they are aligned."""
    if p.cols > WARP_COLS:
        rule = f"strategy {strategy!r} takes rows of at most {WARP_COLS} elements, got {p.cols}"
        raise error(ValueError, p.op.name, rule)
    tries = (n for n in (8, 4, 2) if n <= WARPS[strategy])
    vec = next((n for n in tries if all(fits(p, p.reduced, Access(n), operand) for operand in (0, 2))), 1)
    packs = p.cols // vec
    constants = {"BLOCK": BLOCK, "PER_LANE": power_of_2(-(-packs // 32))}
    access, blocks = Access(vec, "scattered" if p.masked else "none"), -(-p.rows // (BLOCK // 32))
    design = Design(blocks, BLOCK, access, Held(packs), p.kept, p.reduced.in_packs(vec), constants)
    return launch(p, strategy, design, "warp")


# ---------------------------------------------------------------------------------------------------- in several passes


def plan_two_pass(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Grid-wide maximum, grid-wide sum of exponentials, divide: three readings of x."""
    how = "shuffle" + strategy.removeprefix("two_pass")
    maximum = statistic(p, SCALED_MAX, p.val, 0)
    total = statistic(p, SHIFTED_EXP_SUM, p.val, ITEMSIZE[p.val])._replace(relative=True)
    return divided(p, strategy, [reductions.plan(each, how, machine.multiprocessors) for each in (maximum, total)])


def plan_grid_online(p: Problem, strategy: str, machine: Machine) -> Plan:
    """What is to be known of rows in one grid-wide reduction, then a map: two readings of x. A softmax has both the
    maximum and the sum of exponentials of the first one."""
    known = statistic(p, p.reduction, None if p.op.states else p.val, 0)
    return divided(p, strategy, [reductions.plan(known, None, machine.multiprocessors)])


def statistic(p: Problem, op: OpStruct, out: str | None, offset: int) -> reductions.Problem:
    """A reduction of p's rows into the array of what is known of them: of pairs also to one of the two."""
    steps = contiguous_strides(p.kept.sizes)
    pairs = tuple([2 * step for step in steps]) if out and p.op.states else steps
    kept = Axes(p.kept.sizes, (*p.kept.strides[:2], pairs))
    reduced = Axes(p.reduced.sizes, p.reduced.strides[:2])
    x, mask, _ = p.arrays
    other = "bool" if p.masked else None
    return reductions.of_normal_form(
        op, p.x, p.val, out, (kept, reduced), (x, mask, Operand("stats", offset)), (*p.starts[:2], offset), p.cols,
        other, op.numbers(p.cols, {p.op.option: p.option}),
    )  # fmt: skip


def divided(p: Problem, strategy: str, passes: list[Plan]) -> Plan:
    """The reductions to what is known of rows, then the pass that applies them to every element."""
    walks = [k + r for k, r in zip(p.kept.strides, p.reduced.strides, strict=True)]
    args = [
        operand and maps.Arg(operand.name, ctype, size, walk, (start - operand.offset) % 16, None, operand.offset)
        for operand, ctype, size, walk, start in zip(
            p.arrays, (CTYPES[p.x], CTYPES["bool"], CTYPES[p.out]), p.sizes, walks, p.starts, strict=True
        )
    ]
    x, mask, out = args
    assert x is not None and out is not None
    stats = contiguous_strides(p.kept.sizes) + (0,) * len(p.reduced.sizes)
    known = statistics_arg(p.op, p.val, stats)
    last = last_pass(p.op, p.kept.sizes + p.reduced.sizes, out, (x, mask), known, p.option)
    steps = tuple(step for each in (*passes, last) for step in each.steps)
    workspace = dict(item for each in passes for item in each.workspace)
    pairs = ("stats", p.rows * known.itemsize)
    scratch = max(each.scratch for each in passes)
    return Plan(strategy, steps, (pairs, *workspace.items()), scratch, in_place=True)


def statistics_arg(op: RowOp, val: str, strides: Shape, name: str = "stats", pointer: int = 0) -> maps.Arg:
    """What is known of rows as an operand of a map, with strides over its output: states of two numbers, or numbers."""
    if op.states is None:
        return maps.Arg(name, CTYPES[val], ITEMSIZE[val], strides, pointer)
    return maps.Arg(name, f"{op.states}<{CTYPES[val]}>::State", 2 * ITEMSIZE[val], strides, pointer)


def last_pass(
    op: RowOp, shape: Shape, out: maps.Arg, x: tuple[maps.Arg, maps.Arg | None], known: maps.Arg, option: float
) -> Plan:
    """The map that makes the results of x, given with its mask, and of what is known of rows."""
    values, mask = x
    operands = (values, known) if mask is None else (values, known, mask)
    return maps.plan(op.map, shape, out, operands, option=option)
