"""Scans that round as they merge, part by part: with the states that `scan_trees` makes of the whole line.

A part may begin anywhere in the line. It is made of whole nodes of the tree, of which the first ones grow and the last
ones shrink. What is known of the line before a part is what its elder siblings merge to, on each level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..definition.scans import RADIX, Task
from .blocks import indices
from .results import Flags, report
from .scan_trees import BLOCK, COST, Before, Merge, States, as_value, merge_of, scanned, stored, totals_of
from .threads import shared

DEPTH = round(math.log(BLOCK, RADIX))  # of the nodes that `scan_trees` takes together; elements have depth 0

Summary = list[tuple[int, States]]  # the totals of nodes, along the last axis, by their level


@dataclass(frozen=True)
class Carry:
    """What is known before an element of a line."""

    place: int = 0  # of the element
    now: States = ()  # the state before it, unless a chunk begins there
    folds: tuple[States, ...] = ((),) * DEPTH  # of elder siblings, on each level below that of blocks
    blocks: tuple[list[States], list[int]] | None = None  # those of blocks, and their numbers, see `Before`

    def of(self, index: Any) -> Carry:
        """That of some lines."""

        def taken(state: States) -> States:
            return tuple([each[index] if np.ndim(each) else each for each in state])

        blocks = self.blocks and ([*map(taken, self.blocks[0])], self.blocks[1])
        return Carry(self.place, taken(self.now), tuple(map(taken, self.folds)), blocks)


class Line:
    """A way along lines of length n, from node to node."""

    def __init__(self, merge: Merge, n: int, carry: Carry) -> None:
        self.merge, self.n, self.place, self.now = merge, n, carry.place, carry.now
        self.folds, self.blocks = [*carry.folds], Before(merge)
        if carry.blocks is not None:
            self.blocks.folds, self.blocks.counts = ([*each] for each in carry.blocks)

    def carry(self) -> Carry:
        """What is known here."""
        return Carry(self.place, self.now, tuple(self.folds), (self.blocks.folds, self.blocks.counts))

    def state(self, level: int) -> States:
        """What comes before the next node, of a level. (Parents merge with the identity before their first child, which
        complex numbers that are not finite notice; and the last block has as many levels as it needs.)"""
        if level == 0 and self.place % RADIX:
            return self.now
        length = min(BLOCK, self.n - self.place // BLOCK * BLOCK)
        state = self.blocks.state()
        for above in range(DEPTH - 1, max(level, 1) - 1, -1):
            if length > RADIX**above:
                elder = self.folds[above] if self.place // RADIX**above % RADIX else self.merge.identity
                state = self.merge.combine(state, elder)
        return state

    def add(self, level: int, total: States) -> None:
        """Go on to the next node."""
        if level == 0:
            self.now = self.merge.combine(self.state(0), total)
        self.place += RADIX**level
        while level < DEPTH:
            count = (self.place // RADIX**level - 1) % RADIX
            self.folds[level] = self.merge.combine(self.folds[level], total) if count else total
            if count < RADIX - 1:
                return
            total, level = self.folds[level], level + 1
        self.blocks.add(total)


def runs(place: int, n: int) -> list[tuple[int, int]]:
    """The nodes of which n elements from a place on are made: levels, and how many follow each other."""
    level, first, last = 0, [], []
    while level < DEPTH:
        head = min(-place % RADIX, n)
        whole, tail = divmod(n - head, RADIX)
        first.append((level, head))
        last.append((level, tail))
        place, n, level = (place + head) // RADIX, whole, level + 1
    return [each for each in (*first, (level, n), *reversed(last)) if each[1]]


def nodes(fields: States, place: int) -> Any:
    """Yields levels, and the elements (…, node, element) of nodes of these."""
    first = 0
    for level, count in runs(place, fields[0].shape[-1]):
        part = slice(first, first := first + count * RADIX**level)
        yield level, tuple([each[..., part].reshape(*each.shape[:-1], count, -1) for each in fields])


def totals(rows: States, level: int, merge: Merge) -> States:
    """The totals of nodes, given their elements along the last axis."""
    for _ in range(level):
        rows = totals_of(tuple([each.reshape(*each.shape[:-1], -1, RADIX) for each in rows]), merge)
    return tuple([each[..., 0].copy() for each in rows])


def summary(x: np.ndarray, task: Task, axis: int, place: int) -> Summary:
    """What parts of lines that begin at a place are made of."""
    merge = merge_of(task)
    with Flags().kept():
        fields = merge.map(as_value(along(x, task, axis), task))
        return [(level, totals(rows, level, merge)) for level, rows in nodes(fields, place)]


def after(carry: Carry, part: Summary, task: Task, n: int) -> Carry:
    """What is known after a part of lines of length n."""
    line = Line(merge_of(task), n, carry)
    with Flags().kept():
        for level, found in part:
            for k in range(found[0].shape[-1]):
                line.add(level, tuple([each[..., k] for each in found]))
    return line.carry()


def scan(x: np.ndarray, carry: Carry, task: Task, axis: int, n: int) -> np.ndarray:
    """The results of a part of lines of length n, given what is known before it."""
    made, merge, flags = np.empty_like(x, task.dtype, subok=False), merge_of(task), Flags()
    some, into = along(x, task, axis), along(made, task, axis)
    silent = Flags() if not task.scan.wide else flags

    def work(index: Any) -> None:
        with flags.kept():
            values = as_value(some[index], task)
        with silent.kept():
            results = results_of(merge.map(values), Line(merge, n, carry.of(index[:-1])), task.exclusive)
        with flags.kept():
            stored(results, into[index], task)

    if x.size:
        lines = indices(some.shape, some.strides, range(x.ndim - 1), max(1, BLOCK // some.shape[-1]))
        shared(COST * x.size)(work, lines)
    if task.exclusive and carry.place == 0:
        into[..., :1] = task.nothing
    if flags.found and not np.isfinite(made).all():
        report(flags.found, "accumulate")
    return made


def results_of(fields: States, line: Line, exclusive: bool) -> np.ndarray:
    """The results up to each element of a part, or before it."""
    made: list[np.ndarray] = []
    for level, rows in nodes(fields, line.place):
        sums = totals(rows, level, line.merge)
        for k in range(sums[0].shape[-1]):
            part = tuple([each[..., k, :] for each in rows])
            made.append(scanned(part, line.merge, line.state(level), exclusive)[0])
            line.add(level, tuple([each[..., k] for each in sums]))
    return np.concatenate(made, -1)


def along(x: np.ndarray, task: Task, axis: int) -> np.ndarray:
    """An array with lines along its last axis, in the order of a scan."""
    x = np.moveaxis(x, axis, -1)
    return x[..., ::-1] if task.reverse else x
