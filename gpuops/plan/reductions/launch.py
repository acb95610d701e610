"""What the planners of reductions have in common: access, the split of an output, and the launch of a design."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..access import PACK, RAGGED, Access, packable
from ..dtypes import CTYPES, ITEMSIZE, ctype
from ..expression import EARLY
from ..geometry import Axes, floor_power_of_2, index_type, offset_type, power_of_2, reaches
from ..params import Field, Params, Struct
from ..small import Shares
from ..work import (
    LAUNCH,
    NO_LAUNCH,
    PARTIALS,
    SCRATCH,
    TICKETS,
    Kernel,
    Launch,
    Operand,
    Plan,
    check_grid,
    variant,
)
from .problems import FACTOR, MASK, POSITION, OpStruct, Problem

NARROW = 4  # bytes of a narrow pack, at most
IN_FLIGHT = 8  # most packs in flight per thread; twice as many narrow ones
THREADS_PER_SM = 1024  # resident threads of a multiprocessor when a grid fills the machine
EXACT_PER_SM = 512  # the same for exact sums, whose threads take many instructions besides those for their elements
SEVERAL_PER_SM = 256  # the same for several sums of columns, which fill the registers
WAVES = 5  # splits are tried that fill the machine fewer times than this
START = 2  # the fixed cost of a block, in steps
OTHERS = {"none": 0, "beside": 1, "repeated": 2, "stepped": 3, "loose": 4}  # enum Other in reduce.cuh

PARAMS = Struct(
    "Reduce",
    Field("i64", "outputs", "columns: packs of outputs, if these are not STRIPED"),
    Field("i64", "packs", "packs of an output (RAGGED: of a run)"),
    Field("i64", "chunk", "packs of a split (staged: rows of a block)"),
    Field("i64", "runs", "rows, RAGGED: runs along the innermost reduced dim"),
    Field("i64", "run_chunk", "runs of a split"),
    Field("Axes<KEPT, 3, Offset>", "kept", "operands x, b, y, over the outputs"),
    Field("Axes<REDUCED, 2, Offset>", "reduced", "operands x, b, over the elements of an output"),
    Field("Divisor", "run_packs", "columns: packs of a run of neighbouring outputs"),
    Field("i64", "head", "columns: elements of a run's first pack that lie before the run"),
    Field("i64", "high", "staged: x's elements end here"),
    Field("i64", "y_inner", "columns: stride between neighbouring outputs in y"),
    Field("i64", "apart", "the distance in y between results of several sums"),
    Field("double", "options[3]", "of the op"),
    Field("i64", "root", "whether to take the root of the result"),
    Field("i64", "has_initial", "whether there is an initial value"),
    Field("Tval", "initial", "which is combined into every output"),
)
#: For small arrays: the fields that all threads read first are adjacent.
SMALL_PARAMS = Struct(
    "Reduce",
    Field("i64", "outputs", "outputs"),
    Field("i64", "packs", "elements of an output"),
    Field("i64", "chunk", "elements of a split"),
    Field("Shares", "shares", "how threads share outputs"),
    Field("i32", "has_initial", "whether there is an initial value"),
    Field("Dims<KEPT, 3, Offset>", "kept", "operands x, b, y, over the outputs"),
    Field("Axes<REDUCED, 2, Offset>", "reduced", "operands x, b, over the elements of an output"),
    Field("i64", "apart", "the distance in y between results of several sums"),
    Field("double", "options[3]", "of the op"),
    Field("i64", "root", "whether to take the root of the result"),
    Field("Tval", "initial", "which is combined into every output"),
)


class Design(NamedTuple):
    """How a kernel divides a reduction among blocks and threads."""

    kernel: str
    access: Access
    blocks: tuple[int, int]  # for all outputs, and per output
    block: int  # threads
    kept: Axes
    reduced: Axes
    counts: tuple[int, int, int, int, int]  # outputs, packs, chunk, runs, run_chunk of the parameters
    constants: dict[str, int]
    run_packs: int = 1
    head: int = 0
    states: int = 1  # partial results of a block
    resident: int = THREADS_PER_SM  # threads per multiprocessor, if blocks share an output
    shares: Shares | None = None  # of a small array
    single: bool = False  # whether all elements are there before the first is added (of exact sums)
    near: bool = False  # whether its states that merge have an exponent in common


def launch(p: Problem, strategy: str, design: Design) -> Plan:
    """A reduction in one launch."""
    split = design.blocks[1] > 1
    far = reaches(p.kept, p.reduced)
    offset = offset_type(far)
    constants = {"BLOCK": design.block, "VEC": design.access.vec, "RESIDENT": design.resident if split else 0}
    constants |= design.constants | {"SINGLE": design.single}
    if p.ahead:
        constants[EARLY] = True
    if p.op.summed:
        constants["NEAR"] = p.exact and design.near
    partials = (Operand("scratch"), Operand("scratch", PARTIALS), LAUNCH) if split else (None, None, NO_LAUNCH)
    args = (*p.pointers, p.seconds, *partials, parameters(p, design, offset, far[0] + 1))
    kernel = kernel_of(p, design, offset, constants)
    step = Launch(kernel, grid(p, design.kernel, *design.blocks), design.block, args)
    scratch = PARTIALS + math.prod(design.blocks) * design.states * p.state if split else 0
    return Plan(strategy, (step,), scratch=scratch)


def grid(p: Problem, kernel: str, blocks: int, splits: int) -> tuple[int, int, int]:
    """The grid of a launch."""
    return check_grid(p.op.name.lower(), kernel, (blocks, splits), "{} outputs", p.outputs)


def kernel_of(p: Problem, design: Design, offset: str, constants: dict[str, int]) -> Kernel:
    """The kernel for a problem's types."""
    return kernel_with(
        design.kernel, p.op, dtypes_of(p), p.second and p.second.dtype, p.integer, offset,
        index_type(*design.counts), design.access.beside, design.kept.rank_class, design.reduced.rank_class,
        p.op.traits.exponential and p.scaled, ordered(p), p.states, *constants, *constants.values(),
    )  # fmt: skip


