"""The first rung: CuPy's ``ElementwiseKernel`` over the flat output index."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..work import Operand, Step
from .problems import Arg, Problem


class Elementwise(NamedTuple):
    """One call of CuPy's ``ElementwiseKernel``: flat output index to input indices by div and mod over the dims.

    Elements are passed as unsigned integers of their alignment, so that no dtype needs CuPy's support.
    """

    name: str
    in_params: str
    out_params: str
    operation: str
    operands: tuple[tuple[Operand | bytes, int], ...]  # an array, or a scalar's bytes, and its alignment; output last
    scalars: tuple[int, ...]
    size: int

    def ready(self, device: Any, places: dict[str, int]) -> Step:
        return device.elementwise(self, places)


#: The types of scalars for ``ElementwiseKernel``, by size in bytes.
ELEMENTWISE_TYPES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


def plan_elementwise(p: Problem) -> tuple[Elementwise, ...]:
    """The whole map as one ``ElementwiseKernel`` over the flat output index."""
    axes, args = p.axes, p.args
    letters, rank = "yabc"[: len(args)], len(axes.sizes)
    dims = [f"int64 n{d}" for d in range(rank)]
    dims += [f"int64 {name}{d}" for name in letters for d in range(rank)]
    dims += [f"int64 {name}_start" for name in letters]
    inputs = [
        f"raw {t} {name}" if arg.value is None else f"{ELEMENTWISE_TYPES[arg.itemsize]} {name}"
        for t, name, arg in zip("ABC", letters[1:], args[1:], strict=False)
    ]
    step = Elementwise(
        name=f"gpuops_{p.map_.lower()}_elementwise",
        in_params=", ".join(inputs + dims),
        out_params="raw Y y",
        operation=operation(p, letters),
        operands=tuple(
            (Operand(arg.name) if arg.value is None else arg.value, arg.itemsize if arg.aligned else arg.itemsize // 2)
            for arg in (*args[1:], args[0])
        ),
        scalars=(
            *axes.sizes, *(s for strides in axes.strides for s in strides),
            *(arg.offset // arg.itemsize for arg in args),
        ),
        size=axes.size,
    )  # fmt: skip
    return (step,)


def operation(p: Problem, letters: str) -> str:
    """The CUDA C++ of one element: its offset in each operand, and the map."""
    lines = ["long long rest = i;", *(f"long long {name}_at = {name}_start;" for name in letters)]
    for d in reversed(range(len(p.axes.sizes))):
        lines.append(f"long long i{d} = rest % n{d}; rest /= n{d};")
        lines += [f"{name}_at += i{d} * {name}{d};" for name in letters]
    items = {name: item(name, arg) for name, arg in zip(letters, p.args, strict=True)}
    target = f"gpuops::convert<gpuops::{p.args[0].ctype}>"
    value = f"{target}({items['a']})"
    if p.map_ == "Where":
        value = f"gpuops::nonzero({items['a']}) ? {target}({items['b']}) : {target}({items['c']})"
    return "\n".join((*lines, f"{items['y']} = {value};"))


def item(name: str, arg: Arg) -> str:
    """An operand's element in CUDA C++."""
    const = "" if name == "y" else "const "
    if arg.value is not None:
        return f"(*({const}gpuops::{arg.ctype}*)&{name})"
    return f"(({const}gpuops::{arg.ctype}*)&{name}[0])[{name}_at]"
