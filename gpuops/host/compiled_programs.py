"""Programs as loops that Numba compiles: one for each program and each way in which its operands repeat.

A block is seen as rows. Steps are rounded and cast as NumPy's are: Numba neither contracts nor reorders operations. A
loop tells whether an error may have been met: then NumPy computes the block again, and reports it.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numba import from_dtype, njit, types

from ..definition.program import ASTYPE, CLIP, WHERE, Program, Step
from ..plan.geometry import Shape, order
from .numba_compiler import kept
from .program_loops import COMPARISONS, LOGICAL, Loop, dtype_at, looked_at

LOCK = threading.Lock()  # one thread compiles what others wait for
REPEATED = 8  # elements of a block for each one of an operand that is copied before it is read
LOOP = """
def {name}({parameters}):
    bad = np.uint32(0)
    for i in range(into.shape[0]):
        row = into[i]
        {rows}
        for j in range(row.size):
            {elements}
    return bad
"""
#: How an operand is read in row i and column j, by whether it differs between rows, and between columns.
ROWS = {(True, True): "r{0} = a{0}[i]", (False, True): "r{0} = a{0}[0]", (True, False): "e{0} = a{0}[i, 0]",
        (False, False): "e{0} = a{0}[0, 0]"}  # fmt: skip
GREATER, LESS = "{0} if {0} > {1} or {0} != {0} else {1}", "{0} if {0} < {1} or {0} != {0} else {1}"
SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^",
}  # fmt: skip
#: Steps as expressions of their operands, which have been cast; ``T`` is the result's type.
TEXTS = {name: f"{{0}} {sign} {{1}}" for name, sign in SIGNS.items()} | {
    "square": "{0} * {0}", "positive": "{0}", "conjugate": "{0}", "sqrt": "math.sqrt({0})", "reciprocal": "T(1) / {0}",
    "isnan": "{0} != {0}", "isinf": "abs({0}) == np.inf", "isfinite": "{0} - {0} == {0} - {0}", "minimum": LESS,
    "maximum": GREATER, "logical_and": "{0} and {1}", "logical_or": "{0} or {1}", "logical_xor": "{0} != {1}",
    "logical_not": "not {0}", WHERE: "{1} if {0} else {2}", ASTYPE: "{0}", "invert": "~{0}", "negative": "-{0}",
    "absolute": "abs({0})",
}  # fmt: skip
OF_TRUTHS = {"bitwise_and": "{0} and {1}", "bitwise_or": "{0} or {1}", "bitwise_xor": "{0} != {1}", "invert": "not {0}"}
OF_INTEGERS = {"negative": "T(0) - {0}", "absolute": "{0} if {0} >= 0 else T(0) - {0}"}
UNSIGNED = {"absolute": "{0}"}
BY_KIND = {"b": OF_TRUTHS, "i": OF_INTEGERS, "u": OF_INTEGERS | UNSIGNED}


@lru_cache(maxsize=256)
def loop(program: Program) -> Loop:
    """What computes blocks of a program: as `call`."""
    return partial(call, lru_cache(partial(compiled, program)))


def call(loops: Callable[..., Any], arrays: Sequence[np.ndarray], numbers: Sequence[Any], into: np.ndarray) -> bool:
    """Compute a block; False, if NumPy has to: operands do not lie in rows, or an error may have been met."""
    if all([each.flags.c_contiguous and each.flags.aligned for each in (*arrays, into)]):
        rows, target = [each.reshape(1, -1) for each in arrays], into.reshape(1, -1)
    else:
        dims = order(into.strides)
        turned = into.transpose(dims)
        seen = rows_of(turned.shape, tuple([each.transpose(dims).strides for each in arrays]))
        parts = [each.transpose(dims)[index] for each, (index, _) in zip(arrays, seen, strict=True)]
        parts = [each.copy() if each.size * REPEATED <= into.size else each for each in parts]
        if not all([each.flags.c_contiguous and each.flags.aligned for each in (*parts, turned)]):
            return False
        cut = seen[0][1]
        shapes = [math.prod(each.shape[:cut]) for each in parts]
        rows = [each.reshape(n, -1) for each, n in zip(parts, shapes, strict=True)]
        target = turned.reshape(math.prod(turned.shape[:cut]), -1)
    repeats = tuple([(each.shape[0] == target.shape[0], each.shape[1] == target.shape[1]) for each in rows])
    with LOCK:
        run = loops(repeats)
    return not run(*map(as_bytes, rows), *numbers, as_bytes(target))


@lru_cache(maxsize=1024)
def rows_of(shape: Shape, strides: tuple[Shape, ...]) -> tuple[tuple[Any, int], ...]:
    """The index of what each operand repeats, and from which dim on dims are in a row: the innermost ones of which
    each operand repeats all or none."""
    long = [d for d in range(len(shape)) if shape[d] > 1]
    cut = max([d for last, d in pairwise(long) if any((s[d] == 0) != (s[last] == 0) for s in strides)], default=0)
    return tuple([
        (tuple([slice(1 if each[d] == 0 and n > 1 else n) for d, n in enumerate(shape)]), cut) for each in strides
    ])  # fmt: skip


def as_bytes(array: np.ndarray) -> np.ndarray:
    """Truth values as bytes, of which those other than 0 are true."""
    return array.view(np.uint8) if array.dtype == bool else array


def compiled(program: Program, repeats: tuple[tuple[bool, bool], ...]) -> Callable[..., int]:
    """The loop of a program."""
    text = printed(program, repeats)
    name = f"program_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    scope: dict[str, Any] = {"np": np, "math": math, "__name__": __name__}
    exec(compile(text.replace("{name}", name), __file__, "exec"), scope)
    arrays = [types.Array(memory_type(dtype), 2, "C", readonly=True) for dtype in program.arrays]
    numbers = [from_dtype(dtype) for dtype in program.constants]
    signature = types.uint32(*arrays, *numbers, types.Array(memory_type(program.dtype), 2, "C"))
    made: Callable[..., int] = kept(partial(njit, signature, nogil=True, error_model="numpy"), scope[name])
    return made


def memory_type(dtype: np.dtype) -> Any:
    """The type of elements in memory."""
    return types.uint8 if dtype.kind == "b" else from_dtype(dtype)


def printed(program: Program, repeats: tuple[tuple[bool, bool], ...]) -> str:
    """The text of a loop."""
    count, rows, elements = len(program.arrays), [], []
    for k, (dtype, each) in enumerate(zip(program.arrays, repeats, strict=True)):
        rows.append(ROWS[each].format(k))
        elements.append(f"v{k} = {f'r{k}[j]' if each[1] else f'e{k}'}{' != 0' * (dtype.kind == 'b')}")
    elements += [f"v{k} = c{k}" for k in range(count, program.first)]
    looked = looked_at(program)
    for i, step in enumerate(program.steps):
        place = program.first + i
        elements.append(f"v{place} = {text_of(program, step)}")
        elements += [f"bad |= np.uint32(v{place} - v{place} != v{place} - v{place})"] * (i in looked)
    elements.append(f"row[j] = v{program.first + len(program.steps) - 1}")
    parameters = [*(f"a{k}" for k in range(count)), *(f"c{k}" for k in range(count, program.first)), "into"]
    text = LOOP.replace("{parameters}", ", ".join(parameters)).replace("{rows}", "\n        ".join(rows or ["pass"]))
    return text.replace("{elements}", "\n            ".join(elements))


def text_of(program: Program, step: Step) -> str:
    """A step as an expression, in the type of its result."""
    *operands, result = step.dtypes
    if step.name in LOGICAL:
        operands = [np.dtype(bool)] * len(operands)
    pairs = zip(step.args, operands, strict=True)
    given = [cast(f"v{place}", dtype_at(program, place), dtype) for place, dtype in pairs]
    if step.name in COMPARISONS and operands[0].kind == "b":
        given = [f"np.uint8({each})" for each in given]
    if step.name == CLIP:
        x, low, high = given
        text = LESS.format(f"({GREATER.format(x, low)})", high)
    else:
        template = BY_KIND.get(operands[0].kind, {}).get(step.name, TEXTS[step.name])
        text = template.replace("T(", f"np.{result.name}(").format(*given)
    return cast(f"({text})", operands[0] if step.name == ASTYPE else None, result)


def cast(text: str, given: np.dtype | None, dtype: np.dtype) -> str:
    """An expression in another dtype; None: of an operation, as Numba gives it."""
    if given == dtype or (given is None and dtype.kind == "b"):
        return text
    return f"({text} != 0)" if dtype.kind == "b" else f"np.{dtype.name}({text})"
