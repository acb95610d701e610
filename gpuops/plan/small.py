"""Small arrays: how the threads of a block are divided among outputs, whatever the strides."""

from __future__ import annotations

from typing import NamedTuple

from .access import SECTOR
from .geometry import floor_power_of_2, log2, power_of_2

KERNELS = ("reduce_small", "softmax_small", "broadcast_elements")  # which take any strides, and so many calls share
BLOCK = 1024  # most threads of a block
LEAST = 128  # threads of a block whose outputs have at most a warp each
FILLED = 1024  # threads per multiprocessor beyond which a thread takes more than EACH elements instead
EACH = 4  # elements of a thread, if there are threads enough
SIDE = 32  # most outputs side by side in a block


class Shares(NamedTuple):
    """How threads are divided among outputs, in powers of two: ``struct Shares`` of ``kernels/common/axes.cuh``."""

    lanes: int = 0  # log2 of the threads of an output
    wide: int = 0  # log2 of the outputs of a block
    across: bool = False  # whether neighbouring threads have neighbouring outputs

    @property
    def block(self) -> int:
        """Threads of a block."""
        return 1 << self.lanes + self.wide


def shared(outputs: int, length: int, itemsize: int, across: bool, multiprocessors: int, least: int = 1) -> Shares:
    """How threads are divided among outputs of ``length`` elements, at least ``least`` threads to each."""
    room = floor_power_of_2(multiprocessors * FILLED // max(1, outputs))
    lanes = max(least, min(power_of_2(-(-length // EACH)), BLOCK, max(EACH, room)))
    if not across:
        return Shares(log2(lanes), log2(max(1, LEAST // lanes)) if lanes <= SIDE else 0)
    sectors = max(SECTOR // itemsize, floor_power_of_2(outputs // multiprocessors), 1)
    wide = max(1, min(SIDE, power_of_2(outputs), sectors, BLOCK // least))
    return Shares(log2(min(max(lanes, 32 // wide), BLOCK // wide)), log2(wide), True)
