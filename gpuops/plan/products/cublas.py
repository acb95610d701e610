"""cuBLAS, after copies of operands whose layout it does not take, or takes slowly."""

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from ...errors import error
from .. import maps
from ..access import PACK
from ..dtypes import ITEMSIZE
from ..geometry import Shape, contiguous_strides
from ..work import Machine, Operand, Plan, PlanStep, Step
from .problems import Matrix, Problem
from .rungs import plan_elements

BLAS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")  # dtypes that cuBLAS computes
LIMIT = 2**31  # sizes and leading dimensions must be below
CALLS = 4  # most calls for a batch, by default
HALVES = ("float16", "bfloat16")  # dtypes whose products are several times slower if rows are not whole, aligned packs
WORK = 2**30  # multiply-adds from which copies in such packs pay
REUSE = 128  # the same for each element copied
MOST = 2**29  # elements that are copied for that, at most: others may need the memory


class Gemm(NamedTuple):
    """A call of cuBLAS: out = alpha * a @ b + beta * out, for a batch with one stride.

    All three matrices have one dtype. ``a`` and ``b`` are row-major or column-major, ``out`` is row-major.
    """

    dtype: str
    sizes: Shape  # m, n, k
    a: Operand
    b: Operand
    out: Operand
    turned: tuple[bool, ...]  # whether a and b are column-major
    leading: Shape  # leading dimensions of a, b and out, in elements
    batch: int
    strides: Shape  # elements from product to product, of a, b and out
    alpha: bytes
    beta: bytes

    def ready(self, device: Any, places: dict[str, int]) -> Step:
        return device.gemm(self, places)


def plan_cublas(p: Problem, strategy: str, machine: Machine) -> Plan:
    """Copies of operands whose layout cuBLAS does not take, then calls of it."""
    if p.val not in BLAS:
        raise error(ValueError, "matmul", f"strategy {strategy!r} takes {', '.join(BLAS)}, got {p.val}")
    if max(p.m, p.n, p.k, p.number) >= LIMIT:
        raise error(ValueError, "matmul", f"strategy {strategy!r} takes sizes below {LIMIT}, got ({p.m}, {p.n}, {p.k})")
    if p.k == 0:  # nothing to multiply
        return plan_elements(p, "naive", machine)._replace(strategy=strategy)
    steps: list[Any] = []
    dense, own, wide = copies(p), sizes(p), sizes(p, packs(p))
    workspace = [(matrix.name, nbytes) for matrix, nbytes in dense.values()]
    if (total := sum(nbytes for _, nbytes in workspace)) > machine.memory:
        rule = f"strategy {strategy!r} needs copies of {total} bytes, this device has {machine.memory}"
        raise error(MemoryError, "matmul", rule)
    a, b, out = (dense[name][0] if name in dense else getattr(p, name) for name in own)
    added = p.c if p.c is not None and not same_place(p.c, out) else None
    sources = {"a": p.a if "a" in dense else None, "b": p.b if "b" in dense else None, "out": added}
    for (name, source), to in zip(sources.items(), (a, b, out), strict=True):
        if source is not None:
            steps.extend([*copy(p, to, source, *own[name]), *zeros(p, to, own[name], wide[name])])
    in_columns = [not leading(a, *wide["a"]), not leading(b, *wide["b"])]
    rows = [
        leading(matrix.turned if turned else matrix, *(size[::-1] if turned else size))
        for matrix, turned, size in zip((a, b, out), (*in_columns, False), wide.values(), strict=True)
    ]
    batch, inner = (p.batch or (1,)), [(matrix.batch or (0,))[-1] for matrix in (a, b, out)]
    for outer in np.ndindex(batch[:-1]):
        first, second, third = (
            Operand(matrix.name, matrix.offset + matrix.itemsize * sum(map(operator.mul, outer, matrix.batch)))
            for matrix in (a, b, out)
        )
        steps.append(Gemm(
            p.val, (*wide["out"], wide["a"][1]), first, second, third, tuple(in_columns), tuple(rows), batch[-1],
            tuple(inner), p.alpha, p.beta if p.c is not None else bytes(len(p.beta)),
        ))  # fmt: skip
    if "out" in dense:
        steps.extend(copy(p, p.out, out, p.m, p.n))
    return Plan(strategy, tuple(steps), tuple(workspace))


