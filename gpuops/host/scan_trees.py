"""Scans that round as they merge: a line is a tree, see `definition.scans.RADIX`, and so is merged in the same order
everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..definition.exact import converted
from ..definition.in_numpy import is_half
from ..definition.scans import RADIX, Task
from ..plan.geometry import Shape
from . import exact_engines
from .blocks import convert, indices, memory
from .results import Flags
from .threads import shared

BLOCK = RADIX**4  # elements that are merged together: whole nodes of the tree
PORTION, SIDE = 2**14, 8  # elements and lines side by side that are multiplied together by what is compiled
FAR = 900  # the exponent of numbers that are far from 1
COST = 64  # of an element, where that of reading a byte is 1

States = tuple[Any, ...]  # arrays, by field
Accumulate = Callable[[States], States]


class Merge(NamedTuple):
    """The states of elements, how they merge, that of none, and what becomes of a state."""

    map: Callable[[np.ndarray], States]
    combine: Callable[[States, States], States]
    identity: tuple[Any, ...]
    finish: Callable[[States], np.ndarray]
    accumulate: Accumulate | None = None  # merges those so far along the last axis, all in a few calls of NumPy's


def merge_of(task: Task) -> Merge:
    """How a task's states merge."""
    wide, options = task.bound.wide, dict(task.scan.options)
    if task.scan.wide:
        return PRODUCTS if wide.kinds["A"].kind == "f" else COMPLEX_PRODUCTS
    return Merge(lambda x: wide.map(x=x, **options), powers, tuple(wide.identities.values()), logarithm, exponentials)


def normal(*parts: Any, exponent: Any = 0) -> States:
    """A number near 1, real or in parts, and a power of two: so products of parts neither overflow nor vanish."""
    size = np.abs(parts[0]) if len(parts) == 1 else np.maximum(*map(np.abs, parts))
    shift = np.frexp(size)[1].astype(np.int64)
    return *[np.ldexp(part, -shift) for part in parts], exponent + shift


def product(a: States, b: States) -> States:
    """The product of numbers, or of complex ones in parts, with powers of two."""
    *x, i = a
    *y, j = b
    if len(x) == 1:
        return normal(x[0] * y[0], exponent=i + j)
    return normal(x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0], exponent=i + j)


def joined(s: States) -> np.ndarray:
    """The numbers."""
    *parts, exponent = s
    shift = np.clip(exponent, -5000, 5000).astype(np.int32)
    if len(parts) == 1:
        return np.asarray(np.ldexp(parts[0], shift))
    made = np.empty(parts[0].shape, np.complex128)
    made.real, made.imag = (np.ldexp(part, shift) for part in parts)
    return made


def powers(a: Any, b: Any) -> States:
    """Merge sums of exponentials, with the bits of `definition.records.relative`. (Where an infinity or NaN is the
    greatest element, what the rest is does not matter.)"""
    (x, i), (y, j) = a, b
    first, top = x >= y, np.maximum(x, y)
    share = np.exp(np.fmax(np.minimum(x, y) - top, -1000.0))  # (0 beside -inf)
    return top, np.where(first, i, j) + (np.where(first, j, i) + 1.0) * share


def exponentials(states: States) -> States:
    """The same of those so far along the last axis, with all exponentials at once."""
    top, rest = states
    tops, rests = np.maximum.accumulate(top, -1), rest.copy()
    before, y, j = tops[..., :-1], top[..., 1:], rest[..., 1:]
    first = before >= y
    share = np.exp(np.fmax(np.minimum(before, y) - tops[..., 1:], -1000.0))
    less, times = np.where(first, 0.0, 1.0), np.where(first, 1.0, share)
    more = np.where(first, (j + 1.0) * share, j)
    now = rest[..., 0]
    for k in range(share.shape[-1]):
        now = rests[..., k + 1] = (now + less[..., k]) * times[..., k] + more[..., k]
    return tops, rests


def logarithm(s: States) -> np.ndarray:
    """The logarithms of sums of exponentials."""
    top, rest = s
    made = np.log1p(rest)  # (of -1, where the greatest element is -inf)
    made += top
    return made


def bounded(x: np.ndarray) -> bool:
    """Whether no product of elements that follow each other along the last axis is far from 1, unless it is 0."""
    sizes = np.add.accumulate(np.log2(np.abs(np.where(x == 0, 1.0, x))), -1)
    return bool(np.maximum(sizes.max(-1), 0).max() - np.minimum(sizes.min(-1), 0).min() < FAR)


