"""Small arrays: how the threads of a block share outputs, whatever lies in memory."""

from __future__ import annotations

from typing import NamedTuple

from .access import SECTOR
from .geometry import floor_power_of_2, log2, power_of_2

BLOCK = 1024  # threads of a block, at most
LEAST = 128  # and where some lanes of a warp have an output
FILLED = 1024  # threads that a multiprocessor has at least, before they take more than EACH elements
EACH = 4  # elements of a thread, if there are threads enough
SIDE = 32  # outputs of a block side by side, at most


class Shares(NamedTuple):
    """How threads share outputs, as ``struct Shares`` in ``kernels/common/axes.cuh`` has it: powers of two."""

    lanes: int = 0  # log2 of the threads of an output
    wide: int = 0  # log2 of the outputs of a block
    across: bool = False  # whether neighbouring threads have neighbouring outputs

    @property
    def block(self) -> int:
        """Threads of a block."""
        return 1 << self.lanes + self.wide


def shared(outputs: int, length: int, itemsize: int, across: bool, multiprocessors: int, least: int = 1) -> Shares:
    """How threads share outputs of ``length`` elements each: ``least`` or more threads have one."""
    room = floor_power_of_2(multiprocessors * FILLED // max(1, outputs))
    lanes = max(least, min(power_of_2(-(-length // EACH)), BLOCK, max(EACH, room)))
    if not across:
        return Shares(log2(lanes), log2(max(1, LEAST // lanes)) if lanes <= SIDE else 0)
    sectors = max(SECTOR // itemsize, floor_power_of_2(outputs // multiprocessors), 1)
    wide = max(1, min(SIDE, power_of_2(outputs), sectors, BLOCK // least))
    return Shares(log2(min(max(lanes, 32 // wide), BLOCK // wide)), log2(wide), True)
