"""Programs of expressions on NumPy arrays, in blocks that stay in cache, on threads: by NumPy's own ufuncs
(`program_steps`), or by a loop that Numba compiles for a program that computes much (`compiled_programs`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..definition.program import Program
from ..definition.task import Task
from ..plan.geometry import Shape
from ..plan.work import HostCall
from . import maps, threads
from .blocks import indices
from .program_loops import Loop, loop_of
from .program_operand import DRIVERS, NotInBlocks, in_blocks
from .program_steps import BLOCK, Numbers, calls, run
from .results import Flags, deliver, report

COST = 4  # of a step, beside that of reading an element


def evaluate(
    program: Program, arrays: Sequence[np.ndarray], numbers: Numbers, shape: Shape, out: np.ndarray | None = None
) -> Any:
    """The result of a program with these constants, in ``out`` if it is given."""
    if program.several:
        return stacked(program, arrays, numbers, shape, out)
    straight = out is not None and out.dtype == program.dtype and not calls(program).refuses
    if out is not None and straight and not any([overlaps(out, array) for array in arrays]):
        compute(program, arrays, numbers, out)
        return out
    made = new_result(program, arrays, shape)
    compute(program, arrays, numbers, made)
    return deliver(made, out)


def stacked(
    program: Program, arrays: Sequence[np.ndarray], numbers: Numbers, shape: Shape, out: np.ndarray | None
) -> Any:
    """The results of a program that are stacked."""
    apart = out is not None and not any([np.may_share_memory(out, array) for array in arrays])
    made = out if out is not None and apart else np.empty(shape, program.dtype)
    for k in range(program.several):
        evaluate(program.part(k), arrays, numbers, shape[1:], made[k, ...])  # (a view, of no dims too)
    return deliver(made, out) if made is not out else out


def evaluated(
    program: Program, numbers: Numbers, names: tuple[str, ...], shape: Shape, out: np.ndarray | None = None,
    **arrays: np.ndarray,
) -> Any:  # fmt: skip
    """As `evaluate`, with arrays by name."""
    return evaluate(program, [arrays[name] for name in names], numbers, shape, out)


def taken(
    call: HostCall, place: str, program: Program, numbers: Numbers, names: tuple[str, ...], shape: Shape,
    strides: Shape, **arrays: Any,
) -> Any:  # fmt: skip
    """A call with the result of a program as an operand: computed in blocks where they are read, or before the call."""
    if program.several and (parts := of_parts(call, arrays, names)) is not None:
        each = [
            taken(parts, place, program.part(k), numbers, names, shape[1:], strides[1:], **arrays)
            for k in range(program.several)
        ]
        return np.stack(each)
    operands = [arrays.pop(name) for name in names]
    every = program, operands, numbers
    if not program.several and (made := in_blocks(call, every, shape, strides, arrays)) is not None:
        run_of, options, computed = made
        try:
            return run_of(**{place: computed}, **arrays, **options)
        except NotInBlocks:
            pass
    value = np.ndarray(shape, program.dtype, np.empty(math.prod(shape), program.dtype), 0, strides)
    arrays[place] = evaluate(*every, shape, value)
    return call.function(**arrays, **call.options)


def of_parts(call: HostCall, arrays: dict[str, Any], names: tuple[str, ...]) -> HostCall | None:
    """A reduction of arrays that are stacked, as that of each; None for other calls, and if it has other arrays."""
    task: Task | None = call.options.get("task")
    others = [value for name, value in arrays.items() if name not in names and value is not None]
    if task is None or call.function not in DRIVERS or 0 in task.axis or task.form is not None or others:
        return None
    return HostCall(DRIVERS[call.function], {"task": task._replace(axis=tuple([d - 1 for d in task.axis]))})


def new_result(program: Program, arrays: Sequence[np.ndarray], shape: Shape) -> np.ndarray:
    """New memory for a result, whose dims lie as those of NumPy's own."""
    if not shape or all([array.shape == shape and array.flags.c_contiguous for array in arrays]):
        return np.empty(shape, program.dtype)
    return maps.new_result((*arrays, np.empty((1,) * len(shape))), program.dtype)


def overlaps(out: np.ndarray, array: np.ndarray) -> bool:
    """Whether blocks of ``out`` may share memory with other blocks of an operand."""
    if not np.may_share_memory(out, array):
        return False
    return out.ctypes.data != array.ctypes.data or (out.shape, out.strides) != (array.shape, array.strides)


def compute(program: Program, arrays: Sequence[np.ndarray], numbers: Numbers, into: np.ndarray) -> None:
    """Compute a program's result, and report floating-point errors."""
    flags, steps = Flags(), calls(program)
    if into.ndim == 0:
        arrays, into = [array[None] for array in arrays], into[None]
    if 0 < into.size <= BLOCK:
        with flags.kept() if steps.errs else nullcontext():
            run(steps, arrays, numbers, into)
    elif into.size:
        in_parts(program, arrays, numbers, into, flags)
    if flags.found:
        report(flags.found, "__call__")


def in_parts(program: Program, arrays: Sequence[np.ndarray], numbers: Numbers, into: np.ndarray, flags: Flags) -> None:
    """Compute a program in blocks."""
    views = [np.broadcast_to(array, into.shape) for array in arrays]
    apart = not any([np.may_share_memory(into, array) for array in arrays])  # a block may have to be computed again
    loop: Loop | None = loop_of(program, into.size) if apart else None
    steps = calls(program)

    def fill(index: Any) -> None:
        given, part = [view[index] for view in views], into[index]
        if loop is None or not loop(given, numbers, part):
            with flags.kept():
                run(steps, given, numbers, part)

    blocks = indices(into.shape, into.strides, range(into.ndim), BLOCK)
    threads.shared(COST * max(len(program.steps), 1) * into.nbytes)(fill, blocks)
