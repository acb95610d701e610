from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from . import array_api as array_api
from ._types import (
    ArgmaxOp,
    ArgmaxStrategy,
    Array,
    Average,
    Axes,
    Axis,
    Casting,
    CumsumOp,
    CumsumStrategy,
    ExpandOp,
    ExpandStrategy,
    Floating,
    Foreign,
    ForeignDType,
    Inexact,
    Kind,
    Lazy,
    LogcumsumexpOp,
    LogcumsumexpStrategy,
    MatmulOp,
    MatmulStrategy,
    MeanVar,
    NansumOp,
    NansumStrategy,
    Number,
    Other,
    OutArray,
    OutBool,
    OutIndex,
    OutKind,
    OutOther,
    Plain,
    Real,
    RmsNormOp,
    RmsNormStrategy,
    Shape,
    SoftmaxOp,
    SoftmaxStrategy,
    SumOp,
    SumStrategy,
    Untyped,
    WithIndex,
)
from .tools.info import info as info
from .version import __version__ as __version__

__all__ = [
    "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "array_api", "array_equal", "average", "broadcast_to",
    "compress", "count_nonzero", "cummax", "cummin", "cumprod", "cumsum", "dot", "evaluate", "expand", "info", "lazy",
    "log_softmax", "logcumsumexp", "logsumexp", "matmul", "max", "max_with_index", "mean", "mean_var", "min",
    "min_with_index", "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
    "nonzero", "prod", "ptp", "rms_norm", "softmax", "std", "strategies", "sum", "sum_of_squares", "var", "vector_norm",
    "where"
]

