"""Programs of expressions on NumPy arrays, in blocks that stay in cache: every step is NumPy's own ufunc, so results
have the bits of NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..definition.program import ASTYPE, CLIP, IMAG, REAL, UFUNCS, WHERE, Program, Step
from ..plan.geometry import Shape, order
from ..plan.work import HostCall
from . import maps, threads
from .blocks import indices, memory
from .results import Flags, deliver, report

Numbers = Sequence[Any]  # the constants of a program, as NumPy's scalars
BLOCK = 2**17  # elements of a block: a few arrays of them fit a core's cache, and NumPy's calls cost little beside them
COST = 4  # of a step, beside that of reading an element


def evaluate(
    program: Program, arrays: Sequence[np.ndarray], numbers: Numbers, shape: Shape, out: np.ndarray | None = None
) -> Any:
    """The result of a program with these constants, in ``out`` if it is given."""
    dtype = program.dtype
    if shape == ():
        arrays = [array[None] for array in arrays]
    straight = out is not None and out.dtype == dtype and shape != () and not any(
        overlaps(out, array) for array in arrays
    ) and not any(may_fail(step) for step in program.steps)  # fmt: skip
    dims = np.empty((1,) * max(len(shape), 1))  # of a program without arrays
    made = out if straight and out is not None else maps.new_result((*arrays, dims), dtype)
    views = [np.broadcast_to(array, made.shape) for array in arrays]
    flags = Flags()

    def fill(index: Any) -> None:
        with flags.kept():
            run(program, [view[index] for view in views], numbers, made[index])

    if 0 < made.size <= BLOCK:
        fill(...)
    elif made.size:
        blocks = indices(made.shape, made.strides, range(made.ndim), BLOCK)
        threads.shared(COST * max(len(program.steps), 1) * made.nbytes)(fill, blocks)
    report(flags.found, "__call__")
    return made if straight else deliver(made.reshape(shape) if shape == () else made, out)


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
    """A call with the result of a program as an operand."""
    value: np.ndarray = np.ndarray(shape, program.dtype, np.empty(math.prod(shape), program.dtype), 0, strides)
    evaluate(program, [arrays.pop(name) for name in names], numbers, shape, value)
    arrays[place] = value
    return call.function(**arrays, **call.options)


def overlaps(out: np.ndarray, array: np.ndarray) -> bool:
    """Whether blocks of ``out`` may share memory with other blocks of an operand."""
    same = out.ctypes.data == array.ctypes.data and (out.shape, out.strides) == (array.shape, array.strides)
    return not same and np.may_share_memory(out, array)


def may_fail(step: Step) -> bool:
    """Whether NumPy may refuse elements."""
    return step.name in UFUNCS and UFUNCS[step.name].refuses and step.dtypes[0].kind in "iu"


def run(program: Program, arrays: list[np.ndarray], numbers: Numbers, into: np.ndarray) -> None:
    """Run a program on a block."""
    if not program.steps:
        into[...] = arrays[0]
        return
    values: list[Any] = [*arrays, *numbers]
    dims = order(into.strides)
    for i, (step, buffer) in enumerate(zip(program.steps, buffers(program), strict=True)):
        last = i == len(program.steps) - 1
        made = into if last else memory(f"step{buffer}", into.shape, step.dtypes[-1], dims)
        apply(step, [values[place] for place in step.args], made)
        values.append(made)


@lru_cache(maxsize=1024)
def buffers(program: Program) -> tuple[int, ...]:
    """Which memory each step's result is kept in: that of results no longer needed is used again."""
    found: list[int] = []
    free: list[int] = []
    for done in program.last_uses():
        found.append(free.pop() if free else len({*found}))
        free += [found[i] for i in done]
    return tuple(found)


def apply(step: Step, args: list[Any], into: np.ndarray) -> None:
    """Compute a step of a block."""
    if step.name in OTHERS:
        OTHERS[step.name](into, *args)
    else:
        getattr(np, step.name)(*args, out=into, signature=step.dtypes, casting="unsafe")


def cast(into: np.ndarray, x: np.ndarray) -> None:
    """x in another dtype; of complex numbers the real parts, except for truth values."""
    into[...] = x.real if x.dtype.kind == "c" and into.dtype.kind not in "bc" else x


def real(into: np.ndarray, x: np.ndarray) -> None:
    """The real parts."""
    into[...] = x.real


def imag(into: np.ndarray, x: np.ndarray) -> None:
    """The imaginary parts."""
    into[...] = x.imag


def where(into: np.ndarray, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """x where the condition is true, else y."""
    into[...] = y
    np.copyto(into, x, where=condition.astype(bool, copy=False), casting="unsafe")


def clip(into: np.ndarray, *args: np.ndarray) -> None:
    """x between two bounds, in the dtype of the result."""
    x, low, high = (arg.astype(into.dtype, copy=False) for arg in args)
    np.clip(x, low, high, out=into)


#: What computes the operations that are not ufuncs.
OTHERS: dict[str, Callable[..., None]] = {ASTYPE: cast, REAL: real, IMAG: imag, WHERE: where, CLIP: clip}
