"""What planning knows of ops with a result for each element of a row."""

from typing import NamedTuple

from .reductions import OpStruct, Traits, fields

MAX_EXP_SUM = OpStruct("MaxExpSum", fields("max", "rest"), Traits(exponential=True), ("scale",))


class RowOp(NamedTuple):
    """How kernels make the results of a row."""

    name: str
    struct: str  # in kernels/rows/row_ops.cuh
    map: str  # the last pass over rows that do not fit on chip: printed, or in kernels/maps/broadcast.cuh
    option: str  # its numeric option
    log: bool = False  # the results are logarithms
    states: OpStruct | None = None  # the map reads states of this struct; None: results of the record
    classic: bool = False  # it is what the kernels of the tutorial compute

    def __repr__(self) -> str:
        return self.name