def dtypes_of(p: Problem) -> tuple[str, str | None, str, str | None]:
    """The dtypes of elements, of the second operand, of values and of results; or the types of several together."""
    if not p.several:
        return p.x, p.other, p.val, p.out
    x, val, out = [f"Several<{CTYPES[name]}, {p.several}>" for name in (p.x, p.val, p.out or p.val)]
    return x, p.other, val, out


@lru_cache(maxsize=4096)
def kernel_with(
    name: str, op: OpStruct, dtypes: tuple[str, str | None, str, str | None], second: np.dtype | None, integer: str,
    offset: str, index: str, beside: str, kept: int, reduced: int, scaled: bool, ordered: bool, states: int,
    *constants: Any,
) -> Kernel:  # fmt: skip
    """The same, given all that decides it; ``constants``: first the names, then the values."""
    x, other, val, out = dtypes
    kinds = {MASK: "u8", POSITION: "Position"}  # a mask is read as bytes
    half = len(constants) // 2
    given = dict(zip(constants[:half], constants[half:], strict=True))
    near = [str(bool(given.pop("NEAR", False))).lower()] * op.summed  # of exact sums
    parameters = ", ".join(["Tval", *["Integer"] * bool(integer), *near])
    types = {
        "Tin": CTYPES.get(x, x), "Tb": "u8" if other is None else kinds.get(op.second, CTYPES[other]),
        "Tval": CTYPES.get(val, val), "Offset": offset, **({"Integer": integer} if integer else {}),
        "Op": op.name if op.printed else f"{op.name}<{parameters}>",
        "Tout": "Op::State" if out is None else CTYPES.get(out, out),
        "Tz": "u8" if second is None else ctype(second), "Index": index,
    }  # fmt: skip
    more = {
        "OTHER": OTHERS[beside], "KEPT": kept, "REDUCED": reduced, "SCALED": scaled, "TWO": second is not None,
        "ORDERED": ordered, "STATES": states,
    }  # fmt: skip
    return variant(name, types, more | given)


