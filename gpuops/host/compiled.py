"""Reductions that Numba compiles: one loop, printed from a record's definition, over elements that lie side by side.

A block is seen as (outer, n, inner). Rows are taken as columns of `LANES` elements, narrow columns some side by side:
so loops are vectorised. Four elements of a column are merged before they are merged with what there is.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from ..definition.expressions import Lines
from ..definition.reduction import Bound
from .numba_compiler import compiled

LANES = 64  # elements of a row that are taken side by side; of 8 bytes 128, with which sums take 0.6 of the time
WIDE = 512  # elements side by side, up to which several of a column are
TILE = 2**14  # elements side by side that are taken together, at most

LOOPS = """
def {name}(x, mask, center, {outs}, outer, inner, width, n, rest, xo, xn, mo, mn):
    fours = n - n % np.uintp(4)
    {lanes}
    centers = np.empty(width, np.float64)
    for o in range(outer):
        for i in range(width):
            {begin}
        for f in range(np.uintp(0), width if center.size > 1 else np.uintp(0), inner):
            for i in range(inner):
                centers[f + i] = center[o * inner + i]
        for j in range(np.uintp(0), fours, np.uintp(4)):
            x0, m0 = o * xo + j * xn, o * mo + j * mn
            x1, x2, x3, m1, m2, m3 = x0 + xn, x0 + xn + xn, x0 + xn + xn + xn, m0 + mn, m0 + mn + mn, m0 + mn + mn + mn
            for i in range(width):
                {four}
        for j in range(fours, n + np.uintp(1)):
            x0, m0 = o * xo + j * xn, o * mo + j * mn
            for i in range(width if j < n else rest):
                {one}
        half = width // np.uintp(2)
        while half >= inner:
            for i in range(half):
                {fold}
            half = half // np.uintp(2)
        for i in range(inner):
            {end}
