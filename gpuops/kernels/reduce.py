"""Planning reductions: which kernel, how many threads an output, how many splits, and the pass that finishes them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

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
    accumulator,
    contiguous_strides,
    index_type,
    normalize,
    packable,
)

BLOCK = 256
UNROLL = 8  # packs that a thread has in flight, at most
ELEMENTS = 64  # and elements: with more of them, bytes need too many registers
WARP_PACKS = 256  # the longest row for one warp, if there are
WARPS_PER_SM = 32  # at least this many rows for every multiprocessor
THREADS_PER_SM = 1024  # a split reduction aims at this many threads on every multiprocessor
SPLIT_BLOCK = 512  # threads of a block that shares a row with others
ROW_BLOCK = {1: 128, 2: 256, 4: 256, 8: 128, 16: 128}  # and of one that has a row alone, by item size
WORKSPACE = 2**20  # bytes that the partial results of a split may take
MAX_STATE_BYTES = 128  # of accumulators in a thread: more packs per load would spill


class Row(NamedTuple):
    """What the host knows of a reduction; ``kernels/ops.cuh`` has the rest under the same name."""

    ufunc: Any  # decides dtypes, and merges partial results on the host
    identity: bool  # whether an empty reduction has a value
    arithmetic: bool = False  # small integers and bools are summed as int64 or uint64, as NumPy does


#: An op is a row: its name in ops.cuh, and what NumPy says of it.
OPS = {
    "sum": ("Sum", Row(np.add, True, arithmetic=True)),
    "prod": ("Prod", Row(np.multiply, True, arithmetic=True)),
    "max": ("Max", Row(np.maximum, False)),
    "min": ("Min", Row(np.minimum, False)),
    "mean": ("Mean", Row(np.add, True)),
    "any": ("Any", Row(np.logical_or, True)),
    "all": ("All", Row(np.logical_and, True)),
}
MERGE: dict[str, Any] = {"Any": np.bitwise_or, "All": np.bitwise_and, "ScaledMax": np.maximum, "ShiftedExpSum": np.add}
MERGE |= {name: row.ufunc for name, row in OPS.values() if name not in MERGE}


def state_dtype(op: str, val: str) -> np.dtype:
    """One partial result of an op over values of dtype ``val``, as it lies in memory."""
    acc = accumulator(val)
    if op in ("Any", "All"):
        return np.dtype("uint32")
    if op == "MaskedMean":
        return np.dtype([("total", acc), ("count", "int64")], align=True)
    if op in ("MaxExpSum", "LogSumExp"):
        return np.dtype([("max", acc), ("sum", acc)])
    if op in ("Max", "Min") and ITEMSIZE[acc] < 4:
        return np.dtype("int32")
    return np.dtype(acc)


class Problem(NamedTuple):
    """A reduction in normal form: ``out[k] = op(x[k, r] for r in reduced)``."""

    op: str  # a struct of ops.cuh
    x: str  # dtype names: of the elements, of the values NumPy would compute with, of the result
    val: str
    out: str | None  # None: the op's own pair of values
    kept: Axes  # operands x, mask, out
    reduced: Axes  # operands x, mask
    offsets: Shape  # bytes from the first elements of x, mask and out to where the walk starts
    pointer: int  # x's address modulo 16
    length: int  # elements reduced to one output
    masked: bool = False
    shifted: bool = False
    scale: float = 1.0
    initial: bytes | None = None
    target: str = "out"

    @property
    def outputs(self) -> int:
        return self.kept.size


@lru_cache(maxsize=4096)
def problem(
    op: str,
    x: str,
    val: str,
    out: str,
    shape: Shape,
    axis: Shape,
    strides: tuple[Shape, Shape, Shape],
    pointer: int,
    **more: Any,
) -> Problem:
    """The normal form of reducing ``shape`` over ``axis``; ``strides`` are those of x and mask over the shape, and of
    out over the kept dims."""
    reduced_dims = set(axis)
    kept_dims = [d for d in range(len(shape)) if d not in reduced_dims]
    x_strides, mask_strides, out_strides = strides
    if 0 in shape:  # nothing to read: every output is the identity
        kept = Axes(tuple(shape[d] for d in kept_dims), ((0,) * len(kept_dims),) * 2 + (out_strides,))
        reduced, length = Axes((), ((), ())), 0
    else:
        kept = pick(shape, kept_dims, x_strides, mask_strides, out_strides)
        reduced = pick(shape, list(axis), x_strides, mask_strides)
        length = reduced.size
    kept, (x_kept, mask_kept, out_kept) = normalize(kept)
    reduced, (x_reduced, mask_reduced) = normalize(reduced)
    offsets = ((x_kept + x_reduced) * ITEMSIZE[x], mask_kept + mask_reduced, out_kept * ITEMSIZE[out])
    return Problem(op, x, val, out, kept, reduced, offsets, pointer, length, **more)


def pick(shape: Shape, dims: list[int], x: Shape, mask: Shape, *out: Shape) -> Axes:
    """Axes over some dims of the shape; ``out`` strides are already those of the dims."""
    return Axes(tuple(shape[d] for d in dims), (*(tuple(s[d] for d in dims) for s in (x, mask)), *out))


# -------------------------------------------------------------------------------------------------------- choosing


def choose(p: Problem) -> str:
    """The strategy for callers who name none: threads go along whichever dims are contiguous in memory."""
    kept, reduced = p.kept.inner(0), p.reduced.inner(0)
    return "columns" if kept and (not reduced or kept < reduced) else "rows"


@lru_cache(maxsize=4096)
def plan(p: Problem, strategy: str | None, finish: str, multiprocessors: int) -> Plan:
    """Plan a reduction; ``finish="host"`` is for the classic strategies."""
    strategy = strategy or choose(p)
    return STRATEGIES[strategy](p, strategy, finish, multiprocessors)


def power_of_2(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def vector_width(p: Problem, first: bool, inner: Axes) -> int:
    """Elements that a thread reads at once along ``inner``: 16 bytes where alignment and sizes allow."""
    state = state_dtype(p.op, p.val).itemsize
    itemsize = ITEMSIZE[p.x] if first else state
    vec = 1 if p.masked else max(1, 16 // itemsize)
    pointer = p.pointer + p.offsets[0]
    while vec > 1 and not (
        vec * state <= MAX_STATE_BYTES and packable(vec, itemsize, pointer, 0, p.kept, p.reduced, inner=inner)
    ):
        vec //= 2
    return vec


def unroll(packs: int, threads: int, vec: int) -> int:
    """Packs in flight per thread: as many as there are for each, up to a limit."""
    return min(UNROLL, ELEMENTS // vec, power_of_2(-(-packs // threads)))


def splits(p: Problem, threads: int, packs: int, step: int, multiprocessors: int) -> tuple[int, int]:
    """How many blocks share one output's packs, and how many packs each takes (a multiple of ``step``), when one
    split alone makes a grid of so many threads."""
    fill = multiprocessors * THREADS_PER_SM // max(threads, 1)
    room = WORKSPACE // max(p.outputs * state_dtype(p.op, p.val).itemsize, 1)
    wanted = max(1, min(fill, room, packs // (4 * step)))
    chunk = math.ceil(packs / (wanted * step)) * step
    return max(1, math.ceil(packs / max(chunk, 1))), max(chunk, 1)


# -------------------------------------------------------------------------------------------------------- launches


def launch(
    p: Problem, kernel: str, first: bool, last: bool, grid: tuple[int, int], block: int, kept: Axes, reduced: Axes,
    packs: int, chunk: int, constants: dict[str, int], *extra: Operand | int | None,
) -> Launch:  # fmt: skip
    """One pass: ``first`` reads x, later ones read the partial results; ``last`` writes the results."""
    if grid[0] > MAX_GRID_X:
        raise error(
            ValueError, p.op.lower(), f"{kernel} takes at most {MAX_GRID_X} blocks, {p.outputs} outputs need {grid[0]}"
        )
    variant = Kernel(
        kernel,
        types=(
            ("Tin", CTYPES[p.x] if first else "u8"), ("Tval", CTYPES[p.val]),
            ("Op", f"{p.op}<Tval>"), ("Tout", "Op::State" if p.out is None or not last else CTYPES[p.out]),
            ("Index", index_type(p.outputs, packs)),
        ),
        constants=(
            ("FIRST", first), ("LAST", last), ("MASKED", first and p.masked), ("KEPT", kept.rank_class),
            ("REDUCED", reduced.rank_class), ("BLOCK", block), *constants.items(),
        ),
    )  # fmt: skip
    initial = (p.initial or b"").ljust(16 if ITEMSIZE[p.val] == 16 else 8, b"\0")
    params = kept.packed() + reduced.packed()
    params += struct.pack("<3q2dq", p.outputs, packs, chunk, p.length, p.scale, p.initial is not None) + initial
    args = (
        Operand("x", p.offsets[0]) if first else Operand("partials"),
        Operand("mask", p.offsets[1]) if first and p.masked else None,
        Operand(p.target, p.offsets[2]) if last else Operand("partials"),
    )
    return Launch(variant, (*grid, 1), block, (*args, params, *extra))


def finished(p: Problem, launches: tuple[Any, ...], n: int, multiprocessors: int, strategy: str) -> Plan:
    """The plan of a first pass in n splits: alone, or with the pass that reduces its (n, outputs) partial results."""
    if n == 1:
        return Plan(strategy, launches)
    second = second_pass(p, n)
    last = STRATEGIES[choose(second)](second, "", "device", multiprocessors, first=False).steps
    return Plan(strategy, (*launches, *last), (partials(p, n),))


def partials(p: Problem, n: int) -> tuple[str, int]:
    """The workspace of n splits."""
    return "partials", n * p.outputs * state_dtype(p.op, p.val).itemsize


def second_pass(p: Problem, n: int) -> Problem:
    """The reduction of the (n, outputs) partial results of p."""
    sizes = p.kept.sizes
    kept, _ = normalize(Axes(sizes, (contiguous_strides(sizes), (0,) * len(sizes), p.kept.strides[2])))
    reduced, _ = normalize(Axes((n,), ((p.outputs,), (0,))))
    return p._replace(kept=kept, reduced=reduced, offsets=(0, 0, p.offsets[2]), pointer=0, masked=False, shifted=False)


def plan_rows(p: Problem, strategy: str, finish: str, multiprocessors: int, first: bool = True) -> Plan:
    """GROUP threads per output, along the reduced dims."""
    vec = vector_width(p, first, p.reduced)
    reduced = p.reduced.in_packs(vec)
    packs = reduced.size if p.length else 0
    group, block, n, chunk = min(power_of_2(packs) // UNROLL or 1, 32), BLOCK, 1, packs
    if packs > WARP_PACKS or (packs > 32 and p.outputs < multiprocessors * WARPS_PER_SM):
        if first:
            n, chunk = splits(p, p.outputs * SPLIT_BLOCK, packs, SPLIT_BLOCK, multiprocessors)
        group = block = SPLIT_BLOCK if n > 1 else ROW_BLOCK[ITEMSIZE[p.x]]
    blocks = -(-p.outputs // (block // group))
    constants = {"GROUP": group, "VEC": vec, "UNROLL": unroll(chunk, group, vec)}
    step = launch(p, "reduce_rows", first, n == 1, (blocks, n), block, p.kept, reduced, packs, chunk, constants)
    return finished(p, (step,), n, multiprocessors, strategy)


def plan_columns(p: Problem, strategy: str, finish: str, multiprocessors: int, first: bool = True) -> Plan:
    """Threads across the kept dims, BLOCK / WIDE of them deep along the reduced ones."""
    vec = vector_width(p, first, p.kept)
    kept = p.kept.in_packs(vec)
    packs = p.reduced.size if p.length else 0
    deep = min(BLOCK // min(power_of_2(kept.size), 32), power_of_2(-(-packs // 4)))
    wide = BLOCK // deep
    blocks = -(-kept.size // wide)
    n, chunk = splits(p, blocks * BLOCK, packs, deep, multiprocessors) if first else (1, packs)
    constants = {"WIDE": wide, "VEC": vec, "UNROLL": unroll(chunk, deep, vec)}
    grid, y_inner = (blocks, n), p.kept.inner(2)
    step = launch(p, "reduce_columns", first, n == 1, grid, BLOCK, kept, p.reduced, packs, chunk, constants, y_inner)
    return finished(p, (step,), n, multiprocessors, strategy)


STEPS = {"cross": 0, "interleaved": 1, "shuffle": 2}  # enum Step in reduce_block.cu


def plan_block(p: Problem, strategy: str, finish: str, multiprocessors: int) -> Plan:
    """The classic ladder: blocks reduce chunks by the named step; their partials are reduced by the same kernel, or
    on the host."""
    n, chunk = splits(p, p.outputs * BLOCK, p.length, BLOCK, multiprocessors)
    constants = {"STEP": STEPS[strategy], "SHIFTED": p.shifted}
    shift = Operand("stats") if p.shifted else None
    on_host = finish == "host"
    alone = n == 1 and not on_host
    grid = (p.outputs, n)
    first = launch(p, "reduce_block", True, alone, grid, BLOCK, p.kept, p.reduced, p.length, chunk, constants, shift)
    if on_host:
        return Plan(strategy, (first, HostFinish(p, n)), (partials(p, n),))
    if alone:
        return Plan(strategy, (first,))
    q = second_pass(p, n)
    grid, constants = (q.outputs, 1), constants | {"SHIFTED": False}
    last = launch(q, "reduce_block", False, True, grid, BLOCK, q.kept, q.reduced, n, n, constants, None)
    return Plan(strategy, (first, last), (partials(p, n),))


#: The strategies and what plans each.
STRATEGIES: dict[str, Callable[..., Plan]] = {
    "rows": plan_rows,
    "columns": plan_columns,
    **dict.fromkeys(STEPS, plan_block),
}
FINISHES = ("device", "host")


class HostFinish(NamedTuple):
    """The slow way to finish, for comparison: partial results go to the host, are reduced there, and come back."""

    problem: Problem
    splits: int

    def run(self, device, arrays) -> None:
        """Wait for the device, reduce (splits, outputs) with NumPy, copy the results back."""
        p = self.problem
        dtype = state_dtype(p.op, p.val)
        shape = (self.splits, p.outputs)
        state = device.to_host(device.view(arrays["partials"], 0, dtype, shape, contiguous_strides(shape)))
        with np.errstate(all="ignore"):
            result = self.finish(state).astype(p.val).astype(p.out).reshape(p.kept.sizes)
        out = device.view(arrays[p.target], p.offsets[2], np.dtype(p.out), p.kept.sizes, p.kept.strides[2])
        out[...] = device.from_host(result)

    def finish(self, state: np.ndarray) -> np.ndarray:
        """The op's results from its partial ones, as ``combine`` and ``finish`` of ops.cuh make them."""
        p = self.problem
        if p.op == "MaskedMean":
            return np.add.reduce(state["total"]) / np.add.reduce(state["count"])
        total = MERGE[p.op].reduce(state, axis=0)
        if p.initial is not None:
            initial = np.frombuffer(p.initial, np.dtype(p.val))[0].astype(total.dtype)
            total = MERGE[p.op](initial, total)
        return np.divide(total, p.length) if p.op == "Mean" else total
