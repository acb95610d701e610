"""The steps of a program on a block: every step is NumPy's own ufunc, so results have the bits of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..definition.program import ASTYPE, CLIP, IMAG, REAL, UFUNCS, WHERE, Program, Step
from ..plan.geometry import order
from .blocks import WORDS, choose, memory

Numbers = Sequence[Any]  # the constants of a program, as NumPy's scalars
BLOCK = 2**17  # elements of a block: a few arrays of them fit a core's cache, and NumPy's calls cost little beside them
FEW = 2**14  # elements up to which new memory costs less than finding that which a thread keeps
#: Steps that meet no floating-point error, and those that meet none with integers.
QUIET = {
    *(name for name, operation in UFUNCS.items() if operation.compares), "minimum", "maximum", "fmin", "fmax", WHERE,
    "negative", "positive", "absolute", "logical_and", "logical_or", "logical_xor", "logical_not", "invert",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "isnan", "isinf", "isfinite",
}  # fmt: skip
OF_INTEGERS = {"add", "subtract", "multiply", "square", "conjugate", "sign", ASTYPE, CLIP}


class Call(NamedTuple):
    """A step as a function of its operands and ``out``."""

    function: Callable[..., Any]
    args: tuple[int, ...]
    dtype: np.dtype
    name: str  # of the memory that its result is kept in


class Calls(NamedTuple):
    """The steps of a program, whether they may meet floating-point errors, and whether NumPy may refuse elements."""

    steps: tuple[Call, ...]
    errs: bool
    refuses: bool


@lru_cache(maxsize=1024)
def calls(program: Program) -> Calls:
    """The steps of a program, as they are called."""
    steps = [Call(function(step), step.args, step.dtypes[-1], f"step{k}")
             for step, k in zip(program.steps, buffers(program), strict=True)]  # fmt: skip
    return Calls(tuple(steps), any(map(may_err, program.steps)), any(map(may_refuse, program.steps)))


def may_err(step: Step) -> bool:
    """Whether a step may meet floating-point errors."""
    kinds = {dtype.kind for dtype in step.dtypes}
    return not kinds <= {*"biuf"} or not (step.name in QUIET or (kinds <= {*"biu"} and step.name in OF_INTEGERS))


def may_refuse(step: Step) -> bool:
    """Whether NumPy may refuse elements."""
    return step.name in UFUNCS and UFUNCS[step.name].refuses and step.dtypes[0].kind in "iu"


@lru_cache(maxsize=1024)
def buffers(program: Program) -> tuple[int, ...]:
    """Which memory each step's result is kept in: that of results no longer needed is used again."""
    found: list[int] = []
    free: list[int] = []
    for done in program.last_uses():
        found.append(free.pop() if free else len({*found}))
        free += [found[i] for i in done]
    return tuple(found)


def run(calls: Calls, arrays: Sequence[np.ndarray], numbers: Numbers, into: np.ndarray) -> None:
    """Run the steps of a program on a block."""
    if not calls.steps:
        into[...] = arrays[0]
        return
    values: list[Any] = [*arrays, *numbers]
    *steps, last = calls.steps
    few, shape, dims = into.size <= FEW, into.shape, () if into.size <= FEW else order(into.strides)
    for call in steps:
        made = np.empty(shape, call.dtype) if few else memory(call.name, shape, call.dtype, dims)
        call.function(*[values[place] for place in call.args], out=made)
        values.append(made)
    last.function(*[values[place] for place in last.args], out=into)


def function(step: Step) -> Callable[..., Any]:
    """What computes a step."""
    return OTHERS.get(step.name) or partial(getattr(np, step.name), signature=step.dtypes, casting="unsafe")


def cast(x: np.ndarray, out: np.ndarray) -> None:
    """x in another dtype; of complex numbers the real parts, except for truth values."""
    out[...] = x.real if x.dtype.kind == "c" and out.dtype.kind not in "bc" else x


def real(x: np.ndarray, out: np.ndarray) -> None:
    """The real parts."""
    out[...] = x.real


def imag(x: np.ndarray, out: np.ndarray) -> None:
    """The imaginary parts."""
    out[...] = x.imag


def where(condition: np.ndarray, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """x where the condition is true, else y: of many elements without NumPy's branch for each of them."""
    truth, *values = condition.astype(bool, copy=False), *(each.astype(out.dtype, copy=False) for each in (x, y))
    word = WORDS.get(out.itemsize)
    if word is None or out.size <= FEW or truth.ndim == 0 or any(np.may_share_memory(out, each) for each in (x, y)):
        out[...] = np.where(truth, *values)
    else:
        one, other = (each.view(word) for each in values)
        choose(np.broadcast_to(truth, out.shape), one, other, out.view(word))


def clip(*args: np.ndarray, out: np.ndarray) -> None:
    """x between two bounds, in the dtype of the result."""
    x, low, high = (arg.astype(out.dtype, copy=False) for arg in args)
    np.clip(x, low, high, out=out)


#: What computes the operations that are not ufuncs.
OTHERS: dict[str, Callable[..., None]] = {ASTYPE: cast, REAL: real, IMAG: imag, WHERE: where, CLIP: clip}