"""


@register_jitable
def maximum(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b


@register_jitable
def minimum(a: Any, b: Any) -> Any:
    return a if a < b or a != a else b


@register_jitable
def fmax(a: Any, b: Any) -> Any:
    return a if a > b or b != b else b


@register_jitable
def fmin(a: Any, b: Any) -> Any:
    return a if a < b or b != b else b


#: Primitives that merge, where they are operators.
MERGES = {"add": "({} + {})", "multiply": "({} * {})"}
FUNCTIONS: dict[str, Any] = {"np": np, "math": math, "maximum": maximum, "minimum": minimum, "fmax": fmax, "fmin": fmin}


@lru_cache(maxsize=256)
def loops(bound: Bound, masked: bool) -> Any:
    """The loop of a reduction all of whose fields merge alone."""
    names, merges = bound.state.names or (), [MERGES.get(merge, merge + "({}, {})") for merge in bound.merges or ()]
    scope: dict[str, Any] = FUNCTIONS | {"acc": bound.kinds["A"].type}
    for f, name in enumerate(names):
        scope |= {f"t{f}": bound.state[name].type, f"id{f}": bound.identities[name]}
    elements = [element(bound, masked, k, scope) for k in range(4)]

    def each(text: str) -> list[str]:
        """A statement for each field."""
        return [text.format(f=f) for f in range(len(names))]

    def added(f: int, value: str) -> str:
        return f"l{f}[i] = {merges[f].format(f'l{f}[i]', value)}"

    def four(f: int) -> str:
        """Contributions of four elements."""
        first, second = (merges[f].format(f"y{f}_{k}", f"y{f}_{k + 1}") for k in (0, 2))
        return merges[f].format(first, second)

    fields = range(len(names))
    return made(
        {
            "outs": [", ".join(f"out{f}" for f in fields)], "lanes": each("l{f} = np.empty(width, t{f})"),
            "begin": each("l{f}[i] = id{f}"), "end": each("out{f}[o * inner + i] = l{f}[i]"),
            "four": [*(line for lines in elements for line in lines), *(added(f, four(f)) for f in fields)],
            "one": [*elements[0], *(added(f, f"y{f}_0") for f in fields)],
            "fold": [added(f, f"l{f}[i + half]") for f in fields],
        },
        scope,
    )  # fmt: skip


def element(bound: Bound, masked: bool, k: int, scope: dict[str, Any]) -> list[str]:
    """Statements that give what an element contributes to each field; their constants go into the scope."""
    lines = Lines("loop", f"e{k}_", {"x": f"x_{k}", "center": "centers[i]"})
    values = [lines.name(tree) for tree in bound.map_tree.values()]
    scope |= lines.constants
    takes = " and ".join([f"mask[m{k} + i] != 0"] * masked + [f"v{k} == v{k}"] * (bound.takes is not None))
    left = [f" if {takes} else id{f}" if takes else "" for f in range(len(values))]
    contributions = [f"y{f}_{k} = t{f}({value}){left[f]}" for f, value in enumerate(values)]
    return [f"v{k} = x[x{k} + i]{' != 0' * (bound.x.kind == 'b')}", f"x_{k} = acc(v{k})", *lines.lines, *contributions]


def made(parts: dict[str, list[str]], scope: dict[str, Any]) -> Any:
    """The loops with these statements, compiled under a name that tells them from others on disk."""
    text = LOOPS
    for name, lines in parts.items():
        indent = LOOPS.partition(f"{{{name}}}")[0].rpartition("\n")[2]
        text = text.replace(f"{{{name}}}", f"\n{indent}".join(lines))
    constants = sorted((name, repr(value)) for name, value in scope.items() if name not in FUNCTIONS)
    name = f"loops_{hashlib.sha256(repr((text, constants)).encode()).hexdigest()[:16]}"
    scope["__name__"] = __name__
    exec(compile(text.replace("{name}", name), __file__, "exec"), scope)
    return compiled(error_model="numpy")(scope[name])


class Flat(NamedTuple):
    """Elements of (outer, n, inner) in one dimension, and the steps along the first two."""

    array: np.ndarray
    outer: int
    n: int


def flat(x: np.ndarray) -> Flat | None:
    """Elements in one dimension, with what lies between them; None if neighbours are apart, or in another order."""
    steps = [stride // x.itemsize for stride in x.strides]
    if x.flags.c_contiguous:
        return Flat(x.reshape(-1), x.shape[1] * x.shape[2], x.shape[2])
    if (x.shape[2] > 1 and steps[2] != 1) or min(steps) < 0 or any(stride % x.itemsize for stride in x.strides):
        return None
    span = 1 + sum((n - 1) * step for n, step in zip(x.shape, steps, strict=True))
    return Flat(np.lib.stride_tricks.as_strided(x, (span,), (x.itemsize,)), steps[0], steps[1])


NO_CENTER, NO_MASK = np.zeros(1), np.zeros(1, bool)  # in their place


def states(
    bound: Bound, x: np.ndarray, mask: np.ndarray | None = None, center: np.ndarray | None = None
) -> tuple[np.ndarray, ...] | None:
    """The states (outer, inner) of elements (outer, n, inner), by field; None if these are not in one dimension."""
    outer, n, inner = x.shape
    seen, other = flat(x), flat(mask) if mask is not None else Flat(NO_MASK, 0, 0)
    if seen is None or other is None:
        return None
    together = seen.n == inner and (mask is None or other.n == inner)  # neighbours along n follow each other
    if inner > TILE:
        tiles = [slice(first, first + TILE) for first in range(0, inner, TILE)]
        given = [[each if each is None else each[..., tile] for each in (x, mask, center)] for tile in tiles]
        parts: Any = [states(bound, *each) for each in given]  # type: ignore[arg-type]
        return tuple([np.concatenate(each, 1) for each in zip(*parts, strict=True)])
    lanes = LANES * (1 + (x.itemsize == 8))
    if inner < lanes and not together:
        return None
    folds = 2 ** int(math.log2(max(1, (lanes if inner == 1 else WIDE) // inner))) if together else 1
    width = inner * folds
    sizes = (outer, inner, width, n * inner // width, n * inner % width)
    steps = (seen.outer, width if together else seen.n, other.outer, width if together and other.n else other.n)
    outs = [np.empty(outer * inner, bound.state[name]) for name in bound.state.names or ()]
    centers = NO_CENTER if center is None else np.append(center, 0.0)  # (one alone would be none)
    elements = seen.array.view(np.uint8) if x.dtype == bool else seen.array
    run, numbers = loops(bound, mask is not None), map(np.uintp, (*sizes, *steps))
    run(elements, other.array.view(np.uint8), centers, *outs, *numbers)
    return tuple([each.reshape(outer, inner) for each in outs])
