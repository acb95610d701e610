"""The dtypes in which NumPy computes operations of expressions: it is asked, once for each combination."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..definition.program import CLIP, UFUNCS
from ..errors import error
from ..plan.geometry import Shape
from .arguments import as_dtype, check_dtype, result_type


@lru_cache(maxsize=256)
def supported(dtype: Any) -> np.dtype:
    """NumPy's dtype in native byte order, for one of an array's library."""
    found = as_dtype("lazy", str(dtype).removeprefix("torch.") if type(dtype).__module__ == "torch" else dtype)
    check_dtype("lazy", "x", found)
    return found.newbyteorder("=") if not found.isnative else found


def facts(x: Any, context: Any) -> tuple[np.dtype, Shape]:
    """The dtype and the shape of an array; of one that lacks NumPy's, by the exchange of its memory."""
    try:
        return supported(x.dtype), tuple(x.shape)
    except (AttributeError, TypeError):
        if not hasattr(context, "native"):
            raise
    x = context.native("lazy", "x", x)
    return supported(x.dtype), x.shape


@lru_cache(maxsize=4096)
def resolved(name: str, *asked: Any) -> tuple[np.dtype, ...]:
    """The dtypes of a ufunc's operands and result, for operands of these dtypes, or Python scalars of these types."""
    function: np.ufunc = getattr(np, name)
    if len(asked) != function.nin:
        raise error(TypeError, name, f"takes {function.nin} operands, got {len(asked)}")
    half = next((each for each in asked if isinstance(each, np.dtype) and each.kind == "V"), None)
    kinds = [each if isinstance(each, np.dtype) else weak(each, half) for each in asked]
    try:
        found = function.resolve_dtypes((*kinds, None))
    except TypeError:
        names = ", ".join([each.name if isinstance(each, np.dtype) else each.__name__ for each in kinds])
        raise error(TypeError, name, f"NumPy does not compute it for {names}") from None
    check_dtype(name, "the result", found[-1])
    return found


def weak(kind: type, half: np.dtype | None) -> Any:
    """What NumPy resolves a Python scalar by: its type, or the dtype of a bfloat16 operand, which it would widen."""
    return half if half is not None and kind is not complex else kind


@lru_cache(maxsize=4096)
def promoted(name: str, *asked: Any) -> np.dtype:
    """The common dtype of ``where`` or ``clip`` for operands of these dtypes, or Python scalars of these types."""
    given = [np.empty(0, each) if isinstance(each, np.dtype) else each(1) for each in asked]
    return np.clip(*given).dtype if name == CLIP else result_type(name, x=given[0], y=given[1])


class Asked(np.ndarray):
    """An array whose operators give the ufunc that NumPy would call, and its operands."""

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:  # type: ignore[override]
        return function.__name__, inputs


@lru_cache(maxsize=256)
def power_of(dtype: np.dtype, kind: Any, exponent: Any) -> tuple[str, np.dtype] | None:
    """The ufunc of one operand by which NumPy computes the power of an array by a number of this type, and the
    operand's dtype; None if it uses ``np.power``. For which exponents there is one depends on NumPy's version."""
    asked: Any = np.empty(0, dtype).view(Asked) ** kind(exponent)
    name, inputs = asked
    return (name, inputs[0].dtype) if len(inputs) == 1 and name in UFUNCS else None
