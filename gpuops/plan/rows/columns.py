"""Tiles of an outer axis on chip: neighbouring rows side by side, held by a block or a cluster of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..access import PACK, SECTOR, Access
from ..dtypes import ITEMSIZE
from ..geometry import Axes, power_of_2
from ..work import Machine, Plan
from .launch import PACKS, Design, Held, access_of, compiled, hold, launch, pack_size, staged_packs
from .on_chip import LANES_BLOCK, LARGE_BLOCK, MOST_PACKS, clusters
from .problems import Problem

BLOCK = 512  # threads of a block, two of which share a multiprocessor
SMALL_BLOCK = 256  # or of one of four, which are
SMALL_CLUSTERS = {4: 16, 2: 2}  # at most so many to a tile, by bytes of an element
REGISTERS = (4, 2)  # packs of a thread in registers; and with a mask
SEGMENT = 128  # bytes next to each other that a block reads
FAR, LONGER = 2**17, 2  # bytes from row to row from which on they are so many times as many, for elements of 4 bytes
SINGLES = 8  # bytes of a pack up to which they are, too
ROWS = 64  # rows of a block, at most
ALONE = 512  # packs per multiprocessor from which on each thread holds more of them alone, if they are narrow
RESERVED = 2**10 + 2**8  # bytes of shared memory: the system's for every block, and where blocks of a cluster meet


class Tile(NamedTuple):
    """Packs side by side, threads of a block, and blocks to a tile."""

    wide: int
    block: int
    cluster: int


def columns_on_chip(p: Problem, machine: Machine) -> Plan | None:
    """The plan for tiles of an outer axis, if they fit a cluster of blocks."""
    access = access_of(p, p.kept)
    kept = p.kept.in_packs(access.vec)
    if p.cols <= MOST_PACKS or (p.cols <= alone(p, access) and kept.size >= ALONE * machine.multiprocessors):
        return thread_per_tile(p, access, kept)
    tile = next((tile for tile in tiles(p, access, kept, machine) if p.cols <= room(p, access, tile, machine)), None)
    return None if tile is None else shared_tile(p, access, kept, tile)


def alone(p: Problem, access: Access) -> int:
    """Packs of which a thread's registers hold as many bytes as of MOST_PACKS full ones."""
    return min(PACKS[-1], MOST_PACKS * PACK // pack_size(p, access))


def thread_per_tile(p: Problem, access: Access, kept: Axes) -> Plan:
    """Each thread alone with a pack of rows."""
    return planned(p, access, kept, Tile(LANES_BLOCK, LANES_BLOCK, 1), Held(p.cols, p.cols, compiled(p.cols)), 0)


def shared_tile(p: Problem, access: Access, kept: Axes, tile: Tile) -> Plan:
    """A tile of a block or a cluster: with half as many threads as long as their registers hold it."""
    wide, block, cluster = tile
    registers, resident = REGISTERS[p.masked], LARGE_BLOCK // (block * p.width)
    while block > max(wide, LANES_BLOCK) and p.cols <= cluster * (block // 2 // wide) * registers:
        block, resident = block // 2, 0
    held = hold(p.cols, -(-p.cols // cluster), block // wide, registers, cluster=cluster)
    return planned(p, access, kept, Tile(wide, block, cluster), held, resident)


def planned(p: Problem, access: Access, kept: Axes, tile: Tile, held: Held, resident: int) -> Plan:
    """The plan with such tiles."""
    wide, block, cluster = tile
    constants = {"APART": 1, "BLOCK": block, "WIDE": wide, "CLUSTER": cluster, "RESIDENT": resident}
    blocks = -(-kept.size // wide) * cluster
    return launch(p, "columns", Design(blocks, block, access, held, kept, p.reduced, constants))


def room(p: Problem, access: Access, tile: Tile, machine: Machine) -> int:
    """Packs of a tile along the axis that fit the chip."""
    wide, block, cluster = tile
    states = (block // max(32, wide) + cluster) * access.vec * wide * 2 * ITEMSIZE[p.val]
    shared = machine.shared * block * p.width // LARGE_BLOCK - RESERVED - states
    return cluster * (block // wide) * (REGISTERS[p.masked] + staged_packs(shared, block * pack_size(p, access)))


def tiles(p: Problem, access: Access, kept: Axes, machine: Machine) -> Iterator[Tile]:
    """The tiles to try, best first: four blocks to a multiprocessor, then two, then narrower ones."""
    nbytes = access.vec * p.sizes[0]
    far = p.width == 1 and max(p.reduced.strides[0]) * p.sizes[0] >= FAR
    segment = SEGMENT * LONGER if far or nbytes <= SINGLES else SEGMENT
    wide = max(1, min(segment // nbytes, ROWS // access.vec, power_of_2(kept.size)))
    sizes, large = clusters(machine), BLOCK // p.width
    small = 0 if far or p.width > 1 else SMALL_CLUSTERS.get(p.sizes[0], 0)
    for n in sizes:
        if n <= small:
            yield Tile(wide, SMALL_BLOCK, n)
    for n in sizes:
        yield Tile(wide, large, n)
    while wide > 1 and wide * nbytes > SECTOR:
        wide //= 2
        yield Tile(wide, large, sizes[-1])
