"""From bits to indices and elements in the order of the condition: ``select_indices.cu``, ``select_elements.cu``."""

from __future__ import annotations

import math
from typing import Any

from ..builder import Builder
from ..dtypes import BITS, ctype
from ..geometry import Axes, Shape, contiguous_strides, offset_type, reaches
from ..params import Field, Struct
from ..work import ArraySpec, Kernel, Launch, Plan, check_grid, variant
from .count import BLOCK, Bits, in_order, unused

TOGETHER = 4  # dims whose indices one launch makes, at most

INDICES = Struct(
    "SelectIndices",
    Field("i64", "span", "tiles of a run"),
    Field("i64", "head", "bits before that of the first element"),
    Field("Divisor", "inner", "elements of the dims that follow, if any do"),
    Field("Axes<N, 1, i64>", "dims", "the dims, and the bits between neighbours"),
)
ELEMENTS = Struct(
    "SelectElements",
    Field("i64", "span", "tiles of a run"),
    Field("i64", "head", "bits before that of the first element"),
    Field("i64", "step", "the stride of out"),
    Field("Dims<RANK, 1, Offset>", "dims", "a, unless DENSE"),
)


def add_indices(builder: Builder, op: str, bits: Bits, shape: Shape, indices: tuple[ArraySpec, ...]) -> None:
    """Add the indices of true elements along each dim of a condition of this shape."""
    for first in range(0, len(shape), TOGETHER):
        sizes, rest = shape[first : first + TOGETHER], shape[first + TOGETHER :]
        to = [each.operand for each in indices[first : first + TOGETHER]]
        dims = Axes(sizes, (contiguous_strides(sizes),))
        params = INDICES.pack("i64", span=bits.span, head=bits.head, inner=math.prod(rest), dims=dims)
        constants = {"BLOCK": BLOCK, "N": len(sizes), "FIRST": first == 0, "LAST": not rest}
        kernel = variant("select_indices", {"Index": bits.index_type}, constants)
        add(builder, op, bits, kernel, (*to, *(None,) * (TOGETHER - len(to)), params))


def add_elements(builder: Builder, op: str, bits: Bits, a: ArraySpec, out: ArraySpec) -> None:
    """Add the elements of ``a``, in C order, where a condition is true; ``out`` has one dim."""
    axes = in_order(a.shape, a.steps)
    dense = len(axes.sizes) == 1 and axes.inner(0) == 1
    dims, offset = unused() if dense else axes.dims(), offset_type(reaches(axes))
    tin, tout = moved_types(a, out)
    types = {"Tin": tin, "Tout": tout, "Index": bits.index_type, "Offset": offset}
    constants = {"BLOCK": BLOCK, "DENSE": dense, "RANK": dims.rank_class}
    params = ELEMENTS.pack(offset, span=bits.span, head=bits.head, step=out.steps[0], dims=dims)
    kernel = variant("select_elements", types, constants)
    add(builder, op, bits, kernel, (a.operand, out.operand, params))


def add(builder: Builder, op: str, bits: Bits, kernel: Kernel, args: tuple[Any, ...]) -> None:
    """Add a launch with a block for each tile."""
    grid = check_grid(op, f"{kernel.name}.cu", (bits.tiles, 1), "{} elements", bits.length)
    builder.add(Plan("selected", (Launch(kernel, grid, BLOCK, (*bits.operands, *args)),)))


def moved_types(a: ArraySpec, out: ArraySpec) -> tuple[str, str]:
    """Element types of an array and of ``out``: bits of the item size if nothing is converted, but for complex numbers,
    which may be aligned to half their size."""
    if a.dtype == out.dtype and a.dtype.kind != "c":
        return (BITS[a.itemsize],) * 2
    return ctype(a.dtype), ctype(out.dtype)
