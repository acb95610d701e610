"""A softmax in normal form, and the reductions that it is made of."""

from typing import NamedTuple

from ..dtypes import ITEMSIZE, dtype_name
from ..geometry import Axes, Shape, broadcast_strides, normal_form
from ..reductions import OpStruct, Traits, fields
from ..work import ALIGNMENT, ArraySpec, Operand

SCALED_MAX = OpStruct("ScaledMax", fields("most"), options=("scale",))
SHIFTED_EXP_SUM = OpStruct("ShiftedExpSum", fields("smaller", "ones"), options=("scale",))
MAX_EXP_SUM = OpStruct("MaxExpSum", fields("max", "rest"), Traits(exponential=True), ("scale",))


class RowOp(NamedTuple):
    """What the host knows of an op whose results depend on their whole row; ``kernels/rows/row_ops.cuh`` and
    ``kernels/maps/broadcast.cuh`` have the rest."""

    name: str
    struct: str  # in row_ops.cuh
    last: str  # the map that makes the results, given the row's statistics
    log: bool = False
    statistics: OpStruct = MAX_EXP_SUM  # what the last pass reads of a row

    def __repr__(self) -> str:
        return self.name


OPS = {
    op.name: op
    for op in (
        RowOp("softmax", "SoftmaxOp", "Softmax"), RowOp("log_softmax", "SoftmaxOp", "LogSoftmax", log=True),
    )
}  # fmt: skip


class Problem(NamedTuple):
    """A softmax in normal form, over ``reduced`` for each of ``kept``."""

    op: RowOp
    x: str  # dtype names: of the elements, of the arithmetic, of the result
    val: str
    out: str
    kept: Axes  # operands x, mask, out
    reduced: Axes  # operands x, mask, out
    arrays: tuple[Operand, Operand | None, Operand]  # where x, mask and out begin in normal form
    starts: Shape  # these addresses modulo 16
    masked: bool
    scale: float
    sizes: Shape  # bytes of an element of x, mask and out
    rows: int
    cols: int  # elements of a row

    @property
    def width(self) -> int:
        """Registers that a number takes in the arithmetic: threads that compute in float64 have more, and are fewer."""
        return ITEMSIZE[self.val] // 4


def problem(
    op: str, x: ArraySpec, mask: ArraySpec | None, out: ArraySpec, axis: Shape, val: str, scale: float
) -> Problem:
    """The normal form of a softmax over ``axis``, computed in dtype ``val``; the mask broadcasts to x."""
    shape, sizes = x.shape, (x.itemsize, 1, out.itemsize)
    beside = (0,) * len(shape) if mask is None else broadcast_strides(mask.shape, mask.steps, shape)
    dims = [*zip(shape, x.steps, beside, out.steps, strict=True)]
    kept, moved_kept = normal_form([dim for d, dim in enumerate(dims) if d not in axis], 3)
    reduced, moved_reduced = normal_form([dims[d] for d in axis], 3)
    moves = [(k + r) * size for k, r, size in zip(moved_kept, moved_reduced, sizes, strict=True)]
    arrays = (
        Operand(x.name, x.offset + moves[0]), mask and Operand(mask.name, mask.offset + moves[1]),
        Operand(out.name, out.offset + moves[2]),
    )  # fmt: skip
    starts = (
        (x.start + moves[0]) % ALIGNMENT, (mask.start + moves[1]) % ALIGNMENT if mask else 0,
        (out.start + moves[2]) % ALIGNMENT,
    )  # fmt: skip
    names = dtype_name(x.dtype), val, dtype_name(out.dtype)
    return Problem(
        OPS[op], *names, kept, reduced, arrays, starts, mask is not None, scale, sizes, kept.size, reduced.size
    )
