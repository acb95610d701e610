"""Conversion to float16 with the processor's own instructions, compiled by Numba."""

from __future__ import annotations

from typing import Any

from numba import types, vectorize
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator]
def to_half(context: Any, x: Any) -> Any:
    """The bits of a float16, of a float32."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), build


@vectorize([types.uint16(types.float32)], cache=True)  # type: ignore[untyped-decorator]
def narrowed(x: Any) -> Any:
    """The bits of float16 numbers, of float32 numbers."""
    return to_half(x)
