"""Matrix products in normal form."""

import math
from typing import NamedTuple

from ..access import PACK
from ..dtypes import ITEMSIZE
from ..geometry import Axes, Shape, normalize
from ..work import Operand

FLOAT = "float32"  # what `pipelined` computes


class Matrix(NamedTuple):
    """An operand's layout: the strides of its rows and columns, in elements."""

    name: str  # of the array
    dtype: str
    row: int
    col: int
    offset: int  # bytes from the array's first element to the first of the batch in normal form
    pointer: int  # the first element's address modulo 16
    batch: Shape  # strides over the batch

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def strides(self) -> Shape:
        return self.row, self.col

    @property
    def operand(self) -> Operand:
        return Operand(self.name, self.offset)

    @property
    def turned(self) -> "Matrix":
        """The transpose."""
        return self._replace(row=self.col, col=self.row)

    def aligned(self, vec: int, *strides: int) -> bool:
        """Whether packs of ``vec`` elements are aligned, wherever these strides and the batch's lead."""
        width = min(vec * self.itemsize, PACK)
        start = (self.pointer + self.offset) % PACK
        return all(at * self.itemsize % width == 0 for at in (*strides, *self.batch)) and start % width == 0


class Problem(NamedTuple):
    """out = alpha * a @ b + beta * c for each of a batch: ``a`` is (m, k), ``b`` (k, n), ``out`` and ``c`` (m, n)."""

    m: int
    n: int
    k: int
    batch: Shape
    val: str  # the dtype in which NumPy would compute
    a: Matrix
    b: Matrix
    c: Matrix | None  # None: nothing is added
    out: Matrix
    alpha: bytes  # in the accumulator's dtype
    beta: bytes
    scaled: bool  # whether alpha is not 1

    @property
    def number(self) -> int:
        """The number of products."""
        return math.prod(self.batch)

    def axes(self, *operands: Matrix | None) -> Axes:
        """The batch's dims with these operands' strides; 0 for a missing one."""
        zero = (0,) * len(self.batch)
        return Axes(self.batch, tuple(zero if matrix is None else matrix.batch for matrix in operands))


class Layout(NamedTuple):
    """One array of the call: dtype, strides in elements (batch, rows, columns), its address modulo 16, and the bytes
    from there to the first element."""

    name: str
    dtype: str
    strides: Shape
    pointer: int
    offset: int = 0


def problem(
    val: str, sizes: Shape, batch: Shape, layouts: dict[str, Layout], alpha: bytes, beta: bytes, scaled: bool
) -> Problem:
    """The normal form of products of ``sizes`` (m, n, k), given the layouts of out, a, b and perhaps c: the result is
    row-major, and the batch's dims are merged."""
    arrays = [layouts[name] for name in ("out", "a", "b", "c") if name in layouts]
    axes, moved = normalize(Axes(batch, tuple(array.strides[:-2] for array in arrays)))
    matrices = [
        Matrix(x.name, x.dtype, x.strides[-2], x.strides[-1], x.offset + start * ITEMSIZE[x.dtype], x.pointer, strides)
        for x, start, strides in zip(arrays, moved, axes.strides, strict=True)
    ]
    (m, n, k), (o, left, right, *more) = sizes, matrices
    if abs(o.row) < abs(o.col):  # column-major: out.T = b.T @ a.T
        m, n, (o, right, left, *more) = n, m, [matrix.turned for matrix in matrices]
    return Problem(m, n, k, axes.sizes, val, left, right, more[0] if more else None, o, alpha, beta, scaled)


def single(p: Problem) -> bool:
    """Whether both operands are of the dtype that ``pipelined`` computes."""
    return (p.a.dtype, p.b.dtype, p.val) == (FLOAT,) * 3