@overload
def all(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = True,
    strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def all(
    a: Array | Plain | Lazy[Array], axis: Axis = None, out: OutBool | None = None, keepdims: bool = False, *,
    where: Array | Plain | Lazy[Array] = True, strategy: SumStrategy | None = None
) -> OutBool: ...
@overload
def all(
    a: Other | Lazy[Other], axis: Axis = None, out: OutOther | None = None, keepdims: bool = False, *,
    where: Other | Plain | Lazy[Other] = True, strategy: SumStrategy | None = None
) -> OutOther: ...
@overload
def allclose(a: Untyped, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Untyped: ...
@overload
def allclose(
    a: Array | Plain | Lazy[Array], b: Array | Plain | Lazy[Array], rtol: float = 1e-05, atol: float = 1e-08,
    equal_nan: bool = False
) -> bool: ...
@overload
def allclose(
    a: Other | Plain | Lazy[Other], b: Other | Plain | Lazy[Other], rtol: float = 1e-05, atol: float = 1e-08,
    equal_nan: bool = False
) -> Other: ...
def amax(
    a: Kind | Plain | Lazy[Kind], axis: Axis = None, out: OutKind | None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Foreign | Plain | Lazy[Any] = True, *,
    strategy: SumStrategy | None = None
) -> OutKind: ...
def amin(
    a: Kind | Plain | Lazy[Kind], axis: Axis = None, out: OutKind | None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Foreign | Plain | Lazy[Any] = True, *,
    strategy: SumStrategy | None = None
) -> OutKind: ...
@overload
def any(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = True,
    strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def any(
    a: Array | Plain | Lazy[Array], axis: Axis = None, out: OutBool | None = None, keepdims: bool = False, *,
    where: Array | Plain | Lazy[Array] = True, strategy: SumStrategy | None = None
) -> OutBool: ...
@overload
def any(
    a: Other | Lazy[Other], axis: Axis = None, out: OutOther | None = None, keepdims: bool = False, *,
    where: Other | Plain | Lazy[Other] = True, strategy: SumStrategy | None = None
) -> OutOther: ...
@overload
def argmax(
    a: Untyped, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> Untyped: ...
@overload
def argmax(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, out: OutIndex | None = None, *,
    keepdims: bool = False, strategy: ArgmaxStrategy | None = None
) -> OutIndex: ...
@overload
def argmax(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, out: OutOther | None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> OutOther: ...
@overload
def argmin(
    a: Untyped, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> Untyped: ...
@overload
def argmin(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, out: OutIndex | None = None, *,
    keepdims: bool = False, strategy: ArgmaxStrategy | None = None
) -> OutIndex: ...
@overload
def argmin(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, out: OutOther | None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> OutOther: ...
@overload
def array_equal(a1: Untyped, a2: Any, equal_nan: bool = False) -> Untyped: ...
@overload
def array_equal(a1: Array | Plain | Lazy[Array], a2: Array | Plain | Lazy[Array], equal_nan: bool = False) -> bool: ...
@overload
def array_equal(a1: Other | Plain | Lazy[Other], a2: Other | Plain | Lazy[Other], equal_nan: bool = False) -> Other: ...
@overload
def average(
    a: Untyped, axis: Axis = None, weights: Any | None = None, returned: bool = False, *, keepdims: bool = False
) -> Untyped: ...
@overload
def average(
    a: Array | Plain | Lazy[Array], axis: Axis = None, weights: Array | Plain | Lazy[Array] | None = None,
    returned: Literal[False] = False, *, keepdims: bool = False
) -> Array: ...
@overload
def average(
    a: Array | Plain | Lazy[Array], axis: Axis = None, weights: Array | Plain | Lazy[Array] | None = None, *,
    returned: Literal[True], keepdims: bool = False
) -> Average[Array]: ...
@overload
def average(
    a: Array | Plain | Lazy[Array], axis: Axis = None, weights: Array | Plain | Lazy[Array] | None = None, *,
    returned: bool, keepdims: bool = False
) -> Array | Average[Array]: ...
@overload
def average(
    a: Other | Lazy[Other], axis: Axis = None, weights: Other | Plain | Lazy[Other] | None = None,
    returned: Literal[False] = False, *, keepdims: bool = False
) -> Other: ...
@overload
def average(
    a: Other | Lazy[Other], axis: Axis = None, weights: Other | Plain | Lazy[Other] | None = None, *,
    returned: Literal[True], keepdims: bool = False
) -> Average[Other]: ...
@overload
def average(
    a: Other | Lazy[Other], axis: Axis = None, weights: Other | Plain | Lazy[Other] | None = None, *, returned: bool,
    keepdims: bool = False
) -> Other | Average[Other]: ...
def broadcast_to(array: Kind | Plain, shape: Shape, subok: bool = False) -> Kind: ...
def compress(
    condition: Array | Foreign | Plain | Lazy[Any], a: Kind | Plain | Lazy[Kind], axis: SupportsIndex | None = None,
    out: OutKind | None = None
) -> OutKind: ...
@overload
def count_nonzero(
    a: Untyped, axis: Axis = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def count_nonzero(
    a: Array | Plain | Lazy[Array], axis: Axis = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def count_nonzero(
    a: Other | Lazy[Other], axis: Axis = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> Other: ...
@overload
def cummax(
    a: Untyped, axis: SupportsIndex | None = None, dtype: ForeignDType | None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: CumsumStrategy | None = None
) -> Untyped: ...
@overload
def cummax(
    a: npt.NDArray[Inexact], axis: SupportsIndex | None = None, dtype: None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: CumsumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def cummax(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutArray | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: CumsumStrategy | None = None
) -> OutArray: ...
@overload
def cummax(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutOther | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: CumsumStrategy | None = None
) -> OutOther: ...
@overload
def cummin(
    a: Untyped, axis: SupportsIndex | None = None, dtype: ForeignDType | None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: CumsumStrategy | None = None
) -> Untyped: ...
@overload
def cummin(
    a: npt.NDArray[Inexact], axis: SupportsIndex | None = None, dtype: None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: CumsumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def cummin(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutArray | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: CumsumStrategy | None = None
) -> OutArray: ...
@overload
def cummin(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutOther | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: CumsumStrategy | None = None
) -> OutOther: ...
@overload
def cumprod(
    a: Untyped, axis: SupportsIndex | None = None, dtype: ForeignDType | None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: CumsumStrategy | None = None
) -> Untyped: ...
@overload
def cumprod(
    a: npt.NDArray[Inexact], axis: SupportsIndex | None = None, dtype: None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: CumsumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def cumprod(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutArray | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: CumsumStrategy | None = None
) -> OutArray: ...
@overload
def cumprod(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutOther | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: CumsumStrategy | None = None
) -> OutOther: ...
@overload
def cumsum(
    a: Untyped, axis: SupportsIndex | None = None, dtype: ForeignDType | None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: CumsumStrategy | None = None
) -> Untyped: ...
@overload
def cumsum(
    a: npt.NDArray[Inexact], axis: SupportsIndex | None = None, dtype: None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: CumsumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def cumsum(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutArray | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: CumsumStrategy | None = None
) -> OutArray: ...
@overload
def cumsum(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutOther | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: CumsumStrategy | None = None
) -> OutOther: ...
@overload
def dot(a: Untyped, b: Any, out: None = None) -> Untyped: ...
@overload
def dot(a: Array | Plain, b: Array | Plain, out: OutArray | None = None) -> OutArray: ...
@overload
def dot(a: Other | Plain, b: Other | Plain, out: OutOther | None = None) -> OutOther: ...
def evaluate(x: Kind | Plain | Lazy[Kind], *, out: OutKind | None = None) -> OutKind: ...
def expand(
    x: Kind | Plain | Lazy[Kind], shape: Shape, *, out: OutKind | None = None, strategy: ExpandStrategy | None = None
) -> OutKind: ...
@overload
def lazy(x: Untyped) -> Untyped: ...
@overload
def lazy(x: Array | Plain | Lazy[Array]) -> Lazy[Array]: ...
@overload
def lazy(x: Other | Lazy[Other]) -> Lazy[Other]: ...
@overload
def log_softmax(
    x: Untyped, axis: Axis = None, *, dtype: ForeignDType | None = None, out: None = None, where: Any = True,
    scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Untyped: ...
@overload
def log_softmax(
    x: npt.NDArray[Floating], axis: Axis = None, *, dtype: None = None, out: None = None,
    where: Array | Plain | Lazy[Array] = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def log_softmax(
    x: Array | Plain | Lazy[Array], axis: Axis = None, *, dtype: ForeignDType | None = None,
    out: OutArray | None = None, where: Array | Plain | Lazy[Array] = True, scale: Number | None = None,
    strategy: SoftmaxStrategy | None = None
) -> OutArray: ...
@overload
def log_softmax(
    x: Other | Lazy[Other], axis: Axis = None, *, dtype: ForeignDType | None = None, out: OutOther | None = None,
    where: Other | Plain | Lazy[Other] = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> OutOther: ...
@overload
def logcumsumexp(
    a: Untyped, axis: SupportsIndex | None = None, dtype: ForeignDType | None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: LogcumsumexpStrategy | None = None
) -> Untyped: ...
@overload
def logcumsumexp(
    a: npt.NDArray[Floating], axis: SupportsIndex | None = None, dtype: None = None, out: None = None, *,
    reverse: bool = False, exclusive: bool = False, strategy: LogcumsumexpStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def logcumsumexp(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutArray | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: LogcumsumexpStrategy | None = None
) -> OutArray: ...
@overload
def logcumsumexp(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, dtype: ForeignDType | None = None,
    out: OutOther | None = None, *, reverse: bool = False, exclusive: bool = False,
    strategy: LogcumsumexpStrategy | None = None
) -> OutOther: ...
@overload
def logsumexp(
    a: Untyped, axis: Axis = None, b: Any | None = None, keepdims: bool = False, return_sign: bool = False, *,
    dtype: ForeignDType | None = None, out: None = None, where: Any = True, scale: Number | None = None,
    strategy: ArgmaxStrategy | None = None
) -> Untyped: ...
@overload
def logsumexp(
    a: npt.NDArray[Floating], axis: Axis = None, b: None = None, keepdims: bool = False,
    return_sign: Literal[False] = False, *, dtype: None = None, out: None = None,
    where: Array | Plain | Lazy[Array] = True, scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def logsumexp(
    a: Array | Plain | Lazy[Array], axis: Axis = None, b: Array | Plain | Lazy[Array] | None = None,
    keepdims: bool = False, return_sign: Literal[False] = False, *, dtype: ForeignDType | None = None,
    out: OutArray | None = None, where: Array | Plain | Lazy[Array] = True, scale: Number | None = None,
    strategy: ArgmaxStrategy | None = None
) -> OutArray: ...
@overload
def logsumexp(
    a: Array | Plain | Lazy[Array], axis: Axis = None, b: Array | Plain | Lazy[Array] | None = None,
    keepdims: bool = False, *, return_sign: Literal[True], dtype: ForeignDType | None = None,
    out: OutArray | None = None, where: Array | Plain | Lazy[Array] = True, scale: Number | None = None,
    strategy: ArgmaxStrategy | None = None
) -> tuple[OutArray, OutArray]: ...
@overload
def logsumexp(
    a: Array | Plain | Lazy[Array], axis: Axis = None, b: Array | Plain | Lazy[Array] | None = None,
    keepdims: bool = False, *, return_sign: bool, dtype: ForeignDType | None = None, out: OutArray | None = None,
    where: Array | Plain | Lazy[Array] = True, scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> OutArray | tuple[OutArray, OutArray]: ...
@overload
def logsumexp(
    a: Other | Lazy[Other], axis: Axis = None, b: Other | Plain | Lazy[Other] | None = None, keepdims: bool = False,
    return_sign: Literal[False] = False, *, dtype: ForeignDType | None = None, out: OutOther | None = None,
    where: Other | Plain | Lazy[Other] = True, scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> OutOther: ...
@overload
def logsumexp(
    a: Other | Lazy[Other], axis: Axis = None, b: Other | Plain | Lazy[Other] | None = None, keepdims: bool = False, *,
    return_sign: Literal[True], dtype: ForeignDType | None = None, out: OutOther | None = None,
    where: Other | Plain | Lazy[Other] = True, scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> tuple[OutOther, OutOther]: ...
@overload
def logsumexp(
    a: Other | Lazy[Other], axis: Axis = None, b: Other | Plain | Lazy[Other] | None = None, keepdims: bool = False, *,
    return_sign: bool, dtype: ForeignDType | None = None, out: OutOther | None = None,
    where: Other | Plain | Lazy[Other] = True, scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> OutOther | tuple[OutOther, OutOther]: ...
@overload
def matmul(
    a: Untyped, b: Any, /, out: None = None, *, alpha: Number = 1, beta: Number | None = None, c: Any | None = None,
    casting: Casting = "same_kind", axes: Axes | None = None, strategy: MatmulStrategy | None = None
) -> Untyped: ...
@overload
def matmul(
    a: Array | Plain, b: Array | Plain, /, out: OutArray | None = None, *, alpha: Number = 1,
    beta: Number | None = None, c: Array | Plain | None = None, casting: Casting = "same_kind",
    axes: Axes | None = None, strategy: MatmulStrategy | None = None
) -> OutArray: ...
@overload
def matmul(
    a: Other | Plain, b: Other | Plain, /, out: OutOther | None = None, *, alpha: Number = 1,
    beta: Number | None = None, c: Other | Plain | None = None, casting: Casting = "same_kind",
    axes: Axes | None = None, strategy: MatmulStrategy | None = None
) -> OutOther: ...
def max(
    a: Kind | Plain | Lazy[Kind], axis: Axis = None, out: OutKind | None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Foreign | Plain | Lazy[Any] = True, *,
    strategy: SumStrategy | None = None
) -> OutKind: ...
@overload
def max_with_index(
    a: Untyped, axis: SupportsIndex | None = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def max_with_index(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> WithIndex[Array]: ...
@overload
def max_with_index(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> WithIndex[Other]: ...
@overload
def mean(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False, *,
    where: Any = True, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def mean(
    a: npt.NDArray[Inexact], axis: Axis = None, dtype: None = None, out: None = None, keepdims: bool = False, *,
    where: Array | Plain | Lazy[Array] = True, strategy: SumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def mean(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True, strategy: SumStrategy | None = None
) -> OutArray: ...
@overload
def mean(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    keepdims: bool = False, *, where: Other | Plain | Lazy[Other] = True, strategy: SumStrategy | None = None
) -> OutOther: ...
@overload
def mean_var(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, ddof: Real = 0, keepdims: bool = False, *,
    where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def mean_var(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> MeanVar[Array]: ...
@overload
def mean_var(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Other | Plain | Lazy[Other] = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> MeanVar[Other]: ...
def min(
    a: Kind | Plain | Lazy[Kind], axis: Axis = None, out: OutKind | None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Foreign | Plain | Lazy[Any] = True, *,
    strategy: SumStrategy | None = None
) -> OutKind: ...
@overload
def min_with_index(
    a: Untyped, axis: SupportsIndex | None = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def min_with_index(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> WithIndex[Array]: ...
@overload
def min_with_index(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> WithIndex[Other]: ...
@overload
def nanargmax(
    a: Untyped, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanargmax(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, out: OutIndex | None = None, *,
    keepdims: bool = False, strategy: NansumStrategy | None = None
) -> OutIndex: ...
@overload
def nanargmax(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, out: OutOther | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> OutOther: ...
@overload
def nanargmin(
    a: Untyped, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanargmin(
    a: Array | Plain | Lazy[Array], axis: SupportsIndex | None = None, out: OutIndex | None = None, *,
    keepdims: bool = False, strategy: NansumStrategy | None = None
) -> OutIndex: ...
@overload
def nanargmin(
    a: Other | Lazy[Other], axis: SupportsIndex | None = None, out: OutOther | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> OutOther: ...
def nanmax(
    a: Kind | Plain | Lazy[Kind], axis: Axis = None, out: OutKind | None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Foreign | Plain | Lazy[Any] = True, *,
    strategy: NansumStrategy | None = None
) -> OutKind: ...
@overload
def nanmean(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False, *,
    where: Any = True, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanmean(
    a: npt.NDArray[Inexact], axis: Axis = None, dtype: None = None, out: None = None, keepdims: bool = False, *,
    where: Array | Plain | Lazy[Array] = True, strategy: NansumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def nanmean(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True, strategy: NansumStrategy | None = None
) -> OutArray: ...
@overload
def nanmean(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    keepdims: bool = False, *, where: Other | Plain | Lazy[Other] = True, strategy: NansumStrategy | None = None
) -> OutOther: ...
def nanmin(
    a: Kind | Plain | Lazy[Kind], axis: Axis = None, out: OutKind | None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Foreign | Plain | Lazy[Any] = True, *,
    strategy: NansumStrategy | None = None
) -> OutKind: ...
@overload
def nanprod(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Any = True, *, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanprod(
    a: npt.NDArray[Inexact], axis: Axis = None, dtype: None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Plain | Lazy[Array] = True, *, strategy: NansumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def nanprod(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    keepdims: bool = False, initial: Number | None = ..., where: Array | Plain | Lazy[Array] = True, *,
    strategy: NansumStrategy | None = None
) -> OutArray: ...
@overload
def nanprod(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    keepdims: bool = False, initial: Number | None = ..., where: Other | Plain | Lazy[Other] = True, *,
    strategy: NansumStrategy | None = None
) -> OutOther: ...
@overload
def nanstd(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanstd(
    a: npt.NDArray[Floating], axis: Axis = None, dtype: None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def nanstd(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    ddof: Real = 0, keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True,
    correction: Real | None = None, strategy: NansumStrategy | None = None
) -> OutArray: ...
@overload
def nanstd(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    ddof: Real = 0, keepdims: bool = False, *, where: Other | Plain | Lazy[Other] = True,
    correction: Real | None = None, strategy: NansumStrategy | None = None
) -> OutOther: ...
@overload
def nansum(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Any = True, *, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nansum(
    a: npt.NDArray[Inexact], axis: Axis = None, dtype: None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Plain | Lazy[Array] = True, *, strategy: NansumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def nansum(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    keepdims: bool = False, initial: Number | None = ..., where: Array | Plain | Lazy[Array] = True, *,
    strategy: NansumStrategy | None = None
) -> OutArray: ...
@overload
def nansum(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    keepdims: bool = False, initial: Number | None = ..., where: Other | Plain | Lazy[Other] = True, *,
    strategy: NansumStrategy | None = None
) -> OutOther: ...
@overload
def nanvar(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanvar(
    a: npt.NDArray[Floating], axis: Axis = None, dtype: None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def nanvar(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    ddof: Real = 0, keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True,
    correction: Real | None = None, strategy: NansumStrategy | None = None
) -> OutArray: ...
@overload
def nanvar(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    ddof: Real = 0, keepdims: bool = False, *, where: Other | Plain | Lazy[Other] = True,
    correction: Real | None = None, strategy: NansumStrategy | None = None
) -> OutOther: ...
@overload
def nonzero(a: Untyped) -> Untyped: ...
@overload
def nonzero(a: Array | Plain | Lazy[Array]) -> tuple[npt.NDArray[np.int64], ...]: ...
@overload
def nonzero(a: Other | Lazy[Other]) -> tuple[Other, ...]: ...
@overload
def prod(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Any = True, *, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def prod(
    a: npt.NDArray[Inexact], axis: Axis = None, dtype: None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Plain | Lazy[Array] = True, *, strategy: SumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def prod(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    keepdims: bool = False, initial: Number | None = ..., where: Array | Plain | Lazy[Array] = True, *,
    strategy: SumStrategy | None = None
) -> OutArray: ...
@overload
def prod(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    keepdims: bool = False, initial: Number | None = ..., where: Other | Plain | Lazy[Other] = True, *,
    strategy: SumStrategy | None = None
) -> OutOther: ...
def ptp(
    a: Kind | Plain | Lazy[Kind], axis: Axis = None, out: OutKind | None = None, keepdims: bool = False, *,
    strategy: NansumStrategy | None = None
) -> OutKind: ...
@overload
def rms_norm(
    x: Untyped, axis: Axis = -1, *, eps: float | None = None, dtype: ForeignDType | None = None, out: None = None,
    where: Any = True, strategy: RmsNormStrategy | None = None
) -> Untyped: ...
@overload
def rms_norm(
    x: npt.NDArray[Floating], axis: Axis = -1, *, eps: float | None = None, dtype: None = None, out: None = None,
    where: Array | Plain | Lazy[Array] = True, strategy: RmsNormStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def rms_norm(
    x: Array | Plain | Lazy[Array], axis: Axis = -1, *, eps: float | None = None, dtype: ForeignDType | None = None,
    out: OutArray | None = None, where: Array | Plain | Lazy[Array] = True, strategy: RmsNormStrategy | None = None
) -> OutArray: ...
@overload
def rms_norm(
    x: Other | Lazy[Other], axis: Axis = -1, *, eps: float | None = None, dtype: ForeignDType | None = None,
    out: OutOther | None = None, where: Other | Plain | Lazy[Other] = True, strategy: RmsNormStrategy | None = None
) -> OutOther: ...
@overload
def softmax(
    x: Untyped, axis: Axis = None, *, dtype: ForeignDType | None = None, out: None = None, where: Any = True,
    scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Untyped: ...
@overload
def softmax(
    x: npt.NDArray[Floating], axis: Axis = None, *, dtype: None = None, out: None = None,
    where: Array | Plain | Lazy[Array] = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def softmax(
    x: Array | Plain | Lazy[Array], axis: Axis = None, *, dtype: ForeignDType | None = None,
    out: OutArray | None = None, where: Array | Plain | Lazy[Array] = True, scale: Number | None = None,
    strategy: SoftmaxStrategy | None = None
) -> OutArray: ...
@overload
def softmax(
    x: Other | Lazy[Other], axis: Axis = None, *, dtype: ForeignDType | None = None, out: OutOther | None = None,
    where: Other | Plain | Lazy[Other] = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> OutOther: ...
@overload
def std(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def std(
    a: npt.NDArray[Floating], axis: Axis = None, dtype: None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def std(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    ddof: Real = 0, keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True,
    correction: Real | None = None, strategy: NansumStrategy | None = None
) -> OutArray: ...
@overload
def std(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    ddof: Real = 0, keepdims: bool = False, *, where: Other | Plain | Lazy[Other] = True,
    correction: Real | None = None, strategy: NansumStrategy | None = None
) -> OutOther: ...
@overload
def strategies(op: ExpandOp) -> tuple[ExpandStrategy, ...]: ...
@overload
def strategies(op: SumOp) -> tuple[SumStrategy, ...]: ...
@overload
def strategies(op: NansumOp) -> tuple[NansumStrategy, ...]: ...
@overload
def strategies(op: ArgmaxOp) -> tuple[ArgmaxStrategy, ...]: ...
@overload
def strategies(op: SoftmaxOp) -> tuple[SoftmaxStrategy, ...]: ...
@overload
def strategies(op: RmsNormOp) -> tuple[RmsNormStrategy, ...]: ...
@overload
def strategies(op: CumsumOp) -> tuple[CumsumStrategy, ...]: ...
@overload
def strategies(op: LogcumsumexpOp) -> tuple[LogcumsumexpStrategy, ...]: ...
@overload
def strategies(op: MatmulOp) -> tuple[MatmulStrategy, ...]: ...
@overload
def sum(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Any = True, *, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def sum(
    a: npt.NDArray[Inexact], axis: Axis = None, dtype: None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Plain | Lazy[Array] = True, *, strategy: SumStrategy | None = None
) -> npt.NDArray[Inexact]: ...
@overload
def sum(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    keepdims: bool = False, initial: Number | None = ..., where: Array | Plain | Lazy[Array] = True, *,
    strategy: SumStrategy | None = None
) -> OutArray: ...
@overload
def sum(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    keepdims: bool = False, initial: Number | None = ..., where: Other | Plain | Lazy[Other] = True, *,
    strategy: SumStrategy | None = None
) -> OutOther: ...
@overload
def sum_of_squares(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False, *,
    where: Any = True, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def sum_of_squares(
    a: npt.NDArray[Floating], axis: Axis = None, dtype: None = None, out: None = None, keepdims: bool = False, *,
    where: Array | Plain | Lazy[Array] = True, strategy: NansumStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def sum_of_squares(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True, strategy: NansumStrategy | None = None
) -> OutArray: ...
@overload
def sum_of_squares(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    keepdims: bool = False, *, where: Other | Plain | Lazy[Other] = True, strategy: NansumStrategy | None = None
) -> OutOther: ...
@overload
def var(
    a: Untyped, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def var(
    a: npt.NDArray[Floating], axis: Axis = None, dtype: None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def var(
    a: Array | Plain | Lazy[Array], axis: Axis = None, dtype: ForeignDType | None = None, out: OutArray | None = None,
    ddof: Real = 0, keepdims: bool = False, *, where: Array | Plain | Lazy[Array] = True,
    correction: Real | None = None, strategy: NansumStrategy | None = None
) -> OutArray: ...
@overload
def var(
    a: Other | Lazy[Other], axis: Axis = None, dtype: ForeignDType | None = None, out: OutOther | None = None,
    ddof: Real = 0, keepdims: bool = False, *, where: Other | Plain | Lazy[Other] = True,
    correction: Real | None = None, strategy: NansumStrategy | None = None
) -> OutOther: ...
@overload
def vector_norm(
    a: Untyped, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def vector_norm(
    a: npt.NDArray[Floating], /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def vector_norm(
    a: Array | Plain | Lazy[Array], /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def vector_norm(
    a: Other | Lazy[Other], /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2,
    strategy: NansumStrategy | None = None
) -> Other: ...
@overload
def where(condition: Untyped, /) -> Untyped: ...
@overload
def where(condition: Array | Plain | Lazy[Array], /) -> tuple[npt.NDArray[np.int64], ...]: ...
@overload
def where(condition: Other | Lazy[Other], /) -> tuple[Other, ...]: ...
@overload
def where(
    condition: Untyped, x: Any, y: Any, /, *, out: None = None, strategy: ExpandStrategy | None = None
) -> Untyped: ...
@overload
def where(
    condition: Array | Plain, x: npt.NDArray[Floating] | float, y: npt.NDArray[Floating] | float, /, *,
    out: None = None, strategy: ExpandStrategy | None = None
) -> npt.NDArray[Floating]: ...
@overload
def where(
    condition: Array | Plain, x: Array | Plain, y: Array | Plain, /, *, out: OutArray | None = None,
    strategy: ExpandStrategy | None = None
) -> OutArray: ...
@overload
def where(
    condition: Other | Plain, x: Other | Plain, y: Other | Plain, /, *, out: OutOther | None = None,
    strategy: ExpandStrategy | None = None
) -> OutOther: ...
@overload
def where(
    condition: Array | Plain | Lazy[Array], x: Array | Plain | Lazy[Array], y: Array | Plain | Lazy[Array], /, *,
    out: None = None, strategy: ExpandStrategy | None = None
) -> Lazy[Array]: ...
@overload
def where(
    condition: Other | Plain | Lazy[Other], x: Other | Plain | Lazy[Other], y: Other | Plain | Lazy[Other], /, *,
    out: None = None, strategy: ExpandStrategy | None = None
) -> Lazy[Other]: ...
@overload
def where(
    condition: Array | Foreign | Plain | Lazy[Any], x: Array | Foreign | Plain | Lazy[Any],
    y: Array | Foreign | Plain | Lazy[Any], /, *, out: OutArray, strategy: ExpandStrategy | None = None
) -> OutArray: ...