#: Products that are bounded.
PLAIN = Merge(
    lambda x: (x,), lambda a, b: (a[0] * b[0],), (1.0,), lambda s: s[0], lambda s: (np.multiply.accumulate(s[0], -1),)
)
PRODUCTS = Merge(lambda x: normal(x), product, (1.0, np.int64(0)), joined)
COMPLEX_PRODUCTS = Merge(lambda x: normal(x.real, x.imag), product, (1.0, 0.0, np.int64(0)), joined)


class Before:
    """What comes before the next node of a line, given the totals of those before it."""

    def __init__(self, merge: Merge) -> None:
        self.merge = merge
        self.folds: list[States] = [merge.identity]  # of elder siblings, on each level
        self.counts = [0]

    def state(self) -> States:
        """What comes before the next node."""
        found = self.merge.identity
        for fold in reversed(self.folds):
            found = self.merge.combine(found, fold)
        return found

    def add(self, total: States) -> None:
        """Go on to the next node."""
        for level in range(len(self.folds)):
            self.folds[level] = self.merge.combine(self.folds[level], total)
            self.counts[level] += 1
            if self.counts[level] < RADIX:
                return
            total, self.folds[level], self.counts[level] = self.folds[level], self.merge.identity, 0
        self.folds.append(total)
        self.counts.append(1)