def copies(p: Problem) -> dict[str, tuple[Matrix, int]]:
    """Dense copies of the operands whose layout cuBLAS does not take, or takes slowly, and their bytes, by operand."""
    found, vec = {}, packs(p)
    slow = loose(p, vec)
    for name, (rows, cols) in sizes(p, vec).items():
        matrix: Matrix = getattr(p, name)
        if name in slow or not accepted(p, matrix, rows, cols, in_columns=name != "out"):
            dims = varied(p, matrix)
            steps = iter(contiguous_strides((*dims, rows, cols))[:-2])
            batch = tuple(next(steps) if s else 0 for s in matrix.batch)
            nbytes = math.prod(dims) * rows * cols * ITEMSIZE[p.val]
            found[name] = Matrix(f"dense_{name}", p.val, cols, 1, 0, 0, batch), nbytes
    return found


def sizes(p: Problem, vec: int = 1) -> dict[str, Shape]:
    """The rows and columns of the matrices, if ``n`` and ``k`` become multiples of ``vec``."""
    n, k = (-(-size // vec) * vec for size in (p.n, p.k))
    return {"a": (p.m, k), "b": (k, n), "out": (p.m, n)}


def packs(p: Problem) -> int:
    """The elements of the packs of which cuBLAS should have rows and columns: 1 if it need not, or if the copies would
    take longer."""
    if p.val not in HALVES:
        return 1
    vec, own = PACK // ITEMSIZE[p.val], sizes(p)
    copied = sum([math.prod((*varied(p, getattr(p, name)), *own[name])) for name in loose(p, vec)])
    pays = p.m * p.n * p.k * p.number >= max(WORK, REUSE * copied)
    return vec if pays and copied <= MOST else 1


def loose(p: Problem, vec: int) -> list[str]:
    """The operands that are not in whole, aligned packs of ``vec`` elements."""
    wide = sizes(p, vec)
    return [name for name, size in sizes(p).items() if size != wide[name] or not in_packs(getattr(p, name), vec)]


def in_packs(matrix: Matrix, vec: int) -> bool:
    """Whether all rows, or columns, of a matrix begin at packs of ``vec`` elements."""
    return matrix.aligned(vec, *[step for step in matrix.strides if step != 1])


def varied(p: Problem, matrix: Matrix) -> Shape:
    """The dims of the batch along which a matrix does not repeat."""
    return tuple(n for n, s in zip(p.batch, matrix.batch, strict=True) if s)


def accepted(p: Problem, matrix: Matrix, rows: int, cols: int, in_columns: bool = True) -> bool:
    """Whether cuBLAS takes the layout of a matrix: row-major or, if ``in_columns``, column-major, aligned to its dtype,
    and without a negative batch stride, which works for some shapes and dtypes only."""
    backwards = bool(matrix.batch) and matrix.batch[-1] < 0
    lies = leading(matrix, rows, cols) or (in_columns and leading(matrix.turned, cols, rows))
    return matrix.dtype == p.val and matrix.aligned(1) and not backwards and bool(lies)


def leading(matrix: Matrix, rows: int, cols: int) -> int:
    """The leading dimension of a row-major matrix; 0 if it is not row-major."""
    if matrix.col != 1 and cols > 1:
        return 0
    return max(1, cols) if rows == 1 else matrix.row if cols <= matrix.row < LIMIT else 0


def direct(p: Problem) -> bool:
    """Whether cuBLAS takes a product without copies, in few calls."""
    return not copies(p) and math.prod(p.batch[:-1]) <= CALLS


def same_place(c: Matrix, out: Matrix) -> bool:
    """Whether ``c`` is ``out`` itself."""
    return c._replace(name="") == out._replace(name="") and c.name == out.name


def copy(p: Problem, to: Matrix, matrix: Matrix | None, rows: int, cols: int) -> tuple[PlanStep, ...]:
    """The steps that copy and convert the matrices of a batch; None: that fill them with zeros."""
    def arg(m: Matrix, ctype: str) -> maps.Arg:
        strides = (*(s for s, keep in zip(m.batch, to.batch, strict=True) if keep), m.row, m.col)
        return maps.Arg(m.name, ctype, m.itemsize, strides, m.pointer, offset=m.offset)

    target, source = maps.element_types(to.dtype, ((matrix or to).dtype,))
    dims = (*(n for n, keep in zip(p.batch, to.batch, strict=True) if keep), rows, cols)
    zero = maps.Arg("zero", source, to.itemsize, (0,) * len(dims), value=bytes(to.itemsize))
    return maps.plan("Expand", dims, arg(to, target), (arg(matrix, source) if matrix else zero,)).steps


def zeros(p: Problem, to: Matrix, own: Shape, wide: Shape) -> tuple[PlanStep, ...]:
    """The steps that fill what a dense copy has below and beside the operand."""
    (rows, cols), (deep, broad) = own, wide
    below = copy(p, to._replace(offset=rows * to.row * to.itemsize), None, deep - rows, broad) if rows < deep else ()
    beside = copy(p, to._replace(offset=cols * to.itemsize), None, rows, broad - cols) if cols < broad else ()
    return below + beside
