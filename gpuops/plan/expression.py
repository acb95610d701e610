"""Arrays that are not in memory: expressions of other arrays, which a kernel computes where it reads an element.

An expression has the strides of a dense array, by which everything is planned. In a launch its operands then take the
place of its address, and its code becomes part of the kernel.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from .access import PACK, SECTOR, packable
from .geometry import Axes, Shape, broadcast_strides, normalize, offset_type, reaches
from .params import Field, Params, Struct
from .work import ArraySpec, Kernel, Launch, Operand, Plan, Sources, new_array


class Expression(NamedTuple):
    """A program (`definition.program.Program`), its operands, its constants as bytes, and the shape and the strides, in
    elements, of the dense array that its elements are numbered as."""

    program: Any
    operands: tuple[ArraySpec, ...]
    constants: tuple[bytes, ...]
    shape: Shape
    steps: Shape

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Stack(NamedTuple):
    """Several expressions in one array, along a new first dim: the expression that gives all their results."""

    every: Expression

    def together(self, x: ArraySpec) -> ArraySpec:
        """The array x with all results in one element, without the first dim."""
        return new_array(x.name, self.every.shape, x.dtype, self.every.steps, x.machine)._replace(made=self.every)

    def parts(self, x: ArraySpec) -> list[ArraySpec]:
        """The arrays along the first dim of x."""
        whole, program = self.together(x), self.every.program
        made = [self.every._replace(program=program.part(k)) for k in range(program.several)]
        return [whole._replace(name=f"{x.name}_{k}", made=each) for k, each in enumerate(made)]


class Code(NamedTuple):
    """What the code of an expression depends on."""

    program: Any
    ways: tuple[str, ...]  # how each operand is read: a name in ``enum Way`` of kernels/common/expression.cuh
    rank: int  # of the dims by which operands are located that do not lie as the expression; 0 if all do
    offset: str  # the type of offsets
    vec: int  # the elements of a pack
    ahead: bool  # whether packs are loaded long before they are computed
    moved: bool  # whether the first element that is meant is not the first one in memory order
    cached: tuple[int, ...]  # the operands that repeat so often that they come from a cache
    places: tuple[int, ...]  # for each operand that is located, which offset is its own: those that lie alike share one
    steps: Shape | None  # how far these offsets move for each element that is added, if that is all alike

    @property
    def located(self) -> tuple[int, ...]:
        """The operands that are located."""
        return tuple([k for k, way in enumerate(self.ways) if way in LOCATED])

    @property
    def offset_of(self) -> dict[int, int]:
        """The offset of each of these."""
        return dict(zip(self.located, self.places, strict=True))

    @property
    def offsets(self) -> int:
        """How many offsets these have."""
        return max(self.places, default=-1) + 1

    @property
    def fixed(self) -> tuple[int, ...]:
        """The operands of which a row has one pack: it is loaded where the row begins."""
        if self.steps is None:
            return ()
        still = [k for k, place in self.offset_of.items() if self.steps[place] == 0]
        return tuple([k for k in still if self.ways[k] != EACH or self.vec == 1])


#: The families of kernels, by the first word of their names, that compute an expression where they read x.
FAMILIES = ("evaluate", "reduce", "scan", "softmax")
#: Kernels that add to where a row begins only offsets along the dims that they reduce.
LINEAR = (
    "reduce_block", "reduce_columns", "reduce_rows", "reduce_small", "softmax_columns", "softmax_grid", "softmax_rows",
    "softmax_small",
)  # fmt: skip
ACROSS = ("reduce_columns",)  # those of these whose funnel loads go along other dims
STREAMS = ("evaluate", "reduce_rows")  # those that gain if what is read once leaves L1 to what repeats
FULL = ("scan",)  # the families whose packs have 16 bytes, and no constant for that
EARLY = "EARLY"  # the constant by which a plan says that packs should be loaded ahead
REPEATS = 16  # how often an operand is read, at least, if it is taken to come from a cache
L1 = 2**17  # bytes of operands that repeat, at most, if they are taken to stay in L1
TILE = 16  # the shortest dim for whose order an operand is copied
SAME, PASSING, SHIFTED, ONE = "SAME", "PASSING", "SHIFTED", "ONE"
LOCATED = REPEATED, PACKED, STRIDED, EACH = "REPEATED", "PACKED", "STRIDED", "EACH"


@lru_cache(maxsize=256)
def params_of(rank: int, offsets: int, constants: int, moved: bool) -> Struct | None:
    """The parameters of an expression with so many offsets and constants; None if there are none."""
    first = [Field("i64", "first", "the number of the first element")] if moved else []
    axes = [Field(f"Axes<{rank}, {offsets}, Offset>", "axes", "operands that are located")] if offsets else []
    numbers = [Field("u64", f"constant[{constants}][2]", "by their bytes")] if constants else []
    return Struct("Located", *first, *axes, *numbers) if moved or axes or numbers else None


def computable(plan: Plan, x: ArraySpec) -> bool:
    """Whether all steps of a plan that read x can compute it instead."""
    launches = [step for step in plan.steps if isinstance(step, Launch)]
    reading = [step for step in launches if x.name in [operand.name for *_, operand in step.pointers]]
    return len(launches) == len(plan.steps) and all([step.kernel.name.split("_")[0] in FAMILIES for step in reading])


def fused(launch: Launch, x: ArraySpec, axis: Shape) -> Launch:
    """A launch that computes the array x where it reads it; ``axis``: the dims that it reduces."""
    here = [arg for arg in launch.args if isinstance(arg, Operand) and arg.name == x.name]
    if not here:
        return launch
    lead = x.ndim - len(x.made.shape)  # dims along which it repeats
    name, constants = launch.kernel.name, dict(launch.kernel.constants)
    linear = name in LINEAR and not (name in ACROSS and constants.get("FUNNEL"))
    dims = tuple([d - lead for d in axis if d >= lead]) if linear else None
    vec = max(1, PACK // x.itemsize) if name.split("_")[0] in FULL else constants.get("VEC", 1)
    code, params = code_of(x.made, vec, dims, here[0].offset // x.itemsize)
    code = code._replace(ahead=bool(constants.pop(EARLY, False)))
    if name in STREAMS and 0 < sum([x.made.operands[k].size * x.made.operands[k].itemsize for k in code.cached]) <= L1:
        code = code._replace(ways=tuple([PASSING if way == SAME else way for way in code.ways]))
    sources = Sources(tuple([each.operand for each in x.made.operands]), params)
    args = [sources if arg in here else arg for arg in launch.args]
    kernel = Kernel(name, launch.kernel.types, tuple(constants.items()), code)
    return launch._replace(kernel=kernel, args=tuple(args))


def code_of(x: Expression, vec: int, axis: Shape | None, first: int) -> tuple[Code, Params]:
    """The code of an expression that is read in packs of ``vec`` elements, from anywhere or, after the first one, along
    some dims; and its parameters. ``first``: the number of the element that counts as the first."""
    program, operands, constants = x.program, x.operands, x.constants
    strides = [broadcast_strides(each.shape, each.steps, x.shape) for each in operands]
    ways = [lying(x, each, step, vec) for each, step in zip(operands, strides, strict=True)]
    apart = [k for k, way in enumerate(ways) if way == EACH]
    alike: list[Shape] = []  # the strides of each offset
    for k in apart:
        alike += [] if strides[k] in alike else [strides[k]]
    places = [alike.index(strides[k]) for k in apart]
    axes, _ = normalize(Axes(x.shape, (x.steps, *alike)))
    axes = axes if axes.sizes else Axes((1,), ((0,),) * len(axes.strides))
    offset = offset_type([*reaches(axes), x.size])
    for k, place in zip(apart, places, strict=True):
        ways[k] = along(axes, 1 + place, operands[k], vec)
    of_apart = Axes(axes.sizes, axes.strides[1:])
    rank = axes.rank_class if apart else 0
    numbers = params_of(rank, len(alike), len(constants), first != 0)
    data = b"".join([each.ljust(16, b"\0") for each in constants])
    params = numbers.pack(offset, first=first, axes=of_apart, constant=data) if numbers else Params("@", ())
    steps = None if axis is None else moves(x, alike, axis)
    code = Code(program, tuple(ways), rank, offset, vec, False, first != 0, (), tuple(places), steps)
    cached = [k for k, each in enumerate(operands) if each.size * REPEATS <= x.size and k not in code.fixed]
    return code._replace(cached=tuple(cached)), params


def moves(x: Expression, operands: list[Shape], axis: Shape) -> Shape | None:
    """How far operands move along some dims for each element of an expression: 0 or 1; None if that differs."""
    found = []
    for strides in operands:
        dims = [(strides[d], x.steps[d]) for d in axis if x.shape[d] > 1]
        step = next((s for s in (0, 1) if all([own == s * step for own, step in dims])), None)
        if step is None:
            return None
        found.append(step)
    return tuple(found)


def read_from(x: ArraySpec, axis: Shape) -> tuple[list[int], list[int]]:
    """The item sizes of the operands that lie as an expression, and of others that move along its dims ``axis``."""
    lead, whole, moving = x.ndim - len(x.made.shape), [], []
    for operand in x.made.operands:
        strides = broadcast_strides(operand.shape, operand.steps, x.made.shape)
        way = lying(x.made, operand, strides, 1)
        if way == SAME:
            whole.append(operand.itemsize)
        elif way == EACH and any([strides[d - lead] for d in axis if d >= lead]):
            moving.append(operand.itemsize)
    return whole, moving


def across(operand: ArraySpec, steps: Shape) -> bool:
    """Whether an array is contiguous along another dim than a dense one with these strides is."""
    dims = [dim for dim in zip(operand.shape, operand.steps, steps, strict=True) if dim[0] >= TILE]
    if not dims or not operand.regular:
        return False
    inner = min(dims, key=lambda dim: dim[2])
    near = SECTOR // operand.itemsize
    return abs(inner[1]) >= near and any([0 < abs(own) < near for _, own, _ in dims])


def lying(x: Expression, operand: ArraySpec, strides: Shape, vec: int) -> str:
    """How an operand is read that lies as the expression, or is one element; EACH for others."""
    dims = [dim for dim in zip(x.shape, x.steps, strides, strict=True) if dim[0] != 1]
    if not x.size or not any([own for _, _, own in dims]):
        return ONE
    if all([own == step for _, step, own in dims]):
        return SHIFTED if vec > 1 and operand.start % min(vec * operand.itemsize, PACK) else SAME
    return EACH


def along(axes: Axes, k: int, operand: ArraySpec, vec: int) -> str:
    """How operand k is read in packs that begin at multiples of their length."""
    if vec == 1 or axes.sizes[-1] % vec:
        return EACH
    inner = axes.inner(k)
    if inner == 0:
        return REPEATED
    return PACKED if packable(vec, operand.itemsize, operand.start, k, axes, inner=axes) else STRIDED
