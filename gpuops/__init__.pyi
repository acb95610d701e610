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
    ExpandOp,
    ExpandStrategy,
    Foreign,
    ForeignDType,
    Kind,
    MatmulOp,
    MatmulStrategy,
    MeanVar,
    NansumOp,
    NansumStrategy,
    Number,
    Out,
    Plain,
    Real,
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
    "count_nonzero", "dot", "expand", "info", "log_softmax", "logsumexp", "matmul", "max", "max_with_index", "mean",
    "mean_var", "min", "min_with_index", "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar", "prod", "ptp", "softmax", "std", "strategies", "sum", "sum_of_squares", "var", "vector_norm",
    "where"
]

@overload
def all(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False,
    where: npt.ArrayLike | Foreign = True, strategy: SumStrategy | None = None
) -> Out: ...
@overload
def all(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = True,
    strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def all(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Array | Plain = True,
    strategy: SumStrategy | None = None
) -> npt.NDArray[np.bool]: ...
@overload
def all(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Kind | Plain = True,
    strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def all(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: npt.ArrayLike = True,
    strategy: SumStrategy | None = None
) -> npt.NDArray[np.bool]: ...
@overload
def allclose(a: Untyped, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Untyped: ...
@overload
def allclose(
    a: Array | Plain, b: Array | Plain, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> np.bool: ...
@overload
def allclose(
    a: Kind | Plain, b: Kind | Plain, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Kind: ...
@overload
def allclose(
    a: npt.ArrayLike, b: npt.ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> np.bool: ...
@overload
def amax(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike | Foreign = True, strategy: SumStrategy | None = None
) -> Out: ...
@overload
def amax(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Any = True, *, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def amax(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Array | Plain = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def amax(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Kind | Plain = True, *, strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def amax(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def amin(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike | Foreign = True, strategy: SumStrategy | None = None
) -> Out: ...
@overload
def amin(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Any = True, *, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def amin(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Array | Plain = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def amin(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Kind | Plain = True, *, strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def amin(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def any(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False,
    where: npt.ArrayLike | Foreign = True, strategy: SumStrategy | None = None
) -> Out: ...
@overload
def any(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = True,
    strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def any(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Array | Plain = True,
    strategy: SumStrategy | None = None
) -> npt.NDArray[np.bool]: ...
@overload
def any(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Kind | Plain = True,
    strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def any(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: npt.ArrayLike = True,
    strategy: SumStrategy | None = None
) -> npt.NDArray[np.bool]: ...
@overload
def argmax(
    a: npt.ArrayLike | Foreign, axis: SupportsIndex | None = None, *, out: Out, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> Out: ...
@overload
def argmax(
    a: Untyped, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> Untyped: ...
@overload
def argmax(
    a: Array | Plain, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def argmax(
    a: Kind, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> Kind: ...
@overload
def argmax(
    a: npt.ArrayLike, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def argmin(
    a: npt.ArrayLike | Foreign, axis: SupportsIndex | None = None, *, out: Out, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> Out: ...
@overload
def argmin(
    a: Untyped, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> Untyped: ...
@overload
def argmin(
    a: Array | Plain, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def argmin(
    a: Kind, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> Kind: ...
@overload
def argmin(
    a: npt.ArrayLike, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: ArgmaxStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def array_equal(a1: Untyped, a2: Any, equal_nan: bool = False) -> Untyped: ...
@overload
def array_equal(a1: Array | Plain, a2: Array | Plain, equal_nan: bool = False) -> np.bool: ...
@overload
def array_equal(a1: Kind | Plain, a2: Kind | Plain, equal_nan: bool = False) -> Kind: ...
@overload
def array_equal(a1: npt.ArrayLike, a2: npt.ArrayLike, equal_nan: bool = False) -> np.bool: ...
@overload
def average(
    a: Untyped, axis: Axis = None, weights: Any | None = None, returned: bool = False, *, keepdims: bool = False
) -> Untyped: ...
@overload
def average(
    a: Array | Plain, axis: Axis = None, weights: Array | Plain | None = None, returned: Literal[False] = False, *,
    keepdims: bool = False
) -> Array: ...
@overload
def average(
    a: Array | Plain, axis: Axis = None, weights: Array | Plain | None = None, *, returned: Literal[True],
    keepdims: bool = False
) -> Average[Array]: ...
@overload
def average(
    a: Array | Plain, axis: Axis = None, weights: Array | Plain | None = None, *, returned: bool, keepdims: bool = False
) -> Array | Average[Array]: ...
@overload
def average(
    a: Kind, axis: Axis = None, weights: Kind | Plain | None = None, returned: Literal[False] = False, *,
    keepdims: bool = False
) -> Kind: ...
@overload
def average(
    a: Kind, axis: Axis = None, weights: Kind | Plain | None = None, *, returned: Literal[True], keepdims: bool = False
) -> Average[Kind]: ...
@overload
def average(
    a: Kind, axis: Axis = None, weights: Kind | Plain | None = None, *, returned: bool, keepdims: bool = False
) -> Kind | Average[Kind]: ...
@overload
def average(
    a: npt.ArrayLike, axis: Axis = None, weights: npt.ArrayLike | None = None, returned: Literal[False] = False, *,
    keepdims: bool = False
) -> Array: ...
@overload
def average(
    a: npt.ArrayLike, axis: Axis = None, weights: npt.ArrayLike | None = None, *, returned: Literal[True],
    keepdims: bool = False
) -> Average[Array]: ...
@overload
def average(
    a: npt.ArrayLike, axis: Axis = None, weights: npt.ArrayLike | None = None, *, returned: bool, keepdims: bool = False
) -> Array | Average[Array]: ...
@overload
def broadcast_to(array: Untyped, shape: Shape, subok: bool = False) -> Untyped: ...
@overload
def broadcast_to(array: Array | Plain, shape: Shape, subok: bool = False) -> Array: ...
@overload
def broadcast_to(array: Kind, shape: Shape, subok: bool = False) -> Kind: ...
@overload
def broadcast_to(array: npt.ArrayLike, shape: Shape, subok: bool = False) -> Array: ...
@overload
def count_nonzero(
    a: Untyped, axis: Axis = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def count_nonzero(
    a: Array | Plain, axis: Axis = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def count_nonzero(
    a: Kind, axis: Axis = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def count_nonzero(
    a: npt.ArrayLike, axis: Axis = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def dot(a: npt.ArrayLike | Foreign, b: npt.ArrayLike | Foreign, out: Out) -> Out: ...
@overload
def dot(a: Untyped, b: Any, out: None = None) -> Untyped: ...
@overload
def dot(a: Array | Plain, b: Array | Plain, out: None = None) -> Array: ...
@overload
def dot(a: Kind | Plain, b: Kind | Plain, out: None = None) -> Kind: ...
@overload
def dot(a: npt.ArrayLike, b: npt.ArrayLike, out: None = None) -> Array: ...
@overload
def expand(x: npt.ArrayLike | Foreign, shape: Shape, *, out: Out, strategy: ExpandStrategy | None = None) -> Out: ...
@overload
def expand(x: Untyped, shape: Shape, *, out: None = None, strategy: ExpandStrategy | None = None) -> Untyped: ...
@overload
def expand(x: Array | Plain, shape: Shape, *, out: None = None, strategy: ExpandStrategy | None = None) -> Array: ...
@overload
def expand(x: Kind, shape: Shape, *, out: None = None, strategy: ExpandStrategy | None = None) -> Kind: ...
@overload
def expand(x: npt.ArrayLike, shape: Shape, *, out: None = None, strategy: ExpandStrategy | None = None) -> Array: ...
@overload
def log_softmax(
    x: npt.ArrayLike | Foreign, axis: Axis = None, *, dtype: ForeignDType | None = None, out: Out,
    where: npt.ArrayLike | Foreign = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Out: ...
@overload
def log_softmax(
    x: Untyped, axis: Axis = None, *, dtype: Any | None = None, out: None = None, where: Any = True,
    scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Untyped: ...
@overload
def log_softmax(
    x: Array | Plain, axis: Axis = None, *, dtype: npt.DTypeLike | None = None, out: None = None,
    where: Array | Plain = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Array: ...
@overload
def log_softmax(
    x: Kind, axis: Axis = None, *, dtype: ForeignDType | None = None, out: None = None, where: Kind | Plain = True,
    scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Kind: ...
@overload
def log_softmax(
    x: npt.ArrayLike, axis: Axis = None, *, dtype: npt.DTypeLike | None = None, out: None = None,
    where: npt.ArrayLike = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Array: ...
@overload
def logsumexp(
    a: npt.ArrayLike | Foreign, axis: Axis = None, b: npt.ArrayLike | Foreign | None = None, keepdims: bool = False,
    return_sign: bool = False, *, dtype: ForeignDType | None = None, out: Out, where: npt.ArrayLike | Foreign = True,
    scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> Out: ...
@overload
def logsumexp(
    a: Untyped, axis: Axis = None, b: Any | None = None, keepdims: bool = False, return_sign: bool = False, *,
    dtype: Any | None = None, out: None = None, where: Any = True, scale: Number | None = None,
    strategy: ArgmaxStrategy | None = None
) -> Untyped: ...
@overload
def logsumexp(
    a: Array | Plain, axis: Axis = None, b: Array | Plain | None = None, keepdims: bool = False,
    return_sign: Literal[False] = False, *, dtype: npt.DTypeLike | None = None, out: None = None,
    where: Array | Plain = True, scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> Array: ...
@overload
def logsumexp(
    a: Array | Plain, axis: Axis = None, b: Array | Plain | None = None, keepdims: bool = False, *,
    return_sign: Literal[True], dtype: npt.DTypeLike | None = None, out: None = None, where: Array | Plain = True,
    scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: Array | Plain, axis: Axis = None, b: Array | Plain | None = None, keepdims: bool = False, *, return_sign: bool,
    dtype: npt.DTypeLike | None = None, out: None = None, where: Array | Plain = True, scale: Number | None = None,
    strategy: ArgmaxStrategy | None = None
) -> Array | tuple[Array, Array]: ...
@overload
def logsumexp(
    a: Kind, axis: Axis = None, b: Kind | Plain | None = None, keepdims: bool = False,
    return_sign: Literal[False] = False, *, dtype: ForeignDType | None = None, out: None = None,
    where: Kind | Plain = True, scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> Kind: ...
@overload
def logsumexp(
    a: Kind, axis: Axis = None, b: Kind | Plain | None = None, keepdims: bool = False, *, return_sign: Literal[True],
    dtype: ForeignDType | None = None, out: None = None, where: Kind | Plain = True, scale: Number | None = None,
    strategy: ArgmaxStrategy | None = None
) -> tuple[Kind, Kind]: ...
@overload
def logsumexp(
    a: Kind, axis: Axis = None, b: Kind | Plain | None = None, keepdims: bool = False, *, return_sign: bool,
    dtype: ForeignDType | None = None, out: None = None, where: Kind | Plain = True, scale: Number | None = None,
    strategy: ArgmaxStrategy | None = None
) -> Kind | tuple[Kind, Kind]: ...
@overload
def logsumexp(
    a: npt.ArrayLike, axis: Axis = None, b: npt.ArrayLike | None = None, keepdims: bool = False,
    return_sign: Literal[False] = False, *, dtype: npt.DTypeLike | None = None, out: None = None,
    where: npt.ArrayLike = True, scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> Array: ...
@overload
def logsumexp(
    a: npt.ArrayLike, axis: Axis = None, b: npt.ArrayLike | None = None, keepdims: bool = False, *,
    return_sign: Literal[True], dtype: npt.DTypeLike | None = None, out: None = None, where: npt.ArrayLike = True,
    scale: Number | None = None, strategy: ArgmaxStrategy | None = None
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: npt.ArrayLike, axis: Axis = None, b: npt.ArrayLike | None = None, keepdims: bool = False, *, return_sign: bool,
    dtype: npt.DTypeLike | None = None, out: None = None, where: npt.ArrayLike = True, scale: Number | None = None,
    strategy: ArgmaxStrategy | None = None
) -> Array | tuple[Array, Array]: ...
@overload
def matmul(
    a: npt.ArrayLike | Foreign, b: npt.ArrayLike | Foreign, /, out: Out, *, alpha: Number = 1,
    beta: Number | None = None, c: npt.ArrayLike | Foreign | None = None, casting: Casting = "same_kind",
    axes: Axes | None = None, strategy: MatmulStrategy | None = None
) -> Out: ...
@overload
def matmul(
    a: Untyped, b: Any, /, out: None = None, *, alpha: Number = 1, beta: Number | None = None, c: Any | None = None,
    casting: Casting = "same_kind", axes: Axes | None = None, strategy: MatmulStrategy | None = None
) -> Untyped: ...
@overload
def matmul(
    a: Array | Plain, b: Array | Plain, /, out: None = None, *, alpha: Number = 1, beta: Number | None = None,
    c: Array | Plain | None = None, casting: Casting = "same_kind", axes: Axes | None = None,
    strategy: MatmulStrategy | None = None
) -> Array: ...
@overload
def matmul(
    a: Kind | Plain, b: Kind | Plain, /, out: None = None, *, alpha: Number = 1, beta: Number | None = None,
    c: Kind | Plain | None = None, casting: Casting = "same_kind", axes: Axes | None = None,
    strategy: MatmulStrategy | None = None
) -> Kind: ...
@overload
def matmul(
    a: npt.ArrayLike, b: npt.ArrayLike, /, out: None = None, *, alpha: Number = 1, beta: Number | None = None,
    c: npt.ArrayLike | None = None, casting: Casting = "same_kind", axes: Axes | None = None,
    strategy: MatmulStrategy | None = None
) -> Array: ...
@overload
def max(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike | Foreign = True, strategy: SumStrategy | None = None
) -> Out: ...
@overload
def max(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Any = True, *, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def max(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Array | Plain = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def max(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Kind | Plain = True, *, strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def max(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def max_with_index(
    a: Untyped, axis: SupportsIndex | None = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def max_with_index(
    a: Array | Plain, axis: SupportsIndex | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> WithIndex[Array]: ...
@overload
def max_with_index(
    a: Kind, axis: SupportsIndex | None = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> WithIndex[Kind]: ...
@overload
def max_with_index(
    a: npt.ArrayLike, axis: SupportsIndex | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> WithIndex[Array]: ...
@overload
def mean(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out,
    keepdims: bool = False, where: npt.ArrayLike | Foreign = True, strategy: SumStrategy | None = None
) -> Out: ...
@overload
def mean(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, keepdims: bool = False, *,
    where: Any = True, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def mean(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    *, where: Array | Plain = True, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def mean(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False, *,
    where: Kind | Plain = True, strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def mean(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    *, where: npt.ArrayLike = True, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def mean_var(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, ddof: Real = 0, keepdims: bool = False, *,
    where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def mean_var(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, ddof: Real = 0, keepdims: bool = False, *,
    where: Array | Plain = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> MeanVar[Array]: ...
@overload
def mean_var(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, ddof: Real = 0, keepdims: bool = False, *,
    where: Kind | Plain = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> MeanVar[Kind]: ...
@overload
def mean_var(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, ddof: Real = 0, keepdims: bool = False, *,
    where: npt.ArrayLike = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> MeanVar[Array]: ...
@overload
def min(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike | Foreign = True, strategy: SumStrategy | None = None
) -> Out: ...
@overload
def min(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Any = True, *, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def min(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Array | Plain = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def min(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Kind | Plain = True, *, strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def min(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def min_with_index(
    a: Untyped, axis: SupportsIndex | None = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def min_with_index(
    a: Array | Plain, axis: SupportsIndex | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> WithIndex[Array]: ...
@overload
def min_with_index(
    a: Kind, axis: SupportsIndex | None = None, *, keepdims: bool = False, strategy: NansumStrategy | None = None
) -> WithIndex[Kind]: ...
@overload
def min_with_index(
    a: npt.ArrayLike, axis: SupportsIndex | None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> WithIndex[Array]: ...
@overload
def nanargmax(
    a: npt.ArrayLike | Foreign, axis: SupportsIndex | None = None, *, out: Out, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nanargmax(
    a: Untyped, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanargmax(
    a: Array | Plain, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def nanargmax(
    a: Kind, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nanargmax(
    a: npt.ArrayLike, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def nanargmin(
    a: npt.ArrayLike | Foreign, axis: SupportsIndex | None = None, *, out: Out, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nanargmin(
    a: Untyped, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanargmin(
    a: Array | Plain, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def nanargmin(
    a: Kind, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nanargmin(
    a: npt.ArrayLike, axis: SupportsIndex | None = None, out: None = None, *, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> npt.NDArray[np.int64]: ...
@overload
def nanmax(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike | Foreign = True, strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nanmax(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Any = True, *, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanmax(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Array | Plain = True, *, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanmax(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Kind | Plain = True, *, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nanmax(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike = True, *, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanmean(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out,
    keepdims: bool = False, where: npt.ArrayLike | Foreign = True, strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nanmean(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, keepdims: bool = False, *,
    where: Any = True, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanmean(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    *, where: Array | Plain = True, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanmean(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False, *,
    where: Kind | Plain = True, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nanmean(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    *, where: npt.ArrayLike = True, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanmin(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike | Foreign = True, strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nanmin(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Any = True, *, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanmin(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Array | Plain = True, *, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanmin(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: Kind | Plain = True, *, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nanmin(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Number | None = ...,
    where: npt.ArrayLike = True, *, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanprod(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out,
    keepdims: bool = False, initial: Number | None = ..., where: npt.ArrayLike | Foreign = True,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nanprod(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Any = True, *, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanprod(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Plain = True, *, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanprod(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Kind | Plain = True, *, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nanprod(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: npt.ArrayLike = True, *, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanstd(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out, ddof: Real = 0,
    keepdims: bool = False, where: npt.ArrayLike | Foreign = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nanstd(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, ddof: Real = 0, keepdims: bool = False,
    *, where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanstd(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanstd(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Kind | Plain = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nanstd(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: npt.ArrayLike = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nansum(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out,
    keepdims: bool = False, initial: Number | None = ..., where: npt.ArrayLike | Foreign = True,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nansum(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Any = True, *, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nansum(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Plain = True, *, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nansum(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Kind | Plain = True, *, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nansum(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: npt.ArrayLike = True, *, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanvar(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out, ddof: Real = 0,
    keepdims: bool = False, where: npt.ArrayLike | Foreign = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def nanvar(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, ddof: Real = 0, keepdims: bool = False,
    *, where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def nanvar(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def nanvar(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Kind | Plain = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def nanvar(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: npt.ArrayLike = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def prod(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out,
    keepdims: bool = False, initial: Number | None = ..., where: npt.ArrayLike | Foreign = True,
    strategy: SumStrategy | None = None
) -> Out: ...
@overload
def prod(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Any = True, *, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def prod(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Plain = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def prod(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Kind | Plain = True, *, strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def prod(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: npt.ArrayLike = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def ptp(
    a: npt.ArrayLike | Foreign, axis: Axis = None, *, out: Out, keepdims: bool = False,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def ptp(
    a: Untyped, axis: Axis = None, out: None = None, keepdims: bool = False, *, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def ptp(
    a: Array | Plain, axis: Axis = None, out: None = None, keepdims: bool = False, *,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def ptp(
    a: Kind, axis: Axis = None, out: None = None, keepdims: bool = False, *, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def ptp(
    a: npt.ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def softmax(
    x: npt.ArrayLike | Foreign, axis: Axis = None, *, dtype: ForeignDType | None = None, out: Out,
    where: npt.ArrayLike | Foreign = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Out: ...
@overload
def softmax(
    x: Untyped, axis: Axis = None, *, dtype: Any | None = None, out: None = None, where: Any = True,
    scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Untyped: ...
@overload
def softmax(
    x: Array | Plain, axis: Axis = None, *, dtype: npt.DTypeLike | None = None, out: None = None,
    where: Array | Plain = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Array: ...
@overload
def softmax(
    x: Kind, axis: Axis = None, *, dtype: ForeignDType | None = None, out: None = None, where: Kind | Plain = True,
    scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Kind: ...
@overload
def softmax(
    x: npt.ArrayLike, axis: Axis = None, *, dtype: npt.DTypeLike | None = None, out: None = None,
    where: npt.ArrayLike = True, scale: Number | None = None, strategy: SoftmaxStrategy | None = None
) -> Array: ...
@overload
def std(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out, ddof: Real = 0,
    keepdims: bool = False, where: npt.ArrayLike | Foreign = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def std(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, ddof: Real = 0, keepdims: bool = False,
    *, where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def std(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def std(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Kind | Plain = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def std(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: npt.ArrayLike = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Array: ...
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
def strategies(op: MatmulOp) -> tuple[MatmulStrategy, ...]: ...
@overload
def sum(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out,
    keepdims: bool = False, initial: Number | None = ..., where: npt.ArrayLike | Foreign = True,
    strategy: SumStrategy | None = None
) -> Out: ...
@overload
def sum(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Any = True, *, strategy: SumStrategy | None = None
) -> Untyped: ...
@overload
def sum(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Array | Plain = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def sum(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: Kind | Plain = True, *, strategy: SumStrategy | None = None
) -> Kind: ...
@overload
def sum(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: Number | None = ..., where: npt.ArrayLike = True, *, strategy: SumStrategy | None = None
) -> Array: ...
@overload
def sum_of_squares(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out,
    keepdims: bool = False, where: npt.ArrayLike | Foreign = True, strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def sum_of_squares(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, keepdims: bool = False, *,
    where: Any = True, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def sum_of_squares(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    *, where: Array | Plain = True, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def sum_of_squares(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, keepdims: bool = False, *,
    where: Kind | Plain = True, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def sum_of_squares(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, keepdims: bool = False,
    *, where: npt.ArrayLike = True, strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def var(
    a: npt.ArrayLike | Foreign, axis: Axis = None, dtype: ForeignDType | None = None, *, out: Out, ddof: Real = 0,
    keepdims: bool = False, where: npt.ArrayLike | Foreign = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Out: ...
@overload
def var(
    a: Untyped, axis: Axis = None, dtype: Any | None = None, out: None = None, ddof: Real = 0, keepdims: bool = False,
    *, where: Any = True, correction: Real | None = None, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def var(
    a: Array | Plain, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Array | Plain = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def var(
    a: Kind, axis: Axis = None, dtype: ForeignDType | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: Kind | Plain = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def var(
    a: npt.ArrayLike, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: Real = 0,
    keepdims: bool = False, *, where: npt.ArrayLike = True, correction: Real | None = None,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def vector_norm(
    a: Untyped, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2, strategy: NansumStrategy | None = None
) -> Untyped: ...
@overload
def vector_norm(
    a: Array | Plain, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def vector_norm(
    a: Kind, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2, strategy: NansumStrategy | None = None
) -> Kind: ...
@overload
def vector_norm(
    a: npt.ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2,
    strategy: NansumStrategy | None = None
) -> Array: ...
@overload
def where(condition: Untyped, /) -> Untyped: ...
@overload
def where(condition: Array | Plain, /) -> tuple[Array, ...]: ...
@overload
def where(condition: Kind, /) -> tuple[Kind, ...]: ...
@overload
def where(condition: npt.ArrayLike, /) -> tuple[Array, ...]: ...
@overload
def where(
    condition: npt.ArrayLike | Foreign, x: npt.ArrayLike | Foreign, y: npt.ArrayLike | Foreign, /, *, out: Out,
    strategy: ExpandStrategy | None = None
) -> Out: ...
@overload
def where(
    condition: Untyped, x: Any, y: Any, /, *, out: None = None, strategy: ExpandStrategy | None = None
) -> Untyped: ...
@overload
def where(
    condition: Array | Plain, x: Array | Plain, y: Array | Plain, /, *, out: None = None,
    strategy: ExpandStrategy | None = None
) -> Array: ...
@overload
def where(
    condition: Kind | Plain, x: Kind | Plain, y: Kind | Plain, /, *, out: None = None,
    strategy: ExpandStrategy | None = None
) -> Kind: ...
@overload
def where(
    condition: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike, /, *, out: None = None,
    strategy: ExpandStrategy | None = None
) -> Array: ...
