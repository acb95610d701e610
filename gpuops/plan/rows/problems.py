"""A row op in normal form, and the reductions that a softmax is made of."""

from typing import NamedTuple

from ..dtypes import ITEMSIZE, dtype_name
from ..geometry import Axes, Shape, broadcast_strides, normal_form
from ..reductions import OpStruct, fields
from ..row_ops import RowOp
from ..work import ALIGNMENT, ArraySpec, Operand

SCALED_MAX = OpStruct("ScaledMax", fields("most"), options=("scale",))
SHIFTED_EXP_SUM = OpStruct("ShiftedExpSum", fields("smaller", "ones"), options=("scale",))


class Problem(NamedTuple):
    """A row op in normal form, over ``reduced`` for each of ``kept``."""

    op: RowOp
    reduction: OpStruct  # gives what the last of several passes reads of a row
    x: str  # dtype names: of the elements, of the arithmetic, of the result
    val: str
    out: str
    kept: Axes  # operands x, mask, out
    reduced: Axes  # operands x, mask, out
    arrays: tuple[Operand, Operand | None, Operand]  # where x, mask and out begin in normal form
    starts: Shape  # these addresses modulo 16
    masked: bool
    option: float
    sizes: Shape  # bytes of an element of x, mask and out
    rows: int
    cols: int  # elements of a row
    dense: bool  # whether rows lie one after the other in x and out, which both begin at a multiple of 16 bytes

    @property
    def width(self) -> int:
        """Registers that a number takes in the arithmetic: threads that compute in float64 have more, and are fewer."""
        return ITEMSIZE[self.val] // 4

    @property
    def scaled(self) -> bool:
        """Whether elements are multiplied by a number."""
        return self.op.option == "scale" and self.option != 1

    @property
    def counted(self) -> bool:
        """Whether results depend on how many elements of a row take part, which kernels on chip do not count."""
        return self.masked and self.reduction.numbered


def problem(
    op: RowOp, reduction: OpStruct, x: ArraySpec, mask: ArraySpec | None, out: ArraySpec, axis: Shape, val: str,
    option: float,
) -> Problem:  # fmt: skip
    """The normal form of a row op over ``axis``, computed in dtype ``val``; the mask broadcasts to x."""
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
    strides = [(kept.strides[k], reduced.strides[k]) for k in (0, 2)]
    dense = x.made is None and starts[0] == starts[2] == 0 and strides == [((reduced.size,), (1,))] * 2
    return Problem(
        op, op.states or reduction, *names, kept, reduced, arrays, starts, mask is not None, option, sizes, kept.size,
        reduced.size, dense,
    )  # fmt: skip