def scan(x: np.ndarray, y: np.ndarray, axis: int, task: Task, flags: Flags) -> None:
    """Write the results of x to y."""
    merge = merge_of(task)
    if axis != x.ndim - 1:
        x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    silent = Flags() if not task.scan.wide else flags
    loops = exact_engines.worthwhile(x.size, "compiled_products") if task.scan.wide else None
    if loops is not None and by_loops(loops, x, y, task, flags):
        return
    logs = exact_engines.loaded(x.size, "compiled_logs") if merge.finish is logarithm else None

    def work(index: Any) -> None:
        before, some, made = Before(merge), x[index], y[index]
        for first in range(0, x.shape[-1], BLOCK):
            part = (..., slice(first, first + BLOCK))
            with flags.kept():
                values = as_value(some[part], task)
            with silent.kept():
                short = merge is PRODUCTS and x.shape[-1] < BLOCK and bounded(values)
                now, state = (PLAIN, PLAIN.identity) if short else (merge, before.state())
                if logs is not None:
                    results, total = scanned_logs(logs, values, merge, state, task.exclusive)
                else:
                    results, total = scanned(now.map(values), now, state, task.exclusive)
            with flags.kept():
                stored(results, made[part], task)
            if task.exclusive and first == 0:
                made[..., 0] = task.nothing
            if total is not None:
                before.add(total)

    lines = indices(x.shape, x.strides, range(x.ndim - 1), max(1, BLOCK // x.shape[-1]))
    shared(COST * x.size)(work, lines)


def by_loops(loops: Any, x: np.ndarray, y: np.ndarray, task: Task, flags: Flags) -> bool:
    """Write products of lines along the last axis, by what Numba compiles. Tells whether it could."""
    n, wide = x.shape[-1], task.bound.wide.kinds["A"]
    products = loops.products if wide.kind == "f" else loops.complex_products
    told = {loops.INVALID: "invalid value", loops.OVERFLOW: "overflow", loops.UNDERFLOW: "underflow"}
    every: list[int] = []

    def work(index: Any) -> None:
        some, made, found = x[index], y[index], 0
        count = some.size // n
        levels = (count, 1 + math.ceil(math.log(max(1, n // RADIX), RADIX)))
        folds, powers = np.ones(levels, wide), np.zeros(levels, np.int64)
        step = max(RADIX, PORTION // count // RADIX * RADIX)
        for first in range(0, n, step):
            part = (..., slice(first, first + step))
            given, results = some[part], made[part]
            lie = given.flags.c_contiguous and results.flags.c_contiguous and given.dtype == results.dtype == wide
            with flags.kept():
                values = given if lie else as_value(given, task)
            lines = [each.reshape(count, -1) for each in (values, results if lie else values)]
            found |= products(*lines, folds, powers, first // RADIX, n, task.exclusive)
            if found & loops.FAILED:
                break
            if not lie:
                with flags.kept():
                    stored(values, results, task)
        every.append(found)

    if x.size <= PORTION:
        work(...)
    else:
        least = 1 if abs(x.strides[-1]) == x.itemsize else SIDE
        shared(8 * x.nbytes)(work, indices(x.shape, x.strides, range(x.ndim - 1), max(least, PORTION // n)))
    flags.found.update([name for flag, name in told.items() if any(found & flag for found in every)])
    return not any(found & loops.FAILED for found in every)


def scanned_logs(
    loops: Any, x: np.ndarray, merge: Merge, first: States, exclusive: bool
) -> tuple[np.ndarray, States | None]:  # fmt: skip
    """The same as `scanned`, of logarithms of sums of exponentials, by what Numba compiles. The values are lost."""
    shape, n = x.shape, x.shape[-1]
    x, count, whole = x.reshape(-1, n), -(-n // RADIX), None
    shares, state = memory("shares", x.shape, x.dtype, (0, 1)), column(first, (*shape[:-1], 1))
    if count > 1:
        chunks = [np.full((len(x), count), none) for none in merge.identity]
        loops.differences(x, chunks[0], shares)
        loops.totals(x, np.exp(shares, shares), *chunks)
        totals = tuple([each.reshape(*shape[:-1], count) for each in chunks])
        state, whole = before(totals, merge, first)
    lines = [np.ascontiguousarray(each).reshape(-1, count) for each in state]
    loops.differences(x, lines[0], shares)
    loops.results(x, np.exp(shares, shares), *lines, exclusive)
    np.log1p(shares, shares)
    shares += x
    return shares.reshape(shape), whole if n == BLOCK else None


def as_value(x: np.ndarray, task: Task) -> np.ndarray:
    """Elements in the accumulator's dtype, of their values in that of the arithmetic."""
    bound = task.bound
    if x.dtype != bound.val and not np.can_cast(x.dtype, bound.val):
        x = x.astype(bound.val)
    made = np.empty(x.shape, bound.wide.kinds["A"])
    if is_half(x.dtype):
        convert(x, single := np.empty(x.shape, np.float32))
        x = single
    np.copyto(made, x, casting="unsafe")
    return made


def stored(made: np.ndarray, y: np.ndarray, task: Task) -> None:
    """Write results, rounded once."""
    y[...] = converted(made, task.dtype) if task.dtype.kind == "V" else made.astype(task.dtype, copy=False)


# ------------------------------------------------------------------------------------------------------------- the tree
#
# States are arrays (…, node, child): each step takes the next child of all nodes.


def scanned(fields: States, merge: Merge, first: States, exclusive: bool) -> tuple[np.ndarray, States | None]:
    """The results up to each element of a node, or before it, given what comes before the node; and the node's total,
    if it is whole."""
    *lines, n = fields[0].shape
    chunks, whole = children(fields, merge), None
    if chunks[0].shape[-2] == 1:
        state = column(first, (*lines, 1))
    else:
        state, whole = before(totals_of(chunks, merge), merge, first)
    after = tuple([np.concatenate((one[..., None], each), -1) for one, each in zip(state, chunks, strict=True)])
    found = accumulated(after, merge)
    made = merge.finish(tuple([each[..., :-1] if exclusive else each[..., 1:] for each in found]))
    return made.reshape(*lines, -1)[..., :n], whole if n == BLOCK else None


def before(totals: States, merge: Merge, first: States) -> tuple[States, States]:
    """What comes before each of some nodes, given their totals and what comes before all; and the total of all."""
    *lines, n = totals[0].shape
    folds = accumulated(children(totals, merge), merge)
    sums = tuple([each[..., -1] for each in folds])
    if sums[0].shape[-1] == 1:
        parent, whole = column(first, (*lines, 1)), tuple([each[..., 0] for each in sums])
    else:
        parent, whole = before(sums, merge, first)
    elder = [np.roll(each, 1, -1) for each in folds]
    for each, none in zip(elder, merge.identity, strict=True):
        each[..., 0] = none
    found = merge.combine(tuple([each[..., None] for each in parent]), tuple(elder))
    return tuple([each.reshape(*lines, -1)[..., :n] for each in found]), whole


def children(states: States, merge: Merge) -> States:
    """States along the last axis as those of nodes' children, filled up with the identity."""
    *lines, n = states[0].shape
    size = min(n, RADIX)
    if n % size:
        rests = [np.full((*lines, -n % size), none) for none in merge.identity]
        states = tuple([np.concatenate(each, -1) for each in zip(states, rests, strict=True)])
    return tuple([each.reshape(*lines, -1, size) for each in states])


def column(state: States, shape: Shape) -> States:
    """A state of each line, along a last axis of length 1."""
    return tuple([np.broadcast_to(np.asarray(each)[..., None], (*shape[:-1], 1)) for each in state])


def totals_of(nodes: States, merge: Merge) -> States:
    """The states of nodes, whose children merge one after the other."""
    return tuple([each[..., -1] for each in accumulated(nodes, merge)])


def accumulated(nodes: States, merge: Merge) -> States:
    """The states so far of the children."""
    if merge.accumulate is not None:
        return merge.accumulate(nodes)
    made = [np.empty_like(each) for each in nodes]
    state = None
    for k in range(nodes[0].shape[-1]):
        child = tuple([each[..., k] for each in nodes])
        state = child if state is None else merge.combine(state, child)
        for each, new in zip(made, state, strict=True):
            each[..., k] = new
    return tuple(made)
