"""What an array has at some indices along a dim: ``select_rows.cu``."""

from __future__ import annotations

from ..access import PACK, packable
from ..builder import Builder
from ..dtypes import BITS, ctype
from ..geometry import Axes, index_type, normal_form, offset_type, reaches
from ..params import Field, Struct
from ..work import ALIGNMENT, ArraySpec, Launch, Operand, Plan, check_grid, variant

BLOCK = 256  # threads
UNROLL = 4  # packs of a thread

PARAMS = Struct(
    "SelectRows",
    Field("i64", "packs", "packs of out"),
    Field("i64", "step", "a's stride along the selected dim"),
    Field("Axes<RANK, 3, Offset>", "axes", "operands out, a without the selected dim, and index"),
)


def add_rows(builder: Builder, op: str, index: ArraySpec, a: ArraySpec, axis: int, out: ArraySpec) -> None:
    """Add ``out[…, j, …] = a[…, index[j], …]``. Complex numbers, which may be aligned to half their size, are copied in
    halves."""
    same = a.dtype == out.dtype
    parts = 2 if same and a.dtype.kind == "c" else 1
    to, of = [parts * step for step in out.steps], [parts * step for step in a.steps]
    step, of[axis], at = of[axis], 0, [0] * out.ndim
    at[axis] = 1
    axes, moves = normal_form([*zip(out.shape, to, of, at, strict=True), (parts, 1, 1, 0)], 3)
    axes = axes if axes.sizes else Axes((1,), ((1,), (1,), (0,)))
    sizes = out.itemsize // parts, a.itemsize // parts, index.itemsize
    ctypes = (BITS[sizes[0]],) * 2 if same else (ctype(out.dtype), ctype(a.dtype))
    bytes_moved = [move * size for move, size in zip(moves, sizes, strict=True)]
    pointers = [
        Operand(each.name, each.offset + by) for each, by in zip((out, a, index), bytes_moved, strict=True)
    ]
    starts = [(each.start + by) % ALIGNMENT for each, by in zip((out, a), bytes_moved[:2], strict=True)]
    vec = elements_of_pack(axes, sizes[0], starts, step) if same else 1
    packs, offset = axes.in_packs(vec), offset_type(reaches(axes))
    types = {"Tout": ctypes[0], "Tin": ctypes[1], "Index": index_type(packs.size), "Offset": offset}
    kernel = variant("select_rows", types, {"BLOCK": BLOCK, "UNROLL": UNROLL, "VEC": vec, "RANK": axes.rank_class})
    grid = check_grid(op, "select_rows.cu", (-(-packs.size // (BLOCK * UNROLL)), 1), "{} elements", axes.size)
    params = PARAMS.pack(offset, packs=packs.size, step=step, axes=packs)
    builder.add(Plan("selected", (Launch(kernel, grid, BLOCK, (*reversed(pointers), params)),)))


def elements_of_pack(axes: Axes, itemsize: int, starts: list[int], step: int) -> int:
    """The elements of the widest packs of out that are packs of ``a``, too; 1 along the selected dim."""
    vec = PACK // itemsize
    while vec > 1:
        level = axes.inner(2) == 0 and step % vec == 0
        if level and all(packable(vec, itemsize, start, k, axes, inner=axes) for k, start in enumerate(starts)):
            return vec
        vec //= 2
    return 1
