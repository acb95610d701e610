"""How a map's kernels access operands, and their launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..access import PACK, packable
from ..params import Field, Params
from ..work import Launch, Operand, check_grid, variant
from .problems import Arg, Problem

#: The enum Way in broadcast.cuh.
WAYS = {"packed": 0, "funnel": 1, "reversed": 2, "repeated": 3, "strided": 4, "tiled": 5, "scattered": 6}
#: The last fields of every map's parameters.
TAIL = (
    Field("double", "option", "of a row op's last pass"),
    Field("u64", "scalar[3][2]", "the bytes of a, b, c that are scalars"),
)


def way(p: Problem, k: int, walk: str, vec: int, head: int = 0, shift: bool = True) -> str:
    """How the kernel accesses an operand along the innermost dim; ``shift``: whether it has funnel loads."""
    arg, inner = p.args[k], p.axes.inner(k)
    if (arg.value is not None or inner == 0 or vec == 1) and walk != "short":
        return "repeated"
    if walk == "whole":
        in_step = packable(vec, arg.itemsize, arg.start, k, p.axes, inner=p.axes)
    else:  # its packs must begin where the output's do
        ours, outs = p.axes.strides[k], p.axes.strides[0]
        level = all((s - o) % vec == 0 for s, o in zip(ours, outs, strict=True)) if walk == "ragged" else ours == outs
        in_step = inner == 1 and level and (arg.start - head * arg.itemsize) % min(vec * arg.itemsize, PACK) == 0
    if in_step:
        return "packed"
    if shift and walk != "short" and abs(inner) == 1 and arg.itemsize < 4 <= vec * arg.itemsize <= PACK:
        return "funnel" if inner == 1 else "reversed"
    return "strided"


def padded(values: Sequence[int]) -> list[int]:
    """The values of a map's operands, padded to four."""
    return [*values, *(0,) * (4 - len(values))]


ABSENT = Arg("", "u8", 1, (), value=b"\0")  # in place of operands that a map does not have


def launch(
    name: str, p: Problem, vec: int, offset: str, ways: list[str], params: Params, grid: tuple[int, int],
    constants: dict[str, int],
) -> Launch:  # fmt: skip
    """A launch of a map's kernel, with ``BLOCK`` threads."""
    out, a, b, c = args = (*p.args, *(ABSENT,) * (4 - len(p.args)))
    way_a, way_b, way_c = (*ways, *("repeated",) * (3 - len(ways)))
    types = {
        "Tout": out.ctype, "Ta": a.ctype, "Tb": b.ctype, "Tc": c.ctype, "Offset": offset, "Map": f"struct {p.map_}",
    }  # fmt: skip
    more = {
        "ARITY": len(p.args) - 1, "VEC": vec, "BLOCK": constants["BLOCK"], "WAY_A": WAYS[way_a],
        "WAY_B": WAYS[way_b], "WAY_C": WAYS[way_c],
    }  # fmt: skip
    pointers = [Operand(arg.name, arg.offset) if arg.value is None else None for arg in args]
    made = check_grid(p.map_.lower(), f"{name}.cu", grid, "{} elements", p.axes.size)
    return Launch(variant(name, types, more | constants), made, constants["BLOCK"], (*pointers, params))


def scalars(p: Problem) -> dict[str, Any]:
    """The last parameters: the option, and the bytes of scalar operands."""
    data = b"".join((arg.value or b"").ljust(16, b"\0") for arg in p.args[1:])
    return {"option": p.option, "scalar": data.ljust(48, b"\0")}
