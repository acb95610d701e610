"""Types of parameters and results. There is no such module when programs run."""

from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeVar  # which takes default=

class SupportsDLPack(Protocol):
    def __dlpack__(self) -> Any: ...

class SupportsCudaArrayInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...

class SupportsDask(Protocol):
    def __dask_graph__(self) -> Any: ...

class SupportsItemsize(Protocol):  # the dtypes of other libraries
    @property
    def itemsize(self) -> int: ...

# An array of another library than NumPy; of NumPy's; what becomes such; and a number, or a 0-d array.
Foreign: TypeAlias = SupportsDLPack | SupportsCudaArrayInterface | SupportsDask
Array: TypeAlias = npt.NDArray[Any]
Plain: TypeAlias = complex | np.generic | Sequence[Any]
Number: TypeAlias = complex | np.generic | Array | Foreign
Real: TypeAlias = float | np.integer[Any] | np.floating[Any]

Axis: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
ForeignDType: TypeAlias = npt.DTypeLike | SupportsItemsize
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
Axes: TypeAlias = Sequence[SupportsIndex | tuple[SupportsIndex, ...]]

T = TypeVar("T")
Inexact = TypeVar("Inexact", bound=np.inexact[Any])
Floating = TypeVar("Floating", bound=np.floating[Any], default=Any)
# Of arrays that go in and come out; of those of other libraries.
Kind = TypeVar("Kind", bound=Array | Foreign, default=Array)
Other = TypeVar("Other", bound=Foreign)
# Of arrays that results are written to, by what the result is if none is given.
OutArray = TypeVar("OutArray", bound=Array | Foreign, default=Array)
OutBool = TypeVar("OutBool", bound=Array | Foreign, default=npt.NDArray[np.bool])
OutIndex = TypeVar("OutIndex", bound=Array | Foreign, default=npt.NDArray[np.int64])
OutKind = TypeVar("OutKind", bound=Array | Foreign, default=Kind)
OutOther = TypeVar("OutOther", bound=Array | Foreign, default=Other)

# Nothing is of this type. Where a checker does not know that of an array, as it does not know CuPy's, it fits too: so
# results differ from signature to signature, and the checker knows that it does not know them.
class Untyped: ...

class Average(NamedTuple, Generic[T]):
    average: T
    weights: T

class MeanVar(NamedTuple, Generic[T]):
    mean: T
    var: T

class WithIndex(NamedTuple, Generic[T]):
    values: T
    indices: T

ExpandStrategy: TypeAlias = Literal["elementwise", "collapsed", "vectorized", "stepped", "tiled"]
SumStrategy: TypeAlias = Literal[
    "rows", "columns", "cross", "interleaved", "shuffle", "cross_host", "interleaved_host", "shuffle_host"
]
NansumStrategy: TypeAlias = Literal["rows", "columns"]
ArgmaxStrategy: TypeAlias = Literal["rows", "columns", "cross", "interleaved", "shuffle"]
SoftmaxStrategy: TypeAlias = Literal[
    "naive", "block_tree", "block_coalesced", "two_pass", "two_pass_host", "block_online", "block_shared", "warp",
    "warp_pack2", "warp_pack4", "warp_pack8", "grid_online", "grid", "columns", "rows"
]
RmsNormStrategy: TypeAlias = Literal["grid_online", "grid", "columns", "rows"]
CumsumStrategy: TypeAlias = Literal["hillis_steele", "blelloch", "warp", "three_pass", "look_back"]
LogcumsumexpStrategy: TypeAlias = Literal["blelloch", "three_pass", "look_back"]
MatmulStrategy: TypeAlias = Literal[
    "naive", "coalesced", "shared", "blocktile_1d", "blocktile_2d", "vectorized", "warptile", "cublas", "pipelined"
]
ExpandOp: TypeAlias = Literal["expand", "where"]
SumOp: TypeAlias = Literal["sum", "prod", "max", "min", "mean", "any", "all", "amax", "amin"]
NansumOp: TypeAlias = Literal[
    "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "var", "std", "nanvar", "nanstd", "nanargmax", "nanargmin",
    "count_nonzero", "ptp", "sum_of_squares", "mean_var", "max_with_index", "min_with_index", "vector_norm"
]
ArgmaxOp: TypeAlias = Literal["argmax", "argmin", "logsumexp"]
SoftmaxOp: TypeAlias = Literal["softmax", "log_softmax"]
RmsNormOp: TypeAlias = Literal["rms_norm"]
CumsumOp: TypeAlias = Literal["cumsum", "cumprod", "cummax", "cummin"]
LogcumsumexpOp: TypeAlias = Literal["logcumsumexp"]
MatmulOp: TypeAlias = Literal["matmul"]
