"""Small arrays: one kernel for whatever strides, which holds rows in registers, element by element."""

from __future__ import annotations

from ..access import PACK, Access
from ..geometry import power_of_2
from ..small import BLOCK, shared
from ..work import Machine, Plan
from .launch import Design, Held, access_of, launch
from .problems import Problem

EACH = 8  # elements of a thread
NARROW = 32  # elements of a row that is too short for head and tail
COLS = 2**12  # elements of a row, at most
#: Bytes of x below which it is small: of a single row; of rows that are read in packs; of others.
ONE, SMALL, ODD = 2**13, 2**19, 2**22


def is_small(p: Problem, across: bool) -> bool:
    """Whether x is so small that it does not matter how it is read, and its rows fit a block."""
    if p.cols > COLS:
        return False
    narrow = across or (p.cols < NARROW and access_of(p, p.reduced).vec * p.sizes[0] < PACK)
    return p.rows * p.cols * p.sizes[0] < (ONE if p.rows == 1 else ODD if narrow else SMALL)


def plan_small(p: Problem, across: bool, machine: Machine) -> Plan:
    """The plan for a small array: threads along whichever dims are contiguous in memory."""
    least = power_of_2(-(-p.cols // EACH))
    shares = shared(p.rows, p.cols, p.sizes[0], across, machine.multiprocessors, least)
    design = Design(
        -(-p.rows // (1 << shares.wide)), shares.block, Access(1, "scattered" if p.masked else "none"), Held(p.cols),
        p.kept.dims(), p.reduced, {"APART": 0, "EACH": EACH, "BLOCK": BLOCK}, shares,
    )  # fmt: skip
    return launch(p, "columns" if across else "rows", design, "small")
