"""The classic ladder: blocks reduce chunks by a named step; the same kernel, or the host, reduces their partials."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..access import Access
from ..dtypes import BITS
from ..geometry import contiguous_strides, offset_type, reaches
from ..work import Launch, Operand, Plan, PlanStep, Step
from .launch import THREADS_PER_SM, Design, grid, kernel_of, parameters, split
from .problems import Problem

BLOCK = 256
LEAST = 4  # fewest elements per thread where blocks share an output
STEPS = {"cross": 0, "interleaved": 1, "shuffle": 2}  # enum Step in reduce_block.cu
ON_HOST = "_host"  # the suffix of strategies that finish on the host


def plan_block(p: Problem, strategy: str, multiprocessors: int) -> Plan:
    """One launch with one block per output; else a second launch, or the host, merges the blocks' states."""
    fill = multiprocessors * THREADS_PER_SM // BLOCK
    blocks, chunk = split(p, p.outputs, fill, p.length, BLOCK, LEAST)
    on_host = strategy.endswith(ON_HOST)
    step, alone = STEPS[strategy.removesuffix(ON_HOST)], blocks == 1 and not on_host
    first = block_launch(p, step, (blocks, p.length, chunk), first=True, last=alone)
    workspace = (("partials", blocks * p.outputs * p.state),)
    if alone:
        return Plan(strategy, (first,))
    if not on_host:
        return Plan(strategy, (first, block_launch(p, step, (1, blocks, blocks), first=False, last=True)), workspace)
    finished = ("finished", p.outputs * p.result)
    return Plan(strategy, (first, HostFinish(p, blocks), *from_host(p)), (*workspace, finished))


def block_launch(p: Problem, step: int, work: tuple[int, int, int], first: bool, last: bool) -> Launch:
    """A launch. ``work``: blocks per output, elements per output, elements per block."""
    blocks, count, chunk = work
    far = reaches(p.kept, p.reduced)
    offset = offset_type(far)
    constants = {"STEP": step, "RELATIVE": first and p.relative, "FIRST": first, "LAST": last}
    constants |= {"VEC": 1, "BLOCK": BLOCK, "SINGLE": 0, "RESIDENT": 0}
    design = Design(
        "reduce_block", Access(1, "beside" if p.other and first else "none"), (p.outputs, blocks), BLOCK, p.kept,
        p.reduced, (p.outputs, count, chunk, p.length, 1), constants,
    )  # fmt: skip
    partials = None if first and last else Operand("partials")
    shift = Operand("stats") if p.relative else None
    args = (*p.pointers, partials, parameters(p, design, offset, far[0] + 1), shift)
    return Launch(kernel_of(p, design, offset, constants), grid(p, design.kernel, p.outputs, blocks), BLOCK, args)


class HostFinish(NamedTuple):
    """Merge states on the host, for comparison: they are copied there, and the results back."""

    problem: Problem
    splits: int

    def ready(self, device: Any, places: dict[str, int]) -> Step:
        return device.finisher(self, places)


def from_host(p: Problem) -> tuple[PlanStep, ...]:
    """The launch that copies the host's results to where they belong."""
    from .. import maps  # slow to import

    bits, target = BITS[p.result], p.arrays[2]
    pointer = (p.starts[2] - target.offset) % 16
    out = maps.Arg(target.name, bits, p.result, p.kept.strides[2], pointer, offset=target.offset)
    finished = maps.Arg("finished", bits, p.result, contiguous_strides(p.kept.sizes))
    return maps.plan("Expand", p.kept.sizes, out, (finished,)).steps
