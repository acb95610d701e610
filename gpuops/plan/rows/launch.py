"""What the planners of row ops share: access, what is held on chip, and the launch of a design."""

from collections.abc import Iterator
from typing import NamedTuple

from ..access import PACK, RAGGED, Access, packable
from ..dtypes import CTYPES, ITEMSIZE
from ..geometry import Axes, index_type, offset_type, reaches
from ..params import Field, Struct
from ..small import Shares
from ..work import BARRIERS_OFFSET, LAUNCH, PARTIALS, Launch, Operand, Plan, check_grid, variant
from .problems import Problem

PACKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # packs of a thread in registers that kernels are compiled for
GROUPS = 2  # groups in which the others come to shared memory
MASKS = {"none": 0, "beside": 1, "scattered": 2}  # enum Mask in softmax.cuh

PARAMS = Struct(
    "Softmax",
    Field("i64", "rows", "columns: packs of rows"),
    Field("i64", "cols", "elements of a row"),
    Field("i64", "packs", "packs of a row"),
    Field("i64", "chunk", "packs of a block"),
    Field("i64", "staged", "packs of a thread in shared memory"),
    Field("i64", "team", "grid: blocks that share a row"),
    Field("double", "option", "the op's number: softmax's is a factor on x"),
    Field("Axes<KEPT, 3, Offset>", "kept", "operands x, mask, y, over the rows"),
    Field("Axes<REDUCED, 3, Offset>", "reduced", "operands x, mask, y, over the elements of a row"),
)
#: For small arrays.
SMALL_PARAMS = Struct(
    "Softmax",
    Field("i64", "rows", "rows"),
    Field("i64", "cols", "elements of a row"),
    Field("double", "option", "the op's number: softmax's is a factor on x"),
    Field("Dims<KEPT, 3, Offset>", "kept", "operands x, mask, y, over the rows"),
    Field("Axes<REDUCED, 3, Offset>", "reduced", "operands x, mask, y, over the elements of a row"),
    Field("Shares", "shares", "how threads share rows"),
)


class Held(NamedTuple):
    """What is held where."""

    packs: int  # of a row
    part: int = 0  # packs of a block
    registers: int = 0  # packs of a thread: none if a kernel does without `softmax_on_chip.cuh`
    staged: int = 0  # and in shared memory
    cluster: int = 1  # blocks to a row
    team: int = 0  # or so many that tell each other through memory


class Design(NamedTuple):
    """How a kernel shares out a row op."""

    blocks: int
    block: int  # threads
    access: Access
    held: Held
    kept: Axes
    reduced: Axes
    constants: dict[str, int]
    shares: Shares | None = None  # of a small array


def launch(p: Problem, strategy: str, design: Design, kernel: str = "", in_place: bool = True) -> Plan:
    """The plan of a strategy that is one launch of ``softmax_<strategy>.cu``, or of another kernel's."""
    held, kept, reduced, access = design.held, design.kept, design.reduced, design.access
    grid = check_grid(p.op.name, f"strategy {strategy!r}", (design.blocks, 1), "{} rows", p.rows)
    offset = offset_type(reaches(p.kept, p.reduced))
    types = {
        "Tin": CTYPES[p.x], "V": CTYPES[p.val], "Tout": CTYPES[p.out], "Index": index_type(kept.size, p.cols),
        "Offset": offset, "RowOp": f"struct {p.op.struct}",
    }  # fmt: skip
    more = {
        "LOG": p.op.log, "MASK": MASKS[access.beside], "SCALED": p.scaled, "KEPT": kept.rank_class,
        "REDUCED": reduced.rank_class, "VEC": access.vec,
    }  # fmt: skip
    if held.registers:
        more |= {"PACKS": held.registers, "STAGED": GROUPS if held.staged else 0, "FUNNEL": access.funnel}
    meeting = (Operand("scratch", BARRIERS_OFFSET), Operand("scratch", PARTIALS), LAUNCH) if held.team else ()
    params = (SMALL_PARAMS if design.shares else PARAMS).pack(
        offset, rows=kept.size, cols=p.cols, packs=held.packs, chunk=held.part, staged=held.staged, team=held.team,
        option=p.option, shares=design.shares, kept=kept, reduced=reduced,
    )  # fmt: skip
    step = Launch(
        variant(f"softmax_{kernel or strategy}", types, more | design.constants), grid, design.block,
        (*p.arrays, *meeting, params), cluster=held.cluster,
        shared=held.staged * design.block * pack_size(p, access), cooperative=held.team > 0,
    )  # fmt: skip
    scratch = PARTIALS + 4 * design.blocks * ITEMSIZE[p.val] if held.team else 0  # states of two rounds
    return Plan(strategy, (step,), scratch=scratch, in_place=in_place)


# -------------------------------------------------------------------------------------------------------------- access


def access_of(p: Problem, inner: Axes, registers: int = 0) -> Access:
    """The widest packs along the innermost dim of ``inner`` (one of p's axes) that x and the result allow."""
    for access in candidates(p, inner, registers):
        if fits(p, inner, access, 0) and fits(p, inner, access, 2):
            if not p.masked:
                return access
            beside = not access.funnel and fits(p, inner, access, 1)
            return access._replace(beside="beside" if beside else "scattered")
    return Access(1, "scattered" if p.masked else "none")


def candidates(p: Problem, inner: Axes, registers: int) -> Iterator[Access]:
    """The accesses to try, best first: narrower and narrower aligned packs; where rows are long, full ones with head
    and tail, alike in x and the result or, if a row has at most ``registers`` packs, through a funnel of x's."""
    full = PACK // max(p.sizes)
    vec = full
    while vec > 1:
        yield Access(vec)
        if vec == full and inner is p.reduced and len(inner.sizes) == 1 and p.cols >= RAGGED * full:
            yield Access(full, ragged=True)
            if p.cols <= full * registers and full * p.sizes[0] >= 4:
                yield Access(full, ragged=True, funnel=True)
        vec //= 2


def fits(p: Problem, inner: Axes, access: Access, operand: int) -> bool:
    """Whether an operand may be read or written in such packs along the innermost dim of ``inner``."""
    size, out = p.sizes[operand], p.sizes[2]
    if not access.ragged:
        return packable(access.vec, size, p.starts[operand], operand, p.kept, p.reduced, inner=inner)
    apart = [a - b for a, b in zip(p.kept.strides[operand], p.kept.strides[2], strict=True)]
    apart.append(p.starts[operand] // size - p.starts[2] // out)
    together = (access.funnel and operand == 0) or all(d % access.vec == 0 for d in apart)
    return together and p.starts[operand] % size == 0 and inner.strides[operand] == (1,) and p.starts[2] % out == 0


def pack_size(p: Problem, access: Access) -> int:
    """Bytes of a pack of x with its mask."""
    return access.vec * (p.sizes[0] + p.masked)


# ------------------------------------------------------------------------------------------------------------- on chip


def hold(packs: int, part: int, block: int, most: int, cluster: int = 1, team: int = 0) -> Held:
    """A block's part of a row in the registers of its threads, ``most`` packs each, and the rest staged."""
    each = -(-part // block)
    count = min(most, compiled(each))
    return Held(packs, part, count, max(0, each - count), cluster, team)


def compiled(packs: int) -> int:
    """Packs of a thread that a kernel is compiled for: at least so many, if there are registers for them."""
    return next((n for n in PACKS if n >= packs), PACKS[-1])


def staged_packs(room: int, size: int) -> int:
    """Packs of a thread that find room in shared memory."""
    return max(0, room // size)