def ordered(p: Problem) -> bool:
    """Whether elements of an output are read in the order of their indices; False without indices."""
    if p.op.second != POSITION:
        return False
    steps = p.reduced.strides[1]
    spans = [n * step for n, step in zip(p.reduced.sizes, steps, strict=True)]
    return all(0 < least <= step for least, step in zip((*spans[1:], 1), steps, strict=False))


def parameters(p: Problem, design: Design, offset: str, high: int) -> Params:
    """The kernels' parameters; x's elements lie below ``high``."""
    outputs, packs, chunk, runs, run_chunk = design.counts
    count = p.several or 1
    size = ITEMSIZE[p.val] * count
    return (SMALL_PARAMS if design.shares else PARAMS).pack(
        offset, outputs=outputs, packs=packs, chunk=chunk, runs=runs, run_chunk=run_chunk, shares=design.shares,
        kept=design.kept, reduced=design.reduced, run_packs=design.run_packs, head=design.head, high=high,
        y_inner=p.kept.inner(2), apart=p.outputs, options=(*p.numbers, 0.0, 0.0, 0.0)[:3], root=p.root,
        has_initial=p.initial is not None, initial=((p.initial or b"") * count).ljust(-(-size // 8) * 8, b"\0"),
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- access


def access_of(p: Problem, inner: Axes, most: int = PACK) -> Access:
    """The widest packs, of at most ``most`` elements, that both operands allow along the innermost dim of ``inner``
    (the kept or the reduced axes). If factors allow none, they are loaded one by one beside packs of x."""
    for access in candidates(p, inner, most):
        if fits(p, inner, access, 0) and (other := beside(p, inner, access)):
            return access._replace(beside=other) if p.other else access
    if p.op.second == FACTOR and inner is p.reduced:
        for access in candidates(p, inner, most):
            if fits(p, inner, access, 0):
                return access._replace(beside="loose")
    return Access(1, "beside" if p.other else "none")


def candidates(p: Problem, inner: Axes, most: int) -> Iterator[Access]:
    """The accesses to try, best first: aligned packs from wide to narrow; after the widest, those with head and tail if
    runs are long; before packs of less than a word, funnel loads of neighbouring outputs."""
    size = ITEMSIZE[p.other] if p.other else 1
    full = floor_power_of_2(min(most, PACK // max(p.itemsize, size)))
    long = inner.sizes and inner.sizes[-1] >= RAGGED * full
    vec = full
    while vec > 1:
        yield Access(vec)
        if long and vec == NARROW // ITEMSIZE[p.x] and inner is p.kept:
            yield Access(full, funnel=True)
        if long and vec == full:
            yield Access(full, ragged=True)
        vec //= 2


def beside(p: Problem, inner: Axes, access: Access) -> str:
    """The second operand's layout beside packs of x; "" if it does not fit."""
    if p.other is None:
        return "none"
    if inner.inner(1) == 0:
        return "repeated"
    if p.op.second == POSITION:
        if inner.inner(1) == 1:
            return "beside"
        return "stepped" if access.vec > 2 or not access.ragged else ""  # pairs between head and tail gain nothing
    if access.funnel or not fits(p, inner, access, 1):
        return ""
    if access.ragged:  # its packs must begin where those of x do
        x, other = (p.kept.strides[k] + p.reduced.strides[k] for k in (0, 1))
        apart = p.starts[0] // ITEMSIZE[p.x] - p.starts[1] // ITEMSIZE[p.other]
        distances = (apart, *(a - b for a, b in zip(x, other, strict=True)))
        if inner is not p.reduced or any(d % access.vec for d in distances):
            return ""
    return "beside"


def fits(p: Problem, inner: Axes, access: Access, operand: int) -> bool:
    """Whether an operand may be read in such packs along the innermost dim of ``inner``.

    With head and tail along kept dims, all runs must be aligned alike; along reduced dims each run has its own. Funnel
    loads may reach beyond a run, but not beyond its neighbour in memory.
    """
    itemsize = ITEMSIZE[p.x if operand == 0 else p.other or p.x]
    if not (access.ragged or access.funnel):
        return packable(access.vec, itemsize, p.starts[operand], operand, p.kept, p.reduced, inner=inner)
    if inner.inner(operand) != 1 or p.starts[operand] % itemsize:
        return False
    others = [*p.kept.strides[operand], *p.reduced.strides[operand]]
    others.remove(1)  # the innermost one
    if access.funnel:
        return all(s >= 2 * access.vec for s in others)
    return inner is p.reduced or all(s and s % access.vec == 0 for s in others)


# --------------------------------------------------------------------------------------------------- sharing an output


class Split(NamedTuple):
    """Blocks that share an output, and the packs of each."""

    blocks: int
    chunk: int


def split(p: Problem, blocks: int, fill: int, packs: int, step: int, least: int = 1, states: int = 1) -> Split:
    """How many blocks should share an output of ``packs`` packs. Without a split there are ``blocks`` blocks; ``fill``
    of them fill the machine.

    Of the splits that fill the machine in whole waves, this is the one with the least estimated time. Each block takes
    at least ``least`` steps of ``step`` packs, and the partial results, ``states`` per block, must fit the scratch.
    """
    room = (SCRATCH - PARTIALS) // (blocks * states * p.state) if blocks <= TICKETS else 1
    most = min(room, packs // (least * step))
    splits, least_time = 1, math.inf
    for waves in range(WAVES) if most > 1 else ():
        n = max(1, min(most, waves * fill // blocks))
        time = -(-blocks * n // fill) * (packs / (n * step) + START)
        if time < least_time:
            splits, least_time = n, time
    chunk = -(-packs // splits)
    chunk = max(1, -(-chunk // step) * step if chunk > step else chunk)
    return Split(max(1, -(-packs // chunk)), chunk)


def in_flight(p: Problem, count: int, access: Access, busy: bool = False) -> int:
    """Packs in flight per thread: its ``count``, up to a limit. Reductions that are ``busy`` with each halve that, or
    registers would not suffice."""
    most = IN_FLIGHT if access.vec * p.itemsize > NARROW and not access.striped else 2 * IN_FLIGHT
    most //= loads(p, access) * (2 if busy else 1)
    if access.beside == "loose":  # a load for each element
        most = min(most, 2 * IN_FLIGHT // access.vec)
    return min(max(1, floor_power_of_2(most)), all_of(count) if access.striped else power_of_2(count))


def all_of(count: int) -> int:
    """Packs in flight for ``count`` of them: a power of 2 or, of many, a multiple of 4."""
    return -(-count // 4) * 4 if count > IN_FLIGHT else power_of_2(count)


def several_in_flight(p: Problem, count: int, access: Access, room: int) -> int:
    """The same of several sums: the terms of all packs, in floats at least, and what the next ones are made from should
    fit in ``room`` bytes."""
    return min(max(1, floor_power_of_2(room // several_bytes(p, access))), IN_FLIGHT, power_of_2(count))


def several_bytes(p: Problem, access: Access) -> int:
    """Bytes of several sums' terms of a pack, and of what the next one is made from."""
    return access.vec * (p.several * max(ITEMSIZE[p.x], ITEMSIZE["float32"]) + p.loaded)


def loads(p: Problem, access: Access) -> int:
    """Loads per pack: of x, or of what it is made from, and, if there are such, of a second operand in memory, or of x
    again for a funnel (two small ones count as one)."""
    pairs = access.funnel and access.vec * p.itemsize > PACK // 2
    return p.packs + ((access.beside in ("beside", "loose") and p.op.second != POSITION) or pairs)
