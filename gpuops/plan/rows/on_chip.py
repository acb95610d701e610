"""Rows on chip: in the registers and the shared memory of some lanes, a block, a cluster of blocks, or the grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..access import PACK, RAGGED, Access
from ..geometry import floor_power_of_2, power_of_2
from ..work import Machine, Plan
from .classic import STATES
from .launch import Design, Held, access_of, compiled, hold, launch, pack_size, staged_packs
from .problems import Problem

MOST_PACKS = 8  # of a thread in registers, of 16 bytes
NARROW = 4  # narrower ones are at most so many times as many
LANE_PACKS = 2  # of a lane, where a row is that of some lanes
NARROW_PACKS = 4  # the same of short rows in narrow packs
WARP_PACKS = 176  # of a row, before it is that of a whole block
LANES_BLOCK = 128  # threads of a block that has several rows
SHORT, FEW_PACKS = 2**11, 4  # rows of at most SHORT packs: one block, FEW_PACKS per thread
BLOCK = 256  # threads of a block of those that share a longer one, four of which share a multiprocessor
PART = 768  # packs of such a block, at least
LARGE_BLOCK = 1024  # threads of a block that has a multiprocessor alone
SPREAD = 256  # packs of a block, at least, if few rows are spread over many
GRID_PACKS = 6  # packs of a thread in registers if the grid shares rows


class BlockShape(NamedTuple):
    """How blocks hold a row, if that is long."""

    cluster: int  # blocks
    block: int  # threads of each
    registers: int  # packs of a thread
    staged: int = 0  # and in shared memory

    @property
    def room(self) -> int:
        """Packs of a cluster."""
        return self.cluster * self.block * (self.registers + self.staged)


def rows_on_chip(p: Problem, machine: Machine) -> Plan | None:
    """The plan for rows, if they fit a cluster of blocks: some lanes to a row, or blocks."""
    largest = BLOCK * machine.cluster if machine.cluster > 1 else LARGE_BLOCK  # threads to a row, without staging
    access = access_of(p, p.reduced, registers=MOST_PACKS * largest if p.width == 1 else SHORT)
    packs, times = p.cols // access.vec, narrow(p, access)
    enough = p.rows >= machine.multiprocessors
    if packs <= WARP_PACKS * times and (enough or packs <= 32 * LANE_PACKS * times):
        return lanes_per_row(p, access, packs, times)
    return blocks_per_row(p, access, packs, times, machine)


def lanes_per_row(p: Problem, access: Access, packs: int, times: int) -> Plan:
    """Some lanes of a warp to each row."""
    short = times > 1 and p.cols < RAGGED * PACK // max(p.sizes)
    group = min(32, power_of_2(-(-packs // ((NARROW_PACKS if short else LANE_PACKS) * times))))
    dense = p.dense and not access.ragged and access.vec * min(p.sizes[0], p.sizes[2]) < PACK
    held = Held(packs, packs, compiled(-(-packs // group)))
    rows = LANES_BLOCK // group
    whole = all([rows * p.cols * p.sizes[k] % PACK == 0 for k in (0, 2)])
    constants = {"CLUSTER": 1, "GROUP": group, "DENSE": dense and whole}
    return along_packs(p, "rows", access, held, (-(-p.rows // rows), LANES_BLOCK), constants)


def blocks_per_row(p: Problem, access: Access, packs: int, times: int, machine: Machine) -> Plan | None:
    """A block to a row, or a cluster of them: for long rows, and to spread few rows over the machine."""
    short = packs <= SHORT * times
    most = min(machine.cluster, machine.multiprocessors // p.rows, packs // SPREAD)  # few rows are spread over many
    if p.width == 1 and not short:
        most = max(most, min(machine.cluster, packs // (PART * times)))
    cluster = floor_power_of_2(max(1, most))
    alone = p.rows * cluster <= machine.multiprocessors
    shape = block_shape(p, access, machine, cluster, SHORT // FEW_PACKS if short or alone else BLOCK)
    if shape is None:
        return None
    part = -(-packs // shape.cluster)
    each = 1 if alone else times * (FEW_PACKS * p.width if short else MOST_PACKS)
    block = min(shape.block, -(-part // (32 * each)) * 32)
    held = hold(packs, part, block, shape.registers, cluster=shape.cluster)
    constants = {"CLUSTER": shape.cluster, "GROUP": 0, "DENSE": False}
    full = held.staged > 0 or held.registers > FEW_PACKS * times
    return along_packs(p, "rows", access, held, (p.rows * shape.cluster, block), constants, full)


def narrow(p: Problem, access: Access) -> int:
    """How many packs a thread takes in the place of one of 16 bytes."""
    return min(NARROW, PACK // (access.vec * max(p.sizes)))


def block_shape(p: Problem, access: Access, machine: Machine, cluster: int, block: int) -> BlockShape | None:
    """The first shape of blocks that holds a row."""
    packs = p.cols // access.vec
    return next((each for each in block_shapes(p, access, machine, cluster, block) if packs <= each.room), None)


def block_shapes(p: Problem, access: Access, machine: Machine, cluster: int, block: int) -> Iterator[BlockShape]:
    """The registers of so many blocks of so many threads hold a row, or those of a single large block; or registers and
    shared memory, of blocks that share a multiprocessor or, if that will not do, have it alone."""
    most, block, large = MOST_PACKS * narrow(p, access), block // p.width, LARGE_BLOCK // p.width
    yield BlockShape(cluster, block, most)
    if p.width == 1 and cluster == 1:
        yield BlockShape(1, large, most)
    for threads, registers in ((block, most), (large, most // 2)):
        staged = staged_packs(machine.shared * threads // large - STATES, threads * pack_size(p, access))
        for n in clusters(machine):
            if n >= cluster:
                yield BlockShape(n, threads, registers, staged)


def clusters(machine: Machine) -> list[int]:
    """The blocks that a cluster may have."""
    return [2**n for n in range(machine.cluster.bit_length())]


def rows_on_grid(p: Problem, machine: Machine) -> Plan | None:
    """The plan for rows that the blocks which run at a time share, if they fit them."""
    access = access_of(p, p.reduced)
    packs, block, together = p.cols // access.vec, LARGE_BLOCK // p.width, machine.together
    stage = staged_packs(machine.shared - STATES, block * pack_size(p, access))  # packs of a thread
    room = block * (GRID_PACKS + stage)  # of a block
    most = min(p.rows, together // -(-packs // room))
    if most == 0:
        return None
    teams = min(range(most, most // 2, -1), key=lambda n: -(-p.rows // n) / (together // n))  # rounds × a block's part
    team = together // teams
    held = hold(packs, -(-packs // team), block, GRID_PACKS, team=team)
    return along_packs(p, "grid", access, held, (team * teams, block), {}, full=True)


def along_packs(
    p: Problem, strategy: str, access: Access, held: Held, blocks: tuple[int, int], constants: dict[str, int],
    full: bool = False,
) -> Plan:  # fmt: skip
    """The plan of a kernel whose threads go along rows, with so many blocks of so many threads. ``full``: as many
    blocks share a multiprocessor as it has registers for."""
    count, block = blocks
    reduced = p.reduced if access.ragged else p.reduced.in_packs(access.vec)
    bound = max(LANES_BLOCK, power_of_2(block))
    resident = LARGE_BLOCK // (bound * p.width) if full else 0
    more = {"APART": 0, "BLOCK": bound, "RESIDENT": resident, "RAGGED": access.ragged}
    return launch(p, strategy, Design(count, block, access, held, p.kept, reduced, constants | more))
