from typing import Any, overload

import numpy.typing as npt

from .._types import Array, Axis, Floating, Lazy, Other, Plain, Untyped

__all__ = ["matmul", "vector_norm"]

@overload
def matmul(x1: Untyped, x2: Any, /) -> Untyped: ...
@overload
def matmul(x1: Array | Plain, x2: Array | Plain, /) -> Array: ...
@overload
def matmul(x1: Other | Plain, x2: Other | Plain, /) -> Other: ...
@overload
def vector_norm(x: Untyped, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Untyped: ...
@overload
def vector_norm(
    x: npt.NDArray[Floating], /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2
) -> npt.NDArray[Floating]: ...
@overload
def vector_norm(
    x: Array | Plain | Lazy[Array], /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2
) -> Array: ...
@overload
def vector_norm(x: Other | Lazy[Other], /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Other: ...
